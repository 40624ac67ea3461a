//! The matrices of a product: where they may lie, which shapes and types fit together.

use tilewright_ir::{DType, GemmKind, Region, Scalar, Scope, Span};

use crate::lang::CallArgs;
use crate::lang::extents::{check_inside, show_extents};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::{Error, Result, codes};

/// The matrices of a product.
pub(super) struct Operands {
    pub a: Matrix,
    pub b: Matrix,
    pub c: Matrix,
    pub trans_a: bool,
    pub trans_b: bool,
}

impl Operands {
    /// Reads them off a call; the first factor is the parameter `a`.
    pub fn read(
        rec: &mut Recorder,
        args: &CallArgs,
        (what, kind): (&str, GemmKind),
        a: &'static str,
    ) -> Result<Operands> {
        let operands = Operands {
            a: matrix(rec, args, what, a)?,
            b: matrix(rec, args, what, "B")?,
            c: matrix(rec, args, what, "C")?,
            trans_a: args.bool_or(rec, "transpose_A", false)?,
            trans_b: args.bool_or(rec, "transpose_B", false)?,
        };
        check_scopes(rec, what, kind, &operands)?;
        Ok(operands)
    }

    /// The elements along K of the first factor.
    pub fn k(&self) -> i128 {
        match self.trans_a {
            true => self.a.rows,
            false => self.a.cols,
        }
    }
}

/// One operand as a matrix.
pub(super) struct Matrix {
    /// The parameter's name.
    pub name: &'static str,
    pub region: Region,
    pub rows: i128,
    pub cols: i128,
    pub dtype: DType,
    pub scope: Scope,
    pub span: Span,
}

/// The argument of this name as a matrix.
pub(super) fn matrix(
    rec: &mut Recorder,
    args: &CallArgs,
    what: &str,
    name: &'static str,
) -> Result<Matrix> {
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
    check_inside(rec, &region, span, matches!(tile, Tile::Region(_)))?;
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

fn check_scopes(rec: &Recorder, what: &str, kind: GemmKind, operands: &Operands) -> Result<()> {
    let Operands { a, b, c, .. } = operands;
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
pub(super) fn place(scope: Scope) -> &'static str {
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

/// What is said of the factors lies where threads read it, and is not the sum.
pub(super) fn check_told(rec: &Recorder, what: &str, e: &Matrix, c: &Matrix) -> Result<()> {
    let name = e.name;
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

/// M, N and K are the same wherever they stand.
pub(super) fn check_shapes(
    rec: &Recorder,
    args: &CallArgs,
    what: &str,
    operands: &Operands,
) -> Result<()> {
    let Operands {
        a,
        b,
        c,
        trans_a,
        trans_b,
    } = operands;
    let (trans_a, trans_b) = (*trans_a, *trans_b);
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

/// Factors have one type, and sums one that holds them.
pub(super) fn check_dtypes(
    rec: &Recorder,
    args: &CallArgs,
    (what, kind): (&str, GemmKind),
    operands: &Operands,
) -> Result<()> {
    let Operands { a, b, c, .. } = operands;
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
