//! StoreWaits: what bulk stores read of shared memory is not written again before they have read it.
//!
//! Before:
//! ```text
//! for round in serial(0, n) {
//!   …
//!   sync_warp
//!   r2s … -> S[…]
//!   sync_warp
//!   if tx % 32 == 0 {
//!     tma_store … S[…] -> C[…] … counter=tma_store
//!     commit tma_store
//!   }
//! }
//! ```
//! After:
//! ```text
//! for round in serial(0, n) {
//!   …
//!   wait tma_store(0) read
//!   sync_warp
//!   r2s … -> S[…]
//!   sync_warp
//!   if tx % 32 == 0 {
//!     tma_store … S[…] -> C[…] … counter=tma_store
//!     commit tma_store
//!   }
//! }
//! wait tma_store(0) read
//! ```
//!
//! A wait stands before the last barrier by which those who write know of it, so that stores of one
//! tile are under way while the next is computed, and where the threads end that issue them
//! ([`tilewright_schedule::register_waits`]). Stores are looked at whose group is closed right behind
//! them; those of the user are the user's to wait for.
//!
//! Needs device IR. It never moves a statement.

use tilewright_ir::{Diagnostics, Func, Target};

use crate::Changed;

/// Writes down what bulk stores are waited for.
pub fn store_waits(func: &mut Func, target: Target, _diags: &mut Diagnostics) -> Changed {
    if !target.machine().bulk_copies {
        return Changed::No;
    }
    match tilewright_schedule::store_waits(func) {
        0 => Changed::No,
        _ => Changed::Yes,
    }
}
