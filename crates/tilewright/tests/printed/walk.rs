//! The steps of device IR.

use tilewright::ir::{
    ArriveAt, BarrierKind, Block, BufferOrigin, Counter, DeviceOp, EvictionPolicy, FenceKind, Func,
    Inst, Kernel, Loop, LoopKind, Machine, MemoryOrder, MicroOp, Scope, StmtKind, Target, ThreadOp,
    VoteKind, visit,
};

use crate::{Step, Way, end};

/// The steps of all kernels.
pub fn steps(func: &Func, target: Target) -> Vec<Step> {
    let mut walk = Walk {
        func,
        machine: target.machine(),
        bulk: false,
        steps: Vec::new(),
    };
    for kernel in &func.kernels {
        walk.barriers(kernel);
        walk.block(&kernel.body, false);
    }
    walk.steps
}

struct Walk<'f> {
    func: &'f Func,
    machine: &'static Machine,
    /// Whether the copy engine has to see barriers.
    bulk: bool,
    steps: Vec<Step>,
}

impl Walk<'_> {
    fn op(&mut self, name: impl Into<String>, guarded: bool) {
        self.steps.push(Step::Op(name.into(), guarded));
    }

    /// Arrival barriers are set up before the body: the kernel's own, and those that stand for
    /// barriers of some threads where the machine has none.
    fn barriers(&mut self, kernel: &Kernel) {
        let mut arrivals = 0;
        let mut named = Vec::new();
        let mut bulk = false;
        visit::walk_stmts(&kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Alloc(buffer) => {
                if let BufferOrigin::Barriers(counts) = &self.func.buffers[*buffer].origin {
                    arrivals += counts.len();
                }
            }
            StmtKind::Micro(op) => bulk |= matches!(op.inst, Inst::Tma(_)),
            StmtKind::Thread(ThreadOp::SyncThreads { named: Some(one) }) => named.push(*one),
            StmtKind::Device(DeviceOp::Barrier(BarrierKind::Named { id, count })) => {
                named.push((*id, *count));
            }
            _ => {}
        });
        named.sort_unstable();
        named.dedup();
        if !self.machine.barrier.named {
            arrivals += named.len();
        }
        for _ in 0..arrivals {
            self.op("mbarrier_init", true);
        }
        self.bulk = bulk;
        if bulk && arrivals > 0 {
            self.op("fence barriers", true);
        }
        if arrivals > 0 {
            let barrier = ["barrier", "sync_cluster"][usize::from(kernel.reaches_others())];
            self.op(barrier, false);
        }
    }

    fn block(&mut self, block: &Block, guarded: bool) {
        for stmt in block {
            match &stmt.kind {
                StmtKind::For(l) => self.counted(l, guarded),
                StmtKind::While { body, .. } => {
                    self.steps.push(Step::Loop(Way::Serial));
                    self.block(body, guarded);
                    end(&mut self.steps);
                }
                StmtKind::If {
                    then, otherwise, ..
                } => {
                    self.block(then, true);
                    self.block(otherwise, true);
                }
                StmtKind::WarpGroup { body, .. } => self.block(body, true),
                StmtKind::Micro(op) => self.micro(op, guarded),
                StmtKind::Thread(op) => self.thread(op, guarded),
                StmtKind::Device(op) => self.device(op, guarded),
                _ => {}
            }
        }
    }

    fn counted(&mut self, l: &Loop, guarded: bool) {
        let axis = &l.axes[0];
        // One iteration is the body itself.
        let once = axis.const_trip_count() == Some(1) && axis.start.as_int().is_some();
        if once && !leaves(&l.body) {
            return self.block(&l.body, guarded);
        }
        self.steps.push(Step::Loop(match l.kind {
            LoopKind::Unroll { factor: None } | LoopKind::Vectorized => Way::WrittenOut,
            _ => Way::Serial,
        }));
        self.block(&l.body, guarded);
        end(&mut self.steps);
    }

    fn micro(&mut self, op: &MicroOp, guarded: bool) {
        let mut before = 1;
        for (_, extent) in &op.axes {
            if *extent > 1 {
                let turning = op.turns && before > 1;
                let way = [Way::WrittenOut, Way::Turning][usize::from(turning)];
                self.steps.push(Step::Loop(way));
            }
            before = *extent;
        }
        self.instruction(op, guarded);
        for _ in op.axes.iter().filter(|axis| axis.1 > 1) {
            end(&mut self.steps);
        }
    }

    fn instruction(&mut self, op: &MicroOp, guarded: bool) {
        let dtype = self.func.buffers[op.dest.region.buffer].dtype;
        let bytes = op.width * dtype.bits() / 8;
        // Where something is filled in, all lanes act.
        let some = guarded || (op.pred.is_some() && op.otherwise.is_none());
        match op.inst {
            Inst::Load | Inst::Store => {
                let in_memory = |buffer| {
                    let scope = self.func.buffers[buffer].scope;
                    matches!(scope, Scope::Global | Scope::Shared)
                };
                let from = in_memory(op.sources[0].region.buffer);
                let to = in_memory(op.dest.region.buffer);
                let name = match (from, to) {
                    (true, true) => "copy",
                    (true, false) => "load",
                    _ => "store",
                };
                if name != "copy" && bytes * 8 == dtype.scalar.bits() {
                    return;
                }
                // What lies in one access is aligned to the largest power of two in its size.
                let piece = (1 << bytes.trailing_zeros()).min(16);
                let what = match op.apart {
                    1 => piece.to_string(),
                    apart => format!("{} apart {apart}", piece * 8 / dtype.bits()),
                };
                for _ in 0..bytes / piece {
                    self.op(format!("{name} {what}"), guarded || op.pred.is_some());
                }
            }
            Inst::CpAsync => self.op(format!("cp_async {bytes}"), some),
            Inst::BufferLoadLds => self.op(format!("copy_to_lds {bytes}"), some),
            Inst::LdMatrix { tiles, trans } => {
                self.op(format!("ldmatrix {tiles}{}", transposed(trans)), some);
            }
            Inst::StMatrix { tiles, trans } => {
                self.op(format!("stmatrix {tiles}{}", transposed(trans)), some);
            }
            Inst::DsReadTr => self.op("read_transposed", some),
            Inst::Mma(inst) => self.op(format!("mma {}x{}x{}", inst.m, inst.n, inst.k), some),
            Inst::GroupMma { mma, .. } => {
                self.op(format!("wgmma {}x{}x{}", mma.m, mma.n, mma.k), some);
            }
            Inst::Tma(tile) => {
                let rank = tile.extents().len();
                let to_all = op.arrives.as_ref().is_some_and(|a| a.multicast.is_some());
                let name = if to_all {
                    "tma_multicast"
                } else {
                    op.kind.name()
                };
                let evict = match op.evict {
                    Some(EvictionPolicy::First) => " evict_first",
                    Some(EvictionPolicy::Last) => " evict_last",
                    Some(EvictionPolicy::Normal) => " evict_normal",
                    None => "",
                };
                let guarded = guarded || op.pred.is_some();
                self.op(format!("{name} {rank}{evict}"), guarded);
            }
        }
    }

    fn thread(&mut self, op: &ThreadOp, guarded: bool) {
        match op {
            ThreadOp::AtomicRmw { order, .. } => self.ordered("atomic", *order, guarded),
            ThreadOp::AtomicLoad { order, .. } => self.ordered("atomic_load", *order, guarded),
            ThreadOp::AtomicStore { order, .. } => self.ordered("atomic_store", *order, guarded),
            ThreadOp::AtomicVecAdd { lanes, .. } => {
                self.op(format!("atomic_add {lanes}"), guarded);
            }
            ThreadOp::Shuffle { .. } => self.op("shuffle", guarded),
            ThreadOp::WarpReduce { .. } => self.op("warp_fold", guarded),
            ThreadOp::Vote { kind, .. } => {
                let of_block = matches!(
                    kind,
                    VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount
                );
                self.op(["vote", "block_vote"][usize::from(of_block)], guarded);
            }
            // Before its values are exchanged, and before they are read.
            ThreadOp::AllReduce { .. } => {
                self.op("barrier", guarded);
                self.op("barrier", guarded);
            }
            ThreadOp::SyncThreads { named: None } => self.op("barrier", guarded),
            ThreadOp::SyncThreads { named: Some(_) } => self.op("named", guarded),
            ThreadOp::SyncWarp => self.op("sync_warp", guarded),
            ThreadOp::SyncGrid => self.op("sync_grid", guarded),
            ThreadOp::SyncCluster => self.op("sync_cluster", guarded),
            ThreadOp::ClusterArrive => self.op("cluster_arrive", guarded),
            ThreadOp::ClusterWait => self.op("cluster_wait", guarded),
            ThreadOp::BarrierArrive { warp, at, .. } => {
                let of_cluster = match at {
                    ArriveAt::Own => "",
                    ArriveAt::All => "_cluster",
                    ArriveAt::Block(_) => "_at",
                };
                let of_warp = ["", "_warp"][usize::from(*warp)];
                self.op(format!("mbarrier_arrive{of_cluster}{of_warp}"), guarded);
            }
            ThreadOp::BarrierWait { .. } => self.op("mbarrier_wait", guarded),
            ThreadOp::BarrierExpect { .. } => self.op("mbarrier_expect", guarded),
            ThreadOp::Dp4a { .. }
            | ThreadOp::Extern { .. }
            | ThreadOp::Print { .. }
            | ThreadOp::SetMaxRegs { .. } => {}
        }
    }

    fn ordered(&mut self, name: &str, order: MemoryOrder, guarded: bool) {
        use MemoryOrder::{AcqRel, Acquire, Consume, Release, SeqCst};
        if matches!(order, Release | AcqRel | SeqCst) {
            self.op("fence device", guarded);
        }
        self.op(name, guarded);
        if matches!(order, Acquire | Consume | AcqRel | SeqCst) {
            self.op("fence device", guarded);
        }
    }

    fn device(&mut self, op: &DeviceOp, guarded: bool) {
        let bare = ["barrier", "bare"][usize::from(self.machine.barrier.bare)];
        match op {
            DeviceOp::Wait { counter, at_most } => {
                // The other counter's most is no wait.
                let [v, l] = [Counter::Vmcnt, Counter::Lgkmcnt].map(|c| match c == *counter {
                    true => *at_most,
                    false => c.most_in_flight().unwrap_or(0),
                });
                let name = match counter {
                    Counter::CpAsync => format!("wait cp_async {at_most}"),
                    Counter::Wgmma => format!("wait wgmma {at_most}"),
                    Counter::TmaStore => format!("wait tma_store {at_most}"),
                    _ => format!("wait {v}, {l}"),
                };
                self.op(name, guarded);
            }
            DeviceOp::WaitRead { at_most } => {
                self.op(format!("wait tma_store {at_most} read"), guarded);
            }
            DeviceOp::Commit(Counter::TmaStore) => self.op("commit tma_store", guarded),
            DeviceOp::Commit(Counter::CpAsync) => self.op("commit", guarded),
            DeviceOp::Commit(Counter::Wgmma) => self.op("commit wgmma", guarded),
            DeviceOp::Barrier(BarrierKind::Block) => self.op("barrier", guarded),
            DeviceOp::Barrier(BarrierKind::Bare) => self.op(bare, guarded),
            DeviceOp::Barrier(BarrierKind::Named { .. }) => self.op("named", guarded),
            DeviceOp::Barrier(BarrierKind::Cond(_)) => self.op(bare, true),
            DeviceOp::Fence(FenceKind::Wgmma) => self.op("fence wgmma", guarded),
            DeviceOp::Fence(FenceKind::AsyncProxy) if self.machine.async_proxy => {
                self.op("fence async_proxy", guarded);
            }
            DeviceOp::Fence(FenceKind::Device) => self.op("fence device", guarded),
            DeviceOp::Fence(FenceKind::BarrierInit) if self.bulk => {
                self.op("fence barriers", guarded);
            }
            DeviceOp::Fence(FenceKind::Block | FenceKind::BarrierInit) => {
                self.op("fence block", guarded);
            }
            DeviceOp::BarrierInit { .. } => self.op("mbarrier_init", true),
            _ => {}
        }
    }
}

fn transposed(trans: bool) -> &'static str {
    if trans { " trans" } else { "" }
}

/// Whether the body leaves the loop around it.
fn leaves(body: &Block) -> bool {
    body.iter().any(|stmt| match &stmt.kind {
        StmtKind::Break | StmtKind::Continue => true,
        StmtKind::For(_) | StmtKind::While { .. } => false,
        _ => visit::child_blocks(stmt).into_iter().any(leaves),
    })
}
