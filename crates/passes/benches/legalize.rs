//! From tile IR to device IR: every kernel of the examples, with the pipeline of each target.
//!
//! `legalize` is the passes before pipelined loops are written out, `pipeline` all of them, the
//! placing of shared memory with its hazard check included. A kernel that a target refuses at
//! its default sizes is left out there.

use std::time::Duration;

use criterion::{BatchSize, Criterion, criterion_group, criterion_main};
use tilewright_ir::{Diagnostics, Func, SourceMap, Target};

/// The pass that legalize ends before.
const FIRST_OF_OPTIMIZE: &str = "inject-software-pipeline";

const TARGETS: [Target; 3] = [Target::Sm80, Target::Gfx942, Target::Gfx950];

fn legalize_examples(c: &mut Criterion) {
    let kernels = kernels();
    for target in TARGETS {
        for (part, last) in [("legalize", Some(FIRST_OF_OPTIMIZE)), ("pipeline", None)] {
            let mut group = c.benchmark_group(format!("{part} {target}"));
            for (name, func) in &kernels {
                if lower(func.clone(), target, None).is_none() {
                    continue;
                }
                group.bench_function(name, |b| {
                    b.iter_batched(
                        || func.clone(),
                        |func| lower(func, target, last),
                        BatchSize::SmallInput,
                    );
                });
            }
            group.finish();
        }
    }
}

/// Runs the passes before the one named, or all. `None` where the target refuses the kernel.
fn lower(mut func: Func, target: Target, end: Option<&str>) -> Option<Func> {
    let mut diags = Diagnostics::new();
    for pass in tilewright_passes::pipeline(target) {
        if Some(pass.name) == end {
            break;
        }
        (pass.run)(&mut func, target, &mut diags);
    }
    (!diags.has_errors()).then_some(func)
}

/// Every kernel of every example with default parameters, as `file` or `file:kernel`.
fn kernels() -> Vec<(String, Func)> {
    let folder = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples");
    let mut paths: Vec<_> = std::fs::read_dir(folder)
        .expect("the examples")
        .filter_map(|entry| Some(entry.ok()?.path()))
        .filter(|path| path.extension().is_some_and(|e| e == "py"))
        .collect();
    paths.sort();
    let mut found = Vec::new();
    for path in paths {
        let file_name = path.file_stem().map(|s| s.to_string_lossy().into_owned());
        let file_name = file_name.unwrap_or_default();
        let text = std::fs::read_to_string(&path).expect("an example");
        let defined: Vec<String> = text
            .lines()
            .filter_map(|line| line.strip_prefix("def ")?.split('(').next())
            .map(str::to_string)
            .collect();
        let mut sources = SourceMap::new();
        let file = sources.add(file_name.clone(), text);
        // Helpers and `main` are no kernels and do not stage.
        let staged: Vec<_> = defined
            .iter()
            .filter_map(|name| {
                let staged = tilewright_frontend::stage(&sources, file, Some(name), &[]).ok()?;
                Some((name, staged.func))
            })
            .collect();
        assert!(!staged.is_empty(), "{file_name} has no kernel");
        let only = staged.len() == 1;
        for (name, func) in staged {
            let title = if only {
                file_name.clone()
            } else {
                format!("{file_name}:{name}")
            };
            found.push((title, func));
        }
    }
    found
}

criterion_group! {
    name = benches;
    config = Criterion::default()
        .sample_size(20)
        .warm_up_time(Duration::from_millis(100))
        .measurement_time(Duration::from_millis(500));
    targets = legalize_examples
}
criterion_main!(benches);
