//! `T.print` and `T.device_assert`.

use tilewright_ir::{
    BinOp, Buffer, BufferOrigin, CopyHints, CopyKind, CopyOp, Expr, Region, Scope, StmtKind,
    ThreadOp, TileOp,
};

use super::{CallArgs, LangFn, Ty, func, opt, req, threads, warp};
use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::record::emit::BlockKind;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func(
        "print",
        &[
            opt("obj", Ty::Any),
            opt("msg", Ty::Str),
            opt("warp_group_id", Ty::Int),
            opt("warp_id", Ty::Int),
        ],
        print,
    ),
    func(
        "device_assert",
        &[
            req("condition", Ty::Scalar),
            opt("msg", Ty::Str),
            opt("no_stack_info", Ty::Any),
        ],
        device_assert,
    ),
];

fn print(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    rec.kernel("`T.print`")?;
    let message = args.str("msg").map_or(String::new(), |s| s.to_string());
    let tile = match args.value("obj") {
        None => {
            rec.emit_thread(ThreadOp::Print {
                message,
                args: Vec::new(),
            })?;
            return Ok(Value::None);
        }
        Some(Value::Str(text)) => {
            let message = [message.as_str(), text].concat();
            rec.emit_thread(ThreadOp::Print {
                message,
                args: Vec::new(),
            })?;
            return Ok(Value::None);
        }
        Some(Value::Buffer(b)) if rec.buffer(*b).scope != Scope::Var => Tile::Buffer(*b),
        Some(Value::Region(r)) => Tile::Region(r.clone()),
        Some(value) => {
            let value = value.clone();
            let e = rec.to_expr(&value, args.span_of("obj"))?;
            rec.emit_thread(ThreadOp::Print {
                message,
                args: vec![e],
            })?;
            return Ok(Value::None);
        }
    };
    print_tile(rec, args, &tile, message)?;
    Ok(Value::None)
}

/// One thread prints every element; a fragment is gathered into shared memory first.
fn print_tile(rec: &mut Recorder, args: &CallArgs, tile: &Tile, message: String) -> Result<()> {
    let mut region = tile.region(rec);
    match rec.buffer(region.buffer).scope {
        Scope::Global | Scope::Shared | Scope::Local => {}
        Scope::Fragment => region = gather(rec, region)?,
        scope @ (Scope::Var | Scope::Barrier | Scope::Tmem | Scope::Reducer) => {
            return Err(rec
                .error(
                    codes::BUFFER_SCOPE,
                    args.span_of("obj"),
                    format!("T.print cannot show {} memory", scope.name()),
                )
                .into());
        }
    }
    let span = rec.span();
    let group = args.int_or(rec, "warp_group_id", 0)?;
    let warp_id = args.int_or(rec, "warp_id", 0)?;
    let thread = group
        .checked_mul(4)
        .and_then(|w| w.checked_add(warp_id))
        .and_then(|w| w.checked_mul(32))
        .filter(|t| (0..1024).contains(t));
    let Some(thread) = thread else {
        return Err(rec
            .error(
                codes::WRONG_VALUE,
                args.span(),
                format!("there is no warp {warp_id} of group {group}"),
            )
            .into());
    };
    let me = warp::linear_thread(rec, "`T.print`")?;
    let first = Expr::int(i128::from(thread), me.dtype());
    let cond = rec.binary_expr(BinOp::Eq, me, first, span)?;
    let dtype = rec.buffer(region.buffer).dtype;
    let extents: Vec<Expr> = region.dims.iter().map(|d| d.extent.clone()).collect();
    rec.open_block(BlockKind::Branch, span)?;
    let result = threads::nest(rec, &extents, |rec, offsets| {
        let indices = threads::point(&region, offsets);
        let value = Expr::load(region.buffer, indices.clone(), dtype);
        let mut shown = indices;
        shown.push(value);
        rec.emit_thread(ThreadOp::Print {
            message,
            args: shown,
        })
    });
    let then = rec.close_block();
    result?;
    rec.emit(StmtKind::If {
        cond,
        then,
        otherwise: Vec::new(),
    })
}

/// A copy of a fragment in shared memory.
fn gather(rec: &mut Recorder, src: Region) -> Result<Region> {
    let span = rec.span();
    let (dtype, shape) = {
        let data = rec.buffer(src.buffer);
        (data.dtype, data.shape.clone())
    };
    let data = rec.buffer_data(
        "printed",
        Scope::Shared,
        dtype,
        shape,
        BufferOrigin::Alloc,
        span,
    );
    let copy: Buffer = rec.alloc(data)?;
    let dst = Region {
        buffer: copy,
        dims: src.dims.clone(),
    };
    rec.emit_tile(TileOp::Copy(CopyOp {
        src,
        dst: dst.clone(),
        kind: CopyKind::Sync,
        hints: CopyHints::default(),
    }))?;
    Ok(dst)
}

fn device_assert(rec: &mut Recorder, args: &CallArgs) -> Result<Value> {
    let value = args.required("condition").clone();
    let cond = rec.condition(&value, args.span_of("condition"))?;
    let message = args.str("msg").map_or(String::new(), |s| s.to_string());
    rec.emit(StmtKind::Assert { cond, message })?;
    Ok(Value::None)
}
