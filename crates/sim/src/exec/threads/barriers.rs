//! Barriers: threads wait for each other.

use tilewright_ir::{ArriveAt, BarrierKind, Buffer, DeviceOp, Expr, Span, ThreadOp, thread_ops};

use super::{Code as Any, push, stray, varies};
use crate::barrier::{Counting, Mbarrier};
use crate::cluster::{Sent, What};
use crate::compile::expr;
use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::error::{Eval, Fault, RunError, codes};
use crate::exec::Exec;
use crate::exec::state::{Globals, Wait};
use crate::program::{Int, Space};

/// Named barriers of a block.
const MAX_BARRIERS: usize = 16;

#[derive(Clone, Debug)]
pub(super) enum Code {
    /// Barrier number and thread count; `None` counts the whole block.
    Sync {
        id: u32,
        count: Option<u32>,
    },
    SyncGrid,
    SyncCluster,
    ClusterArrive,
    ClusterWait,
    /// At the barrier of one block of the cluster, or of each.
    ArriveAt {
        barrier: BarrierRef,
        block: Option<Int>,
    },
    Arrive {
        barrier: BarrierRef,
        bytes: Option<Int>,
        arrive: bool,
    },
    Wait {
        barrier: BarrierRef,
        parity: Int,
    },
    SetCount {
        barrier: BarrierRef,
        count: u32,
    },
}

/// An element of a barrier buffer.
#[derive(Clone, Debug)]
pub(in crate::exec) struct BarrierRef {
    buffer: u32,
    index: Int,
}

pub(super) fn compile(b: &mut Builder<'_, '_>, op: &ThreadOp) -> Compiled<()> {
    let varying = varies(b, op);
    let code = match op {
        ThreadOp::SyncThreads { named } => Code::Sync {
            id: named.map_or(0, |(id, _)| id),
            count: named.map(|(_, count)| count),
        },
        // Threads of a warp run in lockstep here, so they are always in step.
        ThreadOp::SyncWarp => return Ok(()),
        ThreadOp::SyncGrid => {
            b.names.traffic.sync_grid = true;
            Code::SyncGrid
        }
        ThreadOp::SyncCluster => Code::SyncCluster,
        ThreadOp::ClusterArrive => Code::ClusterArrive,
        ThreadOp::ClusterWait => Code::ClusterWait,
        ThreadOp::BarrierArrive {
            warp: true, index, ..
        } => {
            let message = "the arrival of a whole warp: the evaluator knows threads alone";
            return Err(RunError::new(codes::UNSUPPORTED, index.span(), message));
        }
        ThreadOp::BarrierArrive {
            barrier,
            index,
            at: ArriveAt::Own,
            ..
        } => Code::Arrive {
            barrier: barrier_ref(b, *barrier, index)?,
            bytes: None,
            arrive: true,
        },
        ThreadOp::BarrierArrive {
            barrier, index, at, ..
        } => Code::ArriveAt {
            barrier: barrier_ref(b, *barrier, index)?,
            block: match at {
                ArriveAt::Block(rank) => Some(expr::int(b.names, rank, 0)?),
                ArriveAt::Own | ArriveAt::All => None,
            },
        },
        ThreadOp::BarrierWait {
            barrier,
            index,
            parity,
        } => Code::Wait {
            barrier: barrier_ref(b, *barrier, index)?,
            parity: expr::int(b.names, parity, 0)?,
        },
        ThreadOp::BarrierExpect {
            barrier,
            index,
            bytes,
            arrive,
        } => Code::Arrive {
            barrier: barrier_ref(b, *barrier, index)?,
            bytes: Some(expr::int(b.names, bytes, 0)?),
            arrive: *arrive,
        },
        thread_ops!(atomics lanes plain) => return Err(stray(b)),
    };
    push(b, Any::Barrier(code), varying);
    Ok(())
}

/// Device operations mean little where everything happens at once; barriers still do.
pub(crate) fn device(b: &mut Builder<'_, '_>, op: &DeviceOp) -> Compiled<()> {
    if b.names.in_point {
        return Err(b.invalid("a device operation in a parallel loop"));
    }
    let code = match op {
        DeviceOp::Wait { .. }
        | DeviceOp::WaitRead { .. }
        | DeviceOp::Commit(_)
        | DeviceOp::Fence(_)
        | DeviceOp::SetPrio(_)
        | DeviceOp::Prefetch { .. }
        | DeviceOp::SchedBarrier(_)
        | DeviceOp::SchedGroupBarrier { .. }
        | DeviceOp::Iteration(_) => return Ok(()),
        DeviceOp::Barrier(BarrierKind::Block | BarrierKind::Bare) => {
            Code::Sync { id: 0, count: None }
        }
        DeviceOp::Barrier(BarrierKind::Named { id, count }) => Code::Sync {
            id: *id,
            count: Some(*count),
        },
        DeviceOp::Barrier(BarrierKind::Cond(_)) => {
            return Err(RunError::new(
                codes::NOT_TILE_IR,
                b.span,
                "a conditional barrier belongs to device IR",
            ));
        }
        DeviceOp::BarrierInit {
            barrier,
            index,
            count,
        } => Code::SetCount {
            barrier: barrier_ref(b, *barrier, index)?,
            count: *count,
        },
    };
    push(b, Any::Barrier(code), false);
    Ok(())
}

/// A barrier element.
pub(in crate::exec) fn barrier_ref(
    b: &mut Builder<'_, '_>,
    buffer: Buffer,
    index: &Expr,
) -> Compiled<BarrierRef> {
    let number = b.names.buffer(buffer)?;
    if !matches!(b.names.buffers[number as usize].space, Space::Barrier(_)) {
        return Err(b.invalid("this buffer holds data, not barriers"));
    }
    Ok(BarrierRef {
        buffer: number,
        index: expr::int(b.names, index, 0)?,
    })
}

impl Exec<'_, '_> {
    pub(super) fn barrier_op(&mut self, code: &Code, varying: bool) -> Eval<Option<Wait>> {
        match code {
            Code::Sync { id, count } => return self.sync(*id, *count),
            Code::SyncGrid => return self.sync_grid(),
            Code::SyncCluster => return self.sync_cluster(),
            Code::ClusterArrive => self.cluster_arrive()?,
            Code::ClusterWait => return self.cluster_wait(),
            Code::ArriveAt { barrier, block } => {
                self.each_lane(|this| this.arrive_in(barrier, block.as_ref()))?;
            }
            Code::Arrive {
                barrier,
                bytes,
                arrive,
            } => {
                let arrive =
                    |this: &mut Self| this.arrive_at(barrier, bytes.as_ref(), u32::from(*arrive));
                if varying {
                    self.each_lane(arrive)?;
                } else {
                    // All active threads arrive at one barrier and announce the same bytes.
                    for _ in 0..self.strand.active.len() {
                        arrive(self)?;
                    }
                }
            }
            Code::Wait { barrier, parity } => return self.wait(barrier, parity, varying),
            Code::SetCount { barrier, count } => {
                let at = self.barrier(barrier)?;
                self.block.mbarriers[at] = Mbarrier::new(*count);
            }
        }
        Ok(None)
    }

    fn sync(&mut self, id: u32, count: Option<u32>) -> Eval<Option<Wait>> {
        let needed = match count {
            Some(count) => count,
            None => {
                if self.strand.active != self.strand.all {
                    return Err(self.divergent_barrier("a barrier"));
                }
                self.program.num_threads() as u32
            }
        };
        let threads = self.strand.active.len();
        let at = id as usize;
        if at >= MAX_BARRIERS {
            let message = format!("barrier {id}: there are {MAX_BARRIERS}");
            return Err(self.fail(Fault::new(codes::INVALID_IR, message)));
        }
        if self.block.counting.len() <= at {
            self.block.counting.resize(at + 1, Counting::default());
        }
        let barrier = &mut self.block.counting[at];
        let ticket = match self.strand.ticket {
            Some(ticket) => ticket,
            None => barrier.arrive(threads, u64::from(needed)),
        };
        if barrier.passed(ticket) {
            self.strand.ticket = None;
            return Ok(None);
        }
        self.strand.ticket = Some(ticket);
        Ok(Some(Wait::Sync {
            id,
            needed,
            arrived: barrier.arrived,
        }))
    }

    fn sync_grid(&mut self) -> Eval<Option<Wait>> {
        if self.strand.active != self.strand.all {
            return Err(self.divergent_barrier("a grid barrier"));
        }
        let total = self.program.num_blocks() * self.program.num_threads() as u64;
        let threads = self.strand.all.len();
        let ticket = match self.strand.ticket {
            Some(ticket) => ticket,
            None => self.grid_barrier.arrive(threads, total),
        };
        if self.grid_barrier.passed(ticket) {
            self.strand.ticket = None;
            if let Globals::Direct { races, .. } = &mut *self.globals {
                races.pass_grid_barrier(self.grid_barrier.generation);
            }
            return Ok(None);
        }
        self.strand.ticket = Some(ticket);
        Ok(Some(Wait::Grid))
    }

    fn sync_cluster(&mut self) -> Eval<Option<Wait>> {
        let ticket = match self.strand.ticket {
            Some(ticket) => ticket,
            None => self.come_to_cluster()?,
        };
        self.strand.ticket = Some(ticket);
        if !self.cluster_barrier.passed(ticket) {
            return Ok(Some(Wait::Cluster));
        }
        self.strand.ticket = None;
        Ok(None)
    }

    fn cluster_arrive(&mut self) -> Eval<()> {
        self.strand.half = Some(self.come_to_cluster()?);
        Ok(())
    }

    /// The strand arrives at the barrier of the cluster.
    fn come_to_cluster(&mut self) -> Eval<u64> {
        if self.strand.active != self.strand.all {
            return Err(self.divergent_barrier("a barrier of the cluster"));
        }
        if self.strand.half.is_some() {
            let message = "a second arrival at the barrier of the cluster, without a wait between";
            return Err(self.fail(Fault::new(codes::BARRIER_COUNT, message)));
        }
        let total = self.program.cluster_blocks() * self.program.num_threads() as u64;
        let threads = self.strand.all.len();
        Ok(self.cluster_barrier.arrive(threads, total))
    }

    fn cluster_wait(&mut self) -> Eval<Option<Wait>> {
        let Some(ticket) = self.strand.half else {
            let message = "a wait at the barrier of the cluster, where nothing has arrived before";
            return Err(self.fail(Fault::new(codes::BARRIER_COUNT, message)));
        };
        if !self.cluster_barrier.passed(ticket) {
            return Ok(Some(Wait::Cluster));
        }
        self.strand.half = None;
        Ok(None)
    }

    /// A thread arrives in one block of the cluster, or in each.
    fn arrive_in(&mut self, barrier: &BarrierRef, block: Option<&Int>) -> Eval<()> {
        let blocks = self.program.cluster_blocks() as i64;
        let ranks = match block {
            None => 0..blocks,
            Some(rank) => {
                let rank = self.int(rank)?;
                if !(0..blocks).contains(&rank) {
                    let message = format!("the cluster has no block {rank}: there are {blocks}");
                    return Err(self.fail(Fault::new(codes::OUT_OF_BOUNDS, message)));
                }
                rank..rank + 1
            }
        };
        for to in ranks.map(|rank| rank as usize) {
            if to == self.rank {
                self.arrive_at(barrier, None, 1)?;
                continue;
            }
            let sent = Sent {
                to,
                barrier: self.barrier(barrier)?,
                what: What::Arrival,
                site: self.site,
            };
            self.output.sent.push(sent);
        }
        Ok(())
    }

    #[cold]
    pub(super) fn divergent_barrier(&mut self, what: &str) -> crate::error::Stop {
        let (active, all) = (self.strand.active.len(), self.strand.all.len());
        self.fail(
            Fault::new(
                codes::DIVERGENT_BARRIER,
                format!("{what} that only some threads reach"),
            )
            .note(format!("{active} of {all} threads took this way"))
            .help("move the barrier out of the thread-dependent condition"),
        )
    }

    /// The number of the barrier meant.
    pub(in crate::exec) fn barrier(&mut self, barrier: &BarrierRef) -> Eval<usize> {
        let index = self.int(&barrier.index)?;
        let program = self.program;
        let info = &program.buffers[barrier.buffer as usize];
        let count = info.shape.first().copied().unwrap_or(1);
        match info.space {
            Space::Barrier(first) if (0..count).contains(&index) => {
                Ok(first as usize + index as usize)
            }
            _ => Err(self.out_of_bounds(info, &[index], Span::NONE)),
        }
    }

    pub(in crate::exec) fn arrive_at(
        &mut self,
        barrier: &BarrierRef,
        bytes: Option<&Int>,
        arrivals: u32,
    ) -> Eval<()> {
        let at = self.barrier(barrier)?;
        if let Some(bytes) = bytes {
            let bytes = self.int(bytes)?;
            self.block.mbarriers[at].expect(bytes);
        }
        for _ in 0..arrivals {
            if !self.block.mbarriers[at].arrive() {
                let name = &self.program.buffers[barrier.buffer as usize].name;
                let message = format!("more threads arrive at `{name}` than its phase counts");
                return Err(self.fail(Fault::new(codes::BARRIER_COUNT, message)));
            }
        }
        Ok(())
    }

    fn wait(&mut self, barrier: &BarrierRef, parity: &Int, varying: bool) -> Eval<Option<Wait>> {
        let mut wait = None;
        let check = |this: &mut Self| {
            let at = this.barrier(barrier)?;
            let parity = this.int(parity)?;
            let state = this.block.mbarriers[at];
            if !state.passed(parity) {
                let info = &this.program.buffers[barrier.buffer as usize];
                let first = match info.space {
                    Space::Barrier(first) => first as usize,
                    _ => at,
                };
                wait = Some(Wait::Mbarrier {
                    name: info.name.clone(),
                    index: (at - first) as i64,
                    parity: parity & 1,
                    pending: state.pending,
                    bytes: state.bytes,
                });
            }
            Ok(())
        };
        if varying {
            self.each_lane(check)?;
        } else {
            let mut check = check;
            check(self)?;
        }
        Ok(wait)
    }
}
