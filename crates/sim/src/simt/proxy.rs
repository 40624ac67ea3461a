//! Whether what threads stored to shared memory has been shown to who reads it by the async proxy.
//!
//! A byte that is written through the generic proxy, by a store or an asynchronous copy that was
//! waited for, is *unseen* until the lanes that wrote it have passed a fence for proxies behind the
//! write, and then a barrier by which others go on, be they of their warp alone. A fence behind that
//! barrier comes too late for them.

/// The bytes that are unseen, and by whom.
#[derive(Debug)]
pub(super) struct Proxies {
    /// By byte, when it was written; zero for what has been shown.
    written: Vec<u32>,
    /// By warp, what it wrote since its last fence.
    unfenced: Vec<Vec<Unfenced>>,
    /// By warp, what it has fenced since others last went on, and when.
    fenced: Vec<Vec<(usize, usize, u32)>>,
    /// Counts writes and fences.
    now: u32,
}

/// Bytes in a row, and the lanes that wrote them.
#[derive(Clone, Copy, Debug)]
struct Unfenced {
    start: usize,
    len: usize,
    lanes: u64,
}

impl Proxies {
    pub fn new(bytes: usize, warps: usize) -> Proxies {
        Proxies {
            written: vec![0; bytes],
            unfenced: vec![Vec::new(); warps],
            fenced: vec![Vec::new(); warps],
            now: 0,
        }
    }

    pub fn grow(&mut self, bytes: usize) {
        self.written.resize(bytes, 0);
    }

    /// Lanes of a warp have written bytes.
    pub fn wrote(&mut self, (warp, lanes): (u32, u64), start: usize, len: usize) {
        self.now += 1;
        self.written[start..start + len].fill(self.now);
        let list = &mut self.unfenced[warp as usize];
        match list.last_mut() {
            // Lanes mostly write in a row.
            Some(last) if last.start + last.len == start => {
                last.len += len;
                last.lanes |= lanes;
            }
            _ => list.push(Unfenced { start, len, lanes }),
        }
    }

    /// The async proxy itself has written bytes.
    pub fn shown(&mut self, start: usize, len: usize) {
        self.written[start..start + len].fill(0);
    }

    /// Lanes of a warp pass a fence.
    pub fn fence(&mut self, warp: u32, lanes: u64) {
        self.now += 1;
        let now = self.now;
        let passed = |w: &mut Unfenced| w.lanes & !lanes == 0;
        let own = self.unfenced[warp as usize].extract_if(.., passed);
        self.fenced[warp as usize].extend(own.map(|w| (w.start, w.len, now)));
    }

    /// Others may go on by what a warp has done.
    pub fn hand_over(&mut self, warp: u32) {
        for (start, len, when) in self.fenced[warp as usize].drain(..) {
            for written in &mut self.written[start..start + len] {
                // What was written again since is unseen again.
                if *written < when {
                    *written = 0;
                }
            }
        }
    }

    /// The first of these bytes that is unseen.
    pub fn unseen(&self, start: usize, len: usize) -> Option<usize> {
        let at = self.written[start..start + len]
            .iter()
            .position(|w| *w != 0)?;
        Some(start + at)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn what_is_written_is_seen_behind_a_fence_and_a_barrier() {
        let mut p = Proxies::new(64, 2);
        p.wrote((0, 1), 0, 16);
        p.wrote((1, 3), 16, 16);
        // A barrier alone shows nothing.
        p.hand_over(0);
        p.hand_over(1);
        assert_eq!(p.unseen(0, 32), Some(0));
        p.fence(0, 1);
        assert_eq!(p.unseen(0, 16), Some(0));
        p.hand_over(0);
        assert_eq!(p.unseen(0, 16), None);
        assert_eq!(p.unseen(0, 32), Some(16));
        // A fence before the write is none.
        p.fence(1, 3);
        p.wrote((1, 1), 16, 8);
        p.hand_over(1);
        assert_eq!(p.unseen(16, 16), Some(16));
        assert_eq!(p.unseen(24, 8), None);
    }

    #[test]
    fn every_lane_that_wrote_passes_the_fence() {
        let mut p = Proxies::new(64, 1);
        p.wrote((0, 1), 0, 16);
        p.wrote((0, 2), 32, 16);
        p.fence(0, 1);
        p.hand_over(0);
        assert_eq!(p.unseen(0, 16), None);
        assert_eq!(p.unseen(32, 16), Some(32));
        p.fence(0, 3);
        p.hand_over(0);
        assert_eq!(p.unseen(0, 64), None);
    }
}
