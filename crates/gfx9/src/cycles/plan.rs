//! What the model asks of an instruction, decided once for each of the function's instructions.

use crate::asm::{Counter, Instruction, Operand, Register, RegisterFile, Registers, Wait};
use crate::isa::{Flags, Format, Opcode, Ty};

use super::banks::Direction;
use super::machine::Machine;

/// What an instruction is to a reader of a timeline.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum Kind {
    Matrix,
    Vector,
    Scalar,
    Lds,
    /// Copies straight to LDS.
    Copy,
    Memory,
    Wait,
    Barrier,
    /// Branches, `s_nop`, `s_setprio` and the like.
    Control,
}

impl Kind {
    pub const ALL: [Kind; 9] = [
        Kind::Matrix,
        Kind::Vector,
        Kind::Lds,
        Kind::Copy,
        Kind::Memory,
        Kind::Scalar,
        Kind::Wait,
        Kind::Barrier,
        Kind::Control,
    ];

    pub fn name(self) -> &'static str {
        match self {
            Kind::Matrix => "matrix",
            Kind::Vector => "vector",
            Kind::Scalar => "scalar",
            Kind::Lds => "LDS",
            Kind::Copy => "copy to LDS",
            Kind::Memory => "memory",
            Kind::Wait => "wait",
            Kind::Barrier => "barrier",
            Kind::Control => "control",
        }
    }
}

/// The issue ports of a SIMD: one instruction of each a slot, from different waves. What needs
/// no port is done where instructions are kept.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Port {
    None,
    Vector,
    Scalar,
    Memory,
    Lds,
    Branch,
}

/// One instruction as the model sees it.
#[derive(Clone, Debug)]
pub(super) struct Plan {
    pub kind: Kind,
    pub port: Port,
    pub action: Action,
    /// The registers that it reads and writes, as the scoreboard numbers them.
    pub reads: Vec<u16>,
    pub writes: Vec<u16>,
}

#[derive(Clone, Debug)]
pub(super) enum Action {
    /// Of the vector unit: how long it holds it.
    Vector {
        cycles: u32,
        packed: bool,
    },
    Matrix {
        passes: u32,
        result: Span,
        /// The accumulator operand, where it is registers.
        c: Option<Span>,
    },
    Lds {
        accesses: Vec<Access>,
        bytes: u32,
    },
    Memory {
        bytes: u32,
        class: MemoryClass,
    },
    ScalarLoad,
    Wait(Wait),
    Barrier,
    Priority(u8),
    /// `s_nop` and `s_sleep`: cycles until the next instruction.
    Idle(u32),
    Branch,
    End,
    /// Takes its slot and no more.
    Plain,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum MemoryClass {
    Load,
    Store,
    Copy,
    /// Counted by both counters.
    Flat,
}

/// A run of the scoreboard's registers.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Span {
    pub first: u16,
    pub count: u16,
}

/// One part of an LDS access.
#[derive(Clone, Copy, Debug)]
pub(super) struct Access {
    pub direction: Direction,
    pub width: u32,
    pub offset: u32,
}

/// Registers that the scoreboard has.
pub(super) const REGISTERS: usize = 1024 + 256;

/// The scoreboard's number of a register whose results may be late. Others are ready with the
/// wave's next slot.
fn number(register: Register) -> Option<u16> {
    let (base, most) = match register.file {
        RegisterFile::Vector => (0, 512),
        RegisterFile::Accumulator => (512, 512),
        RegisterFile::Scalar => (1024, 200),
        RegisterFile::Vcc => (1224, 2),
        RegisterFile::Exec => (1226, 2),
        RegisterFile::M0 => (1228, 1),
        RegisterFile::Scc => (1229, 1),
        RegisterFile::Other => return None,
    };
    (register.index < most).then_some(base + register.index)
}

fn span(registers: Registers) -> Option<Span> {
    let first = number(registers.iter().next()?)?;
    Some(Span {
        first,
        count: registers.count,
    })
}

impl Plan {
    pub fn of(instruction: &Instruction, machine: &Machine) -> Plan {
        let (kind, port, action) = classify(instruction, machine);
        let access = instruction.access();
        let numbers =
            |list: Vec<Register>| -> Vec<u16> { list.into_iter().filter_map(number).collect() };
        Plan {
            kind,
            port,
            action,
            reads: numbers(access.reads),
            writes: numbers(access.writes),
        }
    }
}

fn classify(instruction: &Instruction, machine: &Machine) -> (Kind, Port, Action) {
    let op = instruction.op;
    match op.format() {
        Format::Mfma => (Kind::Matrix, Port::Vector, matrix(instruction, machine)),
        Format::Vop1 | Format::Vop2 | Format::Vop3 | Format::Vopc | Format::Vop3p => {
            let cycles = match () {
                () if op.is(Flags::TRANS) => machine.transcendental,
                () if op.is(Flags::QUARTER) => machine.quarter,
                () => machine.vector,
            };
            let packed = op.results().contains(&Ty::f32x2);
            let action = Action::Vector { cycles, packed };
            (Kind::Vector, Port::Vector, action)
        }
        Format::Sop1 | Format::Sop2 | Format::Sopk | Format::Sopc => {
            (Kind::Scalar, Port::Scalar, Action::Plain)
        }
        Format::Smem => {
            let action = match instruction.counter() {
                Some(Counter::Scalar) => Action::ScalarLoad,
                _ => Action::Plain,
            };
            (Kind::Memory, Port::Scalar, action)
        }
        Format::Ds if op == Opcode::ds_nop => (Kind::Control, Port::Lds, Action::Plain),
        Format::Ds => (Kind::Lds, Port::Lds, lds(instruction)),
        Format::Mubuf | Format::Global | Format::Flat | Format::Scratch => memory(instruction),
        Format::Sopp => control(instruction, machine),
    }
}

fn control(instruction: &Instruction, machine: &Machine) -> (Kind, Port, Action) {
    let number = match instruction.operands.first() {
        Some(Operand::Integer(value)) => u32::try_from(*value).unwrap_or(0),
        _ => 0,
    };
    match instruction.op {
        Opcode::s_waitcnt => {
            let wait = instruction.wait().unwrap_or_default();
            (Kind::Wait, Port::None, Action::Wait(wait))
        }
        Opcode::s_barrier => (Kind::Barrier, Port::None, Action::Barrier),
        Opcode::s_setprio => {
            let priority = u8::try_from(number.min(3)).unwrap_or(3);
            (Kind::Control, Port::None, Action::Priority(priority))
        }
        Opcode::s_nop => {
            let cycles = (number.min(15) + 1) * machine.slot;
            (Kind::Control, Port::None, Action::Idle(cycles))
        }
        Opcode::s_sleep => {
            let cycles = number.min(127) * machine.sleep + machine.slot;
            (Kind::Control, Port::None, Action::Idle(cycles))
        }
        Opcode::s_endpgm | Opcode::s_endpgm_saved => (Kind::Control, Port::None, Action::End),
        _ if instruction.target().is_some() => (Kind::Control, Port::Branch, Action::Branch),
        Opcode::s_sendmsg => (Kind::Control, Port::Branch, Action::Plain),
        _ => (Kind::Control, Port::None, Action::Plain),
    }
}

fn matrix(instruction: &Instruction, machine: &Machine) -> Action {
    // Elements of 4 and 6 bits are formats 2 to 4.
    let small = |format: u8| (2..=4).contains(&format);
    let modifiers = &instruction.modifiers;
    let small = small(modifiers.cbsz) && small(modifiers.blgp);
    let passes = instruction.op.mfma_passes(machine.is_gfx950(), small);
    let run = |index: usize| instruction.operands.get(index)?.registers().and_then(span);
    let result = run(0).unwrap_or(Span { first: 0, count: 0 });
    // Sparse products add to their result; the operand behind A and B is an index.
    let c = match instruction.keeps_destination() {
        true => run(0),
        false => run(3),
    };
    // Forms without a row take as long as the dense ones of their shape.
    let usual = if result.count >= 16 { 8 } else { 4 };
    Action::Matrix {
        passes: passes.unwrap_or(usual),
        result,
        c,
    }
}

fn lds(instruction: &Instruction) -> Action {
    let op = instruction.op;
    let modifiers = &instruction.modifiers;
    let results = op.results().iter();
    let data = op.sources().iter().filter(|ty| **ty != Ty::addr);
    let read = !op.results().is_empty();
    let moved: u32 = match read {
        true => results.map(|ty| ty.bytes()).sum(),
        false => data.map(|ty| ty.bytes()).sum(),
    };
    let bytes = moved * 64;
    // Permutations between lanes use the way to LDS and no bank.
    if !instruction.is_lds_access() {
        let accesses = Vec::new();
        return Action::Lds { accesses, bytes };
    }
    let direction = match read {
        _ if op.transposed_bits().is_some() => Direction::ReadTransposed,
        true => Direction::Read,
        false => Direction::Write,
    };
    let accesses = match op.pair_unit() {
        Some(unit) => {
            let width = moved / 2;
            let offsets = [modifiers.offset0, modifiers.offset1];
            let access = |offset: u8| Access {
                direction,
                width,
                offset: u32::from(offset) * unit,
            };
            offsets.map(access).to_vec()
        }
        None => vec![Access {
            direction,
            width: moved,
            offset: u32::try_from(modifiers.offset).unwrap_or(0),
        }],
    };
    Action::Lds { accesses, bytes }
}

fn memory(instruction: &Instruction) -> (Kind, Port, Action) {
    let op = instruction.op;
    if op.is_cache() {
        return (Kind::Memory, Port::Memory, Action::Plain);
    }
    let copy = instruction.is_lds_copy();
    let class = match op.format() {
        _ if copy => MemoryClass::Copy,
        Format::Flat => MemoryClass::Flat,
        _ if instruction.destinations() > 0 => MemoryClass::Load,
        _ => MemoryClass::Store,
    };
    let is_data = |ty: &&Ty| !matches!(ty, Ty::vaddr | Ty::saddr | Ty::imm);
    let width = match op.name() {
        name if copy && name.ends_with("dwordx4") => 16,
        name if copy && name.ends_with("dwordx3") => 12,
        _ if copy => op.results().first().map_or(4, |ty| ty.bytes()),
        _ => match (op.results().first(), op.sources().iter().find(is_data)) {
            (Some(ty), _) | (None, Some(ty)) => ty.bytes(),
            (None, None) => 4,
        },
    };
    let kind = if copy { Kind::Copy } else { Kind::Memory };
    let bytes = width * 64;
    (kind, Port::Memory, Action::Memory { bytes, class })
}
