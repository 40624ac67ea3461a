//! Testing many seeds with several workers.

use std::io::{IsTerminal, Write};
use std::sync::Mutex;
use std::sync::atomic::{AtomicU64, Ordering};
use std::time::{Duration, Instant};

use tilewright_progen::executors::Passed;
use tilewright_progen::failure::Failure;
use tilewright_progen::{generate, shrink, source};

use crate::cli::RunArgs;
use crate::worker::{Asked, Worker};

/// What a run of many seeds came to.
#[derive(Debug, Default)]
pub struct Outcome {
    pub passed: u64,
    /// Targets of programs that passed: not proved free of hazards, without an instruction,
    /// compiled, emulated.
    pub total: Passed,
    pub failures: Vec<(u64, Failure)>,
}

/// How many smaller programs are asked about for one failure, and for how long at most.
const QUESTIONS: u32 = 600;
const PATIENCE: Duration = Duration::from_secs(120);

pub fn run(args: &RunArgs, timeout: Duration) -> Outcome {
    let next = AtomicU64::new(args.seeds.start);
    let outcome = Mutex::new(Outcome::default());
    let start = Instant::now();
    std::thread::scope(|scope| {
        for _ in 0..args.jobs.max(1) {
            scope.spawn(|| work(args, timeout, start, &next, &outcome));
        }
    });
    if !args.quiet && std::io::stderr().is_terminal() {
        eprintln!();
    }
    outcome.into_inner().unwrap_or_default()
}

fn work(
    args: &RunArgs,
    timeout: Duration,
    start: Instant,
    next: &AtomicU64,
    outcome: &Mutex<Outcome>,
) {
    let mut worker = Worker::new(args.plan.clone());
    loop {
        let seed = next.fetch_add(1, Ordering::Relaxed);
        let late = args
            .seconds
            .is_some_and(|limit| start.elapsed().as_secs() >= limit);
        if seed >= args.seeds.end || late {
            return;
        }
        let asked = Asked {
            seed,
            steps: Vec::new(),
        };
        let answer = worker.ask(&asked, timeout);
        let mut of_this_kind = 0;
        if let Ok(mut outcome) = outcome.lock() {
            match &answer {
                Ok(passed) => {
                    outcome.passed += 1;
                    outcome.total.unproved += passed.unproved;
                    outcome.total.lacking += passed.lacking;
                    outcome.total.compiled += passed.compiled;
                    outcome.total.emulated += passed.emulated;
                }
                Err(failure) => {
                    let same = outcome.failures.iter();
                    of_this_kind = same.filter(|(_, f)| f.kind == failure.kind).count();
                    outcome.failures.push((seed, failure.clone()));
                }
            }
            progress(args, &outcome, start);
        }
        if let Err(failure) = answer
            && of_this_kind < args.each
        {
            keep(args, timeout, seed, &failure);
        }
    }
}

fn progress(args: &RunArgs, outcome: &Outcome, start: Instant) {
    let done = outcome.passed + outcome.failures.len() as u64;
    let terminal = std::io::stderr().is_terminal();
    if args.quiet || !terminal && !done.is_multiple_of(100) {
        return;
    }
    let rate = done as f64 / start.elapsed().as_secs_f64().max(0.001);
    let all = args.seeds.end - args.seeds.start;
    let text = format!(
        "{done} of {all} programs, {} failed, {rate:.1} a second",
        outcome.failures.len()
    );
    let mut err = std::io::stderr();
    let _ = match terminal {
        true => write!(err, "\r{text}").and_then(|()| err.flush()),
        false => writeln!(err, "{text}"),
    };
}

/// The target that a failure is about; asked for where a process ended without saying so.
fn culprit(
    args: &RunArgs,
    timeout: Duration,
    seed: u64,
    failure: &Failure,
) -> Option<&'static str> {
    if failure.target.is_some() || !matches!(failure.kind.as_str(), "crash" | "hang") {
        return failure.target;
    }
    let asked = Asked {
        seed,
        steps: Vec::new(),
    };
    let fails = |target: &&'static str| {
        let mut worker = Worker::new(args.plan.only(Some(target)));
        matches!(worker.ask(&asked, timeout), Err(f) if f.kind == failure.kind)
    };
    let targets = args.plan.plan(seed).map(|plan| plan.targets);
    targets.unwrap_or_default().into_iter().find(fails)
}

/// Makes a failing program smaller and writes it down, as far as that is asked for.
fn keep(args: &RunArgs, timeout: Duration, seed: u64, failure: &Failure) {
    let Some(folder) = &args.keep else {
        return;
    };
    let program = generate::generate(seed);
    let plan = args.plan.only(culprit(args, timeout, seed, failure));
    let mut worker = Worker::new(plan);
    let (smaller, steps) = match args.shrink {
        true => {
            let start = Instant::now();
            shrink::shrink(&program, QUESTIONS, |_, steps| {
                let asked = Asked {
                    seed,
                    steps: steps.to_vec(),
                };
                start.elapsed() < PATIENCE
                    && matches!(worker.ask(&asked, timeout), Err(f) if f.kind == failure.kind)
            })
        }
        false => (program, Vec::new()),
    };
    // The message is the smaller program's own.
    let asked = Asked {
        seed,
        steps: steps.clone(),
    };
    let told = match worker.ask(&asked, timeout) {
        Err(told) => told,
        Ok(_) => failure.clone(),
    };
    let mut text = format!("# {}\n", told.title());
    for line in told.detail.lines().take(40) {
        text.push_str(&format!("# {line}\n").replace("# \n", "#\n"));
    }
    let steps: Vec<String> = steps.iter().map(usize::to_string).collect();
    text.push_str(&format!("# seed {seed}"));
    if !steps.is_empty() {
        text.push_str(&format!(", steps {}", steps.join(",")));
    }
    text.push('\n');
    text.push_str(&source::print(&smaller));
    let name: String = failure
        .kind
        .chars()
        .map(|c| if c.is_ascii_alphanumeric() { c } else { '-' })
        .collect();
    let written = std::fs::create_dir_all(folder)
        .and_then(|()| std::fs::write(folder.join(format!("{name}-{seed}.py")), text));
    if let Err(e) = written {
        eprintln!("{}: {e}", folder.display());
    }
}
