//! GPUs: memory, queues of work, loaded code and launches with checked arguments.
//!
//! [`cuda`] and [`hip`] have one shape; what does not differ between vendors, the description of a
//! kernel's parameters and the errors, is shared.

pub mod cuda;
mod error;
pub mod hip;
mod spec;

pub use error::{Argument, DeviceError, Fault, LaunchError, Problem};
pub use spec::{KernelSpec, ParamKind, ParamSpec, ScalarType};
