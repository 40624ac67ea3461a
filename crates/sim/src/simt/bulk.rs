//! Bulk copies: the copy engine brings boxes of tensors to shared memory, and tells an arrival
//! barrier of their bytes; it takes boxes out, in groups that their thread waits for ([`store`]).
//!
//! A load belongs to no warp once it is issued. Its bytes of shared memory are held until the
//! phase completes that hears of them; from then on they were written by who the barrier stands
//! for in clocks, so that only who waits for that phase is ordered behind them. The engine writes
//! through the async proxy: what threads stored there has to be shown to it.

mod store;

use rustc_hash::FxHashMap;
use tilewright_ir::TmaBox;

use super::access::byte_of;
use super::counts::InstKind;
use super::env::{Env, Which, who};
use super::program::{Access, BufferInfo, MicroCode, Slot, Space};
use super::queue::When;
use super::report::{Finding, FindingKind, FindingPlace};
use super::shared::Range;
use super::warp::{Lanes, Warp};
use crate::rng::Rng;

/// The barrier that hears of a load: its buffer and its index there.
#[derive(Clone, Copy, Debug)]
pub(super) struct Arrival {
    pub barrier: u32,
    pub index: Slot,
    /// The blocks of the cluster that the box goes to, a bit for each.
    pub multicast: Option<u16>,
}

/// Bytes that the engine has in hand.
#[derive(Debug, Default)]
pub(super) struct Bulk {
    /// Issued, and not landed.
    in_flight: Vec<Load>,
    /// By barrier, the last load that it has heard of.
    heard: Vec<Option<Issue>>,
    /// By barrier, the last arrival of each warp of another block: when and where it was.
    reached: FxHashMap<(usize, u32), (u32, Issue)>,
}

#[derive(Debug)]
struct Load {
    token: u64,
    /// The number of the barrier.
    barrier: usize,
    bytes: i64,
    storage: u32,
    pieces: Vec<Piece>,
    /// What the thread knew that issued it.
    clock: Vec<u32>,
    issue: Issue,
}

/// Where a copy was issued.
#[derive(Clone, Debug)]
pub(super) struct Issue {
    stmt: u32,
    place: FindingPlace,
}

/// Bytes in a row: where they are in the tensor, none outside of it, and in shared memory.
#[derive(Clone, Copy, Debug)]
struct Piece {
    global: Option<usize>,
    shared: usize,
    len: usize,
}

/// What the start of a box in shared memory is a multiple of. Source: PTX ISA, "Tensor copy
/// restrictions".
const ALIGN: usize = 128;

impl Env<'_> {
    /// Each lane has a box loaded.
    pub(super) fn bulk_load(&mut self, warp: &mut Warp, code: &MicroCode, taken: u64) {
        let (tilewright_ir::Inst::Tma(tile), Some(arrival)) = (code.inst, code.arrives) else {
            return;
        };
        self.count(warp, InstKind::AsyncCopy);
        let program = self.program;
        let source = &program.accesses[code.sources[0] as usize];
        let dest = &program.accesses[code.dest as usize];
        let tensor = &program.buffers[source.buffer as usize];
        let shared = &program.buffers[dest.buffer as usize];
        let Space::Global(storage) = tensor.space else {
            return;
        };
        let to = self.addresses(warp, dest, taken);
        for lane in Lanes(to.mask) {
            let Some(barrier) = self.barrier(warp, arrival.barrier, arrival.index, lane) else {
                continue;
            };
            let sides = (source, (dest, to.at[lane as usize]));
            let Some(pieces) = self.box_of(warp, lane, &tile, sides) else {
                continue;
            };
            let size = shared.bits() as usize / 8;
            for piece in &pieces {
                if let Some(start) = piece.global {
                    self.check_global_bytes(warp, lane, storage, start, piece.len);
                }
            }
            let issue = Issue {
                stmt: self.stmt(warp),
                place: self.place(warp, Some(lane)),
            };
            let mut loads = Vec::new();
            for barrier in self.everywhere(barrier, arrival.multicast) {
                let rank = barrier / self.program.barriers.len();
                let pieces: Vec<Piece> = pieces.iter().map(|p| self.in_rank(*p, rank)).collect();
                let id = self.announce(warp, lane, shared.owner, &pieces);
                self.next_token += 1;
                let token = self.next_token;
                self.shared.hold(token, id, true, in_a_row(&pieces, lane));
                loads.push(Load {
                    token,
                    barrier,
                    bytes: i64::from(tile.elements()) * size as i64,
                    storage,
                    pieces,
                    clock: warp.clock.clone(),
                    issue: issue.clone(),
                });
            }
            // What the warp does next is not part of what the barrier tells.
            warp.tick();
            match self.landing.dma {
                When::Early => loads.into_iter().for_each(|load| self.land_bulk(load)),
                When::Late => self.bulk.in_flight.extend(loads),
            }
        }
    }

    /// What a lane's box is made of, where it lies in both the tensor's map and the tile. The tile's
    /// access comes with its address.
    fn box_of(
        &mut self,
        warp: &Warp,
        lane: u32,
        tile: &TmaBox,
        (outer, (inner, start)): (&Access, (&Access, usize)),
    ) -> Option<Vec<Piece>> {
        let program = self.program;
        let tensor = &program.buffers[outer.buffer as usize];
        let shared = &program.buffers[inner.buffer as usize];
        let at = |slots: &[Slot]| -> Vec<i64> {
            let index = |slot: &Slot| warp.regs.lane(*slot, lane as usize) as i64;
            slots.iter().map(index).collect()
        };
        let version = inner.version.map_or(0, |v| at(&[v])[0]);
        if !byte_of(shared, start).is_multiple_of(ALIGN) {
            self.report(warp, FindingKind::Misaligned, Some(lane), || {
                format!(
                    "a box of `{}` that starts at no multiple of {ALIGN} bytes",
                    shared.name
                )
            });
        }
        let (outer, inner) = (at(&outer.indices), at(&inner.indices));
        let (pieces, outside) = pieces(tile, (tensor, &outer), (shared, &inner, version));
        if outside {
            self.report(warp, FindingKind::OutOfBounds, Some(lane), || {
                format!("a box of {tile} does not lie in `{}`", shared.name)
            });
        }
        (!outside).then_some(pieces)
    }

    /// Bytes of the first block's shared memory in that of another one of the cluster.
    fn in_rank(&self, piece: Piece, rank: usize) -> Piece {
        Piece {
            shared: piece.shared + rank * self.program.shared_bytes,
            ..piece
        }
    }

    /// A warp arrives at a barrier, which may be another block's: that must not have ended.
    pub(super) fn reached(&mut self, warp: &Warp, number: usize, lane: u32) {
        if number / self.program.barriers.len() == warp.rank as usize {
            return;
        }
        let issue = Issue {
            stmt: self.stmt(warp),
            place: self.place(warp, Some(lane)),
        };
        let when = (warp.own_clock(), issue);
        self.bulk.reached.insert((number, warp.index), when);
    }

    /// The engine may write these bytes from now on. Returns the instance.
    fn announce(&mut self, warp: &Warp, lane: u32, owner: u16, pieces: &[Piece]) -> u32 {
        let id = self.instance(warp, Which::Shared, false, true);
        self.shared.through(owner);
        for piece in pieces {
            let proxies = self.shared.proxies.as_ref();
            if let Some(at) = proxies.and_then(|p| p.unseen(piece.shared, piece.len)) {
                self.report(warp, FindingKind::MissingFence, Some(lane), || {
                    format!(
                        "no `fence async_proxy` and barrier order it behind the store to byte {at} \
                         of shared memory"
                    )
                });
            }
            let who = who(warp, id, lane, false);
            let trouble = self.shared.announce_write(who, piece.shared, piece.len);
            if !trouble.is_none() {
                self.trouble(warp, Which::Shared, lane, true, trouble);
            }
        }
        id
    }

    /// The data of a load is there, and its barrier hears of it.
    fn land_bulk(&mut self, load: Load) {
        let source = &self.globals.storage(load.storage).bytes;
        for piece in &load.pieces {
            let to = &mut self.shared.bytes[piece.shared..piece.shared + piece.len];
            match piece.global {
                Some(from) => to.copy_from_slice(&source[from..from + piece.len]),
                None => to.fill(0),
            }
        }
        let told = &mut self.barriers.phases[load.barrier].told;
        told.get_or_insert_with(|| (load.issue.stmt, load.issue.place.clone()));
        self.bulk.heard.resize(self.barriers.phases.len(), None);
        self.bulk.heard[load.barrier] = Some(load.issue);
        self.barriers
            .land(load.barrier, load.token, load.bytes, &load.clock);
        self.after_phase();
    }

    /// A phase may have completed: its loads are done, and who waited for the one before has seen it.
    pub(super) fn after_phase(&mut self) {
        for (token, by, clock) in std::mem::take(&mut self.barriers.released) {
            self.shared.release(token, Some(by), clock);
        }
        let width = self.target.machine().warp_size;
        for (stmt, warp) in std::mem::take(&mut self.barriers.overtaken) {
            let (rank, warp) = self.of_block(warp, width);
            let info = &self.program.stmts[stmt as usize];
            let place = FindingPlace {
                span: info.span,
                what: info.what.clone(),
                block: self.blocks[rank].clone(),
                thread: None,
                warp,
                iteration: Vec::new(),
            };
            self.report_at(FindingKind::BarrierMisuse, Issue { stmt, place }, || {
                "nothing keeps the barrier from the phase after the one that this waits for"
                    .to_string()
            });
        }
    }

    /// Nothing else can go on: one of the loads in flight lands. `false` where there is none.
    pub(super) fn land_one(&mut self, rng: &mut Rng) -> bool {
        let count = self.bulk.in_flight.len();
        if count == 0 {
            return false;
        }
        let chosen = rng.int_in(0, count as i128 - 1) as usize;
        let load = self.bulk.in_flight.remove(chosen);
        self.land_bulk(load);
        true
    }

    /// The block ends: reports loads that nobody waited for, and bytes that do not match.
    pub(super) fn end_of_bulk(&mut self, warps: &[Warp]) {
        let mut open: Vec<Issue> = Vec::new();
        for load in std::mem::take(&mut self.bulk.in_flight) {
            open.push(load.issue.clone());
            self.land_bulk(load);
        }
        for (number, issue) in self.bulk.heard.iter().enumerate() {
            let (agent, clock) = self.barriers.last_landing(number);
            let rank = number / self.program.barriers.len();
            let mut own = warps.iter().filter(|w| w.rank as usize == rank);
            let heard = own.any(|w| w.clock[agent] >= clock);
            open.extend(issue.clone().filter(|_| !heard));
        }
        for issue in open {
            self.report_at(FindingKind::NotWaitedFor, issue, || {
                "the kernel may end before this has landed: no thread waits for its phase"
                    .to_string()
            });
        }
        let mut early: Vec<((usize, u32), Issue)> = Vec::new();
        for ((number, by), (clock, issue)) in std::mem::take(&mut self.bulk.reached) {
            let rank = number / self.program.barriers.len();
            let mut own = warps.iter().filter(|w| w.rank as usize == rank);
            if !own.any(|w| w.clock[by as usize] >= clock) {
                early.push(((number, by), issue));
            }
        }
        early.sort_unstable_by_key(|(id, _)| *id);
        for (_, issue) in early {
            self.report_at(FindingKind::NotWaitedFor, issue, || {
                "the other block may have ended: no barrier of the cluster follows".to_string()
            });
        }
        for number in 0..self.barriers.phases.len() {
            let bytes = self.barriers.phases[number].state.bytes;
            let told = self.barriers.phases[number].told.take();
            let Some((stmt, place)) = told.filter(|_| bytes != 0) else {
                continue;
            };
            self.report_at(
                FindingKind::BarrierMisuse,
                Issue { stmt, place },
                || match bytes < 0 {
                    true => format!("{} bytes more land than were announced", -bytes),
                    false => format!("{bytes} bytes are announced that never land"),
                },
            );
        }
    }

    #[cold]
    fn report_at(&mut self, kind: FindingKind, at: Issue, message: impl FnOnce() -> String) {
        if self.findings.known(kind, at.stmt, at.stmt) {
            return;
        }
        let finding = Finding {
            kind,
            message: message(),
            place: at.place,
            others: Vec::new(),
            count: 1,
        };
        self.findings.add(at.stmt, at.stmt, finding);
    }
}

impl Piece {
    /// Whether the next bytes follow in both memories.
    fn goes_on(&self, next: &Piece) -> bool {
        let global = match (self.global, next.global) {
            (Some(first), Some(next)) => first + self.len == next,
            (first, next) => first == next,
        };
        global && self.shared + self.len == next.shared
    }
}

/// The bytes of a box that starts at an index of a tensor and at one of a version of a buffer, and
/// whether it reaches out of that.
fn pieces(
    tile: &TmaBox,
    (tensor, from): (&BufferInfo, &[i64]),
    (shared, place, version): (&BufferInfo, &[i64], i64),
) -> (Vec<Piece>, bool) {
    let base = version * shared.version_elements;
    let size = shared.bits() as usize / 8;
    let mut pieces: Vec<Piece> = Vec::new();
    let mut outside = false;
    for_each_element(tile, place.len(), |element, element_in_shared| {
        let index = |first: &[i64], i: usize, by: &[i64]| first[i].wrapping_add(by[i]);
        let mut row_major = 0;
        for (i, extent) in shared.shape.iter().enumerate() {
            let index = index(place, i, element_in_shared);
            outside |= !(0..*extent).contains(&index);
            row_major += index * shared.strides[i];
        }
        if outside {
            return;
        }
        let physical = match &shared.places {
            Some(places) => i64::from(places[row_major as usize]),
            None => row_major,
        };
        let inside =
            (0..from.len()).all(|i| (0..tensor.shape[i]).contains(&index(from, i, element)));
        let linear =
            (0..from.len()).map(|i| index(from, i, element).wrapping_mul(tensor.strides[i]));
        let piece = Piece {
            global: inside.then(|| linear.sum::<i64>() as usize * size),
            shared: byte_of(shared, (base + physical) as usize),
            len: size,
        };
        match pieces.last_mut() {
            Some(last) if last.goes_on(&piece) => last.len += size,
            _ => pieces.push(piece),
        }
    });
    (pieces, outside)
}

/// Where bytes lie in shared memory, those next to each other together: a swizzle leaves no gaps.
fn in_a_row(pieces: &[Piece], lane: u32) -> Vec<Range> {
    let mut sorted: Vec<(usize, usize)> = pieces.iter().map(|p| (p.shared, p.len)).collect();
    sorted.sort_unstable();
    let mut ranges: Vec<Range> = Vec::new();
    for (start, len) in sorted {
        match ranges.last_mut() {
            Some(last) if last.start + last.len == start => last.len += len,
            _ => ranges.push(Range { lane, start, len }),
        }
    }
    ranges
}

/// The elements of a box, last dimension fastest, each by its index in the tensor's box and in a
/// buffer of shared memory of so many dimensions.
fn for_each_element(tile: &TmaBox, rank: usize, mut f: impl FnMut(&[i64], &[i64])) {
    let extents = tile.extents();
    let own: Vec<usize> = (0..extents.len()).filter(|&i| extents[i] > 1).collect();
    let Some(ones) = rank.checked_sub(own.len()) else {
        return;
    };
    let (mut element, mut in_shared) = (vec![0; extents.len()], vec![0; rank]);
    for _ in 0..tile.elements() {
        for (at, &i) in own.iter().enumerate() {
            in_shared[ones + at] = element[i];
        }
        f(&element, &in_shared);
        for (index, extent) in element.iter_mut().zip(extents).rev() {
            *index += 1;
            if *index < i64::from(*extent) {
                break;
            }
            *index = 0;
        }
    }
}
