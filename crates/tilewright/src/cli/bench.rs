//! `tilewright bench`: a kernel's speed on a GPU of this machine.
//!
//! A fast wrong kernel is worth nothing, so the result is checked first: against the reference
//! evaluator, on all blocks where that is a matter of moments, else on a sample of them where a
//! sample is a part of the whole result (see `RunOptions::sample`), else on all of them, however
//! long it takes.

use std::time::{Duration, Instant};

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tilewright::ir::{Func, Target};
use tilewright::jit::{self, Compiler, Flush, Pace, Program, Runs};
use tilewright::runtime::cache::{Cache, Outcome as CacheOutcome};
use tilewright::runtime::env::Env;
use tilewright::sim::{self, RunOptions};
use tilewright::verdict::{Compared, Verdict, summation, verdict_within};

use super::gpu::{self, Gpu};
use super::output::{self, Failure, Outcome};
use super::progress::Progress;
use super::{KernelArgs, passes::parse_target, run};

/// Device copies that set the limit are at least so large, so that starting them does not count.
const LEAST_COPY: usize = 256 << 20;

#[derive(Args, Debug)]
pub struct BenchArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// The target that the kernel is lowered for. Without one it is the best that the GPU has.
    #[arg(long)]
    target: Option<String>,
    /// Where the random inputs come from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Runs that are timed; the median counts.
    #[arg(long, default_value_t = 50)]
    iters: u32,
    /// Runs before them.
    #[arg(long, default_value_t = 10)]
    warmup: u32,
    /// What the GPU does between runs.
    #[arg(long, value_enum, default_value_t = PaceArg::Cold)]
    pace: PaceArg,
    /// Blocks of a large launch that are checked against the reference evaluator.
    #[arg(long, default_value_t = 8, value_name = "N")]
    check_blocks: u64,
    /// Take the compiled kernel from the cache where it is there, as `run` does. Without this it
    /// is compiled anew, so that the compile time can be reported.
    #[arg(long)]
    cached: bool,
    /// Let the target's compiler use approximate division and functions.
    #[arg(long)]
    fast_math: bool,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

/// What the GPU does between runs.
#[derive(ValueEnum, Clone, Copy, Debug, PartialEq, Eq)]
enum PaceArg {
    /// its L2 cache is emptied
    Cold,
    /// it is idle for nine times as long as a run, so that its clock is high
    Cool,
    /// nothing: runs are back to back for a fifth of a second, and power limits the clock
    Sustained,
}

impl PaceArg {
    fn pace(self) -> Pace {
        match self {
            PaceArg::Cold => Pace::Cold,
            PaceArg::Cool => Pace::Cool,
            PaceArg::Sustained => Pace::Sustained,
        }
    }

    fn said(self) -> &'static str {
        match self {
            PaceArg::Cold => "with a cold L2 cache",
            PaceArg::Cool => "with idle time between them",
            PaceArg::Sustained => "back to back",
        }
    }
}

/// What was measured.
struct Report {
    target: Target,
    device: String,
    times: Vec<Duration>,
    pace: PaceArg,
    frontend: Duration,
    load: Duration,
    launch: Duration,
    copy_rate: f64,
    work: jit::Work,
    verdict: Verdict,
    /// Blocks checked, and blocks of the launch.
    blocks: (u64, u64),
}

pub fn bench(args: &BenchArgs) -> Outcome {
    let named = args.target.as_deref().map(parse_target).transpose()?;
    let (gpu, loaded) = Gpu::open_with(named, &args.kernel, args.json)?;
    let (func, sources) = (&loaded.func, &loaded.sources);
    let fail = |e: jit::Error| gpu::fail(e, sources, args.json);

    let env = Env::process();
    let compiler = Compiler::find(gpu.target, &env).map_err(fail)?;
    let options = jit::Options {
        fast_math: args.fast_math,
        ..jit::Options::default()
    };
    let cache = match args.cached {
        true => Cache::open(&env),
        false => Cache::off(),
    };
    let progress = Progress::new(args.json);
    progress.doing("compiling");
    let program = gpu
        .build_with(func, &options, sources, &compiler, &cache)
        .map_err(fail)?;
    let start = Instant::now();
    let kernel = program.load(&gpu.device).map_err(fail)?;
    let load = start.elapsed();

    let (mut spec, notes) = run::inputs(&loaded, args.seed);
    spec.copies = 1;
    let given = sim::make_inputs(func, &spec).map_err(|e| fail(e.into()))?;
    let (verdict, blocks, call, work) = {
        let mut found = given.try_clone(func).map_err(|e| fail(e.into()))?;
        let call = kernel.bind(&mut found).map_err(fail)?;
        let resolved = sim::resolve(func, &mut found).map_err(|e| fail(e.into()))?;
        let work = jit::work(func, &resolved);
        kernel.launch(&call).map_err(fail)?;
        kernel.fetch(&call, &mut found).map_err(fail)?;
        let (verdict, blocks) = check(func, &found, given, args, gpu.target, &progress, &fail)?;
        (verdict, blocks, call, work)
    };
    if let Some(diag) = verdict.diagnostic(func) {
        return Err(output::wrong(&diag, &verdict, sources, args.json));
    }
    progress.doing("timing");

    let flush = Flush::new(&gpu.device, &compiler, kernel.stream()).map_err(fail)?;
    let runs = Runs {
        warmup: args.warmup,
        timed: args.iters,
        pace: args.pace.pace(),
    };
    let times = kernel.time(&call, &flush, runs).map_err(fail)?;
    let launch = kernel.launch_cost(&call, 200).map_err(fail)?;
    let size = usize::try_from(work.bytes / 2).unwrap_or(LEAST_COPY);
    let size = size.clamp(LEAST_COPY, 4 * LEAST_COPY);
    let copies = Runs {
        warmup: 3,
        timed: 20,
        ..Runs::default()
    };
    let copy_rate = jit::copy_rate(&gpu.device, kernel.stream(), &flush, size, copies);
    let report = Report {
        target: gpu.target,
        device: gpu.device.info().name.clone(),
        times,
        pace: args.pace,
        frontend: loaded.took,
        load,
        launch,
        copy_rate: copy_rate.map_err(fail)?,
        work,
        verdict,
        blocks,
    };
    drop(progress);
    match args.json {
        true => output::print_json(&report.to_json(func, &program)),
        false => output::print(&report.to_text(func, &program, &notes)),
    }
    Ok(())
}

/// Compares what the GPU computed with the reference evaluator, at least on a sample.
fn check(
    func: &Func,
    found: &sim::Args,
    mut expected: sim::Args,
    args: &BenchArgs,
    target: Target,
    progress: &Progress,
    fail: &impl Fn(jit::Error) -> Failure,
) -> Result<(Verdict, (u64, u64)), Failure> {
    progress.blocks("reference");
    let tell = |p: sim::Progress| progress.at(p.blocks_done, p.blocks);
    let options = RunOptions {
        sample: Some(args.check_blocks.max(1)),
        warp_size: target.machine().warp_size,
        progress: Some(&tell),
        ..RunOptions::default()
    };
    let report = sim::run(func, &mut expected, &options).map_err(|e| fail(e.into()))?;
    let ran = report.kernels.iter().map(|k| k.ran).sum();
    let blocks = report.kernels.iter().map(|k| k.blocks).sum();
    let which = match ran == blocks {
        true => Compared::Expected,
        false => Compared::Sample,
    };
    let sums = summation(func, target);
    let verdict = verdict_within(func, found, &expected, which, sums);
    Ok((verdict, (ran, blocks)))
}

fn ms(time: Duration) -> f64 {
    time.as_secs_f64() * 1e3
}

/// Registers of a thread, bytes of shared memory of a block, bytes of spills: the most of any
/// kernel of the program, the sum for spills. Spills are unknown where the compiler's report is
/// not at hand.
fn needs(program: &Program) -> (u32, u32, Option<u32>) {
    let kernels = program.code.needs();
    let registers = kernels.iter().map(|k| k.registers).max().unwrap_or(0);
    let fixed = kernels.iter().map(|k| k.static_shared).max().unwrap_or(0);
    let dynamic = program.kernels.iter().map(|k| k.shared_bytes).max();
    let spills = kernels.iter().map(|k| k.spills).sum();
    (registers, fixed + dynamic.unwrap_or(0), spills)
}

impl Report {
    fn seconds(&self) -> f64 {
        jit::median(&self.times).as_secs_f64().max(1e-9)
    }

    /// TFLOP/s of the matrix products, where there are any.
    fn tflops(&self) -> Option<f64> {
        let flops = self.work.flops.filter(|&f| f > 0)?;
        Some(flops as f64 / self.seconds() / 1e12)
    }

    fn gbps(&self) -> f64 {
        self.work.bytes as f64 / self.seconds() / 1e9
    }

    fn to_json(&self, func: &Func, program: &Program) -> Value {
        let (registers, shared, spills) = needs(program);
        let parts = &program.timings;
        let least = self.times.iter().min().copied().unwrap_or_default();
        json!({
            "ok": true,
            "kernel": func.name,
            "target": self.target.name(),
            "device": self.device,
            "ms": self.seconds() * 1e3,
            "ms_least": ms(least),
            "runs": self.times.len(),
            "pace": self.pace.to_possible_value().map(|v| v.get_name().to_owned()),
            "tflops": self.tflops(),
            "gbps": self.gbps(),
            "copy_gbps": self.copy_rate / 1e9,
            "flops": self.work.flops.map(|f| f as f64),
            "bytes": self.work.bytes as f64,
            "compile_ms": {
                "frontend": ms(self.frontend),
                "passes": ms(parts.passes),
                "codegen": ms(parts.codegen),
                "toolchain": ms(parts.toolchain),
            },
            "build_ms": ms(parts.total),
            "load_ms": ms(self.load),
            "cache_hit": program.outcome == CacheOutcome::Hit,
            "launch_us": ms(self.launch) * 1e3,
            "registers": registers,
            "shared_bytes": shared,
            "spills": spills,
            "max_abs_err": self.verdict.max_abs_err,
            "max_rel_err": self.verdict.max_rel_err,
            "blocks_checked": self.blocks.0,
            "blocks": self.blocks.1,
        })
    }

    fn to_text(&self, func: &Func, program: &Program, notes: &[String]) -> String {
        let (registers, shared, spills) = needs(program);
        let parts = &program.timings;
        let mut text = format!("{} on {} ({})\n", func.name, self.device, self.target);
        for note in notes {
            text += &format!("  {note}\n");
        }
        text += &format!(
            "  {:.4} ms, median of {} runs {}\n",
            self.seconds() * 1e3,
            self.times.len(),
            self.pace.said()
        );
        if let Some(tflops) = self.tflops() {
            text += &format!("  {tflops:.1} TFLOP/s\n");
        }
        text += &format!(
            "  {:.0} GB/s of tensors; the device copies at {:.0} GB/s (ratio {:.3})\n",
            self.gbps(),
            self.copy_rate / 1e9,
            self.gbps() * 1e9 / self.copy_rate
        );
        text += &match program.outcome {
            CacheOutcome::Hit => format!(
                "  from the cache in {:.2} ms, loaded in {:.2} ms\n",
                ms(parts.total),
                ms(self.load)
            ),
            _ => format!(
                "  compiled in {:.1} ms: front end {:.1}, passes {:.1}, code generation {:.1}, toolchain {:.1}; loaded in {:.2} ms\n",
                ms(self.frontend + parts.total),
                ms(self.frontend),
                ms(parts.passes),
                ms(parts.codegen),
                ms(parts.toolchain),
                ms(self.load)
            ),
        };
        let spills = match spills {
            Some(bytes) => format!("{bytes} bytes of spills"),
            None => "spills unknown".to_owned(),
        };
        text += &format!("  {registers} registers, {shared} bytes of shared memory, {spills}\n");
        text += &format!(
            "  a launch costs the host {:.1} µs\n",
            ms(self.launch) * 1e3
        );
        text += &format!(
            "  agrees with the reference on {} of {} blocks: largest difference {:.3e} ({:.3e} relative)\n",
            self.blocks.0, self.blocks.1, self.verdict.max_abs_err, self.verdict.max_rel_err
        );
        text
    }
}
