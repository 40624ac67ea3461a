//! How the time of the whole pipeline grows with a kernel: `cargo bench -p tilewright-passes`.
//!
//! One thing is doubled at a time: the statements of a pipelined loop, the buffers of a kernel, the
//! extents of a tile, the threads of a block. Twice as much may take [`MOST`] times as long and no
//! more; where it takes more, the command fails. It is no test, because it measures time: the time
//! that the thread itself runs, so that a busy machine tells the same.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tilewright_ir::{Func, SourceMap, Target, text};
use tilewright_passes::driver::{self, Options};

/// The most that a doubling may cost.
const MOST: f64 = 2.5;

/// How often each kernel is compiled.
const RUNS: usize = 7;

/// How long a kernel takes.
struct Times {
    all: Duration,
    passes: Passes,
}

/// How long each pass takes.
type Passes = Vec<(&'static str, Duration)>;

/// What is measured: a name, the kernel of a size, and the sizes, each twice the one before.
type Axis = (&'static str, fn(usize) -> String, [usize; 3]);

const AXES: [Axis; 4] = [
    ("statements of a loop", body, [10, 20, 40]),
    ("buffers", buffers, [8, 16, 32]),
    ("extents", extents, [64, 128, 256]),
    ("threads", threads, [128, 256, 512]),
];

fn main() -> ExitCode {
    let mut good = true;
    println!(
        "{:<22}{:<8}{:>6}{:>10}{:>8}  the pass that grows most",
        "doubled", "target", "size", "ms", "ratio"
    );
    // `cargo bench … -- buffers sm_90a` measures one axis or target.
    let asked: Vec<String> = std::env::args().skip(1).collect();
    let is_asked = |name: &str, all: &[&str]| {
        let some = asked.iter().any(|a| all.contains(&a.as_str()));
        !some || asked.iter().any(|a| a == name)
    };
    let names = AXES.map(|(name, ..)| name);
    let targets = Target::ALL.map(Target::name);
    for (name, kernel, sizes) in AXES {
        for target in Target::ALL {
            if !is_asked(name, &names) || !is_asked(target.name(), &targets) {
                continue;
            }
            let mut before: Option<Times> = None;
            for size in sizes {
                let Some(func) = parse(&kernel(size)) else {
                    return ExitCode::FAILURE;
                };
                let Some(times) = best_of(RUNS, &func, target) else {
                    return ExitCode::FAILURE;
                };
                let ms = times.all.as_secs_f64() * 1e3;
                print!("{name:<22}{:<8}{size:>6}{ms:>10.2}", target.name());
                match &before {
                    Some(before) => {
                        let ratio = times.all.as_secs_f64() / before.all.as_secs_f64();
                        println!("{ratio:>8.2}  {}", worst(&before.passes, &times.passes));
                        good &= ratio <= MOST;
                    }
                    None => println!(),
                }
                before = Some(times);
            }
        }
    }
    if good {
        ExitCode::SUCCESS
    } else {
        println!("a doubling takes more than {MOST} times as long");
        ExitCode::FAILURE
    }
}

fn parse(source: &str) -> Option<Func> {
    let mut sources = SourceMap::new();
    let file = sources.add("kernel.tw", source);
    match text::parse(source, file) {
        Ok(func) => Some(func),
        Err(errors) => {
            println!("{errors:?}\n{source}");
            None
        }
    }
}

/// The shortest times of several runs: what the machine does besides only adds.
fn best_of(runs: usize, func: &Func, target: Target) -> Option<Times> {
    let options = Options {
        verify: false,
        ..Options::default()
    };
    let mut best = Times {
        all: Duration::MAX,
        passes: Vec::new(),
    };
    for _ in 0..runs {
        let mut func = func.clone();
        let begin = Clock::now();
        let ran = driver::run(&mut func, target, &options);
        best.all = best.all.min(begin.elapsed());
        let report = match ran {
            Ok(report) => report,
            Err(failure) => {
                println!("{target}: {:?}", failure.errors);
                return None;
            }
        };
        for (at, row) in report.timings.iter().enumerate() {
            match best.passes.get_mut(at) {
                Some((_, known)) => *known = row.pass.min(*known),
                None => best.passes.push((row.step.name, row.pass)),
            }
        }
    }
    Some(best)
}

/// The time that this thread has run, which does not grow while others do; the time of day where
/// the system does not tell.
struct Clock {
    wall: Instant,
    ran: Option<Duration>,
}

impl Clock {
    fn now() -> Clock {
        Clock {
            ran: ran(),
            wall: Instant::now(),
        }
    }

    fn elapsed(&self) -> Duration {
        match (self.ran, ran()) {
            (Some(before), Some(now)) if now > before => now - before,
            _ => self.wall.elapsed(),
        }
    }
}

/// How long the thread has run, as Linux counts it.
fn ran() -> Option<Duration> {
    // The count is brought up to date when the scheduler is asked.
    std::thread::yield_now();
    let stat = std::fs::read_to_string("/proc/thread-self/schedstat").ok()?;
    let nanos = stat.split_whitespace().next()?.parse().ok()?;
    Some(Duration::from_nanos(nanos))
}

/// The pass whose time grows most, of those that take a twentieth of the whole.
fn worst(before: &Passes, after: &Passes) -> String {
    let total: Duration = after.iter().map(|(_, time)| *time).sum();
    let ratios = before
        .iter()
        .zip(after)
        .map(|((_, before), (name, after))| {
            let ratio = after.as_secs_f64() / before.as_secs_f64();
            (ratio, *name, *after)
        });
    let worst = ratios
        .filter(|(_, _, after)| *after >= total / 20)
        .max_by(|(a, ..), (b, ..)| a.total_cmp(b));
    worst.map_or_else(String::new, |(ratio, name, after)| {
        let ms = after.as_secs_f64() * 1e3;
        format!("{name} {ms:.2} ms, {ratio:.2}")
    })
}

/// A pipelined loop of this many steps of a softmax.
fn body(steps: usize) -> String {
    let step = "
        reduce max c[0 +: 64, 0 +: 64] -> m[0 +: 64] dim=1 clear
        for i, j in parallel(64, 64) {
          c[i, j] = exp(c[i, j] - m[i])
        }
        reduce sum c[0 +: 64, 0 +: 64] -> m[0 +: 64] dim=1 clear
        for i, j in parallel(64, 64) {
          c[i, j] = c[i, j] / m[i]
        }";
    format!(
        "func @f level=tile {{
           param A: float16[512, 64]
           output O: float32[64, 64]
           kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {{
             alloc s: shared float16[64, 64]
             alloc c: fragment float32[64, 64]
             alloc m: fragment float32[64]
             fill c[0 +: 64, 0 +: 64], 0.0
             for k in pipelined(0, 8) stages=2 {{
               copy A[k * 64 +: 64, 0 +: 64] -> s[0 +: 64, 0 +: 64]
               gemm s[0 +: 64, 0 +: 64], s[0 +: 64, 0 +: 64] -> c[0 +: 64, 0 +: 64]
               {}
             }}
             copy c[0 +: 64, 0 +: 64] -> O[0 +: 64, 0 +: 64]
           }}
         }}",
        step.repeat(steps)
    )
}

/// This many tiles, each copied to shared memory and added up.
fn buffers(count: usize) -> String {
    let mut params = String::new();
    let mut allocs = String::new();
    let mut uses = String::new();
    for n in 0..count {
        params += &format!("param A{n}: float32[32, 32]\n");
        allocs += &format!("alloc s{n}: shared float32[32, 32]\n");
        uses += &format!(
            "copy A{n}[0 +: 32, 0 +: 32] -> s{n}[0 +: 32, 0 +: 32]
             for i, j in parallel(32, 32) {{
               c[i, j] = c[i, j] + s{n}[j, i]
             }}\n"
        );
    }
    format!(
        "func @f level=tile {{
           {params}
           output O: float32[32, 32]
           kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {{
             {allocs}
             alloc c: fragment float32[32, 32]
             fill c[0 +: 32, 0 +: 32], 0.0
             {uses}
             copy c[0 +: 32, 0 +: 32] -> O[0 +: 32, 0 +: 32]
           }}
         }}"
    )
}

fn extents(size: usize) -> String {
    product(size, 256)
}

fn threads(count: usize) -> String {
    product(128, count)
}

/// A pipelined product of square tiles.
fn product(size: usize, threads: usize) -> String {
    format!(
        "func @f level=tile {{
           param A: float16[{size}, 512]
           param B: float16[512, {size}]
           output O: float32[{size}, {size}]
           kernel grid(bx: 1) threads(tx: {threads}, ty: 1, tz: 1) {{
             alloc a: shared float16[{size}, 32]
             alloc b: shared float16[32, {size}]
             alloc c: fragment float32[{size}, {size}]
             fill c[0 +: {size}, 0 +: {size}], 0.0
             for k in pipelined(0, 16) stages=2 {{
               copy A[0 +: {size}, k * 32 +: 32] -> a[0 +: {size}, 0 +: 32]
               copy B[k * 32 +: 32, 0 +: {size}] -> b[0 +: 32, 0 +: {size}]
               gemm a[0 +: {size}, 0 +: 32], b[0 +: 32, 0 +: {size}] -> c[0 +: {size}, 0 +: {size}]
             }}
             copy c[0 +: {size}, 0 +: {size}] -> O[0 +: {size}, 0 +: {size}]
           }}
         }}"
    )
}
