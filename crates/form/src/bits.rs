//! Linear algebra over GF(2), the field of the two bits.
//!
//! A row is a `u64` whose set bits are the columns it uses; the value of a row on an assignment
//! of bits is the parity of the bits it selects. Addition is XOR, so elimination needs no
//! multiplication and every question (rank, kernel, inverse, span) costs a few dozen XORs.

/// The parity of the bits of `assignment` that `row` selects.
pub fn parity(row: u64, assignment: u64) -> bool {
    (row & assignment).count_ones() % 2 == 1
}

/// A set of independent vectors, each with a leading bit that no other one leads with.
#[derive(Clone, Default, Debug)]
pub struct Basis {
    vectors: Vec<u64>,
}

impl Basis {
    /// The span of some vectors.
    pub fn of(vectors: impl IntoIterator<Item = u64>) -> Basis {
        let mut basis = Basis::default();
        for v in vectors {
            basis.insert(v);
        }
        basis
    }

    /// What is left of `v` after subtracting everything the span can: zero when it is inside.
    pub fn reduce(&self, v: u64) -> u64 {
        // Vectors are kept with falling leading bits, and `v ^ b < v` says `v` has b's leader.
        self.vectors.iter().fold(v, |v, &b| v.min(v ^ b))
    }

    /// Adds a vector; false when the span had it already.
    pub fn insert(&mut self, v: u64) -> bool {
        let v = self.reduce(v);
        if v == 0 {
            return false;
        }
        let at = self.vectors.partition_point(|&b| b > v);
        self.vectors.insert(at, v);
        true
    }

    pub fn contains(&self, v: u64) -> bool {
        self.reduce(v) == 0
    }

    pub fn rank(&self) -> usize {
        self.vectors.len()
    }
}

/// How many of the rows are independent.
pub fn rank(rows: impl IntoIterator<Item = u64>) -> usize {
    Basis::of(rows).rank()
}

/// A nonzero assignment within `columns` on which every row is zero, where there is one.
pub fn kernel_vector(rows: &[u64], columns: u64) -> Option<u64> {
    // Reduced echelon form: each pivot column occurs in its own row alone.
    let mut echelon: Vec<(u64, u64)> = Vec::new();
    for &row in rows {
        let mut row = row & columns;
        for &(pivot, r) in &echelon {
            if row & pivot != 0 {
                row ^= r;
            }
        }
        if row == 0 {
            continue;
        }
        let pivot = row & row.wrapping_neg();
        for (_, r) in &mut echelon {
            if *r & pivot != 0 {
                *r ^= row;
            }
        }
        echelon.push((pivot, row));
    }
    let pivots = echelon.iter().fold(0, |acc, (p, _)| acc | p);
    let free = columns & !pivots;
    if free == 0 {
        return None;
    }
    let free = free & free.wrapping_neg();
    let dependent = echelon.iter().filter(|(_, r)| r & free != 0);
    Some(dependent.fold(free, |v, (p, _)| v | p))
}

/// The inverse of a square system: `result[i]` selects the rows whose values add up to the bit
/// in `columns[i]`. `None` when the rows do not determine the columns.
pub fn invert(rows: &[u64], columns: &[u32]) -> Option<Vec<u64>> {
    if rows.len() != columns.len() || rows.len() > 64 {
        return None;
    }
    let numbered = rows.iter().enumerate();
    let mut work: Vec<(u64, u64)> = numbered.map(|(i, &r)| (r, 1 << i)).collect();
    for (i, &column) in columns.iter().enumerate() {
        let bit = 1u64 << column;
        let found = (i..work.len()).find(|&r| work[r].0 & bit != 0)?;
        work.swap(i, found);
        let pivot = work[i];
        for (r, row) in work.iter_mut().enumerate() {
            if r != i && row.0 & bit != 0 {
                row.0 ^= pivot.0;
                row.1 ^= pivot.1;
            }
        }
    }
    // What is left of row i outside `columns` would make the answer depend on other bits.
    let clean = work.iter().zip(columns).all(|(w, &c)| w.0 == 1 << c);
    clean.then(|| work.into_iter().map(|w| w.1).collect())
}

#[cfg(test)]
mod tests {
    use super::*;
    use proptest::prelude::*;

    #[test]
    fn a_swizzle_is_its_own_inverse() {
        // Three bits, each XORed with one of three others.
        let rows: Vec<u64> = (0..3).map(|b| 1 << b | 1 << (b + 3)).collect();
        let rows: Vec<u64> = rows.into_iter().chain((3..6).map(|b| 1 << b)).collect();
        assert_eq!(invert(&rows, &[0, 1, 2, 3, 4, 5]), Some(rows));
    }

    proptest! {
        #[test]
        fn rank_kernel_and_inverse_agree(rows in prop::collection::vec(0u64..64, 0..8)) {
            let columns = 0b11_1111;
            let kernel: Vec<u64> = (1..64).filter(|&v| rows.iter().all(|&r| !parity(r, v))).collect();
            match kernel_vector(&rows, columns) {
                Some(v) => prop_assert!(kernel.contains(&v)),
                None => prop_assert!(kernel.is_empty()),
            }
            prop_assert_eq!(1usize << (6 - rank(rows.iter().copied())), kernel.len() + 1);
            if let Some(inverse) = invert(&rows, &[0, 1, 2, 3, 4, 5]) {
                for x in 0..64u64 {
                    let t = rows.iter().enumerate().fold(0, |t, (i, &r)| t | (parity(r, x) as u64) << i);
                    let back = inverse.iter().enumerate().fold(0, |b, (i, &r)| b | (parity(r, t) as u64) << i);
                    prop_assert_eq!(back, x);
                }
            } else {
                prop_assert!(rows.len() != 6 || !kernel.is_empty());
            }
        }
    }
}
