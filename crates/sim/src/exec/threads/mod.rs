//! Thread operations, a file a family: what each becomes, and what it does.

mod atomics;
mod barriers;
pub(crate) mod lanes;
pub(crate) mod plain;

use tilewright_ir::operand::Operand;
use tilewright_ir::{Span, ThreadOp, thread_ops};

use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::error::{Eval, RunError, codes};
use crate::exec::Exec;
use crate::exec::state::Wait;
use crate::program::Op;
pub(crate) use barriers::device;
pub(super) use barriers::{BarrierRef, barrier_ref};

/// A thread-level operation with effects or on several threads.
#[derive(Clone, Debug)]
pub(crate) struct Thread {
    code: Code,
    /// Whether threads may do different things, or receive different results.
    varying: bool,
    /// Inside a parallel loop: done once, for the point.
    in_point: bool,
}

#[derive(Clone, Debug)]
enum Code {
    Atomic(atomics::Code),
    Lanes(lanes::Code),
    Barrier(barriers::Code),
    Plain(plain::Code),
}

/// Compiles a thread operation.
pub(crate) fn compile(b: &mut Builder<'_, '_>, op: &ThreadOp, span: Span) -> Compiled<()> {
    if b.names.in_point && op.meets() {
        return Err(RunError::new(
            codes::THREAD_IN_PARALLEL,
            span,
            "threads meet here, but a parallel loop has points, not threads",
        )
        .help("move it out of the parallel loop"));
    }
    match op {
        thread_ops!(atomics) => atomics::compile(b, op, span),
        thread_ops!(lanes) => lanes::compile(b, op, span),
        thread_ops!(barriers) => barriers::compile(b, op),
        thread_ops!(plain) => plain::compile(b, op, span),
    }
}

fn push(b: &mut Builder<'_, '_>, code: Code, varying: bool) {
    let in_point = b.names.in_point;
    b.emit(Op::Thread(Box::new(Thread {
        code,
        varying,
        in_point,
    })));
}

/// Whether threads may disagree on what the operation takes or gives.
fn varies(b: &Builder<'_, '_>, op: &ThreadOp) -> bool {
    let mut varying = op.result().is_some_and(|var| b.names.var_varies(var));
    op.operands(&mut |operand| {
        if let Operand::Elements { buffer, .. } = operand {
            varying |= b.names.buffer_varies(*buffer);
        }
        operand.exprs(&mut |e| varying |= b.names.varying(e));
    });
    varying && !b.names.in_point
}

/// What a family says of an operation that is not its own.
fn stray(b: &Builder<'_, '_>) -> RunError {
    b.invalid("an operation of another family")
}

impl Exec<'_, '_> {
    /// Does a thread operation, or says what it has to wait for.
    pub(super) fn thread(&mut self, thread: &Thread) -> Eval<Option<Wait>> {
        let Thread {
            code,
            varying,
            in_point,
        } = thread;
        match code {
            Code::Atomic(code) if *in_point => self.atomic_op(code)?,
            Code::Atomic(code) => self.each_lane(|this| this.atomic_op(code))?,
            Code::Lanes(code) => self.lanes_op(code, *varying)?,
            Code::Barrier(code) => return self.barrier_op(code, *varying),
            Code::Plain(code) if *varying => self.each_lane(|this| this.plain_op(code))?,
            Code::Plain(code) => self.plain_op(code)?,
        }
        Ok(None)
    }
}
