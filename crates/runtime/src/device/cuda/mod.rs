//! NVIDIA GPUs through the CUDA driver, loaded at run time.
//!
//! A [`Device`] is a GPU with its primary context, the one that other CUDA libraries in the
//! process use too, so buffers and streams can be shared with them. Memory ([`Buffer`]), queues
//! ([`Stream`]) and code ([`Module`], [`Kernel`]) belong to a device and go away with their last
//! owner.
//!
//! **When a kernel faults** (an illegal address, a trap), CUDA leaves its context unusable for
//! good: every later call fails, memory is lost. The first call that notices returns
//! [`DeviceError::Fault`] with the kernel's name; after that everything of the old context
//! returns [`DeviceError::Lost`] without asking the driver. [`Device::open`] then destroys the
//! primary context and makes a new one, and the process goes on with new buffers and modules.
//! Other libraries that used the context (their memory is as lost as ours) must be reset too.
//!
//! Nothing here panics where there is no driver: [`Device::list`] and [`Device::open`] return
//! [`DeviceError::NoDriver`].

mod api;
mod context;
#[cfg(test)]
mod fake;
mod launch;
mod memory;
mod module;
mod stream;
mod tensor_map;
#[cfg(test)]
mod tests;

pub use super::error::{DeviceError, Fault, LaunchError, Problem};
pub use super::spec::{KernelSpec, ParamKind, ParamSpec, ScalarType};
pub use context::{Device, DeviceInfo};
pub use launch::{Arg, Launch, MAX_ARGS};
pub use memory::{Buffer, View};
pub use module::{Kernel, Module};
pub use stream::{Event, Stream};
pub use tensor_map::{Swizzle, TensorMap, TensorMapError, TiledTensor, TmaType};
