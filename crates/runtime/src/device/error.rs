//! What can go wrong with a GPU, in words a user can act on.

use std::fmt;
use std::sync::Arc;

use super::spec::{ParamKind, ScalarType};
use crate::library::LoadError;
use crate::toolchain::NotFound;

/// Why something with a device did not work.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum DeviceError {
    /// The driver's library is not there or not usable.
    NoDriver {
        tried: Vec<LoadError>,
    },
    /// The HIP runtime is not there.
    NoHip(NotFound),
    /// The HIP runtime is there and cannot be used.
    BadHip(LoadError),
    /// Neither vendor's GPUs can be used, each for its own reason.
    NoGpu {
        nvidia: Box<DeviceError>,
        amd: Box<DeviceError>,
    },
    /// There is no GPU with this number.
    NoDevice {
        ordinal: u32,
        count: u32,
    },
    /// The driver refused a call.
    Driver {
        call: &'static str,
        status: i32,
        name: String,
        text: String,
    },
    /// A kernel faulted and took the context with it. Reported by the first call that notices.
    Fault(Arc<Fault>),
    /// The context died earlier.
    Lost(Arc<Fault>),
    OutOfMemory {
        wanted: usize,
        free: usize,
        total: usize,
    },
    /// The code is for another GPU.
    WrongArch {
        code: String,
        device: String,
    },
    /// The driver cannot load the code.
    Unloadable {
        reason: String,
    },
    NoKernel {
        name: String,
        has: Vec<String>,
    },
    /// A kernel's parameters are not what the caller thinks.
    Signature {
        kernel: String,
        reason: String,
    },
    /// A copy or a view does not fit its buffer.
    Range {
        what: &'static str,
        offset: usize,
        bytes: usize,
        size: usize,
    },
    /// Two things that must be on one device are not.
    OtherDevice {
        what: &'static str,
        expected: u32,
        found: u32,
    },
    /// The driver is too old for a call.
    TooOld {
        call: &'static str,
    },
    Launch(LaunchError),
    /// The primary context could not be made anew after a fault.
    NotRecovered {
        reason: String,
    },
}

/// A kernel that faulted.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Fault {
    pub device: u32,
    /// The kernels that were running, as far as is known; one is the culprit.
    pub kernels: Vec<String>,
    /// The driver's name for the error, such as `CUDA_ERROR_ILLEGAL_ADDRESS`.
    pub name: String,
    pub text: String,
    /// The call that noticed.
    pub call: &'static str,
}

/// A launch that was refused before it reached the GPU.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct LaunchError {
    pub kernel: String,
    pub problem: Problem,
}

/// What is wrong with a launch.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Problem {
    ArgumentCount {
        expected: usize,
        got: usize,
    },
    /// An argument of another kind than the parameter.
    Kind {
        argument: Argument,
        expected: ParamKind,
        got: String,
    },
    Dtype {
        argument: Argument,
        expected: String,
        got: String,
    },
    TooSmall {
        argument: Argument,
        needed: u64,
        got: u64,
    },
    Misaligned {
        argument: Argument,
        align: u32,
        address: u64,
    },
    ByteCount {
        argument: Argument,
        expected: u32,
        got: usize,
    },
    OtherDevice {
        argument: Argument,
        expected: u32,
        found: u32,
    },
    StreamDevice {
        expected: u32,
        found: u32,
    },
    EmptyGrid {
        grid: [u32; 3],
        block: [u32; 3],
    },
    GridTooLarge {
        grid: [u32; 3],
        limit: [u32; 3],
    },
    BlockTooLarge {
        block: [u32; 3],
        threads: u64,
        limit: u32,
    },
    SharedTooLarge {
        dynamic: u32,
        fixed: u32,
        limit: u32,
    },
    Cluster {
        cluster: [u32; 3],
        reason: &'static str,
    },
}

/// Which argument.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Argument {
    pub index: usize,
    pub name: String,
}

impl fmt::Display for Argument {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "argument {} `{}`", self.index, self.name)
    }
}

impl fmt::Display for DeviceError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::NoDriver { tried } => {
                write!(f, "there is no CUDA driver on this machine:")?;
                for error in tried {
                    write!(f, "\n  {error}")?;
                }
                write!(
                    f,
                    "\ninstall the NVIDIA driver; in a container, start it with access to the GPU"
                )
            }
            Self::NoHip(missing) => missing.fmt(f),
            Self::BadHip(error) => write!(
                f,
                "{error}\nset TILEWRIGHT_HIP to another libamdhip64.so, or repair this one"
            ),
            Self::NoGpu { nvidia, amd } => write!(
                f,
                "there is no GPU to run kernels on\nNVIDIA: {nvidia}\nAMD: {amd}"
            ),
            Self::NoDevice { ordinal, count: 0 } => {
                write!(f, "there is no GPU {ordinal}: the driver sees none at all")
            }
            Self::NoDevice { ordinal, count } => {
                write!(
                    f,
                    "there is no GPU {ordinal}: the driver sees {count}, counted from 0"
                )
            }
            Self::Driver {
                call, name, text, ..
            } => write!(f, "{call} failed: {text} ({name})"),
            Self::Fault(fault) => fault.fmt(f),
            Self::Lost(fault) => write!(
                f,
                "the context of GPU {} is lost since {fault}\nopen the device again to go on",
                fault.device
            ),
            Self::OutOfMemory {
                wanted,
                free,
                total,
            } => write!(
                f,
                "the GPU has no room for {}: {} of {} are free",
                bytes(*wanted),
                bytes(*free),
                bytes(*total)
            ),
            Self::WrongArch { code, device } => {
                write!(
                    f,
                    "the kernel was compiled for {code} and the GPU is {device}"
                )
            }
            Self::Unloadable { reason } => write!(f, "the driver cannot load the kernel: {reason}"),
            Self::NoKernel { name, has } => {
                write!(
                    f,
                    "there is no kernel `{name}` in the module; it has {}",
                    has.join(", ")
                )
            }
            Self::Signature { kernel, reason } => write!(f, "kernel `{kernel}`: {reason}"),
            Self::Range {
                what,
                offset,
                bytes,
                size,
            } => write!(
                f,
                "{what} of {bytes} bytes at offset {offset} does not fit a buffer of {size} bytes"
            ),
            Self::OtherDevice {
                what,
                expected,
                found,
            } => write!(
                f,
                "{what} is on GPU {found} and should be on GPU {expected}"
            ),
            Self::TooOld { call } => {
                write!(
                    f,
                    "the GPU's driver is too old: it has no {call}; install a newer one"
                )
            }
            Self::Launch(error) => error.fmt(f),
            Self::NotRecovered { reason } => write!(
                f,
                "the GPU's context could not be made anew after a fault ({reason}); \
                 start the process again"
            ),
        }
    }
}

impl std::error::Error for DeviceError {}

impl fmt::Display for Fault {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self.kernels.as_slice() {
            [] => write!(f, "work on GPU {} faulted", self.device)?,
            [kernel] => write!(f, "kernel {kernel} faulted on GPU {}", self.device)?,
            many => write!(
                f,
                "one of the kernels {} faulted on GPU {} (synchronise after each to know which)",
                many.join(", "),
                self.device
            )?,
        }
        write!(
            f,
            ": {} ({}, noticed by {})",
            self.text, self.name, self.call
        )
    }
}

impl fmt::Display for LaunchError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "kernel `{}`: {}", self.kernel, self.problem)
    }
}

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::ArgumentCount { expected, got } => {
                write!(f, "it takes {expected} arguments and was given {got}")
            }
            Self::Kind {
                argument,
                expected,
                got,
            } => write!(f, "{argument} must be {expected} and is {got}"),
            Self::Dtype {
                argument,
                expected,
                got,
            } => write!(f, "{argument} must hold {expected} and holds {got}"),
            Self::TooSmall {
                argument,
                needed,
                got,
            } => write!(f, "{argument} must have {needed} bytes and has {got}"),
            Self::Misaligned {
                argument,
                align,
                address,
            } => write!(
                f,
                "{argument} must be aligned to {align} bytes and starts at {address:#x}"
            ),
            Self::ByteCount {
                argument,
                expected,
                got,
            } => write!(
                f,
                "{argument} is passed as {expected} bytes and was given {got}"
            ),
            Self::OtherDevice {
                argument,
                expected,
                found,
            } => write!(
                f,
                "{argument} is on GPU {found} and the kernel on GPU {expected}"
            ),
            Self::StreamDevice { expected, found } => {
                write!(
                    f,
                    "the stream is on GPU {found} and the kernel on GPU {expected}"
                )
            }
            Self::EmptyGrid { grid, block } => {
                write!(f, "a grid of {grid:?} blocks of {block:?} threads is empty")
            }
            Self::GridTooLarge { grid, limit } => {
                write!(
                    f,
                    "a grid of {grid:?} blocks is larger than the GPU's {limit:?}"
                )
            }
            Self::BlockTooLarge {
                block,
                threads,
                limit,
            } => write!(
                f,
                "a block of {block:?} has {threads} threads and the kernel allows {limit}"
            ),
            Self::SharedTooLarge {
                dynamic,
                fixed,
                limit,
            } => write!(
                f,
                "it needs {dynamic} bytes of dynamic and {fixed} of static shared memory, and \
                 the GPU has {limit} for a block; use smaller tiles or fewer stages"
            ),
            Self::Cluster { cluster, reason } => write!(f, "a cluster of {cluster:?}: {reason}"),
        }
    }
}

impl fmt::Display for ParamKind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Pointer { dtype: None, .. } => write!(f, "a buffer"),
            Self::Pointer {
                dtype: Some(dtype), ..
            } => write!(f, "a buffer of {dtype}"),
            Self::Scalar(scalar) => write!(f, "{scalar}"),
            Self::Bytes { size } => write!(f, "{size} bytes by value"),
        }
    }
}

impl fmt::Display for ScalarType {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let name = match self {
            Self::Bool => "a bool",
            Self::I8 => "an int8",
            Self::I16 => "an int16",
            Self::I32 => "an int32",
            Self::I64 => "an int64",
            Self::U8 => "a uint8",
            Self::U16 => "a uint16",
            Self::U32 => "a uint32",
            Self::U64 => "a uint64",
            Self::F16 => "a float16",
            Self::BF16 => "a bfloat16",
            Self::F32 => "a float32",
            Self::F64 => "a float64",
        };
        f.write_str(name)
    }
}

fn bytes(count: usize) -> String {
    let value = count as f64;
    match count {
        0..1024 => format!("{count} bytes"),
        1024..0x10_0000 => format!("{:.1} KiB", value / 1024.0),
        0x10_0000..0x4000_0000 => format!("{:.1} MiB", value / 1_048_576.0),
        _ => format!("{:.1} GiB", value / 1_073_741_824.0),
    }
}
