//! What a statement does to memory: the one table of it.
//!
//! Every access of an operation itself is listed here, with the part of the buffer that it names and how it meets
//! others. What expressions read is not: a load is evaluated where control comes to it, so whoever
//! needs the loads walks the expressions ([`crate::visit::stmt_exprs`]).

use crate::buffer::Region;
use crate::expr::{Expr, ExprKind};
use crate::ids::Buffer;
use crate::micro_op::{Access, Inst, MicroKind};
use crate::operand::{How, Operand};
use crate::stmt::{Stmt, StmtKind};

pub use crate::operand::{Atomic, Mode};

/// One access of a statement.
#[derive(Clone, Copy, Debug)]
pub struct Touched<'a> {
    pub buffer: Buffer,
    pub part: Part<'a>,
    pub mode: Mode,
    pub atomic: Atomic,
}

/// Which part of the buffer.
#[derive(Clone, Copy, Debug)]
pub enum Part<'a> {
    /// So many consecutive elements from this one on, by each thread.
    Elements(&'a [Expr], u32),
    /// All of a rectangle, by the block together.
    Region(&'a Region),
    /// What a machine instruction takes of it.
    Instruction(&'a Access),
    /// All of the buffer.
    Whole,
    /// Foreign code has the address and may do anything.
    Anywhere,
}

/// Calls `f` on every buffer that the statement itself may write.
pub fn written(stmt: &Stmt, f: &mut dyn FnMut(Buffer)) {
    touched(stmt, &mut |access| {
        if access.mode.writes() {
            f(access.buffer);
        }
    });
}

/// Calls `f` on every access of the statement itself, not of the blocks inside it, nor of its
/// expressions.
pub fn touched<'a>(stmt: &'a Stmt, f: &mut dyn FnMut(Touched<'a>)) {
    match &stmt.kind {
        StmtKind::Store {
            buffer, indices, ..
        } => f(plain(*buffer, Part::Elements(indices, 1), Mode::Write)),
        StmtKind::Tile(op) => op.operands(&mut |o| operand(o, f)),
        StmtKind::Thread(op) => op.operands(&mut |o| operand(o, f)),
        StmtKind::Micro(m) => {
            for source in &m.sources {
                let part = Part::Instruction(source);
                f(plain(source.region.buffer, part, Mode::Read));
            }
            let mode = match (m.kind, m.inst) {
                (MicroKind::Mma, Inst::GroupMma { fresh: true, .. }) => Mode::Write,
                (MicroKind::Mma, _) => Mode::Update,
                _ => Mode::Write,
            };
            f(plain(
                m.dest.region.buffer,
                Part::Instruction(&m.dest),
                mode,
            ));
            if let Some(arrival) = &m.arrives {
                f(plain(arrival.barrier, Part::Whole, Mode::Update));
            }
        }
        StmtKind::Let { .. }
        | StmtKind::Alloc(_)
        | StmtKind::For(_)
        | StmtKind::While { .. }
        | StmtKind::If { .. }
        | StmtKind::Break
        | StmtKind::Continue
        | StmtKind::Assert { .. }
        | StmtKind::Assume(_)
        | StmtKind::WarpGroup { .. }
        | StmtKind::Device(_) => {}
    }
}

fn plain(buffer: Buffer, part: Part<'_>, mode: Mode) -> Touched<'_> {
    Touched {
        buffer,
        part,
        mode,
        atomic: Atomic::No,
    }
}

/// What an operand of an op is done to.
fn operand<'a>(operand: Operand<'a>, f: &mut dyn FnMut(Touched<'a>)) {
    let mut at = |buffer: Buffer, part: Part<'a>, how: How| {
        f(Touched {
            buffer,
            part,
            mode: how.mode,
            atomic: how.atomic,
        });
    };
    match operand {
        Operand::Elements {
            buffer,
            indices,
            count,
            how,
        } => at(*buffer, Part::Elements(indices, count), how),
        Operand::Region { region, how } => at(region.buffer, Part::Region(region), how),
        Operand::Whole { buffer, how } => at(*buffer, Part::Whole, how),
        Operand::Barrier { buffer, .. } => at(*buffer, Part::Whole, How::UPDATE),
        // Who has the address may do anything with it.
        Operand::Value(value) => value.walk(&mut |e| {
            if let ExprKind::AddressOf { buffer, .. } = e.kind() {
                at(*buffer, Part::Anywhere, How::UPDATE);
            }
        }),
        Operand::Result(_) | Operand::Bound(_) => {}
    }
}
