//! Matrix operands are read from shared memory without bank conflicts, as the simulator counts
//! them, at the tile sizes that the examples default to.

use std::collections::BTreeSet;

use libtest_mimic::{Failed, Trial};
use tilewright::ir::micro_op::MicroKind;
use tilewright::ir::{Func, SourceMap, Span, StmtKind, Target, visit};
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{InputSpec, make_inputs};

use super::{TARGETS, lower, render, stage};
use crate::oracle::Case;

pub fn trials() -> Vec<Trial> {
    let mut trials = Vec::new();
    for target in TARGETS {
        for case in products() {
            let title = format!("banks {target} {}", case.title());
            trials.push(Trial::test(title, move || operands_are_free(&case, target)));
        }
    }
    trials.push(Trial::test("bank conflicts are counted", conflicts_show));
    trials
}

/// Kernels at their own tile sizes, on a problem of one output tile and a few steps of K.
fn products() -> Vec<Case> {
    let mut cases = Vec::new();
    for (dtype, accum) in [
        ("float16", "float32"),
        ("bfloat16", "float32"),
        ("int8", "int32"),
        ("float8_e4m3fn", "float32"),
    ] {
        for (trans_a, trans_b) in [(false, false), (false, true), (true, false), (true, true)] {
            cases.push(
                Case::new("gemm.py", "matmul")
                    .sizes([("M", 128), ("N", 128), ("K", 64)])
                    .set("dtype", dtype)
                    .set("accum_dtype", accum)
                    .flag("trans_A", trans_a)
                    .flag("trans_B", trans_b),
            );
        }
    }
    for dtype in ["float8_e4m3fn", "float8_e5m2"] {
        cases.push(
            Case::new("gemm_fp8.py", "matmul_fp8")
                .sizes([("M", 64), ("N", 64), ("K", 128)])
                .set("dtype", dtype),
        );
    }
    let sized = |file, kernel| Case::new(file, kernel).sizes([("M", 64), ("N", 64), ("K", 128)]);
    cases.extend([
        sized("gemm.py", "matmul_relu"),
        sized("gemm_fp8.py", "matmul_fp8_scaled"),
        sized("gemm_splitk.py", "matmul_splitk").set("split_k", 2),
        sized("gemm_streamk.py", "matmul_streamk").set("num_blocks", 2),
        sized("gemm_persistent.py", "matmul_persistent").set("num_blocks", 1),
        sized("dequant_gemm.py", "dequant_matmul"),
        Case::new("warp_specialized_gemm.py", "matmul_warp_specialized").sizes([
            ("M", 128),
            ("N", 64),
            ("K", 64),
        ]),
    ]);
    cases
}

fn operands_are_free(case: &Case, target: Target) -> Result<(), Failed> {
    let conflicts = operand_conflicts(case, target)?;
    match conflicts {
        Reads {
            transactions: 0, ..
        } => Err("no operand was read from shared memory".into()),
        Reads { conflicts: 0, .. } => Ok(()),
        Reads {
            transactions,
            conflicts,
        } => Err(format!("{conflicts} of {transactions} transactions are conflicts").into()),
    }
}

/// A padded row-major layout, whose columns meet in few banks, must not look free.
fn conflicts_show() -> Result<(), Failed> {
    let case = Case::new("gemm.py", "matmul")
        .sizes([("M", 128), ("N", 128), ("K", 64)])
        .set("block_K", 64);
    let mut sources = SourceMap::new();
    let mut func = stage(&case, &mut sources)?;
    for buffer in func.buffers.values_mut() {
        if buffer.scope == tilewright::ir::Scope::Shared {
            buffer.layout = Some(tilewright::ir::LayoutAttr::Linear);
        }
    }
    let func = lower(func, Target::Sm80, &sources)?;
    let reads = count(&func, Target::Sm80, &sources)?;
    if reads.conflicts == 0 {
        return Err("rows of 128 bytes, read by column, count as free".into());
    }
    Ok(())
}

/// What the banks did for operand reads.
struct Reads {
    transactions: u64,
    conflicts: u64,
}

fn operand_conflicts(case: &Case, target: Target) -> Result<Reads, Failed> {
    let mut sources = SourceMap::new();
    let func = lower(stage(case, &mut sources)?, target, &sources)?;
    count(&func, target, &sources)
}

fn count(func: &Func, target: Target, sources: &SourceMap) -> Result<Reads, Failed> {
    let mut args = make_inputs(func, &InputSpec::default())
        .map_err(|e| render(e.diagnostics.iter(), sources))?;
    let report = simt::run(func, target, &mut args, &SimtOptions::default())
        .map_err(|e| render(e.diagnostics.iter(), sources))?;
    let spans = operand_spans(func);
    let mut reads = Reads {
        transactions: 0,
        conflicts: 0,
    };
    for statement in report
        .statements
        .iter()
        .filter(|s| spans.contains(&key(s.span)))
    {
        reads.transactions += statement.counts.shared_transactions;
        reads.conflicts += statement.counts.bank_conflicts;
    }
    Ok(reads)
}

/// Where the products stand: a lowered product does nothing with shared memory but read its
/// operands.
fn operand_spans(func: &Func) -> BTreeSet<(u32, u32)> {
    let mut spans = BTreeSet::new();
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Micro(op) = &stmt.kind
                && op.kind == MicroKind::Mma
            {
                spans.insert(key(stmt.span));
            }
        });
    }
    spans
}

fn key(span: Span) -> (u32, u32) {
    (span.start, span.end)
}
