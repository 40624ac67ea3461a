//! The passes of Tilewright and the pipeline of each target.
//!
//! A pass is one file with one job and one name: the file `simplify.rs` is the command-line
//! pass `simplify` is the folder `filetests/simplify/`. It is a free function over a [`Func`];
//! it reads no environment and does no I/O. [`driver`] runs them.

pub mod decisions;
pub mod driver;
pub mod finish;
mod foreseen;
pub mod legalize;
pub mod optimize;
mod rename;
pub mod simplify;
pub mod thread_sync;
mod threads;
mod vector_adds;

use tilewright_ir::{Diagnostics, Func, Level, Target};
use tilewright_schedule::hazard::HazardReport;

pub use foreseen::Foreseen;
pub use optimize::common::inject_software_pipeline::schedules;
pub use optimize::common::inject_software_pipeline::text as order_text;

/// Whether a pass changed the function.
#[derive(Clone, Debug)]
pub enum Changed {
    Yes,
    No,
    /// It did, and this is what the hazard checker says of the function as the pass leaves it.
    Checked(HazardReport),
    /// It did, and this is what the passes behind it will make of the function as it leaves it.
    Foreseen(Box<Foreseen>),
}

/// What a pass does.
pub type Pass = fn(&mut Func, Target, &mut Diagnostics) -> Changed;

/// A pass as the command line, the timers and the reports know it.
#[derive(Clone, Copy, Debug)]
pub struct PassInfo {
    /// The name everywhere: command line, filetest folder, timer row.
    pub name: &'static str,
    /// One line for `tilewright passes`.
    pub about: &'static str,
    /// The level of what it makes, where that is another than it was.
    pub makes: Option<Level>,
    pub run: Pass,
}

/// Every pass, by name. The order here means nothing; [`pipeline`] has the order.
pub const PASSES: &[PassInfo] = &[
    PassInfo {
        name: "bind-target",
        about: "refuses what the target cannot do: shared memory, instructions",
        makes: None,
        run: legalize::bind_target::bind_target,
    },
    PassInfo {
        name: "simplify",
        about: "rewrites index arithmetic and conditions by proved laws",
        makes: None,
        run: simplify::simplify,
    },
    PassInfo {
        name: "expand-sparse",
        about: "sparse factors of products that have no instruction get their zeros",
        makes: None,
        run: legalize::expand_sparse::expand_sparse,
    },
    PassInfo {
        name: "expand-scales",
        about: "factors of products are multiplied by their scales",
        makes: None,
        run: legalize::expand_scales::expand_scales,
    },
    PassInfo {
        name: "drop-unread-products",
        about: "leaves products out whose sum nobody reads",
        makes: None,
        run: legalize::drop_unread_products::drop_unread_products,
    },
    PassInfo {
        name: "keep-values",
        about: "leaves out loads of tiles that fragments still have, or have more of",
        makes: None,
        run: legalize::keep_values::keep_values,
    },
    PassInfo {
        name: "split-k",
        about: "gives tiles to several blocks along K where they are few, and adds the parts",
        makes: None,
        run: legalize::split_k::split_k,
    },
    PassInfo {
        name: "add-wrapper-for-single-buf-store",
        about: "puts single stores to fragments into parallel loops of one point",
        makes: None,
        run: legalize::add_wrapper_for_single_buf_store::add_wrapper_for_single_buf_store,
    },
    PassInfo {
        name: "layout-reducer",
        about: "turns reducers into shared memory with atomic updates",
        makes: None,
        run: legalize::layout_reducer::layout_reducer,
    },
    PassInfo {
        name: "expand-products",
        about: "products that no matrix instruction does are the threads' work",
        makes: None,
        run: legalize::expand_products::expand_products,
    },
    PassInfo {
        name: "stage-stores",
        about: "results of products leave their registers through shared memory",
        makes: None,
        run: legalize::stage_stores::stage_stores,
    },
    PassInfo {
        name: "prefetch-ahead",
        about: "has blocks fetch to L2 what blocks that start soon will read",
        makes: None,
        run: legalize::prefetch_ahead::prefetch_ahead,
    },
    PassInfo {
        name: "layout-inference",
        about: "decides which thread holds which element and runs which point",
        makes: None,
        run: legalize::layout_inference::layout_inference,
    },
    PassInfo {
        name: "lower-tile-op",
        about: "lowers tile ops and parallel loops to what one thread does",
        makes: Some(Level::Loop),
        run: legalize::lower_tile_op::lower_tile_op,
    },
    PassInfo {
        name: "split-products",
        about: "products that are used up at once are done part by part, where registers are few",
        makes: None,
        run: optimize::hopper::split_products::split_products,
    },
    PassInfo {
        name: "lower-l2-persistent",
        about: "gives the runtime the tensors to keep in L2",
        makes: None,
        run: legalize::lower_l2_persistent::lower_l2_persistent,
    },
    PassInfo {
        name: "check-resources",
        about: "refuses kernels whose lowered form does not fit the target",
        makes: None,
        run: legalize::check_resources::check_resources,
    },
    PassInfo {
        name: "legalize-vectorized-loop",
        about: "makes loops for vectors accesses of up to 16 bytes",
        makes: None,
        run: legalize::legalize_vectorized_loop::legalize_vectorized_loop,
    },
    PassInfo {
        name: "loop-vectorize-dynamic",
        about: "vectors that need a check of the call's sizes",
        makes: None,
        run: legalize::loop_vectorize_dynamic::loop_vectorize_dynamic,
    },
    PassInfo {
        name: "legalize-safe-memory-access",
        about: "guards accesses of global memory that may be out of bounds",
        makes: None,
        run: legalize::legalize_safe_memory_access::legalize_safe_memory_access,
    },
    PassInfo {
        name: "pipeline-planning",
        about: "decides which statements of a pipelined loop run ahead",
        makes: None,
        run: optimize::common::pipeline_planning::pipeline_planning,
    },
    PassInfo {
        name: "unswitch-masks",
        about: "asks once a tile for masks that hide nothing of most tiles",
        makes: None,
        run: optimize::common::unswitch_masks::unswitch_masks,
    },
    PassInfo {
        name: "launch-longest-first",
        about: "starts blocks that have more to do before those that have less",
        makes: None,
        run: optimize::hopper::launch_longest_first::launch_longest_first,
    },
    PassInfo {
        name: "order-chiplets",
        about: "has blocks of one die of the GPU work on neighbouring tiles",
        makes: None,
        run: optimize::cdna::order_chiplets::order_chiplets,
    },
    PassInfo {
        name: "inject-software-pipeline",
        about: "writes pipelined loops out: slots, prologue, waits, barriers, epilogue",
        makes: None,
        run: optimize::common::inject_software_pipeline::inject_software_pipeline,
    },
    PassInfo {
        name: "thread-sync",
        about: "inserts block barriers where threads exchange data",
        makes: Some(Level::Device),
        run: thread_sync::thread_sync,
    },
    PassInfo {
        name: "register-waits",
        about: "counts LDS operations and waits for them before their registers are used",
        makes: None,
        run: optimize::cdna::register_waits::register_waits,
    },
    PassInfo {
        name: "rewrite-wgmma-sync",
        about: "fences, groups and waits of warp groups' products",
        makes: None,
        run: optimize::hopper::rewrite_wgmma_sync::rewrite_wgmma_sync,
    },
    PassInfo {
        name: "store-waits",
        about: "waits until bulk stores have read what is written again",
        makes: None,
        run: optimize::hopper::store_waits::store_waits,
    },
    PassInfo {
        name: "inject-fence-proxy",
        about: "fences between plain stores and what products and bulk copies read",
        makes: None,
        run: optimize::hopper::inject_fence_proxy::inject_fence_proxy,
    },
    PassInfo {
        name: "split-vector-adds",
        about: "adds to elements one by one that the machine does not add to at once",
        makes: None,
        run: finish::split_vector_adds::split_vector_adds,
    },
    PassInfo {
        name: "record-prints",
        about: "gives kernels that print memory for their lines",
        makes: None,
        run: finish::record_prints::record_prints,
    },
    PassInfo {
        name: "stage-copies",
        about: "loads all of a copy to shared memory before it stores the first",
        makes: None,
        run: finish::stage_copies::stage_copies,
    },
    PassInfo {
        name: "turn-rows",
        about: "turns rows of matrix instructions round at their ends",
        makes: None,
        run: finish::turn_rows::turn_rows,
    },
    PassInfo {
        name: "unroll-register-loops",
        about: "writes loops out whose index is a subscript of registers",
        makes: None,
        run: finish::unroll_register_loops::unroll_register_loops,
    },
    PassInfo {
        name: "merge-shared-memory-allocations",
        about: "gives shared buffers their bytes, the same ones where that is safe",
        makes: None,
        run: optimize::common::merge_shared_memory_allocations::merge_shared_memory_allocations,
    },
];

/// The pass of this name.
pub fn find(name: &str) -> Option<&'static PassInfo> {
    PASSES.iter().find(|p| p.name == name)
}

/// Tile IR becomes one thread's program, legal for the target.
const LEGALIZE: &[&str] = &[
    "bind-target",
    "expand-sparse",
    "expand-scales",
    "simplify",
    "drop-unread-products",
    "keep-values",
    "split-k",
    "add-wrapper-for-single-buf-store",
    "layout-reducer",
    "expand-products",
    "pipeline-planning",
    "stage-stores",
    "prefetch-ahead",
    "layout-inference",
    "lower-tile-op",
    "split-products",
    "check-resources",
    "lower-l2-persistent",
    "legalize-vectorized-loop",
    "loop-vectorize-dynamic",
    "legalize-safe-memory-access",
    "simplify",
];

/// Where waves or warp groups compute while others multiply, what stands between products counts.
const BETWEEN_PRODUCTS: &[&str] = &["unswitch-masks"];

/// Where warp groups multiply, how evenly blocks end does too.
const AROUND_PRODUCTS: &[&str] = &["launch-longest-first"];

/// Where a GPU has several dies, blocks of one share what they read.
const DIES: &[&str] = &["order-chiplets"];

/// Pipelined loops are written out.
const SCHEDULE: &[&str] = &["inject-software-pipeline"];

/// Barriers are written down.
const SYNCHRONISE: &[&str] = &["simplify", "thread-sync"];

/// Waits are: those for LDS operations where they are counted, those for products of warp groups
/// and bulk stores where there are such.
const COUNTED: &[&str] = &["register-waits"];
const PRODUCTS: &[&str] = &["rewrite-wgmma-sync", "store-waits", "inject-fence-proxy"];

/// How instructions and iterations are issued is written down.
const FINISH: &[&str] = &[
    "split-vector-adds",
    "stage-copies",
    "turn-rows",
    "unroll-register-loops",
];

/// Where kernels do not print by themselves, they leave their lines in memory.
const RECORD: &[&str] = &["record-prints"];

/// Shared buffers get their bytes.
const PLACE: &[&str] = &["merge-shared-memory-allocations"];

/// The passes that a function goes through for this target, in order.
pub fn pipeline(target: Target) -> Vec<&'static PassInfo> {
    let machine = target.machine();
    let between = match machine.group_mma() || machine.wave_priority {
        true => BETWEEN_PRODUCTS,
        false => &[],
    };
    let around = if machine.group_mma() {
        AROUND_PRODUCTS
    } else {
        &[]
    };
    let dies = if target.machine().chiplets > 1 {
        DIES
    } else {
        &[]
    };
    let around = named(between).chain(named(around));
    let before = named(LEGALIZE).chain(around).chain(named(dies));
    let written = before.chain(named(SCHEDULE));
    let in_order = written.chain(barriers()).chain(waits(target));
    in_order.chain(last(target)).collect()
}

/// Those of them that write down where the block waits, once loops are written out.
fn barriers() -> impl Iterator<Item = &'static PassInfo> {
    named(SYNCHRONISE)
}

/// Those that write down what else is waited for, and no barrier.
fn waits(target: Target) -> impl Iterator<Item = &'static PassInfo> {
    let machine = target.machine();
    let counted = match machine.shared.counter {
        Some(_) => COUNTED,
        None => &[],
    };
    let products = if machine.group_mma() { PRODUCTS } else { &[] };
    named(counted).chain(named(products))
}

/// Those behind them: how things are issued, and where shared buffers lie.
fn last(target: Target) -> impl Iterator<Item = &'static PassInfo> {
    let lines = if target.machine().prints { &[] } else { RECORD };
    named(FINISH).chain(named(lines)).chain(named(PLACE))
}

fn named(names: &'static [&str]) -> impl Iterator<Item = &'static PassInfo> {
    names.iter().filter_map(|name| find(name))
}
