//! Statements of a block.

use std::array;

use crate::buffer::{BufferOrigin, Scope};
use crate::builder::operand::{IndexList, IntoIndex, IntoRegion};
use crate::builder::{Tensor, new_tensor};
use crate::diag::Span;
use crate::dtype::DType;
use crate::expr::Expr;
use crate::expr_build::IntoOperand;
use crate::func::{Func, VarKind};
use crate::ids::Var;
use crate::stmt::{Axis, Block, Loop, LoopKind, PipelineSpec, Stmt, StmtKind};
use crate::thread_op::{AtomicOp, MemoryOrder, ThreadOp};
use crate::tile_op::{
    AtomicSource, CopyHints, CopyKind, CopyOp, GemmKind, GemmOp, GemmPolicy, ReduceKind, ReduceOp,
    ScanKind, ScanOp, TileOp,
};

/// Fills a block with statements, in order.
#[derive(Debug)]
pub struct BlockBuilder<'f> {
    func: &'f mut Func,
    thread_vars: [Var; 3],
    block: Block,
}

impl<'f> BlockBuilder<'f> {
    pub(super) fn new(func: &'f mut Func, thread_vars: [Var; 3]) -> BlockBuilder<'f> {
        BlockBuilder {
            func,
            thread_vars,
            block: Vec::new(),
        }
    }

    pub(super) fn into_block(self) -> Block {
        self.block
    }

    /// Any statement.
    pub fn emit(&mut self, kind: StmtKind) {
        self.block.push(Stmt::new(kind, Span::NONE));
    }

    // ---- memory

    /// A tile in the block's shared memory.
    pub fn shared(&mut self, name: &str, dtype: DType, shape: impl IndexList) -> Tensor {
        self.alloc(name, Scope::Shared, dtype, shape)
    }

    /// A tile spread over the block's registers.
    pub fn fragment(&mut self, name: &str, dtype: DType, shape: impl IndexList) -> Tensor {
        self.alloc(name, Scope::Fragment, dtype, shape)
    }

    /// An array of each thread.
    pub fn local(&mut self, name: &str, dtype: DType, shape: impl IndexList) -> Tensor {
        self.alloc(name, Scope::Local, dtype, shape)
    }

    /// A mutable scalar of each thread; `x.at(())` reads it.
    pub fn var(&mut self, name: &str, dtype: DType, init: impl IntoOperand) -> Tensor {
        let var = self.alloc(name, Scope::Var, dtype, ());
        self.store(&var, (), init);
        var
    }

    /// Arrival barriers, one for each count.
    pub fn barriers(&mut self, name: &str, arrivals: &[u32]) -> Tensor {
        let shape = [arrivals.len()].into_exprs();
        let origin = BufferOrigin::Barriers(arrivals.to_vec());
        self.alloc_from(name, Scope::Barrier, DType::U64, shape, origin)
    }

    /// A reducer that folds with this operation.
    pub fn reducer(
        &mut self,
        name: &str,
        dtype: DType,
        shape: impl IndexList,
        op: ReduceKind,
    ) -> Tensor {
        let origin = BufferOrigin::Reducer(op);
        self.alloc_from(name, Scope::Reducer, dtype, shape.into_exprs(), origin)
    }

    pub fn alloc(
        &mut self,
        name: &str,
        scope: Scope,
        dtype: DType,
        shape: impl IndexList,
    ) -> Tensor {
        self.alloc_from(name, scope, dtype, shape.into_exprs(), BufferOrigin::Alloc)
    }

    fn alloc_from(
        &mut self,
        name: &str,
        scope: Scope,
        dtype: DType,
        shape: Vec<Expr>,
        origin: BufferOrigin,
    ) -> Tensor {
        let tensor = new_tensor(self.func, name, scope, dtype, shape, origin);
        self.emit(StmtKind::Alloc(tensor.id()));
        tensor
    }

    // ---- scalar code

    /// The thread's index along an axis: 0, 1, 2 for x, y, z.
    pub fn thread(&self, axis: usize) -> Expr {
        self.func.var_expr(self.thread_vars[axis.min(2)])
    }

    /// Names a value, which is computed here, once.
    pub fn bind(&mut self, name: &str, value: Expr) -> Expr {
        let var = self.func.add_var(name, value.dtype(), VarKind::Let);
        self.emit(StmtKind::Let { var, value });
        self.func.var_expr(var)
    }

    /// Stores a value, converted to the tensor's type.
    pub fn store(&mut self, tensor: &Tensor, indices: impl IndexList, value: impl IntoOperand) {
        let indices = indices.into_exprs();
        let lanes = indices.last().map_or(1, |i| i.dtype().lanes);
        let dtype = tensor.dtype();
        let dtype = dtype.with_lanes(dtype.lanes.saturating_mul(lanes));
        self.emit(StmtKind::Store {
            buffer: tensor.id(),
            indices,
            value: value.operand(dtype).cast_to(dtype),
        });
    }

    pub fn assume(&mut self, fact: Expr) {
        self.emit(StmtKind::Assume(fact));
    }

    pub fn assert(&mut self, cond: Expr, message: impl Into<String>) {
        let message = message.into();
        self.emit(StmtKind::Assert { cond, message });
    }

    // ---- control flow

    pub fn if_(&mut self, cond: Expr, then: impl FnOnce(&mut BlockBuilder<'_>)) {
        self.if_else(cond, then, |_| {});
    }

    pub fn if_else(
        &mut self,
        cond: Expr,
        then: impl FnOnce(&mut BlockBuilder<'_>),
        otherwise: impl FnOnce(&mut BlockBuilder<'_>),
    ) {
        let then = self.nested(then);
        let otherwise = self.nested(otherwise);
        self.emit(StmtKind::If {
            cond,
            then,
            otherwise,
        });
    }

    pub fn while_(&mut self, cond: Expr, body: impl FnOnce(&mut BlockBuilder<'_>)) {
        let body = self.nested(body);
        self.emit(StmtKind::While { cond, body });
    }

    pub fn break_(&mut self) {
        self.emit(StmtKind::Break);
    }

    pub fn continue_(&mut self) {
        self.emit(StmtKind::Continue);
    }

    /// From zero up to `stop`, in order.
    pub fn serial(&mut self, stop: impl IntoIndex, body: impl FnOnce(&mut BlockBuilder<'_>, Expr)) {
        self.for_each(LoopKind::Serial, [stop], |t, [i]| body(t, i));
    }

    /// From `start` up to `stop`, in order, by `step`.
    pub fn range(
        &mut self,
        start: impl IntoIndex,
        stop: impl IntoIndex,
        step: impl IntoIndex,
        body: impl FnOnce(&mut BlockBuilder<'_>, Expr),
    ) {
        let stop = stop.into_index();
        let var = self.func.add_var("i", stop.dtype(), VarKind::Loop);
        let axis = Axis {
            var,
            start: start.into_index().cast_to(stop.dtype()),
            step: step.into_index().cast_to(stop.dtype()),
            stop,
        };
        let index = self.func.var_expr(var);
        let body = self.nested(|t| body(t, index));
        self.emit(StmtKind::For(Loop {
            kind: LoopKind::Serial,
            axes: vec![axis],
            body,
        }));
    }

    /// In order, written out by the compiler.
    pub fn unroll(&mut self, stop: impl IntoIndex, body: impl FnOnce(&mut BlockBuilder<'_>, Expr)) {
        self.for_each(LoopKind::Unroll { factor: None }, [stop], |t, [i]| {
            body(t, i)
        });
    }

    /// Independent iterations that may become vector lanes.
    pub fn vectorized(
        &mut self,
        stop: impl IntoIndex,
        body: impl FnOnce(&mut BlockBuilder<'_>, Expr),
    ) {
        self.for_each(LoopKind::Vectorized, [stop], |t, [i]| body(t, i));
    }

    /// In order, with copies of up to `stages` later iterations under way.
    pub fn pipelined(
        &mut self,
        stop: impl IntoIndex,
        stages: u32,
        body: impl FnOnce(&mut BlockBuilder<'_>, Expr),
    ) {
        let spec = PipelineSpec {
            stages,
            ..PipelineSpec::default()
        };
        self.for_each(LoopKind::Pipelined(spec), [stop], |t, [i]| body(t, i));
    }

    /// Every point once, in no order.
    pub fn parallel<const N: usize>(
        &mut self,
        extents: [impl IntoIndex; N],
        body: impl FnOnce(&mut BlockBuilder<'_>, [Expr; N]),
    ) {
        let kind = LoopKind::Parallel {
            coalesced_width: None,
            layout: None,
        };
        self.for_each(kind, extents, body);
    }

    /// A loop of any kind over ranges from zero.
    pub fn for_each<const N: usize>(
        &mut self,
        kind: LoopKind,
        extents: [impl IntoIndex; N],
        body: impl FnOnce(&mut BlockBuilder<'_>, [Expr; N]),
    ) {
        let names = ["i", "j", "k", "l"];
        let stops: Vec<Expr> = extents.into_iter().map(IntoIndex::into_index).collect();
        let mut axes = Vec::new();
        for (n, stop) in stops.into_iter().enumerate() {
            let name = names.get(n).copied().unwrap_or("i");
            let var = self.func.add_var(name, stop.dtype(), VarKind::Loop);
            axes.push(Axis::upto(var, stop));
        }
        let indices = array::from_fn(|n| self.func.var_expr(axes[n].var));
        let body = self.nested(|t| body(t, indices));
        self.emit(StmtKind::For(Loop { kind, axes, body }));
    }

    /// Only the warp groups listed run the body.
    pub fn warp_group(&mut self, groups: &[u32], body: impl FnOnce(&mut BlockBuilder<'_>)) {
        let body = self.nested(body);
        let groups = groups.to_vec();
        self.emit(StmtKind::WarpGroup { groups, body });
    }

    fn nested(&mut self, fill: impl FnOnce(&mut BlockBuilder<'_>)) -> Block {
        let mut inner = BlockBuilder::new(self.func, self.thread_vars);
        fill(&mut inner);
        inner.block
    }

    // ---- tile operations

    pub fn copy(&mut self, src: impl IntoRegion, dst: impl IntoRegion) {
        self.copy_with(src, dst, |_| {});
    }

    /// A copy whose kind and hints are set by `adjust`.
    pub fn copy_with(
        &mut self,
        src: impl IntoRegion,
        dst: impl IntoRegion,
        adjust: impl FnOnce(&mut CopyOp),
    ) {
        let mut op = CopyOp {
            src: src.into_region(),
            dst: dst.into_region(),
            kind: CopyKind::Sync,
            hints: CopyHints::default(),
        };
        adjust(&mut op);
        self.emit(StmtKind::Tile(TileOp::Copy(op)));
    }

    pub fn fill(&mut self, dst: impl IntoRegion, value: impl IntoOperand) {
        let dst = dst.into_region();
        let dtype = self
            .func
            .buffers
            .get(dst.buffer)
            .map_or(DType::F32, |b| b.dtype);
        let value = value.operand(dtype);
        self.emit(StmtKind::Tile(TileOp::Fill { dst, value }));
    }

    /// `c += a · b`
    pub fn gemm(&mut self, a: impl IntoRegion, b: impl IntoRegion, c: impl IntoRegion) {
        self.gemm_with(a, b, c, |_| {});
    }

    /// A product whose transpositions and the like are set by `adjust`.
    pub fn gemm_with(
        &mut self,
        a: impl IntoRegion,
        b: impl IntoRegion,
        c: impl IntoRegion,
        adjust: impl FnOnce(&mut GemmOp),
    ) {
        let mut op = GemmOp {
            a: a.into_region(),
            b: b.into_region(),
            c: c.into_region(),
            trans_a: false,
            trans_b: false,
            sparse: None,
            scales: None,
            policy: GemmPolicy::Square,
            clear: Expr::bool(false),
            k_pack: 1,
            kind: GemmKind::Auto,
            barrier: None,
            plan: None,
        };
        adjust(&mut op);
        self.emit(StmtKind::Tile(TileOp::Gemm(op)));
    }

    /// Folds along `dim` from the operation's identity.
    pub fn reduce(
        &mut self,
        kind: ReduceKind,
        src: impl IntoRegion,
        dst: impl IntoRegion,
        dim: u32,
    ) {
        self.reduce_with(kind, src, dst, dim, |_| {});
    }

    /// A reduction whose further settings are set by `adjust`.
    pub fn reduce_with(
        &mut self,
        kind: ReduceKind,
        src: impl IntoRegion,
        dst: impl IntoRegion,
        dim: u32,
        adjust: impl FnOnce(&mut ReduceOp),
    ) {
        let mut op = ReduceOp {
            kind,
            src: src.into_region(),
            dst: dst.into_region(),
            dim,
            clear: true,
            nan_propagate: false,
        };
        adjust(&mut op);
        self.emit(StmtKind::Tile(TileOp::Reduce(op)));
    }

    /// An inclusive scan along `dim`.
    pub fn scan(&mut self, kind: ScanKind, src: impl IntoRegion, dst: impl IntoRegion, dim: u32) {
        self.emit(StmtKind::Tile(TileOp::Scan(ScanOp {
            kind,
            src: src.into_region(),
            dst: dst.into_region(),
            dim,
            reverse: false,
        })));
    }

    /// One relaxed atomic for each point of `dst`.
    pub fn atomic(&mut self, op: AtomicOp, dst: impl IntoRegion, src: impl IntoRegion) {
        self.emit(StmtKind::Tile(TileOp::Atomic {
            op,
            dst: dst.into_region(),
            value: AtomicSource::Region(src.into_region()),
            order: MemoryOrder::Relaxed,
        }));
    }

    pub fn reducer_init(&mut self, reducer: &Tensor) {
        self.emit(StmtKind::Tile(TileOp::ReducerInit {
            reducer: reducer.id(),
            init: None,
        }));
    }

    pub fn reducer_update(
        &mut self,
        reducer: &Tensor,
        indices: impl IndexList,
        value: impl IntoOperand,
    ) {
        self.emit(StmtKind::Tile(TileOp::ReducerUpdate {
            reducer: reducer.id(),
            indices: indices.into_exprs(),
            value: value.operand(reducer.dtype()).cast_to(reducer.dtype()),
        }));
    }

    pub fn reducer_finalize(&mut self, reducer: &Tensor, dst: impl IntoRegion) {
        self.emit(StmtKind::Tile(TileOp::ReducerFinalize {
            reducer: reducer.id(),
            dst: Some(dst.into_region()),
        }));
    }

    // ---- thread operations

    /// A barrier of the block.
    pub fn sync_threads(&mut self) {
        self.emit(StmtKind::Thread(ThreadOp::SyncThreads { named: None }));
    }

    /// A relaxed atomic on one element, by each thread that reaches it.
    pub fn atomic_element(
        &mut self,
        op: AtomicOp,
        tensor: &Tensor,
        indices: impl IndexList,
        value: impl IntoOperand,
    ) {
        let dtype = tensor.dtype();
        self.emit(StmtKind::Thread(ThreadOp::AtomicRmw {
            op,
            buffer: tensor.id(),
            indices: indices.into_exprs(),
            value: value.operand(dtype).cast_to(dtype),
            order: MemoryOrder::Relaxed,
            result: None,
        }));
    }
}
