//! Passes of every target's optimize phase.

pub(crate) mod effects;
pub(crate) mod fresh;
pub mod inject_software_pipeline;
pub mod merge_shared_memory_allocations;
mod order_of;
pub mod pipeline_planning;
pub(crate) mod stage;
pub mod unswitch_masks;
