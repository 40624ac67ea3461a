//! The walk over a kernel that both passes share, with the facts of each place.

use tilewright_ir::visit::{child_blocks_mut, rewrite_block};
use tilewright_ir::{
    Block, Code, Diagnostic, Diagnostics, Expr, Func, Loop, LoopKind, Span, Stmt, StmtKind, Target,
};

use super::{Missing, Plan, Vectorizer, fresh_copy, has_vectorized};

const NOT_VECTORIZED: Code = Code("not-vectorized");

/// What to do about vectors that are only right if sizes are multiples of them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Unproved {
    /// Leave the loop for the pass that checks sizes at run time.
    Leave,
    /// Write the loop twice, under a check.
    Check,
    /// Do without.
    Narrow,
}

/// Rewrites the loops for vectors in all kernels.
pub fn vectorize(func: &mut Func, target: Target, unproved: Unproved, diags: &mut Diagnostics) {
    for at in 0..func.kernels.len() {
        let body = std::mem::take(&mut func.kernels[at].body);
        let kernel = func.kernels[at].clone();
        let mut vectorizer = Vectorizer::new(func, at, target);
        vectorizer.analyzer.enter_kernel(vectorizer.func, &kernel);
        let mut walk = LoopWalk {
            vectorizer,
            unproved,
            checked: Vec::new(),
            diags,
        };
        let body = walk.block(body);
        func.kernels[at].body = body;
    }
}

struct LoopWalk<'a, 'd> {
    vectorizer: Vectorizer<'a>,
    unproved: Unproved,
    /// Conditions on sizes that checks around have made sure of. One that the prover gains nothing
    /// from is not checked again.
    checked: Vec<Expr>,
    diags: &'d mut Diagnostics,
}

impl LoopWalk<'_, '_> {
    fn block(&mut self, block: Block) -> Block {
        self.vectorizer.analyzer.push();
        let out = rewrite_block(block, |stmt, out| {
            let first = out.len();
            self.stmt(stmt, out);
            for stmt in &out[first..] {
                self.vectorizer.analyzer.after(stmt);
            }
        });
        self.vectorizer.analyzer.pop();
        out
    }

    fn under(&mut self, cond: &Expr, holds: bool, block: Block) -> Block {
        self.vectorizer.analyzer.push();
        match holds {
            true => self.vectorizer.analyzer.assume(cond),
            false => self.vectorizer.analyzer.refute(cond),
        }
        let block = self.block(block);
        self.vectorizer.analyzer.pop();
        block
    }

    fn stmt(&mut self, stmt: Stmt, out: &mut Block) {
        let span = stmt.span;
        if self.unproved == Unproved::Check
            && let StmtKind::For(Loop {
                kind: LoopKind::Unroll { .. } | LoopKind::Vectorized,
                ..
            }) = stmt.kind
            && has_vectorized(&stmt)
            && let Some(both) = self.checked(&stmt)
        {
            return out.push(both);
        }
        let kind = match stmt.kind {
            StmtKind::For(l) if l.kind == LoopKind::Vectorized => {
                return self.vectorized(l, span, out);
            }
            StmtKind::For(mut l) => {
                let vectorizer = &mut self.vectorizer;
                vectorizer.analyzer.enter_loop(vectorizer.func, &l);
                l.body = self.block(l.body);
                self.vectorizer.analyzer.pop();
                StmtKind::For(l)
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => StmtKind::If {
                then: self.under(&cond, true, then),
                otherwise: self.under(&cond, false, otherwise),
                cond,
            },
            StmtKind::While { cond, body } => StmtKind::While {
                body: self.under(&cond, true, body),
                cond,
            },
            mut other => {
                let mut whole = Stmt::new(other, span);
                for child in child_blocks_mut(&mut whole) {
                    *child = self.block(std::mem::take(child));
                }
                other = whole.kind;
                other
            }
        };
        out.push(Stmt::new(kind, span));
    }

    /// The statement under a check of sizes, and as it is otherwise.
    fn checked(&mut self, stmt: &Stmt) -> Option<Stmt> {
        let mut missing = Vec::new();
        self.missing(stmt, &mut missing);
        missing.retain(|cond| !self.checked.contains(cond));
        let outer = self.checked.len();
        self.checked.extend(missing.iter().cloned());
        let both = missing
            .into_iter()
            .reduce(Expr::and)
            .and_then(|cond| self.twice(stmt, cond, Unproved::Check));
        self.checked.truncate(outer);
        both
    }

    /// The statement with a condition as a fact, where what is then still unproved is treated as
    /// `inside` says, and without vectors that need the condition.
    fn twice(&mut self, stmt: &Stmt, cond: Expr, inside: Unproved) -> Option<Stmt> {
        let copy = fresh_copy(self.vectorizer.func, stmt)?;
        let span = stmt.span;
        let outer = std::mem::replace(&mut self.unproved, inside);
        let then = self.under(&cond, true, vec![copy]);
        self.unproved = Unproved::Narrow;
        let otherwise = self.under(&cond, false, vec![stmt.clone()]);
        self.unproved = outer;
        let both = StmtKind::If {
            cond,
            then,
            otherwise,
        };
        Some(Stmt::new(both, span))
    }

    /// Conditions on sizes that would make vectors of the loops in a statement wider.
    fn missing(&mut self, stmt: &Stmt, found: &mut Vec<Expr>) {
        match &stmt.kind {
            StmtKind::For(l) if l.kind == LoopKind::Vectorized => {
                let Ok(count) = countable(l) else { return };
                let lanes = self.lanes(l, count);
                let plan = match lanes {
                    1 => Plan::default(),
                    _ if lanes == count => self.vectorizer.plan(l, lanes),
                    // It is split first, and looked at again then.
                    _ => Plan::default(),
                };
                for cond in plan.missing.sizes {
                    if !found.contains(&cond) {
                        found.push(cond);
                    }
                }
            }
            StmtKind::For(l) => {
                let vectorizer = &mut self.vectorizer;
                vectorizer.analyzer.enter_loop(vectorizer.func, l);
                self.missing_in(&l.body, found);
                self.vectorizer.analyzer.pop();
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                for (block, holds) in [(then, true), (otherwise, false)] {
                    self.vectorizer.analyzer.push();
                    match holds {
                        true => self.vectorizer.analyzer.assume(cond),
                        false => self.vectorizer.analyzer.refute(cond),
                    }
                    self.missing_in(block, found);
                    self.vectorizer.analyzer.pop();
                }
            }
            _ => {}
        }
    }

    fn missing_in(&mut self, block: &Block, found: &mut Vec<Expr>) {
        self.vectorizer.analyzer.push();
        for stmt in block {
            self.missing(stmt, found);
            self.vectorizer.analyzer.after(stmt);
        }
        self.vectorizer.analyzer.pop();
    }

    /// The iterations that make one vector: the widest that divides their number.
    fn lanes(&self, l: &Loop, count: i64) -> i64 {
        let mut lanes = self.vectorizer.lanes_for(l).min(count);
        while lanes > 1 && count % lanes != 0 {
            lanes -= 1;
        }
        lanes.max(1)
    }

    fn vectorized(&mut self, l: Loop, span: Span, out: &mut Block) {
        let count = match countable(&l) {
            Ok(count) => count,
            Err(why) => {
                self.warn(span, &[(span, why.to_string())]);
                return self.serial(l, span, out);
            }
        };
        let index = l.axes[0].var;
        if let [
            Stmt {
                kind: StmtKind::If {
                    cond, otherwise, ..
                },
                ..
            },
        ] = &l.body[..]
            && otherwise.is_empty()
            && let Some(cond) = self.before_loop(&l, cond, index, count)
        {
            return self.guard_first(l, cond, span, out);
        }
        let lanes = self.lanes(&l, count);
        if lanes == 1 {
            return self.serial(l, span, out);
        }
        if lanes < count {
            let split = self.vectorizer.split(l, count, lanes, span);
            return self.stmt(split, out);
        }
        let plan = self.vectorizer.plan(&l, lanes);
        if !plan.missing.is_empty() && self.unproved == Unproved::Leave {
            return out.push(Stmt::new(StmtKind::For(l), span));
        }
        if plan.missing.is_empty() {
            self.warn(span, &plan.refused);
        }
        // Threads that part here must not meet: barriers stand outside of such branches.
        // No vector of a tensor shorter than that is ever inside.
        let here = plan.missing.here.iter().filter(|c| !c.is_int(0));
        let here = here.cloned().reduce(Expr::and);
        if let Some(cond) = here
            && self.unproved == Unproved::Check
            && !plan.shared
        {
            let whole = Stmt::new(StmtKind::For(l), span);
            if let Some(both) = self.twice(&whole, cond, Unproved::Narrow) {
                return out.push(both);
            }
            self.unproved = Unproved::Narrow;
            self.stmt(whole, out);
            self.unproved = Unproved::Check;
            return;
        }
        self.vectorizer.apply(l, lanes, plan, span, out);
    }

    /// The condition around all that a loop does, where the iterations agree about it.
    fn before_loop(
        &mut self,
        l: &Loop,
        cond: &Expr,
        index: tilewright_ir::Var,
        count: i64,
    ) -> Option<Expr> {
        let mut reads = false;
        cond.walk(&mut |e| reads |= matches!(e.kind(), tilewright_ir::ExprKind::Load { .. }));
        if reads {
            return None;
        }
        let vectorizer = &mut self.vectorizer;
        vectorizer.analyzer.enter_loop(vectorizer.func, l);
        let known = vectorizer.uniform(cond, index, count, &mut Missing::default());
        vectorizer.analyzer.pop();
        known
    }

    fn guard_first(&mut self, mut l: Loop, cond: Expr, span: Span, out: &mut Block) {
        if let Some(Stmt {
            kind: StmtKind::If { then, .. },
            ..
        }) = l.body.pop()
        {
            l.body = then;
        }
        let then = self.under(&cond, true, vec![Stmt::new(StmtKind::For(l), span)]);
        out.push(Stmt::new(
            StmtKind::If {
                cond,
                then,
                otherwise: Vec::new(),
            },
            span,
        ));
    }

    /// One iteration after the other.
    fn serial(&mut self, mut l: Loop, span: Span, out: &mut Block) {
        let short = l.axes[0].const_trip_count().is_some_and(|n| n <= 64);
        l.kind = match short {
            true => LoopKind::Unroll { factor: None },
            false => LoopKind::Serial,
        };
        self.stmt(Stmt::new(StmtKind::For(l), span), out);
    }

    /// Says why a loop that the user asked to be vectorised is not. Loops that a lowering made
    /// have no place in the source, and nobody asked for them.
    fn warn(&mut self, span: Span, refused: &[(Span, String)]) {
        let Some((place, why)) = refused.first() else {
            return;
        };
        if span.is_none() {
            return;
        }
        let place = if place.is_none() { span } else { *place };
        self.diags.push(
            Diagnostic::warning(
                NOT_VECTORIZED,
                place,
                format!("an access of this loop is made one element at a time: {why}"),
            )
            .also(span, "the loop that asks for vectors"),
        );
    }
}

/// The number of iterations of a loop that counts from zero, or why there is none.
fn countable(l: &Loop) -> Result<i64, &'static str> {
    let [axis] = &l.axes[..] else {
        return Err("it has several indices");
    };
    if !axis.start.is_int(0) || !axis.step.is_int(1) {
        return Err("it does not count from zero in steps of one");
    }
    let count = axis.const_trip_count().and_then(|n| i64::try_from(n).ok());
    count.ok_or("its extent is known at run time only")
}
