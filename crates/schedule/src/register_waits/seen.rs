//! What the walk made of runs of items, so that a try of one wait walks what the wait changes.
//!
//! A run is a block, a half of it, a half of that, and so on. What comes of one follows from what
//! is pending and known where it starts, as long as no wait in it is another. Where all that a
//! tried wait has changed is complete again, the rest is therefore found here.

use rustc_hash::FxHashMap;

use super::outline::Item;
use super::state::State;
use crate::facts::Facts;

/// How many beginnings are kept for a run: a loop's body is walked a few times until nothing new
/// comes up.
const KEPT: usize = 8;

/// What came of runs in which no wait was missing.
#[derive(Debug, Default)]
pub struct Seen {
    runs: FxHashMap<Key, Run>,
}

/// Where a run of items lies, and how many they are.
type Key = (*const Item, usize);

#[derive(Debug, Default)]
struct Run {
    list: Vec<Walked>,
    /// The oldest, once there are enough.
    next: usize,
}

#[derive(Debug)]
struct Walked {
    here: Facts,
    before: State,
    after: State,
}

/// Whether the statement stands in these items.
pub fn holds(items: &[Item], number: usize) -> bool {
    match items {
        [first, .., last] => (first.number..last.end).contains(&number),
        [item] => (item.number..item.end).contains(&number),
        [] => false,
    }
}

impl Seen {
    /// Puts what comes of the items into the state, where that is known.
    pub fn recall(&self, items: &[Item], here: Facts, state: &mut State) -> bool {
        let walked = self.runs.get(&key(items)).and_then(|run| {
            let same = |w: &&Walked| w.here == here && w.before.list == state.list;
            run.list.iter().find(same)
        });
        if let Some(walked) = walked {
            state.list.clone_from(&walked.after.list);
        }
        walked.is_some()
    }

    /// Notes what came of the items. Where some leave a loop early more comes of them than that.
    pub fn note(&mut self, items: &[Item], here: Facts, before: State, after: &State) {
        if items.iter().any(|item| item.leaves) {
            return;
        }
        let walked = Walked {
            here,
            before,
            after: after.clone(),
        };
        let run = self.runs.entry(key(items)).or_default();
        if run.list.len() < KEPT {
            run.list.push(walked);
        } else {
            run.list[run.next] = walked;
            run.next = (run.next + 1) % KEPT;
        }
    }

    /// A wait before this statement is another: the runs that it stands in are not known any more.
    pub fn forget(&mut self, items: &[Item], number: usize) {
        if !holds(items, number) {
            return;
        }
        self.runs.remove(&key(items));
        match items {
            [] => {}
            [item] => item.blocks(&mut |items| self.forget(items, number)),
            _ => {
                let (first, second) = items.split_at(items.len() / 2);
                self.forget(first, number);
                self.forget(second, number);
            }
        }
    }
}

fn key(items: &[Item]) -> Key {
    (items.as_ptr(), items.len())
}
