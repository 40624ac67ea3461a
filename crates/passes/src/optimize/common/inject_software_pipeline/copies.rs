//! How a copy from global to shared memory gets under way.
//!
//! Where the machine copies asynchronously, as wide as it loads, and the instructions fit, a `g2s`
//! becomes one that a counter tracks: `cp.async`, or the wave's copy to LDS ([`super::direct`]).
//! Elsewhere the copy goes through registers: it is loaded early (`g2r`) and stored late (`r2s`),
//! so the loads are in flight while the iteration computes.

use tilewright_ir::target::AsyncCopy;
use tilewright_ir::{
    Counter, Expr, Func, Inst, Kernel, MicroKind, MicroOp, Stmt, StmtKind, Target,
};

use super::super::stage::{Staged, is_by_thread, stage};
use super::direct::{self, Refusal};

/// A statement as the schedule sees it.
pub(super) enum Copy {
    /// Done when the next statement starts.
    Plain(Stmt),
    /// Tracked by a counter; so many instructions are certainly issued by each wave.
    Tracked {
        stmt: Stmt,
        counter: Counter,
        instructions: u32,
    },
    Staged(Box<Staged>),
}

/// Where copies stand, and how they may go.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub kernel: &'a Kernel,
    pub target: Target,
    /// Whether waves may copy straight to LDS.
    pub direct: bool,
}

/// Makes the statement asynchronous as the target allows. Other statements than copies stay. The
/// reason is given where waves could copy, but not this.
pub(super) fn convert(func: &mut Func, way: Way<'_>, stmt: Stmt) -> (Copy, Option<Refusal>) {
    let Way {
        kernel,
        target,
        direct,
    } = way;
    let copy = target.machine().wide_copy();
    let by_waves = copy.filter(|c| c.inst == Inst::BufferLoadLds);
    if !is_copy(std::slice::from_ref(&stmt)) {
        let refusal = by_waves.map(|_| Refusal::NotACopy);
        return (Copy::Plain(stmt), refusal);
    }
    if let Some(copy) = by_waves {
        let fits = match direct {
            true => direct::fits(func, kernel, target, &stmt),
            false => Err(Refusal::Memory),
        };
        return match fits {
            Ok(instructions) => {
                let mut stmt = stmt;
                direct::convert(&mut stmt, &copy);
                let counter = copy.counter;
                let tracked = Copy::Tracked {
                    stmt,
                    counter,
                    instructions,
                };
                (tracked, None)
            }
            Err(refusal) => (through_registers(func, target, stmt), Some(refusal)),
        };
    }
    let by_threads = copy.filter(|c| fits_threads(func, c, std::slice::from_ref(&stmt)));
    match by_threads {
        Some(copy) => (convert_by_threads(func, &copy, stmt), None),
        None => (through_registers(func, target, stmt), None),
    }
}

fn through_registers(func: &mut Func, target: Target, stmt: Stmt) -> Copy {
    match stage(func, &stmt, target.machine().load_counter) {
        Some(staged) => Copy::Staged(Box::new(staged)),
        None => Copy::Plain(stmt),
    }
}

fn convert_by_threads(func: &Func, copy: &AsyncCopy, mut stmt: Stmt) -> Copy {
    each_micro(std::slice::from_mut(&mut stmt), &mut |m| {
        m.inst = copy.inst;
        m.counter = Some(copy.counter);
    });
    fold_guard(func, &mut stmt);
    Copy::Tracked {
        stmt,
        counter: copy.counter,
        instructions: 1,
    }
}

/// Whether a block only copies from global to shared memory.
fn is_copy(block: &[Stmt]) -> bool {
    let copies = |s: &Stmt| match &s.kind {
        StmtKind::Micro(m) => m.kind == MicroKind::G2s && m.inst == Inst::Load,
        StmtKind::For(l) => is_copy(&l.body),
        StmtKind::If {
            then, otherwise, ..
        } => (is_copy(then) && otherwise.is_empty()) || (is_copy(then) && is_copy(otherwise)),
        StmtKind::Let { .. } => true,
        _ => false,
    };
    !block.is_empty() && block.iter().all(copies)
}

pub(super) fn each_micro(block: &mut [Stmt], f: &mut impl FnMut(&mut MicroOp)) {
    for stmt in block {
        if let StmtKind::Micro(m) = &mut stmt.kind {
            f(m);
        }
        for child in tilewright_ir::visit::child_blocks_mut(stmt) {
            each_micro(child, f);
        }
    }
}

/// Whether `cp.async` can do all instructions: its sizes, and zeros where nothing is copied.
fn fits_threads(func: &Func, copy: &AsyncCopy, block: &[Stmt]) -> bool {
    let mut fits = true;
    tilewright_ir::visit::walk_stmts(block, &mut |s| {
        if let StmtKind::Micro(m) = &s.kind {
            let bits = m.width * func.buffers[m.dest.region.buffer].dtype.bits();
            fits &= bits.is_multiple_of(8) && copy.bytes.contains(&(bits / 8));
            fits &= m.otherwise.as_ref().is_none_or(is_zero);
        }
    });
    fits
}

fn is_zero(e: &Expr) -> bool {
    e.is_int(0) || e.as_float().is_some_and(|v| v.to_bits() == 0)
}

/// Turns a condition that differs from thread to thread into the predicate of the instruction
/// under it, so that all lanes go together. Where the instruction fills in zeros its own
/// predicate says where, and the condition stays.
fn fold_guard(func: &Func, stmt: &mut Stmt) {
    if let StmtKind::If {
        cond,
        then,
        otherwise,
    } = &mut stmt.kind
        && otherwise.is_empty()
        && is_by_thread(func, cond)
        && let [inner] = &mut then[..]
        && let StmtKind::Micro(m) = &mut inner.kind
        && m.otherwise.is_none()
    {
        let own = m.pred.take();
        m.pred = Some(match own {
            None => cond.clone(),
            Some(own) => cond.clone().and(own),
        });
        stmt.kind = inner.kind.clone();
        return;
    }
    for block in tilewright_ir::visit::child_blocks_mut(stmt) {
        for inner in block {
            fold_guard(func, inner);
        }
    }
}
