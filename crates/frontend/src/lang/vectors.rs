//! Vectors of a thread: made of single values, loaded and stored whole.

use tilewright_ir::{Buffer, BufferOrigin, DType, Expr, ExprKind, Scalar, Scope, Span, StmtKind};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, opt, req};
use crate::record::Recorder;
use crate::record::emit::BlockKind;
use crate::value::{RegionValue, Value};
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("ldg32", LOAD, |s, a| load(s, a, Scope::Global, 32)),
    func("ldg64", LOAD, |s, a| load(s, a, Scope::Global, 64)),
    func("ldg128", LOAD, |s, a| load(s, a, Scope::Global, 128)),
    func("ldg256", LOAD, |s, a| load(s, a, Scope::Global, 256)),
    func("stg32", STORE, |s, a| store(s, a, Scope::Global, 32)),
    func("stg64", STORE, |s, a| store(s, a, Scope::Global, 64)),
    func("stg128", STORE, |s, a| store(s, a, Scope::Global, 128)),
    func("stg256", STORE, |s, a| store(s, a, Scope::Global, 256)),
    func("lds32", LOAD, |s, a| load(s, a, Scope::Shared, 32)),
    func("lds64", LOAD, |s, a| load(s, a, Scope::Shared, 64)),
    func("lds128", LOAD, |s, a| load(s, a, Scope::Shared, 128)),
    func("sts32", STORE, |s, a| store(s, a, Scope::Shared, 32)),
    func("sts64", STORE, |s, a| store(s, a, Scope::Shared, 64)),
    func("sts128", STORE, |s, a| store(s, a, Scope::Shared, 128)),
];

const LOAD: &[ParamSpec] = &[req("src", Ty::Tile), opt("pred", Ty::Scalar)];
const STORE: &[ParamSpec] = &[
    req("dst", Ty::Tile),
    req("value", Ty::Scalar),
    opt("pred", Ty::Scalar),
];

/// Lanes of a vector that a statement moves, at the most: 32 bytes of the smallest type.
const MAX_LANES: u16 = 32;
/// Bytes of a region that is assigned to another one by each thread for itself.
const MAX_BYTES: u32 = 32;

/// A vector of scalars of one type, computed here.
pub(crate) fn vector(rec: &mut Recorder, lanes: &[Expr], span: Span) -> Result<Expr> {
    let dtype = lanes[0].dtype();
    let count = lanes.len() as u16;
    let shape = vec![Expr::i32(lanes.len() as i32)];
    let data = rec.buffer_data(
        "lanes",
        Scope::Local,
        dtype,
        shape,
        BufferOrigin::Alloc,
        span,
    );
    let buffer = rec.alloc(data)?;
    for (lane, value) in lanes.iter().enumerate() {
        let store = StmtKind::Store {
            buffer,
            indices: vec![Expr::i32(lane as i32)],
            value: value.clone(),
        };
        rec.emit_at(store, span)?;
    }
    let whole = loaded(buffer, vec![Expr::i32(0)], dtype, count, span);
    rec.let_value("vector", whole, span)
}

/// `count` elements in a row from an element on.
pub(crate) fn loaded(
    buffer: Buffer,
    indices: Vec<Expr>,
    dtype: DType,
    count: u16,
    span: Span,
) -> Expr {
    let indices = in_a_row(indices, count);
    Expr::load(buffer, indices, dtype).with_span(span)
}

/// The indices of `count` elements in a row.
pub(super) fn in_a_row(mut indices: Vec<Expr>, count: u16) -> Vec<Expr> {
    if count > 1
        && let Some(last) = indices.last_mut()
    {
        let dtype = last.dtype();
        let kind = ExprKind::Ramp {
            base: last.clone(),
            stride: Expr::int(1, dtype),
        };
        *last = Expr::new(kind, dtype.with_lanes(count), last.span());
    }
    indices
}

fn load(rec: &mut Recorder, args: &CallArgs, scope: Scope, bits: u32) -> Result<Value> {
    let (buffer, indices, count) = place(rec, args, "src", scope, bits)?;
    let span = args.span();
    let dtype = rec.buffer(buffer).dtype;
    let value = loaded(buffer, indices, dtype, count, span);
    let words = DType::scalar(Scalar::U32).with_lanes((bits / 32) as u16);
    let mut value = value.reinterpret_as(words).with_span(span);
    if let Some(pred) = args.value("pred").cloned() {
        let cond = rec.condition(&pred, args.span_of("pred"))?;
        let zero = match words.lanes {
            1 => Expr::zero(words),
            lanes => Expr::zero(DType::scalar(Scalar::U32)).broadcast(lanes),
        };
        value = rec.choose(true, cond, value, zero, span)?;
    }
    rec.kernel("a load")?;
    // Loaded here, whatever is stored before the value is used.
    rec.let_value("loaded", value, span).map(Value::Expr)
}

fn store(rec: &mut Recorder, args: &CallArgs, scope: Scope, bits: u32) -> Result<Value> {
    let (buffer, indices, count) = place(rec, args, "dst", scope, bits)?;
    let span = args.span();
    let value_span = args.span_of("value");
    let value = args.required("value").clone();
    let value = rec.to_expr(&value, value_span)?;
    if value.dtype().bits() != bits {
        return Err(rec
            .error(
                codes::REINTERPRET_WIDTH,
                value_span,
                format!(
                    "{} stores {bits} bits, {} has {}",
                    args.name(),
                    value.dtype(),
                    value.dtype().bits()
                ),
            )
            .help("the value is one that a load of the same width gave, or `T.reinterpret` of one")
            .into());
    }
    let dtype = rec.buffer(buffer).dtype.with_lanes(count);
    let value = match value.dtype() == dtype {
        true => value,
        false => value.reinterpret_as(dtype).with_span(span),
    };
    let indices = in_a_row(indices, count);
    let store = StmtKind::Store {
        buffer,
        indices,
        value,
    };
    match args.value("pred").cloned() {
        None => rec.emit(store)?,
        Some(pred) => {
            let cond = rec.condition(&pred, args.span_of("pred"))?;
            rec.open_block(BlockKind::Branch, span)?;
            rec.emit(store)?;
            let then = rec.close_block();
            rec.emit(StmtKind::If {
                cond,
                then,
                otherwise: Vec::new(),
            })?;
        }
    }
    Ok(Value::None)
}

/// Where a load or store of `bits` begins, and how many elements it moves.
fn place(
    rec: &mut Recorder,
    args: &CallArgs,
    name: &str,
    scope: Scope,
    bits: u32,
) -> Result<(Buffer, Vec<Expr>, u16)> {
    let what = args.name();
    let region = args.tile(rec, name)?.region(rec);
    let span = args.span_of(name);
    let data = rec.buffer(region.buffer);
    let (dtype, own) = (data.dtype, data.scope);
    if own != scope {
        return Err(rec
            .error(
                codes::BUFFER_SCOPE,
                span,
                format!(
                    "{what} works on {} memory; {} is {}",
                    scope.name(),
                    rec.buffer_name(region.buffer),
                    own.name()
                ),
            )
            .help("`ldg` and `stg` are for tensors, `lds` and `sts` for shared memory")
            .into());
    }
    let whole = dtype.is_scalar() && dtype.scalar.bits() >= 8 && bits.is_multiple_of(dtype.bits());
    if !whole || dtype.scalar == Scalar::Handle {
        return Err(rec
            .error(
                codes::WRONG_TYPE,
                span,
                format!("{what} moves {bits} bits, which are no whole elements of {dtype}"),
            )
            .help("use a narrower load, or `T.copy`")
            .into());
    }
    let indices = region.dims.into_iter().map(|d| d.start).collect();
    Ok((region.buffer, indices, (bits / dtype.bits()) as u16))
}

impl Recorder {
    /// `A[i, a:b] = value`: a vector that each thread stores for itself.
    pub(crate) fn store_region(
        &mut self,
        target: &RegionValue,
        value: &Value,
        span: Span,
    ) -> Result<bool> {
        let Some(count) = self.lanes_of(target) else {
            return Ok(false);
        };
        let buffer = target.region.buffer;
        let data = self.buffer(buffer);
        let (dtype, scope) = (data.dtype, data.scope);
        if !matches!(scope, Scope::Global | Scope::Shared | Scope::Local) || !dtype.is_scalar() {
            return Ok(false);
        }
        let value = match value {
            Value::Region(source) => {
                let from = self.buffer(source.region.buffer);
                let (from_dtype, from_scope) = (from.dtype, from.scope);
                let small = u32::from(count) * from_dtype.bits() <= MAX_BYTES * 8;
                let own = matches!(from_scope, Scope::Global | Scope::Shared | Scope::Local);
                if self.lanes_of(source) != Some(count) || !small || !own {
                    return Ok(false);
                }
                let indices = source.region.dims.iter().map(|d| d.start.clone());
                loaded(
                    source.region.buffer,
                    indices.collect(),
                    from_dtype,
                    count,
                    source.span,
                )
            }
            Value::Expr(e) if e.dtype().lanes == count => e.clone(),
            Value::Element(_) => {
                let e = self.to_expr(value, span)?;
                if e.dtype().lanes != count {
                    return Ok(false);
                }
                e
            }
            _ => return Ok(false),
        };
        let value = self.cast_expr(value, dtype.with_lanes(count), span)?;
        let indices = target.region.dims.iter().map(|d| d.start.clone());
        let store = StmtKind::Store {
            buffer,
            indices: in_a_row(indices.collect(), count),
            value,
        };
        self.emit_at(store, span)?;
        Ok(true)
    }

    /// The elements of a region that is a piece of one row.
    fn lanes_of(&self, region: &RegionValue) -> Option<u16> {
        let (last, before) = region.scalar.split_last()?;
        if *last || before.contains(&false) {
            return None;
        }
        let extent = self.const_int(&region.region.dims.last()?.extent)?;
        u16::try_from(extent)
            .ok()
            .filter(|n| (2..=MAX_LANES).contains(n))
    }

    /// `T.float32x4(a, b, c, d)`
    pub(crate) fn make_vector(
        &mut self,
        dtype: DType,
        values: &[super::Arg],
        span: Span,
    ) -> Result<Expr> {
        let scalar = dtype.with_lanes(1);
        let mut lanes = Vec::with_capacity(values.len());
        for arg in values {
            lanes.push(self.to_expr_as(&arg.value, scalar, arg.span)?);
        }
        self.kernel("a vector")?;
        vector(self, &lanes, span)
    }
}
