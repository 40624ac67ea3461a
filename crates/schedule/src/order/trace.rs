//! The sections of a pipelined loop, laid out in time for loops of some lengths.
//!
//! Prologue, steady iteration and epilogue hold the same ops at the same places, less those whose
//! loop iteration does not exist. What a section must wait for is counted on traces: the whole loop
//! written out for each trip count that makes a difference, that is every short one and one long
//! enough to show the steady state with all its neighbours.

use tilewright_ir::Counter;

use super::barriers::{Meetings, required};
use super::dependences::{Between, Need};
use super::waits::{self, SteadyWait, Table, steady_waits};
use super::{Completion, Order, Schedule, Section, Step, Tail};

/// What is known of the sections so far.
pub(super) struct Plan<'a> {
    pub order: &'a Order,
    pub needs: &'a [Need],
    pub depth: usize,
    /// What threads meet at, by section: prologue, steady, epilogue.
    pub meetings: Vec<Meetings>,
    /// Waits by section and place.
    pub waits: Vec<Vec<Vec<(Counter, u32)>>>,
    /// Whether an op's group goes on with the next op.
    pub joined: Vec<bool>,
    pub traces: Vec<Trace>,
    /// The needs that decide whether threads meet often enough: where these are met, all are.
    deciding: Vec<usize>,
}

/// The loop at one trip count. Time counts ops from the first one of the prologue; the place
/// before the op at time `t` is place `t`.
pub(super) struct Trace {
    trip: i64,
    /// The section of each iteration, from `-depth` on.
    pub sections: Vec<usize>,
}

/// What barriers of the epilogue are taken out in view of.
struct Ends {
    steady: Vec<SteadyWait>,
    /// The waits before any is taken out, by trace.
    tables: Vec<Table>,
}

/// One need at one iteration: the times of its two ops.
#[derive(Clone, Copy)]
pub(super) struct Instance {
    pub need: usize,
    pub from: usize,
    pub to: usize,
}

impl<'a> Plan<'a> {
    pub fn new(order: &'a Order, needs: &'a [Need], steady: Meetings, longest: u32) -> Plan<'a> {
        let depth = order.ops.iter().map(|o| o.distance).max().unwrap_or(0) as usize;
        let sections = match order.tail {
            Tail::Guard => depth + 1,
            Tail::Peel => 2 * depth + 1,
        };
        let enough = 2 * depth as u64 + u64::from(longest) + 2;
        let trips: Vec<u64> = match order.trip {
            Some(trip) => vec![trip.min(enough)],
            None => (0..=depth as u64 + 1).chain([enough]).collect(),
        };
        let traces = trips
            .into_iter()
            .map(|trip| Trace::new(order, depth as i64, trip as i64))
            .collect();
        Plan {
            order,
            needs,
            depth,
            meetings: vec![steady; sections],
            waits: vec![vec![Vec::new(); order.ops.len()]; sections],
            joined: vec![false; order.ops.len()],
            traces,
            deciding: deciding(order, needs),
        }
    }

    /// Takes the barriers out of prologue and epilogue that nothing there needs; where only lanes
    /// of one warp do, each warp waits for itself. One in the epilogue stays where its wait would
    /// otherwise move to an earlier one: the steady iteration would wait for what only the end needs,
    /// the end for what is read later.
    pub fn prune_barriers(&mut self) {
        if !self.all_met() {
            return;
        }
        let mut ends = None;
        let depth = self.depth;
        for section in (0..self.meetings.len()).filter(|p| *p != depth) {
            if section > depth && ends.is_none() {
                ends = Some(Ends {
                    steady: steady_waits(self),
                    tables: waits::for_now(self),
                });
            }
            let strictest = ends.as_ref();
            for place in (0..self.order.ops.len()).rev() {
                while self.meetings[section].barriers[place] > 0 {
                    self.meetings[section].barriers[place] -= 1;
                    if self.may_go((section, place), strictest) {
                        continue;
                    }
                    let warp_sync = self.meetings[section].warp_syncs[place];
                    self.meetings[section].warp_syncs[place] = true;
                    if !self.may_go((section, place), strictest) {
                        self.meetings[section].warp_syncs[place] = warp_sync;
                        self.meetings[section].barriers[place] += 1;
                    }
                    break;
                }
                if self.meetings[section].warp_syncs[place] {
                    self.meetings[section].warp_syncs[place] = false;
                    if !self.may_go((section, place), strictest) {
                        self.meetings[section].warp_syncs[place] = true;
                    }
                }
            }
        }
    }

    /// Whether all needs are met as it is, at the end by waits that there are, none of them stricter. They
    /// were before what was taken out at this place.
    fn may_go(&self, (section, place): (usize, usize), ends: Option<&Ends>) -> bool {
        self.met_around(section, place)
            && ends.is_none_or(|ends| {
                let allowed = |wait: &SteadyWait| {
                    let same = |w: &&SteadyWait| (w.place, w.counter) == (wait.place, wait.counter);
                    let known = ends.steady.iter().find(same);
                    known.is_some_and(|w| w.at_most <= wait.at_most)
                };
                steady_waits(self).iter().all(allowed)
                    && self.is_waited_for((section, place), &ends.tables)
            })
    }

    /// Whether these waits complete what the needs ask for that a place lies between the ops of.
    fn is_waited_for(&self, place: (usize, usize), tables: &[Table]) -> bool {
        self.traces.iter().zip(tables).all(|(trace, table)| {
            let times = self.times(trace, place);
            let around = |i: &Instance| times.iter().any(|t| (i.from + 1..=i.to).contains(t));
            self.instances(trace).filter(around).all(|i| {
                let Some(counter) = self.needs[i.need].wait else {
                    return true;
                };
                self.meeting_time(trace, i)
                    .is_none_or(|by| table.is_done(self, trace, (i.from, by), counter))
            })
        })
    }

    /// When a place of a section comes.
    fn times(&self, trace: &Trace, (section, place): (usize, usize)) -> Vec<usize> {
        let iterations = trace.sections.iter().enumerate();
        let here = iterations.filter(|(_, p)| **p == section);
        here.map(|(it, _)| it * self.order.ops.len() + place)
            .collect()
    }

    fn all_met(&self) -> bool {
        self.traces.iter().all(|trace| {
            let mut all = self.deciding(trace);
            all.all(|i| self.meeting_time(trace, i).is_some())
        })
    }

    /// Whether the needs are met that a place lies between the ops of.
    fn met_around(&self, section: usize, place: usize) -> bool {
        self.traces.iter().all(|trace| {
            let times = self.times(trace, (section, place));
            let around = |i: &Instance| times.iter().any(|t| (i.from + 1..=i.to).contains(t));
            let mut all = self.deciding(trace).filter(around);
            all.all(|i| self.meeting_time(trace, i).is_some())
        })
    }

    /// The instances of the needs that decide.
    fn deciding<'t>(&'t self, trace: &'t Trace) -> impl Iterator<Item = Instance> + 't {
        let needs = self.deciding.iter();
        needs.flat_map(move |&at| self.instances_of(trace, at))
    }

    /// The needs of a trace, at every iteration at which both ops exist.
    pub fn instances<'t>(&'t self, trace: &'t Trace) -> impl Iterator<Item = Instance> + 't {
        (0..self.needs.len()).flat_map(move |at| self.instances_of(trace, at))
    }

    fn instances_of(&self, trace: &Trace, at: usize) -> impl Iterator<Item = Instance> + use<> {
        let (len, depth) = (self.order.ops.len(), self.depth as i64);
        let need = self.needs[at];
        let a = i64::from(self.order.ops[need.earlier].distance);
        let b = i64::from(self.order.ops[need.later].distance);
        let last = trace.trip - i64::from(need.gap);
        (0..last).map(move |iteration| {
            let from = (iteration - a + depth) as usize;
            let to = iteration + i64::from(need.gap) - b + depth;
            Instance {
                need: at,
                from: from * len + need.earlier,
                to: to as usize * len + need.later,
            }
        })
    }

    /// The last place before which `from` must be complete, so that enough barriers follow it
    /// before `to`; `None` where there are too few.
    pub fn meeting_time(&self, trace: &Trace, at: Instance) -> Option<usize> {
        let mut left = match self.needs[at.need].between {
            Between::Thread => return Some(at.to),
            Between::Warp => 1,
            Between::Block => required(self.order),
        };
        for time in (at.from + 1..=at.to).rev() {
            let (section, place) = self.place(trace, time);
            let meetings = &self.meetings[section];
            let mut here = meetings.barriers[place];
            if self.needs[at.need].between == Between::Warp {
                here += u32::from(meetings.warp_syncs[place]);
            }
            if here >= left {
                return Some(time);
            }
            left -= here;
        }
        None
    }

    /// The section and the place in it.
    pub fn place(&self, trace: &Trace, time: usize) -> (usize, usize) {
        let len = self.order.ops.len();
        (trace.sections[time / len], time % len)
    }

    /// Whether the op at this time exists in the loop.
    fn exists(&self, trace: &Trace, time: usize) -> bool {
        let iteration = self.iteration(time);
        (0..trace.trip).contains(&iteration)
    }

    fn iteration(&self, time: usize) -> i64 {
        let len = self.order.ops.len();
        let distance = i64::from(self.order.ops[time % len].distance);
        (time / len) as i64 - self.depth as i64 + distance
    }

    /// How many operations of the counter the op at this time certainly adds.
    pub fn issues(&self, trace: &Trace, time: usize, counter: Counter) -> u32 {
        let op = time % self.order.ops.len();
        match self.order.ops[op].completion {
            Completion::Counted {
                counter: own,
                instructions,
            } if own == counter => {
                if counter.counts_groups() {
                    let empty = self.order.tail == Tail::Guard && self.iteration(time) >= 0;
                    u32::from(!self.joined[op] && (empty || self.exists(trace, time)))
                } else if self.exists(trace, time) {
                    instructions
                } else {
                    0
                }
            }
            _ => 0,
        }
    }

    /// The time at which the op's group is closed; for other counters, its own.
    pub fn closed(&self, time: usize) -> usize {
        let len = self.order.ops.len();
        let mut end = time;
        while self.joined[end % len] {
            end += 1;
        }
        end
    }

    /// Ops that exist and complete by a counter.
    pub fn counted<'t>(&'t self, trace: &'t Trace) -> impl Iterator<Item = (usize, Counter)> + 't {
        let len = self.order.ops.len();
        (0..trace.sections.len() * len).filter_map(move |time| {
            match self.order.ops[time % len].completion {
                Completion::Counted { counter, .. } if self.exists(trace, time) => {
                    Some((time, counter))
                }
                _ => None,
            }
        })
    }

    /// The result, with everything in its place.
    pub fn schedule(self, versions: Vec<u32>) -> Schedule {
        let drain = super::waits::drain(&self);
        let depth = self.depth;
        let mut sections = Vec::new();
        for (at, meetings) in self.meetings.iter().enumerate() {
            let mut steps = Vec::new();
            for (op, data) in self.order.ops.iter().enumerate() {
                for &(counter, at_most) in &self.waits[at][op] {
                    steps.push(Step::Wait { counter, at_most });
                }
                let barriers = meetings.barriers[op] as usize;
                if meetings.warp_syncs[op] && barriers == 0 {
                    steps.push(Step::WarpSync);
                }
                steps.extend(std::iter::repeat_n(Step::Barrier, barriers));
                let distance = data.distance as usize;
                let present = if at < depth {
                    at + distance >= depth
                } else {
                    // Epilogue section `e` is iteration `n - depth + e`.
                    at == depth || distance + (at - depth - 1) < depth
                };
                if !present {
                    continue;
                }
                steps.push(Step::Run(op));
                if let Completion::Counted { counter, .. } = data.completion
                    && counter.counts_groups()
                    && !self.joined[op]
                {
                    steps.push(Step::Commit(counter));
                }
            }
            sections.push(Section { steps });
        }
        let epilogue = sections.split_off(depth + 1);
        let steady = sections.pop().unwrap_or_default();
        let served = super::served::served(&self, &steady.steps);
        Schedule {
            versions,
            depth: depth as u32,
            prologue: sections,
            steady,
            epilogue,
            drain,
            served,
        }
    }
}

/// The needs for which threads must meet and that no other one implies: one with the same second
/// op whose first op is later in time, and exists at every iteration at which this one's does.
fn deciding(order: &Order, needs: &[Need]) -> Vec<usize> {
    let mut by_later: Vec<Vec<usize>> = vec![Vec::new(); order.ops.len()];
    let length = |need: &Need| need.end(order) - need.earlier;
    for (at, need) in needs.iter().enumerate() {
        let list = &mut by_later[need.later];
        let implies =
            |a: &Need, b: &Need| a.between == b.between && a.gap <= b.gap && length(a) <= length(b);
        if need.between == Between::Thread || list.iter().any(|&k| implies(&needs[k], need)) {
            continue;
        }
        list.retain(|&k| !implies(need, &needs[k]));
        list.push(at);
    }
    let mut all: Vec<usize> = by_later.into_iter().flatten().collect();
    all.sort_unstable();
    all
}

impl Trace {
    fn new(order: &Order, depth: i64, trip: i64) -> Trace {
        let sections = (-depth..trip)
            .map(|it| {
                let section = match order.tail {
                    _ if it < 0 => it + depth,
                    Tail::Guard => depth,
                    Tail::Peel if it < trip - depth => depth,
                    Tail::Peel => depth + 1 + it - (trip - depth),
                };
                section as usize
            })
            .collect();
        Trace { trip, sections }
    }
}
