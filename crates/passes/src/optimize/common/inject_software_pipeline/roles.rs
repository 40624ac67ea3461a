//! Producer and consumers of a loop: what the engine derives of two streams, as pieces.
//!
//! The engine says when a stream acquires and releases each channel
//! ([`tilewright_schedule::order::streams`]). Here those become statements, and each stream a loop of
//! its own that is written out like any other:
//!
//! ```text
//! producer, iteration it                          consumers
//! mbarrier_wait S_empty[it % 3] parity=(it // 3 + 1) % 2   mbarrier_wait S_full[it % 3] parity=it // 3 % 2
//! mbarrier_expect_tx S_full[it % 3] bytes=49152 arrive     mma … S slot=(it % 3) …
//! tma_load … -> S slot=(it % 3) … arrives=S_full[it % 3]   mbarrier_arrive S_empty[it % 3] warp
//! ```

use tilewright_ir::{
    Arrival, ArriveAt, Block, Buffer, BufferData, BufferOrigin, Counter, DType, DeviceOp,
    EvictionPolicy, Expr, FenceKind, Func, Kernel, Loop, Machine, Scope, Span, Stmt, StmtKind,
    ThreadOp, Var, VarKind, WARP_GROUP,
};
use tilewright_schedule::footprint::Meeting;
use tilewright_schedule::order::streams::{
    Expect, Hand, Proxy, Role, Stream, StreamSchedule, Streams, StreamsError, Tile, derive_streams,
};
use tilewright_schedule::order::{Completion, Op, Order, Section, Step, Tail};

use super::super::effects::Effects;
use super::again::Before;
use super::alternate::alternate;
use super::derive::Scheduled;
use super::memory::blocks_at_once;
use super::need;
use super::pairs::{self, Pairs};
use super::pieces::{Piece, Pieces};
use super::resident::Resident;
use super::schedules::Why;
use crate::decisions::{OVERLAP, STREAM};
use crate::legalize::own_tiles::is_read_once;

/// What each role runs.
pub(super) struct Roles {
    pub producer: Part,
    pub consumers: Part,
    pub channels: Vec<Between>,
    /// By which two consumers take turns, where they do.
    pub turn: Option<Buffer>,
    /// Blocks that stay and take several tiles, or why they do not.
    pub resident: Result<Resident, Why>,
    /// Blocks that bring each other halves of tiles, or why they do not.
    pub pairs: Result<Pairs, Why>,
    /// Products that start before the ones before them are done, or why they do not.
    pub overlap: Result<(), Why>,
    /// The tensors that leave the cache first: nobody reads again what was copied.
    pub leaving: Vec<Buffer>,
}

impl Roles {
    /// All arrival barriers.
    pub fn barriers(&self) -> impl Iterator<Item = Buffer> + '_ {
        let channels = self.channels.iter().flat_map(|c| [c.full, c.empty]);
        channels.chain(self.turn)
    }
}

/// A channel between the roles.
pub(super) struct Between {
    pub tiles: Vec<Buffer>,
    pub versions: u32,
    pub full: Buffer,
    pub empty: Buffer,
    /// Whether other blocks write the tiles too.
    pub paired: bool,
}

/// The loop of one role.
pub(super) struct Part {
    pub pieces: Pieces,
    pub scheduled: Scheduled,
    /// What follows the loop.
    pub behind: Block,
}

/// How a product of a warp group completes.
const PRODUCT: Completion = Completion::Counted {
    counter: Counter::Wgmma,
    instructions: 1,
};

const PRODUCER: usize = 0;
const CONSUMERS: usize = 1;

/// Derives the roles of pieces, of which those with a bulk copy are the producer's. `before` says how
/// often the loop has run. `func` gets the barriers.
pub(super) fn derive(
    func: &mut Func,
    (kernel, machine): (&Kernel, &Machine),
    pieces: &Pieces,
    (l, before): (&Loop, &Before),
) -> Result<Roles, Why> {
    let axis = &l.axes[0];
    let (trip, dtype) = (axis.const_trip_count(), axis.stop.dtype());
    let (copies, others): (Vec<&Piece>, Vec<&Piece>) =
        pieces.list.iter().partition(|p| p.distance > 0);
    let mut tiles: Vec<Buffer> = Vec::new();
    for piece in &copies {
        tiles.extend(&Effects::of(func, &piece.stmt).writes);
    }
    tiles.sort_unstable();
    tiles.dedup();
    let stages = copies.iter().map(|p| p.distance + 1).max().unwrap_or(1);
    let versions = match before {
        Before::Unknown => round(stages, trip)?,
        _ => stages,
    };
    let hands = |piece: &Piece, bytes: u32| -> Vec<Hand> {
        let effects = Effects::of(func, &piece.stmt);
        let own = tiles.iter().enumerate();
        let own = own.filter(|(_, tile)| effects.touches(**tile));
        let hand = own.map(|(tile, buffer)| Hand {
            tile,
            write: effects.writes.contains(buffer),
            proxy: if bytes > 0 || piece.is_product_in_flight() {
                Proxy::Async
            } else {
                Proxy::Generic
            },
            bytes,
        });
        hand.collect()
    };
    let reported = |p: &&Piece| match p.bulk.as_deref() {
        Some(Ok(bulk)) => hands(p, bulk.bytes),
        _ => Vec::new(),
    };
    let overlap = overlap((func, kernel), &others, versions);
    let in_flight = u32::from(overlap.is_ok());
    let producer = Stream {
        hands: copies.iter().map(reported).collect(),
        ..stream(&copies, trip, 1)
    };
    let consumers = Stream {
        hands: others.iter().map(|p| hands(p, 0)).collect(),
        in_flight,
        ..stream(&others, trip, kernel.num_threads() / machine.warp_size)
    };
    let once = matches!(before, Before::None);
    let pairs = match once {
        true => Pairs::of(func, (kernel, machine), l, (&copies, &others)),
        false => Err("the loop stands in another statement".into()),
    };
    let leaving = match once && STREAM.asked(func) != Some(false) {
        true => read_once((func, kernel), l, &copies, pairs.as_ref().ok()),
        false => Vec::new(),
    };
    let paired = |tile: &Buffer| match &pairs {
        Ok(pairs) => pairs.shared.iter().any(|at| {
            let bulk = copies[*at].bulk.as_deref();
            bulk.is_some_and(|b| b.as_ref().is_ok_and(|b| b.op.dest.region.buffer == *tile))
        }),
        Err(_) => false,
    };
    let tile = |buffer: &Buffer| Tile {
        versions,
        blocks: if paired(buffer) { pairs::BLOCKS } else { 1 },
    };
    let streams = Streams {
        streams: vec![producer, consumers],
        tiles: tiles.iter().map(tile).collect(),
    };
    // What consumers share among themselves ThreadSync orders.
    let derived = derive_streams(&streams, &|_, _, _| Meeting::InThread);
    let derived = derived.map_err(|error| refusal(func, &tiles, error))?;
    let iteration = func.add_var("it", dtype, VarKind::Loop);
    let mut channels = Vec::new();
    for channel in &derived.channels {
        let name = func.buffers[tiles[channel.tiles[0]]].name.clone();
        let [full, empty] = [("full", channel.full), ("empty", channel.empty)]
            .map(|(what, count)| barrier(func, format!("{name}_{what}"), count, channel.versions));
        channels.push(Between {
            tiles: channel.tiles.iter().map(|t| tiles[*t]).collect(),
            versions: channel.versions,
            full,
            empty,
            paired: channel.blocks > 1,
        });
    }
    let write = Write {
        iteration,
        dtype,
        channels: &channels,
        tiles: &tiles,
        whole: pieces,
        pairs: pairs.as_ref().ok(),
        leaving: &leaving,
        func,
    };
    let [producer, consumers] = [PRODUCER, CONSUMERS].map(|at| &derived.streams[at]);
    let mut producer = write.part(producer, &copies, Block::new());
    let mut consumers = write.part(consumers, &others, pieces.allocs.clone());
    let turn = match once {
        true => alternate(func, (kernel, machine), &mut consumers),
        false => None,
    };
    let resident = match (once, turn) {
        (true, None) => {
            let threads = kernel.num_threads() + WARP_GROUP;
            let site = (kernel, machine);
            let at_once = blocks_at_once(
                func,
                site,
                (threads, need::registers(func)),
                (&tiles, versions),
            );
            let bulk = copies
                .iter()
                .filter_map(|p| p.bulk.as_deref()?.as_ref().ok());
            let copied = bulk.flat_map(|b| b.op.sources.iter().map(|s| s.region.buffer));
            let copied: Vec<Buffer> = copied.collect();
            Resident::of(func, site, l, (at_once, &copied), pairs.is_ok())
        }
        (true, Some(_)) => Err("consumers take turns".into()),
        (false, _) => Err("the loop stands in another statement".into()),
    };
    let earlier = match (&resident, before) {
        (Ok(resident), _) => {
            let round = func.var_expr(resident.round).cast_to(dtype);
            trip.map(|n| round * Expr::int(n.into(), dtype))
        }
        (_, Before::Counted(count)) => Some(count.clone()),
        _ => None,
    };
    for part in [&mut producer, &mut consumers] {
        part.pieces.before = earlier.clone();
    }
    Ok(Roles {
        producer,
        consumers,
        turn,
        resident,
        pairs,
        overlap,
        leaving,
        channels,
    })
}

/// Whether the next product starts before the last one is done, whose tiles are handed back an iteration
/// later: where nobody else multiplies meanwhile, and versions are enough.
fn overlap((func, kernel): (&Func, &Kernel), others: &[&Piece], versions: u32) -> Result<(), Why> {
    const ROOM: u32 = 4;
    if !others.iter().all(|p| p.is_product_in_flight()) {
        return Err("an iteration does more than multiply".into());
    }
    if versions < 2 {
        return Err("tiles have one version".into());
    }
    match OVERLAP.asked(func) {
        Some(true) => Ok(()),
        Some(false) => Err("it is switched off".into()),
        None if kernel.num_threads() != WARP_GROUP => {
            Err("another warp group multiplies meanwhile".into())
        }
        None if versions < ROOM => Err(format!("tiles have fewer than {ROOM} versions").into()),
        None => Ok(()),
    }
}

/// The tensors of which no copy brings what another block or iteration reads.
fn read_once(
    (func, kernel): (&Func, &Kernel),
    l: &Loop,
    copies: &[&Piece],
    pairs: Option<&Pairs>,
) -> Vec<Buffer> {
    let mut found = Vec::new();
    for (at, piece) in copies.iter().enumerate() {
        let Some(Ok(bulk)) = piece.bulk.as_deref() else {
            continue;
        };
        // A pair reads it together, where it is all there are along its axis.
        let together = pairs.filter(|pairs| pairs.shared.contains(&at));
        let axis = together.map(|pairs| &kernel.grid[pairs.axis]);
        let axis = axis.filter(|(_, extent)| extent.is_int(pairs::BLOCKS.into()));
        let of = &bulk.op.sources[0].region;
        if is_read_once(func, kernel, l, of, axis.map(|(var, _)| *var)) {
            found.push(of.buffer);
        }
    }
    found
}

/// The versions with which the barriers of a loop are in the same phase after it as before, so that
/// it can run again: each barrier completes an even number of phases.
fn round(stages: u32, trip: Option<u64>) -> Result<u32, Why> {
    let Some(trip) = trip else {
        return Err("it runs again and again, how often is known at the call".into());
    };
    let even = |versions: &u32| trip % u64::from(2 * versions) == 0;
    let mut tried = [stages, stages + 1].into_iter();
    tried.find(even).ok_or_else(|| {
        let why = "iterations leave the barriers in another phase, and it runs again";
        format!("its {trip} {why}").into()
    })
}

fn refusal(func: &Func, tiles: &[Buffer], error: StreamsError) -> Why {
    let name = |tile: usize| &func.buffers[tiles[tile]].name;
    match error {
        StreamsError::NotHanded { tile } => {
            format!("`{}` is not only copied and then read", name(tile)).into()
        }
        StreamsError::TooFewVersions { tile, needed, .. } => {
            format!("`{}` would need {needed} versions", name(tile)).into()
        }
        StreamsError::Deadlock { .. } => "each role would wait for the other".into(),
        StreamsError::Order { .. } => "its order breaks a dependence".into(),
    }
}

/// Ops one after another, none ahead of another.
fn stream(pieces: &[&Piece], trip: Option<u64>, arrivals: u32) -> Stream {
    let ops = pieces.iter().enumerate().map(|(program, piece)| Op {
        distance: 0,
        touches: Vec::new(),
        completion: match piece.is_product_in_flight() {
            true => PRODUCT,
            false => Completion::Sync,
        },
        program,
    });
    Stream {
        arrivals,
        order: Order {
            ops: ops.collect(),
            resources: Vec::new(),
            barriers: vec![0; pieces.len()],
            lag: 0,
            tail: Tail::Peel,
            trip,
            spare: 0,
        },
        hands: Vec::new(),
        in_flight: 0,
    }
}

pub(super) fn barrier(func: &mut Func, name: String, arrivals: u32, versions: u32) -> Buffer {
    func.buffers.push(BufferData {
        origin: BufferOrigin::Barriers(vec![arrivals; versions as usize]),
        ..BufferData::new(
            name,
            Scope::Barrier,
            DType::U64,
            vec![Expr::i32(versions as i32)],
        )
    })
}

/// Makes pieces of a derived stream.
struct Write<'a> {
    /// Stands for the iteration in the pieces.
    iteration: Var,
    dtype: DType,
    channels: &'a [Between],
    tiles: &'a [Buffer],
    whole: &'a Pieces,
    pairs: Option<&'a Pairs>,
    leaving: &'a [Buffer],
    func: &'a Func,
}

impl Write<'_> {
    fn part(&self, derived: &StreamSchedule, own: &[&Piece], allocs: Block) -> Part {
        let span = own.first().map_or(Span::NONE, |p| p.stmt.span);
        let mut list: Vec<Piece> = Vec::new();
        // The pieces that an op of the derived order has become.
        let mut made: Vec<std::ops::Range<usize>> = Vec::new();
        for (op, role) in derived.order.ops.iter().zip(&derived.roles) {
            let first = list.len();
            let piece = |stmt: Stmt| Piece {
                stmt,
                distance: op.distance,
                program: op.program,
                completion: Completion::Sync,
                priority: 0,
                woven: None,
                late: false,
                steps: None,
                bulk: None,
            };
            match *role {
                Role::Op(at) => list.push(piece(self.op(at, own[at]))),
                Role::Acquire { channel, expect } => {
                    list.extend(self.acquire(channel, expect, span).into_iter().map(piece));
                }
                Role::Release { channel, fence } => {
                    list.extend(self.release(channel, fence, span).into_iter().map(piece));
                }
            }
            made.push(first..list.len());
        }
        let section = |s: &Section| Section {
            steps: s
                .steps
                .iter()
                .flat_map(|step| steps(*step, &made))
                .collect(),
        };
        let mut schedule = derived.schedule.clone();
        schedule.prologue = schedule.prologue.iter().map(section).collect();
        schedule.steady = section(&schedule.steady);
        schedule.epilogue = schedule.epilogue.iter().map(section).collect();
        schedule.drain = schedule
            .drain
            .iter()
            .flat_map(|step| steps(*step, &made))
            .collect();
        schedule.served = Vec::new();
        let versions = self.tiles.iter().map(|tile| {
            let of_tile = self.channels.iter().find(|c| c.tiles.contains(tile));
            of_tile.map_or(1, |c| c.versions)
        });
        schedule.versions = versions.collect();
        let stages = schedule.versions.iter().copied().max().unwrap_or(1);
        Part {
            pieces: Pieces {
                list,
                allocs,
                iteration: Some(self.iteration),
                ..self.whole.clone()
            },
            scheduled: Scheduled {
                schedule,
                buffers: self.tiles.to_vec(),
                tail: Tail::Peel,
                stages,
                half: None,
            },
            behind: Block::new(),
        }
    }

    fn op(&self, at: usize, piece: &Piece) -> Stmt {
        let Some(Ok(bulk)) = piece.bulk.as_deref().filter(|_| piece.distance > 0) else {
            return piece.stmt.clone();
        };
        let mut op = bulk.op.clone();
        let shared = self.pairs.filter(|pairs| pairs.shared.contains(&at));
        let half = shared.and_then(|pairs| pairs.half(self.func, &op));
        let multicast = half.as_ref().map(|_| pairs::BOTH);
        op = half.unwrap_or(op);
        if self.leaving.contains(&op.sources[0].region.buffer) {
            op.evict.get_or_insert(EvictionPolicy::First);
        }
        let mut channels = self.channels.iter().enumerate();
        let own = channels.find(|(_, c)| c.tiles.contains(&op.dest.region.buffer));
        op.arrives = own.map(|(at, channel)| Arrival {
            barrier: channel.full,
            index: self.version(at),
            multicast,
        });
        Stmt::new(StmtKind::Micro(op), piece.stmt.span)
    }

    fn acquire(&self, channel: usize, expect: Expect, span: Span) -> Vec<Stmt> {
        let Between { full, empty, .. } = self.channels[channel];
        let writes = expect != Expect::Nothing;
        let phase = self.it().floor_div(self.versions(channel));
        let parity = if writes {
            phase + Expr::int(1, self.dtype)
        } else {
            phase
        };
        let mut ops = vec![ThreadOp::BarrierWait {
            barrier: if writes { empty } else { full },
            index: self.version(channel),
            parity: parity.floor_mod(Expr::int(2, self.dtype)),
        }];
        if let Expect::AndArrive(bytes) | Expect::Only(bytes) = expect {
            ops.push(ThreadOp::BarrierExpect {
                barrier: full,
                index: self.version(channel),
                bytes: Expr::i32(bytes as i32),
                arrive: matches!(expect, Expect::AndArrive(_)),
            });
        }
        let stmts = ops
            .into_iter()
            .map(|op| Stmt::new(StmtKind::Thread(op), span));
        stmts.collect()
    }

    fn release(&self, channel: usize, fence: bool, span: Span) -> Vec<Stmt> {
        let fence = fence.then_some(StmtKind::Device(DeviceOp::Fence(FenceKind::AsyncProxy)));
        let arrive = StmtKind::Thread(ThreadOp::BarrierArrive {
            barrier: self.channels[channel].empty,
            index: self.version(channel),
            warp: true,
            at: match self.channels[channel].paired {
                true => ArriveAt::All,
                false => ArriveAt::Own,
            },
        });
        let stmts = fence.into_iter().chain([arrive]);
        stmts.map(|kind| Stmt::new(kind, span)).collect()
    }

    fn it(&self) -> Expr {
        Expr::var(self.iteration, self.dtype)
    }

    fn versions(&self, channel: usize) -> Expr {
        Expr::int(self.channels[channel].versions.into(), self.dtype)
    }

    fn version(&self, channel: usize) -> Expr {
        self.it().floor_mod(self.versions(channel))
    }
}

/// A step of the derived order as steps of the pieces. Products are closed and waited for by
/// RewriteWgmmaSync, which knows of their registers too.
fn steps(step: Step, made: &[std::ops::Range<usize>]) -> Vec<Step> {
    match step {
        Step::Run(op) => made[op].clone().map(Step::Run).collect(),
        Step::Commit(Counter::Wgmma)
        | Step::Wait {
            counter: Counter::Wgmma,
            ..
        } => Vec::new(),
        other => vec![other],
    }
}
