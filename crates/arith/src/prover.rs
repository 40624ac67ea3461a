//! Proofs of comparisons, divisibility and bounds.
//!
//! [`Proof::Yes`] means: wherever the scope's facts hold, always. [`Proof::No`] means never.
//! Anything else is [`Proof::Unknown`], which is always a possible answer.
//!
//! A comparison is a claim that an integer form is never positive. It holds if the form's upper
//! bound says so; otherwise a fact `F <= 0` of the scope that has an atom in common is used to
//! eliminate that atom: from `goal = (rest + k F) / m` with positive `k` and `m`, `rest <= 0`
//! implies the goal. A few such steps, one after another, are tried. Quotients, remainders,
//! minima and maxima bring facts of their own (`c (y // c) <= y`).
//!
//! Values of different integer types are compared as integers, whatever the types.

use tilewright_ir::{BinOp, Expr, Scalar};

use crate::analyzer::Analyzer;
use crate::congruence::{Congruence, gcd};
use crate::interval::Interval;
use crate::linear::Lin;
use crate::term::{Node, Term};

/// The answer to a question about all executions.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Proof {
    /// Always true.
    Yes,
    /// Always false.
    No,
    Unknown,
}

impl Proof {
    pub fn is_yes(self) -> bool {
        self == Proof::Yes
    }

    pub fn is_no(self) -> bool {
        self == Proof::No
    }

    pub(crate) fn from_option(value: Option<bool>) -> Proof {
        match value {
            Some(true) => Proof::Yes,
            Some(false) => Proof::No,
            None => Proof::Unknown,
        }
    }

    pub(crate) fn negate(self) -> Proof {
        match self {
            Proof::Yes => Proof::No,
            Proof::No => Proof::Yes,
            Proof::Unknown => Proof::Unknown,
        }
    }
}

/// `and`s and `or`s within one another that are looked into.
const MAX_CONNECTIVES: u32 = 8;
/// Eliminations one after another.
const MAX_STEPS: u32 = 4;
/// Eliminations tried for one goal.
const FUEL: u32 = 60;
/// The same, while simplifying.
const LITTLE_FUEL: u32 = 12;

impl Analyzer {
    /// Whether a bool expression is always true or always false.
    pub fn prove(&mut self, cond: &Expr) -> Proof {
        let t = self.term(cond);
        self.prove_term(t, 0)
    }

    /// Whether `a == b`.
    pub fn prove_eq(&mut self, a: &Expr, b: &Expr) -> Proof {
        let (x, y) = (self.term(a), self.term(b));
        if !self.comparable(x, y) {
            return Proof::Unknown;
        }
        if self.dtype(x) == self.dtype(y) {
            let equal = self.binary(BinOp::Eq, x, y, BinOp::Eq.result(a.dtype()));
            if let Some(v) = self.constant(equal) {
                return Proof::from_option(Some(v != 0));
            }
        }
        let (Some(x), Some(y)) = (self.expanded(x), self.expanded(y)) else {
            return Proof::Unknown;
        };
        let goal = x.minus(&y);
        let verdict = goal.and_then(|g| self.with_fuel(|s| s.decide_zero(&g)));
        Proof::from_option(verdict)
    }

    pub fn prove_ne(&mut self, a: &Expr, b: &Expr) -> Proof {
        self.prove_eq(a, b).negate()
    }

    pub fn prove_lt(&mut self, a: &Expr, b: &Expr) -> Proof {
        self.prove_order(a, b, 1)
    }

    pub fn prove_le(&mut self, a: &Expr, b: &Expr) -> Proof {
        self.prove_order(a, b, 0)
    }

    pub fn prove_gt(&mut self, a: &Expr, b: &Expr) -> Proof {
        self.prove_order(b, a, 1)
    }

    pub fn prove_ge(&mut self, a: &Expr, b: &Expr) -> Proof {
        self.prove_order(b, a, 0)
    }

    /// Whether `c` divides the value of an integer expression.
    pub fn divides(&mut self, c: i128, e: &Expr) -> Proof {
        let t = self.term(e);
        if c == 0 || !self.dtype(t).scalar.is_int() {
            return Proof::Unknown;
        }
        let Some(c) = c.checked_abs() else {
            return Proof::Unknown;
        };
        match self.domain(t).congruence.remainder(c) {
            Some(r) => return Proof::from_option(Some(r == 0)),
            // Another remainder by a part of c is enough to say no.
            None => {
                let Congruence { modulus, residue } = self.domain(t).congruence;
                if residue % gcd(modulus, c) != 0 {
                    return Proof::No;
                }
            }
        }
        let form = self.expanded(t);
        let remainder = form.and_then(|f| self.congruence_of(&f).remainder(c));
        Proof::from_option(remainder.map(|r| r == 0))
    }

    /// The least and greatest value an integer or bool expression can have, as far as known;
    /// [`Interval::ALL`] for other types.
    pub fn const_bounds(&mut self, e: &Expr) -> Interval {
        let t = self.term(e);
        self.interval(t)
    }

    /// What an integer expression's value is congruent to.
    pub fn congruence(&mut self, e: &Expr) -> Congruence {
        let t = self.term(e);
        self.domain(t).congruence
    }

    fn prove_order(&mut self, a: &Expr, b: &Expr, offset: i128) -> Proof {
        let (x, y) = (self.term(a), self.term(b));
        if !self.comparable(x, y) {
            return Proof::Unknown;
        }
        let verdict = self.order_verdict(x, y, offset);
        if verdict.is_none() && self.dtype(x) == self.dtype(y) {
            let t = self.less(x, y, offset == 1);
            return Proof::from_option(self.constant(t).map(|v| v != 0));
        }
        Proof::from_option(verdict)
    }

    /// Whether `x + offset <= y`.
    fn order_verdict(&mut self, x: Term, y: Term, offset: i128) -> Option<bool> {
        let (x, y) = (self.expanded(x)?, self.expanded(y)?);
        let mut goal = x.minus(&y)?;
        goal.add_constant(offset)?;
        self.with_fuel(|s| s.decide_nonpositive(&goal))
    }

    /// Runs `f` with the prover's full strength.
    fn with_fuel<R>(&mut self, f: impl FnOnce(&mut Analyzer) -> R) -> R {
        let before = std::mem::replace(&mut self.proving, true);
        let result = f(self);
        self.proving = before;
        result
    }

    fn comparable(&self, x: Term, y: Term) -> bool {
        let (x, y) = (self.dtype(x), self.dtype(y));
        let integral = |s: Scalar| s.is_int();
        integral(x.scalar)
            && integral(y.scalar)
            && (x.lanes == y.lanes || x.lanes == 1 || y.lanes == 1)
    }

    fn prove_term(&mut self, t: Term, depth: u32) -> Proof {
        if let Some(v) = self.constant(t) {
            return Proof::from_option(Some(v != 0));
        }
        if depth > MAX_CONNECTIVES {
            return Proof::Unknown;
        }
        match *self.node(t) {
            Node::Binary(op, a, b) if op.is_comparison() && self.comparable(a, b) => {
                let verdict = match op {
                    BinOp::Lt => self.order_verdict(a, b, 1),
                    BinOp::Le => self.order_verdict(a, b, 0),
                    BinOp::Gt => self.order_verdict(b, a, 1),
                    BinOp::Ge => self.order_verdict(b, a, 0),
                    _ => {
                        let goal = self.expanded(a).zip(self.expanded(b));
                        let goal = goal.and_then(|(a, b)| a.minus(&b));
                        let equal = goal.and_then(|g| self.with_fuel(|s| s.decide_zero(&g)));
                        equal.map(|e| e == (op == BinOp::Eq))
                    }
                };
                Proof::from_option(verdict)
            }
            Node::Binary(op @ (BinOp::LogicalAnd | BinOp::LogicalOr), a, b) => {
                // The answer that decides alone.
                let decisive = match op {
                    BinOp::LogicalAnd => Proof::No,
                    _ => Proof::Yes,
                };
                let (a, b) = (self.prove_term(a, depth + 1), self.prove_term(b, depth + 1));
                match (a == decisive || b == decisive, a == b) {
                    (true, _) => decisive,
                    (false, true) => a,
                    _ => Proof::Unknown,
                }
            }
            _ => Proof::Unknown,
        }
    }

    /// The integer form with `let`s replaced by their values and products multiplied out.
    pub(crate) fn expanded(&mut self, t: Term) -> Option<Lin> {
        let form = self.integer_form(t);
        self.expand(form, 0)
    }

    fn expand(&mut self, form: Lin, depth: u32) -> Option<Lin> {
        if depth > 8 {
            return Some(form);
        }
        let mut result = Lin::constant(form.constant);
        let mut changed = false;
        for &(t, c) in form.terms.iter() {
            match self.expansion(t) {
                Some(inner) => {
                    changed = true;
                    result.add_scaled(&inner, c)?;
                }
                None => result.add_term(t, c)?,
            }
        }
        if changed {
            self.expand(result, depth + 1)
        } else {
            Some(result)
        }
    }

    fn expansion(&mut self, t: Term) -> Option<Lin> {
        match *self.node(t) {
            Node::Var(_) => {
                let value = self
                    .frames
                    .iter()
                    .rev()
                    .find_map(|f| f.lets.get(&t).copied())?;
                Some(self.integer_form(value))
            }
            Node::Binary(BinOp::Mul, a, b) => self.expanded_product(t, a, b),
            _ => None,
        }
    }

    /// `(p + q) · r` as `p r + q r`, where no product wraps.
    fn expanded_product(&mut self, t: Term, a: Term, b: Term) -> Option<Lin> {
        let dtype = self.dtype(t);
        let range = Interval::of(dtype.scalar);
        let (x, y) = (self.integer_form(a), self.integer_form(b));
        if x.as_atom() == Some(a) && y.as_atom() == Some(b) {
            return None;
        }
        if x.terms.len() * y.terms.len() > 16
            || !self.interval(a).times(self.interval(b))?.is_within(range)
        {
            return None;
        }
        let mut result = Lin::default();
        for &(p, c) in x.terms.iter() {
            for &(q, d) in y.terms.iter() {
                if self.dtype(p) != dtype || self.dtype(q) != dtype {
                    return None;
                }
                if !self.interval(p).times(self.interval(q))?.is_within(range) {
                    return None;
                }
                let product = self.mul(p, q);
                let product = self.integer_form(product);
                result.add_scaled(&product, c.checked_mul(d)?)?;
            }
            result.add_term(p, c.checked_mul(y.constant)?)?;
        }
        for &(q, d) in y.terms.iter() {
            result.add_term(q, d.checked_mul(x.constant)?)?;
        }
        result.add_constant(x.constant.checked_mul(y.constant)?)?;
        Some(result)
    }

    /// Whether `a < b` always holds.
    pub(crate) fn proves_less(&mut self, a: &Lin, b: &Lin) -> bool {
        let goal = || {
            let mut goal = a.minus(b)?;
            goal.add_constant(1)?;
            Some(goal)
        };
        goal().is_some_and(|g| self.proves_nonpositive(&g))
    }

    /// Whether an integer form is never positive.
    pub(crate) fn proves_nonpositive(&mut self, goal: &Lin) -> bool {
        if self.bounds(goal).is_some_and(|b| b.hi <= 0) {
            return true;
        }
        // A proof may build terms, which may ask for proofs; those have nothing left.
        if self.fuel > 0 {
            return false;
        }
        let Some(goal) = self.expand(goal.clone(), 0) else {
            return false;
        };
        self.fuel = if self.proving { FUEL } else { LITTLE_FUEL };
        let proved = self.eliminate(&goal, 0);
        self.fuel = 0;
        proved
    }

    /// Whether the form brings facts of its own.
    pub(crate) fn has_relations(&self, goal: &Lin) -> bool {
        goal.terms.len() > 1
            && goal.terms.iter().any(|&(t, _)| {
                matches!(
                    self.node(t),
                    Node::Binary(
                        BinOp::FloorDiv | BinOp::FloorMod | BinOp::Min | BinOp::Max,
                        ..
                    )
                )
            })
    }

    fn eliminate(&mut self, goal: &Lin, step: u32) -> bool {
        if self.bounds(goal).is_some_and(|b| b.hi <= 0) {
            return true;
        }
        if step == MAX_STEPS {
            return false;
        }
        for &(t, c) in goal.terms.iter() {
            let positive = c > 0;
            for fact in self.facts_about(t) {
                let k = fact.coefficient(t);
                if (k > 0) != positive || k == 0 {
                    continue;
                }
                if self.fuel <= 1 {
                    return false;
                }
                self.fuel -= 1;
                if let Some(rest) = combine(goal, c, &fact, k)
                    && rest.terms.len() <= goal.terms.len() + 1
                    && self.eliminate(&rest, step + 1)
                {
                    return true;
                }
            }
        }
        false
    }

    /// Forms that are never positive and have the atom as a term.
    fn facts_about(&mut self, t: Term) -> Vec<Lin> {
        let mut facts: Vec<Lin> = Vec::new();
        for frame in self.frames.iter().rev() {
            facts.extend(
                frame
                    .facts
                    .iter()
                    .filter(|f| f.coefficient(t) != 0)
                    .cloned(),
            );
        }
        let Node::Binary(op, a, b) = *self.node(t) else {
            return facts;
        };
        let (x, y) = (self.integer_form(a), self.integer_form(b));
        // k t + s x + offset <= 0
        let mut fact = |k: i128, form: &Lin, s: i128, offset: i128| {
            let mut f = Lin::constant(offset);
            if f.add_term(t, k).is_some()
                && f.add_scaled(form, s).is_some()
                && f.coefficient(t) != 0
            {
                facts.push(f);
            }
        };
        match (op, y.as_constant()) {
            // c t <= x <= c t + c - 1
            (BinOp::FloorDiv, Some(c)) if c > 0 => {
                fact(c, &x, -1, 0);
                fact(-c, &x, 1, 1 - c);
            }
            (BinOp::FloorMod, Some(c)) if c > 0 => {
                // t = x - c (x // c)
                let q = self.floor_div(a, b);
                let q = self.integer_form(q);
                if let Some(rest) = subtract_scaled(&x, &q, c) {
                    fact(1, &rest, -1, 0);
                    fact(-1, &rest, 1, 0);
                }
            }
            (BinOp::Min, _) => {
                fact(1, &x, -1, 0);
                fact(1, &y, -1, 0);
            }
            (BinOp::Max, _) => {
                fact(-1, &x, 1, 0);
                fact(-1, &y, 1, 0);
            }
            _ => {}
        }
        facts
    }
}

/// `x - c q`.
fn subtract_scaled(x: &Lin, q: &Lin, c: i128) -> Option<Lin> {
    let mut rest = x.clone();
    rest.add_scaled(q, c.checked_neg()?)?;
    Some(rest)
}

/// `(|k| goal - |c| fact) / gcd`, in which the atom with these coefficients is gone.
fn combine(goal: &Lin, c: i128, fact: &Lin, k: i128) -> Option<Lin> {
    let g = gcd(c, k);
    let (k, c) = (k.abs() / g, c.abs() / g);
    let mut rest = Lin::default();
    rest.add_scaled(goal, k)?;
    rest.add_scaled(fact, c.checked_neg()?)?;
    Some(rest)
}
