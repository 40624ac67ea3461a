//! The command line.

use std::ops::Range;
use std::path::PathBuf;
use std::process::ExitCode;
use std::time::Duration;

use clap::{Args, Parser, Subcommand};
use tilewright_progen::executors::{self, Plan};
use tilewright_progen::{census, generate, plain, shrink, source};

use crate::worker::{self, Asked, Recent};
use crate::{report, run};

/// Random tile programs against every part of the compiler.
///
/// A seed names a program. Each one is printed as a kernel file, staged, run by the reference
/// evaluator, lowered for every target, checked for hazards and simulated; every answer must be
/// that of a plain evaluation of the program, to the last bit.
#[derive(Parser, Debug)]
#[command(name = "tilewright-progen", version)]
struct Cli {
    #[command(subcommand)]
    command: Command,
}

#[derive(Subcommand, Debug)]
enum Command {
    /// Test the programs of a range of seeds.
    Run(RunArgs),
    /// Print the program of a seed.
    Show {
        seed: u64,
        /// Steps to a smaller program, as a failure's file names them.
        #[arg(long, value_delimiter = ',')]
        steps: Vec<usize>,
    },
    /// Test the program of a seed, and say all about it.
    One {
        seed: u64,
        #[arg(long, value_delimiter = ',')]
        steps: Vec<usize>,
        #[command(flatten)]
        plan: PlanArgs,
    },
    /// Count the constructs of the programs of a range of seeds.
    Census {
        #[arg(long, value_parser = seeds)]
        seeds: Range<u64>,
    },
    /// Answer for seeds that come on the standard input: what `run` starts.
    #[command(hide = true)]
    Worker(PlanArgs),
}

#[derive(Args, Clone, Debug)]
pub struct PlanArgs {
    /// Targets to lower for, with commas between; all when left out.
    #[arg(long, value_delimiter = ',')]
    targets: Vec<String>,
    /// Orders of warps in each mode of the simulator.
    #[arg(long, default_value_t = 2)]
    orders: u64,
    /// Compile the generated source by NVRTC and clang.
    #[arg(long)]
    toolchains: bool,
    /// Compile only for every Nth seed, for one target after another.
    #[arg(long, value_name = "N")]
    toolchains_every: Option<u64>,
    /// Run what clang makes of it for AMD's targets in the emulator.
    #[arg(long)]
    emulate: bool,
    /// Emulate only every Nth seed, for one of these targets after another.
    #[arg(long, value_name = "N")]
    emulate_every: Option<u64>,
    /// Run on the first NVIDIA GPU too.
    #[arg(long)]
    gpu: bool,
}

#[derive(Args, Clone, Debug)]
pub struct RunArgs {
    /// The first seed and the one after the last, like `0..300`.
    #[arg(long, value_parser = seeds)]
    pub seeds: Range<u64>,
    /// Programs tested at once.
    #[arg(long, default_value_t = 2)]
    pub jobs: usize,
    /// Seconds that one program may take.
    #[arg(long, default_value_t = 10)]
    pub timeout: u64,
    /// Seconds after which no further seed is begun.
    #[arg(long)]
    pub seconds: Option<u64>,
    /// Write failing programs into this folder.
    #[arg(long, value_name = "DIR")]
    pub keep: Option<PathBuf>,
    /// Make failing programs smaller first.
    #[arg(long)]
    pub shrink: bool,
    /// How many failures of one kind are made smaller and kept.
    #[arg(long, default_value_t = 3)]
    pub each: usize,
    /// No line of progress.
    #[arg(long)]
    pub quiet: bool,
    #[command(flatten)]
    pub plan: PlanArgs,
}

fn seeds(text: &str) -> Result<Range<u64>, String> {
    let (first, end) = text.split_once("..").ok_or("seeds are written A..B")?;
    let number = |t: &str| t.trim().parse::<u64>().map_err(|e| e.to_string());
    let (first, end) = (number(first)?, number(end)?);
    match first < end {
        true => Ok(first..end),
        false => Err("there is no seed in this range".to_string()),
    }
}

impl PlanArgs {
    /// What is done with the program of this seed.
    pub fn plan(&self, seed: u64) -> Result<Plan, String> {
        let all = executors::targets();
        let mut targets = Vec::new();
        for name in &self.targets {
            match all.iter().find(|t| *t == name) {
                Some(target) => targets.push(*target),
                None => {
                    return Err(format!(
                        "`{name}` is no target; there are {}",
                        all.join(", ")
                    ));
                }
            }
        }
        if targets.is_empty() {
            targets = all;
        }
        let toolchains = chosen(&targets, self.toolchains, self.toolchains_every, seed);
        let mut emulated = executors::emulated();
        emulated.retain(|target| targets.contains(target));
        let emulated = chosen(&emulated, self.emulate, self.emulate_every, seed);
        Ok(Plan {
            targets,
            orders: self.orders.max(1),
            toolchains,
            emulated,
            gpu: self.gpu,
        })
    }

    /// The same, as arguments of a worker.
    pub fn to_words(&self) -> Vec<String> {
        let mut words = vec!["--orders".to_string(), self.orders.to_string()];
        if !self.targets.is_empty() {
            words.extend(["--targets".to_string(), self.targets.join(",")]);
        }
        if self.toolchains {
            words.push("--toolchains".to_string());
        }
        if let Some(n) = self.toolchains_every {
            words.extend(["--toolchains-every".to_string(), n.to_string()]);
        }
        if self.emulate {
            words.push("--emulate".to_string());
        }
        if let Some(n) = self.emulate_every {
            words.extend(["--emulate-every".to_string(), n.to_string()]);
        }
        if self.gpu {
            words.push("--gpu".to_string());
        }
        words
    }

    /// The same for one target only.
    pub fn only(&self, target: Option<&str>) -> PlanArgs {
        let mut plan = self.clone();
        if let Some(target) = target {
            plan.targets = vec![target.to_string()];
        }
        // With one target, taking turns has no meaning.
        plan.toolchains |= plan.toolchains_every.take().is_some();
        plan.emulate |= plan.emulate_every.take().is_some();
        plan
    }
}

/// The targets that something is done for: all of them, or one after another at every Nth seed.
fn chosen(targets: &[&'static str], all: bool, every: Option<u64>, seed: u64) -> Vec<&'static str> {
    match every.map(|n| n.max(1)) {
        None if all => targets.to_vec(),
        Some(n) if seed.is_multiple_of(n) && !targets.is_empty() => {
            vec![targets[(seed / n) as usize % targets.len()]]
        }
        _ => Vec::new(),
    }
}

pub fn main() -> ExitCode {
    match Cli::parse().command {
        Command::Run(args) => {
            if let Err(why) = args.plan.plan(0) {
                return failed(&why);
            }
            let timeout = Duration::from_secs(args.timeout.max(1));
            let outcome = run::run(&args, timeout);
            print!("{}", report::table(&outcome));
            match outcome.failures.is_empty() {
                true => ExitCode::SUCCESS,
                false => ExitCode::FAILURE,
            }
        }
        Command::Show { seed, steps } => {
            let program = generate::generate(seed);
            match shrink::apply(&program, &steps) {
                Some(program) => {
                    print!("{}", source::print(&program));
                    ExitCode::SUCCESS
                }
                None => failed("there is no such smaller program"),
            }
        }
        Command::One { seed, steps, plan } => one(seed, &steps, &plan),
        Command::Census { seeds } => {
            let mut counts = census::Census::new();
            let mut thrown = 0;
            for seed in seeds.clone() {
                let (program, attempts) = generate::generate_counting(seed);
                thrown += attempts;
                census::count(&program, &mut counts);
            }
            for (name, count) in counts {
                println!("{count:6}  {name}");
            }
            println!("{} programs, {thrown} thrown away", seeds.end - seeds.start);
            for (seed, why) in generate::refusals(seeds).iter().take(20) {
                println!("thrown away: seed {seed}, {why}");
            }
            ExitCode::SUCCESS
        }
        Command::Worker(plan) => {
            worker::serve(&plan);
            ExitCode::SUCCESS
        }
    }
}

fn one(seed: u64, steps: &[usize], plan: &PlanArgs) -> ExitCode {
    let program = generate::generate(seed);
    let Some(program) = shrink::apply(&program, steps) else {
        return failed("there is no such smaller program");
    };
    println!("{}", source::print(&program));
    match plain::run(&program) {
        Ok(tensors) => {
            for (buf, values) in program.tensors().zip(&tensors) {
                let first: Vec<String> = values.iter().take(12).map(i64::to_string).collect();
                let name = source::name(&program, buf);
                println!("{name} {:?}: {} …", program.shape(buf), first.join(" "));
            }
        }
        Err(why) => println!("no answer: {why}"),
    }
    let asked = Asked {
        seed,
        steps: steps.to_vec(),
    };
    match worker::answer(&asked, plan, &mut Recent::default()) {
        Ok(passed) => {
            println!("passed: {passed:?}");
            ExitCode::SUCCESS
        }
        Err(failure) => {
            println!("{failure}");
            ExitCode::FAILURE
        }
    }
}

fn failed(why: &str) -> ExitCode {
    eprintln!("{why}");
    ExitCode::from(2)
}
