//! What HIP says its own way: waits by counts, barriers in LDS, votes of 64 lanes.
//!
//! Waits and barriers are printed as the IR has them.

use tilewright_ir::prints::{self, PrintFormat};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    BarrierKind, Block, Counter, DType, DeviceOp, Expr, FenceKind, Func, Kernel, MicroKind, Scalar,
    Span, StmtKind, Var, VoteKind,
};

use crate::device::Piece;
use crate::kernel::Emitter;
use crate::{Emit, unsupported};

/// The declaration of a kernel's LDS, and the mark in it that its size takes the place of.
pub(crate) const LDS_BYTES: &str = "@lds_bytes@";
pub(crate) const LDS_ARRAY: &str =
    "__shared__ __attribute__((aligned(1024))) unsigned char shared_memory[@lds_bytes@];";

/// Iterations that clang may have at once of a longer loop. By itself it unrolls loops of any
/// constant length wholly, and reads all that they read before the first value is used: a row of
/// 64 elements takes 64 registers.
pub(crate) const UNROLL: u32 = 8;

/// What clang is told. Where waves compute while others of their SIMD multiply, packed arithmetic would wait
/// until the matrix unit is free: none is made of it.
pub(crate) fn flags(func: &Func) -> Vec<String> {
    let mut beside = false;
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::For(l) = &stmt.kind {
                beside |= computes_beside_products(&l.body);
            }
        });
    }
    let flag = beside.then(|| "-fno-slp-vectorize".to_string());
    flag.into_iter().collect()
}

/// Whether products of a loop's body are issued first, and arithmetic is not.
fn computes_beside_products(body: &Block) -> bool {
    let (mut priority, mut first, mut computes) = (0, false, false);
    walk_stmts(body, &mut |stmt| match &stmt.kind {
        StmtKind::Device(DeviceOp::SetPrio(level)) => priority = *level,
        StmtKind::Micro(op) => first |= priority > 0 && op.kind == MicroKind::Mma,
        StmtKind::Store { value, .. } => computes |= priority == 0 && value.dtype() == DType::F32,
        _ => {}
    });
    first && computes
}

impl Emitter<'_> {
    /// `extern "C" __global__ …(…) {`
    pub(crate) fn hip_head(&self, kernel: &Kernel, name: &str, params: &str) -> Emit<String> {
        if kernel.attrs.cluster.is_some_and(|c| c != [1, 1, 1]) {
            return unsupported(
                kernel.span,
                format!("{} has no clusters of blocks", self.target),
            );
        }
        let threads: u32 = kernel.threads.iter().product();
        // What the kernel asks for, at least its own block.
        let blocks = kernel.attrs.min_blocks_per_sm.unwrap_or(1);
        let waves_per_simd = self.machine.waves_on_simd(threads, blocks);
        Ok(format!(
            "extern \"C\" __global__ __attribute__((amdgpu_flat_work_group_size({threads}, \
             {threads}), amdgpu_waves_per_eu({waves_per_simd})))\nvoid {name}({params}) {{"
        ))
    }

    pub(crate) fn hip_vote(
        &mut self,
        kind: VoteKind,
        value: &str,
        result: Var,
        span: Span,
    ) -> Emit<String> {
        self.needs.piece(Piece::Warp);
        if kind.is_of_block() {
            self.settle();
        }
        let threads: u32 = self.threads.iter().product();
        let thread = self.linear_thread();
        let count = |e: &mut Self, value: String| {
            let offset = e.scratch(4);
            format!("tw::block_count((unsigned*)(shared_memory + {offset}), {thread}, {value})")
        };
        let call = match kind {
            VoteKind::Any => format!("tw::any({value})"),
            VoteKind::All => format!("tw::all({value})"),
            VoteKind::Ballot => {
                if self.func.vars[result].dtype.scalar.bits() != Scalar::U64.bits() {
                    return unsupported(span, "a ballot of 64 lanes in fewer bits");
                }
                format!("tw::ballot({value})")
            }
            VoteKind::BlockOr => count(self, value.to_string()) + " > 0",
            VoteKind::BlockAnd => count(self, value.to_string()) + &format!(" == {threads}"),
            VoteKind::BlockCount => count(self, value.to_string()),
        };
        Ok(call)
    }

    /// A line in the memory for them, where there is room.
    pub(crate) fn hip_print(&mut self, message: &str, args: &[Expr], span: Span) -> Emit<()> {
        let values: Vec<Scalar> = args.iter().map(|arg| arg.dtype().scalar).collect();
        let found = self.func.attrs.prints.as_ref().and_then(|prints| {
            let same = |f: &PrintFormat| {
                f.kernel == self.kernel && f.message == message && f.values == values
            };
            let number = prints.formats.iter().position(same)?;
            Some((prints.buffer, number + 1, prints.formats[number].words()))
        });
        let Some((buffer, number, words)) = found else {
            return unsupported(
                span,
                "a line without memory for it: `record-prints` gives it some",
            );
        };
        self.needs.piece(Piece::Print);
        let first = Expr::i32(0);
        let printed = self.place(buffer, &[first], None, 0, span)?.address();
        let room = prints::WORDS - prints::COUNTS;
        let axes = self.func.kernels[self.kernel as usize].grid.len();
        let block = match axes {
            0 | 1 => "blockIdx.x",
            2 => "blockIdx.y * gridDim.x + blockIdx.x",
            _ => "(blockIdx.z * gridDim.y + blockIdx.y) * gridDim.x + blockIdx.x",
        };
        let mut lines = vec![format!("{number}"), block.to_string(), self.linear_thread()];
        for arg in args {
            let carried = prints::carried(arg.dtype().scalar);
            let value = self.converted(arg, carried)?;
            match carried {
                Scalar::F32 => lines.push(format!("__builtin_bit_cast(unsigned, {value})")),
                Scalar::I32 | Scalar::U32 => lines.push(format!("(unsigned)({value})")),
                _ => {
                    let bits = format!("__builtin_bit_cast(unsigned long long, {value})");
                    lines.push(format!("(unsigned){bits}"));
                    lines.push(format!("(unsigned)({bits} >> 32)"));
                }
            }
        }
        let call = format!("tw::print_line({printed}, {room}, {words})");
        self.out.line(format!("if (unsigned* line = {call}) {{"));
        for (at, word) in lines.iter().enumerate() {
            self.out.line(format!("  line[{at}] = {word};"));
        }
        self.out.line("}");
        Ok(())
    }

    pub(crate) fn hip_device_op(&mut self, op: &DeviceOp, span: Span) -> Emit<()> {
        match op {
            DeviceOp::Wait {
                counter: counter @ (Counter::Vmcnt | Counter::Lgkmcnt),
                at_most,
            } => self.wait(*counter, *at_most),
            // Instructions are counted one by one: there are no groups to close.
            DeviceOp::Commit(Counter::Vmcnt | Counter::Lgkmcnt) => {}
            DeviceOp::WaitRead { .. } => {
                return unsupported(span, format!("{} has no bulk copies", self.target));
            }
            DeviceOp::Wait { counter, .. } | DeviceOp::Commit(counter) => {
                return unsupported(
                    span,
                    format!("{} has no counter `{}`", self.target, counter.name()),
                );
            }
            DeviceOp::Barrier(BarrierKind::Block) => {
                self.settle();
                self.out.line("__syncthreads();");
            }
            DeviceOp::Barrier(BarrierKind::Bare) => {
                self.needs.piece(Piece::Waits);
                self.out.line("tw::barrier();");
            }
            DeviceOp::Barrier(BarrierKind::Named { id, count }) => {
                return self.named_barrier(*id, *count);
            }
            // The machine counts waves, not which: the condition is the branch around it.
            DeviceOp::Barrier(BarrierKind::Cond(cond)) => {
                let cond = self.scalar(cond)?;
                self.needs.piece(Piece::Waits);
                self.out.line(format!("if ({cond}) tw::barrier();"));
            }
            DeviceOp::Fence(FenceKind::Block | FenceKind::BarrierInit) => {
                self.out.line("__threadfence_block();");
            }
            DeviceOp::Fence(FenceKind::Device) => self.out.line("__threadfence();"),
            DeviceOp::Fence(FenceKind::Wgmma) => {
                return unsupported(span, format!("{} has no wgmma", self.target));
            }
            // There is no asynchronous proxy to order; the other is for the checker alone.
            DeviceOp::Fence(FenceKind::AsyncProxy) | DeviceOp::Iteration(_) => {}
            DeviceOp::Prefetch { .. } => {
                return unsupported(span, format!("{} fetches no bytes ahead", self.target));
            }
            DeviceOp::SetPrio(level) => {
                self.out
                    .line(format!("__builtin_amdgcn_s_setprio({level});"));
            }
            DeviceOp::SchedBarrier(mask) => {
                self.out
                    .line(format!("__builtin_amdgcn_sched_barrier({mask});"));
            }
            DeviceOp::SchedGroupBarrier { mask, size, group } => self.out.line(format!(
                "__builtin_amdgcn_sched_group_barrier({mask}, {size}, {group});"
            )),
            DeviceOp::BarrierInit {
                barrier,
                index,
                count,
            } => return self.barrier_init(*barrier, index, *count, span),
        }
        Ok(())
    }

    /// Waits for one counter; a count as high as the other goes waits for nothing of it.
    fn wait(&mut self, counter: Counter, at_most: u32) {
        let count = |c: Counter| {
            let most = c.most_in_flight().unwrap_or(u32::MAX);
            if c == counter {
                at_most.min(most)
            } else {
                most
            }
        };
        let (vmcnt, lgkmcnt) = (count(Counter::Vmcnt), count(Counter::Lgkmcnt));
        self.needs.piece(Piece::Waits);
        self.out.line(format!("tw::wait<{vmcnt}, {lgkmcnt}>();"));
    }
}
