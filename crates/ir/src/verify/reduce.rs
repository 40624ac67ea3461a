//! Reductions and scans.
//!
//! - `reduce-dim`, `reduce-shape`, `reduce-scope`, `reduce-types`
//! - `scan-dim`, `scan-shape`, `scan-scope`, `scan-types`

use crate::buffer::{Region, Scope};
use crate::expr::Expr;
use crate::tile_op::{ReduceOp, ScanOp};
use crate::verify::Verifier;
use crate::verify::region::may_equal;

impl<'a> Verifier<'a> {
    pub(super) fn reduce(&mut self, op: &'a ReduceOp) {
        let sound = self.region(&op.src, false) & self.region(&op.dst, false);
        if !sound {
            return;
        }
        let (from, to) = (self.data(&op.src).scope, self.data(&op.dst).scope);
        let tile = |s| matches!(s, Scope::Shared | Scope::Fragment);
        let own = from == Scope::Local && matches!(to, Scope::Local | Scope::Var);
        if !(tile(from) && tile(to) || own) {
            let message = format!("a reduction from {} to {}", from.name(), to.name());
            let error = self.fail("reduce-scope", message);
            error
                .help
                .push("shared and fragment tiles, or a thread's own array".to_string());
        }
        let (x, y) = (self.dtype_of(&op.src), self.dtype_of(&op.dst));
        let bitwise_float = op.kind.is_bitwise() && y.scalar.is_float();
        if bitwise_float || !Self::is_number(x) || !Self::is_number(y) || x.lanes != y.lanes {
            let message = format!("a reduction by {} from {x} to {y}", op.kind.name());
            self.fail("reduce-types", message);
        }
        let dim = op.dim as usize;
        if dim >= op.src.dims.len() {
            let message = format!("dimension {dim} of {}", op.src.dims.len());
            self.fail("reduce-dim", message);
            return;
        }
        let kept: Vec<&Expr> = non_unit(&op.src, Some(dim));
        let made: Vec<&Expr> = non_unit(&op.dst, None);
        let fits = kept.len() == made.len() && kept.iter().zip(&made).all(|(a, b)| may_equal(a, b));
        if !fits {
            let message = format!(
                "reducing dimension {dim} leaves ({}), the destination has ({})",
                self.extents_text(&kept),
                self.extents_text(&made)
            );
            self.fail("reduce-shape", message);
        }
    }

    pub(super) fn scan(&mut self, op: &'a ScanOp) {
        let sound = self.region(&op.src, false) & self.region(&op.dst, false);
        if !sound {
            return;
        }
        let scopes = [Scope::Shared, Scope::Fragment];
        self.in_scope(&op.src, &scopes, "scan-scope", "the source");
        self.in_scope(&op.dst, &scopes, "scan-scope", "the destination");
        let (x, y) = (self.dtype_of(&op.src), self.dtype_of(&op.dst));
        if x != y || !Self::is_number(x) {
            self.fail("scan-types", format!("a scan from {x} to {y}"));
        }
        if op.dim as usize >= op.src.dims.len() {
            let message = format!("dimension {} of {}", op.dim, op.src.dims.len());
            self.fail("scan-dim", message);
        }
        let (a, b) = (non_unit(&op.src, None), non_unit(&op.dst, None));
        let same = a.len() == b.len() && a.iter().zip(&b).all(|(p, q)| may_equal(p, q));
        if !same || a.len() > 2 {
            let message = format!(
                "a scan of ({}) to ({})",
                self.extents_text(&a),
                self.extents_text(&b)
            );
            let error = self.fail("scan-shape", message);
            error
                .help
                .push("both have one shape, of one or two dimensions".to_string());
        }
    }
}

/// The extents other than one, without the dimension that is folded.
fn non_unit(region: &Region, without: Option<usize>) -> Vec<&Expr> {
    let dims = region.dims.iter().enumerate();
    dims.filter(|(d, dim)| Some(*d) != without && !dim.extent.is_int(1))
        .map(|(_, dim)| &dim.extent)
        .collect()
}
