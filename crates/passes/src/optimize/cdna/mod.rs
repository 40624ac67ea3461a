//! Passes for AMD's CDNA targets.

pub mod register_waits;
