//! The places of an access apart from its constant part: the same for many accesses.
//!
//! Places are `constant + Σ factor · term`, for the points where the guards hold. A loop that
//! occurs in a single term of its own is a *run*: the thread's places repeated at a stride. Runs
//! without gaps only make the access wider, which is how a thread that walks along a row becomes
//! a thread that touches the row once.

use std::rc::Rc;

use rustc_hash::FxHashMap;

use crate::access::Points;
use crate::footprint::{MAX_PLACES, Meeting, Owner, gcd};
use crate::terms::{Axes, Column, Term, Terms, combine};

/// A shape, by number: equal numbers are equal shapes.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Shape(u32);

/// The shapes of one kernel and how their places meet.
#[derive(Debug)]
pub struct Shapes {
    threads: u32,
    warp: u32,
    terms: Terms,
    ids: FxHashMap<Form, Shape>,
    forms: Vec<Form>,
    spreads: FxHashMap<Shape, Option<Rc<Spread>>>,
    maps: FxHashMap<(Shape, i64), Rc<Vec<Owner>>>,
    /// By the shapes and the distance from the first one's constant to the second one's.
    meetings: FxHashMap<(Shape, Shape, i64), Option<Meeting>>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Form {
    terms: Vec<(Term, i64)>,
    guards: Vec<Term>,
    runs: Vec<Run>,
    bits: i64,
}

/// The places again, `count` times in all, `stride` bits apart.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
struct Run {
    stride: i64,
    count: i64,
}

/// The places of a shape without its runs.
#[derive(Debug)]
struct Spread {
    /// From the lowest place on; [`OUTSIDE`] where a guard fails.
    offsets: Vec<i64>,
    /// How many offsets each thread has; `None` when all threads have all of them.
    per_thread: Option<usize>,
    lowest: i64,
    /// Bits from the lowest place to the end of the highest, runs included; zero when no
    /// thread touches anything.
    span: i64,
    /// Divides all distances and the width.
    grain: i64,
}

const OUTSIDE: i64 = i64::MIN;
/// How many units a table of owners may have.
const MAX_UNITS: i64 = 1 << 20;

impl Shapes {
    pub fn new(kernel: &tilewright_ir::Kernel, warp: u32) -> Shapes {
        Shapes {
            threads: kernel.num_threads(),
            warp: warp.max(1),
            terms: Terms::new(kernel),
            ids: FxHashMap::default(),
            forms: Vec::new(),
            spreads: FxHashMap::default(),
            maps: FxHashMap::default(),
            meetings: FxHashMap::default(),
        }
    }

    /// The shape of the places and their constant part.
    pub fn of(&mut self, points: &Points) -> Option<(Shape, i64)> {
        if points.bits <= 0 {
            return None;
        }
        let mut axes = Axes::new(&points.axes);
        let mut terms: Vec<(Term, i64)> = Vec::with_capacity(points.varying.len());
        for (e, factor) in &points.varying {
            let term = self.terms.term(e, &mut axes)?;
            match terms.iter_mut().find(|(known, _)| *known == term) {
                Some((_, sum)) => *sum = sum.checked_add(*factor)?,
                None => terms.push((term, *factor)),
            }
        }
        // Terms that cancel stay: their loops may be empty.
        terms.sort_unstable();
        let mut guards = Vec::with_capacity(points.guards.len());
        for guard in &points.guards {
            guards.push(self.terms.term(guard, &mut axes)?);
        }
        guards.sort_unstable();
        guards.dedup();
        let mut form = Form {
            terms,
            guards,
            runs: Vec::new(),
            bits: points.bits,
        };
        let mut constant = points.constant;
        self.take_runs(&mut form, &mut constant)?;
        form.widen()?;
        let next = Shape(u32::try_from(self.forms.len()).ok()?);
        let shape = *self.ids.entry(form.clone()).or_insert(next);
        if shape == next {
            self.forms.push(form);
        }
        Some((shape, constant))
    }

    /// How the places meet, the second constant being `distance` from the first; `None` when
    /// that cannot be counted out.
    pub fn meet(&mut self, a: Shape, b: Shape, distance: i64) -> Option<Meeting> {
        // Meeting is mutual.
        let (a, b, distance) = if (a, 0) <= (b, distance) {
            (a, b, distance)
        } else {
            (b, a, distance.checked_neg()?)
        };
        if let Some(known) = self.meetings.get(&(a, b, distance)) {
            return *known;
        }
        let met = self.meet_anew(a, b, distance);
        self.meetings.insert((a, b, distance), met);
        met
    }

    /// Loops that are a term of their own become runs, and give their start to the constant.
    fn take_runs(&self, form: &mut Form, constant: &mut i64) -> Option<()> {
        let terms = std::mem::take(&mut form.terms);
        for &(term, factor) in &terms {
            let own = self.terms.loops(term);
            let mut others = terms
                .iter()
                .map(|(t, _)| *t)
                .filter(|t| *t != term)
                .chain(form.guards.iter().copied());
            let alone = !others.any(|t| self.terms.loops(t).meet(own));
            let run = self.terms.as_axis(term).filter(|s| alone && s.count > 0);
            let Some(steps) = run else {
                form.terms.push((term, factor));
                continue;
            };
            let stride = factor.checked_mul(steps.step)?;
            *constant = constant.checked_add(factor.checked_mul(steps.start)?)?;
            if stride < 0 {
                *constant = constant.checked_add(stride.checked_mul(steps.count - 1)?)?;
            }
            if steps.count > 1 && stride != 0 {
                form.runs.push(Run {
                    stride: stride.checked_abs()?,
                    count: steps.count,
                });
            }
        }
        form.runs.sort_unstable();
        Some(())
    }

    fn meet_anew(&mut self, a: Shape, b: Shape, distance: i64) -> Option<Meeting> {
        let (first, second) = (self.spread(a)?, self.spread(b)?);
        if first.span == 0 || second.span == 0 {
            return Some(Meeting::Nowhere);
        }
        // Where the second table starts in the first.
        let shift = distance
            .checked_add(second.lowest)?
            .checked_sub(first.lowest)?;
        if shift >= first.span || shift.checked_neg()? >= second.span {
            return Some(Meeting::Nowhere);
        }
        let unit = gcd(gcd(first.grain, second.grain), shift);
        if first.span / unit > MAX_UNITS || second.span / unit > MAX_UNITS {
            return self.meet_sparse((a, &first), (b, &second), shift / unit, unit);
        }
        // Who touches which unit is listed for one of the two, best for one where that is known
        // or short; the places of the other are gone through until two warps meet.
        let known = |shape: Shape| self.maps.contains_key(&(shape, unit));
        let places = |spread: &Spread, shape: Shape| {
            let runs = &self.forms[shape.0 as usize].runs;
            let each: i64 = runs.iter().map(|run| run.count).product();
            (spread.offsets.len() as i64).saturating_mul(each)
        };
        let (short, long) = ((a, &first), (b, &second));
        let swap = match (known(a), known(b)) {
            (true, true) => return self.meet_listed(a, b, shift / unit, unit),
            (true, false) => false,
            (false, true) => true,
            (false, false) => places(&second, b) < places(&first, a),
        };
        let (listed, walked) = if swap { (long, short) } else { (short, long) };
        // Where the walked places start in the list.
        let shift = if swap { -shift } else { shift } / unit;
        let owners = self.owners(listed.0, unit)?;
        let form = &self.forms[walked.0.0 as usize];
        let (width, starts) = form.units(unit);
        let mut met = Meeting::Nowhere;
        // Neighbouring units mostly have the same owners.
        let mut last = (Owner::NOBODY, Owner::NOBODY);
        for (at, offset) in walked.1.offsets.iter().enumerate() {
            if *offset == OUTSIDE {
                continue;
            }
            let owner = self.owner(walked.1, at);
            for start in &starts {
                let place = shift + offset / unit + start;
                let from = usize::try_from(place.max(0)).ok()?.min(owners.len());
                let to = usize::try_from((place + width).max(0)).ok()?;
                for other in &owners[from..to.clamp(from, owners.len())] {
                    if (owner, *other) != last {
                        last = (owner, *other);
                        met = met.max(owner.meets(*other, self.warp));
                    }
                }
            }
            if met == Meeting::AcrossWarps {
                break;
            }
        }
        Some(met)
    }

    /// The same for places that lie too far apart for a list of all units between them, as those of
    /// tensors do: only units that are touched are noted.
    fn meet_sparse(
        &self,
        (a, first): (Shape, &Spread),
        (b, second): (Shape, &Spread),
        shift: i64,
        unit: i64,
    ) -> Option<Meeting> {
        let mut owners: FxHashMap<i64, Owner> = FxHashMap::default();
        let mut met = Meeting::Nowhere;
        if (a, shift) == (b, 0) {
            // Whoever comes to a unit meets himself there, and those before him.
            self.each_unit(a, first, unit, |place, owner| {
                let before = owners.entry(place).or_insert(owner);
                met = met.max(before.meets(owner, self.warp));
                *before = before.and(owner, self.warp);
                met != Meeting::AcrossWarps
            })?;
            return Some(met);
        }
        self.each_unit(a, first, unit, |place, owner| {
            let before = owners.entry(place).or_insert(owner);
            *before = before.and(owner, self.warp);
            true
        })?;
        self.each_unit(b, second, unit, |place, owner| {
            if let Some(other) = owners.get(&(place + shift)) {
                met = met.max(owner.meets(*other, self.warp));
            }
            met != Meeting::AcrossWarps
        })?;
        Some(met)
    }

    /// Calls `f` with every unit that the shape touches, from its lowest place on, and its owner,
    /// until it says stop; `None` where there are too many.
    fn each_unit(
        &self,
        shape: Shape,
        spread: &Spread,
        unit: i64,
        mut f: impl FnMut(i64, Owner) -> bool,
    ) -> Option<()> {
        let (width, starts) = self.forms[shape.0 as usize].units(unit);
        let each = starts.len().checked_mul(usize::try_from(width).ok()?)?;
        let count = spread.offsets.len().checked_mul(each)?;
        if count > MAX_PLACES {
            return None;
        }
        for (at, offset) in spread.offsets.iter().enumerate() {
            if *offset == OUTSIDE {
                continue;
            }
            let owner = self.owner(spread, at);
            for start in &starts {
                let first = offset / unit + start;
                if !(first..first + width).all(|place| f(place, owner)) {
                    return Some(());
                }
            }
        }
        Some(())
    }

    /// The same where it is listed for both who touches which unit, the second list starting
    /// `shift` units into the first.
    fn meet_listed(&mut self, a: Shape, b: Shape, shift: i64, unit: i64) -> Option<Meeting> {
        let (a, b) = (self.owners(a, unit)?, self.owners(b, unit)?);
        let (a, b) = if shift >= 0 {
            (&a[shift as usize..], &b[..])
        } else {
            (&a[..], &b[shift.unsigned_abs() as usize..])
        };
        let mut met = Meeting::Nowhere;
        for (x, y) in a.iter().zip(b) {
            met = met.max(x.meets(*y, self.warp));
            if met == Meeting::AcrossWarps {
                break;
            }
        }
        Some(met)
    }

    /// Who has the offset at this number.
    fn owner(&self, spread: &Spread, at: usize) -> Owner {
        match spread.per_thread {
            Some(own) => Owner::thread((at / own) as u32),
            None => Owner::first_threads(self.threads, self.warp),
        }
    }

    fn spread(&mut self, shape: Shape) -> Option<Rc<Spread>> {
        if let Some(known) = self.spreads.get(&shape) {
            return known.clone();
        }
        let spread = self.spread_anew(shape).map(Rc::new);
        self.spreads.insert(shape, spread.clone());
        spread
    }

    fn spread_anew(&mut self, shape: Shape) -> Option<Spread> {
        let form = &self.forms[shape.0 as usize];
        let mut places = Column {
            dims: Vec::new(),
            values: vec![0],
        };
        for (term, factor) in &form.terms {
            let column = self.terms.column(*term)?;
            places = combine([&places, &*column], |[sum, x]| {
                sum.checked_add(x.checked_mul(*factor)?)
                    .filter(|sum| *sum != OUTSIDE)
            })?;
        }
        for guard in &form.guards {
            let column = self.terms.column(*guard)?;
            places = combine([&places, &*column], |[place, holds]| {
                Some(if holds != 0 { place } else { OUTSIDE })
            })?;
        }
        let mut count = places.values.len();
        let mut grain = form.bits;
        let mut length = form.bits;
        for run in &form.runs {
            count = count.checked_mul(usize::try_from(run.count).ok()?)?;
            grain = gcd(grain, run.stride);
            length = length.checked_add(run.stride.checked_mul(run.count - 1)?)?;
        }
        if count > MAX_PLACES {
            return None;
        }
        let per_thread = match places.dims.first() {
            Some(dim) if dim.is_threads() => Some(places.values.len() / dim.extent.max(1)),
            _ => None,
        };
        let inside = || places.values.iter().copied().filter(|v| *v != OUTSIDE);
        let (Some(lowest), Some(highest)) = (inside().min(), inside().max()) else {
            return Some(Spread {
                offsets: Vec::new(),
                per_thread,
                lowest: 0,
                span: 0,
                grain,
            });
        };
        let span = highest.checked_sub(lowest)?.checked_add(length)?;
        let mut offsets = places.values;
        for offset in &mut offsets {
            if *offset != OUTSIDE {
                *offset -= lowest;
                if *offset % grain != 0 {
                    grain = gcd(grain, *offset);
                }
            }
        }
        Some(Spread {
            offsets,
            per_thread,
            lowest,
            span,
            grain,
        })
    }

    /// Who touches each unit of the shape, from its lowest place on.
    fn owners(&mut self, shape: Shape, unit: i64) -> Option<Rc<Vec<Owner>>> {
        if let Some(known) = self.maps.get(&(shape, unit)) {
            return Some(known.clone());
        }
        let spread = self.spread(shape)?;
        let form = &self.forms[shape.0 as usize];
        let units = spread.span / unit;
        if units > MAX_UNITS {
            return None;
        }
        let mut owners = vec![Owner::NOBODY; usize::try_from(units).ok()?];
        let (width, starts) = form.units(unit);
        for (at, offset) in spread.offsets.iter().enumerate() {
            if *offset == OUTSIDE {
                continue;
            }
            let owner = self.owner(&spread, at);
            for start in &starts {
                let place = usize::try_from(offset / unit + start).ok()?;
                for slot in &mut owners[place..place + width as usize] {
                    *slot = slot.and(owner, self.warp);
                }
            }
        }
        let owners = Rc::new(owners);
        self.maps.insert((shape, unit), owners.clone());
        Some(owners)
    }
}

impl Form {
    /// The units of one place, and the first unit of each repetition by the runs.
    fn units(&self, unit: i64) -> (i64, Vec<i64>) {
        let mut starts = vec![0];
        for run in &self.runs {
            let stride = run.stride / unit;
            starts = starts
                .iter()
                .flat_map(|start| (0..run.count).map(move |n| start + n * stride))
                .collect();
        }
        (self.bits / unit, starts)
    }

    /// Puts runs without gaps into the width.
    fn widen(&mut self) -> Option<()> {
        while let Some(at) = self.runs.iter().position(|run| run.stride <= self.bits) {
            let run = self.runs.remove(at);
            let length = run.stride.checked_mul(run.count - 1)?;
            self.bits = self.bits.checked_add(length)?;
        }
        Some(())
    }
}
