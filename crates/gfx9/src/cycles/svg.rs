//! A timing as a picture: a row a wave, the waves of a SIMD together, time to the right.
//!
//! In a row the colours say what the wave does: an instruction is drawn from its issue until the
//! wave's next, and time that the wave waits is pale. Neighbours of one kind that keep their unit
//! or queue busy are one bar, so that the phases of a loop are seen and the file is small. Above each SIMD's waves a line shows when its matrix unit works.

use std::fmt::Write as _;
use std::ops::Range;

use crate::asm::Function;

use super::plan::Kind;
use super::stalls::Stall;
use super::{Issued, Timing, WaveTiming};

const WIDTH: f64 = 1200.0;
const LEFT: f64 = 96.0;
const RIGHT: f64 = 24.0;
const TOP: f64 = 92.0;
const ROW: f64 = 26.0;
const UNIT: f64 = 8.0;
const GAP: f64 = 16.0;

/// What a bar shows.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord)]
enum Paint {
    Matrix,
    Vector,
    Lds,
    Memory,
    Scalar,
    /// Waiting for memory, LDS or a full queue.
    Wait,
    Barrier,
    /// Waiting for a unit that works.
    Busy,
}

impl Paint {
    const ALL: [Paint; 8] = [
        Paint::Matrix,
        Paint::Vector,
        Paint::Lds,
        Paint::Memory,
        Paint::Scalar,
        Paint::Wait,
        Paint::Barrier,
        Paint::Busy,
    ];

    fn name(self) -> &'static str {
        match self {
            Paint::Matrix => "matrix",
            Paint::Vector => "vector",
            Paint::Lds => "LDS",
            Paint::Memory => "copies and memory",
            Paint::Scalar => "scalar, control",
            Paint::Wait => "waits for data or a queue",
            Paint::Barrier => "waits at a barrier",
            Paint::Busy => "waits for a busy unit",
        }
    }

    fn colour(self) -> &'static str {
        match self {
            Paint::Matrix => "#c0392b",
            Paint::Vector => "#e69f00",
            Paint::Lds => "#0072b2",
            Paint::Memory => "#009e73",
            Paint::Scalar => "#7f8c8d",
            Paint::Wait => "#f6c9d8",
            Paint::Barrier => "#e3e3e8",
            Paint::Busy => "#f7e3b5",
        }
    }

    fn of(kind: Kind) -> Paint {
        match kind {
            Kind::Matrix => Paint::Matrix,
            Kind::Vector => Paint::Vector,
            Kind::Lds => Paint::Lds,
            Kind::Copy | Kind::Memory => Paint::Memory,
            Kind::Barrier => Paint::Barrier,
            Kind::Scalar | Kind::Wait | Kind::Control => Paint::Scalar,
        }
    }

    fn waiting(stall: Stall) -> Paint {
        match stall {
            Stall::VectorWait
            | Stall::LdsWait
            | Stall::LdsQueue
            | Stall::MemoryQueue
            | Stall::CounterFull => Paint::Wait,
            Stall::Barrier => Paint::Barrier,
            Stall::MatrixResult
            | Stall::Result
            | Stall::MatrixUnit
            | Stall::VectorUnit
            | Stall::Arbitration
            | Stall::Nop
            | Stall::Fetch => Paint::Busy,
        }
    }
}

#[derive(Clone, Copy, Debug)]
struct Bar {
    from: u64,
    until: u64,
    paint: Paint,
}

/// The window that shows the hot loop at work: `turns` of it from the middle of the run, or all
/// of a kernel without a loop.
pub fn window(timing: &Timing, function: &Function, turns: usize) -> Range<u64> {
    let whole = 0..timing.cycles.max(1);
    let head = function.hot_loop().and_then(|hot| hot.head());
    let (Some(head), Some(first)) = (head, timing.waves.first()) else {
        return whole;
    };
    let at_head = |issued: &&Issued| issued.instruction as usize == head;
    let passes: Vec<u64> = first
        .issued
        .iter()
        .filter(at_head)
        .map(|i| i.issue)
        .collect();
    let turns = turns.clamp(1, passes.len().saturating_sub(1).max(1));
    let from = (passes.len() / 2).min(passes.len().saturating_sub(turns + 1));
    match (passes.get(from), passes.get(from + turns)) {
        (Some(from), Some(until)) if until > from => *from..*until,
        _ => whole,
    }
}

/// The picture of a window of cycles.
pub fn svg(timing: &Timing, function: &Function, window: Range<u64>) -> String {
    let simds = timing.matrix_busy.len();
    let of = |simd: usize| -> Vec<(usize, &WaveTiming)> {
        let waves = timing.waves.iter().enumerate();
        waves.filter(|(_, wave)| wave.simd == simd).collect()
    };
    let shown: Vec<usize> = (0..simds).filter(|simd| !of(*simd).is_empty()).collect();
    let rows: f64 = shown
        .iter()
        .map(|simd| UNIT + of(*simd).len() as f64 * ROW + GAP)
        .sum();
    let height = TOP + rows + 44.0;
    let scale = (WIDTH - LEFT - RIGHT) / (window.end - window.start).max(1) as f64;
    let x = |cycle: u64| {
        let cycle = cycle.clamp(window.start, window.end) - window.start;
        LEFT + cycle as f64 * scale
    };
    let mut out = String::new();
    let _ = write!(
        out,
        "<svg xmlns=\"http://www.w3.org/2000/svg\" viewBox=\"0 0 {WIDTH} {height:.0}\" width=\"{WIDTH}\" height=\"{height:.0}\" font-family=\"Helvetica, Arial, sans-serif\" font-size=\"12\">\n<rect width=\"100%\" height=\"100%\" fill=\"white\"/>\n"
    );
    title(&mut out, timing, function, &window);
    legend(&mut out);
    axis(&mut out, &window, &x, TOP, TOP + rows);
    let _ = writeln!(
        out,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"end\" fill=\"#555\">wave</text>",
        LEFT - 8.0,
        TOP + 4.0
    );
    let mut y = TOP;
    for simd in shown {
        let waves = of(simd);
        let middle = y + UNIT + waves.len() as f64 * ROW / 2.0;
        let _ = writeln!(
            out,
            "<text x=\"10\" y=\"{:.1}\" font-weight=\"bold\">SIMD {simd}</text>",
            middle + 4.0
        );
        for bar in unit_bars(&waves, timing, &window) {
            rect(&mut out, &x, bar, y, UNIT - 2.0);
        }
        y += UNIT;
        for (wave, timed) in waves {
            let _ = writeln!(
                out,
                "<text x=\"{:.0}\" y=\"{:.1}\" text-anchor=\"end\" fill=\"#333\">{wave}</text>",
                LEFT - 8.0,
                y + ROW / 2.0 + 4.0
            );
            for bar in bars(timed, timing, &window) {
                // What waits is drawn lower than what works.
                let low = bar.paint >= Paint::Wait;
                let (top, tall) = match low {
                    true => (y + ROW * 0.3, ROW * 0.4),
                    false => (y + 2.0, ROW - 4.0),
                };
                rect(&mut out, &x, bar, top, tall);
            }
            y += ROW;
        }
        y += GAP;
    }
    out.push_str("</svg>\n");
    out
}

fn rect(out: &mut String, x: &impl Fn(u64) -> f64, bar: Bar, y: f64, height: f64) {
    let (from, until) = (x(bar.from), x(bar.until));
    let _ = writeln!(
        out,
        "<rect x=\"{from:.2}\" y=\"{y:.1}\" width=\"{:.2}\" height=\"{height:.1}\" fill=\"{}\"/>",
        until - from,
        bar.paint.colour()
    );
}

fn title(out: &mut String, timing: &Timing, function: &Function, window: &Range<u64>) {
    let name = escaped(&function.name);
    let _ = writeln!(
        out,
        "<text x=\"10\" y=\"24\" font-size=\"17\" font-weight=\"bold\">{name} on one compute unit of {}</text>",
        timing.arch
    );
    let mut line = format!(
        "cycles {} to {} of {}; waves by SIMD, the narrow bar above each SIMD's waves is its matrix unit",
        window.start, window.end, timing.cycles
    );
    if let Some(steady) = timing.steady(function) {
        line = format!(
            "{} cycles an iteration of the hot loop, matrix units {:.1} % busy; {line}",
            steady.cycles,
            100.0 * steady.matrix_share
        );
    }
    let _ = writeln!(out, "<text x=\"10\" y=\"44\" fill=\"#333\">{line}</text>");
}

fn legend(out: &mut String) {
    let mut x = 10.0;
    for paint in Paint::ALL {
        let _ = writeln!(
            out,
            "<rect x=\"{x:.0}\" y=\"56\" width=\"12\" height=\"12\" fill=\"{}\"/><text x=\"{:.0}\" y=\"66\">{}</text>",
            paint.colour(),
            x + 16.0,
            paint.name()
        );
        x += 30.0 + 6.6 * paint.name().len() as f64;
    }
}

/// Lines at round numbers of cycles.
fn axis(out: &mut String, window: &Range<u64>, x: &impl Fn(u64) -> f64, top: f64, bottom: f64) {
    let length = window.end - window.start;
    let steps = [1u64, 2, 5].into_iter();
    let sizes = (0..18).flat_map(|power| steps.clone().map(move |s| s * 10u64.pow(power)));
    let step = sizes
        .into_iter()
        .find(|size| length / size <= 14)
        .unwrap_or(length.max(1));
    let mut at = window.start.next_multiple_of(step);
    while at <= window.end {
        let place = x(at);
        let _ = writeln!(
            out,
            "<line x1=\"{place:.1}\" y1=\"{:.0}\" x2=\"{place:.1}\" y2=\"{bottom:.0}\" stroke=\"#ddd\"/><text x=\"{place:.1}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#555\">{at}</text>",
            top - 6.0,
            bottom + 14.0
        );
        at += step;
    }
    let _ = writeln!(
        out,
        "<text x=\"{:.0}\" y=\"{:.0}\" text-anchor=\"middle\" fill=\"#555\">cycles</text>",
        (LEFT + WIDTH - RIGHT) / 2.0,
        bottom + 32.0
    );
}

/// When a SIMD's matrix unit works.
fn unit_bars(waves: &[(usize, &WaveTiming)], timing: &Timing, window: &Range<u64>) -> Vec<Bar> {
    let mut bars: Vec<Bar> = Vec::new();
    for (_, wave) in waves {
        let matrix = |i: &&Issued| timing.kinds[i.instruction as usize] == Kind::Matrix;
        let inside = |i: &&Issued| i.end > window.start && i.issue < window.end;
        let all = wave.issued.iter().filter(matrix).filter(inside);
        bars.extend(all.map(|issued| Bar {
            from: issued.issue,
            until: issued.end,
            paint: Paint::Matrix,
        }));
    }
    bars.sort_by_key(|bar| bar.from);
    merged(bars)
}

/// What a wave does in a window.
fn bars(wave: &WaveTiming, timing: &Timing, window: &Range<u64>) -> Vec<Bar> {
    let mut bars = Vec::new();
    for (at, issued) in wave.issued.iter().enumerate() {
        let next = wave.issued.get(at + 1);
        let until = next.map_or(issued.end, |next| next.since);
        let kind = timing.kinds[issued.instruction as usize];
        let last = if kind == Kind::Matrix {
            issued.end
        } else {
            until
        };
        if last <= window.start || issued.since >= window.end {
            continue;
        }
        if issued.issue > issued.since {
            // Instructions in a row that keep their unit busy are one bar.
            let own = matches!(
                (kind, issued.stall),
                (Kind::Matrix, Some(Stall::MatrixUnit))
                    | (Kind::Lds, Some(Stall::LdsQueue))
                    | (Kind::Copy | Kind::Memory, Some(Stall::MemoryQueue))
            );
            let before = bars.last().map(|bar: &Bar| bar.paint);
            let chained = own && before == Some(Paint::of(kind));
            let paint = match issued.stall {
                _ if chained => Paint::of(kind),
                Some(stall) => Paint::waiting(stall),
                None => Paint::Busy,
            };
            bars.push(Bar {
                from: issued.since,
                until: issued.issue,
                paint,
            });
        }
        let paint = Paint::of(kind);
        bars.push(Bar {
            from: issued.issue,
            until: until.max(issued.issue),
            paint,
        });
    }
    merged(bars)
}

/// Neighbours of one colour as one bar.
fn merged(bars: Vec<Bar>) -> Vec<Bar> {
    let mut out: Vec<Bar> = Vec::new();
    for bar in bars.into_iter().filter(|bar| bar.until > bar.from) {
        match out.last_mut() {
            Some(last) if last.paint == bar.paint && last.until >= bar.from => {
                last.until = last.until.max(bar.until);
            }
            _ => out.push(bar),
        }
    }
    out
}

fn escaped(text: &str) -> String {
    text.replace('&', "&amp;")
        .replace('<', "&lt;")
        .replace('>', "&gt;")
}
