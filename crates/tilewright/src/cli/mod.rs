//! The command line: one file a subcommand.
//!
//! Exit codes: 0 success, 1 a user's error with a located diagnostic on stderr, 2 bad usage.
//! With `--json` stdout holds exactly one object.

mod amd;
mod assembly;
mod bench;
mod cache;
mod compile;
mod counters;
mod cycles;
mod doctor;
mod dump;
mod emulated;
mod explain;
mod findings;
mod gpu;
mod input;
mod layouts;
mod lower;
mod manual;
mod opt;
mod output;
mod passes;
mod progress;
mod run;
mod schema;
mod shared;
mod show;
mod tensors;
mod timings;
mod tune;
mod verify;

use std::io::Write as _;
use std::panic;
use std::process::ExitCode;

use clap::{Args, Parser, Subcommand};
use tilewright::ir::Code;
use tilewright::passes::decisions::{DECISIONS, Decision};
use tilewright::runtime;

use self::output::Failure;

const USAGE: Code = Code("usage");
const INTERNAL: Code = Code("internal-error");

/// Compiles GPU tile kernels, and runs them anywhere.
#[derive(Parser, Debug)]
#[command(name = "tilewright", version, about, max_term_width = 100)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Run a kernel on random inputs and summarise its outputs.
    Run(run::RunArgs),
    /// Stage a kernel and print it at one level of the compiler.
    Compile(compile::CompileArgs),
    /// Lower a kernel, prove that its waits and barriers order what it does, run it in the
    /// simulator in several orders of its warps, compare the results with the reference
    /// evaluator's, and look for races between blocks. Device IR in text form is checked as it
    /// stands.
    Verify(verify::VerifyArgs),
    /// Time a kernel on a GPU of this machine, after checking what it computes there.
    Bench(bench::BenchArgs),
    /// Say how long a block takes on a compute unit of an AMD GPU, cycle by cycle, and what its
    /// waves wait for. No GPU is needed.
    Cycles(cycles::CyclesArgs),
    /// Choose the fastest of a kernel's configurations: each is compiled, proved, checked, and only
    /// then timed.
    Tune(tune::TuneArgs),
    /// Run passes on IR in text form.
    Opt(opt::OptArgs),
    /// List the passes of a target in order.
    Passes(passes::PassesArgs),
    /// Say what a diagnostic means and what helps: `tilewright explain copy-extents`. Without a
    /// name, list all of them.
    Explain(explain::ExplainArgs),
    /// Say which toolchains and devices were found, and what is missing.
    Doctor(doctor::DoctorArgs),
    /// Print the JSON Schema of the objects that `--json` prints.
    Schema,
    /// Write manual pages, one a command, to a folder.
    Man(manual::ManArgs),
    /// Print completions of the command line for a shell.
    Completions(manual::CompletionsArgs),
    /// Show or empty the cache of compiled kernels.
    Cache(cache::CacheArgs),
}

/// Which kernel, and with which parameters.
#[derive(Args, Clone, Debug)]
struct KernelArgs {
    /// A kernel file: `FILE.py`, `FILE.py:function`, or IR in text form, `FILE.tw`.
    #[arg(value_name = "FILE[:FUNCTION]")]
    kernel: String,
    /// Bind a parameter of the kernel's factory, a `T.const` or a `T.dynamic` size, or a scalar
    /// that the kernel takes at its launch (`alpha: T.float32`).
    /// The value is a Python literal or the name of a dtype. May be repeated.
    #[arg(long = "set", value_name = "NAME=VALUE")]
    set: Vec<String>,
    /// The schedule of every pipelined loop that names none itself.
    #[arg(long, value_name = "NAME|FILE", default_value = AUTO, long_help = schedules())]
    schedule: String,
    /// Switch something on or off that the compiler would decide by its cost; `--explain schedule`
    /// says what it decides and why. May be repeated.
    #[arg(long = "decide", value_name = "NAME=on|off", value_parser = Decision::from_text, long_help = decisions())]
    decide: Vec<(Decision, bool)>,
}

fn decisions() -> String {
    let head = "Switch something on or off that the compiler would decide by its cost; `--explain \
                schedule` says what it decides and why. May be repeated.\n\nPossible names:\n";
    let line = |d: &Decision| format!("- {}: {}\n", d.name, d.does);
    let lines: String = DECISIONS.iter().map(line).collect();
    format!("{head}{}", lines.trim_end())
}

/// The schedule that is chosen by its cost.
const AUTO: &str = "auto";

fn schedules() -> String {
    let head = "The schedule of every pipelined loop that names none itself: one of these, or a file \
                with orders, as `--emit schedule` prints them. `--explain schedule` says what is \
                chosen and why.\n\nPossible names:\n- auto: the cheapest that applies\n";
    let named = tilewright::passes::schedules::SCHEDULES.iter();
    let lines: String = named
        .map(|s| format!("- {}: {}\n", s.name, s.about))
        .collect();
    format!("{head}{}", lines.trim_end())
}

pub fn main() -> ExitCode {
    runtime::signals::report_file_size_limit();
    // The object is owed also where the command line cannot be read.
    let as_json = std::env::args_os().any(|a| a == "--json");
    let cli = match Cli::try_parse() {
        Ok(cli) => cli,
        Err(e) if as_json && e.use_stderr() => {
            let _ = e.print();
            output::print_failure(USAGE, e.render().to_string().trim());
            return ExitCode::from(2);
        }
        Err(e) => e.exit(),
    };
    // A panic is a bug of ours: it is reported as such, with the place, and never as exit 101. Nothing
    // is unwound, so that the code need not know how.
    panic::set_hook(Box::new(move |info| {
        let _ = writeln!(
            std::io::stderr(),
            "tilewright: internal error: {info}\nPlease report this together with the kernel that caused it."
        );
        if as_json {
            output::print_failure(INTERNAL, "the compiler failed; stderr says where");
        }
        std::process::exit(1);
    }));
    let result = match cli.command {
        Command::Run(args) => run::run(&args),
        Command::Compile(args) => compile::compile(&args),
        Command::Verify(args) => verify::verify(&args),
        Command::Bench(args) => bench::bench(&args),
        Command::Cycles(args) => cycles::cycles(&args),
        Command::Tune(args) => tune::tune(&args),
        Command::Cache(args) => cache::cache(&args),
        Command::Opt(args) => opt::opt(&args),
        Command::Passes(args) => passes::passes(&args),
        Command::Explain(args) => explain::explain(&args),
        Command::Doctor(args) => doctor::doctor(&args),
        Command::Schema => schema::schema(),
        Command::Man(args) => manual::man(&args),
        Command::Completions(args) => manual::completions(&args),
    };
    match result {
        Ok(()) if output::is_whole() => ExitCode::SUCCESS,
        Ok(()) | Err(Failure::User) => ExitCode::from(1),
        Err(Failure::Worker(code)) => ExitCode::from(code),
        Err(Failure::Usage(message)) => {
            let _ = writeln!(std::io::stderr(), "tilewright: {message}");
            if as_json {
                output::print_failure(USAGE, &message);
            }
            ExitCode::from(2)
        }
    }
}
