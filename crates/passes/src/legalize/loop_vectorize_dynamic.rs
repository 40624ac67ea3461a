//! LoopVectorizeDynamic: vectors whose alignment depends on sizes of the call.
//!
//! A row of a tensor with a dynamic extent starts at a multiple of 16 bytes only if the extent
//! is a multiple of the vector. The loop is written twice: with vectors under a check of the
//! sizes, which is the same for the whole launch, and without them otherwise. Where only the end
//! of a tensor is in the way, each vector is checked to lie before it.
//!
//! Before:
//! ```text
//! for v in vectorized(0, 8) {
//!   Y[by, tx * 8 + v] = X[by, tx * 8 + v]
//! }
//! ```
//! After:
//! ```text
//! if n % 8 == 0 {
//!   g2r X[…] at [by, tx * 8] -> X_vec[0 +: 8] at [0] inst="load" width=8
//!   …
//! } else {
//!   for v in unroll(0, 8) { Y[by, tx * 8 + v] = X[by, tx * 8 + v] }
//! }
//! ```
//!
//! Needs LegalizeVectorizedLoop, which leaves it these loops. Afterwards no loop for vectors is
//! left. It checks sizes and places, never data, and parts threads only around code that does
//! not touch shared memory.

use tilewright_ir::{Diagnostics, Func, Target};

use crate::Changed;
use crate::legalize::vectorize::{Unproved, vectorize};

/// Rewrites the loops that are left.
pub fn loop_vectorize_dynamic(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    vectorize(func, target, Unproved::Check, diags);
    Changed::Yes
}
