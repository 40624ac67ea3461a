//! What the machine is told last: how the instructions of an operation and the iterations of a
//! loop are issued. Behind these passes device IR is what runs; code generation only prints it.

pub mod record_prints;
pub mod split_vector_adds;
pub mod stage_copies;
pub mod turn_rows;
pub mod unroll_register_loops;
