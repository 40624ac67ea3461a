//! Executors of Tilewright's IR.
//!
//! There are two. [`simt`] runs lowered functions, every thread of a block, on the memories and
//! instructions of a target. This page is about the other one, the *reference evaluator*, which
//! runs tile IR on the CPU. It is the
//! truth that every lowering is compared with, so it is written for plainness: statements run
//! in program order, each sees the whole effect of the one before, and every operation rounds
//! exactly as its type says. It reports what the language leaves undefined: reading memory
//! that nothing wrote, races, barriers that only some threads reach, deadlocks.
//!
//! ```text
//! Func ──bind arguments──> constants, storages ──compile──> Program ──run blocks──> outputs
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`tensor`], [`compare`], [`rng`] | host tensors, summaries, comparison, seeded inputs |
//! | [`args`], [`inputs`], [`mod@resolve`], [`room`] | arguments, how they are bound to parameters, made-up ones; what memory there is |
//! | `value`, `math` | scalar arithmetic with exact rounding |
//! | `compile`, `program` | kernel bodies as instructions over slots |
//! | `eval`, `exec` | expressions; instructions; tile and thread operations, a file a family, with their compilation |
//! | `memory`, `barrier` | bytes with a shadow of what was written; barriers |
//! | `block`, `grid`, `block_races` | strands of a block taking turns; blocks of a launch; what they do to each other |
//! | [`simt`] | the simulator of loop and device IR, thread by thread |
//! | [`error`] | what is reported, by name |

pub mod args;
mod barrier;
mod block;
mod block_races;
mod cluster;
pub mod compare;
mod compile;
pub mod error;
mod eval;
mod exec;
mod grid;
pub mod inputs;
mod math;
mod memory;
mod program;
pub mod resolve;
pub mod rng;
pub mod room;
pub mod simt;
pub mod tensor;
mod value;

use std::fmt;
use std::time::{Duration, Instant};

use tilewright_ir::{Diagnostics, Func, Level};

pub use args::{Arg, Args, TensorShape};
pub use block_races::Watch;
pub use compare::{Comparison, Summary, Tolerance, compare, compare_where, summarize};
pub use error::{RunError, codes};
pub use grid::Schedule;
pub use inputs::{InputSpec, describe_inputs, make_inputs};
pub use resolve::{Resolved, resolve, shapes};
pub use rng::Rng;
pub use tensor::{Fill, HostTensor};
pub use tilewright_ir::small_float::Number;

/// How a function is run.
#[derive(Clone, Copy)]
pub struct RunOptions<'a> {
    /// Reading memory that nothing wrote is an error; otherwise it reads as 0xCD bytes.
    pub check_uninitialised: bool,
    /// Points or threads that meet at one element are an error; blocks that do are reported
    /// ([`RunReport::races`]).
    pub check_races: bool,
    /// Worker threads; zero takes as many as the machine has cores. Results do not depend on it.
    pub threads: usize,
    /// Lanes of a warp, 32 or 64: how far shuffles and votes reach. Warp reductions are over 32
    /// lanes on every target.
    pub warp_size: u32,
    /// The most instructions the threads of a block may do, against loops that never end.
    pub step_limit: u64,
    /// Run only about this many blocks, spread over the grid, for a look at a large launch. What
    /// the others would have written stays unwritten. Holds where that is a part of the whole
    /// result: one kernel, whose blocks neither see each other's writes nor update memory
    /// together, and write nothing but outputs. Elsewhere all blocks run.
    pub sample: Option<u64>,
    /// Told now and then how far the run is.
    pub progress: Option<&'a (dyn Fn(Progress) + Sync)>,
}

impl Default for RunOptions<'_> {
    fn default() -> Self {
        RunOptions {
            check_uninitialised: true,
            check_races: true,
            threads: 0,
            warp_size: 32,
            step_limit: DEFAULT_STEPS,
            sample: None,
            progress: None,
        }
    }
}

impl fmt::Debug for RunOptions<'_> {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.debug_struct("RunOptions")
            .field("check_uninitialised", &self.check_uninitialised)
            .field("check_races", &self.check_races)
            .field("threads", &self.threads)
            .field("warp_size", &self.warp_size)
            .field("step_limit", &self.step_limit)
            .field("sample", &self.sample)
            .field("progress", &self.progress.is_some())
            .finish()
    }
}

/// How far a run is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Progress {
    /// The kernel that runs, and how many the function has.
    pub kernel: usize,
    pub kernels: usize,
    pub blocks_done: u64,
    pub blocks: u64,
}

/// What a run did, besides the outputs.
#[derive(Clone, Debug, Default)]
pub struct RunReport {
    pub kernels: Vec<KernelReport>,
    /// What kernels printed, in block order.
    pub prints: Vec<String>,
    /// Blocks that touch what another one writes: errors, and warnings where the value stays the
    /// same.
    pub races: Diagnostics,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct KernelReport {
    /// Blocks of the launch.
    pub blocks: u64,
    /// Blocks that ran: all, unless a sample was asked for.
    pub ran: u64,
    pub schedule: Schedule,
    /// Whether races between blocks were looked for.
    pub watch: Watch,
    pub time: Duration,
}

/// Instructions of a block that no kernel of ordinary size comes near, and that take a minute.
pub const DEFAULT_STEPS: u64 = 1 << 28;

/// Compiling an expression of the deepest kind takes more than the usual two megabytes in an
/// unoptimised build.
const STACK: usize = 16 << 20;

/// Runs every kernel of a tile-level function, one after another.
///
/// Outputs missing from `args` are added. On an error the tensors hold what was written so far.
pub fn run(func: &Func, args: &mut Args, opts: &RunOptions<'_>) -> Result<RunReport, RunError> {
    if func.level != Level::Tile {
        return Err(RunError::new(
            codes::NOT_TILE_IR,
            func.span,
            format!(
                "the reference evaluator runs tile IR; `{}` is {} IR",
                func.name,
                func.level.name()
            ),
        ));
    }
    if !matches!(opts.warp_size, 32 | 64) {
        return Err(RunError::new(
            codes::LAUNCH_EXTENT,
            func.span,
            format!("a warp has 32 or 64 lanes, not {}", opts.warp_size),
        ));
    }
    let pool = rayon::ThreadPoolBuilder::new()
        .num_threads(opts.threads)
        .stack_size(STACK)
        .build()
        .map_err(|e| {
            RunError::new(
                codes::UNSUPPORTED,
                func.span,
                format!("no worker threads could be started: {e}"),
            )
        })?;
    pool.install(|| {
        let mut call = args::bind(func, args)?;
        let result = run_kernels(func, &mut call, opts);
        call.give_back(args);
        result
    })
}

fn run_kernels(
    func: &Func,
    call: &mut args::Call,
    opts: &RunOptions<'_>,
) -> Result<RunReport, RunError> {
    let mut report = RunReport::default();
    let checks = exec::Checks {
        uninitialised: opts.check_uninitialised,
        races: opts.check_races,
    };
    let limits = exec::Limits {
        steps: opts.step_limit,
        warp: opts.warp_size as usize,
    };
    for (number, kernel) in func.kernels.iter().enumerate() {
        let start = Instant::now();
        let program = compile::compile(func, kernel, &call.bound)?;
        let blocks = program.num_blocks();
        let progress = |done| {
            if let Some(tell) = opts.progress {
                tell(Progress {
                    kernel: number,
                    kernels: func.kernels.len(),
                    blocks_done: done,
                    blocks,
                });
            }
        };
        let launch = block::Launch {
            program: &program,
            checks,
            limits,
        };
        let swizzle = kernel.attrs.swizzle;
        let alone = func.kernels.len() == 1;
        let sample = opts.sample.filter(|&n| {
            let written = call.storages.iter().zip(&program.traffic.written);
            let mut written = written.filter(|(_, w)| **w);
            n < blocks
                && alone
                && grid::is_part(kernel, &program.traffic)
                && written.all(|(s, _)| s.is_fresh())
        });
        let together = program.cluster_blocks();
        let sample = sample.map(|n| n.div_ceil(together));
        let chosen = grid::Chosen::new(blocks / together, sample);
        let watch = block_races::watch(kernel, &program.traffic);
        let mem = &mut call.storages;
        let gathered = grid::launch(launch, swizzle, chosen, watch, mem, &progress)
            .map_err(|d| RunError::from(*d))?;
        report.prints.extend(gathered.prints);
        report.races.extend(gathered.races);
        report.kernels.push(KernelReport {
            blocks,
            ran: chosen.count() * together,
            schedule: grid::schedule(&program.traffic),
            watch,
            time: start.elapsed(),
        });
    }
    Ok(report)
}
