//! Index expressions of closed forms, for the passes that lower accesses.

use tilewright_form::{Form, Formula, Fragment, FragmentInverse, Guard, Layout, Pieces, Verdict};
use tilewright_ir::Expr;

use crate::radix::{Digit, row_major_strides};

/// The outputs of a layout as expressions over the index, one expression a dimension, all of one
/// integer type. `None` when the layout has no closed form.
pub fn layout(layout: &Layout, index: &[Expr]) -> Option<Vec<Expr>> {
    if index.len() != layout.shape().len() || index.is_empty() {
        return None;
    }
    if let Some(closed) = layout.form() {
        return Some(form(&closed, index));
    }
    // The form may only exist over another box, often the flattened index.
    let raw = layout.raw_form()?;
    let flat = flattened(index, layout.shape());
    let flat = flat.unwrap_or_else(|| Expr::int(0, index[0].dtype()));
    Some(form(raw, &unflattened(&flat, raw.radix.shape())))
}

/// The thread and slot of an element's copy. `None` without a closed form.
pub fn fragment(fragment: &Fragment, index: &[Expr], replica: Option<Expr>) -> Option<[Expr; 2]> {
    let first = index.first()?;
    let replica = replica.unwrap_or_else(|| Expr::int(0, first.dtype()));
    let all: Vec<Expr> = index.iter().cloned().chain([replica]).collect();
    layout(fragment.layout(), &all)?.try_into().ok()
}

/// The index that a thread has in a slot, one expression a dimension (the copy last), and
/// the condition under which it has one; without a condition it always does.
pub fn inverse(of: &FragmentInverse, thread: &Expr, slot: &Expr) -> (Vec<Expr>, Option<Expr>) {
    let place = [thread.clone(), slot.clone()];
    let own = form(&of.form, &place);
    let guards = of
        .guards
        .iter()
        .map(|Guard { digit, below }| field(&place, digit, of.form.radix.shape()).lt(*below));
    let may_leave = |(out, &extent): (usize, &i64)| {
        let (low, high) = match (of.form.range(out), Pieces::of(&of.form, out)) {
            (Verdict::Known(range), _) => range,
            (Verdict::Open, Some(pieces)) => (0, pieces.max()),
            (Verdict::Open, None) => (i64::MIN, i64::MAX),
        };
        let below = (high >= extent).then(|| own[out].clone().lt(extent));
        let above = (low < 0).then(|| own[out].clone().ge(0));
        above.into_iter().chain(below).reduce(Expr::and)
    };
    let ranges = of.domain.iter().enumerate().filter_map(may_leave);
    let condition = guards.chain(ranges).reduce(Expr::and);
    if of.domain == of.full {
        return (own, condition);
    }
    // Through the row-major position: flatten, then cut at the strides of the shape.
    let flat = flattened(&own, &of.domain);
    let flat = flat.unwrap_or_else(|| Expr::int(0, thread.dtype()));
    (unflattened(&flat, &of.full), condition)
}

/// The outputs of a form as expressions over the input dimensions.
pub fn form(form: &Form, index: &[Expr]) -> Vec<Expr> {
    let formulas = form.formulas().into_iter();
    formulas
        .map(|f| sum(&f, index, form.radix.shape()))
        .collect()
}

/// The index at a row-major position.
fn unflattened(flat: &Expr, shape: &[i64]) -> Vec<Expr> {
    let strides = row_major_strides(shape);
    let size: i64 = shape.iter().product();
    let digits = shape.iter().zip(strides).map(|(&extent, stride)| {
        if extent == 1 {
            return Expr::int(0, flat.dtype());
        }
        let digit = Digit::new(0, stride, extent);
        field(std::slice::from_ref(flat), &digit, &[size])
    });
    digits.collect()
}

/// The row-major position of an index, dimensions of extent one left out.
fn flattened(index: &[Expr], shape: &[i64]) -> Option<Expr> {
    let long = index.iter().zip(shape).filter(|(_, e)| **e > 1);
    long.fold(None, |flat: Option<Expr>, (x, &e)| {
        Some(match flat {
            None => x.clone(),
            Some(f) => f * e + x,
        })
    })
}

fn sum(formula: &Formula, index: &[Expr], shape: &[i64]) -> Expr {
    let dtype = index[0].dtype();
    let offset = || Expr::int(formula.offset.into(), dtype);
    let mut total: Option<Expr> = None;
    for part in &formula.parts {
        let fields = part.fields.iter().map(|f| field(index, f, shape));
        let Some(value) = fields.reduce(|a, b| a ^ b) else {
            continue;
        };
        let scaled = match part.weight.abs() {
            1 => value,
            weight => value * weight,
        };
        total = Some(match total {
            None if part.weight < 0 => offset() - scaled,
            None => scaled,
            Some(sum) if part.weight < 0 => sum - scaled,
            Some(sum) => sum + scaled,
        });
    }
    let starts_negative = formula.parts.first().is_some_and(|p| p.weight < 0);
    match total {
        None => offset(),
        Some(total) if formula.offset == 0 || starts_negative => total,
        Some(total) => total + formula.offset,
    }
}

/// `x // div % extent`, without what does nothing.
fn field(index: &[Expr], digit: &Digit, shape: &[i64]) -> Expr {
    let x = index[digit.dim].clone();
    let shifted = match digit.div {
        1 => x,
        div => x.floor_div(div),
    };
    match digit.div * digit.extent >= shape[digit.dim] {
        true => shifted,
        false => shifted.floor_mod(digit.extent),
    }
}
