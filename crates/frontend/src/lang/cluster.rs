//! Clusters: the number of a block in its own, barriers of all its blocks, and who else is reached.

use tilewright_ir::{DType, Expr, Span, ThreadOp, VarKind};

use super::{CallArgs, LangFn, func};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("block_rank_in_cluster", &[], |rec, args| {
        rank(rec, "`T.block_rank_in_cluster`", args.span()).map(Value::Expr)
    }),
    func("get_cluster_block_nums", &[], |rec, args| {
        let blocks = blocks(rec, "`T.get_cluster_block_nums`", args.span())?;
        Ok(Value::Int(blocks.into()))
    }),
    func("cluster_sync", &[], |rec, args| {
        barrier(rec, args, "T.cluster_sync", ThreadOp::SyncCluster)
    }),
    func("cluster_arrive", &[], |rec, args| {
        barrier(rec, args, "T.cluster_arrive", ThreadOp::ClusterArrive)
    }),
    func("cluster_wait", &[], |rec, args| {
        barrier(rec, args, "T.cluster_wait", ThreadOp::ClusterWait)
    }),
];

/// The barrier of the cluster, or a half of it.
fn barrier(rec: &mut Recorder, args: &CallArgs, what: &str, op: ThreadOp) -> Result<Value> {
    blocks(rec, &format!("`{what}`"), args.span())?;
    super::sync::check_uniform(rec, args, what)?;
    rec.emit_thread(op)?;
    Ok(Value::None)
}

/// The blocks of a cluster of the kernel, which has to have them.
pub(super) fn blocks(rec: &Recorder, what: &str, span: Span) -> Result<u32> {
    match rec.kernel(what)?.attrs.cluster {
        Some(sizes) => Ok(sizes.iter().product()),
        None => Err(rec
            .error(
                codes::CLUSTER,
                span,
                format!("{what}: the blocks of this kernel are in no cluster"),
            )
            .help("launch clusters: `T.Kernel(blocks, cluster_dims=(2, 1, 1), threads=n)`")
            .into()),
    }
}

/// The number of the block in its cluster: one variable of the kernel.
pub(super) fn rank(rec: &mut Recorder, what: &str, span: Span) -> Result<Expr> {
    let blocks = blocks(rec, what, span)?;
    let kernel = rec.kernel(what)?;
    let (known, launch) = (kernel.attrs.rank, kernel.span);
    let var = match known {
        Some(var) => var,
        None => {
            let var = rec.new_var("rank", DType::I32, VarKind::Rank, launch);
            rec.var_bounds.insert(var, (0, i128::from(blocks) - 1));
            rec.kernel_mut(what)?.attrs.rank = Some(var);
            var
        }
    };
    Ok(rec.var_expr(var))
}

/// The block that an argument names.
pub(super) fn block(rec: &mut Recorder, args: &CallArgs, name: &str) -> Result<Expr> {
    let span = args.span_of(name);
    let blocks = blocks(rec, "`cta_id`", span)?;
    let value = args.required(name).clone();
    let rank = rec.to_expr(&value, span)?;
    super::check_index(rec, &rank, span, "the number of a block")?;
    match rec.const_int(&rank) {
        Some(n) if !(0..i128::from(blocks)).contains(&n) => Err(rec
            .error(
                codes::CLUSTER,
                span,
                format!("there is no block {n} in a cluster of {blocks}"),
            )
            .help(format!(
                "blocks of a cluster are numbered 0 to {}",
                blocks - 1
            ))
            .into()),
        _ => Ok(rank),
    }
}

/// The blocks that `cluster_mask` names, a bit for each; without any none.
pub(super) fn mask(rec: &mut Recorder, args: &CallArgs) -> Result<Option<u16>> {
    const NAME: &str = "cluster_mask";
    let Some(value) = args.value(NAME).cloned() else {
        return Ok(None);
    };
    let span = args.span_of(NAME);
    let mask = rec.to_int(&value, span, "a mask of blocks")?;
    if mask == 0 {
        return Ok(None);
    }
    let blocks = blocks(rec, "`cluster_mask`", span)?;
    match u16::try_from(mask)
        .ok()
        .filter(|mask| u32::from(*mask) >> blocks == 0)
    {
        Some(mask) => Ok(Some(mask)),
        None => Err(rec
            .error(
                codes::CLUSTER,
                span,
                format!("`cluster_mask` {mask:#b} names blocks that a cluster of {blocks} has not"),
            )
            .help("it has a bit for each block of the cluster, such as 0b11 for the first two")
            .into()),
    }
}

/// Refuses a barrier that only its own block may reach.
pub(super) fn check_reached(
    rec: &Recorder,
    barrier: tilewright_ir::Buffer,
    span: Span,
    what: &str,
) -> Result<()> {
    if rec.lang.cluster_barriers.contains(&barrier) {
        return Ok(());
    }
    Err(rec
        .error(
            codes::BARRIER,
            span,
            format!(
                "{what} reaches {} of other blocks, which is a barrier of its own block alone",
                rec.buffer_name(barrier)
            ),
        )
        .help("allocate it with `T.alloc_cluster_barrier(arrive_count)`")
        .into())
}
