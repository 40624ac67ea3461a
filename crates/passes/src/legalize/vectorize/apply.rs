//! Writes a loop as its plan says.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::{child_blocks_mut, stmt_exprs_mut};
use tilewright_ir::visit_ids::{IdMut, stmt_ids_mut};
use tilewright_ir::{
    Access, Axis, Block, Buffer, BufferData, DType, Expr, ExprKind, Func, Inst, Loop, LoopKind,
    MicroKind, MicroOp, Region, RegionDim, Scope, Span, Stmt, StmtKind, ThreadOp, Var, VarKind,
};

use super::sites::Sites;
use super::{Plan, Vector, Vectorizer, register_shape};

/// Registers that stand for elements of memory, by buffer and element.
type Placed = FxHashMap<(Buffer, Vec<Expr>), Buffer>;

impl Vectorizer<'_> {
    /// Vector loads, the iterations on registers, vector stores.
    pub fn apply(&mut self, mut l: Loop, lanes: i64, plan: Plan, span: Span, out: &mut Block) {
        let index = self.func.var_expr(l.axes[0].var);
        let sites = Sites::of(self.func, self.target, &l.body);
        let (mut loads, mut stores) = (Placed::default(), Placed::default());
        let mut after = Vec::new();
        for vector in &plan.vectors {
            let registers = self.registers(vector, lanes);
            out.push(Stmt::new(StmtKind::Alloc(registers), vector.span));
            let key = (vector.buffer, vector.indices.clone());
            let micro = self.micro(vector, registers, lanes);
            if vector.write {
                stores.insert(key, registers);
                after.push(micro);
            } else {
                loads.insert(key, registers);
                out.push(micro);
            }
        }
        for vector in &plan.adds {
            let registers = self.registers(vector, lanes);
            out.push(Stmt::new(StmtKind::Alloc(registers), vector.span));
            stores.insert((vector.buffer, vector.indices.clone()), registers);
            self.add(vector, registers, lanes, &mut after);
        }
        replace(&mut l.body, &sites, &index, &loads, &stores);
        l.kind = LoopKind::Unroll { factor: None };
        out.push(Stmt::new(StmtKind::For(l), span));
        out.extend(after);
    }

    fn registers(&mut self, vector: &Vector, lanes: i64) -> Buffer {
        let data = &self.func.buffers[vector.buffer];
        let (name, dtype) = (format!("{}_vec", data.name), data.dtype);
        self.func.buffers.push(BufferData {
            span: vector.span,
            ..BufferData::new(name, Scope::Local, dtype, register_shape(lanes))
        })
    }

    fn micro(&mut self, vector: &Vector, registers: Buffer, lanes: i64) -> Stmt {
        let count = lanes / vector.width;
        let mut at = vector.base.clone();
        let mut slot = Expr::i32(0);
        let mut axes = Vec::new();
        if count > 1 {
            let axis = self.func.add_var("q", DType::I32, VarKind::Loop);
            axes.push((axis, count as u32));
            slot = self.func.var_expr(axis) * vector.width;
            if let Some(last) = at.last_mut() {
                *last = last.clone() + slot.clone().cast_to(last.dtype());
            }
        }
        let data = &self.func.buffers[vector.buffer];
        let in_memory = Access {
            region: Region::whole(vector.buffer, data),
            slot: None,
            at,
        };
        let in_registers = Access {
            region: Region {
                buffer: registers,
                dims: vec![RegionDim {
                    start: Expr::i32(0),
                    extent: Expr::int(lanes.into(), DType::I32),
                }],
            },
            slot: None,
            at: vec![slot],
        };
        let global = data.scope == Scope::Global;
        let (kind, inst, dest, source) = match (vector.write, global) {
            (false, true) => (MicroKind::G2r, Inst::Load, in_registers, in_memory),
            (false, false) => (MicroKind::S2r, Inst::Load, in_registers, in_memory),
            (true, true) => (MicroKind::R2g, Inst::Store, in_memory, in_registers),
            (true, false) => (MicroKind::R2s, Inst::Store, in_memory, in_registers),
        };
        Stmt::new(
            StmtKind::Micro(MicroOp {
                kind,
                inst,
                axes,
                turns: false,
                dest,
                sources: vec![source],
                width: vector.width as u32,
                apart: 1,
                pred: vector.pred.clone(),
                otherwise: None,
                counter: None,
                arrives: None,
                evict: None,
            }),
            vector.span,
        )
    }

    /// Adds registers to memory, as many at once as the vector is wide.
    fn add(&mut self, vector: &Vector, registers: Buffer, lanes: i64, out: &mut Block) {
        let mut all = Vec::new();
        for first in (0..lanes).step_by(vector.width as usize) {
            let mut at = vector.base.clone();
            if first > 0
                && let Some(last) = at.last_mut()
            {
                *last = last.clone() + Expr::int(first.into(), last.dtype());
            }
            let add = ThreadOp::AtomicVecAdd {
                dst: vector.buffer,
                dst_indices: at,
                src: registers,
                src_indices: vec![Expr::int(first.into(), DType::I32)],
                lanes: vector.width as u16,
            };
            all.push(Stmt::new(StmtKind::Thread(add), vector.span));
        }
        match &vector.pred {
            None => out.extend(all),
            Some(pred) => out.push(Stmt::new(
                StmtKind::If {
                    cond: pred.clone(),
                    then: all,
                    otherwise: Vec::new(),
                },
                vector.span,
            )),
        }
    }

    /// `for c in 0 .. count / lanes { for v in vectorized(lanes) { i = c * lanes + v; … } }`
    pub fn split(&mut self, l: Loop, count: i64, lanes: i64, span: Span) -> Stmt {
        let var = l.axes[0].var;
        let dtype = self.func.vars[var].dtype;
        self.func.vars[var].kind = VarKind::Let;
        let outer = self.func.add_var("c", dtype, VarKind::Loop);
        let inner = self.func.add_var("v", dtype, VarKind::Loop);
        let value = self.func.var_expr(outer) * lanes + self.func.var_expr(inner);
        let mut body = vec![Stmt::new(StmtKind::Let { var, value }, span)];
        body.extend(l.body);
        let upto = |var, n: i64| Axis::upto(var, Expr::int(n.into(), dtype));
        let vectorized = StmtKind::For(Loop {
            kind: LoopKind::Vectorized,
            axes: vec![upto(inner, lanes)],
            body,
        });
        let chunks = count / lanes;
        let kind = match chunks {
            ..=16 => LoopKind::Unroll { factor: None },
            _ => LoopKind::Serial,
        };
        Stmt::new(
            StmtKind::For(Loop {
                kind,
                axes: vec![upto(outer, chunks)],
                body: vec![Stmt::new(vectorized, span)],
            }),
            span,
        )
    }
}

/// Lets the iterations work on registers.
fn replace(block: &mut Block, sites: &Sites, index: &Expr, loads: &Placed, stores: &Placed) {
    for stmt in block {
        stmt_exprs_mut(stmt, &mut |e| {
            *e = e.rewrite(&mut |node| {
                let ExprKind::Load { buffer, indices } = node.kind() else {
                    return None;
                };
                let place = indices.iter().map(|i| sites.outside(i)).collect();
                let registers = loads.get(&(*buffer, place))?;
                let at = index.clone().cast_to(DType::I32);
                Some(Expr::load(*registers, vec![at], node.dtype()).with_span(node.span()))
            });
        });
        if let StmtKind::Store {
            buffer, indices, ..
        } = &mut stmt.kind
        {
            let place = indices.iter().map(|i| sites.outside(i)).collect();
            if let Some(registers) = stores.get(&(*buffer, place)) {
                *buffer = *registers;
                *indices = vec![index.clone().cast_to(DType::I32)];
            }
        }
        if let StmtKind::Thread(ThreadOp::AtomicRmw {
            buffer,
            indices,
            value,
            ..
        }) = &stmt.kind
            && sites.is_add(*buffer, indices)
        {
            let place = indices.iter().map(|i| sites.outside(i)).collect();
            if let Some(registers) = stores.get(&(*buffer, place)) {
                stmt.kind = StmtKind::Store {
                    buffer: *registers,
                    indices: vec![index.clone().cast_to(DType::I32)],
                    value: value.clone(),
                };
            }
        }
        for child in child_blocks_mut(stmt) {
            replace(child, sites, index, loads, stores);
        }
    }
}

/// The statement once more, with variables of its own. `None` where it declares buffers.
pub fn fresh_copy(func: &mut Func, stmt: &Stmt) -> Option<Stmt> {
    let mut bound: FxHashMap<Var, Var> = FxHashMap::default();
    let mut whole = vec![stmt.clone()];
    let mut declares = false;
    collect_bound(func, &mut whole, &mut bound, &mut declares);
    if declares {
        return None;
    }
    rename(&mut whole, &bound);
    whole.pop()
}

fn collect_bound(
    func: &mut Func,
    block: &mut Block,
    bound: &mut FxHashMap<Var, Var>,
    declares: &mut bool,
) {
    for stmt in block {
        *declares |= matches!(stmt.kind, StmtKind::Alloc(_));
        let mut vars = Vec::new();
        stmt_ids_mut(stmt, &mut |id| {
            if let IdMut::Var(var) = id {
                vars.push(*var);
            }
        });
        for var in vars {
            let data = func.vars[var].clone();
            if matches!(data.kind, VarKind::Loop | VarKind::Let) && !bound.contains_key(&var) {
                let new = func.vars.push(data);
                bound.insert(var, new);
            }
        }
        for child in child_blocks_mut(stmt) {
            collect_bound(func, child, bound, declares);
        }
    }
}

fn rename(block: &mut Block, bound: &FxHashMap<Var, Var>) {
    for stmt in block {
        stmt_ids_mut(stmt, &mut |id| {
            if let IdMut::Var(var) = id
                && let Some(new) = bound.get(var)
            {
                *var = *new;
            }
        });
        stmt_exprs_mut(stmt, &mut |e| {
            *e = e.rewrite(&mut |node| {
                let new = bound.get(&node.as_var()?)?;
                Some(Expr::var(*new, node.dtype()).with_span(node.span()))
            });
        });
        for child in child_blocks_mut(stmt) {
            rename(child, bound);
        }
    }
}
