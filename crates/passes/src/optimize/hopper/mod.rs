//! Passes for machines whose warp groups multiply from shared memory.

pub mod inject_fence_proxy;
pub mod launch_longest_first;
pub mod rewrite_wgmma_sync;
pub mod split_products;
pub mod store_waits;
