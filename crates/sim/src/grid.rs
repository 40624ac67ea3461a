//! A launch: in which order blocks run, and how their writes come together.
//!
//! | how | when |
//! |---|---|
//! | in parallel | no block reads global memory that the kernel writes: writes and atomics are logged for each block and applied in block order, so the result does not depend on timing |
//! | one after another | some global memory is both read and written |
//! | taking turns | blocks wait for each other: `sync_grid`, or a loop that watches memory |

use rayon::prelude::*;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Diagnostic, Kernel, RasterOrder, Span, StmtKind, Swizzle, ThreadOp, TileOp};

use crate::barrier::Counting;
use crate::block::{Launch, Turn};
use crate::block_races::{BlockRaces, Sites, Watch};
use crate::cluster::ClusterRun;
use crate::error::{RunError, codes};
use crate::exec::state::Globals;
use crate::exec::{Checks, combine, decode, encode};
use crate::memory::{LogEntry, Storage, WriteLog, byte_range};
use crate::program::{Program, Traffic};

/// How the blocks of a kernel were run.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Schedule {
    /// At the same time, writes applied in block order.
    Parallel,
    /// One after another, in block order.
    Sequential,
    /// Taking turns, because they wait for each other.
    Interleaved,
}

/// What a launch gathered on the side.
#[derive(Debug, Default)]
pub(crate) struct Gathered {
    pub prints: Vec<String>,
    /// What blocks do to each other.
    pub races: Vec<Diagnostic>,
}

/// Blocks started at once in parallel, for each worker: enough to even out their run times.
pub(crate) const CHUNK: u64 = 8;

pub(crate) fn schedule(traffic: &Traffic) -> Schedule {
    if traffic.sync_grid || (traffic.spins && traffic.blocks_share()) {
        Schedule::Interleaved
    } else if traffic.blocks_share() {
        Schedule::Sequential
    } else {
        Schedule::Parallel
    }
}

/// Whether what some of the blocks write is a part of the whole result: none sees what another
/// writes, and none adds to what another does.
pub(crate) fn is_part(kernel: &Kernel, traffic: &Traffic) -> bool {
    schedule(traffic) == Schedule::Parallel && !has_atomics(kernel)
}

/// Whether blocks may add to the same memory.
fn has_atomics(kernel: &Kernel) -> bool {
    let mut found = false;
    walk_stmts(&kernel.body, &mut |stmt| {
        found |= matches!(
            stmt.kind,
            StmtKind::Tile(TileOp::Atomic { .. })
                | StmtKind::Thread(
                    ThreadOp::AtomicRmw { .. }
                        | ThreadOp::AtomicVecAdd { .. }
                        | ThreadOp::AtomicStore { .. }
                        | ThreadOp::AtomicLoad { .. }
                        | ThreadOp::Extern { .. }
                )
        );
    });
    found
}

/// The blocks of a launch that run.
#[derive(Clone, Copy, Debug)]
pub(crate) struct Chosen {
    blocks: u64,
    count: u64,
}

impl Chosen {
    /// A sample is the first block, the last, and some between, evenly spread.
    pub fn new(blocks: u64, sample: Option<u64>) -> Chosen {
        let count = sample.map_or(blocks, |n| n.clamp(1, blocks.max(1)).min(blocks));
        Chosen { blocks, count }
    }

    pub fn count(self) -> u64 {
        self.count
    }

    /// The linear index of the nth block to run.
    pub fn nth(self, n: u64) -> u64 {
        if self.count == self.blocks {
            return n;
        }
        let steps = u128::from(self.count.max(2) - 1);
        (u128::from(n) * u128::from(self.blocks - 1) / steps) as u64
    }
}

/// The blocks along each axis that run together, where they reach each other's memory or know their
/// number.
pub(crate) fn cluster(kernel: &Kernel, grid: &[u64]) -> Result<Option<[u64; 3]>, RunError> {
    let Some(sizes) = kernel.attrs.cluster else {
        return Ok(None);
    };
    let sizes = sizes.map(u64::from);
    let extent = |axis: usize| grid.get(axis).copied().unwrap_or(1);
    if (0..3).any(|axis| extent(axis) % sizes[axis].max(1) != 0) {
        let message = format!("clusters of {sizes:?} blocks do not divide a grid of {grid:?}");
        return Err(RunError::new(codes::LAUNCH_EXTENT, kernel.span, message));
    }
    let together = kernel.reaches_others() || kernel.attrs.rank.is_some();
    Ok(together.then_some(sizes))
}

/// The numbers in the grid of a cluster's blocks, in the order of their numbers there; without
/// clusters that of the block.
pub(crate) fn members(grid: &[u64], sizes: Option<[u64; 3]>, cluster: u64) -> Vec<u64> {
    let Some(sizes) = sizes else {
        return vec![cluster];
    };
    let extent = |axis: usize| grid.get(axis).copied().unwrap_or(1);
    let mut rest = cluster;
    let first = [0, 1, 2].map(|axis| {
        let clusters = (extent(axis) / sizes[axis]).max(1);
        let at = rest % clusters * sizes[axis];
        rest /= clusters;
        at
    });
    let block = (0..sizes.iter().product()).map(|rank: u64| {
        let own = [
            rank % sizes[0],
            rank / sizes[0] % sizes[1],
            rank / sizes[0] / sizes[1],
        ];
        let [x, y, z] = [0, 1, 2].map(|axis| first[axis] + own[axis]);
        x + extent(0) * (y + extent(1) * z)
    });
    block.collect()
}

/// Runs the chosen blocks, or clusters of them; all of them where blocks depend on each other.
/// `progress` is told how many are done.
pub(crate) fn launch(
    launch: Launch<'_>,
    swizzle: Option<Swizzle>,
    chosen: Chosen,
    watch: Watch,
    mem: &mut [Storage],
    progress: &(dyn Fn(u64) + Sync),
) -> Result<Gathered, Box<Diagnostic>> {
    let program = launch.program;
    let together = program.cluster_blocks();
    let total = program.num_blocks() / together;
    let indices = |number| -> Vec<[u64; 3]> {
        let members = members(&program.grid, program.cluster, number).into_iter();
        members
            .map(|block| block_index(&program.grid, swizzle, block))
            .collect()
    };
    // What blocks of a cluster do to each other they may order themselves.
    let index = |number| indices(number)[0];
    let mut gathered = Gathered::default();
    let traffic = &launch.program.traffic;
    let watch = match launch.checks.races {
        true => watch,
        false => Watch::NotWatched,
    };
    let mut races = BlockRaces::new(launch.program, traffic, watch);
    match schedule(traffic) {
        Schedule::Parallel => {
            let applier = Applier::new(launch.program, launch.checks);
            let chunk = CHUNK * rayon::current_num_threads() as u64;
            let total = chosen.count();
            let mut first = 0;
            while first < total {
                let end = total.min(first + chunk);
                let shared: &[Storage] = mem;
                let results: Vec<_> = (first..end)
                    .into_par_iter()
                    .map(|n| run_logged(launch, &indices(chosen.nth(n)), shared))
                    .collect();
                for (n, result) in (first..end).zip(results) {
                    let (log, prints) = result?;
                    races.turn(index(chosen.nth(n)), 0);
                    applier.apply(&log, mem, &mut races)?;
                    gathered.prints.extend(prints);
                }
                first = end;
                progress(first * together);
            }
        }
        Schedule::Sequential => {
            for linear in 0..total {
                let mut blocks = ClusterRun::new(program, &indices(linear));
                races.turn(index(linear), 0);
                let races = &mut races;
                blocks.finish(launch, &mut Globals::Direct { mem, races })?;
                gathered.prints.extend(blocks.prints());
                progress((linear + 1) * together);
            }
        }
        Schedule::Interleaved => {
            let mut blocks: Vec<Option<ClusterRun>> = (0..total).map(|_| None).collect();
            let mut finished = vec![false; total as usize];
            let mut barrier = Counting::default();
            let mut done = 0;
            while done < total {
                let mut moved = false;
                for linear in 0..total as usize {
                    if finished[linear] {
                        continue;
                    }
                    let block = blocks[linear]
                        .get_or_insert_with(|| ClusterRun::new(program, &indices(linear as u64)));
                    // No block is behind the barrier while another is before it.
                    races.turn(index(linear as u64), barrier.generation);
                    let races = &mut races;
                    let globals = &mut Globals::Direct { mem, races };
                    match block.turn(launch, globals, &mut barrier) {
                        Turn::Done => {
                            finished[linear] = true;
                            if let Some(block) = blocks[linear].take() {
                                gathered.prints.extend(block.prints());
                            }
                            done += 1;
                            moved = true;
                            progress(done * together);
                        }
                        Turn::Progress => moved = true,
                        Turn::Stuck => {}
                        Turn::Failed(d) => return Err(d),
                    }
                }
                if !moved && let Some(block) = blocks.iter().flatten().next() {
                    return Err(Box::new(block.deadlock(launch.program)));
                }
            }
        }
    }
    gathered.races = races.finish(launch.program);
    Ok(gathered)
}

fn run_logged(
    launch: Launch<'_>,
    indices: &[[u64; 3]],
    mem: &[Storage],
) -> Result<(WriteLog, Vec<String>), Box<Diagnostic>> {
    let mut globals = Globals::Logged {
        mem,
        log: WriteLog::default(),
    };
    let mut blocks = ClusterRun::new(launch.program, indices);
    blocks.finish(launch, &mut globals)?;
    match globals {
        Globals::Logged { log, .. } => Ok((log, blocks.prints())),
        Globals::Direct { .. } => Ok((WriteLog::default(), blocks.prints())),
    }
}

impl Sites for Program {
    fn span(&self, site: u32) -> Span {
        self.spans[site as usize]
    }

    fn name(&self, storage: u32) -> &str {
        let space = crate::program::Space::Global(storage);
        let found = self.buffers.iter().find(|b| b.space == space);
        found.map_or("?", |b| b.name.as_str())
    }

    fn granule(&self, storage: u32) -> usize {
        let space = crate::program::Space::Global(storage);
        let through = self.buffers.iter().filter(|b| b.space == space);
        let bytes = through.map(|b| b.bits() as usize / 8).min();
        bytes.unwrap_or(1).max(1)
    }

    fn rank(&self) -> usize {
        self.grid.len()
    }
}

/// Applies logs in block order.
pub(crate) struct Applier<'a> {
    sites: &'a dyn Sites,
    checks: Checks,
}

impl<'a> Applier<'a> {
    pub fn new(sites: &'a dyn Sites, checks: Checks) -> Applier<'a> {
        Applier { sites, checks }
    }

    /// Applies what a block did; `races` knows which one it was.
    pub fn apply(
        &self,
        log: &WriteLog,
        mem: &mut [Storage],
        races: &mut BlockRaces,
    ) -> Result<(), Box<Diagnostic>> {
        let mut data = log.data.as_slice();
        for entry in &log.entries {
            match *entry {
                LogEntry::Bytes {
                    storage,
                    site,
                    start,
                    len,
                } => {
                    let (bytes, rest) = data.split_at(len);
                    data = rest;
                    let target = &mut mem[storage as usize];
                    races.write(storage, site, start, bytes, target);
                    target.write_bytes(start, bytes);
                }
                LogEntry::Packed {
                    storage,
                    bits,
                    index,
                    value,
                    ..
                } => mem[storage as usize].store(bits, index, value),
                LogEntry::Atomic {
                    storage,
                    site,
                    op,
                    scalar,
                    index,
                    value,
                } => {
                    let target = &mut mem[storage as usize];
                    let bits = scalar.bits();
                    let checked =
                        self.checks.uninitialised && op != tilewright_ir::AtomicOp::Exchange;
                    if checked && !target.is_written(bits, index, 1) {
                        return Err(Box::new(self.unwritten(storage, site, index)));
                    }
                    let (start, end) = byte_range(bits, index, 1);
                    races.update(storage, site, start, end - start);
                    let old = decode(scalar, crate::memory::read_bits(&target.bytes, bits, index));
                    let new = encode(scalar, combine(op, scalar, old, value));
                    target.store(bits, index, new);
                }
            }
        }
        Ok(())
    }

    fn unwritten(&self, storage: u32, site: u32, index: usize) -> Diagnostic {
        let name = self.sites.name(storage);
        Diagnostic::error(
            codes::UNINITIALISED,
            self.sites.span(site),
            format!("`{name}` is updated atomically but nothing wrote it: element {index}"),
        )
        .help("clear it first, in a kernel of its own")
    }
}

/// The index of a block by its number in launch order, x fastest, after re-mapping.
pub(crate) fn block_index(grid: &[u64], swizzle: Option<Swizzle>, linear: u64) -> [u64; 3] {
    let extent = |axis: usize| grid.get(axis).copied().unwrap_or(1);
    let (gx, gy) = (extent(0), extent(1));
    let index = [linear % gx, linear / gx % gy, linear / gx / gy];
    match swizzle {
        Some(swizzle) if swizzle.panel > 0 => {
            let (bx, by) = swizzled(gx, gy, swizzle, index[0] + index[1] * gx);
            [bx, by, index[2]]
        }
        _ => index,
    }
}

/// Blocks go through panels of a few rows (or columns), back and forth.
fn swizzled(gx: u64, gy: u64, swizzle: Swizzle, linear: u64) -> (u64, u64) {
    let width = u64::from(swizzle.panel);
    let along = match swizzle.order {
        RasterOrder::Row => gx,
        RasterOrder::Column => gy,
    };
    let total = gx * gy;
    let size = width * along;
    let (panel, offset) = (linear / size, linear % size);
    let last = panel + 1 >= total.div_ceil(size);
    let stride = if last {
        (total - panel * size) / along
    } else {
        width
    };
    let mut main = offset / stride;
    if panel % 2 == 1 {
        main = along - 1 - main;
    }
    let cross = offset % stride + panel * width;
    match swizzle.order {
        RasterOrder::Row => (main, cross),
        RasterOrder::Column => (cross, main),
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    fn order(grid: [u64; 2], panel: u32, order: RasterOrder) -> Vec<(u64, u64)> {
        let swizzle = Some(Swizzle { panel, order });
        (0..grid[0] * grid[1])
            .map(|b| block_index(&grid, swizzle, b))
            .map(|[x, y, _]| (x, y))
            .collect()
    }

    #[test]
    fn swizzled_orders() {
        assert_eq!(
            order([3, 4], 2, RasterOrder::Row),
            [
                (0, 0),
                (0, 1),
                (1, 0),
                (1, 1),
                (2, 0),
                (2, 1),
                (2, 2),
                (2, 3),
                (1, 2),
                (1, 3),
                (0, 2),
                (0, 3)
            ]
        );
        assert_eq!(
            order([3, 3], 2, RasterOrder::Row),
            [
                (0, 0),
                (0, 1),
                (1, 0),
                (1, 1),
                (2, 0),
                (2, 1),
                (2, 2),
                (1, 2),
                (0, 2)
            ]
        );
    }

    #[test]
    fn every_swizzle_is_a_bijection() {
        for (gx, gy) in [(1, 1), (3, 4), (5, 7), (8, 2), (1, 9)] {
            for panel in 1..6 {
                for raster in [RasterOrder::Row, RasterOrder::Column] {
                    let mut seen = order([gx, gy], panel, raster);
                    seen.sort_unstable();
                    seen.dedup();
                    assert_eq!(seen.len() as u64, gx * gy);
                    assert!(seen.iter().all(|&(x, y)| x < gx && y < gy));
                }
            }
        }
    }
}
