//! Compilation of statements: structure becomes jumps, or masks where threads disagree.

use tilewright_ir::{
    Block, BufferOrigin, Expr, Kernel, LoopKind, Scope, Span, Stmt, StmtKind, Var, WARP_GROUP,
};

use crate::compile::names::{Compiled, Names};
use crate::compile::{Code, expr};
use crate::error::{RunError, codes};
use crate::exec::{threads, tiles};
use crate::program::{Num, Op, Pc, Uniform};

/// The instructions of a kernel's body.
pub(crate) fn body(names: &mut Names<'_>, kernel: &Kernel) -> Compiled<Code> {
    let groups = names.threads.div_ceil(WARP_GROUP);
    let mut b = Builder {
        names,
        code: Code::default(),
        labels: Vec::new(),
        loops: Vec::new(),
        reconverge: Vec::new(),
        groups: u64::MAX >> (64 - groups),
        carried: Vec::new(),
        span: kernel.span,
    };
    b.block(&kernel.body)?;
    b.emit(Op::Halt);
    let Builder {
        mut code, labels, ..
    } = b;
    for op in &mut code.ops {
        for target in targets(op) {
            *target = labels[*target];
        }
    }
    Ok(code)
}

/// A place in the code that is not known yet; resolved at the end.
pub(super) type Label = Pc;

/// The loop that `break` and `continue` speak of.
#[derive(Clone, Copy)]
pub(super) enum LoopFrame {
    Plain { next: Label, end: Label },
    Masked,
    Point { end: Label },
}

pub(crate) struct Builder<'b, 'f> {
    pub names: &'b mut Names<'f>,
    pub code: Code,
    labels: Vec<Pc>,
    pub(super) loops: Vec<LoopFrame>,
    /// Where execution goes on when no thread is left active, innermost last.
    pub(super) reconverge: Vec<Label>,
    /// The warp groups that run this part of the program.
    pub groups: u64,
    /// Private buffers written in the current parallel loop.
    pub carried: Vec<u32>,
    pub span: Span,
}

impl Builder<'_, '_> {
    pub fn emit(&mut self, op: Op) {
        self.code.ops.push(op);
        self.code.spans.push(self.span);
    }

    pub(super) fn label(&mut self) -> Label {
        self.labels.push(0);
        self.labels.len() - 1
    }

    pub(super) fn bind(&mut self, label: Label) {
        self.labels[label] = self.code.ops.len();
    }

    pub(super) fn block(&mut self, block: &Block) -> Compiled<()> {
        for stmt in block {
            self.span = stmt.span;
            self.stmt(stmt)?;
            if matches!(stmt.kind, StmtKind::Break | StmtKind::Continue) {
                // What follows in the suite is never reached.
                break;
            }
        }
        Ok(())
    }

    fn stmt(&mut self, stmt: &Stmt) -> Compiled<()> {
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                // The value is compiled before the name changes its meaning.
                let varying = self.varies(value);
                let lanes: Compiled<Vec<Num>> = (0..value.dtype().lanes as usize)
                    .map(|lane| expr::num(self.names, value, lane))
                    .collect();
                let lanes = lanes?;
                let places = self.names.define(*var);
                for (place, value) in places.into_iter().zip(lanes) {
                    self.emit(Op::Let {
                        place,
                        value,
                        varying,
                    });
                }
            }
            StmtKind::Store {
                buffer,
                indices,
                value,
            } => {
                let op = self.store(*buffer, indices, value, stmt.span)?;
                self.emit(op);
            }
            StmtKind::Alloc(buffer) => self.alloc(*buffer)?,
            StmtKind::For(l) => match &l.kind {
                LoopKind::Serial
                | LoopKind::Unroll { .. }
                | LoopKind::Vectorized
                | LoopKind::Pipelined(_) => match l.axes.as_slice() {
                    [axis] => self.serial(stmt, axis, &l.body)?,
                    _ => return Err(self.invalid("a serial loop has one axis")),
                },
                LoopKind::Parallel { .. } => self.parallel(l)?,
                LoopKind::Persistent {
                    wave_size,
                    index,
                    group_size,
                } => self.persistent(stmt, &l.axes, [wave_size, index, group_size], &l.body)?,
            },
            StmtKind::While { cond, body } => self.while_loop(stmt, cond, body)?,
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => self.conditional(cond, then, otherwise)?,
            StmtKind::Break => self.leave(true)?,
            StmtKind::Continue => self.leave(false)?,
            StmtKind::Assert { cond, message } => self.assert(cond, Some(message.clone()))?,
            StmtKind::Assume(cond) => self.assert(cond, None)?,
            StmtKind::WarpGroup { groups, body } => self.warp_group(groups, body)?,
            StmtKind::Tile(op) => tiles::compile(self, stmt, op)?,
            StmtKind::Thread(op) => threads::compile(self, op, stmt.span)?,
            StmtKind::Device(op) => threads::device(self, op)?,
            StmtKind::Micro(_) => {
                return Err(RunError::new(
                    codes::NOT_TILE_IR,
                    stmt.span,
                    "the reference evaluator runs tile IR, not micro-ops",
                ));
            }
        }
        Ok(())
    }

    /// Whether threads do this one by one: never inside a parallel loop, where a point does.
    pub fn varies(&self, e: &Expr) -> bool {
        !self.names.in_point && self.names.varying(e)
    }

    /// Whether each thread has a result of its own.
    pub fn var_varies(&self, var: Var) -> bool {
        !self.names.in_point && self.names.var_varies(var)
    }

    pub fn invalid(&self, message: &str) -> RunError {
        RunError::invalid(self.span, message)
    }

    pub fn store(
        &mut self,
        buffer: tilewright_ir::Buffer,
        indices: &[Expr],
        value: &Expr,
        span: Span,
    ) -> Compiled<Op> {
        let scalar = self.names.func.buffers[buffer].dtype.scalar;
        let lanes = value.dtype().lanes as usize;
        let mut stores = Vec::with_capacity(lanes);
        for lane in 0..lanes {
            let access = self.store_target(buffer, indices, lane, span)?;
            let from = value.dtype().scalar;
            let value = expr::num(self.names, value, lane)?;
            // A store rounds floats to the buffer's type by itself.
            let rounds = from.is_float() && scalar.is_float();
            let to = if rounds { from } else { scalar };
            stores.push((access, expr::convert(value, from, to)));
        }
        let varying = !self.names.in_point
            && (self.names.any_varying(indices)
                || self.names.varying(value)
                || self.names.buffer_varies(buffer));
        Ok(Op::Store {
            stores: stores.into(),
            varying,
        })
    }

    /// An element that is written here.
    pub fn store_target(
        &mut self,
        buffer: tilewright_ir::Buffer,
        indices: &[Expr],
        lane: usize,
        span: Span,
    ) -> Compiled<crate::program::Access> {
        // Writing is no reading: what threads disagree about there does not matter.
        let before = self.names.uniform.buffers.len();
        let access = self.names.access(buffer, indices, lane, span)?;
        let number = access.buffer;
        let root = self.names.func.root(buffer);
        if let Some(at) = self.names.uniform.buffers[before..]
            .iter()
            .position(|&b| b == number)
        {
            self.names.uniform.buffers.remove(before + at);
        }
        self.names.writes(number);
        if self.names.in_point
            && self.names.func.buffers[root].scope.is_private()
            && !self.names.point_allocs.contains(&root)
            && !self.carried.contains(&number)
        {
            self.carried.push(number);
        }
        Ok(access)
    }

    fn alloc(&mut self, buffer: tilewright_ir::Buffer) -> Compiled<()> {
        let data = &self.names.func.buffers[buffer];
        let number = self.names.buffer(buffer)?;
        match data.origin {
            // Barriers are initialised before any thread runs; views have no storage.
            BufferOrigin::Barriers(_) | BufferOrigin::View(_) | BufferOrigin::Pointer(_) => {
                return Ok(());
            }
            BufferOrigin::Param
            | BufferOrigin::Workspace
            | BufferOrigin::Alloc
            | BufferOrigin::Reducer(_) => {}
        }
        if self.names.in_point {
            if !data.scope.is_private() {
                return Err(self.invalid("only private memory can be allocated in a parallel loop"));
            }
            self.names.point_allocs.insert(buffer);
        }
        let varying = !self.names.in_point && self.names.buffer_varies(buffer);
        self.emit(Op::Alloc {
            buffer: number,
            zero: data.scope == Scope::Var,
            varying,
        });
        Ok(())
    }

    /// Where to go on when no thread is left active here.
    pub(super) fn outer(&mut self) -> Label {
        match self.reconverge.last() {
            Some(&label) => label,
            None => {
                // Never taken: outside of masks all threads are active.
                let here = self.label();
                self.labels[here] = self.code.ops.len() + 1;
                here
            }
        }
    }

    fn conditional(&mut self, cond: &Expr, then: &Block, otherwise: &Block) -> Compiled<()> {
        let varying = self.varies(cond);
        let cond = expr::int(self.names, cond, 0)?;
        let (second, end) = (self.label(), self.label());
        if !varying {
            self.emit(Op::Branch {
                cond,
                otherwise: second,
            });
            self.block(then)?;
            if !otherwise.is_empty() {
                self.emit(Op::Jump(end));
            }
            self.bind(second);
            self.block(otherwise)?;
            self.bind(end);
            return Ok(());
        }
        let first_end = if otherwise.is_empty() { end } else { second };
        self.emit(Op::MaskIf {
            cond,
            otherwise: first_end,
        });
        self.reconverge.push(first_end);
        self.block(then)?;
        self.reconverge.pop();
        self.bind(second);
        if !otherwise.is_empty() {
            self.emit(Op::MaskElse { end });
            self.reconverge.push(end);
            self.block(otherwise)?;
            self.reconverge.pop();
        }
        self.bind(end);
        let none = self.outer();
        self.emit(Op::MaskEnd { none });
        Ok(())
    }

    fn leave(&mut self, breaks: bool) -> Compiled<()> {
        match self.loops.last().copied() {
            None => Err(self.invalid("`break` or `continue` outside of a loop")),
            Some(LoopFrame::Plain { next, end }) => {
                self.emit(Op::Jump(if breaks { end } else { next }));
                Ok(())
            }
            Some(LoopFrame::Masked) => {
                let to = self.outer();
                self.emit(if breaks {
                    Op::MaskBreak { to }
                } else {
                    Op::MaskContinue { to }
                });
                Ok(())
            }
            Some(LoopFrame::Point { .. }) if breaks => {
                Err(self.invalid("`break` in a parallel loop: its points have no order"))
            }
            Some(LoopFrame::Point { end }) => {
                self.emit(Op::Jump(end));
                Ok(())
            }
        }
    }

    fn assert(&mut self, cond: &Expr, message: Option<String>) -> Compiled<()> {
        let varying = self.varies(cond);
        let cond = expr::int(self.names, cond, 0)?;
        self.emit(Op::Assert {
            cond,
            message,
            varying,
        });
        Ok(())
    }

    fn warp_group(&mut self, groups: &[u32], body: &Block) -> Compiled<()> {
        if self.names.in_point {
            return Err(self.invalid("a warp-group region in a parallel loop"));
        }
        let count = self.names.threads.div_ceil(WARP_GROUP);
        let mut set = 0u64;
        for &g in groups {
            if g >= count {
                return Err(RunError::new(
                    codes::LAUNCH_EXTENT,
                    self.span,
                    format!(
                        "there is no warp group {g}: the block's {} threads form {count}",
                        self.names.threads
                    ),
                ));
            }
            set |= 1 << g;
        }
        self.code.grouped = true;
        let skip = self.label();
        self.emit(Op::Group { groups: set, skip });
        let outside = self.groups;
        self.groups &= set;
        self.block(body)?;
        self.groups = outside;
        self.bind(skip);
        Ok(())
    }

    /// Starts collecting what threads must agree about; the collection so far is returned.
    pub fn begin_uniform(&mut self) -> Uniform {
        std::mem::take(&mut self.names.uniform)
    }

    pub fn end_uniform(&mut self, before: Uniform) -> Uniform {
        std::mem::replace(&mut self.names.uniform, before)
    }
}

/// The jump targets of an instruction.
fn targets(op: &mut Op) -> Vec<&mut Pc> {
    match op {
        Op::Jump(to)
        | Op::Branch { otherwise: to, .. }
        | Op::ForNext { end: to, .. }
        | Op::MaskIf { otherwise: to, .. }
        | Op::MaskElse { end: to }
        | Op::MaskEnd { none: to }
        | Op::MaskForNext { end: to, .. }
        | Op::MaskWhileNext { end: to, .. }
        | Op::MaskBreak { to }
        | Op::MaskContinue { to }
        | Op::MaskLoopEnd { none: to }
        | Op::Group { skip: to, .. } => vec![to],
        Op::WaveNext(wave) => vec![&mut wave.end],
        Op::Parallel(p) => vec![&mut p.end],
        Op::Let { .. }
        | Op::Store { .. }
        | Op::Alloc { .. }
        | Op::Assert { .. }
        | Op::ForStart { .. }
        | Op::WaveStart { .. }
        | Op::MaskFor { .. }
        | Op::MaskWhile
        | Op::EndPoint
        | Op::Collective { .. }
        | Op::PerThread { .. }
        | Op::Thread(_)
        | Op::Halt => Vec::new(),
    }
}
