//! The clock: when the waves of a SIMD issue their instructions, iteration after iteration.
//!
//! A wave issues in order, one instruction a slot. Of waves that can issue at one time those of higher
//! priority come first, then the older. Parameters are those of the model of compiled kernels, by their
//! names in `docs/amd-cycles.md`.

use std::cmp::Reverse;
use std::collections::VecDeque;

use tilewright_ir::Machine;

use super::program::{Instruction, Program};

/// `memory_latency`.
pub(super) const COPY: u64 = 500;
/// `slot`: between two instructions of a wave, and of a kind.
const SLOT: u64 = 4;
/// `barrier`: from the last wave's arrival until all go on.
const BARRIER: u64 = 12;
/// `lds_latency`.
const READ: u64 = 48;
/// `lgkmcnt`: reads that a wave has under way.
const READS: usize = 15;
/// `lds_write_bytes`, of stores and of copies that land.
const WRITTEN: u64 = 128;
/// `memory_queue`: instructions that wait for memory.
const QUEUE: usize = 10;
/// `memory_in_flight`: instructions that memory has under way.
const UNDER_WAY: usize = 50;
/// `copy_issue`: between two copies of a pair of SIMDs.
const COPY_ISSUE: u64 = 11;
/// `result_slots`: until what was multiplied can be computed with.
const RESULT: u64 = 5 * SLOT;
/// Iterations that are run at most beyond those that fill the pipeline.
const MOST: usize = 8;
/// Instances of a read that are told apart: those that run ahead are of other iterations.
const INSTANCES: usize = 4;

/// A compute unit with the waves of a block.
pub(super) struct Clock<'a> {
    program: &'a Program,
    waves: Vec<Wave>,
    simds: Vec<Simd>,
    lds: Lds,
    memory: Memory,
    /// Of a wave's bytes, for those of all SIMDs that one stands for.
    rates: Rates,
}

struct Wave {
    simd: usize,
    /// The next instruction, and when it can issue at the earliest.
    at: usize,
    from: u64,
    priority: u8,
    waits: bool,
    /// When each iteration began.
    began: Vec<u64>,
    /// When reads and stores were done, by those that are waited for together, of the last iterations.
    done: Vec<[u64; INSTANCES]>,
    /// When reads and stores under way are done, and loads.
    lds: VecDeque<u64>,
    loads: VecDeque<u64>,
    multiplied: u64,
}

#[derive(Clone, Default)]
struct Simd {
    matrix_free: u64,
    vector_free: u64,
    /// When the access before has left the queue.
    lds_room: u64,
    lds_port: u64,
    memory_port: u64,
}

/// Shared memory serves one access after another.
#[derive(Default)]
struct Lds {
    free: u64,
    /// Copies that land, and for how long each takes shared memory.
    landing: VecDeque<(u64, u64)>,
}

/// A queue, a width, a latency.
#[derive(Default)]
struct Memory {
    free: u64,
    returned: u64,
    issued: u64,
    /// When those in the queue leave it, and when those under way are done.
    starts: VecDeque<u64>,
    ends: VecDeque<u64>,
}

struct Rates {
    /// SIMDs that one stands for.
    simds: u64,
    /// Bytes a cycle of what shared memory hands out to one, and of what memory brings to all.
    read: u64,
    memory: u64,
}

impl<'a> Clock<'a> {
    /// The waves of a block, of which the second half is a barrier behind where they are apart.
    pub fn new(machine: &Machine, threads: u32, program: &'a Program, apart: bool) -> Clock<'a> {
        let waves = threads.div_ceil(machine.warp_size);
        let own = waves.div_ceil(machine.simds).max(1) as usize;
        // Halves of few waves have SIMDs of their own.
        let (simds, own) = match apart && own == 1 {
            true => (2, 2),
            false => (1, own),
        };
        let stands_for = machine.simds.min(waves).max(1) as usize / simds;
        // Half of the SIMDs share a way to all banks.
        let ways = match stands_for {
            0 | 1 => 2,
            2 if simds == 2 => 2,
            _ => 4,
        };
        let wave = |nth: usize| Wave {
            simd: nth % simds,
            at: 0,
            from: 0,
            priority: 0,
            waits: apart && nth >= own / 2,
            began: vec![0],
            done: vec![[0; INSTANCES]; program.reads as usize],
            lds: VecDeque::new(),
            loads: VecDeque::new(),
            multiplied: 0,
        };
        Clock {
            program,
            waves: (0..own).map(wave).collect(),
            simds: vec![Simd::default(); simds],
            lds: Lds::default(),
            memory: Memory::default(),
            rates: Rates {
                simds: stands_for.max(1) as u64,
                read: (u64::from(4 * machine.shared.banks) / ways).max(1),
                memory: u64::from(machine.l2_rate).max(1),
            },
        }
    }

    /// Cycles of the matrix unit of a SIMD in an iteration.
    pub fn multiplies(&self) -> u64 {
        let cycles = self.program.instructions.iter().map(|i| match i {
            Instruction::Multiply { cycles } => u64::from(*cycles),
            _ => 0,
        });
        cycles.sum::<u64>() * (self.waves.len() / self.simds.len()) as u64
    }

    /// Cycles of an iteration: run until they are as many as those before.
    pub fn iteration(&mut self) -> u64 {
        if self.program.instructions.is_empty() {
            return 0;
        }
        let filled = self.program.ahead as usize + 1;
        let mut done = 0;
        loop {
            let next = self.next();
            let Some((wave, now)) = next else {
                return 0;
            };
            self.issue(wave, now);
            let behind = |wave: &Wave| wave.began.len() - 1;
            // Where nobody meets, older waves may leave the others nothing.
            if behind(&self.waves[wave]) > filled + 2 * MOST {
                let all: usize = self.waves.iter().map(behind).sum();
                return now * self.waves.len() as u64 / all as u64;
            }
            let least = self.waves.iter().map(behind).min().unwrap_or(0);
            if least == done {
                continue;
            }
            done = least;
            if done < filled + 2 {
                continue;
            }
            let took = |wave: &Wave, nth: usize| wave.began[nth] - wave.began[nth - 1];
            let as_before = |wave: &Wave| took(wave, done) == took(wave, done - 1);
            if self.waves.iter().all(as_before) || done >= filled + MOST {
                let both = |wave: &Wave| wave.began[done] - wave.began[done - 2];
                return self.waves.iter().map(both).max().unwrap_or(0) / 2;
            }
        }
    }

    /// The wave that issues next, and when.
    fn next(&self) -> Option<(usize, u64)> {
        let ready = |wave: &usize| !self.waves[*wave].waits;
        let times = (0..self.waves.len()).filter(ready).map(|wave| {
            let slot = self.ready(&self.waves[wave]).next_multiple_of(SLOT);
            (slot, Reverse(self.waves[wave].priority), wave)
        });
        times.min().map(|(now, _, wave)| (wave, now))
    }

    /// When a wave can issue its next instruction.
    fn ready(&self, wave: &Wave) -> u64 {
        let simd = &self.simds[wave.simd];
        let own = match self.program.instructions[wave.at] {
            Instruction::Await { first, end } => {
                let needs = &self.program.needs[first as usize..end as usize];
                let iteration = wave.began.len() - 1;
                let there = needs.iter().map(|need| {
                    let of = (iteration + INSTANCES - need.back as usize) % INSTANCES;
                    wave.done[need.of as usize][of]
                });
                there.max().unwrap_or(0)
            }
            Instruction::Multiply { .. } => simd.matrix_free.max(simd.vector_free),
            Instruction::Compute { of_sums, .. } => {
                let sums = if of_sums { wave.multiplied } else { 0 };
                sums.max(simd.vector_free)
            }
            Instruction::Read { .. } | Instruction::Write { .. } => {
                let counted = fallen_to(&wave.lds, READS - 1);
                counted.max(simd.lds_room).max(simd.lds_port)
            }
            Instruction::Load { lands, .. } => {
                let each = self.rates.simds as usize;
                let memory = &self.memory;
                let queued = fallen_to(&memory.starts, (QUEUE - 1) / each);
                let under_way = fallen_to(&memory.ends, (UNDER_WAY - 1) / each);
                let issued = if lands { memory.issued } else { 0 };
                queued.max(under_way).max(issued).max(simd.memory_port)
            }
            Instruction::Wait { at_most } => fallen_to(&wave.loads, at_most as usize),
            Instruction::Scalar | Instruction::Priority(_) | Instruction::Barrier => 0,
        };
        own.max(wave.from)
    }

    fn issue(&mut self, at: usize, now: u64) {
        let wave = &mut self.waves[at];
        let simd = &mut self.simds[wave.simd];
        wave.from = now + SLOT;
        let all = self.rates.simds;
        let mut meets = false;
        match self.program.instructions[wave.at] {
            Instruction::Multiply { cycles } => {
                simd.vector_free = now + SLOT;
                simd.matrix_free = now + u64::from(cycles);
                wave.multiplied = simd.matrix_free + RESULT;
            }
            Instruction::Compute { cycles, .. } => simd.vector_free = now + u64::from(cycles),
            access @ (Instruction::Read { bytes, of } | Instruction::Write { bytes, of }) => {
                let takes = match access {
                    Instruction::Read { .. } => u64::from(bytes) / self.rates.read,
                    _ => u64::from(bytes) * all / WRITTEN,
                };
                let (start, end) = self.lds.access(now, takes);
                simd.lds_room = start;
                simd.lds_port = now + SLOT;
                let iteration = wave.began.len() - 1;
                wave.done[of as usize][iteration % INSTANCES] = end + READ;
                wave.lds.push_back(end + READ);
            }
            Instruction::Load { bytes, lands } => {
                let takes = u64::from(bytes).div_ceil(self.rates.memory);
                let mut end = self.memory.access(now, takes, all);
                simd.memory_port = now + SLOT;
                if lands {
                    self.memory.issued = now + COPY_ISSUE * all.div_ceil(2);
                    let written = u64::from(bytes) * all / WRITTEN;
                    self.lds.landing.push_back((end, written));
                    end += written;
                }
                wave.loads.push_back(end);
            }
            Instruction::Priority(priority) => wave.priority = priority,
            Instruction::Wait { .. } | Instruction::Await { .. } | Instruction::Scalar => {}
            Instruction::Barrier => {
                wave.waits = true;
                meets = true;
            }
        }
        for counted in [&mut wave.lds, &mut wave.loads] {
            while counted.front().is_some_and(|done| *done <= now) {
                counted.pop_front();
            }
        }
        wave.at += 1;
        if wave.at == self.program.instructions.len() {
            wave.at = 0;
            wave.began.push(wave.from);
        }
        if meets && self.waves.iter().all(|wave| wave.waits) {
            for wave in &mut self.waves {
                wave.waits = false;
                wave.from = now + BARRIER;
            }
        }
    }
}

/// When no more than so many are left.
fn fallen_to(times: &VecDeque<u64>, left: usize) -> u64 {
    let last = times.len().checked_sub(left + 1);
    last.map_or(0, |last| times[last])
}

impl Lds {
    /// When an access starts and ends.
    fn access(&mut self, now: u64, takes: u64) -> (u64, u64) {
        while let Some((at, landing)) = self.landing.front().copied()
            && at <= now.max(self.free)
        {
            self.free = self.free.max(at) + landing;
            self.landing.pop_front();
        }
        let start = now.max(self.free);
        self.free = start + takes;
        (start, self.free)
    }
}

impl Memory {
    /// When what an instruction of each of so many SIMDs asks for is there.
    fn access(&mut self, now: u64, takes: u64, simds: u64) -> u64 {
        let start = now.max(self.free);
        self.free = start + takes * simds;
        let there = self.free + COPY + takes;
        self.returned = there.max(self.returned + takes * simds);
        for (times, new) in [(&mut self.starts, start), (&mut self.ends, self.returned)] {
            while times.front().is_some_and(|done| *done <= now) {
                times.pop_front();
            }
            times.push_back(new);
        }
        self.returned
    }
}

#[cfg(test)]
mod tests {
    use tilewright_ir::Target;

    use super::super::program::Need;
    use super::*;

    const BYTES: u32 = 1024;

    /// Cycles of an iteration on gfx950: matrix instructions take 16, what moves bytes moves 1024, `await`
    /// is for all reads before it.
    fn cycles(words: &str, threads: u32, apart: bool) -> u64 {
        let mut instructions = Vec::new();
        let mut needs = Vec::new();
        for word in words.split_whitespace() {
            instructions.push(match word {
                "mma" => Instruction::Multiply { cycles: 16 },
                "await" => Instruction::Await {
                    first: 0,
                    end: needs.len() as u32,
                },
                "read" => {
                    let of = needs.len() as u32;
                    needs.push(Need { of, back: 0 });
                    Instruction::Read { bytes: BYTES, of }
                }
                "copy" => Instruction::Load {
                    bytes: BYTES,
                    lands: true,
                },
                "wait" => Instruction::Wait { at_most: 0 },
                "first" => Instruction::Priority(1),
                "last" => Instruction::Priority(0),
                _ => Instruction::Barrier,
            });
        }
        let program = Program {
            instructions,
            reads: needs.len() as u32,
            needs,
            ahead: 0,
        };
        let machine = Target::Gfx950.machine();
        Clock::new(machine, threads, &program, apart).iteration()
    }

    #[test]
    fn matrix_units_are_busy_where_nothing_is_waited_for() {
        assert_eq!(cycles(&"mma ".repeat(8), 256, false), 128);
        // Nobody meets, so the older wave leaves the other nothing: what both do is counted together.
        let both = cycles(&"mma ".repeat(8), 512, false);
        assert!((240..=256).contains(&both), "{both}");
    }

    /// A read takes a slot, 16 cycles of shared memory and 48 until it is there.
    #[test]
    fn products_wait_for_their_reads() {
        let alone = cycles("read await mma mma mma mma", 256, false);
        assert_eq!(alone, 64 + 4 + 3 * 16 + 4);
        // Of two waves one multiplies while the other reads.
        let both = cycles("read await mma mma mma mma", 512, false);
        assert!(both < alone + 64, "{both}");
    }

    #[test]
    fn halves_read_while_the_others_multiply() {
        let order = "barrier read read barrier first await mma mma mma mma mma mma mma mma last";
        let apart = cycles(order, 512, true);
        let together = cycles(order, 512, false);
        assert!(apart < 2 * 8 * 16 + 2 * 24, "{apart}");
        assert!(together > apart, "{together}");
    }

    #[test]
    fn what_is_copied_and_waited_for_at_once_takes_its_time() {
        let at_once = cycles("copy wait barrier mma", 256, false);
        assert!((COPY..COPY + 150).contains(&at_once), "{at_once}");
        let later = cycles(
            &("copy ".to_string() + &"mma ".repeat(40) + "wait"),
            256,
            false,
        );
        assert_eq!(later, 640);
    }
}
