//! Tuning from Python: recorded kernels to the tuner, its report back.

use std::collections::BTreeMap;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::exceptions::{PyRuntimeError, PyValueError};
use pyo3::prelude::*;
use pyo3::types::{PyBytes, PyDict};
use tilewright::ir::small_float::Number;
use tilewright::ir::{FileId, Func, SourceMap, Target, text};
use tilewright::jit;
use tilewright::jit::gpu::{best_target, compiled_for, vendor};
use tilewright::passes::schedules::SCHEDULES;
use tilewright::runtime::cache::{Cache, Key};
use tilewright::runtime::device;
use tilewright::runtime::env::Env;
use tilewright::sim::InputSpec;
use tilewright::tune::space::{self, Limits};
use tilewright::tune::{
    Config, Event, Fate, On, Options, Request, Rules, Subject, Tuned, Unit, tune as chosen,
};

use crate::errors::raise_jit;
use crate::kernel::{Kernel, target};

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(tune, module)?)?;
    module.add_function(wrap_pyfunction!(values_to_try, module)?)?;
    module.add_function(wrap_pyfunction!(gpu_target, module)?)?;
    module.add_function(wrap_pyfunction!(compile_for_another, module)?)?;
    module.add_function(wrap_pyfunction!(keep_of_another, module)?)?;
    Ok(())
}

/// How often signals are looked for.
const TICK: Duration = Duration::from_millis(50);

/// What is tuned: the kernel of a configuration, its tile IR as text with whether it asks for
/// approximate functions, or why there is none.
#[derive(FromPyObject)]
enum Tried<'py> {
    Kernel(PyRef<'py, Kernel>),
    Text(String, bool),
    #[pyo3(transparent)]
    Failed(String),
}

/// What a caller says beside the kernels.
#[derive(FromPyObject)]
#[pyo3(from_item_all)]
struct Wishes<'py> {
    target: Option<String>,
    on: Option<String>,
    keep: Option<usize>,
    /// Sizes and scalars by name.
    values: BTreeMap<String, f64>,
    warmup: u32,
    rounds: u32,
    tolerance: f64,
    timeout: Option<f64>,
    threads: usize,
    skip_check: bool,
    fresh: bool,
    /// Called with the place of a configuration; raises where its results are wrong.
    judge: Option<Bound<'py, PyAny>>,
    /// Called with a line of text now and then.
    tell: Option<Bound<'py, PyAny>>,
}

/// Chooses among configurations, given as pairs of names and values. The report is a dict.
#[pyfunction]
fn tune<'py>(
    py: Python<'py>,
    configs: Vec<Vec<(String, String)>>,
    kernels: Vec<Tried<'py>>,
    wishes: Wishes<'py>,
) -> PyResult<Bound<'py, PyDict>> {
    let configs: Vec<Config> = configs.into_iter().map(Config).collect();
    let subjects: Vec<Result<Subject, String>> = kernels
        .into_iter()
        .map(|one| match one {
            Tried::Kernel(kernel) => Ok(Ok(kernel.subject())),
            Tried::Text(ir, fast_math) => Ok(Ok(Subject {
                func: parsed(&ir)?,
                sources: SourceMap::new(),
                fast_math,
            })),
            Tried::Failed(why) => Ok(Err(why)),
        })
        .collect::<PyResult<_>>()?;
    let on = match &wishes.on {
        None => None,
        Some(name) => Some(On::from_name(name).ok_or_else(|| {
            let names = On::ALL.map(On::name).join(", ");
            PyValueError::new_err(format!("nothing is timed on {name:?}; there are {names}"))
        })?),
    };
    let target = wishes.target.as_deref().map(target).transpose()?;
    let values = wishes.values.iter().map(|(name, value)| {
        let number = match value.fract() == 0.0 {
            true => Number::Int(*value as i128),
            false => Number::Float(*value),
        };
        (name.clone(), number)
    });
    let spec = InputSpec {
        values: values.collect(),
        ..InputSpec::default()
    };
    let judge = wishes.judge.map(Bound::unbind);
    let tell = wishes.tell.map(Bound::unbind);
    let judged = |at: usize| -> Result<(), String> {
        let Some(judge) = &judge else { return Ok(()) };
        Python::attach(|py| {
            judge
                .call1(py, (at,))
                .map(|_| ())
                .map_err(|e| e.to_string())
        })
    };
    let said = |event: Event<'_>| {
        if let Some(tell) = &tell {
            let text = event.to_string();
            // A progress line that cannot be shown is nobody's loss.
            Python::attach(|py| drop(tell.call1(py, (text,))));
        }
    };
    let cancelled = AtomicBool::new(false);
    let request = Request {
        configs: &configs,
        subjects: &subjects,
        spec: &spec,
        target,
        on,
        keep: wishes.keep,
        options: Options {
            rules: Rules {
                warmup: wishes.warmup,
                rounds: wishes.rounds.max(1),
                tolerance: wishes.tolerance,
            },
            threads: wishes.threads,
            unchecked: wishes.skip_check,
            timeout: wishes
                .timeout
                .and_then(|s| Duration::try_from_secs_f64(s).ok()),
            cancelled: Some(&cancelled),
        },
        judge: judge.is_some().then_some(&judged),
        cache: match wishes.fresh {
            true => Cache::off(),
            false => Cache::open(&Env::process()),
        },
    };
    let (outcome, signal) = py.detach(|| {
        thread::scope(|scope| {
            let (done, ready) = channel();
            let said = &said;
            scope.spawn(move || {
                // Nobody listens any more where the caller is gone.
                let _ = done.send(chosen(request, said));
            });
            let mut signal = None;
            loop {
                match ready.recv_timeout(TICK) {
                    Ok(outcome) => return (Some(outcome), signal),
                    Err(RecvTimeoutError::Disconnected) => return (None, signal),
                    Err(RecvTimeoutError::Timeout) => {
                        if signal.is_none()
                            && let Err(e) = Python::attach(|py| py.check_signals())
                        {
                            cancelled.store(true, Ordering::Relaxed);
                            signal = Some(e);
                        }
                    }
                }
            }
        })
    });
    if let Some(signal) = signal {
        return Err(signal);
    }
    let outcome = outcome.ok_or_else(|| PyRuntimeError::new_err("the tuner gave no result"))?;
    let tuned = outcome.map_err(|e| raise_jit(py, e, &SourceMap::new()))?;
    as_dict(py, &tuned)
}

fn as_dict<'py>(py: Python<'py>, tuned: &Tuned) -> PyResult<Bound<'py, PyDict>> {
    let report = &tuned.report;
    let dict = PyDict::new(py);
    dict.set_item("best", report.best)?;
    dict.set_item("time", report.time())?;
    let unit = match report.unit {
        Unit::Seconds => "seconds",
        Unit::Cycles => "cycles",
    };
    dict.set_item("unit", unit)?;
    dict.set_item("certain", report.certain)?;
    dict.set_item("target", tuned.target.name())?;
    dict.set_item("on", tuned.on.name())?;
    dict.set_item("device", &tuned.device)?;
    dict.set_item("stored", tuned.stored)?;
    let mut rows = Vec::new();
    for row in &report.rows {
        rows.push(match &row.fate {
            Fate::Timed { time, runs } => (Some(*time), Some(*runs), None, None),
            Fate::LeftOut(why) => (None, None, Some(why), None),
            Fate::Failed(why) => (None, None, None, Some(why)),
        });
    }
    dict.set_item("rows", rows)?;
    dict.set_item("table", report.table())?;
    Ok(dict)
}

/// What is tried of a parameter where the tuner chooses, as Python literals; nothing where its
/// name says nothing.
#[pyfunction]
fn values_to_try(name: &str, target_name: Option<&str>) -> PyResult<Vec<String>> {
    let target = target_name.map(target).transpose()?;
    let machine = target.unwrap_or(Target::DEFAULT).machine();
    let limits = Limits {
        warp: machine.warp_size,
        threads: machine.max_threads,
        schedules: SCHEDULES.iter().map(|s| s.name.to_owned()).collect(),
    };
    Ok(space::values(name, &limits).unwrap_or_default())
}

/// What kernels for the first GPU are lowered and compiled for; nothing where there is no GPU.
#[pyfunction]
fn gpu_target(
    py: Python<'_>,
    target_name: Option<&str>,
) -> PyResult<Option<(&'static str, Option<String>)>> {
    let named = target_name.map(target).transpose()?;
    let found = py.detach(|| {
        let device = match named.map(vendor) {
            Some(vendor) => device::open(vendor, 0),
            None => device::open_any(),
        };
        let device = device.ok()?;
        let target = named.or_else(|| best_target(device.info()).ok())?;
        Some((target.name(), compiled_for(target, device.info())))
    });
    Ok(found)
}

fn parsed(ir: &str) -> PyResult<Func> {
    text::parse(ir, FileId(0)).map_err(|diags| {
        let first = diags.first().map_or("", |d| &d.message);
        PyValueError::new_err(format!("this is no tile IR: {first}"))
    })
}

fn options(arch: Option<String>, fast_math: bool) -> jit::Options {
    jit::Options {
        fast_math,
        arch,
        ..jit::Options::default()
    }
}

/// Compiles tile IR in text form for another process or machine: a key and bytes.
#[pyfunction]
fn compile_for_another<'py>(
    py: Python<'py>,
    ir: &str,
    target_name: &str,
    arch: Option<String>,
    fast_math: bool,
) -> PyResult<(String, Bound<'py, PyBytes>)> {
    let (func, target) = (parsed(ir)?, target(target_name)?);
    let options = options(arch, fast_math);
    let made = py.detach(|| jit::compile_for_another(&func, target, &options, &Env::process()));
    let (key, bytes) = made.map_err(|e| raise_jit(py, e, &SourceMap::new()))?;
    Ok((key.to_string(), PyBytes::new(py, &bytes)))
}

/// Takes over what another process compiled. False where this one would compile something else.
#[pyfunction]
fn keep_of_another(
    py: Python<'_>,
    kernel: PyRef<'_, Kernel>,
    target_name: &str,
    arch: Option<String>,
    key: &str,
    bytes: &[u8],
) -> PyResult<bool> {
    let Some(key) = Key::parse(key) else {
        return Ok(false);
    };
    let subject = kernel.subject();
    let (target, options) = (target(target_name)?, options(arch, subject.fast_math));
    let kept = py.detach(|| {
        let made = (&key, bytes);
        jit::keep_of_another(&subject.func, target, &options, made, &Env::process())
    });
    kept.map_err(|e| raise_jit(py, e, &SourceMap::new()))
}
