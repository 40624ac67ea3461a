//! A GPU and its primary context.

use std::ffi::c_int;
use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::super::error::{DeviceError, Fault};
use super::api::{self, Api, DeviceId, RawContext, RawStream, Status, attribute, status};

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
    /// Compute capability, (9, 0) for Hopper.
    pub capability: (u32, u32),
    pub multiprocessors: u32,
    pub memory_bytes: usize,
    pub l2_bytes: u32,
    /// Most shared memory of one block, once a kernel asks for it.
    pub shared_per_block: u32,
    pub shared_per_multiprocessor: u32,
    pub registers_per_block: u32,
    pub max_threads_per_block: u32,
    pub max_grid: [u32; 3],
    pub warp_size: u32,
    pub clock_khz: u32,
    pub memory_clock_khz: u32,
    pub memory_bus_bits: u32,
    /// The CUDA version that the driver supports.
    pub driver: (u32, u32),
}

impl DeviceInfo {
    /// The machine code target that can use all of this GPU. From Hopper on, the letter brings
    /// the instructions of just this generation (wgmma, tcgen05).
    pub fn arch(&self) -> String {
        let (major, minor) = self.capability;
        match major {
            9.. => format!("sm_{major}{minor}a"),
            _ => format!("sm_{major}{minor}"),
        }
    }

    /// Whether machine code for `arch` runs here: the same major version and no newer minor one;
    /// code with a letter runs on exactly its own version.
    pub fn runs(&self, arch: &str) -> bool {
        let Some(number) = arch.strip_prefix("sm_") else {
            return false;
        };
        let digits = number.trim_end_matches(|c: char| c.is_ascii_lowercase());
        let Ok(code) = digits.parse::<u32>() else {
            return false;
        };
        let (major, minor) = (code / 10, code % 10);
        let letter = &number[digits.len()..];
        match letter {
            "a" => (major, minor) == self.capability,
            // `f` is for a family: the same major version, from this minor one on.
            "" | "f" => major == self.capability.0 && minor <= self.capability.1,
            _ => false,
        }
    }
}

impl Device {
    /// All GPUs the driver sees. A machine with a driver and no GPU has none.
    pub fn list() -> Result<Vec<DeviceInfo>, DeviceError> {
        let api = api::driver()?;
        (0..api.devices()?)
            .map(|ordinal| info(api, ordinal))
            .collect()
    }

    /// The CUDA version that the driver supports, as (13, 0).
    pub fn driver_version() -> Result<(u32, u32), DeviceError> {
        api::driver()?.version()
    }

    /// Opens a GPU; all who open it share one context. After a fault the first to open it again
    /// destroys the dead context, with all that was in it, and makes a new one.
    pub fn open(ordinal: u32) -> Result<Self, DeviceError> {
        Self::open_with(api::driver()?, ordinal)
    }

    pub(super) fn open_with(api: &'static Api, ordinal: u32) -> Result<Self, DeviceError> {
        let mut open = recover(&OPEN);
        open.retain(|context| context.strong_count() > 0);
        let same = |context: &Arc<Context>| {
            context.info.ordinal == ordinal && std::ptr::eq(context.api, api)
        };
        let known = open.iter().filter_map(Weak::upgrade).find(same);
        let context = match known {
            Some(context) if !context.is_lost() => return Ok(Self { context }),
            Some(dead) => Context::replace(&dead)?,
            None => Context::new(api, ordinal)?,
        };
        open.retain(|context| !context.upgrade().is_some_and(|c| same(&c)));
        open.push(Arc::downgrade(&context));
        Ok(Self { context })
    }

    pub fn info(&self) -> &DeviceInfo {
        &self.context.info
    }

    pub fn ordinal(&self) -> u32 {
        self.context.info.ordinal
    }

    /// Waits until all work on the device is done.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        let context = &self.context;
        context.call("cuCtxSynchronize", |api| {
            // SAFETY: the context is current.
            unsafe { (api.context_synchronize)() }
        })?;
        context.state().recent.clear();
        Ok(())
    }

    /// Free and total memory in bytes.
    pub fn memory(&self) -> Result<(usize, usize), DeviceError> {
        let (mut free, mut total) = (0, 0);
        self.context.call("cuMemGetInfo", |api| {
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

/// A handle of the driver. They may be used from any thread.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Handle(pub *mut std::ffi::c_void);

// SAFETY: the driver's functions are thread safe, and a handle is only ever passed to them.
unsafe impl Send for Handle {}
// SAFETY: as above.
unsafe impl Sync for Handle {}

/// The contexts in use, so that all who open a device share one.
static OPEN: Mutex<Vec<Weak<Context>>> = Mutex::new(Vec::new());

#[derive(Debug)]
pub(super) struct Context {
    pub api: &'static Api,
    pub info: DeviceInfo,
    id: DeviceId,
    raw: Handle,
    lost: AtomicBool,
    /// The primary context was given back already, by who replaced this one.
    released: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub recent: Recent,
    fault: Option<Arc<Fault>>,
}

impl Context {
    fn new(api: &'static Api, ordinal: u32) -> Result<Arc<Self>, DeviceError> {
        let count = api.devices()?;
        if ordinal >= count {
            return Err(DeviceError::NoDevice { ordinal, count });
        }
        let info = info(api, ordinal)?;
        let id = device_id(api, ordinal)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: the pointer is valid for a write and the device exists.
        api.check("cuDevicePrimaryCtxRetain", unsafe {
            (api.primary_retain)(&mut raw, id)
        })?;
        Ok(Arc::new(Self {
            api,
            info,
            id,
            raw: Handle(raw),
            lost: AtomicBool::new(false),
            released: AtomicBool::new(false),
            state: Mutex::new(State::default()),
        }))
    }

    /// Destroys a dead context and makes a new one. Resetting is not enough on its own: what we
    /// hold must be given back too, or the driver keeps handing out the dead one.
    fn replace(dead: &Self) -> Result<Arc<Self>, DeviceError> {
        let api = dead.api;
        // These calls report the fault that brought us here, so only the last one's word counts.
        // SAFETY: clearing the thread's context is always allowed; the device exists; the dead
        // context was retained once and `released` keeps its drop from releasing it again.
        unsafe {
            (api.context_set)(std::ptr::null_mut());
            if !dead.released.swap(true, Ordering::AcqRel) {
                (api.primary_release)(dead.id);
            }
            (api.primary_reset)(dead.id);
        }
        let not_recovered = |error: DeviceError| DeviceError::NotRecovered {
            reason: error.to_string(),
        };
        let context = Self::new(api, dead.info.ordinal).map_err(not_recovered)?;
        let device = Device { context };
        device.synchronize().map_err(not_recovered)?;
        Ok(device.context)
    }

    /// Whether something of `other` may be used here: the context must be the very same one, for
    /// after a fault there are a dead and a new one of one device.
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

    /// Runs one call of the driver with this context current, and puts the thread's own context
    /// back after it.
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

    /// What a failed call means: a fault marks the whole context as lost.
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

    /// Runs a call that a destructor makes: on a live context only, and nobody hears of errors.
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
        let mut current: RawContext = std::ptr::null_mut();
        // SAFETY: the pointer is valid for a write.
        let got = unsafe { (self.api.context_get)(&mut current) };
        self.api.check("cuCtxGetCurrent", got)?;
        if current == self.raw.0 {
            return Ok(None);
        }
        // SAFETY: the context is retained as long as this object lives.
        let set = unsafe { (self.api.context_set)(self.raw.0) };
        self.api.check("cuCtxSetCurrent", set)?;
        // A thread that had no context keeps ours: nobody misses what was not there, and the
        // next call is spared two switches.
        Ok((!current.is_null()).then(|| Restore {
            api: self.api,
            previous: current,
        }))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.released.swap(true, Ordering::AcqRel) {
            // SAFETY: the context was retained once in `new` and is released once.
            unsafe { (self.api.primary_release)(self.id) };
        }
    }
}

/// Puts another library's context back on this thread.
#[derive(Debug)]
struct Restore {
    api: &'static Api,
    previous: RawContext,
}

impl Drop for Restore {
    fn drop(&mut self) {
        // SAFETY: this context was current a moment ago on this thread.
        unsafe { (self.api.context_set)(self.previous) };
    }
}

/// The kernels launched since work was last known to be done: the suspects of a fault. The oldest
/// is forgotten when it is full; keeping them takes no allocation.
#[derive(Debug, Default)]
pub(super) struct Recent {
    slots: [Option<(Handle, Arc<str>)>; 8],
    next: usize,
}

impl Recent {
    pub(super) fn push(&mut self, stream: RawStream, kernel: &Arc<str>) {
        let stream = Handle(stream);
        let last = (self.next + self.slots.len() - 1) % self.slots.len();
        if let Some((on, name)) = &self.slots[last]
            && *on == stream
            && Arc::ptr_eq(name, kernel)
        {
            return;
        }
        self.slots[self.next] = Some((stream, kernel.clone()));
        self.next = (self.next + 1) % self.slots.len();
    }

    pub(super) fn clear(&mut self) {
        *self = Self::default();
    }

    /// Work on one stream is done.
    pub(super) fn clear_stream(&mut self, stream: RawStream) {
        for slot in &mut self.slots {
            if matches!(slot, Some((on, _)) if *on == Handle(stream)) {
                *slot = None;
            }
        }
    }

    fn names(&self) -> Vec<String> {
        let mut names: Vec<String> = Vec::new();
        for (_, name) in self.slots.iter().flatten() {
            if !names.iter().any(|known| **known == **name) {
                names.push(name.to_string());
            }
        }
        names
    }
}

fn device_id(api: &Api, ordinal: u32) -> Result<DeviceId, DeviceError> {
    let mut id = 0;
    let number = c_int::try_from(ordinal).unwrap_or(c_int::MAX);
    // SAFETY: the pointer is valid for a write.
    match unsafe { (api.device_get)(&mut id, number) } {
        status::INVALID_DEVICE => Err(DeviceError::NoDevice {
            ordinal,
            count: api.devices()?,
        }),
        other => api.check("cuDeviceGet", other).map(|()| id),
    }
}

fn info(api: &Api, ordinal: u32) -> Result<DeviceInfo, DeviceError> {
    let id = device_id(api, ordinal)?;
    let mut name = [0u8; 256];
    // SAFETY: the driver writes at most the number of bytes it is told, with a NUL at the end.
    api.check("cuDeviceGetName", unsafe {
        (api.device_name)(name.as_mut_ptr().cast(), name.len() as c_int, id)
    })?;
    let mut memory_bytes = 0;
    // SAFETY: the pointer is valid for a write.
    api.check("cuDeviceTotalMem", unsafe {
        (api.device_memory)(&mut memory_bytes, id)
    })?;
    let get = |what: c_int| {
        let mut value = 0;
        // SAFETY: the pointer is valid for a write.
        let got = unsafe { (api.device_attribute)(&mut value, what, id) };
        api.check("cuDeviceGetAttribute", got)
            .map(|()| value.unsigned_abs())
    };
    let end = name.iter().position(|b| *b == 0).unwrap_or(name.len());
    Ok(DeviceInfo {
        ordinal,
        name: String::from_utf8_lossy(&name[..end]).into_owned(),
        capability: (
            get(attribute::CAPABILITY_MAJOR)?,
            get(attribute::CAPABILITY_MINOR)?,
        ),
        multiprocessors: get(attribute::MULTIPROCESSORS)?,
        memory_bytes,
        l2_bytes: get(attribute::L2_BYTES)?,
        shared_per_block: get(attribute::SHARED_PER_BLOCK_OPTIN)?,
        shared_per_multiprocessor: get(attribute::SHARED_PER_MULTIPROCESSOR)?,
        registers_per_block: get(attribute::REGISTERS_PER_BLOCK)?,
        max_threads_per_block: get(attribute::MAX_THREADS_PER_BLOCK)?,
        max_grid: [
            get(attribute::MAX_GRID_X)?,
            get(attribute::MAX_GRID_Y)?,
            get(attribute::MAX_GRID_Z)?,
        ],
        warp_size: get(attribute::WARP_SIZE)?,
        clock_khz: get(attribute::CLOCK_KHZ)?,
        memory_clock_khz: get(attribute::MEMORY_CLOCK_KHZ)?,
        memory_bus_bits: get(attribute::MEMORY_BUS_BITS)?,
        driver: api.version()?,
    })
}

/// A thread that panicked while it held one of our locks left nothing half done.
fn recover<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
