//! What lanes of a warp, or threads of the block, do together with their values.

use tilewright_ir::{
    Combiner, ReduceKind, Scalar, ShuffleKind, Span, ThreadOp, VoteKind, thread_ops,
};

use super::{ThreadCode, stray};
use crate::compile::names::Compiled;
use crate::error::RunError;
use crate::exec::threads::lanes::{fold_group, shuffle_source};
use crate::exec::{encode, fold, identity};
use crate::simt::block::BlockRun;
use crate::simt::compile::Compiler;
use crate::simt::counts::InstKind;
use crate::simt::env::Env;
use crate::simt::program::{Op, Slot};
use crate::simt::report::FindingKind;
use crate::simt::step::Pause;
use crate::simt::warp::{Lanes, State, Warp};

/// Lanes that vote and reduce together, on every target as far as the language is concerned.
const GROUP: u32 = 32;

#[derive(Clone, Debug)]
pub(in crate::simt) enum Code {
    Shuffle(Shuffle),
    Vote(Vote),
    WarpReduce(WarpReduce),
    AllReduce(AllReduce),
}

#[derive(Clone, Debug)]
pub(in crate::simt) struct Shuffle {
    kind: ShuffleKind,
    value: Slot,
    lane: Slot,
    width: u32,
    result: Slot,
}

#[derive(Clone, Debug)]
pub(in crate::simt) struct Vote {
    kind: VoteKind,
    value: Slot,
    result: Slot,
}

#[derive(Clone, Debug)]
pub(in crate::simt) struct WarpReduce {
    kind: ReduceKind,
    scalar: Scalar,
    value: Slot,
    result: Slot,
}

/// A fold over the threads of a block.
#[derive(Clone, Debug)]
pub(in crate::simt) struct AllReduce {
    value: Slot,
    cond: Slot,
    dst: u32,
    /// The thread axes that are folded.
    axes: Box<[u8]>,
    /// The fold: a lanes register for each side, the code and where its result is.
    lhs: Slot,
    rhs: Slot,
    body: Box<[Op]>,
    result: Slot,
    identity: Slot,
}

pub(super) fn compile(c: &mut Compiler<'_>, op: &ThreadOp, span: Span) -> Compiled<Op> {
    let code = match op {
        ThreadOp::Shuffle {
            kind,
            value,
            lane,
            width,
            result,
        } => {
            let warp = c.target.machine().warp_size;
            if *width == 0 || *width > warp || !width.is_power_of_two() {
                return Err(RunError::invalid(
                    span,
                    format!("the width of a shuffle is a power of two up to {warp}"),
                ));
            }
            Code::Shuffle(Shuffle {
                kind: *kind,
                value: c.scalar(value)?,
                lane: c.scalar(lane)?,
                width: *width,
                result: c.result(*result),
            })
        }
        ThreadOp::Vote {
            kind,
            value,
            result,
        } => Code::Vote(Vote {
            kind: *kind,
            value: c.cast(value, Scalar::Bool)?,
            result: c.result(*result),
        }),
        ThreadOp::WarpReduce {
            kind,
            value,
            result,
        } => {
            let scalar = value.dtype().scalar;
            if kind.is_bitwise() && scalar.is_float() {
                return Err(RunError::invalid(span, "a bitwise reduction of floats"));
            }
            Code::WarpReduce(WarpReduce {
                kind: *kind,
                scalar,
                value: c.scalar(value)?,
                result: c.result(*result),
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
            let scalar = c.func.buffers[*dst].dtype.scalar;
            let value = c.cast(value, scalar)?;
            let cond = c.cast(cond, Scalar::Bool)?;
            let dst = c.element(*dst, dst_indices, 1, true, span)?;
            Code::AllReduce(all_reduce(c, combiner, value, cond, dst, axes)?)
        }
        thread_ops!(atomics barriers plain) => return Err(stray(span)),
    };
    Ok(Op::Thread(Box::new(ThreadCode::Lanes(code))))
}

fn all_reduce(
    c: &mut Compiler<'_>,
    combiner: &Combiner,
    value: Slot,
    cond: Slot,
    dst: u32,
    axes: &[u8],
) -> Compiled<AllReduce> {
    let lhs = c.fresh_lanes();
    let rhs = c.fresh_lanes();
    c.vars.insert(combiner.lhs, vec![lhs]);
    c.vars.insert(combiner.rhs, vec![rhs]);
    let identity = c.scalar(&combiner.identity)?;
    // The fold is run when all threads have come, so its code stands apart.
    let start = c.program.ops.len();
    let result = c.scalar(&combiner.body)?;
    let body: Box<[Op]> = c.program.ops.split_off(start).into();
    c.program.stmt_of.truncate(start);
    let plain = |op: &Op| matches!(op, Op::Alu1 { .. } | Op::Alu2 { .. } | Op::Alu3 { .. });
    if !body.iter().all(plain) {
        return Err(RunError::invalid(
            combiner.body.span(),
            "a fold works on its two values alone",
        ));
    }
    Ok(AllReduce {
        value,
        cond,
        dst,
        axes: axes.into(),
        lhs,
        rhs,
        body,
        result,
        identity,
    })
}

impl Env<'_> {
    pub(super) fn lanes_op(&mut self, warp: &mut Warp, code: &Code) -> Pause {
        match code {
            Code::Shuffle(code) => self.shuffle(warp, code),
            Code::Vote(code) => {
                self.count(warp, InstKind::Vote);
                if code.kind.is_of_block() {
                    return Pause::Block;
                }
                self.vote(warp, code);
            }
            Code::WarpReduce(code) => self.warp_reduce(warp, code),
            Code::AllReduce(_) => {
                self.count(warp, InstKind::Shuffle);
                return Pause::Block;
            }
        }
        Pause::Turn
    }

    fn shuffle(&mut self, warp: &mut Warp, code: &Shuffle) {
        self.count(warp, InstKind::Shuffle);
        self.converged(warp, "a shuffle");
        let mut words = vec![0; warp.width as usize];
        for own in Lanes(warp.mask) {
            let asked = warp.regs.lane(code.lane, own as usize) as i64;
            let from = shuffle_source(code.kind, own as usize, asked, code.width as usize);
            if warp.mask >> from & 1 == 0 {
                self.report(warp, FindingKind::DivergentCollective, Some(own), || {
                    format!("a shuffle asks lane {from} of the warp, which is not here")
                });
                continue;
            }
            words[own as usize] = warp.regs.lane(code.value, from);
        }
        for own in Lanes(warp.mask) {
            let word = words[own as usize];
            warp.regs.set_lane(code.result, own as usize, word);
        }
    }

    /// The votes of one warp's groups.
    fn vote(&mut self, warp: &mut Warp, code: &Vote) {
        self.converged(warp, "a vote");
        let yes = warp.regs.truth(code.value, warp.mask);
        for lane in Lanes(warp.mask) {
            let first = lane - lane % GROUP;
            let group = u64::from(u32::MAX) << first;
            let (here, for_it) = (warp.mask & group, yes & group);
            let v = match code.kind {
                VoteKind::Any => u64::from(for_it != 0),
                VoteKind::All => u64::from(for_it == here),
                VoteKind::Ballot => for_it >> first,
                // Those are decided when the block has come together.
                VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount => 0,
            };
            warp.regs.set_lane(code.result, lane as usize, v);
        }
    }

    fn warp_reduce(&mut self, warp: &mut Warp, code: &WarpReduce) {
        self.converged(warp, "a warp reduction");
        self.count(warp, InstKind::Shuffle);
        let (kind, scalar) = (code.kind, code.scalar);
        let mut first = 0;
        while first < warp.width {
            let group = warp.mask & u64::from(u32::MAX) << first;
            let total = Lanes(group).fold(identity(kind, scalar), |acc, lane| {
                let word = warp.regs.lane(code.value, lane as usize);
                fold(kind, scalar, acc, word, false)
            });
            for lane in Lanes(group) {
                warp.regs.set_lane(code.result, lane as usize, total);
            }
            first += GROUP;
        }
    }
}

impl BlockRun<'_> {
    /// What all threads of the block compute together at the barrier they stand at.
    pub(in crate::simt) fn collective(&mut self, first: usize) {
        let program = self.env.program;
        let Warp { pc, rank, .. } = self.warps[first];
        let Op::Thread(code) = &program.ops[pc as usize] else {
            return;
        };
        let ThreadCode::Lanes(code) = &**code else {
            return;
        };
        match code {
            Code::Vote(Vote {
                kind,
                value,
                result,
            }) if kind.is_of_block() => {
                let (mut yes, mut all) = (0u32, 0u32);
                for warp in &self.warps {
                    if warp.state == State::Block && (warp.pc, warp.rank) == (pc, rank) {
                        yes += warp.regs.truth(*value, warp.mask).count_ones();
                        all += warp.mask.count_ones();
                    }
                }
                let verdict = match kind {
                    VoteKind::BlockOr => u64::from(yes > 0),
                    VoteKind::BlockAnd => u64::from(yes == all),
                    _ => u64::from(yes),
                };
                for warp in &mut self.warps {
                    if warp.state == State::Block && (warp.pc, warp.rank) == (pc, rank) {
                        for lane in Lanes(warp.mask) {
                            warp.regs.set_lane(*result, lane as usize, verdict);
                        }
                    }
                }
            }
            Code::AllReduce(code) => self.all_reduce(code, pc, rank),
            _ => {}
        }
    }

    fn all_reduce(&mut self, code: &AllReduce, pc: u32, rank: u32) {
        let program = self.env.program;
        let group = |thread: u32| fold_group(program.threads, &code.axes, thread as usize);
        let here: Vec<usize> = (0..self.warps.len())
            .filter(|&w| self.warps[w].state == State::Block && self.warps[w].pc == pc)
            .filter(|&w| self.warps[w].rank == rank)
            .collect();
        let mut totals: Vec<Option<u64>> = vec![None; program.num_threads()];
        for &w in &here {
            for lane in Lanes(self.warps[w].mask) {
                let warp = &mut self.warps[w];
                let l = lane as usize;
                let identity = warp.regs.lane(code.identity, l);
                let taken = warp.regs.lane(code.cond, l) != 0;
                let value = if taken {
                    warp.regs.lane(code.value, l)
                } else {
                    identity
                };
                let total = &mut totals[group(warp.thread(lane))];
                warp.regs.set_lane(code.lhs, l, total.unwrap_or(identity));
                warp.regs.set_lane(code.rhs, l, value);
                for op in &code.body {
                    // A fold that traps leaves what it had; it is the program's arithmetic.
                    if warp.regs.run(op, 1 << lane).is_err() {
                        break;
                    }
                }
                *total = Some(warp.regs.lane(code.result, l));
            }
        }
        let access = &program.accesses[code.dst as usize];
        let scalar = program.buffers[access.buffer as usize].scalar;
        for &w in &here {
            let warp = &mut self.warps[w];
            let mut addresses = self.env.addresses(warp, access, warp.mask);
            addresses.uniform = false;
            let first = warp.thread(0);
            self.env.store_raw(warp, access, &addresses, |_, _, lane| {
                let total = totals[group(first + lane)].unwrap_or(0);
                encode(scalar, total)
            });
        }
    }
}
