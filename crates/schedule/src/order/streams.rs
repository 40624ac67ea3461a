//! Several streams of warps, each with an order of its own, that hand tiles to each other.
//!
//! Warps of one stream meet at barriers; streams do not meet. What one stream writes and others
//! read goes through a *channel*: so many versions of the tiles, each with two arrival barriers.
//! `full` completes when the tile is there (arrivals, and bytes where a copy engine reports them),
//! `empty` when every reader has done with it. Writers wait for `empty`, readers for `full`:
//!
//! ```text
//! stream load (one thread)                 stream math (two warp groups)
//! acquire AB(it): empty, expect 48 K       acquire AB(it): full
//! copy A(it), copy B(it)                   product(it), commit
//!                                          wait wgmma(1); release AB(it - 1)
//! ```
//!
//! Acquiring and releasing are ops of the stream's order like the others: a tile is acquired just
//! before its first use and released after its last one, as many iterations later as the stream
//! leaves of it in flight. So the engine derives the waits before a release, the prologue and what
//! is left to release at the end as it does for everything else ([`super::derive`]).
//!
//! Iteration `it` of a channel of `V` versions is version `it % V` in phase `it / V`: a reader waits
//! for `full` with parity `it / V % 2`, a writer for `empty` with the other one, which a fresh
//! barrier is taken to have completed.

use super::{Completion, Meets, Op, Order, OrderError, Resource, Schedule, Space, Tail, Touch};
use crate::footprint::Meeting;

/// Streams and what they hand to each other.
#[derive(Clone, Debug)]
pub struct Streams {
    pub streams: Vec<Stream>,
    /// The tiles that go from one stream to others. Each iteration writes all of one.
    pub tiles: Vec<Tile>,
}

/// Warps that run the same ops in the same order.
#[derive(Clone, Debug)]
pub struct Stream {
    /// How many of it arrive at a barrier: an elected thread, or one for each warp.
    pub arrivals: u32,
    /// The order of its own, with the resources that no other stream touches.
    pub order: Order,
    /// The tiles that each op touches.
    pub hands: Vec<Vec<Hand>>,
    /// Iterations of what it does with tiles that it leaves in flight when it goes on.
    pub in_flight: u32,
}

/// An op touches a tile.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Hand {
    pub tile: usize,
    pub write: bool,
    pub proxy: Proxy,
    /// The bytes that a copy engine reports to the tile's barrier when they have landed; zero where
    /// the op itself says when it is done.
    pub bytes: u32,
}

/// Through which path an op sees memory. What one path wrote the other sees behind a fence.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Proxy {
    /// Loads and stores of threads.
    Generic,
    /// Copy engines and matrix units that read shared memory.
    Async,
}

/// A tile that streams hand over.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Tile {
    /// How many there may be at a time.
    pub versions: u32,
    /// Blocks, each with these streams, that write all of each other's tiles together: one that is
    /// written must be free in all of them.
    pub blocks: u32,
}

/// Tiles with the same two barriers for each version.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Channel {
    pub tiles: Vec<usize>,
    pub versions: u32,
    pub writer: usize,
    pub readers: Vec<usize>,
    /// Arrivals that complete a phase of `full` and of `empty`.
    pub full: u32,
    pub empty: u32,
    /// Blocks whose readers arrive at each other's `empty`.
    pub blocks: u32,
}

/// What an op of a derived order is.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    /// An op of the stream, by its index there.
    Op(usize),
    /// Waits until the channel's tile of the iteration may be written or read. A writer announces
    /// the bytes that copy engines will report, and arrives with that, where they are all there is.
    Acquire { channel: usize, expect: Expect },
    /// Arrives: the tile is written, or read. What others see through another proxy is fenced first.
    Release { channel: usize, fence: bool },
}

/// Bytes that a writer announces.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Expect {
    Nothing,
    /// And arrives with it: nothing else is written.
    AndArrive(u32),
    /// The arrival is a release of its own.
    Only(u32),
}

/// A stream with its handing over, and what follows from it.
#[derive(Clone, Debug)]
pub struct StreamSchedule {
    /// By op of the order.
    pub roles: Vec<Role>,
    pub order: Order,
    pub schedule: Schedule,
}

#[derive(Clone, Debug)]
pub struct StreamsSchedule {
    pub channels: Vec<Channel>,
    pub streams: Vec<StreamSchedule>,
}

/// Why streams cannot be.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum StreamsError {
    /// A tile must have one stream that writes it and others that read it.
    NotHanded {
        tile: usize,
    },
    /// A stream holds more versions of a tile at a time than there are.
    TooFewVersions {
        tile: usize,
        stream: usize,
        needed: u32,
    },
    /// Each of some streams waits for another: this one among them.
    Deadlock {
        stream: usize,
    },
    Order {
        stream: usize,
        error: OrderError,
    },
}

/// How threads of a stream meet: the stream, and two ops of its own with their touches.
pub type StreamMeets<'a> = &'a dyn Fn(usize, (usize, usize), (usize, usize)) -> Meeting;

/// Derives channels, and for each stream its order with all waits.
pub fn derive_streams(
    streams: &Streams,
    meets: StreamMeets<'_>,
) -> Result<StreamsSchedule, StreamsError> {
    let channels = channels(streams)?;
    let mut derived = Vec::new();
    for at in 0..streams.streams.len() {
        let own = |a, x, b, y| meets(at, (a, x), (b, y));
        derived.push(derive_one(streams, &channels, at, &own)?);
    }
    let all = StreamsSchedule {
        channels,
        streams: derived,
    };
    match stuck(&all) {
        Some(stream) => Err(StreamsError::Deadlock { stream }),
        None => Ok(all),
    }
}

/// Tiles that one stream writes together and others read together share a channel: in every reader
/// nothing that completes later is issued between the first touches of them. A reader is done with a
/// version when it is done with all of them, for only then can the next ones be written.
fn channels(streams: &Streams) -> Result<Vec<Channel>, StreamsError> {
    // A stream, and where it touches a tile first.
    type Use = (usize, usize);
    let mut found: Vec<(Channel, Vec<Use>)> = Vec::new();
    for (tile, data) in streams.tiles.iter().enumerate() {
        let mut uses: Vec<Use> = Vec::new();
        let (mut writers, mut readers) = (Vec::new(), Vec::new());
        for (at, stream) in streams.streams.iter().enumerate() {
            let hands = |op: &usize| stream.hands[*op].iter().any(|h| h.tile == tile);
            let ops: Vec<usize> = (0..stream.hands.len()).filter(hands).collect();
            let Some(first) = ops.first() else {
                continue;
            };
            let mut own = ops.iter().flat_map(|op| &stream.hands[*op]);
            let writes = own.any(|h| h.tile == tile && h.write);
            if writes { &mut writers } else { &mut readers }.push(at);
            // Copies of different tiles that follow each other are one delivery.
            let first = if writes {
                delivery(stream, *first)
            } else {
                *first
            };
            uses.push((at, first));
        }
        let (&[writer], false) = (&writers[..], readers.is_empty()) else {
            return Err(StreamsError::NotHanded { tile });
        };
        let arrivals = |stream: &usize| streams.streams[*stream].arrivals;
        let together = |(at, a): Use, (other, b): Use| {
            if at != other {
                return false;
            }
            let between = &streams.streams[at].order.ops[a.min(b)..a.max(b)];
            let waits = |op: &Op| op.completion != Completion::Sync;
            a == b || at != writer && !between.iter().any(waits)
        };
        let same = |(channel, known): &&mut (Channel, Vec<Use>)| {
            channel.versions == data.versions
                && known.len() == uses.len()
                && known.iter().zip(&uses).all(|(a, b)| together(*a, *b))
        };
        let readings: u32 = readers.iter().map(arrivals).sum();
        match found.iter_mut().find(same) {
            Some((channel, _)) => {
                channel.tiles.push(tile);
                channel.blocks = channel.blocks.max(data.blocks);
                channel.empty = readings * channel.blocks;
            }
            None => found.push((
                Channel {
                    tiles: vec![tile],
                    versions: data.versions,
                    writer,
                    full: arrivals(&writer),
                    empty: readings * data.blocks,
                    blocks: data.blocks,
                    readers,
                },
                uses,
            )),
        }
    }
    Ok(found.into_iter().map(|(channel, _)| channel).collect())
}

/// The first of the ops in a row, this one the last of them, that write tiles at one distance.
fn delivery(stream: &Stream, op: usize) -> usize {
    let writes = |op: &usize| stream.hands[*op].iter().any(|h| h.write);
    let alike = |a: usize| stream.order.ops[a].distance == stream.order.ops[op].distance;
    let before = (0..op).rev().take_while(|a| writes(a) && alike(*a));
    before.last().unwrap_or(op)
}

fn derive_one(
    streams: &Streams,
    channels: &[Channel],
    at: usize,
    meets: Meets<'_>,
) -> Result<StreamSchedule, StreamsError> {
    let (order, roles) = with_handing_over(streams, channels, at);
    let own = streams.streams[at].order.resources.len();
    let placed = |op: usize| match roles[op] {
        Role::Op(op) => Some(op),
        _ => None,
    };
    let meets_here = |a: usize, x: usize, b: usize, y: usize| {
        // What is held of a channel is each thread's own concern.
        if order.ops[a].touches[x].resource >= own {
            return Meeting::InThread;
        }
        match (placed(a), placed(b)) {
            (Some(a), Some(b)) => meets(a, x, b, y),
            _ => Meeting::Nowhere,
        }
    };
    let schedule = super::derive(&order, &meets_here)
        .map_err(|error| StreamsError::Order { stream: at, error })?;
    for (held, channel) in channels.iter().enumerate() {
        let needed = schedule.versions[own + held];
        if needed > channel.versions {
            return Err(StreamsError::TooFewVersions {
                tile: channel.tiles[0],
                stream: at,
                needed,
            });
        }
    }
    Ok(StreamSchedule {
        roles,
        order,
        schedule,
    })
}

/// The stream's order with an op for each time it acquires or releases a channel. For each channel
/// there is one resource more, which stands for what the stream holds of it: written when it is
/// acquired and when it is released, read between.
fn with_handing_over(streams: &Streams, channels: &[Channel], at: usize) -> (Order, Vec<Role>) {
    let stream = &streams.streams[at];
    let own = stream.order.resources.len();
    let mut order = Order {
        ops: Vec::new(),
        barriers: Vec::new(),
        tail: Tail::Peel,
        ..stream.order.clone()
    };
    order.resources.extend(channels.iter().map(|_| Resource {
        space: Space::Shared,
        private: true,
    }));
    let mut roles = Vec::new();
    let mut push = |op: Op, role: Role, barriers: u32| {
        order.ops.push(op);
        order.barriers.push(barriers);
        roles.push(role);
    };
    let hold = |channel: usize, write: bool| Touch {
        resource: own + channel,
        write,
    };
    let touches = |op: usize, channel: &Channel| {
        let mut hands = stream.hands[op].iter();
        hands.any(|h| channel.tiles.contains(&h.tile))
    };
    let uses = |channel: &Channel| -> Option<(usize, usize)> {
        let ops: Vec<usize> = (0..stream.order.ops.len())
            .filter(|op| touches(*op, channel))
            .collect();
        Some((*ops.first()?, *ops.last()?))
    };
    for (op, data) in stream.order.ops.iter().enumerate() {
        let ahead = data.distance + stream.in_flight;
        for (c, channel) in channels.iter().enumerate() {
            if uses(channel).is_some_and(|(first, _)| first == op) {
                let expect = expect(stream, at, channel);
                let role = Role::Acquire { channel: c, expect };
                push(handing(ahead, 3 * data.program, hold(c, true)), role, 0);
            }
        }
        let mut placed = Op {
            distance: ahead,
            program: 3 * data.program + 1,
            ..data.clone()
        };
        let held = channels.iter().enumerate();
        let held = held.filter(|(_, channel)| touches(op, channel));
        placed.touches.extend(held.map(|(c, _)| hold(c, false)));
        let set = stream.order.barriers.get(op).copied().unwrap_or(0);
        push(placed, Role::Op(op), set);
        for (c, channel) in channels.iter().enumerate() {
            let last = uses(channel).is_some_and(|(_, last)| last == op);
            if last && !matches!(expect(stream, at, channel), Expect::AndArrive(_)) {
                // What is in flight is released when it is done.
                let waits = data.completion != Completion::Sync;
                let behind = if waits { stream.in_flight } else { 0 };
                let fence = needs_fence(streams, at, channel);
                let role = Role::Release { channel: c, fence };
                let op = handing(ahead - behind, 3 * data.program + 2, hold(c, true));
                push(op, role, 0);
            }
        }
    }
    (order, roles)
}

fn handing(distance: u32, program: usize, touch: Touch) -> Op {
    Op {
        distance,
        touches: vec![touch],
        completion: Completion::Sync,
        program,
    }
}

/// What a stream announces when it acquires a channel.
fn expect(stream: &Stream, at: usize, channel: &Channel) -> Expect {
    if at != channel.writer {
        return Expect::Nothing;
    }
    let hands = stream.hands.iter().flatten();
    let own: Vec<&Hand> = hands
        .filter(|h| h.write && channel.tiles.contains(&h.tile))
        .collect();
    let bytes: u32 = own.iter().map(|h| h.bytes).sum();
    match (bytes, own.iter().all(|h| h.bytes > 0)) {
        (0, _) => Expect::Nothing,
        (bytes, true) => Expect::AndArrive(bytes),
        (bytes, false) => Expect::Only(bytes),
    }
}

/// Whether threads of the stream write what a copy engine or a matrix unit of another will read.
fn needs_fence(streams: &Streams, at: usize, channel: &Channel) -> bool {
    let seen = |stream: usize, proxy: Proxy| {
        let mut hands = streams.streams[stream].hands.iter().flatten();
        hands.any(|h| h.proxy == proxy && channel.tiles.contains(&h.tile))
    };
    let mut readers = channel.readers.iter();
    at == channel.writer
        && seen(at, Proxy::Generic)
        && readers.any(|reader| seen(*reader, Proxy::Async))
}

/// A stream that never comes to its end, if there is one. Streams wait for each other at channels
/// alone, and more time changes nothing: what runs as soon as it can shows whether all can.
fn stuck(all: &StreamsSchedule) -> Option<usize> {
    let trips = all
        .channels
        .iter()
        .map(|c| u64::from(c.versions))
        .max()
        .unwrap_or(1);
    let trips = 2 * trips + 4;
    let ways: Vec<Vec<(Role, u64)>> = all.streams.iter().map(|s| way(s, trips)).collect();
    let mut at = vec![0usize; ways.len()];
    // Tiles written, and read by all readers, so far.
    let released = |at: &[usize], channel: usize, stream: usize| {
        let done = ways[stream][..at[stream]].iter();
        let done = done.filter(|(role, _)| match role {
            Role::Release { channel: c, .. } => *c == channel,
            Role::Acquire {
                channel: c,
                expect: Expect::AndArrive(_),
            } => *c == channel,
            _ => false,
        });
        done.count() as u64
    };
    loop {
        let mut moved = false;
        for stream in 0..ways.len() {
            while let Some(&(role, iteration)) = ways[stream].get(at[stream]) {
                let ready = match role {
                    Role::Acquire { channel, .. } => {
                        let c = &all.channels[channel];
                        match stream == c.writer {
                            true => c.readers.iter().all(|r| {
                                released(&at, channel, *r) + u64::from(c.versions) > iteration
                            }),
                            false => released(&at, channel, c.writer) > iteration,
                        }
                    }
                    _ => true,
                };
                if !ready {
                    break;
                }
                at[stream] += 1;
                moved = true;
            }
        }
        if !moved {
            return (0..ways.len()).find(|s| at[*s] < ways[*s].len());
        }
    }
}

/// What a stream runs, with the iteration of each.
fn way(stream: &StreamSchedule, trips: u64) -> Vec<(Role, u64)> {
    let depth = i64::from(stream.schedule.depth);
    let mut way = Vec::new();
    for it in -depth..trips as i64 {
        for (op, role) in stream.order.ops.iter().zip(&stream.roles) {
            let iteration = it + i64::from(op.distance);
            if let Ok(iteration) = u64::try_from(iteration)
                && iteration < trips
            {
                way.push((*role, iteration));
            }
        }
    }
    way
}
