//! How a kernel starts: its arguments, and the registers of each wave.

use std::ops::Range;

use rustc_hash::{FxHashMap, FxHashSet};

use crate::asm::{Descriptor, Function};

use super::memory::{Buffer, Memory};
use super::queue::Landing;
use super::wave::{LANES, Wave};

/// A launch of a kernel.
#[derive(Clone, Debug)]
pub struct Launch {
    /// Blocks in x, y, z.
    pub grid: [u32; 3],
    /// Threads of a block in x, y, z.
    pub block: [u32; 3],
    pub arguments: Vec<Argument>,
    pub buffers: Vec<Buffer>,
    /// Which buffers are objects of the program, by name.
    pub objects: FxHashMap<String, usize>,
    /// LDS in bytes beside what the kernel has of its own.
    pub dynamic_lds: u32,
    /// Bytes of LDS that hold something from the start: the rest of words at the ends of buffers,
    /// which atomic operations on small elements read and put back.
    pub lds_rests: Vec<Range<u32>>,
    /// Lines of the source whose loads of LDS are atomic: the instruction does not say so.
    pub atomic_lines: FxHashSet<u32>,
    pub landing: Landing,
    /// The order of waves, and of landings at random.
    pub seed: u64,
    /// The most instructions that the waves of one block may run.
    pub steps: u64,
    /// Threads of this machine that run blocks.
    pub workers: usize,
    /// The block whose steps are noted, for the model of cycles.
    pub traced: Option<u32>,
    /// Only this block is run.
    pub only: Option<u32>,
    /// Bytes of this machine's memory that the run may take beside the buffers; none where that is
    /// not known.
    pub room: Option<u64>,
}

/// One argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Argument {
    /// The address of a buffer, this many bytes into it.
    Buffer {
        index: usize,
        offset: u64,
    },
    Bytes(Vec<u8>),
}

/// Enough for every kernel that a person waits for.
pub const STEPS: u64 = 1 << 32;

impl Launch {
    pub fn new(grid: [u32; 3], block: [u32; 3]) -> Self {
        Self {
            grid,
            block,
            arguments: Vec::new(),
            buffers: Vec::new(),
            objects: FxHashMap::default(),
            dynamic_lds: 0,
            lds_rests: Vec::new(),
            atomic_lines: FxHashSet::default(),
            landing: Landing::Random,
            seed: 0,
            steps: STEPS,
            workers: std::thread::available_parallelism().map_or(1, usize::from),
            traced: None,
            only: None,
            room: None,
        }
    }

    pub fn blocks(&self) -> u64 {
        self.grid.iter().map(|n| u64::from(*n)).product()
    }

    /// The argument block. Where the metadata lists arguments, they lie where it says, hidden ones
    /// included; else one behind the other.
    pub(super) fn argument_block(&self, function: &Function) -> Result<Vec<u8>, String> {
        let bytes = |argument: &Argument| match argument {
            Argument::Buffer { index, offset } => {
                (Memory::address(*index) + offset).to_le_bytes().to_vec()
            }
            Argument::Bytes(bytes) => bytes.clone(),
        };
        let Some(needs) = &function.needs else {
            let mut block = Vec::new();
            for argument in &self.arguments {
                let bytes = bytes(argument);
                block.resize(block.len().next_multiple_of(bytes.len().max(1)), 0);
                block.extend(bytes);
            }
            return Ok(block);
        };
        let mut block = vec![0; needs.kernarg_bytes as usize];
        let mut given = self.arguments.iter();
        for argument in &needs.arguments {
            let (start, size) = (argument.offset as usize, argument.size as usize);
            let value = match argument.kind.strip_prefix("hidden_") {
                Some(hidden) => self.hidden(hidden, size),
                None => match given.next() {
                    Some(argument) => bytes(argument),
                    None => return Err(self.count(function)),
                },
            };
            if value.len() != size {
                return Err(format!(
                    "an argument of `{}` has {size} bytes, {} were given",
                    function.name,
                    value.len()
                ));
            }
            let end = start + size;
            if end > block.len() {
                block.resize(end, 0);
            }
            block[start..end].copy_from_slice(&value);
        }
        // Scalar loads take whole pieces of it.
        block.resize(block.len().next_multiple_of(64), 0);
        match given.next() {
            None => Ok(block),
            Some(_) => Err(self.count(function)),
        }
    }

    fn count(&self, function: &Function) -> String {
        let needs = function.needs.iter().flat_map(|needs| &needs.arguments);
        let want = needs.filter(|a| !a.kind.starts_with("hidden_")).count();
        let got = self.arguments.len();
        format!(
            "`{}` takes {want} arguments, {got} were given",
            function.name
        )
    }

    fn hidden(&self, name: &str, size: usize) -> Vec<u8> {
        let axis = |name: &str| match name.as_bytes().last() {
            Some(b'y') => 1,
            Some(b'z') => 2,
            _ => 0,
        };
        let value = match name {
            _ if name.starts_with("block_count_") => self.grid[axis(name)],
            _ if name.starts_with("group_size_") => self.block[axis(name)],
            "grid_dims" => 3,
            "dynamic_lds_size" => self.dynamic_lds,
            _ => 0,
        };
        let mut bytes = u64::from(value).to_le_bytes().to_vec();
        bytes.resize(size, 0);
        bytes
    }

    /// The waves of a block, as they start.
    pub(super) fn waves(
        &self,
        descriptor: &Descriptor,
        registers: [usize; 3],
        arguments: u64,
        block: u64,
    ) -> Vec<Wave> {
        let threads: u32 = self.block.iter().product();
        let [vgprs, agprs, sgprs] = registers;
        let (gx, gy) = (u64::from(self.grid[0]), u64::from(self.grid[1]));
        let ids = [block % gx, block / gx % gy, block / gx / gy].map(|id| id as u32);
        let mut user = Vec::new();
        let kept = |user: &mut Vec<u32>, present: bool, words: usize| {
            user.extend(std::iter::repeat_n(0, if present { words } else { 0 }));
        };
        kept(&mut user, descriptor.private_segment_buffer, 4);
        kept(&mut user, descriptor.dispatch_ptr, 2);
        kept(&mut user, descriptor.queue_ptr, 2);
        if descriptor.kernarg_ptr {
            user.extend([arguments as u32, (arguments >> 32) as u32]);
        }
        user.resize(user.len().max(descriptor.user_sgprs as usize), 0);
        for (id, present) in ids.iter().zip(descriptor.workgroup_id) {
            user.extend(present.then_some(*id));
        }
        let wave = |id: u32| {
            let mut wave = Wave::new(id, sgprs.max(user.len()).max(16), vgprs.max(1), agprs);
            wave.sgpr[..user.len()].copy_from_slice(&user);
            wave.flush_32 = descriptor.denormals_32 == 0;
            wave.exec = 0;
            for lane in 0..LANES as u32 {
                let thread = id * LANES as u32 + lane;
                if thread < threads {
                    wave.exec |= 1 << lane;
                }
                let (x, y) = (self.block[0].max(1), self.block[1].max(1));
                let place = [thread % x, thread / x % y, thread / x / y];
                wave.vgpr[0][lane as usize] = place[0] | place[1] << 10 | place[2] << 20;
            }
            wave
        };
        (0..threads.div_ceil(LANES as u32)).map(wave).collect()
    }
}

/// What a kernel without a descriptor gets: its arguments, and the block's place.
pub(super) fn plain_descriptor() -> Descriptor {
    Descriptor {
        user_sgprs: 2,
        kernarg_ptr: true,
        workgroup_id: [true; 3],
        denormals_32: 3,
        ..Descriptor::default()
    }
}
