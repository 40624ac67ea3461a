//! The short way of a call: tensors of torch on a GPU, in the order of the parameters.
//!
//! What a call is made of is compared with earlier ones of the kernel: types, sizes, strides, the
//! device, numbers. For those that are known all checks have been done, and only addresses and the
//! stream are new. Everything else, errors included, goes the long way, by `_gpu`.

use std::sync::{Arc, Mutex, PoisonError};

use pyo3::intern;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{PyBool, PyDict, PyFloat, PyInt, PyTuple};
use tilewright::ir::{DType, Param, Target};
use tilewright::runtime::device::Vendor;
use tilewright::sim::{self, Arg, Args, HostTensor};

use crate::gpu::{Memory, Place, Prepared, pieces, whole};
use crate::kernel::{Kernel, named_dtype, target};

/// Calls that are remembered of a kernel.
const REMEMBERED: usize = 16;
/// Arguments, at most, on this way.
const MOST: usize = 32;
/// Dimensions of a tensor, at most, on this way.
const RANK: usize = 8;

/// Calls a kernel, or says that the long way is to be taken.
#[derive(Debug)]
#[pyclass(frozen, module = "tilewright._core")]
pub struct Launcher {
    kernel: Py<Kernel>,
    target: Option<Target>,
    /// In the order of the parameters: whether it is a tensor; outputs are made by the call.
    params: Vec<(bool, bool)>,
    given: usize,
    known: Mutex<Known>,
}

#[derive(Debug, Default)]
struct Known {
    calls: Vec<Arc<Earlier>>,
    /// The place of the next one, where all are taken.
    next: usize,
}

/// A call that was checked.
#[derive(Debug)]
struct Earlier {
    key: Key,
    prepared: Prepared,
    /// The bytes of each tensor: those that are given, then those that are made.
    bytes: Vec<usize>,
    /// How each output is made.
    outputs: Vec<Empty>,
    /// How the memory of the workspaces is made, where there are any.
    scratch: Option<Empty>,
}

/// A tensor that is made by a call: the arguments of torch's `empty_strided`.
type Empty = (Py<PyTuple>, Py<PyDict>);

/// What decides a call but addresses and the stream.
#[derive(Clone, Debug, Default, PartialEq)]
struct Key {
    device: i64,
    facts: Vec<Fact>,
}

#[derive(Clone, Debug, PartialEq)]
enum Fact {
    Tensor {
        /// The address of torch's object for the type, of which there is one.
        dtype: usize,
        rank: u8,
        shape: [i64; RANK],
        strides: [i64; RANK],
    },
    Int(i64),
    /// The bits.
    Float(u64),
}

/// What is asked of torch, once a process.
#[derive(Debug)]
struct Torch {
    tensor: Py<PyAny>,
    parameter: Py<PyAny>,
    raw_stream: Py<PyAny>,
    empty_strided: Py<PyAny>,
    uint8: Py<PyAny>,
    is_hip: bool,
}

static TORCH: PyOnceLock<Option<Torch>> = PyOnceLock::new();

impl Torch {
    /// Where it is loaded, and has what is asked for.
    fn get(py: Python<'_>) -> Option<&Torch> {
        if let Some(known) = TORCH.get(py) {
            return known.as_ref();
        }
        let modules = py.import("sys").ok()?.getattr("modules").ok()?;
        let torch = modules.get_item("torch").ok()?;
        let find = || -> PyResult<Torch> {
            let raw = torch.getattr("_C")?.getattr("_cuda_getCurrentRawStream")?;
            let version = torch.getattr("version")?;
            Ok(Torch {
                tensor: torch.getattr("Tensor")?.unbind(),
                parameter: torch.getattr("nn")?.getattr("Parameter")?.unbind(),
                raw_stream: raw.unbind(),
                empty_strided: torch.getattr("empty_strided")?.unbind(),
                uint8: torch.getattr("uint8")?.unbind(),
                is_hip: !version.getattr("hip")?.is_none(),
            })
        };
        // A build of torch without GPUs is never asked again.
        TORCH.get_or_init(py, || find().ok()).as_ref()
    }

    /// Makes a tensor; gives its address too.
    fn empty<'py>(&self, py: Python<'py>, of: &Empty) -> PyResult<(Bound<'py, PyAny>, u64)> {
        let (sizes, keywords) = of;
        let empty = self.empty_strided.bind(py);
        let tensor = empty.call(sizes.bind(py).clone(), Some(keywords.bind(py)))?;
        let address = tensor.call_method0(intern!(py, "data_ptr"))?.extract()?;
        Ok((tensor, address))
    }

    fn is_tensor(&self, object: &Bound<'_, PyAny>) -> bool {
        let class = object.get_type();
        class.is(&self.tensor) || class.is(&self.parameter)
    }
}

#[pymethods]
impl Launcher {
    #[new]
    fn new(kernel: Py<Kernel>, target_name: Option<&str>) -> PyResult<Launcher> {
        let target = target_name.map(target).transpose()?;
        let (func, ..) = kernel.get().parts();
        let params: Vec<(bool, bool)> = func
            .params
            .iter()
            .map(|param| match param {
                Param::Tensor { output, .. } => (true, *output),
                Param::Scalar(_) => (false, false),
            })
            .collect();
        Ok(Launcher {
            given: params.iter().filter(|(_, output)| !output).count(),
            params,
            kernel,
            target,
            known: Mutex::default(),
        })
    }

    /// The outputs of the call, a tuple; nothing where it is not for this way.
    #[pyo3(signature = (*args))]
    fn __call__<'py>(
        &self,
        py: Python<'py>,
        args: &Bound<'py, PyTuple>,
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        if args.len() != self.given {
            return Ok(None);
        }
        let Some(torch) = Torch::get(py) else {
            return Ok(None);
        };
        let mut key = Key {
            device: -1,
            facts: Vec::with_capacity(self.given),
        };
        let mut addresses = [0; MOST];
        if self.params.len() > MOST || !look(py, torch, args, &mut key, &mut addresses)? {
            return Ok(None);
        }
        let earlier = self.earlier(&key);
        let earlier = match earlier {
            Some(earlier) => earlier,
            None => match self.prepare(py, torch, args, key, &addresses)? {
                Some(made) => made,
                None => return Ok(None),
            },
        };
        self.launch(py, torch, &earlier, &addresses)
    }
}

/// Reads the arguments; false where one is not for the short way. `addresses` are in their order.
fn look(
    py: Python<'_>,
    torch: &Torch,
    args: &Bound<'_, PyTuple>,
    key: &mut Key,
    addresses: &mut [u64; MOST],
) -> PyResult<bool> {
    for (address, object) in addresses.iter_mut().zip(args.iter_borrowed()) {
        if !torch.is_tensor(&object) {
            if object.is_instance_of::<PyBool>() {
                key.facts.push(Fact::Int(i64::from(object.is_truthy()?)));
            } else if object.is_instance_of::<PyInt>() {
                let Ok(value) = object.extract::<i64>() else {
                    return Ok(false);
                };
                key.facts.push(Fact::Int(value));
            } else if let Ok(value) = object.cast::<PyFloat>() {
                key.facts.push(Fact::Float(value.value().to_bits()));
            } else {
                return Ok(false);
            }
            continue;
        }
        // -1 for the CPU.
        let device: i64 = object.call_method0(intern!(py, "get_device"))?.extract()?;
        if device < 0 || (key.device >= 0 && key.device != device) {
            return Ok(false);
        }
        key.device = device;
        let dtype = object.getattr(intern!(py, "dtype"))?;
        let shape = object.getattr(intern!(py, "shape"))?;
        let strides = object.call_method0(intern!(py, "stride"))?;
        let (Ok(shape), Ok(strides)) = (shape.cast::<PyTuple>(), strides.cast::<PyTuple>()) else {
            return Ok(false);
        };
        let rank = shape.len();
        if rank > RANK || strides.len() != rank {
            return Ok(false);
        }
        let (mut sizes, mut steps) = ([0; RANK], [0; RANK]);
        for at in 0..rank {
            sizes[at] = shape.get_borrowed_item(at)?.extract()?;
            steps[at] = strides.get_borrowed_item(at)?.extract()?;
        }
        *address = object.call_method0(intern!(py, "data_ptr"))?.extract()?;
        key.facts.push(Fact::Tensor {
            dtype: dtype.as_ptr() as usize,
            rank: rank as u8,
            shape: sizes,
            strides: steps,
        });
    }
    Ok(key.device >= 0)
}

impl Launcher {
    fn earlier(&self, key: &Key) -> Option<Arc<Earlier>> {
        let known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        let found = known.calls.iter().find(|earlier| earlier.key == *key);
        found.filter(|e| !e.prepared.is_lost()).cloned()
    }

    /// Checks a call of a kind that was not seen before.
    fn prepare(
        &self,
        py: Python<'_>,
        torch: &Torch,
        args: &Bound<'_, PyTuple>,
        key: Key,
        addresses: &[u64],
    ) -> PyResult<Option<Arc<Earlier>>> {
        let (func, sources, programs) = self.kernel.get().parts();
        let mut described = Args::new();
        let mut places = Vec::new();
        let mut given = args.iter().zip(&key.facts).zip(addresses);
        for param in &func.params {
            let (name, output) = match param {
                Param::Tensor { buffer, output } => (&func.buffers[*buffer].name, *output),
                Param::Scalar(var) => (&func.vars[*var].name, false),
            };
            if output {
                continue;
            }
            let Some(((object, fact), address)) = given.next() else {
                return Ok(None);
            };
            let arg = match fact {
                Fact::Int(v) => Arg::Int((*v).into()),
                Fact::Float(bits) => Arg::Float(f64::from_bits(*bits)),
                Fact::Tensor {
                    rank,
                    shape,
                    strides,
                    ..
                } => {
                    let Some(dtype) = dtype_of(&object)? else {
                        return Ok(None);
                    };
                    let rank = usize::from(*rank);
                    let sizes = |list: &[i64; RANK]| -> Option<Vec<usize>> {
                        list[..rank]
                            .iter()
                            .map(|n| usize::try_from(*n).ok())
                            .collect()
                    };
                    let (Some(shape), Some(strides)) = (sizes(shape), sizes(strides)) else {
                        return Ok(None);
                    };
                    places.push(Memory {
                        name: name.clone(),
                        address: *address,
                        bytes: bytes(dtype, &shape, &strides),
                    });
                    Arg::Tensor(HostTensor::described(dtype, &shape, &strides))
                }
            };
            described.insert(name.clone(), arg);
        }
        let mut outputs = Vec::new();
        if self.given < self.params.len() {
            // What is wrong with the call is said on the long way.
            let Ok(shapes) = sim::shapes(func, &described) else {
                return Ok(None);
            };
            for (buffer, shape, strides) in shapes {
                let is_output = func.tensors().any(|(b, output)| output && b == buffer);
                if !is_output {
                    continue;
                }
                let data = &func.buffers[buffer];
                let keywords = PyDict::new(py);
                let name = data.dtype.to_string();
                let dtype = py.import("tilewright._values")?.getattr("dtype")?;
                let dtype = dtype.call1((name,))?.call_method0("as_torch")?;
                keywords.set_item("dtype", dtype)?;
                keywords.set_item("device", format!("cuda:{}", key.device))?;
                let sizes = PyTuple::new(py, &shape)?;
                let steps = PyTuple::new(py, &strides)?;
                let whole = PyTuple::new(py, [sizes, steps])?;
                outputs.push((whole.unbind(), keywords.unbind()));
                let plain = |list: &[i64]| -> Vec<usize> {
                    list.iter()
                        .map(|n| usize::try_from(*n).unwrap_or(0))
                        .collect()
                };
                let (shape, strides) = (plain(&shape), plain(&strides));
                let tensor = HostTensor::described(data.dtype, &shape, &strides);
                described.insert(data.name.clone(), Arg::Tensor(tensor));
                places.push(Memory {
                    name: data.name.clone(),
                    address: 0,
                    bytes: bytes(data.dtype, &shape, &strides),
                });
            }
        }
        // Tensors that are given, then those that are made: so `launch` has them.
        let vendor = match torch.is_hip {
            true => Vendor::Amd,
            false => Vendor::Nvidia,
        };
        let place = Place {
            vendor,
            ordinal: u32::try_from(key.device).unwrap_or(0),
            stream: 0,
        };
        let program = programs.program(py, (func, sources), self.target, place)?;
        let prepared = Prepared::new(py, program, sources, described, &places)?;
        if places.len() + prepared.workspaces.len() > MOST {
            return Ok(None);
        }
        let scratch = match whole(&prepared.workspaces) {
            0 => None,
            bytes => {
                let keywords = PyDict::new(py);
                keywords.set_item("dtype", &torch.uint8)?;
                keywords.set_item("device", format!("cuda:{}", key.device))?;
                let sizes = PyTuple::new(py, [PyTuple::new(py, [bytes])?, PyTuple::new(py, [1])?])?;
                Some((sizes.unbind(), keywords.unbind()))
            }
        };
        let made = Arc::new(Earlier {
            key,
            prepared,
            bytes: places.iter().map(|place| place.bytes).collect(),
            outputs,
            scratch,
        });
        let mut known = self.known.lock().unwrap_or_else(PoisonError::into_inner);
        known.calls.retain(|e| !e.prepared.is_lost());
        if known.calls.len() < REMEMBERED {
            known.calls.push(made.clone());
        } else {
            let next = known.next % REMEMBERED;
            known.calls[next] = made.clone();
            known.next = next + 1;
        }
        Ok(Some(made))
    }

    fn launch<'py>(
        &self,
        py: Python<'py>,
        torch: &Torch,
        earlier: &Earlier,
        addresses: &[u64],
    ) -> PyResult<Option<Bound<'py, PyAny>>> {
        let mut places = [(0, 0); MOST];
        let mut free = places.iter_mut().zip(&earlier.bytes);
        for (fact, address) in earlier.key.facts.iter().zip(addresses) {
            if matches!(fact, Fact::Tensor { .. })
                && let Some((place, bytes)) = free.next()
            {
                *place = (*address, *bytes);
            }
        }
        let mut made = Vec::new();
        for output in &earlier.outputs {
            let (tensor, address) = torch.empty(py, output)?;
            if let Some((place, bytes)) = free.next() {
                *place = (address, *bytes);
            }
            made.push(tensor);
        }
        // It is held until all is queued; torch gives it to others in the order of the stream.
        let scratch = match &earlier.scratch {
            Some(scratch) => Some(torch.empty(py, scratch)?),
            None => None,
        };
        let workspaces = &earlier.prepared.workspaces;
        let tensors = earlier.bytes.len();
        if let Some((_, address)) = &scratch {
            let pieces = pieces(*address, workspaces);
            for (place, piece) in places[tensors..].iter_mut().zip(pieces) {
                *place = piece;
            }
        }
        let stream = torch.raw_stream.bind(py).call1((earlier.key.device,))?;
        let stream: u64 = stream.extract()?;
        let (_, sources, _) = self.kernel.get().parts();
        let places = &places[..tensors + workspaces.len()];
        earlier.prepared.launch(py, sources, stream, places)?;
        drop(scratch);
        Ok(Some(PyTuple::new(py, made)?.into_any()))
    }
}

/// The type of a tensor of torch; none where the language has none of that name.
fn dtype_of(tensor: &Bound<'_, PyAny>) -> PyResult<Option<DType>> {
    let py = tensor.py();
    let named = py.import("tilewright._values")?.getattr("dtype_name")?;
    let name = named.call1((tensor.getattr(intern!(py, "dtype"))?,));
    Ok(name
        .and_then(|n| n.extract::<String>())
        .and_then(|n| named_dtype(&n))
        .ok())
}

/// Bytes from the first element of a tensor to the end of its last.
fn bytes(dtype: DType, shape: &[usize], strides: &[usize]) -> usize {
    if shape.contains(&0) {
        return 0;
    }
    let steps = shape.iter().zip(strides);
    let last = steps.fold(0usize, |sum, (n, s)| {
        sum.saturating_add((n - 1).saturating_mul(*s))
    });
    last.saturating_add(1)
        .saturating_mul(dtype.bits() as usize)
        .div_ceil(8)
}
