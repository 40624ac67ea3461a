//! The functions of the HIP runtime that we call, and its numbers.

use std::ffi::{CStr, c_char, c_float, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::OnceLock;

use super::super::error::DeviceError;
use crate::env::Env;
use crate::library::c_api;
use crate::toolchain::amd_search;

pub(super) type Status = c_int;
/// `hipDeviceptr_t` is a `void*`; as a number it can be counted with.
pub(super) type DevicePtr = u64;
pub(super) type RawStream = *mut c_void;
pub(super) type RawEvent = *mut c_void;
pub(super) type RawModule = *mut c_void;
pub(super) type RawFunction = *mut c_void;

/// `hipError_t`: the values that get a treatment of their own.
pub(super) mod status {
    use super::Status;
    pub const SUCCESS: Status = 0;
    pub const OUT_OF_MEMORY: Status = 2;
    pub const NO_DEVICE: Status = 100;
    pub const INVALID_IMAGE: Status = 200;
    pub const NO_BINARY_FOR_GPU: Status = 209;
    pub const NOT_FOUND: Status = 500;
    pub const NOT_READY: Status = 600;

    /// Errors after which the GPU must be reset: uncorrectable memory errors, illegal addresses,
    /// kernels that hang, assert or abort.
    pub fn is_sticky(status: Status) -> bool {
        matches!(status, 214 | 700 | 702 | 710 | 719)
    }
}

/// `hipDeviceAttribute_t`, whose numbers are fixed since ROCm 5.
pub(super) mod attribute {
    use std::ffi::c_int;
    pub const CLOCK_KHZ: c_int = 5;
    pub const L2_BYTES: c_int = 19;
    pub const MAX_GRID_X: c_int = 29;
    pub const MAX_GRID_Y: c_int = 30;
    pub const MAX_GRID_Z: c_int = 31;
    pub const MAX_THREADS_PER_BLOCK: c_int = 56;
    pub const MEMORY_BUS_BITS: c_int = 59;
    pub const MEMORY_CLOCK_KHZ: c_int = 60;
    pub const COMPUTE_UNITS: c_int = 63;
    pub const SHARED_PER_BLOCK: c_int = 74;
    pub const WARP_SIZE: c_int = 87;
}

c_api! {
    /// The runtime's functions, in the versions of ROCm 5 and later.
    pub(crate) struct Api {
        init = "hipInit"(c_uint) -> Status;
        runtime_version = "hipRuntimeGetVersion"(*mut c_int) -> Status;
        error_name = "hipGetErrorName"(Status) -> *const c_char;
        error_string = "hipGetErrorString"(Status) -> *const c_char;

        device_count = "hipGetDeviceCount"(*mut c_int) -> Status;
        device_current = "hipGetDevice"(*mut c_int) -> Status;
        device_set = "hipSetDevice"(c_int) -> Status;
        device_name = "hipDeviceGetName"(*mut c_char, c_int, c_int) -> Status;
        device_attribute = "hipDeviceGetAttribute"(*mut c_int, c_int, c_int) -> Status;
        device_memory = "hipDeviceTotalMem"(*mut usize, c_int) -> Status;
        device_synchronize = "hipDeviceSynchronize"() -> Status;
        device_reset = "hipDeviceReset"() -> Status;

        memory_info = "hipMemGetInfo"(*mut usize, *mut usize) -> Status;
        alloc = "hipMalloc"(*mut DevicePtr, usize) -> Status;
        free = "hipFree"(DevicePtr) -> Status;
        copy_to_device = "hipMemcpyHtoDAsync"(DevicePtr, *const c_void, usize, RawStream) -> Status;
        copy_to_host = "hipMemcpyDtoHAsync"(*mut c_void, DevicePtr, usize, RawStream) -> Status;
        copy_on_device = "hipMemcpyDtoDAsync"(DevicePtr, DevicePtr, usize, RawStream) -> Status;
        set_bytes = "hipMemsetD8Async"(DevicePtr, u8, usize, RawStream) -> Status;
        set_words = "hipMemsetD32Async"(DevicePtr, c_uint, usize, RawStream) -> Status;

        stream_create = "hipStreamCreateWithFlags"(*mut RawStream, c_uint) -> Status;
        stream_destroy = "hipStreamDestroy"(RawStream) -> Status;
        stream_synchronize = "hipStreamSynchronize"(RawStream) -> Status;
        stream_query = "hipStreamQuery"(RawStream) -> Status;
        stream_wait = "hipStreamWaitEvent"(RawStream, RawEvent, c_uint) -> Status;
        event_create = "hipEventCreateWithFlags"(*mut RawEvent, c_uint) -> Status;
        event_destroy = "hipEventDestroy"(RawEvent) -> Status;
        event_record = "hipEventRecord"(RawEvent, RawStream) -> Status;
        event_synchronize = "hipEventSynchronize"(RawEvent) -> Status;
        event_elapsed = "hipEventElapsedTime"(*mut c_float, RawEvent, RawEvent) -> Status;

        module_load = "hipModuleLoadData"(*mut RawModule, *const c_void) -> Status;
        module_unload = "hipModuleUnload"(RawModule) -> Status;
        module_function = "hipModuleGetFunction"(*mut RawFunction, RawModule, *const c_char) -> Status;
        occupancy = "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor"(
            *mut c_int, RawFunction, c_int, usize,
        ) -> Status;
        launch = "hipModuleLaunchKernel"(
            RawFunction,
            c_uint, c_uint, c_uint,
            c_uint, c_uint, c_uint,
            c_uint, RawStream, *mut *mut c_void, *mut *mut c_void,
        ) -> Status;
    }
    optional {
        // The structure grew with ROCm 6, and its function got a new name.
        properties_6 = "hipGetDevicePropertiesR0600"(*mut c_void, c_int) -> Status;
        properties = "hipGetDeviceProperties"(*mut c_void, c_int) -> Status;
    }
}

/// The runtime of this process, initialised.
pub(super) fn runtime() -> Result<&'static Api, DeviceError> {
    static RUNTIME: OnceLock<Result<&'static Api, DeviceError>> = OnceLock::new();
    RUNTIME.get_or_init(|| load(&Env::process())).clone()
}

/// Finds, loads and initialises the runtime of an environment.
pub(super) fn load(env: &Env) -> Result<&'static Api, DeviceError> {
    let (path, _) = amd_search::find_hip(env).map_err(DeviceError::NoHip)?;
    open(&path)
}

fn open(path: &Path) -> Result<&'static Api, DeviceError> {
    let api = Api::load(path).map_err(DeviceError::BadHip)?;
    let api: &'static Api = Box::leak(Box::new(api));
    // SAFETY: the only argument allowed is 0.
    match unsafe { (api.init)(0) } {
        // A machine with ROCm and no GPU has no devices; that is no error here.
        status::SUCCESS | status::NO_DEVICE => Ok(api),
        other => Err(api.error("hipInit", other)),
    }
}

impl Api {
    /// ROCm's version, as (7, 1).
    pub(super) fn version(&self) -> Result<(u32, u32), DeviceError> {
        let mut version = 0;
        // SAFETY: the pointer is valid for a write of an int.
        self.check("hipRuntimeGetVersion", unsafe {
            (self.runtime_version)(&mut version)
        })?;
        let version = version.unsigned_abs();
        Ok((version / 10_000_000, version / 100_000 % 100))
    }

    /// The number of GPUs; none is no error.
    pub(super) fn devices(&self) -> Result<u32, DeviceError> {
        let mut count = 0;
        // SAFETY: the pointer is valid for a write of an int.
        match unsafe { (self.device_count)(&mut count) } {
            status::NO_DEVICE => Ok(0),
            other => self
                .check("hipGetDeviceCount", other)
                .map(|()| count.unsigned_abs()),
        }
    }

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

    /// The runtime's name and sentence for a status.
    pub(super) fn describe(&self, status: Status) -> (String, String) {
        let ask = |function: unsafe extern "C" fn(Status) -> *const c_char| {
            // SAFETY: the runtime returns a static string, or null.
            unsafe {
                let text = function(status);
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        let name = ask(self.error_name).unwrap_or_else(|| format!("HIP error {status}"));
        let text = ask(self.error_string).unwrap_or_else(|| "no description".to_owned());
        (name, text)
    }

    /// The GPU's architecture, `gfx950`. The structure of properties has another layout in each
    /// major version, but the name always stands in it as text, behind the GPU's own name.
    pub(super) fn arch(&self, ordinal: c_int) -> Result<String, DeviceError> {
        // Several times what any version fills.
        let mut properties = vec![0u8; 16 * 1024];
        let Some(function) = self.properties_6.or(self.properties) else {
            return Err(DeviceError::TooOld {
                call: "hipGetDeviceProperties",
            });
        };
        // SAFETY: the memory is zeroed and much larger than the structure of any version.
        let got = unsafe { function(properties.as_mut_ptr().cast(), ordinal) };
        self.check("hipGetDeviceProperties", got)?;
        const NAME: usize = 256;
        let text = &properties[NAME..];
        let start = text
            .windows(4)
            .position(|w| w.starts_with(b"gfx") && w[3].is_ascii_hexdigit());
        let name: String = start.map_or(String::new(), |start| {
            let rest = text[start..].iter();
            let name = rest.take_while(|b| b.is_ascii_alphanumeric());
            name.map(|b| char::from(*b)).collect()
        });
        match name.is_empty() {
            false => Ok(name),
            true => Err(DeviceError::Driver {
                call: "hipGetDeviceProperties",
                status: 0,
                name: "no architecture".to_owned(),
                text: "the properties name no gfx architecture".to_owned(),
            }),
        }
    }
}
