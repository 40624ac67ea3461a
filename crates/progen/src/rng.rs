//! The source of chance: splitmix64, so that a seed means the same program on every machine and
//! with every version of the compiler's own crates.

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    pub fn new(seed: u64) -> Rng {
        let mut rng = Rng {
            state: seed ^ 0x7469_6c65_7772_6967,
        };
        rng.next_u64();
        rng
    }

    pub fn next_u64(&mut self) -> u64 {
        self.state = self.state.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.state;
        z = (z ^ (z >> 30)).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ (z >> 27)).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ (z >> 31)
    }

    /// Below `n`; zero where there is nothing below.
    pub fn below(&mut self, n: usize) -> usize {
        match n {
            0 => 0,
            n => (self.next_u64() % n as u64) as usize,
        }
    }

    /// Between the two, both included.
    pub fn int(&mut self, low: i64, high: i64) -> i64 {
        low + self.below((high - low + 1).max(1) as usize) as i64
    }

    /// True in `percent` of 100 cases.
    pub fn chance(&mut self, percent: u32) -> bool {
        (self.next_u64() % 100) < u64::from(percent)
    }

    /// One of the list, which is not empty.
    pub fn pick<T: Clone>(&mut self, list: &[T]) -> T {
        list[self.below(list.len())].clone()
    }

    /// One of the list, each as often as its weight says.
    pub fn weighted<T: Clone>(&mut self, list: &[(u32, T)]) -> T {
        let total: u32 = list.iter().map(|(w, _)| w).sum();
        let mut at = (self.next_u64() % u64::from(total.max(1))) as u32;
        for (weight, item) in list {
            if at < *weight {
                return item.clone();
            }
            at -= weight;
        }
        list[0].1.clone()
    }
}
