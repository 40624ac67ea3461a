//! Layouts that are linear over the bits of their indices.
//!
//! Where rows and chunks are powers of two, the place of an element is the XOR of the places of
//! the bits of its index: an index in two parts without a common bit has its place in two parts
//! as well, and the part that is known early need not wait for the other.

use crate::layout::Layout;

impl Layout {
    /// For each dimension the places of its bits, lowest first, where the layout is the XOR of
    /// them. Decided on the closed form: no element is looked at.
    pub fn bit_images(&self) -> Option<Vec<Vec<i64>>> {
        let form = self.form()?;
        let digits = form.radix.digits();
        for (at, digit) in digits.iter().enumerate() {
            let whole = digit.extent.count_ones() == 1 || form.radix.is_top(at);
            if digit.div.count_ones() != 1 || !whole {
                return None;
            }
        }
        // The bits of the place that the terms so far can reach.
        let mut reached = 0i64;
        let mut scale = self.span();
        for (out, extent) in form.outs.iter().zip(self.codomain()) {
            scale /= extent;
            if out.offset != 0 {
                return None;
            }
            for term in &out.terms {
                let values = match term.row.is_power_of_two() {
                    true => digits[term.row.trailing_zeros() as usize].extent,
                    false => 2,
                };
                let weight = term.weight.checked_mul(scale)?;
                if weight <= 0 || weight.count_ones() != 1 {
                    return None;
                }
                let bits = (values as u64).next_power_of_two() as i64 - 1;
                let own = weight.checked_mul(bits)?;
                if reached & own != 0 {
                    return None;
                }
                reached |= own;
            }
        }
        let mut index = vec![0; self.shape().len()];
        let mut images = Vec::with_capacity(index.len());
        for (dim, &extent) in self.shape().iter().enumerate() {
            let mut own = Vec::new();
            let mut bit = 1;
            while bit < extent {
                index[dim] = bit;
                own.push(self.offset(&index));
                bit *= 2;
            }
            index[dim] = 0;
            images.push(own);
        }
        Some(images)
    }
}

#[cfg(test)]
mod tests {
    use crate::Layout;
    use crate::radix::indices;
    use crate::swizzle::row_xor;

    fn agrees(layout: &Layout) -> bool {
        let images = layout.bit_images().unwrap();
        indices(layout.shape()).all(|index| {
            let mut place = 0;
            for (x, images) in index.iter().zip(&images) {
                for (bit, image) in images.iter().enumerate() {
                    place ^= (x >> bit & 1) * image;
                }
            }
            place == layout.offset(&index)
        })
    }

    #[test]
    fn permuted_rows_are_the_xor_of_their_bits() {
        for (shape, chunk) in [
            ([64, 64], 8),
            ([128, 32], 4),
            ([192, 64], 8),
            ([16, 256], 16),
        ] {
            for pairs in [&[(0, 0), (1, 1)][..], &[(1, 0), (2, 1), (3, 0)], &[]] {
                assert!(
                    agrees(&row_xor(&shape, chunk, pairs).unwrap()),
                    "{shape:?} {pairs:?}"
                );
            }
        }
    }

    #[test]
    fn rows_of_other_lengths_are_not() {
        assert_eq!(Layout::padded(&[64, 64], 8).unwrap().bit_images(), None);
        assert_eq!(Layout::linear(&[16, 96]).unwrap().bit_images(), None);
    }
}
