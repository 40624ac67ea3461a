//! The `.tw` files of this folder.

use std::collections::BTreeSet;
use std::path::Path;

use tilewright_ir::{Func, Level, Target};
use tilewright_sim::simt::{FindingKind, Landing};
use tilewright_sim::{Fill, InputSpec, Number, RunOptions, make_inputs, run};

use crate::common::{Module, ways};

pub struct Header {
    pub targets: Vec<Target>,
    pub spec: InputSpec,
    landings: Vec<Landing>,
    /// The same text, as thread-level tile IR, is the reference.
    same: bool,
    /// What must be found: each time one of these, or several.
    expected: Vec<BTreeSet<String>>,
    /// Findings of some orders only.
    possible: BTreeSet<String>,
}

pub fn header(source: &str) -> Header {
    let mut header = Header {
        targets: Vec::new(),
        spec: InputSpec {
            seed: 1,
            ..InputSpec::default()
        },
        landings: vec![Landing::default()],
        same: false,
        expected: Vec::new(),
        possible: BTreeSet::new(),
    };
    for line in source.lines().filter_map(|l| l.strip_prefix("# ")) {
        let Some((key, rest)) = line.split_once(": ") else {
            continue;
        };
        let words = || rest.split_whitespace();
        let pairs = || words().filter_map(|w| w.split_once('='));
        match key {
            "target" => {
                let target = |w| Target::from_name(w).unwrap_or_else(|| panic!("target {w}"));
                header.targets.extend(words().map(target));
            }
            "set" => {
                for (name, value) in pairs() {
                    let value = Number::Int(value.parse().expect("a number"));
                    header.spec.values.insert(name.to_string(), value);
                }
            }
            "fill" => {
                for (name, how) in pairs() {
                    let fill = match how {
                        "iota" => Fill::Iota(0),
                        _ if how.starts_with("iota") => {
                            Fill::Iota(how[4..].parse().expect("a number"))
                        }
                        "zero" => Fill::Constant(0.0),
                        "one" => Fill::Constant(1.0),
                        other => panic!("fill {other}"),
                    };
                    header.spec.fills.insert(name.to_string(), fill);
                }
            }
            "reference" if rest == "same" => header.same = true,
            "landing" if rest == "all" => header.landings = Landing::ALL.to_vec(),
            "expect" => {
                let choices = rest.split(" | ").map(str::to_string);
                header.expected.push(choices.collect());
            }
            "possibly" => {
                header.possible.insert(rest.to_string());
            }
            _ => {}
        }
    }
    header
}

fn check(path: &Path) -> Result<(), String> {
    let name = path.file_name().unwrap_or_default().to_string_lossy();
    let source = std::fs::read_to_string(path).map_err(|e| e.to_string())?;
    let module = Module::parse(&name, &source);
    let header = header(&source);
    if header.targets.is_empty() {
        return Err("no target".to_string());
    }
    let same = header.same.then(|| Func {
        level: Level::Tile,
        ..module.func().clone()
    });
    let expected_outputs = module.funcs.get(1).or(same.as_ref()).map(|reference| {
        let mut args = make_inputs(reference, &header.spec).expect("inputs can be made");
        if let Err(e) = run(reference, &mut args, &RunOptions::default()) {
            panic!("{name}: the reference fails: {e}");
        }
        args
    });
    for &target in &header.targets {
        let mut first: Option<Vec<(String, Vec<u8>)>> = None;
        for &landing in &header.landings {
            for mut opts in ways() {
                opts.landing = landing;
                let outcome = module.simulate(target, &header.spec, &opts);
                let found = module.found(&outcome.report);
                let how = format!(
                    "{target}, seed {}, {:?}, {landing:?}",
                    opts.seed, opts.interleaving
                );
                let met = header.expected.iter().all(|e| !e.is_disjoint(&found));
                let allowed = |f: &String| {
                    header.possible.contains(f) || header.expected.iter().any(|e| e.contains(f))
                };
                if !met || !found.iter().all(allowed) {
                    let list: Vec<String> = outcome
                        .report
                        .findings
                        .iter()
                        .map(|f| f.to_string())
                        .collect();
                    return Err(format!(
                        "{how}: found {found:?}, expected {:?}\n{}",
                        header.expected,
                        list.join("\n")
                    ));
                }
                let outputs: Vec<(String, Vec<u8>)> = module
                    .func()
                    .tensors()
                    .filter(|(_, output)| *output)
                    .map(|(buffer, _)| {
                        let name = module.func().buffers[buffer].name.clone();
                        let bytes = outcome.bytes(&name).to_vec();
                        (name, bytes)
                    })
                    .collect();
                if !header.expected.is_empty() {
                    continue;
                }
                if let Some(reference) = &expected_outputs {
                    for (output, _) in &outputs {
                        let got = outcome.values(output);
                        let want = reference
                            .tensor(output)
                            .map(|t| t.to_f64())
                            .unwrap_or_default();
                        let same = |a: &f64, b: &f64| a == b || (a.is_nan() && b.is_nan());
                        let differs = (0..want.len()).find(|&i| !same(&got[i], &want[i]));
                        if let Some(i) = differs {
                            return Err(format!(
                                "{how}: `{output}` element {i} is {}, expected {}",
                                got[i], want[i]
                            ));
                        }
                    }
                }
                match &first {
                    None => first = Some(outputs),
                    Some(first) if *first != outputs => {
                        return Err(format!("{how}: the outputs depend on the order"));
                    }
                    Some(_) => {}
                }
            }
        }
    }
    Ok(())
}

#[test]
fn files_find_what_they_expect() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simt");
    let only = std::env::var("ONLY").unwrap_or_default();
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the folder of this test")
        .filter_map(|e| Some(e.ok()?.path()))
        .filter(|p| p.extension().is_some_and(|e| e == "tw"))
        .filter(|p| p.to_string_lossy().contains(&only))
        .collect();
    paths.sort();
    assert!(!paths.is_empty());
    let mut failures = Vec::new();
    for path in &paths {
        if let Err(e) = check(path) {
            failures.push(format!("{}: {e}", path.display()));
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n\n"));
}

/// Every kind of finding is planted somewhere: in a file, or in the tests written in Rust.
#[test]
fn every_kind_of_finding_is_tested() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/simt");
    let mut all = String::new();
    for entry in std::fs::read_dir(folder).expect("the folder of this test") {
        let path = entry.expect("an entry").path();
        let text = std::fs::read_to_string(path).expect("a text");
        let lines = text.lines();
        let told = lines.filter(|l| l.starts_with("# expect: ") || l.contains("FindingKind::"));
        told.for_each(|l| all.extend([l, "\n"]));
    }
    for kind in FindingKind::ALL {
        let in_file = all.contains(&format!("# expect: {kind} "));
        let in_test = all.contains(&format!("FindingKind::{kind:?}"));
        assert!(in_file || in_test, "{kind} is planted nowhere");
    }
}
