//! Maxima of float32 by integers: where the largest of some numbers is not below zero, it is the one whose
//! bits are the largest integer, and the machine takes the largest of three integers at once.
//!
//! Before:
//! ```text
//! for d in unroll(0, 2) { part[d] = -inf }
//! for s in unroll(0, 64) { part[s // 2 % 2] = max(part[s // 2 % 2], x[s]) }
//! ```
//! After:
//! ```text
//! for d in unroll(0, 2) { bits[d] = -2147483648 }
//! for s in unroll(0, 64) { bits[s // 2 % 2] = max(bits[s // 2 % 2], reinterpret(x[s])) }
//! for d in unroll(0, 2) { part[d] = reinterpret(bits[d]) }
//! if reinterpret(bits[0]) > 0x7f800000 || reinterpret(bits[1]) > 0x7f800000 {
//!   … as before
//! }
//! ```
//! where the comparisons are of unsigned integers: below zero, and NaNs, which a maximum passes over, are
//! beyond the infinity's bits. Attention's maxima hardly ever are.

use tilewright_ir::{
    BinOp, Block, Buffer, DType, Expr, ExprKind, Scalar, Scope, Span, Stmt, StmtKind, VarKind,
};

use super::{Lower, counted, store, unroll};

/// The bits of infinity.
const INFINITY: i64 = 0x7f80_0000;

/// So many numbers for each maximum, at least: fewer gain less than the question costs.
const ENOUGH: i64 = 8;

/// So many maxima of a thread, at most.
const MOST: i64 = 8;

/// Numbers that a thread has in registers, and their maxima.
pub(super) struct Maxima {
    /// How many numbers, all of them there.
    pub count: i64,
    /// Where the maxima are, and how many.
    pub part: Buffer,
    pub slots: i64,
}

impl Lower<'_> {
    /// Maxima by integers, where that pays; `folded` is how they are found one by one, and `element` gives
    /// the slot of the maximum of the nth number, and the number.
    pub(super) fn integer_maxima(
        &mut self,
        maxima: &Maxima,
        folded: Block,
        element: impl FnOnce(&mut Self, Expr) -> (Expr, Expr),
        span: Span,
    ) -> Block {
        let Maxima { count, part, slots } = *maxima;
        let of_float32 = self.dtype(part) == DType::scalar(Scalar::F32);
        let machine = self.target.machine();
        if !machine.max_of_three || !of_float32 || slots > MOST || count < ENOUGH * slots {
            return folded;
        }
        let mut out = Vec::new();
        let bits = self.temp("bits", Scope::Local, DType::I32, &[slots]);
        let (d, slot) = self.var("d", VarKind::Loop);
        let least = Expr::int(i32::MIN.into(), DType::I32);
        let start = vec![store(bits, vec![slot], least, DType::I32, span)];
        out.push(counted(d, slots, unroll(), start, span));

        let (s, number) = self.var("s", VarKind::Loop);
        let (slot, value) = element(self, number);
        let value = value.reinterpret_as(DType::I32);
        let known = self.load(bits, vec![slot.clone()]);
        let larger = ExprKind::Binary(BinOp::Max, known, value);
        let larger = Expr::new(larger, DType::I32, Span::NONE);
        let larger = vec![store(bits, vec![slot], larger, DType::I32, span)];
        out.push(counted(s, count, unroll(), larger, span));

        let (d, slot) = self.var("d", VarKind::Loop);
        let dtype = self.dtype(part);
        let found = self.load(bits, vec![slot.clone()]).reinterpret_as(dtype);
        let found = vec![store(part, vec![slot], found, dtype, span)];
        out.push(counted(d, slots, unroll(), found, span));

        let beyond = |lower: &Self, slot: i64| {
            let bits = lower.load(bits, vec![Expr::int(slot.into(), DType::I32)]);
            let bits = bits.reinterpret_as(DType::U32);
            bits.gt(Expr::int(INFINITY.into(), DType::U32))
        };
        let any = (0..slots).map(|slot| beyond(self, slot)).reduce(Expr::or);
        out.extend(any.map(|cond| {
            let kind = StmtKind::If {
                cond,
                then: folded,
                otherwise: Vec::new(),
            };
            Stmt::new(kind, span)
        }));
        out
    }
}
