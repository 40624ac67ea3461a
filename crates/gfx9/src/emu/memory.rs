//! Global memory: buffers far apart from each other, and who touched what of them.

use rustc_hash::FxHashMap;

use super::order::{Horizon, Operation, Stamp};
use super::suspects::Reads;

/// Buffers lie this far apart, so that an index out of one does not end in another.
const APART: u32 = 36;

/// Bytes of what atomic operations change at least.
const WORD: usize = 4;

/// One buffer of a launch.
#[derive(Clone, Debug)]
pub struct Buffer {
    pub name: String,
    pub bytes: Vec<u8>,
    /// Bytes of an element: what one thread writes and another reads is told apart by elements.
    pub element: u32,
    /// The kernel may write it. One that it may not is not watched.
    pub writable: bool,
    /// Which elements hold values; none where all do.
    pub holds: Option<Vec<bool>>,
}

/// All buffers of a launch.
#[derive(Debug)]
pub struct Memory {
    buffers: Vec<Buffer>,
    /// How long each is. Its last word is there as a whole: atomic operations work on words.
    lengths: Vec<usize>,
    shadows: Vec<Option<Shadow>>,
    /// What was shown by waves that changed a place atomically.
    handed: FxHashMap<u64, Horizon>,
    /// Bytes that the notes have grown by.
    grown: u64,
}

/// What a buffer takes beside itself: a copy of it, and the last touches of each element.
pub(super) fn needs(buffer: &Buffer) -> u64 {
    let elements = buffer.elements() as u64;
    let held = buffer.holds.as_ref().map_or(0, |holds| holds.len() as u64);
    let touches = match buffer.writable {
        true => 2 * size_of::<Touch>() as u64,
        false => 0,
    };
    buffer.bytes.len() as u64 + held + elements * touches
}

impl Buffer {
    fn elements(&self) -> usize {
        self.bytes.len().div_ceil(self.element.max(1) as usize)
    }
}

/// An operation in a launch.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
struct Touch {
    block: u32,
    stamp: Stamp,
    at: u32,
    atomic: bool,
}

#[derive(Debug)]
struct Shadow {
    element: u64,
    written: Vec<Touch>,
    read: Vec<Touch>,
    /// Reads of an element by agents other than the last one.
    more: FxHashMap<usize, Vec<Touch>>,
}

/// What an access of global memory finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    /// Nothing orders it and another access.
    Unordered(Other),
    Unwritten,
    /// It belongs to no buffer.
    Outside,
    /// A buffer that the kernel may not write.
    ReadOnly,
}

/// The other of two accesses.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Other {
    pub at: usize,
    pub block: u32,
    pub wave: u32,
    /// Where it is a load: all these loads are meant.
    pub reads: Option<Reads>,
}

/// Troubles, each with the address of its element.
pub type Troubles = Vec<(u64, Trouble)>;

impl Memory {
    pub fn new(mut buffers: Vec<Buffer>) -> Self {
        let lengths = buffers.iter().map(|buffer| buffer.bytes.len()).collect();
        let shadows = buffers
            .iter()
            .map(|buffer| {
                buffer.writable.then(|| Shadow {
                    element: u64::from(buffer.element.max(1)),
                    written: vec![Touch::default(); buffer.elements()],
                    read: vec![Touch::default(); buffer.elements()],
                    more: FxHashMap::default(),
                })
            })
            .collect();
        for buffer in &mut buffers {
            let words = buffer.bytes.len().next_multiple_of(WORD);
            buffer.bytes.resize(words, 0);
        }
        Self {
            buffers,
            lengths,
            shadows,
            handed: FxHashMap::default(),
            grown: 0,
        }
    }

    /// Bytes that what is noted has grown by since the start.
    pub fn grown(&self) -> u64 {
        self.grown
    }

    /// The address of a buffer.
    pub fn address(index: usize) -> u64 {
        (index as u64 + 1) << APART
    }

    /// The buffers, which now hold what was written too.
    pub fn into_buffers(mut self) -> Vec<Buffer> {
        for (buffer, shadow) in self.buffers.iter_mut().zip(&self.shadows) {
            let (Some(holds), Some(shadow)) = (&mut buffer.holds, shadow) else {
                continue;
            };
            for (holds, written) in holds.iter_mut().zip(&shadow.written) {
                *holds |= written.stamp.time != 0;
            }
        }
        for (buffer, length) in self.buffers.iter_mut().zip(&self.lengths) {
            buffer.bytes.truncate(*length);
        }
        self.buffers
    }

    /// The buffer and the place in it that an access of some bytes is at.
    fn find(&self, address: u64, bytes: usize, atomic: bool) -> Option<(usize, usize)> {
        let index = (address >> APART).checked_sub(1)? as usize;
        let at = (address & ((1 << APART) - 1)) as usize;
        let length = *self.lengths.get(index)?;
        let end = match atomic {
            true => length.next_multiple_of(WORD),
            false => length,
        };
        (at + bytes <= end).then_some((index, at))
    }

    /// What an address is, in words.
    pub fn describe(&self, address: u64) -> String {
        let near = (address >> APART)
            .checked_sub(1)
            .map(|index| index as usize);
        let at = address & ((1 << APART) - 1);
        match near.and_then(|index| self.buffers.get(index)) {
            Some(buffer) if at < 1 << (APART - 1) => {
                format!(
                    "byte {at} of `{}`, which has {}",
                    buffer.name,
                    self.lengths[near.unwrap_or(0)]
                )
            }
            // Below the start of the next one.
            _ => match near.and_then(|index| self.buffers.get(index + 1)) {
                Some(next) => format!("{} bytes before `{}`", (1u64 << APART) - at, next.name),
                None => format!("address {address:#x}"),
            },
        }
    }

    /// Reads as an operation of a block. Outside of every buffer zeros are read.
    pub fn read(&mut self, address: u64, into: &mut [u8], block: u32, op: &Operation) -> Troubles {
        let Some((index, at)) = self.find(address, into.len(), op.atomic) else {
            into.fill(0);
            return vec![(address, Trouble::Outside)];
        };
        into.copy_from_slice(&self.buffers[index].bytes[at..at + into.len()]);
        let holds = self.buffers[index].holds.as_ref();
        let mut troubles = Troubles::new();
        let Some(shadow) = self.shadows[index].as_mut() else {
            return troubles;
        };
        let touch = Touch::of(block, op);
        for element in shadow.elements(at, into.len()) {
            let place = Self::address(index) + element as u64 * shadow.element;
            let written = shadow.written[element];
            let held = holds.is_none_or(|holds| holds.get(element) == Some(&true));
            if written.stamp.time == 0 && !held {
                troubles.push((place, Trouble::Unwritten));
            } else if let Some(other) = clash(&written, &touch, op) {
                troubles.push((place, Trouble::Unordered(other)));
            }
            let last = std::mem::replace(&mut shadow.read[element], touch);
            let other = last.stamp.agent != touch.stamp.agent || last.block != block;
            if last.stamp.time != 0 && other {
                let more = shadow.more.entry(element).or_default();
                let before = size_of_reads(more);
                more.retain(|r| (r.block, r.stamp.agent) != (last.block, last.stamp.agent));
                more.push(last);
                self.grown += size_of_reads(more) - before;
            }
        }
        troubles
    }

    /// Writes as an operation of a block.
    pub fn write(&mut self, address: u64, from: &[u8], block: u32, op: &Operation) -> Troubles {
        let Some((index, at)) = self.find(address, from.len(), op.atomic) else {
            return vec![(address, Trouble::Outside)];
        };
        let Some(shadow) = self.shadows[index].as_mut() else {
            return vec![(address, Trouble::ReadOnly)];
        };
        self.buffers[index].bytes[at..at + from.len()].copy_from_slice(from);
        let touch = Touch::of(block, op);
        let mut troubles = Troubles::new();
        for element in shadow.elements(at, from.len()) {
            let place = Self::address(index) + element as u64 * shadow.element;
            let written = std::mem::replace(&mut shadow.written[element], touch);
            let read = std::mem::take(&mut shadow.read[element]);
            let more = match shadow.more.is_empty() {
                true => None,
                false => shadow.more.remove(&element),
            };
            self.grown -= more.as_ref().map_or(0, size_of_reads);
            let others = clash(&written, &touch, op).into_iter();
            let reads = more.into_iter().flatten().chain([read]);
            let reads = reads.filter_map(|read| {
                let mut other = clash(&read, &touch, op)?;
                let after = match read.block == block {
                    true => op.knows.last(read.stamp.agent),
                    false => 0,
                };
                other.reads = Some(Reads {
                    agent: read.stamp.agent,
                    after,
                    until: read.stamp.time,
                });
                Some(other)
            });
            troubles.extend(
                others
                    .chain(reads)
                    .map(|other| (place, Trouble::Unordered(other))),
            );
        }
        troubles
    }

    /// What those showed who changed a place atomically before this operation; one that changes it
    /// hands on what its wave has shown, beside what was handed on before or in its place.
    pub fn hand(&mut self, address: u64, op: &Operation, hands: Hands) -> Horizon {
        let told = self.handed.get(&address).cloned().unwrap_or_default();
        let known = self.handed.len();
        match hands {
            Hands::Nothing => {}
            Hands::More => self
                .handed
                .entry(address)
                .or_default()
                .join(op.knows.shown()),
            Hands::Instead => {
                self.handed.insert(address, op.knows.shown().clone());
            }
        }
        self.grown += (self.handed.len() - known) as u64 * ENTRY;
        told
    }

    /// The addresses of the elements that an access of some bytes touches.
    pub fn elements(&self, address: u64, bytes: usize) -> impl Iterator<Item = u64> + use<> {
        let index = ((address >> APART) as usize).wrapping_sub(1);
        let element = self
            .buffers
            .get(index)
            .map_or(1, |b| u64::from(b.element.max(1)));
        let first = address / element * element;
        (first..address + bytes as u64).step_by(element as usize)
    }
}

/// What an entry of a map takes, with the room that the map keeps for others.
const ENTRY: u64 = 64;

/// What the reads of an element take that are kept beside the last one.
fn size_of_reads(reads: &Vec<Touch>) -> u64 {
    match reads.capacity() {
        0 => 0,
        room => ENTRY + (room * size_of::<Touch>()) as u64,
    }
}

/// What an atomic operation does to what is handed on.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Hands {
    /// It reads.
    Nothing,
    /// It changes what is there.
    More,
    /// It stores.
    Instead,
}

impl Touch {
    fn of(block: u32, op: &Operation) -> Self {
        Self {
            block,
            stamp: op.stamp,
            at: op.at as u32,
            atomic: op.atomic,
        }
    }
}

impl Shadow {
    fn elements(&self, at: usize, bytes: usize) -> std::ops::Range<usize> {
        let first = at as u64 / self.element;
        let last = (at + bytes - 1) as u64 / self.element;
        // Behind the last one is the rest of a word.
        first as usize..(last as usize + 1).min(self.written.len())
    }
}

fn clash(before: &Touch, now: &Touch, op: &Operation) -> Option<Other> {
    if before.stamp.time == 0 || (before.atomic && now.atomic) {
        return None;
    }
    let ordered = match before.block == now.block {
        true => op.after_in_memory(before.stamp),
        false => op.after_other(before.block, before.stamp),
    };
    (!ordered).then_some(Other {
        at: before.at as usize,
        block: before.block,
        wave: before.stamp.agent.wave(),
        reads: None,
    })
}
