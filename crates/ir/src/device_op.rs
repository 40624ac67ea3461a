//! Device IR: waits, barriers, fences, priorities. Nothing is implicit at this level.

use crate::expr::Expr;
use crate::ids::Buffer;

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum DeviceOp {
    /// `wait vmcnt(6)`
    /// Until at most this many of the counter's operations of this wave are in flight.
    Wait { counter: Counter, at_most: u32 },
    /// `wait tma_store(1) read`
    /// Until all but this many groups of bulk stores of this thread have read shared memory; what
    /// they write may still be under way.
    WaitRead { at_most: u32 },
    /// `commit cp_async`
    /// Closes a group of asynchronous operations.
    Commit(Counter),
    /// `barrier block` / `barrier bare` / `barrier named(1, 128)` / `barrier cond(group == 1)`
    Barrier(BarrierKind),
    /// `fence async_proxy`
    Fence(FenceKind),
    /// `set_prio 1`
    SetPrio(u8),
    /// `sched_barrier 0`
    /// The machine scheduler moves nothing of the masked-out kinds across.
    SchedBarrier(u32),
    /// `sched_group_barrier mask=8 size=1 group=0`
    SchedGroupBarrier { mask: u32, size: u32, group: u32 },
    /// `iteration k + 2` / `end_iteration`
    /// The statements after it in its block, and in blocks inside those, belong to this iteration
    /// of a pipelined loop (to none), up to the next one. It does nothing: it says which version
    /// of a buffer is meant, so that a slot index can be checked.
    Iteration(Option<Expr>),
    /// `prefetch address_of(A[bx + 128, 0]) bytes=16384`
    /// The L2 cache fetches so many bytes from there on; nothing waits for them.
    Prefetch { address: Expr, bytes: u32 },
    /// `barrier_init bar[0] count=128`
    BarrierInit {
        barrier: Buffer,
        index: Expr,
        count: u32,
    },
}

/// What counts operations in flight.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Counter {
    /// AMD vector memory, in instructions.
    Vmcnt,
    /// AMD LDS, in instructions.
    Lgkmcnt,
    /// NVIDIA cp.async, in commit groups.
    CpAsync,
    /// NVIDIA bulk stores, in commit groups.
    TmaStore,
    /// NVIDIA wgmma, in commit groups.
    Wgmma,
    /// NVIDIA mbarrier, in phases.
    Mbarrier,
}

/// In what a counter counts, and how far.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Counting {
    /// Single instructions of a wave. At most so many are in flight: the next one waits for the
    /// oldest.
    Instructions { most: u32 },
    /// Groups of operations that a `commit` closes. A wait names how many it leaves in its
    /// instruction, and no kernel comes near the end of that.
    Groups,
    /// Phases of an arrival barrier.
    Phases,
}

impl Counter {
    pub const ALL: [Counter; 6] = [
        Counter::Vmcnt,
        Counter::Lgkmcnt,
        Counter::CpAsync,
        Counter::TmaStore,
        Counter::Wgmma,
        Counter::Mbarrier,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            Counter::Vmcnt => "vmcnt",
            Counter::Lgkmcnt => "lgkmcnt",
            Counter::CpAsync => "cp_async",
            Counter::TmaStore => "tma_store",
            Counter::Wgmma => "wgmma",
            Counter::Mbarrier => "mbarrier",
        }
    }

    pub fn from_name(name: &str) -> Option<Counter> {
        Counter::ALL.into_iter().find(|c| c.name() == name)
    }

    /// How the counter counts. Sources: AMD CDNA3 instruction set manual, s_waitcnt (six bits of
    /// vmcnt, four of lgkmcnt); PTX ISA, cp.async.wait_group and its kin, mbarrier.
    pub const fn counting(self) -> Counting {
        match self {
            Counter::Vmcnt => Counting::Instructions { most: 63 },
            Counter::Lgkmcnt => Counting::Instructions { most: 15 },
            Counter::CpAsync | Counter::TmaStore | Counter::Wgmma => Counting::Groups,
            Counter::Mbarrier => Counting::Phases,
        }
    }

    /// The most instructions that are ever in flight, where instructions are counted.
    pub const fn most_in_flight(self) -> Option<u32> {
        match self.counting() {
            Counting::Instructions { most } => Some(most),
            Counting::Groups | Counting::Phases => None,
        }
    }

    /// Whether it counts groups of operations, closed by `commit`.
    pub const fn counts_groups(self) -> bool {
        matches!(self.counting(), Counting::Groups)
    }
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BarrierKind {
    /// All threads of the block, with its memory ordering.
    Block,
    /// All waves of the block, waiting for no memory (`s_barrier`).
    Bare,
    /// Some threads of the block.
    Named { id: u32, count: u32 },
    /// Only the waves for which the condition holds (ping-pong stagger).
    Cond(Expr),
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum FenceKind {
    /// Generic-proxy writes become visible to the async proxy.
    AsyncProxy,
    /// Barrier initialisation becomes visible.
    BarrierInit,
    /// wgmma register operands are fixed from here on (`wgmma.fence`).
    Wgmma,
    /// Block-wide memory fence.
    Block,
    /// Device-wide memory fence.
    Device,
}

impl FenceKind {
    pub const ALL: [FenceKind; 5] = [
        FenceKind::AsyncProxy,
        FenceKind::BarrierInit,
        FenceKind::Wgmma,
        FenceKind::Block,
        FenceKind::Device,
    ];

    pub const fn name(self) -> &'static str {
        match self {
            FenceKind::AsyncProxy => "async_proxy",
            FenceKind::BarrierInit => "barrier_init",
            FenceKind::Wgmma => "wgmma",
            FenceKind::Block => "block",
            FenceKind::Device => "device",
        }
    }

    pub fn from_name(name: &str) -> Option<FenceKind> {
        FenceKind::ALL.into_iter().find(|k| k.name() == name)
    }
}
