//! From lane to lane.

use super::{LANES, all, numbers, run, wave};

/// What `v0` gets of `v1`, the lanes' numbers, by a permutation; -1 where it keeps what it had.
fn moved(modifiers: &str, exec: u64) -> [i32; LANES] {
    let mut wave = wave();
    wave.vgpr[0] = all(u32::MAX);
    wave.vgpr[1] = numbers();
    wave.exec = exec;
    run(&mut wave, &format!("v_mov_b32_dpp v0, v1 {modifiers}"));
    wave.vgpr[0].map(|value| value as i32)
}

#[test]
fn lanes_read_other_lanes() {
    type Map = fn(i32) -> i32;
    let cases: &[(&str, Map)] = &[
        ("quad_perm:[1,0,3,2]", |l| l ^ 1),
        ("quad_perm:[0,0,2,2]", |l| l & !1),
        ("row_shl:1", |l| if l % 16 < 15 { l + 1 } else { -1 }),
        ("row_shl:5", |l| if l % 16 < 11 { l + 5 } else { -1 }),
        ("row_shr:1", |l| if l % 16 > 0 { l - 1 } else { -1 }),
        ("row_shr:15", |l| if l % 16 == 15 { l - 15 } else { -1 }),
        ("row_ror:4", |l| (l & !15) + (l + 12) % 16),
        ("wave_shl:1", |l| if l < 63 { l + 1 } else { -1 }),
        ("wave_rol:1", |l| (l + 1) % 64),
        ("wave_shr:1", |l| l - 1),
        ("wave_ror:1", |l| (l + 63) % 64),
        ("row_mirror", |l| (l & !15) + 15 - l % 16),
        ("row_half_mirror", |l| (l & !7) + 7 - l % 8),
        (
            "row_bcast:15",
            |l| if l < 16 { -1 } else { l / 16 * 16 - 1 },
        ),
        ("row_bcast:31", |l| if l < 32 { -1 } else { 31 }),
        ("row_newbcast:3", |l| l & !15 | 3),
    ];
    for (modifiers, map) in cases {
        let want: [i32; LANES] = std::array::from_fn(|lane| map(lane as i32));
        let got = moved(&format!("{modifiers} row_mask:0xf bank_mask:0xf"), u64::MAX);
        assert_eq!(got, want, "{modifiers}");
        // Where nothing is read, zero is, if that is asked for.
        let got = moved(
            &format!("{modifiers} row_mask:0xf bank_mask:0xf bound_ctrl:1"),
            u64::MAX,
        );
        assert_eq!(got, want.map(|from| from.max(0)), "{modifiers}");
        // Rows 1 and 3, and of those the banks 0 and 2.
        let got = moved(&format!("{modifiers} row_mask:0xa bank_mask:0x5"), u64::MAX);
        for lane in 0..LANES {
            let on = lane / 16 % 2 == 1 && lane / 4 % 2 == 0;
            assert_eq!(
                got[lane],
                if on { want[lane] } else { -1 },
                "{modifiers} {lane}"
            );
        }
    }
    // A lane that is not active is no source, and is not written.
    let got = moved("row_shr:1 row_mask:0xf bank_mask:0xf", 0b1011);
    assert_eq!(got[..5], [-1, 0, -1, -1, -1]);
}

#[test]
fn operations_on_other_lanes() {
    let mut wave = wave();
    wave.vgpr[0] = all(1000);
    wave.vgpr[1] = numbers();
    wave.vgpr[2] = all(100);
    let ends = "row_mask:0xf bank_mask:0xf";
    run(
        &mut wave,
        &format!(
            "v_add_u32_dpp v0, v1, v2 quad_perm:[3,2,1,0] {ends}
             v_cvt_f32_u32_e32 v3, v1
             v_sub_f32_dpp v4, -v3, |v3| row_newbcast:2 {ends}
             v_mov_b64_dpp v[6:7], v[1:2] row_newbcast:5 {ends}"
        ),
    );
    assert_eq!(wave.vgpr[0][..4], [103, 102, 101, 100]);
    assert_eq!(f32::from_bits(wave.vgpr[4][17]), -18.0 - 17.0);
    assert_eq!((wave.vgpr[6][20], wave.vgpr[7][20]), (21, 100));
}

#[test]
fn a_lane_and_the_wave() {
    let mut wave = wave();
    wave.vgpr[0] = numbers();
    wave.exec = 0xf00;
    run(
        &mut wave,
        "v_readfirstlane_b32 s0, v0\n v_readlane_b32 s1, v0, 3",
    );
    assert_eq!(wave.sgpr[..2], [8, 3]);
    wave.exec = 0;
    run(&mut wave, "v_readfirstlane_b32 s0, v0");
    assert_eq!(wave.sgpr[0], 0);
    run(
        &mut wave,
        "s_mov_b32 s2, 70\n v_writelane_b32 v0, s2, s2\n v_readlane_b32 s3, v0, 6",
    );
    assert_eq!((wave.vgpr[0][6], wave.sgpr[3]), (70, 70));
}

#[test]
fn lanes_are_counted() {
    let mut wave = wave();
    run(
        &mut wave,
        "v_mbcnt_lo_u32_b32 v0, -1, 0\n v_mbcnt_hi_u32_b32 v0, -1, v0",
    );
    assert_eq!(wave.vgpr[0], numbers());
    wave.vcc = 0xff00_0000_0000_00f0;
    run(
        &mut wave,
        "v_mbcnt_lo_u32_b32 v0, vcc_lo, 0\n v_mbcnt_hi_u32_b32 v0, vcc_hi, v0",
    );
    assert_eq!(
        [0, 5, 40, 57, 63].map(|lane| wave.vgpr[0][lane]),
        [0, 1, 4, 5, 11]
    );
}

#[test]
fn registers_are_swapped() {
    let mut wave = wave();
    let set = |wave: &mut super::Wave| {
        wave.vgpr[0] = numbers();
        wave.vgpr[1] = numbers().map(|lane| lane + 100);
    };
    set(&mut wave);
    run(&mut wave, "v_swap_b32 v0, v1");
    assert_eq!((wave.vgpr[0][7], wave.vgpr[1][7]), (107, 7));
    set(&mut wave);
    run(&mut wave, "v_permlane32_swap_b32_e32 v0, v1");
    assert_eq!((wave.vgpr[0][3], wave.vgpr[0][35]), (3, 103));
    assert_eq!((wave.vgpr[1][3], wave.vgpr[1][35]), (35, 135));
    set(&mut wave);
    run(&mut wave, "v_permlane16_swap_b32_e32 v0, v1");
    assert_eq!(
        [3, 19, 35, 51].map(|lane| wave.vgpr[0][lane]),
        [3, 103, 35, 135]
    );
    assert_eq!(
        [3, 19, 35, 51].map(|lane| wave.vgpr[1][lane]),
        [19, 119, 51, 151]
    );
}
