//! What a program computes, worked out element by element on whole numbers. Nothing here is
//! shared with the compiler or its evaluators.
//!
//! It is also the judge of what a valid program is: it refuses reads of what nothing wrote,
//! accesses outside on-chip memory, points, threads and blocks that meet, and numbers that a float
//! type does not hold exactly in every order of summation.

mod memory;
mod tiles;

use std::fmt;

use crate::program::*;
use crate::types::Type;
use memory::Memory;

/// Why a program has no answer.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum Invalid {
    Uninitialised(Buf),
    OutOfBounds(Buf),
    /// Points, threads or blocks meet at an element.
    Race(Buf),
    /// A number that its type does not hold, whatever the order.
    Inexact(Type),
    /// Something that all threads do together, where only some come or differ.
    Divergent,
    /// A statement where it has no meaning.
    Misplaced,
    /// Too much work to be worth testing with.
    TooLong,
}

impl fmt::Display for Invalid {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{self:?}")
    }
}

type Outcome<T> = Result<T, Invalid>;

/// What is in the tensors afterwards, in their order.
pub fn run(program: &Program) -> Outcome<Vec<Vec<i64>>> {
    run_within(program, 40_000_000)
}

/// The same, with a bound on the work.
pub fn run_within(program: &Program, steps: u64) -> Outcome<Vec<Vec<i64>>> {
    let mut machine = Machine {
        program,
        memory: Memory::new(program),
        blocks: [0; 2],
        loops: Vec::new(),
        steps,
    };
    let extents: Vec<i64> = program.grid.iter().map(|d| program.size(*d)).collect();
    let columns = extents.first().copied().unwrap_or(1);
    let rows = extents.get(1).copied().unwrap_or(1);
    let everyone: Vec<Lane> = (0..program.thread_count() as u32)
        .map(|t| Lane {
            thread: Some(t),
            who: t,
        })
        .collect();
    for by in 0..rows {
        for bx in 0..columns {
            machine.blocks = [bx, by];
            machine.memory.enter_block((by * columns + bx) as i32);
            let level = Level {
                lanes: &everyone,
                uniform: true,
                points: false,
            };
            machine.block(&program.body, level)?;
        }
    }
    Ok(program
        .tensors()
        .map(|t| machine.memory.tensor(t))
        .collect())
}

/// Someone who executes a statement: a thread, or a point of a parallel loop.
#[derive(Clone, Copy, Debug)]
struct Lane {
    /// `None` for a point: which thread does it is not said.
    thread: Option<u32>,
    who: u32,
}

/// Who executes a list of statements.
#[derive(Clone, Copy)]
struct Level<'a> {
    lanes: &'a [Lane],
    /// Whether these are all threads of the block or of a warp group, so that they can wait for
    /// each other between statements.
    uniform: bool,
    points: bool,
}

#[derive(Clone, Copy, PartialEq, Eq)]
enum Flow {
    Next,
    Break,
    Continue,
}

struct Machine<'a> {
    program: &'a Program,
    memory: Memory,
    blocks: [i64; 2],
    /// The value of each loop's index.
    loops: Vec<i64>,
    steps: u64,
}

impl Machine<'_> {
    fn block(&mut self, list: &[Stmt], level: Level<'_>) -> Outcome<Flow> {
        for stmt in list {
            let flow = self.stmt(stmt, level)?;
            if flow != Flow::Next {
                return Ok(flow);
            }
        }
        Ok(Flow::Next)
    }

    fn step(&mut self, cost: u64) -> Outcome<()> {
        self.steps = self.steps.checked_sub(cost).ok_or(Invalid::TooLong)?;
        Ok(())
    }

    fn set_loop(&mut self, var: Var, value: i64) {
        if let Var::Loop(n) = var {
            if self.loops.len() <= n {
                self.loops.resize(n + 1, 0);
            }
            self.loops[n] = value;
        }
    }

    fn stmt(&mut self, stmt: &Stmt, level: Level<'_>) -> Outcome<Flow> {
        self.step(1)?;
        let collective = level.uniform && !level.points;
        match stmt {
            Stmt::Store(buf, index, value) => self.store(*buf, index, value, level)?,
            Stmt::Atomic(op, buf, index, value) => {
                self.memory.new_region(collective);
                for lane in level.lanes {
                    let at = self.index(index, *lane)?;
                    let found = self.expr(value, *lane)?;
                    let from = value.ty(self.program);
                    let found = convert(found, from, self.ty(*buf))?;
                    self.memory
                        .atomic(self.program, *op, *buf, &at, found, lane.who)?;
                }
            }
            Stmt::Alloc(_) if level.points => return Err(Invalid::Misplaced),
            Stmt::Alloc(buf) => self.memory.allocate(*buf),
            Stmt::AllocVar(buf, init) => {
                if level.points {
                    return Err(Invalid::Misplaced);
                }
                self.memory.new_region(collective);
                self.memory.allocate(*buf);
                let ty = self.ty(*buf);
                for lane in level.lanes {
                    let value = match init {
                        Some(e) => convert(self.expr(e, *lane)?, e.ty(self.program), ty)?,
                        None => 0,
                    };
                    self.memory
                        .write(self.program, *buf, &[], value, lane.thread, lane.who)?;
                }
            }
            Stmt::If(cond, then, otherwise) => return self.branch(cond, then, otherwise, level),
            Stmt::For {
                var, count, body, ..
            } => {
                let count = self.same(count, level)?;
                for n in 0..count {
                    self.set_loop(*var, n);
                    match self.block(body, level)? {
                        Flow::Break => break,
                        Flow::Next | Flow::Continue => {}
                    }
                }
            }
            Stmt::While(cond, body) => {
                while self.same(cond, level)? != 0 {
                    self.step(1)?;
                    match self.block(body, level)? {
                        Flow::Break => break,
                        Flow::Next | Flow::Continue => {}
                    }
                }
            }
            Stmt::Break => return Ok(Flow::Break),
            Stmt::Continue => return Ok(Flow::Continue),
            _ if !collective => return Err(Invalid::Misplaced),
            Stmt::View(view) => {
                let of = self.program.buffers[view.0].view_of.unwrap_or(*view);
                let count = |b: Buf| -> i64 { self.program.shape(b).iter().product() };
                if count(of) != count(*view) {
                    return Err(Invalid::Misplaced);
                }
            }
            Stmt::Layout(..) | Stmt::UseSwizzle(..) | Stmt::Sync => {}
            Stmt::Group(group, body) => {
                let lanes = members(level.lanes, *group);
                let level = Level {
                    lanes: &lanes,
                    ..level
                };
                self.block(body, level)?;
            }
            Stmt::Handshake(h) => self.handshake(h, level)?,
            Stmt::Parallel(axes, body) => self.parallel(axes, body)?,
            Stmt::Copy(..)
            | Stmt::Fill(..)
            | Stmt::AtomicTile(..)
            | Stmt::Reduce { .. }
            | Stmt::Scan { .. }
            | Stmt::Transpose(..)
            | Stmt::Gemm(_) => {
                self.memory.new_region(true);
                self.tile_statement(stmt)?;
            }
        }
        Ok(Flow::Next)
    }

    fn store(&mut self, buf: Buf, index: &[Expr], value: &Expr, level: Level<'_>) -> Outcome<()> {
        self.memory.new_region(level.uniform && !level.points);
        let (from, to) = (value.ty(self.program), self.ty(buf));
        if level.points && matches!(self.scope(buf), Scope::Var | Scope::Local) {
            return Err(Invalid::Misplaced);
        }
        let mut writes = Vec::with_capacity(level.lanes.len());
        for lane in level.lanes {
            let at = self.index(index, *lane)?;
            let found = convert(self.expr(value, *lane)?, from, to)?;
            writes.push((at, found));
        }
        for (lane, (at, value)) in level.lanes.iter().zip(writes) {
            self.memory
                .write(self.program, buf, &at, value, lane.thread, lane.who)?;
        }
        Ok(())
    }

    fn branch(
        &mut self,
        cond: &Expr,
        then: &[Stmt],
        otherwise: &[Stmt],
        level: Level<'_>,
    ) -> Outcome<Flow> {
        let mut sides = [Vec::new(), Vec::new()];
        for lane in level.lanes {
            let chosen = self.expr(cond, *lane)? != 0;
            sides[usize::from(!chosen)].push(*lane);
        }
        if sides[1].is_empty() {
            return self.block(then, level);
        }
        if sides[0].is_empty() {
            return self.block(otherwise, level);
        }
        // Threads that go ways of their own cannot wait for each other until they meet again.
        if level.uniform {
            self.memory.new_region(true);
        }
        for (lanes, list) in sides.iter().zip([then, otherwise]) {
            let level = Level {
                lanes,
                uniform: false,
                points: level.points,
            };
            if self.block(list, level)? != Flow::Next {
                return Err(Invalid::Misplaced);
            }
        }
        Ok(Flow::Next)
    }

    fn handshake(&mut self, h: &Handshake, level: Level<'_>) -> Outcome<()> {
        let producers = members(level.lanes, h.producer_group);
        let consumers = members(level.lanes, 1 - h.producer_group);
        if producers.len() != 128 || consumers.len() != 128 {
            return Err(Invalid::Misplaced);
        }
        let [producers, consumers] = [&producers, &consumers].map(|lanes| Level {
            lanes,
            uniform: true,
            points: false,
        });
        self.block(&h.before, consumers)?;
        for n in 0..h.trips {
            self.set_loop(h.var, n);
            self.block(&h.produce, producers)?;
            self.set_loop(h.var, n);
            self.block(&h.consume, consumers)?;
        }
        self.block(&h.after, consumers)?;
        Ok(())
    }

    fn parallel(&mut self, axes: &[(Var, Dim)], body: &[Stmt]) -> Outcome<()> {
        self.memory.new_region(true);
        let extents: Vec<i64> = axes.iter().map(|(_, d)| self.program.size(*d)).collect();
        let count: i64 = extents.iter().product();
        for point in 0..count {
            let mut rest = point;
            for ((var, _), extent) in axes.iter().zip(&extents).rev() {
                self.set_loop(*var, rest % extent);
                rest /= extent;
            }
            let lanes = [Lane {
                thread: None,
                who: point as u32,
            }];
            let level = Level {
                lanes: &lanes,
                uniform: false,
                points: true,
            };
            if self.block(body, level)? == Flow::Break {
                return Err(Invalid::Misplaced);
            }
        }
        Ok(())
    }

    /// A value that all who execute the statement must agree on.
    fn same(&mut self, e: &Expr, level: Level<'_>) -> Outcome<i64> {
        if level.uniform {
            self.memory.new_region(true);
        }
        let mut found = None;
        for lane in level.lanes {
            let value = self.expr(e, *lane)?;
            if found.is_some_and(|f| f != value) {
                return Err(Invalid::Divergent);
            }
            found = Some(value);
        }
        found.ok_or(Invalid::Divergent)
    }

    fn ty(&self, buf: Buf) -> Type {
        self.program.buffers[buf.0].ty
    }

    fn scope(&self, buf: Buf) -> Scope {
        self.program.buffers[buf.0].scope
    }

    fn index(&mut self, list: &[Expr], lane: Lane) -> Outcome<Vec<i64>> {
        list.iter().map(|e| self.expr(e, lane)).collect()
    }

    fn expr(&mut self, e: &Expr, lane: Lane) -> Outcome<i64> {
        self.step(1)?;
        Ok(match e {
            Expr::Lit(v, _) => *v,
            Expr::Size(d) => self.program.size(*d),
            Expr::Var(Var::Block(axis)) => self.blocks[*axis],
            Expr::Var(Var::Thread) => i64::from(lane.thread.ok_or(Invalid::Misplaced)?),
            Expr::Var(Var::Loop(n)) => self.loops.get(*n).copied().ok_or(Invalid::Misplaced)?,
            Expr::Load(buf, index) => {
                let at = self.index(index, lane)?;
                self.memory
                    .read(self.program, *buf, &at, lane.thread, lane.who)?
            }
            Expr::Abs(a) => {
                let ty = a.ty(self.program);
                finish(i128::from(self.expr(a, lane)?).abs(), ty)?
            }
            Expr::Cast(ty, a) => convert(self.expr(a, lane)?, a.ty(self.program), *ty)?,
            Expr::Select(c, a, b) => {
                let ty = e.ty(self.program);
                let chosen = if self.expr(c, lane)? != 0 { a } else { b };
                convert(self.expr(chosen, lane)?, chosen.ty(self.program), ty)?
            }
            Expr::Binary(BinOp::Both, a, b) => match self.expr(a, lane)? {
                0 => 0,
                _ => self.expr(b, lane)?,
            },
            Expr::Binary(BinOp::Either, a, b) => match self.expr(a, lane)? {
                0 => self.expr(b, lane)?,
                _ => 1,
            },
            Expr::Binary(op, a, b) => {
                let (ta, tb) = (a.ty(self.program), b.ty(self.program));
                let ty = ta.promote(tb);
                let x = convert(self.expr(a, lane)?, ta, ty)?;
                let y = convert(self.expr(b, lane)?, tb, ty)?;
                binary(*op, x, y, ty)?
            }
        })
    }
}

/// The threads of a warp group.
fn members(lanes: &[Lane], group: u32) -> Vec<Lane> {
    let mine = |l: &&Lane| l.thread.is_some_and(|t| t / 128 == group);
    lanes.iter().filter(mine).copied().collect()
}

fn binary(op: BinOp, x: i64, y: i64, ty: Type) -> Outcome<i64> {
    let (a, b) = (i128::from(x), i128::from(y));
    let value = match op {
        BinOp::Add => a + b,
        BinOp::Sub => a - b,
        BinOp::Mul => a * b,
        BinOp::FloorDiv | BinOp::Mod if y == 0 || !ty.is_int() => return Err(Invalid::Misplaced),
        BinOp::FloorDiv => (a - floor_mod(a, b)) / b,
        BinOp::Mod => floor_mod(a, b),
        BinOp::Min => a.min(b),
        BinOp::Max => a.max(b),
        BinOp::Shl | BinOp::Shr if !(0..i64::from(ty.bits())).contains(&y) => {
            return Err(Invalid::Misplaced);
        }
        BinOp::Shl => a << b,
        BinOp::Shr => a >> b,
        BinOp::And => a & b,
        BinOp::Or => a | b,
        BinOp::Xor => a ^ b,
        BinOp::Lt => i128::from(a < b),
        BinOp::Le => i128::from(a <= b),
        BinOp::Eq => i128::from(a == b),
        BinOp::Ne => i128::from(a != b),
        BinOp::Both => i128::from(a != 0 && b != 0),
        BinOp::Either => i128::from(a != 0 || b != 0),
    };
    match op.is_test() {
        true => Ok(value as i64),
        false => finish(value, ty),
    }
}

fn floor_mod(a: i128, b: i128) -> i128 {
    let rest = a % b;
    match rest != 0 && (rest < 0) != (b < 0) {
        true => rest + b,
        false => rest,
    }
}

/// A result in its type: integers wrap, floats must hold it.
fn finish(value: i128, ty: Type) -> Outcome<i64> {
    match ty.is_int() {
        true => Ok(ty.wrap(value)),
        false => exact(value, ty),
    }
}

fn exact(value: i128, ty: Type) -> Outcome<i64> {
    match i64::try_from(value) {
        Ok(v) if ty.holds(v) => Ok(v),
        _ => Err(Invalid::Inexact(ty)),
    }
}

/// A value of one type as another.
fn convert(value: i64, from: Type, to: Type) -> Outcome<i64> {
    match to {
        _ if from == to => Ok(value),
        Type::Bool => Ok(i64::from(value != 0)),
        _ if to.is_int() && !from.is_float() => Ok(to.wrap(i128::from(value))),
        _ => exact(i128::from(value), to),
    }
}
