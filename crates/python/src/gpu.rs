//! Kernels on a GPU, with tensors that other libraries keep there.
#![expect(
    unsafe_code,
    reason = "addresses of tensors and streams are those of other libraries"
)]

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::prelude::*;
use rustc_hash::FxHashMap;
use tilewright::ir::prints::Printed;
use tilewright::ir::{AttrValue, Func, SourceMap, Target};
use tilewright::jit::gpu::{best_target, check_target, compiled_for};
use tilewright::jit::{self, Call, Error, Loaded};
use tilewright::runtime::device::{self, Buffer, Device, DeviceError, Vendor};
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

/// A kernel's program on a GPU.
type Program = Arc<(Device, Loaded)>;

/// The programs of one kernel, by GPU and target.
#[derive(Debug, Default)]
pub struct Programs {
    built: Mutex<FxHashMap<Key, Program>>,
    /// Memory for the workspaces of calls whose library gives none.
    scratch: Mutex<Scratch>,
}

/// Streams whose memory is kept, at most.
const STREAMS: usize = 16;

/// Memory for workspaces, by program and stream: calls on one stream follow each other. The oldest
/// first.
#[derive(Debug, Default)]
struct Scratch(Vec<(Program, u64, Buffer)>);

impl Scratch {
    /// The address of so many bytes for the next call on a stream.
    fn of(&mut self, program: &Program, stream: u64, bytes: usize) -> Result<u64, Error> {
        let known = self
            .0
            .iter()
            .position(|(p, s, _)| Arc::ptr_eq(p, program) && *s == stream);
        let kept = known.map(|at| self.0.remove(at));
        let kept = match kept.filter(|(_, _, memory)| memory.bytes() >= bytes) {
            Some(kept) => kept,
            None => (program.clone(), stream, program.0.alloc(bytes)?),
        };
        if self.0.len() >= STREAMS {
            // The driver frees memory when nothing uses it any more.
            self.0.remove(0);
        }
        let address = kept.2.address();
        self.0.push(kept);
        Ok(address)
    }
}

/// Where pieces of one allocation begin, so that each suits every access.
const PIECE: usize = 256;

/// The bytes of one allocation for pieces of these sizes.
pub fn whole(pieces: &[usize]) -> usize {
    pieces
        .iter()
        .map(|bytes| bytes.next_multiple_of(PIECE))
        .sum()
}

/// The pieces of an allocation at an address.
pub fn pieces(address: u64, sizes: &[usize]) -> impl Iterator<Item = (u64, usize)> {
    let mut next = address;
    sizes.iter().map(move |&bytes| {
        let at = next;
        next += bytes.next_multiple_of(PIECE) as u64;
        (at, bytes)
    })
}

impl Programs {
    /// Queues the kernel's launches. `args` describes the tensors, `memory` says where they are.
    /// `empty`, called with a number of bytes, gives an object that holds memory of the tensors'
    /// library, and its address.
    pub fn launch(
        &self,
        py: Python<'_>,
        (func, sources): (&Func, &SourceMap),
        target: Option<Target>,
        place: Place,
        (mut args, memory): (Args, &[Memory]),
        empty: Option<&Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let program = self.program(py, (func, sources), target, place)?;
        let (device, loaded) = &*program;
        let workspaces = loaded.workspaces(&mut args);
        let workspaces = workspaces.map_err(|error| raise_call(py, error, sources))?;
        let bytes = whole(&workspaces);
        // It is held until all is queued.
        let given: Option<(Py<PyAny>, u64)> = match empty {
            Some(empty) if bytes > 0 => Some(empty.call1((bytes,))?.extract()?),
            _ => None,
        };
        let queued = py.detach(|| {
            // Nobody else queues kernels that use the same memory between those of this call.
            let mut scratch = None;
            let address = match &given {
                Some((_, address)) => *address,
                None if bytes == 0 => 0,
                None => {
                    let held = self.scratch.lock().unwrap_or_else(PoisonError::into_inner);
                    scratch.insert(held).of(&program, place.stream, bytes)?
                }
            };
            let workspaces = pieces(address, &workspaces).map(|(address, bytes)| {
                // SAFETY: `given` or `scratch` holds the memory until the kernels are queued, and it
                // goes to others in the order of the stream.
                unsafe { device.borrow_memory(address, bytes) }
            });
            let workspaces = workspaces.collect();
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
            let call = loaded.bind_memory(&mut args, buffers, workspaces)?;
            loaded.launch_on(&call, &stream)?;
            loaded.printed(&call, &stream)
        });
        drop(given);
        let printed = queued.map_err(|error| raise_call(py, error, sources))?;
        show(py, &printed)
    }

    /// The program for a GPU, built where it is not there yet.
    pub fn program(
        &self,
        py: Python<'_>,
        (func, sources): (&Func, &SourceMap),
        target: Option<Target>,
        place: Place,
    ) -> PyResult<Program> {
        let vendor = match place.vendor {
            Vendor::Nvidia => "nvidia",
            Vendor::Amd => "amd",
        };
        let key = (vendor, place.ordinal, target);
        let table = || self.built.lock().unwrap_or_else(PoisonError::into_inner);
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
    program: Program,
    call: Mutex<Call>,
    /// The bytes of each workspace.
    pub workspaces: Vec<usize>,
}

impl Prepared {
    /// Checks the arguments of a call.
    pub fn new(
        py: Python<'_>,
        program: Program,
        sources: &SourceMap,
        mut args: Args,
        memory: &[Memory],
    ) -> PyResult<Prepared> {
        let fail = |error| raise_call(py, error, sources);
        let workspaces = program.1.workspaces(&mut args).map_err(fail)?;
        let nowhere = workspaces.iter().map(|&bytes| {
            // SAFETY: nothing is launched with it before it is moved.
            unsafe { program.0.borrow_memory(PIECE as u64, bytes) }
        });
        let nowhere = nowhere.collect();
        let buffers = memory.iter().map(|tensor| {
            // SAFETY: as in `launch`; nothing is launched with it before it is moved.
            let buffer = unsafe { program.0.borrow_memory(tensor.address, tensor.bytes) };
            (tensor.name.clone(), buffer)
        });
        let call = program
            .1
            .bind_memory(&mut args, buffers.collect(), nowhere)
            .map_err(fail)?;
        Ok(Prepared {
            call: Mutex::new(call),
            program,
            workspaces,
        })
    }

    pub fn is_lost(&self) -> bool {
        self.program.0.is_lost()
    }

    /// Queues it with tensors of the same sizes, and workspaces behind them, at these addresses.
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
            loaded.launch_on(&call, &stream)?;
            loaded.printed(&call, &stream)
        });
        let printed = queued.map_err(|error| raise_call(py, error, sources))?;
        show(py, &printed)
    }
}

/// Prints what a kernel printed, where Python prints.
fn show(py: Python<'_>, printed: &Printed) -> PyResult<()> {
    for line in printed.told() {
        py.import("builtins")?.call_method1("print", (line,))?;
    }
    Ok(())
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
