//! `T.fill` and `T.clear`.

use tilewright_ir::{Expr, Scope, StmtKind, TileOp};

use super::extents::check_inside;
use super::{CallArgs, LangFn, Ty, func, opt, reducer, req, threads};
use crate::eval::Stage;
use crate::eval::convert::Tile;
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
        |stage, args| {
            let value = args.required("value").clone();
            fill(stage, args, &value)
        },
    ),
    func(
        "clear",
        &[req("buffer", Ty::Tile), opt("annotations", Ty::Any)],
        |stage, args| fill(stage, args, &Value::Int(0)),
    ),
];

fn fill(stage: &mut Stage, args: &CallArgs, value: &Value) -> Result<Value> {
    let tile = args.tile(stage, "buffer")?;
    let span = args.span_of("buffer");
    let buffer = tile.buffer();
    let (scope, dtype) = (stage.buffer(buffer).scope, stage.buffer(buffer).dtype);
    let value_span = if args.is_param("value") {
        args.span_of("value")
    } else {
        args.span()
    };
    let value = stage.to_expr_as(value, dtype, value_span)?;
    match scope {
        Scope::Reducer => return reducer::fill(stage, args, &tile, value),
        Scope::Barrier => {
            return Err(stage
                .error(
                    codes::BUFFER_SCOPE,
                    span,
                    format!(
                        "{} is a barrier and holds no data",
                        stage.buffer_name(buffer)
                    ),
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
        stage.store(element, &Value::Expr(value), args.span())?;
        return Ok(Value::None);
    }
    let region = tile.region(stage);
    check_inside(stage, &region, span, matches!(tile, Tile::Region(_)))?;
    if threads::is_private(stage, buffer) {
        let value = once(stage, value)?;
        let extents: Vec<Expr> = region.dims.iter().map(|d| d.extent.clone()).collect();
        threads::nest(stage, &extents, |stage, offsets| {
            stage.emit(StmtKind::Store {
                buffer,
                indices: threads::point(&region, offsets),
                value,
            })
        })?;
    } else {
        stage.emit_tile(TileOp::Fill { dst: region, value })?;
    }
    Ok(Value::None)
}

/// The value computed once, before what uses it many times.
fn once(stage: &mut Stage, value: Expr) -> Result<Expr> {
    if value.as_int().is_some() || value.as_float().is_some() || value.as_var().is_some() {
        return Ok(value);
    }
    let span = stage.span();
    stage.let_value("fill", value, span)
}
