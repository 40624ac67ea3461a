//! From tile IR to device IR: every kernel of the examples, with the pipeline of each target.
//!
//! `cargo bench -p tilewright-passes --bench passes -- [WORDS] [--runs N] [--median] [--each]`
//! prints a table of milliseconds. `legalize` is the passes before pipelined loops are written
//! out. `schedule` is the planning, the writing out and the synchronisation of loops, the placing
//! of shared memory, and a run of the hazard checker over the result, where placing has not asked
//! it. The two overlap in `pipeline-planning`.
//!
//! A pass counts with the least time of its runs, so that other work on the machine matters
//! little; with `--median` it counts with the median. `WORDS` choose kernels and targets by parts
//! of their names, `--each` lists passes. A kernel that a target refuses at its default sizes is
//! left out there.

use std::time::{Duration, Instant};

use tilewright_ir::{Func, SourceMap, Target};
use tilewright_passes::driver;
use tilewright_schedule::hazard;

/// What is promised for `legalize` and for `schedule`, of every kernel.
const LIMIT: Duration = Duration::from_millis(5);

/// The pass that legalize ends before.
const FIRST_OF_OPTIMIZE: &str = "inject-software-pipeline";
/// The pass that belongs to the schedule, but runs early.
const PLANNING: &str = "pipeline-planning";

const TARGETS: [Target; 3] = [Target::Sm80, Target::Gfx942, Target::Gfx950];

/// The two columns of a target that refuses the kernel or was not asked for.
const NOTHING: &str = "– | –";

fn main() {
    let options = Options::read();
    let columns = TARGETS.map(|t| format!("{t} legalize | {t} schedule"));
    println!("| kernel | {} |", columns.join(" | "));
    println!("|---|{}", "---|".repeat(2 * TARGETS.len()));
    let (mut count, mut over) = (0, Vec::new());
    for (name, func) in kernels() {
        let mut row = Vec::new();
        for target in TARGETS {
            let title = format!("{name} {target}");
            let times = options
                .chosen(&title)
                .then(|| Times::of(&func, target, &options));
            let Some(times) = times.flatten() else {
                row.push(NOTHING.to_string());
                continue;
            };
            let (legalize, schedule) = (times.legalize(), times.schedule());
            count += 1;
            if legalize > LIMIT || schedule > LIMIT {
                over.push(title);
            }
            row.push(format!("{} | {}", ms(legalize), ms(schedule)));
            if options.each {
                for (pass, time) in &times.parts {
                    println!("{name} {target} {pass} {}", ms(*time));
                }
            }
        }
        if row.iter().any(|cell| cell != NOTHING) {
            println!("| {name} | {} |", row.join(" | "));
        }
    }
    let limit = LIMIT.as_millis();
    println!(
        "\n{count} kernels and targets, {} with a part above {limit} ms {over:?}",
        over.len()
    );
}

struct Options {
    words: Vec<String>,
    runs: usize,
    median: bool,
    each: bool,
}

impl Options {
    fn read() -> Options {
        let mut options = Options {
            words: Vec::new(),
            runs: 20,
            median: false,
            each: false,
        };
        let mut args = std::env::args().skip(1);
        while let Some(arg) = args.next() {
            match arg.as_str() {
                // What cargo says to every benchmark.
                "--bench" => {}
                "--median" => options.median = true,
                "--each" => options.each = true,
                "--runs" => {
                    let runs = args.next().and_then(|n| n.parse().ok());
                    options.runs = runs.filter(|&n| n > 0).expect("a number after --runs");
                }
                _ => options.words.push(arg),
            }
        }
        options
    }

    fn chosen(&self, title: &str) -> bool {
        self.words.iter().all(|word| title.contains(word.as_str()))
    }
}

/// The time of every pass, in the order of the pipeline, and at the end of a check of the result.
struct Times {
    parts: Vec<(&'static str, Duration)>,
}

impl Times {
    /// `None` where the target refuses the kernel.
    fn of(func: &Func, target: Target, options: &Options) -> Option<Times> {
        let unverified = driver::Options {
            verify: false,
            ..driver::Options::default()
        };
        let mut runs: Vec<(&str, Vec<Duration>)> = Vec::new();
        for _ in 0..options.runs {
            let mut func = func.clone();
            let report = driver::run(&mut func, target, &unverified).ok()?;
            let start = Instant::now();
            let check = || hazard::check(&func, target);
            std::hint::black_box(report.hazards.unwrap_or_else(check));
            let check = ("check", start.elapsed());
            let passes = report.timings.iter().map(|row| (row.step.name, row.pass));
            for (at, (name, time)) in passes.chain([check]).enumerate() {
                match runs.get_mut(at) {
                    Some((_, times)) => times.push(time),
                    None => runs.push((name, vec![time])),
                }
            }
        }
        let counted = runs.into_iter().map(|(name, mut times)| {
            times.sort_unstable();
            (
                name,
                times[if options.median { times.len() / 2 } else { 0 }],
            )
        });
        Some(Times {
            parts: counted.collect(),
        })
    }

    /// The number of passes before pipelined loops are written out.
    fn legal(&self) -> usize {
        let first = self.parts.iter().position(|p| p.0 == FIRST_OF_OPTIMIZE);
        first.expect("a pass that writes pipelined loops out")
    }

    fn legalize(&self) -> Duration {
        self.parts[..self.legal()].iter().map(|p| p.1).sum()
    }

    fn schedule(&self) -> Duration {
        let (early, late) = self.parts.split_at(self.legal());
        let planning = early.iter().filter(|p| p.0 == PLANNING);
        planning.chain(late).map(|p| p.1).sum()
    }
}

fn ms(time: Duration) -> String {
    format!("{:.2}", time.as_secs_f64() * 1e3)
}

/// Every kernel of every example with default parameters, as `file` or `file:kernel`.
fn kernels() -> Vec<(String, Func)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the examples")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let file_name = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let file_name = file_name.unwrap_or_default();
        let text = std::fs::read_to_string(&path).expect("an example");
        let defined: Vec<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix("def ")?.split('(').next())
            .map(str::to_string)
            .collect();
        let mut sources = SourceMap::new();
        let file = sources.add(file_name.clone(), text);
        // Helpers and `main` are no kernels and do not stage.
        let staged: Vec<_> = defined
            .iter()
            .filter_map(|name| {
                let staged = tilewright_frontend::stage(&sources, file, Some(name), &[]).ok()?;
                Some((name, staged.func))
            })
            .collect();
        assert!(!staged.is_empty(), "{file_name} has no kernel");
        let only = staged.len() == 1;
        for (name, func) in staged {
            let title = if only {
                file_name.clone()
            } else {
                format!("{file_name}:{name}")
            };
            found.push((title, func));
        }
    }
    found
}
