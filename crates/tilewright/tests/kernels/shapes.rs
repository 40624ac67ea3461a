//! Which cases there are: every kernel of the examples has one at least, in three shapes at
//! least, one of which its tile does not divide.

use std::collections::{BTreeMap, BTreeSet};
use std::fs;

use libtest_mimic::Failed;

use super::root;
use crate::oracle::{self, Case};

/// What a kernel cuts into which tiles: the first pair whose both names it knows.
const TILED: &[(&str, &str)] = &[
    ("N", "block_N"),
    ("n", "block_N"),
    ("M", "block_M"),
    ("m", "block_M"),
    ("seq_len", "block_M"),
    ("seq_kv", "block_N"),
    ("head_dim", "block_N"),
    ("seq_len", "chunk"),
    ("F", "block_N"),
    ("N", "block"),
    ("N", "warps"),
    ("N", "threads"),
];

/// A kernel that nobody checks is not an example of anything.
pub fn every_kernel_has_a_case() -> Result<(), Failed> {
    let checked: BTreeSet<(String, String)> = oracle::all_cases()
        .iter()
        .map(|case| (case.file.to_string(), case.kernel.to_string()))
        .collect();
    let mut present = BTreeSet::new();
    for entry in fs::read_dir(root().join("examples"))? {
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

/// Three shapes at least, one with whole tiles and one without.
pub fn every_kernel_has_three_shapes() -> Result<(), Failed> {
    let mut kernels: BTreeMap<(&str, &str), Vec<&Case>> = BTreeMap::new();
    for case in oracle::all_cases() {
        let cases = kernels.entry((case.file, case.kernel)).or_default();
        cases.push(case);
    }
    let mut complaints = Vec::new();
    for ((file, kernel), cases) in kernels {
        let shapes: BTreeSet<Vec<&[usize]>> = cases.iter().map(|case| shapes_of(case)).collect();
        if shapes.len() < 3 {
            complaints.push(format!("{file}:{kernel} has {} shapes", shapes.len()));
        }
        let source = fs::read_to_string(root().join("examples").join(file))?;
        let signature = signature(&source, kernel).unwrap_or_default();
        let pair = TILED.iter().find(|(size, tile)| {
            let known = |name| cases.iter().all(|c| value(c, signature, name).is_some());
            known(size) && known(tile)
        });
        let Some((size, tile)) = pair else {
            complaints.push(format!("{file}:{kernel} has no known tile"));
            continue;
        };
        let ragged = cases.iter().filter(|case| {
            let both = value(case, signature, size).zip(value(case, signature, tile));
            both.is_some_and(|(size, tile)| size % tile != 0)
        });
        let ragged = ragged.count();
        if ragged == 0 || ragged == cases.len() {
            complaints.push(format!(
                "{file}:{kernel}: {tile} does not divide {size} in {ragged} of {} cases",
                cases.len()
            ));
        }
    }
    if complaints.is_empty() {
        Ok(())
    } else {
        Err(complaints.join("\n").into())
    }
}

fn shapes_of(case: &Case) -> Vec<&[usize]> {
    case.inputs.iter().map(|i| i.shape.as_slice()).collect()
}

/// The parameters of a top-level function, as text.
fn signature<'a>(source: &'a str, kernel: &str) -> Option<&'a str> {
    let start = source.find(&format!("\ndef {kernel}("))?;
    let rest = &source[start..];
    Some(&rest[..rest.find("):")?])
}

/// What the case sets a parameter to, or its default.
fn value(case: &Case, signature: &str, name: &str) -> Option<usize> {
    if let Some((_, value)) = case.set.iter().find(|(set, _)| *set == name) {
        return value.parse().ok();
    }
    let parameters = signature.split(['(', ',']).map(str::trim);
    let default = parameters.filter_map(|p| p.split_once('='));
    let mut default = default.filter(|(parameter, _)| *parameter == name);
    default.next()?.1.parse().ok()
}
