//! Global memory as a block sees it.

use tilewright_ir::{AtomicOp, Scalar};

use crate::exec::{combine, decode, encode};
use crate::memory::{LogEntry, Storage, WriteLog, read_bits};

/// Global memory while a block runs.
#[derive(Debug)]
pub(super) enum Memory<'g> {
    /// As it was when the kernel started; writes are logged and no block reads what is written.
    Logged { mem: &'g [Storage], log: WriteLog },
    /// Reads and writes go straight to it; blocks take turns and hand it on.
    Direct(Vec<Storage>),
}

impl Memory<'_> {
    #[inline]
    pub fn storage(&self, number: u32) -> &Storage {
        match self {
            Memory::Logged { mem, .. } => &mem[number as usize],
            Memory::Direct(mem) => &mem[number as usize],
        }
    }

    /// Overwrites an element; `site` is the statement that does it.
    #[inline]
    pub fn store(&mut self, number: u32, site: u32, bits: u32, index: usize, value: u64) {
        match self {
            Memory::Logged { log, .. } => log.store(number, site, bits, index, value),
            Memory::Direct(mem) => mem[number as usize].store(bits, index, value),
        }
    }

    /// Overwrites whole bytes.
    pub fn store_bytes(&mut self, number: u32, site: u32, start: usize, bytes: &[u8]) {
        match self {
            Memory::Logged { log, .. } => log.bytes(number, site, start, bytes),
            Memory::Direct(mem) => mem[number as usize].write_bytes(start, bytes),
        }
    }

    /// Updates an element and returns what it was, where that is asked for. An update without a
    /// result may be put off.
    pub fn atomic(
        &mut self,
        (number, site): (u32, u32),
        op: AtomicOp,
        scalar: Scalar,
        index: usize,
        value: u64,
    ) -> u64 {
        match self {
            Memory::Logged { log, .. } => {
                log.entries.push(LogEntry::Atomic {
                    storage: number,
                    site,
                    op,
                    scalar,
                    index,
                    value,
                });
                0
            }
            Memory::Direct(mem) => {
                let storage = &mut mem[number as usize];
                let old = decode(scalar, read_bits(&storage.bytes, scalar.bits(), index));
                let new = encode(scalar, combine(op, scalar, old, value));
                storage.store(scalar.bits(), index, new);
                old
            }
        }
    }
}
