//! Summaries of tensors and comparison of two of them.

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
    pub fn ok(&self) -> bool {
        self.mismatches == 0
    }
}

/// The summary of a tensor; an empty one has zeros.
pub fn summarize(tensor: &HostTensor) -> Summary {
    let (mut min, mut max) = (f64::INFINITY, f64::NEG_INFINITY);
    let (mut sum, mut squares, mut finite) = (0.0, 0.0, 0usize);
    let (mut nans, mut infinities, mut unwritten) = (0, 0, 0);
    for i in 0..tensor.len() {
        if !tensor.is_written(i) {
            unwritten += 1;
            continue;
        }
        let v = tensor.get_f64(i);
        if v.is_nan() {
            nans += 1;
            continue;
        }
        (min, max) = (min.min(v), max.max(v));
        if v.is_infinite() {
            infinities += 1;
        } else {
            finite += 1;
            sum += v;
            squares += v * v;
        }
    }
    let n = finite.max(1) as f64;
    let mean = sum / n;
    if min > max {
        (min, max) = (0.0, 0.0);
    }
    Summary {
        min,
        max,
        mean,
        deviation: (squares / n - mean * mean).max(0.0).sqrt(),
        nans,
        infinities,
        unwritten,
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
    matters: impl Fn(usize) -> bool,
) -> Option<Comparison> {
    if actual.shape() != expected.shape() || actual.len() != expected.len() {
        return None;
    }
    let mut result = Comparison {
        elements: 0,
        left_out: 0,
        max_abs_err: 0.0,
        max_rel_err: 0.0,
        mismatches: 0,
        worst: None,
    };
    let mut worst_excess = f64::NEG_INFINITY;
    for i in 0..actual.len() {
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
    Some(result)
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
