//! From tile IR to one thread's view (LowerAndLegalize).

pub mod gemm_plan;
