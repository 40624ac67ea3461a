//! RegisterWaits: reads and writes of LDS by their counter, and the waits that they need.
//!
//! See [`tilewright_schedule::register_waits`] for the before and after.
//!
//! Needs device IR. It never moves a statement.

use tilewright_ir::{Diagnostics, Func, Target};

use crate::Changed;

/// Gives `s2r` and `r2s` the counter lgkmcnt and inserts its waits.
pub fn register_waits(func: &mut Func, target: Target, _diags: &mut Diagnostics) -> Changed {
    if target.machine().shared.counter.is_none() {
        return Changed::No;
    }
    match tilewright_schedule::register_waits(func) {
        0 => Changed::No,
        _ => Changed::Yes,
    }
}
