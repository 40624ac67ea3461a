//! Small floats and their bits.

/// The nearest float of 16 bits, ties to even.
pub fn f16_bits(value: f64) -> u16 {
    let sign = ((value.to_bits() >> 48) & 0x8000) as u16;
    let value = value.abs();
    if value.is_nan() {
        return sign | 0x7e00;
    }
    if value >= 65520.0 {
        return sign | 0x7c00;
    }
    // The spacing of floats around this one, never less than that of subnormals.
    let exponent = ((value.to_bits() >> 52) as i32 - 1023).max(-14);
    let quantum = (f64::from(exponent) - 10.0).exp2();
    let units = (value / quantum).round_ties_even() as u16;
    // A count of 2048 runs over into the next exponent by itself.
    let biased = (exponent + 14) as u16;
    sign | (biased * 1024 + units)
}

/// The value of a float of 16 bits.
pub fn f16_value(bits: u16) -> f32 {
    let sign = if bits & 0x8000 == 0 { 1.0 } else { -1.0 };
    let exponent = i32::from(bits >> 10 & 0x1f);
    let fraction = f32::from(bits & 0x3ff);
    match exponent {
        0 => sign * fraction * (-24f32).exp2(),
        31 if fraction == 0.0 => sign * f32::INFINITY,
        31 => f32::NAN,
        _ => sign * (1024.0 + fraction) * ((exponent - 25) as f32).exp2(),
    }
}
