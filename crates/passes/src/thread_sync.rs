//! ThreadSync: block barriers where threads hand data to each other through shared memory.
//!
//! The work is done by the schedule engine's dependence model; see
//! [`tilewright_schedule::thread_sync`] for the before and after.

use tilewright_ir::{Diagnostics, Func, Level, Target};

use crate::Changed;

/// Inserts the barriers; the function is at device level afterwards.
pub fn thread_sync(func: &mut Func, _target: Target, diags: &mut Diagnostics) -> Changed {
    let inserted = tilewright_schedule::thread_sync(func, diags);
    func.level = Level::Device;
    if inserted > 0 {
        Changed::Yes
    } else {
        Changed::No
    }
}
