//! SwizzleExchange changes who copies, never what goes where: for every layout of a shared buffer
//! in the examples, and for the swizzles at many tile shapes, the pairs of element and place are
//! the same as before, and the lanes of each wave write places in a row.

use std::collections::BTreeSet;
use std::path::Path;

use tilewright_frontend as frontend;
use tilewright_ir::{Scalar, SourceMap, Target};
use tilewright_layout::{Fragment, Holder, Layout, swizzle};
use tilewright_passes::driver::{self, Options, Until};
use tilewright_passes::legalize::lower_tile_op::{ExchangeRefusal, exchanged};

/// Which element goes to which place, in elements.
type Pairs = BTreeSet<(Vec<i64>, i64)>;

/// What the threads copy by a fragment: each of them runs of `width` from the places that the
/// layout gives the first elements.
fn pairs(fragment: &Fragment, layout: &Layout, width: i64) -> Pairs {
    let mut all = Pairs::new();
    for thread in 0..fragment.threads() {
        for slot in (0..fragment.slots()).step_by(width as usize) {
            let Some(mut first) = fragment.element(Holder { thread, slot }) else {
                continue;
            };
            first.truncate(layout.shape().len());
            let place = layout.offset(&first);
            for within in 0..width {
                let mut element = first.clone();
                if let Some(last) = element.last_mut() {
                    *last += within;
                }
                let new = all.insert((element, place + within));
                assert!(new, "copied twice");
            }
        }
    }
    all
}

fn check(layout: &Layout, threads: i64, width: i64) -> Result<(), ExchangeRefusal> {
    let after = exchanged(layout, threads, width)?;
    let before = Fragment::partition(layout.shape(), threads, width).unwrap();
    let what = format!("{layout:?}, {threads} threads, {width} a lane");
    assert_eq!(
        pairs(&before, layout, width),
        pairs(&after, layout, width),
        "{what}"
    );
    for thread in 0..threads {
        for slot in (0..after.slots()).step_by(width as usize) {
            let Some(mut element) = after.element(Holder { thread, slot }) else {
                continue;
            };
            element.truncate(layout.shape().len());
            let linear = slot * threads + thread * width;
            assert_eq!(layout.offset(&element), linear, "{what}");
        }
    }
    Ok(())
}

/// Widths of 16 and 4 bytes, for blocks of one to eight waves.
fn check_all(layout: &Layout, bits: i64) -> u32 {
    let mut exchanged = 0;
    for bytes in [16, 4] {
        let width = bytes * 8 / bits;
        let last = layout.shape().len() - 1;
        if width < 1 || layout.vector_width(last) < width {
            continue;
        }
        for threads in [64, 128, 256, 512] {
            // Lowering takes narrower runs where there are fewer than threads.
            if threads * width > layout.size() {
                continue;
            }
            let binary = layout.shape().iter().all(|e| e.count_ones() == 1);
            match check(layout, threads, width) {
                Ok(()) => exchanged += 1,
                // Rows of 96 and runs of 512 have no common digits.
                Err(ExchangeRefusal::NoClosedForm) if !binary => {}
                Err(refusal) => panic!("{layout:?}, {threads} threads: {refusal}"),
            }
        }
    }
    exchanged
}

#[test]
fn every_layout_of_the_examples_exchanges() {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples");
    let mut seen: Vec<(Layout, Scalar)> = Vec::new();
    let mut exchanged = 0;
    for entry in std::fs::read_dir(folder).unwrap() {
        let path = entry.unwrap().path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        let text = std::fs::read_to_string(&path).unwrap();
        // What has the bulk copy engine work is for machines that have one.
        if text.contains("T.tma_copy") || text.contains("T.tma_load") {
            continue;
        }
        let mut sources = SourceMap::new();
        let file = sources.add("example.py", text);
        let mut func = frontend::stage(&sources, file, None, &[]).unwrap().func;
        let options = Options {
            until: Until::Pass("layout-inference"),
            ..Options::default()
        };
        driver::run(&mut func, Target::Gfx950, &options).unwrap();
        for data in func.buffers.values() {
            let Some(place) = data.placed() else {
                continue;
            };
            let key = (place.layout().clone(), data.dtype.scalar);
            if seen.contains(&key) {
                continue;
            }
            seen.push(key);
            if place.span() == place.size() {
                exchanged += check_all(place, i64::from(data.dtype.bits()));
            }
        }
    }
    assert!(exchanged > 100, "only {exchanged} exchanged");
}

#[test]
fn swizzles_exchange_at_all_tile_shapes() {
    for scalar in [Scalar::BF16, Scalar::F8E4M3FN] {
        for rows in [16, 64, 192] {
            for cols in [16, 32, 64, 96, 128] {
                let place = swizzle::for_elements(Target::Gfx950, &[rows, cols], scalar);
                check_all(&place.unwrap(), i64::from(scalar.bits()));
            }
        }
    }
    for pairs in [
        vec![(0, 0)],
        vec![(0, 0), (1, 1)],
        vec![(1, 0), (2, 1), (3, 2)],
    ] {
        for (rows, cols) in [(16, 64), (64, 64), (32, 128)] {
            let layout = swizzle::row_xor(&[rows, cols], 8, &pairs).unwrap();
            check_all(&layout, 16);
        }
    }
}

#[test]
fn what_does_not_apply_is_refused() {
    let padded = Layout::padded(&[64, 64], 8).unwrap();
    assert_eq!(
        exchanged(&padded, 256, 8),
        Err(ExchangeRefusal::Padding {
            elements: 64 * 64,
            places: 64 * 72 - 8
        })
    );
    let transposed = Layout::strided(&[64, 64], &[1, 64]).unwrap();
    assert_eq!(
        exchanged(&transposed, 256, 8),
        Err(ExchangeRefusal::Scattered {
            together: 1,
            width: 8
        })
    );
}
