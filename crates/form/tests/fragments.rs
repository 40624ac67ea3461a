//! Fragment questions against brute force.

use std::collections::BTreeSet;

use proptest::prelude::*;
use tilewright_form::radix::{Digit, indices};
use tilewright_form::{Form, Fragment, Holder, Layout, LineDigit, Sum};

/// A fragment of the shape with copies, its digits dealt to threads and slots by the seed;
/// bits may be mixed into later bits.
fn fragment(shape: &[i64], replicas: i64, seed: &[u32]) -> Fragment {
    let mut numbers = seed.iter().cycle().copied();
    let mut next = move |below: usize| numbers.next().unwrap_or(0) as usize % below.max(1);
    let full = [shape, &[replicas]].concat();
    let mut f = Form::identity(&full);
    for (dim, &extent) in full.iter().enumerate() {
        for at in [2, 3, 4, 6, 8] {
            if (extent % at == 0 || next(3) == 0) && next(2) == 0 {
                let _ = f.cut(dim, at);
            }
        }
    }
    let digits = f.radix.digits().to_vec();
    let mut order: Vec<usize> = (0..digits.len()).collect();
    for i in (1..order.len()).rev() {
        order.swap(i, next(i + 1));
    }
    let mut sums = [Sum::default(), Sum::default()];
    let mut places = [1, 1];
    let mut earlier = 0u64;
    for &at in &order {
        let d = digits[at];
        let side = if d.dim == shape.len() { 0 } else { next(2) };
        let mut row = 1u64 << at;
        if d.extent == 2 {
            if next(2) == 0 {
                row |= earlier & next(1 << 10) as u64;
            }
            earlier |= 1 << at;
        }
        sums[side].add(row, places[side]);
        places[side] *= d.extent;
    }
    f.outs = sums.to_vec();
    Fragment::new(Layout::new(&full, &places, f).unwrap()).unwrap()
}

fn extent() -> impl Strategy<Value = i64> {
    prop::sample::select(vec![1, 2, 3, 4, 6, 7, 8, 12])
}

fn seed() -> impl Strategy<Value = Vec<u32>> {
    prop::collection::vec(any::<u32>(), 24)
}

fn holders(f: &Fragment, index: &[i64]) -> BTreeSet<Holder> {
    f.holders(index).into_iter().collect()
}

fn thread_set(f: &Fragment, index: &[i64]) -> BTreeSet<i64> {
    f.holders(index).into_iter().map(|h| h.thread).collect()
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(1000))]

    /// What the closed form says of runs that are dealt out is what every element says.
    #[test]
    fn dealt_runs_are_counted_out(rows in extent(), cols in prop::sample::select(vec![4i64, 8, 16, 24]), width in prop::sample::select(vec![1i64, 2, 4]), seed in seed()) {
        let f = fragment(&[rows, cols], 1, &seed);
        let count = 2;
        let run = width * count;
        let dealt = indices(&[rows, cols]).all(|i| {
            let within = i[1] % run;
            let first = f.holder(&[i[0], i[1] - within], 0);
            let own = f.holder(&i, 0);
            cols % run == 0
                && (first.thread % count, first.slot % width) == (0, 0)
                && own.thread == first.thread + within / width
                && own.slot == first.slot + within % width
        });
        let said = f.deals_along(1, [width, count]);
        prop_assert!(!said || dealt);
        if f.layout().form().is_some_and(|mut form| form.cut(1, width).and_then(|()| form.cut(1, run)).is_some()) {
            prop_assert_eq!(said, dealt);
        }
    }

    /// Two elements a lane along rows, four lanes: as accumulators have them.
    #[test]
    fn accumulators_are_dealt_in_quads(tiles in 1i64..5) {
        let (row, col) = (0, 1);
        let lanes = [Digit::new(col, 2, 4), Digit::new(row, 1, 8)];
        let slots = [Digit::new(col, 1, 2), Digit::new(row, 8, 2), Digit::new(col, 8, tiles)];
        let slots = if tiles == 1 { &slots[..2] } else { &slots };
        let f = Fragment::from_digits(&[16, 8 * tiles], 1, &lanes, slots).unwrap();
        prop_assert!(f.deals_along(1, [2, 4]));
        prop_assert!(!f.deals_along(1, [4, 2]));
        prop_assert!(!f.deals_along(0, [2, 4]));
    }

    #[test]
    fn elements_and_holders_are_inverse(rows in extent(), cols in extent(), copies in prop::sample::select(vec![1i64, 2, 3, 4]), seed in seed()) {
        let f = fragment(&[rows, cols], copies, &seed);
        let mut held = BTreeSet::new();
        for i in indices(&[rows, cols]) {
            for h in f.holders(&i) {
                prop_assert!(held.insert(h));
                prop_assert_eq!(f.element(h), Some(i.clone()));
            }
        }
        let listed = f.elements();
        for thread in 0..f.threads() {
            for slot in 0..f.slots() {
                let h = Holder { thread, slot };
                prop_assert_eq!(f.element(h).is_some(), held.contains(&h));
                prop_assert_eq!(&listed[(thread * f.slots() + slot) as usize], &f.element(h));
            }
        }
    }

    #[test]
    fn containment_matches_brute_force(rows in extent(), cols in extent(), a in seed(), b in seed(), ca in prop::sample::select(vec![1i64, 2, 4]), cb in prop::sample::select(vec![1i64, 2, 4]), kind in 0..4) {
        let shape = [rows, cols];
        let f = fragment(&shape, ca, &a);
        let g = match kind {
            0 => fragment(&shape, cb, &b),
            // Closely related ones, so that both answers occur.
            1 => fragment(&shape, ca, &a),
            2 => fragment(&shape, 1, &a).replicate(cb).unwrap(),
            _ => f.replicate(2).unwrap(),
        };
        for (x, y) in [(&f, &g), (&g, &f)] {
            let placement = indices(&shape).all(|i| holders(x, &i).is_superset(&holders(y, &i)));
            prop_assert_eq!(x.covers_placement(y), placement);
            let threads = indices(&shape).all(|i| thread_set(x, &i).is_superset(&thread_set(y, &i)));
            prop_assert_eq!(x.covers_threads(y), threads);
        }
    }

    #[test]
    fn projections_keep_the_threads(rows in extent(), cols in extent(), copies in prop::sample::select(vec![1i64, 2]), seed in seed(), dim in 0usize..2) {
        let f = fragment(&[rows, cols], copies, &seed);
        let kept = [rows, cols][1 - dim];
        // Fails only where the digits of a ragged dimension cannot be copies.
        if let Some(result) = f.project(dim).unwrap() {
            prop_assert_eq!(result.shape(), &[kept][..]);
            for x in 0..kept {
                let mut threads = BTreeSet::new();
                for y in 0..[rows, cols][dim] {
                    let index = if dim == 0 { [y, x] } else { [x, y] };
                    threads.extend(thread_set(&f, &index));
                }
                prop_assert_eq!(thread_set(&result, &[x]), threads);
            }
        } else {
            prop_assert!(f.layout().raw_form().unwrap().radix.is_ragged(dim));
        }
    }

    #[test]
    fn completion_numbers_what_each_thread_holds(rows in extent(), cols in extent(), seed in seed()) {
        let f = fragment(&[rows, cols], 1, &seed);
        let again = Fragment::complete(&f.thread_layout().unwrap()).unwrap();
        let again = again.expect("a closed form");
        prop_assert!(again.covers_threads(&f) && f.covers_threads(&again));
        prop_assert!(again.slots() <= f.slots());
    }
}

#[test]
fn a_row_reduction_of_the_mma_accumulator_is_copied_in_each_quad() {
    let (row, col) = (0, 1);
    let c = Fragment::from_digits(
        &[16, 8],
        1,
        &[Digit::new(col, 2, 4), Digit::new(row, 1, 8)],
        &[Digit::new(col, 1, 2), Digit::new(row, 8, 2)],
    )
    .unwrap();
    let line = |div, extent, room, is_top| LineDigit {
        div,
        extent,
        room,
        is_top,
    };
    assert_eq!(c.thread_digits(col), Some(vec![line(1, 4, 4, false)]));
    assert_eq!(c.thread_digits(row), Some(vec![line(4, 8, 8, true)]));
    // Five of eight columns leave the last of four lanes without an element.
    let five = c.slice(&[0, 0], &[16, 5]).unwrap();
    assert_eq!(five.thread_digits(col), Some(vec![line(1, 3, 4, false)]));
    let sums = c.project(col).unwrap().unwrap();
    assert_eq!((sums.replicas(), sums.slots()), (4, 2));
    let threads: Vec<i64> = sums.holders(&[9]).iter().map(|h| h.thread).collect();
    assert_eq!(threads, [4, 5, 6, 7]);
    // A loop over the tile may read the sums, one over anything else may not.
    let broadcast = Layout::new(&[16, 8], &[16], Form::identity(&[16, 8]).only(0)).unwrap();
    let needed = c.image(&broadcast).unwrap().unwrap();
    assert!(sums.same_placement(&needed));
    let other = Fragment::partition(&[16], 32, 1).unwrap();
    assert!(!other.covers_threads(&needed));
    assert!(
        Fragment::partition(&[16], 16, 1)
            .unwrap()
            .replicate(2)
            .unwrap()
            .covers_threads(&other)
    );
}

#[test]
fn a_ragged_reduction_goes_over_the_threads_that_have_parts() {
    let f = Fragment::partition(&[4, 229], 128, 1).unwrap();
    // Rows do not start at thread zero, so nothing here is a digit of the rows.
    assert!(f.layout().form().is_none());
    let rows = Fragment::from_digits(
        &[4, 229],
        1,
        &[Digit::new(1, 1, 128)],
        &[Digit::new(1, 128, 2), Digit::new(0, 1, 4)],
    )
    .unwrap();
    let all = LineDigit {
        div: 1,
        extent: 128,
        room: 128,
        is_top: true,
    };
    assert_eq!(rows.thread_digits(1), Some(vec![all]));
    let sums = rows.project(1).unwrap().unwrap();
    assert_eq!(
        (sums.replicas(), sums.slots(), sums.threads()),
        (128, 4, 128)
    );
}

#[test]
fn four_copies_do_not_reach_six_threads() {
    // Cut at three, the copy number has the digits (3, 2), but not every pair of them.
    let copies = Fragment::from_digits(
        &[3, 2],
        4,
        &[Digit::new(2, 1, 4)],
        &[Digit::new(1, 1, 2), Digit::new(0, 1, 3)],
    );
    let spread =
        Fragment::from_digits(&[3, 2], 1, &[Digit::new(0, 1, 3), Digit::new(1, 1, 2)], &[]);
    assert!(!copies.unwrap().covers_threads(&spread.unwrap()));
}

#[test]
fn a_projection_over_digits_that_cannot_be_copies_is_none() {
    // 100 columns over 64 and then 2 of the threads: the copy (63, 1) is no column.
    let f = Fragment::from_digits(
        &[4, 100],
        1,
        &[
            Digit::new(1, 1, 64),
            Digit::new(0, 1, 4),
            Digit::new(1, 64, 2),
        ],
        &[],
    )
    .unwrap();
    assert_eq!(f.project(1), Ok(None));
    assert!(f.project(0).unwrap().is_some());
}
