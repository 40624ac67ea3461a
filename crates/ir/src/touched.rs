//! What a statement does to memory: the one table of it.
//!
//! Every access of an operation itself is listed here, with the part of the buffer that it names and how it meets
//! others. What expressions read is not: a load is evaluated where control comes to it, so whoever
//! needs the loads walks the expressions ([`crate::visit::stmt_exprs`]).

use crate::buffer::Region;
use crate::expr::{Expr, ExprKind};
use crate::ids::Buffer;
use crate::micro_op::{Access, MicroKind};
use crate::stmt::{Stmt, StmtKind};
use crate::thread_op::{AtomicOp, ThreadOp};
use crate::tile_op::{AtomicSource, TileOp};

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

/// What is done there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Mode {
    Read,
    Write,
    /// What is written depends on what was there.
    Update,
}

impl Mode {
    pub const fn reads(self) -> bool {
        matches!(self, Mode::Read | Mode::Update)
    }

    pub const fn writes(self) -> bool {
        matches!(self, Mode::Write | Mode::Update)
    }
}

/// Whether no other access comes between the parts of this one.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Atomic {
    No,
    /// And no order among its like is asked for: additions give the same in any, and who loads
    /// and stores flags waits for them by himself.
    AnyOrder,
    /// And the order counts: each takes what the last one left.
    InOrder,
}

/// Calls `f` on every buffer that the statement itself may write.
pub fn written(stmt: &Stmt, f: &mut impl FnMut(Buffer)) {
    touched(stmt, &mut |access| {
        if access.mode.writes() {
            f(access.buffer);
        }
    });
}

/// Calls `f` on every access of the statement itself, not of the blocks inside it, nor of its
/// expressions.
pub fn touched<'a>(stmt: &'a Stmt, f: &mut impl FnMut(Touched<'a>)) {
    match &stmt.kind {
        StmtKind::Store {
            buffer, indices, ..
        } => f(plain(*buffer, Part::Elements(indices, 1), Mode::Write)),
        StmtKind::Tile(op) => tile_op(op, f),
        StmtKind::Thread(op) => thread_op(op, f),
        StmtKind::Micro(m) => {
            for source in &m.sources {
                let part = Part::Instruction(source);
                f(plain(source.region.buffer, part, Mode::Read));
            }
            let mode = match m.kind {
                MicroKind::Mma => Mode::Update,
                _ => Mode::Write,
            };
            f(plain(
                m.dest.region.buffer,
                Part::Instruction(&m.dest),
                mode,
            ));
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

fn region(region: &Region, mode: Mode) -> Touched<'_> {
    plain(region.buffer, Part::Region(region), mode)
}

/// A result that starts anew, or goes on from what is there.
const fn result(clears: bool) -> Mode {
    if clears { Mode::Write } else { Mode::Update }
}

fn tile_op<'a>(op: &'a TileOp, f: &mut impl FnMut(Touched<'a>)) {
    match op {
        TileOp::Copy(c) => {
            f(region(&c.src, Mode::Read));
            f(region(&c.dst, Mode::Write));
        }
        TileOp::Fill { dst, .. } => f(region(dst, Mode::Write)),
        TileOp::Gemm(g) => {
            f(region(&g.a, Mode::Read));
            f(region(&g.b, Mode::Read));
            f(region(&g.c, result(g.clear.is_int(1))));
        }
        TileOp::Reduce(r) => {
            f(region(&r.src, Mode::Read));
            f(region(&r.dst, result(r.clear)));
        }
        TileOp::Scan(s) => {
            f(region(&s.src, Mode::Read));
            f(region(&s.dst, Mode::Write));
        }
        TileOp::Atomic { op, dst, value, .. } => {
            if let AtomicSource::Region(source) = value {
                f(region(source, Mode::Read));
            }
            f(Touched {
                atomic: atomic(*op),
                ..region(dst, Mode::Update)
            });
        }
        TileOp::Transpose { src, dst } => {
            f(region(src, Mode::Read));
            f(region(dst, Mode::Write));
        }
        TileOp::Im2col(i) => {
            f(plain(i.image, Part::Whole, Mode::Read));
            f(region(&i.dst, Mode::Write));
        }
        TileOp::ReducerInit { reducer, .. } => f(plain(*reducer, Part::Whole, Mode::Write)),
        TileOp::ReducerUpdate {
            reducer, indices, ..
        } => f(Touched {
            atomic: Atomic::AnyOrder,
            ..plain(*reducer, Part::Elements(indices, 1), Mode::Update)
        }),
        TileOp::ReducerFinalize { reducer, dst } => {
            f(plain(*reducer, Part::Whole, Mode::Update));
            if let Some(dst) = dst {
                f(region(dst, Mode::Write));
            }
        }
    }
}

fn thread_op<'a>(op: &'a ThreadOp, f: &mut impl FnMut(Touched<'a>)) {
    let element = |buffer: Buffer, indices: &'a [Expr], count, mode| {
        plain(buffer, Part::Elements(indices, count), mode)
    };
    match op {
        ThreadOp::AtomicRmw {
            op,
            buffer,
            indices,
            ..
        } => f(Touched {
            atomic: atomic(*op),
            ..element(*buffer, indices, 1, Mode::Update)
        }),
        ThreadOp::AtomicVecAdd {
            dst,
            dst_indices,
            src,
            src_indices,
            lanes,
        } => {
            let lanes = u32::from(*lanes);
            f(element(*src, src_indices, lanes, Mode::Read));
            f(Touched {
                atomic: Atomic::AnyOrder,
                ..element(*dst, dst_indices, lanes, Mode::Update)
            });
        }
        ThreadOp::AtomicLoad {
            buffer, indices, ..
        } => f(Touched {
            atomic: Atomic::AnyOrder,
            ..element(*buffer, indices, 1, Mode::Read)
        }),
        ThreadOp::AtomicStore {
            buffer, indices, ..
        } => f(Touched {
            atomic: Atomic::AnyOrder,
            ..element(*buffer, indices, 1, Mode::Write)
        }),
        ThreadOp::AllReduce {
            dst, dst_indices, ..
        } => f(element(*dst, dst_indices, 1, Mode::Write)),
        ThreadOp::BarrierArrive { barrier, .. }
        | ThreadOp::BarrierWait { barrier, .. }
        | ThreadOp::BarrierExpect { barrier, .. } => {
            f(plain(*barrier, Part::Whole, Mode::Update));
        }
        ThreadOp::Dp4a {
            a,
            a_indices,
            b,
            b_indices,
            c,
            c_indices,
        } => {
            f(element(*a, a_indices, 4, Mode::Read));
            f(element(*b, b_indices, 4, Mode::Read));
            f(element(*c, c_indices, 1, Mode::Update));
        }
        ThreadOp::Extern { args, .. } => {
            for arg in args {
                arg.walk(&mut |e| {
                    if let ExprKind::AddressOf { buffer, .. } = e.kind() {
                        f(plain(*buffer, Part::Anywhere, Mode::Update));
                    }
                });
            }
        }
        ThreadOp::Shuffle { .. }
        | ThreadOp::Vote { .. }
        | ThreadOp::WarpReduce { .. }
        | ThreadOp::SyncThreads { .. }
        | ThreadOp::SyncWarp
        | ThreadOp::SyncGrid
        | ThreadOp::Print { .. }
        | ThreadOp::SetMaxRegs { .. } => {}
    }
}

const fn atomic(op: AtomicOp) -> Atomic {
    match op {
        AtomicOp::Exchange => Atomic::InOrder,
        _ => Atomic::AnyOrder,
    }
}
