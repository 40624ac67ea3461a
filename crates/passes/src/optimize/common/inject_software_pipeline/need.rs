//! Registers that threads take, and how warp groups with roles share them.

use tilewright_ir::{Func, Machine, Scope, WARP_GROUP};

/// Beside what the kernel keeps: as much as addresses and operands take.
const OTHER: u32 = 40;
/// Of a thread that only has copies made.
const PRODUCER: u32 = 40;

/// Registers of a thread: what the kernel keeps in them, and the others.
pub(super) fn registers(func: &Func) -> u32 {
    let own = func.buffers.values().map(|data| {
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
    let moves = machine.registers.moves?;
    let file = machine.registers.file;
    let whole = |n: u32| n / moves.multiple * moves.multiple;
    let even = whole(file / ((consumers + 1) * WARP_GROUP)).min(machine.registers.per_thread);
    if registers(func) <= even {
        return None;
    }
    let left = (file - PRODUCER * WARP_GROUP) / (consumers * WARP_GROUP);
    Some(Shares {
        consumer: whole(left.min(machine.registers.per_thread)),
        producer: PRODUCER,
    })
}
