//! The published orders in the simulator: what the hazard checker proves computes the right
//! product in every mode, and what it refuses goes wrong in one.

use std::fs;
use std::path::Path;

use tilewright::ir::{DType, Func, Scalar, SourceMap, Target, text, verify};
use tilewright::schedule::hazard;
use tilewright::sim::simt::{self, FindingKind, Landing, SimtOptions, SimtReport, When};
use tilewright::sim::{Arg, Args, HostTensor};

const N: usize = 256;

fn order(name: &str) -> Func {
    let path = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("../schedule/tests/orders")
        .join(name);
    let source = fs::read_to_string(path).expect("the order exists");
    let mut sources = SourceMap::new();
    let file = sources.add(name, source.as_str());
    let func = text::parse(&source, file).expect("the order is IR");
    verify::verify(&func).expect("the order is valid");
    func
}

/// Small integers, which every format here holds and multiplies exactly.
fn values(seed: u64, k: usize) -> Vec<f64> {
    let mut state = seed;
    (0..N * k)
        .map(|_| {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            ((state >> 33) % 5) as f64 - 2.0
        })
        .collect()
}

/// Runs an order on `A · Bᵀ` of integers and says what was found and whether it is right.
fn multiply(
    func: &Func,
    dtype: Scalar,
    k: usize,
    landing: Landing,
    seed: u64,
) -> (SimtReport, bool) {
    let (a, b) = (values(1, k), values(2, k));
    let mut args = Args::new();
    for (name, list) in [("A", &a), ("B", &b)] {
        let tensor = HostTensor::from_f64(DType::scalar(dtype), &[N, k], list);
        args.insert(name, Arg::Tensor(tensor.expect("the sizes agree")));
    }
    let options = SimtOptions {
        seed,
        landing,
        ..SimtOptions::default()
    };
    let report = simt::run(func, Target::Gfx950, &mut args, &options).expect("it runs");
    let c = args.tensor("C").expect("an output").to_f64();
    let right = (0..N * N).step_by(7).all(|at| {
        let (i, j) = (at / N, at % N);
        let sum: f64 = (0..k).map(|x| a[i * k + x] * b[j * k + x]).sum();
        c[at] == sum
    });
    (report, right)
}

/// Proved, clean and right in all modes.
fn computes(name: &str, dtype: Scalar, ks: &[usize]) {
    let func = order(name);
    assert!(hazard::check(&func, Target::Gfx950).is_clean());
    for &k in ks {
        for (seed, landing) in Landing::ALL.into_iter().enumerate() {
            let (report, right) = multiply(&func, dtype, k, landing, seed as u64);
            assert!(report.is_clean(), "{landing:?}: {:?}", report.findings);
            assert!(right, "{landing:?}: a wrong product");
        }
    }
}

#[test]
fn the_repaired_bf16_order_multiplies() {
    computes("bf16_8wave_repaired.tw", Scalar::BF16, &[256, 384]);
}

#[test]
fn the_late_repair_of_the_bf16_order_multiplies() {
    computes("bf16_8wave_repaired_late.tw", Scalar::BF16, &[256]);
}

#[test]
fn the_repaired_four_wave_order_multiplies() {
    computes("fp8_4wave_repaired.tw", Scalar::F8E4M3FN, &[384]);
}

/// What the checker refuses, the simulator reports where copies or reads land late; where they
/// land early it may be right.
fn goes_wrong(name: &str, dtype: Scalar, k: usize, landing: Landing) {
    let func = order(name);
    assert!(!hazard::check(&func, Target::Gfx950).hazards.is_empty());
    let (report, _) = multiply(&func, dtype, k, landing, 0);
    let kinds: Vec<FindingKind> = report.findings.iter().map(|f| f.kind).collect();
    assert!(
        kinds.iter().any(|k| matches!(
            k,
            FindingKind::NotWaitedFor | FindingKind::ReadWriteRace | FindingKind::WriteWriteRace
        )),
        "{name}: {:?}",
        report.findings
    );
}

const LATE_COPIES: Landing = Landing {
    dma: When::Late,
    lds: When::Early,
};
const LATE_READS: Landing = Landing {
    dma: When::Early,
    lds: When::Late,
};

#[test]
fn the_published_bf16_order_goes_wrong_when_copies_land_late() {
    goes_wrong("bf16_8wave.tw", Scalar::BF16, 256, LATE_COPIES);
    let (_, right) = multiply(&order("bf16_8wave.tw"), Scalar::BF16, 256, LATE_COPIES, 0);
    assert!(!right, "the early read of B10 must show in the product");
}

#[test]
fn the_orders_with_late_drains_go_wrong_when_reads_land_late() {
    goes_wrong("bf16_8wave_no_lgkmcnt8.tw", Scalar::BF16, 256, LATE_READS);
    goes_wrong("fp8_8wave.tw", Scalar::F8E4M3FN, 512, LATE_READS);
    goes_wrong("fp8_4wave.tw", Scalar::F8E4M3FN, 512, LATE_READS);
}
