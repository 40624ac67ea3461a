//! Barriers: lanes, warps and blocks wait for each other.

use tilewright_ir::{ArriveAt, Buffer, Expr, Span, ThreadOp, thread_ops};

use super::{ThreadCode, stray};
use crate::compile::names::Compiled;
use crate::error::RunError;
use crate::simt::compile::Compiler;
use crate::simt::counts::InstKind;
use crate::simt::device::DeviceCode;
use crate::simt::env::Env;
use crate::simt::program::{Op, Slot, Space};
use crate::simt::report::FindingKind;
use crate::simt::step::Pause;
use crate::simt::warp::{Lanes, Warp};

/// Bytes that a phase counts at a time. Source: PTX ISA, "mbarrier: tx-count".
const MOST_BYTES: i64 = (1 << 20) - 1;

#[derive(Clone, Debug)]
pub(in crate::simt) enum Code {
    SyncWarp,
    SyncGrid,
    SyncCluster,
    ClusterArrive,
    ClusterWait,
    Arrive {
        barrier: u32,
        index: Slot,
        /// One lane arrives for all of its warp.
        warp: bool,
        at: At,
    },
    Wait {
        barrier: u32,
        index: Slot,
        parity: Slot,
    },
    Expect {
        barrier: u32,
        index: Slot,
        bytes: Slot,
        arrive: bool,
    },
}

/// Whose barrier is arrived at.
#[derive(Clone, Copy, Debug)]
pub(in crate::simt) enum At {
    Own,
    /// All blocks of the cluster.
    All,
    Block(Slot),
}

pub(super) fn compile(c: &mut Compiler<'_>, op: &ThreadOp, span: Span) -> Compiled<Op> {
    let code = match op {
        ThreadOp::SyncThreads { named: None } => {
            return Ok(Op::Device(DeviceCode::Block));
        }
        ThreadOp::SyncThreads {
            named: Some((id, count)),
        } => {
            let (id, count) = (*id, *count);
            return Ok(Op::Device(DeviceCode::Named { id, count }));
        }
        ThreadOp::SyncWarp => Code::SyncWarp,
        ThreadOp::SyncGrid => {
            c.program.traffic.sync_grid = true;
            Code::SyncGrid
        }
        ThreadOp::SyncCluster => Code::SyncCluster,
        ThreadOp::ClusterArrive => Code::ClusterArrive,
        ThreadOp::ClusterWait => Code::ClusterWait,
        ThreadOp::BarrierArrive {
            barrier,
            index,
            warp,
            at,
        } => {
            let (barrier, index) = c.barrier(*barrier, index)?;
            let at = match at {
                ArriveAt::Own => At::Own,
                ArriveAt::All => At::All,
                ArriveAt::Block(rank) => At::Block(c.scalar(rank)?),
            };
            Code::Arrive {
                barrier,
                index,
                warp: *warp,
                at,
            }
        }
        ThreadOp::BarrierWait {
            barrier,
            index,
            parity,
        } => {
            let (barrier, index) = c.barrier(*barrier, index)?;
            Code::Wait {
                barrier,
                index,
                parity: c.scalar(parity)?,
            }
        }
        ThreadOp::BarrierExpect {
            barrier,
            index,
            bytes,
            arrive,
        } => {
            let (barrier, index) = c.barrier(*barrier, index)?;
            Code::Expect {
                barrier,
                index,
                bytes: c.scalar(bytes)?,
                arrive: *arrive,
            }
        }
        thread_ops!(atomics lanes plain) => return Err(stray(span)),
    };
    Ok(Op::Thread(Box::new(ThreadCode::Barrier(code))))
}

impl Compiler<'_> {
    /// A barrier array's first number, and the index into it.
    pub(in crate::simt) fn barrier(
        &mut self,
        barrier: Buffer,
        index: &Expr,
    ) -> Compiled<(u32, Slot)> {
        let number = self.buffer(barrier)?;
        let info = &self.program.buffers[number as usize];
        if !matches!(info.space, Space::Barrier(_)) {
            return Err(RunError::invalid(
                index.span(),
                format!("`{}` is not an arrival barrier", info.name),
            ));
        }
        Ok((number, self.scalar(index)?))
    }
}

impl Env<'_> {
    pub(super) fn barrier_op(&mut self, warp: &mut Warp, code: &Code) -> Pause {
        match code {
            Code::SyncWarp => {
                self.converged(warp, "a warp barrier");
                self.hand_over(warp.index);
                self.shared.sync_warp(warp.index);
            }
            Code::SyncGrid => return Pause::Grid,
            Code::SyncCluster => {
                if warp.half.is_some() {
                    self.out_of_turn(warp);
                }
                return Pause::Cluster;
            }
            Code::ClusterArrive => {
                self.count(warp, InstKind::Barrier);
                self.converged(warp, "the barrier of the cluster");
                self.settle(warp);
                self.hand_over(warp.index);
                if !self.barriers.cluster_arrive(warp) {
                    self.out_of_turn(warp);
                }
            }
            Code::ClusterWait => match self.barriers.cluster_wait(warp) {
                Some(true) => {
                    self.shared.sync_warp(warp.index);
                    self.count(warp, InstKind::Wait);
                }
                Some(false) => return Pause::Mbarrier,
                None => self.out_of_turn(warp),
            },
            Code::Arrive {
                barrier,
                index,
                warp: together,
                at,
            } => {
                self.count(warp, InstKind::Barrier);
                let mut lanes = Lanes(warp.mask);
                if *together {
                    self.converged(warp, "an arrival of the whole warp");
                    self.shared.sync_warp(warp.index);
                    let meant = |lane| warp.regs.lane(*index, lane as usize);
                    let first = meant(warp.first());
                    if let Some(lane) = lanes.clone().find(|lane| meant(*lane) != first) {
                        self.report(warp, FindingKind::DivergentCollective, Some(lane), || {
                            "lanes of a warp mean different barriers".to_string()
                        });
                    }
                    lanes = Lanes(1 << warp.first());
                }
                let mut over = Vec::new();
                for lane in lanes {
                    let Some(number) = self.barrier(warp, *barrier, *index, lane) else {
                        continue;
                    };
                    if over.contains(&number) {
                        self.report(warp, FindingKind::BarrierMisuse, Some(lane), || {
                            "lanes of one instruction arrive for different phases".to_string()
                        });
                    }
                    let Some(blocks) = self.blocks(warp, *at, lane) else {
                        continue;
                    };
                    for number in self.everywhere(number, blocks) {
                        let before = self.barriers.phases[number].completed;
                        self.arrive(warp, number, lane);
                        if self.barriers.phases[number].completed > before {
                            over.push(number);
                        }
                    }
                }
            }
            Code::Expect {
                barrier,
                index,
                bytes,
                arrive,
            } => {
                for lane in Lanes(warp.mask) {
                    let Some(number) = self.barrier(warp, *barrier, *index, lane) else {
                        continue;
                    };
                    let bytes = warp.regs.lane(*bytes, lane as usize) as i64;
                    let place = self.place(warp, Some(lane));
                    self.barriers.phases[number].told = Some((self.stmt(warp), place));
                    self.barriers.expect(number, bytes);
                    self.after_phase();
                    if self.barriers.phases[number].state.bytes > MOST_BYTES {
                        self.report(warp, FindingKind::BarrierMisuse, Some(lane), || {
                            format!("a barrier counts no more than {MOST_BYTES} bytes")
                        });
                    }
                    if *arrive {
                        self.arrive(warp, number, lane);
                    }
                }
            }
            Code::Wait {
                barrier,
                index,
                parity,
            } => {
                let mut numbers = Vec::new();
                for lane in Lanes(warp.mask) {
                    let Some(number) = self.barrier(warp, *barrier, *index, lane) else {
                        continue;
                    };
                    let parity = warp.regs.lane(*parity, lane as usize) as i64;
                    let completed = self.barriers.phases[number].completed;
                    match warp.awaits {
                        Some((awaited, since)) if awaited == number && completed > since + 1 => {
                            self.report(warp, FindingKind::BarrierMisuse, Some(lane), || {
                                "another phase of the barrier completes before this wait has seen \
                                 the one it waits for"
                                    .to_string()
                            });
                        }
                        _ => {}
                    }
                    if !self.barriers.passed(number, parity) {
                        warp.awaits.get_or_insert((number, completed));
                        return Pause::Mbarrier;
                    }
                    if !numbers.contains(&number) {
                        numbers.push(number);
                    }
                }
                warp.awaits = None;
                for number in numbers {
                    let stmt = self.stmt(warp);
                    self.barriers.pass(number, warp, stmt);
                }
                self.shared.sync_warp(warp.index);
                self.count(warp, InstKind::Wait);
            }
        }
        Pause::Turn
    }

    /// The number of the barrier that a lane means; a bad index is reported.
    pub fn barrier(&mut self, warp: &Warp, buffer: u32, index: Slot, lane: u32) -> Option<usize> {
        let info = &self.program.buffers[buffer as usize];
        let Space::Barrier(first) = info.space else {
            return None;
        };
        let count = info.shape.iter().product::<i64>().max(0);
        let at = warp.regs.lane(index, lane as usize) as i64;
        if (0..count).contains(&at) {
            let of_rank = warp.rank as usize * self.program.barriers.len();
            return Some(of_rank + first as usize + at as usize);
        }
        self.report(warp, FindingKind::OutOfBounds, Some(lane), || {
            format!("`{}` has no barrier {at}: there are {count}", info.name)
        });
        None
    }

    /// A warp comes twice to a barrier of the cluster, or waits where it has not come.
    fn out_of_turn(&mut self, warp: &Warp) {
        self.report(warp, FindingKind::BarrierMisuse, None, || {
            "a warp comes to the barrier of the cluster and waits there in turn".to_string()
        });
    }

    /// The blocks whose barrier a lane arrives at, a bit for each; a bad number is reported. `None`
    /// within is the own one.
    fn blocks(&mut self, warp: &Warp, at: At, lane: u32) -> Option<Option<u16>> {
        let rank = match at {
            At::Own => return Some(None),
            At::All => return Some(Some(u16::MAX)),
            At::Block(rank) => warp.regs.lane(rank, lane as usize) as i64,
        };
        let count = self.blocks.len();
        if (0..count as i64).contains(&rank) {
            return Some(Some(1 << rank));
        }
        self.report(warp, FindingKind::OutOfBounds, Some(lane), || {
            format!("the cluster has no block {rank}: there are {count}")
        });
        None
    }

    /// A barrier, or those that these blocks of the cluster have in its place, a bit for each.
    pub fn everywhere(&self, number: usize, blocks: Option<u16>) -> Vec<usize> {
        let in_block = self.program.barriers.len();
        let Some(blocks) = blocks else {
            return vec![number];
        };
        (0..self.blocks.len())
            .filter(|rank| blocks >> rank & 1 == 1)
            .map(|rank| rank * in_block + number % in_block)
            .collect()
    }

    fn arrive(&mut self, warp: &mut Warp, number: usize, lane: u32) {
        self.settle(warp);
        self.hand_over(warp.index);
        self.reached(warp, number, lane);
        let fits = self.barriers.arrive(number, warp, 1);
        self.after_phase();
        if !fits {
            self.report(warp, FindingKind::BarrierMisuse, Some(lane), || {
                "more threads arrive at a barrier than its count, or it was never initialised"
                    .to_string()
            });
        }
    }
}
