//! Bank conflicts of real access patterns on real phases.

use tilewright_ir::micro_op::{MmaFamily, MmaInst};
use tilewright_ir::target::Target;
use tilewright_layout::banks::{Cost, Kind, cost, nvidia};
use tilewright_layout::lanes::Operand;
use tilewright_layout::swizzle::{self, Subtile, Swizzle};
use tilewright_layout::{Layout, lanes};

fn addresses(of: impl Fn(u32) -> u32, lanes: u32) -> Vec<Option<u32>> {
    (0..lanes).map(|l| Some(of(l))).collect()
}

/// What one wave pays to read its A operand of the instruction from the tile at `(row, k)`,
/// each lane its own run of K with the widest reads of at most `width` bytes.
fn mfma_read(
    target: Target,
    inst: &MmaInst,
    tile: &Layout,
    width: u32,
    (row, k): (i64, i64),
) -> Cost {
    let a = lanes::lane_map(inst, Operand::A).unwrap();
    let bits = i64::from(inst.a.bits());
    let per_read = i64::from(width) * 8 / bits;
    let mut total = Cost::default();
    for read in 0..a.slots() / per_read {
        let lanes: Vec<Option<u32>> = (0..64)
            .map(|thread| {
                let slot = read * per_read;
                let i = a
                    .element(tilewright_layout::Holder { thread, slot })
                    .unwrap();
                Some((tile.offset(&[row + i[0], k + i[1]]) * bits / 8) as u32)
            })
            .collect();
        total = total + cost(target, Kind::Read, width, &lanes).unwrap();
    }
    total
}

fn mfma(name: &str) -> MmaInst {
    let inst = MmaInst::from_name(name).unwrap();
    assert_eq!(inst.family, MmaFamily::Mfma);
    inst
}

#[test]
fn hipkittens_facts_on_gfx950() {
    let inst = mfma("mfma.16x16x32.bfloat16.float32");
    let read = |tile: &Layout| mfma_read(Target::Gfx950, &inst, tile, 16, (0, 0));
    // st_16x32 with ds_read_b128: four cycles a wave, no conflict.
    let swizzled = read(&Subtile::ST_16X32.tile(16, 32).unwrap());
    assert_eq!((swizzled.cycles, swizzled.conflicts()), (4, 0));
    // The same subtile without its swizzle: eight.
    let plain = read(&Layout::linear(&[16, 32]).unwrap());
    assert_eq!((plain.cycles, plain.conflicts()), (8, 4));
    // Plain rows of 128 bytes: sixteen.
    let rows = read(&Layout::linear(&[16, 64]).unwrap());
    assert_eq!((rows.cycles, rows.conflicts()), (16, 12));
    // st_32x32 serves the 32-row instruction as well.
    let inst = mfma("mfma.32x32x16.bfloat16.float32");
    let square = mfma_read(
        Target::Gfx950,
        &inst,
        &Subtile::ST_32X32.tile(32, 32).unwrap(),
        16,
        (0, 16),
    );
    assert_eq!(square.conflicts(), 0);
    // st_16x128 of fp8: two reads of 16 bytes a lane, K in runs of 16 on both operands.
    let tile = Subtile::ST_16X128.tile(16, 128).unwrap();
    for half in 0..2 {
        let lane =
            |l: u32| tile.offset(&[i64::from(l % 16), i64::from(16 * (l / 16) + 64 * half)]) as u32;
        let read = cost(Target::Gfx950, Kind::Read, 16, &addresses(lane, 64)).unwrap();
        assert_eq!((read.cycles, read.conflicts()), (4, 0));
    }
}

#[test]
fn the_matrix_swizzle_is_free_of_conflicts_for_every_mfma() {
    // (target, instruction, bytes a lane reads at once)
    for (target, name, width) in [
        (Target::Gfx942, "mfma.16x16x16.bfloat16.float32", 8),
        (Target::Gfx942, "mfma.32x32x8.float16.float32", 8),
        (Target::Gfx942, "mfma.16x16x32.int8.int32", 8),
        (Target::Gfx942, "mfma.32x32x16.float8_e4m3fnuz.float32", 8),
        (Target::Gfx942, "mfma.16x16x4.float32.float32", 4),
        (Target::Gfx950, "mfma.16x16x32.bfloat16.float32", 16),
        (Target::Gfx950, "mfma.32x32x16.bfloat16.float32", 16),
        (Target::Gfx950, "mfma.16x16x64.int8.int32", 16),
        (Target::Gfx950, "mfma.32x32x32.int8.int32", 16),
        (Target::Gfx950, "mfma.16x16x32.float8_e4m3fn.float32", 8),
        (Target::Gfx950, "mfma.16x16x16.bfloat16.float32", 8),
        (Target::Gfx950, "mfma.32x32x8.bfloat16.float32", 8),
        (Target::Gfx950, "mfma.16x16x4.float32.float32", 4),
        (Target::Gfx950, "mfma.16x16x128.float8_e4m3fn.float32", 16),
        (Target::Gfx950, "mfma.32x32x64.float8_e5m2.float32", 16),
        (Target::Gfx950, "mfma.16x16x128.float4_e2m1fn.float32", 16),
        (Target::Gfx950, "mfma.32x32x64.float4_e2m1fn.float32", 16),
        (Target::Gfx950, "mfma.16x16x128.float6_e2m3fn.float32", 24),
        (Target::Gfx950, "mfma.32x32x64.float6_e3m2fn.float32", 24),
    ] {
        let inst = mfma(name);
        let bits = i64::from(inst.a.bits());
        let k = i64::from(inst.k);
        let all = match bits {
            6 => &[48, 96, 192][..],
            _ => &[32, 64, 128, 256, 512, 192, 384],
        };
        for &row_bytes in all {
            let cols = row_bytes * 8 / bits;
            if cols % k != 0 {
                continue;
            }
            let rows = 64;
            let tile = swizzle::for_matrix(target, &[rows, cols], &inst).unwrap();
            assert!(tile.is_bijective());
            for row in (0..rows).step_by(inst.m.into()) {
                for at in (0..cols).step_by(inst.k.into()) {
                    let read = mfma_read(target, &inst, &tile, width, (row, at));
                    assert_eq!(
                        read.conflicts(),
                        0,
                        "{target} {name} rows of {row_bytes} B at {row}, {at}"
                    );
                }
            }
        }
    }
}

#[test]
fn ldmatrix_of_swizzled_tiles_is_free_of_conflicts() {
    let read = |tile: &Layout, bits: i64, row: i64, col: i64| {
        let rows: Vec<u32> = (0..8)
            .map(|r| (tile.offset(&[row + r, col]) * bits / 8) as u32)
            .collect();
        nvidia::matrix_cost(&rows)
    };
    for (bits, name) in [
        (8, "mma.16x8x32.int8.int32"),
        (16, "mma.16x8x16.float16.float32"),
        (32, "mma.16x8x8.tfloat32.float32"),
    ] {
        let inst = MmaInst::from_name(name).unwrap();
        for row_bytes in [16, 32, 48, 64, 80, 96, 128, 192, 256, 320, 512] {
            let cols = row_bytes * 8 / bits;
            let tile = swizzle::for_matrix(Target::Sm80, &[64, cols], &inst).unwrap();
            for row in (0..64).step_by(8) {
                for col in (0..cols).step_by(128 / bits as usize) {
                    let cost = read(&tile, bits, row, col);
                    assert_eq!(
                        (cost.cycles, cost.ideal),
                        (1, 1),
                        "{row_bytes} B rows at {row}, {col}"
                    );
                }
            }
        }
    }
    for (swizzle, cols) in [(Swizzle::B128, 128), (Swizzle::B64, 96), (Swizzle::B32, 16)] {
        let tile = swizzle.panels(&[64, cols], 16).unwrap();
        assert_eq!(read(&tile, 16, 8, 8).cycles, 1);
    }
    // Unswizzled rows of 128 bytes all start at bank zero.
    assert_eq!(
        read(&Layout::linear(&[64, 64]).unwrap(), 16, 0, 0).cycles,
        8
    );
    // Padding by 16 bytes also works.
    assert_eq!(
        read(&Layout::padded(&[64, 64], 8).unwrap(), 16, 0, 0).cycles,
        1
    );
}

#[test]
fn nvidia_phases_and_broadcast() {
    let sm = |width, of: &dyn Fn(u32) -> u32| {
        cost(Target::Sm90a, Kind::Read, width, &addresses(of, 32)).unwrap()
    };
    assert_eq!(sm(4, &|l| 4 * l).cycles, 1);
    assert_eq!(sm(4, &|_| 64).cycles, 1);
    assert_eq!(sm(4, &|l| 8 * l).cycles, 2);
    assert_eq!(sm(4, &|l| 128 * l).cycles, 32);
    assert_eq!(sm(2, &|l| 2 * l).cycles, 1);
    assert_eq!(
        sm(8, &|l| 8 * l),
        Cost {
            cycles: 2,
            ideal: 2
        }
    );
    assert_eq!(
        sm(16, &|l| 16 * l),
        Cost {
            cycles: 4,
            ideal: 4
        }
    );
    assert_eq!(sm(16, &|l| 128 * (l % 8) + 16 * (l / 8)).cycles, 32);
    // Eight-byte lanes at a stride of sixteen bytes: two words of a bank in each half.
    assert_eq!(sm(8, &|l| 16 * l).conflicts(), 2);
    // A lane that does not take part costs nothing.
    let mut lanes = addresses(|l| 128 * l, 32);
    lanes[4..].fill(None);
    assert_eq!(
        cost(Target::Sm80, Kind::Write, 4, &lanes),
        Some(Cost {
            cycles: 4,
            ideal: 1
        })
    );
    assert_eq!(cost(Target::Sm80, Kind::Read, 12, &lanes), None);
    assert_eq!(cost(Target::Sm80, Kind::ReadTransposed, 8, &lanes), None);
}

#[test]
fn amd_phases_take_lanes_out_of_order() {
    let amd = |target, kind, width, of: &dyn Fn(u32) -> u32| {
        cost(target, kind, width, &addresses(of, 64)).unwrap()
    };
    // Contiguous accesses run at full width everywhere.
    for (target, kind, width, cycles) in [
        (Target::Gfx942, Kind::Read, 4, 2),
        (Target::Gfx942, Kind::Read, 8, 4),
        (Target::Gfx942, Kind::Read, 16, 8),
        (Target::Gfx942, Kind::Write, 16, 8),
        (Target::Gfx950, Kind::Read, 4, 1),
        (Target::Gfx950, Kind::Read, 8, 2),
        (Target::Gfx950, Kind::Read, 16, 4),
        (Target::Gfx950, Kind::Write, 8, 4),
        (Target::Gfx950, Kind::ReadTransposed, 8, 2),
    ] {
        let read = amd(target, kind, width, &|l| width * l);
        assert_eq!(
            (read.cycles, read.ideal),
            (cycles, cycles),
            "{target} {kind:?} {width}"
        );
    }
    // Twelve bytes go by the phases of sixteen on 32 banks.
    assert_eq!(
        amd(Target::Gfx950, Kind::Read, 12, &|l| 16 * l),
        Cost {
            cycles: 8,
            ideal: 8
        }
    );
    // Lanes 0 and 20 meet in a phase of gfx942, lanes 0 and 4 do not.
    let two = |a: usize, b: usize, target, width| {
        let mut lanes = vec![None; 64];
        lanes[a] = Some(0);
        lanes[b] = Some(4096);
        cost(target, Kind::Read, width, &lanes).unwrap().conflicts()
    };
    assert_eq!(two(0, 20, Target::Gfx942, 16), 1);
    assert_eq!(two(0, 4, Target::Gfx942, 16), 0);
    assert_eq!(two(32, 52, Target::Gfx942, 16), 1);
    assert_eq!(two(0, 12, Target::Gfx950, 16), 1);
    assert_eq!(two(0, 4, Target::Gfx950, 16), 0);
    assert_eq!(two(0, 12, Target::Gfx950, 12), 0);
    assert_eq!(cost(Target::Gfx942, Kind::ReadTransposed, 8, &[]), None);
}
