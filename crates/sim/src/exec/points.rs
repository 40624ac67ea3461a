//! Parallel loops: every point once.

use crate::error::Eval;
use crate::exec::races::Tracker;
use crate::exec::{Exec, Next};
use crate::program::{Parallel, Pc, Space};
use crate::value;

impl<'a> Exec<'a, '_> {
    /// Runs the body, which starts at `body`, for every point in row-major order. The order is
    /// not part of the meaning; the race check sees to that.
    pub(super) fn parallel(&mut self, p: &'a Parallel, body: Pc) -> Eval<()> {
        self.check_uniform(&p.uniform)?;
        let mut ranges = Vec::with_capacity(p.axes.len());
        for axis in &p.axes {
            ranges.push(self.range(axis)?);
        }
        if ranges.iter().any(|r| r.2 == 0) {
            return Ok(());
        }
        if p.tracked && self.checks.races {
            self.tracker = Some(Tracker::default());
        }
        let before = self.snapshot(p);
        let mut first_after = None;
        let mut agree = true;

        self.points = Some(p);
        let mut trips = vec![0i128; ranges.len()];
        self.set_axes(p, &ranges, &trips, 0);
        loop {
            self.point(body)?;
            if !p.carried.is_empty() {
                let after = self.snapshot(p);
                agree &= *first_after.get_or_insert_with(|| after.clone()) == after;
                self.restore(p, &before);
            }
            if let Some(tracker) = &mut self.tracker {
                tracker.point += 1;
            }
            let mut axis = trips.len();
            loop {
                if axis == 0 {
                    self.points = None;
                    self.tracker = None;
                    self.settle(p, first_after, agree);
                    return Ok(());
                }
                axis -= 1;
                trips[axis] += 1;
                if trips[axis] < ranges[axis].2 {
                    break;
                }
                trips[axis] = 0;
            }
            self.set_axes(p, &ranges, &trips, axis);
        }
    }

    /// Sets the indices of the axes from `first` on.
    fn set_axes(
        &mut self,
        p: &Parallel,
        ranges: &[(i128, i128, i128)],
        trips: &[i128],
        first: usize,
    ) {
        for axis in first..trips.len() {
            let (start, step, _) = ranges[axis];
            let code = &p.axes[axis];
            // Modulo 2^64 this is exact, whatever the type.
            let v = (start as i64).wrapping_add((trips[axis] as i64).wrapping_mul(step as i64));
            self.set(code.var, value::wrap(code.scalar, v) as u64);
        }
    }

    fn point(&mut self, body: Pc) -> Eval<()> {
        let mut pc = body;
        loop {
            self.count()?;
            match self.step(pc)? {
                Next::At(next) => pc = next,
                // Nothing that waits is compiled into a parallel loop.
                Next::EndPoint | Next::Halt | Next::Wait(_) => return Ok(()),
            }
        }
    }

    /// The private buffers that the loop writes, as they are now.
    fn snapshot(&self, p: &Parallel) -> Vec<(Vec<u8>, Vec<u8>)> {
        let copies = p.carried.iter().filter_map(|&b| self.copy_range(b));
        copies
            .map(|(number, range)| {
                let storage = &self.strand.privates[number];
                let flags = storage.written.as_ref();
                (
                    storage.bytes[range.clone()].to_vec(),
                    flags.map_or(Vec::new(), |w| w[range].to_vec()),
                )
            })
            .collect()
    }

    fn restore(&mut self, p: &Parallel, saved: &[(Vec<u8>, Vec<u8>)]) {
        let ranges: Vec<_> = p
            .carried
            .iter()
            .filter_map(|&b| self.copy_range(b))
            .collect();
        for ((number, range), (bytes, flags)) in ranges.into_iter().zip(saved) {
            let storage = &mut self.strand.privates[number];
            storage.bytes[range.clone()].copy_from_slice(bytes);
            if let Some(written) = &mut storage.written {
                written[range].copy_from_slice(flags);
            }
        }
    }

    /// After the loop a private buffer holds what all points left in it; where they disagree
    /// it is undefined.
    fn settle(&mut self, p: &Parallel, after: Option<Vec<(Vec<u8>, Vec<u8>)>>, agree: bool) {
        let active = self.strand.active;
        for lane in active.iter() {
            self.lane = lane;
            match &after {
                Some(state) if agree => self.restore(p, state),
                Some(_) => {
                    let ranges: Vec<_> = p
                        .carried
                        .iter()
                        .filter_map(|&b| self.copy_range(b))
                        .collect();
                    for (number, range) in ranges {
                        self.strand.privates[number].forget(range.start, range.len());
                    }
                }
                None => {}
            }
            if p.carried.is_empty() {
                break;
            }
        }
        self.lane = active.first();
    }

    /// The bytes of the current thread's copy of a private buffer.
    pub(super) fn copy_range(&self, buffer: u32) -> Option<(usize, std::ops::Range<usize>)> {
        let Space::Private(number) = self.program.buffers[buffer as usize].space else {
            return None;
        };
        let info = self.program.private_storages[number as usize];
        let lane = if info.varying { self.lane } else { 0 };
        Some((
            number as usize,
            lane * info.stride..(lane + 1) * info.stride,
        ))
    }
}
