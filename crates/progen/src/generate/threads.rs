//! Templates of each thread's own code: `S[tx] = …`, scalars and arrays of a thread, neighbours'
//! values through shared memory.

use super::Gen;
use super::values::{Place, Value};
use crate::program::*;
use crate::types::Type;

const THREAD: Place<'static> = Place {
    axes: &[],
    written: None,
    thread: true,
};

fn tx() -> Expr {
    Expr::Var(Var::Thread)
}

impl Gen {
    /// Warp groups of a program that has code for them need not be in step.
    pub(super) fn meet(&mut self, out: &mut Vec<Stmt>) {
        if self.grouped {
            out.push(Stmt::Sync);
        }
    }

    pub(super) fn thread_code(&mut self, out: &mut Vec<Stmt>) {
        let Some(threads) = self.p.threads else {
            return;
        };
        match self.rng.below(5) {
            0 => self.vectors(out, threads),
            _ => self.neighbours(out, threads),
        }
    }

    /// A value of the thread; what it reads of tiles lies in shared memory.
    fn thread_value(&mut self, depth: u32, except: Option<Buf>) -> Value {
        let kept = std::mem::take(&mut self.ready);
        self.ready = kept
            .iter()
            .copied()
            .filter(|b| {
                let scope = self.data(*b).scope;
                Some(*b) != except && matches!(scope, Scope::Shared | Scope::Var)
            })
            .collect();
        let value = self.value(&THREAD, depth);
        self.ready = kept;
        value
    }

    /// The number of another thread.
    fn other_thread(&mut self, threads: Dim) -> Expr {
        let count = self.value_of(threads);
        match self.rng.below(3) {
            0 => Expr::binary(
                BinOp::Sub,
                Expr::binary(BinOp::Sub, Expr::Size(threads), Expr::int(1)),
                tx(),
            ),
            1 => {
                let by = self.rng.int(1, count - 1);
                let moved = Expr::binary(BinOp::Add, tx(), Expr::int(by));
                Expr::binary(BinOp::Mod, moved, Expr::Size(threads))
            }
            _ => {
                let by = self.rng.pick(&[1, 2, 8, 16]);
                Expr::binary(BinOp::Xor, tx(), Expr::int(by))
            }
        }
    }

    /// Values that threads leave for each other in shared memory.
    fn neighbours(&mut self, out: &mut Vec<Stmt>, threads: Dim) {
        let ty = self
            .rng
            .pick(&[Type::I32, Type::I32, Type::F32, Type::F16, Type::I8]);
        let shape = vec![threads];
        if !self.room(&shape, ty).0 {
            return;
        }
        let range = match ty.is_int() {
            true => ty.range(),
            false => (-200, 200),
        };
        let shared = self.allocate(out, Scope::Shared, ty, shape.clone(), range);
        let value = self.thread_value(2, Some(shared));
        let value = self.fitted(value, ty, range);
        self.meet(out);
        out.push(Stmt::Store(shared, vec![tx()], value));
        if self.rng.chance(30) {
            // Some threads change what they wrote.
            let bound = self.rng.int(1, self.value_of(threads));
            let cond = Expr::binary(BinOp::Lt, tx(), Expr::int(bound));
            let own = Value::new(Expr::Load(shared, vec![tx()]), ty, range.0, range.1);
            let sum = self.binary(BinOp::Add, own, Value::lit(3, Type::I32));
            let value = self.fitted(sum, ty, range);
            let store = Stmt::Store(shared, vec![tx()], value);
            out.push(Stmt::If(cond, vec![store], Vec::new()));
        }
        self.meet(out);
        let other = self.other_thread(threads);
        let read = Value::new(Expr::Load(shared, vec![other]), ty, range.0, range.1);
        let var = self.buffer(Scope::Var, ty, Vec::new(), range);
        if self.rng.chance(60) {
            out.push(Stmt::AllocVar(var, Some(read.e)));
        } else {
            let start = self.rng.int(0, 5);
            out.push(Stmt::AllocVar(var, Some(Expr::Lit(start, ty))));
            let sum = self.binary(BinOp::Add, read, Value::lit(start, ty));
            let value = self.fitted(sum, ty, range);
            out.push(Stmt::Store(var, Vec::new(), value));
        }
        let mine = Value::new(Expr::Load(var, Vec::new()), ty, range.0, range.1);
        if !self.grouped && self.rng.chance(35) {
            // Round after round.
            let index = self.loop_var();
            let other = self.other_thread(threads);
            let read = Value::new(Expr::Load(shared, vec![other]), ty, range.0, range.1);
            let sum = self.binary(BinOp::Add, mine.clone(), read);
            let sum = self.fitted(sum, ty, range);
            let round = Value::new(Expr::Var(index), Type::I32, 0, 2);
            let next = self.binary(BinOp::Add, mine.clone(), round);
            let next = self.fitted(next, ty, range);
            let mut body = vec![
                Stmt::Store(shared, vec![tx()], next),
                Stmt::Store(var, Vec::new(), sum),
            ];
            if self.rng.chance(30) {
                let cond = Expr::binary(BinOp::Le, Expr::int(1), Expr::Var(index));
                body.push(Stmt::If(cond, vec![Stmt::Break], Vec::new()));
            }
            out.push(Stmt::For {
                kind: self.rng.pick(&[LoopKind::Serial, LoopKind::Unroll]),
                var: index,
                count: Expr::int(self.rng.int(1, 3)),
                body,
            });
            if let Some(Stmt::For { kind, body, .. }) = out.last_mut()
                && body.iter().any(|s| matches!(s, Stmt::If(..)))
            {
                *kind = LoopKind::Serial;
            }
        }
        let (tensor, mut index) = self.output_tensor(ty, &[]);
        self.p.buffers[tensor.0].shape.push(threads);
        index.push(tx());
        let store = Stmt::Store(tensor, index, mine.e);
        let store = match self.rng.chance(40) {
            true => {
                let bound = self.rng.int(1, self.value_of(threads));
                let cond = Expr::binary(BinOp::Lt, tx(), Expr::int(bound));
                Stmt::If(cond, vec![store], Vec::new())
            }
            false => store,
        };
        out.push(store);
        self.meet(out);
        self.ready.push(shared);
    }

    /// A few elements of each thread, side by side.
    fn vectors(&mut self, out: &mut Vec<Stmt>, threads: Dim) {
        let ty = self.rng.pick(&[Type::F16, Type::F32, Type::I32, Type::I8]);
        let width = self.rng.pick(&[2, 4, 8, 3]);
        let lanes = self.size(width);
        let start = self.start_range(ty);
        let length = self.value_of(threads) * width + self.rng.pick(&[0, 0, -5]);
        let length = vec![self.size(length)];
        let src = self.tensor(ty, length, start);
        let local = self.buffer(
            Scope::Local,
            ty,
            vec![lanes],
            (start.0.min(0), start.1.max(0)),
        );
        out.push(Stmt::Alloc(local));
        let kinds = [LoopKind::Vectorized, LoopKind::Vectorized, LoopKind::Unroll];
        let var = self.loop_var();
        let at = |v: Var| {
            let first = Expr::binary(BinOp::Mul, tx(), Expr::Size(lanes));
            Expr::binary(BinOp::Add, first, Expr::Var(v))
        };
        let load = Expr::Load(src, vec![at(var)]);
        out.push(Stmt::For {
            kind: self.rng.pick(&kinds),
            var,
            count: Expr::Size(lanes),
            body: vec![Stmt::Store(local, vec![Expr::Var(var)], load)],
        });
        let (tensor, mut index) = self.output_tensor(ty, &[]);
        self.p.buffers[tensor.0].shape.extend([threads, lanes]);
        let var = self.loop_var();
        index.extend([tx(), Expr::Var(var)]);
        let own = Value::new(
            Expr::Load(local, vec![Expr::Var(var)]),
            ty,
            start.0.min(0),
            start.1.max(0),
        );
        let other = self.thread_value(1, None);
        let sum = self.binary(BinOp::Add, own, other);
        let range = ty.range();
        let value = self.fitted(sum, ty, range);
        out.push(Stmt::For {
            kind: self.rng.pick(&kinds),
            var,
            count: Expr::Size(lanes),
            body: vec![Stmt::Store(tensor, index, value)],
        });
    }
}
