//! Division as compilers write it: the quotient must be the one that IEEE says.

use super::{LANES, Random, read, wave};
use tilewright_gfx9::emu::Arch;

const SINGLE: &str = "\
    v_div_scale_f32 v2, s[0:1], v1, v1, v0
    v_rcp_f32_e32 v3, v2
    v_div_scale_f32 v5, vcc, v0, v1, v0
    v_fma_f32 v4, -v2, v3, 1.0
    v_fmac_f32_e32 v3, v4, v3
    v_mul_f32_e32 v6, v5, v3
    v_fma_f32 v7, -v2, v6, v5
    v_fmac_f32_e32 v6, v7, v3
    v_fma_f32 v2, -v2, v6, v5
    v_div_fmas_f32 v2, v2, v3, v6
    v_div_fixup_f32 v8, v2, v1, v0";

const DOUBLE: &str = "\
    v_div_scale_f64 v[4:5], s[0:1], v[2:3], v[2:3], v[0:1]
    v_rcp_f64_e32 v[6:7], v[4:5]
    v_fma_f64 v[8:9], -v[4:5], v[6:7], 1.0
    v_fma_f64 v[6:7], v[6:7], v[8:9], v[6:7]
    v_fma_f64 v[8:9], -v[4:5], v[6:7], 1.0
    v_fma_f64 v[6:7], v[6:7], v[8:9], v[6:7]
    v_div_scale_f64 v[8:9], vcc, v[0:1], v[2:3], v[0:1]
    v_mul_f64 v[10:11], v[8:9], v[6:7]
    v_fma_f64 v[4:5], -v[4:5], v[10:11], v[8:9]
    v_div_fmas_f64 v[4:5], v[4:5], v[6:7], v[10:11]
    v_div_fixup_f64 v[12:13], v[4:5], v[2:3], v[0:1]";

#[test]
fn quotients_of_floats() {
    let code = read(SINGLE);
    let mut random = Random(1);
    for round in 0..4000 {
        let mut wave = wave();
        for lane in 0..LANES {
            let mut pick = || match (round % 4, random.below(16)) {
                // Bits of any kind; then zeros, infinities, ends of the range, and subnormals.
                (0, _) => random.word(),
                (_, 0) => random.word() & 0x8000_0000,
                (_, 1) => random.word() & 0x8000_0000 | 0x7f80_0000,
                (_, 2) => random.word() | 0x7f00_0000 & !0x0080_0000,
                (_, 3..6) => random.word() & 0x807f_ffff,
                (_, 6) => random.word() & 0x8000_001f,
                (_, 7) => random.word() & 0x81ff_ffff,
                (_, 8) => random.word() & 0x80ff_ffff | 0x7e00_0000,
                (1, _) => random.word() & 0x807f_ffff | 0x3f80_0000,
                _ => random.word(),
            };
            (wave.vgpr[0][lane], wave.vgpr[1][lane]) = (pick(), pick());
        }
        let (a, b) = (wave.vgpr[0], wave.vgpr[1]);
        for instruction in &code {
            wave.compute(instruction, Arch::Gfx950).unwrap();
        }
        for lane in 0..LANES {
            let (a, b) = (f32::from_bits(a[lane]), f32::from_bits(b[lane]));
            let (got, want) = (f32::from_bits(wave.vgpr[8][lane]), a / b);
            let same = got.to_bits() == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(same, "{a:e} / {b:e}: {got:e}, not {want:e}");
        }
    }
}

#[test]
fn quotients_of_doubles() {
    let code = read(DOUBLE);
    let mut random = Random(2);
    let sign = 1 << 63;
    for round in 0..2000 {
        let mut wave = wave();
        let mut pairs = [(0, 0); LANES];
        for (lane, pair) in pairs.iter_mut().enumerate() {
            let mut pick = || match (round % 4, random.below(16)) {
                (0, _) => random.next(),
                (_, 0) => random.next() & sign,
                (_, 1) => random.next() & sign | 0x7ff << 52,
                (_, 2..5) => random.next() & (sign | ((1 << 52) - 1)),
                (_, 5) => random.next() & (sign | 31),
                (_, 6) => random.next() & (sign | ((1 << 55) - 1)),
                (_, 7) => random.next() & (sign | ((1 << 54) - 1)) | 0x7fc << 52,
                _ => random.next(),
            };
            *pair = (pick(), pick());
            for (register, value) in [(0, pair.0), (2, pair.1)] {
                wave.vgpr[register][lane] = value as u32;
                wave.vgpr[register + 1][lane] = (value >> 32) as u32;
            }
        }
        for instruction in &code {
            wave.compute(instruction, Arch::Gfx950).unwrap();
        }
        for (lane, (a, b)) in pairs.into_iter().enumerate() {
            let (a, b) = (f64::from_bits(a), f64::from_bits(b));
            let bits = u64::from(wave.vgpr[12][lane]) | u64::from(wave.vgpr[13][lane]) << 32;
            let (got, want) = (f64::from_bits(bits), a / b);
            let same = bits == want.to_bits() || (got.is_nan() && want.is_nan());
            assert!(same, "{a:e} / {b:e}: {got:e}, not {want:e}");
        }
    }
}
