//! Copies, fills, tile atomics, transposition, im2col, and which tile op is checked where.
//!
//! - `copy-scope`, `copy-extents`, `copy-types`, `copy-overlap`, `copy-async`, `copy-tma`
//! - `fill-scope`, `fill-type`
//! - `atomic-scope`, `atomic-types`, `atomic-order`, and `copy-extents` for tiles
//! - `transpose-shape`, `transpose-scope`, `im2col-operands`

use crate::buffer::{Region, Scope};
use crate::dtype::{DType, Scalar};
use crate::expr::Expr;
use crate::func::Level;
use crate::ids::Buffer;
use crate::thread_op::AtomicOp;
use crate::tile_op::{AtomicSource, CopyKind, CopyOp, Im2colOp, TileOp};
use crate::verify::Verifier;

/// Memory that holds tiles.
const TILES: [Scope; 5] = [
    Scope::Global,
    Scope::Shared,
    Scope::Fragment,
    Scope::Local,
    Scope::Tmem,
];

impl<'a> Verifier<'a> {
    pub(super) fn tile_op(&mut self, op: &'a TileOp) {
        if self.func.level == Level::Device {
            self.fail("level", "there are no tile operations at device level");
        }
        let update = matches!(op, TileOp::ReducerUpdate { .. });
        if self.tile_level() && self.in_parallel() && !update {
            let error = self.fail(
                "parallel-nesting",
                "a tile operation inside a parallel loop",
            );
            error
                .help
                .push("it is done by the whole block at once; move it out".to_string());
        }
        let alone = matches!(op, TileOp::Copy(copy) if copy.kind.is_alone());
        if !update && !alone && !self.is_private(op) {
            self.collective("a tile operation");
        }
        match op {
            TileOp::Copy(copy) => self.copy(copy),
            TileOp::Fill { dst, value } => self.fill(dst, value),
            TileOp::Gemm(gemm) => self.gemm(gemm),
            TileOp::Reduce(reduce) => self.reduce(reduce),
            TileOp::Scan(scan) => self.scan(scan),
            TileOp::Atomic {
                op,
                dst,
                value,
                order: _,
            } => self.tile_atomic(*op, dst, value),
            TileOp::Transpose { src, dst } => self.transpose(src, dst),
            TileOp::Im2col(op) => self.im2col(op),
            TileOp::ReducerInit { .. }
            | TileOp::ReducerUpdate { .. }
            | TileOp::ReducerFinalize { .. } => self.reducer_op(op),
        }
    }

    /// Whether each thread does this for itself: an operand is its own.
    fn is_private(&self, op: &TileOp) -> bool {
        let own = |r: &Region| matches!(self.scope_of(r.buffer), Some(Scope::Local | Scope::Var));
        match op {
            TileOp::Copy(c) => own(&c.src) || own(&c.dst),
            TileOp::Fill { dst, .. } => own(dst),
            TileOp::Reduce(r) => own(&r.src) && own(&r.dst),
            TileOp::Atomic { value, .. } => matches!(value, AtomicSource::Region(r) if own(r)),
            TileOp::Gemm(_)
            | TileOp::Scan(_)
            | TileOp::Transpose { .. }
            | TileOp::Im2col(_)
            | TileOp::ReducerInit { .. }
            | TileOp::ReducerUpdate { .. }
            | TileOp::ReducerFinalize { .. } => false,
        }
    }

    fn copy(&mut self, copy: &'a CopyOp) {
        let (src, dst) = (&copy.src, &copy.dst);
        let sound = self.region(src, true) & self.region(dst, true);
        let async_barrier = match &copy.kind {
            CopyKind::Sync | CopyKind::Async | CopyKind::TmaRows { .. } => None,
            CopyKind::Tma { barrier, .. } => barrier.as_ref(),
        };
        if let Some((barrier, index)) = async_barrier {
            self.barrier_operand(*barrier, index);
        }
        if copy.hints.coalesced_width == Some(0) {
            self.fail("copy-types", "a coalesced width of zero");
        }
        if !sound {
            return;
        }
        let tiles = self.in_scope(src, &TILES, "copy-scope", "the source")
            & self.in_scope(dst, &TILES, "copy-scope", "the destination");
        if !tiles {
            return;
        }
        self.paired(src, dst);
        let (from, to) = (self.data(src), self.data(dst));
        if from.dtype != to.dtype && !(Self::is_number(from.dtype) && Self::is_number(to.dtype))
            || from.dtype.lanes != to.dtype.lanes
        {
            let message = format!("{} cannot be copied to {}", from.dtype, to.dtype);
            self.fail("copy-types", message);
        }
        if src.buffer == dst.buffer && src != dst && overlap(src, dst) {
            let name = self.buffer_name(src.buffer);
            let message = format!("source and destination overlap in `{name}`");
            self.fail("copy-overlap", message);
        }
        let load = from.scope == Scope::Global && to.scope == Scope::Shared;
        let store = from.scope == Scope::Shared && to.scope == Scope::Global;
        match &copy.kind {
            CopyKind::Sync => {}
            CopyKind::Async => {
                if !load {
                    self.fail(
                        "copy-async",
                        "an asynchronous copy goes from global to shared",
                    );
                }
            }
            CopyKind::Tma {
                barrier,
                multicast,
                alone,
            } => {
                if multicast.is_some() && *alone {
                    self.fail("copy-tma", "a thread alone loads for its own block");
                }
                if multicast.is_some() && !load {
                    self.fail("copy-tma", "only loads go to several blocks");
                }
                self.blocks_of_cluster(*multicast);
                if !(load && barrier.is_some() || store && barrier.is_none()) {
                    let error = self.fail(
                        "copy-tma",
                        "a bulk copy loads from global to shared with a barrier, or stores back \
                         without one",
                    );
                    error.help.push("add or drop `barrier=`".to_string());
                } else if from.dtype != to.dtype {
                    self.fail("copy-tma", "a bulk copy converts nothing");
                }
            }
            CopyKind::TmaRows { warps } => {
                if !store {
                    self.fail("copy-tma", "rows of warps go from shared to global");
                } else if from.dtype != to.dtype {
                    self.fail("copy-tma", "a bulk copy converts nothing");
                } else if !src.is_whole(from) || !is_dealt(from.const_shape(), *warps) {
                    let message = "the tile is not dealt out to its warps: each of a group has 16 \
                                   of 64 rows";
                    self.fail("copy-tma", message);
                }
            }
        }
    }

    fn fill(&mut self, dst: &'a Region, value: &'a Expr) {
        self.expr(value);
        if !self.region(dst, false) {
            return;
        }
        let all = [
            Scope::Global,
            Scope::Shared,
            Scope::Fragment,
            Scope::Local,
            Scope::Var,
            Scope::Tmem,
        ];
        if !self.in_scope(dst, &all, "fill-scope", "the destination") {
            return;
        }
        let (to, from) = (self.data(dst).dtype, value.dtype());
        if !Self::is_number(to) || !Self::is_number(from) || from.lanes != 1 {
            self.fail("fill-type", format!("{to} cannot be filled with {from}"));
        }
    }

    fn tile_atomic(&mut self, op: AtomicOp, dst: &'a Region, value: &'a AtomicSource) {
        let mut sound = self.region(dst, true);
        match value {
            AtomicSource::Region(src) => {
                sound &= self.region(src, true);
                if sound {
                    self.paired(src, dst);
                    self.in_scope(src, &TILES, "atomic-scope", "the source");
                }
            }
            AtomicSource::Value(e) => {
                if self.expr(e) && (e.dtype().lanes != 1 || !Self::is_number(e.dtype())) {
                    self.fail("atomic-types", format!("the value is {}", e.dtype()));
                }
            }
        }
        if sound {
            self.atomic_target(op, dst.buffer);
        }
    }

    /// Memory and type that an atomic works on.
    pub(super) fn atomic_target(&mut self, op: AtomicOp, buffer: Buffer) {
        let scopes = [Scope::Global, Scope::Shared];
        if !self.buffer_in_scope(buffer, &scopes, "atomic-scope", "the target") {
            return;
        }
        let dtype = self.func.buffers[buffer].dtype;
        let wide_int = matches!(
            dtype.scalar,
            Scalar::I32 | Scalar::U32 | Scalar::I64 | Scalar::U64
        );
        let float = matches!(
            dtype.scalar,
            Scalar::F16 | Scalar::BF16 | Scalar::F32 | Scalar::F64
        );
        let defined = match op {
            AtomicOp::Add | AtomicOp::Max | AtomicOp::Min => wide_int || float,
            AtomicOp::Or | AtomicOp::And | AtomicOp::Xor => wide_int,
            AtomicOp::Exchange => wide_int || dtype.scalar == Scalar::F32,
        };
        if !defined || dtype.lanes != 1 {
            let message = format!("there is no atomic {op:?} on {dtype}");
            let error = self.fail("atomic-types", message);
            error
                .help
                .push("32- and 64-bit integers, and for add, max and min floats".to_string());
        }
    }

    fn transpose(&mut self, src: &'a Region, dst: &'a Region) {
        let sound = self.region(src, false) & self.region(dst, false);
        if !sound {
            return;
        }
        let scopes = [Scope::Shared, Scope::Fragment];
        self.in_scope(src, &scopes, "transpose-scope", "the source");
        self.in_scope(dst, &scopes, "transpose-scope", "the destination");
        let (a, b) = (&src.dims[..], &dst.dims[..]);
        let swapped = match (a, b) {
            ([a0, a1], [b0, b1]) => {
                super::region::may_equal(&a0.extent, &b1.extent)
                    && super::region::may_equal(&a1.extent, &b0.extent)
            }
            _ => false,
        };
        if !swapped {
            self.fail(
                "transpose-shape",
                "these are not two matrices, one the other's transpose",
            );
        }
    }

    fn im2col(&mut self, op: &'a Im2colOp) {
        self.integer(&op.m_step, "im2col-operands", "`m`");
        self.integer(&op.k_step, "im2col-operands", "`k`");
        let sound = self.region(&op.dst, false) & self.use_buffer(op.image, self.at);
        if !sound {
            return;
        }
        self.buffer_in_scope(op.image, &[Scope::Global], "im2col-operands", "the image");
        self.in_scope(
            &op.dst,
            &[Scope::Shared, Scope::Fragment],
            "im2col-operands",
            "the destination",
        );
        let func = self.func;
        let image = &func.buffers[op.image];
        if image.shape.len() != 4 {
            self.fail("im2col-operands", "the image has dimensions N, H, W and C");
        }
        if op.dst.dims.len() < 2 {
            self.fail("im2col-operands", "the destination is a matrix");
        }
        if image.dtype != self.data(&op.dst).dtype {
            self.fail("im2col-operands", "image and destination differ in type");
        }
        if op.kernel == 0 || op.stride == 0 || op.dilation == 0 {
            self.fail(
                "im2col-operands",
                "filter, stride and dilation are at least one",
            );
        }
    }

    /// An element of a barrier buffer.
    pub(super) fn barrier_operand(&mut self, buffer: Buffer, index: &'a Expr) {
        self.integer(index, "barrier-operand", "the index of a barrier");
        if !self.use_buffer(buffer, self.at) {
            return;
        }
        let func = self.func;
        let data = &func.buffers[buffer];
        let name = self.buffer_name(buffer);
        if data.scope != Scope::Barrier {
            let message = format!("`{name}` is {} memory, not a barrier", data.scope.name());
            self.fail("barrier-operand", message);
            return;
        }
        let count = data.shape.first().and_then(Expr::as_int);
        if let (Some(i), Some(n)) = (index.as_int(), count)
            && !(0..n).contains(&i)
        {
            self.fail(
                "index-bounds",
                format!("barrier {i} of `{name}`, which has {n}"),
            );
        }
    }

    /// The blocks that a copy goes to are some of the cluster's.
    pub(super) fn blocks_of_cluster(&mut self, mask: Option<u16>) {
        let blocks = self.cluster_blocks;
        if mask.is_some_and(|mask| mask == 0 || u32::from(mask).checked_shr(blocks) > Some(0)) {
            let message = format!("a copy to other blocks than the cluster's {blocks}");
            self.fail("multicast", message);
        }
    }

    /// A dtype for messages and comparisons of whole tiles.
    pub(super) fn dtype_of(&self, region: &Region) -> DType {
        self.data(region).dtype
    }
}

/// Whether two regions with constant bounds share an element.
fn overlap(a: &Region, b: &Region) -> bool {
    a.dims.iter().zip(&b.dims).all(|(x, y)| {
        let known = |e: &Expr| e.as_int();
        match (
            known(&x.start),
            known(&x.extent),
            known(&y.start),
            known(&y.extent),
        ) {
            (Some(xs), Some(xe), Some(ys), Some(ye)) => xs < ys + ye && ys < xs + xe,
            // Not provably: equal starts and extents still share it all.
            _ => x == y,
        }
    })
}

/// Whether so many warp groups along rows and columns share a tile evenly.
fn is_dealt(shape: Option<Vec<i64>>, [down, across]: [u32; 2]) -> bool {
    // [PTX] wgmma: rows of an instruction.
    const ROWS: i64 = 64;
    let (rows, cols) = match shape.as_deref() {
        Some(&[rows, cols]) => (rows, cols),
        _ => return false,
    };
    let even = |extent: i64, parts: i64| parts > 0 && extent > 0 && extent % parts == 0;
    even(rows, ROWS * i64::from(down)) && even(cols, across.into())
}
