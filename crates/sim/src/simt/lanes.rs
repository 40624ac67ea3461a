//! Which lanes of a warp touched a byte of shared memory since the warp last synchronised.
//!
//! Where they do not run in lockstep lanes that exchange data need `sync_warp`, or any barrier that
//! their warp waits at.

/// What the shadow of shared memory knows of lanes; stamps and instances are the shadow's.
#[derive(Debug)]
pub(super) struct LaneShadow {
    /// By byte, the lanes that wrote its value: those of the warp that wrote it last.
    writes: Vec<u64>,
    /// By warp and byte, the lanes that read it; made when the warp first reads.
    reads: Vec<Vec<u64>>,
    /// By warp, the first instance since its lanes synchronised.
    since: Vec<u32>,
}

impl LaneShadow {
    pub fn new(len: usize, warps: usize) -> LaneShadow {
        LaneShadow {
            writes: vec![0; len],
            reads: vec![Vec::new(); warps],
            since: vec![0; warps],
        }
    }

    /// The warp's lanes synchronise before the instance `next`.
    pub fn sync(&mut self, warp: u32, next: u32) {
        self.since[warp as usize] = next;
    }

    /// The first instance since the warp's lanes synchronised.
    pub fn since(&self, warp: u32) -> u32 {
        self.since[warp as usize]
    }

    /// The numbers of instances begin anew.
    pub fn restart(&mut self) {
        self.since.fill(0);
    }

    /// One of the lanes that did not write the byte's value itself, and one that did.
    pub fn read_from_other(&self, at: usize, lanes: u64) -> Option<(u32, u32)> {
        let writers = self.writes[at];
        let without = lanes & !writers;
        let found = writers != 0 && without != 0;
        found.then(|| (without.trailing_zeros(), writers.trailing_zeros()))
    }

    /// One of the lanes, and another one that wrote the byte's value.
    pub fn other_writer(&self, at: usize, lanes: u64) -> Option<(u32, u32)> {
        two(lanes, self.writes[at])
    }

    /// One of the lanes, and another one that read the byte.
    pub fn other_reader(&self, warp: u32, at: usize, lanes: u64) -> Option<(u32, u32)> {
        two(lanes, *self.reads[warp as usize].get(at)?)
    }

    /// Notes a write; `again` where it is the value that lanes of the same warp wrote.
    pub fn write(&mut self, at: usize, lanes: u64, again: bool) {
        let before = if again { self.writes[at] } else { 0 };
        self.writes[at] = before | lanes;
    }

    /// Notes a read; `again` where lanes of the warp read it since they synchronised.
    pub fn read(&mut self, warp: u32, at: usize, lanes: u64, again: bool) {
        let reads = &mut self.reads[warp as usize];
        if reads.is_empty() {
            reads.resize(self.writes.len(), 0);
        }
        let before = if again { reads[at] } else { 0 };
        reads[at] = before | lanes;
    }
}

/// A lane of each set that are not the same one.
fn two(a: u64, b: u64) -> Option<(u32, u32)> {
    if a == 0 || b == 0 || (a == b && a.is_power_of_two()) {
        return None;
    }
    let first = a.trailing_zeros();
    match b & !(1 << first) {
        // The other set is this lane alone, so this one has another.
        0 => Some(((a & !(1 << first)).trailing_zeros(), first)),
        rest => Some((first, rest.trailing_zeros())),
    }
}
