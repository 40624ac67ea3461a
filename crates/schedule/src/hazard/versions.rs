//! Whether what is read of a buffer with versions is what is meant.
//!
//! A wrong slot index need not be a race: with the right barriers a loop reads, in good order,
//! what another iteration has brought. Two rules find it:
//! - a version that is read was written before;
//! - where the program names the iterations of a pipelined loop (`iteration k + 2`), the last
//!   write to what is read was made for the iteration that reads.
//!
//! What is fetched too far and never read is legal.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{Buffer, Var};

use super::clash::{Clash, Memory, Remedy, Side};
use super::event::{Event, Trace};
use super::places::Places;
use super::report::HazardKind;
use super::scan::Scan;
use super::touch::{Iteration, Touch};

/// The writes to a version that are remembered.
const MOST: usize = 64;

/// Looks at one group's way, which must be all that is done to these buffers. `whole` says that
/// no condition was merely supposed; where one was, a writer may be left out of the run while its
/// reader is not, and only iterations that something was written for are looked at.
pub fn check(scan: &Scan<'_>, places: &mut Places<'_>, trace: &Trace, whole: bool) -> Vec<Clash> {
    let events = trace.events.iter().map(|event| (0, event, 0));
    check_events(scan, places, events, whole)
}

/// Looks at the ways of groups that do different things, in the order of a run in which nothing
/// clashed: any other order would say the same.
pub fn check_together(
    scan: &Scan<'_>,
    places: &mut Places<'_>,
    traces: &[Trace],
    order: &[(usize, usize)],
) -> Vec<Clash> {
    // Iterations that are left out come before those behind: in all groups once, and as many.
    let mut left_out: Vec<i64> = Vec::new();
    for trace in traces {
        let skips = trace.events.iter().filter_map(Event::skips);
        let skips: Vec<i64> = skips.map(|(_, by)| by).collect();
        match skips[..] {
            [] => left_out.push(0),
            [by] => left_out.push(by),
            _ => return Vec::new(),
        }
    }
    let mut amounts = left_out.iter().filter(|by| **by != 0);
    let amount = amounts.next();
    if amounts.any(|by| Some(by) != amount) {
        return Vec::new();
    }
    let mut events = Vec::new();
    for &(group, at) in order {
        let event = &traces[group].events[at];
        match event.skips() {
            Some(_) => left_out[group] = 0,
            None => events.push((group, event, left_out[group])),
        }
    }
    check_events(scan, places, events.into_iter(), true)
}

/// The same for events with their groups, each with what its iteration is to be counted on.
fn check_events<'t>(
    scan: &Scan<'_>,
    places: &mut Places<'_>,
    events: impl Iterator<Item = (usize, &'t Event, i64)>,
    whole: bool,
) -> Vec<Clash> {
    let mut written = Written::default();
    let mut clashes = Vec::new();
    for (group, event, later) in events {
        if let Some((var, by)) = event.skips() {
            written.skip(var, by);
        }
        let Some(touches) = event.kind.touches() else {
            continue;
        };
        let versioned = |t: &&Touch| scan.func.buffers[t.root].versions > 1 && !t.atomic;
        let versioned = touches.shared.iter().filter(versioned);
        let all: Vec<Touch> = versioned.map(|touch| touch.counted_on(later)).collect();
        // An event may be several statements; each reads before it writes.
        for one in all.chunk_by(|a, b| a.stmt == b.stmt) {
            for touch in one.iter().filter(|t| !t.write) {
                let side = Side {
                    stmt: touch.stmt,
                    group,
                    moment: event.moment,
                };
                let found = match written.finding(places, touch, whole) {
                    Finding::Right => continue,
                    Finding::Unwritten => (HazardKind::UnwrittenVersion, side),
                    Finding::Other(write) => (HazardKind::OtherIteration, write),
                };
                clashes.push(Clash {
                    kind: found.0,
                    first: found.1,
                    second: side,
                    memory: Memory {
                        root: Some(touch.root),
                        slot: touch.slot,
                        over: None,
                    },
                    remedy: Remedy::Version,
                });
            }
            for touch in one.iter().filter(|t| t.write) {
                written.add(touch, group, event.moment);
            }
        }
    }
    clashes
}

enum Finding {
    Right,
    Unwritten,
    Other(Side),
}

/// A write to a version of a buffer.
struct Write {
    side: Side,
    set: u32,
    iteration: Option<Iteration>,
}

#[derive(Default)]
struct Written {
    /// By version, oldest first.
    versions: FxHashMap<(Buffer, i64), Vec<Write>>,
    /// Buffers of which a write may have meant any version.
    somewhere: FxHashSet<Buffer>,
}

impl Written {
    fn add(&mut self, touch: &Touch, group: usize, moment: u32) {
        let Some(slot) = touch.slot else {
            self.somewhere.insert(touch.root);
            return;
        };
        let list = self.versions.entry((touch.root, slot)).or_default();
        list.retain(|w| (w.side.stmt, w.set) != (touch.stmt, touch.set));
        if list.len() == MOST {
            list.remove(0);
        }
        list.push(Write {
            side: Side {
                stmt: touch.stmt,
                group,
                moment,
            },
            set: touch.set,
            iteration: touch.iteration,
        });
    }

    /// Iterations of a loop are left out in which nothing new happens: what was written for one
    /// of the last ones stands for what would have been written by now.
    fn skip(&mut self, var: Var, by: i64) {
        for write in self.versions.values_mut().flatten() {
            if let Some(iteration) = &mut write.iteration
                && iteration.from == Some(var)
            {
                iteration.number += by;
            }
        }
    }

    fn finding(&self, places: &mut Places<'_>, touch: &Touch, whole: bool) -> Finding {
        let Some(slot) = touch.slot else {
            return Finding::Right;
        };
        if self.somewhere.contains(&touch.root) {
            return Finding::Right;
        }
        let Some(list) = self.versions.get(&(touch.root, slot)) else {
            return match whole || self.was_written(touch) {
                true => Finding::Unwritten,
                false => Finding::Right,
            };
        };
        let Some(wanted) = touch.iteration else {
            return Finding::Right;
        };
        let mut own = Vec::new();
        for write in list.iter().rev() {
            let Some(iteration) = write.iteration else {
                return Finding::Right;
            };
            if iteration.number == wanted.number {
                own.push(write.set);
                continue;
            }
            // Of most writes nothing is left, and there are fewer of them than reads.
            if places.covered(write.set, &own) == Some(true) {
                continue;
            }
            // What cannot be counted out may be all of the buffer.
            if places.covered(touch.set, &own) != Some(false) {
                return Finding::Right;
            }
            if places.meeting(write.set, touch.set).overlap != 0 {
                return match whole || self.was_written(touch) {
                    true => Finding::Other(write.side),
                    false => Finding::Right,
                };
            }
        }
        match self.lies_elsewhere(places, touch, wanted, &own) {
            true => Finding::Unwritten,
            false => Finding::Right,
        }
    }

    /// Whether a part of what is read, and was not written here, was written for that iteration in another
    /// version.
    fn lies_elsewhere(
        &self,
        places: &mut Places<'_>,
        touch: &Touch,
        wanted: Iteration,
        own: &[u32],
    ) -> bool {
        let others = self.versions.iter();
        let others =
            others.filter(|((root, slot), _)| *root == touch.root && Some(*slot) != touch.slot);
        let mut others = others.flat_map(|(_, list)| list).filter(|write| {
            let number = write.iteration.map(|iteration| iteration.number);
            number == Some(wanted.number)
        });
        others.any(|write| {
            places.covered(touch.set, own) == Some(false)
                && places.covered(write.set, own) == Some(false)
                && places.meeting(write.set, touch.set).overlap != 0
        })
    }

    /// Whether any version was written for the iteration that reads.
    fn was_written(&self, touch: &Touch) -> bool {
        let Some(wanted) = touch.iteration else {
            return false;
        };
        let own = self.versions.iter().filter(|(id, _)| id.0 == touch.root);
        let mut writes = own.flat_map(|(_, list)| list);
        writes.any(|w| w.iteration.is_some_and(|i| i.number == wanted.number))
    }
}
