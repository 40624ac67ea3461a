//! Random expressions, evaluated before and after simplification on every input of their ranges.

#[path = "common/build.rs"]
mod build;
#[path = "common/eval.rs"]
mod eval;
#[path = "common/generate.rs"]
mod generate;
#[path = "common/show.rs"]
mod show;

use eval::eval;
use generate::{Case, Choices, DIVISORS, Input, Profile, Rng, case};
use proptest::prelude::*;
use show::show;
use tilewright_arith::{Analyzer, Interval, Proof};
use tilewright_ir::{DType, Expr, Scalar, Var};

const I4: DType = DType::scalar(Scalar::I4);
const U4: DType = DType::scalar(Scalar::U4);

/// Choices read from bytes, so that shrinking the bytes shrinks the case.
struct Bytes<'a>(&'a [u16]);

impl Choices for Bytes<'_> {
    fn below(&mut self, n: usize) -> usize {
        match self.0 {
            [] => 0,
            [first, rest @ ..] => {
                self.0 = rest;
                *first as usize % n
            }
        }
    }
}

fn profile(c: &mut impl Choices) -> Profile {
    let types = [DType::I8, DType::U8, I4, U4];
    let main = types[c.below(4)];
    Profile {
        main,
        other: types[c.below(4)],
        depth: 1 + c.below(3) as u32,
        nonlinear: c.below(2) == 1,
        widest: 31,
        divisors: DIVISORS,
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
    let pick = |i: &Input, rng: &mut Rng| match rng.below(6) {
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
    // More of them, or others, are a matter of the environment.
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse().ok());
    let mut rng = Rng(number("TILEWRIGHT_SEED").unwrap_or(0x7a11e));
    let n = number("TILEWRIGHT_CASES").unwrap_or(30_000);
    for i in 0..n {
        let p = profile(&mut rng);
        let case = case(&mut rng, p, None);
        if let Err(message) = check(&case, 300) {
            panic!("case {i}: {message}");
        }
    }
}
