//! Layouts that users wrote as expressions, brought to closed form; the IR keeps that.
//!
//! Sums, products with constants, `//`, `%`, shifts, `^`, `&` and `|` of index variables are
//! followed symbolically, each sub-expression a [`Form`] with one output. What leaves that reach
//! (a carry across a cut, a product of variables, a `select`) is evaluated at every element of
//! the shape instead, up to [`TABLE_LIMIT`](crate::TABLE_LIMIT) elements, and recognised again
//! if it turns out to be linear over bits. Maps that put two elements in one place or leave
//! their space are refused with the elements that show it.

use tilewright_ir::{BinOp, Expr, ExprKind, FragmentMap, IndexMap, UnOp, Var};

use tilewright_arith::fold_int;
use tilewright_form::{Pieces, check_shape};

use crate::radix::{Radix, indices};
use crate::{Form, Fragment, Layout, LayoutError, Sum, Verdict};

/// How deep an expression may nest; deeper ones are refused rather than overflow the stack.
const MAX_DEPTH: u32 = 256;

/// The layout of an index map over a shape, injective; its codomain is as large as it needs.
pub fn index_map(map: &IndexMap, shape: &[i64]) -> Result<Layout, LayoutError> {
    let outputs: Vec<&Expr> = map.outputs.iter().collect();
    let layout = convert(&map.inputs, &outputs, shape, &[])?;
    layout.require_injective()?;
    Ok(layout)
}

/// The fragment of a fragment map over a shape, in a block of `threads` threads.
pub fn fragment_map(
    map: &FragmentMap,
    shape: &[i64],
    threads: i64,
) -> Result<Fragment, LayoutError> {
    let mut inputs = map.inputs.clone();
    let mut full = shape.to_vec();
    // Without a variable the copies are all the same, and one is enough to say so.
    let replicas = map.replica.map_or(1, |_| map.replicas.into());
    inputs.extend(map.replica);
    full.push(replicas);
    let mut outputs = vec![&map.thread];
    outputs.extend(&map.slots);
    // With no variable for the copy the trailing dimension of extent one is unnamed.
    let placed = convert(&inputs, &outputs, &full, &[threads])?;
    let slots: i64 = placed.codomain()[1..].iter().product();
    let to_slot = Layout::linear(&placed.codomain()[1..])?;
    let split = Layout::concat(&Layout::identity(&[threads])?, &to_slot)?;
    Fragment::new(placed.then(&split)?.within(&[threads, slots])?)
}

/// The map from a loop's indices to a buffer's, given as expressions over the loop's variables;
/// it need not be injective. `None` when it has no closed form or leaves the buffer.
pub fn access(inputs: &[Var], outputs: &[Expr], shape: &[i64], buffer: &[i64]) -> Option<Layout> {
    let symbolic = Symbolic { inputs, shape };
    let forms: Option<Vec<Form>> = outputs.iter().map(|e| symbolic.of(e, 0)).collect();
    let form = side_by_side(forms?)?;
    Layout::new(shape, buffer, form).ok()
}

/// The map of the outputs over the shape; `extents` fixes the first outputs' ranges, the others
/// are as large as they need to be.
fn convert(
    inputs: &[Var],
    outputs: &[&Expr],
    shape: &[i64],
    extents: &[i64],
) -> Result<Layout, LayoutError> {
    check_shape(shape)?;
    let named = &shape[..inputs.len().min(shape.len())];
    if inputs.len() > shape.len() || shape[inputs.len()..].iter().any(|&e| e != 1) {
        return Err(LayoutError::Shape {
            expected: shape.to_vec(),
            found: named.to_vec(),
        });
    }
    if outputs.is_empty() {
        return Err(LayoutError::NotAMap {
            what: "a map without outputs".to_owned(),
        });
    }
    let symbolic = Symbolic { inputs, shape };
    let forms: Option<Vec<Form>> = outputs.iter().map(|e| symbolic.of(e, 0)).collect();
    if let Some(form) = forms.and_then(side_by_side) {
        let mut codomain = Vec::with_capacity(form.outs.len());
        for out in 0..form.outs.len() {
            let (low, high) = range(&form, out);
            if low < 0 {
                return Err(negative(&form, out));
            }
            codomain.push(extents.get(out).copied().unwrap_or(high + 1));
        }
        return Layout::new(shape, &codomain, form);
    }
    let mut codomain = vec![1i64; outputs.len()];
    codomain[..extents.len()].copy_from_slice(extents);
    let layout = |codomain: &[i64], seen: &mut dyn FnMut(usize, i64)| {
        Layout::tabulate(shape, codomain, |index| {
            let mut place = Vec::with_capacity(outputs.len());
            for (out, e) in outputs.iter().enumerate() {
                let value = evaluate(e, inputs, index, 0)?;
                let value = i64::try_from(value).unwrap_or(i64::MAX);
                seen(out, value);
                place.push(value);
            }
            Ok(place)
        })
    };
    // One pass to see how far the outputs go (too far for now, so its error is dropped), and
    // one to list them.
    let mut needed = codomain.clone();
    let first = layout(&codomain, &mut |out, value| {
        if out >= extents.len() {
            needed[out] = needed[out].max(value.saturating_add(1));
        }
    });
    match first {
        Err(LayoutError::OutOfRange { .. }) => layout(&needed, &mut |_, _| {}),
        done => done,
    }
}

fn side_by_side(forms: Vec<Form>) -> Option<Form> {
    let mut forms = forms.into_iter();
    let mut all = forms.next()?;
    for mut form in forms {
        all.align(&mut form)?;
        all.outs.append(&mut form.outs);
    }
    all.coalesce();
    Some(all)
}

fn range(form: &Form, out: usize) -> (i64, i64) {
    match form.range(out) {
        Verdict::Known(range) => range,
        Verdict::Open => {
            let values = indices(form.radix.shape()).map(|i| form.eval(&i)[out]);
            values.fold((i64::MAX, i64::MIN), |(l, h), v| (l.min(v), h.max(v)))
        }
    }
}

fn negative(form: &Form, output: usize) -> LayoutError {
    let mut all = indices(form.radix.shape());
    let element = all.find(|i| form.eval(i)[output] < 0).unwrap_or_default();
    let value = form.eval(&element)[output];
    LayoutError::OutOfRange {
        element,
        output,
        value,
        extent: value.saturating_neg(),
    }
}

struct Symbolic<'a> {
    inputs: &'a [Var],
    shape: &'a [i64],
}

impl Symbolic<'_> {
    /// The expression as a form with one output, where it is one.
    fn of(&self, e: &Expr, depth: u32) -> Option<Form> {
        if depth > MAX_DEPTH || !e.dtype().is_scalar() {
            return None;
        }
        let form = match e.kind() {
            ExprKind::Int(value) => self.constant(i64::try_from(*value).ok()?),
            ExprKind::Var(var) => {
                let dim = self.inputs.iter().position(|v| v == var)?;
                let radix = Radix::new(self.shape);
                Form {
                    outs: vec![Form::dimension(&radix, dim)],
                    radix,
                }
            }
            ExprKind::Cast(inner) if e.dtype().scalar.is_int() => self.of(inner, depth + 1)?,
            ExprKind::Binary(op, a, b) => match plain_constant(b) {
                Some(c) if takes_constant(*op) => by_constant(*op, self.of(a, depth + 1)?, c)?,
                _ => binary(*op, self.of(a, depth + 1)?, self.of(b, depth + 1)?)?,
            },
            _ => return None,
        };
        // A value that leaves its type wraps around, which is no sum any more.
        let (low, high) = loose_range(&form)?;
        let (least, most) = e.dtype().scalar.int_range()?;
        (least <= low && high <= most).then_some(form)
    }

    fn constant(&self, value: i64) -> Form {
        Form {
            radix: Radix::new(self.shape),
            outs: vec![Sum::constant(value)],
        }
    }
}

/// Bounds that are never too narrow; `None` when they leave what forms can count.
fn loose_range(form: &Form) -> Option<(i128, i128)> {
    let sum = &form.outs[0];
    let (mut low, mut high) = (sum.offset as i128, sum.offset as i128);
    for t in &sum.terms {
        let reach = t.weight as i128 * (form.extent(t.row) - 1) as i128;
        low += reach.min(0);
        high += reach.max(0);
    }
    let limit = 1i128 << 60;
    (low > -limit && high < limit).then_some((low, high))
}

fn binary(op: BinOp, a: Form, b: Form) -> Option<Form> {
    match op {
        BinOp::Add => linear(a, b, 1),
        BinOp::Sub => linear(a, b, -1),
        BinOp::Mul => match (as_constant(&a), as_constant(&b)) {
            (Some(c), _) => scaled(b, c),
            (_, Some(c)) => scaled(a, c),
            _ => None,
        },
        BinOp::BitXor => Form::xor(&a, &b),
        BinOp::BitAnd => Form::and(&a, &b),
        BinOp::BitOr => Form::or(&a, &b),
        _ if takes_constant(op) => by_constant(op, a, as_constant(&b)?),
        _ => None,
    }
}

/// Whether [`by_constant`] knows the operation.
fn takes_constant(op: BinOp) -> bool {
    matches!(
        op,
        BinOp::Mul
            | BinOp::Shl
            | BinOp::FloorDiv
            | BinOp::TruncDiv
            | BinOp::FloorMod
            | BinOp::TruncMod
            | BinOp::Shr
    )
}

fn by_constant(op: BinOp, a: Form, c: i64) -> Option<Form> {
    match op {
        BinOp::Mul => scaled(a, c),
        BinOp::Shl => scaled(a, 1i64.checked_shl(c.try_into().ok()?)?),
        BinOp::FloorDiv | BinOp::TruncDiv => divided(op, a, c, Part::Quotient),
        BinOp::FloorMod | BinOp::TruncMod => divided(op, a, c, Part::Remainder),
        BinOp::Shr => {
            let by = u32::try_from(c).ok().filter(|&s| s < 60)?;
            divided(BinOp::FloorDiv, a, 1 << by, Part::Quotient)
        }
        _ => None,
    }
}

/// The value of a constant of moderate size, as it is written.
fn plain_constant(e: &Expr) -> Option<i64> {
    let value = e.as_int().filter(|_| e.dtype().is_scalar())?;
    let (least, most) = e.dtype().scalar.int_range()?;
    let small = (least..=most).contains(&value) && value.abs() < 1 << 60;
    small.then(|| i64::try_from(value).ok()).flatten()
}

fn as_constant(form: &Form) -> Option<i64> {
    let sum = &form.outs[0];
    sum.terms.is_empty().then_some(sum.offset)
}

fn linear(mut a: Form, mut b: Form, sign: i64) -> Option<Form> {
    a.align(&mut b)?;
    a.outs[0].add_scaled(&b.outs[0], sign);
    a.coalesce();
    Some(a)
}

fn scaled(form: Form, by: i64) -> Option<Form> {
    let (low, high) = loose_range(&form)?;
    let reach = low.abs().max(high.abs()) * by.unsigned_abs() as i128;
    if reach >= 1 << 60 {
        return None;
    }
    let mut sum = Sum::default();
    sum.add_scaled(&form.outs[0], by);
    let mut form = Form {
        radix: form.radix,
        outs: vec![sum],
    };
    form.coalesce();
    Some(form)
}

/// What is wanted of a division.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Part {
    Quotient,
    Remainder,
}

/// The quotient or the remainder by a positive constant.
fn divided(op: BinOp, form: Form, by: i64, part: Part) -> Option<Form> {
    if by <= 0 {
        return None;
    }
    let truncates = matches!(op, BinOp::TruncDiv | BinOp::TruncMod);
    if truncates && loose_range(&form)?.0 < 0 {
        return None;
    }
    // Whole multiples of the divisor go straight to the quotient, whatever the rest does.
    let sum = &form.outs[0];
    let mut whole = Sum::constant(sum.offset.div_euclid(by));
    let mut rest = Sum::constant(sum.offset.rem_euclid(by));
    for t in &sum.terms {
        if t.weight % by == 0 {
            whole.add(t.row, t.weight / by);
        } else {
            rest.add(t.row, t.weight);
        }
    }
    let over = |radix: &Radix, sum| Form {
        radix: radix.clone(),
        outs: vec![sum],
    };
    let rest = over(&form.radix, rest);
    let most = Pieces::of(&rest, 0)?.max();
    if most < by {
        return Some(match part {
            Part::Quotient => over(&form.radix, whole),
            Part::Remainder => rest,
        });
    }
    let mut digits = Form::identity(&[most + 1]);
    digits.cut(0, by)?;
    let at = digits.radix.position(0, by)?;
    let mut sum = match part {
        Part::Quotient => Sum::default(),
        Part::Remainder => digits.outs[0].clone(),
    };
    for (i, d) in digits.radix.digits().iter().enumerate().skip(at) {
        match part {
            Part::Quotient => sum.add(1 << i, d.div / by),
            Part::Remainder => sum.add(1 << i, -d.div),
        }
    }
    let wanted = rest.then(&over(&digits.radix, sum))?;
    match part {
        Part::Quotient => linear(over(&form.radix, whole), wanted, 1),
        Part::Remainder => Some(wanted),
    }
}

/// The value of an integer expression over index variables.
fn evaluate(e: &Expr, inputs: &[Var], index: &[i64], depth: u32) -> Result<i128, LayoutError> {
    let refuse = |what: &str| LayoutError::NotAMap {
        what: what.to_owned(),
    };
    if depth > MAX_DEPTH {
        return Err(refuse("an expression nested this deep"));
    }
    let of = |e: &Expr| evaluate(e, inputs, index, depth + 1);
    let scalar = e.dtype().scalar;
    if scalar.int_range().is_none() || !e.dtype().is_scalar() {
        return Err(refuse("a value that is no integer"));
    }
    let value = match e.kind() {
        ExprKind::Int(value) => *value,
        ExprKind::Var(var) => {
            let dim = inputs.iter().position(|v| v == var);
            let value = dim.and_then(|d| index.get(d));
            *value.ok_or_else(|| refuse("a variable from outside the map"))? as i128
        }
        ExprKind::Cast(inner) => of(inner)?,
        ExprKind::Unary(UnOp::Not, a) => (of(a)? == 0) as i128,
        ExprKind::Unary(UnOp::BitNot, a) => !of(a)?,
        ExprKind::Select {
            cond,
            then,
            otherwise,
        }
        | ExprKind::IfThenElse {
            cond,
            then,
            otherwise,
        } => of(if of(cond)? != 0 { then } else { otherwise })?,
        ExprKind::Binary(op, a, b) => {
            let (x, y) = (of(a)?, of(b)?);
            let value = fold_int(*op, x, y, a.dtype().scalar);
            value.ok_or_else(|| refuse("a division by zero or a shift out of range"))?
        }
        _ => return Err(refuse("a load or a call")),
    };
    Ok(scalar.wrap(value))
}
