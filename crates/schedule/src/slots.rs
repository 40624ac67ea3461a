//! Which version of a buffer an access means, and whether two accesses mean different ones.
//!
//! A slot is an integer, usually a linear form of loop indices modulo the number of versions:
//! `(k + 2) % 3`. Two accesses in the same iteration are apart where their forms differ by a
//! constant that the modulus does not divide. Across iterations a form is carried along: what
//! was `(k + 2) % 3` is `(k + 1) % 3` in terms of the next iteration's `k`, and once the loop is
//! left `k` is its last value. Forms that are known to be zero ([`crate::facts`]) tell more apart:
//! where `T - 2` is zero, `T % 2` is not 1.

use rustc_hash::FxHashMap;
use tilewright_arith::{Analyzer, Congruence, Interval};
use tilewright_ir::{BinOp, Expr, ExprKind, Var};

use crate::footprint::gcd;

/// A linear form, or its remainder.
#[derive(Clone, PartialEq, Eq, Hash, Debug, Default)]
pub struct Form {
    /// Factors of atoms, by the atom's number; none is zero.
    terms: Vec<(u32, i64)>,
    constant: i64,
    /// Zero for the form itself.
    modulus: i64,
}

/// A form by its number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Slot(u32);

/// The slots of a kernel.
#[derive(Debug, Default)]
pub struct Slots {
    atoms: FxHashMap<Expr, u32>,
    /// The atoms that are variables.
    vars: FxHashMap<Var, u32>,
    /// The variables of each atom.
    mentions: Vec<Vec<Var>>,
    forms: Vec<Form>,
    numbers: FxHashMap<Form, Slot>,
}

impl Slots {
    /// The slot that an expression is. Versions are small numbers: nothing wraps.
    pub fn of(&mut self, e: &Expr) -> Option<Slot> {
        let form = match e.kind() {
            ExprKind::Binary(BinOp::FloorMod, a, b) => {
                let modulus = i64::try_from(b.as_int()?).ok().filter(|m| *m > 0)?;
                Form {
                    modulus,
                    ..self.linear(a, &mut |_| true)?
                }
            }
            _ => self.linear(e, &mut |_| true)?,
        };
        Some(self.number(form))
    }

    /// An integer expression's value as a form. Arithmetic that may wrap is left as it is.
    pub fn value(&mut self, e: &Expr, known: &mut Analyzer) -> Option<Slot> {
        let form = self.linear(e, &mut |node| is_exact(node, known))?;
        Some(self.number(form))
    }

    /// Whether the slots are certainly different where the other forms are zero.
    pub fn differ(&self, a: Slot, b: Slot, zeros: &[Slot]) -> bool {
        let (a, b) = (self.form(a), self.form(b));
        let modulus = gcd(a.modulus, b.modulus);
        if zeros.is_empty() && a.terms != b.terms && modulus == 0 {
            return false;
        }
        let Some(mut distance) = plus(a, b, -1) else {
            return false;
        };
        for zero in zeros {
            match without(&distance, self.form(*zero)) {
                Some(less) => distance = less,
                None => return false,
            }
        }
        if modulus == 0 {
            return distance.terms.is_empty() && distance.constant != 0;
        }
        // What is a multiple of the modulus makes no difference.
        let mut factors = distance.terms.iter().map(|(_, factor)| factor);
        factors.all(|f| f % modulus == 0) && distance.constant.rem_euclid(modulus) != 0
    }

    /// The slot with `var + by` in place of the variable; `None` where that is no form.
    pub fn shifted(&mut self, slot: Slot, var: Var, by: i64) -> Option<Slot> {
        let form = self.form(slot);
        match self.factor(form, var)? {
            0 => Some(slot),
            factor => {
                let mut form = form.clone();
                form.constant = form.constant.checked_add(factor.checked_mul(by)?)?;
                Some(self.number(form))
            }
        }
    }

    /// The slot with a value in place of the variable, `residue` being what is known of the
    /// value's remainders.
    pub fn with_value(
        &mut self,
        slot: Slot,
        var: Var,
        value: Slot,
        residue: Congruence,
    ) -> Option<Slot> {
        let form = self.form(slot);
        let factor = self.factor(form, var)?;
        if factor == 0 {
            return Some(slot);
        }
        let atom = *self.vars.get(&var)?;
        let mut rest = form.clone();
        rest.terms.retain(|(other, _)| *other != atom);
        let remainder = residue.remainder(form.modulus.into());
        if let Some(remainder) = remainder.and_then(|r| i64::try_from(r).ok()) {
            let more = remainder.checked_mul(factor)?;
            rest.constant = rest.constant.checked_add(more)?;
            return Some(self.number(rest));
        }
        let value = self.form(value);
        if value.modulus != 0 {
            return None;
        }
        let form = plus(&rest, value, factor)?;
        Some(self.number(form))
    }

    /// The value less a number.
    pub fn less(&mut self, slot: Slot, by: i64) -> Option<Slot> {
        let mut form = self.form(slot).clone();
        form.constant = form.constant.checked_sub(by)?;
        (form.modulus == 0).then(|| self.number(form))
    }

    /// The difference of two values.
    pub fn minus(&mut self, a: Slot, b: Slot) -> Option<Slot> {
        let (a, b) = (self.form(a), self.form(b));
        if a.modulus != 0 || b.modulus != 0 {
            return None;
        }
        let form = plus(a, b, -1)?;
        Some(self.number(form))
    }

    /// The sum of two values, if it is a number.
    pub fn constant_sum(&self, a: Slot, b: Slot) -> Option<i64> {
        let (a, b) = (self.form(a), self.form(b));
        let opposite = a.terms.len() == b.terms.len()
            && a.terms
                .iter()
                .zip(&b.terms)
                .all(|(x, y)| x.0 == y.0 && x.1.checked_neg() == Some(y.1));
        let plain = a.modulus == 0 && b.modulus == 0;
        (plain && opposite).then(|| a.constant.checked_add(b.constant))?
    }

    /// By how much one value is more than another, if that is a number.
    pub fn constant_difference(&self, a: Slot, b: Slot) -> Option<i64> {
        let (a, b) = (self.form(a), self.form(b));
        let plain = a.modulus == 0 && b.modulus == 0;
        (plain && a.terms == b.terms).then(|| a.constant.checked_sub(b.constant))?
    }

    /// The slot's value, if it is a number.
    pub fn constant(&self, slot: Slot) -> Option<i64> {
        let form = self.form(slot);
        (form.terms.is_empty() && form.modulus == 0).then_some(form.constant)
    }

    /// Whether a form that is zero gives one of its atoms a value.
    pub fn solves(&self, zero: Slot) -> bool {
        unit(self.form(zero)).is_some()
    }

    /// The value with the atom put in that the other form, being zero, [solves](Self::solves).
    pub fn where_zero(&mut self, slot: Slot, zero: Slot) -> Option<Slot> {
        let form = without(self.form(slot), self.form(zero))?;
        Some(self.number(form))
    }

    /// Whether the slot depends on the variable.
    pub fn mentions(&self, slot: Slot, test: impl Fn(Var) -> bool) -> bool {
        let form = &self.forms[slot.0 as usize];
        let mut atoms = form.terms.iter();
        atoms.any(|(atom, _)| self.mentions[*atom as usize].iter().any(|v| test(*v)))
    }

    fn form(&self, slot: Slot) -> &Form {
        &self.forms[slot.0 as usize]
    }

    /// The variable's factor; `None` where it is inside another atom.
    fn factor(&self, form: &Form, var: Var) -> Option<i64> {
        let own = self.vars.get(&var);
        let mut found = 0;
        for (atom, factor) in &form.terms {
            if Some(atom) == own {
                found = *factor;
            } else if self.mentions[*atom as usize].contains(&var) {
                return None;
            }
        }
        Some(found)
    }

    fn number(&mut self, form: Form) -> Slot {
        if let Some(known) = self.numbers.get(&form) {
            return *known;
        }
        let slot = Slot(self.forms.len() as u32);
        self.forms.push(form.clone());
        self.numbers.insert(form, slot);
        slot
    }

    /// The form of an expression; nodes that are not exact are atoms.
    fn linear(&mut self, e: &Expr, exact: &mut dyn FnMut(&Expr) -> bool) -> Option<Form> {
        let mut terms = FxHashMap::default();
        let mut constant = 0;
        self.add(e, 1, &mut terms, &mut constant, exact)?;
        Some(Form {
            terms: sorted(terms),
            constant,
            modulus: 0,
        })
    }

    fn add(
        &mut self,
        e: &Expr,
        factor: i64,
        terms: &mut FxHashMap<u32, i64>,
        constant: &mut i64,
        exact: &mut dyn FnMut(&Expr) -> bool,
    ) -> Option<()> {
        match e.kind() {
            ExprKind::Int(value) => {
                let value = i64::try_from(*value).ok()?.checked_mul(factor)?;
                *constant = constant.checked_add(value)?;
            }
            ExprKind::Binary(BinOp::Add, a, b) if exact(e) => {
                self.add(a, factor, terms, constant, exact)?;
                self.add(b, factor, terms, constant, exact)?;
            }
            ExprKind::Binary(BinOp::Sub, a, b) if exact(e) => {
                self.add(a, factor, terms, constant, exact)?;
                self.add(b, factor.checked_neg()?, terms, constant, exact)?;
            }
            ExprKind::Binary(BinOp::Mul, a, b) if b.as_int().is_some() && exact(e) => {
                let by = i64::try_from(b.as_int()?).ok()?;
                self.add(a, factor.checked_mul(by)?, terms, constant, exact)?;
            }
            _ => {
                let atom = self.atom(e)?;
                let known = terms.entry(atom).or_insert(0);
                *known = known.checked_add(factor)?;
            }
        }
        Some(())
    }

    /// An expression that stays as it is. Memory may change, so loads are none.
    fn atom(&mut self, e: &Expr) -> Option<u32> {
        if let Some(known) = self.atoms.get(e) {
            return Some(*known);
        }
        let mut vars = Vec::new();
        let mut loads = false;
        e.walk(&mut |node| {
            vars.extend(node.as_var());
            loads |= matches!(node.kind(), ExprKind::Load { .. });
        });
        if loads {
            return None;
        }
        let atom = self.mentions.len() as u32;
        self.mentions.push(vars);
        self.atoms.insert(e.clone(), atom);
        self.vars.extend(e.as_var().map(|var| (var, atom)));
        Some(atom)
    }
}

/// Whether a sum, difference or product never wraps.
fn is_exact(e: &Expr, known: &mut Analyzer) -> bool {
    let ExprKind::Binary(op, a, b) = e.kind() else {
        return false;
    };
    let (a, b) = (known.const_bounds(a), known.const_bounds(b));
    let ends = match op {
        BinOp::Add => [a.lo.checked_add(b.lo), a.hi.checked_add(b.hi)],
        BinOp::Sub => [a.lo.checked_sub(b.hi), a.hi.checked_sub(b.lo)],
        BinOp::Mul if b.lo == b.hi => [a.lo.checked_mul(b.lo), a.hi.checked_mul(b.lo)],
        _ => return false,
    };
    let range = Interval::of(e.dtype().scalar);
    ends.iter()
        .all(|end| end.is_some_and(|v| range.lo <= v && v <= range.hi))
}

/// `a + b * by`, over the integers; both are taken without their moduli.
fn plus(a: &Form, b: &Form, by: i64) -> Option<Form> {
    let mut terms = Vec::with_capacity(a.terms.len() + b.terms.len());
    let (mut left, mut right) = (a.terms.iter().peekable(), b.terms.iter().peekable());
    loop {
        let (atom, factor) = match (left.peek(), right.peek()) {
            (None, None) => break,
            (Some(x), Some(y)) if x.0 == y.0 => (x.0, x.1.checked_add(y.1.checked_mul(by)?)?),
            (Some(x), y) if y.is_none_or(|y| x.0 < y.0) => **x,
            (_, Some(y)) => (y.0, y.1.checked_mul(by)?),
            (Some(x), None) => **x,
        };
        left.next_if(|x| x.0 == atom);
        right.next_if(|y| y.0 == atom);
        if factor != 0 {
            terms.push((atom, factor));
        }
    }
    Some(Form {
        terms,
        constant: a.constant.checked_add(b.constant.checked_mul(by)?)?,
        modulus: a.modulus,
    })
}

/// An atom whose factor is one or minus one, with the factor.
fn unit(form: &Form) -> Option<(u32, i64)> {
    let plain = form.modulus == 0;
    let mut terms = form.terms.iter().copied();
    terms.find(|(_, factor)| plain && factor.abs() == 1)
}

/// The form with the zero form's atom replaced by what it is; as it was where that has none.
fn without(form: &Form, zero: &Form) -> Option<Form> {
    let Some((atom, sign)) = unit(zero) else {
        return Some(form.clone());
    };
    match form.terms.iter().find(|(other, _)| *other == atom) {
        None => Some(form.clone()),
        Some((_, factor)) => plus(form, zero, factor.checked_mul(-sign)?),
    }
}

fn sorted(terms: FxHashMap<u32, i64>) -> Vec<(u32, i64)> {
    let mut terms: Vec<(u32, i64)> = terms.into_iter().filter(|(_, f)| *f != 0).collect();
    terms.sort_unstable();
    terms
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{DType, Func, VarKind};

    #[test]
    fn forms_differ_by_constants() {
        let mut func = Func::new("f");
        let k = func.add_var("k", DType::I32, VarKind::Loop);
        let e = func.var_expr(k);
        let mut slots = Slots::default();
        let of =
            |slots: &mut Slots, by: i32| slots.of(&(e.clone() + by).floor_mod(3)).expect("a form");
        let (two, zero, three) = (of(&mut slots, 2), of(&mut slots, 0), of(&mut slots, 3));
        assert!(slots.differ(two, zero, &[]));
        assert!(!slots.differ(three, zero, &[]));
        // The next iteration reads what this one wrote two ahead only two iterations later.
        let carried = slots.shifted(two, k, -1).expect("a form");
        assert!(slots.differ(carried, zero, &[]));
        let carried = slots.shifted(carried, k, -1).expect("a form");
        assert!(!slots.differ(carried, zero, &[]));
        // In the first iteration `k` is zero.
        let one = slots.of(&Expr::i32(1)).expect("a form");
        let start = slots.of(&Expr::i32(0)).expect("a form");
        let index = slots.of(&e).expect("a form");
        assert!(!slots.differ(one, zero, &[]));
        assert!(slots.differ(one, zero, &[index]));
        assert!(!slots.differ(start, zero, &[index]));
    }

    #[test]
    fn remainders_of_a_last_index() {
        let mut func = Func::new("f");
        let k = func.add_var("k", DType::I32, VarKind::Loop);
        let n = func.add_var("n", DType::I32, VarKind::Let);
        let mut slots = Slots::default();
        let version = slots
            .of(&(func.var_expr(k) + 1).floor_mod(3))
            .expect("a form");
        let last = slots.of(&func.var_expr(n)).expect("a form");
        let unknown = slots
            .with_value(version, k, last, Congruence::ANY)
            .expect("a form");
        let known = slots
            .with_value(version, k, last, Congruence::new(6, 4))
            .expect("a form");
        let [one, two] = [1, 2].map(|c| slots.of(&Expr::i32(c)).expect("a form"));
        assert!(!slots.differ(unknown, one, &[]));
        assert!(slots.differ(known, one, &[]));
        assert!(!slots.differ(known, two, &[]));
        // Six into four: a remainder modulo six says nothing modulo four.
        let fourth = slots.of(&func.var_expr(k).floor_mod(4)).expect("a form");
        let fourth = slots
            .with_value(fourth, k, last, Congruence::new(6, 4))
            .expect("a form");
        assert!(!slots.differ(fourth, one, &[]));
    }

    #[test]
    fn arithmetic_that_may_wrap_is_an_atom() {
        let mut func = Func::new("f");
        let n = func.add_var("n", DType::I32, VarKind::Let);
        let mut known = Analyzer::new();
        let mut slots = Slots::default();
        let n = func.var_expr(n);
        let mut distance = |slots: &mut Slots, e: &Expr| {
            let more = slots.value(&(e.clone() + 5), &mut known).expect("a form");
            let less = slots.value(e, &mut known).expect("a form");
            slots.constant_difference(more, less)
        };
        assert_eq!(distance(&mut slots, &n), None);
        assert_eq!(distance(&mut slots, &n.floor_div(32)), Some(5));
    }
}
