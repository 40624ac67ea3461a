//! Runs compiled kernels: every lane of every wave, with all that is asynchronous.
//!
//! - `wave`: registers; `salu`, `valu`, `mfma`: what instructions do to them;
//! - `float`: small floats and their bits; `fault`: what stops a wave.

mod fault;
mod float;
mod wave;

pub use fault::Fault;
pub use wave::{LANES, Lanes, Wave, Wide};
