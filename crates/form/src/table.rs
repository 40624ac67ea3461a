//! Maps listed point by point, for what has no closed form.

use std::collections::HashMap;

use crate::decide::Collision;
use crate::error::{LayoutError, TABLE_LIMIT};
use crate::form::{Form, Sum};
use crate::radix::{flatten, indices, unflatten};

/// The outputs at every index of a box, in row-major order.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Table {
    shape: Vec<i64>,
    outs: usize,
    values: Vec<i64>,
}

impl Table {
    /// Lists a function. Fails when the box is larger than [`TABLE_LIMIT`].
    pub(crate) fn new(
        shape: &[i64],
        outs: usize,
        mut of: impl FnMut(&[i64]) -> Result<Vec<i64>, LayoutError>,
    ) -> Result<Table, LayoutError> {
        let elements: i64 = shape.iter().product();
        if elements > TABLE_LIMIT {
            return Err(LayoutError::TooLarge { elements });
        }
        let mut values = Vec::with_capacity(elements as usize * outs);
        for index in indices(shape) {
            values.extend(of(&index)?);
        }
        Ok(Table {
            shape: shape.to_vec(),
            outs,
            values,
        })
    }

    pub(crate) fn eval(&self, index: &[i64]) -> Vec<i64> {
        let at = flatten(index, &self.shape) as usize * self.outs;
        self.values[at..at + self.outs].to_vec()
    }

    /// The closed form of a table over powers of two whose outputs are XORs of columns, one for
    /// each bit of the index: read at the unit vectors, then checked at every point.
    pub(crate) fn recognise(&self) -> Option<Form> {
        if !self.shape.iter().all(|&e| (e as u64).is_power_of_two()) {
            return None;
        }
        let mut form = Form::identity(&self.shape);
        for (dim, &extent) in self.shape.iter().enumerate() {
            for bit in 1..extent.trailing_zeros() {
                form.cut(dim, 1 << bit)?;
            }
        }
        let zero = self.eval(&vec![0; self.shape.len()]);
        if zero.iter().any(|&z| z < 0) {
            return None;
        }
        // rows[out][bit of the output] = the digits that flip it
        let mut rows = vec![[0u64; 63]; self.outs];
        for (at, d) in form.radix.digits().iter().enumerate() {
            let mut unit = vec![0; self.shape.len()];
            unit[d.dim] = d.div;
            for (out, value) in self.eval(&unit).into_iter().enumerate() {
                if value < 0 {
                    return None;
                }
                let flips = (value ^ zero[out]) as u64;
                for (bit, row) in rows[out].iter_mut().enumerate() {
                    *row |= (flips >> bit & 1) << at;
                }
            }
        }
        form.outs.clear();
        for (out, rows) in rows.iter().enumerate() {
            let mut sum = Sum::constant(zero[out]);
            for (bit, &row) in rows.iter().enumerate() {
                let sign = 1 - 2 * (zero[out] >> bit & 1);
                sum.add(row, sign << bit);
            }
            form.outs.push(sum);
        }
        let agrees = indices(&self.shape).all(|i| form.eval(&i) == self.eval(&i));
        if !agrees {
            return None;
        }
        form.coalesce();
        Some(form)
    }

    pub(crate) fn collision(&self) -> Option<Collision> {
        collision_by_points(&self.shape, |i| self.eval(i))
    }
}

/// The first two indices of a box with one image.
pub(crate) fn collision_by_points(
    shape: &[i64],
    of: impl Fn(&[i64]) -> Vec<i64>,
) -> Option<Collision> {
    let mut seen: HashMap<Vec<i64>, i64> = HashMap::new();
    for (flat, index) in indices(shape).enumerate() {
        if let Some(first) = seen.insert(of(&index), flat as i64) {
            return Some(Collision {
                a: unflatten(first, shape),
                b: index,
            });
        }
    }
    None
}
