//! From tile IR to one thread's view (LowerAndLegalize).

pub mod add_wrapper_for_single_buf_store;
pub mod bind_target;
pub mod boxes;
pub mod check_resources;
pub mod drop_unread_products;
mod element_copies;
pub mod expand_products;
pub mod expand_scales;
pub mod expand_sparse;
pub mod gemm_plan;
mod group_operands;
pub mod keep_values;
mod lane_runs;
pub mod layout_inference;
pub mod layout_reducer;
pub mod legalize_safe_memory_access;
pub mod legalize_vectorized_loop;
pub mod loop_vectorize_dynamic;
pub mod lower_l2_persistent;
pub mod lower_tile_op;
pub(crate) mod own_tiles;
pub mod prefetch_ahead;
mod products;
pub(crate) mod shared_width;
pub mod split_k;
pub mod stage_stores;
pub mod vectorize;
