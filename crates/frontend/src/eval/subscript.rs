//! `value[index]`: Python containers, buffer elements and regions.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::{
    BinOp, Buffer, Diagnostic, Expr, ExprKind as IrKind, Region, RegionDim, Scope, Span,
};

use crate::codes;
use crate::eval::call::Args;
use crate::eval::{Stage, modules};
use crate::syntax::ast::{self, ExprKind};
use crate::value::{Element, RegionValue, SliceValue, Value};
use crate::{Error, Result};

impl Stage {
    pub(crate) fn subscript(
        &mut self,
        value: &Value,
        index: &ast::Expr,
        span: Span,
    ) -> Result<Value> {
        match value {
            Value::Buffer(b) => {
                let indices = self.index_items(index)?;
                self.index_buffer(*b, &indices, span)
            }
            Value::Element(e) if e.indices.is_empty() => {
                let name = self.rec.buffer_name(e.buffer);
                Err(self
                    .error(
                        codes::INDEX_COUNT,
                        span,
                        format!("{name} is a scalar variable and has no elements"),
                    )
                    .help("write the name alone")
                    .into())
            }
            Value::Lang(f) if f.subscript => {
                let items = self.index_items(index)?;
                let values = items.into_iter().map(|(v, _)| v).collect();
                self.call(value, Args::of(values, span))
            }
            // `list[int]`, `Callable[..., T]` in annotations.
            Value::Builtin(_) | Value::Class(_) | Value::Lang(_) => Ok(Value::None),
            Value::Opaque(o) => Ok(modules::opaque(&o.name, o.reason)),
            Value::Host(_) => {
                let key = self.eval(index)?;
                self.host_operate("getitem", &[value.clone(), key], span)
            }
            _ => {
                let key = self.eval(index)?;
                self.index_python(value, &key, span)
            }
        }
    }

    /// The items between the brackets, each with its place.
    fn index_items(&mut self, index: &ast::Expr) -> Result<Vec<(Value, Span)>> {
        let ExprKind::Tuple(items) = &index.kind else {
            return Ok(vec![(self.eval(index)?, index.span)]);
        };
        let mut out = Vec::with_capacity(items.len());
        for item in items {
            match &item.kind {
                ExprKind::Starred(inner) => {
                    let value = self.eval(inner)?;
                    let values = self.iterate(&value, inner.span)?;
                    out.extend(values.into_iter().map(|v| (v, item.span)));
                }
                _ => out.push((self.eval(item)?, item.span)),
            }
        }
        Ok(out)
    }

    pub(super) fn index_python(&mut self, value: &Value, key: &Value, span: Span) -> Result<Value> {
        if let Value::Dict(items) = value {
            let hash = self.hash(key, span)?;
            let found = items.borrow().get(&hash).map(|e| e.value.clone());
            return found.ok_or_else(|| self.missing_key(key, span));
        }
        let items = match value {
            Value::Tuple(_) | Value::List(_) => value.sequence().unwrap_or_default(),
            Value::Str(_) | Value::Range(_) => self.iterate(value, span)?,
            Value::Expr(_) | Value::Element(_) | Value::Region(_) => {
                return Err(self
                    .error(
                        codes::WRONG_TYPE,
                        span,
                        format!("{} cannot be indexed again", value.type_name()),
                    )
                    .help("give all indices at once: `A[i, j]`")
                    .into());
            }
            _ => {
                let message = format!("{} cannot be indexed", value.type_name());
                return Err(self.error(codes::WRONG_TYPE, span, message).into());
            }
        };
        if let Value::Slice(slice) = key {
            let picked = self.slice_items(&items, slice, span)?;
            return Ok(match value {
                Value::Tuple(_) => Value::tuple(picked),
                Value::Str(_) => {
                    let text: String = picked.iter().map(|c| self.display(c)).collect();
                    Value::str(text)
                }
                _ => Value::list(picked),
            });
        }
        if key.is_runtime() && key.as_int().is_none() {
            let constant = match key {
                Value::Expr(e) => self.rec.const_int(e),
                _ => None,
            };
            if constant.is_none() {
                return Err(self
                    .error(
                        codes::INDEX_TYPE,
                        span,
                        "a Python sequence cannot be indexed by a run-time value",
                    )
                    .help("unroll the loop over a Python list, or keep the values in a buffer")
                    .into());
            }
        }
        let at = self.rec.to_int(key, span, "the index")?;
        let len = items.len() as i128;
        let wrapped = if at < 0 { at + len } else { at };
        match usize::try_from(wrapped).ok().and_then(|i| items.get(i)) {
            Some(item) => Ok(item.clone()),
            None => Err(self.out_of_range(at, len, span)),
        }
    }

    fn slice_items(
        &mut self,
        items: &[Value],
        slice: &SliceValue,
        span: Span,
    ) -> Result<Vec<Value>> {
        let bound = |v: &Value, what: &str| match v {
            Value::None => Ok(None),
            v => self.rec.to_int(v, span, what).map(Some),
        };
        let step = bound(&slice.step, "the step")?.unwrap_or(1);
        if step == 0 {
            let message = "a slice with step zero";
            return Err(self.error(codes::BAD_SLICE, span, message).into());
        }
        let len = items.len() as i128;
        let clamp = |v: i128| {
            let v = if v < 0 { v + len } else { v };
            if step > 0 {
                v.clamp(0, len)
            } else {
                v.clamp(-1, len - 1)
            }
        };
        let (first, last) = if step > 0 { (0, len) } else { (len - 1, -1) };
        let lower = bound(&slice.lower, "the bound")?.map_or(first, clamp);
        let upper = bound(&slice.upper, "the bound")?.map_or(last, clamp);
        let range = crate::value::PyRange {
            start: lower,
            stop: upper,
            step,
        };
        Ok((0..range.len())
            .filter_map(|i| items.get(usize::try_from(range.at(i)).ok()?).cloned())
            .collect())
    }

    /// `A[i, j]` or `A[a:b, j]` on a buffer.
    pub fn index_buffer(
        &mut self,
        buffer: Buffer,
        items: &[(Value, Span)],
        span: Span,
    ) -> Result<Value> {
        let rank = self.rec.buffer(buffer).shape.len();
        // A variable may be indexed as the one element that it is.
        if let [(index, _)] = items
            && rank == 0
            && self.rec.buffer(buffer).scope == Scope::Var
            && index.as_int() == Some(0)
        {
            return Ok(Value::Element(Rc::new(Element {
                buffer,
                indices: Vec::new(),
                span,
            })));
        }
        // `mbars` with one barrier may be indexed or not; everything else needs every index.
        if items.len() != rank {
            return Err(self
                .error(
                    codes::INDEX_COUNT,
                    span,
                    format!(
                        "{} has {rank} dimensions and is given {} indices",
                        self.rec.buffer_name(buffer),
                        items.len()
                    ),
                )
                .also(self.rec.buffer(buffer).span, "declared here")
                .into());
        }
        if let Some((_, at)) = items.iter().find(|(v, _)| matches!(v, Value::Ellipsis)) {
            return Err(self.unsupported("...", *at));
        }
        if !items.iter().any(|(v, _)| matches!(v, Value::Slice(_))) {
            let mut indices = Vec::with_capacity(rank);
            for (dim, (value, at)) in items.iter().enumerate() {
                indices.push(self.index(buffer, dim, value, *at)?);
            }
            return Ok(Value::Element(Rc::new(Element {
                buffer,
                indices,
                span,
            })));
        }
        let mut dims = Vec::with_capacity(rank);
        let mut scalar = Vec::with_capacity(rank);
        for (dim, (value, at)) in items.iter().enumerate() {
            match value {
                Value::Slice(slice) => {
                    dims.push(self.slice_dim(buffer, dim, slice, *at)?);
                    scalar.push(false);
                }
                _ => {
                    let start = self.index(buffer, dim, value, *at)?;
                    let extent = Expr::int(1, start.dtype());
                    dims.push(RegionDim { start, extent });
                    scalar.push(true);
                }
            }
        }
        Ok(Value::Region(Rc::new(RegionValue {
            region: Region { buffer, dims },
            scalar,
            span,
        })))
    }

    /// One scalar index: an integer, counted from the end when it is negative by what the user
    /// wrote, and not certainly outside.
    ///
    /// What is negative only because a grid has one block or a loop one iteration is a halo: it
    /// means the same as in a larger launch, a place outside.
    fn index(&mut self, buffer: Buffer, dim: usize, value: &Value, span: Span) -> Result<Expr> {
        let mut index = self.rec.to_expr(value, span)?;
        if !index.dtype().scalar.is_int() {
            return Err(self
                .error(
                    codes::INDEX_TYPE,
                    span,
                    format!("an index must be an integer, this is {}", index.dtype()),
                )
                .help("divide with `//`, or cast with `T.cast(x, T.int32)`")
                .into());
        }
        let data = self.rec.buffer(buffer);
        let scope = data.scope;
        let extent = data.shape[dim].clone();
        if scope == Scope::Local && self.mentions_parallel(&index) {
            return Err(self
                .error(
                    codes::BUFFER_SCOPE,
                    span,
                    format!(
                        "{} is private to each thread and cannot be indexed by a `T.Parallel` index",
                        self.rec.buffer_name(buffer)
                    ),
                )
                .help("use a fragment, or a `T.serial` or `T.vectorized` loop")
                .into());
        }
        let constant = value.as_int().is_some();
        let folded = index.as_int().is_some() && !constant;
        if self.rec.is_negative_anywhere(&index) && !folded {
            let common = extent.clone();
            index = self.rec.binary_expr(BinOp::Add, common, index, span)?;
        }
        if let Some((lo, hi)) = self.rec.range_of(&index) {
            let limit = self.rec.const_int(&extent);
            if hi < 0 && !constant && scope == Scope::Global {
                self.rec.warn(
                    Diagnostic::warning(
                        codes::OUT_OF_BOUNDS,
                        span,
                        "this index is always negative: loads there give zero, stores are dropped",
                    )
                    .note("only an index that is negative in itself, like `-1` or `-i - 1`, counts from the end"),
                );
            } else if hi < 0 || limit.is_some_and(|n| lo >= n) {
                let place = if lo == hi {
                    format!("index {lo}")
                } else {
                    format!("the index ({lo} to {hi})")
                };
                let size = limit.map_or("its dimension".to_string(), |n| format!("0..{n}"));
                return Err(self
                    .error(
                        codes::OUT_OF_BOUNDS,
                        span,
                        format!(
                            "{place} is outside dimension {dim} of {}, which is {size}",
                            self.rec.buffer_name(buffer)
                        ),
                    )
                    .also(self.rec.buffer(buffer).span, "declared here")
                    .into());
            }
        }
        Ok(index)
    }

    fn mentions_parallel(&self, index: &Expr) -> bool {
        if self.rec.parallel_vars.is_empty() {
            return false;
        }
        let mut found = false;
        let mut fuel = 1000;
        let mut pending = vec![index.clone()];
        while let Some(e) = pending.pop() {
            fuel -= 1;
            if fuel == 0 {
                break;
            }
            if let Some(var) = e.as_var() {
                found |= self.rec.parallel_vars.contains(&var);
                if let Some(value) = self.rec.let_values.get(&var) {
                    pending.push(value.clone());
                }
            }
            pending.extend(e.operands().into_iter().cloned());
        }
        found
    }

    fn slice_dim(
        &mut self,
        buffer: Buffer,
        dim: usize,
        slice: &SliceValue,
        span: Span,
    ) -> Result<RegionDim> {
        if !matches!(slice.step, Value::None) && slice.step.as_int() != Some(1) {
            return Err(self
                .error(
                    codes::BAD_SLICE,
                    span,
                    "a slice of a buffer cannot have a step",
                )
                .help("loop over the elements inside `T.Parallel`")
                .into());
        }
        let extent = self.rec.buffer(buffer).shape[dim].clone();
        let bound = |value: &Value, default: Expr| -> Result<Expr> {
            if matches!(value, Value::None) {
                return Ok(default);
            }
            let e = self.rec.to_expr(value, span)?;
            if !e.dtype().scalar.is_int() {
                return Err(self
                    .error(
                        codes::INDEX_TYPE,
                        span,
                        format!("a slice bound must be an integer, this is {}", e.dtype()),
                    )
                    .help("divide with `//`")
                    .into());
            }
            if let Some((_, hi)) = self.rec.range_of(&e)
                && hi < 0
            {
                return Err(self
                    .error(
                        codes::BAD_SLICE,
                        span,
                        "a slice bound of a buffer is negative",
                    )
                    .help("write the bound from the start of the dimension")
                    .into());
            }
            Ok(e)
        };
        let lower = bound(&slice.lower, Expr::zero(extent.dtype()))?;
        let upper = bound(&slice.upper, extent.clone())?;
        let size = self.difference(&upper, &lower, span)?;
        if let Some(n) = self.rec.const_int(&size)
            && n <= 0
        {
            return Err(self
                .error(
                    codes::BAD_SLICE,
                    span,
                    format!("the slice of {} is empty", self.rec.buffer_name(buffer)),
                )
                .into());
        }
        // A tile that overhangs global memory is meant: what is outside reads as the safe value.
        // Bounds that are written as constants are a mistake, and so is leaving other memory.
        let written = |value: &Value| matches!(value, Value::None) || value.as_int().is_some();
        let checked = self.rec.buffer(buffer).scope != Scope::Global
            || (written(&slice.lower) && written(&slice.upper));
        let end = self.rec.const_int(&upper);
        let limit = self.rec.const_int(&extent);
        if let (Some(end), Some(limit), Some(_)) = (end, limit, self.rec.const_int(&lower))
            && checked
            && end > limit
        {
            return Err(self
                .error(
                    codes::OUT_OF_BOUNDS,
                    span,
                    format!(
                        "the slice ends at {end}, dimension {dim} of {} at {limit}",
                        self.rec.buffer_name(buffer)
                    ),
                )
                .also(self.rec.buffer(buffer).span, "declared here")
                .into());
        }
        Ok(RegionDim {
            start: lower,
            extent: size,
        })
    }

    /// `a - b`, as a constant where the common terms cancel.
    pub fn difference(&self, a: &Expr, b: &Expr, span: Span) -> Result<Expr> {
        let mut form = Linear::default();
        let mut fuel = 400;
        let known =
            self.flatten(a, 1, &mut form, &mut fuel) && self.flatten(b, -1, &mut form, &mut fuel);
        let common = tilewright_ir::dtype::promote(a.dtype(), b.dtype());
        if known && form.terms.values().all(|c| *c == 0) {
            return Ok(Expr::int(form.constant, common.unwrap_or(a.dtype())).with_span(span));
        }
        self.rec.binary_expr(BinOp::Sub, a.clone(), b.clone(), span)
    }

    /// Adds `factor * e` to a linear form; false when there is too much of it.
    fn flatten(&self, e: &Expr, factor: i128, form: &mut Linear, fuel: &mut u32) -> bool {
        let Some(left) = fuel.checked_sub(1) else {
            return false;
        };
        *fuel = left;
        match e.kind() {
            IrKind::Int(v) => match v.checked_mul(factor) {
                Some(v) => form.constant += v,
                None => return false,
            },
            IrKind::Binary(BinOp::Add, a, b) => {
                return self.flatten(a, factor, form, fuel) && self.flatten(b, factor, form, fuel);
            }
            IrKind::Binary(BinOp::Sub, a, b) => {
                return self.flatten(a, factor, form, fuel) && self.flatten(b, -factor, form, fuel);
            }
            IrKind::Binary(BinOp::Mul, a, b) => {
                let (inner, constant) = match (a.as_int(), b.as_int()) {
                    (Some(c), _) => (b, c),
                    (_, Some(c)) => (a, c),
                    _ => {
                        *form.terms.entry(e.clone()).or_default() += factor;
                        return true;
                    }
                };
                let Some(factor) = factor.checked_mul(constant) else {
                    return false;
                };
                return self.flatten(inner, factor, form, fuel);
            }
            IrKind::Var(var) => match self.rec.let_values.get(var) {
                Some(value) => return self.flatten(value, factor, form, fuel),
                None => *form.terms.entry(e.clone()).or_default() += factor,
            },
            _ => *form.terms.entry(e.clone()).or_default() += factor,
        }
        true
    }

    pub(crate) fn set_item(
        &mut self,
        container: &Value,
        key: Value,
        value: Value,
        span: Span,
    ) -> Result<()> {
        match container {
            Value::Dict(items) => {
                let hash = self.hash(&key, span)?;
                self.rec.check_items(items.borrow().len() + 1, span)?;
                let entry = crate::value::Entry { key, value };
                items.borrow_mut().insert(hash, entry);
                Ok(())
            }
            Value::List(items) => {
                let at = self.rec.to_int(&key, span, "the index")?;
                let len = items.borrow().len() as i128;
                let wrapped = if at < 0 { at + len } else { at };
                match items
                    .borrow_mut()
                    .get_mut(usize::try_from(wrapped).unwrap_or(usize::MAX))
                {
                    Some(slot) => {
                        *slot = value;
                        Ok(())
                    }
                    None => Err(self.out_of_range(at, len, span)),
                }
            }
            Value::Opaque(o) => Err(self.rec.opaque_error(o, span)),
            Value::Host(_) => {
                let operands = [container.clone(), key, value];
                self.host_operate("setitem", &operands, span).map(|_| ())
            }
            _ => Err(self.no_item_assignment(container, span)),
        }
    }

    fn no_item_assignment(&self, container: &Value, span: Span) -> Error {
        let message = format!("the items of {} cannot be assigned", container.type_name());
        self.error(codes::WRONG_TYPE, span, message).into()
    }
}

/// A sum of terms with factors.
#[derive(Default)]
struct Linear {
    terms: FxHashMap<Expr, i128>,
    constant: i128,
}
