//! Values of terms at a point, for questions that are answered by looking at every point.

use tilewright_ir::UnOp;

use crate::analyzer::Analyzer;
use crate::fold::fold_int;
use crate::simplify::is_integral;
use crate::term::{Node, Term};

impl Analyzer {
    /// The value of a scalar integer or bool term where the variables have these values; `None`
    /// if it is undefined there or depends on anything else.
    pub(crate) fn value_at(&self, t: Term, point: &[(Term, i128)]) -> Option<i128> {
        let dtype = self.dtype(t);
        if dtype.lanes != 1 || !is_integral(dtype.scalar) {
            return None;
        }
        let value = match *self.node(t) {
            Node::Int(value) => value,
            Node::Var(_) => point.iter().find(|&&(v, _)| v == t)?.1,
            Node::Sum(ref terms, constant) => {
                let mut sum = constant;
                for &(a, c) in terms {
                    sum = sum.wrapping_add(self.value_at(a, point)?.wrapping_mul(c));
                }
                sum
            }
            Node::Unary(UnOp::Not, a) => 1 - self.value_at(a, point)?,
            Node::Unary(UnOp::BitNot, a) => -1 - self.value_at(a, point)?,
            Node::Binary(op, a, b) => {
                let (x, y) = (self.value_at(a, point)?, self.value_at(b, point)?);
                fold_int(op, x, y, self.dtype(a).scalar)?
            }
            Node::Choose {
                cond,
                then,
                otherwise,
                ..
            } => match self.value_at(cond, point)? {
                0 => self.value_at(otherwise, point)?,
                _ => self.value_at(then, point)?,
            },
            Node::Cast(a) => self.value_at(a, point)?,
            _ => return None,
        };
        Some(dtype.scalar.wrap(value))
    }
}
