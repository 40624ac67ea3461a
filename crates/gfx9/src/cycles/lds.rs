//! LDS as a server: two ways, each shared by a pair of SIMDs, to banks that all share.
//!
//! An access waits in its SIMD's queue until the pair's way is free, holds the way for its bytes
//! and the banks for its phases, and its data arrives a fixed time later. As nothing overtakes on
//! a way, the end of an access is known when it is issued.

use std::collections::VecDeque;

use super::machine::Machine;

/// The ways and the banks.
#[derive(Clone, Debug)]
pub(super) struct Lds {
    /// When each pair's way is free.
    way_free: Vec<u64>,
    banks: Calendar,
    /// When the accesses in each SIMD's queue leave it.
    queues: Vec<VecDeque<u64>>,
    pub bank_busy: u64,
}

/// When a server is taken; gaps can still be filled.
#[derive(Clone, Debug, Default)]
struct Calendar {
    taken: VecDeque<(u64, u64)>,
}

impl Lds {
    pub fn new(machine: &Machine) -> Self {
        let simds = machine.simds as usize;
        Self {
            way_free: vec![0; simds.div_ceil(2)],
            banks: Calendar::default(),
            queues: vec![VecDeque::new(); simds],
            bank_busy: 0,
        }
    }

    /// Whether a SIMD's queue has room.
    pub fn has_room(&mut self, simd: usize, now: u64, machine: &Machine) -> bool {
        let queue = &mut self.queues[simd];
        while queue.front().is_some_and(|leaves| *leaves <= now) {
            queue.pop_front();
        }
        queue.len() < machine.lds_queue.max(1) as usize
    }

    /// Takes an access; the result is when its data is there.
    pub fn access(&mut self, simd: usize, now: u64, cost: Cost, machine: &Machine) -> u64 {
        self.banks.forget(now);
        let way = &mut self.way_free[simd / 2];
        let start = now.max(*way);
        let transfer = u64::from(cost.bytes.div_ceil(machine.lds_pair_bytes));
        let banks = u64::from(cost.bank_cycles);
        let from = self.banks.take(start, banks);
        self.bank_busy += banks;
        *way = (start + transfer).max(from + banks);
        self.queues[simd].push_back(start);
        *way + u64::from(machine.lds_latency)
    }

    /// Data of a copy arrives; the result is when it is written.
    pub fn write_copy(&mut self, arrives: u64, bytes: u32, machine: &Machine) -> u64 {
        let cycles = u64::from(bytes.div_ceil(machine.lds_write_bytes));
        let from = self.banks.take(arrives, cycles);
        self.bank_busy += cycles;
        from + cycles
    }
}

/// What an access asks of LDS.
#[derive(Clone, Copy, Debug)]
pub(super) struct Cost {
    pub bytes: u32,
    pub bank_cycles: u32,
}

impl Calendar {
    /// Takes the first gap of `cycles` from `at` on.
    fn take(&mut self, at: u64, cycles: u64) -> u64 {
        let mut start = at;
        let mut index = 0;
        for (i, (from, until)) in self.taken.iter().enumerate() {
            if start + cycles <= *from {
                break;
            }
            start = start.max(*until);
            index = i + 1;
        }
        if cycles > 0 {
            self.taken.insert(index, (start, start + cycles));
        }
        start
    }

    fn forget(&mut self, now: u64) {
        while self.taken.front().is_some_and(|(_, until)| *until <= now) {
            self.taken.pop_front();
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn gaps_are_filled_in_order() {
        let mut calendar = Calendar::default();
        assert_eq!(calendar.take(10, 4), 10);
        assert_eq!(calendar.take(0, 4), 0);
        assert_eq!(calendar.take(2, 6), 4);
        assert_eq!(calendar.take(2, 1), 14);
        assert_eq!(calendar.take(20, 0), 20);
        calendar.forget(12);
        assert_eq!(calendar.take(0, 4), 0);
        assert_eq!(calendar.taken.len(), 3);
    }

    #[test]
    fn pairs_have_ways_of_their_own_and_share_the_banks() {
        let machine = Machine::GFX950;
        let mut lds = Lds::new(&machine);
        let read = Cost {
            bytes: 1024,
            bank_cycles: 4,
        };
        let latency = u64::from(machine.lds_latency);
        // Two SIMDs of a pair follow each other; the other pair runs beside them.
        assert_eq!(lds.access(0, 0, read, &machine), 8 + latency);
        assert_eq!(lds.access(1, 1, read, &machine), 16 + latency);
        assert_eq!(lds.access(2, 2, read, &machine), 10 + latency);
        // Of a SIMD one access waits.
        assert!(lds.has_room(0, 4, &machine));
        lds.access(0, 4, read, &machine);
        assert!(!lds.has_room(0, 8, &machine));
        assert!(lds.has_room(0, 16, &machine));
        // Conflicts hold the banks, so the other pair waits too.
        let slow = Cost {
            bytes: 1024,
            bank_cycles: 64,
        };
        let mut lds = Lds::new(&machine);
        assert_eq!(lds.access(0, 0, slow, &machine), 64 + latency);
        assert_eq!(lds.access(2, 2, read, &machine), 68 + latency);
    }
}
