//! Index sets: do they overlap, does a map send different points to different places.
//!
//! [`Proof::Yes`] is the good news (disjoint, injective) for all values of the other variables;
//! [`Proof::No`] says that there always is an overlap or a collision.
//!
//! Boxes and strided sets are sets of integers: ends and elements are not reduced modulo
//! anything. Index maps are machine arithmetic: two points collide if their indices are equal
//! modulo `2^bits`. Sums are taken apart over linear forms; what is not linear (swizzles,
//! quotients) is looked at point by point, up to [`MAX_POINTS`].

use rustc_hash::FxHashMap;
use tilewright_ir::{DType, Expr, RegionDim, Var};

use crate::analyzer::Analyzer;
use crate::congruence::gcd;
use crate::eval::Program;
use crate::interval::Interval;
use crate::linear::Lin;
use crate::prover::Proof;
use crate::term::{Node, Term};

/// Index spaces larger than this are not looked at point by point.
pub const MAX_POINTS: u128 = 1 << 16;

/// `offset, offset + stride, …`, `count` of them.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct StridedSet {
    pub offset: Expr,
    pub stride: i128,
    pub count: i128,
}

/// A variable that tells points apart, such as a thread index.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct PointVar {
    pub var: Var,
    pub dtype: DType,
    pub range: Interval,
}

/// The parts of an index: what depends on the point, and the rest.
struct Parts {
    varying: Lin,
    rest: Lin,
    bits: u32,
}

impl Analyzer {
    /// Whether two boxes have no point in common. A box with an empty side has none at all.
    pub fn boxes_disjoint(&mut self, a: &[RegionDim], b: &[RegionDim]) -> Proof {
        if a.len() != b.len() {
            return Proof::Unknown;
        }
        let mut overlap = true;
        for (a, b) in a.iter().zip(b) {
            let sides = self.side(a).zip(self.side(b));
            let Some(((a_start, a_stop), (b_start, b_stop))) = sides else {
                overlap = false;
                continue;
            };
            let apart = [
                (&a_stop, &b_start),
                (&b_stop, &a_start),
                (&a_stop, &a_start),
                (&b_stop, &b_start),
            ];
            if apart.iter().any(|&(x, y)| self.at_most_form(x, y)) {
                return Proof::Yes;
            }
            let together = [
                (&a_start, &b_stop),
                (&b_start, &a_stop),
                (&a_start, &a_stop),
                (&b_start, &b_stop),
            ];
            overlap &= together.iter().all(|&(x, y)| self.proves_less(x, y));
        }
        if overlap { Proof::No } else { Proof::Unknown }
    }

    /// Whether two strided sets have no element in common.
    pub fn strided_disjoint(&mut self, a: &StridedSet, b: &StridedSet) -> Proof {
        if a.count <= 0 || b.count <= 0 {
            return Proof::Yes;
        }
        let (x, y) = (self.term(&a.offset), self.term(&b.offset));
        if !self.dtype(x).scalar.is_int() || !self.dtype(y).scalar.is_int() {
            return Proof::Unknown;
        }
        let verdict = self.strided_verdict(a, b, x, y);
        verdict.map_or(Proof::Unknown, |disjoint| {
            Proof::from_option(Some(disjoint))
        })
    }

    fn strided_verdict(
        &mut self,
        a: &StridedSet,
        b: &StridedSet,
        x: Term,
        y: Term,
    ) -> Option<bool> {
        let (x, y) = (self.expanded(x)?, self.expanded(y)?);
        // a.stride i - b.stride j = difference
        let difference = y.minus(&x)?;
        let g = gcd(a.stride, b.stride);
        if g > 0 {
            let residue = self.congruence_of(&difference);
            if residue.residue % gcd(residue.modulus, g) != 0 {
                return Some(true);
            }
        }
        let reach =
            |set: &StridedSet| Interval::point(set.stride).times(Interval::new(0, set.count - 1));
        let (p, q) = (reach(a)?, reach(b)?);
        // All of a before all of b, or the other way round.
        let mut before = Lin::constant(p.hi.checked_sub(q.lo)?.checked_add(1)?);
        before.add_scaled(&difference, -1)?;
        let mut after = difference.clone();
        after.add_constant(q.hi.checked_sub(p.lo)?.checked_add(1)?)?;
        if self.proves_nonpositive(&before) || self.proves_nonpositive(&after) {
            return Some(true);
        }
        let d = difference.as_constant()?;
        // Through the smaller set, asking whether the other one has the element.
        let (few, many, d) = if a.count <= b.count {
            (a, b, -d)
        } else {
            (b, a, d)
        };
        if few.count as u128 > MAX_POINTS {
            return None;
        }
        for i in 0..few.count {
            let element = i.checked_mul(few.stride)?.checked_add(d)?;
            let shared = match many.stride {
                0 => element == 0,
                s => element % s == 0 && (0..many.count).contains(&(element / s)),
            };
            if shared {
                return Some(false);
            }
        }
        Some(true)
    }

    /// Whether different points have different indices, all other variables being the same.
    /// Every point of the ranges counts.
    pub fn injective(&mut self, indices: &[Expr], points: &[PointVar]) -> Proof {
        self.distinct_across(indices, indices, points)
    }

    /// Whether the place that one point accesses through `a` is never the one that *another*
    /// point accesses through `b`, all other variables being the same.
    pub fn distinct_across(&mut self, a: &[Expr], b: &[Expr], points: &[PointVar]) -> Proof {
        if points.iter().any(|p| p.range.lo > p.range.hi) {
            return Proof::Yes;
        }
        let count = points.iter().try_fold(1u128, |n, p| {
            let size = p.range.width().checked_add(1)?;
            n.checked_mul(size)
        });
        if count == Some(1) {
            return Proof::Yes;
        }
        if a.len() != b.len() {
            return Proof::Unknown;
        }
        // Facts about the points could rule some of them out, so a collision found among all
        // of them proves nothing then.
        let vars: Vec<Term> = points.iter().map(|p| self.var(p.var, p.dtype)).collect();
        let all_occur = !self.restricts(&vars, points);
        self.scoped(|s| {
            for p in points {
                s.bind_interval(p.var, p.dtype, p.range);
            }
            let verdict = s.distinct_verdict(a, b, points, &vars, count);
            match verdict {
                Some(false) if !all_occur => Proof::Unknown,
                other => Proof::from_option(other),
            }
        })
    }

    fn distinct_verdict(
        &mut self,
        a: &[Expr],
        b: &[Expr],
        points: &[PointVar],
        vars: &[Term],
        count: Option<u128>,
    ) -> Option<bool> {
        let mut left = Vec::new();
        let mut right = Vec::new();
        for (x, y) in a.iter().zip(b) {
            let (x, y) = (self.parts(x, vars)?, self.parts(y, vars)?);
            if x.bits != y.bits {
                return None;
            }
            // The common rest drops out; what is left of it has to be a constant.
            let mut shift = x.rest.clone();
            shift.ring_add_scaled(&y.rest, -1);
            shift.wrap(x.bits);
            let mut varying = x.varying;
            varying.constant = varying.constant.wrapping_add(shift.as_constant()?);
            left.push((varying, x.bits));
            right.push((y.varying, y.bits));
        }
        if a.len() == 1 && left == right && self.is_mixed_radix(&left[0].0, left[0].1, points, vars)
        {
            return Some(true);
        }
        let count = count.filter(|&n| n <= MAX_POINTS)? as usize;
        let mut left = self.places(&left, points, vars)?;
        let mut right = self.places(&right, points, vars)?;
        let mut scratch = Scratch::default();
        // The point that has a place, or `None` where several have it.
        let mut taken: FxHashMap<Place, Option<usize>> = FxHashMap::default();
        for number in 0..count {
            let place = left.at(number, &mut scratch)?;
            let entry = taken.entry(place);
            entry.and_modify(|p| *p = None).or_insert(Some(number));
        }
        for number in 0..count {
            let place = right.at(number, &mut scratch)?;
            if taken.get(&place).is_some_and(|&p| p != Some(number)) {
                return Some(false);
            }
        }
        Some(true)
    }

    /// The indices as functions of the point's number.
    fn places(&self, indices: &[(Lin, u32)], points: &[PointVar], vars: &[Term]) -> Option<Places> {
        let terms: Vec<Term> = indices
            .iter()
            .flat_map(|(f, _)| f.terms.iter().map(|&(t, _)| t))
            .collect();
        Some(Places {
            program: self.program(&terms, vars)?,
            indices: indices.to_vec(),
            points: points.to_vec(),
            inputs: vec![0; points.len()],
        })
    }

    /// Start and stop of a side, as integers.
    fn side(&mut self, dim: &RegionDim) -> Option<(Lin, Lin)> {
        let (start, extent) = (self.term(&dim.start), self.term(&dim.extent));
        if !self.dtype(start).scalar.is_int() || !self.dtype(extent).scalar.is_int() {
            return None;
        }
        let (start, extent) = (self.expanded(start)?, self.expanded(extent)?);
        let mut stop = start.clone();
        stop.add_scaled(&extent, 1)?;
        Some((start, stop))
    }

    /// Whether `a <= b` always holds.
    fn at_most_form(&mut self, a: &Lin, b: &Lin) -> bool {
        a.minus(b)
            .is_some_and(|goal| self.proves_nonpositive(&goal))
    }

    /// Takes an index apart; `None` if a term depends on the point and on something else.
    fn parts(&mut self, e: &Expr, vars: &[Term]) -> Option<Parts> {
        let t = self.term(e);
        let dtype = self.dtype(t);
        if !dtype.scalar.is_int() || dtype.lanes != 1 {
            return None;
        }
        let form = self.ring_form(t);
        let (mut varying, mut rest) = (Lin::default(), Lin::constant(form.constant));
        for &(t, c) in form.terms.iter() {
            if vars.iter().any(|&v| self.arena.mentions(t, v)) {
                varying.ring_add_term(t, c);
            } else {
                rest.ring_add_term(t, c);
            }
        }
        Some(Parts {
            varying,
            rest,
            bits: dtype.scalar.bits(),
        })
    }

    /// Whether each coefficient is larger than all that the smaller ones together can reach,
    /// like the places of a number, and the whole stays below `2^bits`.
    fn is_mixed_radix(&self, form: &Lin, bits: u32, points: &[PointVar], vars: &[Term]) -> bool {
        let coefficient = |v: &Term| form.coefficient(*v).unsigned_abs();
        let varies = |p: &&PointVar| p.range.width() > 0;
        let moving: Vec<(u128, u128)> = points
            .iter()
            .zip(vars)
            .filter(|(p, _)| varies(p))
            .map(|(p, v)| (coefficient(v), p.range.width()))
            .collect();
        // Nothing but the variables themselves.
        if !form.terms.iter().all(|(t, _)| vars.contains(t)) {
            return false;
        }
        let mut places = moving;
        places.sort_unstable();
        let mut reach = 0u128;
        for (c, width) in places {
            if c <= reach {
                return false;
            }
            match c.checked_mul(width).and_then(|r| r.checked_add(reach)) {
                Some(r) => reach = r,
                None => return false,
            }
        }
        reach < 1 << bits
    }

    /// Whether the scope knows something of the variables beyond the ranges given.
    fn restricts(&mut self, vars: &[Term], points: &[PointVar]) -> bool {
        let narrower = points
            .iter()
            .zip(vars)
            .any(|(p, &v)| !p.range.is_within(self.interval(v)));
        let known = |s: &Analyzer, t: Term| {
            !matches!(s.node(t), Node::Var(_)) && vars.iter().any(|&v| s.arena.mentions(t, v))
        };
        let congruent = vars.iter().any(|&v| self.domain(v).congruence.modulus != 1);
        narrower
            || congruent
            || self.frames.iter().any(|f| {
                f.facts.iter().any(|l| {
                    l.terms
                        .iter()
                        .any(|&(t, _)| vars.iter().any(|&v| self.arena.mentions(t, v)))
                }) || f.known.keys().any(|&t| known(self, t))
                    || f.refined.keys().any(|&t| known(self, t))
                    || f.lets.keys().any(|t| vars.contains(t))
            })
    }
}

/// Indices that are computed point by point.
struct Places {
    program: Program,
    indices: Vec<(Lin, u32)>,
    points: Vec<PointVar>,
    inputs: Vec<i128>,
}

/// A tuple of indices: the number of all but the last, and the last.
type Place = (u32, i128);

#[derive(Default)]
struct Scratch {
    values: Vec<Option<i128>>,
    /// Numbers of tuples that others begin with.
    prefixes: FxHashMap<Place, u32>,
}

impl Places {
    /// The indices of the point with this number, the last variable running fastest.
    fn at(&mut self, mut number: usize, scratch: &mut Scratch) -> Option<Place> {
        for (p, input) in self.points.iter().zip(&mut self.inputs).rev() {
            let size = p.range.width() as usize + 1;
            *input = p.range.lo + (number % size) as i128;
            number /= size;
        }
        self.program.run(&self.inputs, &mut scratch.values);
        let mut results = self.program.results(&scratch.values);
        let mut place: Option<Place> = None;
        for (form, bits) in &self.indices {
            let mut sum = form.constant;
            for &(_, c) in form.terms.iter() {
                sum = sum.wrapping_add(results.next()??.wrapping_mul(c));
            }
            let index = sum & ((1 << bits) - 1);
            let prefix = match place {
                None => 0,
                Some(place) => {
                    let next = scratch.prefixes.len() as u32 + 1;
                    *scratch.prefixes.entry(place).or_insert(next)
                }
            };
            place = Some((prefix, index));
        }
        Some(place.unwrap_or((0, 0)))
    }
}
