//! Conditions: the way that is taken, or both one after the other.

use tilewright_ir::{Block, Expr, Stmt};

use super::{Flow, Need, Stop, Tracer, undecided};
use crate::hazard::conditions::{Around, Literal, Under, with};
use crate::hazard::event::EventKind;
use crate::hazard::scan::key;

/// All windows of four choices come up in this circle of sixteen.
const CIRCLE: u16 = 0b1111_0101_1001_0000;

impl<'f> Tracer<'f, '_> {
    pub(super) fn branch(
        &mut self,
        stmt: &'f Stmt,
        cond: &'f Expr,
        then: &'f Block,
        otherwise: &'f Block,
    ) -> Result<Flow, Stop> {
        if let Some(taken) = self.scan.group_takes(stmt, self.group) {
            let cond = self.env.fold(cond);
            return match taken {
                true => self.guarded(cond, then),
                false => self.guarded(!cond, otherwise),
            };
        }
        if let Some(taken) = self.units.decides(cond, &self.env) {
            return self.block(if taken { then } else { otherwise });
        }
        if !self.scan.is_blocking(stmt) {
            return self.both_ways(stmt, cond, then, otherwise);
        }
        let folded = self.env.fold(cond);
        if let Some(need) = self.block_index(&folded) {
            return Err(Stop::Need(need));
        }
        let expanded = self.scan.expand(cond);
        let fixed = self.is_fixed(&expanded);
        if !fixed && !self.scan.is_meeting(stmt) {
            return self.both_ways(stmt, cond, then, otherwise);
        }
        if fixed || self.is_fixed_there(&expanded) {
            return Err(Stop::Need(Need {
                expr: folded,
                values: vec![1, 0],
            }));
        }
        self.trace.turns = 16;
        let first = self.met.is_empty();
        if !first && !self.met.contains_key(&key(stmt)) {
            // Each pattern of one is tried, but not each pattern of both.
            return Err(undecided(
                stmt.span,
                "several conditions around barriers change from iteration to iteration",
            ));
        }
        let met = self.met.entry(key(stmt)).or_insert(0);
        let taken = CIRCLE >> ((*met + self.turn) % 16) & 1 == 1;
        *met += 1;
        self.block(if taken { then } else { otherwise })
    }

    /// What only some threads come to, by a condition that they decide for themselves.
    pub(super) fn guarded(&mut self, guard: Expr, block: &'f Block) -> Result<Flow, Stop> {
        let around = self.units.around.len();
        self.units.around.push(guard);
        let flow = self.block(block);
        self.units.around.truncate(around);
        flow
    }

    /// A branch that no other wave takes part in: one way after the other, each under its
    /// condition.
    fn both_ways(
        &mut self,
        stmt: &'f Stmt,
        cond: &'f Expr,
        then: &'f Block,
        otherwise: &'f Block,
    ) -> Result<Flow, Stop> {
        let ways = self.literals(stmt, cond);
        let before = self.under.clone();
        let cond = self.env.fold(cond);
        let varies = self.scan.varies(&cond);
        for ((holds, block), literal) in [(true, then), (false, otherwise)].into_iter().zip(ways) {
            if block.is_empty() {
                continue;
            }
            // The same condition may be around already.
            let Some(under) = with(&before, literal) else {
                continue;
            };
            self.enter(stmt, under)?;
            match varies {
                true => {
                    let guard = if holds { cond.clone() } else { !cond.clone() };
                    self.guarded(guard, block)?
                }
                false => self.block(block)?,
            };
            self.enter(stmt, before.clone())?;
        }
        Ok(Flow::Next)
    }

    /// The literals of both ways of a branch.
    pub(super) fn literals(&mut self, stmt: &Stmt, cond: &Expr) -> [Literal; 2] {
        let around = self.loops.iter().map(|&(var, value)| Around {
            var,
            value: value - self.skipped.get(&var).copied().unwrap_or(0),
            counted: self.env.vars.contains_key(&var),
        });
        let around: Vec<Around> = around.collect();
        let scan = self.scan;
        let conditions = &mut self.conditions;
        conditions.literals(scan, stmt, cond, &around, self.iterations)
    }

    pub(super) fn enter(&mut self, stmt: &Stmt, under: Under) -> Result<(), Stop> {
        self.under = under.clone();
        self.emit(stmt, EventKind::Under(under))
    }
}
