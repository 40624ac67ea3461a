//! Fragments to shared memory by `stmatrix`: the four lanes of a quad hold eight neighbours of a row,
//! two each, and a warp writes up to four times eight such rows at once, 16 bytes each.
//!
//! Before:
//! ```text
//! copy C_local[0 +: 128, 0 +: 256] -> S[0 +: 128, 0 +: 256]
//! ```
//! After:
//! ```text
//! for c in unroll(0, 16) {
//!   alloc S_vec: local bfloat16[8]
//!   for v in unroll(0, 8) { S_vec[v] = bfloat16(C_local[c * 8 + v]) }
//!   r2s S_vec[0 +: 8] at [0] -> S[…] at [tx // 32 * 16 + tx % 16, c * 16 + tx // 16 % 2 * 8] inst="stmatrix.x4" width=1
//! }
//! ```
//! Of a part of a fragment, the registers that have it.

use std::sync::Arc;

use tilewright_ir::{
    Access, Block, BufferData, CopyOp, DType, Expr, Inst, MicroKind, MicroOp, Region, RegionDim,
    Scope, Span, Stmt, StmtKind, VarKind,
};
use tilewright_layout::to_expr;

use super::copy::element_at;
use super::{Lower, counted, store, unroll};

/// [PTX] `stmatrix`: lane `8 i + r` says where row `r` of matrix `i` lies, of which the lanes
/// `4 r .. 4 r + 4` have two elements each.
const LANES: i64 = 32;
const ROWS: i64 = 8;
const QUAD: i64 = 4;
const PAIR: i64 = 2;

fn constants<'e>(list: impl Iterator<Item = &'e Expr>) -> Option<Vec<i64>> {
    list.map(|e| i64::try_from(e.as_int()?).ok()).collect()
}

impl Lower<'_> {
    /// The copy, where the fragment lies as the instruction takes it and rows of eight are whole in
    /// memory.
    fn matrix_store(&mut self, c: &CopyOp, span: Span) -> Option<Stmt> {
        if !self.target.machine().stmatrix {
            return None;
        }
        let bits = self.dtype(c.dst.buffer).bits();
        let all = self.fragment(c.src.buffer)?;
        let whole = c.src.is_whole(&self.func.buffers[c.src.buffer]);
        let start = constants(c.src.dims.iter().map(|dim| &dim.start))?;
        let fragment = match whole {
            true => all.clone(),
            false => {
                let extents = constants(c.src.dims.iter().map(|dim| &dim.extent))?;
                Arc::new(all.slice(&start, &extents).ok()?.compact().ok()?)
            }
        };
        let dim = fragment.shape().len().checked_sub(1)?;
        let fits = (bits, self.dtype(c.dst.buffer).lanes) == (16, 1)
            && self.tid.as_var().is_some()
            && fragment.threads() == self.threads
            && self.threads % LANES == 0
            && fragment.replicas() == 1
            && fragment.shape()[dim] != 1
            && fragment.deals_along(dim, [PAIR, QUAD])
            && self.memory_width(&c.dst, &[]) >= PAIR * QUAD;
        let matrices = [4, 2, 1].into_iter();
        let tiles = matrices
            .filter(|n| fragment.slots() % (n * PAIR) == 0)
            .max();
        let tiles = tiles.filter(|_| fits)?;
        let each = tiles * PAIR;
        let count = fragment.slots() / each;
        let (axis, n) = self.var("c", VarKind::Loop);
        // The lane that has the first elements of the row, and their slot.
        let lane = self.tid.clone().floor_mod(LANES);
        let warp = self.tid.clone().floor_div(LANES) * LANES;
        let holder = warp + lane.clone().floor_mod(ROWS) * QUAD;
        let matrix = lane.floor_div(ROWS).floor_mod(tiles);
        let first = if count == 1 { Expr::i32(0) } else { n * each };
        let slot = first.clone() + matrix * PAIR;
        let (mut index, guard) = to_expr::inverse(&fragment.inverse()?, &holder, &slot);
        // The last one is the copy.
        index.pop();
        let size: i64 = fragment.shape().iter().product();
        if guard.is_some() || fragment.threads() * fragment.slots() != size {
            return None;
        }
        let (tid, threads) = (self.tid.as_var()?, self.threads);
        let shape = fragment.shape().to_vec();
        let index: Vec<Expr> = index
            .iter()
            .zip(&shape)
            .filter(|(_, extent)| **extent != 1)
            .map(|(e, _)| {
                self.analyzer.scoped(|a| {
                    let upto = |n: i64| Expr::int(n.into(), DType::I32);
                    a.bind_range(tid, &Expr::i32(0), &upto(threads));
                    a.bind_range(axis, &Expr::i32(0), &upto(count));
                    a.simplify(e)
                })
            })
            .collect();
        let to = self.dtype(c.dst.buffer);
        let (var, v) = self.var("v", VarKind::Loop);
        let mut register = first + v.clone();
        if !whole {
            let axes = [(axis, count), (var, each)];
            register = self.slot_in(&all, (&fragment, &start), &register, &axes)?;
            let mut same = true;
            register.walk(&mut |e| same &= e.as_var() != Some(tid));
            if !same {
                return None;
            }
        }
        let packed = self.packed(c, to, each);
        let value = self.load(c.src.buffer, vec![register]);
        let pack = vec![store(packed, vec![v], value, to, span)];
        let registers = Region {
            buffer: packed,
            dims: vec![RegionDim {
                start: Expr::i32(0),
                extent: Expr::i32(each as i32),
            }],
        };
        let op = MicroOp {
            kind: MicroKind::R2s,
            inst: Inst::StMatrix {
                tiles: tiles as u8,
                trans: false,
            },
            axes: Vec::new(),
            turns: false,
            dest: Access {
                at: element_at(&c.dst, &index),
                region: c.dst.clone(),
                slot: None,
            },
            sources: vec![Access {
                region: registers,
                slot: None,
                at: vec![Expr::i32(0)],
            }],
            width: 1,
            apart: 1,
            pred: None,
            otherwise: None,
            counter: None,
            arrives: None,
            evict: None,
        };
        let body = vec![
            Stmt::new(StmtKind::Alloc(packed), span),
            counted(var, each, unroll(), pack, span),
            Stmt::new(StmtKind::Micro(op), span),
        ];
        Some(counted(axis, count, unroll(), body, span))
    }

    /// Registers for what one instruction writes.
    fn packed(&mut self, c: &CopyOp, dtype: DType, count: i64) -> tilewright_ir::Buffer {
        let name = format!("{}_vec", self.func.buffers[c.dst.buffer].name);
        self.func.buffers.push(BufferData::new(
            name,
            Scope::Local,
            dtype,
            vec![Expr::i32(count as i32)],
        ))
    }

    /// Does the copy so, where that is possible.
    pub(super) fn by_matrices(&mut self, c: &CopyOp, span: Span, out: &mut Block) -> bool {
        let stmt = self.matrix_store(c, span);
        let found = stmt.is_some();
        out.extend(stmt);
        found
    }
}
