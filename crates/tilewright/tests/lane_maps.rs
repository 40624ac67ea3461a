//! The lane maps by which operands are laid out are those by which the emulator's matrix unit
//! multiplies. Of each pair of formats one order of K is right for both, so a map of one of them that
//! has another order is seen; scales show which elements are the 32 that share one.

use tilewright::gfx9::asm;
use tilewright::gfx9::emu::{Arch, LANES, Wave};
use tilewright::ir::small_float::{float_from_bits, float_to_bits};
use tilewright::ir::{MmaFamily, MmaInst, Scalar};
use tilewright::layout::lanes::{Operand, lane_map};

/// As `cbsz` and `blgp` number them.
const FORMATS: [Scalar; 5] = [
    Scalar::F8E4M3FN,
    Scalar::F8E5M2,
    Scalar::F6E2M3,
    Scalar::F6E3M2,
    Scalar::F4E2M1,
];

// The first registers of A, B, their scales, and C.
const A: usize = 0;
const B: usize = 8;
const SA: usize = 16;
const SB: usize = 17;
const C: usize = 32;

#[test]
fn operands_lie_where_the_matrix_unit_takes_them() {
    for (m, k) in [(16, 128), (32, 64)] {
        for a in 0..FORMATS.len() {
            for b in 0..FORMATS.len() {
                for scaled in [false, true] {
                    check([m, k], [a, b], scaled);
                }
            }
        }
    }
}

fn check([m, k]: [u16; 2], formats: [usize; 2], scaled: bool) {
    let [a, b] = formats.map(|format| FORMATS[format]);
    let inst = MmaInst {
        family: MmaFamily::Mfma,
        m,
        n: m,
        k,
        a,
        b,
        acc: Scalar::F32,
        scaled,
    };
    let element = |seed: usize, i: i64, k: i64| {
        let at = (i * 31 + k * 7 + i * k + seed as i64) % 8;
        [0.0, 1.0, -2.0, 3.0, 0.5, -1.0, 4.0, -1.5][at as usize]
    };
    let scale = |seed: usize, i: i64, k: i64| match scaled {
        true => 2f64.powi(((i * 5 + k / 32 * 3 + seed as i64) % 7) as i32 - 3),
        false => 1.0,
    };
    let mut wave = Wave::new(0, 104, 256, 256);
    hold(&mut wave, A, (&inst, Operand::A), |at| {
        element(1, at[0], at[1])
    });
    hold(&mut wave, B, (&inst, Operand::B), |at| {
        element(2, at[1], at[0])
    });
    if scaled {
        let of = |seed, i, run| scale(seed, i, 32 * run);
        hold(&mut wave, SA, (&inst, Operand::ScaleA), |at| {
            of(1, at[0], at[1])
        });
        hold(&mut wave, SB, (&inst, Operand::ScaleB), |at| {
            of(2, at[1], at[0])
        });
    }
    let operand = |first: usize, format: usize| {
        let words = 32 * FORMATS[format].bits() as usize / 32;
        format!("v[{first}:{}]", first + words - 1)
    };
    let registers = usize::from(m) * usize::from(m) / LANES;
    let [first, last] = [C, C + registers - 1];
    let code = format!(
        "v_mfma_{}f32_{m}x{m}x{k}_f8f6f4 v[{first}:{last}], {}, {}, 0{} cbsz:{} blgp:{}",
        if scaled { "scale_" } else { "" },
        operand(A, formats[0]),
        operand(B, formats[1]),
        if scaled {
            ", v16, v17 op_sel_hi:[0,0,0]"
        } else {
            ""
        },
        formats[0],
        formats[1],
    );
    let program = asm::parse(&format!("f:\n{code}\n")).expect("one instruction");
    let instruction = &program.functions[0].instructions[0];
    let ran = wave.compute(instruction, Arch::Gfx950);
    ran.unwrap_or_else(|fault| panic!("{code}: {fault}"));
    let map = lane_map(&inst, Operand::C).expect("a map");
    for i in 0..i64::from(m) {
        for j in 0..i64::from(m) {
            let at = map.holder(&[i, j], 0);
            let found = f32::from_bits(wave.vgpr[C + at.slot as usize][at.thread as usize]);
            let term =
                |k: i64| element(1, i, k) * scale(1, i, k) * element(2, j, k) * scale(2, j, k);
            let sum: f64 = (0..i64::from(k)).map(term).sum();
            assert_eq!(f64::from(found), sum, "{code}: row {i}, column {j}");
        }
    }
}

/// Puts a matrix into registers by its lane map.
fn hold(
    wave: &mut Wave,
    first: usize,
    (inst, operand): (&MmaInst, Operand),
    value: impl Fn([i64; 2]) -> f64,
) {
    let map = lane_map(inst, operand).expect("a map");
    let scalar = match operand {
        Operand::ScaleA | Operand::ScaleB => Scalar::F8E8M0,
        Operand::B => inst.b,
        _ => inst.a,
    };
    let bits = scalar.bits() as usize;
    let [rows, columns] = operand.shape(inst);
    for row in 0..rows {
        for column in 0..columns {
            let value = value([row, column]);
            let code = float_to_bits(scalar, value);
            assert_eq!(float_from_bits(scalar, code), value, "{scalar} has {value}");
            let at = map.holder(&[row, column], 0);
            let (lane, place) = (at.thread as usize, at.slot as usize * bits);
            // An element of six bits may end in the next register.
            let code = code << (place % 32);
            let register = first + place / 32;
            wave.vgpr[register][lane] |= code as u32;
            wave.vgpr[register + 1][lane] |= (code >> 32) as u32;
        }
    }
}
