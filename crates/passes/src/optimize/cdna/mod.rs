//! Passes for machines such as AMD's CDNA: LDS operations are counted, and the GPU has several dies.

pub mod order_chiplets;
pub mod register_waits;
