//! Wait states: each row of the table at its edge, on all ways, and in compiled code.
//!
//! The distances are written down here again, so that a row that is changed by mistake is seen.

use tilewright_gfx9::asm::parse;
use tilewright_gfx9::audit::{Expectation, Kind, audit};

const GEMM: &str = include_str!("asm/gemm.s");
const HALVES: &str = include_str!("asm/gemm_halves.s");

fn hazards(code: &str, arch: &str) -> Vec<String> {
    let program = parse(code).expect("assembly");
    let reports = program
        .functions
        .iter()
        .map(|f| audit(f, arch, &Expectation::default()));
    let findings = reports.flat_map(|report| report.findings);
    let hazards = findings.filter(|f| f.kind == Kind::Hazard);
    hazards.map(|f| f.to_string()).collect()
}

/// `front`, so many wait states, `behind`.
fn apart(front: &str, states: u32, behind: &str) -> String {
    let mut nops = String::new();
    let mut left = states;
    while left > 0 {
        let some = left.min(8);
        nops += &format!("\ts_nop {}\n", some - 1);
        left -= some;
    }
    format!("f:\n\t{front}\n{nops}\t{behind}\n\ts_endpgm\n")
}

/// Pairs and the states between them, on gfx942 and on gfx950.
#[rustfmt::skip]
const PAIRS: &[(&str, &str, [u32; 2])] = &[
    // Scalar registers that vector instructions write.
    ("v_readfirstlane_b32 s4, v0", "buffer_load_dwordx4 v1, s[8:11], s4 offen lds", [5, 5]),
    ("v_readfirstlane_b32 s9, v0", "buffer_load_dword v1, v2, s[8:11], 0 offen", [5, 5]),
    ("v_readlane_b32 s4, v0, 3", "global_load_dword v1, v2, s[4:5]", [5, 5]),
    ("v_cmp_gt_u32_e64 s[4:5], v0, v1", "global_store_dword v1, v2, s[4:5]", [5, 5]),
    ("v_readfirstlane_b32 s4, v0", "v_readlane_b32 s5, v1, s4", [4, 4]),
    ("v_cmp_gt_u32_e32 vcc, v0, v1", "v_writelane_b32 v2, s1, vcc_lo", [4, 4]),
    ("v_div_scale_f32 v0, vcc, v1, v2, v1", "v_div_fmas_f32 v3, v3, v4, v5", [4, 4]),
    ("v_readfirstlane_b32 s4, v0", "v_add_u32_e32 v1, s4, v2", [2, 2]),
    ("v_cmp_gt_u32_e64 s[4:5], v0, v1", "v_cndmask_b32_e64 v2, v3, v4, s[4:5]", [2, 2]),
    ("v_cmp_gt_u32_e32 vcc, v0, v1", "v_cndmask_b32_e32 v2, v3, v4, vcc", [2, 2]),
    ("v_cmpx_gt_u32_e32 vcc, v0, v1", "v_mov_b32_dpp v2, v3 quad_perm:[1,0,3,2] row_mask:0xf bank_mask:0xf", [5, 5]),
    ("v_cmpx_gt_u32_e32 vcc, v0, v1", "v_readfirstlane_b32 s4, v3", [4, 4]),
    ("v_cmpx_gt_u32_e32 vcc, v0, v1", "v_permlane32_swap_b32_e32 v2, v3", [4, 4]),
    ("v_cmpx_gt_u32_e32 vcc, v0, v1", "v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", [4, 4]),
    ("s_mov_b32 m0, s9", "buffer_load_dword v1, s[8:11], 0 offen lds", [1, 1]),
    ("s_add_i32 m0, s9, 64", "global_load_lds_dword v[2:3], off", [1, 1]),
    ("s_mov_b32 m0, s9", "s_sendmsg sendmsg(MSG_INTERRUPT)", [1, 1]),
    ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 2), 1", "s_getreg_b32 s0, hwreg(HW_REG_MODE)", [2, 2]),
    ("s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 2), 1", "s_setreg_b32 hwreg(HW_REG_MODE, 0, 4), s1", [2, 2]),
    // Vector registers.
    ("v_mov_b32_e32 v3, v0", "v_mov_b32_dpp v2, v3 row_shr:1 row_mask:0xf bank_mask:0xf", [2, 2]),
    ("v_mov_b32_e32 v3, v0", "v_readfirstlane_b32 s4, v3", [1, 1]),
    ("v_mov_b32_e32 v3, v0", "v_permlane16_swap_b32_e32 v2, v3", [2, 2]),
    ("v_exp_f32_e32 v3, v0", "v_add_f32_e32 v1, v3, v2", [1, 1]),
    ("v_cvt_f16_f32_sdwa v3, v0 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD", "v_or_b32_e32 v1, v3, v2", [1, 1]),
    ("v_cvt_f16_f32_sdwa v3, v0 dst_sel:WORD_1 dst_unused:UNUSED_PAD src0_sel:DWORD", "v_mov_b32_e32 v3, v2", [1, 1]),
    ("v_cvt_pk_fp8_f32 v3, v0, v1 op_sel:[0,0,1]", "v_mov_b32_e32 v2, v3", [1, 1]),
    ("global_store_dwordx4 v[0:1], v[4:7], off", "v_mov_b32_e32 v7, 0", [2, 2]),
    ("global_store_dwordx3 v0, v[4:6], s[2:3]", "v_mov_b32_e32 v4, 0", [2, 2]),
    ("buffer_store_dwordx4 v[4:7], v0, s[8:11], 0 offen", "v_mov_b32_e32 v5, 0", [2, 2]),
    ("buffer_store_dwordx4 v[4:7], v0, s[8:11], s4 offen", "v_mov_b32_e32 v5, 0", [1, 1]),
    ("v_dot4c_i32_i8_e32 v3, v0, v1", "v_add_u32_e32 v2, v3, v4", [3, 3]),
    ("v_dot4c_i32_i8_e32 v3, v0, v1", "v_dot4c_i32_i8_e32 v5, v3, v1", [3, 3]),
    ("v_dot4c_i32_i8_e32 v3, v0, v1", "v_mov_b32_e32 v3, 0", [3, 3]),
    ("v_dot2_f32_f16 v3, v0, v1, v2", "global_store_dword v[8:9], v3, off", [3, 3]),
    // Matrix instructions of 4, 8 and 16 passes, and of 2.
    ("v_mov_b32_e32 v2, v0", "v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", [2, 2]),
    ("v_mov_b32_e32 v8, v0", "v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", [2, 2]),
    ("v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "v_add_f32_e32 v0, v8, v1", [7, 8]),
    ("v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "global_store_dwordx4 v[0:1], v[8:11], off", [7, 8]),
    ("v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "ds_write_b32 v0, v11", [7, 8]),
    ("v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "v_mov_b32_e32 v10, 0", [7, 8]),
    ("v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "ds_read_b32 v10, v0", [7, 8]),
    ("v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "v_mfma_f32_16x16x16_f16 v[16:19], v[10:11], v[4:5], v[16:19]", [7, 8]),
    ("v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "v_mfma_f32_16x16x16_f16 v[16:19], v[2:3], v[4:5], v[10:13]", [5, 6]),
    ("v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", [0, 0]),
    ("v_mfma_f32_16x16x16_f16 v[16:19], v[2:3], v[4:5], v[8:11]", "v_mov_b32_e32 v9, 0", [3, 3]),
    ("v_mfma_f32_32x32x8_f16 v[8:23], v[2:3], v[4:5], v[8:23]", "v_add_f32_e32 v0, v23, v1", [11, 12]),
    ("v_mfma_f32_32x32x8_f16 v[8:23], v[2:3], v[4:5], v[8:23]", "v_mfma_f32_32x32x8_f16 v[24:39], v[2:3], v[4:5], v[20:35]", [9, 10]),
    ("v_mfma_f32_32x32x8_f16 v[40:55], v[2:3], v[4:5], v[8:23]", "v_mov_b32_e32 v9, 0", [7, 7]),
    ("v_mfma_f32_32x32x4_2b_f16 v[8:39], v[2:3], v[4:5], v[8:39]", "v_add_f32_e32 v0, v23, v1", [19, 20]),
    ("v_mfma_f32_32x32x4_2b_f16 v[40:71], v[2:3], v[4:5], v[8:39]", "v_mov_b32_e32 v9, 0", [15, 15]),
    ("v_mfma_f32_4x4x4_16b_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "v_add_f32_e32 v0, v8, v1", [5, 5]),
    ("v_mfma_f32_4x4x4_16b_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "v_mfma_f32_4x4x4_16b_f16 v[8:11], v[2:3], v[4:5], v[8:11]", [2, 2]),
    ("v_mfma_f32_4x4x4_16b_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "v_mfma_f32_4x4x4_16b_f16 v[12:15], v[2:3], v[4:5], v[10:13]", [3, 4]),
    ("v_mfma_f32_4x4x4_16b_f16 v[12:15], v[2:3], v[4:5], v[8:11]", "v_mov_b32_e32 v9, 0", [1, 1]),
    // Elements of 8 bits take twice the passes of smaller ones.
    ("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:15], v[16:23], v[0:3]", "v_add_f32_e32 v4, v0, v1", [11, 12]),
    ("v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[8:11], v[16:19], v[0:3] cbsz:4 blgp:4", "v_add_f32_e32 v4, v0, v1", [7, 8]),
    // Products of floats.
    ("v_mfma_f32_16x16x4_f32 v[8:11], v2, v3, v[8:11]", "v_add_f32_e32 v0, v8, v1", [10, 10]),
    ("v_mfma_f32_16x16x4_f32 v[8:11], v2, v3, v[8:11]", "v_mfma_f32_16x16x4_f32 v[12:15], v2, v3, v[10:13]", [8, 8]),
    ("v_mfma_f32_16x16x4_f32 v[8:11], v2, v3, v[8:11]", "v_mfma_f32_16x16x4_f32 v[12:15], v8, v3, v[12:15]", [10, 10]),
    ("v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]", "v_mfma_f32_16x16x4_f32 v[12:15], v2, v3, v[10:13]", [5, 6]),
    // Products of doubles.
    ("v_mfma_f64_16x16x4_f64 v[8:15], v[2:3], v[4:5], v[8:15]", "v_add_f64 v[0:1], v[8:9], v[2:3]", [11, 19]),
    ("v_mfma_f64_16x16x4_f64 v[8:15], v[2:3], v[4:5], v[8:15]", "global_store_dwordx2 v[0:1], v[8:9], off", [18, 18]),
    ("v_mfma_f64_16x16x4_f64 v[8:15], v[2:3], v[4:5], v[8:15]", "v_mfma_f64_16x16x4_f64 v[16:23], v[8:9], v[4:5], v[16:23]", [11, 19]),
    ("v_mfma_f64_4x4x4_4b_f64 v[8:9], v[2:3], v[4:5], v[8:9]", "v_mfma_f64_4x4x4_4b_f64 v[8:9], v[2:3], v[4:5], v[8:9]", [4, 4]),
    ("v_mfma_f64_4x4x4_4b_f64 v[8:9], v[2:3], v[4:5], v[8:9]", "global_store_dwordx2 v[0:1], v[8:9], off", [9, 9]),
    ("v_mfma_f64_4x4x4_4b_f64 v[8:9], v[2:3], v[4:5], v[8:9]", "v_fma_f64 v[0:1], v[12:13], v[14:15], v[16:17]", [2, 2]),
];

#[test]
fn each_distance_is_kept_to_the_state() {
    for (front, behind, states) in PAIRS {
        for (arch, states) in [("gfx942", states[0]), ("gfx950", states[1])] {
            let enough = hazards(&apart(front, states, behind), arch);
            assert!(enough.is_empty(), "{arch}, {states} states: {enough:?}");
            if let Some(few) = states.checked_sub(1) {
                let found = hazards(&apart(front, few, behind), arch);
                assert_eq!(found.len(), 1, "{arch}, {front} {few} states {behind}");
                let owed = format!("{states} are needed");
                assert!(found[0].contains(&owed), "{}", found[0]);
            }
        }
    }
}

/// What the machine waits for itself, and what is not the same register.
#[test]
fn what_is_no_hazard() {
    for (front, behind) in [
        ("v_readfirstlane_b32 s4, v0", "s_add_i32 s5, s4, 1"),
        ("v_readfirstlane_b32 s4, v0", "s_load_dword s6, s[4:5], 0x0"),
        ("v_readfirstlane_b32 s4, v0", "v_add_u32_e32 v1, s5, v2"),
        ("v_mov_b32_e32 v1, v0", "global_load_dword v2, v[0:1], off"),
        ("v_exp_f32_e32 v3, v0", "v_exp_f32_e32 v4, v3"),
        ("v_mov_b32_e32 v3, v0", "v_add_u32_e32 v1, v3, v2"),
        (
            "global_store_dwordx2 v[0:1], v[4:5], off",
            "v_mov_b32_e32 v4, 0",
        ),
        (
            "s_setreg_imm32_b32 hwreg(HW_REG_MODE, 8, 2), 1",
            "s_getreg_b32 s0, hwreg(HW_REG_HW_ID)",
        ),
        (
            "v_dot4c_i32_i8_e32 v3, v0, v1",
            "v_dot4c_i32_i8_e32 v3, v4, v1",
        ),
    ] {
        let found = hazards(&apart(front, 0, behind), "gfx950");
        assert!(found.is_empty(), "{found:?}");
    }
    // One of two words is written anew, and the other is not.
    let anew = |read: &str| {
        format!(
            "f:\n\tv_cmp_gt_u32_e64 s[4:5], v0, v1\n\ts_mov_b32 s4, s9\n\
             \tglobal_load_dword v2, v1, {read}\n\ts_endpgm\n"
        )
    };
    assert_eq!(hazards(&anew("s[4:5]"), "gfx942").len(), 1);
    assert_eq!(hazards(&anew("s[2:3]"), "gfx942").len(), 0);
    let offset = anew("s[2:3]").replace(
        "global_load_dword v2, v1, s[2:3]",
        "buffer_load_dword v2, v1, s[12:15], s4 offen",
    );
    assert_eq!(hazards(&offset, "gfx942").len(), 0);
}

/// The shortest way counts: around a loop, and where two ways meet.
/// Two products go on in registers that overlap those of two before them.
#[test]
fn sums_that_are_written_anew_are_those_of_the_later_product() {
    let code = |op: &str, last: &str| {
        format!(
            "f:\n\tv_mfma_f32_16x16x16_f16 v[6:9], v[20:21], v[30:31], v[2:5]\n\
             \tv_mfma_f32_16x16x16_f16 v[40:43], v[20:21], v[30:31], v[2:5]\n\
             \t{op} v[4:7], v[22:23], v[32:33], v[6:9]\n\
             \t{op} v[8:11], v[24:25], v[32:33], v[40:43]\n\
             \tv_mfma_f32_16x16x16_f16 v[50:53], v[26:27], v[34:35], {last}\n\ts_endpgm\n"
        )
    };
    for arch in ["gfx942", "gfx950"] {
        let same = "v_mfma_f32_16x16x16_f16";
        assert_eq!(hazards(&code(same, "v[4:7]"), arch), [""; 0]);
        assert_eq!(hazards(&code(same, "v[8:11]"), arch), [""; 0]);
        // Half of these are the first product's still.
        let first = code(same, "v[8:11]").replace("v[8:11], v[24", "v[12:15], v[24");
        assert_eq!(hazards(&first, arch).len(), 1, "{arch}");
        // Another operation may be done before the one that it follows.
        assert!(!hazards(&code("v_mfma_f32_16x16x16_bf16", "v[4:7]"), arch).is_empty());
    }
}

#[test]
fn all_ways_are_looked_at() {
    let product = "v_mfma_f32_16x16x16_f16 v[8:11], v[2:3], v[4:5], v[8:11]";
    let around = |nops: u32| {
        format!(
            "f:\n.LBB0_1:\n\tv_add_f32_e32 v0, v8, v0\n\ts_nop 0\n\t{product}\n\ts_nop {nops}\n\
             \ts_cbranch_scc0 .LBB0_1\n\ts_endpgm\n"
        )
    };
    // The branch is a state too.
    assert_eq!(hazards(&around(5), "gfx942").len(), 0);
    assert_eq!(hazards(&around(4), "gfx942").len(), 1);
    let meet = |nops: u32| {
        format!(
            "f:\n\t{product}\n\ts_cbranch_scc0 .LBB0_2\n\ts_nop 7\n.LBB0_2:\n\ts_nop {nops}\n\
             \tv_add_f32_e32 v0, v8, v0\n\ts_endpgm\n"
        )
    };
    assert_eq!(hazards(&meet(5), "gfx942").len(), 0);
    assert_eq!(hazards(&meet(4), "gfx942").len(), 1);
}

/// Each state that the compiler put into compiled kernels is one that is needed.
#[test]
fn every_state_of_the_compiler_is_asked_for() {
    let (mut all, mut found) = (0, 0);
    for text in [GEMM, HALVES] {
        assert_eq!(hazards(text, "gfx950"), [] as [String; 0]);
        let lines: Vec<&str> = text.lines().collect();
        let mut inline = false;
        for (at, line) in lines.iter().enumerate() {
            inline = (inline || line.contains("ASMSTART")) && !line.contains("ASMEND");
            let Some(states) = line.trim().strip_prefix("s_nop ") else {
                continue;
            };
            if inline {
                continue;
            }
            let states: u32 = states.trim().parse().expect("a number");
            let fewer = match states {
                0 => String::new(),
                n => format!("\ts_nop {}", n - 1),
            };
            let mut changed = lines.clone();
            changed[at] = &fewer;
            all += 1;
            found += usize::from(!hazards(&changed.join("\n"), "gfx950").is_empty());
        }
    }
    assert!(all > 5, "{all} places");
    assert_eq!(found, all);
}
