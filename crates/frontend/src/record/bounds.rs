//! Intervals of index expressions from what is known of their variables.
//!
//! Enough to tell that an index is certainly negative or certainly outside; whoever needs more
//! uses the prover on the finished IR.

use tilewright_ir::{BinOp, Expr, ExprKind, UnOp};

use crate::record::Recorder;

/// Nodes looked at before giving up: an interval is a help, not a proof obligation.
const FUEL: u32 = 200;

/// What variables of loops, blocks and threads are taken to reach.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Extents {
    /// The ends that they have.
    Known,
    /// Anything from their start on.
    Open,
}

/// The end of what has none.
const OPEN: i128 = 1 << 62;

impl Recorder {
    /// The smallest and largest value an integer expression can take, where that is known and
    /// no step of its computation can leave the range of its type.
    pub fn range_of(&self, expr: &Expr) -> Option<(i128, i128)> {
        let mut fuel = FUEL;
        self.interval(expr, Extents::Known, &mut fuel)
    }

    /// Whether an expression is negative however often loops run and however many blocks and
    /// threads there are: `-i - 1` is, `bx * 8 - 3` is not, not even in a grid of one block.
    pub fn is_negative_anywhere(&self, expr: &Expr) -> bool {
        let mut fuel = FUEL;
        let range = self.interval(expr, Extents::Open, &mut fuel);
        range.is_some_and(|(_, hi)| hi < 0)
    }

    /// The value of an integer expression that has only one.
    pub fn const_int(&self, expr: &Expr) -> Option<i128> {
        expr.as_int().or_else(|| {
            self.range_of(expr)
                .and_then(|(lo, hi)| (lo == hi).then_some(lo))
        })
    }

    fn interval(&self, expr: &Expr, extents: Extents, fuel: &mut u32) -> Option<(i128, i128)> {
        *fuel = fuel.checked_sub(1)?;
        let (type_lo, type_hi) = expr.dtype().scalar.int_range()?;
        if expr.dtype().lanes != 1 {
            return None;
        }
        let (lo, hi) = match expr.kind() {
            ExprKind::Int(v) => (*v, *v),
            ExprKind::Var(var) => match (extents, self.let_values.get(var)) {
                (Extents::Known, _) => *self.var_bounds.get(var)?,
                (Extents::Open, Some(value)) => self.interval(value, extents, fuel)?,
                (Extents::Open, None) => (self.var_bounds.get(var)?.0, OPEN),
            },
            ExprKind::Cast(inner) => self.interval(inner, extents, fuel)?,
            ExprKind::Unary(UnOp::BitNot, inner) => {
                let (lo, hi) = self.interval(inner, extents, fuel)?;
                (-1 - hi, -1 - lo)
            }
            ExprKind::Binary(op, a, b) => {
                let b_range = self.interval(b, extents, fuel);
                let (al, ah) = match (op, b_range) {
                    // The remainder by a positive constant is bounded whatever the left side.
                    (BinOp::FloorMod, Some((n, m))) if n == m && n > 0 => {
                        let known = self.interval(a, extents, fuel);
                        return match known {
                            Some((lo, hi)) if 0 <= lo && hi < n => Some((lo, hi)),
                            _ => Some((0, n - 1)),
                        };
                    }
                    _ => self.interval(a, extents, fuel)?,
                };
                let (bl, bh) = b_range?;
                match op {
                    BinOp::Add => (al.checked_add(bl)?, ah.checked_add(bh)?),
                    BinOp::Sub => (al.checked_sub(bh)?, ah.checked_sub(bl)?),
                    BinOp::Mul => {
                        let products = [
                            al.checked_mul(bl)?,
                            al.checked_mul(bh)?,
                            ah.checked_mul(bl)?,
                            ah.checked_mul(bh)?,
                        ];
                        (*products.iter().min()?, *products.iter().max()?)
                    }
                    BinOp::FloorDiv if bl == bh && bl > 0 => (al.div_euclid(bl), ah.div_euclid(bl)),
                    BinOp::Min => (al.min(bl), ah.min(bh)),
                    BinOp::Max => (al.max(bl), ah.max(bh)),
                    _ => return None,
                }
            }
            ExprKind::IfThenElse {
                then, otherwise, ..
            }
            | ExprKind::Select {
                then, otherwise, ..
            } => {
                let (al, ah) = self.interval(then, extents, fuel)?;
                let (bl, bh) = self.interval(otherwise, extents, fuel)?;
                (al.min(bl), ah.max(bh))
            }
            _ => return None,
        };
        let fits = type_lo <= lo && hi <= type_hi;
        (fits || extents == Extents::Open).then_some((lo, hi))
    }
}
