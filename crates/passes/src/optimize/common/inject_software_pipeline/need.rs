//! Registers that threads take, and how warp groups with roles share them.

use tilewright_ir::{BufferData, Func, Loop, Machine, MmaInst, Scope, WARP_GROUP};

use super::super::effects::Effects;

/// Beside what the kernel keeps: as much as addresses and operands take.
const OTHER: u32 = 40;
/// Of a thread that only has copies made.
const PRODUCER: u32 = 40;

/// Registers of a thread: what the kernel keeps in them, and the others.
pub(in crate::optimize) fn registers(func: &Func) -> u32 {
    registers_with(func.buffers.values())
}

/// The same while a loop runs: what the loop does not touch is not there, or not yet.
pub(super) fn registers_in(func: &Func, l: &Loop) -> u32 {
    let Effects { reads, writes, .. } = Effects::of_block(func, &l.body);
    let touched = reads.union(&writes).map(|buffer| &func.buffers[*buffer]);
    registers_with(touched)
}

fn registers_with<'a>(buffers: impl Iterator<Item = &'a BufferData>) -> u32 {
    let own = buffers.map(|data| {
        let own = matches!(data.scope, Scope::Local | Scope::Fragment);
        let elements = data.const_shape().map_or(0, |s| s.iter().product::<i64>()) as u32;
        u32::from(own) * elements * data.dtype.bits() / 32
    });
    OTHER + own.sum::<u32>()
}

/// Registers that a thread of each role asks for.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) struct Shares {
    pub consumer: u32,
    pub producer: u32,
}

/// How a producer's warp group hands registers to those of the consumers, where these take more
/// than an even share.
pub(super) fn shares(func: &Func, machine: &Machine, consumers: u32) -> Option<Shares> {
    machine.registers.moves?;
    if registers(func) <= even_share(machine, consumers) {
        return None;
    }
    let left = (machine.registers.file - PRODUCER * WARP_GROUP) / (consumers * WARP_GROUP);
    Some(Shares {
        consumer: asked(machine, left),
        producer: PRODUCER,
    })
}

/// Registers of a thread when the kernel starts, with a producer's warp group beside the consumers'.
pub(super) fn even_share(machine: &Machine, consumers: u32) -> u32 {
    even_share_of(machine, (consumers + 1) * WARP_GROUP)
}

/// The same, of a block of so many threads.
pub(crate) fn even_share_of(machine: &Machine, threads: u32) -> u32 {
    asked(machine, machine.registers.file / threads.max(1))
}

/// The most of so many that a warp group may ask for.
fn asked(machine: &Machine, registers: u32) -> u32 {
    let registers = registers.min(machine.registers.per_thread);
    let multiple = machine.registers.moves.map_or(1, |m| m.multiple);
    registers / multiple * multiple
}

/// Registers that an instruction of a warp group's product takes when it is compiled: what it adds to,
/// and what it is told by. ptxas asks for 154 for the widest (C7602) however many are moved later.
pub(crate) fn of_product(mma: MmaInst) -> u32 {
    const TOLD: u32 = 32;
    let added = u32::from(mma.m) * u32::from(mma.n) / WARP_GROUP;
    added * mma.acc.bits() / 32 + TOLD
}
