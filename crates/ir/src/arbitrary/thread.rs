//! Thread operations on buffers made for them.

use crate::arbitrary::Gen;
use crate::buffer::{BufferOrigin, Scope};
use crate::dtype::{DType, Scalar};
use crate::expr::Expr;
use crate::func::VarKind;
use crate::stmt::StmtKind;
use crate::text::Word;
use crate::thread_op::{AtomicOp, Combiner, MemoryOrder, ShuffleKind, ThreadOp, VoteKind};
use crate::tile_op::ReduceKind;

impl Gen<'_> {
    pub(super) fn thread_statement(&mut self) {
        let op = match self.pick(12) {
            0 => self.sync_op(),
            1 => {
                let buffer = self.counters(DType::I32);
                let indices = vec![Expr::i32(self.pick(8) as i32)];
                let value = self.expr(DType::I32, 2);
                let result = self.optional(|g| g.visible_var(DType::I32, VarKind::Let));
                ThreadOp::AtomicRmw {
                    op: self.one_of(AtomicOp::VALUES),
                    buffer,
                    indices,
                    value,
                    order: self.one_of(MemoryOrder::VALUES),
                    result,
                }
            }
            2 => {
                let dst = self.counters(DType::F32);
                let src = self.alloc(Scope::Local, DType::F32, &[4]);
                ThreadOp::AtomicVecAdd {
                    dst,
                    dst_indices: vec![Expr::i32(4)],
                    src,
                    src_indices: vec![Expr::i32(0)],
                    lanes: self.one_of(&[2, 4]),
                }
            }
            3 => {
                let buffer = self.counters(DType::I32);
                let order = self.one_of(&[MemoryOrder::Acquire, MemoryOrder::SeqCst]);
                ThreadOp::AtomicLoad {
                    buffer,
                    indices: vec![Expr::i32(1)],
                    order,
                    result: self.visible_var(DType::I32, VarKind::Let),
                }
            }
            4 => {
                let buffer = self.counters(DType::I32);
                ThreadOp::AtomicStore {
                    buffer,
                    indices: vec![Expr::i32(1)],
                    value: self.expr(DType::I32, 2),
                    order: self.one_of(&[MemoryOrder::Relaxed, MemoryOrder::Release]),
                }
            }
            5 => {
                let dtype = self.one_of(&[DType::F32, DType::I32]);
                let value = self.expr(dtype, 2);
                let lane = self.int_expr(DType::I32, 1);
                ThreadOp::Shuffle {
                    kind: self.one_of(ShuffleKind::VALUES),
                    value,
                    lane,
                    width: self.one_of(&[32, 8, 64]),
                    result: self.visible_var(dtype, VarKind::Let),
                }
            }
            6 => {
                let kind = self.one_of(VoteKind::VALUES);
                let value = self.bool_expr(2);
                let result = self.visible_var(kind.result_type(), VarKind::Let);
                ThreadOp::Vote {
                    kind,
                    value,
                    result,
                }
            }
            7 => {
                let kind = self.one_of(&ReduceKind::ALL);
                let value = self.expr(DType::I32, 2);
                ThreadOp::WarpReduce {
                    kind,
                    value,
                    result: self.visible_var(DType::I32, VarKind::Let),
                }
            }
            8 => self.allreduce(),
            9 => {
                let int8 = |g: &mut Self| g.alloc(Scope::Local, DType::I8, &[8]);
                let (a, b) = (int8(self), int8(self));
                let c = self.alloc(Scope::Local, DType::I32, &[2]);
                ThreadOp::Dp4a {
                    a,
                    a_indices: vec![Expr::i32(0)],
                    b,
                    b_indices: vec![Expr::i32(4)],
                    c,
                    c_indices: vec![Expr::i32(1)],
                }
            }
            10 => {
                let dtype = self.one_of(&[DType::F32, DType::HANDLE, DType::scalar(Scalar::I8)]);
                let args = self.list(2, |g| g.expr(DType::F32, 2));
                let result = self.optional(|g| g.visible_var(dtype, VarKind::Let));
                ThreadOp::Extern {
                    name: self.text(),
                    args,
                    dtype,
                    pure: self.chance(2),
                    result,
                }
            }
            _ => ThreadOp::Print {
                message: self.text(),
                args: self.list(3, |g| {
                    let dtype = g.any_dtype();
                    let scalar = match dtype.scalar {
                        Scalar::Handle => Scalar::I32,
                        other => other,
                    };
                    g.expr(DType::vector(scalar, dtype.lanes), 2)
                }),
            },
        };
        self.emit(StmtKind::Thread(op));
    }

    /// Shared memory to do atomics on; in a parallel loop, which allocates none, global.
    fn counters(&mut self, dtype: DType) -> crate::Buffer {
        if !self.in_parallel {
            return self.alloc(Scope::Shared, dtype, &[8]);
        }
        let shape = self.shape_of(&[8]);
        let buffer = self.new_buffer(Scope::Global, dtype, shape, BufferOrigin::Workspace);
        self.func.workspaces.push(buffer);
        buffer
    }

    fn allreduce(&mut self) -> ThreadOp {
        let dst = self.alloc(Scope::Local, DType::F32, &[1]);
        let lhs = self.var(DType::F32, VarKind::Bound);
        let rhs = self.var(DType::F32, VarKind::Bound);
        let body = self.func.var_expr(lhs).max(self.func.var_expr(rhs));
        ThreadOp::AllReduce {
            combiner: Combiner {
                lhs,
                rhs,
                body,
                identity: Self::f64_literal(f64::NEG_INFINITY, DType::F32),
            },
            value: self.expr(DType::F32, 2),
            cond: self.bool_expr(2),
            dst,
            dst_indices: vec![Expr::i32(0)],
            axes: self.one_of(&[vec![0], vec![0, 1], vec![2], vec![]]),
        }
    }

    fn sync_op(&mut self) -> ThreadOp {
        if self.in_parallel {
            return ThreadOp::SyncWarp;
        }
        match self.pick(8) {
            0 => ThreadOp::SyncThreads { named: None },
            1 => ThreadOp::SyncThreads {
                named: Some((self.pick(16) as u32, 128)),
            },
            2 => ThreadOp::SyncWarp,
            3 => ThreadOp::SyncGrid,
            4 => ThreadOp::SetMaxRegs {
                count: self.one_of(&[24, 240]),
                increase: self.chance(2),
            },
            other => {
                let shape = self.shape_of(&[2]);
                let origin = BufferOrigin::Barriers(vec![128, 1]);
                let barrier = self.alloc_as(Scope::Barrier, DType::U64, shape, origin);
                let index = Expr::i32(self.pick(2) as i32);
                match other {
                    5 => ThreadOp::BarrierArrive { barrier, index },
                    6 => ThreadOp::BarrierWait {
                        barrier,
                        index,
                        parity: self.int_expr(DType::I32, 2),
                    },
                    _ => ThreadOp::BarrierExpect {
                        barrier,
                        index,
                        bytes: self.int_expr(DType::I32, 2),
                        arrive: self.chance(2),
                    },
                }
            }
        }
    }
}
