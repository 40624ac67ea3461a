//! A small deterministic generator for inputs: the same seed gives the same tensors on every
//! machine. Splitmix64; no claim beyond spreading its 64 bits well.

/// A stream of pseudo-random numbers.
#[derive(Clone, Debug)]
pub struct Rng {
    state: u64,
}

impl Rng {
    pub fn new(seed: u64) -> Rng {
        Rng { state: seed }
    }

    /// The stream of one named thing, so that adding a tensor does not change the others.
    pub fn named(seed: u64, name: &str) -> Rng {
        let mixed = name.bytes().fold(seed ^ 0x51_7c_c1_b7, |hash, byte| {
            (hash ^ u64::from(byte)).wrapping_mul(0x0100_0000_01b3)
        });
        let mut rng = Rng::new(mixed);
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

    /// Uniform in `[0, 1)`.
    pub fn unit(&mut self) -> f64 {
        (self.next_u64() >> 11) as f64 / (1u64 << 53) as f64
    }

    /// Uniform in `[low, high]`; `low` where the range is empty.
    pub fn int_in(&mut self, low: i128, high: i128) -> i128 {
        if high <= low {
            return low;
        }
        let span = (high - low + 1) as u128;
        low + (u128::from(self.next_u64()) % span) as i128
    }

    /// Normal with mean zero and deviation one.
    pub fn normal(&mut self) -> f64 {
        let radius = (-2.0 * (1.0 - self.unit()).ln()).sqrt();
        radius * (std::f64::consts::TAU * self.unit()).cos()
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn streams_repeat_and_differ_by_name() {
        let mut a = Rng::named(7, "A");
        let mut again = Rng::named(7, "A");
        let mut b = Rng::named(7, "B");
        let first: Vec<u64> = (0..4).map(|_| a.next_u64()).collect();
        assert_eq!(
            first,
            (0..4).map(|_| again.next_u64()).collect::<Vec<u64>>()
        );
        assert_ne!(first, (0..4).map(|_| b.next_u64()).collect::<Vec<u64>>());
    }

    #[test]
    fn ranges_hold() {
        let mut rng = Rng::new(1);
        let mut sum = 0.0;
        for _ in 0..10_000 {
            assert!((0.0..1.0).contains(&rng.unit()));
            assert!((-3..=5).contains(&rng.int_in(-3, 5)));
            sum += rng.normal();
        }
        assert!((sum / 10_000.0).abs() < 0.05);
    }
}
