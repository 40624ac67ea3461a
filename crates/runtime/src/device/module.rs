//! Loaded code and its kernels.

use std::ffi::CString;
use std::fmt;
use std::sync::Arc;
use std::sync::atomic::AtomicU32;

use super::context::{Context, Device, Handle};
use super::driver::status;
use super::error::DeviceError;
use super::spec::KernelSpec;
use crate::toolchain::{Binary, Cubin, Hsaco};

/// A compiled program, as a driver loads it: a [`Cubin`] or a [`Hsaco`], which are only made of
/// files whose parts all lie inside them.
#[derive(Clone, Debug)]
pub struct Image<'a> {
    arch: &'a str,
    bytes: &'a [u8],
    entries: Vec<Entry>,
}

/// What a launch must know of a compiled kernel.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub name: String,
    /// The bytes of each parameter.
    pub params: Vec<u32>,
    /// Static shared memory (LDS) of a block in bytes.
    pub static_shared: u32,
    /// Most threads in a block, where the code says it.
    pub max_threads: Option<u32>,
}

impl<'a> From<&'a Cubin> for Image<'a> {
    fn from(cubin: &'a Cubin) -> Self {
        let entries = cubin.kernels().iter().map(|kernel| Entry {
            name: kernel.name.clone(),
            params: kernel.params.iter().map(|p| p.size).collect(),
            static_shared: kernel.static_shared,
            max_threads: kernel.max_threads,
        });
        Self {
            arch: cubin.arch(),
            bytes: cubin.bytes(),
            entries: entries.collect(),
        }
    }
}

impl<'a> From<&'a Hsaco> for Image<'a> {
    fn from(hsaco: &'a Hsaco) -> Self {
        let entries = hsaco.kernels().iter().map(|kernel| Entry {
            name: kernel.name.clone(),
            params: kernel.args.iter().map(|a| a.size).collect(),
            static_shared: kernel.lds_bytes,
            max_threads: (kernel.max_threads > 0).then_some(kernel.max_threads),
        });
        Self {
            arch: hsaco.arch(),
            bytes: hsaco.bytes(),
            entries: entries.collect(),
        }
    }
}

impl<'a> From<&'a Binary> for Image<'a> {
    fn from(binary: &'a Binary) -> Self {
        match binary {
            Binary::Cubin(cubin) => cubin.into(),
            Binary::Hsaco(hsaco) => hsaco.into(),
        }
    }
}

/// A program on a device.
#[derive(Clone, Debug)]
pub struct Module {
    inner: Arc<Inner>,
}

/// A kernel that can be launched. Keeps its module loaded.
pub struct Kernel {
    pub(super) module: Arc<Inner>,
    pub(super) function: Handle,
    pub(super) spec: KernelSpec,
    pub(super) entry: Entry,
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
    entries: Vec<Entry>,
}

impl Device {
    /// Loads a compiled program.
    pub fn load<'a>(&self, image: impl Into<Image<'a>>) -> Result<Module, DeviceError> {
        let image = image.into();
        let (context, info) = (&self.context, self.info());
        if !info.runs(image.arch) {
            return Err(DeviceError::WrongArch {
                code: image.arch.to_owned(),
                device: format!("{} ({})", info.arch(), info.name),
            });
        }
        let mut raw = std::ptr::null_mut();
        let got = context.raw_call(context.names.module_load, |f| {
            // SAFETY: the image is an ELF file whose headers give its length, and an `Image` is
            // only made of a file whose sections and segments all lie inside it.
            unsafe { (f.module_load)(&mut raw, image.bytes.as_ptr().cast()) }
        })?;
        match got {
            status::SUCCESS => {}
            status::INVALID_IMAGE | status::NO_BINARY_FOR_GPU => {
                let (name, text) = context.driver.describe(got);
                let help = context.driver.image_help(info);
                return Err(DeviceError::Unloadable {
                    reason: format!("{text} ({name}); {help}"),
                });
            }
            other => return Err(context.fail(context.names.module_load, other)),
        }
        Ok(Module {
            inner: Arc::new(Inner {
                context: context.clone(),
                raw: Handle(raw),
                entries: image.entries,
            }),
        })
    }
}

impl Module {
    /// The kernels in the module.
    pub fn kernels(&self) -> &[Entry] {
        &self.inner.entries
    }

    /// A kernel, with what its callers will pass. The parameters must agree with those that the
    /// compiled code has.
    pub fn kernel(&self, name: &str, spec: KernelSpec) -> Result<Kernel, DeviceError> {
        let inner = &self.inner;
        let context = &inner.context;
        let unknown = || DeviceError::NoKernel {
            name: name.to_owned(),
            has: inner.entries.iter().map(|k| k.name.clone()).collect(),
        };
        let known = inner.entries.iter().find(|entry| entry.name == name);
        let (Some(entry), Ok(c_name)) = (known, CString::new(name)) else {
            return Err(unknown());
        };
        check_spec(entry, &spec)?;
        let mut function = std::ptr::null_mut();
        let got = context.raw_call(context.names.module_function, |f| {
            // SAFETY: the pointer is valid for a write, the module is loaded, the name ends in
            // NUL.
            unsafe { (f.module_function)(&mut function, inner.raw.0, c_name.as_ptr()) }
        })?;
        match got {
            status::SUCCESS => {}
            status::NOT_FOUND => return Err(unknown()),
            other => return Err(context.fail(context.names.module_function, other)),
        }
        let label = match &spec.origin {
            Some(origin) => format!("`{name}` ({origin})"),
            None => format!("`{name}`"),
        };
        Ok(Kernel {
            module: inner.clone(),
            function: Handle(function),
            spec,
            entry: entry.clone(),
            label: label.into(),
            max_threads: context.driver.max_threads(context, function, entry)?,
            allowed_shared: AtomicU32::new(DEFAULT_SHARED),
        })
    }
}

/// The dynamic shared memory that every kernel may use without asking.
const DEFAULT_SHARED: u32 = 48 * 1024;

fn check_spec(entry: &Entry, spec: &KernelSpec) -> Result<(), DeviceError> {
    let wrong = |reason: String| DeviceError::Signature {
        kernel: entry.name.clone(),
        reason,
    };
    if entry.params.len() != spec.params.len() {
        return Err(wrong(format!(
            "its code has {} parameters and its description {}",
            entry.params.len(),
            spec.params.len()
        )));
    }
    for (index, (code, said)) in entry.params.iter().zip(&spec.params).enumerate() {
        if *code != said.kind.bytes() {
            return Err(wrong(format!(
                "parameter {index} `{}` has {} bytes in its code and {} in its description",
                said.name,
                code,
                said.kind.bytes()
            )));
        }
    }
    Ok(())
}

impl Kernel {
    /// What the compiled code says of the kernel.
    pub fn entry(&self) -> &Entry {
        &self.entry
    }

    pub fn spec(&self) -> &KernelSpec {
        &self.spec
    }

    /// How many blocks of this size fit one multiprocessor (compute unit) at once.
    pub fn blocks_per_multiprocessor(
        &self,
        threads: u32,
        dynamic_shared: u32,
    ) -> Result<u32, DeviceError> {
        self.allow_shared(dynamic_shared)?;
        let context = &self.module.context;
        let mut blocks = 0;
        context.call(context.names.occupancy, |f| {
            let threads = i32::try_from(threads).unwrap_or(i32::MAX);
            let shared = dynamic_shared as usize;
            // SAFETY: the pointer is valid for a write and the function is loaded.
            unsafe { (f.occupancy)(&mut blocks, self.function.0, threads, shared) }
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
        self.context.quietly(self.context.names.module_unload, |f| {
            // SAFETY: this object loaded the module and unloads it once; no kernel of it is left,
            // for kernels keep it alive.
            unsafe { (f.module_unload)(raw) }
        });
    }
}
