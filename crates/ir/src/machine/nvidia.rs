//! NVIDIA's machines.

use super::{
    AsyncCopy, BankPhases, BlockBarrier, Dialect, Fp8Formats, Machine, MmaFacts, RegisterMoves,
    Registers, SharedMemory, VectorAtomics, mma,
};
use crate::device_op::Counter;
use crate::dtype::Scalar;
use crate::micro_op::{Inst, MmaFamily};

pub(crate) const SM80: Machine = Machine {
    dialect: Dialect::Cuda,
    forward_compatible: true, // [CUDA] compute capabilities are kept by later ones
    prints: true,             // [CUDA] printf is the compiler's own
    warp_size: 32,            // [CUDA]
    lockstep: false,          // [CUDA] independent thread scheduling, from 7.0 on
    scalar_registers: false,
    max_threads: 1024,    // [CUDA]
    multiprocessors: 108, // A100
    chiplets: 1,
    l2: 40 << 20,       // A100
    l2_rate: 64,        // [A100] bytes a clock into the L1 of each SM
    next_kernel: 4500,  // an H200: 0.8 µs in a graph, 2.5 counted for streams
    simds: 4,           // [CUDA] schedulers of a multiprocessor
    waves_per_simd: 16, // [CUDA] 64 warps a multiprocessor
    clusters: None,     // [CUDA] from 9.0 on
    registers: Registers {
        per_thread: 255, // [CUDA]
        file: 64 * 1024, // [CUDA]
        accumulation: 0,
        spill: true, // [CUDA] to local memory
        moves: None, // [PTX] setmaxnreg needs sm_90a
    },
    shared: SharedMemory {
        bytes: 163 * 1024,              // [CUDA] 163 KB a block for 8.0
        banks: 32,                      // [CUDA]
        phases: BankPhases::Neighbours, // [CUDA] shared memory of 5.x and later
        swizzle_align: 128,             // all banks once
        counter: None,                  // [PTX] plain accesses are done when a barrier is
    },
    barrier: BlockBarrier {
        drains: false, // [PTX] bar.sync orders plain accesses, not cp.async
        bare: false,
        named: true,          // [PTX] bar.sync with an operand
        expects_bytes: false, // [PTX] mbarrier.expect_tx needs sm_90
    },
    wave_priority: false,
    load_counter: None, // a scoreboard that no instruction names
    async_copy: Some(AsyncCopy {
        inst: Inst::CpAsync,
        bytes: &[16, 8, 4], // [PTX] cp.async cp-size
        counter: Counter::CpAsync,
    }),
    bulk_copies: false, // [PTX] cp.async.bulk.tensor needs sm_90
    bulk_latency: 0,
    prefetch_ahead: 0,  // [PTX] cp.async.bulk.prefetch needs sm_90
    async_proxy: false, // [PTX] fence.proxy.async needs sm_90
    buffer_descriptors: false,
    l2_windows: true, // [CUDA] access policy windows, from 8.0 on
    // [PTX] red: packed halves from sm_60 on. Where bfloat16 has no addition of its own, the two
    // of a word are still changed together.
    vector_atomics: VectorAtomics {
        global: &[(Scalar::F16, 2), (Scalar::BF16, 2)],
        shared: &[],
    },
    ldmatrix: true,  // [PTX] sm_75
    stmatrix: false, // [PTX] needs sm_90
    max_of_three: false,
    ds_read_tr: false,
    mma: MMA_SYNC_80,
    sparse_mma: MMA_SP_80,
    fp8_sum_bits: 23,
    fp8_conversions: None, // [PTX] cvt of e4m3x2 needs sm_89
};

pub(crate) const SM90A: Machine = Machine {
    multiprocessors: 132, // H100 SXM, H200
    l2: 50 << 20,         // H100 SXM, H200
    clusters: Some(8),    // [CUDA] 9.0, "Thread Block Clusters"
    registers: Registers {
        // [PTX] setmaxnreg
        moves: Some(RegisterMoves {
            least: 24,
            most: 256,
            multiple: 8,
        }),
        ..SM80.registers
    },
    shared: SharedMemory {
        bytes: 227 * 1024,   // [CUDA] 227 KB a block for 9.0
        swizzle_align: 1024, // [PTX] eight rows of the swizzle of 128 bytes
        ..SM80.shared
    },
    barrier: BlockBarrier {
        expects_bytes: true, // [PTX] sm_90
        ..SM80.barrier
    },
    bulk_copies: true, // [PTX] sm_90
    // Of products with 128x128 tiles on an H200 those wait for no load whose copies have more: 3 and 4
    // stages of 64 along K, 6 of 32. Those with less do: 2 of 64, 2 to 4 of 32.
    bulk_latency: 1000,
    // [H200] kernels that read one tile a block: rms_norm gains from 4 to 10 MB and most from 6, softmax
    // from 2 to 6 and most from 2, 12 cost; of two tiles: 3 to 7, 8 cost
    prefetch_ahead: 5 << 20,
    async_proxy: true, // [PTX] sm_90
    // [PTX] red: vectors from sm_90 on
    vector_atomics: VectorAtomics {
        global: &[(Scalar::F16, 4), (Scalar::BF16, 4), (Scalar::F32, 4)],
        shared: &[],
    },
    stmatrix: true,     // [PTX] sm_90
    max_of_three: true, // [SASS] VIMNMX3, from two `max.s32` in a row
    mma: &MMA_90,
    fp8_sum_bits: 13, // measured: 1 + 2^-13 survives, 1 + 2^-14 does not
    fp8_conversions: Some(Fp8Formats::Ocp), // [PTX] sm_89
    ..SM80
};

const fn sync(k: u16, ab: Scalar, acc: Scalar, cycles: u32) -> MmaFacts {
    mma(MmaFamily::MmaSync, (16, 8, k), ab, acc, cycles)
}

/// [PTX] `mma.sync` shapes of sm_80. Cycles from the dense rate of A100: 256 f16 multiply-adds
/// a cycle and sub-core, half of that for tf32, twice for int8, 16 of float64.
const MMA_SYNC_80: &[MmaFacts] = &[
    sync(16, Scalar::F16, Scalar::F32, 8),
    sync(16, Scalar::F16, Scalar::F16, 8),
    sync(16, Scalar::BF16, Scalar::F32, 8),
    sync(8, Scalar::TF32, Scalar::F32, 8),
    sync(32, Scalar::I8, Scalar::I32, 8),
    sync(32, Scalar::U8, Scalar::I32, 8),
    DOUBLE_80,
];

const fn sparse(k: u16, ab: Scalar, acc: Scalar) -> MmaFacts {
    mma(MmaFamily::MmaSp, (16, 8, k), ab, acc, 8)
}

/// [PTX] `mma.sp.sync` of the largest K, from sm_80 on: twice the K of `mma.sync` in the same cycles.
/// Those of fp8 (sm_89) are left out: where fp8 has no units of its own they would be no faster.
const MMA_SP_80: &[MmaFacts] = &[
    sparse(32, Scalar::F16, Scalar::F32),
    sparse(32, Scalar::F16, Scalar::F16),
    sparse(32, Scalar::BF16, Scalar::F32),
    sparse(16, Scalar::TF32, Scalar::F32),
    sparse(64, Scalar::I8, Scalar::I32),
    sparse(64, Scalar::U8, Scalar::I32),
];

/// [PTX] The one shape of float64 before sm_90.
const DOUBLE_80: MmaFacts = mma(MmaFamily::MmaSync, (8, 8, 4), Scalar::F64, Scalar::F64, 16);

/// [PTX] sm_90 adds nothing for fp8 to `mma.sync` (sm_89 forms run by conversion), so fp8 goes
/// through the same shapes with K of 32. Of float64 it has 16 rows and more of K: twice the rate of
/// A100. Whether the old shape is as fast is not known; it is taken not to be.
const MMA_SYNC_90: [MmaFacts; 12] = [
    sync(16, Scalar::F16, Scalar::F32, 8),
    sync(16, Scalar::F16, Scalar::F16, 8),
    sync(16, Scalar::BF16, Scalar::F32, 8),
    sync(8, Scalar::TF32, Scalar::F32, 8),
    sync(32, Scalar::I8, Scalar::I32, 8),
    sync(32, Scalar::U8, Scalar::I32, 8),
    sync(32, Scalar::F8E4M3FN, Scalar::F32, 16),
    sync(32, Scalar::F8E5M2, Scalar::F32, 16),
    sync(16, Scalar::F64, Scalar::F64, 64),
    sync(8, Scalar::F64, Scalar::F64, 32),
    sync(4, Scalar::F64, Scalar::F64, 16),
    DOUBLE_80,
];

/// The types of `wgmma`. Of float32 it would drop the bits that tf32 lacks, where products of a warp
/// round: it is for tensors of tf32. fp8 products it adds with 13 fraction bits: who needs more of a long sum
/// adds its parts up in float32, as the examples do.
const GROUP_TYPES: [(u16, Scalar, Scalar); 8] = [
    (16, Scalar::F16, Scalar::F32),
    (16, Scalar::F16, Scalar::F16),
    (16, Scalar::BF16, Scalar::F32),
    (8, Scalar::TF32, Scalar::F32),
    (32, Scalar::I8, Scalar::I32),
    (32, Scalar::U8, Scalar::I32),
    (32, Scalar::F8E4M3FN, Scalar::F32),
    (32, Scalar::F8E5M2, Scalar::F32),
];

/// [PTX] `wgmma.mma_async.m64nNkK`: N is any multiple of eight up to 256; of integers there are 8,
/// 24 and the multiples of 16.
const fn group_takes(n: u16, ab: Scalar) -> bool {
    n.is_multiple_of(8) && (!ab.is_int() || n.is_multiple_of(16) || n == 8 || n == 24)
}

/// How many there are.
const GROUP_ROWS: usize = {
    let (mut rows, mut types) = (0, 0);
    while types < GROUP_TYPES.len() {
        let mut n = 256;
        while n > 0 {
            rows += group_takes(n, GROUP_TYPES[types].1) as usize;
            n -= 8;
        }
        types += 1;
    }
    rows
};

/// Those of one warp, then those of a group, the wide ones of the full rate first. Cycles from the
/// dense rate of H100, 512 f16 multiply-adds a cycle and sub-core; a narrow product takes as long
/// as reading A (64 rows) and B from shared memory at 128 bytes a cycle.
const MMA_90: [MmaFacts; MMA_SYNC_90.len() + GROUP_ROWS] = {
    let mut all = [MMA_SYNC_90[0]; MMA_SYNC_90.len() + GROUP_ROWS];
    let mut at = 0;
    while at < MMA_SYNC_90.len() {
        all[at] = MMA_SYNC_90[at];
        at += 1;
    }
    let mut types = 0;
    while types < GROUP_TYPES.len() {
        let (k, ab, acc) = GROUP_TYPES[types];
        let mut n = 256;
        while n > 0 {
            if group_takes(n, ab) {
                let (math, reads) = (n / 2, 16 + n / 4);
                let cycles = if math > reads { math } else { reads };
                all[at] = mma(MmaFamily::Wgmma, (64, n, k), ab, acc, cycles as u32);
                at += 1;
            }
            n -= 8;
        }
        types += 1;
    }
    all
};
