//! Buffers that lie over each other in shared memory.
//!
//! Where offsets are written down, a write to one buffer is a write to all that share its bytes.
//! Two things follow. Accesses of different buffers conflict like those of one, and since their
//! layouts differ nothing is known of which threads meet: any may. And what a buffer held is
//! gone once another one was written there, however well the two are ordered: a read of it must
//! come after a write that gives it all that is read, and that happens wherever the read does.

use std::hash::{Hash, Hasher};

use rustc_hash::{FxHashMap, FxHasher};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Buffer, Func, Kernel, SharedPlace, StmtKind};

use super::clash::Side;
use super::conditions::{Literal, Under, follows, possible, remember};
use super::touch::Touch;

/// Which buffers overlap, and whose content is gone.
#[derive(Default, Debug)]
pub struct Aliases {
    places: FxHashMap<Buffer, (SharedPlace, u32)>,
    others: FxHashMap<Buffer, Vec<Buffer>>,
    gone: FxHashMap<(Buffer, u32), Gone>,
}

/// What took the place of a version of a buffer, and what has been written to it since.
#[derive(Clone, Debug)]
pub struct Gone {
    pub by: Side,
    pub over: Buffer,
    /// By set, the conditions under which it was written.
    written: Vec<(u32, Vec<Under>)>,
}

impl Gone {
    /// What has certainly been written since, where a condition holds.
    pub fn written(&self, under: &[Literal]) -> Vec<u32> {
        let certain = self.written.iter().filter(|(_, cases)| {
            let cases: Vec<&[Literal]> = cases.iter().map(|u| &u[..]).collect();
            !possible(under, &cases)
        });
        certain.map(|(set, _)| *set).collect()
    }
}

impl Aliases {
    pub fn of(func: &Func, kernel: &Kernel) -> Aliases {
        let mut list: Vec<(Buffer, SharedPlace, u32)> = Vec::new();
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Alloc(buffer) = stmt.kind
                && let Some(place) = func.buffers[buffer].place
            {
                list.push((buffer, place, func.buffers[buffer].versions.max(1)));
            }
        });
        let mut aliases = Aliases::default();
        for &(buffer, place, versions) in &list {
            let others = list
                .iter()
                .filter(|(b, p, _)| *b != buffer && p.overlaps(place));
            let others: Vec<Buffer> = others.map(|(b, ..)| *b).collect();
            if !others.is_empty() {
                aliases.places.insert(buffer, (place, versions));
                aliases.others.insert(buffer, others);
            }
        }
        aliases
    }

    /// The buffers that share bytes with this one.
    pub fn others(&self, buffer: Buffer) -> &[Buffer] {
        self.others.get(&buffer).map_or(&[], |list| list)
    }

    /// Whether accesses to different buffers may touch one byte.
    pub fn meet(&self, a: &Touch, b: &Touch) -> bool {
        match (self.bytes(a), self.bytes(b)) {
            (Some(x), Some(y)) => x.overlaps(y),
            _ => false,
        }
    }

    fn bytes(&self, touch: &Touch) -> Option<SharedPlace> {
        let &(place, versions) = self.places.get(&touch.root)?;
        let slot = touch.slot.and_then(|s| u32::try_from(s).ok());
        Some(slot.map_or(place, |slot| place.version(slot, versions)))
    }

    /// The versions that an access may mean.
    fn versions(&self, touch: &Touch) -> std::ops::Range<u32> {
        let versions = self.places.get(&touch.root).map_or(0, |p| p.1);
        match touch.slot.and_then(|s| u32::try_from(s).ok()) {
            Some(slot) if versions > 1 => slot..slot.saturating_add(1).min(versions).max(slot),
            _ => 0..versions,
        }
    }

    /// A write under a condition: what others held at its place is gone, and its own is there
    /// again.
    pub fn write(&mut self, touch: &Touch, side: Side, under: &Under) {
        let Some(bytes) = self.bytes(touch) else {
            return;
        };
        for &other in self.others.get(&touch.root).into_iter().flatten() {
            let Some(&(place, versions)) = self.places.get(&other) else {
                continue;
            };
            for version in 0..versions {
                if place.version(version, versions).overlaps(bytes) {
                    let gone = Gone {
                        by: side,
                        over: touch.root,
                        written: Vec::new(),
                    };
                    self.gone.insert((other, version), gone);
                }
            }
        }
        for version in self.versions(touch) {
            let Some(gone) = self.gone.get_mut(&(touch.root, version)) else {
                continue;
            };
            let found = gone.written.iter().position(|(set, _)| *set == touch.set);
            let at = found.unwrap_or_else(|| {
                gone.written.push((touch.set, Vec::new()));
                gone.written.len() - 1
            });
            let cases = &mut gone.written[at].1;
            if !cases.iter().any(|own| follows(own, under, &[])) {
                remember(cases, under.clone());
            }
        }
    }

    /// The versions that a read may mean and whose content is gone, with what came since.
    pub fn gone(&self, touch: &Touch) -> Vec<Gone> {
        let versions = self.versions(touch);
        let each = versions.filter_map(|v| self.gone.get(&(touch.root, v)));
        each.cloned().collect()
    }

    /// What decides later findings, in any order.
    pub fn fingerprint(&self, relative: &dyn Fn(&Under) -> u64) -> u64 {
        let mut sum = 0u64;
        for (place, gone) in &self.gone {
            let mut h = FxHasher::default();
            (place, gone.by.stmt, gone.over).hash(&mut h);
            let written = gone.written.iter();
            let mut written: Vec<(u32, u64)> = written
                .map(|(set, cases)| (*set, cases.iter().map(relative).fold(0, u64::wrapping_add)))
                .collect();
            written.sort_unstable();
            written.hash(&mut h);
            sum = sum.wrapping_add(h.finish());
        }
        sum
    }
}
