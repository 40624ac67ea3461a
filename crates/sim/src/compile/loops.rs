//! Compilation of loops: serial and masked ones, parallel ones, persistent ones.

use tilewright_ir::uniform::{Among, Uniformity};
use tilewright_ir::visit::{stmt_exprs, walk_stmts};
use tilewright_ir::{Axis, Block, Expr, ExprKind, Func, Loop, Scope, Stmt, StmtKind, ThreadOp};

use crate::compile::names::Compiled;
use crate::compile::stmt::{Builder, Label, LoopFrame};
use crate::compile::{expr, races};
use crate::error::{RunError, codes};
use crate::program::{AxisCode, Int, Op, Parallel, Wave};

impl Builder<'_, '_> {
    fn axis(&mut self, axis: &Axis) -> Compiled<AxisCode> {
        let scalar = self.names.func.vars[axis.var].dtype.scalar;
        let start = expr::int(self.names, &axis.start, 0)?;
        let stop = expr::int(self.names, &axis.stop, 0)?;
        let step = expr::int(self.names, &axis.step, 0)?;
        if step.is_zero() {
            return Err(RunError::new(
                codes::LOOP_STEP,
                axis.step.span(),
                "a loop with a step of zero",
            ));
        }
        let var = self.names.define_scalar(axis.var, self.span)?;
        Ok(AxisCode {
            var,
            name: self.names.func.vars[axis.var].name.clone(),
            scalar,
            start,
            stop,
            step,
        })
    }

    pub(super) fn serial(&mut self, stmt: &Stmt, axis: &Axis, body: &Block) -> Compiled<()> {
        let axis = Box::new(self.axis(axis)?);
        let (next, end) = (self.label(), self.label());
        if self.leaves_apart(stmt) {
            self.emit(Op::MaskFor { axis: axis.clone() });
            self.bind(next);
            self.emit(Op::MaskForNext { axis, end });
            self.masked_loop(body, next, end)
        } else {
            let state = self.names.fresh();
            self.names.slots += 2;
            self.emit(Op::ForStart {
                axis: axis.clone(),
                state,
            });
            self.bind(next);
            self.emit(Op::ForNext { axis, state, end });
            self.plain_loop(body, next, end)
        }
    }

    pub(super) fn while_loop(&mut self, stmt: &Stmt, cond: &Expr, body: &Block) -> Compiled<()> {
        let (next, end) = (self.label(), self.label());
        if self.leaves_apart(stmt) {
            self.emit(Op::MaskWhile);
            self.bind(next);
            let cond = expr::int(self.names, cond, 0)?;
            self.emit(Op::MaskWhileNext { cond, end });
            self.masked_loop(body, next, end)?;
        } else {
            self.bind(next);
            let cond = expr::int(self.names, cond, 0)?;
            self.emit(Op::Branch {
                cond,
                otherwise: end,
            });
            self.plain_loop(body, next, end)?;
        }
        self.names.traffic.spins |= waits_for_memory(self.names.func, cond, body);
        Ok(())
    }

    /// Whether some threads may leave the loop, or an iteration of it, before others.
    fn leaves_apart(&self, stmt: &Stmt) -> bool {
        let apart = |u: &Uniformity<'_>| {
            let way = u.inside(stmt).then(u.jumps_inside(stmt).continues);
            way.among == Among::Thread
        };
        !self.names.in_point && self.names.uniformity.as_ref().is_some_and(apart)
    }

    fn plain_loop(&mut self, body: &Block, next: Label, end: Label) -> Compiled<()> {
        self.loops.push(LoopFrame::Plain { next, end });
        self.block(body)?;
        self.loops.pop();
        self.emit(Op::Jump(next));
        self.bind(end);
        Ok(())
    }

    fn masked_loop(&mut self, body: &Block, next: Label, end: Label) -> Compiled<()> {
        self.loops.push(LoopFrame::Masked);
        self.reconverge.push(next);
        self.block(body)?;
        self.reconverge.pop();
        self.loops.pop();
        self.emit(Op::Jump(next));
        self.bind(end);
        let none = self.outer();
        self.emit(Op::MaskLoopEnd { none });
        Ok(())
    }

    pub(super) fn parallel(&mut self, l: &Loop) -> Compiled<()> {
        if self.names.in_point {
            // Directly nested loops are one set of points: the outer ones stay fixed.
            return self.nested_points(l);
        }
        let outer_uniform = std::mem::take(&mut self.names.uniform);
        self.names.tracked = races::suspects(self.names.func, l)
            .into_iter()
            .map(|b| {
                let number = self.names.buffer(b)?;
                Ok(self.names.buffers[number as usize].space)
            })
            .collect::<Compiled<_>>()?;
        self.names.in_point = true;
        let axes: Compiled<Vec<AxisCode>> = l.axes.iter().map(|a| self.axis(a)).collect();
        let axes = axes?;
        let (point_end, end) = (self.label(), self.label());
        let at = self.code.ops.len();
        self.emit(Op::Halt);
        self.loops.push(LoopFrame::Point { end: point_end });
        self.block(&l.body)?;
        self.loops.pop();
        self.bind(point_end);
        self.emit(Op::EndPoint);
        self.bind(end);
        let tracked = !self.names.tracked.is_empty();
        self.names.in_point = false;
        self.names.tracked.clear();
        self.names.point_allocs.clear();
        let uniform = std::mem::replace(&mut self.names.uniform, outer_uniform);
        self.code.ops[at] = Op::Parallel(Box::new(Parallel {
            axes,
            end,
            groups: self.groups,
            carried: std::mem::take(&mut self.carried),
            uniform,
            tracked,
        }));
        Ok(())
    }

    /// A parallel loop inside of one: its points are visited for each point of the outer one.
    fn nested_points(&mut self, l: &Loop) -> Compiled<()> {
        let mut ends = Vec::new();
        for axis in &l.axes {
            let axis = Box::new(self.axis(axis)?);
            let (next, end) = (self.label(), self.label());
            let state = self.names.fresh();
            self.names.slots += 2;
            self.emit(Op::ForStart {
                axis: axis.clone(),
                state,
            });
            self.bind(next);
            self.emit(Op::ForNext { axis, state, end });
            ends.push((next, end));
        }
        let inner = self.label();
        self.loops.push(LoopFrame::Point { end: inner });
        self.block(&l.body)?;
        self.loops.pop();
        self.bind(inner);
        for (next, end) in ends.into_iter().rev() {
            self.emit(Op::Jump(next));
            self.bind(end);
        }
        Ok(())
    }

    pub(super) fn persistent(
        &mut self,
        stmt: &Stmt,
        axes: &[Axis],
        [wave_size, index, group_size]: [&Expr; 3],
        body: &Block,
    ) -> Compiled<()> {
        let varying = [wave_size, index, group_size]
            .iter()
            .any(|e| self.names.varying(e));
        if varying || self.leaves_apart(stmt) {
            return Err(RunError::new(
                codes::DIVERGENT_COLLECTIVE,
                self.span,
                "threads of a block disagree about a persistent loop",
            ));
        }
        let wave_size = expr::int(self.names, wave_size, 0)?;
        let index = expr::int(self.names, index, 0)?;
        let group_size = expr::int(self.names, group_size, 0)?;
        let axes: Compiled<Vec<AxisCode>> = axes.iter().map(|a| self.axis(a)).collect();
        let state = self.names.fresh();
        let (next, end) = (self.label(), self.label());
        self.emit(Op::WaveStart { state });
        self.bind(next);
        self.emit(Op::WaveNext(Box::new(Wave {
            state,
            axes: axes?,
            wave_size,
            index,
            group_size,
            end,
        })));
        self.plain_loop(body, next, end)
    }
}

/// Whether a `while` loop looks at global memory again and again.
pub(crate) fn waits_for_memory(func: &Func, cond: &Expr, body: &Block) -> bool {
    let mut waits = false;
    let mut look = |e: &Expr| {
        e.walk(&mut |e| {
            if let ExprKind::Load { buffer, .. } = e.kind() {
                let scope = func.buffers[func.root(*buffer)].scope;
                waits |= scope == Scope::Global;
            }
        });
    };
    look(cond);
    let mut atomics = false;
    walk_stmts(body, &mut |stmt| {
        stmt_exprs(stmt, &mut look);
        atomics |= matches!(
            stmt.kind,
            StmtKind::Thread(
                ThreadOp::AtomicLoad { .. }
                    | ThreadOp::AtomicRmw {
                        result: Some(_),
                        ..
                    }
            )
        );
    });
    waits || atomics
}

impl Int {
    fn is_zero(&self) -> bool {
        matches!(self, Int::Const(0))
    }
}
