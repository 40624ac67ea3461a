//! Expressions of a given type.

use crate::arbitrary::Gen;
use tilewright_ir::buffer::{BufferData, Scope};
use tilewright_ir::diag::Span;
use tilewright_ir::dtype::{DType, Scalar};
use tilewright_ir::expr::{BinOp, Expr, ExprKind, F64, MathFn, UnOp};
use tilewright_ir::ids::Buffer;
use tilewright_ir::small_float::round_to;

impl Gen<'_> {
    pub(super) fn any_f64(&mut self) -> f64 {
        self.one_of(&[
            0.0,
            1.5,
            -0.0,
            0.1,
            1e300,
            -2.5e-7,
            f64::INFINITY,
            f64::NEG_INFINITY,
            f64::NAN,
            f64::from_bits(0x7ff8_0000_0000_0001),
            f64::from_bits(0xfff8_0000_0000_0000),
            f64::MIN_POSITIVE / 2.0,
            f64::MAX,
        ])
    }

    pub(super) fn literal(&mut self, dtype: DType) -> Expr {
        match dtype.scalar {
            s if s.is_float() => Expr::float(round_to(s, self.any_f64()), dtype),
            Scalar::Bool => Expr::int(self.pick(2) as i128, dtype),
            Scalar::Handle => Expr::zero(DType::U64).reinterpret_as(dtype),
            s => {
                let (low, high) = s.int_range().unwrap_or((0, 0));
                Expr::int(self.one_of(&[0, 1, 3, low, high]), dtype)
            }
        }
    }

    pub(super) fn int_literal_between(&mut self, dtype: DType, low: i128, high: i128) -> Expr {
        let offset = self.pick((high - low + 1) as usize) as i128;
        Expr::int(low + offset, dtype)
    }

    /// An expression of the type.
    pub(super) fn expr(&mut self, dtype: DType, depth: usize) -> Expr {
        if dtype.lanes > 1 {
            return self.vector_expr(dtype, depth);
        }
        match dtype.scalar {
            Scalar::Bool => self.bool_expr(depth),
            Scalar::Handle => self.address(),
            s if s.is_int() => self.int_expr(dtype, depth),
            _ => self.float_expr(dtype, depth),
        }
    }

    fn vector_expr(&mut self, dtype: DType, depth: usize) -> Expr {
        if dtype.scalar.is_int() && self.chance(2) {
            let one = dtype.with_lanes(1);
            let kind = ExprKind::Ramp {
                base: self.expr(one, depth.saturating_sub(1)),
                stride: self.literal(one),
            };
            return Expr::new(kind, dtype, Span::NONE);
        }
        self.expr(dtype.with_lanes(1), depth.saturating_sub(1))
            .broadcast(dtype.lanes)
    }

    /// What every numeric type has.
    fn common_expr(&mut self, dtype: DType, depth: usize) -> Option<Expr> {
        let less = depth - 1;
        Some(match self.pick(8) {
            0 => self.load(dtype)?,
            1 => {
                let from = self.numeric();
                let value = self.expr(from, less);
                Expr::new(ExprKind::Cast(value), dtype, Span::NONE)
            }
            2 => {
                let (cond, then, otherwise) = (
                    self.bool_expr(less),
                    self.expr(dtype, less),
                    self.expr(dtype, less),
                );
                let kind = ExprKind::Select {
                    cond,
                    then,
                    otherwise,
                };
                Expr::new(kind, dtype, Span::NONE)
            }
            3 => {
                let (cond, then, otherwise) = (
                    self.bool_expr(less),
                    self.expr(dtype, less),
                    self.expr(dtype, less),
                );
                let kind = ExprKind::IfThenElse {
                    cond,
                    then,
                    otherwise,
                };
                Expr::new(kind, dtype, Span::NONE)
            }
            4 => {
                let op = self.one_of(&[BinOp::Min, BinOp::Max]);
                Expr::bin(op, self.expr(dtype, less), self.expr(dtype, less))
            }
            5 => {
                let vector = self.expr(dtype.with_lanes(4), less);
                let lane = self.pick(4) as u16;
                Expr::new(ExprKind::Lane { vector, lane }, dtype, Span::NONE)
            }
            6 => {
                let from = match dtype.scalar.bits() {
                    8 => DType::U8,
                    16 => DType::F16,
                    32 => DType::U32,
                    64 => DType::U64,
                    _ => return None,
                };
                let value = self.literal(from);
                Expr::new(ExprKind::Reinterpret(value), dtype, Span::NONE)
            }
            _ => return None,
        })
    }

    pub(super) fn int_expr(&mut self, dtype: DType, depth: usize) -> Expr {
        if depth == 0 || self.chance(4) {
            return match self.int_var(dtype) {
                Some(var) if self.chance(2) => var,
                _ => self.literal(dtype),
            };
        }
        if self.chance(3)
            && let Some(e) = self.common_expr(dtype, depth)
        {
            return e;
        }
        let less = depth - 1;
        match self.pick(14) {
            op @ 0..6 => {
                let op = [
                    BinOp::Add,
                    BinOp::Sub,
                    BinOp::Mul,
                    BinOp::BitAnd,
                    BinOp::BitOr,
                    BinOp::BitXor,
                ][op];
                Expr::bin(op, self.int_expr(dtype, less), self.int_expr(dtype, less))
            }
            op @ 6..10 => {
                let op = [
                    BinOp::FloorDiv,
                    BinOp::FloorMod,
                    BinOp::TruncDiv,
                    BinOp::TruncMod,
                ][op - 6];
                let divisor = self.int_literal_between(dtype, 1, 7);
                Expr::bin(op, self.int_expr(dtype, less), divisor)
            }
            op @ 10..12 => {
                let op = [BinOp::Shl, BinOp::Shr][op - 10];
                let amount = self.int_literal_between(dtype, 0, 3);
                Expr::bin(op, self.int_expr(dtype, less), amount)
            }
            12 => {
                let value = self.int_expr(dtype, less);
                Expr::new(ExprKind::Unary(UnOp::BitNot, value), dtype, Span::NONE)
            }
            _ => {
                let f = self.one_of(&[MathFn::Popcount, MathFn::Clz, MathFn::Abs]);
                Expr::math(f, vec![self.int_expr(dtype, less)])
            }
        }
    }

    fn float_expr(&mut self, dtype: DType, depth: usize) -> Expr {
        if depth == 0 || self.chance(4) {
            return self.literal(dtype);
        }
        if self.chance(2)
            && let Some(e) = self.common_expr(dtype, depth)
        {
            return e;
        }
        let less = depth - 1;
        if self.chance(2) {
            let op = self.one_of(&[BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Div]);
            return Expr::bin(op, self.expr(dtype, less), self.expr(dtype, less));
        }
        let f = self.one_of(MathFn::ALL);
        if f.is_predicate() || matches!(f, MathFn::Popcount | MathFn::Clz) {
            return self.literal(dtype);
        }
        let args = (0..f.arity()).map(|_| self.expr(dtype, less)).collect();
        Expr::math(f, args)
    }

    pub(super) fn bool_expr(&mut self, depth: usize) -> Expr {
        if depth == 0 {
            return self.literal(DType::BOOL);
        }
        let less = depth - 1;
        match self.pick(6) {
            0 => self.literal(DType::BOOL),
            1 => !self.bool_expr(less),
            2 => {
                let op = self.one_of(&[BinOp::LogicalAnd, BinOp::LogicalOr]);
                Expr::bin(op, self.bool_expr(less), self.bool_expr(less))
            }
            3 => {
                let f = self.one_of(&[MathFn::IsNan, MathFn::IsInf, MathFn::IsFinite]);
                Expr::math(f, vec![self.expr(DType::F32, less)])
            }
            _ => {
                let dtype = self.numeric();
                let op = self.one_of(&[
                    BinOp::Eq,
                    BinOp::Ne,
                    BinOp::Lt,
                    BinOp::Le,
                    BinOp::Gt,
                    BinOp::Ge,
                ]);
                Expr::bin(op, self.expr(dtype, less), self.expr(dtype, less))
            }
        }
    }

    /// What `make` makes without any variable, so that all threads agree on it.
    pub(super) fn uniform(&mut self, make: impl FnOnce(&mut Self) -> Expr) -> Expr {
        let vars = std::mem::take(&mut self.vars);
        let e = make(self);
        self.vars = vars;
        e
    }

    fn int_var(&mut self, dtype: DType) -> Option<Expr> {
        let fitting: Vec<_> = self
            .vars
            .iter()
            .copied()
            .filter(|v| self.func.vars[*v].dtype == dtype)
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let var = self.one_of(&fitting);
        Some(self.func.var_expr(var))
    }

    fn load(&mut self, dtype: DType) -> Option<Expr> {
        let fitting: Vec<Buffer> = self
            .loads
            .iter()
            .copied()
            .filter(|b| self.func.buffers[*b].dtype == dtype)
            .collect();
        if fitting.is_empty() {
            return None;
        }
        let buffer = self.one_of(&fitting);
        let indices = self.indices(buffer);
        Some(Expr::load(buffer, indices, dtype))
    }

    /// Some element of some buffer in scope.
    pub(super) fn element(&mut self) -> Option<(Buffer, Vec<Expr>)> {
        if self.loads.is_empty() {
            return None;
        }
        let buffer = self.one_of(&self.loads.clone());
        let indices = self.indices(buffer);
        Some((buffer, indices))
    }

    /// Indices within the buffer, as far as one can see.
    pub(super) fn indices(&mut self, buffer: Buffer) -> Vec<Expr> {
        let BufferData { shape, scope, .. } = self.func.buffers[buffer].clone();
        // A thread's own array may not be indexed by points of a parallel loop.
        let constant = scope == Scope::Local;
        shape
            .iter()
            .map(
                |extent| match (extent.as_int(), self.chance(2) && !constant) {
                    (Some(n), false) => self.int_literal_between(extent.dtype(), 0, n - 1),
                    (None, false) => Expr::zero(extent.dtype()),
                    (_, true) => match self.int_var(extent.dtype()) {
                        Some(var) => var.floor_mod(extent.clone()),
                        None => Expr::zero(extent.dtype()),
                    },
                },
            )
            .collect()
    }

    pub(super) fn address(&mut self) -> Expr {
        match self.element() {
            Some((buffer, indices)) => {
                let kind = ExprKind::AddressOf { buffer, indices };
                Expr::new(kind, DType::HANDLE, Span::NONE)
            }
            None => {
                let zero = Expr::new(ExprKind::Int(0), DType::U64, Span::NONE);
                zero.reinterpret_as(DType::HANDLE)
            }
        }
    }

    pub(super) fn f64_literal(value: f64, dtype: DType) -> Expr {
        Expr::new(ExprKind::Float(F64(value)), dtype, Span::NONE)
    }
}
