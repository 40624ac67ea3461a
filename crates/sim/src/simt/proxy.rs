//! Whether what threads stored to shared memory has been shown to who reads it by the async proxy.
//!
//! A byte that is written through the generic proxy, by a store or an asynchronous copy that was
//! waited for, is *unseen* until its warp has passed a fence for proxies behind the write, and
//! then a barrier by which others go on. A fence behind that barrier comes too late for them.

/// The bytes that are unseen, and by whom.
#[derive(Debug)]
pub(super) struct Proxies {
    /// By byte, when it was written; zero for what has been shown.
    written: Vec<u32>,
    /// By warp, what it wrote since its last fence: first byte and length.
    unfenced: Vec<Vec<(usize, usize)>>,
    /// By warp, what it has fenced since others last went on, and when.
    fenced: Vec<Vec<(usize, usize, u32)>>,
    /// Counts writes and fences.
    now: u32,
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

    /// A warp has written bytes.
    pub fn wrote(&mut self, warp: u32, start: usize, len: usize) {
        self.now += 1;
        self.written[start..start + len].fill(self.now);
        let list = &mut self.unfenced[warp as usize];
        match list.last_mut() {
            // Lanes mostly write in a row.
            Some((first, known)) if *first + *known == start => *known += len,
            _ => list.push((start, len)),
        }
    }

    /// The async proxy itself has written bytes.
    pub fn shown(&mut self, start: usize, len: usize) {
        self.written[start..start + len].fill(0);
    }

    /// A warp passes a fence.
    pub fn fence(&mut self, warp: u32) {
        self.now += 1;
        let now = self.now;
        let own = self.unfenced[warp as usize].drain(..);
        self.fenced[warp as usize].extend(own.map(|(start, len)| (start, len, now)));
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
        p.wrote(0, 0, 16);
        p.wrote(1, 16, 16);
        // A barrier alone shows nothing.
        p.hand_over(0);
        p.hand_over(1);
        assert_eq!(p.unseen(0, 32), Some(0));
        p.fence(0);
        assert_eq!(p.unseen(0, 16), Some(0));
        p.hand_over(0);
        assert_eq!(p.unseen(0, 16), None);
        assert_eq!(p.unseen(0, 32), Some(16));
        // A fence before the write is none.
        p.fence(1);
        p.wrote(1, 16, 8);
        p.hand_over(1);
        assert_eq!(p.unseen(16, 16), Some(16));
        assert_eq!(p.unseen(24, 8), None);
    }
}
