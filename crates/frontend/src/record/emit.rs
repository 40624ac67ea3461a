//! The function under construction: blocks, statements, variables, buffers, kernels.

use tilewright_ir::{
    Block, Buffer, BufferData, BufferOrigin, DType, Diagnostic, Expr, ExprKind, Kernel,
    KernelAttrs, MAX_EXPR_DEPTH, MAX_EXPR_SIZE, Scope, Span, Stmt, StmtKind, ThreadOp, TileOp, Var,
    VarData, VarKind, visit,
};

use crate::codes;
use crate::record::Recorder;
use crate::{Error, Result};

/// Blocks inside blocks of one kernel.
const MAX_BLOCKS: usize = 200;

/// The kinds of blocks.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum BlockKind {
    Kernel,
    Loop,
    /// A loop whose points run in no order.
    Parallel,
    While,
    /// An arm of a run-time `if`.
    Branch,
    /// A `T.ws` suite and the like.
    Frame,
}

/// A block whose statements are being recorded.
#[derive(Debug)]
pub struct OpenBlock {
    pub kind: BlockKind,
    stmts: Block,
    pub span: Span,
}

/// The kernel being recorded.
#[derive(Debug)]
pub struct KernelState {
    /// Block index and extent of each grid axis, x first.
    pub grid: Vec<(Var, Expr)>,
    pub threads: [u32; 3],
    pub thread_vars: [Var; 3],
    pub attrs: KernelAttrs,
    pub span: Span,
}

impl KernelState {
    pub fn num_threads(&self) -> u32 {
        self.threads.iter().product()
    }
}

impl Recorder {
    /// Records a statement, said to come from the call or statement being evaluated.
    pub fn emit(&mut self, kind: StmtKind) -> Result<()> {
        self.emit_at(kind, self.span)
    }

    pub fn emit_at(&mut self, kind: StmtKind, span: Span) -> Result<()> {
        self.charge(1, span)?;
        self.emitted += 1;
        let stmt = Stmt::new(kind, span);
        let mut too_large = None;
        visit::stmt_exprs(&stmt, &mut |e| {
            if too_large.is_none() && !fits(e) {
                too_large = Some(e.span());
            }
        });
        if let Some(at) = too_large {
            return Err(self.too_large(if at.is_none() { span } else { at }));
        }
        match self.blocks.last_mut() {
            Some(block) => {
                block.stmts.push(stmt);
                Ok(())
            }
            None => Err(self.outside_kernel("this statement", span)),
        }
    }

    /// Records a tile operation. It is a collective, so it may not stand in a parallel loop.
    pub fn emit_tile(&mut self, op: TileOp) -> Result<()> {
        let span = self.span;
        if self.in_parallel() && !matches!(op, TileOp::ReducerUpdate { .. }) {
            return Err(self
                .error(
                    codes::BAD_LOOP,
                    span,
                    "a tile operation cannot stand inside `T.Parallel`",
                )
                .help("move it out of the loop, or work on single elements inside")
                .into());
        }
        self.emit_at(StmtKind::Tile(op), span)
    }

    pub fn emit_thread(&mut self, op: ThreadOp) -> Result<()> {
        self.emit(StmtKind::Thread(op))
    }

    /// Names a run-time value for the rest of the block, so that it is computed once, here.
    pub fn let_value(&mut self, name: &str, value: Expr, span: Span) -> Result<Expr> {
        let var = self.new_var(name, value.dtype(), VarKind::Let, span);
        if let Some(bounds) = self.range_of(&value) {
            self.var_bounds.insert(var, bounds);
        }
        if value.dtype().scalar.is_int() && !reads_memory(&value) {
            self.let_values.insert(var, value.clone());
        }
        self.emit_at(StmtKind::Let { var, value }, span)?;
        Ok(self.var_expr(var).with_span(span))
    }

    /// A variable for the result of a thread op; it takes the name it is assigned to.
    pub fn result_var(&mut self, dtype: DType) -> Var {
        let span = self.span;
        self.new_var("", dtype, VarKind::Let, span)
    }

    pub fn new_var(
        &mut self,
        name: impl Into<String>,
        dtype: DType,
        kind: VarKind,
        span: Span,
    ) -> Var {
        self.func.vars.push(VarData {
            name: name.into(),
            dtype,
            kind,
            span,
        })
    }

    pub fn var_expr(&self, var: Var) -> Expr {
        self.func.var_expr(var)
    }

    /// Adds a buffer to the function without allocating it in a block.
    pub fn new_buffer(&mut self, data: BufferData) -> Buffer {
        self.func.buffers.push(data)
    }

    /// Allocates a buffer in the current block. An empty name is filled in by the assignment
    /// that the buffer is bound by.
    pub fn alloc(&mut self, data: BufferData) -> Result<Buffer> {
        if !self.in_kernel() {
            let what = format!("an allocation of {} memory", data.scope.name());
            return Err(self.outside_kernel(&what, data.span));
        }
        let span = data.span;
        let buffer = self.new_buffer(data);
        self.emit_at(StmtKind::Alloc(buffer), span)?;
        Ok(buffer)
    }

    /// Allocates a variable of each thread and stores its initial value.
    pub fn alloc_var(&mut self, name: &str, init: Expr, span: Span) -> Result<Buffer> {
        let dtype = init.dtype();
        let origin = BufferOrigin::Alloc;
        let data = self.buffer_data(name, Scope::Var, dtype, Vec::new(), origin, span);
        let buffer = self.alloc(data)?;
        let store = StmtKind::Store {
            buffer,
            indices: Vec::new(),
            value: init,
        };
        self.emit_at(store, span)?;
        Ok(buffer)
    }

    /// A buffer with the usual rest: contiguous, no layout, one version.
    pub fn buffer_data(
        &self,
        name: impl Into<String>,
        scope: Scope,
        dtype: DType,
        shape: Vec<Expr>,
        origin: BufferOrigin,
        span: Span,
    ) -> BufferData {
        BufferData {
            origin,
            span,
            ..BufferData::new(name, scope, dtype, shape)
        }
    }

    pub fn buffer(&self, buffer: Buffer) -> &BufferData {
        &self.func.buffers[buffer]
    }

    pub fn buffer_mut(&mut self, buffer: Buffer) -> &mut BufferData {
        &mut self.func.buffers[buffer]
    }

    /// How messages call a buffer.
    pub fn buffer_name(&self, buffer: Buffer) -> String {
        let data = self.buffer(buffer);
        if data.name.is_empty() {
            format!("this {} buffer", data.scope.name())
        } else {
            format!("`{}`", data.name)
        }
    }

    pub fn open_block(&mut self, kind: BlockKind, span: Span) -> Result<()> {
        if self.blocks.len() >= MAX_BLOCKS {
            return Err(self
                .error(
                    codes::NESTED_TOO_DEEP,
                    span,
                    format!("loops and branches are nested more than {MAX_BLOCKS} deep"),
                )
                .into());
        }
        self.blocks.push(OpenBlock {
            kind,
            stmts: Vec::new(),
            span,
        });
        Ok(())
    }

    /// Ends the innermost block.
    pub fn close_block(&mut self) -> Block {
        let block = self.blocks.pop();
        block.map_or_else(Vec::new, |block| block.stmts)
    }

    /// How many statements the innermost block has.
    pub(crate) fn recorded(&self) -> usize {
        self.blocks.last().map_or(0, |block| block.stmts.len())
    }

    /// Takes the statements of the innermost block from a place on.
    pub(crate) fn take_recorded(&mut self, from: usize) -> Block {
        match self.blocks.last_mut() {
            Some(block) if from < block.stmts.len() => block.stmts.split_off(from),
            _ => Vec::new(),
        }
    }

    pub fn in_kernel(&self) -> bool {
        self.kernel.is_some()
    }

    /// Whether an enclosing loop is parallel.
    pub fn in_parallel(&self) -> bool {
        self.blocks.iter().any(|b| b.kind == BlockKind::Parallel)
    }

    /// Whether what is recorded here is done once by all threads of a block.
    pub fn once(&self) -> bool {
        self.blocks.iter().all(|b| b.kind == BlockKind::Kernel)
    }

    /// The kernel being recorded; outside one, an error that names `what`.
    pub fn kernel(&self, what: &str) -> Result<&KernelState> {
        self.kernel
            .as_ref()
            .ok_or_else(|| self.outside_kernel(what, self.span))
    }

    pub fn kernel_mut(&mut self, what: &str) -> Result<&mut KernelState> {
        let (building, span) = (self.building, self.span);
        self.kernel
            .as_mut()
            .ok_or_else(|| outside_kernel(building, what, span))
    }

    pub fn outside_kernel(&self, what: &str, span: Span) -> Error {
        outside_kernel(self.building, what, span)
    }

    /// Starts recording a kernel. Returns its block indices.
    pub fn begin_kernel(
        &mut self,
        grid: Vec<Expr>,
        threads: [u32; 3],
        span: Span,
    ) -> Result<Vec<Expr>> {
        if !self.building {
            return Err(self.outside_kernel("`T.Kernel`", span));
        }
        if let Some(outer) = &self.kernel {
            return Err(self
                .error(codes::KERNEL_LAUNCH, span, "a kernel inside a kernel")
                .also(outer.span, "the outer kernel")
                .into());
        }
        let mut bound = Vec::new();
        for (axis, extent) in grid.into_iter().enumerate() {
            let name = ["bx", "by", "bz"][axis];
            let var = self.new_var(name, extent.dtype(), VarKind::BlockIdx(axis as u8), span);
            if let Some((_, hi)) = self.range_of(&extent) {
                self.var_bounds.insert(var, (0, (hi - 1).max(0)));
            }
            bound.push((var, extent));
        }
        let thread_vars = [0u8, 1, 2].map(|axis| {
            let name = ["tx", "ty", "tz"][axis as usize];
            let var = self.new_var(name, DType::I32, VarKind::ThreadIdx(axis), span);
            let last = i128::from(threads[axis as usize]) - 1;
            self.var_bounds.insert(var, (0, last.max(0)));
            var
        });
        let indices = bound.iter().map(|(var, _)| self.var_expr(*var)).collect();
        self.kernel = Some(KernelState {
            grid: bound,
            threads,
            thread_vars,
            attrs: KernelAttrs::default(),
            span,
        });
        self.open_block(BlockKind::Kernel, span)?;
        Ok(indices)
    }

    /// Ends the kernel being recorded and adds it to the function.
    pub fn end_kernel(&mut self) {
        let mut body = self.close_block();
        let Some(state) = self.kernel.take() else {
            return;
        };
        crate::record::store::drop_unused_lets(&mut body, &self.let_elements);
        self.func.kernels.push(Kernel {
            grid: state.grid,
            threads: state.threads,
            thread_vars: state.thread_vars,
            attrs: state.attrs,
            body,
            span: state.span,
        });
    }

    /// The expression, unless it has grown past what the IR takes.
    pub fn checked(&self, expr: Expr, span: Span) -> Result<Expr> {
        match fits(&expr) {
            true => Ok(expr),
            false => Err(self.too_large(span)),
        }
    }

    fn too_large(&self, span: Span) -> Error {
        self.error(
            codes::EXPRESSION_TOO_LARGE,
            span,
            "the expression grew too large while it was built at compile time",
        )
        .help("assign parts of it to names inside the kernel; each name is computed once")
        .into()
    }
}

fn outside_kernel(building: bool, what: &str, span: Span) -> Error {
    let diagnostic = if building {
        Diagnostic::error(
            codes::OUTSIDE_KERNEL,
            span,
            format!("{what} stands outside a kernel"),
        )
        .help("put it into the suite of `with T.Kernel(...)`")
    } else {
        Diagnostic::error(
            codes::NO_BUILDER,
            span,
            format!("{what} has no meaning where no kernel is being built"),
        )
        .help("use it in a function decorated `@T.prim_func` or `@tilelang.jit`")
    };
    diagnostic.into()
}

/// Whether evaluating the expression again later could give another value.
fn reads_memory(expr: &Expr) -> bool {
    let mut reads = false;
    if fits(expr) {
        expr.walk(&mut |e| reads |= matches!(e.kind(), ExprKind::Load { .. }));
    }
    reads || !fits(expr)
}

/// Whether an expression is within the limits of the IR.
fn fits(expr: &Expr) -> bool {
    expr.depth() <= MAX_EXPR_DEPTH && expr.size() <= MAX_EXPR_SIZE
}
