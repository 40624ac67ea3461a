//! Declarations of views and pointers.
//!
//! A view or a pointer has no storage of its own, so the front end may make one without a
//! statement that declares it. It then counts as declared right behind the last thing its
//! declaration mentions: behind its base's allocation, behind the `let` its address comes
//! from, or with the parameters. [`declared`] writes those statements down; printing,
//! comparing and verifying start from it.

use std::borrow::Cow;

use rustc_hash::FxHashSet;

use crate::buffer::{BufferData, BufferOrigin};
use crate::diag::Span;
use crate::expr::{Expr, ExprKind};
use crate::func::{Func, Param};
use crate::ids::Buffer;
use crate::stmt::{Block, Stmt, StmtKind};
use crate::visit::{child_blocks_mut, walk_stmts};
use crate::visit_ids::{Id, buffer_exprs, expr_buffers, stmt_buffers, stmt_ids};

/// The function with every view and pointer that a kernel makes declared in it. Those that
/// mention parameters, symbols and workspaces alone stay without a statement.
pub fn declared(func: &Func) -> Cow<'_, Func> {
    let mut outer: FxHashSet<Id> = func.symbols.iter().map(|v| Id::Var(*v)).collect();
    for param in &func.params {
        outer.insert(match *param {
            Param::Tensor { buffer, .. } => Id::Buffer(buffer),
            Param::Scalar(var) => Id::Var(var),
        });
    }
    outer.extend(func.workspaces.iter().map(|b| Id::Buffer(*b)));
    let mut pending = Vec::new();
    for buffer in undeclared(func) {
        let data = &func.buffers[buffer];
        match data.origin {
            BufferOrigin::View(_) | BufferOrigin::Pointer(_) => {}
            BufferOrigin::Param
            | BufferOrigin::Workspace
            | BufferOrigin::Alloc
            | BufferOrigin::Barriers(_)
            | BufferOrigin::Reducer(_) => continue,
        }
        let needs = mentioned(data);
        if needs.is_subset(&outer) {
            outer.insert(Id::Buffer(buffer));
        } else {
            pending.push((buffer, needs));
        }
    }
    if pending.is_empty() {
        return Cow::Borrowed(func);
    }
    let mut func = func.clone();
    let mut kernels = std::mem::take(&mut func.kernels);
    for kernel in &mut kernels {
        let mut visible = outer.clone();
        visible.extend(kernel.grid.iter().map(|(v, _)| Id::Var(*v)));
        let own = kernel.attrs.rank.iter().chain(&kernel.thread_vars);
        visible.extend(own.map(|v| Id::Var(*v)));
        place(&mut kernel.body, &mut visible, &mut pending);
    }
    func.kernels = kernels;
    Cow::Owned(func)
}

/// Buffers in use that no parameter, workspace or statement declares. What a declaration
/// mentions comes before it.
pub fn undeclared(func: &Func) -> Vec<Buffer> {
    let mut declared: FxHashSet<Buffer> = func.tensors().map(|(b, _)| b).collect();
    declared.extend(&func.workspaces);
    let mut used = Vec::new();
    for kernel in &func.kernels {
        used.extend(kernel.attrs.l2_hit_ratio.iter().map(|(b, _)| *b));
        used.extend(&kernel.attrs.may_alias);
        for (_, extent) in &kernel.grid {
            expr_buffers(extent, &mut |b| used.push(b));
        }
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Alloc(b) = &stmt.kind {
                declared.insert(*b);
            }
            stmt_buffers(stmt, &mut |b| used.push(b));
        });
    }
    enum Step {
        Enter(Buffer),
        Leave(Buffer),
    }
    let mut found = Vec::new();
    let mut seen = FxHashSet::default();
    let mut pending: Vec<Step> = used.into_iter().rev().map(Step::Enter).collect();
    while let Some(step) = pending.pop() {
        match step {
            Step::Enter(buffer) => {
                let Some(data) = func.buffers.get(buffer) else {
                    continue;
                };
                if !seen.insert(buffer) {
                    continue;
                }
                pending.push(Step::Leave(buffer));
                if let BufferOrigin::View(base) = data.origin {
                    pending.push(Step::Enter(base));
                }
                buffer_exprs(data, &mut |e| {
                    expr_buffers(e, &mut |b| pending.push(Step::Enter(b)));
                });
            }
            Step::Leave(buffer) if !declared.contains(&buffer) => found.push(buffer),
            Step::Leave(_) => {}
        }
    }
    found
}

/// What has to be visible where the buffer is declared.
fn mentioned(data: &BufferData) -> FxHashSet<Id> {
    let mut ids = FxHashSet::default();
    if let BufferOrigin::View(base) = data.origin {
        ids.insert(Id::Buffer(base));
    }
    // A layout binds its own variables.
    let plain = BufferData {
        layout: None,
        ..data.clone()
    };
    buffer_exprs(&plain, &mut |e| expr_ids(e, &mut ids));
    ids
}

fn expr_ids(expr: &Expr, ids: &mut FxHashSet<Id>) {
    expr.walk_distinct(&mut |e| match e.kind() {
        ExprKind::Var(v) => {
            ids.insert(Id::Var(*v));
        }
        ExprKind::Load { buffer, .. } | ExprKind::AddressOf { buffer, .. } => {
            ids.insert(Id::Buffer(*buffer));
        }
        _ => {}
    });
}

/// Puts each pending declaration where all it needs is visible for the first time.
fn place(
    block: &mut Block,
    visible: &mut FxHashSet<Id>,
    pending: &mut Vec<(Buffer, FxHashSet<Id>)>,
) {
    let mut here: Vec<Id> = Vec::new();
    let mut at = 0;
    loop {
        // One declaration may make the next one possible.
        while let Some(ready) = pending
            .iter()
            .position(|(_, needs)| needs.is_subset(visible))
        {
            let (buffer, _) = pending.remove(ready);
            block.insert(at, Stmt::new(StmtKind::Alloc(buffer), Span::NONE));
            at += 1;
            if visible.insert(Id::Buffer(buffer)) {
                here.push(Id::Buffer(buffer));
            }
        }
        if pending.is_empty() || at >= block.len() {
            break;
        }
        let mut bound: Vec<Id> = Vec::new();
        stmt_ids(&block[at], &mut |id| bound.push(id));
        let inside = matches!(block[at].kind, StmtKind::For(_));
        if inside {
            // Loop indices are seen by the body only.
            let new: Vec<Id> = bound.into_iter().filter(|id| visible.insert(*id)).collect();
            for child in child_blocks_mut(&mut block[at]) {
                place(child, visible, pending);
            }
            for id in new {
                visible.remove(&id);
            }
        } else {
            for child in child_blocks_mut(&mut block[at]) {
                place(child, visible, pending);
            }
            let declares: fn(&Id) -> bool = match block[at].kind {
                StmtKind::Alloc(_) => |_| true,
                // Other statements mention buffers, but bind variables alone.
                _ => |id| matches!(id, Id::Var(_)),
            };
            here.extend(
                bound
                    .into_iter()
                    .filter(|id| declares(id) && visible.insert(*id)),
            );
        }
        at += 1;
    }
    for id in here {
        visible.remove(&id);
    }
}

#[cfg(test)]
mod tests {
    use crate::FileId;
    use crate::stmt::StmtKind;
    use crate::text::{parse, print};

    #[test]
    fn an_undeclared_view_is_declared_behind_its_base() {
        let text = "func @f level=tile {
  param A: float32[8]
  kernel grid(bx: 1) threads(tx: 32, ty: 1, tz: 1) {
    for i in serial(0, 2) {
      alloc S: shared float32[8]
      view V: shared float16[16] of S
      view W: shared float16[4, 4] of V
      fill S[0 +: 8], 0.0
      if i == 0 {
        let p: handle = address_of(A[i])
        pointer P: float32[i] at p
        W[0, 0] = float16(P[0])
      }
    }
  }
}
";
        let func = parse(text, FileId(0)).expect("it parses");
        let mut loose = func.clone();
        fn drop_views(func: &crate::Func, block: &mut crate::Block) {
            block.retain(|s| match s.kind {
                StmtKind::Alloc(b) => func.buffers[b].origin == crate::BufferOrigin::Alloc,
                _ => true,
            });
            for stmt in block {
                for child in crate::visit::child_blocks_mut(stmt) {
                    drop_views(func, child);
                }
            }
        }
        drop_views(&func, &mut loose.kernels[0].body);
        assert_eq!(print(&loose), text);
        assert!(loose == func);
    }
}
