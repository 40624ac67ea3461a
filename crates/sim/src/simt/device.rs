//! Device operations: what each becomes, and what a warp does.

use tilewright_ir::{BarrierKind, Counter, DeviceOp, FenceKind, Scalar, Span};

use super::compile::Compiler;
use super::counts::InstKind;
use super::env::Env;
use super::program::{Op, Slot};
use super::report::FindingKind;
use super::step::Pause;
use super::warp::{Lanes, Warp};
use crate::barrier::Mbarrier;
use crate::compile::names::Compiled;

#[derive(Clone, Debug)]
pub(super) enum DeviceCode {
    Wait {
        counter: Counter,
        at_most: u32,
    },
    /// Bulk stores have read what they store, but for so many groups.
    WaitRead {
        at_most: u32,
    },
    Commit(Counter),
    /// All threads of the block, with its memory ordering.
    Block,
    /// All waves of the block.
    Bare,
    Named {
        id: u32,
        count: u32,
    },
    /// The waves for which the condition holds.
    Cond(Slot),
    BarrierInit {
        barrier: u32,
        index: Slot,
        count: u32,
    },
    /// Registers are handed to products of the warp group.
    FenceProducts,
    /// What was stored to shared memory is handed to who reads by the async proxy.
    FenceProxy,
    /// What orders or hints and changes no value.
    Nothing,
}

impl Compiler<'_> {
    pub(super) fn device_op(&mut self, op: &DeviceOp, span: Span) -> Compiled<()> {
        let what = match op {
            DeviceOp::Iteration(_) | DeviceOp::Prefetch { .. } => return Ok(()),
            DeviceOp::Wait { .. } | DeviceOp::WaitRead { .. } => "wait",
            DeviceOp::Commit(_) => "commit",
            DeviceOp::Barrier(_) => "barrier",
            DeviceOp::BarrierInit { .. } => "barrier_init",
            DeviceOp::Fence(_)
            | DeviceOp::SetPrio(_)
            | DeviceOp::SchedBarrier(_)
            | DeviceOp::SchedGroupBarrier { .. } => "fence",
        };
        self.statement(span, what.to_string());
        let code = match op {
            DeviceOp::Wait { counter, at_most } => DeviceCode::Wait {
                counter: *counter,
                at_most: *at_most,
            },
            DeviceOp::WaitRead { at_most } => DeviceCode::WaitRead { at_most: *at_most },
            DeviceOp::Commit(counter) => DeviceCode::Commit(*counter),
            DeviceOp::Barrier(BarrierKind::Block) => DeviceCode::Block,
            DeviceOp::Barrier(BarrierKind::Bare) => DeviceCode::Bare,
            DeviceOp::Barrier(BarrierKind::Named { id, count }) => DeviceCode::Named {
                id: *id,
                count: *count,
            },
            DeviceOp::Barrier(BarrierKind::Cond(cond)) => {
                DeviceCode::Cond(self.cast(cond, Scalar::Bool)?)
            }
            DeviceOp::BarrierInit {
                barrier,
                index,
                count,
            } => {
                let (barrier, index) = self.barrier(*barrier, index)?;
                DeviceCode::BarrierInit {
                    barrier,
                    index,
                    count: *count,
                }
            }
            DeviceOp::Fence(FenceKind::Wgmma) => DeviceCode::FenceProducts,
            DeviceOp::Fence(FenceKind::AsyncProxy) => DeviceCode::FenceProxy,
            DeviceOp::Fence(_)
            | DeviceOp::SetPrio(_)
            | DeviceOp::SchedBarrier(_)
            | DeviceOp::SchedGroupBarrier { .. }
            | DeviceOp::Prefetch { .. }
            | DeviceOp::Iteration(_) => DeviceCode::Nothing,
        };
        self.emit(Op::Device(code));
        Ok(())
    }
}

impl Env<'_> {
    pub fn device(&mut self, warp: &mut Warp, code: &DeviceCode) -> Pause {
        match code {
            DeviceCode::Wait { counter, at_most } => {
                self.count(warp, InstKind::Wait);
                self.wait(warp, *counter, *at_most);
                Pause::Turn
            }
            DeviceCode::WaitRead { at_most } => {
                self.count(warp, InstKind::Wait);
                self.wait_read(warp, *at_most);
                Pause::Turn
            }
            DeviceCode::Commit(counter) => {
                warp.queue.commit(*counter, warp.mask);
                Pause::Turn
            }
            DeviceCode::Block => {
                self.count(warp, InstKind::Barrier);
                if self.target.machine().barrier.drains {
                    self.drain(warp);
                }
                Pause::Block
            }
            DeviceCode::Bare => {
                self.count(warp, InstKind::Barrier);
                Pause::Block
            }
            DeviceCode::Cond(cond) => {
                let truth = warp.regs.truth(*cond, warp.mask);
                if truth != 0 && truth != warp.mask {
                    self.report(warp, FindingKind::DivergentBarrier, None, || {
                        "lanes of a warp disagree about the condition of a barrier".to_string()
                    });
                }
                if truth == 0 {
                    return Pause::Turn;
                }
                self.count(warp, InstKind::Barrier);
                Pause::Block
            }
            DeviceCode::Named { id, count } => {
                self.count(warp, InstKind::Barrier);
                self.settle(warp);
                Pause::Named {
                    id: *id,
                    count: *count,
                }
            }
            DeviceCode::BarrierInit {
                barrier,
                index,
                count,
            } => {
                for lane in Lanes(warp.mask) {
                    if let Some(number) = self.barrier(warp, *barrier, *index, lane) {
                        self.barriers.phases[number].state = Mbarrier::new(*count);
                    }
                }
                Pause::Turn
            }
            DeviceCode::FenceProducts => {
                warp.local.fence();
                Pause::Turn
            }
            DeviceCode::FenceProxy => {
                if let Some(proxies) = &mut self.shared.proxies {
                    proxies.fence(warp.index, warp.mask);
                }
                Pause::Turn
            }
            DeviceCode::Nothing => Pause::Turn,
        }
    }
}
