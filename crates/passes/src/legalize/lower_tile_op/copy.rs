//! Copies: micro-ops where vectors line up, loops over points where values are converted.

use std::sync::Arc;

use tilewright_ir::{
    Access, Block, Buffer, CopyKind, CopyOp, DType, Expr, ExprKind, Inst, MicroKind, MicroOp,
    Region, RegionDim, Scope, Span, Stmt, StmtKind, VarKind,
};
use tilewright_layout::{Fragment, InRuns};

use super::{Lower, counted, guarded, store, unroll};
use crate::legalize::layout_inference::{Touched, copy_shape, narrowed, region_map};

/// The memory side of a copy that goes through registers.
#[derive(Clone)]
pub(super) struct Memory<'a> {
    pub region: &'a Region,
    /// Which dimension of the fragment's index each non-unit dimension of the region follows.
    pub order: Vec<usize>,
}

/// A copy between memory and the registers of a fragment.
#[derive(Clone)]
pub(super) struct RegisterCopy<'a> {
    pub memory: Memory<'a>,
    pub fragment: &'a Fragment,
    pub registers: Buffer,
    /// Added to the index of a dimension of the memory region.
    pub offset: Option<(usize, Expr)>,
    pub to_registers: bool,
    /// What registers get where there is no element in memory.
    pub otherwise: Option<Expr>,
    /// A further condition over the fragment's index.
    pub inside: Vec<(usize, Expr)>,
}

impl Lower<'_> {
    pub(super) fn copy(&mut self, c: CopyOp, span: Span, out: &mut Block) {
        match &c.kind {
            CopyKind::Tma { .. } => return self.bulk_copy(&c, span, out),
            CopyKind::TmaRows { warps } => return self.bulk_rows(&c, *warps, span, out),
            CopyKind::Sync | CopyKind::Async => {}
        }
        let (src, dst) = (self.scope(c.src.buffer), self.scope(c.dst.buffer));
        let same = self.dtype(c.src.buffer) == self.dtype(c.dst.buffer);
        match (src, dst) {
            (Scope::Fragment, Scope::Shared) if self.by_matrices(&c, span, out) => {}
            (Scope::Global | Scope::Shared, Scope::Fragment) if same => {
                self.fragment_copy(&c.src, &c.dst, true, span, out)
            }
            (Scope::Fragment, Scope::Global | Scope::Shared) if same => {
                self.fragment_copy(&c.dst, &c.src, false, span, out)
            }
            (Scope::Global, Scope::Shared) if same => self.global_to_shared(&c, span, out),
            _ => self.copy_points(&c.src, &c.dst, span, out),
        }
    }

    /// A whole fragment to or from memory; a part of one goes point by point.
    fn fragment_copy(
        &mut self,
        memory: &Region,
        fragment: &Region,
        to_registers: bool,
        span: Span,
        out: &mut Block,
    ) {
        let whole = fragment.is_whole(&self.func.buffers[fragment.buffer]);
        let placed = self.fragment(fragment.buffer);
        let Some(placed) = placed.filter(|_| whole) else {
            let (src, dst) = if to_registers {
                (memory, fragment)
            } else {
                (fragment, memory)
            };
            return self.copy_points(src, dst, span, out);
        };
        let order = (0..placed.shape().len())
            .filter(|&d| placed.shape()[d] != 1)
            .collect();
        let copy = RegisterCopy {
            memory: Memory {
                region: memory,
                order,
            },
            fragment: &placed,
            registers: fragment.buffer,
            offset: None,
            to_registers,
            otherwise: None,
            inside: Vec::new(),
        };
        let Some(aligned) = self.aligned_rows(&copy) else {
            return self.register_copy(copy, span, out);
        };
        let (mut then, mut otherwise) = (Vec::new(), Vec::new());
        self.analyzer.push();
        self.analyzer.assume(&aligned);
        self.register_copy(copy.clone(), span, &mut then);
        self.analyzer.pop();
        self.register_copy(copy, span, &mut otherwise);
        out.push(Stmt::new(
            StmtKind::If {
                cond: aligned,
                then,
                otherwise,
            },
            span,
        ));
    }

    /// What sizes of the call must fulfil for a copy to have wider vectors than can be proved:
    /// rows of global memory that are multiples of the fragment's runs.
    fn aligned_rows(&mut self, c: &RegisterCopy<'_>) -> Option<Expr> {
        let region = c.memory.region;
        let data = &self.func.buffers[region.buffer];
        let (dim, row) = (*c.memory.order.last()?, data.shape.last()?.clone());
        let mut is_size = data.scope == Scope::Global && row.as_int().is_none();
        row.walk(&mut |e| match e.kind() {
            ExprKind::Var(var) => {
                let kind = self.func.vars[*var].kind;
                is_size &= matches!(kind, VarKind::Symbol | VarKind::Param);
            }
            ExprKind::Load { .. } => is_size = false,
            _ => {}
        });
        let run = c
            .fragment
            .vector_width(dim)
            .min(128 / data.dtype.bits().max(8) as i64);
        if !is_size || run < 2 {
            return None;
        }
        let aligned = row.floor_mod(run).equal(0);
        let narrow = self.memory_width(region, &c.inside);
        self.analyzer.push();
        self.analyzer.assume(&aligned);
        let wide = self.memory_width(region, &c.inside);
        self.analyzer.pop();
        (narrow.min(run) < wide.min(run)).then_some(aligned)
    }

    /// Loads or stores a fragment with vectors as wide as both sides allow.
    pub(super) fn register_copy(&mut self, c: RegisterCopy<'_>, span: Span, out: &mut Block) {
        let region = c.memory.region;
        let memory = region.buffer;
        let mut width = 1;
        let mut apart = None;
        if let Some(&dim) = c.memory.order.last() {
            let most = self.memory_width(region, &c.inside);
            width = c.fragment.vector_width(dim).min(most);
            apart = self.apart(&c, dim, [width, most]);
            width = apart.as_ref().map_or(width, |runs| runs.even.min(most));
        }
        let whole = self.func.buffers[memory].dtype.fills_bytes(width as u32);
        let width = if whole { width.max(1) } else { 1 };
        let placed = apart.as_ref().map_or(c.fragment, |runs| &runs.fragment);
        let count = placed.slots() / width;
        let (axis, n) = self.var("c", VarKind::Loop);
        let slot = if width == 1 { n } else { n * width };
        let Some(points) = self.points_in(placed, &slot, axis, count) else {
            return self.give_up(span, "the layout of this copy has no closed form");
        };
        let register = match &apart {
            None => Some(slot.clone()),
            Some(runs) => self.slot_in(c.fragment, (&runs.fragment, &[]), &slot, &[(axis, count)]),
        };
        let Some(register) = register else {
            return self.give_up(span, "the layout of this copy has no closed form");
        };
        let apart = apart.map_or(1, |runs| runs.apart);
        let mut next = c.memory.order.iter();
        let mut at = Vec::new();
        for dim in &region.dims {
            let inner = if dim.extent.is_int(1) {
                None
            } else {
                next.next().map(|&d| points.index[d].clone())
            };
            let start = dim.start.clone();
            at.push(match inner {
                None => start,
                Some(inner) if start.is_int(0) => inner.cast_to(start.dtype()),
                Some(inner) => {
                    let inner = inner.cast_to(start.dtype());
                    start + inner
                }
            });
        }
        if let Some((dim, offset)) = c.offset {
            let dtype = at[dim].dtype();
            at[dim] = at[dim].clone() + offset.cast_to(dtype);
        }
        let mut pred = points.guard;
        for (dim, limit) in &c.inside {
            let below = points.index[*dim].clone().lt(limit);
            pred = Some(match pred {
                None => below,
                Some(p) => p.and(below),
            });
        }
        if !c.to_registers
            && let Some(copy) = points.copy
        {
            // One copy is enough to write.
            let first = copy.equal(0);
            pred = Some(match pred {
                None => first,
                Some(p) => p.and(first),
            });
        }
        let dtype = self.dtype(memory);
        if width * i64::from(dtype.bits()) % 8 != 0 {
            // No instruction takes a part of a byte.
            let (there, held) = (
                self.load(memory, at.clone()),
                self.load(c.registers, vec![slot.clone()]),
            );
            let one = match c.to_registers {
                true => store(c.registers, vec![slot.clone()], there, dtype, span),
                false => store(memory, at, held, dtype, span),
            };
            let otherwise = c.otherwise.filter(|_| pred.is_some());
            let mut body = Vec::from_iter(
                otherwise.map(|value| store(c.registers, vec![slot], value, dtype, span)),
            );
            guarded(pred, vec![one], span, &mut body);
            out.push(counted(axis, count, unroll(), body, span));
            return;
        }
        let zero = Expr::i32(0);
        // A fragment is not an array of its slots yet, a temporary is one already.
        let slots = match (
            self.scope(c.registers),
            &self.func.buffers[c.registers].shape[..],
        ) {
            (Scope::Local, [slots]) => slots.clone(),
            _ => Expr::int(c.fragment.slots().into(), DType::I32),
        };
        let in_registers = Access {
            region: Region {
                buffer: c.registers,
                dims: vec![RegionDim {
                    start: zero,
                    extent: slots,
                }],
            },
            slot: None,
            at: vec![register],
        };
        let in_memory = Access {
            region: region.clone(),
            slot: None,
            at,
        };
        let global = self.scope(memory) == Scope::Global;
        let (kind, inst, dest, source) = if c.to_registers {
            let kind = if global {
                MicroKind::G2r
            } else {
                MicroKind::S2r
            };
            (kind, Inst::Load, in_registers, in_memory)
        } else {
            let kind = if global {
                MicroKind::R2g
            } else {
                MicroKind::R2s
            };
            (kind, Inst::Store, in_memory, in_registers)
        };
        let otherwise = c.otherwise.filter(|_| pred.is_some());
        out.push(Stmt::new(
            StmtKind::Micro(MicroOp {
                kind,
                inst,
                axes: vec![(axis, count as u32)],
                turns: false,
                dest,
                sources: vec![source],
                width: width as u32,
                apart: apart as u32,
                pred,
                otherwise,
                counter: None,
                arrives: None,
                evict: None,
            }),
            span,
        ));
    }

    /// The order of the slots in which more of them are neighbours in memory than follow each other.
    fn apart(&self, c: &RegisterCopy<'_>, dim: usize, [own, most]: [i64; 2]) -> Option<InRuns> {
        let size: i64 = c.fragment.shape().iter().product();
        let full = c.fragment.threads() * c.fragment.slots() == size * c.fragment.replicas();
        let dtype = self.dtype(c.registers);
        let bytes = dtype.lanes == 1 && dtype.scalar.bits().is_multiple_of(8);
        let runs = (own < most && full && bytes).then(|| c.fragment.in_runs(dim));
        runs.flatten().filter(|runs| runs.even > own)
    }

    /// The points at `slot = axis · width`, simplified with the axis's range.
    fn points_in(
        &mut self,
        fragment: &Fragment,
        slot: &Expr,
        axis: tilewright_ir::Var,
        count: i64,
    ) -> Option<super::points::Points> {
        let mut points = self.points(fragment, slot)?;
        let zero = Expr::i32(0);
        let (tid, threads) = (self.tid.as_var(), self.threads);
        let mut simplify = |e: &Expr| {
            self.analyzer.scoped(|a| {
                if let Some(tid) = tid {
                    a.bind_range(tid, &zero, &Expr::int(threads.into(), DType::I32));
                }
                a.bind_range(axis, &zero, &Expr::int(count.into(), DType::I32));
                a.simplify(e)
            })
        };
        for e in &mut points.index {
            *e = simplify(e);
        }
        points.guard = points.guard.map(|g| simplify(&g)).filter(|g| !g.is_int(1));
        points.copy = points.copy.map(|c| simplify(&c));
        Some(points)
    }

    /// Elements that one 16-byte access may take along the last dimension of a region: rows
    /// and corners must be aligned to it, and nothing may end inside it.
    pub(super) fn memory_width(&mut self, region: &Region, inside: &[(usize, Expr)]) -> i64 {
        let data = &self.func.buffers[region.buffer];
        if data.strides.is_some() || !inside.is_empty() {
            return 1;
        }
        let (Some(last), Some(extent)) = (region.dims.last(), data.shape.last()) else {
            return 1;
        };
        if last.extent.is_int(1) {
            return 1;
        }
        let dtype = data.dtype;
        let mut width = i64::from(dtype.widest_access());
        // The operand of a matrix instruction, of six bits an element, is 24 bytes of shared memory.
        if data.scope == Scope::Shared && dtype.bits() == 6 {
            width *= 2;
        }
        let (start, row, extent) = (last.start.clone(), extent.clone(), last.extent.clone());
        if data.scope == Scope::Shared {
            width = width.min(self.shared_width(region.buffer));
        }
        while width > 1 {
            let w = width as i128;
            let aligned = dtype.fills_bytes(width as u32)
                && self.analyzer.divides(w, &start).is_yes()
                && self.analyzer.divides(w, &row).is_yes()
                && self.analyzer.divides(w, &extent).is_yes();
            if aligned {
                break;
            }
            width /= 2;
        }
        width
    }

    fn global_to_shared(&mut self, c: &CopyOp, span: Span, out: &mut Block) {
        let Some(shape) = copy_shape(&c.dst) else {
            return self.copy_points(&c.src, &c.dst, span, out);
        };
        let widest = self
            .memory_width(&c.src, &[])
            .min(self.memory_width(&c.dst, &[]));
        // Elements that share a byte are copied together.
        let dtype = self.func.buffers[c.dst.buffer].dtype;
        let byte = (0..3).map(|n| 1 << n).find(|n| dtype.fills_bytes(*n));
        let byte = byte.map_or(1, i64::from);
        if widest < byte {
            return self.copy_points(&c.src, &c.dst, span, out);
        }
        let mut width = narrowed(&shape, self.threads, widest).max(byte);
        let mut exchanged = None;
        if let Some(lane) = self.wave_copy_width(c, width) {
            width = lane;
            exchanged = self.exchange(c, &shape, width);
        }
        let dealt = || Fragment::partition(&shape, self.threads, width).ok();
        let Some(layout) = exchanged.or_else(dealt) else {
            return self.give_up(span, "a tile this large cannot be divided over the threads");
        };
        let count = layout.slots() / width;
        let (axis, n) = self.var("c", VarKind::Loop);
        let slot = if width == 1 { n } else { n * width };
        let Some(points) = self.points_in(&layout, &slot, axis, count) else {
            return self.give_up(span, "the layout of this copy has no closed form");
        };
        // Where a thread has nothing to copy it must not even fill in a safe value, so there the
        // instruction stands under a condition of its own.
        let guard = points.guard.clone();
        let axes = match guard {
            None => vec![(axis, count as u32)],
            Some(_) => Vec::new(),
        };
        let copy = Stmt::new(
            StmtKind::Micro(MicroOp {
                kind: MicroKind::G2s,
                inst: Inst::Load,
                axes,
                turns: false,
                dest: Access {
                    at: element_at(&c.dst, &points.index),
                    region: c.dst.clone(),
                    slot: None,
                },
                sources: vec![Access {
                    at: element_at(&c.src, &points.index),
                    region: c.src.clone(),
                    slot: None,
                }],
                width: width as u32,
                apart: 1,
                pred: None,
                otherwise: None,
                counter: None,
                arrives: None,
                evict: c.hints.eviction,
            }),
            span,
        );
        if guard.is_none() {
            return out.push(copy);
        }
        let mut body = Vec::new();
        guarded(guard, vec![copy], span, &mut body);
        out.push(counted(axis, count, unroll(), body, span));
    }

    /// Point by point, converting.
    pub(super) fn copy_points(&mut self, src: &Region, dst: &Region, span: Span, out: &mut Block) {
        let run = self.run_of(&[src, dst]);
        self.region_loop(src, dst, run, span, out, |lower, from, to| {
            let value = lower.load(src.buffer, from);
            vec![store(dst.buffer, to, value, lower.dtype(dst.buffer), span)]
        });
    }

    /// How many elements in a row a thread may take for wide accesses of all these regions.
    pub(super) fn run_of(&self, regions: &[&Region]) -> i64 {
        let mut touched = Touched::default();
        for region in regions {
            touched.add(&self.func.buffers[region.buffer]);
        }
        let shape = regions.iter().find_map(|r| copy_shape(r));
        shape.map_or(1, |s| narrowed(&s, self.threads, touched.vector(&s)))
    }

    /// A loop over paired regions; `body` gets the elements of both at a point. Without a
    /// fragment, each thread takes runs of this length.
    pub(super) fn region_loop(
        &mut self,
        src: &Region,
        dst: &Region,
        run: i64,
        span: Span,
        out: &mut Block,
        body: impl FnOnce(&mut Self, Vec<Expr>, Vec<Expr>) -> Block,
    ) {
        let shape = copy_shape(dst).or_else(|| copy_shape(src));
        let Some(shape) = shape else {
            return self.dynamic_region_loop(src, dst, span, out, body);
        };
        let layout = self.layout_of_regions(&[dst, src], &shape, run);
        let Some(layout) = layout else {
            return self.give_up(span, "no thread assignment for this copy");
        };
        let mut vars = Vec::new();
        let mut index = Vec::new();
        for _ in &shape {
            let (var, e) = self.var("i", VarKind::Loop);
            vars.push(var);
            index.push(e);
        }
        let element = |region: &Region| element_at(region, &index);
        let (from, to) = (element(src), element(dst));
        let block = body(self, from, to);
        self.point_loop(&layout, &vars, block, span, out);
    }

    /// The layout of a loop over regions: the first fragment's, else dealt out in turn.
    fn layout_of_regions(
        &mut self,
        regions: &[&Region],
        shape: &[i64],
        run: i64,
    ) -> Option<Arc<Fragment>> {
        for region in regions {
            if self.scope(region.buffer) != Scope::Fragment {
                continue;
            }
            let fragment = self.fragment(region.buffer)?;
            let extents = self.func.buffers[region.buffer].shape.clone();
            let whole = region.is_whole(&self.func.buffers[region.buffer]);
            if whole && fragment.shape() == shape {
                return Some(fragment);
            }
            let map = region_map(region, shape, &extents)?;
            let copies = tilewright_layout::Layout::identity(&[fragment.replicas()]).ok()?;
            let full = tilewright_layout::Layout::concat(&map, &copies).ok()?;
            return Fragment::new(full.then(fragment.layout()).ok()?)
                .ok()
                .map(Arc::new);
        }
        Fragment::partition(shape, self.threads, run)
            .ok()
            .map(Arc::new)
    }

    fn dynamic_region_loop(
        &mut self,
        src: &Region,
        dst: &Region,
        span: Span,
        out: &mut Block,
        body: impl FnOnce(&mut Self, Vec<Expr>, Vec<Expr>) -> Block,
    ) {
        let mut axes = Vec::new();
        let mut index = Vec::new();
        for extent in dst.non_unit_extents() {
            let extent = extent.clone();
            let (var, e) = self.var("i", VarKind::Loop);
            axes.push(tilewright_ir::Axis::upto(var, extent.cast_to(DType::I32)));
            index.push(e);
        }
        let (from, to) = (element_at(src, &index), element_at(dst, &index));
        let block = body(self, from, to);
        let l = tilewright_ir::Loop {
            kind: tilewright_ir::LoopKind::Parallel {
                coalesced_width: None,
                layout: None,
            },
            axes,
            body: block,
        };
        self.parallel(l, span, out);
    }
}

/// The element of a region at a point over its non-unit dimensions.
pub(super) fn element_at(region: &Region, index: &[Expr]) -> Vec<Expr> {
    let mut next = index.iter();
    let dims = region.dims.iter().map(|dim| {
        if dim.extent.is_int(1) {
            return dim.start.clone();
        }
        let inner = next.next().cloned().unwrap_or_else(|| Expr::i32(0));
        let inner = inner.cast_to(dim.start.dtype());
        if dim.start.is_int(0) {
            inner
        } else {
            dim.start.clone() + inner
        }
    });
    dims.collect()
}
