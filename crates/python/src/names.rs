//! The names of the language, as the package's `language` module and its stubs need them.

use pyo3::prelude::*;
use tilewright::frontend::lang::{self, Arity, Ty, constants, dtypes};
use tilewright::ir::Target;

pub fn add(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add_function(wrap_pyfunction!(functions, module)?)?;
    module.add_function(wrap_pyfunction!(dtype_names, module)?)?;
    module.add_function(wrap_pyfunction!(constant_names, module)?)?;
    module.add_function(wrap_pyfunction!(dtype_facts, module)?)?;
    module.add_function(wrap_pyfunction!(targets, module)?)?;
    Ok(())
}

type Param = (&'static str, &'static str, &'static str);

/// A row of the table: the name, parameters as (name, how it is given, type), whether a call
/// computes a value and records nothing, whether `T.name[…]` is a call, the section of the
/// specification.
type Row = (&'static str, Vec<Param>, bool, bool, &'static str);

#[pyfunction]
fn functions() -> Vec<Row> {
    let rows = lang::with_sections().map(|(section, f)| {
        let params = f.params.iter().map(|p| (p.name, arity(p.arity), ty(p.ty)));
        (
            f.name,
            params.collect(),
            lang::is_value(f.name),
            f.subscript,
            section,
        )
    });
    rows.collect()
}

fn arity(arity: Arity) -> &'static str {
    match arity {
        Arity::Required => "required",
        Arity::Optional => "optional",
        Arity::KeywordOnly => "keyword",
        Arity::Rest => "rest",
        Arity::KeywordRest => "keywords",
    }
}

fn ty(ty: Ty) -> &'static str {
    match ty {
        Ty::Any => "any",
        Ty::Int => "int",
        Ty::Bool => "bool",
        Ty::Number => "number",
        Ty::Str => "str",
        Ty::DType => "dtype",
        Ty::Shape => "shape",
        Ty::Scalar => "scalar",
        Ty::Buffer => "buffer",
        Ty::Tile => "tile",
        Ty::Callable => "callable",
        Ty::Dict => "dict",
        Ty::Sequence => "sequence",
    }
}

#[pyfunction]
fn dtype_names() -> Vec<&'static str> {
    dtypes::names().collect()
}

#[pyfunction]
fn constant_names() -> Vec<&'static str> {
    constants::NAMES.to_vec()
}

/// The name of a dtype as the compiler spells it, the bits of an element, and its lanes.
#[pyfunction]
fn dtype_facts(name: &str) -> Option<(String, u32, u32)> {
    let dtype = dtypes::from_name(name)?;
    let bits = dtype.scalar.bits();
    Some((dtype.to_string(), bits, u32::from(dtype.lanes)))
}

#[pyfunction]
fn targets() -> Vec<&'static str> {
    Target::ALL.iter().map(|t| t.name()).collect()
}
