//! SwizzleExchange: a swizzle moves from the shared side of a copy to its global side.
//!
//! A wave that copies straight to LDS writes its lanes' data one after another from one base,
//! whatever the lanes say. A swizzled tile is not written so: thread by thread it is filled in
//! the order of its elements, and the layout scatters them. But who copies which element is free.
//! Dealt out in the order of *places*, each thread takes the element whose swizzled place is its
//! own linear one; the XOR is then part of the global address, which every lane gives for itself.
//!
//! Before, for a layout that puts `[i, j]` at `i * 64 + (j // 8 ^ i % 8) * 8 + j % 8`:
//! ```text
//! g2s A[… + tx // 8, … + tx % 8 * 8] -> S[tx // 8, tx % 8 * 8]
//! ```
//! After:
//! ```text
//! g2s A[… + tx // 8, … + (tx % 8 ^ tx // 8 % 8) * 8] -> S[tx // 8, (tx % 8 ^ tx // 8 % 8) * 8]
//! ```
//! The same elements go to the same places, by other threads: the assignment is the layout of the
//! tile followed by the plain deal of its places, so nothing is matched or guessed. It never
//! changes the layout of the tile, hence no reader of it.

use std::fmt;

use tilewright_ir::{BufferOrigin, CopyOp, Inst};
use tilewright_layout::{Fragment, Layout};

use super::Lower;

/// Why a tile's places cannot be dealt out.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Refusal {
    /// Some places hold no element.
    Padding { elements: i64, places: i64 },
    /// So many elements in a row are together, fewer than a lane copies.
    Scattered { together: i64, width: i64 },
    /// The way from places to elements is no closed form.
    NoClosedForm,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::Padding { elements, places } => {
                write!(f, "its {elements} elements are padded to {places} places")
            }
            Refusal::Scattered { together, width } => write!(
                f,
                "its layout keeps {together} elements together, not the {width} that a lane copies"
            ),
            Refusal::NoClosedForm => f.write_str("its layout has no closed form from the places"),
        }
    }
}

/// The assignment of a tile's elements to threads in which places are dealt out in runs of
/// `width` in turn: run `n` goes to thread `n % threads`.
pub fn exchanged(layout: &Layout, threads: i64, width: i64) -> Result<Fragment, Refusal> {
    let (elements, places) = (layout.size(), layout.span());
    if elements != places || !layout.is_injective() {
        return Err(Refusal::Padding { elements, places });
    }
    let last = layout.shape().len().saturating_sub(1);
    let together = layout.vector_width(last);
    if together < width {
        return Err(Refusal::Scattered { together, width });
    }
    let whole = || {
        let dealt = Fragment::partition(layout.codomain(), threads, width).ok()?;
        let copies = Layout::identity(&[1]).ok()?;
        let placed = Layout::concat(layout, &copies).ok()?;
        let fragment = Fragment::new(placed.then(dealt.layout()).ok()?).ok()?;
        fragment.inverse()?;
        Some(fragment)
    };
    whole().ok_or(Refusal::NoClosedForm)
}

impl Lower<'_> {
    /// How many elements a lane copies when a wave does it: 16 bytes, or 4 where no more line up
    /// or there is not enough for all threads; of elements of six bits 12. `None` for copies that stay with the threads.
    pub(super) fn wave_copy_width(&self, c: &CopyOp, width: i64) -> Option<i64> {
        let copy = self.target.machine().wide_copy()?;
        if copy.inst != Inst::BufferLoadLds || !self.ahead.contains(&c.dst.buffer) {
            return None;
        }
        let bits = i64::from(self.dtype(c.dst.buffer).bits());
        let bytes = width * bits / 8;
        let sizes = copy.bytes.iter();
        let whole = |b: &i64| *b <= bytes && b * 8 % bits == 0;
        let fits = sizes.map(|b| i64::from(*b)).filter(whole).max()?;
        Some(fits * 8 / bits)
    }

    /// The assignment by places for a copy that fills the whole of a tile with a layout.
    pub(super) fn exchange(&self, c: &CopyOp, shape: &[i64], width: i64) -> Option<Fragment> {
        let data = &self.func.buffers[c.dst.buffer];
        if !c.dst.is_whole(data) || matches!(data.origin, BufferOrigin::View(_)) {
            return None;
        }
        let layout = data.placed()?.reshape(shape).ok()?;
        exchanged(&layout, self.threads, width).ok()
    }
}
