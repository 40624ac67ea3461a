//! The kernels that `producer_consumer` is for: one thread of a warp group more has the copy engine bring
//! the tiles, the others multiply.
//!
//! The threads that multiply issue no copy and meet nowhere: tiles are handed over by arrival
//! barriers, and how far the copies run ahead is only a question of how many versions there are.
//! With several warp groups one multiplies while another waits, so each waits for its own product
//! before it hands the tile back, unless its products overlap (`roles`).

use tilewright_ir::visit::{stmt_exprs, walk_stmts};
use tilewright_ir::{DeviceOp, Expr, Inst, Stmt, StmtKind, ThreadOp, Var, WARP_GROUP};

use super::super::super::effects::{Effects, unchanged};
use super::super::again::around;
use super::super::need;
use super::super::pieces::{Piece, plan_of};
use super::{Question, Why};

pub(super) fn applies(question: Question<'_>) -> Result<(), Why> {
    let Question {
        kernel,
        machine,
        pieces,
        l,
        ..
    } = question;
    if !machine.bulk_copies {
        return Err("the machine has no copy engine".into());
    }
    if !pieces.list.iter().any(|p| p.is_product_in_flight()) {
        return Err("no product of the loop runs while the program goes on".into());
    }
    let [threads, 1, 1] = kernel.threads else {
        return Err("threads have more than one index".into());
    };
    if threads % WARP_GROUP != 0 || threads + WARP_GROUP > machine.max_threads {
        return Err("there is no room for a warp group that copies".into());
    }
    if kernel.attrs.cluster.is_some() {
        return Err("blocks are launched in clusters".into());
    }
    if kernel.attrs.min_blocks_per_sm.is_some_and(|n| n > 1) {
        return Err("several blocks shall share the registers of a multiprocessor".into());
    }
    let share = need::even_share(machine, threads / WARP_GROUP);
    if pieces.list.iter().any(|p| widest_product(p) > share) {
        let why =
            format!("a product takes more than the {share} registers that a thread starts with");
        return Err(why.into());
    }
    let Some(around) = around(&kernel.body, l) else {
        return Err("the loop stands in a loop without a count, or that is left early".into());
    };
    alone(question)?;
    known(question, &around)?;
    if pieces.list.iter().all(|p| p.distance == 0) {
        return Err("nothing in the loop runs ahead".into());
    }
    for piece in pieces.list.iter().filter(|p| p.distance > 0) {
        match piece.bulk.as_deref() {
            Some(Ok(_)) if !piece.late => {}
            Some(Err(why)) => return Err(why.clone()),
            _ => return Err("not all that is read ahead is copied to shared memory".into()),
        }
    }
    Ok(())
}

/// Registers of the widest product in a piece.
fn widest_product(piece: &Piece) -> u32 {
    let mut widest = 0;
    walk_stmts(std::slice::from_ref(&piece.stmt), &mut |stmt| {
        if let Some(Inst::GroupMma { mma, .. }) = stmt.as_group_product().map(|m| m.inst) {
            widest = widest.max(need::of_product(mma));
        }
    });
    widest
}

/// Whether no other statement of the kernel needs all threads of the block, or is pipelined itself.
fn alone(question: Question<'_>) -> Result<(), Why> {
    let mut why: Option<&'static str> = None;
    walk_stmts(&question.kernel.body, &mut |stmt| {
        let found = match &stmt.kind {
            StmtKind::WarpGroup { .. } => Some("warp groups have roles already"),
            StmtKind::Thread(
                ThreadOp::SyncThreads { .. }
                | ThreadOp::SyncGrid
                | ThreadOp::SyncCluster
                | ThreadOp::ClusterArrive
                | ThreadOp::ClusterWait,
            ) => Some("the kernel has barriers of its own"),
            StmtKind::Thread(ThreadOp::AllReduce { .. }) => {
                Some("all threads of the block reduce together")
            }
            StmtKind::Thread(ThreadOp::Vote { kind, .. }) if kind.is_of_block() => {
                Some("all threads of the block vote together")
            }
            StmtKind::Thread(
                ThreadOp::BarrierArrive { .. }
                | ThreadOp::BarrierWait { .. }
                | ThreadOp::BarrierExpect { .. }
                | ThreadOp::Extern { .. },
            )
            | StmtKind::Device(DeviceOp::Barrier(_)) => Some("the kernel has barriers of its own"),
            StmtKind::For(l) if plan_of(l).is_some() && !stmt.is_loop(question.l) => {
                Some("another loop is pipelined too")
            }
            _ => None,
        };
        why = why.or(found);
    });
    why.map_or(Ok(()), |why| Err(why.into()))
}

/// Whether such a thread knows what the copies, the loop's range and what it stands in depend on.
fn known(question: Question<'_>, around: &[&Stmt]) -> Result<(), Why> {
    let Question {
        func, kernel, l, ..
    } = question;
    let written = Effects::of_block(func, &kernel.body).writes;
    let unchanged = unchanged(func, kernel);
    let mut needed = Effects::default();
    let mut need = |e: &Expr| {
        let own = Effects::of_expr(func, e);
        needed.reads.extend(own.reads);
        needed.vars.extend(own.vars);
    };
    let axis = &l.axes[0];
    for e in [&axis.start, &axis.stop, &axis.step] {
        need(e);
    }
    for stmt in around {
        stmt_exprs(stmt, &mut need);
    }
    for piece in question.pieces.list.iter().filter(|p| p.distance > 0) {
        let Some(Ok(bulk)) = piece.bulk.as_deref() else {
            continue;
        };
        for source in &bulk.op.sources {
            let tensor = source.region.buffer;
            if !unchanged.contains(&tensor) {
                let name = &func.buffers[tensor].name;
                return Err(format!("the kernel writes `{name}`, or may, too").into());
            }
            source.at.iter().for_each(&mut need);
        }
    }
    let mut named: Vec<(Var, &Expr)> = Vec::new();
    let mut together = false;
    walk_stmts(&kernel.body, &mut |stmt| match &stmt.kind {
        StmtKind::Let { var, value } => named.push((*var, value)),
        StmtKind::Thread(op) => together |= op.result().is_some_and(|v| needed.vars.contains(&v)),
        _ => {}
    });
    // Names stand behind those that they use.
    for (var, value) in named.into_iter().rev() {
        if needed.vars.contains(&var) {
            let own = Effects::of_expr(func, value);
            needed.reads.extend(own.reads);
            needed.vars.extend(own.vars);
        }
    }
    match together || needed.reads.iter().any(|b| written.contains(b)) {
        true => Err("the kernel computes where a copy starts".into()),
        false => Ok(()),
    }
}
