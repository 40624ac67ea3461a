//! Global memory as a block sees it.

use tilewright_ir::{AtomicOp, Scalar};

use crate::block_races::BlockRaces;
use crate::exec::{combine, decode, encode};
use crate::memory::{LogEntry, Storage, WriteLog, byte_range, read_bits};

/// Global memory while a block runs.
#[derive(Debug)]
pub(super) enum Memory<'g> {
    /// As it was when the kernel started; writes are logged and no block reads what is written.
    Logged { mem: &'g [Storage], log: WriteLog },
    /// Reads and writes go straight to it, and are noted; blocks take turns and hand it on.
    Direct(Direct),
}

/// Global memory that blocks hand on to each other.
#[derive(Debug, Default)]
pub(super) struct Direct {
    pub mem: Vec<Storage>,
    pub races: BlockRaces,
}

impl Memory<'_> {
    #[inline]
    pub fn storage(&self, number: u32) -> &Storage {
        match self {
            Memory::Logged { mem, .. } => &mem[number as usize],
            Memory::Direct(direct) => &direct.mem[number as usize],
        }
    }

    /// Notes a read of bytes by a statement. What is logged cannot be read.
    #[inline]
    pub fn note_read(&mut self, number: u32, site: u32, start: usize, len: usize) {
        if let Memory::Direct(direct) = self {
            direct.races.read(number, site, start, len);
        }
    }

    /// Overwrites an element; `site` is the statement that does it.
    #[inline]
    pub fn store(&mut self, number: u32, site: u32, bits: u32, index: usize, value: u64) {
        match self {
            Memory::Logged { log, .. } => log.store(number, site, bits, index, value),
            Memory::Direct(Direct { mem, races }) => {
                let storage = &mut mem[number as usize];
                if bits >= 8 {
                    let len = bits as usize / 8;
                    let new = &value.to_le_bytes()[..len];
                    races.write(number, site, index * len, new, storage);
                }
                storage.store(bits, index, value);
            }
        }
    }

    /// Overwrites whole bytes.
    pub fn store_bytes(&mut self, number: u32, site: u32, start: usize, bytes: &[u8]) {
        match self {
            Memory::Logged { log, .. } => log.bytes(number, site, start, bytes),
            Memory::Direct(Direct { mem, races }) => {
                let storage = &mut mem[number as usize];
                races.write(number, site, start, bytes, storage);
                storage.write_bytes(start, bytes);
            }
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
            Memory::Direct(Direct { mem, races }) => {
                let (start, end) = byte_range(scalar.bits(), index, 1);
                races.update(number, site, start, end - start);
                let storage = &mut mem[number as usize];
                let old = decode(scalar, read_bits(&storage.bytes, scalar.bits(), index));
                let new = encode(scalar, combine(op, scalar, old, value));
                storage.store(scalar.bits(), index, new);
                old
            }
        }
    }
}
