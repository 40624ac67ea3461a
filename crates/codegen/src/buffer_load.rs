//! Counted loads from tensors to registers on AMD, by buffer instructions.
//!
//! A buffer instruction takes a description of the tensor, a 32-bit offset for each lane and one
//! that all lanes share. So an address is taken apart: what varies from thread to thread becomes
//! the lane's offset, which no loop changes; blocks, loops and instructions go into the shared
//! one, which scalar instructions compute. With plain pointers the compiler adds them up in 64 bits
//! for each lane and load, in the loop.
//!
//! Before:
//! ```text
//! tw::load<16>(staged, c * 8, &A[(by * 128 + c * 32 + tx / 4) * 1024 + k * 32 + tx % 4 * 8]);
//! ```
//! After:
//! ```text
//! tw::load_buffer<16>(staged, c * 8, A_tensor,
//!     (unsigned)(tx / 4 * 1024 + tx % 4 * 8) * 2, (unsigned)((by * 128 + c * 32) * 1024 + k * 32) * 2);
//! ```

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Access, BinOp, Buffer, BufferOrigin, Counter, DType, Expr, ExprKind, Func, Inst, Kernel,
    MicroOp, Scope, StmtKind, Var,
};
use tilewright_schedule::uniform::Uniformity;

use crate::Emit;
use crate::device::Piece;
use crate::kernel::Emitter;

/// The tensors of a kernel that are loaded so.
#[derive(Debug, Default)]
pub(crate) struct Tensors {
    names: FxHashMap<Buffer, String>,
    /// Variables on which threads may disagree.
    varying: FxHashSet<Var>,
}

impl Emitter<'_> {
    /// Describes the tensors that counted loads read, once.
    pub(crate) fn described_tensors(&mut self, kernel: &Kernel) {
        self.tensors = Tensors::default();
        if !self.target.is_amd() {
            return;
        }
        let mut read: Vec<(Buffer, i64)> = Vec::new();
        walk_stmts(&kernel.body, &mut |stmt| {
            if let StmtKind::Micro(op) = &stmt.kind
                && let Some((tensor, bytes)) = counted_load(self.func, op)
                && !read.iter().any(|(known, _)| *known == tensor)
            {
                read.push((tensor, bytes));
            }
        });
        if read.is_empty() {
            return;
        }
        let uniformity = Uniformity::of(self.func, kernel);
        let all = self.func.vars.keys();
        self.tensors.varying = all.filter(|v| uniformity.var_varies(*v)).collect();
        self.needs.piece(Piece::BufferLoad);
        for (tensor, bytes) in read {
            let Some(start) = self.storage.get(&tensor).map(|s| s.name.clone()) else {
                continue;
            };
            let name = &self.func.buffers[tensor].name;
            let name = self.names.take(&format!("{name}_tensor"));
            self.out.line(format!(
                "const tw::Tensor {name} = tw::tensor({start}, {bytes});"
            ));
            self.tensors.names.insert(tensor, name);
        }
    }

    /// The statement that loads what the micro-op does at a point, where it can be one of these.
    pub(crate) fn buffer_load(&mut self, op: &MicroOp) -> Emit<Option<String>> {
        let Some((tensor, _)) = counted_load(self.func, op) else {
            return Ok(None);
        };
        let (Some(name), Some(source)) =
            (self.tensors.names.get(&tensor).cloned(), op.sources.first())
        else {
            return Ok(None);
        };
        let (Some(bytes @ (4 | 8 | 16)), _) = self.pieces(op) else {
            return Ok(None);
        };
        let flat = self.settled(&flat_index(self.func, source));
        let flat = self.analyzer.simplify(&flat);
        let (shared, lane) = self.apart(&flat);
        // The machine adds both without a sign.
        let positive = |e: &mut Self, part: &Expr| {
            let zero = Expr::int(0, part.dtype());
            e.analyzer.prove_ge(part, &zero).is_yes()
        };
        if !positive(self, &shared) || !positive(self, &lane) {
            return Ok(None);
        }
        let size = self.func.buffers[tensor].dtype.bits() / 8;
        let mut text = |part: &Expr| -> Emit<String> {
            let part = self.analyzer.simplify(part);
            match part.as_int() {
                Some(n) => Ok((n * i128::from(size)).to_string()),
                None => Ok(format!("(unsigned)({}) * {size}", self.scalar(&part)?)),
            }
        };
        let (lane, shared) = (text(&lane)?, text(&shared)?);
        let to = self.access(&op.dest, tilewright_ir::Span::NONE)?;
        Ok(Some(format!(
            "tw::load_buffer<{bytes}>({}, {}, {name}, {lane}, {shared});",
            to.name, to.offset.text
        )))
    }

    /// A sum's parts: the same in all threads, and the rest.
    fn apart(&self, e: &Expr) -> (Expr, Expr) {
        let zero = || Expr::int(0, e.dtype());
        if !self.may_vary(e) {
            return (e.clone(), zero());
        }
        match e.kind() {
            ExprKind::Binary(BinOp::Add, a, b) => {
                let ((a_shared, a_lane), (b_shared, b_lane)) = (self.apart(a), self.apart(b));
                (a_shared + b_shared, a_lane + b_lane)
            }
            ExprKind::Binary(BinOp::Mul, a, b) if b.as_int().is_some() => {
                let (shared, lane) = self.apart(a);
                (shared * b.clone(), lane * b.clone())
            }
            _ => (zero(), e.clone()),
        }
    }

    /// Whether threads may disagree on the value.
    fn may_vary(&self, e: &Expr) -> bool {
        let mut varies = false;
        e.walk_distinct(&mut |node| match node.kind() {
            ExprKind::Var(var) => varies |= self.tensors.varying.contains(var),
            // What is read from memory may be in vector registers though all lanes agree.
            ExprKind::Load { .. } | ExprKind::AddressOf { .. } => varies = true,
            _ => {}
        });
        varies
    }
}

/// The tensor that a counted load to registers reads, and its bytes, where 32 bits count them.
fn counted_load(func: &Func, op: &MicroOp) -> Option<(Buffer, i64)> {
    let source = op.sources.first()?.region.buffer;
    let (from, to) = (&func.buffers[source], &func.buffers[op.dest.region.buffer]);
    let plain = op.inst == Inst::Load
        && op.counter == Some(Counter::Vmcnt)
        && from.scope == Scope::Global
        && from.strides.is_none()
        && !matches!(
            from.origin,
            BufferOrigin::View(_) | BufferOrigin::Pointer(_)
        )
        && matches!(to.scope, Scope::Local | Scope::Fragment)
        && from.dtype.lanes == 1
        && from.dtype.bits() >= 8
        && from.dtype == to.dtype;
    let mut bytes = i64::from(from.dtype.bits() / 8);
    for extent in &from.shape {
        bytes = bytes.checked_mul(i64::try_from(extent.as_int()?).ok()?)?;
    }
    (plain && bytes <= i64::from(i32::MAX)).then_some((source, bytes))
}

/// The row-major number of the element.
fn flat_index(func: &Func, source: &Access) -> Expr {
    let shape = &func.buffers[source.region.buffer].shape;
    let mut flat = Expr::int(0, DType::I32);
    for (at, extent) in source.at.iter().zip(shape) {
        let extent = extent.clone().cast_to(DType::I32);
        flat = flat * extent + at.clone().cast_to(DType::I32);
    }
    flat
}
