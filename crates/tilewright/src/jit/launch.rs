//! A compiled function on a device: binding arguments and launching its kernels.

use tilewright_ir::Func;
use tilewright_ir::prints::{self, Printed};
use tilewright_runtime::device::cuda::TensorMap;
use tilewright_runtime::device::{
    Arg, Buffer, Device, Kernel, KernelSpec, Launch, ParamKind, ParamSpec, Stream,
};
use tilewright_sim::{Args, Resolved, resolve};

use super::entry::Operand;
use super::error::Error;
use super::{KernelMeta, Program, tensor_map};
use crate::call;

/// A program that a device can run.
#[derive(Debug)]
pub struct Loaded {
    signature: Func,
    kernels: Vec<(Kernel, KernelMeta)>,
    pub(super) stream: Stream,
    pub(super) device: Device,
}

/// Arguments on the device: what one call of the function works on.
#[derive(Debug)]
pub struct Call {
    /// In the order of the function's parameters and workspaces, by name.
    buffers: Vec<(tilewright_ir::Buffer, Buffer)>,
    launches: Vec<(Launch, Vec<Value>)>,
    maps: Vec<TensorMap>,
    /// What each map is of, for when its tensor moves.
    mapped: Vec<Mapped>,
}

#[derive(Clone, Debug)]
struct Mapped {
    map: tilewright_codegen::TensorMap,
    shape: (Vec<i64>, Vec<i64>),
    /// An index into the call's buffers.
    at: usize,
}

#[derive(Clone, Copy, Debug)]
enum Value {
    /// An index into the call's buffers.
    Buffer(usize),
    Scalar(Arg<'static>),
    /// An index into the call's maps.
    Map(usize),
}

impl Program {
    /// Puts the program on a device.
    pub fn load(&self, device: &Device) -> Result<Loaded, Error> {
        let module = device.load(&self.code)?;
        let mut kernels = Vec::new();
        for (number, meta) in self.kernels.iter().enumerate() {
            let mut params = Vec::new();
            for arg in &meta.args {
                let Some(operand) = arg.operand(&self.signature) else {
                    return Err(unknown_argument(&self.signature));
                };
                params.push(match operand {
                    Operand::Buffer(buffer) => {
                        let data = &self.signature.buffers[buffer];
                        ParamSpec::new(
                            &data.name,
                            ParamKind::Pointer {
                                dtype: None,
                                align: 16,
                                min_bytes: 0,
                            },
                        )
                    }
                    Operand::Scalar(var) => {
                        let data = &self.signature.vars[var];
                        let scalar = call::scalar_type(data.dtype.scalar)
                            .ok_or_else(|| unknown_argument(&self.signature))?;
                        ParamSpec::new(&data.name, ParamKind::Scalar(scalar))
                    }
                    Operand::Map(map) => {
                        let data = &self.signature.buffers[map.buffer];
                        let size = size_of::<TensorMap>() as u32;
                        let name = format!("{}_map", data.name);
                        ParamSpec::new(&name, ParamKind::Bytes { size })
                    }
                });
            }
            let spec = KernelSpec {
                params,
                origin: self.origins.get(number).cloned().flatten(),
            };
            kernels.push((module.kernel(&meta.name, spec)?, meta.clone()));
        }
        Ok(Loaded {
            signature: self.signature.clone(),
            kernels,
            stream: device.stream()?,
            device: device.clone(),
        })
    }
}

impl Loaded {
    pub fn stream(&self) -> &Stream {
        &self.stream
    }

    /// Runs the function once on host tensors: inputs go to the device, and what is there
    /// afterwards comes back.
    pub fn run(&self, args: &mut Args) -> Result<(), Error> {
        let call = self.bind(args)?;
        self.launch(&call)?;
        self.fetch(&call, args)
    }

    /// Checks the arguments and puts them on the device. Missing outputs are added to `args`.
    pub fn bind(&self, args: &mut Args) -> Result<Call, Error> {
        let func = &self.signature;
        let resolved = resolve(func, args)?;
        let mut buffers = Vec::new();
        for (buffer, _) in func.tensors() {
            let name = &func.buffers[buffer].name;
            let bytes = args.tensor(name).map_or(&[][..], |t| t.bytes());
            buffers.push((buffer, self.upload(bytes)?));
        }
        self.with_memory(&resolved, buffers, Vec::new())
    }

    /// The bytes of each workspace that a call with these arguments takes.
    pub fn workspaces(&self, args: &mut Args) -> Result<Vec<usize>, Error> {
        let func = &self.signature;
        if func.workspaces.is_empty() {
            return Ok(Vec::new());
        }
        let resolved = resolve(func, args)?;
        let sizes = func.workspaces.iter();
        Ok(sizes
            .map(|&buffer| call::bytes(func, buffer, &resolved).max(16))
            .collect())
    }

    /// Checks arguments whose tensors lie on the device already: `args` describes them
    /// (`HostTensor::described`), `memory` has the bytes of each by name. `workspaces` is the
    /// memory of the workspaces in their order; those that have none there get their own.
    pub fn bind_memory(
        &self,
        args: &mut Args,
        memory: Vec<(String, Buffer)>,
        workspaces: Vec<Buffer>,
    ) -> Result<Call, Error> {
        let func = &self.signature;
        let resolved = resolve(func, args)?;
        let mut buffers = Vec::new();
        for (name, memory) in memory {
            let known = func.tensors().find(|(b, _)| func.buffers[*b].name == name);
            let (buffer, _) = known.ok_or_else(|| unknown_argument(func))?;
            buffers.push((buffer, memory));
        }
        self.with_memory(&resolved, buffers, workspaces)
    }

    /// The call of a function whose tensors have their memory; workspaces without any get theirs.
    fn with_memory(
        &self,
        resolved: &Resolved,
        mut buffers: Vec<(tilewright_ir::Buffer, Buffer)>,
        workspaces: Vec<Buffer>,
    ) -> Result<Call, Error> {
        let func = &self.signature;
        let mut given = workspaces.into_iter();
        for &buffer in &func.workspaces {
            let memory = match given.next() {
                Some(memory) => memory,
                None => match call::bytes(func, buffer, resolved) {
                    0 => self.upload(&[])?,
                    bytes => self.device.alloc(bytes.max(16).next_multiple_of(4))?,
                },
            };
            buffers.push((buffer, memory));
        }
        let mut launches = Vec::new();
        let mut mapped = Vec::new();
        for ((_, meta), kernel) in self.kernels.iter().zip(&func.kernels) {
            let grid = call::grid(func, kernel, resolved)?;
            let mut launch = Launch::new(grid, kernel.threads).shared(meta.shared_bytes);
            launch.cooperative = meta.cooperative;
            launch.cluster = kernel.attrs.cluster.filter(|c| *c != [1, 1, 1]);
            launches.push((launch, self.values(meta, resolved, &buffers, &mut mapped)?));
        }
        let mut maps = Vec::new();
        for Mapped { map, shape, at } in &mapped {
            maps.push(tensor_map::fill(func, map, shape, &buffers[*at].1)?);
        }
        Ok(Call {
            buffers,
            launches,
            maps,
            mapped,
        })
    }

    /// Gives a call other memory for its tensors and, behind them, its workspaces: of the same
    /// sizes and in the order in which it got the first.
    pub fn move_call(
        &self,
        call: &mut Call,
        memory: impl IntoIterator<Item = Buffer>,
    ) -> Result<(), Error> {
        let mut moved = false;
        for ((_, held), buffer) in call.buffers.iter_mut().zip(memory) {
            moved |= held.address() != buffer.address();
            *held = buffer;
        }
        if moved {
            for (Mapped { map, shape, at }, filled) in call.mapped.iter().zip(&mut call.maps) {
                *filled = tensor_map::fill(&self.signature, map, shape, &call.buffers[*at].1)?;
            }
        }
        Ok(())
    }

    /// Puts bytes on the device; of an empty tensor there are zeros.
    fn upload(&self, bytes: &[u8]) -> Result<Buffer, Error> {
        // Halves of bytes are stored by whole words.
        let room = bytes.len().max(16).next_multiple_of(4);
        let buffer = self.device.alloc(room)?;
        match bytes.is_empty() {
            true => buffer.fill(0, &self.stream)?,
            false => buffer.write(0, bytes, &self.stream)?,
        }
        Ok(buffer)
    }

    fn values(
        &self,
        meta: &KernelMeta,
        resolved: &Resolved,
        buffers: &[(tilewright_ir::Buffer, Buffer)],
        mapped: &mut Vec<Mapped>,
    ) -> Result<Vec<Value>, Error> {
        let func = &self.signature;
        let mut values = Vec::new();
        for arg in &meta.args {
            let value = match arg.operand(func) {
                Some(Operand::Buffer(buffer)) => {
                    let at = buffers.iter().position(|(b, _)| *b == buffer);
                    at.map(Value::Buffer)
                }
                Some(Operand::Scalar(var)) => call::scalar(func, var, resolved).map(Value::Scalar),
                Some(Operand::Map(map)) => {
                    let at = buffers.iter().position(|(b, _)| *b == map.buffer);
                    let shape = resolved.tensors.get(&map.buffer).cloned();
                    let (Some(at), Some(shape)) = (at, shape) else {
                        return Err(unknown_argument(func));
                    };
                    mapped.push(Mapped { map, shape, at });
                    Some(Value::Map(mapped.len() - 1))
                }
                None => None,
            };
            values.push(value.ok_or_else(|| unknown_argument(func))?);
        }
        Ok(values)
    }

    /// Queues all kernels of the function.
    pub fn launch(&self, call: &Call) -> Result<(), Error> {
        self.launch_on(call, &self.stream)
    }

    /// The same on a stream of the caller's.
    pub fn launch_on(&self, call: &Call, stream: &Stream) -> Result<(), Error> {
        if let Some(lines) = self.lines(call) {
            lines.fill(0, stream)?;
        }
        for ((kernel, _), (launch, values)) in self.kernels.iter().zip(&call.launches) {
            if launch.grid.contains(&0) {
                continue;
            }
            let arg = |value: &Value| match *value {
                Value::Buffer(at) => Arg::from(&call.buffers[at].1),
                Value::Scalar(arg) => arg,
                Value::Map(at) => Arg::from(&call.maps[at]),
            };
            // Few arguments need no memory.
            let mut few = [Arg::Bool(false); 16];
            match few.get_mut(..values.len()) {
                Some(few) => {
                    for (place, value) in few.iter_mut().zip(values) {
                        *place = arg(value);
                    }
                    kernel.launch(launch, stream, few)?;
                }
                None => {
                    let args: Vec<Arg<'_>> = values.iter().map(arg).collect();
                    kernel.launch(launch, stream, &args)?;
                }
            }
        }
        Ok(())
    }

    /// What the last launch of a call printed, where its kernels do not print by themselves. Waits for
    /// the stream that it was launched on.
    pub fn printed(&self, call: &Call, stream: &Stream) -> Result<Printed, Error> {
        let (Some(prints), Some(lines)) = (&self.signature.attrs.prints, self.lines(call)) else {
            return Ok(Printed::default());
        };
        let mut bytes = vec![0; 4 * prints::WORDS as usize];
        lines.read(0, &mut bytes, stream)?;
        stream.synchronize()?;
        Ok(prints.read(&bytes))
    }

    /// The memory for lines that are printed.
    fn lines<'c>(&self, call: &'c Call) -> Option<&'c Buffer> {
        let prints = self.signature.attrs.prints.as_ref()?;
        let mut buffers = call.buffers.iter();
        let (_, memory) = buffers.find(|(buffer, _)| *buffer == prints.buffer)?;
        Some(memory)
    }

    /// Brings all tensors back to the host.
    pub fn fetch(&self, call: &Call, args: &mut Args) -> Result<(), Error> {
        self.stream.synchronize()?;
        for (buffer, memory) in &call.buffers {
            let name = &self.signature.buffers[*buffer].name;
            let Some(tensor) = args.tensor_mut(name) else {
                continue;
            };
            let mut bytes = vec![0; tensor.bytes().len()];
            if !bytes.is_empty() {
                memory.read(0, &mut bytes, &self.stream)?;
                self.stream.synchronize()?;
            }
            tensor.set_bytes(&bytes);
        }
        Ok(())
    }
}

fn unknown_argument(func: &Func) -> Error {
    let text = format!(
        "a kernel of `{}` takes an argument that it does not have",
        func.name
    );
    Error::plain("jit-bad-entry", func.span, text)
}
