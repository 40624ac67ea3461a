//! Passes for machines that count LDS operations, such as AMD's CDNA.

pub mod register_waits;
