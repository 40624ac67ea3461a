//! Which registers a statement uses.

use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::visit_ids::{expr_buffers, stmt_buffers};
use tilewright_ir::{Access, Buffer, BufferOrigin, Func, Scope, Stmt, StmtKind};

/// Elements of a register array, from and to; without a range, any.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Registers {
    pub root: Buffer,
    pub range: Option<(i64, i64)>,
}

impl Registers {
    pub fn meet(&self, other: &Registers) -> bool {
        let apart = match (self.range, other.range) {
            (Some(a), Some(b)) => a.1 <= b.0 || b.1 <= a.0,
            _ => false,
        };
        self.root == other.root && !apart
    }
}

/// The registers that a statement uses, with the blocks in it or without.
pub fn used_by(func: &Func, stmt: &Stmt, blocks: bool) -> Vec<Registers> {
    let mut used = Vec::new();
    let mut add = |registers: Registers| {
        let scope = func.buffers[registers.root].scope;
        if !matches!(scope, Scope::Shared | Scope::Global) && !used.contains(&registers) {
            used.push(registers);
        }
    };
    let mut note = |s: &Stmt| {
        if let StmtKind::Micro(m) = &s.kind {
            for end in m.sources.iter().chain([&m.dest]) {
                add(Registers {
                    root: func.root(end.region.buffer),
                    range: range(func, end),
                });
            }
            stmt_exprs(s, &mut |e| {
                expr_buffers(e, &mut |buffer| add(whole(func, buffer)));
            });
            return;
        }
        stmt_buffers(s, &mut |buffer| add(whole(func, buffer)));
    };
    note(stmt);
    if blocks {
        for block in child_blocks(stmt) {
            walk_stmts(block, &mut note);
        }
    }
    used
}

fn whole(func: &Func, buffer: Buffer) -> Registers {
    Registers {
        root: func.root(buffer),
        range: None,
    }
}

/// The elements of a rectangle of an array with one dimension, where its bounds are known.
pub fn range(func: &Func, end: &Access) -> Option<(i64, i64)> {
    let data = &func.buffers[end.region.buffer];
    let [dim] = &end.region.dims[..] else {
        return None;
    };
    if matches!(data.origin, BufferOrigin::View(_)) || end.slot.is_some() {
        return None;
    }
    let start = i64::try_from(dim.start.as_int()?).ok()?;
    let length = i64::try_from(dim.extent.as_int()?).ok()?;
    Some((start, start.checked_add(length)?))
}
