//! What the points of a parallel loop may do to each other: nothing.
//!
//! Two mistakes are certain enough to refuse. An accumulation such as `s[0] += f[i]`, where
//! different points read and write one place, loses contributions. And a fragment, whose
//! elements are dealt out to threads at compile time, cannot be indexed by a loop whose extent
//! is only known at run time.

use rustc_hash::FxHashMap;
use tilewright_ir::{Block, Expr, ExprKind, Loop, LoopKind, Scope, Span, StmtKind, Var, visit};

use crate::record::Recorder;
use crate::{Result, codes};

/// Checks every parallel loop of a kernel's body.
pub(super) fn check(rec: &Recorder, body: &Block) -> Result<()> {
    for stmt in body {
        match &stmt.kind {
            StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }) => {
                let mut points = Points {
                    rec,
                    axes: l,
                    lets: FxHashMap::default(),
                };
                points.block(&l.body, false)?;
            }
            _ => {
                for child in visit::child_blocks(stmt) {
                    check(rec, child)?;
                }
            }
        }
    }
    Ok(())
}

/// One parallel loop.
struct Points<'a> {
    rec: &'a Recorder,
    axes: &'a Loop,
    /// What names inside the loop stand for.
    lets: FxHashMap<Var, Expr>,
}

impl Points<'_> {
    /// `guarded` says whether a condition may have singled out points.
    fn block(&mut self, block: &Block, guarded: bool) -> Result<()> {
        for stmt in block {
            let mut symbolic = None;
            visit::stmt_exprs(stmt, &mut |root| {
                root.walk(&mut |e| {
                    if let ExprKind::Load { buffer, indices } = e.kind()
                        && self.rec.buffer(*buffer).scope == Scope::Fragment
                        && symbolic.is_none()
                    {
                        symbolic = self.run_time_axis(indices).map(|a| (a, e.span()));
                    }
                });
            });
            if let StmtKind::Store {
                buffer, indices, ..
            } = &stmt.kind
                && self.rec.buffer(*buffer).scope == Scope::Fragment
            {
                symbolic = symbolic.or(self.run_time_axis(indices).map(|a| (a, stmt.span)));
            }
            if let Some((axis, at)) = symbolic {
                return Err(self.symbolic_index(axis, at, stmt.span));
            }
            match &stmt.kind {
                StmtKind::Let { var, value } => {
                    self.lets.insert(*var, value.clone());
                }
                StmtKind::Store {
                    buffer,
                    indices,
                    value,
                } if !guarded => {
                    let scope = self.rec.buffer(*buffer).scope;
                    let shared = matches!(scope, Scope::Global | Scope::Shared | Scope::Fragment);
                    if shared
                        && reads(&self.expand(value), *buffer, indices)
                        && let Some(axis) = self.missing_axis(indices)
                    {
                        return Err(self.accumulation(*buffer, axis, stmt.span));
                    }
                }
                StmtKind::If {
                    then, otherwise, ..
                } => {
                    self.block(then, true)?;
                    self.block(otherwise, true)?;
                }
                _ => {
                    for child in visit::child_blocks(stmt) {
                        self.block(child, guarded)?;
                    }
                }
            }
            // After a jump the rest of the body runs for some points only.
            if matches!(stmt.kind, StmtKind::Continue) {
                return Ok(());
            }
        }
        Ok(())
    }

    /// The expression with the loop's own names replaced by what they stand for.
    fn expand(&self, e: &Expr) -> Expr {
        e.rewrite(&mut |e| e.as_var().and_then(|var| self.lets.get(&var)).cloned())
    }

    fn mentions(&self, e: &Expr, var: Var) -> bool {
        let mut found = false;
        self.expand(e)
            .walk(&mut |e| found |= e.as_var() == Some(var));
        found
    }

    /// An axis with several points that no index depends on.
    fn missing_axis(&self, indices: &[Expr]) -> Option<Var> {
        let several = |e: &Expr| self.rec.const_int(e).is_none_or(|n| n > 1);
        let axes = self.axes.axes.iter().filter(|a| several(&a.stop));
        // An index loaded from memory may be anything.
        let loaded = |e: &Expr| {
            let mut found = false;
            self.expand(e)
                .walk(&mut |e| found |= matches!(e.kind(), ExprKind::Load { .. }));
            found
        };
        if indices.iter().any(loaded) {
            return None;
        }
        axes.map(|a| a.var)
            .find(|var| !indices.iter().any(|i| self.mentions(i, *var)))
    }

    /// An axis of run-time extent that an index depends on.
    fn run_time_axis(&self, indices: &[Expr]) -> Option<Var> {
        let mut axes = self.axes.axes.iter();
        let axis = axes.find(|a| {
            self.rec.const_int(&a.stop).is_none() && indices.iter().any(|i| self.mentions(i, a.var))
        })?;
        Some(axis.var)
    }

    fn symbolic_index(&self, axis: Var, at: Span, stmt: Span) -> crate::Error {
        let name = &self.rec.func.vars[axis].name;
        self.rec
            .error(
                codes::FRAGMENT_INDEX,
                if at.is_none() { stmt } else { at },
                format!(
                    "a fragment is indexed by `{name}`, whose extent is known at run time only"
                ),
            )
            .note("the elements of a fragment are dealt out to the threads at compile time")
            .help("loop over the fragment's own extent and guard the body with an `if`")
            .into()
    }

    fn accumulation(&self, buffer: tilewright_ir::Buffer, axis: Var, at: Span) -> crate::Error {
        let name = &self.rec.func.vars[axis].name;
        self.rec
            .error(
                codes::PARALLEL_ACCUMULATION,
                at,
                format!(
                    "all points along `{name}` update one element of {}, at the same time",
                    self.rec.buffer_name(buffer)
                ),
            )
            .help("use `T.reduce_sum`, `T.alloc_reducer` or `T.atomic_add`, or make the loop over it serial")
            .into()
    }
}

/// Whether the value reads the very element.
fn reads(value: &Expr, buffer: tilewright_ir::Buffer, indices: &[Expr]) -> bool {
    let mut found = false;
    value.walk(&mut |e| {
        if let ExprKind::Load {
            buffer: b,
            indices: i,
        } = e.kind()
        {
            found |= *b == buffer && i.as_slice() == indices;
        }
    });
    found
}
