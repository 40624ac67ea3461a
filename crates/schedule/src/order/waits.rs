//! The waits: before which place, for which counter, leaving how many in flight.
//!
//! A need whose first op completes by a counter has a last place at which that must have
//! happened: before the barrier that the second op relies on, or before the second op itself.
//! The operations of the counter issued between the first op and that place may stay in flight.
//! All needs with the same place and counter share a wait, at the smallest number. Then each
//! wait, from the last to the first, is loosened to what the needs take that no other wait
//! serves, and goes where there are none.

use tilewright_ir::Counter;

use super::trace::{Instance, Plan, Trace};
use super::{Completion, Step, wait_limit};

/// Sets the waits of all sections.
pub(super) fn derive(plan: &mut Plan<'_>) {
    set(plan);
    if join_groups(plan) {
        set(plan);
    }
}

/// Waits for what may still be in flight at the end: ops that nothing in the loop waits for.
pub(super) fn drain(plan: &Plan<'_>) -> Vec<Step> {
    let mut counters: Vec<Counter> = Vec::new();
    for trace in &plan.traces {
        let table = Table::new(plan, trace);
        let end = trace.sections.len() * plan.order.ops.len();
        for (time, counter) in plan.counted(trace) {
            if !counters.contains(&counter) && !table.done(plan, trace, time, end, counter, None) {
                counters.push(counter);
            }
        }
    }
    counters
        .into_iter()
        .map(|counter| Step::Wait {
            counter,
            at_most: 0,
        })
        .collect()
}

/// Sets the waits for the barriers as they are, and gives them in time, for each trace.
pub(super) fn for_now(plan: &mut Plan<'_>) -> Vec<Table> {
    set(plan);
    let traces = plan.traces.iter();
    traces.map(|trace| Table::new(plan, trace)).collect()
}

/// What the steady iteration waits for at one of its places.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct SteadyWait {
    pub place: usize,
    pub counter: Counter,
    pub at_most: u32,
}

/// The waits that the barriers as they are put into the steady iteration.
pub(super) fn steady_waits(plan: &Plan<'_>) -> Vec<SteadyWait> {
    let all = asked(plan).into_iter();
    let steady = all.filter(|(spot, _)| spot.section == plan.depth);
    steady
        .map(|(spot, at_most)| SteadyWait {
            place: spot.place,
            counter: spot.counter,
            at_most,
        })
        .collect()
}

/// A wait, by its section, its place and its counter.
#[derive(Clone, Copy, PartialEq, Eq)]
struct Spot {
    section: usize,
    place: usize,
    counter: Counter,
}

fn set(plan: &mut Plan<'_>) {
    for section in &mut plan.waits {
        for place in section {
            place.clear();
        }
    }
    let mut found = asked(plan);
    found.sort_by_key(|(spot, _)| (spot.section, spot.place));
    for (spot, at_most) in &found {
        let at_most = (*at_most).min(wait_limit(spot.counter));
        plan.waits[spot.section][spot.place].push((spot.counter, at_most));
    }
    for (spot, _) in found.into_iter().rev() {
        relax(plan, spot);
    }
}

/// The waits that the needs ask for, each at its last place.
fn asked(plan: &Plan<'_>) -> Vec<(Spot, u32)> {
    let mut found: Vec<(Spot, u32)> = Vec::new();
    for trace in &plan.traces {
        let table = Table::new(plan, trace);
        for at in plan.instances(trace) {
            let Some(counter) = plan.needs[at.need].wait else {
                continue;
            };
            let Some(time) = plan.meeting_time(trace, at) else {
                continue;
            };
            let (section, place) = plan.place(trace, time);
            let spot = Spot {
                section,
                place,
                counter,
            };
            let younger = table.younger(plan, at.from, time, counter);
            match found.iter_mut().find(|(s, _)| *s == spot) {
                Some((_, at_most)) => *at_most = (*at_most).min(younger),
                None => found.push((spot, younger)),
            }
        }
    }
    found
}

/// Loosens a wait as far as the needs allow that it alone serves; removes it where there are
/// none.
fn relax(plan: &mut Plan<'_>, spot: Spot) {
    let mut loosest: Option<u32> = None;
    for trace in &plan.traces {
        let table = Table::new(plan, trace);
        for at in plan.instances(trace) {
            if plan.needs[at.need].wait != Some(spot.counter) {
                continue;
            }
            let Some(by) = plan.meeting_time(trace, at) else {
                continue;
            };
            if table.done(plan, trace, at.from, by, spot.counter, Some(spot)) {
                continue;
            }
            let most = latest(plan, trace, spot, at, by)
                .map_or(0, |time| table.younger(plan, at.from, time, spot.counter));
            loosest = Some(loosest.map_or(most, |l| l.min(most)));
        }
    }
    let here = &mut plan.waits[spot.section][spot.place];
    match loosest {
        None => here.retain(|(counter, _)| *counter != spot.counter),
        Some(most) => {
            for (counter, at_most) in here {
                if *counter == spot.counter {
                    *at_most = most.min(wait_limit(spot.counter));
                }
            }
        }
    }
}

/// The last time the wait runs after the need's first op and not after `by`.
fn latest(plan: &Plan<'_>, trace: &Trace, spot: Spot, at: Instance, by: usize) -> Option<usize> {
    (at.from + 1..=by)
        .rev()
        .find(|time| plan.place(trace, *time) == (spot.section, spot.place))
}

/// Joins groups of neighbouring ops that every wait completes together. Whether any were.
fn join_groups(plan: &mut Plan<'_>) -> bool {
    // Waits count groups as they are: none is joined before all are looked at.
    let mut joined = Vec::new();
    for op in 0..plan.order.ops.len().saturating_sub(1) {
        let (a, b) = (&plan.order.ops[op], &plan.order.ops[op + 1]);
        let group = |c: Completion| match c {
            Completion::Counted { counter, .. } if counter.counts_groups() => Some(counter),
            _ => None,
        };
        let Some(counter) = group(a.completion) else {
            continue;
        };
        let apart = (0..plan.waits.len()).any(|section| {
            let meetings = &plan.meetings[section];
            !plan.waits[section][op + 1].is_empty()
                || meetings.barriers[op + 1] > 0
                || meetings.warp_syncs[op + 1]
        });
        if group(b.completion) == Some(counter)
            && a.distance == b.distance
            && !apart
            && !is_cut(plan, op, counter)
        {
            joined.push(op);
        }
    }
    for op in &joined {
        plan.joined[*op] = true;
    }
    !joined.is_empty()
}

/// Whether a wait completes the op's group and leaves the next op's in flight.
fn is_cut(plan: &Plan<'_>, op: usize, counter: Counter) -> bool {
    let len = plan.order.ops.len();
    plan.traces.iter().any(|trace| {
        let mut closed: Vec<usize> = Vec::new();
        for time in 0..trace.sections.len() * len {
            let (section, place) = plan.place(trace, time);
            for &(waited, at_most) in &plan.waits[section][place] {
                let left = at_most as usize;
                if waited == counter
                    && left >= 1
                    && closed.len() > left
                    && closed[closed.len() - left - 1] % len == op
                    && closed[closed.len() - left] % len == op + 1
                {
                    return true;
                }
            }
            if plan.issues(trace, time, counter) > 0 {
                closed.push(time);
            }
        }
        false
    })
}

/// How many operations of each counter were issued before each time, and the waits in time.
pub(super) struct Table {
    issued: Vec<(Counter, Vec<u32>)>,
    waits: Vec<(usize, Counter, u32)>,
}

impl Table {
    pub fn new(plan: &Plan<'_>, trace: &Trace) -> Table {
        let end = trace.sections.len() * plan.order.ops.len();
        let mut issued: Vec<(Counter, Vec<u32>)> = Vec::new();
        for op in &plan.order.ops {
            if let Completion::Counted { counter, .. } = op.completion
                && !issued.iter().any(|(c, _)| *c == counter)
            {
                let mut sums = vec![0; end + 1];
                for time in 0..end {
                    sums[time + 1] = sums[time] + plan.issues(trace, time, counter);
                }
                issued.push((counter, sums));
            }
        }
        let mut waits = Vec::new();
        for time in 0..end {
            let (section, place) = plan.place(trace, time);
            for &(counter, at_most) in &plan.waits[section][place] {
                waits.push((time, counter, at_most));
            }
        }
        Table { issued, waits }
    }

    /// The operations issued after the op at `from` (its group) and before place `to`.
    fn younger(&self, plan: &Plan<'_>, from: usize, to: usize, counter: Counter) -> u32 {
        let sums = self.issued.iter().find(|(c, _)| *c == counter);
        let closed = plan.closed(from) + 1;
        sums.map_or(0, |(_, s)| s[to.max(closed)] - s[closed])
    }

    /// The last wait no later than place `by` that the op at `from` is complete after: its time,
    /// and how many it leaves.
    pub fn last_serving(
        &self,
        plan: &Plan<'_>,
        from: usize,
        by: usize,
        counter: Counter,
    ) -> Option<(usize, u32)> {
        let after = self.waits.iter().rev().filter(|w| w.0 > from && w.0 <= by);
        let mut own = after.filter(|w| w.1 == counter);
        own.find(|w| self.younger(plan, from, w.0, counter) >= w.2)
            .map(|w| (w.0, w.2))
    }

    /// Whether a wait completes the op at `from` no later than place `by`.
    pub fn is_done(
        &self,
        plan: &Plan<'_>,
        trace: &Trace,
        (from, by): (usize, usize),
        counter: Counter,
    ) -> bool {
        self.done(plan, trace, from, by, counter, None)
    }

    /// Whether a wait other than `but` completes the op at `from` no later than place `by`.
    fn done(
        &self,
        plan: &Plan<'_>,
        trace: &Trace,
        from: usize,
        by: usize,
        counter: Counter,
        but: Option<Spot>,
    ) -> bool {
        let first = self.waits.partition_point(|(time, ..)| *time <= from);
        self.waits[first..]
            .iter()
            .take_while(|(time, ..)| *time <= by)
            .any(|&(time, waited, at_most)| {
                let (section, place) = plan.place(trace, time);
                let spot = Spot {
                    section,
                    place,
                    counter: waited,
                };
                waited == counter
                    && but != Some(spot)
                    && self.younger(plan, from, time, counter) >= at_most
            })
    }
}
