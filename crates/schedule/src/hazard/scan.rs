//! What is known of a kernel before it is run: which statements synchronise, which variables
//! matter, which values differ between threads, and which waves go ways of their own.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::operand::{Atomic, Operand};
use tilewright_ir::touched::{touched, written};
use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{
    BarrierKind, BinOp, Block, Buffer, BufferOrigin, DType, DeviceOp, Expr, ExprKind, FenceKind,
    Func, Inst, Kernel, Scope, Span, Stmt, StmtKind, ThreadOp, Var, VarKind, WARP_GROUP,
};

use super::report::Reason;
use super::value::{Bound, Env, evaluate};

/// The most groups of waves that run ways of their own.
pub const MAX_GROUPS: usize = 16;

/// A statement, by its address: the function is borrowed as long as the check runs.
pub type Key = usize;

pub fn key(stmt: &Stmt) -> Key {
    std::ptr::from_ref(stmt) as usize
}

/// Facts of a kernel.
#[derive(Debug)]
pub struct Scan<'f> {
    pub func: &'f Func,
    pub kernel: &'f Kernel,
    pub warp: u32,
    /// Statements that synchronise, or hold one that does.
    sync: FxHashSet<Key>,
    /// Of those, the ones that hold a barrier or a wait.
    blocking: FxHashSet<Key>,
    /// Of those, the ones that hold more than waits for the wave's own instructions.
    meeting: FxHashSet<Key>,
    /// Global memory that the kernel writes; none where that may be any.
    written: Option<FxHashSet<Buffer>>,
    /// Tensors that it writes and touches in another statement too.
    tensors: FxHashSet<Buffer>,
    /// The definition of every `let`.
    pub lets: FxHashMap<Var, &'f Expr>,
    /// Variables that reach a shared place, a slot or a condition around synchronisation.
    pub relevant: FxHashSet<Var>,
    /// Scalars, the same in all threads, that reach such an expression.
    scalars: FxHashSet<Buffer>,
    /// By statement, the followed scalars that it or one in it writes; absent where there are none.
    writes: FxHashMap<Key, Vec<Buffer>>,
    /// Register arrays that asynchronous loads write.
    pub loaded: FxHashSet<Buffer>,
    /// Register arrays that products of warp groups add to.
    pub sums: FxHashSet<Buffer>,
    /// Shared buffers that are read or written through the async proxy.
    pub by_proxy: FxHashSet<Buffer>,
    varying_vars: FxHashSet<Var>,
    varying_buffers: FxHashSet<Buffer>,
    /// By thread, the group it belongs to.
    pub group_of: Vec<u8>,
    pub groups: usize,
    /// Blocks of a cluster that reach each other's memory, or go ways by their number.
    pub ranks: usize,
    /// There are too many of them to be followed.
    pub in_part: bool,
    /// By condition, whether it holds for each group.
    truths: FxHashMap<Key, Vec<bool>>,
    pub reasons: Vec<Reason>,
    /// Versions that depend on the block's place in the grid.
    pub block_slots: Vec<Expr>,
    /// Barriers that only some threads of a warp come to.
    pub divergent: Vec<Key>,
}

impl<'f> Scan<'f> {
    pub fn of(func: &'f Func, kernel: &'f Kernel, warp: u32) -> Scan<'f> {
        let mut scan = Scan {
            func,
            kernel,
            warp,
            sync: FxHashSet::default(),
            blocking: FxHashSet::default(),
            meeting: FxHashSet::default(),
            written: Some(FxHashSet::default()),
            tensors: FxHashSet::default(),
            lets: FxHashMap::default(),
            relevant: FxHashSet::default(),
            scalars: FxHashSet::default(),
            writes: FxHashMap::default(),
            loaded: FxHashSet::default(),
            sums: FxHashSet::default(),
            by_proxy: FxHashSet::default(),
            varying_vars: FxHashSet::default(),
            varying_buffers: FxHashSet::default(),
            group_of: vec![0; kernel.num_threads() as usize],
            groups: 1,
            ranks: match kernel.reaches_others() || kernel.attrs.rank.is_some() {
                true => kernel.cluster_blocks() as usize,
                false => 1,
            },
            in_part: false,
            truths: FxHashMap::default(),
            reasons: Vec::new(),
            block_slots: Vec::new(),
            divergent: Vec::new(),
        };
        scan.find_tensors();
        scan.mark_sync(&kernel.body);
        scan.mark_leaving(&kernel.body, false);
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Let { var, value } = &stmt.kind {
                scan.lets.insert(*var, value);
            }
            scan.mark_written(stmt);
        });
        scan.find_block_slots();
        scan.find_varying();
        scan.find_relevant();
        if !scan.scalars.is_empty() {
            scan.find_writes(&kernel.body);
        }
        scan.split_groups();
        scan
    }

    pub fn is_sync(&self, stmt: &Stmt) -> bool {
        self.sync.contains(&key(stmt))
    }

    /// Whether the statement holds a barrier or a wait.
    pub fn is_blocking(&self, stmt: &Stmt) -> bool {
        self.blocking.contains(&key(stmt))
    }

    /// Whether the statement holds a barrier, or anything else that other waves take part in or
    /// that decides how control goes on: more than waits for the wave's own instructions.
    pub fn is_meeting(&self, stmt: &Stmt) -> bool {
        self.meeting.contains(&key(stmt))
    }

    /// Whether the kernel leaves this memory as it is. Tensors do not overlap unless the kernel
    /// says so.
    pub fn is_constant(&self, buffer: Buffer) -> bool {
        let root = self.root(buffer);
        let data = &self.func.buffers[root];
        let tensor = matches!(data.origin, BufferOrigin::Param | BufferOrigin::Workspace);
        let alone = !self.kernel.attrs.may_alias.contains(&root);
        let written = self.written.as_ref();
        let unwritten = written.is_some_and(|w| !w.contains(&root));
        tensor && data.scope == Scope::Global && alone && unwritten
    }

    /// Whether the variable is the same for the whole block, from beginning to end.
    pub fn is_fixed(&self, var: Var) -> bool {
        matches!(
            self.func.vars[var].kind,
            VarKind::Symbol | VarKind::Param | VarKind::BlockIdx(_)
        )
    }

    /// Whether blocks of a cluster that reach each other's memory agree on the value: it depends on
    /// which cluster it is, not on which block of it.
    pub fn same_in_cluster(&self, e: &Expr) -> bool {
        if self.ranks == 1 {
            return true;
        }
        // Indices that are mixed up say nothing of clusters.
        let sizes = match self.kernel.attrs.swizzle {
            Some(_) => [u32::MAX; 3],
            None => self.kernel.attrs.cluster.unwrap_or([1; 3]),
        };
        let size_of = |var: Var| match self.func.vars[var].kind {
            VarKind::BlockIdx(axis) => sizes.get(usize::from(axis)).copied(),
            _ => None,
        };
        fn agrees(e: &Expr, size_of: &dyn Fn(Var) -> Option<u32>) -> bool {
            if let ExprKind::Binary(BinOp::FloorDiv, a, by) = e.kind()
                && let (Some(var), Some(by)) = (a.as_var(), by.as_int())
                && let Some(size) = size_of(var)
            {
                return by % i128::from(size) == 0;
            }
            if let Some(size) = e.as_var().and_then(size_of) {
                return size == 1;
            }
            let mut all = true;
            e.kind()
                .each_operand(|operand| all &= agrees(operand, size_of));
            all
        }
        agrees(&self.expand(e), &size_of)
    }

    /// Whether all memory that is read for the value stays as it is.
    pub fn reads_constants(&self, e: &Expr) -> bool {
        let mut constant = true;
        e.walk_loads(&mut |buffer, _| constant &= self.is_constant(buffer));
        constant
    }

    /// Whether a thread is of these warp groups: the checker's own reading of them, as that of
    /// [`Scan::split_groups`], and not what barriers were derived with.
    pub fn is_of(&self, groups: &[u32]) -> Expr {
        let each = self.kernel.thread_vars.iter().zip(&self.kernel.threads);
        let (thread, _) = each.fold((Expr::i32(0), 1), |(sum, stride), (var, extent)| {
            let own = self.func.var_expr(*var).cast_to(DType::I32);
            (sum + own * stride, stride * i64::from(*extent))
        });
        let group = thread.floor_div(i64::from(WARP_GROUP));
        let one = groups.iter().map(|g| group.clone().equal(i64::from(*g)));
        one.reduce(Expr::or).unwrap_or_else(|| Expr::bool(false))
    }

    /// Whether a group takes a branch, or does a conditional barrier, that splits the block.
    pub fn group_takes(&self, stmt: &Stmt, group: usize) -> Option<bool> {
        self.truths.get(&key(stmt)).map(|list| list[group])
    }

    /// The buffer that owns the storage.
    pub fn root(&self, mut buffer: Buffer) -> Buffer {
        for _ in 0..self.func.buffers.len() {
            match self.func.buffers[buffer].origin {
                BufferOrigin::View(base) => buffer = base,
                _ => break,
            }
        }
        buffer
    }

    pub fn is_shared(&self, buffer: Buffer) -> bool {
        self.func.buffers[self.root(buffer)].scope == Scope::Shared
    }

    /// Whether this is a tensor that threads may hand data to each other through.
    pub fn is_exchanged(&self, buffer: Buffer) -> bool {
        self.tensors.contains(&self.root(buffer))
    }

    /// Whether accesses to the buffer are looked at.
    fn is_watched(&self, buffer: Buffer) -> bool {
        let root = self.root(buffer);
        self.is_memory(root) || self.loaded.contains(&root)
    }

    /// Whether the buffer is memory in which threads can meet, as far as that is looked at.
    pub fn is_memory(&self, buffer: Buffer) -> bool {
        self.is_shared(buffer) || self.is_exchanged(buffer)
    }

    /// The expression with the definitions of `let`s put in.
    pub fn expand(&self, e: &Expr) -> Expr {
        let mut e = e.clone();
        // Definitions come before their uses, so this ends; the bound is against ill-formed IR.
        for _ in 0..32 {
            let mut changed = false;
            e = e.rewrite(&mut |node| {
                let value = self.lets.get(&node.as_var()?)?;
                changed = true;
                Some((*value).clone())
            });
            if !changed {
                break;
            }
        }
        e
    }

    /// Whether threads may disagree on the value.
    pub fn varies(&self, e: &Expr) -> bool {
        let mut varies = false;
        e.walk(&mut |node| match node.kind() {
            ExprKind::Var(var) => varies |= self.varying_vars.contains(var),
            ExprKind::Load { buffer, .. } => {
                varies |= self.varying_buffers.contains(&self.root(*buffer));
            }
            _ => {}
        });
        varies
    }

    /// The threads of a group.
    pub fn threads_in(&self, group: usize) -> u32 {
        let own = |g: &&u8| usize::from(**g) == group;
        self.group_of.iter().filter(own).count() as u32
    }

    /// The warps that threads of a group are in.
    pub fn warps_in(&self, group: usize) -> u32 {
        let warps = self.group_of.chunks(self.warp as usize);
        let own = |w: &&[u8]| w.iter().any(|g| usize::from(*g) == group);
        warps.filter(own).count() as u32
    }

    /// The indices of a thread.
    pub fn thread_env(&self, thread: u32) -> impl Fn(Var) -> Option<i64> + '_ {
        let [x, y, _] = self.kernel.threads;
        let at = [thread % x, thread / x % y, thread / (x * y)];
        move |var| {
            let vars = self.kernel.thread_vars.iter();
            let axis = vars.clone().position(|v| *v == var)?;
            Some(at[axis].into())
        }
    }

    fn mark_sync(&mut self, block: &Block) -> (bool, bool, bool) {
        let mut any = (false, false, false);
        for stmt in block {
            let (mut sync, mut blocking) = own_sync(stmt);
            let mut meeting = blocking && !waits_for_own(stmt);
            if let StmtKind::Micro(m) = &stmt.kind
                && m.counter.is_some()
                && !matches!(m.inst, Inst::Tma(_))
                && !self.is_shared(m.dest.region.buffer)
            {
                self.loaded.insert(self.root(m.dest.region.buffer));
            }
            if let StmtKind::Micro(m) = &stmt.kind
                && matches!(m.inst, Inst::Tma(_))
            {
                let ends = m.sources.iter().chain([&m.dest]);
                let roots = ends.map(|end| self.root(end.region.buffer));
                let shared: Vec<Buffer> = roots.filter(|root| self.is_shared(*root)).collect();
                self.by_proxy.extend(shared);
            }
            if let Some(product) = stmt.as_group_product() {
                self.sums.insert(self.root(product.dest.region.buffer));
                for source in &product.sources {
                    let root = self.root(source.region.buffer);
                    match self.is_shared(root) {
                        true => self.by_proxy.insert(root),
                        false => self.loaded.insert(root),
                    };
                }
            }
            for child in child_blocks(stmt) {
                let inner = self.mark_sync(child);
                sync |= inner.0;
                blocking |= inner.1;
                meeting |= inner.2;
            }
            if sync {
                self.sync.insert(key(stmt));
            }
            if blocking {
                self.blocking.insert(key(stmt));
            }
            if meeting {
                self.meeting.insert(key(stmt));
            }
            any = (any.0 | sync, any.1 | blocking, any.2 | meeting);
        }
        any
    }

    /// Notes what global memory the statement may write.
    fn mark_written(&mut self, stmt: &Stmt) {
        let mut found: Vec<Buffer> = Vec::new();
        written(stmt, &mut |buffer| found.push(buffer));
        for buffer in found {
            let root = self.root(buffer);
            match self.func.buffers[root].origin {
                BufferOrigin::Pointer(_) => self.written = None,
                _ => self.written.iter_mut().for_each(|w| {
                    w.insert(root);
                }),
            }
        }
    }

    /// `break` and `continue` of loops that synchronise decide how control goes on.
    fn mark_leaving(&mut self, block: &Block, in_sync_loop: bool) -> bool {
        let mut leaves = false;
        for stmt in block {
            let own = match &stmt.kind {
                StmtKind::Break | StmtKind::Continue => in_sync_loop,
                StmtKind::For(l) => {
                    self.mark_leaving(&l.body, self.is_sync(stmt));
                    false
                }
                StmtKind::While { body, .. } => {
                    self.mark_leaving(body, self.is_sync(stmt));
                    false
                }
                _ => {
                    let mut any = false;
                    for child in child_blocks(stmt) {
                        any |= self.mark_leaving(child, in_sync_loop);
                    }
                    any
                }
            };
            if own {
                self.sync.insert(key(stmt));
                self.blocking.insert(key(stmt));
                self.meeting.insert(key(stmt));
            }
            leaves |= own;
        }
        leaves
    }

    /// Finds the tensors that are written and touched by something else too. Those that may lie over
    /// each other are not followed.
    fn find_tensors(&mut self) {
        let mut users: FxHashMap<Buffer, (bool, usize)> = FxHashMap::default();
        let mut note = |buffer: Buffer, write: bool| {
            let root = self.root(buffer);
            if self.func.buffers[root].scope == Scope::Global {
                let (written, times) = users.entry(root).or_default();
                *written |= write;
                *times += 1;
            }
        };
        walk_stmts(&self.kernel.body, &mut |stmt| {
            touched(stmt, &mut |access| {
                note(access.buffer, access.mode.writes())
            });
            stmt_exprs(stmt, &mut |e| {
                e.walk_loads(&mut |buffer, _| note(buffer, false));
            });
        });
        let aliased = self.kernel.attrs.may_alias.iter();
        let aliased: Vec<(bool, usize)> = aliased.filter_map(|b| users.get(b).copied()).collect();
        if aliased.len() > 1 && aliased.iter().any(|(written, _)| *written) {
            let text = "what threads do to tensors that may overlap is not followed";
            self.undecided(self.kernel.span, text);
        }
        let exchanged = users.into_iter().filter(|(_, (w, times))| *w && *times > 1);
        self.tensors = exchanged.map(|(buffer, _)| buffer).collect();
    }

    fn find_block_slots(&mut self) {
        let mut found: Vec<Expr> = Vec::new();
        walk_stmts(&self.kernel.body, &mut |stmt| {
            let StmtKind::Micro(m) = &stmt.kind else {
                return;
            };
            let slots = m
                .sources
                .iter()
                .chain([&m.dest])
                .filter_map(|a| a.slot.as_ref());
            for slot in slots.map(|slot| self.expand(slot)) {
                let mut of_block = false;
                slot.walk(&mut |node| {
                    let kind = node.as_var().map(|v| &self.func.vars[v].kind);
                    of_block |= matches!(kind, Some(VarKind::BlockIdx(_)));
                });
                if of_block && !found.contains(&slot) {
                    found.push(slot);
                }
            }
        });
        self.block_slots = found;
    }

    fn find_varying(&mut self) {
        for (axis, &var) in self.kernel.thread_vars.iter().enumerate() {
            if self.kernel.threads[axis] > 1 {
                self.varying_vars.insert(var);
            }
        }
        loop {
            let before = (self.varying_vars.len(), self.varying_buffers.len());
            self.grow_varying(&self.kernel.body, false);
            if before == (self.varying_vars.len(), self.varying_buffers.len()) {
                return;
            }
        }
    }

    fn grow_varying(&mut self, block: &'f Block, divergent: bool) {
        for stmt in block {
            let mut own = false;
            stmt_exprs(stmt, &mut |e| own |= self.varies(e));
            match &stmt.kind {
                StmtKind::Let { var, .. } if own => {
                    self.varying_vars.insert(*var);
                }
                StmtKind::For(l) if own => {
                    self.varying_vars.extend(l.axes.iter().map(|a| a.var));
                }
                StmtKind::Store { buffer, .. } if own || divergent => self.mark_private(*buffer),
                StmtKind::Micro(m) => self.mark_private(m.dest.region.buffer),
                StmtKind::Thread(op) => {
                    let for_all = matches!(op, ThreadOp::Vote { kind, .. } if kind.is_of_block());
                    if !for_all {
                        self.varying_vars.extend(op.result());
                    }
                    op.operands(&mut |operand| {
                        if let Operand::Elements { buffer, how, .. } = operand
                            && how.mode.writes()
                            && how.atomic == Atomic::No
                        {
                            self.mark_private(*buffer);
                        }
                    });
                }
                _ => {}
            }
            let splits = matches!(stmt.kind, StmtKind::WarpGroup { .. });
            for child in child_blocks(stmt) {
                self.grow_varying(child, divergent || own || splits);
            }
        }
    }

    fn mark_private(&mut self, buffer: Buffer) {
        let root = self.root(buffer);
        let scope = self.func.buffers[root].scope;
        if matches!(scope, Scope::Local | Scope::Var | Scope::Fragment) {
            self.varying_buffers.insert(root);
        }
    }

    /// Starts from the expressions that matter and follows `let`s and scalars.
    fn find_relevant(&mut self) {
        let kernel = self.kernel;
        let mut pending: Vec<&'f Expr> = Vec::new();
        let mut stores: FxHashMap<Buffer, Vec<&'f Expr>> = FxHashMap::default();
        walk_stmts(&kernel.body, &mut |stmt| {
            self.relevant_exprs(stmt, &mut |e| pending.push(e));
            if let StmtKind::Store { buffer, value, .. } = &stmt.kind
                && self.func.buffers[*buffer].scope == Scope::Var
            {
                stores.entry(*buffer).or_default().push(value);
            }
        });
        while let Some(e) = pending.pop() {
            e.walk(&mut |node| match node.kind() {
                ExprKind::Var(var) if self.relevant.insert(*var) => {
                    pending.extend(self.lets.get(var));
                }
                ExprKind::Load { buffer, .. } => {
                    let data = &self.func.buffers[*buffer];
                    if data.scope == Scope::Var
                        && !matches!(data.origin, BufferOrigin::View(_))
                        && !self.varying_buffers.contains(buffer)
                        && self.scalars.insert(*buffer)
                    {
                        pending.extend(stores.get(buffer).into_iter().flatten());
                    }
                }
                _ => {}
            });
        }
    }

    /// Whether this is a scalar whose value is followed.
    pub fn is_scalar(&self, buffer: Buffer) -> bool {
        self.scalars.contains(&buffer)
    }

    /// The followed scalars that the statement, or one in it, writes.
    pub fn written_scalars(&self, stmt: &Stmt) -> &[Buffer] {
        self.writes.get(&key(stmt)).map_or(&[], |list| list)
    }

    /// Lists what each statement of the block writes, and returns what all of them do.
    fn find_writes(&mut self, block: &Block) -> Vec<Buffer> {
        let mut all = Vec::new();
        for stmt in block {
            let mut found = Vec::new();
            match &stmt.kind {
                StmtKind::Store { buffer, .. } | StmtKind::Alloc(buffer)
                    if self.is_scalar(*buffer) =>
                {
                    found.push(*buffer);
                }
                _ => {}
            }
            for child in child_blocks(stmt) {
                found.extend(self.find_writes(child));
            }
            if !found.is_empty() {
                all.extend_from_slice(&found);
                self.writes.insert(key(stmt), found);
            }
        }
        all
    }

    /// Whether the unit may touch what is looked at: shared memory, tensors that are exchanged, or
    /// registers that asynchronous loads write.
    pub fn touches_memory(&self, unit: &Stmt) -> bool {
        let mut touches = false;
        stmt_buffers(unit, &mut |buffer| {
            touches |= self.is_watched(buffer);
        });
        let mut inner = child_blocks(unit).into_iter().flatten();
        touches || inner.any(|stmt| self.touches_memory(stmt))
    }

    /// The expressions of a statement that say where memory is touched or how control goes on.
    fn relevant_exprs(&self, stmt: &'f Stmt, f: &mut dyn FnMut(&'f Expr)) {
        self.deciding_exprs(stmt, &|buffer| self.is_watched(buffer), f);
    }

    /// The same without places in tensors: an iteration is like another also where it goes on in
    /// a tensor.
    pub fn steady_exprs<'s>(&self, stmt: &'s Stmt, f: &mut dyn FnMut(&'s Expr)) {
        let watched = |buffer| self.is_watched(buffer) && !self.is_exchanged(buffer);
        self.deciding_exprs(stmt, &watched, f);
    }

    fn deciding_exprs<'s>(
        &self,
        stmt: &'s Stmt,
        tracked: &dyn Fn(Buffer) -> bool,
        f: &mut dyn FnMut(&'s Expr),
    ) {
        stmt_exprs(stmt, &mut |e| {
            e.walk_loads(&mut |buffer, indices| {
                if tracked(buffer) {
                    indices.iter().for_each(&mut *f);
                }
            });
        });
        match &stmt.kind {
            StmtKind::Store {
                buffer, indices, ..
            } if tracked(*buffer) => indices.iter().for_each(f),
            StmtKind::For(l) => {
                for axis in &l.axes {
                    f(&axis.start);
                    f(&axis.stop);
                    f(&axis.step);
                }
            }
            StmtKind::If { cond, .. } | StmtKind::While { cond, .. } | StmtKind::Assume(cond) => {
                f(cond);
            }
            StmtKind::Micro(m) => {
                if let Some(arrival) = &m.arrives {
                    f(&arrival.index);
                }
                for access in m.sources.iter().chain([&m.dest]) {
                    if tracked(access.region.buffer) {
                        access.at.iter().for_each(&mut *f);
                        access.slot.iter().for_each(&mut *f);
                        for dim in &access.region.dims {
                            f(&dim.start);
                            f(&dim.extent);
                        }
                    }
                }
            }
            StmtKind::Thread(
                ThreadOp::AllReduce { .. }
                | ThreadOp::BarrierArrive { .. }
                | ThreadOp::BarrierWait { .. }
                | ThreadOp::BarrierExpect { .. },
            ) => stmt_exprs(stmt, &mut |e| f(e)),
            StmtKind::Thread(op) => op.operands(&mut |operand| {
                if let Operand::Elements {
                    buffer, indices, ..
                } = operand
                    && tracked(*buffer)
                {
                    indices.iter().for_each(&mut *f);
                }
            }),
            StmtKind::Device(DeviceOp::Barrier(_) | DeviceOp::BarrierInit { .. }) => {
                stmt_exprs(stmt, &mut |e| f(e));
            }
            _ => {}
        }
    }

    /// Finds the conditions by which waves go ways of their own, and the groups they make.
    fn split_groups(&mut self) {
        let threads = self.kernel.num_threads();
        let mut conditions: Vec<(&'f Stmt, Vec<bool>)> = Vec::new();
        let mut unknown: Vec<(&'f Stmt, Span)> = Vec::new();
        let kernel = self.kernel;
        walk_stmts(&kernel.body, &mut |stmt| {
            let truth: Option<Vec<bool>> = match &stmt.kind {
                StmtKind::WarpGroup { groups, .. } => Some(
                    (0..threads)
                        .map(|t| groups.contains(&(t / WARP_GROUP)))
                        .collect(),
                ),
                StmtKind::Device(DeviceOp::Barrier(BarrierKind::Cond(cond))) => {
                    self.truth_by_thread(cond)
                }
                StmtKind::If { cond, .. } if self.is_blocking(stmt) && self.varies(cond) => {
                    self.truth_by_thread(cond)
                }
                // Copies that some waves start and others do not. Where lanes of one wave go
                // different ways, or that is not known, they may or may not be there.
                StmtKind::If { cond, .. } if self.is_sync(stmt) && self.varies(cond) => {
                    let whole = |truth: &Vec<bool>| {
                        let mut warps = truth.chunks(self.warp as usize);
                        warps.all(|w| w.iter().all(|t| *t == w[0]))
                    };
                    match self.truth_by_thread(cond).filter(whole) {
                        Some(truth) => Some(truth),
                        None => return,
                    }
                }
                _ => return,
            };
            match truth {
                Some(truth) => conditions.push((stmt, truth)),
                None => unknown.push((stmt, stmt.span)),
            }
        });
        for (_, span) in unknown {
            let text = "a condition that splits the block is not known from thread indices alone";
            self.undecided(span, text);
        }
        let mut groups: Vec<Vec<bool>> = Vec::new();
        for thread in 0..threads as usize {
            let own: Vec<bool> = conditions.iter().map(|(_, truth)| truth[thread]).collect();
            let found = groups.iter().position(|g| *g == own);
            let group = found.unwrap_or_else(|| {
                groups.push(own);
                groups.len() - 1
            });
            self.group_of[thread] = group.min(MAX_GROUPS - 1) as u8;
        }
        if groups.len() * self.ranks > MAX_GROUPS {
            let text = format!("more than {MAX_GROUPS} groups of waves go ways of their own");
            self.undecided(self.kernel.span, &text);
            // What one block does of itself says nothing of what the others do with it.
            self.in_part = self.ranks > 1;
            self.ranks = 1;
            groups.truncate(MAX_GROUPS);
        }
        self.groups = groups.len().max(1);
        let warp = self.warp as usize;
        for (at, (stmt, truth)) in conditions.iter().enumerate() {
            let whole = truth.chunks(warp).all(|w| w.iter().all(|t| *t == w[0]));
            if !whole && holds_collective(stmt) {
                self.divergent.push(key(stmt));
            }
            let by_group = groups.iter().map(|g| g[at]).collect();
            self.truths.insert(key(stmt), by_group);
        }
    }

    fn truth_by_thread(&self, cond: &Expr) -> Option<Vec<bool>> {
        let mut env = Env::default();
        for (axis, &var) in self.kernel.thread_vars.iter().enumerate() {
            if self.kernel.threads[axis] == 1 {
                env.vars.insert(var, Bound::Known(0));
            }
        }
        let cond = env.fold(&self.expand(cond));
        (0..self.kernel.num_threads())
            .map(|t| Some(evaluate(&cond, &self.thread_env(t))? != 0))
            .collect()
    }

    pub fn undecided(&mut self, span: Span, text: &str) {
        let reason = Reason {
            span,
            text: text.to_string(),
        };
        if !self.reasons.contains(&reason) {
            self.reasons.push(reason);
        }
    }
}

/// Whether the statement itself takes part in synchronisation, and whether it waits.
fn own_sync(stmt: &Stmt) -> (bool, bool) {
    match &stmt.kind {
        // Who issues a bulk load goes a way of its own: its barrier counts bytes.
        StmtKind::Micro(m) => (m.counter.is_some(), m.arrives.is_some()),
        StmtKind::Device(op) => match op {
            DeviceOp::Wait { .. } | DeviceOp::WaitRead { .. } | DeviceOp::Barrier(_) => {
                (true, true)
            }
            DeviceOp::Commit(_) | DeviceOp::BarrierInit { .. } => (true, false),
            DeviceOp::Fence(FenceKind::AsyncProxy | FenceKind::Wgmma) => (true, false),
            DeviceOp::Fence(_)
            | DeviceOp::SetPrio(_)
            | DeviceOp::SchedBarrier(_)
            | DeviceOp::SchedGroupBarrier { .. }
            | DeviceOp::Prefetch { .. }
            | DeviceOp::Iteration(_) => (false, false),
        },
        StmtKind::Thread(op) => match op {
            ThreadOp::SyncThreads { .. }
            | ThreadOp::SyncGrid
            | ThreadOp::SyncCluster
            | ThreadOp::ClusterArrive
            | ThreadOp::ClusterWait
            | ThreadOp::SyncWarp
            | ThreadOp::AllReduce { .. }
            | ThreadOp::BarrierWait { .. }
            | ThreadOp::BarrierArrive { .. }
            | ThreadOp::BarrierExpect { .. } => (true, true),
            ThreadOp::Vote { kind, .. } => (kind.is_of_block(), kind.is_of_block()),
            _ => (false, false),
        },
        StmtKind::WarpGroup { .. } => (true, true),
        _ => (false, false),
    }
}

/// Whether the statement, or one in it, is for whole warps. Threads may come one by one to arrival
/// barriers, and issue bulk copies.
fn holds_collective(stmt: &Stmt) -> bool {
    let own = match &stmt.kind {
        StmtKind::Micro(m) => m.counter.is_some() && !matches!(m.inst, Inst::Tma(_)),
        StmtKind::Device(DeviceOp::Barrier(_)) => true,
        StmtKind::Thread(op) => match op {
            ThreadOp::BarrierWait { .. } | ThreadOp::BarrierExpect { .. } => false,
            ThreadOp::BarrierArrive { warp, .. } => *warp,
            _ => own_sync(stmt).1,
        },
        _ => false,
    };
    let inner = child_blocks(stmt);
    own || inner.into_iter().flatten().any(holds_collective)
}

/// Whether the statement waits for the wave's own instructions and for nothing else. Groups of
/// operations are not among them: a group that may not have been closed is not followed.
fn waits_for_own(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Device(DeviceOp::Wait { counter, .. }) => !counter.counts_groups(),
        _ => false,
    }
}
