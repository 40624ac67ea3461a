//! Operands: registers, constants, labels.

use std::fmt;

/// Which registers a name speaks of.
#[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub enum RegisterFile {
    /// `v`: one value a lane.
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
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
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
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    Registers(Registers, Marks),
    Integer(i64),
    Float(f64),
    /// A label, a symbol with an offset, or a word such as `off`.
    Symbol(String),
    /// `vmcnt(8)`.
    Count {
        name: String,
        value: i64,
    },
}

impl Operand {
    /// Reads one operand. Whatever is neither a register nor a number is a symbol.
    pub(super) fn read(text: &str) -> Self {
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
            return match name {
                "lit" => Self::Integer(value),
                _ => Self::Count {
                    name: name.to_owned(),
                    value,
                },
            };
        }
        let number = |c: char| c.is_ascii_digit() || c == '-' || c == '.';
        if text.starts_with(number)
            && let Ok(value) = text.parse::<f64>()
        {
            return Self::Float(value);
        }
        Self::Symbol(text.to_owned())
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
    let mut text = text.trim();
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
        text = inner.trim();
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
        "vcc" => return special(RegisterFile::Vcc, 0, 2),
        "vcc_lo" => return special(RegisterFile::Vcc, 0, 1),
        "vcc_hi" => return special(RegisterFile::Vcc, 1, 1),
        "exec" => return special(RegisterFile::Exec, 0, 2),
        "exec_lo" => return special(RegisterFile::Exec, 0, 1),
        "exec_hi" => return special(RegisterFile::Exec, 1, 1),
        "m0" => return special(RegisterFile::M0, 0, 1),
        "scc" | "src_scc" => return special(RegisterFile::Scc, 0, 1),
        "flat_scratch" => return special(RegisterFile::Other, 0, 2),
        "flat_scratch_lo" => return special(RegisterFile::Other, 0, 1),
        "flat_scratch_hi" => return special(RegisterFile::Other, 1, 1),
        "xnack_mask" => return special(RegisterFile::Other, 2, 2),
        "src_shared_base" => return special(RegisterFile::Other, SHARED_BASE, 2),
        "src_private_base" => return special(RegisterFile::Other, PRIVATE_BASE, 2),
        _ => {}
    }
    let mut chars = text.chars();
    let file = match chars.next()? {
        'v' => RegisterFile::Vector,
        'a' => RegisterFile::Accumulator,
        's' => RegisterFile::Scalar,
        _ => return None,
    };
    let rest = chars.as_str();
    if let Ok(first) = rest.parse::<u16>() {
        return special(file, first, 1);
    }
    let range = rest.strip_prefix('[')?.strip_suffix(']')?;
    let (first, last) = range.split_once(':').unwrap_or((range, range));
    let (first, last): (u16, u16) = (first.trim().parse().ok()?, last.trim().parse().ok()?);
    let count = last.checked_sub(first)?.checked_add(1)?;
    special(file, first, count)
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
            (".LBB0_2", Operand::Symbol(".LBB0_2".into())),
            ("off", Operand::Symbol("off".into())),
            ("lit(0x3f000000)", Operand::Integer(0x3f00_0000)),
            (
                "vmcnt(8)",
                Operand::Count {
                    name: "vmcnt".into(),
                    value: 8,
                },
            ),
        ] {
            assert_eq!(Operand::read(text), want, "{text}");
        }
    }

    #[test]
    fn a_backward_range_is_no_register() {
        assert_eq!(Operand::read("v[7:4]"), Operand::Symbol("v[7:4]".into()));
    }
}
