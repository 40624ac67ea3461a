//! Kernels on a GPU, with tensors that other libraries keep there.
#![expect(
    unsafe_code,
    reason = "addresses of tensors and streams are those of other libraries"
)]

use std::collections::HashMap;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use tilewright::ir::{AttrValue, Func, SourceMap, Target};
use tilewright::jit::gpu::{best_target, check_target, compiled_for};
use tilewright::jit::{self, Call, Error, Loaded};
use tilewright::runtime::device::{self, Device, DeviceError, Vendor};
use tilewright::runtime::env::Env;
use tilewright::sim::Args;

use crate::errors::{Kind, raise, raise_jit};

/// A GPU, and the stream that a call goes to.
#[derive(Clone, Copy, Debug)]
pub struct Place {
    pub vendor: Vendor,
    pub ordinal: u32,
    /// The driver's handle.
    pub stream: u64,
}

/// The memory of a tensor.
#[derive(Clone, Debug)]
pub struct Memory {
    pub name: String,
    pub address: u64,
    pub bytes: usize,
}

type Key = (&'static str, u32, Option<Target>);

/// The programs of one kernel, by GPU and target.
#[derive(Debug, Default)]
pub struct Programs(Mutex<HashMap<Key, Arc<(Device, Loaded)>>>);

impl Programs {
    /// Queues the kernel's launches. `args` describes the tensors, `memory` says where they are.
    pub fn launch(
        &self,
        py: Python<'_>,
        (func, sources): (&Func, &SourceMap),
        target: Option<Target>,
        place: Place,
        mut args: Args,
        memory: &[Memory],
    ) -> PyResult<()> {
        let program = self.program(py, (func, sources), target, place)?;
        let (device, loaded) = &*program;
        let queued = py.detach(|| {
            let mut buffers = Vec::with_capacity(memory.len());
            for tensor in memory {
                // SAFETY: the caller holds the tensor for the length of this call, and its
                // library's allocator gives the memory to others in the order of the stream.
                let buffer = unsafe { device.borrow_memory(tensor.address, tensor.bytes) };
                buffers.push((tensor.name.clone(), buffer));
            }
            let raw = place.stream as usize as *mut std::ffi::c_void;
            // SAFETY: the caller's library made the stream on this device, and holds it.
            let stream = unsafe { device.borrow_stream(raw) };
            let call = loaded.bind_memory(&mut args, buffers)?;
            loaded.launch_on(&call, &stream)?;
            loaded.printed(&call, &stream)
        });
        let printed = queued.map_err(|error| raise_call(py, error, sources))?;
        for line in printed.told() {
            py.import("builtins")?.call_method1("print", (line,))?;
        }
        Ok(())
    }

    /// The program for a GPU, built where it is not there yet.
    pub fn program(
        &self,
        py: Python<'_>,
        (func, sources): (&Func, &SourceMap),
        target: Option<Target>,
        place: Place,
    ) -> PyResult<Arc<(Device, Loaded)>> {
        let vendor = match place.vendor {
            Vendor::Nvidia => "nvidia",
            Vendor::Amd => "amd",
        };
        let key = (vendor, place.ordinal, target);
        let table = || self.0.lock().unwrap_or_else(PoisonError::into_inner);
        if let Some(program) = table().get(&key)
            && !program.0.is_lost()
        {
            return Ok(program.clone());
        }
        let made = py.detach(|| build(func, sources, target, place));
        let program = Arc::new(made.map_err(|error| raise_jit(py, error, sources))?);
        table().insert(key, program.clone());
        Ok(program)
    }
}

/// The exception for a call that was refused or failed.
fn raise_call(py: Python<'_>, error: Error, sources: &SourceMap) -> PyErr {
    let kind = match &error {
        Error::Diagnostics(_) | Error::Device(DeviceError::Launch(_)) => Kind::Launch,
        Error::Toolchain(_) => Kind::Toolchain,
        Error::Device(_) => Kind::Run,
    };
    raise(py, kind, &error.into_diagnostics(), sources, None)
}

/// A call whose arguments were checked, for those of the same kinds and sizes.
#[derive(Debug)]
pub struct Prepared {
    program: Arc<(Device, Loaded)>,
    call: Mutex<Call>,
}

impl Prepared {
    /// Checks the arguments of a call; none where its calls cannot share what was prepared.
    pub fn new(
        py: Python<'_>,
        program: Arc<(Device, Loaded)>,
        sources: &SourceMap,
        mut args: Args,
        memory: &[Memory],
    ) -> PyResult<Option<Prepared>> {
        if program.1.has_workspaces() {
            return Ok(None);
        }
        let buffers = memory.iter().map(|tensor| {
            // SAFETY: as in `launch`; nothing is launched with it before it is moved.
            let buffer = unsafe { program.0.borrow_memory(tensor.address, tensor.bytes) };
            (tensor.name.clone(), buffer)
        });
        let call = program.1.bind_memory(&mut args, buffers.collect());
        let call = call.map_err(|error| raise_call(py, error, sources))?;
        Ok(Some(Prepared {
            call: Mutex::new(call),
            program,
        }))
    }

    pub fn is_lost(&self) -> bool {
        self.program.0.is_lost()
    }

    /// Queues it with tensors of the same sizes at these addresses.
    pub fn launch(
        &self,
        py: Python<'_>,
        sources: &SourceMap,
        stream: u64,
        memory: &[(u64, usize)],
    ) -> PyResult<()> {
        let (device, loaded) = &*self.program;
        let queued = py.detach(|| {
            let raw = stream as usize as *mut std::ffi::c_void;
            // SAFETY: the caller's library made the stream on this device, and holds it.
            let stream = unsafe { device.borrow_stream(raw) };
            let buffers = memory.iter().map(|&(address, bytes)| {
                // SAFETY: the caller holds the tensors for the length of this call, and their
                // library's allocator gives the memory to others in the order of the stream.
                unsafe { device.borrow_memory(address, bytes) }
            });
            // It is free again before Python is asked for.
            let mut call = self.call.lock().unwrap_or_else(PoisonError::into_inner);
            loaded.move_call(&mut call, buffers)?;
            loaded.launch_on(&call, &stream)
        });
        queued.map_err(|error| raise_call(py, error, sources))
    }
}

fn build(
    func: &Func,
    sources: &SourceMap,
    target: Option<Target>,
    place: Place,
) -> Result<(Device, Loaded), Error> {
    let device = device::open(place.vendor, place.ordinal)?;
    let target = match target {
        Some(target) => target,
        None => best_target(device.info())?,
    };
    check_target(target, device.info())?;
    let options = jit::Options {
        fast_math: fast_math(func),
        arch: compiled_for(target, device.info()),
        ..jit::Options::default()
    };
    let program = jit::build(func, target, &options, Some(sources), &Env::process())?;
    let loaded = program.load(&device)?;
    Ok((device, loaded))
}

/// Whether the kernel's settings ask for approximate functions.
pub fn fast_math(func: &Func) -> bool {
    let configs = &func.attrs.pass_configs;
    let keys = ["TL_ENABLE_FAST_MATH", "tl.enable_fast_math"];
    let mut found = keys.iter().filter_map(|key| configs.get(*key));
    found.any(|value| matches!(value, AttrValue::Bool(true) | AttrValue::Int(1)))
}
