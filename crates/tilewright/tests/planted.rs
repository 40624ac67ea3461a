//! Every wait and every barrier of compiled kernels, loosened by one or left out, one at a time: how
//! many of these faults the audit finds. No GPU is needed, clang is.
//!
//! A wait that nothing needs is no fault when it is gone: [`needless`] proves of those missed here
//! that nothing depends on them, on any way through the code, but for two that the emulator finds.
//! What is found is written down: one fault fewer is seen.

#[expect(dead_code, reason = "the list of examples is for other tests")]
mod corpus;
#[path = "machine_faults/needless.rs"]
mod needless;

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::codegen::Source;
use tilewright::ir::{Func, Target};
use tilewright::jit::audit::{Budget, audit};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{AmdClang, HipOptions};

/// Faults found, those proved to be none, of so many.
type Found = (usize, usize, usize);

struct Kernel {
    file: &'static str,
    settings: &'static [(&'static str, &'static str)],
    target: Target,
    barriers: Found,
    vmcnt: Found,
    lgkmcnt: Found,
}

const NT: &[(&str, &str)] = &[("trans_B", "True"), ("dtype", "bfloat16")];

/// Halves of a block's waves, one barrier apart.
const HALVES: &[(&str, &str)] = &[
    ("trans_B", "True"),
    ("dtype", "bfloat16"),
    ("K", "256"),
    ("block_M", "256"),
    ("block_K", "64"),
    ("num_stages", "2"),
    ("threads", "512"),
];

/// A loop that the compiler spills in.
const SPILLS: &[(&str, &str)] = &[
    ("dim", "128"),
    ("seq_len", "1024"),
    ("block_M", "256"),
    ("num_stages", "2"),
];

const KERNELS: &[Kernel] = &[
    Kernel {
        file: "gemm.py",
        settings: HALVES,
        target: Target::Gfx950,
        // One that only a half comes to may be left out by the other.
        barriers: (6, 1, 8),
        vmcnt: (4, 0, 4),
        lgkmcnt: (10, 0, 10),
    },
    Kernel {
        file: "gemm.py",
        settings: NT,
        target: Target::Gfx950,
        barriers: (6, 0, 6),
        vmcnt: (12, 0, 12),
        lgkmcnt: (20, 0, 20),
    },
    Kernel {
        file: "gemm.py",
        settings: NT,
        target: Target::Gfx942,
        barriers: (3, 0, 3),
        vmcnt: (12, 0, 12),
        lgkmcnt: (16, 0, 16),
    },
    Kernel {
        file: "attention_fwd.py",
        settings: &[],
        target: Target::Gfx950,
        barriers: (2, 0, 2),
        vmcnt: (12, 0, 12),
        lgkmcnt: (12, 0, 12),
    },
    Kernel {
        file: "attention_fwd.py",
        settings: SPILLS,
        target: Target::Gfx950,
        barriers: (2, 0, 2),
        // Right before the other two the compiler has waited for a value that it spilled, and with it for
        // the copies.
        vmcnt: (242, 0, 244),
        lgkmcnt: (28, 0, 28),
    },
    Kernel {
        file: "cumsum.py",
        settings: &[],
        target: Target::Gfx950,
        barriers: (3, 0, 3),
        vmcnt: (8, 0, 8),
        lgkmcnt: (64, 6, 70),
    },
    Kernel {
        file: "rms_norm.py",
        settings: &[],
        target: Target::Gfx942,
        barriers: (1, 0, 1),
        vmcnt: (8, 0, 8),
        lgkmcnt: (28, 0, 28),
    },
    Kernel {
        file: "reduce.py",
        settings: &[],
        target: Target::Gfx950,
        barriers: (0, 0, 0),
        vmcnt: (22, 0, 22),
        lgkmcnt: (4, 0, 4),
    },
];

fn main() {
    let args = Arguments::from_args();
    let trials = KERNELS.iter().map(|kernel| {
        let title = format!("{} {}", kernel.target, kernel.file);
        Trial::test(title, || counted(kernel))
    });
    let by_number = Trial::test("registers by number", registers_by_number);
    let spilled = Trial::test(
        "products of a loop that spills",
        products_of_a_loop_that_spills,
    );
    libtest_mimic::run(&args, trials.chain([by_number, spilled]).collect()).exit();
}

/// A matrix instruction that a loop lacks, though the compiler keeps other values in private memory.
fn products_of_a_loop_that_spills() -> Result<(), Failed> {
    let target = Target::Gfx950;
    let (func, source) = corpus::generated("attention_fwd.py", SPILLS, target)?;
    let asm = assembled(&source, target)?;
    let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
    if !asm.contains("scratch_load") {
        return Err("nothing is spilled".into());
    }
    let product = asm.find("\tv_mfma_").ok_or("no products")?;
    let (before, behind) = asm.split_at(product);
    let (_, behind) = behind.split_once('\n').ok_or("no line")?;
    let found = wrong(
        &func,
        target,
        &names,
        &format!("{before}\ts_nop 0\n{behind}"),
    )?;
    match found {
        Some(finding) if finding.contains("and should have") => Ok(()),
        other => Err(format!("{other:?}").into()),
    }
}

/// Sums that have registers by number, of which the compiler knows nothing: code of its own that writes
/// one, and elements that are read too early.
fn registers_by_number() -> Result<(), Failed> {
    let settings: Vec<_> = HALVES
        .iter()
        .map(|(name, value)| (*name, if *name == "threads" { "256" } else { *value }))
        .chain([("block_N", "256")])
        .collect();
    let target = Target::Gfx950;
    let (func, source) = corpus::generated("gemm.py", &settings, target)?;
    let asm = assembled(&source, target)?;
    let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
    let wrong = |asm: &str| wrong(&func, target, &names, asm);
    if let Some(finding) = wrong(&asm)? {
        return Err(format!("as it stands: {finding}").into());
    }
    let (loops, rest) = asm
        .split_once("v_mfma_f32_16x16x32_bf16")
        .ok_or("no products")?;
    for taken in [
        "v_accvgpr_write_b32 a7, v0",
        "v_accvgpr_mov_b32 a255, a3",
        "ds_read_b128 a[8:11], v1",
        "global_load_dword a0, v0, s[0:1]",
    ] {
        let faulty = format!(
            "{loops}s_nop 0\n\t;;#ASMEND\n\t{taken}\n\t;;#ASMSTART\n\tv_mfma_f32_16x16x32_bf16{rest}"
        );
        let found = wrong(&faulty)?.ok_or_else(|| format!("`{taken}` is not found"))?;
        if !found.contains("is a register of the kernel's sums") {
            return Err(format!("`{taken}`: {found}").into());
        }
    }
    // An element that is read right behind its product.
    let (before, last) = asm.rsplit_once("v_mfma_").ok_or("no products")?;
    let (product, behind) = last.split_once('\n').ok_or("no line")?;
    let sum = product
        .rsplit("a[")
        .next()
        .and_then(|r| r.split(':').next());
    let sum = sum.ok_or("no sum")?;
    for (states, found) in [(2, true), (15, false)] {
        let read = format!("s_nop {states}\n\tv_accvgpr_read_b32 v0, a[{sum}]");
        let faulty = format!("{before}v_mfma_{product}\n\t{read}\n{behind}");
        if wrong(&faulty)?.is_some() != found {
            return Err(format!("{states} wait states behind a product: {found}").into());
        }
    }
    Ok(())
}

fn assembled(source: &Source, target: Target) -> Result<String, Failed> {
    let clang = AmdClang::find(&Env::process())
        .map_err(|missing| format!("this test needs clang: run scripts/setup-clang\n{missing}"))?;
    let assembly = clang.assembly(&source.text, target.name(), &HipOptions::default());
    assembly.map_err(|e| e.to_string().into())
}

fn counted(kernel: &Kernel) -> Result<(), Failed> {
    let target = kernel.target;
    let (func, source) = corpus::generated(kernel.file, kernel.settings, target)?;
    let asm = assembled(&source, target)?;
    let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
    let wrong = |asm: &str| wrong(&func, target, &names, asm);
    if let Some(finding) = wrong(&asm)? {
        return Err(format!("as it stands: {finding}").into());
    }
    let mut missed = String::new();
    let mut count = |what: &str| -> Result<Found, Failed> {
        let (mut found, mut none, mut all) = (0, 0, 0);
        for (line, faulty) in faults(&asm, what) {
            all += 1;
            match wrong(&faulty)? {
                Some(_) => found += 1,
                None if needless::is_needless(&asm, &faulty, line) => none += 1,
                None => missed += &format!("line {line}: {what} in {}\n", asm_line(&asm, line)),
            }
        }
        Ok((found, none, all))
    };
    let got = (count("s_barrier")?, count("vmcnt")?, count("lgkmcnt")?);
    println!("{} {}: {got:?}\n{missed}", kernel.target, kernel.file);
    let want = (kernel.barriers, kernel.vmcnt, kernel.lgkmcnt);
    match got == want {
        true => Ok(()),
        false => Err(format!("barriers, vmcnt, lgkmcnt: {got:?} instead of {want:?}").into()),
    }
}

fn asm_line(asm: &str, line: usize) -> &str {
    asm.lines().nth(line - 1).unwrap_or("").trim()
}

/// What the audit says of the code, but for what only costs time.
fn wrong(
    func: &Func,
    target: Target,
    names: &[String],
    asm: &str,
) -> Result<Option<String>, Failed> {
    let audits = audit(func, target, names, asm, Budget::default())?;
    let mut findings = audits.iter().flat_map(|a| &a.report.findings);
    let wrong = findings.find(|f| !f.kind.is_cost());
    Ok(wrong.map(|f| f.to_string()))
}

/// The code with one fault each: a barrier left out, a counter's wait loosened by one and left out.
fn faults(asm: &str, what: &str) -> Vec<(usize, String)> {
    let lines: Vec<&str> = asm.lines().collect();
    let mut list = Vec::new();
    for (at, line) in lines.iter().enumerate() {
        let code = line.split(';').next().unwrap_or("");
        let mut plant = |instead: String| {
            let mut changed = lines.clone();
            changed[at] = &instead;
            list.push((at + 1, changed.join("\n")));
        };
        if what == "s_barrier" && code.trim() == what {
            plant("\ts_nop 0".to_owned());
        }
        if what == "s_barrier" || !code.trim_start().starts_with("s_waitcnt") {
            continue;
        }
        let Some(from) = code.find(&format!("{what}(")) else {
            continue;
        };
        let number = from + what.len() + 1;
        let Some(end) = code[number..].find(')').map(|end| number + end) else {
            continue;
        };
        let Ok(count) = code[number..end].parse::<u32>() else {
            continue;
        };
        plant(format!("{}{}{}", &code[..number], count + 1, &code[end..]));
        let rest = format!("{}{}", &code[..from], &code[end + 1..]);
        plant(match rest.trim() {
            "s_waitcnt" => "\ts_nop 0".to_owned(),
            _ => rest,
        });
    }
    list
}
