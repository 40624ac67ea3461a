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

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::asm::blocks::Blocks;
use crate::asm::{Function, Instruction, Operand, Wait};
use crate::isa::{Format, Opcode};

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
        let found = Walker::of(plan, view).walk(&code, blocks, end)?;
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

/// The events of the code, with the instructions they stand at.
struct Code {
    events: Vec<(usize, Event)>,
    /// Which of them are in each block.
    blocks: Vec<Range<usize>>,
    /// The last instruction of blocks that a wave ends in.
    ends: Vec<Option<usize>>,
}

impl Code {
    fn of(function: &Function, blocks: &Blocks, plan: &Plan) -> Code {
        let mut steps = plan.steps.iter().flatten();
        let priorities = steps.any(|(event, _)| matches!(event, Some(Event::Priority(_))));
        let all = &function.instructions;
        let mut code = Code {
            events: Vec::new(),
            blocks: Vec::new(),
            ends: Vec::new(),
        };
        for range in &blocks.ranges {
            let first = code.events.len();
            let events = range.clone().filter_map(|at| {
                let event = event(&all[at])?;
                let compared = priorities || !matches!(event, Event::Priority(_));
                compared.then_some((at, event))
            });
            code.events.extend(events);
            code.blocks.push(first..code.events.len());
            let last = range.end.checked_sub(1);
            code.ends
                .push(last.filter(|last| all[*last].op == Opcode::s_endpgm));
        }
        code
    }

    /// The part that a view has.
    fn seen(&self, view: View) -> Code {
        let mut events = Vec::new();
        let mut blocks = Vec::new();
        for range in &self.blocks {
            let first = events.len();
            let here = self.events[range.clone()].iter();
            events.extend(here.filter_map(|(at, event)| Some((*at, only(*event, view)?))));
            blocks.push(first..events.len());
        }
        Code {
            events,
            blocks,
            ends: self.ends.clone(),
        }
    }
}

/// What an instruction is to a plan.
fn event(i: &Instruction) -> Option<Event> {
    match i.op.format() {
        Format::Sopp => {}
        Format::Ds if i.is_lds_write() => return Some(Event::Write),
        Format::Ds => return i.is_lds_read().then_some(Event::Read),
        _ => return i.is_lds_copy().then_some(Event::Copy),
    }
    if let Some(wait) = i.wait() {
        return (!wait.is_none()).then_some(Event::Wait(wait));
    }
    match (i.op, i.operands.first()) {
        (Opcode::s_barrier, _) => Some(Event::Barrier),
        (Opcode::s_setprio, Some(Operand::Integer(n))) => {
            Some(Event::Priority(u8::try_from(*n).unwrap_or(u8::MAX)))
        }
        _ => None,
    }
}

type Found = (usize, Kind, String);

/// The states that the plan can be in, in order.
type States = Vec<u32>;

/// The plan as one counter sees it.
struct Walker {
    /// The steps of all states one behind the other, and where those of each start.
    steps: Vec<(Option<Event>, u32)>,
    starts: Vec<usize>,
    view: View,
    /// When each state was last put into a set.
    marks: Vec<u32>,
    time: u32,
    /// States that are still to be put into a set, and a set that is being made.
    open: States,
    next: States,
}

/// The sets of states that were met, by number.
#[derive(Default)]
struct Sets {
    list: Vec<States>,
    numbers: FxHashMap<States, usize>,
}

impl Sets {
    fn number(&mut self, states: &[u32]) -> usize {
        if let Some(known) = self.numbers.get(states) {
            return *known;
        }
        let number = self.list.len();
        self.list.push(states.to_vec());
        self.numbers.insert(states.to_vec(), number);
        number
    }
}

impl Walker {
    fn of(plan: &Plan, view: View) -> Walker {
        let seen = |event: &Option<Event>| event.and_then(|event| only(event, view));
        let mut walker = Walker {
            steps: Vec::new(),
            starts: vec![0],
            view,
            marks: vec![0; plan.steps.len()],
            time: 0,
            open: Vec::new(),
            next: Vec::new(),
        };
        for steps in &plan.steps {
            let steps = steps.iter().map(|(event, to)| (seen(event), *to as u32));
            walker.steps.extend(steps);
            walker.starts.push(walker.steps.len());
        }
        walker
    }

    fn walk(
        mut self,
        code: &Code,
        blocks: &Blocks,
        end: usize,
    ) -> Result<Vec<Found>, &'static str> {
        let code = code.seen(self.view);
        let mut found = Vec::new();
        let mut sets = Sets::default();
        let mut states = vec![Plan::START as u32];
        self.close(&mut states);
        let mut seen: FxHashSet<(usize, usize)> = FxHashSet::default();
        let mut work = Vec::new();
        if !blocks.ranges.is_empty() {
            work.push((0, sets.number(&states)));
        }
        while let Some((block, set)) = work.pop() {
            if !seen.insert((block, set)) {
                continue;
            }
            if seen.len() > MOST_PAIRS {
                return Err("the kernel has too many ways");
            }
            states.clone_from(&sets.list[set]);
            if let Err(lost) = self.take_all(&code.events[code.blocks[block].clone()], &mut states)
            {
                found.push(lost);
                continue;
            }
            if let Some(at) = code.ends[block]
                && !states.contains(&(end as u32))
            {
                let (kind, reason) = self.why(&states, None);
                found.push((at, kind, reason));
            }
            let set = sets.number(&states);
            work.extend(blocks.next[block].iter().map(|to| (*to, set)));
        }
        Ok(found)
    }

    /// Goes through the events of a block; where the plan has no step that goes on, says why.
    fn take_all(&mut self, events: &[(usize, Event)], states: &mut States) -> Result<(), Found> {
        let mut next = std::mem::take(&mut self.next);
        // An event that left the states as they are does so again.
        let mut idle = None;
        for (at, event) in events {
            if idle == Some(*event) {
                continue;
            }
            self.take(states, *event, &mut next);
            if next.is_empty() {
                let (kind, reason) = self.why(states, Some(*event));
                return Err((*at, kind, reason));
            }
            idle = (next == *states).then_some(*event);
            std::mem::swap(states, &mut next);
        }
        self.next = next;
        Ok(())
    }

    fn steps_of(&self, state: u32) -> &[(Option<Event>, u32)] {
        let state = state as usize;
        &self.steps[self.starts[state]..self.starts[state + 1]]
    }

    /// Adds the states that ways without events lead to.
    fn close(&mut self, states: &mut States) {
        std::mem::swap(&mut self.open, states);
        self.reach(states, |event| event.is_none());
    }

    /// Moves the open states, and those that steps of this kind lead to, into a set.
    fn reach(&mut self, all: &mut States, goes: impl Fn(Option<Event>) -> bool) {
        self.time += 1;
        all.clear();
        while let Some(state) = self.open.pop() {
            let mark = &mut self.marks[state as usize];
            if std::mem::replace(mark, self.time) == self.time {
                continue;
            }
            all.push(state);
            let range = self.starts[state as usize]..self.starts[state as usize + 1];
            let steps = self.steps[range].iter();
            self.open
                .extend(steps.filter(|(event, _)| goes(*event)).map(|(_, to)| *to));
        }
        all.sort_unstable();
    }

    /// The states behind an event of the code.
    fn take(&mut self, states: &[u32], event: Event, next: &mut States) {
        if let Event::Wait(wait) = event {
            self.open.extend(states);
            return self.reach(next, |step| match step {
                None => true,
                Some(Event::Wait(asked)) => wait.serves(asked),
                Some(_) => false,
            });
        }
        let mut open = std::mem::take(&mut self.open);
        for state in states {
            let steps = self.steps_of(*state).iter();
            let same = steps.filter(|(step, _)| *step == Some(event));
            open.extend(same.map(|(_, to)| *to));
        }
        self.open = open;
        self.reach(next, |event| event.is_none());
    }

    /// What is wrong where the code does something else than any step, or ends.
    fn why(&self, states: &[u32], got: Option<Event>) -> (Kind, String) {
        let steps = || states.iter().flat_map(|s| self.steps_of(*s));
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
