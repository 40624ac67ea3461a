//! Allocation of on-chip memory.

use tilewright_ir::{BufferOrigin, DType, Scope};

use crate::Result;
use crate::codes;
use crate::eval::Stage;
use crate::lang::{CallArgs, LangFn, Ty, opt, req};
use crate::value::Value;

pub(super) static FNS: &[LangFn] = &[
    LangFn::new("alloc_shared", TILE, |s, a| tile(s, a, Scope::Shared)),
    LangFn::new("alloc_fragment", TILE, |s, a| tile(s, a, Scope::Fragment)),
    LangFn::new("alloc_local", TILE, |s, a| tile(s, a, Scope::Local)),
    LangFn::new(
        "alloc_var",
        &[
            req("dtype", Ty::DType),
            opt("init", Ty::Scalar),
            opt("scope", Ty::Str),
        ],
        alloc_var,
    ),
];

const TILE: &[crate::lang::ParamSpec] = &[
    req("shape", Ty::Shape),
    req("dtype", Ty::DType),
    opt("scope", Ty::Str),
];

fn tile(stage: &mut Stage, args: &CallArgs, scope: Scope) -> Result<Value> {
    let shape = args.shape(stage, "shape")?;
    if let Some(bad) = shape.iter().find(|e| e.as_int().is_none()) {
        let span = if bad.span().is_none() {
            args.span_of("shape")
        } else {
            bad.span()
        };
        return Err(stage
            .error(
                codes::SHAPE,
                span,
                format!(
                    "the shape of {} memory must be known at compile time",
                    scope.name()
                ),
            )
            .into());
    }
    let dtype = args.dtype(stage, "dtype")?.unwrap_or(DType::F32);
    let data = stage.buffer_data("", scope, dtype, shape, BufferOrigin::Alloc, args.span());
    Ok(Value::Buffer(stage.alloc(data)?))
}

fn alloc_var(stage: &mut Stage, args: &CallArgs) -> Result<Value> {
    let dtype = args.dtype(stage, "dtype")?.unwrap_or(DType::I32);
    let origin = match args.value("init") {
        Some(init) => {
            let init = stage.to_expr_as(init, dtype, args.span_of("init"))?;
            BufferOrigin::AllocInit(init)
        }
        // A variable starts at zero.
        None => BufferOrigin::AllocInit(tilewright_ir::Expr::zero(dtype)),
    };
    let data = stage.buffer_data("", Scope::Var, dtype, Vec::new(), origin, args.span());
    Ok(Value::Buffer(stage.alloc(data)?))
}
