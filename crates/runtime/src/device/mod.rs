//! GPUs: memory, queues of work, loaded code and launches with checked arguments.
//!
//! A [`Device`] is a GPU, whoever made it. Memory ([`Buffer`]), queues ([`Stream`]), marks
//! ([`Event`]) and code ([`Module`], [`Kernel`]) belong to a device and go away with their last
//! owner. All of it is written once, over the table of a vendor's driver: [`cuda`] and [`hip`] find
//! theirs, and say what only they have.
//!
//! **When a kernel faults** (an illegal address, a trap), its device is unusable for good: every
//! later call fails, memory is lost. The first call that notices returns [`DeviceError::Fault`]
//! with the kernel's name; after that everything of that device returns [`DeviceError::Lost`]
//! without asking the driver. Opening the device again makes it anew, and the process goes on with
//! new buffers and modules. Other libraries that used it (their memory is as lost as ours) must be
//! reset too.

mod context;
pub mod cuda;
mod driver;
mod error;
pub mod hip;
mod info;
mod launch;
mod memory;
mod module;
mod spec;
mod stream;

pub use context::Device;
pub use error::{Argument, DeviceError, Fault, LaunchError, Problem};
pub use info::{DeviceInfo, Model, Vendor};
pub use launch::{Arg, Launch, MAX_ARGS};
pub use memory::{Buffer, View};
pub use module::{Entry, Image, Kernel, Module};
pub use spec::{KernelSpec, ParamKind, ParamSpec, ScalarType};
pub use stream::{Event, Stream};

/// Opens a GPU of a vendor.
pub fn open(vendor: Vendor, ordinal: u32) -> Result<Device, DeviceError> {
    match vendor {
        Vendor::Nvidia => cuda::open(ordinal),
        Vendor::Amd => hip::open(ordinal),
    }
}

/// Opens the first GPU of this machine: NVIDIA's, or AMD's where there is none.
pub fn open_any() -> Result<Device, DeviceError> {
    let nvidia = match cuda::open(0) {
        Err(error @ (DeviceError::NoDriver { .. } | DeviceError::NoDevice { .. })) => error,
        opened => return opened,
    };
    match hip::open(0) {
        Err(amd @ (DeviceError::NoHip(_) | DeviceError::NoDevice { .. })) => {
            Err(DeviceError::NoGpu {
                nvidia: Box::new(nvidia),
                amd: Box::new(amd),
            })
        }
        opened => opened,
    }
}
