//! Every example compiles for every AMD target with the real compiler and keeps its registers:
//! nothing spills, nothing is in scratch memory, and what the audit can compare is as scheduled.
//! No GPU is needed, clang is.

use std::fs;
use std::path::Path;

use libtest_mimic::{Arguments, Failed, Trial};
use tilewright::codegen;
use tilewright::frontend::{self, SettingValue};
use tilewright::gfx9::audit::{Finding, Kind};
use tilewright::ir::{Diagnostic, SourceMap, Target};
use tilewright::jit::{self, audit::KernelAudit};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{AmdClang, HipOptions};

/// Kernels that hold more values than the 256 registers that all instructions reach, so that some
/// rest in accumulation registers and are moved.
const MOVES: [&str; 3] = ["attention_fwd.py", "attention_gqa.py", "cumsum.py"];

/// The wait for the first tile of a step, by target: the other tile's loads stay under way.
const LOADS: &str = "tw::wait<LOADS, 15>();";

/// Faults for the loop of the gemm example: what stands there, what is put in its place.
const FAULTS: [(&str, &str, &str); 4] = [
    ("looser vmcnt", LOADS, "tw::wait<63, 15>();"),
    ("dropped lgkmcnt", "tw::wait<63, 0>();", ""),
    ("dropped barrier", "tw::barrier();", ""),
    (
        "added fence",
        "tw::barrier();",
        "__threadfence(); tw::barrier();",
    ),
];

fn main() {
    let args = Arguments::from_args();
    let mut trials = Vec::new();
    for target in [Target::Gfx942, Target::Gfx950] {
        for name in examples() {
            let title = format!("{target} {name}");
            trials.push(Trial::test(title, move || compiles(&name, target)));
        }
    }
    for target in [Target::Gfx942, Target::Gfx950] {
        let title = format!("{target} gemm is as scheduled");
        trials.push(Trial::test(title, move || {
            let report = gemm(target, |text| text)?;
            match report.passed() && report.uncompared.is_none() {
                true => Ok(()),
                false => Err(format!("{:?}: {}", report.uncompared, report.report).into()),
            }
        }));
        let title = format!("{target} matrix instructions and copies to LDS");
        trials.push(Trial::test(title, move || instructions(target)));
        for (name, what, instead) in FAULTS {
            let title = format!("{target} gemm with {name}");
            trials.push(Trial::test(title, move || {
                let loads = if target == Target::Gfx942 { "8" } else { "4" };
                let what = &what.replace("LOADS", loads);
                let report = gemm(target, |text| {
                    let body = text.find("for (int k = ").unwrap_or(0);
                    let (head, tail) = text.split_at(body);
                    assert!(tail.contains(what), "the loop has no `{what}`");
                    format!("{head}{}", tail.replacen(what, instead, 1))
                })?;
                let located = report.report.findings.iter().any(|f| f.line > 0);
                match located {
                    true => Ok(()),
                    false => Err(format!("nothing found: {}", report.report).into()),
                }
            }));
        }
    }
    libtest_mimic::run(&args, trials).exit();
}

fn folder() -> std::path::PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples")
}

fn examples() -> Vec<String> {
    let files = fs::read_dir(folder()).expect("the examples are there");
    let mut names: Vec<String> = files
        .filter_map(|f| Some(f.ok()?.file_name().to_string_lossy().into_owned()))
        .filter(|name| name.ends_with(".py"))
        .collect();
    names.sort();
    assert!(!names.is_empty());
    names
}

/// The audit of the gemm example with both operands contiguous along K, its source changed.
fn gemm(target: Target, change: impl FnOnce(String) -> String) -> Result<KernelAudit, Failed> {
    let mut sources = SourceMap::new();
    let text = fs::read_to_string(folder().join("gemm.py"))?;
    let file = sources.add("gemm.py", text);
    let settings = [("trans_B", "True"), ("dtype", "bfloat16")]
        .map(|(k, v)| (k.to_string(), SettingValue::parse(v).expect("a literal")));
    let staged = frontend::stage(&sources, file, None, &settings)
        .map_err(|d| format!("it does not stage: {d:?}"))?;
    let (func, _) = jit::lower(&staged.func, target).map_err(|e| format!("{e:?}"))?;
    let source = codegen::generate(&func, target, codegen::Options::default())
        .map_err(|d| d.message.clone())?;
    let asm = clang()?
        .assembly(&change(source.text), target.name(), &HipOptions::default())
        .map_err(|e| e.to_string())?;
    let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
    let mut audits = jit::audit::audit(&func, target, &names, &asm)?;
    audits.pop().ok_or_else(|| "no kernel".into())
}

/// Each matrix instruction of a target, and the wave's copy to LDS, is the machine's.
fn instructions(target: Target) -> Result<(), Failed> {
    let (mut allocs, mut body, mut wanted) = (String::new(), String::new(), Vec::new());
    for (n, facts) in target.facts().mma.iter().enumerate() {
        let inst = facts.inst;
        // Elements of six bits have no C type.
        if inst.ab.bits() == 6 {
            continue;
        }
        let ab = u32::from(inst.m) * u32::from(inst.k) / 64;
        let acc = u32::from(inst.m) * u32::from(inst.n) / 64;
        for (name, scalar, count) in [("a", inst.ab, ab), ("b", inst.ab, ab), ("c", inst.acc, acc)]
        {
            allocs += &format!("    alloc {name}{n}: local {scalar}[{count}]\n");
        }
        body += &format!(
            "    mma a{n}[0 +: {ab}] at [0], b{n}[0 +: {ab}] at [0] -> c{n}[0 +: {acc}] at [0] \
             inst=\"{inst}\" width=1\n    C[tx] = C[tx] + float32(c{n}[0])\n"
        );
        let shape = format!("{}x{}x{}", inst.m, inst.n, inst.k);
        wanted.push(format!("_{shape}_"));
    }
    let (bytes, copy) = match target {
        Target::Gfx950 => (16, "buffer_load_dwordx4"),
        _ => (4, "buffer_load_dword "),
    };
    wanted.push(copy.to_string());
    let (width, all) = (bytes / 4, bytes / 4 * 64);
    let text = format!(
        "func @every level=device {{\n  param A: float32[{all}]\n  output C: float32[64]\n  kernel \
         grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {{\n    alloc S: shared float32[{all}]\n\
         {allocs}    g2s A[0 +: {all}] at [tx * {width}] -> S[0 +: {all}] at [tx * {width}] \
         inst=\"buffer_load_lds\" width={width} counter=vmcnt\n    wait vmcnt(0)\n    barrier bare\n    \
         C[tx] = S[{all} - 1 - tx]\n{body}  }}\n}}\n"
    );
    let mut sources = SourceMap::new();
    let file = sources.add("every.tw", text);
    let func = tilewright::ir::text::parse(sources.text(file), file)
        .map_err(|d| format!("{d:?}\n{}", sources.text(file)))?;
    let source = codegen::generate(&func, target, codegen::Options::default())
        .map_err(|d| d.message.clone())?;
    let asm = clang()?
        .assembly(&source.text, target.name(), &HipOptions::default())
        .map_err(|e| e.to_string())?;
    for want in wanted {
        let found = asm.lines().any(|l| l.contains(&want));
        if !found {
            return Err(format!("no instruction `{want}`").into());
        }
    }
    match asm.contains(" offen lds") {
        true => Ok(()),
        false => Err("no copy to LDS".into()),
    }
}

fn clang() -> Result<AmdClang, Failed> {
    AmdClang::find(&Env::process()).map_err(|missing| {
        format!("this test needs clang: run scripts/setup-clang\n{missing}").into()
    })
}

fn compiles(name: &str, target: Target) -> Result<(), Failed> {
    let mut sources = SourceMap::new();
    let file = sources.add(name, fs::read_to_string(folder().join(name))?);
    let render = |list: &[Diagnostic], sources: &SourceMap| -> Failed {
        let text: Vec<String> = list.iter().map(|d| d.render(sources, false)).collect();
        text.join("\n").into()
    };
    let staged = frontend::stage(&sources, file, None, &[]).map_err(|d| render(&d, &sources))?;
    let func = match jit::lower(&staged.func, target) {
        Ok((func, _)) => func,
        Err(e) => return Err(render(&e.into_diagnostics(), &sources)),
    };
    let options = codegen::Options {
        sources: Some(&sources),
        line_directives: false,
    };
    let source = codegen::generate(&func, target, options).map_err(|d| render(&[*d], &sources))?;
    let program = clang()?
        .compile(&source.text, target.name(), &HipOptions::default())
        .map_err(|e| e.to_string())?;
    let warnings = program.warnings();
    if !warnings.is_empty() {
        return Err(format!("the compiler warns: {warnings:?}").into());
    }
    for kernel in program.kernels() {
        if kernel.scratch_bytes > 0 || kernel.vgpr_spills + kernel.sgpr_spills > 0 {
            return Err(format!("{kernel:?}").into());
        }
    }
    let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
    for audit in jit::audit::audit(&func, target, &names, program.asm())? {
        let moves = |f: &Finding| f.kind == Kind::AccumulatorMove && MOVES.contains(&name);
        if !audit.report.findings.iter().all(moves) {
            return Err(format!("{}: {}", audit.name, audit.report).into());
        }
    }
    Ok(())
}
