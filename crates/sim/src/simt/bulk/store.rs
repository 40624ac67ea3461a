//! Bulk stores: the copy engine takes boxes out of shared memory, which it reads through the async
//! proxy, and writes them to tensors.
//!
//! They are in the queue of their warp, in groups of their thread. Shared memory is held until a wait says that it
//! has been read; what was read is written when the group is waited for altogether, or when the
//! kernel ends.

use tilewright_ir::Counter;

use super::{Issue, Piece, in_a_row};
use crate::simt::counts::InstKind;
use crate::simt::env::{Env, Which, who};
use crate::simt::micro::captured_shared;
use crate::simt::program::{MicroCode, Space};
use crate::simt::queue::{Dest, Move, Pending, Source, When};
use crate::simt::report::FindingKind;
use crate::simt::warp::{Lanes, Warp};

impl Env<'_> {
    /// Each lane has a box stored.
    pub(in crate::simt) fn bulk_store(&mut self, warp: &mut Warp, code: &MicroCode, taken: u64) {
        let tilewright_ir::Inst::Tma(tile) = code.inst else {
            return;
        };
        self.count(warp, InstKind::AsyncCopy);
        let program = self.program;
        let source = &program.accesses[code.sources[0] as usize];
        let dest = &program.accesses[code.dest as usize];
        let shared = &program.buffers[source.buffer as usize];
        let tensor = &program.buffers[dest.buffer as usize];
        let Space::Global(storage) = tensor.space else {
            return;
        };
        let from = self.addresses(warp, source, taken);
        for lane in Lanes(from.mask) {
            let sides = (dest, (source, from.at[lane as usize]));
            let Some(pieces) = self.box_of(warp, lane, &tile, sides) else {
                continue;
            };
            let own = pieces.into_iter();
            let pieces: Vec<Piece> = own.map(|p| self.in_rank(p, warp.rank as usize)).collect();
            let id = self.instance(warp, Which::Shared, false, false);
            self.shared.through(shared.owner);
            for piece in &pieces {
                let proxies = self.shared.proxies.as_ref();
                if let Some(at) = proxies.and_then(|p| p.unseen(piece.shared, piece.len)) {
                    let name = &shared.name;
                    self.report(warp, FindingKind::MissingFence, Some(lane), || {
                        format!(
                            "no `fence async_proxy` and barrier show byte {at} of `{name}` to it"
                        )
                    });
                }
                let me = who(warp, id, lane, false);
                let trouble = self.shared.read(me, piece.shared, piece.len);
                if !trouble.is_none() {
                    self.trouble(warp, Which::Shared, lane, false, trouble);
                }
            }
            let inside = pieces
                .iter()
                .filter_map(|piece| Some((piece, piece.global?)));
            let moves: Vec<Move> = inside
                .map(|(piece, global)| Move {
                    lane,
                    source: Source::Shared(piece.shared),
                    dest: Dest::Global(storage, global),
                    len: piece.len as u32,
                })
                .collect();
            self.announce_global(warp, &moves);
            self.next_token += 1;
            let token = self.next_token;
            self.shared.hold(token, id, false, in_a_row(&pieces, lane));
            let mut op = Pending::new(Counter::TmaStore);
            op.lane = Some(lane);
            op.token = Some(token);
            op.store = Some(Issue {
                stmt: self.stmt(warp),
                place: self.place(warp, Some(lane)),
            });
            match self.landing.of(Counter::TmaStore) {
                When::Early => self.carry(warp, &moves),
                When::Late => op.moves = moves,
            }
            warp.queue.push(op);
        }
    }

    /// Groups have read what they store, but for so many.
    pub(in crate::simt) fn wait_read(&mut self, warp: &mut Warp, at_most: u32) {
        let clock = warp.own_clock();
        for op in warp.queue.unread(at_most, warp.mask) {
            op.moves = captured_shared(&self.shared.bytes, &op.moves);
            if let Some(token) = op.token.take() {
                self.shared.release(token, None, clock);
            }
        }
    }

    /// A warp ends: what it stores must have been read, and all of it is complete.
    pub(in crate::simt) fn end_of_stores(&mut self, warp: &mut Warp) {
        for issue in warp.queue.unread_stores() {
            self.report_at(FindingKind::NotWaitedFor, issue, || {
                "the kernel may end before this has read shared memory".to_string()
            });
        }
        self.drain(warp);
    }
}
