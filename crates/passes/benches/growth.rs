//! How the time of the whole pipeline grows with a kernel: `cargo bench -p tilewright-passes`.
//!
//! One thing is doubled at a time: the statements of a pipelined loop, the buffers of a kernel, the
//! extents of a tile, the threads of a block. Twice as much may take [`MOST`] times as long and no
//! more; where it takes more, the command fails. It is no test, because it measures time.

use std::process::ExitCode;
use std::time::{Duration, Instant};

use tilewright_ir::{Diagnostics, Func, SourceMap, Target, text};
use tilewright_passes::pipeline;

/// The most that a doubling may cost.
const MOST: f64 = 2.5;

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
        "{:<22}{:<8}{:>8}{:>12}{:>8}",
        "doubled", "target", "size", "ms", "ratio"
    );
    for (name, kernel, sizes) in AXES {
        for target in Target::ALL {
            let mut before: Option<Duration> = None;
            for size in sizes {
                let Some(func) = parse(&kernel(size)) else {
                    return ExitCode::FAILURE;
                };
                let time = best_of(5, &func, target);
                let ratio = before.map(|b| time.as_secs_f64() / b.as_secs_f64());
                let shown = ratio.map_or(String::new(), |r| format!("{r:.2}"));
                let ms = time.as_secs_f64() * 1e3;
                println!("{name:<22}{target:<8}{size:>8}{ms:>12.2}{shown:>8}");
                good &= ratio.is_none_or(|r| r <= MOST);
                before = Some(time);
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

/// The shortest of several runs: what the machine does besides only adds.
fn best_of(runs: usize, func: &Func, target: Target) -> Duration {
    let one = || {
        let mut func = func.clone();
        let mut diags = Diagnostics::new();
        let start = Instant::now();
        for pass in pipeline(target) {
            (pass.run)(&mut func, target, &mut diags);
        }
        start.elapsed()
    };
    (0..runs).map(|_| one()).min().unwrap_or_default()
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
