//! A kernel whose warp groups have roles.
//!
//! Before, with the loop's two parts written out:
//! ```text
//! kernel … threads(tx: 256, …) { alloc S: shared …; fill; consumers' loop; store }
//! ```
//! After:
//! ```text
//! kernel … threads(tx: 384, …) {
//!   alloc S: shared …
//!   alloc S_full: barrier …
//!   warp_group 0, 1 { fill; consumers' loop; store }
//!   warp_group 2 { if tx == 256 { producer's loop } }
//! }
//! ```
//! Where consumers need more registers than an even share, they ask for them (`set_max_nreg`). Blocks
//! that stay do their parts for one tile after another ([`Resident`]), those of a pair wait for each other
//! at the end ([`Pairs`]).

use tilewright_ir::{
    Block, Buffer, Expr, Func, Kernel, Loop, Scope, Span, Stmt, StmtKind, Target, ThreadOp,
    WARP_GROUP,
};

use tilewright_ir::visit::child_blocks_mut;

use super::super::effects::Effects;
use super::super::fresh::refresh;
use super::need;
use super::pairs::Pairs;
use super::resident::Resident;
use super::tiles::Tiles;

/// The part of a thread of its own.
pub(super) struct Producer {
    pub body: Block,
    /// Arrival barriers between it and the others.
    pub barriers: Vec<Buffer>,
    /// Whether blocks stay and take several tiles.
    pub resident: Option<Resident>,
    /// Whether blocks bring each other halves of tiles.
    pub pairs: Option<Pairs>,
    /// The loop.
    pub span: Span,
}

impl Producer {
    /// Its part inside of a statement that the loop stands in, with the names before it in that
    /// statement's block that it uses.
    pub fn inside(&mut self, func: &Func, names_before: &[Stmt]) {
        let mut vars = Effects::of_block(func, &self.body).vars;
        let mut names = Vec::new();
        for stmt in names_before.iter().rev() {
            if let StmtKind::Let { var, value } = &stmt.kind
                && vars.contains(var)
            {
                vars.extend(Effects::of_expr(func, value).vars);
                names.push(stmt.clone());
            }
        }
        self.body.splice(0..0, names.into_iter().rev());
    }

    /// Its part under the loop or the condition that the loop stands in.
    pub fn under(&mut self, around: &StmtKind, arm: usize) {
        let body = std::mem::take(&mut self.body);
        let kind = match around {
            StmtKind::For(l) => StmtKind::For(Loop { body, ..l.clone() }),
            StmtKind::If { cond, .. } => {
                let (then, otherwise) = match arm {
                    0 => (body, Vec::new()),
                    _ => (Vec::new(), body),
                };
                StmtKind::If {
                    cond: cond.clone(),
                    then,
                    otherwise,
                }
            }
            _ => return self.body = body,
        };
        self.body = vec![Stmt::new(kind, self.span)];
    }
}

/// Gives the body to the warp groups that there are, and the producer's part to one more.
pub(super) fn specialise(func: &mut Func, at: usize, target: Target, producer: Producer) {
    let Producer {
        body: mut own,
        barriers,
        resident,
        pairs,
        span,
    } = producer;
    let kernel = &func.kernels[at];
    let threads = kernel.num_threads();
    let thread = Expr::var(
        kernel.thread_vars[0],
        func.vars[kernel.thread_vars[0]].dtype,
    );
    let mut rest = std::mem::take(&mut func.kernels[at].body);
    let mut out = Block::new();
    take_shared(func, &mut rest, &mut out);
    let launched = func.kernels[at].clone();
    if let Some(tiles) = Tiles::of(func, &launched, resident.as_ref(), pairs.as_ref()) {
        [own, rest] = [own, rest].map(|part| tiles.each(func, &launched, part, span));
        tiles.launch(&mut func.kernels[at]);
    }
    let mut producer = own;
    refresh(func, &mut producer);
    let stmt = |kind| Stmt::new(kind, span);
    out.extend(barriers.iter().map(|b| stmt(StmtKind::Alloc(*b))));
    let consumers = threads / WARP_GROUP;
    let shares = need::shares(func, target.machine(), consumers);
    let shares = shares.filter(|_| !func.kernels[at].attrs.no_reg_realloc);
    let ask = |count: u32, increase: bool| {
        stmt(StmtKind::Thread(ThreadOp::SetMaxRegs { count, increase }))
    };
    let more = shares.map(|s| ask(s.consumer, true));
    let fewer = shares.map(|s| ask(s.producer, false));
    out.push(stmt(StmtKind::WarpGroup {
        groups: (0..consumers).collect(),
        body: more.into_iter().chain(rest).collect(),
    }));
    let elected = StmtKind::If {
        cond: thread.equal(Expr::i32(threads as i32)),
        then: producer,
        otherwise: Vec::new(),
    };
    out.push(stmt(StmtKind::WarpGroup {
        groups: vec![consumers],
        body: fewer.into_iter().chain([stmt(elected)]).collect(),
    }));
    if pairs.is_some() {
        // The other block may still arrive at barriers of this one.
        out.push(stmt(StmtKind::Thread(ThreadOp::SyncCluster)));
    }
    let kernel: &mut Kernel = &mut func.kernels[at];
    kernel.threads[0] += WARP_GROUP;
    kernel.body = out;
}

/// Takes storage out of a block that all warp groups see.
fn take_shared(func: &Func, block: &mut Block, out: &mut Block) {
    let shared = |stmt: &Stmt| {
        let StmtKind::Alloc(buffer) = stmt.kind else {
            return false;
        };
        matches!(func.buffers[buffer].scope, Scope::Shared | Scope::Barrier)
    };
    out.extend(block.extract_if(.., |stmt| shared(stmt)));
    for stmt in block {
        for child in child_blocks_mut(stmt) {
            take_shared(func, child, out);
        }
    }
}
