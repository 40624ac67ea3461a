//! LegalizeVectorizedLoop: loops for vectors become vector accesses of at most 16 bytes.
//!
//! `T.vectorized` loops of the user and the loops that LowerTileOp makes of runs of registers
//! are one thing here. A loop that is too wide is split, an access that is not consecutive or
//! not provably aligned stays one element at a time; where the user asked for the vector, a
//! warning says why there is none.
//!
//! Before:
//! ```text
//! for v in vectorized(0, 8) {
//!   x[v] = float32(X[bx, tx * 8 + v])
//! }
//! ```
//! After:
//! ```text
//! alloc X_vec: local float16[8]
//! g2r X[0 +: 64, 0 +: 1024] at [bx, tx * 8] -> X_vec[0 +: 8] at [0] inst="load" width=8
//! for v in unroll(0, 8) {
//!   x[v] = float32(X_vec[v])
//! }
//! ```
//!
//! Why this form: see [`vectorize`](crate::legalize::vectorize). Needs loop IR without bounds
//! checks; LegalizeSafeMemoryAccess gives a vector one check, which keeps its width because no
//! vector reaches over the end of a row. It leaves to LoopVectorizeDynamic what depends on
//! sizes of the call, and never reorders accesses that may meet.

use tilewright_ir::{Diagnostics, Func, Target};

use crate::Changed;
use crate::legalize::vectorize::{Unproved, vectorize};

/// Rewrites the loops whose vectors are right for all sizes.
pub fn legalize_vectorized_loop(
    func: &mut Func,
    target: Target,
    diags: &mut Diagnostics,
) -> Changed {
    vectorize(func, target, Unproved::Leave, diags);
    Changed::Yes
}
