//! Barriers of a block: arrival barriers with phases, and the counting barriers of
//! `sync_threads`.

/// An arrival barrier: a phase completes when enough threads have arrived and all the bytes
/// that were announced have landed.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Mbarrier {
    pub parity: u8,
    /// Arrivals that complete a phase.
    pub count: u32,
    /// Arrivals that the current phase still needs.
    pub pending: u32,
    /// Bytes announced and not landed.
    pub bytes: i64,
}

impl Mbarrier {
    pub fn new(count: u32) -> Mbarrier {
        Mbarrier {
            parity: 0,
            count,
            pending: count,
            bytes: 0,
        }
    }

    pub fn expect(&mut self, bytes: i64) {
        self.bytes += bytes;
        self.settle();
    }

    /// `false` when the phase needed no further arrival: the counts do not match.
    pub fn arrive(&mut self) -> bool {
        if self.pending == 0 {
            return false;
        }
        self.pending -= 1;
        self.settle();
        true
    }

    /// Whether the phase of this parity has completed.
    pub fn passed(&self, parity: i64) -> bool {
        i64::from(self.parity) != parity & 1
    }

    fn settle(&mut self) {
        if self.pending == 0 && self.bytes == 0 && self.count > 0 {
            self.parity ^= 1;
            self.pending = self.count;
        }
    }
}

/// A barrier that lets through when a number of threads has come, again and again.
#[derive(Clone, Copy, PartialEq, Eq, Debug, Default)]
pub(crate) struct Counting {
    pub arrived: u64,
    /// How often it has let through.
    pub generation: u64,
}

impl Counting {
    /// Threads arrive; the ticket says what to wait for.
    pub fn arrive(&mut self, threads: u32, needed: u64) -> u64 {
        let ticket = self.generation;
        self.arrived += u64::from(threads);
        if self.arrived >= needed {
            self.arrived -= needed;
            self.generation += 1;
        }
        ticket
    }

    pub fn passed(&self, ticket: u64) -> bool {
        self.generation > ticket
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_fresh_barrier_has_completed_phase_one() {
        let mut b = Mbarrier::new(128);
        assert!(b.passed(1));
        assert!(!b.passed(0));
        for _ in 0..127 {
            assert!(b.arrive());
        }
        assert!(!b.passed(0));
        b.arrive();
        // The phase of parity 0 is over, and stays so until the next one completes.
        assert!(b.passed(0));
        assert!(b.passed(0));
        assert!(!b.passed(1));
        assert!(b.passed(2), "the parity counts modulo two");
    }

    #[test]
    fn announced_bytes_hold_the_phase() {
        let mut b = Mbarrier::new(1);
        b.expect(256);
        b.arrive();
        assert!(!b.passed(0));
        assert!(!b.arrive(), "one arrival too many");
        b.expect(-256);
        assert!(b.passed(0));
    }

    #[test]
    fn counting_barriers_repeat() {
        let mut c = Counting::default();
        let first = c.arrive(128, 256);
        assert!(!c.passed(first));
        let second = c.arrive(128, 256);
        assert!(c.passed(first) && c.passed(second));
        let third = c.arrive(256, 256);
        assert!(c.passed(third));
    }
}
