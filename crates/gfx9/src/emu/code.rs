//! A kernel made ready to run: what each instruction touches, and where branches and names go.

use std::borrow::Cow;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::asm::{Access, Function, Instruction, Operand, Register, RegisterFile};
use crate::isa::{Flags, Opcode};

use super::atomics::Update;
use super::fault::Fault;
use super::memory::Memory;

/// A kernel's instructions.
#[derive(Debug)]
pub struct Code<'f> {
    pub function: &'f Function,
    pub accesses: Vec<Access>,
    /// Loads of LDS that are atomic: those of lines that are said to be, and those that ask again
    /// and again, in a loop that sleeps, for what other waves do.
    pub atomic_loads: Vec<bool>,
    /// What changes memory.
    pub stores: Vec<bool>,
    /// The instruction that each branch goes to.
    targets: Vec<Option<usize>>,
}

impl<'f> Code<'f> {
    pub fn new(function: &'f Function, atomic_lines: &FxHashSet<u32>) -> Self {
        let code = function.instructions.iter();
        let target = |i: &Instruction| function.labels.get(i.target()?).copied();
        let mut atomic_loads = polls(function);
        for (is, i) in atomic_loads.iter_mut().zip(code.clone()) {
            *is |= i.is_lds_read() && i.place.is_some_and(|p| atomic_lines.contains(&p.line));
        }
        Self {
            function,
            accesses: code.clone().map(Instruction::access).collect(),
            atomic_loads,
            stores: code.clone().map(stores).collect(),
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
        let asks = |i: &Instruction| {
            let load = i.destinations() > 0 && i.op.is_vector_memory();
            (i.op.is(Flags::ATOMIC) && i.modifiers.sc0) || (load && i.modifiers.sc1)
        };
        self.function.instructions.iter().any(asks)
    }

    /// Waves may sleep until others have gone on.
    pub fn sleeps(&self) -> bool {
        let code = self.function.instructions.iter();
        code.map(|i| i.op).any(|op| op == Opcode::s_sleep)
    }

    /// Whether an instruction loads memory to registers, and does nothing else to it.
    pub fn is_plain_load(&self, at: usize) -> bool {
        let loads = |i: &Instruction| {
            i.destinations() > 0 && Update::of(i.op).is_none() && !i.is_lds_copy()
        };
        self.function.instructions.get(at).is_some_and(loads)
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

/// The function with the addresses of objects in place of their names. A name is told from where
/// the code is (`s_getpc_b64`, then the halves of the distance in the two instructions behind it),
/// and code lies at 0.
pub fn linked<'f>(
    function: &'f Function,
    objects: &FxHashMap<String, usize>,
) -> Result<Cow<'f, Function>, String> {
    let mut linked = Cow::Borrowed(function);
    for (at, instruction) in function.instructions.iter().enumerate() {
        let named = instruction.operands.iter().enumerate();
        let named = named.filter_map(|(index, operand)| {
            Some((index, Distance::read(instruction.symbol(operand)?)?))
        });
        for (index, distance) in named {
            let fail = |why: &str| Err(format!("line {}: {why}", instruction.line));
            let told = at.checked_sub(distance.behind);
            let told = told.and_then(|at| function.instructions.get(at));
            if told.is_none_or(|i| i.op != Opcode::s_getpc_b64) {
                return fail("an address is told from elsewhere than the code before it");
            }
            let Some(object) = objects.get(distance.name) else {
                return fail("there is no such object");
            };
            let word = (Memory::address(*object) >> distance.shift) as u32;
            let operands = &mut linked.to_mut().instructions[at].operands;
            operands[index] = Operand::Integer(i64::from(word));
        }
    }
    Ok(linked)
}

/// `name@rel32@lo+4`: a half of how far an object is, and how many instructions behind the one that
/// it is told from.
struct Distance<'t> {
    name: &'t str,
    shift: u32,
    behind: usize,
}

impl<'t> Distance<'t> {
    fn read(text: &'t str) -> Option<Self> {
        let (name, rest) = text.split_once("@rel32@")?;
        // The constant stands four bytes into the instruction, which has eight.
        let (shift, behind) = match rest {
            "lo+4" => (0, 1),
            "hi+12" => (32, 2),
            _ => return None,
        };
        Some(Self {
            name,
            shift,
            behind,
        })
    }
}

/// Whether an instruction changes global memory.
fn stores(i: &Instruction) -> bool {
    let loads = i.destinations() > 0 || i.is_lds_copy() || i.op.is_cache() || i.is_scratch();
    i.op.is_vector_memory() && (i.op.is(Flags::ATOMIC) || !loads)
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
