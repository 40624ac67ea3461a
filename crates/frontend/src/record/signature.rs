//! The signature of the function under construction: parameters, `T.const` dimensions,
//! `T.dynamic` symbols, `T.empty` outputs.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{Buffer, BufferOrigin, DType, Expr, Param, Scope, Span, Var, VarKind};

use crate::codes;
use crate::lang::tensor::TensorType;
use crate::record::Recorder;
use crate::value::{Dim, Value};
use crate::{Error, Result};

/// What is known of the signature so far.
#[derive(Debug, Default)]
pub struct Signature {
    /// Whether `T.const` and `T.empty` may be used: in the body of an eager kernel.
    pub eager: bool,
    /// Whether `T.const` dimensions are symbols: what they are is to be found out.
    pub open_consts: bool,
    /// Parameters found so far, with their position.
    pub params: Vec<(usize, Param)>,
    pub consts: Vec<Const>,
    /// Consts that stand as a dimension of a tensor.
    pub seen_dims: FxHashSet<usize>,
    /// `T.empty` outputs in order of creation.
    pub outputs: Vec<Buffer>,
    pub symbols: FxHashMap<String, Var>,
}

/// A `T.const` dimension.
#[derive(Debug)]
pub struct Const {
    pub name: String,
    pub span: Span,
}

impl Recorder {
    /// `T.const("M, N")`
    pub(crate) fn declare_consts(&mut self, names: &str, span: Span) -> Result<Value> {
        if !self.building || !self.signature.eager {
            return Err(self
                .error(
                    codes::NO_BUILDER,
                    span,
                    "`T.const` has a meaning only in the body of an eager `@tilelang.jit` kernel",
                )
                .help("make it a parameter of the factory, or a `T.dynamic` size")
                .into());
        }
        self.before_kernels("`T.const`", span)?;
        if self.signature.open_consts {
            return self.declare_symbols(names, DType::I32, span);
        }
        let mut values = Vec::new();
        let mut missing = Vec::new();
        for name in split_names(names) {
            let Some(setting) = self.settings.take(name) else {
                missing.push(name);
                continue;
            };
            let value = match setting {
                crate::record::settings::SettingValue::Int(v)
                    if v > 0 && v <= i128::from(i64::MAX) =>
                {
                    v
                }
                other => {
                    let message = format!("`--set {name}={other}`: a dimension is a positive int");
                    return Err(self.bad_setting(span, message));
                }
            };
            let id = self.signature.consts.len();
            self.signature.consts.push(Const {
                name: name.to_string(),
                span,
            });
            values.push(Value::Dim(Dim { id, value }));
        }
        if !missing.is_empty() {
            let list: Vec<String> = missing.iter().map(|n| format!("`{n}`")).collect();
            let sets: Vec<String> = missing.iter().map(|n| format!("--set {n}=…")).collect();
            let (what, has) = match missing.len() {
                1 => ("dimension", "has"),
                _ => ("dimensions", "have"),
            };
            let message = format!("the {what} {} {has} no value", list.join(", "));
            return Err(self
                .error(codes::MISSING_SETTING, span, message)
                .help(format!("pass `{}`", sets.join(" ")))
                .into());
        }
        self.one_or_tuple(values, span)
    }

    /// `T.dynamic("m, n")`
    pub(crate) fn declare_symbols(
        &mut self,
        names: &str,
        dtype: DType,
        span: Span,
    ) -> Result<Value> {
        if !dtype.scalar.is_int() || dtype.lanes != 1 {
            let message = format!("a run-time size is an integer, not {dtype}");
            return Err(self.error(codes::WRONG_TYPE, span, message).into());
        }
        let mut values = Vec::new();
        for name in split_names(names) {
            let known = self.signature.symbols.get(name).copied();
            let var = match known.filter(|v| self.func.vars[*v].dtype == dtype) {
                Some(var) => var,
                None => {
                    let var = self.new_var(name, dtype, VarKind::Symbol, span);
                    let (_, hi) = dtype
                        .scalar
                        .int_range()
                        .unwrap_or((0, i128::from(i32::MAX)));
                    // Sizes are positive.
                    self.var_bounds.insert(var, (1, hi));
                    self.signature.symbols.insert(name.to_string(), var);
                    self.func.symbols.push(var);
                    var
                }
            };
            values.push(Value::Expr(self.var_expr(var).with_span(span)));
        }
        self.one_or_tuple(values, span)
    }

    fn one_or_tuple(&self, mut values: Vec<Value>, span: Span) -> Result<Value> {
        match values.len() {
            0 => Err(self
                .error(codes::WRONG_VALUE, span, "no name is given")
                .into()),
            1 => Ok(values.remove(0)),
            _ => Ok(Value::tuple(values)),
        }
    }

    /// `T.empty(shape, dtype)`: an output of an eager kernel.
    pub(crate) fn declare_output(
        &mut self,
        shape: Vec<Expr>,
        dtype: DType,
        span: Span,
    ) -> Result<Value> {
        if !self.building || !self.signature.eager {
            return Err(self
                .error(
                    codes::NO_BUILDER,
                    span,
                    "`T.empty` has a meaning only in the body of an eager `@tilelang.jit` kernel",
                )
                .help("use `out_idx` and a tensor parameter")
                .into());
        }
        self.before_kernels("`T.empty`", span)?;
        let data = self.buffer_data("", Scope::Global, dtype, shape, BufferOrigin::Param, span);
        let buffer = self.new_buffer(data);
        self.signature.outputs.push(buffer);
        Ok(Value::Buffer(buffer))
    }

    /// What makes the signature must be known before the first launch.
    pub(crate) fn before_kernels(&self, what: &str, span: Span) -> Result<()> {
        if !self.in_kernel() && self.func.kernels.is_empty() {
            return Ok(());
        }
        Err(self
            .error(
                codes::OUTPUTS,
                span,
                format!("{what} must stand before the first `T.Kernel`"),
            )
            .help("use `T.alloc_shared` or `T.alloc_fragment` for storage inside a kernel")
            .into())
    }

    /// Makes a parameter of what its annotation says. Gives what its name stands for.
    pub(crate) fn declare_param(
        &mut self,
        name: &str,
        position: usize,
        annotation: &Value,
        name_span: Span,
        span: Span,
    ) -> Result<Value> {
        let annotation = match annotation {
            Value::Lang(f) if f.name == "ptr" => &Value::DType(DType::HANDLE),
            other => other,
        };
        let (param, value) = if let Some(tensor) = annotation.object::<TensorType>() {
            let mut data = self.buffer_data(
                name,
                Scope::Global,
                tensor.dtype,
                tensor.shape.clone(),
                BufferOrigin::Param,
                name_span,
            );
            data.strides = tensor.strides.clone();
            let buffer = self.new_buffer(data);
            let output = false;
            (Param::Tensor { buffer, output }, Value::Buffer(buffer))
        } else if let Value::DType(dtype) = annotation {
            let var = self.new_var(name, *dtype, VarKind::Param, name_span);
            (Param::Scalar(var), Value::Expr(self.var_expr(var)))
        } else {
            return Err(self.bad_annotation(name, annotation, span));
        };
        self.signature.params.push((position, param));
        Ok(value)
    }

    fn bad_annotation(&self, name: &str, annotation: &Value, span: Span) -> Error {
        if let Value::Opaque(o) = annotation {
            return self.opaque_error(o, span);
        }
        let found = match annotation {
            Value::Lang(f) => format!("`T.{}` without a shape", f.name),
            other => other.type_name().to_string(),
        };
        self.error(
            codes::PARAM_ANNOTATION,
            span,
            format!("the annotation of `{name}` must be a tensor or a dtype, this is {found}"),
        )
        .help(format!("write `{name}: T.Tensor((M, N), T.float16)`"))
        .into()
    }

    /// Every const must be a dimension of a tensor as it stands, or a caller could not tell
    /// its value from the tensors.
    pub(crate) fn check_consts(&self) -> Result<()> {
        for (id, konst) in self.signature.consts.iter().enumerate() {
            if !self.signature.seen_dims.contains(&id) {
                let name = &konst.name;
                return Err(self
                    .error(
                        codes::CONST_UNRESOLVED,
                        konst.span,
                        format!("`{name}` is no dimension of any tensor as it stands"),
                    )
                    .note(format!(
                        "a dimension such as `{name} * 2` does not tell what `{name}` is"
                    ))
                    .help(format!(
                        "use `{name}` itself as a dimension of an annotated tensor"
                    ))
                    .into());
            }
        }
        Ok(())
    }

    /// Puts parameters and returned outputs into the function.
    pub(crate) fn finish_eager(&mut self, returned: &Value, span: Span) -> Result<()> {
        self.check_consts()?;
        let values = match returned {
            Value::None => Vec::new(),
            Value::Tuple(items) => items.to_vec(),
            Value::List(items) => items.borrow().clone(),
            one => vec![one.clone()],
        };
        let mut outputs = Vec::new();
        for value in &values {
            match value {
                Value::Buffer(b) if self.signature.outputs.contains(b) => {
                    if outputs.contains(b) {
                        let message = "an output is returned twice";
                        return Err(self.error(codes::OUTPUTS, span, message).into());
                    }
                    outputs.push(*b);
                }
                other => {
                    return Err(self
                        .error(
                            codes::OUTPUTS,
                            span,
                            format!(
                                "a kernel returns its `T.empty` tensors, this is {}",
                                other.type_name()
                            ),
                        )
                        .into());
                }
            }
        }
        let all = &self.signature.outputs;
        if let Some(missing) = all.iter().find(|b| !outputs.contains(b)) {
            let at = self.buffer(*missing).span;
            let name = self.buffer_name(*missing);
            return Err(self
                .error(
                    codes::OUTPUTS,
                    at,
                    format!("the output {name} is declared and not returned"),
                )
                .help("return every `T.empty` tensor")
                .into());
        }
        self.finish_params();
        for buffer in outputs {
            if self.func.buffers[buffer].name.is_empty() {
                self.func.buffers[buffer].name = "out".to_string();
            }
            let output = true;
            self.func.params.push(Param::Tensor { buffer, output });
        }
        Ok(())
    }

    /// Puts the parameters into the function in the order they are written.
    pub(crate) fn finish_params(&mut self) {
        let mut params = std::mem::take(&mut self.signature.params);
        params.sort_by_key(|(position, _)| *position);
        self.func.params = params.into_iter().map(|(_, p)| p).collect();
    }

    /// `out_idx`: which parameters the wrapper allocates and returns.
    pub(crate) fn apply_out_idx(&mut self, value: &Value, span: Span) -> Result<()> {
        let items = match value {
            Value::None => return Ok(()),
            _ => value.sequence().unwrap_or_else(|| vec![value.clone()]),
        };
        let count = self.func.params.len() as i128;
        for item in items {
            let index = self.to_int(&item, span, "`out_idx`")?;
            let at = if index < 0 { index + count } else { index };
            if !(0..count).contains(&at) {
                return Err(self
                    .error(
                        codes::OUT_IDX,
                        span,
                        format!("`out_idx` {index} is outside the {count} parameters"),
                    )
                    .into());
            }
            match &mut self.func.params[at as usize] {
                Param::Tensor { output, .. } if !*output => *output = true,
                Param::Tensor { .. } => {
                    let message = format!("`out_idx` names parameter {at} twice");
                    return Err(self.error(codes::OUT_IDX, span, message).into());
                }
                Param::Scalar(_) => {
                    let message = format!("`out_idx` {index} names a scalar; outputs are tensors");
                    return Err(self.error(codes::OUT_IDX, span, message).into());
                }
            }
        }
        Ok(())
    }
}

/// Names separated by commas or blanks.
pub(crate) fn split_names(text: &str) -> impl Iterator<Item = &str> {
    text.split([',', ' ', '\t', '\n']).filter(|n| !n.is_empty())
}
