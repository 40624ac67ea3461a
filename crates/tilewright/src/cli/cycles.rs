//! `tilewright cycles`: how long a block takes on a compute unit of an AMD GPU, by the cycle
//! model, from what the emulator sees its waves do.

use std::path::PathBuf;

use clap::Args;
use serde_json::{Value, json};
use tilewright::emulate::{self, Emulator};
use tilewright::gfx9::asm::Function;
use tilewright::gfx9::cycles::{self, Machine, Report, Timing, Trace, chrome, svg};
use tilewright::gfx9::emu::{Arch, Landing};
use tilewright::ir::{Code, Diagnostic, Level, SourceMap, Span, Target};
use tilewright::lowering::Until;
use tilewright::passes;
use tilewright::sim;

use super::output::{self, Failure, Outcome};
use super::progress::Progress;
use super::show::{PrintTo, Show, ShowArgs};
use super::{KernelArgs, assembly, input, lower::lower, passes::parse_target, run};

/// Lines of the list of instructions.
const LINES: usize = 12;

#[derive(Args, Debug)]
#[command(after_help = "\
Examples:
  tilewright cycles examples/gemm.py --set M=256 --set N=256 --set K=1024
  tilewright cycles kernel.s --arg buffer:1M --arg buffer:1M --arg buffer:256K --arg 256 --arg 256 --arg 1024
  tilewright cycles examples/gemm.py --svg loop.svg --clock 1.5

A kernel file is lowered and compiled by clang for gfx950 or gfx942, one of its blocks is emulated,
and the model replays what the waves did. An assembly file, `FILE.s` or `FILE.s:KERNEL`, is run as
it stands, with the arguments that are given. docs/amd-cycles.md says what the model knows, and how
far it is off.")]
pub struct CyclesArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// What a kernel file is compiled for: gfx950 or gfx942. An assembly file says it itself.
    #[arg(long, default_value = "gfx950")]
    target: String,
    /// An argument of a kernel in an assembly file, in order: `buffer:BYTES` (64K, 4M), a whole
    /// number, or one with a point. May be repeated.
    #[arg(long = "arg", value_name = "VALUE", allow_negative_numbers = true)]
    arguments: Vec<String>,
    /// Threads of a block of a kernel in an assembly file; without this as many as it allows.
    #[arg(long, value_name = "N")]
    threads: Option<u32>,
    /// The block that is timed.
    #[arg(long, value_name = "N", default_value_t = 0)]
    block: u32,
    /// Draw a window of the timeline: waves by SIMD, coloured by what they do.
    #[arg(long, value_name = "FILE")]
    svg: Option<PathBuf>,
    /// Write the whole timeline as events for chrome://tracing or Perfetto.
    #[arg(long, value_name = "FILE")]
    trace: Option<PathBuf>,
    /// Turns of the hot loop that `--svg` shows.
    #[arg(long, value_name = "N", default_value_t = 2)]
    turns: usize,
    /// The clock that the GPU runs at under load. With it times and operations a second are said;
    /// the model itself knows cycles only.
    #[arg(long, value_name = "GHZ")]
    clock: Option<f64>,
    /// Cycles that data takes behind the vector L1, instead of the model's.
    #[arg(long, value_name = "CYCLES")]
    latency: Option<u32>,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
    #[command(flatten)]
    show: ShowArgs,
}

/// What was timed.
struct Timed {
    function: Function,
    timing: Timing,
    machine: Machine,
    /// The line of the kernel file that an instruction comes from.
    places: Vec<Option<String>>,
}

pub fn cycles(args: &CyclesArgs) -> Outcome {
    if let Some(clock) = args.clock
        && !(clock > 0.0 && clock < 100.0)
    {
        return Err(Failure::Usage(format!(
            "`--clock {clock}` is no clock in GHz; one that was seen is 1.5"
        )));
    }
    let (path, entry) = input::split_entry(&args.kernel.kernel);
    let timed = match path.ends_with(".s") {
        true => of_assembly(args, path, entry)?,
        false => of_kernel(args)?,
    };
    let window = svg::window(&timed.timing, &timed.function, args.turns);
    let files = [
        args.svg.as_ref().map(|file| {
            let text = svg::svg(&timed.timing, &timed.function, window);
            (file, text)
        }),
        args.trace.as_ref().map(|file| {
            let whole = 0..timed.timing.cycles;
            (file, chrome::chrome(&timed.timing, &timed.function, whole))
        }),
    ];
    for (file, text) in files.into_iter().flatten() {
        output::write_file(file, text.as_bytes())
            .map_err(|d| output::fail(&[*d], &SourceMap::new(), args.json))?;
    }
    match args.json {
        true => output::print_json(&timed.to_json(args.clock)),
        false => output::print(&timed.to_text(args.clock)),
    }
    Ok(())
}

fn of_assembly(args: &CyclesArgs, path: &str, kernel: Option<&str>) -> Result<Timed, Failure> {
    if let Some(option) = args.show.asked() {
        return Err(Failure::Usage(format!(
            "`{option}` shows passes, and an assembly file is timed as it stands"
        )));
    }
    if !args.kernel.set.is_empty() {
        return Err(Failure::Usage(
            "`--set` binds parameters of a kernel file; an assembly file takes `--arg`".to_owned(),
        ));
    }
    let mut sources = SourceMap::new();
    let progress = Progress::new(args.json);
    progress.doing("running the block");
    let request = assembly::Request {
        path,
        kernel,
        arguments: &args.arguments,
        threads: args.threads,
        block: args.block,
    };
    let traced = assembly::trace(&request, &mut sources);
    let fail = |diags: &[Diagnostic]| output::fail(diags, &sources, args.json);
    let traced = traced.map_err(|diags| fail(&diags))?;
    let machine = machine(&traced.arch, args).map_err(|d| fail(&[*d]))?;
    let timing = time(&traced.function, &traced.trace, &machine).map_err(|d| fail(&[*d]))?;
    let places = vec![None; traced.function.instructions.len()];
    Ok(Timed {
        function: traced.function,
        timing,
        machine,
        places,
    })
}

fn of_kernel(args: &CyclesArgs) -> Result<Timed, Failure> {
    let target = parse_target(&args.target)?;
    if Arch::named(target.name()).is_none() {
        return Err(Failure::Usage(format!(
            "`cycles` models AMD machines, not {target}; `--target gfx950` or `gfx942`"
        )));
    }
    if !args.arguments.is_empty() || args.threads.is_some() {
        return Err(Failure::Usage(
            "`--arg` and `--threads` are for assembly files; a kernel file takes `--set`"
                .to_owned(),
        ));
    }
    args.show.check(&passes::pipeline(target))?;
    let loaded = input::load(&args.kernel, target, args.json)?;
    let sources = &loaded.sources;
    let (spec, notes) = run::inputs(&loaded, 0);
    for note in notes {
        output::note(&format!("{note}\n"));
    }
    let to = PrintTo::beside(args.json);
    let mut show = Show::new(&args.show, &loaded.func, to, sources)?;
    let until = Until::Level(Level::Device);
    let lowered = match loaded.func.level {
        Level::Device => loaded.func.clone(),
        Level::Tile | Level::Loop => lower(&loaded.func, target, until, sources, &mut show)?,
    };
    show.print_timings();
    let fail = |diags: &[Diagnostic]| show.fail(diags, sources);
    let progress = Progress::new(args.json);
    let mut tensors =
        sim::make_inputs(&loaded.func, &spec).map_err(|e| fail(&e.diagnostics.into_vec()))?;
    progress.doing("compiling");
    let emulator = emulator(&lowered, target, sources).map_err(|d| fail(&d))?;
    progress.doing("running the block");
    let options = emulate::Options {
        landing: Landing::Early,
        ..emulate::Options::default()
    };
    let (traced, findings) = emulator
        .trace(&mut tensors, &options, args.block)
        .map_err(|e| fail(&e.into_diagnostics()))?;
    if !findings.is_empty() {
        return Err(fail(&findings));
    }
    let machine = machine(target.name(), args).map_err(|d| fail(&[*d]))?;
    let timing = time(traced.function, &traced.trace, &machine).map_err(|d| fail(&[*d]))?;
    let place = |at: usize| {
        let span = emulator.place(traced.function, at)?;
        let (line, _) = sources.line_col(span)?;
        Some(format!("{}:{line}", sources.name(span.file)))
    };
    let places = (0..traced.function.instructions.len()).map(place);
    Ok(Timed {
        places: places.collect(),
        function: traced.function.clone(),
        timing,
        machine,
    })
}

fn emulator(
    lowered: &tilewright::ir::Func,
    target: Target,
    sources: &SourceMap,
) -> Result<Emulator, Vec<Diagnostic>> {
    Emulator::new(lowered, target, sources).map_err(|e| e.into_diagnostics())
}

fn machine(arch: &str, args: &CyclesArgs) -> Result<Machine, Box<Diagnostic>> {
    let mut machine = Machine::named(arch).ok_or_else(|| problem(format!("no model of {arch}")))?;
    if let Some(latency) = args.latency {
        machine.memory_latency = latency.min(100_000);
    }
    Ok(machine)
}

fn time(function: &Function, trace: &Trace, machine: &Machine) -> Result<Timing, Box<Diagnostic>> {
    cycles::time(function, trace, machine).map_err(|e| problem(e.to_string()))
}

fn problem(text: String) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(Code("cycles"), Span::NONE, text))
}

/// What a clock makes of cycles.
struct Rate {
    microseconds: f64,
    /// TFLOP/s of a compute unit, over the block and in the steady loop.
    block: f64,
    steady: Option<f64>,
}

impl Timed {
    fn rate(&self, clock: f64) -> Rate {
        let rate = |operations: f64, cycles: u64| operations / cycles.max(1) as f64 * clock / 1e3;
        let steady = self.timing.steady(&self.function);
        Rate {
            microseconds: self.timing.cycles as f64 / clock / 1e3,
            block: rate(
                self.timing.operations(&self.function) as f64,
                self.timing.cycles,
            ),
            steady: steady.map(|s| rate(s.operations, s.cycles)),
        }
    }

    fn to_text(&self, clock: Option<f64>) -> String {
        let report = Report {
            timing: &self.timing,
            function: &self.function,
            lines: 0,
        };
        let mut text = report.to_string();
        text += "where most is waited:\n";
        for hot in self.timing.hottest(&self.function, LINES) {
            let place = self.places.get(hot.index).cloned().flatten();
            text += &format!(
                "  {:>8} cycles, {:<18} assembly line {:>5}  {}{}\n",
                hot.stalls.total(),
                hot.stalls.most().map_or("", |stall| stall.name()),
                hot.instruction.line,
                hot.instruction.text,
                place.map_or(String::new(), |place| format!("  ({place})")),
            );
        }
        if let Some(clock) = clock {
            let rate = self.rate(clock);
            let units = self.machine.compute_units;
            text += &format!(
                "at {clock} GHz, as stated: {:.2} us a block, {:.2} TFLOP/s a compute unit\n",
                rate.microseconds, rate.block
            );
            if let Some(steady) = rate.steady {
                text += &format!(
                    "  in the hot loop {steady:.2}, which would be {:.0} TFLOP/s if all {units} compute units did the same\n",
                    steady * f64::from(units)
                );
            }
        }
        text
    }

    fn to_json(&self, clock: Option<f64>) -> Value {
        let timing = &self.timing;
        let steady = timing.steady(&self.function).map(|s| {
            let stalls = s
                .stalls
                .iter()
                .map(|(k, v)| (k.name().to_owned(), json!(v)));
            let kinds = s.kinds.iter().map(|(k, v)| (k.name().to_owned(), json!(v)));
            json!({
                "cycles": s.cycles,
                "line": s.line,
                "turns": s.turns,
                "matrix_share": s.matrix_share,
                "matrix_cycles": s.matrix_cycles,
                "operations": s.operations,
                "waiting": stalls.collect::<serde_json::Map<_, _>>(),
                "kinds": kinds.collect::<serde_json::Map<_, _>>(),
            })
        });
        let stalls = timing.all_stalls().sorted().into_iter();
        let stalls = stalls.map(|(k, v)| (k.name().to_owned(), json!(v)));
        let hottest = timing
            .hottest(&self.function, LINES)
            .into_iter()
            .map(|hot| {
                json!({
                    "line": hot.instruction.line,
                    "instruction": hot.instruction.text.as_str(),
                    "source": self.places.get(hot.index).cloned().flatten(),
                    "cycles": hot.stalls.total(),
                    "reason": hot.stalls.most().map(|stall| stall.name()),
                })
            });
        let rate = clock.map(|clock| {
            let rate = self.rate(clock);
            json!({
                "ghz": clock,
                "microseconds": rate.microseconds,
                "tflops_compute_unit": rate.block,
                "tflops_compute_unit_hot_loop": rate.steady,
            })
        });
        json!({
            "ok": true,
            "kernel": self.function.name,
            "target": timing.arch,
            "cycles": timing.cycles,
            "waves": timing.waves.len(),
            "operations": timing.operations(&self.function),
            "matrix_share": timing.matrix_share(),
            "vector_share": timing.vector_share(),
            "lds_bank_share": timing.bank_share(),
            "l1_share": timing.l1_share(),
            "hot_loop": steady,
            "waiting": stalls.collect::<serde_json::Map<_, _>>(),
            "hottest": hottest.collect::<Vec<_>>(),
            "clock": rate,
        })
    }
}
