//! What an arrival hands over.
//!
//! Who arrives at a barrier lets others go on that wait there. Where each of these accesses shared
//! memory only behind a wait for the barrier of the version that it touches, that version is all that
//! an arrival gives away; what is in flight on others may stay so:
//!
//! ```text
//! mbarrier_wait empty[k % 3] …                      mbarrier_arrive empty[(k - 1) % 3]
//! tma_load … -> S[…] slot=(k % 3) …                 gives away S in version (k - 1) % 3
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::touched::touched;
use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::{
    Buffer, Expr, ExprKind, Func, Kernel, MicroOp, Scope, Stmt, StmtKind, ThreadOp,
};

/// By barrier, what it hands over. Of a barrier that is not here nothing is known.
pub type Handed<'f> = FxHashMap<Buffer, Given<'f>>;

/// What others may touch behind an arrival.
#[derive(Debug)]
pub enum Given<'f> {
    /// The versions that these copies write.
    Versions(Vec<&'f MicroOp>),
    /// All that is written behind waits of the same warp groups: what these read does not count,
    /// for operations in flight read too.
    Written(Vec<Buffer>),
}

/// What the arrivals of a kernel hand over to warp groups that wait for them.
pub fn handed<'f>(func: &Func, kernel: &'f Kernel) -> Handed<'f> {
    let mut all = Handed::default();
    let mut unknown: FxHashSet<Buffer> = FxHashSet::default();
    let regions: Vec<Region> = kernel.body.iter().map(Region::of).collect();
    for (at, (stmt, region)) in kernel.body.iter().zip(&regions).enumerate() {
        let mut behind = Behind {
            func,
            found: Vec::new(),
            open: false,
        };
        behind.block(std::slice::from_ref(stmt));
        for &barrier in &region.waits {
            let own = behind.found.iter().filter(|(b, _)| *b == barrier);
            let own: Vec<&MicroOp> = own.map(|(_, copy)| *copy).collect();
            let mut others = regions.iter().enumerate().filter(|(other, _)| *other != at);
            let elsewhere = |r: &Region| r.arrives.contains(&barrier) || r.waits.contains(&barrier);
            let given = match behind.open {
                false => Given::Versions(own),
                true if others.any(|(_, r)| elsewhere(r)) => {
                    unknown.insert(barrier);
                    continue;
                }
                true => Given::Written(written_behind(func, stmt, barrier)),
            };
            if all.insert(barrier, given).is_some() {
                unknown.insert(barrier);
            }
        }
    }
    all.retain(|barrier, _| !unknown.contains(barrier));
    all
}

/// The barriers that a statement waits for and arrives at.
#[derive(Default)]
struct Region {
    waits: FxHashSet<Buffer>,
    arrives: FxHashSet<Buffer>,
}

impl Region {
    fn of(stmt: &Stmt) -> Region {
        let mut region = Region::default();
        walk_stmts(std::slice::from_ref(stmt), &mut |s| match &s.kind {
            StmtKind::Thread(ThreadOp::BarrierWait { barrier, .. }) => {
                region.waits.insert(*barrier);
            }
            StmtKind::Thread(
                ThreadOp::BarrierArrive { barrier, .. } | ThreadOp::BarrierExpect { barrier, .. },
            ) => {
                region.arrives.insert(*barrier);
            }
            _ => {}
        });
        region
    }
}

/// The shared buffers that a statement writes behind its waits for a barrier.
fn written_behind(func: &Func, stmt: &Stmt, barrier: Buffer) -> Vec<Buffer> {
    let mut written = Vec::new();
    let mut note = |stmts: &[Stmt]| {
        walk_stmts(stmts, &mut |s| {
            touched(s, &mut |access| {
                let shared = func.buffers[access.buffer].scope == Scope::Shared;
                if shared && access.mode.writes() && !written.contains(&access.buffer) {
                    written.push(access.buffer);
                }
            });
        });
    };
    fn block(stmts: &[Stmt], barrier: Buffer, note: &mut dyn FnMut(&[Stmt])) -> bool {
        let mut behind = false;
        for stmt in stmts {
            if behind {
                note(std::slice::from_ref(stmt));
                continue;
            }
            let waits = matches!(
                &stmt.kind,
                StmtKind::Thread(ThreadOp::BarrierWait { barrier: own, .. }) if *own == barrier
            );
            let mut inside = false;
            for child in child_blocks(stmt) {
                inside |= block(child, barrier, note);
            }
            // The next time round all of a loop is behind it.
            if inside && matches!(stmt.kind, StmtKind::For(_) | StmtKind::While { .. }) {
                note(std::slice::from_ref(stmt));
            }
            behind = waits || inside;
        }
        behind
    }
    block(std::slice::from_ref(stmt), barrier, &mut note);
    written
}

/// Looks for accesses of shared memory behind waits.
struct Behind<'a, 'f> {
    func: &'a Func,
    found: Vec<(Buffer, &'f MicroOp)>,
    /// Whether something else than a copy behind a wait for its version touches shared memory.
    open: bool,
}

impl<'f> Behind<'_, 'f> {
    fn block(&mut self, block: &'f [Stmt]) {
        let mut waited: Vec<(Buffer, &'f Expr)> = Vec::new();
        for stmt in block {
            match &stmt.kind {
                StmtKind::Thread(ThreadOp::BarrierWait { barrier, index, .. }) => {
                    waited.retain(|(b, _)| b != barrier);
                    waited.push((*barrier, index));
                }
                StmtKind::Micro(m) if m.arrives.is_some() => {
                    let version = m.dest.slot.as_ref();
                    let mut nearest = waited.iter().rev();
                    let own = nearest.find(|(_, index)| Some(*index) == version);
                    match own {
                        Some((barrier, _)) => self.found.push((*barrier, m)),
                        None => self.open = true,
                    }
                }
                _ => self.open |= self.touches_shared(stmt),
            }
            for child in child_blocks(stmt) {
                self.block(child);
            }
        }
    }

    /// Whether the statement itself touches shared memory.
    fn touches_shared(&self, stmt: &Stmt) -> bool {
        let shared = |buffer: Buffer| self.func.buffers[buffer].scope == Scope::Shared;
        let mut found = false;
        touched(stmt, &mut |access| found |= shared(access.buffer));
        stmt_exprs(stmt, &mut |e| {
            e.walk(&mut |node| {
                if let ExprKind::Load { buffer, .. } | ExprKind::AddressOf { buffer, .. } =
                    node.kind()
                {
                    found |= shared(*buffer);
                }
            });
        });
        found
    }
}
