//! The clock: which wave issues what, and when.
//!
//! Each cycle one SIMD has its turn. Of its waves, those of higher priority come first, then the
//! older ones, which are those of lower number; each may issue its next instruction if its
//! results, unit, queue and counters allow, and if no wave before it has used the port. Nothing
//! is left to chance: the same trace gives the same times.

use std::collections::VecDeque;

use rustc_hash::FxHashMap;

use crate::asm::Function;

use super::banks::{bank_cycles, least_bank_cycles};
use super::lds::{Cost, Lds};
use super::machine::Machine;
use super::matrix::{Scoreboard, Units};
use super::memory::Memory;
use super::plan::{Action, MemoryClass, Plan, Port};
use super::stalls::{Stall, Stalls};
use super::trace::{Detail, Step, Trace};
use super::{Issued, Timing, WaveTiming};

/// What stops the clock.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TimingError {
    /// A step that is no instruction of the function.
    Step { wave: usize, step: usize },
    /// Waves that wait at a barrier to which the others never come, or too long a run.
    Stuck { cycle: u64, line: u32 },
}

impl std::fmt::Display for TimingError {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            TimingError::Step { wave, step } => write!(
                f,
                "step {step} of wave {wave} is no instruction of the function"
            ),
            TimingError::Stuck { cycle, line } => write!(
                f,
                "at cycle {cycle} no wave goes on; one waits at line {line}"
            ),
        }
    }
}

impl std::error::Error for TimingError {}

/// Replays a trace on a machine.
pub fn time(function: &Function, trace: &Trace, machine: &Machine) -> Result<Timing, TimingError> {
    let plans: Vec<Plan> = function
        .instructions
        .iter()
        .map(|instruction| Plan::of(instruction, machine))
        .collect();
    for (wave, steps) in trace.waves.iter().enumerate() {
        let inside = |step: &Step| (step.instruction as usize) < plans.len();
        if let Some(step) = steps.iter().position(|step| !inside(step)) {
            return Err(TimingError::Step { wave, step });
        }
    }
    let mut unit = ComputeUnit::new(&plans, trace, machine);
    let cycles = unit.run().map_err(|(cycle, instruction)| {
        let line = function.instructions.get(instruction).map_or(0, |i| i.line);
        TimingError::Stuck { cycle, line }
    })?;
    Ok(unit.finish(cycles))
}

/// A cycle in which nothing has issued for this long is one in which nothing ever will: longer
/// than any latency that a parameter can reasonably have.
const STUCK: u64 = 1 << 20;

struct ComputeUnit<'a> {
    plans: &'a [Plan],
    trace: &'a Trace,
    machine: &'a Machine,
    waves: Vec<Wave<'a>>,
    /// The waves of each SIMD.
    on: Vec<Vec<usize>>,
    units: Vec<Units>,
    lds: Lds,
    memory: Memory,
    /// The bank cycles of an instruction with certain lanes.
    banks: FxHashMap<(u32, u32), u32>,
    instructions: Vec<Stalls>,
}

struct Wave<'a> {
    simd: usize,
    steps: &'a [Step],
    at: usize,
    /// The next instruction can issue from here on, and what it waits for until then.
    from: u64,
    until: Option<Stall>,
    /// When it became the next.
    since: u64,
    priority: u8,
    scoreboard: Scoreboard,
    /// When the operations that each counter counts are done.
    vector: VecDeque<u64>,
    lds: Vec<u64>,
    at_barrier: bool,
    stalls: Stalls,
    issued: Vec<Issued>,
}

impl<'a> ComputeUnit<'a> {
    fn new(plans: &'a [Plan], trace: &'a Trace, machine: &'a Machine) -> Self {
        let simds = machine.simds.max(1) as usize;
        let mut on = vec![Vec::new(); simds];
        for wave in 0..trace.waves.len() {
            on[wave % simds].push(wave);
        }
        let waves = trace.waves.iter().enumerate().map(|(wave, steps)| Wave {
            simd: wave % simds,
            steps,
            at: 0,
            from: 0,
            until: None,
            since: 0,
            priority: 0,
            scoreboard: Scoreboard::new(),
            vector: VecDeque::new(),
            lds: Vec::new(),
            at_barrier: false,
            stalls: Stalls::default(),
            issued: Vec::with_capacity(steps.len()),
        });
        Self {
            plans,
            trace,
            machine,
            waves: waves.collect(),
            on,
            units: vec![Units::default(); simds],
            lds: Lds::new(machine),
            memory: Memory::new(machine),
            banks: FxHashMap::default(),
            instructions: vec![Stalls::default(); plans.len()],
        }
    }

    /// Runs to the end of all waves: the cycles it took, or where it is stuck.
    fn run(&mut self) -> Result<u64, (u64, usize)> {
        let mut now = 0;
        let mut last = 0;
        while self.waves.iter().any(|w| !w.is_done()) {
            let simd = (now % self.units.len() as u64) as usize;
            let mut order: Vec<usize> = self.on[simd].clone();
            order.retain(|wave| !self.waves[*wave].is_done());
            order.sort_by_key(|wave| {
                let state = &self.waves[*wave];
                (std::cmp::Reverse(state.priority), *wave)
            });
            let mut used = [false; 6];
            for wave in order {
                match self.attempt(wave, now, &mut used) {
                    Ok(()) => {
                        last = now;
                        if self.waves[wave].is_done() {
                            self.meet(now);
                        }
                    }
                    Err(stall) => {
                        let slot = u64::from(self.machine.slot);
                        self.waves[wave].stalls.add(stall, slot);
                    }
                }
            }
            if now - last > STUCK {
                let waiting = self.waves.iter().find(|w| !w.is_done());
                let step = waiting.and_then(|w| w.steps.get(w.at.saturating_sub(1)));
                return Err((now, step.map_or(0, |s| s.instruction as usize)));
            }
            now += 1;
        }
        let ends = self.waves.iter().flat_map(|w| w.issued.last());
        Ok(ends.map(|issued| issued.end).max().unwrap_or(0))
    }

    /// Lets a wave issue its next instruction, or says what it waits for.
    fn attempt(&mut self, wave: usize, now: u64, used: &mut [bool; 6]) -> Result<(), Stall> {
        let state = &mut self.waves[wave];
        if state.at_barrier {
            return Err(Stall::Barrier);
        }
        if state.from > now {
            return Err(state.until.unwrap_or(Stall::Nop));
        }
        let step = state.steps[state.at];
        let plans = self.plans;
        let plan = &plans[step.instruction as usize];
        state.vector_done(now);
        state.lds.retain(|done| *done > now);
        if let Action::Wait(wait) = &plan.action {
            let over = |left: usize, most: Option<u8>| most.is_some_and(|most| left > most.into());
            if over(state.vector.len(), wait.vmcnt) {
                return Err(Stall::VectorWait);
            }
            if over(state.lds.len(), wait.lgkmcnt) {
                return Err(Stall::LdsWait);
            }
        }
        state.scoreboard.ready(plan, now)?;
        let simd = state.simd;
        let unit = &self.units[simd];
        unit.free(plan, &state.scoreboard, now, self.machine)?;
        let (counts_lds, counts_vector) = counters(&plan.action);
        if counts_lds && state.lds.len() >= self.machine.lgkmcnt as usize
            || counts_vector && state.vector.len() >= self.machine.vmcnt as usize
        {
            return Err(Stall::CounterFull);
        }
        if plan.port != Port::None && used[plan.port as usize] {
            return Err(Stall::Arbitration);
        }
        match &plan.action {
            Action::Lds { .. } if !self.lds.has_room(simd, now, self.machine) => {
                return Err(Stall::LdsQueue);
            }
            Action::Memory { class, .. } => {
                self.memory.accepts(simd, now, *class, self.machine)?;
            }
            _ => {}
        }
        used[plan.port as usize] = true;
        self.issue(wave, step, now);
        Ok(())
    }

    fn issue(&mut self, wave: usize, step: Step, now: u64) {
        let plans = self.plans;
        let plan = &plans[step.instruction as usize];
        let machine = self.machine;
        let bank_cycles = match &plan.action {
            Action::Lds { .. } => self.bank_cycles(step),
            _ => 0,
        };
        let state = &mut self.waves[wave];
        let simd = state.simd;
        let slot = u64::from(machine.slot);
        let unit = &mut self.units[simd];
        let mut end = unit.start(plan, &mut state.scoreboard, now, machine);
        let mut next = now + slot;
        let mut until = None;
        match &plan.action {
            Action::Lds { bytes, .. } => {
                let cost = Cost {
                    bytes: *bytes,
                    bank_cycles,
                };
                end = self.lds.access(simd, now, cost, machine);
                state.lds.push(end);
            }
            Action::Memory { bytes, class } => {
                let bytes = match step.detail {
                    Detail::Bytes(bytes) => bytes,
                    _ => *bytes,
                };
                end = self.memory.access(simd, now, *class, bytes, machine);
                if *class == MemoryClass::Copy {
                    end = self.lds.write_copy(end, bytes, machine);
                }
                state.vector_push(end);
                if *class == MemoryClass::Flat {
                    state.lds.push(end);
                }
            }
            Action::ScalarLoad => {
                end = now + u64::from(machine.scalar_latency);
                state.lds.push(end);
            }
            Action::Priority(priority) => state.priority = *priority,
            Action::Idle(cycles) => {
                next = now + u64::from(*cycles);
                end = next;
                until = Some(Stall::Nop);
            }
            Action::Branch => {
                let after = state.steps.get(state.at + 1).map(|s| s.instruction);
                if after.is_some_and(|after| after != step.instruction + 1) {
                    next = now + u64::from(machine.taken_branch);
                    end = next;
                    until = Some(Stall::Fetch);
                }
            }
            Action::Barrier => state.at_barrier = true,
            Action::Vector { .. }
            | Action::Matrix { .. }
            | Action::Wait(_)
            | Action::End
            | Action::Plain => {}
        }
        state.take(step, now, end, next, until, &mut self.instructions);
        if matches!(plan.action, Action::Barrier) {
            self.meet(now);
        }
    }

    /// Lets the waves at the barrier go on if all have come; those that have ended count as
    /// come.
    fn meet(&mut self, now: u64) {
        if !self.waves.iter().all(|w| w.at_barrier || w.is_done()) {
            return;
        }
        let release = now + u64::from(self.machine.barrier);
        for wave in self.waves.iter_mut().filter(|w| w.at_barrier) {
            wave.at_barrier = false;
            wave.from = release;
            wave.until = Some(Stall::Barrier);
            if let Some(issued) = wave.issued.last_mut() {
                issued.end = release;
            }
        }
    }

    /// How long an access holds the banks.
    fn bank_cycles(&mut self, step: Step) -> u32 {
        let gfx950 = self.machine.is_gfx950();
        let Action::Lds { accesses, .. } = &self.plans[step.instruction as usize].action else {
            return 0;
        };
        let least = || {
            let each = accesses.iter();
            each.map(|a| least_bank_cycles(gfx950, a.direction, a.width))
                .sum()
        };
        let Detail::Lanes(index) = step.detail else {
            return least();
        };
        let Some(lanes) = self.trace.lanes(index) else {
            return least();
        };
        *self
            .banks
            .entry((step.instruction, index))
            .or_insert_with(|| {
                let each = accesses.iter();
                each.map(|a| bank_cycles(gfx950, a.direction, a.width, lanes, a.offset))
                    .sum()
            })
    }

    fn finish(self, cycles: u64) -> Timing {
        let waves = self.waves.into_iter().map(|wave| WaveTiming {
            simd: wave.simd,
            issued: wave.issued,
        });
        Timing {
            arch: self.machine.arch,
            cycles,
            waves: waves.collect(),
            kinds: self.plans.iter().map(|plan| plan.kind).collect(),
            stalls: self.instructions,
            matrix_busy: self.units.iter().map(|u| u.matrix_busy).collect(),
            vector_busy: self.units.iter().map(|u| u.vector_busy).collect(),
            bank_busy: self.lds.bank_busy,
            l1_busy: self.memory.l1_busy,
            memory_bytes: self.memory.bytes,
        }
    }
}

impl Wave<'_> {
    fn is_done(&self) -> bool {
        self.at >= self.steps.len() && !self.at_barrier
    }

    /// Notes that the next instruction was issued.
    fn take(
        &mut self,
        step: Step,
        now: u64,
        end: u64,
        next: u64,
        until: Option<Stall>,
        instructions: &mut [Stalls],
    ) {
        let stalls = std::mem::take(&mut self.stalls);
        // What follows a barrier, a nop or a branch waits for it: that is theirs.
        let own = |stall: Stall| matches!(stall, Stall::Barrier | Stall::Nop | Stall::Fetch);
        for (stall, cycles) in stalls.sorted() {
            let before = self.issued.last().filter(|_| own(stall));
            let owner = before.map_or(step.instruction, |before| before.instruction);
            if let Some(entry) = instructions.get_mut(owner as usize) {
                entry.add(stall, cycles);
            }
        }
        self.issued.push(Issued {
            instruction: step.instruction,
            since: self.since.max(self.from),
            issue: now,
            end,
            stall: Stall::ALL
                .into_iter()
                .filter(|stall| !own(*stall) && stalls.of(*stall) > 0)
                .max_by_key(|stall| stalls.of(*stall)),
        });
        self.at += 1;
        self.since = now + (next - now).min(4);
        self.from = next;
        self.until = until;
    }

    /// Vector memory is counted back in order.
    fn vector_push(&mut self, end: u64) {
        let before = self.vector.back().copied().unwrap_or(0);
        self.vector.push_back(end.max(before));
    }

    fn vector_done(&mut self, now: u64) {
        while self.vector.front().is_some_and(|done| *done <= now) {
            self.vector.pop_front();
        }
    }
}

/// Whether an instruction is counted by `lgkmcnt` and by `vmcnt`.
fn counters(action: &Action) -> (bool, bool) {
    match action {
        Action::Lds { .. } | Action::ScalarLoad => (true, false),
        Action::Memory { class, .. } => (*class == MemoryClass::Flat, true),
        _ => (false, false),
    }
}
