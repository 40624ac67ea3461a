//! Woven clusters: matrix instructions with what brings and reads tiles between them.
//!
//! The pieces of a cluster become instructions of their own, and those of each kind are spread evenly
//! over the cluster: what multiplies, what brings tiles, what reads them. Instructions of a kind stay in
//! their order, so that a wait leaves in flight what it was derived for. A fence of the machine scheduler
//! between neighbours of different kinds keeps them where they are.
//!
//! ```text
//! cluster c woven { g2s A[p0] ahead 2; s2r B[n1,k0]; mma C[m0,n0,k0] }
//! ```
//! with two copies, four reads and eight matrix instructions is
//! ```text
//! mma; s2r; mma; g2s; mma; s2r; mma; mma; s2r; mma; g2s; mma; s2r; mma
//! ```

use tilewright_arith::Analyzer;
use tilewright_ir::visit::stmt_exprs_mut;
use tilewright_ir::{Expr, Func, MicroKind, MicroOp, Stmt, StmtKind, Var};

use super::super::effects::Effects;
use super::arrangement::label;
use super::pieces::Piece;
use super::schedules::Why;

/// What is kept in order.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Strand {
    Multiply,
    Read,
    Bring,
    /// What has no instructions to take apart.
    Whole,
}

impl Strand {
    const ALL: [Strand; 4] = [Strand::Multiply, Strand::Read, Strand::Bring, Strand::Whole];

    fn of(stmt: &Stmt) -> Strand {
        let StmtKind::Micro(op) = &stmt.kind else {
            return Strand::Whole;
        };
        match op.kind {
            MicroKind::Mma => Strand::Multiply,
            MicroKind::G2s | MicroKind::G2r => Strand::Bring,
            MicroKind::S2r | MicroKind::R2s => Strand::Read,
            MicroKind::R2g | MicroKind::TmaLoad | MicroKind::TmaStore => Strand::Whole,
        }
    }
}

/// Whether pieces of one cluster that get between each other have nothing in common.
pub(super) fn check(func: &Func, pieces: &[Piece]) -> Result<(), Why> {
    let woven: Vec<&Piece> = pieces.iter().filter(|p| p.woven.is_some()).collect();
    for (at, later) in woven.iter().enumerate() {
        for earlier in &woven[..at] {
            let apart = Strand::of(&earlier.stmt) != Strand::of(&later.stmt);
            if earlier.woven != later.woven || !apart {
                continue;
            }
            let [one, other] = [earlier, later].map(|p| Effects::of(func, &p.stmt));
            let written = |a: &Effects, b: &Effects| {
                let mut writes = a.writes.iter();
                let both = writes.find(|w| b.reads.contains(w) || b.writes.contains(w));
                both.copied()
            };
            if let Some(buffer) = written(&one, &other).or_else(|| written(&other, &one)) {
                let [one, other] = [earlier, later].map(|p| label(func, &p.stmt));
                let name = &func.buffers[buffer].name;
                return Err(format!(
                    "`{one}` and `{other}` share `{name}`, and cannot be woven into each other"
                )
                .into());
            }
        }
    }
    Ok(())
}

/// The instructions of statements in the order of issue, each with the number of its statement.
pub(super) fn instructions<'a>(
    stmts: impl Iterator<Item = &'a Stmt>,
) -> Vec<(usize, Strand, Stmt)> {
    let mut strands = Strand::ALL.map(|strand| (strand, Vec::new()));
    for (at, stmt) in stmts.enumerate() {
        let strand = Strand::of(stmt);
        let (_, own) = &mut strands[strand as usize];
        own.extend(taken_apart(stmt).into_iter().map(|stmt| (at, stmt)));
    }
    // Each has its middle of as many equal parts of the cluster as its strand has instructions.
    const WHOLE: usize = 1 << 20;
    let mut placed = Vec::new();
    for (strand, own) in strands {
        let count = own.len();
        for (nth, (at, stmt)) in own.into_iter().enumerate() {
            placed.push(((2 * nth + 1) * WHOLE / count, (at, strand, stmt)));
        }
    }
    // Those of an equal place as the strands are listed.
    placed.sort_by_key(|(place, _)| *place);
    placed.into_iter().map(|(_, own)| own).collect()
}

/// The instructions of a statement, each by itself.
fn taken_apart(stmt: &Stmt) -> Vec<Stmt> {
    let StmtKind::Micro(op) = &stmt.kind else {
        return vec![stmt.clone()];
    };
    if Strand::of(stmt) == Strand::Whole {
        return vec![stmt.clone()];
    }
    points(op)
        .iter()
        .map(|point| instruction(stmt, point))
        .collect()
}

/// The indices of an op's instructions, in the order of issue.
fn points(op: &MicroOp) -> Vec<Vec<(Var, u32)>> {
    let mut points: Vec<Vec<(Var, u32)>> = vec![Vec::new()];
    for &(var, extent) in &op.axes {
        let mut longer = Vec::new();
        for point in points {
            let backwards = op.turns && point.last().is_some_and(|(_, at)| at % 2 == 1);
            for nth in 0..extent {
                let at = match backwards {
                    true => extent - 1 - nth,
                    false => nth,
                };
                longer.push([&point[..], &[(var, at)]].concat());
            }
        }
        points = longer;
    }
    points
}

fn instruction(stmt: &Stmt, point: &[(Var, u32)]) -> Stmt {
    let mut stmt = stmt.clone();
    stmt_exprs_mut(&mut stmt, &mut |e| {
        *e = e.rewrite(&mut |node| {
            let var = node.as_var()?;
            let (_, at) = point.iter().find(|(own, _)| *own == var)?;
            Some(Expr::int((*at).into(), node.dtype()))
        });
    });
    if let StmtKind::Micro(op) = &mut stmt.kind {
        op.axes.clear();
        op.turns = false;
        if op.kind == MicroKind::S2r {
            own_registers(op);
        }
    }
    stmt
}

/// A read by itself fills the registers that it names, and no others: the next one waits for nothing of it.
fn own_registers(read: &mut MicroOp) {
    let ([dim], [at]) = (&mut read.dest.region.dims[..], &mut read.dest.at[..]) else {
        return;
    };
    let first = Analyzer::new().simplify(at);
    if first.as_int().is_some() && read.apart == 1 {
        let dtype = dim.extent.dtype();
        dim.start = first.clone();
        dim.extent = Expr::int(read.width.into(), dtype);
        *at = first;
    }
}
