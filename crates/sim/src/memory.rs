//! Memory of the evaluator: bytes with a shadow that says which of them were written, and the
//! log of a block's writes to global memory.

use tilewright_ir::{AtomicOp, Scalar};

use crate::tensor::UNWRITTEN;

/// An allocation. Every address space and every copy of a private array is one.
#[derive(Clone, Debug, Default)]
pub(crate) struct Storage {
    pub bytes: Vec<u8>,
    /// One flag a byte, zero for never written; `None` when all are.
    pub written: Option<Vec<u8>>,
}

impl Storage {
    /// Memory that nothing wrote yet.
    pub fn unwritten(len: usize) -> Storage {
        Storage {
            bytes: vec![UNWRITTEN; len],
            written: Some(vec![0; len]),
        }
    }

    /// Whether nothing was ever written here.
    pub fn is_fresh(&self) -> bool {
        let flags = self.written.as_ref();
        flags.is_some_and(|flags| flags.iter().all(|&f| f == 0))
    }

    /// Forgets what was written to a range of bytes.
    pub fn forget(&mut self, start: usize, len: usize) {
        self.bytes[start..start + len].fill(UNWRITTEN);
        let total = self.bytes.len();
        self.written.get_or_insert_with(|| vec![1; total])[start..start + len].fill(0);
    }

    /// Whether all elements `index .. index + count` of this width were written.
    #[inline]
    pub fn is_written(&self, bits: u32, index: usize, count: usize) -> bool {
        match &self.written {
            None => true,
            Some(flags) => {
                let (start, end) = byte_range(bits, index, count);
                all_set(&flags[start..end])
            }
        }
    }

    /// The bits of an element, or `None` where nothing wrote it.
    #[inline]
    pub fn load(&self, bits: u32, index: usize) -> Option<u64> {
        self.is_written(bits, index, 1)
            .then(|| read_bits(&self.bytes, bits, index))
    }

    #[inline]
    pub fn store(&mut self, bits: u32, index: usize, value: u64) {
        write_bits(&mut self.bytes, bits, index, value);
        self.mark(bits, index, 1);
    }

    /// Notes that the elements were written.
    #[inline]
    pub fn mark(&mut self, bits: u32, index: usize, count: usize) {
        if let Some(flags) = &mut self.written {
            let (start, end) = byte_range(bits, index, count);
            flags[start..end].fill(1);
        }
    }

    /// Overwrites whole bytes.
    pub fn write_bytes(&mut self, start: usize, bytes: &[u8]) {
        self.bytes[start..start + bytes.len()].copy_from_slice(bytes);
        if let Some(flags) = &mut self.written {
            flags[start..start + bytes.len()].fill(1);
        }
    }
}

/// The bytes that elements of this width touch.
#[inline]
pub(crate) fn byte_range(bits: u32, index: usize, count: usize) -> (usize, usize) {
    let width = bits as usize;
    (
        index * width / 8,
        (index * width + count * width).div_ceil(8),
    )
}

/// Whether every flag is one; eight at a time, for whole tiles are checked.
fn all_set(flags: &[u8]) -> bool {
    const ONES: u64 = 0x0101_0101_0101_0101;
    let mut chunks = flags.chunks_exact(8);
    let whole = chunks.by_ref().all(|c| {
        let mut word = [0; 8];
        word.copy_from_slice(c);
        u64::from_le_bytes(word) == ONES
    });
    whole && chunks.remainder().iter().all(|&f| f == 1)
}

/// The bits of element `index` of a packed little-endian array.
#[inline]
pub(crate) fn read_bits(bytes: &[u8], bits: u32, index: usize) -> u64 {
    match bits {
        8 => bytes[index] as u64,
        16 => u16::from_le_bytes(at(bytes, index)) as u64,
        32 => u32::from_le_bytes(at(bytes, index)) as u64,
        64 => u64::from_le_bytes(at(bytes, index)),
        _ => {
            // An element narrower than a byte lies in at most two of them.
            let first = index * bits as usize;
            let low = bytes[first / 8] as u64;
            let high = bytes.get(first / 8 + 1).copied().unwrap_or(0) as u64;
            ((high << 8 | low) >> (first % 8)) & ((1 << bits) - 1)
        }
    }
}

/// Replaces the bits of element `index` of a packed little-endian array.
#[inline]
pub(crate) fn write_bits(bytes: &mut [u8], bits: u32, index: usize, value: u64) {
    match bits {
        8 => bytes[index] = value as u8,
        16 => put(bytes, index, (value as u16).to_le_bytes()),
        32 => put(bytes, index, (value as u32).to_le_bytes()),
        64 => put(bytes, index, value.to_le_bytes()),
        _ => {
            let first = index * bits as usize;
            let mask = ((1u64 << bits) - 1) << (first % 8);
            let value = (value << (first % 8)) & mask;
            for byte in 0..2 {
                let part = (mask >> (8 * byte)) as u8;
                if part != 0 {
                    let old = &mut bytes[first / 8 + byte];
                    *old = (*old & !part) | (value >> (8 * byte)) as u8;
                }
            }
        }
    }
}

#[inline]
fn at<const N: usize>(bytes: &[u8], index: usize) -> [u8; N] {
    let mut word = [0; N];
    word.copy_from_slice(&bytes[index * N..index * N + N]);
    word
}

#[inline]
fn put<const N: usize>(bytes: &mut [u8], index: usize, word: [u8; N]) {
    bytes[index * N..index * N + N].copy_from_slice(&word);
}

/// What one block did to global memory, to be applied later in block order.
#[derive(Clone, Debug, Default)]
pub(crate) struct WriteLog {
    pub entries: Vec<LogEntry>,
    /// The bytes that `LogEntry::Bytes` entries speak of, one after another.
    pub data: Vec<u8>,
}

/// One write. `site` is the instruction that made it.
#[derive(Clone, Copy, Debug)]
pub(crate) enum LogEntry {
    Bytes {
        storage: u32,
        site: u32,
        start: usize,
        len: usize,
    },
    /// An element narrower than a byte.
    Packed {
        storage: u32,
        bits: u32,
        index: usize,
        value: u64,
    },
    Atomic {
        storage: u32,
        site: u32,
        op: AtomicOp,
        scalar: Scalar,
        index: usize,
        value: u64,
    },
}

impl WriteLog {
    /// Logs the store of an element.
    pub fn store(&mut self, storage: u32, site: u32, bits: u32, index: usize, value: u64) {
        if bits < 8 {
            self.entries.push(LogEntry::Packed {
                storage,
                bits,
                index,
                value,
            });
            return;
        }
        let len = bits as usize / 8;
        self.bytes(storage, site, index * len, &value.to_le_bytes()[..len]);
    }

    /// Logs the store of whole bytes; runs of neighbours become one entry.
    pub fn bytes(&mut self, storage: u32, site: u32, start: usize, bytes: &[u8]) {
        self.data.extend_from_slice(bytes);
        if let Some(LogEntry::Bytes {
            storage: last,
            site: last_site,
            start: last_start,
            len,
        }) = self.entries.last_mut()
            && (*last, *last_site, *last_start + *len) == (storage, site, start)
        {
            *len += bytes.len();
            return;
        }
        self.entries.push(LogEntry::Bytes {
            storage,
            site,
            start,
            len: bytes.len(),
        });
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_elements_do_not_disturb_their_neighbours() {
        for bits in [4u32, 6, 8, 16, 32, 64] {
            let n = 13;
            let mut bytes = vec![0u8; (n * bits as usize).div_ceil(8)];
            let value = |i: usize| (i as u64 * 37 + 11) & (u64::MAX >> (64 - bits));
            for i in (0..n).rev() {
                write_bits(&mut bytes, bits, i, value(i));
            }
            for i in 0..n {
                assert_eq!(read_bits(&bytes, bits, i), value(i), "{bits} bits, {i}");
            }
        }
    }

    #[test]
    fn the_shadow_knows_what_was_written() {
        let mut s = Storage::unwritten(64);
        assert_eq!(s.load(32, 3), None);
        s.store(32, 3, 7);
        assert_eq!(s.load(32, 3), Some(7));
        assert_eq!(s.load(16, 6), Some(7));
        assert_eq!(s.load(64, 1), None, "half of it was never written");
        s.store(32, 2, 1);
        assert_eq!(s.load(64, 1), Some(7 << 32 | 1));
        s.forget(8, 4);
        assert_eq!(s.load(64, 1), None);
        assert_eq!(s.load(32, 3), Some(7));
    }

    #[test]
    fn neighbouring_writes_share_an_entry() {
        let mut log = WriteLog::default();
        for i in 0..10 {
            log.store(0, 1, 32, i, i as u64);
        }
        log.store(0, 1, 32, 99, 1);
        assert_eq!(log.entries.len(), 2);
        assert_eq!(log.data.len(), 44);
    }
}
