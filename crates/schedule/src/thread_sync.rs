//! ThreadSync: block barriers where threads hand data to each other through shared memory.
//!
//! Walks the program once with the accesses that no barrier has closed yet. A statement that
//! conflicts with one of them gets a barrier before it, which closes them all. A loop is
//! walked a second time, starting from what its first iteration leaves open, so hazards
//! between iterations are seen. A barrier stands only where all threads of the block go
//! together: before a thread-dependent `if`, never in it. Where only threads of one warp meet,
//! a warp barrier does. Warp groups in regions of their own meet each other at the user's barriers
//! only; a barrier in a region is one of its groups, and what is done there stays open to the
//! rest of the block. Then each barrier without which no hazard is left goes.
//!
//! The walk is over the body's [`outline`], and what two accesses do to each other is remembered
//! in [`Conflicts`], so walking again costs little.
//!
//! Before:
//! ```text
//! S[tx] = A[tx]
//! B[tx] = S[127 - tx]
//! ```
//! After:
//! ```text
//! S[tx] = A[tx]
//! barrier block
//! B[tx] = S[127 - tx]
//! ```
//!
//! Needs loop IR: one thread's view. It never moves a statement, and never puts a barrier
//! where the model proves that no two threads meet.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::child_blocks_mut;
use tilewright_ir::{
    BarrierKind, Block, DeviceOp, Diagnostics, Func, Level, Stmt, StmtKind, ThreadOp, Var,
};

use crate::conflicts::{Class, Conflicts};
use crate::footprint::Meeting;
use crate::outline::{Index, Item, ItemKind, Trips, outline};
use crate::slots::{Slot, Slots};

/// Inserts the block barriers that a function's kernels need. Returns how many.
///
/// `warp` is the number of threads that run together: where only threads of one warp meet, they
/// synchronise among themselves.
pub fn thread_sync(func: &mut Func, warp: u32, diags: &mut Diagnostics) -> usize {
    debug_assert_ne!(func.level, Level::Tile);
    let mut inserted = 0;
    for at in 0..func.kernels.len() {
        let kernel = &func.kernels[at];
        let mut conflicts = Conflicts::new(kernel, warp);
        let items = outline(func, kernel, &mut conflicts, diags);
        let waits = derive(&items, &mut conflicts);
        inserted += waits.iter().filter(|w| w.all).count();
        let mut body = std::mem::take(&mut func.kernels[at].body);
        insert(&mut body, &items, &waits, BarrierKind::Block);
        func.kernels[at].body = body;
    }
    inserted
}

/// Who waits before an item.
#[derive(Clone, Copy, Default, Debug)]
struct Waits {
    /// Each warp for its own threads.
    warp: bool,
    /// All threads of the block, or of the region's warp groups.
    all: bool,
}

/// The waits that the items need, by item.
fn derive(items: &[Item], conflicts: &mut Conflicts<'_>) -> Vec<Waits> {
    let mut walk = Walk {
        conflicts,
        changed: ChangedSets::new(),
        waits: vec![Waits::default(); count(items)],
        when: None,
        mode: Mode::Insert,
        hazard: false,
    };
    walk.block(items, &mut Open::default());
    // A wait put in for the first iteration may be covered by one that a later iteration
    // needed.
    walk.mode = Mode::Check;
    for at in 0..walk.waits.len() {
        if walk.waits[at].all {
            walk.waits[at].all = false;
            walk.hazard = false;
            walk.block(items, &mut Open::default());
            walk.waits[at].all = walk.hazard;
        }
    }
    walk.waits
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

/// Writes the waits into the body that the items were made from.
fn insert(block: &mut Block, items: &[Item], waits: &[Waits], barrier: BarrierKind) {
    let stmts = std::mem::take(block);
    block.reserve(stmts.len());
    for (mut stmt, item) in stmts.into_iter().zip(items) {
        let wait = waits[item.at];
        if wait.warp {
            let kind = StmtKind::Thread(ThreadOp::SyncWarp);
            block.push(Stmt::new(kind, stmt.span));
        }
        if wait.all {
            let kind = StmtKind::Device(DeviceOp::Barrier(barrier.clone()));
            block.push(Stmt::new(kind, stmt.span));
        }
        let mut children = child_blocks_mut(&mut stmt).into_iter();
        let mut inner = |items: &[Item], barrier: BarrierKind| {
            if let Some(child) = children.next() {
                insert(child, items, waits, barrier);
            }
        };
        match &item.kind {
            ItemKind::Unit | ItemKind::WaitsForBlock | ItemKind::WaitsForWarp => {}
            ItemKind::Loop { body, .. } => inner(body, barrier.clone()),
            ItemKind::Branch {
                then, otherwise, ..
            } => {
                inner(then, barrier.clone());
                inner(otherwise, barrier.clone());
            }
            ItemKind::Groups { body, first, count } => {
                let named = BarrierKind::Named {
                    id: 1 + first,
                    count: *count,
                };
                inner(body, named);
            }
        }
        block.push(stmt);
    }
}

/// A loop as the walk sees it.
#[derive(Clone, Copy, Debug)]
struct Repeated<'i> {
    at: usize,
    body: &'i [Item],
    trips: Trips,
    changed: &'i FxHashSet<Var>,
    index: Option<Index>,
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

/// The accesses that no barrier has closed, each once.
#[derive(Clone, Default, Debug)]
struct Open {
    list: Vec<Pending>,
}

#[derive(Clone, Debug)]
struct Pending {
    class: Class,
    /// The version that it touched, in terms of the variables' values by now; `None` may be any.
    slot: Option<Slot>,
    /// What loop indices are by now, where that is known.
    values: Vec<(Var, Slot)>,
    /// Below zero where the condition that it stood under did not hold.
    when: Option<Slot>,
    /// The variables that have other values by now: those of the loops that have gone on to a
    /// later iteration since.
    changed: Changed,
    /// Whether each warp has synchronised since.
    in_warp: bool,
    /// Whether it was done in a region of some warp groups.
    in_region: bool,
}

impl Open {
    fn add(&mut self, pending: Pending) {
        let known = self.list.iter_mut().find(|p| {
            p.class == pending.class
                && p.in_region == pending.in_region
                && p.changed == pending.changed
                && p.slot == pending.slot
                && p.values == pending.values
        });
        match known {
            // On one of the ways here the warps have not synchronised.
            Some(known) => known.in_warp &= pending.in_warp,
            None => self.list.push(pending),
        }
    }

    fn merge(&mut self, other: Open) {
        for pending in other.list {
            self.add(pending);
        }
    }

    fn sync_warps(&mut self) {
        for pending in &mut self.list {
            pending.in_warp = true;
        }
    }
}

/// A set of variables, by number; zero is the empty one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Changed(usize);

/// The sets of variables that the walk has seen, so that a set is compared by its number.
#[derive(Debug)]
struct ChangedSets {
    sets: Vec<FxHashSet<Var>>,
    /// A set and the loop whose variables were added to it.
    unions: FxHashMap<(Changed, usize), Changed>,
}

impl ChangedSets {
    const NONE: Changed = Changed(0);

    fn new() -> ChangedSets {
        ChangedSets {
            sets: vec![FxHashSet::default()],
            unions: FxHashMap::default(),
        }
    }

    fn union(&mut self, set: Changed, at: usize, more: &FxHashSet<Var>) -> Changed {
        if let Some(known) = self.unions.get(&(set, at)) {
            return *known;
        }
        let all: FxHashSet<Var> = self.sets[set.0].union(more).copied().collect();
        let number = self.sets.iter().position(|s| *s == all);
        let number = number.unwrap_or_else(|| {
            self.sets.push(all);
            self.sets.len() - 1
        });
        self.unions.insert((set, at), Changed(number));
        Changed(number)
    }
}

struct Walk<'c, 'k> {
    conflicts: &'c mut Conflicts<'k>,
    changed: ChangedSets,
    waits: Vec<Waits>,
    /// The condition that the walk stands under.
    when: Option<Slot>,
    mode: Mode,
    hazard: bool,
}

impl Walk<'_, '_> {
    fn block(&mut self, items: &[Item], open: &mut Open) {
        for item in items {
            if self.hazard && self.mode == Mode::Check {
                return;
            }
            self.item(item, open);
        }
    }

    fn item(&mut self, item: &Item, open: &mut Open) {
        match &item.kind {
            ItemKind::Groups { body, .. } => self.wait_before_region(item, body, open),
            _ => self.wait_if_needed(item, &item.classes, open),
        }
        for &class in &item.classes {
            open.add(Pending {
                class,
                slot: self.conflicts.slot(class),
                values: Vec::new(),
                when: self.when,
                changed: ChangedSets::NONE,
                in_warp: false,
                in_region: false,
            });
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
                    at: item.at,
                    body,
                    trips: *trips,
                    changed,
                    index: *index,
                };
                self.repeated(l, open);
            }
            ItemKind::Branch {
                then,
                otherwise,
                when,
            } => {
                let mut other = open.clone();
                let outer = self.when;
                self.when = when.or(outer);
                self.block(then, open);
                self.when = outer;
                self.block(otherwise, &mut other);
                open.merge(other);
            }
            ItemKind::Groups { body, .. } => {
                // Nothing before the region is open to it by now.
                self.block(body, &mut Open::default());
                let outer = std::mem::replace(&mut self.mode, Mode::Gather);
                let mut done = Open::default();
                self.block(body, &mut done);
                self.mode = outer;
                for pending in &mut done.list {
                    pending.in_region = true;
                }
                open.merge(done);
            }
        }
    }

    /// A loop body: once from the outside, once from its own end, and once more for what a whole
    /// iteration has left open, because it may be any number of iterations old by then.
    fn repeated(&mut self, l: Repeated<'_>, open: &mut Open) {
        let before = open.clone();
        if let Some(index) = l.index {
            for pending in &mut open.list {
                pending.values.push((index.var, index.first));
            }
        }
        self.block(l.body, open);
        if l.trips.runs_again {
            let mut carried = Open::default();
            for pending in &open.list {
                carried.add(self.carried(&l, pending.clone(), false));
            }
            let inside = std::mem::take(&mut open.list);
            self.block(l.body, &mut carried);
            let old = |p: &Pending| {
                p.changed != ChangedSets::NONE && (p.slot.is_some() || p.when.is_some())
            };
            if carried.list.iter().any(old) {
                let mut older = Open::default();
                for pending in &carried.list {
                    older.add(self.carried(&l, pending.clone(), old(pending)));
                }
                self.block(l.body, &mut older);
                carried.merge(older);
            }
            open.list = inside;
            open.merge(carried);
        }
        // Behind the loop its index is the last one.
        if let Some(index) = l.index {
            let left = std::mem::take(&mut open.list);
            for mut pending in left {
                pending.values.retain(|(var, _)| *var != index.var);
                let slots = &mut self.conflicts.slots;
                let mut last = |s: Slot| slots.with_value(s, index.var, index.last);
                pending.slot = pending.slot.and_then(&mut last);
                pending.when = pending.when.and_then(&mut last);
                let done = pending.when.and_then(|s| slots.constant(s));
                if done.is_none_or(|distance| distance >= 0) {
                    open.add(pending);
                }
            }
        }
        if l.trips.may_skip {
            for pending in before.list {
                // What stands under a condition that makes the loop run was not skipped to.
                let runs = pending.when.zip(l.index).is_some_and(|(when, index)| {
                    let slots = &mut self.conflicts.slots;
                    slots.implies_order(when, index.first, index.last)
                });
                if !runs {
                    open.add(pending);
                }
            }
        }
    }

    /// What an open access is in terms of the next iteration.
    fn carried(&mut self, l: &Repeated<'_>, mut pending: Pending, any_age: bool) -> Pending {
        pending.changed = self.changed.union(pending.changed, l.at, l.changed);
        let slots = &mut self.conflicts.slots;
        let own = l.index.map(|index| index.var);
        let lost = |slot: Slot, slots: &Slots| {
            slots.mentions(slot, |v| Some(v) != own && l.changed.contains(&v))
        };
        if any_age {
            (pending.slot, pending.when) = (None, None);
        }
        for form in [&mut pending.slot, &mut pending.when] {
            *form = form.filter(|s| !lost(*s, slots));
            if let Some(var) = own {
                // What the index was is one less than what it is.
                *form = form.and_then(|s| slots.shifted(s, var, -1));
            }
        }
        pending.values.retain(|(_, value)| !lost(*value, slots));
        pending.values.retain_mut(|(var, value)| {
            if Some(*var) != own {
                return !l.changed.contains(var);
            }
            match slots.less(*value, -1) {
                Some(next) if !any_age => {
                    *value = next;
                    true
                }
                _ => false,
            }
        });
        pending
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

    /// All that the region does waits for what the block has done. Other regions run beside it.
    fn wait_before_region(&mut self, item: &Item, body: &[Item], open: &mut Open) {
        let mut classes = Vec::new();
        classes_in(body, &mut classes);
        let beside = |p: &Pending| p.in_region;
        let (regions, block) = std::mem::take(&mut open.list).into_iter().partition(beside);
        open.list = block;
        self.wait_if_needed(item, &classes, open);
        if !self.waits[item.at].all {
            open.list.extend::<Vec<Pending>>(regions);
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
        if relation != Some(crate::conflicts::Relation::Apart)
            && let (Some(then), Some(now)) = (pending.slot, self.conflicts.slot(class))
            && self.conflicts.slots.differ(then, now, &pending.values)
        {
            return Some(Meeting::Nowhere);
        }
        let met = relation.map(|r| r.meeting());
        let apart = relation == Some(crate::conflicts::Relation::Apart);
        if apart || met == Some(Meeting::AcrossWarps) {
            return met;
        }
        let changed = &self.changed.sets[pending.changed.0];
        let moves = |class: Class| self.conflicts.moves(class, changed);
        if moves(pending.class) || moves(class) {
            return Some(Meeting::AcrossWarps);
        }
        if met == Some(Meeting::InWarp) && pending.in_warp {
            return Some(Meeting::Nowhere);
        }
        met
    }
}
