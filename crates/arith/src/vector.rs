//! Vectors: ramps, broadcasts and lanes.
//!
//! A ramp is `base + stride · lane` modulo `2^bits`, so adding to it and multiplying it by the
//! same value in every lane are ring identities. An operation on broadcasts is a broadcast of
//! the operation. Constants are kept as one node whatever the lane count.

use tilewright_ir::{BinOp, DType};

use crate::analyzer::Analyzer;
use crate::interval::Interval;
use crate::linear::Lin;
use crate::rules::Rule;
use crate::term::{Node, Term};

impl Analyzer {
    pub(crate) fn broadcast(&mut self, a: Term, dtype: DType) -> Term {
        let from = self.dtype(a);
        if from == dtype {
            return a;
        }
        match *self.node(a) {
            Node::Int(value) if from.lanes == 1 => self.int(value, dtype),
            Node::Float(bits) if from.lanes == 1 => self.arena.intern(Node::Float(bits), dtype),
            _ => self.arena.intern(Node::Broadcast(a), dtype),
        }
    }

    pub(crate) fn ramp(&mut self, base: Term, stride: Term, dtype: DType) -> Term {
        if self.constant(stride) == Some(0) && self.dtype(base) == dtype.with_lanes(1) {
            self.hit(Rule::RampFlat);
            return self.broadcast(base, dtype);
        }
        self.arena.intern(Node::Ramp(base, stride), dtype)
    }

    pub(crate) fn lane(&mut self, vector: Term, lane: u16, dtype: DType) -> Term {
        match *self.node(vector) {
            Node::Broadcast(x) if self.dtype(x) == dtype => {
                self.hit(Rule::LaneOf);
                x
            }
            Node::Int(value) => {
                self.hit(Rule::LaneOf);
                self.int(value, dtype)
            }
            Node::Float(bits) => {
                self.hit(Rule::LaneOf);
                self.arena.intern(Node::Float(bits), dtype)
            }
            Node::Ramp(base, stride)
                if self.dtype(base) == dtype
                    && self.dtype(stride) == dtype
                    && dtype.scalar.is_int() =>
            {
                self.hit(Rule::LaneOf);
                let offset = self.scaled(stride, lane as i128);
                self.add(base, offset)
            }
            _ => self.arena.intern(Node::Lane(vector, lane), dtype),
        }
    }

    /// The scalar that a term holds in every lane.
    fn uniform(&mut self, t: Term) -> Option<Term> {
        let scalar = self.dtype(t).with_lanes(1);
        match *self.node(t) {
            Node::Int(value) => Some(self.int(value, scalar)),
            Node::Float(bits) => Some(self.arena.intern(Node::Float(bits), scalar)),
            Node::Broadcast(x) if self.dtype(x) == scalar => Some(x),
            _ => None,
        }
    }

    /// An operation on two vectors that are the same in every lane.
    pub(crate) fn binary_of_broadcasts(
        &mut self,
        op: BinOp,
        a: Term,
        b: Term,
        dtype: DType,
    ) -> Option<Term> {
        if dtype.lanes == 1 {
            return None;
        }
        // Two constants that did not fold have nothing to gain.
        let broadcast = |s: &Analyzer, t| matches!(s.node(t), Node::Broadcast(_));
        if !broadcast(self, a) && !broadcast(self, b) {
            return None;
        }
        let (a, b) = (self.uniform(a)?, self.uniform(b)?);
        self.hit(Rule::BroadcastOut);
        let scalar = self.binary(op, a, b, dtype.with_lanes(1));
        Some(self.broadcast(scalar, dtype))
    }

    /// In a sum of vectors, all broadcasts become one, and the ramps too if there is one.
    pub(crate) fn gather_ramps(&mut self, form: &mut Lin, dtype: DType) {
        let scalar = dtype.with_lanes(1);
        let (mut base, mut stride) = (Lin::default(), Lin::default());
        let mut rest = Lin::default();
        let (mut ramps, mut broadcasts, mut unit) = (0, 0, true);
        for &(t, c) in form.terms.iter() {
            match *self.node(t) {
                Node::Ramp(b, s) if self.dtype(b) == scalar && self.dtype(s) == scalar => {
                    base.ring_add_scaled(&self.ring_form(b), c);
                    stride.ring_add_scaled(&self.ring_form(s), c);
                    ramps += 1;
                    unit &= c == 1;
                }
                Node::Broadcast(x) if self.dtype(x) == scalar => {
                    base.ring_add_scaled(&self.ring_form(x), c);
                    broadcasts += 1;
                    unit &= c == 1;
                }
                _ => rest.ring_add_term(t, c),
            }
        }
        let gathered_already = ramps + broadcasts == 1 && unit && form.constant == 0;
        if ramps + broadcasts == 0 || gathered_already {
            return;
        }
        base.constant = base.constant.wrapping_add(form.constant);
        let base = self.sum(base, scalar);
        let gathered = if ramps == 0 {
            self.broadcast(base, dtype)
        } else {
            let stride = self.sum(stride, scalar);
            self.ramp(base, stride, dtype)
        };
        self.hit(Rule::RampGather);
        match self.constant(gathered) {
            Some(c) => rest.constant = c,
            None => rest.ring_add_term(gathered, 1),
        }
        *form = rest;
    }

    /// A ramp times a value that is the same in every lane.
    pub(crate) fn ramp_times(&mut self, a: Term, b: Term, dtype: DType) -> Option<Term> {
        let scalar = dtype.with_lanes(1);
        for (ramp, factor) in [(a, b), (b, a)] {
            let Node::Ramp(base, stride) = *self.node(ramp) else {
                continue;
            };
            if self.dtype(base) != scalar || self.dtype(stride) != scalar {
                continue;
            }
            let Some(factor) = self.uniform(factor) else {
                continue;
            };
            self.hit(Rule::RampTimes);
            let (base, stride) = (self.mul(base, factor), self.mul(stride, factor));
            return Some(self.ramp(base, stride, dtype));
        }
        None
    }

    /// A ramp that stays within one quotient has that quotient in every lane.
    pub(crate) fn ramp_div(&mut self, a: Term, c: i128, dtype: DType) -> Option<Term> {
        let (base, _) = self.ramp_in_one_quotient(a, c, dtype)?;
        self.hit(Rule::RampDiv);
        let scalar = dtype.with_lanes(1);
        let divisor = self.int(c, scalar);
        let q = self.floor_div(base, divisor);
        Some(self.broadcast(q, dtype))
    }

    pub(crate) fn ramp_mod(&mut self, a: Term, c: i128, dtype: DType) -> Option<Term> {
        let (base, stride) = self.ramp_in_one_quotient(a, c, dtype)?;
        self.hit(Rule::RampDiv);
        let scalar = dtype.with_lanes(1);
        let divisor = self.int(c, scalar);
        let r = self.floor_mod(base, divisor);
        Some(self.ramp(r, stride, dtype))
    }

    /// Base and stride of a ramp whose lanes all have the base's quotient by `c`.
    fn ramp_in_one_quotient(&mut self, a: Term, c: i128, dtype: DType) -> Option<(Term, Term)> {
        let scalar = dtype.with_lanes(1);
        let Node::Ramp(base, stride) = *self.node(a) else {
            return None;
        };
        if self.dtype(base) != scalar || self.dtype(stride) != scalar {
            return None;
        }
        let step = self.constant(stride)?;
        let reach = step.checked_mul(dtype.lanes as i128 - 1)?;
        let divisor = self.int(c, scalar);
        let r = self.floor_mod(base, divisor);
        let last = self
            .interval(r)
            .plus(Interval::new(reach.min(0), reach.max(0)))?;
        let all = self
            .interval(base)
            .plus(Interval::new(reach.min(0), reach.max(0)))?;
        let fits =
            last.is_within(Interval::new(0, c - 1)) && all.is_within(Interval::of(dtype.scalar));
        fits.then_some((base, stride))
    }
}
