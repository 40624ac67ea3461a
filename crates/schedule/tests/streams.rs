//! Streams that hand tiles to each other, run step by step: copies land and matrix units read when
//! they like, streams go on in any order, and every tile must be there whole, for the right
//! iteration, as long as anyone reads it. Nothing here is shared with the derivation.

use proptest::prelude::*;
use tilewright_ir::Counter;
use tilewright_schedule::footprint::Meeting;
use tilewright_schedule::order::streams::{
    Expect, Hand, Proxy, Role, Stream, Streams, StreamsError, StreamsSchedule, Tile, derive_streams,
};
use tilewright_schedule::order::{Completion, Op, Order, Step, Tail};

fn derive(streams: &Streams) -> Result<StreamsSchedule, StreamsError> {
    derive_streams(streams, &|_, _, _| Meeting::Nowhere)
}

/// A stream of ops that touch tiles; the completion of each.
fn stream(arrivals: u32, in_flight: u32, ops: &[(Completion, &[Hand])]) -> Stream {
    let op = |(program, (completion, _)): (usize, &(Completion, &[Hand]))| Op {
        distance: 0,
        touches: Vec::new(),
        completion: *completion,
        program,
    };
    Stream {
        arrivals,
        order: Order {
            ops: ops.iter().enumerate().map(op).collect(),
            resources: Vec::new(),
            barriers: vec![0; ops.len()],
            lag: 0,
            tail: Tail::Peel,
            trip: None,
            spare: 0,
        },
        hands: ops.iter().map(|(_, hands)| hands.to_vec()).collect(),
        in_flight,
    }
}

const GROUP: Completion = Completion::Counted {
    counter: Counter::Wgmma,
    instructions: 1,
};

fn reported(tile: usize, bytes: u32) -> Hand {
    Hand {
        tile,
        write: true,
        proxy: Proxy::Async,
        bytes,
    }
}

fn hand(tile: usize, write: bool, proxy: Proxy) -> Hand {
    Hand {
        tile,
        write,
        proxy,
        bytes: 0,
    }
}

/// A copy engine's stream and two of matrix units, as Hopper's products have them.
fn product(versions: u32, in_flight: u32) -> Streams {
    let read = |tile| hand(tile, false, Proxy::Async);
    Streams {
        streams: vec![
            stream(
                1,
                0,
                &[
                    (Completion::Sync, &[reported(0, 100)]),
                    (Completion::Sync, &[reported(1, 60)]),
                ],
            ),
            stream(4, in_flight, &[(GROUP, &[read(0), read(1)])]),
            stream(4, in_flight, &[(GROUP, &[read(0), read(1)])]),
        ],
        tiles: vec![
            Tile {
                versions,
                blocks: 1
            };
            2
        ],
    }
}

/// A stream as a line: `+0` acquires channel 0, `-0` releases it, letters are its ops.
fn line(all: &StreamsSchedule, stream: usize) -> String {
    let s = &all.streams[stream];
    let words = s.schedule.steady.steps.iter().map(|step| match step {
        Step::Run(op) => match s.roles[*op] {
            Role::Op(op) => char::from(b'a' + op as u8).to_string(),
            Role::Acquire { channel, expect } => match expect {
                Expect::Nothing => format!("+{channel}"),
                Expect::AndArrive(bytes) => format!("+{channel}:{bytes}!"),
                Expect::Only(bytes) => format!("+{channel}:{bytes}"),
            },
            Role::Release { channel, fence } => {
                format!("-{channel}{}", if fence { "f" } else { "" })
            }
        },
        Step::Commit(_) => "c".to_string(),
        Step::Wait { at_most, .. } => format!("w{at_most}"),
        Step::Barrier | Step::WarpSync => "|".to_string(),
    });
    words.collect::<Vec<_>>().join(" ")
}

#[test]
fn a_product_has_one_channel_and_releases_what_is_done() {
    let all = derive(&product(4, 1)).expect("it can be");
    assert_eq!(all.channels.len(), 1);
    let channel = &all.channels[0];
    assert_eq!((channel.full, channel.empty), (1, 8));
    assert_eq!(line(&all, 0), "+0:160! a b");
    // The tile of the iteration before is released once its product is done.
    assert_eq!(line(&all, 1), "+0 a c w1 -0");
    let all = derive(&product(4, 0)).expect("it can be");
    assert_eq!(line(&all, 1), "+0 a c w0 -0");
}

#[test]
fn tiles_that_are_used_apart_have_channels_of_their_own() {
    let read = |tile| hand(tile, false, Proxy::Async);
    let mut streams = product(2, 0);
    streams.streams.truncate(2);
    streams.streams[1] = stream(4, 0, &[(GROUP, &[read(0)]), (GROUP, &[read(1)])]);
    let all = derive(&streams).expect("it can be");
    assert_eq!(line(&all, 0), "+0:100! a +1:60! b");
    assert_eq!(line(&all, 1), "+0 a c w0 -0 +1 b c w0 -1");
}

#[test]
fn what_threads_read_before_a_product_comes_with_its_tiles() {
    let mut streams = product(3, 0);
    streams.streams.truncate(2);
    let tiles = [hand(1, false, Proxy::Async)];
    let scales = [hand(0, false, Proxy::Generic)];
    // Read, two products of one tile: handed back when both are done.
    streams.streams[1] = stream(
        4,
        0,
        &[
            (Completion::Sync, &scales),
            (GROUP, &tiles),
            (Completion::Sync, &[]),
            (GROUP, &tiles),
            (Completion::Sync, &[]),
        ],
    );
    let all = derive(&streams).expect("it can be");
    assert_eq!(line(&all, 0), "+0:160! a b");
    assert_eq!(line(&all, 1), "+0 a b c c d c w0 -0 e");
}

#[test]
fn what_threads_write_for_a_matrix_unit_is_fenced() {
    let streams = Streams {
        streams: vec![
            stream(
                4,
                0,
                &[(Completion::Sync, &[hand(0, true, Proxy::Generic)])],
            ),
            stream(4, 0, &[(GROUP, &[hand(0, false, Proxy::Async)])]),
        ],
        tiles: vec![Tile {
            versions: 2,
            blocks: 1,
        }],
    };
    let all = derive(&streams).expect("it can be");
    assert_eq!(line(&all, 0), "+0 a -0f");
    // Other threads see it as it is.
    let mut streams = streams;
    streams.streams[1].hands[0][0].proxy = Proxy::Generic;
    let all = derive(&streams).expect("it can be");
    assert_eq!(line(&all, 0), "+0 a -0");
}

#[test]
fn what_cannot_be_is_refused() {
    let error = derive(&product(1, 1)).expect_err("one version is read while one is in flight");
    assert!(matches!(
        error,
        StreamsError::TooFewVersions { needed: 2, .. }
    ));
    let mut two = product(2, 0);
    two.streams[1].hands[0][0].write = true;
    assert!(matches!(
        derive(&two),
        Err(StreamsError::NotHanded { tile: 0 })
    ));
    // Each waits for what the other writes after it.
    fn sync(hands: &[Hand]) -> (Completion, &[Hand]) {
        (Completion::Sync, hands)
    }
    let (w, r) = (
        |t| hand(t, true, Proxy::Generic),
        |t| hand(t, false, Proxy::Generic),
    );
    let streams = |first: [Hand; 2], second: [Hand; 2]| Streams {
        streams: vec![
            stream(1, 0, &[sync(&first[..1]), sync(&first[1..])]),
            stream(1, 0, &[sync(&second[..1]), sync(&second[1..])]),
        ],
        tiles: vec![
            Tile {
                versions: 3,
                blocks: 1
            };
            2
        ],
    };
    let crossed = streams([r(1), w(0)], [r(0), w(1)]);
    assert!(matches!(
        derive(&crossed),
        Err(StreamsError::Deadlock { .. })
    ));
    derive(&streams([w(0), r(1)], [r(0), w(1)])).expect("there and back");
}

/// An arrival barrier: phases that are complete, what the present one still waits for.
#[derive(Clone, Debug)]
struct Barrier {
    count: i64,
    phase: u64,
    arrivals: i64,
    bytes: i64,
}

impl Barrier {
    fn new(count: u32) -> Barrier {
        Barrier {
            count: count.into(),
            phase: 0,
            arrivals: count.into(),
            bytes: 0,
        }
    }

    fn change(&mut self, arrivals: u32, bytes: i64) -> Result<(), String> {
        self.arrivals -= i64::from(arrivals);
        self.bytes += bytes;
        if self.arrivals < 0 {
            return Err("more arrivals than a phase has".to_string());
        }
        if self.arrivals == 0 && self.bytes == 0 {
            self.phase += 1;
            self.arrivals = self.count;
        }
        Ok(())
    }

    /// Whether the phase of this parity is complete.
    fn passed(&self, parity: u64) -> bool {
        self.phase % 2 != parity
    }
}

/// What happens later.
#[derive(Clone, Debug)]
enum Landing {
    Bytes {
        tile: usize,
        iteration: u64,
        bytes: u32,
    },
    Read {
        tile: usize,
        iteration: u64,
        stream: usize,
        group: u64,
    },
}

#[derive(Clone, Copy, Debug)]
enum Act {
    Role(Role, u64),
    Commit,
    Wait(u32),
}

/// The steps of a stream, written out as the sections say.
fn acts(all: &StreamsSchedule, stream: usize, trips: i64) -> Vec<Act> {
    let s = &all.streams[stream];
    let depth = i64::from(s.schedule.depth);
    let mut acts = Vec::new();
    for it in -depth..trips {
        let section = if it < 0 {
            &s.schedule.prologue[(it + depth) as usize]
        } else if it < trips - depth {
            &s.schedule.steady
        } else {
            &s.schedule.epilogue[(it - (trips - depth)) as usize]
        };
        for step in &section.steps {
            match step {
                Step::Run(op) => {
                    let iteration = it + i64::from(s.order.ops[*op].distance);
                    if (0..trips).contains(&iteration) {
                        acts.push(Act::Role(s.roles[*op], iteration as u64));
                    }
                }
                Step::Commit(_) => acts.push(Act::Commit),
                Step::Wait { at_most, .. } => acts.push(Act::Wait(*at_most)),
                Step::Barrier | Step::WarpSync => {}
            }
        }
    }
    let drain = s.schedule.drain.iter();
    acts.extend(drain.filter_map(|step| match step {
        Step::Wait { at_most, .. } => Some(Act::Wait(*at_most)),
        _ => None,
    }));
    acts
}

struct Machine<'a> {
    streams: &'a Streams,
    all: &'a StreamsSchedule,
    full: Vec<Vec<Barrier>>,
    empty: Vec<Vec<Barrier>>,
    /// By tile and version: the iteration whose data is there, and whether the other proxy sees it.
    there: Vec<Vec<Option<(u64, bool)>>>,
    /// Matrix units that are reading, by tile and version.
    reading: Vec<Vec<u32>>,
    later: Vec<Landing>,
    /// By stream: groups committed, and complete.
    committed: Vec<u64>,
    state: u64,
}

impl Machine<'_> {
    fn random(&mut self, below: usize) -> usize {
        self.state = self
            .state
            .wrapping_mul(6364136223846793005)
            .wrapping_add(1442695040888963407);
        ((self.state >> 33) as usize) % below
    }

    fn channel_of(&self, tile: usize) -> usize {
        let mut all = self.all.channels.iter();
        all.position(|c| c.tiles.contains(&tile))
            .expect("a channel")
    }

    fn version(&self, tile: usize, iteration: u64) -> usize {
        (iteration % u64::from(self.all.channels[self.channel_of(tile)].versions)) as usize
    }

    fn check(&self, tile: usize, iteration: u64, proxy: Proxy) -> Result<(), String> {
        let version = self.version(tile, iteration);
        match self.there[tile][version] {
            Some((it, seen)) if it == iteration && (seen || proxy == Proxy::Generic) => Ok(()),
            other => Err(format!("tile {tile} of iteration {iteration} is {other:?}")),
        }
    }

    fn land(&mut self, at: usize) -> Result<(), String> {
        match self.later.remove(at) {
            Landing::Bytes {
                tile,
                iteration,
                bytes,
            } => {
                let (version, channel) = (self.version(tile, iteration), self.channel_of(tile));
                self.there[tile][version] = Some((iteration, true));
                self.full[channel][version].change(0, -i64::from(bytes))
            }
            Landing::Read {
                tile, iteration, ..
            } => {
                let version = self.version(tile, iteration);
                self.reading[tile][version] -= 1;
                self.check(tile, iteration, Proxy::Async)
            }
        }
    }

    /// Whether the act is done; what waits is not.
    fn act(&mut self, stream: usize, act: Act) -> Result<bool, String> {
        let arrivals = self.streams.streams[stream].arrivals;
        match act {
            Act::Commit => self.committed[stream] += 1,
            Act::Wait(at_most) => {
                let done = self.committed[stream].saturating_sub(at_most.into());
                let open = |l: &Landing| matches!(l, Landing::Read { stream: s, group, .. } if *s == stream && *group < done);
                if self.later.iter().any(open) {
                    return Ok(false);
                }
            }
            Act::Role(Role::Acquire { channel, expect }, iteration) => {
                let c = &self.all.channels[channel];
                let versions = u64::from(c.versions);
                let (version, phase) = ((iteration % versions) as usize, iteration / versions % 2);
                if stream == c.writer {
                    if !self.empty[channel][version].passed((phase + 1) % 2) {
                        return Ok(false);
                    }
                    let full = &mut self.full[channel][version];
                    match expect {
                        Expect::Nothing => {}
                        Expect::AndArrive(bytes) => full.change(arrivals, bytes.into())?,
                        Expect::Only(bytes) => full.change(0, bytes.into())?,
                    }
                } else if !self.full[channel][version].passed(phase) {
                    return Ok(false);
                }
            }
            Act::Role(Role::Release { channel, fence }, iteration) => {
                let c = &self.all.channels[channel];
                let version = (iteration % u64::from(c.versions)) as usize;
                if stream != c.writer {
                    self.empty[channel][version].change(arrivals, 0)?;
                    return Ok(true);
                }
                for &tile in c.tiles.iter().filter(|_| fence) {
                    if let Some((_, seen)) = &mut self.there[tile][version] {
                        *seen = true;
                    }
                }
                self.full[channel][version].change(arrivals, 0)?;
            }
            Act::Role(Role::Op(op), iteration) => {
                for hand in self.streams.streams[stream].hands[op].clone() {
                    self.touch(stream, op, hand, iteration)?;
                }
            }
        }
        Ok(true)
    }

    fn touch(
        &mut self,
        stream: usize,
        op: usize,
        hand: Hand,
        iteration: u64,
    ) -> Result<(), String> {
        let version = self.version(hand.tile, iteration);
        let completion = self.streams.streams[stream].order.ops[op].completion;
        if !hand.write {
            self.check(hand.tile, iteration, hand.proxy)?;
            if completion != Completion::Sync {
                self.reading[hand.tile][version] += 1;
                self.later.push(Landing::Read {
                    tile: hand.tile,
                    iteration,
                    stream,
                    group: self.committed[stream],
                });
            }
            return Ok(());
        }
        if self.reading[hand.tile][version] > 0 {
            return Err(format!("tile {} is written while it is read", hand.tile));
        }
        self.there[hand.tile][version] = None;
        if hand.bytes > 0 {
            self.later.push(Landing::Bytes {
                tile: hand.tile,
                iteration,
                bytes: hand.bytes,
            });
        } else {
            self.there[hand.tile][version] = Some((iteration, hand.proxy == Proxy::Async));
        }
        Ok(())
    }
}

fn run(streams: &Streams, all: &StreamsSchedule, trips: i64, seed: u64) -> Result<(), String> {
    let acts: Vec<Vec<Act>> = (0..streams.streams.len())
        .map(|s| acts(all, s, trips))
        .collect();
    let versions = |tile: usize| streams.tiles[tile].versions as usize;
    let tiles = 0..streams.tiles.len();
    let barriers = |count: &dyn Fn(usize) -> u32| -> Vec<Vec<Barrier>> {
        let each = all.channels.iter().enumerate();
        each.map(|(at, c)| vec![Barrier::new(count(at)); c.versions as usize])
            .collect()
    };
    let mut machine = Machine {
        streams,
        all,
        full: barriers(&|c| all.channels[c].full),
        empty: barriers(&|c| all.channels[c].empty),
        there: tiles.clone().map(|t| vec![None; versions(t)]).collect(),
        reading: tiles.map(|t| vec![0; versions(t)]).collect(),
        later: Vec::new(),
        committed: vec![0; streams.streams.len()],
        state: seed.wrapping_mul(0x9e3779b97f4a7c15) | 1,
    };
    let mut at = vec![0usize; acts.len()];
    loop {
        let open: Vec<usize> = (0..acts.len())
            .filter(|s| at[*s] < acts[*s].len())
            .collect();
        if open.is_empty() && machine.later.is_empty() {
            return Ok(());
        }
        // Every third run lands nothing before it must; in the others anyone may be next.
        let choices = open.len() + machine.later.len();
        let first = match seed % 3 {
            0 if !open.is_empty() => machine.random(open.len()),
            _ => machine.random(choices),
        };
        let mut moved = false;
        let mut turn: Vec<usize> = (0..choices).map(|c| (c + first) % choices).collect();
        if seed.is_multiple_of(3) {
            turn.sort_by_key(|choice| *choice >= open.len());
        }
        for choice in turn {
            match open.get(choice) {
                Some(&stream) => {
                    if machine.act(stream, acts[stream][at[stream]])? {
                        at[stream] += 1;
                        moved = true;
                        break;
                    }
                }
                None => {
                    machine.land(choice - open.len())?;
                    moved = true;
                    break;
                }
            }
        }
        if !moved {
            return Err(format!("nobody can go on: {at:?}"));
        }
    }
}

fn all_runs(streams: &Streams, all: &StreamsSchedule) -> Result<(), String> {
    for trips in [0, 1, 2, 3, 5, 9] {
        for seed in 0..40 {
            run(streams, all, trips, seed)
                .map_err(|e| format!("{trips} trips, seed {seed}: {e}"))?;
        }
    }
    Ok(())
}

#[test]
fn products_run_with_every_number_of_versions() {
    for versions in 1..=5 {
        for in_flight in 0..versions {
            let streams = product(versions, in_flight);
            let all = derive(&streams).expect("it can be");
            all_runs(&streams, &all).expect("every tile is there when it is read");
        }
    }
}

/// Every step that is taken out or loosened, and every count that is wrong, shows in some run.
#[test]
fn what_is_derived_is_needed() {
    let streams = product(3, 1);
    let all = derive(&streams).expect("it can be");
    let mut planted = 0;
    let mut must_fail = |what: String, broken: StreamsSchedule| {
        planted += 1;
        assert!(all_runs(&streams, &broken).is_err(), "{what} is not found");
    };
    for stream in 0..3 {
        let steps = all.streams[stream].schedule.steady.steps.clone();
        for (at, step) in steps.iter().enumerate() {
            let role = match step {
                Step::Run(op) => Some(all.streams[stream].roles[*op]),
                _ => None,
            };
            if matches!(role, Some(Role::Op(_))) {
                continue;
            }
            let mut broken = all.clone();
            broken.streams[stream].schedule.steady.steps.remove(at);
            must_fail(format!("stream {stream} without {step:?} {role:?}"), broken);
            if let Step::Wait { counter, at_most } = *step {
                let mut broken = all.clone();
                broken.streams[stream].schedule.steady.steps[at] = Step::Wait {
                    counter,
                    at_most: at_most + 1,
                };
                must_fail(format!("a looser {step:?}"), broken);
            }
        }
    }
    for (full, empty) in [(1, 0), (0, 1), (0, -1)] {
        let mut broken = all.clone();
        let c = &mut broken.channels[0];
        c.full = (i64::from(c.full) + full) as u32;
        c.empty = (i64::from(c.empty) + empty) as u32;
        must_fail(format!("{full} and {empty} more arrivals"), broken);
    }
    for op in &mut [0usize] {
        for wrong in [159, 161] {
            let mut broken = all.clone();
            let roles = &mut broken.streams[0].roles;
            roles[*op] = Role::Acquire {
                channel: 0,
                expect: Expect::AndArrive(wrong),
            };
            must_fail(format!("{wrong} bytes"), broken);
        }
    }
    assert!(planted >= 15, "{planted}");
}

fn any_streams() -> impl Strategy<Value = Streams> {
    // For each tile: its versions, who writes it and how, who reads it. For each stream: a shuffle.
    let tile = (1..5u32, 0..3usize, 0..3u8, 1..8u8);
    let tiles = proptest::collection::vec(tile, 1..4);
    (tiles, proptest::collection::vec((any::<u64>(), 0..3u32), 3)).prop_map(|(tiles, kinds)| {
        let mut lists: Vec<Vec<(Completion, Vec<Hand>)>> = vec![Vec::new(); 3];
        for (at, (_, writer, how, readers)) in tiles.iter().enumerate() {
            let write = match how {
                0 => reported(at, 50 + at as u32),
                1 => hand(at, true, Proxy::Generic),
                _ => hand(at, true, Proxy::Async),
            };
            lists[*writer].push((Completion::Sync, vec![write]));
            for reader in (0..3).filter(|r| r != writer && readers >> r & 1 == 1) {
                let (completion, proxy) = match (reader + at) % 2 {
                    0 => (GROUP, Proxy::Async),
                    _ => (Completion::Sync, Proxy::Generic),
                };
                lists[reader].push((completion, vec![hand(at, false, proxy)]));
            }
        }
        let streams = lists
            .into_iter()
            .zip(kinds)
            .map(|(mut list, (mut order, in_flight))| {
                for at in (1..list.len()).rev() {
                    list.swap(at, (order % (at as u64 + 1)) as usize);
                    order /= 7;
                }
                let ops: Vec<(Completion, &[Hand])> =
                    list.iter().map(|(c, h)| (*c, &h[..])).collect();
                stream(1 + in_flight, in_flight, &ops)
            });
        Streams {
            streams: streams.collect(),
            tiles: tiles
                .iter()
                .map(|t| Tile {
                    versions: t.0,
                    blocks: 1,
                })
                .collect(),
        }
    })
}

proptest! {
    #![proptest_config(ProptestConfig::with_cases(400))]

    #[test]
    fn random_streams_are_refused_or_right(streams in any_streams()) {
        if let Ok(all) = derive(&streams) {
            let ran = all_runs(&streams, &all);
            prop_assert!(ran.is_ok(), "{:?}\n{all:?}", ran);
        }
    }
}
