//! Conversions with a scale, from and to small floats.

use super::convert::{BF6, BF8, FP4, FP6, FP8, same};
use super::{Lanes, Random, all, run, vector, wave};
use half::{bf16, f16};

#[test]
fn scaled_conversions_of_pairs() {
    let mut random = Random(6);
    let scale = 5;
    for (name, ty, bits) in [("fp8", FP8, 8), ("bf8", BF8, 8), ("fp4", FP4, 4)] {
        for _ in 0..300 {
            let values = [0, 1].map(|_| f32::from_bits(random.word() & 0x87ff_ffff | 0x4000_0000));
            let sources = [
                values[0].to_bits(),
                values[1].to_bits(),
                0x3f80_0000 + (scale << 23),
            ];
            let pair = values
                .map(|value| ty.nearest(f64::from(value) / 32.0))
                .into_iter()
                .rev()
                .fold(0, |pair, code| pair << bits | code);
            // The upper half, or the third byte.
            let (at, select) = (16, "[0,0,0,1]");
            let mask = ((1u32 << (2 * bits)) - 1) << at;
            let want = 0xdead_beef & !mask | pair << at;
            let code = format!("v_cvt_scalef32_pk_{name}_f32 v0, v1, v2, v3 op_sel:{select}");
            assert_eq!(
                vector(&code, 0xdead_beef, &sources),
                want,
                "{code} {values:?}"
            );
            // And back.
            let back = match bits {
                4 => "op_sel:[0,1,0]",
                _ => "op_sel:[1,0,0]",
            };
            let code = format!("v_cvt_scalef32_pk_f32_{name} v[2:3], v1, v3 {back}");
            let mut wave = wave();
            (wave.vgpr[1], wave.vgpr[3]) = (all(want), all(sources[2]));
            run(&mut wave, &code);
            for (index, register) in [2, 3].into_iter().enumerate() {
                let value = ty.value(pair >> (bits * index as u32) & ((1 << bits) - 1)) * 32.0;
                assert!(
                    same(f32::from_bits(wave.vgpr[register][7]), value as f32),
                    "{code}"
                );
            }
        }
    }
}

#[test]
fn scaled_conversions_of_halves() {
    // 3 and -0.5, with a scale of a half.
    let pair = |low: u16, high: u16| u32::from(low) | u32::from(high) << 16;
    let f16s = pair(0x4200, 0xb800);
    let bf16s = pair(0x4040, 0xbf00);
    let scale = 0x3f00_0000;
    for (code, source, want) in [
        ("v_cvt_scalef32_pk_fp8_f16 v0, v1, v2", f16s, 0xdead_b84c),
        (
            "v_cvt_scalef32_pk_fp8_bf16 v0, v1, v2 op_sel:[0,0,1]",
            bf16s,
            0xb84c_beef,
        ),
        ("v_cvt_scalef32_pk_bf8_f16 v0, v1, v2", f16s, 0xdead_bc46),
        (
            "v_cvt_scalef32_pk_fp4_f16 v0, v1, v2 op_sel:[0,0,1,0]",
            f16s,
            0xdead_a7ef,
        ),
        (
            "v_cvt_scalef32_pk_fp4_bf16 v0, v1, v2 op_sel:[0,0,1,1]",
            bf16s,
            0xa7ad_beef,
        ),
        ("v_cvt_scalef32_pk_f16_fp8 v0, v1, v2", 0xb84c, f16s),
        (
            "v_cvt_scalef32_pk_bf16_fp8 v0, v1, v2 op_sel:[1,0,0]",
            0xb84c_0000,
            bf16s,
        ),
        ("v_cvt_scalef32_pk_bf16_bf8 v0, v1, v2", 0xbc46, bf16s),
        (
            "v_cvt_scalef32_pk_f16_fp4 v0, v1, v2 op_sel:[1,0,0]",
            0xa700,
            f16s,
        ),
        (
            "v_cvt_scalef32_pk_bf16_fp4 v0, v1, v2 op_sel:[1,1,0]",
            0xa700_0000,
            bf16s,
        ),
        (
            "v_cvt_scalef32_f32_fp8 v0, v1, v2 op_sel:[0,1,0]",
            0x4c_0000,
            0x4040_0000,
        ),
        (
            "v_cvt_scalef32_f32_bf8 v0, v1, v2 op_sel:[1,0,0]",
            0x4600,
            0x4040_0000,
        ),
        (
            "v_cvt_scalef32_f16_fp8 v0, v1, v2 op_sel:[0,0,1]",
            0x4c,
            0x4200_beef,
        ),
        ("v_cvt_scalef32_f16_bf8 v0, v1, v2", 0x46, 0xdead_4200),
    ] {
        let got = vector(code, 0xdead_beef, &[source, scale]);
        // The largest number of four bits is 6, which 3 over a half is.
        assert_eq!(got, want, "{code}: {got:#x}, not {want:#x}");
    }
    let nan = vector("v_cvt_scalef32_f32_fp8 v0, v1, v2", 0, &[0x4c, 0x7f80_0000]);
    assert!(f32::from_bits(nan).is_nan());
}

#[test]
fn scaled_conversions_of_many() {
    let mut random = Random(7);
    for (name, ty) in [("fp6", FP6), ("bf6", BF6)] {
        let mut wave = wave();
        let values: Vec<f32> = (0..32)
            .map(|_| (random.below(64) as f32 - 32.0) / 4.0)
            .collect();
        let codes: Vec<u32> = values
            .iter()
            .map(|value| ty.nearest(f64::from(*value) / 2.0))
            .collect();
        wave.vgpr[90] = all(0x4000_0000);
        // Two runs of 16 floats in turns, 32 halves, 32 bfloats.
        for (index, value) in values.iter().enumerate() {
            let run = if index % 2 == 0 { 0 } else { 16 };
            wave.vgpr[run + index / 2] = all(value.to_bits());
            let shift = 16 * (index % 2);
            let half = u32::from(f16::from_f32(*value).to_bits());
            let bfloat = u32::from(bf16::from_f32(*value).to_bits());
            for (first, bits) in [(32, half), (48, bfloat)] {
                let old = wave.vgpr[first + index / 2][0];
                wave.vgpr[first + index / 2] = all(old | bits << shift);
            }
        }
        let mut packed = [0u32; 6];
        for (index, code) in codes.iter().enumerate() {
            for bit in 0..6 {
                packed[(6 * index + bit) / 32] |= (code >> bit & 1) << ((6 * index + bit) % 32);
            }
        }
        for code in [
            format!("v_cvt_scalef32_2xpk16_{name}_f32 v[64:69], v[0:15], v[16:31], v90"),
            format!("v_cvt_scalef32_pk32_{name}_f16 v[64:69], v[32:47], v90"),
            format!("v_cvt_scalef32_pk32_{name}_bf16 v[64:69], v[48:63], v90"),
        ] {
            run(&mut wave, &code);
            let got: Vec<u32> = wave.vgpr[64..70]
                .iter()
                .map(|register: &Lanes| register[33])
                .collect();
            assert_eq!(got, packed, "{code}");
            wave.vgpr[64..70].fill(all(0));
        }
        for (register, word) in packed.iter().enumerate() {
            wave.vgpr[64 + register] = all(*word);
        }
        let numbers: Vec<f32> = codes
            .iter()
            .map(|code| ty.value(*code) as f32 * 2.0)
            .collect();
        run(
            &mut wave,
            &format!("v_cvt_scalef32_pk32_f32_{name} v[100:131], v[64:69], v90"),
        );
        for (index, number) in numbers.iter().enumerate() {
            assert!(
                same(f32::from_bits(wave.vgpr[100 + index][5]), *number),
                "{name} {index}"
            );
        }
        run(
            &mut wave,
            &format!("v_cvt_scalef32_pk32_f16_{name} v[100:115], v[64:69], v90"),
        );
        run(
            &mut wave,
            &format!("v_cvt_scalef32_pk32_bf16_{name} v[116:131], v[64:69], v90"),
        );
        for (index, number) in numbers.iter().enumerate() {
            let bits =
                |first: usize| (wave.vgpr[first + index / 2][5] >> (16 * (index % 2))) as u16;
            assert!(
                same(f16::from_bits(bits(100)).to_f32(), *number),
                "{name} {index}"
            );
            assert!(
                same(bf16::from_bits(bits(116)).to_f32(), *number),
                "{name} {index}"
            );
        }
    }
}
