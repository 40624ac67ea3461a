//! The autotuner: which configuration of a kernel is the fastest that is right.
//!
//! | module | holds |
//! |---|---|
//! | [`space`] | configurations from the names of a kernel's parameters |
//! | [`lab`] | what the tuner asks of who compiles, checks and times |
//! | [`session`] | the way of all configurations: compiled in parallel, checked, timed |
//! | [`race`] | timing in turns until the fastest is certain |
//! | [`report`] | what came of each configuration, as a table and as bytes |
//! | [`store`] | reports on disk, by what they were made from |
//!
//! Nothing here knows the IR or a machine: a configuration is a place in a list, and names and
//! values that are text.

pub mod lab;
pub mod race;
pub mod report;
pub mod session;
pub mod space;
pub mod store;

pub use lab::{Lab, Unit};
pub use race::Rules;
pub use report::{Fate, Report, Row};
pub use session::{Event, Options, tune};
pub use space::Config;
