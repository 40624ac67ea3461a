//! Where the waves of a block meet in a steady iteration.
//!
//! A place is a number of ops: place `p` is before op `p`. A need from op `a` to op `b` is an arc
//! of places from just after `a` to just before `b`, around the loop as often as iterations lie
//! between; one barrier on the arc serves it, two where one half of the waves is a barrier
//! behind. Arcs on a circle are served with the fewest barriers by going around once, from each
//! place in turn, and setting a barrier at the end of each arc that has too few. Of the ways with
//! the fewest, the one is taken that asks for completion latest: what is in flight stays so
//! longer.

use std::cmp::Reverse;

use super::Order;
use super::dependences::{Between, Need};

/// What stands before each op of an iteration.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) struct Meetings {
    pub barriers: Vec<u32>,
    pub warp_syncs: Vec<bool>,
}

/// The barriers of the steady iteration: those the order sets, and the fewest more that serve
/// all needs.
pub(super) fn place(order: &Order, needs: &[Need]) -> Meetings {
    let len = order.ops.len();
    let mut barriers = order.barriers.clone();
    barriers.resize(len, 0);
    let block: Vec<Need> = needs
        .iter()
        .copied()
        .filter(|n| n.between == Between::Block)
        .collect();
    let best = (0..len)
        .map(|start| {
            let mut barriers = greedy(order, &block, &barriers, start);
            prune(order, &block, &mut barriers);
            barriers
        })
        .min_by_key(|b| (b.iter().sum::<u32>(), Reverse(lateness(order, &block, b))));
    let barriers = best.unwrap_or(barriers);
    let mut warp_syncs = vec![false; len];
    for need in needs.iter().filter(|n| n.between == Between::Warp) {
        let met = arc(order, need).any(|p| barriers[p] > 0 || warp_syncs[p]);
        if !met {
            warp_syncs[need.later] = true;
        }
    }
    Meetings {
        barriers,
        warp_syncs,
    }
}

/// The barriers that a need takes on its arc.
pub(super) fn required(order: &Order) -> u32 {
    1 + order.lag
}

fn greedy(order: &Order, needs: &[Need], set: &[u32], start: usize) -> Vec<u32> {
    let len = order.ops.len();
    let mut barriers = set.to_vec();
    let mut sorted: Vec<&Need> = needs.iter().collect();
    sorted.sort_by_key(|n| (n.later + len - start) % len);
    for need in sorted {
        let have: u32 = arc(order, need).map(|p| barriers[p]).sum();
        barriers[need.later] += required(order).saturating_sub(have);
    }
    barriers
}

/// Takes out what is not needed beside the rest.
fn prune(order: &Order, needs: &[Need], barriers: &mut [u32]) {
    for place in (0..barriers.len()).rev() {
        let own = order.barriers.get(place).copied().unwrap_or(0);
        while barriers[place] > own {
            barriers[place] -= 1;
            if needs.iter().any(|n| !served(order, n, barriers)) {
                barriers[place] += 1;
                break;
            }
        }
    }
}

/// How long after their first ops the needs with a wait ask for its completion, together.
fn lateness(order: &Order, needs: &[Need], barriers: &[u32]) -> usize {
    let len = barriers.len();
    let waits = needs.iter().filter(|n| n.wait.is_some());
    let late = waits.map(|need| {
        let mut left = required(order);
        let mut places = (need.earlier + 1..=need.end(order)).rev();
        let last = places.find(|time| {
            left = left.saturating_sub(barriers[time % len]);
            left == 0
        });
        last.map_or(0, |time| time - need.earlier)
    });
    late.sum()
}

fn served(order: &Order, need: &Need, barriers: &[u32]) -> bool {
    let have: u32 = arc(order, need).map(|p| barriers[p]).sum();
    have >= required(order)
}

/// The places between the two ops of a need, in time.
fn arc(order: &Order, need: &Need) -> impl Iterator<Item = usize> {
    let len = order.ops.len();
    (need.earlier + 1..=need.end(order)).map(move |time| time % len)
}
