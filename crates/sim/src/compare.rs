//! Summaries of tensors and comparison of two of them.

use std::ops::Range;

use rayon::prelude::*;

use crate::tensor::HostTensor;

/// What a tensor holds, in a few numbers. NaN and infinity are counted, not averaged.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Summary {
    pub min: f64,
    pub max: f64,
    pub mean: f64,
    /// The standard deviation of the finite elements.
    pub deviation: f64,
    pub nans: usize,
    pub infinities: usize,
    pub unwritten: usize,
}

/// How far apart an element may be from what is expected: `|a - b| <= absolute + relative·|b|`.
#[derive(Clone, Copy, PartialEq, Debug)]
pub struct Tolerance {
    pub absolute: f64,
    pub relative: f64,
}

/// What [`compare`] found.
#[derive(Clone, PartialEq, Debug)]
pub struct Comparison {
    /// Elements that were compared.
    pub elements: usize,
    /// Elements that were not: nothing wrote them, or the caller did not ask for them.
    pub left_out: usize,
    /// Over elements finite on both sides.
    pub max_abs_err: f64,
    /// `|a - b| / |b|` over elements finite on both sides with `b` not zero.
    pub max_rel_err: f64,
    /// Elements outside the tolerance. NaN equals NaN only, infinity the same infinity only.
    pub mismatches: usize,
    /// The position, value and expected value of the worst mismatch.
    pub worst: Option<(usize, f64, f64)>,
}

impl Comparison {
    const NONE: Comparison = Comparison {
        elements: 0,
        left_out: 0,
        max_abs_err: 0.0,
        max_rel_err: 0.0,
        mismatches: 0,
        worst: None,
    };

    pub fn ok(&self) -> bool {
        self.mismatches == 0
    }
}

/// Elements that one thread looks at. Sums are made of the sums of such runs, in their order, so
/// that they are the same on every machine.
const RUN: usize = 1 << 16;

/// What `look` says of each run of the positions below `len`, in order.
fn by_runs<R: Send>(len: usize, look: impl Fn(Range<usize>) -> R + Sync) -> Vec<R> {
    let runs = (0..len.div_ceil(RUN)).into_par_iter();
    runs.map(|run| look(run * RUN..len.min((run + 1) * RUN)))
        .collect()
}

/// Sums over some elements of a tensor.
struct Sums {
    min: f64,
    max: f64,
    sum: f64,
    squares: f64,
    finite: usize,
    nans: usize,
    infinities: usize,
    unwritten: usize,
}

const NOTHING: Sums = Sums {
    min: f64::INFINITY,
    max: f64::NEG_INFINITY,
    sum: 0.0,
    squares: 0.0,
    finite: 0,
    nans: 0,
    infinities: 0,
    unwritten: 0,
};

impl Sums {
    fn of(tensor: &HostTensor, positions: Range<usize>) -> Sums {
        let mut s = NOTHING;
        for i in positions {
            if !tensor.is_written(i) {
                s.unwritten += 1;
                continue;
            }
            let v = tensor.get_f64(i);
            if v.is_nan() {
                s.nans += 1;
                continue;
            }
            (s.min, s.max) = (s.min.min(v), s.max.max(v));
            if v.is_infinite() {
                s.infinities += 1;
            } else {
                s.finite += 1;
                s.sum += v;
                s.squares += v * v;
            }
        }
        s
    }

    fn and(self, other: Sums) -> Sums {
        Sums {
            min: self.min.min(other.min),
            max: self.max.max(other.max),
            sum: self.sum + other.sum,
            squares: self.squares + other.squares,
            finite: self.finite + other.finite,
            nans: self.nans + other.nans,
            infinities: self.infinities + other.infinities,
            unwritten: self.unwritten + other.unwritten,
        }
    }
}

/// The summary of a tensor; an empty one has zeros.
pub fn summarize(tensor: &HostTensor) -> Summary {
    let runs = by_runs(tensor.len(), |positions| Sums::of(tensor, positions));
    let s = runs.into_iter().fold(NOTHING, Sums::and);
    let n = s.finite.max(1) as f64;
    let mean = s.sum / n;
    let (min, max) = match s.min > s.max {
        true => (0.0, 0.0),
        false => (s.min, s.max),
    };
    Summary {
        min,
        max,
        mean,
        deviation: (s.squares / n - mean * mean).max(0.0).sqrt(),
        nans: s.nans,
        infinities: s.infinities,
        unwritten: s.unwritten,
    }
}

/// Compares element by element; `None` when the shapes differ. What neither side wrote has no
/// value to compare and is left out; what only one side wrote is a mismatch.
pub fn compare(
    actual: &HostTensor,
    expected: &HostTensor,
    tolerance: Tolerance,
) -> Option<Comparison> {
    compare_where(actual, expected, tolerance, |i| {
        actual.is_written(i) || expected.is_written(i)
    })
}

/// Compares the elements at the positions that matter, such as those that a sample of blocks
/// wrote.
pub fn compare_where(
    actual: &HostTensor,
    expected: &HostTensor,
    tolerance: Tolerance,
    matters: impl Fn(usize) -> bool + Sync,
) -> Option<Comparison> {
    if actual.shape() != expected.shape() || actual.len() != expected.len() {
        return None;
    }
    let runs = by_runs(actual.len(), |positions| {
        compare_run(actual, expected, tolerance, positions, &matters)
    });
    let none = (Comparison::NONE, f64::NEG_INFINITY);
    let whole = runs.into_iter().fold(none, |(all, worst), (run, excess)| {
        let all = Comparison {
            elements: all.elements + run.elements,
            left_out: all.left_out + run.left_out,
            max_abs_err: all.max_abs_err.max(run.max_abs_err),
            max_rel_err: all.max_rel_err.max(run.max_rel_err),
            mismatches: all.mismatches + run.mismatches,
            worst: match excess > worst {
                true => run.worst,
                false => all.worst,
            },
        };
        (all, worst.max(excess))
    });
    Some(whole.0)
}

/// The comparison of some positions, and by how much the worst of them is over the tolerance.
fn compare_run(
    actual: &HostTensor,
    expected: &HostTensor,
    tolerance: Tolerance,
    positions: Range<usize>,
    matters: &impl Fn(usize) -> bool,
) -> (Comparison, f64) {
    let mut result = Comparison::NONE;
    let mut worst_excess = f64::NEG_INFINITY;
    for i in positions {
        if !matters(i) {
            result.left_out += 1;
            continue;
        }
        result.elements += 1;
        let (a, b) = (actual.get_f64(i), expected.get_f64(i));
        let excess = if !actual.is_written(i) || !expected.is_written(i) {
            f64::INFINITY
        } else if a.is_finite() && b.is_finite() {
            let error = (a - b).abs();
            result.max_abs_err = result.max_abs_err.max(error);
            if b != 0.0 {
                result.max_rel_err = result.max_rel_err.max(error / b.abs());
            }
            error - (tolerance.absolute + tolerance.relative * b.abs())
        } else if a == b || (a.is_nan() && b.is_nan()) {
            continue;
        } else {
            f64::INFINITY
        };
        if excess > 0.0 {
            result.mismatches += 1;
            if excess > worst_excess {
                worst_excess = excess;
                result.worst = Some((i, a, b));
            }
        }
    }
    (result, worst_excess)
}

#[cfg(test)]
mod tests {
    use super::*;
    use tilewright_ir::DType;

    fn tensor(values: &[f64]) -> HostTensor {
        HostTensor::from_f64(DType::F32, &[values.len()], values).expect("small tensor")
    }

    const EXACT: Tolerance = Tolerance {
        absolute: 0.0,
        relative: 0.0,
    };

    #[test]
    fn special_values_equal_themselves_only() {
        let inf = f64::INFINITY;
        let a = tensor(&[f64::NAN, inf, -inf, 1.0]);
        assert!(compare(&a, &a, EXACT).expect("same shape").ok());
        let b = tensor(&[1.0, -inf, 1.0, f64::NAN]);
        assert_eq!(compare(&a, &b, EXACT).expect("same shape").mismatches, 4);
        assert!(compare(&a, &tensor(&[1.0]), EXACT).is_none());
    }

    #[test]
    fn errors_and_the_worst_element() {
        let a = tensor(&[1.0, 2.5, 4.0]);
        let b = tensor(&[1.0, 2.0, 5.0]);
        let loose = Tolerance {
            absolute: 0.5,
            relative: 0.0,
        };
        let c = compare(&a, &b, loose).expect("same shape");
        assert_eq!((c.max_abs_err, c.max_rel_err), (1.0, 0.25));
        assert_eq!((c.mismatches, c.worst), (1, Some((2, 4.0, 5.0))));
    }

    #[test]
    fn runs_make_a_whole() {
        let len = 3 * RUN + 5;
        let mut expected: Vec<f64> = (0..len).map(|i| (i % 7) as f64).collect();
        let b = tensor(&expected);
        let (mean, max) = (summarize(&b).mean, summarize(&b).max);
        assert!((mean - 3.0).abs() < 1e-4 && max == 6.0, "{mean} {max}");
        for (at, error) in [(3, 1.0), (RUN, 4.0), (2 * RUN - 1, 8.0), (len - 1, 2.0)] {
            expected[at] += error;
        }
        let c = compare(&tensor(&expected), &b, EXACT).expect("same shape");
        assert_eq!((c.elements, c.mismatches, c.max_abs_err), (len, 4, 8.0));
        let at = 2 * RUN - 1;
        assert_eq!(c.worst, Some((at, expected[at], expected[at] - 8.0)));
    }

    #[test]
    fn only_what_matters_is_compared() {
        let (a, b) = (tensor(&[1.0, 2.0]), tensor(&[1.0, 3.0]));
        let c = compare_where(&a, &b, EXACT, |i| i == 0).expect("same shape");
        assert_eq!((c.elements, c.left_out, c.mismatches), (1, 1, 0));
    }

    #[test]
    fn what_nothing_wrote_is_left_out_and_what_one_side_wrote_is_wrong() {
        let none = HostTensor::uninit(DType::F32, &[2]).expect("small tensor");
        let c = compare(&none, &none, EXACT).expect("same shape");
        assert_eq!((c.elements, c.left_out, c.mismatches), (0, 2, 0));
        let whole = tensor(&[1.0, 2.0]);
        for (a, b) in [(&whole, &none), (&none, &whole)] {
            assert_eq!(compare(a, b, EXACT).expect("same shape").mismatches, 2);
        }
        assert_eq!(summarize(&none).unwritten, 2);
    }

    #[test]
    fn summaries() {
        let s = summarize(&tensor(&[1.0, 3.0, f64::NAN, f64::INFINITY]));
        assert_eq!((s.mean, s.deviation), (2.0, 1.0));
        assert_eq!((s.nans, s.infinities), (1, 1));
        assert_eq!((s.min, s.max), (1.0, f64::INFINITY));
    }
}
