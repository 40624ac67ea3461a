//! Where a group meets others, waits for what is under way, or says that something is done.

use std::rc::Rc;

use tilewright_ir::{
    Arrival, ArriveAt, BarrierKind, Buffer, Counter, DeviceOp, Expr, FenceKind, MicroOp, Stmt,
    ThreadOp, TmaBox,
};

use super::{Stop, Tracer, undecided};
use crate::hazard::event::{Blocks, EventKind};
use crate::hazard::touch::{Touch, Touches};

impl<'f> Tracer<'f, '_> {
    pub(super) fn device(&mut self, stmt: &'f Stmt, op: &'f DeviceOp) -> Result<(), Stop> {
        match op {
            DeviceOp::Wait { counter, at_most } => {
                self.emit(stmt, EventKind::Wait(*counter, *at_most))
            }
            DeviceOp::WaitRead { at_most } => self.emit(stmt, EventKind::WaitRead(*at_most)),
            DeviceOp::Commit(counter) => self.emit(stmt, EventKind::Commit(*counter)),
            DeviceOp::Barrier(kind) => match kind {
                BarrierKind::Block => self.barrier(stmt, false),
                BarrierKind::Bare => self.barrier(stmt, true),
                BarrierKind::Named { id, count } => self.named(stmt, *id, *count),
                BarrierKind::Cond(_) => {
                    if self.scan.group_takes(stmt, self.group) == Some(true) {
                        return self.barrier(stmt, true);
                    }
                    // Keeps the places of events the same in all groups.
                    self.emit(stmt, EventKind::Nothing)
                }
            },
            DeviceOp::BarrierInit { .. } => Err(undecided(
                stmt.span,
                "arrival barriers initialised in the program are not modelled",
            )),
            DeviceOp::Fence(kind @ (FenceKind::AsyncProxy | FenceKind::Wgmma)) => {
                self.emit(stmt, EventKind::Fence(*kind))
            }
            DeviceOp::Fence(_)
            | DeviceOp::SetPrio(_)
            | DeviceOp::SchedBarrier(_)
            | DeviceOp::SchedGroupBarrier { .. }
            | DeviceOp::Prefetch { .. }
            | DeviceOp::Iteration(_) => Ok(()),
        }
    }

    fn barrier(&mut self, stmt: &Stmt, bare: bool) -> Result<(), Stop> {
        let drains = self.machine.barrier.drains && !bare;
        self.emit(stmt, EventKind::Barrier { bare, drains })
    }

    fn named(&mut self, stmt: &Stmt, id: u32, count: u32) -> Result<(), Stop> {
        self.emit(stmt, EventKind::Named { id, count })
    }

    pub(super) fn thread(&mut self, stmt: &'f Stmt, op: &'f ThreadOp) -> Result<(), Stop> {
        match op {
            ThreadOp::SyncThreads { named: None } | ThreadOp::SyncGrid => self.barrier(stmt, false),
            ThreadOp::SyncThreads {
                named: Some((id, count)),
            } => self.named(stmt, *id, *count),
            ThreadOp::Vote { kind, .. } if kind.is_of_block() => self.barrier(stmt, false),
            ThreadOp::AllReduce { .. } => {
                self.barrier(stmt, false)?;
                let touches = self.units.unit(stmt, &self.env);
                self.emit(stmt, EventKind::Touch(touches))
            }
            ThreadOp::SyncCluster => self.emit(stmt, EventKind::Cluster),
            ThreadOp::ClusterArrive => self.emit(stmt, EventKind::ClusterArrive),
            ThreadOp::ClusterWait => self.emit(stmt, EventKind::ClusterAwait),
            ThreadOp::SyncWarp => self.emit(stmt, EventKind::SyncWarp),
            ThreadOp::BarrierArrive {
                barrier,
                index,
                warp,
                at,
            } => {
                let barrier = self.mbarrier(stmt, *barrier, index)?;
                let at = self.blocks(stmt, at)?;
                let count = match warp {
                    true => self.scan.warps_in(self.group),
                    false => self.scan.threads_in(self.group),
                };
                let kind = EventKind::Arrive { barrier, count, at };
                self.emit(stmt, kind)
            }
            ThreadOp::BarrierWait {
                barrier,
                index,
                parity,
            } => {
                let barrier = self.mbarrier(stmt, *barrier, index)?;
                let Some(parity) = self.env.value(parity) else {
                    return Err(undecided(stmt.span, "the parity waited for is not known"));
                };
                self.emit(stmt, EventKind::Await { barrier, parity })
            }
            ThreadOp::BarrierExpect {
                barrier,
                index,
                bytes,
                arrive,
            } => {
                let barrier = self.mbarrier(stmt, *barrier, index)?;
                let Some(bytes) = self.env.value(bytes) else {
                    return Err(undecided(stmt.span, "the bytes announced are not known"));
                };
                let count = self.scan.threads_in(self.group);
                let bytes = bytes.saturating_mul(count.into());
                self.emit(stmt, EventKind::Expect { barrier, bytes })?;
                let arrival = EventKind::Arrive {
                    barrier,
                    count,
                    at: Blocks::Own,
                };
                match arrive {
                    true => self.emit(stmt, arrival),
                    false => Ok(()),
                }
            }
            _ => Ok(()),
        }
    }

    /// Each thread of the group has a box loaded for each point.
    pub(super) fn bulk_load(
        &mut self,
        stmt: &'f Stmt,
        m: &'f MicroOp,
        tile: TmaBox,
        arrival: &'f Arrival,
    ) -> Result<(), Stop> {
        if !self.is_issued(stmt, m)? {
            return Ok(());
        }
        let barrier = self.mbarrier(stmt, arrival.barrier, &arrival.index)?;
        let dtype = self.scan.func.buffers[m.dest.region.buffer].dtype;
        let bits = i64::from(tile.elements()) * i64::from(dtype.bits());
        let boxes = i64::from(m.count()) * i64::from(self.scan.threads_in(self.group));
        let kind = EventKind::Bulk {
            touches: self.units.micro(stmt, &self.env),
            barrier,
            bytes: boxes * bits / 8,
            twice: self.units.boxes_meet(m, &tile, &self.env),
            to: arrival.multicast.map_or(Blocks::Own, Blocks::Some),
        };
        self.emit(stmt, kind)
    }

    /// Each thread of the group has a box stored for each point. What is read and what is written
    /// are waited for apart.
    pub(super) fn bulk_store(
        &mut self,
        stmt: &'f Stmt,
        m: &'f MicroOp,
        counter: Counter,
    ) -> Result<(), Stop> {
        if counter != Counter::TmaStore {
            return Err(undecided(stmt.span, "a bulk copy that nothing hears of"));
        }
        if !self.is_issued(stmt, m)? {
            return Ok(());
        }
        let touches = self.units.micro(stmt, &self.env);
        let (writes, reads): (Vec<Touch>, Vec<Touch>) = touches
            .shared
            .iter()
            .cloned()
            .partition(|touch| touch.write);
        for shared in [reads, writes] {
            if shared.is_empty() {
                continue;
            }
            let touches = Rc::new(Touches {
                shared,
                registers: Vec::new(),
            });
            let kind = EventKind::Issue {
                touches,
                counter,
                count: m.count(),
                certain: true,
            };
            self.emit(stmt, kind)?;
        }
        Ok(())
    }

    /// Whether a bulk copy is issued here.
    fn is_issued(&mut self, stmt: &Stmt, m: &MicroOp) -> Result<bool, Stop> {
        let decided = match &m.pred {
            Some(pred) => self.units.decides(pred, &self.env),
            None => Some(true),
        };
        decided.ok_or_else(|| undecided(stmt.span, "a bulk copy that may not be issued"))
    }

    /// Whose barrier is meant.
    fn blocks(&self, stmt: &Stmt, at: &ArriveAt) -> Result<Blocks, Stop> {
        let rank = match at {
            ArriveAt::Own => return Ok(Blocks::Own),
            ArriveAt::All => return Ok(Blocks::All),
            ArriveAt::Block(rank) => self.env.value(rank),
        };
        let rank = rank.and_then(|rank| u32::try_from(rank).ok());
        match rank.filter(|rank| (*rank as usize) < self.scan.ranks) {
            Some(rank) => Ok(Blocks::Some(1u16.checked_shl(rank).unwrap_or(0))),
            None => Err(undecided(
                stmt.span,
                "which block of the cluster is meant is not known",
            )),
        }
    }

    fn mbarrier(&self, stmt: &Stmt, barrier: Buffer, index: &Expr) -> Result<(Buffer, i64), Stop> {
        match self.env.value(index) {
            Some(index) => Ok((self.scan.root(barrier), index)),
            None => Err(undecided(
                stmt.span,
                "which arrival barrier is meant is not known",
            )),
        }
    }
}
