//! A closed form as people write it.
//!
//! Digits are `x // div % extent`, neighbouring parities one XOR of bit fields: the 128-byte
//! swizzle of f16 is `i * 64 + (i % 8 ^ j // 8) * 8 + j % 8`. A formula says all that its form does,
//! so it is read back without looking for anything.

use crate::form::{Form, Sum, Term};
use crate::radix::{Digit, MAX_DIGITS, Radix, ones};

/// Above any place of any layout.
const LIMIT: i64 = 1 << 41;

/// One output: the offset and all parts.
#[derive(Clone, PartialEq, Eq, Debug, Default)]
pub struct Formula {
    pub offset: i64,
    pub parts: Vec<Part>,
}

/// `weight · (x // div % extent)`, or the XOR of several such fields, each of as many bits.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Part {
    pub fields: Vec<Digit>,
    pub weight: i64,
}

impl Formula {
    /// `i * 64 + (i % 8 ^ j // 8) * 8 + j % 8`, over the named dimensions of a box.
    pub fn text(&self, names: &[String], shape: &[i64]) -> String {
        let mut text = String::new();
        for part in &self.parts {
            text += match (text.is_empty(), part.weight < 0) {
                (true, false) => "",
                (true, true) => "-",
                (false, false) => " + ",
                (false, true) => " - ",
            };
            let fields = part.fields.iter().map(|d| field(d, &names[d.dim], shape));
            match fields.collect::<Vec<_>>().as_slice() {
                [one] => text += one,
                several => text += &format!("({})", several.join(" ^ ")),
            }
            if part.weight.abs() != 1 {
                text += &format!(" * {}", part.weight.abs());
            }
        }
        match self.offset {
            n if text.is_empty() => n.to_string(),
            0 => text,
            n if n < 0 => format!("{text} - {}", -n),
            n => format!("{text} + {n}"),
        }
    }

    /// Whether all that is added up and multiplied stays far from the ends of `i64`.
    fn is_moderate(&self) -> bool {
        let small = |n: i64| (-LIMIT..=LIMIT).contains(&n);
        let product = |a: i64, b: i64| a.checked_mul(b).is_some_and(small);
        let field =
            |part: &Part, f: &Digit| product(f.div, f.extent) && product(part.weight, f.extent);
        let part = |p: &Part| p.fields.iter().all(|f| field(p, f)) && p.fields.len() <= MAX_DIGITS;
        small(self.offset) && self.parts.len() <= MAX_DIGITS && self.parts.iter().all(part)
    }
}

impl Form {
    /// The formula of each output, heavy parts first, as people write them.
    pub fn formulas(&self) -> Vec<Formula> {
        self.outs.iter().map(|out| self.formula(out)).collect()
    }

    /// The form that formulas over a box have. `None` where their fields overlap or do not divide
    /// each other.
    pub fn of_formulas(shape: &[i64], formulas: &[Formula]) -> Option<Form> {
        let mut form = Form {
            radix: Radix::new(shape),
            outs: Vec::new(),
        };
        if formulas.iter().any(|f| !f.is_moderate()) {
            return None;
        }
        for part in formulas.iter().flat_map(|f| &f.parts) {
            for field in &part.fields {
                if field.dim >= shape.len() || field.div < 1 || field.extent < 2 {
                    return None;
                }
                form.cut(field.dim, field.div)?;
                form.cut(field.dim, field.div * field.extent)?;
                for bit in 1..bits(part)? {
                    form.cut(field.dim, field.div << bit)?;
                }
            }
        }
        for formula in formulas {
            let mut sum = Sum::constant(formula.offset);
            for part in &formula.parts {
                form.add_part(&mut sum, part)?;
            }
            form.outs.push(sum);
        }
        form.coalesce();
        Some(form)
    }

    fn add_part(&self, sum: &mut Sum, part: &Part) -> Option<()> {
        if let [field] = part.fields.as_slice() {
            let end = field.div * field.extent;
            for (at, d) in self.radix.digits().iter().enumerate() {
                if d.dim == field.dim && d.div >= field.div && d.div < end {
                    sum.add(1 << at, part.weight * (d.div / field.div));
                }
            }
            return Some(());
        }
        for bit in 0..bits(part)? {
            let mut row = 0;
            for field in &part.fields {
                let at = self.radix.position(field.dim, field.div << bit)?;
                row ^= 1 << at;
                if self.radix.digits()[at].extent != 2 {
                    return None;
                }
            }
            sum.add(row, part.weight << bit);
        }
        Some(())
    }

    fn formula(&self, sum: &Sum) -> Formula {
        let mut terms = sum.terms.clone();
        terms.sort_by_key(|t| (std::cmp::Reverse(t.weight.abs()), t.row));
        let mut parts = Vec::new();
        let mut done = vec![false; terms.len()];
        for i in 0..terms.len() {
            if done[i] {
                continue;
            }
            done[i] = true;
            let t = terms[i];
            if t.row.is_power_of_two() {
                let (digit, weight) = self.run_below(&t, &terms, &mut done);
                let fields = vec![digit];
                parts.push(Part { fields, weight });
                continue;
            }
            // Parities of lower weight whose bits are each one place below join this one.
            let mut low = t;
            let mut length = 1;
            while let Some(next) = self.one_below(&low, &terms, &done) {
                done[next] = true;
                low = terms[next];
                length += 1;
            }
            let fields = ones(low.row).map(|at| {
                let Digit { dim, div, .. } = self.radix.digits()[at];
                Digit::new(dim, div, 1 << length)
            });
            parts.push(Part {
                fields: fields.collect(),
                weight: low.weight,
            });
        }
        Formula {
            offset: sum.offset,
            parts,
        }
    }

    /// The digit of a term joined with the digits right below it that count on with it, and the
    /// weight of the lowest.
    fn run_below(&self, t: &Term, terms: &[Term], done: &mut [bool]) -> (Digit, i64) {
        let mut at = t.row.trailing_zeros() as usize;
        let (mut run, mut weight) = (self.radix.digits()[at], t.weight);
        while let Some(below) = at.checked_sub(1) {
            let digit = self.radix.digits()[below];
            let counts_on = |i: &usize| {
                let t = terms[*i];
                !done[*i] && t.row == 1 << below && t.weight * digit.extent == weight
            };
            match (0..terms.len()).find(counts_on) {
                Some(next) if digit.dim == run.dim => {
                    done[next] = true;
                    weight = terms[next].weight;
                    run = Digit::new(run.dim, digit.div, digit.extent * run.extent);
                    at = below;
                }
                _ => break,
            }
        }
        (run, weight)
    }

    /// The parity that is this one shifted down by one bit in every digit, if it has half the
    /// weight.
    fn one_below(&self, t: &Term, terms: &[Term], done: &[bool]) -> Option<usize> {
        let digits = self.radix.digits();
        let mut row = 0u64;
        for at in ones(t.row) {
            let below = at.checked_sub(1)?;
            if digits[below].dim != digits[at].dim || digits[below].extent != 2 {
                return None;
            }
            row |= 1 << below;
        }
        let fits =
            |i: &usize| !done[*i] && terms[*i].row == row && terms[*i].weight * 2 == t.weight;
        (0..terms.len()).find(fits)
    }
}

/// Names of the dimensions of a box.
pub fn index_names(rank: usize) -> Vec<String> {
    let name = |dim: usize| match "ijklmn".get(dim..=dim) {
        Some(name) => name.to_string(),
        None => format!("x{dim}"),
    };
    (0..rank).map(name).collect()
}

/// `x // div % extent`, without what does nothing.
fn field(digit: &Digit, name: &str, shape: &[i64]) -> String {
    let mut text = name.to_string();
    if digit.div != 1 {
        text += &format!(" // {}", digit.div);
    }
    if digit.div * digit.extent < shape[digit.dim] {
        text += &format!(" % {}", digit.extent);
    }
    text
}

/// The bits of an XOR of fields; one field is a number of any extent.
fn bits(part: &Part) -> Option<u32> {
    let [first, others @ ..] = part.fields.as_slice() else {
        return None;
    };
    let alike = first.extent > 0 && (first.extent as u64).is_power_of_two();
    match others {
        [] => Some(0),
        _ if alike && others.iter().all(|f| f.extent == first.extent) => {
            Some(first.extent.trailing_zeros())
        }
        _ => None,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::swizzle::{Swizzle, row_xor};
    use crate::{Fragment, Layout};

    fn field(dim: usize, div: i64, extent: i64) -> Digit {
        Digit::new(dim, div, extent)
    }

    /// A form is what its formulas say, and they are said in one way.
    #[test]
    fn formulas_say_all_of_a_form() {
        let layouts = [
            Layout::linear(&[3, 229, 40]).unwrap(),
            Layout::padded(&[229, 40], 8).unwrap(),
            Swizzle::B128.panels(&[3, 192, 128], 16).unwrap(),
            Swizzle::B64.panels(&[229, 96], 16).unwrap(),
            row_xor(&[32, 64], 8, &[(1, 0), (2, 1), (3, 2), (4, 1)]).unwrap(),
            row_xor(&[3, 32], 8, &[(0, 1), (1, 0)]).unwrap(),
            Fragment::partition(&[5, 229], 128, 1)
                .unwrap()
                .layout()
                .clone(),
            Fragment::partition(&[64, 192], 96, 8)
                .unwrap()
                .layout()
                .clone(),
            Layout::new(&[8], &[8], Form::strided(&[8], &[1])).unwrap(),
        ];
        for layout in layouts {
            let form = layout.raw_form().unwrap();
            let formulas = form.formulas();
            let back = Form::of_formulas(form.radix.shape(), &formulas).unwrap();
            let again = Layout::new(layout.shape(), layout.codomain(), back.clone()).unwrap();
            assert_eq!(again, layout, "{formulas:?}");
            assert_eq!(back.formulas(), formulas);
        }
    }

    #[test]
    fn fields_that_do_not_fit_are_refused() {
        let of = |parts: Vec<(Vec<Digit>, i64)>| {
            let parts = parts.into_iter();
            let parts = parts.map(|(fields, weight)| Part { fields, weight });
            let formula = Formula {
                offset: 0,
                parts: parts.collect(),
            };
            Form::of_formulas(&[64, 64], &[formula])
        };
        assert!(of(vec![(vec![field(0, 1, 8), field(1, 8, 8)], 8)]).is_some());
        // Different lengths, no bits, cuts that do not divide, no such dimension, too much.
        assert!(of(vec![(vec![field(0, 1, 4), field(1, 8, 8)], 8)]).is_none());
        assert!(of(vec![(vec![field(0, 1, 3), field(1, 8, 3)], 8)]).is_none());
        assert!(of(vec![(vec![field(0, 6, 2)], 1), (vec![field(0, 4, 2)], 1)]).is_none());
        assert!(of(vec![(vec![field(2, 1, 8)], 1)]).is_none());
        assert!(of(vec![(vec![field(0, 1, 8)], i64::MAX)]).is_none());
        assert!(of(vec![(vec![field(0, i64::MAX, 8)], 1)]).is_none());
    }
}
