//! Templates of tile statements: loads, parallel loops, reductions, scans, transposes, views,
//! atomics.

use super::values::{Place, Value};
use super::{Gen, identity, whole};
use crate::program::*;
use crate::types::Type;

impl Gen {
    /// A tile that is copied from a new tensor, past its ends too.
    pub(super) fn load(&mut self, out: &mut Vec<Stmt>) {
        let rank = self.rng.weighted(&[(3, 1), (7, 2), (1, 3)]);
        let shape: Vec<Dim> = (0..rank)
            .map(|_| match rank {
                3 => {
                    let value = self.rng.int(1, 8);
                    self.size(value)
                }
                _ => self.tile_size(),
            })
            .collect();
        let ty = self.data_type();
        if let Some(scope) = self.tile_scope(&shape, ty) {
            self.load_into(out, scope, ty, shape, None);
        }
    }

    /// The same for a tile of a given shape, and with values in a given range.
    pub(super) fn load_into(
        &mut self,
        out: &mut Vec<Stmt>,
        scope: Scope,
        ty: Type,
        shape: Vec<Dim>,
        values: Option<(i64, i64)>,
    ) -> Buf {
        let start = match values {
            Some(v) => v,
            None => self.start_range(ty),
        };
        let (src, src_start) = self.source(ty, &shape, start);
        // Copies convert.
        let to = match ty {
            _ if values.is_some() || self.rng.chance(80) => ty,
            Type::I8 | Type::U8 | Type::Bool => self.rng.pick(&[Type::I32, Type::F16, Type::F32]),
            Type::F16 | Type::BF16 | Type::E4M3 | Type::E5M2 => Type::F32,
            _ => ty,
        };
        // The wider elements must fit, too.
        let (in_shared, in_registers) = self.room(&shape, to);
        let to = match scope {
            Scope::Shared if !in_shared => ty,
            Scope::Fragment if !in_registers => ty,
            _ => to,
        };
        let holds = (start.0.min(0), start.1.max(0));
        let range = match values {
            Some(_) => holds,
            None => self.buffer_range(to, holds),
        };
        let dst = self.allocate(out, scope, to, shape.clone(), range);
        if self.rng.chance(70) || values.is_some() {
            let same = self.data(src).shape == shape
                && src_start.iter().all(|e| matches!(e, Expr::Lit(0, _)));
            let style = match same {
                true if self.rng.chance(70) => Style::Whole,
                _ if self.sliceable(src, &src_start, &shape) && self.rng.chance(40) => Style::Slice,
                _ => Style::Start,
            };
            let tile = Tile {
                buf: src,
                start: match style {
                    Style::Whole => whole(&self.p, src).start,
                    _ => src_start,
                },
                extent: shape.iter().map(|d| Some(*d)).collect(),
                style,
            };
            out.push(Stmt::Copy(tile, whole(&self.p, dst)));
        } else {
            let axes = self.axes(&shape);
            let index = src_start
                .into_iter()
                .zip(&axes)
                .map(|(s, (v, _))| Expr::binary(BinOp::Add, s, Expr::Var(*v)))
                .collect();
            let value = Value::new(Expr::Load(src, index), ty, holds.0, holds.1);
            let value = self.fitted(value, to, range);
            let store = Stmt::Store(dst, identity(&axes), value);
            out.push(Stmt::Parallel(axes, vec![store]));
        }
        self.ready.push(dst);
        dst
    }

    /// Whether slices may be written: constant ones must lie inside.
    pub(super) fn sliceable(&self, buf: Buf, start: &[Expr], shape: &[Dim]) -> bool {
        let dims = self.data(buf).shape.iter();
        let mut each = dims.zip(start).zip(shape);
        each.all(|((dim, start), tile)| match start {
            Expr::Lit(at, _) => at + self.value_of(*tile) <= self.value_of(*dim),
            _ => true,
        })
    }

    /// A tensor for tiles of this shape, and where the present one starts.
    fn source(&mut self, ty: Type, shape: &[Dim], values: (i64, i64)) -> (Buf, Vec<Expr>) {
        let mut starts = Vec::new();
        let mut dims = Vec::new();
        for dim in shape {
            let tile = self.value_of(*dim);
            let place = Place {
                axes: &[],
                written: None,
                thread: false,
            };
            let (start, far) = match self.rng.below(8) {
                0 | 1 => (Expr::int(0), 0),
                2 => {
                    let by = self.rng.int(0, 5);
                    (Expr::int(by), by)
                }
                _ => match self.any_index(&place) {
                    Some(i) => {
                        let step = match self.rng.below(3) {
                            0 => tile,
                            1 => 8,
                            _ => self.rng.int(1, tile),
                        };
                        let mut e = Expr::binary(BinOp::Mul, Expr::Var(i.var), Expr::int(step));
                        if i.high >= 1 && step > 3 && self.rng.chance(25) {
                            e = Expr::binary(BinOp::Sub, e, Expr::int(self.rng.int(1, 3)));
                        }
                        (e, step * i.high)
                    }
                    None => (Expr::int(0), 0),
                },
            };
            let constant = matches!(start, Expr::Lit(..));
            if constant && far == 0 && self.rng.chance(60) {
                dims.push(*dim);
            } else {
                let least = if constant { far + 1 } else { 1 };
                let size = (tile + far + self.rng.int(-6, 9)).max(least).min(600);
                let size = self.size(size);
                self.p.sizes[size.0].dynamic = self.rng.chance(12);
                dims.push(size);
            }
            starts.push(start);
        }
        (self.tensor(ty, dims, values), starts)
    }

    pub(super) fn axes(&mut self, shape: &[Dim]) -> Vec<(Var, Dim)> {
        shape.iter().map(|d| (self.loop_var(), *d)).collect()
    }

    /// A new tile of this shape, without contents.
    pub(super) fn new_tile(
        &mut self,
        out: &mut Vec<Stmt>,
        ty: Type,
        shape: &[Dim],
        range: (i64, i64),
    ) -> Option<Buf> {
        let scope = self.tile_scope(shape, ty)?;
        Some(self.allocate(out, scope, ty, shape.to_vec(), range))
    }

    /// A parallel loop that computes one tile from others.
    pub(super) fn elementwise(&mut self, out: &mut Vec<Stmt>) {
        let existing = self.pick_ready(|_| true);
        let (dst, fresh) = match existing {
            Some(b) if self.rng.chance(45) => (b, false),
            _ => {
                let shape = match existing {
                    Some(b) if self.rng.chance(80) => self.data(b).shape.clone(),
                    _ => {
                        let first = self.tile_size();
                        match self.rng.chance(50) {
                            true => vec![first],
                            false => vec![first, self.tile_size()],
                        }
                    }
                };
                let ty = self.data_type();
                let range = self.buffer_range(ty, (0, 1));
                let Some(b) = self.new_tile(out, ty, &shape, range) else {
                    return;
                };
                (b, true)
            }
        };
        let data = self.data(dst).clone();
        let axes = self.axes(&data.shape);
        let mut body = Vec::new();
        let place = Place {
            axes: &axes,
            written: Some(dst),
            thread: false,
        };
        if fresh {
            // Until it is written nobody reads it, the point itself included.
            let depth = self.rng.int(0, 3) as u32;
            let value = self.value(&place, depth);
            let value = self.fitted(value, data.ty, data.range);
            body.push(Stmt::Store(dst, identity(&axes), value));
            self.ready.push(dst);
        }
        if !fresh || self.rng.chance(20) {
            let depth = self.rng.int(1, 3) as u32;
            let own = Value::new(
                Expr::Load(dst, identity(&axes)),
                data.ty,
                data.range.0,
                data.range.1,
            );
            let other = self.value(&place, depth);
            let value = match self.rng.chance(60) {
                true => self.binary(BinOp::Add, own, other),
                false => other,
            };
            let value = self.fitted(value, data.ty, data.range);
            let store = Stmt::Store(dst, identity(&axes), value);
            match self.rng.below(6) {
                0 | 1 => {
                    let cond = self.condition(&place, 1);
                    let otherwise = match self.rng.chance(30) {
                        true => {
                            let value = self.value(&place, 1);
                            let value = self.fitted(value, data.ty, data.range);
                            vec![Stmt::Store(dst, identity(&axes), value)]
                        }
                        false => Vec::new(),
                    };
                    body.push(Stmt::If(cond.e, vec![store], otherwise));
                }
                2 => {
                    let (kind, count) = (
                        self.rng.pick(&[LoopKind::Serial, LoopKind::Unroll]),
                        self.rng.int(1, 3),
                    );
                    let var = self.loop_var();
                    body.push(Stmt::For {
                        kind,
                        var,
                        count: Expr::int(count),
                        body: vec![store],
                    });
                }
                _ => body.push(store),
            }
        }
        out.push(Stmt::Parallel(axes, body));
    }

    /// A fold along a dimension, into a new tile.
    pub(super) fn reduce(&mut self, out: &mut Vec<Stmt>) {
        if let Some(src) = self.pick_ready(|b| b.ty != Type::Bool && b.shape.len() <= 3) {
            self.reduce_of(out, src);
        }
    }

    pub(super) fn reduce_of(&mut self, out: &mut Vec<Stmt>, src: Buf) {
        let data = self.data(src).clone();
        let dim = self.rng.below(data.shape.len());
        let count = self.value_of(data.shape[dim]);
        let mut folds = Fold::ALL.to_vec();
        match data.ty.is_int() {
            true => folds.extend([Fold::BitAnd, Fold::BitOr, Fold::BitXor]),
            false => folds.truncate(5),
        }
        folds.extend([Fold::Sum, Fold::Max, Fold::Min]);
        let mut fold = self.rng.pick(&folds);
        let mut ty = match data.ty {
            Type::F16 | Type::BF16 | Type::E4M3 | Type::E5M2 if self.rng.chance(60) => Type::F32,
            Type::I8 | Type::U8 | Type::I16 if self.rng.chance(60) => Type::I32,
            ty => ty,
        };
        let clear = self.rng.chance(75) || fold == Fold::AbsSum;
        let reach = data.range.0.saturating_abs().max(data.range.1);
        let most = i128::from(reach) * i128::from(count + 1);
        if ty.is_float()
            && matches!(fold, Fold::Sum | Fold::AbsSum)
            && most > i128::from(ty.range().1)
        {
            ty = ty.promote(Type::F32);
            if most > i128::from(ty.range().1) {
                fold = Fold::Max;
            }
        }
        let clear = clear || fold == Fold::AbsSum;
        let range = match fold {
            _ if !ty.is_float() => ty.range(),
            Fold::Sum | Fold::AbsSum => {
                let most = reach * (count + 1);
                (-most, most)
            }
            _ => (-reach, reach),
        };
        let mut shape = data.shape.clone();
        if shape.len() == 1 || self.rng.chance(25) {
            shape[dim] = self.size(1);
        } else {
            shape.remove(dim);
        }
        let Some(dst) = self.new_tile(out, ty, &shape, range) else {
            return;
        };
        if !clear {
            let start = self.rng.int(0, reach.min(9));
            match self.rng.chance(50) {
                true => out.push(Stmt::Fill(dst, start)),
                false => {
                    let axes = self.axes(&shape);
                    let place = Place {
                        axes: &axes,
                        written: Some(dst),
                        thread: false,
                    };
                    let value = match self.any_index(&place) {
                        Some(i) => Value::new(Expr::Var(i.var), Type::I32, i.low, i.high),
                        None => Value::lit(start, Type::I32),
                    };
                    let range = (-reach.min(1000), reach.min(1000));
                    let value = match ty {
                        Type::U8 => self.fitted(value, ty, (0, range.1)),
                        _ => self.fitted(value, ty, range),
                    };
                    let store = Stmt::Store(dst, identity(&axes), value);
                    out.push(Stmt::Parallel(axes, vec![store]));
                }
            }
        }
        out.push(Stmt::Reduce {
            fold,
            src,
            dst,
            dim,
            clear,
        });
        self.ready.push(dst);
    }

    /// Running sums or maxima, in place of a copy or into a new tile.
    pub(super) fn scan(&mut self, out: &mut Vec<Stmt>) {
        let Some(src) = self.pick_ready(|b| b.ty != Type::Bool && b.shape.len() <= 2) else {
            return;
        };
        let data = self.data(src).clone();
        let dim = self.rng.below(data.shape.len());
        let count = self.value_of(data.shape[dim]);
        let reach = data.range.0.saturating_abs().max(data.range.1);
        let most = i128::from(reach) * i128::from(count);
        let max = self.rng.chance(30) || data.ty.is_float() && most > i128::from(data.ty.range().1);
        let range = match max {
            _ if !data.ty.is_float() => data.ty.range(),
            true => data.range,
            false => (-(most as i64), most as i64),
        };
        let reverse = self.rng.chance(40);
        let Some(dst) = self.new_tile(out, data.ty, &data.shape, range) else {
            return;
        };
        let in_place = self.rng.chance(50);
        if in_place {
            out.push(Stmt::Copy(whole(&self.p, src), whole(&self.p, dst)));
        }
        out.push(Stmt::Scan {
            max,
            src: if in_place { dst } else { src },
            dst: (!in_place).then_some(dst),
            dim,
            reverse,
        });
        self.ready.push(dst);
    }

    pub(super) fn transpose(&mut self, out: &mut Vec<Stmt>) {
        let Some(src) = self.pick_ready(|b| b.shape.len() == 2 && b.scope == Scope::Shared) else {
            return;
        };
        let data = self.data(src).clone();
        let shape = vec![data.shape[1], data.shape[0]];
        if self.room(&shape, data.ty).0 {
            let dst = self.allocate(out, Scope::Shared, data.ty, shape, data.range);
            out.push(Stmt::Transpose(src, dst));
            self.ready.push(dst);
        }
    }

    /// Between tiles on the chip: copies, and a fill.
    pub(super) fn move_tile(&mut self, out: &mut Vec<Stmt>) {
        let Some(src) = self.pick_ready(|_| true) else {
            return;
        };
        let data = self.data(src).clone();
        if self.rng.chance(25) {
            let value = self.rng.int(data.range.0.max(-9), data.range.1.min(9));
            out.push(Stmt::Fill(src, value));
            return;
        }
        if let Some(dst) = self.new_tile(out, data.ty, &data.shape, data.range) {
            out.push(Stmt::Copy(whole(&self.p, src), whole(&self.p, dst)));
            self.ready.push(dst);
        }
    }

    /// Another name for a tile.
    pub(super) fn view(&mut self, out: &mut Vec<Stmt>) {
        let Some(src) = self.pick_ready(|b| b.view_of.is_none()) else {
            return;
        };
        let data = self.data(src).clone();
        let count: i64 = data.shape.iter().map(|d| self.value_of(*d)).product();
        let divisors: Vec<i64> = (1..=count.min(64)).filter(|n| count % n == 0).collect();
        let shape = match data.shape.len() {
            1 => {
                let rows = self.rng.pick(&divisors);
                vec![self.size(rows), self.size(count / rows)]
            }
            _ => vec![self.size(count)],
        };
        let view = self.buffer(data.scope, data.ty, shape, data.range);
        self.p.buffers[view.0].view_of = Some(src);
        out.push(Stmt::View(view));
        self.ready.push(view);
    }

    /// Updates that meet at one element.
    pub(super) fn atomics(&mut self, out: &mut Vec<Stmt>) {
        let op = self
            .rng
            .pick(&[AtomicOp::Add, AtomicOp::Add, AtomicOp::Max, AtomicOp::Min]);
        let ty = self.rng.weighted(&[
            (6, Type::I32),
            (3, Type::F32),
            (1, Type::I64),
            (1, Type::F16),
        ]);
        let blocks: i64 = self.p.grid.iter().map(|d| self.value_of(*d)).product();
        // The tile form, from a tile that is there.
        if self.rng.chance(30)
            && let Some(src) = self.pick_ready(|b| b.ty == ty && b.shape.len() <= 2)
        {
            let data = self.data(src).clone();
            let reach = data.range.0.saturating_abs().max(data.range.1).min(1 << 40);
            let most = reach.saturating_mul(blocks * self.repeats);
            if !ty.is_float() || op != AtomicOp::Add || most < ty.range().1 - 100 {
                let place = Place {
                    axes: &[],
                    written: None,
                    thread: false,
                };
                let mut dims = data.shape.clone();
                let mut start = vec![Expr::int(0); dims.len()];
                if let Some(i) = self.any_index(&place)
                    && self.rng.chance(50)
                {
                    start[0] = Expr::binary(BinOp::Mul, Expr::Var(i.var), Expr::int(2));
                    let size = self.value_of(dims[0]) + self.rng.int(-2, 6);
                    dims[0] = self.size(size.max(1));
                }
                let dst = self.tensor(ty, dims, (-5, 5));
                let tile = Tile {
                    buf: dst,
                    start,
                    extent: data.shape.iter().map(|d| Some(*d)).collect(),
                    style: Style::Start,
                };
                out.push(Stmt::AtomicTile(op, tile, whole(&self.p, src)));
                return;
            }
        }
        let shape: Vec<Dim> = match self.pick_ready(|b| b.shape.len() <= 2) {
            Some(b) if self.rng.chance(70) => self.data(b).shape.clone(),
            _ => vec![self.tile_size()],
        };
        let axes = self.axes(&shape);
        let points: i64 = shape.iter().map(|d| self.value_of(*d)).product();
        let count = self.rng.pick(&[1, 2, 3, 6, 17, 64]);
        let dims = vec![self.size(count)];
        let shared = self.rng.chance(40) && self.room(&dims, ty).0;
        let reach = match ty.is_float() {
            true => (ty.range().1 - 10) / (points * blocks * self.repeats.max(1)).max(1),
            false => 1000,
        };
        let reach = match op {
            AtomicOp::Add => reach.min(9),
            _ => 9,
        };
        let target = match shared {
            true => {
                let all = ty.range();
                let target = self.allocate(out, Scope::Shared, ty, dims.clone(), all);
                out.push(Stmt::Fill(target, self.rng.int(-5, 5)));
                target
            }
            false => self.tensor(ty, dims.clone(), (-5, 5)),
        };
        let place = Place {
            axes: &axes,
            written: Some(target),
            thread: false,
        };
        let value = self.value(&place, 2);
        let value = self.bounded(value, -reach.max(0), reach.max(0));
        let value = self.fitted(value, ty, (-reach.max(0), reach.max(0)));
        let at = self.rng.pick(&axes).0;
        let mut index = Expr::Var(at);
        if self.rng.chance(50) {
            index = Expr::binary(BinOp::Add, index, Expr::int(self.rng.int(1, 5)));
        }
        let index = Expr::binary(BinOp::Mod, index, Expr::Size(dims[0]));
        let update = Stmt::Atomic(op, target, vec![index], value);
        let update = match self.rng.chance(20) {
            true => Stmt::If(self.condition(&place, 1).e, vec![update], Vec::new()),
            false => update,
        };
        out.push(Stmt::Parallel(axes, vec![update]));
        if shared {
            self.ready.push(target);
        }
    }
}
