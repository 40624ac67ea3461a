//! What a run finds, each with the instruction it is about.

use std::fmt;

use rustc_hash::FxHashSet;

use crate::asm::{Function, Place};

/// Which rule was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    /// Two accesses of one place, one of them a write, that nothing orders.
    Race,
    /// Two blocks touch one place, one of them writes.
    BlockRace,
    /// Lanes of one instruction write different values to one place.
    LaneConflict,
    /// A register is used while a memory operation still works on it.
    Pending,
    /// Memory is read that nothing has written.
    Unwritten,
    OutOfBounds,
    /// Waves wait for each other for ever.
    Deadlock,
    /// It took more steps than it may.
    Endless,
    /// What is noted of it takes more memory than there is.
    OutOfMemory,
    /// An instruction could not be run.
    Fault,
}

/// One thing that is wrong.
#[derive(Clone, Debug, PartialEq, Eq, PartialOrd, Ord)]
pub struct Finding {
    pub kind: Kind,
    /// The instruction's index in its function.
    pub at: usize,
    /// The other instruction of a race, the load of a register under way.
    pub other: Option<usize>,
    pub block: u32,
    pub wave: u32,
    pub reason: String,
}

/// The findings of a run, each pair of instructions once.
#[derive(Clone, Debug, Default)]
pub struct Findings {
    list: Vec<Finding>,
    seen: FxHashSet<(Kind, usize, Option<usize>)>,
}

impl Findings {
    pub fn push(&mut self, finding: Finding) {
        if self.seen.insert((finding.kind, finding.at, finding.other)) {
            self.list.push(finding);
        }
    }

    pub fn extend(&mut self, other: Findings) {
        for finding in other.list {
            self.push(finding);
        }
    }

    /// In the order of the instructions.
    pub fn sorted(mut self) -> Vec<Finding> {
        self.list.sort_unstable_by_key(|f| (f.at, f.other, f.kind));
        self.list
    }
}

impl Kind {
    pub fn name(self) -> &'static str {
        match self {
            Self::Race => "race",
            Self::BlockRace => "block-race",
            Self::LaneConflict => "lane-conflict",
            Self::Pending => "pending-register",
            Self::Unwritten => "unwritten",
            Self::OutOfBounds => "out-of-bounds",
            Self::Deadlock => "deadlock",
            Self::Endless => "endless",
            Self::OutOfMemory => "out-of-memory",
            Self::Fault => "fault",
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.name())
    }
}

impl Finding {
    /// The finding with its instructions as they are written.
    pub fn show(&self, function: &Function) -> String {
        let text = |at: usize| match function.instructions.get(at) {
            Some(instruction) => format!("line {}: `{}`", instruction.line, instruction.text),
            None => "the end of the kernel".to_owned(),
        };
        let mut shown = format!("{}: {}: {}", self.kind, text(self.at), self.reason);
        if let Some(other) = self.other {
            shown += &format!("; the other is {}", text(other));
        }
        shown + &format!(" (block {}, wave {})", self.block, self.wave)
    }

    /// The place in the source that the instruction comes from.
    pub fn place(&self, function: &Function) -> Option<Place> {
        function.instructions.get(self.at)?.place
    }
}
