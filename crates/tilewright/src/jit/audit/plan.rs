//! The ways of a wave through a whole kernel, from its device IR: every wait, barrier, copy to LDS
//! and priority in the order that the emitter prints them in.
//!
//! A loop is any number of turns, a condition either of its arms. Where the compiler may not see that
//! all lanes agree on a condition, its code goes through both arms, one with no lane active; so a
//! wave may do the events of both, or of none.

use tilewright_gfx9::asm::Wait;
use tilewright_gfx9::audit::{Event, Plan};
use tilewright_ir::uniform::{Points, Uniformity};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    BarrierKind, Block, Counter, DeviceOp, Expr, ExprKind, Func, Inst, Kernel, Loop, Machine,
    Scope, Stmt, StmtKind, ThreadOp,
};

use super::walk::{stays, trips};

/// The plan and the state that it ends in; or why there is none.
pub(super) fn plan(
    func: &Func,
    kernel: &Kernel,
    machine: &Machine,
) -> Result<(Plan, usize), &'static str> {
    let threads: u32 = kernel.threads.iter().product();
    let mut walk = Walk {
        uniform: Uniformity::of(func, kernel, Points::OfThreads),
        plan: Plan::default(),
        // A block of one wave needs no barriers, and the compiler leaves them out.
        barriers: threads > machine.warp_size,
        loops: Vec::new(),
        unknown: None,
    };
    let mut at = Plan::START;
    if has_arrivals(func, &kernel.body) {
        // Arrival barriers are set up by one thread.
        at = walk.barrier(at);
    }
    let end = walk.block(&kernel.body, at);
    match walk.unknown {
        Some(reason) => Err(reason),
        None => Ok((walk.plan, end)),
    }
}

struct Walk<'f> {
    uniform: Uniformity<'f>,
    plan: Plan,
    barriers: bool,
    /// Where `continue` and `break` go, innermost last.
    loops: Vec<(usize, usize)>,
    unknown: Option<&'static str>,
}

impl Walk<'_> {
    fn block(&mut self, block: &Block, mut at: usize) -> usize {
        for stmt in block {
            at = self.stmt(stmt, at);
        }
        at
    }

    fn stmt(&mut self, stmt: &Stmt, at: usize) -> usize {
        match &stmt.kind {
            StmtKind::For(l) => self.turns(l, at),
            StmtKind::While { body, .. } => self.repeat(body, at),
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => self.condition(Some(cond), then, otherwise, at),
            StmtKind::WarpGroup { body, .. } => self.condition(None, body, &Block::default(), at),
            StmtKind::Break | StmtKind::Continue => {
                if let Some((next, out)) = self.loops.last().copied() {
                    let breaks = matches!(stmt.kind, StmtKind::Break);
                    self.plan.way(at, if breaks { out } else { next });
                }
                // Lanes that stay go on.
                at
            }
            StmtKind::Device(op) => self.device(op, at),
            StmtKind::Thread(op) => self.thread(op, at),
            StmtKind::Micro(op) if op.inst == Inst::BufferLoadLds => {
                let mut end = at;
                for _ in 0..op.count() {
                    end = self.plan.step(end, Event::Copy);
                }
                // A wave without a lane to copy for may leave the copies out.
                if op.pred.is_some() && op.otherwise.is_none() {
                    self.plan.way(at, end);
                }
                end
            }
            _ => at,
        }
    }

    fn turns(&mut self, l: &Loop, at: usize) -> usize {
        let counted = l.axes.first().and_then(|a| a.const_trip_count()).is_some();
        if stays(l) || !counted {
            return self.repeat(&l.body, at);
        }
        let out = self.plan.state();
        let mut at = at;
        for _ in 0..trips(l) {
            let events = self.plan.events();
            let next = self.plan.state();
            self.loops.push((next, out));
            let end = self.block(&l.body, at);
            self.loops.pop();
            self.plan.way(end, next);
            at = next;
            // Turns in which nothing happens are all the same.
            if self.plan.events() == events {
                break;
            }
        }
        self.plan.way(at, out);
        out
    }

    /// Any number of turns.
    fn repeat(&mut self, body: &Block, at: usize) -> usize {
        let (head, out) = (self.plan.state(), self.plan.state());
        self.plan.way(at, head);
        self.plan.way(head, out);
        self.loops.push((head, out));
        let end = self.block(body, head);
        self.loops.pop();
        self.plan.way(end, head);
        out
    }

    fn condition(&mut self, cond: Option<&Expr>, then: &Block, other: &Block, at: usize) -> usize {
        let events = self.plan.events();
        let first = self.block(then, at);
        let agreed = cond.is_some_and(|cond| !self.uniform.varies(cond) && !has_load(cond));
        if agreed {
            let second = self.block(other, at);
            let end = self.plan.state();
            self.plan.way(first, end);
            self.plan.way(second, end);
            return end;
        }
        if self.plan.events() > events {
            self.plan.way(at, first);
        }
        let events = self.plan.events();
        let second = self.block(other, first);
        if self.plan.events() > events {
            self.plan.way(first, second);
        }
        second
    }

    fn device(&mut self, op: &DeviceOp, at: usize) -> usize {
        match op {
            DeviceOp::Wait { counter, at_most } => {
                let count = u8::try_from(*at_most).unwrap_or(u8::MAX);
                let wait = match counter {
                    Counter::Vmcnt => Wait::vm(count),
                    _ => Wait::lgkm(count),
                };
                self.plan.step(at, Event::Wait(wait))
            }
            DeviceOp::Barrier(BarrierKind::Block | BarrierKind::Bare) => self.barrier(at),
            DeviceOp::Barrier(BarrierKind::Cond(_)) => {
                let end = self.barrier(at);
                self.plan.way(at, end);
                end
            }
            DeviceOp::SetPrio(level) => self.plan.step(at, Event::Priority(*level)),
            _ => at,
        }
    }

    fn thread(&mut self, op: &ThreadOp, at: usize) -> usize {
        match op {
            ThreadOp::SyncThreads { named: None } => self.barrier(at),
            // The emitter's: before the scratch is written, and before it is read.
            ThreadOp::AllReduce { .. } => {
                let at = self.barrier(at);
                self.barrier(at)
            }
            // And before the count is set to zero.
            ThreadOp::Vote { kind, .. } if kind.is_of_block() => {
                let at = self.barrier(at);
                let at = self.barrier(at);
                self.barrier(at)
            }
            ThreadOp::Extern { .. } | ThreadOp::SyncGrid => {
                self.unknown = Some("the kernel calls code that is not Tilewright's");
                at
            }
            _ => at,
        }
    }

    fn barrier(&mut self, at: usize) -> usize {
        match self.barriers {
            true => self.plan.step(at, Event::Barrier),
            false => at,
        }
    }
}

fn has_load(e: &Expr) -> bool {
    let mut found = false;
    e.walk_distinct(&mut |node| found |= matches!(node.kind(), ExprKind::Load { .. }));
    found
}

/// Whether the kernel has barriers that waves arrive at, in shared memory.
fn has_arrivals(func: &Func, body: &Block) -> bool {
    let mut found = false;
    walk_stmts(body, &mut |stmt| {
        found |= match &stmt.kind {
            StmtKind::Alloc(buffer) => func.buffers[*buffer].scope == Scope::Barrier,
            StmtKind::Device(DeviceOp::Barrier(BarrierKind::Named { .. })) => true,
            StmtKind::Thread(ThreadOp::SyncThreads { named }) => named.is_some(),
            _ => false,
        };
    });
    found
}
