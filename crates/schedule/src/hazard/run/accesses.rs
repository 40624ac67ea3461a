//! What an access meets: open accesses of other waves, buffers over its place, what a proxy has been
//! shown, registers under way.

use std::rc::Rc;

use tilewright_ir::{Counter, FenceKind};

use super::Run;
use crate::hazard::clash::{Memory, Remedy, Side};
use crate::hazard::conditions::{contradict, either};
use crate::hazard::places::Meeting;
use crate::hazard::report::HazardKind;
use crate::hazard::state::Open;
use crate::hazard::touch::{RegisterTouch, Touch, Touches};

impl Run<'_, '_> {
    /// Looks for clashes of accesses to a block's memory with the open ones, then adds them.
    pub(super) fn touch(
        &mut self,
        g: usize,
        rank: usize,
        touches: &Rc<Touches>,
        side: Side,
        op: Option<(u32, Counter)>,
    ) {
        let product = op.is_some_and(|(_, counter)| counter == Counter::Wgmma);
        for r in &touches.registers {
            self.check_register(g, r, side, product);
        }
        for touch in &touches.shared {
            self.check_proxy(rank, touch, side, op);
        }
        let unseen = self.inside.insert((Rc::as_ptr(touches) as usize, g));
        for (at, touch) in touches.shared.iter().enumerate() {
            self.check_shared((g, rank), touch, side, op);
            if op.is_none() && unseen {
                self.check_inside(g, &touches.shared[at..], side);
            }
            self.check_content((g, rank), touch, side);
        }
        let (clock, time, at) = (self.groups[g].clock, self.moment, self.groups[g].at);
        let counted = self.machine.shared.counter.is_some();
        for touch in &touches.shared {
            let list = self.open.entry((rank, touch.root)).or_default();
            let mut under = self.groups[g].under.clone();
            // What comes after the newer one comes after the older one too.
            if op.is_none() {
                list.retain(|o| {
                    let known = o.done.is_some() || o.op.is_none();
                    let older = known && o.group == g && o.touch.repeats(touch);
                    if older {
                        // From now on this one stands for both.
                        under = either(&under, &o.under);
                    }
                    !older
                });
            }
            list.push(Open {
                touch: touch.clone(),
                group: g,
                moment: side.moment,
                at,
                clock,
                op,
                // Waves of a block share a cache that keeps the order of what they do to tensors.
                done: (op.is_none() && (!counted || touch.tensor)).then_some(clock),
                bulk: None,
                time,
                at_barrier: None,
                under,
                partly: Vec::new(),
            });
        }
    }

    /// Whether what a read means is still there: another buffer may lie over it.
    fn check_content(&mut self, (g, rank): (usize, usize), touch: &Touch, side: Side) {
        let under = self.groups[g].under.clone();
        if touch.write {
            let side = Side {
                stmt: touch.stmt,
                ..side
            };
            self.aliases[rank].write(touch, side, &under);
            return;
        }
        for gone in self.aliases[rank].gone(touch) {
            if self.places.covered(touch.set, &gone.written(&under)) != Some(false) {
                continue;
            }
            let second = Side {
                stmt: touch.stmt,
                ..side
            };
            let memory = Memory {
                root: Some(touch.root),
                slot: touch.slot,
                over: Some(gone.over),
            };
            let kind = HazardKind::Overwritten;
            self.clash(kind, gone.by, second, memory, Remedy::Apart);
        }
    }

    fn check_shared(
        &mut self,
        (g, rank): (usize, usize),
        touch: &Touch,
        side: Side,
        op: Option<(u32, Counter)>,
    ) {
        let in_order = |op: Option<(u32, Counter)>| match op {
            None => self.machine.shared.counter.is_some(),
            Some((_, counter)) => counter == Counter::Lgkmcnt,
        };
        let others = self.aliases[rank].others(touch.root);
        let lists = std::iter::once(&touch.root).chain(others);
        let lists = lists.filter_map(|b| self.open.get(&(rank, *b)));
        let mut found = Vec::new();
        for open in lists.flatten() {
            if !(open.touch.write || touch.write) {
                continue;
            }
            let same = open.touch.root == touch.root;
            let apart = match (open.touch.slot, touch.slot) {
                _ if !same => !self.aliases[rank].meet(&open.touch, touch),
                (Some(a), Some(b)) => a != b,
                _ => false,
            };
            let atomic = same && open.touch.atomic && touch.atomic;
            if atomic || apart {
                continue;
            }
            let under = &self.groups[g].under;
            if contradict(&open.under, under) {
                continue;
            }
            let done = open.done_under(under);
            if open.is_known(&self.groups[g].knows, done.map(|(clock, _)| clock)) {
                continue;
            }
            // Different layouts: any threads may meet.
            let mut met = match same {
                true => self.places.meeting(open.touch.set, touch.set),
                false => Meeting::ANY,
            };
            if self.rank(open.group) != self.rank(g) {
                met.across = met.overlap;
            } else if self.is_one_instruction(open, (g, touch), side) {
                met.across &= met.warps;
            }
            let pair = 1u64 << (8 * self.in_block(open.group) + self.in_block(g));
            let remedy = match done {
                None if in_order(open.op) && in_order(op) && met.across & pair == 0 => continue,
                None if met.overlap & pair != 0 => self.remedy(open, g),
                None => continue,
                Some(_) if met.across & pair != 0 => match (open.op, open.at_barrier) {
                    (Some((_, counter)), Some(left)) => Remedy::WaitBeforeBarrier(counter, left),
                    _ => Remedy::Barrier,
                },
                Some((_, time))
                    if !self.machine.lockstep
                        && open.group == g
                        && met.in_warp >> self.in_block(g) & 1 == 1
                        && self.groups[g].warp_sync < time =>
                {
                    Remedy::WarpBarrier
                }
                Some(_) => continue,
            };
            let mut first = Side {
                stmt: open.touch.stmt,
                group: open.group,
                moment: open.moment,
            };
            let mut second = Side {
                stmt: touch.stmt,
                ..side
            };
            let (mut writes, mut remedy) = ((open.touch.write, touch.write), remedy);
            if open.at > self.groups[g].at {
                // The other group is ahead: in the program its access comes later.
                (first, second) = (second, first);
                writes = (writes.1, writes.0);
                remedy = Remedy::Barrier;
            }
            let kind = match writes {
                (true, false) => HazardKind::ReadAfterWrite,
                (false, _) => HazardKind::WriteAfterRead,
                (true, true) => HazardKind::WriteAfterWrite,
            };
            let memory = Memory {
                root: Some(touch.root),
                slot: match same {
                    true => open.touch.slot.or(touch.slot),
                    false => touch.slot,
                },
                over: (!same).then_some(open.touch.root),
            };
            found.push((kind, first, second, memory, remedy));
        }
        for (kind, first, second, memory, remedy) in found {
            self.clash(kind, first, second, memory, remedy);
        }
    }

    /// Whether lanes of one warp that are in two groups do it together.
    fn is_one_instruction(&self, open: &Open, (g, touch): (usize, &Touch), side: Side) -> bool {
        let stand = |group: usize, moment: u32| self.traces[group].moments.get(moment as usize);
        open.group != g
            && open.touch.stmt == touch.stmt
            && open.op.is_none()
            && self.places.by_warp(touch.set)
            && stand(open.group, open.moment) == stand(g, side.moment)
    }

    /// What a wait for an operation that is under way would have to say.
    fn remedy(&self, open: &Open, g: usize) -> Remedy {
        if open.bulk.is_some() {
            return Remedy::AwaitLoad;
        }
        let Some((op, counter)) = open.op else {
            let passed = self.groups[open.group].clock > open.clock;
            return match passed {
                true => Remedy::WaitBeforeBarrier(Counter::Lgkmcnt, 0),
                false => Remedy::Barrier,
            };
        };
        let queue = &self.groups[open.group].queue;
        let Some(at) = queue.iter().position(|p| p.op == op) else {
            return Remedy::Barrier;
        };
        // Where groups run a barrier apart, what holds for this one must hold for the lagging one
        // too, which has passed one barrier fewer.
        let apart = self.groups.len() > 1 && open.group == g;
        match queue[at].at_barrier[usize::from(apart)] {
            Some(left) if apart => Remedy::WaitTwoBarriersBefore(counter, left),
            Some(left) => Remedy::WaitBeforeBarrier(counter, left),
            None => Remedy::WaitAndBarrier(counter, self.groups[open.group].younger(at, &[])),
        }
    }

    /// Accesses of one unit: no thread waits for another between them.
    fn check_inside(&mut self, g: usize, touches: &[Touch], side: Side) {
        let Some((a, others)) = touches.split_first() else {
            return;
        };
        let rank = self.rank(g);
        let g = self.in_block(g);
        let pair = 1u64 << (9 * g);
        let strict = !self.machine.lockstep;
        // Points of a tensor that a parallel loop writes twice are its author's affair.
        if a.write && !a.atomic && !a.tensor {
            let met = self.places.meeting_itself(a.set);
            self.inside(
                a,
                a,
                side,
                met.across & pair != 0,
                strict && met.in_warp >> g & 1 == 1,
            );
        }
        for b in others {
            if !(a.write || b.write) || a.excludes(b) {
                continue;
            }
            if a.root != b.root {
                // Threads are in no order, and each may be anywhere.
                if self.aliases[rank].meet(a, b) {
                    self.inside(a, b, side, true, false);
                }
                continue;
            }
            let apart = matches!((a.slot, b.slot), (Some(x), Some(y)) if x != y);
            if (a.atomic && b.atomic) || apart {
                continue;
            }
            let met = self.places.meeting(a.set, b.set);
            let across = met.across & pair != 0;
            let in_warp = strict && met.in_warp >> g & 1 == 1;
            // Code that speaks of threads and data may know what it does; that is not proved then.
            let certain = self.places.is_certain(a.set) && self.places.is_certain(b.set);
            if a.tensor && !certain && (across || in_warp) {
                self.places.unknown.push(a.root);
                continue;
            }
            self.inside(a, b, side, across, in_warp);
        }
    }

    fn inside(&mut self, a: &Touch, b: &Touch, side: Side, across: bool, in_warp: bool) {
        if !across && !in_warp {
            return;
        }
        let kind = match (a.write, b.write) {
            (true, true) => HazardKind::WriteAfterWrite,
            (true, false) => HazardKind::ReadAfterWrite,
            (false, _) => HazardKind::WriteAfterRead,
        };
        let remedy = if across {
            Remedy::Barrier
        } else {
            Remedy::WarpBarrier
        };
        let (first, second) = (
            Side {
                stmt: a.stmt,
                ..side
            },
            Side {
                stmt: b.stmt,
                ..side
            },
        );
        let memory = Memory {
            root: Some(a.root),
            slot: a.slot,
            over: (a.root != b.root).then_some(b.root),
        };
        self.clash(kind, first, second, memory, remedy);
    }

    /// A read through the async proxy sees what it was shown, and a write through it comes after
    /// that; what others write it is yet to see.
    fn check_proxy(&mut self, rank: usize, touch: &Touch, side: Side, op: Option<(u32, Counter)>) {
        match op {
            None => self.proxies[rank].wrote(touch, side),
            Some((_, Counter::Wgmma | Counter::Mbarrier | Counter::TmaStore)) => {
                let Some(first) = self.proxies[rank].unseen(touch) else {
                    return;
                };
                let second = Side {
                    stmt: touch.stmt,
                    ..side
                };
                let memory = Memory {
                    root: Some(touch.root),
                    slot: touch.slot,
                    over: None,
                };
                let remedy = Remedy::Fence(FenceKind::AsyncProxy);
                self.clash(HazardKind::MissingFence, first, second, memory, remedy);
            }
            // Written when it is waited for.
            Some(_) => {}
        }
    }

    fn check_register(&mut self, g: usize, touch: &RegisterTouch, side: Side, product: bool) {
        let memory = Memory {
            root: Some(touch.root),
            slot: touch.slot,
            over: None,
        };
        let second = Side {
            stmt: touch.stmt,
            ..side
        };
        if !product {
            self.groups[g].fenced.touched(touch);
        } else if self.groups[g].fenced.lacks(touch, &self.groups[g].under) {
            let remedy = Remedy::Fence(FenceKind::Wgmma);
            self.clash(HazardKind::MissingFence, second, second, memory, remedy);
        }
        let (queue, under) = (&self.groups[g].queue, &self.groups[g].under);
        let found = queue.iter().position(|p| {
            let meets = |r: &RegisterTouch| {
                // Products that add to the same registers are in order.
                let in_order = product && p.counter == Counter::Wgmma && r.write && touch.write;
                r.meets(touch) && (r.write || touch.write) && !in_order
            };
            p.registers.iter().any(meets) && p.may_meet(under)
        });
        let Some(at) = found else { return };
        let pending = &queue[at];
        let first = Side {
            stmt: pending.stmt,
            group: g,
            moment: pending.moment,
        };
        let remedy = Remedy::Wait(pending.counter, self.groups[g].younger(at, under));
        let kind = HazardKind::RegisterBeforeWait;
        self.clash(kind, first, second, memory, remedy);
    }
}
