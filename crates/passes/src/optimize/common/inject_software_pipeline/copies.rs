//! How a copy from global to shared memory gets under way.
//!
//! Where the machine copies asynchronously, as wide as it loads, and the instructions fit, a `g2s`
//! becomes one that a counter tracks: `cp.async`, or the wave's copy to LDS ([`super::direct`]).
//! Elsewhere the copy goes through registers: it is loaded early (`g2r`) and stored late (`r2s`),
//! so the loads are in flight while the iteration computes.

use tilewright_ir::target::AsyncCopy;
use tilewright_ir::{
    Access, Block, Buffer, BufferData, BufferOrigin, Counter, DType, Expr, Func, Inst, Kernel,
    LoopKind, MicroKind, MicroOp, Region, RegionDim, Scope, Stmt, StmtKind, Target, Var, VarKind,
};

use super::super::fresh::refresh;
use super::direct::{self, Refusal};

/// A statement as the schedule sees it.
pub(super) enum Copy {
    /// Done when the next statement starts.
    Plain(Stmt),
    /// Tracked by a counter; so many instructions are certainly issued by each wave.
    Tracked {
        stmt: Stmt,
        counter: Counter,
        instructions: u32,
    },
    Staged(Box<Staged>),
}

/// A copy through registers, in two halves.
pub(super) struct Staged {
    pub load: Stmt,
    pub store: Stmt,
    /// The allocation of the registers.
    pub alloc: Stmt,
    pub counter: Option<Counter>,
    /// How many instructions are certainly issued by each wave.
    pub instructions: u32,
}

/// Where copies stand, and how they may go.
#[derive(Clone, Copy)]
pub(super) struct Way<'a> {
    pub kernel: &'a Kernel,
    pub target: Target,
    /// Whether waves may copy straight to LDS.
    pub direct: bool,
}

/// Makes the statement asynchronous as the target allows. Other statements than copies stay. The
/// reason is given where waves could copy, but not this.
pub(super) fn convert(func: &mut Func, way: Way<'_>, stmt: Stmt) -> (Copy, Option<Refusal>) {
    let Way {
        kernel,
        target,
        direct,
    } = way;
    let copy = target.machine().wide_copy();
    let by_waves = copy.filter(|c| c.inst == Inst::BufferLoadLds);
    if !is_copy(std::slice::from_ref(&stmt)) {
        let refusal = by_waves.map(|_| Refusal::NotACopy);
        return (Copy::Plain(stmt), refusal);
    }
    if let Some(copy) = by_waves {
        let fits = match direct {
            true => direct::fits(func, kernel, target, &stmt),
            false => Err(Refusal::Memory),
        };
        return match fits {
            Ok(instructions) => {
                let mut stmt = stmt;
                direct::convert(&mut stmt, &copy);
                let counter = copy.counter;
                let tracked = Copy::Tracked {
                    stmt,
                    counter,
                    instructions,
                };
                (tracked, None)
            }
            Err(refusal) => (stage(func, target, stmt), Some(refusal)),
        };
    }
    let by_threads = copy.filter(|c| fits_threads(func, c, std::slice::from_ref(&stmt)));
    match by_threads {
        Some(copy) => (convert_by_threads(func, &copy, stmt), None),
        None => (stage(func, target, stmt), None),
    }
}

fn convert_by_threads(func: &Func, copy: &AsyncCopy, mut stmt: Stmt) -> Copy {
    each_micro(std::slice::from_mut(&mut stmt), &mut |m| {
        m.inst = copy.inst;
        m.counter = Some(copy.counter);
    });
    fold_guard(func, &mut stmt);
    Copy::Tracked {
        stmt,
        counter: copy.counter,
        instructions: 1,
    }
}

/// Whether a block only copies from global to shared memory.
fn is_copy(block: &[Stmt]) -> bool {
    let copies = |s: &Stmt| match &s.kind {
        StmtKind::Micro(m) => m.kind == MicroKind::G2s && m.inst == Inst::Load,
        StmtKind::For(l) => is_copy(&l.body),
        StmtKind::If {
            then, otherwise, ..
        } => (is_copy(then) && otherwise.is_empty()) || (is_copy(then) && is_copy(otherwise)),
        StmtKind::Let { .. } => true,
        _ => false,
    };
    !block.is_empty() && block.iter().all(copies)
}

pub(super) fn each_micro(block: &mut [Stmt], f: &mut impl FnMut(&mut MicroOp)) {
    for stmt in block {
        if let StmtKind::Micro(m) = &mut stmt.kind {
            f(m);
        }
        for child in tilewright_ir::visit::child_blocks_mut(stmt) {
            each_micro(child, f);
        }
    }
}

/// Whether `cp.async` can do all instructions: its sizes, and zeros where nothing is copied.
fn fits_threads(func: &Func, copy: &AsyncCopy, block: &[Stmt]) -> bool {
    let mut fits = true;
    for stmt in block {
        tilewright_ir::visit::walk_stmts(&vec![stmt.clone()], &mut |s| {
            if let StmtKind::Micro(m) = &s.kind {
                let bits = m.width * func.buffers[m.dest.region.buffer].dtype.bits();
                fits &= bits.is_multiple_of(8) && copy.bytes.contains(&(bits / 8));
                fits &= m.otherwise.as_ref().is_none_or(is_zero);
            }
        });
    }
    fits
}

fn is_zero(e: &Expr) -> bool {
    e.is_int(0) || e.as_float().is_some_and(|v| v.to_bits() == 0)
}

/// Splits the copy into a load to registers and a store from them.
fn stage(func: &mut Func, target: Target, stmt: Stmt) -> Copy {
    let counter = target.machine().load_counter;
    let registers = func.buffers.next_key();
    let mut split = Split {
        registers,
        dtype: None,
        counter,
        loops: Vec::new(),
        guards: Vec::new(),
        used: 0,
        instructions: Some(0),
    };
    let (mut load, mut store) = (Vec::new(), Vec::new());
    let span = stmt.span;
    let whole = split.stmt(func, &stmt, &mut load, &mut store);
    let (Some(()), Some(dtype), [load], [_]) = (whole, split.dtype, &load[..], &store[..]) else {
        return Copy::Plain(stmt);
    };
    let (load, count) = (load.clone(), split.used);
    let instructions = split.instructions.unwrap_or(0);
    func.buffers.push(BufferData {
        name: "staged".to_string(),
        scope: Scope::Local,
        dtype,
        shape: vec![Expr::int(count.into(), DType::I32)],
        strides: None,
        origin: BufferOrigin::Alloc,
        layout: None,
        versions: 1,
        place: None,
        safe_value: None,
        span,
    });
    // The two halves stand at different places, so each has loops of its own.
    refresh(func, &mut store);
    Copy::Staged(Box::new(Staged {
        load,
        store: store.remove(0),
        alloc: Stmt::new(StmtKind::Alloc(registers), span),
        counter,
        instructions,
    }))
}

struct Split {
    registers: Buffer,
    dtype: Option<DType>,
    counter: Option<Counter>,
    /// Loops around, with their extents.
    loops: Vec<(Var, DType, i64)>,
    /// Conditions around that differ from thread to thread.
    guards: Vec<Expr>,
    /// Registers given out.
    used: i64,
    /// Instructions that are certainly issued; `None` under a condition.
    instructions: Option<u32>,
}

impl Split {
    /// Adds both halves of a statement; `None` where it cannot be split.
    fn stmt(
        &mut self,
        func: &Func,
        stmt: &Stmt,
        load: &mut Block,
        store: &mut Block,
    ) -> Option<()> {
        match &stmt.kind {
            StmtKind::Micro(m) => {
                let (early, late) = self.micro(func, m)?;
                load.push(Stmt::new(StmtKind::Micro(early), stmt.span));
                store.push(Stmt::new(StmtKind::Micro(late), stmt.span));
            }
            StmtKind::Let { .. } => {
                load.push(stmt.clone());
                store.push(stmt.clone());
            }
            StmtKind::For(l) => {
                let [axis] = &l.axes[..] else {
                    return None;
                };
                let extent = i64::try_from(axis.const_trip_count()?).ok()?;
                let simple = axis.start.is_int(0) && axis.step.is_int(1);
                if !simple || !matches!(l.kind, LoopKind::Serial | LoopKind::Unroll { .. }) {
                    return None;
                }
                let (mut early, mut late) = (l.clone(), l.clone());
                (early.body, late.body) = (Vec::new(), Vec::new());
                // Registers are indexed by constants once the loop is written out.
                early.kind = LoopKind::Unroll { factor: None };
                late.kind = LoopKind::Unroll { factor: None };
                self.loops.push((axis.var, axis.stop.dtype(), extent));
                for inner in &l.body {
                    self.stmt(func, inner, &mut early.body, &mut late.body)?;
                }
                self.loops.pop();
                load.push(Stmt::new(StmtKind::For(early), stmt.span));
                store.push(Stmt::new(StmtKind::For(late), stmt.span));
            }
            // All lanes go together where the instruction itself says which of them act.
            StmtKind::If {
                cond,
                then,
                otherwise,
            } if otherwise.is_empty() && is_by_thread(func, cond) => {
                self.instructions = None;
                self.guards.push(cond.clone());
                for inner in then {
                    self.stmt(func, inner, load, store)?;
                }
                self.guards.pop();
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                self.instructions = None;
                let mut arms = [Vec::new(), Vec::new(), Vec::new(), Vec::new()];
                let [a, b, c, d] = &mut arms;
                for inner in then {
                    self.stmt(func, inner, a, b)?;
                }
                for inner in otherwise {
                    self.stmt(func, inner, c, d)?;
                }
                let [a, b, c, d] = arms;
                for (out, then, otherwise) in [(load, a, c), (store, b, d)] {
                    let kind = StmtKind::If {
                        cond: cond.clone(),
                        then,
                        otherwise,
                    };
                    out.push(Stmt::new(kind, stmt.span));
                }
            }
            _ => return None,
        }
        Some(())
    }

    fn micro(&mut self, func: &Func, m: &MicroOp) -> Option<(MicroOp, MicroOp)> {
        let dtype = func.buffers[m.dest.region.buffer].dtype;
        if *self.dtype.get_or_insert(dtype) != dtype {
            return None;
        }
        let width = i64::from(m.width);
        let number = |loops: &[(Var, DType, i64)]| -> Option<(Expr, i64)> {
            let mut at = Expr::i32(0);
            let mut count = 1i64;
            for &(var, dtype, extent) in loops {
                count = count.checked_mul(extent)?;
                let index = Expr::var(var, dtype).cast_to(DType::I32);
                at = plus(times(at, extent), index);
            }
            Some((at, count))
        };
        let axes = m.axes.iter();
        let axes = axes.map(|(v, extent)| (*v, func.vars[*v].dtype, i64::from(*extent)));
        let (around, outer) = number(&self.loops)?;
        let (own, each) = number(&axes.collect::<Vec<_>>())?;
        let instances = outer.checked_mul(each)?;
        // What the instructions of this statement fill, and each of them.
        let filled = each.checked_mul(width)?;
        let first = plus(
            times(around, filled),
            Expr::int(self.used.into(), DType::I32),
        );
        let at = plus(first.clone(), times(own, width));
        self.used = self.used.checked_add(instances.checked_mul(width)?)?;
        // More registers than a thread has would only spill.
        if self.used * i64::from(dtype.bits()) > 32 * 1024 {
            return None;
        }
        self.instructions = match (self.instructions, &m.pred) {
            (Some(n), None) => Some(n + u32::try_from(instances).ok()?),
            _ => None,
        };
        let registers = Access {
            region: Region {
                buffer: self.registers,
                dims: vec![RegionDim {
                    start: first,
                    extent: Expr::int(filled.into(), DType::I32),
                }],
            },
            slot: None,
            at: vec![at],
        };
        // A thread with nothing to copy loads nothing; what it fills in stays in its registers.
        let acts = |pred: Option<Expr>| self.guards.iter().cloned().chain(pred).reduce(Expr::and);
        let load = MicroOp {
            kind: MicroKind::G2r,
            inst: Inst::Load,
            dest: registers.clone(),
            pred: acts(m.pred.clone()),
            counter: self.counter,
            ..m.clone()
        };
        let fills = m.otherwise.is_some();
        let store = MicroOp {
            kind: MicroKind::R2s,
            inst: Inst::Store,
            sources: vec![registers],
            // What was not loaded was filled in, and is stored too.
            pred: acts(m.pred.clone().filter(|_| !fills)),
            otherwise: None,
            counter: None,
            ..m.clone()
        };
        Some((load, store))
    }
}

/// Turns a condition that differs from thread to thread into the predicate of the instruction
/// under it, so that all lanes go together. Where the instruction fills in zeros its own
/// predicate says where, and the condition stays.
fn fold_guard(func: &Func, stmt: &mut Stmt) {
    if let StmtKind::If {
        cond,
        then,
        otherwise,
    } = &mut stmt.kind
        && otherwise.is_empty()
        && is_by_thread(func, cond)
        && let [inner] = &mut then[..]
        && let StmtKind::Micro(m) = &mut inner.kind
        && m.otherwise.is_none()
    {
        let own = m.pred.take();
        m.pred = Some(match own {
            None => cond.clone(),
            Some(own) => cond.clone().and(own),
        });
        stmt.kind = inner.kind.clone();
        return;
    }
    for block in tilewright_ir::visit::child_blocks_mut(stmt) {
        for inner in block {
            fold_guard(func, inner);
        }
    }
}

/// Whether the condition names a thread.
fn is_by_thread(func: &Func, cond: &Expr) -> bool {
    let mut found = false;
    cond.walk(&mut |node| {
        if let Some(var) = node.as_var() {
            found |= matches!(func.vars[var].kind, VarKind::ThreadIdx(_));
        }
    });
    found
}

fn times(e: Expr, by: i64) -> Expr {
    if by == 1 || e.is_int(0) { e } else { e * by }
}

fn plus(a: Expr, b: Expr) -> Expr {
    if a.is_int(0) {
        b
    } else if b.is_int(0) {
        a
    } else {
        a + b
    }
}
