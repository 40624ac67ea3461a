//! One loop's accesses of memory as vectors: what LegalizeVectorizedLoop and
//! LoopVectorizeDynamic do with a loop.
//!
//! A loop of independent iterations becomes three parts: vector loads into a register array,
//! the iterations themselves on registers, vector stores out of a register array. Loads and
//! stores are the same `g2r`, `s2r`, `r2s`, `r2g` micro-ops that copies are made of, so neither
//! simulator, dependence model nor code generators know a new construct, the bounds check of a
//! vector is its predicate, and arithmetic stays scalar, as GPUs do it.
//!
//! ```text
//! for v in vectorized(0, 8) { Y[i, j + v] = X[i, j + v] * 2.0 }
//! ```
//! becomes
//! ```text
//! alloc x: local float16[8]
//! alloc y: local float16[8]
//! g2r X[…] at [i, j] -> x[0 +: 8] at [0] inst="load" width=8
//! for v in unroll(0, 8) { y[v] = x[v] * 2.0 }
//! r2g y[0 +: 8] at [0] -> Y[…] at [i, j] inst="store" width=8
//! ```
//!
//! Atomic additions to neighbouring elements are joined in the same way, where the machine has
//! additions of several elements: the iterations compute what to add, and
//! `atomic_vec_add` adds it afterwards. Each element is still added to on its own.
//!
//! An access takes part when neighbouring iterations touch neighbouring elements, its first
//! element and every row start at a multiple of the vector, and no vector can reach over the
//! end of a row. Each access has its own width, at most 16 bytes; one that cannot take part
//! stays where it is. Global tensors start at multiples of 16 bytes.

mod apply;
mod sites;
mod walk;

use rustc_hash::FxHashMap;
use tilewright_arith::Analyzer;
use tilewright_ir::{
    BinOp, Buffer, BufferOrigin, DType, Expr, ExprKind, Func, Loop, Scope, Span, Target, Var,
    VarKind,
};

use crate::legalize::shared_width::shared_width;
use crate::optimize::common::effects::is_anywhere;
pub use apply::fresh_copy;
pub use sites::has_vectorized;
use sites::{Site, Sites, substitute};
pub use walk::{Unproved, vectorize};

/// The widest access of memory by one thread.
const VECTOR_BITS: i64 = 128;

/// What is needed to look at the loops of a kernel.
#[derive(Debug)]
pub struct Vectorizer<'a> {
    pub func: &'a mut Func,
    pub target: Target,
    pub analyzer: Analyzer,
    /// Global buffers that may be the same memory as others.
    pub may_alias: Vec<Buffer>,
    /// The widest vector of each shared buffer that its layout keeps together.
    shared: FxHashMap<Buffer, i64>,
}

/// What can be done with a loop.
#[derive(Debug, Default)]
pub struct Plan {
    vectors: Vec<Vector>,
    /// Elements that are added to together.
    adds: Vec<Vector>,
    /// Why something the loop touches stays as it is.
    pub refused: Vec<(Span, String)>,
    /// What would have to hold at run time for wider vectors.
    pub missing: Missing,
    /// Whether shared memory is touched.
    pub shared: bool,
}

/// Conditions that nothing proves.
#[derive(Debug, Default)]
pub struct Missing {
    /// Over sizes of the call alone.
    pub sizes: Vec<Expr>,
    /// Over the place too: this vector ends before the tensor does.
    pub here: Vec<Expr>,
}

impl Missing {
    pub fn is_empty(&self) -> bool {
        self.sizes.is_empty() && self.here.is_empty()
    }
}

/// Consecutive elements that the iterations touch together.
#[derive(Clone, Debug)]
struct Vector {
    buffer: Buffer,
    /// The element of one iteration, over the loop's index.
    indices: Vec<Expr>,
    /// The element of the first iteration.
    base: Vec<Expr>,
    width: i64,
    pred: Option<Expr>,
    write: bool,
    span: Span,
}

impl<'a> Vectorizer<'a> {
    pub fn new(func: &'a mut Func, kernel: usize, target: Target) -> Vectorizer<'a> {
        let analyzer = Analyzer::for_func(func);
        let may_alias = func.kernels[kernel].attrs.may_alias.clone();
        Vectorizer {
            func,
            target,
            analyzer,
            may_alias,
            shared: FxHashMap::default(),
        }
    }

    /// How many iterations make the widest access of the narrowest element that the loop
    /// touches; one where it touches no memory.
    pub fn lanes_for(&self, l: &Loop) -> i64 {
        let sites = Sites::of(self.func, self.target, &l.body);
        let bits = |s: &Site| self.func.buffers[s.buffer].dtype.bits() as i64;
        let widest = |s: &Site| (VECTOR_BITS / bits(s).max(8)).max(1);
        let moved = sites.sites.iter().map(widest);
        let added = sites.adds.iter().map(|s| self.add_lanes(s.buffer));
        moved.chain(added).max().unwrap_or(1)
    }

    /// What the accesses of a loop of `lanes` iterations, from zero in steps of one, may become.
    pub fn plan(&mut self, l: &Loop, lanes: i64) -> Plan {
        let mut plan = Plan::default();
        let sites = Sites::of(self.func, self.target, &l.body);
        if let Some((span, why)) = sites.refused {
            plan.refused.push((span, why.to_string()));
            return plan;
        }
        let scope = |s: &Site| self.func.buffers[s.root].scope;
        plan.shared = sites.sites.iter().any(|s| scope(s) == Scope::Shared);
        let index = l.axes[0].var;
        self.analyzer.enter_loop(self.func, l);
        let mut done: Vec<(Buffer, Vec<Expr>, bool)> = Vec::new();
        for site in &sites.sites {
            let key = (site.buffer, site.indices.clone(), site.write);
            if done.contains(&key) {
                continue;
            }
            done.push(key);
            let vector = self.order_is_free(site, &sites).and_then(|()| {
                self.vector(site, &sites.sites, &sites, index, lanes, &mut plan.missing)
            });
            match vector {
                Ok(vector) => plan.vectors.push(vector),
                Err(why) => {
                    let name = &self.func.buffers[site.buffer].name;
                    plan.refused.push((site.span, format!("`{name}` {why}")));
                }
            }
        }
        for site in &sites.adds {
            // Nobody asked for these, so there is nothing to say where they stay as they are.
            let vector = self.add_order_is_free(site, &sites).and_then(|()| {
                self.vector(site, &sites.adds, &sites, index, lanes, &mut plan.missing)
            });
            if let Ok(vector) = vector {
                let width = vector.width.min(self.add_lanes(site.buffer));
                plan.adds.push(Vector { width, ..vector });
            }
        }
        self.analyzer.pop();
        plan
    }

    /// Elements of a buffer that are added to at once.
    fn add_lanes(&self, buffer: Buffer) -> i64 {
        let data = &self.func.buffers[buffer];
        let machine = self.target.machine();
        machine
            .atomic_add_lanes(data.scope, data.dtype.scalar)
            .into()
    }

    fn vector(
        &mut self,
        site: &Site,
        alike: &[Site],
        sites: &Sites,
        index: Var,
        lanes: i64,
        missing: &mut Missing,
    ) -> Result<Vector, &'static str> {
        let pred = self.condition(site, alike, sites, index, lanes, missing)?;
        if !site.indices.iter().all(|i| sites.is_known_before(i)) {
            return Err("is indexed by values that the iterations compute");
        }
        let Some((last, rows)) = site.indices.split_last() else {
            return Err("has no dimensions");
        };
        let first = |e: &Expr| {
            let zero = Expr::zero(self.func.vars[index].dtype);
            substitute(e, &FxHashMap::from_iter([(index, zero)]))
        };
        let mut base: Vec<Expr> = rows.iter().map(&first).collect();
        let start = first(last);
        for (row, at_first) in rows.iter().zip(&base) {
            if !self.analyzer.prove_eq(row, at_first).is_yes() {
                return Err("is not touched along its last dimension");
            }
        }
        let step = self.func.var_expr(index).cast_to(start.dtype());
        if !self
            .analyzer
            .prove_eq(last, &(start.clone() + step))
            .is_yes()
        {
            return Err("is not touched at consecutive elements");
        }
        let width = self.width(site.buffer, &start, lanes, missing)?;
        base.push(start);
        let base = base.iter().map(|e| self.analyzer.simplify(e)).collect();
        Ok(Vector {
            buffer: site.buffer,
            indices: site.indices.clone(),
            base,
            width,
            pred,
            write: site.write,
            span: site.span,
        })
    }

    /// Loads move before the iterations and stores after them. That changes nothing for storage
    /// that is only read, for storage that is only written by one statement, and for elements
    /// that each iteration reads first and then writes.
    fn order_is_free(&self, site: &Site, sites: &Sites) -> Result<(), &'static str> {
        let global = |b: Buffer| self.func.buffers[b].scope == Scope::Global;
        let aliased = sites.sites.iter().any(|s| self.may_alias.contains(&s.root));
        let anywhere = |other: Buffer| {
            [other, site.root]
                .iter()
                .any(|b| is_anywhere(self.func, *b))
        };
        let same = |other: Buffer| {
            let tensors = global(other) && global(site.root);
            other == site.root || tensors && (aliased || anywhere(other))
        };
        let adds = sites.adds.iter().map(|a| &a.root);
        if sites.other_writes.iter().chain(adds).any(|b| same(*b)) {
            return Err("is also changed by what stays as it is");
        }
        let mut writes = sites.sites.iter().filter(|s| s.write && same(s.root));
        let Some(write) = writes.next() else {
            return Ok(());
        };
        if writes.next().is_some() {
            return Err("is written by two statements");
        }
        if sites.other_reads.iter().any(|b| same(*b)) {
            return Err("is also read by a loop inside");
        }
        let place = (write.buffer, &write.indices);
        let reads = sites.sites.iter().filter(|s| !s.write && same(s.root));
        for read in reads {
            if (read.buffer, &read.indices) != place || read.position > write.position {
                return Err("is read elsewhere than it was written");
            }
        }
        Ok(())
    }

    /// Additions move behind the iterations, and their storage is their own unless the kernel says
    /// that tensors may be one memory.
    fn add_order_is_free(&self, site: &Site, sites: &Sites) -> Result<(), &'static str> {
        let roots = sites.sites.iter().chain(&sites.adds).map(|s| &s.root);
        let mut all = roots.chain([&site.root]);
        match all.any(|b| self.may_alias.contains(b)) {
            true => Err("may be the same memory as what else is touched"),
            false => Ok(()),
        }
    }

    /// When the access happens, which must be the same for all iterations.
    fn condition(
        &mut self,
        site: &Site,
        alike: &[Site],
        sites: &Sites,
        index: Var,
        lanes: i64,
        missing: &mut Missing,
    ) -> Result<Option<Expr>, &'static str> {
        let same_place = |s: &&Site| {
            s.buffer == site.buffer && s.indices == site.indices && s.write == site.write
        };
        let all: Vec<&Site> = alike.iter().filter(same_place).collect();
        if all.iter().any(|s| s.conds.is_empty()) {
            return Ok(None);
        }
        if all.iter().any(|s| s.conds != site.conds) {
            return Err("is touched under several conditions");
        }
        // A loop inside takes the same elements from the vector, whatever it stands under.
        if sites.other_reads.contains(&site.root) {
            return Err("is also read by a loop inside");
        }
        let mut pred: Option<Expr> = None;
        for cond in &site.conds {
            if !sites.is_known_before(cond) {
                return Err("is touched under a condition on data");
            }
            let Some(at_first) = self.uniform(cond, index, lanes, missing) else {
                return Err("is touched by some of the iterations only");
            };
            pred = Some(match pred {
                None => at_first,
                Some(p) => p.and(at_first),
            });
        }
        Ok(pred)
    }

    /// The condition at the first iteration, if all agree with it.
    pub(super) fn uniform(
        &mut self,
        cond: &Expr,
        index: Var,
        lanes: i64,
        missing: &mut Missing,
    ) -> Option<Expr> {
        if let Some(known) = self.agreed(cond, index) {
            return Some(known);
        }
        // A size that is a multiple of the vector would make them agree.
        let mut sizes = Vec::new();
        cond.walk(&mut |e| {
            if let ExprKind::Binary(BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge, a, b) = e.kind()
            {
                sizes.extend([a, b].into_iter().filter(|e| self.is_size(e)).cloned());
            }
        });
        for size in sizes {
            let multiple = is_multiple(&size, lanes);
            self.analyzer.push();
            self.analyzer.assume(&multiple);
            let helps = self.agreed(cond, index).is_some();
            self.analyzer.pop();
            if helps && !missing.sizes.contains(&multiple) {
                missing.sizes.push(multiple);
            }
        }
        None
    }

    fn agreed(&mut self, cond: &Expr, index: Var) -> Option<Expr> {
        let simple = self.analyzer.simplify(cond);
        if !mentions(&simple, index) {
            return Some(simple);
        }
        let zero = Expr::zero(self.func.vars[index].dtype);
        let first = substitute(cond, &FxHashMap::from_iter([(index, zero)]));
        let follows = self
            .analyzer
            .with_assumption(&first, |a| a.prove(cond).is_yes());
        let fails = self
            .analyzer
            .with_refutation(&first, |a| a.prove(cond).is_no());
        (follows && fails).then(|| self.analyzer.simplify(&first))
    }

    /// The elements of one access from `start` on, along the last dimension.
    fn width(
        &mut self,
        buffer: Buffer,
        start: &Expr,
        lanes: i64,
        missing: &mut Missing,
    ) -> Result<i64, &'static str> {
        let data = &self.func.buffers[buffer];
        let bits = data.dtype.bits() as i64;
        if bits < 8 || bits % 8 != 0 || data.dtype.lanes != 1 {
            return Err("has elements that are no whole bytes");
        }
        if matches!(data.origin, BufferOrigin::Pointer(_)) {
            return Err("starts at an address that is known at run time only");
        }
        let mut rows: Vec<Expr> = Vec::new();
        match &data.strides {
            None if data.shape.len() > 1 => rows.extend(data.shape.last().cloned()),
            None => {}
            Some(strides) => {
                let Some((last, others)) = strides.split_last() else {
                    return Err("has no dimensions");
                };
                if !last.is_int(1) {
                    return Err("has elements that are apart in memory");
                }
                rows.extend(others.iter().cloned());
            }
        }
        let end = data.shape.last().cloned();
        let mut widest = VECTOR_BITS / bits;
        while lanes % widest != 0 {
            widest /= 2;
        }
        if data.scope == Scope::Shared {
            widest = widest.min(self.shared_width(buffer));
        }
        let mut wanted = None;
        let mut width = widest;
        while width > 1 {
            let mut unknown: Vec<Expr> = Vec::new();
            for e in rows.iter().chain([start]) {
                if !self.analyzer.divides(width as i128, e).is_yes() {
                    unknown.push(e.clone());
                }
            }
            let aligned = unknown.is_empty();
            // A vector must be inside or outside of the row as a whole.
            if let Some(end) = &end
                && !unknown.contains(end)
                && !self.analyzer.divides(width as i128, end).is_yes()
                && !self.is_inside(start, lanes, end)
            {
                unknown.push(end.clone());
            }
            if unknown.is_empty() {
                break;
            }
            if wanted.is_none() {
                wanted = self.wanted(&unknown, aligned.then_some((start, lanes)), width);
            }
            width /= 2;
        }
        let wanted = wanted.unwrap_or_default();
        for (list, more) in [
            (&mut missing.sizes, wanted.sizes),
            (&mut missing.here, wanted.here),
        ] {
            for cond in more {
                if !list.contains(&cond) {
                    list.push(cond);
                }
            }
        }
        if width > 1 {
            Ok(width)
        } else if lanes > 1 {
            Err("is not known to be aligned for a vector")
        } else {
            Err("is touched once")
        }
    }

    /// What to check for a vector of this width, where that is no more than sizes, or whether it
    /// ends before the row does.
    fn wanted(
        &mut self,
        unknown: &[Expr],
        aligned: Option<(&Expr, i64)>,
        width: i64,
    ) -> Option<Missing> {
        let mut missing = Missing::default();
        if let (Some((start, lanes)), [end]) = (aligned, unknown) {
            let inside = (start.clone() + lanes).le(end);
            missing.here.push(self.analyzer.simplify(&inside));
            return Some(missing);
        }
        let sizes = unknown.iter().map(|e| is_multiple(e, width));
        missing.sizes.extend(sizes);
        unknown.iter().all(|e| self.is_size(e)).then_some(missing)
    }

    /// Whether all elements from `start` on that the loop touches are before `end`.
    fn is_inside(&mut self, start: &Expr, lanes: i64, end: &Expr) -> bool {
        let a = &mut self.analyzer;
        if a.prove_le(&(start.clone() + lanes), end).is_yes() {
            return true;
        }
        // Loops over whole runs say it in runs.
        let runs = |e: &Expr| e.clone().floor_div(lanes);
        a.divides(lanes.into(), start).is_yes() && a.prove_lt(&runs(start), &runs(end)).is_yes()
    }

    fn shared_width(&mut self, buffer: Buffer) -> i64 {
        if let Some(known) = self.shared.get(&buffer) {
            return *known;
        }
        let width = shared_width(self.func, buffer);
        self.shared.insert(buffer, width);
        width
    }

    /// Whether the expression is made of sizes and parameters: the same for the whole launch.
    fn is_size(&self, e: &Expr) -> bool {
        let mut only = e.as_int().is_none();
        e.walk(&mut |node| match node.kind() {
            ExprKind::Load { .. } | ExprKind::AddressOf { .. } => only = false,
            ExprKind::Var(var) => {
                only &= matches!(self.func.vars[*var].kind, VarKind::Symbol | VarKind::Param);
            }
            _ => {}
        });
        only && e.dtype().scalar.is_int()
    }
}

fn is_multiple(e: &Expr, of: i64) -> Expr {
    e.clone().floor_mod(of).equal(0)
}

fn mentions(e: &Expr, var: Var) -> bool {
    let mut found = false;
    e.walk(&mut |node| found |= node.as_var() == Some(var));
    found
}

/// A register array of this many elements.
fn register_shape(lanes: i64) -> Vec<Expr> {
    vec![Expr::int(lanes.into(), DType::I32)]
}
