//! Blocks that run together: those of a cluster, or one by itself.
//!
//! They take turns. What one does to another's memory and barriers it sends, and that has it before
//! its next turn: later than at once, as on a machine, and in the order in which it was sent.

use tilewright_ir::Diagnostic;

use crate::barrier::Counting;
use crate::block::{BlockRun, Launch, Turn};
use crate::error::codes;
use crate::exec::state::Globals;
use crate::program::Program;

/// What a block does to another one of its cluster.
#[derive(Debug)]
pub(crate) struct Sent {
    /// The number of that block.
    pub to: usize,
    /// A barrier of it that hears of this.
    pub barrier: usize,
    pub what: What,
    /// The instruction that does it.
    pub site: usize,
}

#[derive(Debug)]
pub(crate) enum What {
    Arrival,
    /// A tile lands.
    Tile {
        storage: u32,
        bits: u32,
        /// Elements with their raw values.
        elements: Vec<(usize, u64)>,
        bytes: i64,
    },
}

/// The blocks of a cluster that have been started.
#[derive(Debug)]
pub(crate) struct ClusterRun {
    blocks: Vec<BlockRun>,
    done: Vec<bool>,
    barrier: Counting,
}

impl ClusterRun {
    /// The blocks of these indices, in the order of their numbers in the cluster.
    pub fn new(program: &Program, indices: &[[u64; 3]]) -> ClusterRun {
        let blocks = indices.iter().enumerate();
        ClusterRun {
            blocks: blocks
                .map(|(rank, index)| BlockRun::new(program, *index, rank))
                .collect(),
            done: vec![false; indices.len()],
            barrier: Counting::default(),
        }
    }

    /// Runs the blocks to their ends, with no others beside them.
    pub fn finish(
        &mut self,
        launch: Launch<'_>,
        globals: &mut Globals<'_>,
    ) -> Result<(), Box<Diagnostic>> {
        let mut grid_barrier = Counting::default();
        loop {
            match self.turn(launch, globals, &mut grid_barrier) {
                Turn::Done => return Ok(()),
                Turn::Progress => {}
                Turn::Stuck => return Err(Box::new(self.deadlock(launch.program))),
                Turn::Failed(d) => return Err(d),
            }
        }
    }

    /// Gives every block a turn.
    pub fn turn(
        &mut self,
        launch: Launch<'_>,
        globals: &mut Globals<'_>,
        grid_barrier: &mut Counting,
    ) -> Turn {
        let mut moved = false;
        for rank in 0..self.blocks.len() {
            if self.done[rank] {
                continue;
            }
            let block = &mut self.blocks[rank];
            match block.turn(launch, globals, grid_barrier, &mut self.barrier) {
                Turn::Done => {
                    self.done[rank] = true;
                    moved = true;
                }
                Turn::Progress => moved = true,
                Turn::Stuck => {}
                failed @ Turn::Failed(_) => return failed,
            }
            for sent in std::mem::take(&mut self.blocks[rank].output.sent) {
                moved = true;
                if let Err(d) = self.deliver(sent, launch.program) {
                    return Turn::Failed(d);
                }
            }
        }
        if self.done.iter().all(|done| *done) {
            return Turn::Done;
        }
        match moved {
            true => Turn::Progress,
            false => Turn::Stuck,
        }
    }

    fn deliver(&mut self, sent: Sent, program: &Program) -> Result<(), Box<Diagnostic>> {
        let mem = &mut self.blocks[sent.to].mem;
        let barrier = &mut mem.mbarriers[sent.barrier];
        let fits = match sent.what {
            What::Arrival => barrier.arrive(),
            What::Tile {
                storage,
                bits,
                elements,
                bytes,
            } => {
                barrier.expect(-bytes);
                for (index, raw) in elements {
                    mem.storages[storage as usize].store(bits, index, raw);
                }
                true
            }
        };
        if fits {
            return Ok(());
        }
        let message = format!(
            "more threads arrive at a barrier of block {} of the cluster than its phase counts",
            sent.to
        );
        let span = program.spans[sent.site];
        Err(Box::new(Diagnostic::error(
            codes::BARRIER_COUNT,
            span,
            message,
        )))
    }

    /// What the first block that is not done waits for.
    pub fn deadlock(&self, program: &Program) -> Diagnostic {
        let waits = self.done.iter().position(|done| !done);
        self.blocks[waits.unwrap_or(0)].deadlock(program)
    }

    /// What the blocks printed, in order.
    pub fn prints(self) -> Vec<String> {
        let outputs = self.blocks.into_iter().map(|block| block.output.prints);
        outputs.flatten().collect()
    }
}
