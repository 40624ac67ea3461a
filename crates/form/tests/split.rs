//! Addresses in two parts against the layout itself, on every element.

use proptest::prelude::*;
use tilewright_form::Layout;
use tilewright_form::split::{Effect, Kind, Part, Split};
use tilewright_form::swizzle::{Swizzle, row_xor};

/// The layouts that buffers get: swizzled, padded, row-major; rows a power of two or not.
fn layouts() -> Vec<Layout> {
    let b128 = Swizzle::B128.panels(&[64, 128], 16);
    vec![
        row_xor(&[128, 64], 8, &[(0, 0), (1, 1), (2, 2)]).expect("a layout"),
        row_xor(&[192, 64], 8, &[(0, 0), (1, 1), (2, 2)]).expect("a layout"),
        row_xor(&[64, 32], 8, &[(1, 0), (2, 1), (3, 0)]).expect("a layout"),
        row_xor(&[2, 32, 64], 4, &[(0, 1), (1, 2), (2, 3)]).expect("a layout"),
        b128.expect("a layout"),
        Layout::padded(&[48, 40], 8).expect("a layout"),
        Layout::linear(&[32, 229]).expect("a layout"),
    ]
}

/// Cuts each extent at powers of two and gives every piece a kind: a random reading of an index.
fn parts(layout: &Layout, seed: &[u32]) -> Vec<Part> {
    let mut numbers = seed.iter().cycle().copied();
    let mut next = move |below: u32| numbers.next().unwrap_or(0) % below;
    let mut parts = Vec::new();
    for (dim, &extent) in layout.shape().iter().enumerate() {
        let mut multiple = 1;
        while 2 * multiple <= extent {
            let left = extent / multiple;
            let count = [2, 4, 8, left][next(4) as usize].clamp(1, left);
            // An odd number of steps ends the row of cuts.
            let last = count.count_ones() != 1;
            let most = multiple * (count - 1);
            let kind = match next(4) {
                0 => Kind::Own,
                1 => Kind::Unrolled,
                2 => Kind::Shared,
                _ => Kind::Constant(multiple * i64::from(next(8)).min(count - 1)),
            };
            if kind != Kind::Constant(0) {
                parts.push(Part {
                    dim,
                    multiple,
                    most,
                    kind,
                });
            }
            if last {
                break;
            }
            multiple *= count;
        }
    }
    parts
}

/// Whether the split gives the place of every value of the summands (some of them, if many).
fn agrees(layout: &Layout, parts: &[Part], split: &Split, seed: u32) -> Result<(), TestCaseError> {
    let mut state = u64::from(seed) | 1;
    for _ in 0..400 {
        let mut fixed = vec![0; layout.shape().len()];
        let (mut whole, mut own) = (fixed.clone(), fixed.clone());
        let (mut xor, mut add) = (split.xor, split.add);
        for (part, effect) in parts.iter().zip(&split.effects) {
            state = state
                .wrapping_mul(6364136223846793005)
                .wrapping_add(1442695040888963407);
            let steps = (state >> 33) as i64 % (part.most / part.multiple + 1);
            let value = match part.kind {
                Kind::Constant(c) => c,
                _ => steps * part.multiple,
            };
            whole[part.dim] += value;
            match effect {
                Effect::Own => own[part.dim] += value,
                Effect::Add(ratio) => add += ratio * value,
                Effect::Xor(ratio) => xor += ratio * value,
                Effect::Fixed => fixed[part.dim] += value,
                Effect::Counted => {}
            }
        }
        if whole
            .iter()
            .zip(layout.shape())
            .any(|(x, extent)| x >= extent)
        {
            continue;
        }
        let flat = layout.flatten().expect("a layout");
        let fixed = flat.offset(&fixed);
        xor ^= fixed & split.mask;
        add += fixed & !split.mask;
        prop_assert_eq!(flat.offset(&whole), (flat.offset(&own) ^ xor) + add);
    }
    Ok(())
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn a_split_address_is_the_address(which in 0usize..7, seed in prop::collection::vec(any::<u32>(), 24)) {
        let layout = &layouts()[which];
        let parts = parts(layout, &seed);
        if let Some(split) = layout.split(&parts) {
            agrees(layout, &parts, &split, seed[0])?;
        }
    }
}

fn part(dim: usize, multiple: i64, most: i64, kind: Kind) -> Part {
    Part {
        dim,
        multiple,
        most,
        kind,
    }
}

#[test]
fn rows_are_added_and_chunks_are_xored() {
    // `ldmatrix` of 64 rows: lane + 16 t, column 8 h + 16.
    let layout = row_xor(&[128, 64], 8, &[(0, 0), (1, 1), (2, 2)]).expect("a layout");
    let parts = [
        part(0, 64, 64, Kind::Own),
        part(0, 1, 15, Kind::Own),
        part(0, 16, 48, Kind::Unrolled),
        part(1, 8, 8, Kind::Own),
        part(1, 16, 16, Kind::Constant(16)),
    ];
    let split = layout.split(&parts).expect("it splits");
    let effects = [
        Effect::Own,
        Effect::Own,
        Effect::Add(64),
        Effect::Own,
        Effect::Counted,
    ];
    assert_eq!(split.effects, effects);
    assert_eq!((split.xor, split.add), (16, 0));
}

#[test]
fn summands_that_may_carry_stay_together() {
    // The lane and the constant share digits: 12 + 8 is 20.
    let layout = row_xor(&[128, 64], 8, &[(0, 0), (1, 1), (2, 2)]).expect("a layout");
    let parts = [part(0, 1, 15, Kind::Own), part(0, 8, 8, Kind::Constant(8))];
    assert_eq!(layout.split(&parts), None);
}

#[test]
fn what_goes_several_ways_goes_through_the_layout() {
    // Bits 1, 2 and 3 of the row's number permute chunks, and 4 t has bits of both kinds.
    let layout = row_xor(&[64, 32], 8, &[(1, 0), (2, 1), (3, 0)]).expect("a layout");
    let parts = [
        part(0, 1, 3, Kind::Own),
        part(0, 4, 60, Kind::Unrolled),
        part(1, 8, 24, Kind::Own),
    ];
    let split = layout.split(&parts).expect("it splits");
    assert_eq!(split.effects, [Effect::Own, Effect::Fixed, Effect::Own]);
    assert_eq!(split.mask, 24);
}

#[test]
fn a_version_comes_off_where_it_only_adds() {
    // Tile `v` of two, rows of 64 in chunks of four: row `lane + 4 c`, column `8 h`.
    let layout = row_xor(&[2, 32, 64], 4, &[(0, 0), (1, 1), (2, 2)]).expect("a layout");
    let parts = [
        part(0, 1, 1, Kind::Shared),
        part(1, 1, 3, Kind::Own),
        part(1, 4, 28, Kind::Unrolled),
        part(2, 8, 56, Kind::Own),
    ];
    let split = layout.split(&parts).expect("it splits");
    let effects = [Effect::Add(2048), Effect::Own, Effect::Fixed, Effect::Own];
    assert_eq!(split.effects, effects);
    assert_eq!(split.mask, 16);
    // A row that all threads agree on is XORed into the column: it stays theirs.
    let parts = [part(1, 1, 31, Kind::Shared), part(2, 4, 60, Kind::Own)];
    assert_eq!(layout.split(&parts), None);
}
