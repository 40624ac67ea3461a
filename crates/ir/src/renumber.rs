//! Equality of functions up to the numbers of their ids.

use cranelift_entity::PrimaryMap;
use rustc_hash::FxHashMap;

use crate::buffer::{BufferOrigin, LayoutAttr};
use crate::declare::declared;
use crate::diag::Span;
use crate::dtype::DType;
use crate::expr::{Expr, ExprKind};
use crate::func::{Func, Param, VarData, VarKind};
use crate::ids::{Buffer, Var};
use crate::stmt::{Block, LoopKind, StmtKind};
use crate::text::identifier;
use crate::visit::{child_blocks_mut, stmt_exprs_mut};
use crate::visit_ids::{IdMut, buffer_exprs_mut, layout_exprs_mut, layout_vars_mut, stmt_ids_mut};

impl Func {
    /// The same function with ids numbered in the order they first appear in: symbols,
    /// parameters, workspaces, then the kernels; what stands only in buffer declarations
    /// comes last. Variables and buffers that appear nowhere are gone.
    pub fn renumbered(&self) -> Func {
        let mut r = Renumber {
            old: self,
            vars: FxHashMap::default(),
            buffers: FxHashMap::default(),
            new_vars: PrimaryMap::new(),
            new_buffers: PrimaryMap::new(),
            order: Vec::new(),
        };
        let mut func = Func {
            vars: PrimaryMap::new(),
            buffers: PrimaryMap::new(),
            ..self.clone()
        };
        for symbol in &mut func.symbols {
            r.var(symbol);
        }
        for param in &mut func.params {
            match param {
                Param::Tensor { buffer, .. } => r.buffer(buffer),
                Param::Scalar(var) => r.var(var),
            }
        }
        for buffer in &mut func.workspaces {
            r.buffer(buffer);
        }
        if let Some(prints) = &mut func.attrs.prints {
            r.buffer(&mut prints.buffer);
        }
        for kernel in &mut func.kernels {
            for (var, extent) in &mut kernel.grid {
                r.var(var);
                r.expr(extent);
            }
            for var in kernel.attrs.rank.iter_mut().chain(&mut kernel.thread_vars) {
                r.var(var);
            }
            for (buffer, ratio) in &mut kernel.attrs.l2_hit_ratio {
                r.buffer(buffer);
                r.expr(ratio);
            }
            for buffer in &mut kernel.attrs.may_alias {
                r.buffer(buffer);
            }
            r.block(&mut kernel.body);
        }
        r.declarations();
        func.vars = r.new_vars;
        func.buffers = r.new_buffers;
        func
    }

    /// Renumbered, with views declared, by the names of the text form, and without spans: two functions are equal
    /// if these are the same to the last field.
    fn canonical(&self) -> Func {
        let mut func = declared(self).renumbered();
        for data in func.vars.values_mut() {
            data.name = identifier(&data.name);
            data.span = Span::NONE;
        }
        for data in func.buffers.values_mut() {
            data.name = identifier(&data.name);
            data.span = Span::NONE;
        }
        for kernel in &mut func.kernels {
            kernel.span = Span::NONE;
        }
        func
    }
}

/// Equality up to the numbers of ids and up to spans; names count. What appears nowhere does
/// not.
impl PartialEq for Func {
    fn eq(&self, other: &Func) -> bool {
        let (a, b) = (self.canonical(), other.canonical());
        a.name == b.name
            && a.level == b.level
            && a.vars == b.vars
            && a.buffers == b.buffers
            && a.symbols == b.symbols
            && a.params == b.params
            && a.workspaces == b.workspaces
            && a.kernels == b.kernels
            && a.attrs == b.attrs
    }
}
impl Eq for Func {}

struct Renumber<'a> {
    old: &'a Func,
    vars: FxHashMap<Var, Var>,
    buffers: FxHashMap<Buffer, Buffer>,
    new_vars: PrimaryMap<Var, VarData>,
    new_buffers: PrimaryMap<Buffer, crate::BufferData>,
    /// The new buffers in order, for their declarations.
    order: Vec<Buffer>,
}

impl Renumber<'_> {
    fn var(&mut self, var: &mut Var) {
        let old = *var;
        *var = *self.vars.entry(old).or_insert_with(|| {
            // An id without data is a fault for the verifier to report, not to stumble over.
            let data = self.old.vars.get(old).cloned().unwrap_or(VarData {
                name: String::new(),
                dtype: DType::I32,
                kind: VarKind::Let,
                span: Span::NONE,
            });
            self.new_vars.push(data)
        });
    }

    fn buffer(&mut self, buffer: &mut Buffer) {
        let old = *buffer;
        if let Some(&new) = self.buffers.get(&old) {
            *buffer = new;
        } else if let Some(data) = self.old.buffers.get(old) {
            let new = self.new_buffers.push(data.clone());
            self.buffers.insert(old, new);
            self.order.push(new);
            *buffer = new;
        }
    }

    fn expr(&mut self, expr: &mut Expr) {
        // Top down first, so that numbers follow the text.
        expr.walk(&mut |e| match e.kind() {
            ExprKind::Var(var) => self.var(&mut { *var }),
            ExprKind::Load { buffer, .. } | ExprKind::AddressOf { buffer, .. } => {
                self.buffer(&mut { *buffer });
            }
            _ => {}
        });
        *expr = expr.rewrite(&mut |e| {
            let kind = match e.kind() {
                ExprKind::Var(var) => ExprKind::Var(*self.vars.get(var)?),
                ExprKind::Load { buffer, indices } => ExprKind::Load {
                    buffer: *self.buffers.get(buffer)?,
                    indices: indices.clone(),
                },
                ExprKind::AddressOf { buffer, indices } => ExprKind::AddressOf {
                    buffer: *self.buffers.get(buffer)?,
                    indices: indices.clone(),
                },
                _ => return None,
            };
            Some(Expr::new(kind, e.dtype(), e.span()))
        });
    }

    fn layout(&mut self, layout: &mut LayoutAttr) {
        layout_vars_mut(layout, &mut |v| self.var(v));
        layout_exprs_mut(layout, &mut |e| self.expr(e));
    }

    fn block(&mut self, block: &mut Block) {
        for stmt in block {
            stmt_ids_mut(stmt, &mut |id| match id {
                IdMut::Var(v) => self.var(v),
                IdMut::Buffer(b) => self.buffer(b),
            });
            stmt_exprs_mut(stmt, &mut |e| self.expr(e));
            if let StmtKind::For(l) = &mut stmt.kind
                && let LoopKind::Parallel {
                    layout: Some(layout),
                    ..
                } = &mut l.kind
            {
                layout_exprs_mut(layout, &mut |e| self.expr(e));
            }
            for child in child_blocks_mut(stmt) {
                self.block(child);
            }
        }
    }

    /// What the declarations mention. Numbering it may add buffers, which are then declared
    /// in turn.
    fn declarations(&mut self) {
        let mut next = 0;
        while let Some(&buffer) = self.order.get(next) {
            next += 1;
            let mut data = self.new_buffers[buffer].clone();
            if let BufferOrigin::View(base) = &mut data.origin {
                self.buffer(base);
            }
            let mut layout = data.layout.take();
            buffer_exprs_mut(&mut data, &mut |e| self.expr(e));
            if let Some(layout) = &mut layout {
                self.layout(layout);
            }
            data.layout = layout;
            self.new_buffers[buffer] = data;
        }
    }
}
