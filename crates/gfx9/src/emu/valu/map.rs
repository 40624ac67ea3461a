//! Loops over the lanes. What is done to one lane is a closure that the loop takes in.

use super::super::float::{f16_from_f32, f16_value};
use super::super::wave::{LANES, Lanes, Wide};

/// The three sources of an operation.
pub(super) type Sources = [Lanes; 3];

pub(super) fn one(s: &Sources, f: impl Fn(u32) -> u32) -> Lanes {
    let mut out = [0; LANES];
    for lane in 0..LANES {
        out[lane] = f(s[0][lane]);
    }
    out
}

pub(super) fn two(s: &Sources, f: impl Fn(u32, u32) -> u32) -> Lanes {
    let mut out = [0; LANES];
    for lane in 0..LANES {
        out[lane] = f(s[0][lane], s[1][lane]);
    }
    out
}

pub(super) fn three(s: &Sources, f: impl Fn(u32, u32, u32) -> u32) -> Lanes {
    let mut out = [0; LANES];
    for lane in 0..LANES {
        out[lane] = f(s[0][lane], s[1][lane], s[2][lane]);
    }
    out
}

pub(super) fn float_one(s: &Sources, f: impl Fn(f32) -> f32) -> Lanes {
    one(s, |a| f(f32::from_bits(a)).to_bits())
}

pub(super) fn float_two(s: &Sources, f: impl Fn(f32, f32) -> f32) -> Lanes {
    two(s, |a, b| f(f32::from_bits(a), f32::from_bits(b)).to_bits())
}

pub(super) fn float_three(s: &Sources, f: impl Fn(f32, f32, f32) -> f32) -> Lanes {
    three(s, |a, b, c| {
        f(f32::from_bits(a), f32::from_bits(b), f32::from_bits(c)).to_bits()
    })
}

pub(super) fn half_one(s: &Sources, f: impl Fn(f32) -> f32) -> Lanes {
    one(s, |a| u32::from(f16_from_f32(f(f16_value(a as u16)))))
}

pub(super) fn half_two(s: &Sources, f: impl Fn(f32, f32) -> f32) -> Lanes {
    two(s, |a, b| {
        u32::from(f16_from_f32(f(f16_value(a as u16), f16_value(b as u16))))
    })
}

pub(super) fn half_three(s: &Sources, f: impl Fn(f32, f32, f32) -> f32) -> Lanes {
    three(s, |a, b, c| {
        let value = f(
            f16_value(a as u16),
            f16_value(b as u16),
            f16_value(c as u16),
        );
        u32::from(f16_from_f32(value))
    })
}

pub(super) fn wide_one(a: &Wide, f: impl Fn(u64) -> u64) -> Wide {
    let mut out = [0; LANES];
    for lane in 0..LANES {
        out[lane] = f(a[lane]);
    }
    out
}

pub(super) fn double_one(a: &Wide, f: impl Fn(f64) -> f64) -> Wide {
    wide_one(a, |a| f(f64::from_bits(a)).to_bits())
}

pub(super) fn double_two(a: &Wide, b: &Wide, f: impl Fn(f64, f64) -> f64) -> Wide {
    let mut out = [0; LANES];
    for lane in 0..LANES {
        out[lane] = f(f64::from_bits(a[lane]), f64::from_bits(b[lane])).to_bits();
    }
    out
}

pub(super) fn double_three(a: &Wide, b: &Wide, c: &Wide, f: impl Fn(f64, f64, f64) -> f64) -> Wide {
    let mut out = [0; LANES];
    for lane in 0..LANES {
        let (a, b, c) = (a[lane], b[lane], c[lane]);
        out[lane] = f(f64::from_bits(a), f64::from_bits(b), f64::from_bits(c)).to_bits();
    }
    out
}

/// The lanes for which something holds.
pub(super) fn which(f: impl Fn(usize) -> bool) -> u64 {
    let mut mask = 0;
    for lane in 0..LANES {
        mask |= u64::from(f(lane)) << lane;
    }
    mask
}
