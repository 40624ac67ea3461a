//! The optimize phase: schedules and what they need.

pub mod common;
