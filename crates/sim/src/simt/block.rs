//! One block: warps take turns in a seeded order, and meet at barriers. Blocks of a cluster that
//! reach each other's memory run as one, each with its own part of shared memory and its own barriers.

use super::bulk::Bulk;
use super::device::DeviceCode;
use super::env::Env;
use super::global_shadow::GlobalShadow;
use super::program::{Op, Program};
use super::report::{Collector, Finding, FindingKind};
use super::shared::Shared;
use super::step::Pause;
use super::sync::{Barriers, Named};
use super::warp::{State, Warp, join};
use super::{Interleaving, SimtOptions};
use crate::rng::Rng;
use crate::simt::memory::Memory;
use tilewright_ir::Target;

/// A block that has been started.
pub(super) struct BlockRun<'a> {
    pub env: Env<'a>,
    pub(super) warps: Vec<Warp>,
    rng: Rng,
    interleaving: Interleaving,
    step_limit: u64,
    failed: bool,
}

/// What came of a turn.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Turn {
    Done,
    /// All warps wait for the other blocks.
    Grid,
    /// Its share of steps is used up.
    Fuel,
}

/// Instructions a warp does before another one has its turn, for warps that wait for each other
/// in loops.
const FUEL: u64 = 10_000;

impl<'a> BlockRun<'a> {
    pub fn new(
        program: &'a Program,
        target: Target,
        opts: &SimtOptions<'_>,
        linear: u64,
        indices: &[Vec<u64>],
        globals: Memory<'a>,
    ) -> BlockRun<'a> {
        let machine = target.machine();
        let width = machine.warp_size;
        let in_block = program.num_threads().div_ceil(width as usize) as u32;
        let mut warps: Vec<Warp> = Vec::new();
        for (rank, index) in (0..).zip(indices) {
            let own = 0..in_block;
            warps.extend(own.map(|w| Warp::new(program, w, width, rank, index)));
        }
        let (blocks, count) = (indices.len(), warps.len());
        let mut env = Env {
            program,
            target,
            landing: opts.landing,
            globals,
            shared: Shared::new(program.shared_bytes * blocks, count)
                .with_owners(program.shared_overlaps)
                .with_lanes(!machine.lockstep)
                .with_proxies(program.bulk_copies || !program.group_registers.is_empty()),
            global_shadow: GlobalShadow::new(count),
            barriers: Barriers::new(&program.barriers.repeat(blocks), count),
            bulk: Bulk::default(),
            findings: Collector::of(opts),
            counts: vec![Default::default(); program.stmts.len()],
            prints: Vec::new(),
            blocks: indices.to_vec(),
            next_token: 0,
        };
        for warp in &mut warps {
            for op in &program.prelude {
                // The compiler puts nothing there that may have no result.
                if warp.regs.run(op, warp.all).is_err() {
                    env.report(warp, FindingKind::Undefined, None, || {
                        "an index without a value".to_string()
                    });
                }
            }
        }
        BlockRun {
            env,
            warps,
            rng: Rng::new(opts.seed ^ linear.wrapping_mul(0x9e37_79b9_7f4a_7c15)),
            interleaving: opts.interleaving,
            step_limit: opts.step_limit,
            failed: false,
        }
    }

    /// Runs the block until it is done, waits for other blocks, or `turns` warps had their turn.
    pub fn run(&mut self, turns: u64) -> Turn {
        for _ in 0..turns {
            if self.failed {
                return Turn::Done;
            }
            let ready: Vec<usize> = (0..self.warps.len())
                .filter(|&w| self.warps[w].state == State::Ready)
                .collect();
            if ready.is_empty() {
                if self.warps.iter().all(|w| w.state == State::Done) {
                    self.env.end_of_bulk(&self.warps);
                    return Turn::Done;
                }
                if self.leave_cluster_barrier() {
                    continue;
                }
                let at_grid = |w: &Warp| matches!(w.state, State::Grid | State::Done);
                if self.warps.iter().all(at_grid) {
                    return Turn::Grid;
                }
                if self.env.land_one(&mut self.rng) {
                    self.wake();
                    continue;
                }
                self.deadlock();
                return Turn::Done;
            }
            let chosen = ready[self.rng.int_in(0, ready.len() as i128 - 1) as usize];
            self.turn(chosen);
        }
        Turn::Fuel
    }

    /// Lets all warps go on behind a grid barrier.
    pub fn leave_grid_barrier(&mut self) {
        self.meet(State::Grid, None);
    }

    /// Opens the barrier of the cluster when every warp that has not ended waits there.
    fn leave_cluster_barrier(&mut self) -> bool {
        let waits = |w: &Warp| w.state == State::Cluster;
        let ended = |w: &Warp| w.state == State::Done;
        let Some(first) = self.warps.iter().position(waits) else {
            return false;
        };
        if !self.warps.iter().all(|w| waits(w) || ended(w)) {
            return false;
        }
        let missing = self.warps.iter().filter(|w| ended(w)).count();
        if missing > 0 {
            self.report_waiting(first, FindingKind::BarrierNotReached, |_| {
                format!("{missing} warps end without coming to this barrier of the cluster")
            });
        }
        self.meet(State::Cluster, None);
        true
    }

    /// All warps, or those of one block of the cluster, are ordered behind what all of them did, and
    /// those of a state go on.
    fn meet(&mut self, waiting: State, rank: Option<u32>) {
        let all = rank.is_none() || self.env.blocks.len() == 1;
        let own = |w: &Warp| all || Some(w.rank) == rank;
        let mut clock = vec![0; self.warps[0].clock.len()];
        for warp in self.warps.iter().filter(|w| own(w)) {
            join(&mut clock, &warp.clock);
        }
        for warp in self.warps.iter_mut().filter(|w| own(w)) {
            warp.clock.copy_from_slice(&clock);
            warp.tick();
            if warp.state == waiting {
                warp.state = State::Ready;
                warp.pc += 1;
            }
        }
        if all {
            self.env.all_ordered(&clock);
        } else {
            for warp in self.warps.iter().filter(|w| own(w)) {
                self.env.shared.sync_warp(warp.index);
            }
        }
    }

    /// Warps that wait for a phase look again where one completed.
    fn wake(&mut self) {
        if std::mem::take(&mut self.env.barriers.woken) {
            for warp in &mut self.warps {
                if warp.state == State::Mbarrier {
                    warp.state = State::Ready;
                }
            }
        }
    }

    /// Reports that the other blocks never come to a grid barrier.
    pub fn stuck_at_grid(&mut self) {
        self.deadlock();
    }

    fn turn(&mut self, w: usize) {
        let one_statement = self.interleaving == Interleaving::EveryStatement;
        let pause = self.env.run(&mut self.warps[w], FUEL, one_statement);
        match pause {
            Pause::Turn => {
                if self.warps[w].steps > self.step_limit {
                    let limit = self.step_limit;
                    self.env
                        .report(&self.warps[w], FindingKind::StepLimit, None, || {
                            format!("a warp did more than {limit} steps")
                        });
                    self.failed = true;
                }
            }
            Pause::Block => {
                self.check_converged(w);
                self.env.hand_over(w as u32);
                self.warps[w].state = State::Block;
                self.try_release(self.warps[w].rank);
            }
            Pause::Named { id, count } => {
                self.check_converged(w);
                self.env.hand_over(w as u32);
                self.arrive_named(w, id, count);
            }
            Pause::Mbarrier => self.warps[w].state = State::Mbarrier,
            Pause::Grid | Pause::Cluster => {
                self.check_converged(w);
                self.env.hand_over(w as u32);
                self.warps[w].state = match pause {
                    Pause::Grid => State::Grid,
                    _ => State::Cluster,
                };
            }
            Pause::Done => {
                self.warps[w].state = State::Done;
                self.try_release(self.warps[w].rank);
            }
            Pause::Failed => self.failed = true,
        }
        self.wake();
    }

    fn check_converged(&mut self, w: usize) {
        let warp = &self.warps[w];
        if !warp.converged() {
            let (here, all) = (warp.mask.count_ones(), warp.all.count_ones());
            self.env
                .report(warp, FindingKind::DivergentBarrier, None, || {
                    format!("only {here} of the warp's {all} threads come to this barrier")
                });
        }
    }

    /// Opens the barrier of a block when every warp of it that has not ended waits there.
    fn try_release(&mut self, rank: u32) {
        let own = |w: &&Warp| w.rank == rank;
        let waits = |w: &Warp| w.state == State::Block && w.rank == rank;
        let ended = |w: &Warp| w.state == State::Done;
        let mut members = self.warps.iter().filter(own);
        let Some(first) = self.warps.iter().position(waits) else {
            return;
        };
        if !members.all(|w| waits(w) || ended(w)) {
            return;
        }
        let missing = self.warps.iter().filter(own).filter(|w| ended(w)).count();
        if missing > 0 {
            self.report_waiting(first, FindingKind::BarrierNotReached, |_| {
                format!("{missing} warps end without coming to this barrier")
            });
        }
        self.check_same_place(first);
        self.collective(first);
        self.meet(State::Block, Some(rank));
    }

    /// A barrier of all threads must be one statement for all; bare ones need not be.
    fn check_same_place(&mut self, first: usize) {
        let bare = |w: &Warp| {
            matches!(
                self.env.program.ops[w.pc as usize],
                Op::Device(DeviceCode::Bare | DeviceCode::Cond(_))
            )
        };
        let Warp { pc, rank, .. } = self.warps[first];
        let waits = |w: &&Warp| w.state == State::Block && w.rank == rank;
        let waiting = || self.warps.iter().filter(waits);
        if waiting().all(|w| w.pc == pc) || waiting().any(bare) {
            return;
        }
        self.report_waiting(first, FindingKind::DivergentBarrier, |_| {
            "warps meet at different barriers".to_string()
        });
    }

    /// Reports something about all warps that wait.
    fn report_waiting(
        &mut self,
        first: usize,
        kind: FindingKind,
        message: impl FnOnce(&Self) -> String,
    ) {
        let env = &mut self.env;
        let stmt = env.stmt(&self.warps[first]);
        let waiting = |w: &&Warp| !matches!(w.state, State::Ready | State::Done);
        let others = self.warps.iter().filter(waiting);
        let other = others
            .clone()
            .map(|w| env.stmt(w))
            .find(|&s| s != stmt)
            .unwrap_or(stmt);
        if env.findings.known(kind, stmt, other) {
            return;
        }
        let others = others.filter(|w| w.index as usize != first);
        let others: Vec<_> = others.map(|w| env.place(w, None)).collect();
        let place = env.place(&self.warps[first], None);
        let finding = Finding {
            kind,
            message: message(self),
            place,
            others,
            count: 1,
        };
        self.env.findings.add(stmt, other, finding);
    }

    fn deadlock(&mut self) {
        let first = self
            .warps
            .iter()
            .position(|w| !matches!(w.state, State::Ready | State::Done));
        let Some(first) = first else { return };
        self.report_waiting(first, FindingKind::Deadlock, |run| {
            let mut parts = Vec::new();
            for warp in &run.warps {
                let what = match warp.state {
                    State::Ready | State::Done => continue,
                    State::Block => "the other warps at a barrier".to_string(),
                    State::Named(id) => {
                        let named = run.env.barriers.named.get(&(warp.rank, id));
                        let (arrived, needed) = named.map_or((0, 0), |n| (n.arrived, n.needed));
                        format!("barrier {id}, where {arrived} of {needed} threads are")
                    }
                    State::Mbarrier => "a phase of an arrival barrier".to_string(),
                    State::Cluster => "the other warps of its cluster".to_string(),
                    State::Grid => "the other blocks".to_string(),
                };
                parts.push(format!("warp {} waits for {what}", warp.index));
            }
            format!("nothing can go on: {}", parts.join(", "))
        });
        self.failed = true;
    }

    fn arrive_named(&mut self, w: usize, id: u32, count: u32) {
        let warp = &mut self.warps[w];
        let threads = warp.all.count_ones();
        let key = (warp.rank, id);
        let named = self.env.barriers.named.entry(key).or_default();
        if named.warps.is_empty() {
            named.needed = count;
        }
        let differs = named.needed != count;
        named.arrived += threads;
        named.warps.push(w as u32);
        warp.state = State::Named(id);
        let full = named.arrived >= named.needed;
        let over = named.arrived > named.needed;
        let needed = named.needed;
        if differs || over {
            self.env
                .report(&self.warps[w], FindingKind::BarrierMisuse, None, || {
                    if differs {
                        format!(
                            "barrier {id} is used for {count} threads here and {needed} elsewhere"
                        )
                    } else {
                        format!("more than {needed} threads come to barrier {id}")
                    }
                });
        }
        if !full {
            return;
        }
        let Named { warps: members, .. } = self.env.barriers.named.remove(&key).unwrap_or_default();
        let mut clock = vec![0; self.warps[w].clock.len()];
        for &m in &members {
            join(&mut clock, &self.warps[m as usize].clock);
        }
        for &m in &members {
            let warp = &mut self.warps[m as usize];
            warp.hear(&clock);
            warp.tick();
            warp.state = State::Ready;
            warp.pc += 1;
            self.env.shared.sync_warp(m);
        }
        if members.len() == self.warps.len() {
            self.env.all_ordered(&clock);
        }
    }
}
