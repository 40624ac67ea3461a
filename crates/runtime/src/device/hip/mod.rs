//! AMD GPUs through the HIP runtime, loaded at run time.
//!
//! HIP has one context for each GPU and process, which other libraries share.
//! When a kernel faults, the runtime often ends the whole process, which no library can prevent.
//! Where it reports an error instead, [`open`] resets the GPU and goes on.
//!
//! Nothing here panics where there is no ROCm: [`list`] and [`open`] return
//! [`DeviceError::NoHip`].

mod api;
#[cfg(test)]
mod tests;

use super::driver::Driver as _;
use super::{Device, DeviceError, DeviceInfo};
use crate::env::Env;

/// All GPUs the runtime sees. A machine with ROCm and no GPU has none.
pub fn list() -> Result<Vec<DeviceInfo>, DeviceError> {
    Device::list_with(api::runtime()?)
}

/// ROCm's version, as (7, 1).
pub fn rocm_version() -> Result<(u32, u32), DeviceError> {
    let version = api::runtime()?.raw_version()?;
    Ok(api::version(version))
}

/// Opens a GPU; all who open it share it. After a fault the first to open it again resets it.
pub fn open(ordinal: u32) -> Result<Device, DeviceError> {
    Device::open_with(api::runtime()?, ordinal)
}

/// ROCm's version and its GPUs, of the runtime that an environment has.
pub(crate) fn found_in(env: &Env) -> Result<((u32, u32), Vec<DeviceInfo>), DeviceError> {
    let api = api::load(env)?;
    Ok((api::version(api.raw_version()?), Device::list_with(api)?))
}
