//! `T.gemm_blockscaled`: products of narrow floats that share scales along K.

use tilewright_ir::{DType, GemmKind, GemmOp, Scales};

use super::emit;
use super::operands::{Matrix, Operands, check_shapes, check_told, matrix};
use crate::lang::CallArgs;
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub(super) fn gemm_blockscaled(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let what = "T.gemm_blockscaled";
    let operands = Operands::read(rec, args, (what, GemmKind::Auto), "A")?;
    let of_a = matrix(rec, args, what, "SFA")?;
    let of_b = matrix(rec, args, what, "SFB")?;
    check_told(rec, what, &of_a, &operands.c)?;
    check_told(rec, what, &of_b, &operands.c)?;
    check_shapes(rec, args, what, &operands)?;
    for factor in [&operands.a, &operands.b] {
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
    let c = &operands.c;
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
    let every = [
        run_of(rec, args, what, "sf_a_granularity_k")?,
        run_of(rec, args, what, "sf_b_granularity_k")?,
    ];
    let k = operands.k();
    check_scales(rec, what, &of_a, ("M", c.rows), (k, every[0]))?;
    check_scales(rec, what, &of_b, ("N", c.cols), (k, every[1]))?;
    emit(rec, args, operands, |op| GemmOp {
        scales: Some(Scales {
            a: of_a.region,
            b: of_b.region,
            every,
        }),
        ..op
    })
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
