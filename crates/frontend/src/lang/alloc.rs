//! Allocations.

use tilewright_ir::{Buffer, BufferOrigin, DType, Expr, ReduceKind, Scalar, Scope, Span};

use super::extents::{const_product, show_extents};
use super::reducer::KINDS;
use super::{CallArgs, LangFn, Ty, func, kw, opt, req, rest};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "alloc_shared",
        &[SHAPE, DTYPE, opt("scope", Ty::Str)],
        |s, a| alloc_tile(s, a, "T.alloc_shared", Scope::Shared),
    ),
    func(
        "alloc_fragment",
        &[SHAPE, DTYPE, opt("scope", Ty::Str)],
        |s, a| alloc_tile(s, a, "T.alloc_fragment", Scope::Fragment),
    ),
    func(
        "alloc_local",
        &[SHAPE, DTYPE, opt("scope", Ty::Str)],
        |s, a| alloc_tile(s, a, "T.alloc_local", Scope::Local),
    ),
    func(
        "alloc_buffer",
        &[
            SHAPE,
            opt("dtype", Ty::DType),
            opt("data", Ty::Any),
            opt("strides", Ty::Any),
            opt("elem_offset", Ty::Any),
            opt("scope", Ty::Str),
            opt("align", Ty::Any),
            opt("offset_factor", Ty::Any),
            opt("buffer_type", Ty::Any),
            opt("axis_separators", Ty::Any),
        ],
        alloc_buffer,
    ),
    func(
        "alloc_var",
        &[
            DTYPE,
            rest("args", Ty::Any),
            kw("scope", Ty::Str),
            kw("init", Ty::Scalar),
        ],
        alloc_var,
    ),
    func(
        "alloc_global",
        &[SHAPE, DTYPE, opt("scope", Ty::Str)],
        alloc_global,
    ),
    func(
        "alloc_barrier",
        &[req("arrive_count", Ty::Any)],
        alloc_barrier,
    ),
    func(
        "alloc_cluster_barrier",
        &[req("arrive_count", Ty::Any)],
        |rec, args| {
            super::cluster::blocks(rec, "`T.alloc_cluster_barrier`", args.span())?;
            let barrier = alloc_barrier(rec, args)?;
            if let Value::Buffer(buffer) = barrier {
                rec.lang.cluster_barriers.push(buffer);
            }
            Ok(barrier)
        },
    ),
    func("alloc_tmem", &[SHAPE, DTYPE], alloc_tmem),
    func(
        "alloc_reducer",
        &[
            SHAPE,
            DTYPE,
            opt("op", Ty::Str),
            opt("replication", Ty::Any),
        ],
        alloc_reducer,
    ),
];

const SHAPE: super::ParamSpec = req("shape", Ty::Shape);
const DTYPE: super::ParamSpec = req("dtype", Ty::DType);

/// Elements of one on-chip buffer. Past this no machine could hold it and sizes would overflow.
const MAX_ELEMENTS: i128 = 1 << 30;

/// Arrivals that complete a phase of a barrier, by the width of the hardware's counter.
const MAX_ARRIVALS: i128 = (1 << 20) - 1;

/// The scope may be named as well, and then it is the named one that counts.
fn alloc_tile(rec: &mut Recorder, args: &CallArgs, what: &str, usual: Scope) -> Result<Value> {
    let scope = match args.str("scope") {
        None => Some(usual),
        Some(name) => {
            scope_of(name).filter(|s| matches!(s, Scope::Shared | Scope::Fragment | Scope::Local))
        }
    };
    let Some(scope) = scope else {
        return Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of("scope"),
                format!("{what} cannot allocate in this scope"),
            )
            .help("leave `scope` out, or use the allocation function of that scope")
            .into());
    };
    let dtype = super::required_dtype(rec, args, "dtype")?;
    on_chip(rec, args, what, scope, dtype, BufferOrigin::Alloc)
}

fn alloc_buffer(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.alloc_buffer";
    for name in ["data", "strides", "elem_offset", "axis_separators"] {
        if args.has(name) {
            return Err(super::not_supported(
                rec,
                args.span_of(name),
                &format!("`{name}` of {WHAT}"),
                "leave it out",
            ));
        }
    }
    let dtype = match args.has("dtype") {
        true => super::required_dtype(rec, args, "dtype")?,
        false => DType::F32,
    };
    let name = args.str("scope");
    let scope = match name {
        None => Scope::Global,
        Some(name) => scope_of(name).ok_or_else(|| {
            crate::Error::from(
                rec.error(
                    codes::BAD_OPTION,
                    args.span_of("scope"),
                    format!("\"{name}\" is no scope"),
                )
                .help("use \"shared\", \"local\", \"local.fragment\" or \"global\""),
            )
        })?,
    };
    match scope {
        Scope::Global => workspace(rec, args, WHAT, dtype),
        Scope::Shared | Scope::Fragment | Scope::Local => {
            on_chip(rec, args, WHAT, scope, dtype, BufferOrigin::Alloc)
        }
        Scope::Var | Scope::Barrier | Scope::Tmem | Scope::Reducer => Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of("scope"),
                format!("{WHAT} cannot allocate in the scope {}", scope.name()),
            )
            .help("use `T.alloc_var`, `T.alloc_barrier`, `T.alloc_tmem` or `T.alloc_reducer`")
            .into()),
    }
}

fn scope_of(name: &str) -> Option<Scope> {
    Some(match name {
        "shared" | "shared.dyn" => Scope::Shared,
        "local.fragment" => Scope::Fragment,
        "local" => Scope::Local,
        "local.var" => Scope::Var,
        "global" => Scope::Global,
        "shared.tmem" => Scope::Tmem,
        "shared.barrier" => Scope::Barrier,
        "local.reducer" => Scope::Reducer,
        _ => return None,
    })
}

fn alloc_var(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.alloc_var";
    let dtype = super::required_dtype(rec, args, "dtype")?;
    if dtype.scalar == Scalar::Handle {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                args.span_of("dtype"),
                "a variable cannot hold an address",
            )
            .into());
    }
    let mut init = args
        .value("init")
        .map(|v| (v.clone(), args.span_of("init")));
    for arg in args.rest() {
        match (&arg.value, &init) {
            // The older form names the scope here.
            (Value::Str(name), _) if scope_of(name) == Some(Scope::Var) => {}
            (Value::Str(name), _) => {
                return Err(rec
                    .error(
                        codes::BAD_OPTION,
                        arg.span,
                        format!("{WHAT} cannot allocate in the scope \"{name}\""),
                    )
                    .into());
            }
            (_, Some(_)) => {
                return Err(rec
                    .error(
                        codes::WRONG_ARITY,
                        arg.span,
                        format!("{WHAT} has one initial value"),
                    )
                    .help("write `T.alloc_var(dtype, init)`")
                    .into());
            }
            (value, None) => init = Some((value.clone(), arg.span)),
        }
    }
    let init = match init {
        Some((value, span)) => rec.to_expr_as(&value, dtype, span)?,
        None => Expr::zero(dtype),
    };
    rec.alloc_var("", init, args.span()).map(Value::Buffer)
}

fn alloc_global(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let dtype = super::required_dtype(rec, args, "dtype")?;
    workspace(rec, args, "T.alloc_global", dtype)
}

/// A buffer in device memory that all kernels of the call share.
fn workspace(rec: &mut Recorder, args: &CallArgs, what: &str, dtype: DType) -> Result<Value> {
    let shape = args.shape(rec, "shape")?;
    let span = args.span();
    if !rec.building {
        return Err(rec.outside_kernel(&format!("`{what}`"), span));
    }
    for extent in &shape {
        super::check_host_value(rec, extent, args.span_of("shape"), "an extent")?;
    }
    let data = rec.buffer_data(
        "",
        Scope::Global,
        dtype,
        shape,
        BufferOrigin::Workspace,
        span,
    );
    let buffer = rec.new_buffer(data);
    rec.func.workspaces.push(buffer);
    Ok(Value::Buffer(buffer))
}

fn alloc_barrier(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let span = args.span_of("arrive_count");
    let value = args.required("arrive_count").clone();
    let counts = value.sequence().unwrap_or_else(|| vec![value]);
    if counts.is_empty() {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                span,
                "T.alloc_barrier needs at least one arrival count",
            )
            .help("write `T.alloc_barrier(128)` or `T.alloc_barrier([128] * stages)`")
            .into());
    }
    let mut arrivals = Vec::with_capacity(counts.len());
    for count in &counts {
        let n = rec.to_int(count, span, "an arrival count")?;
        if !(1..=MAX_ARRIVALS).contains(&n) {
            return Err(rec
                .error(
                    codes::NON_POSITIVE,
                    span,
                    format!("an arrival count is between 1 and {MAX_ARRIVALS}, this is {n}"),
                )
                .help("it is the number of threads that arrive in each phase")
                .into());
        }
        arrivals.push(n as u32);
    }
    not_in_parallel(rec, args, "T.alloc_barrier")?;
    barriers(rec, arrivals, args.span()).map(Value::Buffer)
}

/// Barriers that so many arrivals complete.
pub(super) fn barriers(rec: &mut Recorder, arrivals: Vec<u32>, span: Span) -> Result<Buffer> {
    let shape = vec![Expr::i32(arrivals.len() as i32)];
    let data = rec.buffer_data(
        "",
        Scope::Barrier,
        DType::U64,
        shape,
        BufferOrigin::Barriers(arrivals),
        span,
    );
    rec.alloc(data)
}

fn alloc_tmem(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.alloc_tmem";
    let dtype = super::required_dtype(rec, args, "dtype")?;
    let shape = args.shape(rec, "shape")?;
    let columns = shape.last().and_then(|e| rec.const_int(e));
    let fits = columns.is_some_and(|n| n >= 32 && (n as u128).is_power_of_two());
    if shape.len() < 2 || !fits {
        return Err(rec
            .error(
                codes::SHAPE,
                args.span_of("shape"),
                format!(
                    "{WHAT} of {}: tensor memory has rows and a power of two of columns, 32 or more",
                    show_extents(rec, &shape)
                ),
            )
            .help("for example `T.alloc_tmem((128, 256), T.float32)`")
            .into());
    }
    on_chip(rec, args, WHAT, Scope::Tmem, dtype, BufferOrigin::Alloc)
}

fn alloc_reducer(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    const WHAT: &str = "T.alloc_reducer";
    let dtype = super::required_dtype(rec, args, "dtype")?;
    let name = args.str("op").unwrap_or("sum");
    let kind = ReduceKind::from_name(name).filter(|k| KINDS.contains(k));
    let Some(kind) = kind else {
        let names: Vec<&str> = KINDS.iter().map(|k| k.name()).collect();
        return Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of("op"),
                format!("`{name}` is no operation of a reducer"),
            )
            .help(format!("use one of {}", names.join(", ")))
            .into());
    };
    if super::limits::identity(kind, dtype).is_none() {
        return Err(rec
            .error(
                codes::REDUCE_DTYPE,
                args.span_of("dtype"),
                format!("a {} reducer cannot hold {dtype}", kind.name()),
            )
            .into());
    }
    match args.value("replication") {
        None => {}
        Some(Value::Str(s)) if matches!(&**s, "all" | "none") => {}
        Some(_) => {
            return Err(rec
                .error(
                    codes::BAD_OPTION,
                    args.span_of("replication"),
                    "`replication` must be \"all\" or \"none\"",
                )
                .help("leave it out; the compiler chooses")
                .into());
        }
    }
    on_chip(
        rec,
        args,
        WHAT,
        Scope::Reducer,
        dtype,
        BufferOrigin::Reducer(kind),
    )
}

/// Allocates memory of the block or of its threads, whose size must be constant.
fn on_chip(
    rec: &mut Recorder,
    args: &CallArgs,
    what: &str,
    scope: Scope,
    dtype: DType,
    origin: BufferOrigin,
) -> Result<Value> {
    let shape = args.shape(rec, "shape")?;
    let span = args.span_of("shape");
    if shape.is_empty() {
        return Err(rec
            .error(
                codes::SHAPE,
                span,
                format!("{what} needs at least one dimension"),
            )
            .help("write `(1,)` for one element, or use `T.alloc_var` for a scalar")
            .into());
    }
    if dtype.scalar == Scalar::Handle {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                args.span_of("dtype"),
                format!("{what}: addresses cannot be kept in on-chip memory"),
            )
            .into());
    }
    match const_product(rec, &shape) {
        Some(n) if n <= MAX_ELEMENTS => {}
        Some(n) => {
            return Err(rec
                .error(
                    codes::SHAPE,
                    span,
                    format!(
                        "{what} of {}: {n} elements are too many",
                        show_extents(rec, &shape)
                    ),
                )
                .help("on-chip memory holds tiles; keep the whole tensor in global memory")
                .into());
        }
        None => {
            return Err(rec
                .error(
                    codes::SHAPE,
                    span,
                    format!(
                        "{what} of {}: the extents must be known at compile time",
                        show_extents(rec, &shape)
                    ),
                )
                .help("use a tile size; only global tensors have run-time extents")
                .into());
        }
    }
    if scope != Scope::Local {
        not_in_parallel(rec, args, what)?;
    }
    let data = rec.buffer_data("", scope, dtype, shape, origin, args.span());
    rec.alloc(data).map(Value::Buffer)
}

fn not_in_parallel(rec: &Recorder, args: &CallArgs, what: &str) -> Result<()> {
    if !rec.in_parallel() {
        return Ok(());
    }
    Err(rec
        .error(
            codes::BAD_LOOP,
            args.span(),
            format!("{what} inside `T.Parallel`: the block's memory is allocated once, not at each point"),
        )
        .help("allocate it before the loop")
        .into())
}
