//! Vector memory as a server: a queue before the L1, the L1 at its width, and behind it a
//! latency and a bandwidth.

use std::collections::VecDeque;

use super::machine::Machine;
use super::plan::MemoryClass;
use super::stalls::Stall;

#[derive(Clone, Debug)]
pub(super) struct Memory {
    /// When the L1 is free, and when the data that returns has passed.
    l1_free: u64,
    return_free: u64,
    /// When instructions in the queue leave it, and when those under way are done.
    queue: VecDeque<u64>,
    in_flight: Vec<u64>,
    /// When each pair of SIMDs can issue a copy.
    copy_free: Vec<u64>,
    pub l1_busy: u64,
    pub bytes: u64,
}

impl Memory {
    pub fn new(machine: &Machine) -> Self {
        Self {
            l1_free: 0,
            return_free: 0,
            queue: VecDeque::new(),
            in_flight: Vec::new(),
            copy_free: vec![0; (machine.simds as usize).div_ceil(2)],
            l1_busy: 0,
            bytes: 0,
        }
    }

    /// Whether an instruction of a SIMD can be taken.
    pub fn accepts(
        &mut self,
        simd: usize,
        now: u64,
        class: MemoryClass,
        machine: &Machine,
    ) -> Result<(), Stall> {
        while self.queue.front().is_some_and(|leaves| *leaves <= now) {
            self.queue.pop_front();
        }
        self.in_flight.retain(|done| *done > now);
        let room = match class {
            MemoryClass::Store => machine.store_queue,
            _ => machine.memory_queue,
        };
        // With room for none an instruction is taken when the L1 takes it at once.
        let full = match room {
            0 => self.l1_free > now,
            room => self.queue.len() >= room as usize,
        };
        let copies = class == MemoryClass::Copy && self.copy_free[simd / 2] > now;
        match full || copies || self.in_flight.len() >= machine.memory_in_flight as usize {
            true => Err(Stall::MemoryQueue),
            false => Ok(()),
        }
    }

    /// Takes an instruction; the result is when its data is back, or it is written.
    pub fn access(
        &mut self,
        simd: usize,
        now: u64,
        class: MemoryClass,
        bytes: u32,
        machine: &Machine,
    ) -> u64 {
        let start = now.max(self.l1_free);
        let cycles = u64::from(bytes.div_ceil(machine.l1_bytes).max(machine.slot));
        self.l1_free = start + cycles;
        self.l1_busy += cycles;
        self.bytes += u64::from(bytes);
        self.queue.push_back(start);
        if class == MemoryClass::Copy {
            self.copy_free[simd / 2] = now + u64::from(machine.copy_issue);
        }
        let transfer = u64::from(bytes.div_ceil(machine.memory_bytes));
        let arrives = (start + cycles + u64::from(machine.memory_latency)).max(self.return_free);
        self.return_free = arrives + transfer;
        self.in_flight.push(self.return_free);
        self.return_free
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    /// Sixteen loads issue without a gap, then one every 16 cycles; stores from the first.
    #[test]
    fn the_queue_fills() {
        let machine = Machine::GFX942;
        let gaps = |class: MemoryClass| -> Vec<u64> {
            let mut memory = Memory::new(&machine);
            let mut times: Vec<u64> = Vec::new();
            let mut now = 0;
            while times.len() < 24 {
                if memory.accepts(0, now, class, &machine).is_ok() {
                    memory.access(0, now, class, 1024, &machine);
                    times.push(now);
                }
                now += 4;
            }
            times.windows(2).map(|pair| pair[1] - pair[0]).collect()
        };
        let loads = gaps(MemoryClass::Load);
        let first = loads.iter().position(|gap| *gap >= 16).unwrap();
        assert!((12..=16).contains(&first), "{loads:?}");
        assert!(loads[first + 1..].iter().all(|gap| *gap == 16), "{loads:?}");
        assert!(gaps(MemoryClass::Store).iter().all(|gap| *gap == 16));
    }
}
