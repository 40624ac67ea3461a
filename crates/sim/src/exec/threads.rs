//! Thread operations: atomics, what lanes of a warp do together, barriers.

use tilewright_ir::{AtomicOp, ReduceKind, Scalar, ShuffleKind, VoteKind};

use crate::barrier::Counting;
use crate::error::{Eval, Fault, codes};
use crate::exec::Exec;
use crate::exec::access::encode;
use crate::exec::mask::Mask;
use crate::exec::state::{Globals, Wait};
use crate::exec::tiles::{cast_slot, fold};
use crate::program::{
    Access, AllReduceCode, BarrierRef, Int, Num, Place, Space, Thread, ThreadKind,
};
use crate::value;

/// Lanes that a warp reduction folds, on every target.
const REDUCED: usize = 32;

impl Exec<'_, '_> {
    /// Does a thread operation, or says what it has to wait for.
    pub(super) fn thread(&mut self, thread: &Thread) -> Eval<Option<Wait>> {
        let Thread {
            kind,
            varying,
            in_point,
        } = thread;
        match kind {
            ThreadKind::AtomicRmw {
                op,
                target,
                value,
                result,
            } => self.once_or_each(*in_point, |this| {
                this.atomic_rmw(*op, target, value, *result)
            })?,
            ThreadKind::AtomicVecAdd { dst, src } => {
                self.once_or_each(*in_point, |this| this.atomic_vec_add(dst, src))?
            }
            ThreadKind::Shuffle {
                kind,
                value,
                lane,
                width,
                result,
            } => self.shuffle(*kind, value, lane, *width as usize, *result, *varying)?,
            ThreadKind::Vote {
                kind,
                value,
                result,
            } => self.vote(*kind, value, *result)?,
            ThreadKind::WarpReduce {
                kind,
                scalar,
                value,
                result,
            } => self.warp_reduce(*kind, *scalar, value, *result, *varying)?,
            ThreadKind::AllReduce(code) => self.all_reduce(code)?,
            ThreadKind::Sync { id, count } => return self.sync(*id, *count),
            ThreadKind::SyncGrid => return self.sync_grid(),
            ThreadKind::Arrive {
                barrier,
                bytes,
                arrive,
            } => {
                if *varying {
                    self.each_lane(|this| {
                        this.arrive_at(barrier, bytes.as_ref(), u32::from(*arrive))
                    })?;
                } else {
                    // All active threads arrive at one barrier and announce the same bytes.
                    for _ in 0..self.strand.active.len() {
                        self.arrive_at(barrier, bytes.as_ref(), u32::from(*arrive))?;
                    }
                }
            }
            ThreadKind::Wait { barrier, parity } => {
                return self.wait(barrier, parity, *varying);
            }
            ThreadKind::SetCount { barrier, count } => {
                let at = self.barrier(barrier)?;
                self.block.mbarriers[at] = crate::barrier::Mbarrier::new(*count);
            }
            ThreadKind::Dp4a { a, b, c } => {
                if *varying {
                    self.each_lane(|this| this.dp4a(a, b, c))?;
                } else {
                    self.dp4a(a, b, c)?;
                }
            }
            ThreadKind::Print { message, args } => {
                if *varying {
                    self.each_lane(|this| this.print_line(message, args))?;
                } else {
                    self.print_line(message, args)?;
                }
            }
            ThreadKind::Nop => {}
        }
        Ok(None)
    }

    /// For the point of a parallel loop, or for every active thread.
    fn once_or_each(
        &mut self,
        in_point: bool,
        mut f: impl FnMut(&mut Self) -> Eval<()>,
    ) -> Eval<()> {
        if in_point { f(self) } else { self.each_lane(f) }
    }

    fn atomic_rmw(
        &mut self,
        op: AtomicOp,
        target: &Access,
        value: &Num,
        result: Option<Place>,
    ) -> Eval<()> {
        let program = self.program;
        let info = &program.buffers[target.buffer as usize];
        let value = self.num(value)?;
        let old = match self.element(info, target)? {
            Some(index) => self.atomic(op, info, index, value, result.is_some(), |this| {
                this.coordinates(target)
            })?,
            None => info.safe,
        };
        if let Some(place) = result {
            self.set(place, old);
        }
        Ok(())
    }

    fn atomic_vec_add(&mut self, dst: &[Access], src: &[Access]) -> Eval<()> {
        let program = self.program;
        for (target, source) in dst.iter().zip(src) {
            let info = &program.buffers[target.buffer as usize];
            let from = program.buffers[source.buffer as usize].scalar;
            let value = cast_slot(from, info.scalar, self.load_element(source)?);
            if let Some(index) = self.element(info, target)? {
                self.atomic(AtomicOp::Add, info, index, value, false, |this| {
                    this.coordinates(target)
                })?;
            }
        }
        Ok(())
    }

    fn shuffle(
        &mut self,
        kind: ShuffleKind,
        value: &Num,
        lane: &Int,
        width: usize,
        result: Place,
        varying: bool,
    ) -> Eval<()> {
        if !varying {
            // All lanes hold one value, whichever of them is asked.
            let v = self.num(value)?;
            self.set(result, v);
            return Ok(());
        }
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
            values[this.lane] = this.num(value)?;
            sources[this.lane] = this.int(lane)?;
            Ok(())
        })?;
        self.each_lane(|this| {
            let own = (this.lane % width) as i64;
            let first = this.lane - this.lane % width;
            let asked = sources[this.lane];
            let from = match kind {
                ShuffleKind::Index => asked.rem_euclid(width as i64),
                ShuffleKind::Up => own - asked,
                ShuffleKind::Down => own + asked,
                ShuffleKind::Xor => own ^ asked,
            };
            let inside = (0..width as i64).contains(&from);
            let from = if inside {
                first + from as usize
            } else {
                this.lane
            };
            if !active.contains(from) {
                return Err(this.fail(Fault::new(
                    codes::DIVERGENT_COLLECTIVE,
                    format!("a shuffle asks thread {from}, which is not here"),
                )));
            }
            this.set(result, values[from]);
            Ok(())
        })
    }

    fn vote(&mut self, kind: VoteKind, value: &Int, result: Place) -> Eval<()> {
        if kind.is_of_block() {
            self.whole_block("a vote of the block")?;
        }
        let active = self.strand.active;
        let yes = self.mask_where(value)?;
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
            this.set(result, v as u64);
            Ok(())
        })
    }

    fn warp_reduce(
        &mut self,
        kind: ReduceKind,
        scalar: Scalar,
        value: &Num,
        result: Place,
        varying: bool,
    ) -> Eval<()> {
        let (active, all) = (self.strand.active, self.strand.all);
        let mut values = vec![0; self.program.num_threads()];
        self.each_lane(|this| {
            values[this.lane] = this.num(value)?;
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
                    let start = super::tiles::identity(kind, scalar);
                    let lanes = warp.and(active);
                    let total = lanes
                        .iter()
                        .fold(start, |acc, l| fold(kind, scalar, acc, values[l], false));
                    folded = Some((first, total));
                    total
                }
            };
            self.set(result, total);
        }
        self.by_lane = false;
        self.lane = active.first();
        Ok(())
    }

    fn all_reduce(&mut self, code: &AllReduceCode) -> Eval<()> {
        self.whole_block("a reduction over threads")?;
        let threads = self.program.threads.map(|t| t as usize);
        let mut contributions = vec![0u64; self.program.num_threads()];
        self.each_lane(|this| {
            contributions[this.lane] = if this.int(&code.cond)? != 0 {
                this.num(&code.value)?
            } else {
                this.num(&code.identity)?
            };
            Ok(())
        })?;
        // Threads that differ only in the folded axes share the number of the rest.
        let group = |lane: usize| {
            let index = [
                lane % threads[0],
                lane / threads[0] % threads[1],
                lane / threads[0] / threads[1],
            ];
            let kept = |axis: usize| {
                if code.axes.contains(&(axis as u8)) {
                    0
                } else {
                    index[axis]
                }
            };
            kept(0) + threads[0] * (kept(1) + threads[1] * kept(2))
        };
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

    #[cold]
    fn divergent_barrier(&mut self, what: &str) -> crate::error::Stop {
        let (active, all) = (self.strand.active.len(), self.strand.all.len());
        self.fail(
            Fault::new(
                codes::DIVERGENT_BARRIER,
                format!("{what} that only some threads reach"),
            )
            .note(format!("{active} of {all} threads took this way"))
            .help("move the barrier out of the thread-dependent condition"),
        )
    }

    fn sync(&mut self, id: u32, count: Option<u32>) -> Eval<Option<Wait>> {
        let needed = match count {
            Some(count) => count,
            None => {
                if self.strand.active != self.strand.all {
                    return Err(self.divergent_barrier("a barrier"));
                }
                self.program.num_threads() as u32
            }
        };
        let threads = self.strand.active.len();
        let at = id as usize;
        if at >= MAX_BARRIERS {
            let message = format!("barrier {id}: there are {MAX_BARRIERS}");
            return Err(self.fail(Fault::new(codes::INVALID_IR, message)));
        }
        if self.block.counting.len() <= at {
            self.block.counting.resize(at + 1, Counting::default());
        }
        let barrier = &mut self.block.counting[at];
        let ticket = match self.strand.ticket {
            Some(ticket) => ticket,
            None => barrier.arrive(threads, u64::from(needed)),
        };
        if barrier.passed(ticket) {
            self.strand.ticket = None;
            return Ok(None);
        }
        self.strand.ticket = Some(ticket);
        Ok(Some(Wait::Sync {
            id,
            needed,
            arrived: barrier.arrived,
        }))
    }

    fn sync_grid(&mut self) -> Eval<Option<Wait>> {
        if self.strand.active != self.strand.all {
            return Err(self.divergent_barrier("a grid barrier"));
        }
        let total = self.program.num_blocks() * self.program.num_threads() as u64;
        let threads = self.strand.all.len();
        let ticket = match self.strand.ticket {
            Some(ticket) => ticket,
            None => self.grid_barrier.arrive(threads, total),
        };
        if self.grid_barrier.passed(ticket) {
            self.strand.ticket = None;
            if let Globals::Direct { races, .. } = &mut *self.globals {
                races.pass_grid_barrier(self.grid_barrier.generation);
            }
            return Ok(None);
        }
        self.strand.ticket = Some(ticket);
        Ok(Some(Wait::Grid))
    }

    /// The number of the barrier meant.
    fn barrier(&mut self, barrier: &BarrierRef) -> Eval<usize> {
        let index = self.int(&barrier.index)?;
        let program = self.program;
        let info = &program.buffers[barrier.buffer as usize];
        let count = info.shape.first().copied().unwrap_or(1);
        match info.space {
            Space::Barrier(first) if (0..count).contains(&index) => {
                Ok(first as usize + index as usize)
            }
            _ => Err(self.out_of_bounds(info, &[index], tilewright_ir::Span::NONE)),
        }
    }

    pub(super) fn arrive_at(
        &mut self,
        barrier: &BarrierRef,
        bytes: Option<&Int>,
        arrivals: u32,
    ) -> Eval<()> {
        let at = self.barrier(barrier)?;
        if let Some(bytes) = bytes {
            let bytes = self.int(bytes)?;
            self.block.mbarriers[at].expect(bytes);
        }
        for _ in 0..arrivals {
            if !self.block.mbarriers[at].arrive() {
                let name = &self.program.buffers[barrier.buffer as usize].name;
                let message = format!("more threads arrive at `{name}` than its phase counts");
                return Err(self.fail(Fault::new(codes::BARRIER_COUNT, message)));
            }
        }
        Ok(())
    }

    fn wait(&mut self, barrier: &BarrierRef, parity: &Int, varying: bool) -> Eval<Option<Wait>> {
        let mut wait = None;
        let check = |this: &mut Self| {
            let at = this.barrier(barrier)?;
            let parity = this.int(parity)?;
            let state = this.block.mbarriers[at];
            if !state.passed(parity) {
                let info = &this.program.buffers[barrier.buffer as usize];
                let first = match info.space {
                    Space::Barrier(first) => first as usize,
                    _ => at,
                };
                wait = Some(Wait::Mbarrier {
                    name: info.name.clone(),
                    index: (at - first) as i64,
                    parity: parity & 1,
                    pending: state.pending,
                    bytes: state.bytes,
                });
            }
            Ok(())
        };
        if varying {
            self.each_lane(check)?;
        } else {
            let mut check = check;
            check(self)?;
        }
        Ok(wait)
    }

    /// `C += Σ A[i]·B[i]` over four pairs.
    fn dp4a(&mut self, a: &[Access], b: &[Access], c: &Access) -> Eval<()> {
        let program = self.program;
        let info = &program.buffers[c.buffer as usize];
        let mut sum = self.load_element(c)? as i64;
        for (a, b) in a.iter().zip(b) {
            let (x, y) = (self.load_element(a)? as i64, self.load_element(b)? as i64);
            sum = value::wrap(info.scalar, sum.wrapping_add(x.wrapping_mul(y)));
        }
        if let Some(index) = self.element(info, c)? {
            let raw = encode(info.scalar, sum as u64);
            self.write(info.space, info.bits(), index, raw);
        }
        Ok(())
    }

    fn print_line(&mut self, message: &str, args: &[(Num, Scalar)]) -> Eval<()> {
        let mut line = message.to_string();
        for (arg, scalar) in args {
            let slot = self.num(arg)?;
            line += match value::number(*scalar, slot) {
                tilewright_ir::small_float::Number::Int(v) => format!(" {v}"),
                tilewright_ir::small_float::Number::Float(v) => format!(" {v}"),
            }
            .as_str();
        }
        self.print(line);
        Ok(())
    }
}

/// Named barriers of a block.
const MAX_BARRIERS: usize = 16;
