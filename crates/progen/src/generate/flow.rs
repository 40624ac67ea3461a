//! Templates of control flow, and the choice among all templates.

use super::values::{Place, Value};
use super::{Gen, Index};
use crate::program::*;
use crate::types::Type;

#[derive(Clone, Copy)]
enum Kind {
    Load,
    Elementwise,
    Reduce,
    Scan,
    Transpose,
    Move,
    View,
    Atomics,
    Gemm,
    Loop,
    While,
    If,
    Variable,
    Threads,
    Handshake,
    Groups,
    Output,
    Exchange,
    Sync,
}

impl Gen {
    /// As many statements as there is fuel for here.
    pub(super) fn statements(&mut self, out: &mut Vec<Stmt>) {
        let most = match self.depth {
            0 => 12,
            _ => self.rng.int(1, 4),
        };
        for _ in 0..most {
            if self.fuel <= 0 {
                return;
            }
            self.fuel -= 1;
            self.statement(out);
        }
    }

    fn statement(&mut self, out: &mut Vec<Stmt>) {
        let top = self.depth == 0;
        let two_groups = top && self.grouped;
        let inner = u32::from(self.depth < 2);
        if self.wide {
            let kind = self.rng.weighted(&[
                (12, Kind::Gemm),
                (3 * inner, Kind::Loop),
                (inner, Kind::If),
                (1, Kind::Elementwise),
                (1, Kind::Output),
            ]);
            return self.make(kind, out);
        }
        let kind = self.rng.weighted(&[
            (11, Kind::Load),
            (18, Kind::Elementwise),
            (11, Kind::Reduce),
            (6, Kind::Scan),
            (3, Kind::Transpose),
            (4, Kind::Move),
            (3, Kind::View),
            (7, Kind::Atomics),
            (if self.depth < 2 { 12 } else { 2 }, Kind::Gemm),
            (14 * inner, Kind::Loop),
            (3 * inner, Kind::While),
            (8 * inner, Kind::If),
            (9, Kind::Variable),
            (8, Kind::Threads),
            (if two_groups { 30 } else { 0 }, Kind::Handshake),
            (if two_groups { 12 } else { 0 }, Kind::Groups),
            (3, Kind::Output),
            (3, Kind::Exchange),
            (1, Kind::Sync),
        ]);
        self.make(kind, out);
    }

    fn make(&mut self, kind: Kind, out: &mut Vec<Stmt>) {
        match kind {
            Kind::Load => self.load(out),
            Kind::Elementwise => self.elementwise(out),
            Kind::Reduce => self.reduce(out),
            Kind::Scan => self.scan(out),
            Kind::Transpose => self.transpose(out),
            Kind::Move => self.move_tile(out),
            Kind::View => self.view(out),
            Kind::Atomics => self.atomics(out),
            Kind::Gemm => self.gemm(out),
            Kind::Loop => self.looped(out),
            Kind::While => self.while_loop(out),
            Kind::If => self.conditional(out),
            Kind::Variable => self.variable(out),
            Kind::Threads => self.thread_code(out),
            Kind::Handshake => self.handshake(out),
            Kind::Groups => self.groups(out),
            Kind::Output => self.write_some(out),
            Kind::Exchange => self.exchange(out),
            Kind::Sync => out.push(Stmt::Sync),
        }
    }

    /// Statements of their own scope: what is written in it is not known to be written after it.
    fn inner(&mut self, fuel: i32, repeats: i64, index: Option<Index>) -> (Vec<Stmt>, Vec<Stmt>) {
        let ready = self.ready.len();
        let indices = self.indices.len();
        let hoisted = std::mem::take(&mut self.hoisted);
        let (saved, times) = (self.fuel, self.repeats);
        self.indices.extend(index);
        self.fuel = fuel;
        self.repeats = times.saturating_mul(repeats.max(1));
        self.depth += 1;
        let mut body = Vec::new();
        self.statements(&mut body);
        if self.rng.chance(50) {
            self.write_some(&mut body);
        }
        self.depth -= 1;
        self.fuel = saved;
        self.repeats = times;
        self.ready.truncate(ready);
        self.indices.truncate(indices);
        let mine = std::mem::replace(&mut self.hoisted, hoisted);
        (body, mine)
    }

    /// Puts allocations of an inner scope before it, or further out.
    fn place_hoisted(&mut self, out: &mut Vec<Stmt>, list: Vec<Stmt>) {
        match self.depth > 0 && self.rng.chance(60) {
            true => self.hoisted.extend(list),
            false => out.extend(list),
        }
    }

    /// How often a loop runs, and at most.
    pub(super) fn trip_count(&mut self) -> (Expr, i64) {
        let place = Place {
            axes: &[],
            written: None,
            thread: false,
        };
        if self.rng.chance(25)
            && let Some(i) = self.any_index(&place)
            && i.high < 6
        {
            let var = Expr::Var(i.var);
            return match self.rng.below(3) {
                0 => (var, i.high),
                1 => {
                    let by = self.rng.int(1, 3);
                    (Expr::binary(BinOp::Add, var, Expr::int(by)), i.high + by)
                }
                _ => (
                    Expr::binary(BinOp::Sub, Expr::int(i.high + 1), var),
                    i.high + 1,
                ),
            };
        }
        let count = self.rng.weighted(&[
            (1, 0),
            (3, 1),
            (4, 2),
            (5, 3),
            (4, 4),
            (3, 5),
            (1, 6),
            (1, 7),
        ]);
        (Expr::int(count), count)
    }

    fn looped(&mut self, out: &mut Vec<Stmt>) {
        let (count, most) = self.trip_count();
        let stages = self.rng.int(0, 5) as u32;
        let kind = match self.rng.below(10) {
            0..=5 => LoopKind::Pipelined(stages),
            6 | 7 if matches!(count, Expr::Lit(..)) => LoopKind::Unroll,
            _ => LoopKind::Serial,
        };
        let var = self.loop_var();
        let index = Index {
            var,
            low: 0,
            high: (most - 1).max(0),
        };
        let fuel = self.rng.int(1, 4) as i32;
        let (mut body, hoisted) = self.inner(fuel, most, Some(index));
        self.place_hoisted(out, hoisted);
        if kind == LoopKind::Serial && self.rng.chance(35) {
            let stop = Expr::binary(
                BinOp::Le,
                Expr::int(self.rng.int(0, most.max(1))),
                Expr::Var(var),
            );
            let jump = self.rng.pick(&[Stmt::Break, Stmt::Break, Stmt::Continue]);
            let at = self.rng.pick(&[0, body.len()]);
            // What is allocated before it is not there after a jump over it; names are.
            let at = if matches!(jump, Stmt::Continue) {
                0
            } else {
                at
            };
            body.insert(at, Stmt::If(stop, vec![jump], Vec::new()));
        }
        out.push(Stmt::For {
            kind,
            var,
            count,
            body,
        });
    }

    fn while_loop(&mut self, out: &mut Vec<Stmt>) {
        let first = self.rng.pick(&[1, 3, 8, 64]);
        let var = self.buffer(Scope::Var, Type::I32, Vec::new(), (0, first));
        let start = match self.rng.chance(70) {
            true => Expr::int(first),
            false => Expr::binary(BinOp::Mod, Expr::Var(Var::Block(0)), Expr::int(first + 1)),
        };
        out.push(Stmt::AllocVar(var, Some(start)));
        self.ready.push(var);
        let fuel = self.rng.int(1, 2) as i32;
        let times = 7;
        let (mut body, hoisted) = self.inner(fuel, times, None);
        self.place_hoisted(out, hoisted);
        let now = Expr::Load(var, Vec::new());
        let next = Expr::binary(BinOp::FloorDiv, now.clone(), Expr::int(2));
        body.push(Stmt::Store(var, Vec::new(), next));
        out.push(Stmt::While(
            Expr::binary(BinOp::Lt, Expr::int(0), now),
            body,
        ));
    }

    fn conditional(&mut self, out: &mut Vec<Stmt>) {
        let cond = self.uniform_condition();
        let fuel = self.rng.int(1, 2) as i32;
        let (then, hoisted) = self.inner(fuel, 1, None);
        self.place_hoisted(out, hoisted);
        let mut otherwise = Vec::new();
        if self.rng.chance(50) {
            let (list, hoisted) = self.inner(1, 1, None);
            self.place_hoisted(out, hoisted);
            otherwise = list;
        }
        out.push(Stmt::If(cond, then, otherwise));
    }

    /// A scalar that is the same for all threads: a new one, or a new value of one.
    fn variable(&mut self, out: &mut Vec<Stmt>) {
        let place = Place {
            axes: &[],
            written: None,
            thread: false,
        };
        let list: Vec<Buf> = self.ready.clone();
        let scalars: Vec<Buf> = list
            .into_iter()
            .filter(|b| self.data(*b).scope == Scope::Var)
            .collect();
        if !scalars.is_empty() && self.rng.chance(50) {
            let var = self.rng.pick(&scalars);
            let data = self.data(var).clone();
            // Loops that count with it must end.
            if data.range.0 < 0 {
                let value = self.scalar_value(&place);
                let value = self.fitted(value, data.ty, data.range);
                out.push(Stmt::Store(var, Vec::new(), value));
                return;
            }
        }
        let ty = self
            .rng
            .pick(&[Type::I32, Type::I32, Type::F32, Type::I64, Type::F16]);
        let range = (-100, 100);
        let var = self.buffer(Scope::Var, ty, Vec::new(), range);
        let init = match self.rng.below(8) {
            0 => None,
            1..=4 => Some(Expr::Lit(self.rng.int(-9, 9), ty)),
            _ => {
                let value = self.scalar_value(&place);
                Some(self.fitted(value, ty, range))
            }
        };
        out.push(Stmt::AllocVar(var, init));
        self.ready.push(var);
    }

    /// A value for all threads: of indices, scalars and elements of memory.
    fn scalar_value(&mut self, place: &Place<'_>) -> Value {
        let memory: Vec<Buf> = self
            .ready
            .iter()
            .copied()
            .filter(|b| self.data(*b).scope == Scope::Shared)
            .collect();
        let a = match memory.is_empty() || self.rng.chance(50) {
            true => self.value(place, 1),
            false => {
                let buf = self.rng.pick(&memory);
                self.load_element(buf, place)
            }
        };
        if self.rng.chance(50) {
            let b = self.value(place, 1);
            return self.binary(BinOp::Add, a, b);
        }
        a
    }

    /// Two warp groups that do different things to different tiles.
    fn groups(&mut self, out: &mut Vec<Stmt>) {
        self.meet(out);
        let first = self.rng.pick(&[0, 1]);
        for group in [first, 1 - first] {
            let shape = vec![self.tile_size(), self.tile_size()];
            let ty = self.rng.pick(&[Type::I32, Type::F32, Type::F16]);
            if !self.room(&shape, ty).0 {
                return;
            }
            let range = self.buffer_range(ty, (-20, 20));
            let dst = self.allocate(out, Scope::Shared, ty, shape.clone(), range);
            let axes = self.axes(&shape);
            let place = Place {
                axes: &axes,
                written: Some(dst),
                thread: false,
            };
            // Fragments belong to the whole block, and scalars to threads of both groups.
            let kept = std::mem::take(&mut self.ready);
            self.ready = kept
                .iter()
                .copied()
                .filter(|b| self.data(*b).scope == Scope::Shared)
                .collect();
            let value = self.value(&place, 2);
            let value = self.fitted(value, ty, range);
            self.ready = kept;
            let store = Stmt::Store(dst, super::identity(&axes), value);
            out.push(Stmt::Group(group, vec![Stmt::Parallel(axes, vec![store])]));
            // The other group must not see it before both have met again.
            self.fresh_of_groups(dst, group == 1 - first);
        }
        self.meet(out);
    }

    fn fresh_of_groups(&mut self, dst: Buf, last: bool) {
        match last {
            true => {
                let earlier = std::mem::take(&mut self.waiting);
                self.ready.extend(earlier);
                self.ready.push(dst);
            }
            false => self.waiting.push(dst),
        }
    }
}
