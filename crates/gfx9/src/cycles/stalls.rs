//! Why a wave's next instruction does not issue.

use std::fmt;

/// A reason to wait.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Stall {
    /// A result of a matrix instruction that is not there yet.
    MatrixResult,
    /// Another result that is not there yet.
    Result,
    /// The SIMD's matrix unit is busy.
    MatrixUnit,
    /// The SIMD's vector unit is busy.
    VectorUnit,
    /// Another wave of the SIMD issued an instruction of this kind.
    Arbitration,
    /// The queue to LDS is full.
    LdsQueue,
    /// The queue to memory is full.
    MemoryQueue,
    /// A counter cannot count further.
    CounterFull,
    /// `s_waitcnt vmcnt`.
    VectorWait,
    /// `s_waitcnt lgkmcnt`.
    LdsWait,
    /// `s_barrier`, until the last wave has come.
    Barrier,
    /// `s_nop` and `s_sleep`.
    Nop,
    /// The instructions behind a branch that was taken.
    Fetch,
}

impl Stall {
    pub const ALL: [Stall; 13] = [
        Stall::MatrixUnit,
        Stall::MatrixResult,
        Stall::VectorUnit,
        Stall::Result,
        Stall::Arbitration,
        Stall::LdsQueue,
        Stall::MemoryQueue,
        Stall::CounterFull,
        Stall::VectorWait,
        Stall::LdsWait,
        Stall::Barrier,
        Stall::Nop,
        Stall::Fetch,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Stall::MatrixResult => "matrix result",
            Stall::Result => "result",
            Stall::MatrixUnit => "matrix unit busy",
            Stall::VectorUnit => "vector unit busy",
            Stall::Arbitration => "other wave issued",
            Stall::LdsQueue => "LDS queue full",
            Stall::MemoryQueue => "memory queue full",
            Stall::CounterFull => "counter full",
            Stall::VectorWait => "vmcnt wait",
            Stall::LdsWait => "lgkmcnt wait",
            Stall::Barrier => "barrier",
            Stall::Nop => "s_nop",
            Stall::Fetch => "branch",
        }
    }
}

impl fmt::Display for Stall {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

/// Cycles by reason.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stalls([u64; Stall::ALL.len()]);

impl Stalls {
    pub fn add(&mut self, stall: Stall, cycles: u64) {
        self.0[stall as usize] += cycles;
    }

    pub fn of(&self, stall: Stall) -> u64 {
        self.0[stall as usize]
    }

    pub fn merge(&mut self, other: &Stalls) {
        for (mine, theirs) in self.0.iter_mut().zip(other.0) {
            *mine += theirs;
        }
    }

    pub fn total(&self) -> u64 {
        self.0.iter().sum()
    }

    /// The reason with most cycles.
    pub fn most(&self) -> Option<Stall> {
        let found = Stall::ALL.into_iter().filter(|stall| self.of(*stall) > 0);
        found.rev().max_by_key(|stall| self.of(*stall))
    }

    /// Reasons with their cycles, most first.
    pub fn sorted(&self) -> Vec<(Stall, u64)> {
        let all = Stall::ALL.into_iter().map(|stall| (stall, self.of(stall)));
        let mut list: Vec<(Stall, u64)> = all.filter(|(_, cycles)| *cycles > 0).collect();
        list.sort_by_key(|(_, cycles)| std::cmp::Reverse(*cycles));
        list
    }
}
