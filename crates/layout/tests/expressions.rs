//! Expressions to layouts and back.

use proptest::prelude::*;
use tilewright_ir::micro_op::MmaInst;
use tilewright_ir::target::Target;
use tilewright_ir::{BinOp, DType, Expr, FragmentMap, IndexMap, Scalar, Var};
use tilewright_layout::from_expr::{fragment_map, index_map};
use tilewright_layout::lanes::{Operand, lane_map};
use tilewright_layout::radix::indices;
use tilewright_layout::{Family, Fragment, Layout, LayoutError, TABLE_LIMIT, swizzle, to_expr};

fn vars() -> [Expr; 3] {
    [0, 1, 2].map(|v| Expr::var(Var::from_u32(v), DType::I32))
}

fn map(outputs: Vec<Expr>) -> IndexMap {
    IndexMap {
        inputs: vec![Var::from_u32(0), Var::from_u32(1)],
        outputs,
    }
}

/// An independent evaluator of the expressions made here.
fn value(e: &Expr, index: &[i64]) -> i64 {
    use tilewright_ir::ExprKind::{Binary, Int, Var as V};
    match e.kind() {
        Int(v) => *v as i64,
        V(v) => index[v.as_u32() as usize],
        Binary(op, a, b) => {
            let (a, b) = (value(a, index), value(b, index));
            match op {
                BinOp::Add => a + b,
                BinOp::Sub => a - b,
                BinOp::Mul => a * b,
                BinOp::FloorDiv => a.div_euclid(b),
                BinOp::FloorMod => a.rem_euclid(b),
                BinOp::BitXor => a ^ b,
                BinOp::BitAnd => a & b,
                BinOp::BitOr => a | b,
                BinOp::Shl => a << b,
                BinOp::Shr => a >> b,
                BinOp::Lt => (a < b) as i64,
                BinOp::Ge => (a >= b) as i64,
                BinOp::LogicalAnd => a & b,
                _ => panic!("{op:?}"),
            }
        }
        other => panic!("{other:?}"),
    }
}

#[test]
fn a_swizzle_written_by_hand_is_the_swizzle() {
    let [i, j, _] = vars();
    let chunk = j.clone().floor_div(8) ^ i.clone().floor_mod(8);
    let e = i.clone() * 64 + chunk * 8 + j.clone().floor_mod(8);
    let layout = index_map(&map(vec![e]), &[128, 64]).unwrap();
    assert_eq!(
        layout,
        swizzle::Swizzle::B128.panels(&[128, 64], 16).unwrap()
    );
    assert!(layout.raw_form().is_some());
    // With shifts and masks, on a row count that is no power of two, in two outputs.
    let shifted = (((j.clone() >> 3) ^ (i.clone() & 7)) << 3) | (j.clone() & 7);
    let layout = index_map(&map(vec![i, shifted]), &[229, 64]).unwrap();
    assert_eq!(layout.codomain(), [229, 64]);
    assert_eq!(
        layout.flatten().unwrap(),
        swizzle::Swizzle::B128.panels(&[229, 64], 16).unwrap()
    );
}

#[test]
fn the_swizzle_of_an_element_type() {
    let of = |element| swizzle::for_elements(Target::Gfx950, &[64, 64], element).unwrap();
    let swizzled = of(Scalar::BF16);
    assert!(matches!(swizzled.family(), Family::Swizzle(_)) && swizzled.is_bijective());
    // Nothing multiplies booleans.
    assert_eq!(of(Scalar::Bool).family(), &Family::Linear);
    let row = swizzle::for_elements(Target::Gfx950, &[64], Scalar::BF16).unwrap();
    assert_eq!(row.family(), &Family::Linear);
}

#[test]
fn maps_that_are_no_layout_are_refused_with_the_elements() {
    let [i, j, outside] = vars();
    let refused = |e: Expr| index_map(&map(vec![e]), &[8, 8]).unwrap_err();
    let overlap = refused(i.clone() * 4 + j.clone());
    let LayoutError::Collision { a, b, place } = &overlap else {
        panic!("{overlap}")
    };
    assert_eq!(a[0] * 4 + a[1], place[0]);
    assert_eq!(b[0] * 4 + b[1], place[0]);
    assert_ne!(a, b);
    assert!(matches!(
        refused(i.clone() - j.clone()),
        LayoutError::OutOfRange { .. }
    ));
    assert!(matches!(
        refused(i.clone() + outside),
        LayoutError::NotAMap { .. }
    ));
    let by_zero = i.clone().floor_div(j.clone()) + j.clone() * 8;
    assert!(matches!(refused(by_zero), LayoutError::NotAMap { .. }));
    // Injective, but neither a sum nor small.
    let square = i.clone() * i.clone() * 5000 + j.clone();
    let huge = index_map(&map(vec![square]), &[1024, 2048]).unwrap_err();
    assert_eq!(
        huge,
        LayoutError::TooLarge {
            elements: TABLE_LIMIT * 2
        }
    );
}

#[test]
fn what_has_no_closed_form_is_listed() {
    let [i, j, _] = vars();
    let triangle = i.clone() * i.clone() * 8 + j.clone();
    let layout = index_map(&map(vec![triangle]), &[5, 7]).unwrap();
    assert!(layout.raw_form().is_none());
    assert_eq!(layout.offset(&[4, 6]), 134);
    // Written with a product of variables, but linear over bits all the same.
    let cond = j.clone().lt(4);
    let select =
        tilewright_ir::expr_build::select(true, cond, j.clone() + 4, j.clone() - 4).unwrap();
    let layout = index_map(&map(vec![i * 8 + select]), &[4, 8]).unwrap();
    assert!(layout.raw_form().is_some());
    assert_eq!(layout.offset(&[1, 5]), 9);
}

#[test]
fn fragments_from_maps() {
    let [i, j, r] = vars();
    // 229 columns over 64 threads, twice in a block of 128.
    let attr = FragmentMap {
        inputs: vec![Var::from_u32(0), Var::from_u32(1)],
        replica: Some(Var::from_u32(2)),
        replicas: 2,
        thread: j.clone().floor_mod(64) + r * 64,
        slots: vec![i.clone(), j.clone().floor_div(64)],
    };
    let f = fragment_map(&attr, &[3, 229], 128).unwrap();
    assert_eq!((f.replicas(), f.threads(), f.slots()), (2, 128, 12));
    assert_eq!(
        f.holders(&[2, 100])
            .iter()
            .map(|h| (h.thread, h.slot))
            .collect::<Vec<_>>(),
        [(36, 9), (100, 9)]
    );
    let too_many = fragment_map(&attr, &[3, 229], 96).unwrap_err();
    assert!(matches!(
        too_many,
        LayoutError::OutOfRange {
            output: 0,
            extent: 96,
            ..
        }
    ));
    let shared = FragmentMap {
        slots: vec![i],
        ..attr.clone()
    };
    assert!(matches!(
        fragment_map(&shared, &[3, 229], 128),
        Err(LayoutError::Collision { .. })
    ));
    let plain = FragmentMap {
        replica: None,
        replicas: 1,
        thread: j,
        slots: vec![Expr::i32(0)],
        ..attr
    };
    let f = fragment_map(&plain, &[1, 100], 128).unwrap();
    assert_eq!((f.replicas(), f.threads(), f.slots()), (1, 128, 1));
}

#[test]
fn expressions_round_trip() {
    let names = [0, 1, 2].map(Var::from_u32);
    let layouts = [
        Layout::linear(&[7, 40]).unwrap(),
        Layout::padded(&[7, 40], 8).unwrap(),
        swizzle::Swizzle::B64.panels(&[229, 96], 16).unwrap(),
    ];
    for layout in layouts {
        let outputs = to_expr::layout(&layout, &vars()[..2]).unwrap();
        assert_eq!(index_map(&map(outputs), layout.shape()).unwrap(), layout);
    }
    let inst = MmaInst::from_name("mma.16x8x16.float16.float32").unwrap();
    let c = lane_map(&inst, Operand::C).unwrap();
    let fragments = [
        c.repeat_in_slots(&[1, 3]).unwrap(),
        c.replicate(3).unwrap(),
        Fragment::partition(&[5, 229], 128, 2).unwrap(),
    ];
    for f in fragments {
        let [i, j, r] = vars();
        let [thread, slot] = to_expr::fragment(&f, &[i, j], Some(r)).unwrap();
        let map = FragmentMap {
            inputs: names[..2].to_vec(),
            replica: Some(names[2]),
            replicas: u32::try_from(f.replicas()).unwrap(),
            thread,
            slots: vec![slot],
        };
        let back = fragment_map(&map, f.shape(), f.threads()).unwrap();
        assert_eq!(back, f);
    }
}

/// The expressions of the way back name the element of every pair, and only where there is one.
fn check_way_back(f: &Fragment) {
    let [t, s, _] = vars();
    let inverse = f.inverse().expect("a closed way back");
    let (index, condition) = to_expr::inverse(&inverse, &t, &s);
    let rank = f.shape().len();
    for (at, element) in f.elements().into_iter().enumerate() {
        let at = at as i64;
        let place = [at / f.slots(), at % f.slots()];
        let held = condition.as_ref().is_none_or(|c| value(c, &place) != 0);
        let found: Vec<i64> = index.iter().map(|e| value(e, &place)).collect();
        assert_eq!(held.then(|| found[..rank].to_vec()), element, "{place:?}");
    }
}

#[test]
fn the_way_back_of_what_kernels_use() {
    let inst = MmaInst::from_name("mfma.32x32x8.bfloat16.float32").unwrap();
    let c = lane_map(&inst, Operand::C).unwrap();
    let block = c
        .repeat_in_slots(&[1, 3])
        .unwrap()
        .repeat_over_threads(&[2, 1])
        .unwrap();
    check_way_back(&block);
    assert_eq!(
        to_expr::inverse(&block.inverse().unwrap(), &vars()[0], &vars()[1]).1,
        None
    );
    check_way_back(&block.with_threads(256).unwrap());
    check_way_back(&block.replicate(3).unwrap());
    check_way_back(&Fragment::partition(&[229], 128, 1).unwrap());
    check_way_back(&Fragment::partition(&[5, 229], 128, 2).unwrap());
    check_way_back(
        &Fragment::partition(&[24], 8, 2)
            .unwrap()
            .with_threads(64)
            .unwrap(),
    );
    // Threads 4, 12, 20, … only: the digit below must be zero.
    let sparse = FragmentMap {
        inputs: vec![Var::from_u32(0)],
        replica: None,
        replicas: 1,
        thread: vars()[0].clone().floor_mod(5) * 8,
        slots: vec![vars()[0].clone().floor_div(5) * 2],
    };
    check_way_back(&fragment_map(&sparse, &[13], 64).unwrap());
}

fn expr() -> impl Strategy<Value = Expr> {
    let leaf = prop_oneof![
        Just(vars()[0].clone()),
        Just(vars()[1].clone()),
        (0i32..10).prop_map(Expr::i32),
    ];
    leaf.prop_recursive(4, 12, 2, |inner| {
        let by = prop::sample::select(vec![1, 2, 3, 4, 6, 8, 16]);
        prop_oneof![
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a + b),
            (inner.clone(), by.clone()).prop_map(|(a, b)| a * b),
            (inner.clone(), by.clone()).prop_map(|(a, b)| a.floor_div(b)),
            (inner.clone(), by).prop_map(|(a, b)| a.floor_mod(b)),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a ^ b),
            (inner.clone(), prop::sample::select(vec![1, 3, 6, 7, 8])).prop_map(|(a, b)| a & b),
            (inner.clone(), inner.clone()).prop_map(|(a, b)| a | b),
            (inner.clone(), 0i32..4).prop_map(|(a, b)| a << b),
            (inner, 0i32..4).prop_map(|(a, b)| a >> b),
        ]
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1500))]

    #[test]
    fn converted_expressions_have_the_same_values(e in expr(), rows in 1i64..13, cols in 1i64..17) {
        // The index itself as further outputs keeps every map injective.
        let [i, j, _] = vars();
        let layout = index_map(&map(vec![e.clone(), i, j]), &[rows, cols]).unwrap();
        for index in indices(&[rows, cols]) {
            prop_assert_eq!(layout.eval(&index)[0], value(&e, &index));
        }
        // And back.
        if let Some(back) = to_expr::layout(&layout, &vars()[..2]) {
            for index in indices(&[rows, cols]) {
                let values: Vec<i64> = back.iter().map(|e| value(e, &index)).collect();
                prop_assert_eq!(values, layout.eval(&index));
            }
        } else {
            prop_assert!(layout.raw_form().is_none());
        }
    }

    #[test]
    fn inverses_of_fragments_as_expressions(rows in 1i64..20, cols in 1i64..20, threads in 1i64..40, vector in prop::sample::select(vec![1i64, 2, 4])) {
        let f = Fragment::partition(&[rows, cols], threads, vector).unwrap();
        check_way_back(&f);
        let [i, j, _] = vars();
        let place = to_expr::fragment(&f, &[i, j], None).expect("partitions have expressions");
        for x in indices(&[rows, cols]) {
            let h = f.holder(&x, 0);
            prop_assert_eq!([value(&place[0], &x), value(&place[1], &x)], [h.thread, h.slot]);
        }
    }
}

#[test]
fn swizzles_print_as_people_write_them() {
    let [i, j, _] = vars();
    let layout = swizzle::Swizzle::B128.panels(&[64, 64], 16).unwrap();
    let e = &to_expr::layout(&layout, &[i.clone(), j.clone()]).unwrap()[0];
    let by_hand = i.clone() * 64 + (i.floor_mod(8) ^ j.clone().floor_div(8)) * 8 + j.floor_mod(8);
    assert_eq!(e, &by_hand);
}
