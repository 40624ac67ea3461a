//! Which tile op is lowered where, and the short ones: fills, atomics, transposes, im2col; persistent
//! loops.

use tilewright_ir::{
    AtomicOp, AtomicSource, Axis, Block, DType, Expr, ExprKind, Im2colOp, Loop, LoopKind,
    MemoryOrder, Region, Scope, Span, Stmt, StmtKind, ThreadOp, TileOp, VarKind,
};

use super::copy::element_at;
use super::{Lower, counted, store, unroll};
use crate::legalize::layout_inference::copy_shape;

impl Lower<'_> {
    pub(super) fn tile_op(&mut self, op: TileOp, span: Span, out: &mut Block) {
        match op {
            TileOp::Copy(c) => self.copy(c, span, out),
            TileOp::Fill { dst, value } => self.fill(dst, value, span, out),
            TileOp::Gemm(g) => self.gemm(g, span, out),
            TileOp::Reduce(r) => self.reduce(r, span, out),
            TileOp::Scan(s) => self.scan(s, span, out),
            TileOp::Atomic {
                op,
                dst,
                value,
                order,
            } => self.atomic(op, dst, value, order, span, out),
            TileOp::Transpose { src, dst } => self.transpose(src, dst, span, out),
            TileOp::Im2col(i) => self.im2col(i, span, out),
            TileOp::ReducerInit { .. }
            | TileOp::ReducerUpdate { .. }
            | TileOp::ReducerFinalize { .. } => {
                self.give_up(
                    span,
                    "a reducer reached lowering; layout-reducer must run before",
                );
            }
        }
    }

    fn fill(&mut self, dst: Region, value: Expr, span: Span, out: &mut Block) {
        let dtype = self.dtype(dst.buffer);
        let whole = dst.is_whole(&self.func.buffers[dst.buffer]);
        match self.scope(dst.buffer) {
            Scope::Fragment if whole => {
                let Some(fragment) = self.fragment(dst.buffer) else {
                    return self.give_up(span, "a fragment that nothing placed is filled");
                };
                self.filled.insert(self.func.root(dst.buffer));
                let (var, slot) = self.var("s", VarKind::Loop);
                let body = vec![store(dst.buffer, vec![slot], value, dtype, span)];
                out.push(counted(var, fragment.slots(), unroll(), body, span));
            }
            Scope::Local | Scope::Var => self.fill_private(&dst, value, span, out),
            _ => {
                let value = self.hoisted(value, span, out);
                let run = self.run_of(&[&dst]);
                self.region_loop(&dst, &dst, run, span, out, |_, _, to| {
                    vec![store(dst.buffer, to, value, dtype, span)]
                });
            }
        }
    }

    /// Each thread fills its own array.
    fn fill_private(&mut self, dst: &Region, value: Expr, span: Span, out: &mut Block) {
        let dtype = self.dtype(dst.buffer);
        let mut index = Vec::new();
        let mut axes = Vec::new();
        for extent in dst.non_unit_extents() {
            let extent = extent.clone();
            let (var, e) = self.var("i", VarKind::Loop);
            axes.push(Axis::upto(var, extent));
            index.push(e);
        }
        let mut body = vec![store(
            dst.buffer,
            element_at(dst, &index),
            value,
            dtype,
            span,
        )];
        for axis in axes.into_iter().rev() {
            body = vec![Stmt::new(
                StmtKind::For(Loop {
                    kind: LoopKind::Serial,
                    axes: vec![axis],
                    body,
                }),
                span,
            )];
        }
        out.extend(body);
    }

    /// A value that is read from memory is read once, before the loop that uses it.
    fn hoisted(&mut self, value: Expr, span: Span, out: &mut Block) -> Expr {
        let mut loads = false;
        value.walk(&mut |e| loads |= matches!(e.kind(), ExprKind::Load { .. }));
        if !loads {
            return value;
        }
        let var = self.func.add_var("value", value.dtype(), VarKind::Let);
        let e = self.func.var_expr(var);
        out.push(Stmt::new(StmtKind::Let { var, value }, span));
        e
    }

    fn atomic(
        &mut self,
        op: AtomicOp,
        dst: Region,
        value: AtomicSource,
        order: MemoryOrder,
        span: Span,
        out: &mut Block,
    ) {
        let dtype = self.dtype(dst.buffer);
        let (src, constant) = match value {
            AtomicSource::Region(region) => (region, None),
            AtomicSource::Value(value) => (dst.clone(), Some(self.hoisted(value, span, out))),
        };
        // Neighbours go to one thread where the machine adds to several at once.
        let run = match (op, order) {
            (AtomicOp::Add, MemoryOrder::Relaxed) => {
                let machine = self.target.machine();
                machine.atomic_add_lanes(self.scope(dst.buffer), dtype.scalar)
            }
            _ => 1,
        };
        let run = i64::from(run).min(self.run_of(&[&dst, &src]));
        self.region_loop(&src.clone(), &dst, run, span, out, |lower, from, to| {
            let value = constant.unwrap_or_else(|| lower.load(src.buffer, from));
            vec![Stmt::new(
                StmtKind::Thread(ThreadOp::AtomicRmw {
                    op,
                    buffer: dst.buffer,
                    indices: to,
                    value: value.cast_to(dtype),
                    order,
                    result: None,
                }),
                span,
            )]
        });
    }

    fn transpose(&mut self, src: Region, dst: Region, span: Span, out: &mut Block) {
        let dtype = self.dtype(dst.buffer);
        let Some(shape) = copy_shape(&dst) else {
            return self.give_up(span, "a transpose needs constant extents");
        };
        // With one dimension that counts, the elements are in the same order on both sides.
        if shape.len() < 2 {
            return self.copy_points(&src, &dst, span, out);
        }
        // An element of a fragment is needed by another thread than the one that has it.
        if self.scope(src.buffer) == Scope::Fragment {
            let extents = src
                .dims
                .iter()
                .map(|d| i64::try_from(d.extent.as_int()?).ok());
            let Some(extents) = extents.collect::<Option<Vec<i64>>>() else {
                return self.give_up(span, "a transpose needs constant extents");
            };
            let dtype = self.dtype(src.buffer);
            let work = self.exchange_buffer("turned", dtype, &extents);
            let whole = Region::whole(work, &self.func.buffers[work]);
            self.copy_points(&src, &whole, span, out);
            return self.transpose(whole, dst, span, out);
        }
        // Points follow the destination; the source is read with its indices exchanged.
        let mut swapped = src.clone();
        let dims: Vec<usize> = (0..src.dims.len())
            .filter(|&d| !src.dims[d].extent.is_int(1))
            .collect();
        let [a, b] = dims[..] else {
            return self.give_up(span, "a transpose exchanges two dimensions");
        };
        swapped.dims.swap(a, b);
        self.region_loop(&swapped, &dst, 1, span, out, |lower, mut from, to| {
            from.swap(a, b);
            let value = lower.load(src.buffer, from);
            vec![store(dst.buffer, to, value, dtype, span)]
        });
    }

    fn im2col(&mut self, i: Im2colOp, span: Span, out: &mut Block) {
        let image = self.func.buffers[i.image].clone();
        let dtype = self.dtype(i.dst.buffer);
        let [.., rows, cols] = &i.dst.dims[..] else {
            return self.give_up(span, "im2col needs a matrix as destination");
        };
        let (bm, bk) = (rows.extent.clone(), cols.extent.clone());
        let (kernel, stride) = (i.kernel as i64, i.stride as i64);
        let (dilation, pad) = (i.dilation as i64, i.pad as i64);
        let out_size = |size: &Expr| {
            let reach = 2 * pad - (kernel - 1) * dilation - 1;
            (size.clone() + reach).floor_div(stride) + 1
        };
        let (oh, ow) = (out_size(&image.shape[1]), out_size(&image.shape[2]));
        let channels = image.shape[3].clone();
        let first = i.dst.dims.len() - 2;
        let starts = (rows.start.clone(), cols.start.clone());
        self.region_loop(&i.dst.clone(), &i.dst, 1, span, out, |lower, _, to| {
            let row = to[first].clone() - starts.0;
            let col = to[first + 1].clone() - starts.1;
            let m = i.m_step.clone() * bm.cast_to(i.m_step.dtype()) + row;
            let k = i.k_step.clone() * bk.cast_to(i.k_step.dtype()) + col;
            let pixels = oh.clone() * &ow;
            let n = m.clone().floor_div(&pixels);
            let y = m.clone().floor_mod(&pixels).floor_div(&ow) * stride
                + k.clone().floor_div(channels.clone() * kernel) * dilation
                - pad;
            let x = m.floor_mod(&ow) * stride
                + k.clone().floor_div(&channels).floor_mod(kernel) * dilation
                - pad;
            let c = k.floor_mod(&channels);
            let inside = y
                .clone()
                .ge(0)
                .and(y.clone().lt(&image.shape[1]))
                .and(x.clone().ge(0))
                .and(x.clone().lt(&image.shape[2]));
            let value = lower.load(i.image, vec![n, y, x, c]);
            let zero = Expr::zero(value.dtype());
            let dt = value.dtype();
            let value = Expr::new(
                ExprKind::IfThenElse {
                    cond: inside,
                    then: value,
                    otherwise: zero,
                },
                dt,
                span,
            );
            vec![store(i.dst.buffer, to, value, dtype, span)]
        });
    }

    /// Waves over a grouped domain, one serial loop.
    pub(super) fn persistent(&mut self, l: Loop, span: Span, out: &mut Block) {
        let LoopKind::Persistent {
            wave_size,
            index,
            group_size,
        } = l.kind
        else {
            return;
        };
        let Some((last, others)) = l.axes.split_last() else {
            return;
        };
        let int = |e: &Expr| e.clone().cast_to(DType::I32);
        let extent = int(&last.stop);
        let group = int(&group_size).min(&extent).max(1);
        let groups = extent.clone().ceil_div(&group);
        let mut total = groups * &group;
        for axis in others {
            total = total * int(&axis.stop);
        }
        let (wave, w) = self.var("w", VarKind::Loop);
        let (wave_size, index) = (int(&wave_size), int(&index));
        let linear = w * &wave_size + &index;
        let mut inner = Vec::new();
        let within = linear.clone().floor_mod(&group);
        let mut rest = linear.floor_div(&group);
        for axis in others.iter().rev() {
            self.func.vars[axis.var].kind = VarKind::Let;
            let dtype = self.func.vars[axis.var].dtype;
            let value = rest.clone().floor_mod(int(&axis.stop)).cast_to(dtype);
            inner.push(Stmt::new(
                StmtKind::Let {
                    var: axis.var,
                    value,
                },
                span,
            ));
            rest = rest.floor_div(int(&axis.stop));
        }
        self.func.vars[last.var].kind = VarKind::Let;
        let dtype = self.func.vars[last.var].dtype;
        inner.push(Stmt::new(
            StmtKind::Let {
                var: last.var,
                value: (rest * &group + within).cast_to(dtype),
            },
            span,
        ));
        let cond = self.func.var_expr(last.var).lt(&last.stop);
        inner.push(Stmt::new(
            StmtKind::If {
                cond,
                then: self.block(l.body),
                otherwise: Vec::new(),
            },
            span,
        ));
        let waves = (total - &index).max(0).ceil_div(&wave_size);
        let waves = self.simplify(&waves);
        for stmt in &mut inner {
            if let StmtKind::Let { value, .. } = &mut stmt.kind {
                *value = self.analyzer.simplify(value);
            }
        }
        out.push(Stmt::new(
            StmtKind::For(Loop {
                kind: LoopKind::Serial,
                axes: vec![Axis::upto(wave, waves)],
                body: inner,
            }),
            span,
        ));
    }
}
