//! From canonical terms back to expressions.
//!
//! Terms of a sum come largest coefficient first, which puts the slow index in front; within a
//! coefficient the order of [`Arena::order`](crate::term::Arena::order) decides. The constant
//! comes last. Everything computes modulo `2^bits`, so the order changes no value.

use tilewright_ir::{BinOp, DType, Expr, ExprKind, Scalar, Span};

use crate::analyzer::Analyzer;
use crate::term::{Node, Term};

impl Analyzer {
    /// The expression of a term.
    pub(crate) fn expr(&mut self, t: Term) -> Expr {
        if let Some(e) = self.arena.cached_expr(t) {
            return e.clone();
        }
        let dtype = self.dtype(t);
        let span = self.arena.span(t);
        let kind = match self.node(t).clone() {
            Node::Int(value) => return self.keep(t, Expr::int(value, dtype)),
            Node::Float(bits) => return self.keep(t, Expr::float(f64::from_bits(bits), dtype)),
            Node::Opaque(index) => {
                let e = self.arena.opaque_expr(index).clone();
                return self.keep(t, e);
            }
            Node::Sum(terms, constant) => {
                let e = self.sum_expr(&terms, constant, dtype).with_span(span);
                return self.keep(t, e);
            }
            Node::Var(var) => ExprKind::Var(var),
            Node::Unary(op, a) => ExprKind::Unary(op, self.expr(a)),
            Node::Binary(op, a, b) => ExprKind::Binary(op, self.expr(a), self.expr(b)),
            Node::Choose {
                lazy,
                cond,
                then,
                otherwise,
            } => {
                let (cond, then, otherwise) =
                    (self.expr(cond), self.expr(then), self.expr(otherwise));
                if lazy {
                    ExprKind::IfThenElse {
                        cond,
                        then,
                        otherwise,
                    }
                } else {
                    ExprKind::Select {
                        cond,
                        then,
                        otherwise,
                    }
                }
            }
            Node::Cast(a) => ExprKind::Cast(self.expr(a)),
            Node::Reinterpret(a) => ExprKind::Reinterpret(self.expr(a)),
            Node::Math(f, args) => ExprKind::Math(f, self.exprs(&args)),
            Node::Load(buffer, indices) => ExprKind::Load {
                buffer,
                indices: self.exprs(&indices),
            },
            Node::AddressOf(buffer, indices) => ExprKind::AddressOf {
                buffer,
                indices: self.exprs(&indices),
            },
            Node::Ramp(base, stride) => ExprKind::Ramp {
                base: self.expr(base),
                stride: self.expr(stride),
            },
            Node::Broadcast(a) => ExprKind::Broadcast(self.expr(a)),
            Node::Lane(vector, lane) => ExprKind::Lane {
                vector: self.expr(vector),
                lane,
            },
        };
        self.keep(t, Expr::new(kind, dtype, span))
    }

    fn keep(&mut self, t: Term, e: Expr) -> Expr {
        self.arena.cache_expr(t, e.clone());
        e
    }

    fn exprs(&mut self, list: &[Term]) -> Vec<Expr> {
        list.iter().map(|&t| self.expr(t)).collect()
    }

    fn sum_expr(&mut self, terms: &[(Term, i128)], constant: i128, dtype: DType) -> Expr {
        let mut ordered = terms.to_vec();
        ordered.sort_by_key(|&(t, c)| (c < 0, std::cmp::Reverse(c.abs()), self.arena.order(t)));
        let mut sum: Option<Expr> = None;
        let lowest = lowest(dtype.scalar);
        // A sum that only subtracts starts from its constant.
        let only_negative = ordered.iter().all(|&(_, c)| c < 0);
        let constant_first = only_negative && constant != 0;
        if only_negative {
            sum = Some(Expr::int(constant, dtype));
        }
        for (t, c) in ordered {
            let e = self.expr(t);
            // The smallest value has no positive counterpart, but adding it is the same.
            let subtract = c < 0 && c != lowest;
            let factor = if subtract { -c } else { c };
            let e = if factor == 1 {
                e
            } else {
                binary(BinOp::Mul, e, Expr::int(factor, dtype))
            };
            sum = Some(match sum {
                None => e,
                Some(s) if subtract => binary(BinOp::Sub, s, e),
                Some(s) => binary(BinOp::Add, s, e),
            });
        }
        let sum = sum.unwrap_or_else(|| Expr::int(0, dtype));
        if constant == 0 || constant_first {
            sum
        } else if constant < 0 && constant != lowest {
            binary(BinOp::Sub, sum, Expr::int(-constant, dtype))
        } else {
            binary(BinOp::Add, sum, Expr::int(constant, dtype))
        }
    }
}

fn binary(op: BinOp, a: Expr, b: Expr) -> Expr {
    let dtype = a.dtype();
    Expr::new(ExprKind::Binary(op, a, b), dtype, Span::NONE)
}

/// The smallest coefficient that a form over this type has.
fn lowest(scalar: Scalar) -> i128 {
    -(1 << (scalar.bits() - 1))
}
