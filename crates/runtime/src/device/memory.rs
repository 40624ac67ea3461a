//! Device memory.

use std::fmt;
use std::sync::Arc;

use super::context::{Context, Device};
use super::driver::{DevicePtr, status};
use super::error::DeviceError;
use super::stream::Stream;

/// A piece of a GPU's memory, freed with its last owner: a clone is the same memory.
///
/// Copies between host and device are done when the function returns, so that no host memory is
/// borrowed by work in flight. Copies and fills on the device are queued on the stream.
#[derive(Clone)]
pub struct Buffer {
    context: Arc<Context>,
    pointer: DevicePtr,
    bytes: usize,
    /// None where another library frees the memory, or there is none.
    _allocation: Option<Arc<Allocation>>,
}

/// Memory that the driver gave.
struct Allocation {
    context: Arc<Context>,
    pointer: DevicePtr,
}

/// A buffer from some byte on, with what it holds.
#[derive(Clone, Copy, Debug)]
pub struct View<'a> {
    pub buffer: &'a Buffer,
    pub offset: usize,
    /// The element type's name, where the caller knows it; it is then checked at a launch.
    pub dtype: Option<&'a str>,
}

impl Device {
    /// Memory with any content.
    pub fn alloc(&self, bytes: usize) -> Result<Buffer, DeviceError> {
        let mut buffer = Buffer {
            context: self.context.clone(),
            pointer: 0,
            bytes,
            _allocation: None,
        };
        // The driver has no allocations of nothing.
        if bytes == 0 {
            return Ok(buffer);
        }
        let got = self.context.raw_call(self.context.names.alloc, |f| {
            // SAFETY: the pointer is valid for a write.
            unsafe { (f.alloc)(&mut buffer.pointer, bytes) }
        })?;
        match got {
            status::SUCCESS => {
                buffer._allocation = Some(Arc::new(Allocation {
                    context: self.context.clone(),
                    pointer: buffer.pointer,
                }));
                Ok(buffer)
            }
            status::OUT_OF_MEMORY => {
                let (free, total) = self.memory()?;
                Err(DeviceError::OutOfMemory {
                    wanted: bytes,
                    free,
                    total,
                })
            }
            other => Err(self.context.fail(self.context.names.alloc, other)),
        }
    }

    /// Memory full of zeros.
    pub fn zeros(&self, bytes: usize, stream: &Stream) -> Result<Buffer, DeviceError> {
        let buffer = self.alloc(bytes)?;
        buffer.fill(0, stream)?;
        Ok(buffer)
    }

    /// Memory with a copy of `data`.
    pub fn upload(&self, data: &[u8], stream: &Stream) -> Result<Buffer, DeviceError> {
        let buffer = self.alloc(data.len())?;
        buffer.write(0, data, stream)?;
        Ok(buffer)
    }

    /// Memory that another library allocated on this device and goes on owning.
    ///
    /// # Safety
    ///
    /// `pointer` must be the address of `bytes` bytes of device memory on this device (of its
    /// primary context, with CUDA), and stay so while the buffer is in use.
    pub unsafe fn borrow_memory(&self, pointer: u64, bytes: usize) -> Buffer {
        Buffer {
            context: self.context.clone(),
            pointer,
            bytes,
            _allocation: None,
        }
    }
}

impl Buffer {
    pub fn bytes(&self) -> usize {
        self.bytes
    }

    /// The address on the device; 0 for a buffer of no bytes.
    pub fn address(&self) -> u64 {
        self.pointer
    }

    pub fn ordinal(&self) -> u32 {
        self.context.info.ordinal
    }

    /// The buffer from byte `offset` on.
    pub fn view(&self, offset: usize) -> Result<View<'_>, DeviceError> {
        self.check("a view", offset, 0)?;
        Ok(View {
            buffer: self,
            offset,
            dtype: None,
        })
    }

    /// The whole buffer as elements of a type.
    pub fn of<'a>(&'a self, dtype: &'a str) -> View<'a> {
        View {
            buffer: self,
            offset: 0,
            dtype: Some(dtype),
        }
    }

    /// Copies from the host, and waits for it.
    pub fn write(&self, offset: usize, data: &[u8], stream: &Stream) -> Result<(), DeviceError> {
        self.check("a write", offset, data.len())?;
        self.same_device(stream)?;
        if data.is_empty() {
            return Ok(());
        }
        self.context.call(self.context.names.copy_to_device, |f| {
            let to = self.pointer + offset as u64;
            // SAFETY: the target range is inside this buffer, and `data` is borrowed until the
            // synchronisation below.
            unsafe { (f.copy_to_device)(to, data.as_ptr().cast(), data.len(), stream.raw()) }
        })?;
        stream.synchronize()
    }

    /// Copies to the host, and waits for it.
    pub fn read(&self, offset: usize, out: &mut [u8], stream: &Stream) -> Result<(), DeviceError> {
        self.check("a read", offset, out.len())?;
        self.same_device(stream)?;
        if out.is_empty() {
            return Ok(());
        }
        self.context.call(self.context.names.copy_to_host, |f| {
            let from = self.pointer + offset as u64;
            // SAFETY: the source range is inside this buffer, and `out` is borrowed until the
            // synchronisation below.
            unsafe { (f.copy_to_host)(out.as_mut_ptr().cast(), from, out.len(), stream.raw()) }
        })?;
        stream.synchronize()
    }

    /// The whole content.
    pub fn to_vec(&self, stream: &Stream) -> Result<Vec<u8>, DeviceError> {
        let mut out = vec![0; self.bytes];
        self.read(0, &mut out, stream)?;
        Ok(out)
    }

    /// Queues a copy of all of `from`, on the same device, to the front of this buffer.
    pub fn copy_from(&self, from: &Buffer, stream: &Stream) -> Result<(), DeviceError> {
        self.check("a copy", 0, from.bytes)?;
        self.same_device(stream)?;
        self.context.same("the source of the copy", &from.context)?;
        if from.bytes == 0 {
            return Ok(());
        }
        self.context.call(self.context.names.copy_on_device, |f| {
            // SAFETY: both ranges are inside their buffers, in one context. Freeing either waits
            // for the work in flight.
            unsafe { (f.copy_on_device)(self.pointer, from.pointer, from.bytes, stream.raw()) }
        })
    }

    /// Queues a fill with one byte.
    pub fn fill(&self, byte: u8, stream: &Stream) -> Result<(), DeviceError> {
        self.same_device(stream)?;
        if self.bytes == 0 {
            return Ok(());
        }
        self.context.call(self.context.names.set_bytes, |f| {
            // SAFETY: the range is this buffer.
            unsafe { (f.set_bytes)(self.pointer, byte, self.bytes, stream.raw()) }
        })
    }

    /// Queues a fill with one 32-bit word; bytes past the last whole word stay as they are.
    pub fn fill_words(&self, word: u32, stream: &Stream) -> Result<(), DeviceError> {
        self.same_device(stream)?;
        if self.bytes < 4 {
            return Ok(());
        }
        self.context.call(self.context.names.set_words, |f| {
            // SAFETY: the range is inside this buffer, which the driver aligned.
            unsafe { (f.set_words)(self.pointer, word, self.bytes / 4, stream.raw()) }
        })
    }

    fn check(&self, what: &'static str, offset: usize, bytes: usize) -> Result<(), DeviceError> {
        match offset.checked_add(bytes) {
            Some(end) if end <= self.bytes => Ok(()),
            _ => Err(DeviceError::Range {
                what,
                offset,
                bytes,
                size: self.bytes,
            }),
        }
    }

    fn same_device(&self, stream: &Stream) -> Result<(), DeviceError> {
        self.context.same("the stream", stream.context())
    }

    pub(super) fn context(&self) -> &Context {
        &self.context
    }
}

impl Drop for Allocation {
    fn drop(&mut self) {
        let pointer = self.pointer;
        self.context.quietly(self.context.names.free, |f| {
            // SAFETY: the driver allocated the memory, and its last owner frees it once; the
            // driver waits for work that uses it.
            unsafe { (f.free)(pointer) }
        });
    }
}

impl fmt::Debug for Buffer {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(
            f,
            "Buffer({} bytes at {:#x} on GPU {})",
            self.bytes,
            self.pointer,
            self.ordinal()
        )
    }
}

impl View<'_> {
    pub fn address(&self) -> u64 {
        self.buffer.pointer + self.offset as u64
    }

    /// Bytes from the view's start to the buffer's end.
    pub fn bytes(&self) -> usize {
        self.buffer.bytes.saturating_sub(self.offset)
    }
}

impl<'a> From<&'a Buffer> for View<'a> {
    fn from(buffer: &'a Buffer) -> Self {
        View {
            buffer,
            offset: 0,
            dtype: None,
        }
    }
}
