//! Every lane map is a bijection, and agrees with formulas written down independently of the
//! tables.

use tilewright_ir::Scalar;
use tilewright_ir::micro_op::{MmaFamily, MmaInst};
use tilewright_ir::target::Target;
use tilewright_layout::lanes::{Operand, lane_map, ldmatrix, mma_sp};
use tilewright_layout::radix::indices;
use tilewright_layout::{Fragment, Holder, Layout};

fn inst(family: MmaFamily, (m, n, k): (u16, u16, u16), ab: Scalar, acc: Scalar) -> MmaInst {
    MmaInst {
        family,
        m,
        n,
        k,
        a: ab,
        b: ab,
        acc,
        scaled: false,
    }
}

fn map(inst: MmaInst, operand: Operand) -> Fragment {
    lane_map(&inst, operand).unwrap_or_else(|| panic!("{inst} has no {operand:?}"))
}

fn mma_sync() -> Vec<MmaInst> {
    let mut all = Vec::new();
    for (ks, ab, acc) in [
        ([8, 16], Scalar::F16, Scalar::F32),
        ([8, 16], Scalar::F16, Scalar::F16),
        ([8, 16], Scalar::BF16, Scalar::F32),
        ([4, 8], Scalar::TF32, Scalar::F32),
        ([16, 32], Scalar::I8, Scalar::I32),
        ([16, 32], Scalar::U8, Scalar::I32),
        ([16, 32], Scalar::F8E4M3FN, Scalar::F32),
        ([16, 32], Scalar::F8E5M2, Scalar::F32),
    ] {
        all.extend(ks.map(|k| inst(MmaFamily::MmaSync, (16, 8, k), ab, acc)));
    }
    let double = |shape| inst(MmaFamily::MmaSync, shape, Scalar::F64, Scalar::F64);
    all.extend([(8, 8, 4), (16, 8, 4), (16, 8, 8), (16, 8, 16)].map(double));
    all
}

fn sparse() -> Vec<MmaInst> {
    let one = |(k, ab, acc)| inst(MmaFamily::MmaSp, (16, 8, k), ab, acc);
    let all = [
        (32, Scalar::F16, Scalar::F32),
        (32, Scalar::F16, Scalar::F16),
        (32, Scalar::BF16, Scalar::F32),
        (16, Scalar::TF32, Scalar::F32),
        (64, Scalar::I8, Scalar::I32),
        (64, Scalar::U8, Scalar::I32),
    ];
    all.map(one).to_vec()
}

fn wgmma() -> Vec<MmaInst> {
    let widths = (8..=256).step_by(8);
    let mut all: Vec<MmaInst> = widths
        .map(|n| inst(MmaFamily::Wgmma, (64, n, 16), Scalar::BF16, Scalar::F32))
        .collect();
    all.push(inst(
        MmaFamily::Wgmma,
        (64, 96, 8),
        Scalar::TF32,
        Scalar::F32,
    ));
    all.push(inst(
        MmaFamily::Wgmma,
        (64, 240, 32),
        Scalar::I8,
        Scalar::I32,
    ));
    all.push(inst(
        MmaFamily::Wgmma,
        (64, 256, 32),
        Scalar::F8E4M3FN,
        Scalar::F32,
    ));
    all
}

fn mfma() -> Vec<MmaInst> {
    let mut all = Vec::new();
    let mut add = |shape, abs: &[Scalar], acc| {
        all.extend(abs.iter().map(|&ab| inst(MmaFamily::Mfma, shape, ab, acc)));
    };
    let halves = [Scalar::F16, Scalar::BF16];
    let cdna3 = [Scalar::F8E4M3FNUZ, Scalar::F8E5M2FNUZ];
    let ocp = [Scalar::F8E4M3FN, Scalar::F8E5M2];
    let narrow = [
        Scalar::F8E4M3FN,
        Scalar::F8E5M2,
        Scalar::F6E2M3,
        Scalar::F6E3M2,
        Scalar::F4E2M1,
    ];
    for shape in [(16, 16, 16), (32, 32, 8), (16, 16, 32), (32, 32, 16)] {
        add(shape, &halves, Scalar::F32);
    }
    for shape in [(16, 16, 32), (32, 32, 16)] {
        add(shape, &cdna3, Scalar::F32);
        add(shape, &ocp, Scalar::F32);
        add(shape, &[Scalar::I8], Scalar::I32);
    }
    for shape in [(16, 16, 64), (32, 32, 32)] {
        add(shape, &[Scalar::I8], Scalar::I32);
    }
    for shape in [(16, 16, 128), (32, 32, 64)] {
        add(shape, &narrow, Scalar::F32);
    }
    add((16, 16, 4), &[Scalar::F32], Scalar::F32);
    add((32, 32, 2), &[Scalar::F32], Scalar::F32);
    add((16, 16, 8), &[Scalar::TF32], Scalar::F32);
    add((32, 32, 4), &[Scalar::TF32], Scalar::F32);
    add((16, 16, 4), &[Scalar::F64], Scalar::F64);
    let wide = all
        .iter()
        .filter(|i| narrow.contains(&i.a) && i.k * i.m == 2048);
    let scaled: Vec<MmaInst> = wide.map(|i| MmaInst { scaled: true, ..*i }).collect();
    all.extend(scaled);
    all
}

/// Whether an instruction has the operand in registers.
fn has(inst: &MmaInst, operand: Operand) -> bool {
    match operand {
        Operand::A | Operand::C => true,
        Operand::B => inst.family != MmaFamily::Wgmma,
        Operand::ScaleA | Operand::ScaleB => inst.scaled,
    }
}

#[test]
fn every_lane_map_is_a_bijection() {
    let mut checked = 0;
    let all = mma_sync().into_iter().chain(sparse());
    for inst in all.chain(wgmma()).chain(mfma()) {
        for operand in Operand::ALL {
            let Some(f) = lane_map(&inst, operand) else {
                assert!(!has(&inst, operand), "{inst} {operand:?}");
                continue;
            };
            assert_eq!(f.shape(), operand.shape(&inst));
            let lanes = match inst.family {
                MmaFamily::MmaSync | MmaFamily::MmaSp => 32,
                MmaFamily::Mfma => 64,
                MmaFamily::Wgmma => 128,
            };
            assert_eq!(f.threads(), lanes);
            assert!(f.layout().is_bijective(), "{inst} {operand:?}");
            // The decision itself, by counting.
            let size = f.layout().span() as usize;
            let mut seen = vec![false; size];
            for i in indices(f.shape()) {
                let h = f.holder(&i, 0);
                let at = (h.thread * f.slots() + h.slot) as usize;
                assert!(
                    !std::mem::replace(&mut seen[at], true),
                    "{inst} {operand:?} {i:?}"
                );
            }
            assert!(seen.into_iter().all(|s| s));
            checked += 1;
        }
    }
    assert_eq!(checked, 20 * 3 + 6 * 3 + 35 * 2 + 35 * 3 + 10 * 5);
}

#[test]
fn every_matrix_instruction_of_every_target_has_its_maps() {
    for target in Target::ALL {
        let machine = target.machine();
        for facts in machine.mma.iter().chain(machine.sparse_mma) {
            for operand in Operand::ALL {
                let found = lane_map(&facts.inst, operand).is_some();
                let wanted = has(&facts.inst, operand);
                assert_eq!(found, wanted, "{target} {} {operand:?}", facts.inst);
            }
        }
    }
}

#[test]
fn what_does_not_exist_has_no_map() {
    for name in [
        "mma.16x8x4.float16.float32",
        "mma.16x8x16.bfloat16.float16",
        "mma.16x16x16.float16.float32",
        "mma.8x8x8.float64.float64",
        "mma.8x8x4.float16.float32",
        "mma.16x8x16.float64.float32",
        "wgmma.64x264x16.float16.float32",
        "wgmma.64x12x16.float16.float32",
        "wgmma.64x40x32.int8.int32",
        "mfma.16x16x64.bfloat16.float32",
        "mfma.32x16x8.float16.float32",
        "mfma.16x16x16.float16.float16",
        "mfma.16x16x4.float64.float32",
        "mfma.32x32x2.float64.float64",
        "mfma.16x16x32.bfloat16.float32.scaled",
        "mfma.16x16x32.float8_e4m3fn.float32.scaled",
        "mfma.32x32x32.int8.int32.scaled",
    ] {
        let inst = MmaInst::from_name(name).unwrap();
        assert!(lane_map(&inst, Operand::C).is_none(), "{name}");
    }
}

/// The CDNA formulas as the manuals state them: K_L = K·M/64; A lane = i + M·(k / K_L), item =
/// k % K_L; B lane = j + N·(k / K_L); C lane = j + N·((i/4) % M_I), register = i%4 + 4·(i/(4·M_I))
/// with M_I = 64/N. Of float64 C has lane = j + N·(i % 4), register = i/4. Where a lane has 32 floats of
/// eight bits, they are 16 of the first half of K and 16 of the second.
#[test]
fn mfma_maps_equal_the_formulas_of_the_manual_on_every_element() {
    for inst in mfma() {
        let (m, n, k): (i64, i64, i64) = (inst.m.into(), inst.n.into(), inst.k.into());
        let kl = k * m / 64;
        let mi = 64 / n;
        // The lane's group, and its item.
        let along = |kk: i64| match inst.a.bits() == 8 && kl == 32 {
            true => (kk % (k / 2) / 16, kk % 16 + 16 * (kk / (k / 2))),
            false => (kk / kl, kk % kl),
        };
        let (a, b, c) = (
            map(inst, Operand::A),
            map(inst, Operand::B),
            map(inst, Operand::C),
        );
        for i in 0..m {
            for kk in 0..k {
                let (group, slot) = along(kk);
                let thread = i + m * group;
                let expected = Holder { thread, slot };
                assert_eq!(a.holder(&[i, kk], 0), expected, "{inst} A[{i}][{kk}]");
            }
            for j in 0..n {
                let expected = match inst.acc {
                    Scalar::F64 => Holder {
                        thread: j + n * (i % 4),
                        slot: i / 4,
                    },
                    _ => Holder {
                        thread: j + n * ((i / 4) % mi),
                        slot: (i % 4) + 4 * (i / (4 * mi)),
                    },
                };
                assert_eq!(c.holder(&[i, j], 0), expected, "{inst} C[{i}][{j}]");
            }
        }
        for kk in 0..k {
            for j in 0..n {
                let (group, slot) = along(kk);
                let thread = j + n * group;
                let expected = Holder { thread, slot };
                assert_eq!(b.holder(&[kk, j], 0), expected, "{inst} B[{kk}][{j}]");
            }
        }
    }
}

/// One scale a lane: those of all rows for the first 32 of K, then for the next.
#[test]
fn scales_lie_row_by_row_for_32_of_k_at_a_time() {
    for inst in mfma().into_iter().filter(|inst| inst.scaled) {
        let (m, parts) = (i64::from(inst.m), i64::from(inst.k) / 32);
        let (a, b) = (map(inst, Operand::ScaleA), map(inst, Operand::ScaleB));
        for line in 0..m {
            for part in 0..parts {
                let expected = Holder {
                    thread: line + m * part,
                    slot: 0,
                };
                assert_eq!(a.holder(&[line, part], 0), expected, "{inst}");
                assert_eq!(b.holder(&[part, line], 0), expected, "{inst}");
            }
        }
    }
}

/// The same maps read the other way, lane by lane, as the manuals' examples spell them out.
#[test]
fn mfma_examples_of_the_manual() {
    let by_lane = |shape, ab, acc, of: &dyn Fn(i64, i64) -> [i64; 2], operand| {
        let f = map(inst(MmaFamily::Mfma, shape, ab, acc), operand);
        for lane in 0..64 {
            for item in 0..f.slots() {
                let element = f.element(Holder {
                    thread: lane,
                    slot: item,
                });
                assert_eq!(
                    element,
                    Some(of(lane, item).to_vec()),
                    "{shape:?} {lane} {item}"
                );
            }
        }
    };
    let (bf, f) = (Scalar::BF16, Scalar::F32);
    by_lane(
        (16, 16, 32),
        bf,
        f,
        &|l, i| [l % 16, 8 * (l / 16) + i],
        Operand::A,
    );
    by_lane(
        (16, 16, 32),
        bf,
        f,
        &|l, r| [4 * (l / 16) + r, l % 16],
        Operand::C,
    );
    by_lane(
        (32, 32, 16),
        bf,
        f,
        &|l, i| [l % 32, 8 * (l / 32) + i],
        Operand::A,
    );
    by_lane(
        (32, 32, 16),
        bf,
        f,
        &|l, r| [8 * (r / 4) + 4 * (l / 32) + r % 4, l % 32],
        Operand::C,
    );
    by_lane(
        (16, 16, 16),
        bf,
        f,
        &|l, i| [l % 16, 4 * (l / 16) + i],
        Operand::A,
    );
    by_lane(
        (32, 32, 8),
        bf,
        f,
        &|l, i| [l % 32, 4 * (l / 32) + i],
        Operand::A,
    );
    by_lane(
        (16, 16, 128),
        Scalar::F4E2M1,
        f,
        &|l, i| [l % 16, 32 * (l / 16) + i],
        Operand::A,
    );
    by_lane(
        (32, 32, 64),
        Scalar::F4E2M1,
        f,
        &|l, i| [l % 32, 32 * (l / 32) + i],
        Operand::A,
    );
}

/// The PTX manual gives row and column of element `i` of a lane, figure by figure.
#[test]
fn mma_sync_maps_equal_the_formulas_of_the_manual() {
    type Formula = fn(group: i64, in_group: i64, i: i64) -> (i64, i64);
    let check = |name: &str, operand, formula: Formula| {
        let f = map(MmaInst::from_name(name).unwrap(), operand);
        for lane in 0..32 {
            for i in 0..f.slots() {
                let (row, col) = formula(lane / 4, lane % 4, i);
                let element = f.element(Holder {
                    thread: lane,
                    slot: i,
                });
                assert_eq!(
                    element,
                    Some(vec![row, col]),
                    "{name} {operand:?} lane {lane} {i}"
                );
            }
        }
    };
    use Operand::{A, B, C};
    for ab in ["float16", "bfloat16"] {
        let k8 = format!("mma.16x8x8.{ab}.float32");
        check(&k8, A, |g, t, i| {
            (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))
        });
        check(&k8, B, |g, t, i| (t * 2 + i, g));
        let k16 = format!("mma.16x8x16.{ab}.float32");
        check(&k16, A, |g, t, i| {
            let row = if i < 2 || (4..6).contains(&i) {
                g
            } else {
                g + 8
            };
            (row, t * 2 + (i & 1) + if i >= 4 { 8 } else { 0 })
        });
        check(&k16, B, |g, t, i| {
            (t * 2 + (i & 1) + if i >= 2 { 8 } else { 0 }, g)
        });
        check(&k16, C, |g, t, i| {
            (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))
        });
    }
    check("mma.16x8x4.tfloat32.float32", A, |g, t, i| {
        (if i == 0 { g } else { g + 8 }, t)
    });
    check("mma.16x8x4.tfloat32.float32", B, |g, t, _| (t, g));
    check("mma.16x8x8.tfloat32.float32", A, |g, t, i| {
        (
            if i == 0 || i == 2 { g } else { g + 8 },
            if i < 2 { t } else { t + 4 },
        )
    });
    check("mma.16x8x8.tfloat32.float32", B, |g, t, i| {
        (if i == 0 { t } else { t + 4 }, g)
    });
    let double = "mma.8x8x4.float64.float64";
    check(double, A, |g, t, _| (g, t));
    check(double, B, |g, t, _| (t, g));
    check(double, C, |g, t, i| (g, t * 2 + i));
    for k in [4, 8, 16] {
        let double = format!("mma.16x8x{k}.float64.float64");
        check(&double, A, |g, t, i| (g + i % 2 * 8, t + i / 2 * 4));
        check(&double, B, |g, t, i| (t + i * 4, g));
        check(&double, C, |g, t, i| {
            (if i < 2 { g } else { g + 8 }, t * 2 + (i & 1))
        });
    }
    for (ab, acc) in [("int8", "int32"), ("float8_e4m3fn", "float32")] {
        let k16 = format!("mma.16x8x16.{ab}.{acc}");
        check(&k16, A, |g, t, i| {
            (if i < 4 { g } else { g + 8 }, t * 4 + (i & 3))
        });
        check(&k16, B, |g, t, i| (t * 4 + i, g));
        let k32 = format!("mma.16x8x32.{ab}.{acc}");
        check(&k32, A, |g, t, i| {
            let row = if i < 4 || (8..12).contains(&i) {
                g
            } else {
                g + 8
            };
            (row, t * 4 + (i & 3) + if i >= 8 { 16 } else { 0 })
        });
        check(&k32, B, |g, t, i| {
            (t * 4 + (i & 3) + if i >= 4 { 16 } else { 0 }, g)
        });
    }
}

#[test]
fn wgmma_accumulators_equal_the_formula_of_the_manual() {
    for inst in wgmma() {
        let f = map(inst, Operand::C);
        assert_eq!(f.slots(), i64::from(inst.n) / 2);
        for t in 0..128 {
            for i in 0..f.slots() {
                // Row of element i of thread t: 16·warp + lane/4 + 8·(i/2 % 2).
                let row = 16 * (t / 32) + (t % 32) / 4 + 8 * ((i / 2) % 2);
                let col = 8 * (i / 4) + 2 * (t % 4) + i % 2;
                assert_eq!(
                    f.element(Holder { thread: t, slot: i }),
                    Some(vec![row, col])
                );
            }
        }
    }
    // The accumulator of one product is, block by block, the register operand of the next.
    let c = map(
        MmaInst::from_name("wgmma.64x16x16.bfloat16.float32").unwrap(),
        Operand::C,
    );
    let a = map(
        MmaInst::from_name("wgmma.64x128x16.bfloat16.float32").unwrap(),
        Operand::A,
    );
    assert_eq!(c, a);
}

#[test]
fn ldmatrix_fills_the_operands_of_mma_sync() {
    // A from a row-major 16 x 16 tile, four matrices numbered down first.
    let order = ldmatrix::tile_order(2, 2, 16).unwrap();
    let load = ldmatrix::lane_map(4, 16, false).unwrap();
    let place = |order: &Layout, load: &Fragment, index: &[i64]| load.holder(&order.eval(index), 0);
    let a = map(
        MmaInst::from_name("mma.16x8x16.float16.float32").unwrap(),
        Operand::A,
    );
    let b = map(
        MmaInst::from_name("mma.16x8x16.float16.float32").unwrap(),
        Operand::B,
    );
    for i in indices(&[16, 16]) {
        assert_eq!(place(&order, &load, &i), a.holder(&i, 0));
    }
    // B from memory in rows of n (K contiguous): as it is.
    let across = ldmatrix::tile_order(1, 2, 16).unwrap();
    let load = ldmatrix::lane_map(2, 16, false).unwrap();
    for i in indices(&[16, 8]) {
        assert_eq!(place(&across, &load, &[i[1], i[0]]), b.holder(&i, 0));
    }
    // B from memory in rows of k (N contiguous): transposed.
    let down = ldmatrix::tile_order(2, 1, 16).unwrap();
    let load = ldmatrix::lane_map(2, 16, true).unwrap();
    for i in indices(&[16, 8]) {
        assert_eq!(place(&down, &load, &i), b.holder(&i, 0));
    }
    // int8 rows of 16 bytes hold sixteen elements.
    let order = ldmatrix::tile_order(2, 2, 8).unwrap();
    let load = ldmatrix::lane_map(4, 8, false).unwrap();
    let a = map(
        MmaInst::from_name("mma.16x8x32.int8.int32").unwrap(),
        Operand::A,
    );
    for i in indices(&[16, 32]) {
        assert_eq!(place(&order, &load, &i), a.holder(&i, 0));
    }
}

#[test]
fn ldmatrix_maps_are_bijections_and_refuse_what_is_not_there() {
    for count in [1, 2, 4] {
        for (bits, trans) in [(8, false), (16, false), (32, false), (16, true)] {
            let f = ldmatrix::lane_map(count, bits, trans).unwrap();
            assert!(f.layout().is_bijective());
            assert_eq!((f.threads(), f.slots() * bits), (32, 32 * count));
        }
        let addresses = ldmatrix::address_lanes(count).unwrap();
        assert_eq!(addresses.eval(&[count - 1, 7]), [8 * count - 1]);
    }
    assert!(ldmatrix::lane_map(3, 16, false).is_err());
    assert!(ldmatrix::lane_map(4, 8, true).is_err());
    assert!(ldmatrix::lane_map(4, 4, false).is_err());
}

/// What is stored of a sparse factor lies as a dense one of half the K, and B as that of a dense
/// instruction of the whole K would.
#[test]
fn sparse_operands_lie_as_dense_ones() {
    for inst in sparse() {
        let dense = MmaInst {
            family: MmaFamily::MmaSync,
            k: inst.k / 2,
            ..inst
        };
        for operand in [Operand::A, Operand::C] {
            let (sparse, dense) = (map(inst, operand), map(dense, operand));
            assert!(sparse.same_placement(&dense), "{inst} {operand:?}");
        }
        let b = map(inst, Operand::B);
        let half = map(dense, Operand::B);
        for k in 0..i64::from(inst.k) {
            for n in 0..8 {
                let upper = k / i64::from(dense.k);
                let mut expected = half.holder(&[k % i64::from(dense.k), n], 0);
                expected.slot += upper * half.slots();
                assert_eq!(b.holder(&[k, n], 0), expected, "{inst} {k} {n}");
            }
        }
    }
}

/// The metadata of a group, bit by bit: the register of a lane, as PTX has it, is put together from
/// the integers that the lane holds, and the bits of each row and group are looked for in it.
#[test]
fn sparse_metadata_is_where_the_instruction_looks() {
    for inst in sparse() {
        let pairs = inst.a == Scalar::TF32;
        let groups = i64::from(inst.k) / if pairs { 2 } else { 4 };
        // A number for each group.
        let name = |row: i64, group: i64| row * groups + group;
        for bits in [8, 16, 32] {
            let in_one = i64::from(bits) / 4;
            let held = mma_sp::metadata(&inst, bits).expect("metadata");
            assert_eq!(held.shape(), [16, groups / in_one]);
            assert_eq!(held.threads(), 32);
            // The group of each four bits of each lane's register.
            let register = |lane: i64| -> Vec<i64> {
                let mut found = Vec::new();
                for slot in 0..held.slots() {
                    let element = held.element(Holder { thread: lane, slot });
                    let element = element.expect("every slot holds an integer");
                    let first = element[1] * in_one;
                    let mut own: Vec<i64> = (first..first + in_one)
                        .map(|group| name(element[0], group))
                        .collect();
                    if held.slots() * i64::from(bits) > 32 {
                        // The half that the lane is asked for.
                        own = own[(lane % 2 * 4) as usize..][..4].to_vec();
                    }
                    found.extend(own);
                }
                assert_eq!(found.len(), 8, "{inst} {bits} lane {lane}");
                found
            };
            for lane in 0..32 {
                let (g, t) = (lane / 4, lane % 4);
                let expected: Vec<i64> = match inst.a.bits() {
                    8 => (0..8).map(|i| name(g + t % 2 * 8, t / 2 * 8 + i)).collect(),
                    _ => (0..8)
                        .map(|i| name(g + i / 4 * 8, t % 2 * 4 + i % 4))
                        .collect(),
                };
                assert_eq!(register(lane), expected, "{inst} {bits} lane {lane}");
            }
            for row in 0..16 {
                for group in 0..groups {
                    let found = mma_sp::group_at(&inst, bits, row, group);
                    let (thread, slot, shift) = found.expect("a place");
                    assert!(inst.a.bits() == 8 || thread % 4 < 2, "the selector is 0");
                    let element = held.element(Holder { thread, slot }).expect("an integer");
                    let at = element[1] * in_one + i64::from(shift) / 4;
                    assert_eq!((element[0], at), (row, group), "{inst} {bits}");
                }
            }
        }
    }
    let dense = mma_sync()[0];
    assert!(mma_sp::metadata(&dense, 16).is_none());
    assert!(mma_sp::metadata(&sparse()[0], 64).is_none());
}
