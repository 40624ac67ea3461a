//! Thread operations.
//!
//! `barrier-operand`, `sync-named`, `shuffle-width`, `vote-type`, `allreduce-types`, `dp4a-types`,
//! `vec-add`, and of atomics the rules of tile atomics

use crate::buffer::Scope;
use crate::dtype::{DType, Scalar};
use crate::expr::Expr;
use crate::func::VarKind;
use crate::ids::{Buffer, Var};
use crate::target::NAMED_BARRIERS;
use crate::thread_op::{ArriveAt, Combiner, MemoryOrder, ThreadOp, VoteKind};
use crate::verify::Verifier;
use crate::verify::expr::AccessKind;

impl<'a> Verifier<'a> {
    pub(super) fn thread_op(&mut self, op: &'a ThreadOp) {
        match op {
            ThreadOp::AtomicRmw {
                op: rmw,
                buffer,
                indices,
                value,
                ..
            } => {
                if let Some(dtype) = self.atomic_element(*buffer, indices) {
                    self.value_of(value, dtype, "atomic-types", "the operand");
                    self.atomic_target(*rmw, *buffer);
                }
            }
            ThreadOp::AtomicVecAdd {
                dst,
                dst_indices,
                src,
                src_indices,
                lanes,
            } => {
                let to = self.atomic_element(*dst, dst_indices);
                let from = self.element(*src, src_indices, AccessKind::Address);
                let (Some(to), Some(from)) = (to, from) else {
                    return;
                };
                let adds = matches!(to.scalar, Scalar::F16 | Scalar::BF16 | Scalar::F32);
                if !adds || !(from == to || from == DType::F32) || !matches!(lanes, 2 | 4) {
                    let message = format!("adding {lanes} of {from} to {to}");
                    let error = self.fail("vec-add", message);
                    error
                        .help
                        .push("2 or 4 of float16, bfloat16 or float32".to_string());
                }
            }
            ThreadOp::AtomicLoad {
                buffer,
                indices,
                order,
                ..
            } => {
                self.atomic_element(*buffer, indices);
                if matches!(order, MemoryOrder::Release | MemoryOrder::AcqRel) {
                    self.fail("atomic-order", format!("a load does not {order:?}"));
                }
            }
            ThreadOp::AtomicStore {
                buffer,
                indices,
                value,
                order,
            } => {
                if let Some(dtype) = self.atomic_element(*buffer, indices) {
                    self.value_of(value, dtype, "atomic-types", "the operand");
                }
                let writes = matches!(
                    order,
                    MemoryOrder::Relaxed | MemoryOrder::Release | MemoryOrder::SeqCst
                );
                if !writes {
                    self.fail("atomic-order", format!("a store does not {order:?}"));
                }
            }
            ThreadOp::Shuffle {
                value, lane, width, ..
            } => {
                self.expr(value);
                self.integer(lane, "shuffle-width", "the lane");
                if !width.is_power_of_two() || *width > 64 {
                    self.fail("shuffle-width", format!("segments of {width} lanes"));
                }
            }
            ThreadOp::Vote { kind, value, .. } => {
                self.expr(value);
                let t = value.dtype();
                let counts = match kind {
                    VoteKind::Any | VoteKind::All | VoteKind::Ballot => false,
                    VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount => {
                        self.collective("a vote of the block");
                        t.scalar.is_int()
                    }
                };
                if t.lanes != 1 || !(t.scalar == Scalar::Bool || counts) {
                    self.fail("vote-type", format!("a vote on {t}"));
                }
            }
            ThreadOp::WarpReduce { kind, value, .. } => {
                self.expr(value);
                let t = value.dtype();
                if !Self::is_number(t) || kind.is_bitwise() && t.scalar.is_float() {
                    self.fail(
                        "reduce-types",
                        format!("a reduction of {t} by {}", kind.name()),
                    );
                }
            }
            ThreadOp::AllReduce {
                combiner,
                value,
                cond,
                dst,
                dst_indices,
                axes,
            } => {
                self.expr(value);
                self.condition(cond);
                let element = self.element(*dst, dst_indices, AccessKind::Store);
                self.combiner(combiner, value.dtype());
                if element.is_some_and(|t| t != value.dtype()) {
                    self.fail("allreduce-types", "value and destination differ in type");
                }
                let ascending = axes.windows(2).all(|w| w[0] < w[1]);
                if !ascending || axes.iter().any(|a| *a > 2) {
                    self.fail("allreduce-types", "thread axes are x, y and z, in order");
                }
            }
            ThreadOp::SyncThreads { named: None } => self.collective("a barrier of the block"),
            ThreadOp::SyncThreads {
                named: Some((id, count)),
            } => {
                let threads = 1..=self.num_threads;
                if *id >= NAMED_BARRIERS || !threads.contains(count) {
                    self.fail("sync-named", format!("barrier {id} of {count} threads"));
                }
            }
            ThreadOp::SyncWarp => {}
            ThreadOp::SyncGrid => self.collective("a barrier of the grid"),
            ThreadOp::SyncCluster | ThreadOp::ClusterArrive | ThreadOp::ClusterWait => {
                self.collective("a barrier of the cluster");
            }
            ThreadOp::BarrierArrive {
                barrier, index, at, ..
            } => {
                self.barrier_operand(*barrier, index);
                if let ArriveAt::Block(rank) = at {
                    self.integer(rank, "barrier-operand", "the block of the cluster");
                }
            }
            ThreadOp::BarrierWait {
                barrier,
                index,
                parity,
            } => {
                self.barrier_operand(*barrier, index);
                self.integer(parity, "barrier-operand", "the parity");
            }
            ThreadOp::BarrierExpect {
                barrier,
                index,
                bytes,
                ..
            } => {
                self.barrier_operand(*barrier, index);
                self.integer(bytes, "barrier-operand", "the number of bytes");
            }
            ThreadOp::Dp4a {
                a,
                a_indices,
                b,
                b_indices,
                c,
                c_indices,
            } => {
                let x = self.element(*a, a_indices, AccessKind::Load);
                let y = self.element(*b, b_indices, AccessKind::Load);
                let z = self.element(*c, c_indices, AccessKind::Store);
                if let (Some(x), Some(y), Some(z)) = (x, y, z)
                    && (x, y, z) != (DType::I8, DType::I8, DType::I32)
                {
                    self.fail(
                        "dp4a-types",
                        format!("a product of {x} and {y} added to {z}"),
                    );
                }
            }
            ThreadOp::Extern { args, .. } | ThreadOp::Print { args, .. } => self.exprs(args),
            ThreadOp::SetMaxRegs { .. } => {}
        }
        if let Some(var) = op.result() {
            self.bind_var(var, VarKind::Let);
            if let Some(dtype) = op.result_type(self.func) {
                self.result_var(var, dtype, "result-type");
            }
        }
    }

    /// The element type, if the access is sound.
    fn element(
        &mut self,
        buffer: Buffer,
        indices: &'a [Expr],
        access: AccessKind,
    ) -> Option<DType> {
        self.exprs(indices);
        self.indices(buffer, indices, self.at, access)
            .then(|| self.func.buffers[buffer].dtype)
    }

    fn atomic_element(&mut self, buffer: Buffer, indices: &'a [Expr]) -> Option<DType> {
        let dtype = self.element(buffer, indices, AccessKind::Address)?;
        self.buffer_in_scope(
            buffer,
            &[Scope::Global, Scope::Shared],
            "atomic-scope",
            "the target",
        )
        .then_some(dtype)
    }

    fn combiner(&mut self, combiner: &'a Combiner, dtype: DType) {
        self.expr(&combiner.identity);
        let since = self.open();
        self.bind_var(combiner.lhs, VarKind::Bound);
        self.bind_var(combiner.rhs, VarKind::Bound);
        self.expr(&combiner.body);
        self.close(since);
        let var = |v: Var| self.func.vars.get(v).map_or(dtype, |d| d.dtype);
        let types = [
            var(combiner.lhs),
            var(combiner.rhs),
            combiner.body.dtype(),
            combiner.identity.dtype(),
        ];
        if types != [dtype; 4] {
            self.fail(
                "allreduce-types",
                format!("the fold is not of {dtype} to {dtype}"),
            );
        }
    }
}
