//! Clusters: the number of a block in its own, barriers of all its blocks, and who else is reached.

use tilewright_ir::{DType, Expr, Span, ThreadOp, VarKind};

use super::{CallArgs, LangFn, func};
use crate::eval::Stage;
use crate::value::Value;
use crate::{Result, codes};

pub(super) static FNS: &[LangFn] = &[
    func("block_rank_in_cluster", &[], |stage, args| {
        rank(stage, "`T.block_rank_in_cluster`", args.span()).map(Value::Expr)
    }),
    func("get_cluster_block_nums", &[], |stage, args| {
        let blocks = blocks(stage, "`T.get_cluster_block_nums`", args.span())?;
        Ok(Value::Int(blocks.into()))
    }),
    func("cluster_sync", &[], |stage, args| {
        barrier(stage, args, "T.cluster_sync", ThreadOp::SyncCluster)
    }),
    func("cluster_arrive", &[], |stage, args| {
        barrier(stage, args, "T.cluster_arrive", ThreadOp::ClusterArrive)
    }),
    func("cluster_wait", &[], |stage, args| {
        barrier(stage, args, "T.cluster_wait", ThreadOp::ClusterWait)
    }),
];

/// The barrier of the cluster, or a half of it.
fn barrier(stage: &mut Stage, args: &CallArgs, what: &str, op: ThreadOp) -> Result<Value> {
    blocks(stage, &format!("`{what}`"), args.span())?;
    super::sync::check_uniform(stage, args, what)?;
    stage.emit_thread(op)?;
    Ok(Value::None)
}

/// The blocks of a cluster of the kernel, which has to have them.
pub(super) fn blocks(stage: &Stage, what: &str, span: Span) -> Result<u32> {
    match stage.kernel(what)?.attrs.cluster {
        Some(sizes) => Ok(sizes.iter().product()),
        None => Err(stage
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
pub(super) fn rank(stage: &mut Stage, what: &str, span: Span) -> Result<Expr> {
    let blocks = blocks(stage, what, span)?;
    let kernel = stage.kernel(what)?;
    let (known, launch) = (kernel.attrs.rank, kernel.span);
    let var = match known {
        Some(var) => var,
        None => {
            let var = stage.new_var("rank", DType::I32, VarKind::Rank, launch);
            stage.var_bounds.insert(var, (0, i128::from(blocks) - 1));
            stage.kernel_mut(what)?.attrs.rank = Some(var);
            var
        }
    };
    Ok(stage.var_expr(var))
}

/// The block that an argument names.
pub(super) fn block(stage: &mut Stage, args: &CallArgs, name: &str) -> Result<Expr> {
    let span = args.span_of(name);
    let blocks = blocks(stage, "`cta_id`", span)?;
    let value = args.required(name).clone();
    let rank = stage.to_expr(&value, span)?;
    super::check_index(stage, &rank, span, "the number of a block")?;
    match stage.const_int(&rank) {
        Some(n) if !(0..i128::from(blocks)).contains(&n) => Err(stage
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
pub(super) fn mask(stage: &mut Stage, args: &CallArgs) -> Result<Option<u16>> {
    const NAME: &str = "cluster_mask";
    let Some(value) = args.value(NAME).cloned() else {
        return Ok(None);
    };
    let span = args.span_of(NAME);
    let mask = stage.to_int(&value, span, "a mask of blocks")?;
    if mask == 0 {
        return Ok(None);
    }
    let blocks = blocks(stage, "`cluster_mask`", span)?;
    match u16::try_from(mask)
        .ok()
        .filter(|mask| u32::from(*mask) >> blocks == 0)
    {
        Some(mask) => Ok(Some(mask)),
        None => Err(stage
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
    stage: &Stage,
    barrier: tilewright_ir::Buffer,
    span: Span,
    what: &str,
) -> Result<()> {
    if stage.lang.cluster_barriers.contains(&barrier) {
        return Ok(());
    }
    Err(stage
        .error(
            codes::BARRIER,
            span,
            format!(
                "{what} reaches {} of other blocks, which is a barrier of its own block alone",
                stage.buffer_name(barrier)
            ),
        )
        .help("allocate it with `T.alloc_cluster_barrier(arrive_count)`")
        .into())
}
