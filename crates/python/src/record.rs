//! The runs of the front end that record kernels of a Python program.

use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, Ordering};
use std::sync::mpsc::{RecvTimeoutError, channel};
use std::thread;
use std::time::Duration;

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyTuple};
use tilewright::frontend::eval::Stage;
use tilewright::frontend::eval::hosted::EagerCall;
use tilewright::frontend::host::HostFunction;
use tilewright::frontend::value::Value;
use tilewright::frontend::{self, Error, Result, codes};
use tilewright::ir::{Code, Diagnostic, Func, SourceMap, Span, verify};

use crate::convert::{to_python, to_value};
use crate::errors::{Kind, raise};
use crate::host::{Python_, Shared};
use crate::kernel::Kernel;

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(is_eager, module)?)?;
    module.add_function(wrap_pyfunction!(record_prim_func, module)?)?;
    module.add_function(wrap_pyfunction!(const_places, module)?)?;
    module.add_function(wrap_pyfunction!(record_eager, module)?)?;
    module.add_function(wrap_pyfunction!(evaluate, module)?)?;
    Ok(())
}

/// How often signals are looked for while the front end runs.
const TICK: Duration = Duration::from_millis(50);

/// What a run of the front end left behind.
struct Outcome<T> {
    result: Result<T>,
    sources: SourceMap,
    warnings: Vec<Diagnostic>,
    exception: Option<PyErr>,
}

/// A result with what is needed to speak of it.
pub struct Recorded<T> {
    pub value: T,
    pub sources: SourceMap,
    pub warnings: Vec<Diagnostic>,
}

/// Runs the front end on a thread whose stack holds its recursion, with Python free for others;
/// Ctrl-C ends it.
fn on_stage<T: Send>(
    py: Python<'_>,
    f: impl FnOnce(&Rc<Shared>, &mut Stage) -> Result<T> + Send,
) -> PyResult<Recorded<T>> {
    let interrupted = Arc::new(AtomicBool::new(false));
    let flag = interrupted.clone();
    let (outcome, signal) = py.detach(|| {
        thread::scope(|scope| {
            let (done, ready) = channel();
            let spawned = thread::Builder::new()
                .name("tilewright".to_string())
                .stack_size(frontend::STACK_BYTES)
                .spawn_scoped(scope, move || {
                    // Nobody listens any more where the caller is gone.
                    let _ = done.send(run(flag, f));
                });
            let handle = match spawned {
                Ok(handle) => handle,
                Err(e) => return (Err(format!("no thread for the front end: {e}")), None),
            };
            let mut signal = None;
            loop {
                match ready.recv_timeout(TICK) {
                    Ok(outcome) => return (Ok(outcome), signal),
                    Err(RecvTimeoutError::Timeout) => {
                        if signal.is_none()
                            && let Err(e) = Python::attach(|py| py.check_signals())
                        {
                            interrupted.store(true, Ordering::Relaxed);
                            signal = Some(e);
                        }
                    }
                    Err(RecvTimeoutError::Disconnected) => match handle.join() {
                        Ok(()) => return (Err("the front end gave no result".into()), signal),
                        Err(panic) => std::panic::resume_unwind(panic),
                    },
                }
            }
        })
    });
    if let Some(signal) = signal {
        return Err(signal);
    }
    let outcome = outcome.map_err(pyo3::exceptions::PyRuntimeError::new_err)?;
    match outcome.result {
        Ok(value) => Ok(Recorded {
            value,
            sources: outcome.sources,
            warnings: outcome.warnings,
        }),
        Err(error) => Err(raise_staged(
            py,
            *error,
            &outcome.sources,
            outcome.exception,
        )),
    }
}

fn run<T>(
    interrupted: Arc<AtomicBool>,
    f: impl FnOnce(&Rc<Shared>, &mut Stage) -> Result<T>,
) -> Outcome<T> {
    let shared = Shared::new(interrupted);
    let host = Rc::new(Python_ {
        shared: shared.clone(),
    });
    let mut stage = Stage::hosted(host);
    let result = f(&shared, &mut stage);
    let warnings = stage.take_warnings();
    drop(stage);
    Outcome {
        result,
        sources: shared.sources.take(),
        warnings,
        exception: shared.exception.take(),
    }
}

fn raise_staged(
    py: Python<'_>,
    mut error: Diagnostic,
    sources: &SourceMap,
    exception: Option<PyErr>,
) -> PyErr {
    const SYNTAX: [Code; 6] = [
        codes::SYNTAX,
        codes::UNSUPPORTED_SYNTAX,
        codes::NESTED_TOO_DEEP,
        codes::NOT_UTF8,
        codes::EMPTY_FILE,
        codes::FILE_TOO_LARGE,
    ];
    frontend::complete(&mut error);
    let kind = match SYNTAX.contains(&error.code) {
        true => Kind::Syntax,
        false => Kind::Staging,
    };
    let cause = exception.filter(|_| error.code == codes::HOST_EXCEPTION);
    raise(py, kind, &[error], sources, cause)
}

type Objects = Vec<Option<Py<PyAny>>>;
type Named = Vec<(String, Py<PyAny>)>;

fn annotations(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    given: &Objects,
) -> Result<Vec<Option<Value>>> {
    let each = given.iter().map(|annotation| match annotation {
        Some(object) => {
            Python::attach(|py| to_value(shared, stage, object.bind(py), Span::NONE)).map(Some)
        }
        None => Ok(None),
    });
    each.collect()
}

fn named(shared: &Rc<Shared>, stage: &mut Stage, given: &Named) -> Result<Vec<(Rc<str>, Value)>> {
    let each = given.iter().map(|(name, object)| {
        let value = Python::attach(|py| to_value(shared, stage, object.bind(py), Span::NONE))?;
        Ok((Rc::from(&**name), value))
    });
    each.collect()
}

fn described(shared: &Rc<Shared>, stage: &mut Stage, function: &Py<PyAny>) -> Result<HostFunction> {
    Python::attach(|py| shared.function(stage, function.bind(py), None, Span::NONE))
}

fn kernel(py: Python<'_>, recorded: Recorded<Func>) -> PyResult<Kernel> {
    let (func, sources) = (recorded.value, recorded.sources);
    match verify::verify(&func) {
        Ok(()) => Ok(Kernel::new(func, sources, recorded.warnings)),
        Err(diags) => Err(raise(py, Kind::Staging, &diags, &sources, None)),
    }
}

/// Whether a function is a kernel itself, rather than one that returns a kernel.
#[pyfunction]
fn is_eager(py: Python<'_>, function: Py<PyAny>) -> PyResult<bool> {
    let recorded = on_stage(py, move |shared, stage| {
        let function = described(shared, stage, &function)?;
        stage.is_eager(&function)
    });
    Ok(recorded?.value)
}

/// Records a `@T.prim_func`.
#[pyfunction]
fn record_prim_func(py: Python<'_>, function: Py<PyAny>, given: Objects) -> PyResult<Kernel> {
    let recorded = on_stage(py, move |shared, stage| {
        let function = described(shared, stage, &function)?;
        let annotations = annotations(shared, stage, &given)?;
        stage.record_prim_func(&function, &annotations)
    });
    kernel(py, recorded?)
}

/// Where an eager kernel has its `T.const` dimensions: name, tensor, dimension.
#[pyfunction]
fn const_places(
    py: Python<'_>,
    function: Py<PyAny>,
    given: Objects,
    values: Named,
) -> PyResult<Vec<(String, String, usize)>> {
    let recorded = on_stage(py, move |shared, stage| {
        with_call(shared, stage, &function, &given, &values, |stage, call| {
            stage.const_places(call)
        })
    });
    Ok(recorded?.value)
}

/// Records an eager kernel.
#[pyfunction]
fn record_eager(
    py: Python<'_>,
    function: Py<PyAny>,
    given: Objects,
    values: Named,
    consts: Vec<(String, i128)>,
) -> PyResult<Kernel> {
    let recorded = on_stage(py, move |shared, stage| {
        with_call(shared, stage, &function, &given, &values, |stage, call| {
            stage.record_eager(call, &consts)
        })
    });
    kernel(py, recorded?)
}

fn with_call<T>(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    function: &Py<PyAny>,
    given: &Objects,
    values: &Named,
    f: impl FnOnce(&mut Stage, &EagerCall<'_>) -> Result<T>,
) -> Result<T> {
    let function = described(shared, stage, function)?;
    let annotations = annotations(shared, stage, given)?;
    let values = named(shared, stage, values)?;
    let call = EagerCall {
        function: &function,
        annotations: &annotations,
        given: &values,
    };
    f(stage, &call)
}

/// A call of a language function outside a kernel: its value where Python has it, `None` where
/// only a kernel does. Wrong arguments are found here.
#[pyfunction]
fn evaluate<'py>(
    py: Python<'py>,
    name: &str,
    args: &Bound<'py, PyTuple>,
    keywords: &Bound<'py, PyDict>,
) -> PyResult<Option<Bound<'py, PyAny>>> {
    let shared = Shared::new(Arc::default());
    let host = Rc::new(Python_ {
        shared: shared.clone(),
    });
    let mut stage = Stage::hosted(host);
    let value = evaluated(&shared, &mut stage, name, args, keywords);
    let exception = shared.exception.take();
    let value = value.map_err(|e| raise_staged(py, *e, &SourceMap::new(), exception))?;
    let value = match value {
        Value::Expr(e) => stage.expr_value(e),
        other => other,
    };
    match value {
        Value::None
        | Value::Bool(_)
        | Value::Int(_)
        | Value::Float(_)
        | Value::Str(_)
        | Value::DType(_) => to_python(&shared, py, &value).map(Some),
        _ => Ok(None),
    }
}

fn evaluated(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    name: &str,
    args: &Bound<'_, PyTuple>,
    keywords: &Bound<'_, PyDict>,
) -> std::result::Result<Value, Error> {
    let span = Span::NONE;
    let function = stage.language_name(name, span)?;
    let mut values = Vec::new();
    for arg in args.iter() {
        values.push(to_value(shared, stage, &arg, span)?);
    }
    let mut named = Vec::new();
    for (name, value) in keywords.iter() {
        let value = to_value(shared, stage, &value, span)?;
        named.push((Rc::from(name.to_string()), value));
    }
    stage.call_from_host(&function, values, &named, span)
}
