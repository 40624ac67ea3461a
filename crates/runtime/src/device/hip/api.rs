//! The HIP runtime: its functions, its numbers, and what only it has.

use std::ffi::{CStr, c_char, c_int, c_uint, c_void};
use std::path::Path;
use std::sync::OnceLock;

use super::super::context::Context;
use super::super::driver::{
    Driver, Functions, Names, Owner, RawFunction, RawStream, Status, number,
};
use super::super::error::DeviceError;
use super::super::info::{DeviceInfo, Model};
use super::super::launch::Launch;
use super::super::module::Entry;
use crate::env::Env;
use crate::library::{LoadError, c_api};
use crate::toolchain::amd_search;

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

/// What is called as with every vendor, in the versions of ROCm 5 and later.
const NAMES: Names = Names {
    init: "hipInit",
    version: "hipRuntimeGetVersion",
    device_count: "hipGetDeviceCount",
    device_name: "hipDeviceGetName",
    device_attribute: "hipDeviceGetAttribute",
    device_memory: "hipDeviceTotalMem",
    synchronize: "hipDeviceSynchronize",
    memory_info: "hipMemGetInfo",
    alloc: "hipMalloc",
    free: "hipFree",
    copy_to_device: "hipMemcpyHtoDAsync",
    copy_to_host: "hipMemcpyDtoHAsync",
    copy_on_device: "hipMemcpyDtoDAsync",
    set_bytes: "hipMemsetD8Async",
    set_words: "hipMemsetD32Async",
    stream_create: "hipStreamCreateWithFlags",
    stream_destroy: "hipStreamDestroy",
    stream_synchronize: "hipStreamSynchronize",
    stream_query: "hipStreamQuery",
    stream_wait: "hipStreamWaitEvent",
    event_create: "hipEventCreateWithFlags",
    event_destroy: "hipEventDestroy",
    event_record: "hipEventRecord",
    event_synchronize: "hipEventSynchronize",
    event_elapsed: "hipEventElapsedTime",
    module_load: "hipModuleLoadData",
    module_unload: "hipModuleUnload",
    module_function: "hipModuleGetFunction",
    occupancy: "hipModuleOccupancyMaxActiveBlocksPerMultiprocessor",
    launch: "hipModuleLaunchKernel",
};

c_api! {
    /// What only the HIP runtime has.
    pub(crate) struct Own {
        error_name = "hipGetErrorName"(Status) -> *const c_char;
        error_string = "hipGetErrorString"(Status) -> *const c_char;

        device_current = "hipGetDevice"(*mut c_int) -> Status;
        device_set = "hipSetDevice"(c_int) -> Status;
        device_reset = "hipDeviceReset"() -> Status;
    }
    optional {
        // The structure grew with ROCm 6, and its function got a new name.
        properties_6 = "hipGetDevicePropertiesR0600"(*mut c_void, c_int) -> Status;
        properties = "hipGetDeviceProperties"(*mut c_void, c_int) -> Status;
        launch_cooperative = "hipModuleLaunchCooperativeKernel"(
            RawFunction,
            c_uint, c_uint, c_uint,
            c_uint, c_uint, c_uint,
            c_uint, RawStream, *mut *mut c_void,
        ) -> Status;
    }
}

/// The HIP runtime.
#[derive(Debug)]
pub(crate) struct Api {
    functions: Functions,
    own: Own,
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

/// A version as the runtime counts it, as (7, 1).
pub(super) fn version(number: u32) -> (u32, u32) {
    (number / 10_000_000, number / 100_000 % 100)
}

fn open(path: &Path) -> Result<&'static Api, DeviceError> {
    let api = Api::load(path).map_err(DeviceError::BadHip)?;
    let api: &'static Api = Box::leak(Box::new(api));
    api.start()?;
    Ok(api)
}

impl Api {
    fn load(path: &Path) -> Result<Self, LoadError> {
        Ok(Self {
            functions: Functions::load(path, &NAMES)?,
            own: Own::load(path)?,
        })
    }

    /// The GPU's architecture, `gfx950`. The structure of properties has another layout in each
    /// major version, but the name always stands in it as text, behind the GPU's own name.
    fn arch(&self, ordinal: c_int) -> Result<String, DeviceError> {
        // Several times what any version fills.
        let mut properties = vec![0u8; 16 * 1024];
        let Some(function) = self.own.properties_6.or(self.own.properties) else {
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

/// A thread works with one GPU at a time, by its number. The first has number 0, which no [`Owner`]
/// may have.
fn owner(id: c_int) -> Owner {
    Owner(id.unsigned_abs() as usize + 1)
}

impl Driver for Api {
    fn functions(&self) -> &Functions {
        &self.functions
    }

    fn names(&self) -> &'static Names {
        &NAMES
    }

    fn describe(&self, status: Status) -> (String, String) {
        let ask = |function: unsafe extern "C" fn(Status) -> *const c_char| {
            // SAFETY: the runtime returns a static string, or null.
            unsafe {
                let text = function(status);
                (!text.is_null()).then(|| CStr::from_ptr(text).to_string_lossy().into_owned())
            }
        };
        let name = ask(self.own.error_name).unwrap_or_else(|| format!("HIP error {status}"));
        let text = ask(self.own.error_string).unwrap_or_else(|| "no description".to_owned());
        (name, text)
    }

    /// Uncorrectable memory errors, illegal addresses, kernels that hang, assert or abort.
    fn is_sticky(&self, status: Status) -> bool {
        matches!(status, 214 | 700 | 702 | 710 | 719)
    }

    fn info(&self, ordinal: u32) -> Result<DeviceInfo, DeviceError> {
        let id = number(ordinal);
        let get = |what| self.device_attribute(what, id);
        let max_threads_per_block = get(attribute::MAX_THREADS_PER_BLOCK)?;
        Ok(DeviceInfo {
            ordinal,
            name: self.device_name(id)?,
            model: Model::Amd {
                arch: self.arch(id)?,
            },
            multiprocessors: get(attribute::COMPUTE_UNITS)?,
            memory_bytes: self.device_memory(id)?,
            l2_bytes: get(attribute::L2_BYTES)?,
            shared_per_block: get(attribute::SHARED_PER_BLOCK)?,
            max_threads_per_block,
            max_block_z: max_threads_per_block,
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

    /// The runtime keeps every GPU ready until the process ends.
    fn retain(&self, ordinal: u32) -> Result<Owner, DeviceError> {
        Ok(owner(number(ordinal)))
    }

    fn release(&self, _: u32) {}

    fn reset(&self, ordinal: u32, _: bool) -> Result<(), DeviceError> {
        let before = self.current()?;
        self.set_current(owner(number(ordinal)))?;
        // SAFETY: the lost device is current; what it held is not used again.
        let reset = unsafe { (self.own.device_reset)() };
        self.set_current(before)?;
        self.check("hipDeviceReset", reset)
    }

    fn current(&self) -> Result<Owner, DeviceError> {
        let mut current = 0;
        // SAFETY: the pointer is valid for a write.
        let got = unsafe { (self.own.device_current)(&mut current) };
        self.check("hipGetDevice", got)?;
        Ok(owner(current))
    }

    fn set_current(&self, owner: Owner) -> Result<(), DeviceError> {
        let id = owner.0.saturating_sub(1);
        // SAFETY: any number may be asked for.
        let set = unsafe { (self.own.device_set)(c_int::try_from(id).unwrap_or(c_int::MAX)) };
        self.check("hipSetDevice", set)
    }

    fn image_help(&self, info: &DeviceInfo) -> String {
        let (major, minor) = info.driver;
        format!(
            "this is ROCm {major}.{minor}, and code of a newer clang may need a newer ROCm or \
             `-mcode-object-version=5`"
        )
    }

    fn max_threads(
        &self,
        context: &Context,
        _: RawFunction,
        entry: &Entry,
    ) -> Result<u32, DeviceError> {
        let most = context.info.max_threads_per_block;
        Ok(entry.max_threads.map_or(most, |own| own.min(most)))
    }

    /// A kernel may have all of a compute unit's LDS without asking.
    fn allow_shared(&self, _: &Context, _: RawFunction, _: u32) -> Result<(), DeviceError> {
        Ok(())
    }

    /// All blocks at once; a launch in clusters was refused before.
    unsafe fn launch_with(
        &self,
        context: &Context,
        function: RawFunction,
        launch: &Launch,
        stream: RawStream,
        params: *mut *mut c_void,
    ) -> Result<(), DeviceError> {
        let call = "hipModuleLaunchCooperativeKernel";
        let Some(cooperative) = self.own.launch_cooperative else {
            return Err(DeviceError::TooOld { call });
        };
        let ([gx, gy, gz], [bx, by, bz]) = (launch.grid, launch.block);
        let shared = launch.shared;
        context.call(call, |_| {
            // SAFETY: the caller vouches for the function and its parameters.
            unsafe { cooperative(function, gx, gy, gz, bx, by, bz, shared, stream, params) }
        })
    }
}
