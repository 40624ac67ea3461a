//! SplitProducts: a product whose result is used up at once is done part by part.
//!
//! Where each product is scaled and added to a sum, the threads hold the sum and the product. With
//! large tiles both do not fit their registers. The product of one instruction after the other does:
//! the next one starts when the last one has been added, in the same registers, and other warp groups
//! multiply meanwhile.
//!
//! Before:
//! ```text
//! mma for ks < 4, mi < 2, ni < 1 do A[…] at [mi * 64, …], … -> P[0 +: 128] at [mi * 64] inst="wgmma.….fresh"
//! for s in unroll(0, 128) { C[s] = C[s] + P[s] * f[s // 64] }
//! ```
//! After:
//! ```text
//! mma for ks < 4 do A[…] at [0, …], … -> P[0 +: 64] at [0] inst="wgmma.….fresh"
//! for s in unroll(0, 64) { C[s] = C[s] + P[s] * f[0] }
//! mma for ks < 4 do A[…] at [64, …], … -> P[0 +: 64] at [0] inst="wgmma.….fresh"
//! for s in unroll(0, 64) { C[64 + s] = C[64 + s] + P[s] * f[1] }
//! ```
//!
//! Needs loop IR. It is for products that start at zero and are read by one loop behind them, and
//! does nothing where all that a thread keeps fits its registers.

use tilewright_arith::Analyzer;
use tilewright_ir::visit::{child_blocks_mut, stmt_exprs_mut, walk_stmts};
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{
    Block, Buffer, Diagnostics, Expr, ExprKind, Func, Inst, Loop, LoopKind, MicroOp, RegionDim,
    Scope, Span, Stmt, StmtKind, Target, Var,
};

use super::super::common::effects::Effects;
use super::super::common::fresh::refresh;
use super::super::common::inject_software_pipeline::need;
use crate::Changed;

/// Splits the products of all kernels that do not fit.
pub fn split_products(func: &mut Func, target: Target, _diags: &mut Diagnostics) -> Changed {
    let machine = target.machine();
    let mut changed = Changed::No;
    if !machine.group_mma() {
        return changed;
    }
    for at in 0..func.kernels.len() {
        if need::registers(func) <= machine.registers.per_thread {
            break;
        }
        let mut body = std::mem::take(&mut func.kernels[at].body);
        let mut uses: Vec<Buffer> = Vec::new();
        walk_stmts(&body, &mut |stmt| {
            let alloc = matches!(stmt.kind, StmtKind::Alloc(_));
            stmt_buffers(stmt, &mut |b| uses.extend((!alloc).then_some(func.root(b))));
        });
        if split_in(func, &mut body, &uses) {
            changed = Changed::Yes;
        }
        func.kernels[at].body = body;
    }
    changed
}

/// Splits what can be split in a block. `uses` has a buffer as often as the kernel names it.
fn split_in(func: &mut Func, block: &mut Block, uses: &[Buffer]) -> bool {
    let mut changed = false;
    for stmt in block.iter_mut() {
        for child in child_blocks_mut(stmt) {
            changed |= split_in(func, child, uses);
        }
    }
    let mut at = 0;
    while at < block.len() {
        if let Some(found) = Found::at(func, block, at, uses)
            && let Some(parts) = found.parts(func, block)
        {
            at += parts.len();
            block.splice(found.product..=found.reader, parts);
            changed = true;
        } else {
            at += 1;
        }
    }
    changed
}

/// A product and the loop that reads it, by their places in a block.
struct Found {
    product: usize,
    reader: usize,
    /// The registers of the product.
    registers: Buffer,
    /// Instructions along M and N.
    tiles: [u32; 2],
}

impl Found {
    fn at(func: &Func, block: &Block, product: usize, uses: &[Buffer]) -> Option<Found> {
        let op = block[product].as_group_product()?;
        let &[_, (_, rows), (_, cols)] = &op.axes[..] else {
            return None;
        };
        let registers = op.dest.region.buffer;
        let fresh = matches!(op.inst, Inst::GroupMma { fresh: true, .. });
        let own =
            func.buffers[registers].scope == Scope::Local && func.root(registers) == registers;
        if !fresh || !own || rows * cols < 2 {
            return None;
        }
        let touches = |stmt: &Stmt| Effects::of(func, stmt).touches(registers);
        let reader = product + 1 + block[product + 1..].iter().position(touches)?;
        // Nobody else has to do with it.
        let named = |stmts: &[Stmt]| {
            let mut count = 0;
            walk_stmts(stmts, &mut |stmt| {
                stmt_buffers(stmt, &mut |b| count += usize::from(b == registers));
            });
            count
        };
        let here = named(&block[product..=product]) + named(&block[reader..=reader]);
        if uses.iter().filter(|b| **b == registers).count() != here {
            return None;
        }
        // Parts of the product move behind what stands between, and behind parts of the loop.
        let sources: Vec<Buffer> = op.sources.iter().map(|s| s.region.buffer).collect();
        let apart = block[product + 1..=reader].iter().all(|stmt| {
            let effects = Effects::of(func, stmt);
            let mut plain = !effects.opaque;
            walk_stmts(std::slice::from_ref(stmt), &mut |s| plain &= is_plain(s));
            plain
                && !sources
                    .iter()
                    .any(|s| effects.writes.contains(&func.root(*s)))
        });
        let reads_only = !Effects::of(func, &block[reader])
            .writes
            .contains(&registers);
        (apart && reads_only).then_some(Found {
            product,
            reader,
            registers,
            tiles: [rows, cols],
        })
    }

    /// The statements from the product to its reader, part by part.
    fn parts(&self, func: &mut Func, block: &Block) -> Option<Block> {
        let StmtKind::Micro(product) = &block[self.product].kind else {
            return None;
        };
        let reader = &block[self.reader];
        let count = self.tiles[0] * self.tiles[1];
        let slots = func.buffers[self.registers]
            .const_shape()?
            .iter()
            .product::<i64>();
        let each = slots / i64::from(count);
        let mut parts = Vec::new();
        for part in 0..count {
            let own = self.product_of(func, product, part, each)?;
            parts.push((own, self.reader_of(reader, part, (count, each))?));
        }
        let mut out = Block::new();
        for (part, (product, kind)) in parts.into_iter().enumerate() {
            let mut made = vec![Stmt {
                kind: StmtKind::Micro(product),
                ..block[self.product].clone()
            }];
            if part > 0 {
                // It comes with the reader of the part before.
                made[0].turn = reader.turn;
            } else {
                made.extend_from_slice(&block[self.product + 1..self.reader]);
            }
            made.push(Stmt {
                kind,
                ..reader.clone()
            });
            if part > 0 {
                refresh(func, &mut made);
            }
            out.extend(made);
        }
        let data = &mut func.buffers[self.registers];
        data.shape = vec![Expr::i32(each as i32)];
        data.layout = None;
        Some(out)
    }

    /// One instruction's part of the product, if its registers lie as parts follow each other.
    fn product_of(&self, func: &Func, op: &MicroOp, part: u32, each: i64) -> Option<MicroOp> {
        let cols = self.tiles[1];
        let index = |var: Var| {
            let axis = op.axes[1..].iter().position(|(v, _)| *v == var)?;
            let tile = [part / cols, part % cols][axis];
            Some(Expr::int(tile.into(), func.vars[var].dtype))
        };
        let mut stmt = Stmt::new(StmtKind::Micro(op.clone()), Span::NONE);
        stmt_exprs_mut(&mut stmt, &mut |e| {
            *e = e.rewrite(&mut |node| index(node.as_var()?));
        });
        let StmtKind::Micro(mut op) = stmt.kind else {
            return None;
        };
        let [at] = &op.dest.at[..] else { return None };
        let first = i128::from(part) * i128::from(each);
        if Analyzer::new().simplify(at).as_int() != Some(first) {
            return None;
        }
        op.axes.truncate(1);
        op.dest.at = vec![Expr::i32(0)];
        op.dest.region.dims = vec![RegionDim {
            start: Expr::i32(0),
            extent: Expr::i32(each as i32),
        }];
        Some(op)
    }

    /// The part of the loop that reads one instruction's registers, if it reads no others.
    fn reader_of(&self, reader: &Stmt, part: u32, (count, each): (u32, i64)) -> Option<StmtKind> {
        let StmtKind::For(l) = &reader.kind else {
            return None;
        };
        let [axis] = &l.axes[..] else {
            return None;
        };
        let trips = axis.const_trip_count()?;
        let unrolled = matches!(l.kind, LoopKind::Unroll { .. });
        let from_zero = axis.start.is_int(0) && axis.step.is_int(1);
        if !unrolled || !from_zero || trips % u64::from(count) != 0 {
            return None;
        }
        let trips = (trips / u64::from(count)) as i128;
        let dtype = axis.stop.dtype();
        let moved = Expr::var(axis.var, dtype) + Expr::int(i128::from(part) * trips, dtype);
        let mut own = l.clone();
        own.axes[0].stop = Expr::int(trips, dtype);
        let mut shift = Shift {
            analyzer: Analyzer::new(),
            index: axis.var,
            moved,
            registers: self.registers,
            first: i64::from(part) * each,
            each,
            fits: true,
        };
        shift.bind(&own);
        shift.block(&mut own.body);
        shift.fits.then_some(StmtKind::For(own))
    }
}

/// Whether a statement neither meets other threads nor leaves the block.
fn is_plain(stmt: &Stmt) -> bool {
    !matches!(
        stmt.kind,
        StmtKind::Thread(_)
            | StmtKind::Device(_)
            | StmtKind::Tile(_)
            | StmtKind::WarpGroup { .. }
            | StmtKind::Break
            | StmtKind::Continue
    )
}

/// Makes reads of a part of the registers reads of the registers of a part.
struct Shift {
    analyzer: Analyzer,
    /// The index of the loop, and what it is in this part.
    index: Var,
    moved: Expr,
    registers: Buffer,
    /// The part's first register, and how many there are of one.
    first: i64,
    each: i64,
    /// Whether all reads are of this part.
    fits: bool,
}

impl Shift {
    fn bind(&mut self, l: &Loop) {
        for axis in &l.axes {
            self.analyzer.bind_range(axis.var, &axis.start, &axis.stop);
        }
    }

    fn block(&mut self, block: &mut Block) {
        for stmt in block {
            stmt_exprs_mut(stmt, &mut |e| *e = self.expr(e));
            if let StmtKind::For(l) = &stmt.kind {
                self.bind(l);
            }
            for child in child_blocks_mut(stmt) {
                self.block(child);
            }
        }
    }

    fn expr(&mut self, e: &Expr) -> Expr {
        let moved = |node: &Expr| (node.as_var()? == self.index).then(|| self.moved.clone());
        let e = e.rewrite(&mut |node| moved(node));
        e.rewrite(&mut |node| {
            let ExprKind::Load { buffer, indices } = node.kind() else {
                return None;
            };
            let ([at], true) = (&indices[..], *buffer == self.registers) else {
                return None;
            };
            let int = |value: i64| Expr::int(value.into(), at.dtype());
            let at = self.analyzer.simplify(&(at.clone() - int(self.first)));
            let inside = at.clone().ge(int(0)).and(at.clone().lt(int(self.each)));
            self.fits &= self.analyzer.prove(&inside).is_yes();
            Some(Expr::load(*buffer, vec![at], node.dtype()))
        })
    }
}
