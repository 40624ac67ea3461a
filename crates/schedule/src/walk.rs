//! ThreadSync's walk: which items must wait, and for whom.
//!
//! What is open is carried through the items. Where ways part, each goes on with all of it; where
//! they meet, what only one has left open is known to have come that way. Behind a loop is what
//! its last iteration left open and, where it may not run at all, what was open before it.

use crate::conflicts::{Class, Conflicts, Relation};
use crate::footprint::Meeting;
use crate::outline::{GroupSet, Item, ItemKind, Jumps, Trips};
use crate::pending::{Open, Pending};
use crate::slots::Slot;
use crate::ways::{Age, Around, Changed, Ways};

/// Who waits before an item.
#[derive(Clone, Copy, Default, Debug)]
pub struct Waits {
    /// Each warp for its own threads.
    pub warp: bool,
    /// All threads of the block, or of the region's warp groups.
    pub all: bool,
}

/// The waits that the items need, by item.
pub fn derive(items: &[Item], conflicts: &mut Conflicts<'_>) -> Vec<Waits> {
    let mut walk = BarrierWalk {
        conflicts,
        ways: Ways::default(),
        waits: vec![Waits::default(); count(items)],
        left: Open::default(),
        next: Open::default(),
        mode: Mode::Insert,
        hazard: false,
    };
    walk.block(items, &mut Open::default());
    // A wait put in for the first iteration may be covered by one that a later iteration
    // needed, and a warp's by one of the block.
    walk.mode = Mode::Check;
    for at in 0..walk.waits.len() {
        if walk.waits[at].all {
            walk.waits[at].all = false;
            walk.waits[at].all = walk.has_hazard(items);
        }
    }
    for at in 0..walk.waits.len() {
        if walk.waits[at].warp {
            walk.waits[at].warp = false;
            walk.waits[at].warp = walk.has_hazard(items);
        }
    }
    // What a loop waits for again and again, though it was done before the loop, it waits for once.
    let mut inside = Vec::new();
    waits_in_loops(items, &walk.waits, &mut Vec::new(), &mut inside);
    for (at, loops) in inside {
        walk.waits[at].all = false;
        let moved = loops.into_iter().find(|&before| {
            let had = std::mem::replace(&mut walk.waits[before].all, true);
            let fits = !walk.has_hazard(items);
            walk.waits[before].all = had || fits;
            fits
        });
        walk.waits[at].all = moved.is_none();
    }
    walk.waits
}

/// The items in loops before which all wait, with these loops, the outermost first, as far as the same
/// threads run them.
fn waits_in_loops(
    items: &[Item],
    waits: &[Waits],
    loops: &mut Vec<usize>,
    found: &mut Vec<(usize, Vec<usize>)>,
) {
    for item in items {
        if waits[item.at].all && !loops.is_empty() {
            found.push((item.at, loops.clone()));
        }
        match &item.kind {
            ItemKind::Unit | ItemKind::WaitsForBlock | ItemKind::WaitsForWarp => {}
            ItemKind::Loop { body, .. } => {
                loops.push(item.at);
                waits_in_loops(body, waits, loops, found);
                loops.pop();
            }
            ItemKind::Branch {
                then, otherwise, ..
            } => {
                waits_in_loops(then, waits, loops, found);
                waits_in_loops(otherwise, waits, loops, found);
            }
            ItemKind::Groups { body, .. } => {
                waits_in_loops(body, waits, &mut Vec::new(), found);
            }
        }
    }
}

fn count(items: &[Item]) -> usize {
    let inner = |item: &Item| match &item.kind {
        ItemKind::Unit | ItemKind::WaitsForBlock | ItemKind::WaitsForWarp => 0,
        ItemKind::Loop { body, .. } | ItemKind::Groups { body, .. } => count(body),
        ItemKind::Branch {
            then, otherwise, ..
        } => count(then) + count(otherwise),
    };
    items.iter().map(|item| 1 + inner(item)).sum()
}

/// What the items touch, each class once.
fn classes_in(items: &[Item], found: &mut Vec<Class>) {
    for item in items {
        for &class in &item.classes {
            if !found.contains(&class) {
                found.push(class);
            }
        }
        match &item.kind {
            ItemKind::Unit | ItemKind::WaitsForBlock | ItemKind::WaitsForWarp => {}
            ItemKind::Loop { body, .. } | ItemKind::Groups { body, .. } => classes_in(body, found),
            ItemKind::Branch {
                then, otherwise, ..
            } => {
                classes_in(then, found);
                classes_in(otherwise, found);
            }
        }
    }
}

/// Whether nothing but regions of warp groups touches memory in the item.
fn is_of_regions(item: &Item) -> bool {
    let all = |items: &[Item]| items.iter().all(is_of_regions);
    match &item.kind {
        ItemKind::Groups { .. } => true,
        ItemKind::WaitsForBlock | ItemKind::WaitsForWarp => false,
        ItemKind::Unit => item.classes.is_empty(),
        ItemKind::Loop { body, .. } => item.classes.is_empty() && all(body),
        ItemKind::Branch {
            then, otherwise, ..
        } => item.classes.is_empty() && all(then) && all(otherwise),
    }
}

/// Whether the item is of regions, and there is one.
fn holds_regions(item: &Item) -> bool {
    let any = |items: &[Item]| items.iter().any(holds_regions);
    let inside = match &item.kind {
        ItemKind::Groups { .. } => true,
        ItemKind::Unit | ItemKind::WaitsForBlock | ItemKind::WaitsForWarp => false,
        ItemKind::Loop { body, .. } => any(body),
        ItemKind::Branch {
            then, otherwise, ..
        } => any(then) || any(otherwise),
    };
    inside && is_of_regions(item)
}

/// A loop as the walk sees it.
#[derive(Clone, Copy, Debug)]
struct Repeated<'i> {
    around: Around<'i>,
    body: &'i [Item],
    trips: Trips,
}

/// What the walk does where threads meet.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
enum Mode {
    Insert,
    /// Says so and stops.
    Check,
    /// Passes barriers by: what is open in the end is all that was done.
    Gather,
}

struct BarrierWalk<'c, 'k> {
    conflicts: &'c mut Conflicts<'k>,
    ways: Ways,
    waits: Vec<Waits>,
    /// What is open where the innermost loop is left early.
    left: Open,
    /// What is open where its next iteration is begun early.
    next: Open,
    mode: Mode,
    hazard: bool,
}

impl BarrierWalk<'_, '_> {
    /// Whether threads meet with the waits as they are.
    fn has_hazard(&mut self, items: &[Item]) -> bool {
        self.hazard = false;
        self.block(items, &mut Open::default());
        self.hazard
    }

    fn block(&mut self, items: &[Item], open: &mut Open) {
        // Where the regions end that run beside the last one met.
        let mut end = 0;
        for (at, item) in items.iter().enumerate() {
            if self.hazard && self.mode == Mode::Check {
                return;
            }
            if at >= end && holds_regions(item) {
                let beside = items[at..].iter().take_while(|i| is_of_regions(i));
                end = at + beside.count();
                self.wait_before_regions(item, &items[at..end], open);
            }
            self.item(item, open);
        }
    }

    fn item(&mut self, item: &Item, open: &mut Open) {
        match &item.kind {
            // What the block has done has been waited for; other regions run beside it.
            ItemKind::Groups { meets: true, .. } => {}
            ItemKind::Groups { body, .. } => {
                let mut classes = Vec::new();
                classes_in(body, &mut classes);
                self.wait_if_needed(item, &classes, open);
            }
            _ => self.wait_if_needed(item, &item.classes, open),
        }
        for &class in item.classes.iter().filter(|c| !self.conflicts.is_told(**c)) {
            open.add(Pending {
                class,
                at: self.ways.here(self.conflicts.slot(class)),
                in_warp: false,
                groups: GroupSet::default(),
            });
        }
        if item
            .writes
            .iter()
            .any(|b| self.conflicts.is_read_for_places(*b))
        {
            open.rewrite_places();
        }
        match item.jumps {
            Jumps::No => {}
            Jumps::Perhaps => {
                self.left.merge(open.clone());
                self.next.merge(open.clone());
            }
            Jumps::Break => self.left.merge(std::mem::take(open)),
            Jumps::Continue => self.next.merge(std::mem::take(open)),
        }
        match &item.kind {
            ItemKind::Unit => {}
            ItemKind::WaitsForBlock if self.mode == Mode::Gather => {}
            ItemKind::WaitsForBlock => open.list.clear(),
            ItemKind::WaitsForWarp => open.sync_warps(),
            ItemKind::Loop {
                body,
                trips,
                changed,
                index,
            } => {
                let l = Repeated {
                    around: Around {
                        at: item.at,
                        changed,
                        index: index.as_ref(),
                    },
                    body,
                    trips: *trips,
                };
                self.repeated(l, open);
            }
            ItemKind::Branch {
                then,
                otherwise,
                when,
                unless,
            } => {
                let taken = self.way(then, when, open.clone());
                let other = self.way(otherwise, unless, std::mem::take(open));
                self.join(open, &taken, when, &other);
                self.join(open, &other, unless, &taken);
            }
            ItemKind::Groups {
                body,
                groups,
                meets,
            } => {
                // What its own groups did in regions before is open to it, and nothing else.
                let own = open.list.iter().filter(|p| p.groups.meets(*groups));
                let own = own.map(|p| Pending {
                    groups: GroupSet::default(),
                    ..*p
                });
                let mut before = Open {
                    list: own.collect(),
                };
                self.block(body, &mut before);
                let outer = std::mem::replace(&mut self.mode, Mode::Gather);
                let mut done = Open::default();
                self.block(body, &mut done);
                self.mode = outer;
                for pending in &mut done.list {
                    pending.groups = if *meets { *groups } else { GroupSet::default() };
                }
                open.merge(done);
            }
        }
    }

    /// What one way of a branch leaves open.
    fn way(&mut self, items: &[Item], facts: &[Slot], mut open: Open) -> Open {
        let Some(inside) = self.ways.inside(&self.conflicts.slots, facts) else {
            // It is never taken.
            return Open::default();
        };
        let outside = std::mem::replace(&mut self.ways.here, inside);
        self.block(items, &mut open);
        self.ways.here = outside;
        open
    }

    /// Adds what one way has left open. What the other one closed came this way.
    fn join(&mut self, open: &mut Open, way: &Open, facts: &[Slot], other: &Open) {
        for pending in &way.list {
            let more = if other.has(pending) { &[] } else { facts };
            self.add_known(open, *pending, more);
        }
    }

    /// Adds an access with more facts, unless these say that it was not done.
    fn add_known(&mut self, open: &mut Open, pending: Pending, facts: &[Slot]) {
        if let Some(at) = self.ways.with(&self.conflicts.slots, pending.at, facts) {
            open.add(Pending { at, ..pending });
        }
    }

    /// A loop body: once from the outside, once from its own end, and once more for what a whole
    /// iteration has left open, because it may be any number of iterations old by then.
    fn repeated(&mut self, l: Repeated<'_>, open: &mut Open) {
        let before = open.clone();
        let outside = self.ways.here;
        if let Some(index) = l.around.index {
            let inside = [index.runs, index.above];
            match self.ways.inside(&self.conflicts.slots, &inside) {
                Some(inside) => self.ways.here = inside,
                // It never runs.
                None => return,
            }
            let first = [index.runs, index.above, index.at_first];
            for pending in std::mem::take(&mut open.list) {
                self.add_known(open, pending, &first);
            }
        }
        let left_outside = std::mem::take(&mut self.left);
        self.iteration(&l, open);
        if l.trips.runs_again {
            let mut carried = self.carried(&l, open, |_| Age::One);
            let second = carried.clone();
            self.iteration(&l, &mut carried);
            let age = |p: &Pending| match p.at.changed == Changed::default() {
                true => Age::One,
                false => Age::Any,
            };
            let mut older = self.carried(&l, &carried, age);
            if older.list.iter().any(|p| !second.covers(p)) {
                self.iteration(&l, &mut older);
                carried.merge(older);
            }
            open.merge(carried);
        }
        self.ways.here = outside;
        let left = std::mem::replace(&mut self.left, left_outside);
        for pending in std::mem::take(&mut open.list) {
            let slots = &mut self.conflicts.slots;
            if let Some(at) = self.ways.behind(slots, l.around, pending.at) {
                open.add(Pending { at, ..pending });
            }
        }
        open.merge(left);
        if l.trips.may_skip {
            let skips = l.around.index.map(|index| index.skips);
            for pending in before.list {
                self.add_known(open, pending, skips.as_slice());
            }
        }
    }

    fn iteration(&mut self, l: &Repeated<'_>, open: &mut Open) {
        let outer = std::mem::take(&mut self.next);
        self.block(l.body, open);
        open.merge(std::mem::replace(&mut self.next, outer));
    }

    /// What is open, in terms of the next iteration.
    fn carried(&mut self, l: &Repeated<'_>, open: &Open, age: impl Fn(&Pending) -> Age) -> Open {
        let mut carried = Open::default();
        for pending in &open.list {
            if l.trips.are_blocks && self.conflicts.is_of_tensor(pending.class) {
                continue;
            }
            let slots = &mut self.conflicts.slots;
            let place = self.ways.carried(slots, l.around, pending.at, age(pending));
            if let Some(at) = place {
                carried.add(Pending { at, ..*pending });
            }
        }
        carried
    }

    /// Takes the waits before the item, and puts in another where it conflicts with what is
    /// still open.
    fn wait_if_needed(&mut self, item: &Item, classes: &[Class], open: &mut Open) {
        if self.mode == Mode::Gather {
            return;
        }
        let waits = self.waits[item.at];
        if waits.warp {
            open.sync_warps();
        }
        if waits.all {
            open.list.clear();
        }
        let needed = self.meeting(classes, open);
        if needed <= Meeting::InThread {
            return;
        }
        self.hazard = true;
        if self.mode == Mode::Check {
            return;
        }
        let waits = &mut self.waits[item.at];
        if needed == Meeting::InWarp {
            waits.warp = true;
            open.sync_warps();
        } else {
            waits.all = true;
            open.list.clear();
        }
    }

    /// All that the regions do waits before the first for what the block has done: behind it the
    /// block does not come together until all are done.
    fn wait_before_regions(&mut self, first: &Item, regions: &[Item], open: &mut Open) {
        if self.mode == Mode::Gather {
            return;
        }
        let mut classes = Vec::new();
        classes_in(regions, &mut classes);
        let of_block = |p: &Pending| p.groups.is_block();
        let (block, beside) = std::mem::take(&mut open.list)
            .into_iter()
            .partition(of_block);
        open.list = block;
        self.wait_if_needed(first, &classes, open);
        if !self.waits[first.at].all {
            open.list.extend::<Vec<Pending>>(beside);
        }
    }

    /// How the accesses meet what is open.
    fn meeting(&mut self, classes: &[Class], open: &Open) -> Meeting {
        let mut needed = Meeting::Nowhere;
        // Nothing is worse than threads of different warps, so what needs no counting to say
        // that comes first.
        let mut uncounted = Vec::new();
        for pending in &open.list {
            for &class in classes {
                let met = match self.met(pending, class) {
                    Some(met) => met,
                    None => {
                        uncounted.push((pending, class));
                        continue;
                    }
                };
                if met == Meeting::AcrossWarps {
                    return met;
                }
                needed = needed.max(met);
            }
        }
        for (pending, class) in uncounted {
            self.conflicts.relation(pending.class, class);
            needed = needed.max(self.met(pending, class).unwrap_or(Meeting::AcrossWarps));
            if needed == Meeting::AcrossWarps {
                break;
            }
        }
        needed
    }

    /// How an access meets an open one; `None` where that has not been counted out yet.
    fn met(&mut self, pending: &Pending, class: Class) -> Option<Meeting> {
        let relation = self.conflicts.known_relation(pending.class, class);
        if relation == Some(Relation::Apart) {
            return Some(Meeting::Nowhere);
        }
        if self.conflicts.in_one_thread(pending.class, class) {
            return Some(Meeting::InThread);
        }
        let slot = self.conflicts.slot(class);
        let slots = &mut self.conflicts.slots;
        if self.ways.is_apart(slots, pending.at, slot) {
            return Some(Meeting::Nowhere);
        }
        let both = [pending.class, class];
        if self.ways.are_parted(self.conflicts, pending.at, both) {
            return Some(Meeting::Nowhere);
        }
        let met = relation.map(|r| r.meeting());
        if met == Some(Meeting::AcrossWarps) {
            return met;
        }
        if self.ways.moves(self.conflicts, pending.at, both) {
            return Some(Meeting::AcrossWarps);
        }
        if met == Some(Meeting::InWarp) && pending.in_warp {
            return Some(Meeting::Nowhere);
        }
        met
    }
}
