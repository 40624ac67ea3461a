//! Whether versions of a buffer that are read were written.
//!
//! A wrong slot index need not be a race: with the right barriers a loop reads, in good order,
//! what another iteration has brought. At the ends of a pipeline it shows: a version is read that
//! nothing has written.

use rustc_hash::FxHashSet;
use tilewright_ir::Buffer;

use super::report::HazardKind;
use super::run::{Clash, Memory, Remedy, Side};
use super::scan::Scan;
use super::touch::Touch;
use super::trace::{EventKind, Trace};

/// Looks at one group's way. Only meaningful where the group does all that is done, and no
/// condition was merely supposed: a writer may be left out of such a run.
pub fn check(scan: &Scan<'_>, trace: &Trace) -> Vec<Clash> {
    let mut written: FxHashSet<(Buffer, i64)> = FxHashSet::default();
    // Buffers of which a write may have meant any version.
    let mut somewhere: FxHashSet<Buffer> = FxHashSet::default();
    let mut clashes = Vec::new();
    for event in &trace.events {
        let (EventKind::Touch(touches) | EventKind::Issue { touches, .. }) = &event.kind else {
            continue;
        };
        let versioned = |t: &&Touch| scan.func.buffers[t.root].versions > 1 && !t.atomic;
        let (writes, reads): (Vec<&Touch>, Vec<&Touch>) = touches
            .shared
            .iter()
            .filter(versioned)
            .partition(|t| t.write);
        for touch in reads {
            let Some(slot) = touch.slot else {
                continue;
            };
            if written.contains(&(touch.root, slot)) || somewhere.contains(&touch.root) {
                continue;
            }
            let side = Side {
                stmt: touch.stmt,
                group: 0,
                moment: event.moment,
            };
            clashes.push(Clash {
                kind: HazardKind::UnwrittenVersion,
                first: side,
                second: side,
                memory: Memory {
                    root: Some(touch.root),
                    slot: Some(slot),
                    over: None,
                },
                remedy: Remedy::Version,
            });
        }
        for touch in writes {
            match touch.slot {
                Some(slot) => {
                    written.insert((touch.root, slot));
                }
                None => {
                    somewhere.insert(touch.root);
                }
            }
        }
    }
    clashes
}
