//! Regions of buffers, and how the extents of two of them pair.

use crate::buffer::{BufferData, Region, Scope};
use crate::expr::Expr;
use crate::ids::Buffer;
use crate::verify::Verifier;

impl<'a> Verifier<'a> {
    /// Checks rank, types and constant bounds; true if the region makes sense. Where the
    /// operation says what happens beyond the end of global memory, a region may overhang; below
    /// tile level it may lie outside, where a peeled iteration has made its start a constant.
    pub(super) fn region(&mut self, region: &'a Region, overhang: bool) -> bool {
        for dim in &region.dims {
            self.integer(&dim.start, "index-type", "the start of a region");
            self.integer(&dim.extent, "index-type", "the extent of a region");
        }
        if !self.use_buffer(region.buffer, self.at) {
            return false;
        }
        let func = self.func;
        let data = &func.buffers[region.buffer];
        let name = self.buffer_name(region.buffer);
        if data.shape.len() != region.dims.len() {
            let message = format!(
                "a region of {} dimensions of `{name}`, which has {}",
                region.dims.len(),
                data.shape.len()
            );
            self.fail("region-rank", message);
            return false;
        }
        let before = self.errors.len();
        for (d, (dim, size)) in region.dims.iter().zip(&data.shape).enumerate() {
            let (start, extent, size) = (dim.start.as_int(), dim.extent.as_int(), size.as_int());
            let outside = |what: String| format!("dimension {d} of `{name}`: {what}");
            if let Some(e) = extent
                && e < 1
            {
                self.fail("region-bounds", outside(format!("an extent of {e}")));
                continue;
            }
            let Some(size) = size else { continue };
            let strict = data.scope != Scope::Global || !overhang;
            if let Some(s) = start
                && (strict || self.tile_level())
                && !(0..size).contains(&s)
            {
                self.fail("region-bounds", outside(format!("starts at {s} of {size}")));
            } else if let Some(e) = extent
                && strict
                && start.unwrap_or(0).saturating_add(e) > size
            {
                let s = start.unwrap_or(0);
                let message = outside(format!("{s} +: {e} is past the end, {size}"));
                self.fail("region-bounds", message);
            }
        }
        self.errors.len() == before
    }

    pub(super) fn data(&self, region: &Region) -> &'a BufferData {
        let func = self.func;
        &func.buffers[region.buffer]
    }

    pub(super) fn scope_of(&self, buffer: Buffer) -> Option<Scope> {
        self.func.buffers.get(buffer).map(|b| b.scope)
    }

    /// Whether the region is the whole buffer, as far as constants tell.
    pub(super) fn is_whole(&self, region: &Region) -> bool {
        let data = self.data(region);
        region
            .dims
            .iter()
            .zip(&data.shape)
            .all(|(dim, size)| dim.start.is_int(0) && may_equal(&dim.extent, size))
    }

    /// The non-unit extents of both regions are equal in order.
    pub(super) fn paired(&mut self, a: &Region, b: &Region) {
        let (ea, eb) = (a.non_unit_extents(), b.non_unit_extents());
        let equal = ea.len() == eb.len() && ea.iter().zip(&eb).all(|(x, y)| may_equal(x, y));
        if !equal {
            let message = format!(
                "the extents of `{}` ({}) and `{}` ({}) do not pair",
                self.buffer_name(a.buffer),
                self.extents_text(&ea),
                self.buffer_name(b.buffer),
                self.extents_text(&eb)
            );
            let error = self.fail("copy-extents", message);
            error
                .notes
                .push("extents of one are left out; nothing is broadcast".to_string());
        }
    }

    pub(super) fn extents_text(&self, extents: &[&Expr]) -> String {
        let texts: Vec<String> = extents
            .iter()
            .map(|e| crate::text::print_expr(self.func, e))
            .collect();
        texts.join(", ")
    }

    /// A scope the operation works on; true if it is.
    pub(super) fn in_scope(
        &mut self,
        region: &Region,
        allowed: &[Scope],
        code: &'static str,
        what: &str,
    ) -> bool {
        self.buffer_in_scope(region.buffer, allowed, code, what)
    }

    pub(super) fn buffer_in_scope(
        &mut self,
        buffer: Buffer,
        allowed: &[Scope],
        code: &'static str,
        what: &str,
    ) -> bool {
        let Some(scope) = self.scope_of(buffer) else {
            return false;
        };
        if allowed.contains(&scope) {
            return true;
        }
        let name = self.buffer_name(buffer);
        let names: Vec<&str> = allowed.iter().map(|s| s.name()).collect();
        let message = format!("{what} `{name}` is in {} memory", scope.name());
        let error = self.fail(code, message);
        error
            .help
            .push(format!("it has to be {}", names.join(" or ")));
        false
    }
}

/// Whether two extents can be equal: they are not two different constants.
pub(super) fn may_equal(a: &Expr, b: &Expr) -> bool {
    match (a.as_int(), b.as_int()) {
        (Some(x), Some(y)) => x == y,
        _ => true,
    }
}
