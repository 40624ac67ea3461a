//! Templates of matrix products: in pipelined loops, and between warp groups.

use super::{Gen, Index, identity, whole};
use crate::program::*;
use crate::types::Type;

/// A matrix operand on the chip.
struct Operand {
    buf: Buf,
    /// The tensor it is copied from, and its start along each dimension for an index.
    load: Vec<Stmt>,
}

impl Gen {
    fn matrix_size(&mut self, list: &[(u32, i64)]) -> Dim {
        let value = self.rng.weighted(list);
        self.size(value)
    }

    fn types(&mut self) -> (Type, Type) {
        let ab = match self.wide {
            true => self
                .rng
                .weighted(&[(6, Type::F16), (4, Type::BF16), (2, Type::E4M3)]),
            false => self.rng.weighted(&[
                (10, Type::F16),
                (4, Type::BF16),
                (6, Type::I8),
                (1, Type::E4M3),
                (1, Type::F32),
                (2, Type::F64),
            ]),
        };
        let acc = match ab {
            Type::I8 => Type::I32,
            Type::F64 => Type::F64,
            Type::F16 if self.rng.chance(20) => Type::F16,
            _ => Type::F32,
        };
        (ab, acc)
    }

    /// A product, mostly summed over a loop that brings its operands.
    pub(super) fn gemm(&mut self, out: &mut Vec<Stmt>) {
        // A wave of AMD's machines is the least that multiplies.
        if self.p.thread_count() < 64 {
            return;
        }
        let (ab, acc) = self.types();
        let edge = [
            (1, 5),
            (3, 8),
            (6, 16),
            (2, 17),
            (2, 20),
            (2, 24),
            (6, 32),
            (2, 40),
            (3, 48),
            (4, 64),
        ];
        let sizes = [(1, 7), (2, 8), (8, 16), (6, 32), (1, 24), (1, 33), (3, 64)];
        // Tiles that warp groups multiply, and rows that a copy engine can be told of.
        let (m, n, k) = match self.wide {
            true => (
                self.matrix_size(&[(6, 64), (4, 128), (1, 192)]),
                self.matrix_size(&[(1, 16), (1, 24), (2, 32), (6, 64), (2, 128)]),
                self.matrix_size(&[(3, 16), (4, 32), (1, 64)]),
            ),
            false => (
                self.matrix_size(&edge),
                self.matrix_size(&edge),
                self.matrix_size(&sizes),
            ),
        };
        let (mut trans_a, mut trans_b) = (self.rng.chance(25), self.rng.chance(40));
        // Warp groups multiply bytes along K alone.
        if self.wide && ab == Type::E4M3 {
            (trans_a, trans_b) = (false, true);
        }
        let a_shape = if trans_a { vec![k, m] } else { vec![m, k] };
        let b_shape = if trans_b { vec![n, k] } else { vec![k, n] };
        let (count, most) = match self.rng.chance(80) {
            true => self.trip_count(),
            false => (Expr::int(1), 1),
        };
        let reach = if acc == Type::F16 { 1 } else { 2 };
        let total = reach * reach * self.value_of(k) * (most + 1) + 9;
        if acc.is_float() && total > acc.range().1 {
            return;
        }
        let c_shape = vec![m, n];
        let bytes = |g: &Gen, s: &[Dim]| -> i64 {
            s.iter().map(|d| g.value_of(*d)).product::<i64>() * i64::from(ab.bits() / 8)
        };
        let needed = bytes(self, &a_shape) + bytes(self, &b_shape);
        if needed > self.shared_left || !self.room(&c_shape, acc).1 {
            return;
        }
        let range = match acc.is_float() {
            true => (-total, total),
            false => acc.range(),
        };
        let c = self.allocate(out, Scope::Fragment, acc, c_shape.clone(), range);
        let looped = most != 1 || !matches!(count, Expr::Lit(..));
        let clear_in_gemm = !looped && self.rng.chance(50);
        if !clear_in_gemm {
            match self.rng.chance(80) {
                true => out.push(Stmt::Fill(c, 0)),
                false => out.push(Stmt::Fill(c, self.rng.int(1, 9))),
            }
        }
        let var = self.loop_var();
        if looped {
            self.indices.push(Index {
                var,
                low: 0,
                high: (most - 1).max(0),
            });
        }
        let ready = self.ready.len();
        let hoist_at = self.hoisted.len();
        self.depth += u32::from(looped);
        let a = self.matrix(
            ab,
            a_shape,
            reach,
            looped.then_some((var, usize::from(!trans_a))),
        );
        let b = self.matrix(
            ab,
            b_shape,
            reach,
            looped.then_some((var, usize::from(trans_b))),
        );
        let mut body = a.load;
        // An operand that does not change is brought once.
        let mut before = Vec::new();
        match looped && self.rng.chance(10) {
            true => before = b.load,
            false => body.extend(b.load),
        }
        if looped && self.rng.chance(12) {
            let fuel = std::mem::replace(&mut self.fuel, 1);
            self.statements(&mut body);
            self.fuel = fuel;
        }
        let policy = self.rng.pick(&[
            Policy::Square,
            Policy::Square,
            Policy::FullRow,
            Policy::FullCol,
        ]);
        let gemm = Stmt::Gemm(Gemm {
            a: whole(&self.p, a.buf),
            b: whole(&self.p, b.buf),
            c: whole(&self.p, c),
            trans_a,
            trans_b,
            policy,
            clear: clear_in_gemm,
        });
        let same_as_loaded = before.is_empty();
        if looped && same_as_loaded && self.rng.chance(10) {
            // The whole step under a condition.
            let cond = self.uniform_condition();
            body.push(gemm);
            body = vec![Stmt::If(cond, body, Vec::new())];
        } else {
            body.push(gemm);
        }
        self.depth -= u32::from(looped);
        let hoisted: Vec<Stmt> = self.hoisted.drain(hoist_at..).collect();
        match self.depth > 0 {
            true => self.hoisted.extend(hoisted),
            false => out.extend(hoisted),
        }
        self.ready.truncate(ready);
        if !before.is_empty() {
            // It may name the loop's index, which is not there yet: it starts at zero.
            for stmt in &mut before {
                for e in stmt.exprs_mut() {
                    replace(e, var);
                }
                // Slices that have become constants would have to lie inside.
                if let Stmt::Copy(src, _) = stmt
                    && src.style == Style::Slice
                {
                    src.style = Style::Start;
                }
            }
            out.extend(before);
        }
        match looped {
            true => {
                self.indices.pop();
                let stages = self.rng.int(i64::from(self.wide), 5) as u32;
                let kind = match (self.rng.chance(85), stages) {
                    (true, 1..) if self.rng.chance(25) => LoopKind::Plain(stages),
                    (true, _) => LoopKind::Pipelined(stages),
                    (false, _) => LoopKind::Serial,
                };
                out.push(Stmt::For {
                    kind,
                    var,
                    count,
                    body,
                });
            }
            false => out.extend(body),
        }
        self.ready.push(c);
        self.after_product(out, c);
    }

    /// Sums over accumulators have layouts of their own: they come often.
    fn after_product(&mut self, out: &mut Vec<Stmt>, c: Buf) {
        let data = self.data(c).clone();
        if self.rng.chance(45) {
            let axes = self.axes(&data.shape);
            let own = Expr::Load(c, identity(&axes));
            let value = match data.ty {
                Type::I32 => Expr::binary(BinOp::Add, own, Expr::int(self.rng.int(1, 1000))),
                ty => {
                    let most = data.range.1;
                    let more = Expr::binary(BinOp::Add, own, Expr::Lit(self.rng.int(1, 3), ty));
                    Expr::binary(BinOp::Min, more, Expr::Lit(most, ty))
                }
            };
            let store = Stmt::Store(c, identity(&axes), value);
            out.push(Stmt::Parallel(axes, vec![store]));
        }
        if self.rng.chance(45) {
            self.reduce_of(out, c);
        }
    }

    /// An operand: shared memory or a fragment, with values that keep sums exact.
    fn matrix(
        &mut self,
        ty: Type,
        shape: Vec<Dim>,
        reach: i64,
        along: Option<(Var, usize)>,
    ) -> Operand {
        let mut load = Vec::new();
        let fragment = self.rng.chance(if self.wide { 3 } else { 15 });
        let scope = match fragment && self.room(&shape, ty).1 {
            true => Scope::Fragment,
            false => Scope::Shared,
        };
        let buf = match along {
            None => self.load_into(&mut load, scope, ty, shape, Some((-reach, reach))),
            Some((var, axis)) => {
                // The usual form: the loop's index moves the start along one dimension.
                let mut dims = shape.clone();
                let tile = self.value_of(shape[axis]);
                let step = match self.wide || self.rng.chance(80) {
                    true => tile,
                    false => self.rng.int(1, tile),
                };
                let trips = self.indices.last().map_or(1, |i| i.high + 1);
                let more = match self.wide {
                    true => self.rng.pick(&[0, 0, -16, 16, -tile]),
                    false => self.rng.pick(&[0, 0, -3, 5, -tile]),
                };
                let length = (step * trips + more).max(1);
                dims[axis] = self.size(length);
                self.p.sizes[dims[axis].0].dynamic = self.rng.chance(10);
                let mut start = vec![Expr::int(0); 2];
                start[axis] = Expr::binary(BinOp::Mul, Expr::Var(var), Expr::int(step));
                let other = 1 - axis;
                if self.rng.chance(40) {
                    let block = self.indices[0];
                    let tile = self.value_of(shape[other]);
                    start[other] = Expr::binary(BinOp::Mul, Expr::Var(block.var), Expr::int(tile));
                    let more = match self.wide {
                        true => self.rng.pick(&[0, 0, -16, 16]),
                        false => self.rng.pick(&[0, -2, 3]),
                    };
                    let length = tile * (block.high + 1) + more;
                    dims[other] = self.size(length.max(1));
                }
                let src = self.tensor(ty, dims, (-reach, reach));
                let buf = self.allocate(&mut load, scope, ty, shape.clone(), (-reach, reach));
                let style = match self.sliceable(src, &start, &shape) {
                    true => self.rng.pick(&[Style::Start, Style::Slice]),
                    false => Style::Start,
                };
                let tile = Tile {
                    buf: src,
                    start,
                    extent: shape.iter().map(|d| Some(*d)).collect(),
                    style,
                };
                load.push(Stmt::Copy(tile, whole(&self.p, buf)));
                buf
            }
        };
        Operand { buf, load }
    }

    /// One warp group copies tiles, the other uses them.
    pub(super) fn handshake(&mut self, out: &mut Vec<Stmt>) {
        let trips = self.rng.int(1, 6);
        let slots = self.rng.int(1, 3);
        let product = self.rng.chance(55);
        let ty = match product {
            true => self.rng.pick(&[Type::F16, Type::F16, Type::BF16, Type::I8]),
            false => self.rng.pick(&[Type::I32, Type::F32, Type::F16, Type::I8]),
        };
        let rows = self.rng.pick(&[8, 16, 17, 32, 64]);
        let cols = self.rng.pick(&[8, 16, 32, 33]);
        let (m, k) = (self.size(rows), self.size(cols));
        let versions = self.size(slots);
        let shape = vec![versions, m, k];
        if !self.room(&shape, ty).0 {
            return;
        }
        let reach = 2;
        let var = self.loop_var();
        let slot = Expr::binary(BinOp::Mod, Expr::Var(var), Expr::int(slots));
        let tiles = self.allocate(out, Scope::Shared, ty, shape, (-reach, reach));
        let cut = self.rng.pick(&[0, 0, 3]);
        let length = self.size(cols * trips - cut);
        let src = self.tensor(ty, vec![m, length], (-reach, reach));
        let slot_tile = Tile {
            buf: tiles,
            start: vec![slot.clone(), Expr::int(0), Expr::int(0)],
            extent: vec![None, Some(m), Some(k)],
            style: Style::Slot,
        };
        let from = Tile {
            buf: src,
            start: vec![
                Expr::int(0),
                Expr::binary(BinOp::Mul, Expr::Var(var), Expr::int(cols)),
            ],
            extent: vec![Some(m), Some(k)],
            style: self.rng.pick(&[Style::Start, Style::Slice]),
        };
        let produce = vec![Stmt::Copy(from, slot_tile.clone())];
        let (mut before, mut consume, mut after) = (Vec::new(), Vec::new(), Vec::new());
        self.in_group = true;
        let (acc, acc_shape) = match product {
            true => {
                let width = self.rng.pick(&[8, 16, 32, 40]);
                let n = self.size(width);
                let acc = if ty == Type::I8 { Type::I32 } else { Type::F32 };
                let other = self.load_into(out, Scope::Shared, ty, vec![k, n], Some((-2, 2)));
                self.ready.pop();
                let total = trips * cols * 4 + 9;
                let c = self.allocate(out, Scope::Fragment, acc, vec![m, n], (-total, total));
                consume.push(Stmt::Gemm(Gemm {
                    a: slot_tile,
                    b: whole(&self.p, other),
                    c: whole(&self.p, c),
                    trans_a: false,
                    trans_b: false,
                    policy: Policy::Square,
                    clear: false,
                }));
                (c, vec![m, n])
            }
            false => {
                let total = trips * reach + 9;
                let acc = if ty == Type::I8 { Type::I32 } else { ty };
                let c = self.allocate(out, Scope::Fragment, acc, vec![m, k], (-total, total));
                let axes = self.axes(&[m, k]);
                let mut index = identity(&axes);
                let own = Expr::Load(c, index.clone());
                index.insert(0, slot);
                let sum = Expr::binary(BinOp::Add, own, Expr::Load(tiles, index));
                let store = Stmt::Store(c, identity(&axes), sum);
                consume.push(Stmt::Parallel(axes, vec![store]));
                (c, vec![m, k])
            }
        };
        before.push(Stmt::Fill(acc, self.rng.pick(&[0, 0, 3])));
        self.write_tile(&mut after, acc, &acc_shape);
        self.in_group = false;
        out.push(Stmt::Handshake(Handshake {
            var,
            trips,
            slots,
            producer_group: self.rng.below(2) as u32,
            consumer_first: self.rng.chance(40),
            produce,
            before,
            consume,
            after,
        }));
    }
}

/// Zero for an index.
fn replace(e: &mut Expr, var: Var) {
    if *e == Expr::Var(var) {
        *e = Expr::int(0);
    }
    for child in e.children_mut() {
        replace(child, var);
    }
}
