//! RewriteWgmmaSync: fences, groups and waits of warp groups' products.
//!
//! Before:
//! ```text
//! mma … A[…], B[…] -> C[…] inst="wgmma.64x128x16.bfloat16.float32.k.k" counter=wgmma
//! O[…] = C[0]
//! ```
//! After:
//! ```text
//! fence wgmma
//! mma … A[…], B[…] -> C[…] inst="wgmma.64x128x16.bfloat16.float32.k.k" counter=wgmma
//! commit wgmma
//! wait wgmma(0)
//! O[…] = C[0]
//! ```
//!
//! Each product is a group. A wait stands before registers of it are used, where the block ends in
//! which its sum lives, and before a barrier behind which what it reads is written again
//! ([`tilewright_schedule::register_waits`]). Where
//! threads of a block go ways of their own, a product is waited for at once.
//!
//! Needs device IR. It never moves a statement.

use tilewright_ir::{Diagnostics, Func, Target};

use crate::Changed;

/// Writes down what products of warp groups need.
pub fn rewrite_wgmma_sync(func: &mut Func, target: Target, _diags: &mut Diagnostics) -> Changed {
    if !target.machine().group_mma() {
        return Changed::No;
    }
    match tilewright_schedule::product_waits(func) {
        0 => Changed::No,
        _ => Changed::Yes,
    }
}
