//! Blocks: runs of instructions that are entered at their first one alone, and the ways between
//! them.

use std::ops::Range;

use super::Function;
use crate::few::Few;

/// The blocks that one leads to: the one behind it, the one that a branch goes to.
pub(crate) type Ways = Few<usize, 2>;

/// The blocks that something leads to from a function's start, in an order in which every block
/// comes before those it leads to, but where a way goes back.
#[derive(Clone, Debug)]
pub(crate) struct Blocks {
    pub ranges: Vec<Range<usize>>,
    /// The blocks that each one leads to.
    pub next: Vec<Ways>,
    /// The nearest block that every way to this one passes; its own number for the first.
    dominator: Vec<usize>,
}

impl Blocks {
    pub fn of(function: &Function) -> Blocks {
        let code = &function.instructions;
        let mut starts: Vec<usize> = function.labels.values().copied().collect();
        starts.push(0);
        for (index, instruction) in code.iter().enumerate() {
            if instruction.target().is_some() || instruction.ends_block() {
                starts.push(index + 1);
            }
        }
        starts.retain(|start| *start < code.len());
        starts.sort_unstable();
        starts.dedup();
        let ends = starts.iter().skip(1).copied().chain([code.len()]);
        let text: Vec<Range<usize>> = starts.iter().zip(ends).map(|(s, e)| *s..e).collect();
        let at = |index: usize| starts.binary_search(&index).ok();
        let next: Vec<Ways> = text
            .iter()
            .map(|range| {
                let last = &code[range.end - 1];
                let label = last.target().and_then(|l| function.labels.get(l)).copied();
                let falls = (!last.ends_block()).then_some(range.end);
                falls.into_iter().chain(label).filter_map(at).collect()
            })
            .collect();
        let order = match text.is_empty() {
            true => Vec::new(),
            // What stands first in the text comes first where nothing else decides.
            false => run_order(0, &next, |from, to| (from, std::cmp::Reverse(to))),
        };
        let mut number = vec![None; text.len()];
        for (new, old) in order.iter().enumerate() {
            number[*old] = Some(new);
        }
        let next: Vec<Ways> = order
            .iter()
            .map(|old| next[*old].iter().filter_map(|n| number[*n]).collect())
            .collect();
        Blocks {
            ranges: order.iter().map(|old| text[*old].clone()).collect(),
            dominator: dominators(&next),
            next,
        }
    }

    /// Whether every way to `block` passes `by`.
    pub fn dominates(&self, by: usize, block: usize) -> bool {
        let mut at = block;
        while at > by {
            at = self.dominator[at];
        }
        at == by
    }
}

/// The blocks reached from `first`, each before those it leads to where no way goes back. Of
/// several ways, the one with the smallest rank ends up last.
pub(super) fn run_order<R: Ord>(
    first: usize,
    next: &[Ways],
    rank: impl Fn(usize, usize) -> R,
) -> Vec<usize> {
    let ways = |block: usize| {
        let mut ways = next[block];
        ways.sort_by_key(|to| rank(block, *to));
        ways
    };
    let mut seen = vec![false; next.len()];
    seen[first] = true;
    let mut order = Vec::new();
    // A block, the ways from it, and how many of them are gone already.
    let mut open = vec![(first, ways(first), 0)];
    while let Some((block, list, gone)) = open.last_mut() {
        match list.get(*gone).copied() {
            Some(to) => {
                *gone += 1;
                if !std::mem::replace(&mut seen[to], true) {
                    open.push((to, ways(to), 0));
                }
            }
            None => {
                order.push(*block);
                open.pop();
            }
        }
    }
    order.reverse();
    order
}

/// The nearest dominator of each block, for blocks in the order of [`run_order`] (Cooper, Harvey and
/// Kennedy, A Simple, Fast Dominance Algorithm).
fn dominators(next: &[Ways]) -> Vec<usize> {
    let mut before = vec![Vec::new(); next.len()];
    for (block, ways) in next.iter().enumerate() {
        for to in ways {
            before[*to].push(block);
        }
    }
    let mut known: Vec<Option<usize>> = vec![None; next.len()];
    if let Some(first) = known.first_mut() {
        *first = Some(0);
    }
    let mut changed = true;
    while changed {
        changed = false;
        for block in 1..next.len() {
            let mut nearest: Option<usize> = None;
            for from in before[block].iter().filter(|from| known[**from].is_some()) {
                nearest = Some(nearest.map_or(*from, |other| common(&known, *from, other)));
            }
            if known[block] != nearest {
                known[block] = nearest;
                changed = true;
            }
        }
    }
    let own = known.iter().enumerate();
    own.map(|(block, by)| by.unwrap_or(block)).collect()
}

fn common(known: &[Option<usize>], mut a: usize, mut b: usize) -> usize {
    while a != b {
        // The later one cannot be the common one; the first block is everyone's.
        let later = a.max(b);
        let up = known[later].unwrap_or(0);
        (a, b) = (up, a.min(b));
    }
    a
}
