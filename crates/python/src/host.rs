//! Python as the front end's host.

use std::any::Any;
use std::cell::RefCell;
use std::collections::BTreeMap;
use std::fmt;
use std::rc::Rc;
use std::sync::Arc;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};

use pyo3::prelude::*;
use pyo3::types::{PyDict, PyString, PyTuple};
use rustc_hash::FxHashMap;
use tilewright::frontend::eval::Stage;
use tilewright::frontend::host::{Host, HostFunction, HostObject, Namespace};
use tilewright::frontend::value::{Role, Value};
use tilewright::frontend::{Error, Result, codes};
use tilewright::ir::{DType, Diagnostic, FileId, SourceMap, Span};

use crate::convert::{contents, is_of_kernel, named_dtype, plain, to_python, to_value};

/// What all objects of one compilation share.
pub struct Shared {
    /// Tells compilations apart.
    pub id: u64,
    /// Values of the kernel that Python has in hand.
    pub kept: RefCell<Vec<Value>>,
    pub sources: RefCell<SourceMap>,
    files: RefCell<FxHashMap<String, (FileId, Rc<str>)>>,
    /// The exception behind the last diagnostic that has one.
    pub exception: RefCell<Option<PyErr>>,
    pub interrupted: Arc<AtomicBool>,
}

impl fmt::Debug for Shared {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Shared")
    }
}

static COMPILATIONS: AtomicU64 = AtomicU64::new(0);

impl Shared {
    pub fn new(interrupted: Arc<AtomicBool>) -> Rc<Shared> {
        Rc::new(Shared {
            id: COMPILATIONS.fetch_add(1, Ordering::Relaxed),
            kept: RefCell::default(),
            sources: RefCell::default(),
            files: RefCell::default(),
            exception: RefCell::default(),
            interrupted,
        })
    }

    /// The diagnostic of an exception that Python code raised.
    pub fn error(&self, py: Python<'_>, error: PyErr, span: Span) -> Error {
        let class = error.get_type(py).name();
        let class = class.map_or_else(|_| "an exception".to_string(), |name| name.to_string());
        let text = error.value(py).to_string();
        let first = text.lines().next().unwrap_or_default();
        let message = match first.is_empty() {
            true => format!("Python raised {class}"),
            false => format!("Python raised {class}: {first}"),
        };
        *self.exception.borrow_mut() = Some(error);
        Diagnostic::error(codes::HOST_EXCEPTION, span, message).into()
    }

    /// A Python function with its source, for the interpreter; `instance` is what it is a method
    /// of.
    pub fn function(
        self: &Rc<Shared>,
        stage: &mut Stage,
        function: &Bound<'_, PyAny>,
        instance: Option<&Bound<'_, PyAny>>,
        span: Span,
    ) -> Result<HostFunction> {
        let py = function.py();
        let described = self.describe(stage, function, instance, span);
        described.map_err(|e| match e {
            Described::Python(e) => self.error(py, e, span),
            Described::Located(e) => e,
        })
    }

    fn describe(
        self: &Rc<Shared>,
        stage: &mut Stage,
        function: &Bound<'_, PyAny>,
        instance: Option<&Bound<'_, PyAny>>,
        span: Span,
    ) -> std::result::Result<HostFunction, Described> {
        let py = function.py();
        let source = py.import("tilewright._source")?;
        let facts = source.getattr("describe")?.call1((function, instance))?;
        type Facts<'py> = (
            String,
            Option<String>,
            u32,
            String,
            Option<(u32, u32)>,
            Vec<(String, Bound<'py, PyAny>)>,
            Bound<'py, PyDict>,
            Bound<'py, PyDict>,
        );
        let (path, text, line, name, inside, defaults, cells, globals): Facts<'_> =
            facts.extract()?;
        let Some(text) = text else {
            let message = format!("the source of `{name}` is not known");
            let error = Diagnostic::error(codes::NO_SOURCE, span, message)
                .note(format!("Python says that it is in `{path}`"))
                .help("put the function into a file; code of `exec` or a prompt has no source");
            return Err(Described::Located(error.into()));
        };
        let (file, text) = self.file(&path, text);
        let mut known = Vec::new();
        for (name, value) in defaults {
            known.push((Rc::from(name), to_value(self, stage, &value, span)?));
        }
        Ok(HostFunction {
            file,
            text,
            line,
            name: Rc::from(name),
            inside,
            space: Rc::new(Space {
                shared: self.clone(),
                cells: cells.unbind(),
                globals: globals.unbind(),
            }),
            defaults: known,
        })
    }

    fn file(&self, path: &str, text: String) -> (FileId, Rc<str>) {
        let mut files = self.files.borrow_mut();
        if let Some((file, text)) = files.get(path) {
            return (*file, text.clone());
        }
        let file = self.sources.borrow_mut().add(path, text.as_str());
        let text: Rc<str> = Rc::from(text);
        files.insert(path.to_string(), (file, text.clone()));
        (file, text)
    }
}

enum Described {
    Python(PyErr),
    Located(Error),
}

impl From<PyErr> for Described {
    fn from(e: PyErr) -> Described {
        Described::Python(e)
    }
}

impl From<Error> for Described {
    fn from(e: Error) -> Described {
        Described::Located(e)
    }
}

#[derive(Debug)]
pub struct Python_ {
    pub shared: Rc<Shared>,
}

impl Host for Python_ {
    fn object(&self, value: &Value) -> Option<Rc<dyn HostObject>> {
        Python::attach(|py| {
            let object = to_python(&self.shared, py, value).ok()?.unbind();
            Some(Rc::new(Object::new(self.shared.clone(), object)) as Rc<dyn HostObject>)
        })
    }

    fn operate(
        &self,
        stage: &mut Stage,
        name: &str,
        operands: &[Value],
        span: Span,
    ) -> Result<Value> {
        Python::attach(|py| {
            let fail = |e: PyErr| self.shared.error(py, e, span);
            let operator = py.import("operator").and_then(|m| m.getattr(name));
            let operands = arguments(&self.shared, py, operands).map_err(fail)?;
            let answer = operator.and_then(|f| f.call1(operands)).map_err(fail)?;
            to_value(&self.shared, stage, &answer, span)
        })
    }

    fn builtin(&self, stage: &mut Stage, name: &str, span: Span) -> Result<Option<Value>> {
        Python::attach(|py| {
            let builtins = py.import("builtins");
            let Ok(found) = builtins.and_then(|m| m.getattr(name)) else {
                return Ok(None);
            };
            // The interpreter asks for what its own built-in does not do.
            let object = Object::new(self.shared.clone(), found.clone().unbind());
            match plain(&found) {
                Some(value) => Ok(Some(value)),
                None if found.is_callable() => Ok(Some(Value::Host(Rc::new(object)))),
                None => to_value(&self.shared, stage, &found, span).map(Some),
            }
        })
    }

    fn import(&self, stage: &mut Stage, path: &str, span: Span) -> Result<Value> {
        Python::attach(|py| {
            let module = py
                .import(path)
                .map_err(|e| self.shared.error(py, e, span))?;
            to_value(&self.shared, stage, module.as_any(), span)
        })
    }

    fn interrupted(&self) -> bool {
        self.shared.interrupted.load(Ordering::Relaxed)
    }
}

fn arguments<'py>(
    shared: &Shared,
    py: Python<'py>,
    values: &[Value],
) -> PyResult<Bound<'py, PyTuple>> {
    let objects = values.iter().map(|v| to_python(shared, py, v));
    PyTuple::new(py, objects.collect::<PyResult<Vec<_>>>()?)
}

/// A Python object that the interpreter holds.
pub struct Object {
    shared: Rc<Shared>,
    pub object: Py<PyAny>,
}

impl fmt::Debug for Object {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.text(true))
    }
}

impl Object {
    pub fn new(shared: Rc<Shared>, object: Py<PyAny>) -> Object {
        Object { shared, object }
    }

    /// The function that the interpreter is to run in the place of the object, and the arguments
    /// that are bound to it.
    fn interpreted<'py>(
        &self,
        py: Python<'py>,
        args: &[Value],
        keywords: &[(Rc<str>, Value)],
    ) -> PyResult<Option<Interpreted<'py>>> {
        let source = py.import("tilewright._source")?;
        let given = args.iter().chain(keywords.iter().map(|(_, v)| v));
        let of_kernel = given.into_iter().any(is_of_kernel);
        let found = source
            .getattr("interpreted")?
            .call1((self.object.bind(py), of_kernel))?;
        found.extract()
    }
}

impl HostObject for Object {
    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attribute(&self, stage: &mut Stage, name: &str, span: Span) -> Result<Option<Value>> {
        Python::attach(|py| {
            let object = self.object.bind(py);
            match object.getattr(name) {
                Ok(found) => to_value(&self.shared, stage, &found, span).map(Some),
                Err(e) if e.is_instance_of::<pyo3::exceptions::PyAttributeError>(py) => Ok(None),
                Err(e) => Err(self.shared.error(py, e, span)),
            }
        })
    }

    fn set_attribute(&self, name: &str, value: &Value, span: Span) -> Result<()> {
        Python::attach(|py| {
            let value = to_python(&self.shared, py, value);
            let done = value.and_then(|value| self.object.bind(py).setattr(name, value));
            done.map_err(|e| self.shared.error(py, e, span))
        })
    }

    fn call(
        &self,
        stage: &mut Stage,
        args: &[Value],
        keywords: &[(Rc<str>, Value)],
        span: Span,
    ) -> Result<Value> {
        Python::attach(|py| {
            let fail = |e: PyErr| self.shared.error(py, e, span);
            if let Some((function, bound, named, is_macro)) =
                self.interpreted(py, args, keywords).map_err(fail)?
            {
                let instance = bound.first();
                let function = self.shared.function(stage, &function, instance, span)?;
                let callee = match is_macro {
                    true => stage.host_staged(&function, Role::Macro)?,
                    false => Value::Function(stage.host_closure(&function)?),
                };
                let mut all = Vec::with_capacity(args.len() + bound.len());
                for bound in bound {
                    all.push(to_value(&self.shared, stage, &bound, span)?);
                }
                all.extend_from_slice(args);
                let mut all_named = keywords.to_vec();
                for (name, value) in named {
                    // What the call gives replaces what was bound.
                    if !keywords.iter().any(|(n, _)| **n == *name) {
                        let value = to_value(&self.shared, stage, &value, span)?;
                        all_named.push((Rc::from(name), value));
                    }
                }
                return stage.call_from_host(&callee, all, &all_named, span);
            }
            let positional = arguments(&self.shared, py, args).map_err(fail)?;
            let named = PyDict::new(py);
            for (name, value) in keywords {
                let value = to_python(&self.shared, py, value).map_err(fail)?;
                named
                    .set_item(PyString::new(py, name), value)
                    .map_err(fail)?;
            }
            let answer = self.object.bind(py).call(positional, Some(&named));
            to_value(&self.shared, stage, &answer.map_err(fail)?, span)
        })
    }

    fn items(&self, stage: &mut Stage, span: Span) -> Result<Vec<Value>> {
        Python::attach(|py| {
            let fail = |e: PyErr| self.shared.error(py, e, span);
            let mut out = Vec::new();
            for item in self.object.bind(py).try_iter().map_err(fail)? {
                out.push(to_value(&self.shared, stage, &item.map_err(fail)?, span)?);
                if out.len() > MAX_ITEMS {
                    let message = format!("a Python iterator of more than {MAX_ITEMS} items");
                    return Err(Diagnostic::error(codes::BUDGET, span, message).into());
                }
            }
            Ok(out)
        })
    }

    fn truth(&self, span: Span) -> Result<bool> {
        Python::attach(|py| {
            let truth = self.object.bind(py).is_truthy();
            truth.map_err(|e| self.shared.error(py, e, span))
        })
    }

    fn equals(&self, other: &Value) -> bool {
        Python::attach(|py| {
            let other = to_python(&self.shared, py, other);
            let equal = other.and_then(|other| self.object.bind(py).eq(other));
            equal.unwrap_or(false)
        })
    }

    fn is(&self, other: &dyn HostObject) -> bool {
        let other = other.as_any().downcast_ref::<Object>();
        other.is_some_and(|other| self.object.is(&other.object))
    }

    fn hash(&self) -> Option<i64> {
        Python::attach(|py| Some(self.object.bind(py).hash().ok()? as i64))
    }

    fn number(&self) -> Option<Value> {
        Python::attach(|py| {
            let object = self.object.bind(py);
            let is_array = object.hasattr("__len__").unwrap_or(false);
            if is_array || object.is_callable() {
                return None;
            }
            for method in ["__index__", "__float__"] {
                if object.hasattr(method).unwrap_or(false)
                    && let Ok(number) = object.call_method0(method)
                {
                    return plain(&number);
                }
            }
            None
        })
    }

    fn string(&self) -> Option<String> {
        Python::attach(|py| {
            let object = self.object.bind(py);
            object.cast::<PyString>().ok()?.extract().ok()
        })
    }

    fn contents(&self, stage: &mut Stage, span: Span) -> Result<Option<Value>> {
        Python::attach(|py| contents(&self.shared, stage, self.object.bind(py), span))
    }

    fn dtype(&self) -> Option<DType> {
        Python::attach(|py| named_dtype(self.object.bind(py)))
    }

    fn callable(&self) -> bool {
        Python::attach(|py| self.object.bind(py).is_callable())
    }

    fn class(&self) -> String {
        Python::attach(|py| {
            let class = self.object.bind(py).get_type();
            let name = class.qualname().map(|n| n.to_string());
            let name = name.unwrap_or_else(|_| "object".to_string());
            match class.module() {
                Ok(module) if module != "builtins" => format!("{module}.{name}"),
                _ => name,
            }
        })
    }

    fn text(&self, repr: bool) -> String {
        Python::attach(|py| {
            let object = self.object.bind(py);
            let text = match repr {
                true => object.repr(),
                false => object.str(),
            };
            text.map_or_else(|_| self.class(), |text| text.to_string())
        })
    }
}

/// A function, the arguments that are bound to it by place and by name, and whether it is a macro.
type Interpreted<'py> = (
    Bound<'py, PyAny>,
    Vec<Bound<'py, PyAny>>,
    BTreeMap<String, Bound<'py, PyAny>>,
    bool,
);

/// The most that a Python iterator may give to the interpreter.
const MAX_ITEMS: usize = 1 << 20;

/// What a Python function sees outside its body: its cells, then its module.
struct Space {
    shared: Rc<Shared>,
    cells: Py<PyDict>,
    globals: Py<PyDict>,
}

impl fmt::Debug for Space {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str("Space")
    }
}

impl Namespace for Space {
    fn get(&self, stage: &mut Stage, name: &str, span: Span) -> Result<Option<Value>> {
        Python::attach(|py| {
            let fail = |e: PyErr| self.shared.error(py, e, span);
            if let Some(cell) = self.cells.bind(py).get_item(name).map_err(fail)? {
                // A cell is empty until its name is assigned.
                let Ok(value) = cell.getattr("cell_contents") else {
                    let message = format!("`{name}` has no value yet in the function around");
                    let error = Diagnostic::error(codes::UNKNOWN_NAME, span, message);
                    return Err(error.help("assign it before the kernel is defined").into());
                };
                return to_value(&self.shared, stage, &value, span).map(Some);
            }
            match self.globals.bind(py).get_item(name).map_err(fail)? {
                Some(value) => to_value(&self.shared, stage, &value, span).map(Some),
                None => Ok(None),
            }
        })
    }

    fn names(&self) -> Vec<String> {
        Python::attach(|py| {
            let dicts = [&self.cells, &self.globals];
            let keys = dicts.into_iter().flat_map(|d| d.bind(py).keys());
            keys.map(|k| k.to_string()).collect()
        })
    }
}
