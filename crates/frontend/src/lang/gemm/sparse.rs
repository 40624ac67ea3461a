//! `T.gemm_sp`: products whose first factor stores two of four neighbours along K.

use tilewright_ir::{GemmKind, GemmOp, Sparse, Sparsity};

use super::operands::{Matrix, Operands, check_dtypes, check_shapes, check_told, matrix};
use super::{emit, k_pack};
use crate::lang::CallArgs;
use crate::record::Recorder;
use crate::value::Value;
use crate::{Error, Result, codes};

pub(super) fn gemm_sp(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let what = "T.gemm_sp";
    let mut operands = Operands::read(rec, args, (what, GemmKind::Auto), "A_sparse")?;
    let e = matrix(rec, args, what, "E")?;
    let trans_e = args.bool_or(rec, "transpose_E", false)?;
    check_told(rec, what, &e, &operands.c)?;
    check_dtypes(rec, args, (what, GemmKind::Auto), &operands)?;
    let a = &mut operands.a;
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
    match operands.trans_a {
        true => a.rows *= 2,
        false => a.cols *= 2,
    }
    check_shapes(rec, args, what, &operands)?;
    check_metadata(rec, (&operands, sparsity), (&e, trans_e))?;
    let k_pack = k_pack(rec, args)?;
    emit(rec, args, operands, |op| GemmOp {
        sparse: Some(Sparse {
            e: e.region,
            trans_e,
        }),
        k_pack,
        ..op
    })
}

/// Metadata has a row for each row of A, and bits for each group along K.
fn check_metadata(
    rec: &Recorder,
    (operands, sparsity): (&Operands, Sparsity),
    (e, trans_e): (&Matrix, bool),
) -> Result<()> {
    let (m, k) = (operands.c.rows, operands.k());
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
            operands.a.dtype, e.dtype
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
