//! Every kernel under `examples/` against independent mathematics, with several sets of
//! parameters: sizes that the tiles divide and sizes that they do not.
//!
//! The formulas, the tolerances and why they are what they are stand in `oracle/`.

mod oracle;

use std::collections::BTreeSet;
use std::fs;
use std::path::{Path, PathBuf};

use libtest_mimic::{Arguments, Failed, Trial};
use oracle::{Approx, F16, Output};

fn main() {
    let args = Arguments::from_args();
    let trials = vec![
        Trial::test("every kernel has a case", every_kernel_has_a_case),
        Trial::test("the comparison can fail", the_comparison_can_fail),
    ];
    libtest_mimic::run(&args, trials).exit();
}

fn examples() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

/// A kernel that nobody checks is not an example of anything.
fn every_kernel_has_a_case() -> Result<(), Failed> {
    let checked: BTreeSet<(String, String)> = oracle::all_cases()
        .iter()
        .map(|case| (case.file.to_string(), case.kernel.to_string()))
        .collect();
    let mut present = BTreeSet::new();
    for entry in fs::read_dir(examples())? {
        let path = entry?.path();
        if path.extension().is_some_and(|extension| extension == "py") {
            let file = path
                .file_name()
                .unwrap_or_default()
                .to_string_lossy()
                .into_owned();
            for kernel in kernels_in(&fs::read_to_string(&path)?) {
                present.insert((file.clone(), kernel));
            }
        }
    }
    let unchecked: Vec<_> = present.difference(&checked).collect();
    let missing: Vec<_> = checked.difference(&present).collect();
    if unchecked.is_empty() && missing.is_empty() {
        return Ok(());
    }
    Err(
        format!("kernels without a case: {unchecked:?}; cases without a kernel: {missing:?}")
            .into(),
    )
}

/// The top-level functions that are kernels: those under `@tilelang.jit` and those that hold an
/// inner `@T.prim_func`.
fn kernels_in(source: &str) -> Vec<String> {
    let mut kernels = Vec::new();
    let mut decorated = false;
    let mut current: Option<&str> = None;
    for line in source.lines() {
        if let Some(definition) = line.strip_prefix("def ") {
            current = definition.split('(').next();
            if decorated {
                kernels.extend(current.take().map(str::to_string));
            }
            decorated = false;
        } else if line.starts_with("@tilelang.jit") {
            decorated = true;
        } else if line.trim() == "@T.prim_func" {
            kernels.extend(current.take().map(str::to_string));
        }
    }
    kernels
}

/// A bound that accepts everything would make the whole file worthless.
fn the_comparison_can_fail() -> Result<(), Failed> {
    let element = Approx {
        value: 3.0,
        slack: 0.001,
    };
    let output = Output::new("C", vec![element; 4], F16);
    let bound = element.rounded(F16).slack;
    let with = |third: f64| output.mismatch(&[3.0, 3.0, third, 3.0]);
    let accepted = [3.0, 3.0 + 0.99 * bound, 3.0 - 0.99 * bound];
    let refused = [
        3.0 + 1.01 * bound,
        3.0 - 1.01 * bound,
        f64::NAN,
        f64::INFINITY,
        -3.0,
    ];
    for value in accepted {
        if let Some(complaint) = with(value) {
            return Err(format!("{value} should pass: {complaint}").into());
        }
    }
    for value in refused {
        if with(value).is_none() {
            return Err(format!("{value} should not pass for 3").into());
        }
    }
    if output.mismatch(&[3.0]).is_none() {
        return Err("a result of another size should not pass".into());
    }
    Ok(())
}
