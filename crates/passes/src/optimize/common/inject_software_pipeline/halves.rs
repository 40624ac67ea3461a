//! Orders whose second half of the block's waves is a barrier behind the first.

use tilewright_ir::{Buffer, Scope};

use super::super::effects::Effects;
use super::schedules::{Question, Why};

/// Whether the block's waves can be such halves.
pub(super) fn check(question: Question<'_>) -> Result<(), Why> {
    let Question { func, machine, .. } = question;
    if !machine.barrier.bare {
        return Err("a barrier of this machine's blocks waits for all copies".into());
    }
    let threads = question.kernel.num_threads();
    if !threads.is_multiple_of(2 * machine.warp_size) {
        return Err(format!("{threads} threads are no two halves of whole waves").into());
    }
    // Its own barriers would be met by others of the other half.
    for piece in &question.pieces.list {
        let effects = Effects::of(func, &piece.stmt);
        let shared = |b: &&Buffer| func.buffers[**b].scope == Scope::Shared;
        let mut both = effects.writes.intersection(&effects.reads).filter(shared);
        if let Some(buffer) = both.next() {
            let name = &func.buffers[*buffer].name;
            return Err(format!("a statement of the loop writes and reads `{name}`").into());
        }
    }
    Ok(())
}
