//! Which lanes of a warp touched a byte of shared memory since the warp last synchronised.
//!
//! Lanes that exchange data need `sync_warp`, or any barrier that their warp waits at. On NVIDIA
//! lanes may run apart; on AMD they run in step, but the compiler knows of one lane only and may
//! move its accesses past each other.

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

    /// Whether the lane did not write the byte's value.
    pub fn only_others_wrote(&self, at: usize, lane: u32) -> bool {
        self.writes[at] & 1 << lane == 0
    }

    /// Another lane that wrote the byte's value.
    pub fn other_writer(&self, at: usize, lane: u32) -> Option<u32> {
        let lanes = self.writes[at] & !(1 << lane);
        (lanes != 0).then(|| lanes.trailing_zeros())
    }

    /// Another lane that read the byte.
    pub fn other_reader(&self, warp: u32, at: usize, lane: u32) -> Option<u32> {
        let lanes = self.reads[warp as usize].get(at)? & !(1 << lane);
        (lanes != 0).then(|| lanes.trailing_zeros())
    }

    /// Notes a write; `again` where it is the value that lanes of the same warp wrote.
    pub fn write(&mut self, at: usize, lane: u32, again: bool) {
        let before = if again { self.writes[at] } else { 0 };
        self.writes[at] = before | 1 << lane;
    }

    /// Notes a read; `again` where lanes of the warp read it since they synchronised. An atomic
    /// read is no lane's own.
    pub fn read(&mut self, warp: u32, at: usize, lane: Option<u32>, again: bool) {
        let reads = &mut self.reads[warp as usize];
        if reads.is_empty() {
            reads.resize(self.writes.len(), 0);
        }
        let before = if again { reads[at] } else { 0 };
        reads[at] = before | lane.map_or(0, |lane| 1 << lane);
    }
}
