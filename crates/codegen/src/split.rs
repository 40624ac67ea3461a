//! Addresses in permuted shared memory, in two parts.
//!
//! A permutation by XOR is linear over the bits of the indices, so the place of `a + b` is the
//! place of `a` XOR the place of `b` where the two have no bit in common. What is a constant once
//! loops are unrolled becomes one part, the rest the other:
//!
//! Before:
//! ```text
//! S[S_at(c * 16 + tx % 16, ks * 32 + tx / 16 % 4 * 8)]
//! ```
//! After:
//! ```text
//! tw::at<1016>(S, S_at(tx % 16, tx / 16 % 4 * 8), S_at(c * 16, ks * 32))[0]
//! ```
//!
//! The number has the bits that the thread's part may have. Only these need the XOR; the others
//! of the constant are an offset that the instruction holds. So a few registers serve all accesses
//! of a tile. Left in one piece every address is a value of its own, and clang keeps those of a
//! loop in registers until they run out.

use tilewright_ir::{BinOp, Expr, ExprKind};

use crate::Emit;
use crate::device::Piece;
use crate::kernel::Emitter;

/// An address in two parts.
struct Parts {
    /// The bits that the thread's part may have.
    mask: i64,
    thread: Vec<Expr>,
    constant: Vec<Expr>,
}

impl Emitter<'_> {
    /// The pointer to the element at `indices`, `start` being the buffer's (or the version's),
    /// where a part of it is a constant. `images` are the places of the indices' bits.
    pub(crate) fn split_address(
        &mut self,
        start: &str,
        function: &str,
        images: &[Vec<i64>],
        indices: &[Expr],
    ) -> Emit<Option<String>> {
        let Some(parts) = self.parts(images, indices) else {
            return Ok(None);
        };
        let mut list = |exprs: &[Expr]| -> Emit<String> {
            let mut codes = Vec::with_capacity(exprs.len());
            for e in exprs {
                codes.push(self.expr(e, 0)?.text);
            }
            Ok(codes.join(", "))
        };
        let (thread, constant) = (list(&parts.thread)?, list(&parts.constant)?);
        self.needs.piece(Piece::Split);
        Ok(Some(format!(
            "tw::at<{}>({start}, {function}({thread}), {function}({constant}))",
            parts.mask
        )))
    }

    fn parts(&mut self, images: &[Vec<i64>], indices: &[Expr]) -> Option<Parts> {
        let mut parts = Parts {
            mask: 0,
            thread: Vec::new(),
            constant: Vec::new(),
        };
        let (mut any_thread, mut any_constant) = (false, false);
        for (index, images) in indices.iter().zip(images) {
            let mut terms = Vec::new();
            summands(index, &mut terms);
            let zero = || Expr::int(0, index.dtype());
            let (mut thread, mut constant) = (zero(), zero());
            let mut seen = 0;
            for term in terms {
                let bits = self.possible_bits(&term)?;
                if seen & bits != 0 {
                    return None;
                }
                seen |= bits;
                if self.is_unrolled(&term) {
                    any_constant |= bits != 0;
                    constant = constant + term;
                    continue;
                }
                any_thread = true;
                thread = thread + term;
                for (bit, image) in images.iter().enumerate() {
                    parts.mask |= (bits >> bit & 1) * image;
                }
            }
            parts.thread.push(self.analyzer.simplify(&thread));
            parts.constant.push(self.analyzer.simplify(&constant));
        }
        (any_thread && any_constant).then_some(parts)
    }

    /// The bits that an index may have; `None` where it may be negative or is too large to say.
    fn possible_bits(&mut self, e: &Expr) -> Option<i64> {
        let range = self.analyzer.const_bounds(e);
        if range.lo < 0 || range.hi > i128::from(i32::MAX) {
            return None;
        }
        let below = (range.hi as u64 + 1).next_power_of_two() as i64 - 1;
        let known = self.analyzer.congruence(e);
        if known.modulus == 0 {
            return Some(known.residue as i64);
        }
        // The modulus's power of two: bits below it are those of the residue.
        let low = 1i64 << known.modulus.trailing_zeros().min(31);
        Some(below & !(low - 1) | known.residue as i64 & (low - 1))
    }

    /// Whether an expression is a constant once loops are unrolled.
    fn is_unrolled(&self, e: &Expr) -> bool {
        let mut constant = true;
        e.walk_distinct(&mut |node| match node.kind() {
            ExprKind::Var(var) => constant &= self.unrolled.contains(var),
            ExprKind::Load { .. } => constant = false,
            _ => {}
        });
        constant
    }
}

/// The summands of a sum.
fn summands(e: &Expr, list: &mut Vec<Expr>) {
    match e.kind() {
        ExprKind::Binary(BinOp::Add, a, b) => {
            summands(a, list);
            summands(b, list);
        }
        _ => list.push(e.clone()),
    }
}
