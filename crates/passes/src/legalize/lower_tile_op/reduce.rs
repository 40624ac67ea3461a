//! Reductions: each thread folds what it holds, then the threads of a line combine.
//!
//! Lanes of one warp combine by exchanging halves (`shuffle xor`); what reaches across warps
//! goes through shared memory. A thread that has no element of the line brings what a fold starts
//! with, so three lanes in the place of four combine as four do. A source without a usable layout
//! is read from shared memory by the threads that hold the result.

use std::sync::Arc;

use tilewright_ir::{
    BinOp, Block, Buffer, DType, Expr, ExprKind, MathFn, ReduceKind, ReduceOp, Region, Scalar,
    Scope, ShuffleKind, Span, Stmt, StmtKind, ThreadOp, VarKind, small_float,
};
use tilewright_layout::{Form, Fragment, LineDigit, Sum, radix, to_expr};

use super::integer_maxima::Maxima;
use super::{Lower, counted, guarded, store, unroll};
use crate::legalize::layout_inference::const_shape;

impl Lower<'_> {
    pub(super) fn reduce(&mut self, r: ReduceOp, span: Span, out: &mut Block) {
        let (src, dst) = (r.src.buffer, r.dst.buffer);
        let by_threads = match (self.scope(src), self.scope(dst)) {
            (Scope::Fragment, Scope::Fragment) => self.reduce_fragments(&r, span),
            _ => None,
        };
        match by_threads {
            Some(stmts) => out.extend(stmts),
            None => self.reduce_lines(&r, span, out),
        }
    }

    /// In registers, then across threads. `None` where the layouts do not allow it.
    fn reduce_fragments(&mut self, r: &ReduceOp, span: Span) -> Option<Block> {
        let (src, dst) = (r.src.buffer, r.dst.buffer);
        let from = self.fragment(src)?;
        let to = self.fragment(dst)?;
        let dim = r.dim as usize;
        let digits = from.thread_digits(dim)?;
        let combine = self.combine_steps(&digits, from.shape().len() == 1);
        let slot_of = result_slots(&from, &to, dim)?;
        let dtype = self.dtype(dst);
        let how = Folding::of(r, dtype);
        let part = self.temp("part", Scope::Local, dtype, &[to.slots()]);
        let mut out = Vec::new();

        let (d, slot) = self.var("d", VarKind::Loop);
        let start = vec![store(
            part,
            vec![slot],
            identity(r.kind, dtype),
            dtype,
            span,
        )];
        let mut folded = vec![counted(d, to.slots(), unroll(), start, span)];

        let (s, slot) = self.var("s", VarKind::Loop);
        let points = self.points(&from, &slot)?;
        let place = to_expr::form(&slot_of, &[self.tid.clone(), slot.clone()]).remove(0);
        let place = self.simplify(&place);
        let value = self.load(src, vec![slot]).cast_to(dtype);
        let value = prepared(r.kind, value);
        let sum = how.fold(self.load(part, vec![place.clone()]), value);
        let body = vec![store(part, vec![place], sum, dtype, span)];
        let mut inner = Vec::new();
        let all_there = points.guard.is_none();
        guarded(points.guard, body, span, &mut inner);
        folded.push(counted(s, from.slots(), unroll(), inner, span));
        let maxima = Maxima {
            count: from.slots(),
            part,
            slots: to.slots(),
        };
        let of_three = all_there && matches!(r.kind, ReduceKind::Max | ReduceKind::AbsMax);
        out.extend(match of_three {
            true => {
                let element = |lower: &mut Self, number: Expr| {
                    let at = [lower.tid.clone(), number.clone()];
                    let place = to_expr::form(&slot_of, &at).remove(0);
                    let value = lower.load(src, vec![number]).cast_to(dtype);
                    (lower.simplify(&place), prepared(r.kind, value))
                };
                self.integer_maxima(&maxima, folded, element, span)
            }
            false => folded,
        });

        for step in combine {
            match step {
                Step::Xor(mask) => self.combine_lanes(how, part, to.slots(), mask, span, &mut out),
                Step::Shared(line) => {
                    self.combine_shared(how, part, to.slots(), &line, span, &mut out);
                }
            }
        }
        let (d, slot) = self.var("d", VarKind::Loop);
        let total = self.load(part, vec![slot.clone()]);
        let mut finish = Vec::new();
        if r.clear {
            finish.push(store(dst, vec![slot], total, dtype, span));
        } else {
            // A slot without an element has nothing that could be kept.
            let guard = self.points(&to, &slot)?.guard;
            let total = how.fold(self.load(dst, vec![slot.clone()]), total);
            let keep = vec![store(dst, vec![slot], total, dtype, span)];
            guarded(guard, keep, span, &mut finish);
        }
        out.push(counted(d, to.slots(), unroll(), finish, span));
        Some(out)
    }

    /// How the threads along a dimension combine: exchanges inside a warp, the rest through
    /// shared memory. `everyone`: all threads get the result, not only those along the dimension.
    fn combine_steps(&self, digits: &[LineDigit], everyone: bool) -> Vec<Step> {
        let warp = self.target.machine().warp_size as i64;
        let mut steps = Vec::new();
        let mut across = Vec::new();
        // How many threads get the result of one line.
        let mut reached = 1;
        for digit in digits {
            // Lanes past the extent have nothing to add, so the exchange may include them, as
            // long as they are no other digit's.
            let power = digit
                .extent
                .cast_unsigned()
                .next_power_of_two()
                .cast_signed();
            let lanes = power.min((warp / digit.div).max(1));
            let alone = digit.is_top || digit.room % power == 0;
            let exchange = digit.div.count_ones() == 1 && alone && self.threads % warp == 0;
            if !exchange || lanes == 1 {
                across.push(*digit);
                reached *= digit.room;
                continue;
            }
            let mut low = 1;
            while low < lanes {
                steps.push(Step::Xor(digit.div * low));
                low *= 2;
            }
            let extent = (digit.extent + lanes - 1) / lanes;
            if extent > 1 {
                let room = (digit.room + lanes - 1) / lanes;
                across.push(LineDigit {
                    div: digit.div * lanes,
                    extent,
                    room,
                    ..*digit
                });
                reached *= room;
            }
            reached *= lanes;
        }
        let everyone = everyone && reached < self.threads;
        if !across.is_empty() || everyone {
            let digits = across;
            steps.push(Step::Shared(Line { digits, everyone }));
        }
        steps
    }

    fn combine_lanes(
        &mut self,
        how: Folding,
        part: Buffer,
        slots: i64,
        mask: i64,
        span: Span,
        out: &mut Block,
    ) {
        let dtype = self.dtype(part);
        let warp = self.target.machine().warp_size;
        let (d, slot) = self.var("d", VarKind::Loop);
        let result = self.func.add_var("other", dtype, VarKind::Let);
        let own = self.load(part, vec![slot.clone()]);
        let sum = how.fold(own.clone(), self.func.var_expr(result));
        let body = vec![
            Stmt::new(
                StmtKind::Thread(ThreadOp::Shuffle {
                    kind: ShuffleKind::Xor,
                    value: own,
                    lane: Expr::int(mask.into(), DType::I32),
                    width: warp,
                    result,
                }),
                span,
            ),
            store(part, vec![slot], sum, dtype, span),
        ];
        out.push(counted(d, slots, unroll(), body, span));
    }

    /// Every thread leaves its parts in shared memory and folds those of its line.
    fn combine_shared(
        &mut self,
        how: Folding,
        part: Buffer,
        slots: i64,
        line: &Line,
        span: Span,
        out: &mut Block,
    ) {
        let dtype = self.dtype(part);
        let work = self.exchange_buffer("line", dtype, &[slots, self.threads]);
        let (d, slot) = self.var("d", VarKind::Loop);
        let own = self.load(part, vec![slot.clone()]);
        let tid = self.tid.clone();
        let body = vec![store(work, vec![slot, tid.clone()], own, dtype, span)];
        out.push(counted(d, slots, unroll(), body, span));

        // The first thread of the line: this thread's number with the digits taken out.
        let mut thread = match line.everyone {
            true => Expr::i32(0),
            false => {
                let digits = line.digits.iter();
                let first = digits.fold(tid.clone(), |rest, digit| {
                    rest - field(&tid, digit) * digit.div
                });
                let value = self.simplify(&first);
                let (var, first) = self.var("first", VarKind::Let);
                out.push(Stmt::new(StmtKind::Let { var, value }, span));
                first
            }
        };
        let (d, slot) = self.var("d", VarKind::Loop);
        let count: i64 = line.digits.iter().map(|d| d.extent).product();
        let (n, r) = self.var("r", VarKind::Loop);
        let mut place = 1;
        for digit in &line.digits {
            let value = r.clone().floor_div(place).floor_mod(digit.extent);
            thread = thread + value * digit.div;
            place *= digit.extent;
        }
        let thread = self.simplify(&thread);
        let exists = match line.stays_within(self.threads) {
            true => None,
            false => Some(thread.clone().lt(self.threads)),
        };
        let sum = how.fold(
            self.load(part, vec![slot.clone()]),
            self.load(work, vec![slot.clone(), thread]),
        );
        let add = vec![store(part, vec![slot.clone()], sum, dtype, span)];
        let mut inner = Vec::new();
        guarded(exists, add, span, &mut inner);
        let body = vec![
            store(part, vec![slot], identity(how.kind, dtype), dtype, span),
            counted(n, count, tilewright_ir::LoopKind::Serial, inner, span),
        ];
        out.push(counted(d, slots, unroll(), body, span));
    }

    /// Line by line: the threads that hold a result fold its line from memory.
    fn reduce_lines(&mut self, r: &ReduceOp, span: Span, out: &mut Block) {
        let src = match self.scope(r.src.buffer) {
            Scope::Fragment => {
                let data = &self.func.buffers[r.src.buffer];
                let (dtype, shape) = (data.dtype, const_shape(&data.shape));
                let Some(shape) = shape else {
                    return self.give_up(span, "a reduction needs a constant shape");
                };
                let work = self.exchange_buffer("lines", dtype, &shape);
                let whole = Region::whole(work, &self.func.buffers[work]);
                self.copy_points(&r.src, &whole, span, out);
                whole
            }
            _ => r.src.clone(),
        };
        let dim = r.dim as usize;
        let Some(length) = src.dims[dim].extent.as_int() else {
            return self.give_up(span, "a reduction needs a constant extent");
        };
        let dtype = self.dtype(r.dst.buffer);
        let keeps_dim = r.dst.dims.len() == src.dims.len();
        let acc = self.temp("acc", Scope::Local, dtype, &[1]);
        let (kind, how) = (r.kind, Folding::of(r, dtype));
        let (clear, dst) = (r.clear, r.dst.clone());
        self.whole_region_loop(&dst.clone(), span, out, |lower, index| {
            let at_dst: Vec<Expr> = index
                .iter()
                .zip(&dst.dims)
                .map(|(i, d)| d.start.clone() + i.clone().cast_to(d.start.dtype()))
                .collect();
            let (k, step) = lower.var("k", VarKind::Loop);
            let mut rest = index.iter();
            let at_src: Vec<Expr> = src
                .dims
                .iter()
                .enumerate()
                .map(|(d, range)| {
                    let inner = if d == dim {
                        if keeps_dim {
                            rest.next();
                        }
                        step.clone()
                    } else {
                        rest.next().cloned().unwrap_or_else(|| Expr::i32(0))
                    };
                    range.start.clone() + inner.cast_to(range.start.dtype())
                })
                .collect();
            let value = prepared(kind, lower.load(src.buffer, at_src).cast_to(dtype));
            let zero = vec![Expr::i32(0)];
            let sum = how.fold(lower.load(acc, zero.clone()), value);
            let start = if clear {
                identity(kind, dtype)
            } else {
                lower.load(dst.buffer, at_dst.clone())
            };
            let result = lower.load(acc, zero.clone());
            vec![
                store(acc, zero.clone(), start, dtype, span),
                counted(
                    k,
                    length as i64,
                    tilewright_ir::LoopKind::Serial,
                    vec![store(acc, zero, sum, dtype, span)],
                    span,
                ),
                store(dst.buffer, at_dst, result, dtype, span),
            ]
        });
    }

    /// A loop over all points of a region, unit dimensions included.
    fn whole_region_loop(
        &mut self,
        region: &Region,
        span: Span,
        out: &mut Block,
        body: impl FnOnce(&mut Self, Vec<Expr>) -> Block,
    ) {
        let extents: Option<Vec<i64>> = region
            .dims
            .iter()
            .map(|d| i64::try_from(d.extent.as_int()?).ok())
            .collect();
        let Some(shape) = extents else {
            return self.give_up(span, "a reduction needs a constant shape");
        };
        let layout = match self.scope(region.buffer) {
            Scope::Fragment => self.fragment(region.buffer),
            _ => Fragment::partition(&shape, self.threads, 1)
                .ok()
                .map(Arc::new),
        };
        let Some(layout) = layout else {
            return self.give_up(span, "no thread assignment for this reduction");
        };
        let mut vars = Vec::new();
        let mut index = Vec::new();
        for _ in &shape {
            let (var, e) = self.var("i", VarKind::Loop);
            vars.push(var);
            index.push(e);
        }
        let block = body(self, index);
        self.point_loop(&layout, &vars, block, span, out);
    }
}

enum Step {
    /// With the lane whose number differs in this bit.
    Xor(i64),
    /// With all threads that differ in these digits.
    Shared(Line),
}

/// Threads that combine through shared memory.
struct Line {
    digits: Vec<LineDigit>,
    /// There is one line only, and every thread folds it, whether it has a part or not.
    everyone: bool,
}

impl Line {
    /// Whether every combination of the digits is a thread, whatever thread asks.
    fn stays_within(&self, threads: i64) -> bool {
        if self.everyone {
            let last = self.digits.iter().map(|d| d.div * (d.extent - 1));
            return last.sum::<i64>() < threads;
        }
        self.digits.iter().all(|d| match d.is_top {
            true => d.div * d.extent <= threads,
            false => threads % (d.div * d.room) == 0,
        })
    }
}

/// The digit of a thread's number.
fn field(tid: &Expr, digit: &LineDigit) -> Expr {
    let quotient = tid.clone().floor_div(digit.div);
    match digit.is_top {
        true => quotient,
        false => quotient.floor_mod(digit.room),
    }
}

/// From thread and slot of the source to the slot of the result.
fn result_slots(from: &Fragment, to: &Fragment, dim: usize) -> Option<Form> {
    let inverse = from.inverse()?;
    let mut keep = Form::identity(from.shape());
    let same_rank = to.shape().len() == from.shape().len();
    if same_rank {
        keep.outs[dim] = Sum::default();
    } else {
        keep.outs.remove(dim);
    }
    if from.shape().len() == 1 {
        keep.outs = vec![Sum::default(); to.shape().len()];
    }
    keep.outs.push(Sum::default());
    let place = to.layout().form()?;
    let copy = to.shape().len();
    let digits = place.radix.digits();
    let of_copy = |at: usize| digits[at].dim == copy;
    // A result that a thread has in several slots has no slot of its own.
    if radix::ones(place.outs[1].support()).any(of_copy) {
        return None;
    }
    let placed = keep.then(&place)?.only(1);
    let mut back = inverse.form;
    back.outs.pop();
    back.then(&placed)
}

/// The value that a fold starts with.
pub fn identity(kind: ReduceKind, dtype: DType) -> Expr {
    let limits = dtype.scalar.int_range();
    // Not every small float has infinities; its largest number stands for one.
    let float = |value| Expr::float(small_float::round_to(dtype.scalar, value), dtype);
    match kind {
        ReduceKind::Sum
        | ReduceKind::AbsSum
        | ReduceKind::AbsMax
        | ReduceKind::BitOr
        | ReduceKind::BitXor => Expr::zero(dtype),
        ReduceKind::BitAnd => match dtype.scalar {
            Scalar::Bool => Expr::bool(true),
            _ => Expr::int(-1, dtype),
        },
        ReduceKind::Max => match limits {
            Some((low, _)) => Expr::int(low, dtype),
            None => float(f64::NEG_INFINITY),
        },
        ReduceKind::Min => match limits {
            Some((_, high)) => Expr::int(high, dtype),
            None => float(f64::INFINITY),
        },
    }
}

/// The element as the fold takes it.
fn prepared(kind: ReduceKind, value: Expr) -> Expr {
    match kind {
        ReduceKind::AbsSum | ReduceKind::AbsMax => Expr::math(MathFn::Abs, vec![value]),
        _ => value,
    }
}

/// How two values become one.
#[derive(Clone, Copy)]
struct Folding {
    kind: ReduceKind,
    /// NaN wins against numbers in max and min, instead of losing.
    nan_wins: bool,
}

impl Folding {
    /// Only float16 and bfloat16 propagate NaN where they are asked to, as in the language.
    fn of(r: &ReduceOp, dtype: DType) -> Folding {
        let ordered = matches!(
            r.kind,
            ReduceKind::Max | ReduceKind::Min | ReduceKind::AbsMax
        );
        let half = matches!(dtype.scalar, Scalar::F16 | Scalar::BF16);
        Folding {
            kind: r.kind,
            nan_wins: r.nan_propagate && ordered && half,
        }
    }

    fn fold(self, a: Expr, b: Expr) -> Expr {
        let op = match self.kind {
            ReduceKind::Sum | ReduceKind::AbsSum => BinOp::Add,
            ReduceKind::Max | ReduceKind::AbsMax => BinOp::Max,
            ReduceKind::Min => BinOp::Min,
            ReduceKind::BitAnd => BinOp::BitAnd,
            ReduceKind::BitOr => BinOp::BitOr,
            ReduceKind::BitXor => BinOp::BitXor,
        };
        let dtype = a.dtype();
        let node = |kind| Expr::new(kind, dtype, Span::NONE);
        let folded = node(ExprKind::Binary(op, a.clone(), b.clone()));
        if !self.nan_wins {
            return folded;
        }
        // The sum of anything and NaN is NaN.
        let is_nan = |e: &Expr| Expr::math(MathFn::IsNan, vec![e.clone()]);
        let cond = is_nan(&a).or(is_nan(&b));
        let then = node(ExprKind::Binary(BinOp::Add, a, b));
        node(ExprKind::Select {
            cond,
            then,
            otherwise: folded,
        })
    }
}
