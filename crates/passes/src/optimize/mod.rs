//! The optimize phase: schedules and what they need.

pub mod cdna;
pub mod common;
pub mod hopper;
