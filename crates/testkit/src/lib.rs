//! What the tests and benches of several crates share.
//!
//! It is a crate of its own, and no feature of the crates it serves, so that a test build and the
//! build that is shipped share everything below it.

pub mod arbitrary;
pub mod bench;
