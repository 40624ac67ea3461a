//! Whether an iteration writes a buffer before it reads it.
//!
//! A buffer that every iteration writes, all of it, before anything reads it carries nothing
//! from one iteration to the next, so iterations may have versions of their own. The scan goes
//! through statements in program order and remembers under which conditions the buffer has been
//! written as a whole.

use tilewright_ir::operand::{How, Operand};
use tilewright_ir::visit::child_blocks;
use tilewright_ir::{Buffer, Expr, Func, Loop, LoopKind, Region, Span, Stmt, StmtKind};

use super::super::effects::Effects;

/// What a run of statements does with a buffer first.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum First {
    /// Reads something that it has not written; whether it has written any of it by then.
    Reads { at: Span, after_a_write: bool },
    /// Writes all of it, whatever the conditions.
    Writes,
    /// Neither.
    Nothing,
}

/// What the statements do first with the storage of `buffer`. `stable` says whether a condition
/// has one value all along.
pub(super) fn first_use(
    func: &Func,
    buffer: Buffer,
    stmts: &[Stmt],
    stable: &dyn Fn(&Expr) -> bool,
) -> First {
    let mut scan = Scan {
        func,
        buffer,
        stable,
        whole: Vec::new(),
        parts: Vec::new(),
        wrote: false,
    };
    match scan.block(stmts, &mut Vec::new()) {
        Some(at) => First::Reads {
            at,
            after_a_write: scan.wrote,
        },
        None if scan.whole.iter().any(|conds| conds.is_empty()) => First::Writes,
        None => First::Nothing,
    }
}

struct Scan<'a> {
    func: &'a Func,
    buffer: Buffer,
    stable: &'a dyn Fn(&Expr) -> bool,
    /// The buffer is written as a whole where all conditions of one of these hold.
    whole: Vec<Vec<Expr>>,
    /// Constant parts of it that are written, with their conditions.
    parts: Vec<(Vec<Expr>, Part)>,
    wrote: bool,
}

/// A constant rectangle: start and extent of each dimension.
type Part = Vec<(i128, i128)>;

impl Scan<'_> {
    /// The first read of what is not written under these conditions.
    fn block(&mut self, stmts: &[Stmt], conds: &mut Vec<Expr>) -> Option<Span> {
        stmts.iter().find_map(|stmt| self.stmt(stmt, conds))
    }

    fn stmt(&mut self, stmt: &Stmt, conds: &mut Vec<Expr>) -> Option<Span> {
        match &stmt.kind {
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                if self.reads(&Effects::of_expr(self.func, cond), conds) {
                    return Some(stmt.span);
                }
                for (cond, block) in [(cond.clone(), then), (!cond.clone(), otherwise)] {
                    let keep = (self.stable)(&cond);
                    let before = self.whole.len();
                    conds.push(cond);
                    let found = self.block(block, conds);
                    conds.pop();
                    if found.is_some() {
                        return found;
                    }
                    if !keep {
                        self.whole.truncate(before);
                    }
                }
                None
            }
            StmtKind::For(l) if !matches!(l.kind, LoopKind::Parallel { .. }) => {
                let mut bounds = Effects::default();
                for axis in &l.axes {
                    for e in [&axis.start, &axis.stop, &axis.step] {
                        bounds.reads.extend(Effects::of_expr(self.func, e).reads);
                    }
                }
                if self.reads(&bounds, conds) {
                    return Some(stmt.span);
                }
                let runs = l
                    .axes
                    .iter()
                    .all(|a| a.const_trip_count().is_some_and(|n| n > 0));
                self.nested(&l.body, conds, runs)
            }
            StmtKind::While { cond, body } => {
                if self.reads(&Effects::of_expr(self.func, cond), conds) {
                    return Some(stmt.span);
                }
                self.nested(body, conds, false)
            }
            StmtKind::WarpGroup { body, .. } => self.nested(body, conds, false),
            _ => self.leaf(stmt, conds),
        }
    }

    /// A block that certainly runs, or may not.
    fn nested(&mut self, block: &[Stmt], conds: &mut Vec<Expr>, runs: bool) -> Option<Span> {
        let before = self.whole.len();
        let found = self.block(block, conds);
        if !runs {
            self.whole.truncate(before);
        }
        found
    }

    fn leaf(&mut self, stmt: &Stmt, conds: &[Expr]) -> Option<Span> {
        let effects = Effects::of(self.func, stmt);
        if self.reads(&effects, conds) {
            return Some(stmt.span);
        }
        if effects.writes.contains(&self.buffer) {
            self.wrote = true;
            if self.writes_all(stmt) {
                self.add_whole(conds.to_vec());
            } else if let Some(part) = self.part(stmt) {
                self.parts.push((conds.to_vec(), part));
                if self.parts_cover(conds) {
                    self.add_whole(conds.to_vec());
                }
            }
        }
        None
    }

    fn reads(&self, effects: &Effects, conds: &[Expr]) -> bool {
        effects.reads.contains(&self.buffer)
            && !self
                .whole
                .iter()
                .any(|known| known.iter().all(|c| conds.contains(c)))
    }

    /// Remembers the conditions; what holds with a condition and with its opposite holds
    /// without it.
    fn add_whole(&mut self, conds: Vec<Expr>) {
        for at in 0..conds.len() {
            let opposite = !conds[at].clone();
            let other = self.whole.iter().any(|known| {
                known.len() == conds.len()
                    && known.iter().enumerate().all(|(i, c)| {
                        if i == at {
                            *c == opposite || !c.clone() == conds[at]
                        } else {
                            *c == conds[i]
                        }
                    })
            });
            if other {
                let mut fewer = conds.clone();
                fewer.remove(at);
                self.add_whole(fewer);
            }
        }
        self.whole.push(conds);
    }

    fn writes_all(&self, stmt: &Stmt) -> bool {
        if let StmtKind::For(l) = &stmt.kind {
            return self.loop_writes_all(l);
        }
        let Some(region) = written_region(stmt) else {
            return false;
        };
        let data = &self.func.buffers[region.buffer];
        region.is_whole(data) && self.is_all_of_it(region.buffer)
    }

    /// Whether a view shows all of the storage.
    fn is_all_of_it(&self, buffer: Buffer) -> bool {
        let bits = |b: Buffer| {
            let data = &self.func.buffers[b];
            let count = data
                .shape
                .iter()
                .try_fold(1i128, |n, e| n.checked_mul(e.as_int()?));
            count?.checked_mul(data.dtype.bits().into())
        };
        buffer == self.buffer
            || self.func.root(buffer) == self.buffer
                && bits(buffer).is_some()
                && bits(buffer) == bits(self.buffer)
    }

    /// Whether a parallel loop stores to each element, at the point of its index.
    fn loop_writes_all(&self, l: &Loop) -> bool {
        let mut body = &l.body;
        let mut axes: Vec<_> = l.axes.iter().collect();
        while let [stmt] = &body[..]
            && let StmtKind::For(inner) = &stmt.kind
            && matches!(inner.kind, LoopKind::Parallel { .. })
        {
            axes.extend(&inner.axes);
            body = &inner.body;
        }
        body.iter().any(|stmt| {
            let StmtKind::Store {
                buffer, indices, ..
            } = &stmt.kind
            else {
                return false;
            };
            let shape = &self.func.buffers[*buffer].shape;
            let mut used = Vec::new();
            self.is_all_of_it(*buffer)
                && indices.len() == shape.len()
                && indices.iter().zip(shape).all(|(index, extent)| {
                    let axis = axes.iter().find(|a| index.as_var() == Some(a.var));
                    let Some(axis) = axis else {
                        return extent.is_int(1) && index.is_int(0);
                    };
                    let fresh = !used.contains(&axis.var);
                    used.push(axis.var);
                    fresh && axis.start.is_int(0) && axis.step.is_int(1) && axis.stop == *extent
                })
        })
    }

    fn part(&self, stmt: &Stmt) -> Option<Part> {
        let region = written_region(stmt)?;
        if region.buffer != self.buffer {
            return None;
        }
        let dims = region.dims.iter();
        dims.map(|d| Some((d.start.as_int()?, d.extent.as_int()?)))
            .collect()
    }

    /// Whether the parts written under these conditions, none over another, fill the buffer.
    fn parts_cover(&self, conds: &[Expr]) -> bool {
        let mut apart: Vec<&Part> = Vec::new();
        for (under, part) in &self.parts {
            let clear = apart.iter().all(|other| {
                let mut dims = other.iter().zip(part);
                dims.any(|(a, b)| a.0 + a.1 <= b.0 || b.0 + b.1 <= a.0)
            });
            if clear && under.iter().all(|c| conds.contains(c)) {
                apart.push(part);
            }
        }
        let size = |part: &Part| part.iter().map(|d| d.1).product::<i128>();
        let covered: i128 = apart.into_iter().map(size).sum();
        let shape = &self.func.buffers[self.buffer].shape;
        let total = shape.iter().try_fold(1i128, |n, e| Some(n * e.as_int()?));
        total == Some(covered)
    }
}

/// The region that a tile op overwrites.
fn written_region(stmt: &Stmt) -> Option<&Region> {
    let StmtKind::Tile(op) = &stmt.kind else {
        return None;
    };
    let mut written = None;
    op.operands(&mut |operand| {
        if let Operand::Region {
            region,
            how: How::WRITE,
        } = operand
        {
            written = Some(region);
        }
    });
    written
}

/// Whether anything in the statements, however deep, satisfies the test.
pub(super) fn any_stmt(stmts: &[Stmt], test: &dyn Fn(&Stmt) -> bool) -> bool {
    stmts
        .iter()
        .any(|s| test(s) || child_blocks(s).into_iter().any(|b| any_stmt(b, test)))
}
