//! Index sets against brute force.

#[path = "common/build.rs"]
mod build;
#[path = "common/eval.rs"]
mod eval;
#[path = "common/generate.rs"]
mod generate;
#[path = "common/show.rs"]
mod show;

use std::collections::HashMap;

use eval::eval;
use generate::{Choices, DIVISORS, Profile, Rng, case};
use show::show;
use tilewright_arith::disjoint::{PointVar, StridedSet};
use tilewright_arith::{Analyzer, Interval, Proof};
use tilewright_ir::{BinOp, DType, Expr, RegionDim, Var};

fn var(v: u32) -> Expr {
    Expr::var(Var::from_u32(v), DType::I32)
}

fn dim(start: Expr, extent: i128) -> RegionDim {
    RegionDim {
        extent: Expr::int(extent, start.dtype()),
        start,
    }
}

fn threads(n: i128) -> Vec<PointVar> {
    vec![PointVar {
        var: Var::from_u32(0),
        dtype: DType::I32,
        range: Interval::new(0, n - 1),
    }]
}

#[test]
fn boxes() {
    let mut a = Analyzer::new();
    let k = var(1);
    a.bind_interval(Var::from_u32(1), DType::I32, Interval::new(0, 100));
    let at = |start: Expr| vec![dim(start, 32), dim(Expr::i32(0), 64)];
    let next = (k.clone() + 1) * 32;
    assert_eq!(a.boxes_disjoint(&at(k.clone() * 32), &at(next)), Proof::Yes);
    assert_eq!(
        a.boxes_disjoint(&at(k.clone() * 32), &at(k.clone() * 32 + 31)),
        Proof::No
    );
    assert_eq!(
        a.boxes_disjoint(&at(k.clone() * 32), &at(Expr::i32(64))),
        Proof::Unknown
    );
    // The second dimension alone keeps them apart.
    let left = vec![dim(k.clone(), 8), dim(Expr::i32(0), 16)];
    let right = vec![dim(var(2), 8), dim(Expr::i32(16), 16)];
    assert_eq!(a.boxes_disjoint(&left, &right), Proof::Yes);
    assert_eq!(
        a.boxes_disjoint(&[dim(k.clone(), 0)], &[dim(k.clone(), 5)]),
        Proof::Yes
    );
    assert_eq!(a.boxes_disjoint(&[], &[]), Proof::No);
    assert_eq!(a.boxes_disjoint(&[], &[dim(k, 1)]), Proof::Unknown);
    // Slots of a ring buffer: k % 3 and (k + 1) % 3 are never the same one.
    let slot = |d: i32| vec![dim((var(1) + d) % 3, 1)];
    assert_eq!(a.boxes_disjoint(&slot(0), &slot(3)), Proof::No);
}

#[test]
fn strided_sets_against_brute_force() {
    let mut rng = Rng(5);
    let (mut yes, mut no) = (0, 0);
    for _ in 0..4000 {
        let mut number = |n: usize| rng.below(n) as i128;
        let (p, q) = (number(60) - 30, number(60) - 30);
        let (s, t) = (number(13) - 6, number(13) - 6);
        let (n, m) = (number(9), number(9));
        let mut a = Analyzer::new();
        let set = |offset, stride, count| StridedSet {
            offset: Expr::int(offset, DType::I32),
            stride,
            count,
        };
        let answer = a.strided_disjoint(&set(p, s, n), &set(q, t, m));
        let shared = (0..n).any(|i| (0..m).any(|j| p + s * i == q + t * j));
        match answer {
            Proof::Yes => yes += 1,
            Proof::No => no += 1,
            Proof::Unknown => panic!("constant sets are always decided"),
        }
        assert_eq!(
            answer == Proof::No,
            shared,
            "{p}+{s}i ({n}), {q}+{t}j ({m})"
        );
    }
    assert!(yes > 500 && no > 500, "{yes} {no}");
}

#[test]
fn strided_sets_with_symbols() {
    let mut a = Analyzer::new();
    let x = var(1);
    a.bind_interval(Var::from_u32(1), DType::I32, Interval::new(0, 1 << 20));
    let set = |offset: Expr, stride, count| StridedSet {
        offset,
        stride,
        count,
    };
    let (even, odd) = (set(x.clone() * 2, 2, 1000), set(x.clone() * 2 + 1, 4, 1000));
    assert_eq!(a.strided_disjoint(&even, &odd), Proof::Yes);
    let (low, high) = (set(x.clone(), 1, 8), set(x.clone() + 8, 1, 8));
    assert_eq!(a.strided_disjoint(&low, &high), Proof::Yes);
    assert_eq!(
        a.strided_disjoint(&low, &set(x.clone() + 7, 3, 8)),
        Proof::No
    );
    assert_eq!(a.strided_disjoint(&low, &set(var(2), 3, 8)), Proof::Unknown);
}

#[test]
fn swizzles_are_injective() {
    let mut a = Analyzer::new();
    let tx = var(0);
    let k = var(1);
    a.bind_interval(Var::from_u32(1), DType::I32, Interval::new(0, 1 << 20));
    let (row, column) = (tx.clone().floor_div(8), tx.clone() % 8);
    let swizzled = row.clone() * 8 + Expr::bin(BinOp::BitXor, column.clone(), row.clone() % 8);
    assert_eq!(
        a.injective(&[swizzled.clone() * 8 + k.clone() * 4096], &threads(256)),
        Proof::Yes
    );
    assert_eq!(
        a.injective(&[tx.clone() * 4 + k.clone()], &threads(1 << 20)),
        Proof::Yes
    );
    assert_eq!(
        a.injective(&[tx.clone() % 64 + k.clone()], &threads(128)),
        Proof::No
    );
    assert_eq!(
        a.injective(&[column.clone(), row.clone()], &threads(128)),
        Proof::Yes
    );
    assert_eq!(a.injective(&[column, k.clone()], &threads(128)), Proof::No);
    // A product with something unknown says nothing.
    assert_eq!(
        a.injective(&[tx.clone() * k.clone()], &threads(128)),
        Proof::Unknown
    );
    // 2^28 times 16 wraps around to where it started.
    assert_eq!(
        a.injective(&[tx.clone() * (1 << 28)], &threads(17)),
        Proof::No
    );
    assert_eq!(
        a.injective(&[tx.clone() * (1 << 28)], &threads(16)),
        Proof::Yes
    );
    // Below 64 the remainder is the thread itself.
    a.assume(&tx.clone().lt(64));
    assert_eq!(a.injective(&[tx % 64], &threads(128)), Proof::Yes);
}

#[test]
fn different_threads_different_places() {
    let mut a = Analyzer::new();
    let (tx, k) = (var(0), var(1));
    let at = |e: Expr| [e];
    let base = tx.clone() * 4 + k.clone();
    assert_eq!(
        a.distinct_across(&at(base.clone()), &at(base.clone() + 3), &threads(128)),
        Proof::Yes
    );
    assert_eq!(
        a.distinct_across(&at(base.clone()), &at(base.clone() + 4), &threads(128)),
        Proof::No
    );
    assert_eq!(
        a.distinct_across(&at(base.clone()), &at(tx + var(2)), &threads(128)),
        Proof::Unknown
    );
    assert_eq!(
        a.distinct_across(&at(base), &at(k), &threads(1)),
        Proof::Yes
    );
}

#[test]
fn injectivity_against_brute_force() {
    let mut rng = Rng(11);
    let (mut yes, mut no) = (0, 0);
    for _ in 0..1500 {
        let types = [DType::I8, DType::U8];
        let profile = Profile {
            main: types[rng.below(2)],
            other: types[rng.below(2)],
            depth: 1 + rng.below(2) as u32,
            nonlinear: rng.below(2) == 1,
            widest: 31,
            divisors: DIVISORS,
        };
        let mut case = case(&mut rng, profile, Some(false));
        case.facts.clear();
        // Only the first variable and one more tell points apart.
        let points: Vec<PointVar> = case.inputs[..2]
            .iter()
            .map(|i| PointVar {
                var: i.var,
                dtype: i.dtype,
                range: Interval::new(i.lo, i.hi),
            })
            .collect();
        let mut a = Analyzer::new();
        for i in &case.inputs {
            a.bind_interval(i.var, i.dtype, Interval::new(i.lo, i.hi));
        }
        let answer = a.injective(std::slice::from_ref(&case.expr), &points);
        let (p, q) = (&case.inputs[0], &case.inputs[1]);
        for (u, v) in [
            (case.inputs[2].lo, case.inputs[3].hi),
            (case.inputs[2].hi, case.inputs[3].lo),
        ] {
            let mut seen: HashMap<i128, (i128, i128)> = HashMap::new();
            let mut collides = false;
            for x in p.lo..=p.hi {
                for y in q.lo..=q.hi {
                    let values = [x, y, u, v];
                    let e = eval(&case.expr, &|v: Var| values[v.as_u32() as usize]);
                    let e = e.expect("the generator makes nothing undefined");
                    collides |= seen.insert(e, (x, y)).is_some();
                }
            }
            match answer {
                Proof::Yes => {
                    yes += 1;
                    assert!(!collides, "{} is not injective", show(&case.expr));
                }
                Proof::No => {
                    no += 1;
                    assert!(collides, "{} is injective", show(&case.expr));
                }
                Proof::Unknown => {}
            }
        }
    }
    assert!(yes > 100 && no > 100, "{yes} {no}");
}
