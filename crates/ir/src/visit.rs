//! Walks over expressions and statements, and rewrites of them.
//!
//! One place knows the shape of every node, so that an analysis or pass says only what it
//! does with the nodes it cares about.

use rustc_hash::FxHashSet;

use crate::buffer::{Region, RegionDim};
use crate::device_op::{BarrierKind, DeviceOp};
use crate::expr::{Expr, ExprKind};
use crate::ids::Buffer;
use crate::micro_op::Access;
use crate::stmt::{Block, LoopKind, Stmt, StmtKind};

/// Expressions up to this depth are walked by recursion, which needs no memory of its own; deeper
/// ones, which are rare, by a list.
const RECURSION: u32 = 64;

/// Expressions up to this many nodes have their distinct nodes found in a list, larger ones in a
/// hash table.
const LISTED: usize = 48;

impl Expr {
    /// The operands, left to right.
    pub fn operands(&self) -> Vec<&Expr> {
        let mut operands = Vec::new();
        self.kind().each_operand(|e| operands.push(e));
        operands
    }

    /// The same node over other operands, given in the order of [`Expr::operands`]. The type
    /// and span stay.
    pub fn with_operands(&self, operands: Vec<Expr>) -> Expr {
        let mut next = operands.into_iter();
        let mut one = || next.next().unwrap_or_else(|| Expr::i32(0));
        let kind = match self.kind() {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) => return self.clone(),
            ExprKind::Load { buffer, .. } => ExprKind::Load {
                buffer: *buffer,
                indices: next.collect(),
            },
            ExprKind::AddressOf { buffer, .. } => ExprKind::AddressOf {
                buffer: *buffer,
                indices: next.collect(),
            },
            ExprKind::Math(f, _) => ExprKind::Math(*f, next.collect()),
            ExprKind::Unary(op, _) => ExprKind::Unary(*op, one()),
            ExprKind::Cast(_) => ExprKind::Cast(one()),
            ExprKind::Reinterpret(_) => ExprKind::Reinterpret(one()),
            ExprKind::Broadcast(_) => ExprKind::Broadcast(one()),
            ExprKind::Lane { lane, .. } => ExprKind::Lane {
                vector: one(),
                lane: *lane,
            },
            ExprKind::Binary(op, ..) => ExprKind::Binary(*op, one(), one()),
            ExprKind::Ramp { .. } => ExprKind::Ramp {
                base: one(),
                stride: one(),
            },
            ExprKind::Select { .. } => ExprKind::Select {
                cond: one(),
                then: one(),
                otherwise: one(),
            },
            ExprKind::IfThenElse { .. } => ExprKind::IfThenElse {
                cond: one(),
                then: one(),
                otherwise: one(),
            },
        };
        Expr::new(kind, self.dtype(), self.span())
    }

    /// Calls `f` on every node, parents first, left to right.
    pub fn walk<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        if self.depth() <= RECURSION {
            return self.walk_down(f);
        }
        let mut pending = vec![self];
        while let Some(node) = pending.pop() {
            f(node);
            let first = pending.len();
            node.kind().each_operand(|e| pending.push(e));
            pending[first..].reverse();
        }
    }

    fn walk_down<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        f(self);
        self.kind().each_operand(|e| e.walk_down(f));
    }

    /// Calls `f` on every node once, however often it is shared; parents first.
    pub fn walk_distinct<'a>(&'a self, f: &mut dyn FnMut(&'a Expr)) {
        self.walk_within(&|_| true, f);
    }

    /// Calls `f` on every load and address once, with the buffer and the indices; outer ones first.
    pub fn walk_memory<'a>(&'a self, f: &mut dyn FnMut(&'a Expr, Buffer, &'a [Expr])) {
        self.walk_within(&Expr::names_memory, &mut |node| {
            if let ExprKind::Load { buffer, indices } | ExprKind::AddressOf { buffer, indices } =
                node.kind()
            {
                f(node, *buffer, indices);
            }
        });
    }

    /// Calls `f` with every load once; outer ones first.
    pub fn walk_loads<'a>(&'a self, f: &mut dyn FnMut(Buffer, &'a [Expr])) {
        self.walk_memory(&mut |node, buffer, indices| {
            if let ExprKind::Load { .. } = node.kind() {
                f(buffer, indices);
            }
        });
    }

    /// The walk over distinct nodes, without those that are left out and what is in them alone.
    fn walk_within<'a>(&'a self, within: &impl Fn(&Expr) -> bool, f: &mut dyn FnMut(&'a Expr)) {
        if !within(self) {
            return;
        }
        if self.depth() <= RECURSION && self.size() as usize <= LISTED {
            return self.walk_listed(&mut ([0; LISTED], 0), within, f);
        }
        let mut seen = FxHashSet::default();
        let mut pending = vec![self];
        while let Some(node) = pending.pop() {
            let (shared, identity) = node.identity();
            if !within(node) || shared && !seen.insert(identity) {
                continue;
            }
            f(node);
            let first = pending.len();
            node.kind().each_operand(|e| pending.push(e));
            pending[first..].reverse();
        }
    }

    /// The same in a small expression; `seen` lists the shared nodes so far.
    fn walk_listed<'a>(
        &'a self,
        seen: &mut ([usize; LISTED], usize),
        within: &impl Fn(&Expr) -> bool,
        f: &mut dyn FnMut(&'a Expr),
    ) {
        if !within(self) {
            return;
        }
        if let (true, identity) = self.identity() {
            let (list, count) = (&mut seen.0, &mut seen.1);
            if list[..*count].contains(&identity) {
                return;
            }
            list[*count] = identity;
            *count += 1;
        }
        f(self);
        self.kind().each_operand(|e| e.walk_listed(seen, within, f));
    }

    /// Rebuilds the tree bottom-up: `f` sees each node over rewritten operands and returns its
    /// replacement, or `None` to keep it. Untouched subtrees stay shared.
    pub fn rewrite(&self, f: &mut dyn FnMut(&Expr) -> Option<Expr>) -> Expr {
        if self.depth() <= RECURSION {
            return self.rewrite_down(f);
        }
        enum Step<'a> {
            Enter(&'a Expr),
            /// The operands are done: they are the last ones of `done`.
            Leave(&'a Expr),
        }
        let mut pending = vec![Step::Enter(self)];
        let mut done: Vec<Expr> = Vec::new();
        while let Some(step) = pending.pop() {
            match step {
                Step::Enter(node) => {
                    pending.push(Step::Leave(node));
                    let first = pending.len();
                    node.kind().each_operand(|e| pending.push(Step::Enter(e)));
                    pending[first..].reverse();
                }
                Step::Leave(node) => {
                    let old = node.operands();
                    let new = done.split_off(done.len() - old.len());
                    let same = old.iter().zip(&new).all(|(a, b)| a.same_node(b));
                    let node = if same {
                        node.clone()
                    } else {
                        node.with_operands(new)
                    };
                    done.push(f(&node).unwrap_or(node));
                }
            }
        }
        // Each node leaves exactly one result, so one is left for the root.
        done.pop().unwrap_or_else(|| self.clone())
    }

    fn rewrite_down(&self, f: &mut dyn FnMut(&Expr) -> Option<Expr>) -> Expr {
        let changed = match self.kind() {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) => None,
            // The most frequent kind, without a list of its operands.
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (a.rewrite_down(f), b.rewrite_down(f));
                let same = x.same_node(a) && y.same_node(b);
                let changed = || {
                    let kind = ExprKind::Binary(*op, x, y);
                    Expr::new(kind, self.dtype(), self.span())
                };
                (!same).then(changed)
            }
            kind => {
                let (mut new, mut same) = (Vec::new(), true);
                kind.each_operand(|e| {
                    let rewritten = e.rewrite_down(f);
                    same &= rewritten.same_node(e);
                    new.push(rewritten);
                });
                (!same).then(|| self.with_operands(new))
            }
        };
        match changed {
            None => f(self).unwrap_or_else(|| self.clone()),
            Some(node) => f(&node).unwrap_or(node),
        }
    }
}

/// The blocks directly inside a statement.
pub fn child_blocks(stmt: &Stmt) -> Vec<&Block> {
    match &stmt.kind {
        StmtKind::For(l) => vec![&l.body],
        StmtKind::While { body, .. } | StmtKind::WarpGroup { body, .. } => vec![body],
        StmtKind::If {
            then, otherwise, ..
        } => vec![then, otherwise],
        _ => Vec::new(),
    }
}

/// The blocks directly inside a statement.
pub fn child_blocks_mut(stmt: &mut Stmt) -> Vec<&mut Block> {
    match &mut stmt.kind {
        StmtKind::For(l) => vec![&mut l.body],
        StmtKind::While { body, .. } | StmtKind::WarpGroup { body, .. } => vec![body],
        StmtKind::If {
            then, otherwise, ..
        } => vec![then, otherwise],
        _ => Vec::new(),
    }
}

/// Rewrites a block, statement by statement. What a statement becomes has its turn.
pub fn rewrite_block(block: Block, mut rewrite: impl FnMut(Stmt, &mut Block)) -> Block {
    let mut out = Vec::with_capacity(block.len());
    for mut stmt in block {
        let (first, turn) = (out.len(), stmt.turn.take());
        rewrite(stmt, &mut out);
        let made = out[first..].iter_mut().filter(|made| made.takes_turn());
        made.for_each(|made| made.turn = turn);
    }
    out
}

/// Calls `f` on every statement of the block, outer first, in program order.
pub fn walk_stmts<'a>(block: &'a [Stmt], f: &mut dyn FnMut(&'a Stmt)) {
    for stmt in block {
        f(stmt);
        for child in child_blocks(stmt) {
            walk_stmts(child, f);
        }
    }
}

/// Calls `f` on the root of every expression that stands in the statement itself, not in the
/// blocks inside it.
pub fn stmt_exprs<'a>(stmt: &'a Stmt, f: &mut dyn FnMut(&'a Expr)) {
    each_expr(&stmt.kind, f);
}

/// Rewrites in place the root of every expression that stands in the statement itself.
pub fn stmt_exprs_mut(stmt: &mut Stmt, f: &mut dyn FnMut(&mut Expr)) {
    each_expr_mut(&mut stmt.kind, f);
}

/// Rewrites every expression of the block and the blocks inside it.
pub fn block_exprs_mut(block: &mut Block, f: &mut dyn FnMut(&mut Expr)) {
    for stmt in block {
        stmt_exprs_mut(stmt, f);
        for child in child_blocks_mut(stmt) {
            block_exprs_mut(child, f);
        }
    }
}

/// Generates the shared and the mutable walk from one list of fields.
macro_rules! expr_walk {
    ($name:ident, $operands:ident, $stmt:ty, $expr:ty, $region:ident, $access:ident, $all:ident, [$($lt:lifetime)?], $($mutability:tt)?) => {
        fn $region$(<$lt>)?(region: &$($lt)? $($mutability)? Region, f: &mut dyn FnMut($expr)) {
            for RegionDim { start, extent } in &$($mutability)? region.dims {
                f(start);
                f(extent);
            }
        }

        fn $access$(<$lt>)?(access: &$($lt)? $($mutability)? Access, f: &mut dyn FnMut($expr)) {
            $region(&$($mutability)? access.region, f);
            if let Some(e) = &$($mutability)? access.slot {
                f(e);
            }
            $all(&$($mutability)? access.at, f);
        }

        fn $all$(<$lt>)?(list: &$($lt)? $($mutability)? Vec<Expr>, f: &mut dyn FnMut($expr)) {
            for e in list {
                f(e);
            }
        }

        fn $name$(<$lt>)?(kind: $stmt, f: &mut dyn FnMut($expr)) {
            match kind {
                StmtKind::Let { value, .. } => f(value),
                StmtKind::Store { indices, value, .. } => {
                    $all(indices, f);
                    f(value);
                }
                StmtKind::Alloc(_) | StmtKind::Break | StmtKind::Continue => {}
                StmtKind::For(l) => {
                    for axis in &$($mutability)? l.axes {
                        f(&$($mutability)? axis.start);
                        f(&$($mutability)? axis.stop);
                        f(&$($mutability)? axis.step);
                    }
                    if let LoopKind::Persistent { wave_size, index, group_size } = &$($mutability)? l.kind {
                        f(wave_size);
                        f(index);
                        f(group_size);
                    }
                }
                StmtKind::While { cond, .. }
                | StmtKind::If { cond, .. }
                | StmtKind::Assert { cond, .. }
                | StmtKind::Assume(cond) => f(cond),
                StmtKind::WarpGroup { .. } => {}
                StmtKind::Tile(op) => op.$operands(&mut |operand| operand.exprs(f)),
                StmtKind::Thread(op) => op.$operands(&mut |operand| operand.exprs(f)),
                StmtKind::Micro(m) => {
                    $access(&$($mutability)? m.dest, f);
                    for s in &$($mutability)? m.sources {
                        $access(s, f);
                    }
                    if let Some(e) = &$($mutability)? m.pred {
                        f(e);
                    }
                    if let Some(e) = &$($mutability)? m.otherwise {
                        f(e);
                    }
                    if let Some(arrival) = &$($mutability)? m.arrives {
                        f(&$($mutability)? arrival.index);
                    }
                }
                StmtKind::Device(op) => match op {
                    DeviceOp::Barrier(BarrierKind::Cond(cond)) => f(cond),
                    DeviceOp::Iteration(Some(iteration)) => f(iteration),
                    DeviceOp::Prefetch { address, .. } => f(address),
                    DeviceOp::BarrierInit { index, .. } => f(index),
                    DeviceOp::Wait { .. }
                    | DeviceOp::WaitRead { .. }
                    | DeviceOp::Commit(_)
                    | DeviceOp::Barrier(_)
                    | DeviceOp::Fence(_)
                    | DeviceOp::SetPrio(_)
                    | DeviceOp::SchedBarrier(_)
                    | DeviceOp::SchedGroupBarrier { .. }
                    | DeviceOp::Iteration(None) => {}
                },
            }
        }
    };
}

expr_walk!(each_expr, operands, &'a StmtKind, &'a Expr, region_exprs, access_exprs, list_exprs, ['a],);
expr_walk!(
    each_expr_mut,
    operands_mut,
    &mut StmtKind,
    &mut Expr,
    region_exprs_mut,
    access_exprs_mut,
    list_exprs_mut,
    [],
    mut
);

#[cfg(test)]
mod tests {
    use super::*;
    use crate::diag::Span;
    use crate::dtype::DType;
    use crate::expr::BinOp;
    use crate::ids::Var;

    /// `x + 0`, twice that sum of itself with `x + 1`, and so on: every level is shared, and the
    /// tree is `levels` deep. Built of trees too deep for recursion as well as of shallow ones.
    fn chain(levels: u32) -> Expr {
        let x = Expr::new(ExprKind::Var(Var::from_u32(0)), DType::I32, Span::NONE);
        (1..levels).fold(x.clone(), |e, level| {
            let right = if level % 7 == 3 { e.clone() } else { x.clone() };
            Expr::new(
                ExprKind::Binary(BinOp::Add, e, right),
                DType::I32,
                Span::NONE,
            )
        })
    }

    fn nodes(e: &Expr) -> Vec<usize> {
        let mut all = vec![e.identity().1];
        e.kind().each_operand(|o| all.extend(nodes(o)));
        all
    }

    #[test]
    fn walks_agree_at_every_depth() {
        for levels in [1, 2, 5, 20, 63, 64, 65, 70] {
            let e = chain(levels);
            let mut walked = Vec::new();
            e.walk(&mut |node| walked.push(node.identity().1));
            assert_eq!(walked, nodes(&e), "{levels}");
            let mut distinct = Vec::new();
            e.walk_distinct(&mut |node| distinct.push(node.identity().1));
            let mut firsts = Vec::new();
            for node in walked {
                if !firsts.contains(&node) {
                    firsts.push(node);
                }
            }
            assert_eq!(distinct, firsts, "{levels}");
        }
    }

    #[test]
    fn rewrites_agree_at_every_depth() {
        for levels in [1, 2, 5, 63, 64, 65, 70] {
            let e = chain(levels);
            assert!(e.rewrite(&mut |_| None).same_node(&e));
            let mut seen = Vec::new();
            let one = e.rewrite(&mut |node| {
                seen.push(node.depth());
                node.as_var().map(|_| Expr::int(1, DType::I32))
            });
            // Operands come before what they are operands of, and each as often as it occurs.
            assert_eq!(seen.len(), e.size() as usize);
            assert_eq!((seen.first(), seen.last()), (Some(&1), Some(&e.depth())));
            let mut ones = 0;
            one.walk(&mut |node| {
                assert!(node.as_var().is_none());
                ones += usize::from(node.is_int(1));
            });
            assert_eq!(ones, (e.size() as usize).div_ceil(2));
        }
    }
}
