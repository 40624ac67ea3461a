//! The mathematical functions, in f64.
//!
//! The result is rounded to the type once by the caller, so it is as good as the f64 function:
//! far beyond what a float32 shows. `erf` is not in the standard library and is computed here.

use tilewright_ir::small_float;
use tilewright_ir::{MathFn, Scalar};

/// A function of one float, before rounding to the type.
pub(crate) fn unary(f: MathFn, scalar: Scalar, x: f64) -> Option<f64> {
    Some(match f {
        MathFn::Exp => x.exp(),
        MathFn::Exp2 => exp2(scalar, x),
        MathFn::Exp10 => 10f64.powf(x),
        MathFn::Expm1 => x.exp_m1(),
        MathFn::Log => x.ln(),
        MathFn::Log2 => x.log2(),
        MathFn::Log10 => x.log10(),
        MathFn::Log1p => x.ln_1p(),
        MathFn::Sqrt => x.sqrt(),
        // Of −0 the reciprocal root is −∞; that of a negative number is NaN.
        MathFn::Rsqrt => 1.0 / x.sqrt(),
        MathFn::Recip => 1.0 / x,
        MathFn::Sin => x.sin(),
        MathFn::Cos => x.cos(),
        MathFn::Tan => x.tan(),
        MathFn::Asin => x.asin(),
        MathFn::Acos => x.acos(),
        MathFn::Atan => x.atan(),
        MathFn::Sinh => x.sinh(),
        MathFn::Cosh => x.cosh(),
        MathFn::Tanh => x.tanh(),
        MathFn::Asinh => x.asinh(),
        MathFn::Acosh => x.acosh(),
        MathFn::Atanh => x.atanh(),
        MathFn::Erf => erf(x),
        MathFn::Sigmoid => 1.0 / (1.0 + (-x).exp()),
        MathFn::Floor => x.floor(),
        MathFn::Ceil => x.ceil(),
        MathFn::Trunc => x.trunc(),
        MathFn::Round => x.round_ties_even(),
        MathFn::RoundAway => x.round(),
        MathFn::Abs => x.abs(),
        _ => return None,
    })
}

/// Of all but float64 the instruction of machines, which gives no denormal numbers of float32.
fn exp2(scalar: Scalar, x: f64) -> f64 {
    let value = x.exp2();
    match scalar {
        Scalar::F64 => value,
        _ if value < f64::from(f32::MIN_POSITIVE) => 0.0,
        _ => value,
    }
}

/// A function of two floats, before rounding to the type.
pub(crate) fn binary(f: MathFn, scalar: Scalar, x: f64, y: f64) -> Option<f64> {
    Some(match f {
        MathFn::Pow => x.powf(y),
        // The remainder operator of floats is exact and has the dividend's sign.
        MathFn::Fmod => x % y,
        MathFn::Atan2 => x.atan2(y),
        MathFn::Hypot => x.hypot(y),
        MathFn::Copysign => x.copysign(y),
        MathFn::Nextafter => next_after(scalar, x, y),
        MathFn::Ldexp => ldexp(x, float_exponent(y)),
        _ => return None,
    })
}

/// `x · y + z`, before rounding to the type; in float32 with a single rounding.
pub(crate) fn fma(scalar: Scalar, x: f64, y: f64, z: f64) -> f64 {
    match scalar {
        Scalar::F32 => (x as f32).mul_add(y as f32, z as f32) as f64,
        _ => x.mul_add(y, z),
    }
}

/// Whether the float is of the asked kind.
pub(crate) fn predicate(f: MathFn, x: f64) -> Option<bool> {
    Some(match f {
        MathFn::IsNan => x.is_nan(),
        MathFn::IsInf => x.is_infinite(),
        MathFn::IsFinite => x.is_finite(),
        _ => return None,
    })
}

/// `x · 2^n`, in steps that do not overflow before the result does.
pub(crate) fn ldexp(x: f64, n: i64) -> f64 {
    let mut x = x;
    let mut n = n.clamp(-3000, 3000) as i32;
    while n > 1000 {
        x *= 2f64.powi(1000);
        n -= 1000;
    }
    while n < -1000 {
        x *= 2f64.powi(-1000);
        n += 1000;
    }
    x * 2f64.powi(n)
}

fn float_exponent(y: f64) -> i64 {
    y as i64
}

/// The neighbour of `x` in its type in the direction of `y`.
fn next_after(scalar: Scalar, x: f64, y: f64) -> f64 {
    if x.is_nan() || y.is_nan() {
        return f64::NAN;
    }
    if x == y {
        return y;
    }
    let up = y > x;
    let bits = scalar.bits();
    let sign = 1u64 << (bits - 1);
    if x == 0.0 {
        let smallest = small_float::float_from_bits(scalar, 1);
        return if up { smallest } else { -smallest };
    }
    // Codes grow with the magnitude in every format that has a sign.
    let code = small_float::float_to_bits(scalar, x);
    let away = up == (code & sign == 0);
    let step = if scalar == Scalar::TF32 { 1 << 13 } else { 1 };
    let next = if away {
        code.wrapping_add(step)
    } else {
        code.wrapping_sub(step)
    };
    small_float::float_from_bits(scalar, next)
}

/// The error function, to about 1e-15.
pub(crate) fn erf(x: f64) -> f64 {
    let a = x.abs();
    let value = if x.is_nan() {
        return x;
    } else if a < 2.5 {
        // 2/√π · e^(−x²) · Σ 2ⁿ x^(2n+1) / (1·3·…·(2n+1)): all terms have one sign.
        let (mut term, mut sum, mut n) = (a, a, 0.0);
        while term > sum * 1e-17 {
            n += 1.0;
            term *= 2.0 * a * a / (2.0 * n + 1.0);
            sum += term;
        }
        std::f64::consts::FRAC_2_SQRT_PI * (-a * a).exp() * sum
    } else if a < 6.0 {
        1.0 - erfc_fraction(a)
    } else {
        1.0
    };
    value.copysign(x)
}

/// `erfc(a)` for `a ≥ 2.5` by its continued fraction, from the far end.
fn erfc_fraction(a: f64) -> f64 {
    let mut fraction = 0.0;
    for k in (1..=60).rev() {
        fraction = k as f64 / 2.0 / (a + fraction);
    }
    (-a * a).exp() / (std::f64::consts::PI.sqrt() * (a + fraction))
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn erf_has_its_known_values() {
        // Twenty digits from tables of the error function.
        for (x, expected) in [
            (0.0, 0.0),
            (0.1, 0.112_462_916_018_284_89),
            (0.5, 0.520_499_877_813_046_5),
            (1.0, 0.842_700_792_949_714_9),
            (2.0, 0.995_322_265_018_952_7),
            (2.4, 0.999_311_486_103_355),
            (2.6, 0.999_763_965_583_470_7),
            (3.0, 0.999_977_909_503_001_4),
            (5.0, 0.999_999_999_998_462_5),
            (7.0, 1.0),
        ] {
            assert!((erf(x) - expected).abs() < 4e-16, "erf({x}) = {}", erf(x));
            assert_eq!(erf(-x), -erf(x));
        }
        assert!(erf(f64::NAN).is_nan());
        // Both ways agree where they meet.
        assert!((erf(2.4999999999) - erf(2.5)).abs() < 1e-12);
    }

    #[test]
    fn next_after_walks_the_codes_of_the_type() {
        let n = |s, x, y| binary(MathFn::Nextafter, s, x, y);
        assert_eq!(n(Scalar::F16, 1.0, 2.0), Some(1.0 + 1.0 / 1024.0));
        assert_eq!(n(Scalar::F16, 1.0, 0.0), Some(1.0 - 1.0 / 2048.0));
        assert_eq!(n(Scalar::F16, -1.0, -2.0), Some(-1.0 - 1.0 / 1024.0));
        assert_eq!(n(Scalar::F16, 0.0, -1.0), Some(-(2f64.powi(-24))));
        assert_eq!(
            n(Scalar::F32, 1.0, 2.0),
            Some(f32::from_bits(0x3f80_0001) as f64)
        );
    }

    #[test]
    fn edges() {
        assert_eq!(unary(MathFn::Rsqrt, Scalar::F32, 0.0), Some(f64::INFINITY));
        assert!(unary(MathFn::Rsqrt, Scalar::F32, -1.0).is_some_and(f64::is_nan));
        assert_eq!(unary(MathFn::Round, Scalar::F32, 2.5), Some(2.0));
        assert_eq!(unary(MathFn::Round, Scalar::F32, 3.5), Some(4.0));
        assert_eq!(unary(MathFn::RoundAway, Scalar::F32, 2.5), Some(3.0));
        assert_eq!(
            unary(MathFn::Exp2, Scalar::F32, -126.0),
            Some(2f64.powi(-126))
        );
        assert_eq!(unary(MathFn::Exp2, Scalar::F32, -126.5), Some(0.0));
        assert_eq!(unary(MathFn::Exp2, Scalar::BF16, -130.0), Some(0.0));
        assert_eq!(
            unary(MathFn::Exp2, Scalar::F64, -130.0),
            Some(2f64.powi(-130))
        );
        assert_eq!(ldexp(1.0, -1074), f64::from_bits(1));
        assert_eq!(ldexp(f64::from_bits(1), 2000), 2f64.powi(926));
        assert_eq!(fma(Scalar::F32, 1.0, 1.0, 1.0), 2.0);
    }

    #[test]
    fn every_function_is_somewhere() {
        for &f in MathFn::ALL {
            let known = match f.arity() {
                1 => {
                    unary(f, Scalar::F32, 0.5).is_some()
                        || predicate(f, 0.5).is_some()
                        || crate::value::int_math(f, Scalar::I32, 1).is_some()
                }
                2 => binary(f, Scalar::F32, 0.5, 0.5).is_some(),
                _ => f == MathFn::Fma,
            };
            assert!(known, "{f:?}");
        }
    }
}
