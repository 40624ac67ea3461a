//! What products of warp groups read of shared memory, and the registers that they work on.
//!
//! They read through the async proxy. What a thread has written through the other one, by stores or
//! `cp.async`, they see only when it has passed a fence for proxies behind the write, and a barrier
//! behind that. Registers are theirs from a fence of their own on, until something else reads or writes
//! them.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashSet, FxHasher};
use tilewright_ir::Buffer;

use super::clash::Side;
use super::conditions::{Under, follows};
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
    /// Whether there was one, in every case.
    passed: bool,
    /// The conditions under which there was one since; a fence under a condition serves products
    /// under the same.
    passed_under: Vec<Under>,
    /// What other operations have read or written since the last one in every case, and the
    /// conditions of those after that.
    touched: Vec<(RegisterTouch, Vec<Under>)>,
}

impl Fenced {
    pub fn fence(&mut self, under: &Under) {
        if under.is_empty() {
            self.passed = true;
            self.touched.clear();
            return;
        }
        let lists = self.touched.iter_mut().map(|(_, list)| list);
        for list in lists.chain([&mut self.passed_under]) {
            if !list.contains(under) {
                list.push(under.clone());
            }
        }
    }

    /// Another operation has read or written registers. A product waits for neither by itself:
    /// PTX ISA, wgmma.fence.
    pub fn touched(&mut self, touch: &RegisterTouch) {
        let same = |t: &RegisterTouch| {
            (t.stmt, t.root, t.range, t.write) == (touch.stmt, touch.root, touch.range, touch.write)
        };
        self.touched.retain(|(t, _)| !same(t));
        self.touched.push((touch.clone(), Vec::new()));
    }

    /// Whether a product under a condition may not have these registers yet.
    pub fn lacks(&self, touch: &RegisterTouch, under: &Under) -> bool {
        let served = |fences: &[Under]| fences.iter().any(|f| follows(f, under, &[]));
        let touched = |(t, fences): &(RegisterTouch, Vec<Under>)| t.meets(touch) && !served(fences);
        !(self.passed || served(&self.passed_under)) || self.touched.iter().any(touched)
    }

    pub fn fingerprint(&self) -> u64 {
        let hashes = self.touched.iter().map(|(t, fences)| {
            let mut h = FxHasher::default();
            (t.stmt, t.root, t.slot, t.range, t.write, fences.len()).hash(&mut h);
            h.finish()
        });
        hashes.fold(u64::from(self.passed), u64::wrapping_add)
    }
}
