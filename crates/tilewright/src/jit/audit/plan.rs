//! The ways of a wave through a whole kernel, from its device IR: every wait, barrier, copy to LDS
//! and priority in the order that the emitter prints them in.
//!
//! A loop is any number of turns, a condition either of its arms. Where the compiler may not see that
//! all lanes agree on a condition, its code goes through both arms, one with no lane active; so a
//! wave may do the events of both, or of none.

use tilewright_gfx9::asm::Wait;
use tilewright_gfx9::audit::{Event, Plan};
use tilewright_ir::uniform::{Points, Uniformity};
use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::{
    Access, BarrierKind, Block, Buffer, Counter, DeviceOp, Expr, ExprKind, Func, Inst, Kernel,
    Loop, Machine, Scope, Stmt, StmtKind, ThreadOp,
};

use super::leaves_barriers;
use super::walk::{stays, trips};

/// The plan and the state that it ends in; or why there is none.
pub(super) fn plan(
    func: &Func,
    kernel: &Kernel,
    machine: &Machine,
) -> Result<(Plan, usize), &'static str> {
    let threads: u32 = kernel.threads.iter().product();
    let mut walk = Walk {
        func,
        uniform: Uniformity::of(func, kernel, Points::OfThreads),
        plan: Plan::default(),
        barriers: leaves_barriers(threads, machine),
        loops: Vec::new(),
        unknown: None,
    };
    let mut at = Plan::START;
    if has_arrivals(func, &kernel.body) {
        // Arrival barriers are set up by one thread.
        at = walk.plan.work(at, Event::Write);
        at = walk.barrier(at);
    }
    let end = walk.block(&kernel.body, at);
    match walk.unknown {
        Some(reason) => Err(reason),
        None => Ok((walk.plan, end)),
    }
}

struct Walk<'f> {
    func: &'f Func,
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
        if self.is_quiet(stmt) {
            return at;
        }
        let mut shared = false;
        stmt_exprs(stmt, &mut |e| shared |= self.reads_shared(e));
        let at = match shared {
            true => self.plan.work(at, Event::Read),
            false => at,
        };
        match &stmt.kind {
            StmtKind::For(l) => self.turns(l, at),
            StmtKind::While { body, .. } => self.repeat(body, shared, at),
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
            StmtKind::Micro(op) => {
                let shared = |r: &Access| self.scope(r.region.buffer) == Scope::Shared;
                let (reads, writes) = (op.sources.iter().any(shared), shared(&op.dest));
                let mut at = at;
                if reads {
                    at = self.plan.work(at, Event::Read);
                }
                if writes {
                    at = self.plan.work(at, Event::Write);
                }
                at
            }
            StmtKind::Store { buffer, .. } if self.scope(*buffer) == Scope::Shared => {
                self.plan.work(at, Event::Write)
            }
            _ => at,
        }
    }

    /// Whether a statement, with all inside it, does nothing that a plan has.
    fn is_quiet(&self, stmt: &Stmt) -> bool {
        let mut quiet = true;
        let mut look = |s: &Stmt| {
            stmt_exprs(s, &mut |e| quiet &= !self.reads_shared(e));
            quiet &= match &s.kind {
                StmtKind::Device(op) => matches!(
                    op,
                    DeviceOp::Fence(_)
                        | DeviceOp::SchedBarrier(_)
                        | DeviceOp::SchedGroupBarrier { .. }
                        | DeviceOp::Iteration(_)
                ),
                StmtKind::Micro(op) => {
                    let private = |a: &Access| self.scope(a.region.buffer) != Scope::Shared;
                    op.inst != Inst::BufferLoadLds
                        && private(&op.dest)
                        && op.sources.iter().all(private)
                }
                StmtKind::Store { buffer, .. } => self.scope(*buffer) != Scope::Shared,
                StmtKind::Thread(_) | StmtKind::Break | StmtKind::Continue => false,
                _ => true,
            };
        };
        look(stmt);
        for block in child_blocks(stmt) {
            walk_stmts(block, &mut look);
        }
        quiet
    }

    fn scope(&self, buffer: Buffer) -> Scope {
        self.func.buffers[buffer].scope
    }

    fn reads_shared(&self, e: &Expr) -> bool {
        let mut found = false;
        e.walk_distinct(&mut |node| {
            if let ExprKind::Load { buffer, .. } = node.kind() {
                found |= self.scope(*buffer) == Scope::Shared;
            }
        });
        found
    }

    /// Whatever an operation does in LDS.
    fn any_access(&mut self, at: usize) -> usize {
        let at = self.plan.work(at, Event::Read);
        let at = self.plan.work(at, Event::Write);
        self.plan.work(at, Event::Read)
    }

    fn turns(&mut self, l: &Loop, at: usize) -> usize {
        let counted = l.axes.first().and_then(|a| a.const_trip_count()).is_some();
        if stays(l) || !counted {
            return self.repeat(&l.body, false, at);
        }
        // A jump ends a turn or the loop early.
        let mut jumps = false;
        walk_stmts(&l.body, &mut |s| {
            jumps |= matches!(s.kind, StmtKind::Break | StmtKind::Continue);
        });
        let mut at = at;
        let mut outs = Vec::new();
        for _ in 0..trips(l) {
            let before = self.plan.size();
            if jumps {
                let (next, out) = (self.plan.state(), self.plan.state());
                self.loops.push((next, out));
                let end = self.block(&l.body, at);
                self.loops.pop();
                outs.push(out);
                at = self.plan.joined(&[end, next]);
            } else {
                at = self.block(&l.body, at);
            }
            // Turns in which nothing happens are all the same.
            if self.plan.size() == before {
                break;
            }
        }
        match outs.is_empty() {
            true => at,
            false => {
                outs.push(at);
                self.plan.joined(&outs)
            }
        }
    }

    /// Any number of turns. `asks` says that LDS is read before each.
    fn repeat(&mut self, body: &Block, asks: bool, at: usize) -> usize {
        let head = self.plan.joined(&[at]);
        let out = self.plan.joined(&[head]);
        self.loops.push((head, out));
        let mut end = self.block(body, head);
        if asks {
            end = self.plan.work(end, Event::Read);
        }
        self.loops.pop();
        self.plan.way(end, head);
        out
    }

    fn condition(&mut self, cond: Option<&Expr>, then: &Block, other: &Block, at: usize) -> usize {
        let first = self.block(then, at);
        let agreed = cond.is_some_and(|cond| !self.uniform.varies(cond) && !has_load(cond));
        if agreed {
            let second = self.block(other, at);
            return self.plan.joined(&[first, second]);
        }
        let first = self.plan.joined(&[at, first]);
        let second = self.block(other, first);
        self.plan.joined(&[first, second])
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
            DeviceOp::Barrier(BarrierKind::Named { .. }) | DeviceOp::BarrierInit { .. } => {
                self.any_access(at)
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
                let at = self.plan.work(at, Event::Write);
                let at = self.barrier(at);
                self.plan.work(at, Event::Read)
            }
            // And before the count is set to zero.
            ThreadOp::Vote { kind, .. } if kind.is_of_block() => {
                let at = self.barrier(at);
                let at = self.plan.work(at, Event::Write);
                let at = self.barrier(at);
                let at = self.barrier(at);
                self.plan.work(at, Event::Read)
            }
            ThreadOp::Extern { .. }
            | ThreadOp::SyncGrid
            | ThreadOp::SyncCluster
            | ThreadOp::ClusterArrive
            | ThreadOp::ClusterWait => {
                self.unknown = Some("the kernel calls code that is not Tilewright's");
                at
            }
            ThreadOp::Shuffle { .. }
            | ThreadOp::WarpReduce { .. }
            | ThreadOp::Vote { .. }
            | ThreadOp::SyncWarp
            | ThreadOp::Print { .. }
            | ThreadOp::SetMaxRegs { .. } => at,
            _ => self.any_access(at),
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
