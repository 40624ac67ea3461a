//! A GPU.

use std::ffi::c_int;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::super::error::{DeviceError, Fault};
use super::api::{self, Api, Status, attribute, status};
use crate::env::Env;

/// A GPU that this process uses. Cheap to clone.
#[derive(Clone)]
pub struct Device {
    pub(super) context: Arc<Context>,
}

/// What a GPU is.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct DeviceInfo {
    pub ordinal: u32,
    pub name: String,
    /// `gfx950`.
    pub arch: String,
    pub compute_units: u32,
    pub memory_bytes: usize,
    pub l2_bytes: u32,
    /// Most LDS of one workgroup.
    pub lds_per_block: u32,
    pub max_threads_per_block: u32,
    pub max_grid: [u32; 3],
    pub wave_size: u32,
    pub clock_khz: u32,
    pub memory_clock_khz: u32,
    pub memory_bus_bits: u32,
    /// ROCm's version.
    pub rocm: (u32, u32),
}

impl Device {
    /// All GPUs the runtime sees. A machine with ROCm and no GPU has none.
    pub fn list() -> Result<Vec<DeviceInfo>, DeviceError> {
        Self::list_with(api::runtime()?)
    }

    /// As [`Device::list`], of the runtime that an environment has.
    pub(crate) fn list_in(env: &Env) -> Result<Vec<DeviceInfo>, DeviceError> {
        Self::list_with(api::load(env)?)
    }

    /// As [`Device::rocm_version`], of the runtime that an environment has.
    pub(crate) fn rocm_in(env: &Env) -> Result<(u32, u32), DeviceError> {
        api::load(env)?.version()
    }

    pub(super) fn list_with(api: &'static Api) -> Result<Vec<DeviceInfo>, DeviceError> {
        (0..api.devices()?).map(|n| info(api, n)).collect()
    }

    /// ROCm's version, as (7, 1).
    pub fn rocm_version() -> Result<(u32, u32), DeviceError> {
        api::runtime()?.version()
    }

    /// Opens a GPU; all who open it share it. After a fault the first to open it again resets it.
    pub fn open(ordinal: u32) -> Result<Self, DeviceError> {
        Self::open_with(api::runtime()?, ordinal)
    }

    pub(super) fn open_with(api: &'static Api, ordinal: u32) -> Result<Self, DeviceError> {
        let mut open = recover(&OPEN);
        let same = |context: &Arc<Context>| {
            context.info.ordinal == ordinal && std::ptr::eq(context.api, api)
        };
        let known = open.iter().filter_map(Weak::upgrade).find(same);
        if let Some(context) = &known
            && !context.is_lost()
        {
            return Ok(Self {
                context: context.clone(),
            });
        }
        let count = api.devices()?;
        if ordinal >= count {
            return Err(DeviceError::NoDevice { ordinal, count });
        }
        let context = Arc::new(Context {
            api,
            info: info(api, ordinal)?,
            lost: AtomicBool::new(false),
            state: Mutex::new(State::default()),
        });
        let device = Self { context };
        if known.is_some() {
            let failed = |error: DeviceError| DeviceError::NotRecovered {
                reason: error.to_string(),
            };
            device
                .context
                .call("hipDeviceReset", |api| {
                    // SAFETY: the lost device is current; what it held is not used again.
                    unsafe { (api.device_reset)() }
                })
                .map_err(failed)?;
            device.synchronize().map_err(failed)?;
        }
        open.retain(|context| context.upgrade().is_some_and(|c| !same(&c)));
        open.push(Arc::downgrade(&device.context));
        Ok(device)
    }

    pub fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    pub fn ordinal(&self) -> u32 {
        self.context.info.ordinal
    }

    /// Waits until all work on the device is done.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.context.call("hipDeviceSynchronize", |api| {
            // SAFETY: the device is current.
            unsafe { (api.device_synchronize)() }
        })?;
        self.context.state().recent.clear();
        Ok(())
    }

    /// Free and total memory in bytes.
    pub fn memory(&self) -> Result<(usize, usize), DeviceError> {
        let (mut free, mut total) = (0, 0);
        self.context.call("hipMemGetInfo", |api| {
            // SAFETY: both pointers are valid for a write.
            unsafe { (api.memory_info)(&mut free, &mut total) }
        })?;
        Ok((free, total))
    }

    /// Whether a kernel faulted and everything of this device handle is lost.
    pub fn is_lost(&self) -> bool {
        self.context.is_lost()
    }
}

impl fmt::Debug for Device {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "Device({} {})", self.ordinal(), self.info().name)
    }
}

/// A handle of the runtime. They may be used from any thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle(pub *mut std::ffi::c_void);

// SAFETY: the runtime's functions are thread safe, and a handle is only ever passed to them.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// The devices in use, so that all who open one share it.
static OPEN: Mutex<Vec<Weak<Context>>> = Mutex::new(Vec::new());

#[derive(Debug)]
pub(super) struct Context {
    pub api: &'static Api,
    pub info: DeviceInfo,
    lost: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub recent: Recent,
    fault: Option<Arc<Fault>>,
}

impl Context {
    /// Whether something of `other` may be used here: after a fault there are a dead and a new
    /// context of one device.
    pub(super) fn same(&self, what: &'static str, other: &Self) -> Result<(), DeviceError> {
        if std::ptr::eq(self, other) {
            return Ok(());
        }
        if self.info.ordinal == other.info.ordinal {
            let dead = if self.is_lost() { self } else { other };
            return Err(dead.lost_error(what));
        }
        Err(DeviceError::OtherDevice {
            what,
            expected: self.info.ordinal,
            found: other.info.ordinal,
        })
    }

    pub(super) fn is_lost(&self) -> bool {
        self.lost.load(Ordering::Acquire)
    }

    /// Runs one call with this device current, and puts the thread's own device back after it.
    pub(super) fn call(
        &self,
        name: &'static str,
        function: impl FnOnce(&Api) -> Status,
    ) -> Result<(), DeviceError> {
        match self.raw_call(name, function)? {
            status::SUCCESS => Ok(()),
            other => Err(self.fail(name, other)),
        }
    }

    /// As `call`, for a caller with its own reading of some statuses.
    pub(super) fn raw_call(
        &self,
        name: &'static str,
        function: impl FnOnce(&Api) -> Status,
    ) -> Result<Status, DeviceError> {
        if self.is_lost() {
            return Err(self.lost_error(name));
        }
        let _guard = self.enter()?;
        Ok(function(self.api))
    }

    /// What a failed call means: a fault marks the device as lost.
    pub(super) fn fail(&self, call: &'static str, failed: Status) -> DeviceError {
        if !status::is_sticky(failed) {
            return self.api.error(call, failed);
        }
        let mut state = self.state();
        self.lost.store(true, Ordering::Release);
        if let Some(fault) = &state.fault {
            return DeviceError::Lost(fault.clone());
        }
        let (name, text) = self.api.describe(failed);
        let fault = Arc::new(Fault {
            device: self.info.ordinal,
            kernels: state.recent.names(),
            name,
            text,
            call,
        });
        state.fault = Some(fault.clone());
        DeviceError::Fault(fault)
    }

    /// Runs a call that a destructor makes: on a live device only, and nobody hears of errors.
    pub(super) fn quietly(&self, name: &'static str, function: impl FnOnce(&Api) -> Status) {
        if let Ok(failed) = self.raw_call(name, function)
            && status::is_sticky(failed)
        {
            self.fail(name, failed);
        }
    }

    pub(super) fn state(&self) -> MutexGuard<'_, State> {
        recover(&self.state)
    }

    fn lost_error(&self, call: &'static str) -> DeviceError {
        let fault = self.state().fault.clone();
        DeviceError::Lost(fault.unwrap_or_else(|| {
            Arc::new(Fault {
                device: self.info.ordinal,
                kernels: Vec::new(),
                name: "unknown".to_owned(),
                text: "an earlier error".to_owned(),
                call,
            })
        }))
    }

    fn enter(&self) -> Result<Option<Restore>, DeviceError> {
        let mut current = 0;
        // SAFETY: the pointer is valid for a write.
        let got = unsafe { (self.api.device_current)(&mut current) };
        self.api.check("hipGetDevice", got)?;
        let own = number(self.info.ordinal);
        if current == own {
            return Ok(None);
        }
        // SAFETY: the device exists.
        let set = unsafe { (self.api.device_set)(own) };
        self.api.check("hipSetDevice", set)?;
        Ok(Some(Restore {
            api: self.api,
            previous: current,
        }))
    }
}

/// Puts the thread's own device back.
#[derive(Debug)]
struct Restore {
    api: &'static Api,
    previous: c_int,
}

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: this device was current a moment ago on this thread.
        unsafe { (self.api.device_set)(self.previous) };
    }
}

/// The kernels launched since work was last known to be done: the suspects of a fault. The oldest
/// is forgotten when it is full; keeping them takes no allocation.
#[derive(Debug, Default)]
pub(super) struct Recent {
    slots: [Option<Arc<str>>; 8],
    next: usize,
}

impl Recent {
    pub(super) fn push(&mut self, kernel: &Arc<str>) {
        let known = self.slots.iter().flatten().any(|k| Arc::ptr_eq(k, kernel));
        if !known {
            self.slots[self.next] = Some(kernel.clone());
            self.next = (self.next + 1) % self.slots.len();
        }
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    fn names(&self) -> Vec<String> {
        self.slots
            .iter()
            .flatten()
            .map(ToString::to_string)
            .collect()
    }
}

fn number(ordinal: u32) -> c_int {
    c_int::try_from(ordinal).unwrap_or(c_int::MAX)
}

fn info(api: &Api, ordinal: u32) -> Result<DeviceInfo, DeviceError> {
    let id = number(ordinal);
    let mut name = [0u8; 256];
    // SAFETY: the runtime writes at most the number of bytes it is told, with a NUL at the end.
    api.check("hipDeviceGetName", unsafe {
        (api.device_name)(name.as_mut_ptr().cast(), name.len() as c_int, id)
    })?;
    let mut memory_bytes = 0;
    // SAFETY: the pointer is valid for a write.
    api.check("hipDeviceTotalMem", unsafe {
        (api.device_memory)(&mut memory_bytes, id)
    })?;
    let get = |what: c_int| {
        let mut value = 0;
        // SAFETY: the pointer is valid for a write.
        let got = unsafe { (api.device_attribute)(&mut value, what, id) };
        api.check("hipDeviceGetAttribute", got)
            .map(|()| value.unsigned_abs())
    };
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    Ok(DeviceInfo {
        ordinal,
        name: String::from_utf8_lossy(&name[..end]).into_owned(),
        arch: api.arch(id)?,
        compute_units: get(attribute::COMPUTE_UNITS)?,
        memory_bytes,
        l2_bytes: get(attribute::L2_BYTES)?,
        lds_per_block: get(attribute::SHARED_PER_BLOCK)?,
        max_threads_per_block: get(attribute::MAX_THREADS_PER_BLOCK)?,
        max_grid: [
            get(attribute::MAX_GRID_X)?,
            get(attribute::MAX_GRID_Y)?,
            get(attribute::MAX_GRID_Z)?,
        ],
        wave_size: get(attribute::WARP_SIZE)?,
        clock_khz: get(attribute::CLOCK_KHZ)?,
        memory_clock_khz: get(attribute::MEMORY_CLOCK_KHZ)?,
        memory_bus_bits: get(attribute::MEMORY_BUS_BITS)?,
        rocm: api.version()?,
    })
}

/// A thread that panicked while it held one of our locks left nothing half done.
fn recover<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
