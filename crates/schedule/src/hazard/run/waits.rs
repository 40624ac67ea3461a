//! What is under way, and what waits make of it.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::Counter;

use super::Run;
use crate::hazard::clash::Side;
use crate::hazard::conditions::{Under, either};
use crate::hazard::state::Pending;
use crate::hazard::touch::{Touch, Touches};

impl Run<'_, '_> {
    pub(super) fn issue(
        &mut self,
        g: usize,
        touches: &Rc<Touches>,
        side: Side,
        counter: Counter,
        count: u32,
        certain: bool,
    ) {
        self.next_op += 1;
        let op = self.next_op;
        self.touch(g, self.rank(g), touches, side, Some((op, counter)));
        // A product reads registers while it is in flight; a store has read them when it is issued.
        let reads = counter == Counter::Wgmma;
        let registers = touches.registers.iter();
        let registers = registers.filter(|r| r.write || reads).cloned();
        let under = self.groups[g].under.clone();
        if !certain && under.is_empty() {
            self.supersede(g, touches);
        }
        self.groups[g].queue.push(Pending {
            op,
            stmt: side.stmt,
            moment: side.moment,
            counter,
            count,
            certain,
            group: None,
            at_barrier: [None; 2],
            registers: registers.collect(),
            touches: touches.clone(),
            under,
            partly: Vec::new(),
        });
        // A counter that is full holds the wave back. This is so for operations that come with
        // enough others, whatever the condition here: lanes may disagree on that.
        if let Some(most) = counter.most_in_flight()
            && (counter.counts_groups() || self.groups[g].under_way(counter) > most)
        {
            self.wait(g, counter, most, &Under::default());
        }
    }

    /// Forgets earlier issues of an operation that no count relies on and that is issued again:
    /// they are complete no later, so that whatever meets one of them meets the new one. Else a
    /// loop that never waits would have ever more under way.
    fn supersede(&mut self, g: usize, touches: &Rc<Touches>) {
        let is_same = |p: &Pending| {
            let always = p.under.is_empty() && p.partly.is_empty();
            !p.certain && always && Rc::ptr_eq(&p.touches, touches)
        };
        let queue = &mut self.groups[g].queue;
        let old: Vec<u32> = queue.iter().filter(|p| is_same(p)).map(|p| p.op).collect();
        if old.is_empty() {
            return;
        }
        queue.retain(|p| !old.contains(&p.op));
        for list in self.open.values_mut() {
            list.retain(|o| o.op.is_none_or(|(op, _)| !old.contains(&op)));
        }
    }

    /// A wait under a condition. What is complete in some cases only stays under way.
    pub(super) fn wait(&mut self, g: usize, counter: Counter, at_most: u32, under: &Under) {
        let (done, partly) = self.groups[g].waited(counter, at_most, under, |_| true);
        self.waited(g, under, &done, &partly);
        if (counter, at_most) == (Counter::Lgkmcnt, 0) {
            self.settle(g, under);
        }
    }

    /// A wait for what bulk stores read.
    pub(super) fn wait_read(&mut self, g: usize, at_most: u32, under: &Under) {
        let counter = Counter::TmaStore;
        let (done, partly) =
            self.groups[g].waited(counter, at_most, under, Pending::reads_to_store);
        self.waited(g, under, &done, &partly);
    }

    fn waited(&mut self, g: usize, under: &Under, done: &[u32], partly: &[u32]) {
        if !partly.is_empty() {
            self.complete_partly(g, under, partly);
        }
        if !done.is_empty() {
            self.complete(g, |op| done.contains(&op));
        }
    }

    /// Under a condition, what the group has done without a counter is complete.
    pub(super) fn settle(&mut self, g: usize, under: &Under) {
        let (clock, time) = (self.groups[g].clock, self.moment);
        for open in self.open.values_mut().flatten() {
            if open.group == g && open.op.is_none() && open.done.is_none() {
                open.settle(under, clock, time);
            }
        }
    }

    /// Under a condition these operations are complete.
    fn complete_partly(&mut self, g: usize, under: &Under, ops: &[u32]) {
        let (clock, time) = (self.groups[g].clock, self.moment);
        for open in self.open.values_mut().flatten() {
            if open.op.is_some_and(|(op, _)| ops.contains(&op)) {
                open.complete_partly(under, clock, time);
            }
        }
    }

    pub(super) fn complete(&mut self, g: usize, which: impl Fn(u32) -> bool) {
        let (clock, time) = (self.groups[g].clock, self.moment);
        let mut at_barrier = FxHashMap::default();
        self.groups[g].queue.retain(|p| {
            let done = which(p.op);
            if done {
                at_barrier.insert(p.op, p.at_barrier[0]);
            }
            !done
        });
        if at_barrier.is_empty() {
            return;
        }
        let rank = self.rank(g);
        for list in self.open.values_mut() {
            let mut newly: Vec<(Touch, Under)> = Vec::new();
            for open in list.iter_mut() {
                if let Some((op, _)) = open.op
                    && let Some(left) = at_barrier.get(&op)
                {
                    open.done = Some(clock);
                    open.time = time;
                    open.at_barrier = *left;
                    open.partly.clear();
                    let by = Side {
                        stmt: open.touch.stmt,
                        group: g,
                        moment: open.moment,
                    };
                    self.proxies[rank].wrote(&open.touch, by);
                    newly.push((open.touch.clone(), open.under.clone()));
                }
            }
            if newly.is_empty() {
                continue;
            }
            // Older ones of the same statement at the same places say nothing more: the newer one
            // stands for them.
            list.retain(|o| {
                let older = o.done.is_some() && o.time < time && o.group == g;
                let mut repeated = false;
                for (touch, under) in newly.iter_mut().filter(|_| older) {
                    if touch.repeats(&o.touch) {
                        *under = either(under, &o.under);
                        repeated = true;
                    }
                }
                !repeated
            });
            let mut newly = newly.into_iter();
            for open in list.iter_mut() {
                if open.op.is_some_and(|(op, _)| at_barrier.contains_key(&op))
                    && let Some((_, under)) = newly.next()
                {
                    open.under = under;
                }
            }
        }
    }

    /// Remembers what a wait before this barrier would have had to say.
    pub(super) fn note_barrier(&mut self, g: usize) {
        let rank = self.rank(g);
        self.proxies[rank].hand_over(g);
        for at in 0..self.groups[g].queue.len() {
            let left = self.groups[g].younger(at, &[]);
            let [latest, _] = self.groups[g].queue[at].at_barrier;
            self.groups[g].queue[at].at_barrier = [Some(left), latest];
        }
    }
}
