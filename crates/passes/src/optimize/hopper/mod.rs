//! Passes for machines whose warp groups multiply from shared memory.

pub mod inject_fence_proxy;
pub mod rewrite_wgmma_sync;
