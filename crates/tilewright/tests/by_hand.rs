//! Kernels whose copies, products and barriers are written by hand (`by_hand/*.py`): bulk copies,
//! products of warp groups that the user waits for, arrival barriers.
//!
//! The hazard checker proves each, the simulator gets what the reference evaluator gets wherever
//! copies land, and the compiler keeps products in their registers. Faults that are planted in them
//! ([`faults`]), or in what they are compiled to ([`changes`]), are found by the checker, with a place
//! in the file, and by the simulator.

#[path = "by_hand/changes.rs"]
mod changes;
#[path = "by_hand/faults.rs"]
mod faults;

use std::collections::HashSet;
use std::fs;
use std::path::Path;

use changes::changes;
use faults::{FAULTS, HARMLESS, HARMLESS_CHANGES};
use tilewright::codegen;
use tilewright::frontend;
use tilewright::ir::{Diagnostic, Func, SourceMap, Target};
use tilewright::passes::driver::{self, Options};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{CompileOptions, Nvrtc};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, Interleaving, Landing, SimtOptions, SimtReport, When};
use tilewright::sim::{self, Args, Fill, InputSpec, RunOptions};

const KERNELS: &[&str] = &[
    "block",
    "cluster_halves",
    "cluster_sync",
    "copy_cluster",
    "elected_arrival",
    "gemm_waits_itself",
    "groups_store",
    "multicast_products",
    "multicast_some",
    "products",
    "products_in_flight",
    "store",
    "store_and_load",
    "tma_descriptor_gemm",
    "warp_specialized_tma_gemm",
];

/// Distinct faults that have to be found.
const FOUND: usize = 200;

/// A kernel as it is written, and as device IR.
struct Kernel {
    sources: SourceMap,
    func: Func,
    lowered: Func,
}

fn text_of(name: &str) -> String {
    let crate_folder = Path::new(env!("CARGO_MANIFEST_DIR"));
    let folders = ["tests/by_hand", "../../examples"].map(|f| crate_folder.join(f));
    let mut texts = folders.map(|f| fs::read_to_string(f.join(format!("{name}.py"))));
    let text = texts.iter_mut().find_map(|text| text.as_mut().ok());
    std::mem::take(text.unwrap_or_else(|| panic!("no {name}")))
}

/// `Err` with what the compiler says where there is no kernel.
fn compiled(
    name: &str,
    text: &str,
    target: Target,
) -> Result<Kernel, (SourceMap, Vec<Diagnostic>)> {
    let mut sources = SourceMap::new();
    let file = sources.add(format!("{name}.py"), text);
    let func = match frontend::stage(&sources, file, None, &[]) {
        Ok(staged) => staged.func,
        Err(said) => return Err((sources, said)),
    };
    let mut lowered = func.clone();
    match driver::run(&mut lowered, target, &Options::default()) {
        Ok(_) => Ok(Kernel {
            sources,
            func,
            lowered,
        }),
        Err(failed) => Err((sources, failed.into_diagnostics().iter().cloned().collect())),
    }
}

fn kernel(name: &str, text: &str) -> Kernel {
    let kernel = compiled(name, text, Target::Sm90a);
    kernel.unwrap_or_else(|(sources, said)| panic!("{name}: {}", render(said.iter(), &sources)))
}

fn render<'a>(diags: impl Iterator<Item = &'a Diagnostic>, sources: &SourceMap) -> String {
    let parts: Vec<String> = diags.map(|d| d.render(sources, false)).collect();
    parts.join("\n\n")
}

/// Copies land early and late, warps go far or take turns.
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
            step_limit: 1_000_000,
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
        spec.fills.insert(name, Fill::Iota(11));
    }
    sim::make_inputs(func, &spec).unwrap_or_else(|e| panic!("{e}"))
}

fn simulated(kernel: &Kernel, options: &SimtOptions<'_>) -> (Args, Option<SimtReport>) {
    let mut args = inputs(&kernel.func);
    // A run that cannot go on is a finding.
    let report = simt::run(&kernel.lowered, Target::Sm90a, &mut args, options).ok();
    (args, report)
}

#[test]
fn every_kernel_is_proved_and_computes_the_reference() {
    for name in KERNELS {
        right(name, &text_of(name));
    }
    for fault in HARMLESS {
        right(fault.name, &fault.planted(&text_of(fault.kernel)));
    }
}

fn right(name: &str, text: &str) {
    let kernel = kernel(name, text);
    let checked = hazard::check(&kernel.lowered, Target::Sm90a);
    let found = render(checked.diagnostics().iter(), &kernel.sources);
    assert!(checked.is_clean(), "{name}: {found}\n{}", kernel.lowered);
    let mut expected = inputs(&kernel.func);
    sim::run(&kernel.func, &mut expected, &RunOptions::default()).unwrap_or_else(|e| panic!("{e}"));
    for options in ways() {
        let (args, report) = simulated(&kernel, &options);
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
fn the_compiler_keeps_products_in_registers() {
    let nvrtc = Nvrtc::find(&Env::process()).unwrap_or_else(|missing| {
        panic!("this test needs NVRTC: run scripts/setup-nvrtc\n{missing}")
    });
    for name in KERNELS {
        let kernel = kernel(name, &text_of(name));
        let options = codegen::Options::default();
        let source = codegen::generate(&kernel.lowered, Target::Sm90a, options);
        let source = source.unwrap_or_else(|d| panic!("{name}: {}", d.message));
        let cubin = nvrtc.compile(&source.text, "sm_90a", &CompileOptions::default());
        let cubin = cubin.unwrap_or_else(|e| panic!("{name}: {e}\n{}", source.text));
        assert!(
            cubin.warnings().is_empty(),
            "{name}: {:?}",
            cubin.warnings()
        );
        for kernel in cubin.kernels() {
            let spills = kernel.spills.map_or(1, |s| s.stores + s.loads);
            assert_eq!((spills, kernel.stack), (0, 0), "{name}: {kernel:?}");
        }
    }
}

/// Where there is no copy engine, that is said at the first use of it.
#[test]
fn other_targets_refuse_them() {
    for target in Target::ALL {
        if target.machine().bulk_copies {
            continue;
        }
        for name in KERNELS {
            let said = compiled(name, &text_of(name), target).err();
            let (_, said) = said.unwrap_or_else(|| panic!("{target} takes {name}"));
            let refused = |d: &Diagnostic| d.code.0 == "not-on-target" && !d.primary.span.is_none();
            assert!(said.iter().any(refused), "{target} {name}: {said:?}");
        }
    }
}

/// Faults of the source, and of what it is compiled to.
#[test]
fn every_planted_fault_is_found() {
    let (mut seen, mut missed) = (HashSet::new(), Vec::new());
    for fault in FAULTS {
        let text = fault.planted(&text_of(fault.kernel));
        let planted = kernel(fault.name, &text);
        seen.insert(planted.lowered.to_string());
        missed.extend(survives(fault.name, &planted));
    }
    for name in KERNELS {
        let kernel = kernel(name, &text_of(name));
        for change in changes(&kernel.lowered) {
            if HARMLESS_CHANGES.contains(&(name, change.name.as_str()))
                || !seen.insert(change.func.to_string())
            {
                continue;
            }
            let changed = Kernel {
                lowered: change.func,
                sources: kernel.sources.clone(),
                func: kernel.func.clone(),
            };
            let title = format!("{name}: {}", change.name);
            missed.extend(survives(&title, &changed));
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
    println!("{} distinct faults are found", seen.len());
    assert!(seen.len() >= FOUND, "{} faults", seen.len());
}

/// Who does not find a fault.
fn survives(name: &str, kernel: &Kernel) -> Vec<String> {
    let mut missed = Vec::new();
    let checked = hazard::check(&kernel.lowered, Target::Sm90a);
    let hazards = checked.diagnostics();
    let mut errors = hazards.iter().filter(|d| d.code.0 != "hazard-unproved");
    if !errors.any(|d| !d.primary.span.is_none()) {
        let said = render(hazards.iter(), &kernel.sources);
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
