//! One block: its waves in an order chosen by a seed, its LDS, its barriers.

use std::sync::atomic::{AtomicU64, Ordering};
use std::sync::{Mutex, MutexGuard, PoisonError};

use rustc_hash::FxHashMap;

use crate::asm::{Instruction, Register, Wait};
use crate::cycles::{Detail, Trace};
use crate::isa::{Format, Opcode};

use super::Arch;
use super::code::{Busy, Code};
use super::fault::Fault;
use super::memory::Memory;
use super::order::{Knowledge, LdsShadow, Unit};
use super::queue::{LDS_MOST, Landing, Pending, Queues, VECTOR_MOST};
use super::random::Random;
use super::report::{Finding, Findings, Kind};
use super::suspects::{Cell, Reads, Suspects};
use super::unknown::Unknown;
use super::wave::Wave;

/// What all blocks of a run share.
#[derive(Debug)]
pub(super) struct Shared<'a> {
    pub code: &'a Code<'a>,
    pub arch: Arch,
    pub landing: Landing,
    pub memory: &'a Mutex<Memory>,
    /// The most instructions that the waves of one block may run.
    pub steps: u64,
    /// The block whose steps are noted.
    pub traced: Option<u32>,
    /// Blocks may wait for each other: none runs for long at a time.
    pub turns: bool,
    /// Counts what a wave that asks again and again may be waiting for.
    pub changes: AtomicU64,
    /// Loads whose values are followed.
    pub suspects: Option<&'a Suspects>,
    /// Bytes that what is noted while the blocks run may take.
    pub room: Option<u64>,
}

impl Shared<'_> {
    pub fn memory(&self) -> MutexGuard<'_, Memory> {
        // A run that panicked elsewhere leaves memory as good as it was.
        self.memory.lock().unwrap_or_else(PoisonError::into_inner)
    }
}

/// A block that runs.
#[derive(Debug)]
pub(super) struct Block<'a> {
    pub shared: &'a Shared<'a>,
    pub id: u32,
    pub waves: Vec<Running>,
    pub lds: Vec<u8>,
    pub shadow: LdsShadow,
    /// What waves knew that changed a place of LDS atomically.
    pub handed: FxHashMap<u64, Knowledge>,
    pub findings: Findings,
    /// What is wrong if it is used.
    pub suspects: Suspects,
    /// The instructions that some wave ran.
    pub ran: Vec<bool>,
    /// What its waves did, where that is asked for.
    pub trace: Option<Trace>,
    random: Random,
    steps: u64,
    /// The changes when it waited last, and how often it has since.
    asked: (u64, u32),
}

/// One wave of it.
#[derive(Debug)]
pub(super) struct Running {
    pub wave: Wave,
    pub knows: Knowledge,
    pub queues: Queues,
    pub busy: Busy,
    /// Registers that hold what is not known.
    pub unknown: Unknown,
    /// Private memory, lane after lane.
    pub scratch: Vec<u8>,
    at_barrier: bool,
    /// Instructions since it slept.
    awake: u64,
}

/// Instructions of a block at a time, where blocks may wait for each other.
const TURN: u64 = 1 << 12;

/// Who asks so often, while nothing changes, asks for ever.
const PATIENCE: u32 = 1 << 14;

/// A wave that runs for so long without asking changes something: itself.
const BUSY: u64 = 1 << 12;

/// How a block went on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Progress {
    Done,
    /// It sleeps, or ran for long: others may have to run before it can go on.
    Waiting,
    /// Nothing more can be said of it; the findings say why.
    Stopped,
}

/// What an instruction does to its wave's way.
enum Flow {
    On,
    Goto(usize),
    Barrier,
    Sleep,
    End,
}

impl<'a> Block<'a> {
    pub fn new(
        shared: &'a Shared<'a>,
        id: u32,
        waves: Vec<Wave>,
        lds_bytes: usize,
        scratch_bytes: usize,
        seed: u64,
    ) -> Self {
        let count = waves.len() as u32;
        let running = |wave: Wave| Running {
            knows: Knowledge::new(count),
            queues: Queues::new(wave.id),
            busy: Busy::new(),
            unknown: Unknown::default(),
            scratch: vec![0; scratch_bytes * super::LANES],
            at_barrier: false,
            awake: 0,
            wave,
        };
        Self {
            shared,
            id,
            waves: waves.into_iter().map(running).collect(),
            lds: vec![0; lds_bytes],
            shadow: LdsShadow::new(lds_bytes, count),
            handed: FxHashMap::default(),
            findings: Findings::default(),
            suspects: Suspects::default(),
            ran: vec![false; shared.code.accesses.len()],
            trace: (shared.traced == Some(id)).then(|| Trace::new(count as usize)),
            random: Random::new(seed ^ u64::from(id).wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            steps: 0,
            asked: (0, 0),
        }
    }

    /// Runs until all waves have ended, one sleeps, its turn is over, or nothing can go on.
    pub fn run(&mut self) -> Progress {
        let turn = match self.shared.turns {
            true => self.steps + TURN,
            false => u64::MAX,
        };
        loop {
            if self.steps > turn {
                return self.ask_again();
            }
            let able: Vec<usize> = (0..self.waves.len())
                .filter(|w| !self.waves[*w].wave.ended && !self.waves[*w].at_barrier)
                .collect();
            let Some(w) = self.random.pick(&able) else {
                return match self.waves.iter().all(|r| r.wave.ended) {
                    true => Progress::Done,
                    false => self.deadlock(),
                };
            };
            let burst = 1 + self.random.below(64);
            for _ in 0..burst {
                self.steps += 1;
                if self.steps > self.shared.steps {
                    let at = self.waves[w].wave.pc;
                    let reason = format!("the block ran {} instructions and goes on", self.steps);
                    self.find(w, Kind::Endless, at, None, reason);
                    return Progress::Stopped;
                }
                let at = self.waves[w].wave.pc;
                match self.step(w) {
                    Ok(Flow::On) => {}
                    Ok(Flow::Goto(to)) => self.waves[w].wave.pc = to,
                    Ok(Flow::Sleep) => {
                        self.waves[w].wave.pc = at + 1;
                        self.waves[w].awake = 0;
                        self.land_some();
                        self.land_at_barrier();
                        return self.ask_again();
                    }
                    Ok(Flow::Barrier | Flow::End) => break,
                    Err(fault) => {
                        self.find(w, Kind::Fault, at, None, fault.to_string());
                        return Progress::Stopped;
                    }
                }
            }
            self.land_some();
            if let Some(text) = self.outgrown() {
                let at = self.waves[w].wave.pc;
                self.find(w, Kind::OutOfMemory, at, None, text);
                return Progress::Stopped;
            }
        }
    }

    /// It gives way to others, for which some wave of it may be waiting.
    fn ask_again(&mut self) -> Progress {
        let changes = self.shared.changes.load(Ordering::Relaxed);
        match self.asked.0 == changes {
            true => self.asked.1 += 1,
            false => self.asked = (changes, 0),
        }
        if self.asked.1 < PATIENCE {
            return Progress::Waiting;
        }
        let asks = |w: &usize| !self.waves[*w].wave.ended && !self.waves[*w].at_barrier;
        if let Some(w) = (0..self.waves.len()).find(asks) {
            let at = self.waves[w].wave.pc;
            let reason = "it waits for what nobody does".to_owned();
            self.find(w, Kind::Deadlock, at, None, reason);
        }
        Progress::Stopped
    }

    /// What waves at a barrier have under way is done some time, and others may wait for it.
    fn land_at_barrier(&mut self) {
        for w in 0..self.waves.len() {
            if self.waves[w].at_barrier {
                for unit in [Unit::Scalar, Unit::Lds, Unit::Vector] {
                    self.land_first(w, unit, u64::MAX);
                }
            }
        }
    }

    /// Says so where the run has noted more than there is memory for.
    fn outgrown(&self) -> Option<String> {
        let room = self.shared.room?;
        let trace = self.trace.as_ref().map_or(0, Trace::bytes);
        let notes = self.shared.memory().grown() + trace;
        (notes > room).then(|| {
            format!("who read what, and what was run, takes {notes} bytes so far, and there is no memory for more")
        })
    }

    fn deadlock(&mut self) -> Progress {
        let waiting: Vec<usize> = (0..self.waves.len())
            .filter(|w| self.waves[*w].at_barrier)
            .collect();
        if let Some(w) = waiting.first() {
            let at = self.waves[*w].wave.pc.saturating_sub(1);
            let reason = format!("{} waves wait here for ever", waiting.len());
            self.find(*w, Kind::Deadlock, at, None, reason);
        }
        Progress::Stopped
    }

    /// Runs one instruction of a wave.
    fn step(&mut self, w: usize) -> Result<Flow, Fault> {
        let code = self.shared.code;
        let arch = self.shared.arch;
        let at = self.waves[w].wave.pc;
        let instruction = code.instruction(at)?;
        self.ran[at] = true;
        let awake = &mut self.waves[w].awake;
        *awake += 1;
        if *awake == BUSY {
            *awake = 0;
            self.shared.changes.fetch_add(1, Ordering::Relaxed);
        }
        if self.waves[w].busy.any() {
            self.check_busy(w, at, instruction);
        }
        if self.waves[w].unknown.any() {
            self.follow(w, at, instruction);
        }
        if self.trace.is_some() && !reaches_memory(instruction) {
            self.note(w, at, Detail::None);
        }
        let wave = &mut self.waves[w].wave;
        wave.pc = at + 1;
        match instruction.op.format() {
            Format::Sopp => return self.control(w, at, instruction),
            Format::Smem => self.scalar_memory(w, at, instruction)?,
            Format::Ds => self.lds_access(w, at, instruction)?,
            Format::Mubuf | Format::Global | Format::Scratch | Format::Flat => {
                self.vector_memory(w, at, instruction)?;
            }
            // Code lies at 0.
            _ if instruction.op == Opcode::s_getpc_b64 => {
                wave.set_scalar64(instruction.destination(0)?, 0)?;
            }
            _ => wave.compute(instruction, arch)?,
        }
        Ok(Flow::On)
    }

    /// Branches, waits, barriers.
    fn control(&mut self, w: usize, at: usize, i: &Instruction) -> Result<Flow, Fault> {
        let wave = &mut self.waves[w].wave;
        let branch = match i.op {
            Opcode::s_branch => true,
            Opcode::s_cbranch_scc0 => !wave.scc,
            Opcode::s_cbranch_scc1 => wave.scc,
            Opcode::s_cbranch_vccz => wave.vcc == 0,
            Opcode::s_cbranch_vccnz => wave.vcc != 0,
            Opcode::s_cbranch_execz => wave.exec == 0,
            Opcode::s_cbranch_execnz => wave.exec != 0,
            Opcode::s_waitcnt => {
                if let Some(wait) = i.wait() {
                    self.wait(w, wait);
                }
                return Ok(Flow::On);
            }
            Opcode::s_barrier => {
                self.waves[w].at_barrier = true;
                self.meet();
                return Ok(Flow::Barrier);
            }
            Opcode::s_endpgm | Opcode::s_endpgm_saved => {
                self.drain(w);
                self.waves[w].wave.ended = true;
                self.meet();
                return Ok(Flow::End);
            }
            Opcode::s_sleep => return Ok(Flow::Sleep),
            Opcode::s_setprio => {
                let level = i
                    .operands
                    .first()
                    .map(|o| wave.scalar32(o, crate::isa::Ty::b32));
                wave.priority = level.transpose()?.unwrap_or(0) as u8;
                return Ok(Flow::On);
            }
            Opcode::s_nop | Opcode::s_wakeup | Opcode::s_icache_inv | Opcode::s_sendmsg => {
                return Ok(Flow::On);
            }
            Opcode::s_trap => return Err(Fault::Trap),
            _ => return Err(Fault::Unsupported),
        };
        match branch {
            true => Ok(Flow::Goto(self.shared.code.target(at)?)),
            false => Ok(Flow::On),
        }
    }

    /// Lets the waves go on where all that have not ended wait at a barrier: each then knows what
    /// every one knew.
    fn meet(&mut self) {
        let all = |r: &Running| r.at_barrier || r.wave.ended;
        if !self.waves.iter().all(all) || self.waves.iter().all(|r| r.wave.ended) {
            return;
        }
        let mut joint = Knowledge::new(self.waves.len() as u32);
        for running in self.waves.iter().filter(|r| r.at_barrier) {
            joint.join(&running.knows);
        }
        for running in self.waves.iter_mut().filter(|r| r.at_barrier) {
            running.knows = joint.clone();
            running.at_barrier = false;
        }
        self.shared.changes.fetch_add(1, Ordering::Relaxed);
    }

    /// Retires what a wait is for.
    fn wait(&mut self, w: usize, wait: Wait) {
        for (unit, count) in self.waves[w].queues.waited(wait) {
            for _ in 0..count {
                self.retire(w, unit);
            }
        }
    }

    /// Everything that a wave has under way is done.
    fn drain(&mut self, w: usize) {
        self.wait(w, Wait::vm(0).and(Wait::lgkm(0)));
    }

    fn retire(&mut self, w: usize, unit: Unit) {
        let Some(mut pending) = self.waves[w].queues.of(unit).pop_front() else {
            return;
        };
        if !pending.landed {
            self.land(w, &mut pending);
        }
        let running = &mut self.waves[w];
        running.knows.learn(pending.op.stamp);
        if let Some(learned) = &pending.learned {
            running.knows.join(learned);
        }
        running
            .busy
            .remove(&self.shared.code.accesses[pending.op.at].writes);
    }

    fn note(&mut self, w: usize, at: usize, detail: Detail) {
        if let Some(trace) = &mut self.trace {
            trace.push(w, at, detail);
        }
    }

    /// Notes a memory instruction with what its time depends on.
    fn note_access(&mut self, w: usize, pending: &Pending) {
        let Ok(instruction) = self.shared.code.instruction(pending.op.at) else {
            return;
        };
        let Some(trace) = &mut self.trace else { return };
        let detail = match instruction.op.format() {
            Format::Ds => {
                let addresses = pending.addresses.map(|address| address as u32);
                trace.lanes_detail(addresses, pending.exec)
            }
            Format::Smem => Detail::None,
            _ => Detail::Bytes(pending.pieces() * 64),
        };
        trace.push(w, pending.op.at, detail);
    }

    /// Takes an operation into its queue.
    pub(super) fn issue(&mut self, w: usize, unit: Unit, mut pending: Pending) {
        if self.trace.is_some() {
            self.note_access(w, &pending);
        }
        let writes = &self.shared.code.accesses[pending.op.at].writes;
        self.waves[w].busy.add(writes);
        let queue = self.waves[w].queues.of(unit);
        // What is in front of it lands first.
        let early = self.shared.landing == Landing::Early && queue.iter().all(|p| p.landed);
        if early {
            self.land(w, &mut pending);
        }
        self.waves[w].queues.of(unit).push_back(pending);
        self.hold_back(w, unit);
    }

    /// Waits for the first operations where more are under way than are counted.
    fn hold_back(&mut self, w: usize, unit: Unit) {
        let most = match unit {
            Unit::Vector => VECTOR_MOST,
            Unit::Lds => LDS_MOST,
            Unit::Scalar => return,
        };
        while self.waves[w].queues.of(unit).len() > most {
            self.retire(w, unit);
        }
    }

    /// Has a counter count an operation that another one does.
    pub(super) fn count(&mut self, w: usize, unit: Unit, pending: Pending) {
        let writes = &self.shared.code.accesses[pending.op.at].writes;
        self.waves[w].busy.add(writes);
        self.waves[w].queues.of(unit).push_back(pending);
        self.hold_back(w, unit);
    }

    /// Lets some operations of all waves land, each queue's in order.
    fn land_some(&mut self) {
        if self.shared.landing != Landing::Random {
            return;
        }
        for w in 0..self.waves.len() {
            for unit in [Unit::Scalar, Unit::Lds, Unit::Vector] {
                if self.waves[w].queues.of(unit).is_empty() {
                    continue;
                }
                let count = self.random.below(4);
                self.land_first(w, unit, count);
            }
        }
    }

    fn land_first(&mut self, w: usize, unit: Unit, count: u64) {
        for _ in 0..count {
            let queue = self.waves[w].queues.of(unit);
            let Some(index) = queue.iter().position(|p| !p.landed) else {
                return;
            };
            let at = queue[index].op.at;
            let knows = queue[index].op.knows.clone();
            let stamp = queue[index].op.stamp;
            let empty = Pending::new(knows.operation(stamp, at, false), 0);
            let mut pending = std::mem::replace(&mut queue[index], empty);
            self.land(w, &mut pending);
            self.waves[w].queues.of(unit)[index] = pending;
        }
    }

    fn land(&mut self, w: usize, pending: &mut Pending) {
        pending.landed = true;
        let Ok(instruction) = self.shared.code.instruction(pending.op.at) else {
            return;
        };
        if !self.shared.code.is_plain_load(pending.op.at) {
            self.shared.changes.fetch_add(1, Ordering::Relaxed);
        }
        let done = match pending.op.stamp.agent.unit() {
            Unit::Scalar => self.land_scalar(w, pending, instruction),
            Unit::Lds => self.land_lds(w, pending, instruction),
            Unit::Vector => {
                self.land_earlier(w, pending);
                self.land_vector(w, pending, instruction)
            }
        };
        if let Err(fault) = done {
            self.find(w, Kind::Fault, pending.op.at, None, fault.to_string());
        }
    }

    /// Lets operations of other waves land that are known to have been issued before this one, as
    /// far as they and it may touch the same memory: the waves of a block go through one cache.
    fn land_earlier(&mut self, w: usize, pending: &Pending) {
        let code = self.shared.code;
        let stores = code.stores[pending.op.at];
        for other in 0..self.waves.len() {
            if other == w {
                continue;
            }
            let known = pending.op.knows.last_issued(other as u32);
            let queue = self.waves[other].queues.vector.iter();
            let before = queue.filter(|p| !p.landed && p.op.stamp.time <= known);
            let mut count = 0;
            for (number, earlier) in before.enumerate() {
                if stores || code.stores[earlier.op.at] {
                    count = number as u64 + 1;
                }
            }
            self.land_first(other, Unit::Vector, count);
        }
    }

    /// Finds registers that are used while an operation works on them. Loads of one queue come
    /// back in order, so that one may write what another writes.
    fn check_busy(&mut self, w: usize, at: usize, instruction: &Instruction) {
        let access = &self.shared.code.accesses[at];
        let running = &self.waves[w];
        let unit = unit_of(instruction);
        let is_busy = |r: &&Register| running.busy.is(**r);
        let reads = access.reads.iter().filter(is_busy).map(|r| (*r, false));
        let writes = access.writes.iter().filter(is_busy).map(|r| (*r, true));
        let mut found = None;
        for (register, write) in reads.chain(writes) {
            let code = self.shared.code;
            let loads = |of: Unit, p: &Pending| {
                let writes = &code.accesses[p.op.at].writes;
                writes.contains(&register) && !(write && unit == Some(of) && of != Unit::Scalar)
            };
            let queues = &running.queues;
            let by = queues.lds.iter().filter(|p| loads(Unit::Lds, p));
            let by = by.chain(queues.vector.iter().filter(|p| loads(Unit::Vector, p)));
            let mut by = by.chain(queues.scalar.iter().filter(|p| loads(Unit::Scalar, p)));
            if let Some(load) = by.next() {
                found = Some((register, load.op.at));
                break;
            }
        }
        if let Some((register, load)) = found {
            let reason = format!("{register} is used while a load to it is under way");
            self.find(w, Kind::Pending, at, Some(load), reason);
        }
    }

    pub(super) fn find(
        &mut self,
        w: usize,
        kind: Kind,
        at: usize,
        other: Option<usize>,
        reason: String,
    ) {
        let finding = self.finding(w, kind, at, other, reason);
        self.findings.push(finding);
    }

    pub(super) fn finding(
        &self,
        w: usize,
        kind: Kind,
        at: usize,
        other: Option<usize>,
        reason: String,
    ) -> Finding {
        Finding {
            kind,
            at,
            other,
            block: self.id,
            wave: w as u32,
            reason,
        }
    }

    /// Something is found if what an instruction loaded in a block is used. What is no load to
    /// registers is used.
    pub(super) fn suspect(
        &mut self,
        load: usize,
        block: u32,
        reads: Reads,
        cell: Cell,
        finding: Finding,
    ) {
        match self.shared.code.is_plain_load(load) {
            true => self.suspects.note(block, reads, cell, finding),
            false => self.findings.push(finding),
        }
    }
}

/// Whether an instruction becomes an operation that is issued.
fn reaches_memory(instruction: &Instruction) -> bool {
    let scalar_cache = instruction.op.format() == Format::Smem && instruction.op.is_cache();
    unit_of(instruction).is_some() && instruction.op != Opcode::ds_nop && !scalar_cache
}

/// The queue that an instruction's operation goes to.
fn unit_of(instruction: &Instruction) -> Option<Unit> {
    match instruction.op.format() {
        Format::Smem => Some(Unit::Scalar),
        Format::Ds => Some(Unit::Lds),
        Format::Mubuf | Format::Global | Format::Scratch | Format::Flat => Some(Unit::Vector),
        _ => None,
    }
}
