//! The wave's copy from a tensor to LDS: what is the same for all lanes is kept in scalar
//! registers.
//!
//! The machine takes a description of the tensor, a 32-bit offset for each lane, one that all
//! lanes share, and the place in LDS of the first lane (m0). So an address is taken apart: what
//! varies from thread to thread becomes the lane's offset, which no loop changes; blocks, loops
//! and instructions go into the shared one; and the place in LDS is that of the wave's first
//! thread, whose number is read once at the start of the kernel.

use tilewright_ir::{Access, BinOp, DType, Expr, ExprKind, Func, MicroOp, Span, Var};

use crate::device::Piece;
use crate::kernel::Emitter;
use crate::{Emit, unsupported};

/// The offset of an access, in bytes, as C.
struct Offset {
    /// By lane.
    lane: String,
    /// The same for all lanes.
    shared: String,
}

impl Emitter<'_> {
    /// The thread indices of the wave's first thread, read once.
    pub(crate) fn wave_indices(&mut self, thread_vars: [Var; 3]) {
        self.needs.piece(Piece::Async);
        let [x, y, _] = self.threads;
        let first = format!("tw::wave_value({} & ~63)", self.linear_thread());
        if self.threads.iter().filter(|n| **n > 1).count() <= 1 && x > 1 {
            let name = self.names.take("wave");
            self.out.line(format!("const int {name} = {first};"));
            self.amd.wave = vec![(thread_vars[0], name)];
            return;
        }
        let wave = self.names.take("wave");
        self.out.line(format!("const int {wave} = {first};"));
        let values = [
            format!("{wave} % {x}"),
            format!("{wave} / {x} % {y}"),
            format!("{wave} / {}", x * y),
        ];
        for ((var, value), axis) in thread_vars.into_iter().zip(values).zip(["x", "y", "z"]) {
            let name = self.names.take(&format!("wave_{axis}"));
            self.out.line(format!("const int {name} = {value};"));
            self.amd.wave.push((var, name));
        }
    }

    /// A wave's copy from a tensor to LDS.
    pub(crate) fn buffer_load_lds(&mut self, op: &MicroOp, span: Span) -> Emit<()> {
        let [source] = op.sources.as_slice() else {
            return unsupported(span, format!("`{}` takes one source", op.inst));
        };
        let zero = |e: &Expr| e.is_int(0) || e.as_float().is_some_and(|v| v.to_bits() == 0);
        if op.otherwise.as_ref().is_some_and(|e| !zero(e)) {
            return unsupported(span, format!("`{}` fills with zeros only", op.inst));
        }
        let (Some(bytes @ (4 | 16)), _) = self.pieces(op) else {
            return unsupported(span, format!("`{}` moves 4 or 16 bytes a lane", op.inst));
        };
        if bytes == 16 && self.target != tilewright_ir::Target::Gfx950 {
            return unsupported(
                span,
                format!("{} copies 4 bytes a lane to LDS", self.target),
            );
        }
        let tensor = source.region.buffer;
        self.needs.piece(Piece::Async);
        let Some(resource) = self.amd.resources.get(&tensor).cloned() else {
            let name = &self.func.buffers[tensor].name;
            return unsupported(span, format!("`{name}` is no tensor of the kernel"));
        };
        let to = self.first_place(&op.dest, bytes, span)?;
        let Offset { lane, shared } = self.source_offset(source, span)?;
        let copy =
            |lane: String| format!("tw::copy_to_lds<{bytes}>({to}, {resource}, {lane}, {shared});");
        let line = match (&op.pred, &op.otherwise) {
            (None, _) => copy(lane),
            (Some(pred), Some(_)) => copy(format!("{} ? {lane} : -1u", self.scalar(pred)?)),
            (Some(pred), None) => format!("if ({}) {}", self.scalar(pred)?, copy(lane)),
        };
        self.out.line(line);
        Ok(())
    }

    /// Where the data of the wave's first lane lands.
    fn first_place(&mut self, dest: &Access, bytes: u32, span: Span) -> Emit<String> {
        let wave = self.amd.wave.clone();
        let known = |var: &Var| wave.iter().any(|(own, _)| own == var);
        let mut others = false;
        for e in dest.at.iter().chain(&dest.slot) {
            others |= self.varies(e, &known);
        }
        // A value of the thread's own that the first thread's is not known for.
        if others {
            let to = self.access(dest, span)?;
            return Ok(format!("tw::first_lane_address<{bytes}>({})", to.address()));
        }
        let mut own = Vec::new();
        for (var, name) in wave {
            own.push((var, self.var_names.insert(var, name)));
        }
        let to = self.access(dest, span);
        for (var, name) in own {
            match name {
                Some(name) => self.var_names.insert(var, name),
                None => self.var_names.remove(&var),
            };
        }
        Ok(format!("tw::lds_address({})", to?.address()))
    }

    /// The offset of each lane in its tensor, taken apart.
    fn source_offset(&mut self, source: &Access, span: Span) -> Emit<Offset> {
        let tensor = source.region.buffer;
        let size = self.func.buffers[tensor].dtype.bits() / 8;
        let bytes = |text: String| format!("(unsigned)({text}) * {size}");
        let Some(flat) = flat_index(self.func, source) else {
            let place = self.access(source, span)?;
            return Ok(Offset {
                lane: bytes(place.offset.text),
                shared: "0".to_string(),
            });
        };
        let flat = self.settled(&flat);
        let flat = self.analyzer.simplify(&flat);
        let (shared, lane) = self.split(&flat);
        // Both are added without a sign.
        let apart = self.analyzer.prove(&shared.clone().ge(0)).is_yes()
            && self.analyzer.prove(&lane.clone().ge(0)).is_yes();
        let (shared, lane) = match apart {
            true => (self.analyzer.simplify(&shared), lane),
            false => (Expr::i32(0), flat),
        };
        let shared = match shared.is_int(0) {
            true => "0".to_string(),
            false => bytes(self.scalar(&shared)?),
        };
        Ok(Offset {
            lane: bytes(self.scalar(&lane)?),
            shared,
        })
    }

    /// A sum's parts: the same in all threads, and the rest.
    fn split(&self, e: &Expr) -> (Expr, Expr) {
        let zero = || Expr::zero(e.dtype());
        if !self.varies(e, &|_| false) {
            return (e.clone(), zero());
        }
        match e.kind() {
            ExprKind::Binary(BinOp::Add, a, b) => {
                let ((a_shared, a_lane), (b_shared, b_lane)) = (self.split(a), self.split(b));
                (sum(a_shared, b_shared), sum(a_lane, b_lane))
            }
            ExprKind::Binary(BinOp::Sub, a, b) if !self.varies(b, &|_| false) => {
                let (shared, lane) = self.split(a);
                (shared - b.clone(), lane)
            }
            ExprKind::Binary(BinOp::Mul, a, b) if b.as_int().is_some() => {
                let (shared, lane) = self.split(a);
                (shared * b.clone(), lane * b.clone())
            }
            _ => (zero(), e.clone()),
        }
    }

    /// Whether threads may disagree on the value, apart from these variables.
    fn varies(&self, e: &Expr, known: &dyn Fn(&Var) -> bool) -> bool {
        let mut varies = false;
        e.walk(&mut |node| match node.kind() {
            ExprKind::Var(var) => varies |= self.amd.varying.contains(var) && !known(var),
            // What is read from memory may be in vector registers though all lanes agree.
            ExprKind::Load { .. } | ExprKind::AddressOf { .. } => varies = true,
            _ => {}
        });
        varies
    }
}

/// The row-major number of the element, where 32 bits hold it.
fn flat_index(func: &Func, source: &Access) -> Option<Expr> {
    let data = &func.buffers[source.region.buffer];
    let mut stride = 1i64;
    let mut flat = Expr::i32(0);
    for (at, extent) in source.at.iter().zip(&data.shape).rev() {
        let index = at.clone().cast_to(DType::I32);
        flat = sum(index * stride, flat);
        stride = stride.checked_mul(i64::try_from(extent.as_int()?).ok()?)?;
    }
    (stride <= i64::from(i32::MAX)).then_some(flat)
}

fn sum(a: Expr, b: Expr) -> Expr {
    if a.is_int(0) {
        b
    } else if b.is_int(0) {
        a
    } else {
        a + b
    }
}
