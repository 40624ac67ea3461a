//! Results of products that leave shared memory by the copy engine (`stored/*.py`): each warp has its
//! rows stored, and waits for that before it writes the next ones.
//!
//! The hazard checker proves each kernel, the simulator gets what the reference evaluator gets wherever
//! stores land, and both find each wait, fence, group and barrier of a warp that is left out or loosened
//! in what the compiler made.

#[path = "by_hand/changes.rs"]
mod changes;

use std::fs;
use std::path::Path;

use changes::changes;
use tilewright::frontend;
use tilewright::ir::{Diagnostic, Func, Inst, MicroKind, SourceMap, StmtKind, Target, visit};
use tilewright::passes::decisions::BULK_STORES;
use tilewright::passes::driver::{self, Options};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, Interleaving, Landing, SimtOptions, SimtReport, When};
use tilewright::sim::{self, Args, Fill, InputSpec, RunOptions};

/// The kernels, and how many results of each go out by the copy engine.
const KERNELS: &[(&str, usize)] = &[("tiles", 1), (LARGE, 1), ("two_results", 3)];

/// A kernel of so many blocks that it is run once.
const LARGE: &str = "resident";

/// A group that is closed later takes in what none was closed for.
const HARMLESS: (&str, &str) = ("two_results", "left out: commit tma_store");

struct Kernel {
    sources: SourceMap,
    func: Func,
    lowered: Func,
}

fn compiled(name: &str, change: impl Fn(&mut Func)) -> Kernel {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("tests/stored");
    let text = fs::read_to_string(folder.join(format!("{name}.py")));
    let text = text.unwrap_or_else(|e| panic!("{name}: {e}"));
    let mut sources = SourceMap::new();
    let file = sources.add(format!("{name}.py"), &text);
    let mut func = match frontend::stage(&sources, file, None, &[]) {
        Ok(staged) => staged.func,
        Err(said) => panic!("{name}: {}", render(said.iter(), &sources)),
    };
    change(&mut func);
    let mut lowered = func.clone();
    if let Err(failed) = driver::run(&mut lowered, Target::Sm90a, &Options::default()) {
        let said = failed.into_diagnostics();
        panic!("{name}: {}", render(said.iter(), &sources));
    }
    Kernel {
        sources,
        func,
        lowered,
    }
}

fn render<'a>(diags: impl Iterator<Item = &'a Diagnostic>, sources: &SourceMap) -> String {
    let parts: Vec<String> = diags.map(|d| d.render(sources, false)).collect();
    parts.join("\n\n")
}

/// How many micro-ops of a kind there are.
fn count(func: &Func, is: impl Fn(&tilewright::ir::MicroOp) -> bool) -> usize {
    let mut found = 0;
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            found += usize::from(matches!(&stmt.kind, StmtKind::Micro(m) if is(m)));
        });
    }
    found
}

fn bulk_stores(func: &Func) -> usize {
    count(func, |m| m.kind == MicroKind::TmaStore)
}

/// Stores land early and late, warps go far or take turns.
fn ways() -> Vec<SimtOptions<'static>> {
    let mut list = Vec::new();
    for (seed, dma, interleaving) in [
        (0, When::Early, Interleaving::UntilBlocked),
        (1, When::Late, Interleaving::EveryStatement),
        (2, When::Late, Interleaving::UntilBlocked),
    ] {
        list.push(SimtOptions {
            seed,
            interleaving,
            landing: Landing {
                dma,
                ..Landing::default()
            },
            step_limit: 10_000_000,
            threads: 1,
            ..SimtOptions::default()
        });
    }
    list
}

fn inputs(func: &Func) -> Args {
    let mut spec = InputSpec::default();
    for (buffer, _) in func.tensors() {
        let name = func.buffers[buffer].name.clone();
        spec.fills.insert(name, Fill::Iota(5));
    }
    sim::make_inputs(func, &spec).unwrap_or_else(|e| panic!("{e}"))
}

fn simulated(kernel: &Kernel, options: &SimtOptions<'_>) -> (Args, Option<SimtReport>) {
    let mut args = inputs(&kernel.func);
    // A run that cannot go on is a finding.
    let report = simt::run(&kernel.lowered, Target::Sm90a, &mut args, options).ok();
    (args, report)
}

fn right(name: &str, kernel: &Kernel) {
    let checked = hazard::check(&kernel.lowered, Target::Sm90a);
    let found = render(checked.diagnostics().iter(), &kernel.sources);
    assert!(checked.is_clean(), "{name}: {found}\n{}", kernel.lowered);
    let mut expected = inputs(&kernel.func);
    sim::run(&kernel.func, &mut expected, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    let runs = if name == LARGE { 1 } else { usize::MAX };
    for options in ways().into_iter().rev().take(runs) {
        let (args, report) = simulated(kernel, &options);
        let report = report.unwrap_or_else(|| panic!("{name} does not run to its end"));
        let found = render(report.diagnostics().iter(), &kernel.sources);
        assert!(report.is_clean(), "{name} {options:?}: {found}");
        for (buffer, _) in kernel.func.tensors() {
            let tensor = &kernel.func.buffers[buffer].name;
            let [a, b] = [&args, &expected].map(|a| a.tensor(tensor).map(|t| t.to_f64()));
            assert!(a == b, "{name} {options:?}: `{tensor}` differs");
        }
    }
}

#[test]
fn every_kernel_is_proved_and_computes_the_reference() {
    for &(name, stores) in KERNELS {
        let kernel = compiled(name, |_| {});
        assert_eq!(bulk_stores(&kernel.lowered), stores, "{}", kernel.lowered);
        let matrices = count(&kernel.lowered, |m| matches!(m.inst, Inst::StMatrix { .. }));
        assert!(matrices > 0, "{}", kernel.lowered);
        right(name, &kernel);
    }
}

#[test]
fn they_go_out_by_plain_stores_where_that_is_asked_for() {
    for (name, _) in KERNELS.iter().filter(|(name, _)| *name != LARGE) {
        let kernel = compiled(name, |func| BULK_STORES.ask(func, false));
        assert_eq!(bulk_stores(&kernel.lowered), 0, "{}", kernel.lowered);
        right(name, &kernel);
    }
}

/// What stores of rows need: waits, groups, fences for the engine and barriers of warps.
#[test]
fn what_is_left_out_is_found() {
    let of_stores = ["tma_store", "fence async_proxy", "sync_warp"];
    let mut tried = 0;
    let mut missed = Vec::new();
    for (name, _) in KERNELS {
        let kernel = compiled(name, |_| {});
        for change in changes(&kernel.lowered) {
            let of_stores = of_stores.iter().any(|what| change.name.contains(what));
            if !of_stores || (*name, change.name.as_str()) == HARMLESS {
                continue;
            }
            tried += 1;
            let changed = Kernel {
                lowered: change.func,
                sources: kernel.sources.clone(),
                func: kernel.func.clone(),
            };
            missed.extend(survives(&format!("{name}: {}", change.name), &changed));
        }
    }
    println!("{tried} faults");
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    assert!(tried >= 25, "{tried} faults");
}

/// Who does not find a fault.
fn survives(name: &str, kernel: &Kernel) -> Vec<String> {
    let mut missed = Vec::new();
    let checked = hazard::check(&kernel.lowered, Target::Sm90a);
    if checked.hazards.is_empty() {
        let said = render(checked.diagnostics().iter(), &kernel.sources);
        missed.push(format!("{name}: checker {said}"));
    }
    let found = ways().into_iter().any(|options| {
        let options = &SimtOptions {
            sample: Some(1),
            first_only: true,
            ..options
        };
        let (_, report) = simulated(kernel, options);
        report.is_none_or(|report| !report.is_clean())
    });
    if !found {
        missed.push(format!("{name}: simulator"));
    }
    missed
}
