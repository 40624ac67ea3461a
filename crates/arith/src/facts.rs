//! What is known of a term's value: its domain and its integer form.
//!
//! **Soundness.** The machine computes modulo `2^bits`. A sum's ring form `F` is congruent to
//! its value modulo `2^bits`; if all values of `F`, computed over the integers from the atoms'
//! domains, fall into one window `k · 2^bits + range(type)`, then the value *is*
//! `F - k · 2^bits` and the sum has an integer form. Otherwise nothing but the type's range and
//! the congruence modulo a power of two is known of it, and it is an atom for all reasoning
//! about integers. Casts between integer types are congruences as well, so the form looks
//! through them under the same check. Everything that divides, compares or bounds goes through
//! here.

use tilewright_ir::{BinOp, MathFn, Scalar};

use crate::analyzer::{Analyzer, Form};
use crate::congruence::Congruence;
use crate::domain::Domain;
use crate::fold::fold_int;
use crate::interval::{Interval, floor_div};
use crate::linear::Lin;
use crate::term::{Node, Term};

impl Analyzer {
    /// What is known of an integer or bool term.
    pub(crate) fn domain(&mut self, t: Term) -> Domain {
        if let Node::Int(value) = *self.node(t) {
            return Domain::point(value);
        }
        if let Some(&(domain, _)) = self.cache().info.get(&t) {
            return domain;
        }
        self.work_out(t).0
    }

    pub(crate) fn interval(&mut self, t: Term) -> Interval {
        self.domain(t).interval
    }

    /// The term's value as an integer, written over atoms; nothing wraps in it.
    pub(crate) fn integer_form(&mut self, t: Term) -> Lin {
        match *self.node(t) {
            Node::Int(value) => return Lin::constant(value),
            Node::Sum(..) | Node::Cast(_) | Node::Broadcast(_) => {}
            _ => return Lin::atom(t),
        }
        let cached = self.cache().info.get(&t).copied();
        let (_, form) = cached.unwrap_or_else(|| self.work_out(t));
        match form {
            Form::Atom => Lin::atom(t),
            Form::Linear(index) => self.cache().forms[index as usize].clone(),
        }
    }

    /// The values that an integer form can take.
    pub(crate) fn bounds(&mut self, form: &Lin) -> Option<Interval> {
        let mut sum = Interval::point(form.constant);
        for &(t, c) in form.terms.iter() {
            sum = sum.plus(self.interval(t).scale(c)?)?;
        }
        Some(sum)
    }

    /// Whether every value of the form is in the interval.
    pub(crate) fn fits(&mut self, form: &Lin, interval: Interval) -> bool {
        self.bounds(form).is_some_and(|b| b.is_within(interval))
    }

    pub(crate) fn congruence_of(&mut self, form: &Lin) -> Congruence {
        let mut sum = Congruence::exactly(form.constant);
        for &(t, c) in form.terms.iter() {
            if sum.modulus == 1 {
                break;
            }
            sum = sum.plus(self.domain(t).congruence.scale(c));
        }
        sum
    }

    /// The term's value modulo `2^bits` as a ring form.
    pub(crate) fn ring_form(&self, t: Term) -> Lin {
        match self.node(t) {
            Node::Int(value) => Lin::constant(*value),
            Node::Sum(terms, constant) => Lin {
                terms: terms.iter().copied().collect(),
                constant: *constant,
            },
            _ => Lin::atom(t),
        }
    }

    fn work_out(&mut self, t: Term) -> (Domain, Form) {
        let (mut domain, form) = self.derive(t);
        for frame in &self.frames {
            if let Some(&fact) = frame.refined.get(&t) {
                // Facts that contradict each other describe code that does not run; what is
                // known without them stays true.
                domain = domain.meet(fact).unwrap_or(domain);
            }
        }
        let cache = self.cache();
        let form = match form {
            Some(form) => {
                cache.forms.push(form);
                Form::Linear(cache.forms.len() as u32 - 1)
            }
            None => Form::Atom,
        };
        cache.info.insert(t, (domain, form));
        (domain, form)
    }

    /// The domain, and the integer form if it is more than the term itself.
    fn derive(&mut self, t: Term) -> (Domain, Option<Lin>) {
        let dtype = self.dtype(t);
        let scalar = dtype.scalar;
        let atom = |domain| (domain, None);
        if scalar == Scalar::Bool {
            return atom(Domain::within(Interval::BOOL));
        }
        if !scalar.is_int() {
            return atom(Domain::ALL);
        }
        match *self.node(t) {
            Node::Sum(..) => {
                let form = self.ring_form(t);
                let form = self.through_casts(form, scalar);
                self.unwrapped(form, scalar)
            }
            Node::Cast(a) => {
                let from = self.dtype(a).scalar;
                if from == Scalar::Bool || from.is_int() {
                    let form = self.integer_form(a);
                    self.unwrapped(Some(form), scalar)
                } else {
                    atom(Domain::of(scalar))
                }
            }
            Node::Broadcast(a) => (self.domain(a), Some(self.integer_form(a))),
            Node::Var(_) => {
                let value = self
                    .frames
                    .iter()
                    .rev()
                    .find_map(|f| f.lets.get(&t).copied());
                match value {
                    Some(value) => atom(self.domain(value)),
                    None => atom(Domain::of(scalar)),
                }
            }
            Node::Ramp(base, stride) => {
                let lanes = Interval::new(0, dtype.lanes as i128 - 1);
                let (base, stride) = (self.interval(base), self.interval(stride));
                let last = stride.times(lanes).and_then(|s| s.plus(base));
                let range = Interval::of(scalar);
                let known = last.filter(|i| i.is_within(range));
                atom(Domain::within(known.unwrap_or(range)))
            }
            _ => {
                let domain = self.derive_domain(t, scalar);
                atom(domain)
            }
        }
    }

    /// The sum with each cast replaced by what it casts, which is congruent modulo `2^bits`,
    /// where more is known of that.
    fn through_casts(&mut self, sum: Lin, scalar: Scalar) -> Option<Lin> {
        let opens = |s: &Analyzer, t| matches!(s.node(t), Node::Broadcast(_) | Node::Cast(_));
        if !sum.terms.iter().any(|&(t, _)| opens(self, t)) {
            return Some(sum);
        }
        let mut form = Lin::constant(sum.constant);
        for &(t, c) in sum.terms.iter() {
            let inner = match *self.node(t) {
                Node::Broadcast(a) => Some(a),
                Node::Cast(a) => {
                    let from = self.dtype(a).scalar;
                    let integer = from.is_int() || from == Scalar::Bool;
                    let narrow =
                        integer && self.interval(a).width() <= Interval::of(scalar).width();
                    narrow.then_some(a)
                }
                _ => None,
            };
            match inner {
                Some(a) => {
                    let inner = self.integer_form(a);
                    form.add_scaled(&inner, c)?;
                }
                None => form.add_term(t, c)?,
            }
        }
        Some(form)
    }

    /// What is known of a value congruent to `form` modulo `2^bits` of its type.
    fn unwrapped(&mut self, form: Option<Lin>, scalar: Scalar) -> (Domain, Option<Lin>) {
        let Some(mut form) = form else {
            return (Domain::of(scalar), None);
        };
        let bits = scalar.bits();
        let range = Interval::of(scalar);
        let congruence = self.congruence_of(&form);
        let window = self.bounds(&form).and_then(|b| {
            if b.is_within(range) {
                return Some((b, 0));
            }
            let shift = floor_div(b.lo.checked_sub(range.lo)?, 1 << bits).checked_mul(1 << bits)?;
            let b = b.plus(Interval::point(-shift))?;
            b.is_within(range).then_some((b, shift))
        });
        match window {
            Some((bounds, shift)) => {
                form.constant -= shift;
                let congruence = congruence.plus(Congruence::exactly(-shift));
                let domain = Domain::new(bounds, congruence);
                (domain.unwrap_or(Domain::within(bounds)), Some(form))
            }
            None => {
                let domain = Domain::new(range, congruence.wrapped(bits));
                (domain.unwrap_or(Domain::within(range)), None)
            }
        }
    }

    /// The domain of an integer term other than a sum, cast or variable.
    fn derive_domain(&mut self, t: Term, scalar: Scalar) -> Domain {
        let whole = Domain::of(scalar);
        match *self.node(t) {
            Node::Binary(op, a, b) => {
                let (a, b) = (self.domain(a), self.domain(b));
                let domain = binary_domain(op, a, b, scalar);
                domain.and_then(|d| d.meet(whole)).unwrap_or(whole)
            }
            Node::Choose {
                then, otherwise, ..
            } => self.domain(then).join(self.domain(otherwise)),
            Node::Lane(vector, _) => self.domain(vector),
            Node::Math(MathFn::Abs, ref args) => {
                let arg = args[0];
                let Interval { lo, hi } = self.interval(arg);
                let type_lo = whole.interval.lo;
                if lo == type_lo && lo < 0 {
                    whole
                } else if lo >= 0 {
                    Domain::within(Interval::new(lo, hi))
                } else {
                    Domain::within(Interval::new(0, hi.max(-lo)))
                }
            }
            Node::Math(MathFn::Popcount | MathFn::Clz, _) => {
                Domain::within(Interval::new(0, scalar.bits() as i128))
                    .meet(whole)
                    .unwrap_or(whole)
            }
            _ => whole,
        }
    }
}

/// The domain of `a op b` where it does not wrap; `None` says that nothing is known.
fn binary_domain(op: BinOp, a: Domain, b: Domain, scalar: Scalar) -> Option<Domain> {
    let (i, j) = (a.interval, b.interval);
    if let (Some(x), Some(y)) = (a.as_point(), b.as_point()) {
        return fold_int(op, x, y, scalar).map(Domain::point);
    }
    let within = |i: Interval| Some(Domain::within(i));
    match op {
        BinOp::Mul => {
            let range = Interval::of(scalar);
            let congruence = a.congruence.times(b.congruence);
            match i.times(j).filter(|p| p.is_within(range)) {
                Some(product) => Domain::new(product, congruence),
                None => Domain::new(range, congruence.wrapped(scalar.bits())),
            }
        }
        BinOp::FloorDiv => {
            if let Some(c) = b.as_point()
                && c > 0
            {
                return Domain::new(i.floor_div(c), a.congruence.floor_div(c));
            }
            if j.lo < 1 {
                return None;
            }
            let ends = [i.lo, i.hi].map(|x| floor_div(x, j.lo));
            let far = [i.lo, i.hi].map(|x| floor_div(x, j.hi));
            within(Interval::new(ends[0].min(far[0]), ends[1].max(far[1])))
        }
        BinOp::FloorMod => {
            if j.lo < 1 {
                return None;
            }
            let congruence = match b.as_point() {
                Some(c) => Congruence::new(
                    crate::congruence::gcd(a.congruence.modulus, c),
                    a.congruence.residue,
                ),
                None => Congruence::ANY,
            };
            let hi = if i.lo >= 0 {
                i.hi.min(j.hi - 1)
            } else {
                j.hi - 1
            };
            Domain::new(Interval::new(0, hi), congruence)
        }
        BinOp::TruncDiv if j.lo >= 1 => {
            let ends = [i.lo / j.lo, i.lo / j.hi, i.hi / j.lo, i.hi / j.hi];
            let lo = ends.iter().min()?;
            within(Interval::new(*lo, *ends.iter().max()?))
        }
        BinOp::TruncMod if j.lo >= 1 => {
            let m = j.hi - 1;
            let lo = if i.lo >= 0 { 0 } else { i.lo.max(-m) };
            let hi = if i.hi <= 0 { 0 } else { i.hi.min(m) };
            within(Interval::new(lo, hi))
        }
        BinOp::Min => Some(Domain {
            interval: Interval::new(i.lo.min(j.lo), i.hi.min(j.hi)),
            congruence: a.congruence.join(b.congruence),
        }),
        BinOp::Max => Some(Domain {
            interval: Interval::new(i.lo.max(j.lo), i.hi.max(j.hi)),
            congruence: a.congruence.join(b.congruence),
        }),
        BinOp::BitAnd => match (i.lo >= 0, j.lo >= 0) {
            (true, true) => within(Interval::new(0, i.hi.min(j.hi))),
            (true, false) => within(Interval::new(0, i.hi)),
            (false, true) => within(Interval::new(0, j.hi)),
            (false, false) => None,
        },
        BinOp::BitOr | BinOp::BitXor => {
            if i.lo < 0 || j.lo < 0 {
                return None;
            }
            let all_ones = ones_above(i.hi.max(j.hi));
            let lo = if op == BinOp::BitOr {
                i.lo.max(j.lo)
            } else {
                0
            };
            let shared = low_zeros(a.congruence).min(low_zeros(b.congruence));
            Domain::new(Interval::new(lo, all_ones), Congruence::new(shared, 0))
        }
        BinOp::Shl => {
            let whole = j.is_within(Interval::new(0, scalar.bits() as i128 - 1));
            let factor = whole.then(|| Interval::new(1 << j.lo, 1 << j.hi))?;
            let product = i.times(factor)?;
            product
                .is_within(Interval::of(scalar))
                .then_some(Domain::within(product))
        }
        BinOp::Shr => {
            let whole = j.is_within(Interval::new(0, scalar.bits() as i128 - 1));
            if !whole {
                return None;
            }
            let ends = [i.lo >> j.lo, i.lo >> j.hi, i.hi >> j.lo, i.hi >> j.hi];
            within(Interval::new(*ends.iter().min()?, *ends.iter().max()?))
        }
        _ => None,
    }
}

/// The smallest `2^k - 1` that is not below `value`.
fn ones_above(value: i128) -> i128 {
    match value {
        0 => 0,
        v => (1 << (128 - v.leading_zeros())) - 1,
    }
}

/// The largest power of two known to divide the value; 2^64 for zero.
pub(crate) fn low_zeros(c: Congruence) -> i128 {
    let both = crate::congruence::gcd(c.modulus, c.residue);
    if both == 0 {
        1 << 64
    } else {
        1 << both.trailing_zeros().min(64)
    }
}
