//! The laws of the algebra, and every closed-form decision against brute force, on random
//! small layouts: bit-linear ones, mixed-radix ones, both mixed, and ragged ones.

use std::collections::{HashMap, HashSet};

use proptest::prelude::*;
use tilewright_layout::radix::indices;
use tilewright_layout::{Form, Layout, LayoutError, Verdict};

/// Extents that mix powers of two, composites and primes.
fn extent() -> impl Strategy<Value = i64> {
    prop::sample::select(vec![1, 2, 2, 3, 4, 4, 5, 6, 8, 8, 12, 13, 16])
}

fn shape() -> impl Strategy<Value = Vec<i64>> {
    prop::collection::vec(extent(), 1..=3)
}

/// A form over the shape with cuts, weights and parities taken from `seed`.
fn form(shape: &[i64], outs: usize, seed: &[u32]) -> Form {
    let mut numbers = seed.iter().cycle().copied();
    let mut next = move |below: u32| numbers.next().unwrap_or(0) % below;
    let mut f = Form::identity(shape);
    for (dim, &extent) in shape.iter().enumerate() {
        for at in [2, 4, 3, 6, 8] {
            if at < extent && next(2) == 0 {
                // Not every cut fits the chain; those that do not are simply not made.
                let _ = f.cut(dim, at);
            }
        }
    }
    let count = f.radix.digits().len();
    let bits = f.bit_digits();
    f.outs.clear();
    for _ in 0..outs {
        let mut sum = tilewright_layout::Sum::constant(i64::from(next(4)));
        let mut place = 1;
        for at in 0..count {
            let extent = f.radix.digits()[at].extent;
            match next(9) {
                0 => {}
                1 => sum.add(1 << at, next(5) as i64),
                // Counts backwards.
                3 => {
                    sum.add(1 << at, -place);
                    place *= extent;
                }
                2 if bits >> at & 1 == 1 => {
                    let other = u64::from(next(1 << 8)) & bits;
                    sum.add(other | 1 << at, place);
                    place *= 2;
                }
                _ => {
                    sum.add(1 << at, place);
                    place *= extent;
                }
            }
        }
        f.outs.push(sum);
    }
    f
}

/// A bijection from the shape to one number: digits shuffled, then bits mixed.
fn bijection(shape: &[i64], seed: &[u32]) -> Layout {
    let mut numbers = seed.iter().cycle().copied();
    let mut next = move |below: usize| numbers.next().unwrap_or(0) as usize % below.max(1);
    let mut f = Form::identity(shape);
    for (dim, &extent) in shape.iter().enumerate() {
        for at in [2, 3, 4, 6, 8] {
            // Only cuts that divide the extent: a ragged digit system is no box.
            if extent % at == 0 && next(2) == 0 {
                let _ = f.cut(dim, at);
            }
        }
    }
    let digits = f.radix.digits().to_vec();
    let mut order: Vec<usize> = (0..digits.len()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, next(i + 1));
    }
    let mut sum = tilewright_layout::Sum::constant(0);
    let mut place = 1;
    let mut earlier = 0u64;
    for &at in &order {
        let mut row = 1u64 << at;
        if digits[at].extent == 2 {
            // A triangular matrix is invertible.
            row |= earlier & next(1 << 12) as u64;
            earlier |= 1 << at;
        }
        sum.add(row, place);
        place *= digits[at].extent;
    }
    f.outs = vec![sum];
    Layout::new(shape, &[place], f).expect("a permutation of digits stays in range")
}

fn seed() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 24)
}

/// A layout whose codomain is the bounding box of its outputs, moved to start at zero.
fn layout_of(shape: &[i64], mut f: Form) -> Layout {
    let places: Vec<_> = indices(shape).map(|i| f.eval(&i)).collect();
    let mut codomain = Vec::new();
    for (o, out) in f.outs.iter_mut().enumerate() {
        let values = places.iter().map(|p| p[o]);
        let low = values.clone().min().unwrap_or(0).min(0);
        out.offset -= low;
        codomain.push(1 + values.max().unwrap_or(0) - low);
    }
    Layout::new(shape, &codomain, f).expect("inside its own bounding box")
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(256))]

    #[test]
    fn ranges_match_brute_force(shape in shape(), seed in seed()) {
        let f = form(&shape, 1, &seed);
        let values: Vec<i64> = indices(&shape).map(|i| f.eval(&i)[0]).collect();
        if let Verdict::Known((low, high)) = f.range(0) {
            prop_assert_eq!(Some(&low), values.iter().min());
            prop_assert_eq!(Some(&high), values.iter().max());
        }
    }

    #[test]
    fn injectivity_matches_brute_force(shape in shape(), outs in 1usize..3, seed in seed()) {
        let f = form(&shape, outs, &seed);
        let images: HashSet<Vec<i64>> = indices(&shape).map(|i| f.eval(&i)).collect();
        let distinct = images.len() as i64 == f.radix.size();
        if let Verdict::Known(found) = f.collision() {
            prop_assert_eq!(found.is_none(), distinct);
            if let Some(c) = found {
                prop_assert_ne!(&c.a, &c.b);
                prop_assert!(c.a.iter().chain(&c.b).zip(shape.iter().chain(&shape)).all(|(i, e)| i < e));
                prop_assert_eq!(f.eval(&c.a), f.eval(&c.b));
            }
        }
        let layout = layout_of(&shape, f);
        prop_assert_eq!(layout.is_injective(), distinct);
        prop_assert_eq!(layout.is_surjective(), images.len() as i64 == layout.span());
        prop_assert_eq!(layout.is_bijective(), distinct && images.len() as i64 == layout.span());
    }

    #[test]
    fn equality_matches_brute_force(shape in shape(), a in seed(), b in seed(), same in any::<bool>()) {
        let f = form(&shape, 1, &a);
        let mut g = form(&shape, 1, if same { &a } else { &b });
        if same {
            // The same function, cut differently.
            for (dim, at) in [(0, 2), (0, 4), (0, 3)] {
                let _ = g.cut(dim, at);
            }
        } else if !b[0].is_multiple_of(3) {
            // A near miss.
            g = f.clone();
            let last = 1u64 << (g.radix.digits().len().max(1) - 1);
            if g.radix.digits().is_empty() { g.outs[0].offset += 1 } else { g.outs[0].add(last, 1) }
        }
        let equal = indices(&shape).all(|i| f.eval(&i) == g.eval(&i));
        if let Verdict::Known(known) = f.equals(&g) {
            prop_assert_eq!(known, equal);
        }
        let mut coalesced = g.clone();
        coalesced.coalesce();
        prop_assert!(indices(&shape).all(|i| coalesced.eval(&i) == g.eval(&i)));
    }

    #[test]
    fn composition_is_composition(shape in shape(), a in seed(), b in seed()) {
        let f = layout_of(&shape, form(&shape, 2, &a));
        let g = layout_of(f.codomain(), form(f.codomain(), 1, &b));
        let h = f.then(&g).unwrap();
        for i in indices(&shape) {
            prop_assert_eq!(h.eval(&i), g.eval(&f.eval(&i)));
        }
    }

    #[test]
    fn composition_is_associative(shape in shape(), a in seed(), b in seed(), c in seed()) {
        let f = layout_of(&shape, form(&shape, 1, &a));
        let g = layout_of(f.codomain(), form(f.codomain(), 1, &b));
        let h = layout_of(g.codomain(), form(g.codomain(), 1, &c));
        let left = f.then(&g).unwrap().then(&h).unwrap();
        let right = f.then(&g.then(&h).unwrap()).unwrap();
        prop_assert_eq!(left, right);
    }

    #[test]
    fn inverses_undo(shape in shape(), seed in seed()) {
        let f = bijection(&shape, &seed);
        prop_assert!(f.is_bijective() && f.is_surjective());
        let back = f.inverse().unwrap();
        prop_assert!(back.raw_form().is_some(), "a permutation of digits has a closed inverse");
        prop_assert_eq!(f.then(&back).unwrap(), Layout::identity(&shape).unwrap());
        prop_assert_eq!(back.then(&f).unwrap(), Layout::identity(f.codomain()).unwrap());
        prop_assert_eq!(back.inverse().unwrap(), f);
    }

    #[test]
    fn the_inverse_of_a_composition_turns_around(shape in shape(), a in seed(), b in seed()) {
        let f = bijection(&shape, &a);
        let g = bijection(f.codomain(), &b);
        let together = f.then(&g).unwrap().inverse().unwrap();
        let apart = g.inverse().unwrap().then(&f.inverse().unwrap()).unwrap();
        prop_assert_eq!(together, apart);
    }

    #[test]
    fn products_tile(outer in prop::collection::vec(extent(), 2), inner in prop::collection::vec(extent(), 2), a in seed(), b in seed()) {
        let f = layout_of(&outer, form(&outer, 1, &a));
        let g = layout_of(&inner, form(&inner, 1, &b));
        let h = Layout::product(&f, &g).unwrap();
        for i in indices(h.shape()) {
            let tile = [i[0] / inner[0], i[1] / inner[1]];
            let rest = [i[0] % inner[0], i[1] % inner[1]];
            prop_assert_eq!(h.offset(&i), f.offset(&tile) * g.span() + g.offset(&rest));
        }
        prop_assert_eq!(h.is_injective(), f.is_injective() && g.is_injective());
        let side_by_side = Layout::concat(&f, &g).unwrap();
        for i in indices(side_by_side.shape()) {
            prop_assert_eq!(side_by_side.eval(&i), vec![f.offset(&i[..2]), g.offset(&i[2..])]);
        }
    }

    #[test]
    fn products_are_associative(shapes in prop::collection::vec(prop::sample::select(vec![2i64, 3, 4]), 6), seed in seed()) {
        let [f, g, h] = [0, 2, 4].map(|at| bijection(&shapes[at..at + 2], &seed[at..]));
        let left = Layout::product(&Layout::product(&f, &g).unwrap(), &h).unwrap();
        let right = Layout::product(&f, &Layout::product(&g, &h).unwrap()).unwrap();
        prop_assert_eq!(left, right);
    }

    #[test]
    fn slices_permutations_and_reshapes_keep_places(seed in seed(), rows in extent(), cols in extent()) {
        let shape = [rows, cols];
        let f = layout_of(&shape, form(&shape, 1, &seed));
        let start = [seed[0] as i64 % rows, seed[1] as i64 % cols];
        let extents = [1 + seed[2] as i64 % (rows - start[0]), 1 + seed[3] as i64 % (cols - start[1])];
        let slice = f.slice(&start, &extents).unwrap();
        for i in indices(&extents) {
            prop_assert_eq!(slice.eval(&i), f.eval(&[i[0] + start[0], i[1] + start[1]]));
        }
        let turned = f.permute(&[1, 0]).unwrap();
        for i in indices(&shape) {
            prop_assert_eq!(turned.eval(&[i[1], i[0]]), f.eval(&i));
        }
        prop_assert_eq!(&turned.permute(&[1, 0]).unwrap(), &f);
        let flat = f.reshape(&[rows * cols]).unwrap();
        for i in indices(&shape) {
            prop_assert_eq!(flat.eval(&[i[0] * cols + i[1]]), f.eval(&i));
        }
        prop_assert_eq!(flat.reshape(&shape).unwrap(), f);
    }

    #[test]
    fn vector_widths_match_brute_force(shape in shape(), seed in seed(), dim in 0usize..3) {
        let dim = dim % shape.len();
        let f = layout_of(&shape, form(&shape, 1, &seed));
        let runs = |v: i64| shape[dim] % v == 0 && indices(&shape).all(|i| {
            let mut first = i.clone();
            first[dim] -= i[dim] % v;
            let start = f.offset(&first);
            start % v == 0 && f.offset(&i) == start + i[dim] % v
        });
        let mut widest = 1;
        while runs(2 * widest) && widest < shape[dim] { widest *= 2 }
        prop_assert_eq!(f.vector_width(dim), widest);
    }

    #[test]
    fn tables_and_forms_are_one_interface(shape in shape(), seed in seed()) {
        let f = layout_of(&shape, form(&shape, 2, &seed));
        let listed = Layout::tabulate(&shape, f.codomain(), |i| Ok(f.eval(i))).unwrap();
        prop_assert_eq!(&listed, &f);
        prop_assert_eq!(listed.is_injective(), f.is_injective());
        prop_assert_eq!(listed.is_surjective(), f.is_surjective());
    }
}

#[test]
fn the_usual_layouts_never_leave_closed_form() {
    // Counted so that a regression in the composition rules shows: every pair of bijections
    // over powers of two must compose in closed form.
    let mut closed = HashMap::new();
    for seed in 0..200u32 {
        let numbers: Vec<u32> = (0..24)
            .map(|i| seed.wrapping_mul(2654435761).rotate_left(i))
            .collect();
        let f = bijection(&[8, 16], &numbers);
        let g = bijection(&[128], &numbers[7..]);
        let is_closed = f.then(&g).unwrap().raw_form().is_some();
        *closed.entry(is_closed).or_insert(0) += 1;
    }
    assert_eq!(closed, HashMap::from([(true, 200)]));
}

#[test]
fn errors_name_the_elements() {
    let broadcast = Layout::strided(&[4, 8], &[0, 1]).unwrap();
    let error = broadcast.inverse().unwrap_err();
    assert_eq!(
        error.to_string(),
        "elements (0, 0) and (1, 0) both go to (0)"
    );
    let padded = Layout::padded(&[4, 8], 1).unwrap();
    assert!(matches!(
        padded.inverse(),
        Err(LayoutError::NotOnto {
            elements: 32,
            places: 35
        })
    ));
    let out = Layout::new(&[4], &[3], Form::identity(&[4])).unwrap_err();
    assert_eq!(
        out.to_string(),
        "element (3) goes to 3 in output 0, outside 0..3"
    );
    assert!(matches!(
        Layout::linear(&[0, 4]),
        Err(LayoutError::BadShape { .. })
    ));
    assert!(matches!(
        Layout::linear(&[i64::MAX, 4]),
        Err(LayoutError::BadShape { .. })
    ));
}

#[test]
fn the_examples_of_the_crate_comment() {
    let overlap = Layout::strided(&[2, 4], &[3, 1]).unwrap();
    let found = overlap.collision().unwrap();
    assert_eq!((found.a, found.b), (vec![0, 3], vec![1, 0]));
    let mut bits = Form::identity(&[4, 4]);
    for dim in [0, 1] {
        bits.cut(dim, 2).unwrap();
    }
    let mut xor = tilewright_layout::Sum::default();
    xor.add(0b0101, 1);
    xor.add(0b1010, 2);
    bits.outs = vec![xor];
    let xor = Layout::new(&[4, 4], &[4], bits).unwrap();
    assert_eq!(xor.eval(&[3, 1]), [2]);
    let found = xor.collision().unwrap();
    assert_eq!(xor.eval(&found.a), xor.eval(&found.b));
    assert!(xor.is_surjective() && !xor.is_injective());
    // Two and three do not nest, and are injective for these extents all the same.
    assert!(Layout::strided(&[3, 2], &[2, 3]).unwrap().is_injective());
    assert!(!Layout::strided(&[4, 3], &[2, 3]).unwrap().is_injective());
}

/// What the crate builds itself never needs a list, nor a decision by points.
#[test]
fn what_this_crate_builds_is_closed_and_decided() {
    use tilewright_ir::micro_op::MmaInst;
    use tilewright_ir::target::Target;
    use tilewright_layout::swizzle::{Subtile, Swizzle, for_matrix};
    use tilewright_layout::{Fragment, lanes};

    let inst = |name: &str| MmaInst::from_name(name).unwrap();
    let bf16 = inst("mfma.16x16x32.bfloat16.float32");
    let mut layouts = vec![
        Layout::linear(&[3, 229, 40]).unwrap(),
        Layout::padded(&[229, 40], 8).unwrap(),
        Swizzle::B128.panels(&[3, 192, 128], 16).unwrap(),
        Swizzle::B64.panels(&[229, 96], 16).unwrap(),
        Swizzle::B32.panels(&[229, 16], 16).unwrap(),
        for_matrix(Target::Gfx950, &[2, 192, 96], &bf16)
            .unwrap()
            .layout()
            .clone(),
        for_matrix(Target::Gfx950, &[229, 64], &bf16)
            .unwrap()
            .layout()
            .clone(),
        for_matrix(Target::Gfx942, &[256, 64], &bf16)
            .unwrap()
            .layout()
            .clone(),
        lanes::ldmatrix::tile_order(2, 2, 16).unwrap(),
    ];
    layouts.extend(Subtile::ALL.map(|s| s.tile(s.rows * 3, s.cols * 5).unwrap()));
    let c = lanes::lane_map(&bf16, lanes::Operand::C).unwrap();
    let fragments = [
        c.repeat_in_slots(&[3, 5])
            .unwrap()
            .repeat_over_threads(&[2, 3])
            .unwrap(),
        Fragment::partition(&[229], 128, 1).unwrap(),
        Fragment::partition(&[5, 229], 128, 1).unwrap(),
        Fragment::partition(&[64, 192], 96, 8).unwrap(),
        Fragment::partition(&[5], 128, 4)
            .unwrap()
            .replicate(3)
            .unwrap(),
    ];
    layouts.extend(fragments.iter().map(|f| f.layout().clone()));
    for layout in &layouts {
        let form = layout.raw_form().expect("closed");
        assert!(matches!(form.collision(), Verdict::Known(None)), "{form:?}");
        assert!(matches!(form.equals(form), Verdict::Known(true)));
        assert!(matches!(
            form.surjective(layout.codomain()),
            Verdict::Known(_)
        ));
    }
}
