//! The places of a set, counted out: which bits each thread touches at each point of the axes.
//!
//! Terms are worked out for all threads at once, point by point. What an expression is without
//! the axes is the same at every point and in other sets too, and is kept.

use std::ops::Range;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::{BinOp, DType, Expr, ExprKind, Var};

use super::places::{Lanes, Shape};
use super::scan::Scan;
use super::value::{evaluate, operate};

/// The first bit of every access.
#[derive(Debug)]
pub struct Points {
    /// Of each thread, by point; [`OUTSIDE`] where it touches nothing.
    pub places: Vec<i64>,
    per_thread: usize,
    /// What they and their widths are multiples of.
    pub unit: Unit,
}

pub const OUTSIDE: i64 = i64::MIN;

/// How many points are counted out; beyond, an access may be anywhere.
pub const MAX_POINTS: usize = 1 << 19;

impl Points {
    /// Thread, point and place of each that is touched.
    pub fn each(&self) -> impl Iterator<Item = (u32, u32, i64)> {
        let threads = self.places.chunks(self.per_thread.max(1)).enumerate();
        threads.flat_map(|(thread, places)| {
            let places = places.iter().enumerate();
            let touched = places.filter(|(_, place)| **place != OUTSIDE);
            touched.map(move |(point, place)| (thread as u32, point as u32, *place))
        })
    }
}

/// So many bits, by their logarithm. Memory is written by whole bytes, also where elements are
/// narrower.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Unit(pub u32);

impl Unit {
    /// What all numbers are multiples of, of which these are the bits that any of them has.
    fn of(any: i64) -> Unit {
        Unit(any.trailing_zeros().clamp(3, 62))
    }

    /// The units that so many bits from a place on lie in.
    pub fn cells(self, place: i64, bits: i64) -> Range<i64> {
        place >> self.0..((place + bits - 1) >> self.0) + 1
    }
}

/// The values of expressions over thread indices, by thread: sets share most of their terms.
/// `None` where there is no value.
pub type Columns = FxHashMap<Expr, Column>;
pub type Column = Rc<[Option<i64>]>;

/// An expression's value for every thread.
fn column(scan: &Scan<'_>, e: &Expr, columns: &mut Columns) -> Column {
    if let Some(known) = columns.get(e) {
        return known.clone();
    }
    let values: Column = match sides(e) {
        // What is under it is in other terms too.
        Some((op, a, b)) => {
            let (first, second) = (column(scan, a, columns), column(scan, b, columns));
            operate_all(op, (a.dtype(), &first, &second), e.dtype())
        }
        None => {
            let threads = 0..scan.kernel.num_threads();
            let values = threads.map(|thread| evaluate(e, &scan.thread_env(thread)));
            values.collect()
        }
    };
    columns.insert(e.clone(), values.clone());
    values
}

/// The values of an operation, thread by thread.
fn operate_all(
    op: BinOp,
    (operands, xs, ys): (DType, &[Option<i64>], &[Option<i64>]),
    dtype: DType,
) -> Column {
    let pairs = xs.iter().zip(ys);
    let values = pairs.map(|(x, y)| operate(op, (operands, (*x)?, (*y)?), dtype));
    values.collect()
}

/// The operation of an expression that has a value where both operands have one: of `&&` and
/// `||` one side may decide alone.
fn sides(e: &Expr) -> Option<(BinOp, &Expr, &Expr)> {
    match e.kind() {
        ExprKind::Binary(BinOp::LogicalAnd | BinOp::LogicalOr, ..) => None,
        ExprKind::Binary(op, a, b) => Some((*op, a, b)),
        _ => None,
    }
}

/// An expression's values at one point of the axes.
enum Values {
    /// The same for all threads.
    Same(Option<i64>),
    Each(Column),
}

impl Values {
    fn of(&self, thread: u32) -> Option<i64> {
        match self {
            Values::Same(value) => *value,
            Values::Each(values) => values[thread as usize],
        }
    }

    fn column(self, threads: u32) -> Column {
        match self {
            Values::Same(value) => Rc::from(vec![value; threads as usize]),
            Values::Each(values) => values,
        }
    }
}

/// Axes with their values, and the point that is counted.
struct Point<'a> {
    axes: &'a [(Var, Vec<i64>)],
    at: Vec<i64>,
}

impl Point<'_> {
    fn value(&self, v: Var) -> Option<i64> {
        let axis = self.axes.iter().position(|(axis, _)| *axis == v)?;
        Some(self.at[axis])
    }

    fn decides(&self, e: &Expr) -> bool {
        mentions(e, &|v| self.axes.iter().any(|(axis, _)| *axis == v))
    }

    /// The values of an expression over axes and threads.
    fn values(&self, scan: &Scan<'_>, e: &Expr, columns: &mut Columns) -> Values {
        if let Some(value) = e.as_int() {
            return Values::Same(i64::try_from(value).ok());
        }
        if !self.decides(e) {
            return Values::Each(column(scan, e, columns));
        }
        let threads = scan.kernel.num_threads();
        let Some((op, a, b)) = sides(e) else {
            let by_thread = |e: &Expr| mentions(e, &|v| scan.kernel.thread_vars.contains(&v));
            if !by_thread(e) {
                return Values::Same(evaluate(e, &|v| self.value(v)));
            }
            let values = (0..threads).map(|thread| {
                let index = scan.thread_env(thread);
                evaluate(e, &|v| self.value(v).or_else(|| index(v)))
            });
            return Values::Each(values.collect());
        };
        let first = self.values(scan, a, columns);
        match (first, self.values(scan, b, columns)) {
            (Values::Same(Some(x)), Values::Same(Some(y))) => {
                Values::Same(operate(op, (a.dtype(), x, y), e.dtype()))
            }
            (Values::Same(_), Values::Same(_)) => Values::Same(None),
            (first, second) => {
                let (xs, ys) = (first.column(threads), second.column(threads));
                Values::Each(operate_all(op, (a.dtype(), &xs, &ys), e.dtype()))
            }
        }
    }
}

fn mentions(e: &Expr, vars: &dyn Fn(Var) -> bool) -> bool {
    let mut found = false;
    e.walk(&mut |node| found |= node.as_var().is_some_and(vars));
    found
}

/// All accesses of a set, thread by thread.
pub fn count_points(scan: &Scan<'_>, shape: &Shape, columns: &mut Columns) -> Option<Points> {
    let Shape::Places {
        constant,
        terms,
        bits,
        axes,
        guards,
        lanes,
        ..
    } = shape
    else {
        return None;
    };
    let threads = scan.kernel.num_threads();
    let mut count = 1usize;
    for (_, values) in axes {
        count = count.checked_mul(values.len())?;
    }
    if count.checked_mul(threads as usize)? > MAX_POINTS {
        return None;
    }
    let mut point = Point {
        axes,
        at: vec![0; axes.len()],
    };
    // Sums split into what the thread decides and what the point decides are cheap to count.
    let (by_point, own): (Vec<_>, Vec<_>) = terms.iter().partition(|t| point.decides(&t.0));
    let (point_guards, thread_guards): (Vec<&Expr>, Vec<&Expr>) =
        guards.iter().partition(|g| point.decides(g));
    let own: Vec<(Column, i64)> = own
        .iter()
        .map(|(e, f)| (column(scan, e, columns), *f))
        .collect();
    let thread_guards: Vec<Column> = thread_guards
        .into_iter()
        .map(|e| column(scan, e, columns))
        .collect();
    let mut bases = Vec::with_capacity(threads as usize);
    for thread in 0..threads {
        let mut inside = match lanes {
            Lanes::Own => true,
            Lanes::Warp(givers) => thread % scan.warp < *givers,
        };
        if inside {
            for guard in &thread_guards {
                inside &= guard[thread as usize]? != 0;
            }
        }
        if !inside {
            bases.push(None);
            continue;
        }
        let mut base = *constant;
        for (values, factor) in &own {
            let value = values[thread as usize]?;
            base = base.checked_add(value.checked_mul(*factor)?)?;
        }
        bases.push(Some(base));
    }
    let mut places = vec![OUTSIDE; count * threads as usize];
    let mut any = *bits;
    for number in 0..count {
        let mut rest = number;
        for (at, (_, list)) in point.at.iter_mut().zip(axes).rev() {
            *at = list[rest % list.len()];
            rest /= list.len();
        }
        let mut offset = 0i64;
        let mut mixed = Vec::new();
        for (term, factor) in &by_point {
            match point.values(scan, term, columns) {
                Values::Same(value) => {
                    offset = offset.checked_add(value?.checked_mul(*factor)?)?;
                }
                Values::Each(values) => mixed.push((values, *factor)),
            }
        }
        let guards: Vec<Values> = point_guards
            .iter()
            .map(|guard| point.values(scan, guard, columns))
            .collect();
        'threads: for (thread, base) in (0..threads).zip(&bases) {
            let Some(base) = base else { continue };
            for guard in &guards {
                if guard.of(thread)? == 0 {
                    continue 'threads;
                }
            }
            let mut place = base.checked_add(offset)?;
            for (values, factor) in &mixed {
                let value = values[thread as usize]?;
                place = place.checked_add(value.checked_mul(*factor)?)?;
            }
            any |= place;
            let at = thread as usize * count + number;
            places[at] = Some(place).filter(|place| *place != OUTSIDE)?;
        }
    }
    Some(Points {
        places,
        per_thread: count,
        unit: Unit::of(any),
    })
}
