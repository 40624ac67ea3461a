//! Which values all threads of a block agree on, and where they come together: the one analysis
//! of it.
//!
//! Disagreement starts at thread indices, at results that differ by thread and in regions of some
//! warp groups. It spreads through values, through private memory, and through control flow that
//! only some threads take. A load of memory that threads share is one value where its place is one:
//! all read one element.
//!
//! Control flow is *divergent* where only some threads come, or not all at one time: under a
//! condition they disagree on, in a loop that they leave at different times, and behind a
//! `continue` or `break` of some. What is written there varies. A `let` does not: its value is
//! used by those who are there.
//!
//! The sets grow until nothing is added, so the answers err on the side of disagreement.

use cranelift_entity::SecondaryMap;
use rustc_hash::{FxHashMap, FxHashSet};

use crate::buffer::Scope;
use crate::diag::Span;
use crate::expr::{Expr, ExprKind};
use crate::func::{Func, Kernel, Level};
use crate::ids::{Buffer, Var};
use crate::stmt::{Loop, LoopKind, Stmt, StmtKind};
use crate::thread_op::{Agreement, ThreadOp};
use crate::touched::{Atomic, touched, written};
use crate::visit::{child_blocks, stmt_exprs, walk_stmts};
use crate::visit_ids::stmt_buffers;

/// The largest set of threads of which it is known that they agree.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Hash, Debug, Default)]
pub enum Among {
    /// Each thread for itself.
    Thread,
    /// Warp groups that run the same regions of the kernel.
    Region,
    #[default]
    Block,
}

/// What the points of a parallel loop are: where executors differ by right.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Points {
    /// Dealt out to the threads, as in what is compiled.
    OfThreads,
    /// The block's as a whole, as in the reference evaluator: they make no threads disagree.
    OfBlock,
}

/// How far threads come to a place together, and what parted them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Way {
    pub among: Among,
    pub parted: Span,
}

/// How far threads jump out of a block together.
#[derive(Clone, Copy, Debug)]
pub struct Jumps {
    pub breaks: Way,
    pub continues: Way,
}

/// What the threads of a kernel agree on.
#[derive(Debug)]
pub struct Uniformity<'f> {
    func: &'f Func,
    threads: [u32; 3],
    points: Points,
    /// The warp groups of each region.
    regions: Vec<&'f [u32]>,
    vars: SecondaryMap<Var, Among>,
    /// Private memory, by the buffers that own it.
    buffers: SecondaryMap<Buffer, Among>,
    changed: bool,
}

impl Way {
    pub const TOGETHER: Way = Way {
        among: Among::Block,
        parted: Span::NONE,
    };

    pub fn is_divergent(self) -> bool {
        self.among < Among::Block
    }

    /// Both ways, one after the other.
    pub fn then(self, next: Way) -> Way {
        if next.among < self.among { next } else { self }
    }
}

impl Jumps {
    const NONE: Jumps = Jumps {
        breaks: Way::TOGETHER,
        continues: Way::TOGETHER,
    };

    /// How far threads go on together where these may be done.
    pub fn both(self) -> Way {
        self.breaks.then(self.continues)
    }

    fn and(self, other: Jumps) -> Jumps {
        Jumps {
            breaks: self.breaks.then(other.breaks),
            continues: self.continues.then(other.continues),
        }
    }
}

impl<'f> Uniformity<'f> {
    pub fn of(func: &'f Func, kernel: &'f Kernel, points: Points) -> Uniformity<'f> {
        let mut found = Uniformity {
            func,
            threads: kernel.threads,
            points,
            regions: Vec::new(),
            vars: SecondaryMap::new(),
            buffers: SecondaryMap::new(),
            changed: true,
        };
        for (&var, &extent) in kernel.thread_vars.iter().zip(&kernel.threads) {
            if extent > 1 {
                found.lower_var(var, Among::Thread);
            }
        }
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::WarpGroup { groups, .. } = &stmt.kind {
                found.regions.push(groups);
            }
        });
        if !found.regions.is_empty() {
            found.lower_region_buffers(&kernel.body);
        }
        while std::mem::take(&mut found.changed) {
            found.block(&kernel.body, Way::TOGETHER);
        }
        found
    }

    /// Who agrees on the value.
    pub fn among(&self, e: &Expr) -> Among {
        let mut among = Among::Block;
        e.walk(&mut |node| match node.kind() {
            ExprKind::Var(var) => among = among.min(self.vars[*var]),
            ExprKind::Load { buffer, .. } => among = among.min(self.of_buffer(*buffer)),
            // Private memory is elsewhere for each thread.
            ExprKind::AddressOf { buffer, .. } if self.is_private(self.func.root(*buffer)) => {
                among = Among::Thread;
            }
            _ => {}
        });
        among
    }

    /// Whether threads of the block may disagree on the value.
    pub fn varies(&self, e: &Expr) -> bool {
        self.among(e) < Among::Block
    }

    pub fn of_var(&self, var: Var) -> Among {
        self.vars[var]
    }

    /// Who has the same contents of a buffer; memory that threads share is one.
    pub fn of_buffer(&self, buffer: Buffer) -> Among {
        self.buffers[self.func.root(buffer)]
    }

    /// Who has to come together to do something in a region of these warp groups.
    pub fn region(&self, groups: &[u32]) -> Among {
        let divides = |other: &&[u32]| {
            let common = groups.iter().filter(|g| other.contains(g)).count();
            common != 0 && common != groups.len()
        };
        match self.regions.iter().any(divides) {
            true => Among::Block,
            false => Among::Region,
        }
    }

    /// How far threads that come to the statement run its blocks together.
    pub fn inside(&self, stmt: &Stmt) -> Way {
        let at = |e: &Expr| Way {
            among: self.among(e),
            parted: or(e.span(), stmt.span),
        };
        match &stmt.kind {
            StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }) => Way {
                among: match self.points {
                    Points::OfThreads => Among::Thread,
                    Points::OfBlock => Among::Block,
                },
                parted: stmt.span,
            },
            StmtKind::If { cond, .. } => at(cond),
            StmtKind::For(_) | StmtKind::While { .. } => {
                let mut way = Way::TOGETHER;
                stmt_exprs(stmt, &mut |e| way = way.then(at(e)));
                way.then(self.jumps_inside(stmt).breaks)
            }
            _ => Way::TOGETHER,
        }
    }

    /// How far threads jump together in the statement, of the loop around it.
    pub fn jumps(&self, stmt: &Stmt) -> Jumps {
        self.jumps_on(std::slice::from_ref(stmt), Way::TOGETHER)
    }

    /// How far threads leave this loop, and its iterations, together.
    pub fn jumps_inside(&self, stmt: &Stmt) -> Jumps {
        match &stmt.kind {
            StmtKind::For(Loop { body, .. }) | StmtKind::While { body, .. } => {
                self.jumps_on(body, Way::TOGETHER)
            }
            _ => Jumps::NONE,
        }
    }

    fn jumps_on(&self, stmts: &[Stmt], mut way: Way) -> Jumps {
        let mut all = Jumps::NONE;
        for stmt in stmts {
            let mut own = Jumps::NONE;
            match &stmt.kind {
                StmtKind::Break => own.breaks = way,
                StmtKind::Continue => own.continues = way,
                StmtKind::If { .. } | StmtKind::WarpGroup { .. } => {
                    let mut inside = way.then(self.inside(stmt));
                    if matches!(stmt.kind, StmtKind::WarpGroup { .. }) {
                        inside = inside.then(Way {
                            among: Among::Region,
                            parted: stmt.span,
                        });
                    }
                    for child in child_blocks(stmt) {
                        own = own.and(self.jumps_on(child, inside));
                    }
                }
                _ => {}
            }
            way = way.then(own.both());
            all = all.and(own);
        }
        all
    }

    fn block(&mut self, block: &[Stmt], mut way: Way) {
        for stmt in block {
            let own = self.inside(stmt);
            match &stmt.kind {
                StmtKind::Let { var, value } => self.lower_var(*var, self.among(value)),
                StmtKind::For(l) => {
                    for axis in &l.axes {
                        self.lower_var(axis.var, own.among);
                    }
                }
                StmtKind::Thread(op) => {
                    if let Some(result) = op.result() {
                        self.lower_var(result, self.result(stmt, op).min(way.among));
                    }
                }
                _ => {}
            }
            self.writes(stmt, way.among);
            for child in child_blocks(stmt) {
                self.block(child, way.then(own));
            }
            way = way.then(self.jumps(stmt).both());
        }
    }

    /// Who agrees on what the operation gives, if all threads do it.
    fn result(&self, stmt: &Stmt, op: &ThreadOp) -> Among {
        match op.agreement() {
            Agreement::Block => Among::Block,
            Agreement::Operands => self.operands(stmt),
            Agreement::Nobody => Among::Thread,
        }
    }

    /// Who agrees on everything that the statement reads.
    fn operands(&self, stmt: &Stmt) -> Among {
        let mut among = Among::Block;
        stmt_exprs(stmt, &mut |e| among = among.min(self.among(e)));
        touched(stmt, &mut |access| {
            if access.mode.reads() {
                among = among.min(self.of_buffer(access.buffer));
            }
        });
        among
    }

    /// Spreads disagreement to the private memory that the statement writes.
    fn writes(&mut self, stmt: &Stmt, here: Among) {
        let mut written = Vec::new();
        touched(stmt, &mut |access| {
            let private = self.is_private(self.func.root(access.buffer));
            if access.mode.writes() && private {
                written.push((access.buffer, access.atomic));
            }
        });
        if written.is_empty() {
            return;
        }
        let among = match &stmt.kind {
            // Registers hold what each thread has of a tile.
            StmtKind::Micro(_) => Among::Thread,
            StmtKind::Tile(_) if self.func.level != Level::Tile => Among::Thread,
            StmtKind::Thread(ThreadOp::AllReduce {
                axes, dst_indices, ..
            }) if (0u8..)
                .zip(self.threads)
                .all(|(axis, extent)| extent == 1 || axes.contains(&axis)) =>
            {
                let places = dst_indices.iter().map(|i| self.among(i));
                places.min().unwrap_or_default()
            }
            _ => self.operands(stmt),
        };
        for (buffer, atomic) in written {
            // Each thread updates its own, however often it is done.
            let among = match atomic {
                Atomic::No => among.min(here),
                Atomic::AnyOrder | Atomic::InOrder => Among::Thread,
            };
            self.lower_buffer(buffer, among);
        }
    }

    /// Marks the private memory that a region of some warp groups writes and other code uses.
    fn lower_region_buffers(&mut self, body: &[Stmt]) {
        let mut uses = RegionUses::default();
        uses.block(self.func, body, None);
        for (buffer, users) in uses.users {
            if users.len() > 1 && uses.written.contains(&buffer) && self.is_private(buffer) {
                self.lower_buffer(buffer, Among::Region);
            }
        }
    }

    /// Whether each thread has this memory of its own. A fragment is one tile of the block until
    /// it is registers.
    fn is_private(&self, root: Buffer) -> bool {
        let scope = self.func.buffers[root].scope;
        scope.is_private() || (scope == Scope::Fragment && self.func.level != Level::Tile)
    }

    fn lower_var(&mut self, var: Var, among: Among) {
        if among < self.vars[var] {
            self.vars[var] = among;
            self.changed = true;
        }
    }

    fn lower_buffer(&mut self, buffer: Buffer, among: Among) {
        let root = self.func.root(buffer);
        if among < self.buffers[root] {
            self.buffers[root] = among;
            self.changed = true;
        }
    }
}

/// Which warp groups use which buffers.
#[derive(Default)]
struct RegionUses<'b> {
    /// By buffer, the groups of each region that uses it; none where all threads do.
    users: FxHashMap<Buffer, FxHashSet<Option<&'b [u32]>>>,
    /// What is written in regions.
    written: FxHashSet<Buffer>,
}

impl<'b> RegionUses<'b> {
    fn block(&mut self, func: &Func, block: &'b [Stmt], groups: Option<&'b [u32]>) {
        for stmt in block {
            if !matches!(stmt.kind, StmtKind::Alloc(_)) {
                stmt_buffers(stmt, &mut |b| {
                    self.users.entry(func.root(b)).or_default().insert(groups);
                });
            }
            if groups.is_some() {
                written(stmt, &mut |b| {
                    self.written.insert(func.root(b));
                });
            }
            let inside = match &stmt.kind {
                StmtKind::WarpGroup { groups, .. } => Some(&groups[..]),
                _ => groups,
            };
            for child in child_blocks(stmt) {
                self.block(func, child, inside);
            }
        }
    }
}

/// The span, or the other where there is none.
fn or(span: Span, other: Span) -> Span {
    if span.is_none() { other } else { span }
}
