//! Tensors as buffer instructions see them: described once, at the start of the kernel.
//!
//! A buffer instruction takes a description of the tensor (where it starts, how many bytes it has),
//! an offset for each lane and one that all lanes share ([`crate::tensor_offset`]). Two kinds of
//! micro-ops are such instructions: a wave's copy to LDS ([`crate::wave_copy`]), always, and a
//! counted load to registers ([`crate::buffer_load`]), where it can be.
//!
//! ```text
//! const tw::Tensor A_tensor = tw::tensor(A, 2097152);
//! ```

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Buffer, BufferData, Inst, Kernel, StmtKind};

use crate::buffer_load::counted_load;
use crate::device::Piece;
use crate::kernel::Emitter;
use crate::{Emit, unsupported};

impl Emitter<'_> {
    /// Describes the tensors that buffer instructions of the kernel read.
    pub(crate) fn described_tensors(&mut self, kernel: &Kernel) -> Emit<()> {
        if !self.machine.buffer_descriptors {
            return Ok(());
        }
        let (mut copied, mut loaded) = (Vec::new(), Vec::new());
        walk_stmts(&kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Micro(op) if op.inst == Inst::BufferLoadLds => {
                copied.extend(op.sources.iter().map(|source| source.region.buffer));
            }
            StmtKind::Micro(op) => loaded.extend(counted_load(self.func, op)),
            _ => {}
        });
        if !copied.is_empty() {
            self.wave_number();
        }
        for tensor in copied {
            let data = &self.func.buffers[tensor];
            let lacks = match (self.storage.contains_key(&tensor), &data.strides) {
                (true, None) => None,
                (true, Some(_)) => Some("has strides and is copied to LDS by the wave"),
                (false, _) => Some("has no storage here"),
            };
            if let Some(lacks) = lacks {
                return unsupported(data.span, format!("`{}` {lacks}", data.name));
            }
            self.describe_tensor(tensor)?;
        }
        for tensor in loaded {
            self.describe_tensor(tensor)?;
        }
        Ok(())
    }

    /// Declares the description, once; what has no storage here is loaded in another way.
    fn describe_tensor(&mut self, tensor: Buffer) -> Emit<()> {
        let Some(start) = self.storage.get(&tensor).map(|s| s.name.clone()) else {
            return Ok(());
        };
        if self.plan.tensors.contains_key(&tensor) {
            return Ok(());
        }
        let data = &self.func.buffers[tensor];
        let bytes = match const_bytes(data) {
            Some(bytes) => bytes.to_string(),
            None => self.bytes_of(data)?,
        };
        let name = self.names.take(&format!("{}_tensor", data.name));
        self.needs.piece(Piece::Tensor);
        self.out.line(format!(
            "const tw::Tensor {name} = tw::tensor({start}, {bytes});"
        ));
        self.plan.tensors.insert(tensor, name);
        Ok(())
    }

    /// The bytes of a tensor whose extents the call brings, as C.
    fn bytes_of(&mut self, data: &BufferData) -> Emit<String> {
        let bits = data.dtype.bits();
        let whole = bits.is_multiple_of(8);
        let mut factors = vec![format!("{}ll", if whole { bits / 8 } else { bits })];
        for extent in &data.shape {
            let extent = self.analyzer.simplify(extent);
            factors.push(format!("({})", self.scalar(&extent)?));
        }
        let product = factors.join(" * ");
        Ok(match whole {
            true => product,
            false => format!("({product} + 7) / 8"),
        })
    }
}

/// The bytes of a tensor whose extents are known.
pub(crate) fn const_bytes(data: &BufferData) -> Option<i64> {
    let mut bits = i64::from(data.dtype.bits());
    for extent in &data.shape {
        bits = bits.checked_mul(i64::try_from(extent.as_int()?).ok()?)?;
    }
    Some(bits.div_euclid(8) + i64::from(bits % 8 != 0))
}
