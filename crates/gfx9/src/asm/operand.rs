//! Operands: registers, constants, labels.

use std::fmt;

use crate::few::Few;

/// Which registers a name speaks of.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegisterFile {
    /// `v`: one value a lane.
    #[default]
    Vector,
    /// `a`: the accumulation half of the vector registers.
    Accumulator,
    /// `s`: one value a wave.
    Scalar,
    /// `vcc`, as two words.
    Vcc,
    /// `exec`, as two words.
    Exec,
    M0,
    Scc,
    /// Any other named register; nothing waits for it.
    Other,
}

/// The indices of `src_shared_base` and `src_private_base` among the other registers.
pub const SHARED_BASE: u16 = 4;
pub const PRIVATE_BASE: u16 = 6;

/// One 32-bit register.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Register {
    pub file: RegisterFile,
    pub index: u16,
}

/// A run of registers: `v[4:7]`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Registers {
    pub file: RegisterFile,
    pub first: u16,
    pub count: u16,
}

impl Registers {
    pub fn has(self, register: Register) -> bool {
        let end = self.first.saturating_add(self.count);
        self.file == register.file && (self.first..end).contains(&register.index)
    }

    pub fn iter(self) -> impl Iterator<Item = Register> {
        (self.first..self.first.saturating_add(self.count)).map(move |index| Register {
            file: self.file,
            index,
        })
    }
}

impl fmt::Display for Register {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let index = self.index;
        match self.file {
            RegisterFile::Vector => write!(f, "v{index}"),
            RegisterFile::Accumulator => write!(f, "a{index}"),
            RegisterFile::Scalar => write!(f, "s{index}"),
            RegisterFile::Vcc => f.write_str("vcc"),
            RegisterFile::Exec => f.write_str("exec"),
            RegisterFile::M0 => f.write_str("m0"),
            RegisterFile::Scc => f.write_str("scc"),
            RegisterFile::Other => f.write_str("a special register"),
        }
    }
}

/// What stands around a register: `-`, `|…|`, `neg(…)`, `abs(…)`, `sext(…)`.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, Hash)]
pub struct Marks {
    pub neg: bool,
    pub abs: bool,
    pub sext: bool,
}

/// One operand.
#[derive(Clone, Copy, Debug, PartialEq)]
pub enum Operand {
    Registers(Registers, Marks),
    Integer(i64),
    Float(f64),
    /// `off`: no register holds a part of the address.
    Off,
    /// A label, a symbol with an offset, or `hwreg(…)`: where it starts and ends in the
    /// instruction's text, see [`super::Instruction::symbol`].
    Symbol(u32, u32),
    /// `vmcnt(8)`.
    Count {
        counter: Waited,
        value: i64,
    },
}

/// The counters that a wait names.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Waited {
    Vmcnt,
    Lgkmcnt,
    Expcnt,
}

/// The operands of an instruction, as they stand in the text. None has more.
pub type Operands = Few<Operand, 6>;

impl Default for Operand {
    fn default() -> Self {
        Self::Integer(0)
    }
}

impl Operand {
    /// Reads one operand, which starts at a place of the instruction's text. Whatever is neither a
    /// register nor a number is a symbol.
    pub(super) fn read(text: &str, at: usize) -> Self {
        if text.starts_with(|c: char| c.is_ascii_digit())
            && let Some(value) = integer(text)
        {
            return Self::Integer(value);
        }
        let (bare, marks) = strip(text);
        if let Some(registers) = registers(bare) {
            return Self::Registers(registers, marks);
        }
        if let Some(value) = integer(bare) {
            return Self::Integer(if text.starts_with('-') && !bare.starts_with('-') {
                value.saturating_neg()
            } else {
                value
            });
        }
        if let Some((name, rest)) = bare.split_once('(')
            && let Some(inner) = rest.strip_suffix(')')
            && let Some(value) = integer(inner.trim())
        {
            let counter = match name {
                "lit" => return Self::Integer(value),
                "vmcnt" => Some(Waited::Vmcnt),
                "lgkmcnt" => Some(Waited::Lgkmcnt),
                "expcnt" => Some(Waited::Expcnt),
                _ => None,
            };
            if let Some(counter) = counter {
                return Self::Count { counter, value };
            }
        }
        let number = |c: char| c.is_ascii_digit() || c == '-' || c == '.';
        if text.starts_with(number)
            && let Ok(value) = text.parse::<f64>()
        {
            return Self::Float(value);
        }
        match text {
            "off" => Self::Off,
            _ => Self::Symbol(at as u32, (at + text.len()) as u32),
        }
    }

    /// A constant that does not fit the instruction's own word.
    pub fn is_literal(&self) -> bool {
        match self {
            Self::Integer(value) => !(-16..=64).contains(value),
            Self::Float(value) => ![0.0, 0.5, 1.0, 2.0, 4.0].contains(&value.abs()),
            _ => false,
        }
    }

    pub fn registers(&self) -> Option<Registers> {
        match self {
            Self::Registers(registers, _) => Some(*registers),
            _ => None,
        }
    }
}

/// The operand inside its sign and magnitude marks, and these.
fn strip(text: &str) -> (&str, Marks) {
    let mut text = text.trim_ascii();
    let mut marks = Marks::default();
    loop {
        let register =
            |rest: &&str| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '|');
        let inner = if let Some(inner) = text.strip_prefix('-').filter(register) {
            marks.neg = true;
            inner
        } else if let Some(inner) = wrapped(text, "neg") {
            marks.neg = true;
            inner
        } else if let Some(inner) = text
            .strip_prefix('|')
            .and_then(|rest| rest.strip_suffix('|'))
        {
            marks.abs = true;
            inner
        } else if let Some(inner) = wrapped(text, "abs") {
            marks.abs = true;
            inner
        } else if let Some(inner) = wrapped(text, "sext") {
            marks.sext = true;
            inner
        } else {
            return (text, marks);
        };
        text = inner.trim_ascii();
    }
}

fn wrapped<'a>(text: &'a str, name: &str) -> Option<&'a str> {
    text.strip_prefix(name)?
        .strip_prefix('(')?
        .strip_suffix(')')
}

fn registers(text: &str) -> Option<Registers> {
    let special = |file, first, count| Some(Registers { file, first, count });
    match text {
        "vcc" => special(RegisterFile::Vcc, 0, 2),
        "vcc_lo" => special(RegisterFile::Vcc, 0, 1),
        "vcc_hi" => special(RegisterFile::Vcc, 1, 1),
        "exec" => special(RegisterFile::Exec, 0, 2),
        "exec_lo" => special(RegisterFile::Exec, 0, 1),
        "exec_hi" => special(RegisterFile::Exec, 1, 1),
        "m0" => special(RegisterFile::M0, 0, 1),
        "scc" | "src_scc" => special(RegisterFile::Scc, 0, 1),
        "flat_scratch" => special(RegisterFile::Other, 0, 2),
        "flat_scratch_lo" => special(RegisterFile::Other, 0, 1),
        "flat_scratch_hi" => special(RegisterFile::Other, 1, 1),
        "xnack_mask" => special(RegisterFile::Other, 2, 2),
        "src_shared_base" => special(RegisterFile::Other, SHARED_BASE, 2),
        "src_private_base" => special(RegisterFile::Other, PRIVATE_BASE, 2),
        _ => {
            // There may be spaces in brackets.
            let text: String = text.split_ascii_whitespace().collect();
            let (registers, length) = numbered(text.as_bytes())?;
            (length == text.len()).then_some(registers)
        }
    }
}

/// The run of registers that a text starts with, `v5` or `v[4:7]`, and how long it is there.
pub(super) fn numbered(text: &[u8]) -> Option<(Registers, usize)> {
    let file = match text.first()? {
        b'v' => RegisterFile::Vector,
        b'a' => RegisterFile::Accumulator,
        b's' => RegisterFile::Scalar,
        _ => return None,
    };
    let in_brackets = text.get(1) == Some(&b'[');
    let (first, mut end) = number(text, 1 + usize::from(in_brackets))?;
    let mut last = first;
    if in_brackets {
        if text.get(end) == Some(&b':') {
            (last, end) = number(text, end + 1)?;
        }
        text.get(end).filter(|byte| **byte == b']')?;
        end += 1;
    }
    let count = last.checked_sub(first)?.checked_add(1)?;
    Some((Registers { file, first, count }, end))
}

/// The number in a text from one place on, and where it ends.
fn number(text: &[u8], from: usize) -> Option<(u16, usize)> {
    let mut number = 0u16;
    let mut at = from;
    while let Some(digit @ b'0'..=b'9') = text.get(at) {
        number = number
            .checked_mul(10)?
            .checked_add(u16::from(digit - b'0'))?;
        at += 1;
    }
    (at > from).then_some((number, at))
}

pub(super) fn integer(text: &str) -> Option<i64> {
    let (sign, digits) = match text.strip_prefix('-') {
        Some(rest) => (-1, rest),
        None => (1, text),
    };
    let value = match digits.strip_prefix("0x") {
        Some(hex) => i64::try_from(u64::from_str_radix(hex, 16).ok()?).ok()?,
        None if digits.bytes().all(|b| b.is_ascii_digit()) => digits.parse().ok()?,
        None => return None,
    };
    Some(sign * value)
}

#[cfg(test)]
mod tests {
    use super::*;

    fn run(file: RegisterFile, first: u16, count: u16) -> Operand {
        Operand::Registers(Registers { file, first, count }, Marks::default())
    }

    fn read(text: &str) -> Operand {
        Operand::read(text, 0)
    }

    fn symbol(text: &str) -> Operand {
        Operand::Symbol(0, text.len() as u32)
    }

    fn marked(neg: bool, abs: bool, sext: bool) -> Operand {
        let three = Registers {
            file: RegisterFile::Vector,
            first: 3,
            count: 1,
        };
        Operand::Registers(three, Marks { neg, abs, sext })
    }

    #[test]
    fn operands_of_every_kind() {
        use RegisterFile::{Accumulator, M0, Scalar, Vcc, Vector};
        for (text, want) in [
            ("v5", run(Vector, 5, 1)),
            ("v[4:7]", run(Vector, 4, 4)),
            ("v[ 4 : 7 ]", run(Vector, 4, 4)),
            ("s[0:1]", run(Scalar, 0, 2)),
            ("a[16:31]", run(Accumulator, 16, 16)),
            ("-v3", marked(true, false, false)),
            ("-|v3|", marked(true, true, false)),
            ("neg(abs(v3))", marked(true, true, false)),
            ("sext(v3)", marked(false, false, true)),
            ("vcc", run(Vcc, 0, 2)),
            ("m0", run(M0, 0, 1)),
            ("0x27000", Operand::Integer(0x27000)),
            ("-16", Operand::Integer(-16)),
            ("1.0", Operand::Float(1.0)),
            ("-0.5", Operand::Float(-0.5)),
            (".LBB0_2", symbol(".LBB0_2")),
            ("off", Operand::Off),
            ("hwreg(1)", symbol("hwreg(1)")),
            ("lit(0x3f000000)", Operand::Integer(0x3f00_0000)),
            (
                "vmcnt(8)",
                Operand::Count {
                    counter: Waited::Vmcnt,
                    value: 8,
                },
            ),
        ] {
            assert_eq!(read(text), want, "{text}");
        }
    }

    #[test]
    fn half_a_range_is_no_register() {
        for text in ["v[7:4]", "v", "v[]", "v[1", "v1]", "v[1:]", "v70000"] {
            assert_eq!(read(text), symbol(text));
        }
    }
}
