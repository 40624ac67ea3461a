//! Does the compiled code do what the schedule said, and nothing that costs time besides?
//!
//! [`audit`] finds a kernel's hot loop in its assembly and compares it with an [`Expectation`].
//! Each thing that is not as expected is a [`Finding`] with the line it stands on:
//!
//! - waits and barriers must be the schedule's, in its order (`steps`); for loads that it leaves
//!   to the compiler, the compiler may wait besides ([`OwnWaits`]);
//! - between its barriers and priorities are the schedule's matrix instructions (`clusters`);
//! - waits, barriers, copies and priorities of the whole kernel are the schedule's on every way
//!   (`plan`);
//! - no LDS access is under way at a barrier (`drained`), in the whole kernel;
//! - every register that a load fills must be waited for before it is used (`pending`), in the
//!   whole kernel: inline assembly can hide a load from the compiler;
//! - between any two instructions lie the wait states that the machine asks for (`hazard`), on all
//!   ways: the compiler keeps them, but not around inline assembly;
//! - no register that the kernel has by number is written by the compiler (`cost`);
//! - no fence that the kernel did not ask for, no spills, no scratch, no `v_accvgpr` moves, no matrix instructions of half rate, not more
//!   registers than the occupancy allows, not more per-lane address arithmetic and
//!   `v_readfirstlane` than was said (`cost`).
//!
//! The audit reads; it never changes an expectation to fit the code.

mod bits;
mod clusters;
mod cost;
mod drained;
mod flow;
mod hazard;
mod pending;
mod plan;
mod steps;

use std::collections::BTreeMap;
use std::fmt;

pub use clusters::Mark;
pub use plan::{Event, Plan};

use crate::asm::blocks::Blocks;
use crate::asm::{Function, Instruction, Loop, Wait};

/// What the schedule says of the hot loop, a wave's view.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Expectation {
    /// The loop's waits and barriers in order. Where it also lists copies and reads, these must
    /// stand between the same waits: a counted wait means something only behind what it counts.
    pub steps: Vec<Step>,
    /// The loop's barriers, priorities and matrix instructions in order.
    pub clusters: Vec<Mark>,
    /// Matrix instructions by mnemonic. Others than these must not be in the loop.
    pub mfma: BTreeMap<String, u32>,
    /// Some results are stored under conditions, so that the compiler may find products that
    /// nothing reads, and leave them out: fewer matrix instructions are no finding.
    pub unread_products: bool,
    /// `buffer_load … lds`, where the number is known.
    pub lds_copies: Option<u32>,
    /// `ds_read…`, where the number is known.
    pub lds_reads: Option<u32>,
    /// Most vector registers, accumulation registers included; see [`vgprs_at`].
    pub vgprs: Option<u32>,
    /// Accumulation registers from `a0` on that the kernel's text names: no instruction of the compiler's
    /// own may write one.
    pub numbered: u16,
    /// Most vector instructions in the loop that compute lanes' addresses.
    pub address_arithmetic: u32,
    /// Most `v_readfirstlane` and `v_readlane` in the loop.
    pub lane_reads: u32,
    /// The loop may use the matrix forms that run at half rate on gfx950: its K is too small
    /// for the others.
    pub half_rate: bool,
    /// Waits that the compiler may add.
    pub own_waits: OwnWaits,
    /// The code has no loop that is one turn of the schedule's, or nobody knows what a turn waits for:
    /// steps and counts of the hot loop are not compared.
    pub reshaped: bool,
    /// The ways through the whole kernel, and the state that they end in.
    pub plan: Option<(Plan, usize)>,
    /// At every barrier all LDS accesses of the wave are complete.
    pub drained: bool,
    /// The kernel has no fence of more than the block, so that its code must have none.
    pub no_fences: bool,
}

/// The counters that the compiler may wait for by itself, because the loop has loads that the
/// schedule does not count. Its waits may then stand between the schedule's, and may be stricter.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct OwnWaits {
    pub vmcnt: bool,
    pub lgkmcnt: bool,
}

impl OwnWaits {
    pub fn any(self) -> bool {
        self.vmcnt || self.lgkmcnt
    }
}

/// One step of a wave through the loop.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Step {
    Wait(Wait),
    Barrier,
    /// This many copies to LDS are issued.
    Copies(u32),
    /// This many LDS reads are issued.
    Reads(u32),
}

/// What was found.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Report {
    /// The hot loop, as lines of the file; none where the kernel has no loop.
    pub lines: Option<(u32, u32)>,
    pub steps: Vec<Step>,
    pub mfma: BTreeMap<String, u32>,
    pub lds_copies: u32,
    pub lds_reads: u32,
    pub vgprs: u32,
    pub address_arithmetic: u32,
    pub lane_reads: u32,
    /// Why the waits and barriers of the whole kernel were not compared, where they were not.
    pub unplanned: Option<&'static str>,
    pub findings: Vec<Finding>,
}

/// One thing that is not as it should be.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub kind: Kind,
    /// The line of the assembly file; 0 where it is the kernel as a whole.
    pub line: u32,
    /// The instruction on that line.
    pub text: String,
    /// What is wrong with it.
    pub reason: String,
    /// Which rule of its kind was broken, where the reason names what broke it besides.
    pub rule: Option<&'static str>,
}

/// Which rule was broken.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Kind {
    /// A wait that the schedule did not ask for.
    ExtraWait,
    /// A wait of the schedule that is not there.
    MissingWait,
    /// A wait for all that the schedule's is for, and more.
    StricterWait,
    /// A wait for less than the schedule's.
    WrongWait,
    ExtraBarrier,
    MissingBarrier,
    /// Copies or reads on the other side of a wait or a barrier.
    MovedWork,
    /// Matrix instructions in another cluster than the schedule's.
    MovedProduct,
    /// A register that a load may still be filling is used.
    Pending,
    /// A barrier with an LDS access under way.
    Undrained,
    /// A fence that the kernel did not ask for.
    ExtraFence,
    /// The compiler writes a register that the kernel's text has by number.
    Clobbered,
    /// Too few wait states between two instructions.
    Hazard,
    Count,
    Scratch,
    Spill,
    AccumulatorMove,
    HalfRate,
    AddressArithmetic,
    LaneRead,
    Registers,
    /// The kernel has no hot loop, or no metadata.
    Shape,
}

impl Kind {
    /// Whether it takes time or registers and nothing else: what the kernel computes is not in
    /// doubt.
    pub fn is_cost(self) -> bool {
        match self {
            Self::ExtraWait
            | Self::StricterWait
            | Self::MovedProduct
            | Self::ExtraFence
            | Self::Scratch
            | Self::Spill
            | Self::AccumulatorMove
            | Self::HalfRate
            | Self::AddressArithmetic
            | Self::LaneRead
            | Self::Registers => true,
            Self::MissingWait
            | Self::WrongWait
            | Self::ExtraBarrier
            | Self::MissingBarrier
            | Self::MovedWork
            | Self::Pending
            | Self::Undrained
            | Self::Clobbered
            | Self::Hazard
            | Self::Count
            | Self::Shape => false,
        }
    }
}

impl Report {
    pub fn passed(&self) -> bool {
        self.findings.is_empty()
    }

    pub fn has(&self, kind: Kind) -> bool {
        self.findings.iter().any(|f| f.kind == kind)
    }

    /// The findings, instructions that break the same rule together: a kernel that spills has hundreds.
    pub fn alike(&self) -> Vec<Vec<&Finding>> {
        let mut groups: Vec<Vec<&Finding>> = Vec::new();
        for finding in &self.findings {
            let like = |g: &&mut Vec<&Finding>| {
                finding.line > 0 && g[0].line > 0 && g[0].broken() == finding.broken()
            };
            match groups.iter_mut().find(like) {
                Some(group) => group.push(finding),
                None => groups.push(vec![finding]),
            }
        }
        groups
    }
}

impl Finding {
    fn of_rule(self, rule: &'static str) -> Self {
        Self {
            rule: Some(rule),
            ..self
        }
    }

    /// The rule that was broken.
    fn broken(&self) -> (Kind, &str) {
        (self.kind, self.rule.unwrap_or(&self.reason))
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.line {
            0 => f.write_str(&self.reason),
            line => write!(f, "line {line}: `{}`: {}", self.text, self.reason),
        }
    }
}

/// The loop in one line, then each finding.
impl fmt::Display for Report {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.lines {
            Some((first, last)) => write!(f, "hot loop, lines {first} to {last}:")?,
            None => write!(f, "no loop:")?,
        }
        for step in &self.steps {
            write!(f, " {step}")?;
        }
        for (name, count) in &self.mfma {
            write!(f, "; {count} {name}")?;
        }
        write!(
            f,
            "; {} VGPRs, {} address instructions, {} lane reads",
            self.vgprs, self.address_arithmetic, self.lane_reads
        )?;
        for finding in &self.findings {
            write!(f, "\n  {finding}")?;
        }
        Ok(())
    }
}

impl fmt::Display for Step {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Wait(wait) => write!(f, "[{wait}]"),
            Self::Barrier => write!(f, "barrier"),
            Self::Copies(count) => write!(f, "{count} copies"),
            Self::Reads(count) => write!(f, "{count} reads"),
        }
    }
}

/// The vector registers that each of `waves` waves of one SIMD may have: 512 are shared, in
/// pieces of eight.
pub fn vgprs_at(waves: u32) -> u32 {
    512 / waves.max(1) / 8 * 8
}

/// Compares a compiled kernel with what its schedule expects. `arch` is `gfx942` or `gfx950`.
pub fn audit(kernel: &Function, arch: &str, expected: &Expectation) -> Report {
    let mut report = Report::default();
    let blocks = Blocks::of(kernel);
    pending::check(kernel, &blocks, &mut report.findings);
    hazard::check(kernel, &blocks, arch == "gfx950", &mut report.findings);
    match &expected.plan {
        Some((plan, end)) => {
            let checked = plan::check(kernel, &blocks, plan, *end, &mut report.findings);
            report.unplanned = checked.err();
        }
        None => report.unplanned = Some("the schedule says nothing of it"),
    }
    if expected.drained {
        drained::check(kernel, &blocks, &mut report.findings);
    }
    cost::check_kernel(kernel, expected, &mut report);
    match kernel.hot_loop_among(&blocks) {
        Some(hot) => check_loop(kernel, &hot, arch, expected, &mut report),
        None if expected.reshaped => {}
        None if expected.steps.is_empty() && expected.mfma.is_empty() => {}
        None => report.findings.push(Finding {
            kind: Kind::Shape,
            line: 0,
            text: String::new(),
            reason: format!("kernel `{}` has no loop", kernel.name),
            rule: None,
        }),
    }
    report.findings.sort_by_key(|finding| finding.line);
    report
}

fn check_loop(
    kernel: &Function,
    hot: &Loop,
    arch: &str,
    expected: &Expectation,
    report: &mut Report,
) {
    let body = hot.body(kernel);
    let lines = || body.iter().map(|instruction| instruction.line);
    report.lines = lines().min().zip(lines().max());
    for instruction in &body {
        if instruction.is_mfma() {
            let name = instruction.op.name().to_owned();
            *report.mfma.entry(name).or_default() += 1;
        }
        report.lds_copies += u32::from(instruction.is_lds_copy());
        report.lds_reads += u32::from(instruction.is_lds_read());
    }
    steps::check(&body, expected, report);
    clusters::check(&body, expected, &mut report.findings);
    cost::check_loop(&body, arch, expected, report);
}

fn finding(kind: Kind, at: &Instruction, reason: impl Into<String>) -> Finding {
    Finding {
        kind,
        line: at.line,
        text: at.text.to_string(),
        reason: reason.into(),
        rule: None,
    }
}
