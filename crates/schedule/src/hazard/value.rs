//! Values of integer expressions: constants where they are known, what is left where not.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::{BinOp, Buffer, DType, Expr, ExprKind, UnOp, Var};

use super::threshold::{Range, threshold};

/// What a variable stands for at a point of the run.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Bound {
    Known(i64),
    /// An expression over thread indices and values that stay unknown.
    Open(Expr),
}

/// The variables at a point of the run, and the unknown values that this run supposes.
#[derive(Clone, Default, Debug)]
pub struct Env {
    pub vars: FxHashMap<Var, Bound>,
    /// Values of scalars that are the same in all threads.
    pub scalars: FxHashMap<Buffer, i64>,
    pub supposed: FxHashMap<Expr, i64>,
    /// The values that supposed conditions leave.
    ranges: Rc<[(Expr, Range)]>,
}

impl Env {
    /// Nothing is known but what is supposed.
    pub fn of(supposed: &FxHashMap<Expr, i64>) -> Env {
        let conditions = supposed.iter().filter(|(e, _)| e.dtype() == DType::BOOL);
        let ranges = conditions.map(|(cond, value)| {
            let (of, range) = threshold(cond);
            (of, if *value != 0 { range } else { range.others() })
        });
        Env {
            ranges: ranges.collect(),
            supposed: supposed.clone(),
            ..Env::default()
        }
    }

    /// Whether a condition follows from what is supposed, or the opposite does.
    fn follows(&self, cond: &Expr) -> Option<bool> {
        let (of, range) = threshold(cond);
        let known = self.ranges.iter().filter(|(e, _)| *e == of);
        known.into_iter().find_map(|(_, known)| {
            let yes = known.is_in(range);
            (yes || known.is_apart(range)).then_some(yes)
        })
    }

    /// The expression with everything known put in and folded.
    pub fn fold(&self, e: &Expr) -> Expr {
        e.rewrite(&mut |node| self.fold_node(node))
    }

    fn fold_node(&self, node: &Expr) -> Option<Expr> {
        if let ExprKind::Int(_) | ExprKind::Float(_) = node.kind() {
            return None;
        }
        if let Some(var) = node.as_var() {
            match self.vars.get(&var) {
                Some(Bound::Known(value)) => return Some(constant(*value, node.dtype())),
                Some(Bound::Open(e)) => return Some(e.clone()),
                None => {}
            }
        }
        if let ExprKind::Load { buffer, .. } = node.kind()
            && let Some(value) = self.scalars.get(buffer)
        {
            return Some(constant(*value, node.dtype()));
        }
        if !self.supposed.is_empty()
            && let Some(value) = self.supposed.get(node)
        {
            return Some(constant(*value, node.dtype()));
        }
        if !self.ranges.is_empty()
            && node.dtype() == DType::BOOL
            && let Some(holds) = self.follows(node)
        {
            return Some(constant(i64::from(holds), node.dtype()));
        }
        // Operands are folded by now, so only a node over constants can have a value; `&&` and
        // `||` may do with one.
        let logical = matches!(
            node.kind(),
            ExprKind::Binary(BinOp::LogicalAnd | BinOp::LogicalOr, ..)
        );
        let mut constants = true;
        node.kind()
            .each_operand(|e| constants &= matches!(e.kind(), ExprKind::Int(_)));
        if !constants && !logical {
            return None;
        }
        let value = evaluate(node, &|_| None)?;
        Some(constant(value, node.dtype()))
    }

    /// The value, where it is known.
    pub fn value(&self, e: &Expr) -> Option<i64> {
        if let Some(value) = e.as_int() {
            return i64::try_from(value).ok();
        }
        let folded = self.fold(e);
        i64::try_from(folded.as_int()?).ok()
    }
}

pub fn constant(value: i64, dtype: DType) -> Expr {
    Expr::int(value as i128, dtype)
}

/// The value of a scalar integer expression over variables; wraps like its type. `None` for
/// anything else, and for what has no value.
pub fn evaluate(e: &Expr, var: &dyn Fn(Var) -> Option<i64>) -> Option<i64> {
    if e.dtype().lanes != 1 || !integral(e.dtype()) {
        return None;
    }
    let value: i128 = match e.kind() {
        ExprKind::Int(value) => *value,
        ExprKind::Var(v) => var(*v)?.into(),
        ExprKind::Cast(a) if integral(a.dtype()) => evaluate(a, var)?.into(),
        ExprKind::Unary(UnOp::Not, a) => (evaluate(a, var)? == 0).into(),
        ExprKind::Unary(UnOp::BitNot, a) => !i128::from(evaluate(a, var)?),
        ExprKind::Select {
            cond,
            then,
            otherwise,
        }
        | ExprKind::IfThenElse {
            cond,
            then,
            otherwise,
        } => {
            let arm = if evaluate(cond, var)? != 0 {
                then
            } else {
                otherwise
            };
            evaluate(arm, var)?.into()
        }
        // A false or true side decides alone.
        ExprKind::Binary(op @ (BinOp::LogicalAnd | BinOp::LogicalOr), a, b) => {
            let decides = i64::from(*op == BinOp::LogicalOr);
            match (evaluate(a, var), evaluate(b, var)) {
                (Some(x), _) if i64::from(x != 0) == decides => decides.into(),
                (_, Some(y)) if i64::from(y != 0) == decides => decides.into(),
                (Some(_), Some(_)) => (1 - decides).into(),
                _ => return None,
            }
        }
        ExprKind::Binary(op, a, b) => {
            let (x, y) = (evaluate(a, var)?, evaluate(b, var)?);
            return operate(*op, (a.dtype(), x, y), e.dtype());
        }
        _ => return None,
    };
    i64::try_from(e.dtype().scalar.wrap(value)).ok()
}

/// The value of an operation on two values of one type.
pub fn operate(op: BinOp, (operands, x, y): (DType, i64, i64), dtype: DType) -> Option<i64> {
    if operands == dtype
        && let Some(value) = small(op, x, y)
        && fits(value, dtype)
    {
        return Some(value);
    }
    let known = dtype.lanes == 1 && integral(dtype);
    let value = binary(op, x.into(), y.into(), operands).filter(|_| known)?;
    i64::try_from(dtype.scalar.wrap(value)).ok()
}

/// The value of an operation that 64 bits are enough for: most are, and divisions of 128 bits are slow.
fn small(op: BinOp, x: i64, y: i64) -> Option<i64> {
    match op {
        BinOp::Add => x.checked_add(y),
        BinOp::Sub => x.checked_sub(y),
        BinOp::Mul => x.checked_mul(y),
        BinOp::FloorDiv | BinOp::TruncDiv if x >= 0 && y > 0 => Some(x / y),
        BinOp::FloorMod | BinOp::TruncMod if x >= 0 && y > 0 => Some(x % y),
        BinOp::BitAnd => Some(x & y),
        BinOp::BitXor => Some(x ^ y),
        _ => None,
    }
}

/// Whether a type that indices have holds a value as it is.
fn fits(value: i64, dtype: DType) -> bool {
    match dtype {
        DType::I32 => i32::try_from(value).is_ok(),
        DType::I64 => true,
        _ => false,
    }
}

/// Whether [`evaluate`] knows every node of the expression. A division may still have no value.
pub fn is_of_integers(e: &Expr) -> bool {
    let mut known = true;
    e.walk(&mut |node| {
        known &= node.dtype().lanes == 1 && integral(node.dtype());
        known &= match node.kind() {
            ExprKind::Int(_) | ExprKind::Var(_) | ExprKind::Cast(_) => true,
            ExprKind::Unary(op, _) => matches!(op, UnOp::Not | UnOp::BitNot),
            ExprKind::Binary(op, ..) => *op != BinOp::Div,
            ExprKind::Select { .. } | ExprKind::IfThenElse { .. } => true,
            _ => false,
        };
    });
    known
}

fn integral(dtype: DType) -> bool {
    dtype.scalar.is_int() || dtype.scalar == DType::BOOL.scalar
}

fn binary(op: BinOp, x: i128, y: i128, operands: DType) -> Option<i128> {
    if !integral(operands) {
        return None;
    }
    let floor = |x: i128, y: i128| x.div_euclid(y) - i128::from(y < 0 && x.rem_euclid(y) != 0);
    Some(match op {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        BinOp::Mul => x * y,
        BinOp::FloorDiv if y != 0 => floor(x, y),
        BinOp::FloorMod if y != 0 => x - floor(x, y) * y,
        BinOp::TruncDiv if y != 0 => x / y,
        BinOp::TruncMod if y != 0 => x % y,
        BinOp::Min => x.min(y),
        BinOp::Max => x.max(y),
        BinOp::BitAnd => x & y,
        BinOp::BitOr => x | y,
        BinOp::BitXor => x ^ y,
        BinOp::Shl if (0..63).contains(&y) => x << y,
        BinOp::Shr if (0..63).contains(&y) => x >> y,
        BinOp::LogicalAnd => i128::from(x != 0 && y != 0),
        BinOp::LogicalOr => i128::from(x != 0 || y != 0),
        BinOp::Eq => i128::from(x == y),
        BinOp::Ne => i128::from(x != y),
        BinOp::Lt => i128::from(x < y),
        BinOp::Le => i128::from(x <= y),
        BinOp::Gt => i128::from(x > y),
        BinOp::Ge => i128::from(x >= y),
        BinOp::FloorDiv
        | BinOp::FloorMod
        | BinOp::TruncDiv
        | BinOp::TruncMod
        | BinOp::Shl
        | BinOp::Shr
        | BinOp::Div => return None,
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    /// In 64 bits as in 128, also where the result wraps.
    #[test]
    fn small_values_are_the_same() {
        let edges = [
            i64::MIN,
            -(1 << 31),
            -7,
            -1,
            0,
            1,
            2,
            7,
            (1 << 31) - 1,
            i64::MAX,
        ];
        let ops = [
            BinOp::Add,
            BinOp::Sub,
            BinOp::Mul,
            BinOp::FloorDiv,
            BinOp::FloorMod,
            BinOp::TruncDiv,
            BinOp::TruncMod,
            BinOp::BitAnd,
            BinOp::BitXor,
            BinOp::Lt,
        ];
        for dtype in [DType::I32, DType::I64] {
            for op in ops {
                for (x, y) in edges.iter().flat_map(|x| edges.map(|y| (*x, y))) {
                    let wide = binary(op, x.into(), y.into(), dtype);
                    let wide = wide.and_then(|v| i64::try_from(dtype.scalar.wrap(v)).ok());
                    let found = operate(op, (dtype, x, y), dtype);
                    assert_eq!(found, wide, "{x} {op:?} {y} as {dtype}");
                }
            }
        }
    }

    #[test]
    fn division_rounds_down() {
        let int = |v: i64| constant(v, DType::I32);
        for (a, b, q, r) in [
            (7, 2, 3, 1),
            (-7, 2, -4, 1),
            (7, -2, -4, -1),
            (-7, -2, 3, -1),
            (6, -2, -3, 0),
        ] {
            let env = Env::default();
            assert_eq!(env.value(&int(a).floor_div(int(b))), Some(q), "{a} // {b}");
            assert_eq!(env.value(&int(a).floor_mod(int(b))), Some(r), "{a} % {b}");
        }
    }
}
