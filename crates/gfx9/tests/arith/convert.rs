//! Conversions, over all bit patterns where there are few, against definitions of their own.

use super::{Arch, LANES, Random, all, run, try_run, vector, wave};
use half::{bf16, f16};

/// Runs an instruction with `v1` from a list, 64 at a time, and gives `v0` for each.
fn each(code: &str, arch: Arch, inputs: &[u32]) -> Vec<u32> {
    let mut results = Vec::new();
    for chunk in inputs.chunks(LANES) {
        let mut wave = wave();
        wave.vgpr[1][..chunk.len()].copy_from_slice(chunk);
        try_run(&mut wave, arch, code).unwrap();
        results.extend_from_slice(&wave.vgpr[0][..chunk.len()]);
    }
    results
}

pub(super) fn same(a: f32, b: f32) -> bool {
    a.to_bits() == b.to_bits() || (a.is_nan() && b.is_nan())
}

/// Floats of all kinds, and those around where rounding to fewer bits turns.
fn floats() -> Vec<u32> {
    let mut random = Random(4);
    let mut floats: Vec<u32> = (0..60_000).map(|_| random.word()).collect();
    floats.extend((0..60_000).map(|_| random.word() & 0x87ff_ffff | 0x3800_0000));
    for half in 0..=0xffffu16 {
        let middle = f16::from_bits(half).to_f32().to_bits();
        floats.extend([
            middle,
            middle | 0x1000,
            middle | 0x1001,
            middle.wrapping_sub(1),
        ]);
    }
    floats
}

#[test]
fn halves_to_floats_and_back() {
    let halves: Vec<u32> = (0..=0xffff).collect();
    for (half, got) in halves
        .iter()
        .zip(each("v_cvt_f32_f16_e32 v0, v1", Arch::Gfx950, &halves))
    {
        let want = f16::from_bits(*half as u16).to_f32();
        assert!(same(f32::from_bits(got), want), "{half:#x}");
    }
    for (half, got) in halves
        .iter()
        .zip(each("v_cvt_f32_bf16_e32 v0, v1", Arch::Gfx950, &halves))
    {
        let want = bf16::from_bits(*half as u16).to_f32();
        assert!(same(f32::from_bits(got), want), "{half:#x}");
    }
    let floats = floats();
    let to_half = each("v_cvt_f16_f32_e32 v0, v1", Arch::Gfx950, &floats);
    let packed = each("v_cvt_pk_f16_f32 v0, v1, -v1", Arch::Gfx950, &floats);
    let to_bf16 = each("v_cvt_pk_bf16_f32 v0, v1, v1", Arch::Gfx950, &floats);
    let toward_zero = each("v_cvt_pkrtz_f16_f32 v0, v1, v1", Arch::Gfx950, &floats);
    for (index, bits) in floats.iter().enumerate() {
        let value = f32::from_bits(*bits);
        let half = |bits: u32| f16::from_bits(bits as u16);
        let want = f16::from_f32(value);
        let agree = |got: f16| got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
        assert!(agree(half(to_half[index])), "{value:e}");
        assert!(agree(half(packed[index])), "{value:e}");
        assert!(agree(-half(packed[index] >> 16)), "{value:e}");
        let got = bf16::from_bits(to_bf16[index] as u16);
        let want = bf16::from_f32(value);
        assert!(
            got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan()),
            "{value:e}"
        );
        // Toward zero: no farther from it, and the next is.
        let got = half(toward_zero[index]);
        if value.is_finite() {
            let next = f16::from_bits(got.to_bits() + 1);
            assert!(got.to_f32().abs() <= value.abs(), "{value:e}");
            assert!(
                next.to_f32().abs() > value.abs() || got.to_bits() & 0x7fff == 0x7bff,
                "{value:e}"
            );
        }
    }
}

/// A small type by its definition: bits of exponent and fraction, bias, largest number, and what
/// is past that.
pub(super) struct Type {
    exponent: u32,
    fraction: u32,
    bias: i32,
    largest: u32,
    past: u32,
    nan: fn(u32) -> bool,
}

impl Type {
    pub(super) fn value(&self, bits: u32) -> f64 {
        let sign = if bits >> (self.exponent + self.fraction) & 1 == 1 {
            -1.0
        } else {
            1.0
        };
        let magnitude = bits & ((1 << (self.exponent + self.fraction)) - 1);
        if (self.nan)(bits) {
            return f64::NAN;
        }
        if magnitude > self.largest {
            return sign * f64::INFINITY;
        }
        let exponent = (magnitude >> self.fraction) as i32;
        let fraction =
            f64::from(magnitude & ((1 << self.fraction) - 1)) / 2f64.powi(self.fraction as i32);
        sign * match exponent {
            0 => fraction * 2f64.powi(1 - self.bias),
            _ => (1.0 + fraction) * 2f64.powi(exponent - self.bias),
        }
    }

    /// The nearest number's bits by looking at all of them; of two the even one.
    pub(super) fn nearest(&self, value: f64) -> u32 {
        let sign = u32::from(value.is_sign_negative()) << (self.exponent + self.fraction);
        // One number more than there is, to see what is past the largest.
        let above = {
            let exponent = ((self.largest + 1) >> self.fraction) as i32;
            let fraction = f64::from((self.largest + 1) & ((1 << self.fraction) - 1));
            (1.0 + fraction / 2f64.powi(self.fraction as i32)) * 2f64.powi(exponent - self.bias)
        };
        let number = |code: u32| {
            if code > self.largest {
                above
            } else {
                self.value(code)
            }
        };
        let distance = |code: u32| (number(code) - value.abs()).abs();
        let mut best = 0;
        for code in 1..=self.largest + 1 {
            let closer = distance(code) < distance(best);
            let tie = distance(code) == distance(best) && code % 2 == 0;
            if closer || tie {
                best = code;
            }
        }
        if best > self.largest || value.abs() > above {
            self.past | if self.past == 0x80 { 0 } else { sign }
        } else {
            best | sign
        }
    }
}

pub(super) const FP8: Type = Type {
    exponent: 4,
    fraction: 3,
    bias: 7,
    largest: 0x7e,
    past: 0x7f,
    nan: |b| b & 0x7f == 0x7f,
};
pub(super) const BF8: Type = Type {
    exponent: 5,
    fraction: 2,
    bias: 15,
    largest: 0x7b,
    past: 0x7c,
    nan: |b| b & 0x7f > 0x7c,
};
const FP8_FNUZ: Type = Type {
    exponent: 4,
    fraction: 3,
    bias: 8,
    largest: 0x7f,
    past: 0x80,
    nan: |b| b == 0x80,
};
const BF8_FNUZ: Type = Type {
    exponent: 5,
    fraction: 2,
    bias: 16,
    largest: 0x7f,
    past: 0x80,
    nan: |b| b == 0x80,
};
pub(super) const FP6: Type = Type {
    exponent: 2,
    fraction: 3,
    bias: 1,
    largest: 0x1f,
    past: 0x1f,
    nan: |_| false,
};
pub(super) const BF6: Type = Type {
    exponent: 3,
    fraction: 2,
    bias: 3,
    largest: 0x1f,
    past: 0x1f,
    nan: |_| false,
};
pub(super) const FP4: Type = Type {
    exponent: 2,
    fraction: 1,
    bias: 1,
    largest: 0x7,
    past: 0x7,
    nan: |_| false,
};

const BYTES: [(&str, Arch, Type); 4] = [
    ("fp8", Arch::Gfx950, FP8),
    ("bf8", Arch::Gfx950, BF8),
    ("fp8", Arch::Gfx942, FP8_FNUZ),
    ("bf8", Arch::Gfx942, BF8_FNUZ),
];

#[test]
fn bytes_to_floats() {
    let words: Vec<u32> = (0..256)
        .map(|byte| byte | (255 - byte) << 8 | byte << 16 | byte << 24)
        .collect();
    for (name, arch, ty) in &BYTES {
        let low = each(&format!("v_cvt_f32_{name}_e32 v0, v1"), *arch, &words);
        let select = "dst_sel:DWORD dst_unused:UNUSED_PAD src0_sel";
        let second = each(
            &format!("v_cvt_f32_{name}_sdwa v0, v1 {select}:BYTE_1"),
            *arch,
            &words,
        );
        for byte in 0..256u32 {
            let want = |byte: u32| ty.value(byte) as f32;
            assert!(
                same(f32::from_bits(low[byte as usize]), want(byte)),
                "{name} {byte:#x}"
            );
            assert!(
                same(f32::from_bits(second[byte as usize]), want(255 - byte)),
                "{name} {byte:#x}"
            );
        }
        let mut wave = wave();
        wave.vgpr[4] = all(0x3840_4844);
        let code = format!(
            "v_cvt_pk_f32_{name}_e32 v[0:1], v4\n v_cvt_pk_f32_{name}_sdwa v[2:3], v4 src0_sel:WORD_1"
        );
        try_run(&mut wave, *arch, &code).unwrap();
        let got = [0, 1, 2, 3].map(|register| f64::from(f32::from_bits(wave.vgpr[register][9])));
        assert_eq!(got, [0x44, 0x48, 0x40, 0x38].map(|byte| ty.value(byte)));
    }
}

#[test]
fn floats_to_bytes() {
    let mut random = Random(5);
    for (name, arch, ty) in &BYTES {
        let mut inputs: Vec<f32> = (0..4000)
            .map(|_| f32::from_bits(random.word() & 0x8fff_ffff | 0x3000_0000))
            .collect();
        for byte in 0..128 {
            let value = ty.value(byte) as f32;
            let next = f32::from_bits(value.to_bits() + 1);
            let middle = (value + ty.value(byte + 1) as f32) / 2.0;
            inputs.extend([
                value,
                -value,
                next,
                middle,
                -middle,
                f32::from_bits(middle.to_bits() + 1),
            ]);
        }
        inputs.retain(|value| value.is_finite());
        inputs.extend([
            f32::INFINITY,
            f32::NEG_INFINITY,
            0.0,
            -0.0,
            464.0,
            465.0,
            240.0,
            248.0,
            61440.0,
            61439.0,
            1e30,
        ]);
        let bits: Vec<u32> = inputs.iter().map(|value| value.to_bits()).collect();
        let got = each(&format!("v_cvt_pk_{name}_f32 v0, v1, -v1"), *arch, &bits);
        for (value, got) in inputs.iter().zip(got) {
            let mut want = ty.nearest(f64::from(*value));
            // There is one zero where there is one NaN.
            if ty.past == 0x80 && want == 0x80 && value.abs() < 1.0 {
                want = 0;
            }
            assert_eq!(got & 0xff, want, "{name} {arch:?} {value:e}");
        }
        let nan = each(
            &format!("v_cvt_pk_{name}_f32 v0, v1, v1"),
            *arch,
            &[0x7fc0_0000],
        );
        assert!((ty.nan)(nan[0] & 0xff), "{name}");
    }
    // The other half is kept, and saturating is a bit of MODE.
    let mut wave = wave();
    wave.vgpr[0] = all(0x1234_5678);
    wave.vgpr[1] = all(1e6f32.to_bits());
    let saturate = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 23, 1), 1";
    run(
        &mut wave,
        &format!("{saturate}\n v_cvt_pk_fp8_f32 v0, v1, -v1 op_sel:[0,0,1]"),
    );
    assert_eq!(wave.vgpr[0][0], 0xfe7e_5678);
    run(&mut wave, "v_cvt_pk_bf8_f32 v0, v1, 1.0");
    assert_eq!(wave.vgpr[0][0], 0xfe7e_3c7b);
}

#[test]
fn numbers_and_integers() {
    let bits = f32::to_bits;
    for (code, source, want) in [
        ("v_cvt_i32_f32_e32 v0, v1", bits(-2.9), -2i32 as u32),
        ("v_cvt_i32_f32_e32 v0, v1", bits(3e10), 0x7fff_ffff),
        ("v_cvt_i32_f32_e32 v0, v1", 0x7fc0_0000, 0),
        ("v_cvt_u32_f32_e32 v0, v1", bits(-2.9), 0),
        ("v_cvt_u32_f32_e32 v0, v1", 0x7f80_0000, 0xffff_ffff),
        ("v_cvt_f32_i32_e32 v0, v1", -3i32 as u32, bits(-3.0)),
        (
            "v_cvt_f32_u32_e32 v0, v1",
            0xffff_ffff,
            bits(4_294_967_296.0),
        ),
        ("v_cvt_rpi_i32_f32_e32 v0, v1", bits(-2.5), -2i32 as u32),
        ("v_cvt_flr_i32_f32_e32 v0, v1", bits(-2.5), -3i32 as u32),
        ("v_cvt_f32_ubyte0_e32 v0, v1", 0x0102_03ff, bits(255.0)),
        ("v_cvt_f32_ubyte1_e32 v0, v1", 0x0102_03ff, bits(3.0)),
        ("v_cvt_f32_ubyte3_e32 v0, v1", 0x0102_03ff, bits(1.0)),
        ("v_cvt_off_f32_i4_e32 v0, v1", 0xf9, bits(-0.4375)),
        ("v_cvt_f16_i16_e32 v0, v1", 0xffff, 0xbc00),
        ("v_cvt_f16_u16_e32 v0, v1", 0xffff, 0x7c00),
        ("v_cvt_u16_f16_e32 v0, v1", 0x7c00, 0xffff),
        ("v_cvt_i16_f16_e32 v0, v1", 0xc100, 0xfffe),
        ("v_cvt_norm_i16_f16_e32 v0, v1", 0xbc00, 0x8001),
        ("v_cvt_norm_u16_f16_e32 v0, v1", 0x3800, 0x8000),
        ("v_cvt_pknorm_i16_f32 v0, v1, 1.0", bits(-2.0), 0x7fff_8001),
        (
            "v_pack_b32_f16 v0, v1, v1 op_sel:[1,0,0]",
            0x1234_5678,
            0x5678_1234,
        ),
    ] {
        let got = vector(code, 0xdead_beef, &[source]);
        assert_eq!(got, want, "{code}: {got:#x}, not {want:#x}");
    }
}
