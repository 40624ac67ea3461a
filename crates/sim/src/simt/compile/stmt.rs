//! Compilation of statements: structure becomes instructions on the mask of active lanes.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Axis, Block, Buffer, Expr, Func, Loop, LoopKind, Stmt, StmtKind};

use super::Compiler;
use crate::compile::loops::waits_for_memory;
use crate::compile::names::Compiled;
use crate::error::RunError;
use crate::simt::program::{Access, Fn1, Op, Pc, Slot, Space};

impl Compiler<'_> {
    /// A block; the instruction that comes after it ends it.
    pub(super) fn block(&mut self, block: &Block) -> Compiled<()> {
        let base = self.next;
        self.block_ends.push(Vec::new());
        for stmt in block {
            let saved = self.next;
            self.stmt(stmt)?;
            if !binds(&stmt.kind) {
                self.next = saved;
            }
        }
        self.next = base;
        let end = self.pc();
        for at in self.block_ends.pop().unwrap_or_default() {
            self.set_target(at, end);
        }
        self.end_of_sums(block)
    }

    /// Behind a block the registers of the sums that live in it may hold something else. A loop's body
    /// may also be left from inside.
    fn end_of_sums(&mut self, block: &Block) -> Compiled<()> {
        for stmt in block {
            if let StmtKind::Alloc(buffer) = stmt.kind
                && is_sum(self.func, block, buffer)
            {
                self.statement(stmt.span, "end of a sum".to_string());
                let buffer = self.buffer(buffer)?;
                self.emit(Op::GiveUp { buffer });
            }
        }
        Ok(())
    }

    /// Makes an instruction go to the end of the block around it.
    fn leave_block(&mut self, at: usize) {
        if let Some(ends) = self.block_ends.last_mut() {
            ends.push(at);
        }
    }

    pub(super) fn set_target(&mut self, at: usize, target: Pc) {
        match &mut self.program.ops[at] {
            Op::If { otherwise: to, .. }
            | Op::IfGroup { otherwise: to, .. }
            | Op::Else { end: to }
            | Op::EndIf { none: to }
            | Op::ForHead { end: to, .. }
            | Op::WhileHead { end: to, .. }
            | Op::Break { to }
            | Op::Continue { to } => *to = target,
            _ => {}
        }
    }

    fn stmt(&mut self, stmt: &Stmt) -> Compiled<()> {
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                self.statement(stmt.span, "let".to_string());
                let lanes = usize::from(self.func.vars[*var].dtype.lanes);
                let slots = self.bind(value, lanes)?;
                self.vars.insert(*var, slots);
            }
            StmtKind::Store {
                buffer,
                indices,
                value,
            } => {
                self.statement(stmt.span, "store".to_string());
                self.store(*buffer, indices, value, stmt)?;
            }
            StmtKind::Alloc(buffer) => {
                self.statement(stmt.span, "alloc".to_string());
                let number = self.buffer(*buffer)?;
                match self.program.buffers[number as usize].space {
                    Space::Local(_) => {
                        self.emit(Op::Alloc { buffer: number });
                    }
                    Space::Shared(_) | Space::Global(_) | Space::Barrier(_) => {}
                }
            }
            StmtKind::For(l) => self.for_loop(l, stmt)?,
            StmtKind::While { cond, body } => {
                self.statement(stmt.span, "while".to_string());
                self.program.traffic.spins |= waits_for_memory(self.func, cond, body);
                self.emit(Op::While);
                let head = self.pc();
                let cond = self.cast(cond, tilewright_ir::Scalar::Bool)?;
                let at = self.emit(Op::WhileHead { cond, end: 0 });
                self.loop_depth += 1;
                self.block(body)?;
                self.loop_depth -= 1;
                self.emit(Op::WhileNext { head });
                let end = self.pc();
                self.set_target(at, end);
                self.end_of_sums(body)?;
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.statement(stmt.span, "if".to_string());
                let cond = self.cast(cond, tilewright_ir::Scalar::Bool)?;
                if let Some(known) = self.constant_of(cond) {
                    let taken = if known != 0 { then } else { otherwise };
                    return self.inline(taken);
                }
                let at = self.emit(Op::If { cond, otherwise: 0 });
                self.branches(at, then, otherwise)?;
            }
            StmtKind::WarpGroup { groups, body } => {
                self.statement(stmt.span, "warp_group".to_string());
                let groups = groups.iter().fold(0u64, |set, &g| set | 1 << g.min(63));
                let at = self.emit(Op::IfGroup {
                    groups,
                    otherwise: 0,
                });
                self.branches(at, body, &Vec::new())?;
            }
            StmtKind::Break | StmtKind::Continue => {
                self.statement(stmt.span, "break".to_string());
                if self.loop_depth == 0 {
                    return Err(RunError::invalid(stmt.span, "there is no loop around this"));
                }
                let at = self.emit(match stmt.kind {
                    StmtKind::Break => Op::Break { to: 0 },
                    _ => Op::Continue { to: 0 },
                });
                self.leave_block(at);
            }
            StmtKind::Assert { cond, message } => {
                self.statement(stmt.span, "assert".to_string());
                let cond = self.scalar(cond)?;
                self.emit(Op::Assert {
                    cond,
                    message: message.clone(),
                    assumed: false,
                });
            }
            StmtKind::Assume(cond) => {
                self.statement(stmt.span, "assume".to_string());
                let cond = self.scalar(cond)?;
                self.emit(Op::Assert {
                    cond,
                    message: String::new(),
                    assumed: true,
                });
            }
            StmtKind::Tile(_) => {
                return Err(not_lowered(stmt, "a tile operation"));
            }
            StmtKind::Thread(op) => self.thread_op(op, stmt.span)?,
            StmtKind::Micro(op) => self.micro_op(op, stmt.span)?,
            StmtKind::Device(op) => self.device_op(op, stmt.span)?,
        }
        Ok(())
    }

    /// A block whose condition is known: its statements stand where it stood.
    fn inline(&mut self, block: &Block) -> Compiled<()> {
        let base = self.next;
        for stmt in block {
            let saved = self.next;
            self.stmt(stmt)?;
            if !binds(&stmt.kind) {
                self.next = saved;
            }
        }
        self.next = base;
        Ok(())
    }

    fn branches(&mut self, at: usize, then: &Block, otherwise: &Block) -> Compiled<()> {
        let stmt = self.stmt;
        self.block(then)?;
        self.stmt = stmt;
        let start = self.pc();
        self.set_target(at, start);
        let middle = self.emit(Op::Else { end: 0 });
        self.block(otherwise)?;
        self.stmt = stmt;
        let end = self.pc();
        self.set_target(middle, end);
        let at = self.emit(Op::EndIf { none: 0 });
        self.leave_block(at);
        Ok(())
    }

    fn for_loop(&mut self, l: &Loop, stmt: &Stmt) -> Compiled<()> {
        match l.kind {
            LoopKind::Serial
            | LoopKind::Unroll { .. }
            | LoopKind::Vectorized
            | LoopKind::Pipelined(_) => {}
            LoopKind::Parallel { .. } | LoopKind::Persistent { .. } => {
                return Err(not_lowered(stmt, "a loop over the block's tiles"));
            }
        }
        let [axis] = l.axes.as_slice() else {
            return Err(not_lowered(stmt, "a loop of several axes"));
        };
        let Axis {
            var,
            start,
            stop,
            step,
        } = axis;
        let data = &self.func.vars[*var];
        let (name, scalar) = (data.name.clone(), data.dtype.scalar);
        self.statement(stmt.span, "for".to_string());
        let start = self.cast(start, scalar)?;
        let stop = self.cast(stop, scalar)?;
        let step = self.cast(step, scalar)?;
        let index = if [start, stop, step].iter().all(|s| s.is_one()) {
            Slot::One(self.fresh_one())
        } else {
            self.fresh_lanes()
        };
        self.vars.insert(*var, vec![index]);
        self.enter_loop(name, index);
        let stmt = self.stmt;
        self.emit(Op::For {
            var: index,
            start,
            step,
        });
        let head = self.pc();
        let at = self.emit(Op::ForHead {
            var: index,
            stop,
            step,
            end: 0,
        });
        self.loop_depth += 1;
        self.block(&l.body)?;
        self.loop_depth -= 1;
        self.stmt = stmt;
        self.emit(Op::ForNext {
            var: index,
            step,
            head,
        });
        let end = self.pc();
        self.set_target(at, end);
        self.leave_loop();
        self.end_of_sums(&l.body)
    }

    /// The registers of a value that outlives its statement.
    fn bind(&mut self, value: &Expr, lanes: usize) -> Compiled<Vec<Slot>> {
        let base = self.next;
        // The registers to keep come first, so that the others are free afterwards.
        let kept: Vec<Slot> = (0..lanes).map(|_| self.fresh_lanes()).collect();
        let above = self.next;
        let mut slots = Vec::with_capacity(lanes);
        let mut moved = Vec::new();
        for (lane, &keep) in kept.iter().enumerate() {
            let slot = self.lane(value, lane)?;
            match slot {
                Slot::Lanes(i) if i >= above => {
                    moved.push((slot, keep));
                    slots.push(keep);
                }
                _ => slots.push(slot),
            }
        }
        if moved.is_empty() {
            self.next = base;
            return Ok(slots);
        }
        if let [(temporary, keep)] = moved[..]
            && let Some(Op::Alu1 { dst, .. } | Op::Alu2 { dst, .. } | Op::Alu3 { dst, .. }) =
                self.program.ops.last_mut()
            && *dst == temporary
        {
            *dst = keep;
        } else {
            for (temporary, keep) in moved {
                self.emit(Op::Alu1 {
                    f: Fn1::Copy,
                    dst: keep,
                    a: temporary,
                });
            }
        }
        self.next = above;
        Ok(slots)
    }

    fn store(
        &mut self,
        buffer: tilewright_ir::Buffer,
        indices: &[Expr],
        value: &Expr,
        stmt: &Stmt,
    ) -> Compiled<()> {
        let number = self.buffer(buffer)?;
        let info = &self.program.buffers[number as usize];
        let (scalar, lanes) = (info.scalar, info.lanes as usize);
        let index_lanes = indices.iter().map(|i| usize::from(i.dtype().lanes));
        let outer = index_lanes.max().unwrap_or(1);
        let total = lanes * outer;
        let value_lanes = usize::from(value.dtype().lanes);
        if value_lanes != total && value_lanes != 1 {
            return Err(RunError::invalid(
                stmt.span,
                format!("{value_lanes} values stored to {total} elements"),
            ));
        }
        let mut values = Vec::with_capacity(total);
        for lane in 0..total {
            let lane = if value_lanes == 1 { 0 } else { lane };
            let slot = self.lane(value, lane)?;
            values.push(self.convert(slot, value.dtype().scalar, scalar));
        }
        self.note_traffic(number, true);
        let (version, indices) = self.version(number, indices)?;
        let mut done = 0;
        while done < total {
            let (slots, width) = self.indices(number, indices, done / lanes, stmt.span)?;
            let access = self.add_access(Access {
                buffer: number,
                indices: slots,
                version,
                width,
            });
            self.emit(Op::Store {
                access,
                values: values[done..done + width as usize].into(),
            });
            done += width as usize;
        }
        Ok(())
    }
}

/// Whether a statement names a value for the rest of its block.
fn binds(kind: &StmtKind) -> bool {
    matches!(kind, StmtKind::Let { .. } | StmtKind::Thread(_))
}

fn not_lowered(stmt: &Stmt, what: &str) -> RunError {
    RunError::new(
        crate::simt::codes::NOT_LOWERED,
        stmt.span,
        format!("{what} has not been lowered; the simulator runs one thread's view"),
    )
}

/// Whether products of warp groups in the block add to these registers.
fn is_sum(func: &Func, block: &Block, buffer: Buffer) -> bool {
    let mut found = false;
    walk_stmts(block, &mut |stmt| {
        let product = stmt.as_group_product();
        found |= product.is_some_and(|p| func.root(p.dest.region.buffer) == buffer);
    });
    found
}
