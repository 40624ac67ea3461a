//! When the waves of a SIMD are through with the entries of an order, iteration after iteration.
//!
//! A wave issues in order. Matrix instructions are issued one after another and go on while the wave does;
//! reads of shared memory are waited for by the products that need them, and leave its queue one after
//! another; what is asked of memory passes its width, and is there some time later. In a woven cluster what
//! is read and copied is issued between matrix instructions, so that these wait for no queue.

use std::collections::VecDeque;

use super::work::{Of, Task, Work};
use super::{Act, Phase};

/// Cycles until what a copy asks for is there, where caches have it (`docs/amd-cycles.md`: the lower end
/// of what was measured).
pub(super) const COPY: u64 = 500;
/// For so long what memory was asked for waits in its queue; what is issued behind more than that waits too
/// (the same: ten instructions of 1 KiB).
const QUEUE: u64 = 160;
/// Until what is read of shared memory is there (the same: measured).
const READ: u64 = 64;
/// From the last wave's arrival at a barrier until all issue again.
const BARRIER: u64 = 32;
/// Between two instructions of a wave.
const SLOT: u64 = 4;
/// Instructions of a copy: two sums that say where from and where to, a move of one of them, itself.
const COPY_SLOTS: u64 = 4;
/// What stands between matrix instructions costs one part in so many of their time (the same: four waves
/// that copy and read so keep matrix units busy for 85.3 % of the time, where the model has 92.8 %).
const WOVEN: u64 = 12;
/// Iterations that fill the pipeline, and those of which the mean is taken.
const FIRST: u32 = 4;
const TAKEN: u32 = 4;

pub(super) struct Clock<'a> {
    work: &'a [Work],
    /// By how many phases the second half of the waves is behind the first.
    lag: usize,
    /// The waves of a SIMD, or of one for each half where these share none.
    waves: Vec<Wave>,
    simds: Vec<Simd>,
    /// When shared memory and memory are through with what was asked of them.
    shared: u64,
    memory: u64,
    /// What was read for products to come.
    reads: Vec<Read>,
    /// What each half has copied, by instructions, and when it is there.
    copies: [VecDeque<u64>; 2],
    /// When the latest reads and stores of each entry were through.
    done: Vec<[u64; 2]>,
}

#[derive(Clone, Default)]
struct Wave {
    half: usize,
    simd: usize,
    /// When it issues next.
    clock: u64,
    /// When what it multiplied last is known.
    multiplied: u64,
}

/// When its units are through.
#[derive(Clone, Default)]
struct Simd {
    matrix: u64,
    vector: u64,
}

struct Read {
    of: Of,
    iteration: u32,
    wave: usize,
    ready: u64,
}

/// What waves read before they multiply again.
struct Wanted {
    entry: usize,
    of: Of,
    cycles: u64,
    iteration: u32,
}

impl<'a> Clock<'a> {
    /// So many waves on so many SIMDs, of which the second half is a barrier behind where they are apart.
    pub fn new(work: &'a [Work], (all, simds): (u32, u32), apart: bool) -> Clock<'a> {
        let own = all.div_ceil(simds).max(1) as usize;
        // Halves of few waves have SIMDs of their own.
        let alone = apart && own == 1;
        let (simds, own) = if alone { (2, 2) } else { (1, own) };
        let waves = (0..own).map(|nth| Wave {
            half: usize::from(apart && 2 * nth >= own),
            simd: if alone { nth } else { 0 },
            ..Wave::default()
        });
        Clock {
            work,
            lag: usize::from(apart),
            waves: waves.collect(),
            simds: vec![Simd::default(); simds],
            shared: 0,
            memory: 0,
            reads: Vec::new(),
            copies: Default::default(),
            done: vec![[0; 2]; work.len()],
        }
    }

    /// The cycles of an iteration.
    pub fn run(&mut self, phases: &[Phase]) -> u64 {
        let len = phases.len();
        let mut ends = Vec::new();
        for slot in 0..(FIRST + TAKEN) as usize * len {
            let mut meets = false;
            for half in 0..=self.lag {
                let Some(own) = slot.checked_sub(half) else {
                    continue;
                };
                let (iteration, phase) = ((own / len) as u32, &phases[own % len]);
                for act in &phase.acts {
                    match *act {
                        Act::Run(entry) => self.entry(entry, half, iteration),
                        Act::Wait(at_most) => self.wait_for_copies(at_most, half),
                    }
                }
                if let Some(done) = &phase.meets {
                    meets = true;
                    let done = done.iter().map(|entry| self.done[*entry][half]);
                    self.wait(half, done.max().unwrap_or(0));
                }
            }
            let last = self.waves.iter().map(|wave| wave.clock).max();
            let last = last.unwrap_or(0);
            if meets {
                let waves = self.waves.iter_mut();
                waves.for_each(|wave| wave.clock = last + BARRIER);
            }
            if slot % len == len - 1 {
                ends.push(last);
                let iteration = (slot / len) as u32;
                self.reads.retain(|read| read.iteration >= iteration);
            }
        }
        let at = |iteration: u32| ends.get(iteration as usize - 1).copied().unwrap_or(0);
        (at(FIRST + TAKEN) - at(FIRST)) / u64::from(TAKEN)
    }

    /// Cycles of an iteration in which a matrix unit multiplies.
    pub fn busy(&self) -> u64 {
        let tasks = self.work.iter().flat_map(|work| &work.tasks);
        let cycles = tasks.map(|(task, _)| match task {
            Task::Multiply { count, each } => count * each,
            _ => 0,
        });
        cycles.sum::<u64>() * (self.waves.len() / self.simds.len()) as u64
    }

    fn wait(&mut self, half: usize, until: u64) {
        let own = self.waves.iter_mut().filter(|wave| wave.half == half);
        own.for_each(|wave| wave.clock = wave.clock.max(until));
    }

    /// Each half waits for its own, which come in order.
    fn wait_for_copies(&mut self, at_most: u32, half: usize) {
        let mut landed = 0;
        while self.copies[half].len() > at_most as usize {
            landed = self.copies[half].pop_front().unwrap_or(0);
        }
        self.wait(half, landed);
    }

    /// An entry by the waves of a half.
    fn entry(&mut self, entry: usize, half: usize, iteration: u32) {
        let Work {
            ref tasks,
            woven,
            ahead,
        } = self.work[entry];
        let iteration = iteration + ahead;
        let mut wanted: Vec<Wanted> = Vec::new();
        let own: Vec<usize> = (0..self.waves.len())
            .filter(|wave| self.waves[*wave].half == half)
            .collect();
        for &(task, of) in tasks {
            match task {
                Task::Multiply { count, each } => {
                    self.hand_out(&own, (&mut wanted, woven));
                    for &nth in &own {
                        let reads = self.reads.iter().filter(|r| {
                            r.wave == nth && r.iteration == iteration && r.of.is_for(of)
                        });
                        let ready = reads.map(|r| r.ready).max().unwrap_or(0);
                        let wave = &mut self.waves[nth];
                        let simd = &mut self.simds[wave.simd];
                        let start = wave.clock.max(ready).max(simd.matrix);
                        let between = if woven { count * each / WOVEN } else { 0 };
                        simd.matrix = start + count * each + between;
                        wave.multiplied = simd.matrix;
                        wave.clock = start + (count.saturating_sub(1) * each) + SLOT;
                    }
                }
                Task::Compute(cycles) => {
                    for &nth in &own {
                        let wave = &mut self.waves[nth];
                        let simd = &mut self.simds[wave.simd];
                        let start = wave.clock.max(wave.multiplied).max(simd.vector);
                        simd.vector = start + cycles;
                        wave.clock = simd.vector;
                    }
                }
                Task::Access(cycles) => wanted.push(Wanted {
                    entry,
                    of,
                    cycles,
                    iteration,
                }),
                Task::Bring {
                    count,
                    cycles,
                    lands,
                } => {
                    let slots = if lands { COPY_SLOTS * SLOT } else { SLOT };
                    for &nth in &own {
                        let wave = &mut self.waves[nth];
                        self.memory = self.memory.max(wave.clock) + cycles;
                        if !woven {
                            wave.clock += u64::from(count) * slots;
                            wave.clock = wave.clock.max(self.memory.saturating_sub(QUEUE));
                        }
                    }
                    let there = std::iter::repeat_n(self.memory + COPY, count as usize);
                    self.copies[half].extend(there);
                }
            }
        }
        self.hand_out(&own, (&mut wanted, woven));
    }

    /// Shared memory serves one wave of each SIMD after the other.
    fn hand_out(&mut self, own: &[usize], (wanted, woven): (&mut Vec<Wanted>, bool)) {
        for &nth in own {
            for want in &*wanted {
                let wave = &mut self.waves[nth];
                self.shared = self.shared.max(wave.clock) + want.cycles;
                let ready = self.shared + READ;
                if !woven {
                    wave.clock = wave.clock.max(self.shared);
                }
                self.done[want.entry][wave.half] = ready;
                self.reads.push(Read {
                    of: want.of,
                    iteration: want.iteration,
                    wave: nth,
                    ready,
                });
            }
        }
        wanted.clear();
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// The cycles of an iteration of so many waves: phases of words, an entry each, `|` where they meet.
    fn cycles(order: &str, waves: u32, apart: bool) -> u64 {
        let (mut work, mut phases) = (Vec::new(), vec![Phase::default()]);
        for word in order.split_whitespace() {
            let at = phases.len() - 1;
            let task = match word {
                "mma" => Task::Multiply { count: 4, each: 16 },
                "read" => Task::Access(16),
                "copy" => Task::Bring {
                    count: 1,
                    cycles: 64,
                    lands: true,
                },
                "wait" => {
                    phases[at].acts.push(Act::Wait(0));
                    continue;
                }
                _ => {
                    phases[at].meets = Some(Vec::new());
                    phases.push(Phase::default());
                    continue;
                }
            };
            phases[at].acts.push(Act::Run(work.len()));
            work.push(Work {
                tasks: vec![(task, Of::piece(0))],
                woven: false,
                ahead: 0,
            });
        }
        phases.retain(|phase| !phase.acts.is_empty());
        Clock::new(&work, (waves, 4), apart).run(&phases)
    }

    #[test]
    fn matrix_units_are_busy_where_nothing_is_waited_for() {
        assert_eq!(cycles("mma mma", 4, false), 128);
        assert_eq!(cycles("mma mma", 8, false), 256);
    }

    #[test]
    fn products_wait_for_what_they_multiply() {
        let read = cycles("read mma", 4, false);
        assert!(read >= 16 + READ + 48, "{read}");
        // Of two waves one reads while the other multiplies.
        let both = cycles("read mma", 8, false);
        assert!(both < 2 * read, "{both}");
    }

    #[test]
    fn what_is_copied_and_waited_for_at_once_takes_its_time() {
        let at_once = cycles("copy wait mma", 4, false);
        assert!((COPY..COPY + 150).contains(&at_once), "{at_once}");
        let hidden = cycles(
            &("copy ".to_string() + &"mma ".repeat(16) + "wait"),
            4,
            false,
        );
        assert!((1024..1040).contains(&hidden), "{hidden}");
    }

    /// One half reads while the other multiplies.
    #[test]
    fn halves_stand_beside_each_other() {
        let phases = "read read | mma mma |";
        let apart = cycles(phases, 8, true);
        let together = cycles(phases, 8, false);
        assert!(apart < together, "{apart} {together}");
        assert!(apart >= 256, "{apart}");
    }
}
