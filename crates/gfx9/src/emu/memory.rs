//! Global memory: buffers far apart from each other, and who touched what of them.

use std::collections::HashMap;

use super::order::{Agent, Operation, Stamp};

/// Buffers lie this far apart, so that an index out of one does not end in another.
const APART: u32 = 36;

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
    shadows: Vec<Option<Shadow>>,
    /// Blocks wait for each other by atomics, so that nothing is said of accesses of several.
    pub blocks_ordered: bool,
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
    more: HashMap<usize, Vec<Touch>>,
}

/// What an access of global memory finds.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Trouble {
    Unordered {
        at: usize,
        wave: u32,
    },
    /// Another block touches it.
    OtherBlock {
        at: usize,
        block: u32,
    },
    Unwritten,
    /// It belongs to no buffer.
    Outside,
    /// A buffer that the kernel may not write.
    ReadOnly,
}

impl Memory {
    pub fn new(buffers: Vec<Buffer>) -> Self {
        let shadows = buffers
            .iter()
            .map(|buffer| {
                let element = u64::from(buffer.element.max(1));
                let elements = (buffer.bytes.len() as u64).div_ceil(element) as usize;
                buffer.writable.then(|| Shadow {
                    element,
                    written: vec![Touch::default(); elements],
                    read: vec![Touch::default(); elements],
                    more: HashMap::new(),
                })
            })
            .collect();
        Self {
            buffers,
            shadows,
            blocks_ordered: false,
        }
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
        self.buffers
    }

    /// The buffer and the place in it that an access of some bytes is at.
    fn find(&self, address: u64, bytes: usize) -> Option<(usize, usize)> {
        let index = (address >> APART).checked_sub(1)? as usize;
        let at = (address & ((1 << APART) - 1)) as usize;
        let buffer = self.buffers.get(index)?;
        (at + bytes <= buffer.bytes.len()).then_some((index, at))
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
                    buffer.bytes.len()
                )
            }
            // Below the start of the next one.
            _ => match near.and_then(|index| self.buffers.get(index + 1)) {
                Some(next) => format!("{} bytes before `{}`", (1u64 << APART) - at, next.name),
                None => format!("address {address:#x}"),
            },
        }
    }

    /// The bytes at an address, unwatched.
    pub fn bytes(&self, address: u64, count: usize) -> Option<&[u8]> {
        let (index, at) = self.find(address, count)?;
        self.buffers[index].bytes.get(at..at + count)
    }

    /// Reads as an operation of a block. Outside of every buffer zeros are read.
    pub fn read(
        &mut self,
        address: u64,
        into: &mut [u8],
        block: u32,
        op: &Operation,
    ) -> Option<Trouble> {
        let Some((index, at)) = self.find(address, into.len()) else {
            into.fill(0);
            return Some(Trouble::Outside);
        };
        into.copy_from_slice(&self.buffers[index].bytes[at..at + into.len()]);
        let ordered = self.blocks_ordered;
        let holds = self.buffers[index].holds.as_ref();
        let shadow = self.shadows[index].as_mut()?;
        let touch = Touch {
            block,
            stamp: op.stamp,
            at: op.at as u32,
            atomic: op.atomic,
        };
        let mut trouble = None;
        for element in shadow.elements(at, into.len()) {
            let written = shadow.written[element];
            let held = holds.is_none_or(|holds| holds.get(element) == Some(&true));
            if written.stamp.time == 0 && !held {
                trouble = trouble.or(Some(Trouble::Unwritten));
            }
            trouble = trouble.or(clash(&written, &touch, op, ordered));
            let last = std::mem::replace(&mut shadow.read[element], touch);
            let other = last.stamp.agent != touch.stamp.agent || last.block != block;
            if last.stamp.time != 0 && other {
                let more = shadow.more.entry(element).or_default();
                more.retain(|r| (r.block, r.stamp.agent) != (last.block, last.stamp.agent));
                more.push(last);
            }
        }
        trouble
    }

    /// Writes as an operation of a block.
    pub fn write(
        &mut self,
        address: u64,
        from: &[u8],
        block: u32,
        op: &Operation,
    ) -> Option<Trouble> {
        let Some((index, at)) = self.find(address, from.len()) else {
            return Some(Trouble::Outside);
        };
        let ordered = self.blocks_ordered;
        let Some(shadow) = self.shadows[index].as_mut() else {
            return Some(Trouble::ReadOnly);
        };
        self.buffers[index].bytes[at..at + from.len()].copy_from_slice(from);
        let touch = Touch {
            block,
            stamp: op.stamp,
            at: op.at as u32,
            atomic: op.atomic,
        };
        let mut trouble = None;
        for element in shadow.elements(at, from.len()) {
            let written = std::mem::replace(&mut shadow.written[element], touch);
            trouble = trouble.or(clash(&written, &touch, op, ordered));
            let read = std::mem::take(&mut shadow.read[element]);
            trouble = trouble.or(clash(&read, &touch, op, ordered));
            if !shadow.more.is_empty()
                && let Some(more) = shadow.more.remove(&element)
            {
                for read in more {
                    trouble = trouble.or(clash(&read, &touch, op, ordered));
                }
            }
        }
        trouble
    }
}

impl Shadow {
    fn elements(&self, at: usize, bytes: usize) -> std::ops::RangeInclusive<usize> {
        let first = at as u64 / self.element;
        let last = (at + bytes - 1) as u64 / self.element;
        first as usize..=last as usize
    }
}

fn clash(before: &Touch, now: &Touch, op: &Operation, blocks_ordered: bool) -> Option<Trouble> {
    if before.stamp.time == 0 || (before.atomic && now.atomic) {
        return None;
    }
    if before.block != now.block {
        return (!blocks_ordered).then_some(Trouble::OtherBlock {
            at: before.at as usize,
            block: before.block,
        });
    }
    let agent: Agent = before.stamp.agent;
    let ordered = agent == now.stamp.agent || op.knows.of(before.stamp);
    (!ordered).then_some(Trouble::Unordered {
        at: before.at as usize,
        wave: agent.wave(),
    })
}
