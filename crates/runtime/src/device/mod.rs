//! GPUs: memory, streams, events and launches.
//!
//! One folder a vendor. What they share will be a trait when there are two of them.

pub mod cuda;
