//! Compilation of expressions, one lane of a vector type at a time.

use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, MathFn, Scalar, Span, UnOp};

use super::Compiler;
use crate::compile::names::Compiled;
use crate::error::{RunError, codes};
use crate::simt::program::{Access, Fn1, Fn2, Fn3, Op, Slot};
use crate::value;

/// How deep expressions may nest: compilation recurses once a level.
const MAX_DEPTH: usize = 2_000;

impl Compiler<'_> {
    /// A scalar expression.
    pub(in crate::simt) fn scalar(&mut self, e: &Expr) -> Compiled<Slot> {
        if e.dtype().lanes != 1 {
            return Err(RunError::invalid(
                e.span(),
                "a vector where one value is needed",
            ));
        }
        self.lane(e, 0)
    }

    pub(in crate::simt) fn scalars(&mut self, list: &[Expr]) -> Compiled<Box<[Slot]>> {
        list.iter().map(|e| self.scalar(e)).collect()
    }

    /// A scalar expression converted to a type.
    pub(in crate::simt) fn cast(&mut self, e: &Expr, to: Scalar) -> Compiled<Slot> {
        let slot = self.scalar(e)?;
        Ok(self.convert(slot, e.dtype().scalar, to))
    }

    pub(super) fn convert(&mut self, slot: Slot, from: Scalar, to: Scalar) -> Slot {
        if from == to {
            return slot;
        }
        let f = match (from.is_float(), to.is_float()) {
            (false, false) => Fn1::Wrap(to),
            (false, true) => Fn1::FromInt(to, from),
            (true, false) => Fn1::FromFloat(to),
            (true, true) => Fn1::Round(to),
        };
        self.alu1(f, slot)
    }

    /// One lane of an expression.
    pub(super) fn lane(&mut self, e: &Expr, lane: usize) -> Compiled<Slot> {
        self.depth += 1;
        let slot = if self.depth > MAX_DEPTH {
            Err(tilewright_ir::Diagnostic::error(
                codes::EXPR_DEPTH,
                e.span(),
                format!("an expression nests deeper than {MAX_DEPTH} levels"),
            )
            .help("bind parts of it to names")
            .into())
        } else {
            self.node(e, lane)
        };
        self.depth -= 1;
        slot
    }

    fn node(&mut self, e: &Expr, lane: usize) -> Compiled<Slot> {
        let scalar = e.dtype().scalar;
        Ok(match e.kind() {
            ExprKind::Int(v) => self.constant_slot(value::narrow(scalar, *v) as u64),
            ExprKind::Float(v) => self.constant_slot(value::round(scalar, v.0).to_bits()),
            ExprKind::Var(var) => {
                if let Some(&value) = self.bound.consts.get(var) {
                    return Ok(self.constant_slot(value));
                }
                match self.vars.get(var).and_then(|slots| slots.get(lane)) {
                    Some(&slot) => slot,
                    None => {
                        let name = &self.func.vars[*var].name;
                        return Err(RunError::invalid(
                            e.span(),
                            format!("`{name}` has no value here"),
                        ));
                    }
                }
            }
            ExprKind::Load { buffer, indices } => {
                return self.load(*buffer, indices, lane, e.span());
            }
            ExprKind::AddressOf { .. } => {
                return Err(RunError::new(
                    codes::UNSUPPORTED,
                    e.span(),
                    "addresses have no value in the simulator",
                ));
            }
            ExprKind::Unary(UnOp::Not, a) => {
                let a = self.lane(a, lane)?;
                self.alu1(Fn1::Not, a)
            }
            ExprKind::Unary(UnOp::BitNot, a) => {
                let a = self.lane(a, lane)?;
                self.alu1(Fn1::BitNot(scalar), a)
            }
            ExprKind::Binary(op, a, b) => return self.binary(*op, a, b, e, lane),
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => {
                let cond = self.cond(cond, lane)?;
                let then = self.lane(then, lane)?;
                let otherwise = self.lane(otherwise, lane)?;
                self.alu3(Fn3::Select, cond, then, otherwise)
            }
            ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => {
                let cond = self.cond(cond, lane)?;
                if let Some(known) = self.constant_of(cond) {
                    return self.lane(if known != 0 { then } else { otherwise }, lane);
                }
                let then = self.guarded(then, lane, cond, true)?;
                let otherwise = self.guarded(otherwise, lane, cond, false)?;
                self.alu3(Fn3::Select, cond, then, otherwise)
            }
            ExprKind::Cast(a) => {
                let slot = self.lane(a, lane)?;
                self.convert(slot, a.dtype().scalar, scalar)
            }
            ExprKind::Reinterpret(a) => {
                let bits = self.bits(a, e, lane)?;
                self.alu1(
                    if scalar.is_float() {
                        Fn1::FromBits(scalar)
                    } else {
                        Fn1::Wrap(scalar)
                    },
                    bits,
                )
            }
            ExprKind::Math(f, args) => return self.math(*f, args, e, lane),
            ExprKind::Ramp { base, stride } => {
                let base = self.lane(base, 0)?;
                let stride = self.lane(stride, 0)?;
                let (number, f): (u64, fn(BinOp, Scalar) -> Fn2) = if scalar.is_float() {
                    ((lane as f64).to_bits(), Fn2::Float)
                } else {
                    (lane as u64, Fn2::Int)
                };
                let number = self.constant_slot(number);
                let step = self.alu2(f(BinOp::Mul, scalar), number, stride);
                self.alu2(f(BinOp::Add, scalar), base, step)
            }
            ExprKind::Broadcast(a) => self.lane(a, 0)?,
            ExprKind::Lane { vector, lane } => self.lane(vector, *lane as usize)?,
        })
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr, e: &Expr, lane: usize) -> Compiled<Slot> {
        let operand = a.dtype().scalar;
        if op.is_logical() {
            let x = self.lane(a, lane)?;
            if let Some(known) = self.constant_of(x) {
                let decided = (known != 0) == (op == BinOp::LogicalOr);
                return if decided { Ok(x) } else { self.lane(b, lane) };
            }
            let y = self.guarded(b, lane, x, op == BinOp::LogicalAnd)?;
            let op = match op {
                BinOp::LogicalAnd => BinOp::BitAnd,
                _ => BinOp::BitOr,
            };
            return Ok(self.alu2(Fn2::Int(op, Scalar::Bool), x, y));
        }
        let f = match (operand.is_float(), op.is_comparison()) {
            (false, true) => Fn2::Compare(op, operand),
            (true, true) => Fn2::CompareFloat(op),
            (false, false) if op != BinOp::Div => Fn2::Int(op, operand),
            (true, false)
                if matches!(
                    op,
                    BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Div | BinOp::Min | BinOp::Max
                ) =>
            {
                Fn2::Float(op, operand)
            }
            _ => return Err(ill_typed(e)),
        };
        let x = self.lane(a, lane)?;
        let y = self.lane(b, lane)?;
        Ok(self.alu2(f, x, y))
    }

    fn math(&mut self, f: MathFn, args: &[Expr], e: &Expr, lane: usize) -> Compiled<Slot> {
        let scalar = e.dtype().scalar;
        Ok(match (f, args) {
            (MathFn::Fma, [a, b, c]) if scalar.is_float() => {
                let (a, b, c) = (
                    self.lane(a, lane)?,
                    self.lane(b, lane)?,
                    self.lane(c, lane)?,
                );
                self.alu3(Fn3::Fma(scalar), a, b, c)
            }
            (f, [a]) if a.dtype().scalar.is_float() => {
                let a = self.lane(a, lane)?;
                self.alu1(
                    if f.is_predicate() {
                        Fn1::Predicate(f)
                    } else {
                        Fn1::Math(f, scalar)
                    },
                    a,
                )
            }
            (f, [a]) => {
                let x = self.lane(a, lane)?;
                self.alu1(Fn1::IntMath(f, a.dtype().scalar), x)
            }
            (MathFn::Ldexp, [a, n]) if !n.dtype().scalar.is_float() => {
                let (a, n) = (self.lane(a, lane)?, self.lane(n, lane)?);
                self.alu2(Fn2::Ldexp(scalar), a, n)
            }
            (f, [a, b]) if scalar.is_float() => {
                let (a, b) = (self.lane(a, lane)?, self.lane(b, lane)?);
                self.alu2(Fn2::Math(f, scalar), a, b)
            }
            _ => return Err(ill_typed(e)),
        })
    }

    /// A condition may be one bool for all lanes of the vector.
    fn cond(&mut self, cond: &Expr, lane: usize) -> Compiled<Slot> {
        self.lane(cond, if cond.dtype().lanes > 1 { lane } else { 0 })
    }

    /// An operand that counts only in threads where `cond` is `when`. One that can do no harm
    /// is computed by all.
    fn guarded(&mut self, e: &Expr, lane: usize, cond: Slot, when: bool) -> Compiled<Slot> {
        if harmless(e) {
            return self.lane(e, lane);
        }
        let push = self.emit(Op::MaskPush {
            cond,
            when,
            skip: 0,
        });
        let mark = self.mark();
        let slot = self.lane(e, lane)?;
        self.forget(mark);
        let end = self.pc();
        if let Op::MaskPush { skip, .. } = &mut self.program.ops[push] {
            *skip = end;
        }
        self.emit(Op::MaskPop);
        Ok(slot)
    }

    /// One lane of a loaded value. A row of elements is one access.
    fn load(
        &mut self,
        buffer: Buffer,
        indices: &[Expr],
        lane: usize,
        span: Span,
    ) -> Compiled<Slot> {
        let number = self.buffer(buffer)?;
        let lanes = self.program.buffers[number as usize].lanes as usize;
        let (outer, inner) = (lane / lanes, lane % lanes);
        let (version, indices) = self.version(number, indices)?;
        let (index_slots, width) = self.indices(number, indices, outer, span)?;
        let at = if width as usize > lanes { lane } else { inner };
        let key = (number, version, index_slots, width);
        if let Some(slots) = self.loads.get(&key) {
            return Ok(slots[at]);
        }
        self.note_traffic(number, false);
        let private = self.is_private(number);
        let uniform = !private && key.2.iter().all(|s| s.is_one());
        let dst: Box<[Slot]> = (0..width)
            .map(|_| {
                if uniform {
                    Slot::One(self.fresh_one())
                } else {
                    self.fresh_lanes()
                }
            })
            .collect();
        let access = self.add_access(Access {
            buffer: number,
            indices: key.2.clone(),
            version,
            width,
        });
        self.emit(Op::Load {
            access,
            dst: dst.clone(),
        });
        let slot = dst[at];
        self.loads.insert(key.clone(), dst);
        self.loads_log.push(key);
        Ok(slot)
    }

    /// The version that an access names first, where the buffer has several, and the rest.
    pub(in crate::simt) fn version<'e>(
        &mut self,
        number: u32,
        indices: &'e [Expr],
    ) -> Compiled<(Option<Slot>, &'e [Expr])> {
        let info = &self.program.buffers[number as usize];
        match indices.split_first() {
            Some((version, rest)) if info.versions > 1 && rest.len() == info.shape.len() => {
                Ok((Some(self.lane(version, 0)?), rest))
            }
            _ => Ok((None, indices)),
        }
    }

    /// The indices of an access and the scalars in a row that it covers: the whole vector
    /// where the last index is a ramp of step one, else the element of one lane.
    pub(in crate::simt) fn indices(
        &mut self,
        number: u32,
        indices: &[Expr],
        outer: usize,
        span: Span,
    ) -> Compiled<(Box<[Slot]>, u32)> {
        let info = &self.program.buffers[number as usize];
        let (rank, lanes, name) = (info.shape.len(), info.lanes, info.name.clone());
        if indices.len() != rank {
            return Err(RunError::invalid(
                span,
                format!(
                    "`{name}` has {rank} dimensions but {} indices",
                    indices.len()
                ),
            ));
        }
        let mut slots = Vec::with_capacity(rank);
        let mut width = lanes;
        for (d, index) in indices.iter().enumerate() {
            let slot = match index.kind() {
                ExprKind::Ramp { base, stride } if d + 1 == rank && stride.is_int(1) => {
                    width = lanes * u32::from(index.dtype().lanes);
                    self.lane(base, 0)?
                }
                _ if index.dtype().lanes > 1 => self.lane(index, outer)?,
                _ => self.lane(index, 0)?,
            };
            slots.push(slot);
        }
        Ok((slots.into(), width))
    }

    pub(in crate::simt) fn add_access(&mut self, access: Access) -> u32 {
        self.program.accesses.push(access);
        self.program.accesses.len() as u32 - 1
    }

    /// The bits of lane `lane` of `e`, a reinterpretation of `a`; zeros above its width.
    fn bits(&mut self, a: &Expr, e: &Expr, lane: usize) -> Compiled<Slot> {
        let (from, to) = (a.dtype().scalar, e.dtype().scalar);
        let (wide, narrow) = (from.bits() as usize, to.bits() as usize);
        if a.dtype().bits() != e.dtype().bits() {
            return Err(RunError::invalid(
                e.span(),
                format!("{} has not the width of {}", e.dtype(), a.dtype()),
            ));
        }
        if wide >= narrow {
            let first = lane * narrow;
            let word = self.lane_bits(a, first / wide)?;
            let by = self.constant_slot((first % wide) as u64);
            let shifted = self.alu2(Fn2::Int(BinOp::Shr, Scalar::U64), word, by);
            let mask = self.constant_slot(u64::MAX >> (64 - narrow));
            return Ok(self.alu2(Fn2::Int(BinOp::BitAnd, Scalar::U64), shifted, mask));
        }
        let mut all = self.constant_slot(0);
        for part in 0..narrow / wide {
            let word = self.lane_bits(a, lane * (narrow / wide) + part)?;
            let by = self.constant_slot((part * wide) as u64);
            let placed = self.alu2(Fn2::Int(BinOp::Shl, Scalar::U64), word, by);
            all = self.alu2(Fn2::Int(BinOp::BitOr, Scalar::U64), all, placed);
        }
        Ok(all)
    }

    /// The stored bits of one lane, zeros above its width.
    fn lane_bits(&mut self, a: &Expr, lane: usize) -> Compiled<Slot> {
        let scalar = a.dtype().scalar;
        let slot = self.lane(a, lane)?;
        Ok(if scalar.is_float() {
            self.alu1(Fn1::BitsOf(scalar), slot)
        } else {
            let mask = self.constant_slot(u64::MAX >> (64 - scalar.bits()));
            self.alu2(Fn2::Int(BinOp::BitAnd, Scalar::U64), slot, mask)
        })
    }
}

/// Whether all threads may compute it: no memory is read and nothing can be undefined.
pub(super) fn harmless(e: &Expr) -> bool {
    let mut fine = true;
    e.walk(&mut |node| match node.kind() {
        ExprKind::Load { .. } => fine = false,
        ExprKind::Binary(op, _, by) => {
            let by = by.as_int();
            fine &= match op {
                BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod => {
                    by.is_some_and(|v| v != 0)
                }
                BinOp::Shl | BinOp::Shr => {
                    by.is_some_and(|v| (0..i128::from(node.dtype().scalar.bits())).contains(&v))
                }
                _ => true,
            };
        }
        _ => {}
    });
    fine
}

fn ill_typed(e: &Expr) -> RunError {
    RunError::invalid(
        e.span(),
        format!("an operation that does not exist on {}", e.dtype()),
    )
}
