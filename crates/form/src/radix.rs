//! Mixed-radix number systems: how the indices of a box are cut into digits.
//!
//! An index `x` below `extent` is cut at a chain of positions `1 | c1 | c2 | …`, each dividing
//! the next; between two cuts lies the digit `x / c % (next / c)`. The topmost digit of a
//! dimension has no modulus: it is what remains, so the chain need not divide the extent and
//! 229 cut at 128 has the digits `x % 128` and `x / 128`. Such a dimension is *ragged*: not
//! every combination of its digits is an index. Indices are still closed under making digits
//! smaller, which is all the decisions of this crate need.

/// The most digits a system may have: rows of digits are the bits of a `u64`.
pub const MAX_DIGITS: usize = 64;

/// `x[dim] / div % extent`; the topmost of its dimension takes no modulus.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Digit {
    pub dim: usize,
    pub div: i64,
    /// How many values it takes, at least two.
    pub extent: i64,
}

impl Digit {
    pub const fn new(dim: usize, div: i64, extent: i64) -> Digit {
        Digit { dim, div, extent }
    }
}

/// What cutting a dimension did to the list of digits.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Cut {
    /// There was a cut already, or the position is past the extent.
    Nothing,
    /// The digit at this position became two, the low one first; the low one has this extent.
    Split { at: usize, low: i64 },
}

/// The digits of a box of indices, ordered by dimension, lowest first.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Radix {
    shape: Vec<i64>,
    digits: Vec<Digit>,
}

impl Radix {
    /// One digit a dimension; dimensions of extent one have none. Extents are positive.
    pub fn new(shape: &[i64]) -> Radix {
        let long = shape.iter().enumerate().filter(|(_, e)| **e > 1);
        Radix {
            shape: shape.to_vec(),
            digits: long.map(|(dim, &e)| Digit::new(dim, 1, e)).collect(),
        }
    }

    /// Digits as given, ordered by dimension, lowest first. `None` when there are too many.
    pub(crate) fn from_digits(shape: Vec<i64>, digits: Vec<Digit>) -> Option<Radix> {
        (digits.len() <= MAX_DIGITS).then_some(Radix { shape, digits })
    }

    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    pub fn digits(&self) -> &[Digit] {
        &self.digits
    }

    /// The number of indices.
    pub fn size(&self) -> i64 {
        self.shape.iter().product()
    }

    /// Whether the digit is the topmost of its dimension.
    pub fn is_top(&self, at: usize) -> bool {
        let next = self.digits.get(at + 1);
        next.is_none_or(|n| n.dim != self.digits[at].dim)
    }

    /// Whether some combination of this dimension's digits is not an index.
    pub fn is_ragged(&self, dim: usize) -> bool {
        let of_dim = self.digits.iter().filter(|d| d.dim == dim);
        of_dim.map(|d| d.extent).product::<i64>() != self.shape[dim]
    }

    /// The digit of this dimension at or above the cut `div`.
    pub fn position(&self, dim: usize, div: i64) -> Option<usize> {
        let mut digits = self.digits.iter();
        digits.position(|d| d.dim == dim && d.div == div)
    }

    /// The value of a digit of an index.
    pub fn value(&self, at: usize, index: &[i64]) -> i64 {
        let Digit { dim, div, extent } = self.digits[at];
        let quotient = index[dim] / div;
        if self.is_top(at) {
            quotient
        } else {
            quotient % extent
        }
    }

    /// Makes `position` a cut of the dimension. `None` when that breaks the chain, or when
    /// there are too many digits already.
    pub fn cut(&mut self, dim: usize, position: i64) -> Option<Cut> {
        if position <= 1 || position >= self.shape[dim] {
            return Some(Cut::Nothing);
        }
        let below = |d: &Digit| d.dim == dim && d.div <= position;
        let at = self.digits.iter().rposition(below)?;
        let Digit { div, extent, .. } = self.digits[at];
        if div == position {
            return Some(Cut::Nothing);
        }
        let low = position / div;
        let divides = position % div == 0 && (self.is_top(at) || extent % low == 0);
        if !divides || self.digits.len() >= MAX_DIGITS {
            return None;
        }
        self.digits[at].extent = low;
        let high = Digit::new(dim, position, (extent + low - 1) / low);
        self.digits.insert(at + 1, high);
        Some(Cut::Split { at, low })
    }

    /// Joins a digit with the one above it, which is of the same dimension.
    pub fn join(&mut self, at: usize) {
        let high = self.digits.remove(at + 1);
        self.digits[at].extent *= high.extent;
        if self.is_top(at) {
            let Digit { dim, div, .. } = self.digits[at];
            self.digits[at].extent = (self.shape[dim] + div - 1) / div;
        }
    }

    /// Whether an index exists that has these digits set to one and all others zero.
    pub fn realises(&self, row: u64) -> bool {
        let mut sums = vec![0; self.shape.len()];
        for at in ones(row) {
            sums[self.digits[at].dim] += self.digits[at].div;
        }
        sums.iter().zip(&self.shape).all(|(s, e)| s < e)
    }
}

/// The positions of the set bits, lowest first.
pub fn ones(mut row: u64) -> impl Iterator<Item = usize> {
    std::iter::from_fn(move || {
        if row == 0 {
            return None;
        }
        let at = row.trailing_zeros() as usize;
        row &= row - 1;
        Some(at)
    })
}

/// All indices of a box, last dimension fastest.
pub fn indices(shape: &[i64]) -> impl Iterator<Item = Vec<i64>> + '_ {
    let size: i64 = shape.iter().product();
    (0..size).map(|flat| unflatten(flat, shape))
}

/// The index at a row-major position.
pub fn unflatten(mut flat: i64, shape: &[i64]) -> Vec<i64> {
    let mut index = vec![0; shape.len()];
    for (i, &e) in index.iter_mut().zip(shape).rev() {
        *i = flat % e;
        flat /= e;
    }
    index
}

/// The row-major position of an index.
pub fn flatten(index: &[i64], shape: &[i64]) -> i64 {
    index.iter().zip(shape).fold(0, |acc, (i, e)| acc * e + i)
}

/// The distance between neighbours along each dimension in row-major order.
pub fn row_major_strides(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d];
    }
    strides
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_ragged_dimension_keeps_what_remains_on_top() {
        let mut radix = Radix::new(&[229]);
        assert_eq!(radix.cut(0, 128), Some(Cut::Split { at: 0, low: 128 }));
        assert_eq!(
            radix.digits(),
            [Digit::new(0, 1, 128), Digit::new(0, 128, 2)]
        );
        assert!(radix.is_ragged(0));
        assert_eq!(radix.value(0, &[228]), 100);
        assert_eq!(radix.value(1, &[228]), 1);
        // 96 does not divide 128, so no chain has both.
        assert_eq!(radix.cut(0, 96), None);
        radix.join(0);
        assert_eq!(radix, Radix::new(&[229]));
    }

    #[test]
    fn flatten_and_unflatten_are_inverse() {
        let shape = [3, 1, 5];
        for (flat, index) in indices(&shape).enumerate() {
            assert_eq!(flatten(&index, &shape), flat as i64);
        }
        assert_eq!(row_major_strides(&shape), [5, 5, 1]);
    }
}
