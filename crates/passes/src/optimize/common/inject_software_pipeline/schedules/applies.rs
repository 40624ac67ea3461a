//! For which loops a schedule is, beyond what its text says.

use tilewright_schedule::order::Completion;

use super::super::text::{Multiplies, Products};
use super::{Question, Why};

/// All that the text can be read for.
pub(super) fn always(_: Question<'_>) -> Result<(), Why> {
    Ok(())
}

/// Products whose reads can be ahead where the loop begins and ends.
pub(super) fn reads_ahead(question: Question<'_>) -> Result<(), Why> {
    if question.machine.shared.counter.is_some() {
        return Err(
            "reads of shared memory are counted, and those ahead would be in flight at the \
             loop's ends"
                .into(),
        );
    }
    let work = Multiplies::of(question)?;
    if !work.stores.is_empty() {
        return Err("copies go through registers".into());
    }
    match work.steps.count {
        0 | 1 => Err("the product has one step along K".into()),
        _ => Ok(()),
    }
}

/// Products that run while the program goes on, behind copies that run ahead.
pub(super) fn products_in_flight(question: Question<'_>) -> Result<(), Why> {
    let pieces = &question.pieces.list;
    if !pieces.iter().any(|p| p.is_product_in_flight()) {
        return Err("no product of the loop runs while the program goes on".into());
    }
    match pieces.iter().all(|p| p.distance == 0) {
        true => Err("nothing in the loop runs ahead".into()),
        false => Ok(()),
    }
}

/// Blocks of two halves with waves on all SIMDs, whose copies are under way while they read.
pub(super) fn two_halves(question: Question<'_>) -> Result<(), Why> {
    halves(question)?;
    let work = Multiplies::of(question)?;
    in_flight(question, &work.copies)
}

/// The same of loops with two products, the second of which needs what is made of the first.
pub(super) fn chained_halves(question: Question<'_>) -> Result<(), Why> {
    halves(question)?;
    let products = Products::of(question.func, question.pieces);
    if products.all.len() != 2 {
        return Err("it has not two products by matrix instructions".into());
    }
    if products.others(0, true).is_empty() {
        return Err("nothing stands between its products".into());
    }
    let list = &question.pieces.list;
    if list.iter().any(|piece| piece.late) {
        return Err("copies go through registers".into());
    }
    let ahead: Vec<usize> = (0..list.len())
        .filter(|at| list[*at].distance > 0)
        .collect();
    match ahead.is_empty() {
        true => Err("nothing in the loop runs ahead".into()),
        false => in_flight(question, &ahead),
    }
}

/// Loops of several iterations. What runs two of them ahead takes longer at both ends.
pub(super) fn is_long(question: Question<'_>) -> Result<(), Why> {
    match super::is_long(question.l) {
        true => Ok(()),
        false => Err("the loop is short".into()),
    }
}

/// Loops of one product whose tiles waves copy by themselves, to a part of a tile at a time.
pub(super) fn copied_by_waves(question: Question<'_>) -> Result<(), Why> {
    leaves_in_flight(question)?;
    let work = Multiplies::of(question)?;
    if !work.stores.is_empty() {
        return Err("copies go through registers".into());
    }
    in_flight(question, &work.copies)
}

/// Blocks of two halves with waves on all SIMDs.
fn halves(question: Question<'_>) -> Result<(), Why> {
    leaves_in_flight(question)?;
    let machine = question.machine;
    let threads = question.kernel.num_threads();
    let pairs = 2 * machine.simds * machine.warp_size;
    match threads.is_multiple_of(pairs) {
        true => Ok(()),
        false => Err(format!(
            "a block of {threads} threads has no two halves with waves on all SIMDs; one of {pairs} has"
        )
        .into()),
    }
}

/// Blocks that can meet while copies are under way.
fn leaves_in_flight(question: Question<'_>) -> Result<(), Why> {
    match question.machine.barrier.bare {
        true => Ok(()),
        false => Err("the block has no barrier that leaves copies in flight".into()),
    }
}

/// Copies that are under way while the program goes on.
fn in_flight(question: Question<'_>, copies: &[usize]) -> Result<(), Why> {
    let list = &question.pieces.list;
    let in_flight = |at: &usize| matches!(list[*at].completion, Completion::Counted { .. });
    match copies.iter().all(in_flight) {
        true => Ok(()),
        false => Err("a copy is done before the program goes on".into()),
    }
}
