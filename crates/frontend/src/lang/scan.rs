//! Inclusive scans: `T.cumsum` and `T.cummax`.

use tilewright_ir::{Expr, Region, Scalar, ScanKind, ScanOp, Scope, TileOp};

use super::extents::{check_inside, shapes_equal, show_extents};
use super::reduce::dimension;
use super::{CallArgs, LangFn, ParamSpec, Ty, func, opt, req};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("cumsum", PARAMS, |rec, args| {
        scan(rec, args, "T.cumsum", ScanKind::Sum)
    }),
    func("cummax", PARAMS, |rec, args| {
        scan(rec, args, "T.cummax", ScanKind::Max)
    }),
];

const PARAMS: &[ParamSpec] = &[
    req("src", Ty::Tile),
    opt("dst", Ty::Tile),
    opt("dim", Ty::Int),
    opt("reverse", Ty::Bool),
    opt("annotations", Ty::Any),
];

fn scan(rec: &mut Recorder, args: &CallArgs, what: &str, kind: ScanKind) -> Result<Value> {
    let src = operand(rec, args, what, "src")?;
    let dst = match args.has("dst") {
        true => operand(rec, args, what, "dst")?,
        false => src.clone(),
    };
    let rank = src.dims.len();
    if !(1..=2).contains(&rank) {
        return Err(rec
            .error(
                codes::SCAN_RANK,
                args.span_of("src"),
                format!("{what} works on one or two dimensions, this has {rank}"),
            )
            .help("`T.reshape` it, or scan one slice at a time")
            .into());
    }
    let dim = dimension(rec, args, args.int_or(rec, "dim", 0)?, rank, what)?;
    let extents = |r: &Region| -> Vec<Expr> { r.dims.iter().map(|d| d.extent.clone()).collect() };
    if !shapes_equal(rec, &extents(&src), &extents(&dst)) {
        return Err(rec
            .error(
                codes::SCAN_SHAPE,
                args.span_of("dst"),
                format!(
                    "{what} of {} into {}",
                    show_extents(rec, &extents(&src)),
                    show_extents(rec, &extents(&dst))
                ),
            )
            .help("source and destination have one shape")
            .into());
    }
    if src != dst {
        super::extents::check_no_overlap(rec, &src, &dst, args.span_of("dst"))?;
    }
    rec.emit_tile(TileOp::Scan(ScanOp {
        kind,
        src,
        dst,
        dim: dim as u32,
        reverse: args.bool_or(rec, "reverse", false)?,
    }))?;
    Ok(Value::None)
}

fn operand(rec: &mut Recorder, args: &CallArgs, what: &str, name: &str) -> Result<Region> {
    let tile = args.tile(rec, name)?;
    let span = args.span_of(name);
    let region = tile.region(rec);
    let data = rec.buffer(region.buffer);
    if matches!(tile, Tile::Element(_)) {
        return Err(rec
            .error(
                codes::WRONG_TYPE,
                span,
                format!("{what} works on a buffer or a region, this is one element"),
            )
            .help("pass the buffer without an index, or slice it")
            .into());
    }
    if !matches!(data.scope, Scope::Shared | Scope::Fragment) {
        return Err(rec
            .error(
                codes::SCAN_SCOPE,
                span,
                format!(
                    "{what} works on shared memory and fragments; {} is {}",
                    rec.buffer_name(region.buffer),
                    data.scope.name()
                ),
            )
            .help("copy the tile to shared memory first")
            .into());
    }
    if data.dtype.scalar == Scalar::Bool || data.dtype.scalar == Scalar::Handle {
        return Err(rec
            .error(
                codes::OPERAND_TYPES,
                span,
                format!("{what} is not defined on {}", data.dtype),
            )
            .help("copy it into a buffer of integers or floats first")
            .into());
    }
    check_inside(rec, &region, span, matches!(tile, Tile::Region(_)))?;
    Ok(region)
}
