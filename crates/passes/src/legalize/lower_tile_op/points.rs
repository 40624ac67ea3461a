//! Loops over points: a thread runs the points that the layout gives it, one a slot.

use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_ir::visit::{child_blocks_mut, stmt_exprs_mut};
use tilewright_ir::{
    Block, Buffer, DType, Expr, ExprKind, LayoutAttr, Loop, LoopKind, Scope, Span, Stmt, StmtKind,
    ThreadOp, Var, VarKind,
};
use tilewright_layout::{Form, Fragment, Sum, from_expr, to_expr};

use super::{Lower, counted_in, guarded, unroll};
use crate::legalize::layout_inference::{const_shape, narrowed};
use crate::legalize::vectorize::fresh_copy;

/// Rounds of a loop that are still written out, so that registers are named by constants.
const MOST_UNROLLED: i64 = 1 << 14;

/// The type in which the points of a layout are counted: 64 bits where their number needs them.
fn index_type(layout: &Fragment) -> DType {
    match i32::try_from(layout.threads().saturating_mul(layout.slots())) {
        Ok(_) => DType::I32,
        Err(_) => DType::I64,
    }
}

/// A thread's points: one slot of the layout after the other.
pub(super) struct Points {
    pub layout: Fragment,
    /// From thread and slot to the point and the copy, where that is a form over the point's box.
    back: Option<Form>,
    /// The point, over the thread's number and the slot variable.
    pub index: Vec<Expr>,
    /// The copy of the point, where there are several.
    pub copy: Option<Expr>,
    /// Whether the slot holds a point at all.
    pub guard: Option<Expr>,
}

impl Lower<'_> {
    /// The points of a layout at a slot. `None` without a closed form.
    pub(super) fn points(&mut self, layout: &Fragment, slot: &Expr) -> Option<Points> {
        let inverse = layout.inverse()?;
        let (mut index, mut guard) = to_expr::inverse(&inverse, &self.tid_in(slot.dtype()), slot);
        let copy = index.pop();
        let copy = copy.filter(|_| layout.replicas() > 1);
        let size: i64 = layout.shape().iter().product();
        if layout.threads() * layout.slots() != size * layout.replicas() {
            let mut inside: Vec<(Expr, i64)> = index
                .iter()
                .cloned()
                .zip(layout.shape().iter().copied())
                .collect();
            if let Some(copy) = &copy {
                inside.push((copy.clone(), layout.replicas()));
            }
            for (value, extent) in inside {
                let below = value.lt(extent);
                guard = Some(match guard {
                    None => below,
                    Some(g) => g.and(below),
                });
            }
            guard = guard.map(|g| self.simplify_here(&g, layout, slot));
            guard = guard.filter(|g| !g.is_int(1));
        }
        let index = index
            .iter()
            .map(|e| self.simplify_here(e, layout, slot))
            .collect();
        Some(Points {
            layout: layout.clone(),
            back: (inverse.domain == inverse.full).then_some(inverse.form),
            index,
            copy,
            guard,
        })
    }

    /// Simplifies with the ranges of the thread's number and the slot.
    fn simplify_here(&mut self, e: &Expr, layout: &Fragment, slot: &Expr) -> Expr {
        let tid = self.tid.as_var().map(|tid| (tid, self.threads));
        let slot = slot.as_var().map(|slot| (slot, layout.slots()));
        let ranges = self.ranges.iter().copied().chain(tid).chain(slot);
        let vars = &self.func.vars;
        self.analyzer.scoped(|a| {
            for (var, extent) in ranges {
                let dtype = vars[var].dtype;
                a.bind_range(var, &Expr::zero(dtype), &Expr::int(extent.into(), dtype));
            }
            a.simplify(e)
        })
    }

    /// The thread's number in a type, in which indices are computed from it.
    fn tid_in(&self, dtype: DType) -> Expr {
        self.tid.clone().cast_to(dtype)
    }

    pub(super) fn parallel(&mut self, l: Loop, span: Span, out: &mut Block) {
        let shape: Option<Vec<i64>> = l
            .axes
            .iter()
            .map(|a| i64::try_from(a.const_trip_count()?).ok())
            .collect();
        let LoopKind::Parallel { layout, .. } = &l.kind else {
            return;
        };
        let layout = match (layout, &shape) {
            (Some(LayoutAttr::Held(layout)), Some(_)) if layout.threads() != self.threads => {
                return self.give_up(span, "the layout of this loop is one of other threads");
            }
            (Some(LayoutAttr::Held(layout)), Some(_)) => Some(layout.clone()),
            (_, Some(shape)) if shape.iter().all(|&e| e > 0) => {
                let run = narrowed(shape, self.threads, 1);
                Fragment::partition(shape, self.threads, run)
                    .ok()
                    .map(Arc::new)
            }
            _ => None,
        };
        let simple = l.axes.iter().all(|a| a.start.is_int(0) && a.step.is_int(1));
        match layout {
            Some(layout) if simple => {
                let vars: Vec<Var> = l.axes.iter().map(|a| a.var).collect();
                self.point_loop(&layout, &vars, l.body, span, out);
            }
            _ if shape.is_some_and(|s| s.contains(&0)) => {}
            _ => self.dynamic_loop(l, span, out),
        }
    }

    /// `for s in unroll(slots)` over the thread's points. Where the body touches memory and
    /// slots in a row are points in a row, these make a loop for vectors of their own.
    pub(super) fn point_loop(
        &mut self,
        layout: &Fragment,
        vars: &[Var],
        body: Block,
        span: Span,
        out: &mut Block,
    ) {
        let (ordered, lanes) = self.run_length(layout, &body);
        let layout = ordered.as_ref().unwrap_or(layout);
        let rounds = layout.slots() / lanes;
        let dtype = index_type(layout);
        let name = if lanes == 1 { "s" } else { "c" };
        let (round_var, round) = self.var_of(name, dtype, VarKind::Loop);
        let known_ranges = self.ranges.len();
        self.ranges.push((round_var, rounds));
        let mut lane_var = None;
        let slot = if lanes == 1 {
            round
        } else {
            let (var, lane) = self.var_of("v", dtype, VarKind::Loop);
            self.ranges.push((var, lanes));
            lane_var = Some(var);
            round * lanes + lane
        };
        let inner = self.one_point(layout, vars, body, &slot, span);
        self.ranges.truncate(known_ranges);
        let Some(mut inner) = inner else {
            return self.give_up(span, "the layout of this loop has no closed form");
        };
        if let Some(var) = lane_var {
            // The compiler's own wish: it has no place in the source.
            let vectors = LoopKind::Vectorized;
            inner = vec![counted_in(dtype, var, lanes, vectors, inner, Span::NONE)];
        }
        // No thread has registers for so many slots, so none needs its own code.
        let kind = match rounds > MOST_UNROLLED {
            true => LoopKind::Serial,
            false => unroll(),
        };
        out.push(counted_in(dtype, round_var, rounds, kind, inner, span));
    }

    /// What is done at the point in a slot.
    fn one_point(
        &mut self,
        layout: &Fragment,
        vars: &[Var],
        mut body: Block,
        slot: &Expr,
        span: Span,
    ) -> Option<Block> {
        let mut points = self.points(layout, slot)?;
        // Copies of a point must not read what the first of them changes.
        if self.changes_memory_only(&body)
            && let Some(copy) = points.copy.take()
        {
            let first = copy.equal(0);
            points.guard = Some(match points.guard {
                Some(guard) => guard.and(first),
                None => first,
            });
        }
        let mut inner = Vec::new();
        for (&var, value) in vars.iter().zip(&points.index) {
            self.func.vars[var].kind = VarKind::Let;
            let dtype = self.func.vars[var].dtype;
            inner.push(Stmt::new(
                StmtKind::Let {
                    var,
                    value: value.clone().cast_to(dtype),
                },
                span,
            ));
        }
        let mut slots = FxHashMap::default();
        self.rewrite_points(&mut body, vars, &points, slot, &mut slots);
        inner.extend(self.block(body));
        let mut guarded_body = Vec::new();
        guarded(points.guard, inner, span, &mut guarded_body);
        Some(guarded_body)
    }

    /// Whether what the statements do can be seen in memory alone: not in registers, whose copies
    /// all have to be written.
    fn changes_memory_only(&self, body: &Block) -> bool {
        let mut memory_only = true;
        tilewright_ir::visit::walk_stmts(body, &mut |stmt| match &stmt.kind {
            StmtKind::Store { buffer, .. } => {
                memory_only &= matches!(self.scope(*buffer), Scope::Global | Scope::Shared);
            }
            StmtKind::If { .. } | StmtKind::Let { .. } => {}
            StmtKind::Thread(
                ThreadOp::AtomicRmw { result: None, .. }
                | ThreadOp::AtomicVecAdd { .. }
                | ThreadOp::AtomicStore { .. },
            ) => {}
            _ => memory_only = false,
        });
        memory_only
    }

    /// How many slots in a row may become one access of memory, in another order of the slots where more
    /// may then.
    fn run_length(&self, layout: &Fragment, body: &Block) -> (Option<Fragment>, i64) {
        let lanes = self.memory_lanes(body);
        let Some(last) = layout.shape().len().checked_sub(1).filter(|_| lanes > 1) else {
            return (None, 1);
        };
        let own = layout.vector_width(last);
        let ordered = (own < lanes).then(|| layout.in_runs(last)).flatten();
        let ordered = ordered.map(|runs| runs.fragment);
        let wider = ordered.map(|f| (f.vector_width(last), Some(f)));
        let (width, ordered) = wider.filter(|w| w.0 > own).unwrap_or((own, None));
        let run = lanes.min(width);
        match layout.slots() % run {
            0 => (ordered, run),
            _ => (None, 1),
        }
    }

    /// Elements of the narrowest type that the statements touch in memory, in 16 bytes; one
    /// where they touch none.
    fn memory_lanes(&self, body: &Block) -> i64 {
        let mut bits: Option<u32> = None;
        tilewright_ir::visit::walk_stmts(body, &mut |stmt| {
            tilewright_ir::visit_ids::stmt_buffers(stmt, &mut |b| {
                let data = &self.func.buffers[b];
                if matches!(data.scope, Scope::Global | Scope::Shared) {
                    let own = data.dtype.bits().max(8);
                    bits = Some(bits.map_or(own, |known| known.min(own)));
                }
            });
        });
        bits.map_or(1, |b| i64::from(128 / b).max(1))
    }

    /// Turns accesses of fragments into accesses of registers, and lets one copy of a point
    /// do what changes memory.
    fn rewrite_points(
        &mut self,
        block: &mut Block,
        vars: &[Var],
        points: &Points,
        slot: &Expr,
        known: &mut FxHashMap<(Buffer, Vec<Expr>), Expr>,
    ) {
        for stmt in block.iter_mut() {
            stmt_exprs_mut(stmt, &mut |e| {
                *e = e.rewrite(&mut |node| {
                    let ExprKind::Load { buffer, indices } = node.kind() else {
                        return None;
                    };
                    let at = self.register(*buffer, indices, vars, points, slot, known)?;
                    Some(Expr::load(*buffer, vec![at], node.dtype()).with_span(node.span()))
                });
            });
            match &mut stmt.kind {
                StmtKind::Store {
                    buffer, indices, ..
                } => {
                    if let Some(at) = self.register(*buffer, indices, vars, points, slot, known) {
                        *indices = vec![at];
                    } else {
                        self.once(stmt, points);
                    }
                    continue;
                }
                StmtKind::Thread(
                    ThreadOp::AtomicRmw { result: None, .. }
                    | ThreadOp::AtomicVecAdd { .. }
                    | ThreadOp::AtomicStore { .. }
                    | ThreadOp::Print { .. },
                ) => {
                    self.once(stmt, points);
                    continue;
                }
                _ => {}
            }
            for child in child_blocks_mut(stmt) {
                self.rewrite_points(child, vars, points, slot, known);
            }
        }
    }

    /// Puts a statement that changes memory under "first copy only".
    fn once(&self, stmt: &mut Stmt, points: &Points) {
        let touches_memory = match &stmt.kind {
            StmtKind::Store { buffer, .. } => {
                matches!(self.scope(*buffer), Scope::Global | Scope::Shared)
            }
            _ => true,
        };
        if let Some(copy) = &points.copy
            && touches_memory
        {
            stmt.wrap(|inner| StmtKind::If {
                cond: copy.clone().equal(0),
                then: vec![inner],
                otherwise: Vec::new(),
            });
        }
    }

    /// The register that holds an element of a fragment at a point; `None` for other buffers.
    fn register(
        &mut self,
        buffer: Buffer,
        indices: &[Expr],
        vars: &[Var],
        points: &Points,
        slot: &Expr,
        known: &mut FxHashMap<(Buffer, Vec<Expr>), Expr>,
    ) -> Option<Expr> {
        if self.scope(buffer) != Scope::Fragment {
            return None;
        }
        let key = (buffer, indices.to_vec());
        if let Some(at) = known.get(&key) {
            return Some(at.clone());
        }
        let fragment = self.fragment(buffer)?;
        let shape = const_shape(&self.func.buffers[buffer].shape)?;
        let map = from_expr::access(vars, indices, points.layout.shape(), &shape);
        let own = *fragment == points.layout
            && indices.len() == vars.len()
            && indices
                .iter()
                .zip(vars)
                .all(|(i, v)| i.as_var() == Some(*v));
        if own {
            known.insert(key, slot.clone());
            return Some(slot.clone());
        }
        let at = map
            .and_then(|map| map.form())
            .and_then(|map| slot_form(points, &fragment, map))
            .map(|form| to_expr::form(&form, &[self.tid_in(slot.dtype()), slot.clone()]).remove(0))
            .or_else(|| Some(to_expr::fragment(&fragment, indices, None)?[1].clone()))?;
        let at = self.simplify_here(&at, &points.layout, slot);
        known.insert(key, at.clone());
        Some(at)
    }

    /// The slot of what another fragment has in a slot, where both give it to the same thread. The other
    /// one is of the elements from `start` on.
    pub(super) fn slot_in(
        &mut self,
        fragment: &Fragment,
        (other, start): (&Fragment, &[i64]),
        slot: &Expr,
        axes: &[(Var, i64)],
    ) -> Option<Expr> {
        let known = self.ranges.len();
        self.ranges.extend(axes);
        let points = self.points(other, slot);
        let at = points.and_then(|points| {
            let mut there = Form::identity(other.shape());
            for (out, first) in there.outs.iter_mut().zip(start) {
                out.offset = *first;
            }
            let form = slot_form(&points, fragment, there)?;
            let at = to_expr::form(&form, &[self.tid_in(slot.dtype()), slot.clone()]).remove(0);
            Some(self.simplify_here(&at, other, slot))
        });
        self.ranges.truncate(known);
        at
    }

    /// A parallel loop whose extents are known at run time: threads take points in turn, in
    /// runs along the last axis where memory is touched. What a single axis has beyond whole
    /// runs is done point by point afterwards.
    fn dynamic_loop(&mut self, l: Loop, span: Span, out: &mut Block) {
        // Extents that the user counts in 64 bits are multiplied in 64 bits.
        let wide = l.axes.iter().any(|a| a.stop.dtype() == DType::I64);
        let dtype = if wide { DType::I64 } else { DType::I32 };
        let mut total = Expr::int(1, dtype);
        let mut counts = Vec::new();
        for axis in &l.axes {
            let distance = axis.stop.clone() - axis.start.clone();
            let count = if axis.step.is_int(1) {
                distance
            } else {
                distance.ceil_div(&axis.step)
            };
            let count = self.simplify(&count.max(0).cast_to(dtype));
            total = total * &count;
            counts.push(count);
        }
        let total = self.simplify(&total);
        let mut run = self.memory_lanes(&l.body);
        if let [_, .., last] = &counts[..] {
            while run > 1 && last.as_int().is_none_or(|e| e % i128::from(run) != 0) {
                run /= 2;
            }
        }
        if run > self.threads || l.axes.iter().any(|a| !a.step.is_int(1)) {
            run = 1;
        }
        let rest = match (&l.axes[..], run) {
            (_, 1) | ([_, _, ..], _) => None,
            _ => match fresh_copy(self.func, &Stmt::new(StmtKind::For(l.clone()), span)) {
                Some(Stmt {
                    kind: StmtKind::For(copy),
                    ..
                }) => Some(copy),
                _ => {
                    run = 1;
                    None
                }
            },
        };
        self.runs(&l, &counts, &total, run, span, out);
        if let Some(rest) = rest {
            // Fewer points than a run, each to one of the first threads.
            let left = total.clone().floor_mod(run);
            let first = total - left.clone();
            let tid = self.tid_in(dtype);
            let at = vec![first + tid.clone()];
            let mut body = self.bind_axes(&rest, &at, span);
            body.extend(self.block(rest.body));
            guarded(Some(tid.lt(&left)), body, span, out);
        }
    }

    /// Whole runs of points, in turn.
    fn runs(
        &mut self,
        l: &Loop,
        counts: &[Expr],
        total: &Expr,
        run: i64,
        span: Span,
        out: &mut Block,
    ) {
        let dtype = total.dtype();
        let (round, r) = self.var_of("r", dtype, VarKind::Loop);
        let taken = r * self.threads + self.tid_in(dtype);
        let lane = (run > 1).then(|| self.var_of("v", dtype, VarKind::Loop));
        // The last axis counts runs, the others points.
        let mut at = Vec::new();
        let mut rest = taken.clone();
        for (dim, count) in counts.iter().enumerate().rev() {
            let whole = match dim + 1 == counts.len() {
                true => count.clone().floor_div(run),
                false => count.clone(),
            };
            let mut index = match dim {
                0 => rest.clone(),
                _ => rest.clone().floor_mod(&whole),
            };
            if let Some((_, lane)) = lane.as_ref().filter(|_| dim + 1 == counts.len()) {
                index = index * run + lane;
            }
            at.push(index);
            rest = rest.floor_div(&whole);
        }
        at.reverse();
        let mut body = self.bind_axes(l, &at, span);
        body.extend(self.block(l.body.clone()));
        if let Some((var, _)) = lane {
            let vectors = LoopKind::Vectorized;
            body = vec![counted_in(dtype, var, run, vectors, body, Span::NONE)];
        }
        let whole = self.simplify(&total.clone().floor_div(run));
        let mut inner = Vec::new();
        guarded(Some(taken.lt(&whole)), body, span, &mut inner);
        let rounds = self.simplify(&whole.ceil_div(self.threads));
        out.push(Stmt::new(
            StmtKind::For(Loop {
                kind: LoopKind::Serial,
                axes: vec![tilewright_ir::Axis::upto(round, rounds)],
                body: inner,
            }),
            span,
        ));
    }

    /// `let`s that give the indices of a loop their values.
    fn bind_axes(&mut self, l: &Loop, at: &[Expr], span: Span) -> Block {
        let lets = l.axes.iter().zip(at).map(|(axis, at)| {
            self.func.vars[axis.var].kind = VarKind::Let;
            let dtype = self.func.vars[axis.var].dtype;
            let value = axis.start.clone() + at.clone().cast_to(dtype) * &axis.step;
            let value = self.analyzer.simplify(&value);
            let var = axis.var;
            Stmt::new(StmtKind::Let { var, value }, span)
        });
        lets.collect()
    }
}

/// The slot of a fragment's element as a form over the loop's thread and slot.
fn slot_form(points: &Points, fragment: &Fragment, mut map: Form) -> Option<Form> {
    // From the point to (element, first copy), to the slot.
    map.outs.push(Sum::default());
    let placed = map.then(&fragment.layout().form()?)?.only(1);
    let mut back = points.back.clone()?;
    back.outs.pop();
    back.then(&placed)
}
