//! The host: a running Python that answers what the interpreter does not know.
//!
//! A kernel file alone needs none: names that only Python could explain are located errors then.
//! With a host, such values are held as [`HostObject`]s, and what is done with them (attributes,
//! calls, operators, iteration, truth) is done by the host. What it answers comes back as a
//! [`Value`] where the interpreter knows the kind, else as another object.

use std::any::Any;
use std::fmt;
use std::rc::Rc;

use tilewright_ir::{DType, FileId, Span};

use crate::Result;
use crate::eval::Stage;
use crate::value::Value;

/// A running Python.
pub trait Host: fmt::Debug {
    /// The value as an object of the host.
    fn object(&self, value: &Value) -> Option<Rc<dyn HostObject>>;

    /// Does what Python's `operator.NAME` does.
    fn operate(
        &self,
        stage: &mut Stage,
        name: &str,
        operands: &[Value],
        span: Span,
    ) -> Result<Value>;

    /// A built-in that the interpreter does not have.
    fn builtin(&self, stage: &mut Stage, name: &str, span: Span) -> Result<Option<Value>>;

    /// `import path`
    fn import(&self, stage: &mut Stage, path: &str, span: Span) -> Result<Value>;

    /// Whether the user wants the compilation to end.
    fn interrupted(&self) -> bool;
}

/// A value of the host.
pub trait HostObject: fmt::Debug {
    fn as_any(&self) -> &dyn Any;

    /// `object.name`, or `None` when there is no such attribute.
    fn attribute(&self, stage: &mut Stage, name: &str, span: Span) -> Result<Option<Value>>;

    /// `object.name = value`
    fn set_attribute(&self, name: &str, value: &Value, span: Span) -> Result<()>;

    /// `object(*args, **keywords)`
    fn call(
        &self,
        stage: &mut Stage,
        args: &[Value],
        keywords: &[(Rc<str>, Value)],
        span: Span,
    ) -> Result<Value>;

    /// What iteration gives.
    fn items(&self, stage: &mut Stage, span: Span) -> Result<Vec<Value>>;

    fn truth(&self, span: Span) -> Result<bool>;

    /// Python's `==`.
    fn equals(&self, other: &Value) -> bool;

    /// Python's `is`.
    fn is(&self, other: &dyn HostObject) -> bool;

    /// Python's `hash`; none for what has no hash.
    fn hash(&self) -> Option<i64>;

    /// The int, float or bool that the object stands for.
    fn number(&self) -> Option<Value>;

    /// The text of what is a string.
    fn string(&self) -> Option<String>;

    /// The items of a list, dict, set or tuple as a container of the interpreter's own. Containers
    /// of the host stay its own otherwise: what changes them is done there.
    fn contents(&self, stage: &mut Stage, span: Span) -> Result<Option<Value>>;

    /// The dtype that the object names.
    fn dtype(&self) -> Option<DType>;

    fn callable(&self) -> bool;

    /// What it is: `torch.Size`.
    fn class(&self) -> String;

    /// `repr(object)` or `str(object)`.
    fn text(&self, repr: bool) -> String;
}

/// Names that a function of the host sees outside its own body.
pub trait Namespace: fmt::Debug {
    fn get(&self, stage: &mut Stage, name: &str, span: Span) -> Result<Option<Value>>;

    /// Every name, for suggestions.
    fn names(&self) -> Vec<String>;
}

/// A function that the host has and whose text the interpreter runs.
#[derive(Clone, Debug)]
pub struct HostFunction {
    pub file: FileId,
    /// The text of the whole file.
    pub text: Rc<str>,
    /// The line of the function's first decorator, of its `def`, or of the lambda; from one.
    pub line: u32,
    pub name: Rc<str>,
    /// Line from one and byte of the line from zero of something inside the body, where the host
    /// knows it: it tells lambdas of one line apart.
    pub inside: Option<(u32, u32)>,
    pub space: Rc<dyn Namespace>,
    /// Values of parameters that have a default.
    pub defaults: Vec<(Rc<str>, Value)>,
}

/// An object of the host as the key of a dict.
#[derive(Clone, Debug)]
pub struct HostKey {
    hash: i64,
    object: Rc<dyn HostObject>,
}

impl HostKey {
    pub fn new(object: &Rc<dyn HostObject>) -> Option<HostKey> {
        Some(HostKey {
            hash: object.hash()?,
            object: object.clone(),
        })
    }
}

impl PartialEq for HostKey {
    fn eq(&self, other: &HostKey) -> bool {
        self.hash == other.hash && self.object.equals(&Value::Host(other.object.clone()))
    }
}

impl Eq for HostKey {}

impl std::hash::Hash for HostKey {
    fn hash<H: std::hash::Hasher>(&self, state: &mut H) {
        self.hash.hash(state);
    }
}
