//! Which ops depend on which, how far apart in iterations, and how many versions that takes.
//!
//! The loop means its body in program order, iteration after iteration. An order runs op `c` of
//! iteration `i` at time `(i - distance(c), position(c))`. A dependence from `a` in iteration `i`
//! to `b` in iteration `i + gap` holds when `a`'s time is the smaller one.
//!
//! A private resource (written before it is read in each iteration) may have versions: iterations
//! `i` and `i + V` share one. With `w` at `distance 2, position 0` and `r` at `distance 0,
//! position 1`, what iteration 0 wrote is read at time (0, 1); iteration 2 is written at (0, 0),
//! before that read, iteration 3 at (1, 0), after it: V = 3.

use std::collections::hash_map::Entry;

use rustc_hash::FxHashMap;
use tilewright_ir::Counter;

use super::{Completion, Meets, Order, OrderError, Space};
use crate::footprint::Meeting;

/// `later` in iteration `i + gap` needs `earlier` of iteration `i` to be done.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Need {
    pub earlier: usize,
    pub later: usize,
    pub gap: u32,
    /// The counter by which `earlier` completes.
    pub wait: Option<Counter>,
    pub between: Between,
}

/// Who must have met between the two.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub(super) enum Between {
    /// Each thread depends on itself alone.
    Thread,
    Warp,
    Block,
}

impl Need {
    /// The time of `later` less the time at which the steady iteration of `earlier` started, in
    /// ops.
    pub fn end(&self, order: &Order) -> usize {
        let (a, b) = (&order.ops[self.earlier], &order.ops[self.later]);
        let iterations = (self.gap + a.distance) as usize - b.distance as usize;
        iterations * order.ops.len() + self.later
    }
}

/// How many versions each resource needs; checks that the order keeps what the loop means. Parts of a tile
/// that have no place in common need none for each other.
pub(super) fn versions(order: &Order, meets: Meets<'_>) -> Result<Vec<u32>, OrderError> {
    let mut versions = vec![1; order.resources.len()];
    let all = touches(order);
    let apart = |resource: usize, (a, a_touch): (usize, usize), (b, b_touch): (usize, usize)| {
        let shared = order.resources[resource].space == Space::Shared;
        shared && a != b && meets(a, a_touch, b, b_touch) == Meeting::Nowhere
    };
    for (resource, (data, touches)) in order.resources.iter().zip(&all).enumerate() {
        if data.private {
            for &(w, w_touch, writes) in touches {
                if !writes {
                    continue;
                }
                for &(r, r_touch, _) in touches {
                    let needed = distance(order, w) - distance(order, r) + i64::from(w <= r);
                    let more = needed > i64::from(versions[resource]);
                    if more && !apart(resource, (w, w_touch), (r, r_touch)) {
                        versions[resource] = needed as u32;
                    }
                }
            }
            let copied = |(op, _, writes): &(usize, usize, bool)| {
                *writes && order.ops[*op].completion != Completion::Sync
            };
            if data.space == Space::Shared && touches.iter().any(copied) {
                versions[resource] += order.spare;
            }
            if data.space != Space::Shared && versions[resource] > 1 {
                return Err(OrderError::RegisterVersions {
                    resource,
                    versions: versions[resource],
                });
            }
        }
        for &(a, a_touch, a_writes) in touches {
            for &(b, b_touch, b_writes) in touches {
                if !(a_writes || b_writes) {
                    continue;
                }
                let gap = gap(order, a, b, versions[resource]);
                let broken = !runs_before(order, a, b, gap);
                if broken && !apart(resource, (a, a_touch), (b, b_touch)) {
                    return Err(OrderError::Breaks {
                        earlier: a,
                        later: b,
                        resource,
                        iterations: gap,
                    });
                }
            }
        }
    }
    Ok(versions)
}

/// Everything that must be waited for or met at, each pair of ops and distance once, by its
/// strongest reason.
pub(super) fn needs(order: &Order, versions: &[u32], meets: Meets<'_>) -> Vec<Need> {
    let mut needs: Vec<Need> = Vec::new();
    let mut known: FxHashMap<(usize, usize, u32), usize> = FxHashMap::default();
    let all = touches(order);
    for (resource, (data, touches)) in order.resources.iter().zip(&all).enumerate() {
        for &(a, a_touch, a_writes) in touches {
            for &(b, b_touch, b_writes) in touches {
                if !(a_writes || b_writes) {
                    continue;
                }
                let gap = gap(order, a, b, versions[resource]);
                let wait = match order.ops[a].completion {
                    Completion::Sync => None,
                    Completion::Counted { counter, .. } => Some(counter),
                };
                let between = match data.space {
                    Space::Register | Space::Global => Between::Thread,
                    Space::Shared => match meets(a, a_touch, b, b_touch) {
                        // Parts of a tile that have no place in common.
                        Meeting::Nowhere => continue,
                        Meeting::InThread => Between::Thread,
                        Meeting::InWarp => in_warp(wait),
                        Meeting::AcrossWarps => Between::Block,
                    },
                };
                if wait.is_none() && between == Between::Thread {
                    continue;
                }
                let need = Need {
                    earlier: a,
                    later: b,
                    gap,
                    wait,
                    between,
                };
                match known.entry((a, b, gap)) {
                    Entry::Occupied(at) => {
                        let known = &mut needs[*at.get()];
                        known.between = known.between.max(between);
                    }
                    Entry::Vacant(new) => {
                        new.insert(needs.len());
                        needs.push(need);
                    }
                }
            }
        }
    }
    needs
}

/// Who must meet where lanes of one warp exchange data. What is stored at once is ThreadSync's
/// concern, which sees the statements inside the ops; it does not see when copies land.
fn in_warp(wait: Option<Counter>) -> Between {
    match wait {
        None => Between::Thread,
        Some(_) => Between::Warp,
    }
}

/// The ops that touch each resource, with the touch's index; a write counts for both.
fn touches(order: &Order) -> Vec<Vec<(usize, usize, bool)>> {
    let mut found = vec![Vec::new(); order.resources.len()];
    for (op, data) in order.ops.iter().enumerate() {
        for (at, touch) in data.touches.iter().enumerate() {
            found[touch.resource].push((op, at, touch.write));
        }
    }
    found
}

/// How many iterations later `b` next touches the version that `a` touched.
fn gap(order: &Order, a: usize, b: usize, versions: u32) -> u32 {
    if order.ops[a].program < order.ops[b].program {
        0
    } else {
        versions
    }
}

fn runs_before(order: &Order, a: usize, b: usize, gap: u32) -> bool {
    let iterations = i64::from(gap) + distance(order, a) - distance(order, b);
    iterations > 0 || (iterations == 0 && a < b)
}

fn distance(order: &Order, op: usize) -> i64 {
    i64::from(order.ops[op].distance)
}
