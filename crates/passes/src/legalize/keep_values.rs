//! KeepValues: what a fragment still has is not loaded and computed again.
//!
//! A softmax whose row is one tile computes the powers for their sum, and reads the row again to compute
//! them for the result.
//!
//! Before:
//! ```text
//! copy X[bx, 0 +: 8192] -> x[0, 0 +: 8192]
//! reduce max x[0, 0 +: 8192] -> largest[0] dim=1 clear
//! for i, j in parallel(1, 8192) {
//!   x[i, j] = exp2(x[i, j] - largest[i])
//! }
//! reduce sum x[0, 0 +: 8192] -> total[0] dim=1 clear
//! copy X[bx, 0 +: 8192] -> x[0, 0 +: 8192]
//! for i, j in parallel(1, 8192) {
//!   x[i, j] = exp2(x[i, j] - largest[i]) / total[i]
//! }
//! ```
//! After:
//! ```text
//! copy X[bx, 0 +: 8192] -> x[0, 0 +: 8192]
//! reduce max x[0, 0 +: 8192] -> largest[0] dim=1 clear
//! for i, j in parallel(1, 8192) {
//!   x[i, j] = exp2(x[i, j] - largest[i])
//! }
//! reduce sum x[0, 0 +: 8192] -> total[0] dim=1 clear
//! for i, j in parallel(1, 8192) {
//!   x[i, j] = x[i, j] / total[i]
//! }
//! ```
//! For tiles of tensors that nothing in the kernel may change, in fragments that they overwrite, whose
//! registers are then in use from their last reader to the copy that was here, too. A tile that is copied
//! where it still is, is not copied again either. Each element is computed by the same operations, so values
//! are what they were. Pipelined loops are left as they are.
//!
//! Needs tile IR, simplified.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_arith::Analyzer;
use tilewright_ir::touched::written;
use tilewright_ir::visit::child_blocks;
use tilewright_ir::{
    Axis, Block, Buffer, Code, CopyKind, CopyOp, Diagnostic, Diagnostics, Expr, ExprKind, Func,
    Loop, LoopKind, Scope, Severity, Span, Stmt, StmtKind, Target, TileOp, Var,
};

use crate::Changed;
use crate::decisions::KEEP;
use crate::legalize::element_copies::{Written, as_copy};
use crate::legalize::once::{Values, at_values, once};
use crate::optimize::common::effects::unchanged;

/// The topic of this pass's remarks.
const TOPIC: Code = Code("keep");

/// Values of more nodes are not followed.
const LARGEST: u32 = 200;

/// Leaves out of all kernels what fragments still have.
pub fn keep_values(func: &mut Func, _target: Target, diags: &mut Diagnostics) -> Changed {
    if KEEP.asked(func) == Some(false) {
        return Changed::No;
    }
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        let steady = unchanged(func, &func.kernels[at]);
        let mut body = std::mem::take(&mut func.kernels[at].body);
        let mut analyzer = Analyzer::for_func(func);
        analyzer.enter_kernel(func, &func.kernels[at]);
        let mut keeper = Keeper {
            func,
            analyzer,
            steady,
            once: Vec::new(),
            kept: Vec::new(),
        };
        keeper.block(&mut body, &mut Known::default(), true);
        for (fragment, tensor, span) in keeper.kept {
            let [x, t] = [fragment, tensor].map(|b| &func.buffers[b].name);
            let message = format!(
                "`{x}` still has what is made of this tile of `{t}`: it is not loaded again"
            );
            diags.push(Diagnostic::new(Severity::Remark, TOPIC, span, message));
            changed = Changed::Yes;
        }
        func.kernels[at].body = body;
    }
    changed
}

/// What the elements of a fragment are.
#[derive(Clone)]
enum Value {
    /// A tile of a tensor.
    Tile(CopyOp),
    /// At each point, this of the point.
    Points { axes: Vec<Var>, value: Expr },
}

/// What fragments have at a place of the program.
type Known = FxHashMap<Buffer, Value>;

struct Keeper<'a> {
    func: &'a Func,
    analyzer: Analyzer,
    /// Tensors that nothing changes.
    steady: FxHashSet<Buffer>,
    /// Those of loops of one iteration around.
    once: Values,
    /// What was left out: the fragment, the tensor, where.
    kept: Vec<(Buffer, Buffer, Span)>,
}

impl Keeper<'_> {
    fn block(&mut self, block: &mut Block, known: &mut Known, free: bool) {
        let mut at = 0;
        while at < block.len() {
            if free && self.keep(block, at, known) {
                continue;
            }
            self.stmt(&mut block[at], known, free);
            at += 1;
        }
    }

    /// Leaves out a load of a tile into the fragment that still has it, or has what is made of it next.
    fn keep(&mut self, block: &mut Block, at: usize, known: &Known) -> bool {
        let Some(tile) = self.tile(&block[at]) else {
            return false;
        };
        let Some(old) = known.get(&tile.dst.buffer) else {
            return false;
        };
        if !self.is_tile(old, &tile) {
            let Some(value) = block
                .get(at + 1)
                .and_then(|next| self.kept(next, &tile, old))
            else {
                return false;
            };
            if let StmtKind::For(l) = &mut block[at + 1].kind
                && let Some(StmtKind::Store { value: of, .. }) =
                    l.body.first_mut().map(|stmt| &mut stmt.kind)
            {
                *of = value;
            }
        }
        let span = block[at].span;
        self.kept.push((tile.dst.buffer, tile.src.buffer, span));
        block.remove(at);
        true
    }

    /// What a loop makes of a tile, said by what its fragment had before the tile.
    fn kept(&mut self, stmt: &Stmt, tile: &CopyOp, old: &Value) -> Option<Expr> {
        let StmtKind::For(l) = &stmt.kind else {
            return None;
        };
        let made = Written::of(self.func, l).filter(|made| made.fragment == tile.dst.buffer)?;
        if stmt.turn.is_some() {
            return None;
        }
        let points = points(l);
        let (new, old) = (self.of_tile(tile, &points), self.at(old, &points));
        let value = self.with(made.value, made.fragment, made.indices, &new)?;
        let value = self.plain(&value);
        let dtype = self.func.buffers[made.fragment].dtype;
        let own = Expr::load(made.fragment, made.indices.to_vec(), dtype);
        let value = value.rewrite(&mut |node| (*node == old).then(|| own.clone()));
        let (mut keeps, mut loads) = (false, false);
        value.walk(&mut |node| {
            keeps |= *node == own;
            loads |= *node == new;
        });
        (keeps && !loads).then_some(value)
    }

    /// What a statement leaves known.
    fn stmt(&mut self, stmt: &mut Stmt, known: &mut Known, free: bool) {
        let value = self.value(stmt, known);
        match &mut stmt.kind {
            StmtKind::For(l) if value.is_none() => match once(l) {
                Some(value) => {
                    self.once.push(value);
                    self.block(&mut l.body, known, free);
                    self.once.pop();
                }
                None => {
                    let free = free && !matches!(l.kind, LoopKind::Pipelined(_));
                    self.forget(&l.body, known);
                    self.block(&mut l.body, &mut known.clone(), free);
                }
            },
            StmtKind::While { body, .. } => {
                self.forget(body, known);
                self.block(body, &mut known.clone(), free);
            }
            StmtKind::If {
                then, otherwise, ..
            } => {
                self.block(then, &mut known.clone(), free);
                self.block(otherwise, &mut known.clone(), free);
                self.forget(then, known);
                self.forget(otherwise, known);
            }
            StmtKind::WarpGroup { .. } | StmtKind::Device(_) => known.clear(),
            _ => self.forget(std::slice::from_ref(stmt), known),
        }
        if let Some((fragment, value)) = value {
            known.insert(fragment, value);
        }
    }

    /// Drops what statements change, and what is made of that.
    fn forget(&self, stmts: &[Stmt], known: &mut Known) {
        let root = |buffer| self.func.root(buffer);
        for stmt in stmts {
            written(stmt, &mut |changed| {
                let changed = root(changed);
                known.retain(|fragment, value| {
                    let mut of = root(*fragment) == changed;
                    value.loads(&mut |buffer| of |= root(buffer) == changed);
                    !of
                });
            });
            for inner in child_blocks(stmt) {
                self.forget(inner, known);
            }
            if matches!(stmt.kind, StmtKind::WarpGroup { .. } | StmtKind::Device(_)) {
                known.clear();
            }
        }
    }

    /// The fragment that a statement writes as a whole, and what with.
    fn value(&mut self, stmt: &Stmt, known: &Known) -> Option<(Buffer, Value)> {
        if let Some(tile) = self.tile(stmt) {
            return Some((tile.dst.buffer, Value::Tile(tile)));
        }
        let StmtKind::For(l) = &stmt.kind else {
            return None;
        };
        let made = Written::of(self.func, l)?;
        if self.func.root(made.fragment) != made.fragment {
            return None;
        }
        let mut value = made.value.clone();
        if let Some(old) = known.get(&made.fragment) {
            let old = self.at(old, &points(l));
            value = self.with(&value, made.fragment, made.indices, &old)?;
        }
        let value = Value::Points {
            axes: l.axes.iter().map(|axis| axis.var).collect(),
            value: self.plain(&value),
        };
        let mut follows = true;
        value.loads(&mut |buffer| {
            let fragment = self.func.buffers[buffer].scope == Scope::Fragment;
            let own = self.func.root(buffer) == made.fragment;
            follows &= !own && (fragment || self.steady.contains(&self.func.root(buffer)));
        });
        match &value {
            Value::Points { value, .. } if value.size() > LARGEST => None,
            _ => follows.then_some((made.fragment, value)),
        }
    }

    /// The tile of a tensor that a statement loads into a whole fragment, by a copy or element by element.
    fn tile(&mut self, stmt: &Stmt) -> Option<CopyOp> {
        let mut copy = match &stmt.kind {
            StmtKind::Tile(TileOp::Copy(copy)) if copy.kind == CopyKind::Sync => copy.clone(),
            StmtKind::For(l) => as_copy(self.func, &mut self.analyzer, l)?,
            _ => return None,
        };
        let to = &self.func.buffers[copy.dst.buffer];
        let whole = to.scope == Scope::Fragment
            && self.func.root(copy.dst.buffer) == copy.dst.buffer
            && copy.dst.is_whole(to)
            && to.const_shape().is_some();
        let known = stmt.turn.is_none() && self.steady.contains(&copy.src.buffer);
        let mut names = false;
        for dim in &mut copy.src.dims {
            dim.start = self.plain(&dim.start);
            dim.extent = self.plain(&dim.extent);
            names |= dim.start.names_memory() || dim.extent.as_int().is_none();
        }
        (whole && known && !names).then_some(copy)
    }

    /// Whether what is known of a fragment is just this tile.
    fn is_tile(&mut self, value: &Value, tile: &CopyOp) -> bool {
        match value {
            Value::Tile(other) => other.src == tile.src,
            Value::Points { axes, value } => {
                let at: Vec<Expr> = axes.iter().map(|v| self.func.var_expr(*v)).collect();
                self.of_tile(tile, &at) == *value
            }
        }
    }

    /// An element of what a fragment has.
    fn at(&mut self, value: &Value, points: &[Expr]) -> Expr {
        match value {
            Value::Tile(tile) => self.of_tile(tile, points),
            Value::Points { axes, value } => {
                let value = value.rewrite(&mut |node| {
                    let var = node.as_var()?;
                    let at = axes.iter().position(|axis| *axis == var)?;
                    Some(points[at].clone())
                });
                self.analyzer.simplify(&value)
            }
        }
    }

    /// An element of a tile, as its fragment has it.
    fn of_tile(&mut self, tile: &CopyOp, points: &[Expr]) -> Expr {
        let to = &self.func.buffers[tile.dst.buffer];
        let mut moving = to.shape.iter().zip(points).filter(|(e, _)| !e.is_int(1));
        let mut indices = Vec::new();
        for dim in &tile.src.dims {
            let point = match dim.extent.is_int(1) {
                true => None,
                false => moving.next().map(|(_, point)| point.clone()),
            };
            let index = match point {
                None => dim.start.clone(),
                Some(point) => dim.start.clone() + point.cast_to(dim.start.dtype()),
            };
            indices.push(self.analyzer.simplify(&index));
        }
        let from = &self.func.buffers[tile.src.buffer];
        let element = Expr::load(tile.src.buffer, indices, from.dtype).cast_to(to.dtype);
        self.analyzer.simplify(&element)
    }

    /// A value with another one in place of the fragment's own element, which is all that it reads of it.
    fn with(&self, value: &Expr, fragment: Buffer, own: &[Expr], new: &Expr) -> Option<Expr> {
        let mut elsewhere = false;
        let value = value.rewrite(&mut |node| match node.kind() {
            ExprKind::Load { buffer, indices } if self.func.root(*buffer) == fragment => {
                let same = |(index, own): (&Expr, &Expr)| index == own;
                let is_own = *buffer == fragment && indices.iter().zip(own).all(same);
                elsewhere |= !is_own;
                is_own.then(|| new.clone())
            }
            _ => None,
        });
        (!elsewhere).then_some(value)
    }

    /// An expression outside of loops of one iteration, and simplified.
    fn plain(&mut self, e: &Expr) -> Expr {
        self.analyzer.simplify(&at_values(e, &self.once))
    }
}

impl Value {
    /// Calls `f` on every buffer that it is made of.
    fn loads(&self, f: &mut dyn FnMut(Buffer)) {
        match self {
            Value::Tile(tile) => f(tile.src.buffer),
            Value::Points { value, .. } => value.walk_memory(&mut |_, buffer, _| f(buffer)),
        }
    }
}

/// The point of an iteration.
fn points(l: &Loop) -> Vec<Expr> {
    let point = |axis: &Axis| Expr::var(axis.var, axis.stop.dtype());
    l.axes.iter().map(point).collect()
}
