//! Addresses in shared memory whose places are not row-major.
//!
//! An access names its element by indices, and the buffer's layout is a function of them. Much of
//! an index is known when compiling: constants, and indices of unrolled loops. Where the layout
//! splits ([`tilewright_layout::split`]), only a thread's own part goes through the function, so
//! that the compiler computes it once for many accesses and keeps it over loops:
//!
//! ```text
//! A_shared_at(tx % 16 + t * 16, tx / 16 * 8 + 16)
//! (A_shared_at(tx % 16, tx / 16 * 8) ^ 16) + t * 1024
//! ```
//!
//! Where waves have scalar registers what is the same for all threads is taken off as well where it
//! only adds, as a version that the user's own index names: it starts the tile ([`Placed::start`]).
//!
//! Where the known part goes several ways it is `tw::place<24>(S_at(tx % 4, j), S_at(t * 4, 0))`: the
//! second place is a constant once loops are unrolled, and a mask takes it apart. Left in one piece
//! every address is a value of its own, and clang keeps those of a loop in registers until they
//! run out.

use tilewright_ir::{BinOp, DType, Expr, ExprKind};
use tilewright_layout::split::{Effect, Kind, Part};

use crate::Emit;
use crate::device::Piece;
use crate::expr::{ADD, BIT_XOR, Code, POSTFIX};
use crate::kernel::Emitter;
use crate::place::Placing;

/// A place in a buffer, in elements.
pub(crate) struct Placed {
    /// What all lanes agree on, where that was taken off.
    pub start: Option<Expr>,
    pub offset: Code,
    /// The offset without a sum of constants and indices of unrolled loops, and that sum.
    pub known: Option<(Code, Expr)>,
}

impl Emitter<'_> {
    /// The place of the element at these indices, each with its text; `scalars` says whether what
    /// all lanes agree on is taken off.
    pub(crate) fn placed(
        &mut self,
        placing: &Placing,
        indices: &[(Code, Expr)],
        scalars: bool,
    ) -> Emit<Placed> {
        // The lanes of a vector of indices are in the text alone.
        if indices.iter().all(|(_, index)| index.dtype().lanes == 1) {
            let exprs: Vec<Expr> = indices.iter().map(|(_, index)| index.clone()).collect();
            if let Some(placed) = self.split(placing, &exprs, scalars)? {
                return Ok(placed);
            }
        }
        Ok(Placed {
            start: None,
            offset: through(placing, indices.iter().map(|(code, _)| code)),
            known: None,
        })
    }

    /// `(A_shared_at(i, j) ^ xor) + add`, where something of the indices is known and splits off.
    fn split(
        &mut self,
        placing: &Placing,
        indices: &[Expr],
        scalars: bool,
    ) -> Emit<Option<Placed>> {
        let mut terms = Vec::new();
        for (dim, index) in indices.iter().enumerate() {
            let mut list = Vec::new();
            summands(index, &mut list);
            for term in list.into_iter().filter(|t| !t.is_int(0)) {
                let Some(part) = self.part(dim, &term, scalars) else {
                    return Ok(None);
                };
                terms.push((part, term));
            }
        }
        let parts: Vec<Part> = terms.iter().map(|(part, _)| *part).collect();
        let Some(split) = placing.layout.split(&parts) else {
            return Ok(None);
        };
        let zero = || Expr::int(0, DType::I32);
        let mut own = vec![zero(); indices.len()];
        let mut fixed = own.clone();
        let (mut xor, mut add, mut start) = (zero(), zero(), zero());
        for ((part, term), effect) in terms.into_iter().zip(&split.effects) {
            match effect {
                Effect::Own => own[part.dim] = own[part.dim].clone() + term,
                Effect::Add(ratio) if part.kind == Kind::Shared => start = start + term * *ratio,
                Effect::Xor(ratio) => xor = xor + term * *ratio,
                Effect::Add(ratio) => add = add + term * *ratio,
                Effect::Fixed => fixed[part.dim] = fixed[part.dim].clone() + term,
                Effect::Counted => {}
            }
        }
        let start = Some(self.analyzer.simplify(&start)).filter(|start| !start.is_int(0));
        let placed = |offset| {
            Some(Placed {
                start,
                offset,
                known: None,
            })
        };
        if split.effects.contains(&Effect::Fixed) {
            let (own, fixed) = (self.called(placing, &own)?, self.called(placing, &fixed)?);
            self.needs.piece(Piece::Place);
            let call = format!("tw::place<{}>({}, {})", split.mask, own.text, fixed.text);
            return Ok(placed(Code::new(call, POSTFIX)));
        }
        let xor = self.analyzer.simplify(&(xor + split.xor));
        let add = self.analyzer.simplify(&(add + split.add));
        if own.iter().all(|e| e.is_int(0)) && xor.is_int(0) {
            let sum = self.expr(&add, 0)?;
            return Ok(placed(sum).map(|placed| Placed {
                known: Some((Code::primary("0".to_string()), add)),
                ..placed
            }));
        }
        let mut code = self.called(placing, &own)?;
        if !xor.is_int(0) {
            let xor = self.expr(&xor, 0)?.at_least(ADD);
            code = Code::new(format!("{} ^ {xor}", code.at_least(ADD)), BIT_XOR);
        }
        if add.is_int(0) {
            return Ok(placed(code));
        }
        let sum = self.expr(&add, 0)?.at_least(ADD);
        let offset = Code::new(format!("{} + {sum}", code.at_least(ADD)), ADD);
        Ok(placed(offset).map(|placed| Placed {
            known: Some((code, add)),
            ..placed
        }))
    }

    /// The layout's function of these indices.
    fn called(&mut self, placing: &Placing, indices: &[Expr]) -> Emit<Code> {
        let mut codes = Vec::with_capacity(indices.len());
        for index in indices {
            let index = self.analyzer.simplify(index);
            codes.push(self.expr(&index, 0)?);
        }
        Ok(through(placing, codes.iter()))
    }

    /// What is known of a summand; nothing where it may be negative or has no bound.
    fn part(&mut self, dim: usize, term: &Expr, scalars: bool) -> Option<Part> {
        if let Some(c) = term.as_int() {
            let c = i64::try_from(c).ok().filter(|c| *c > 0)?;
            return Some(Part {
                dim,
                multiple: 1 << c.trailing_zeros(),
                most: c,
                kind: Kind::Constant(c),
            });
        }
        let bounds = self.analyzer.const_bounds(term);
        let most = i64::try_from(bounds.hi).ok()?;
        if bounds.lo < 0 || most > i64::from(i32::MAX) {
            return None;
        }
        let congruence = self.analyzer.congruence(term);
        // Any power of two that divides both divides every value.
        let known = congruence.modulus | congruence.residue;
        let multiple = 1i64 << known.trailing_zeros().min(30);
        let mut unrolled = true;
        term.walk_distinct(&mut |node| match node.kind() {
            ExprKind::Var(var) => unrolled &= self.unrolled.contains(var),
            ExprKind::Load { .. } | ExprKind::AddressOf { .. } => unrolled = false,
            _ => {}
        });
        let kind = match unrolled {
            true => Kind::Unrolled,
            false if scalars && !self.may_vary(term) => Kind::Shared,
            false => Kind::Own,
        };
        Some(Part {
            dim,
            multiple,
            most,
            kind,
        })
    }
}

/// `A_shared_at(i, j)`
fn through<'c>(placing: &Placing, indices: impl Iterator<Item = &'c Code>) -> Code {
    let list: Vec<&str> = indices.map(|code| code.text.as_str()).collect();
    let call = format!("{}({})", placing.function, list.join(", "));
    Code::new(call, POSTFIX)
}

/// The summands of a sum.
fn summands(e: &Expr, list: &mut Vec<Expr>) {
    let mut open = vec![e];
    while let Some(e) = open.pop() {
        match e.kind() {
            ExprKind::Binary(BinOp::Add, a, b) => open.extend([b, a]),
            _ => list.push(e.clone()),
        }
    }
}
