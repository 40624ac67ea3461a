//! Scopes of facts: variable ranges, values of `let`s, conditions.
//!
//! A scope opens on entering a loop, a branch or a kernel ([`Analyzer::push`]) and closes on
//! leaving it ([`Analyzer::pop`]); [`Analyzer::scoped`] does both around a closure. A fact holds
//! from where it is given to the end of the innermost scope then open.
//!
//! **Soundness.** A fact is kept only over integer forms, so one about arithmetic that can wrap
//! is a fact about the wrapped value and nothing else. Facts that read memory are not kept,
//! because memory changes while the scope is open; bind the value to a `let` and state the fact
//! of that.
//!
//! Facts that contradict each other mean that the code is never reached
//! ([`Analyzer::is_unreachable`]). Whatever is proved there is true of it.

use rustc_hash::FxHashMap;
use tilewright_ir::{BinOp, DType, Expr, Scalar, UnOp, Var};

use crate::analyzer::{Analyzer, Cache};
use crate::congruence::Congruence;
use crate::domain::Domain;
use crate::interval::Interval;
use crate::linear::Lin;
use crate::term::{Node, Term};

/// What one scope added.
#[derive(Debug, Default)]
pub(crate) struct Frame {
    pub cache: Cache,
    /// Whether the scope has facts of its own, and so a cache of its own.
    pub learned: bool,
    /// Sharper domains of atoms.
    pub refined: FxHashMap<Term, Domain>,
    /// Integer forms over two atoms or more that are never positive.
    pub facts: Vec<Lin>,
    /// Conditions that are known to be true or false.
    pub known: FxHashMap<Term, bool>,
    /// Values of `let` variables that read no memory.
    pub lets: FxHashMap<Term, Term>,
    pub unreachable: bool,
}

/// How often a fact may lead to another one: `(x // 4) // 8 < 2` bounds `x` in two steps.
const MAX_CONSEQUENCES: u32 = 6;
/// Facts with more atoms than this bound none of them.
const MAX_ATOMS: usize = 8;

impl Analyzer {
    /// Opens a scope.
    pub fn push(&mut self) {
        self.frames.push(Frame::default());
    }

    /// Closes the innermost scope. The outermost one stays.
    pub fn pop(&mut self) {
        if self.frames.len() > 1 {
            self.frames.pop();
        }
        if self.cache_at >= self.frames.len() {
            let learned = self.frames.iter().rposition(|f| f.learned);
            self.cache_at = learned.unwrap_or(0);
        }
    }

    /// Runs `f` in a scope of its own.
    pub fn scoped<R>(&mut self, f: impl FnOnce(&mut Analyzer) -> R) -> R {
        self.push();
        let result = f(self);
        self.pop();
        result
    }

    /// Runs `f` where `cond` holds.
    pub fn with_assumption<R>(&mut self, cond: &Expr, f: impl FnOnce(&mut Analyzer) -> R) -> R {
        self.scoped(|s| {
            s.assume(cond);
            f(s)
        })
    }

    /// Runs `f` where `cond` does not hold.
    pub fn with_refutation<R>(&mut self, cond: &Expr, f: impl FnOnce(&mut Analyzer) -> R) -> R {
        self.scoped(|s| {
            s.refute(cond);
            f(s)
        })
    }

    /// `cond` holds from here to the end of the scope.
    pub fn assume(&mut self, cond: &Expr) {
        let t = self.term(cond);
        self.assume_term(t, true);
    }

    /// `cond` does not hold from here to the end of the scope.
    pub fn refute(&mut self, cond: &Expr) {
        let t = self.term(cond);
        self.assume_term(t, false);
    }

    /// `min <= var < min + extent`, over the integers. The variable has the type of `min`.
    pub fn bind_range(&mut self, var: Var, min: &Expr, extent: &Expr) {
        let (lo, extent) = (self.term(min), self.term(extent));
        let (lo, extent) = (self.integer_form(lo), self.integer_form(extent));
        let mut stop = lo.clone();
        let stop = stop.add_scaled(&extent, 1).map(|()| stop);
        self.bind_forms(var, min.dtype(), &lo, stop.as_ref());
    }

    /// `lo <= var <= hi`.
    pub fn bind_interval(&mut self, var: Var, dtype: DType, interval: Interval) {
        let t = self.var(var, dtype);
        self.refine(t, interval, Congruence::ANY);
    }

    /// `var` is the value of `value` from here to the end of the scope. If the value reads
    /// memory, only its bounds are kept.
    pub fn bind_value(&mut self, var: Var, value: &Expr) {
        let t = self.var(var, value.dtype());
        let value = self.term(value);
        if self.arena.mentions(value, t) {
            return;
        }
        if !crate::simplify::is_integral(self.dtype(value).scalar) {
            return;
        }
        let domain = self.domain(value);
        self.refine(t, domain.interval, domain.congruence);
        if !self.arena.reads_memory(value) {
            self.frame().lets.insert(t, value);
        }
        self.forget();
    }

    /// Whether the facts of the open scopes contradict each other.
    pub fn is_unreachable(&self) -> bool {
        self.frames.iter().any(|f| f.unreachable)
    }

    /// `lo <= var < stop`.
    pub(crate) fn bind_forms(&mut self, var: Var, dtype: DType, lo: &Lin, stop: Option<&Lin>) {
        let t = self.var(var, dtype);
        let mut at_least = lo.clone();
        if at_least.add_term(t, -1).is_some() {
            self.add_fact(at_least, 0);
        }
        let mut below = Lin::atom(t);
        if let Some(stop) = stop
            && below.add_scaled(stop, -1).is_some()
            && below.add_constant(1).is_some()
        {
            self.add_fact(below, 0);
        }
    }

    pub(crate) fn assume_term(&mut self, t: Term, value: bool) {
        self.assume_at(t, value, 0);
    }

    fn assume_at(&mut self, t: Term, value: bool, depth: u32) {
        if depth > MAX_CONSEQUENCES || self.dtype(t) != DType::BOOL {
            return;
        }
        match *self.node(t) {
            Node::Int(constant) => {
                if (constant != 0) != value {
                    self.frame().unreachable = true;
                }
                return;
            }
            Node::Unary(UnOp::Not, a) => return self.assume_at(a, !value, depth + 1),
            Node::Binary(BinOp::LogicalAnd | BinOp::BitAnd, a, b) if value => {
                self.assume_at(a, true, depth + 1);
                self.assume_at(b, true, depth + 1);
            }
            Node::Binary(BinOp::LogicalOr | BinOp::BitOr, a, b) if !value => {
                self.assume_at(a, false, depth + 1);
                self.assume_at(b, false, depth + 1);
            }
            Node::Binary(op, a, b)
                if op.is_comparison()
                    && self.dtype(a).scalar.is_int()
                    && !self.arena.reads_memory(t) =>
            {
                self.assume_comparison(op, a, b, value, depth);
            }
            _ => {}
        }
        if self.arena.reads_memory(t) {
            return;
        }
        let opposite = self.not(t);
        let constant = self.constant(opposite).is_some();
        let frame = self.frame();
        frame.known.insert(t, value);
        if !constant {
            frame.known.insert(opposite, !value);
        }
        self.forget();
    }

    fn assume_comparison(&mut self, op: BinOp, a: Term, b: Term, value: bool, depth: u32) {
        if self.dtype(a) != self.dtype(b) {
            return;
        }
        let (left, right) = (self.integer_form(a), self.integer_form(b));
        // left - right + offset <= 0, or the other way round.
        let at_most = |s: &mut Analyzer, x: &Lin, y: &Lin, offset: i128| {
            if let Some(mut form) = x.minus(y)
                && form.add_constant(offset).is_some()
            {
                s.add_fact(form, depth);
            }
        };
        match (op, value) {
            (BinOp::Lt, true) | (BinOp::Ge, false) => at_most(self, &left, &right, 1),
            (BinOp::Le, true) | (BinOp::Gt, false) => at_most(self, &left, &right, 0),
            (BinOp::Gt, true) | (BinOp::Le, false) => at_most(self, &right, &left, 1),
            (BinOp::Ge, true) | (BinOp::Lt, false) => at_most(self, &right, &left, 0),
            (BinOp::Eq, true) | (BinOp::Ne, false) => {
                at_most(self, &left, &right, 0);
                at_most(self, &right, &left, 0);
            }
            (BinOp::Ne, true) | (BinOp::Eq, false) => self.assume_different(&left, &right, depth),
            _ => {}
        }
    }

    /// A bound that is itself excluded moves by one.
    fn assume_different(&mut self, left: &Lin, right: &Lin, depth: u32) {
        let Some(difference) = left.minus(right) else {
            return;
        };
        let Some(bounds) = self.bounds(&difference) else {
            return;
        };
        let fact = if bounds.lo == 0 {
            // 1 - difference <= 0
            let mut fact = Lin::constant(1);
            fact.add_scaled(&difference, -1).map(|()| fact)
        } else if bounds.hi == 0 {
            let mut fact = difference.clone();
            fact.add_constant(1).map(|()| fact)
        } else {
            None
        };
        if let Some(fact) = fact {
            self.add_fact(fact, depth);
        }
    }

    /// The integer form is never positive.
    pub(crate) fn add_fact(&mut self, mut fact: Lin, depth: u32) {
        if depth > MAX_CONSEQUENCES || fact.terms.iter().any(|&(t, _)| self.arena.reads_memory(t)) {
            return;
        }
        let g = fact.content();
        if g == 0 {
            if fact.constant > 0 {
                self.frame().unreachable = true;
            }
            return;
        }
        if g > 1 {
            fact.terms.iter_mut().for_each(|(_, c)| *c /= g);
            let Some(limit) = fact.constant.checked_neg() else {
                return;
            };
            fact.constant = -limit.div_euclid(g);
        }
        if self.bounds(&fact).is_some_and(|b| b.hi <= 0) {
            return;
        }
        // What the others leave for each atom.
        let atoms = match fact.terms.len() {
            n if n > MAX_ATOMS => 0,
            n => n,
        };
        for index in 0..atoms {
            let (t, c) = fact.terms[index];
            let mut others = fact.clone();
            others.terms.remove(index);
            let Some(least) = self.bounds(&others).map(|b| b.lo) else {
                continue;
            };
            // c t <= -least
            let Some(limit) = least.checked_neg() else {
                continue;
            };
            let bound = if c > 0 {
                Interval::new(i128::MIN, limit.div_euclid(c))
            } else {
                // t >= -limit / |c|, rounded up.
                Interval::new(-limit.div_euclid(-c), i128::MAX)
            };
            self.bound_atom(t, bound, depth);
        }
        if fact.terms.len() > 1 {
            let frame = self.frame();
            if !frame.facts.contains(&fact) {
                frame.facts.push(fact);
            }
            self.forget();
        }
    }

    /// The atom's value is in the interval; so are the values it is computed from.
    fn bound_atom(&mut self, t: Term, bound: Interval, depth: u32) {
        let known = self.interval(t);
        let Some(sharper) = known.meet(bound) else {
            self.frame().unreachable = true;
            return;
        };
        if sharper == known {
            return;
        }
        self.refine(t, sharper, Congruence::ANY);
        let lo = (sharper.lo != known.lo).then_some(sharper.lo);
        let hi = (sharper.hi != known.hi).then_some(sharper.hi);
        self.bound_operands(t, lo, hi, depth + 1);
        if sharper.is_point()
            && let Node::Binary(BinOp::FloorMod, a, m) = *self.node(t)
            && let Some(m) = self.constant(m)
            && m > 0
        {
            self.assume_congruent(a, Congruence::new(m, sharper.lo));
        }
    }

    /// What new bounds of a term say about its operands.
    fn bound_operands(&mut self, t: Term, lo: Option<i128>, hi: Option<i128>, depth: u32) {
        let Node::Binary(op, a, b) = *self.node(t) else {
            return;
        };
        match (op, self.constant(b)) {
            // c lo <= a <= c hi + c - 1
            (BinOp::FloorDiv, Some(c)) if c > 0 => {
                if let Some(lo) = lo.and_then(|lo| lo.checked_mul(c)) {
                    self.at_least(a, lo, depth);
                }
                if let Some(hi) = hi.and_then(|hi| hi.checked_mul(c)) {
                    self.at_most(a, hi + (c - 1), depth);
                }
            }
            (BinOp::Min, _) => {
                for (x, lo) in [a, b].into_iter().zip([lo, lo]) {
                    lo.into_iter().for_each(|lo| self.at_least(x, lo, depth));
                }
            }
            (BinOp::Max, _) => {
                for (x, hi) in [a, b].into_iter().zip([hi, hi]) {
                    hi.into_iter().for_each(|hi| self.at_most(x, hi, depth));
                }
            }
            _ => {}
        }
    }

    fn at_most(&mut self, t: Term, hi: i128, depth: u32) {
        let mut fact = self.integer_form(t);
        if hi
            .checked_neg()
            .and_then(|c| fact.add_constant(c))
            .is_some()
        {
            self.add_fact(fact, depth);
        }
    }

    fn at_least(&mut self, t: Term, lo: i128, depth: u32) {
        let mut fact = Lin::constant(lo);
        if fact.add_scaled(&self.integer_form(t), -1).is_some() {
            self.add_fact(fact, depth);
        }
    }

    fn assume_congruent(&mut self, a: Term, congruence: Congruence) {
        self.refine(a, Interval::of(self.dtype(a).scalar), congruence);
        // x + c ≡ r says the same of x; a negated x likewise.
        let form = self.integer_form(a);
        if let [(x, c @ (1 | -1))] = *form.terms {
            let shifted = congruence.plus(Congruence::exactly(-form.constant));
            self.refine(x, Interval::of(self.dtype(x).scalar), shifted.scale(c));
        }
    }

    /// Records a sharper domain of an atom in this scope.
    pub(crate) fn refine(&mut self, t: Term, interval: Interval, congruence: Congruence) {
        if self.arena.reads_memory(t) {
            return;
        }
        let scalar = self.dtype(t).scalar;
        let whole = Domain::of(scalar);
        let Some(mut domain) = whole
            .interval
            .meet(interval)
            .and_then(|i| Domain::new(i, congruence))
        else {
            self.frame().unreachable = true;
            return;
        };
        let frame = self.frame();
        if let Some(&old) = frame.refined.get(&t) {
            match domain.meet(old) {
                Some(both) => domain = both,
                None => {
                    frame.unreachable = true;
                    return;
                }
            }
        }
        frame.refined.insert(t, domain);
        self.forget();
    }

    /// The scope has learned a fact: what was worked out in it may now be known better.
    fn forget(&mut self) {
        let last = self.frames.len() - 1;
        self.frames[last].learned = true;
        if self.cache_at != last {
            // From here on it has a cache of its own, which is empty.
            self.cache_at = last;
            return;
        }
        let cache = self.cache();
        cache.info.clear();
        cache.forms.clear();
        cache.terms.clear();
        cache.binary.clear();
    }

    /// The constant that a condition is known to be in this scope, or the condition.
    pub(crate) fn known_or(&mut self, t: Term) -> Term {
        if self.dtype(t).scalar != Scalar::Bool {
            return t;
        }
        let known = self.frames.iter().find_map(|f| f.known.get(&t).copied());
        match known {
            Some(value) => {
                self.hit(crate::rules::Rule::KnownCondition);
                let dtype = self.dtype(t);
                self.int(value as i128, dtype)
            }
            None => t,
        }
    }

    pub(crate) fn has_facts(&self) -> bool {
        self.frames
            .iter()
            .any(|f| !f.facts.is_empty() || !f.lets.is_empty())
    }
}
