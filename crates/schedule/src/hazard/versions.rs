//! Whether versions of a buffer are read as they were written.
//!
//! A wrong slot index need not be a race: with the right barriers a loop reads, in good order,
//! what another iteration has brought. It shows at the ends of the pipeline. A version is read
//! that nothing has written, or what one iteration brought is overwritten by the same statement
//! of another iteration, or left at the end of the kernel, before anything has read it.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Buffer, Span};

use super::report::HazardKind;
use super::run::{Clash, Memory, Remedy, Side};
use super::scan::{Key, Scan, key};
use super::touch::Touch;
use super::trace::{EventKind, Trace};

/// What stands in one version.
struct Content {
    side: Side,
    /// Where the writing statement was written: copies of one statement, made for the pieces of
    /// a pipeline, have it in common.
    span: Span,
    set: u32,
    read: bool,
}

/// Looks at one group's way. Only meaningful where the group does all that is done, and no
/// condition was merely supposed: a reader may be left out of such a run.
pub fn check(scan: &Scan<'_>, trace: &Trace) -> Vec<Clash> {
    let mut spans: FxHashMap<Key, Span> = FxHashMap::default();
    walk_stmts(&scan.kernel.body, &mut |stmt| {
        spans.insert(key(stmt), stmt.span);
    });
    let mut walk = Walk {
        spans,
        contents: FxHashMap::default(),
        served: FxHashSet::default(),
        clashes: Vec::new(),
    };
    for event in &trace.events {
        let (EventKind::Touch(touches) | EventKind::Issue { touches, .. }) = &event.kind else {
            continue;
        };
        let versioned = |t: &&Touch| scan.func.buffers[t.root].versions > 1 && !t.atomic;
        let side = |t: &Touch| Side {
            stmt: t.stmt,
            group: 0,
            moment: event.moment,
        };
        let (writes, reads): (Vec<&Touch>, Vec<&Touch>) = touches
            .shared
            .iter()
            .filter(versioned)
            .partition(|t| t.write);
        for touch in reads {
            walk.read(touch, side(touch));
        }
        for touch in writes {
            walk.write(touch, side(touch));
        }
    }
    walk.end();
    walk.clashes
}

struct Walk {
    spans: FxHashMap<Key, Span>,
    contents: FxHashMap<(Buffer, i64), Content>,
    /// Statements of the source whose data was read at least once.
    served: FxHashSet<Span>,
    clashes: Vec<Clash>,
}

impl Walk {
    fn read(&mut self, touch: &Touch, side: Side) {
        let Some(slot) = touch.slot else {
            // It may be any version.
            for (_, content) in self.contents.iter_mut().filter(|(k, _)| k.0 == touch.root) {
                content.read = true;
            }
            return;
        };
        match self.contents.get_mut(&(touch.root, slot)) {
            Some(content) => {
                content.read = true;
                self.served.insert(content.span);
            }
            None => self.clash(HazardKind::UnwrittenVersion, side, side, touch.root, slot),
        }
    }

    fn write(&mut self, touch: &Touch, side: Side) {
        let span = self.spans.get(&touch.stmt).copied().unwrap_or(Span::NONE);
        let Some(slot) = touch.slot else {
            // It may be any version, so all may be written.
            self.contents.retain(|k, _| k.0 != touch.root);
            return;
        };
        let new = Content {
            side,
            span,
            set: touch.set,
            read: false,
        };
        let old = self.contents.insert((touch.root, slot), new);
        if let Some(old) = old
            && !old.read
            && span != Span::NONE
            && (old.span, old.set) == (span, touch.set)
        {
            self.clash(HazardKind::LostVersion, old.side, side, touch.root, slot);
        }
    }

    fn end(&mut self) {
        let mut left: Vec<(Buffer, i64, Side)> = self
            .contents
            .iter()
            .filter(|(_, c)| !c.read && self.served.contains(&c.span))
            .map(|(&(root, slot), c)| (root, slot, c.side))
            .collect();
        left.sort_by_key(|(root, slot, _)| (*root, *slot));
        for (root, slot, side) in left {
            self.clash(HazardKind::LostVersion, side, side, root, slot);
        }
    }

    fn clash(&mut self, kind: HazardKind, first: Side, second: Side, root: Buffer, slot: i64) {
        self.clashes.push(Clash {
            kind,
            first,
            second,
            memory: Memory {
                root: Some(root),
                slot: Some(slot),
                over: None,
            },
            remedy: Remedy::Version,
        });
    }
}
