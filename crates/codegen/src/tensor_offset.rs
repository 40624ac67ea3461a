//! Offsets in a tensor, taken apart for buffer instructions.
//!
//! Such an instruction takes a 32-bit offset for each lane and one that all lanes share. What
//! varies from thread to thread becomes the lane's offset, which no loop changes; blocks, loops and
//! instructions go into the shared one, which scalar instructions compute.

use tilewright_ir::{Access, BinOp, DType, Expr, ExprKind, Func};

use crate::Emit;
use crate::kernel::Emitter;

/// An offset in elements.
pub(crate) struct Offset {
    /// Each lane's own.
    pub lane: Expr,
    /// The same for all lanes.
    pub shared: Expr,
}

impl Emitter<'_> {
    /// The parts of an element's number in its tensor; `None` where 32 bits are too few, or a part
    /// may be below zero, for the machine adds them without a sign, or may end inside of a byte.
    pub(crate) fn offset_of(&mut self, source: &Access) -> Option<Offset> {
        let flat = flat_index(self.func, source)?;
        let in_a_byte = sharing(self.func.buffers[source.region.buffer].dtype.bits());
        let flat = self.settled(&flat);
        let flat = self.analyzer.simplify(&flat);
        let (shared, lane) = self.apart(&flat);
        for part in [&shared, &lane] {
            let whole = in_a_byte < 2 || self.analyzer.divides(in_a_byte.into(), part).is_yes();
            if !(whole && self.is_not_negative(part)) {
                return None;
            }
        }
        Some(Offset {
            lane: self.analyzer.simplify(&lane),
            shared: self.analyzer.simplify(&shared),
        })
    }

    /// The parts of an element's number, index by index, where the element is in the tensor whenever it
    /// is read: a shared part that is a multiple of more than a lane adds is not below zero where the
    /// index is not, though nobody knows how far it goes. Elsewhere it may be anything, and is computed all
    /// the same: without a sign, for C does not say what signed arithmetic past its range gives.
    pub(crate) fn offset_where_read(&mut self, source: &Access) -> Option<Offset> {
        let data = &self.func.buffers[source.region.buffer];
        flat_index(self.func, source)?;
        if sharing(data.dtype.bits()) > 1 {
            return None;
        }
        let zero = || Expr::int(0, DType::I32);
        let (mut shared, mut lane) = (zero(), zero());
        for (at, extent) in source.at.iter().zip(&data.shape) {
            let at = self.settled(&at.clone().cast_to(DType::I32));
            let at = self.analyzer.simplify(&at);
            let (of_all, own) = self.apart(&at);
            let bounds = self.analyzer.const_bounds(&own);
            let adds_less = bounds.hi < 1 << twos(&of_all);
            if !(bounds.lo >= 0 && (adds_less || self.is_not_negative(&of_all))) {
                return None;
            }
            let count = i64::try_from(extent.as_int()?).ok()?;
            shared = shared * count + of_all;
            lane = lane * count + own;
        }
        Some(Offset {
            lane: self.analyzer.simplify(&lane),
            shared: without_sign(&self.analyzer.simplify(&shared)),
        })
    }

    fn is_not_negative(&mut self, e: &Expr) -> bool {
        let zero = Expr::zero(e.dtype());
        self.analyzer.prove_ge(e, &zero).is_yes()
    }

    /// A part in bytes, as C, of elements of so many bits.
    pub(crate) fn in_bytes(&mut self, part: &Expr, bits: u32) -> Emit<String> {
        match part.as_int() {
            Some(n) => Ok((n * i128::from(bits) / 8).to_string()),
            None if bits == 6 => {
                let bytes = self.bytes_in(part, bits);
                Ok(format!("(unsigned)({})", self.scalar(&bytes)?))
            }
            None if part.dtype() == DType::U32 => {
                Ok(format!("({}) * {}", self.scalar(part)?, bits / 8))
            }
            None => Ok(bytes_of(&self.scalar(part)?, bits)),
        }
    }

    /// Whole bytes of elements that share them.
    pub(crate) fn bytes_in(&mut self, part: &Expr, bits: u32) -> Expr {
        let group = sharing(bits);
        let bytes = part.clone().floor_div(group) * (group * bits / 8);
        self.analyzer.simplify(&bytes)
    }

    /// A sum's parts: the same in all threads, and the rest.
    fn apart(&self, e: &Expr) -> (Expr, Expr) {
        let zero = || Expr::zero(e.dtype());
        if !self.may_vary(e) {
            return (e.clone(), zero());
        }
        match e.kind() {
            ExprKind::Binary(BinOp::Add, a, b) => {
                let ((a_shared, a_lane), (b_shared, b_lane)) = (self.apart(a), self.apart(b));
                (a_shared + b_shared, a_lane + b_lane)
            }
            ExprKind::Binary(BinOp::Sub, a, b) if !self.may_vary(b) => {
                let (shared, lane) = self.apart(a);
                (shared - b.clone(), lane)
            }
            ExprKind::Binary(BinOp::Mul, a, b) if b.as_int().is_some() => {
                let (shared, lane) = self.apart(a);
                (shared * b.clone(), lane * b.clone())
            }
            _ => (zero(), e.clone()),
        }
    }

    /// Whether threads may disagree on the value, or the compiler may have it in vector registers:
    /// what is read from memory, though all lanes agree.
    pub(crate) fn may_vary(&self, e: &Expr) -> bool {
        let mut varies = false;
        e.walk_distinct(&mut |node| match node.kind() {
            ExprKind::Var(var) => {
                varies |= self.plan.varying.contains(var) || self.data_vars.contains(var);
            }
            ExprKind::Load { .. } | ExprKind::AddressOf { .. } => varies = true,
            _ => {}
        });
        varies
    }
}

/// As many elements of so many bits as a C expression says, in bytes.
pub(crate) fn bytes_of(elements: &str, bits: u32) -> String {
    match bits.is_multiple_of(8) {
        true => format!("(unsigned)({elements}) * {}", bits / 8),
        false => match sharing(bits) {
            4 => format!("(unsigned)({elements}) / 4 * 3"),
            of_a_byte => format!("(unsigned)({elements}) / {of_a_byte}"),
        },
    }
}

/// How many elements of so many bits end with a byte: two of four bits, four of six in three bytes.
pub(crate) fn sharing(bits: u32) -> u32 {
    match bits {
        6 => 4,
        _ => 8 / bits.clamp(1, 8),
    }
}

/// A sum of products in arithmetic that wraps.
fn without_sign(e: &Expr) -> Expr {
    match e.kind() {
        ExprKind::Binary(BinOp::Add, a, b) => without_sign(a) + without_sign(b),
        ExprKind::Binary(BinOp::Sub, a, b) => without_sign(a) - without_sign(b),
        ExprKind::Binary(BinOp::Mul, a, b) => without_sign(a) * without_sign(b),
        _ => match e.as_int() {
            Some(n) => Expr::int(n, DType::U32),
            None => e.clone().cast_to(DType::U32),
        },
    }
}

/// How many twos certainly divide a value of 32 bits, though arithmetic on it may have wrapped.
fn twos(e: &Expr) -> u32 {
    match e.kind() {
        ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => twos(a).min(twos(b)),
        ExprKind::Binary(BinOp::Mul, a, b) => (twos(a) + twos(b)).min(31),
        _ => match e.as_int() {
            Some(0) => 31,
            Some(n) => n.trailing_zeros().min(31),
            None => 0,
        },
    }
}

/// The row-major number of the element, where 32 bits hold it.
fn flat_index(func: &Func, source: &Access) -> Option<Expr> {
    let data = &func.buffers[source.region.buffer];
    let mut elements = 1i64;
    let mut flat = Expr::int(0, DType::I32);
    for (at, extent) in source.at.iter().zip(&data.shape) {
        let count = i64::try_from(extent.as_int()?).ok()?;
        elements = elements.checked_mul(count)?;
        flat = flat * count + at.clone().cast_to(DType::I32);
    }
    (elements <= i64::from(i32::MAX)).then_some(flat)
}
