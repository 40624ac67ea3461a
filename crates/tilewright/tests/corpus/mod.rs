//! The examples as programs for the vendors' compilers.

pub mod stage;

use std::fs;

use libtest_mimic::{Failed, Trial};
use tilewright::codegen::{self, Source};
use tilewright::ir::{Func, Target};
use tilewright::jit;

use stage::{folder, rendered, staged};

/// A test of every example on every one of the targets.
pub fn trials(
    targets: &[Target],
    test: fn(&str, Target) -> Result<(), Failed>,
) -> impl Iterator<Item = Trial> {
    let pairs = targets
        .iter()
        .flat_map(|t| examples().into_iter().map(move |name| (*t, name)))
        .filter(|(target, name)| is_for(name, *target));
    pairs.map(move |(target, name)| {
        Trial::test(format!("{target} {name}"), move || test(&name, target))
    })
}

/// An example as device IR and as source.
pub fn generated(
    name: &str,
    settings: &[(&str, &str)],
    target: Target,
) -> Result<(Func, Source), Failed> {
    let (func, sources) = staged(name, None, settings)?;
    let (func, _) =
        jit::lower(&func, target).map_err(|e| rendered(&e.into_diagnostics(), &sources))?;
    let options = codegen::Options {
        sources: Some(&sources),
        line_directives: false,
    };
    match codegen::generate(&func, target, options) {
        Ok(source) => Ok((func, source)),
        Err(d) => Err(rendered(&[*d], &sources)),
    }
}

/// Whether an example is one for this target: bulk copies need their engine.
fn is_for(name: &str, target: Target) -> bool {
    let text = fs::read_to_string(folder().join(name)).expect("an example");
    !["T.tma_copy", "T.tma_load"]
        .iter()
        .any(|name| text.contains(name))
        || target.machine().bulk_copies
}

fn examples() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("the examples are there");
    let mut names: Vec<String> = files
        .filter_map(|f| Some(f.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.ends_with(".py"))
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names
}
