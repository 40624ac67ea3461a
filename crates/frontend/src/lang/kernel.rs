//! Launches, and the indices and extents of the launch.

use tilewright_ir::target::MAX_CLUSTER;
use tilewright_ir::{Expr, Span};

use super::{CallArgs, LangFn, Ty, func, kw, opt, rest};
use crate::record::Recorder;
use crate::value::{Frame, Value};
use crate::{Result, codes};
use std::rc::Rc;

pub(super) static FNS: &[LangFn] = &[
    func(
        "Kernel",
        &[
            rest("blocks", Ty::Scalar),
            kw("threads", Ty::Any),
            kw("cluster_dims", Ty::Any),
            kw("prelude", Ty::Str),
        ],
        |rec, args| match args.has("cluster_dims") {
            true => cluster_kernel(rec, args, "T.Kernel"),
            false => kernel(rec, args, "T.Kernel", None),
        },
    ),
    func(
        "ClusterKernel",
        &[
            rest("blocks", Ty::Scalar),
            kw("cluster_dims", Ty::Any),
            kw("threads", Ty::Any),
            kw("prelude", Ty::Str),
        ],
        |rec, args| cluster_kernel(rec, args, "T.ClusterKernel"),
    ),
    func("get_thread_binding", &[opt("dim", Ty::Int)], |s, a| {
        let axis = axis(s, a, "T.get_thread_binding", 3)?;
        let var = s.kernel("`T.get_thread_binding`")?.thread_vars[axis];
        Ok(Value::Expr(s.var_expr(var)))
    }),
    func("get_thread_bindings", &[], |s, _| {
        let vars = s.kernel("`T.get_thread_bindings`")?.thread_vars;
        Ok(Value::list(
            vars.iter().map(|v| Value::Expr(s.var_expr(*v))).collect(),
        ))
    }),
    func("get_block_binding", &[opt("dim", Ty::Int)], |s, a| {
        let rank = s.kernel("`T.get_block_binding`")?.grid.len();
        let axis = axis(s, a, "T.get_block_binding", rank)?;
        let var = s.kernel("`T.get_block_binding`")?.grid[axis].0;
        Ok(Value::Expr(s.var_expr(var)))
    }),
    func("get_block_bindings", &[], |s, _| {
        let grid = s.kernel("`T.get_block_bindings`")?.grid.clone();
        Ok(Value::list(
            grid.iter()
                .map(|(v, _)| Value::Expr(s.var_expr(*v)))
                .collect(),
        ))
    }),
    func("get_thread_extent", &[opt("dim", Ty::Int)], |s, a| {
        let axis = axis(s, a, "T.get_thread_extent", 3)?;
        let n = s.kernel("`T.get_thread_extent`")?.threads[axis];
        Ok(Value::Int(n.into()))
    }),
    func("get_thread_extents", &[], |s, _| {
        let threads = s.kernel("`T.get_thread_extents`")?.threads;
        Ok(Value::list(
            threads.iter().map(|n| Value::Int((*n).into())).collect(),
        ))
    }),
    func("get_block_extent", &[opt("dim", Ty::Int)], |s, a| {
        let rank = s.kernel("`T.get_block_extent`")?.grid.len();
        let axis = axis(s, a, "T.get_block_extent", rank)?;
        let extent = s.kernel("`T.get_block_extent`")?.grid[axis].1.clone();
        Ok(extent_value(s, &extent))
    }),
    func("get_block_extents", &[], |s, _| {
        let grid = s.kernel("`T.get_block_extents`")?.grid.clone();
        Ok(Value::list(
            grid.iter().map(|(_, e)| extent_value(s, e)).collect(),
        ))
    }),
];

const DEFAULT_THREADS: u32 = 128;
/// Threads of one block on every target.
const MAX_THREADS: u64 = 1024;

/// The suite of `with T.Kernel(...)`.
#[derive(Debug)]
struct KernelFrame {
    grid: Vec<Expr>,
    threads: [u32; 3],
    cluster: Option<[u32; 3]>,
    prelude: Option<Rc<str>>,
}

impl Frame for KernelFrame {
    fn enter(&self, rec: &mut Recorder, span: Span) -> Result<Value> {
        let mut indices = rec.begin_kernel(self.grid.clone(), self.threads, span)?;
        let may_alias = rec.lang.may_alias.clone();
        let attrs = &mut rec.kernel_mut("`T.Kernel`")?.attrs;
        attrs.cluster = self.cluster;
        attrs.may_alias = may_alias;
        attrs
            .imports
            .extend(self.prelude.iter().map(|p| p.to_string()));
        // One block index is bound by itself; `as (bx,)` takes it as well.
        if indices.len() == 1 {
            return Ok(Value::Expr(indices.remove(0)));
        }
        Ok(Value::tuple(indices.into_iter().map(Value::Expr).collect()))
    }

    fn exit(&self, rec: &mut Recorder, _: Span) -> Result<()> {
        rec.end_kernel();
        // What can only be told of the whole body.
        if let Some(kernel) = rec.func.kernels.last() {
            super::reducer_check::check(rec, &kernel.body)?;
            super::parallel_check::check(rec, &kernel.body)?;
            super::uniform_check::check(rec, kernel)?;
        }
        Ok(())
    }
}

fn cluster_kernel(rec: &mut Recorder, args: &CallArgs, what: &str) -> Result<Value> {
    let Some(dims) = args.value("cluster_dims").cloned() else {
        return Err(rec
            .error(
                codes::WRONG_ARITY,
                args.span(),
                "T.ClusterKernel needs `cluster_dims`",
            )
            .help("give the blocks of a cluster along x, y, z: `cluster_dims=(2, 1, 1)`")
            .into());
    };
    let span = args.span_of("cluster_dims");
    let dims = extents3(rec, &dims, span, "a cluster extent")?;
    let blocks: u64 = dims.iter().map(|d| u64::from(*d)).product();
    if blocks > u64::from(MAX_CLUSTER) {
        return Err(rec
            .error(
                codes::KERNEL_LAUNCH,
                span,
                format!("a cluster has at most {MAX_CLUSTER} blocks, this is {blocks}"),
            )
            .help("use a smaller cluster")
            .into());
    }
    kernel(rec, args, what, Some(dims))
}

fn kernel(
    rec: &mut Recorder,
    args: &CallArgs,
    what: &str,
    cluster: Option<[u32; 3]>,
) -> Result<Value> {
    let blocks = args.rest();
    if blocks.len() > 3 {
        return Err(rec
            .error(
                codes::KERNEL_LAUNCH,
                args.span(),
                format!("{what} takes up to three grid extents, this has {}", blocks.len()),
            )
            .help("give the number of blocks along x, y, z, such as `T.Kernel(T.ceildiv(n, block))`; fold further dimensions into one of them")
            .into());
    }
    let mut grid = Vec::with_capacity(blocks.len());
    for arg in blocks {
        grid.push(grid_extent(rec, &arg.value.clone(), arg.span)?);
    }
    if grid.is_empty() {
        grid.push(Expr::i32(1));
    }
    // Extents of the call are looked at when it comes.
    for (at, cluster) in cluster.iter().flatten().enumerate() {
        let extent = grid.get(at).map_or(Some(1), |e| rec.const_int(e));
        if extent.is_some_and(|n| n % i128::from(*cluster) != 0) {
            let extent = extent.unwrap_or_default();
            let axis = ["x", "y", "z"][at];
            return Err(rec
                .error(
                    codes::KERNEL_LAUNCH,
                    args.span_of("cluster_dims"),
                    format!("clusters of {cluster} do not divide {extent} blocks along {axis}"),
                )
                .help("launch a multiple of the cluster's blocks, and leave out what lies outside")
                .into());
        }
    }
    let threads = match args.value("threads").cloned() {
        None => [DEFAULT_THREADS, 1, 1],
        Some(value) => extents3(rec, &value, args.span_of("threads"), "a number of threads")?,
    };
    let total: u64 = threads.iter().map(|n| u64::from(*n)).product();
    if total > MAX_THREADS {
        return Err(rec
            .error(
                codes::KERNEL_LAUNCH,
                args.span_of("threads"),
                format!("a block has at most {MAX_THREADS} threads, this is {total}"),
            )
            .help("use fewer threads; extents of loops need not match their number")
            .into());
    }
    Ok(Value::Frame(Rc::new(KernelFrame {
        grid,
        threads,
        cluster,
        prelude: args.str("prelude").map(Rc::from),
    })))
}

fn grid_extent(rec: &mut Recorder, value: &Value, span: Span) -> Result<Expr> {
    let extent = rec.to_expr(value, span)?;
    super::check_index(rec, &extent, span, "a grid extent")?;
    super::check_host_value(rec, &extent, span, "a grid extent")?;
    match rec.const_int(&extent) {
        Some(n) if n <= 0 => Err(rec
            .error(
                codes::NON_POSITIVE,
                span,
                format!("a grid extent must be positive, this is {n}"),
            )
            .help("count blocks with `T.ceildiv(size, block)`")
            .into()),
        Some(n) if n > i128::from(i32::MAX) => Err(rec
            .error(
                codes::KERNEL_LAUNCH,
                span,
                format!("a grid extent is at most {}, this is {n}", i32::MAX),
            )
            .help("let each block do more, or use a second grid dimension")
            .into()),
        Some(n) => rec.int_expr(n, span),
        None => Ok(extent),
    }
}

/// One to three positive counts, the missing ones being one.
fn extents3(rec: &mut Recorder, value: &Value, span: Span, what: &str) -> Result<[u32; 3]> {
    let items = value.sequence().unwrap_or_else(|| vec![value.clone()]);
    if !(1..=3).contains(&items.len()) {
        return Err(rec
            .error(
                codes::KERNEL_LAUNCH,
                span,
                format!(
                    "one to three extents (x, y, z) are meant, this has {}",
                    items.len()
                ),
            )
            .help("fold further dimensions into one of them")
            .into());
    }
    let mut extents = [1u32; 3];
    for (slot, item) in extents.iter_mut().zip(&items) {
        let n = rec.to_int(item, span, what)?;
        *slot = u32::try_from(n).ok().filter(|n| *n > 0).ok_or_else(|| {
            crate::Error::from(
                rec.error(
                    codes::NON_POSITIVE,
                    span,
                    format!("{what} must be positive, this is {n}"),
                )
                .help("count from one along each axis, for example 128"),
            )
        })?;
    }
    Ok(extents)
}

fn axis(rec: &mut Recorder, args: &CallArgs, what: &str, rank: usize) -> Result<usize> {
    let dim = args.int_or(rec, "dim", 0)?;
    usize::try_from(dim)
        .ok()
        .filter(|d| *d < rank)
        .ok_or_else(|| {
            rec.error(
                codes::THREAD_AXIS,
                args.span_of("dim"),
                format!("{what}: there is no axis {dim}, the launch has {rank}"),
            )
            .help(format!("`dim` is 0 to {} (x, y, z)", rank - 1))
            .into()
        })
}

fn extent_value(rec: &Recorder, extent: &Expr) -> Value {
    match rec.const_int(extent) {
        Some(n) => Value::Int(n),
        None => Value::Expr(extent.clone()),
    }
}
