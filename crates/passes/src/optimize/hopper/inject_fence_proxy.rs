//! InjectFenceProxy: what threads stored is handed to who reads through the other proxy.
//!
//! Products of warp groups read shared memory through the async proxy. What was written by plain
//! stores or `cp.async` they see when its writer has passed a fence between the write and the
//! barrier that orders the two.
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
//! product before the next one; before a barrier of some threads also where it does not itself. Copies in flight are written when they are waited for.

use rustc_hash::FxHashSet;
use tilewright_ir::touched::written;
use tilewright_ir::visit::{child_blocks, child_blocks_mut, walk_stmts};
use tilewright_ir::{
    BarrierKind, Block, Buffer, Counter, DeviceOp, Diagnostics, FenceKind, Func, Inst, Kernel,
    Scope, Stmt, StmtKind, Target, ThreadOp,
};

use crate::Changed;

/// Puts the fences before barriers.
pub fn inject_fence_proxy(func: &mut Func, target: Target, _diags: &mut Diagnostics) -> Changed {
    if !target.machine().async_proxy {
        return Changed::No;
    }
    let mut changed = Changed::No;
    for at in 0..func.kernels.len() {
        let read = read_by_proxy(func, &func.kernels[at]);
        if read.is_empty() {
            continue;
        }
        let mut body = std::mem::take(&mut func.kernels[at].body);
        let mut fences = Fences {
            func,
            read,
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

/// The shared buffers that are read through the async proxy.
fn read_by_proxy(func: &Func, kernel: &Kernel) -> FxHashSet<Buffer> {
    let mut read = FxHashSet::default();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Micro(m) = &stmt.kind
            && matches!(m.inst, Inst::GroupMma { .. })
        {
            let sources = m.sources.iter().map(|s| func.root(s.region.buffer));
            read.extend(sources.filter(|b| func.buffers[*b].scope == Scope::Shared));
        }
    });
    read
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
    read: FxHashSet<Buffer>,
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
            // Threads that go ways of their own hand over to others.
            if state.written && (behind || !is_of_block(&stmt)) && hands_over(&stmt) {
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
            _ => state.written |= self.writes(stmt),
        }
        let before = *state;
        let mut left = before;
        for child in child_blocks_mut(stmt) {
            let mut inside = before;
            let after = after || repeats && ahead(child).product;
            if repeats {
                // What the end of an iteration leaves comes to the next one.
                let mut end = before;
                let mut trial = child.clone();
                let added = self.added;
                self.block(&mut trial, &mut end, after);
                self.added = added;
                inside = inside.or(end);
            }
            self.block(child, &mut inside, after);
            left = left.or(inside);
        }
        *state = left;
    }

    /// Whether the statement itself writes what is read through the other proxy.
    fn writes(&self, stmt: &Stmt) -> bool {
        let mut found = false;
        written(stmt, &mut |buffer| {
            found |= self.read.contains(&self.func.root(buffer));
        });
        found
    }
}

/// What comes before the next barrier.
#[derive(Clone, Copy)]
struct Ahead {
    /// There may be a product.
    product: bool,
    /// The end may come before a barrier.
    falls: bool,
}

fn ahead(stmts: &[Stmt]) -> Ahead {
    let mut product = false;
    for stmt in stmts {
        if hands_over(stmt) {
            return Ahead {
                product,
                falls: false,
            };
        }
        product |= is_product(stmt);
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

fn is_product(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::Micro(m) if matches!(m.inst, Inst::GroupMma { .. }))
}

/// Whether all threads of the block come here.
fn is_of_block(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Device(DeviceOp::Barrier(kind)) => {
            matches!(kind, BarrierKind::Block | BarrierKind::Bare)
        }
        StmtKind::Thread(ThreadOp::SyncThreads { named }) => named.is_none(),
        StmtKind::Thread(ThreadOp::BarrierArrive { .. }) => false,
        _ => true,
    }
}

/// Whether other threads may go on from here, by what this one has done.
fn hands_over(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Device(op) => matches!(op, DeviceOp::Barrier(_)),
        StmtKind::Thread(op) => match op {
            ThreadOp::SyncThreads { .. } | ThreadOp::SyncGrid | ThreadOp::BarrierArrive { .. } => {
                true
            }
            ThreadOp::Vote { kind, .. } => kind.is_of_block(),
            _ => false,
        },
        _ => false,
    }
}
