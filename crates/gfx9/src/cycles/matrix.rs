//! The vector and matrix units of a SIMD, and the results that are late.
//!
//! Plain results are there with the wave's next slot. Those of matrix instructions are not, and
//! how late they are depends on who reads them; nor are those of the slow vector instructions.

use super::machine::Machine;
use super::plan::{Action, Plan, REGISTERS, Span};
use super::stalls::Stall;

/// One SIMD's units.
#[derive(Clone, Debug, Default)]
pub(super) struct Units {
    pub vector_free: u64,
    pub matrix_free: u64,
    pub matrix_busy: u64,
    pub vector_busy: u64,
}

/// A wave's late results.
#[derive(Clone, Debug)]
pub(super) struct Scoreboard {
    results: Vec<Late>,
    /// Nothing is late from here on.
    all_ready: u64,
    /// When the wave's last matrix instruction has passed the unit.
    matrix_end: u64,
}

#[derive(Clone, Copy, Debug, Default)]
struct Late {
    /// For a reader that is no matrix instruction, or one that takes it as A or B.
    ready: u64,
    /// For a matrix instruction that adds to it, where its registers are not the same.
    overlap: u64,
    /// The first register and the count of the matrix result that it is part of.
    first: u16,
    count: u16,
}

impl Scoreboard {
    pub fn new() -> Self {
        Self {
            results: vec![Late::default(); REGISTERS],
            all_ready: 0,
            matrix_end: 0,
        }
    }

    /// Whether what an instruction reads and writes is there.
    pub fn ready(&self, plan: &Plan, now: u64) -> Result<(), Stall> {
        if now >= self.all_ready {
            return Ok(());
        }
        let c = match &plan.action {
            Action::Matrix { c, .. } => *c,
            _ => None,
        };
        let inside = |span: Option<Span>, register: u16| {
            span.is_some_and(|s| (s.first..s.first + s.count).contains(&register))
        };
        for register in &plan.reads {
            let late = self.results[*register as usize];
            let ready = match c {
                Some(span) if inside(c, *register) => {
                    let same = span.first == late.first && span.count == late.count;
                    if same { 0 } else { late.overlap }
                }
                _ => late.ready,
            };
            if ready > now {
                return Err(late.reason());
            }
        }
        // Matrix instructions write in the order they start; others would overtake.
        let overtakes = !matches!(plan.action, Action::Matrix { .. });
        for register in plan.writes.iter().filter(|_| overtakes) {
            let late = self.results[*register as usize];
            if late.ready > now {
                return Err(late.reason());
            }
        }
        Ok(())
    }

    fn matrix_result(&mut self, result: Span, passes: u32, now: u64, machine: &Machine) {
        let slot = u64::from(machine.slot);
        let end = now + u64::from(passes * machine.pass);
        let late = Late {
            ready: end + u64::from(machine.result_slots) * slot,
            overlap: end + u64::from(machine.overlap_slots) * slot,
            first: result.first,
            count: result.count,
        };
        for register in result.first..result.first + result.count {
            if let Some(entry) = self.results.get_mut(register as usize) {
                *entry = late;
            }
        }
        self.all_ready = self.all_ready.max(late.ready);
        self.matrix_end = end;
    }

    fn vector_result(&mut self, plan: &Plan, ready: u64) {
        for register in &plan.writes {
            self.results[*register as usize] = Late {
                ready,
                overlap: ready,
                first: 0,
                count: 0,
            };
        }
        self.all_ready = self.all_ready.max(ready);
    }
}

impl Late {
    fn reason(self) -> Stall {
        match self.count {
            0 => Stall::Result,
            _ => Stall::MatrixResult,
        }
    }
}

impl Units {
    /// Whether the unit that an instruction needs is free.
    pub fn free(
        &self,
        plan: &Plan,
        scoreboard: &Scoreboard,
        now: u64,
        machine: &Machine,
    ) -> Result<(), Stall> {
        let vector = match self.vector_free > now {
            true => Err(Stall::VectorUnit),
            false => Ok(()),
        };
        match &plan.action {
            Action::Matrix { .. } if self.matrix_free > now => Err(Stall::MatrixUnit),
            // These share the matrix unit's ways.
            Action::Vector { packed: true, .. } => {
                let own = scoreboard.matrix_end + u64::from(machine.packed_behind_matrix);
                match self.matrix_free > now || own > now && scoreboard.matrix_end > 0 {
                    true => Err(Stall::MatrixUnit),
                    false => vector,
                }
            }
            Action::Matrix { .. } | Action::Vector { .. } => vector,
            _ => Ok(()),
        }
    }

    /// Starts an instruction; the result is when the unit has taken it.
    pub fn start(
        &mut self,
        plan: &Plan,
        scoreboard: &mut Scoreboard,
        now: u64,
        machine: &Machine,
    ) -> u64 {
        match &plan.action {
            Action::Matrix { passes, result, .. } => {
                let cycles = u64::from(passes * machine.pass);
                self.vector_free = now + u64::from(machine.vector);
                self.matrix_free = now + cycles;
                self.matrix_busy += cycles;
                scoreboard.matrix_result(*result, *passes, now, machine);
                self.matrix_free
            }
            Action::Vector { cycles, .. } => {
                let cycles = u64::from(*cycles);
                self.vector_free = now + cycles;
                self.vector_busy += cycles;
                // Also where the result is in time: it replaces a late one.
                scoreboard.vector_result(plan, now + cycles);
                self.vector_free
            }
            _ => now + u64::from(machine.slot),
        }
    }
}
