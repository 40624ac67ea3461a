//! Waits, barriers, copies and priorities of the whole kernel against the schedule's, on every way.
//!
//! A [`Plan`] is what the schedule says of all ways through the kernel: states, and steps from one
//! to the next. The check walks the code's ways with the set of states that the plan can be in:
//! a barrier, a copy or a priority of the code must be a step from one of them. A wait of the code
//! takes every step that waits for no more than it does, and may also be the compiler's own. So
//! the code may go any number of turns at once, lay loops out in any order, or leave out what
//! cannot happen; where the plan has no step that goes on, something is missing or in the wrong
//! place, and at the kernel's end all of the plan must be done.
//!
//! Each counter is walked by itself, with the barriers: the compiler merges and splits waits for
//! different counters; and so are reads and writes of LDS, which lie between the same barriers. Stricter waits and others than the schedule's pass here: they cost time, and
//! are found in the hot loop.

use std::collections::HashSet;

use crate::asm::blocks::Blocks;
use crate::asm::{Function, Instruction, Operand, Wait};
use crate::isa::Opcode;

use super::{Finding, Kind, finding};

/// One thing that a wave does.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Event {
    Wait(Wait),
    Barrier,
    /// A copy to LDS is issued.
    Copy,
    Priority(u8),
    /// LDS is read, or written, from registers.
    Read,
    Write,
}

/// The ways of a wave through a kernel, as the schedule has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The steps from each state: what is done, nothing or an event, and the state behind it.
    steps: Vec<Vec<(Option<Event>, usize)>>,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            steps: vec![Vec::new()],
        }
    }
}

impl Plan {
    /// Where every way starts.
    pub const START: usize = 0;

    pub fn state(&mut self) -> usize {
        self.steps.push(Vec::new());
        self.steps.len() - 1
    }

    /// From one state to another without doing anything.
    pub fn way(&mut self, from: usize, to: usize) {
        if let Some(steps) = self.steps.get_mut(from) {
            steps.push((None, to));
        }
    }

    /// Does something; the state behind it.
    pub fn step(&mut self, from: usize, event: Event) -> usize {
        let to = self.state();
        if let Some(steps) = self.steps.get_mut(from) {
            steps.push((Some(event), to));
        }
        to
    }

    /// Work that may be done from here on, any number of times, in any order with other work up to
    /// the next step: the compiler joins, splits, moves and leaves out what lies between barriers.
    pub fn work(&mut self, from: usize, event: Event) -> usize {
        if self.work_at(from).contains(&event) {
            return from;
        }
        let to = self.joined(&[from]);
        self.steps[to].push((Some(event), to));
        to
    }

    /// Where ways come together, with the work of all of them.
    pub fn joined(&mut self, ways: &[usize]) -> usize {
        let to = self.state();
        for from in ways {
            for event in self.work_at(*from) {
                if !self.work_at(to).contains(&event) {
                    self.steps[to].push((Some(event), to));
                }
            }
            self.way(*from, to);
        }
        to
    }

    fn work_at(&self, state: usize) -> Vec<Event> {
        let steps = self.steps.get(state).into_iter().flatten();
        let own = steps.filter(|(_, to)| *to == state);
        own.filter_map(|(event, _)| *event).collect()
    }

    /// How many states there are.
    pub fn size(&self) -> usize {
        self.steps.len()
    }
}

/// The part of the events that is compared at a time.
#[derive(Clone, Copy, PartialEq, Eq)]
enum View {
    /// Waits for `vmcnt`, and what it counts.
    Vm,
    Lgkm,
    /// Reads and writes of LDS.
    Lds,
}

/// More than these pairs of a place in the code and states of the plan are not looked at.
const MOST_PAIRS: usize = 20_000;

/// Compares. `Err` where there are too many ways.
pub(super) fn check(
    function: &Function,
    blocks: &Blocks,
    plan: &Plan,
    end: usize,
    findings: &mut Vec<Finding>,
) -> Result<(), &'static str> {
    let code = Code::of(function, blocks, plan);
    for view in [View::Vm, View::Lgkm, View::Lds] {
        let found = walk(&code, blocks, plan, end, view)?;
        for (at, kind, reason) in found {
            let instruction = &function.instructions[at];
            let new = finding(kind, instruction, reason);
            let known = |f: &Finding| f.line == new.line && f.kind == new.kind;
            if !findings.iter().any(known) {
                findings.push(new);
            }
        }
    }
    Ok(())
}

/// The events of each block of the code, with the instructions they stand at.
struct Code {
    events: Vec<Vec<(usize, Event)>>,
    /// The last instruction of blocks that a wave ends in.
    ends: Vec<Option<usize>>,
}

impl Code {
    fn of(function: &Function, blocks: &Blocks, plan: &Plan) -> Code {
        let mut steps = plan.steps.iter().flatten();
        let priorities = steps.any(|(event, _)| matches!(event, Some(Event::Priority(_))));
        let event = |i: &Instruction| {
            if let Some(wait) = i.wait() {
                return (!wait.is_none()).then_some(Event::Wait(wait));
            }
            if i.is_barrier() {
                return Some(Event::Barrier);
            }
            if i.is_lds_copy() {
                return Some(Event::Copy);
            }
            if i.is_lds_write() {
                return Some(Event::Write);
            }
            if i.is_lds_read() {
                return Some(Event::Read);
            }
            match (i.op, i.operands.first()) {
                (Opcode::s_setprio, Some(Operand::Integer(n))) if priorities => {
                    Some(Event::Priority(u8::try_from(*n).unwrap_or(u8::MAX)))
                }
                _ => None,
            }
        };
        let all = &function.instructions;
        let events = blocks.ranges.iter().map(|range| {
            let at = range.clone();
            at.filter_map(|at| Some((at, event(&all[at])?))).collect()
        });
        let ends = blocks.ranges.iter().map(|range| {
            let last = range.end.checked_sub(1)?;
            (all[last].op == Opcode::s_endpgm).then_some(last)
        });
        Code {
            events: events.collect(),
            ends: ends.collect(),
        }
    }
}

type Found = (usize, Kind, String);

/// The states that the plan can be in, in order.
type States = Vec<u32>;

fn walk(
    code: &Code,
    blocks: &Blocks,
    plan: &Plan,
    end: usize,
    view: View,
) -> Result<Vec<Found>, &'static str> {
    let mut plan = Walker::of(plan, view);
    let mut found = Vec::new();
    let mut seen: HashSet<(usize, States)> = HashSet::new();
    let start = plan.closed(vec![Plan::START as u32]);
    let mut work = vec![(0, start)];
    while let Some((block, states)) = work.pop() {
        if blocks.ranges.is_empty() || !seen.insert((block, states.clone())) {
            continue;
        }
        if seen.len() > MOST_PAIRS {
            return Err("the kernel has too many ways");
        }
        let mut states = states;
        let mut lost = false;
        for (at, event) in &code.events[block] {
            let next = plan.take(&states, *event);
            if next.is_empty() {
                let (kind, reason) = plan.why(&states, Some(*event));
                found.push((*at, kind, reason));
                lost = true;
                break;
            }
            states = next;
        }
        if lost {
            continue;
        }
        if let Some(at) = code.ends[block]
            && !states.contains(&(end as u32))
        {
            let (kind, reason) = plan.why(&states, None);
            found.push((at, kind, reason));
        }
        for to in &blocks.next[block] {
            work.push((*to, states.clone()));
        }
    }
    Ok(found)
}

/// The plan as one counter sees it.
struct Walker {
    steps: Vec<Vec<(Option<Event>, u32)>>,
    view: View,
    /// When each state was last put into a set.
    marks: Vec<u32>,
    time: u32,
}

impl Walker {
    fn of(plan: &Plan, view: View) -> Walker {
        let seen = |event: &Option<Event>| event.and_then(|event| only(event, view));
        let steps = plan.steps.iter().map(|steps| {
            let steps = steps.iter().map(|(event, to)| (seen(event), *to as u32));
            steps.collect()
        });
        Walker {
            steps: steps.collect(),
            view,
            marks: vec![0; plan.steps.len()],
            time: 0,
        }
    }

    /// The states and those that ways without events lead to.
    fn closed(&mut self, states: States) -> States {
        self.reach(states, |event| event.is_none())
    }

    /// The states, and those that steps of this kind lead to.
    fn reach(&mut self, states: States, goes: impl Fn(Option<Event>) -> bool) -> States {
        self.time += 1;
        let mut all = Vec::new();
        let mut work = states;
        while let Some(state) = work.pop() {
            let mark = &mut self.marks[state as usize];
            if std::mem::replace(mark, self.time) == self.time {
                continue;
            }
            all.push(state);
            let steps = self.steps[state as usize].iter();
            work.extend(steps.filter(|(event, _)| goes(*event)).map(|(_, to)| *to));
        }
        all.sort_unstable();
        all
    }

    /// The states behind an event of the code.
    fn take(&mut self, states: &States, event: Event) -> States {
        match only(event, self.view) {
            // Of no concern to this counter.
            None => states.clone(),
            Some(Event::Wait(wait)) => self.reach(states.clone(), |step| match step {
                None => true,
                Some(Event::Wait(asked)) => serves(wait, asked),
                Some(_) => false,
            }),
            Some(event) => {
                let next = states.iter().flat_map(|state| {
                    let steps = self.steps[*state as usize].iter();
                    let same = steps.filter(|(step, _)| *step == Some(event));
                    same.map(|(_, to)| *to)
                });
                let next = next.collect();
                self.closed(next)
            }
        }
    }

    /// What is wrong where the code does something else than any step, or ends.
    fn why(&self, states: &States, got: Option<Event>) -> (Kind, String) {
        let steps = || states.iter().flat_map(|s| &self.steps[*s as usize]);
        let next = || steps().filter_map(|(event, _)| *event);
        // A wait that the code did is behind, though the plan may also be before it still.
        let wait = steps().find_map(|(event, to)| match event {
            Some(Event::Wait(wait)) if !states.contains(to) => Some(*wait),
            _ => None,
        });
        let has = |what: Event| next().any(|event| event == what);
        if let Some(wait) = wait {
            let reason = "before this the schedule waits for";
            return (
                Kind::MissingWait,
                format!("{reason} {wait}, and the code does not"),
            );
        }
        if has(Event::Barrier) {
            let reason = "before this the schedule has a barrier, and the code has none";
            return (Kind::MissingBarrier, reason.to_owned());
        }
        if has(Event::Copy) {
            let reason = "before this the schedule has a copy to LDS, and the code has none";
            return (Kind::MovedWork, reason.to_owned());
        }
        if let Some(level) = next().find_map(|e| match e {
            Event::Priority(level) => Some(level),
            _ => None,
        }) {
            let reason = format!("before this the schedule sets the priority to {level}");
            return (Kind::MovedWork, reason);
        }
        match got {
            Some(Event::Barrier) => (
                Kind::ExtraBarrier,
                "a barrier that the schedule did not ask for".to_owned(),
            ),
            Some(Event::Read | Event::Write) => (
                Kind::MovedWork,
                "an access to LDS where the schedule has none".to_owned(),
            ),
            Some(Event::Copy) => (
                Kind::MovedWork,
                "a copy to LDS where the schedule has none".to_owned(),
            ),
            _ => (
                Kind::MovedWork,
                "the schedule has nothing like this here".to_owned(),
            ),
        }
    }
}

/// The event as a view has it.
fn only(event: Event, view: View) -> Option<Event> {
    match (event, view) {
        (Event::Barrier, _) => Some(event),
        (Event::Wait(w), View::Vm) => w.vmcnt.map(|n| Event::Wait(Wait::vm(n))),
        (Event::Wait(w), View::Lgkm) => w.lgkmcnt.map(|n| Event::Wait(Wait::lgkm(n))),
        (Event::Copy, View::Vm) | (Event::Priority(_), View::Vm | View::Lgkm) => Some(event),
        (Event::Read | Event::Write, View::Lds) => Some(event),
        _ => None,
    }
}

/// Whether a wait of the code is as strict as one that was asked for.
fn serves(got: Wait, asked: Wait) -> bool {
    let strict = |got: Option<u8>, asked: Option<u8>| match (got, asked) {
        (_, None) => true,
        (Some(got), Some(asked)) => got <= asked,
        (None, Some(_)) => false,
    };
    strict(got.vmcnt, asked.vmcnt) && strict(got.lgkmcnt, asked.lgkmcnt)
}
