//! Matrix products: `T.gemm`, its split-phase forms, `T.gemm_sp` and `T.gemm_blockscaled`.

use std::any::Any;
use std::rc::Rc;

use tilewright_ir::{
    DType, Expr, GemmKind, GemmOp, GemmPolicy, Region, Scalar, Scales, Scope, Span, Sparse,
    Sparsity, TileOp,
};

use super::barrier::barrier_element;
use super::extents::show_extents;
use super::{CallArgs, LangFn, ParamSpec, Ty, func, kw, opt, req};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::value::{Object, Value};
use crate::{Error, Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "gemm",
        &[
            A,
            B,
            C,
            TRANS_A,
            TRANS_B,
            POLICY,
            CLEAR,
            opt("k_pack", Ty::Int),
            opt("mbar", Ty::Any),
            opt("annotations", Ty::Any),
        ],
        |rec, args| gemm(rec, args, "T.gemm", GemmKind::Auto),
    ),
    func(
        "gemm_sp",
        &[
            req("A_sparse", Ty::Tile),
            req("E", Ty::Tile),
            B,
            C,
            TRANS_A,
            opt("transpose_E", Ty::Bool),
            TRANS_B,
            POLICY,
            CLEAR,
            opt("k_pack", Ty::Int),
            opt("wg_wait", Ty::Int),
            opt("annotations", Ty::Any),
        ],
        gemm_sp,
    ),
    func(
        "gemm_blockscaled",
        &[
            A,
            B,
            C,
            req("SFA", Ty::Tile),
            req("SFB", Ty::Tile),
            TRANS_A,
            TRANS_B,
            POLICY,
            CLEAR,
            kw("sf_a_granularity_k", Ty::Int),
            kw("sf_b_granularity_k", Ty::Int),
        ],
        gemm_blockscaled,
    ),
    func(
        "wgmma_gemm",
        &[
            A,
            B,
            C,
            TRANS_A,
            TRANS_B,
            POLICY,
            CLEAR,
            opt("annotations", Ty::Any),
        ],
        |rec, args| gemm(rec, args, "T.wgmma_gemm", GemmKind::Wgmma),
    ),
    func(
        "tcgen05_gemm",
        &[
            A,
            B,
            C,
            TRANS_A,
            TRANS_B,
            POLICY,
            CLEAR,
            kw("mbar", Ty::Any),
            kw("use_2cta", Ty::Bool),
            kw("annotations", Ty::Any),
        ],
        |rec, args| gemm(rec, args, "T.tcgen05_gemm", GemmKind::Tcgen05),
    ),
];

const A: ParamSpec = req("A", Ty::Tile);
const B: ParamSpec = req("B", Ty::Tile);
const C: ParamSpec = req("C", Ty::Tile);
const TRANS_A: ParamSpec = opt("transpose_A", Ty::Bool);
const TRANS_B: ParamSpec = opt("transpose_B", Ty::Bool);
const POLICY: ParamSpec = opt("policy", Ty::Any);
const CLEAR: ParamSpec = opt("clear_accum", Ty::Scalar);

/// `T.GemmWarpPolicy`, whose members are policies.
#[derive(Debug)]
pub struct GemmWarpPolicy;

/// One of its members.
#[derive(Debug)]
struct PolicyValue(GemmPolicy);

impl Object for GemmWarpPolicy {
    fn type_name(&self) -> &'static str {
        "the class of warp policies"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }

    fn attr(&self, rec: &mut Recorder, name: &str, span: Span) -> Option<Result<Value>> {
        let policy = match name {
            "Square" => GemmPolicy::Square,
            "FullRow" => GemmPolicy::FullRow,
            "FullCol" => GemmPolicy::FullCol,
            _ => {
                return Some(Err(rec
                    .error(
                        codes::UNKNOWN_ATTRIBUTE,
                        span,
                        format!("there is no warp policy `{name}`"),
                    )
                    .help("the policies are Square, FullRow and FullCol")
                    .into()));
            }
        };
        Some(Ok(Value::Object(Rc::new(PolicyValue(policy)))))
    }
}

impl Object for PolicyValue {
    fn type_name(&self) -> &'static str {
        "a warp policy"
    }

    fn as_any(&self) -> &dyn Any {
        self
    }
}

/// One operand as a matrix.
struct Matrix {
    /// The parameter's name.
    name: &'static str,
    region: Region,
    rows: i128,
    cols: i128,
    dtype: DType,
    scope: Scope,
    span: Span,
}

fn gemm(rec: &mut Recorder, args: &CallArgs, what: &str, kind: GemmKind) -> Result<Value> {
    let a = matrix(rec, args, what, "A")?;
    let b = matrix(rec, args, what, "B")?;
    let c = matrix(rec, args, what, "C")?;
    let trans_a = args.bool_or(rec, "transpose_A", false)?;
    let trans_b = args.bool_or(rec, "transpose_B", false)?;
    check_scopes(rec, what, kind, &a, &b, &c)?;
    check_shapes(rec, args, what, (&a, trans_a), (&b, trans_b), &c)?;
    check_dtypes(rec, args, what, kind, &a, &b, &c)?;
    let (barrier, k_pack) = match kind {
        GemmKind::Auto => (barrier(rec, args, what, &c)?, k_pack(rec, args)?),
        GemmKind::Wgmma => (None, 1),
        GemmKind::Tcgen05 => {
            if args.bool_or(rec, "use_2cta", false)? {
                return Err(super::not_supported(
                    rec,
                    args.span_of("use_2cta"),
                    "a product over two blocks (`use_2cta`)",
                    "leave `use_2cta` out",
                ));
            }
            (barrier(rec, args, what, &c)?, 1)
        }
    };
    let op = GemmOp {
        policy: policy(rec, args)?,
        clear: clear_accum(rec, args)?,
        a: a.region,
        b: b.region,
        c: c.region,
        trans_a,
        trans_b,
        sparse: None,
        scales: None,
        k_pack,
        kind,
        barrier,
        plan: None,
    };
    rec.emit_tile(TileOp::Gemm(op))?;
    Ok(Value::None)
}

fn gemm_sp(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (what, kind) = ("T.gemm_sp", GemmKind::Auto);
    let a = matrix(rec, args, what, "A_sparse")?;
    let e = matrix(rec, args, what, "E")?;
    let b = matrix(rec, args, what, "B")?;
    let c = matrix(rec, args, what, "C")?;
    let trans_a = args.bool_or(rec, "transpose_A", false)?;
    let trans_e = args.bool_or(rec, "transpose_E", false)?;
    let trans_b = args.bool_or(rec, "transpose_B", false)?;
    check_scopes(rec, what, kind, &a, &b, &c)?;
    check_told(rec, what, &e, &c, "E")?;
    check_dtypes(rec, args, what, kind, &a, &b, &c)?;
    let sparsity = Sparsity::of(a.dtype.scalar).ok_or_else(|| -> Error {
        rec.error(
            codes::GEMM_DTYPE,
            a.span,
            format!("{what}: a sparse factor cannot be {}", a.dtype),
        )
        .help("sparse factors are float16, bfloat16, float32, int8, uint8 or fp8")
        .into()
    })?;
    // What is left out counts: A has its full shape from here on.
    let full = Matrix {
        rows: if trans_a { 2 * a.rows } else { a.rows },
        cols: if trans_a { a.cols } else { 2 * a.cols },
        region: a.region.clone(),
        ..a
    };
    check_shapes(rec, args, what, (&full, trans_a), (&b, trans_b), &c)?;
    let k = if trans_a { full.rows } else { full.cols };
    check_metadata(rec, (&full, sparsity), (&e, trans_e), [c.rows, k])?;
    let op = GemmOp {
        policy: policy(rec, args)?,
        clear: clear_accum(rec, args)?,
        a: a.region,
        b: b.region,
        c: c.region,
        trans_a,
        trans_b,
        sparse: Some(Sparse {
            e: e.region,
            trans_e,
        }),
        scales: None,
        k_pack: k_pack(rec, args)?,
        kind,
        barrier: None,
        plan: None,
    };
    rec.emit_tile(TileOp::Gemm(op))?;
    Ok(Value::None)
}

fn gemm_blockscaled(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let (what, kind) = ("T.gemm_blockscaled", GemmKind::Auto);
    let a = matrix(rec, args, what, "A")?;
    let b = matrix(rec, args, what, "B")?;
    let c = matrix(rec, args, what, "C")?;
    let of_a = matrix(rec, args, what, "SFA")?;
    let of_b = matrix(rec, args, what, "SFB")?;
    let trans_a = args.bool_or(rec, "transpose_A", false)?;
    let trans_b = args.bool_or(rec, "transpose_B", false)?;
    check_scopes(rec, what, kind, &a, &b, &c)?;
    check_told(rec, what, &of_a, &c, "SFA")?;
    check_told(rec, what, &of_b, &c, "SFB")?;
    check_shapes(rec, args, what, (&a, trans_a), (&b, trans_b), &c)?;
    for factor in [&a, &b] {
        if !factor.dtype.is_scalar() || !Scales::of(factor.dtype.scalar) {
            return Err(rec
                .error(
                    codes::GEMM_DTYPE,
                    factor.span,
                    format!("{what}: {} cannot be {}", factor.name, factor.dtype),
                )
                .help("factors with scales are fp8, fp6 or fp4; `T.gemm` multiplies others")
                .into());
        }
    }
    if c.dtype != DType::F32 {
        return Err(rec
            .error(
                codes::GEMM_DTYPE,
                c.span,
                format!(
                    "{what}: products with scales cannot be summed in {}",
                    c.dtype
                ),
            )
            .help("make C float32")
            .into());
    }
    let k = if trans_a { a.rows } else { a.cols };
    let every = [
        run_of(rec, args, what, "sf_a_granularity_k")?,
        run_of(rec, args, what, "sf_b_granularity_k")?,
    ];
    check_scales(rec, what, &of_a, ("M", c.rows), (k, every[0]))?;
    check_scales(rec, what, &of_b, ("N", c.cols), (k, every[1]))?;
    let op = GemmOp {
        policy: policy(rec, args)?,
        clear: clear_accum(rec, args)?,
        a: a.region,
        b: b.region,
        c: c.region,
        trans_a,
        trans_b,
        sparse: None,
        scales: Some(Scales {
            a: of_a.region,
            b: of_b.region,
            every,
        }),
        k_pack: 1,
        kind,
        barrier: None,
        plan: None,
    };
    rec.emit_tile(TileOp::Gemm(op))?;
    Ok(Value::None)
}

/// How many neighbours along K have one scale.
fn run_of(rec: &mut Recorder, args: &CallArgs, what: &str, name: &str) -> Result<u32> {
    let run = args.int_or(rec, name, 32)?;
    match u32::try_from(run) {
        Ok(run) if run > 0 => Ok(run),
        _ => Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of(name),
                format!("{what}: `{name}` must be a positive number, this is {run}"),
            )
            .help("it is how many neighbours along K have one scale, 32 if it is left out")
            .into()),
    }
}

/// Scales have a row for each row of A or column of B, and one for each run along K.
fn check_scales(
    rec: &Recorder,
    what: &str,
    scales: &Matrix,
    (side, rows): (&str, i128),
    (k, every): (i128, u32),
) -> Result<()> {
    if !scales.dtype.is_scalar() || !Scales::may_be(scales.dtype.scalar) {
        return Err(rec
            .error(
                codes::GEMM_DTYPE,
                scales.span,
                format!("{what}: {} cannot be {}", scales.name, scales.dtype),
            )
            .help("scales are float8_e8m0fnu or float8_e4m3fn; scale sums of `T.gemm` by others")
            .into());
    }
    let runs = Scales::count(k, every);
    if (scales.rows, scales.cols) == (rows, runs) {
        return Ok(());
    }
    Err(rec
        .error(
            codes::GEMM_SHAPE,
            scales.span,
            format!(
                "{what}: {} is ({}, {})",
                scales.name, scales.rows, scales.cols
            ),
        )
        .note(format!(
            "{side} is {rows}, and {every} of the {k} elements along K have one scale"
        ))
        .help(format!("make it ({rows}, {runs})"))
        .into())
}

/// What is said of the factors lies where threads read it, and is not the sum.
fn check_told(rec: &Recorder, what: &str, e: &Matrix, c: &Matrix, name: &str) -> Result<()> {
    let (message, help) = if !matches!(e.scope, Scope::Shared | Scope::Fragment) {
        (
            format!("{what}: {name} cannot be {}", place(e.scope)),
            format!("copy it to shared memory first: `T.copy({name}, {name}_shared)`"),
        )
    } else if e.region.buffer == c.region.buffer {
        (
            format!("{what}: {name} is also the accumulator C"),
            "copy it to another buffer before the product".to_string(),
        )
    } else {
        return Ok(());
    };
    let error = rec.error(codes::GEMM_SCOPE, e.span, message);
    Err(error.help(help).into())
}

/// Metadata has a row for each row of A, and bits for each group along K.
fn check_metadata(
    rec: &Recorder,
    (a, sparsity): (&Matrix, Sparsity),
    (e, trans_e): (&Matrix, bool),
    [m, k]: [i128; 2],
) -> Result<()> {
    let per_integer = match e.dtype.is_scalar() {
        true => sparsity.per_integer(e.dtype.scalar),
        false => None,
    };
    let Some(per_integer) = per_integer else {
        return Err(rec
            .error(
                codes::GEMM_DTYPE,
                e.span,
                format!("T.gemm_sp: the metadata E cannot be {}", e.dtype),
            )
            .help("it is int8, int16 or int32, or one of these without sign")
            .into());
    };
    let (rows, integers) = match trans_e {
        true => (e.cols, e.rows),
        false => (e.rows, e.cols),
    };
    if rows == m && integers * i128::from(per_integer) == k {
        return Ok(());
    }
    let Sparsity { kept, group } = sparsity;
    let mut error = rec
        .error(
            codes::GEMM_SHAPE,
            e.span,
            format!(
                "T.gemm_sp: E is ({}, {}){}, which is no metadata of {m} by {k} elements",
                e.rows,
                e.cols,
                if trans_e { " transposed" } else { "" }
            ),
        )
        .note(format!(
            "{kept} of {group} {} neighbours stored; one {} has the places of {per_integer} along K",
            a.dtype, e.dtype
        ));
    error = match k % i128::from(per_integer) {
        0 => {
            let needed = k / i128::from(per_integer);
            error.help(match trans_e {
                true => format!("make E ({needed}, {m})"),
                false => format!("make E ({m}, {needed}), or ({needed}, {m}) with transpose_E"),
            })
        }
        _ => error.help(format!("K must be a multiple of {per_integer}")),
    };
    Err(error.into())
}

fn matrix(rec: &mut Recorder, args: &CallArgs, what: &str, name: &'static str) -> Result<Matrix> {
    let tile = args.tile(rec, name)?;
    let span = args.span_of(name);
    if matches!(tile, Tile::Element(_)) {
        return Err(rec
            .error(
                codes::GEMM_RANK,
                span,
                format!("{what}: {name} is a single element, not a matrix"),
            )
            .help("pass the whole buffer, or slice the last two dimensions")
            .into());
    }
    let region = tile.region(rec);
    let data = rec.buffer(region.buffer);
    let (dtype, scope) = (data.dtype, data.scope);
    let shown = show_extents(rec, region.dims.iter().map(|d| &d.extent));
    let [leading @ .., rows, cols] = &region.dims[..] else {
        return Err(rec
            .error(
                codes::GEMM_RANK,
                span,
                format!("{what}: {name} must be a matrix, its shape is {shown}"),
            )
            .help("operands have at least two dimensions; `T.reshape` can add one of extent 1")
            .into());
    };
    if leading.iter().any(|d| rec.const_int(&d.extent) != Some(1)) {
        return Err(rec
            .error(
                codes::GEMM_RANK,
                span,
                format!("{what}: the leading extents of {name} must be one, its shape is {shown}"),
            )
            .help(format!("pick one matrix of it, such as `{name}[i, :, :]`"))
            .into());
    }
    let (Some(rows), Some(cols)) = (rec.const_int(&rows.extent), rec.const_int(&cols.extent))
    else {
        return Err(rec
            .error(
                codes::GEMM_SHAPE,
                span,
                format!("{what}: the extents of {name} must be constants, they are {shown}"),
            )
            .help("slice a tile of constant size")
            .into());
    };
    super::extents::check_inside(rec, &region, span, matches!(tile, Tile::Region(_)))?;
    if scope == Scope::Fragment {
        check_whole(rec, what, name, &region, span)?;
    }
    Ok(Matrix {
        name,
        region,
        rows,
        cols,
        dtype,
        scope,
        span,
    })
}

/// A fragment has no addresses, so a part of one cannot be an operand.
fn check_whole(rec: &Recorder, what: &str, name: &str, region: &Region, span: Span) -> Result<()> {
    let shape = &rec.buffer(region.buffer).shape;
    let whole = region.dims.iter().zip(shape).all(|(d, size)| {
        rec.const_int(&d.start) == Some(0) && rec.const_int(&d.extent) == rec.const_int(size)
    });
    if whole {
        return Ok(());
    }
    Err(rec
        .error(
            codes::GEMM_REGION,
            span,
            format!(
                "{what}: {name} is a part of the fragment {} of shape {}",
                rec.buffer_name(region.buffer),
                show_extents(rec, shape)
            ),
        )
        .help("pass the whole fragment, or allocate one for this part")
        .into())
}

fn check_scopes(
    rec: &Recorder,
    what: &str,
    kind: GemmKind,
    a: &Matrix,
    b: &Matrix,
    c: &Matrix,
) -> Result<()> {
    let tmem_a = kind != GemmKind::Wgmma && c.scope == Scope::Tmem;
    for (m, allowed, help) in [
        (
            a,
            matches!(a.scope, Scope::Shared | Scope::Fragment)
                || (a.scope == Scope::Tmem && tmem_a),
            "copy it to shared memory first: `T.copy(A, A_shared)`",
        ),
        (
            b,
            b.scope == Scope::Shared || (b.scope == Scope::Fragment && kind == GemmKind::Auto),
            "copy it to shared memory first: `T.copy(B, B_shared)`",
        ),
        (
            c,
            match kind {
                GemmKind::Auto => matches!(c.scope, Scope::Fragment | Scope::Tmem),
                GemmKind::Wgmma => c.scope == Scope::Fragment,
                GemmKind::Tcgen05 => c.scope == Scope::Tmem,
            },
            match kind {
                GemmKind::Tcgen05 => "allocate the accumulator with `T.alloc_tmem`",
                GemmKind::Auto | GemmKind::Wgmma => {
                    "accumulate into a fragment from `T.alloc_fragment` and copy that out"
                }
            },
        ),
    ] {
        if !allowed {
            return Err(rec
                .error(
                    codes::GEMM_SCOPE,
                    m.span,
                    format!("{what}: {} cannot be {}", m.name, place(m.scope)),
                )
                .help(help)
                .into());
        }
    }
    for m in [a, b] {
        if m.region.buffer == c.region.buffer {
            return Err(rec
                .error(
                    codes::GEMM_REGION,
                    m.span,
                    format!("{what}: {} is also the accumulator C", m.name),
                )
                .help("copy it to another buffer before the product")
                .into());
        }
    }
    Ok(())
}

/// Where a scope puts a buffer, for messages.
fn place(scope: Scope) -> &'static str {
    match scope {
        Scope::Global => "in global memory",
        Scope::Shared => "in shared memory",
        Scope::Fragment => "a fragment",
        Scope::Local => "a thread's own array",
        Scope::Var => "a variable",
        Scope::Barrier => "a barrier",
        Scope::Tmem => "in tensor memory",
        Scope::Reducer => "a reducer",
    }
}

fn check_shapes(
    rec: &Recorder,
    args: &CallArgs,
    what: &str,
    (a, trans_a): (&Matrix, bool),
    (b, trans_b): (&Matrix, bool),
    c: &Matrix,
) -> Result<()> {
    let (m, ka) = if trans_a {
        (a.cols, a.rows)
    } else {
        (a.rows, a.cols)
    };
    let (kb, n) = if trans_b {
        (b.cols, b.rows)
    } else {
        (b.rows, b.cols)
    };
    let mismatch = |dim: &str, x: &Matrix, xv: i128, y: &Matrix, yv: i128| -> Error {
        let transposed = |name: &str| match name {
            "A" | "A_sparse" if trans_a => " transposed",
            "B" if trans_b => " transposed",
            _ => "",
        };
        let shape = |m: &Matrix| {
            let zeros = match m.name {
                "A_sparse" => " with its zeros",
                _ => "",
            };
            format!(
                "{} is ({}, {}){zeros}{}",
                m.name,
                m.rows,
                m.cols,
                transposed(m.name)
            )
        };
        let mut error = rec
            .error(
                codes::GEMM_SHAPE,
                args.span(),
                format!(
                    "{what}: {dim} is {xv} in {} and {yv} in {}",
                    x.name, y.name
                ),
            )
            .note(format!("{}, {}, {}", shape(a), shape(b), shape(c)))
            .help("C is (M, N), A is (M, K) or (K, M) with transpose_A, B is (K, N) or (N, K) with transpose_B");
        // The usual slip: a flag that is missing or one too many.
        let (a_flip, b_flip) = ((a.cols, a.rows), (b.cols, b.rows));
        let fits = |ta: bool, tb: bool| {
            let (m, ka) = if ta { a_flip } else { (a.rows, a.cols) };
            let (kb, n) = if tb { b_flip } else { (b.rows, b.cols) };
            m == c.rows && n == c.cols && ka == kb
        };
        let better = [
            (trans_a, !trans_b),
            (!trans_a, trans_b),
            (!trans_a, !trans_b),
        ]
        .into_iter()
        .find(|(ta, tb)| fits(*ta, *tb));
        if let Some((ta, tb)) = better {
            let word = |flag: bool| if flag { "True" } else { "False" };
            error = error.help(format!(
                "these shapes fit with transpose_A={}, transpose_B={}",
                word(ta),
                word(tb)
            ));
        }
        error.into()
    };
    if m != c.rows {
        return Err(mismatch("M", a, m, c, c.rows));
    }
    if n != c.cols {
        return Err(mismatch("N", b, n, c, c.cols));
    }
    if ka != kb {
        return Err(mismatch("K", a, ka, b, kb));
    }
    Ok(())
}

fn check_dtypes(
    rec: &Recorder,
    args: &CallArgs,
    what: &str,
    kind: GemmKind,
    a: &Matrix,
    b: &Matrix,
    c: &Matrix,
) -> Result<()> {
    let narrow = |m: &Matrix| m.dtype.scalar.is_float() && m.dtype.scalar.bits() <= 8;
    let may_mix = kind == GemmKind::Tcgen05 && narrow(a) && narrow(b);
    if a.dtype != b.dtype && !may_mix {
        return Err(rec
            .error(
                codes::GEMM_DTYPE,
                args.span(),
                format!("{what}: A is {} and B is {}", a.dtype, b.dtype),
            )
            .help("convert one of them with `T.copy` into a buffer of the other dtype")
            .into());
    }
    let accumulators = accumulators(a.dtype.scalar);
    if !a.dtype.is_scalar() || accumulators.is_empty() {
        return Err(rec
            .error(
                codes::GEMM_DTYPE,
                a.span,
                format!("{what}: there is no product of {} matrices", a.dtype),
            )
            .help("operands are floats, int8, uint8, int4 or uint4")
            .into());
    }
    if !c.dtype.is_scalar() || !accumulators.contains(&c.dtype.scalar) {
        let names: Vec<&str> = accumulators.iter().map(|s| s.name()).collect();
        return Err(rec
            .error(
                codes::GEMM_DTYPE,
                c.span,
                format!(
                    "{what}: products of {} cannot be summed in {}",
                    a.dtype, c.dtype
                ),
            )
            .help(format!("make C {}", names.join(" or ")))
            .into());
    }
    Ok(())
}

/// The types that products of this type are summed in; none when there are no such products.
fn accumulators(operand: Scalar) -> &'static [Scalar] {
    match operand {
        Scalar::F16
        | Scalar::F8E4M3FN
        | Scalar::F8E4M3FNUZ
        | Scalar::F8E5M2
        | Scalar::F8E5M2FNUZ => &[Scalar::F32, Scalar::F16],
        Scalar::BF16
        | Scalar::TF32
        | Scalar::F32
        | Scalar::F6E2M3
        | Scalar::F6E3M2
        | Scalar::F4E2M1 => &[Scalar::F32],
        Scalar::F64 => &[Scalar::F64],
        Scalar::I8 | Scalar::U8 | Scalar::I4 | Scalar::U4 => &[Scalar::I32],
        Scalar::Bool
        | Scalar::I16
        | Scalar::I32
        | Scalar::I64
        | Scalar::U16
        | Scalar::U32
        | Scalar::U64
        | Scalar::F8E8M0
        | Scalar::Handle => &[],
    }
}

fn barrier(
    rec: &mut Recorder,
    args: &CallArgs,
    what: &str,
    c: &Matrix,
) -> Result<Option<(tilewright_ir::Buffer, Expr)>> {
    let Some(value) = args.value("mbar").cloned() else {
        return Ok(None);
    };
    if c.scope != Scope::Tmem {
        return Err(rec
            .error(
                codes::BAD_OPTION,
                args.span_of("mbar"),
                format!("{what}: `mbar` is for accumulators in tensor memory"),
            )
            .help("leave `mbar` out; the product is complete before the next statement")
            .into());
    }
    barrier_element(rec, &value, args.span_of("mbar")).map(Some)
}

fn k_pack(rec: &mut Recorder, args: &CallArgs) -> Result<u8> {
    match args.int_or(rec, "k_pack", 1)? {
        1 => Ok(1),
        2 => Ok(2),
        other => Err(rec
            .error(
                codes::K_PACK,
                args.span_of("k_pack"),
                format!("`k_pack` must be 1 or 2, this is {other}"),
            )
            .help("it is a hint for matrix cores that read two fragments at a time; leave it out")
            .into()),
    }
}

fn policy(rec: &Recorder, args: &CallArgs) -> Result<GemmPolicy> {
    match args.value("policy") {
        None => Ok(GemmPolicy::Square),
        Some(value) => match value.object::<PolicyValue>() {
            Some(PolicyValue(policy)) => Ok(*policy),
            None => Err(rec
                .error(
                    codes::WRONG_TYPE,
                    args.span_of("policy"),
                    format!(
                        "`policy` must be a warp policy, this is {}",
                        value.type_name()
                    ),
                )
                .help("use `T.GemmWarpPolicy.Square`, `.FullRow` or `.FullCol`")
                .into()),
        },
    }
}

fn clear_accum(rec: &Recorder, args: &CallArgs) -> Result<Expr> {
    match args.value("clear_accum") {
        None => Ok(Expr::bool(false)),
        Some(value) => rec.condition(value, args.span_of("clear_accum")),
    }
}
