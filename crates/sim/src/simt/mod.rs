//! The SIMT simulator: runs loop and device IR as a GPU does, and says what is wrong with it.
//!
//! Every thread of a block is run, in warps of the target's width with a mask of active lanes.
//! Registers and private arrays are real, matrix instructions work on them by their lane maps,
//! shared memory has the physical layout of its buffers. A warp runs until it has to wait; which
//! warp is next is drawn from a seed. So what one order of warps hides, another one shows; and
//! what no order shows, the shadow of shared memory does: it knows which accesses are ordered
//! by barriers and which only happened to come one after the other.
//!
//! ```text
//! Func ──bind arguments──> storages ──compile──> Program ──blocks × warps──> outputs, findings, counts
//! ```
//!
//! Found and reported ([`FindingKind`]), with the statements, threads and iterations: races,
//! conflicting stores of one instruction, accesses to memory of asynchronous operations not
//! waited for, reads of uninitialised memory (shared, private, global), accesses outside
//! buffers, misaligned vectors, barriers and collectives in divergent control flow, barriers
//! that some warps never reach, deadlocks, races between blocks, and what the arithmetic leaves
//! undefined. The run
//! goes on after a finding as the hardware might, until nothing can.
//!
//! Counted ([`Counts`]), for each statement: instructions by kind, transactions of shared memory
//! and bank conflicts.
//!
//! Not modelled: time; the order of lanes inside a warp other than by the
//! program (lanes of one warp are in step).
//!
//! | module | holds |
//! |---|---|
//! | `compile`, `program` | a kernel as instructions on registers of all lanes |
//! | `alu` | arithmetic on lanes |
//! | `warp`, `step` | a warp's state and control flow; its instructions |
//! | `env`, `block` | what warps of a block share; their turns and barriers |
//! | `access`, `memory`, `shared` | addresses; global memory; shared memory and shadows |
//! | `micro`, `spread`, `mma`, `queue` | micro-ops; exchanges between lanes; matrix instructions; asynchronous operations |
//! | `threads`, `device`, `sync` | thread operations by family; device operations; barriers with the order they make |
//! | `banks`, `counts`, `report` | bank conflicts; counts; findings |

mod access;
mod alu;
mod banks;
mod block;
mod bulk;
mod compile;
mod counts;
mod device;
mod env;
mod global_shadow;
mod group_mma;
mod lanes;
mod memory;
mod micro;
mod mma;
mod program;
mod proxy;
mod queue;
mod report;
mod shared;
mod spread;
mod step;
mod sync;
mod threads;
mod warp;

use std::fmt;

use rayon::prelude::*;
use tilewright_ir::{Diagnostics, Func, Kernel, Level, Span, Target};

use crate::args::{self, Args};
use crate::block_races::{self, BlockRaces, Sites, Watch};
use crate::error::{RunError, codes as run_codes};
use crate::exec::Checks;
use crate::grid::{self, Applier, CHUNK, Chosen, Schedule};
use crate::memory::{Storage, WriteLog};
use block::{BlockRun, Turn};
pub use counts::{Counts, InstKind, StmtCounts};
use memory::{Direct, Memory};
use program::{Program, Space};
pub use queue::When;
use report::Collector;
pub use report::{Finding, FindingKind, FindingPlace};

/// Instructions of a warp that no kernel of ordinary size comes near, and that take minutes.
pub const DEFAULT_STEPS: u64 = 1 << 28;

/// How a function is simulated.
#[derive(Clone)]
pub struct SimtOptions<'a> {
    /// Decides the order of warps.
    pub seed: u64,
    pub interleaving: Interleaving,
    pub landing: Landing,
    /// Findings kept; the others are only counted.
    pub max_reports: usize,
    /// Ends the run at the first finding. Tensors then hold no result.
    pub first_only: bool,
    /// Worker threads; zero takes as many as the machine has cores. Results do not depend on it.
    pub threads: usize,
    /// The most instructions a warp may do, against loops that never end.
    pub step_limit: u64,
    /// Run only about this many blocks, spread over the grid, where that is a part of the whole
    /// result: one kernel, whose blocks neither see each other's writes nor update memory
    /// together. Tensors that the kernel writes then hold what these blocks wrote and nothing
    /// else. Elsewhere all blocks run.
    pub sample: Option<u64>,
    /// Told now and then how many blocks of how many are done.
    pub progress: Option<&'a (dyn Fn(u64, u64) + Sync)>,
}

impl Default for SimtOptions<'_> {
    fn default() -> Self {
        SimtOptions {
            seed: 0,
            interleaving: Interleaving::UntilBlocked,
            landing: Landing::default(),
            max_reports: 32,
            first_only: false,
            threads: 0,
            step_limit: DEFAULT_STEPS,
            sample: None,
            progress: None,
        }
    }
}

impl fmt::Debug for SimtOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("SimtOptions")
            .field("seed", &self.seed)
            .field("interleaving", &self.interleaving)
            .field("landing", &self.landing)
            .field("max_reports", &self.max_reports)
            .field("first_only", &self.first_only)
            .field("threads", &self.threads)
            .field("step_limit", &self.step_limit)
            .field("sample", &self.sample)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// When another warp has its turn.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum Interleaving {
    /// When a warp has to wait.
    #[default]
    UntilBlocked,
    /// After every statement.
    EveryStatement,
}

/// When the data of asynchronous operations moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Landing {
    /// Copies from global memory.
    pub dma: When,
    /// Reads and writes of shared memory that have a counter.
    pub lds: When,
}

impl Landing {
    /// All combinations.
    pub const ALL: [Landing; 4] = [
        Landing {
            dma: When::Early,
            lds: When::Early,
        },
        Landing {
            dma: When::Early,
            lds: When::Late,
        },
        Landing {
            dma: When::Late,
            lds: When::Early,
        },
        Landing {
            dma: When::Late,
            lds: When::Late,
        },
    ];
}

/// What a simulation found and counted.
#[derive(Clone, Debug, Default)]
pub struct SimtReport {
    pub findings: Vec<Finding>,
    /// Findings at further statements, beyond the most that are kept.
    pub dropped: u64,
    /// Over all statements.
    pub counts: Counts,
    /// By statement, those that count anything, in program order.
    pub statements: Vec<StmtCounts>,
    /// What kernels printed, in block order.
    pub prints: Vec<String>,
    /// Blocks that touch what another one writes: errors, and warnings where the value stays the
    /// same.
    pub races: Diagnostics,
    /// By kernel: how much was looked at.
    pub kernels: Vec<KernelCover>,
}

/// How much of a kernel a simulation looked at.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct KernelCover {
    /// Blocks of the launch.
    pub blocks: u64,
    /// Blocks that ran: all, unless a sample was asked for.
    pub ran: u64,
    /// Whether races between blocks were looked for.
    pub watch: Watch,
}

impl SimtReport {
    /// Whether nothing is wrong.
    pub fn is_clean(&self) -> bool {
        self.findings.is_empty() && !self.races.has_errors()
    }

    /// The findings as diagnostics, and what blocks do to each other.
    pub fn diagnostics(&self) -> Diagnostics {
        let mut all = self.races.clone();
        all.extend(self.findings.iter().map(Finding::to_diagnostic));
        all
    }
}

/// The stable names of what the simulator refuses.
pub mod codes {
    use tilewright_ir::Code;

    pub const NOT_LOWERED: Code = Code("not-lowered");
    pub const SHARED_SIZE: Code = Code("shared-memory-size");
    pub const LAYOUT: Code = Code("buffer-layout");
}

/// Simulates every kernel of a lowered function, one after another.
///
/// Outputs missing from `args` are added. Findings are part of the report; an error is what
/// could not be run at all.
pub fn run(
    func: &Func,
    target: Target,
    args: &mut Args,
    opts: &SimtOptions<'_>,
) -> Result<SimtReport, RunError> {
    if func.level == Level::Tile {
        return Err(RunError::new(
            codes::NOT_LOWERED,
            func.span,
            format!(
                "the simulator runs loop and device IR; `{}` is {} IR",
                func.name,
                func.level.name()
            ),
        ));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(opts.threads)
        .stack_size(crate::STACK)
        .build()
        .map_err(|e| {
            RunError::new(
                run_codes::UNSUPPORTED,
                func.span,
                format!("no worker threads could be started: {e}"),
            )
        })?;
    pool.install(|| {
        let mut call = args::bind(func, args)?;
        let mut report = SimtReport::default();
        let mut findings = Collector::of(opts);
        let mut result = Ok(());
        for kernel in &func.kernels {
            let compiled = compile::compile(func, kernel, &call.bound, target);
            let launched = compiled.and_then(|program| {
                let launch = Launch {
                    program: &program,
                    kernel,
                    target,
                    opts,
                    alone: func.kernels.len() == 1,
                };
                launch.run(&mut call.storages, &mut findings, &mut report)
            });
            if launched.is_err() {
                result = launched;
                break;
            }
            // Statements of different kernels are different.
            let (list, dropped) = std::mem::replace(&mut findings, Collector::new(0)).finish();
            let room = opts
                .max_reports
                .saturating_sub(report.findings.len() + list.len());
            report.findings.extend(list);
            report.dropped += dropped;
            if opts.first_only && !report.findings.is_empty() {
                break;
            }
            findings = Collector::new(room);
        }
        call.give_back(args);
        result.map(|()| report)
    })
}

/// One kernel with its arguments.
#[derive(Clone, Copy)]
struct Launch<'a> {
    program: &'a Program,
    kernel: &'a Kernel,
    target: Target,
    opts: &'a SimtOptions<'a>,
    /// The function has no other kernel.
    alone: bool,
}

/// What a block leaves behind.
struct BlockResult {
    findings: Collector,
    counts: Vec<Counts>,
    prints: Vec<String>,
    log: WriteLog,
}

impl Launch<'_> {
    fn run(
        self,
        mem: &mut Vec<Storage>,
        findings: &mut Collector,
        report: &mut SimtReport,
    ) -> Result<(), RunError> {
        let (program, traffic) = (self.program, &self.program.traffic);
        let together = program.cluster_blocks();
        let total = program.num_blocks() / together;
        let watch = block_races::watch(self.kernel, traffic);
        let mut races = BlockRaces::new(program, traffic, watch);
        let sample = self.opts.sample;
        let sample =
            sample.filter(|&n| n < total && self.alone && grid::is_part(self.kernel, traffic));
        let sample = sample.map(|n| n.div_ceil(together));
        let chosen = Chosen::new(total, sample);
        if sample.is_some() {
            // Nothing reads these; what the other blocks would write is to be seen as missing.
            let written = mem.iter_mut().zip(&traffic.written).filter(|(_, w)| **w);
            written.for_each(|(storage, _)| storage.forget(0, storage.bytes.len()));
        }
        let mut counts = vec![Counts::default(); program.stmts.len()];
        let mut take = |result: &mut BlockResult, report: &mut SimtReport| {
            let own = std::mem::replace(&mut result.findings, Collector::new(0));
            findings.absorb(own);
            for (all, block) in counts.iter_mut().zip(&result.counts) {
                *all += *block;
            }
            report.prints.append(&mut result.prints);
            // A loop that never ends would do so in the other blocks as well.
            findings.has(FindingKind::StepLimit) || findings.is_enough()
        };
        match grid::schedule(traffic) {
            Schedule::Parallel => {
                let checks = Checks {
                    uninitialised: true,
                    races: true,
                };
                let applier = Applier::new(program, checks);
                let chunk = CHUNK * rayon::current_num_threads() as u64;
                let total = chosen.count();
                let (mut first, mut ended) = (0, false);
                while first < total && !ended {
                    let end = total.min(first + chunk);
                    let shared: &[Storage] = mem;
                    let results: Vec<BlockResult> = (first..end)
                        .into_par_iter()
                        .map(|n| self.logged(chosen.nth(n), shared))
                        .collect();
                    for (n, mut result) in (first..end).zip(results) {
                        ended |= take(&mut result, report);
                        races.turn(self.index(chosen.nth(n)), 0);
                        applier
                            .apply(&result.log, mem, &mut races)
                            .map_err(|d| RunError::from(*d))?;
                    }
                    first = end;
                    self.tell(first, total);
                }
            }
            Schedule::Sequential => {
                let mut direct = Direct {
                    mem: std::mem::take(mem),
                    races,
                };
                for linear in 0..total {
                    direct.races.turn(self.index(linear), 0);
                    let mut block = self.block(linear, Memory::Direct(direct));
                    while block.run(u64::MAX) != Turn::Done {}
                    let (mut result, back) = finish(block);
                    direct = back;
                    let ended = take(&mut result, report);
                    self.tell(linear + 1, total);
                    if ended {
                        break;
                    }
                }
                Direct { mem: *mem, races } = direct;
            }
            Schedule::Interleaved => {
                let mut direct = Direct {
                    mem: std::mem::take(mem),
                    races,
                };
                for mut result in self.interleaved(&mut direct) {
                    take(&mut result, report);
                }
                Direct { mem: *mem, races } = direct;
            }
        }
        report.races.extend(races.finish(program));
        report.kernels.push(KernelCover {
            blocks: total * together,
            ran: chosen.count() * together,
            watch,
        });
        for (info, counts) in self.program.stmts.iter().zip(&counts) {
            report.counts += *counts;
            if *counts != Counts::default() {
                report.statements.push(StmtCounts {
                    span: info.span,
                    what: info.what.clone(),
                    counts: *counts,
                });
            }
        }
        Ok(())
    }

    fn tell(self, done: u64, blocks: u64) {
        if let Some(tell) = self.opts.progress {
            tell(done, blocks);
        }
    }

    /// The index of a block, or of the first one of a cluster.
    fn index(self, linear: u64) -> [u64; 3] {
        let linear = self.program.members(linear)[0];
        grid::block_index(&self.program.grid, self.kernel.attrs.swizzle, linear)
    }

    /// A block, or the blocks of a cluster.
    fn block<'g>(self, linear: u64, globals: Memory<'g>) -> BlockRun<'g>
    where
        Self: 'g,
    {
        let grid = &self.program.grid;
        let members = self.program.members(linear).into_iter();
        let index = members.map(|block| {
            let index = grid::block_index(grid, self.kernel.attrs.swizzle, block);
            index[..grid.len().min(3)].to_vec()
        });
        let indices: Vec<Vec<u64>> = index.collect();
        BlockRun::new(
            self.program,
            self.target,
            self.opts,
            linear,
            &indices,
            globals,
        )
    }

    fn logged(self, linear: u64, mem: &[Storage]) -> BlockResult {
        let log = WriteLog::default();
        let mut block = self.block(linear, Memory::Logged { mem, log });
        while block.run(u64::MAX) != Turn::Done {}
        finish(block).0
    }

    /// Blocks that wait for each other take turns.
    fn interleaved(self, direct: &mut Direct) -> Vec<BlockResult> {
        let total = (self.program.num_blocks() / self.program.cluster_blocks()) as usize;
        let mut blocks: Vec<BlockRun<'_>> = (0..total as u64)
            .map(|linear| self.block(linear, Memory::Direct(Direct::default())))
            .collect();
        let mut turns = vec![Turn::Fuel; total];
        let (mut epoch, mut enough) = (0, false);
        loop {
            for (linear, (block, turn)) in blocks.iter_mut().zip(&mut turns).enumerate() {
                if *turn == Turn::Fuel && !enough {
                    direct.races.turn(self.index(linear as u64), epoch);
                    block.env.globals = Memory::Direct(std::mem::take(direct));
                    *turn = block.run(4);
                    if let Memory::Direct(back) = &mut block.env.globals {
                        *direct = std::mem::take(back);
                    }
                    enough = block.env.findings.is_enough();
                }
            }
            if enough || turns.iter().all(|t| *t == Turn::Done) {
                break;
            }
            if turns.iter().all(|t| *t == Turn::Grid) {
                epoch += 1;
                for (block, turn) in blocks.iter_mut().zip(&mut turns) {
                    block.leave_grid_barrier();
                    *turn = Turn::Fuel;
                }
            } else if turns.iter().all(|t| *t != Turn::Fuel) {
                // Some blocks ended, so the others wait for ever.
                for (block, turn) in blocks.iter_mut().zip(&mut turns) {
                    if *turn == Turn::Grid {
                        block.stuck_at_grid();
                        *turn = Turn::Done;
                    }
                }
                break;
            }
        }
        blocks.into_iter().map(|block| finish(block).0).collect()
    }
}

/// What a block that is done leaves, and the memory it had to itself.
fn finish(block: BlockRun<'_>) -> (BlockResult, Direct) {
    let env = block.env;
    let (log, direct) = match env.globals {
        Memory::Logged { log, .. } => (log, Direct::default()),
        Memory::Direct(direct) => (WriteLog::default(), direct),
    };
    let result = BlockResult {
        findings: env.findings,
        counts: env.counts,
        prints: env.prints,
        log,
    };
    (result, direct)
}

impl Sites for Program {
    fn span(&self, site: u32) -> Span {
        self.stmts[site as usize].span
    }

    fn name(&self, storage: u32) -> &str {
        let found = self
            .buffers
            .iter()
            .find(|b| b.space == Space::Global(storage));
        found.map_or("?", |b| b.name.as_str())
    }

    fn granule(&self, storage: u32) -> usize {
        let space = Space::Global(storage);
        let through = self.buffers.iter().filter(|b| b.space == space);
        let bytes = through.map(|b| b.bits() as usize / 8).min();
        bytes.unwrap_or(1).max(1)
    }

    fn rank(&self) -> usize {
        self.grid.len()
    }
}
