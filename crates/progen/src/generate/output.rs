//! Results: each block writes its own part of a tensor.

use super::values::{Place, Value};
use super::{Gen, identity, whole};
use crate::program::*;
use crate::types::Type;

impl Gen {
    /// A tensor with the grid's axes in front of a shape, and the block's place in it.
    pub(super) fn output_tensor(&mut self, ty: Type, shape: &[Dim]) -> (Buf, Vec<Expr>) {
        let mut dims: Vec<Dim> = self.p.grid.clone();
        dims.extend(shape);
        let index = (0..self.p.grid.len())
            .map(|axis| Expr::Var(Var::Block(axis)))
            .collect();
        let tensor = self.tensor(ty, dims, (0, 1));
        self.p.buffers[tensor.0].range = ty.range();
        (tensor, index)
    }

    /// What the program has at its end.
    pub(super) fn write_out(&mut self, out: &mut Vec<Stmt>) {
        let list: Vec<Buf> = self.ready.iter().copied().rev().collect();
        let mut left = 5;
        for buf in list {
            let data = self.data(buf).clone();
            if left > 0
                && matches!(data.scope, Scope::Shared | Scope::Fragment)
                && self.rng.chance(75)
            {
                left -= 1;
                self.write_tile(out, buf, &data.shape);
            }
        }
    }

    /// One of the tiles that are there.
    pub(super) fn write_some(&mut self, out: &mut Vec<Stmt>) {
        let recent = self.ready.len().saturating_sub(3);
        let list: Vec<Buf> = self.ready[recent..].to_vec();
        for buf in list {
            let data = self.data(buf).clone();
            if matches!(data.scope, Scope::Shared | Scope::Fragment) {
                self.write_tile(out, buf, &data.shape);
                return;
            }
        }
    }

    pub(super) fn write_tile(&mut self, out: &mut Vec<Stmt>, buf: Buf, shape: &[Dim]) {
        let data = self.data(buf).clone();
        match self.rng.below(10) {
            // Side by side along the first dimension, the last one cut off.
            0..=2 if self.p.grid.len() == 1 => {
                let blocks = self.value_of(self.p.grid[0]);
                let rows = self.value_of(shape[0]);
                let length = (rows * blocks - self.rng.pick(&[0, 0, 1, 3])).max(rows);
                let mut dims = shape.to_vec();
                dims[0] = self.size(length);
                self.p.sizes[dims[0].0].dynamic = self.rng.chance(10);
                let tensor = self.tensor(data.ty, dims, (0, 1));
                self.p.buffers[tensor.0].range = data.ty.range();
                let mut start = vec![Expr::int(0); shape.len()];
                start[0] = Expr::binary(BinOp::Mul, Expr::Var(Var::Block(0)), Expr::Size(shape[0]));
                let tile = Tile {
                    buf: tensor,
                    start,
                    extent: shape.iter().map(|d| Some(*d)).collect(),
                    style: self.rng.pick(&[Style::Start, Style::Slice]),
                };
                out.push(Stmt::Copy(whole(&self.p, buf), tile));
            }
            3..=6 => {
                let ty = match data.ty {
                    Type::F16 | Type::BF16 if self.rng.chance(40) => Type::F32,
                    ty => ty,
                };
                let (tensor, mut start) = self.output_tensor(ty, shape);
                let mut extent: Vec<Option<Dim>> = start.iter().map(|_| None).collect();
                start.extend(shape.iter().map(|_| Expr::int(0)));
                extent.extend(shape.iter().map(|d| Some(*d)));
                let tile = Tile {
                    buf: tensor,
                    start,
                    extent,
                    style: self.rng.pick(&[Style::Start, Style::Slice]),
                };
                out.push(Stmt::Copy(whole(&self.p, buf), tile));
            }
            _ => {
                let (tensor, mut index) = self.output_tensor(data.ty, shape);
                let axes = self.axes(shape);
                index.extend(identity(&axes));
                let own = Value::new(
                    Expr::Load(buf, identity(&axes)),
                    data.ty,
                    data.range.0,
                    data.range.1,
                );
                let value = match self.rng.chance(30) && !self.in_group {
                    true => {
                        let place = Place {
                            axes: &axes,
                            written: Some(tensor),
                            thread: false,
                        };
                        let other = self.value(&place, 1);
                        self.binary(BinOp::Add, own, other)
                    }
                    false => own,
                };
                let value = self.fitted(value, data.ty, data.ty.range());
                let store = Stmt::Store(tensor, index, value);
                out.push(Stmt::Parallel(axes, vec![store]));
            }
        }
    }

    /// A tile goes out to the block's part of a tensor and comes back, by other threads or turned
    /// round: threads hand data to each other through global memory.
    pub(super) fn exchange(&mut self, out: &mut Vec<Stmt>) {
        let tiles = self.ready.iter().copied();
        let tiles: Vec<Buf> = tiles
            .filter(|b| matches!(self.data(*b).scope, Scope::Shared | Scope::Fragment))
            .collect();
        if tiles.is_empty() || self.in_group {
            return self.load(out);
        }
        let src = self.rng.pick(&tiles);
        let (ty, shape) = (self.data(src).ty, self.data(src).shape.clone());
        let range = self.data(src).range;
        let range = (range.0.min(0), range.1.max(1));
        let (tensor, block) = self.output_tensor(ty, &shape);
        self.p.buffers[tensor.0].range = range;
        let mut start = block.clone();
        let mut extent: Vec<Option<Dim>> = start.iter().map(|_| None).collect();
        start.extend(shape.iter().map(|_| Expr::int(0)));
        extent.extend(shape.iter().map(|d| Some(*d)));
        let style = self.rng.pick(&[Style::Start, Style::Slice]);
        let part = Tile {
            buf: tensor,
            start,
            extent,
            style,
        };
        let at = |index: Vec<Expr>| block.iter().cloned().chain(index).collect::<Vec<Expr>>();
        if self.rng.chance(50) {
            out.push(Stmt::Copy(whole(&self.p, src), part.clone()));
        } else {
            let axes = self.axes(&shape);
            let value = Expr::Load(src, identity(&axes));
            let store = Stmt::Store(tensor, at(identity(&axes)), value);
            out.push(Stmt::Parallel(axes, vec![store]));
        }
        let Some(scope) = self.tile_scope(&shape, ty) else {
            return;
        };
        let dst = self.allocate(out, scope, ty, shape.clone(), range);
        if self.rng.chance(40) {
            out.push(Stmt::Copy(part, whole(&self.p, dst)));
        } else {
            let axes = self.axes(&shape);
            let turned = self.rng.below(shape.len());
            let mut index = identity(&axes);
            let last = Expr::binary(BinOp::Sub, Expr::Size(shape[turned]), Expr::int(1));
            index[turned] = Expr::binary(BinOp::Sub, last, index[turned].clone());
            let store = Stmt::Store(dst, identity(&axes), Expr::Load(tensor, at(index)));
            out.push(Stmt::Parallel(axes, vec![store]));
        }
        self.ready.push(dst);
    }
}
