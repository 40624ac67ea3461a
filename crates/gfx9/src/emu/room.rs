//! What a launch takes of this machine's memory.
//!
//! Most of it is known before the launch: who touched each element of a tensor and each byte of LDS
//! last, and the registers of all blocks that are alive at a time. A system that runs out of memory
//! kills processes, so a launch that takes more than there is is refused before it starts. What grows
//! while it runs (several readers of one element, the steps of a trace) is counted, and stops it.

use std::fmt;

use crate::asm::Descriptor;
use crate::isa::{Format, Opcode};

use super::atomics::Update;
use super::code::Code;
use super::launch::Launch;
use super::memory;
use super::order::{Knowledge, LdsShadow};
use super::queue::Pending;
use super::wave::{LANES, Lanes};

/// What a launch takes, in bytes, beside the buffers that it is given.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Needs {
    /// A copy of the buffers, and who touched what of them.
    pub buffers: u64,
    /// One block: its LDS, who touched it, the registers of its waves.
    pub block: u64,
    /// Blocks that are alive at a time.
    pub alive: u64,
    /// All blocks may be: they wait for each other.
    pub all_alive: bool,
}

/// Why a kernel is not run.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Refused {
    /// The launch is none of this kernel.
    Launch(String),
    /// It takes more memory than there is.
    NoRoom { needs: Needs, room: u64 },
}

impl Needs {
    pub(super) fn of(code: &Code<'_>, descriptor: &Descriptor, launch: &Launch) -> Self {
        let buffers = launch.buffers.iter().map(memory::needs);
        let all_alive = code.orders_blocks() || code.sleeps();
        let blocks = match launch.only {
            Some(_) => 1,
            None => launch.blocks(),
        };
        let alive = match all_alive {
            true => blocks,
            false => blocks.min(launch.workers.max(1) as u64),
        };
        Self {
            buffers: buffers.fold(0, u64::saturating_add),
            block: block(code, descriptor, launch),
            alive,
            all_alive,
        }
    }

    pub fn bytes(&self) -> u64 {
        let blocks = self.block.saturating_mul(self.alive);
        self.buffers.saturating_add(blocks)
    }
}

/// Operations under way that a wave is taken to have. The counters let it have more, but most wait
/// for them soon.
const QUEUED: u64 = 16;

/// What one block takes.
fn block(code: &Code<'_>, descriptor: &Descriptor, launch: &Launch) -> u64 {
    let threads: u64 = launch.block.iter().map(|n| u64::from(*n)).product();
    let waves = threads.div_ceil(LANES as u64);
    let lds = u64::from(descriptor.lds_bytes) + u64::from(launch.dynamic_lds);
    let [vgprs, agprs, sgprs] = code.highest().map(|n| n as u64);
    let registers = (vgprs + agprs) * size_of::<Lanes>() as u64 + sgprs * 4;
    let scratch = u64::from(descriptor.scratch_bytes) * LANES as u64;
    let wave = registers + scratch + QUEUED * Pending::MOST_BYTES + Knowledge::bytes(waves);
    // What waves knew that changed a word atomically.
    let updates = |op: Opcode| op.format() == Format::Ds && Update::of(op).is_some();
    let handed = match code.function.instructions.iter().any(|i| updates(i.op)) {
        true => lds / 4 * Knowledge::bytes(waves),
        false => 0,
    };
    let watched = lds.saturating_mul(1 + LdsShadow::bytes_of_byte(waves));
    let code = code.function.instructions.len() as u64;
    let parts = [watched, handed, waves.saturating_mul(wave), code];
    parts.into_iter().fold(0, u64::saturating_add)
}

impl From<String> for Refused {
    fn from(text: String) -> Self {
        Self::Launch(text)
    }
}

impl fmt::Display for Refused {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Launch(text) => f.write_str(text),
            Self::NoRoom { needs, room } => write!(
                f,
                "the launch takes {} bytes of memory, and {room} are left",
                needs.bytes()
            ),
        }
    }
}

impl std::error::Error for Refused {}
