//! Loaded code and its kernels.

use std::ffi::CString;
use std::fmt;
use std::sync::Arc;

use super::super::error::DeviceError;
use super::super::spec::KernelSpec;
use super::api::status;
use super::context::{Context, Device, Handle};
use crate::toolchain::{AmdKernelInfo, Hsaco};

/// A code object on a device.
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<Inner>,
}

/// A kernel that can be launched. Keeps its module loaded.
pub struct Kernel {
    pub(super) module: Arc<Inner>,
    pub(super) function: Handle,
    pub(super) spec: KernelSpec,
    pub(super) info: AmdKernelInfo,
    /// The name with where it comes from, as errors print it.
    pub(super) label: Arc<str>,
}

#[derive(Debug)]
pub(super) struct Inner {
    pub context: Arc<Context>,
    raw: Handle,
    kernels: Vec<AmdKernelInfo>,
}

impl Device {
    /// Loads a code object.
    pub fn load(&self, hsaco: &Hsaco) -> Result<Module, DeviceError> {
        let info = self.info();
        if hsaco.arch() != info.arch {
            return Err(DeviceError::WrongArch {
                code: hsaco.arch().to_owned(),
                device: format!("{} ({})", info.arch, info.name),
            });
        }
        let mut raw = std::ptr::null_mut();
        let got = self.context.raw_call("hipModuleLoadData", |api| {
            // SAFETY: the image is an ELF file whose headers give its length, and a `Hsaco` is only
            // made of a file whose sections and segments all lie inside it.
            unsafe { (api.module_load)(&mut raw, hsaco.bytes().as_ptr().cast()) }
        })?;
        match got {
            status::SUCCESS => {}
            status::INVALID_IMAGE | status::NO_BINARY_FOR_GPU => {
                let (name, text) = self.context.api.describe(got);
                let (major, minor) = info.rocm;
                return Err(DeviceError::Unloadable {
                    reason: format!(
                        "{text} ({name}); this is ROCm {major}.{minor}, and code of a newer clang \
                         may need a newer ROCm or `-mcode-object-version=5`"
                    ),
                });
            }
            other => return Err(self.context.fail("hipModuleLoadData", other)),
        }
        Ok(Module {
            inner: Arc::new(Inner {
                context: self.context.clone(),
                raw: Handle(raw),
                kernels: hsaco.kernels().to_vec(),
            }),
        })
    }
}

impl Module {
    /// The kernels in the module.
    pub fn kernels(&self) -> &[AmdKernelInfo] {
        &self.inner.kernels
    }

    /// A kernel, with what its callers will pass. The parameters must agree with those that the
    /// compiled code has.
    pub fn kernel(&self, name: &str, spec: KernelSpec) -> Result<Kernel, DeviceError> {
        let inner = &self.inner;
        let unknown = || DeviceError::NoKernel {
            name: name.to_owned(),
            has: inner.kernels.iter().map(|k| k.name.clone()).collect(),
        };
        let known = inner.kernels.iter().find(|kernel| kernel.name == name);
        let (Some(info), Ok(c_name)) = (known, CString::new(name)) else {
            return Err(unknown());
        };
        check_spec(info, &spec)?;
        let mut function = std::ptr::null_mut();
        let got = inner.context.raw_call("hipModuleGetFunction", |api| {
            // SAFETY: the pointer is valid for a write, the module is loaded, the name ends in
            // NUL.
            unsafe { (api.module_function)(&mut function, inner.raw.0, c_name.as_ptr()) }
        })?;
        match got {
            status::SUCCESS => {}
            status::NOT_FOUND => return Err(unknown()),
            other => return Err(inner.context.fail("hipModuleGetFunction", other)),
        }
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
        })
    }
}

fn check_spec(info: &AmdKernelInfo, spec: &KernelSpec) -> Result<(), DeviceError> {
    let wrong = |reason: String| DeviceError::Signature {
        kernel: info.name.clone(),
        reason,
    };
    if info.args.len() != spec.params.len() {
        return Err(wrong(format!(
            "its code has {} parameters and its description {}",
            info.args.len(),
            spec.params.len()
        )));
    }
    for (index, (code, said)) in info.args.iter().zip(&spec.params).enumerate() {
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
    pub fn info(&self) -> &AmdKernelInfo {
        &self.info
    }

    pub fn spec(&self) -> &KernelSpec {
        &self.spec
    }

    /// How many workgroups of this size fit one compute unit at once.
    pub fn blocks_per_compute_unit(
        &self,
        threads: u32,
        dynamic_lds: u32,
    ) -> Result<u32, DeviceError> {
        let mut blocks = 0;
        let call = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor";
        self.module.context.call(call, |api| {
            let threads = i32::try_from(threads).unwrap_or(i32::MAX);
            // SAFETY: the pointer is valid for a write and the function is loaded.
            unsafe { (api.occupancy)(&mut blocks, self.function.0, threads, dynamic_lds as usize) }
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
        self.context.quietly("hipModuleUnload", |api| {
            // SAFETY: this object loaded the module and unloads it once; no kernel of it is left,
            // for kernels keep it alive.
            unsafe { (api.module_unload)(raw) }
        });
    }
}
