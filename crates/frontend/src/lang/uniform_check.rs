//! Collectives must be reached by all threads together.
//!
//! A tile operation, a parallel loop or a block barrier under a condition that differs between
//! threads would wait for threads that never come, or do its work in part. Checked on the
//! finished body of a kernel; in a region of warp groups their own threads count.

use tilewright_ir::uniform::{Among, Points, Uniformity, Way};
use tilewright_ir::{Block, Kernel, LoopKind, Stmt, StmtKind, ThreadOp, TileOp, VoteKind, visit};

use crate::record::Recorder;
use crate::{Result, codes};

/// Checks every collective of a kernel's body.
pub(super) fn check(rec: &Recorder, kernel: &Kernel) -> Result<()> {
    let uniformity = Uniformity::of(&rec.func, kernel, Points::OfThreads);
    collectives(rec, &uniformity, &kernel.body, Way::TOGETHER, Among::Block)
}

/// Refuses collectives where fewer threads come together than `wanted`.
fn collectives(
    rec: &Recorder,
    uniformity: &Uniformity<'_>,
    block: &Block,
    mut way: Way,
    wanted: Among,
) -> Result<()> {
    for stmt in block {
        if let Some(what) = collective(stmt)
            && way.among < wanted
        {
            return Err(rec
                .error(
                    codes::DIVERGENT_COLLECTIVE,
                    stmt.span,
                    format!("{what} is done by all threads together, but only some come here"),
                )
                .also(way.parted, "this differs between threads")
                .help("move it out of the condition, or give it warp groups of its own with `with T.ws(...)`")
                .into());
        }
        let wanted = match &stmt.kind {
            // What is inside a parallel loop is single points' work.
            StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }) => continue,
            StmtKind::WarpGroup { groups, .. } => uniformity.region(groups),
            _ => wanted,
        };
        let inside = way.then(uniformity.inside(stmt));
        for child in visit::child_blocks(stmt) {
            collectives(rec, uniformity, child, inside, wanted)?;
        }
        way = way.then(uniformity.jumps(stmt).both());
    }
    Ok(())
}

/// Whether the statement is work of a block or a warp group, not of threads.
pub(crate) fn is_tile_work(stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::Tile(TileOp::ReducerUpdate { .. }) => false,
        StmtKind::Tile(TileOp::Copy(copy)) => !copy.kind.is_alone(),
        StmtKind::Tile(_) => true,
        StmtKind::For(l) => matches!(l.kind, LoopKind::Parallel { .. }),
        _ => false,
    }
}

/// What the statement is called, when all threads must reach it.
fn collective(stmt: &Stmt) -> Option<&'static str> {
    match &stmt.kind {
        StmtKind::Tile(TileOp::ReducerUpdate { .. }) => None,
        StmtKind::Tile(TileOp::Copy(copy)) if copy.kind.is_alone() => None,
        StmtKind::Tile(_) => Some("a tile operation"),
        StmtKind::For(l) if matches!(l.kind, LoopKind::Parallel { .. }) => Some("a parallel loop"),
        StmtKind::Thread(op) => match op {
            ThreadOp::SyncThreads { named: None }
            | ThreadOp::SyncGrid
            | ThreadOp::SyncCluster
            | ThreadOp::ClusterArrive
            | ThreadOp::ClusterWait => Some("a barrier"),
            ThreadOp::AllReduce { .. } => Some("a reduction over the threads"),
            ThreadOp::Vote { kind, .. } => match kind {
                VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount => {
                    Some("a vote of the block")
                }
                VoteKind::Any | VoteKind::All | VoteKind::Ballot => None,
            },
            _ => None,
        },
        _ => None,
    }
}
