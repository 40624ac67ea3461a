//! From where to where in a kernel a shared buffer is in use, and what stands between two.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::{child_blocks, stmt_exprs};
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{
    BarrierKind, Block, Buffer, DeviceOp, ExprKind, Func, Kernel, Stmt, StmtKind, ThreadOp,
};

/// What is known of a kernel's barriers.
#[derive(Clone, Copy)]
pub(crate) enum Barriers {
    /// They stand where they will.
    Placed,
    /// They may come wherever they are needed.
    Anywhere,
}

/// The lives of a kernel's buffers.
pub(super) struct Lives<'f> {
    func: &'f Func,
    lives: FxHashMap<Buffer, Life>,
    declared: FxHashMap<Buffer, Path>,
    /// Buffers whose accesses are not all seen, or not in the order of the text.
    pinned: FxHashSet<Buffer>,
    /// By block, the places of the barriers directly in it; none while they may still come anywhere.
    barriers: Option<FxHashMap<usize, Vec<usize>>>,
    blocks: usize,
}

struct Life {
    first: Path,
    last: Path,
}

/// The statements around a place, from the kernel's body inwards.
type Path = Vec<Step>;

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Step {
    block: usize,
    at: usize,
    is_loop: bool,
}

impl<'f> Lives<'f> {
    pub fn of(func: &'f Func, kernel: &Kernel, barriers: Barriers) -> Lives<'f> {
        let mut lives = Lives {
            func,
            lives: FxHashMap::default(),
            declared: FxHashMap::default(),
            pinned: FxHashSet::default(),
            barriers: match barriers {
                Barriers::Placed => Some(FxHashMap::default()),
                Barriers::Anywhere => None,
            },
            blocks: 0,
        };
        lives.block(&kernel.body, &mut Vec::new(), false);
        lives
    }

    /// Whether one of the two is done with before the other is touched, with a barrier of the
    /// block between them.
    pub fn may_share(&self, a: Buffer, b: Buffer) -> bool {
        if self.pinned.contains(&a) || self.pinned.contains(&b) {
            return false;
        }
        let (Some(x), Some(y)) = (self.lives.get(&a), self.lives.get(&b)) else {
            // What nothing touches needs no bytes of its own.
            return true;
        };
        let own = (self.declared.get(&a), self.declared.get(&b));
        let (Some(da), Some(db)) = own else {
            return false;
        };
        self.before(&x.last, &y.first, [da, db]) || self.before(&y.last, &x.first, [da, db])
    }

    fn before(&self, last: &Path, first: &Path, declared: [&Path; 2]) -> bool {
        let common = last.iter().zip(first).take_while(|(a, b)| a == b).count();
        let (Some(a), Some(b)) = (last.get(common), first.get(common)) else {
            return false;
        };
        // Different branches of one statement are in no order.
        if a.block != b.block || a.at >= b.at {
            return false;
        }
        // In a loop around both, what comes later also comes before, unless each iteration has
        // buffers of its own.
        let fresh = |path: &Path| {
            let loops = last[..common].iter().rposition(|s| s.is_loop);
            loops.is_none_or(|at| path.len() > at + 1 && path[..=at] == last[..=at])
        };
        if !declared.into_iter().all(fresh) {
            return false;
        }
        let Some(barriers) = &self.barriers else {
            return true;
        };
        let between = |block: usize, from: Option<usize>, to: Option<usize>| {
            let list = barriers.get(&block).map_or(&[][..], |l| l);
            list.iter()
                .any(|&at| from.is_none_or(|f| f < at) && to.is_none_or(|t| at < t))
        };
        if between(a.block, Some(a.at), Some(b.at)) {
            return true;
        }
        // At the end of the loops that the one is last used in, or at the start of the other's.
        let inside = |path: &Path| {
            let loops = path[common..].iter().take_while(|s| s.is_loop).count();
            let deep = &path[common + 1..];
            deep[..loops.min(deep.len())].to_vec()
        };
        inside(last)
            .iter()
            .any(|s| between(s.block, Some(s.at), None))
            || inside(first)
                .iter()
                .any(|s| between(s.block, None, Some(s.at)))
    }

    fn block(&mut self, block: &Block, path: &mut Path, pinned: bool) {
        let number = self.blocks;
        self.blocks += 1;
        for (at, stmt) in block.iter().enumerate() {
            path.push(Step {
                block: number,
                at,
                is_loop: matches!(stmt.kind, StmtKind::For(_) | StmtKind::While { .. }),
            });
            self.stmt(stmt, path, pinned);
            let groups = pinned || matches!(stmt.kind, StmtKind::WarpGroup { .. });
            for child in child_blocks(stmt) {
                self.block(child, path, groups);
            }
            path.pop();
            if let Some(barriers) = &mut self.barriers
                && is_barrier(stmt)
            {
                barriers.entry(number).or_default().push(at);
            }
        }
    }

    fn stmt(&mut self, stmt: &Stmt, path: &Path, pinned: bool) {
        if let StmtKind::Alloc(buffer) = stmt.kind {
            self.declared.insert(buffer, path.clone());
            return;
        }
        let func = self.func;
        stmt_buffers(stmt, &mut |buffer| {
            let root = func.root(buffer);
            if pinned {
                self.pinned.insert(root);
            }
            let life = self.lives.entry(root).or_insert_with(|| Life {
                first: path.clone(),
                last: path.clone(),
            });
            life.last.clone_from(path);
        });
        // Other blocks of the cluster write there before this one comes to the copy.
        if let StmtKind::Micro(op) = &stmt.kind
            && op.arrives.as_ref().is_some_and(|a| a.multicast.is_some())
            && let Some(life) = self.lives.get_mut(&func.root(op.dest.region.buffer))
        {
            life.first = vec![Step {
                block: 0,
                at: 0,
                is_loop: false,
            }];
        }
        // An address may be kept.
        stmt_exprs(stmt, &mut |e| {
            e.walk_memory(&mut |node, buffer, _| {
                if let ExprKind::AddressOf { .. } = node.kind() {
                    self.pinned.insert(func.root(buffer));
                }
            });
        });
    }
}

fn is_barrier(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Device(DeviceOp::Barrier(kind)) => {
            matches!(kind, BarrierKind::Block | BarrierKind::Bare)
        }
        StmtKind::Thread(op) => matches!(
            op,
            ThreadOp::SyncThreads { named: None }
                | ThreadOp::SyncGrid
                | ThreadOp::SyncCluster
                | ThreadOp::AllReduce { .. }
        ),
        _ => false,
    }
}
