//! Which target a GPU has, and whose GPUs a target is one of.

use tilewright_ir::{Dialect, Target};
use tilewright_runtime::device::{DeviceError, DeviceInfo, Vendor};

use super::error::Error;

/// The best target that a GPU has.
pub fn best_target(info: &DeviceInfo) -> Result<Target, Error> {
    let mut all = Target::ALL.to_vec();
    all.retain(|target| vendor(*target) == info.vendor());
    let own = all.iter().rev().find(|target| info.runs(target.name()));
    // The oldest asks least of a GPU that none was made for.
    let oldest = all.iter().find(|t| t.machine().forward_compatible);
    let names: Vec<&str> = all.iter().map(|target| target.name()).collect();
    own.or(oldest)
        .copied()
        .ok_or_else(|| Error::Device(wrong_arch(&names.join(" or "), info)))
}

/// Refuses a target whose kernels the GPU does not run: where what was lowered for one GPU cannot
/// be compiled for a later one it must be the very same.
pub fn check_target(target: Target, info: &DeviceInfo) -> Result<(), Error> {
    if target.machine().forward_compatible || info.runs(target.name()) {
        return Ok(());
    }
    Err(Error::Device(wrong_arch(target.name(), info)))
}

/// What kernels of a target are compiled for on a GPU, where that is not the target.
pub fn compiled_for(target: Target, info: &DeviceInfo) -> Option<String> {
    (!info.runs(target.name())).then(|| info.arch())
}

/// Whose GPUs a target is one of: the driver that opens them is the one for its dialect.
pub fn vendor(target: Target) -> Vendor {
    match target.machine().dialect {
        Dialect::Cuda => Vendor::Nvidia,
        Dialect::Hip => Vendor::Amd,
    }
}

fn wrong_arch(code: &str, info: &DeviceInfo) -> DeviceError {
    DeviceError::WrongArch {
        code: code.to_owned(),
        device: format!("{} ({})", info.arch(), info.name),
    }
}
