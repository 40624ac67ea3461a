//! Random functions: whatever they are, the evaluator answers and does not panic.

use proptest::prelude::*;
use tilewright_ir::{Expr, Func, Level, Param};
use tilewright_sim::{Args, InputSpec, Number, RunOptions, make_inputs, run};
use tilewright_testkit::arbitrary::any_func;

/// Runs a function with small sizes. The outcome does not matter, only that there is one; the
/// same call must have the same outcome twice.
fn answers(func: &Func) -> Result<(), TestCaseError> {
    let mut func = func.clone();
    func.level = Level::Tile;
    // Parameters are bound by name, so they need different ones.
    for (at, param) in func.params.clone().iter().enumerate() {
        match *param {
            Param::Tensor { buffer, .. } => func.buffers[buffer].name = format!("p{at}"),
            Param::Scalar(var) => func.vars[var].name = format!("p{at}"),
        }
    }
    let mut spec = InputSpec::default();
    for (at, &var) in func.symbols.clone().iter().enumerate() {
        func.vars[var].name = format!("n{at}");
        spec.values.insert(format!("n{at}"), Number::Int(3));
    }
    for kernel in &mut func.kernels {
        for (_, extent) in &mut kernel.grid {
            *extent = Expr::int(2, extent.dtype());
        }
    }
    let options = |threads| RunOptions {
        threads,
        step_limit: 20_000,
        ..RunOptions::default()
    };
    let outcome = |threads| {
        let mut args = make_inputs(&func, &spec).unwrap_or_else(|_| Args::new());
        let result = run(&func, &mut args, &options(threads));
        (args, result.map(|r| r.prints).map_err(|e| e.to_string()))
    };
    let (args, result) = outcome(1);
    let (again, same) = outcome(3);
    prop_assert_eq!(&result, &same);
    if result.is_ok() {
        prop_assert_eq!(args, again);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_functions_have_an_outcome(func in any_func()) {
        answers(&func)?;
    }
}
