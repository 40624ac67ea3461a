//! Extents and regions: when two are equal, inside a buffer, disjoint; and how the two sides
//! of a copy are paired.
//!
//! Symbolic extents are equal when their difference has no terms left as a polynomial over
//! opaque atoms, or when the prover says so.

use std::collections::BTreeMap;

use tilewright_arith::{Analyzer, Interval};
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Region, Scope, Span};

use crate::record::Recorder;
use crate::record::convert::Tile;
use crate::{Result, codes};

/// Terms of a polynomial before giving up.
const MAX_TERMS: usize = 64;

/// Whether two extents are certainly equal.
pub fn extents_equal(rec: &Recorder, a: &Expr, b: &Expr) -> bool {
    difference(rec, a, b) == Some(0) || proved_equal(rec, a, b)
}

/// What the polynomials leave open, such as quotients and minima, the prover may know.
fn proved_equal(rec: &Recorder, a: &Expr, b: &Expr) -> bool {
    if rec.const_int(a).is_some() && rec.const_int(b).is_some() {
        return false;
    }
    let mut analyzer = Analyzer::new();
    for e in [a, b] {
        e.walk(&mut |e| {
            if let Some(var) = e.as_var()
                && let Some(&(lo, hi)) = rec.var_bounds.get(&var)
            {
                analyzer.bind_interval(var, e.dtype(), Interval::new(lo, hi));
            }
        });
    }
    analyzer.prove_eq(a, b).is_yes()
}

/// Whether two lists of extents are certainly equal, one by one.
pub fn shapes_equal(rec: &Recorder, a: &[Expr], b: &[Expr]) -> bool {
    a.len() == b.len() && a.iter().zip(b).all(|(x, y)| extents_equal(rec, x, y))
}

/// `a - b` where that is a constant.
pub fn difference(rec: &Recorder, a: &Expr, b: &Expr) -> Option<i128> {
    if a == b {
        return Some(0);
    }
    let mut atoms = Vec::new();
    let mut sum = polynomial(rec, a, &mut atoms)?;
    let other = polynomial(rec, b, &mut atoms)?;
    for (term, factor) in other {
        add_term(&mut sum, term, factor.checked_neg()?)?;
    }
    match sum.len() {
        0 => Some(0),
        1 => sum.get(&Term::default()).copied(),
        _ => None,
    }
}

/// The product of extents as a message shows it, and as a number where all are constant.
pub fn const_product(rec: &Recorder, extents: &[Expr]) -> Option<i128> {
    extents
        .iter()
        .try_fold(1i128, |product, e| product.checked_mul(rec.const_int(e)?))
}

/// Whether the products of two lists of factors are certainly equal.
pub fn products_equal(rec: &Recorder, a: &[Expr], b: &[Expr]) -> bool {
    let mut atoms = Vec::new();
    let mut product = |factors: &[Expr]| {
        let mut all = Polynomial::from([(Term::default(), 1)]);
        for factor in factors {
            all = multiply(&all, &polynomial(rec, factor, &mut atoms)?)?;
        }
        Some(all)
    };
    match (product(a), product(b)) {
        (Some(x), Some(y)) => x == y,
        _ => false,
    }
}

/// Numbers of atoms, sorted: `[]` is the constant term, `[0, 0, 1]` is x·x·y.
type Term = Vec<usize>;
/// No entry has the factor zero.
type Polynomial = BTreeMap<Term, i128>;

fn add_term(sum: &mut Polynomial, term: Term, factor: i128) -> Option<()> {
    let entry = sum.entry(term).or_insert(0);
    *entry = entry.checked_add(factor)?;
    sum.retain(|_, f| *f != 0);
    (sum.len() <= MAX_TERMS).then_some(())
}

fn multiply(a: &Polynomial, b: &Polynomial) -> Option<Polynomial> {
    let mut product = Polynomial::new();
    for (x, fx) in a {
        for (y, fy) in b {
            let mut term = [x.as_slice(), y.as_slice()].concat();
            term.sort_unstable();
            add_term(&mut product, term, fx.checked_mul(*fy)?)?;
        }
    }
    Some(product)
}

/// An integer expression as a polynomial; what is no sum or product is an atom.
/// Index arithmetic is taken not to wrap, as everywhere in the language.
fn polynomial(rec: &Recorder, e: &Expr, atoms: &mut Vec<Expr>) -> Option<Polynomial> {
    if let Some(value) = rec.const_int(e) {
        let mut p = Polynomial::new();
        add_term(&mut p, Term::default(), value)?;
        return Some(p);
    }
    match e.kind() {
        ExprKind::Binary(BinOp::Add, a, b) => {
            let mut sum = polynomial(rec, a, atoms)?;
            for (term, factor) in polynomial(rec, b, atoms)? {
                add_term(&mut sum, term, factor)?;
            }
            Some(sum)
        }
        ExprKind::Binary(BinOp::Sub, a, b) => {
            let mut sum = polynomial(rec, a, atoms)?;
            for (term, factor) in polynomial(rec, b, atoms)? {
                add_term(&mut sum, term, factor.checked_neg()?)?;
            }
            Some(sum)
        }
        ExprKind::Binary(BinOp::Mul, a, b) => {
            let (a, b) = (polynomial(rec, a, atoms)?, polynomial(rec, b, atoms)?);
            multiply(&a, &b)
        }
        // Widening keeps the value.
        ExprKind::Cast(inner)
            if inner.dtype().scalar.is_int()
                && e.dtype().scalar.is_int()
                && inner.dtype().bits() <= e.dtype().bits() =>
        {
            polynomial(rec, inner, atoms)
        }
        _ => {
            let index = match atoms.iter().position(|a| a == e) {
                Some(index) => index,
                None => {
                    atoms.push(e.clone());
                    atoms.len() - 1
                }
            };
            Some(Polynomial::from([(vec![index], 1)]))
        }
    }
}

/// `64 x 128` for messages; what is not constant shows as `?`.
pub fn show_extents<'a>(rec: &Recorder, extents: impl IntoIterator<Item = &'a Expr>) -> String {
    let parts: Vec<String> = extents.into_iter().map(|e| show_expr(rec, e)).collect();
    match parts.len() {
        0 => "()".to_string(),
        1 => format!("({},)", parts[0]),
        _ => format!("({})", parts.join(", ")),
    }
}

/// An extent for messages: its value, the name of a symbol, or `?`.
pub fn show_expr(rec: &Recorder, e: &Expr) -> String {
    if let Some(v) = rec.const_int(e) {
        return v.to_string();
    }
    match e.as_var() {
        Some(var) => rec.func.vars[var].name.clone(),
        None => "?".to_string(),
    }
}

/// Refuses a region that certainly leaves its buffer.
///
/// A tile of a global buffer may hang over the far end: what lies outside reads as the safe
/// value and is not written. Only a slice of written constants there is a mistake for certain.
pub fn check_inside(rec: &Recorder, region: &Region, span: Span, written: bool) -> Result<()> {
    let data = rec.buffer(region.buffer);
    for (axis, (dim, size)) in region.dims.iter().zip(&data.shape).enumerate() {
        let Some(size) = rec.const_int(size) else {
            continue;
        };
        let (lo, hi) = rec.range_of(&dim.start).unwrap_or((i128::MIN, i128::MAX));
        let far_end_is_free =
            data.scope == Scope::Global && !(written && dim.start.as_int().is_some());
        let extent = rec.const_int(&dim.extent);
        let starts_outside = hi < 0 || lo >= size;
        // Wherever it starts inside, it ends no earlier than this.
        let first = if starts_outside { lo } else { lo.max(0) };
        let ends_outside =
            !far_end_is_free && extent.is_some_and(|extent| first.saturating_add(extent) > size);
        if !starts_outside && !ends_outside {
            continue;
        }
        let reaches = match extent {
            Some(extent) => format!("{first}:{}", first.saturating_add(extent)),
            None => format!("{first}:"),
        };
        return Err(rec
            .error(
                codes::OUT_OF_BOUNDS,
                span,
                format!(
                    "the region {reaches} is outside dimension {axis} of {}, which has {size} elements",
                    rec.buffer_name(region.buffer)
                ),
            )
            .help("shrink the extent or move the start")
            .into());
    }
    Ok(())
}

/// Refuses source and destination regions of one buffer that certainly overlap without being
/// the same.
pub fn check_no_overlap(rec: &Recorder, src: &Region, dst: &Region, span: Span) -> Result<()> {
    if src.buffer != dst.buffer || src.dims.len() != dst.dims.len() {
        return Ok(());
    }
    let mut same = true;
    for (s, d) in src.dims.iter().zip(&dst.dims) {
        let (Some(distance), Some(s_extent), Some(d_extent)) = (
            difference(rec, &d.start, &s.start),
            rec.const_int(&s.extent),
            rec.const_int(&d.extent),
        ) else {
            return Ok(());
        };
        if distance >= s_extent || -distance >= d_extent {
            return Ok(());
        }
        same &= distance == 0 && s_extent == d_extent;
    }
    if same {
        return Ok(());
    }
    Err(rec
        .error(
            codes::COPY_OVERLAP,
            span,
            format!(
                "source and destination overlap in {}; the result would depend on the order",
                rec.buffer_name(src.buffer)
            ),
        )
        .help("copy through another buffer")
        .into())
}

/// Both operands of a tile operation that works point by point, with where they stand.
#[derive(Clone, Copy, Debug)]
pub struct Sides<'a> {
    /// How the operation is called in messages: `T.copy`.
    pub what: &'a str,
    pub src: &'a Tile,
    pub src_span: Span,
    pub dst: &'a Tile,
    pub dst_span: Span,
}

/// The regions of a point-by-point operation, extents filled in on both sides.
/// `None` when both operands are single elements.
pub fn pair(rec: &Recorder, sides: Sides<'_>) -> Result<Option<(Region, Region)>> {
    let Sides { src, dst, .. } = sides;
    let (mut src_region, mut dst_region) = (src.region(rec), dst.region(rec));
    match (src, dst) {
        (Tile::Element(_), Tile::Element(_)) => return Ok(None),
        (Tile::Buffer(a), Tile::Buffer(b)) => {
            let (a, b) = (&rec.buffer(*a).shape, &rec.buffer(*b).shape);
            if !shapes_equal(rec, a, b) {
                return Err(unequal(rec, sides, &src_region, &dst_region).into());
            }
        }
        (Tile::Element(_), _) => extend(rec, &mut src_region, dst, sides)?,
        (_, Tile::Element(_)) => extend(rec, &mut dst_region, src, sides)?,
        (Tile::Buffer(_) | Tile::Region(_), Tile::Buffer(_) | Tile::Region(_)) => {
            let (s, d) = (src_region.non_unit_extents(), dst_region.non_unit_extents());
            if s.len() != d.len() {
                widen(rec, sides, &mut src_region, &mut dst_region)?;
            }
            let (s, d) = (src_region.non_unit_extents(), dst_region.non_unit_extents());
            let equal =
                s.len() == d.len() && s.iter().zip(&d).all(|(a, b)| extents_equal(rec, a, b));
            if !equal {
                return Err(unequal(rec, sides, &src_region, &dst_region).into());
            }
        }
    }
    for (tile, region, span) in [
        (src, &src_region, sides.src_span),
        (dst, &dst_region, sides.dst_span),
    ] {
        check_inside(rec, region, span, matches!(tile, Tile::Region(_)))?;
    }
    check_no_overlap(rec, &src_region, &dst_region, sides.dst_span)?;
    Ok(Some((src_region, dst_region)))
}

/// Gives a start point the other side's extents, aligned at the last dimension.
fn extend(rec: &Recorder, start: &mut Region, other: &Tile, sides: Sides<'_>) -> Result<()> {
    let mut extents = other.extents(rec).unwrap_or_default();
    // A dimension that the other side wrote as one index is no part of its tile.
    if let Tile::Region(r) = other {
        let surplus = extents.len().saturating_sub(start.dims.len());
        let scalars = r.scalar.iter().take_while(|s| **s).count();
        extents.drain(..surplus.min(scalars));
    }
    if extents.len() > start.dims.len() {
        return Err(rec
            .error(
                codes::COPY_EXTENTS,
                sides.src_span.to(sides.dst_span),
                format!(
                    "{}: the start point in {} has {} indices, the other side has the extents {}",
                    sides.what,
                    rec.buffer_name(start.buffer),
                    start.dims.len(),
                    show_extents(rec, &extents),
                ),
            )
            .help("write both sides with slices, so that it is clear which dimensions take part")
            .into());
    }
    let lead = start.dims.len() - extents.len();
    for (dim, extent) in start.dims[lead..].iter_mut().zip(extents) {
        dim.extent = extent;
    }
    Ok(())
}

/// Widens dimensions that were written as one index to the partner's extent, aligned at the
/// last dimension. An extent of one that was written out never meets a larger one: that would
/// read as a broadcast and be none.
fn widen(rec: &Recorder, sides: Sides<'_>, src: &mut Region, dst: &mut Region) -> Result<()> {
    let is_scalar = |tile: &Tile, axis: usize| match tile {
        Tile::Region(r) => r.scalar.get(axis).copied().unwrap_or(false),
        Tile::Buffer(_) | Tile::Element(_) => false,
    };
    let (src_rank, dst_rank) = (src.dims.len(), dst.dims.len());
    for back in 1..=src_rank.min(dst_rank) {
        let (s, d) = (src_rank - back, dst_rank - back);
        let (s_unit, d_unit) = (src.dims[s].extent.is_int(1), dst.dims[d].extent.is_int(1));
        if s_unit && !d_unit && is_scalar(sides.src, s) {
            src.dims[s].extent = dst.dims[d].extent.clone();
        } else if d_unit && !s_unit && is_scalar(sides.dst, d) {
            dst.dims[d].extent = src.dims[s].extent.clone();
        } else if s_unit != d_unit {
            return Err(unequal(rec, sides, src, dst)
                .note("there is no broadcast: an extent of one does not stand for many")
                .help("fill the larger tile in a `T.Parallel` loop to repeat a row or a column")
                .into());
        }
    }
    Ok(())
}

fn unequal(
    rec: &Recorder,
    sides: Sides<'_>,
    src: &Region,
    dst: &Region,
) -> tilewright_ir::Diagnostic {
    let extents = |r: &Region| show_extents(rec, r.dims.iter().map(|d| &d.extent));
    let name = |b: Buffer| rec.buffer_name(b);
    let (s, d) = (extents(src), extents(dst));
    rec
        .error(
            codes::COPY_EXTENTS,
            sides.src_span.to(sides.dst_span),
            format!(
                "{}: the extents differ: {s} from {}, {d} into {}",
                sides.what,
                name(src.buffer),
                name(dst.buffer)
            ),
        )
        .help("slice both sides to equal extents; an element such as `A[i, j]` is a start point and takes the other side's extents")
}
