//! Layouts: `layout=…`.

use std::sync::Arc;

use tilewright_form::radix::{Digit, unflatten};
use tilewright_form::swizzle::{RowXor, Swizzle};
use tilewright_form::{
    Family, Form, Formula, Fragment, Layout, LayoutError, Part, Place, check_shape,
};

use super::{Parser, Result1};
use crate::buffer::{FragmentMap, IndexMap, LayoutAttr};
use crate::diag::{Code, Diagnostic, Span};
use crate::dtype::DType;
use crate::text::lexer::Tok;

impl<'t> Parser<'t> {
    /// `=linear`, `=padded(8)`, `=swizzle(16; 0 -> 0, 1 -> 1)`, `=panels(128)`; what the user wrote:
    /// `=swizzled`, `=map(i, j) -> (…)`, `=fragment(i, j; r in 2) -> (…; …)`; and closed forms:
    /// `=map[64, 64](i, j) -> [4096](…)`, `=fragment[64; 2](i; rep) -> [128; 1](…; …)`. `of` is the
    /// shape and the type of the buffer.
    pub(super) fn layout(&mut self, of: Option<(Vec<i64>, DType)>) -> Result1<LayoutAttr> {
        self.expect("=")?;
        let (word, span) = self.ident("a layout")?;
        let family = match word {
            "linear" => return Ok(LayoutAttr::Linear),
            "swizzled" => return Ok(LayoutAttr::Swizzled),
            "map" | "fragment" if self.is("[") => return self.closed(word == "fragment", span),
            "map" | "fragment" => {
                self.open_scope();
                let layout = if word == "map" {
                    self.index_map().map(LayoutAttr::Map)
                } else {
                    self.fragment_map().map(LayoutAttr::FragmentMap)
                };
                self.close_scope();
                return layout;
            }
            "padded" => {
                self.expect("(")?;
                Family::Padded(self.number("a padding")?)
            }
            "swizzle" => {
                self.expect("(")?;
                let chunk = self.number("the bytes of a chunk")?;
                self.expect(";")?;
                let mut pairs = Vec::new();
                while !self.is(")") && (pairs.is_empty() || self.eat(",")) {
                    let row = self.number("a bit of the row")?;
                    self.expect("->")?;
                    pairs.push((row, self.number("a bit of the chunk")?));
                }
                Family::Swizzle(RowXor { chunk, pairs })
            }
            "panels" => {
                self.expect("(")?;
                let span = self.here();
                let bytes: i64 = self.number("the bytes of a panel")?;
                let all = [Swizzle::B128, Swizzle::B64, Swizzle::B32];
                let known = all.into_iter().find(|s| s.span == bytes);
                Family::Panels(known.ok_or_else(|| refused(span, "panels of 32, 64 or 128 bytes"))?)
            }
            _ => {
                let known = [
                    "linear", "swizzled", "padded", "swizzle", "panels", "map", "fragment",
                ];
                return Err(self.unknown_attr(word, span, &known));
            }
        };
        self.expect(")")?;
        let Some((shape, dtype)) = of else {
            return Err(refused(
                span,
                "this layout is one of a buffer of constant shape",
            ));
        };
        let place = Place::new(family, &shape, dtype.bits().into());
        place.map(LayoutAttr::from).map_err(|e| no_layout(span, &e))
    }

    /// `[64; 2](i; rep) -> [128; 1](rep * 64 + i; 0)` and such; without variables the places are
    /// listed.
    fn closed(&mut self, fragment: bool, span: Span) -> Result1<LayoutAttr> {
        let mut shape = self.extents()?;
        if fragment {
            let copies = match self.eat(";") {
                true => self.number("a number of copies")?,
                false => 1,
            };
            shape.push(copies);
        }
        self.expect("]")?;
        let mut names: Vec<&'t str> = Vec::new();
        let mut extents = Vec::new();
        let named = self.eat("(");
        while named && !self.eat(")") {
            if !names.is_empty() && !self.eat(",") {
                self.expect(";")?;
            }
            names.push(self.ident("an index")?.0);
            if self.eat("<") {
                extents.push(self.number("an extent")?);
            }
        }
        self.expect("->")?;
        let mut codomain = self.extents()?;
        if self.eat(";") {
            codomain.push(self.number("an extent")?);
        }
        self.expect("]")?;
        self.expect("(")?;
        let layout = if named {
            let of_another = !extents.is_empty();
            let form = if of_another { &extents } else { &shape };
            let form = form.clone();
            let size = check_shape(&shape).and_then(|_| check_shape(&form));
            size.map_err(|e| no_layout(span, &e))?;
            if names.len() > form.len() || of_another && names.len() != form.len() {
                return Err(refused(span, "as many indices as there are extents"));
            }
            let mut formulas = Vec::new();
            while !self.eat(")") {
                if !formulas.is_empty() && !self.eat(",") {
                    self.expect(";")?;
                }
                formulas.push(self.formula(&names, &form)?);
            }
            let form = Form::of_formulas(&form, &formulas);
            let form = form.ok_or_else(|| refused(span, "digits that divide each other"))?;
            Layout::new(&shape, &codomain, form)
        } else {
            let places = self.places()?;
            listed(&shape, &codomain, &places)
        };
        let attr = layout.and_then(|layout| match fragment {
            true => Fragment::new(layout).map(|f| LayoutAttr::Held(Arc::new(f))),
            false => Place::other(layout).map(|p| LayoutAttr::Placed(Arc::new(p))),
        });
        attr.map_err(|e| no_layout(span, &e))
    }

    /// `[64, 64`
    fn extents(&mut self) -> Result1<Vec<i64>> {
        self.expect("[")?;
        let mut extents = Vec::new();
        while !self.is("]") && !self.is(";") {
            if !extents.is_empty() {
                self.expect(",")?;
            }
            extents.push(self.number("an extent")?);
        }
        Ok(extents)
    }

    /// `i * 64 + (i % 8 ^ j // 8) * 8 + 5`
    fn formula(&mut self, names: &[&str], shape: &[i64]) -> Result1<Formula> {
        let mut formula = Formula::default();
        let mut negative = self.eat("-");
        loop {
            let sign = if negative { -1 } else { 1 };
            if self.peek() == Tok::Int {
                let offset: i64 = self.number("a number")?;
                formula.offset = formula.offset.saturating_add(sign * offset);
            } else {
                let mut fields = Vec::new();
                let several = self.eat("(");
                while fields.is_empty() || several && self.eat("^") {
                    fields.push(self.field(names, shape)?);
                }
                if several {
                    self.expect(")")?;
                    // A topmost field counts as many bits as the others.
                    for f in &mut fields {
                        let whole = u64::try_from(f.extent)
                            .unwrap_or(0)
                            .checked_next_power_of_two();
                        f.extent = whole.and_then(|n| n.try_into().ok()).unwrap_or(0);
                    }
                }
                let weight: i64 = match self.eat("*") {
                    true => self.number("a weight")?,
                    false => 1,
                };
                let weight = weight.saturating_mul(sign);
                formula.parts.push(Part { fields, weight });
            }
            negative = self.is("-");
            if !negative && !self.is("+") {
                return Ok(formula);
            }
            self.next();
        }
    }

    /// `x // div % extent`
    fn field(&mut self, names: &[&str], shape: &[i64]) -> Result1<Digit> {
        let (name, span) = self.ident("an index")?;
        let Some(dim) = names.iter().position(|n| *n == name) else {
            return Err(refused(span, "an index of this layout"));
        };
        let div: i64 = match self.eat("//") {
            true => self.number("a divisor")?,
            false => 1,
        };
        let extent = match self.eat("%") {
            true => self.number("an extent")?,
            false => (shape[dim] - 1) / div.max(1) + 1,
        };
        Ok(Digit::new(dim, div, extent))
    }

    /// `0, 8 +: 4)`
    fn places(&mut self) -> Result1<Vec<i64>> {
        let mut places = Vec::new();
        while !self.eat(")") {
            if !places.is_empty() {
                self.expect(",")?;
            }
            let span = self.here();
            let first: u32 = self.number("a place")?;
            let count: u32 = match self.eat("+:") {
                true => self.number("a number of places")?,
                false => 1,
            };
            let (first, count) = (i64::from(first), i64::from(count));
            if count == 0 || places.len() as i64 + count > tilewright_form::TABLE_LIMIT {
                return Err(refused(span, "some places, not too many"));
            }
            places.extend(first..first + count);
        }
        Ok(places)
    }

    fn index_map(&mut self) -> Result1<IndexMap> {
        self.expect("(")?;
        let inputs = self.list(")", |p| p.bound_var())?;
        self.expect("->")?;
        self.expect("(")?;
        let outputs = self.list(")", |p| p.expr())?;
        Ok(IndexMap { inputs, outputs })
    }

    fn fragment_map(&mut self) -> Result1<FragmentMap> {
        self.expect("(")?;
        let mut inputs = Vec::new();
        while !self.is(";") && !self.is(")") {
            if !inputs.is_empty() && !self.eat(",") {
                return Err(self.expected("`,`, `;` or `)`"));
            }
            inputs.push(self.bound_var()?);
        }
        let mut replica = None;
        let mut replicas = 1;
        if self.eat(";") {
            if self.peek() == Tok::Ident {
                replica = Some(self.bound_var()?);
                self.expect_word("in")?;
            }
            replicas = self.number("a number of replicas")?;
        }
        self.expect(")")?;
        self.expect("->")?;
        self.expect("(")?;
        let thread = self.expr()?;
        self.expect(";")?;
        let slots = self.list(")", |p| p.expr())?;
        Ok(FragmentMap {
            inputs,
            replica,
            replicas,
            thread,
            slots,
        })
    }
}

/// The layout with these places, by their row-major numbers.
fn listed(shape: &[i64], codomain: &[i64], places: &[i64]) -> Result<Layout, LayoutError> {
    let size = check_shape(shape)?;
    let space = check_shape(codomain)?;
    if size != places.len() as i64 || places.iter().any(|&p| p >= space) {
        return Err(LayoutError::Shape {
            expected: vec![size],
            found: vec![places.len() as i64],
        });
    }
    let mut places = places.iter();
    Layout::tabulate(shape, codomain, |_| {
        let place = places.next().copied().unwrap_or(0);
        Ok(unflatten(place, codomain))
    })
}

fn refused(span: Span, what: &str) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(
        Code("text-layout"),
        span,
        format!("expected {what}"),
    ))
}

fn no_layout(span: Span, e: &LayoutError) -> Box<Diagnostic> {
    Box::new(Diagnostic::error(
        Code("text-layout"),
        span,
        format!("this is no layout: {e}"),
    ))
}
