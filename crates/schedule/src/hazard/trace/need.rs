//! What must be supposed before the walk can go on, and the values it is tried with.

use std::collections::BTreeSet;

use rustc_hash::FxHashSet;
use tilewright_ir::{Expr, ExprKind, Span};

use super::{Need, Stop, Tracer, undecided};
use crate::hazard::rhythm::{core, solve};
use crate::hazard::value::evaluate;

impl Tracer<'_, '_> {
    /// The block index behind a value, where it alone is and has few values, or else the value
    /// itself, where it has few: then all are tried.
    pub(super) fn block_index(&self, e: &Expr) -> Option<Need> {
        const MOST: usize = 32;
        const MOST_BLOCKS: i64 = 1 << 12;
        let mut vars = FxHashSet::default();
        let mut loads = false;
        e.walk(&mut |node| {
            vars.extend(node.as_var());
            loads |= matches!(node.kind(), ExprKind::Load { .. });
        });
        let (1, Some(var), false) = (vars.len(), vars.iter().next(), loads) else {
            return None;
        };
        let (_, extent) = self.scan.kernel.grid.iter().find(|(v, _)| v == var)?;
        let extent = i64::try_from(extent.as_int()?).ok()?;
        if extent <= MOST as i64 {
            let dtype = self.scan.func.vars[*var].dtype;
            return Some(Need {
                expr: Expr::new(ExprKind::Var(*var), dtype, Span::NONE),
                values: (0..extent).collect(),
            });
        }
        let (core, _) = core(e);
        let at = |index: i64| evaluate(&core, &|v| (v == *var).then_some(index));
        let blocks = (extent <= MOST_BLOCKS).then_some(0..extent)?;
        let values: BTreeSet<i64> = blocks.map(at).collect::<Option<_>>()?;
        (values.len() <= MOST).then(|| Need {
            expr: core,
            values: values.into_iter().collect(),
        })
    }

    /// Whether the value is the same whenever it is asked for.
    pub(super) fn is_fixed(&self, e: &Expr) -> bool {
        let mut fixed = true;
        e.walk(&mut |node| match node.kind() {
            ExprKind::Load { .. } => fixed = false,
            ExprKind::Var(var) => fixed &= self.scan.is_fixed(*var),
            _ => {}
        });
        fixed
    }

    /// The same of a value that is read from memory which the kernel leaves as it is.
    pub(super) fn is_fixed_there(&self, e: &Expr) -> bool {
        let mut fixed = self.scan.reads_constants(e);
        e.walk(&mut |node| {
            if let ExprKind::Var(var) = node.kind() {
                fixed &= self.scan.is_fixed(*var);
            }
        });
        fixed
    }

    /// An unknown bound: the part of it that is not plain arithmetic with constants, so that
    /// guards over the same part follow; where a single variable is behind it, that variable.
    pub(super) fn need(&self, e: &Expr, wanted: Vec<i64>, span: Span) -> Stop {
        if let Some(need) = self.block_index(e) {
            return Stop::Need(need);
        }
        let (core, offset) = core(e);
        if core.as_int().is_some() {
            return undecided(span, "the bounds of this loop are not known");
        }
        let wanted = wanted.iter().filter_map(|w| w.checked_sub(offset));
        let mut wanted: Vec<i64> = wanted.collect();
        // What comes before or after a loop that was cut short depends on counts too small for
        // the loop itself.
        let least = wanted.iter().copied().min().unwrap_or(0);
        wanted.extend(0..least.min(16));
        wanted.sort_unstable();
        let mut vars = FxHashSet::default();
        core.walk(&mut |node| vars.extend(node.as_var()));
        if let (1, Some(&var)) = (vars.len(), vars.iter().next())
            && self.is_fixed(&core)
        {
            let values: Vec<i64> = wanted
                .iter()
                .filter_map(|&w| solve(&core, var, w))
                .collect();
            if values.len() * 2 > wanted.len() {
                let dtype = self.scan.func.vars[var].dtype;
                let expr = Expr::new(ExprKind::Var(var), dtype, Span::NONE);
                return Stop::Need(Need { expr, values });
            }
        }
        Stop::Need(Need {
            expr: core,
            values: wanted,
        })
    }
}
