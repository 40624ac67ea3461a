//! Control flow: jumps where threads agree, masks where they do not.

use crate::error::{Eval, Fault, codes};
use crate::exec::Exec;
use crate::exec::mask::Mask;
use crate::exec::state::Frame;
use crate::program::{AxisCode, Op, Pc, Wave};
use crate::value;

impl Exec<'_, '_> {
    /// Does a control instruction; the next one is returned.
    pub(super) fn control(&mut self, op: &Op, pc: Pc) -> Eval<Pc> {
        let next = pc + 1;
        Ok(match op {
            Op::Jump(to) => *to,
            Op::Branch { cond, otherwise } => {
                if self.int(cond)? != 0 {
                    next
                } else {
                    *otherwise
                }
            }
            Op::ForStart { axis, state } => {
                let (start, step, count) = self.range(axis)?;
                let slots = &mut self.strand.slots[*state as usize..];
                slots[0] = start as u64;
                slots[1] = step as u64;
                slots[2] = count as u64;
                next
            }
            Op::ForNext { axis, state, end } => {
                let slots = &mut self.strand.slots[*state as usize..];
                if slots[2] == 0 {
                    return Ok(*end);
                }
                let index = slots[0];
                slots[0] = index.wrapping_add(slots[1]);
                slots[2] -= 1;
                self.set(axis.var, value::wrap(axis.scalar, index as i64) as u64);
                next
            }
            Op::WaveStart { state } => {
                self.strand.slots[*state as usize] = 0;
                next
            }
            Op::WaveNext(wave) => {
                if self.wave(wave)? {
                    next
                } else {
                    wave.end
                }
            }
            Op::Group { groups, skip } => {
                if self.strand.group & groups != 0 {
                    next
                } else {
                    *skip
                }
            }
            Op::MaskIf { cond, otherwise } => {
                let active = self.strand.active;
                let yes = self.mask_where(cond)?;
                self.strand.frames.push(Frame::If {
                    saved: active,
                    otherwise: active.without(yes),
                });
                self.strand.active = yes;
                if yes.is_empty() { *otherwise } else { next }
            }
            Op::MaskElse { end } => {
                let left = self.left_loop();
                if let Some(Frame::If { otherwise, .. }) = self.strand.frames.last() {
                    self.strand.active = otherwise.without(left);
                }
                if self.strand.active.is_empty() {
                    *end
                } else {
                    next
                }
            }
            Op::MaskEnd { none } | Op::MaskLoopEnd { none } => {
                let saved = match self.strand.frames.pop() {
                    Some(Frame::If { saved, .. } | Frame::Loop { saved, .. }) => saved,
                    None => self.strand.all,
                };
                self.strand.active = saved.without(self.left_loop());
                if self.strand.active.is_empty() {
                    *none
                } else {
                    next
                }
            }
            Op::MaskFor { axis } => {
                let mut ranges = vec![(0, 0, 0); self.program.num_threads()];
                self.each_lane(|this| {
                    ranges[this.lane] = this.range(axis)?;
                    Ok(())
                })?;
                self.push_loop(ranges);
                next
            }
            Op::MaskForNext { axis, end } => self.mask_for_next(axis, *end, next),
            Op::MaskWhile => {
                self.push_loop(Vec::new());
                next
            }
            Op::MaskWhileNext { cond, end } => {
                if let Some(Frame::Loop {
                    saved,
                    exited,
                    waiting,
                    ..
                }) = self.strand.frames.last_mut()
                {
                    *waiting = Mask::default();
                    self.strand.active = saved.without(*exited);
                }
                if self.strand.active.is_empty() {
                    return Ok(*end);
                }
                let yes = self.mask_where(cond)?;
                let no = self.strand.active.without(yes);
                if let Some(Frame::Loop { exited, .. }) = self.strand.frames.last_mut() {
                    *exited = exited.or(no);
                }
                self.strand.active = yes;
                if yes.is_empty() { *end } else { next }
            }
            Op::MaskBreak { to } => {
                let active = self.strand.active;
                if let Some((exited, _)) = self.loop_masks() {
                    *exited = exited.or(active);
                }
                self.strand.active = Mask::default();
                *to
            }
            Op::MaskContinue { to } => {
                let active = self.strand.active;
                if let Some((_, waiting)) = self.loop_masks() {
                    *waiting = waiting.or(active);
                }
                self.strand.active = Mask::default();
                *to
            }
            // The other instructions are not control.
            _ => next,
        })
    }

    fn push_loop(&mut self, ranges: Vec<(i128, i128, i128)>) {
        self.strand.frames.push(Frame::Loop {
            saved: self.strand.active,
            exited: Mask::default(),
            waiting: Mask::default(),
            trip: 0,
            ranges,
        });
    }

    fn mask_for_next(&mut self, axis: &AxisCode, end: Pc, next: Pc) -> Pc {
        let Some(Frame::Loop {
            saved,
            exited,
            waiting,
            trip,
            ranges,
        }) = self.strand.frames.last_mut()
        else {
            return end;
        };
        *waiting = Mask::default();
        let mut active = Mask::default();
        let mut values = Vec::new();
        for lane in saved.without(*exited).iter() {
            let (start, step, count) = ranges[lane];
            if *trip < count {
                active.insert(lane);
                values.push((lane, start + *trip * step));
            }
        }
        *trip += 1;
        self.strand.active = active;
        if active.is_empty() {
            return end;
        }
        for (lane, v) in values {
            self.lane = lane;
            self.set(axis.var, value::narrow(axis.scalar, v) as u64);
        }
        next
    }

    /// The threads that left the innermost masked loop, or this iteration of it.
    fn left_loop(&mut self) -> Mask {
        match self.loop_masks() {
            Some((exited, waiting)) => exited.or(*waiting),
            None => Mask::default(),
        }
    }

    fn loop_masks(&mut self) -> Option<(&mut Mask, &mut Mask)> {
        let frames = self.strand.frames.iter_mut().rev();
        frames.into_iter().find_map(|frame| match frame {
            Frame::Loop {
                exited, waiting, ..
            } => Some((exited, waiting)),
            Frame::If { .. } => None,
        })
    }

    /// Start, step and number of iterations of an axis.
    pub(super) fn range(&mut self, axis: &AxisCode) -> Eval<(i128, i128, i128)> {
        let start = value::wide(axis.scalar, self.int(&axis.start)?);
        let stop = value::wide(axis.scalar, self.int(&axis.stop)?);
        let step = value::wide(axis.scalar, self.int(&axis.step)?);
        let distance = match step {
            0 => {
                return Err(self.fail(Fault::new(
                    codes::LOOP_STEP,
                    format!("the step of the loop over `{}` is zero", axis.name),
                )));
            }
            s if s > 0 => stop - start,
            _ => start - stop,
        };
        let size = step.abs();
        Ok((start, step, (distance.max(0) + size - 1) / size))
    }

    /// Sets the coordinates of the next tile of a persistent loop that exists; `false` at the
    /// end.
    fn wave(&mut self, wave: &Wave) -> Eval<bool> {
        let mut domain = Vec::new();
        for axis in &wave.axes {
            domain.push(value::wide(axis.scalar, self.int(&axis.stop)?).max(0));
        }
        let wave_size = i128::from(self.int(&wave.wave_size)?);
        let index = i128::from(self.int(&wave.index)?);
        let group_size = i128::from(self.int(&wave.group_size)?);
        let Some((&last, outer)) = domain.split_last() else {
            return Ok(false);
        };
        if wave_size < 1 {
            return Err(self.fail(Fault::new(
                codes::LOOP_STEP,
                format!("a persistent loop with waves of {wave_size}"),
            )));
        }
        let group = group_size.min(last).max(1);
        let groups = (last + group - 1) / group;
        let total = groups * outer.iter().product::<i128>() * group;
        loop {
            let w = i128::from(self.strand.slots[wave.state as usize]);
            let linear = w * wave_size + index;
            if linear >= total {
                return Ok(false);
            }
            if linear < 0 {
                // On to the first wave whose number is not negative.
                let first = (-index + wave_size - 1) / wave_size;
                self.strand.slots[wave.state as usize] = first as u64;
                continue;
            }
            self.strand.slots[wave.state as usize] += 1;
            let within = linear % group;
            let mut rest = linear / group;
            let mut coordinates = vec![0; domain.len()];
            for (c, &extent) in coordinates.iter_mut().zip(outer).rev() {
                *c = rest % extent;
                rest /= extent;
            }
            let final_axis = coordinates.len() - 1;
            coordinates[final_axis] = rest * group + within;
            if coordinates[final_axis] >= last {
                continue;
            }
            for (axis, c) in wave.axes.iter().zip(coordinates) {
                self.set(axis.var, value::narrow(axis.scalar, c) as u64);
            }
            return Ok(true);
        }
    }
}
