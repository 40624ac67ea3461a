//! What lanes of a warp, or threads of the block, do together with their values.

use tilewright_ir::{
    Buffer, Combiner, Expr, ReduceKind, Scalar, ShuffleKind, Span, ThreadOp, VoteKind, thread_ops,
};

use super::{Code as Any, push, stray};
use crate::compile::expr;
use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::error::{Eval, Fault, codes};
use crate::exec::mask::Mask;
use crate::exec::{Exec, encode, fold, identity};
use crate::program::{Access, Int, Num, Place};

/// Lanes that a warp reduction folds, on every target.
const REDUCED: usize = 32;

#[derive(Clone, Debug)]
pub(super) enum Code {
    Shuffle(Shuffle),
    Vote(Vote),
    WarpReduce(WarpReduce),
    AllReduce(Box<AllReduce>),
}

#[derive(Clone, Debug)]
pub(super) struct Shuffle {
    kind: ShuffleKind,
    value: Num,
    lane: Int,
    width: u32,
    result: Place,
}

#[derive(Clone, Debug)]
pub(super) struct Vote {
    kind: VoteKind,
    value: Int,
    result: Place,
}

#[derive(Clone, Debug)]
pub(super) struct WarpReduce {
    kind: ReduceKind,
    scalar: Scalar,
    value: Num,
    result: Place,
}

#[derive(Clone, Debug)]
pub(super) struct AllReduce {
    lhs: Place,
    rhs: Place,
    body: Num,
    identity: Num,
    value: Num,
    cond: Int,
    dst: Access,
    axes: Vec<u8>,
}

pub(super) fn compile(b: &mut Builder<'_, '_>, op: &ThreadOp, span: Span) -> Compiled<()> {
    let varying = op.result().is_none_or(|var| b.var_varies(var));
    let code = match op {
        ThreadOp::Shuffle {
            kind,
            value,
            lane,
            width,
            result,
        } => {
            if *width > 64 || !width.is_power_of_two() {
                return Err(b.invalid("the width of a shuffle is a power of two up to 64"));
            }
            Code::Shuffle(Shuffle {
                kind: *kind,
                value: expr::num(b.names, value, 0)?,
                lane: expr::int(b.names, lane, 0)?,
                width: *width,
                result: b.names.define_scalar(*result, span)?,
            })
        }
        ThreadOp::Vote {
            kind,
            value,
            result,
        } => {
            let condition = condition(b, value)?;
            Code::Vote(Vote {
                kind: *kind,
                value: condition,
                result: b.names.define_scalar(*result, span)?,
            })
        }
        ThreadOp::WarpReduce {
            kind,
            value,
            result,
        } => {
            let scalar = value.dtype().scalar;
            if kind.is_bitwise() && scalar.is_float() {
                return Err(b.invalid("a bitwise reduction of floats"));
            }
            Code::WarpReduce(WarpReduce {
                kind: *kind,
                scalar,
                value: expr::num(b.names, value, 0)?,
                result: b.names.define_scalar(*result, span)?,
            })
        }
        ThreadOp::AllReduce {
            combiner,
            value,
            cond,
            dst,
            dst_indices,
            axes,
        } => {
            let code = all_reduce(b, combiner, value, cond, (*dst, dst_indices), axes, span)?;
            Code::AllReduce(Box::new(code))
        }
        thread_ops!(atomics barriers plain) => return Err(stray(b)),
    };
    push(b, Any::Lanes(code), varying);
    Ok(())
}

fn all_reduce(
    b: &mut Builder<'_, '_>,
    combiner: &Combiner,
    value: &Expr,
    cond: &Expr,
    (dst, dst_indices): (Buffer, &[Expr]),
    axes: &[u8],
    span: Span,
) -> Compiled<AllReduce> {
    let scalar = b.names.func.buffers[dst].dtype.scalar;
    let lhs = Place::Slot(b.names.fresh());
    let rhs = Place::Slot(b.names.fresh());
    b.names.place_at(combiner.lhs, lhs);
    b.names.place_at(combiner.rhs, rhs);
    Ok(AllReduce {
        lhs,
        rhs,
        body: expr::cast(b.names, &combiner.body, 0, scalar)?,
        identity: expr::cast(b.names, &combiner.identity, 0, scalar)?,
        value: expr::cast(b.names, value, 0, scalar)?,
        cond: expr::int(b.names, cond, 0)?,
        dst: b.store_target(dst, dst_indices, 0, span)?,
        axes: axes.to_vec(),
    })
}

/// Votes take any number that is zero or not.
fn condition(b: &mut Builder<'_, '_>, value: &Expr) -> Compiled<Int> {
    match expr::cast(b.names, value, 0, Scalar::Bool)? {
        Num::I(node) => Ok(node),
        Num::F(_) => Err(b.invalid("a vote on a float")),
    }
}

impl Exec<'_, '_> {
    pub(super) fn lanes_op(&mut self, code: &Code, varying: bool) -> Eval<()> {
        match code {
            Code::Shuffle(code) => self.shuffle(code, varying),
            Code::Vote(code) => self.vote(code),
            Code::WarpReduce(code) => self.warp_reduce(code, varying),
            Code::AllReduce(code) => self.all_reduce(code),
        }
    }

    fn shuffle(&mut self, code: &Shuffle, varying: bool) -> Eval<()> {
        if !varying {
            // All lanes hold one value, whichever of them is asked.
            let v = self.num(&code.value)?;
            self.set(code.result, v);
            return Ok(());
        }
        let width = code.width as usize;
        if width > self.limits.warp {
            let message = format!(
                "a shuffle over {width} lanes: a warp has {}",
                self.limits.warp
            );
            return Err(self.fail(Fault::new(codes::UNSUPPORTED, message)));
        }
        let active = self.strand.active;
        let mut values = vec![0; self.program.num_threads()];
        let mut sources = vec![0i64; values.len()];
        self.each_lane(|this| {
            values[this.lane] = this.num(&code.value)?;
            sources[this.lane] = this.int(&code.lane)?;
            Ok(())
        })?;
        self.each_lane(|this| {
            let from = shuffle_source(code.kind, this.lane, sources[this.lane], width);
            if !active.contains(from) {
                return Err(this.fail(Fault::new(
                    codes::DIVERGENT_COLLECTIVE,
                    format!("a shuffle asks thread {from}, which is not here"),
                )));
            }
            this.set(code.result, values[from]);
            Ok(())
        })
    }

    fn vote(&mut self, code: &Vote) -> Eval<()> {
        let kind = code.kind;
        if kind.is_of_block() {
            self.whole_block("a vote of the block")?;
        }
        let active = self.strand.active;
        let yes = self.mask_where(&code.value)?;
        self.each_lane(|this| {
            let size = this.limits.warp;
            let first = this.lane - this.lane % size;
            let warp = Mask::range(first, (first + size).min(this.program.num_threads()));
            let (here, for_it) = (warp.and(active), warp.and(yes));
            let v = match kind {
                VoteKind::Any => i64::from(!for_it.is_empty()),
                VoteKind::All => i64::from(for_it == here),
                VoteKind::Ballot => for_it.iter().map(|lane| 1i64 << (lane - first)).sum(),
                VoteKind::BlockOr => i64::from(!yes.is_empty()),
                VoteKind::BlockAnd => i64::from(yes == active),
                VoteKind::BlockCount => i64::from(yes.len()),
            };
            this.set(code.result, v as u64);
            Ok(())
        })
    }

    fn warp_reduce(&mut self, code: &WarpReduce, varying: bool) -> Eval<()> {
        let (kind, scalar) = (code.kind, code.scalar);
        let (active, all) = (self.strand.active, self.strand.all);
        let mut values = vec![0; self.program.num_threads()];
        self.each_lane(|this| {
            values[this.lane] = this.num(&code.value)?;
            Ok(())
        })?;
        let mut folded: Option<(usize, u64)> = None;
        let lanes = if varying {
            active
        } else {
            Mask::range(active.first(), active.first() + 1)
        };
        self.by_lane = true;
        for lane in lanes.iter() {
            self.lane = lane;
            let first = lane - lane % REDUCED;
            let total = match folded {
                Some((warp, total)) if warp == first => total,
                _ => {
                    let warp = Mask::range(first, (first + REDUCED).min(values.len()));
                    if warp.and(all) != warp.and(active) {
                        return Err(self.fail(
                            Fault::new(
                                codes::DIVERGENT_COLLECTIVE,
                                "a warp reduction needs all lanes of the warp",
                            )
                            .help("move it out of the thread-dependent condition"),
                        ));
                    }
                    let start = identity(kind, scalar);
                    let lanes = warp.and(active);
                    let total = lanes
                        .iter()
                        .fold(start, |acc, l| fold(kind, scalar, acc, values[l], false));
                    folded = Some((first, total));
                    total
                }
            };
            self.set(code.result, total);
        }
        self.by_lane = false;
        self.lane = active.first();
        Ok(())
    }

    fn all_reduce(&mut self, code: &AllReduce) -> Eval<()> {
        self.whole_block("a reduction over threads")?;
        let mut contributions = vec![0u64; self.program.num_threads()];
        self.each_lane(|this| {
            contributions[this.lane] = if this.int(&code.cond)? != 0 {
                this.num(&code.value)?
            } else {
                this.num(&code.identity)?
            };
            Ok(())
        })?;
        let group = |lane| fold_group(self.program.threads, &code.axes, lane);
        let mut totals: Vec<Option<u64>> = vec![None; contributions.len()];
        for (lane, &contribution) in contributions.iter().enumerate() {
            let at = group(lane);
            let acc = match totals[at] {
                Some(acc) => acc,
                None => self.num(&code.identity)?,
            };
            self.set(code.lhs, acc);
            self.set(code.rhs, contribution);
            totals[at] = Some(self.num(&code.body)?);
        }
        let program = self.program;
        let info = &program.buffers[code.dst.buffer as usize];
        self.each_lane(|this| {
            if let Some(index) = this.element(info, &code.dst)? {
                let total = totals[group(this.lane)].unwrap_or(0);
                this.write(info.space, info.bits(), index, encode(info.scalar, total));
            }
            Ok(())
        })
    }

    /// What all threads of the block must do together.
    fn whole_block(&mut self, what: &str) -> Eval<()> {
        if self.strand.active != self.strand.all {
            return Err(self.divergent_barrier(what));
        }
        if self.strand.all.len() as usize != self.program.num_threads() {
            let message = format!("{what} in a kernel with warp-group regions");
            return Err(self.fail(Fault::new(codes::UNSUPPORTED, message)));
        }
        Ok(())
    }
}

/// The lane that a lane asks for: itself, where that lies outside of its segment.
pub(crate) fn shuffle_source(kind: ShuffleKind, lane: usize, asked: i64, width: usize) -> usize {
    let (own, segment) = ((lane % width) as i64, width as i64);
    let from = match kind {
        ShuffleKind::Index => asked.rem_euclid(segment),
        ShuffleKind::Up => own - asked,
        ShuffleKind::Down => own + asked,
        ShuffleKind::Xor => own ^ asked,
    };
    match (0..segment).contains(&from) {
        true => lane - lane % width + from as usize,
        false => lane,
    }
}

/// The first of the threads whose values are folded with a thread's: those that differ from it
/// in the folded axes only.
pub(crate) fn fold_group(threads: [u32; 3], axes: &[u8], thread: usize) -> usize {
    let [x, y, _] = threads.map(|t| t as usize);
    let at = [thread % x, thread / x % y, thread / x / y];
    let kept = |axis: u8| match axes.contains(&axis) {
        true => 0,
        false => at[usize::from(axis)],
    };
    kept(0) + x * (kept(1) + y * kept(2))
}
