//! Kernel launch.

use std::rc::Rc;

use tilewright_ir::{Expr, Span};

use crate::Result;
use crate::codes;
use crate::eval::Stage;
use crate::lang::{Arg, CallArgs, LangFn, Ty, kw, rest};
use crate::value::{Frame, Value};

pub(super) static FNS: &[LangFn] = &[LangFn::new(
    "Kernel",
    &[
        rest("blocks", Ty::Scalar),
        kw("threads", Ty::Any),
        kw("prelude", Ty::Str),
    ],
    kernel,
)];

/// `T.Kernel(gx, gy, threads=128)` before it is entered.
#[derive(Debug)]
struct KernelFrame {
    grid: Vec<Expr>,
    threads: [u32; 3],
    prelude: Option<String>,
}

impl Frame for KernelFrame {
    fn enter(&self, stage: &mut Stage, span: Span) -> Result<Value> {
        let mut indices = stage.begin_kernel(self.grid.clone(), self.threads, span)?;
        if let Some(prelude) = &self.prelude {
            let kernel = stage.kernel_mut("`T.Kernel`")?;
            kernel.attrs.imports.push(prelude.clone());
        }
        Ok(match indices.len() {
            1 => Value::Expr(indices.remove(0)),
            _ => Value::tuple(indices.into_iter().map(Value::Expr).collect()),
        })
    }

    fn exit(&self, stage: &mut Stage, _: Span) -> Result<()> {
        stage.end_kernel();
        Ok(())
    }
}

/// Threads of a block when the launch does not say.
const DEFAULT_THREADS: u32 = 128;
/// The most threads of a block that any target runs.
const MAX_THREADS: i128 = 1024;

fn kernel(stage: &mut Stage, args: &CallArgs) -> Result<Value> {
    let blocks = args.rest();
    if blocks.is_empty() || blocks.len() > 3 {
        return Err(stage
            .error(
                codes::KERNEL_LAUNCH,
                args.span(),
                format!(
                    "a grid has one to three dimensions, {} are given",
                    blocks.len()
                ),
            )
            .into());
    }
    let mut grid = Vec::new();
    for block in blocks {
        grid.push(grid_extent(stage, block)?);
    }
    let threads = match args.value("threads") {
        None => [DEFAULT_THREADS, 1, 1],
        Some(value) => threads(stage, value, args.span_of("threads"))?,
    };
    Ok(Value::Frame(Rc::new(KernelFrame {
        grid,
        threads,
        prelude: args.str("prelude").map(str::to_string),
    })))
}

fn grid_extent(stage: &Stage, block: &Arg) -> Result<Expr> {
    let extent = stage.to_expr(&block.value, block.span)?;
    if !extent.dtype().scalar.is_int() {
        return Err(stage
            .error(
                codes::KERNEL_LAUNCH,
                block.span,
                format!(
                    "a grid extent must be an integer, this is {}",
                    extent.dtype()
                ),
            )
            .help("use `T.ceildiv(n, block)`")
            .into());
    }
    if let Some(v) = stage.const_int(&extent)
        && v <= 0
    {
        return Err(stage
            .error(
                codes::NON_POSITIVE,
                block.span,
                format!("a grid extent must be positive, this is {v}"),
            )
            .into());
    }
    Ok(extent)
}

fn threads(stage: &Stage, value: &Value, span: Span) -> Result<[u32; 3]> {
    let items = value.sequence().unwrap_or_else(|| vec![value.clone()]);
    if items.is_empty() || items.len() > 3 {
        let message = format!(
            "a block has one to three thread dimensions, {} are given",
            items.len()
        );
        return Err(stage.error(codes::KERNEL_LAUNCH, span, message).into());
    }
    let mut out = [1u32; 3];
    let mut total = 1i128;
    for (slot, item) in out.iter_mut().zip(&items) {
        let n = stage.to_int(item, span, "`threads`")?;
        if n <= 0 {
            let message = format!("`threads` must be positive, this is {n}");
            return Err(stage.error(codes::NON_POSITIVE, span, message).into());
        }
        total = total.saturating_mul(n);
        *slot = u32::try_from(n).unwrap_or(u32::MAX);
    }
    if total > MAX_THREADS {
        return Err(stage
            .error(
                codes::KERNEL_LAUNCH,
                span,
                format!("{total} threads; a block has at most {MAX_THREADS}"),
            )
            .into());
    }
    Ok(out)
}
