//! The `T.*` language: one file a family of functions.
//!
//! A function is a row of its family's table: a name, its parameters, and what a call does.
//! Arity, keywords and types are checked from the table before the call runs (see [`args`]).
//! To add a function, write a row in its family's `FNS`; to add a family, list its table in
//! [`FAMILIES`].

pub mod alloc;
pub mod allreduce;
pub mod annotations;
pub mod args;
pub mod atomics;
pub mod barrier;
pub mod casts;
mod cluster;
mod common;
pub mod constants;
pub mod copy;
pub mod debug;
mod descriptor;
pub mod dtypes;
pub mod extents;
pub mod fill;
pub mod foreign;
pub mod gemm;
pub mod ieee;
pub mod kernel;
pub mod layouts;
pub mod limits;
pub mod logical;
pub mod loops;
pub mod math;
mod parallel_check;
pub mod pipelined;
pub mod random;
pub mod reduce;
pub mod reducer;
mod reducer_check;
pub mod scalar;
pub mod scan;
mod scheduler;
mod stochastic;
pub mod sync;
pub mod tensor;
pub mod threads;
mod uniform_check;
pub mod unsupported;
pub(crate) mod vectors;
pub mod views;
pub mod warp;

use std::rc::Rc;
use std::sync::LazyLock;

use rustc_hash::FxHashMap;

use crate::Result;
use crate::record::{Program, Recorder};
use crate::value::{Decorator, JitOptions, Value};

pub use args::{Arg, CallArgs};
pub use common::LangState;
use common::{check_host_value, check_index, func, not_supported, positive, required_dtype};
pub(crate) use uniform_check::is_tile_work;

/// A function of the language.
pub struct LangFn {
    /// The name after `T.`.
    pub name: &'static str,
    pub params: &'static [ParamSpec],
    pub body: Body,
    /// Whether `T.name[a, b]` is the call `T.name(a, b)`.
    pub subscript: bool,
}

/// What a call does.
#[derive(Clone, Copy, Debug)]
pub enum Body {
    /// It computes a value or records statements.
    Records(fn(&mut Recorder, &CallArgs) -> Result<Value>),
    /// It also calls back into the program: a function that it was given, say.
    Calls(fn(&mut dyn Program, &CallArgs) -> Result<Value>),
}

impl std::fmt::Debug for LangFn {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        write!(f, "T.{}", self.name)
    }
}

impl LangFn {
    pub const fn new(
        name: &'static str,
        params: &'static [ParamSpec],
        call: fn(&mut Recorder, &CallArgs) -> Result<Value>,
    ) -> LangFn {
        LangFn {
            name,
            params,
            body: Body::Records(call),
            subscript: false,
        }
    }

    /// As [`LangFn::new`], for functions that call back into the program.
    pub const fn calling(
        name: &'static str,
        params: &'static [ParamSpec],
        call: fn(&mut dyn Program, &CallArgs) -> Result<Value>,
    ) -> LangFn {
        LangFn {
            name,
            params,
            body: Body::Calls(call),
            subscript: false,
        }
    }

    /// As [`LangFn::new`], for names that may also be subscripted.
    pub const fn with_subscript(
        name: &'static str,
        params: &'static [ParamSpec],
        call: fn(&mut Recorder, &CallArgs) -> Result<Value>,
    ) -> LangFn {
        LangFn {
            name,
            params,
            body: Body::Records(call),
            subscript: true,
        }
    }
}

/// A parameter of a language function.
#[derive(Debug)]
pub struct ParamSpec {
    pub name: &'static str,
    pub ty: Ty,
    pub arity: Arity,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Arity {
    Required,
    /// May be left out, or `None`.
    Optional,
    /// May be left out, or `None`; never positional.
    KeywordOnly,
    /// Takes all further positional arguments.
    Rest,
    /// Takes all keywords that no other parameter has.
    KeywordRest,
}

/// What an argument must be; checked before the function runs.
#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum Ty {
    Any,
    /// A compile-time int.
    Int,
    /// A compile-time bool (or int).
    Bool,
    /// A compile-time int or float.
    Number,
    Str,
    DType,
    /// An extent, or a tuple or list of them.
    Shape,
    /// A number, at compile time or run time.
    Scalar,
    Buffer,
    /// A buffer, a region, or an element as start point.
    Tile,
    /// A function or lambda.
    Callable,
    Dict,
    /// A list or tuple.
    Sequence,
}

pub const fn req(name: &'static str, ty: Ty) -> ParamSpec {
    ParamSpec {
        name,
        ty,
        arity: Arity::Required,
    }
}

pub const fn opt(name: &'static str, ty: Ty) -> ParamSpec {
    ParamSpec {
        name,
        ty,
        arity: Arity::Optional,
    }
}

pub const fn kw(name: &'static str, ty: Ty) -> ParamSpec {
    ParamSpec {
        name,
        ty,
        arity: Arity::KeywordOnly,
    }
}

pub const fn rest(name: &'static str, ty: Ty) -> ParamSpec {
    ParamSpec {
        name,
        ty,
        arity: Arity::Rest,
    }
}

pub const fn kwrest(name: &'static str) -> ParamSpec {
    ParamSpec {
        name,
        ty: Ty::Any,
        arity: Arity::KeywordRest,
    }
}

/// The tables of all families, each with its section of the specification. Rarer names of all of
/// them are in that of other names.
static FAMILIES: &[(&str, &[LangFn])] = &[
    ("4 Memory", alloc::FNS),
    ("9 Reductions and scans", allreduce::FNS),
    ("13 Annotations", annotations::FNS),
    ("10 Atomics", atomics::FNS),
    ("14 Barriers, warps, warp groups", barrier::FNS),
    ("3 Types and arithmetic", casts::FNS),
    ("14 Barriers, warps, warp groups", cluster::FNS),
    ("6 Copies", copy::FNS),
    ("14 Barriers, warps, warp groups", debug::FNS),
    ("6 Copies", descriptor::FNS),
    ("6 Copies", fill::FNS),
    ("12 Views, pointers, foreign code", foreign::FNS),
    ("7 Matrix products", gemm::FNS),
    ("11 Elementwise functions", ieee::FNS),
    ("5 Launch", kernel::FNS),
    ("13 Annotations", layouts::FNS),
    ("11 Elementwise functions", limits::FNS),
    ("9 Reductions and scans", logical::FNS),
    ("8 Loops", loops::FNS),
    ("11 Elementwise functions", math::FNS),
    ("9 Reductions and scans", reduce::FNS),
    ("9 Reductions and scans", reducer::FNS),
    ("11 Elementwise functions", random::FNS),
    ("11 Elementwise functions", scalar::FNS),
    ("9 Reductions and scans", scan::FNS),
    ("5 Launch", scheduler::FNS),
    ("14 Barriers, warps, warp groups", sync::FNS),
    ("2 Programs and staging", tensor::FNS),
    ("3 Types and arithmetic", vectors::FNS),
    ("12 Views, pointers, foreign code", views::FNS),
    ("14 Barriers, warps, warp groups", warp::FNS),
];

static BY_NAME: LazyLock<FxHashMap<&'static str, &'static LangFn>> =
    LazyLock::new(|| functions().map(|f| (f.name, f)).collect());

/// The function of this name.
pub fn lookup(name: &str) -> Option<&'static LangFn> {
    BY_NAME.get(name).copied()
}

/// What `T.name` is: a dtype, a function, a decorator or a constant.
pub fn name(name: &str) -> Option<Value> {
    lookup(name)
        .map(Value::Lang)
        .or_else(|| dtypes::from_name(name).map(Value::DType))
        .or_else(|| decorator(name))
        .or_else(|| constants::lookup(name))
}

/// The decorators of the language, which are values like any other.
pub fn decorator(name: &str) -> Option<Value> {
    Some(Value::Decorator(Rc::new(match name {
        "prim_func" => Decorator::PrimFunc,
        "macro" | "inline" => Decorator::Macro,
        "jit" | "lazy_jit" => Decorator::Jit(JitOptions::default()),
        "autotune" => Decorator::Autotune(Vec::new()),
        _ => return None,
    })))
}

/// Every function of the language, family by family.
pub fn functions() -> impl Iterator<Item = &'static LangFn> {
    with_sections().map(|(_, f)| f)
}

/// Every function, with the heading of the specification's section that speaks of it.
pub fn with_sections() -> impl Iterator<Item = (&'static str, &'static LangFn)> {
    let families = FAMILIES.iter();
    families.flat_map(|(section, rows)| rows.iter().map(move |f| (*section, f)))
}

/// The families whose functions compute a value and record no statement, so that a call can be
/// kept and made again elsewhere.
static VALUES: &[&[LangFn]] = &[
    casts::FNS,
    ieee::FNS,
    layouts::FNS,
    limits::FNS,
    math::FNS,
    scalar::FNS,
    tensor::FNS,
];

/// Whether a function computes a value and records nothing.
pub fn is_value(name: &str) -> bool {
    let mut rows = VALUES.iter().flat_map(|family| family.iter());
    rows.any(|f| f.name == name)
}

/// Every name of the language, for suggestions.
pub fn all_names() -> impl Iterator<Item = &'static str> {
    functions()
        .map(|f| f.name)
        .chain(dtypes::names())
        .chain(constants::NAMES.iter().copied())
        .chain(["prim_func", "macro", "jit", "autotune"])
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_unique() {
        assert_eq!(
            BY_NAME.len(),
            functions().count(),
            "two functions share a name"
        );
    }

    #[test]
    fn sections_are_those_of_the_specification() {
        let page = include_str!("../../../../docs/language.md");
        for (section, _) in FAMILIES {
            let heading = format!("## {section}");
            assert!(page.lines().any(|line| line == heading), "no {heading}");
        }
    }

    #[test]
    fn required_parameters_come_first() {
        for f in functions() {
            let mut optional = false;
            for p in f.params {
                match p.arity {
                    Arity::Required => assert!(!optional, "T.{}: {}", f.name, p.name),
                    _ => optional = true,
                }
            }
        }
    }
}
