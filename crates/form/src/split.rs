//! Addresses in two parts: what a thread works out once, and what is known when compiling.
//!
//! The index of an access is a sum. Some summands are the thread's own, others are fixed when
//! compiling: constants, and indices of unrolled loops. Where no digit is touched by both kinds,
//! the place is
//!
//! ```text
//! place(own + fixed) = (place(own) ^ xor) + add
//! ```
//!
//! with `xor` and `add` that the fixed summands alone decide. A row of 64 elements in chunks of
//! eight, swizzled by its number, read at row `lane + 16 t` and column `8 h + 16`:
//!
//! | summand | digits | rows of the form | effect |
//! |---|---|---|---|
//! | `lane` < 16 | `i` below 16 | | own |
//! | `8 h`, `h` < 2 | bit 3 of `j` | | own |
//! | `16 t` | `i / 16` | `i / 16`, weight 1024 | `add` 1024 t |
//! | `16` | bit 4 of `j` | `j4 ⊕ i1`, weight 16 | `xor` 16 |
//!
//! So a swizzle costs a thread one computation and an XOR for each constant, instead of one for
//! each access, and the rest is an offset in the instruction.
//!
//! Digits of an unrolled index may also go several ways, as where bits of the row's number are
//! XORed into a chunk and count the row as well. Then the fixed summands go through the layout
//! together, at compile time, and a mask takes the place apart:
//!
//! ```text
//! place(own + fixed) = (place(own) ^ (place(fixed) & mask)) + (place(fixed) & !mask)
//! ```
//!
//! What is known at run time only may still be the same for all threads, as the version of a tile.
//! Where it does nothing but add, it comes off too.

use crate::form::{Form, Term};
use crate::layout::Layout;

/// A summand of the index along one dimension: a multiple of `multiple`, from zero to `most`.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Part {
    pub dim: usize,
    pub multiple: i64,
    pub most: i64,
    pub kind: Kind,
}

#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// Known at run time only.
    Own,
    /// Known at run time only, and the same for all threads: it comes off where it only adds.
    Shared,
    /// The index of an unrolled loop, or such.
    Unrolled,
    /// This very number.
    Constant(i64),
}

/// What a summand does to the place.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Effect {
    /// It is an argument of `place(own)`.
    Own,
    /// It adds this multiple of itself.
    Add(i64),
    /// This multiple of itself is XORed.
    Xor(i64),
    /// A constant, which is in [`Split::add`] and [`Split::xor`].
    Counted,
    /// It is an argument of `place(fixed)`, of which the bits of [`Split::mask`] are XORed and the
    /// others added.
    Fixed,
}

#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Split {
    /// For each part.
    pub effects: Vec<Effect>,
    pub add: i64,
    pub xor: i64,
    pub mask: i64,
}

impl Layout {
    /// Takes the summands of an index apart. `None` where all of them have to go through the
    /// layout together.
    pub fn split(&self, parts: &[Part]) -> Option<Split> {
        let mut form = self.flatten().ok()?.form()?;
        let mut own: Vec<bool> = parts.iter().map(|p| p.kind == Kind::Own).collect();
        // What cannot be taken apart joins the thread's own summands, until the rest can.
        loop {
            if own.iter().all(|&o| o) {
                return None;
            }
            let masks = masks(&mut form, parts, &own)?;
            match effects(&form, parts, &own, &masks) {
                Ok(split) => return Some(split),
                Err(part) => own[part] = true,
            }
        }
    }
}

/// The digits that each summand touches. Own summands that share digits may carry into others,
/// so they count as one.
fn masks(form: &mut Form, parts: &[Part], own: &[bool]) -> Option<Vec<u64>> {
    let mut masks = vec![0; parts.len()];
    for dim in 0..form.radix.shape().len() {
        let mut groups: Vec<(Vec<usize>, i64, i64)> = Vec::new();
        for (at, p) in parts.iter().enumerate().filter(|(_, p)| p.dim == dim) {
            groups.push((vec![at], p.multiple, p.most));
        }
        loop {
            for (_, multiple, most) in &groups {
                form.cut(dim, *multiple)?;
                form.cut(dim, end(*multiple, *most)?)?;
            }
            let touched = |g: &(Vec<usize>, i64, i64)| digits(form, dim, g.1, g.2);
            let meet = (0..groups.len())
                .flat_map(|b| (0..b).map(move |a| (a, b)))
                .find(|&(a, b)| {
                    let both_own = own[groups[a].0[0]] && own[groups[b].0[0]];
                    both_own && touched(&groups[a]) & touched(&groups[b]) != 0
                });
            let Some((a, b)) = meet else {
                for group in &groups {
                    for &at in &group.0 {
                        masks[at] = touched(group);
                    }
                }
                break;
            };
            let (members, multiple, most) = groups.remove(b);
            groups[a].0.extend(members);
            groups[a].1 = gcd(groups[a].1, multiple);
            groups[a].2 = groups[a].2.checked_add(most)?;
        }
    }
    Some(masks)
}

/// A cut above all multiples up to `most`.
fn end(multiple: i64, most: i64) -> Option<i64> {
    let steps = u64::try_from(most / multiple).ok()? + 1;
    multiple.checked_mul(i64::try_from(steps.next_power_of_two()).ok()?)
}

/// The digits that are not zero for every multiple up to `most`.
fn digits(form: &Form, dim: usize, multiple: i64, most: i64) -> u64 {
    let all = form.radix.digits().iter().enumerate();
    all.filter(|(_, d)| d.dim == dim && d.div <= most && multiple % (d.div * d.extent) != 0)
        .fold(0, |mask, (at, _)| mask | 1 << at)
}

/// The split, or a summand that has to be the thread's own.
fn effects(form: &Form, parts: &[Part], own: &[bool], masks: &[u64]) -> Result<Split, usize> {
    let fixed = |at: &usize| !own[*at];
    let last_fixed = (0..parts.len()).rfind(fixed).unwrap_or(0);
    let [sum] = form.outs.as_slice() else {
        return Err(last_fixed);
    };
    let mine = (0..parts.len())
        .filter(|&at| own[at])
        .fold(0, |m, at| m | masks[at]);
    for at in (0..parts.len()).filter(fixed) {
        let others = (0..parts.len()).filter(|&b| b != at);
        let taken = others.fold(0, |m, b| m | masks[b]);
        if taken & masks[at] != 0 {
            return Err(at);
        }
    }
    let reach = masks.iter().fold(0, |m, x| m | x);
    let rows: Vec<Term> = sum
        .terms
        .iter()
        .map(|t| Term {
            row: t.row & reach,
            weight: t.weight,
        })
        .filter(|t| t.row != 0)
        .collect();
    let is_xor = |row: u64| row & mine != 0 && row & !mine != 0;
    for t in rows.iter().filter(|t| is_xor(t.row)) {
        if !stands_alone(form, sum.offset, &rows, mine, t.weight) {
            let at = (0..parts.len()).rfind(|at| fixed(at) && masks[*at] & t.row != 0);
            return Err(at.unwrap_or(last_fixed));
        }
    }

    let mut split = Split {
        effects: vec![Effect::Own; parts.len()],
        add: 0,
        xor: 0,
        mask: 0,
    };
    let mut shared = 0;
    for (at, part) in parts.iter().enumerate().filter(|(at, _)| fixed(at)) {
        if part.kind != Kind::Shared {
            continue;
        }
        match ratio(form, &rows, masks[at], mine) {
            Some(effect @ Effect::Add(_)) => split.effects[at] = effect,
            _ => return Err(at),
        }
        shared |= masks[at];
    }
    let mut index = vec![0; form.radix.shape().len()];
    let mut constants = 0;
    for (at, part) in parts.iter().enumerate().filter(|(at, _)| fixed(at)) {
        match part.kind {
            Kind::Constant(c) => {
                index[part.dim] += c;
                constants |= masks[at];
                split.effects[at] = Effect::Counted;
            }
            Kind::Shared => {}
            Kind::Own | Kind::Unrolled => match ratio(form, &rows, masks[at], mine) {
                Some(effect) => split.effects[at] = effect,
                None => {
                    let mask = together(form, sum.offset, &rows, mine, shared).ok_or(at)?;
                    let kinds = parts.iter().map(|p| p.kind);
                    for (at, kind) in kinds.enumerate().filter(|(at, _)| fixed(at)) {
                        if kind != Kind::Shared {
                            split.effects[at] = Effect::Fixed;
                        }
                    }
                    return Ok(Split {
                        add: 0,
                        xor: 0,
                        mask,
                        ..split
                    });
                }
            },
        }
    }
    let values: Vec<i64> = (0..form.radix.digits().len())
        .map(|at| form.radix.value(at, &index))
        .collect();
    for t in rows.iter().filter(|t| t.row & constants != 0) {
        let known = t.row & constants;
        let value = match t.row.is_power_of_two() {
            true => values[known.trailing_zeros() as usize],
            false => (0..values.len())
                .filter(|d| known >> d & 1 == 1)
                .fold(0, |odd, d| odd ^ (values[d] & 1)),
        };
        match is_xor(t.row) {
            true => split.xor += t.weight * value,
            false => split.add += t.weight * value,
        }
    }
    Ok(split)
}

/// The bits that are XORed where all fixed summands but shared ones go through the layout, if each
/// is that of one row.
fn together(form: &Form, offset: i64, rows: &[Term], mine: u64, shared: u64) -> Option<i64> {
    // Both places would have it.
    if offset != 0 {
        return None;
    }
    let mut mask = 0;
    for t in rows
        .iter()
        .filter(|t| t.row & mine != 0 && t.row & !mine != 0)
    {
        if !stands_alone(form, offset, rows, !(mine | shared), t.weight) {
            return None;
        }
        mask |= t.weight;
    }
    Some(mask)
}

/// Whether the bit of this weight in the place of some digits is the value of one row alone.
fn stands_alone(form: &Form, offset: i64, rows: &[Term], mine: u64, weight: i64) -> bool {
    if weight <= 0 || weight & (weight - 1) != 0 || offset != 0 {
        return false;
    }
    let own = || rows.iter().filter(|t| t.row & mine != 0);
    let below = own().filter(|t| t.weight < weight);
    let reach = |t: &Term| t.weight * (form.extent(t.row & mine) - 1);
    own().all(|t| t.weight > 0)
        && below.map(reach).sum::<i64>() < weight
        && own().filter(|t| t.weight == weight).count() == 1
        && own().all(|t| t.weight <= weight || t.weight % (2 * weight) == 0)
}

/// What a summand does whose digits count on in the place as they do in the index.
fn ratio(form: &Form, rows: &[Term], mask: u64, mine: u64) -> Option<Effect> {
    let mut found: Option<(i64, bool)> = None;
    for (at, digit) in form.radix.digits().iter().enumerate() {
        if mask >> at & 1 == 0 {
            continue;
        }
        let mut with = rows.iter().filter(|t| t.row >> at & 1 == 1);
        let (Some(t), None) = (with.next(), with.next()) else {
            return None;
        };
        // Alone, or in a parity with the thread's own bits.
        let alone = t.row & !mine == 1 << at;
        if !alone || t.weight % digit.div != 0 {
            return None;
        }
        let this = (t.weight / digit.div, t.row & mine != 0);
        if *found.get_or_insert(this) != this {
            return None;
        }
    }
    found.map(|(ratio, xor)| match xor {
        true => Effect::Xor(ratio),
        false => Effect::Add(ratio),
    })
}

fn gcd(a: i64, b: i64) -> i64 {
    match b {
        0 => a,
        _ => gcd(b, a % b),
    }
}
