//! Expressions with what is known of their values: floats never leave what is exact.

use super::{Gen, Index};
use crate::program::*;
use crate::types::Type;

/// An expression, its type and the values it can have.
#[derive(Clone, Debug)]
pub(super) struct Value {
    pub e: Expr,
    pub ty: Type,
    pub low: i128,
    pub high: i128,
}

/// What an expression may mention.
pub(super) struct Place<'a> {
    /// The indices of the parallel loop around it.
    pub axes: &'a [(Var, Dim)],
    /// The buffer that is written, which only the point itself may read.
    pub written: Option<Buf>,
    /// Inside a thread's own code: its number can be used.
    pub thread: bool,
}

impl Value {
    pub fn new(e: Expr, ty: Type, low: i64, high: i64) -> Value {
        Value {
            e,
            ty,
            low: i128::from(low),
            high: i128::from(high),
        }
    }

    pub fn lit(value: i64, ty: Type) -> Value {
        Value::new(Expr::Lit(value, ty), ty, value, value)
    }

    fn cast(self, ty: Type) -> Value {
        match self.ty == ty {
            true => self,
            false => Value {
                e: Expr::Cast(ty, Box::new(self.e)),
                ty,
                low: self.low,
                high: self.high,
            },
        }
    }

    fn within(&self, low: i128, high: i128) -> bool {
        low <= self.low && self.high <= high
    }
}

impl Gen {
    /// The value between two bounds, in its own type: by a remainder, or cut off.
    pub(super) fn bounded(&mut self, v: Value, low: i64, high: i64) -> Value {
        let (l, h) = (i128::from(low), i128::from(high));
        if v.within(l, h) {
            return v;
        }
        let ty = v.ty;
        if ty == Type::Bool {
            return Value::lit(low.max(0).min(high), Type::I32);
        }
        if ty.is_int() && self.rng.chance(60) {
            // A remainder is between zero and its divisor.
            let (_, most) = ty.range();
            let count = (h - l + 1).min(i128::from(most)) as i64;
            if low == 0 || (low < 0 && ty != Type::U8) {
                let rest = Expr::binary(BinOp::Mod, v.e, Expr::Lit(count, ty));
                let rest = Value::new(rest, ty, 0, count - 1);
                return match low {
                    0 => rest,
                    _ => {
                        let moved = Expr::binary(BinOp::Add, rest.e, Expr::Lit(low, ty));
                        Value::new(moved, ty, low, low + count - 1)
                    }
                };
            }
        }
        let (tl, th) = ty.range();
        let (low, high) = (low.clamp(tl, th), high.clamp(tl, th));
        let mut e = v.e;
        if v.low < l {
            e = Expr::binary(BinOp::Max, e, Expr::Lit(low, ty));
        }
        if v.high > h {
            e = Expr::binary(BinOp::Min, e, Expr::Lit(high, ty));
        }
        Value {
            e,
            ty,
            low: v.low.max(l).min(h),
            high: v.high.min(h).max(l),
        }
    }

    /// The value as one of this type and between these bounds.
    pub(super) fn fitted(&mut self, v: Value, ty: Type, range: (i64, i64)) -> Expr {
        let wraps = !v.ty.is_float() && ty.is_int() && range == ty.range();
        let v = match wraps {
            true => v,
            false => self.bounded(v, range.0, range.1),
        };
        match self.rng.chance(70) {
            true => v.cast(ty).e,
            // The store converts.
            false => v.e,
        }
    }

    /// The value as an operand in a type: converted only if all of it fits.
    fn operand(&mut self, v: Value, ty: Type, reach: i64) -> Value {
        let (low, high) = ty.range();
        let (low, high) = (low.max(-reach), high.min(reach));
        match ty.is_float() {
            true => self.bounded(v, low, high),
            false => v,
        }
    }

    /// An operation on two values; operands are cut down until the result is exact.
    pub(super) fn binary(&mut self, op: BinOp, a: Value, b: Value) -> Value {
        let mut ty = a.ty.promote(b.ty);
        let fp8 = |t: Type| matches!(t, Type::E4M3 | Type::E5M2);
        let (mut a, mut b) = (a, b);
        if ty == Type::Bool && !matches!(op, BinOp::Both | BinOp::Either) || fp8(a.ty) && fp8(b.ty)
        {
            let wide = if ty == Type::Bool {
                Type::I32
            } else {
                Type::F32
            };
            a = a.cast(wide);
            b = b.cast(wide);
            ty = wide;
        }
        let limit = ty.range().1;
        let reach = match op {
            BinOp::Add | BinOp::Sub => limit / 2,
            BinOp::Mul => (limit as f64).sqrt() as i64,
            _ => limit,
        };
        a = self.operand(a, ty, reach);
        b = self.operand(b, ty, reach);
        let (tl, th) = ty.range();
        let (tl, th) = (i128::from(tl), i128::from(th));
        // Integers are wrapped to the common type first.
        for v in [&mut a, &mut b] {
            if !v.within(tl, th) {
                (v.low, v.high) = (tl, th);
            }
        }
        let corners = |f: fn(i128, i128) -> i128| {
            let all = [
                f(a.low, b.low),
                f(a.low, b.high),
                f(a.high, b.low),
                f(a.high, b.high),
            ];
            (
                all.iter().copied().min().unwrap_or(0),
                all.iter().copied().max().unwrap_or(0),
            )
        };
        let (low, high) = match op {
            _ if op.is_test() => (0, 1),
            BinOp::Add => (a.low + b.low, a.high + b.high),
            BinOp::Sub => (a.low - b.high, a.high - b.low),
            BinOp::Mul => corners(|x, y| x * y),
            BinOp::Min => (a.low.min(b.low), a.high.min(b.high)),
            BinOp::Max => (a.low.max(b.low), a.high.max(b.high)),
            BinOp::Mod if b.low > 0 => (0, b.high - 1),
            _ => (tl, th),
        };
        let (low, high) = match low < tl || high > th {
            true => (tl, th),
            false => (low, high),
        };
        Value {
            e: Expr::binary(op, a.e, b.e),
            ty: if op.is_test() { Type::Bool } else { ty },
            low,
            high,
        }
    }

    /// A condition.
    pub(super) fn condition(&mut self, place: &Place<'_>, depth: u32) -> Value {
        let op = self.rng.pick(&[BinOp::Lt, BinOp::Le, BinOp::Eq, BinOp::Ne]);
        let a = self.value(place, depth);
        let b = match self.rng.chance(50) {
            true => {
                let middle = ((a.low + a.high) / 2).clamp(-1000, 1000) as i64;
                Value::lit(middle + self.rng.int(-1, 1), Type::I32)
            }
            false => self.value(place, depth),
        };
        let c = self.binary(op, a, b);
        if depth > 0 && self.rng.chance(15) {
            let op = self.rng.pick(&[BinOp::Both, BinOp::Either]);
            let other = self.condition(place, depth - 1);
            return self.binary(op, c, other);
        }
        c
    }

    /// A value made from what is there.
    pub(super) fn value(&mut self, place: &Place<'_>, depth: u32) -> Value {
        if depth == 0 || self.rng.chance(15) {
            return self.leaf(place);
        }
        let a = self.value(place, depth - 1);
        match self.rng.below(12) {
            0..=4 => {
                let b = self.value(place, depth - 1);
                let op =
                    self.rng
                        .pick(&[BinOp::Add, BinOp::Sub, BinOp::Mul, BinOp::Min, BinOp::Max]);
                self.binary(op, a, b)
            }
            5 | 6 if !a.ty.is_float() => {
                let op = self.rng.pick(&[
                    BinOp::FloorDiv,
                    BinOp::Mod,
                    BinOp::Shl,
                    BinOp::Shr,
                    BinOp::And,
                    BinOp::Or,
                    BinOp::Xor,
                ]);
                let a = match a.ty {
                    Type::Bool => a.cast(Type::I32),
                    _ => a,
                };
                let least = i64::from(matches!(op, BinOp::FloorDiv | BinOp::Mod));
                let most = match op {
                    BinOp::Shl | BinOp::Shr => 6,
                    _ => 13,
                };
                let lit = self.rng.int(least, most);
                let ty = if self.rng.chance(50) { a.ty } else { Type::I32 };
                self.binary(op, a, Value::lit(lit, ty))
            }
            7 if a.ty.is_float() => Value {
                e: Expr::Abs(Box::new(a.e)),
                ty: a.ty,
                low: 0,
                high: a.high.max(-a.low),
            },
            8 | 9 => {
                let c = self.condition(place, depth - 1);
                let b = self.value(place, depth - 1);
                self.select(c, a, b)
            }
            10 => {
                let ty = self.data_type();
                if ty == Type::Bool && a.ty != Type::Bool {
                    let zero = Value::lit(0, a.ty);
                    return self.binary(BinOp::Ne, a, zero);
                }
                let (low, high) = ty.range();
                let wraps = ty.is_int() && !a.ty.is_float();
                let a = match wraps {
                    true => a,
                    false => self.bounded(a, low, high),
                };
                let mut v = a.cast(ty);
                if !v.within(i128::from(low), i128::from(high)) {
                    (v.low, v.high) = (i128::from(low), i128::from(high));
                }
                v
            }
            _ => a,
        }
    }

    fn select(&mut self, c: Value, a: Value, b: Value) -> Value {
        let fp8 = |t: Type| matches!(t, Type::E4M3 | Type::E5M2);
        let (mut a, mut b) = (a, b);
        if a.ty != b.ty && (fp8(a.ty) || fp8(b.ty)) {
            a = self.operand(a, Type::F32, 1 << 20).cast(Type::F32);
            b = self.operand(b, Type::F32, 1 << 20).cast(Type::F32);
        }
        let ty = a.ty.promote(b.ty);
        a = self.operand(a, ty, ty.range().1);
        b = self.operand(b, ty, ty.range().1);
        let (low, high) = (a.low.min(b.low), a.high.max(b.high));
        let (tl, th) = ty.range();
        let inside = i128::from(tl) <= low && high <= i128::from(th);
        Value {
            e: Expr::Select(Box::new(c.e), Box::new(a.e), Box::new(b.e)),
            ty,
            low: if inside { low } else { i128::from(tl) },
            high: if inside { high } else { i128::from(th) },
        }
    }

    fn leaf(&mut self, place: &Place<'_>) -> Value {
        match self.rng.below(10) {
            0 => {
                let ty = self.rng.pick(&[Type::I32, Type::F32, Type::F16, Type::I8]);
                Value::lit(self.rng.int(-7, 9), ty)
            }
            1 | 2 => {
                let index = self.any_index(place);
                match index {
                    Some(i) => Value::new(Expr::Var(i.var), Type::I32, i.low, i.high),
                    None => Value::lit(self.rng.int(0, 5), Type::I32),
                }
            }
            3 if self.rng.chance(40) => {
                // A tensor that nothing else reads, often of a few elements, and mostly read
                // along the loop's last axis, past its end too.
                let count = self.rng.pick(&[1, 2, 3, 3, 3, 5, 16, 40]);
                let shape = vec![self.size(count)];
                let ty = self.data_type();
                let start = self.start_range(ty);
                let buf = self.tensor(ty, shape, start);
                match place.axes.last() {
                    Some((var, _)) if self.rng.chance(60) => {
                        let (low, high) = self.data(buf).range;
                        Value::new(Expr::Load(buf, vec![Expr::Var(*var)]), ty, low, high)
                    }
                    _ => self.load_element(buf, place),
                }
            }
            _ => {
                let list: Vec<Buf> = self.ready.iter().copied().rev().take(6).collect();
                for _ in 0..4 {
                    if list.is_empty() {
                        break;
                    }
                    let buf = self.rng.pick(&list);
                    if let Some(v) = self.try_load(buf, place) {
                        return self.loaded(v);
                    }
                }
                Value::lit(self.rng.int(-3, 9), Type::I32)
            }
        }
    }

    /// Small floats are mostly widened before they are computed with.
    fn loaded(&mut self, v: Value) -> Value {
        match v.ty {
            Type::E4M3 | Type::E5M2 if self.rng.chance(85) => {
                let ty = self.rng.pick(&[Type::F32, Type::F32, Type::F16]);
                v.cast(ty)
            }
            _ => v,
        }
    }

    pub(super) fn any_index(&mut self, place: &Place<'_>) -> Option<Index> {
        let mut list = self.indices.clone();
        for (var, dim) in place.axes {
            let index = Index {
                var: *var,
                low: 0,
                high: self.value_of(*dim) - 1,
            };
            list.extend([index; 3]);
        }
        if place.thread {
            let index = Index {
                var: Var::Thread,
                low: 0,
                high: self.p.thread_count() - 1,
            };
            list.extend([index; 3]);
        }
        match list.is_empty() {
            true => None,
            false => Some(self.rng.pick(&list)),
        }
    }

    fn try_load(&mut self, buf: Buf, place: &Place<'_>) -> Option<Value> {
        let data = self.data(buf).clone();
        let root = data.view_of.unwrap_or(buf);
        let written = place.written.map(|w| self.data(w).view_of.unwrap_or(w));
        if written == Some(root) && place.written != Some(buf) {
            return None;
        }
        if data.scope == Scope::Var {
            return Some(Value::new(
                Expr::Load(buf, Vec::new()),
                data.ty,
                data.range.0,
                data.range.1,
            ));
        }
        let own = self.matched(&data.shape, place.axes);
        if written == Some(root) {
            // Its own element, and no other.
            let index = own.filter(|index| index.len() == place.axes.len())?;
            return Some(Value::new(
                Expr::Load(buf, index),
                data.ty,
                data.range.0,
                data.range.1,
            ));
        }
        if let Some(index) = own
            && self.rng.chance(if data.scope == Scope::Fragment {
                100
            } else {
                75
            })
        {
            return Some(Value::new(
                Expr::Load(buf, index),
                data.ty,
                data.range.0,
                data.range.1,
            ));
        }
        // Registers are read where they are, but now and then by any index.
        if data.scope == Scope::Fragment && (place.axes.is_empty() || self.rng.chance(92)) {
            return None;
        }
        Some(self.load_element(buf, place))
    }

    /// The loop's own indices in the order of the shape, where each size has its axis.
    fn matched(&mut self, shape: &[Dim], axes: &[(Var, Dim)]) -> Option<Vec<Expr>> {
        let mut taken = vec![false; axes.len()];
        let mut index = Vec::new();
        for dim in shape {
            let fits = |n: &usize| !taken[*n] && axes[*n].1 == *dim;
            let at = (0..axes.len()).find(fits);
            match at {
                Some(n) => {
                    taken[n] = true;
                    index.push(Expr::Var(axes[n].0));
                }
                None if self.value_of(*dim) == 1 => index.push(Expr::int(0)),
                None => return None,
            }
        }
        Some(index)
    }

    /// An element at any place that is inside; of a tensor also at places outside.
    pub(super) fn load_element(&mut self, buf: Buf, place: &Place<'_>) -> Value {
        let data = self.data(buf).clone();
        let index: Vec<Expr> = data
            .shape
            .iter()
            .map(|dim| self.index_below(*dim, place, data.scope == Scope::Global))
            .collect();
        Value::new(Expr::Load(buf, index), data.ty, data.range.0, data.range.1)
    }

    /// An index for a dimension, by some index in scope.
    fn index_below(&mut self, dim: Dim, place: &Place<'_>, free: bool) -> Expr {
        let size = self.value_of(dim);
        let Some(i) = self.any_index(place) else {
            return Expr::int(self.rng.int(0, size - 1));
        };
        let var = Expr::Var(i.var);
        if i.high < size && self.rng.chance(60) {
            return match self.rng.chance(20) {
                true => Expr::binary(BinOp::Sub, Expr::int(size - 1), var),
                false => var,
            };
        }
        if free && self.rng.chance(50) {
            // Past either end of a tensor.
            return match self.rng.below(3) {
                0 if i.high >= 3 => Expr::binary(BinOp::Sub, var, Expr::int(self.rng.int(1, 3))),
                1 => {
                    let by = self.rng.int(0, size - 1);
                    Expr::binary(BinOp::Add, var, Expr::int(by))
                }
                _ => var,
            };
        }
        let mut e = var;
        if self.rng.chance(40) {
            let (by, plus) = (self.rng.int(1, 5), self.rng.int(0, 4));
            e = Expr::binary(BinOp::Mul, e, Expr::int(by));
            e = Expr::binary(BinOp::Add, e, Expr::int(plus));
            if self.rng.chance(50)
                && let Some(other) = self.any_index(place)
            {
                e = Expr::binary(BinOp::Add, e, Expr::Var(other.var));
            }
        }
        Expr::binary(BinOp::Mod, e, Expr::Size(dim))
    }

    /// A condition that is the same for the whole block.
    pub(super) fn uniform_condition(&mut self) -> Expr {
        let place = Place {
            axes: &[],
            written: None,
            thread: false,
        };
        let Some(i) = self.any_index(&place) else {
            return Expr::binary(BinOp::Lt, Expr::int(0), Expr::int(1));
        };
        let var = Expr::Var(i.var);
        let middle = self.rng.int(i.low, i.high.max(i.low));
        match self.rng.below(5) {
            0 => Expr::binary(BinOp::Eq, var, Expr::int(middle)),
            1 => Expr::binary(BinOp::Ne, var, Expr::int(middle)),
            2 => Expr::binary(BinOp::Lt, var, Expr::int(middle + 1)),
            3 => {
                let rest = Expr::binary(BinOp::Mod, var, Expr::int(2));
                let other = match self.any_index(&place) {
                    Some(j) if j.var != i.var => {
                        Expr::binary(BinOp::Mod, Expr::Var(j.var), Expr::int(2))
                    }
                    _ => Expr::int(self.rng.int(0, 1)),
                };
                Expr::binary(BinOp::Eq, rest, other)
            }
            _ => match self.any_index(&place) {
                Some(j) if j.var != i.var => Expr::binary(BinOp::Le, var, Expr::Var(j.var)),
                _ => Expr::binary(BinOp::Lt, Expr::int(middle), var),
            },
        }
    }
}
