//! `spare 1 taken from 3`: a spare version that costs no block.

use tilewright_ir::Buffer;

use crate::optimize::common::effects::Effects;
use crate::optimize::common::inject_software_pipeline::arrangement::Arrangement;
use crate::optimize::common::inject_software_pipeline::memory::blocks_at_once;
use crate::optimize::common::inject_software_pipeline::need::registers_in;
use crate::optimize::common::inject_software_pipeline::schedules::{Question, Why};

/// Where the spare versions leave room for fewer blocks, what runs `deep` iterations ahead or more runs
/// that many less; what does not run so far ahead is refused.
pub(super) fn take(order: &mut Arrangement, question: Question<'_>, deep: u32) -> Result<(), Why> {
    let depth = order.entries().map(|e| e.ahead).max().unwrap_or(0);
    let [now, then] =
        [depth + 1, depth + 1 + order.spare].map(|versions| blocks(question, versions));
    if then >= now {
        return Ok(());
    }
    if depth < deep {
        let more = match order.spare {
            1 => "one version".to_string(),
            n => format!("{n} versions"),
        };
        let why = match then {
            1 => format!("with {more} more one block runs at a time, not {now}"),
            _ => format!("with {more} more {then} blocks run at once, not {now}"),
        };
        return Err(why.into());
    }
    let most = depth.saturating_sub(order.spare);
    for entry in order.clusters.iter_mut().flat_map(|c| &mut c.entries) {
        entry.ahead = entry.ahead.min(most);
    }
    Ok(())
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
    let registers = registers_in(func, question.l);
    blocks_at_once(func, site, (threads, registers), (&copied, versions))
}
