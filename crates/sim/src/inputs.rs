//! Arguments made up from a seed, for callers that only want to see a kernel run.

use std::collections::BTreeMap;

use tilewright_ir::small_float::Number;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Buffer, Diagnostic, Func, Param, Scalar, Sparse, Sparsity, StmtKind, TileOp};

use crate::args::{Arg, Args, allocate, has_room};
use crate::compile::names::{Bound, Names, slot};
use crate::error::{RunError, codes};
use crate::rng::Rng;
use crate::tensor::{Fill, HostTensor, row_major};

/// How inputs are made up where the caller gives none.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct InputSpec {
    pub seed: u64,
    /// Values of symbols and scalar parameters by name. Symbols need one; a scalar without
    /// one is 1.
    pub values: BTreeMap<String, Number>,
    /// How tensors are filled that are not filled by default.
    pub fills: BTreeMap<String, Fill>,
    /// How many more copies of the tensors the caller is going to make: memory for them must be
    /// there as well.
    pub copies: u32,
}

/// Makes arguments for every parameter: inputs filled from the seed, outputs uninitialised.
pub fn make_inputs(func: &Func, spec: &InputSpec) -> Result<Args, RunError> {
    let (mut args, tensors) = described(func, spec)?;
    // A bit of data has a bit of shadow.
    let bytes = tensors.iter().map(|t| {
        elements(&t.shape).saturating_mul(u64::from(func.buffers[t.buffer].dtype.bits())) / 4
    });
    let (mut needed, mut largest) = (0u64, None);
    for (bytes, tensor) in bytes.zip(&tensors) {
        needed = needed.saturating_add(bytes);
        largest = largest.max(Some((bytes, tensor.buffer)));
    }
    let needed = needed.saturating_mul(u64::from(spec.copies) + 1);
    has_room(func, largest.map(|(_, buffer)| buffer), needed)?;
    for asked in tensors {
        let name = &func.buffers[asked.buffer].name;
        let mut tensor = allocate(func, asked.buffer, &asked.shape, asked.strides.as_deref())?;
        if !asked.output {
            let fill = spec.fills.get(name).copied();
            let fill = fill.or_else(|| metadata_of(func, asked.buffer).map(Fill::Metadata));
            let mut rng = Rng::named(spec.seed, name);
            tensor.fill(fill.unwrap_or(Fill::Default), &mut rng);
        }
        args.insert(name.clone(), Arg::Tensor(tensor));
    }
    Ok(args)
}

/// What a tensor tells of, where copies of it are the metadata of a sparse factor: most integers would
/// be none.
fn metadata_of(func: &Func, tensor: Buffer) -> Option<Sparsity> {
    let (mut copies, mut told) = (vec![tensor], None);
    for kernel in &func.kernels {
        walk_stmts(&kernel.body, &mut |stmt| match &stmt.kind {
            StmtKind::Tile(TileOp::Copy(c)) if copies.contains(&c.src.buffer) => {
                copies.push(c.dst.buffer);
            }
            StmtKind::Tile(TileOp::Gemm(g)) => {
                let of_tensor = |s: &&Sparse| copies.contains(&s.e.buffer);
                if g.sparse.as_ref().filter(of_tensor).is_some() {
                    told = Sparsity::of(func.buffers[g.a.buffer].dtype.scalar);
                }
            }
            _ => {}
        });
    }
    told
}

/// The same without elements: what a call is, for those who do not make it.
pub fn describe_inputs(func: &Func, spec: &InputSpec) -> Result<Args, RunError> {
    let (mut args, tensors) = described(func, spec)?;
    for asked in tensors {
        let data = &func.buffers[asked.buffer];
        let sizes = |list: &[i64]| list.iter().map(|&n| n as usize).collect::<Vec<usize>>();
        let shape = sizes(&asked.shape);
        let strides = match &asked.strides {
            Some(strides) => sizes(strides),
            None => row_major(&shape).unwrap_or_default(),
        };
        let tensor = HostTensor::described(data.dtype, &shape, &strides);
        args.insert(data.name.clone(), Arg::Tensor(tensor));
    }
    Ok(args)
}

/// A tensor that a call is to have.
struct Asked {
    buffer: Buffer,
    output: bool,
    shape: Vec<i64>,
    strides: Option<Vec<i64>>,
}

/// The scalars of a call, and the tensors that it needs beside them.
fn described(func: &Func, spec: &InputSpec) -> Result<(Args, Vec<Asked>), RunError> {
    let mut args = Args::new();
    let mut bound = Bound::default();
    for param in &func.params {
        let Param::Scalar(var) = param else { continue };
        let (name, dtype) = (&func.vars[*var].name, func.vars[*var].dtype);
        if dtype.scalar == Scalar::Handle {
            return Err(RunError::new(
                codes::ARG_MISSING,
                func.vars[*var].span,
                format!("`{name}` is a pointer: it needs a tensor that cannot be made up"),
            ));
        }
        let value = spec.values.get(name).copied().unwrap_or(Number::Int(1));
        bound.consts.insert(*var, slot(dtype.scalar, value));
        let arg = match value {
            Number::Int(v) if dtype.scalar.is_float() => Arg::Float(v as f64),
            Number::Int(v) => Arg::Int(v),
            Number::Float(v) => Arg::Float(v),
        };
        args.insert(name.clone(), arg);
    }
    for &var in &func.symbols {
        let data = &func.vars[var];
        match spec.values.get(&data.name) {
            Some(&Number::Int(v)) => {
                bound
                    .consts
                    .insert(var, slot(data.dtype.scalar, Number::Int(v)));
                args.symbols.insert(data.name.clone(), v);
            }
            _ if bound.consts.contains_key(&var) => {}
            _ => {
                return Err(Diagnostic::error(
                    codes::SYMBOL_UNBOUND,
                    data.span,
                    format!("the size `{}` has no value", data.name),
                )
                .help(format!("set it: `--set {}=…`", data.name))
                .into());
            }
        }
    }
    let mut tensors = Vec::new();
    for param in &func.params {
        let Param::Tensor { buffer, output } = *param else {
            continue;
        };
        let data = &func.buffers[buffer];
        let mut names = Names::new(func, &bound);
        let shape = names.extents(&data.shape, &data.name)?;
        let strides = match &data.strides {
            Some(strides) => Some(names.extents(strides, &data.name)?),
            None => None,
        };
        tensors.push(Asked {
            buffer,
            output,
            shape,
            strides,
        });
    }
    Ok((args, tensors))
}

fn elements(shape: &[i64]) -> u64 {
    let extents = shape.iter().map(|&e| e.max(0) as u64);
    extents.fold(1, u64::saturating_mul)
}
