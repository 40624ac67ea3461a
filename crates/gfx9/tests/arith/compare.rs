//! Comparisons and classes.

use super::{all, numbers, run, wave};

#[test]
fn comparisons_of_every_kind() {
    let values = [f32::NAN, -1.0, -0.0, 0.0, 1.0, f32::INFINITY];
    let names = [
        ("f", 0b0000),
        ("lt", 0b0001),
        ("eq", 0b0010),
        ("le", 0b0011),
        ("gt", 0b0100),
        ("lg", 0b0101),
        ("ge", 0b0110),
        ("o", 0b0111),
        ("u", 0b1000),
        ("nge", 0b1001),
        ("nlg", 0b1010),
        ("ngt", 0b1011),
        ("nle", 0b1100),
        ("neq", 0b1101),
        ("nlt", 0b1110),
        ("tru", 0b1111),
    ];
    for (name, holds) in names {
        for a in values {
            for b in values {
                let relation = match a.partial_cmp(&b) {
                    Some(order) => 1 << (order as i8 + 1),
                    None => 8,
                };
                let want = if holds & relation != 0 { u64::MAX } else { 0 };
                let mut wave = wave();
                let half = |x: f32| match x {
                    x if x.is_nan() => 0x7e00,
                    x if x.is_infinite() => 0x7c00,
                    x => (x.to_bits() >> 16 & 0x8000) | if x == 0.0 { 0 } else { 0x3c00 },
                };
                wave.vgpr[0] = all(a.to_bits());
                wave.vgpr[1] = all(b.to_bits());
                (wave.vgpr[2], wave.vgpr[3]) = (all(half(a)), all(half(b)));
                run(
                    &mut wave,
                    "v_cvt_f64_f32_e32 v[4:5], v0\n v_cvt_f64_f32_e32 v[6:7], v1",
                );
                for (kind, a, b) in [
                    ("f32", "v0", "v1"),
                    ("f16", "v2", "v3"),
                    ("f64", "v[4:5]", "v[6:7]"),
                ] {
                    run(&mut wave, &format!("v_cmp_{name}_{kind}_e32 vcc, {a}, {b}"));
                    assert_eq!(wave.vcc, want, "{name} {kind} {a} {b}");
                }
            }
        }
    }
    for (name, holds) in [
        ("f", 0),
        ("lt", 1),
        ("eq", 2),
        ("le", 3),
        ("gt", 4),
        ("ne", 5),
        ("ge", 6),
        ("t", 7),
    ] {
        for (a, b) in [
            (0u64, u64::MAX),
            (3, 3),
            (u64::MAX, 1),
            (0x7fff, 0x8000),
            (1 << 40, 2 << 40),
        ] {
            let mut wave = wave();
            for (register, value) in [(0, a), (2, b)] {
                wave.vgpr[register] = all(value as u32);
                wave.vgpr[register + 1] = all((value >> 32) as u32);
            }
            let orders = [
                ("i16", (a as i16).cmp(&(b as i16))),
                ("u16", (a as u16).cmp(&(b as u16))),
                ("i32", (a as i32).cmp(&(b as i32))),
                ("u32", (a as u32).cmp(&(b as u32))),
                ("i64", (a as i64).cmp(&(b as i64))),
                ("u64", a.cmp(&b)),
            ];
            for (kind, order) in orders {
                let wide = kind.ends_with("64");
                let (x, y) = if wide {
                    ("v[0:1]", "v[2:3]")
                } else {
                    ("v0", "v2")
                };
                run(
                    &mut wave,
                    &format!("v_cmp_{name}_{kind}_e64 s[0:1], {x}, {y}"),
                );
                let want = if holds & 1 << (order as i8 + 1) != 0 {
                    u32::MAX
                } else {
                    0
                };
                assert_eq!(wave.sgpr[0], want, "{name} {kind} {a:x} {b:x}");
            }
        }
    }
}

#[test]
fn comparisons_may_write_exec() {
    let mut wave = wave();
    wave.vgpr[0] = numbers();
    wave.exec = 0xffff;
    run(&mut wave, "v_cmpx_gt_u32_e32 vcc, 4, v0");
    assert_eq!((wave.exec, wave.vcc), (0xf, 0xf));
}

#[test]
fn classes_of_floats() {
    // The bit of each class, and bits of it.
    let classes = [
        (0, 0x7f80_0001),
        (1, 0x7fc0_0000),
        (2, 0xff80_0000),
        (3, 0xbf80_0000),
        (4, 0x8000_0001),
        (5, 0x8000_0000),
        (6, 0),
        (7, 1),
        (8, 0x3f80_0000),
        (9, 0x7f80_0000),
    ];
    for (class, bits) in classes {
        for asked in 0..10 {
            let mut wave = wave();
            (wave.vgpr[0], wave.vgpr[1]) = (all(bits), all(1 << asked));
            run(&mut wave, "v_cmp_class_f32_e32 vcc, v0, v1");
            assert_eq!(
                wave.vcc,
                if asked == class { u64::MAX } else { 0 },
                "{bits:x} {asked}"
            );
        }
    }
    let mut wave = wave();
    wave.vgpr[0] = all(0x8001);
    run(&mut wave, "v_cmp_class_f16_e64 s[0:1], v0, 16");
    assert_eq!(wave.sgpr[0], u32::MAX);
}
