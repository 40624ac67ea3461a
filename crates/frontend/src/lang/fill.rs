//! `T.fill` and `T.clear`.

use tilewright_ir::{Expr, Scope, StmtKind, TileOp};

use super::extents::check_inside;
use super::{CallArgs, LangFn, Ty, func, opt, reducer, req, threads};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "fill",
        &[
            req("buffer", Ty::Tile),
            req("value", Ty::Scalar),
            opt("annotations", Ty::Any),
        ],
        |rec, args| {
            let value = args.required("value").clone();
            fill(rec, args, &value)
        },
    ),
    func(
        "clear",
        &[req("buffer", Ty::Tile), opt("annotations", Ty::Any)],
        |rec, args| fill(rec, args, &Value::Int(0)),
    ),
];

fn fill(rec: &mut Recorder, args: &CallArgs, value: &Value) -> Result<Value> {
    let tile = args.tile(rec, "buffer")?;
    let span = args.span_of("buffer");
    let buffer = tile.buffer();
    let (scope, dtype) = (rec.buffer(buffer).scope, rec.buffer(buffer).dtype);
    let value_span = if args.is_param("value") {
        args.span_of("value")
    } else {
        args.span()
    };
    let value = rec.to_expr_as(value, dtype, value_span)?;
    match scope {
        Scope::Reducer => return reducer::fill(rec, args, &tile, value),
        Scope::Barrier => {
            return Err(rec
                .error(
                    codes::BUFFER_SCOPE,
                    span,
                    format!("{} is a barrier and holds no data", rec.buffer_name(buffer)),
                )
                .help("barriers are initialised where they are allocated")
                .into());
        }
        Scope::Global
        | Scope::Shared
        | Scope::Fragment
        | Scope::Local
        | Scope::Var
        | Scope::Tmem => {}
    }
    if let Tile::Element(element) = &tile {
        rec.store(element, &Value::Expr(value), args.span())?;
        return Ok(Value::None);
    }
    let region = tile.region(rec);
    check_inside(rec, &region, span, matches!(tile, Tile::Region(_)))?;
    if threads::is_private(rec, buffer) {
        let value = once(rec, value)?;
        let extents: Vec<Expr> = region.dims.iter().map(|d| d.extent.clone()).collect();
        threads::nest(rec, &extents, |rec, offsets| {
            rec.emit(StmtKind::Store {
                buffer,
                indices: threads::point(&region, offsets),
                value,
            })
        })?;
    } else {
        rec.emit_tile(TileOp::Fill { dst: region, value })?;
    }
    Ok(Value::None)
}

/// The value computed once, before what uses it many times.
fn once(rec: &mut Recorder, value: Expr) -> Result<Expr> {
    if value.as_int().is_some() || value.as_float().is_some() || value.as_var().is_some() {
        return Ok(value);
    }
    let span = rec.span();
    rec.let_value("fill", value, span)
}
