//! Other names for the same storage, and tensors at addresses.

use tilewright_ir::{Buffer, BufferData, BufferOrigin, DType, Expr, ExprKind, Scalar, Scope};

use super::extents::{const_product, products_equal, show_extents};
use super::{CallArgs, LangFn, ParamSpec, Ty, func, opt, req};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "reshape",
        &[req("src", Ty::Buffer), req("shape", Ty::Shape)],
        |rec, args| view(rec, args, "T.reshape"),
    ),
    func(
        "view",
        &[
            req("src", Ty::Buffer),
            opt("shape", Ty::Shape),
            opt("dtype", Ty::DType),
        ],
        |rec, args| view(rec, args, "T.view"),
    ),
    func("make_tensor", MAKE, |rec, args| {
        make_tensor(rec, args, "T.make_tensor", "ptr")
    }),
    func(
        "make_tensor_from_addr",
        &[
            req("addr", Ty::Scalar),
            req("shape", Ty::Shape),
            opt("dtype", Ty::DType),
            opt("strides", Ty::Shape),
            opt("storage_scope", Ty::Str),
        ],
        |rec, args| make_tensor(rec, args, "T.make_tensor_from_addr", "addr"),
    ),
];

const MAKE: &[ParamSpec] = &[
    req("ptr", Ty::Scalar),
    req("shape", Ty::Shape),
    opt("dtype", Ty::DType),
    opt("strides", Ty::Shape),
];

fn view(rec: &mut Recorder, args: &CallArgs, what: &str) -> Result<Value> {
    let base = args.buffer(rec, "src")?;
    let span = args.span();
    check_viewable(rec, args, what, base)?;
    let (old_dtype, old_shape) = {
        let data = rec.buffer(base);
        (data.dtype, data.shape.clone())
    };
    let dtype = match args.is_param("dtype") && args.has("dtype") {
        true => super::required_dtype(rec, args, "dtype")?,
        false => old_dtype,
    };
    let shape = match args.has("shape") {
        true => args.shape(rec, "shape")?,
        false => same_bits_shape(rec, args, what, &old_shape, old_dtype, dtype)?,
    };
    let bits = |shape: &[Expr], dtype: DType| {
        let mut factors = shape.to_vec();
        factors.push(Expr::int(i128::from(dtype.bits()), DType::I64));
        factors
    };
    if !products_equal(rec, &bits(&old_shape, old_dtype), &bits(&shape, dtype)) {
        return Err(rec
            .error(
                codes::VIEW_SIZE,
                span,
                format!(
                    "{what}: {} of {old_dtype} is {}, {} of {dtype} is {}",
                    show_extents(rec, &old_shape),
                    show_bits(rec, &old_shape, old_dtype),
                    show_extents(rec, &shape),
                    show_bits(rec, &shape, dtype)
                ),
            )
            .help("a view covers the same storage, so the total number of bits must be equal")
            .into());
    }
    let scope = rec.buffer(base).scope;
    if scope == Scope::Fragment && dtype.bits() != old_dtype.bits() {
        return Err(rec
            .error(
                codes::VIEW_SIZE,
                span,
                format!("{what}: a fragment of {old_dtype} cannot be seen as {dtype}"),
            )
            .note(
                "its elements lie in registers of different threads and cannot be split or joined",
            )
            .help("go through shared memory, or use a dtype of the same width")
            .into());
    }
    let mut data = rec.buffer_data("", scope, dtype, shape, BufferOrigin::View(base), span);
    if dtype == old_dtype {
        data.safe_value = rec.buffer(base).safe_value.clone();
    }
    declare(rec, data)
}

fn check_viewable(rec: &Recorder, args: &CallArgs, what: &str, base: Buffer) -> Result<()> {
    let data = rec.buffer(base);
    let span = args.span_of("src");
    let name = rec.buffer_name(base);
    match data.scope {
        Scope::Global | Scope::Shared | Scope::Fragment | Scope::Local => {}
        Scope::Var | Scope::Barrier | Scope::Tmem | Scope::Reducer => {
            return Err(rec
                .error(
                    codes::BUFFER_SCOPE,
                    span,
                    format!("{what}: there are no views of {} memory", data.scope.name()),
                )
                .help("views are of global, shared, local memory and of fragments")
                .into());
        }
    }
    if data.strides.is_some() {
        return Err(rec
            .error(
                codes::BUFFER_SCOPE,
                span,
                format!("{what}: {name} has strides of its own, a view needs contiguous storage"),
            )
            .help("copy it to a contiguous buffer first")
            .into());
    }
    Ok(())
}

/// The shape with its last extent changed so that the bits stay the same.
fn same_bits_shape(
    rec: &mut Recorder,
    args: &CallArgs,
    what: &str,
    shape: &[Expr],
    from: DType,
    to: DType,
) -> Result<Vec<Expr>> {
    if from.bits() == to.bits() {
        return Ok(shape.to_vec());
    }
    let mut shape = shape.to_vec();
    let last = shape.last().and_then(|e| rec.const_int(e));
    let bits = last.and_then(|n| n.checked_mul(i128::from(from.bits())));
    match (bits, shape.last_mut()) {
        (Some(bits), Some(last)) if bits % i128::from(to.bits()) == 0 => {
            *last = rec.int_expr(bits / i128::from(to.bits()), args.span())?;
            Ok(shape)
        }
        _ => Err(rec
            .error(
                codes::VIEW_SIZE,
                args.span(),
                format!("{what}: rows of {from} do not divide into {to}"),
            )
            .help("give the shape of the view")
            .into()),
    }
}

fn show_bits(rec: &Recorder, shape: &[Expr], dtype: DType) -> String {
    match const_product(rec, shape) {
        Some(n) => format!("{} bits", n.saturating_mul(i128::from(dtype.bits()))),
        None => format!("? x {} bits", dtype.bits()),
    }
}

fn make_tensor(rec: &mut Recorder, args: &CallArgs, what: &str, address: &str) -> Result<Value> {
    let span = args.span();
    if !rec.building {
        return Err(rec.outside_kernel(&format!("`{what}`"), span));
    }
    let pointer = pointer(rec, args, what, address)?;
    if args.is_param("storage_scope") && args.str("storage_scope").is_some_and(|s| s != "global") {
        return Err(super::not_supported(
            rec,
            args.span_of("storage_scope"),
            &format!("{what} outside global memory"),
            "allocate on-chip memory and copy to it",
        ));
    }
    let dtype = match args.has("dtype") {
        true => super::required_dtype(rec, args, "dtype")?,
        false => DType::F32,
    };
    let shape = args.shape(rec, "shape")?;
    let strides = match args.value("strides").cloned() {
        None => None,
        Some(value) => {
            let strides = rec.to_shape(&value, args.span_of("strides"))?;
            if strides.len() != shape.len() {
                return Err(rec
                    .error(
                        codes::SHAPE,
                        args.span_of("strides"),
                        format!(
                            "{what}: {} strides for {} dimensions",
                            strides.len(),
                            shape.len()
                        ),
                    )
                    .into());
            }
            Some(strides)
        }
    };
    let origin = BufferOrigin::Pointer(pointer);
    let mut data = rec.buffer_data("", Scope::Global, dtype, shape, origin, span);
    data.strides = strides;
    declare(rec, data)
}

/// `T.Tensor(shape, dtype, A.data)`: other dimensions of a whole buffer, or a tensor at an address.
pub(super) fn tensor_at(
    rec: &mut Recorder,
    args: &CallArgs,
    shape: Vec<Expr>,
    strides: Option<Vec<Expr>>,
    dtype: DType,
) -> Result<Value> {
    const WHAT: &str = "T.Tensor";
    let span = args.span();
    if !rec.building {
        return Err(rec.outside_kernel("a tensor at an address", span));
    }
    let pointer = pointer(rec, args, WHAT, "data")?;
    let whole = match pointer.kind() {
        ExprKind::AddressOf { buffer, indices } if indices.iter().all(|i| i.is_int(0)) => {
            Some(*buffer)
        }
        _ => None,
    };
    if let Some(base) = whole
        && strides.is_none()
        && rec.buffer(base).strides.is_none()
    {
        let data = rec.buffer(base);
        let bits = |shape: &[Expr], dtype: DType| {
            let mut factors = shape.to_vec();
            factors.push(Expr::int(i128::from(dtype.bits()), DType::I64));
            factors
        };
        let scope = data.scope;
        let (own, seen) = (bits(&data.shape, data.dtype), bits(&shape, dtype));
        if products_equal(rec, &own, &seen) {
            let origin = BufferOrigin::View(base);
            let data = rec.buffer_data("", scope, dtype, shape, origin, span);
            return declare(rec, data);
        }
    }
    if let Some(base) = whole
        && rec.buffer(base).scope != Scope::Global
    {
        let name = rec.buffer_name(base);
        let scope = rec.buffer(base).scope.name();
        return Err(rec
            .error(
                codes::VIEW_SIZE,
                span,
                format!("{WHAT}: {name} is {scope} memory, of which a tensor has to cover all"),
            )
            .help("give it a shape and a dtype of the same number of bits, without strides")
            .into());
    }
    let origin = BufferOrigin::Pointer(pointer);
    let mut data = rec.buffer_data("", Scope::Global, dtype, shape, origin, span);
    data.strides = strides;
    declare(rec, data)
}

/// An argument that is an address.
fn pointer(rec: &mut Recorder, args: &CallArgs, what: &str, address: &str) -> Result<Expr> {
    let value = args.required(address).clone();
    let pointer = rec.to_expr(&value, args.span_of(address))?;
    let is_address = matches!(
        pointer.dtype().scalar,
        Scalar::Handle | Scalar::I64 | Scalar::U64
    );
    if !is_address || !pointer.dtype().is_scalar() {
        return Err(rec
            .error(
                codes::WRONG_TYPE,
                args.span_of(address),
                format!("{what} needs an address, this is {}", pointer.dtype()),
            )
            .help("pass a `T.ptr` parameter, or an int64 address loaded from a tensor")
            .into());
    }
    Ok(match pointer.dtype().scalar {
        Scalar::Handle => pointer,
        _ => pointer.reinterpret_as(DType::HANDLE),
    })
}

/// In a kernel a view is declared where it is made; before the first one it is the function's.
fn declare(rec: &mut Recorder, data: BufferData) -> Result<Value> {
    let buffer = match rec.in_kernel() {
        true => rec.alloc(data)?,
        false => rec.new_buffer(data),
    };
    Ok(Value::Buffer(buffer))
}
