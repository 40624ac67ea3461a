//! Toolchains, devices and the kernel cache: from generated source to a kernel that runs.
//!
//! The crate knows nothing of the IR. Its input is CUDA C++ or HIP text, its output a loaded kernel:
//!
//! - [`toolchain`]: finds NVRTC (or nvcc), and clang (or hiprtc) for AMD, compiles to machine code,
//!   reads back what the kernel needs;
//! - [`device`]: GPUs, memory, streams, events and launches with checked arguments;
//! - [`cache`]: compiled kernels on disk, shared by many processes;
//! - [`doctor`]: what of all this the machine has, and what to install.
//!
//! Everything is loaded at run time. Without a GPU, a driver or a toolchain every function
//! returns an error that says what was looked for and what would help; nothing panics.

pub mod cache;
pub mod device;
pub mod doctor;
pub mod env;
mod library;
pub mod signals;
mod temporary;
pub mod toolchain;

pub use library::LoadError;
