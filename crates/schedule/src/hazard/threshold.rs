//! Conditions that compare a value with a number, and what one says about another.
//!
//! `n > 1` holds only where `n > 0` does. The value is taken as it stands: arithmetic in it may
//! wrap, so `n + 1 > 1` is about another value than `n > 0`.

use tilewright_ir::{BinOp, Expr, ExprKind, UnOp};

/// The values from one number to another, both included; open at one end at least.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Range {
    low: i64,
    high: i64,
}

impl Range {
    /// The values of a condition that holds, where it is not about a number.
    pub const TRUE: Range = Range::from(1);

    const fn from(low: i64) -> Range {
        Range {
            low,
            high: i64::MAX,
        }
    }

    const fn to(high: i64) -> Range {
        Range {
            low: i64::MIN,
            high,
        }
    }

    /// All other values.
    pub fn others(self) -> Range {
        match self.low {
            i64::MIN => Range::from(self.high.saturating_add(1)),
            low => Range::to(low - 1),
        }
    }

    /// Whether every value is one of the other's.
    pub fn is_in(self, other: Range) -> bool {
        self.low >= other.low && self.high <= other.high
    }

    /// Whether no value is one of the other's.
    pub fn is_apart(self, other: Range) -> bool {
        self.high < other.low || other.high < self.low
    }
}

/// What a condition is about, and the values that it holds for. One that compares nothing with a
/// number is about itself.
pub fn threshold(cond: &Expr) -> (Expr, Range) {
    match cond.kind() {
        ExprKind::Unary(UnOp::Not, inner) => {
            let (of, range) = threshold(inner);
            (of, range.others())
        }
        ExprKind::Binary(op, a, b) => {
            compared(*op, a, b).unwrap_or_else(|| (cond.clone(), Range::TRUE))
        }
        _ => (cond.clone(), Range::TRUE),
    }
}

fn compared(op: BinOp, a: &Expr, b: &Expr) -> Option<(Expr, Range)> {
    if !a.dtype().scalar.is_int() || a.dtype().lanes != 1 {
        return None;
    }
    let number = |e: &Expr| {
        let value = i64::try_from(e.as_int()?).ok()?;
        // Room for the neighbours.
        (value.checked_abs()? < i64::MAX / 2).then_some(value)
    };
    let (value, op, bound) = match (number(a), number(b)) {
        (None, Some(bound)) => (a, op, bound),
        (Some(bound), None) => {
            let turned = match op {
                BinOp::Lt => BinOp::Gt,
                BinOp::Le => BinOp::Ge,
                BinOp::Gt => BinOp::Lt,
                BinOp::Ge => BinOp::Le,
                _ => return None,
            };
            (b, turned, bound)
        }
        _ => return None,
    };
    let range = match op {
        BinOp::Lt => Range::to(bound - 1),
        BinOp::Le => Range::to(bound),
        BinOp::Gt => Range::from(bound + 1),
        BinOp::Ge => Range::from(bound),
        _ => return None,
    };
    Some((value.clone(), range))
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{DType, Func, VarKind};

    #[test]
    fn comparisons_of_one_value() {
        let mut func = Func::new("f");
        let n = func.add_var("n", DType::I32, VarKind::Let);
        let n = func.var_expr(n);
        let range = |cond: Expr| {
            let (of, range) = threshold(&cond);
            assert_eq!(of, n);
            range
        };
        let (one, two) = (range(n.clone().ge(1)), range(n.clone().ge(2)));
        assert!(two.is_in(one) && !one.is_in(two));
        assert!(two.is_apart(one.others()) && !one.is_apart(two.others()));
        assert_eq!(range(n.clone().lt(2)), two.others());
        assert_eq!(range(Expr::i32(1).lt(n.clone())), two);
        assert_eq!(range(!n.clone().le(1)), two);
        assert_eq!(one.others().others(), one);
        // Equality leaves no half of the numbers.
        let cond = n.clone().equal(3);
        assert_eq!(threshold(&cond), (cond, Range::TRUE));
    }
}
