//! Times of small functions: the least and the median of many samples.
//!
//! `cargo bench -p CRATE --bench NAME -- WORDS` times those whose name contains one of the words.

use std::hint::black_box;
use std::time::{Duration, Instant};

/// A sample is so many calls that the clock's own steps do not show.
const SAMPLE: Duration = Duration::from_millis(1);
/// How long one function is timed, once it has been called for a tenth of that.
const BUDGET: Duration = Duration::from_secs(1);
const FEWEST: usize = 10;

/// Times calls of `f` and prints a line.
pub fn time<R>(name: &str, mut f: impl FnMut() -> R) {
    samples(name, |calls| {
        let start = Instant::now();
        for _ in 0..calls {
            black_box(f());
        }
        start.elapsed()
    });
}

/// Times calls of `f`, each with what `setup` makes for it, which is not timed.
pub fn time_with<S, R>(name: &str, mut setup: impl FnMut() -> S, mut f: impl FnMut(S) -> R) {
    samples(name, |calls| {
        let mut total = Duration::ZERO;
        for _ in 0..calls {
            let given = black_box(setup());
            let start = Instant::now();
            black_box(f(given));
            total += start.elapsed();
        }
        total
    });
}

/// Takes samples, each of so many calls, unless the command line names others.
fn samples(name: &str, mut sample: impl FnMut(u32) -> Duration) {
    let words: Vec<String> = std::env::args().skip(1).collect();
    let mut words = words.iter().filter(|w| !w.starts_with("--")).peekable();
    if words.peek().is_some() && !words.any(|w| name.contains(w.as_str())) {
        return;
    }
    let start = Instant::now();
    let mut calls = 1;
    loop {
        if sample(calls) < SAMPLE {
            calls *= 2;
        } else if start.elapsed() > BUDGET / 10 {
            break;
        }
    }
    let start = Instant::now();
    let mut times = Vec::new();
    while times.len() < FEWEST || start.elapsed() < BUDGET {
        times.push(sample(calls) / calls);
    }
    times.sort_unstable();
    let (least, median) = (times[0], times[times.len() / 2]);
    println!("{name:40} least {least:>10.2?}   median {median:>10.2?}");
}
