//! What a machine is, as the compiler asks for it: by capability, never by vendor.
//!
//! A pass that waits for loads asks what counts them, one that drops a warp barrier asks whether
//! lanes run in lockstep. A capability stands here when something asks for it and what it promises
//! is generated and simulated; what no code generator prints is not claimed.

pub(crate) mod amd;
pub(crate) mod nvidia;

use crate::buffer::Scope;
use crate::device_op::Counter;
use crate::dtype::Scalar;
use crate::micro_op::{Inst, MmaFamily, MmaInst};

/// Threads of a warp group on every machine: four warps, as `setmaxnreg` and `wgmma` count them
/// \[PTX\]. `T.ws` deals a block's threads out by it, on machines with wider waves too.
pub const WARP_GROUP: u32 = 128;

/// Named barriers of a block \[PTX\]; the first is the block barrier's own. Where the machine has
/// none they are made of shared memory, no more of them.
pub const NAMED_BARRIERS: u32 = 16;

/// Blocks of a cluster, at most.
pub const MAX_CLUSTER: u32 = 16;

/// What a target has.
#[derive(Clone, Copy, Debug)]
pub struct Machine {
    /// The language that its kernels are generated in.
    pub dialect: Dialect,
    /// Whether source made for it can be compiled for a later GPU of its vendor.
    pub forward_compatible: bool,
    /// Whether a kernel can print by itself; elsewhere it leaves its lines in memory.
    pub prints: bool,

    /// Lanes of a warp or wave.
    pub warp_size: u32,
    /// Whether the lanes of a wave run in lockstep: what one stored to shared memory the next
    /// instruction of another finds there, and a barrier of the warp is free.
    pub lockstep: bool,
    /// Whether values that a wave's lanes agree on have registers of their own, by which
    /// instructions address memory. Uniform registers that only the compiler sees are none.
    pub scalar_registers: bool,
    /// Threads of a block, at most.
    pub max_threads: u32,
    /// Compute units or multiprocessors of the largest of its GPUs. On another one a kernel that counts
    /// on them computes the same.
    pub multiprocessors: u32,
    /// Dies among which they are shared out evenly, each with an L2 cache of its own. Blocks go to them
    /// in turn.
    pub chiplets: u32,
    /// Bytes of the L2 cache that a block's copies go through.
    pub l2: u64,
    /// Bytes that a compute unit or multiprocessor takes from it in a cycle, at most.
    pub l2_rate: u32,
    /// Cycles between the end of a kernel and the first instruction of the next one in its stream.
    pub next_kernel: u32,
    /// SIMDs or sub-cores of a compute unit or multiprocessor.
    pub simds: u32,
    /// Waves that one of them holds, at most.
    pub waves_per_simd: u32,
    /// Blocks of a cluster that every GPU of it can start; none where blocks are launched one by one.
    pub clusters: Option<u32>,

    pub registers: Registers,
    pub shared: SharedMemory,
    pub barrier: BlockBarrier,
    /// Whether a wave says how soon its instructions are issued beside those of others.
    pub wave_priority: bool,

    /// What counts a wave's loads from global memory to registers that are in flight. Where there
    /// is none, whoever reads the register waits for it, and nothing is written down.
    pub load_counter: Option<Counter>,
    /// The copy from global to shared memory that runs by itself. Beside it there is always the
    /// way through registers.
    pub async_copy: Option<AsyncCopy>,
    /// Whether an engine copies boxes of tensors between global and shared memory by itself, told by a
    /// map that the host makes of each tensor.
    pub bulk_copies: bool,
    /// Cycles from the issue of a load by it until its bytes are there, while all multiprocessors load.
    pub bulk_latency: u32,
    /// Bytes that blocks which only read and write tiles have the L2 cache fetch ahead; none where
    /// the machine fetches nothing by bytes, or nothing is gained.
    pub prefetch_ahead: u64,
    /// Whether asynchronous copies see memory through a proxy of their own, which a fence orders.
    pub async_proxy: bool,
    /// Whether loads of tensors go by a description of the tensor (where it starts, how many bytes
    /// it has), an offset for each lane and one that all lanes share.
    pub buffer_descriptors: bool,
    /// Whether a launch can keep a tensor in the L2 cache.
    pub l2_windows: bool,
    pub vector_atomics: VectorAtomics,

    /// `ldmatrix`.
    pub ldmatrix: bool,
    /// `stmatrix`.
    pub stmatrix: bool,
    /// The largest of three integers by one instruction, as fast as that of two floats.
    pub max_of_three: bool,
    /// LDS loads that transpose across lanes.
    pub ds_read_tr: bool,
    /// Matrix instructions; of those of a family for the same types the ones of the full rate
    /// first.
    pub mma: &'static [MmaFacts],
    /// Matrix instructions whose left factor is sparse.
    pub sparse_mma: &'static [MmaFacts],
    /// Which formats of fp8 are converted from and to float32 by instructions.
    pub fp8_conversions: Option<Fp8Formats>,
    /// Fraction bits to which sums of fp8 products are kept while they are added.
    pub fp8_sum_bits: u32,
}

/// Types of which one atomic addition takes several neighbouring elements, and how many at most.
#[derive(Clone, Copy, Debug)]
pub struct VectorAtomics {
    pub global: &'static [(Scalar, u32)],
    pub shared: &'static [(Scalar, u32)],
}

/// A pair of fp8 formats, of four and of five bits of exponent.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Fp8Formats {
    /// `float8_e4m3fn` and `float8_e5m2`.
    Ocp,
    /// `float8_e4m3fnuz` and `float8_e5m2fnuz`: one zero, one NaN, no infinities.
    Fnuz,
}

/// The language that kernels are generated in. Only the code generator, and who hands its source to
/// a compiler, should ask.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Dialect {
    Cuda,
    Hip,
}

/// 32-bit registers.
#[derive(Clone, Copy, Debug)]
pub struct Registers {
    /// Of one thread, at most.
    pub per_thread: u32,
    /// Of one multiprocessor or compute unit.
    pub file: u32,
    /// Of these, those of the matrix units alone: other instructions only move their values. None where
    /// there is one kind of registers.
    pub accumulation: u32,
    /// Whether what does not fit may be spilled to memory. Where memory operations are counted a
    /// spill would be among them, and the counts of the program's waits would be wrong.
    pub spill: bool,
    /// How warp groups hand registers to each other, where they can.
    pub moves: Option<RegisterMoves>,
}

/// Which numbers of registers a warp group may ask for.
#[derive(Clone, Copy, Debug)]
pub struct RegisterMoves {
    pub least: u32,
    pub most: u32,
    pub multiple: u32,
}

/// Shared memory, or LDS.
#[derive(Clone, Copy, Debug)]
pub struct SharedMemory {
    /// Bytes that one block may have.
    pub bytes: u32,
    /// Banks, four bytes wide each.
    pub banks: u32,
    pub phases: BankPhases,
    /// Bytes at whose multiples a swizzled tile starts, at least.
    pub swizzle_align: u32,
    /// What counts a wave's accesses that are in flight, which then come in order among each
    /// other. Where there is none, they are done before the wave comes to a barrier, and registers
    /// are waited for by who reads them.
    pub counter: Option<Counter>,
}

/// Which lanes of a wave shared memory serves together.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum BankPhases {
    /// Neighbouring lanes.
    Neighbours,
    /// Runs of four lanes that are no neighbours, on 32 banks.
    Mixed32,
    /// The same, with reads on 64 banks.
    Mixed64,
}

/// The barrier of a block, and what is like it.
#[derive(Clone, Copy, Debug)]
pub struct BlockBarrier {
    /// Whether it waits for all memory operations of its waves, asynchronous ones too. Elsewhere
    /// it orders plain accesses and leaves asynchronous ones in flight.
    pub drains: bool,
    /// Whether there is also one that waits for no memory at all.
    pub bare: bool,
    /// Whether there are barriers of some threads; elsewhere they are made of shared memory.
    pub named: bool,
    /// Whether arrival barriers count bytes of asynchronous copies.
    pub expects_bytes: bool,
}

/// A copy from global to shared memory that runs while the program goes on.
#[derive(Clone, Copy, Debug)]
pub struct AsyncCopy {
    /// [`Inst::CpAsync`], where each thread says where its elements go, or
    /// [`Inst::BufferLoadLds`], where those of a wave lie in a row.
    pub inst: Inst,
    /// Bytes that one instruction may bring a lane, widest first.
    pub bytes: &'static [u32],
    /// What says that it is done.
    pub counter: Counter,
}

/// A matrix instruction of a target.
#[derive(Clone, Copy, Debug)]
pub struct MmaFacts {
    pub inst: MmaInst,
    /// Cycles that the matrix unit of one SIMD or sub-core is taken.
    pub cycles: u32,
}

impl Machine {
    /// Whether the machine has an instruction.
    pub fn has(&self, inst: Inst) -> bool {
        match inst {
            Inst::Load | Inst::Store => true,
            Inst::CpAsync | Inst::BufferLoadLds => self.async_copy.is_some_and(|c| c.inst == inst),
            Inst::LdMatrix { .. } => self.ldmatrix,
            Inst::StMatrix { .. } => self.stmatrix,
            Inst::DsReadTr => self.ds_read_tr,
            Inst::Mma(mma) | Inst::GroupMma { mma, .. } => {
                let table = if mma.is_sparse() {
                    self.sparse_mma
                } else {
                    self.mma
                };
                table.iter().any(|m| m.inst == mma)
            }
            Inst::Tma(_) => self.bulk_copies,
        }
    }

    /// The asynchronous copy, if one instruction of it brings a lane as much as the widest load
    /// does. Of a narrower one pipelined loops would take several where the way through registers
    /// takes one, so they leave it alone.
    pub fn wide_copy(&self) -> Option<AsyncCopy> {
        const WIDEST_LOAD: u32 = 16;
        self.async_copy.filter(|c| c.bytes.contains(&WIDEST_LOAD))
    }

    /// Whether warp groups multiply from shared memory.
    pub fn group_mma(&self) -> bool {
        self.mma.iter().any(|m| m.inst.family == MmaFamily::Wgmma)
    }

    /// Multiply-adds a cycle of a multiprocessor by the fastest instruction for operands of a type.
    pub fn mma_rate(&self, ab: Scalar) -> Option<u32> {
        let known = self.mma.iter().filter(|f| [f.inst.a, f.inst.b] == [ab; 2]);
        let rate = known.map(|f| {
            let work = u32::from(f.inst.m) * u32::from(f.inst.n) * u32::from(f.inst.k);
            let units = match f.inst.family {
                // A warp group's instruction takes the units of all of them.
                MmaFamily::Wgmma => 1,
                MmaFamily::MmaSync | MmaFamily::MmaSp | MmaFamily::Mfma => self.simds,
            };
            work * units / f.cycles.max(1)
        });
        rate.max()
    }

    /// Whether something on the machine is counted by this.
    pub fn counts(&self, counter: Counter) -> bool {
        let copies = self.async_copy.map(|c| c.counter);
        let products = self.group_mma().then_some(Counter::Wgmma);
        [self.load_counter, self.shared.counter, copies, products].contains(&Some(counter))
    }

    /// How many neighbouring elements one atomic addition to memory takes, at most.
    pub fn atomic_add_lanes(&self, scope: Scope, scalar: Scalar) -> u32 {
        let listed = match scope {
            Scope::Global => self.vector_atomics.global,
            Scope::Shared => self.vector_atomics.shared,
            _ => &[],
        };
        let of_type = listed.iter().find(|(s, _)| *s == scalar);
        of_type.map_or(1, |(_, n)| *n)
    }

    /// Waves of each SIMD when so many blocks of so many threads run on a unit at once, as far as
    /// it holds them.
    pub fn waves_on_simd(&self, threads: u32, blocks: u32) -> u32 {
        let waves = threads.div_ceil(self.warp_size) * blocks;
        waves.div_ceil(self.simds).clamp(1, self.waves_per_simd)
    }
}

/// A row of the tables of matrix instructions.
const fn mma(
    family: MmaFamily,
    shape: (u16, u16, u16),
    ab: Scalar,
    acc: Scalar,
    cycles: u32,
) -> MmaFacts {
    MmaFacts {
        inst: MmaInst {
            family,
            m: shape.0,
            n: shape.1,
            k: shape.2,
            a: ab,
            b: ab,
            acc,
            scaled: false,
        },
        cycles,
    }
}
