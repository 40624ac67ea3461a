//! A copy from global to shared memory through registers, in two halves: a load (`g2r`) and a
//! store (`r2s`) that may stand later.

use tilewright_ir::{
    Access, Block, Buffer, BufferData, Counter, DType, Expr, Func, Inst, LoopKind, MicroKind,
    MicroOp, Region, RegionDim, Scope, Stmt, StmtKind, Var, VarKind,
};

use super::fresh::refresh;

/// A copy through registers, in two halves.
pub(crate) struct Staged {
    pub load: Stmt,
    pub store: Stmt,
    /// The allocation of the registers.
    pub alloc: Stmt,
    pub counter: Option<Counter>,
    /// How many instructions are certainly issued by each wave.
    pub instructions: u32,
}

/// Splits the copy into a load to registers, tracked by the counter, and a store from them; `None`
/// where it cannot be split.
pub(crate) fn stage(func: &mut Func, stmt: &Stmt, counter: Option<Counter>) -> Option<Staged> {
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
    split.stmt(func, stmt, &mut load, &mut store)?;
    if store.len() != 1 {
        return None;
    }
    let ([load], span) = (<[Stmt; 1]>::try_from(load).ok()?, stmt.span);
    func.buffers.push(BufferData {
        span,
        ..BufferData::new(
            "staged",
            Scope::Local,
            split.dtype?,
            vec![Expr::int(split.used.into(), DType::I32)],
        )
    });
    // The two halves stand at different places, so each has loops of its own.
    refresh(func, &mut store);
    Some(Staged {
        load,
        store: store.remove(0),
        alloc: Stmt::new(StmtKind::Alloc(registers), span),
        counter,
        instructions: split.instructions.unwrap_or(0),
    })
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

/// Whether the condition names a thread.
pub(crate) fn is_by_thread(func: &Func, cond: &Expr) -> bool {
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
