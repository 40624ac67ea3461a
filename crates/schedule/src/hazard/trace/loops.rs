//! Loops: so many iterations that more of them change nothing.

use std::ops::Range;

use tilewright_ir::{Block, Expr, ExprKind, Loop, LoopKind, Span, Stmt, StmtKind, Var};

use super::{Flow, Need, Stop, Tracer, undecided};
use crate::hazard::event::EventKind;
use crate::hazard::scan::key;
use crate::hazard::units::trip_count;
use crate::hazard::value::Bound;

/// Loops up to this many iterations are run as they are.
const FULL: i64 = 8;

impl<'f> Tracer<'f, '_> {
    /// A `for`.
    pub(super) fn counted(&mut self, stmt: &'f Stmt, l: &'f Loop) -> Result<Flow, Stop> {
        let [axis] = &l.axes[..] else {
            return self.uncounted(stmt, &l.body);
        };
        if matches!(
            l.kind,
            LoopKind::Persistent { .. } | LoopKind::Parallel { .. }
        ) {
            return self.uncounted(stmt, &l.body);
        }
        let (start, stop) = (self.env.fold(&axis.start), self.env.fold(&axis.stop));
        let Some(step) = self.env.value(&axis.step) else {
            return Err(undecided(stmt.span, "the step of this loop is not known"));
        };
        if self.scan.varies(&start) || self.scan.varies(&stop) {
            return Err(undecided(
                stmt.span,
                "threads may leave a loop with a barrier at different times",
            ));
        }
        let (rhythm, conditions) = self.units.rhythm(stmt, l, axis.var);
        let known = |e: &Expr| i64::try_from(e.as_int()?).ok();
        let multiples = |first: i64, counts: Range<i64>| {
            let at = |n: i64| n.checked_mul(step)?.checked_add(first);
            let values: Option<Vec<i64>> = counts.map(at).collect();
            values.ok_or_else(|| undecided(stmt.span, "the bounds of this loop are too large"))
        };
        let Some(first) = known(&start) else {
            let values = multiples(0, 0..rhythm.period)?;
            return Err(self.need(&start, values, stmt.span));
        };
        let Some(last) = known(&stop) else {
            // The longest ones must show that more iterations change nothing.
            let longest = rhythm.lead() + rhythm.rest() + rhythm.period;
            let values = multiples(first, 0..longest)?;
            return Err(self.need(&stop, values, stmt.span));
        };
        let Some(count) = trip_count(first, last, step) else {
            return Err(undecided(stmt.span, "a loop with the step zero"));
        };
        let mut constant = true;
        self.scan.expand(&axis.stop).walk(&mut |node| {
            constant &= !matches!(node.kind(), ExprKind::Var(_) | ExprKind::Load { .. });
        });
        let supposed = !constant && !self.env.supposed.is_empty();
        let longest = rhythm.lead() + rhythm.rest();
        let rhythm = rhythm.measured(&conditions, &self.env, (axis.var, first, step, count));
        let mut steady = None;
        let mut skipped = None;
        let (head, tail) = (rhythm.lead(), rhythm.rest());
        let whole = !rhythm.regular || self.whole.contains(&key(stmt));
        let long = count > FULL && !whole && head + tail + rhythm.period < count;
        // Left out: whole periods in the middle.
        let room = if long { count - head - tail } else { 0 };
        let jump = match rhythm.meets() {
            true => self.units.leaps.of(count, room, rhythm.period),
            false => room / rhythm.period * rhythm.period,
        };
        if jump > 0 {
            skipped = Some((head, jump));
            steady = Some((head as usize, rhythm.period as usize));
        } else if supposed && count >= head + tail {
            let at = count - tail;
            steady = Some((at as usize, rhythm.period as usize));
            if !rhythm.regular {
                // More iterations touch other places.
                steady = Some((0, 1));
            }
        }
        if steady.is_none() && supposed && count >= longest {
            return Err(undecided(
                stmt.span,
                "conditions over this loop's index decide differently far from its ends",
            ));
        }
        self.emit(stmt, EventKind::EnterLoop(steady.is_some()))?;
        let mut n = 0;
        while n < count {
            if let Some((at, jump)) = skipped
                && n == at
            {
                n += jump;
                self.skipped.insert(axis.var, jump * step);
                self.emit(stmt, EventKind::Skip(axis.var, jump * step))?;
            }
            if self.iteration(stmt, &l.body, axis.var, first + n * step)? == Flow::Break {
                break;
            }
            n += 1;
        }
        self.moment_stale = true;
        self.env.vars.remove(&axis.var);
        self.skipped.remove(&axis.var);
        // Where conditions follow patterns no state repeats; the patterns are all there are.
        let steady = steady.filter(|_| self.met.is_empty());
        self.emit(stmt, EventKind::LeaveLoop(steady))?;
        Ok(Flow::Next)
    }

    fn iteration(
        &mut self,
        stmt: &Stmt,
        body: &'f Block,
        var: Var,
        value: i64,
    ) -> Result<Flow, Stop> {
        self.loops.push((var, value));
        self.moment_stale = true;
        self.env.vars.insert(var, Bound::Known(value));
        let flow = self
            .emit(stmt, EventKind::Iteration)
            .and_then(|()| self.block(body));
        self.loops.pop();
        self.moment_stale = true;
        flow
    }

    /// A `while` as long as its condition is known.
    pub(super) fn repeated(
        &mut self,
        stmt: &'f Stmt,
        cond: &'f Expr,
        body: &'f Block,
    ) -> Result<Flow, Stop> {
        const MOST: usize = 1 << 12;
        if self.env.value(cond).is_none() {
            return self.uncounted(stmt, body);
        }
        self.emit(stmt, EventKind::EnterLoop(false))?;
        for _ in 0..MOST {
            match self.env.value(cond) {
                Some(0) => {
                    self.emit(stmt, EventKind::LeaveLoop(None))?;
                    return Ok(Flow::Next);
                }
                Some(_) => {}
                None => return Err(undecided(stmt.span, "this condition is not always known")),
            }
            self.emit(stmt, EventKind::Iteration)?;
            if self.block(body)? == Flow::Break {
                self.emit(stmt, EventKind::LeaveLoop(None))?;
                return Ok(Flow::Next);
            }
        }
        Err(undecided(stmt.span, "this loop runs too long to follow"))
    }

    /// A loop whose index and number of iterations are not known: none, one, and so many that
    /// the state repeats.
    fn uncounted(&mut self, stmt: &'f Stmt, body: &'f Block) -> Result<Flow, Stop> {
        const MOST: i64 = 4;
        let mut varies = false;
        tilewright_ir::visit::stmt_exprs(stmt, &mut |e| varies |= self.scan.varies(e));
        if varies {
            return Err(undecided(
                stmt.span,
                "threads may leave a loop with a barrier at different times",
            ));
        }
        // The statement's own address makes a name for the count.
        let name = Expr::new(
            ExprKind::Int((key(stmt) as i128) & i128::from(i64::MAX)),
            tilewright_ir::DType::I64,
            Span::NONE,
        );
        let Some(&count) = self.env.supposed.get(&name) else {
            return Err(Stop::Need(Need {
                expr: name,
                values: (0..=MOST).collect(),
            }));
        };
        let var = match &stmt.kind {
            StmtKind::For(l) => l.axes.first().map(|a| a.var),
            _ => None,
        };
        for buffer in self.scan.written_scalars(stmt) {
            self.env.scalars.remove(buffer);
        }
        self.emit(stmt, EventKind::EnterLoop(count == MOST))?;
        for n in 0..count {
            self.moment_stale = true;
            if let Some(var) = var {
                self.loops.push((var, n));
            }
            self.emit(stmt, EventKind::Iteration)?;
            let flow = self.block(body)?;
            if var.is_some() {
                self.loops.pop();
            }
            if flow == Flow::Break {
                break;
            }
        }
        self.moment_stale = true;
        let steady = (count == MOST && self.met.is_empty()).then_some((MOST as usize - 1, 1));
        self.emit(stmt, EventKind::LeaveLoop(steady))?;
        Ok(Flow::Next)
    }
}
