//! Two operations that nothing orders, as a run finds them, and what would order them.

use tilewright_ir::{Buffer, Counter, FenceKind};

use super::report::HazardKind;
use super::scan::Key;

/// Two operations in no order, found in a run.
#[derive(Clone, Debug)]
pub struct Clash {
    pub kind: HazardKind,
    pub first: Side,
    pub second: Side,
    pub memory: Memory,
    pub remedy: Remedy,
}

/// What two operations meet in.
#[derive(Clone, Copy, Default, Debug)]
pub struct Memory {
    pub root: Option<Buffer>,
    pub slot: Option<i64>,
    /// The buffer of the other operation, where it lies over the first.
    pub over: Option<Buffer>,
}

#[derive(Clone, Copy, Debug)]
pub struct Side {
    pub stmt: Key,
    pub group: usize,
    pub moment: u32,
}

/// What would order them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Remedy {
    /// A barrier between the two.
    Barrier,
    /// A barrier of each warp.
    WarpBarrier,
    /// A wait that leaves this many in flight, before the last barrier that lies between.
    WaitBeforeBarrier(Counter, u32),
    /// The same, a barrier earlier.
    WaitTwoBarriersBefore(Counter, u32),
    /// A wait, and a barrier after it.
    WaitAndBarrier(Counter, u32),
    /// A wait before the use of a register.
    Wait(Counter, u32),
    /// A fence, and for proxies a barrier behind it.
    Fence(FenceKind),
    /// A wait for the phase that hears of a bulk load.
    AwaitLoad,
    /// A wait for what bulk stores read, before the end.
    WaitRead,
    /// A barrier of the cluster at the end.
    SyncCluster,
    /// Phases must be apart.
    Phases,
    /// As many arrivals as the barrier counts.
    Arrivals { needed: u32, came: u32 },
    /// As many bytes as land.
    Bytes { announced: i64, landed: i64 },
    /// All waves must come to the barrier.
    Converge,
    /// Another slot index.
    Version,
    /// The buffers need storage of their own.
    Apart,
}

impl Remedy {
    /// Whether what is lacking is the rest of a phase that has begun.
    pub fn has_begun(&self) -> bool {
        !matches!(self, Remedy::Arrivals { came: 0, .. })
    }
}

impl Clash {
    /// What would order them, in words.
    pub fn help(&self) -> String {
        match self.remedy {
            Remedy::Barrier => {
                "a barrier of the block between the two would order them".to_string()
            }
            Remedy::WarpBarrier => "`sync_warp` between the two would order them".to_string(),
            Remedy::WaitBeforeBarrier(counter, left) => format!(
                "`wait {}({left})` before the last barrier between the two would order them",
                counter.name()
            ),
            Remedy::WaitTwoBarriersBefore(counter, left) => format!(
                "`wait {}({left})` before the last barrier but one between the two would order them: \
                 one group of waves runs a barrier behind",
                counter.name()
            ),
            Remedy::WaitAndBarrier(counter, left) => format!(
                "`wait {}({left})` and a barrier between the two would order them",
                counter.name()
            ),
            Remedy::Fence(FenceKind::AsyncProxy) => {
                "`fence async_proxy` behind the write, before the barrier between the two"
                    .to_string()
            }
            Remedy::Fence(kind) => format!("`fence {}` before it", kind.name()),
            Remedy::Wait(counter, left) => {
                format!("`wait {}({left})` before the second", counter.name())
            }
            Remedy::AwaitLoad => {
                "wait for the phase of the arrival barrier that hears of the load".to_string()
            }
            Remedy::WaitRead => {
                "close its group with `commit tma_store`, and `wait tma_store(0) read` before the \
                 kernel ends"
                    .to_string()
            }
            Remedy::SyncCluster => {
                "`sync_cluster` at the end keeps the other block until this has happened"
                    .to_string()
            }
            Remedy::Phases => {
                "who arrives for a phase, or announces bytes, must know that the one \
                               before is over, and who waits must see it before the next one is"
                    .to_string()
            }
            Remedy::Arrivals { needed, came } => format!(
                "the barrier counts {needed} arrivals a phase, and {came} come: each thread that \
                 arrives counts one"
            ),
            Remedy::Bytes { announced, landed } => format!(
                "{announced} bytes are announced to the phase that is waited for, and {landed} land"
            ),
            Remedy::Version => {
                "readers and writers of one iteration must name the same version".to_string()
            }
            Remedy::Apart => "give the two buffers different bytes of shared memory".to_string(),
            Remedy::Converge => {
                "all waves of the block must come to the same barriers, the same number of times"
                    .to_string()
            }
        }
    }
}
