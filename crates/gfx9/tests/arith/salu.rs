//! The scalar unit.

use super::{run, try_run, wave};
use tilewright_gfx9::emu::{Arch, Fault};

/// Text, `s0` and `s1`, SCC before, `s2` and SCC after.
type Case = (&'static str, [u32; 2], bool, u32, bool);

const WORDS: &[Case] = &[
    ("s_add_u32 s2, s0, s1", [0xffff_ffff, 1], false, 0, true),
    ("s_add_u32 s2, s0, s1", [5, 7], true, 12, false),
    (
        "s_add_i32 s2, s0, s1",
        [0x7fff_ffff, 1],
        false,
        0x8000_0000,
        true,
    ),
    ("s_add_i32 s2, s0, s1", [0xffff_ffff, 1], true, 0, false),
    ("s_sub_u32 s2, s0, s1", [3, 5], false, 0xffff_fffe, true),
    (
        "s_sub_i32 s2, s0, s1",
        [0x8000_0000, 1],
        false,
        0x7fff_ffff,
        true,
    ),
    ("s_sub_i32 s2, s0, s1", [3, 5], true, 0xffff_fffe, false),
    ("s_addc_u32 s2, s0, s1", [0xffff_ffff, 0], true, 0, true),
    ("s_addc_u32 s2, s0, s1", [1, 1], true, 3, false),
    ("s_subb_u32 s2, s0, s1", [1, 1], true, 0xffff_ffff, true),
    ("s_subb_u32 s2, s0, s1", [3, 1], true, 1, false),
    (
        "s_min_i32 s2, s0, s1",
        [0xffff_ffff, 1],
        false,
        0xffff_ffff,
        true,
    ),
    ("s_min_u32 s2, s0, s1", [0xffff_ffff, 1], true, 1, false),
    ("s_min_i32 s2, s0, s1", [4, 4], true, 4, false),
    ("s_max_i32 s2, s0, s1", [4, 4], false, 4, true),
    (
        "s_max_u32 s2, s0, s1",
        [0xffff_ffff, 1],
        false,
        0xffff_ffff,
        true,
    ),
    ("s_and_b32 s2, s0, s1", [12, 10], false, 8, true),
    ("s_and_b32 s2, s0, s1", [12, 3], true, 0, false),
    ("s_andn2_b32 s2, s0, s1", [12, 8], false, 4, true),
    ("s_orn2_b32 s2, s0, s1", [0, 0xffff_fffe], false, 1, true),
    (
        "s_nand_b32 s2, s0, s1",
        [0xffff_ffff, 0xffff_ffff],
        true,
        0,
        false,
    ),
    ("s_nor_b32 s2, s0, s1", [1, 2], false, 0xffff_fffc, true),
    ("s_xnor_b32 s2, s0, s1", [5, 5], false, 0xffff_ffff, true),
    ("s_lshl_b32 s2, s0, s1", [1, 33], false, 2, true),
    ("s_lshl_b32 s2, s0, s1", [0x8000_0000, 1], true, 0, false),
    ("s_lshr_b32 s2, s0, s1", [0x8000_0000, 31], false, 1, true),
    (
        "s_ashr_i32 s2, s0, s1",
        [0x8000_0000, 31],
        false,
        0xffff_ffff,
        true,
    ),
    (
        "s_bfe_u32 s2, s0, s1",
        [0xabcd_1234, 0x8_0004],
        false,
        0x23,
        true,
    ),
    (
        "s_bfe_i32 s2, s0, s1",
        [0xabcd_1284, 0x8_0000],
        false,
        0xffff_ff84,
        true,
    ),
    ("s_bfe_u32 s2, s0, s1", [0xabcd_1234, 0], true, 0, false),
    (
        "s_bfe_u32 s2, s0, s1",
        [0xabcd_1234, 0x20_0000],
        false,
        0xabcd_1234,
        true,
    ),
    ("s_absdiff_i32 s2, s0, s1", [2, 5], false, 3, true),
    (
        "s_absdiff_i32 s2, s0, s1",
        [0x8000_0000, 0],
        false,
        0x8000_0000,
        true,
    ),
    (
        "s_lshl3_add_u32 s2, s0, s1",
        [0x2000_0000, 1],
        false,
        1,
        true,
    ),
    ("s_lshl2_add_u32 s2, s0, s1", [3, 1], true, 13, false),
    ("s_bfm_b32 s2, s0, s1", [4, 8], true, 0xf00, true),
    (
        "s_mul_i32 s2, s0, s1",
        [0xffff_ffff, 3],
        true,
        0xffff_fffd,
        true,
    ),
    ("s_mul_hi_u32 s2, s0, s1", [0x8000_0000, 6], false, 3, false),
    (
        "s_mul_hi_i32 s2, s0, s1",
        [0xffff_ffff, 3],
        false,
        0xffff_ffff,
        false,
    ),
    (
        "s_pack_ll_b32_b16 s2, s0, s1",
        [0x1111_2222, 0x3333_4444],
        false,
        0x4444_2222,
        false,
    ),
    (
        "s_pack_lh_b32_b16 s2, s0, s1",
        [0x1111_2222, 0x3333_4444],
        false,
        0x3333_2222,
        false,
    ),
    (
        "s_pack_hh_b32_b16 s2, s0, s1",
        [0x1111_2222, 0x3333_4444],
        false,
        0x3333_1111,
        false,
    ),
    ("s_cselect_b32 s2, s0, s1", [1, 2], true, 1, true),
    ("s_cselect_b32 s2, s0, s1", [1, 2], false, 2, false),
    ("s_cmov_b32 s2, s0", [9, 0], false, 77, false),
    ("s_cmov_b32 s2, s0", [9, 0], true, 9, true),
    ("s_brev_b32 s2, s0", [1, 0], true, 0x8000_0000, true),
    (
        "s_sext_i32_i8 s2, s0",
        [0x1ff, 0],
        false,
        0xffff_ffff,
        false,
    ),
    (
        "s_sext_i32_i16 s2, s0",
        [0x1_8000, 0],
        false,
        0xffff_8000,
        false,
    ),
    ("s_ff0_i32_b32 s2, s0", [0x5555_5555, 0], false, 1, false),
    (
        "s_ff0_i32_b32 s2, s0",
        [0xffff_ffff, 0],
        false,
        0xffff_ffff,
        false,
    ),
    ("s_ff1_i32_b32 s2, s0", [0, 0], false, 0xffff_ffff, false),
    ("s_ff1_i32_b32 s2, s0", [0x1_0000, 0], false, 16, false),
    ("s_ff1_i32_b64 s2, s[0:1]", [0, 2], false, 33, false),
    ("s_flbit_i32_b32 s2, s0", [0xcccc, 0], false, 16, false),
    ("s_flbit_i32_b64 s2, s[0:1]", [0xcccc, 0], false, 48, false),
    ("s_flbit_i32 s2, s0", [0xffff_3333, 0], false, 16, false),
    (
        "s_flbit_i32 s2, s0",
        [0xffff_ffff, 0],
        false,
        0xffff_ffff,
        false,
    ),
    ("s_flbit_i32 s2, s0", [0x8000_0000, 0], false, 1, false),
    (
        "s_flbit_i32_i64 s2, s[0:1]",
        [0, 0xffff_ffff],
        false,
        32,
        false,
    ),
    ("s_bitset1_b32 s2, s0", [33, 0], false, 79, false),
    ("s_bitset0_b32 s2, s0", [0, 0], false, 76, false),
    ("s_not_b32 s2, s0", [0xffff_ffff, 0], true, 0, false),
    (
        "s_wqm_b32 s2, s0",
        [0x0100_0020, 0],
        false,
        0x0f00_00f0,
        true,
    ),
    ("s_quadmask_b32 s2, s0", [0x0100_0020, 0], false, 0x42, true),
    ("s_abs_i32 s2, s0", [0xffff_fff0, 0], false, 16, true),
    ("s_bcnt0_i32_b32 s2, s0", [0xffff_ffff, 0], true, 0, false),
    ("s_bcnt1_i32_b64 s2, s[0:1]", [0xff, 0xf], false, 12, true),
    ("s_movk_i32 s2, 0xff80", [0, 0], true, 0xffff_ff80, true),
    ("s_movk_i32 s2, -128", [0, 0], false, 0xffff_ff80, false),
    ("s_cmovk_i32 s2, 5", [0, 0], true, 5, true),
    ("s_addk_i32 s2, -78", [0, 0], false, 0xffff_ffff, false),
    ("s_mulk_i32 s2, 0xffff", [0, 0], true, 0xffff_ffb3, true),
    (
        "s_cmpk_eq_i32 s0, 0xffff",
        [0xffff_ffff, 0],
        false,
        77,
        true,
    ),
    (
        "s_cmpk_eq_u32 s0, 0xffff",
        [0xffff_ffff, 0],
        true,
        77,
        false,
    ),
    ("s_cmpk_lt_i32 s0, 3", [0xffff_ffff, 0], false, 77, true),
    ("s_cmpk_gt_u32 s0, 0xffff", [0x1_0000, 0], false, 77, true),
    ("s_cmp_lt_i32 s0, s1", [0xffff_ffff, 1], false, 77, true),
    ("s_cmp_lt_u32 s0, s1", [0xffff_ffff, 1], true, 77, false),
    ("s_cmp_lg_u32 s0, s1", [1, 1], true, 77, false),
    ("s_cmp_ge_i32 s0, s1", [1, 1], false, 77, true),
    ("s_bitcmp1_b32 s0, s1", [4, 34], false, 77, true),
    ("s_bitcmp0_b32 s0, s1", [4, 2], true, 77, false),
    ("s_bitcmp1_b64 s[0:1], 32", [0, 1], false, 77, true),
];

#[test]
fn words_and_conditions() {
    for (code, sources, scc, want, want_scc) in WORDS {
        let mut wave = wave();
        wave.sgpr[..3].copy_from_slice(&[sources[0], sources[1], 77]);
        wave.scc = *scc;
        run(&mut wave, code);
        assert_eq!(
            (wave.sgpr[2], wave.scc),
            (*want, *want_scc),
            "{code} {sources:x?}"
        );
    }
}

/// Text, `s[0:1]` and `s[2:3]`, `s[4:5]` and SCC after.
const WIDE: &[(&str, [u64; 2], u64, bool)] = &[
    (
        "s_and_b64 s[4:5], s[0:1], s[2:3]",
        [0xf << 40, 5 << 40],
        5 << 40,
        true,
    ),
    ("s_xor_b64 s[4:5], s[0:1], s[2:3]", [7, 7], 0, false),
    (
        "s_andn2_b64 s[4:5], s[0:1], s[2:3]",
        [u64::MAX, 1],
        u64::MAX - 1,
        true,
    ),
    ("s_orn2_b64 s[4:5], s[0:1], s[2:3]", [0, u64::MAX], 0, false),
    ("s_nor_b64 s[4:5], s[0:1], s[2:3]", [1, 2], !3, true),
    ("s_lshl_b64 s[4:5], s[0:1], s2", [1, 40], 1 << 40, true),
    ("s_lshr_b64 s[4:5], s[0:1], s2", [1 << 63, 63], 1, true),
    (
        "s_ashr_i64 s[4:5], s[0:1], s2",
        [1 << 63, 63],
        u64::MAX,
        true,
    ),
    (
        "s_bfe_u64 s[4:5], s[0:1], s2",
        [0x1234 << 40, 0x10_0028],
        0x1234,
        true,
    ),
    (
        "s_bfe_i64 s[4:5], s[0:1], s2",
        [0xf234 << 40, 0x10_0028],
        !0xffff | 0xf234,
        true,
    ),
    ("s_not_b64 s[4:5], s[0:1]", [u64::MAX, 0], 0, false),
    ("s_wqm_b64 s[4:5], s[0:1]", [1 << 62, 0], 0xf << 60, true),
    ("s_cmp_eq_u64 s[0:1], s[2:3]", [1 << 40, 1 << 40], 0, true),
    ("s_cmp_lg_u64 s[0:1], s[2:3]", [1 << 40, 1 << 40], 0, false),
];

#[test]
fn pairs_of_words() {
    for (code, sources, want, scc) in WIDE {
        let mut wave = wave();
        for (index, value) in sources.iter().enumerate() {
            wave.sgpr[2 * index] = *value as u32;
            wave.sgpr[2 * index + 1] = (*value >> 32) as u32;
        }
        wave.scc = !scc;
        run(&mut wave, code);
        let got = u64::from(wave.sgpr[4]) | u64::from(wave.sgpr[5]) << 32;
        assert_eq!((got, wave.scc), (*want, *scc), "{code}");
    }
}

#[test]
fn moves_do_not_touch_scc() {
    for scc in [false, true] {
        let mut wave = wave();
        wave.scc = scc;
        run(
            &mut wave,
            "s_mov_b64 s[0:1], -1\n s_mov_b32 s2, 1.0\n s_bfm_b64 s[4:5], 40, 4\n s_mov_b32 m0, s2",
        );
        assert_eq!(wave.sgpr[..3], [u32::MAX, u32::MAX, 0x3f80_0000]);
        assert_eq!(wave.sgpr[4..6], [0xffff_fff0, 0xfff]);
        assert_eq!((wave.m0, wave.scc), (0x3f80_0000, scc));
    }
}

#[test]
fn exec_is_saved_and_changed() {
    // Text of the operation, EXEC and SCC behind it; it starts as 0xff and meets 0x3c.
    for (op, exec) in [
        ("and", 0x3c),
        ("or", 0xff),
        ("xor", 0xc3),
        ("andn2", 0),
        ("orn2", !0xc3),
        ("nand", !0x3c),
        ("nor", !0xff),
        ("xnor", !0xc3),
        ("andn1", 0xc3),
        ("orn1", !0),
    ] {
        let mut wave = wave();
        wave.exec = 0xff;
        wave.scc = exec == 0;
        run(
            &mut wave,
            &format!("s_mov_b64 s[0:1], 0x3c\n s_{op}_saveexec_b64 s[2:3], s[0:1]"),
        );
        assert_eq!((wave.exec, wave.scc), (exec, exec != 0), "{op}");
        assert_eq!(wave.sgpr[2..4], [0xff, 0], "{op}");
    }
    let mut wave = wave();
    (wave.exec, wave.vcc) = (0xff, 0x3c);
    run(&mut wave, "s_and_saveexec_b64 vcc, vcc");
    assert_eq!((wave.exec, wave.vcc), (0x3c, 0xff));
    run(&mut wave, "s_andn1_wrexec_b64 s[0:1], 0xc");
    assert_eq!((wave.exec, wave.sgpr[0]), (0x30, 0x30));
}

#[test]
fn mode_is_a_word() {
    let mut wave = wave();
    let flush = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 4, 2), 0";
    run(
        &mut wave,
        &format!("{flush}\n s_getreg_b32 s0, hwreg(HW_REG_MODE, 4, 4)"),
    );
    assert!(wave.flush_32);
    assert_eq!(wave.sgpr[0], 0b1100);
    run(
        &mut wave,
        "s_mov_b32 s1, 0xf\n s_setreg_b32 hwreg(HW_REG_MODE, 4, 2), s1",
    );
    assert!(!wave.flush_32);
    let round = "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 0, 2), 3";
    assert_eq!(
        try_run(&mut wave, Arch::Gfx950, round),
        Err(Fault::Unsupported)
    );
    let other = "s_getreg_b32 s0, hwreg(HW_REG_HW_ID)";
    assert_eq!(
        try_run(&mut wave, Arch::Gfx950, other),
        Err(Fault::Unsupported)
    );
}
