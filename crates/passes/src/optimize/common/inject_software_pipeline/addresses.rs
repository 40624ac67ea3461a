//! How many registers the addresses of a loop take of a lane.
//!
//! A memory instruction has a part of its address in a register of the lane, which no iteration changes, and
//! the rest in what all lanes share or in the instruction itself. So instructions whose addresses differ by
//! the same number in all lanes share a register: those whose rows a swizzle permutes alike, or that are whole
//! rows apart. Which do is asked of some lanes.
//!
//! What a lane may not load of a tensor in some iterations has an address past its end there: each such
//! instruction has a register for its own, and one for the bound that the iteration is compared with. So has each
//! store to shared memory that some lanes leave out, which stands behind a branch.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::visit::child_blocks;
use tilewright_ir::{
    Access, BinOp, Expr, ExprKind, Func, Inst, Kernel, Loop, LoopKind, MicroKind, MicroOp, Scope,
    Stmt, StmtKind, Var,
};
use tilewright_schedule::hazard::evaluate;

use super::pieces::Piece;

/// Lanes that are asked.
const ASKED: u32 = 24;
/// Instructions of a micro-op that are looked at: what has more is read in rows.
const MOST: usize = 512;

/// The registers of the addresses of all pieces.
pub(super) fn registers(func: &Func, kernel: &Kernel, l: &Loop, list: &[Piece]) -> u32 {
    let threads = kernel.num_threads();
    // Powers of two tell bits apart, the others what divisions make of them.
    let powers = (0..)
        .map(|bit| 1u32 << bit)
        .take_while(|lane| *lane < threads);
    let others = (1..).map(|n: u32| n.wrapping_mul(0x9e37_79b1) % threads);
    let lanes = std::iter::once(0).chain(powers).chain(others);
    let [x, y, _] = kernel.threads;
    let place = |lane: u32| [lane % x, lane / x % y, lane / x / y].map(i64::from);
    let mut found = Found {
        func,
        kernel,
        turn: l.axes[0].var,
        lanes: lanes.take(ASKED as usize).map(place).collect(),
        known: FxHashMap::default(),
        in_branch: false,
        classes: FxHashSet::default(),
        bounds: FxHashSet::default(),
    };
    for piece in list {
        found.stmt(&piece.stmt);
    }
    (found.classes.len() + found.bounds.len()) as u32
}

struct Found<'f> {
    func: &'f Func,
    kernel: &'f Kernel,
    /// The index of the loop.
    turn: Var,
    lanes: Vec<[i64; 3]>,
    /// Indices of loops that are written out, at the point that is looked at.
    known: FxHashMap<Var, i64>,
    /// Whether some lanes are not here.
    in_branch: bool,
    /// What is the address in each lane beyond that in the first, and that where it is not the same register's.
    classes: FxHashSet<(Scope, Vec<i64>, Option<i64>)>,
    /// Bounds that lanes compare the iteration with, by the addresses that these are for.
    bounds: FxHashSet<(Vec<i64>, i64)>,
}

impl Found<'_> {
    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Micro(op) => self.micro(op),
            StmtKind::For(l) => {
                let [axis] = &l.axes[..] else { return };
                let trips = match l.kind {
                    LoopKind::Unroll { .. } => axis.const_trip_count().unwrap_or(1),
                    _ => 1,
                };
                for turn in 0..trips {
                    self.known.insert(axis.var, turn as i64);
                    l.body.iter().for_each(|stmt| self.stmt(stmt));
                }
            }
            _ => {
                let around = self.in_branch;
                if let StmtKind::If { cond, .. } = &stmt.kind {
                    self.in_branch |= asked(self.kernel, self.turn, cond).lanes;
                }
                for block in child_blocks(stmt) {
                    block.iter().for_each(|stmt| self.stmt(stmt));
                }
                self.in_branch = around;
            }
        }
    }

    fn micro(&mut self, op: &MicroOp) {
        // Where a copy of waves goes to all of its lanes agree on.
        let dest = (op.inst != Inst::BufferLoadLds).then_some(&op.dest);
        let accesses = op.sources.iter().chain(dest);
        let in_memory = |a: &&Access| {
            let scope = self.func.buffers[self.func.root(a.region.buffer)].scope;
            matches!(scope, Scope::Global | Scope::Shared)
        };
        let accesses: Vec<&Access> = accesses.filter(in_memory).collect();
        if accesses.is_empty() {
            return;
        }
        let mut points: Vec<Vec<(Var, i64)>> = vec![Vec::new()];
        for &(var, count) in &op.axes {
            let longer = points.iter().flat_map(|point| {
                (0..count).map(move |n| [&point[..], &[(var, i64::from(n))]].concat())
            });
            points = longer.take(MOST).collect();
        }
        let asked = op
            .pred
            .as_ref()
            .map(|pred| asked(self.kernel, self.turn, pred));
        let Asked { lanes, turns } = asked.unwrap_or_default();
        let lanes = lanes || self.in_branch;
        let bounded = lanes
            && turns
            && op
                .pred
                .as_ref()
                .is_some_and(|pred| self.names_instructions(op, pred));
        for point in points {
            self.known.extend(point);
            for access in &accesses {
                let alone = match self.func.buffers[access.region.buffer].scope {
                    Scope::Global => lanes && turns && op.kind == MicroKind::G2r,
                    _ => lanes && std::ptr::eq(*access, &op.dest),
                };
                self.access(access, alone, alone && bounded);
            }
        }
    }

    /// Whether a condition divides what tells instructions from each other: each then has a bound of its own, where
    /// else these are constants apart.
    fn names_instructions(&self, op: &MicroOp, condition: &Expr) -> bool {
        let of_one =
            |var: &Var| op.axes.iter().any(|(own, _)| own == var) || self.known.contains_key(var);
        let mut names = false;
        condition.walk_distinct(&mut |node| {
            if let ExprKind::Binary(BinOp::FloorDiv | BinOp::FloorMod, divided, _) = node.kind() {
                divided.walk_distinct(&mut |node| {
                    names |= matches!(node.kind(), ExprKind::Var(var) if of_one(var));
                });
            }
        });
        names
    }

    fn access(&mut self, access: &Access, alone: bool, bounded: bool) {
        let data = &self.func.buffers[access.region.buffer];
        let Some(shape) = data.const_shape() else {
            return;
        };
        let mut own = Vec::with_capacity(self.lanes.len());
        for lane in &self.lanes {
            let value = |var: Var| {
                let thread = self.kernel.thread_vars.iter().position(|v| *v == var);
                let known = || self.known.get(&var).copied().unwrap_or(0);
                Some(thread.map_or_else(known, |axis| lane[axis]))
            };
            let at = access.at.iter().map(|e| evaluate(e, &value));
            let Some(at) = at.collect::<Option<Vec<i64>>>() else {
                return;
            };
            let inside = at.iter().zip(&shape).all(|(at, n)| (0..*n).contains(at));
            let placed = data.placed().filter(|_| inside);
            own.push(match placed {
                Some(place) => place.layout().offset(&at),
                None => {
                    let rows = at.iter().zip(&shape);
                    rows.fold(0, |sum, (at, n)| sum * n + at)
                }
            });
        }
        let first = own[0];
        own.iter_mut().for_each(|at| *at -= first);
        if bounded {
            self.bounds.insert((own.clone(), first));
        }
        self.classes
            .insert((data.scope, own, alone.then_some(first)));
    }
}

/// Who has answers of their own to a condition.
#[derive(Clone, Copy, Default)]
pub(super) struct Asked {
    pub lanes: bool,
    pub turns: bool,
}

pub(super) fn asked(kernel: &Kernel, turn: Var, condition: &Expr) -> Asked {
    let mut asked = Asked::default();
    condition.walk_distinct(&mut |node| {
        if let ExprKind::Var(var) = node.kind() {
            asked.lanes |= kernel.thread_vars.contains(var);
            asked.turns |= turn == *var;
        }
    });
    asked
}
