//! Waits and barriers of the loop against the schedule's.
//!
//! Each counter is compared by itself, with the barriers and with the work that it counts: the
//! compiler merges and splits waits for different counters, and waits for one stay as they are. A
//! loop may be laid out with another first block than the schedule's, so the steps are compared as
//! a ring: the turn that agrees best is the one that is reported.
//!
//! Where the compiler has loads of its own to wait for, its waits stand between the schedule's.
//! Then the schedule's waits for that counter must all be there, in their order and between the
//! same barriers and as many copies, at least as strict; for a counter that the compiler has nothing to
//! wait for, nothing else may be there.

use crate::asm::{Instruction, Wait};

use super::{Expectation, Finding, Kind, OwnWaits, Report, Step, finding};

/// The counters hold no more: who waits for so many to be left waits for nothing, and the compiler writes
/// such a wait as one for all counters.
const MOST_VMCNT: u8 = 63;
const MOST_LGKMCNT: u8 = 15;

/// A step of the code, the instruction it starts with and the one it ends with.
struct Found<'a> {
    step: Step,
    first: &'a Instruction,
    at: &'a Instruction,
}

pub(super) fn check(body: &[&Instruction], expected: &Expectation, report: &mut Report) {
    let all = steps(body, true, true);
    report.steps = merged(&all).iter().map(|found| found.step).collect();
    if expected.reshaped {
        return;
    }

    let copies = expected.steps.iter().any(|s| matches!(s, Step::Copies(_)));
    let reads = expected.steps.iter().any(|s| matches!(s, Step::Reads(_)));
    let all = steps(body, copies, reads);
    each_counter(&all, expected, body, &mut report.findings);
}

/// Compares waits for one counter at a time, with the barriers between them.
fn each_counter(
    all: &[Found<'_>],
    expected: &Expectation,
    body: &[&Instruction],
    findings: &mut Vec<Finding>,
) {
    let OwnWaits { vmcnt, lgkmcnt } = expected.own_waits;
    for (of_vm, lenient) in [(true, vmcnt), (false, lgkmcnt)] {
        let only = |step: Step| match step {
            Step::Wait(w) if of_vm => {
                let asked = w.vmcnt.filter(|n| *n < MOST_VMCNT);
                asked.map(|n| Step::Wait(Wait::vm(n)))
            }
            Step::Wait(w) => {
                let asked = w.lgkmcnt.filter(|n| *n < MOST_LGKMCNT);
                asked.map(|n| Step::Wait(Wait::lgkm(n)))
            }
            Step::Barrier => Some(Step::Barrier),
            Step::Copies(_) => Some(step).filter(|_| of_vm),
            Step::Reads(_) => Some(step).filter(|_| !of_vm),
        };
        let want: Vec<Step> = expected.steps.iter().filter_map(|s| only(*s)).collect();
        let got = all.iter().filter_map(|found| {
            let step = only(found.step)?;
            Some(Found { step, ..*found })
        });
        let got = got.collect::<Vec<_>>();
        // The compiler's own waits stand between copies, too.
        let (want, got) = match lenient {
            true => (one_by_one(&want), got),
            false => (joined(&want), merged(&got)),
        };
        // Where one turn is as it should be, nothing is to be said of the others.
        let as_wanted = |turn: usize| {
            let turned = got[turn..].iter().chain(&got[..turn]);
            fits(&want, turned.map(|found| found.step), lenient)
        };
        if (0..got.len().max(1)).any(as_wanted) {
            continue;
        }
        let turns = (0..got.len().max(1)).map(|turn| {
            let turned: Vec<&Found<'_>> = got[turn..].iter().chain(&got[..turn]).collect();
            compare(&want, &turned, body, lenient)
        });
        let best = turns.min_by_key(Vec::len).unwrap_or_default();
        for finding in best {
            // Barriers are in both comparisons.
            if !findings.contains(&finding) {
                findings.push(finding);
            }
        }
    }
}

/// The steps of a loop body, copies and reads one by one where they are asked for.
fn steps<'a>(body: &[&'a Instruction], copies: bool, reads: bool) -> Vec<Found<'a>> {
    let mut steps = Vec::new();
    for at in body {
        let step = if let Some(wait) = at.wait() {
            // A wait for expcnt alone waits for nothing here.
            if wait.is_none() {
                continue;
            }
            Step::Wait(wait)
        } else if at.is_barrier() {
            Step::Barrier
        } else if copies && at.is_lds_copy() {
            Step::Copies(1)
        } else if reads && at.is_lds_read() {
            Step::Reads(1)
        } else {
            continue;
        };
        steps.push(Found {
            step,
            first: at,
            at,
        });
    }
    steps
}

/// Joins waits with waits for the other counter, copies with copies, reads with reads.
fn merged<'a>(steps: &[Found<'a>]) -> Vec<Found<'a>> {
    let mut merged: Vec<Found<'a>> = Vec::new();
    for Found { step, first, at } in steps {
        if let Some(last) = merged.last_mut()
            && let Some(joint) = join(last.step, *step)
        {
            last.step = joint;
            last.at = at;
            continue;
        }
        merged.push(Found {
            step: *step,
            first,
            at,
        });
    }
    merged
}

/// Copies and reads of a cluster as that many steps.
fn one_by_one(steps: &[Step]) -> Vec<Step> {
    let each = |step: &Step| match *step {
        Step::Copies(count) => vec![Step::Copies(1); count as usize],
        Step::Reads(count) => vec![Step::Reads(1); count as usize],
        step => vec![step],
    };
    steps.iter().flat_map(each).collect()
}

fn joined(steps: &[Step]) -> Vec<Step> {
    let mut joined: Vec<Step> = Vec::new();
    for step in steps {
        match joined.last_mut() {
            Some(last) if join(*last, *step).is_some() => {
                *last = join(*last, *step).unwrap_or(*last);
            }
            _ => joined.push(*step),
        }
    }
    joined
}

fn join(one: Step, other: Step) -> Option<Step> {
    match (one, other) {
        (Step::Wait(a), Step::Wait(b)) => {
            let both = (a.vmcnt.is_some() && b.vmcnt.is_some())
                || (a.lgkmcnt.is_some() && b.lgkmcnt.is_some());
            (!both).then_some(Step::Wait(a.and(b)))
        }
        (Step::Copies(a), Step::Copies(b)) => Some(Step::Copies(a + b)),
        (Step::Reads(a), Step::Reads(b)) => Some(Step::Reads(a + b)),
        _ => None,
    }
}

/// Whether a step of the code does what one of the schedule asks for. A stricter wait does where waits
/// are lenient.
fn serves(want: Step, got: Step, lenient: bool) -> bool {
    match (want, got) {
        (Step::Wait(want), Step::Wait(got)) if lenient => {
            let within = |want: Option<u8>, got: Option<u8>| match (want, got) {
                (Some(want), Some(got)) => got <= want,
                (want, got) => want == got,
            };
            within(want.vmcnt, got.vmcnt) && within(want.lgkmcnt, got.lgkmcnt)
        }
        (want, got) => want == got,
    }
}

/// Whether the steps are the schedule's; where waits are lenient there may be others between them.
fn fits(want: &[Step], got: impl Iterator<Item = Step>, lenient: bool) -> bool {
    let mut want = want.iter().peekable();
    for step in got {
        let next = want.next_if(|want| serves(**want, step, lenient));
        let own = lenient && matches!(step, Step::Wait(_));
        if next.is_none() && !own {
            return false;
        }
    }
    want.peek().is_none()
}

/// The differences, by the longest common subsequence. Where waits are lenient, more of them and
/// stricter ones are no difference.
fn compare(
    want: &[Step],
    got: &[&Found<'_>],
    body: &[&Instruction],
    lenient: bool,
) -> Vec<Finding> {
    let (n, m) = (want.len(), got.len());
    let serves = |want: Step, got: Step| serves(want, got, lenient);
    // common[i][j]: the longest common part of want[i..] and got[j..].
    let mut common = vec![vec![0u32; m + 1]; n + 1];
    for i in (0..n).rev() {
        for j in (0..m).rev() {
            common[i][j] = match serves(want[i], got[j].step) {
                true => common[i + 1][j + 1] + 1,
                false => common[i + 1][j].max(common[i][j + 1]),
            };
        }
    }
    let mut findings = Vec::new();
    let (mut i, mut j) = (0, 0);
    let end = body.last().copied();
    while i < n || j < m {
        let here = i < n && j < m && serves(want[i], got[j].step);
        if here && common[i][j] == common[i + 1][j + 1] + 1 {
            (i, j) = (i + 1, j + 1);
            continue;
        }
        let both = !lenient
            && i < n
            && j < m
            && std::mem::discriminant(&want[i]) == std::mem::discriminant(&got[j].step)
            && common[i + 1][j + 1] == common[i][j];
        if both {
            findings.push(differs(want[i], got[j]));
            (i, j) = (i + 1, j + 1);
        } else if j < m && (i == n || common[i][j + 1] >= common[i + 1][j]) {
            if !lenient || !matches!(got[j].step, Step::Wait(_)) {
                findings.push(extra(got[j]));
            }
            j += 1;
        } else {
            let at = got.get(j).map(|found| found.first).or(end);
            findings.extend(at.map(|at| missing(want[i], at)));
            i += 1;
        }
    }
    findings
}

fn differs(want: Step, got: &Found<'_>) -> Finding {
    let kind = match (want, got.step) {
        (Step::Wait(want), Step::Wait(got)) if got.serves(want) => Kind::StricterWait,
        (_, Step::Wait(_)) => Kind::WrongWait,
        _ => Kind::MovedWork,
    };
    let reason = match (want, got.step) {
        (Step::Wait(want), Step::Wait(got)) => {
            format!("waits for {got} where the schedule asks for {want}")
        }
        (want, got) => format!("here are {got} where the schedule has {want}"),
    };
    finding(kind, got.at, reason)
}

fn extra(got: &Found<'_>) -> Finding {
    match got.step {
        Step::Wait(_) => finding(
            Kind::ExtraWait,
            got.at,
            "a wait that the schedule did not ask for",
        ),
        Step::Barrier => finding(
            Kind::ExtraBarrier,
            got.at,
            "a barrier that the schedule did not ask for",
        ),
        work => finding(
            Kind::MovedWork,
            got.at,
            format!("{work} where the schedule has none"),
        ),
    }
}

fn missing(want: Step, at: &Instruction) -> Finding {
    match want {
        Step::Wait(wait) => finding(
            Kind::MissingWait,
            at,
            format!("before this the schedule waits for {wait}, and the code does not"),
        ),
        Step::Barrier => finding(
            Kind::MissingBarrier,
            at,
            "before this the schedule has a barrier, and the code has none",
        ),
        work => finding(
            Kind::MovedWork,
            at,
            format!("before this the schedule has {work}, and the code has not"),
        ),
    }
}
