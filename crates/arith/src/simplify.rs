//! From expressions to canonical terms.
//!
//! Every node is built by the constructor of its operation from canonical operands, and the
//! constructors apply the rules ([`rules`](crate::rules)). Nothing is rewritten after it is
//! built, so one walk is enough.
//!
//! **What is assumed of undefined behaviour.** Division by zero and shifts out of range are
//! undefined. Rules keep such an operation wherever the divisor may be zero (`x // x` and
//! `0 // x` stay), so the error stays visible to whoever looks for it. Rules may drop an operand
//! whose value does not matter (`x * 0`, `false && x`), even if computing it would have been
//! undefined: a program without the undefined operation is one of its meanings. No rule makes an
//! expression undefined that was not.
//!
//! **Arms and guards.** The arm of an `if`-expression and the right side of `and` and `or` run
//! only when their condition holds, and are simplified assuming it. Both arms of a `select` run
//! always: they are simplified assuming the condition only if nothing in them can be undefined.
//! A rewritten index could leave its buffer, and a rewritten divisor be zero, in the arm that is
//! not chosen.

use tilewright_ir::{BinOp, DType, Expr, ExprKind, F64, Scalar, UnOp};

use crate::analyzer::Analyzer;
use crate::rules::Rule;
use crate::term::{Node, Term, address};

/// Nodes deeper than this below the root are not looked into, which bounds the stack.
pub const MAX_DEPTH: u32 = 160;

/// Conditions within conditions that are assumed at once.
const MAX_ASSUMED: u32 = 4;
/// Conditions that are assumed in one expression. Each starts with an empty cache, so parts that
/// many arms share are simplified that often.
const MAX_CONDITIONS: u32 = 64;

impl Analyzer {
    /// The canonical term of an expression.
    pub(crate) fn term(&mut self, e: &Expr) -> Term {
        self.conditions_left = MAX_CONDITIONS;
        self.term_at(e, 0)
    }

    fn term_at(&mut self, e: &Expr, depth: u32) -> Term {
        let dtype = e.dtype();
        match *e.kind() {
            ExprKind::Int(value)
                if is_integral(dtype.scalar) && dtype.scalar.wrap(value) == value =>
            {
                return self.arena.intern(Node::Int(value), dtype);
            }
            ExprKind::Int(_) => return self.arena.opaque(e),
            ExprKind::Float(F64(value)) => {
                return self.arena.intern(Node::Float(value.to_bits()), dtype);
            }
            ExprKind::Var(var) => return self.var(var, dtype),
            _ => {}
        }
        if let Some(&(_, t)) = self.cache().terms.get(&address(e)) {
            return t;
        }
        if depth >= MAX_DEPTH {
            return self.arena.opaque(e);
        }
        let mut t = self.node_term(e, dtype, depth + 1);
        // Only an ill-typed expression comes out with another type; the verifier reports those.
        if self.dtype(t) != dtype {
            t = self.arena.opaque(e);
        }
        self.arena.note_span(t, e.span());
        self.cache().terms.insert(address(e), (e.clone(), t));
        t
    }

    fn node_term(&mut self, e: &Expr, dtype: DType, depth: u32) -> Term {
        match e.kind() {
            ExprKind::Int(_) | ExprKind::Float(_) | ExprKind::Var(_) => self.arena.opaque(e),
            ExprKind::Load { buffer, indices } => {
                let indices = self.terms_at(indices, depth);
                self.arena.intern(Node::Load(*buffer, indices), dtype)
            }
            ExprKind::AddressOf { buffer, indices } => {
                let indices = self.terms_at(indices, depth);
                self.arena.intern(Node::AddressOf(*buffer, indices), dtype)
            }
            ExprKind::Unary(op, a) => {
                let a = self.term_at(a, depth);
                match op {
                    UnOp::Not => self.not(a),
                    UnOp::BitNot => self.bit_not(a),
                }
            }
            ExprKind::Binary(op, a, b) => self.binary_at(*op, a, b, dtype, depth),
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => {
                let c = self.term_at(cond, depth);
                let assume = !is_delicate(then) && !is_delicate(otherwise);
                self.choose_at(false, c, then, otherwise, assume, depth)
            }
            ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => {
                let c = self.term_at(cond, depth);
                self.choose_at(true, c, then, otherwise, true, depth)
            }
            ExprKind::Cast(a) => {
                let a = self.term_at(a, depth);
                self.cast(a, dtype)
            }
            ExprKind::Reinterpret(a) => {
                let a = self.term_at(a, depth);
                self.reinterpret(a, dtype)
            }
            ExprKind::Math(f, args) => {
                let args = self.terms_at(args, depth);
                self.math(*f, args, dtype)
            }
            ExprKind::Ramp { base, stride } => {
                let (base, stride) = (self.term_at(base, depth), self.term_at(stride, depth));
                self.ramp(base, stride, dtype)
            }
            ExprKind::Broadcast(a) => {
                let a = self.term_at(a, depth);
                self.broadcast(a, dtype)
            }
            ExprKind::Lane { vector, lane } => {
                let vector = self.term_at(vector, depth);
                self.lane(vector, *lane, dtype)
            }
        }
    }

    fn terms_at(&mut self, list: &[Expr], depth: u32) -> Box<[Term]> {
        list.iter().map(|e| self.term_at(e, depth)).collect()
    }

    fn binary_at(&mut self, op: BinOp, a: &Expr, b: &Expr, dtype: DType, depth: u32) -> Term {
        let left = self.term_at(a, depth);
        let right = if op.is_logical() && self.dtype(left) == DType::BOOL {
            match (op, self.constant(left)) {
                // The constructor drops the right side.
                (BinOp::LogicalAnd, Some(0)) | (BinOp::LogicalOr, Some(1)) => left,
                _ => self.assuming(left, op == BinOp::LogicalAnd, |s| s.term_at(b, depth)),
            }
        } else {
            self.term_at(b, depth)
        };
        self.binary(op, left, right, dtype)
    }

    fn choose_at(
        &mut self,
        lazy: bool,
        cond: Term,
        then: &Expr,
        otherwise: &Expr,
        assume: bool,
        depth: u32,
    ) -> Term {
        if let Some(c) = self.constant(cond)
            && self.dtype(cond).lanes == 1
        {
            self.hit(Rule::ChooseConstant);
            return self.term_at(if c != 0 { then } else { otherwise }, depth);
        }
        let (then, otherwise) = if assume && self.dtype(cond) == DType::BOOL {
            (
                self.assuming(cond, true, |s| s.term_at(then, depth)),
                self.assuming(cond, false, |s| s.term_at(otherwise, depth)),
            )
        } else {
            (self.term_at(then, depth), self.term_at(otherwise, depth))
        };
        self.choose(lazy, cond, then, otherwise)
    }

    /// Runs `f` in a scope in which `cond` is `value`.
    fn assuming(&mut self, cond: Term, value: bool, f: impl FnOnce(&mut Analyzer) -> Term) -> Term {
        let enough = self.assumed_conditions >= MAX_ASSUMED || self.conditions_left == 0;
        if enough || self.constant(cond).is_some() {
            return f(self);
        }
        self.conditions_left -= 1;
        self.assumed_conditions += 1;
        self.push();
        self.assume_term(cond, value);
        let result = f(self);
        self.pop();
        self.assumed_conditions -= 1;
        result
    }

    /// `a op b` for canonical operands.
    pub(crate) fn binary(&mut self, op: BinOp, a: Term, b: Term, dtype: DType) -> Term {
        let operands = self.dtype(a);
        // Operands of different types are an error that the verifier reports, and a vector of
        // another length than its operands is one too.
        if operands != self.dtype(b) || op.result(operands) != dtype {
            return self.arena.intern(Node::Binary(op, a, b), dtype);
        }
        if let Some(&t) = self.cache().binary.get(&(op, a, b)) {
            return t;
        }
        let t = self.well_typed_binary(op, a, b, dtype);
        // In the middle of a proof less is tried, and the result may be worth less.
        if self.fuel == 0 {
            self.cache().binary.insert((op, a, b), t);
        }
        t
    }

    fn well_typed_binary(&mut self, op: BinOp, a: Term, b: Term, dtype: DType) -> Term {
        let scalar = self.dtype(a).scalar;
        if let Some(folded) = self.fold_constants(op, a, b, dtype) {
            self.hit(Rule::FoldConstants);
            return folded;
        }
        if let Some(t) = self.binary_of_broadcasts(op, a, b, dtype) {
            return t;
        }
        if op.is_logical() {
            return self.logical(op, a, b);
        }
        if scalar == Scalar::Bool {
            return self.bool_binary(op, a, b, dtype);
        }
        if !scalar.is_int() {
            return self.float_binary(op, a, b, dtype);
        }
        match op {
            BinOp::Add => self.add(a, b),
            BinOp::Sub => self.sub(a, b),
            BinOp::Mul => self.mul(a, b),
            BinOp::FloorDiv => self.floor_div(a, b),
            BinOp::FloorMod => self.floor_mod(a, b),
            BinOp::TruncDiv => self.trunc_div(a, b),
            BinOp::TruncMod => self.trunc_mod(a, b),
            BinOp::Min | BinOp::Max => self.min_max(op, a, b),
            BinOp::BitAnd => self.bit_and(a, b),
            BinOp::BitOr => self.bit_or(a, b),
            BinOp::BitXor => self.bit_xor(a, b),
            BinOp::Shl => self.shl(a, b),
            BinOp::Shr => self.shr(a, b),
            BinOp::Eq | BinOp::Ne => self.equality(op, a, b),
            BinOp::Lt => self.less(a, b, true),
            BinOp::Le => self.less(a, b, false),
            BinOp::Gt => self.less(b, a, true),
            BinOp::Ge => self.less(b, a, false),
            BinOp::Div | BinOp::LogicalAnd | BinOp::LogicalOr => {
                self.arena.intern(Node::Binary(op, a, b), dtype)
            }
        }
    }

    fn fold_constants(&mut self, op: BinOp, a: Term, b: Term, dtype: DType) -> Option<Term> {
        use crate::fold::{Folded, fold_float, fold_int};
        let scalar = self.dtype(a).scalar;
        match (self.node(a), self.node(b)) {
            (&Node::Int(x), &Node::Int(y)) => {
                let value = fold_int(op, x, y, scalar)?;
                Some(self.int(value, dtype))
            }
            (&Node::Float(x), &Node::Float(y)) => {
                match fold_float(op, f64::from_bits(x), f64::from_bits(y), scalar)? {
                    Folded::Float(v) => Some(self.arena.intern(Node::Float(v.to_bits()), dtype)),
                    Folded::Bool(v) => Some(self.int(v as i128, dtype)),
                }
            }
            _ => None,
        }
    }

    pub(crate) fn var(&mut self, var: tilewright_ir::Var, dtype: DType) -> Term {
        self.arena.intern(Node::Var(var), dtype)
    }
}

/// Integer or bool.
pub(crate) fn is_integral(scalar: Scalar) -> bool {
    scalar.is_int() || scalar == Scalar::Bool
}

/// Whether the expression has a load, or a division or shift whose right side is not a constant:
/// things that other operands could make undefined. Large expressions are taken to have one.
fn is_delicate(e: &Expr) -> bool {
    let mut pending = vec![e];
    let mut seen = 0;
    while let Some(e) = pending.pop() {
        seen += 1;
        let delicate = match e.kind() {
            ExprKind::Load { .. } => true,
            ExprKind::Binary(
                BinOp::FloorDiv
                | BinOp::FloorMod
                | BinOp::TruncDiv
                | BinOp::TruncMod
                | BinOp::Shl
                | BinOp::Shr,
                _,
                b,
            ) => b.as_int().is_none(),
            _ => false,
        };
        if seen > 64 || delicate {
            return true;
        }
        pending.extend(e.operands());
    }
    false
}
