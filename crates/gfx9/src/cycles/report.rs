//! Figures of a timing: the share of the matrix units, the steady state of the hot loop, what was
//! waited for and where.

use std::fmt;

use crate::asm::{Function, Instruction};

use super::plan::Kind;
use super::stalls::{Stall, Stalls};
use super::{Issued, Timing, WaveTiming};

/// The hot loop once it runs evenly.
#[derive(Clone, Debug, PartialEq)]
pub struct Steady {
    /// Cycles between two passes of the loop's head: the median over all passes of all waves.
    pub cycles: u64,
    /// The line of the loop's head.
    pub line: u32,
    /// Times that a wave went through the loop.
    pub turns: usize,
    /// The share of an iteration in which a SIMD's matrix unit works.
    pub matrix_share: f64,
    /// Cycles that a SIMD's matrix unit works in an iteration.
    pub matrix_cycles: f64,
    /// Operations of matrix instructions in an iteration of all waves.
    pub operations: f64,
    /// What a wave waits for in an iteration, on average.
    pub stalls: Vec<(Stall, f64)>,
    /// Cycles of an iteration that a wave spends at instructions of each kind, waiting included.
    pub kinds: Vec<(Kind, f64)>,
}

/// An instruction, and what was waited for at it.
#[derive(Clone, Debug)]
pub struct Hot<'f> {
    pub index: usize,
    pub instruction: &'f Instruction,
    pub stalls: Stalls,
}

impl Timing {
    /// Operations of all matrix instructions.
    pub fn operations(&self, function: &Function) -> u64 {
        let waves = self.waves.iter().flat_map(|wave| &wave.issued);
        waves.map(|issued| operations(function, issued)).sum()
    }

    /// The share of all SIMDs' time in which matrix units work.
    pub fn matrix_share(&self) -> f64 {
        share(
            self.matrix_busy.iter().sum(),
            self.cycles,
            self.matrix_busy.len(),
        )
    }

    /// The same of vector units.
    pub fn vector_share(&self) -> f64 {
        share(
            self.vector_busy.iter().sum(),
            self.cycles,
            self.vector_busy.len(),
        )
    }

    /// The share of the time in which the banks of LDS work.
    pub fn bank_share(&self) -> f64 {
        share(self.bank_busy, self.cycles, 1)
    }

    /// The share of the time in which the vector L1 works.
    pub fn l1_share(&self) -> f64 {
        share(self.l1_busy, self.cycles, 1)
    }

    /// What all waves waited for.
    pub fn all_stalls(&self) -> Stalls {
        let mut all = Stalls::default();
        self.stalls.iter().for_each(|stalls| all.merge(stalls));
        all
    }

    /// The instructions at which most was waited for.
    pub fn hottest<'f>(&self, function: &'f Function, most: usize) -> Vec<Hot<'f>> {
        let each = function.instructions.iter().zip(&self.stalls).enumerate();
        let mut list: Vec<Hot<'f>> = each
            .filter(|(_, (_, stalls))| stalls.total() > 0)
            .map(|(index, (instruction, stalls))| Hot {
                index,
                instruction,
                stalls: *stalls,
            })
            .collect();
        list.sort_unstable_by_key(|hot| (std::cmp::Reverse(hot.stalls.total()), hot.index));
        list.truncate(most);
        list
    }

    /// How the hot loop runs, where one was run at least twice.
    pub fn steady(&self, function: &Function) -> Option<Steady> {
        let hot = function.hot_loop()?;
        let head = hot.head()?;
        let line = function.instructions.get(head)?.line;
        let mut gaps = Vec::new();
        let mut turns = 0;
        let mut sums = Sums::default();
        for wave in &self.waves {
            let passes = wave.passes(head);
            turns = turns.max(passes.len());
            // The first turns fill the pipeline, where there are more.
            let skip = if passes.len() > 4 { 2 } else { 0 };
            for pair in passes[skip.min(passes.len())..].windows(2) {
                let turn = &wave.issued[pair[0]..pair[1]];
                // Where the wave left the loop and came back, the way around it is no turn.
                if !turn.iter().all(|i| hot.has(i.instruction as usize)) {
                    continue;
                }
                gaps.push(wave.issued[pair[1]].issue - wave.issued[pair[0]].issue);
                sums.add(turn, wave.issued[pair[1]].since, &self.kinds);
                let done = turn.iter().map(|issued| operations(function, issued));
                sums.operations += done.sum::<u64>();
            }
        }
        gaps.sort_unstable();
        let cycles = *gaps.get(gaps.len() / 2)?;
        let turns_seen = gaps.len() as f64;
        let waves_of_simd = self.waves.len() as f64 / self.matrix_busy.len().max(1) as f64;
        let matrix_cycles = sums.matrix as f64 / turns_seen * waves_of_simd;
        let average = |sum: u64| sum as f64 / turns_seen;
        let stalls = sums.stalls.sorted().into_iter();
        let kinds = Kind::ALL.into_iter().zip(sums.kinds);
        Some(Steady {
            cycles,
            line,
            turns,
            matrix_share: matrix_cycles / cycles.max(1) as f64,
            matrix_cycles,
            operations: average(sums.operations) * self.waves.len() as f64,
            stalls: stalls.map(|(stall, sum)| (stall, average(sum))).collect(),
            kinds: kinds
                .filter(|(_, sum)| *sum > 0)
                .map(|(kind, sum)| (kind, average(sum)))
                .collect(),
        })
    }
}

/// What some turns of a loop have in sum.
#[derive(Default)]
struct Sums {
    matrix: u64,
    operations: u64,
    stalls: Stalls,
    kinds: [u64; Kind::ALL.len()],
}

impl Sums {
    /// One turn of a wave; `until` is when the instruction behind it is the next.
    fn add(&mut self, turn: &[Issued], until: u64, kinds: &[Kind]) {
        for (at, issued) in turn.iter().enumerate() {
            let kind = kinds[issued.instruction as usize];
            let next = turn.get(at + 1).map_or(until, |next| next.since);
            let place = Kind::ALL.iter().position(|k| *k == kind).unwrap_or(0);
            self.kinds[place] += next - issued.since;
            if kind == Kind::Matrix {
                self.matrix += issued.end - issued.issue;
            }
            if let Some(stall) = issued.stall {
                self.stalls.add(stall, issued.waited());
            }
            if kind == Kind::Barrier {
                let waited = (next - issued.issue).saturating_sub(4);
                self.stalls.add(Stall::Barrier, waited);
            }
        }
    }
}

impl WaveTiming {
    /// Where the wave came to an instruction.
    fn passes(&self, instruction: usize) -> Vec<usize> {
        let all = self.issued.iter().enumerate();
        all.filter(|(_, issued)| issued.instruction as usize == instruction)
            .map(|(at, _)| at)
            .collect()
    }
}

fn operations(function: &Function, issued: &Issued) -> u64 {
    let instruction = function.instructions.get(issued.instruction as usize);
    let done = instruction.and_then(|instruction| instruction.op.mfma_operations());
    done.unwrap_or(0)
}

fn share(busy: u64, cycles: u64, units: usize) -> f64 {
    match cycles * units as u64 {
        0 => 0.0,
        all => busy as f64 / all as f64,
    }
}

/// A timing and its function, to be printed.
#[derive(Clone, Copy, Debug)]
pub struct Report<'a> {
    pub timing: &'a Timing,
    pub function: &'a Function,
    /// Lines of the list of instructions at most.
    pub lines: usize,
}

impl fmt::Display for Report<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Report {
            timing,
            function,
            lines,
        } = *self;
        let waves = timing.waves.len();
        writeln!(
            f,
            "{} on one compute unit of {}: {} cycles, {waves} waves",
            function.name, timing.arch, timing.cycles
        )?;
        writeln!(
            f,
            "busy: matrix units {:.1} %, vector units {:.1} %, LDS banks {:.1} %, vector L1 {:.1} %",
            100.0 * timing.matrix_share(),
            100.0 * timing.vector_share(),
            100.0 * timing.bank_share(),
            100.0 * timing.l1_share()
        )?;
        if let Some(steady) = timing.steady(function) {
            writeln!(
                f,
                "hot loop, line {}: {} cycles an iteration, matrix units {:.1} % ({:.0} cycles), {} turns",
                steady.line,
                steady.cycles,
                100.0 * steady.matrix_share,
                steady.matrix_cycles,
                steady.turns
            )?;
            writeln!(f, "  an iteration of a wave, waiting included:")?;
            for (kind, cycles) in &steady.kinds {
                writeln!(f, "    {:<12} {cycles:>8.0}", kind.name())?;
            }
            writeln!(f, "  of these it waits:")?;
            for (stall, cycles) in &steady.stalls {
                writeln!(f, "    {:<20} {cycles:>8.0}", stall.name())?;
            }
        }
        let all = timing.all_stalls();
        let waited = all.total();
        writeln!(f, "waiting of all waves, {waited} cycles:")?;
        for (stall, cycles) in all.sorted() {
            let part = 100.0 * cycles as f64 / waited.max(1) as f64;
            writeln!(f, "  {:<20} {cycles:>10} {part:>6.1} %", stall.name())?;
        }
        if lines > 0 {
            writeln!(f, "where most is waited:")?;
        }
        for hot in timing.hottest(function, lines) {
            let reason = hot.stalls.most().map_or("", Stall::name);
            writeln!(
                f,
                "  line {:>5} {:>10} {reason:<20} {}",
                hot.instruction.line,
                hot.stalls.total(),
                hot.instruction.text
            )?;
        }
        Ok(())
    }
}
