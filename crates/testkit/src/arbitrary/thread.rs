//! Thread operations: after samples, and those with lists or code of their own.

use crate::arbitrary::Gen;
use crate::arbitrary::samples::Sample;
use tilewright_ir::buffer::Scope;
use tilewright_ir::dtype::{DType, Scalar};
use tilewright_ir::expr::Expr;
use tilewright_ir::func::VarKind;
use tilewright_ir::stmt::StmtKind;
use tilewright_ir::thread_op::{Combiner, ThreadOp};

impl Gen<'_> {
    pub(super) fn thread_statement(&mut self) {
        let op = match self.pick(12) {
            0 => self.allreduce(),
            1 => {
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
            2 => ThreadOp::Print {
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
            3..=6 if !self.in_parallel => return self.sampled(Sample::OutsideParallel),
            _ => return self.sampled(Sample::Anywhere),
        };
        self.emit(StmtKind::Thread(op));
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
}
