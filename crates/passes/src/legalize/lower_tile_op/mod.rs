//! LowerTileOp: from what the block does to what one thread does.
//!
//! Every tile op becomes micro-ops or a loop over the registers of a thread; every parallel
//! loop becomes a loop over the points that its layout gives the thread; fragments become
//! arrays of registers. An op is lowered by looking at itself and the layouts of its buffers,
//! nothing wider.
//!
//! Before:
//! ```text
//! for i, j in parallel(64, 64) layout=… { C[i, j] = C[i, j] * 2.0 }
//! ```
//! After:
//! ```text
//! for s in unroll(0, 32) {
//!   let i: int32 = …
//!   let j: int32 = …
//!   C[s] = C[s] * 2.0
//! }
//! ```
//!
//! Needs the layouts of LayoutInference. It adds no barriers (ThreadSync does) and no bounds
//! checks of global memory (LegalizeSafeMemoryAccess does).

mod bulk;
mod copy;
mod gemm;
mod group_gemm;
mod integer_maxima;
mod matrix_store;
mod ops;
mod points;
mod reduce;
mod scan;
mod swizzle_exchange;
mod transposed;

pub use reduce::identity;
pub use swizzle_exchange::{Refusal as ExchangeRefusal, exchanged};

use std::sync::Arc;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_arith::Analyzer;
use tilewright_ir::visit::{child_blocks_mut, rewrite_block, walk_stmts};
use tilewright_ir::{
    Axis, Block, Buffer, BufferData, Code, Counter, DType, DeviceOp, Diagnostic, Diagnostics, Expr,
    Func, Level, Loop, LoopKind, Scope, Span, Stmt, StmtKind, Target, Var, VarKind,
};
use tilewright_layout::Fragment;

use crate::Changed;
use crate::legalize::shared_width::shared_width;
use crate::rename::rename;
use crate::threads::thread_number;

const NOT_LOWERED: Code = Code("not-lowered");

/// Lowers all kernels; the function is at loop level afterwards.
pub fn lower_tile_op(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    let mut slots = FxHashMap::default();
    for at in 0..func.kernels.len() {
        let threads = func.kernels[at].num_threads() as i64;
        let tid = thread_number(func, &func.kernels[at]);
        let blocks = func.kernels[at].cluster_blocks();
        let rank = func.kernels[at].attrs.rank;
        let body = std::mem::take(&mut func.kernels[at].body);
        let mut analyzer = Analyzer::for_func(func);
        analyzer.enter_kernel(func, &func.kernels[at]);
        let mut lower = Lower {
            func,
            target,
            diags,
            analyzer,
            tid,
            threads,
            blocks,
            rank,
            ranges: Vec::new(),
            widths: FxHashMap::default(),
            allocs: Vec::new(),
            exchanges: FxHashMap::default(),
            ahead: Vec::new(),
            registers: FxHashMap::default(),
            padded: FxHashSet::default(),
            filled: FxHashSet::default(),
        };
        let mut body = lower.block(body);
        lower.find_slots(&body, &mut slots);
        lower.clear_padding(&mut body);
        let rank = lower.rank;
        let mut allocs = std::mem::take(&mut lower.allocs);
        allocs.append(&mut body);
        func.kernels[at].body = allocs;
        func.kernels[at].attrs.rank = rank;
    }
    name_by_root(func, &mut slots);
    // Fragments become arrays of registers; their layouts stay for reports and checks.
    for (buffer, slots) in slots {
        let data = &mut func.buffers[buffer];
        data.scope = Scope::Local;
        data.shape = vec![Expr::int(slots.into(), DType::I32)];
    }
    func.level = Level::Loop;
    Changed::Yes
}

/// A view of a fragment is another name for the same registers in the same order: the code says
/// the name of what it is a view of, and the view is gone.
fn name_by_root(func: &mut Func, slots: &mut FxHashMap<Buffer, i64>) {
    let views: FxHashMap<Buffer, Buffer> = slots
        .keys()
        .map(|&buffer| (buffer, func.root(buffer)))
        .filter(|(view, of)| view != of)
        .collect();
    for (view, of) in &views {
        let needed = slots.remove(view).unwrap_or(1);
        let most = slots.entry(*of).or_insert(needed);
        *most = needed.max(*most);
    }
    for kernel in &mut func.kernels {
        drop_allocs(&mut kernel.body, &views);
        rename(&mut kernel.body, &FxHashMap::default(), &views);
    }
}

fn drop_allocs(block: &mut Block, views: &FxHashMap<Buffer, Buffer>) {
    block.retain(|stmt| !matches!(stmt.kind, StmtKind::Alloc(b) if views.contains_key(&b)));
    for stmt in block {
        for child in child_blocks_mut(stmt) {
            drop_allocs(child, views);
        }
    }
}

struct Lower<'a> {
    func: &'a mut Func,
    target: Target,
    diags: &'a mut Diagnostics,
    /// Knows what holds at the statement that is being lowered.
    analyzer: Analyzer,
    /// The thread's number among those that take part.
    tid: Expr,
    threads: i64,
    /// Blocks of a cluster, and the number of a block there.
    blocks: u32,
    rank: Option<Var>,
    /// Extents of the loops over slots that are being written.
    ranges: Vec<(Var, i64)>,
    /// See [`Lower::shared_width`].
    widths: FxHashMap<Buffer, i64>,
    /// Allocations of temporaries, put at the start of the kernel.
    allocs: Block,
    /// See [`Lower::exchange_buffer`].
    exchanges: FxHashMap<(&'static str, DType, Vec<i64>), Exchange>,
    /// Buffers that copies of the pipelined loop around fill ahead of their use.
    ahead: Vec<Buffer>,
    /// The registers that instructions take of fragments, at least.
    registers: FxHashMap<Buffer, i64>,
    /// Accumulators with registers that hold no element.
    padded: FxHashSet<Buffer>,
    /// Fragments all of whose registers some statement fills.
    filled: FxHashSet<Buffer>,
}

/// Temporaries of shared memory that are used in turn.
#[derive(Default)]
struct Exchange {
    buffers: Vec<Buffer>,
    uses: usize,
}

/// So many reductions or scans have a temporary of their own before one is used again. With two of
/// them in turn the barrier of one use already lies between the last reads of the other's and what
/// is written there next; more of them keep that so around loops.
const EXCHANGES: usize = 4;

impl Lower<'_> {
    fn block(&mut self, block: Block) -> Block {
        self.analyzer.push();
        let out = rewrite_block(block, |stmt, out| {
            let first = out.len();
            self.stmt(stmt, out);
            // What it leaves true is known to those after it.
            for stmt in &out[first..] {
                self.analyzer.after(stmt);
            }
        });
        self.analyzer.pop();
        out
    }

    /// The block where a condition holds, or does not.
    fn block_under(&mut self, cond: &Expr, holds: bool, block: Block) -> Block {
        self.analyzer.push();
        match holds {
            true => self.analyzer.assume(cond),
            false => self.analyzer.refute(cond),
        }
        let block = self.block(block);
        self.analyzer.pop();
        block
    }

    fn stmt(&mut self, stmt: Stmt, out: &mut Block) {
        let span = stmt.span;
        let kind = match stmt.kind {
            StmtKind::Tile(op) => return self.tile_op(op, span, out),
            // Copies are complete when they end, so there is nothing to wait for.
            StmtKind::Device(
                DeviceOp::Commit(Counter::CpAsync)
                | DeviceOp::Wait {
                    counter: Counter::CpAsync,
                    ..
                },
            ) if !self.target.machine().counts(Counter::CpAsync) => return,
            StmtKind::For(l) => match l.kind {
                LoopKind::Parallel { .. } => return self.parallel(l, span, out),
                LoopKind::Persistent { .. } => return self.persistent(l, span, out),
                _ => {
                    let outer = self.ahead.clone();
                    if let LoopKind::Pipelined(spec) = &l.kind {
                        self.ahead.clone_from(&spec.versioned);
                    }
                    self.analyzer.enter_loop(self.func, &l);
                    let body = self.block(l.body);
                    self.analyzer.pop();
                    self.ahead = outer;
                    StmtKind::For(Loop { body, ..l })
                }
            },
            StmtKind::While { cond, body } => StmtKind::While {
                cond,
                body: self.block(body),
            },
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => StmtKind::If {
                then: self.block_under(&cond, true, then),
                otherwise: self.block_under(&cond, false, otherwise),
                cond,
            },
            StmtKind::WarpGroup { groups, body } => {
                let first = groups.first().copied().unwrap_or(0);
                let saved = (self.tid.clone(), self.threads);
                self.threads = 128 * groups.len() as i64;
                if first > 0 {
                    self.tid = self.tid.clone() - (128 * first) as i64;
                }
                // Other warps do not wait for these, so they must not share temporaries.
                let outer = std::mem::take(&mut self.exchanges);
                let body = self.block(body);
                self.exchanges = outer;
                (self.tid, self.threads) = saved;
                StmtKind::WarpGroup { groups, body }
            }
            other => other,
        };
        out.push(Stmt::new(kind, span));
    }

    fn give_up(&mut self, span: Span, why: &str) {
        self.diags
            .push(Diagnostic::error(NOT_LOWERED, span, why.to_string()));
    }

    /// How many registers a thread has for each fragment.
    fn find_slots(&mut self, body: &Block, slots: &mut FxHashMap<Buffer, i64>) {
        let mut fragments = Vec::new();
        walk_stmts(body, &mut |stmt| {
            if let StmtKind::Alloc(buffer) = stmt.kind
                && self.scope(buffer) == Scope::Fragment
            {
                fragments.push((buffer, stmt.span));
            }
        });
        for (buffer, span) in fragments {
            // What nothing touches has no layout, and needs no register.
            let placed = self.fragment(buffer);
            if placed.is_none() && self.func.buffers[buffer].layout.is_some() {
                self.give_up(span, "the layout of this fragment is not decided");
            }
            let needed = self
                .registers
                .get(&self.func.root(buffer))
                .copied()
                .unwrap_or(1);
            slots.insert(buffer, placed.map_or(1, |f| f.slots()).max(needed));
        }
    }

    /// An instruction works on whole tiles, so it takes registers for elements that a fragment
    /// does not have.
    fn needs_registers(&mut self, buffer: Buffer, count: i64) {
        let of = self.func.root(buffer);
        let most = self.registers.entry(of).or_insert(count);
        *most = count.max(*most);
    }

    /// What an instruction adds to must have been written: registers of accumulators that hold no
    /// element start as zero. Those among a fragment's slots do not where something fills the
    /// fragment whole, which writes every slot of every thread.
    fn clear_padding(&mut self, body: &mut Block) {
        let mut at = 0;
        while at < body.len() {
            for block in child_blocks_mut(&mut body[at]) {
                self.clear_padding(block);
            }
            if let StmtKind::Alloc(buffer) = body[at].kind
                && self.padded.contains(&buffer)
                && let Some(&registers) = self.registers.get(&buffer)
            {
                let slots = self.fragment(buffer).map_or(0, |f| f.slots());
                let first = match self.filled.contains(&buffer) {
                    true => slots.min(registers),
                    false => 0,
                };
                if first < registers {
                    let mut fill = Vec::new();
                    self.zero(buffer, first..registers, body[at].span, &mut fill);
                    let count = fill.len();
                    body.splice(at + 1..at + 1, fill);
                    at += count;
                }
            }
            at += 1;
        }
    }

    /// The layout of a fragment buffer.
    fn fragment(&self, buffer: Buffer) -> Option<Arc<Fragment>> {
        self.func.buffers[buffer].held().cloned()
    }

    /// How many elements along the last dimension lie side by side wherever a shared buffer's
    /// layout puts them.
    fn shared_width(&mut self, buffer: Buffer) -> i64 {
        if let Some(known) = self.widths.get(&buffer) {
            return *known;
        }
        let width = shared_width(self.func, buffer);
        self.widths.insert(buffer, width);
        width
    }

    fn scope(&self, buffer: Buffer) -> Scope {
        self.func.buffers[buffer].scope
    }

    fn dtype(&self, buffer: Buffer) -> DType {
        self.func.buffers[buffer].dtype
    }

    /// A temporary that lives for the whole kernel.
    fn temp(&mut self, name: &str, scope: Scope, dtype: DType, shape: &[i64]) -> Buffer {
        let shape = shape
            .iter()
            .map(|&e| Expr::int(e.into(), DType::I32))
            .collect();
        let buffer = self
            .func
            .buffers
            .push(BufferData::new(name, scope, dtype, shape));
        self.allocs
            .push(Stmt::new(StmtKind::Alloc(buffer), Span::NONE));
        buffer
    }

    /// A temporary of shared memory through which threads exchange values in one operation. A body
    /// of many reductions needs no more of them than one of a few.
    fn exchange_buffer(&mut self, name: &'static str, dtype: DType, shape: &[i64]) -> Buffer {
        let key = (name, dtype, shape.to_vec());
        let known = self.exchanges.entry(key.clone()).or_default();
        let at = known.uses % EXCHANGES;
        known.uses += 1;
        if let Some(buffer) = known.buffers.get(at) {
            return *buffer;
        }
        let buffer = self.temp(name, Scope::Shared, dtype, shape);
        self.exchanges.entry(key).or_default().buffers.push(buffer);
        buffer
    }

    fn var(&mut self, name: &str, kind: VarKind) -> (Var, Expr) {
        self.var_of(name, DType::I32, kind)
    }

    fn var_of(&mut self, name: &str, dtype: DType, kind: VarKind) -> (Var, Expr) {
        let var = self.func.add_var(name, dtype, kind);
        (var, self.func.var_expr(var))
    }

    fn load(&self, buffer: Buffer, indices: Vec<Expr>) -> Expr {
        Expr::load(buffer, indices, self.func.buffers[buffer].dtype)
    }

    fn simplify(&mut self, e: &Expr) -> Expr {
        self.analyzer.simplify(e)
    }
}

/// `buffer[indices] = value`, the value converted.
fn store(buffer: Buffer, indices: Vec<Expr>, value: Expr, dtype: DType, span: Span) -> Stmt {
    Stmt::new(
        StmtKind::Store {
            buffer,
            indices,
            value: value.cast_to(dtype),
        },
        span,
    )
}

/// `for v in kind(0, n) { body }`.
fn counted(var: Var, n: i64, kind: LoopKind, body: Block, span: Span) -> Stmt {
    counted_in(DType::I32, var, n, kind, body, span)
}

/// The same with an index of this type.
fn counted_in(dtype: DType, var: Var, n: i64, kind: LoopKind, body: Block, span: Span) -> Stmt {
    Stmt::new(
        StmtKind::For(Loop {
            kind,
            axes: vec![Axis::upto(var, Expr::int(n.into(), dtype))],
            body,
        }),
        span,
    )
}

fn unroll() -> LoopKind {
    LoopKind::Unroll { factor: None }
}

/// The body under a condition, or as it is.
fn guarded(cond: Option<Expr>, body: Block, span: Span, out: &mut Block) {
    match cond {
        None => out.extend(body),
        Some(cond) => out.push(Stmt::new(
            StmtKind::If {
                cond,
                then: body,
                otherwise: Vec::new(),
            },
            span,
        )),
    }
}
