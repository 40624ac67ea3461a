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
//! different counters. Stricter waits and others than the schedule's pass here: they cost time, and
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
}

/// The ways of a wave through a kernel, as the schedule has them.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Plan {
    /// The steps from each state: what is done, nothing or an event, and the state behind it.
    steps: Vec<Vec<(Option<Event>, usize)>>,
    /// Whether any step is an event.
    events: usize,
}

impl Default for Plan {
    fn default() -> Self {
        Self {
            steps: vec![Vec::new()],
            events: 0,
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
            self.events += 1;
        }
        to
    }

    /// How many steps of the plan do something.
    pub fn events(&self) -> usize {
        self.events
    }
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
    for of_vm in [true, false] {
        let found = walk(&code, blocks, plan, end, of_vm)?;
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
    of_vm: bool,
) -> Result<Vec<Found>, &'static str> {
    let mut plan = Walker::of(plan, of_vm);
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
    of_vm: bool,
    /// When each state was last put into a set.
    marks: Vec<u32>,
    time: u32,
}

impl Walker {
    fn of(plan: &Plan, of_vm: bool) -> Walker {
        let seen = |event: &Option<Event>| event.and_then(|event| only(event, of_vm));
        let steps = plan.steps.iter().map(|steps| {
            let steps = steps.iter().map(|(event, to)| (seen(event), *to as u32));
            steps.collect()
        });
        Walker {
            steps: steps.collect(),
            of_vm,
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
        match only(event, self.of_vm) {
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
        let wait = next().find_map(|event| match event {
            Event::Wait(wait) => Some(wait),
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
        if let Some(Event::Priority(level)) = next().next() {
            let reason = format!("before this the schedule sets the priority to {level}");
            return (Kind::MovedWork, reason);
        }
        match got {
            Some(Event::Barrier) => (
                Kind::ExtraBarrier,
                "a barrier that the schedule did not ask for".to_owned(),
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

/// The event as one counter sees it.
fn only(event: Event, of_vm: bool) -> Option<Event> {
    match event {
        Event::Wait(w) if of_vm => w.vmcnt.map(|n| Event::Wait(Wait::vm(n))),
        Event::Wait(w) => w.lgkmcnt.map(|n| Event::Wait(Wait::lgkm(n))),
        Event::Copy => Some(event).filter(|_| of_vm),
        Event::Barrier | Event::Priority(_) => Some(event),
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
