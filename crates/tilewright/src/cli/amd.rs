//! Kernels compiled for AMD GPUs, for the commands that look at them; no GPU is needed.

use serde_json::{Value, json};
use tilewright::codegen;
use tilewright::gfx9::audit::Step;
use tilewright::ir::{Code, Diagnostic, Diagnostics, Func, Span, Target};
use tilewright::jit::audit::{self, KernelAudit};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::{AmdKernelInfo, AmdToolchain, HipOptions, Hsaco};

/// Compiles generated source with the toolchain of this machine.
pub fn compile(
    func: &Func,
    target: Target,
    source: &codegen::Source,
    fast_math: bool,
) -> Result<Hsaco, Box<Diagnostic>> {
    let options = HipOptions {
        name: format!("{}.hip", func.name),
        fast_math,
        extra: source.flags.clone(),
        ..HipOptions::default()
    };
    AmdToolchain::find(&Env::process())
        .and_then(|toolchain| toolchain.compile(&source.text, target.name(), &options))
        .map_err(|e| {
            Box::new(Diagnostic::error(
                Code("toolchain"),
                Span::NONE,
                e.to_string(),
            ))
        })
}

/// `matmul: 248 VGPRs, 32768 bytes of LDS, no scratch, no spills`
pub fn figures(kernel: &AmdKernelInfo) -> String {
    let scratch = match kernel.scratch_bytes {
        0 => "no scratch".to_string(),
        bytes => format!("{bytes} bytes of scratch"),
    };
    let spills = match kernel.vgpr_spills + kernel.sgpr_spills {
        0 => "no spills".to_string(),
        _ => format!(
            "{} VGPRs and {} SGPRs spilled",
            kernel.vgpr_spills, kernel.sgpr_spills
        ),
    };
    format!(
        "{}: {} VGPRs, {} of them accumulators, {} SGPRs, {} bytes of LDS, {scratch}, {spills}",
        kernel.name, kernel.vgprs, kernel.agprs, kernel.sgprs, kernel.lds_bytes
    )
}

pub fn to_json(kernel: &AmdKernelInfo) -> Value {
    json!({
        "name": kernel.name,
        "vgprs": kernel.vgprs,
        "agprs": kernel.agprs,
        "sgprs": kernel.sgprs,
        "lds_bytes": kernel.lds_bytes,
        "scratch_bytes": kernel.scratch_bytes,
        "vgpr_spills": kernel.vgpr_spills,
        "sgpr_spills": kernel.sgpr_spills,
    })
}

/// Compares compiled source with the device IR it comes from, and refuses it where the result may
/// be wrong. hiprtc gives no assembly, so that nothing is compared.
pub fn check(
    func: &Func,
    target: Target,
    source: &codegen::Source,
    program: &Hsaco,
) -> Result<Vec<KernelAudit>, Diagnostics> {
    if program.asm().is_empty() {
        return Ok(Vec::new());
    }
    let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
    audit::refuse(func, target, &names, program.asm())
}

pub fn audit_json(audit: &KernelAudit) -> Value {
    json!({
        "kernel": audit.name,
        "kernel_compared": audit.report.unplanned.is_none(),
        "kernel_reason": audit.report.unplanned,
        "waits_compared": audit.uncompared.is_none(),
        "reason": audit.uncompared,
        "own_waits": audit.own_waits,
        "vgprs": audit.report.vgprs,
        "findings": audit.report.findings.iter().map(ToString::to_string).collect::<Vec<_>>(),
    })
}

/// What the compiler made of a kernel: whether it waits as scheduled, and its hot loop, a line for each
/// wait or barrier with what follows it.
pub fn audit_text(audit: &KernelAudit) -> String {
    let report = &audit.report;
    let kernel = match report.unplanned {
        _ if report.findings.iter().any(|f| !f.kind.is_cost()) => "not as scheduled".into(),
        Some(reason) => format!("waits and barriers not compared ({reason})"),
        None => "waits and barriers as scheduled on every way".to_string(),
    };
    let mut text = format!("compiled {}: {kernel}\n", audit.name);
    let hot = match (&audit.uncompared, &audit.own_waits) {
        (Some(reason), _) => format!("not compared wait by wait ({reason})"),
        (None, Some(reason)) => format!("also waits of the compiler's ({reason})"),
        (None, None) => "no other waits".to_string(),
    };
    if let Some((first, last)) = report.lines {
        text += &format!("  hot loop, lines {first} to {last}: {hot}\n");
        text += &steps_text(&report.steps);
    }
    let products = report.mfma.iter();
    let products: String = products.map(|(name, n)| format!("{n} {name}, ")).collect();
    text += &format!(
        "  {products}{} VGPRs, {} address instructions, {} lane reads\n",
        report.vgprs, report.address_arithmetic, report.lane_reads
    );
    for alike in report.alike() {
        text += &match alike.len() {
            1 => format!("  {}\n", alike[0]),
            n => format!("  {} (first of {n})\n", alike[0]),
        };
    }
    text
}

/// The steps of a loop; a new line begins with each run of waits and barriers.
fn steps_text(steps: &[Step]) -> String {
    let stops = |step: &Step| matches!(step, Step::Wait(_) | Step::Barrier);
    let mut text = String::new();
    for (at, step) in steps.iter().enumerate() {
        let begins = at == 0 || (stops(step) && !stops(&steps[at - 1]));
        match (begins, at) {
            (true, 0) => text += "    ",
            (true, _) => text += "\n    ",
            (false, _) => text += " ",
        }
        text += &step.to_string();
    }
    if !steps.is_empty() {
        text.push('\n');
    }
    text
}
