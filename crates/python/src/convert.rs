//! Python objects to the interpreter's values, and back.

use std::cell::RefCell;
use std::rc::Rc;

use pyo3::IntoPyObjectExt;
use pyo3::exceptions::PyRecursionError;
use pyo3::prelude::*;
use pyo3::sync::PyOnceLock;
use pyo3::types::{
    PyBool, PyDict, PyEllipsis, PyFloat, PyFrozenSet, PyInt, PyList, PyRange, PySet, PySlice,
    PyString, PyTuple,
};
use tilewright::frontend::eval::Stage;
use tilewright::frontend::eval::builtins;
use tilewright::frontend::eval::modules::ModuleId;
use tilewright::frontend::lang::dtypes;
use tilewright::frontend::value::{Dict, Entry, Role, SliceValue, Value};
use tilewright::frontend::{Result, codes, value};
use tilewright::ir::{DType, Diagnostic, Span};

use crate::host::{Object, Shared};

/// A value of a kernel in Python's hands: a place in the table of the compilation that has it.
#[pyclass(frozen, module = "tilewright._core")]
pub struct Kept {
    compilation: u64,
    at: usize,
}

/// The classes of the package that the interpreter has values for.
struct Classes {
    deferred: Py<PyAny>,
    dtype: Py<PyAny>,
    function: Py<PyAny>,
    prim_func: Py<PyAny>,
    macro_: Py<PyAny>,
    language: Py<PyAny>,
    /// Modules of Python that the interpreter has parts of.
    modules: [(Py<PyAny>, ModuleId); 3],
    builtins: Py<PyAny>,
}

static CLASSES: PyOnceLock<Classes> = PyOnceLock::new();

fn classes(py: Python<'_>) -> PyResult<&'static Classes> {
    CLASSES.get_or_try_init(py, || {
        let values = py.import("tilewright._values")?;
        let functions = py.import("tilewright._functions")?;
        Ok(Classes {
            deferred: values.getattr("Deferred")?.unbind(),
            dtype: values.getattr("dtype")?.unbind(),
            function: values.getattr("LanguageFunction")?.unbind(),
            prim_func: functions.getattr("PrimFunc")?.unbind(),
            macro_: functions.getattr("Macro")?.unbind(),
            language: py.import("tilewright.language")?.into_any().unbind(),
            modules: [
                (py.import("math")?.into_any().unbind(), ModuleId::Math),
                (
                    py.import("itertools")?.into_any().unbind(),
                    ModuleId::Itertools,
                ),
                (
                    py.import("functools")?.into_any().unbind(),
                    ModuleId::Functools,
                ),
            ],
            builtins: py.import("builtins")?.into_any().unbind(),
        })
    })
}

/// What an object is to the interpreter.
pub fn to_value(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    object: &Bound<'_, PyAny>,
    span: Span,
) -> Result<Value> {
    match plain(object) {
        Some(value) => Ok(value),
        // Objects may hold each other to any depth.
        None => stage.deeper(span, |stage| known_value(shared, stage, object, span)),
    }
}

fn known_value(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    object: &Bound<'_, PyAny>,
    span: Span,
) -> Result<Value> {
    let py = object.py();
    let known = classes(py).map_err(|e| shared.error(py, e, span))?;
    let is_a = |class: &Py<PyAny>| object.is_instance(class.bind(py)).unwrap_or(false);
    let fail = |e: PyErr| shared.error(py, e, span);
    if let Ok(items) = object.cast_exact::<PyTuple>() {
        return sequence(shared, stage, items.iter(), span).map(Value::tuple);
    }
    if is_a(&known.dtype) {
        let name = object.extract::<String>().map_err(fail)?;
        if let Some(dtype) = dtypes::from_name(&name) {
            return Ok(Value::DType(dtype));
        }
    }
    if is_a(&known.function) {
        let name: String = object
            .getattr("name")
            .and_then(|n| n.extract())
            .map_err(fail)?;
        return stage.language_name(&name, span);
    }
    if object.is(known.language.bind(py)) {
        return Ok(Value::Module(ModuleId::Language));
    }
    if let Some((_, id)) = known.modules.iter().find(|(m, _)| object.is(m.bind(py))) {
        return Ok(Value::Module(*id));
    }
    if is_a(&known.deferred) {
        return replay(shared, stage, object, span);
    }
    for (class, role) in [
        (&known.prim_func, Role::PrimFunc),
        (&known.macro_, Role::Macro),
    ] {
        if is_a(class) {
            let function = object.getattr("function").map_err(fail)?;
            // A method brings what it is bound to, which only a call can give.
            if function.hasattr("__self__").unwrap_or(false) {
                return Ok(held(shared, object));
            }
            let function = shared.function(stage, &function, None, span)?;
            return stage.host_staged(&function, role);
        }
    }
    if let Some(value) = builtin(py, known, object) {
        return Ok(value);
    }
    if let Ok(slice) = object.cast_exact::<PySlice>() {
        let part = |stage: &mut Stage, name: &str| {
            let part = slice.getattr(name).map_err(fail)?;
            to_value(shared, stage, &part, span)
        };
        let lower = part(stage, "start")?;
        let upper = part(stage, "stop")?;
        let step = part(stage, "step")?;
        return Ok(Value::Slice(Rc::new(SliceValue { lower, upper, step })));
    }
    if let Ok(range) = object.cast_exact::<PyRange>() {
        let part = |name: &str| range.getattr(name).and_then(|v| v.extract::<i128>());
        if let (Ok(start), Ok(stop), Ok(step)) = (part("start"), part("stop"), part("step")) {
            return Ok(Value::Range(value::PyRange { start, stop, step }));
        }
    }
    let module = object.get_type().module();
    let module = module.map(|m| m.to_string()).unwrap_or_default();
    // Numbers of numpy, and shapes of torch, are what they hold.
    if module == "numpy" && object.hasattr("item").unwrap_or(false) {
        let scalar = object.getattr("shape").and_then(|s| s.len()).unwrap_or(1) == 0;
        let number = object.call_method0("item");
        if let (true, Ok(number)) = (scalar, number)
            && let Some(value) = plain(&number)
        {
            return Ok(value);
        }
    }
    if module == "torch" && object.is_instance_of::<PyTuple>() {
        let items = object.try_iter().map_err(fail)?.flatten();
        return sequence(shared, stage, items, span).map(Value::tuple);
    }
    Ok(held(shared, object))
}

/// The items of a list, dict, set or tuple as a container of the interpreter's own.
pub fn contents(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    object: &Bound<'_, PyAny>,
    span: Span,
) -> Result<Option<Value>> {
    stage.deeper(span, |stage| items_of(shared, stage, object, span))
}

fn items_of(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    object: &Bound<'_, PyAny>,
    span: Span,
) -> Result<Option<Value>> {
    if let Ok(items) = object.cast::<PyList>() {
        let items = items.iter();
        return nested(shared, stage, items, span).map(|items| Some(Value::list(items)));
    }
    if let Ok(items) = object.cast::<PyTuple>() {
        let items = items.iter();
        return nested(shared, stage, items, span).map(|items| Some(Value::tuple(items)));
    }
    if let Ok(items) = object.cast::<PyDict>() {
        return dict(shared, stage, items, span);
    }
    if object.is_instance_of::<PySet>() || object.is_instance_of::<PyFrozenSet>() {
        return set(shared, stage, object, span);
    }
    Ok(None)
}

/// Items with theirs, down to what holds none.
fn nested<'py>(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    span: Span,
) -> Result<Vec<Value>> {
    let each = items.map(|item| {
        let value = to_value(shared, stage, &item, span)?;
        stage.own_container(value, span)
    });
    each.collect()
}

fn held(shared: &Rc<Shared>, object: &Bound<'_, PyAny>) -> Value {
    Value::Host(Rc::new(Object::new(
        shared.clone(),
        object.clone().unbind(),
    )))
}

/// Values that need no look at the kernel.
pub fn plain(object: &Bound<'_, PyAny>) -> Option<Value> {
    if object.is_none() {
        return Some(Value::None);
    }
    if let Ok(b) = object.cast::<PyBool>() {
        return Some(Value::Bool(b.is_true()));
    }
    if object.cast_exact::<PyInt>().is_ok() {
        // What needs more bits stays Python's.
        return object.extract::<i128>().ok().map(Value::Int);
    }
    if let Ok(f) = object.cast_exact::<PyFloat>() {
        return Some(Value::Float(f.value()));
    }
    if let Ok(s) = object.cast_exact::<PyString>() {
        return Some(Value::str(s.to_string_lossy()));
    }
    object
        .cast::<PyEllipsis>()
        .is_ok()
        .then_some(Value::Ellipsis)
}

fn sequence<'py>(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    items: impl Iterator<Item = Bound<'py, PyAny>>,
    span: Span,
) -> Result<Vec<Value>> {
    items
        .map(|item| to_value(shared, stage, &item, span))
        .collect()
}

fn dict(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    items: &Bound<'_, PyDict>,
    span: Span,
) -> Result<Option<Value>> {
    let mut dict = Dict::default();
    for (key, value) in items.iter() {
        let key = to_value(shared, stage, &key, span)?;
        let Some(hash) = key.key() else {
            return Ok(None);
        };
        let value = to_value(shared, stage, &value, span)?;
        let value = stage.own_container(value, span)?;
        dict.insert(hash, Entry { key, value });
    }
    Ok(Some(Value::Dict(Rc::new(RefCell::new(dict)))))
}

fn set(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    object: &Bound<'_, PyAny>,
    span: Span,
) -> Result<Option<Value>> {
    let py = object.py();
    let items = object.try_iter().map_err(|e| shared.error(py, e, span))?;
    let mut dict = Dict::default();
    for key in sequence(shared, stage, items.flatten(), span)? {
        let Some(hash) = key.key() else {
            return Ok(None);
        };
        let value = Value::None;
        dict.insert(hash, Entry { key, value });
    }
    Ok(Some(Value::Set(Rc::new(RefCell::new(dict)))))
}

/// Python's own `len`, `range` and the like are the interpreter's.
fn builtin(py: Python<'_>, known: &Classes, object: &Bound<'_, PyAny>) -> Option<Value> {
    let name: String = object.getattr("__name__").ok()?.extract().ok()?;
    let own = known.builtins.bind(py).getattr(&*name).ok()?;
    if !own.is(object) {
        return None;
    }
    builtins::lookup(&name)
}

/// Says again what the language was told outside a kernel.
fn replay(
    shared: &Rc<Shared>,
    stage: &mut Stage,
    object: &Bound<'_, PyAny>,
    span: Span,
) -> Result<Value> {
    let py = object.py();
    let fail = |e: PyErr| shared.error(py, e, span);
    let kind: String = object
        .getattr("_kind")
        .and_then(|k| k.extract())
        .map_err(fail)?;
    let parts = object.getattr("_parts").map_err(fail)?;
    let part = |at: usize| parts.get_item(at).map_err(fail);
    let name = |at: usize| part(at).and_then(|p| p.extract::<String>().map_err(fail));
    let values = |stage: &mut Stage, at: usize| {
        let items = part(at)?.try_iter().map_err(fail)?.flatten();
        sequence(shared, stage, items, span)
    };
    match &*kind {
        "value" => {
            let kept = part(0)?;
            let kept = kept.cast::<Kept>().map_err(|e| fail(e.into()))?.get();
            match shared.kept.borrow().get(kept.at) {
                Some(value) if kept.compilation == shared.id => Ok(value.clone()),
                _ => {
                    let message = "a value of another kernel, which is not there any more";
                    let error = Diagnostic::error(codes::WRONG_VALUE, span, message);
                    Err(error.help("make it anew in each kernel").into())
                }
            }
        }
        "name" => stage.language_name(&name(0)?, span),
        "op" => {
            let operands = values(stage, 1)?;
            stage.operate(&name(0)?, &operands, span)
        }
        "call" => {
            let function = to_value(shared, stage, &part(0)?, span)?;
            let args = values(stage, 1)?;
            let mut keywords = Vec::new();
            let given = part(2)?;
            let given = given.cast::<PyDict>().map_err(|e| fail(e.into()))?;
            for (name, value) in given.iter() {
                let name: String = name.extract().map_err(fail)?;
                keywords.push((Rc::from(name), to_value(shared, stage, &value, span)?));
            }
            stage.call_from_host(&function, args, &keywords, span)
        }
        other => {
            let error = pyo3::exceptions::PyTypeError::new_err(format!("no such kind: {other}"));
            Err(fail(error))
        }
    }
}

/// A value as a Python object; values of the kernel are wrapped.
pub fn to_python<'py>(
    shared: &Shared,
    py: Python<'py>,
    value: &Value,
) -> PyResult<Bound<'py, PyAny>> {
    object_of(shared, py, value, MAX_NESTING)
}

/// Containers inside each other, at the most: a list may contain itself.
const MAX_NESTING: u32 = 100;

fn object_of<'py>(
    shared: &Shared,
    py: Python<'py>,
    value: &Value,
    depth: u32,
) -> PyResult<Bound<'py, PyAny>> {
    let Some(depth) = depth.checked_sub(1) else {
        return Err(PyRecursionError::new_err("containers are nested too deep"));
    };
    let list = |items: &[Value]| -> PyResult<Vec<Bound<'py, PyAny>>> {
        items
            .iter()
            .map(|item| object_of(shared, py, item, depth))
            .collect()
    };
    match value {
        Value::None => Ok(py.None().into_bound(py)),
        Value::Ellipsis => Ok(py.Ellipsis().into_bound(py)),
        Value::Bool(b) => b.into_bound_py_any(py),
        Value::Int(_) | Value::Dim(_) => value.as_int().unwrap_or(0).into_bound_py_any(py),
        Value::Float(f) => f.into_bound_py_any(py),
        Value::Str(s) => (&**s).into_bound_py_any(py),
        Value::Tuple(items) => Ok(PyTuple::new(py, list(items)?)?.into_any()),
        Value::List(items) => Ok(PyList::new(py, list(&items.borrow())?)?.into_any()),
        Value::Dict(items) => {
            let dict = PyDict::new(py);
            for entry in items.borrow().values() {
                dict.set_item(
                    object_of(shared, py, &entry.key, depth)?,
                    object_of(shared, py, &entry.value, depth)?,
                )?;
            }
            Ok(dict.into_any())
        }
        Value::Set(items) => {
            let set = PySet::empty(py)?;
            for entry in items.borrow().values() {
                set.add(object_of(shared, py, &entry.key, depth)?)?;
            }
            Ok(set.into_any())
        }
        Value::Slice(slice) => {
            let class = py.import("builtins")?.getattr("slice")?;
            class.call1((
                object_of(shared, py, &slice.lower, depth)?,
                object_of(shared, py, &slice.upper, depth)?,
                object_of(shared, py, &slice.step, depth)?,
            ))
        }
        Value::Range(r) => {
            let class = py.import("builtins")?.getattr("range")?;
            class.call1((r.start, r.stop, r.step))
        }
        Value::DType(dtype) => dtype_object(py, *dtype),
        Value::Lang(f) => py.import("tilewright.language")?.getattr(f.name),
        Value::Builtin(b) => {
            let own = matches!(builtins::lookup(b.0.name), Some(Value::Builtin(own)) if own == *b);
            let modules: &[&str] = match own {
                true => &["builtins"],
                false => &["math", "itertools", "functools"],
            };
            let mut found = modules.iter().map(|m| py.import(*m)?.getattr(b.0.name));
            match found.find(PyResult::is_ok) {
                Some(object) => object,
                None => keep(shared, py, value),
            }
        }
        Value::Module(ModuleId::Language) => Ok(py.import("tilewright.language")?.into_any()),
        Value::Module(ModuleId::Math) => Ok(py.import("math")?.into_any()),
        Value::Module(ModuleId::Itertools) => Ok(py.import("itertools")?.into_any()),
        Value::Module(ModuleId::Functools) => Ok(py.import("functools")?.into_any()),
        Value::Module(ModuleId::Root) => Ok(py.import("tilewright")?.into_any()),
        Value::Host(object) => match object.as_any().downcast_ref::<Object>() {
            Some(object) => Ok(object.object.bind(py).clone()),
            None => keep(shared, py, value),
        },
        _ => keep(shared, py, value),
    }
}

fn keep<'py>(shared: &Shared, py: Python<'py>, value: &Value) -> PyResult<Bound<'py, PyAny>> {
    let class = py.import("tilewright._values")?.getattr("Deferred")?;
    let mut table = shared.kept.borrow_mut();
    table.push(value.clone());
    let kept = Kept {
        compilation: shared.id,
        at: table.len() - 1,
    };
    drop(table);
    let kept = Bound::new(py, kept)?;
    class.call1(("value", (kept,)))
}

pub fn dtype_object(py: Python<'_>, dtype: DType) -> PyResult<Bound<'_, PyAny>> {
    let class = py.import("tilewright._values")?.getattr("dtype")?;
    class.call1((dtype.to_string(),))
}

/// Whether a value, or a part of it, exists only in the kernel.
pub fn is_of_kernel(value: &Value) -> bool {
    is_of_kernel_within(value, MAX_NESTING)
}

fn is_of_kernel_within(value: &Value, depth: u32) -> bool {
    let Some(depth) = depth.checked_sub(1) else {
        return true;
    };
    let has = |value: &Value| is_of_kernel_within(value, depth);
    match value {
        Value::Tuple(items) => items.iter().any(has),
        Value::List(items) => items.borrow().iter().any(has),
        Value::Dict(items) => items.borrow().values().any(|e| has(&e.value)),
        Value::Slice(s) => [&s.lower, &s.upper, &s.step].into_iter().any(has),
        Value::Expr(_)
        | Value::Buffer(_)
        | Value::Element(_)
        | Value::Region(_)
        | Value::Ref(_)
        | Value::Loop(_)
        | Value::Frame(_)
        | Value::Object(_)
        | Value::Function(_)
        | Value::Staged(_) => true,
        _ => false,
    }
}

/// The dtype that a Python object names: of torch, of numpy, or a string.
pub fn named_dtype(object: &Bound<'_, PyAny>) -> Option<DType> {
    let names = object.py().import("tilewright._values").ok()?;
    let name = names.getattr("dtype_name").ok()?.call1((object,)).ok()?;
    dtypes::from_name(&name.extract::<String>().ok()?)
}
