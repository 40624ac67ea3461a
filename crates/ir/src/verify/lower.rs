//! Micro-ops and device operations.
//!
//! - *loop, device* `micro-scope`, `micro-slot`, `micro-count`, `micro-otherwise`, `micro-bulk`
//! - `wait-range`, `commit-counter`, `barrier-named`, `priority-range`, `iteration-type`

use crate::buffer::Scope;
use crate::device_op::{BarrierKind, DeviceOp};
use crate::expr::{Expr, ExprKind};
use crate::func::{Level, VarKind};
use crate::micro_op::{Access, Inst, MicroKind, MicroOp};
use crate::target::NAMED_BARRIERS;
use crate::verify::Verifier;

impl<'a> Verifier<'a> {
    pub(super) fn micro_op(&mut self, op: &'a MicroOp) {
        if self.tile_level() {
            self.fail("level", "there are no micro-ops at tile level");
        }
        use Scope::{Fragment, Global, Local, Shared, Tmem};
        let registers: &[Scope] = &[Fragment, Local];
        let (from, to): (&[Scope], &[Scope]) = match op.kind {
            MicroKind::G2s | MicroKind::TmaLoad => (&[Global], &[Shared]),
            MicroKind::G2r => (&[Global], registers),
            MicroKind::S2r => (&[Shared], registers),
            MicroKind::Mma => (&[Fragment, Local, Shared, Tmem], &[Fragment, Local, Tmem]),
            MicroKind::R2s => (registers, &[Shared]),
            MicroKind::R2g => (registers, &[Global]),
            MicroKind::TmaStore => (&[Shared], &[Global]),
        };
        let wanted = match (op.kind, op.inst) {
            (MicroKind::Mma, Inst::Mma(inst)) => inst.sources(),
            (MicroKind::Mma, _) => 2,
            _ => 1,
        };
        if op.sources.len() != wanted {
            let message = format!("{} reads {wanted} regions", op.kind.name());
            self.fail("micro-count", message);
        }
        if op.width == 0 || op.axes.iter().any(|(_, extent)| *extent == 0) {
            self.fail("micro-count", "a micro-op of no instructions or elements");
        }
        let moves = match op.kind {
            MicroKind::G2r | MicroKind::S2r => op.inst == Inst::Load,
            MicroKind::R2s | MicroKind::R2g => op.inst == Inst::Store,
            _ => false,
        };
        if op.apart == 0 || op.apart > 1 && !moves {
            let message =
                "elements stand apart in the registers of plain loads and stores, by one or more";
            self.fail("micro-count", message);
        }
        if op.turns && op.axes.len() < 2 {
            self.fail("micro-count", "rows that turn round need two axes");
        }
        if matches!(op.inst, Inst::GroupMma { fresh: true, .. }) && op.axes.is_empty() {
            self.fail("micro-count", "a fresh sum has a first step");
        }
        self.bulk_copy(op);
        let since = self.open();
        for (var, _) in &op.axes {
            self.bind_var(*var, VarKind::Loop);
        }
        for source in &op.sources {
            self.access(source, from, "the source");
        }
        self.access(&op.dest, to, "the destination");
        if let Some(pred) = &op.pred {
            self.condition(pred);
        }
        if let Some(otherwise) = &op.otherwise {
            let dtype = self
                .func
                .buffers
                .get(op.dest.region.buffer)
                .map(|b| b.dtype);
            let dtype = dtype.unwrap_or(otherwise.dtype());
            self.value_of(otherwise, dtype, "micro-otherwise", "the value instead");
        }
        self.close(since);
    }

    /// Bulk copies are the copy engine's, and it has a box of every dimension.
    fn bulk_copy(&mut self, op: &'a MicroOp) {
        let bulk = matches!(op.kind, MicroKind::TmaLoad | MicroKind::TmaStore);
        let Inst::Tma(tile) = op.inst else {
            if bulk || op.arrives.is_some() {
                self.fail("micro-bulk", "what bulk copies have is the copy engine's");
            }
            return;
        };
        if !bulk {
            self.fail("micro-bulk", "the copy engine does bulk copies alone");
            return;
        }
        if (op.kind == MicroKind::TmaLoad) != op.arrives.is_some() {
            let message = "an arrival barrier hears of a bulk load, and of no other copy";
            self.fail("micro-bulk", message);
        }
        if let Some(arrival) = &op.arrives {
            self.barrier_operand(arrival.barrier, &arrival.index);
            self.blocks_of_cluster(arrival.multicast);
        }
        let (tensor, shared) = match (&op.sources[..], op.kind) {
            ([source], MicroKind::TmaLoad) => (source, &op.dest),
            ([source], _) => (&op.dest, source),
            _ => return,
        };
        let ranks = [tensor, shared].map(|a| a.region.dims.len());
        if tile.extents().len() != ranks[0] || tile.in_shared(ranks[1]).is_none() {
            let message = format!(
                "a box of {tile} between {} and {} dimensions",
                ranks[0], ranks[1]
            );
            self.fail("micro-bulk", message);
        }
    }

    fn access(&mut self, access: &'a Access, scopes: &[Scope], what: &str) {
        if let Some(index) = &access.slot {
            self.integer(index, "micro-slot", "the slot");
        }
        for index in &access.at {
            self.integer(index, "index-type", "an index");
        }
        if !self.region(&access.region, true) {
            return;
        }
        self.in_scope(&access.region, scopes, "micro-scope", what);
        if access.at.len() != access.region.dims.len() {
            let message = format!(
                "{} indices for {} dimensions",
                access.at.len(),
                access.region.dims.len()
            );
            self.fail("index-count", message);
        }
        let versions = self.data(&access.region).versions;
        let name = self.buffer_name(access.region.buffer);
        match &access.slot {
            None if versions > 1 => {
                let message = format!("`{name}` has {versions} versions, and none is named");
                self.fail("micro-slot", message);
            }
            Some(index) => {
                if let Some(i) = index.as_int()
                    && !(0..versions as i128).contains(&i)
                {
                    let message = format!("slot {i} of `{name}`, which has {versions}");
                    self.fail("micro-slot", message);
                }
            }
            None => {}
        }
    }

    fn prefetch(&mut self, address: &'a Expr, bytes: u32) {
        self.expr(address);
        let global = match address.kind() {
            ExprKind::AddressOf { buffer, .. } => self
                .func
                .buffers
                .get(*buffer)
                .is_some_and(|b| b.scope == Scope::Global),
            _ => false,
        };
        if !global || bytes == 0 || !bytes.is_multiple_of(16) {
            self.fail(
                "prefetch",
                "what is fetched ahead is a multiple of 16 bytes of a tensor",
            );
        }
    }

    pub(super) fn device_op(&mut self, op: &'a DeviceOp) {
        // Commits, waits and fences are also what users of split-phase operations write; the
        // barriers of a pipelined loop are derived before those of the rest.
        let allowed = match op {
            DeviceOp::Wait { .. }
            | DeviceOp::WaitRead { .. }
            | DeviceOp::Commit(_)
            | DeviceOp::Prefetch { .. }
            | DeviceOp::Fence(_) => true,
            DeviceOp::Barrier(BarrierKind::Block | BarrierKind::Bare | BarrierKind::Cond(_))
            | DeviceOp::SetPrio(_)
            | DeviceOp::SchedBarrier(_)
            | DeviceOp::Iteration(_) => !self.tile_level(),
            _ => self.func.level == Level::Device,
        };
        if !allowed {
            self.fail("level", "this operation belongs to device level");
        }
        match op {
            DeviceOp::Wait { counter, at_most } => {
                if let Some(most) = counter.most_in_flight()
                    && *at_most > most
                {
                    let message = format!("{} counts to {most}", counter.name());
                    self.fail("wait-range", message);
                }
            }
            DeviceOp::Commit(counter) => {
                if !counter.counts_groups() {
                    let message = format!("{} has no groups to commit", counter.name());
                    self.fail("commit-counter", message);
                }
            }
            DeviceOp::Barrier(BarrierKind::Named { id, count }) => {
                if *id >= NAMED_BARRIERS || !(1..=self.num_threads).contains(count) {
                    self.fail("barrier-named", format!("barrier {id} of {count} threads"));
                }
            }
            DeviceOp::Barrier(BarrierKind::Cond(cond)) => self.condition(cond),
            DeviceOp::Prefetch { address, bytes } => self.prefetch(address, *bytes),
            DeviceOp::Iteration(Some(iteration)) => {
                self.integer(iteration, "iteration-type", "an iteration");
            }
            DeviceOp::SetPrio(priority) => {
                if *priority > 3 {
                    self.fail(
                        "priority-range",
                        format!("a priority of {priority}, past 3"),
                    );
                }
            }
            DeviceOp::BarrierInit {
                barrier,
                index,
                count,
            } => {
                self.barrier_operand(*barrier, index);
                if *count == 0 {
                    self.fail(
                        "barrier-named",
                        "a barrier without arrivals never completes",
                    );
                }
            }
            DeviceOp::Barrier(BarrierKind::Block | BarrierKind::Bare)
            | DeviceOp::WaitRead { .. }
            | DeviceOp::Fence(_)
            | DeviceOp::SchedBarrier(_)
            | DeviceOp::SchedGroupBarrier { .. }
            | DeviceOp::Iteration(None) => {}
        }
    }
}
