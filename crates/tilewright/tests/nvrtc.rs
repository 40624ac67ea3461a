//! Every example compiles for every NVIDIA target with the real compiler, and keeps its registers:
//! nothing spills and no register array is in memory. No GPU is needed, NVRTC is.

mod corpus;

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::ir::Target;
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{CompileOptions, Nvrtc};

fn main() {
    let args = Arguments::from_args();
    let whole = |name: &str, target| compiles(name, &[], target);
    let trials = corpus::trials(&[Target::Sm80, Target::Sm90a], whole);
    let mut trials: Vec<Trial> = trials.collect();
    // Relative to the examples.
    const FOUND: &str = "../crates/tilewright/tests/found/products_of_blocks_of_their_own.py";
    trials.push(Trial::test("registers that live in blocks", || {
        compiles(FOUND, &[], Target::Sm90a)
    }));
    for file in LANGUAGE {
        for target in [Target::Sm80, Target::Sm90a] {
            let name = format!("../crates/tilewright/tests/language/{file}.py");
            let test = move || compiles(&name, &[], target);
            trials.push(Trial::test(format!("{target} {file}"), test));
        }
    }
    trials.extend(LARGE.iter().map(|(name, settings)| {
        let test = || compiles(name, settings, Target::Sm90a);
        Trial::test(format!("sm_90a {name}, large tiles"), test)
    }));
    libtest_mimic::run(&args, trials).exit();
}

/// Kernels whose source has what no example's has.
const LANGUAGE: [&str; 3] = [
    "four_bits_stored",
    "sparse_product",
    "sparse_product_of_halves",
];

/// Tiles that take all registers that warp groups with roles can share.
type Settings = &'static [(&'static str, &'static str)];
const LARGE: [(&str, Settings); 4] = [
    (
        "gemm.py",
        &[
            ("block_N", "256"),
            ("block_K", "64"),
            ("threads", "256"),
            ("trans_B", "True"),
        ],
    ),
    (
        "fp8_gemm_blockwise.py",
        &[
            ("M", "4096"),
            ("N", "4096"),
            ("K", "4096"),
            ("block_M", "256"),
            ("num_stages", "3"),
        ],
    ),
    (
        "grouped_gemm_fp8.py",
        &[("K", "4096"), ("block_M", "256"), ("num_stages", "3")],
    ),
    (
        "moe_gemm.py",
        &[("K", "4096"), ("block_M", "256"), ("num_stages", "3")],
    ),
];

fn compiles(name: &str, settings: &[(&str, &str)], target: Target) -> Result<(), Failed> {
    let (_, source) = corpus::generated(name, settings, target)?;
    let nvrtc = Nvrtc::find(&Env::process())
        .map_err(|missing| format!("this test needs NVRTC: run scripts/setup-nvrtc\n{missing}"))?;
    let cubin = nvrtc
        .compile(&source.text, target.name(), &CompileOptions::default())
        .map_err(|e| e.to_string())?;
    let warnings = cubin.warnings();
    if !warnings.is_empty() {
        return Err(format!("the compiler warns: {warnings:?}").into());
    }
    for kernel in cubin.kernels() {
        let spills = kernel.spills.map_or(1, |s| s.stores + s.loads);
        if spills > 0 || kernel.stack > 0 {
            return Err(format!(
                "{}: {} bytes of stack, {:?}, {} registers",
                kernel.name, kernel.stack, kernel.spills, kernel.registers
            )
            .into());
        }
    }
    Ok(())
}
