//! Bulk copies: boxes of tensors, of which the launch tells the copy engine by maps.
//!
//! ```text
//! gemm(…, const __grid_constant__ tw::TensorMap A_map) {
//!   tw::tma_load(S, k % 3 * 8192, A_map, &full[k % 3], k * 64, by * 128);
//!   tw::tma_store(C_map, S, 0, bx * 64, by * 128);
//! ```
//! What leaves the L2 cache first, or last, is told by the copy (`tw::tma_load(tw::evict_first(), …)`).

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Access, Buffer, BufferOrigin, EvictionPolicy, Func, Inst, Kernel, MicroKind, MicroOp, Span,
    StmtKind, TmaBox,
};
use tilewright_layout::bulk::BulkTile;
use tilewright_layout::{Family, Place};

use crate::device::Piece;
use crate::kernel::Emitter;
use crate::source::TensorMap;
use crate::{Emit, unsupported};

/// A bulk copy: its box, the tensor, and the tile of shared memory.
pub(crate) fn bulk_copy(op: &MicroOp) -> Option<(TmaBox, &Access, &Access)> {
    match (op.inst, op.kind, op.sources.as_slice()) {
        (Inst::Tma(tile), MicroKind::TmaLoad, [source]) => Some((tile, source, &op.dest)),
        (Inst::Tma(tile), MicroKind::TmaStore, [source]) => Some((tile, &op.dest, source)),
        _ => None,
    }
}

impl Emitter<'_> {
    /// The maps of the tensors that the kernel's bulk copies move boxes of, in the order of their use.
    pub(crate) fn tensor_maps(&self, kernel: &Kernel) -> Emit<Vec<TensorMap>> {
        let mut maps = Ok(Vec::new());
        walk_stmts(&kernel.body, &mut |stmt| {
            if let (StmtKind::Micro(op), Ok(list)) = (&stmt.kind, &mut maps)
                && let Some((tile, tensor, shared)) = bulk_copy(op)
            {
                match self.tensor_map(op, (tile, tensor, shared), stmt.span) {
                    Ok(map) if list.contains(&map) => {}
                    Ok(map) => list.push(map),
                    Err(error) => maps = Err(error),
                }
            }
        });
        maps
    }

    /// How the engine is told of a tensor, where a box of it lies in shared memory as it has boxes.
    fn tensor_map(
        &self,
        op: &MicroOp,
        (tile, tensor, shared): (TmaBox, &Access, &Access),
        span: Span,
    ) -> Emit<TensorMap> {
        let buffer = tensor.region.buffer;
        let [data, to] = [buffer, shared.region.buffer].map(|b| &self.func.buffers[b]);
        let strides = data.strides.as_ref().and_then(|strides| strides.last());
        let apart = strides.and_then(|stride| stride.as_int());
        let why = if !is_argument(self.func, buffer) {
            "it is neither a parameter nor a workspace".to_string()
        } else if data.dtype.lanes > 1 || data.dtype.bits() % 8 != 0 {
            "its elements are no whole bytes".to_string()
        } else if apart.is_some_and(|stride| stride != 1) {
            "its last dimension is not dense".to_string()
        } else if data.dtype != to.dtype {
            format!("`{}` has elements of another type", to.name)
        } else if let Some(found) = self.bulk_tile(tile, shared) {
            return Ok(TensorMap {
                buffer,
                tile,
                swizzle: found.swizzle,
                once: op.evict == Some(EvictionPolicy::First),
            });
        } else {
            format!("`{}` has no place for a box of {tile}", to.name)
        };
        unsupported(span, format!("a bulk copy of `{}`: {why}", data.name))
    }

    /// How boxes lie in a tile of shared memory that takes this one.
    fn bulk_tile(&self, tile: TmaBox, shared: &Access) -> Option<BulkTile> {
        let data = &self.func.buffers[shared.region.buffer];
        // A view lies as what it is a view of.
        if matches!(data.origin, BufferOrigin::View(_)) {
            return None;
        }
        let (shape, bits) = (data.const_shape()?, i64::from(data.dtype.bits()));
        let extents = tile.in_shared(shape.len())?;
        let found = BulkTile::of(data.placed(), &shape, bits)?;
        let whole = |bytes: i64| bytes % found.align() == 0;
        let version = data.placed().map_or(shape.iter().product(), |p| p.span()) * bits / 8;
        let fits = match extents[..] {
            [cols] => found.takes(1, cols.into()),
            [ref before @ .., rows, cols] => {
                before.iter().all(|e| *e == 1) && found.takes(rows.into(), cols.into())
            }
            [] => false,
        };
        let fits = fits
            && (data.versions <= 1 || whole(version))
            && data.place.is_none_or(|p| whole(p.offset.into()));
        fits.then_some(found)
    }

    /// One box of a tensor to shared memory, or back.
    pub(crate) fn tma_copy(&mut self, op: &MicroOp, span: Span) -> Emit<()> {
        let Some((tile, tensor, shared)) = bulk_copy(op) else {
            let message = format!("`{}` of `{}`", op.kind.name(), op.inst);
            return unsupported(
                span,
                format!("{message} is not generated for {}", self.target),
            );
        };
        let wanted = self.tensor_map(op, (tile, tensor, shared), span)?;
        if !self.starts_a_box(tile, shared) {
            let name = &self.func.buffers[shared.region.buffer].name;
            let message = format!("a bulk copy of `{name}` that may start within a box");
            return unsupported(span, message);
        }
        let map = self.plan.maps.iter().find(|(map, _)| *map == wanted);
        let map = map.map_or_else(String::new, |(_, name)| name.clone());
        let lies = self.access(shared, span)?.in_shared();
        let (name, mut args) = match &op.arrives {
            Some(arrival) => {
                let bar = self.barrier(arrival.barrier, &arrival.index, span)?;
                if let Some(blocks) = arrival.multicast {
                    self.needs_clusters(span)?;
                    self.needs.piece(Piece::Multicast);
                    let blocks = format!("{blocks:#x}");
                    ("tma_multicast", vec![blocks, lies, map, bar])
                } else {
                    ("tma_load", vec![lies, map, bar])
                }
            }
            None => ("tma_store", vec![map, lies]),
        };
        if let Some(policy) = op.evict {
            self.needs.piece(Piece::BulkEvict);
            let policy = match policy {
                EvictionPolicy::First => "tw::evict_first()",
                EvictionPolicy::Last => "tw::evict_last()",
                EvictionPolicy::Normal => "tw::evict_normal()",
            };
            args.insert(0, policy.to_string());
        }
        for index in tensor.at.iter().rev() {
            args.push(self.scalar(index)?);
        }
        let when = match &op.pred {
            Some(pred) => format!("if ({}) ", self.scalar(pred)?),
            None => String::new(),
        };
        self.needs.piece(Piece::Bulk);
        self.out
            .line(format!("{when}tw::{name}({});", args.join(", ")));
        Ok(())
    }

    /// What blocks of a cluster do with each other is there only where the machine has clusters.
    pub(crate) fn needs_clusters(&mut self, span: Span) -> Emit<()> {
        if self.machine.clusters.is_none() {
            let message = format!("{} has no clusters of blocks", self.target);
            return unsupported(span, message);
        }
        self.needs.piece(Piece::Cluster);
        Ok(())
    }

    /// Whether the copy certainly starts where a box may: what is known to divide each index leads
    /// to a multiple of the box's alignment.
    fn starts_a_box(&mut self, tile: TmaBox, shared: &Access) -> bool {
        let data = &self.func.buffers[shared.region.buffer];
        let bits = i64::from(data.dtype.bits());
        let (Some(shape), Some(found)) = (data.const_shape(), self.bulk_tile(tile, shared)) else {
            return false;
        };
        let linear = Place::new(Family::Linear, &shape, bits).ok();
        let Some(place) = data.placed().or(linear.as_ref()) else {
            return false;
        };
        (0..shape.len()).all(|dim| {
            let index = self.settled(&shared.at[dim]);
            let known = self.analyzer.congruence(&index);
            let step = gcd(known.modulus, known.residue);
            let mut point = vec![0; shape.len()];
            match i64::try_from(step) {
                Ok(step) if step < shape[dim] => point[dim] = step,
                _ => return true,
            }
            place.offset(&point) * bits / 8 % found.align() == 0
        })
    }
}

/// Whether a launch has the tensor's address.
fn is_argument(func: &Func, buffer: Buffer) -> bool {
    func.tensors().any(|(b, _)| b == buffer) || func.workspaces.contains(&buffer)
}

fn gcd(a: i128, b: i128) -> i128 {
    if b == 0 { a } else { gcd(b, a % b) }
}
