//! What the code spends beyond the schedule: registers, scratch, address arithmetic, slow forms.

use std::collections::BTreeMap;

use crate::asm::{Function, Instruction, Operand, RegisterFile, Registers, Use};
use crate::isa::{Opcode, Ty};

use super::{Expectation, Finding, Kind, Report, bits, finding};

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
    for instruction in kernel.instructions.iter().filter(|i| !i.inline) {
        let mut taken = None;
        instruction.each_use(|run, how| {
            let numbered = run.file == RegisterFile::Accumulator && run.first < expected.numbered;
            taken = taken.or((numbered && how != Use::Read).then_some(run.first));
        });
        if let Some(first) = taken {
            let reason = format!("a{first} is a register of the kernel's sums");
            let found = finding(Kind::Clobbered, instruction, reason);
            report
                .findings
                .push(found.of_rule("a register of the sums"));
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
        rule: None,
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
        // Those of the kernel's own text are elements of sums that have such registers by number.
        if !instruction.inline
            && matches!(
                op,
                Opcode::v_accvgpr_read_b32
                    | Opcode::v_accvgpr_write_b32
                    | Opcode::v_accvgpr_mov_b32
            )
        {
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
    let mut names: Vec<&String> = expected.mfma.keys().chain(report.mfma.keys()).collect();
    names.sort_unstable();
    names.dedup();
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
/// number of others, also around the loop. The loop is gone through backwards, with the registers
/// whose last write is looked for.
fn address_arithmetic<'a>(body: &[&'a Instruction]) -> Vec<&'a Instruction> {
    let mut counted = vec![false; body.len()];
    let mut wanted = Wanted::default();
    loop {
        let at_the_end = wanted;
        for (instruction, counted) in body.iter().zip(&mut counted).rev() {
            wanted.step(instruction, counted);
        }
        // What is not written before it is used comes from the turn before.
        if wanted.is_within(&at_the_end) {
            break;
        }
        wanted.add_all(&at_the_end);
    }
    let body = body.iter().zip(counted);
    body.filter_map(|(i, counted)| counted.then_some(*i))
        .collect()
}

/// A set of vector registers.
#[derive(Clone, Copy, Default)]
struct Wanted([u64; 8]);

impl Wanted {
    /// Goes back over an instruction: before it, what it computes an address from is wanted in place
    /// of what it writes, and the instruction counts.
    fn step(&mut self, instruction: &Instruction, counted: &mut bool) {
        let mut written = false;
        instruction.each_use(|run, how| {
            if how != Use::Read {
                written |= self.remove(run);
            }
        });
        // Addresses are integers: a register that floats were in before is another value.
        if written && instruction.is_valu() && !is_float(instruction) {
            *counted = true;
            instruction.each_use(|run, how| {
                if how != Use::Write {
                    self.add(run);
                }
            });
        }
        if let Some(at) = instruction.address_operand()
            && let Some(run) = instruction.operands.get(at).and_then(Operand::registers)
        {
            self.add(run);
        }
    }

    fn add(&mut self, run: Registers) {
        for (word, bits) in words_of(run) {
            self.0[word] |= bits;
        }
    }

    /// Says whether there was something to remove.
    fn remove(&mut self, run: Registers) -> bool {
        let mut found = false;
        for (word, bits) in words_of(run) {
            found |= self.0[word] & bits != 0;
            self.0[word] &= !bits;
        }
        found
    }

    fn is_within(&self, other: &Self) -> bool {
        let words = self.0.iter().zip(other.0);
        words.fold(0, |more, (mine, others)| more | mine & !others) == 0
    }

    fn add_all(&mut self, other: &Self) {
        for (word, others) in self.0.iter_mut().zip(other.0) {
            *word |= others;
        }
    }
}

/// The words of a set that a run of vector registers lies in, with its bits; of others none.
fn words_of(run: Registers) -> impl Iterator<Item = (usize, u64)> {
    let (first, end) = match run.file {
        RegisterFile::Vector => (run.first, run.first.saturating_add(run.count)),
        _ => (0, 0),
    };
    let registers = usize::from(first).min(512)..usize::from(end).min(512);
    bits::words(registers)
}

fn count(n: usize) -> u32 {
    u32::try_from(n).unwrap_or(u32::MAX)
}
