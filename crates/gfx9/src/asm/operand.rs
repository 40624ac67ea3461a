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

/// One operand.
#[derive(Clone, Debug, PartialEq)]
pub enum Operand {
    /// Registers, perhaps with `-`, `|…|`, `neg(…)`, `abs(…)` or `sext(…)` around them.
    Registers(Registers),
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
        let bare = strip(text);
        if let Some(registers) = registers(bare) {
            return Self::Registers(registers);
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

    pub fn registers(&self) -> Option<Registers> {
        match self {
            Self::Registers(registers) => Some(*registers),
            _ => None,
        }
    }
}

/// The operand inside its sign and magnitude marks.
fn strip(text: &str) -> &str {
    let mut text = text.trim();
    loop {
        let inner = text
            .strip_prefix('-')
            .filter(|rest| rest.starts_with(|c: char| c.is_ascii_alphabetic() || c == '|'))
            .or_else(|| text.strip_prefix('|')?.strip_suffix('|'))
            .or_else(|| wrapped(text, "neg"))
            .or_else(|| wrapped(text, "abs"))
            .or_else(|| wrapped(text, "sext"));
        match inner {
            Some(inner) => text = inner.trim(),
            None => return text,
        }
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
        "flat_scratch" | "flat_scratch_lo" | "flat_scratch_hi" | "xnack_mask"
        | "src_shared_base" | "src_private_base" => {
            return special(RegisterFile::Other, 0, 1);
        }
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

fn integer(text: &str) -> Option<i64> {
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
        Operand::Registers(Registers { file, first, count })
    }

    #[test]
    fn operands_of_every_kind() {
        use RegisterFile::{Accumulator, M0, Scalar, Vcc, Vector};
        for (text, want) in [
            ("v5", run(Vector, 5, 1)),
            ("v[4:7]", run(Vector, 4, 4)),
            ("s[0:1]", run(Scalar, 0, 2)),
            ("a[16:31]", run(Accumulator, 16, 16)),
            ("-v3", run(Vector, 3, 1)),
            ("-|v3|", run(Vector, 3, 1)),
            ("sext(v3)", run(Vector, 3, 1)),
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
