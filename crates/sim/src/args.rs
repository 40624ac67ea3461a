//! What a function is called with, and how it is bound to the parameters.

use std::collections::BTreeMap;

use rustc_hash::FxHashMap;
use tilewright_ir::small_float::Number;
use tilewright_ir::{Buffer, Code, Diagnostic, Expr, Func, Param, Scalar, Span, Var};

use crate::compile::names::{Bound, GlobalInfo, Names, param_name, slot};
use crate::error::{RunError, codes};
use crate::memory::Storage;
use crate::room;
use crate::tensor::{HostTensor, row_major};

/// An argument.
#[derive(Clone, PartialEq, Debug)]
pub enum Arg {
    Tensor(HostTensor),
    Int(i128),
    Float(f64),
}

/// Arguments by parameter name, and values for symbols that no tensor's shape gives.
#[derive(Clone, PartialEq, Debug, Default)]
pub struct Args {
    entries: Vec<(String, Arg)>,
    pub symbols: BTreeMap<String, i128>,
}

impl Args {
    pub fn new() -> Args {
        Args::default()
    }

    /// Arguments in the order of the parameters.
    pub fn positional(func: &Func, list: Vec<Arg>) -> Result<Args, RunError> {
        if list.len() > func.params.len() {
            return Err(RunError::new(
                codes::ARG_UNKNOWN,
                func.span,
                format!(
                    "`{}` takes {} arguments, not {}",
                    func.name,
                    func.params.len(),
                    list.len()
                ),
            ));
        }
        let names = func.params.iter().map(|p| param_name(func, p).to_string());
        Ok(Args {
            entries: names.zip(list).collect(),
            symbols: BTreeMap::new(),
        })
    }

    /// Sets an argument; one of the same name is replaced.
    pub fn insert(&mut self, name: impl Into<String>, arg: Arg) {
        let name = name.into();
        match self.entries.iter_mut().find(|(n, _)| *n == name) {
            Some(entry) => entry.1 = arg,
            None => self.entries.push((name, arg)),
        }
    }

    pub fn with(mut self, name: impl Into<String>, arg: Arg) -> Args {
        self.insert(name, arg);
        self
    }

    pub fn get(&self, name: &str) -> Option<&Arg> {
        self.entries.iter().find(|(n, _)| n == name).map(|e| &e.1)
    }

    pub fn tensor(&self, name: &str) -> Option<&HostTensor> {
        match self.get(name) {
            Some(Arg::Tensor(tensor)) => Some(tensor),
            _ => None,
        }
    }

    pub fn tensor_mut(&mut self, name: &str) -> Option<&mut HostTensor> {
        match self.entries.iter_mut().find(|(n, _)| n == name) {
            Some((_, Arg::Tensor(tensor))) => Some(tensor),
            _ => None,
        }
    }

    /// A copy, or an error where there is no memory for it.
    pub fn try_clone(&self, func: &Func) -> Result<Args, RunError> {
        let mut copy = Args {
            entries: Vec::with_capacity(self.entries.len()),
            symbols: self.symbols.clone(),
        };
        for (name, arg) in &self.entries {
            let arg = match arg {
                Arg::Tensor(tensor) => match tensor.try_clone() {
                    Some(tensor) => Arg::Tensor(tensor),
                    None => {
                        let needed = 2 * tensor.bytes().len() as u64;
                        return Err(out_of_memory(func, None, needed, None));
                    }
                },
                Arg::Int(v) => Arg::Int(*v),
                Arg::Float(v) => Arg::Float(*v),
            };
            copy.entries.push((name.clone(), arg));
        }
        Ok(copy)
    }

    /// Names and arguments in the order they were given.
    pub fn iter(&self) -> impl Iterator<Item = (&str, &Arg)> {
        self.entries.iter().map(|(n, a)| (n.as_str(), a))
    }
}

/// A tensor for a buffer, its contents undefined.
pub(crate) fn allocate(
    func: &Func,
    buffer: Buffer,
    shape: &[i64],
    strides: Option<&[i64]>,
) -> Result<HostTensor, RunError> {
    let data = &func.buffers[buffer];
    let to_usize = |list: &[i64]| -> Vec<usize> { list.iter().map(|&e| e as usize).collect() };
    let shape = to_usize(shape);
    let strides = match strides {
        Some(strides) => Some(to_usize(strides)),
        None => row_major(&shape),
    };
    let name = &data.name;
    let needed = strides
        .as_deref()
        .and_then(|strides| HostTensor::bytes_for(data.dtype, &shape, strides));
    let (Some(strides), Some(needed)) = (strides, needed) else {
        return Err(RunError::new(
            codes::TENSOR_SIZE,
            data.span,
            format!("`{name}` of shape {shape:?} is too large"),
        ));
    };
    has_room(func, Some(buffer), needed)?;
    HostTensor::with_strides(data.dtype, &shape, &strides)
        .ok_or_else(|| out_of_memory(func, Some(buffer), needed, None))
}

/// Refuses what the machine has no memory for; `buffer` is the tensor it is for, or the largest.
pub(crate) fn has_room(func: &Func, buffer: Option<Buffer>, needed: u64) -> Result<(), RunError> {
    match room::available() {
        Some(there) if needed > there => Err(out_of_memory(func, buffer, needed, Some(there))),
        _ => Ok(()),
    }
}

pub(crate) fn out_of_memory(
    func: &Func,
    buffer: Option<Buffer>,
    needed: u64,
    there: Option<u64>,
) -> RunError {
    let needed = room::in_words(needed);
    let (span, what) = match buffer {
        Some(b) => (func.buffers[b].span, format!("`{}`", func.buffers[b].name)),
        None => (func.span, "the tensors of the call".to_owned()),
    };
    let left = match there {
        Some(there) => format!(", and {} are left", room::in_words(there)),
        None => String::new(),
    };
    RunError::new(
        codes::OUT_OF_MEMORY,
        span,
        format!("there is no memory for {what}: {needed} are needed{left}"),
    )
    .help("choose smaller sizes")
}

/// A call with everything in place.
pub(crate) struct Call {
    pub bound: Bound,
    pub storages: Vec<Storage>,
    /// Which argument each storage goes back to.
    owners: Vec<(u32, String)>,
}

/// Checks the arguments against the parameters, makes missing outputs, and takes the tensors'
/// storage. [`Call::give_back`] returns it.
pub(crate) fn bind(func: &Func, args: &mut Args) -> Result<Call, RunError> {
    known_names(func, args)?;
    tensors_are_tensors(func, args)?;
    let mut bound = Bound::default();
    bind_scalars(func, args, &mut bound)?;
    bind_symbols(func, args, &mut bound)?;
    // What is checked is checked before storage is taken, so a refused call changes nothing.
    let mut tensors = Vec::new();
    for (buffer, output) in func.tensors() {
        tensors.push((buffer, bind_tensor(func, args, &bound, buffer, output)?));
    }
    let mut call = Call {
        bound,
        storages: Vec::new(),
        owners: Vec::new(),
    };
    for (buffer, (shape, strides)) in tensors {
        let name = &func.buffers[buffer].name;
        let storage = call.storages.len() as u32;
        if let Some(tensor) = args.tensor_mut(name) {
            let (bytes, written) = tensor.take_storage();
            call.add(bytes, written);
            call.owners.push((storage, name.clone()));
        }
        let info = GlobalInfo {
            storage,
            shape,
            strides,
        };
        call.bound.globals.insert(buffer, info);
    }
    for param in &func.params {
        if let Param::Scalar(var) = param
            && func.vars[*var].dtype.scalar == Scalar::Handle
        {
            let name = &func.vars[*var].name;
            if let Some(tensor) = args.tensor_mut(name) {
                let storage = call.storages.len() as u32;
                let (bytes, written) = tensor.take_storage();
                call.add(bytes, written);
                call.owners.push((storage, name.clone()));
                call.bound.pointers.insert(*var, storage);
            }
        }
    }
    for &buffer in &func.workspaces {
        let data = &func.buffers[buffer];
        let shape = Names::new(func, &call.bound).extents(&data.shape, &data.name);
        let made = shape.and_then(|shape| Ok((allocate(func, buffer, &shape, None)?, shape)));
        let (mut tensor, shape) = match made {
            Ok(made) => made,
            Err(e) => {
                call.give_back(args);
                return Err(e);
            }
        };
        let storage = call.storages.len() as u32;
        let (bytes, written) = tensor.take_storage();
        call.add(bytes, written);
        let strides = crate::compile::names::contiguous(&shape);
        let info = GlobalInfo {
            storage,
            shape,
            strides,
        };
        call.bound.globals.insert(buffer, info);
    }
    Ok(call)
}

impl Call {
    fn add(&mut self, bytes: Vec<u8>, written: Option<Vec<u8>>) {
        self.bound.sizes.push(bytes.len());
        self.storages.push(Storage { bytes, written });
    }

    pub fn give_back(mut self, args: &mut Args) {
        for (storage, name) in &self.owners {
            let storage = std::mem::take(&mut self.storages[*storage as usize]);
            if let Some(tensor) = args.tensor_mut(name) {
                tensor.put_storage(storage.bytes, storage.written);
            }
        }
    }
}

/// Shapes and element strides of all tensors, those of outputs that are missing included. Nothing
/// is made.
pub(crate) fn shapes(func: &Func, args: &Args) -> Result<Vec<TensorShape>, RunError> {
    known_names(func, args)?;
    tensors_are_tensors(func, args)?;
    let mut bound = Bound::default();
    bind_scalars(func, args, &mut bound)?;
    bind_symbols(func, args, &mut bound)?;
    let mut out = Vec::new();
    for (buffer, _) in func.tensors() {
        let data = &func.buffers[buffer];
        let mut names = Names::new(func, &bound);
        let shape = names.extents(&data.shape, &data.name)?;
        let strides = match &data.strides {
            Some(strides) => names.extents(strides, &data.name)?,
            None => crate::compile::names::contiguous(&shape),
        };
        out.push((buffer, shape, strides));
    }
    Ok(out)
}

/// A tensor with its shape and element strides.
pub type TensorShape = (Buffer, Vec<i64>, Vec<i64>);

fn known_names(func: &Func, args: &Args) -> Result<(), RunError> {
    let params: Vec<&str> = func.params.iter().map(|p| param_name(func, p)).collect();
    for (at, name) in params.iter().enumerate() {
        if params[..at].contains(name) {
            return Err(RunError::new(
                codes::ARG_NAME,
                func.span,
                format!("two parameters of `{}` are named `{name}`", func.name),
            ));
        }
    }
    for (name, _) in args.iter() {
        if !params.contains(&name) {
            return Err(Diagnostic::error(
                codes::ARG_UNKNOWN,
                func.span,
                format!("`{}` has no parameter `{name}`", func.name),
            )
            .help(format!("its parameters are {}", params.join(", ")))
            .into());
        }
    }
    Ok(())
}

fn tensors_are_tensors(func: &Func, args: &Args) -> Result<(), RunError> {
    for (buffer, _) in func.tensors() {
        let data = &func.buffers[buffer];
        if let Some(Arg::Int(_) | Arg::Float(_)) = args.get(&data.name) {
            return Err(RunError::new(
                codes::ARG_KIND,
                data.span,
                format!("`{}` is a tensor, not a scalar", data.name),
            ));
        }
    }
    Ok(())
}

fn bind_scalars(func: &Func, args: &Args, bound: &mut Bound) -> Result<(), RunError> {
    for param in &func.params {
        let Param::Scalar(var) = param else { continue };
        let data = &func.vars[*var];
        let scalar = data.dtype.scalar;
        let refuse = |code: Code, message: String| Err(RunError::new(code, data.span, message));
        let name = &data.name;
        let number = match args.get(name) {
            None => return refuse(codes::ARG_MISSING, format!("`{name}` is missing")),
            Some(Arg::Tensor(_)) if scalar == Scalar::Handle => continue,
            Some(Arg::Tensor(_)) => {
                return refuse(
                    codes::ARG_KIND,
                    format!("`{name}` is a scalar, not a tensor"),
                );
            }
            Some(_) if scalar == Scalar::Handle => {
                return refuse(
                    codes::ARG_KIND,
                    format!("`{name}` is a pointer: give a tensor"),
                );
            }
            Some(Arg::Float(_)) if !scalar.is_float() => {
                return refuse(
                    codes::ARG_DTYPE,
                    format!("`{name}` is {scalar}, not a float"),
                );
            }
            Some(Arg::Int(v)) => {
                if let Some((low, high)) = scalar.int_range()
                    && !(low..=high).contains(v)
                {
                    return refuse(
                        codes::ARG_DTYPE,
                        format!("`{name}` is {scalar}, which cannot hold {v}"),
                    );
                }
                Number::Int(*v)
            }
            Some(Arg::Float(v)) => Number::Float(*v),
        };
        bound.consts.insert(*var, slot(scalar, number));
    }
    Ok(())
}

/// Gives every symbol its value: from the caller, or from where it stands by itself in a shape.
fn bind_symbols(func: &Func, args: &Args, bound: &mut Bound) -> Result<(), RunError> {
    let mut origin: FxHashMap<Var, (i128, String)> = FxHashMap::default();
    for &var in &func.symbols {
        if let Some(&v) = args.symbols.get(&func.vars[var].name) {
            origin.insert(var, (v, "the caller".to_string()));
        }
    }
    for (buffer, _) in func.tensors() {
        let data = &func.buffers[buffer];
        let Some(tensor) = args.tensor(&data.name) else {
            continue;
        };
        let mut learn = |e: &Expr, value: usize, what: String| {
            let Some(var) = e.as_var().filter(|v| func.symbols.contains(v)) else {
                return Ok(());
            };
            match origin.get(&var) {
                Some((old, from)) if *old != value as i128 => {
                    Err(RunError::from(Diagnostic::error(
                        codes::SYMBOL_CONFLICT,
                        data.span,
                        format!(
                            "the size `{}` is {old} by {from} and {value} by {what}",
                            func.vars[var].name
                        ),
                    )))
                }
                Some(_) => Ok(()),
                None => {
                    origin.insert(var, (value as i128, what));
                    Ok(())
                }
            }
        };
        for (d, (e, &extent)) in data.shape.iter().zip(tensor.shape()).enumerate() {
            learn(e, extent, format!("dimension {d} of `{}`", data.name))?;
        }
        for (d, (e, &stride)) in data
            .strides
            .iter()
            .flatten()
            .zip(tensor.strides())
            .enumerate()
        {
            learn(e, stride, format!("stride {d} of `{}`", data.name))?;
        }
    }
    for &var in &func.symbols {
        let data = &func.vars[var];
        match origin.get(&var) {
            Some((v, _)) => {
                bound
                    .consts
                    .insert(var, slot(data.dtype.scalar, Number::Int(*v)));
            }
            None if bound.consts.contains_key(&var) => {}
            None => {
                return Err(Diagnostic::error(
                    codes::SYMBOL_UNBOUND,
                    data.span,
                    format!("the size `{}` has no value", data.name),
                )
                .note("it does not stand by itself in the shape of any tensor that was given")
                .into());
            }
        }
    }
    Ok(())
}

/// Checks a tensor, or makes an output that is missing. The shape and strides are returned.
fn bind_tensor(
    func: &Func,
    args: &mut Args,
    bound: &Bound,
    buffer: Buffer,
    output: bool,
) -> Result<(Vec<i64>, Vec<i64>), RunError> {
    let data = &func.buffers[buffer];
    let name = &data.name;
    let mut names = Names::new(func, bound);
    let shape = names.extents(&data.shape, name)?;
    let strides = match &data.strides {
        Some(strides) => names.extents(strides, name)?,
        None => crate::compile::names::contiguous(&shape),
    };
    let refuse = |code: Code, span: Span, message: String| Err(RunError::new(code, span, message));
    let tensor = match args.tensor(name) {
        Some(tensor) => tensor,
        None if output => {
            let given = data.strides.as_ref().map(|_| strides.as_slice());
            let tensor = allocate(func, buffer, &shape, given)?;
            args.insert(name.clone(), Arg::Tensor(tensor));
            return Ok((shape, strides));
        }
        None => {
            return refuse(
                codes::ARG_MISSING,
                data.span,
                format!("the tensor `{name}` is missing"),
            );
        }
    };
    if tensor.dtype() != data.dtype {
        return refuse(
            codes::ARG_DTYPE,
            data.span,
            format!("`{name}` is {}, not {}", data.dtype, tensor.dtype()),
        );
    }
    if tensor.shape().len() != shape.len() {
        return refuse(
            codes::ARG_RANK,
            data.span,
            format!(
                "`{name}` has {} dimensions, not {}",
                shape.len(),
                tensor.shape().len()
            ),
        );
    }
    let same =
        |list: &[usize], wanted: &[i64]| list.iter().zip(wanted).all(|(&a, &b)| a as i64 == b);
    if !same(tensor.shape(), &shape) {
        return refuse(
            codes::ARG_SHAPE,
            data.span,
            format!("`{name}` has the shape {shape:?}, not {:?}", tensor.shape()),
        );
    }
    // The stride of a dimension of one is never used.
    let used = (0..shape.len()).filter(|&d| shape[d] > 1);
    let mut given = used.map(|d| (tensor.strides()[d] as i64, strides[d]));
    if !tensor.is_empty() && !given.all(|(a, b)| a == b) {
        return refuse(
            codes::ARG_STRIDES,
            data.span,
            format!(
                "`{name}` has the strides {strides:?}, not {:?}",
                tensor.strides()
            ),
        );
    }
    Ok((shape, strides))
}
