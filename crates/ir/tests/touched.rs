//! The table of what operations do to memory: nothing that an operation names is left out of it.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tilewright_ir::text::parse_module;
use tilewright_ir::touched::{Mode, touched};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::visit_ids::{Id, stmt_ids};
use tilewright_ir::{Buffer, CopyKind, FileId, Func, Stmt, StmtKind, TileOp};
use tilewright_testkit::arbitrary::any_func;

/// The buffers that an operation names, but for the barriers that it arrives at when it is done.
fn named(stmt: &Stmt) -> BTreeSet<Buffer> {
    let mut found = BTreeSet::new();
    if let StmtKind::Store { .. } | StmtKind::Tile(_) | StmtKind::Thread(_) | StmtKind::Micro(_) =
        &stmt.kind
    {
        stmt_ids(stmt, &mut |id| {
            if let Id::Buffer(buffer) = id {
                found.insert(buffer);
            }
        });
    }
    let barrier = match &stmt.kind {
        StmtKind::Tile(TileOp::Copy(c)) => match &c.kind {
            CopyKind::Tma { barrier, .. } => barrier.as_ref(),
            _ => None,
        },
        StmtKind::Tile(TileOp::Gemm(g)) => g.barrier.as_ref(),
        _ => None,
    };
    if let Some((barrier, _)) = barrier {
        found.remove(barrier);
    }
    found
}

fn check(func: &Func) {
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| {
            let mut listed = BTreeSet::new();
            touched(stmt, &mut |access| {
                listed.insert(access.buffer);
            });
            let missing: Vec<Buffer> = named(stmt).difference(&listed).copied().collect();
            assert!(missing.is_empty(), "{missing:?} of {stmt:?}");
        });
    }
}

#[test]
fn every_operation_is_in_the_table() {
    let all = parse_module(include_str!("everything.tw"), FileId(0)).expect("valid text");
    all.iter().for_each(check);
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(500))]

    #[test]
    fn random_functions_touch_what_they_name(func in any_func()) {
        check(&func);
    }
}

#[test]
fn an_update_is_both() {
    assert!(Mode::Update.reads() && Mode::Update.writes());
    assert!(!Mode::Read.writes() && !Mode::Write.reads());
}
