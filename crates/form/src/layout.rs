//! Layouts: maps from the elements of a tensor to places.

use crate::compose::Pieces;
use crate::decide::{Collision, Verdict};
use crate::error::{LayoutError, TABLE_LIMIT};
use crate::form::Form;
use crate::radix::{flatten, indices, row_major_strides, unflatten};
use crate::table::{Table, collision_by_points};

/// A map from the indices of `shape` to the box `codomain`.
///
/// For a shared buffer the codomain is usually one number, the element offset. `==` is equality
/// of the functions: same shape, same codomain, same place for every element.
#[derive(Clone, Debug)]
pub struct Layout {
    shape: Vec<i64>,
    codomain: Vec<i64>,
    map: Map,
}

#[derive(Clone, Debug)]
enum Map {
    /// Over `shape`, or over another box with the same row-major order.
    Form(Form),
    Table(Table),
}

/// The largest box a layout may speak of; keeps all products in range.
const MAX_ELEMENTS: i64 = 1 << 40;

impl Layout {
    /// The map that a closed form computes. The form's box has the row-major order of `shape`.
    pub fn new(shape: &[i64], codomain: &[i64], form: Form) -> Result<Layout, LayoutError> {
        let size = check_shape(shape)?;
        check_shape(codomain)?;
        if form.radix.size() != size || form.outs.len() != codomain.len() {
            return Err(LayoutError::Shape {
                expected: shape.to_vec(),
                found: form.radix.shape().to_vec(),
            });
        }
        let layout = Layout {
            shape: shape.to_vec(),
            codomain: codomain.to_vec(),
            map: Map::Form(form),
        };
        layout.check_range()?;
        Ok(layout)
    }

    /// Row-major, one number.
    pub fn linear(shape: &[i64]) -> Result<Layout, LayoutError> {
        let size = check_shape(shape)?;
        let form = Form::strided(shape, &row_major_strides(shape));
        Layout::new(shape, &[size], form)
    }

    /// Row-major with each row lengthened by `pad` elements.
    pub fn padded(shape: &[i64], pad: i64) -> Result<Layout, LayoutError> {
        let mut storage = shape.to_vec();
        if let Some(last) = storage.last_mut() {
            *last += pad;
        }
        Layout::strided(shape, &row_major_strides(&storage))
    }

    /// One number: the sum of the indices times their strides, in as much space as it needs.
    pub fn strided(shape: &[i64], strides: &[i64]) -> Result<Layout, LayoutError> {
        check_shape(shape)?;
        if strides.len() != shape.len() {
            return Err(LayoutError::Shape {
                expected: shape.to_vec(),
                found: strides.to_vec(),
            });
        }
        let reach = shape
            .iter()
            .zip(strides)
            .map(|(e, s)| (e - 1).saturating_mul(*s.max(&0)));
        let span = reach.fold(1, i64::saturating_add);
        check_shape(&[span])?;
        Layout::new(shape, &[span], Form::strided(shape, strides))
    }

    /// Every element in the place of its own index.
    pub fn identity(shape: &[i64]) -> Result<Layout, LayoutError> {
        Layout::new(shape, shape, Form::identity(shape))
    }

    /// Any function, listed; recognised as a closed form where it is one over bits.
    pub fn tabulate(
        shape: &[i64],
        codomain: &[i64],
        of: impl FnMut(&[i64]) -> Result<Vec<i64>, LayoutError>,
    ) -> Result<Layout, LayoutError> {
        check_shape(shape)?;
        check_shape(codomain)?;
        let table = Table::new(shape, codomain.len(), of)?;
        let map = match table.recognise() {
            Some(form) => Map::Form(form),
            None => Map::Table(table),
        };
        let layout = Layout {
            shape: shape.to_vec(),
            codomain: codomain.to_vec(),
            map,
        };
        layout.check_range()?;
        Ok(layout)
    }

    pub fn shape(&self) -> &[i64] {
        &self.shape
    }

    pub fn codomain(&self) -> &[i64] {
        &self.codomain
    }

    /// How many elements there are.
    pub fn size(&self) -> i64 {
        self.shape.iter().product()
    }

    /// How many places there are.
    pub fn span(&self) -> i64 {
        self.codomain.iter().product()
    }

    /// The closed form over `shape`, where there is one.
    pub fn form(&self) -> Option<Form> {
        match &self.map {
            Map::Form(form) => form.reshaped(&self.shape),
            Map::Table(_) => None,
        }
    }

    /// The closed form over whatever box it was written for, in the row-major order of `shape`.
    pub fn raw_form(&self) -> Option<&Form> {
        match &self.map {
            Map::Form(form) => Some(form),
            Map::Table(_) => None,
        }
    }

    /// The place of an element. The index is inside the shape.
    pub fn eval(&self, index: &[i64]) -> Vec<i64> {
        match &self.map {
            Map::Form(form) if form.radix.shape() == self.shape => form.eval(index),
            Map::Form(form) => {
                let flat = flatten(index, &self.shape);
                form.eval(&unflatten(flat, form.radix.shape()))
            }
            Map::Table(table) => table.eval(index),
        }
    }

    /// The row-major number of the place of an element.
    pub fn offset(&self, index: &[i64]) -> i64 {
        if let Map::Form(form) = &self.map
            && form.radix.shape() == self.shape
        {
            let (mut flat, mut extents) = (0, self.codomain.iter());
            form.eval_each(index, |value| {
                flat = flat * extents.next().unwrap_or(&1) + value;
            });
            return flat;
        }
        flatten(&self.eval(index), &self.codomain)
    }

    /// `outer` after `self`.
    pub fn then(&self, outer: &Layout) -> Result<Layout, LayoutError> {
        if self.codomain != outer.shape {
            return Err(LayoutError::Shape {
                expected: self.codomain.clone(),
                found: outer.shape.clone(),
            });
        }
        let composed = self
            .raw_form()
            .zip(outer.raw_form())
            .and_then(|(inner, form)| {
                if form.radix.shape() == outer.shape {
                    return inner.then(form);
                }
                let flat = inner.flattened(&self.codomain);
                flat.then(&Form::unflatten(form.radix.shape())?)?.then(form)
            });
        closed_or_listed(&self.shape, &outer.codomain, composed, |i| {
            outer.eval(&self.eval(i))
        })
    }

    /// The layout that takes places back to elements. Only a bijection has one.
    pub fn inverse(&self) -> Result<Layout, LayoutError> {
        self.require_injective()?;
        if self.size() != self.span() {
            return Err(LayoutError::NotOnto {
                elements: self.size(),
                places: self.span(),
            });
        }
        if let Some(form) = self.form().and_then(|f| f.inverse(&self.codomain)) {
            return Layout::new(&self.codomain, &self.shape, form);
        }
        let mut back = vec![0; self.size() as usize];
        for (flat, index) in indices(&self.shape).enumerate() {
            back[self.offset(&index) as usize] = flat as i64;
        }
        Layout::tabulate(&self.codomain, &self.shape, |place| {
            let flat = back[flatten(place, &self.codomain) as usize];
            Ok(unflatten(flat, &self.shape))
        })
    }

    /// `outer` over tiles, `inner` inside each: element `x` is in tile `x / inner.shape`, and
    /// its place is `outer(tile) · inner.codomain + inner(x % inner.shape)` in each output.
    pub fn product(outer: &Layout, inner: &Layout) -> Result<Layout, LayoutError> {
        if outer.shape.len() != inner.shape.len() || outer.codomain.len() != inner.codomain.len() {
            return Err(LayoutError::Shape {
                expected: inner.shape.clone(),
                found: outer.shape.clone(),
            });
        }
        let times = |a: &[i64], b: &[i64]| -> Vec<i64> {
            a.iter().zip(b).map(|(x, y)| x.saturating_mul(*y)).collect()
        };
        let shape = times(&outer.shape, &inner.shape);
        let codomain = times(&outer.codomain, &inner.codomain);
        check_shape(&shape)?;
        check_shape(&codomain)?;
        let closed = outer.form().zip(inner.form());
        let closed = closed.and_then(|(o, i)| Form::product(&o, &i, &inner.codomain));
        closed_or_listed(&shape, &codomain, closed, |x| {
            let tile: Vec<i64> = x.iter().zip(&inner.shape).map(|(x, e)| x / e).collect();
            let rest: Vec<i64> = x.iter().zip(&inner.shape).map(|(x, e)| x % e).collect();
            let pairs = outer.eval(&tile).into_iter().zip(inner.eval(&rest));
            let pairs = pairs.zip(&inner.codomain);
            pairs.map(|((o, i), extent)| o * extent + i).collect()
        })
    }

    /// Both side by side: the dimensions and the outputs of `a`, then those of `b`.
    pub fn concat(a: &Layout, b: &Layout) -> Result<Layout, LayoutError> {
        let join = |x: &[i64], y: &[i64]| [x, y].concat();
        let (shape, codomain) = (join(&a.shape, &b.shape), join(&a.codomain, &b.codomain));
        check_shape(&shape)?;
        let rank = a.shape.len();
        let closed = a.form().zip(b.form());
        let closed = closed.and_then(|(a, b)| Form::concat(&a, &b));
        closed_or_listed(&shape, &codomain, closed, |x| {
            join(&a.eval(&x[..rank]), &b.eval(&x[rank..]))
        })
    }

    /// Reorders the dimensions of the elements: `order[i]` is the old number of dimension `i`.
    pub fn permute(&self, order: &[usize]) -> Result<Layout, LayoutError> {
        let mut sorted = order.to_vec();
        sorted.sort_unstable();
        if sorted != (0..self.shape.len()).collect::<Vec<_>>() {
            return Err(LayoutError::Shape {
                expected: (0..self.shape.len() as i64).collect(),
                found: order.iter().map(|&d| d as i64).collect(),
            });
        }
        let shape: Vec<i64> = order.iter().map(|&d| self.shape[d]).collect();
        let closed = self.form().map(|f| f.permute_inputs(order));
        closed_or_listed(&shape, &self.codomain, closed, |x| {
            let mut old = vec![0; x.len()];
            for (new, &dim) in order.iter().enumerate() {
                old[dim] = x[new];
            }
            self.eval(&old)
        })
    }

    /// The elements `start .. start + extents`, in the places they have.
    pub fn slice(&self, start: &[i64], extents: &[i64]) -> Result<Layout, LayoutError> {
        check_shape(extents)?;
        let inside = start.len() == self.shape.len()
            && extents.len() == start.len()
            && start
                .iter()
                .zip(extents)
                .zip(&self.shape)
                .all(|((s, e), of)| *s >= 0 && s + e <= *of);
        if !inside {
            return Err(LayoutError::Shape {
                expected: self.shape.clone(),
                found: start.iter().zip(extents).map(|(s, e)| s + e).collect(),
            });
        }
        let mut shift = Form::identity(extents);
        for (out, &s) in shift.outs.iter_mut().zip(start) {
            out.offset = s;
        }
        Layout::new(extents, &self.shape, shift)?.then(self)
    }

    /// The same elements in the same row-major order under another shape.
    pub fn reshape(&self, shape: &[i64]) -> Result<Layout, LayoutError> {
        if check_shape(shape)? != self.size() {
            return Err(LayoutError::Shape {
                expected: self.shape.clone(),
                found: shape.to_vec(),
            });
        }
        let map = match &self.map {
            Map::Form(form) => Map::Form(form.reshaped(shape).unwrap_or_else(|| form.clone())),
            Map::Table(table) => Map::Table(Table::new(shape, self.codomain.len(), |x| {
                Ok(table.eval(&unflatten(flatten(x, shape), &self.shape)))
            })?),
        };
        Ok(Layout {
            shape: shape.to_vec(),
            codomain: self.codomain.clone(),
            map,
        })
    }

    /// The same places numbered row-major.
    pub fn flatten(&self) -> Result<Layout, LayoutError> {
        self.then(&Layout::linear(&self.codomain)?)
    }

    /// The same places inside a larger box.
    pub fn within(&self, codomain: &[i64]) -> Result<Layout, LayoutError> {
        let closed = self.raw_form().cloned();
        closed_or_listed(&self.shape, codomain, closed, |x| self.eval(x))
    }

    /// Two elements in one place, where there are some; the one first in row-major order first.
    pub fn collision(&self) -> Option<Collision> {
        let found = match &self.map {
            Map::Table(table) => table.collision(),
            Map::Form(form) => match form.collision() {
                Verdict::Known(found) => found.map(|c| self.in_own_shape(form, c)),
                Verdict::Open => collision_by_points(&self.shape, |i| self.eval(i)),
            },
        };
        found.map(|c| {
            if c.a <= c.b {
                c
            } else {
                Collision { a: c.b, b: c.a }
            }
        })
    }

    fn in_own_shape(&self, form: &Form, c: Collision) -> Collision {
        if form.radix.shape() == self.shape {
            return c;
        }
        let back = |i: &[i64]| unflatten(flatten(i, form.radix.shape()), &self.shape);
        Collision {
            a: back(&c.a),
            b: back(&c.b),
        }
    }

    /// Whether no two elements share a place.
    pub fn is_injective(&self) -> bool {
        self.size() <= self.span() && self.collision().is_none()
    }

    /// Whether every place has an element.
    pub fn is_surjective(&self) -> bool {
        if let Map::Form(form) = &self.map
            && let Verdict::Known(known) = form.surjective(&self.codomain)
        {
            return known;
        }
        let mut seen = vec![false; self.span() as usize];
        for index in indices(&self.shape) {
            seen[self.offset(&index) as usize] = true;
        }
        seen.into_iter().all(|s| s)
    }

    pub fn is_bijective(&self) -> bool {
        self.size() == self.span() && self.is_injective()
    }

    /// Fails with the two elements when a place is shared.
    pub fn require_injective(&self) -> Result<(), LayoutError> {
        if let Map::Form(form) = &self.map
            && matches!(form.collision(), Verdict::Open)
        {
            self.require_listable()?;
        }
        match self.collision() {
            None => Ok(()),
            Some(Collision { a, b }) => Err(LayoutError::Collision {
                place: self.eval(&a),
                a,
                b,
            }),
        }
    }

    /// The largest power of two `v` such that `v` elements, consecutive along the dimension
    /// from a multiple of `v`, lie in `v` consecutive places from a multiple of `v`: the last
    /// output counts them and the others stand still.
    pub fn vector_width(&self, dim: usize) -> i64 {
        let mut width = 1;
        while width < self.shape[dim] && self.is_contiguous(dim, 2 * width) {
            width *= 2;
        }
        width
    }

    fn is_contiguous(&self, dim: usize, width: i64) -> bool {
        if self.shape[dim] % width != 0 {
            return false;
        }
        if let Some(mut form) = self.form()
            && form.cut(dim, width).is_some()
        {
            return form.runs_along(dim, width);
        }
        let last = self.codomain.len() - 1;
        indices(&self.shape).all(|i| {
            let within = i[dim] % width;
            let mut start = i.clone();
            start[dim] -= within;
            let mut place = self.eval(&start);
            let aligned = place[last] % width == 0;
            place[last] += within;
            aligned && self.eval(&i) == place
        })
    }

    /// What is not decided on the closed form is looked at point by point, if there are few.
    fn require_listable(&self) -> Result<(), LayoutError> {
        match self.size() {
            elements if elements > TABLE_LIMIT => Err(LayoutError::TooLarge { elements }),
            _ => Ok(()),
        }
    }

    /// The row-major numbers of all places, where there is no closed form.
    pub fn listed(&self) -> Option<Vec<i64>> {
        let Map::Table(table) = &self.map else {
            return None;
        };
        let places = indices(&self.shape).map(|i| flatten(&table.eval(&i), &self.codomain));
        Some(places.collect())
    }

    /// Fails when an element lies outside the codomain.
    fn check_range(&self) -> Result<(), LayoutError> {
        if let Map::Form(form) = &self.map {
            let fits = |(out, &extent): (usize, &i64)| match Pieces::of(form, out) {
                Some(pieces) if pieces.max() < extent => true,
                _ => matches!(form.range(out), Verdict::Known((l, h)) if l >= 0 && h < extent),
            };
            if self.codomain.iter().enumerate().all(fits) {
                return Ok(());
            }
        }
        self.require_listable()?;
        for element in indices(&self.shape) {
            let place = self.eval(&element);
            for (output, (&value, &extent)) in place.iter().zip(&self.codomain).enumerate() {
                if !(0..extent).contains(&value) {
                    return Err(LayoutError::OutOfRange {
                        element,
                        output,
                        value,
                        extent,
                    });
                }
            }
        }
        Ok(())
    }
}

impl PartialEq for Layout {
    fn eq(&self, other: &Layout) -> bool {
        if self.shape != other.shape || self.codomain != other.codomain {
            return false;
        }
        if let (Map::Form(a), Map::Form(b)) = (&self.map, &other.map) {
            let verdict = if a.radix.shape() == b.radix.shape() {
                a.equals(b)
            } else {
                match (self.form(), other.form()) {
                    (Some(a), Some(b)) => a.equals(&b),
                    _ => Verdict::Open,
                }
            };
            if let Verdict::Known(known) = verdict {
                return known;
            }
        }
        indices(&self.shape).all(|i| self.eval(&i) == other.eval(&i))
    }
}

impl Eq for Layout {}

/// The layout of a closed form; without one, the function listed point by point.
fn closed_or_listed(
    shape: &[i64],
    codomain: &[i64],
    closed: Option<Form>,
    of: impl Fn(&[i64]) -> Vec<i64>,
) -> Result<Layout, LayoutError> {
    match closed {
        Some(form) => Layout::new(shape, codomain, form),
        None => Layout::tabulate(shape, codomain, |i| Ok(of(i))),
    }
}

/// The number of elements of a shape that can have a layout.
pub fn check_shape(shape: &[i64]) -> Result<i64, LayoutError> {
    let bad = || LayoutError::BadShape {
        shape: shape.to_vec(),
    };
    let mut size = 1i64;
    for &e in shape {
        if e < 1 {
            return Err(bad());
        }
        size = size
            .checked_mul(e)
            .filter(|&s| s <= MAX_ELEMENTS)
            .ok_or_else(bad)?;
    }
    Ok(size)
}
