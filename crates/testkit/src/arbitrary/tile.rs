//! Tile operations: after samples, and those with choices that hang together.

use crate::arbitrary::Gen;
use crate::arbitrary::samples::Sample;
use tilewright_ir::buffer::{BufferOrigin, LayoutAttr, Region, RegionDim, Scope};
use tilewright_ir::dtype::{DType, Scalar};
use tilewright_ir::expr::Expr;
use tilewright_ir::func::VarKind;
use tilewright_ir::ids::Buffer;
use tilewright_ir::micro_op::{MmaFamily, MmaInst};
use tilewright_ir::stmt::{Axis, Loop, LoopKind, StmtKind};
use tilewright_ir::text::Word;
use tilewright_ir::thread_op::{AtomicOp, MemoryOrder};
use tilewright_ir::tile_op::{
    AtomicSource, CopyHints, CopyKind, CopyOp, EvictionPolicy, GemmKind, GemmOp, GemmPlan,
    GemmPolicy, Im2colOp, ReduceKind, ReduceOp, Scales, Sparse, Sparsity, TileOp,
};

impl Gen<'_> {
    pub(super) fn tile_statement(&mut self) {
        match self.pick(10) {
            0 | 4 | 6 => self.sampled(Sample::Tile),
            1 => self.copy(),
            2 => self.gemm(),
            3 => self.reduce(),
            5 => self.atomic(),
            7 => self.im2col(),
            8 => self.legacy_reducer(),
            _ => self.reducer(),
        }
    }

    pub(super) fn whole(&self, buffer: Buffer) -> Region {
        Region::whole(buffer, &self.func.buffers[buffer])
    }

    /// A global tensor to copy from and to; a view of the first parameter would not fit.
    pub(super) fn workspace(&mut self, dtype: DType, sizes: &[i64]) -> Buffer {
        let shape = self.shape_of(sizes);
        let buffer = self.new_buffer(Scope::Global, dtype, shape, BufferOrigin::Workspace);
        self.func.workspaces.push(buffer);
        buffer
    }

    pub(super) fn barrier(&mut self) -> (Buffer, Expr) {
        let arrivals = vec![self.small(), 1];
        let shape = self.shape_of(&[2]);
        let origin = BufferOrigin::Barriers(arrivals);
        let buffer = self.alloc_as(Scope::Barrier, DType::U64, shape, origin);
        let index = self.pick(2) as i32;
        (buffer, Expr::i32(index))
    }

    fn copy(&mut self) {
        let (from, to) = (self.numeric(), self.numeric());
        let kind = match self.pick(8) {
            0 => CopyKind::Sync,
            1 => CopyKind::Async,
            2 => CopyKind::Tma {
                barrier: Some(self.barrier()),
                multicast: self.optional(|_| 1),
                alone: false,
            },
            3 => CopyKind::TmaRows { warps: [2, 1] },
            kind => CopyKind::Tma {
                barrier: (kind == 4).then(|| self.barrier()),
                multicast: None,
                alone: kind < 6,
            },
        };
        let row = self.int_expr(DType::I32, 2);
        let row = match row.as_int() {
            Some(_) => Expr::i32(2),
            None => row,
        };
        let (src, dst) = match kind {
            CopyKind::Sync => {
                let scope = self.one_of(&[Scope::Shared, Scope::Fragment, Scope::Tmem]);
                (
                    self.workspace(from, &[4, 32, 8]),
                    self.alloc(scope, to, &[16, 8]),
                )
            }
            CopyKind::Async
            | CopyKind::Tma {
                barrier: Some(_), ..
            } => (
                self.workspace(from, &[4, 32, 8]),
                self.alloc(Scope::Shared, from, &[16, 8]),
            ),
            CopyKind::Tma { barrier: None, .. } | CopyKind::TmaRows { .. } => {
                let src = self.alloc(Scope::Shared, from, &[128, 8]);
                let dst = self.workspace(from, &[256, 8]);
                let rows = RegionDim {
                    start: row,
                    extent: Expr::i32(128),
                };
                let mut target = self.whole(dst);
                target.dims[0] = rows;
                let source = self.whole(src);
                return self.emit_copy(source, target, kind);
            }
        };
        let mut source = self.whole(src);
        source.dims[0] = RegionDim {
            start: row,
            extent: Expr::i32(1),
        };
        source.dims[1].extent = Expr::i32(16);
        let target = self.whole(dst);
        self.emit_copy(source, target, kind);
    }

    fn emit_copy(&mut self, src: Region, dst: Region, kind: CopyKind) {
        let hints = CopyHints {
            coalesced_width: self.optional(|g| g.small()),
            disable_tma: self.chance(3),
            eviction: self.optional(|g| g.one_of(EvictionPolicy::VALUES)),
            prefer_instruction: self.optional(|g| g.text()),
        };
        self.emit(StmtKind::Tile(TileOp::Copy(CopyOp {
            src,
            dst,
            kind,
            hints,
        })));
    }

    fn gemm(&mut self) {
        let (input, accumulator) = self.one_of(&[
            (DType::F16, DType::F32),
            (DType::BF16, DType::F32),
            (DType::I8, DType::I32),
            (DType::F64, DType::F64),
            (DType::scalar(Scalar::F8E4M3FN), DType::F16),
            (DType::scalar(Scalar::F4E2M1), DType::F32),
        ]);
        let (trans_a, trans_b) = (self.chance(2), self.chance(2));
        let plan = self.optional(|g| GemmPlan {
            inst: MmaInst {
                family: MmaFamily::MmaSync,
                m: 16,
                n: 8,
                k: 16,
                a: Scalar::F16,
                b: Scalar::F16,
                acc: accumulator.scalar,
                scaled: false,
            },
            warps: [g.small(), g.small()],
            run: g.optional(|g| [g.small(), g.small()]),
            parts: [g.small(), g.small()],
            across: [g.small(), g.small()],
        });
        let kind = self.one_of(GemmKind::VALUES);
        let barrier = match kind {
            GemmKind::Tcgen05 => self.optional(|g| g.barrier()),
            GemmKind::Auto | GemmKind::Wgmma => None,
        };
        let sparse = match (kind, plan) {
            (GemmKind::Auto, None) if Sparsity::of(input.scalar).is_some() => self.optional(|g| {
                let trans_e = g.chance(2);
                // An int16 has the places of four groups of four.
                let shape: [i64; 2] = if trans_e { [2, 64] } else { [64, 2] };
                let e = g.alloc(Scope::Shared, DType::scalar(Scalar::I16), &shape);
                let e = g.whole(e);
                Sparse { e, trans_e }
            }),
            _ => None,
        };
        let scales = match (kind, plan, &sparse) {
            (GemmKind::Auto, None, None) if input.scalar == Scalar::F4E2M1 => self.optional(|g| {
                let every = [g.one_of(&[16, 32]), g.one_of(&[8, 32])];
                let dtype = DType::scalar(g.one_of(&[Scalar::F8E8M0, Scalar::F8E4M3FN]));
                let mut of = |rows: i64, every: u32| {
                    let scales = g.alloc(Scope::Shared, dtype, &[rows, 32 / i64::from(every)]);
                    g.whole(scales)
                };
                let (a, b) = (of(64, every[0]), of(16, every[1]));
                Scales { a, b, every }
            }),
            _ => None,
        };
        let k = if sparse.is_some() { 16 } else { 32 };
        let shape: [i64; 2] = if trans_a { [k, 64] } else { [64, k] };
        let a = self.alloc(Scope::Shared, input, &shape);
        let b = self.alloc(
            Scope::Shared,
            input,
            if trans_b { &[16, 32] } else { &[32, 16] },
        );
        let scope = match kind {
            GemmKind::Tcgen05 => Scope::Tmem,
            GemmKind::Auto | GemmKind::Wgmma => Scope::Fragment,
        };
        let c = self.alloc(scope, accumulator, &[64, 16]);
        let gemm = GemmOp {
            a: self.whole(a),
            b: self.whole(b),
            c: self.whole(c),
            trans_a,
            trans_b,
            sparse,
            scales,
            policy: self.one_of(GemmPolicy::VALUES),
            clear: self.bool_expr(2),
            k_pack: self.one_of(&[1, 2]),
            kind,
            barrier,
            plan,
        };
        self.emit(StmtKind::Tile(TileOp::Gemm(gemm)));
    }

    fn reduce(&mut self) {
        let kind = self.one_of(&ReduceKind::ALL);
        let dtype = if kind.is_bitwise() {
            DType::I32
        } else {
            self.numeric()
        };
        let (src, dst) = if self.chance(4) {
            let src = self.alloc(Scope::Local, dtype, &[8]);
            let dst = self.alloc(Scope::Var, dtype, &[]);
            (src, dst)
        } else {
            let scope = self.one_of(&[Scope::Fragment, Scope::Shared]);
            let src = self.alloc(scope, dtype, &[8, 16]);
            let shape: &[i64] = if self.chance(2) { &[8, 1] } else { &[8] };
            let dst = self.alloc(Scope::Fragment, dtype, shape);
            (src, dst)
        };
        let op = ReduceOp {
            kind,
            src: self.whole(src),
            dst: self.whole(dst),
            dim: self.func.buffers[src].shape.len() as u32 - 1,
            clear: self.chance(2),
            nan_propagate: self.chance(3),
        };
        self.emit(StmtKind::Tile(TileOp::Reduce(op)));
    }

    fn atomic(&mut self) {
        let op = self.one_of(AtomicOp::VALUES);
        let dtype = match op {
            AtomicOp::Add | AtomicOp::Max | AtomicOp::Min => {
                self.one_of(&[DType::F32, DType::I32, DType::F16])
            }
            AtomicOp::Or | AtomicOp::And | AtomicOp::Xor | AtomicOp::Exchange => DType::I32,
        };
        let dst = self.workspace(dtype, &[8]);
        let value = match self.pick(3) {
            0 => AtomicSource::Value(self.expr(dtype, 2)),
            1 => {
                let src = self.alloc(Scope::Fragment, dtype, &[8]);
                AtomicSource::Region(self.whole(src))
            }
            _ => {
                let src = self.alloc(Scope::Shared, dtype, &[1, 8]);
                AtomicSource::Region(self.whole(src))
            }
        };
        let op = TileOp::Atomic {
            op,
            dst: self.whole(dst),
            value,
            order: self.one_of(MemoryOrder::VALUES),
        };
        self.emit(StmtKind::Tile(op));
    }

    fn im2col(&mut self) {
        let dtype = self.numeric();
        let image = self.workspace(dtype, &[1, 8, 8, 4]);
        let dst = self.alloc(Scope::Shared, dtype, &[16, 36]);
        let op = Im2colOp {
            image,
            dst: self.whole(dst),
            m_step: self.int_expr(DType::I32, 2),
            k_step: self.int_expr(DType::I32, 2),
            kernel: self.small(),
            stride: self.small(),
            dilation: self.small(),
            pad: self.pick(3) as u32,
        };
        self.emit(StmtKind::Tile(TileOp::Im2col(op)));
    }

    fn new_reducer(&mut self) -> (Buffer, DType) {
        let kind = self.one_of(&[
            ReduceKind::Sum,
            ReduceKind::Max,
            ReduceKind::Min,
            ReduceKind::BitAnd,
            ReduceKind::BitOr,
            ReduceKind::BitXor,
        ]);
        let dtype = if kind.is_bitwise() {
            DType::I32
        } else {
            DType::F32
        };
        let shape = self.shape_of(&[8]);
        let origin = BufferOrigin::Reducer(kind);
        let reducer = self.alloc_as(Scope::Reducer, dtype, shape, origin);
        (reducer, dtype)
    }

    /// `for i in parallel(8) { reducer_update … }`
    fn update_loop(&mut self, reducer: Buffer, dtype: DType) {
        let var = self.var(DType::I32, VarKind::Loop);
        let value = self.expr(dtype, 2);
        let body = self.nested(|g| {
            let index = g.func.var_expr(var);
            g.emit(StmtKind::Tile(TileOp::ReducerUpdate {
                reducer,
                indices: vec![index],
                value,
            }));
        });
        let l = Loop {
            kind: LoopKind::Parallel {
                coalesced_width: None,
                layout: self.optional(|_| LayoutAttr::Swizzled),
            },
            axes: vec![Axis::upto(var, Expr::i32(8))],
            body,
        };
        self.emit(StmtKind::For(l));
    }

    fn reducer(&mut self) {
        let (reducer, dtype) = self.new_reducer();
        let init = self.optional(|g| g.literal(dtype));
        self.emit(StmtKind::Tile(TileOp::ReducerInit { reducer, init }));
        self.update_loop(reducer, dtype);
        let dst = self.alloc(Scope::Fragment, dtype, &[8]);
        let dst = Some(self.whole(dst));
        self.emit(StmtKind::Tile(TileOp::ReducerFinalize { reducer, dst }));
    }

    fn legacy_reducer(&mut self) {
        let (reducer, dtype) = self.new_reducer();
        self.emit(StmtKind::Tile(TileOp::ReducerInit {
            reducer,
            init: None,
        }));
        self.update_loop(reducer, dtype);
        self.emit(StmtKind::Tile(TileOp::ReducerFinalize {
            reducer,
            dst: None,
        }));
        let value = Expr::load(reducer, vec![Expr::i32(0)], dtype);
        let var = self.visible_var(dtype, VarKind::Let);
        self.emit(StmtKind::Let { var, value });
    }
}
