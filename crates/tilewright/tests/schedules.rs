//! Every named schedule on products of one to four steps along K, with one to three stages and
//! loops of no, one and a few iterations: refused with a reason, or free of hazards and equal to the
//! reference on every target, in every mode of asynchrony.

#[path = "kernels/landings.rs"]
mod landings;
#[path = "kernels/looped_product.rs"]
mod looped_product;

use std::collections::BTreeMap;

use landings::landings;
use looped_product::{MOST, inputs, product};
use tilewright::ir::{Func, Severity, SourceMap, Target, text};
use tilewright::passes::driver::{self, Options};
use tilewright::passes::schedules::{SCHEDULES, ask_for_schedule};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Args, RunOptions};

/// Whether the schedule was taken.
fn is_right(func: &Func, target: Target, name: &str) -> bool {
    let mut lowered = func.clone();
    ask_for_schedule(&mut lowered, name);
    if let Err(failed) = driver::run(&mut lowered, target, &Options::default()) {
        let errors = failed.errors.iter();
        let errors = errors.filter(|d| d.severity == Severity::Error);
        let codes: Vec<&str> = errors.map(|d| d.code.0).collect();
        assert_eq!(codes, ["schedule-refused"], "{name} {target}");
        return false;
    }
    let report = hazard::check(&lowered, target);
    assert!(report.is_clean(), "{name} {target}: {report:?}\n{lowered}");
    for n in [0, 1, 2, MOST] {
        let mut expected = inputs(func, n);
        sim::run(func, &mut expected, &RunOptions::default()).expect("the reference runs");
        for (seed, landing) in landings(&lowered).into_iter().enumerate() {
            let mut args = inputs(func, n);
            let options = SimtOptions {
                seed: seed as u64,
                landing,
                ..SimtOptions::default()
            };
            let report = simt::run(&lowered, target, &mut args, &options).expect("it runs");
            assert!(report.is_clean(), "{name} {target} n={n}\n{lowered}");
            let values = |args: &Args| args.tensor("C").map(|t| t.to_f64());
            assert_eq!(
                values(&args),
                values(&expected),
                "{name} {target} n={n}\n{lowered}"
            );
        }
    }
    true
}

#[test]
fn every_schedule_is_refused_or_right() {
    let mut taken: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for target in Target::ALL {
        for steps in 1..=4 {
            for stages in 1..=3 {
                let func = product(256, 32, 16 * steps, stages);
                for named in SCHEDULES {
                    if is_right(&func, target, named.name) {
                        *taken.entry((named.name, target.name())).or_default() += 1;
                    }
                }
            }
        }
    }
    // Each is taken where it should be: of 12 products all, those of more than one step with
    // copies ahead, those that waves copy straight to LDS.
    let all = |name, target| taken.get(&(name, target)).copied().unwrap_or(0);
    for target in Target::ALL {
        assert_eq!(all("plain", target.name()), 12, "{target}");
    }
    for target in ["sm_80", "sm_90a"] {
        assert_eq!(all("read_ahead", target), 6, "{target}");
        assert_eq!(all("late_wait", target), 0, "{target}");
    }
    for target in Target::ALL {
        assert_eq!(all("in_flight", target.name()), 0, "{target}");
    }
    assert_eq!(all("read_ahead", "gfx950"), 0);
    assert!(all("late_wait", "gfx950") > 0, "{taken:?}");
}

/// Products of warp groups are in flight while the loop goes on.
#[test]
fn products_of_warp_groups_are_refused_or_right() {
    let target = Target::Sm90a;
    let mut taken: BTreeMap<&str, u32> = BTreeMap::new();
    for steps in 1..=4 {
        for stages in 1..=4 {
            let func = product(256, 64, 16 * steps, stages);
            for named in SCHEDULES {
                let right = is_right(&func, target, named.name);
                *taken.entry(named.name).or_default() += u32::from(right);
            }
        }
    }
    assert_eq!(taken["plain"], 16);
    assert!(taken["in_flight"] > 0, "{taken:?}");
    // There is nothing to read into registers ahead.
    assert_eq!(taken["read_ahead"], 0);
}

/// Blocks with a wave of each half on every SIMD, one barrier apart.
#[test]
fn halves_of_a_block_are_refused_or_right() {
    let mut taken: BTreeMap<(&str, &str), u32> = BTreeMap::new();
    for target in [Target::Gfx942, Target::Gfx950] {
        for steps in [2, 4, 8] {
            for stages in 1..=3 {
                let func = product(512, 64, 16 * steps, stages);
                for named in SCHEDULES {
                    if is_right(&func, target, named.name) {
                        *taken.entry((named.name, target.name())).or_default() += 1;
                    }
                }
            }
        }
    }
    let all = |name, target| taken.get(&(name, target)).copied().unwrap_or(0);
    // All with copies ahead. A step of the matrix instruction is 32 along K on gfx950: a product that has
    // one is taken into halves along M.
    for target in ["gfx942", "gfx950"] {
        assert_eq!(all("ping_pong", target), 6, "{taken:?}");
        assert_eq!(all("plain", target), 9, "{taken:?}");
    }
}

/// Sums of 480 registers: there are 256 of a kind.
const LARGE: &str = "func @f level=tile {
  param A: bfloat16[192, 384]
  param B: bfloat16[160, 384]
  output C: float32[192, 160]
  kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {
    alloc a: shared bfloat16[192, 64]
    alloc b: shared bfloat16[160, 64]
    alloc acc: fragment float32[192, 160]
    fill acc[0 +: 192, 0 +: 160], 0.0
    for k in pipelined(0, 6) stages=2 {
      copy A[0 +: 192, k * 64 +: 64] -> a[0 +: 192, 0 +: 64]
      copy B[0 +: 160, k * 64 +: 64] -> b[0 +: 160, 0 +: 64]
      gemm a[0 +: 192, 0 +: 64], b[0 +: 160, 0 +: 64] -> acc[0 +: 192, 0 +: 160] trans_b
    }
    copy acc[0 +: 192, 0 +: 160] -> C[0 +: 192, 0 +: 160]
  }
}
";

#[test]
fn an_order_that_takes_too_many_registers_is_refused_where_it_is_asked_for_by_name() {
    let lowered = |asked: &str| {
        let mut func = text::parse(LARGE, SourceMap::new().add("large.tw", LARGE)).expect("IR");
        if !asked.is_empty() {
            ask_for_schedule(&mut func, asked);
        }
        driver::run(&mut func, Target::Gfx950, &Options::default())
    };
    let refused = lowered("plain").expect_err("more registers than there are");
    let mut errors = refused.errors.iter();
    let error = errors.find(|d| d.code.0 == "schedule-refused");
    let message = &error.expect("that is said").message;
    assert!(message.contains("480 sums"), "{message}");
    assert!(message.contains("of 248 registers"), "{message}");
    assert!(lowered("").is_ok(), "some order compiles it");
    let plain = SCHEDULES.iter().find(|s| s.name == "plain");
    let own = plain.and_then(|s| s.text()).expect("its text");
    assert!(lowered(own).is_ok(), "an order of one's own does");
}
