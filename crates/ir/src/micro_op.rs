//! Micro-ops of loop and device IR.
//!
//! A micro-op is one scheduled piece of a tile op. It keeps what a later pass needs (which
//! buffer, which slot, which sub-tile, how many machine instructions, which counter) so that
//! nothing has to be recovered by matching lowered code.

use crate::buffer::Region;
use crate::device_op::Counter;
use crate::expr::Expr;

/// `g2s A[…] -> S[…] slot=(k % 2) inst="cp.async.16" count=4 counter=cp_async`
///
/// Reads `sources`, writes `dest`. For `mma` the sources are A and B, and `dest` is read too.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct MicroOp {
    pub kind: MicroKind,
    pub dest: SlotRegion,
    pub sources: Vec<SlotRegion>,
    /// The machine instruction it becomes.
    pub inst: String,
    /// How many of them a thread issues.
    pub count: u32,
    /// What tracks its completion; `None` is complete when the next statement starts.
    pub counter: Option<Counter>,
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

/// A region of one version of a buffer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct SlotRegion {
    pub region: Region,
    /// `None` where the buffer has a single version.
    pub slot: Option<Expr>,
}
