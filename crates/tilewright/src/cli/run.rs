//! `tilewright run`: a kernel on random inputs.

use std::io::IsTerminal as _;
use std::time::Instant;

use clap::{Args, ValueEnum};
use indicatif::{ProgressBar, ProgressStyle};
use serde_json::{Value, json};
use tilewright::ir::{Func, Param};
use tilewright::sim::{self, InputSpec, Number, Progress, RunOptions, Summary};

use super::output::{self, Outcome};
use super::{KernelArgs, input};

/// What a run-time size is when nobody says: no multiple of any tile.
const DEFAULT_SIZE: i64 = 300;

#[derive(Args, Debug)]
pub struct RunArgs {
    #[command(flatten)]
    kernel: KernelArgs,
    /// What runs the kernel.
    #[arg(long, value_enum, default_value_t = Executor::Reference)]
    on: Executor,
    /// Where the random inputs come from.
    #[arg(long, default_value_t = 0)]
    seed: u64,
    /// Worker threads; 0 takes all cores. Results do not depend on it.
    #[arg(long, default_value_t = 0)]
    jobs: usize,
    /// Print one JSON object.
    #[arg(long)]
    json: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug, ValueEnum)]
enum Executor {
    /// The reference evaluator: tile IR, tile by tile, exact rounding.
    Reference,
}

pub fn run(args: &RunArgs) -> Outcome {
    let loaded = input::load(&args.kernel, args.json)?;
    let func = &loaded.func;
    let mut spec = InputSpec {
        seed: args.seed,
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
    let mut tensors = sim::make_inputs(func, &spec)
        .map_err(|e| output::fail(&e.diagnostics.into_vec(), &loaded.sources, args.json))?;

    let bar = progress_bar(args.json);
    let report = |p: Progress| {
        bar.set_length(p.blocks);
        bar.set_position(p.blocks_done);
    };
    let options = RunOptions {
        threads: args.jobs,
        progress: Some(&report),
        ..RunOptions::default()
    };
    let start = Instant::now();
    let result = match args.on {
        Executor::Reference => sim::run(func, &mut tensors, &options),
    };
    let ms = start.elapsed().as_secs_f64() * 1e3;
    bar.finish_and_clear();
    let report =
        result.map_err(|e| output::fail(&e.diagnostics.into_vec(), &loaded.sources, args.json))?;
    output::warn(&report.warnings.into_vec(), &loaded.sources);

    let summaries = summaries(func, &tensors);
    if args.json {
        // The reference evaluator is what others are compared with, so it has no error.
        output::print_json(&json!({
            "ok": true,
            "kernel": func.name,
            "target": Value::Null,
            "executor": "reference",
            "max_abs_err": Value::Null,
            "max_rel_err": Value::Null,
            "ms": ms,
            "seed": args.seed,
            "tensors": summaries.iter().map(Line::to_json).collect::<Vec<_>>(),
        }));
        return Ok(());
    }
    let mut text = format!(
        "{} on the reference evaluator, seed {}\n",
        func.name, args.seed
    );
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
    text += &format!("  {ms:.1} ms\n");
    output::print(&text);
    Ok(())
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

fn summaries(func: &Func, tensors: &sim::Args) -> Vec<Line> {
    let mut lines = Vec::new();
    for param in &func.params {
        let Param::Tensor { buffer, output } = param else {
            continue;
        };
        let data = &func.buffers[*buffer];
        if let Some(tensor) = tensors.tensor(&data.name) {
            lines.push(Line {
                name: data.name.clone(),
                role: if *output { "out" } else { "in" },
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
            "  {:3} {} {}[{}]  min {:.4}  max {:.4}  mean {:.4}  deviation {:.4}",
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

/// A bar on stderr for long runs, unless nobody watches.
fn progress_bar(quiet: bool) -> ProgressBar {
    if quiet || !std::io::stderr().is_terminal() {
        return ProgressBar::hidden();
    }
    let bar = ProgressBar::new(0);
    if let Ok(style) = ProgressStyle::with_template("{bar:40} {pos}/{len} blocks, {eta} left") {
        bar.set_style(style);
    }
    bar
}
