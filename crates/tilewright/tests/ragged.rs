//! Products of ragged sizes, whose copies straight to LDS are guarded: what clang makes of each for
//! the AMD targets keeps every wait state, waits for every register, and drains LDS at barriers.
//!
//! A guard makes the compiler keep what all lanes share of an address in vector registers, and
//! read it back (`v_readfirstlane`) right before a copy, which is assembly and must keep the wait
//! states behind such a read by itself. A sample runs with the others; all sizes with every mix of
//! transposed operands take minutes: `cargo test --test ragged -- --ignored`. No GPU is needed,
//! clang is.

#[expect(dead_code, reason = "the list of examples is for other tests")]
mod corpus;

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::ir::Target;
use tilewright::jit::audit::{Budget, audit};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{AmdClang, HipOptions};

/// M, N and K: below a tile, around a tile and several of them, odd, even, and multiples of what
/// a lane copies at a time in some of them.
const SIZES: [[u32; 3]; 24] = [
    [100, 200, 70],
    [1, 1, 1],
    [7, 7, 7],
    [33, 33, 33],
    [129, 129, 129],
    [100, 100, 100],
    [200, 200, 200],
    [1, 128, 128],
    [128, 1, 128],
    [128, 128, 1],
    [128, 128, 7],
    [128, 128, 33],
    [33, 200, 64],
    [200, 33, 64],
    [129, 200, 40],
    [7, 129, 200],
    [129, 7, 200],
    [100, 1, 33],
    [1, 100, 72],
    [256, 200, 33],
    [200, 256, 33],
    [136, 264, 72],
    [264, 136, 104],
    [1000, 1000, 1000],
];

/// How many of the sizes are tried with the other tests, each with one mix of transposed operands.
const SAMPLE: usize = 8;

const MIXES: [[&str; 2]; 4] = [
    ["False", "False"],
    ["False", "True"],
    ["True", "False"],
    ["True", "True"],
];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for target in [Target::Gfx942, Target::Gfx950] {
        for (number, sizes) in SIZES.into_iter().enumerate() {
            for (turn, mix) in MIXES.into_iter().enumerate() {
                let [m, n, k] = sizes;
                let [a, b] = mix.map(|t| if t == "True" { "T" } else { "N" });
                let title = format!("{target} {m}x{n}x{k} {a}{b}");
                let sampled = number < SAMPLE && turn == number % MIXES.len();
                let trial = Trial::test(title, move || product(sizes, mix, target));
                trials.push(trial.with_ignored_flag(!sampled));
            }
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

fn product(sizes: [u32; 3], mix: [&str; 2], target: Target) -> Result<(), Failed> {
    let [m, n, k] = sizes.map(|size| size.to_string());
    let settings = [
        ("M", m.as_str()),
        ("N", &n),
        ("K", &k),
        ("trans_A", mix[0]),
        ("trans_B", mix[1]),
    ];
    let (func, source) = corpus::generated("gemm.py", &settings, target)?;
    let clang = AmdClang::find(&Env::process())
        .map_err(|missing| format!("this test needs clang: run scripts/setup-clang\n{missing}"))?;
    let asm = clang
        .assembly(&source.text, target.name(), &HipOptions::default())
        .map_err(|e| e.to_string())?;
    let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
    for audit in audit(&func, target, &names, &asm, Budget::default())? {
        let wrong = audit.report.findings.iter().find(|f| !f.kind.is_cost());
        if let Some(finding) = wrong {
            return Err(finding.to_string().into());
        }
    }
    Ok(())
}
