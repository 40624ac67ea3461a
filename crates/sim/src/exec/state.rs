//! What a block and its strands are made of while they run.

use crate::barrier::{Counting, Mbarrier};
use crate::block_races::BlockRaces;
use crate::exec::mask::Mask;
use crate::memory::{Storage, WriteLog, byte_range};
use crate::program::{Pc, Program};

/// Memory and barriers that the threads of a block share.
#[derive(Debug)]
pub(crate) struct BlockMem {
    pub storages: Vec<Storage>,
    pub mbarriers: Vec<Mbarrier>,
    /// The counting barriers by number; zero is that of the whole block.
    pub counting: Vec<Counting>,
    /// By storage: whether a reducer there takes contributions.
    pub open: Vec<bool>,
}

impl BlockMem {
    pub fn new(program: &Program) -> BlockMem {
        let storages = program.block_storages.iter();
        BlockMem {
            storages: storages.map(|&len| Storage::unwritten(len)).collect(),
            mbarriers: program.barriers.iter().map(|&c| Mbarrier::new(c)).collect(),
            counting: Vec::new(),
            open: vec![false; program.block_storages.len()],
        }
    }
}

/// Threads that run in lockstep: the whole block, or one warp group of it.
#[derive(Debug)]
pub(crate) struct Strand {
    pub pc: Pc,
    pub slots: Vec<u64>,
    pub privates: Vec<Storage>,
    /// The threads of the strand.
    pub all: Mask,
    /// Those that take part in the current statement.
    pub active: Mask,
    pub frames: Vec<Frame>,
    /// The bit of the warp group, all bits for a whole block.
    pub group: u64,
    /// What a barrier gave out when the strand arrived there.
    pub ticket: Option<u64>,
    /// The same of the barrier of the cluster, where it waits later.
    pub half: Option<u64>,
    pub steps: u64,
    pub done: bool,
    /// The collective at which the strand waits for other groups.
    pub at_collective: Option<Pc>,
}

/// A mask construct that is open.
#[derive(Debug)]
pub(crate) enum Frame {
    If {
        saved: Mask,
        otherwise: Mask,
    },
    Loop {
        saved: Mask,
        /// Threads that left the loop.
        exited: Mask,
        /// Threads that wait for the next iteration.
        waiting: Mask,
        /// Iterations done, and start, step and trip count of each thread; empty for `while`.
        trip: i128,
        ranges: Vec<(i128, i128, i128)>,
    },
}

impl Strand {
    /// The strands of one block, ready to start.
    pub fn of_block(program: &Program, block: [u64; 3], rank: usize) -> Vec<Strand> {
        let threads = program.num_threads();
        if !program.grouped {
            return vec![Strand::new(program, (block, rank), 0..threads, u64::MAX)];
        }
        let size = tilewright_ir::WARP_GROUP as usize;
        (0..threads.div_ceil(size))
            .map(|g| {
                let range = g * size..threads.min((g + 1) * size);
                Strand::new(program, (block, rank), range, 1 << g)
            })
            .collect()
    }

    fn new(
        program: &Program,
        (block, rank): ([u64; 3], usize),
        threads: std::ops::Range<usize>,
        group: u64,
    ) -> Strand {
        let mut slots = vec![0; program.slots as usize];
        for (&slot, &index) in program.block_slots.iter().zip(&block) {
            slots[slot as usize] = index;
        }
        if let Some(slot) = program.rank_slot {
            slots[slot as usize] = rank as u64;
        }
        let [ex, ey, _] = program.threads.map(|t| t as usize);
        for lane in 0..program.num_threads() {
            let index = [lane % ex, lane / ex % ey, lane / ex / ey];
            for (first, index) in program.thread_slots.iter().zip(index) {
                if let Some(first) = first {
                    slots[*first as usize + lane] = index as u64;
                }
            }
        }
        let copies = |varying| {
            if varying { program.num_threads() } else { 1 }
        };
        let privates = program.private_storages.iter();
        let all = Mask::range(threads.start, threads.end);
        Strand {
            pc: 0,
            slots,
            privates: privates
                .map(|p| Storage::unwritten(p.stride * copies(p.varying)))
                .collect(),
            all,
            active: all,
            frames: Vec::new(),
            group,
            ticket: None,
            half: None,
            steps: 0,
            done: false,
            at_collective: None,
        }
    }
}

/// Global memory as a block sees it.
#[derive(Debug)]
pub(crate) enum Globals<'g> {
    /// As it was when the kernel started; writes are logged and no block reads what is written.
    Logged { mem: &'g [Storage], log: WriteLog },
    /// Reads and writes go straight to it, and are noted; blocks take turns.
    Direct {
        mem: &'g mut [Storage],
        races: &'g mut BlockRaces,
    },
}

impl Globals<'_> {
    pub fn storage(&self, number: u32) -> &Storage {
        match self {
            Globals::Logged { mem, .. } => &mem[number as usize],
            Globals::Direct { mem, .. } => &mem[number as usize],
        }
    }

    /// Notes a read of elements by a statement. What is logged cannot be read.
    #[inline]
    pub fn note_read(&mut self, number: u32, site: u32, bits: u32, index: usize, count: usize) {
        if let Globals::Direct { races, .. } = self {
            let (start, end) = byte_range(bits, index, count);
            races.read(number, site, start, end - start);
        }
    }

    #[inline]
    pub fn store(&mut self, number: u32, site: u32, bits: u32, index: usize, raw: u64) {
        match self {
            Globals::Logged { log, .. } => log.store(number, site, bits, index, raw),
            Globals::Direct { mem, races } => {
                let storage = &mut mem[number as usize];
                if bits >= 8 {
                    let len = bits as usize / 8;
                    let new = &raw.to_le_bytes()[..len];
                    races.write(number, site, index * len, new, storage);
                }
                storage.store(bits, index, raw);
            }
        }
    }

    /// Overwrites whole bytes.
    pub fn store_bytes(&mut self, number: u32, site: u32, start: usize, bytes: &[u8]) {
        match self {
            Globals::Logged { log, .. } => log.bytes(number, site, start, bytes),
            Globals::Direct { mem, races } => {
                let storage = &mut mem[number as usize];
                races.write(number, site, start, bytes, storage);
                storage.write_bytes(start, bytes);
            }
        }
    }
}

/// What a strand waits for.
#[derive(Clone, PartialEq, Debug)]
pub(crate) enum Wait {
    Mbarrier {
        name: String,
        index: i64,
        parity: i64,
        pending: u32,
        bytes: i64,
    },
    Sync {
        id: u32,
        needed: u32,
        arrived: u64,
    },
    Grid,
    Cluster,
    /// The other warp groups at the same statement.
    Collective {
        groups: u64,
    },
}

impl std::fmt::Display for Wait {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        match self {
            Wait::Mbarrier {
                name,
                index,
                parity,
                pending,
                bytes,
            } => {
                write!(
                    f,
                    "`{name}[{index}]` to complete its phase {parity}: {pending} more arrivals"
                )?;
                if *bytes != 0 {
                    write!(f, " and {bytes} more bytes")?;
                }
                Ok(())
            }
            Wait::Sync {
                id: 0,
                needed,
                arrived,
            } => write!(
                f,
                "a block barrier that {arrived} of {needed} threads reached"
            ),
            Wait::Sync {
                id,
                needed,
                arrived,
            } => write!(f, "barrier {id} that {arrived} of {needed} threads reached"),
            Wait::Grid => f.write_str("the other blocks at a grid barrier"),
            Wait::Cluster => f.write_str("the other blocks at a barrier of the cluster"),
            Wait::Collective { groups } => {
                let list: Vec<String> = (0..64)
                    .filter(|g| groups >> g & 1 == 1)
                    .map(|g: u32| g.to_string())
                    .collect();
                write!(
                    f,
                    "warp groups {} to reach the same statement",
                    list.join(", ")
                )
            }
        }
    }
}
