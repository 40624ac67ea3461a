//! The functions of the CUDA driver that we call, and its numbers.

use std::ffi::{CStr, c_char, c_float, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::OnceLock;

use super::super::error::DeviceError;
use crate::library::c_api;

pub(super) type Status = c_int;
pub(super) type DeviceId = c_int;
pub(super) type DevicePtr = u64;
pub(super) type RawContext = *mut c_void;
pub(super) type RawStream = *mut c_void;
pub(super) type RawEvent = *mut c_void;
pub(super) type RawModule = *mut c_void;
pub(super) type RawFunction = *mut c_void;

/// `CUresult`: the values that get a treatment of their own.
pub(super) mod status {
    use super::Status;
    pub const SUCCESS: Status = 0;
    pub const OUT_OF_MEMORY: Status = 2;
    pub const NO_DEVICE: Status = 100;
    pub const INVALID_DEVICE: Status = 101;
    pub const INVALID_IMAGE: Status = 200;
    pub const NO_BINARY_FOR_GPU: Status = 209;
    pub const NOT_FOUND: Status = 500;
    pub const NOT_READY: Status = 600;

    /// Errors after which the context is dead: illegal and misaligned addresses, traps, asserts,
    /// failed launches, uncorrectable memory errors, a context that somebody destroyed.
    pub fn is_sticky(status: Status) -> bool {
        matches!(status, 214 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721)
    }
}

/// `CUdevice_attribute`.
pub(super) mod attribute {
    use std::ffi::c_int;
    pub const MAX_THREADS_PER_BLOCK: c_int = 1;
    pub const MAX_GRID_X: c_int = 5;
    pub const MAX_GRID_Y: c_int = 6;
    pub const MAX_GRID_Z: c_int = 7;
    pub const WARP_SIZE: c_int = 10;
    pub const REGISTERS_PER_BLOCK: c_int = 12;
    pub const CLOCK_KHZ: c_int = 13;
    pub const MULTIPROCESSORS: c_int = 16;
    pub const MEMORY_CLOCK_KHZ: c_int = 36;
    pub const MEMORY_BUS_BITS: c_int = 37;
    pub const L2_BYTES: c_int = 38;
    pub const CAPABILITY_MAJOR: c_int = 75;
    pub const CAPABILITY_MINOR: c_int = 76;
    pub const SHARED_PER_MULTIPROCESSOR: c_int = 81;
    pub const SHARED_PER_BLOCK_OPTIN: c_int = 97;
}

/// `CUfunction_attribute`.
pub(super) mod function_attribute {
    use std::ffi::c_int;
    pub const MAX_THREADS_PER_BLOCK: c_int = 0;
    pub const MAX_DYNAMIC_SHARED: c_int = 8;
    pub const NON_PORTABLE_CLUSTER: c_int = 14;
}

/// `CUlaunchAttribute`: a number and a union of 64 bytes, of which we fill the front.
#[repr(C, align(8))]
#[derive(Clone, Copy, Debug)]
pub(super) struct LaunchAttribute {
    pub id: c_int,
    pub pad: [u8; 4],
    pub value: [u32; 16],
}

pub(super) const LAUNCH_COOPERATIVE: c_int = 2;
pub(super) const LAUNCH_CLUSTER: c_int = 4;

/// `CUlaunchConfig`.
#[repr(C)]
#[derive(Debug)]
pub(super) struct LaunchConfig {
    pub grid: [c_uint; 3],
    pub block: [c_uint; 3],
    pub shared: c_uint,
    pub stream: RawStream,
    pub attributes: *const LaunchAttribute,
    pub attribute_count: c_uint,
}

c_api! {
    /// The driver's functions, in the versions of CUDA 11 and later.
    pub(crate) struct Api {
        init = "cuInit"(c_uint) -> Status;
        driver_version = "cuDriverGetVersion"(*mut c_int) -> Status;
        error_name = "cuGetErrorName"(Status, *mut *const c_char) -> Status;
        error_string = "cuGetErrorString"(Status, *mut *const c_char) -> Status;

        device_count = "cuDeviceGetCount"(*mut c_int) -> Status;
        device_get = "cuDeviceGet"(*mut DeviceId, c_int) -> Status;
        device_name = "cuDeviceGetName"(*mut c_char, c_int, DeviceId) -> Status;
        device_attribute = "cuDeviceGetAttribute"(*mut c_int, c_int, DeviceId) -> Status;
        device_memory = "cuDeviceTotalMem_v2"(*mut usize, DeviceId) -> Status;

        primary_retain = "cuDevicePrimaryCtxRetain"(*mut RawContext, DeviceId) -> Status;
        primary_release = "cuDevicePrimaryCtxRelease_v2"(DeviceId) -> Status;
        primary_reset = "cuDevicePrimaryCtxReset_v2"(DeviceId) -> Status;
        context_get = "cuCtxGetCurrent"(*mut RawContext) -> Status;
        context_set = "cuCtxSetCurrent"(RawContext) -> Status;
        context_synchronize = "cuCtxSynchronize"() -> Status;

        memory_info = "cuMemGetInfo_v2"(*mut usize, *mut usize) -> Status;
        alloc = "cuMemAlloc_v2"(*mut DevicePtr, usize) -> Status;
        free = "cuMemFree_v2"(DevicePtr) -> Status;
        copy_to_device = "cuMemcpyHtoDAsync_v2"(DevicePtr, *const c_void, usize, RawStream) -> Status;
        copy_to_host = "cuMemcpyDtoHAsync_v2"(*mut c_void, DevicePtr, usize, RawStream) -> Status;
        copy_on_device = "cuMemcpyDtoDAsync_v2"(DevicePtr, DevicePtr, usize, RawStream) -> Status;
        set_bytes = "cuMemsetD8Async"(DevicePtr, u8, usize, RawStream) -> Status;
        set_words = "cuMemsetD32Async"(DevicePtr, c_uint, usize, RawStream) -> Status;

        stream_create = "cuStreamCreate"(*mut RawStream, c_uint) -> Status;
        stream_destroy = "cuStreamDestroy_v2"(RawStream) -> Status;
        stream_synchronize = "cuStreamSynchronize"(RawStream) -> Status;
        stream_query = "cuStreamQuery"(RawStream) -> Status;
        stream_wait = "cuStreamWaitEvent"(RawStream, RawEvent, c_uint) -> Status;
        event_create = "cuEventCreate"(*mut RawEvent, c_uint) -> Status;
        event_destroy = "cuEventDestroy_v2"(RawEvent) -> Status;
        event_record = "cuEventRecord"(RawEvent, RawStream) -> Status;
        event_synchronize = "cuEventSynchronize"(RawEvent) -> Status;
        event_elapsed = "cuEventElapsedTime"(*mut c_float, RawEvent, RawEvent) -> Status;

        module_load = "cuModuleLoadData"(*mut RawModule, *const c_void) -> Status;
        module_unload = "cuModuleUnload"(RawModule) -> Status;
        module_function = "cuModuleGetFunction"(*mut RawFunction, RawModule, *const c_char) -> Status;
        function_get = "cuFuncGetAttribute"(*mut c_int, c_int, RawFunction) -> Status;
        function_set = "cuFuncSetAttribute"(RawFunction, c_int, c_int) -> Status;
        occupancy = "cuOccupancyMaxActiveBlocksPerMultiprocessor"(
            *mut c_int, RawFunction, c_int, usize,
        ) -> Status;
        launch = "cuLaunchKernel"(
            RawFunction,
            c_uint, c_uint, c_uint,
            c_uint, c_uint, c_uint,
            c_uint, RawStream, *mut *mut c_void, *mut *mut c_void,
        ) -> Status;
    }
    optional {
        launch_ex = "cuLaunchKernelEx"(
            *const LaunchConfig, RawFunction, *mut *mut c_void, *mut *mut c_void,
        ) -> Status;
        tensor_map_encode_tiled = "cuTensorMapEncodeTiled"(
            *mut c_void, c_int, c_uint, *mut c_void,
            *const u64, *const u64, *const c_uint, *const c_uint,
            c_int, c_int, c_int, c_int,
        ) -> Status;
    }
}

/// The names under which loaders know the driver; the last is where WSL keeps it.
pub(crate) const LIBRARIES: &[&str] = &[
    "libcuda.so.1",
    "libcuda.so",
    "/usr/lib/wsl/lib/libcuda.so.1",
];

/// The driver of this process, initialised.
pub(super) fn driver() -> Result<&'static Api, DeviceError> {
    static DRIVER: OnceLock<Result<&'static Api, DeviceError>> = OnceLock::new();
    DRIVER.get_or_init(|| load_any(LIBRARIES)).clone()
}

fn load_any(libraries: &[&str]) -> Result<&'static Api, DeviceError> {
    let mut tried = Vec::new();
    for library in libraries {
        match Api::load(Path::new(library)) {
            Ok(api) => {
                let api: &'static Api = Box::leak(Box::new(api));
                api.start()?;
                return Ok(api);
            }
            Err(error) => tried.push(error),
        }
    }
    Err(DeviceError::NoDriver { tried })
}

impl Api {
    /// `cuInit`. A machine with a driver and no GPU is no error here: it has no devices.
    pub(super) fn start(&self) -> Result<(), DeviceError> {
        // SAFETY: the only argument allowed is 0.
        match unsafe { (self.init)(0) } {
            status::SUCCESS | status::NO_DEVICE => Ok(()),
            other => Err(self.error("cuInit", other)),
        }
    }

    /// The CUDA version the driver supports, as (13, 0).
    pub(super) fn version(&self) -> Result<(u32, u32), DeviceError> {
        let mut version = 0;
        // SAFETY: the pointer is valid for a write of an int.
        self.check("cuDriverGetVersion", unsafe {
            (self.driver_version)(&mut version)
        })?;
        let version = version.unsigned_abs();
        Ok((version / 1000, version % 1000 / 10))
    }

    /// The number of GPUs; none is no error.
    pub(super) fn devices(&self) -> Result<u32, DeviceError> {
        let mut count = 0;
        // SAFETY: the pointer is valid for a write of an int.
        match unsafe { (self.device_count)(&mut count) } {
            // Without a GPU `cuInit` fails and the driver then says it was never called.
            status::NO_DEVICE | 3 => Ok(0),
            other => self
                .check("cuDeviceGetCount", other)
                .map(|()| count.unsigned_abs()),
        }
    }

    /// Turns a status into an error that knows nothing of contexts.
    pub(super) fn check(&self, call: &'static str, status: Status) -> Result<(), DeviceError> {
        match status {
            status::SUCCESS => Ok(()),
            other => Err(self.error(call, other)),
        }
    }

    pub(super) fn error(&self, call: &'static str, status: Status) -> DeviceError {
        let (name, text) = self.describe(status);
        DeviceError::Driver {
            call,
            status,
            name,
            text,
        }
    }

    /// The driver's name and sentence for a status.
    pub(super) fn describe(&self, status: Status) -> (String, String) {
        let ask = |function: unsafe extern "C" fn(Status, *mut *const c_char) -> Status| {
            let mut text = std::ptr::null();
            // SAFETY: the driver writes a pointer to a static string, or null.
            unsafe {
                if function(status, &mut text) != status::SUCCESS || text.is_null() {
                    return None;
                }
                Some(CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        let name = ask(self.error_name).unwrap_or_else(|| format!("CUDA error {status}"));
        let text = ask(self.error_string).unwrap_or_else(|| "no description".to_owned());
        (name, text)
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn a_missing_driver_is_an_error_that_says_what_to_do() {
        let error = load_any(&["libtilewright-no-such-driver.so.1"]).unwrap_err();
        let text = error.to_string();
        assert!(text.starts_with("there is no CUDA driver"), "{text}");
        assert!(text.contains("libtilewright-no-such-driver.so.1"), "{text}");
        assert!(text.contains("install the NVIDIA driver"), "{text}");
    }

    #[test]
    fn a_library_that_is_no_driver_is_named() {
        let text = load_any(&["libc.so.6"]).unwrap_err().to_string();
        assert!(
            text.contains("libc.so.6 has no function `cuInit`"),
            "{text}"
        );
    }

    #[test]
    fn structures_have_the_drivers_layout() {
        assert_eq!(size_of::<LaunchAttribute>(), 72);
        assert_eq!(std::mem::offset_of!(LaunchAttribute, value), 8);
        assert_eq!(size_of::<LaunchConfig>(), 56);
        assert_eq!(std::mem::offset_of!(LaunchConfig, stream), 32);
        assert_eq!(std::mem::offset_of!(LaunchConfig, attribute_count), 48);
    }
}
