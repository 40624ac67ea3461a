//! Changes of device IR that make a kernel wrong: each statement that synchronises left out, loosened,
//! done twice or meant for another barrier, each number of bytes and arrivals off.

use tilewright::ir::visit::child_blocks_mut;
use tilewright::ir::{
    ArriveAt, Block, Buffer, BufferOrigin, DeviceOp, Expr, FenceKind, Func, Inst, Stmt, StmtKind,
    ThreadOp, text,
};

/// What was changed, and the function as it is then.
pub struct Change {
    pub name: String,
    pub func: Func,
}

/// All changes of a function, one at a time.
pub fn changes(func: &Func) -> Vec<Change> {
    let mut all = counts(func);
    for kernel in 0..func.kernels.len() {
        for at in 0.. {
            let mut next = at;
            let Some(stmt) = nth(&mut func.kernels[kernel].body.clone(), &mut next) else {
                break;
            };
            for (how, new) in changed(func, &stmt) {
                let mut func = func.clone();
                let line = text::print_stmt(&func, &stmt);
                let line = line.trim().lines().next().unwrap_or_default().to_string();
                replace(&mut func.kernels[kernel].body, &mut at.clone(), &new);
                let name = format!("{how}: {line}");
                all.push(Change { name, func });
            }
        }
    }
    all
}

/// A barrier that counts one arrival more or less.
fn counts(func: &Func) -> Vec<Change> {
    let mut all = Vec::new();
    for (buffer, data) in func.buffers.iter() {
        let BufferOrigin::Barriers(counts) = &data.origin else {
            continue;
        };
        for (how, by) in [("counts more", 1), ("counts less", -1)] {
            let mut func = func.clone();
            let counts = counts.iter().map(|c| c.saturating_add_signed(by));
            func.buffers[buffer].origin = BufferOrigin::Barriers(counts.collect());
            let name = format!("{how}: {}", data.name);
            all.push(Change { name, func });
        }
    }
    all
}

/// What a statement becomes, with a word for it.
fn changed(func: &Func, stmt: &Stmt) -> Vec<(&'static str, Vec<Stmt>)> {
    let one = |kind: StmtKind| vec![Stmt::new(kind, stmt.span)];
    let gone = ("left out", Vec::new());
    // An index of the next barrier, where there are several.
    let next = |barrier: Buffer, index: &Expr| {
        let count = func.buffers[barrier].shape.first()?.as_int()?;
        let other = index.clone() + Expr::int(1, index.dtype());
        (count > 1).then(|| other.floor_mod(Expr::int(count, index.dtype())))
    };
    let mut list = Vec::new();
    match &stmt.kind {
        StmtKind::Device(op) => match op {
            DeviceOp::Wait { counter, at_most } => {
                let looser = DeviceOp::Wait {
                    counter: *counter,
                    at_most: at_most + 1,
                };
                list.extend([gone, ("looser", one(StmtKind::Device(looser)))]);
            }
            DeviceOp::WaitRead { at_most } => {
                let at_most = at_most + 1;
                let looser = DeviceOp::WaitRead { at_most };
                list.extend([gone, ("looser", one(StmtKind::Device(looser)))]);
            }
            DeviceOp::Commit(_)
            | DeviceOp::Barrier(_)
            | DeviceOp::Fence(FenceKind::AsyncProxy | FenceKind::Wgmma) => list.push(gone),
            _ => {}
        },
        StmtKind::Thread(
            ThreadOp::SyncWarp
            | ThreadOp::SyncCluster
            | ThreadOp::ClusterArrive
            | ThreadOp::ClusterWait,
        ) => list.push(gone),
        StmtKind::Thread(op) => {
            list.extend(changed_op(op, &next).into_iter().map(|(how, ops)| {
                let ops = ops.into_iter().flat_map(|op| one(StmtKind::Thread(op)));
                (how, ops.collect())
            }));
        }
        StmtKind::Micro(m) if matches!(m.inst, Inst::Tma(_)) => {
            if let Some(arrival) = &m.arrives {
                list.push(gone);
                if let Some(index) = next(arrival.barrier, &arrival.index) {
                    let mut m = m.clone();
                    m.arrives.iter_mut().for_each(|a| a.index = index.clone());
                    list.push(("tells another barrier", one(StmtKind::Micro(m))));
                }
                if arrival.multicast.is_some() {
                    let mut m = m.clone();
                    m.arrives.iter_mut().for_each(|a| a.multicast = None);
                    list.push(("to its own block", one(StmtKind::Micro(m))));
                }
            }
        }
        // One thread has the copy engine work; here all of its group do.
        StmtKind::If { then, .. } if then.iter().any(issues) => {
            list.push(("by all threads", then.clone()));
        }
        _ => {}
    }
    list
}

fn issues(stmt: &Stmt) -> bool {
    matches!(&stmt.kind, StmtKind::Micro(m) if m.arrives.is_some())
}

fn changed_op(
    op: &ThreadOp,
    next: &impl Fn(Buffer, &Expr) -> Option<Expr>,
) -> Vec<(&'static str, Vec<ThreadOp>)> {
    let mut list = Vec::new();
    match op {
        ThreadOp::BarrierArrive {
            barrier,
            index,
            warp,
            at,
        } => {
            list.extend([
                ("left out", vec![]),
                ("twice", vec![op.clone(), op.clone()]),
            ]);
            list.extend(next(*barrier, index).map(|index| {
                let op = ThreadOp::BarrierArrive {
                    barrier: *barrier,
                    index,
                    warp: *warp,
                    at: at.clone(),
                };
                ("at another barrier", vec![op])
            }));
            if let ArriveAt::Block(rank) = at {
                let other = Expr::int(1, rank.dtype()) - rank.clone();
                let op = ThreadOp::BarrierArrive {
                    barrier: *barrier,
                    index: index.clone(),
                    warp: *warp,
                    at: ArriveAt::Block(other),
                };
                list.push(("in the other block", vec![op]));
            }
        }
        ThreadOp::BarrierWait {
            barrier,
            index,
            parity,
        } => {
            let wait = |index: Expr, parity: Expr| {
                vec![ThreadOp::BarrierWait {
                    barrier: *barrier,
                    index,
                    parity,
                }]
            };
            let other = Expr::int(1, parity.dtype()) - parity.clone();
            list.extend([
                ("left out", vec![]),
                ("the other parity", wait(index.clone(), other)),
            ]);
            let at = next(*barrier, index);
            list.extend(at.map(|index| ("for another barrier", wait(index, parity.clone()))));
        }
        ThreadOp::BarrierExpect {
            barrier,
            index,
            bytes,
            arrive,
        } => {
            let expect = |index: Expr, bytes: Expr| {
                vec![ThreadOp::BarrierExpect {
                    barrier: *barrier,
                    index,
                    bytes,
                    arrive: *arrive,
                }]
            };
            let by = |n: i128| bytes.clone() + Expr::int(n, bytes.dtype());
            list.extend([
                ("left out", vec![]),
                ("too few bytes", expect(index.clone(), by(-16))),
                ("too many bytes", expect(index.clone(), by(16))),
                ("twice", vec![op.clone(), op.clone()]),
            ]);
            let at = next(*barrier, index);
            list.extend(at.map(|index| ("to another barrier", expect(index, bytes.clone()))));
        }
        _ => {}
    }
    list
}

/// The nth statement, outer first.
fn nth(block: &mut Block, left: &mut usize) -> Option<Stmt> {
    for stmt in block {
        if *left == 0 {
            return Some(stmt.clone());
        }
        *left -= 1;
        for child in child_blocks_mut(stmt) {
            if let Some(found) = nth(child, left) {
                return Some(found);
            }
        }
    }
    None
}

/// Puts others in the place of the nth statement.
fn replace(block: &mut Block, left: &mut usize, new: &[Stmt]) -> bool {
    for at in 0..block.len() {
        if *left == 0 {
            block.splice(at..=at, new.iter().cloned());
            return true;
        }
        *left -= 1;
        for child in child_blocks_mut(&mut block[at]) {
            if replace(child, left, new) {
                return true;
            }
        }
    }
    false
}
