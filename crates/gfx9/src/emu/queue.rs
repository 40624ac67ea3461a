//! Memory operations under way.
//!
//! An operation is issued, *lands* (does what it does to memory and registers), and is *retired*
//! when its wave has waited for it. Between issue and retirement it may land at any time: at once,
//! as late as possible, or at random ([`Landing`]); operations of one queue land in order. Its
//! registers are nobody else's until it is retired, whether or not it has landed.

use std::collections::VecDeque;

use crate::asm::Wait;

use super::order::{Agent, Knowledge, Operation, Stamp, Unit};
use super::wave::{LANES, Lanes};

/// The most operations of a wave that are under way: as far as the counters count. The hardware
/// holds a wave back until there is room for the next one, which it then knows of.
pub(super) const VECTOR_MOST: usize = 63;
pub(super) const LDS_MOST: usize = 15;
/// Scalar loads come back in no order, so that a full counter says of none that it is done. More than
/// there are registers for are a fault.
pub(super) const SCALAR_MOST: usize = 128;

/// When operations land.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub enum Landing {
    Early,
    Late,
    #[default]
    Random,
}

/// An operation that is not retired.
#[derive(Debug)]
pub(super) struct Pending {
    pub op: Operation,
    /// The lanes that were active.
    pub exec: u64,
    /// Each lane's address: in LDS, in memory, or private.
    pub addresses: Box<[u64; LANES]>,
    /// Bytes from there on that a buffer's resource lets through.
    pub valid: Option<Box<[u32; LANES]>>,
    /// The place in LDS that a copy writes to.
    pub lds: u32,
    /// What is stored.
    pub data: Vec<Lanes>,
    pub landed: bool,
    /// What its wave knows when it is retired, beside that it is done.
    pub learned: Option<Knowledge>,
}

/// The queues of one wave.
#[derive(Debug)]
pub(super) struct Queues {
    wave: u32,
    issued: [u32; 3],
    pub lds: VecDeque<Pending>,
    pub vector: VecDeque<Pending>,
    pub scalar: VecDeque<Pending>,
}

impl Queues {
    pub fn new(wave: u32) -> Self {
        Self {
            wave,
            issued: [0; 3],
            lds: VecDeque::new(),
            vector: VecDeque::new(),
            scalar: VecDeque::new(),
        }
    }

    /// The next operation of a unit.
    pub fn stamp(&mut self, unit: Unit) -> Stamp {
        let issued = &mut self.issued[unit as usize];
        *issued += 1;
        Stamp {
            agent: Agent::new(self.wave, unit),
            time: *issued,
        }
    }

    pub fn of(&mut self, unit: Unit) -> &mut VecDeque<Pending> {
        match unit {
            Unit::Scalar => &mut self.scalar,
            Unit::Lds => &mut self.lds,
            Unit::Vector => &mut self.vector,
        }
    }

    /// How many of each queue's first operations a wait is for. Scalar loads come back in any
    /// order, so that only a wait for all says something of one; LDS operations count beside them,
    /// and of these at most as many are left as the wait allows.
    pub fn waited(&self, wait: Wait) -> [(Unit, usize); 3] {
        let over = |length: usize, count: Option<u8>| match count {
            Some(count) => length.saturating_sub(usize::from(count)),
            None => 0,
        };
        let scalar = match wait.lgkmcnt {
            Some(0) => self.scalar.len(),
            _ => 0,
        };
        [
            (Unit::Scalar, scalar),
            (Unit::Lds, over(self.lds.len(), wait.lgkmcnt)),
            (Unit::Vector, over(self.vector.len(), wait.vmcnt)),
        ]
    }
}

impl Pending {
    /// None takes more: a lane stores or loads up to four words.
    pub const MOST_BYTES: u64 = (size_of::<Self>()
        + LANES * (size_of::<u64>() + size_of::<u32>())
        + 4 * size_of::<Lanes>()) as u64;

    pub fn new(op: Operation, exec: u64) -> Self {
        Self {
            op,
            exec,
            addresses: Box::new([0; LANES]),
            valid: None,
            lds: 0,
            data: Vec::new(),
            landed: false,
            learned: None,
        }
    }

    /// The pieces of 64 bytes that the active lanes start in.
    pub fn pieces(&self) -> u32 {
        let lanes = super::wave::active(self.exec);
        let mut pieces: Vec<u64> = lanes.map(|lane| self.addresses[lane] / 64).collect();
        pieces.sort_unstable();
        pieces.dedup();
        pieces.len() as u32
    }
}

impl Knowledge {
    /// An operation that starts now.
    pub(super) fn operation(&self, stamp: Stamp, at: usize, atomic: bool) -> Operation {
        Operation {
            stamp,
            knows: self.clone(),
            at,
            atomic,
        }
    }
}
