//! What is known where an access was done: conditions, and where a loop's index stood.
//!
//! A fact is a form that is not below zero: `T >= 2` is `T - 2`. Two accesses meet only where the
//! facts of both can hold together. `T - 2` and `0 - T` cannot; `T - 2` and `2 - T` make `T` two,
//! which tells slots apart. Only pairs of facts are looked at, so what follows from three is not
//! seen: no fact is ever wrong, some are missed.
//!
//! Sets of facts are few, so they are compared by number and each question is answered once.

use rustc_hash::FxHashMap;
use tilewright_arith::Analyzer;
use tilewright_ir::{BinOp, Expr, ExprKind, UnOp};

use crate::slots::{Slot, Slots};

/// More facts than these are not remembered of one place.
const MAX_FACTS: usize = 12;

/// A set of facts, by number; zero is the empty one.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, Default)]
pub struct Facts(u32);

/// The sets of facts of a kernel.
#[derive(Debug)]
pub struct FactSets {
    sets: Vec<Vec<Slot>>,
    numbers: FxHashMap<Vec<Slot>, Facts>,
    /// For two sets, the forms that are zero where both hold; `None` where they never do.
    zeros: FxHashMap<(Facts, Facts), Option<Vec<Slot>>>,
}

impl FactSets {
    pub fn new() -> FactSets {
        FactSets {
            sets: vec![Vec::new()],
            numbers: FxHashMap::from_iter([(Vec::new(), Facts::default())]),
            zeros: FxHashMap::default(),
        }
    }

    /// The set with more facts; `None` where they cannot hold together.
    pub fn with(&mut self, slots: &Slots, set: Facts, more: &[Slot]) -> Option<Facts> {
        if more.is_empty() {
            return Some(set);
        }
        let mut all = self.sets[set.0 as usize].clone();
        for fact in more {
            insert(slots, &mut all, *fact)?;
        }
        Some(self.number(all))
    }

    /// The set with each fact changed, or forgotten where that gives `None`; `None` where the
    /// facts cannot hold together.
    pub fn changed(
        &mut self,
        slots: &mut Slots,
        set: Facts,
        mut change: impl FnMut(&mut Slots, Slot) -> Option<Slot>,
    ) -> Option<Facts> {
        let mut all = Vec::new();
        for at in 0..self.sets[set.0 as usize].len() {
            let fact = self.sets[set.0 as usize][at];
            if let Some(fact) = change(slots, fact) {
                insert(slots, &mut all, fact)?;
            }
        }
        Some(self.number(all))
    }

    /// The forms that are zero where the facts of both sets hold; `None` where they never do.
    pub fn zeros(&mut self, slots: &mut Slots, a: Facts, b: Facts) -> Option<&[Slot]> {
        let sets = &self.sets;
        let zeros = self.zeros.entry((a, b)).or_insert_with(|| {
            let facts = [a, b].map(|set| &sets[set.0 as usize][..]);
            solve(slots, facts.concat())
        });
        zeros.as_deref()
    }

    fn number(&mut self, mut set: Vec<Slot>) -> Facts {
        set.sort_unstable();
        if let Some(known) = self.numbers.get(&set) {
            return *known;
        }
        let number = Facts(self.sets.len() as u32);
        self.sets.push(set.clone());
        self.numbers.insert(set, number);
        number
    }
}

impl Default for FactSets {
    fn default() -> FactSets {
        FactSets::new()
    }
}

/// What is known where a condition holds, or where it does not.
pub fn facts_of(cond: &Expr, holds: bool, slots: &mut Slots, known: &mut Analyzer) -> Vec<Slot> {
    let mut facts = Vec::new();
    collect(cond, holds, slots, known, &mut facts);
    facts
}

fn collect(
    cond: &Expr,
    holds: bool,
    slots: &mut Slots,
    known: &mut Analyzer,
    facts: &mut Vec<Slot>,
) {
    let (op, a, b) = match cond.kind() {
        ExprKind::Unary(UnOp::Not, a) => return collect(a, !holds, slots, known, facts),
        ExprKind::Binary(op, a, b) => (op, a, b),
        _ => return,
    };
    let mut at_least = |more: &Expr, less: &Expr, by: i64| {
        if !more.dtype().scalar.is_int() || more.dtype() != less.dtype() {
            return;
        }
        let forms = slots.value(more, known).zip(slots.value(less, known));
        let distance = forms.and_then(|(more, less)| slots.minus(more, less));
        facts.extend(distance.and_then(|d| slots.less(d, by)));
    };
    match (op, holds) {
        (BinOp::LogicalAnd, true) | (BinOp::LogicalOr, false) => {
            collect(a, holds, slots, known, facts);
            collect(b, holds, slots, known, facts);
        }
        (BinOp::Lt, true) | (BinOp::Ge, false) => at_least(b, a, 1),
        (BinOp::Le, true) | (BinOp::Gt, false) => at_least(b, a, 0),
        (BinOp::Gt, true) | (BinOp::Le, false) => at_least(a, b, 1),
        (BinOp::Ge, true) | (BinOp::Lt, false) => at_least(a, b, 0),
        (BinOp::Eq, true) | (BinOp::Ne, false) => {
            at_least(a, b, 0);
            at_least(b, a, 0);
        }
        _ => {}
    }
}

/// Adds a fact; `None` where it contradicts another one.
fn insert(slots: &Slots, facts: &mut Vec<Slot>, fact: Slot) -> Option<()> {
    if let Some(value) = slots.constant(fact) {
        return (value >= 0).then_some(());
    }
    for known in facts.iter() {
        if slots.constant_sum(*known, fact).is_some_and(|sum| sum < 0) {
            return None;
        }
    }
    for known in facts.iter_mut() {
        if let Some(more) = slots.constant_difference(*known, fact) {
            if more > 0 {
                *known = fact;
            }
            return Some(());
        }
    }
    if facts.len() < MAX_FACTS {
        facts.push(fact);
    }
    Some(())
}

/// The forms that are zero where all the facts hold, each free of the atoms that those before
/// it give.
fn solve(slots: &mut Slots, all: Vec<Slot>) -> Option<Vec<Slot>> {
    let mut facts = Vec::new();
    for fact in all {
        insert(slots, &mut facts, fact)?;
    }
    let mut zeros = Vec::new();
    while let Some(zero) = find_zero(slots, &facts) {
        zeros.push(zero);
        for fact in std::mem::take(&mut facts) {
            if let Some(fact) = slots.where_zero(fact, zero) {
                insert(slots, &mut facts, fact)?;
            }
        }
    }
    Some(zeros)
}

/// A form that is neither below zero nor above it.
fn find_zero(slots: &Slots, facts: &[Slot]) -> Option<Slot> {
    let mut pairs = facts
        .iter()
        .enumerate()
        .flat_map(|(at, a)| facts[at + 1..].iter().map(move |b| (*a, *b)));
    let zero = |(a, b): &(Slot, Slot)| slots.solves(*a) && slots.constant_sum(*a, *b) == Some(0);
    pairs.find(zero).map(|(a, _)| a)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::{DType, Func, Var, VarKind};

    struct Place {
        slots: Slots,
        sets: FactSets,
        known: Analyzer,
    }

    impl Place {
        fn of(&mut self, conds: &[(&Expr, bool)]) -> Option<Facts> {
            let mut all = Facts::default();
            for (cond, holds) in conds {
                let more = facts_of(cond, *holds, &mut self.slots, &mut self.known);
                all = self.sets.with(&self.slots, all, &more)?;
            }
            Some(all)
        }
    }

    fn place() -> (Place, Func, Var) {
        let mut func = Func::new("f");
        let t = func.add_var("T", DType::I32, VarKind::Let);
        let place = Place {
            slots: Slots::default(),
            sets: FactSets::new(),
            known: Analyzer::new(),
        };
        (place, func, t)
    }

    #[test]
    fn conditions_that_exclude_each_other() {
        let (mut p, func, t) = place();
        let t = func.var_expr(t);
        let (two, three) = (t.clone().ge(2), t.clone().ge(3));
        assert!(p.of(&[(&two, false), (&three, true)]).is_none());
        assert!(p.of(&[(&two, true), (&three, true)]).is_some());
        assert!(p.of(&[(&two, false), (&three, false)]).is_some());
        let both = two.clone().and(t.clone().lt(2));
        assert!(p.of(&[(&both, true)]).is_none());
        // Of a condition of two parts that does not hold, either may fail.
        assert!(p.of(&[(&both, false), (&two, true)]).is_some());
    }

    #[test]
    fn one_value_is_left() {
        let (mut p, func, t) = place();
        let t = func.var_expr(t);
        let runs = p.of(&[(&t.clone().ge(2), true)]).expect("facts");
        let skips = p.of(&[(&t.clone().ge(3), false)]).expect("facts");
        let even = p.slots.of(&t.clone().floor_mod(2)).expect("a form");
        let one = p.slots.of(&Expr::i32(1)).expect("a form");
        let zeros = p
            .sets
            .zeros(&mut p.slots, runs, skips)
            .expect("both can hold");
        assert_eq!(zeros.len(), 1);
        let zeros = zeros.to_vec();
        assert!(p.slots.differ(even, one, &zeros));
        assert!(!p.slots.differ(even, one, &[]));
        let never = p.of(&[(&t.ge(1), false)]).expect("facts");
        assert!(p.sets.zeros(&mut p.slots, runs, never).is_none());
    }
}
