//! Matrix operands are read from shared memory without bank conflicts, as the simulator counts
//! them, at the tile sizes that the examples default to.

use std::collections::BTreeSet;

use libtest_mimic::{Failed, Trial};
use tilewright::ir::micro_op::MicroKind;
use tilewright::ir::{
    Block, Buffer, Func, LayoutAttr, Scope, SourceMap, Span, Stmt, StmtKind, Target, TileOp, visit,
};
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
        sized("blocksparse_gemm.py", "blocksparse_matmul"),
        Case::new("attention_fwd.py", "flash_attention").sizes([("heads", 1), ("seq_len", 128)]),
        Case::new("attention_gqa.py", "gqa_attention").sizes([("heads", 4), ("seq_q", 64)]),
        Case::new("attention_decode.py", "attention_decode").sizes([("batch", 1)]),
        Case::new("attention_bwd.py", "attention_bwd").sizes([("heads", 1), ("seq_len", 64)]),
        Case::new("linear_attention.py", "linear_attention").sizes([("heads", 1)]),
        Case::new("mamba_chunk_scan.py", "chunk_scan").sizes([("heads", 1)]),
        Case::new("convolution.py", "convolution").sizes([("batch", 1), ("H", 8), ("W", 8)]),
        Case::new("warp_specialized_gemm.py", "matmul_warp_specialized").sizes([
            ("M", 128),
            ("N", 64),
            ("K", 64),
        ]),
    ]);
    cases
}

/// Tiles that are read along their rows and, transposed on the way, across them: no swizzle serves
/// both. In the cycle model such kernels take 8 to 12 % less time than with reads of single
/// elements, which have no conflicts. And a tile of narrow rows of K, of which lanes take every other one,
/// for its sum is also that of a product whose operand is read in vectors across K: 4 % less.
const BOTH_WAYS: [(Target, &str, Reads); 2] = [
    (
        Target::Gfx950,
        "attention_bwd.py",
        Reads {
            transactions: 704,
            conflicts: 32,
        },
    ),
    (
        Target::Gfx942,
        "mamba_chunk_scan.py",
        Reads {
            transactions: 896,
            conflicts: 128,
        },
    ),
];

fn operands_are_free(case: &Case, target: Target) -> Result<(), Failed> {
    let conflicts = operand_conflicts(case, target)?;
    let known = |(t, file, _): &&(Target, &str, Reads)| (*t, *file) == (target, case.file);
    if let Some((.., expected)) = BOTH_WAYS.iter().find(known) {
        return match conflicts == *expected {
            true => Ok(()),
            false => Err(format!("{conflicts:?} instead of {expected:?}").into()),
        };
    }
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

/// A row-major layout, whose columns meet in few banks, must not look free.
fn conflicts_show() -> Result<(), Failed> {
    let case = Case::new("gemm.py", "matmul")
        .sizes([("M", 128), ("N", 128), ("K", 64)])
        .set("block_K", 64);
    let mut sources = SourceMap::new();
    let mut func = stage(&case, &mut sources)?;
    for buffer in func.buffers.values_mut() {
        if buffer.scope == Scope::Shared {
            buffer.layout = Some(LayoutAttr::Linear);
        }
    }
    let operands = operands(&func);
    let func = lower(func, Target::Sm80, &sources)?;
    let reads = count(func, &operands, Target::Sm80, &sources)?;
    if reads.conflicts == 0 {
        return Err("rows of 128 bytes, read by column, count as free".into());
    }
    Ok(())
}

/// What the banks did for operand reads.
#[derive(PartialEq, Debug)]
struct Reads {
    transactions: u64,
    conflicts: u64,
}

fn operand_conflicts(case: &Case, target: Target) -> Result<Reads, Failed> {
    let mut sources = SourceMap::new();
    let func = stage(case, &mut sources)?;
    let operands = operands(&func);
    let func = lower(func, target, &sources)?;
    count(func, &operands, target, &sources)
}

/// The buffers that matrix products multiply.
fn operands(func: &Func) -> BTreeSet<Buffer> {
    let mut found = BTreeSet::new();
    for kernel in &func.kernels {
        visit::walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Tile(TileOp::Gemm(g)) = &stmt.kind {
                found.extend([g.a.buffer, g.b.buffer]);
            }
        });
    }
    found
}

fn count(
    mut func: Func,
    operands: &BTreeSet<Buffer>,
    target: Target,
    sources: &SourceMap,
) -> Result<Reads, Failed> {
    let mut args = make_inputs(&func, &InputSpec::default())
        .map_err(|e| render(e.diagnostics.iter(), sources))?;
    for kernel in &mut func.kernels {
        mark(&mut kernel.body, operands);
    }
    let report = simt::run(&func, target, &mut args, &SimtOptions::default())
        .map_err(|e| render(e.diagnostics.iter(), sources))?;
    let mut reads = Reads {
        transactions: 0,
        conflicts: 0,
    };
    let marked = report.statements.iter().filter(|s| s.span.start == MARK);
    for statement in marked {
        reads.transactions += statement.counts.shared_transactions;
        reads.conflicts += statement.counts.bank_conflicts;
    }
    Ok(reads)
}

/// Counts come by place, so operand reads are given a place that nothing else has.
const MARK: u32 = u32::MAX - 1;

fn mark(block: &mut Block, operands: &BTreeSet<Buffer>) {
    let products: Vec<Span> = block.iter().filter_map(product).collect();
    for stmt in block {
        let within = products.contains(&stmt.span);
        if let StmtKind::Micro(op) = &stmt.kind
            && op.kind == MicroKind::S2r
            && operands.contains(&op.sources[0].region.buffer)
            && within
        {
            stmt.span = Span {
                start: MARK,
                end: MARK,
                ..Span::NONE
            };
        }
        for child in visit::child_blocks_mut(stmt) {
            mark(child, operands);
        }
    }
}

/// The place of a matrix instruction.
fn product(stmt: &Stmt) -> Option<Span> {
    match &stmt.kind {
        StmtKind::Micro(op) if op.kind == MicroKind::Mma => Some(stmt.span),
        _ => None,
    }
}
