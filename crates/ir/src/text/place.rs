//! Places in buffers: elements, regions and barriers, as operations name them.

use crate::buffer::{Region, RegionDim};
use crate::diag::{Code, Diagnostic};
use crate::expr::Expr;
use crate::ids::Buffer;
use crate::text::parser::{Parser, Result1};
use crate::text::printer::Printer;

impl Printer<'_> {
    /// `A[i, j]`
    pub(super) fn element(&mut self, buffer: Buffer, indices: &[Expr]) {
        self.buffer(buffer);
        self.put("[");
        self.list(indices, |p, e| p.expr(e));
        self.put("]");
    }

    /// `A[i * 64 +: 64, j]`; an extent of one is left out, unless `full`.
    pub(super) fn region_as(&mut self, region: &Region, full: bool) {
        self.buffer(region.buffer);
        self.put("[");
        self.list(&region.dims, |p, dim| {
            p.expr(&dim.start);
            if full || dim.extent != Expr::int(1, dim.start.dtype()) {
                p.put(" +: ");
                p.expr(&dim.extent);
            }
        });
        self.put("]");
    }

    pub(super) fn region(&mut self, region: &Region) {
        self.region_as(region, false);
    }

    pub(super) fn arrow(&mut self, src: &Region, dst: &Region) {
        self.region(src);
        self.put(" -> ");
        self.region(dst);
    }
}

impl<'t> Parser<'t> {
    /// `A[i, j]`
    pub(super) fn element(&mut self) -> Result1<(Buffer, Vec<Expr>)> {
        let buffer = self.buffer()?;
        self.expect("[")?;
        let indices = self.list("]", |p| p.expr())?;
        Ok((buffer, indices))
    }

    /// `A[i * 64 +: 64, j]`
    pub(super) fn region(&mut self) -> Result1<Region> {
        let buffer = self.buffer()?;
        self.expect("[")?;
        let dims = self.list("]", |p| {
            let start = p.expr()?;
            let extent = if p.eat("+:") {
                p.expr()?
            } else {
                Expr::int(1, start.dtype()).with_span(start.span())
            };
            Ok(RegionDim { start, extent })
        })?;
        Ok(Region { buffer, dims })
    }

    pub(super) fn arrow(&mut self) -> Result1<(Region, Region)> {
        let src = self.region()?;
        self.expect("->")?;
        Ok((src, self.region()?))
    }

    /// `bar[0]`: a buffer and exactly one index.
    pub(super) fn barrier_element(&mut self) -> Result1<(Buffer, Expr)> {
        let start = self.here();
        let (buffer, indices) = self.element()?;
        match <[Expr; 1]>::try_from(indices) {
            Ok([index]) => Ok((buffer, index)),
            Err(indices) => Err(Box::new(
                Diagnostic::error(
                    Code("text-arity"),
                    self.since(start),
                    format!("a barrier has one index, {} are given", indices.len()),
                )
                .help("name the first barrier with `[0]`"),
            )),
        }
    }
}
