//! Comparisons: a bit a lane, to a pair of scalar registers, and to EXEC.

use std::sync::OnceLock;

use crate::asm::Instruction;
use crate::isa::{Flags, Opcode};

use super::super::fault::Fault;
use super::super::float::f16_value;
use super::super::wave::Wave;
use super::map::which;

/// What is compared.
#[derive(Clone, Copy)]
enum Kind {
    F16,
    F32,
    F64,
    I16,
    U16,
    I32,
    U32,
    I64,
    U64,
}

/// How: as a set of what may hold between two values.
#[derive(Clone, Copy)]
enum Condition {
    Order {
        less: bool,
        equal: bool,
        greater: bool,
        unordered: bool,
    },
    Class,
}

impl Wave {
    pub(super) fn compare(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let (kind, condition) = plan(instruction.op).ok_or(Fault::Unsupported)?;
        let mask = match condition {
            Condition::Class => self.classified(instruction, kind)?,
            Condition::Order {
                less,
                equal,
                greater,
                unordered,
            } => {
                let [l, e, g] = self.ordered(instruction, kind)?;
                let pick = |wanted: bool, mask: u64| if wanted { mask } else { 0 };
                pick(less, l) | pick(equal, e) | pick(greater, g) | pick(unordered, !(l | e | g))
            }
        };
        self.set_mask(instruction.destination(0)?, mask)?;
        if instruction.op.is(Flags::EXEC_OUT) {
            self.exec &= mask;
        }
        Ok(())
    }

    /// The lanes whose first value is less than, equal to and greater than the second.
    fn ordered(&self, instruction: &Instruction, kind: Kind) -> Result<[u64; 3], Fault> {
        Ok(match kind {
            Kind::F64 | Kind::I64 | Kind::U64 => {
                let a = self.wide_source(instruction, 0)?;
                let b = self.wide_source(instruction, 1)?;
                match kind {
                    Kind::F64 => masks(|lane| (f64::from_bits(a[lane]), f64::from_bits(b[lane]))),
                    Kind::I64 => masks(|lane| (a[lane] as i64, b[lane] as i64)),
                    _ => masks(|lane| (a[lane], b[lane])),
                }
            }
            _ => {
                let (a, b) = (self.source(instruction, 0)?, self.source(instruction, 1)?);
                match kind {
                    Kind::F16 => {
                        masks(|lane| (f16_value(a[lane] as u16), f16_value(b[lane] as u16)))
                    }
                    Kind::F32 => masks(|lane| (f32::from_bits(a[lane]), f32::from_bits(b[lane]))),
                    Kind::I16 => masks(|lane| (a[lane] as i16, b[lane] as i16)),
                    Kind::U16 => masks(|lane| (a[lane] as u16, b[lane] as u16)),
                    Kind::I32 => masks(|lane| (a[lane] as i32, b[lane] as i32)),
                    _ => masks(|lane| (a[lane], b[lane])),
                }
            }
        })
    }

    /// The lanes whose value is of one of the classes that the second source names.
    fn classified(&self, instruction: &Instruction, kind: Kind) -> Result<u64, Fault> {
        let classes = self.source(instruction, 1)?;
        let class = |lane: usize, class: u32| classes[lane] >> class & 1 == 1;
        Ok(match kind {
            Kind::F64 => {
                let values = self.wide_source(instruction, 0)?;
                which(|lane| class(lane, class_of(values[lane], 11, 52)))
            }
            Kind::F32 => {
                let values = self.source(instruction, 0)?;
                which(|lane| class(lane, class_of(u64::from(values[lane]), 8, 23)))
            }
            _ => {
                let values = self.source(instruction, 0)?;
                which(|lane| class(lane, class_of(u64::from(values[lane] & 0xffff), 5, 10)))
            }
        })
    }
}

fn masks<T: PartialOrd>(of: impl Fn(usize) -> (T, T)) -> [u64; 3] {
    let pairs = |f: fn(&T, &T) -> bool| {
        which(|lane| {
            let (a, b) = of(lane);
            f(&a, &b)
        })
    };
    [pairs(T::lt), pairs(T::eq), pairs(T::gt)]
}

/// Signaling NaN, quiet NaN, -∞, -normal, -subnormal, -0, +0, +subnormal, +normal, +∞, from 0.
fn class_of(bits: u64, exponents: u32, fractions: u32) -> u32 {
    let negative = bits >> (exponents + fractions) & 1 == 1;
    let fraction = bits & ((1 << fractions) - 1);
    let exponent = bits >> fractions & ((1 << exponents) - 1);
    let largest = (1 << exponents) - 1;
    match (exponent, fraction) {
        (e, f) if e == largest && f != 0 => (f >> (fractions - 1)) as u32,
        (e, _) if e == largest => [9, 2][usize::from(negative)],
        (0, 0) => [6, 5][usize::from(negative)],
        (0, _) => [7, 4][usize::from(negative)],
        _ => [8, 3][usize::from(negative)],
    }
}

/// What a comparison's name says, read once for all of them.
fn plan(op: Opcode) -> Option<(Kind, Condition)> {
    static PLANS: OnceLock<Vec<Option<(Kind, Condition)>>> = OnceLock::new();
    let plans = PLANS.get_or_init(|| Opcode::ALL.iter().map(|op| read(op.name())).collect());
    plans.get(op as usize).copied().flatten()
}

fn read(name: &str) -> Option<(Kind, Condition)> {
    let rest = name
        .strip_prefix("v_cmp_")
        .or(name.strip_prefix("v_cmpx_"))?;
    let (condition, kind) = rest.split_once('_')?;
    let kind = match kind {
        "f16" => Kind::F16,
        "f32" => Kind::F32,
        "f64" => Kind::F64,
        "i16" => Kind::I16,
        "u16" => Kind::U16,
        "i32" => Kind::I32,
        "u32" => Kind::U32,
        "i64" => Kind::I64,
        "u64" => Kind::U64,
        _ => return None,
    };
    // Less, equal, greater, unordered.
    let [less, equal, greater, unordered] = match condition {
        "class" => return Some((kind, Condition::Class)),
        "f" => [false, false, false, false],
        "lt" => [true, false, false, false],
        "eq" => [false, true, false, false],
        "le" => [true, true, false, false],
        "gt" => [false, false, true, false],
        "lg" | "ne" => [true, false, true, false],
        "ge" => [false, true, true, false],
        "o" => [true, true, true, false],
        "u" => [false, false, false, true],
        "nge" => [true, false, false, true],
        "nlg" => [false, true, false, true],
        "ngt" => [true, true, false, true],
        "nle" => [false, false, true, true],
        "neq" => [true, false, true, true],
        "nlt" => [false, true, true, true],
        "tru" | "t" => [true, true, true, true],
        _ => return None,
    };
    Some((
        kind,
        Condition::Order {
            less,
            equal,
            greater,
            unordered,
        },
    ))
}
