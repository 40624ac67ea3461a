//! Random expressions, evaluated before and after simplification on every input of their ranges.

mod common;

use common::{Bytes, Case, Choices, Profile, Rng, case, eval, show};
use proptest::prelude::*;
use tilewright_arith::{Analyzer, Interval, Proof};
use tilewright_ir::{DType, Expr, Scalar, Var};

const I4: DType = DType::scalar(Scalar::I4);
const U4: DType = DType::scalar(Scalar::U4);

fn profile(c: &mut impl Choices) -> Profile {
    let types = [DType::I8, DType::U8, I4, U4];
    let main = types[c.below(4)];
    Profile {
        main,
        other: types[c.below(4)],
        depth: 1 + c.below(3) as u32,
        nonlinear: c.below(2) == 1,
        widest: 31,
    }
}

/// An analyzer that knows what the case says.
fn analyzer(case: &Case) -> Analyzer {
    let mut a = Analyzer::new();
    for i in &case.inputs {
        a.bind_interval(i.var, i.dtype, Interval::new(i.lo, i.hi));
    }
    for fact in &case.facts {
        a.assume(fact);
    }
    a
}

fn mentions(e: &Expr, var: Var) -> bool {
    e.as_var() == Some(var) || e.operands().iter().any(|o| mentions(o, var))
}

/// All inputs, or a part of them spread over the ranges when there are too many. Variables that
/// do not occur keep one value.
fn inputs(case: &Case, limit: usize, rng: &mut Rng) -> Vec<Vec<i128>> {
    let used = |v| mentions(&case.expr, v) || case.facts.iter().any(|f| mentions(f, v));
    let sizes: Vec<i128> = case
        .inputs
        .iter()
        .map(|i| if used(i.var) { i.hi - i.lo + 1 } else { 1 })
        .collect();
    let total: i128 = sizes.iter().product();
    if total <= limit as i128 {
        let mut all = vec![vec![]];
        for (i, &size) in case.inputs.iter().zip(&sizes) {
            let extend = |p: &Vec<i128>| {
                let p = p.clone();
                (0..size)
                    .map(move |k| p.iter().copied().chain([i.lo + k]).collect())
                    .collect::<Vec<_>>()
            };
            all = all.iter().flat_map(extend).collect();
        }
        return all;
    }
    let pick = |i: &common::Input, rng: &mut Rng| match rng.below(6) {
        0 => i.lo,
        1 => i.hi,
        2 => (i.lo + 1).min(i.hi),
        _ => i.lo + rng.below((i.hi - i.lo + 1) as usize) as i128,
    };
    (0..limit)
        .map(|_| case.inputs.iter().map(|i| pick(i, rng)).collect())
        .collect()
}

fn check(case: &Case, limit: usize) -> Result<(), String> {
    let mut a = analyzer(case);
    let simplified = a.simplify(&case.expr);
    let bounds = a.const_bounds(&case.expr);
    let congruence = a.congruence(&case.expr);
    let is_bool = case.expr.dtype() == DType::BOOL;
    let proof = if is_bool {
        a.prove(&case.expr)
    } else {
        Proof::Unknown
    };
    if simplified.dtype() != case.expr.dtype() {
        return Err(format!("the type changed: {}", show(&simplified)));
    }
    let again = a.simplify(&simplified);
    let mut rng = Rng(7);
    for values in inputs(case, limit, &mut rng) {
        let value_of = |v: Var| values[v.as_u32() as usize];
        if !case.facts.iter().all(|f| eval(f, &value_of) == Some(1)) {
            continue;
        }
        let Some(want) = eval(&case.expr, &value_of) else {
            continue;
        };
        let complain = |what: String| {
            let inputs: Vec<String> = case
                .inputs
                .iter()
                .map(|i| format!("{}: {} in [{}, {}]", i.var, i.dtype, i.lo, i.hi))
                .collect();
            let facts: Vec<String> = case.facts.iter().map(show).collect();
            Err(format!(
                "{what}\n  of {}\n  as {}\n  inputs {values:?} of {inputs:?}\n  facts {facts:?}",
                show(&case.expr),
                show(&simplified)
            ))
        };
        for (name, e) in [("simplified", &simplified), ("simplified twice", &again)] {
            let got = eval(e, &value_of);
            if got != Some(want) {
                return complain(format!("{name}: {got:?} instead of {want}"));
            }
        }
        if !bounds.contains(want) {
            return complain(format!("{want} is outside {bounds:?}"));
        }
        if !congruence.contains(want) {
            return complain(format!("{want} is not {congruence:?}"));
        }
        let refuted = match proof {
            Proof::Yes => want != 1,
            Proof::No => want != 0,
            Proof::Unknown => false,
        };
        if refuted {
            return complain(format!("{proof:?} is wrong, the value is {want}"));
        }
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig { cases: 3000, max_shrink_iters: 20_000, ..ProptestConfig::default() })]

    #[test]
    fn simplification_changes_no_value(choices in prop::collection::vec(any::<u16>(), 0..60)) {
        let mut source = Bytes(&choices);
        let p = profile(&mut source);
        let case = case(&mut source, p, None);
        if let Err(message) = check(&case, 400) {
            return Err(TestCaseError::fail(message));
        }
    }
}

/// The same with a fixed seed, so that every run covers at least these.
#[test]
fn fixed_cases() {
    let mut rng = Rng(0x7a11e);
    for i in 0..4000 {
        let p = profile(&mut rng);
        let case = case(&mut rng, p, None);
        if let Err(message) = check(&case, 300) {
            panic!("case {i}: {message}");
        }
    }
}
