//! Asynchronous operations of a warp: in order, by counter.
//!
//! An operation with a counter is *under way* from its issue until the warp waits for it. When
//! its data really moves in between is not defined, so the simulator tries both ends
//! ([`When`]): at once, or not before the wait. The queue keeps the operations of each counter
//! in order and says which ones a wait completes; carrying them out is the executor's work.

use std::collections::VecDeque;

use tilewright_ir::Counter;

use super::Landing;
use super::bulk::Issue;
use super::group_mma::Product;

/// The operations of a warp that are under way, oldest first.
#[derive(Debug)]
pub(super) struct Queue {
    pending: VecDeque<Pending>,
    /// By counter of groups: how many groups were closed.
    closed: [u64; Counter::ALL.len()],
    /// The same for bulk stores, of which each lane has groups of its own.
    stores: [u64; LANES],
}

/// The most lanes of a warp.
const LANES: usize = 64;

impl Default for Queue {
    fn default() -> Queue {
        Queue {
            pending: VecDeque::new(),
            closed: [0; Counter::ALL.len()],
            stores: [0; LANES],
        }
    }
}

/// Private bytes: lane, offset, length.
pub(super) type Registers = (u32, u32, u32);

/// An operation under way.
#[derive(Debug)]
pub(super) struct Pending {
    pub counter: Counter,
    /// Whether it may be joined with another into one instruction: a wait cannot rely on its
    /// being counted.
    pub joined: bool,
    /// Which group it belongs to, once that is closed.
    group: Option<u64>,
    /// Whose it is, where lanes have groups of their own.
    pub lane: Option<u32>,
    /// What holds shared memory for it.
    pub token: Option<u64>,
    /// Private bytes that it writes.
    pub registers: Vec<Registers>,
    /// Data that moves when it lands; empty where it moved at once.
    pub moves: Vec<Move>,
    /// A product that is added when it lands; absent where that was done at once.
    pub product: Option<Product>,
    /// Where a bulk store was issued, which the end of the kernel may not overtake.
    pub store: Option<Issue>,
}

impl Pending {
    pub fn new(counter: Counter) -> Pending {
        Pending {
            counter,
            joined: false,
            group: None,
            lane: None,
            token: None,
            registers: Vec::new(),
            moves: Vec::new(),
            product: None,
            store: None,
        }
    }
}

/// A few bytes from one place to another.
#[derive(Clone, Copy, Debug)]
pub(super) struct Move {
    /// The lane that is charged with it.
    pub lane: u32,
    pub source: Source,
    pub dest: Dest,
    pub len: u32,
}

impl Move {
    /// The same by at most so many bytes each.
    pub fn parts(self, most: usize) -> impl Iterator<Item = Move> {
        (0..self.len as usize).step_by(most).map(move |by| Move {
            lane: self.lane,
            source: match self.source {
                Source::Global(n, at) => Source::Global(n, at + by),
                Source::Shared(at) => Source::Shared(at + by),
                Source::Local(lane, at) => Source::Local(lane, at + by as u32),
                // The pattern goes on: parts are multiples of it.
                fill @ Source::Fill(..) => fill,
            },
            dest: match self.dest {
                Dest::Global(n, at) => Dest::Global(n, at + by),
                Dest::Shared(at) => Dest::Shared(at + by),
                Dest::Local(lane, at) => Dest::Local(lane, at + by as u32),
            },
            len: self.len.min((by + most) as u32) - by as u32,
        })
    }
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Source {
    /// A global storage, and the first byte.
    Global(u32, usize),
    Shared(usize),
    /// The private bytes of a lane.
    Local(u32, u32),
    /// A value of so many bytes, again and again.
    Fill(u64, u32),
}

#[derive(Clone, Copy, Debug)]
pub(super) enum Dest {
    Global(u32, usize),
    Shared(usize),
    Local(u32, u32),
}

/// When the data of asynchronous operations moves.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub enum When {
    /// When the operation is issued: as early as the rules allow.
    #[default]
    Early,
    /// When it is waited for: as late as the rules allow.
    Late,
}

impl Landing {
    /// When operations of this counter move their data.
    pub(super) fn of(self, counter: Counter) -> When {
        match counter {
            Counter::Lgkmcnt => self.lds,
            Counter::Vmcnt
            | Counter::CpAsync
            | Counter::TmaStore
            | Counter::Wgmma
            | Counter::Mbarrier => self.dma,
        }
    }
}

impl Queue {
    pub fn is_empty(&self) -> bool {
        self.pending.is_empty()
    }

    /// Adds an operation. Returns one that must land first, because the hardware counts no
    /// further.
    pub fn push(&mut self, op: Pending) -> Option<Pending> {
        let counter = op.counter;
        self.pending.push_back(op);
        let most = counter.most_in_flight()? as usize;
        let count = self.pending.iter().filter(|p| p.counter == counter).count();
        if count > most {
            self.oldest(counter)
        } else {
            None
        }
    }

    /// These lanes close a group.
    pub fn commit(&mut self, counter: Counter, lanes: u64) {
        for op in &mut self.pending {
            if op.counter == counter && op.group.is_none() {
                op.group = match op.lane {
                    None => Some(self.closed[counter as usize]),
                    Some(lane) => (lanes >> lane & 1 == 1).then(|| self.stores[lane as usize]),
                };
            }
        }
        self.closed[counter as usize] += 1;
        if counter == Counter::TmaStore {
            let own = self.stores.iter_mut().enumerate();
            let own = own.filter(|(lane, _)| lanes >> lane & 1 == 1);
            own.for_each(|(_, closed)| *closed += 1);
        }
    }

    /// Whether an operation is in a closed group, and these lanes, or the warp, have closed so many
    /// since.
    fn is_older(&self, op: &Pending, at_most: u64, lanes: u64) -> bool {
        let closed = match op.lane {
            None => self.closed[op.counter as usize],
            Some(lane) if lanes >> lane & 1 == 1 => self.stores[lane as usize],
            Some(_) => return false,
        };
        op.group.is_some_and(|g| g < closed.saturating_sub(at_most))
    }

    /// The operations that a wait of these lanes completes, oldest first.
    pub fn wait(&mut self, counter: Counter, at_most: u32, lanes: u64) -> Vec<Pending> {
        let at_most = at_most as usize;
        if !counter.counts_groups() {
            // So many that are certainly counted are left, and what came after the oldest of them.
            let own = |p: &&Pending| p.counter == counter;
            let (mut left, mut kept) = (0, 0);
            for op in self.pending.iter().rev().filter(own) {
                if left == at_most {
                    break;
                }
                left += usize::from(!op.joined);
                kept += 1;
            }
            let count = self.pending.iter().filter(own).count();
            return (kept..count).filter_map(|_| self.oldest(counter)).collect();
        }
        let mut done = Vec::new();
        let mut kept = VecDeque::new();
        for op in std::mem::take(&mut self.pending) {
            if op.counter == counter && self.is_older(&op, at_most as u64, lanes) {
                done.push(op);
            } else {
                kept.push_back(op);
            }
        }
        self.pending = kept;
        done
    }

    /// The bulk stores of all but so many groups of these lanes that have not read what they store.
    pub fn unread(&mut self, at_most: u32, lanes: u64) -> impl Iterator<Item = &mut Pending> {
        let read = |p: &Pending| {
            let store = p.counter == Counter::TmaStore && p.token.is_some();
            store && self.is_older(p, at_most.into(), lanes)
        };
        let read: Vec<bool> = self.pending.iter().map(read).collect();
        let stores = self.pending.iter_mut().zip(read);
        stores.filter_map(|(op, read)| read.then_some(op))
    }

    /// Where bulk stores were issued that have not been waited for in any way.
    pub fn unread_stores(&self) -> Vec<Issue> {
        let unread = self.pending.iter().filter(|p| p.token.is_some());
        unread.filter_map(|p| p.store.clone()).collect()
    }

    /// What operations of a counter have yet to move, oldest first, and where it goes to in
    /// registers: they stay under way.
    pub fn take_moves(&mut self, counter: Counter) -> Vec<(Vec<Move>, Vec<Registers>)> {
        let own = self.pending.iter_mut().filter(|p| p.counter == counter);
        let late = own.filter(|p| !p.moves.is_empty());
        late.map(|p| (std::mem::take(&mut p.moves), p.registers.clone()))
            .collect()
    }

    /// Private bytes that operations under way write.
    pub fn registers(&self) -> impl Iterator<Item = &Registers> {
        self.pending.iter().flat_map(|p| &p.registers)
    }

    /// All operations, oldest first.
    pub fn drain(&mut self) -> Vec<Pending> {
        self.pending.drain(..).collect()
    }

    fn oldest(&mut self, counter: Counter) -> Option<Pending> {
        let at = self.pending.iter().position(|p| p.counter == counter)?;
        self.pending.remove(at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn op(counter: Counter, token: u64) -> Pending {
        Pending {
            token: Some(token),
            ..Pending::new(counter)
        }
    }

    fn tokens(list: Vec<Pending>) -> Vec<u64> {
        list.into_iter().filter_map(|p| p.token).collect()
    }

    #[test]
    fn instruction_counters_complete_in_order() {
        let mut q = Queue::default();
        for i in 0..5 {
            assert!(q.push(op(Counter::Vmcnt, i)).is_none());
        }
        q.push(op(Counter::Lgkmcnt, 9));
        assert_eq!(tokens(q.wait(Counter::Vmcnt, 2, u64::MAX)), [0, 1, 2]);
        assert_eq!(tokens(q.wait(Counter::Vmcnt, 2, u64::MAX)), []);
        assert_eq!(tokens(q.wait(Counter::Lgkmcnt, 0, u64::MAX)), [9]);
        assert_eq!(tokens(q.drain()), [3, 4]);
    }

    #[test]
    fn group_counters_complete_closed_groups() {
        let mut q = Queue::default();
        q.push(op(Counter::CpAsync, 0));
        q.push(op(Counter::CpAsync, 1));
        q.commit(Counter::CpAsync, u64::MAX);
        q.commit(Counter::CpAsync, u64::MAX);
        q.push(op(Counter::CpAsync, 2));
        q.commit(Counter::CpAsync, u64::MAX);
        q.push(op(Counter::CpAsync, 3));
        assert_eq!(tokens(q.wait(Counter::CpAsync, 2, u64::MAX)), [0, 1]);
        assert_eq!(tokens(q.wait(Counter::CpAsync, 0, u64::MAX)), [2]);
        // The last one belongs to no group yet, so no wait reaches it.
        assert_eq!(tokens(q.wait(Counter::CpAsync, 0, u64::MAX)), []);
    }

    #[test]
    fn lanes_close_groups_of_their_own_stores() {
        let store = |lane, token| Pending {
            lane: Some(lane),
            ..op(Counter::TmaStore, token)
        };
        let mut q = Queue::default();
        q.push(store(0, 0));
        q.push(store(5, 1));
        // Lane 1 closes a group of nothing.
        q.commit(Counter::TmaStore, 0b11);
        q.commit(Counter::TmaStore, 0b10);
        assert_eq!(tokens(q.wait(Counter::TmaStore, 0, 0b10)), []);
        assert_eq!(tokens(q.wait(Counter::TmaStore, 1, u64::MAX)), []);
        assert_eq!(tokens(q.wait(Counter::TmaStore, 0, u64::MAX)), [0]);
        q.commit(Counter::TmaStore, u64::MAX);
        assert_eq!(tokens(q.wait(Counter::TmaStore, 0, 1 << 5)), [1]);
    }

    #[test]
    fn what_may_be_joined_is_not_relied_on() {
        let mut q = Queue::default();
        for i in 0..6 {
            let joined = i % 2 == 1;
            let op = Pending {
                joined,
                ..op(Counter::Lgkmcnt, i)
            };
            assert!(q.push(op).is_none());
        }
        // The last that surely counts is the fourth; what came after it may count, too.
        assert_eq!(tokens(q.wait(Counter::Lgkmcnt, 1, u64::MAX)), [0, 1, 2, 3]);
        assert_eq!(tokens(q.wait(Counter::Lgkmcnt, 0, u64::MAX)), [4, 5]);
    }

    #[test]
    fn a_full_counter_lets_the_oldest_land() {
        let mut q = Queue::default();
        let landed: Vec<u64> = (0..17)
            .filter_map(|i| q.push(op(Counter::Lgkmcnt, i))?.token)
            .collect();
        assert_eq!(landed, [0, 1]);
    }
}
