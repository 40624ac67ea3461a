//! Products of matrices against plain triple loops. Where elements lie is written down here once
//! more, from the manual's formulas.

use super::{Arch, LANES, Random, try_run, wave};
use tilewright_gfx9::emu::{Fault, Wave};

/// An instruction's name, rows (and columns), depth, blocks, and the bits and types of elements.
struct Form {
    name: &'static str,
    size: usize,
    depth: usize,
    blocks: usize,
    a: &'static str,
    b: &'static str,
    arch: Arch,
}

const fn form(
    name: &'static str,
    sizes: [usize; 3],
    a: &'static str,
    b: &'static str,
    arch: Arch,
) -> Form {
    let [size, depth, blocks] = sizes;
    Form {
        name,
        size,
        depth,
        blocks,
        a,
        b,
        arch,
    }
}

use Arch::{Gfx942, Gfx950};

const FORMS: &[Form] = &[
    form(
        "v_mfma_f32_32x32x1_2b_f32",
        [32, 1, 2],
        "f32",
        "f32",
        Gfx950,
    ),
    form(
        "v_mfma_f32_16x16x1_4b_f32",
        [16, 1, 4],
        "f32",
        "f32",
        Gfx950,
    ),
    form("v_mfma_f32_4x4x1_16b_f32", [4, 1, 16], "f32", "f32", Gfx950),
    form("v_mfma_f32_32x32x2_f32", [32, 2, 1], "f32", "f32", Gfx950),
    form("v_mfma_f32_16x16x4_f32", [16, 4, 1], "f32", "f32", Gfx950),
    form("v_mfma_f32_32x32x4_xf32", [32, 4, 1], "f32", "f32", Gfx942),
    form("v_mfma_f32_16x16x8_xf32", [16, 8, 1], "f32", "f32", Gfx942),
    form(
        "v_mfma_f32_32x32x4_2b_f16",
        [32, 4, 2],
        "f16",
        "f16",
        Gfx950,
    ),
    form(
        "v_mfma_f32_16x16x4_4b_f16",
        [16, 4, 4],
        "f16",
        "f16",
        Gfx950,
    ),
    form("v_mfma_f32_4x4x4_16b_f16", [4, 4, 16], "f16", "f16", Gfx950),
    form("v_mfma_f32_32x32x8_f16", [32, 8, 1], "f16", "f16", Gfx942),
    form("v_mfma_f32_16x16x16_f16", [16, 16, 1], "f16", "f16", Gfx942),
    form("v_mfma_f32_32x32x16_f16", [32, 16, 1], "f16", "f16", Gfx950),
    form("v_mfma_f32_16x16x32_f16", [16, 32, 1], "f16", "f16", Gfx950),
    form(
        "v_mfma_f32_32x32x4_2b_bf16",
        [32, 4, 2],
        "bf16",
        "bf16",
        Gfx950,
    ),
    form(
        "v_mfma_f32_16x16x4_4b_bf16",
        [16, 4, 4],
        "bf16",
        "bf16",
        Gfx950,
    ),
    form(
        "v_mfma_f32_4x4x4_16b_bf16",
        [4, 4, 16],
        "bf16",
        "bf16",
        Gfx950,
    ),
    form(
        "v_mfma_f32_32x32x8_bf16",
        [32, 8, 1],
        "bf16",
        "bf16",
        Gfx950,
    ),
    form(
        "v_mfma_f32_16x16x16_bf16",
        [16, 16, 1],
        "bf16",
        "bf16",
        Gfx950,
    ),
    form(
        "v_mfma_f32_32x32x16_bf16",
        [32, 16, 1],
        "bf16",
        "bf16",
        Gfx950,
    ),
    form(
        "v_mfma_f32_16x16x32_bf16",
        [16, 32, 1],
        "bf16",
        "bf16",
        Gfx950,
    ),
    form("v_mfma_i32_4x4x4_16b_i8", [4, 4, 16], "i8", "i8", Gfx950),
    form("v_mfma_i32_32x32x16_i8", [32, 16, 1], "i8", "i8", Gfx950),
    form("v_mfma_i32_16x16x32_i8", [16, 32, 1], "i8", "i8", Gfx950),
    form("v_mfma_i32_32x32x32_i8", [32, 32, 1], "i8", "i8", Gfx950),
    form("v_mfma_i32_16x16x64_i8", [16, 64, 1], "i8", "i8", Gfx950),
    form(
        "v_mfma_f32_32x32x16_fp8_fp8",
        [32, 16, 1],
        "fp8",
        "fp8",
        Gfx950,
    ),
    form(
        "v_mfma_f32_32x32x16_fp8_bf8",
        [32, 16, 1],
        "fp8",
        "bf8",
        Gfx950,
    ),
    form(
        "v_mfma_f32_32x32x16_bf8_fp8",
        [32, 16, 1],
        "bf8",
        "fp8",
        Gfx950,
    ),
    form(
        "v_mfma_f32_32x32x16_bf8_bf8",
        [32, 16, 1],
        "bf8",
        "bf8",
        Gfx950,
    ),
    form(
        "v_mfma_f32_16x16x32_fp8_fp8",
        [16, 32, 1],
        "fnuz8",
        "fnuz8",
        Gfx942,
    ),
    form(
        "v_mfma_f32_16x16x32_fp8_bf8",
        [16, 32, 1],
        "fnuz8",
        "bfnuz8",
        Gfx942,
    ),
    form(
        "v_mfma_f32_16x16x32_bf8_fp8",
        [16, 32, 1],
        "bfnuz8",
        "fnuz8",
        Gfx942,
    ),
    form(
        "v_mfma_f32_16x16x32_bf8_bf8",
        [16, 32, 1],
        "bf8",
        "bf8",
        Gfx950,
    ),
];

/// Numbers that every type holds and whose sums no order of adding rounds, with their bits.
fn element(ty: &str, random: &mut Random) -> (f64, u32) {
    let index = random.below(8) as usize;
    let value = [0.0, 0.5, 1.0, -1.0, 1.5, -2.0, 3.0, -4.0][index];
    let bits = match ty {
        "f32" => (value as f32).to_bits(),
        "bf16" => (value as f32).to_bits() >> 16,
        "f16" => [0, 0x3800, 0x3c00, 0xbc00, 0x3e00, 0xc000, 0x4200, 0xc400][index],
        "fp8" => [0, 0x30, 0x38, 0xb8, 0x3c, 0xc0, 0x44, 0xc8][index],
        "bf8" => [0, 0x38, 0x3c, 0xbc, 0x3e, 0xc0, 0x42, 0xc4][index],
        "fnuz8" => [0, 0x38, 0x40, 0xc0, 0x44, 0xc8, 0x4c, 0xd0][index],
        "bfnuz8" => [0, 0x3c, 0x40, 0xc0, 0x42, 0xc4, 0x46, 0xc8][index],
        "fp6" => [0, 0x04, 0x08, 0x28, 0x0c, 0x30, 0x14, 0x38][index],
        "bf6" => [0, 0x08, 0x0c, 0x2c, 0x0e, 0x30, 0x12, 0x34][index],
        "fp4" => [0, 1, 2, 0xa, 3, 0xc, 5, 0xe][index],
        "i8" => {
            let value = random.word() as i8;
            return (f64::from(value), u32::from(value as u8));
        }
        _ => unreachable!("{ty}"),
    };
    (value, bits)
}

fn width(ty: &str) -> usize {
    match ty {
        "f32" => 32,
        "f16" | "bf16" => 16,
        "fp6" | "bf6" => 6,
        "fp4" => 4,
        _ => 8,
    }
}

/// Puts bits at an item of a lane, in registers from `first` on.
fn put(wave: &mut Wave, first: usize, lane: usize, item: usize, width: usize, bits: u32) {
    for bit in 0..width {
        let at = width * item + bit;
        wave.vgpr[first + at / 32][lane] |= (bits >> bit & 1) << (at % 32);
    }
}

const A: usize = 16;
const B: usize = 32;
const C: usize = 64;
const D: usize = 128;

/// A matrix of each block, put where the instruction reads it; `b` says that rows are along k.
fn source(
    wave: &mut Wave,
    form: &Form,
    first: usize,
    ty: &str,
    random: &mut Random,
) -> Vec<Vec<Vec<f64>>> {
    let Form {
        size,
        depth,
        blocks,
        ..
    } = *form;
    let per_lane = depth * size * blocks / 64;
    let mut matrices = vec![vec![vec![0.0; depth]; size]; blocks];
    for (block, matrix) in matrices.iter_mut().enumerate() {
        for (row, values) in matrix.iter_mut().enumerate() {
            for (k, value) in values.iter_mut().enumerate() {
                let bits;
                (*value, bits) = element(ty, random);
                // Floats of 8 bits of the wide forms: 16 of one half of the depth, 16 of the other.
                let (item, group) = match per_lane == 32 && width(ty) == 8 {
                    true => (k % 16 + 16 * (k / (depth / 2)), k % (depth / 2) / 16),
                    false => (k % per_lane, k / per_lane),
                };
                let lane = row + size * (block + blocks * group);
                put(wave, first, lane, item, width(ty), bits);
            }
        }
    }
    matrices
}

/// Register and lane of an element of the result.
fn result(form: &Form, block: usize, i: usize, j: usize) -> (usize, usize) {
    let n = form.size;
    match (n, form.blocks) {
        // 4 rows a lane, one block behind the other in the lanes.
        (4, _) => (i, j + 4 * block),
        (16, _) => (i % 4 + 4 * block, j + 16 * (i / 4)),
        _ => (i % 4 + 4 * (i / 8) + 16 * block, j + 32 * (i / 4 % 2)),
    }
}

fn registers(first: usize, count: usize) -> String {
    match count {
        1 => format!("v{first}"),
        _ => format!("v[{first}:{}]", first + count - 1),
    }
}

/// Runs a form, with what stands behind its operands, and compares every element. `scale` is the
/// factor that scales make of a product's k.
fn check(
    form: &Form,
    behind: &str,
    prepare: impl Fn(&mut Wave),
    scale: impl Fn(usize, usize, usize) -> f64,
) {
    let mut random = Random(form.name.len() as u64 * 7919 + form.depth as u64);
    let mut wave = wave();
    let a = source(&mut wave, form, A, form.a, &mut random);
    let b = source(&mut wave, form, B, form.b, &mut random);
    let Form {
        size,
        depth,
        blocks,
        ..
    } = *form;
    let count = size * size * blocks / 64;
    let integer = form.a == "i8";
    for register in 0..count {
        wave.vgpr[C + register] = std::array::from_fn(|_| {
            let value = random.below(64) as i32 - 32;
            if integer {
                value as u32
            } else {
                (value as f32 * 0.25).to_bits()
            }
        });
    }
    prepare(&mut wave);
    let taken = |ty: &str| (width(ty) * depth * size * blocks / 64).div_ceil(32);
    let code = format!(
        "{} {}, {}, {}, {}{behind}",
        form.name,
        registers(D, count),
        registers(A, taken(form.a)),
        registers(B, taken(form.b)),
        registers(C, count),
    );
    try_run(&mut wave, form.arch, &code).unwrap_or_else(|fault| panic!("{code}: {fault}"));
    for block in 0..blocks {
        for (i, row) in a[block].iter().enumerate() {
            for (j, column) in b[block].iter().enumerate() {
                let (register, lane) = result(form, block, i, j);
                let (c, d) = (wave.vgpr[C + register][lane], wave.vgpr[D + register][lane]);
                let products = row.iter().zip(column).enumerate();
                let sum: f64 = products.map(|(k, (a, b))| a * b * scale(i, j, k)).sum();
                let want = match integer {
                    true => c.wrapping_add(sum as i32 as u32),
                    false => ((f64::from(f32::from_bits(c)) + sum) as f32).to_bits(),
                };
                assert_eq!(d, want, "{code}: block {block}, row {i}, column {j}");
            }
        }
    }
}

#[test]
fn every_form() {
    for form in FORMS {
        check(form, "", |_| {}, |_, _, _| 1.0);
    }
}

#[test]
fn small_floats_in_every_pair_of_formats() {
    let formats = ["fp8", "bf8", "fp6", "bf6", "fp4"];
    for (size, depth, name) in [
        (16, 128, "v_mfma_f32_16x16x128_f8f6f4"),
        (32, 64, "v_mfma_f32_32x32x64_f8f6f4"),
    ] {
        for (cbsz, a) in formats.into_iter().enumerate() {
            for (blgp, b) in formats.into_iter().enumerate() {
                let form = Form {
                    name,
                    size,
                    depth,
                    blocks: 1,
                    a,
                    b,
                    arch: Gfx950,
                };
                check(
                    &form,
                    &format!(" cbsz:{cbsz} blgp:{blgp}"),
                    |_| {},
                    |_, _, _| 1.0,
                );
            }
        }
    }
}

#[test]
fn scales_are_of_32_along_k() {
    let formats = ["fp8", "bf8", "fp6", "bf6", "fp4"];
    let exponent =
        |seed: usize, row: usize, part: usize| ((seed + 5 * row + 3 * part) % 7) as i32 - 3;
    for (size, depth, name) in [
        (16, 128, "v_mfma_scale_f32_16x16x128_f8f6f4"),
        (32, 64, "v_mfma_scale_f32_32x32x64_f8f6f4"),
    ] {
        for (cbsz, a) in formats.into_iter().enumerate() {
            for (blgp, b) in formats.into_iter().enumerate() {
                let (byte_a, byte_b) = (cbsz % 4, blgp % 4);
                let form = Form {
                    name,
                    size,
                    depth,
                    blocks: 1,
                    a,
                    b,
                    arch: Gfx950,
                };
                let behind = format!(
                    ", v4, v5 op_sel:[{},{},0] op_sel_hi:[{},{},0] cbsz:{cbsz} blgp:{blgp}",
                    byte_a & 1,
                    byte_b & 1,
                    byte_a >> 1,
                    byte_b >> 1,
                );
                let prepare = |wave: &mut Wave| {
                    for lane in 0..LANES {
                        let (row, part) = (lane % size, lane / size);
                        for (register, byte, seed) in [(4, byte_a, 1), (5, byte_b, 2)] {
                            let scale = (127 + exponent(seed, row, part)) as u32;
                            // Other bytes hold what must not count.
                            wave.vgpr[register][lane] =
                                0x9191_9191 & !(0xff << (8 * byte)) | scale << (8 * byte);
                        }
                    }
                };
                check(&form, &behind, prepare, |i, j, k| {
                    2f64.powi(exponent(1, i, k / 32) + exponent(2, j, k / 32))
                });
            }
        }
    }
}

#[test]
fn doubles() {
    let mut wave = wave();
    let mut random = Random(9);
    for register in (0..4).chain(8..16) {
        let step = if register % 2 == 0 {
            register
        } else {
            continue;
        };
        for lane in 0..LANES {
            let bits = (random.below(64) as f64 - 32.0).to_bits();
            wave.vgpr[step][lane] = bits as u32;
            wave.vgpr[step + 1][lane] = (bits >> 32) as u32;
        }
    }
    let double = |wave: &Wave, register: usize, lane: usize| {
        let bits =
            u64::from(wave.vgpr[register][lane]) | u64::from(wave.vgpr[register + 1][lane]) << 32;
        f64::from_bits(bits)
    };
    try_run(
        &mut wave,
        Gfx950,
        "v_mfma_f64_16x16x4_f64 v[16:23], v[0:1], v[2:3], v[8:15]",
    )
    .unwrap();
    for i in 0..16 {
        for j in 0..16 {
            // Four rows at once, one behind the other.
            let (pair, lane) = (i / 4, j + 16 * (i % 4));
            let sum: f64 = (0..4)
                .map(|k| double(&wave, 0, i + 16 * k) * double(&wave, 2, j + 16 * k))
                .sum();
            assert_eq!(
                double(&wave, 16 + 2 * pair, lane),
                sum + double(&wave, 8 + 2 * pair, lane)
            );
        }
    }
    let small = "v_mfma_f64_4x4x4_4b_f64 v[16:17], v[0:1], v[2:3], v[8:9]";
    assert_eq!(try_run(&mut wave, Gfx950, small), Err(Fault::Unsupported));
}

#[test]
fn constants_accumulators_and_lanes() {
    let mut wave = wave();
    wave.agpr[0] = [0x3c00_3c00; LANES];
    wave.agpr[1] = wave.agpr[0];
    try_run(
        &mut wave,
        Gfx942,
        "v_mfma_f32_16x16x16_f16 a[4:7], a[0:1], a[0:1], 1.0",
    )
    .unwrap();
    assert_eq!(wave.agpr[4..8], [[17f32.to_bits(); LANES]; 4]);
    wave.exec = !1;
    let code = "v_mfma_f32_16x16x16_f16 a[4:7], a[0:1], a[0:1], 0";
    assert_eq!(try_run(&mut wave, Gfx942, code), Err(Fault::InactiveLanes));
    wave.exec = u64::MAX;
    let narrow = "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3] cbsz:4";
    assert_eq!(try_run(&mut wave, Gfx950, narrow), Err(Fault::Operand));
}

#[test]
fn blocks_are_broadcast() {
    // The second block of A for both; the second half of B's lanes for both.
    let mut wave = wave();
    wave.vgpr[0] = std::array::from_fn(|lane| (lane as f32).to_bits());
    wave.vgpr[1] = std::array::from_fn(|lane| (100.0 + lane as f32).to_bits());
    let code = "v_mfma_f32_32x32x1_2b_f32 v[32:63], v0, v1, 0 cbsz:1 abid:1 blgp:2";
    try_run(&mut wave, Gfx950, code).unwrap();
    for block in 0..2 {
        for i in 0..32 {
            for j in 0..32 {
                let (register, lane) = (i % 4 + 4 * (i / 8) + 16 * block, j + 32 * (i / 4 % 2));
                let want = (32 + i) as f32 * (132 + j) as f32;
                assert_eq!(f32::from_bits(wave.vgpr[32 + register][lane]), want);
            }
        }
    }
}
