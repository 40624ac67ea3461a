//! A kernel made ready to run: what each instruction touches, and where branches go.

use crate::asm::{Access, Function, Instruction, Register, RegisterFile};
use crate::isa::{Flags, Opcode};

use super::fault::Fault;

/// A kernel's instructions.
#[derive(Debug)]
pub struct Code<'f> {
    pub function: &'f Function,
    pub accesses: Vec<Access>,
    /// Loads that ask again and again, in a loop that sleeps, for what other waves do: what they see
    /// orders waves as atomic operations do.
    pub polls: Vec<bool>,
    /// The instruction that each branch goes to.
    targets: Vec<Option<usize>>,
}

impl<'f> Code<'f> {
    pub fn new(function: &'f Function) -> Self {
        let code = function.instructions.iter();
        let target = |i: &Instruction| function.labels.get(i.target()?).copied();
        Self {
            function,
            accesses: code.clone().map(Instruction::access).collect(),
            polls: polls(function),
            targets: code.map(target).collect(),
        }
    }

    pub fn instruction(&self, at: usize) -> Result<&'f Instruction, Fault> {
        self.function.instructions.get(at).ok_or(Fault::Nowhere)
    }

    pub fn target(&self, at: usize) -> Result<usize, Fault> {
        self.targets
            .get(at)
            .copied()
            .flatten()
            .ok_or(Fault::Nowhere)
    }

    /// Blocks may wait for what others do: one asks memory in an atomic way what is there.
    pub fn orders_blocks(&self) -> bool {
        self.function
            .instructions
            .iter()
            .any(|i| (i.op.is(Flags::ATOMIC) && i.modifiers.sc0) || i.op == Opcode::buffer_inv)
    }

    /// The registers that an instruction names, as far as they go: vector, accumulation, scalar.
    pub fn highest(&self) -> [usize; 3] {
        let mut highest = [0; 3];
        let touched = self
            .accesses
            .iter()
            .flat_map(|a| a.reads.iter().chain(&a.writes));
        for register in touched {
            let of = match register.file {
                RegisterFile::Vector => 0,
                RegisterFile::Accumulator => 1,
                RegisterFile::Scalar => 2,
                _ => continue,
            };
            highest[of] = highest[of].max(usize::from(register.index) + 1);
        }
        highest
    }
}

/// A loop that does nothing but ask and sleep has no more instructions than this.
const POLLING: usize = 40;

/// The compiler asks a first time before the loop: so near to it, and for the same place.
const FIRST_ASKED: usize = 64;

fn polls(function: &Function) -> Vec<bool> {
    let code = &function.instructions;
    let mut polls = vec![false; code.len()];
    for polled in function.loops() {
        let body = polled.body(function);
        let sleeps = body.iter().any(|i| i.op == Opcode::s_sleep);
        if !sleeps || body.len() > POLLING {
            continue;
        }
        for asked in body.iter().filter(|i| i.is_lds_read()) {
            let Some(at) = code.iter().position(|i| i.line == asked.line) else {
                continue;
            };
            let near = at.saturating_sub(FIRST_ASKED)..(at + FIRST_ASKED).min(code.len());
            for other in near {
                let same = code[other].op == asked.op
                    && code[other].modifiers.offset == asked.modifiers.offset;
                polls[other] |= same;
            }
        }
    }
    polls
}

/// Which registers memory operations are working on.
#[derive(Clone, Debug)]
pub(super) struct Busy {
    counts: Vec<u8>,
    total: u32,
}

/// Room for 512 vector, 512 accumulation and 128 other registers.
const PLACES: usize = 512 + 512 + 128;

impl Busy {
    pub fn new() -> Self {
        Self {
            counts: vec![0; PLACES],
            total: 0,
        }
    }

    fn place(register: Register) -> Option<usize> {
        let index = usize::from(register.index);
        let place = match register.file {
            RegisterFile::Vector => index,
            RegisterFile::Accumulator => 512 + index,
            RegisterFile::Scalar => 1024 + index,
            RegisterFile::Vcc => 1024 + 106 + index,
            RegisterFile::M0 => 1024 + 108,
            _ => return None,
        };
        (place < PLACES).then_some(place)
    }

    pub fn add(&mut self, registers: &[Register]) {
        for place in registers.iter().filter_map(|r| Self::place(*r)) {
            self.counts[place] += 1;
            self.total += 1;
        }
    }

    pub fn remove(&mut self, registers: &[Register]) {
        for place in registers.iter().filter_map(|r| Self::place(*r)) {
            self.counts[place] -= 1;
            self.total -= 1;
        }
    }

    pub fn any(&self) -> bool {
        self.total > 0
    }

    pub fn is(&self, register: Register) -> bool {
        Self::place(register).is_some_and(|place| self.counts[place] > 0)
    }
}
