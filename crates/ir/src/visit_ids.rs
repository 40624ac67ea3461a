//! Walks over the ids that stand in statements and buffers outside of expressions.
//!
//! Together with [`crate::visit`], which gives the expressions, this reaches every variable
//! and buffer a statement mentions.

use crate::buffer::{BufferData, BufferOrigin, LayoutAttr};
use crate::device_op::DeviceOp;
use crate::expr::Expr;
use crate::ids::{Buffer, Var};
use crate::operand::{Operand, OperandMut};
use crate::stmt::{LoopKind, Stmt, StmtKind};
use crate::visit::stmt_exprs;

/// An id at its place.
#[derive(Debug)]
pub enum IdMut<'a> {
    Var(&'a mut Var),
    Buffer(&'a mut Buffer),
}

/// A variable or a buffer.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Id {
    Var(Var),
    Buffer(Buffer),
}

/// Calls `f` on every id of the statement that is not in an expression, nor in the blocks
/// inside it.
pub fn stmt_ids(stmt: &Stmt, f: &mut dyn FnMut(Id)) {
    each_id(&stmt.kind, f);
}

/// Calls `f` on every id of the statement that is not in an expression, nor in the blocks
/// inside it.
pub fn stmt_ids_mut(stmt: &mut Stmt, f: &mut dyn FnMut(IdMut<'_>)) {
    each_id_mut(&mut stmt.kind, f);
}

/// Calls `f` on every buffer the statement itself mentions, in expressions too.
pub fn stmt_buffers(stmt: &Stmt, f: &mut dyn FnMut(Buffer)) {
    stmt_ids(stmt, &mut |id| {
        if let Id::Buffer(b) = id {
            f(b);
        }
    });
    stmt_exprs(stmt, &mut |e| expr_buffers(e, f));
}

/// Calls `f` on every buffer of the expression.
pub fn expr_buffers(expr: &Expr, f: &mut dyn FnMut(Buffer)) {
    expr.walk_memory(&mut |_, buffer, _| f(buffer));
}

/// Calls `f` on every variable that a layout binds.
pub fn layout_vars(layout: &LayoutAttr, f: &mut dyn FnMut(Var)) {
    match layout {
        LayoutAttr::Linear | LayoutAttr::Swizzled | LayoutAttr::Placed(_) | LayoutAttr::Held(_) => {
        }
        LayoutAttr::Map(map) => map.inputs.iter().copied().for_each(f),
        LayoutAttr::FragmentMap(map) => map.inputs.iter().copied().chain(map.replica).for_each(f),
    }
}

/// Calls `f` on every variable that a layout binds.
pub fn layout_vars_mut(layout: &mut LayoutAttr, f: &mut dyn FnMut(&mut Var)) {
    match layout {
        LayoutAttr::Linear | LayoutAttr::Swizzled | LayoutAttr::Placed(_) | LayoutAttr::Held(_) => {
        }
        LayoutAttr::Map(map) => map.inputs.iter_mut().for_each(f),
        LayoutAttr::FragmentMap(map) => {
            map.inputs.iter_mut().for_each(&mut *f);
            map.replica.iter_mut().for_each(f);
        }
    }
}

/// Generates the shared and the mutable walk over a declaration.
macro_rules! buffer_walk {
    ($name:ident, $layout:ident, $($mutability:tt)?) => {
        /// Calls `f` on every expression of a buffer's declaration, its layout included.
        pub fn $name(
            data: &$($mutability)? BufferData,
            f: &mut dyn FnMut(&$($mutability)? Expr),
        ) {
            for e in &$($mutability)? data.shape {
                f(e);
            }
            for e in (&$($mutability)? data.strides).into_iter().flatten() {
                f(e);
            }
            match &$($mutability)? data.origin {
                BufferOrigin::Pointer(e) => f(e),
                BufferOrigin::Param
                | BufferOrigin::Workspace
                | BufferOrigin::Alloc
                | BufferOrigin::Barriers(_)
                | BufferOrigin::Reducer(_)
                | BufferOrigin::View(_) => {}
            }
            if let Some(e) = &$($mutability)? data.safe_value {
                f(e);
            }
            if let Some(layout) = &$($mutability)? data.layout {
                $layout(layout, f);
            }
        }

        /// Calls `f` on every expression of a layout.
        pub fn $layout(
            layout: &$($mutability)? LayoutAttr,
            f: &mut dyn FnMut(&$($mutability)? Expr),
        ) {
            match layout {
                LayoutAttr::Linear
        | LayoutAttr::Swizzled
        | LayoutAttr::Placed(_)
        | LayoutAttr::Held(_) => {}
                LayoutAttr::Map(map) => {
                    for e in &$($mutability)? map.outputs {
                        f(e);
                    }
                }
                LayoutAttr::FragmentMap(map) => {
                    f(&$($mutability)? map.thread);
                    for e in &$($mutability)? map.slots {
                        f(e);
                    }
                }
            }
        }
    };
}

buffer_walk!(buffer_exprs, layout_exprs,);
buffer_walk!(buffer_exprs_mut, layout_exprs_mut, mut);

fn var_at(var: &Var, f: &mut dyn FnMut(Id)) {
    f(Id::Var(*var));
}

fn buffer_at(buffer: &Buffer, f: &mut dyn FnMut(Id)) {
    f(Id::Buffer(*buffer));
}

fn layout_at(layout: &LayoutAttr, f: &mut dyn FnMut(Id)) {
    layout_vars(layout, &mut |v| f(Id::Var(v)));
}

fn var_at_mut(var: &mut Var, f: &mut dyn FnMut(IdMut<'_>)) {
    f(IdMut::Var(var));
}

fn buffer_at_mut(buffer: &mut Buffer, f: &mut dyn FnMut(IdMut<'_>)) {
    f(IdMut::Buffer(buffer));
}

fn layout_at_mut(layout: &mut LayoutAttr, f: &mut dyn FnMut(IdMut<'_>)) {
    layout_vars_mut(layout, &mut |v| f(IdMut::Var(v)));
}

fn operand_at(operand: Operand<'_>, f: &mut dyn FnMut(Id)) {
    match operand {
        Operand::Elements { buffer, .. }
        | Operand::Whole { buffer, .. }
        | Operand::Barrier { buffer, .. } => f(Id::Buffer(*buffer)),
        Operand::Region { region, .. } => f(Id::Buffer(region.buffer)),
        Operand::Result(var) | Operand::Bound(var) => f(Id::Var(*var)),
        Operand::Value(_) => {}
    }
}

fn operand_at_mut(operand: OperandMut<'_>, f: &mut dyn FnMut(IdMut<'_>)) {
    match operand {
        OperandMut::Elements { buffer, .. }
        | OperandMut::Whole { buffer, .. }
        | OperandMut::Barrier { buffer, .. } => f(IdMut::Buffer(buffer)),
        OperandMut::Region { region, .. } => f(IdMut::Buffer(&mut region.buffer)),
        OperandMut::Result(var) | OperandMut::Bound(var) => f(IdMut::Var(var)),
        OperandMut::Value(_) => {}
    }
}

/// Generates the shared and the mutable walk from one list of fields.
macro_rules! id_walk {
    ($name:ident, $operands:ident, $operand:ident, $id:ty, $var:ident, $buffer:ident, $layout:ident, $($mutability:tt)?) => {
        fn $name(kind: &$($mutability)? StmtKind, f: &mut dyn FnMut($id)) {
            match kind {
                StmtKind::Let { var, .. } => $var(var, f),
                StmtKind::Store { buffer, .. } | StmtKind::Alloc(buffer) => $buffer(buffer, f),
                StmtKind::For(l) => {
                    for axis in &$($mutability)? l.axes {
                        $var(&$($mutability)? axis.var, f);
                    }
                    match &$($mutability)? l.kind {
                        LoopKind::Parallel { layout: Some(layout), .. } => $layout(layout, f),
                        LoopKind::Pipelined(spec) => {
                            for buffer in &$($mutability)? spec.versioned {
                                $buffer(buffer, f);
                            }
                        }
                        LoopKind::Parallel { layout: None, .. }
                        | LoopKind::Serial
                        | LoopKind::Unroll { .. }
                        | LoopKind::Vectorized
                        | LoopKind::Persistent { .. } => {}
                    }
                }
                StmtKind::While { .. }
                | StmtKind::If { .. }
                | StmtKind::Break
                | StmtKind::Continue
                | StmtKind::Assert { .. }
                | StmtKind::Assume(_)
                | StmtKind::WarpGroup { .. } => {}
                StmtKind::Tile(op) => op.$operands(&mut |operand| $operand(operand, f)),
                StmtKind::Thread(op) => op.$operands(&mut |operand| $operand(operand, f)),
                StmtKind::Micro(m) => {
                    for (axis, _) in &$($mutability)? m.axes {
                        $var(axis, f);
                    }
                    $buffer(&$($mutability)? m.dest.region.buffer, f);
                    for s in &$($mutability)? m.sources {
                        $buffer(&$($mutability)? s.region.buffer, f);
                    }
                    if let Some(arrival) = &$($mutability)? m.arrives {
                        $buffer(&$($mutability)? arrival.barrier, f);
                    }
                }
                StmtKind::Device(op) => match op {
                    DeviceOp::BarrierInit { barrier, .. } => $buffer(barrier, f),
                    DeviceOp::Wait { .. }
                    | DeviceOp::WaitRead { .. }
                    | DeviceOp::Commit(_)
                    | DeviceOp::Barrier(_)
                    | DeviceOp::Fence(_)
                    | DeviceOp::SetPrio(_)
                    | DeviceOp::Prefetch { .. }
                    | DeviceOp::SchedBarrier(_)
                    | DeviceOp::SchedGroupBarrier { .. }
                    | DeviceOp::Iteration(_) => {}
                },
            }
        }
    };
}

id_walk!(
    each_id, operands, operand_at, Id, var_at, buffer_at, layout_at,
);
id_walk!(
    each_id_mut,
    operands_mut,
    operand_at_mut,
    IdMut<'_>,
    var_at_mut,
    buffer_at_mut,
    layout_at_mut,
    mut
);
