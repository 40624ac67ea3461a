//! The wave's copy from a tensor to LDS: what is the same for all lanes is kept in scalar
//! registers.
//!
//! The machine takes a description of the tensor, a 32-bit offset for each lane, one that all
//! lanes share, and the place in LDS of the first lane (m0). So an address is taken apart: what
//! varies from thread to thread becomes the lane's offset, which no loop changes; blocks, loops
//! and instructions go into the shared one; and the place in LDS is that of thread 0 plus the
//! number of the wave's first thread, read once at the start of the kernel, where threads write
//! in a row.

use tilewright_ir::{Access, BinOp, DType, Expr, ExprKind, Func, MicroOp, Span};
use tilewright_layout::wave_places::{Threads, in_a_row};

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
    /// The number of the wave's first thread, read once.
    pub(crate) fn wave_number(&mut self) {
        self.needs.piece(Piece::Async);
        let name = self.names.take("wave");
        let thread = self.linear_thread();
        self.out.line(format!(
            "const unsigned {name} = tw::wave_value({thread} & ~63);"
        ));
        self.amd.wave = name;
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
        let to = self.first_place(op, bytes, span)?;
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
    fn first_place(&mut self, op: &MicroOp, bytes: u32, span: Span) -> Emit<String> {
        let threads = self.amd.thread_vars.map(|vars| Threads {
            vars,
            extents: self.threads,
        });
        let row = threads.filter(|t| in_a_row(self.func, self.target, *t, &[], op));
        let Some(threads) = row else {
            let to = self.access(&op.dest, span)?;
            return Ok(format!("tw::first_lane_address<{bytes}>({})", to.address()));
        };
        // Thread 0's place, which knows no thread, and then in a row.
        let mut first = op.dest.clone();
        for e in &mut first.at {
            let zero = e.rewrite(&mut |node| {
                let var = node.as_var()?;
                threads
                    .vars
                    .contains(&var)
                    .then(|| Expr::zero(node.dtype()))
            });
            *e = self.analyzer.simplify(&zero);
        }
        let to = self.access(&first, span)?;
        let wave = &self.amd.wave;
        Ok(format!(
            "tw::lds_address({}) + {wave} * {bytes}",
            to.address()
        ))
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
        let (shared, lane) = self.apart(&flat);
        // Both are added without a sign.
        let unsigned = self.analyzer.prove(&shared.clone().ge(0)).is_yes()
            && self.analyzer.prove(&lane.clone().ge(0)).is_yes();
        let (shared, lane) = match unsigned {
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
    fn apart(&self, e: &Expr) -> (Expr, Expr) {
        let zero = || Expr::zero(e.dtype());
        if !self.varies(e) {
            return (e.clone(), zero());
        }
        match e.kind() {
            ExprKind::Binary(BinOp::Add, a, b) => {
                let ((a_shared, a_lane), (b_shared, b_lane)) = (self.apart(a), self.apart(b));
                (sum(a_shared, b_shared), sum(a_lane, b_lane))
            }
            ExprKind::Binary(BinOp::Sub, a, b) if !self.varies(b) => {
                let (shared, lane) = self.apart(a);
                (shared - b.clone(), lane)
            }
            ExprKind::Binary(BinOp::Mul, a, b) if b.as_int().is_some() => {
                let (shared, lane) = self.apart(a);
                (shared * b.clone(), lane * b.clone())
            }
            _ => (zero(), e.clone()),
        }
    }

    /// Whether threads may disagree on the value, or the compiler may think so.
    fn varies(&self, e: &Expr) -> bool {
        let mut varies = false;
        e.walk(&mut |node| match node.kind() {
            ExprKind::Var(var) => {
                varies |= self.amd.varying.contains(var) || self.data_vars.contains(var);
            }
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
