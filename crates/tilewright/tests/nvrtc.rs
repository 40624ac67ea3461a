//! Every example compiles for every NVIDIA target with the real compiler, and keeps its registers:
//! nothing spills and no register array is in memory. No GPU is needed, NVRTC is.

mod corpus;

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::codegen;
use tilewright::ir::{MmaFamily, SourceMap, Target};
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
    for target in [Target::Sm80, Target::Sm90a] {
        let test = move || instructions(target);
        trials.push(Trial::test(format!("{target} matrix instructions"), test));
    }
    trials.extend(LARGE.iter().map(|(name, settings)| {
        let test = || compiles(name, settings, Target::Sm90a);
        Trial::test(format!("sm_90a {name}, large tiles"), test)
    }));
    libtest_mimic::run(&args, trials).exit();
}

/// Kernels whose source has what no example's has.
const LANGUAGE: [&str; 8] = [
    "four_bits_stored",
    "six_bits_stored",
    "product_of_float64",
    "product_of_float64_of_odd_sizes",
    "product_of_int4",
    "products_of_float64_in_a_chain",
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

/// Each matrix instruction of a warp is one that the target has.
fn instructions(target: Target) -> Result<(), Failed> {
    let (mut allocs, mut body) = (String::new(), String::new());
    let machine = target.machine();
    let all = machine.mma.iter().chain(machine.sparse_mma);
    let all = all.map(|facts| facts.inst);
    for (n, inst) in all.filter(|i| i.family != MmaFamily::Wgmma).enumerate() {
        let held = |rows: u16, columns: u16| u32::from(rows) * u32::from(columns) / 32;
        let (a, b, c) = (
            held(inst.m, inst.left_k()),
            held(inst.k, inst.n),
            held(inst.m, inst.n),
        );
        for (name, scalar, count) in [("a", inst.a, a), ("b", inst.b, b), ("c", inst.acc, c)] {
            allocs += &format!("    alloc {name}{n}: local {scalar}[{count}]\n");
        }
        let mut metadata = String::new();
        if inst.is_sparse() {
            allocs += &format!("    alloc e{n}: local int16[2]\n");
            metadata = format!(", e{n}[0 +: 2] at [0]");
        }
        body += &format!(
            "    mma a{n}[0 +: {a}] at [0], b{n}[0 +: {b}] at [0]{metadata} -> c{n}[0 +: {c}] at [0] \
             inst=\"{inst}\" width=1\n    C[tx] = C[tx] + float32(c{n}[0])\n"
        );
    }
    let text = format!(
        "func @every level=device {{\n  output C: float32[32]\n  kernel grid(bx: 1) threads(tx: 32, \
         ty: 1, tz: 1) {{\n{allocs}{body}  }}\n}}\n"
    );
    let mut sources = SourceMap::new();
    let file = sources.add("every.tw", text);
    let func = tilewright::ir::text::parse(sources.text(file), file)
        .map_err(|d| format!("{d:?}\n{}", sources.text(file)))?;
    let source = codegen::generate(&func, target, codegen::Options::default())
        .map_err(|d| d.message.clone())?;
    nvrtc()?
        .compile(&source.text, target.name(), &CompileOptions::default())
        .map_err(|e| e.to_string())?;
    Ok(())
}

fn nvrtc() -> Result<Nvrtc, Failed> {
    Nvrtc::find(&Env::process()).map_err(|missing| {
        format!("this test needs NVRTC: run scripts/setup-nvrtc\n{missing}").into()
    })
}

fn compiles(name: &str, settings: &[(&str, &str)], target: Target) -> Result<(), Failed> {
    let (_, source) = corpus::generated(name, settings, target)?;
    let cubin = nvrtc()?
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
