//! The passes of Tilewright and the pipeline of each target.
//!
//! A pass is one file with one job and one name: the file `simplify.rs` is the command-line
//! pass `simplify` is the folder `filetests/simplify/`. It is a free function over a [`Func`];
//! it reads no environment and does no I/O.

pub mod legalize;
pub mod optimize;
mod rename;
pub mod simplify;
pub mod thread_sync;

use tilewright_ir::{Diagnostics, Func, Target};

/// Whether a pass changed the function.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Changed {
    Yes,
    No,
}

/// A pass as the command line, the timers and the reports know it.
#[derive(Clone, Copy, Debug)]
pub struct PassInfo {
    /// The name everywhere: command line, filetest folder, timer row.
    pub name: &'static str,
    /// One line for `tilewright passes`.
    pub about: &'static str,
    pub run: fn(&mut Func, Target, &mut Diagnostics) -> Changed,
}

/// Every pass, by name. The order here means nothing; [`pipeline`] has the order.
pub const PASSES: &[PassInfo] = &[
    PassInfo {
        name: "bind-target",
        about: "refuses what the target cannot do: shared memory, instructions",
        run: legalize::bind_target::bind_target,
    },
    PassInfo {
        name: "simplify",
        about: "rewrites index arithmetic and conditions by proved laws",
        run: simplify::simplify,
    },
    PassInfo {
        name: "add-wrapper-for-single-buf-store",
        about: "puts single stores to fragments into parallel loops of one point",
        run: legalize::add_wrapper_for_single_buf_store::add_wrapper_for_single_buf_store,
    },
    PassInfo {
        name: "layout-reducer",
        about: "turns reducers into shared memory with atomic updates",
        run: legalize::layout_reducer::layout_reducer,
    },
    PassInfo {
        name: "layout-inference",
        about: "decides which thread holds which element and runs which point",
        run: legalize::layout_inference::layout_inference,
    },
    PassInfo {
        name: "lower-tile-op",
        about: "lowers tile ops and parallel loops to what one thread does",
        run: legalize::lower_tile_op::lower_tile_op,
    },
    PassInfo {
        name: "lower-l2-persistent",
        about: "gives the runtime the tensors to keep in L2",
        run: legalize::lower_l2_persistent::lower_l2_persistent,
    },
    PassInfo {
        name: "check-resources",
        about: "refuses kernels whose lowered form does not fit the target",
        run: legalize::check_resources::check_resources,
    },
    PassInfo {
        name: "legalize-vectorized-loop",
        about: "makes loops for vectors accesses of up to 16 bytes",
        run: legalize::legalize_vectorized_loop::legalize_vectorized_loop,
    },
    PassInfo {
        name: "loop-vectorize-dynamic",
        about: "vectors that need a check of the call's sizes",
        run: legalize::loop_vectorize_dynamic::loop_vectorize_dynamic,
    },
    PassInfo {
        name: "legalize-safe-memory-access",
        about: "guards accesses of global memory that may be out of bounds",
        run: legalize::legalize_safe_memory_access::legalize_safe_memory_access,
    },
    PassInfo {
        name: "pipeline-planning",
        about: "decides which statements of a pipelined loop run ahead",
        run: optimize::common::pipeline_planning::pipeline_planning,
    },
    PassInfo {
        name: "inject-software-pipeline",
        about: "writes pipelined loops out: slots, prologue, waits, barriers, epilogue",
        run: optimize::common::inject_software_pipeline::inject_software_pipeline,
    },
    PassInfo {
        name: "thread-sync",
        about: "inserts block barriers where threads exchange data",
        run: thread_sync::thread_sync,
    },
    PassInfo {
        name: "register-waits",
        about: "counts LDS operations and waits for them before their registers are used",
        run: optimize::cdna::register_waits::register_waits,
    },
    PassInfo {
        name: "merge-shared-memory-allocations",
        about: "gives shared buffers their bytes, the same ones where that is safe",
        run: optimize::common::merge_shared_memory_allocations::merge_shared_memory_allocations,
    },
];

/// The pass of this name.
pub fn find(name: &str) -> Option<&'static PassInfo> {
    PASSES.iter().find(|p| p.name == name)
}

/// The passes that a function goes through for this target, in order.
pub fn pipeline(target: Target) -> Vec<&'static PassInfo> {
    let common = [
        "bind-target",
        "simplify",
        "add-wrapper-for-single-buf-store",
        "layout-reducer",
        "pipeline-planning",
        "layout-inference",
        "lower-tile-op",
        "check-resources",
        "lower-l2-persistent",
        "legalize-vectorized-loop",
        "loop-vectorize-dynamic",
        "legalize-safe-memory-access",
        "simplify",
        "inject-software-pipeline",
        "simplify",
        "thread-sync",
    ];
    let own: &[&str] = match target {
        Target::Sm80 | Target::Sm90a => &[],
        Target::Gfx942 | Target::Gfx950 => &["register-waits"],
    };
    let last = ["merge-shared-memory-allocations"];
    let names = common.iter().chain(own).chain(&last);
    names.filter_map(|name| find(name)).collect()
}
