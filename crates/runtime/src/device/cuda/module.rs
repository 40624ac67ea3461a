//! Loaded code and its kernels.

use std::ffi::CString;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::super::error::DeviceError;
use super::super::spec::KernelSpec;
use super::api::{function_attribute, status};
use super::context::{Context, Device, Handle};
use crate::toolchain::{Cubin, KernelInfo};

/// A cubin on a device.
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<Inner>,
}

/// A kernel that can be launched. Keeps its module loaded.
pub struct Kernel {
    pub(super) module: Arc<Inner>,
    pub(super) function: Handle,
    pub(super) spec: KernelSpec,
    pub(super) info: KernelInfo,
    /// The name with where it comes from, as errors print it.
    pub(super) label: Arc<str>,
    pub(super) max_threads: u32,
    /// The dynamic shared memory that the driver was told to allow so far.
    pub(super) allowed_shared: AtomicU32,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub context: Arc<Context>,
    raw: Handle,
    kernels: Vec<KernelInfo>,
}

impl Device {
    /// Loads a cubin.
    pub fn load(&self, cubin: &Cubin) -> Result<Module, DeviceError> {
        let info = self.info();
        if !info.runs(cubin.arch()) {
            return Err(DeviceError::WrongArch {
                code: cubin.arch().to_owned(),
                device: format!("{} ({})", info.arch(), info.name),
            });
        }
        let mut raw = std::ptr::null_mut();
        let got = self.context.raw_call("cuModuleLoadData", |api| {
            // SAFETY: the image is an ELF file whose headers give its length, and a `Cubin` is only
            // made of a file whose sections and segments all lie inside it.
            unsafe { (api.module_load)(&mut raw, cubin.bytes().as_ptr().cast()) }
        })?;
        match got {
            status::SUCCESS => {}
            status::INVALID_IMAGE | status::NO_BINARY_FOR_GPU => {
                let (name, text) = self.context.api.describe(got);
                let (major, minor) = info.driver;
                return Err(DeviceError::Unloadable {
                    reason: format!(
                        "{text} ({name}); the driver supports CUDA {major}.{minor}, and code of \
                         a newer major version needs a newer driver or NVRTC {major} \
                         (TILEWRIGHT_NVRTC)"
                    ),
                });
            }
            other => return Err(self.context.fail("cuModuleLoadData", other)),
        }
        Ok(Module {
            inner: Arc::new(Inner {
                context: self.context.clone(),
                raw: Handle(raw),
                kernels: cubin.kernels().to_vec(),
            }),
        })
    }
}

impl Module {
    /// The kernels in the module.
    pub fn kernels(&self) -> &[KernelInfo] {
        &self.inner.kernels
    }

    /// A kernel, with what its callers will pass. The parameters must agree with those that the
    /// compiled code has.
    pub fn kernel(&self, name: &str, spec: KernelSpec) -> Result<Kernel, DeviceError> {
        let inner = &self.inner;
        let known = inner.kernels.iter().find(|kernel| kernel.name == name);
        let (Some(info), Ok(c_name)) = (known, CString::new(name)) else {
            return Err(DeviceError::NoKernel {
                name: name.to_owned(),
                has: inner.kernels.iter().map(|k| k.name.clone()).collect(),
            });
        };
        check_spec(info, &spec)?;
        let mut function = std::ptr::null_mut();
        let got = inner.context.raw_call("cuModuleGetFunction", |api| {
            // SAFETY: the pointer is valid for a write, the module is loaded, the name ends in
            // NUL.
            unsafe { (api.module_function)(&mut function, inner.raw.0, c_name.as_ptr()) }
        })?;
        match got {
            status::SUCCESS => {}
            status::NOT_FOUND => {
                return Err(DeviceError::NoKernel {
                    name: name.to_owned(),
                    has: inner.kernels.iter().map(|k| k.name.clone()).collect(),
                });
            }
            other => return Err(inner.context.fail("cuModuleGetFunction", other)),
        }
        let mut max_threads = 0;
        inner.context.call("cuFuncGetAttribute", |api| {
            let what = function_attribute::MAX_THREADS_PER_BLOCK;
            // SAFETY: the pointer is valid for a write and the function belongs to the module.
            unsafe { (api.function_get)(&mut max_threads, what, function) }
        })?;
        let label = match &spec.origin {
            Some(origin) => format!("`{name}` ({origin})"),
            None => format!("`{name}`"),
        };
        Ok(Kernel {
            module: inner.clone(),
            function: Handle(function),
            spec,
            info: info.clone(),
            label: label.into(),
            max_threads: max_threads.unsigned_abs(),
            allowed_shared: AtomicU32::new(DEFAULT_SHARED),
        })
    }
}

/// The dynamic shared memory that every kernel may use without asking.
const DEFAULT_SHARED: u32 = 48 * 1024;

fn check_spec(info: &KernelInfo, spec: &KernelSpec) -> Result<(), DeviceError> {
    let wrong = |reason: String| DeviceError::Signature {
        kernel: info.name.clone(),
        reason,
    };
    if info.params.len() != spec.params.len() {
        return Err(wrong(format!(
            "its code has {} parameters and its description {}",
            info.params.len(),
            spec.params.len()
        )));
    }
    for (index, (code, said)) in info.params.iter().zip(&spec.params).enumerate() {
        if code.size != said.kind.bytes() {
            return Err(wrong(format!(
                "parameter {index} `{}` has {} bytes in its code and {} in its description",
                said.name,
                code.size,
                said.kind.bytes()
            )));
        }
    }
    Ok(())
}

impl Kernel {
    pub fn info(&self) -> &KernelInfo {
        &self.info
    }

    pub fn spec(&self) -> &KernelSpec {
        &self.spec
    }

    /// How many blocks of this size fit one multiprocessor at once.
    pub fn blocks_per_multiprocessor(
        &self,
        threads: u32,
        dynamic_shared: u32,
    ) -> Result<u32, DeviceError> {
        self.allow_shared(dynamic_shared)?;
        let mut blocks = 0;
        self.module
            .context
            .call("cuOccupancyMaxActiveBlocksPerMultiprocessor", |api| {
                let threads = i32::try_from(threads).unwrap_or(i32::MAX);
                // SAFETY: the pointer is valid for a write and the function is loaded.
                unsafe {
                    (api.occupancy)(
                        &mut blocks,
                        self.function.0,
                        threads,
                        dynamic_shared as usize,
                    )
                }
            })?;
        Ok(blocks.unsigned_abs())
    }
}

impl fmt::Debug for Kernel {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Kernel({} on GPU {})",
            self.label, self.module.context.info.ordinal
        )
    }
}

impl Drop for Inner {
    fn drop(&mut self) {
        let raw = self.raw.0;
        self.context.quietly("cuModuleUnload", |api| {
            // SAFETY: this object loaded the module and unloads it once; no kernel of it is left,
            // for kernels keep it alive.
            unsafe { (api.module_unload)(raw) }
        });
    }
}
