//! Bools, choices between values, casts.

use tilewright_ir::{BinOp, DType, MathFn, Scalar, UnOp};

use crate::analyzer::Analyzer;
use crate::fold::{float_to_float, float_to_int, int_to_float, is_computed};
use crate::interval::Interval;
use crate::linear::Lin;
use crate::rules::Rule;
use crate::simplify::is_integral;
use crate::term::{Node, Term};

impl Analyzer {
    pub(crate) fn not(&mut self, a: Term) -> Term {
        let dtype = self.dtype(a);
        let negated = match *self.node(a) {
            Node::Int(v) => self.int((v == 0) as i128, dtype),
            Node::Unary(UnOp::Not, x) => x,
            Node::Binary(op, x, y) if op.is_comparison() && self.dtype(x).scalar.is_int() => {
                self.negated_comparison(op, x, y)
            }
            // The right side still runs only when the left one lets it. One level is enough:
            // going further would walk a shared tree again and again.
            Node::Binary(op @ (BinOp::LogicalAnd | BinOp::LogicalOr), x, y)
                if !self.is_connective(x) && !self.is_connective(y) =>
            {
                let (x, y) = (self.not(x), self.not(y));
                let dual = match op {
                    BinOp::LogicalAnd => BinOp::LogicalOr,
                    _ => BinOp::LogicalAnd,
                };
                self.raw(dual, x, y)
            }
            _ => return self.raw_not(a),
        };
        self.hit(Rule::NotPush);
        negated
    }

    fn is_connective(&self, t: Term) -> bool {
        matches!(self.node(t), Node::Binary(op, ..) if op.is_logical())
    }

    /// The comparison of integers that holds exactly when this one does not, in the normal form
    /// of comparisons.
    fn negated_comparison(&mut self, op: BinOp, x: Term, y: Term) -> Term {
        let t = match op {
            BinOp::Lt if self.constant(y).is_some() => self.raw(BinOp::Ge, x, y),
            BinOp::Lt => self.raw(BinOp::Le, y, x),
            BinOp::Le => self.raw(BinOp::Lt, y, x),
            BinOp::Ge => self.raw(BinOp::Lt, x, y),
            BinOp::Gt => self.raw(BinOp::Le, x, y),
            BinOp::Eq => self.raw(BinOp::Ne, x, y),
            _ => self.raw(BinOp::Eq, x, y),
        };
        self.known_or(t)
    }

    fn raw_not(&mut self, a: Term) -> Term {
        let dtype = self.dtype(a);
        let t = self.arena.intern(Node::Unary(UnOp::Not, a), dtype);
        self.known_or(t)
    }

    /// `and` and `or`. The right operand has been simplified knowing the left one.
    pub(crate) fn logical(&mut self, op: BinOp, a: Term, b: Term) -> Term {
        if self.dtype(a).scalar != Scalar::Bool {
            return self.raw(op, a, b);
        }
        // The value that decides the result: false for `and`, true for `or`.
        let decisive = (op == BinOp::LogicalOr) as i128;
        for (x, y) in [(a, b), (b, a)] {
            if let Some(value) = self.constant(x) {
                self.hit(Rule::LogicConstant);
                return if value == decisive { x } else { y };
            }
        }
        if a == b {
            self.hit(Rule::LogicSame);
            return a;
        }
        if self.not(a) == b {
            self.hit(Rule::LogicOpposite);
            return self.int(decisive, self.dtype(a));
        }
        let t = self.raw(op, a, b);
        self.known_or(t)
    }

    /// Arithmetic, bit operations and comparisons on bools.
    pub(crate) fn bool_binary(&mut self, op: BinOp, a: Term, b: Term, dtype: DType) -> Term {
        let same = a == b;
        let result = match op {
            BinOp::BitAnd | BinOp::BitOr | BinOp::Min | BinOp::Max if same => Some(a),
            BinOp::BitXor | BinOp::Ne | BinOp::Lt | BinOp::Gt if same => Some(self.int(0, dtype)),
            BinOp::Eq | BinOp::Le | BinOp::Ge if same => Some(self.int(1, dtype)),
            _ => {
                let constant = match (self.constant(a), self.constant(b)) {
                    (Some(c), None) => Some((c, b)),
                    (None, Some(c)) => Some((c, a)),
                    _ => None,
                };
                match (op, constant) {
                    (BinOp::BitAnd | BinOp::Min, Some((0, _))) => Some(self.int(0, dtype)),
                    (BinOp::BitAnd | BinOp::Min, Some((_, x))) => Some(x),
                    (BinOp::BitOr | BinOp::Max, Some((0, x))) => Some(x),
                    (BinOp::BitOr | BinOp::Max, Some(_)) => Some(self.int(1, dtype)),
                    (BinOp::BitXor | BinOp::Ne, Some((0, x))) | (BinOp::Eq, Some((1, x))) => {
                        Some(x)
                    }
                    (BinOp::BitXor | BinOp::Ne, Some((1, x))) | (BinOp::Eq, Some((0, x))) => {
                        Some(self.not(x))
                    }
                    _ => None,
                }
            }
        };
        match result {
            Some(t) => {
                self.hit(Rule::BoolIdentity);
                t
            }
            None => {
                let t = self.raw(op, a, b);
                self.known_or(t)
            }
        }
    }

    /// A `select` or, lazily, an `if`-expression; the condition is not a constant.
    pub(crate) fn choose(&mut self, lazy: bool, cond: Term, then: Term, otherwise: Term) -> Term {
        let dtype = self.dtype(then);
        if then == otherwise {
            self.hit(Rule::ChooseSame);
            return then;
        }
        if let Node::Unary(UnOp::Not, inner) = *self.node(cond) {
            self.hit(Rule::ChooseNot);
            return self.choose(lazy, inner, otherwise, then);
        }
        if dtype == self.dtype(cond) && dtype.scalar == Scalar::Bool {
            match (self.constant(then), self.constant(otherwise)) {
                (Some(1), Some(0)) => {
                    self.hit(Rule::ChooseBool);
                    return cond;
                }
                (Some(0), Some(1)) => {
                    self.hit(Rule::ChooseBool);
                    return self.not(cond);
                }
                _ => {}
            }
        }
        if let Some(op) = self.as_min_max(cond, then, otherwise) {
            self.hit(Rule::ChooseMinMax);
            return self.min_max(op, then, otherwise);
        }
        let node = Node::Choose {
            lazy,
            cond,
            then,
            otherwise,
        };
        self.arena.intern(node, dtype)
    }

    /// The operation that `a < b ? a : b` and its like spell out.
    fn as_min_max(&self, cond: Term, then: Term, otherwise: Term) -> Option<BinOp> {
        let Node::Binary(op, x, y) = *self.node(cond) else {
            return None;
        };
        let dtype = self.dtype(then);
        if !dtype.scalar.is_int() || self.dtype(x) != dtype {
            return None;
        }
        let less_first = match op {
            BinOp::Lt | BinOp::Le => true,
            BinOp::Ge | BinOp::Gt => false,
            _ => return None,
        };
        match (x == then && y == otherwise, x == otherwise && y == then) {
            (true, _) => Some(if less_first { BinOp::Min } else { BinOp::Max }),
            (_, true) => Some(if less_first { BinOp::Max } else { BinOp::Min }),
            _ => None,
        }
    }

    pub(crate) fn cast(&mut self, a: Term, dtype: DType) -> Term {
        let from = self.dtype(a);
        if from == dtype {
            self.hit(Rule::CastSame);
            return a;
        }
        if let Some(folded) = self.fold_cast(a, from.scalar, dtype) {
            self.hit(Rule::FoldConstants);
            return folded;
        }
        if from.lanes != dtype.lanes || !is_integral(from.scalar) {
            return self.arena.intern(Node::Cast(a), dtype);
        }
        if from.scalar.is_int() && dtype.scalar == Scalar::Bool {
            self.hit(Rule::CastToBool);
            let zero = self.int(0, from);
            return self.equality(BinOp::Ne, a, zero);
        }
        if let Node::Broadcast(x) = *self.node(a) {
            self.hit(Rule::BroadcastOut);
            let x = self.cast(x, dtype.with_lanes(1));
            return self.broadcast(x, dtype);
        }
        if !dtype.scalar.is_int() {
            return self.arena.intern(Node::Cast(a), dtype);
        }
        if let Node::Cast(x) = *self.node(a)
            && let inner = self.dtype(x)
            && is_integral(inner.scalar)
        {
            // Going through a type drops nothing if it has at least the bits of the result, or
            // if the value fits in it.
            let fits =
                from.scalar.is_int() && self.interval(x).is_within(Interval::of(from.scalar));
            if fits || (from.scalar.is_int() && dtype.scalar.bits() <= from.scalar.bits()) {
                self.hit(Rule::CastCast);
                return self.cast(x, dtype);
            }
        }
        if dtype.scalar.bits() <= from.scalar.bits()
            && let Some(t) = self.narrow_sum(a, dtype)
        {
            return t;
        }
        self.arena.intern(Node::Cast(a), dtype)
    }

    /// A narrowing cast of a sum of casts, where every cast disappears.
    fn narrow_sum(&mut self, a: Term, dtype: DType) -> Option<Term> {
        let Node::Sum(terms, constant) = self.node(a).clone() else {
            return None;
        };
        let mut sum = Lin::constant(constant);
        for &(t, c) in &terms {
            let Node::Cast(x) = *self.node(t) else {
                return None;
            };
            if self.dtype(x) != dtype {
                return None;
            }
            sum.ring_add_scaled(&self.ring_form(x), c);
        }
        self.hit(Rule::CastNarrowSum);
        Some(self.sum(sum, dtype))
    }

    fn fold_cast(&mut self, a: Term, from: Scalar, dtype: DType) -> Option<Term> {
        let to = dtype.scalar;
        match *self.node(a) {
            Node::Int(value) if is_integral(to) => Some(self.int(value, dtype)),
            Node::Int(value) => {
                let value = int_to_float(value, to)?;
                Some(self.arena.intern(Node::Float(value.to_bits()), dtype))
            }
            Node::Float(bits) if to.is_int() => {
                let value = float_to_int(f64::from_bits(bits), from, to)?;
                Some(self.int(value, dtype))
            }
            Node::Float(bits) if to.is_float() => {
                let value = float_to_float(f64::from_bits(bits), from, to)?;
                Some(self.arena.intern(Node::Float(value.to_bits()), dtype))
            }
            _ => None,
        }
    }

    pub(crate) fn reinterpret(&mut self, a: Term, dtype: DType) -> Term {
        let from = self.dtype(a);
        if from == dtype {
            self.hit(Rule::CastSame);
            return a;
        }
        let same_width = from.scalar.bits() == dtype.scalar.bits() && from.lanes == dtype.lanes;
        if from.scalar.is_int() && dtype.scalar.is_int() && same_width {
            self.hit(Rule::ReinterpretInt);
            return self.cast(a, dtype);
        }
        self.arena.intern(Node::Reinterpret(a), dtype)
    }

    pub(crate) fn math(&mut self, f: MathFn, args: Box<[Term]>, dtype: DType) -> Term {
        if let ([a], true) = (&*args, dtype.scalar.is_int())
            && self.dtype(*a) == dtype
        {
            let a = *a;
            match f {
                MathFn::Floor
                | MathFn::Ceil
                | MathFn::Trunc
                | MathFn::Round
                | MathFn::RoundAway => {
                    self.hit(Rule::RoundInt);
                    return a;
                }
                MathFn::Abs if self.interval(a).lo >= 0 => {
                    self.hit(Rule::AbsSign);
                    return a;
                }
                // The smallest value is its own negation and its own absolute value.
                MathFn::Abs if self.interval(a).hi <= 0 => {
                    self.hit(Rule::AbsSign);
                    return self.scaled(a, -1);
                }
                _ => {}
            }
        }
        self.arena.intern(Node::Math(f, args), dtype)
    }

    /// Floats: only what holds for NaN, infinities and both zeros.
    pub(crate) fn float_binary(&mut self, op: BinOp, a: Term, b: Term, dtype: DType) -> Term {
        if is_computed(dtype.scalar) {
            let is = |s: &Analyzer, t: Term, value: f64| *s.node(t) == Node::Float(value.to_bits());
            let kept = match op {
                BinOp::Mul if is(self, b, 1.0) => Some(a),
                BinOp::Mul if is(self, a, 1.0) => Some(b),
                BinOp::Div if is(self, b, 1.0) => Some(a),
                // x + 0.0 would turn -0.0 into 0.0.
                BinOp::Sub if is(self, b, 0.0) => Some(a),
                BinOp::Add if is(self, b, -0.0) => Some(a),
                BinOp::Add if is(self, a, -0.0) => Some(b),
                BinOp::Min | BinOp::Max if a == b => Some(a),
                _ => None,
            };
            if let Some(t) = kept {
                self.hit(Rule::FloatIdentity);
                return t;
            }
        }
        let t = self.raw(op, a, b);
        if op.is_comparison() {
            self.known_or(t)
        } else {
            t
        }
    }
}
