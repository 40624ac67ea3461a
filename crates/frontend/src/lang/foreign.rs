//! Addresses and foreign code.

use tilewright_ir::{DType, Expr, ExprKind, Scope, Span, StmtKind, ThreadOp};

use super::{CallArgs, LangFn, ParamSpec, Ty, func, kw, opt, req, rest, vectors};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "access_ptr",
        &[
            req("base", Ty::Tile),
            opt("access_type", Ty::Any),
            rest("extents", Ty::Any),
            kw("offset", Ty::Scalar),
            kw("extent", Ty::Scalar),
            kw("ignore_last_ndim", Ty::Int),
        ],
        access_ptr,
    ),
    func("address_of", &[req("obj", Ty::Tile)], |rec, args| {
        let tile = args.tile(rec, "obj")?;
        let span = args.span();
        address(rec, &tile, span).map(Value::Expr)
    }),
    func(
        "ptx_cp_async",
        &[
            req("dst", Ty::Scalar),
            req("src", Ty::Scalar),
            req("num_elems", Ty::Int),
            opt("predicate", Ty::Scalar),
        ],
        cp_async,
    ),
    func("call_extern", EXTERN, |s, a| call_extern(s, a, false)),
    func("call_pure_extern", EXTERN, |s, a| call_extern(s, a, true)),
    func("import_source", &[opt("source", Ty::Str)], |rec, args| {
        if let Some(source) = args.str("source") {
            let kernel = rec.kernel_mut("`T.import_source`")?;
            kernel.attrs.imports.push(source.to_string());
        }
        Ok(Value::None)
    }),
    func(
        "__ldg",
        &[req("load_or_buf", Ty::Tile), opt("index", Ty::Scalar)],
        ldg,
    ),
];

const EXTERN: &[ParamSpec] = &[
    req("dtype", Ty::Any),
    req("func_name", Ty::Str),
    rest("args", Ty::Any),
];

fn access_ptr(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.access_ptr";
    let known = match args.value("access_type") {
        None => true,
        Some(Value::Str(s)) => matches!(&**s, "r" | "w" | "rw"),
        Some(value) => value.as_int().is_some_and(|v| (1..=3).contains(&v)),
    };
    if !known {
        return Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of("access_type"),
                format!("{WHAT}: the access is \"r\", \"w\" or \"rw\""),
            )
            .into());
    }
    let tile = args.tile(rec, "base")?;
    let span = args.span();
    let mut at = start(rec, &tile);
    if let Some(offset) = args.value("offset").cloned() {
        let offset_span = args.span_of("offset");
        let offset = rec.to_expr(&offset, offset_span)?;
        super::check_index(rec, &offset, offset_span, "an offset")?;
        if rec.const_int(&offset) != Some(0) {
            let [index] = &mut at[..] else {
                return Err(rec
                    .error(
                        codes::SHAPE,
                        offset_span,
                        format!(
                            "{WHAT}: an offset needs a buffer of one dimension, this has {}",
                            at.len()
                        ),
                    )
                    .help("index the first element instead: `T.access_ptr(A[i, j], \"r\")`")
                    .into());
            };
            *index = rec.binary_expr(tilewright_ir::BinOp::Add, index.clone(), offset, span)?;
        }
    }
    address_at(rec, tile.buffer(), at, span).map(Value::Expr)
}

fn start(rec: &Recorder, tile: &Tile) -> Vec<Expr> {
    let region = tile.region(rec);
    region.dims.into_iter().map(|d| d.start).collect()
}

/// The address of the first element.
fn address(rec: &Recorder, tile: &Tile, span: Span) -> Result<Expr> {
    let at = start(rec, tile);
    address_at(rec, tile.buffer(), at, span)
}

fn address_at(
    rec: &Recorder,
    buffer: tilewright_ir::Buffer,
    indices: Vec<Expr>,
    span: Span,
) -> Result<Expr> {
    let scope = rec.buffer(buffer).scope;
    if matches!(scope, Scope::Fragment | Scope::Reducer | Scope::Tmem) {
        return Err(rec
            .error(
                codes::BUFFER_SCOPE,
                span,
                format!(
                    "{} is a {} and has no addresses",
                    rec.buffer_name(buffer),
                    scope.name()
                ),
            )
            .help("copy it to shared memory, or use `T.alloc_local` for each thread's own array")
            .into());
    }
    Ok(Expr::new(
        ExprKind::AddressOf { buffer, indices },
        DType::HANDLE,
        span,
    ))
}

/// Elements in a row from a tensor to shared memory, by the thread that runs it; zeros where the
/// predicate does not hold.
fn cp_async(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.ptx_cp_async";
    let span = args.span();
    let mut ends = Vec::new();
    for (name, scope) in [("dst", Scope::Shared), ("src", Scope::Global)] {
        let value = args.required(name).clone();
        let address = rec.to_expr(&value, args.span_of(name))?;
        let found = match address.kind() {
            ExprKind::AddressOf { buffer, indices } => Some((*buffer, indices.clone())),
            _ => None,
        };
        let Some((buffer, indices)) = found.filter(|(b, _)| rec.buffer(*b).scope == scope) else {
            return Err(rec
                .error(
                    codes::COPY_SCOPE,
                    args.span_of(name),
                    format!("{WHAT}: `{name}` is an address in {} memory", scope.name()),
                )
                .help("write `T.ptx_cp_async(T.access_ptr(S[i], \"w\"), T.access_ptr(A[j], \"r\"), n)`")
                .into());
        };
        ends.push((buffer, indices));
    }
    let [(dst, dst_indices), (src, src_indices)] = &ends[..] else {
        return Ok(Value::None);
    };
    let (to, from) = (rec.buffer(*dst).dtype, rec.buffer(*src).dtype);
    if to != from {
        return Err(rec
            .error(
                codes::OPERAND_TYPES,
                span,
                format!("{WHAT} converts nothing: {from} to {to}"),
            )
            .into());
    }
    let count = args.int_or(rec, "num_elems", 0)?;
    let bytes = count.saturating_mul(i64::from(to.bits())) / 8;
    if !matches!(bytes, 4 | 8 | 16) {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                args.span_of("num_elems"),
                format!("{WHAT} copies 4, 8 or 16 bytes; {count} elements of {to} are {bytes}"),
            )
            .into());
    }
    let mut value = vectors::loaded(*src, src_indices.clone(), to, count as u16, span);
    if let Some(predicate) = args.value("predicate").cloned() {
        let cond = rec.condition(&predicate, args.span_of("predicate"))?;
        let zero = match count {
            1 => Expr::zero(to),
            n => Expr::zero(to).broadcast(n as u16),
        };
        value = rec.choose(true, cond, value, zero, span)?;
    }
    rec.emit(StmtKind::Store {
        buffer: *dst,
        indices: vectors::in_a_row(dst_indices.clone(), count as u16),
        value,
    })?;
    Ok(Value::None)
}

fn call_extern(rec: &mut Recorder, args: &CallArgs, pure: bool) -> Result<Value> {
    let name = args.str("func_name").unwrap_or_default();
    if name.is_empty() {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                args.span_of("func_name"),
                "the name of the foreign function is empty",
            )
            .into());
    }
    // Functions without a result are declared as giving an address or nothing.
    let returns = args.required("dtype").clone();
    let dtype = match &returns {
        Value::Str(s) if matches!(&**s, "void" | "handle" | "") => None,
        value => Some(rec.to_dtype(value, args.span_of("dtype"))?).filter(|d| *d != DType::HANDLE),
    };
    let mut exprs = Vec::with_capacity(args.rest().len());
    for arg in args.rest() {
        let value = arg.value.clone();
        exprs.push(match &value {
            Value::Buffer(b) if rec.buffer(*b).scope != Scope::Var => {
                address(rec, &Tile::Buffer(*b), arg.span)?
            }
            Value::Region(r) => address(rec, &Tile::Region(r.clone()), arg.span)?,
            value => rec.to_expr(value, arg.span)?,
        });
    }
    rec.kernel("`T.call_extern`")?;
    let result = dtype.map(|d| rec.result_var(d));
    rec.emit_thread(ThreadOp::Extern {
        name: name.to_string(),
        args: exprs,
        dtype: dtype.unwrap_or(DType::HANDLE),
        pure,
        result,
    })?;
    Ok(match result {
        Some(var) => Value::Expr(rec.var_expr(var).with_span(args.span())),
        None => Value::None,
    })
}

/// A load through the read-only cache is a load.
fn ldg(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.__ldg";
    let tile = args.tile(rec, "load_or_buf")?;
    let span = args.span();
    let scope = rec.buffer(tile.buffer()).scope;
    if scope != Scope::Global {
        return Err(rec
            .error(
                codes::BUFFER_SCOPE,
                args.span_of("load_or_buf"),
                format!("{WHAT} reads global memory, this is {}", scope.name()),
            )
            .into());
    }
    let mut indices = start(rec, &tile);
    if let Some(index) = args.value("index").cloned() {
        let [only] = &mut indices[..] else {
            return Err(rec
                .error(
                    codes::INDEX_COUNT,
                    args.span_of("index"),
                    format!("{WHAT}: one index for {} dimensions", indices.len()),
                )
                .help("index the element: `T.__ldg(A[i, j])`")
                .into());
        };
        let index_span = args.span_of("index");
        *only = rec.to_expr(&index, index_span)?;
        super::check_index(rec, only, index_span, "an index")?;
    }
    let dtype = rec.buffer(tile.buffer()).dtype;
    Ok(Value::Expr(
        Expr::load(tile.buffer(), indices, dtype).with_span(span),
    ))
}
