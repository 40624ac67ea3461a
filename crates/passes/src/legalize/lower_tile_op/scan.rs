//! Scans: through shared memory, each line by as many threads as the block has for it.
//!
//! A line is cut into segments. A thread scans its segment and leaves the segment's total; then
//! it folds the totals before its own and adds them to its segment. For a line of `n` elements
//! in `s` segments a thread makes about `2n/s + s` steps, so `s` is near the root of `2n`, as
//! long as there are threads for all segments of all lines.

use tilewright_ir::{
    Axis, BinOp, Block, Buffer, DType, Expr, Loop, LoopKind, Region, ScanKind, ScanOp, Scope, Span,
    Stmt, StmtKind, Var, VarKind,
};
use tilewright_layout::Fragment;

use super::{Lower, counted, guarded, store};

/// A scan that is being written.
struct Scan<'a> {
    op: BinOp,
    reverse: bool,
    dim: usize,
    /// The extents of the buffer that is scanned in place.
    shape: &'a [i64],
    work: Buffer,
    dtype: DType,
    /// Elements of a segment; the last one may have fewer.
    segment: i64,
    span: Span,
}

impl Scan<'_> {
    /// The element that is `position` steps from where the scan starts, in this line.
    fn at(&self, line: &[Expr], position: Expr) -> Vec<Expr> {
        let length = self.shape[self.dim];
        let mut along = Some(match self.reverse {
            true => Expr::int((length - 1).into(), DType::I32) - position,
            false => position,
        });
        let mut rest = line.iter();
        let all = (0..self.shape.len()).map(|d| {
            let index = match d == self.dim {
                true => along.take(),
                false => rest.next().cloned(),
            };
            index.unwrap_or_else(|| Expr::i32(0))
        });
        all.collect()
    }

    /// Whether a position is in the line; `None` where all are.
    fn inside(&self, position: &Expr) -> Option<Expr> {
        let length = self.shape[self.dim];
        (length % self.segment != 0).then(|| position.clone().lt(length))
    }
}

impl Lower<'_> {
    pub(super) fn scan(&mut self, s: ScanOp, span: Span, out: &mut Block) {
        let Some(shape) = s
            .src
            .dims
            .iter()
            .map(|d| i64::try_from(d.extent.as_int()?).ok())
            .collect::<Option<Vec<i64>>>()
        else {
            return self.give_up(span, "a scan needs constant extents");
        };
        let dtype = self.dtype(s.src.buffer);
        let work = self.exchange_buffer("scan", dtype, &shape);
        let whole = Region::whole(work, &self.func.buffers[work]);
        self.copy_points(&s.src, &whole, span, out);

        let dim = s.dim as usize;
        let length = shape[dim];
        let mut lines = shape.clone();
        lines.remove(dim);
        let count: i64 = lines.iter().product();
        let mut segments = 1;
        while 2 * segments * count <= self.threads && 4 * segments * segments <= 2 * length {
            segments *= 2;
        }
        let segment = (length + segments - 1) / segments;
        // None is empty: one that started past the end would be checked by nothing.
        segments = (length + segment - 1) / segment;
        let scan = Scan {
            op: match s.kind {
                ScanKind::Sum => BinOp::Add,
                ScanKind::Max => BinOp::Max,
            },
            reverse: s.reverse,
            dim,
            shape: &shape,
            work,
            dtype,
            segment,
            span,
        };
        lines.push(segments);
        let Ok(layout) = Fragment::partition(&lines, self.threads, 1) else {
            return self.give_up(
                span,
                "the lines of this scan cannot be divided over the threads",
            );
        };
        // A line in one piece leaves no total.
        let totals = match segments {
            1 => work,
            _ => self.exchange_buffer("totals", dtype, &lines),
        };
        if length > 1 {
            let (vars, index) = self.axes_of(&lines);
            let body = self.scan_segment(&scan, &index, totals, segments);
            self.point_loop(&layout, &vars, body, span, out);
        }
        if segments > 1 {
            let (vars, index) = self.axes_of(&lines);
            let body = self.add_totals(&scan, &index, totals);
            self.point_loop(&layout, &vars, body, span, out);
        }
        self.copy_points(&whole, &s.dst, span, out);
    }

    fn axes_of(&mut self, shape: &[i64]) -> (Vec<Var>, Vec<Expr>) {
        shape.iter().map(|_| self.var("i", VarKind::Loop)).unzip()
    }

    /// Each element folds the one before it; the last one is the segment's total.
    fn scan_segment(
        &mut self,
        scan: &Scan<'_>,
        index: &[Expr],
        totals: Buffer,
        segments: i64,
    ) -> Block {
        let Some((segment, line)) = index.split_last() else {
            return Vec::new();
        };
        let first = segment.clone() * scan.segment;
        let mut out = Vec::new();
        if scan.segment > 1 {
            let (step, k) = self.var("k", VarKind::Loop);
            let before = first.clone() + k;
            let here = before.clone() + 1;
            let sum = Expr::bin(
                scan.op,
                self.load(scan.work, scan.at(line, before)),
                self.load(scan.work, scan.at(line, here.clone())),
            );
            let change = vec![store(
                scan.work,
                scan.at(line, here.clone()),
                sum,
                scan.dtype,
                scan.span,
            )];
            let mut body = Vec::new();
            guarded(scan.inside(&here), change, scan.span, &mut body);
            out.push(counted(
                step,
                scan.segment - 1,
                LoopKind::Serial,
                body,
                scan.span,
            ));
        }
        if segments > 1 {
            let length = scan.shape[scan.dim];
            let mut last = first.clone() + (scan.segment - 1);
            let inside = scan.inside(&first);
            if inside.is_some() {
                last = last.min(length - 1);
            }
            let total = self.load(scan.work, scan.at(line, last));
            let leave = vec![store(totals, index.to_vec(), total, scan.dtype, scan.span)];
            guarded(inside, leave, scan.span, &mut out);
        }
        out
    }

    /// Each element of a segment folds the totals of the segments before it.
    fn add_totals(&mut self, scan: &Scan<'_>, index: &[Expr], totals: Buffer) -> Block {
        let Some((segment, line)) = index.split_last() else {
            return Vec::new();
        };
        let acc = self.temp("before", Scope::Local, scan.dtype, &[1]);
        let zero = vec![Expr::i32(0)];
        let first = segment.clone() * scan.segment;
        let total_of = |lower: &Self, q: Expr| {
            let mut at = line.to_vec();
            at.push(q);
            lower.load(totals, at)
        };
        let start = total_of(self, Expr::i32(0));
        let (q_var, q) = self.var("q", VarKind::Loop);
        let sum = Expr::bin(scan.op, self.load(acc, zero.clone()), total_of(self, q));
        let fold = Stmt::new(
            StmtKind::For(Loop {
                kind: LoopKind::Serial,
                axes: vec![Axis {
                    var: q_var,
                    start: Expr::i32(1),
                    stop: segment.clone(),
                    step: Expr::i32(1),
                }],
                body: vec![store(acc, zero.clone(), sum, scan.dtype, scan.span)],
            }),
            scan.span,
        );
        let (step, k) = self.var("k", VarKind::Loop);
        let here = first + k;
        let sum = Expr::bin(
            scan.op,
            self.load(acc, zero.clone()),
            self.load(scan.work, scan.at(line, here.clone())),
        );
        let change = vec![store(
            scan.work,
            scan.at(line, here.clone()),
            sum,
            scan.dtype,
            scan.span,
        )];
        let mut body = Vec::new();
        guarded(scan.inside(&here), change, scan.span, &mut body);
        let add = counted(step, scan.segment, LoopKind::Serial, body, scan.span);
        let inside = match scan.inside(&(segment.clone() * scan.segment)) {
            Some(inside) => segment.clone().gt(0).and(inside),
            None => segment.clone().gt(0),
        };
        let begin = store(acc, zero, start, scan.dtype, scan.span);
        let mut out = Vec::new();
        guarded(Some(inside), vec![begin, fold, add], scan.span, &mut out);
        out
    }
}
