//! From tile IR to one thread's view (LowerAndLegalize).

pub mod gemm_plan;
pub mod layout_inference;
pub mod lower_tile_op;
