//! A warp: its registers, private memory, mask, clock and what it waits for.

use super::alu::Registers;
use super::program::{Op, Pc, Program, Slot};
use super::queue::Queue;

/// The largest warp of any target.
pub(super) const MAX_LANES: usize = 64;

/// A warp of a block.
#[derive(Debug)]
pub(super) struct Warp {
    /// Its number among the warps that run together.
    pub index: u32,
    /// The number of its block in the cluster, and of that block's first warp.
    pub rank: u32,
    pub first_of_block: u32,
    /// Lanes of the target's warps.
    pub width: u32,
    /// The lanes that have a thread; the last warp may lack some.
    pub all: u64,
    pub mask: u64,
    pub pc: Pc,
    pub frames: Vec<Frame>,
    /// Masks put aside inside expressions.
    pub saved: Vec<u64>,
    pub regs: Registers,
    pub local: Local,
    /// What the warp has heard of each warp's clock; its own entry is its clock.
    pub clock: Vec<u32>,
    pub queue: Queue,
    pub state: State,
    /// The barrier that it waits for, and the phases of it that had completed when it came there.
    pub awaits: Option<(usize, u64)>,
    /// It has come to the barrier of the cluster, and not waited there: how often that had opened.
    pub half: Option<u64>,
    pub steps: u64,
}

/// An open construct of control flow.
#[derive(Clone, Copy, Debug)]
pub(super) enum Frame {
    If {
        /// Lanes for the second branch.
        otherwise: u64,
        /// Lanes that came to the end of the first branch.
        done: u64,
    },
    Loop {
        /// Lanes that entered, and go on after the loop.
        entered: u64,
        /// Lanes that have not left.
        live: u64,
    },
}

/// Whether a warp can go on.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum State {
    Ready,
    /// At a barrier of the whole block, or a collective with one.
    Block,
    Named(u32),
    Mbarrier,
    /// At a barrier of all blocks of the cluster.
    Cluster,
    Grid,
    Done,
}

impl Warp {
    /// A warp of a block of the cluster, by its number there; `block` is the block's index.
    pub fn new(program: &Program, number: u32, width: u32, rank: u32, block: &[u64]) -> Warp {
        let threads = program.num_threads() as u32;
        let in_block = threads.div_ceil(width);
        let blocks = program.cluster_blocks() as u32;
        let lanes = (threads - number * width).min(width);
        let mut regs = Registers::new(&program.ones, program.fixed, program.lanes, width as usize);
        for (&slot, &index) in program.block_slots.iter().zip(block) {
            regs.ones[slot as usize] = index;
        }
        if let Some(slot) = program.rank_slot {
            regs.ones[slot as usize] = rank.into();
        }
        let [x, y, _] = program.threads;
        for lane in 0..width {
            // Lanes without a thread get an index all the same; nothing they do counts.
            let thread = number * width + lane;
            let at = [thread % x, thread / x % y, thread / x / y];
            for (axis, &slot) in program.thread_slots.iter().enumerate() {
                regs.lanes_mut(Slot::Fixed(slot))[lane as usize] = u64::from(at[axis]);
            }
        }
        let index = rank * in_block + number;
        let mut clock = vec![0; ((in_block as usize) + program.barriers.len()) * blocks as usize];
        clock[index as usize] = 1;
        let mut local = Local::new(program.local_bytes, width as usize);
        local.watch(&program.group_registers);
        Warp {
            index,
            rank,
            first_of_block: rank * in_block,
            width,
            all: u64::MAX >> (64 - lanes),
            mask: u64::MAX >> (64 - lanes),
            pc: 0,
            frames: Vec::new(),
            saved: Vec::new(),
            regs,
            local,
            clock,
            queue: Queue::default(),
            state: State::Ready,
            awaits: None,
            half: None,
            steps: 0,
        }
    }

    /// The number in the block of a lane's thread.
    pub fn thread(&self, lane: u32) -> u32 {
        (self.index - self.first_of_block) * self.width + lane
    }

    /// The lowest active lane.
    pub fn first(&self) -> u32 {
        self.mask.trailing_zeros().min(self.width - 1)
    }

    /// Whether every thread of the warp is active.
    pub fn converged(&self) -> bool {
        self.mask == self.all
    }

    /// Whether every lane of the target's warp has a thread, and all are active.
    pub fn whole(&self) -> bool {
        self.converged() && self.all == u64::MAX >> (64 - self.width)
    }

    pub fn own_clock(&self) -> u32 {
        self.clock[self.index as usize]
    }

    /// Learns what another clock knows.
    pub fn hear(&mut self, other: &[u32]) {
        join(&mut self.clock, other);
    }

    /// Starts a new period of its own: what it does from here on is not covered by what others
    /// have heard so far.
    pub fn tick(&mut self) {
        self.clock[self.index as usize] += 1;
    }

    /// Does an instruction of control flow and says where to go on; `None` for any other.
    pub fn control(&mut self, op: &Op) -> Option<Result<Pc, Stuck>> {
        let next = self.pc + 1;
        Some(Ok(match op {
            Op::MaskPush { cond, when, skip } => {
                self.saved.push(self.mask);
                let truth = self.regs.truth(*cond, self.mask);
                self.mask = if *when { truth } else { self.mask & !truth };
                if self.mask == 0 { *skip } else { next }
            }
            Op::MaskPop => {
                self.mask = self.saved.pop().unwrap_or(self.mask);
                next
            }
            Op::If { cond, otherwise } => {
                let truth = self.regs.truth(*cond, self.mask);
                self.split(truth, *otherwise)
            }
            Op::IfGroup { groups, otherwise } => {
                let mut inside = 0;
                for lane in Lanes(self.mask) {
                    let group = self.thread(lane) / tilewright_ir::WARP_GROUP;
                    inside |= (groups >> group.min(63) & 1) << lane;
                }
                self.split(inside, *otherwise)
            }
            Op::Else { end } => {
                let mask = self.mask;
                let Some(Frame::If { otherwise, done }) = self.frames.last_mut() else {
                    return Some(Err(Stuck::Structure));
                };
                *done = mask;
                self.mask = *otherwise;
                if self.mask == 0 { *end } else { next }
            }
            Op::EndIf { none } => {
                let Some(Frame::If { done, .. }) = self.frames.pop() else {
                    return Some(Err(Stuck::Structure));
                };
                self.mask |= done;
                if self.mask == 0 { *none } else { next }
            }
            Op::For { var, start, step } => {
                if let Some(lane) =
                    Lanes(self.mask).find(|&lane| self.regs.lane(*step, lane as usize) == 0)
                {
                    return Some(Err(Stuck::Step(lane)));
                }
                self.frames.push(Frame::Loop {
                    entered: self.mask,
                    live: self.mask,
                });
                for lane in self.lanes_of(*var) {
                    let value = self.regs.lane(*start, lane as usize);
                    self.regs.set_lane(*var, lane as usize, value);
                }
                next
            }
            Op::ForHead {
                var,
                stop,
                step,
                end,
            } => {
                let mut go = 0;
                if var.is_one() {
                    if self.goes_on(*var, *stop, *step, 0) {
                        go = self.mask;
                    }
                } else {
                    for lane in Lanes(self.mask) {
                        let on = self.goes_on(*var, *stop, *step, lane as usize);
                        go |= u64::from(on) << lane;
                    }
                }
                return Some(self.head(go, *end));
            }
            Op::ForNext { var, step, head } => {
                let live = match self.live() {
                    Ok(live) => live,
                    Err(stuck) => return Some(Err(stuck)),
                };
                self.mask = live;
                for lane in self.lanes_of(*var) {
                    let lane = lane as usize;
                    let sum = self.regs.lane(*var, lane) as i64;
                    let sum = sum.saturating_add(self.regs.lane(*step, lane) as i64);
                    self.regs.set_lane(*var, lane, sum as u64);
                }
                *head
            }
            Op::While => {
                self.frames.push(Frame::Loop {
                    entered: self.mask,
                    live: self.mask,
                });
                next
            }
            Op::WhileHead { cond, end } => {
                let go = self.regs.truth(*cond, self.mask);
                return Some(self.head(go, *end));
            }
            Op::WhileNext { head } => {
                self.mask = match self.live() {
                    Ok(live) => live,
                    Err(stuck) => return Some(Err(stuck)),
                };
                // Without any lane left the condition must not be evaluated, but the head has
                // to close the loop, so it looks at the mask first.
                *head
            }
            Op::Break { to } => {
                let mask = self.mask;
                let innermost = self.frames.iter_mut().rev().find_map(|f| match f {
                    Frame::Loop { live, .. } => Some(live),
                    Frame::If { .. } => None,
                });
                let Some(live) = innermost else {
                    return Some(Err(Stuck::Structure));
                };
                *live &= !mask;
                self.mask = 0;
                *to
            }
            Op::Continue { to } => {
                self.mask = 0;
                *to
            }
            Op::MicroStart { axes } => {
                for &slot in axes {
                    self.regs.ones[slot as usize] = 0;
                }
                next
            }
            Op::MicroNext { axes, turns, body } => {
                match next_point(&mut self.regs.ones, axes, *turns) {
                    true => *body,
                    false => next,
                }
            }
            _ => return None,
        }))
    }

    /// The lanes to set of a loop's index.
    fn lanes_of(&self, var: Slot) -> Lanes {
        if var.is_one() {
            Lanes(1 << self.first())
        } else {
            Lanes(self.mask)
        }
    }

    fn split(&mut self, truth: u64, otherwise: Pc) -> Pc {
        self.frames.push(Frame::If {
            otherwise: self.mask & !truth,
            done: 0,
        });
        self.mask = truth;
        if truth == 0 { otherwise } else { self.pc + 1 }
    }

    fn goes_on(&self, var: Slot, stop: Slot, step: Slot, lane: usize) -> bool {
        let [var, stop, step] = [var, stop, step].map(|s| self.regs.lane(s, lane) as i64);
        if step > 0 { var < stop } else { var > stop }
    }

    fn live(&self) -> Result<u64, Stuck> {
        match self.frames.last() {
            Some(Frame::Loop { live, .. }) => Ok(*live),
            _ => Err(Stuck::Structure),
        }
    }

    /// Goes on with the lanes that iterate once more, or leaves the loop.
    fn head(&mut self, go: u64, end: Pc) -> Result<Pc, Stuck> {
        let Some(Frame::Loop { entered, live }) = self.frames.last_mut() else {
            return Err(Stuck::Structure);
        };
        *live = go;
        if go == 0 {
            self.mask = *entered;
            self.frames.pop();
            return Ok(end);
        }
        self.mask = go;
        Ok(self.pc + 1)
    }
}

/// Why control flow cannot go on.
#[derive(Clone, Copy, Debug)]
pub(super) enum Stuck {
    /// A loop of this lane has the step zero.
    Step(u32),
    /// The compiler made a mistake.
    Structure,
}

/// Learns what another clock knows.
pub(super) fn join(clock: &mut [u32], other: &[u32]) {
    for (mine, &theirs) in clock.iter_mut().zip(other) {
        *mine = (*mine).max(theirs);
    }
}

/// The numbers of the set lanes, ascending.
#[derive(Clone, Copy, Debug)]
pub(super) struct Lanes(pub u64);

impl Iterator for Lanes {
    type Item = u32;

    #[inline]
    fn next(&mut self) -> Option<u32> {
        if self.0 == 0 {
            return None;
        }
        let lane = self.0.trailing_zeros();
        self.0 &= self.0 - 1;
        Some(lane)
    }
}

/// The private arrays of a warp's threads, one thread after another.
#[derive(Debug)]
pub(super) struct Local {
    stride: usize,
    pub bytes: Vec<u8>,
    /// For each byte whether it was written, or is on its way.
    pub flags: Vec<u8>,
    /// The arrays of products of warp groups.
    watched: Vec<Watched>,
}

/// An array of products of warp groups.
#[derive(Debug)]
struct Watched {
    bytes: std::ops::Range<usize>,
    /// Whether something else has read or written it, or nothing was handed to them yet, since the
    /// last fence for that.
    unfenced: bool,
}

/// Goes to the next point of a micro-op's indices; false where there is none.
fn next_point(indices: &mut [u64], axes: &[(u32, u32)], turns: bool) -> bool {
    let at = |axis: usize| (axes[axis].0 as usize, u64::from(axes[axis].1));
    let backward =
        |indices: &[u64], axis: usize| turns && axis > 0 && indices[at(axis - 1).0] % 2 == 1;
    for axis in (0..axes.len()).rev() {
        let (slot, extent) = at(axis);
        let next = match backward(indices, axis) {
            true => indices[slot].checked_sub(1),
            false => Some(indices[slot] + 1).filter(|n| *n < extent),
        };
        let Some(next) = next else {
            continue;
        };
        indices[slot] = next;
        for inner in axis + 1..axes.len() {
            let (slot, extent) = at(inner);
            indices[slot] = match backward(indices, inner) {
                true => extent - 1,
                false => 0,
            };
        }
        return true;
    }
    false
}

/// A byte of a register that nothing wrote.
pub(super) const UNWRITTEN: u8 = 0;
pub(super) const WRITTEN: u8 = 1;
/// A byte that a load not waited for will write.
pub(super) const HELD: u8 = 2;

impl Local {
    fn new(stride: usize, lanes: usize) -> Local {
        Local {
            stride,
            bytes: vec![crate::tensor::UNWRITTEN; stride * lanes],
            flags: vec![UNWRITTEN; stride * lanes],
            watched: Vec::new(),
        }
    }

    /// Looks at what is read and written of these arrays.
    pub fn watch(&mut self, arrays: &[(usize, usize)]) {
        let watched = arrays.iter().map(|&(start, len)| Watched {
            bytes: start..start + len,
            unfenced: true,
        });
        self.watched = watched.collect();
    }

    /// Whether there are any.
    pub fn watches(&self) -> bool {
        !self.watched.is_empty()
    }

    /// An ordinary instruction reads or writes here.
    #[inline]
    pub fn note_touch(&mut self, offset: usize) {
        let watched = self.watched.iter_mut();
        for array in watched.filter(|w| w.bytes.contains(&offset)) {
            array.unfenced = true;
        }
    }

    /// A fence hands all arrays to the products.
    pub fn fence(&mut self) {
        self.watched.iter_mut().for_each(|w| w.unfenced = false);
    }

    /// Whether a product may not have the array at this place yet.
    pub fn is_unfenced(&self, offset: usize) -> bool {
        let mut watched = self.watched.iter();
        watched.any(|w| w.unfenced && w.bytes.contains(&offset))
    }

    /// Where a lane's bytes from `offset` on are.
    #[inline]
    pub fn range(&self, lane: u32, offset: usize, len: usize) -> std::ops::Range<usize> {
        let start = lane as usize * self.stride + offset;
        start..start + len
    }

    /// The worst flag of a lane's bytes: written, not written, or on its way.
    #[inline]
    pub fn flag(&self, lane: u32, offset: usize, len: usize) -> u8 {
        let flags = &self.flags[self.range(lane, offset, len)];
        // Without an early exit the loop becomes a few wide instructions.
        if flags.iter().fold(0, |all, f| all | (f ^ WRITTEN)) == 0 {
            return WRITTEN;
        }
        flags
            .iter()
            .copied()
            .find(|&f| f != WRITTEN)
            .unwrap_or(WRITTEN)
    }

    /// Overwrites a lane's bytes.
    #[inline]
    pub fn store(&mut self, lane: u32, offset: usize, bytes: &[u8]) {
        let range = self.range(lane, offset, bytes.len());
        self.bytes[range.clone()].copy_from_slice(bytes);
        self.flags[range].fill(WRITTEN);
        self.note_touch(offset);
    }

    #[inline]
    pub fn load(&self, lane: u32, offset: usize, len: usize) -> &[u8] {
        &self.bytes[self.range(lane, offset, len)]
    }

    pub fn set_flags(&mut self, lane: u32, offset: usize, len: usize, flag: u8) {
        let range = self.range(lane, offset, len);
        self.flags[range].fill(flag);
    }
}

#[cfg(test)]
mod tests {
    use super::next_point;

    fn points(extents: &[u32], turns: bool) -> Vec<Vec<u64>> {
        let axes: Vec<(u32, u32)> = (0..).zip(extents.iter().copied()).collect();
        let mut indices = vec![0; extents.len()];
        let mut all = vec![indices.clone()];
        while next_point(&mut indices, &axes, turns) {
            all.push(indices.clone());
        }
        all
    }

    #[test]
    fn the_last_index_is_the_fastest() {
        let rows = [[0, 0], [0, 1], [0, 2], [1, 0], [1, 1], [1, 2]];
        assert_eq!(points(&[2, 3], false), rows);
    }

    #[test]
    fn rows_turn_round_at_their_ends() {
        let rows = [[0, 0], [0, 1], [0, 2], [1, 2], [1, 1], [1, 0]];
        assert_eq!(points(&[2, 3], true), rows);
        // Every point is met once.
        let mut cube = points(&[3, 2, 4], true);
        cube.sort();
        assert_eq!(cube, points(&[3, 2, 4], false));
        assert_eq!(points(&[1, 3], true), points(&[1, 3], false));
    }
}
