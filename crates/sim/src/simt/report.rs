//! What the simulator found: the kinds of findings, their places, and how they are collected.

use std::fmt;

use rustc_hash::FxHashMap;
use tilewright_ir::{Code, Diagnostic, Span};

use super::SimtOptions;
use crate::error::codes;

/// Something wrong with the program, found by running it.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Finding {
    pub kind: FindingKind,
    /// One line: what happened, the first time.
    pub message: String,
    /// The operation at which it was noticed.
    pub place: FindingPlace,
    /// The other operation of a race; the places where warps wait of a deadlock.
    pub others: Vec<FindingPlace>,
    /// How often it happened at these statements, over all blocks.
    pub count: u64,
}

/// An operation of one thread at one moment.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FindingPlace {
    pub span: Span,
    /// The operation, in a word or two.
    pub what: String,
    /// The block's index along each grid axis.
    pub block: Vec<u64>,
    /// The thread's number in the block; `None` where a whole warp is meant.
    pub thread: Option<u32>,
    pub warp: u32,
    /// The indices of the loops around it, outermost first.
    pub iteration: Vec<(String, i64)>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum FindingKind {
    /// Two threads write different values to one byte, and nothing orders them.
    WriteWriteRace,
    /// One thread reads what another one writes, and nothing orders them.
    ReadWriteRace,
    /// Two lanes of a warp touch one byte of shared memory, one of them writes it, and no warp
    /// barrier orders them.
    RaceInWarp,
    /// Lanes of one instruction write different values to one byte.
    LaneConflict,
    /// Memory or a register is touched while an asynchronous operation on it is under way.
    NotWaitedFor,
    /// A product of a warp group that may not see what was written: no fence hands it over.
    MissingFence,
    /// A read of what nothing wrote.
    Uninitialised,
    /// An access outside a buffer.
    OutOfBounds,
    /// A vector access at an address that is not a multiple of its width, or whose elements
    /// are not next to each other.
    Misaligned,
    /// Lanes of a direct-to-LDS copy that do not land one after another.
    LdsDestination,
    /// A barrier in divergent control flow.
    DivergentBarrier,
    /// A shuffle, vote or matrix instruction without all lanes of the warp.
    DivergentCollective,
    /// Some warps end while others wait at a barrier of the whole block.
    BarrierNotReached,
    /// Arrivals and counts of a barrier that do not match, or a barrier never initialised.
    BarrierMisuse,
    /// Every warp that has not ended waits for something that no one will do.
    Deadlock,
    /// An `assert` whose condition is false.
    Assertion,
    /// An `assume` whose condition is false.
    Assumption,
    /// An operation without a result: division by zero, a shift past the width, a loop that
    /// does not advance.
    Undefined,
    /// Metadata of a sparse factor that does not say where its elements are.
    Metadata,
    /// The warp ran longer than the caller allowed.
    StepLimit,
}

/// What helps where threads of one statement meet.
const ONE_STATEMENT: &str = "both are this statement, done by two threads: give each thread elements \
     of its own, update them atomically, or read into other memory first";

impl FindingKind {
    pub const ALL: [FindingKind; 20] = [
        FindingKind::WriteWriteRace,
        FindingKind::ReadWriteRace,
        FindingKind::RaceInWarp,
        FindingKind::LaneConflict,
        FindingKind::NotWaitedFor,
        FindingKind::MissingFence,
        FindingKind::Uninitialised,
        FindingKind::OutOfBounds,
        FindingKind::Misaligned,
        FindingKind::LdsDestination,
        FindingKind::DivergentBarrier,
        FindingKind::DivergentCollective,
        FindingKind::BarrierNotReached,
        FindingKind::BarrierMisuse,
        FindingKind::Deadlock,
        FindingKind::Assertion,
        FindingKind::Assumption,
        FindingKind::Undefined,
        FindingKind::Metadata,
        FindingKind::StepLimit,
    ];

    /// The stable name of the diagnostic.
    pub const fn code(self) -> Code {
        match self {
            FindingKind::WriteWriteRace => Code("race-write-write"),
            FindingKind::ReadWriteRace => Code("race-read-write"),
            FindingKind::RaceInWarp => Code("race-in-warp"),
            FindingKind::LaneConflict => Code("lane-conflict"),
            FindingKind::NotWaitedFor => Code("not-waited-for"),
            FindingKind::MissingFence => Code("missing-fence"),
            FindingKind::Uninitialised => codes::UNINITIALISED,
            FindingKind::OutOfBounds => codes::OUT_OF_BOUNDS,
            FindingKind::Misaligned => Code("misaligned-access"),
            FindingKind::LdsDestination => Code("lds-destination"),
            FindingKind::DivergentBarrier => codes::DIVERGENT_BARRIER,
            FindingKind::DivergentCollective => codes::DIVERGENT_COLLECTIVE,
            FindingKind::BarrierNotReached => Code("barrier-not-reached"),
            FindingKind::BarrierMisuse => Code("barrier-misuse"),
            FindingKind::Deadlock => codes::DEADLOCK,
            FindingKind::Assertion => codes::ASSERTION,
            FindingKind::Assumption => codes::ASSUMPTION,
            FindingKind::Undefined => Code("undefined-operation"),
            FindingKind::Metadata => codes::METADATA,
            FindingKind::StepLimit => codes::STEP_LIMIT,
        }
    }

    const fn is_race(self) -> bool {
        matches!(
            self,
            FindingKind::WriteWriteRace | FindingKind::ReadWriteRace | FindingKind::RaceInWarp
        )
    }

    const fn help(self) -> Option<&'static str> {
        Some(match self {
            FindingKind::WriteWriteRace | FindingKind::ReadWriteRace => {
                "a block barrier between the two, reached by all threads, would order them"
            }
            FindingKind::RaceInWarp => "`sync_warp` between the two would order them",
            FindingKind::MissingFence => "a fence between the write and this, before the barrier",
            FindingKind::NotWaitedFor => "wait for the operation's counter before this",
            FindingKind::OutOfBounds => "guard the access with a condition",
            FindingKind::DivergentBarrier | FindingKind::DivergentCollective => {
                "move it to where all threads of the warp come by"
            }
            FindingKind::StepLimit => codes::STEP_LIMIT_HELP,
            _ => return None,
        })
    }
}

impl fmt::Display for FindingKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(self.code().0)
    }
}

/// `read in store by thread 3 of block (0, 1) at k = 2, i = 0`
impl fmt::Display for FindingPlace {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} by ", self.what)?;
        match self.thread {
            Some(thread) => write!(f, "thread {thread}")?,
            None => write!(f, "warp {}", self.warp)?,
        }
        let block: Vec<String> = self.block.iter().map(u64::to_string).collect();
        write!(f, " of block ({})", block.join(", "))?;
        for (i, (name, value)) in self.iteration.iter().enumerate() {
            let word = if i == 0 { " at" } else { "," };
            write!(f, "{word} {name} = {value}")?;
        }
        Ok(())
    }
}

impl FindingPlace {
    /// Says whether the operation read or wrote, which its name may leave open.
    pub(super) fn doing(mut self, writes: bool) -> FindingPlace {
        let verb = if writes { "write" } else { "read" };
        self.what = format!("{verb} in {}", self.what);
        self
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{}: {}; {}", self.kind, self.message, self.place)?;
        for other in &self.others {
            write!(f, "; {other}")?;
        }
        if self.count > 1 {
            write!(f, " ({} times)", self.count)?;
        }
        Ok(())
    }
}

impl Finding {
    pub fn to_diagnostic(&self) -> Diagnostic {
        let mut d = Diagnostic::error(self.kind.code(), self.place.span, &self.message)
            .label(self.place.to_string());
        for other in &self.others {
            d = d.also(other.span, other.to_string());
        }
        if self.count > 1 {
            d = d.note(format!("it happened {} times at these places", self.count));
        }
        // No barrier can stand between the threads of one statement.
        let same =
            |o: &FindingPlace| o.span == self.place.span && o.iteration == self.place.iteration;
        let one = self.kind.is_race() && !self.others.is_empty() && self.others.iter().all(same);
        match self.kind.help() {
            _ if one => d.help(ONE_STATEMENT),
            Some(help) => d.help(help),
            None => d,
        }
    }
}

/// Findings without repetition, up to a number.
#[derive(Debug)]
pub(super) struct Collector {
    list: Vec<Finding>,
    known: FxHashMap<Key, usize>,
    max: usize,
    first_only: bool,
    /// Findings at new places after the list was full.
    pub dropped: u64,
}

/// What makes two findings one: the kind and the statements, in whichever order they came.
type Key = (FindingKind, u32, u32);

fn key(kind: FindingKind, stmt: u32, other: u32) -> Key {
    (kind, stmt.min(other), stmt.max(other))
}

impl Collector {
    pub fn new(max: usize) -> Collector {
        Collector {
            list: Vec::new(),
            known: FxHashMap::default(),
            max,
            first_only: false,
            dropped: 0,
        }
    }

    /// One for which the first finding is enough.
    pub fn of(opts: &SimtOptions<'_>) -> Collector {
        let mut collector = Collector::new(opts.max_reports);
        collector.first_only = opts.first_only;
        collector
    }

    /// Whether nothing more is to be looked for.
    pub fn is_enough(&self) -> bool {
        self.first_only && (!self.list.is_empty() || self.dropped > 0)
    }

    /// Counts a finding at these statements where it is known already, or where there is no
    /// room for a new one. A finding at a single statement repeats it.
    pub fn known(&mut self, kind: FindingKind, stmt: u32, other: u32) -> bool {
        match self.known.get(&key(kind, stmt, other)) {
            Some(&at) => self.list[at].count += 1,
            None if self.list.len() >= self.max => self.dropped += 1,
            None => return false,
        }
        true
    }

    /// Whether something of this kind was found.
    pub fn has(&self, kind: FindingKind) -> bool {
        self.list.iter().any(|f| f.kind == kind)
    }

    /// Adds a finding that [`Collector::known`] did not know.
    pub fn add(&mut self, stmt: u32, other: u32, finding: Finding) {
        let key = key(finding.kind, stmt, other);
        self.known.insert(key, self.list.len());
        self.list.push(finding);
    }

    /// Takes in the findings of another block.
    pub fn absorb(&mut self, other: Collector) {
        let mut keys: Vec<(Key, usize)> = other.known.into_iter().collect();
        keys.sort_unstable_by_key(|&(_, at)| at);
        let mut list: Vec<Option<Finding>> = other.list.into_iter().map(Some).collect();
        for (key, at) in keys {
            let Some(finding) = list.get_mut(at).and_then(Option::take) else {
                continue;
            };
            match self.known.get(&key) {
                Some(&mine) => self.list[mine].count += finding.count,
                None if self.list.len() >= self.max => self.dropped += finding.count,
                None => {
                    self.known.insert(key, self.list.len());
                    self.list.push(finding);
                }
            }
        }
        self.dropped += other.dropped;
    }

    /// The findings, and how many were left out.
    pub fn finish(self) -> (Vec<Finding>, u64) {
        (self.list, self.dropped)
    }
}
