//! Tile statements, element by element.

use super::{Invalid, Lane, Machine, Outcome, convert, exact, finish};
use crate::program::*;

/// A tile statement is the block's work: no thread and no point does it.
const ALL: Lane = Lane {
    thread: None,
    who: 0,
};

/// Every index below the extents, the last one fastest.
fn points(extents: &[i64]) -> impl Iterator<Item = Vec<i64>> + '_ {
    let count: i64 = extents.iter().product();
    (0..count).map(|n| {
        let mut rest = n;
        let mut at = vec![0; extents.len()];
        for (i, extent) in extents.iter().enumerate().rev() {
            at[i] = rest % extent;
            rest /= extent;
        }
        at
    })
}

impl Machine<'_> {
    pub(super) fn tile_statement(&mut self, stmt: &Stmt) -> Outcome<()> {
        match stmt {
            Stmt::Copy(src, dst) => {
                let (from, to) = (self.ty(src.buf), self.ty(dst.buf));
                for (at, into) in self.pairs(src, dst)? {
                    let value = convert(self.get(src.buf, &at)?, from, to)?;
                    self.put(dst.buf, &into, value)?;
                }
                Ok(())
            }
            Stmt::AtomicTile(op, dst, src) => {
                let (from, to) = (self.ty(src.buf), self.ty(dst.buf));
                for (at, into) in self.pairs(src, dst)? {
                    let value = convert(self.get(src.buf, &at)?, from, to)?;
                    self.memory
                        .atomic(self.program, *op, dst.buf, &into, value, 0)?;
                }
                Ok(())
            }
            Stmt::Fill(buf, value) => {
                let ty = self.ty(*buf);
                let value = match ty.is_float() {
                    true => exact(i128::from(*value), ty)?,
                    false => convert(*value, crate::types::Type::I32, ty)?,
                };
                for at in points(&self.program.shape(*buf)) {
                    self.put(*buf, &at, value)?;
                }
                Ok(())
            }
            Stmt::Reduce {
                fold,
                src,
                dst,
                dim,
                clear,
            } => self.reduce(*fold, *src, *dst, *dim, *clear),
            Stmt::Scan {
                max,
                src,
                dst,
                dim,
                reverse,
            } => self.scan(*max, *src, dst.unwrap_or(*src), *dim, *reverse),
            Stmt::Transpose(src, dst) => {
                let (from, to) = (self.ty(*src), self.ty(*dst));
                for at in points(&self.program.shape(*src)) {
                    let value = convert(self.get(*src, &at)?, from, to)?;
                    self.put(*dst, &[at[1], at[0]], value)?;
                }
                Ok(())
            }
            Stmt::Gemm(g) => self.gemm(g),
            _ => Err(Invalid::Misplaced),
        }
    }

    fn get(&mut self, buf: Buf, at: &[i64]) -> Outcome<i64> {
        self.step(1)?;
        self.memory.read(self.program, buf, at, None, 0)
    }

    fn put(&mut self, buf: Buf, at: &[i64], value: i64) -> Outcome<()> {
        self.memory.write(self.program, buf, at, value, None, 0)
    }

    /// The elements of two tiles that belong together.
    fn pairs(&mut self, src: &Tile, dst: &Tile) -> Outcome<Vec<(Vec<i64>, Vec<i64>)>> {
        let extents = |t: &Tile| -> Vec<i64> {
            let dims = t.extent.iter().flatten();
            dims.map(|d| self.program.size(*d)).collect()
        };
        let (extents, others) = (extents(src), extents(dst));
        if extents != others {
            return Err(Invalid::Misplaced);
        }
        let (first, into) = (self.index(&src.start, ALL)?, self.index(&dst.start, ALL)?);
        self.step(extents.iter().product::<i64>() as u64)?;
        Ok(points(&extents)
            .map(|p| (shifted(&first, src, &p), shifted(&into, dst, &p)))
            .collect())
    }

    fn reduce(&mut self, fold: Fold, src: Buf, dst: Buf, dim: usize, clear: bool) -> Outcome<()> {
        let shape = self.program.shape(src);
        let (from, ty) = (self.ty(src), self.ty(dst));
        let kept = self.program.shape(dst).len() == shape.len();
        let mut outer = shape.clone();
        outer[dim] = 1;
        for mut at in points(&outer) {
            let mut into = at.clone();
            if !kept {
                into.remove(dim);
            }
            if into.is_empty() {
                into.push(0);
            }
            let mut list = Vec::new();
            for i in 0..shape[dim] {
                at[dim] = i;
                let value = convert(self.get(src, &at)?, from, ty)?;
                list.push(match fold {
                    Fold::AbsSum | Fold::AbsMax => finish(i128::from(value).abs(), ty)?,
                    _ => value,
                });
            }
            if !clear {
                list.push(self.get(dst, &into)?);
            }
            let all = list.iter().copied();
            let value = match fold {
                Fold::Sum | Fold::AbsSum => {
                    if ty.is_float() {
                        exact(all.clone().map(|v| i128::from(v).abs()).sum(), ty)?;
                    }
                    finish(all.map(i128::from).sum(), ty)?
                }
                Fold::Max | Fold::AbsMax => all.max().unwrap_or(0),
                Fold::Min => all.min().unwrap_or(0),
                Fold::BitAnd => all.fold(-1, |a, b| a & b),
                Fold::BitOr => all.fold(0, |a, b| a | b),
                Fold::BitXor => all.fold(0, |a, b| a ^ b),
            };
            self.put(dst, &into, value)?;
        }
        Ok(())
    }

    fn scan(&mut self, max: bool, src: Buf, dst: Buf, dim: usize, reverse: bool) -> Outcome<()> {
        let shape = self.program.shape(src);
        let (from, ty) = (self.ty(src), self.ty(dst));
        let mut outer = shape.clone();
        outer[dim] = 1;
        for mut at in points(&outer) {
            let mut so_far: Option<i128> = None;
            let mut size = 0;
            for n in 0..shape[dim] {
                at[dim] = if reverse { shape[dim] - 1 - n } else { n };
                let value = convert(self.get(src, &at)?, from, ty)?;
                let value = i128::from(value);
                let sum = match so_far {
                    None => value,
                    Some(s) if max => s.max(value),
                    Some(s) => s + value,
                };
                size += value.abs();
                if !max && ty.is_float() {
                    exact(size, ty)?;
                }
                so_far = Some(sum);
                let result = finish(sum, ty)?;
                self.put(dst, &at, result)?;
            }
        }
        Ok(())
    }

    fn gemm(&mut self, g: &Gemm) -> Outcome<()> {
        let size = |t: &Tile| -> Vec<i64> {
            let dims = t.extent.iter().flatten();
            dims.map(|d| self.program.size(*d)).collect()
        };
        let (sa, sc) = (size(&g.a), size(&g.c));
        let depth = if g.trans_a { sa[0] } else { sa[1] };
        let ty = self.ty(g.c.buf);
        let starts = [&g.a, &g.b, &g.c].map(|t| self.index(&t.start, ALL));
        let [first_a, first_b, first_c] = starts;
        let (first_a, first_b, first_c) = (first_a?, first_b?, first_c?);
        for m in 0..sc[0] {
            for n in 0..sc[1] {
                let into = shifted(&first_c, &g.c, &[m, n]);
                let mut sum = match g.clear {
                    true => 0,
                    false => i128::from(self.get(g.c.buf, &into)?),
                };
                let mut size = sum.abs();
                for k in 0..depth {
                    let a = if g.trans_a { [k, m] } else { [m, k] };
                    let b = if g.trans_b { [n, k] } else { [k, n] };
                    let a = self.get(g.a.buf, &shifted(&first_a, &g.a, &a))?;
                    let b = self.get(g.b.buf, &shifted(&first_b, &g.b, &b))?;
                    let product = i128::from(a) * i128::from(b);
                    sum += product;
                    size += product.abs();
                }
                if ty.is_float() {
                    exact(size, ty)?;
                }
                let value = finish(sum, ty)?;
                self.put(g.c.buf, &into, value)?;
            }
        }
        Ok(())
    }
}

/// The element of a tile at a point of its extents.
fn shifted(start: &[i64], tile: &Tile, point: &[i64]) -> Vec<i64> {
    let mut along = point.iter();
    let parts = start.iter().zip(&tile.extent);
    parts
        .map(|(s, extent)| match extent {
            None => *s,
            Some(_) => s + along.next().copied().unwrap_or(0),
        })
        .collect()
}
