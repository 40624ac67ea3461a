//! What holds before each block of a function, over all ways to it.

use std::collections::BTreeSet;

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

/// The state at each instruction that a block starts with; none where nothing leads there.
pub(super) fn at_starts<S: State>(function: &Function) -> Vec<Option<S>> {
    let code = &function.instructions;
    let mut at_start: Vec<Option<S>> = vec![None; code.len()];
    let starts: BTreeSet<usize> = function.labels.values().copied().collect();
    let mut work: Vec<usize> = vec![0];
    if let Some(first) = at_start.first_mut() {
        *first = Some(S::default());
    }
    while let Some(start) = work.pop() {
        let Some(mut state) = at_start.get(start).cloned().flatten() else {
            continue;
        };
        let mut index = start;
        while let Some(instruction) = code.get(index) {
            state.step(instruction);
            let lanes = instruction.branches_without_lanes();
            let mut next = Vec::new();
            if let Some(label) = instruction.target() {
                let target = function.labels.get(label).copied();
                next.extend(target.map(|t| (t, lanes == Some(true))));
            }
            let falls = !instruction.ends_block();
            let ends = !next.is_empty() || starts.contains(&(index + 1));
            if falls && ends {
                next.push((index + 1, lanes == Some(false)));
            }
            for (target, no_lane) in next {
                let mut state = state.clone();
                if no_lane {
                    state.without_lanes();
                }
                if let Some(slot) = at_start.get_mut(target) {
                    let changed = match slot {
                        Some(known) => known.meet(&state),
                        None => {
                            *slot = Some(state.clone());
                            true
                        }
                    };
                    if changed {
                        work.push(target);
                    }
                }
            }
            if !falls || ends {
                break;
            }
            index += 1;
        }
    }
    at_start
}

/// Shows every instruction that something leads to, with the state before it.
pub(super) fn visit<S: State>(function: &Function, mut show: impl FnMut(&S, &Instruction)) {
    let at_start = at_starts::<S>(function);
    let mut state: Option<S> = None;
    for (index, instruction) in function.instructions.iter().enumerate() {
        if let Some(Some(known)) = at_start.get(index) {
            state = Some(known.clone());
        }
        // Code that nothing reaches has no state.
        let Some(current) = &mut state else { continue };
        show(current, instruction);
        current.step(instruction);
        if instruction.ends_block() {
            state = None;
        }
    }
}
