//! One block at work: its strands take turns until all are done.

use tilewright_ir::{Diagnostic, Span};

use crate::barrier::Counting;
use crate::error::codes;
use crate::exec::state::{BlockMem, Globals, Strand, Wait};
use crate::exec::{self, Checks, Limits, Outcome, Output, Workplace};
use crate::program::{Op, Program, Space};

/// A block that has been started.
#[derive(Debug)]
pub(crate) struct BlockRun {
    index: [u64; 3],
    /// Its number in its cluster.
    rank: usize,
    pub mem: BlockMem,
    strands: Vec<Strand>,
    pub output: Output,
    /// What each strand waits for since its last turn.
    waits: Vec<Option<Wait>>,
}

/// What came of a turn.
#[derive(Debug)]
pub(crate) enum Turn {
    Done,
    /// Something was done, and more is to do.
    Progress,
    /// Every strand waits.
    Stuck,
    Failed(Box<Diagnostic>),
}

/// What all blocks of a launch are run with.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Launch<'a> {
    pub program: &'a Program,
    pub checks: Checks,
    pub limits: Limits,
}

/// Instructions a strand does before another one has its turn.
const FUEL: u64 = 50_000;

impl BlockRun {
    pub fn new(program: &Program, index: [u64; 3], rank: usize) -> BlockRun {
        let strands = Strand::of_block(program, index, rank);
        BlockRun {
            index,
            rank,
            mem: BlockMem::new(program),
            waits: vec![None; strands.len()],
            strands,
            output: Output::default(),
        }
    }

    /// Gives every strand a turn.
    pub fn turn(
        &mut self,
        launch: Launch<'_>,
        globals: &mut Globals<'_>,
        grid_barrier: &mut Counting,
        cluster_barrier: &mut Counting,
    ) -> Turn {
        let before: u64 = self.strands.iter().map(|s| s.steps).sum();
        for at in 0..self.strands.len() {
            if self.strands[at].done {
                continue;
            }
            let work = Workplace {
                program: launch.program,
                checks: launch.checks,
                limits: launch.limits,
                globals,
                block: &mut self.mem,
                grid_barrier,
                cluster_barrier,
                output: &mut self.output,
                block_index: self.index,
                rank: self.rank,
            };
            self.waits[at] = match exec::run(work, &mut self.strands[at], FUEL) {
                Outcome::Done | Outcome::Fuel => None,
                Outcome::Blocked(wait) => Some(wait),
                Outcome::Failed(d) => return Turn::Failed(d),
            };
            if let Some(Wait::Collective { groups }) = self.waits[at]
                && let Err(d) = self.rendezvous(
                    at,
                    groups,
                    launch,
                    globals,
                    [&mut *grid_barrier, &mut *cluster_barrier],
                )
            {
                return Turn::Failed(d);
            }
        }
        if self.strands.iter().all(|s| s.done) {
            return Turn::Done;
        }
        let after: u64 = self.strands.iter().map(|s| s.steps).sum();
        if after > before {
            Turn::Progress
        } else {
            Turn::Stuck
        }
    }

    /// Does a collective once all its groups have come; a strand that comes first waits.
    fn rendezvous(
        &mut self,
        at: usize,
        groups: u64,
        launch: Launch<'_>,
        globals: &mut Globals<'_>,
        [grid_barrier, cluster_barrier]: [&mut Counting; 2],
    ) -> Result<(), Box<Diagnostic>> {
        let pc = self.strands[at].pc;
        self.strands[at].at_collective = Some(pc);
        let mut here = self.strands.iter().filter(|s| s.group & groups != 0);
        if !here.all(|s| s.at_collective == Some(pc) && s.pc == pc) {
            return Ok(());
        }
        let work = Workplace {
            program: launch.program,
            checks: launch.checks,
            limits: launch.limits,
            globals,
            block: &mut self.mem,
            grid_barrier,
            cluster_barrier,
            output: &mut self.output,
            block_index: self.index,
            rank: self.rank,
        };
        match exec::run_collective(work, &mut self.strands[at]) {
            Outcome::Failed(d) => return Err(d),
            Outcome::Done | Outcome::Fuel | Outcome::Blocked(_) => {}
        }
        self.share_private(at, groups, launch.program, pc);
        let next = self.strands[at].pc;
        for (strand, wait) in self.strands.iter_mut().zip(&mut self.waits) {
            if strand.group & groups != 0 {
                strand.pc = next;
                strand.at_collective = None;
                strand.steps += 1;
                *wait = None;
            }
        }
        Ok(())
    }

    /// What a parallel loop left in private memory, all its groups hold.
    fn share_private(&mut self, from: usize, groups: u64, program: &Program, pc: usize) {
        let Op::Parallel(p) = &program.ops[pc] else {
            return;
        };
        for &buffer in &p.carried {
            let Space::Private(number) = program.buffers[buffer as usize].space else {
                continue;
            };
            let info = program.private_storages[number as usize];
            let number = number as usize;
            let source = self.strands[from].privates[number].clone();
            let one = if info.varying {
                self.strands[from].all.first() * info.stride
            } else {
                0
            };
            for strand in &mut self.strands {
                if strand.group & groups == 0 {
                    continue;
                }
                let lanes = if info.varying {
                    strand.all.iter().collect()
                } else {
                    vec![0]
                };
                for lane in lanes {
                    let to = lane * info.stride..(lane + 1) * info.stride;
                    let range = one..one + info.stride;
                    let storage = &mut strand.privates[number];
                    storage.bytes[to.clone()].copy_from_slice(&source.bytes[range.clone()]);
                    if let (Some(flags), Some(source)) = (&mut storage.written, &source.written) {
                        flags[to].copy_from_slice(&source[range]);
                    }
                }
            }
        }
    }

    /// What the strands wait for that will never come.
    pub fn deadlock(&self, program: &Program) -> Diagnostic {
        let mut waiting: Vec<(Span, String)> = Vec::new();
        for (strand, wait) in self.strands.iter().zip(&self.waits) {
            let Some(wait) = wait else { continue };
            let who = if program.grouped {
                format!("warp group {}", strand.group.trailing_zeros())
            } else {
                "the block".to_string()
            };
            waiting.push((program.spans[strand.pc], format!("{who} waits for {wait}")));
        }
        let span = waiting.first().map_or(Span::NONE, |w| w.0);
        let mut d = Diagnostic::error(
            codes::DEADLOCK,
            span,
            "the block waits for ever: nothing can complete what its threads wait for",
        )
        .note(self.place());
        for (at, (span, text)) in waiting.into_iter().enumerate() {
            if at > 0 && !span.is_none() {
                d = d.also(span, text.clone());
            }
            d = d.note(text);
        }
        d.help("the arrivals of a phase must equal the barrier's count, and each wait needs one")
    }

    fn place(&self) -> String {
        format!(
            "in block ({}, {}, {})",
            self.index[0], self.index[1], self.index[2]
        )
    }
}
