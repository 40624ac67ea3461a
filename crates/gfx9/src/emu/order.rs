//! What happens before what.
//!
//! A wave has three *agents*: its scalar loads, its LDS operations and its vector memory
//! operations. Operations of one agent are done in the order of issue (scalar loads but never
//! write). Between agents nothing is ordered but by waits: when a wave has waited for an operation
//! it *knows* of it, and what it issues then comes after it. A barrier makes every wave know what
//! each of the others knew when it arrived.
//!
//! So an operation has a [`Stamp`], its agent and its number there, and what its wave knew when it
//! was issued: the last number of each agent. It comes after another one exactly where it knows
//! that one's number. Whether values came out right does not enter.

use std::rc::Rc;

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
        let unit = match unit {
            Unit::Scalar => 0,
            Unit::Lds => 1,
            Unit::Vector => 2,
        };
        Self(wave as u16 * UNITS + unit)
    }

    pub fn wave(self) -> u32 {
        u32::from(self.0 / UNITS)
    }
}

/// An operation: the `time`th of its agent, from 1.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Stamp {
    pub agent: Agent,
    pub time: u32,
}

/// The last operation of each agent that is known to be done.
#[derive(Clone, Debug)]
pub struct Knowledge(Rc<Vec<u32>>);

impl Knowledge {
    pub fn new(waves: u32) -> Self {
        Self(Rc::new(vec![0; waves as usize * usize::from(UNITS)]))
    }

    pub fn of(&self, stamp: Stamp) -> bool {
        self.0[usize::from(stamp.agent.0)] >= stamp.time
    }

    pub fn learn(&mut self, stamp: Stamp) {
        let known = &mut Rc::make_mut(&mut self.0)[usize::from(stamp.agent.0)];
        *known = (*known).max(stamp.time);
    }

    pub fn join(&mut self, other: &Self) {
        for (mine, theirs) in Rc::make_mut(&mut self.0).iter_mut().zip(other.0.iter()) {
            *mine = (*mine).max(*theirs);
        }
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
}

/// What is known of a place in LDS.
#[derive(Clone, Copy, Debug, Default)]
struct Written {
    stamp: Stamp,
    at: u32,
    atomic: bool,
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
    /// Nothing orders it and what this instruction did, in this wave.
    Unordered {
        at: usize,
        wave: u32,
    },
    Unwritten,
}

impl LdsShadow {
    pub fn new(bytes: usize, waves: u32) -> Self {
        Self {
            waves: waves as usize,
            written: vec![Written::default(); bytes],
            reads: vec![Read::default(); bytes * waves as usize],
        }
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
            return Some(Clash::Unwritten);
        }
        let ordered = op.after(written.stamp) || (op.atomic && written.atomic);
        (!ordered).then_some(Clash::Unordered {
            at: written.at as usize,
            wave: written.stamp.agent.wave(),
        })
    }

    pub fn write(&mut self, byte: usize, op: &Operation) -> Option<Clash> {
        let written = std::mem::replace(
            &mut self.written[byte],
            Written {
                stamp: op.stamp,
                at: op.at as u32,
                atomic: op.atomic,
            },
        );
        let both = op.atomic && written.atomic;
        if written.stamp.time != 0 && !both && !op.after(written.stamp) {
            return Some(Clash::Unordered {
                at: written.at as usize,
                wave: written.stamp.agent.wave(),
            });
        }
        let reads = &self.reads[byte * self.waves..(byte + 1) * self.waves];
        for (wave, read) in reads.iter().enumerate() {
            let stamp = Stamp {
                agent: Agent::new(wave as u32, Unit::Lds),
                time: read.time,
            };
            let ordered = op.after(stamp) || (op.atomic && read.atomic);
            if read.time != 0 && !ordered {
                return Some(Clash::Unordered {
                    at: read.at as usize,
                    wave: wave as u32,
                });
            }
        }
        None
    }

    /// Whether this operation has written the byte already.
    pub fn wrote(&self, byte: usize, op: &Operation) -> bool {
        self.written[byte].stamp == op.stamp
    }
}
