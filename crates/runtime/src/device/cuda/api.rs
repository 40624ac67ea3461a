//! The CUDA driver: its functions, its numbers, and what only it has.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::OnceLock;

use super::super::context::Context;
use super::super::driver::{
    Driver, Functions, Names, Owner, RawFunction, RawStream, Status, number, status,
};
use super::super::error::DeviceError;
use super::super::info::{DeviceInfo, Model};
use super::super::launch::Launch;
use super::super::module::Entry;
use crate::library::{LoadError, c_api};

pub(super) type DeviceId = c_int;
pub(super) type RawContext = *mut c_void;

/// `CUdevice_attribute`.
pub(super) mod attribute {
    use std::ffi::c_int;
    pub const MAX_THREADS_PER_BLOCK: c_int = 1;
    pub const MAX_GRID_X: c_int = 5;
    pub const MAX_GRID_Y: c_int = 6;
    pub const MAX_GRID_Z: c_int = 7;
    pub const WARP_SIZE: c_int = 10;
    pub const CLOCK_KHZ: c_int = 13;
    pub const MULTIPROCESSORS: c_int = 16;
    pub const MEMORY_CLOCK_KHZ: c_int = 36;
    pub const MEMORY_BUS_BITS: c_int = 37;
    pub const L2_BYTES: c_int = 38;
    pub const CAPABILITY_MAJOR: c_int = 75;
    pub const CAPABILITY_MINOR: c_int = 76;
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

/// The largest cluster that every GPU with clusters has; larger ones must be asked for.
const PORTABLE_CLUSTER: u32 = 8;

/// What is called as with every vendor, in the versions of CUDA 11 and later.
const NAMES: Names = Names {
    init: "cuInit",
    version: "cuDriverGetVersion",
    device_count: "cuDeviceGetCount",
    device_name: "cuDeviceGetName",
    device_attribute: "cuDeviceGetAttribute",
    device_memory: "cuDeviceTotalMem_v2",
    synchronize: "cuCtxSynchronize",
    memory_info: "cuMemGetInfo_v2",
    alloc: "cuMemAlloc_v2",
    free: "cuMemFree_v2",
    copy_to_device: "cuMemcpyHtoDAsync_v2",
    copy_to_host: "cuMemcpyDtoHAsync_v2",
    copy_on_device: "cuMemcpyDtoDAsync_v2",
    set_bytes: "cuMemsetD8Async",
    set_words: "cuMemsetD32Async",
    stream_create: "cuStreamCreate",
    stream_destroy: "cuStreamDestroy_v2",
    stream_synchronize: "cuStreamSynchronize",
    stream_query: "cuStreamQuery",
    stream_wait: "cuStreamWaitEvent",
    event_create: "cuEventCreate",
    event_destroy: "cuEventDestroy_v2",
    event_record: "cuEventRecord",
    event_synchronize: "cuEventSynchronize",
    event_elapsed: "cuEventElapsedTime",
    module_load: "cuModuleLoadData",
    module_unload: "cuModuleUnload",
    module_function: "cuModuleGetFunction",
    occupancy: "cuOccupancyMaxActiveBlocksPerMultiprocessor",
    launch: "cuLaunchKernel",
};

c_api! {
    /// What only the CUDA driver has.
    pub(crate) struct Own {
        error_name = "cuGetErrorName"(Status, *mut *const c_char) -> Status;
        error_string = "cuGetErrorString"(Status, *mut *const c_char) -> Status;

        device_get = "cuDeviceGet"(*mut DeviceId, c_int) -> Status;
        primary_retain = "cuDevicePrimaryCtxRetain"(*mut RawContext, DeviceId) -> Status;
        primary_release = "cuDevicePrimaryCtxRelease_v2"(DeviceId) -> Status;
        primary_reset = "cuDevicePrimaryCtxReset_v2"(DeviceId) -> Status;
        context_get = "cuCtxGetCurrent"(*mut RawContext) -> Status;
        context_set = "cuCtxSetCurrent"(RawContext) -> Status;

        function_get = "cuFuncGetAttribute"(*mut c_int, c_int, RawFunction) -> Status;
        function_set = "cuFuncSetAttribute"(RawFunction, c_int, c_int) -> Status;
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

/// The CUDA driver.
#[derive(Debug)]
pub(crate) struct Api {
    pub(super) functions: Functions,
    pub(super) own: Own,
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

/// A version as the driver counts it, as (13, 0).
pub(super) fn version(number: u32) -> (u32, u32) {
    (number / 1000, number % 1000 / 10)
}

impl Api {
    fn load(path: &Path) -> Result<Self, LoadError> {
        Ok(Self {
            functions: Functions::load(path, &NAMES)?,
            own: Own::load(path)?,
        })
    }

    fn device_id(&self, ordinal: u32) -> Result<DeviceId, DeviceError> {
        let mut id = 0;
        // SAFETY: the pointer is valid for a write.
        match unsafe { (self.own.device_get)(&mut id, number(ordinal)) } {
            status::INVALID_DEVICE => Err(DeviceError::NoDevice {
                ordinal,
                count: self.devices()?,
            }),
            other => self.check("cuDeviceGet", other).map(|()| id),
        }
    }

    fn set_attribute(
        &self,
        context: &Context,
        function: RawFunction,
        what: c_int,
        value: c_int,
    ) -> Result<(), DeviceError> {
        context.call("cuFuncSetAttribute", |_| {
            // SAFETY: the function is loaded.
            unsafe { (self.own.function_set)(function, what, value) }
        })
    }
}

impl Driver for Api {
    fn functions(&self) -> &Functions {
        &self.functions
    }

    fn names(&self) -> &'static Names {
        &NAMES
    }

    fn describe(&self, status: Status) -> (String, String) {
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
        let name = ask(self.own.error_name).unwrap_or_else(|| format!("CUDA error {status}"));
        let text = ask(self.own.error_string).unwrap_or_else(|| "no description".to_owned());
        (name, text)
    }

    /// Illegal and misaligned addresses, traps, asserts, failed launches, uncorrectable memory
    /// errors, a context that somebody destroyed.
    fn is_sticky(&self, status: Status) -> bool {
        matches!(status, 214 | 226 | 700 | 702 | 709 | 710 | 714..=719 | 721)
    }

    fn info(&self, ordinal: u32) -> Result<DeviceInfo, DeviceError> {
        let id = self.device_id(ordinal)?;
        let get = |what| self.device_attribute(what, id);
        Ok(DeviceInfo {
            ordinal,
            name: self.device_name(id)?,
            model: Model::Nvidia {
                capability: (
                    get(attribute::CAPABILITY_MAJOR)?,
                    get(attribute::CAPABILITY_MINOR)?,
                ),
            },
            multiprocessors: get(attribute::MULTIPROCESSORS)?,
            memory_bytes: self.device_memory(id)?,
            l2_bytes: get(attribute::L2_BYTES)?,
            shared_per_block: get(attribute::SHARED_PER_BLOCK_OPTIN)?,
            max_threads_per_block: get(attribute::MAX_THREADS_PER_BLOCK)?,
            max_block_z: 64,
            max_grid: [
                get(attribute::MAX_GRID_X)?,
                get(attribute::MAX_GRID_Y)?,
                get(attribute::MAX_GRID_Z)?,
            ],
            warp_size: get(attribute::WARP_SIZE)?,
            clock_khz: get(attribute::CLOCK_KHZ)?,
            memory_clock_khz: get(attribute::MEMORY_CLOCK_KHZ)?,
            memory_bus_bits: get(attribute::MEMORY_BUS_BITS)?,
            driver: version(self.raw_version()?),
        })
    }

    fn retain(&self, ordinal: u32) -> Result<Owner, DeviceError> {
        let id = self.device_id(ordinal)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is valid for a write and the device exists.
        let got = unsafe { (self.own.primary_retain)(&mut raw, id) };
        self.check("cuDevicePrimaryCtxRetain", got)?;
        Ok(Owner(raw as usize))
    }

    fn release(&self, ordinal: u32) {
        if let Ok(id) = self.device_id(ordinal) {
            // SAFETY: the device exists, and each context is released once.
            unsafe { (self.own.primary_release)(id) };
        }
    }

    fn reset(&self, ordinal: u32, held: bool) -> Result<(), DeviceError> {
        let id = self.device_id(ordinal)?;
        // These calls report the fault that brought us here; whether the device works again is
        // for the caller to find out.
        // SAFETY: clearing the thread's context is always allowed; the device exists.
        unsafe { (self.own.context_set)(std::ptr::null_mut()) };
        if held {
            self.release(ordinal);
        }
        // SAFETY: the device exists.
        unsafe { (self.own.primary_reset)(id) };
        Ok(())
    }

    fn current(&self) -> Result<Owner, DeviceError> {
        let mut current: RawContext = std::ptr::null_mut();
        // SAFETY: the pointer is valid for a write.
        let got = unsafe { (self.own.context_get)(&mut current) };
        self.check("cuCtxGetCurrent", got)?;
        Ok(Owner(current as usize))
    }

    fn set_current(&self, owner: Owner) -> Result<(), DeviceError> {
        // SAFETY: an owner is a context that this process retained, or that was current before.
        let set = unsafe { (self.own.context_set)(owner.0 as RawContext) };
        self.check("cuCtxSetCurrent", set)
    }

    fn image_help(&self, info: &DeviceInfo) -> String {
        let (major, minor) = info.driver;
        format!(
            "the driver supports CUDA {major}.{minor}, and code of a newer major version needs a \
             newer driver or NVRTC {major} (TILEWRIGHT_NVRTC)"
        )
    }

    fn max_threads(
        &self,
        context: &Context,
        function: RawFunction,
        _: &Entry,
    ) -> Result<u32, DeviceError> {
        let mut most = 0;
        context.call("cuFuncGetAttribute", |_| {
            let what = function_attribute::MAX_THREADS_PER_BLOCK;
            // SAFETY: the pointer is valid for a write and the function is loaded.
            unsafe { (self.own.function_get)(&mut most, what, function) }
        })?;
        Ok(most.unsigned_abs())
    }

    fn allow_shared(
        &self,
        context: &Context,
        function: RawFunction,
        bytes: u32,
    ) -> Result<(), DeviceError> {
        let value = i32::try_from(bytes).unwrap_or(i32::MAX);
        let what = function_attribute::MAX_DYNAMIC_SHARED;
        self.set_attribute(context, function, what, value)
    }

    unsafe fn launch_with(
        &self,
        context: &Context,
        function: RawFunction,
        launch: &Launch,
        stream: RawStream,
        params: *mut *mut c_void,
    ) -> Result<(), DeviceError> {
        let Some(launch_ex) = self.own.launch_ex else {
            return Err(DeviceError::TooOld {
                call: "cuLaunchKernelEx",
            });
        };
        let attribute = |id, front: [u32; 3]| {
            let mut value = [0; 16];
            value[..3].copy_from_slice(&front);
            LaunchAttribute {
                id,
                pad: [0; 4],
                value,
            }
        };
        let mut attributes = [attribute(0, [0; 3]); 2];
        let mut count = 0;
        if let Some(cluster) = launch.cluster {
            if cluster.iter().product::<u32>() > PORTABLE_CLUSTER {
                let what = function_attribute::NON_PORTABLE_CLUSTER;
                self.set_attribute(context, function, what, 1)?;
            }
            attributes[count] = attribute(LAUNCH_CLUSTER, cluster);
            count += 1;
        }
        if launch.cooperative {
            attributes[count] = attribute(LAUNCH_COOPERATIVE, [1, 0, 0]);
            count += 1;
        }
        let config = LaunchConfig {
            grid: launch.grid,
            block: launch.block,
            shared: launch.shared,
            stream,
            attributes: attributes.as_ptr(),
            attribute_count: count as u32,
        };
        context.call("cuLaunchKernelEx", |_| {
            // SAFETY: the caller vouches for the function and its parameters; `config` and its
            // attributes live through the call.
            unsafe { launch_ex(&config, function, params, std::ptr::null_mut()) }
        })
    }

    fn as_cuda(&self) -> Option<&Api> {
        Some(self)
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
