//! AMD GPUs through the HIP runtime, loaded at run time.
//!
//! The shape is that of `cuda`: a [`Device`] is a GPU, and memory ([`Buffer`]), queues
//! ([`Stream`]), marks ([`Event`]) and code ([`Module`], [`Kernel`]) belong to one and go away with
//! their last owner. HIP has one context for each GPU and process, which other libraries share.
//!
//! **When a kernel faults**, the runtime often ends the whole process, which no library can
//! prevent. Where it reports an error instead, the first call that notices returns
//! [`DeviceError::Fault`] with the kernel's name, and everything of that device then returns
//! [`DeviceError::Lost`]; [`Device::open`] resets the GPU and goes on with new buffers.
//!
//! Nothing here panics where there is no ROCm: [`Device::list`] and [`Device::open`] return
//! [`DeviceError::NoHip`].

mod api;
mod context;
mod launch;
mod memory;
mod module;
mod stream;
#[cfg(test)]
mod tests;

pub use super::error::{DeviceError, Fault, LaunchError, Problem};
pub use super::spec::{KernelSpec, ParamKind, ParamSpec, ScalarType};
pub use context::{Device, DeviceInfo};
pub use launch::{Arg, Launch, MAX_ARGS};
pub use memory::{Buffer, View};
pub use module::{Kernel, Module};
pub use stream::{Event, Stream};
