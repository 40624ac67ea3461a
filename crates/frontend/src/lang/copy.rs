//! `T.copy`.

use tilewright_ir::{CopyHints, CopyKind, CopyOp, TileOp};

use crate::Result;
use crate::codes;
use crate::eval::Stage;
use crate::lang::{CallArgs, LangFn, Ty, kwrest, req};
use crate::value::Value;

pub(super) static FNS: &[LangFn] = &[LangFn::new(
    "copy",
    &[req("src", Ty::Tile), req("dst", Ty::Tile), kwrest("hints")],
    copy,
)];

fn copy(stage: &mut Stage, args: &CallArgs) -> Result<Value> {
    let src = args.tile(stage, "src")?;
    let dst = args.tile(stage, "dst")?;
    let mut src_region = src.region(stage);
    let mut dst_region = dst.region(stage);
    // A start point takes the other side's extents, right-aligned.
    let (open, given) = match (src.extents(stage), dst.extents(stage)) {
        (None, Some(extents)) => (&mut src_region, extents),
        (Some(extents), None) => (&mut dst_region, extents),
        (Some(a), Some(b)) => {
            let units = |e: &[tilewright_ir::Expr]| {
                e.iter()
                    .filter(|e| !e.is_int(1))
                    .cloned()
                    .collect::<Vec<_>>()
            };
            if units(&a) != units(&b) {
                let message = "the two sides of the copy have different extents";
                return Err(stage
                    .error(codes::COPY_EXTENTS, args.span(), message)
                    .into());
            }
            (&mut src_region, Vec::new())
        }
        (None, None) => (&mut src_region, Vec::new()),
    };
    if given.len() > open.dims.len() {
        let message = "the start point has fewer indices than the other side has dimensions";
        return Err(stage
            .error(codes::COPY_EXTENTS, args.span(), message)
            .into());
    }
    for (dim, extent) in open.dims.iter_mut().rev().zip(given.into_iter().rev()) {
        dim.extent = extent;
    }
    stage.emit_tile(TileOp::Copy(CopyOp {
        src: src_region,
        dst: dst_region,
        kind: CopyKind::Sync,
        hints: CopyHints::default(),
    }))?;
    Ok(Value::None)
}
