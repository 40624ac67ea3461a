//! InjectFenceProxy: what threads stored is handed to who reads through the other proxy.
//!
//! Products of warp groups read shared memory through the async proxy, and so do bulk stores; bulk
//! loads write through it. What was written by plain stores or `cp.async` comes before them when its
//! writer has passed a fence between the write and the barrier that orders the two.
//!
//! Before:
//! ```text
//! A[tx] = …
//! barrier block
//! mma … A[…], B[…] -> C[…] inst="wgmma…" counter=wgmma
//! ```
//! After:
//! ```text
//! A[tx] = …
//! fence async_proxy
//! barrier block
//! mma … A[…], B[…] -> C[…] inst="wgmma…" counter=wgmma
//! ```
//!
//! Needs device IR, with every barrier written down. A fence stands before each barrier that a
//! thread may come to with such a write since its last fence, and from which it may come to a
//! product before the next one; before a barrier of some threads also where it does not itself. Where
//! the lanes of a warp meet, what comes behind barriers of more threads is theirs. Copies in flight
//! are written when they are waited for.

use rustc_hash::FxHashSet;
use tilewright_ir::touched::written;
use tilewright_ir::visit::{child_blocks, child_blocks_mut, walk_stmts};
use tilewright_ir::{
    BarrierKind, Block, Buffer, Counter, DeviceOp, Diagnostics, FenceKind, Func, Inst, Kernel,
    MicroOp, Scope, Stmt, StmtKind, Target, ThreadOp,
};

use crate::Changed;

/// Puts the fences before barriers.
pub fn inject_fence_proxy(func: &mut Func, target: Target, _diags: &mut Diagnostics) -> Changed {
    if !target.machine().async_proxy {
        return Changed::No;
    }
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        let touched = touched_by_proxy(func, &func.kernels[at]);
        if touched.is_empty() {
            continue;
        }
        let mut body = std::mem::take(&mut func.kernels[at].body);
        let mut fences = Fences {
            func,
            touched,
            added: false,
        };
        fences.block(&mut body, &mut State::default(), false);
        if fences.added {
            changed = Changed::Yes;
        }
        func.kernels[at].body = body;
    }
    changed
}

/// What works through the async proxy: products of warp groups and bulk copies.
fn by_proxy(stmt: &Stmt) -> Option<&MicroOp> {
    match &stmt.kind {
        StmtKind::Micro(m) if matches!(m.inst, Inst::GroupMma { .. } | Inst::Tma(_)) => Some(m),
        _ => None,
    }
}

/// The shared buffers that are touched through the async proxy.
fn touched_by_proxy(func: &Func, kernel: &Kernel) -> FxHashSet<Buffer> {
    let mut touched = FxHashSet::default();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let Some(m) = by_proxy(stmt) {
            let ends = m.sources.iter().chain([&m.dest]);
            let roots = ends.map(|end| func.root(end.region.buffer));
            touched.extend(roots.filter(|b| func.buffers[*b].scope == Scope::Shared));
        }
    });
    touched
}

/// What a thread may have done since its last fence.
#[derive(Clone, Copy, PartialEq, Eq, Default)]
struct State {
    /// It has written.
    written: bool,
    /// Copies are in flight that will have written when they are waited for.
    in_flight: bool,
}

impl State {
    fn or(self, other: State) -> State {
        State {
            written: self.written || other.written,
            in_flight: self.in_flight || other.in_flight,
        }
    }
}

struct Fences<'f> {
    func: &'f Func,
    touched: FxHashSet<Buffer>,
    added: bool,
}

impl Fences<'_> {
    /// `after` says whether behind the block a product comes before a barrier.
    fn block(&mut self, block: &mut Block, state: &mut State, after: bool) {
        let stmts = std::mem::take(block);
        let behind: Vec<bool> = (0..stmts.len())
            .map(|at| {
                let rest = ahead(&stmts[at + 1..]);
                rest.product || rest.falls && after
            })
            .collect();
        for (mut stmt, behind) in stmts.into_iter().zip(behind) {
            // Where not all come, others may come to a product.
            let needed = match hands_over(&stmt) {
                Some(Others::Block | Others::Warp) => behind,
                Some(Others::Some) => true,
                None => false,
            };
            if state.written && needed {
                let fence = DeviceOp::Fence(FenceKind::AsyncProxy);
                block.push(Stmt::new(StmtKind::Device(fence), stmt.span));
                state.written = false;
                self.added = true;
            }
            self.stmt(&mut stmt, state, behind);
            block.push(stmt);
        }
    }

    fn stmt(&mut self, stmt: &mut Stmt, state: &mut State, after: bool) {
        let repeats = matches!(stmt.kind, StmtKind::For(_) | StmtKind::While { .. });
        match &stmt.kind {
            StmtKind::Device(DeviceOp::Fence(FenceKind::AsyncProxy)) => state.written = false,
            StmtKind::Device(DeviceOp::Wait {
                counter: Counter::CpAsync,
                at_most,
            }) => {
                state.written |= state.in_flight;
                state.in_flight &= *at_most > 0;
            }
            StmtKind::Micro(m) if m.counter == Some(Counter::CpAsync) => {
                state.in_flight |= self.writes(stmt);
            }
            // The copy engine writes through the async proxy itself.
            StmtKind::Micro(m) if matches!(m.inst, Inst::Tma(_)) => {}
            _ => state.written |= self.writes(stmt),
        }
        let before = *state;
        let mut left = before;
        for child in child_blocks_mut(stmt) {
            let after = after || repeats && ahead(child).product;
            let mut inside = match repeats {
                true => self.entering(child, before, after),
                false => before,
            };
            self.block(child, &mut inside, after);
            left = left.or(inside);
        }
        *state = left;
    }

    /// What may be at the start of any iteration: what the end of one leaves comes to the next.
    fn entering(&mut self, body: &Block, before: State, after: bool) -> State {
        let added = self.added;
        let mut start = before;
        loop {
            let mut end = start;
            self.block(&mut body.clone(), &mut end, after);
            if start.or(end) == start {
                self.added = added;
                return start;
            }
            start = start.or(end);
        }
    }

    /// Whether the statement itself writes what is read through the other proxy.
    fn writes(&self, stmt: &Stmt) -> bool {
        let mut found = false;
        written(stmt, &mut |buffer| {
            found |= self.touched.contains(&self.func.root(buffer));
        });
        found
    }
}

/// What comes before the next barrier.
#[derive(Clone, Copy)]
struct Ahead {
    /// There may be a product, or a bulk copy.
    product: bool,
    /// The end may come before a barrier.
    falls: bool,
}

fn ahead(stmts: &[Stmt]) -> Ahead {
    let mut product = false;
    for stmt in stmts {
        if hands_over(stmt).is_some_and(|others| others != Others::Warp) {
            return Ahead {
                product,
                falls: false,
            };
        }
        product |= by_proxy(stmt).is_some();
        let inside: Vec<Ahead> = child_blocks(stmt).into_iter().map(|b| ahead(b)).collect();
        product |= inside.iter().any(|a| a.product);
        // Only of two ways that both come to a barrier one is taken for certain.
        let taken = matches!(stmt.kind, StmtKind::If { .. }) && inside.len() == 2;
        if taken && inside.iter().all(|a| !a.falls) {
            return Ahead {
                product,
                falls: false,
            };
        }
    }
    Ahead {
        product,
        falls: true,
    }
}

/// Who may go on by what a thread has done.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Others {
    /// The block, which comes here together.
    Block,
    /// Threads that may be on other ways.
    Some,
    /// The warp, which comes here together.
    Warp,
}

/// To whom a statement hands over.
fn hands_over(stmt: &Stmt) -> Option<Others> {
    match &stmt.kind {
        StmtKind::Device(DeviceOp::Barrier(BarrierKind::Block | BarrierKind::Bare)) => {
            Some(Others::Block)
        }
        StmtKind::Device(DeviceOp::Barrier(_)) => Some(Others::Some),
        StmtKind::Thread(op) => match op {
            ThreadOp::SyncThreads { named: None } | ThreadOp::SyncGrid | ThreadOp::SyncCluster => {
                Some(Others::Block)
            }
            ThreadOp::Vote { kind, .. } if kind.is_of_block() => Some(Others::Block),
            ThreadOp::SyncThreads { named: Some(_) }
            | ThreadOp::BarrierArrive { .. }
            | ThreadOp::ClusterArrive => Some(Others::Some),
            ThreadOp::SyncWarp => Some(Others::Warp),
            _ => None,
        },
        _ => None,
    }
}
