//! Micro-ops of loop and device IR.
//!
//! A micro-op is one scheduled piece of a tile op. It keeps what a later pass needs (which
//! buffer, which slot, which sub-tile, how many machine instructions, which counter) so that
//! nothing has to be recovered by matching lowered code. It also says exactly what each
//! thread does: one machine instruction for each point of `axes`, at the elements `at`.

use std::fmt;

use crate::buffer::{Region, Scope};
use crate::device_op::Counter;
use crate::dtype::Scalar;
use crate::expr::Expr;
use crate::func::Func;
use crate::ids::{Buffer, Var};
use crate::machine::WARP_GROUP;
use crate::tile_op::EvictionPolicy;

/// `g2s for c < 4 do A[by * 128 +: 128, k * 32 +: 32] at [by * 128 + tx // 4, k * 32 + c * 8] -> S[0 +: 128, 0 +: 32] slot=(k % 2) at [tx // 4, c * 8] inst="cp.async" width=8 counter=cp_async`
///
/// Reads `sources`, writes `dest`. For `mma` the sources are A and B, then the metadata of a sparse A,
/// or the scales of both where the instruction takes them, and `dest` is read too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MicroOp {
    pub kind: MicroKind,
    /// The machine instruction.
    pub inst: Inst,
    /// Instruction indices with their extents: a thread issues one instruction for each
    /// point, last axis fastest.
    pub axes: Vec<(Var, u32)>,
    /// `for mi < 4, ni < 8 turning do`: an axis runs backwards where the index of the axis before
    /// it is odd, so rows turn round at their ends and neighbours share an operand.
    pub turns: bool,
    pub dest: Access,
    pub sources: Vec<Access>,
    /// Elements that a thread moves with one instruction; 1 for matrix instructions, whose
    /// shape says it. The first element and every row of memory are multiples of it, at most 16
    /// bytes are moved, and no vector reaches over the end of a row, so `pred` and bounds speak
    /// of its first element.
    pub width: u32,
    /// `apart=4`: of a load to registers or a store from them, the slots from each of these elements to the
    /// next one; 1 where they follow each other. Neighbours in memory are of several matrix instructions
    /// then, of which each takes elements of several rows.
    pub apart: u32,
    /// Whether the instruction is done at this point by this thread; absent is always.
    pub pred: Option<Expr>,
    /// What a load writes instead where `pred` is false; absent leaves the destination alone.
    pub otherwise: Option<Expr>,
    /// What tracks its completion; `None` is complete when the next statement starts.
    pub counter: Option<Counter>,
    /// `arrives=full[k % 3]`: the arrival barrier that hears of the bytes of a bulk load when they
    /// have landed.
    pub arrives: Option<Arrival>,
    /// `evict=first`: what of it the L2 cache lets go first or last where it needs room. A wish, which bulk
    /// copies tell.
    pub evict: Option<EvictionPolicy>,
}

/// One arrival barrier.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Arrival {
    pub barrier: Buffer,
    pub index: Expr,
    /// `arrives=full[0] multicast=3`: the box goes to the same place in these blocks of the cluster, a
    /// bit for each, and the barrier of each hears of it.
    pub multicast: Option<u16>,
}

impl MicroOp {
    /// How many instructions a thread issues.
    pub fn count(&self) -> u32 {
        self.axes.iter().map(|(_, extent)| extent).product()
    }

    /// Whether AMD's compiler may join neighbouring LDS accesses of the operation into one
    /// instruction, which the counter counts once: how many there are is not certain then.
    pub fn may_be_joined(&self, func: &Func) -> bool {
        /// The widest access, in bits, that is joined with a neighbour.
        const JOINED_BITS: u32 = 64;
        let mut buffers = self.sources.iter().chain([&self.dest]);
        let shared = |a: &&Access| func.buffers[a.region.buffer].scope == Scope::Shared;
        let Some(end) = buffers.find(shared) else {
            return false;
        };
        let bits = self.width * func.buffers[end.region.buffer].dtype.bits();
        // What is no power of two is done in pieces of the largest one that divides it.
        let piece = bits & bits.wrapping_neg();
        self.counter == Some(Counter::Lgkmcnt) && piece <= JOINED_BITS
    }
}

/// What a micro-op touches: the block together, and each thread at each point.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Access {
    /// All that the block touches; dependences are between these.
    pub region: Region,
    /// The version of the buffer; `None` where there is a single one.
    pub slot: Option<Expr>,
    /// The first element of this thread's instruction, over thread indices and `axes`.
    pub at: Vec<Expr>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MicroKind {
    /// Global to shared.
    G2s,
    /// Global to registers.
    G2r,
    /// Shared to registers.
    S2r,
    /// One group of matrix instructions.
    Mma,
    /// Registers to shared.
    R2s,
    /// Registers to global.
    R2g,
    /// Bulk copy engine, global to shared.
    TmaLoad,
    /// Bulk copy engine, shared to global.
    TmaStore,
}

impl MicroKind {
    pub const ALL: [MicroKind; 8] = [
        MicroKind::G2s,
        MicroKind::G2r,
        MicroKind::S2r,
        MicroKind::Mma,
        MicroKind::R2s,
        MicroKind::R2g,
        MicroKind::TmaLoad,
        MicroKind::TmaStore,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            MicroKind::G2s => "g2s",
            MicroKind::G2r => "g2r",
            MicroKind::S2r => "s2r",
            MicroKind::Mma => "mma",
            MicroKind::R2s => "r2s",
            MicroKind::R2g => "r2g",
            MicroKind::TmaLoad => "tma_load",
            MicroKind::TmaStore => "tma_store",
        }
    }

    pub fn from_name(name: &str) -> Option<MicroKind> {
        MicroKind::ALL.into_iter().find(|k| k.name() == name)
    }
}

/// A machine instruction, by what it does with a wave's lanes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Inst {
    /// Each thread loads `width` consecutive elements into registers; as a `g2s` it stores them
    /// to shared memory at once.
    Load,
    /// Each thread stores `width` consecutive elements from registers.
    Store,
    /// Each thread copies `width` elements from global to shared, asynchronously (sm_80).
    CpAsync,
    /// The wave copies from global to shared at the wave's base plus lane times the width,
    /// asynchronously (gfx9 `buffer_load … lds`).
    BufferLoadLds,
    /// Each thread gives the address of a row of eight 16-bit elements; the warp receives 1,
    /// 2 or 4 matrices of 8x8, transposed on request.
    LdMatrix { tiles: u8, trans: bool },
    /// The reverse of `LdMatrix`.
    StMatrix { tiles: u8, trans: bool },
    /// gfx950 LDS load that transposes 64 bits across lanes (`ds_read_b64_tr_b16` and `_b8`).
    DsReadTr,
    /// A matrix multiply-accumulate on registers. Of a sparse one the third source is the metadata, as
    /// integers of the type that the program has it in; [`crate::tile_op::Sparsity`] says what they mean.
    Mma(MmaInst),
    /// A matrix multiply-accumulate of a warp group (sm_90a `wgmma`): B, and A unless its source is
    /// a register array, are read from shared memory while the program goes on. `at` of such a
    /// source is the first element of the instruction's tile, the same for the whole group.
    /// A `fresh` sum starts at zero: instructions at the first index of the first axis add to
    /// nothing.
    GroupMma {
        mma: MmaInst,
        a: Major,
        b: Major,
        fresh: bool,
    },
    /// The bulk copy engine (sm_90a): each thread that runs it has one box of the tensor moved for
    /// each point, while the program goes on. What of the box lies outside of the tensor becomes
    /// zero in shared memory and is not written to global memory; an arrival barrier hears of all
    /// bytes of the box. In shared memory the box lies at `at` without its dimensions of one, the
    /// others in their order, as the last ones of the buffer.
    Tma(TmaBox),
}

/// `128x64`: the box of a tensor that one bulk copy moves, with an extent for each dimension of the
/// tensor.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct TmaBox {
    rank: u8,
    extents: [u16; TmaBox::MAX_RANK],
}

impl TmaBox {
    /// Dimensions that the engine knows of a tensor. Source: CUDA driver API,
    /// `cuTensorMapEncodeTiled`, as for the extent.
    pub const MAX_RANK: usize = 5;
    /// The most that a box has of a dimension.
    pub const MAX_EXTENT: u16 = 256;

    /// `None` for what the engine has no box for.
    pub fn new(extents: &[u16]) -> Option<TmaBox> {
        let fits = |e: &u16| (1..=TmaBox::MAX_EXTENT).contains(e);
        if !(1..=TmaBox::MAX_RANK).contains(&extents.len()) || !extents.iter().all(fits) {
            return None;
        }
        let mut all = [1; TmaBox::MAX_RANK];
        all[..extents.len()].copy_from_slice(extents);
        Some(TmaBox {
            rank: extents.len() as u8,
            extents: all,
        })
    }

    pub fn extents(&self) -> &[u16] {
        &self.extents[..usize::from(self.rank)]
    }

    pub fn elements(&self) -> u32 {
        self.extents().iter().map(|e| u32::from(*e)).product()
    }

    /// Its extents in a buffer of shared memory with so many dimensions: without those of one,
    /// behind ones.
    pub fn in_shared(&self, rank: usize) -> Option<Vec<u16>> {
        let own: Vec<u16> = self.extents().iter().copied().filter(|e| *e > 1).collect();
        let ones = rank.checked_sub(own.len())?;
        Some([vec![1; ones], own].concat())
    }

    pub fn from_name(name: &str) -> Option<TmaBox> {
        let extents: Option<Vec<u16>> = name.split('x').map(|e| e.parse().ok()).collect();
        TmaBox::new(&extents?)
    }
}

impl fmt::Display for TmaBox {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for (at, extent) in self.extents().iter().enumerate() {
            write!(f, "{}{extent}", if at == 0 { "" } else { "x" })?;
        }
        Ok(())
    }
}

/// A matrix instruction: `D[m, n] += A[m, k] · B[k, n]` for one wave, or one warp group. Of a sparse
/// one A has `k / 2` columns.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct MmaInst {
    pub family: MmaFamily,
    pub m: u16,
    pub n: u16,
    pub k: u16,
    /// The type of A.
    pub a: Scalar,
    /// The type of B.
    pub b: Scalar,
    /// The type of the accumulator.
    pub acc: Scalar,
    /// Whether it has two sources more: a scale for each [`MmaInst::SCALED`] elements along K of a row
    /// of A and of a column of B, of float8_e8m0fnu.
    pub scaled: bool,
}

/// Along which of its dimensions the elements of an operand follow each other in memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Major {
    /// Along K.
    K,
    /// Along M or N.
    Mn,
}

impl Major {
    pub const ALL: [Major; 2] = [Major::K, Major::Mn];

    pub const fn name(self) -> &'static str {
        match self {
            Major::K => "k",
            Major::Mn => "mn",
        }
    }
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum MmaFamily {
    /// NVIDIA warp-wide `mma.sync`.
    MmaSync,
    /// NVIDIA warp-wide `mma.sp.sync`: the left factor is sparse.
    MmaSp,
    /// NVIDIA warp-group-wide `wgmma`.
    Wgmma,
    /// AMD wave-wide MFMA.
    Mfma,
}

impl MmaFamily {
    pub const ALL: [MmaFamily; 4] = [
        MmaFamily::MmaSync,
        MmaFamily::MmaSp,
        MmaFamily::Wgmma,
        MmaFamily::Mfma,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            MmaFamily::MmaSync => "mma",
            MmaFamily::MmaSp => "mma_sp",
            MmaFamily::Wgmma => "wgmma",
            MmaFamily::Mfma => "mfma",
        }
    }
}

/// `load`, `ldmatrix.x4.trans`, `mfma.16x16x32.bfloat16.float32`,
/// `mfma.16x16x128.float8_e4m3fn.float4_e2m1fn.float32.scaled`, where A and B differ: the name in the
/// text form.
impl fmt::Display for Inst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Inst::Load => f.write_str("load"),
            Inst::Store => f.write_str("store"),
            Inst::CpAsync => f.write_str("cp.async"),
            Inst::BufferLoadLds => f.write_str("buffer_load_lds"),
            Inst::DsReadTr => f.write_str("ds_read_tr"),
            Inst::Tma(tile) => write!(f, "tma.{tile}"),
            Inst::LdMatrix { tiles, trans } => {
                write!(f, "ldmatrix.x{tiles}{}", if *trans { ".trans" } else { "" })
            }
            Inst::StMatrix { tiles, trans } => {
                write!(f, "stmatrix.x{tiles}{}", if *trans { ".trans" } else { "" })
            }
            Inst::Mma(mma) => mma.fmt(f),
            Inst::GroupMma { mma, a, b, fresh } => {
                let fresh = if *fresh { ".fresh" } else { "" };
                write!(f, "{mma}.{}.{}{fresh}", a.name(), b.name())
            }
        }
    }
}

impl fmt::Display for MmaInst {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let (family, m, n, k) = (self.family.name(), self.m, self.n, self.k);
        write!(f, "{family}.{m}x{n}x{k}.{}", self.a)?;
        if self.b != self.a {
            write!(f, ".{}", self.b)?;
        }
        let scaled = if self.scaled { ".scaled" } else { "" };
        write!(f, ".{}{scaled}", self.acc)
    }
}

impl Inst {
    /// The instruction of this name.
    pub fn from_name(name: &str) -> Option<Inst> {
        Some(match name {
            "load" => Inst::Load,
            "store" => Inst::Store,
            "cp.async" => Inst::CpAsync,
            "buffer_load_lds" => Inst::BufferLoadLds,
            "ds_read_tr" => Inst::DsReadTr,
            _ => {
                if let Some(tile) = name.strip_prefix("tma.") {
                    return TmaBox::from_name(tile).map(Inst::Tma);
                }
                if let Some(rest) = name.strip_prefix("ldmatrix.x") {
                    let (tiles, trans) = tiles(rest)?;
                    Inst::LdMatrix { tiles, trans }
                } else if let Some(rest) = name.strip_prefix("stmatrix.x") {
                    let (tiles, trans) = tiles(rest)?;
                    Inst::StMatrix { tiles, trans }
                } else {
                    matrix_product(name)?
                }
            }
        })
    }
}

/// A matrix instruction; of a warp group's the name ends with how its operands lie, and whether
/// the sum is fresh.
fn matrix_product(name: &str) -> Option<Inst> {
    if let Some(mma) = MmaInst::from_name(name) {
        return (mma.family != MmaFamily::Wgmma).then_some(Inst::Mma(mma));
    }
    let major = |name: &str| Major::ALL.into_iter().find(|m| m.name() == name);
    let (name, fresh) = match name.strip_suffix(".fresh") {
        Some(rest) => (rest, true),
        None => (name, false),
    };
    let (rest, b) = name.rsplit_once('.')?;
    let (rest, a) = rest.rsplit_once('.')?;
    let mma = MmaInst::from_name(rest).filter(|mma| mma.family == MmaFamily::Wgmma)?;
    Some(Inst::GroupMma {
        mma,
        a: major(a)?,
        b: major(b)?,
        fresh,
    })
}

fn tiles(text: &str) -> Option<(u8, bool)> {
    let (count, trans) = match text.strip_suffix(".trans") {
        Some(count) => (count, true),
        None => (text, false),
    };
    matches!(count, "1" | "2" | "4").then(|| (count.as_bytes()[0] - b'0', trans))
}

impl MmaInst {
    /// Neighbours along K that have one scale.
    pub const SCALED: u16 = 32;

    /// The threads that run it together, where a warp has so many.
    pub const fn threads(&self, warp: u32) -> u32 {
        match self.family {
            MmaFamily::Wgmma => WARP_GROUP,
            MmaFamily::MmaSync | MmaFamily::MmaSp | MmaFamily::Mfma => warp,
        }
    }

    /// Whether the left factor is sparse.
    pub const fn is_sparse(&self) -> bool {
        matches!(self.family, MmaFamily::MmaSp)
    }

    /// Columns of A.
    pub const fn left_k(&self) -> u16 {
        if self.is_sparse() { self.k / 2 } else { self.k }
    }

    /// How many sources it has: A, B, and the metadata of a sparse A, or the scales of both.
    pub const fn sources(&self) -> usize {
        match (self.is_sparse(), self.scaled) {
            (true, _) => 3,
            (false, true) => 4,
            (false, false) => 2,
        }
    }

    pub fn from_name(name: &str) -> Option<MmaInst> {
        let mut parts = name.split('.');
        let family = parts.next()?;
        let family = MmaFamily::ALL.into_iter().find(|f| f.name() == family)?;
        let mut sizes = parts.next()?.split('x').map(|s| s.parse::<u16>().ok());
        let (m, n, k) = (sizes.next()??, sizes.next()??, sizes.next()??);
        let mut parts: Vec<&str> = parts.collect();
        let scaled = family == MmaFamily::Mfma && parts.last() == Some(&"scaled");
        if scaled {
            parts.pop();
        }
        let types: Option<Vec<Scalar>> = parts.into_iter().map(Scalar::from_name).collect();
        let (a, b, acc) = match types?[..] {
            [ab, acc] => (ab, ab, acc),
            [a, b, acc] if a != b && family == MmaFamily::Mfma => (a, b, acc),
            _ => return None,
        };
        sizes.next().is_none().then_some(MmaInst {
            family,
            m,
            n,
            k,
            a,
            b,
            acc,
            scaled,
        })
    }

    /// The instruction of the transposed product, `Dᵀ += Bᵀ · Aᵀ`.
    pub const fn turned(self) -> MmaInst {
        MmaInst {
            m: self.n,
            n: self.m,
            a: self.b,
            b: self.a,
            ..self
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn instruction_names_round_trip() {
        let mma = MmaInst {
            family: MmaFamily::Mfma,
            m: 16,
            n: 16,
            k: 32,
            a: Scalar::BF16,
            b: Scalar::BF16,
            acc: Scalar::F32,
            scaled: false,
        };
        for inst in [
            Inst::Load,
            Inst::Store,
            Inst::CpAsync,
            Inst::BufferLoadLds,
            Inst::DsReadTr,
            Inst::Tma(TmaBox::new(&[1, 256, 64]).unwrap()),
            Inst::LdMatrix {
                tiles: 4,
                trans: true,
            },
            Inst::StMatrix {
                tiles: 2,
                trans: false,
            },
            Inst::Mma(mma),
            Inst::Mma(MmaInst {
                k: 128,
                a: Scalar::F4E2M1,
                b: Scalar::F4E2M1,
                scaled: true,
                ..mma
            }),
            Inst::Mma(MmaInst {
                k: 128,
                a: Scalar::F8E5M2,
                b: Scalar::F4E2M1,
                scaled: true,
                ..mma
            }),
            Inst::GroupMma {
                mma: MmaInst {
                    family: MmaFamily::Wgmma,
                    m: 64,
                    n: 256,
                    k: 16,
                    ..mma
                },
                a: Major::K,
                b: Major::Mn,
                fresh: true,
            },
        ] {
            assert_eq!(Inst::from_name(&inst.to_string()), Some(inst));
        }
        assert_eq!(Inst::from_name("ldmatrix.x3"), None);
        assert_eq!(Inst::from_name("tma.257x64"), None);
        assert_eq!(Inst::from_name("tma.1x1x1x1x1x8"), None);
        assert_eq!(Inst::from_name("mfma.16x16.bfloat16.float32"), None);
        assert_eq!(Inst::from_name("mma.16x8x16.float16.float32.scaled"), None);
        assert_eq!(Inst::from_name("wgmma.64x8x16.float16.float32"), None);
        assert_eq!(
            Inst::from_name("mfma.16x16x16.float16.float16.float32"),
            None
        );
    }
}
