//! `if`, `for`, `while`, `with`: decided at compile time on Python values, recorded otherwise.

use std::rc::Rc;

use tilewright_ir::{Axis, Block, Expr, Loop, LoopKind, Span, Stmt, StmtKind, VarKind, visit};

use crate::codes;
use crate::eval::Stage;
use crate::eval::scope::{Binding, Dead, Logged};
use crate::eval::stmt::Flow;
use crate::host::HostObject;
use crate::lang::pipelined::Turns;
use crate::record::emit::BlockKind;
use crate::syntax::Symbol;
use crate::syntax::ast::{self, ExprKind, IfArm, WithItem};
use crate::value::{AxisSpec, Frame, LoopSpec, PyRange, Value};
use crate::{Error, Result};

/// What `break` and `continue` speak of.
#[derive(Clone, Copy, Debug)]
pub enum LoopContext {
    /// A loop of the kernel.
    Kernel { parallel: bool },
    /// A loop that runs at compile time, with the number of blocks open around it.
    Python { blocks: usize },
}

/// Arms of one run-time `if`: each nests in the one before.
const MAX_ARMS: usize = 150;

impl Stage {
    pub(super) fn exec_if(
        &mut self,
        arms: &[IfArm],
        orelse: &[ast::Stmt],
        span: Span,
    ) -> Result<Flow> {
        let Some((first, rest)) = arms.split_first() else {
            return self.exec_suite(orelse);
        };
        let cond = self.eval(&first.test)?;
        if self.runtime_bool(&cond)?.is_none() {
            return match self.rec.truth(&cond, first.test.span)? {
                true => self.exec_suite(&first.body),
                false => self.exec_if(rest, orelse, span),
            };
        }
        if arms.len() > MAX_ARMS {
            return Err(self
                .error(
                    codes::NESTED_TOO_DEEP,
                    span,
                    format!("a run-time `if` with more than {MAX_ARMS} arms"),
                )
                .into());
        }
        let cond = self.rec.condition(&cond, first.test.span)?;
        if !self.rec.in_kernel() {
            return Err(self.rec.outside_kernel("an `if` on a run-time value", span));
        }
        self.open_block(BlockKind::Branch, span)?;
        let flow = self.deeper(span, |s| s.exec_suite(&first.body))?;
        self.no_flow(flow, span)?;
        let (mut then, mut log) = self.take_block();
        self.undo_names(&log);
        self.open_block(BlockKind::Branch, span)?;
        let flow = self.deeper(span, |s| s.exec_if(rest, orelse, span))?;
        self.no_flow(flow, span)?;
        let (mut otherwise, other_log) = self.take_block();
        self.undo_names(&other_log);
        log.extend(other_log);
        self.bury(log);
        if self
            .rec
            .emit_groups(&cond, &mut then, &mut otherwise, span)?
        {
            return Ok(Flow::Next);
        }
        self.rec.emit_at(
            StmtKind::If {
                cond,
                then,
                otherwise,
            },
            span,
        )?;
        Ok(Flow::Next)
    }

    /// Names bound in an arm hold on one path only, so none of them can be used afterwards.
    fn bury(&mut self, log: Vec<Logged>) {
        for entry in log {
            let dead = Dead {
                bound_at: entry.span,
                block: BlockKind::Branch,
            };
            entry.scope.set(entry.name, Binding::Dead(dead));
            self.log(entry);
        }
    }

    /// Control flow that leaves a run-time branch at compile time.
    fn no_flow(&self, flow: Flow, span: Span) -> Result<()> {
        match flow {
            Flow::Next | Flow::Jumped => Ok(()),
            Flow::Break | Flow::Continue | Flow::Return(_) => Err(self
                .error(
                    codes::CONTROL_FLOW,
                    span,
                    "leaving a compile-time loop or function on a run-time condition",
                )
                .into()),
        }
    }

    pub(super) fn exec_for(
        &mut self,
        target: &ast::Expr,
        iter: &ast::Expr,
        body: &[ast::Stmt],
        orelse: &[ast::Stmt],
        span: Span,
    ) -> Result<Flow> {
        let over = self.eval(iter)?;
        let spec = match &over {
            Value::Loop(spec) => Some(spec.clone()),
            // In a kernel `range` is a serial loop; in plain Python it is a range.
            Value::Range(range) if self.traced && self.rec.in_kernel() => {
                Some(Rc::new(self.range_loop(*range, iter.span)?))
            }
            _ => None,
        };
        let Some(spec) = spec else {
            return self.python_for(target, &over, iter.span, body, orelse, span);
        };
        if !orelse.is_empty() {
            return Err(self.unsupported("for … else on a loop of the kernel", span));
        }
        match &*spec {
            LoopSpec::Bound(indices) => {
                let value = one_or_tuple(indices.clone());
                self.bind_pattern(target, value)?;
                self.exec_suite(body)
            }
            LoopSpec::Axes { kind, axes, turns } => {
                if !self.rec.in_kernel() {
                    return Err(self.rec.outside_kernel("a loop of the kernel", span));
                }
                self.kernel_for(target, (kind, turns.as_ref()), axes, body, span)?;
                Ok(Flow::Next)
            }
        }
    }

    fn range_loop(&self, range: PyRange, span: Span) -> Result<LoopSpec> {
        let axis = AxisSpec {
            start: self.rec.int_expr(range.start, span)?,
            stop: self.rec.int_expr(range.stop, span)?,
            step: self.rec.int_expr(range.step, span)?,
        };
        Ok(LoopSpec::new(LoopKind::Serial, vec![axis]))
    }

    fn python_for(
        &mut self,
        target: &ast::Expr,
        over: &Value,
        over_span: Span,
        body: &[ast::Stmt],
        orelse: &[ast::Stmt],
        span: Span,
    ) -> Result<Flow> {
        let items = self.iterate(over, over_span)?;
        let blocks = self.rec.blocks.len();
        for item in items {
            self.rec.charge(1, span)?;
            self.bind_pattern(target, item)?;
            self.loops.push(LoopContext::Python { blocks });
            let flow = self.exec_suite(body);
            self.loops.pop();
            match flow? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => return Ok(Flow::Next),
                flow @ (Flow::Return(_) | Flow::Jumped) => return Ok(flow),
            }
        }
        self.exec_suite(orelse)
    }

    fn kernel_for(
        &mut self,
        target: &ast::Expr,
        (kind, turns): (&LoopKind, Option<&Turns>),
        axes: &[AxisSpec],
        body: &[ast::Stmt],
        span: Span,
    ) -> Result<()> {
        let parallel = matches!(kind, LoopKind::Parallel { .. });
        if self.rec.in_parallel()
            && matches!(kind, LoopKind::Pipelined(_) | LoopKind::Persistent { .. })
        {
            return Err(self
                .error(
                    codes::BAD_LOOP,
                    span,
                    "a pipelined or persistent loop cannot stand inside `T.Parallel`",
                )
                .into());
        }
        let joint = parallel || matches!(kind, LoopKind::Persistent { .. });
        let names = self.axis_names(target, axes.len());
        let block_kind = if parallel {
            BlockKind::Parallel
        } else {
            BlockKind::Loop
        };
        let mut ir_axes = Vec::with_capacity(axes.len());
        let mut indices = Vec::with_capacity(axes.len());
        for (axis, name) in axes.iter().zip(names) {
            let var = self
                .rec
                .new_var(name, axis.stop.dtype(), VarKind::Loop, target.span);
            if let Some(bounds) = self.axis_bounds(axis) {
                self.rec.var_bounds.insert(var, bounds);
            }
            if parallel {
                self.rec.parallel_vars.push(var);
            }
            indices.push(self.rec.var_expr(var).with_span(target.span));
            ir_axes.push(Axis {
                var,
                start: axis.start.clone(),
                stop: axis.stop.clone(),
                step: axis.step.clone(),
            });
        }
        let blocks = if joint { 1 } else { axes.len() };
        for _ in 0..blocks {
            self.open_block(block_kind, span)?;
        }
        self.bind_pattern(target, one_or_tuple(indices))?;
        self.loops.push(LoopContext::Kernel { parallel });
        let flow = self.exec_suite(body);
        self.loops.pop();
        if parallel {
            self.rec
                .parallel_vars
                .truncate(self.rec.parallel_vars.len() - axes.len());
        }
        match flow? {
            Flow::Next | Flow::Jumped => {}
            Flow::Break | Flow::Continue | Flow::Return(_) => {
                return Err(self.return_in_block(span));
            }
        }
        if joint {
            let body = self.close_block();
            return self.emit_loop(kind.clone(), ir_axes, body, span);
        }
        for axis in ir_axes.into_iter().rev() {
            let mut body = self.close_block();
            if let Some(turns) = turns {
                turns.give(&self.rec, &mut body)?;
            }
            self.emit_loop(kind.clone(), vec![axis], body, span)?;
        }
        Ok(())
    }

    /// Emits a loop; parallel loops directly inside each other are one region.
    fn emit_loop(
        &mut self,
        kind: LoopKind,
        mut axes: Vec<Axis>,
        mut body: Block,
        span: Span,
    ) -> Result<()> {
        if matches!(kind, LoopKind::Parallel { .. }) {
            let is_parallel = |s: &Stmt| matches!(&s.kind, StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }));
            if body.len() == 1 && is_parallel(&body[0]) {
                if let Some(Stmt {
                    kind: StmtKind::For(inner),
                    ..
                }) = body.pop()
                {
                    axes.extend(inner.axes);
                    body = inner.body;
                }
            } else {
                let mut nested = None;
                visit::walk_stmts(&body, &mut |s| {
                    if is_parallel(s) {
                        nested.get_or_insert(s.span);
                    }
                });
                if let Some(at) = nested {
                    return Err(self
                        .error(
                            codes::BAD_LOOP,
                            at,
                            "`T.Parallel` inside `T.Parallel` with other statements between",
                        )
                        .also(span, "the outer loop")
                        .help("make one loop of both: `for i, j in T.Parallel(m, n)`")
                        .into());
                }
            }
        }
        self.rec
            .emit_at(StmtKind::For(Loop { kind, axes, body }), span)
    }

    /// Smallest and largest value of a loop index, where the bounds are known.
    fn axis_bounds(&self, axis: &AxisSpec) -> Option<(i128, i128)> {
        let (start_lo, start_hi) = self.rec.range_of(&axis.start)?;
        let (stop_lo, stop_hi) = self.rec.range_of(&axis.stop)?;
        let step = self.rec.const_int(&axis.step)?;
        Some(match step {
            s if s > 0 => {
                let constant = start_lo == start_hi && stop_lo == stop_hi && stop_hi > start_lo;
                let last = if constant {
                    start_lo + (stop_hi - 1 - start_lo) / s * s
                } else {
                    stop_hi - 1
                };
                (start_lo, last.max(start_lo))
            }
            _ => ((stop_lo + 1).min(start_lo), start_hi),
        })
    }

    /// Names for the axes from the loop's target.
    fn axis_names(&self, target: &ast::Expr, count: usize) -> Vec<String> {
        let text = |name: Symbol| self.symbols.text(name).to_string();
        let names: Vec<Option<String>> = match &target.kind {
            ExprKind::Tuple(items) | ExprKind::List(items) => items
                .iter()
                .map(|t| match t.kind {
                    ExprKind::Name(name) => Some(text(name)),
                    _ => None,
                })
                .collect(),
            ExprKind::Name(name) if count == 1 => vec![Some(text(*name))],
            ExprKind::Name(name) => (0..count)
                .map(|i| Some(format!("{}{i}", text(*name))))
                .collect(),
            _ => Vec::new(),
        };
        (0..count)
            .map(|i| match names.get(i) {
                Some(Some(name)) => name.clone(),
                _ => format!("i{i}"),
            })
            .collect()
    }

    pub(super) fn exec_while(
        &mut self,
        test: &ast::Expr,
        body: &[ast::Stmt],
        orelse: &[ast::Stmt],
        span: Span,
    ) -> Result<Flow> {
        let before = self.rec.recorded();
        let cond = self.eval(test)?;
        if self.runtime_bool(&cond)?.is_some() {
            if !orelse.is_empty() {
                return Err(self.unsupported("while … else on a run-time condition", span));
            }
            if !self.rec.in_kernel() {
                return Err(self
                    .rec
                    .outside_kernel("a `while` on a run-time value", span));
            }
            let mut cond = self.rec.condition(&cond, test.span)?;
            // What the condition does, such as an atomic load, is done before each iteration.
            let prelude = self.rec.take_recorded(before);
            self.open_block(BlockKind::While, span)?;
            if !prelude.is_empty() {
                for stmt in prelude {
                    self.rec.emit_at(stmt.kind, stmt.span)?;
                }
                let leave = StmtKind::If {
                    cond: self.rec.logical_not(cond, test.span)?,
                    then: vec![Stmt::new(StmtKind::Break, test.span)],
                    otherwise: Vec::new(),
                };
                self.rec.emit_at(leave, test.span)?;
                cond = Expr::bool(true).with_span(test.span);
            }
            self.loops.push(LoopContext::Kernel { parallel: false });
            let flow = self.exec_suite(body);
            self.loops.pop();
            match flow? {
                Flow::Next | Flow::Jumped => {}
                Flow::Break | Flow::Continue | Flow::Return(_) => {
                    return Err(self.return_in_block(span));
                }
            }
            let body = self.close_block();
            self.rec.emit_at(StmtKind::While { cond, body }, span)?;
            return Ok(Flow::Next);
        }
        if self.traced && self.rec.in_kernel() {
            if self.rec.truth(&cond, test.span)? {
                return Err(self
                    .error(
                        codes::CONTROL_FLOW,
                        test.span,
                        "the condition is true at compile time, so the loop never ends",
                    )
                    .help("loop on a `T.alloc_var` or an element that the body changes")
                    .into());
            }
            let warning = tilewright_ir::Diagnostic::warning(
                codes::UNREACHABLE,
                span,
                "the condition is false at compile time, so the loop never runs",
            );
            self.rec.warn(warning);
            return Ok(Flow::Next);
        }
        self.python_while(cond, test, body, orelse, span)
    }

    fn python_while(
        &mut self,
        mut cond: Value,
        test: &ast::Expr,
        body: &[ast::Stmt],
        orelse: &[ast::Stmt],
        span: Span,
    ) -> Result<Flow> {
        let blocks = self.rec.blocks.len();
        while self.rec.truth(&cond, test.span)? {
            self.rec.charge(1, span)?;
            self.loops.push(LoopContext::Python { blocks });
            let flow = self.exec_suite(body);
            self.loops.pop();
            match flow? {
                Flow::Next | Flow::Continue => {}
                Flow::Break => return Ok(Flow::Next),
                flow @ (Flow::Return(_) | Flow::Jumped) => return Ok(flow),
            }
            cond = self.eval(test)?;
        }
        self.exec_suite(orelse)
    }

    /// `break` or `continue`.
    pub(crate) fn exec_jump(&mut self, leave: bool, span: Span) -> Result<Flow> {
        let word = if leave { "break" } else { "continue" };
        match self.loops.last() {
            None => {
                let message = format!("`{word}` outside a loop");
                Err(self.error(codes::CONTROL_FLOW, span, message).into())
            }
            Some(LoopContext::Kernel { parallel: true }) if leave => Err(self
                .error(codes::CONTROL_FLOW, span, "`break` inside `T.Parallel`")
                .note("its points run in no order, so there is nothing to leave")
                .help("guard the rest of the body with an `if`, or use `continue`")
                .into()),
            Some(LoopContext::Kernel { .. }) => {
                let kind = if leave {
                    StmtKind::Break
                } else {
                    StmtKind::Continue
                };
                self.rec.emit_at(kind, span)?;
                Ok(Flow::Jumped)
            }
            Some(LoopContext::Python { blocks }) if self.rec.blocks.len() > *blocks => Err(self
                .error(
                    codes::CONTROL_FLOW,
                    span,
                    format!("`{word}` on a run-time condition in a loop that runs at compile time"),
                )
                .help("loop with `T.serial` instead of over a Python list")
                .into()),
            Some(LoopContext::Python { .. }) if leave => Ok(Flow::Break),
            Some(LoopContext::Python { .. }) => Ok(Flow::Continue),
        }
    }

    pub(super) fn return_in_block(&self, span: Span) -> Error {
        self.error(
            codes::CONTROL_FLOW,
            span,
            "`return` inside a loop, branch or kernel that runs on the device",
        )
        .help(match self.return_base > 0 {
            true => "assign the result to a variable and return it at the end",
            false => {
                "write results into tensors; `T.empty` outputs are returned behind the suite of \
                 `T.Kernel`"
            }
        })
        .into()
    }

    pub(super) fn bare_return_in_block(&self, span: Span) -> Error {
        self.error(
            codes::CONTROL_FLOW,
            span,
            "`return` in a kernel: its threads cannot leave it early",
        )
        .note("all threads of a block come to its barriers and tile statements")
        .help("put what follows under an `if` with the opposite condition; at the end leave it out")
        .into()
    }

    pub(super) fn exec_with(
        &mut self,
        items: &[WithItem],
        body: &[ast::Stmt],
        span: Span,
    ) -> Result<Flow> {
        let mut entered = Vec::with_capacity(items.len());
        for item in items {
            let span = item.context.span;
            let context = match self.eval(&item.context)? {
                Value::Frame(frame) => Context::Kernel(frame),
                Value::Host(object) => Context::Host(object),
                Value::Opaque(o) => return Err(self.rec.opaque_error(&o, span)),
                other => {
                    let message = format!("{} cannot be used in `with`", other.type_name());
                    return Err(self.error(codes::WRONG_TYPE, span, message).into());
                }
            };
            let bound = self.enter(&context, span)?;
            if let Some(target) = &item.target {
                self.check_names(target, &bound)?;
                self.rename(target, &bound);
                self.bind_pattern(target, bound)?;
            }
            entered.push(context);
        }
        let flow = self.exec_suite(body)?;
        if let Flow::Return(_) = flow
            && self.rec.blocks.len() > self.return_base
        {
            return Err(self.return_in_block(span));
        }
        for context in entered.into_iter().rev() {
            self.exit(&context, span)?;
        }
        Ok(flow)
    }

    fn enter(&mut self, context: &Context, span: Span) -> Result<Value> {
        match context {
            Context::Kernel(frame) => {
                let bound = frame.enter(&mut self.rec, span)?;
                self.follow_blocks();
                Ok(bound)
            }
            Context::Host(object) => self.context_call(object, "__enter__", Vec::new(), span),
        }
    }

    fn exit(&mut self, context: &Context, span: Span) -> Result<()> {
        match context {
            Context::Kernel(frame) => {
                frame.exit(&mut self.rec, span)?;
                self.follow_blocks();
            }
            Context::Host(object) => {
                let nothing = vec![Value::None, Value::None, Value::None];
                self.context_call(object, "__exit__", nothing, span)?;
            }
        }
        Ok(())
    }

    fn context_call(
        &mut self,
        object: &Rc<dyn HostObject>,
        name: &str,
        args: Vec<Value>,
        span: Span,
    ) -> Result<Value> {
        match object.attribute(self, name, span)? {
            Some(method) => self.call_value(&method, args, span),
            None => {
                let message = format!(
                    "a Python object of the type `{}` cannot be used in `with`",
                    object.class()
                );
                Err(self.error(codes::WRONG_TYPE, span, message).into())
            }
        }
    }

    /// A launch has as many indices as the `as` clause has names.
    fn check_names(&self, target: &ast::Expr, value: &Value) -> Result<()> {
        let (ExprKind::Tuple(targets) | ExprKind::List(targets)) = &target.kind else {
            return Ok(());
        };
        let given = value.sequence().map_or(1, |items| items.len());
        let starred = |t: &ast::Expr| matches!(t.kind, ExprKind::Starred(_));
        if targets.len() == given || targets.iter().any(starred) {
            return Ok(());
        }
        let count = |n: usize, what: &str| format!("{n} {what}{}", if n == 1 { "" } else { "s" });
        let message = format!(
            "{} for {} of the grid",
            count(targets.len(), "name"),
            count(given, "dimension")
        );
        let names: Vec<&str> = ["bx", "by", "bz"].into_iter().take(given).collect();
        let help = match names[..] {
            [one] => format!("write `as {one}`, or give `T.Kernel` an extent for each name"),
            _ => format!("write `as ({})`", names.join(", ")),
        };
        let error = self.error(codes::KERNEL_LAUNCH, target.span, message);
        Err(error.help(help).into())
    }

    /// Block indices take the names of the `as` clause.
    fn rename(&mut self, target: &ast::Expr, value: &Value) {
        let (targets, values): (&[ast::Expr], Vec<Value>) = match (&target.kind, value) {
            (ExprKind::Tuple(targets) | ExprKind::List(targets), Value::Tuple(values)) => {
                (targets, values.to_vec())
            }
            (ExprKind::Tuple(targets), one) => (targets, vec![one.clone()]),
            _ => (std::slice::from_ref(target), vec![value.clone()]),
        };
        for (target, value) in targets.iter().zip(values) {
            if let (ExprKind::Name(name), Value::Expr(e)) = (&target.kind, value)
                && let Some(var) = e.as_var()
                && &**self.symbols.text(*name) != "_"
            {
                self.rec.func.vars[var].name = self.symbols.text(*name).to_string();
                self.rec.func.vars[var].span = target.span;
            }
        }
    }
}

/// What a `with` statement has entered.
enum Context {
    Kernel(Rc<dyn Frame>),
    /// A context manager of the host.
    Host(Rc<dyn HostObject>),
}

fn one_or_tuple(mut indices: Vec<Expr>) -> Value {
    match (indices.len(), indices.pop()) {
        (1, Some(one)) => Value::Expr(one),
        (_, last) => {
            indices.extend(last);
            Value::tuple(indices.into_iter().map(Value::Expr).collect())
        }
    }
}
