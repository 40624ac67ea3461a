//! NVIDIA GPUs through the CUDA driver, loaded at run time.
//!
//! A device is a GPU with its primary context, the one that other CUDA libraries in the process
//! use too, so buffers and streams can be shared with them. After a fault [`open`] destroys the
//! primary context and makes a new one.
//!
//! Nothing here panics where there is no driver: [`list`] and [`open`] return
//! [`DeviceError::NoDriver`].

mod api;
#[cfg(test)]
mod fake;
mod tensor_map;
#[cfg(test)]
mod tests;

use super::driver::Driver as _;
use super::{Device, DeviceError, DeviceInfo};

pub(super) use api::Api;
pub use tensor_map::{Swizzle, TensorMap, TensorMapError, TiledTensor, TmaType};

/// All GPUs the driver sees. A machine with a driver and no GPU has none.
pub fn list() -> Result<Vec<DeviceInfo>, DeviceError> {
    Device::list_with(api::driver()?)
}

/// The CUDA version that the driver supports, as (13, 0).
pub fn driver_version() -> Result<(u32, u32), DeviceError> {
    let version = api::driver()?.raw_version()?;
    Ok(api::version(version))
}

/// Opens a GPU; all who open it share one context. After a fault the first to open it again
/// destroys the dead context, with all that was in it, and makes a new one.
pub fn open(ordinal: u32) -> Result<Device, DeviceError> {
    Device::open_with(api::driver()?, ordinal)
}
