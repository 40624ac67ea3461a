//! `tilewright run`: a kernel on random inputs.

use std::time::Instant;

use clap::{Args, ValueEnum};
use serde_json::{Value, json};
use tilewright::emulate::{self, Emulator};
use tilewright::gfx9::emu::{Arch, Landing};
use tilewright::ir::{Diagnostic, Func, Level, Param, Target};
use tilewright::jit;
use tilewright::lowering::Until;
use tilewright::passes;
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, InputSpec, Number, RunOptions, Summary};
use tilewright::verdict::{Compared, Verdict, summation, verdict, verdict_within};

use super::counters::Counted;
use super::input::Loaded;
use super::output::{self, Failure, Outcome};
use super::progress::Progress;
use super::show::{PrintTo, Show, ShowArgs};
use super::tensors::{Checked, TensorArgs};
use super::{KernelArgs, gpu, input, lower::lower, passes::parse_target, shared, tensors};

/// What a run-time size is when nobody says: no multiple of any tile.
const DEFAULT_SIZE: i64 = 300;

#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// What runs the kernel.
    #[arg(long, value_enum, default_value_t = Executor::Reference)]
    on: Executor,
    /// The target that the kernel is lowered for. Without one the simulator and the emulator take
    /// gfx950, and a GPU the best one it has.
    #[arg(long)]
    target: Option<String>,
    /// When the emulator does what memory instructions ask for; without this, at random.
    #[arg(long, value_enum)]
    landing: Option<LandingArg>,
    /// Where the random inputs come from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Worker threads; 0 takes all cores. Results do not depend on it.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Instructions that a block may do in the reference evaluator, and a warp in the simulator,
    /// before its loops are taken for endless.
    #[arg(long, value_name = "N")]
    max_steps: Option<u64>,
    /// Show what the simulator counted: instructions, shared-memory transactions and bank
    /// conflicts, by statement (`--on sim`).
    #[arg(long)]
    counters: bool,
    #[command(flatten)]
    tensors: TensorArgs,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    /// This is the process that touches the GPU.
    #[arg(long, hide = true)]
    worker: bool,
    #[command(flatten)]
    show: ShowArgs,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Executor {
    /// The reference evaluator: tile IR, tile by tile, exact rounding.
    Reference,
    /// The simulator: the lowered kernel, every thread, compared with the reference.
    Sim,
    /// The emulator: the machine code that clang makes of it for gfx942 or gfx950, every lane,
    /// compared with the reference.
    Gfx9,
    /// A GPU of this machine, compared with the reference.
    Gpu,
}

/// When the emulator does what memory instructions ask for.
#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum LandingArg {
    /// when they are issued
    Early,
    /// when a wait is for them
    Late,
    /// some time between, by the seed
    Random,
}

impl LandingArg {
    fn landing(self) -> Landing {
        match self {
            LandingArg::Early => Landing::Early,
            LandingArg::Late => Landing::Late,
            LandingArg::Random => Landing::Random,
        }
    }
}

impl Executor {
    const fn name(self) -> &'static str {
        match self {
            Executor::Reference => "reference",
            Executor::Sim => "sim",
            Executor::Gfx9 => "gfx9",
            Executor::Gpu => "gpu",
        }
    }
}

pub fn run(args: &RunArgs) -> Outcome {
    let named = args.target.as_deref().map(parse_target).transpose()?;
    let target = named.unwrap_or(Target::DEFAULT);
    if let (Executor::Reference, Some(option)) = (args.on, args.show.asked()) {
        return Err(Failure::Usage(format!(
            "`{option}` shows passes, and the reference evaluator runs none; `--on sim` does"
        )));
    }
    if args.on == Executor::Gfx9 && Arch::named(target.name()).is_none() {
        return Err(Failure::Usage(format!(
            "`--on gfx9` runs code of AMD machines, not of {target}; `--target gfx950` or `gfx942`"
        )));
    }
    if args.landing.is_some() && args.on != Executor::Gfx9 {
        return Err(Failure::Usage(format!(
            "`--landing` says when the emulator moves data, and `--on {}` does not emulate; \
             `--on gfx9` does",
            args.on.name()
        )));
    }
    if args.counters && args.on != Executor::Sim {
        return Err(Failure::Usage(format!(
            "`--counters` shows what the simulator counts, and `--on {}` counts nothing; `--on sim` \
             does",
            args.on.name()
        )));
    }
    let known = match args.on {
        Executor::Sim | Executor::Gfx9 => Some(target),
        Executor::Reference | Executor::Gpu => named,
    };
    if let Some(target) = known {
        args.show.check(&passes::pipeline(target))?;
    }
    if args.on == Executor::Gpu && !args.worker {
        return gpu::in_worker(args.json);
    }
    let (opened, mut loaded) = match args.on {
        Executor::Gpu => {
            let (gpu, loaded) = gpu::Gpu::open_with(named, &args.kernel, args.json)?;
            (Some(gpu), loaded)
        }
        Executor::Reference | Executor::Sim | Executor::Gfx9 => {
            (None, input::load(&args.kernel, target, args.json)?)
        }
    };
    let files = tensors::read(&args.tensors, &loaded.func);
    let files = files.map_err(|d| output::fail(&[*d], &loaded.sources, args.json))?;
    for (name, size) in files.sizes(&loaded.func) {
        loaded.sizes.entry(name).or_insert(size);
    }
    let (func, sources) = (&loaded.func, &loaded.sources);
    let (mut spec, notes) = inputs(&loaded, args.seed);
    // What is compared has tensors of its own.
    spec.copies = u32::from(args.on != Executor::Reference);
    let fail = |e: sim::RunError| output::fail(&e.diagnostics.into_vec(), sources, args.json);
    let mut tensors = sim::make_inputs(func, &spec).map_err(fail)?;
    let put = files.put(func, &mut tensors);
    put.map_err(|d| output::fail(&[*d], sources, args.json))?;
    let given = match args.on {
        Executor::Reference => None,
        Executor::Sim | Executor::Gfx9 | Executor::Gpu => {
            Some(tensors.try_clone(func).map_err(fail)?)
        }
    };

    // What is compared has warps of the target's width.
    let lowered_for = match args.on {
        Executor::Reference => None,
        Executor::Sim | Executor::Gfx9 => Some(target),
        Executor::Gpu => opened.as_ref().map(|gpu| gpu.target),
    };
    if let Some(target) = lowered_for {
        args.show.check(&passes::pipeline(target))?;
    }
    let to = PrintTo::beside(args.json);
    let mut show = Show::new(&args.show, func, to, sources)?;
    show.timings.front_end = Some(loaded.took);
    let lowered = match lowered_for {
        Some(target) => {
            let until = Until::Level(Level::Device);
            Some((lower(func, target, until, sources, &mut show)?, target))
        }
        None => None,
    };
    show.print_timings();
    let fail = |diags: &[Diagnostic]| show.fail(diags, sources);
    let wrong = |v: &Verdict, diag| show.fail_with(&[diag], sources, output::verdict_json(v));
    let memory = lowered.as_ref().map(|(lowered, target)| {
        let text = shared::to_text(lowered, *target);
        (text, shared::to_json(lowered, *target))
    });
    let warp = lowered_for.or(named);
    let progress = Progress::new(args.json);
    progress.blocks("reference");
    let tell = |p: sim::Progress| progress.at(p.blocks_done, p.blocks);
    let options = RunOptions {
        threads: args.jobs,
        step_limit: args.max_steps.unwrap_or(sim::DEFAULT_STEPS),
        warp_size: warp.map_or(32, |target| target.machine().warp_size),
        progress: Some(&tell),
        ..RunOptions::default()
    };
    let start = Instant::now();
    let result = sim::run(func, &mut tensors, &options);
    let mut ms = start.elapsed().as_secs_f64() * 1e3;
    let mut report = result.map_err(|e| fail(&e.diagnostics.into_vec()))?;
    if report.races.has_errors() {
        // What the blocks leave is undefined, so there is nothing to compare with.
        return Err(fail(&report.races.into_vec()));
    }
    output::warn(&report.races.into_vec(), sources);

    let mut judged = None;
    let mut counted = None;
    let mut place = "on the reference evaluator".to_string();
    match (opened, given, lowered) {
        (Some(gpu), Some(mut found), _) => {
            let options = jit::Options::default();
            progress.doing("compiling and running on the GPU");
            let done = gpu.run(func, &mut found, &options, sources);
            let (took, printed) = done.map_err(|e| fail(&e.into_diagnostics()))?;
            if !gpu.target.machine().prints {
                report.prints = printed.told();
            }
            ms = took.as_secs_f64() * 1e3;
            let sums = summation(func, gpu.target);
            let found_right = verdict_within(func, &found, &tensors, Compared::Expected, sums);
            if let Some(diag) = found_right.diagnostic(func) {
                return Err(wrong(&found_right, diag));
            }
            place = format!("on {} ({})", gpu.device.info().name, gpu.target);
            judged = Some(found_right);
            tensors = found;
        }
        (None, Some(mut emulated), Some((lowered, target))) if args.on == Executor::Gfx9 => {
            progress.doing("compiling");
            let emulator = Emulator::new(&lowered, target, sources)
                .map_err(|e| fail(&e.into_diagnostics()))?;
            progress.doing("running the compiled code");
            let options = emulate::Options {
                landing: args.landing.unwrap_or(LandingArg::Random).landing(),
                seed: args.seed,
                threads: args.jobs,
                ..emulate::Options::default()
            };
            let start = Instant::now();
            let ran = emulator
                .run(&mut emulated, &options)
                .map_err(|e| fail(&e.into_diagnostics()))?;
            ms = start.elapsed().as_secs_f64() * 1e3;
            if !ran.findings.is_empty() {
                return Err(fail(&ran.findings));
            }
            report.prints = ran.printed.told();
            let sums = summation(func, target);
            let found_right = verdict_within(func, &emulated, &tensors, Compared::Expected, sums);
            if let Some(diag) = found_right.diagnostic(func) {
                return Err(wrong(&found_right, diag));
            }
            judged = Some(found_right);
            place = format!("in the emulator for {target}");
            tensors = emulated;
        }
        (None, Some(mut simulated), Some((lowered, target))) => {
            progress.blocks("simulator");
            let tell = |done, blocks| progress.at(done, blocks);
            let options = SimtOptions {
                seed: args.seed,
                threads: args.jobs,
                step_limit: args.max_steps.unwrap_or(simt::DEFAULT_STEPS),
                progress: Some(&tell),
                ..SimtOptions::default()
            };
            let start = Instant::now();
            let report = simt::run(&lowered, target, &mut simulated, &options)
                .map_err(|e| fail(&e.diagnostics.into_vec()))?;
            ms = start.elapsed().as_secs_f64() * 1e3;
            if !report.is_clean() {
                return Err(fail(&report.diagnostics().into_vec()));
            }
            if args.counters {
                counted = Some(Counted::of(&report, sources));
            }
            let found_right = verdict(func, &simulated, &tensors, Compared::All);
            if let Some(diag) = found_right.diagnostic(func) {
                return Err(wrong(&found_right, diag));
            }
            judged = Some(found_right);
            place = format!("in the simulator for {target}");
            tensors = simulated;
        }
        _ => {}
    }

    drop(progress);
    let written = tensors::write(&args.tensors, func, &tensors).map_err(|d| fail(&[*d]))?;
    let checked = files.check(&args.tensors, func, &tensors);
    let checked = checked.map_err(|(diag, checked)| {
        let all: Vec<Value> = checked.iter().map(Checked::to_json).collect();
        show.fail_with(&[*diag], sources, json!({ "expected": all }))
    })?;
    let summaries = summaries(func, &tensors);
    if args.json {
        // The reference evaluator is what others are compared with, so it has no error itself.
        let mut object = json!({
            "ok": true,
            "kernel": func.name,
            "target": lowered_for.map(Target::name),
            "executor": args.on.name(),
            "max_abs_err": judged.as_ref().map(|v| v.max_abs_err),
            "max_rel_err": judged.as_ref().map(|v| v.max_rel_err),
            "elements_compared": judged.as_ref().map(|v| v.elements),
            "elements_wrong": judged.as_ref().map(|_| 0),
            "elements_unwritten": judged.as_ref().map(|v| v.unwritten),
            "ms": ms,
            "prints": report.prints,
            "shared_memory": memory.as_ref().map(|m| &m.1),
            "seed": args.seed,
            "tensors": summaries.iter().map(Line::to_json).collect::<Vec<_>>(),
            "expected": checked.iter().map(Checked::to_json).collect::<Vec<_>>(),
            "written": written,
        });
        if let Some(counted) = &counted {
            object["counters"] = counted.to_json();
        }
        show.add_to(&mut object);
        output::print_json(&object);
        return Ok(());
    }
    let mut text = format!("{} {place}, seed {}\n", func.name, args.seed);
    for note in notes {
        text += &format!("  {note}\n");
    }
    for (kernel, done) in func.kernels.iter().zip(&report.kernels) {
        let threads = kernel.num_threads();
        text += &format!("  {} blocks of {threads} threads\n", done.blocks);
    }
    for print in &report.prints {
        text += &format!("  print: {print}\n");
    }
    for line in &summaries {
        text += &line.to_text();
    }
    for line in &checked {
        text += &line.to_text();
    }
    for path in &written {
        text += &format!("  wrote {path}\n");
    }
    for line in memory.iter().flat_map(|m| m.0.lines()) {
        text += &format!("  {line}\n");
    }
    if let Some(verdict) = &judged {
        text += &format!(
            "  agrees with the reference in {} elements; largest difference: {:.3e} ({:.3e} relative)\n",
            verdict.elements, verdict.max_abs_err, verdict.max_rel_err
        );
        if verdict.unwritten > 0 {
            text += &format!(
                "  {} elements that nothing wrote were not compared\n",
                verdict.unwritten
            );
        }
    }
    text += &format!("  {ms:.1} ms\n");
    text += &counted.map_or(String::new(), |c| c.to_text());
    output::print(&text);
    Ok(())
}

/// What a kernel is run on: random tensors, and sizes and scalars that the user gave or a default,
/// with a note for each default.
pub fn inputs(loaded: &Loaded, seed: u64) -> (InputSpec, Vec<String>) {
    let func = &loaded.func;
    let mut spec = InputSpec {
        seed,
        ..InputSpec::default()
    };
    let mut notes = Vec::new();
    for &symbol in &func.symbols {
        let name = &func.vars[symbol].name;
        let value = loaded.sizes.get(name).copied().unwrap_or_else(|| {
            notes.push(format!(
                "{name} = {DEFAULT_SIZE} (choose with --set {name}=…)"
            ));
            DEFAULT_SIZE
        });
        spec.values.insert(name.clone(), Number::Int(value.into()));
    }
    for param in &func.params {
        let Param::Scalar(var) = *param else { continue };
        let name = &func.vars[var].name;
        match loaded.scalars.get(name) {
            Some(&value) => {
                spec.values.insert(name.clone(), value);
            }
            None if spec.values.contains_key(name) => {}
            // What `make_inputs` takes where nothing is said.
            None => notes.push(format!("{name} = 1 (choose with --set {name}=…)")),
        }
    }
    (spec, notes)
}

/// One tensor of the signature.
struct Line {
    name: String,
    role: &'static str,
    dtype: String,
    shape: Vec<usize>,
    /// What it holds, for tensors that the kernel may have written.
    summary: Summary,
}

fn summaries(func: &Func, args: &sim::Args) -> Vec<Line> {
    let mut lines = Vec::new();
    let roles = tensors::roles(func);
    for (buffer, _) in func.tensors() {
        let data = &func.buffers[buffer];
        if let Some(tensor) = args.tensor(&data.name) {
            lines.push(Line {
                name: data.name.clone(),
                role: roles.get(&buffer).map_or("in", |r| r.name()),
                dtype: tensor.dtype().to_string(),
                shape: tensor.shape().to_vec(),
                summary: sim::summarize(tensor),
            });
        }
    }
    lines
}

impl Line {
    fn to_text(&self) -> String {
        let shape: Vec<String> = self.shape.iter().map(|e| e.to_string()).collect();
        let s = &self.summary;
        let mut text = format!(
            "  {:5} {} {}[{}]  min {:.4}  max {:.4}  mean {:.4}  deviation {:.4}",
            self.role,
            self.name,
            self.dtype,
            shape.join(", "),
            s.min,
            s.max,
            s.mean,
            s.deviation
        );
        for (count, what) in [
            (s.nans, "NaN"),
            (s.infinities, "infinite"),
            (s.unwritten, "never written"),
        ] {
            if count > 0 {
                text += &format!("  {count} {what}");
            }
        }
        text + "\n"
    }

    fn to_json(&self) -> Value {
        let s = &self.summary;
        json!({
            "name": self.name,
            "role": self.role,
            "dtype": self.dtype,
            "shape": self.shape,
            "min": s.min,
            "max": s.max,
            "mean": s.mean,
            "deviation": s.deviation,
            "nans": s.nans,
            "infinities": s.infinities,
            "unwritten": s.unwritten,
        })
    }
}
