//! Queues of work and marks in them.

use std::sync::Arc;
use std::time::Duration;

use super::context::{Context, Device, Handle};
use super::driver::{RawStream, status};
use super::error::DeviceError;

const NON_BLOCKING: u32 = 1;
const NO_TIMING: u32 = 2;

/// Work on a stream runs in order; streams run beside each other.
#[derive(Debug)]
pub struct Stream {
    context: Arc<Context>,
    raw: Handle,
    owned: bool,
}

/// A mark in a stream: something to wait for, or to measure between.
#[derive(Debug)]
pub struct Event {
    context: Arc<Context>,
    raw: Handle,
}

impl Device {
    /// A new stream that does not wait for the device's default stream.
    pub fn stream(&self) -> Result<Stream, DeviceError> {
        let mut raw = std::ptr::null_mut();
        self.context.call(self.context.names.stream_create, |f| {
            // SAFETY: the pointer is valid for a write.
            unsafe { (f.stream_create)(&mut raw, NON_BLOCKING) }
        })?;
        Ok(Stream {
            context: self.context.clone(),
            raw: Handle(raw),
            owned: true,
        })
    }

    /// The device's default stream.
    pub fn default_stream(&self) -> Stream {
        Stream {
            context: self.context.clone(),
            raw: Handle(std::ptr::null_mut()),
            owned: false,
        }
    }

    /// A stream that another library made on this device and goes on owning.
    ///
    /// # Safety
    ///
    /// `raw` must be a `CUstream` of this device's primary context or a `hipStream_t` of this
    /// device, and stay so while the stream is in use.
    pub unsafe fn borrow_stream(&self, raw: *mut std::ffi::c_void) -> Stream {
        Stream {
            context: self.context.clone(),
            raw: Handle(raw),
            owned: false,
        }
    }

    /// A mark that also tells the time.
    pub fn event(&self) -> Result<Event, DeviceError> {
        self.new_event(0)
    }

    /// A mark to wait for only, which is cheaper.
    pub fn event_without_time(&self) -> Result<Event, DeviceError> {
        self.new_event(NO_TIMING)
    }

    fn new_event(&self, flags: u32) -> Result<Event, DeviceError> {
        let mut raw = std::ptr::null_mut();
        self.context.call(self.context.names.event_create, |f| {
            // SAFETY: the pointer is valid for a write.
            unsafe { (f.event_create)(&mut raw, flags) }
        })?;
        Ok(Event {
            context: self.context.clone(),
            raw: Handle(raw),
        })
    }
}

impl Stream {
    pub fn ordinal(&self) -> u32 {
        self.context.info.ordinal
    }

    pub(super) fn raw(&self) -> RawStream {
        self.raw.0
    }

    /// Waits until all work queued so far is done. A fault of a kernel comes up here at the
    /// latest.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.context
            .call(self.context.names.stream_synchronize, |f| {
                // SAFETY: the stream is alive.
                unsafe { (f.stream_synchronize)(self.raw.0) }
            })?;
        self.context.state().recent.clear_stream(self.raw.0);
        Ok(())
    }

    /// Whether all work queued so far is done.
    pub fn is_done(&self) -> Result<bool, DeviceError> {
        let got = self
            .context
            .raw_call(self.context.names.stream_query, |f| {
                // SAFETY: the stream is alive.
                unsafe { (f.stream_query)(self.raw.0) }
            })?;
        match got {
            status::SUCCESS => Ok(true),
            status::NOT_READY => Ok(false),
            other => Err(self.context.fail(self.context.names.stream_query, other)),
        }
    }

    /// Sets the mark after all work queued so far.
    pub fn record(&self, event: &Event) -> Result<(), DeviceError> {
        self.context.same("the event", &event.context)?;
        self.context.call(self.context.names.event_record, |f| {
            // SAFETY: both are alive and of one context.
            unsafe { (f.event_record)(event.raw.0, self.raw.0) }
        })
    }

    /// Makes later work on this stream wait for a mark of any stream of the device.
    pub fn wait(&self, event: &Event) -> Result<(), DeviceError> {
        self.context.same("the event", &event.context)?;
        self.context.call(self.context.names.stream_wait, |f| {
            // SAFETY: both are alive and of one context.
            unsafe { (f.stream_wait)(self.raw.0, event.raw.0, 0) }
        })
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }
}

impl Drop for Stream {
    fn drop(&mut self) {
        if self.owned {
            let raw = self.raw.0;
            self.context
                .quietly(self.context.names.stream_destroy, |f| {
                    // SAFETY: this object made the stream and destroys it once; the driver lets
                    // queued work finish.
                    unsafe { (f.stream_destroy)(raw) }
                });
        }
    }
}

impl Event {
    /// Waits until the work before the mark is done.
    pub fn synchronize(&self) -> Result<(), DeviceError> {
        self.context
            .call(self.context.names.event_synchronize, |f| {
                // SAFETY: the event is alive.
                unsafe { (f.event_synchronize)(self.raw.0) }
            })
    }

    /// The time the GPU took from `start` to this mark, both recorded and done; the resolution is
    /// half a microsecond.
    pub fn since(&self, start: &Event) -> Result<Duration, DeviceError> {
        self.context.same("the event", &start.context)?;
        let mut milliseconds = 0.0;
        self.context.call(self.context.names.event_elapsed, |f| {
            // SAFETY: the pointer is valid for a write and both events are alive.
            unsafe { (f.event_elapsed)(&mut milliseconds, start.raw.0, self.raw.0) }
        })?;
        let seconds = f64::from(milliseconds).max(0.0) / 1e3;
        Ok(Duration::try_from_secs_f64(seconds).unwrap_or_default())
    }
}

impl Drop for Event {
    fn drop(&mut self) {
        let raw = self.raw.0;
        self.context.quietly(self.context.names.event_destroy, |f| {
            // SAFETY: this object made the event and destroys it once.
            unsafe { (f.event_destroy)(raw) }
        });
    }
}
