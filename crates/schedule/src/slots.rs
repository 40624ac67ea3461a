//! Which version of a buffer an access means, and whether two accesses mean different ones.
//!
//! A slot is an integer, usually a linear form of loop indices modulo the number of versions:
//! `(k + 2) % 3`. Two accesses in the same iteration are apart where their forms differ by a
//! constant that the modulus does not divide. Across iterations a form is carried along: what
//! was `(k + 2) % 3` is `(k + 1) % 3` in terms of the next iteration's `k`, and once the loop is
//! left `k` is its last value.

use rustc_hash::FxHashMap;
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
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Slot(u32);

/// The slots of a kernel.
#[derive(Debug, Default)]
pub struct Slots {
    atoms: FxHashMap<Expr, u32>,
    /// The variables of each atom.
    mentions: Vec<Vec<Var>>,
    forms: Vec<Form>,
    numbers: FxHashMap<Form, Slot>,
}

impl Slots {
    /// The slot that an expression is.
    pub fn of(&mut self, e: &Expr) -> Option<Slot> {
        let form = match e.kind() {
            ExprKind::Binary(BinOp::FloorMod, a, b) => {
                let modulus = i64::try_from(b.as_int()?).ok().filter(|m| *m > 0)?;
                Form {
                    modulus,
                    ..self.linear(a)?
                }
            }
            _ => self.linear(e)?,
        };
        Some(self.number(form))
    }

    /// Whether the slots are certainly different, each with these values of variables put in.
    pub fn differ(&mut self, a: Slot, b: Slot, values: &[(Var, Slot)]) -> bool {
        let Some(b) = self.with_values(b, values) else {
            return false;
        };
        let (a, b) = (&self.forms[a.0 as usize], &self.forms[b.0 as usize]);
        let (Some(distance), true) = (a.constant.checked_sub(b.constant), a.terms == b.terms)
        else {
            return false;
        };
        match gcd(a.modulus, b.modulus) {
            0 => distance != 0,
            modulus => distance.rem_euclid(modulus) != 0,
        }
    }

    /// The slot with `var + by` in place of the variable; `None` where that is no form.
    pub fn shifted(&mut self, slot: Slot, var: Var, by: i64) -> Option<Slot> {
        let mut form = self.forms[slot.0 as usize].clone();
        match self.factor(&form, var)? {
            0 => Some(slot),
            factor => {
                form.constant = form.constant.checked_add(factor.checked_mul(by)?)?;
                Some(self.number(form))
            }
        }
    }

    /// The slot with a value in place of the variable.
    pub fn with_value(&mut self, slot: Slot, var: Var, value: Slot) -> Option<Slot> {
        let form = self.forms[slot.0 as usize].clone();
        let factor = self.factor(&form, var)?;
        if factor == 0 {
            return Some(slot);
        }
        let atom = self.atom_of_var(var)?;
        let value = self.forms[value.0 as usize].clone();
        if value.modulus != 0 {
            return None;
        }
        let mut terms: FxHashMap<u32, i64> = form.terms.iter().copied().collect();
        terms.remove(&atom);
        for (other, by) in value.terms {
            let known = terms.entry(other).or_insert(0);
            *known = known.checked_add(by.checked_mul(factor)?)?;
        }
        let constant = form
            .constant
            .checked_add(value.constant.checked_mul(factor)?)?;
        Some(self.number(Form {
            terms: sorted(terms),
            constant,
            modulus: form.modulus,
        }))
    }

    /// The value less a number.
    pub fn less(&mut self, slot: Slot, by: i64) -> Option<Slot> {
        let mut form = self.forms[slot.0 as usize].clone();
        form.constant = form.constant.checked_sub(by)?;
        (form.modulus == 0).then(|| self.number(form))
    }

    /// A form that is not below zero exactly where the condition holds.
    pub fn condition(&mut self, cond: &Expr) -> Option<Slot> {
        let ExprKind::Binary(op, a, b) = cond.kind() else {
            return None;
        };
        let (more, less, by) = match op {
            BinOp::Lt => (b, a, 1),
            BinOp::Le => (b, a, 0),
            BinOp::Gt => (a, b, 1),
            BinOp::Ge => (a, b, 0),
            _ => return None,
        };
        // Differences of unsigned numbers say nothing about their order.
        if !a.dtype().scalar.is_signed_int() {
            return None;
        }
        let distance = self.of(&(more.clone() - less.clone()))?;
        self.less(distance, by)
    }

    /// Whether `a` is not below zero only where `high` is not below `low`.
    pub fn implies_order(&mut self, a: Slot, low: Slot, high: Slot) -> bool {
        let forms = [a, low, high].map(|s| self.forms[s.0 as usize].clone());
        let [a, low, high] = forms;
        if [&a, &low, &high].iter().any(|f| f.modulus != 0) {
            return false;
        }
        let mut terms: FxHashMap<u32, i64> = high.terms.into_iter().collect();
        for (atom, factor) in low.terms.into_iter().chain(a.terms) {
            *terms.entry(atom).or_insert(0) -= factor;
        }
        let rest = high.constant.checked_sub(low.constant);
        let rest = rest.and_then(|r| r.checked_sub(a.constant));
        terms.values().all(|f| *f == 0) && rest.is_some_and(|r| r >= 0)
    }

    /// The slot's value, if it is a number.
    pub fn constant(&self, slot: Slot) -> Option<i64> {
        let form = &self.forms[slot.0 as usize];
        (form.terms.is_empty() && form.modulus == 0).then_some(form.constant)
    }

    /// Whether the slot depends on the variable.
    pub fn mentions(&self, slot: Slot, test: impl Fn(Var) -> bool) -> bool {
        let form = &self.forms[slot.0 as usize];
        let mut atoms = form.terms.iter();
        atoms.any(|(atom, _)| self.mentions[*atom as usize].iter().any(|v| test(*v)))
    }

    fn with_values(&mut self, mut slot: Slot, values: &[(Var, Slot)]) -> Option<Slot> {
        for &(var, value) in values {
            slot = self.with_value(slot, var, value)?;
        }
        Some(slot)
    }

    /// The variable's factor; `None` where it is inside another atom.
    fn factor(&self, form: &Form, var: Var) -> Option<i64> {
        let own = self.atom_of_var(var);
        let mut found = 0;
        for &(atom, factor) in &form.terms {
            if Some(atom) == own {
                found = factor;
            } else if self.mentions[atom as usize].contains(&var) {
                return None;
            }
        }
        Some(found)
    }

    fn atom_of_var(&self, var: Var) -> Option<u32> {
        let mut atoms = self.atoms.iter();
        atoms.find_map(|(e, atom)| (e.as_var() == Some(var)).then_some(*atom))
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

    fn linear(&mut self, e: &Expr) -> Option<Form> {
        let mut terms = FxHashMap::default();
        let mut constant = 0;
        self.add(e, 1, &mut terms, &mut constant)?;
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
    ) -> Option<()> {
        match e.kind() {
            ExprKind::Int(value) => {
                let value = i64::try_from(*value).ok()?.checked_mul(factor)?;
                *constant = constant.checked_add(value)?;
            }
            ExprKind::Binary(BinOp::Add, a, b) => {
                self.add(a, factor, terms, constant)?;
                self.add(b, factor, terms, constant)?;
            }
            ExprKind::Binary(BinOp::Sub, a, b) => {
                self.add(a, factor, terms, constant)?;
                self.add(b, factor.checked_neg()?, terms, constant)?;
            }
            ExprKind::Binary(BinOp::Mul, a, b) if b.as_int().is_some() => {
                let by = i64::try_from(b.as_int()?).ok()?;
                self.add(a, factor.checked_mul(by)?, terms, constant)?;
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
        Some(atom)
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
        assert!(!slots.differ(one, zero, &[]));
        assert!(slots.differ(one, zero, &[(k, start)]));
        assert!(!slots.differ(start, zero, &[(k, start)]));
    }
}
