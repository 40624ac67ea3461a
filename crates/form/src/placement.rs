//! What layout inference asks of fragments: does one cover another, what placement does an
//! access imply, what is left after a dimension is reduced.

use crate::bits::Basis;
use crate::compose::Pieces;
use crate::error::LayoutError;
use crate::form::{Form, Sum};
use crate::fragment::Fragment;
use crate::layout::{Layout, check_shape};
use crate::radix::{Digit, Radix, indices, ones};

/// A digit of the thread number along which a line of elements lies: `thread / div % room`, less
/// than `extent` where the thread has elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct LineDigit {
    pub div: i64,
    /// How many of its values have elements.
    pub extent: i64,
    /// How many values it takes in the thread's number, at least `extent`.
    pub room: i64,
    /// The topmost digit of the thread number takes no modulus.
    pub is_top: bool,
}

impl Fragment {
    /// Whether every thread that holds an element by `other` also holds it by `self`, in any
    /// slot: a loop placed by `other` may read a buffer placed by `self`.
    pub fn covers_threads(&self, other: &Fragment) -> bool {
        self.covers(other, 1)
    }

    /// Whether every copy that `other` has is a copy of `self`, slot included.
    pub fn covers_placement(&self, other: &Fragment) -> bool {
        self.covers(other, 2)
    }

    /// Whether both hold the same elements in the same threads and slots, however the copies
    /// are numbered.
    pub fn same_placement(&self, other: &Fragment) -> bool {
        self == other || (self.covers_placement(other) && other.covers_placement(self))
    }

    fn covers(&self, other: &Fragment, outs: usize) -> bool {
        if self.shape() != other.shape() {
            return false;
        }
        let forms = self.layout().form().zip(other.layout().form());
        if let Some(known) = forms.and_then(|(a, b)| covers(&a, &b, outs)) {
            return known;
        }
        indices(self.shape()).all(|i| {
            let own: Vec<_> = self.holders(&i);
            other.holders(&i).iter().all(|h| {
                let mut own = own.iter();
                own.any(|o| o.thread == h.thread && (outs == 1 || o.slot == h.slot))
            })
        })
    }

    /// The placement of the buffer that a loop placed by `self` accesses at `access` (from the
    /// loop's indices to all of the buffer's): each thread holds the elements it touches. Loop
    /// digits that the access does not see become copies where they are spread over threads.
    /// `None` when the access is no choice of digits, or the free digits cannot be copies.
    pub fn image(&self, access: &Layout) -> Result<Option<Fragment>, LayoutError> {
        if access.shape() != self.shape() {
            return Err(LayoutError::Shape {
                expected: self.shape().to_vec(),
                found: access.shape().to_vec(),
            });
        }
        let Some((map, full)) = access.form().zip(self.layout().form()) else {
            return Ok(None);
        };
        let buffer = access.codomain();
        let Some((section, free)) = map.section(buffer) else {
            return Ok(None);
        };
        // Free digits matter only where the thread depends on them.
        let mut spread = Vec::new();
        let mut aligned = full.clone();
        let cuts = free.iter().map(|d| (d.dim, d.div));
        let ends = free.iter().map(|d| (d.dim, d.div * d.extent));
        for (dim, at) in cuts.chain(ends) {
            if aligned.cut(dim, at).is_none() {
                return Ok(None);
            }
        }
        let in_thread = aligned.outs[0].support();
        for at in ones(in_thread) {
            let digit = aligned.radix.digits()[at];
            let is_free = |f: &Digit| {
                f.dim == digit.dim && f.div <= digit.div && digit.div < f.div * f.extent
            };
            if digit.dim == self.shape().len() || free.iter().any(is_free) {
                spread.push(digit);
            }
        }
        // From (buffer index, copy) to (loop index, copy of the loop).
        let copies: i64 = spread.iter().map(|d| d.extent).product();
        let domain = [buffer, &[copies]].concat();
        check_shape(&domain)?;
        let copy_dim = buffer.len();
        let mut back = Form::identity(&domain);
        for d in section.radix.digits() {
            if back.cut(d.dim, d.div).is_none() {
                return Ok(None);
            }
        }
        let moved: Vec<usize> = (0..section.radix.digits().len()).collect();
        back.outs = section.relabel(back.radix.clone(), &moved).outs;
        back.outs.push(Sum::default());
        let mut place = 1;
        for d in &spread {
            if back.cut(copy_dim, place).is_none() {
                return Ok(None);
            }
            place *= d.extent;
        }
        place = 1;
        for d in &spread {
            let Some(at) = back.radix.position(copy_dim, place) else {
                return Ok(None);
            };
            back.outs[d.dim].add(1 << at, d.div);
            place *= d.extent;
        }
        // Digits of a ragged dimension cannot all be copies: some would be no index.
        let Ok(back) = Layout::new(&domain, self.layout().shape(), back) else {
            return Ok(None);
        };
        let placed = back.then(self.layout())?;
        Fragment::new(placed)?.compact().map(Some)
    }

    /// The placement of the result when `dim` is reduced and every thread that took part gets
    /// it. Threads along the dimension become copies.
    pub fn project(&self, dim: usize) -> Result<Option<Fragment>, LayoutError> {
        let mut keep = Form::identity(self.shape());
        keep.outs.remove(dim);
        let mut kept = self.shape().to_vec();
        kept.remove(dim);
        self.image(&Layout::new(self.shape(), &kept, keep)?)
    }

    /// The digits of the thread number that move along a dimension: the threads that must combine
    /// their parts when the dimension is reduced. A thread that has none of the elements, because
    /// one of its digits is past `extent`, has nothing to add, and nothing is counted twice: each
    /// element of a line is in exactly one of its threads, in one slot. `None` when the thread
    /// number is no closed form, or when the threads of a line are not all combinations of digits.
    pub fn thread_digits(&self, dim: usize) -> Option<Vec<LineDigit>> {
        let form = self.layout().form()?;
        let of = |dim: usize| {
            let digits = form.radix.digits().iter().enumerate();
            digits.fold(0u64, |m, (at, d)| m | ((d.dim == dim) as u64) << at)
        };
        let (along, copies) = (of(dim), of(self.shape().len()));
        let pieces = Pieces::of(&form, 0).filter(|p| p.nested() && p.offset == 0)?;
        // Two copies in one thread would be added twice.
        if form.outs[1].support() & copies != 0 {
            return None;
        }
        let ends = pieces.list.iter().skip(1).map(|p| p.weight);
        let mut line = Vec::new();
        let mut free = Basis::of([]);
        for (p, end) in pieces.list.iter().zip(ends.chain([self.threads()])) {
            if p.row & along == 0 {
                continue;
            }
            // Digits that move together, or with the copy, are fewer threads than combinations.
            if p.row & copies != 0 || !free.insert(p.row & along) {
                return None;
            }
            let is_top = p.weight == pieces.list.last()?.weight;
            if !is_top && end % p.weight != 0 {
                return None;
            }
            line.push(LineDigit {
                div: p.weight,
                extent: p.extent,
                room: (end + p.weight - 1) / p.weight,
                is_top,
            });
        }
        Some(line)
    }

    /// Gives every element a slot, when only the threads are decided: each thread numbers what
    /// it holds in row-major order of the digits that its own number does not fix. `None` when
    /// the thread number is no closed form.
    pub fn complete(threads: &Layout) -> Result<Option<Fragment>, LayoutError> {
        let Some(mut form) = threads.form() else {
            return Ok(None);
        };
        if form.outs.len() != 1 || !Pieces::of(&form, 0).is_some_and(|p| p.nested()) {
            return Ok(None);
        }
        let rows = form.outs[0].terms.iter().map(|t| t.row);
        let mut fixed = Basis::of(rows);
        let digits = form.radix.digits().to_vec();
        let mut slot = Sum::default();
        let mut place = 1;
        // Last dimension fastest, low digits first: what is free there is a vector.
        let mut order: Vec<usize> = (0..digits.len()).collect();
        order.sort_by_key(|&at| (std::cmp::Reverse(digits[at].dim), digits[at].div));
        for at in order {
            if fixed.insert(1 << at) {
                slot.add(1 << at, place);
                place *= digits[at].extent;
            }
        }
        form.outs.push(slot);
        let codomain = [threads.codomain()[0], place];
        Fragment::new(Layout::new(threads.shape(), &codomain, form)?).map(Some)
    }

    /// The same threads with the slots renumbered without gaps, in the same order, where the
    /// slots are digits; otherwise the fragment as it is.
    pub fn compact(self) -> Result<Fragment, LayoutError> {
        let Some(form) = self.layout().raw_form() else {
            return Ok(self);
        };
        let Some(pieces) = Pieces::of(form, 1).filter(|p| p.nested()) else {
            return Ok(self);
        };
        let mut form = form.clone();
        let mut slot = Sum::default();
        let mut place = 1;
        for p in &pieces.list {
            if p.reversed {
                return Ok(self);
            }
            slot.add(p.row, place);
            place *= p.extent;
        }
        if place == self.slots() {
            return Ok(self);
        }
        form.outs[1] = slot;
        let codomain = [self.threads(), place];
        Fragment::new(Layout::new(self.layout().shape(), &codomain, form)?)
    }
}

impl Form {
    /// A right inverse of a map onto the box `codomain` that reads some digits and ignores the
    /// others, and the digits it ignores.
    fn section(&self, codomain: &[i64]) -> Option<(Form, Vec<Digit>)> {
        let used = self.outs.iter().fold(0, |m, o| m | o.support());
        let count = self.radix.digits().len();
        let free: Vec<usize> = (0..count).filter(|at| used & 1 << at == 0).collect();
        // The map on its used digits alone: a box of one dimension a digit.
        let kept: Vec<usize> = ones(used).collect();
        let digits = self.radix.digits();
        let shape: Vec<i64> = kept.iter().map(|&at| digits[at].extent).collect();
        let mut moved = vec![0; count];
        for (new, &at) in kept.iter().enumerate() {
            moved[at] = new;
        }
        let on_used = self.relabel(Radix::new(&shape), &moved);
        let (inverse, guards) = on_used.left_inverse(codomain)?;
        if !guards.is_empty() {
            return None;
        }
        // Back from one output a digit to one output a dimension.
        let mut outs = vec![Sum::default(); self.radix.shape().len()];
        for (out, &at) in inverse.outs.iter().zip(&kept) {
            outs[digits[at].dim].add_scaled(out, digits[at].div);
        }
        let section = Form {
            radix: inverse.radix,
            outs,
        };
        Some((section, free.into_iter().map(|at| digits[at]).collect()))
    }
}

/// For all x and copies ρ' of b: is there a copy ρ of a with `a(x, ρ) = b(x, ρ')` in the first
/// `outs` outputs? The last dimension of each is the copy. `None` when weights do not tell.
///
/// Cut so that both have the same places, the question splits by place. Places of bits are a
/// linear system in the bits of ρ: it can be solved for every right side exactly when the
/// columns of `a ⊕ b` and of ρ' lie in the span of the columns of ρ. Longer places must show
/// the same digit on both sides, unless a digit of ρ stands there alone and is free.
fn covers(a: &Form, b: &Form, outs: usize) -> Option<bool> {
    let rank = a.radix.shape().len() - 1;
    let (a, b) = common_places(a.clone(), b.clone(), rank, outs)?;
    // The copy is chosen digit by digit below, so its digits must move freely.
    if a.radix.is_ragged(rank) {
        return None;
    }
    let is_copy = |form: &Form, at: usize| form.radix.digits()[at].dim == rank;
    let copies_of_a = (0..a.radix.digits().len()).filter(|&at| is_copy(&a, at));
    let copies_of_a = copies_of_a.fold(0u64, |m, at| m | 1 << at);
    // Element digits come first and agree; so rows over them can be compared as they are.
    let first_copy = a.radix.digits().iter().filter(|d| d.dim < rank).count();
    let elements = (1u64 << first_copy).wrapping_sub(1);

    // Columns of the linear system, one bit a place.
    let mut unknown = vec![0u64; 64];
    let mut given = vec![0u64; 128];
    let mut constant = 0u64;
    let mut places = 0;
    let mut taken = 0u64;
    for out in 0..outs {
        let (pa, pb) = (Pieces::of(&a, out)?, Pieces::of(&b, out)?);
        if pa.offset != pb.offset || !pa.nested() || !pb.nested() {
            return None;
        }
        let mut weights: Vec<i64> = pa.list.iter().chain(&pb.list).map(|p| p.weight).collect();
        weights.sort_unstable();
        weights.dedup();
        let mut reach = 0;
        for w in weights {
            let here = |list: &Pieces| list.list.iter().find(|p| p.weight == w).copied();
            let (x, y) = (here(&pa), here(&pb));
            let extent = x.iter().chain(&y).map(|p| p.extent).max()?;
            if w <= reach {
                return None;
            }
            reach += w * (extent - 1);
            if extent == 2 {
                let place = 1u64 << places;
                places += 1;
                for p in x.iter() {
                    constant ^= if p.reversed { place } else { 0 };
                    for at in ones(p.row) {
                        if copies_of_a & 1 << at != 0 {
                            unknown[at] ^= place;
                        } else {
                            given[at] ^= place;
                        }
                    }
                }
                for p in y.iter() {
                    constant ^= if p.reversed { place } else { 0 };
                    for at in ones(p.row) {
                        let column = if elements & 1 << at != 0 { at } else { 64 + at };
                        given[column] ^= place;
                    }
                }
                continue;
            }
            match (x, y) {
                (Some(x), Some(y)) if x.row & copies_of_a == 0 => {
                    let same = x.row == y.row && x.reversed == y.reversed;
                    if !same || y.row & elements == 0 {
                        // A long digit of b that a does not have there is nowhere else in a.
                        return Some(false);
                    }
                }
                (Some(x), y) if x.row & copies_of_a != 0 => {
                    if y.is_some_and(|y| y.extent > x.extent) || taken & x.row != 0 {
                        return None;
                    }
                    taken |= x.row;
                }
                // One side is constantly zero there and the other is not.
                _ => return Some(false),
            }
        }
    }
    // A free digit used up above must not be asked again by the linear system.
    if ones(taken).any(|at| unknown[at] != 0) {
        return None;
    }
    let span = Basis::of(unknown);
    Some(span.contains(constant) && given.iter().all(|&column| span.contains(column)))
}

/// Cuts both forms until their outputs have pieces at the same places and their element digits
/// agree.
fn common_places(mut a: Form, mut b: Form, rank: usize, outs: usize) -> Option<(Form, Form)> {
    loop {
        let before = (a.radix.digits().len(), b.radix.digits().len());
        let (old_a, old_b) = (a.clone(), b.clone());
        for (from, to) in [(old_a, &mut b), (old_b, &mut a)] {
            for d in from.radix.digits().iter().filter(|d| d.dim < rank) {
                to.cut(d.dim, d.div)?;
            }
            for out in 0..outs {
                for t in &from.outs[out].terms {
                    cut_at_place(to, out, t.weight.abs())?;
                    cut_at_place(to, out, t.weight.abs() * from.extent(t.row))?;
                }
            }
        }
        if before == (a.radix.digits().len(), b.radix.digits().len()) {
            return Some((a, b));
        }
    }
}

/// Cuts the digit that straddles a place of an output, where it can be cut there.
fn cut_at_place(form: &mut Form, out: usize, place: i64) -> Option<()> {
    let straddling = form.outs[out].terms.iter().find(|t| {
        let weight = t.weight.abs();
        weight < place && place < weight * form.extent(t.row) && t.row.is_power_of_two()
    });
    let Some(t) = straddling else {
        return Some(());
    };
    let digit = form.radix.digits()[t.row.trailing_zeros() as usize];
    let low = place / t.weight.abs();
    if place % t.weight.abs() != 0 || (t.weight < 0 && digit.extent % low != 0) {
        return None;
    }
    form.cut(digit.dim, digit.div * low)
}
