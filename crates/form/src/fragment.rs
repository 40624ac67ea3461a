//! Fragments: maps from the elements of a tensor to threads and registers.

use crate::compose::Guard;
use crate::decide::Verdict;
use crate::error::LayoutError;
use crate::form::{Form, Sum, Term};
use crate::layout::{Layout, check_shape};
use crate::radix::{Digit, flatten, indices, row_major_strides, unflatten};

/// Where each element of a block-wide tensor is held: a thread and a slot of that thread's
/// registers, in `replicas` copies.
///
/// It is an injective [`Layout`] from `shape × replicas` to `threads × slots`. Pairs of thread
/// and slot may be empty: 229 elements on 128 threads take two slots and leave 27 pairs unused.
/// `==` compares the functions; [`same_placement`](Fragment::same_placement) forgets how the
/// copies are numbered.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Fragment {
    layout: Layout,
}

/// One copy of an element.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub struct Holder {
    pub thread: i64,
    pub slot: i64,
}

/// The way back from thread and slot to the element, in closed form.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FragmentInverse {
    /// From `(thread, slot)` to an index of `domain`.
    pub form: Form,
    /// What must hold for the pair to hold an element, besides the index being in `domain`.
    pub guards: Vec<Guard>,
    /// A box with the row-major order of `full`; often the same one, sometimes flattened.
    pub domain: Vec<i64>,
    /// The shape of the tensor, then the number of copies.
    pub full: Vec<i64>,
}

impl Fragment {
    /// From a layout over `shape × replicas` to `[threads, slots]`.
    pub fn new(layout: Layout) -> Result<Fragment, LayoutError> {
        if layout.codomain().len() != 2 || layout.shape().is_empty() {
            return Err(LayoutError::Shape {
                expected: vec![1, 1],
                found: layout.codomain().to_vec(),
            });
        }
        layout.require_injective()?;
        Ok(Fragment { layout })
    }

    /// The same of a layout that is made of injective ones so that it is injective itself: of
    /// products, of parts, of other orders and shapes, in more space.
    fn of_injective(layout: Layout) -> Fragment {
        debug_assert!(layout.codomain().len() == 2 && layout.is_injective());
        Fragment { layout }
    }

    /// Built from digits of the index, each list from the lowest place up: the thread number is
    /// `threads[0] + threads[0].extent · (threads[1] + …)`. Dimension `shape.len()` is the copy.
    pub fn from_digits(
        shape: &[i64],
        replicas: i64,
        threads: &[Digit],
        slots: &[Digit],
    ) -> Result<Fragment, LayoutError> {
        let full = [shape, &[replicas]].concat();
        check_shape(&full)?;
        let refuse = || LayoutError::NotAMap {
            what: "a list of digits that overlap or do not divide each other".to_owned(),
        };
        let mut form = Form::identity(&full);
        for d in threads.iter().chain(slots) {
            if d.dim > shape.len() || d.extent < 1 || d.div < 1 {
                return Err(refuse());
            }
            form.cut(d.dim, d.div).ok_or_else(refuse)?;
            form.cut(d.dim, d.div * d.extent).ok_or_else(refuse)?;
        }
        form.outs.clear();
        let mut codomain = Vec::new();
        for list in [threads, slots] {
            let mut sum = Sum::default();
            let mut place = 1;
            for d in list {
                for (at, piece) in form.radix.digits().iter().enumerate() {
                    let inside = d.div <= piece.div && piece.div < d.div * d.extent;
                    if piece.dim == d.dim && inside {
                        sum.add(1 << at, place * (piece.div / d.div));
                    }
                }
                place *= d.extent;
            }
            form.outs.push(sum);
            codomain.push(place);
        }
        form.coalesce();
        Fragment::new(Layout::new(&full, &codomain, form)?)
    }

    /// Runs of `vector` elements of the row-major order dealt out to the threads in turn. Any
    /// size and any thread count: what does not divide leaves slots or threads empty.
    pub fn partition(shape: &[i64], threads: i64, vector: i64) -> Result<Fragment, LayoutError> {
        let size = check_shape(shape)?;
        check_shape(&[threads, vector])?;
        let round = threads * vector;
        let full = [shape, &[1]].concat();
        let mut form = Form::identity(&[size, 1]);
        let cut = form.cut(0, vector).and_then(|()| form.cut(0, round));
        cut.ok_or(LayoutError::BadShape { shape: vec![size] })?;
        let (mut thread, mut slot) = (Sum::default(), Sum::default());
        for (at, d) in form.radix.digits().iter().enumerate() {
            if d.div < vector {
                slot.add(1 << at, d.div);
            } else if d.div < round {
                thread.add(1 << at, d.div / vector);
            } else {
                slot.add(1 << at, d.div / threads);
            }
        }
        form.outs = vec![thread, slot];
        let slots = vector.min(size) * ((size + round - 1) / round);
        let form = form.reshaped(&full).unwrap_or(form);
        Fragment::new(Layout::new(&full, &[threads, slots], form)?)
    }

    /// One element a thread, row-major.
    pub fn over_threads(shape: &[i64]) -> Result<Fragment, LayoutError> {
        let size = check_shape(shape)?;
        Fragment::row_major(shape, [size, 1])
    }

    /// All elements in one thread, row-major.
    pub fn in_slots(shape: &[i64]) -> Result<Fragment, LayoutError> {
        let size = check_shape(shape)?;
        Fragment::row_major(shape, [1, size])
    }

    /// The row-major order as the thread or as the slot, whichever there are several of.
    fn row_major(shape: &[i64], codomain: [i64; 2]) -> Result<Fragment, LayoutError> {
        let full = [shape, &[1]].concat();
        let mut form = Form::strided(&full, &row_major_strides(&full));
        form.outs.push(Sum::default());
        if codomain[0] == 1 {
            form.outs.swap(0, 1);
        }
        form.coalesce();
        Fragment::new(Layout::new(&full, &codomain, form)?)
    }

    /// A single element of the given rank, held by every one of `threads` threads.
    pub fn replicated(rank: usize, threads: i64) -> Result<Fragment, LayoutError> {
        let copy = Digit::new(rank, 1, threads);
        Fragment::from_digits(&vec![1; rank], threads, &[copy], &[])
    }

    /// The shape of the tensor.
    pub fn shape(&self) -> &[i64] {
        let full = self.layout.shape();
        &full[..full.len() - 1]
    }

    /// How many copies of each element there are.
    pub fn replicas(&self) -> i64 {
        self.layout.shape()[self.shape().len()]
    }

    pub fn threads(&self) -> i64 {
        self.layout.codomain()[0]
    }

    /// Registers (elements) that each thread sets aside.
    pub fn slots(&self) -> i64 {
        self.layout.codomain()[1]
    }

    /// The layout over `shape × replicas` to `[threads, slots]`.
    pub fn layout(&self) -> &Layout {
        &self.layout
    }

    /// The layout over `shape × replicas` to the thread alone.
    pub fn thread_layout(&self) -> Result<Layout, LayoutError> {
        let codomain = [self.threads()];
        match self.layout.raw_form() {
            Some(form) => Layout::new(self.layout.shape(), &codomain, form.only(0)),
            None => Layout::tabulate(self.layout.shape(), &codomain, |i| {
                Ok(self.layout.eval(i)[..1].to_vec())
            }),
        }
    }

    /// A copy of an element.
    pub fn holder(&self, index: &[i64], replica: i64) -> Holder {
        let place = self.layout.eval(&[index, &[replica]].concat());
        Holder {
            thread: place[0],
            slot: place[1],
        }
    }

    /// All copies of an element.
    pub fn holders(&self, index: &[i64]) -> Vec<Holder> {
        let copies = 0..self.replicas();
        copies.map(|r| self.holder(index, r)).collect()
    }

    /// The element that a thread has in a slot, if it has one there.
    pub fn element(&self, holder: Holder) -> Option<Vec<i64>> {
        if let Some(inverse) = self.inverse() {
            let mut index = inverse.element(holder)?;
            index.pop();
            return Some(index);
        }
        let place = [holder.thread, holder.slot];
        let mut all = indices(self.layout.shape());
        let found = all.find(|i| self.layout.eval(i) == place)?;
        Some(found[..self.shape().len()].to_vec())
    }

    /// What every pair of thread and slot holds, at `thread · slots + slot`. For those who ask
    /// about all of them; one pair is asked of [`element`](Fragment::element).
    pub fn elements(&self) -> Vec<Option<Vec<i64>>> {
        let mut held = vec![None; self.layout.span() as usize];
        for mut index in indices(self.layout.shape()) {
            let at = self.layout.offset(&index) as usize;
            index.pop();
            held[at] = Some(index);
        }
        held
    }

    /// The closed form of the way back, where there is one.
    pub fn inverse(&self) -> Option<FragmentInverse> {
        // Over the shape where that works, else over the box that the form is written for.
        let forms = [self.layout.form(), self.layout.raw_form().cloned()];
        forms.into_iter().flatten().find_map(|f| {
            let (form, guards) = f.left_inverse(self.layout.codomain())?;
            Some(FragmentInverse {
                form,
                guards,
                domain: f.radix.shape().to_vec(),
                full: self.layout.shape().to_vec(),
            })
        })
    }

    /// `outer` over tiles, `inner` inside each, threads and slots alike: with warps as `outer`
    /// and a lane map as `inner`, the fragment of a block.
    pub fn product(outer: &Fragment, inner: &Fragment) -> Result<Fragment, LayoutError> {
        Ok(Fragment::of_injective(Layout::product(
            &outer.layout,
            &inner.layout,
        )?))
    }

    /// The fragment repeated `times` along each dimension, in further slots; row-major.
    pub fn repeat_in_slots(&self, times: &[i64]) -> Result<Fragment, LayoutError> {
        Fragment::product(&Fragment::in_slots(times)?, self)
    }

    /// The fragment repeated `times` along each dimension, on further threads; row-major.
    pub fn repeat_over_threads(&self, times: &[i64]) -> Result<Fragment, LayoutError> {
        Fragment::product(&Fragment::over_threads(times)?, self)
    }

    /// The fragment copied to `times` as many threads.
    pub fn replicate(&self, times: i64) -> Result<Fragment, LayoutError> {
        Fragment::product(&Fragment::replicated(self.shape().len(), times)?, self)
    }

    /// Reorders the dimensions: `order[i]` is the old number of dimension `i`.
    pub fn permute(&self, order: &[usize]) -> Result<Fragment, LayoutError> {
        let with_copy = [order, &[self.shape().len()]].concat();
        Ok(Fragment::of_injective(self.layout.permute(&with_copy)?))
    }

    /// The same elements in the same row-major order under another shape.
    pub fn reshape(&self, shape: &[i64]) -> Result<Fragment, LayoutError> {
        let full = [shape, &[self.replicas()]].concat();
        Ok(Fragment::of_injective(self.layout.reshape(&full)?))
    }

    /// The elements `start .. start + extents`, where they are.
    pub fn slice(&self, start: &[i64], extents: &[i64]) -> Result<Fragment, LayoutError> {
        let start = [start, &[0]].concat();
        let extents = [extents, &[self.replicas()]].concat();
        Ok(Fragment::of_injective(self.layout.slice(&start, &extents)?))
    }

    /// The same placement in a block of more threads, the new ones idle.
    pub fn with_threads(&self, threads: i64) -> Result<Fragment, LayoutError> {
        Ok(Fragment::of_injective(
            self.layout.within(&[threads, self.slots()])?,
        ))
    }

    /// The number of slots up to the last one that holds an element: of a tile that is cut, threads
    /// need not set aside what was cut off.
    pub fn slots_used(&self) -> i64 {
        match self.layout.raw_form().map(|form| form.range(1)) {
            Some(Verdict::Known((_, last))) => last + 1,
            _ => self.slots(),
        }
    }

    /// The same placement in so many slots.
    pub fn with_slots(&self, slots: i64) -> Result<Fragment, LayoutError> {
        let layout = self.layout.within(&[self.threads(), slots])?;
        Ok(Fragment::of_injective(layout))
    }

    /// The largest power of two `v` such that `v` elements along the dimension, from a multiple
    /// of `v`, are in one thread in `v` consecutive slots from a multiple of `v`.
    pub fn vector_width(&self, dim: usize) -> i64 {
        self.layout.vector_width(dim)
    }

    /// The same elements in the same threads, with those slots first that count neighbours along the
    /// dimension. `None` where the slots are no digits of the index, or stand so already.
    pub fn in_runs(&self, dim: usize) -> Option<InRuns> {
        let mut form = self.layout.form()?;
        let [_, slot] = &form.outs[..] else {
            return None;
        };
        let digits = form.radix.digits();
        let mut terms = slot.terms.clone();
        terms.sort_by_key(|t| t.weight);
        let mut place = 1;
        for t in &terms {
            if !t.row.is_power_of_two() || t.weight != place {
                return None;
            }
            place *= form.extent(t.row);
        }
        if slot.offset != 0 || place != self.slots() {
            return None;
        }
        let (mut run, mut even, mut apart) = (1, 1, 1);
        let mut first = Vec::new();
        let next = |run: i64| {
            move |t: &Term| {
                let digit = &digits[t.row.trailing_zeros() as usize];
                digit.dim == dim && digit.div == run
            }
        };
        while let Some(at) = terms.iter().position(next(run)) {
            let term = terms.remove(at);
            if run == 1 {
                apart = term.weight;
            }
            if run == even && term.weight == apart * run {
                even *= form.extent(term.row);
            }
            run *= form.extent(term.row);
            first.push(term);
        }
        first.append(&mut terms);
        let mut sum = Sum::default();
        let mut place = 1;
        for t in first {
            sum.add(t.row, place);
            place *= form.extent(t.row);
        }
        if sum == *slot {
            return None;
        }
        form.outs[1] = sum;
        form.coalesce();
        let layout = Layout::new(self.layout.shape(), self.layout.codomain(), form).ok()?;
        Some(InRuns {
            fragment: Fragment::of_injective(layout),
            even,
            apart,
        })
    }

    /// Whether `width * count` elements along the dimension, from a multiple of that, are in `count`
    /// threads that follow each other, each `width` of them in slots that follow each other, all
    /// from multiples on. A placement without a closed form is said to be none.
    pub fn deals_along(&self, dim: usize, [width, count]: [i64; 2]) -> bool {
        let run = width * count;
        let Some(mut form) = self.layout.form().filter(|_| self.shape()[dim] % run == 0) else {
            return false;
        };
        let cut = form.cut(dim, width).and_then(|()| form.cut(dim, run));
        cut.is_some() && form.deals_along(dim, [width, count])
    }
}

/// A placement whose slots stand in the order of a dimension, beside the one that it was made of.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct InRuns {
    pub fragment: Fragment,
    /// So many neighbours stand evenly in the slots of the other one.
    pub even: i64,
    /// So far from each other.
    pub apart: i64,
}

impl FragmentInverse {
    /// The index that a thread has in a slot, the copy last, if it has one there.
    pub fn element(&self, holder: Holder) -> Option<Vec<i64>> {
        let place = [holder.thread, holder.slot];
        let inside = |(&v, &e): (&i64, &i64)| (0..e).contains(&v);
        if !place.iter().zip(self.form.radix.shape()).all(inside) {
            return None;
        }
        let held = |g: &Guard| place[g.digit.dim] / g.digit.div % g.digit.extent < g.below;
        let index = self.form.eval(&place);
        let found = self.guards.iter().all(held) && index.iter().zip(&self.domain).all(inside);
        if !found || self.domain == self.full {
            return found.then_some(index);
        }
        Some(unflatten(flatten(&index, &self.domain), &self.full))
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn ordinary_sizes_fit_any_thread_count() {
        for (shape, threads, vector) in [
            (vec![192], 128, 1),
            (vec![229], 128, 1),
            (vec![5, 229], 128, 1),
            (vec![64, 192], 128, 8),
            (vec![7, 3, 11], 96, 2),
            (vec![16], 128, 4),
        ] {
            let f = Fragment::partition(&shape, threads, vector).unwrap();
            let size: i64 = shape.iter().product();
            let chunks = (size + vector - 1) / vector;
            assert_eq!(
                f.slots(),
                vector * ((chunks + threads - 1) / threads),
                "{shape:?}"
            );
            for (flat, index) in indices(&shape).enumerate() {
                let flat = flat as i64;
                let holder = f.holder(&index, 0);
                assert_eq!(holder.thread, flat / vector % threads);
                assert_eq!(f.element(holder), Some(index));
            }
        }
    }

    #[test]
    fn slots_are_put_in_the_order_of_a_dimension() {
        // Four rows and four columns of a lane, which has the neighbours in a row last.
        let (row, col) = (0, 1);
        let lanes = [Digit::new(row, 4, 4), Digit::new(col, 4, 16)];
        let slots = [
            Digit::new(row, 1, 4),
            Digit::new(col, 1, 4),
            Digit::new(col, 64, 2),
        ];
        let f = Fragment::from_digits(&[16, 128], 1, &lanes, &slots).unwrap();
        assert_eq!((f.vector_width(0), f.vector_width(1)), (4, 1));
        let in_runs = f.in_runs(col).unwrap();
        assert_eq!((in_runs.even, in_runs.apart), (4, 4));
        let runs = in_runs.fragment;
        assert_eq!((runs.vector_width(0), runs.vector_width(1)), (1, 4));
        for index in indices(&[16, 128]) {
            let (own, other) = (f.holder(&index, 0), runs.holder(&index, 0));
            assert_eq!(own.thread, other.thread);
            let slot = own.slot / 16 * 16 + own.slot % 4 * 4 + own.slot / 4 % 4;
            assert_eq!(other.slot, slot);
        }
        assert_eq!(f.in_runs(row), None);
        assert_eq!(runs.in_runs(col), None);
        // Of 229 elements some slots are empty.
        assert_eq!(
            Fragment::partition(&[229], 128, 1).unwrap().in_runs(0),
            None
        );
    }

    #[test]
    fn empty_pairs_hold_nothing() {
        let f = Fragment::partition(&[229], 128, 1).unwrap();
        assert!(f.inverse().is_some());
        let held = (0..128).flat_map(|thread| (0..2).map(move |slot| Holder { thread, slot }));
        assert_eq!(held.filter(|&h| f.element(h).is_some()).count(), 229);
        assert_eq!(
            f.element(Holder {
                thread: 128,
                slot: 0
            }),
            None
        );
    }

    #[test]
    fn a_block_of_warps_is_a_product() {
        // Two by two warps, each with two by one tiles of the 16 x 8 accumulator of mma.sync.
        let (row, col) = (0, 1);
        let lanes = Fragment::from_digits(
            &[16, 8],
            1,
            &[Digit::new(col, 2, 4), Digit::new(row, 1, 8)],
            &[Digit::new(col, 1, 2), Digit::new(row, 8, 2)],
        )
        .unwrap();
        let warp = lanes.repeat_in_slots(&[2, 1]).unwrap();
        let block = warp.repeat_over_threads(&[2, 2]).unwrap();
        assert_eq!(
            (block.shape(), block.threads(), block.slots()),
            (&[64, 16][..], 128, 8)
        );
        let h = block.holder(&[32 + 16 + 8 + 3, 8 + 5], 0);
        assert_eq!(
            h,
            Holder {
                thread: 96 + 3 * 4 + 2,
                slot: 4 + 2 + 1
            }
        );
        assert_eq!(block.vector_width(1), 2);
        assert_eq!(block.vector_width(0), 1);
        let twice = block.replicate(2).unwrap();
        assert_eq!(
            twice
                .holders(&[0, 0])
                .iter()
                .map(|h| h.thread)
                .collect::<Vec<_>>(),
            [0, 128]
        );
        assert!(twice.inverse().is_some());
        // Of the lower half of the block no thread has the last two slots.
        let cut = block.slice(&[0, 0], &[16, 16]).unwrap();
        assert_eq!((cut.slots(), cut.slots_used()), (8, 4));
        assert_eq!(cut.with_slots(4).unwrap().slots(), 4);
        assert!(cut.with_slots(3).is_err());
    }
}
