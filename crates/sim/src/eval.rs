//! Evaluation of compiled expressions.
//!
//! One pair of functions serves the executor, whose environment has memory, and the compiler's
//! constant folding, whose environment has nothing.

use tilewright_ir::small_float;

use crate::error::{Eval, Stop};
use crate::math;
use crate::program::{Access, Float, Int, Num};
use crate::value::{self, Trap};

/// Where expressions find variables and memory.
pub(crate) trait Env {
    fn slot(&self, slot: u32) -> u64;
    /// The slot of the current thread.
    fn lane(&self, first: u32) -> u64;
    /// An element as a slot: integers as their representation, floats as f64 bits.
    fn load(&mut self, access: &Access) -> Eval<u64>;
    fn trap(&mut self, trap: Trap) -> Stop;
}

/// The environment of constants.
#[derive(Debug)]
pub(crate) struct Nothing;

impl Env for Nothing {
    fn slot(&self, _: u32) -> u64 {
        0
    }
    fn lane(&self, _: u32) -> u64 {
        0
    }
    fn load(&mut self, _: &Access) -> Eval<u64> {
        Err(Stop)
    }
    fn trap(&mut self, _: Trap) -> Stop {
        Stop
    }
}

/// The value as a slot.
#[inline]
pub(crate) fn num<E: Env>(env: &mut E, e: &Num) -> Eval<u64> {
    match e {
        Num::I(e) => Ok(int(env, e)? as u64),
        Num::F(e) => Ok(float(env, e)?.to_bits()),
    }
}

pub(crate) fn int<E: Env>(env: &mut E, e: &Int) -> Eval<i64> {
    Ok(match e {
        Int::Const(v) => *v,
        Int::Slot(slot) => env.slot(*slot) as i64,
        Int::Lane(first) => env.lane(*first) as i64,
        Int::Load(access) => env.load(access)? as i64,
        Int::Binary(op, scalar, ab) => {
            let (a, b) = (int(env, &ab.0)?, int(env, &ab.1)?);
            match value::int_binary(*op, *scalar, a, b) {
                Ok(v) => v,
                Err(trap) => return Err(env.trap(trap)),
            }
        }
        Int::Compare(op, scalar, ab) => {
            let (a, b) = (int(env, &ab.0)?, int(env, &ab.1)?);
            value::int_compare(*op, *scalar, a, b) as i64
        }
        Int::CompareFloat(op, ab) => {
            let (a, b) = (float(env, &ab.0)?, float(env, &ab.1)?);
            value::float_compare(*op, a, b) as i64
        }
        Int::And(ab) => (int(env, &ab.0)? != 0 && int(env, &ab.1)? != 0) as i64,
        Int::Or(ab) => (int(env, &ab.0)? != 0 || int(env, &ab.1)? != 0) as i64,
        Int::Not(a) => (int(env, a)? == 0) as i64,
        Int::BitNot(scalar, a) => value::wrap(*scalar, !int(env, a)?),
        Int::Choose(parts) => {
            if int(env, &parts.0)? != 0 {
                int(env, &parts.1)?
            } else {
                int(env, &parts.2)?
            }
        }
        Int::Select(parts) => {
            let cond = int(env, &parts.0)?;
            let (a, b) = (int(env, &parts.1)?, int(env, &parts.2)?);
            if cond != 0 { a } else { b }
        }
        Int::FromFloat(scalar, a) => value::float_to_int(*scalar, float(env, a)?),
        Int::Wrap(scalar, a) => value::wrap(*scalar, int(env, a)?),
        Int::BitsOf(scalar, a) => small_float::float_to_bits(*scalar, float(env, a)?) as i64,
        Int::Math(f, scalar, a) => {
            let a = int(env, a)?;
            match value::int_math(*f, *scalar, a) {
                Some(v) => v,
                None => return Err(env.trap(Trap::Undefined)),
            }
        }
        Int::Predicate(f, a) => {
            let a = float(env, a)?;
            match math::predicate(*f, a) {
                Some(v) => v as i64,
                None => return Err(env.trap(Trap::Undefined)),
            }
        }
    })
}

pub(crate) fn float<E: Env>(env: &mut E, e: &Float) -> Eval<f64> {
    Ok(match e {
        Float::Const(v) => *v,
        Float::Slot(slot) => f64::from_bits(env.slot(*slot)),
        Float::Lane(first) => f64::from_bits(env.lane(*first)),
        Float::Load(access) => f64::from_bits(env.load(access)?),
        Float::Binary(op, scalar, ab) => {
            let (a, b) = (float(env, &ab.0)?, float(env, &ab.1)?);
            match value::float_binary(*op, *scalar, a, b) {
                Some(v) => v,
                None => return Err(env.trap(Trap::Undefined)),
            }
        }
        Float::Choose(parts) => {
            if int(env, &parts.0)? != 0 {
                float(env, &parts.1)?
            } else {
                float(env, &parts.2)?
            }
        }
        Float::Select(parts) => {
            let cond = int(env, &parts.0)?;
            let (a, b) = (float(env, &parts.1)?, float(env, &parts.2)?);
            if cond != 0 { a } else { b }
        }
        Float::FromInt(to, from, a) => value::int_to_float(*to, *from, int(env, a)?),
        Float::Round(scalar, a) => value::round(*scalar, float(env, a)?),
        Float::FromBits(scalar, a) => small_float::float_from_bits(*scalar, int(env, a)? as u64),
        Float::Math1(f, scalar, a) => {
            let a = float(env, a)?;
            match math::unary(*f, *scalar, a) {
                Some(v) => value::round(*scalar, v),
                None => return Err(env.trap(Trap::Undefined)),
            }
        }
        Float::Math2(f, scalar, ab) => {
            let (a, b) = (float(env, &ab.0)?, float(env, &ab.1)?);
            match math::binary(*f, *scalar, a, b) {
                Some(v) => value::round(*scalar, v),
                None => return Err(env.trap(Trap::Undefined)),
            }
        }
        Float::Ldexp(scalar, ab) => {
            let (a, n) = (float(env, &ab.0)?, int(env, &ab.1)?);
            value::round(*scalar, math::ldexp(a, n))
        }
        Float::Fma(scalar, abc) => {
            let (a, b, c) = (
                float(env, &abc.0)?,
                float(env, &abc.1)?,
                float(env, &abc.2)?,
            );
            value::round(*scalar, math::fma(*scalar, a, b, c))
        }
    })
}
