//! Sets as words of bits.

use std::ops::Range;

/// The words that a range of members lies in, with its bits there.
pub(super) fn words(range: Range<usize>) -> impl Iterator<Item = (usize, u64)> {
    let words = range.start / 64..range.end.div_ceil(64);
    words.map(move |word| {
        let first = range.start.max(word * 64) - word * 64;
        let end = range.end.min(word * 64 + 64) - word * 64;
        (word, u64::MAX << first & u64::MAX >> (64 - end))
    })
}

/// The members of a word, the lowest first.
pub(super) fn members(word: u64) -> impl Iterator<Item = usize> {
    let mut left = word;
    std::iter::from_fn(move || {
        let bit = (left != 0).then_some(left.trailing_zeros() as usize)?;
        left &= left - 1;
        Some(bit)
    })
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_range_is_its_members() {
        for range in [0..0, 5..5, 0..1, 3..64, 63..65, 64..128, 70..71, 10..200] {
            let all = words(range.clone()).flat_map(|(word, bits)| {
                let here = members(bits);
                here.map(move |bit| word * 64 + bit)
            });
            assert!(all.eq(range.clone()), "{range:?}");
        }
    }
}
