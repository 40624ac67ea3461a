//! Tile, thread, micro and device operations.

use crate::buffer::Region;
use crate::device_op::{BarrierKind, DeviceOp};
use crate::dtype::DType;
use crate::expr::Expr;
use crate::ids::{Buffer, Var};
use crate::micro_op::{Access, MicroOp};
use crate::text::printer::Printer;
use crate::text::words::Word;
use crate::thread_op::ThreadOp;
use crate::tile_op::{
    AtomicSource, CopyKind, CopyOp, GemmKind, GemmOp, GemmPlan, GemmPolicy, TileOp,
};

impl Printer<'_> {
    /// `A[i * 64 +: 64, j]`; an extent of one is left out, unless `full`.
    fn region_as(&mut self, region: &Region, full: bool) {
        self.buffer(region.buffer);
        self.put("[");
        self.list(&region.dims, |p, dim| {
            p.expr(&dim.start);
            if full || dim.extent != Expr::int(1, dim.start.dtype()) {
                p.put(" +: ");
                p.expr(&dim.extent);
            }
        });
        self.put("]");
    }

    fn region(&mut self, region: &Region) {
        self.region_as(region, false);
    }

    fn arrow(&mut self, src: &Region, dst: &Region) {
        self.region(src);
        self.put(" -> ");
        self.region(dst);
    }

    pub(super) fn tile_op(&mut self, op: &TileOp) {
        match op {
            TileOp::Copy(copy) => self.copy(copy),
            TileOp::Fill { dst, value } => {
                self.put("fill ");
                self.region(dst);
                self.put(", ");
                self.expr(value);
            }
            TileOp::Gemm(gemm) => self.gemm(gemm),
            TileOp::Reduce(r) => {
                self.put_fmt(format_args!("reduce {} ", r.kind.name()));
                self.arrow(&r.src, &r.dst);
                self.attr("dim", Some(r.dim));
                self.flag("clear", r.clear);
                self.flag("nan_propagate", r.nan_propagate);
            }
            TileOp::Scan(s) => {
                self.put_fmt(format_args!("scan {} ", s.kind.word()));
                self.arrow(&s.src, &s.dst);
                self.attr("dim", Some(s.dim));
                self.flag("reverse", s.reverse);
            }
            TileOp::Atomic {
                op,
                dst,
                value,
                order,
            } => {
                self.put_fmt(format_args!("atomic {} ", op.word()));
                self.region(dst);
                self.put(", ");
                match value {
                    // In full, a region is told from a load of one element.
                    AtomicSource::Region(r) => {
                        if r.dims.is_empty() {
                            self.put("region ");
                        }
                        self.region_as(r, true);
                    }
                    AtomicSource::Value(e) => self.expr(e),
                }
                self.flag(order.word(), true);
            }
            TileOp::Transpose { src, dst } => {
                self.put("transpose ");
                self.arrow(src, dst);
            }
            TileOp::Im2col(i) => {
                self.put("im2col ");
                self.buffer(i.image);
                self.put(" -> ");
                self.region(&i.dst);
                self.expr_attr("m", &i.m_step);
                self.expr_attr("k", &i.k_step);
                self.attr("kernel", Some(i.kernel));
                self.attr("stride", Some(i.stride));
                self.attr("dilation", Some(i.dilation));
                self.attr("pad", Some(i.pad));
            }
            TileOp::ReducerInit { reducer, init } => {
                self.put("reducer_init ");
                self.buffer(*reducer);
                if let Some(init) = init {
                    self.put(", ");
                    self.expr(init);
                }
            }
            TileOp::ReducerUpdate {
                reducer,
                indices,
                value,
            } => {
                self.put("reducer_update ");
                self.element(*reducer, indices);
                self.put(", ");
                self.expr(value);
            }
            TileOp::ReducerFinalize { reducer, dst } => {
                self.put("reducer_finalize ");
                self.buffer(*reducer);
                if let Some(dst) = dst {
                    self.put(" -> ");
                    self.region(dst);
                }
            }
        }
    }

    fn copy(&mut self, copy: &CopyOp) {
        self.put("copy ");
        self.arrow(&copy.src, &copy.dst);
        match &copy.kind {
            CopyKind::Sync => {}
            CopyKind::Async => self.put(" async"),
            CopyKind::Tma { barrier } => {
                self.put(" tma");
                self.barrier_attr(barrier);
            }
        }
        let hints = &copy.hints;
        self.attr("coalesced", hints.coalesced_width);
        self.flag("no_tma", hints.disable_tma);
        self.attr("evict", hints.eviction.map(Word::word));
        if let Some(inst) = &hints.prefer_instruction {
            self.put(" prefer=");
            self.string(inst);
        }
    }

    /// ` barrier=bar[0]`
    fn barrier_attr(&mut self, barrier: &Option<(Buffer, Expr)>) {
        if let Some((buffer, index)) = barrier {
            self.put(" barrier=");
            self.element(*buffer, std::slice::from_ref(index));
        }
    }

    fn gemm(&mut self, gemm: &GemmOp) {
        self.put("gemm ");
        self.region(&gemm.a);
        self.put(", ");
        self.region(&gemm.b);
        self.put(" -> ");
        self.region(&gemm.c);
        self.flag("trans_a", gemm.trans_a);
        self.flag("trans_b", gemm.trans_b);
        if gemm.policy != GemmPolicy::Square {
            self.attr("policy", Some(gemm.policy.word()));
        }
        if gemm.clear != Expr::bool(false) {
            self.expr_attr("clear", &gemm.clear);
        }
        if gemm.k_pack != 1 {
            self.attr("k_pack", Some(gemm.k_pack));
        }
        if gemm.kind != GemmKind::Auto {
            self.attr("kind", Some(gemm.kind.word()));
        }
        self.barrier_attr(&gemm.barrier);
        if let Some(GemmPlan {
            inst,
            warps: [m, n],
        }) = &gemm.plan
        {
            self.put_fmt(format_args!(" inst=\"{inst}\" warps=[{m}, {n}]"));
        }
    }

    /// `x = `; the name is not visible to what follows on the line.
    fn result(&mut self, var: Option<Var>, op: &ThreadOp, rest: impl FnOnce(&mut Self)) {
        let at = self.out.len();
        rest(self);
        let text = self.out.split_off(at);
        if let Some(var) = var {
            self.new_var(var, op.result_type(self.func));
            self.put(" = ");
        }
        self.put(&text);
    }

    pub(super) fn thread_op(&mut self, op: &ThreadOp) {
        match op {
            ThreadOp::AtomicRmw {
                op: rmw,
                buffer,
                indices,
                value,
                order,
                result,
            } => self.result(*result, op, |p| {
                p.put_fmt(format_args!("atomic_rmw {} ", rmw.word()));
                p.element(*buffer, indices);
                p.put(", ");
                p.expr(value);
                p.flag(order.word(), true);
            }),
            ThreadOp::AtomicVecAdd {
                dst,
                dst_indices,
                src,
                src_indices,
                lanes,
            } => {
                self.put("atomic_vec_add ");
                self.element(*dst, dst_indices);
                self.put(", ");
                self.element(*src, src_indices);
                self.attr("lanes", Some(lanes));
            }
            ThreadOp::AtomicLoad {
                buffer,
                indices,
                order,
                result,
            } => self.result(Some(*result), op, |p| {
                p.put("atomic_load ");
                p.element(*buffer, indices);
                p.flag(order.word(), true);
            }),
            ThreadOp::AtomicStore {
                buffer,
                indices,
                value,
                order,
            } => {
                self.put("atomic_store ");
                self.element(*buffer, indices);
                self.put(", ");
                self.expr(value);
                self.flag(order.word(), true);
            }
            ThreadOp::Shuffle {
                kind,
                value,
                lane,
                width,
                result,
            } => self.result(Some(*result), op, |p| {
                p.put_fmt(format_args!("shuffle {} ", kind.word()));
                p.expr(value);
                p.put(", ");
                p.expr(lane);
                p.attr("width", Some(width));
            }),
            ThreadOp::Vote {
                kind,
                value,
                result,
            } => self.result(Some(*result), op, |p| {
                p.put_fmt(format_args!("vote {} ", kind.word()));
                p.expr(value);
            }),
            ThreadOp::WarpReduce {
                kind,
                value,
                result,
            } => self.result(Some(*result), op, |p| {
                p.put_fmt(format_args!("warp_reduce {} ", kind.name()));
                p.expr(value);
            }),
            ThreadOp::AllReduce {
                combiner,
                value,
                cond,
                dst,
                dst_indices,
                axes,
            } => {
                self.put("allreduce (");
                self.names.open();
                self.typed_var(combiner.lhs);
                self.put(", ");
                self.typed_var(combiner.rhs);
                self.put(") -> ");
                self.expr(&combiner.body);
                self.names.close();
                self.put(", identity=");
                self.expr(&combiner.identity);
                self.put(", ");
                self.expr(value);
                self.put(" if ");
                self.expr(cond);
                self.put(" -> ");
                self.element(*dst, dst_indices);
                self.list_attr("axes", axes, |p, axis| match axis {
                    0 => p.put("x"),
                    1 => p.put("y"),
                    2 => p.put("z"),
                    other => p.put(&other.to_string()),
                });
            }
            ThreadOp::SyncThreads { named } => {
                self.put("sync_threads");
                if let Some((id, count)) = named {
                    self.attr("id", Some(id));
                    self.attr("count", Some(count));
                }
            }
            ThreadOp::SyncWarp => self.put("sync_warp"),
            ThreadOp::SyncGrid => self.put("sync_grid"),
            ThreadOp::BarrierArrive { barrier, index } => {
                self.put("mbarrier_arrive ");
                self.element(*barrier, std::slice::from_ref(index));
            }
            ThreadOp::BarrierWait {
                barrier,
                index,
                parity,
            } => {
                self.put("mbarrier_wait ");
                self.element(*barrier, std::slice::from_ref(index));
                self.expr_attr("parity", parity);
            }
            ThreadOp::BarrierExpect {
                barrier,
                index,
                bytes,
                arrive,
            } => {
                self.put("mbarrier_expect_tx ");
                self.element(*barrier, std::slice::from_ref(index));
                self.expr_attr("bytes", bytes);
                self.flag("arrive", *arrive);
            }
            ThreadOp::Dp4a {
                a,
                a_indices,
                b,
                b_indices,
                c,
                c_indices,
            } => {
                self.put("dp4a ");
                self.element(*a, a_indices);
                self.put(", ");
                self.element(*b, b_indices);
                self.put(" -> ");
                self.element(*c, c_indices);
            }
            ThreadOp::Extern {
                name,
                args,
                dtype,
                pure,
                result,
            } => self.result(*result, op, |p| {
                p.put("extern ");
                p.string(name);
                p.put("(");
                p.list(args, |p, e| p.expr(e));
                p.put_fmt(format_args!("): {dtype}"));
                p.flag("pure", *pure);
            }),
            ThreadOp::Print { message, args } => {
                self.put("print ");
                self.string(message);
                for arg in args {
                    self.put(", ");
                    self.expr(arg);
                }
            }
            ThreadOp::SetMaxRegs { count, increase } => {
                let word = if *increase { "inc" } else { "dec" };
                self.put_fmt(format_args!("set_max_nreg {count} {word}"));
            }
        }
    }

    pub(super) fn micro_op(&mut self, op: &MicroOp) {
        self.names.open();
        self.put_fmt(format_args!("{} ", op.kind.name()));
        if !op.axes.is_empty() {
            self.put("for ");
            self.list(&op.axes, |p, (var, extent)| {
                p.new_var(*var, Some(DType::I32));
                p.put_fmt(format_args!(" < {extent}"));
            });
            self.put(if op.turns { " turning do " } else { " do " });
        }
        self.list(&op.sources, |p, s| p.access(s));
        self.put(" -> ");
        self.access(&op.dest);
        self.put(" inst=");
        self.string(&op.inst.to_string());
        self.attr("width", Some(op.width));
        if let Some(pred) = &op.pred {
            self.expr_attr("pred", pred);
        }
        if let Some(otherwise) = &op.otherwise {
            self.expr_attr("otherwise", otherwise);
        }
        self.attr("counter", op.counter.map(|c| c.name()));
        self.names.close();
    }

    fn access(&mut self, access: &Access) {
        self.region(&access.region);
        if let Some(slot) = &access.slot {
            self.expr_attr("slot", slot);
        }
        self.put(" at [");
        self.list(&access.at, |p, e| p.expr(e));
        self.put("]");
    }

    pub(super) fn device_op(&mut self, op: &DeviceOp) {
        match op {
            DeviceOp::Wait { counter, at_most } => {
                self.put_fmt(format_args!("wait {}({at_most})", counter.name()));
            }
            DeviceOp::Commit(counter) => self.put_fmt(format_args!("commit {}", counter.name())),
            DeviceOp::Barrier(kind) => {
                self.put("barrier ");
                match kind {
                    BarrierKind::Block => self.put("block"),
                    BarrierKind::Bare => self.put("bare"),
                    BarrierKind::Named { id, count } => {
                        self.put_fmt(format_args!("named({id}, {count})"));
                    }
                    BarrierKind::Cond(cond) => {
                        self.put("cond(");
                        self.expr(cond);
                        self.put(")");
                    }
                }
            }
            DeviceOp::Fence(kind) => self.put_fmt(format_args!("fence {}", kind.name())),
            DeviceOp::SetPrio(level) => self.put_fmt(format_args!("set_prio {level}")),
            DeviceOp::Iteration(Some(iteration)) => {
                self.put("iteration ");
                self.expr(iteration);
            }
            DeviceOp::Iteration(None) => self.put("end_iteration"),
            DeviceOp::SchedBarrier(mask) => self.put_fmt(format_args!("sched_barrier {mask}")),
            DeviceOp::SchedGroupBarrier { mask, size, group } => {
                self.put("sched_group_barrier");
                self.attr("mask", Some(mask));
                self.attr("size", Some(size));
                self.attr("group", Some(group));
            }
            DeviceOp::BarrierInit {
                barrier,
                index,
                count,
            } => {
                self.put("barrier_init ");
                self.element(*barrier, std::slice::from_ref(index));
                self.attr("count", Some(count));
            }
        }
    }
}
