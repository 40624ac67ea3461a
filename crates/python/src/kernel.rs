//! A recorded kernel: its source, and calls on host tensors.

use std::rc::Rc;
use std::sync::{Arc, Mutex, PoisonError};

use pyo3::exceptions::PyValueError;
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyTuple};
use rustc_hash::FxHashMap;
use tilewright::codegen;
use tilewright::frontend::eval::Stage;
use tilewright::frontend::lang::dtypes;
use tilewright::frontend::value::{JitOptions, Value};
use tilewright::ir::touched::written;
use tilewright::ir::visit::walk_stmts;
use tilewright::ir::{Buffer, DType, Diagnostic, Func, Level, Param, SourceMap, Target, text};
use tilewright::lowering::{self, Lowered, Until};
use tilewright::runtime::device::Vendor;
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Arg, Args, HostTensor, RunOptions};
use tilewright::tune::Subject;

use crate::convert::to_value;
use crate::errors::{Kind, raise, raise_jit};
use crate::gpu::{Memory, Place, Programs, fast_math};
use crate::host::{Python_, Shared};

/// A kernel as tile IR.
#[derive(Debug)]
#[pyclass(frozen, module = "tilewright._core")]
pub struct Kernel {
    func: Func,
    sources: SourceMap,
    warnings: Vec<Diagnostic>,
    /// The function as lowered, by target.
    lowered: Mutex<FxHashMap<&'static str, Arc<Func>>>,
    programs: Programs,
}

/// A parameter: name, dtype, whether it is an output; the shape of a tensor, `None` for a scalar.
/// Extents that are no constants are text.
type ParamFacts = (String, String, bool, Option<Vec<String>>);
/// A tensor's name, shape and element strides.
type NamedShape = (String, Vec<i64>, Vec<i64>);
/// A tensor as a call left it: name, dtype, shape, strides, and its bytes where they changed.
type Left<'py> = (
    String,
    String,
    Vec<usize>,
    Vec<usize>,
    Option<Bound<'py, PyBytes>>,
);

impl Kernel {
    pub fn new(func: Func, sources: SourceMap, warnings: Vec<Diagnostic>) -> Kernel {
        Kernel {
            func,
            sources,
            warnings,
            lowered: Mutex::default(),
            programs: Programs::default(),
        }
    }

    /// The kernel as the tuner takes it.
    pub fn subject(&self) -> Subject {
        Subject {
            func: self.func.clone(),
            sources: self.sources.clone(),
            fast_math: fast_math(&self.func),
        }
    }

    fn lower(&self, py: Python<'_>, target: Target) -> PyResult<Arc<Func>> {
        let known = |kernel: &Kernel| {
            let table = kernel.lowered.lock();
            let table = table.unwrap_or_else(PoisonError::into_inner);
            table.get(target.name()).cloned()
        };
        if let Some(func) = known(self) {
            return Ok(func);
        }
        let lowered = py.detach(|| {
            let until = Until::Level(Level::Device);
            lowering::lower(&self.func, target, until).and_then(Lowered::checked)
        });
        let lowered = lowered.map_err(|refused| {
            let errors = refused.errors.into_vec();
            raise(py, Kind::Lowering, &errors, &self.sources, None)
        })?;
        let func = Arc::new(lowered.func);
        let table = self.lowered.lock();
        let mut table = table.unwrap_or_else(PoisonError::into_inner);
        table.insert(target.name(), func.clone());
        Ok(func)
    }

    /// The parts that a launcher works with.
    pub fn parts(&self) -> (&Func, &SourceMap, &Programs) {
        (&self.func, &self.sources, &self.programs)
    }

    fn arguments(&self, given: Vec<(String, Bound<'_, PyAny>)>) -> PyResult<Args> {
        let mut args = Args::new();
        for (name, object) in given {
            let arg = match object.is_none() {
                true => self.null(&name)?,
                false => argument(&object)?,
            };
            args.insert(name, arg);
        }
        Ok(args)
    }

    /// A tensor that is not there: nothing of it can be read.
    fn null(&self, name: &str) -> PyResult<Arg> {
        let (dtype, shape) = self.stated(name)?;
        let tensor = HostTensor::uninit(dtype, &shape);
        let tensor = tensor.ok_or_else(|| PyValueError::new_err("no memory for a tensor"))?;
        Ok(Arg::Tensor(tensor))
    }

    /// The type and shape that the kernel states of a tensor.
    fn stated(&self, name: &str) -> PyResult<(DType, Vec<usize>)> {
        let mut tensors = self.func.tensors().map(|(b, _)| &self.func.buffers[b]);
        let found = tensors.find(|data| data.name == name);
        let sizes = found.and_then(|data| {
            let sizes = data.shape.iter().map(|e| usize::try_from(e.as_int()?).ok());
            Some((data.dtype, sizes.collect::<Option<Vec<_>>>()?))
        });
        let unknown = || format!("`{name}` has sizes of the call, and cannot be None");
        sizes.ok_or_else(|| PyValueError::new_err(unknown()))
    }
}

fn argument(object: &Bound<'_, PyAny>) -> PyResult<Arg> {
    if let Ok(tensor) = object.cast::<PyTuple>() {
        type Parts = (String, Vec<usize>, Vec<usize>, Vec<u8>);
        let (dtype, shape, strides, bytes): Parts = tensor.extract()?;
        let dtype = named_dtype(&dtype)?;
        let made = HostTensor::with_strides(dtype, &shape, &strides);
        let filled = made.and_then(|mut tensor| tensor.set_bytes(&bytes).then_some(tensor));
        let wrong = || PyValueError::new_err("the bytes of a tensor are not those of its shape");
        return filled.map(Arg::Tensor).ok_or_else(wrong);
    }
    match object.extract::<i128>() {
        Ok(v) => Ok(Arg::Int(v)),
        Err(_) => Ok(Arg::Float(object.extract::<f64>()?)),
    }
}

/// The target of a name.
pub fn target(name: &str) -> PyResult<Target> {
    Target::from_name(name).ok_or_else(|| {
        let all: Vec<&str> = Target::ALL.iter().map(|t| t.name()).collect();
        let all = all.join(", ");
        PyValueError::new_err(format!("there is no target `{name}`; there are {all}"))
    })
}

#[pymethods]
impl Kernel {
    #[getter]
    fn name(&self) -> &str {
        &self.func.name
    }

    #[getter]
    fn params(&self) -> Vec<ParamFacts> {
        let facts = self.func.params.iter().map(|param| match param {
            Param::Tensor { buffer, output } => {
                let data = &self.func.buffers[*buffer];
                let shape = data.shape.iter().map(|e| match (e.as_int(), e.as_var()) {
                    (Some(v), _) => v.to_string(),
                    (None, Some(var)) => self.func.vars[var].name.clone(),
                    (None, None) => "?".to_string(),
                });
                let shape = Some(shape.collect());
                (data.name.clone(), data.dtype.to_string(), *output, shape)
            }
            Param::Scalar(var) => {
                let data = &self.func.vars[*var];
                (data.name.clone(), data.dtype.to_string(), false, None)
            }
        });
        facts.collect()
    }

    /// The tensors that the kernel may write.
    #[getter]
    fn written(&self) -> Vec<String> {
        self.func
            .tensors()
            .filter(|(buffer, output)| *output || writes(&self.func, *buffer))
            .map(|(buffer, _)| self.func.buffers[buffer].name.clone())
            .collect()
    }

    /// Warnings as text.
    #[getter]
    fn warnings(&self) -> Vec<String> {
        let all = self.warnings.iter();
        all.map(|d| d.render(&self.sources, false)).collect()
    }

    /// The kernel with what a decorator says of it.
    fn with_options(
        &self,
        py: Python<'_>,
        out_idx: &Bound<'_, PyAny>,
        pass_configs: &Bound<'_, PyAny>,
        compile_flags: &Bound<'_, PyAny>,
    ) -> PyResult<Kernel> {
        let shared = Shared::new(Arc::default());
        let host = Rc::new(Python_ {
            shared: shared.clone(),
        });
        let mut stage = Stage::hosted(host);
        let span = self.func.span;
        let made = (|| {
            let mut value = |object| {
                let value = to_value(&shared, &mut stage, object, span)?;
                stage.own_container(value, span)
            };
            let given = |v: Value| (!matches!(v, Value::None)).then_some(v);
            let options = JitOptions {
                out_idx: given(value(out_idx)?).map(|v| (v, span)),
                pass_configs: given(value(pass_configs)?),
                compile_flags: given(value(compile_flags)?),
            };
            stage.apply_options(self.func.clone(), &options)
        })();
        let func = made.map_err(|e| raise(py, Kind::Staging, &[*e], &self.sources, None))?;
        Ok(Kernel::new(
            func,
            self.sources.clone(),
            self.warnings.clone(),
        ))
    }

    /// Whether its settings ask for approximate functions.
    #[getter]
    fn fast_math(&self) -> bool {
        fast_math(&self.func)
    }

    /// The tile IR.
    fn ir(&self) -> String {
        text::print(&self.func)
    }

    /// The tile IR as it is compiled for calls.
    fn called_ir(&self) -> String {
        text::print(&self.func)
    }

    /// The device IR for a target.
    fn device_ir(&self, py: Python<'_>, target_name: &str) -> PyResult<String> {
        Ok(text::print(&*self.lower(py, target(target_name)?)?))
    }

    /// The source that is compiled for a target.
    fn source(&self, py: Python<'_>, target_name: &str) -> PyResult<String> {
        let target = target(target_name)?;
        let func = self.lower(py, target)?;
        let options = codegen::Options {
            sources: Some(&self.sources),
            line_directives: false,
        };
        let made = py.detach(|| codegen::generate(&func, target, options));
        match made {
            Ok(source) => Ok(source.text),
            Err(diag) => Err(raise_jit(py, (*diag).into(), &self.sources)),
        }
    }

    /// Runs the kernel on host tensors: in the reference evaluator, or with a target in the
    /// simulator of it. Returns the tensors, and what the kernel printed.
    fn run<'py>(
        &self,
        py: Python<'py>,
        simulated: Option<&str>,
        given: Vec<(String, Bound<'py, PyAny>)>,
    ) -> PyResult<(Vec<Left<'py>>, Vec<String>)> {
        let mut args = self.arguments(given)?;
        let before = args.clone();
        let fail = |kind, e: sim::RunError| {
            let diags = e.diagnostics.into_vec();
            raise(py, kind, &diags, &self.sources, None)
        };
        sim::resolve(&self.func, &mut args).map_err(|e| fail(Kind::Launch, e))?;
        let (prints, found) = match simulated {
            None => {
                let options = RunOptions::default();
                let ran = py.detach(|| sim::run(&self.func, &mut args, &options));
                let report = ran.map_err(|e| fail(Kind::Run, e))?;
                let wrong = report.races.has_errors().then_some(report.races);
                (report.prints, wrong)
            }
            Some(name) => {
                let target = target(name)?;
                let func = self.lower(py, target)?;
                let options = SimtOptions::default();
                let ran = py.detach(|| simt::run(&func, target, &mut args, &options));
                let report = ran.map_err(|e| fail(Kind::Run, e))?;
                let wrong = (!report.is_clean()).then(|| report.diagnostics());
                (report.prints, wrong)
            }
        };
        if let Some(found) = found {
            return Err(raise(py, Kind::Run, &found.into_vec(), &self.sources, None));
        }
        let mut left = Vec::new();
        for (buffer, _) in self.func.tensors() {
            let name = &self.func.buffers[buffer].name;
            let Some(tensor) = args.tensor(name) else {
                continue;
            };
            let same = before
                .tensor(name)
                .is_some_and(|b| b.bytes() == tensor.bytes());
            let bytes = (!same).then(|| PyBytes::new(py, tensor.bytes()));
            left.push((
                name.clone(),
                tensor.dtype().to_string(),
                tensor.shape().to_vec(),
                tensor.strides().to_vec(),
                bytes,
            ));
        }
        Ok((left, prints))
    }

    /// The name of the type and the shape of a tensor that is not given.
    fn null_facts(&self, name: &str) -> PyResult<(String, Vec<usize>)> {
        let (dtype, shape) = self.stated(name)?;
        Ok((dtype.to_string(), shape))
    }

    /// Shapes and element strides of the tensors of a call, by name; outputs may be missing.
    fn shapes(
        &self,
        py: Python<'_>,
        given: Vec<(String, Described<'_>)>,
    ) -> PyResult<Vec<NamedShape>> {
        let (args, _) = described(given)?;
        let found = sim::shapes(&self.func, &args).map_err(|e| {
            let diags = e.diagnostics.into_vec();
            raise(py, Kind::Launch, &diags, &self.sources, None)
        })?;
        let named = found.into_iter().map(|(buffer, shape, strides)| {
            (self.func.buffers[buffer].name.clone(), shape, strides)
        });
        Ok(named.collect())
    }

    /// Queues the kernel on a stream of a GPU, with tensors that lie there. `empty` makes memory for
    /// its workspaces: called with bytes, it gives an object that holds them, and their address.
    fn launch(
        &self,
        py: Python<'_>,
        target_name: Option<&str>,
        place: (bool, u32, u64),
        given: Vec<(String, Described<'_>)>,
        empty: Option<Bound<'_, PyAny>>,
    ) -> PyResult<()> {
        let target = target_name.map(target).transpose()?;
        let (is_amd, ordinal, stream) = place;
        let vendor = match is_amd {
            true => Vendor::Amd,
            false => Vendor::Nvidia,
        };
        let place = Place {
            vendor,
            ordinal,
            stream,
        };
        let (args, memory) = described(given)?;
        let of = (&self.func, &self.sources);
        let empty = empty.as_ref();
        self.programs
            .launch(py, of, target, place, (args, &memory), empty)
    }
}

/// A tensor elsewhere (dtype, shape, element strides, address), or a number.
#[derive(FromPyObject)]
enum Described<'py> {
    Tensor(String, Vec<usize>, Vec<usize>, u64),
    #[pyo3(transparent)]
    Number(Bound<'py, PyAny>),
}

fn described(given: Vec<(String, Described<'_>)>) -> PyResult<(Args, Vec<Memory>)> {
    let mut args = Args::new();
    let mut memory = Vec::new();
    for (name, one) in given {
        match one {
            Described::Tensor(dtype, shape, strides, address) => {
                let dtype = named_dtype(&dtype)?;
                let last = shape
                    .iter()
                    .zip(&strides)
                    .map(|(n, s)| n.saturating_sub(1) * s);
                let count = match shape.contains(&0) {
                    true => 0,
                    false => last.sum::<usize>() + 1,
                };
                memory.push(Memory {
                    name: name.clone(),
                    address,
                    bytes: (count * dtype.bits() as usize).div_ceil(8),
                });
                let tensor = HostTensor::described(dtype, &shape, &strides);
                args.insert(name, Arg::Tensor(tensor));
            }
            Described::Number(number) => args.insert(name, argument(&number)?),
        }
    }
    Ok((args, memory))
}

fn writes(func: &Func, tensor: Buffer) -> bool {
    let mut found = false;
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| {
            written(stmt, &mut |buffer| found |= buffer == tensor);
        });
    }
    found
}

pub fn named_dtype(name: &str) -> PyResult<DType> {
    let unknown = || PyValueError::new_err(format!("`{name}` is not the name of a dtype"));
    dtypes::from_name(name).ok_or_else(unknown)
}
