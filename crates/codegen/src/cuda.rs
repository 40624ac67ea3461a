//! What CUDA says its own way: launch bounds, warp primitives with a mask of lanes, groups of
//! `cp.async`, printing.

use tilewright_ir::{
    BarrierKind, Counter, DeviceOp, Expr, FenceKind, Kernel, Scalar, Span, VoteKind,
};

use crate::device::Piece;
use crate::kernel::Emitter;
use crate::stmt::c_string;
use crate::{Emit, unsupported};

/// The declaration of a kernel's shared memory, whose size the launch gives.
pub(crate) const SHARED_ARRAY: &str =
    "extern __shared__ __align__(1024) unsigned char shared_memory[];";

impl Emitter<'_> {
    /// `extern "C" __global__ …(…) {`
    pub(crate) fn cuda_head(&self, kernel: &Kernel, name: &str, params: &str) -> String {
        let threads: u32 = kernel.threads.iter().product();
        let bounds = match kernel.attrs.min_blocks_per_sm {
            Some(blocks) => format!("{threads}, {blocks}"),
            // One block is enough: without a number the compiler aims at many blocks and would
            // rather spill than take registers for loads in flight.
            None => format!("{threads}, 1"),
        };
        let cluster = match kernel.attrs.cluster {
            Some([x, y, z]) if self.machine.clusters.is_some() => {
                format!("__cluster_dims__({x}, {y}, {z}) ")
            }
            _ => String::new(),
        };
        format!(
            "extern \"C\" __global__ void {cluster}__launch_bounds__({bounds})\n{name}({params}) {{"
        )
    }

    /// The lanes of a warp that exist.
    pub(crate) fn lane_mask(&self) -> &'static str {
        let threads: u32 = self.threads.iter().product();
        match threads.is_multiple_of(self.machine.warp_size) {
            true => "0xffffffff",
            false => "__activemask()",
        }
    }

    pub(crate) fn cuda_vote(&self, kind: VoteKind, value: &str) -> String {
        let mask = self.lane_mask();
        match kind {
            VoteKind::Any => format!("__any_sync({mask}, {value}) != 0"),
            VoteKind::All => format!("__all_sync({mask}, {value}) != 0"),
            VoteKind::Ballot => format!("__ballot_sync({mask}, {value})"),
            VoteKind::BlockOr => format!("__syncthreads_or({value}) != 0"),
            VoteKind::BlockAnd => format!("__syncthreads_and({value}) != 0"),
            VoteKind::BlockCount => format!("__syncthreads_count({value})"),
        }
    }

    pub(crate) fn cuda_print(&mut self, message: &str, args: &[Expr]) -> Emit<()> {
        let thread = self.linear_thread();
        let mut format = "thread %d: ".to_string() + &message.replace('%', "%%");
        let mut list = vec![thread];
        for (position, arg) in args.iter().enumerate() {
            let scalar = arg.dtype().scalar;
            let value = self.scalar(arg)?;
            format += if position == 0 { " " } else { ", " };
            let (spec, cast) = match scalar {
                Scalar::F64 => ("%g", ""),
                _ if scalar.is_float() => ("%g", "(double)(float)"),
                Scalar::I64 => ("%lld", "(long long)"),
                Scalar::U64 | Scalar::Handle => ("%llu", "(unsigned long long)"),
                Scalar::U32 => ("%u", "(unsigned)"),
                _ => ("%d", "(int)"),
            };
            format += spec;
            list.push(format!("{cast}({value})"));
        }
        format.push('\n');
        self.out.line(format!(
            "printf({}, {});",
            c_string(&format),
            list.join(", ")
        ));
        Ok(())
    }

    pub(crate) fn cuda_device_op(&mut self, op: &DeviceOp, span: Span) -> Emit<()> {
        match op {
            DeviceOp::Wait {
                counter: Counter::CpAsync,
                at_most,
            } => {
                self.needs.piece(Piece::Async);
                self.out.line(format!("tw::cp_async_wait<{at_most}>();"));
            }
            DeviceOp::Commit(Counter::CpAsync) => {
                self.needs.piece(Piece::Async);
                self.out.line("tw::cp_async_commit();");
            }
            DeviceOp::Wait {
                counter: Counter::Wgmma,
                at_most,
            } if self.machine.group_mma() => self.group_mma_wait(*at_most),
            DeviceOp::Commit(Counter::Wgmma) if self.machine.group_mma() => {
                self.needs.piece(Piece::Wgmma);
                self.out.line("tw::wgmma_commit();");
            }
            DeviceOp::Fence(FenceKind::Wgmma) if self.machine.group_mma() => self.group_mma_fence(),
            DeviceOp::Wait {
                counter: Counter::TmaStore,
                at_most,
            } if self.machine.bulk_copies => {
                self.needs.piece(Piece::Bulk);
                self.out.line(format!("tw::tma_store_wait<{at_most}>();"));
            }
            DeviceOp::WaitRead { at_most } if self.machine.bulk_copies => {
                self.needs.piece(Piece::Bulk);
                self.out
                    .line(format!("tw::tma_store_wait_read<{at_most}>();"));
            }
            DeviceOp::Commit(Counter::TmaStore) if self.machine.bulk_copies => {
                self.needs.piece(Piece::Bulk);
                self.out.line("tw::tma_store_commit();");
            }
            DeviceOp::WaitRead { .. } => {
                return unsupported(span, format!("{} has no bulk copies", self.target));
            }
            DeviceOp::Wait { counter, .. } | DeviceOp::Commit(counter) => {
                return unsupported(
                    span,
                    format!("{} has no counter `{}`", self.target, counter.name()),
                );
            }
            DeviceOp::Barrier(BarrierKind::Block | BarrierKind::Bare) => {
                self.out.line("__syncthreads();");
            }
            DeviceOp::Barrier(BarrierKind::Named { id, count }) => {
                return self.named_barrier(*id, *count);
            }
            DeviceOp::Barrier(BarrierKind::Cond(_)) => {
                return unsupported(
                    span,
                    format!("{} has no barrier of some waves", self.target),
                );
            }
            DeviceOp::Fence(FenceKind::Block) => self.out.line("__threadfence_block();"),
            DeviceOp::Fence(FenceKind::Device) => self.out.line("__threadfence();"),
            DeviceOp::Fence(FenceKind::AsyncProxy) => {
                if self.machine.async_proxy {
                    self.needs.piece(Piece::Wgmma);
                    self.out.line("tw::fence_async_proxy();");
                }
            }
            DeviceOp::Fence(FenceKind::BarrierInit) => {
                let bulk = !self.plan.maps.is_empty();
                let fence = ["__threadfence_block();", "tw::show_barriers();"];
                self.out.line(fence[usize::from(bulk)]);
            }
            DeviceOp::Fence(FenceKind::Wgmma) => {
                return unsupported(span, format!("{} has no wgmma", self.target));
            }
            DeviceOp::Prefetch { address, bytes } if self.machine.bulk_copies => {
                self.needs.piece(Piece::Prefetch);
                let address = self.expr(address, 0)?;
                let line = format!("tw::fetch_to_l2({}, {bytes});", address.text);
                self.out.line(line);
            }
            DeviceOp::Prefetch { .. } => {
                return unsupported(span, format!("{} fetches no bytes ahead", self.target));
            }
            // For the checker, or hints of another machine's scheduler.
            DeviceOp::Iteration(_)
            | DeviceOp::SetPrio(_)
            | DeviceOp::SchedBarrier(_)
            | DeviceOp::SchedGroupBarrier { .. } => {}
            DeviceOp::BarrierInit {
                barrier,
                index,
                count,
            } => return self.barrier_init(*barrier, index, *count, span),
        }
        Ok(())
    }
}
