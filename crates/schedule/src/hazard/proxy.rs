//! What products of warp groups read of shared memory, and the registers that they work on.
//!
//! They read through the async proxy. What a thread has written through the other one, by stores or
//! `cp.async`, they see only when it has passed a fence for proxies behind the write, and a barrier
//! behind that. Registers are theirs from a fence of their own on, until something else writes them.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashSet, FxHasher};
use tilewright_ir::Buffer;

use super::clash::Side;
use super::touch::{RegisterTouch, Touch};

/// Writes that the async proxy has not been shown.
#[derive(Default, Debug)]
pub struct Proxies {
    /// The shared buffers that it reads.
    read: FxHashSet<Buffer>,
    list: Vec<Unseen>,
}

#[derive(Clone, Copy, Debug)]
struct Unseen {
    root: Buffer,
    slot: Option<i64>,
    by: Side,
    /// Whether its group has passed a fence since.
    fenced: bool,
}

impl Proxies {
    pub fn new(read: FxHashSet<Buffer>) -> Proxies {
        Proxies {
            read,
            list: Vec::new(),
        }
    }

    /// A write through the generic proxy is complete.
    pub fn wrote(&mut self, touch: &Touch, by: Side) {
        if !touch.write || !self.read.contains(&touch.root) {
            return;
        }
        let (root, slot) = (touch.root, touch.slot);
        let same = |u: &Unseen| (u.root, u.slot, u.by.group) == (root, slot, by.group);
        self.list.retain(|u| !same(u));
        self.list.push(Unseen {
            root,
            slot,
            by,
            fenced: false,
        });
    }

    /// A group passes a fence.
    pub fn fence(&mut self, group: usize) {
        let own = self.list.iter_mut().filter(|u| u.by.group == group);
        own.for_each(|u| u.fenced = true);
    }

    /// Others may go on by what a group has done.
    pub fn hand_over(&mut self, group: usize) {
        self.list.retain(|u| u.by.group != group || !u.fenced);
    }

    /// The write that a read through the async proxy may not see.
    pub fn unseen(&self, touch: &Touch) -> Option<Side> {
        let meets = |u: &&Unseen| {
            let apart = matches!((u.slot, touch.slot), (Some(a), Some(b)) if a != b);
            u.root == touch.root && !apart
        };
        self.list.iter().find(meets).map(|u| u.by)
    }

    /// What of it decides what comes.
    pub fn fingerprint(&self) -> u64 {
        let hashes = self.list.iter().map(|u| {
            let mut h = FxHasher::default();
            (u.root, u.slot, u.by.group, u.fenced).hash(&mut h);
            h.finish()
        });
        hashes.fold(0, u64::wrapping_add)
    }
}

/// The registers of a group's products since its last fence for them.
#[derive(Default, Debug)]
pub struct Fenced {
    /// Whether there was one.
    passed: bool,
    /// What other operations have written since.
    written: Vec<RegisterTouch>,
}

impl Fenced {
    pub fn fence(&mut self) {
        self.passed = true;
        self.written.clear();
    }

    /// Another operation has written registers.
    pub fn wrote(&mut self, touch: &RegisterTouch) {
        let same = |t: &RegisterTouch| t.stmt == touch.stmt && t.range == touch.range;
        if touch.write && !self.written.iter().any(same) {
            self.written.push(touch.clone());
        }
    }

    /// Whether a product may not have these registers yet.
    pub fn lacks(&self, touch: &RegisterTouch) -> bool {
        !self.passed || self.written.iter().any(|w| w.meets(touch))
    }

    pub fn fingerprint(&self) -> u64 {
        let hashes = self.written.iter().map(|t| {
            let mut h = FxHasher::default();
            (t.stmt, t.root, t.slot, t.range).hash(&mut h);
            h.finish()
        });
        hashes.fold(u64::from(self.passed), u64::wrapping_add)
    }
}
