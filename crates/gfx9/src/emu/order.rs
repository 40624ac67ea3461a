//! What happens before what.
//!
//! A wave has three *agents*: its scalar loads, its LDS operations and its vector memory
//! operations. Operations of one agent are done in the order of issue (scalar loads but never
//! write). Between agents nothing is ordered but by waits: when a wave has waited for an operation
//! it *knows* of it, and what it issues then comes after it. A barrier makes every wave know what
//! each of the others knew when it arrived.
//!
//! Vector memory operations of all waves of a block go through the one cache of their compute
//! unit, in the order of issue. So there it is enough to know that an operation was *issued*: a
//! load behind a barrier sees the stores before it, also where no wave waited for them. Nothing
//! else is said of these stores: not to LDS, and not to other blocks.
//!
//! Other blocks may be on other compute units, behind other caches. What a wave knows to be done
//! is *shown* to them when it has written back the second-level cache and waited for that; an
//! atomic operation hands on what was shown before it. Who asks the same place atomically has
//! *seen* it, and knows it once it has dropped what its own cache holds.
//!
//! So an operation has a [`Stamp`], its agent and its number there, and what its wave knew when it
//! was issued: the last number of each agent. It comes after another one exactly where it knows
//! that one's number. Whether values came out right does not enter.

use std::ops::Range;
use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;

use super::suspects::Reads;

/// Who does an operation, of one block.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq, PartialOrd, Ord, Hash)]
pub struct Agent(pub u16);

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Unit {
    Scalar,
    Lds,
    Vector,
}

const UNITS: u16 = 3;

impl Agent {
    pub fn new(wave: u32, unit: Unit) -> Self {
        Self(wave as u16 * UNITS + unit as u16)
    }

    pub fn wave(self) -> u32 {
        u32::from(self.0 / UNITS)
    }

    pub fn unit(self) -> Unit {
        match self.0 % UNITS {
            0 => Unit::Scalar,
            1 => Unit::Lds,
            _ => Unit::Vector,
        }
    }
}

/// An operation: the `time`th of its agent, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    pub agent: Agent,
    pub time: u32,
}

/// What is known of other blocks: of each the last operation of each of its agents.
#[derive(Clone, Debug, Default)]
pub struct Horizon(Option<Arc<FxHashMap<u32, Vec<u32>>>>);

impl Horizon {
    fn of(&self, block: u32, stamp: Stamp) -> bool {
        let times = self.0.as_ref().and_then(|blocks| blocks.get(&block));
        times.is_some_and(|times| times[usize::from(stamp.agent.0)] >= stamp.time)
    }

    fn learn(&mut self, block: u32, times: &[u32]) {
        let blocks = Arc::make_mut(self.0.get_or_insert_default());
        match blocks.get_mut(&block) {
            Some(known) => raise(known, times),
            None => {
                blocks.insert(block, times.to_vec());
            }
        }
    }

    pub fn join(&mut self, other: &Self) {
        match (&self.0, &other.0) {
            (_, None) => {}
            (Some(mine), Some(theirs)) if Arc::ptr_eq(mine, theirs) => {}
            (None, Some(_)) => self.clone_from(other),
            (Some(_), Some(theirs)) => {
                for (block, times) in theirs.iter() {
                    self.learn(*block, times);
                }
            }
        }
    }
}

fn raise(known: &mut [u32], times: &[u32]) {
    for (known, time) in known.iter_mut().zip(times) {
        *known = (*known).max(*time);
    }
}

/// What a wave knows of the operations of its own and of other blocks.
#[derive(Clone, Debug)]
pub struct Knowledge {
    /// The last operation of each agent that is known to be done.
    done: Rc<Vec<u32>>,
    /// The last one of each that is known to be issued, of vector memory.
    issued: Rc<Vec<u32>>,
    /// Of other blocks: what its loads come after.
    others: Horizon,
    /// What atomic operations told of other blocks, before the caches are dropped.
    seen: Horizon,
    /// What other blocks can be told: also of its own block.
    shown: Horizon,
}

impl Knowledge {
    /// What it takes with its clocks, where blocks tell each other nothing.
    pub fn bytes(waves: u64) -> u64 {
        let clock = waves * u64::from(UNITS) * size_of::<u32>() as u64;
        size_of::<Self>() as u64 + 2 * clock
    }

    pub fn new(waves: u32) -> Self {
        let none = Rc::new(vec![0; waves as usize * usize::from(UNITS)]);
        Self {
            done: none.clone(),
            issued: none,
            others: Horizon::default(),
            seen: Horizon::default(),
            shown: Horizon::default(),
        }
    }

    pub fn of(&self, stamp: Stamp) -> bool {
        self.done[usize::from(stamp.agent.0)] >= stamp.time
    }

    /// The last operation of an agent that is known to be done.
    pub fn last(&self, agent: Agent) -> u32 {
        self.done[usize::from(agent.0)]
    }

    /// The last vector memory operation of a wave that is known to be issued.
    pub fn last_issued(&self, wave: u32) -> u32 {
        self.issued[usize::from(Agent::new(wave, Unit::Vector).0)]
    }

    pub fn learn(&mut self, stamp: Stamp) {
        let known = &mut Rc::make_mut(&mut self.done)[usize::from(stamp.agent.0)];
        *known = (*known).max(stamp.time);
    }

    /// A vector memory operation of its own wave is issued.
    pub fn issue(&mut self, stamp: Stamp) {
        Rc::make_mut(&mut self.issued)[usize::from(stamp.agent.0)] = stamp.time;
    }

    pub fn join(&mut self, other: &Self) {
        for (mine, theirs) in [
            (&mut self.done, &other.done),
            (&mut self.issued, &other.issued),
        ] {
            if !Rc::ptr_eq(mine, theirs) {
                let mine: &mut Vec<u32> = Rc::make_mut(mine);
                raise(mine, theirs);
            }
        }
        self.others.join(&other.others);
        self.seen.join(&other.seen);
        self.shown.join(&other.shown);
    }

    /// The second-level cache is written back by this operation of a block: when it is done, what
    /// is done now and what its wave issued before is shown.
    pub fn write_back(&mut self, block: u32, by: Stamp) {
        let mut times = self.done.to_vec();
        times[usize::from(by.agent.0)] = by.time;
        self.shown.join(&self.others.clone());
        self.shown.learn(block, &times);
    }

    /// What its compute unit's cache held is dropped.
    pub fn drop_cache(&mut self) {
        self.others.join(&self.seen);
    }

    /// An atomic operation told this of other blocks.
    pub fn see(&mut self, told: &Horizon) {
        self.seen.join(told);
    }

    pub fn shown(&self) -> &Horizon {
        &self.shown
    }
}

/// An operation as it touches memory.
#[derive(Clone, Debug)]
pub struct Operation {
    pub stamp: Stamp,
    pub knows: Knowledge,
    /// The instruction.
    pub at: usize,
    /// Reads and writes at once: two such need no order.
    pub atomic: bool,
}

impl Operation {
    fn after(&self, stamp: Stamp) -> bool {
        stamp.agent == self.stamp.agent || self.knows.of(stamp)
    }

    /// Whether it reaches global memory after an operation of its own block.
    pub fn after_in_memory(&self, stamp: Stamp) -> bool {
        let vector = |agent: Agent| agent.unit() == Unit::Vector;
        let both = vector(stamp.agent) && vector(self.stamp.agent);
        let issued = self.knows.issued[usize::from(stamp.agent.0)];
        self.after(stamp) || (both && issued >= stamp.time)
    }

    /// Whether it reaches global memory after an operation of another block.
    pub fn after_other(&self, block: u32, stamp: Stamp) -> bool {
        self.knows.others.of(block, stamp)
    }
}

/// What is known of a place in LDS.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    stamp: Stamp,
    at: u32,
    atomic: bool,
    /// It holds something from the start.
    held: bool,
}

/// A wave's last read of a place.
#[derive(Clone, Copy, Debug, Default)]
struct Read {
    time: u32,
    at: u32,
    atomic: bool,
}

/// Who wrote and read each byte of a block's LDS last.
#[derive(Debug)]
pub struct LdsShadow {
    waves: usize,
    written: Vec<Written>,
    /// For each byte and wave its last read.
    reads: Vec<Read>,
}

/// What an access finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Clash {
    /// Nothing orders it and what this instruction wrote, in this wave.
    Written {
        at: usize,
        wave: u32,
    },
    /// Nothing orders it and what this instruction read; all these loads of its wave are meant.
    Read {
        at: usize,
        reads: Reads,
    },
    Unwritten,
}

impl LdsShadow {
    /// What is kept of a byte.
    pub fn bytes_of_byte(waves: u64) -> u64 {
        size_of::<Written>() as u64 + waves * size_of::<Read>() as u64
    }

    pub fn new(bytes: usize, waves: u32) -> Self {
        Self {
            waves: waves as usize,
            written: vec![Written::default(); bytes],
            reads: vec![Read::default(); bytes * waves as usize],
        }
    }

    /// Bytes that hold something from the start.
    pub fn hold(&mut self, bytes: Range<u32>) {
        let all = self.written.len();
        let range = (bytes.start as usize).min(all)..(bytes.end as usize).min(all);
        self.written[range].iter_mut().for_each(|w| w.held = true);
    }

    pub fn read(&mut self, byte: usize, op: &Operation) -> Option<Clash> {
        let written = self.written[byte];
        let wave = op.stamp.agent.wave() as usize;
        self.reads[byte * self.waves + wave] = Read {
            time: op.stamp.time,
            at: op.at as u32,
            atomic: op.atomic,
        };
        if written.stamp.time == 0 {
            return (!written.held).then_some(Clash::Unwritten);
        }
        let ordered = op.after(written.stamp) || (op.atomic && written.atomic);
        (!ordered).then_some(Clash::Written {
            at: written.at as usize,
            wave: written.stamp.agent.wave(),
        })
    }

    pub fn write(&mut self, byte: usize, op: &Operation) -> Vec<Clash> {
        let mut clashes = Vec::new();
        let written = std::mem::replace(
            &mut self.written[byte],
            Written {
                stamp: op.stamp,
                at: op.at as u32,
                atomic: op.atomic,
                held: true,
            },
        );
        let both = op.atomic && written.atomic;
        if written.stamp.time != 0 && !both && !op.after(written.stamp) {
            clashes.push(Clash::Written {
                at: written.at as usize,
                wave: written.stamp.agent.wave(),
            });
        }
        let reads = &self.reads[byte * self.waves..(byte + 1) * self.waves];
        for (wave, read) in reads.iter().enumerate() {
            let agent = Agent::new(wave as u32, Unit::Lds);
            let time = read.time;
            let ordered = op.after(Stamp { agent, time }) || (op.atomic && read.atomic);
            if time != 0 && !ordered {
                clashes.push(Clash::Read {
                    at: read.at as usize,
                    reads: Reads {
                        agent,
                        after: op.knows.last(agent),
                        until: time,
                    },
                });
            }
        }
        clashes
    }

    /// Whether this operation has written the byte already.
    pub fn wrote(&self, byte: usize, op: &Operation) -> bool {
        self.written[byte].stamp == op.stamp
    }
}
