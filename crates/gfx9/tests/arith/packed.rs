//! Two results at once, and sums of mixed types.

use super::{all, run, vector, wave};

/// Text, `v1` to `v3`, `v0` after; it held 0xdead_beef.
const HALVES: &[(&str, &[u32], u32)] = &[
    // 1 and 2 added to 3 and 4.
    (
        "v_pk_add_f16 v0, v1, v2",
        &[0x4000_3c00, 0x4400_4200],
        0x4600_4400,
    ),
    (
        "v_pk_add_f16 v0, v1, v2 op_sel:[1,0] op_sel_hi:[0,1]",
        &[0x4000_3c00, 0x4400_4200],
        0x4500_4500,
    ),
    (
        "v_pk_add_f16 v0, v1, v2 neg_lo:[0,1] neg_hi:[1,0]",
        &[0x4000_3c00, 0x4400_4200],
        0x4000_c000,
    ),
    (
        "v_pk_add_f16 v0, v1, 1.0 op_sel_hi:[1,0]",
        &[0x4000_3c00],
        0x4200_4000,
    ),
    (
        "v_pk_mul_f16 v0, v1, v2 op_sel_hi:[1,0]",
        &[0x4000_3c00, 0x4400_4200],
        0x4600_4200,
    ),
    (
        "v_pk_mul_f16 v0, v1, v2 clamp",
        &[0x4000_b800, 0x4400_4200],
        0x3c00_0000,
    ),
    (
        "v_pk_fma_f16 v0, v1, v2, v3",
        &[0x4000_3c00, 0x4400_4200, 0x3c00_3c00],
        0x4880_4400,
    ),
    (
        "v_pk_min_f16 v0, v1, v2",
        &[0x7e00_3c00, 0x4400_4200],
        0x4400_3c00,
    ),
    (
        "v_pk_maximum3_f16 v0, v1, v2, v3",
        &[0x3c00_3c00, 0x4400_4200, 0x4800_0000],
        0x4800_4200,
    ),
    ("v_pk_fmac_f16_e32 v0, v1, v2", &[0, 0], 0xdead_beef),
    (
        "v_pk_add_u16 v0, v1, v2",
        &[0xffff_0001, 0x0002_ffff],
        0x0001_0000,
    ),
    (
        "v_pk_add_u16 v0, v1, v2 clamp",
        &[0xffff_0001, 0x0002_0001],
        0xffff_0002,
    ),
    (
        "v_pk_sub_i16 v0, v1, v2 clamp",
        &[0x8000_0001, 0x0002_0001],
        0x8000_0000,
    ),
    (
        "v_pk_mul_lo_u16 v0, v1, v2",
        &[0x0003_ffff, 0x0005_0002],
        0x000f_fffe,
    ),
    (
        "v_pk_mad_u16 v0, v1, v2, v3",
        &[0x0003_0002, 0x0005_0002, 0x0001_ffff],
        0x0010_0003,
    ),
    (
        "v_pk_lshlrev_b16 v0, v1, v2",
        &[0x0004_0001, 0x1234_8001],
        0x2340_0002,
    ),
    (
        "v_pk_lshlrev_b16 v0, 4, v1 op_sel_hi:[0,1]",
        &[0x1234_8001],
        0x2340_0010,
    ),
    (
        "v_pk_ashrrev_i16 v0, v1, v2",
        &[0x0004_0001, 0x8234_8001],
        0xf823_c000,
    ),
    (
        "v_pk_max_i16 v0, v1, v2",
        &[0xffff_0001, 0x0002_8000],
        0x0002_0001,
    ),
    (
        "v_pk_min_u16 v0, v1, v2",
        &[0xffff_0001, 0x0002_8000],
        0x0002_0001,
    ),
    // Dot products.
    (
        "v_dot2_f32_f16 v0, v1, v2, v3",
        &[0x4000_3c00, 0x4400_4200, 0x3f80_0000],
        12f32.to_bits(),
    ),
    (
        "v_dot2_f32_f16 v0, v1, v2, v3 neg_lo:[1,0,0] neg_hi:[1,0,0]",
        &[0x4000_3c00, 0x4400_4200, 0x3f80_0000],
        (-10f32).to_bits(),
    ),
    (
        "v_dot2_f32_bf16 v0, v1, v2, v3",
        &[0x4000_3f80, 0x4080_4040, 0x3f80_0000],
        12f32.to_bits(),
    ),
    ("v_dot2c_f32_f16_e32 v0, v1, v2", &[0, 0], 0xdead_beef),
    (
        "v_dot2_i32_i16 v0, v1, v2, v3",
        &[0xffff_0002, 0x0003_0004, 1],
        6,
    ),
    (
        "v_dot2_u32_u16 v0, v1, v2, v3",
        &[0xffff_0002, 0x0003_0004, 1],
        0x2_fffd + 9,
    ),
    (
        "v_dot4_i32_i8 v0, v1, v2, v3",
        &[0xff02_0304, 0x0203_0405, 7],
        43,
    ),
    (
        "v_dot4_u32_u8 v0, v1, v2, v3",
        &[0xff02_0304, 0x0203_0405, 7],
        555,
    ),
    (
        "v_dot8_i32_i4 v0, v1, v2, v3",
        &[0xf000_0003, 0x2000_0004, 7],
        17,
    ),
    (
        "v_dot8_u32_u4 v0, v1, v2, v3",
        &[0xf000_0003, 0x2000_0004, 7],
        49,
    ),
    // Mixed sums: all of 32 bits, then halves by op_sel_hi.
    (
        "v_fma_mix_f32 v0, v1, v2, v3",
        &[0x4000_0000, 0x4040_0000, 0x3f80_0000],
        7f32.to_bits(),
    ),
    (
        "v_fma_mix_f32 v0, v1, v2, v3 op_sel_hi:[1,0,0]",
        &[0x4400_4000, 0x4040_0000, 0x3f80_0000],
        7f32.to_bits(),
    ),
    (
        "v_fma_mix_f32 v0, v1, v2, v3 op_sel:[1,0,0] op_sel_hi:[1,0,0]",
        &[0x4400_4000, 0x4040_0000, 0x3f80_0000],
        13f32.to_bits(),
    ),
    (
        "v_fma_mix_f32 v0, -v1, |v2|, v3 op_sel_hi:[1,0,0]",
        &[0x4000, 0xc040_0000, 0x3f80_0000],
        (-5f32).to_bits(),
    ),
    (
        "v_fma_mix_f32 v0, v1, v2, v3 neg_lo:[1,0,0] neg_hi:[0,1,0]",
        &[0x4000_0000, 0xc040_0000, 0x3f80_0000],
        (-5f32).to_bits(),
    ),
    (
        "v_fma_mix_f32 v0, v1, 1.0, v2 op_sel_hi:[0,1,0]",
        &[0x4000_0000, 0x3f80_0000],
        3f32.to_bits(),
    ),
    (
        "v_fma_mixlo_f16 v0, v1, v2, v3",
        &[0x4000_0000, 0x4040_0000, 0x3f80_0000],
        0xdead_4700,
    ),
    (
        "v_fma_mixhi_f16 v0, v1, v2, v3",
        &[0x4000_0000, 0x4040_0000, 0x3f80_0000],
        0x4700_beef,
    ),
    (
        "v_fma_mixlo_f16 v0, v1, v2, 0",
        &[0x4000_0000, 0x3f00_0000],
        0xdead_3c00,
    ),
];

#[test]
fn halves_of_registers() {
    for (code, sources, want) in HALVES {
        let got = vector(code, 0xdead_beef, sources);
        assert_eq!(got, *want, "{code}: {got:#010x}, not {want:#010x}");
    }
}

#[test]
fn pairs_of_registers() {
    let float = |value: f32| all(value.to_bits());
    // Text and the two results of 1, 2 and 10, 20 and 100, 200; `s[0:1]` is 1000, 2000.
    for (code, want) in [
        ("v_pk_add_f32 v[0:1], v[2:3], v[4:5]", [11.0, 22.0]),
        (
            "v_pk_mul_f32 v[0:1], v[2:3], v[4:5] op_sel:[0,1] op_sel_hi:[1,0]",
            [20.0, 20.0],
        ),
        (
            "v_pk_mul_f32 v[0:1], v[2:3], s[0:1] op_sel_hi:[1,0]",
            [1000.0, 2000.0],
        ),
        ("v_pk_mul_f32 v[0:1], v[2:3], s[0:1]", [1000.0, 4000.0]),
        (
            "v_pk_mul_f32 v[0:1], v[2:3], 4.0 op_sel_hi:[1,0]",
            [4.0, 8.0],
        ),
        (
            "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]",
            [110.0, 240.0],
        ),
        (
            "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] neg_lo:[1,0,0] neg_hi:[0,0,1]",
            [90.0, -160.0],
        ),
        (
            "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7] op_sel_hi:[0,1,1]",
            [110.0, 220.0],
        ),
        (
            "v_pk_mov_b32 v[0:1], v[2:3], v[4:5] op_sel:[1,0]",
            [2.0, 10.0],
        ),
        (
            "v_pk_mov_b32 v[0:1], v[2:3], v[2:3] op_sel:[0,1]",
            [1.0, 2.0],
        ),
        // A result over a source: both are read before either is written.
        (
            "v_pk_add_f32 v[2:3], v[2:3], v[2:3] op_sel:[1,1] op_sel_hi:[0,0]\n v_mov_b64 v[0:1], v[2:3]",
            [4.0, 2.0],
        ),
    ] {
        let mut wave = wave();
        for (register, value) in (2..8).zip([1.0, 2.0, 10.0, 20.0, 100.0, 200.0]) {
            wave.vgpr[register] = float(value);
        }
        wave.sgpr[0] = 1000f32.to_bits();
        wave.sgpr[1] = 2000f32.to_bits();
        run(&mut wave, code);
        assert_eq!([wave.vgpr[0], wave.vgpr[1]], want.map(float), "{code}");
    }
}
