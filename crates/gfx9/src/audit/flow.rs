//! What holds before each block of a function, over all ways to it.

use crate::asm::blocks::Blocks;
use crate::asm::{Function, Instruction};

/// A state that instructions change.
pub(super) trait State: Clone + Default {
    fn step(&mut self, instruction: &Instruction);
    /// The way goes on without an active lane: what no lane did since `exec` was written, nothing
    /// did.
    fn without_lanes(&mut self) {}
    /// Takes in another way here. Says whether anything changed.
    fn meet(&mut self, other: &Self) -> bool;
}

/// The state before each block.
fn at_starts<S: State>(function: &Function, blocks: &Blocks) -> Vec<Option<S>> {
    let code = &function.instructions;
    let mut before: Vec<Option<S>> = vec![None; blocks.ranges.len()];
    let mut again = vec![false; before.len()];
    if let Some(first) = before.first_mut() {
        *first = Some(S::default());
        again[0] = true;
    }
    // Blocks come before those they lead to, but where a way goes back.
    while again.contains(&true) {
        for block in 0..before.len() {
            let (true, Some(state)) = (std::mem::take(&mut again[block]), &before[block]) else {
                continue;
            };
            let mut state = state.clone();
            let range = blocks.ranges[block].clone();
            for instruction in &code[range.clone()] {
                state.step(instruction);
            }
            let lanes = code[range.end - 1].branches_without_lanes();
            for to in &blocks.next[block] {
                // Behind itself a block leads to the next in the text, else to a label.
                let falls = blocks.ranges[*to].start == range.end;
                let without = (lanes == Some(!falls)).then(|| {
                    let mut state = state.clone();
                    state.without_lanes();
                    state
                });
                let state = without.as_ref().unwrap_or(&state);
                again[*to] |= match &mut before[*to] {
                    Some(known) => known.meet(state),
                    slot => {
                        *slot = Some(state.clone());
                        true
                    }
                };
            }
        }
    }
    before
}

/// Shows every instruction that something leads to, with the state before it.
pub(super) fn visit<S: State>(
    function: &Function,
    blocks: &Blocks,
    mut show: impl FnMut(&S, &Instruction),
) {
    let before = at_starts::<S>(function, blocks);
    for (range, state) in blocks.ranges.iter().zip(before) {
        let Some(mut state) = state else { continue };
        for instruction in &function.instructions[range.clone()] {
            show(&state, instruction);
            state.step(instruction);
        }
    }
}
