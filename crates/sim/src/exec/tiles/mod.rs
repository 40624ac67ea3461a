//! Tile operations, what each becomes and does: which is where, and those that move elements, one for
//! one: copies, fills, transposes, im2col, atomics.

mod folds;
mod gemm;
mod reducers;

use tilewright_ir::touched::{Part, touched};
use tilewright_ir::visit::stmt_exprs;
use tilewright_ir::{
    AtomicOp, AtomicSource, Buffer, CopyKind, Im2colOp, Region, Scalar, Span, Stmt, StmtKind,
    TileOp,
};

use crate::cluster::{Sent, What};
use crate::compile::expr;
use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::error::{Eval, Fault, RunError, codes};
use crate::exec::Exec;
use crate::exec::access::{decode, encode, tuple};
use crate::exec::areas::{Area, Outside};
use crate::exec::threads::{BarrierRef, barrier_ref};
use crate::program::{Int, Num, Op, Rect, Space, Uniform};
use crate::value;
pub(crate) use folds::{fold, identity};
use gemm::transposed;
pub(crate) use gemm::{Term, multiply_row};

#[derive(Clone, Debug)]
pub(crate) struct Tile {
    code: Code,
    pub uniform: Uniform,
}

#[derive(Clone, Debug)]
enum Code {
    Copy {
        src: Rect,
        dst: Rect,
    },
    Multicast(Box<Multicast>),
    /// A load that a thread alone has made, with the barrier that hears of it.
    Load {
        src: Rect,
        dst: Rect,
        barrier: BarrierRef,
    },
    Fill {
        dst: Rect,
        value: Num,
    },
    Gemm(Box<gemm::Code>),
    Fold(folds::Code),
    Atomic {
        op: AtomicOp,
        dst: Rect,
        value: AtomicValue,
    },
    Transpose {
        src: Rect,
        dst: Rect,
    },
    Im2col(Box<Im2col>),
    Reducer(reducers::Code),
}

#[derive(Clone, Debug)]
enum AtomicValue {
    Rect(Rect),
    Value(Num),
}

/// A copy to several blocks of a cluster, a bit for each.
#[derive(Clone, Debug)]
struct Multicast {
    src: Rect,
    dst: Rect,
    mask: u16,
    barrier: BarrierRef,
}

#[derive(Clone, Debug)]
struct Im2col {
    image: u32,
    dst: Rect,
    m_step: Int,
    k_step: Int,
    kernel: i64,
    stride: i64,
    dilation: i64,
    pad: i64,
}

/// Compiles a tile operation.
pub(crate) fn compile(b: &mut Builder<'_, '_>, stmt: &Stmt, op: &TileOp) -> Compiled<()> {
    let span = stmt.span;
    let update = matches!(op, TileOp::ReducerUpdate { .. });
    if b.names.in_point && !update {
        return Err(
            RunError::invalid(span, "a tile operation in a parallel loop")
                .help("move it out of the loop: the whole block does it at once"),
        );
    }
    if update && !b.names.in_point {
        return Err(RunError::new(
            codes::REDUCER,
            span,
            "a reducer is updated outside of a parallel loop",
        ));
    }
    let mut buffers = Vec::new();
    touched(stmt, &mut |access| {
        if let Part::Region(_) = access.part {
            buffers.push(access.buffer);
        }
    });
    let func = b.names.func;
    let is_private = |buffer: &Buffer| func.buffers[func.root(*buffer)].scope.is_private();
    let private = buffers.iter().any(is_private);
    let varying = private && !b.names.in_point && varies(b, stmt, &buffers);
    let before = b.begin_uniform();
    let code = code(b, op, span);
    let uniform = b.end_uniform(before);
    let code = code?;
    if update {
        // Inside a parallel loop what the update reads counts for the loop.
        for lane in uniform.lanes {
            if !b.names.uniform.lanes.contains(&lane) {
                b.names.uniform.lanes.push(lane);
            }
        }
        b.names.uniform.buffers.extend(uniform.buffers);
        let tile = Box::new(Tile {
            code,
            uniform: Default::default(),
        });
        b.emit(Op::PerThread {
            tile,
            varying: false,
        });
        return Ok(());
    }
    let tile = Box::new(Tile { code, uniform });
    let alone = matches!(op, TileOp::Copy(copy) if copy.kind.is_alone());
    b.emit(if alone {
        let varying = true;
        Op::PerThread { tile, varying }
    } else if private {
        Op::PerThread { tile, varying }
    } else {
        Op::Collective {
            tile,
            groups: b.groups,
        }
    });
    Ok(())
}

/// Whether threads do the operation on the buffers one by one.
fn varies(b: &Builder<'_, '_>, stmt: &Stmt, buffers: &[Buffer]) -> bool {
    // An update of shared memory by every thread is as many updates as there are threads.
    let mut varying = matches!(stmt.kind, StmtKind::Tile(TileOp::Atomic { .. }));
    stmt_exprs(stmt, &mut |e| varying |= b.names.varying(e));
    varying || buffers.iter().any(|buffer| b.names.buffer_varies(*buffer))
}

fn code(b: &mut Builder<'_, '_>, op: &TileOp, span: Span) -> Compiled<Code> {
    Ok(match op {
        TileOp::Copy(c) => {
            let (src, dst) = b.rects(&c.src, &c.dst, span)?;
            match &c.kind {
                CopyKind::Tma {
                    barrier: Some((barrier, index)),
                    multicast: Some(mask),
                    ..
                } => Code::Multicast(Box::new(Multicast {
                    src,
                    dst,
                    mask: *mask,
                    barrier: barrier_ref(b, *barrier, index)?,
                })),
                CopyKind::Tma {
                    barrier: Some((barrier, index)),
                    alone: true,
                    ..
                } => Code::Load {
                    src,
                    dst,
                    barrier: barrier_ref(b, *barrier, index)?,
                },
                _ => Code::Copy { src, dst },
            }
        }
        TileOp::Fill { dst, value } => {
            let scalar = b.names.func.buffers[dst.buffer].dtype.scalar;
            let dst = b.names.rect(dst, span)?;
            b.names.writes(dst.buffer);
            let value = expr::cast(b.names, value, 0, scalar)?;
            Code::Fill { dst, value }
        }
        TileOp::Gemm(g) => Code::Gemm(Box::new(gemm::compile(b, g, span)?)),
        TileOp::Reduce(r) => Code::Fold(folds::reduce(b, r, span)?),
        TileOp::Scan(s) => Code::Fold(folds::scan(b, s, span)?),
        TileOp::Atomic { op, dst, value, .. } => {
            let scalar = b.names.func.buffers[dst.buffer].dtype.scalar;
            let dst = b.names.rect(dst, span)?;
            b.names.writes(dst.buffer);
            let value = match value {
                AtomicSource::Region(src) => {
                    let src = b.names.rect(src, span)?;
                    b.names.reads(src.buffer);
                    AtomicValue::Rect(src)
                }
                AtomicSource::Value(e) => AtomicValue::Value(expr::cast(b.names, e, 0, scalar)?),
            };
            Code::Atomic {
                op: *op,
                dst,
                value,
            }
        }
        TileOp::Transpose { src, dst } => {
            let (src, dst) = b.rects(src, dst, span)?;
            Code::Transpose { src, dst }
        }
        TileOp::Im2col(i) => Code::Im2col(Box::new(im2col(b, i, span)?)),
        TileOp::ReducerInit { reducer, init } => {
            Code::Reducer(reducers::init(b, *reducer, init.as_ref())?)
        }
        TileOp::ReducerUpdate {
            reducer,
            indices,
            value,
        } => Code::Reducer(reducers::update(b, *reducer, indices, value, span)?),
        TileOp::ReducerFinalize { reducer, dst } => {
            Code::Reducer(reducers::finalize(b, *reducer, dst.as_ref(), span)?)
        }
    })
}

impl Builder<'_, '_> {
    /// What is read and what is written.
    fn rects(&mut self, src: &Region, dst: &Region, span: Span) -> Compiled<(Rect, Rect)> {
        let (src, dst) = (self.names.rect(src, span)?, self.names.rect(dst, span)?);
        self.names.reads(src.buffer);
        self.names.writes(dst.buffer);
        Ok((src, dst))
    }
}

fn im2col(b: &mut Builder<'_, '_>, i: &Im2colOp, span: Span) -> Compiled<Im2col> {
    let image = b.names.buffer(i.image)?;
    b.names.reads(image);
    let dst = b.names.rect(&i.dst, span)?;
    b.names.writes(dst.buffer);
    let image_rank = b.names.buffers[image as usize].shape.len();
    if image_rank != 4 || dst.start.len() < 2 || i.stride == 0 {
        return Err(b.invalid("im2col gathers from an NHWC image into a matrix"));
    }
    Ok(Im2col {
        image,
        dst,
        m_step: expr::int(b.names, &i.m_step, 0)?,
        k_step: expr::int(b.names, &i.k_step, 0)?,
        kernel: i.kernel as i64,
        stride: i.stride as i64,
        dilation: i.dilation as i64,
        pad: i.pad as i64,
    })
}

impl Exec<'_, '_> {
    pub(super) fn tile(&mut self, tile: &Tile) -> Eval<()> {
        match &tile.code {
            Code::Copy { src, dst } => {
                let (src, dst) = (self.area(src)?, self.area(dst)?);
                self.pair(&src, &dst)?;
                self.copy(&src, &dst, Outside::Safe)
            }
            Code::Multicast(code) => self.multicast(code),
            Code::Load { src, dst, barrier } => {
                let (src, dst) = (self.area(src)?, self.area(dst)?);
                self.pair(&src, &dst)?;
                self.copy(&src, &dst, Outside::Safe)?;
                let bits = self.program.buffers[dst.buffer as usize].bits();
                let bytes = dst.len() as i64 * i64::from(bits) / 8;
                let barrier = self.barrier(barrier)?;
                self.block.mbarriers[barrier].expect(-bytes);
                Ok(())
            }
            Code::Fill { dst, value } => {
                let dst = self.area(dst)?;
                let slot = self.num(value)?;
                self.fill(&dst, slot)
            }
            Code::Gemm(g) => self.gemm(g),
            Code::Fold(code) => self.fold(code),
            Code::Atomic { op, dst, value } => self.atomic_tile(*op, dst, value),
            Code::Transpose { src, dst } => {
                let (src, dst) = (self.area(src)?, self.area(dst)?);
                self.transpose(&src, &dst)
            }
            Code::Im2col(i) => self.im2col(i),
            Code::Reducer(code) => self.reducer(code),
        }
    }

    /// The non-unit extents of both sides must be equal in order.
    fn pair(&mut self, src: &Area, dst: &Area) -> Eval<()> {
        if src.non_unit() == dst.non_unit() {
            return Ok(());
        }
        let shape = |a: &Area| tuple(&a.extent.iter().map(|&e| e as i64).collect::<Vec<_>>());
        let name = |a: &Area| &self.program.buffers[a.buffer as usize].name;
        let message = format!(
            "regions of unequal extents: {} of `{}` and {} of `{}`",
            shape(src),
            name(src),
            shape(dst),
            name(dst)
        );
        Err(self.fail(
            Fault::new(codes::EXTENTS, message)
                .help("extents other than one must be equal, in order"),
        ))
    }

    fn copy(&mut self, src: &Area, dst: &Area, outside: Outside) -> Eval<()> {
        let scalar = |a: &Area| self.program.buffers[a.buffer as usize].scalar;
        let (from, to) = (scalar(src), scalar(dst));
        match (from.is_float(), to.is_float()) {
            _ if from == to => {
                let values = self.gather::<u64>(src, outside)?;
                self.scatter(dst, &values, outside)
            }
            (true, true) => {
                let values = self.gather::<f64>(src, outside)?;
                self.scatter(dst, &values, outside)
            }
            (false, false) => {
                let values = self.gather::<i64>(src, outside)?;
                self.scatter(dst, &values, outside)
            }
            (true, false) => {
                let values = self.gather::<f64>(src, outside)?;
                let values: Vec<i64> = values
                    .into_iter()
                    .map(|v| value::float_to_int(to, v))
                    .collect();
                self.scatter(dst, &values, outside)
            }
            (false, true) => {
                let values = self.gather::<i64>(src, outside)?;
                let values: Vec<f64> = values
                    .into_iter()
                    .map(|v| value::int_to_float(to, from, v))
                    .collect();
                self.scatter(dst, &values, outside)
            }
        }
    }

    /// Every block of the mask announces what comes to it; the first one copies, to all of them. A
    /// block that is not among them copies for itself.
    fn multicast(&mut self, code: &Multicast) -> Eval<()> {
        let (src, dst) = (self.area(&code.src)?, self.area(&code.dst)?);
        self.pair(&src, &dst)?;
        let is_in = |rank: usize| code.mask.checked_shr(rank as u32).unwrap_or(0) & 1 == 1;
        if !is_in(self.rank) {
            return self.copy(&src, &dst, Outside::Safe);
        }
        let program = self.program;
        let info = &program.buffers[dst.buffer as usize];
        let bytes = dst.len() as i64 * i64::from(info.bits()) / 8;
        let barrier = self.barrier(&code.barrier)?;
        self.block.mbarriers[barrier].expect(bytes);
        let Space::Block(storage) = info.space else {
            return Ok(());
        };
        if self.rank != code.mask.trailing_zeros() as usize {
            return Ok(());
        }
        let values = self.gather::<u64>(&src, Outside::Safe)?;
        self.scatter(&dst, &values, Outside::Trap)?;
        self.block.mbarriers[barrier].expect(-bytes);
        let places = self.elements(&dst, Outside::Trap)?.into_iter();
        let elements = places.zip(values);
        let elements: Vec<(usize, u64)> = elements.filter_map(|(at, v)| Some((at?, v))).collect();
        for to in (0..program.cluster_blocks() as usize).filter(|to| is_in(*to)) {
            if to != self.rank {
                let what = What::Tile {
                    storage,
                    bits: info.bits(),
                    elements: elements.clone(),
                    bytes,
                };
                self.output.sent.push(Sent {
                    to,
                    barrier,
                    what,
                    site: self.site,
                });
            }
        }
        Ok(())
    }

    fn fill(&mut self, dst: &Area, slot: u64) -> Eval<()> {
        let scalar = self.program.buffers[dst.buffer as usize].scalar;
        self.set_open(dst.buffer, true);
        let raw = encode(scalar, slot);
        self.scatter(dst, &vec![raw; dst.len()], Outside::Trap)
    }

    fn transpose(&mut self, src: &Area, dst: &Area) -> Eval<()> {
        let (from, to) = (src.non_unit(), dst.non_unit());
        // A row or column of one is its own transpose.
        let fits = match (from.as_slice(), to.as_slice()) {
            ([a, b], [c, d]) => a == d && b == c,
            (a, b) => a.len() < 2 && a == b,
        };
        if !fits {
            return Err(self.fail(Fault::new(
                codes::EXTENTS,
                "the destination of a transpose has not the transposed extents",
            )));
        }
        let scalar = |a: &Area| self.program.buffers[a.buffer as usize].scalar;
        let (sf, st) = (scalar(src), scalar(dst));
        let values = self.gather::<u64>(src, Outside::Trap)?;
        let values = match from.as_slice() {
            [rows, columns] => transposed(&values, *rows, *columns),
            _ => values,
        };
        let values: Vec<u64> = values
            .into_iter()
            .map(|raw| encode(st, cast_slot(sf, st, decode(sf, raw))))
            .collect();
        self.scatter(dst, &values, Outside::Trap)
    }

    /// One atomic operation for each element of the destination.
    fn atomic_tile(&mut self, op: AtomicOp, dst: &Rect, value: &AtomicValue) -> Eval<()> {
        let dst = self.area(dst)?;
        let program = self.program;
        let info = &program.buffers[dst.buffer as usize];
        let values = match value {
            AtomicValue::Value(e) => vec![self.num(e)?; dst.len()],
            AtomicValue::Rect(src) => {
                let src = self.area(src)?;
                self.pair(&src, &dst)?;
                let from = program.buffers[src.buffer as usize].scalar;
                let raw = self.gather::<u64>(&src, Outside::Trap)?;
                raw.into_iter()
                    .map(|raw| cast_slot(from, info.scalar, decode(from, raw)))
                    .collect()
            }
        };
        let elements = self.elements(&dst, Outside::Trap)?;
        for (position, (index, value)) in elements.into_iter().zip(values).enumerate() {
            if let Some(index) = index {
                self.atomic(op, info, index, value, false, |_| {
                    Ok(dst.coordinates(position))
                })?;
            }
        }
        Ok(())
    }

    fn im2col(&mut self, code: &Im2col) -> Eval<()> {
        let dst = self.area(&code.dst)?;
        let (m_step, k_step) = (self.int(&code.m_step)?, self.int(&code.k_step)?);
        let program = self.program;
        let (image, target) = (
            &program.buffers[code.image as usize],
            &program.buffers[dst.buffer as usize],
        );
        let [_, height, width, channels] = image.shape[..] else {
            return Ok(());
        };
        let rank = dst.extent.len();
        let (bm, bk) = (dst.extent[rank - 2] as i64, dst.extent[rank - 1] as i64);
        let size =
            |x: i64| (x + 2 * code.pad - (code.kernel - 1) * code.dilation - 1) / code.stride + 1;
        let (oh, ow) = (size(height), size(width));
        if oh < 1 || ow < 1 || channels < 1 || dst.len() as i64 != bm * bk {
            let message = "an image and a kernel that give no output";
            return Err(self.fail(Fault::new(codes::EXTENTS, message)));
        }
        let mut values = Vec::with_capacity(dst.len());
        for i in 0..bm {
            for j in 0..bk {
                let (m, k) = (m_step * bm + i, k_step * bk + j);
                let n = m.div_euclid(oh * ow);
                let h = m.rem_euclid(oh * ow) / ow * code.stride
                    + k / (code.kernel * channels) * code.dilation
                    - code.pad;
                let w = m.rem_euclid(ow) * code.stride
                    + (k / channels) % code.kernel * code.dilation
                    - code.pad;
                let inside = (0..height).contains(&h) && (0..width).contains(&w);
                let slot = if inside {
                    self.element_at(code.image, &[n, h, w, k % channels])?
                } else {
                    0
                };
                values.push(encode(
                    target.scalar,
                    cast_slot(image.scalar, target.scalar, slot),
                ));
            }
        }
        self.scatter(&dst, &values, Outside::Trap)
    }
}

/// A slot of one type converted to another.
pub(crate) fn cast_slot(from: Scalar, to: Scalar, slot: u64) -> u64 {
    match (from.is_float(), to.is_float()) {
        _ if from == to => slot,
        (true, true) => value::round(to, f64::from_bits(slot)).to_bits(),
        (true, false) => value::float_to_int(to, f64::from_bits(slot)) as u64,
        (false, true) => value::int_to_float(to, from, slot as i64).to_bits(),
        (false, false) => value::wrap(to, slot as i64) as u64,
    }
}
