//! What a run did: instructions by kind, shared-memory transactions, bank conflicts.
//!
//! An instruction is counted once for each warp that executes it, whatever lanes are active.

use std::fmt;
use std::ops::AddAssign;

use tilewright_ir::Span;
use tilewright_layout::banks::Cost;

/// Counts of a statement or of everything.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub struct Counts {
    instructions: [u64; InstKind::ALL.len()],
    /// Times that the banks of shared memory served a group of lanes.
    pub shared_transactions: u64,
    /// The part of them that would not be needed if no two lanes met in a bank.
    pub bank_conflicts: u64,
}

/// Counts of one statement.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StmtCounts {
    pub span: Span,
    /// The operation, in a word or two.
    pub what: String,
    pub counts: Counts,
}

/// What an instruction does, as far as counting goes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum InstKind {
    GlobalLoad,
    GlobalStore,
    SharedLoad,
    SharedStore,
    /// Global to shared without registers.
    AsyncCopy,
    /// `ldmatrix`, and loads that transpose.
    MatrixLoad,
    MatrixStore,
    Mma,
    Shuffle,
    Vote,
    Atomic,
    Barrier,
    Wait,
}

impl InstKind {
    pub const ALL: [InstKind; 13] = [
        InstKind::GlobalLoad,
        InstKind::GlobalStore,
        InstKind::SharedLoad,
        InstKind::SharedStore,
        InstKind::AsyncCopy,
        InstKind::MatrixLoad,
        InstKind::MatrixStore,
        InstKind::Mma,
        InstKind::Shuffle,
        InstKind::Vote,
        InstKind::Atomic,
        InstKind::Barrier,
        InstKind::Wait,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            InstKind::GlobalLoad => "global loads",
            InstKind::GlobalStore => "global stores",
            InstKind::SharedLoad => "shared loads",
            InstKind::SharedStore => "shared stores",
            InstKind::AsyncCopy => "asynchronous copies",
            InstKind::MatrixLoad => "matrix loads",
            InstKind::MatrixStore => "matrix stores",
            InstKind::Mma => "matrix products",
            InstKind::Shuffle => "shuffles",
            InstKind::Vote => "votes",
            InstKind::Atomic => "atomics",
            InstKind::Barrier => "barriers",
            InstKind::Wait => "waits",
        }
    }
}

impl Counts {
    pub fn instructions(&self, kind: InstKind) -> u64 {
        self.instructions[kind as usize]
    }

    pub(super) fn add_cost(&mut self, cost: Cost) {
        self.shared_transactions += u64::from(cost.cycles);
        self.bank_conflicts += u64::from(cost.conflicts());
    }

    pub(super) fn count(&mut self, kind: InstKind) {
        self.instructions[kind as usize] += 1;
    }
}

impl AddAssign for Counts {
    fn add_assign(&mut self, other: Counts) {
        for (mine, theirs) in self.instructions.iter_mut().zip(other.instructions) {
            *mine += theirs;
        }
        self.shared_transactions += other.shared_transactions;
        self.bank_conflicts += other.bank_conflicts;
    }
}

/// One line a kind that occurred.
impl fmt::Display for Counts {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        for kind in InstKind::ALL {
            match self.instructions(kind) {
                0 => {}
                n => writeln!(f, "{:>12} {}", n, kind.name())?,
            }
        }
        writeln!(f, "{:>12} shared transactions", self.shared_transactions)?;
        write!(f, "{:>12} of them bank conflicts", self.bank_conflicts)
    }
}
