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

use rustc_hash::FxHashSet;

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
    let arcs = Arcs::of(order, &block);
    let set = Sums::of(&barriers);
    let mut seen: FxHashSet<Vec<u32>> = FxHashSet::default();
    let mut best = None;
    for start in arcs.starts() {
        let mut sums = set.clone();
        let mut tried = arcs.greedy(&barriers, &mut sums, start);
        arcs.prune(order, &mut sums, &mut tried);
        let count = sums.total;
        let fewest = best.as_ref().map_or(u32::MAX, |((fewest, _), _)| *fewest);
        if count > fewest || seen.contains(&tried) {
            continue;
        }
        seen.insert(tried.clone());
        let rank = (count, Reverse(lateness(order, &block, &tried)));
        if best.as_ref().is_none_or(|(known, _)| rank < *known) {
            best = Some((rank, tried));
        }
    }
    let barriers = best.map_or(barriers, |(_, tried)| tried);
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

/// The arcs that decide: of those that end before the same op, the shortest, which lies in all
/// others. There are no more than ops, however many needs there are.
struct Arcs {
    /// Places of an iteration.
    len: usize,
    required: u32,
    /// By the place where they end.
    list: Vec<Arc>,
}

/// The places `first ..= last` in time, around the loop where they are more than it has.
#[derive(Clone, Copy)]
struct Arc {
    first: usize,
    last: usize,
}

impl Arcs {
    fn of(order: &Order, needs: &[Need]) -> Arcs {
        let len = order.ops.len();
        let mut shortest: Vec<Option<Arc>> = vec![None; len];
        for need in needs {
            let arc = Arc {
                first: need.earlier + 1,
                last: need.end(order),
            };
            let known = &mut shortest[need.later];
            if known.is_none_or(|k| arc.last + 1 - arc.first < k.last + 1 - k.first) {
                *known = Some(arc);
            }
        }
        Arcs {
            len,
            required: required(order),
            list: shortest.into_iter().flatten().collect(),
        }
    }

    /// Where to start going around: the order in which arcs end changes only behind an end.
    fn starts(&self) -> impl Iterator<Item = usize> {
        let ends = self.list.iter().map(|arc| arc.last % self.len + 1);
        std::iter::once(0).chain(ends.filter(|&end| end < self.len))
    }

    fn greedy(&self, set: &[u32], sums: &mut Sums, start: usize) -> Vec<u32> {
        let mut barriers = set.to_vec();
        let split = self.list.partition_point(|arc| arc.last % self.len < start);
        for arc in self.list[split..].iter().chain(&self.list[..split]) {
            let missing = self.required.saturating_sub(sums.on(arc));
            if missing > 0 {
                barriers[arc.last % self.len] += missing;
                sums.add(arc.last % self.len, missing);
            }
        }
        barriers
    }

    /// Takes out what is not needed beside the rest.
    fn prune(&self, order: &Order, sums: &mut Sums, barriers: &mut [u32]) {
        for (place, count) in barriers.iter_mut().enumerate().rev() {
            let own = order.barriers.get(place).copied().unwrap_or(0);
            if *count <= own {
                continue;
            }
            // Each arc has enough, so those that do not come by need nothing of it. The ones that
            // end here or soon after are the likeliest to need what stands here.
            let split = self.list.partition_point(|a| a.last % self.len < place);
            let arcs = self.list[split..].iter().chain(&self.list[..split]);
            while *count > own {
                let needs_it = |arc: &Arc| {
                    let passes = arc.passes(place, self.len);
                    passes > 0 && sums.on(arc) < self.required + passes
                };
                if arcs.clone().any(needs_it) {
                    break;
                }
                *count -= 1;
                sums.take(place);
            }
        }
    }
}

impl Arc {
    /// How often the arc comes by a place.
    fn passes(&self, place: usize, len: usize) -> u32 {
        // How many times before `end` are at the place.
        let before = |end: usize| (end + len - 1 - place) / len;
        (before(self.last + 1) - before(self.first)) as u32
    }
}

/// The barriers of an iteration as a tree of sums (Fenwick's), so that those on an arc are counted
/// and one more is noted in a few steps.
#[derive(Clone)]
struct Sums {
    tree: Vec<u32>,
    total: u32,
}

impl Sums {
    fn of(barriers: &[u32]) -> Sums {
        let mut sums = Sums {
            tree: vec![0; barriers.len()],
            total: 0,
        };
        for (place, &count) in barriers.iter().enumerate() {
            if count > 0 {
                sums.add(place, count);
            }
        }
        sums
    }

    fn add(&mut self, place: usize, count: u32) {
        self.total += count;
        let mut at = place + 1;
        while at <= self.tree.len() {
            self.tree[at - 1] += count;
            at += at & at.wrapping_neg();
        }
    }

    /// One barrier less at the place.
    fn take(&mut self, place: usize) {
        self.total -= 1;
        let mut at = place + 1;
        while at <= self.tree.len() {
            self.tree[at - 1] -= 1;
            at += at & at.wrapping_neg();
        }
    }

    /// Barriers at the places before this one.
    fn before(&self, place: usize) -> u32 {
        let (mut sum, mut at) = (0, place);
        while at > 0 {
            sum += self.tree[at - 1];
            at &= at - 1;
        }
        sum
    }

    fn on(&self, arc: &Arc) -> u32 {
        let len = self.tree.len();
        let until = |time: usize| (time / len) as u32 * self.total + self.before(time % len);
        until(arc.last + 1) - until(arc.first)
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

/// The places between the two ops of a need, in time.
fn arc(order: &Order, need: &Need) -> impl Iterator<Item = usize> {
    let len = order.ops.len();
    (need.earlier + 1..=need.end(order)).map(move |time| time % len)
}
