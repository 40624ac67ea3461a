//! A GPU and what its memory, streams and code belong to.

use std::fmt;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::{Arc, Mutex, MutexGuard, Weak};

use super::driver::{Driver, Functions, Names, Owner, RawStream, Status, shown, status};
use super::error::{DeviceError, Fault};
use super::info::DeviceInfo;

/// A GPU that this process uses. Cheap to clone.
#[derive(Clone)]
pub struct Device {
    pub(super) context: Arc<Context>,
}

impl Device {
    pub(super) fn list_with(driver: &'static dyn Driver) -> Result<Vec<DeviceInfo>, DeviceError> {
        (0..driver.devices()?)
            .map(|ordinal| driver.info(ordinal))
            .collect()
    }

    /// Opens a GPU; all who open it share one context. After a fault the first to open it again
    /// throws the dead context away, with all that was in it, and makes a new one.
    pub(super) fn open_with(
        driver: &'static dyn Driver,
        ordinal: u32,
    ) -> Result<Self, DeviceError> {
        let mut open = recover(&OPEN);
        open.retain(|context| context.strong_count() > 0);
        let same = |context: &Arc<Context>| {
            context.info.ordinal == ordinal && std::ptr::addr_eq(context.driver, driver)
        };
        let known = open.iter().filter_map(Weak::upgrade).find(same);
        let context = match known {
            Some(context) if !context.is_lost() => return Ok(Self { context }),
            Some(dead) => Context::replace(&dead)?,
            None => Context::new(driver, ordinal)?,
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
        context.call(context.names.synchronize, |f| {
            // SAFETY: the context is current.
            unsafe { (f.synchronize)() }
        })?;
        context.state().recent.clear();
        Ok(())
    }

    /// Free and total memory in bytes.
    pub fn memory(&self) -> Result<(usize, usize), DeviceError> {
        let (mut free, mut total) = (0, 0);
        self.context.call(self.context.names.memory_info, |f| {
            // SAFETY: both pointers are valid for a write.
            unsafe { (f.memory_info)(&mut free, &mut total) }
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
    pub driver: &'static dyn Driver,
    pub functions: &'static Functions,
    pub names: &'static Names,
    pub info: DeviceInfo,
    owner: Owner,
    lost: AtomicBool,
    /// It was given back already, by who replaced this one.
    released: AtomicBool,
    state: Mutex<State>,
}

#[derive(Debug, Default)]
pub(super) struct State {
    pub recent: Recent,
    fault: Option<Arc<Fault>>,
}

impl Context {
    fn new(driver: &'static dyn Driver, ordinal: u32) -> Result<Arc<Self>, DeviceError> {
        let count = driver.devices()?;
        if ordinal >= count {
            return Err(DeviceError::NoDevice { ordinal, count });
        }
        Ok(Arc::new(Self {
            driver,
            functions: driver.functions(),
            names: driver.names(),
            info: driver.info(ordinal)?,
            owner: driver.retain(ordinal)?,
            lost: AtomicBool::new(false),
            released: AtomicBool::new(false),
            state: Mutex::new(State::default()),
        }))
    }

    /// Throws a dead context away and makes a new one. Resetting is not enough on its own: what we
    /// hold must be given back too, or the driver keeps handing out the dead one.
    fn replace(dead: &Self) -> Result<Arc<Self>, DeviceError> {
        let not_recovered = |error: DeviceError| DeviceError::NotRecovered {
            reason: error.to_string(),
        };
        let (driver, ordinal) = (dead.driver, dead.info.ordinal);
        let held = !dead.released.swap(true, Ordering::AcqRel);
        driver.reset(ordinal, held).map_err(not_recovered)?;
        let context = Self::new(driver, ordinal).map_err(not_recovered)?;
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
        function: impl FnOnce(&Functions) -> Status,
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
        function: impl FnOnce(&Functions) -> Status,
    ) -> Result<Status, DeviceError> {
        if self.is_lost() {
            return Err(self.lost_error(name));
        }
        let _guard = self.enter()?;
        Ok(function(self.functions))
    }

    /// What a failed call means: a fault marks the whole context as lost.
    pub(super) fn fail(&self, call: &'static str, failed: Status) -> DeviceError {
        if !self.driver.is_sticky(failed) {
            return self.driver.error(call, failed);
        }
        let mut state = self.state();
        self.lost.store(true, Ordering::Release);
        if let Some(fault) = &state.fault {
            return DeviceError::Lost(fault.clone());
        }
        let (name, text) = self.driver.describe(failed);
        let fault = Arc::new(Fault {
            device: self.info.ordinal,
            kernels: state.recent.names(),
            name,
            text,
            call: shown(call),
        });
        state.fault = Some(fault.clone());
        DeviceError::Fault(fault)
    }

    /// Runs a call that a destructor makes: on a live context only, and nobody hears of errors.
    pub(super) fn quietly(&self, name: &'static str, function: impl FnOnce(&Functions) -> Status) {
        if let Ok(failed) = self.raw_call(name, function)
            && self.driver.is_sticky(failed)
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
                call: shown(call),
            })
        }))
    }

    fn enter(&self) -> Result<Option<Restore>, DeviceError> {
        let current = self.driver.current()?;
        if current == self.owner {
            return Ok(None);
        }
        self.driver.set_current(self.owner)?;
        // A thread that had no context keeps ours: nobody misses what was not there, and the
        // next call is spared two switches.
        Ok((current != Owner::NONE).then(|| Restore {
            driver: self.driver,
            previous: current,
        }))
    }
}

impl Drop for Context {
    fn drop(&mut self) {
        if !self.released.swap(true, Ordering::AcqRel) {
            self.driver.release(self.info.ordinal);
        }
    }
}

/// Puts another library's context, or the thread's own device, back on this thread.
#[derive(Debug)]
struct Restore {
    driver: &'static dyn Driver,
    previous: Owner,
}

impl Drop for Restore {
    fn drop(&mut self) {
        // It was current a moment ago on this thread, so there is nothing to say if it fails.
        let _ = self.driver.set_current(self.previous);
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

/// A thread that panicked while it held one of our locks left nothing half done.
fn recover<T>(mutex: &Mutex<T>) -> MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}
