//! The places of an access apart from its constant part: the same for many accesses.
//!
//! Places are `constant + Σ factor · term`, for the points where the guards hold. A loop that
//! occurs in a single term of its own is a *run*: the thread's places repeated at a stride. Runs
//! without gaps only make the access wider, which is how a thread that walks along a row becomes
//! a thread that touches the row once.

use std::cell::OnceCell;
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

/// The places of a shape in units.
#[derive(Debug)]
struct Spread {
    /// Bits of a unit: it divides all distances and the width.
    unit: i64,
    /// Without the repetitions, from the lowest place on; [`OUTSIDE`] where a guard fails.
    offsets: Vec<i64>,
    /// How many offsets each thread has; `None` when all threads have all of them.
    per_thread: Option<usize>,
    /// Of one place.
    width: i64,
    /// Where each repetition by the runs, and by loops that threads have no part in, starts.
    starts: Vec<i64>,
    /// The lowest place, in bits.
    lowest: i64,
    /// From the lowest place to the end of the highest, repetitions included; zero when no thread
    /// touches anything.
    span: i64,
    /// Who touches each unit.
    owners: OnceCell<Vec<Owner>>,
}

const OUTSIDE: i64 = i64::MIN;
/// How many units a table of owners may have, and how many for each that is touched.
const MAX_UNITS: i64 = 1 << 20;
const MAX_GAPS: i64 = 16;

impl Shapes {
    pub fn new(kernel: &tilewright_ir::Kernel, warp: u32) -> Shapes {
        Shapes {
            threads: kernel.num_threads(),
            warp: warp.max(1),
            terms: Terms::new(kernel),
            ids: FxHashMap::default(),
            forms: Vec::new(),
            spreads: FxHashMap::default(),
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
        // Where the second table starts in the first.
        let shift = distance
            .checked_add(second.lowest)?
            .checked_sub(first.lowest)?;
        if shift >= first.bits() || shift.checked_neg()? >= second.bits() {
            return Some(Meeting::Nowhere);
        }
        // Who touches which unit is listed for one of the two, and the places of the other are
        // gone through until two warps meet.
        let effort = |listed: &Spread, walked: &Spread| {
            let list = match listed.owners.get() {
                Some(_) => 0,
                None => listed.span.saturating_add(listed.touched()),
            };
            let each = walked.width * walked.unit / listed.unit + 1;
            list.saturating_add(walked.places().saturating_mul(each))
        };
        match (first.is_dense(), second.is_dense()) {
            (false, false) => self.meet_sparse(&first, &second, shift),
            (true, false) => Some(self.meet_listed(&first, &second, shift)),
            (true, true) if effort(&first, &second) <= effort(&second, &first) => {
                Some(self.meet_listed(&first, &second, shift))
            }
            _ => Some(self.meet_listed(&second, &first, -shift)),
        }
    }

    /// The places of the second, which start `shift` bits from the first, looked up in the list of
    /// the first.
    fn meet_listed(&self, listed: &Spread, walked: &Spread, shift: i64) -> Meeting {
        let owners = listed.owners.get_or_init(|| self.owners(listed));
        if std::ptr::eq(listed, walked) && shift == 0 {
            // Whoever is listed for a unit meets himself there.
            let met = owners.iter().map(|owner| owner.meets(*owner, self.warp));
            return met.max().unwrap_or(Meeting::Nowhere);
        }
        let end = owners.len() as i64;
        let (unit, bits) = (listed.unit, walked.width * walked.unit);
        // The units of the one mostly are whole units of the other.
        let whole = (shift % unit == 0 && walked.unit % unit == 0)
            .then(|| (shift / unit, walked.unit / unit));
        let units = |place: i64| match whole {
            Some((first, each)) => {
                let from = first.saturating_add(place * each);
                (from, from.saturating_add(walked.width * each))
            }
            None => {
                let place = shift.saturating_add(place * walked.unit);
                let last = place.saturating_add(bits - 1).div_euclid(unit);
                (place.div_euclid(unit), last + 1)
            }
        };
        let mut met = Meeting::Nowhere;
        // Neighbouring units mostly have the same owners.
        let mut last = (Owner::NOBODY, Owner::NOBODY);
        for (owner, offset) in self.owned(walked) {
            for start in &walked.starts {
                let (from, to) = units(offset + start);
                let from = from.clamp(0, end);
                for other in &owners[from as usize..to.clamp(from, end) as usize] {
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
        met
    }

    /// The same for places that lie too far apart for lists of all units between them, as those of
    /// tensors do: only units that are touched are noted. `None` where there are too many.
    fn meet_sparse(&self, first: &Spread, second: &Spread, shift: i64) -> Option<Meeting> {
        let unit = gcd(gcd(first.unit, second.unit), shift);
        let mut owners: FxHashMap<i64, Owner> = FxHashMap::default();
        owners.reserve(usize::try_from(first.touched()).ok()?.min(MAX_PLACES));
        let mut met = Meeting::Nowhere;
        if std::ptr::eq(first, second) && shift == 0 {
            // Whoever comes to a unit meets himself there, and those before him.
            self.each_unit(first, unit, |place, owner| {
                let before = owners.entry(place).or_insert(owner);
                met = met.max(before.meets(owner, self.warp));
                *before = before.and(owner, self.warp);
                met != Meeting::AcrossWarps
            })?;
            return Some(met);
        }
        self.each_unit(first, unit, |place, owner| {
            let before = owners.entry(place).or_insert(owner);
            *before = before.and(owner, self.warp);
            true
        })?;
        let shift = shift / unit;
        self.each_unit(second, unit, |place, owner| {
            if let Some(other) = owners.get(&(place + shift)) {
                met = met.max(owner.meets(*other, self.warp));
            }
            met != Meeting::AcrossWarps
        })?;
        Some(met)
    }

    /// Calls `f` with every one of these smaller units that is touched, from the lowest place on,
    /// and its owner, until it says stop; `None` where there are too many.
    fn each_unit(
        &self,
        spread: &Spread,
        unit: i64,
        mut f: impl FnMut(i64, Owner) -> bool,
    ) -> Option<()> {
        let finer = spread.unit / unit;
        let width = spread.width * finer;
        if spread.touched().saturating_mul(finer) > MAX_PLACES as i64 {
            return None;
        }
        for (owner, offset) in self.owned(spread) {
            for start in &spread.starts {
                let first = (offset + start) * finer;
                if !(first..first + width).all(|place| f(place, owner)) {
                    return Some(());
                }
            }
        }
        Some(())
    }

    /// The offsets that are touched, and by whom.
    fn owned(&self, spread: &Spread) -> impl Iterator<Item = (Owner, i64)> {
        let all = Owner::first_threads(self.threads, self.warp);
        // Offsets that all threads have are one row.
        let (len, one) = match spread.per_thread {
            Some(own) => (own, false),
            None => (spread.offsets.len(), true),
        };
        let rows = spread.offsets.chunks(len.max(1)).enumerate();
        rows.flat_map(move |(row, offsets)| {
            let owner = if one { all } else { Owner::thread(row as u32) };
            let inside = offsets.iter().filter(|offset| **offset != OUTSIDE);
            inside.map(move |offset| (owner, *offset))
        })
    }

    /// Who touches each unit.
    fn owners(&self, spread: &Spread) -> Vec<Owner> {
        let mut owners = vec![Owner::NOBODY; spread.span as usize];
        for (owner, offset) in self.owned(spread) {
            for start in &spread.starts {
                let place = (offset + start) as usize;
                for slot in &mut owners[place..place + spread.width as usize] {
                    *slot = slot.and(owner, self.warp);
                }
            }
        }
        owners
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
        // Terms over the same points are added first, and those over few points: the sum has the
        // points of all.
        let mut sums: Vec<Column> = Vec::new();
        for (term, factor) in &form.terms {
            let column = self.terms.column(*term)?;
            match sums.iter_mut().find(|sum| sum.dims == column.dims) {
                Some(sum) => {
                    for (sum, x) in sum.values.iter_mut().zip(&column.values) {
                        *sum = sum.checked_add(x.checked_mul(*factor)?)?;
                    }
                }
                None => sums.push(combine([&*column], |[x]| x.checked_mul(*factor))?),
            }
        }
        sums.sort_by_key(|sum| sum.values.len());
        let mut guards = Vec::with_capacity(form.guards.len());
        for guard in &form.guards {
            guards.push(self.terms.column(*guard)?);
        }
        let (own, again) = apart(sums, &guards);
        let mut places = add(own)?;
        for guard in &guards {
            places = combine([&places, &**guard], |[place, holds]| {
                Some(if holds != 0 { place } else { OUTSIDE })
            })?;
        }
        let mut again = add(again)?.values;
        let mut count = places.values.len().checked_mul(again.len())?;
        let mut unit = form.bits;
        let mut length = form.bits;
        for run in &form.runs {
            count = count.checked_mul(usize::try_from(run.count).ok()?)?;
            unit = gcd(unit, run.stride);
            length = length.checked_add(run.stride.checked_mul(run.count - 1)?)?;
        }
        if count > MAX_PLACES {
            return None;
        }
        let per_thread = match places.dims.first() {
            Some(dim) if dim.is_threads() => Some(places.values.len() / dim.extent.max(1)),
            _ => None,
        };
        let mut offsets = places.values;
        let (mut lowest, mut span) = (0, 0);
        if let (Some(places), Some(starts)) = (from_lowest(&mut offsets)?, from_lowest(&mut again)?)
        {
            lowest = places.0.checked_add(starts.0)?;
            span = places.1.checked_add(starts.1)?.checked_add(length)?;
            lowest.checked_add(span)?;
        }
        for offset in offsets.iter().chain(&again) {
            if *offset != OUTSIDE && *offset % unit != 0 {
                unit = gcd(unit, *offset);
            }
        }
        for offset in offsets.iter_mut().chain(&mut again) {
            if *offset != OUTSIDE {
                *offset /= unit;
            }
        }
        Some(Spread {
            unit,
            offsets,
            per_thread,
            width: form.bits / unit,
            starts: form.starts(again, unit),
            lowest,
            span: span / unit,
            owners: OnceCell::new(),
        })
    }
}

/// Parts the sums that make a thread's places from those that only repeat them: of loops that
/// neither the former nor a guard mentions.
fn apart(sums: Vec<Column>, guards: &[Rc<Column>]) -> (Vec<Column>, Vec<Column>) {
    let (mut own, mut again): (Vec<Column>, Vec<Column>) =
        sums.into_iter().partition(|sum| sum.has_threads());
    loop {
        let mentioned = || own.iter().chain(guards.iter().map(|guard| &**guard));
        let tied = |sum: &Column| mentioned().any(|other| other.shares_dims(sum));
        let Some(at) = again.iter().position(tied) else {
            return (own, again);
        };
        own.push(again.remove(at));
    }
}

/// The sum of columns, over the points of all; of none it is one zero.
fn add(columns: Vec<Column>) -> Option<Column> {
    let zero = Column {
        dims: Vec::new(),
        values: vec![0],
    };
    columns.into_iter().try_fold(zero, |sum, column| {
        combine([&sum, &column], |[sum, x]| {
            sum.checked_add(x).filter(|sum| *sum != OUTSIDE)
        })
    })
}

/// Takes the lowest of the values that are inside from each of them; gives it, and the highest that
/// is left. Nothing where none is inside.
fn from_lowest(values: &mut [i64]) -> Option<Option<(i64, i64)>> {
    let inside = || values.iter().copied().filter(|v| *v != OUTSIDE);
    let (Some(lowest), Some(highest)) = (inside().min(), inside().max()) else {
        return Some(None);
    };
    let highest = highest.checked_sub(lowest)?;
    for value in values.iter_mut().filter(|value| **value != OUTSIDE) {
        *value -= lowest;
    }
    Some(Some((lowest, highest)))
}

impl Spread {
    fn bits(&self) -> i64 {
        self.span * self.unit
    }

    /// How many places there are.
    fn places(&self) -> i64 {
        (self.offsets.len() * self.starts.len()) as i64
    }

    /// How many units they have.
    fn touched(&self) -> i64 {
        self.places().saturating_mul(self.width)
    }

    /// Whether a list of all units is not much longer than the places.
    fn is_dense(&self) -> bool {
        self.span <= MAX_UNITS && self.span / MAX_GAPS <= self.touched()
    }
}

impl Form {
    /// Where each repetition starts: those that are given, by the runs.
    fn starts(&self, again: Vec<i64>, unit: i64) -> Vec<i64> {
        let mut starts = again;
        for run in &self.runs {
            let stride = run.stride / unit;
            starts = starts
                .iter()
                .flat_map(|start| (0..run.count).map(move |n| start + n * stride))
                .collect();
        }
        starts
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
