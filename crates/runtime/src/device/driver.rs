//! What the drivers of the vendors have in common, and the few things in which they differ.
//!
//! HIP was made in CUDA's image: most functions take the same arguments, and the statuses that
//! matter have the same numbers. [`Functions`] are those, [`Names`] is what a vendor calls them, and
//! [`Driver`] has the rest: who a GPU's memory belongs to, what an error is called, what a launch
//! needs beyond its shape. Everything else about a device is written once, over these three.

use std::ffi::{c_char, c_float, c_int, c_uint, c_void};
use std::fmt;

use super::context::Context;
use super::error::DeviceError;
use super::info::DeviceInfo;
use super::launch::Launch;
use super::module::Entry;
use crate::library::vendors_api;

pub(super) type Status = c_int;
/// An address on the device. HIP's type is a `void*`; as a number it can be counted with.
pub(super) type DevicePtr = u64;
pub(super) type RawStream = *mut c_void;
pub(super) type RawEvent = *mut c_void;
pub(super) type RawModule = *mut c_void;
pub(super) type RawFunction = *mut c_void;

/// `CUresult` and `hipError_t`: the values that get a treatment of their own, the same in both.
pub(super) mod status {
    use super::Status;
    pub const SUCCESS: Status = 0;
    pub const OUT_OF_MEMORY: Status = 2;
    pub const NOT_INITIALIZED: Status = 3;
    pub const NO_DEVICE: Status = 100;
    pub const INVALID_DEVICE: Status = 101;
    pub const INVALID_IMAGE: Status = 200;
    pub const NO_BINARY_FOR_GPU: Status = 209;
    pub const NOT_FOUND: Status = 500;
    pub const NOT_READY: Status = 600;
}

vendors_api! {
    /// The symbol of each function in a vendor's library.
    names Names;
    /// The functions that the drivers of all vendors have, with one signature.
    functions Functions {
        init(c_uint) -> Status;
        version(*mut c_int) -> Status;

        device_count(*mut c_int) -> Status;
        device_name(*mut c_char, c_int, c_int) -> Status;
        device_attribute(*mut c_int, c_int, c_int) -> Status;
        device_memory(*mut usize, c_int) -> Status;
        synchronize() -> Status;

        memory_info(*mut usize, *mut usize) -> Status;
        alloc(*mut DevicePtr, usize) -> Status;
        free(DevicePtr) -> Status;
        copy_to_device(DevicePtr, *const c_void, usize, RawStream) -> Status;
        copy_to_host(*mut c_void, DevicePtr, usize, RawStream) -> Status;
        copy_on_device(DevicePtr, DevicePtr, usize, RawStream) -> Status;
        set_bytes(DevicePtr, u8, usize, RawStream) -> Status;
        set_words(DevicePtr, c_uint, usize, RawStream) -> Status;

        stream_create(*mut RawStream, c_uint) -> Status;
        stream_destroy(RawStream) -> Status;
        stream_synchronize(RawStream) -> Status;
        stream_query(RawStream) -> Status;
        stream_wait(RawStream, RawEvent, c_uint) -> Status;
        event_create(*mut RawEvent, c_uint) -> Status;
        event_destroy(RawEvent) -> Status;
        event_record(RawEvent, RawStream) -> Status;
        event_synchronize(RawEvent) -> Status;
        event_elapsed(*mut c_float, RawEvent, RawEvent) -> Status;

        module_load(*mut RawModule, *const c_void) -> Status;
        module_unload(RawModule) -> Status;
        module_function(*mut RawFunction, RawModule, *const c_char) -> Status;
        occupancy(*mut c_int, RawFunction, c_int, usize) -> Status;
        launch(
            RawFunction,
            c_uint, c_uint, c_uint,
            c_uint, c_uint, c_uint,
            c_uint, RawStream, *mut *mut c_void, *mut *mut c_void,
        ) -> Status;
    }
}

/// What a thread makes current to work with a GPU, as the driver names it; 0 is nothing at all.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Owner(pub usize);

impl Owner {
    pub(super) const NONE: Self = Self(0);
}

/// The driver of one vendor. Methods that take a [`Context`] make their calls through it.
pub(super) trait Driver: fmt::Debug + Sync {
    fn functions(&self) -> &Functions;

    fn names(&self) -> &'static Names;

    /// The driver's name and sentence for a status.
    fn describe(&self, status: Status) -> (String, String);

    /// Whether nothing on the device works after this status.
    fn is_sticky(&self, status: Status) -> bool;

    /// What the GPU of this number is.
    fn info(&self, ordinal: u32) -> Result<DeviceInfo, DeviceError>;

    /// Takes a GPU into use.
    fn retain(&self, ordinal: u32) -> Result<Owner, DeviceError>;

    /// The inverse of [`Driver::retain`].
    fn release(&self, ordinal: u32);

    /// Throws away all that a faulted GPU holds, and releases it where it is still `held`.
    fn reset(&self, ordinal: u32, held: bool) -> Result<(), DeviceError>;

    /// What this thread works with.
    fn current(&self) -> Result<Owner, DeviceError>;

    fn set_current(&self, owner: Owner) -> Result<(), DeviceError>;

    /// What helps where the driver does not take an image.
    fn image_help(&self, info: &DeviceInfo) -> String;

    /// The most threads that a block of a kernel may have.
    fn max_threads(
        &self,
        context: &Context,
        function: RawFunction,
        entry: &Entry,
    ) -> Result<u32, DeviceError>;

    /// Lets a kernel have so much dynamic shared memory.
    fn allow_shared(
        &self,
        context: &Context,
        function: RawFunction,
        bytes: u32,
    ) -> Result<(), DeviceError>;

    /// Launches in clusters, or all blocks at once.
    ///
    /// # Safety
    ///
    /// `params` must have a pointer to a value of the right size for each parameter of `function`,
    /// which must be loaded in `context`, as must `stream`.
    unsafe fn launch_with(
        &self,
        context: &Context,
        function: RawFunction,
        launch: &Launch,
        stream: RawStream,
        params: *mut *mut c_void,
    ) -> Result<(), DeviceError>;

    /// The CUDA driver, for what only NVIDIA has.
    fn as_cuda(&self) -> Option<&super::cuda::Api> {
        None
    }

    /// `cuInit`, `hipInit`. A machine with a driver and no GPU is no error here: it has no devices.
    fn start(&self) -> Result<(), DeviceError> {
        // SAFETY: the only argument allowed is 0.
        match unsafe { (self.functions().init)(0) } {
            status::SUCCESS | status::NO_DEVICE => Ok(()),
            other => Err(self.error(self.names().init, other)),
        }
    }

    /// The number of GPUs; none is no error.
    fn devices(&self) -> Result<u32, DeviceError> {
        let mut count = 0;
        // SAFETY: the pointer is valid for a write of an int.
        match unsafe { (self.functions().device_count)(&mut count) } {
            // Where there is no GPU `init` fails, and the driver then says it was never called.
            status::NO_DEVICE | status::NOT_INITIALIZED => Ok(0),
            other => self
                .check(self.names().device_count, other)
                .map(|()| count.unsigned_abs()),
        }
    }

    /// The driver's version as it counts it.
    fn raw_version(&self) -> Result<u32, DeviceError> {
        let mut version = 0;
        // SAFETY: the pointer is valid for a write of an int.
        let got = unsafe { (self.functions().version)(&mut version) };
        self.check(self.names().version, got)?;
        Ok(version.unsigned_abs())
    }

    /// Turns a status into an error that knows nothing of contexts.
    fn check(&self, call: &'static str, status: Status) -> Result<(), DeviceError> {
        match status {
            status::SUCCESS => Ok(()),
            other => Err(self.error(call, other)),
        }
    }

    fn error(&self, call: &'static str, status: Status) -> DeviceError {
        let (name, text) = self.describe(status);
        DeviceError::Driver {
            call: shown(call),
            status,
            name,
            text,
        }
    }

    /// A GPU's own name.
    fn device_name(&self, id: c_int) -> Result<String, DeviceError> {
        let mut name = [0u8; 256];
        // SAFETY: the driver writes at most the number of bytes it is told, with a NUL at the end.
        let got = unsafe {
            (self.functions().device_name)(name.as_mut_ptr().cast(), name.len() as c_int, id)
        };
        self.check(self.names().device_name, got)?;
        let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
        Ok(String::from_utf8_lossy(&name[..end]).into_owned())
    }

    fn device_memory(&self, id: c_int) -> Result<usize, DeviceError> {
        let mut bytes = 0;
        // SAFETY: the pointer is valid for a write.
        let got = unsafe { (self.functions().device_memory)(&mut bytes, id) };
        self.check(self.names().device_memory, got)?;
        Ok(bytes)
    }

    fn device_attribute(&self, what: c_int, id: c_int) -> Result<u32, DeviceError> {
        let mut value = 0;
        // SAFETY: the pointer is valid for a write.
        let got = unsafe { (self.functions().device_attribute)(&mut value, what, id) };
        self.check(self.names().device_attribute, got)?;
        Ok(value.unsigned_abs())
    }
}

/// A function as its vendor's documentation has it: CUDA's libraries add the version of a
/// signature to its name.
pub(super) fn shown(symbol: &'static str) -> &'static str {
    symbol.strip_suffix("_v2").unwrap_or(symbol)
}

/// The number of a GPU as the drivers take it.
pub(super) fn number(ordinal: u32) -> c_int {
    c_int::try_from(ordinal).unwrap_or(c_int::MAX)
}
