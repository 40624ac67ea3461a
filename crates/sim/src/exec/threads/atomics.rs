//! Atomics on single elements.

use tilewright_ir::{AtomicOp, Expr, Span, ThreadOp, thread_ops};

use super::plain::consecutive;
use super::{Code as Any, push, stray};
use crate::compile::expr;
use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::error::Eval;
use crate::exec::{Exec, cast_slot};
use crate::program::{Access, Num, Op, Place};

#[derive(Clone, Debug)]
pub(super) enum Code {
    Rmw {
        op: AtomicOp,
        target: Access,
        value: Num,
        result: Option<Place>,
    },
    VecAdd {
        dst: Vec<Access>,
        src: Vec<Access>,
    },
}

pub(super) fn compile(b: &mut Builder<'_, '_>, op: &ThreadOp, span: Span) -> Compiled<()> {
    let code = match op {
        ThreadOp::AtomicRmw {
            op,
            buffer,
            indices,
            value,
            result,
            ..
        } => {
            let scalar = b.names.func.buffers[*buffer].dtype.scalar;
            let target = b.store_target(*buffer, indices, 0, span)?;
            if result.is_some() {
                b.names.reads(target.buffer);
            }
            Code::Rmw {
                op: *op,
                target,
                value: expr::cast(b.names, value, 0, scalar)?,
                result: match result {
                    Some(var) => Some(b.names.define_scalar(*var, span)?),
                    None => None,
                },
            }
        }
        ThreadOp::AtomicVecAdd {
            dst,
            dst_indices,
            src,
            src_indices,
            lanes,
        } => Code::VecAdd {
            dst: consecutive(b, *dst, dst_indices, *lanes, true, span)?,
            src: consecutive(b, *src, src_indices, *lanes, false, span)?,
        },
        // Nothing comes between statements here, so these are plain accesses.
        ThreadOp::AtomicLoad {
            buffer,
            indices,
            result,
            ..
        } => {
            let dtype = b.names.func.buffers[*buffer].dtype;
            let load = Expr::load(*buffer, indices.clone(), dtype).with_span(span);
            let varying = b.var_varies(*result);
            let value = expr::num(b.names, &load, 0)?;
            let place = b.names.define_scalar(*result, span)?;
            b.emit(Op::Let {
                place,
                value,
                varying,
            });
            return Ok(());
        }
        ThreadOp::AtomicStore {
            buffer,
            indices,
            value,
            ..
        } => {
            let op = b.store(*buffer, indices, value, span)?;
            b.emit(op);
            return Ok(());
        }
        thread_ops!(lanes barriers plain) => return Err(stray(b)),
    };
    push(b, Any::Atomic(code), true);
    Ok(())
}

impl Exec<'_, '_> {
    pub(super) fn atomic_op(&mut self, code: &Code) -> Eval<()> {
        match code {
            Code::Rmw {
                op,
                target,
                value,
                result,
            } => self.atomic_rmw(*op, target, value, *result),
            Code::VecAdd { dst, src } => self.atomic_vec_add(dst, src),
        }
    }

    fn atomic_rmw(
        &mut self,
        op: AtomicOp,
        target: &Access,
        value: &Num,
        result: Option<Place>,
    ) -> Eval<()> {
        let program = self.program;
        let info = &program.buffers[target.buffer as usize];
        let value = self.num(value)?;
        let old = match self.element(info, target)? {
            Some(index) => self.atomic(op, info, index, value, result.is_some(), |this| {
                this.coordinates(target)
            })?,
            None => info.safe,
        };
        if let Some(place) = result {
            self.set(place, old);
        }
        Ok(())
    }

    fn atomic_vec_add(&mut self, dst: &[Access], src: &[Access]) -> Eval<()> {
        let program = self.program;
        for (target, source) in dst.iter().zip(src) {
            let info = &program.buffers[target.buffer as usize];
            let from = program.buffers[source.buffer as usize].scalar;
            let value = cast_slot(from, info.scalar, self.load_element(source)?);
            if let Some(index) = self.element(info, target)? {
                self.atomic(AtomicOp::Add, info, index, value, false, |this| {
                    this.coordinates(target)
                })?;
            }
        }
        Ok(())
    }
}
