//! What the code spends beyond the schedule: registers, scratch, address arithmetic, slow forms.

use std::collections::{BTreeMap, BTreeSet};

use crate::asm::{Function, Instruction, Register, RegisterFile};
use crate::isa::{Opcode, Ty};

use super::{Expectation, Finding, Kind, Report, finding};

/// The kernel as a whole.
pub(super) fn check_kernel(kernel: &Function, expected: &Expectation, report: &mut Report) {
    for instruction in &kernel.instructions {
        if instruction.is_scratch() {
            let reason = "private memory: a spill, or an array that did not fit registers";
            report
                .findings
                .push(finding(Kind::Scratch, instruction, reason));
        }
    }
    let fences = kernel.instructions.iter().filter(|i| i.is_cache_fence());
    for fence in fences.filter(|_| expected.no_fences) {
        let reason = "a fence that the kernel did not ask for";
        report
            .findings
            .push(finding(Kind::ExtraFence, fence, reason));
    }
    let whole = |kind, reason| Finding {
        kind,
        line: 0,
        text: String::new(),
        reason,
    };
    let Some(needs) = &kernel.needs else {
        let reason = format!("kernel `{}` has no metadata", kernel.name);
        report.findings.push(whole(Kind::Shape, reason));
        return;
    };
    report.vgprs = needs.vgprs;
    if needs.scratch_bytes > 0 {
        let reason = format!("a lane has {} bytes of scratch", needs.scratch_bytes);
        report.findings.push(whole(Kind::Scratch, reason));
    }
    for (count, what) in [(needs.vgpr_spills, "vector"), (needs.sgpr_spills, "scalar")] {
        if count > 0 {
            let reason = format!("{count} {what} registers are spilled");
            report.findings.push(whole(Kind::Spill, reason));
        }
    }
    if let Some(limit) = expected.vgprs
        && needs.vgprs > limit
    {
        let reason = format!(
            "{} vector registers, and the occupancy of the plan allows {limit}",
            needs.vgprs
        );
        report.findings.push(whole(Kind::Registers, reason));
    }
}

/// The hot loop.
pub(super) fn check_loop(
    body: &[&Instruction],
    arch: &str,
    expected: &Expectation,
    report: &mut Report,
) {
    if !expected.reshaped {
        counts(body, expected, report);
    }
    for instruction in body {
        let op = instruction.op;
        if matches!(
            op,
            Opcode::v_accvgpr_read_b32 | Opcode::v_accvgpr_write_b32 | Opcode::v_accvgpr_mov_b32
        ) {
            let reason = "moves between vector and accumulation registers";
            report
                .findings
                .push(finding(Kind::AccumulatorMove, instruction, reason));
        }
        if arch == "gfx950" && !expected.half_rate && !expected.reshaped && is_half_rate(op) {
            let reason = "runs at half rate on gfx950, which has a form of twice the K";
            report
                .findings
                .push(finding(Kind::HalfRate, instruction, reason));
        }
    }
    // Of the arms of a condition the text has the usual one last before what follows.
    let mut text = body.to_vec();
    text.sort_by_key(|instruction| instruction.line);
    let address = address_arithmetic(&text);
    report.address_arithmetic = count(address.len());
    over(
        &address,
        expected.address_arithmetic,
        Kind::AddressArithmetic,
        "vector instructions that compute addresses",
        &mut report.findings,
    );
    let reads: Vec<&Instruction> = body.iter().copied().filter(|i| is_lane_read(i)).collect();
    report.lane_reads = count(reads.len());
    over(
        &reads,
        expected.lane_reads,
        Kind::LaneRead,
        "reads of one lane",
        &mut report.findings,
    );
}

fn counts(body: &[&Instruction], expected: &Expectation, report: &mut Report) {
    let Some(end) = body.last() else { return };
    let mut check = |what: &str, want: u32, got: u32| {
        if want != got {
            let reason = format!("the loop that ends here has {got} {what} and should have {want}");
            report.findings.push(finding(Kind::Count, end, reason));
        }
    };
    let names: BTreeSet<&String> = expected.mfma.keys().chain(report.mfma.keys()).collect();
    for name in names {
        let of = |map: &BTreeMap<String, u32>| map.get(name).copied().unwrap_or(0);
        let (want, got) = (of(&expected.mfma), of(&report.mfma));
        if got > want || !expected.unread_products {
            check(name, want, got);
        }
    }
    if let Some(want) = expected.lds_copies {
        check("copies to LDS", want, report.lds_copies);
    }
    if let Some(want) = expected.lds_reads {
        check("LDS reads", want, report.lds_reads);
    }
}

/// Names the first one over the budget.
fn over(found: &[&Instruction], budget: u32, kind: Kind, what: &str, findings: &mut Vec<Finding>) {
    if let Some(first) = found.get(budget as usize) {
        let reason = format!(
            "the loop has {} {what}, and its budget is {budget}; this is the first over it",
            found.len()
        );
        findings.push(finding(kind, first, reason));
    }
}

/// Forms with the K of CDNA3, for which CDNA4 has one of twice the work in the same time.
fn is_half_rate(op: Opcode) -> bool {
    use Opcode::*;
    matches!(
        op,
        v_mfma_i32_16x16x32_i8
            | v_mfma_i32_32x32x16_i8
            | v_mfma_f32_16x16x16_f16
            | v_mfma_f32_16x16x16_bf16
            | v_mfma_f32_32x32x8_f16
            | v_mfma_f32_32x32x8_bf16
            | v_mfma_f32_16x16x32_fp8_fp8
            | v_mfma_f32_16x16x32_fp8_bf8
            | v_mfma_f32_16x16x32_bf8_fp8
            | v_mfma_f32_16x16x32_bf8_bf8
            | v_mfma_f32_32x32x16_fp8_fp8
            | v_mfma_f32_32x32x16_fp8_bf8
            | v_mfma_f32_32x32x16_bf8_fp8
            | v_mfma_f32_32x32x16_bf8_bf8
    )
}

/// Works on floats.
fn is_float(instruction: &Instruction) -> bool {
    let float = |ty: &Ty| {
        matches!(
            ty,
            Ty::f16 | Ty::f32 | Ty::f64 | Ty::p16 | Ty::f32x2 | Ty::mix
        )
    };
    let op = instruction.op;
    op.results().iter().chain(op.sources()).any(float)
}

fn is_lane_read(instruction: &Instruction) -> bool {
    matches!(
        instruction.op,
        Opcode::v_readfirstlane_b32 | Opcode::v_readlane_b32
    )
}

/// The vector instructions of the loop whose results reach a lane's memory address, through any
/// number of others, also around the loop.
fn address_arithmetic<'a>(body: &[&'a Instruction]) -> Vec<&'a Instruction> {
    let accesses: Vec<_> = body.iter().map(|i| i.access()).collect();
    // Where each register is written, from the first place on.
    let mut writers: BTreeMap<Register, Vec<usize>> = BTreeMap::new();
    for (index, access) in accesses.iter().enumerate() {
        for register in &access.writes {
            writers.entry(*register).or_default().push(index);
        }
    }
    let mut counted = BTreeSet::new();
    // Each register wanted, and the place from which its last write is looked for.
    let mut wanted: Vec<(Register, usize)> = Vec::new();
    for (index, access) in accesses.iter().enumerate() {
        wanted.extend(access.addresses.iter().map(|r| (*r, index)));
    }
    let mut asked = BTreeSet::new();
    while let Some((register, from)) = wanted.pop() {
        if !asked.insert((register, from)) {
            continue;
        }
        let Some(places) = writers.get(&register) else {
            continue;
        };
        let before = places.partition_point(|place| *place < from);
        let around = places.last();
        let last = before.checked_sub(1).and_then(|at| places.get(at));
        let Some(&writer) = last.or(around) else {
            continue;
        };
        // Addresses are integers: a register that floats were in before is another value.
        if !body[writer].is_valu() || is_float(body[writer]) || !counted.insert(writer) {
            continue;
        }
        let vectors = accesses[writer].reads.iter();
        let vectors = vectors.filter(|r| r.file == RegisterFile::Vector);
        wanted.extend(vectors.map(|r| (*r, writer)));
    }
    counted.into_iter().map(|index| body[index]).collect()
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
