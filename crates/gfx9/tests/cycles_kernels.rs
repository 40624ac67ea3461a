//! The cycle model against measurements of whole loops.
//!
//! `asm/pingpong.s` is what clang 22 makes of `crates/runtime/tests/hip/pingpong.hip` for gfx950
//! (comments and directives that nothing reads are cut): the 8-wave order of HipKittens, two
//! groups of waves one cluster apart. The other orders are written out in `orders`. Measured
//! figures: wenchenvincent's instruction traces of HipKittens' kernels on MI355X, and
//! Hardcode84's times and traces of Wave and hipBLASLt kernels on MI350X. `docs/amd-cycles.md` has the
//! table that `--nocapture` shows.

mod orders;

use orders::{FourWaves, Quadrants, ordinary, timed, two_slices};
use tilewright_gfx9::asm::{Function, parse};
use tilewright_gfx9::cycles::{Kind, Machine, Steady, Timing, Walk, chrome, svg, time};
use tilewright_gfx9::emu::{Arch, Argument, Buffer, Launch, run};

const PINGPONG: &str = include_str!("asm/pingpong.s");

/// The kernel, and its timing with seven turns of its loop, each of two tiles of K: K is 1024.
fn pingpong(shift: bool) -> (Function, Timing) {
    let function = parse(PINGPONG).unwrap().functions[0].clone();
    let walk = Walk {
        waves: 8,
        taken: &|wave, label, visit| match label {
            ".LBB0_2" => wave < 4 || !shift,
            ".LBB0_8" => wave >= 4 || !shift,
            ".LBB0_4" => visit < 6,
            _ => false,
        },
        addresses: &|_, _| None,
        limit: 100_000,
    };
    let trace = walk.trace(&function).unwrap();
    let timing = time(&function, &trace, &Machine::GFX950).unwrap();
    (function, timing)
}

fn steady(timed: &(Function, Timing)) -> Steady {
    timed.1.steady(&timed.0).unwrap()
}

/// The steady state of an order.
fn order(function: Function, waves: usize, shift: bool) -> Steady {
    let timing = timed(&function, waves, shift, &Machine::GFX950);
    timing.steady(&function).unwrap()
}

fn near(what: &str, got: f64, measured: f64, tolerance: f64) {
    let error = got / measured - 1.0;
    println!(
        "{what:<52} {got:>7.0} measured {measured:>6.0} {:>+6.1} %",
        100.0 * error
    );
    assert!(
        error.abs() <= tolerance,
        "{what}: {got}, measured {measured}"
    );
}

#[test]
fn groups_one_cluster_apart() {
    let apart = pingpong(true);
    let a_tile = steady(&apart).cycles as f64 / 2.0;
    near(
        "8 waves, 16x16x32, groups apart: a tile of K",
        a_tile,
        2236.0,
        0.05,
    );
    // Together, all waves read and then all multiply.
    let together = steady(&pingpong(false)).cycles as f64 / 2.0;
    println!("the same, groups together {together:>33.0} not measured");
    assert!(together > 1.3 * a_tile);
}

/// What waves do between barriers of a turn: the total, the time at matrix instructions and at
/// the barrier, averaged over all waves.
fn segments(kernel: &(Function, Timing)) -> Vec<[f64; 3]> {
    let (function, timing) = kernel;
    let head = function.hot_loop().unwrap().head().unwrap() as u32;
    let mut all: Vec<[f64; 3]> = Vec::new();
    for wave in &timing.waves {
        let issued = &wave.issued;
        let at_head = |at: &usize| issued[*at].instruction == head;
        let passes: Vec<usize> = (0..issued.len()).filter(at_head).collect();
        let mut segment = [0.0; 3];
        let mut number = 0;
        for at in passes[4]..passes[5] {
            let kind = timing.kinds[issued[at].instruction as usize];
            let cycles = (issued[at + 1].since - issued[at].since) as f64;
            segment[0] += cycles;
            match kind {
                Kind::Matrix => segment[1] += cycles,
                Kind::Barrier => {
                    segment[2] += cycles;
                    if all.len() == number {
                        all.push([0.0; 3]);
                    }
                    for (sum, part) in all[number].iter_mut().zip(segment) {
                        *sum += part / timing.waves.len() as f64;
                    }
                    number += 1;
                    segment = [0.0; 3];
                }
                _ => {}
            }
        }
    }
    all
}

#[test]
fn segments_between_barriers() {
    // Of the first tile of a turn; reading and multiplying in turn.
    let measured = [
        [299.0, 0.0, 20.0],
        [313.0, 247.0, 54.0],
        [278.0, 0.0, 106.0],
        [270.0, 244.0, 14.0],
        [273.0, 0.0, 40.0],
        [270.0, 244.0, 14.0],
        [262.0, 0.0, 97.0],
        [272.0, 244.0, 20.0],
    ];
    let segments = segments(&pingpong(true));
    assert_eq!(segments.len(), 16);
    for (number, (got, measured)) in segments.iter().zip(measured).enumerate() {
        println!("segment {number}: {got:>6.1?} measured {measured:>6.1?}");
    }
    // Where the reads of the other group are hidden, a segment is its products, a wait, two
    // priorities and a barrier.
    for number in [3, 5, 7] {
        near(
            "products with hidden reads",
            segments[number][0],
            measured[number][0],
            0.02,
        );
    }
    for number in [1, 3, 5, 7] {
        near(
            "  of it matrix instructions",
            segments[number][1],
            measured[number][1],
            0.02,
        );
    }
    // Twelve reads are not hidden: these two segments are the longest, as measured.
    let shortest_of_two = segments[0][0].min(segments[1][0]);
    assert!(
        segments[2..8]
            .iter()
            .all(|segment| segment[0] < shortest_of_two)
    );
}

#[test]
fn other_orders() {
    let slices = order(two_slices(), 8, true);
    near(
        "8 waves, 32x32x16, groups apart: a tile of K",
        slices.cycles as f64,
        2253.0,
        0.1,
    );
    let share = |steady: &Steady| 100.0 * steady.matrix_share;
    let spread = order(FourWaves { spread: true }.kernel(), 4, false);
    let bunched = order(FourWaves { spread: false }.kernel(), 4, false);
    let eight = order(ordinary(), 8, false);
    for (what, got, measured) in [
        ("4 waves, copies and reads spread", &spread, "85.3 %"),
        ("4 waves, copies and reads bunched", &bunched, "65.5 %"),
        ("8 waves, ordinary", &eight, "65 to 80 %"),
    ] {
        println!("{what:<52} {:>5.1} % measured {measured}", share(got));
    }
    assert!((80.0..97.0).contains(&share(&spread)));
    assert!((65.0..80.0).contains(&share(&eight)));
    assert!((55.0..80.0).contains(&share(&bunched)));
    assert!(share(&spread) > share(&eight) && share(&spread) > share(&bunched) + 10.0);
}

/// A second barrier and a shift of the groups help together, and neither does alone.
#[test]
fn shift_and_split_barriers() {
    let variants = [
        (
            "shift and split, copies waited for before products",
            true,
            true,
            true,
            731.9,
        ),
        ("shift and split", true, true, false, 751.3),
        ("neither", false, false, false, 827.6),
        ("shift alone", true, false, false, 862.4),
        ("split alone", false, true, false, 908.4),
    ];
    let mut cycles = Vec::new();
    for (what, shift, split, wait_before, measured) in variants {
        let kernel = Quadrants { split, wait_before }.kernel();
        let got = order(kernel, 8, shift).cycles;
        println!("{what:<52} {got:>7} cycles, measured {measured} us");
        cycles.push(got);
    }
    assert!(cycles.is_sorted(), "{cycles:?}");
    assert!(cycles[2] > cycles[1] + cycles[1] / 10);
    assert!(cycles[4] > cycles[3]);
}

/// The pictures show every wave, and are whole.
#[test]
fn pictures() {
    let (function, timing) = pingpong(true);
    let window = svg::window(&timing, &function, 2);
    assert!(window.end - window.start > 8000 && window.end < timing.cycles);
    let picture = svg::svg(&timing, &function, window.clone());
    for simd in 0..4 {
        assert!(picture.contains(&format!("SIMD {simd}<")));
    }
    assert_eq!(
        picture.matches("<svg").count(),
        picture.matches("</svg>").count()
    );
    assert!(picture.len() < 400_000, "{}", picture.len());
    let events = chrome::chrome(&timing, &function, window);
    assert_eq!(events.matches('{').count(), events.matches('}').count());
    assert!(events.contains("v_mfma_f32_16x16x32_bf16"));
    assert_eq!(events.matches("thread_name").count(), 8);
    // CYCLES_PICTURE=folder leaves them there, to be looked at.
    if let Some(folder) = std::env::var_os("CYCLES_PICTURE") {
        let folder = std::path::Path::new(&folder);
        std::fs::write(folder.join("pingpong.svg"), picture).unwrap();
        std::fs::write(folder.join("pingpong.json"), events).unwrap();
    }
}

/// The kernel that is timed computes what it should, and its real trace takes as long as the one
/// that is walked: its LDS reads have no conflicts.
#[test]
fn the_kernel_is_right_and_its_trace_is_the_walk() {
    let k = 1024;
    let function = parse(PINGPONG).unwrap().functions[0].clone();
    // Small whole numbers, so that every sum is exact.
    let value = |row: usize, at: usize| ((row * 7 + at * 3) % 5) as f32 - 2.0;
    let operand = |name: &str, skew: usize| Buffer {
        name: name.to_owned(),
        bytes: (0..256 * k)
            .flat_map(|i| ((value(i / k + skew, i % k).to_bits() >> 16) as u16).to_le_bytes())
            .collect(),
        element: 2,
        writable: false,
        holds: None,
    };
    let result = Buffer {
        name: "C".to_owned(),
        bytes: vec![0; 256 * 256 * 4],
        element: 4,
        writable: true,
        holds: Some(vec![false; 256 * 256]),
    };
    let mut launch = Launch::new([1, 1, 1], [512, 1, 1]);
    launch.buffers = vec![operand("A", 0), operand("B", 1), result];
    launch.arguments = (0..3)
        .map(|index| Argument::Buffer { index, offset: 0 })
        .chain([256, 256, k as u32].map(|n| Argument::Bytes(n.to_le_bytes().to_vec())))
        .collect();
    launch.traced = Some(0);
    let outcome = run(&function, Arch::Gfx950, launch).unwrap();
    assert_eq!(outcome.findings.len(), 0, "{:?}", outcome.findings.first());
    let bytes = &outcome.buffers[2].bytes;
    for (row, column) in [(0, 0), (1, 200), (100, 37), (130, 255), (255, 128)] {
        let sum: f32 = (0..k)
            .map(|at| value(row, at) * value(column + 1, at))
            .sum();
        let at = (row * 256 + column) * 4;
        let got = f32::from_le_bytes(bytes[at..at + 4].try_into().unwrap());
        assert_eq!(got, sum, "{row} {column}");
    }
    let trace = outcome.trace.unwrap();
    let timing = time(&function, &trace, &Machine::GFX950).unwrap();
    let walked = pingpong(true).1;
    assert_eq!(timing.cycles, walked.cycles);
    assert_eq!(timing.steady(&function), walked.steady(&function));
}
