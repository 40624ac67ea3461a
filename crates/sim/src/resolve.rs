//! What a call's arguments say: values of scalars and sizes, shapes of tensors and workspaces.
//!
//! For executors outside this crate, so that arguments are checked in one place with the same
//! messages.

use rustc_hash::FxHashMap;
use tilewright_ir::small_float::Number;
use tilewright_ir::{Buffer, Expr, Func, Var};

use crate::args::{self, Args, TensorShape};
use crate::compile::names::{Bound, Names};
use crate::error::RunError;
use crate::value;

/// Arguments that fit the parameters.
#[derive(Debug)]
pub struct Resolved {
    bound: Bound,
    /// Shape and element strides of every tensor and workspace.
    pub tensors: FxHashMap<Buffer, (Vec<i64>, Vec<i64>)>,
}

/// Checks the arguments as a run would, adds outputs that are missing, and says what everything
/// is.
pub fn resolve(func: &Func, args: &mut Args) -> Result<Resolved, RunError> {
    let call = args::bind(func, args)?;
    let bound = call.bound.clone();
    call.give_back(args);
    let tensors = bound.globals.iter();
    let tensors = tensors.map(|(&b, info)| (b, (info.shape.clone(), info.strides.clone())));
    Ok(Resolved {
        tensors: tensors.collect(),
        bound,
    })
}

/// Shapes and element strides of all tensors of a call, those of outputs that are missing
/// included. Nothing is made.
pub fn shapes(func: &Func, args: &Args) -> Result<Vec<TensorShape>, RunError> {
    args::shapes(func, args)
}

impl Resolved {
    /// The value of a size or of a scalar parameter.
    pub fn scalar(&self, func: &Func, var: Var) -> Option<Number> {
        let slot = *self.bound.consts.get(&var)?;
        Some(value::number(func.vars[var].dtype.scalar, slot))
    }

    /// The value of an expression over sizes and scalar parameters.
    pub fn constant(&self, func: &Func, e: &Expr) -> Result<Number, RunError> {
        Names::new(func, &self.bound).constant(e)
    }
}
