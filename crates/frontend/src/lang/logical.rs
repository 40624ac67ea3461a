//! `T.any_of` and `T.all_of`: whether elements of a buffer are not zero.

use tilewright_ir::{BinOp, DType, Expr, Region, Scope, Span, StmtKind};

use super::extents::{check_inside, const_product, show_extents};
use super::{CallArgs, LangFn, ParamSpec, Ty, func, req, threads};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("any_of", BUFFER, |s, a| fold(s, a, "T.any_of", true)),
    func("all_of", BUFFER, |s, a| fold(s, a, "T.all_of", false)),
];

const BUFFER: &[ParamSpec] = &[req("buffer", Ty::Tile)];

/// Elements up to which the test is one expression rather than a loop.
const INLINE: i128 = 16;

fn fold(rec: &mut Recorder, args: &CallArgs, what: &str, any: bool) -> Result<Value> {
    let tile = args.tile(rec, "buffer")?;
    let span = args.span_of("buffer");
    let region = tile.region(rec);
    let scope = rec.buffer(region.buffer).scope;
    if !matches!(scope, Scope::Global | Scope::Shared | Scope::Local) {
        return Err(rec
            .error(
                codes::BUFFER_SCOPE,
                span,
                format!("{what} cannot look at {} memory", scope.name()),
            )
            .help("copy the tile to shared memory first")
            .into());
    }
    check_inside(rec, &region, span, matches!(tile, Tile::Region(_)))?;
    let extents: Vec<Expr> = region.dims.iter().map(|d| d.extent.clone()).collect();
    let leading = &extents[..extents.len().saturating_sub(1)];
    let is_row = leading.iter().all(|e| rec.const_int(e) == Some(1));
    if matches!(tile, Tile::Region(_)) && !is_row {
        return Err(rec
            .error(
                codes::SHAPE,
                span,
                format!(
                    "{what} looks along the last dimension only, this region is {}",
                    show_extents(rec, &extents)
                ),
            )
            .help("use one index for the other dimensions")
            .into());
    }
    match const_product(rec, &extents) {
        Some(n) if n <= INLINE => expression(rec, &region, n, any, args.span()),
        _ => looped(rec, &region, &extents, any, args.span()),
    }
}

/// `a != 0 or b != 0 or …` of a row, or of a small buffer.
fn expression(
    rec: &mut Recorder,
    region: &Region,
    count: i128,
    any: bool,
    span: Span,
) -> Result<Value> {
    let op = if any {
        BinOp::LogicalOr
    } else {
        BinOp::LogicalAnd
    };
    let mut result: Option<Expr> = None;
    for linear in 0..count {
        let mut rest = linear;
        let mut offsets = Vec::with_capacity(region.dims.len());
        for dim in region.dims.iter().rev() {
            let n = rec.const_int(&dim.extent).unwrap_or(1).max(1);
            offsets.push(Expr::int(rest % n, dim.start.dtype()));
            rest /= n;
        }
        offsets.reverse();
        let test = not_zero(rec, region, &offsets, span)?;
        result = Some(match result {
            None => test,
            Some(so_far) => rec.binary_expr(op, so_far, test, span)?,
        });
    }
    Ok(Value::Expr(result.unwrap_or_else(|| Expr::bool(!any))))
}

/// A variable of each thread that a loop over the elements sets.
fn looped(
    rec: &mut Recorder,
    region: &Region,
    extents: &[Expr],
    any: bool,
    span: Span,
) -> Result<Value> {
    let found = rec.alloc_var("found", Expr::bool(!any), span)?;
    let read = Expr::load(found, Vec::new(), DType::BOOL);
    let op = if any {
        BinOp::LogicalOr
    } else {
        BinOp::LogicalAnd
    };
    threads::nest(rec, extents, |rec, offsets| {
        let test = not_zero(rec, region, offsets, span)?;
        let value = rec.binary_expr(op, read.clone(), test, span)?;
        rec.emit(StmtKind::Store {
            buffer: found,
            indices: Vec::new(),
            value,
        })
    })?;
    rec.let_value("found", read, span).map(Value::Expr)
}

fn not_zero(rec: &Recorder, region: &Region, offsets: &[Expr], span: Span) -> Result<Expr> {
    let dtype = rec.buffer(region.buffer).dtype;
    let value = Expr::load(region.buffer, threads::point(region, offsets), dtype);
    if dtype == DType::BOOL {
        return Ok(value);
    }
    rec.binary_expr(BinOp::Ne, value, Expr::zero(dtype), span)
}
