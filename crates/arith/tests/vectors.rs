//! Random vector expressions, evaluated lane by lane before and after simplification.

#[path = "common/build.rs"]
mod build;
#[path = "common/eval.rs"]
mod eval;
#[path = "common/generate.rs"]
mod generate;

use build::bin;
use eval::eval;
use generate::{Choices, DIVISORS, Profile, Rng, case};
use tilewright_arith::{Analyzer, Interval, Rule};
use tilewright_ir::{BinOp, DType, Expr, ExprKind, Span, Var};

const LANES: u16 = 4;

/// A vector over scalars of the case.
fn vector(rng: &mut Rng, scalars: &[Expr], depth: u32) -> Expr {
    let dtype = scalars[0].dtype();
    let wide = dtype.with_lanes(LANES);
    let scalar = |rng: &mut Rng| scalars[rng.below(scalars.len())].clone();
    let constant = |value: usize| Expr::int(value as i128, wide);
    match rng.below(if depth == 0 { 3 } else { 7 }) {
        0 => scalar(rng).broadcast(LANES),
        1 | 2 => {
            let stride = match rng.below(4) {
                0 => scalar(rng),
                s => Expr::int(s as i128 - 1, dtype),
            };
            let base = scalar(rng);
            Expr::new(ExprKind::Ramp { base, stride }, wide, Span::NONE)
        }
        3 => {
            let op = [BinOp::FloorDiv, BinOp::FloorMod][rng.below(2)];
            let c = [1, 2, 4, 8, 6, 16][rng.below(6)];
            let a = if rng.below(2) == 0 {
                vector(rng, scalars, depth - 1)
            } else {
                // Within one quotient, or just not.
                let base = bin(BinOp::Mul, scalar(rng), Expr::int(c as i128, dtype));
                let base = bin(BinOp::Add, base, Expr::int(rng.below(4) as i128, dtype));
                let stride = Expr::int(1 + rng.below(2) as i128, dtype);
                Expr::new(ExprKind::Ramp { base, stride }, wide, Span::NONE)
            };
            bin(op, a, constant(c))
        }
        4 => {
            let a = vector(rng, scalars, depth - 1);
            bin(BinOp::Mul, a, constant([1, 2, 4, 8, 3, 16][rng.below(6)]))
        }
        _ => {
            let ops = [
                BinOp::Add,
                BinOp::Sub,
                BinOp::Mul,
                BinOp::Min,
                BinOp::Max,
                BinOp::BitXor,
            ];
            let op = ops[rng.below(6)];
            let (a, b) = (
                vector(rng, scalars, depth - 1),
                vector(rng, scalars, depth - 1),
            );
            bin(op, a, b)
        }
    }
}

/// One lane of a vector expression, as a scalar one.
fn lane(e: &Expr, k: u16) -> Expr {
    let dtype = e.dtype().with_lanes(1);
    match e.kind() {
        _ if e.dtype().lanes == 1 => e.clone(),
        ExprKind::Broadcast(a) => a.clone(),
        ExprKind::Ramp { base, stride } => {
            let offset = bin(BinOp::Mul, stride.clone(), Expr::int(k as i128, dtype));
            bin(BinOp::Add, base.clone(), offset)
        }
        ExprKind::Binary(op, a, b) => bin(*op, lane(a, k), lane(b, k)),
        other => panic!("no lanes of {other:?}"),
    }
}

#[test]
fn every_lane_keeps_its_value() {
    let mut rng = Rng(21);
    let mut fired = Analyzer::new().rule_counts().clone();
    for round in 0..6000 {
        let profile = Profile {
            main: [DType::I8, DType::U8][rng.below(2)],
            other: DType::I8,
            depth: 1,
            nonlinear: false,
            widest: 16,
            divisors: DIVISORS,
        };
        let scalars = case(&mut rng, profile.clone(), Some(false));
        let mut leaves = vec![scalars.expr.clone()];
        leaves.extend(scalars.inputs[..3].iter().map(|i| i.expr()));
        let mut e = vector(&mut rng, &leaves, 3);
        if rng.below(3) == 0 {
            let other = vector(&mut rng, &leaves, 2);
            e = bin([BinOp::Lt, BinOp::Eq, BinOp::Ge][rng.below(3)], e, other);
        }
        let mut a = Analyzer::new();
        for i in &scalars.inputs {
            a.bind_interval(i.var, i.dtype, Interval::new(i.lo, i.hi));
        }
        for fact in &scalars.facts {
            a.assume(fact);
        }
        let simplified = a.simplify(&e);
        assert_eq!(simplified.dtype(), e.dtype());
        let bounds = a.const_bounds(&e);
        fired.merge(a.rule_counts());
        for _ in 0..40 {
            let pick =
                |rng: &mut Rng, lo: i128, hi: i128| lo + rng.below((hi - lo + 1) as usize) as i128;
            let values: Vec<i128> = scalars
                .inputs
                .iter()
                .map(|i| pick(&mut rng, i.lo, i.hi))
                .collect();
            let value_of = |v: Var| values[v.as_u32() as usize];
            if !scalars.facts.iter().all(|f| eval(f, &value_of) == Some(1)) {
                continue;
            }
            for k in 0..LANES {
                let want = eval(&lane(&e, k), &value_of).expect("nothing is undefined");
                let got = eval(&lane(&simplified, k), &value_of);
                assert_eq!(
                    got,
                    Some(want),
                    "round {round}, lane {k} of {e:?}\n as {simplified:?}\n at {values:?}"
                );
                assert!(
                    bounds.contains(want),
                    "round {round}: {want} not in {bounds:?}"
                );
            }
        }
    }
    for rule in [
        Rule::RampGather,
        Rule::RampDiv,
        Rule::RampTimes,
        Rule::BroadcastOut,
        Rule::RampFlat,
    ] {
        assert!(
            fired.get(rule) > 50,
            "{} fired {} times",
            rule.name(),
            fired.get(rule)
        );
    }
}
