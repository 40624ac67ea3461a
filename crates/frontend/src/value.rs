//! The values of compile-time Python.
//!
//! What is a Python value acts as a constant; [`Value::Expr`], [`Value::Buffer`],
//! [`Value::Element`] and [`Value::Region`] stand for what exists only when the kernel runs.
//! Values are cheap to clone: everything large is shared.

use std::any::Any;
use std::cell::RefCell;
use std::fmt;
use std::rc::Rc;

use indexmap::IndexMap;
use rustc_hash::FxBuildHasher;
use tilewright_ir::{Buffer, DType, Expr, LoopKind, Region, Span};

use crate::Result;
use crate::eval::builtins::Builtin;
use crate::eval::modules::ModuleId;
use crate::eval::scope::Scope;
use crate::host::{HostKey, HostObject};
use crate::lang::LangFn;
use crate::lang::pipelined::Turns;
use crate::record::Recorder;
use crate::syntax::Symbol;
use crate::syntax::ast::FuncDef;

#[derive(Clone, Debug)]
pub enum Value {
    None,
    Ellipsis,
    Bool(bool),
    Int(i128),
    /// An int that a `T.const` dimension gave; the same as an int everywhere, except that a
    /// tensor shape remembers it.
    Dim(Dim),
    Float(f64),
    Str(Rc<str>),
    Tuple(Rc<[Value]>),
    List(Rc<RefCell<Vec<Value>>>),
    Dict(Rc<RefCell<Dict>>),
    /// A set is a dict whose values are not looked at.
    Set(Rc<RefCell<Dict>>),
    Slice(Rc<SliceValue>),
    Range(PyRange),
    DType(DType),
    /// A run-time scalar.
    Expr(Expr),
    Buffer(Buffer),
    /// `A[i, j]`: an element's value, or the start point of a copy.
    Element(Rc<Element>),
    /// `A[a:b, j]`
    Region(Rc<RegionValue>),
    /// What a `for` goes over to become a loop of the kernel.
    Loop(Rc<LoopSpec>),
    /// What a `with` enters.
    Frame(Rc<dyn Frame>),
    /// A value that one family of language functions makes and reads.
    Object(Rc<dyn Object>),
    Function(Rc<Closure>),
    /// A function with a role in staging: a kernel, a macro, a factory.
    Staged(Rc<StagedFn>),
    Decorator(Rc<Decorator>),
    Builtin(Builtin),
    /// A method with the value it is called on.
    Method(Rc<Method>),
    Lang(&'static LangFn),
    Module(ModuleId),
    Class(Rc<ClassValue>),
    /// A name that stands for an element by reference; only ever found in a scope.
    Ref(Rc<Element>),
    /// Something that exists only in a running Python: fails when used, not before.
    Opaque(Rc<Opaque>),
    /// A value of the host, which alone knows what it is.
    Host(Rc<dyn HostObject>),
}

#[derive(Clone, Copy, Debug)]
pub struct Dim {
    /// Which of the stage's const dimensions.
    pub id: usize,
    pub value: i128,
}

#[derive(Clone, Debug)]
pub struct SliceValue {
    pub lower: Value,
    pub upper: Value,
    pub step: Value,
}

/// A Python `range`.
#[derive(Clone, Copy, Debug)]
pub struct PyRange {
    pub start: i128,
    pub stop: i128,
    /// Never zero.
    pub step: i128,
}

impl PyRange {
    pub fn len(self) -> i128 {
        let distance = if self.step > 0 {
            self.stop - self.start
        } else {
            self.start - self.stop
        };
        let step = self.step.abs();
        if distance <= 0 {
            0
        } else {
            (distance - 1) / step + 1
        }
    }

    pub fn is_empty(self) -> bool {
        self.len() == 0
    }

    pub fn at(self, index: i128) -> i128 {
        self.start + index * self.step
    }
}

/// One element of a buffer.
#[derive(Clone, Debug)]
pub struct Element {
    pub buffer: Buffer,
    pub indices: Vec<Expr>,
    pub span: Span,
}

/// A rectangle of a buffer as the user wrote it.
#[derive(Clone, Debug)]
pub struct RegionValue {
    pub region: Region,
    /// Which dimensions were written as one index rather than as a slice.
    pub scalar: Vec<bool>,
    pub span: Span,
}

#[derive(Clone, Debug)]
pub enum LoopSpec {
    /// A new loop. Kinds other than parallel and persistent make a nest of their axes.
    Axes {
        kind: LoopKind,
        axes: Vec<AxisSpec>,
        /// When its statements run, as far as the user says.
        turns: Option<Turns>,
    },
    /// Names for indices that exist already; the body runs in place.
    Bound(Vec<Expr>),
}

impl LoopSpec {
    pub fn new(kind: LoopKind, axes: Vec<AxisSpec>) -> LoopSpec {
        LoopSpec::Axes {
            kind,
            axes,
            turns: None,
        }
    }
}

#[derive(Clone, Debug)]
pub struct AxisSpec {
    pub start: Expr,
    pub stop: Expr,
    pub step: Expr,
}

impl AxisSpec {
    /// `0 .. stop`, step one.
    pub fn upto(stop: Expr) -> AxisSpec {
        AxisSpec {
            start: Expr::zero(stop.dtype()),
            step: Expr::int(1, stop.dtype()),
            stop,
        }
    }
}

/// What a `with` statement enters and leaves.
pub trait Frame: fmt::Debug {
    /// Runs before the suite; gives what `as` binds.
    fn enter(&self, rec: &mut Recorder, span: Span) -> Result<Value>;
    /// Runs after the suite.
    fn exit(&self, rec: &mut Recorder, span: Span) -> Result<()>;
}

/// A value that one family of language functions makes and reads.
pub trait Object: fmt::Debug {
    /// What messages call it: `a layout`.
    fn type_name(&self) -> &'static str;
    fn as_any(&self) -> &dyn Any;
    /// `value.name`, or `None` when there is no such attribute.
    fn attr(&self, _rec: &mut Recorder, _name: &str, _span: Span) -> Option<Result<Value>> {
        None
    }
    /// `value(args)`, or `None` when it cannot be called.
    fn call(&self, _rec: &mut Recorder, _args: &[Value], _span: Span) -> Option<Result<Value>> {
        None
    }
}

/// A `def` or a lambda with the scope it was made in.
#[derive(Debug)]
pub struct Closure {
    pub def: Rc<FuncDef>,
    pub scope: Rc<Scope>,
    /// One entry a parameter, evaluated when the function was defined.
    pub defaults: Vec<Option<Value>>,
}

/// A function with a role in staging.
#[derive(Debug)]
pub struct StagedFn {
    pub role: Role,
    pub closure: Rc<Closure>,
    /// What the `@tilelang.jit` around a returned kernel said.
    pub jit: Option<Rc<JitOptions>>,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Role {
    PrimFunc,
    Macro,
    /// `@tilelang.jit`
    Jit,
}

/// What stands after `@` once evaluated, with its arguments.
#[derive(Debug)]
pub enum Decorator {
    PrimFunc,
    Macro,
    Jit(JitOptions),
    Autotune(Vec<Value>),
    /// Changes nothing here: a cache, a test marker.
    Ignored,
}

/// The arguments of `@tilelang.jit` that matter here.
#[derive(Debug, Clone, Default)]
pub struct JitOptions {
    pub out_idx: Option<(Value, Span)>,
    pub pass_configs: Option<Value>,
    pub compile_flags: Option<Value>,
}

/// A class body is a namespace of constants here.
#[derive(Debug)]
pub struct ClassValue {
    pub name: Rc<str>,
    pub scope: Rc<Scope>,
}

/// A method with the value it is called on.
#[derive(Debug)]
pub struct Method {
    pub receiver: Value,
    pub name: Rc<str>,
}

#[derive(Debug)]
pub struct Opaque {
    /// How the user wrote it: `torch.float16`.
    pub name: String,
    /// Why it has no value here.
    pub reason: OpaqueReason,
}

#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum OpaqueReason {
    /// A module that is not part of the language.
    ForeignModule,
    /// A tensor parameter that has no annotation yet.
    Tensor,
}

/// An ordered dict.
pub type Dict = IndexMap<Key, Entry, FxBuildHasher>;

/// The key as the user wrote it, and its value.
#[derive(Clone, Debug)]
pub struct Entry {
    pub key: Value,
    pub value: Value,
}

/// The hashable part of a value.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub enum Key {
    None,
    /// `True == 1` in Python, so bools are ints here. Whole floats are too.
    Int(i128),
    Float(u64),
    Str(Rc<str>),
    Tuple(Vec<Key>),
    Buffer(Buffer),
    Expr(Expr),
    /// By its name: `tilelang.PassConfigKey.TL_…`.
    Opaque(Rc<str>),
    Host(HostKey),
}

impl Value {
    pub fn str(text: impl AsRef<str>) -> Value {
        Value::Str(Rc::from(text.as_ref()))
    }

    pub fn list(items: Vec<Value>) -> Value {
        Value::List(Rc::new(RefCell::new(items)))
    }

    pub fn tuple(items: Vec<Value>) -> Value {
        Value::Tuple(items.into())
    }

    /// What messages call a value of this type.
    pub fn type_name(&self) -> &'static str {
        match self {
            Value::None => "None",
            Value::Ellipsis => "`...`",
            Value::Bool(_) => "a bool",
            Value::Int(_) | Value::Dim(_) => "an int",
            Value::Float(_) => "a float",
            Value::Str(_) => "a string",
            Value::Tuple(_) => "a tuple",
            Value::List(_) => "a list",
            Value::Dict(_) => "a dict",
            Value::Set(_) => "a set",
            Value::Slice(_) => "a slice",
            Value::Range(_) => "a range",
            Value::DType(_) => "a dtype",
            Value::Expr(_) => "a run-time value",
            Value::Buffer(_) => "a buffer",
            Value::Element(_) | Value::Ref(_) => "a buffer element",
            Value::Region(_) => "a buffer region",
            Value::Loop(_) => "a loop",
            Value::Frame(_) => "a `with` frame",
            Value::Object(o) => o.type_name(),
            Value::Function(_) | Value::Builtin(_) | Value::Method(_) | Value::Lang(_) => {
                "a function"
            }
            Value::Staged(f) => match f.role {
                Role::PrimFunc => "a kernel",
                Role::Macro => "a macro",
                Role::Jit => "a kernel factory",
            },
            Value::Decorator(_) => "a decorator",
            Value::Module(_) => "a module",
            Value::Class(_) => "a class",
            Value::Opaque(_) => "a value of a running Python",
            Value::Host(_) => "a Python object",
        }
    }

    /// The value of an int or a bool.
    pub fn as_int(&self) -> Option<i128> {
        match *self {
            Value::Int(v) | Value::Dim(Dim { value: v, .. }) => Some(v),
            Value::Bool(b) => Some(b as i128),
            _ => None,
        }
    }

    /// The value of an int, a bool or a float.
    pub fn as_float(&self) -> Option<f64> {
        match *self {
            Value::Float(v) => Some(v),
            _ => self.as_int().map(|v| v as f64),
        }
    }

    pub fn as_str(&self) -> Option<&Rc<str>> {
        match self {
            Value::Str(s) => Some(s),
            _ => None,
        }
    }

    /// The items of a tuple or a list.
    pub fn sequence(&self) -> Option<Vec<Value>> {
        match self {
            Value::Tuple(items) => Some(items.to_vec()),
            Value::List(items) => Some(items.borrow().clone()),
            _ => None,
        }
    }

    /// The object of this type inside.
    pub fn object<T: Object + 'static>(&self) -> Option<&T> {
        match self {
            Value::Object(object) => object.as_any().downcast_ref(),
            _ => None,
        }
    }

    /// Whether the value exists only when the kernel runs.
    pub fn is_runtime(&self) -> bool {
        matches!(self, Value::Expr(_) | Value::Element(_))
    }

    /// Whether the value, or a part of it, belongs to the block of the kernel it was made in.
    pub fn is_block_bound(&self) -> bool {
        match self {
            Value::Expr(e) => e.as_int().is_none() && e.as_float().is_none(),
            Value::Buffer(_) | Value::Element(_) | Value::Ref(_) | Value::Region(_) => true,
            Value::Tuple(items) => items.iter().any(Value::is_block_bound),
            _ => false,
        }
    }

    /// The key that stands for this value in a dict, or `None` for what has no hash.
    pub fn key(&self) -> Option<Key> {
        Some(match self {
            Value::None => Key::None,
            Value::Bool(_) | Value::Int(_) | Value::Dim(_) => Key::Int(self.as_int()?),
            Value::Float(f) if f.fract() == 0.0 && f.abs() < 1e18 => Key::Int(*f as i128),
            Value::Float(f) => Key::Float(f.to_bits()),
            Value::Str(s) => Key::Str(s.clone()),
            Value::Tuple(items) => Key::Tuple(items.iter().map(Value::key).collect::<Option<_>>()?),
            // A dtype is its name: `{"float16": 2}[T.float16]`.
            Value::DType(d) => Key::Str(Rc::from(d.to_string())),
            Value::Buffer(b) => Key::Buffer(*b),
            Value::Expr(e) => Key::Expr(e.clone()),
            Value::Opaque(o) => Key::Opaque(Rc::from(&*o.name)),
            Value::Host(object) => Key::Host(HostKey::new(object)?),
            _ => return None,
        })
    }
}

/// A symbol with the value bound to it, for passing keyword arguments.
#[derive(Clone, Debug)]
pub struct Keyword {
    pub name: Symbol,
    pub value: Value,
    pub span: Span,
}
