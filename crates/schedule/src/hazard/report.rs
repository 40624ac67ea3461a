//! What the checker says: hazards, and what it could not decide.

use std::fmt;

use tilewright_ir::{Code, Diagnostic, Diagnostics, Span};

/// The outcome of a check.
#[derive(Clone, Debug, Default)]
pub struct HazardReport {
    /// Each pair of statements once, in the order in which they were found.
    pub hazards: Vec<Hazard>,
    /// Whether every way through the program was looked at. Hazards are real findings of the
    /// model even when this is false; their absence then means nothing.
    pub proved: bool,
    /// What was not decided, each reason once.
    pub reasons: Vec<Reason>,
    /// How many runs of the program it took: trip counts and conditions that are unknown are
    /// tried in turn.
    pub runs: usize,
}

impl HazardReport {
    /// Whether the program is proved free of hazards.
    pub fn is_clean(&self) -> bool {
        self.hazards.is_empty() && self.proved
    }

    /// Hazards as errors, undecided matters as warnings.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut all = Diagnostics::new();
        all.extend(self.hazards.iter().map(Hazard::to_diagnostic));
        all.extend(self.reasons.iter().map(Reason::to_diagnostic));
        all
    }
}

/// Why something stayed undecided.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Reason {
    pub span: Span,
    pub text: String,
}

impl Reason {
    pub fn to_diagnostic(&self) -> Diagnostic {
        let message = format!("the schedule is not proved free of hazards: {}", self.text);
        Diagnostic::warning(Code("hazard-unproved"), self.span, message)
    }
}

/// Two operations that nothing orders, or one that comes too early.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Hazard {
    pub kind: HazardKind,
    /// The earlier operation in program order.
    pub first: Party,
    /// The later one; the same as `first` where a single statement is at fault.
    pub second: Party,
    /// The buffer that both touch; empty for barriers.
    pub buffer: String,
    /// The buffer that the other operation touches, where it lies over the first.
    pub over: Option<String>,
    /// Its version, where it has several and the index is known.
    pub slot: Option<i64>,
    /// How many iterations of the innermost common loop lie between the two.
    pub distance: Option<i64>,
    /// What would order them.
    pub help: String,
}

/// One of the two operations.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Party {
    pub span: Span,
    /// The statement in text form, its first line.
    pub text: String,
    /// The group of waves that runs it; `None` where all waves go together.
    pub group: Option<u32>,
    /// The indices of the loops around it, outermost first.
    pub iteration: Vec<(String, i64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum HazardKind {
    /// A read that may come before the write it needs.
    ReadAfterWrite,
    /// A write that may come before a read of what it overwrites.
    WriteAfterRead,
    /// Two writes in no order.
    WriteAfterWrite,
    /// A read of what a write to another buffer at the same place has replaced.
    Overwritten,
    /// A register read or written while an asynchronous load into it is under way.
    RegisterBeforeWait,
    /// A product of a warp group that may not see what was written: no fence hands it over.
    MissingFence,
    /// A barrier that some threads of a warp, or some warps, do not come to.
    DivergentBarrier,
    /// Arrivals, bytes or waits of an arrival barrier that may be taken for those of another phase,
    /// or that nobody waits for.
    Phase,
    /// A bulk store that may not have read shared memory when the kernel ends.
    EndsBefore,
    /// Waves that wait for each other for ever.
    Deadlock,
    /// A read of a version of a buffer that nothing has written.
    UnwrittenVersion,
    /// A read of what was written for another iteration of a pipelined loop.
    OtherIteration,
}

impl HazardKind {
    pub const ALL: [HazardKind; 12] = [
        HazardKind::ReadAfterWrite,
        HazardKind::WriteAfterRead,
        HazardKind::WriteAfterWrite,
        HazardKind::Overwritten,
        HazardKind::RegisterBeforeWait,
        HazardKind::MissingFence,
        HazardKind::DivergentBarrier,
        HazardKind::Phase,
        HazardKind::EndsBefore,
        HazardKind::Deadlock,
        HazardKind::UnwrittenVersion,
        HazardKind::OtherIteration,
    ];

    /// The stable name of the diagnostic.
    pub const fn code(self) -> Code {
        match self {
            HazardKind::ReadAfterWrite => Code("hazard-raw"),
            HazardKind::WriteAfterRead => Code("hazard-war"),
            HazardKind::WriteAfterWrite => Code("hazard-waw"),
            HazardKind::Overwritten => Code("hazard-overwritten"),
            HazardKind::RegisterBeforeWait => Code("hazard-register"),
            HazardKind::MissingFence => Code("hazard-fence"),
            HazardKind::DivergentBarrier => Code("hazard-divergent-barrier"),
            HazardKind::Phase => Code("hazard-phase"),
            HazardKind::EndsBefore => Code("hazard-end"),
            HazardKind::Deadlock => Code("hazard-deadlock"),
            HazardKind::UnwrittenVersion => Code("hazard-unwritten-version"),
            HazardKind::OtherIteration => Code("hazard-other-iteration"),
        }
    }
}

impl fmt::Display for HazardKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(match self {
            HazardKind::ReadAfterWrite => "RAW",
            HazardKind::WriteAfterRead => "WAR",
            HazardKind::WriteAfterWrite => "WAW",
            HazardKind::Overwritten => "read of overwritten data",
            HazardKind::RegisterBeforeWait => "register use before wait",
            HazardKind::MissingFence => "missing fence",
            HazardKind::DivergentBarrier => "divergent barrier",
            HazardKind::Phase => "phase of an arrival barrier",
            HazardKind::EndsBefore => "kernel that ends before a bulk store",
            HazardKind::Deadlock => "deadlock",
            HazardKind::UnwrittenVersion => "read of an unwritten version",
            HazardKind::OtherIteration => "read of another iteration's data",
        })
    }
}

/// ``group 1, k = 2: `g2s …` ``
impl fmt::Display for Party {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let mut parts = Vec::new();
        if let Some(group) = self.group {
            parts.push(format!("group {group}"));
        }
        parts.extend(self.iteration.iter().map(|(n, v)| format!("{n} = {v}")));
        if !parts.is_empty() {
            write!(f, "{}: ", parts.join(", "))?;
        }
        write!(f, "`{}`", self.text)
    }
}

/// ``RAW on `B` slot 1, 1 iteration apart: … then …; wait vmcnt(4) …``
impl fmt::Display for Hazard {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}; {}", self.headline(), self.first)?;
        if self.second != self.first {
            write!(f, "; then {}", self.second)?;
        }
        write!(f, "; {}", self.help)
    }
}

impl Hazard {
    fn headline(&self) -> String {
        let mut text = self.kind.to_string();
        if !self.buffer.is_empty() {
            text += &format!(" on `{}`", self.buffer);
        }
        if let Some(slot) = self.slot {
            text += &format!(" slot {slot}");
        }
        if let Some(over) = &self.over {
            text += &format!(", at the same place as `{over}`");
        }
        match self.distance {
            None | Some(0) => {}
            Some(1) => text += ", 1 iteration apart",
            Some(n) => text += &format!(", {n} iterations apart"),
        }
        text
    }

    /// An error at the later operation that points at the earlier one.
    pub fn to_diagnostic(&self) -> Diagnostic {
        let mut d = Diagnostic::error(self.kind.code(), self.second.span, self.headline())
            .label(self.second.to_string());
        if self.first != self.second {
            d = d.also(self.first.span, self.first.to_string());
        }
        d.help(&self.help)
    }
}
