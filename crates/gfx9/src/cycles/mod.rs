//! A cycle model of one compute unit: when each wave of a block issues each of its instructions,
//! and what it waits for.
//!
//! The input is a [`Trace`], what the waves executed; the result is a [`Timing`]. Four SIMDs
//! issue in turn; the matrix and vector units, the queues to LDS and memory, the banks of LDS,
//! the counters and barriers hold instructions back. Memory behind the L1 is a latency and a
//! bandwidth: one compute unit is modelled, and no cache.
//!
//! - [`machine`]: every parameter with its source;
//! - [`trace`]: what is replayed, from the emulator or walked by hand;
//! - `plan`, `issue`, `matrix`, `banks`, `lds`, `memory`, `stalls`: the model;
//! - [`report`]: figures, [`chrome`] and [`svg`]: pictures.

mod banks;
pub mod chrome;
mod issue;
mod lds;
pub mod machine;
mod matrix;
mod memory;
mod plan;
pub mod report;
mod stalls;
pub mod svg;
pub mod trace;

pub use banks::{Direction, bank_cycles, least_bank_cycles};
pub use issue::{TimingError, time};
pub use machine::Machine;
pub use plan::Kind;
pub use report::{Hot, Report, Steady};
pub use stalls::{Stall, Stalls};
pub use trace::{Detail, Step, Trace, Walk};

/// When a block's waves did what.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Timing {
    pub arch: &'static str,
    /// From the first cycle until the last wave has ended.
    pub cycles: u64,
    pub waves: Vec<WaveTiming>,
    /// What each instruction of the function is, by its index.
    pub kinds: Vec<Kind>,
    /// What each instruction of the function waited for, over all waves.
    pub stalls: Vec<Stalls>,
    /// Cycles that each SIMD's units worked.
    pub matrix_busy: Vec<u64>,
    pub vector_busy: Vec<u64>,
    /// Cycles that the banks of LDS and the vector L1 worked.
    pub bank_busy: u64,
    pub l1_busy: u64,
    pub memory_bytes: u64,
}

/// One wave's instructions in time.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct WaveTiming {
    pub simd: usize,
    pub issued: Vec<Issued>,
}

/// One executed instruction in time.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Issued {
    /// Its index in the function.
    pub instruction: u32,
    /// When it was the wave's next.
    pub since: u64,
    pub issue: u64,
    /// When it has done what it does: a unit is free, data has arrived, a barrier lets go.
    pub end: u64,
    /// What it waited for most before it issued.
    pub stall: Option<Stall>,
}

impl Issued {
    /// Cycles that it waited to issue.
    pub fn waited(&self) -> u64 {
        self.issue.saturating_sub(self.since)
    }
}
