//! Bulk loads: a producer's boxes and the products of warp groups that read them.

use tilewright_ir::Target;
use tilewright_sim::simt::{FindingKind, Interleaving, Landing, SimtOptions, When};
use tilewright_sim::{Fill, InputSpec, Number, RunOptions, make_inputs, run};

use crate::bulk_mutants::{HARMLESS, MUTANTS, plant};
use crate::bulk_rows_mutants as rows;
use crate::common::{Module, Outcome};
use crate::pair_mutants::{PAIR_HARMLESS, PAIR_MUTANTS};

const GEMM: &str = include_str!("bulk_gemm.tw");

const PAIRS: &str = include_str!("bulk_pairs.tw");

fn spec(m: i64, k: i64) -> InputSpec {
    let mut spec = InputSpec::default();
    for (name, value) in [("m", m), ("k", k)] {
        spec.values
            .insert(name.to_string(), Number::Int(value.into()));
    }
    for (name, modulo) in [("A", 7), ("B", 5)] {
        spec.fills.insert(name.to_string(), Fill::Iota(modulo));
    }
    spec
}

fn expected(module: &Module, spec: &InputSpec) -> Vec<f64> {
    let mut args = make_inputs(&module.funcs[1], spec).expect("inputs can be made");
    if let Err(e) = run(&module.funcs[1], &mut args, &RunOptions::default()) {
        panic!("{e}");
    }
    args.tensor("C").expect("an output").to_f64()
}

/// Rows and columns that are no multiples of the boxes, less than one box, no iteration at all.
#[test]
fn every_size_equals_a_plain_product() {
    let modules = [("bulk_gemm.tw", GEMM), ("bulk_pairs.tw", PAIRS)];
    for module in modules.map(|(name, text)| Module::parse(name, text)) {
        every_size_of(&module);
    }
}

fn every_size_of(module: &Module) {
    for (m, k) in [
        (128, 0),
        (128, 64),
        (100, 128),
        (1, 20),
        (130, 90),
        (128, 448),
        (77, 401),
    ] {
        let spec = spec(m, k);
        let expected = expected(module, &spec);
        for opts in some_ways() {
            let outcome = module.simulate(Target::Sm90a, &spec, &opts);
            outcome.assert_clean();
            assert_eq!(outcome.values("C"), expected, "{m} {k} {opts:?}");
        }
    }
}

/// Early and late, whole runs of warps and single statements, over some seeds.
fn some_ways() -> Ways {
    let mut list = Vec::new();
    for dma in [When::Early, When::Late] {
        for (seed, interleaving) in [
            (0, Interleaving::UntilBlocked),
            (1, Interleaving::EveryStatement),
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
    }
    list
}

type Ways = Vec<SimtOptions<'static>>;

fn simulate(name: &str, text: &str, k: i64, ways: Ways) -> Vec<(SimtOptions<'static>, Outcome)> {
    let module = Module::parse(name, text);
    let run = |opts: SimtOptions<'static>| {
        let outcome = module.simulate(Target::Sm90a, &spec(128, k), &opts);
        (opts, outcome)
    };
    ways.into_iter().map(run).collect()
}

/// Early and late, a run of seven iterations finds each fault.
#[test]
fn every_planted_fault_is_found() {
    assert!(MUTANTS.len() >= 40);
    let mut missed = Vec::new();
    let single = MUTANTS.iter().map(|mutant| (GEMM, mutant));
    let paired = PAIR_MUTANTS.iter().map(|mutant| (PAIRS, mutant));
    for (text, mutant) in single.chain(paired) {
        let ways = [0, 3].map(|way| some_ways().swap_remove(way));
        for (opts, outcome) in simulate(mutant.0, &plant(text, mutant), 448, ways.into()) {
            if outcome.report.is_clean() {
                missed.push(format!("{}: {opts:?}", mutant.0));
            }
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn what_may_be_done_otherwise_is_clean() {
    let single = HARMLESS.iter().map(|mutant| (GEMM, mutant));
    let paired = PAIR_HARMLESS.iter().map(|mutant| (PAIRS, mutant));
    for (text, mutant) in single.chain(paired) {
        for (_, outcome) in simulate(mutant.0, &plant(text, mutant), 448, some_ways()) {
            outcome.assert_clean();
        }
    }
}

/// Who ends without waiting for a load is told so, wherever the load has come to.
#[test]
fn the_kernel_waits_for_its_loads() {
    let text = "func @f level=device {
  param A: bfloat16[64, 64]
  output C: float32[1]
  kernel grid(bx: 1) threads(tx: 128, ty: 1, tz: 1) {
    alloc full: barrier uint64[1] arrivals=[1]
    alloc S: shared bfloat16[64, 64] layout=panels(128)
    if tx == 0 {
      mbarrier_expect_tx full[0] bytes=8192 arrive
      tma_load A[0 +: 64, 0 +: 64] at [0, 0] -> S[0 +: 64, 0 +: 64] at [0, 0] inst=\"tma.64x64\" width=1 counter=mbarrier arrives=full[0]
      C[0] = 0.0
    }
  }
}
";
    for (_, outcome) in simulate("no wait", text, 0, some_ways()) {
        let findings = &outcome.report.findings;
        assert_eq!(findings.len(), 1, "{findings:?}");
        assert_eq!(findings[0].kind, FindingKind::NotWaitedFor);
    }
}

/// Warps that have their own rows stored.
const ROWS: &str = include_str!("bulk_rows.tw");

#[test]
fn every_fault_in_stores_of_rows_is_found() {
    let mut missed = Vec::new();
    for mutant in rows::MUTANTS {
        let module = Module::parse(mutant.0, &plant(ROWS, mutant));
        let found = some_ways().into_iter().any(|opts| {
            let outcome = module.simulate(Target::Sm90a, &InputSpec::default(), &opts);
            !outcome.report.is_clean()
        });
        if !found {
            missed.push(mutant.0);
        }
    }
    assert!(missed.is_empty(), "{}", missed.join("\n"));
}

#[test]
fn stores_of_rows_may_be_waited_for_otherwise() {
    for mutant in rows::HARMLESS {
        let module = Module::parse(mutant.0, &plant(ROWS, mutant));
        for opts in some_ways() {
            let outcome = module.simulate(Target::Sm90a, &InputSpec::default(), &opts);
            outcome.assert_clean();
        }
    }
}
