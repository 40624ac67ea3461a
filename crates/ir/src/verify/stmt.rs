//! Statements, loops and blocks.

use crate::buffer::{LayoutAttr, Scope};
use crate::diag::Span;
use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::{Level, VarKind};
use crate::ids::Var;
use crate::stmt::{Axis, Block, Loop, LoopKind, Stmt, StmtKind};
use crate::target::WARP_GROUP;
use crate::verify::expr::AccessKind;
use crate::verify::{BlockKind, Verifier};

impl<'a> Verifier<'a> {
    pub(super) fn block(&mut self, block: &'a Block, kind: BlockKind) {
        if self.too_deep() {
            return;
        }
        let since = self.open();
        self.blocks.push(kind);
        if block.iter().any(|stmt| stmt.turn.is_some()) {
            self.turns(block, kind);
        }
        for stmt in block {
            self.at = stmt.span;
            self.stmt(stmt);
        }
        self.close_reducers();
        self.blocks.pop();
        self.close(since);
    }

    /// The turns of a block that has some.
    fn turns(&mut self, block: &[Stmt], kind: BlockKind) {
        let innermost = self.loops.last();
        let pipelined =
            kind == BlockKind::Loop && matches!(innermost, Some(LoopKind::Pipelined(_)));
        for stmt in block {
            self.at = stmt.span;
            let Some(turn) = stmt.turn else {
                if pipelined && stmt.takes_turn() {
                    let message = "it has no turn, and other statements of its loop have one";
                    let error = self.fail("turn-missing", message);
                    let help = "`@()` leaves the choice to the compiler";
                    error.help.push(help.to_string());
                }
                continue;
            };
            if !pipelined || !stmt.takes_turn() {
                let message = "only what a pipelined loop does has a turn, in the loop's own body";
                self.fail("turn-place", message);
            } else if !self.tile_level() && (turn.stage.is_none() || turn.order.is_none()) {
                self.fail(
                    "turn-open",
                    "below tile level a turn has a stage and an order",
                );
            }
        }
    }

    fn stmt(&mut self, stmt: &'a Stmt) {
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                self.expr(value);
                let by_thread = self.depends_on_thread(value);
                self.bind_var(*var, VarKind::Let);
                if by_thread {
                    self.by_thread.insert(*var);
                }
                self.result_var(*var, value.dtype(), "let-type");
            }
            StmtKind::Store {
                buffer,
                indices,
                value,
            } => {
                self.exprs(indices);
                self.expr(value);
                if !self.indices(*buffer, indices, stmt.span, AccessKind::Store) {
                    return;
                }
                let element = self.func.buffers[*buffer].dtype;
                let lanes = indices.last().map_or(1, |i| i.dtype().lanes);
                let wanted = element.with_lanes(element.lanes.saturating_mul(lanes));
                if value.dtype() != wanted {
                    let name = self.buffer_name(*buffer);
                    let message = format!("{} is stored in `{name}` of {wanted}", value.dtype());
                    let error = self.fail("store-type", message);
                    error.help.push(format!("cast it: `{wanted}(…)`"));
                }
            }
            StmtKind::Alloc(buffer) => {
                self.declare_buffer(*buffer);
                let scope = self.func.buffers.get(*buffer).map(|b| b.scope);
                let private = matches!(
                    scope,
                    Some(Scope::Var | Scope::Local | Scope::Global) | None
                );
                if self.tile_level() && self.in_parallel() && !private {
                    self.fail(
                        "parallel-nesting",
                        "a parallel loop allocates nothing that its points would share",
                    );
                }
            }
            StmtKind::For(l) => self.for_loop(l, stmt.span),
            StmtKind::While { cond, body } => {
                self.condition(cond);
                static WHILE: LoopKind = LoopKind::Serial;
                self.loops.push(&WHILE);
                self.under(cond, |v| v.block(body, BlockKind::Loop));
                self.loops.pop();
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.condition(cond);
                self.under(cond, |v| {
                    v.block(then, BlockKind::If);
                    v.block(otherwise, BlockKind::If);
                });
            }
            StmtKind::Break => match self.loops.last() {
                None => {
                    self.fail("break-outside", "a break outside of loops");
                }
                Some(LoopKind::Parallel { .. }) => {
                    let error = self.fail("break-parallel", "a break leaves a parallel loop");
                    error
                        .help
                        .push("its points have no order; `continue` skips one".to_string());
                }
                Some(_) => {}
            },
            StmtKind::Continue => {
                if self.loops.is_empty() {
                    self.fail("break-outside", "a continue outside of loops");
                }
            }
            StmtKind::Assert { cond, .. } | StmtKind::Assume(cond) => self.condition(cond),
            StmtKind::WarpGroup { groups, body } => self.warp_group(groups, body),
            StmtKind::Tile(op) => self.tile_op(op),
            StmtKind::Thread(op) => self.thread_op(op),
            StmtKind::Micro(op) => self.micro_op(op),
            StmtKind::Device(op) => self.device_op(op),
        }
    }

    /// The variable has the type of what it is given.
    pub(super) fn result_var(&mut self, var: Var, value: DType, code: &'static str) {
        let dtype = self.func.vars.get(var).map_or(value, |d| d.dtype);
        if dtype != value {
            let name = self.var_name(var);
            self.fail(code, format!("`{name}` is {dtype}, its value {value}"));
        }
    }

    /// Checks what runs only where the condition holds.
    fn under(&mut self, cond: &Expr, inside: impl FnOnce(&mut Self)) {
        let outer = self.divergent;
        if self.depends_on_thread(cond) {
            self.divergent = Some(if cond.span().is_none() {
                self.at
            } else {
                cond.span()
            });
        }
        inside(self);
        self.divergent = outer;
    }

    /// Something the whole block does: every thread has to reach it.
    pub(super) fn collective(&mut self, what: &str) {
        if !self.tile_level() {
            return;
        }
        if let Some(cond) = self.divergent {
            let message = format!("{what} is done by the block, but not all threads reach it");
            let error = self.fail("tile-op-divergent", message);
            error.secondary.push(crate::Label {
                span: cond,
                text: "this depends on the thread".to_string(),
            });
        }
    }

    fn warp_group(&mut self, groups: &[u32], body: &'a Block) {
        let mut seen = Vec::new();
        for &group in groups {
            let threads = (group as u64 + 1) * u64::from(WARP_GROUP);
            if threads > self.num_threads as u64 {
                let message = format!(
                    "warp group {group} of a block of {} threads",
                    self.num_threads
                );
                self.fail("warp-group", message);
            }
            if seen.contains(&group) {
                self.fail("warp-group", format!("warp group {group} is listed twice"));
            }
            seen.push(group);
        }
        if groups.is_empty() {
            self.fail("warp-group", "no warp group is listed");
        }
        if self.in_warp_group {
            self.fail("warp-group", "a warp group inside a warp group");
        }
        if self.tile_level() && self.in_parallel() {
            self.fail("parallel-nesting", "a warp group inside a parallel loop");
        }
        let outer = std::mem::replace(&mut self.in_warp_group, true);
        self.block(body, BlockKind::WarpGroup);
        self.in_warp_group = outer;
    }

    fn for_loop(&mut self, l: &'a Loop, span: Span) {
        for axis in &l.axes {
            self.axis(axis, &l.kind);
        }
        self.loop_kind(l);
        let grouped = matches!(
            l.kind,
            LoopKind::Parallel { .. } | LoopKind::Persistent { .. }
        );
        if l.axes.is_empty() || (l.axes.len() > 1 && !grouped) {
            self.fail("loop-axes", format!("a loop over {} axes", l.axes.len()));
        }
        let parallel = matches!(l.kind, LoopKind::Parallel { .. });
        if parallel {
            self.collective("a parallel loop");
        }
        let by_thread = l.axes.iter().any(|a| {
            [&a.start, &a.stop, &a.step]
                .into_iter()
                .any(|e| self.depends_on_thread(e))
        });
        let outer = self.divergent;
        if by_thread {
            self.divergent = Some(span);
        }
        let since = self.open();
        for axis in &l.axes {
            self.bind_var(axis.var, VarKind::Loop);
            if by_thread {
                self.by_thread.insert(axis.var);
            }
            if parallel {
                self.parallel_axes
                    .insert(axis.var, axis.const_trip_count().is_some());
            }
        }
        self.loops.push(&l.kind);
        self.block(&l.body, BlockKind::Loop);
        self.loops.pop();
        for axis in &l.axes {
            self.parallel_axes.remove(&axis.var);
        }
        self.close(since);
        self.divergent = outer;
        self.at = span;
        if parallel && self.tile_level() {
            self.parallel_body(&l.body);
        }
    }

    fn axis(&mut self, axis: &'a Axis, kind: &LoopKind) {
        let dtype = axis.stop.dtype();
        let mut sound = true;
        for (e, what) in [
            (&axis.start, "the start"),
            (&axis.stop, "the stop"),
            (&axis.step, "the step"),
        ] {
            sound &= self.integer(e, "loop-range", what);
        }
        let var = self.func.vars.get(axis.var).map_or(dtype, |d| d.dtype);
        if sound && [axis.start.dtype(), axis.step.dtype(), var] != [dtype; 3] {
            self.fail("loop-range", "index, start, stop and step differ in type");
        }
        let ordered = match kind {
            LoopKind::Serial | LoopKind::Unroll { .. } => true,
            LoopKind::Vectorized
            | LoopKind::Parallel { .. }
            | LoopKind::Pipelined(_)
            | LoopKind::Persistent { .. } => false,
        };
        match axis.step.as_int() {
            Some(0) => {
                self.fail("loop-range", "a step of zero");
            }
            Some(step) if step < 0 && !ordered => {
                self.fail(
                    "loop-range",
                    format!("a step of {step} in a loop without an order"),
                );
            }
            _ => {}
        }
        if matches!(kind, LoopKind::Persistent { .. })
            && !(axis.start.is_int(0) && axis.step.is_int(1))
        {
            self.fail(
                "loop-range",
                "a persistent domain starts at zero, in steps of one",
            );
        }
    }

    fn loop_kind(&mut self, l: &'a Loop) {
        let structured = match &l.kind {
            LoopKind::Serial | LoopKind::Vectorized => false,
            LoopKind::Unroll { factor } => {
                if *factor == Some(0) {
                    self.fail("loop-range", "unrolling by zero");
                }
                false
            }
            LoopKind::Parallel {
                coalesced_width,
                layout,
            } => {
                if *coalesced_width == Some(0) {
                    self.fail("loop-range", "a coalesced width of zero");
                }
                if let Some(layout) = layout {
                    self.layout(layout, None, self.at);
                }
                if let Some(LayoutAttr::Held(fragment)) = layout {
                    let counts = l.axes.iter().map(|a| a.const_trip_count());
                    let shape = fragment.shape().iter().map(|&n| u64::try_from(n).ok());
                    if !counts.eq(shape) {
                        self.fail("layout-shape", "a layout of another shape than the loop's");
                    }
                }
                true
            }
            LoopKind::Pipelined(spec) => {
                for buffer in &spec.versioned {
                    self.use_buffer(*buffer, self.at);
                }
                true
            }
            LoopKind::Persistent {
                wave_size,
                index,
                group_size,
            } => {
                for (e, what) in [
                    (wave_size, "the wave size"),
                    (index, "the index"),
                    (group_size, "the group size"),
                ] {
                    self.integer(e, "loop-range", what);
                }
                for e in [wave_size, group_size] {
                    if e.as_int().is_some_and(|n| n < 1) {
                        self.fail("loop-range", "waves and groups hold at least one tile");
                    }
                }
                true
            }
        };
        if structured && self.func.level == Level::Device {
            self.fail(
                "level",
                "at device level loops are serial, unrolled or vectorized",
            );
        }
        let parallel = matches!(l.kind, LoopKind::Parallel { .. });
        if self.tile_level() && self.in_parallel() && structured && !parallel {
            self.fail(
                "parallel-nesting",
                "a pipelined or persistent loop inside a parallel loop",
            );
        }
    }

    /// Another parallel loop is the only statement, if there is one.
    fn parallel_body(&mut self, body: &'a Block) {
        fn inner(block: &Block) -> Option<Span> {
            block.iter().find_map(|s| match &s.kind {
                StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }) => Some(s.span),
                _ => crate::visit::child_blocks(s).into_iter().find_map(inner),
            })
        }
        let nested_directly = matches!(
            &body[..],
            [Stmt { kind: StmtKind::For(l), .. }] if matches!(l.kind, LoopKind::Parallel { .. })
        );
        if !nested_directly && let Some(span) = inner(body) {
            let error = self.error(
                "parallel-nesting",
                span,
                "a parallel loop inside another, beside other statements",
            );
            error.help.push("write one loop over all axes".to_string());
        }
    }
}
