//! Arithmetic on the lanes of a warp.
//!
//! Every operation is the reference evaluator's scalar operation, applied lane by lane. The
//! operations of index arithmetic are spelled out with a constant operator and type, so that
//! the compiler turns each into a tight loop.

use tilewright_ir::small_float;
use tilewright_ir::{BinOp, Scalar};

use super::program::{Fn1, Fn2, Fn3, Op, Slot};
use crate::math;
use crate::value::{self, Trap};

/// The registers of a warp.
#[derive(Clone, Debug, Default)]
pub(super) struct Registers {
    pub ones: Vec<u64>,
    fixed: Vec<Box<[u64]>>,
    lanes: Vec<Box<[u64]>>,
}

/// A value as operations see it.
#[derive(Clone, Copy, Debug)]
pub(super) enum Value<'r> {
    One(u64),
    Lanes(&'r [u64]),
}

impl Value<'_> {
    #[inline]
    pub fn lane(self, lane: usize) -> u64 {
        match self {
            Value::One(v) => v,
            Value::Lanes(v) => v[lane],
        }
    }
}

/// A lane at which an operation has no result.
#[derive(Clone, Copy, Debug)]
pub(super) struct LaneTrap {
    pub lane: u32,
    pub trap: Trap,
}

impl Registers {
    pub fn new(ones: &[u64], fixed: u32, lanes: u32, width: usize) -> Registers {
        let file = |n: u32| (0..n).map(|_| vec![0; width].into_boxed_slice()).collect();
        Registers {
            ones: ones.to_vec(),
            fixed: file(fixed),
            lanes: file(lanes),
        }
    }

    #[inline]
    pub fn get(&self, slot: Slot) -> Value<'_> {
        match slot {
            Slot::One(i) => Value::One(self.ones[i as usize]),
            Slot::Fixed(i) => Value::Lanes(&self.fixed[i as usize]),
            Slot::Lanes(i) => Value::Lanes(&self.lanes[i as usize]),
        }
    }

    #[inline]
    pub fn lane(&self, slot: Slot, lane: usize) -> u64 {
        self.get(slot).lane(lane)
    }

    /// Sets one lane; all of them where the slot is shared.
    #[inline]
    pub fn set_lane(&mut self, slot: Slot, lane: usize, value: u64) {
        match slot {
            Slot::One(i) => self.ones[i as usize] = value,
            Slot::Fixed(i) => self.fixed[i as usize][lane] = value,
            Slot::Lanes(i) => self.lanes[i as usize][lane] = value,
        }
    }

    /// The words of a register with a word a lane; empty for a shared one.
    pub fn lanes_mut(&mut self, slot: Slot) -> &mut [u64] {
        match slot {
            Slot::One(_) => &mut [],
            Slot::Fixed(i) => &mut self.fixed[i as usize],
            Slot::Lanes(i) => &mut self.lanes[i as usize],
        }
    }

    /// The active lanes where the value is not zero.
    pub fn truth(&self, slot: Slot, mask: u64) -> u64 {
        match self.get(slot) {
            Value::One(0) => 0,
            Value::One(_) => mask,
            Value::Lanes(v) => {
                let bits = v.iter().enumerate();
                mask & bits.fold(0, |m, (l, &w)| m | ((w != 0) as u64) << l)
            }
        }
    }

    /// Runs an arithmetic instruction for the active lanes; what it leaves in the others is of
    /// no account. Anything else is left alone.
    #[inline]
    pub fn run(&mut self, op: &Op, mask: u64) -> Result<(), LaneTrap> {
        match *op {
            Op::Alu1 { f, dst, a } => {
                let mut out = self.take(dst);
                let result = run1(f, &mut out, self.get(a), mask);
                self.put(dst, out);
                result
            }
            Op::Alu2 { f, dst, a, b } => {
                let mut out = self.take(dst);
                let result = run2(f, &mut out, self.get(a), self.get(b), mask);
                self.put(dst, out);
                result
            }
            Op::Alu3 { f, dst, a, b, c } => {
                let mut out = self.take(dst);
                run3(f, &mut out, self.get(a), self.get(b), self.get(c));
                self.put(dst, out);
                Ok(())
            }
            _ => Ok(()),
        }
    }

    /// Takes a destination out of the file, so that operands can be borrowed meanwhile. An
    /// instruction never reads the register that it writes.
    #[inline]
    fn take(&mut self, slot: Slot) -> Out {
        match slot {
            Slot::One(_) => Out::One(0),
            Slot::Fixed(i) => Out::Lanes(std::mem::take(&mut self.fixed[i as usize])),
            Slot::Lanes(i) => Out::Lanes(std::mem::take(&mut self.lanes[i as usize])),
        }
    }

    #[inline]
    fn put(&mut self, slot: Slot, out: Out) {
        match (slot, out) {
            (Slot::One(i), Out::One(v)) => self.ones[i as usize] = v,
            (Slot::Fixed(i), Out::Lanes(v)) => self.fixed[i as usize] = v,
            (Slot::Lanes(i), Out::Lanes(v)) => self.lanes[i as usize] = v,
            // `take` gave what the slot is.
            (_, _) => {}
        }
    }
}

enum Out {
    One(u64),
    Lanes(Box<[u64]>),
}

/// A function of one value, of one lane.
pub(super) fn apply1(f: Fn1, a: u64) -> Result<u64, Trap> {
    let float = |v: f64| Ok(v.to_bits());
    match f {
        Fn1::Copy => Ok(a),
        Fn1::Not => Ok((a == 0) as u64),
        Fn1::BitNot(s) => Ok(value::wrap(s, !(a as i64)) as u64),
        Fn1::FromFloat(s) => Ok(value::float_to_int(s, f64::from_bits(a)) as u64),
        Fn1::Wrap(s) => Ok(value::wrap(s, a as i64) as u64),
        Fn1::BitsOf(s) => Ok(small_float::float_to_bits(s, f64::from_bits(a))),
        Fn1::IntMath(f, s) => match value::int_math(f, s, a as i64) {
            Some(v) => Ok(v as u64),
            None => Err(Trap::Undefined),
        },
        Fn1::Predicate(f) => match math::predicate(f, f64::from_bits(a)) {
            Some(v) => Ok(v as u64),
            None => Err(Trap::Undefined),
        },
        Fn1::FromInt(to, from) => float(value::int_to_float(to, from, a as i64)),
        Fn1::Round(s) => float(value::round(s, f64::from_bits(a))),
        Fn1::FromBits(s) => float(small_float::float_from_bits(s, a)),
        Fn1::Math(f, s) => match math::unary(f, s, f64::from_bits(a)) {
            Some(v) => float(value::round(s, v)),
            None => Err(Trap::Undefined),
        },
    }
}

/// A function of two values, of one lane.
#[inline]
pub(super) fn apply2(f: Fn2, a: u64, b: u64) -> Result<u64, Trap> {
    let (x, y) = (f64::from_bits(a), f64::from_bits(b));
    match f {
        Fn2::Int(op, s) => value::int_binary(op, s, a as i64, b as i64).map(|v| v as u64),
        Fn2::Compare(op, s) => Ok(value::int_compare(op, s, a as i64, b as i64) as u64),
        Fn2::Float(op, s) => match value::float_binary(op, s, x, y) {
            Some(v) => Ok(v.to_bits()),
            None => Err(Trap::Undefined),
        },
        Fn2::CompareFloat(op) => Ok(value::float_compare(op, x, y) as u64),
        Fn2::Math(f, s) => match math::binary(f, s, x, y) {
            Some(v) => Ok(value::round(s, v).to_bits()),
            None => Err(Trap::Undefined),
        },
        Fn2::Ldexp(s) => Ok(value::round(s, math::ldexp(x, b as i64)).to_bits()),
    }
}

/// A function of three values, of one lane.
#[inline]
pub(super) fn apply3(f: Fn3, a: u64, b: u64, c: u64) -> u64 {
    match f {
        Fn3::Select => {
            if a != 0 {
                b
            } else {
                c
            }
        }
        Fn3::Fma(s) => {
            let [a, b, c] = [a, b, c].map(f64::from_bits);
            value::round(s, math::fma(s, a, b, c)).to_bits()
        }
    }
}

/// Whether a function may have no result for some operands: such code cannot be moved to
/// where it would not have run.
pub(super) fn may_trap(f: Fn2) -> bool {
    use BinOp::{FloorDiv, FloorMod, Shl, Shr, TruncDiv, TruncMod};
    matches!(
        f,
        Fn2::Int(FloorDiv | FloorMod | TruncDiv | TruncMod | Shl | Shr, _)
    )
}

fn first_lane(mask: u64) -> u32 {
    mask.trailing_zeros().min(63)
}

fn run1(f: Fn1, out: &mut Out, a: Value<'_>, mask: u64) -> Result<(), LaneTrap> {
    let at = |lane: u32| move |trap| LaneTrap { lane, trap };
    match (out, a) {
        (Out::One(out), a) => *out = apply1(f, a.lane(0)).map_err(at(first_lane(mask)))?,
        (Out::Lanes(out), Value::One(a)) => {
            out.fill(apply1(f, a).map_err(at(first_lane(mask)))?);
        }
        (Out::Lanes(out), Value::Lanes(a)) => match f {
            Fn1::Copy => out.copy_from_slice(a),
            Fn1::FromInt(Scalar::F32, Scalar::I32) => {
                each1(out, a, |a| {
                    value::int_to_float(Scalar::F32, Scalar::I32, a as i64).to_bits()
                });
            }
            Fn1::Round(Scalar::F32) => each1(out, a, |a| {
                value::round(Scalar::F32, f64::from_bits(a)).to_bits()
            }),
            Fn1::Wrap(Scalar::I32) => each1(out, a, |a| value::wrap(Scalar::I32, a as i64) as u64),
            Fn1::Wrap(Scalar::I64) => each1(out, a, |a| value::wrap(Scalar::I64, a as i64) as u64),
            _ => {
                for (lane, (out, &a)) in out.iter_mut().zip(a).enumerate() {
                    match apply1(f, a) {
                        Ok(v) => *out = v,
                        Err(trap) if mask >> lane & 1 != 0 => return Err(at(lane as u32)(trap)),
                        Err(_) => {}
                    }
                }
            }
        },
    }
    Ok(())
}

#[inline(always)]
fn each1(out: &mut [u64], a: &[u64], f: impl Fn(u64) -> u64) {
    for (out, &a) in out.iter_mut().zip(a) {
        *out = f(a);
    }
}

/// One loop for an operation that always has a result.
#[inline(always)]
fn each2(out: &mut [u64], a: Value<'_>, b: Value<'_>, f: impl Fn(u64, u64) -> u64) {
    match (a, b) {
        (Value::Lanes(a), Value::Lanes(b)) => {
            for ((out, &a), &b) in out.iter_mut().zip(a).zip(b) {
                *out = f(a, b);
            }
        }
        (Value::Lanes(a), Value::One(b)) => {
            for (out, &a) in out.iter_mut().zip(a) {
                *out = f(a, b);
            }
        }
        (Value::One(a), Value::Lanes(b)) => {
            for (out, &b) in out.iter_mut().zip(b) {
                *out = f(a, b);
            }
        }
        (Value::One(a), Value::One(b)) => out.fill(f(a, b)),
    }
}

fn run2(f: Fn2, out: &mut Out, a: Value<'_>, b: Value<'_>, mask: u64) -> Result<(), LaneTrap> {
    let lanes = match out {
        Out::One(out) => {
            let lane = first_lane(mask);
            *out = apply2(f, a.lane(0), b.lane(0)).map_err(|trap| LaneTrap { lane, trap })?;
            return Ok(());
        }
        Out::Lanes(out) => out,
    };
    /// Loops whose operator and type are constants.
    macro_rules! fast {
        ($($op:ident $kind:ident $scalar:ident),* $(,)?) => {
            match f {
                $(fast!(@pattern $op $kind $scalar) => {
                    each2(lanes, a, b, |a, b| fast!(@body $op $kind $scalar, a, b));
                    return Ok(());
                })*
                _ => {}
            }
        };
        (@pattern $op:ident int $scalar:ident) => { Fn2::Int(BinOp::$op, Scalar::$scalar) };
        (@pattern $op:ident cmp $scalar:ident) => { Fn2::Compare(BinOp::$op, Scalar::$scalar) };
        (@pattern $op:ident flt $scalar:ident) => { Fn2::Float(BinOp::$op, Scalar::$scalar) };
        (@body $op:ident int $scalar:ident, $a:ident, $b:ident) => {
            value::int_binary(BinOp::$op, Scalar::$scalar, $a as i64, $b as i64).unwrap_or(0) as u64
        };
        (@body $op:ident cmp $scalar:ident, $a:ident, $b:ident) => {
            value::int_compare(BinOp::$op, Scalar::$scalar, $a as i64, $b as i64) as u64
        };
        (@body $op:ident flt $scalar:ident, $a:ident, $b:ident) => {
            value::float_binary(
                BinOp::$op, Scalar::$scalar, f64::from_bits($a), f64::from_bits($b),
            ).unwrap_or(0.0).to_bits()
        };
    }
    fast!(
        Add int I32, Sub int I32, Mul int I32, BitAnd int I32, BitOr int I32, BitXor int I32,
        Min int I32, Max int I32, Add int I64, Sub int I64, Mul int I64,
        Lt cmp I32, Le cmp I32, Gt cmp I32, Ge cmp I32, Eq cmp I32, Ne cmp I32,
        Add flt F32, Sub flt F32, Mul flt F32, Div flt F32, Min flt F32, Max flt F32,
        BitAnd int Bool, BitOr int Bool,
    );
    // A division or a shift by a constant that is in range has a result in every lane.
    if let (Fn2::Int(op, Scalar::I32), Value::One(by)) = (f, b)
        && may_trap(f)
        && value::int_binary(op, Scalar::I32, 1, by as i64).is_ok()
    {
        macro_rules! by_constant {
            ($($op:ident),*) => {
                match op {
                    $(BinOp::$op => {
                        each2(lanes, a, b, |a, b| {
                            let v = value::int_binary(BinOp::$op, Scalar::I32, a as i64, b as i64);
                            v.unwrap_or(0) as u64
                        });
                        return Ok(());
                    })*
                    _ => {}
                }
            };
        }
        by_constant!(FloorDiv, FloorMod, TruncDiv, TruncMod, Shl, Shr);
    }
    for (lane, out) in lanes.iter_mut().enumerate() {
        match apply2(f, a.lane(lane), b.lane(lane)) {
            Ok(v) => *out = v,
            Err(trap) if mask >> lane & 1 != 0 => {
                let lane = lane as u32;
                return Err(LaneTrap { lane, trap });
            }
            Err(_) => {}
        }
    }
    Ok(())
}

fn run3(f: Fn3, out: &mut Out, a: Value<'_>, b: Value<'_>, c: Value<'_>) {
    match out {
        Out::One(out) => *out = apply3(f, a.lane(0), b.lane(0), c.lane(0)),
        Out::Lanes(out) => {
            for (lane, out) in out.iter_mut().enumerate() {
                *out = apply3(f, a.lane(lane), b.lane(lane), c.lane(lane));
            }
        }
    }
}
