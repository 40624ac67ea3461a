//! The Python package's extension module, `tilewright._core`.
//!
//! | module | holds |
//! |---|---|
//! | [`host`] | Python as the front end's host: objects, namespaces, functions with their source |
//! | [`convert`] | Python objects to the interpreter's values and back |
//! | [`record`] | the runs of the front end that record kernels |
//! | [`kernel`] | a recorded kernel: its source, and calls on host tensors |
//! | [`gpu`] | its calls on tensors of a GPU |
//! | [`tune`] | the choice among configurations |
//! | [`launcher`] | the short way of such calls, for tensors of torch |
//! | [`dlpack`] | tensors of libraries that speak DLPack |
//! | [`names`] | the names of the language, for the package's `language` module and its stubs |
//! | [`errors`] | diagnostics as exceptions |
//!
//! The package's own Python files hold what is Python's: decorators, tensors, classes.

mod convert;
mod dlpack;
mod errors;
mod gpu;
mod host;
mod kernel;
mod launcher;
mod names;
mod record;
mod tune;

use pyo3::prelude::*;

#[pymodule]
fn _core(module: &Bound<'_, PyModule>) -> PyResult<()> {
    module.add("version", env!("CARGO_PKG_VERSION"))?;
    module.add_class::<kernel::Kernel>()?;
    module.add_class::<launcher::Launcher>()?;
    module.add_class::<convert::Kept>()?;
    names::add(module)?;
    record::add(module)?;
    tune::add(module)?;
    dlpack::add(module)?;
    Ok(())
}
