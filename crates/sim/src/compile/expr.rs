//! Compilation of expressions.
//!
//! A vector expression is compiled lane by lane into scalar ones, which is right because
//! expressions have no effects. Nodes over constants are folded on the way up.

use tilewright_ir::{BinOp, Expr, ExprKind, MAX_EXPR_DEPTH, MAX_EXPR_SIZE, MathFn, Scalar, UnOp};

use crate::compile::names::{Compiled, Names};
use crate::error::{RunError, codes};
use crate::eval::{self, Nothing};
use crate::program::{Float, Int, Num};
use crate::value;

/// One lane of an expression.
pub(crate) fn num(names: &mut Names<'_>, e: &Expr, lane: usize) -> Compiled<Num> {
    check_size(e)?;
    Compiler { names }.num(e, lane)
}

/// One lane of an expression of integer or bool type.
pub(crate) fn int(names: &mut Names<'_>, e: &Expr, lane: usize) -> Compiled<Int> {
    check_size(e)?;
    Compiler { names }.int(e, lane)
}

/// One lane of an expression, converted to a type.
pub(crate) fn cast(names: &mut Names<'_>, e: &Expr, lane: usize, to: Scalar) -> Compiled<Num> {
    let value = num(names, e, lane)?;
    Ok(convert(value, e.dtype().scalar, to))
}

/// A conversion, folded where it changes nothing.
pub(crate) fn convert(value: Num, from: Scalar, to: Scalar) -> Num {
    if from == to {
        return value;
    }
    match (value, to.is_float()) {
        (Num::I(a), false) => Num::I(fold_int(Int::Wrap(to, Box::new(a)))),
        (Num::I(a), true) => Num::F(fold_float(Float::FromInt(to, from, Box::new(a)))),
        (Num::F(a), false) => Num::I(fold_int(Int::FromFloat(to, Box::new(a)))),
        (Num::F(a), true) => Num::F(fold_float(Float::Round(to, Box::new(a)))),
    }
}

/// Compilation and evaluation recurse once a level.
fn check_size(e: &Expr) -> Compiled<()> {
    if e.depth() <= MAX_EXPR_DEPTH && e.size() <= MAX_EXPR_SIZE {
        return Ok(());
    }
    Err(RunError::new(
        codes::EXPR_DEPTH,
        e.span(),
        format!(
            "an expression of {} nodes and {} levels",
            e.size(),
            e.depth()
        ),
    )
    .help("bind parts of it to names"))
}

struct Compiler<'n, 'f> {
    names: &'n mut Names<'f>,
}

impl Compiler<'_, '_> {
    fn num(&mut self, e: &Expr, lane: usize) -> Compiled<Num> {
        if e.dtype().scalar.is_float() {
            self.float(e, lane).map(Num::F)
        } else {
            self.int(e, lane).map(Num::I)
        }
    }

    fn int(&mut self, e: &Expr, lane: usize) -> Compiled<Int> {
        self.int_node(e, lane).map(fold_int)
    }

    fn float(&mut self, e: &Expr, lane: usize) -> Compiled<Float> {
        self.float_node(e, lane).map(fold_float)
    }

    fn ints(&mut self, a: &Expr, b: &Expr, lane: usize) -> Compiled<Box<(Int, Int)>> {
        Ok(Box::new((self.int(a, lane)?, self.int(b, lane)?)))
    }

    fn floats(&mut self, a: &Expr, b: &Expr, lane: usize) -> Compiled<Box<(Float, Float)>> {
        Ok(Box::new((self.float(a, lane)?, self.float(b, lane)?)))
    }

    fn int_node(&mut self, e: &Expr, lane: usize) -> Compiled<Int> {
        let scalar = e.dtype().scalar;
        let none = || Err(self::ill_typed(e));
        Ok(match e.kind() {
            ExprKind::Int(v) => Int::Const(value::narrow(scalar, *v)),
            ExprKind::Float(_) => return none(),
            ExprKind::Var(v) => match self.names.var(*v, lane, scalar, e.span())? {
                Num::I(node) => node,
                Num::F(_) => return none(),
            },
            ExprKind::Load { buffer, indices } => {
                let access = self.names.access(*buffer, indices, lane, e.span())?;
                self.names.reads(access.buffer);
                Int::Load(Box::new(access))
            }
            ExprKind::AddressOf { .. } => {
                return Err(RunError::new(
                    codes::UNSUPPORTED,
                    e.span(),
                    "addresses have no value in the reference evaluator",
                ));
            }
            ExprKind::Unary(UnOp::Not, a) => Int::Not(Box::new(self.int(a, lane)?)),
            ExprKind::Unary(UnOp::BitNot, a) => Int::BitNot(scalar, Box::new(self.int(a, lane)?)),
            ExprKind::Binary(op, a, b) => match op {
                BinOp::LogicalAnd => Int::And(self.ints(a, b, lane)?),
                BinOp::LogicalOr => Int::Or(self.ints(a, b, lane)?),
                op if op.is_comparison() && a.dtype().scalar.is_float() => {
                    Int::CompareFloat(*op, self.floats(a, b, lane)?)
                }
                op if op.is_comparison() => {
                    Int::Compare(*op, a.dtype().scalar, self.ints(a, b, lane)?)
                }
                BinOp::Div => return none(),
                op => Int::Binary(*op, scalar, self.ints(a, b, lane)?),
            },
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => Int::Select(Box::new((
                self.cond(cond, lane)?,
                self.int(then, lane)?,
                self.int(otherwise, lane)?,
            ))),
            ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => Int::Choose(Box::new((
                self.cond(cond, lane)?,
                self.int(then, lane)?,
                self.int(otherwise, lane)?,
            ))),
            ExprKind::Cast(a) => {
                let value = self.num(a, lane)?;
                match convert(value, a.dtype().scalar, scalar) {
                    Num::I(node) => node,
                    Num::F(_) => return none(),
                }
            }
            ExprKind::Reinterpret(a) => {
                let bits = self.bits(a, e, lane)?;
                Int::Wrap(scalar, Box::new(bits))
            }
            ExprKind::Math(f, args) => match args.as_slice() {
                [a] if a.dtype().scalar.is_float() => match f {
                    MathFn::IsNan | MathFn::IsInf | MathFn::IsFinite => {
                        Int::Predicate(*f, Box::new(self.float(a, lane)?))
                    }
                    _ => return none(),
                },
                [a] => Int::Math(*f, a.dtype().scalar, Box::new(self.int(a, lane)?)),
                _ => return none(),
            },
            ExprKind::Ramp { base, stride } => {
                let step = Int::Binary(
                    BinOp::Mul,
                    scalar,
                    Box::new((Int::Const(lane as i64), self.int(stride, 0)?)),
                );
                let base = self.int(base, 0)?;
                Int::Binary(BinOp::Add, scalar, Box::new((base, fold_int(step))))
            }
            ExprKind::Broadcast(a) => self.int(a, 0)?,
            ExprKind::Lane { vector, lane } => self.int(vector, *lane as usize)?,
        })
    }

    fn float_node(&mut self, e: &Expr, lane: usize) -> Compiled<Float> {
        let scalar = e.dtype().scalar;
        let none = || Err(self::ill_typed(e));
        Ok(match e.kind() {
            ExprKind::Int(_) | ExprKind::AddressOf { .. } | ExprKind::Unary(..) => return none(),
            ExprKind::Float(v) => Float::Const(value::round(scalar, v.0)),
            ExprKind::Var(v) => match self.names.var(*v, lane, scalar, e.span())? {
                Num::F(node) => node,
                Num::I(_) => return none(),
            },
            ExprKind::Load { buffer, indices } => {
                let access = self.names.access(*buffer, indices, lane, e.span())?;
                self.names.reads(access.buffer);
                Float::Load(Box::new(access))
            }
            ExprKind::Binary(op, a, b) => match op {
                BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Min | BinOp::Max => {
                    Float::Binary(*op, scalar, self.floats(a, b, lane)?)
                }
                _ => return none(),
            },
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => Float::Select(Box::new((
                self.cond(cond, lane)?,
                self.float(then, lane)?,
                self.float(otherwise, lane)?,
            ))),
            ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => Float::Choose(Box::new((
                self.cond(cond, lane)?,
                self.float(then, lane)?,
                self.float(otherwise, lane)?,
            ))),
            ExprKind::Cast(a) => {
                let value = self.num(a, lane)?;
                match convert(value, a.dtype().scalar, scalar) {
                    Num::F(node) => node,
                    Num::I(_) => return none(),
                }
            }
            ExprKind::Reinterpret(a) => {
                let bits = self.bits(a, e, lane)?;
                Float::FromBits(scalar, Box::new(bits))
            }
            ExprKind::Math(f, args) => match (f, args.as_slice()) {
                (MathFn::Fma, [a, b, c]) => Float::Fma(
                    scalar,
                    Box::new((
                        self.float(a, lane)?,
                        self.float(b, lane)?,
                        self.float(c, lane)?,
                    )),
                ),
                (MathFn::Ldexp, [a, n]) if !n.dtype().scalar.is_float() => {
                    Float::Ldexp(scalar, Box::new((self.float(a, lane)?, self.int(n, lane)?)))
                }
                (f, [a]) => Float::Math1(*f, scalar, Box::new(self.float(a, lane)?)),
                (f, [a, b]) => Float::Math2(*f, scalar, self.floats(a, b, lane)?),
                _ => return none(),
            },
            ExprKind::Ramp { base, stride } => {
                let step = Float::Binary(
                    BinOp::Mul,
                    scalar,
                    Box::new((Float::Const(lane as f64), self.float(stride, 0)?)),
                );
                let base = self.float(base, 0)?;
                Float::Binary(BinOp::Add, scalar, Box::new((base, fold_float(step))))
            }
            ExprKind::Broadcast(a) => self.float(a, 0)?,
            ExprKind::Lane { vector, lane } => self.float(vector, *lane as usize)?,
        })
    }

    /// A condition may be one bool for all lanes.
    fn cond(&mut self, cond: &Expr, lane: usize) -> Compiled<Int> {
        let lane = if cond.dtype().lanes > 1 { lane } else { 0 };
        self.int(cond, lane)
    }

    /// The bits of lane `lane` of `e`, a reinterpretation of `a`; zeros above its width.
    fn bits(&mut self, a: &Expr, e: &Expr, lane: usize) -> Compiled<Int> {
        let (from, to) = (a.dtype().scalar, e.dtype().scalar);
        let (wide, narrow) = (from.bits() as usize, to.bits() as usize);
        if a.dtype().bits() != e.dtype().bits() {
            return Err(RunError::invalid(
                e.span(),
                format!("{} has not the width of {}", e.dtype(), a.dtype()),
            ));
        }
        let u64_op = |op, x, y| Int::Binary(op, Scalar::U64, Box::new((x, y)));
        if wide >= narrow {
            let first = lane * narrow;
            let word = self.lane_bits(a, first / wide)?;
            let shifted = u64_op(BinOp::Shr, word, Int::Const((first % wide) as i64));
            let mask = u64::MAX >> (64 - narrow);
            return Ok(u64_op(BinOp::BitAnd, shifted, Int::Const(mask as i64)));
        }
        let mut all = Int::Const(0);
        for part in 0..narrow / wide {
            let word = self.lane_bits(a, lane * (narrow / wide) + part)?;
            let placed = u64_op(BinOp::Shl, word, Int::Const((part * wide) as i64));
            all = u64_op(BinOp::BitOr, all, placed);
        }
        Ok(all)
    }

    /// The stored bits of one lane, zeros above its width.
    fn lane_bits(&mut self, a: &Expr, lane: usize) -> Compiled<Int> {
        let scalar = a.dtype().scalar;
        Ok(match self.num(a, lane)? {
            Num::F(node) => Int::BitsOf(scalar, Box::new(node)),
            Num::I(node) => {
                let mask = u64::MAX >> (64 - scalar.bits());
                let pair = Box::new((node, Int::Const(mask as i64)));
                Int::Binary(BinOp::BitAnd, Scalar::U64, pair)
            }
        })
    }
}

fn ill_typed(e: &Expr) -> RunError {
    RunError::invalid(
        e.span(),
        format!("an operation that does not exist on {}", e.dtype()),
    )
}

/// The constant the node is, or the node.
fn fold_int(node: Int) -> Int {
    let c = |e: &Int| matches!(e, Int::Const(_));
    let f = |e: &Float| matches!(e, Float::Const(_));
    let constant = match &node {
        Int::Const(_) | Int::Slot(_) | Int::Lane(_) | Int::Load(_) => false,
        Int::Binary(_, _, ab) | Int::Compare(_, _, ab) | Int::And(ab) | Int::Or(ab) => {
            c(&ab.0) && c(&ab.1)
        }
        Int::CompareFloat(_, ab) => f(&ab.0) && f(&ab.1),
        Int::Choose(p) | Int::Select(p) => c(&p.0) && c(&p.1) && c(&p.2),
        Int::Not(a) | Int::BitNot(_, a) | Int::Wrap(_, a) | Int::Math(_, _, a) => c(a),
        Int::FromFloat(_, a) | Int::BitsOf(_, a) | Int::Predicate(_, a) => f(a),
    };
    match (constant, &node) {
        // A trap stays where it is: it only counts when it is reached.
        (true, node) if let Ok(v) = eval::int(&mut Nothing, node) => Int::Const(v),
        // The arm not taken does not count.
        (_, Int::Choose(p)) if let Int::Const(cond) = p.0 => {
            if cond != 0 {
                p.1.clone()
            } else {
                p.2.clone()
            }
        }
        _ => node,
    }
}

/// The constant the node is, or the node.
fn fold_float(node: Float) -> Float {
    let c = |e: &Int| matches!(e, Int::Const(_));
    let f = |e: &Float| matches!(e, Float::Const(_));
    let constant = match &node {
        Float::Const(_) | Float::Slot(_) | Float::Lane(_) | Float::Load(_) => false,
        Float::Binary(_, _, ab) | Float::Math2(_, _, ab) => f(&ab.0) && f(&ab.1),
        Float::Choose(p) | Float::Select(p) => c(&p.0) && f(&p.1) && f(&p.2),
        Float::FromInt(_, _, a) | Float::FromBits(_, a) => c(a),
        Float::Round(_, a) | Float::Math1(_, _, a) => f(a),
        Float::Ldexp(_, ab) => f(&ab.0) && c(&ab.1),
        Float::Fma(_, abc) => f(&abc.0) && f(&abc.1) && f(&abc.2),
    };
    match (constant, &node) {
        (true, node) if let Ok(v) = eval::float(&mut Nothing, node) => Float::Const(v),
        (_, Float::Choose(p)) if let Int::Const(cond) = p.0 => {
            if cond != 0 {
                p.1.clone()
            } else {
                p.2.clone()
            }
        }
        _ => node,
    }
}
