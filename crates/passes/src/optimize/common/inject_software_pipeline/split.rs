//! Products taken apart along M and N.
//!
//! A step of a product reads tiles of A and B to registers and multiplies each with each. In parts along
//! M it reads a part of A's tiles and multiplies those with all of B's, and so on for N: the parts of
//! operands are register arrays of their own, so that an order can give each read and each part of the
//! product its place.
//!
//! ```text
//! s2r for c < 8 do A[…] at [c * 16 + …] -> a[0 +: 64] at [c * 8]
//! mma for mi < 8, ni < 4 do a at [mi * 8], b at [ni * 8] -> C at [mi * 16 + ni * 4]
//! ```
//! in two parts along M has `s2r for c < 4 … at [(c + 4) * 16 + …] -> a[32 +: 32] at [(c + 4) * 8]` and
//! `mma for mi < 4, ni < 4 do a[32 +: 32] at [(mi + 4) * 8], …` for the second.

use std::cell::RefCell;
use std::rc::Rc;

use tilewright_arith::Analyzer;
use tilewright_ir::visit::stmt_exprs_mut;
use tilewright_ir::{Access, Buffer, Expr, Func, MicroKind, MicroOp, Region, Stmt, StmtKind, Var};
use tilewright_schedule::order::Completion;

use super::pieces::{Piece, Pieces};
use super::schedules::Why;
use super::steps::{Steps, Within};

/// Into how many parts products are taken along M and N, and copies by their instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Split {
    pub m: u32,
    pub n: u32,
    /// Parts of copies.
    pub p: u32,
}

impl Split {
    pub const NONE: Split = Split { m: 1, n: 1, p: 1 };

    /// The pieces with their products in such parts.
    fn of(self, func: &Func, pieces: &Pieces) -> Result<Pieces, Why> {
        let mut split = pieces.clone();
        if self.p > 1 {
            for piece in split.list.iter_mut().filter(|p| p.distance > 0) {
                let parts = self.copy(piece)?;
                piece.steps = Some(Rc::new(Steps::of_copy(parts, piece.stmt.span)));
            }
        }
        if self.m == 1 && self.n == 1 {
            return Ok(split);
        }
        let mut any = false;
        for piece in &mut split.list {
            let product = |s: &&Rc<Steps>| s.of_kind(MicroKind::Mma) > 0;
            if let Some(steps) = piece.steps.as_ref().filter(product) {
                piece.steps = Some(Rc::new(self.steps(func, steps)?));
                any = true;
            }
        }
        match any {
            true => Ok(split),
            false => Err("no statement of the loop is a product that can be split".into()),
        }
    }

    /// The instructions of a copy that runs by itself, in parts.
    fn copy(self, piece: &Piece) -> Result<Vec<MicroOp>, Why> {
        let in_flight = matches!(piece.completion, Completion::Counted { .. });
        let StmtKind::Micro(op) = &piece.stmt.kind else {
            return Err("a copy of the loop has no parts".into());
        };
        if !in_flight || op.kind != MicroKind::G2s {
            return Err("a copy goes through registers, and has no parts".into());
        }
        let parts = (0..self.p).map(|part| along(op, 0, (part, self.p)));
        let parts: Option<Vec<MicroOp>> = parts.collect();
        parts.ok_or_else(|| {
            let (count, parts) = (op.count(), self.p);
            format!("a copy of {count} instructions has no {parts} parts").into()
        })
    }

    fn steps(self, func: &Func, steps: &Steps) -> Result<Steps, Why> {
        let shape = || Why::from("a product of the loop has no parts along M and N");
        let mut products = steps.ops.iter().filter(|op| op.kind == MicroKind::Mma);
        let (Some(product), None) = (products.next(), products.next()) else {
            return Err(shape());
        };
        let [rows_of, columns_of] = operands(product).ok_or_else(shape)?;
        let [a, b] = [&rows_of, &columns_of].map(|of| -> Vec<Buffer> {
            let registers = of.iter().map(|at| product.sources[*at].region.buffer);
            registers.collect()
        });
        let apart = !a.iter().any(|registers| b.contains(registers));
        let mut ops: Vec<(MicroOp, Within)> = Vec::new();
        for op in steps.ops.iter().filter(|op| op.kind != MicroKind::Mma) {
            let dest = op.dest.region.buffer;
            let parts = match () {
                () if a.contains(&dest) && apart => self.m,
                () if b.contains(&dest) && apart => self.n,
                () => return Err(shape()),
            };
            for part in 0..parts {
                let mut own = along(op, 0, (part, parts)).ok_or_else(shape)?;
                own.dest.region = range(func, &own.dest.region, (part, parts)).ok_or_else(shape)?;
                if !is_inside(&own, &own.dest) {
                    return Err(shape());
                }
                let at = (parts > 1).then_some(part);
                let within = match a.contains(&dest) {
                    true => Within {
                        m: at,
                        ..Within::default()
                    },
                    false => Within {
                        n: at,
                        ..Within::default()
                    },
                };
                ops.push((own, within));
            }
        }
        for m in 0..self.m {
            for n in 0..self.n {
                let own = along(product, 0, (m, self.m));
                let own = own.and_then(|op| along(&op, 1, (n, self.n)));
                let mut own = own.ok_or_else(shape)?;
                let rows = rows_of.iter().map(|at| (*at, (m, self.m)));
                let columns = columns_of.iter().map(|at| (*at, (n, self.n)));
                for (source, part) in rows.chain(columns) {
                    let region = range(func, &own.sources[source].region, part);
                    own.sources[source].region = region.ok_or_else(shape)?;
                    if !is_inside(&own, &own.sources[source]) {
                        return Err(shape());
                    }
                }
                let within = Within {
                    m: (self.m > 1).then_some(m),
                    n: (self.n > 1).then_some(n),
                    p: None,
                };
                ops.push((own, within));
            }
        }
        Ok(steps.with_ops(ops))
    }
}

/// The pieces of a loop in all parts that orders asked for: several ask for the same.
#[derive(Default)]
pub(super) struct Splits(RefCell<Vec<(Split, InParts)>>);

type InParts = Result<Rc<Pieces>, Why>;

impl Splits {
    pub fn of(&self, split: Split, func: &Func, pieces: &Pieces) -> InParts {
        let known = self
            .0
            .borrow()
            .iter()
            .find(|s| s.0 == split)
            .map(|s| s.1.clone());
        known.unwrap_or_else(|| {
            let made = split.of(func, pieces).map(Rc::new);
            self.0.borrow_mut().push((split, made.clone()));
            made
        })
    }
}

/// Whether where an access starts depends on a variable.
fn mentions(access: &Access, var: Var) -> bool {
    let mut found = false;
    for at in &access.at {
        at.walk(&mut |node| found |= node.as_var() == Some(var));
    }
    found
}

/// The instructions of a part along an axis.
fn along(op: &MicroOp, axis: usize, (part, parts): (u32, u32)) -> Option<MicroOp> {
    let &(var, extent) = op.axes.get(axis)?;
    if extent % parts != 0 {
        return None;
    }
    let first = part * (extent / parts);
    let mut stmt = Stmt::new(StmtKind::Micro(op.clone()), tilewright_ir::Span::NONE);
    if first > 0 {
        stmt_exprs_mut(&mut stmt, &mut |e| {
            *e = e.rewrite(&mut |node| {
                (node.as_var()? == var)
                    .then(|| node.clone() + Expr::int(first.into(), node.dtype()))
            });
        });
    }
    match stmt.kind {
        StmtKind::Micro(mut op) => {
            op.axes[axis].1 = extent / parts;
            Some(op)
        }
        _ => None,
    }
}

/// A part of the registers.
fn range(func: &Func, region: &Region, (part, parts): (u32, u32)) -> Option<Region> {
    let (data, [dim]) = (&func.buffers[region.buffer], &region.dims[..]) else {
        return None;
    };
    let slots = dim.extent.as_int()?;
    let parts = i128::from(parts);
    if !region.is_whole(data) || slots % parts != 0 {
        return None;
    }
    let mut region = region.clone();
    let dtype = dim.start.dtype();
    region.dims[0].start = Expr::int(slots / parts * i128::from(part), dtype);
    region.dims[0].extent = Expr::int(slots / parts, dtype);
    Some(region)
}

/// Whether all instructions start inside the registers of the access.
fn is_inside(op: &MicroOp, access: &Access) -> bool {
    let ([dim], [at]) = (&access.region.dims[..], &access.at[..]) else {
        return false;
    };
    let (Some(start), Some(extent)) = (dim.start.as_int(), dim.extent.as_int()) else {
        return false;
    };
    let mut analyzer = Analyzer::new();
    let mut inside = |point: &[(Var, u32)]| {
        let at = at.rewrite(&mut |node| {
            let var = node.as_var()?;
            let (_, value) = point.iter().find(|(v, _)| *v == var)?;
            Some(Expr::int((*value).into(), node.dtype()))
        });
        let at = analyzer.simplify(&at).as_int();
        at.is_some_and(|at| (start..start + extent).contains(&at))
    };
    let mut points: Vec<Vec<(Var, u32)>> = vec![Vec::new()];
    for &(var, count) in &op.axes {
        let longer = points
            .iter()
            .flat_map(|point| (0..count).map(move |value| [&point[..], &[(var, value)]].concat()));
        points = longer.collect();
    }
    points.iter().all(|point| inside(point))
}

/// Which sources of a product are its rows, A and the scales of A, and which its columns: one that is
/// done as its transpose has these first.
pub(super) fn operands(product: &MicroOp) -> Option<[Vec<usize>; 2]> {
    let ([left, right, ..], [(rows, _), (columns, _)]) = (&product.sources[..], &product.axes[..])
    else {
        return None;
    };
    let right_first = mentions(left, *columns) || mentions(right, *rows);
    let every_other = |first: usize| (first..product.sources.len()).step_by(2).collect();
    Some([usize::from(right_first), usize::from(!right_first)].map(every_other))
}
