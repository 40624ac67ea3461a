//! `in_flight`: the plain order with a version of what is copied to spare.
//!
//! A product of a warp group runs while the program goes on. What it reads may be overwritten when
//! the block has met behind it; with one version more that is a meeting later, so the product of
//! the iteration before is in flight while the block meets and the next copies are issued, and the
//! matrix unit does not wait for either.

use tilewright_ir::Buffer;

use super::super::super::effects::Effects;
use super::super::arrangement::Arrangement;
use super::super::memory::blocks_at_once;
use super::{Question, Why, plain};

/// From so many iterations ahead on a version serves better as a spare one.
const DEEP: u32 = 3;

pub(super) fn arrange(question: Question<'_>) -> Result<Arrangement, Why> {
    let pieces = &question.pieces.list;
    if !pieces.iter().any(|p| p.is_product_in_flight()) {
        return Err("no product of the loop runs while the program goes on".into());
    }
    let depth = pieces.iter().map(|p| p.distance).max().unwrap_or(0);
    if depth == 0 {
        return Err("nothing in the loop runs ahead".into());
    }
    let [now, then] = [depth + 1, depth + 2].map(|versions| blocks(question, versions));
    let mut clusters = plain::arrange(question)?.clusters;
    if then < now {
        if depth < DEEP {
            let why = format!("with one version more {then} blocks run at once, not {now}");
            return Err(why.into());
        }
        for entry in clusters.iter_mut().flat_map(|c| &mut c.entries) {
            entry.ahead = entry.ahead.min(depth - 1);
        }
    }
    // The block meets before the copies: what they overwrite was read two products ago.
    if let Some(first) = clusters.first_mut() {
        first.meet = true;
    }
    Ok(Arrangement {
        spare: 1,
        ..Arrangement::new(clusters)
    })
}

/// How many blocks a multiprocessor has room for when so many versions are kept of what the loop
/// copies.
fn blocks(question: Question<'_>, versions: u32) -> u64 {
    let Question { func, pieces, .. } = question;
    let mut copied: Vec<Buffer> = Vec::new();
    for piece in pieces.list.iter().filter(|p| p.distance > 0) {
        copied.extend(&Effects::of(func, &piece.stmt).writes);
    }
    let site = (question.kernel, question.machine);
    let threads = question.kernel.num_threads();
    blocks_at_once(func, site, threads, (&copied, versions))
}
