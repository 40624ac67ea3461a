//! Sets of threads of a block.

/// A set of at most 1024 threads.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Mask([u64; 16]);

impl Mask {
    /// The threads `start .. end`.
    pub fn range(start: usize, end: usize) -> Mask {
        let mut mask = Mask::default();
        for lane in start..end {
            mask.insert(lane);
        }
        mask
    }

    pub fn insert(&mut self, lane: usize) {
        self.0[lane / 64] |= 1 << (lane % 64);
    }

    pub fn contains(&self, lane: usize) -> bool {
        self.0[lane / 64] >> (lane % 64) & 1 == 1
    }

    pub fn is_empty(&self) -> bool {
        self.0 == [0; 16]
    }

    pub fn len(&self) -> u32 {
        self.0.iter().map(|w| w.count_ones()).sum()
    }

    /// The lowest thread; zero when there is none.
    pub fn first(&self) -> usize {
        self.iter().next().unwrap_or(0)
    }

    pub fn and(self, other: Mask) -> Mask {
        self.zip(other, |a, b| a & b)
    }

    pub fn or(self, other: Mask) -> Mask {
        self.zip(other, |a, b| a | b)
    }

    /// The threads of this set that are not in the other.
    pub fn without(self, other: Mask) -> Mask {
        self.zip(other, |a, b| a & !b)
    }

    /// The threads, ascending.
    pub fn iter(&self) -> impl Iterator<Item = usize> + use<> {
        let words = self.0;
        words.into_iter().enumerate().flat_map(|(at, mut word)| {
            std::iter::from_fn(move || {
                if word == 0 {
                    return None;
                }
                let bit = word.trailing_zeros() as usize;
                word &= word - 1;
                Some(at * 64 + bit)
            })
        })
    }

    fn zip(self, other: Mask, f: impl Fn(u64, u64) -> u64) -> Mask {
        let mut mask = self;
        for (a, b) in mask.0.iter_mut().zip(other.0) {
            *a = f(*a, b);
        }
        mask
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn sets_of_threads() {
        let m = Mask::range(60, 70);
        assert_eq!(m.len(), 10);
        assert_eq!(m.iter().collect::<Vec<_>>(), (60..70).collect::<Vec<_>>());
        assert_eq!(m.first(), 60);
        let half = m.without(Mask::range(0, 65));
        assert_eq!(half.iter().collect::<Vec<_>>(), [65, 66, 67, 68, 69]);
        assert!(half.and(Mask::range(0, 65)).is_empty());
        assert_eq!(half.or(Mask::range(60, 65)), m);
        assert_eq!(Mask::range(0, 1024).len(), 1024);
    }
}
