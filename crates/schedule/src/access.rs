//! What shared memory a statement touches, and which thread touches what; the same for tensors
//! that threads [exchange](crate::exchange) data through.
//!
//! An access is collected for a *unit*: a statement together with the loops of constant
//! extent and the thread-dependent conditions inside it, which every thread runs for itself.
//! Its place is a bit offset in the buffer's logical, row-major order, split into a part that
//! is the same for all threads and a part that each thread's index and the unit's own loops
//! decide. Swizzles are bijections, so logical places serve for dependences.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::touched::{Atomic, Part, touched};
use tilewright_ir::uniform::Uniformity;
use tilewright_ir::visit::stmt_exprs;
use tilewright_ir::{
    BinOp, Block, Buffer, BufferOrigin, DType, Expr, ExprKind, Func, Kernel, LoopKind, MicroOp,
    Scope, Span, Stmt, StmtKind, Var, WARP_GROUP, micro_op,
};

use crate::exchange::{Along, owner};
use crate::footprint::has_value;

/// One access of a unit to a shared buffer or an exchanged tensor.
#[derive(Clone, Debug)]
pub struct Access {
    /// The buffer that owns the storage.
    pub root: Buffer,
    pub write: bool,
    /// Atomics do not race with atomics.
    pub atomic: bool,
    pub span: Span,
    /// Which version of a buffer that has several; `None` may be any.
    pub slot: Option<Expr>,
    /// Where; `None` may be anywhere, by any thread.
    pub points: Option<Points>,
    /// The indices in a tensor, where they cannot be counted out and are of one parallel loop.
    pub computed: Option<Vec<Expr>>,
    /// Whether it is a bulk load's: who touches that later waits for the arrival barrier that hears
    /// of it.
    pub told: bool,
}

/// The places of an access, in bits from the start of the buffer.
#[derive(Clone, Debug)]
pub struct Points {
    /// Terms that are the same for all threads.
    pub uniform: FxHashMap<Expr, i64>,
    pub constant: i64,
    /// Terms over thread indices and `axes` alone.
    pub varying: Vec<(Expr, i64)>,
    /// Bits touched from each place on.
    pub bits: i64,
    /// The unit's loops that the terms may use.
    pub axes: Vec<(Var, Steps)>,
    /// Conditions over thread indices and `axes`; a place counts only where all hold.
    pub guards: Vec<Expr>,
    /// Whether these are all conditions on the way.
    pub guards_known: bool,
    /// Dimension by dimension, for tensors.
    pub along: Vec<Along>,
}

/// The values of a loop variable: `start`, `start + step`, …
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Steps {
    pub start: i64,
    pub step: i64,
    pub count: i64,
}

impl Points {
    /// The indices along one dimension, in place of bits.
    pub fn along_only(&self, dim: usize) -> Points {
        let Along {
            uniform,
            constant,
            varying,
            width,
        } = self.along[dim].clone();
        Points {
            uniform,
            constant,
            varying,
            bits: width,
            axes: self.axes.clone(),
            guards: self.guards.clone(),
            guards_known: self.guards_known,
            along: Vec::new(),
        }
    }

    /// Adds an index, its elements `stride` bits apart.
    fn add(&mut self, along: &Along, stride: i64) -> Option<()> {
        let moved = along.constant.checked_mul(stride)?;
        self.constant = self.constant.checked_add(moved)?;
        for (e, factor) in &along.uniform {
            let sum = self.uniform.entry(e.clone()).or_insert(0);
            *sum = sum.checked_add(factor.checked_mul(stride)?)?;
        }
        for (e, factor) in &along.varying {
            self.varying.push((e.clone(), factor.checked_mul(stride)?));
        }
        Some(())
    }
}

impl Steps {
    pub fn values(self) -> impl Iterator<Item = i64> {
        (0..self.count).map(move |n| self.start + n * self.step)
    }
}

/// The pure values of variables that `let` bound, and how to forget those of an inner block.
#[derive(Clone, Default, Debug)]
pub struct Lets {
    values: FxHashMap<Var, Expr>,
    bound: Vec<(Var, Option<Expr>)>,
    /// Which threads come here, where not all of the block do.
    pub threads: Vec<Expr>,
}

impl Lets {
    /// Remembers a let whose value is pure arithmetic.
    pub fn bind(&mut self, var: Var, value: &Expr) {
        let mut pure = true;
        value.walk_loads(&mut |_, _| pure = false);
        if pure {
            let value = self.substitute(value);
            let before = self.values.insert(var, value);
            self.bound.push((var, before));
        }
    }

    /// Where [`Lets::forget`] goes back to.
    pub fn mark(&self) -> usize {
        self.bound.len()
    }

    /// Forgets what was bound since the mark.
    pub fn forget(&mut self, mark: usize) {
        while self.bound.len() > mark {
            match self.bound.pop() {
                Some((var, Some(before))) => self.values.insert(var, before),
                Some((var, None)) => self.values.remove(&var),
                None => None,
            };
        }
    }

    /// The expression with known lets put in.
    pub fn substitute(&self, e: &Expr) -> Expr {
        let mut mentioned = false;
        if !self.values.is_empty() {
            e.walk(&mut |node| {
                mentioned |= node.as_var().is_some_and(|v| self.values.contains_key(&v));
            });
        }
        if !mentioned {
            return e.clone();
        }
        e.rewrite(&mut |node| self.values.get(&node.as_var()?).cloned())
    }
}

/// Collects accesses of units of one kernel.
#[derive(Debug)]
pub struct Collector<'f> {
    pub func: &'f Func,
    pub kernel: &'f Kernel,
    pub uniformity: &'f Uniformity<'f>,
    /// The tensors to look at besides shared memory.
    pub tensors: &'f FxHashSet<Buffer>,
}

/// How far apart the rows of a tensor are taken to lie at least. Its sizes may not be known, nor
/// the guards that keep indices inside; equal indices are equal places whatever it is.
const SOME_EXTENT: i64 = 1 << 13;

/// The unit's loops, conditions and lets on the way to a statement.
#[derive(Clone, Default, Debug)]
struct Way {
    axes: Vec<(Var, Steps)>,
    /// A loop whose range is not constant: its variable has no known values.
    unknown: Vec<Var>,
    /// Whether a loop is around whose iterations come one after the other.
    in_order: bool,
    guards: Vec<Expr>,
}

impl Way {
    /// The way to a unit: what is known of the threads that come there.
    fn within(lets: &Lets) -> Way {
        Way {
            guards: lets.threads.clone(),
            ..Way::default()
        }
    }
}

/// Whether the thread is one of these warp groups.
pub fn in_groups(func: &Func, kernel: &Kernel, groups: &[u32]) -> Expr {
    let mut thread = Expr::i32(0);
    let mut stride = 1i64;
    for (&var, &extent) in kernel.thread_vars.iter().zip(&kernel.threads) {
        thread = thread + func.var_expr(var).cast_to(DType::I32) * stride;
        stride *= i64::from(extent);
    }
    let one = |&group: &u32| {
        let first = i64::from(group) * i64::from(WARP_GROUP);
        let end = first + i64::from(WARP_GROUP);
        thread.clone().ge(first).and(thread.clone().lt(end))
    };
    let any = groups.iter().map(one).reduce(Expr::or);
    any.unwrap_or_else(|| Expr::bool(false))
}

impl Collector<'_> {
    /// The accesses of the whole statement. `lets` holds the pure values of variables bound
    /// before it.
    pub fn unit(&self, stmt: &Stmt, lets: &mut Lets) -> Vec<Access> {
        let mark = lets.mark();
        let mut found = Vec::new();
        self.stmt(stmt, &Way::within(lets), lets, &mut found);
        lets.forget(mark);
        found
    }

    /// What the statement itself reads, without the blocks inside it: bounds, conditions.
    pub fn head(&self, stmt: &Stmt, lets: &Lets) -> Vec<Access> {
        let mut found = Vec::new();
        let way = Way::within(lets);
        stmt_exprs(stmt, &mut |e| {
            self.loads(e, stmt.span, &way, lets, &mut found)
        });
        found
    }

    fn block(&self, block: &Block, way: &Way, lets: &mut Lets, found: &mut Vec<Access>) {
        for stmt in block {
            self.stmt(stmt, way, lets, found);
        }
    }

    fn stmt(&self, stmt: &Stmt, way: &Way, lets: &mut Lets, found: &mut Vec<Access>) {
        stmt_exprs(stmt, &mut |e| self.loads(e, stmt.span, way, lets, found));
        match &stmt.kind {
            StmtKind::Let { var, value } => lets.bind(*var, value),
            StmtKind::Store {
                buffer, indices, ..
            } => self.push(
                *buffer, indices, 1, true, false, stmt.span, way, lets, found,
            ),
            StmtKind::For(l) => {
                let mut way = way.clone();
                // What a parallel loop has become is unrolled.
                way.in_order |= !matches!(l.kind, LoopKind::Unroll { .. } | LoopKind::Vectorized);
                for axis in &l.axes {
                    match axis_steps(axis, lets) {
                        Some(steps) if l.kind != LoopKind::Serial || steps.count <= 4096 => {
                            way.axes.push((axis.var, steps));
                        }
                        _ => way.unknown.push(axis.var),
                    }
                }
                self.block(&l.body, &way, lets, found);
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let cond = lets.substitute(cond);
                let mut inner = way.clone();
                inner.guards.push(cond.clone());
                self.block(then, &inner, lets, found);
                let mut inner = way.clone();
                inner.guards.push(!cond);
                self.block(otherwise, &inner, lets, found);
            }
            StmtKind::While { body, .. } => {
                let mut way = way.clone();
                way.in_order = true;
                self.block(body, &way, lets, found);
            }
            StmtKind::WarpGroup { groups, body } => {
                let mut inner = way.clone();
                inner.guards.push(in_groups(self.func, self.kernel, groups));
                self.block(body, &inner, lets, found);
            }
            StmtKind::Micro(m) => self.micro(m, stmt.span, way, lets, found),
            StmtKind::Thread(_) => self.thread_op(stmt, way, lets, found),
            StmtKind::Alloc(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Assert { .. }
            | StmtKind::Assume(_)
            | StmtKind::Tile(_)
            | StmtKind::Device(_) => {}
        }
    }

    fn micro(&self, m: &MicroOp, span: Span, way: &Way, lets: &Lets, found: &mut Vec<Access>) {
        let mut way = way.clone();
        for &(var, extent) in &m.axes {
            let steps = Steps {
                start: 0,
                step: 1,
                count: extent as i64,
            };
            way.axes.push((var, steps));
        }
        // Nothing is read where the predicate is false; what is written instead is written anyway.
        let mut inside = way.clone();
        if let Some(pred) = &m.pred {
            inside.guards.push(lets.substitute(pred));
        }
        if m.otherwise.is_none() {
            way = inside.clone();
        }
        let width = match m.inst {
            micro_op::Inst::LdMatrix { .. } | micro_op::Inst::StMatrix { .. } => 8,
            _ => m.width as i64,
        };
        // Tiles of which the instruction is told where they begin: all of them, whichever part is
        // this group's.
        let told = |end: &micro_op::Access, write: bool| match m.inst {
            micro_op::Inst::GroupMma { .. } => !write,
            micro_op::Inst::Tma(_) => self.func.buffers[end.region.buffer].scope == Scope::Shared,
            _ => false,
        };
        let sources = m.sources.iter().map(|s| (s, false, &inside));
        for (end, write, way) in sources.chain([(&m.dest, true, &way)]) {
            let (buffer, at) = (end.region.buffer, &end.at);
            let first = found.len();
            let bulk = matches!(m.inst, micro_op::Inst::Tma(_));
            if let Some((rows, width)) = self.rows_of_box(m, end, write) {
                for at in rows {
                    self.push(buffer, &at, width, write, false, span, way, lets, found);
                }
                self.name_slot(&end.slot, first, way, lets, found);
                continue;
            }
            match (told(end, write), in_a_row(self.func, end)) {
                // A box of a tensor.
                (false, _) if bulk => self.push_anywhere(buffer, write, span, found),
                (false, _) => self.push(buffer, at, width, write, false, span, way, lets, found),
                (true, Some((at, count))) => {
                    self.push(buffer, &at, count, write, false, span, way, lets, found);
                }
                (true, None) => self.push_anywhere(buffer, write, span, found),
            }
            self.name_slot(&end.slot, first, way, lets, found);
            if write && m.arrives.is_some() {
                found[first..]
                    .iter_mut()
                    .for_each(|access| access.told = true);
            }
        }
    }

    /// What a bulk store takes of a tile, and what a bulk copy touches of a tensor, row by row of its box:
    /// the first elements, and how many there are. Nothing for boxes of many rows: of these all of the tile
    /// or of the tensor is taken.
    fn rows_of_box(
        &self,
        m: &MicroOp,
        end: &micro_op::Access,
        write: bool,
    ) -> Option<(Vec<Vec<Expr>>, i64)> {
        const FEW: u16 = 16;
        let micro_op::Inst::Tma(tile) = m.inst else {
            return None;
        };
        let extents = match self.func.buffers[end.region.buffer].scope {
            Scope::Shared if !write => tile.in_shared(end.at.len())?,
            Scope::Global => tile.extents().to_vec(),
            _ => return None,
        };
        let (&[rows, cols], before) = extents.split_last_chunk::<2>().map(|(b, l)| (l, b))?;
        if extents.len() != end.at.len() || rows > FEW || before.iter().any(|e| *e > 1) {
            return None;
        }
        let row = |by: u16| {
            let mut at = end.at.clone();
            let index = at.len() - 2;
            at[index] = at[index].clone() + Expr::int(by.into(), at[index].dtype());
            at
        };
        Some(((0..rows).map(row).collect(), cols.into()))
    }

    /// What an operation of a thread touches. Arrival barriers order themselves.
    fn thread_op(&self, stmt: &Stmt, way: &Way, lets: &Lets, found: &mut Vec<Access>) {
        touched(stmt, &mut |access| {
            let write = access.mode.writes();
            match access.part {
                Part::Elements(at, count) => {
                    let atomic = access.atomic == Atomic::AnyOrder;
                    let width = i64::from(count);
                    let (buffer, span) = (access.buffer, stmt.span);
                    self.push(buffer, at, width, write, atomic, span, way, lets, found);
                }
                Part::Anywhere => self.push_anywhere(access.buffer, write, stmt.span, found),
                Part::Region(_) | Part::Instruction(_) | Part::Whole => {}
            }
        });
    }

    fn loads(&self, e: &Expr, span: Span, way: &Way, lets: &Lets, found: &mut Vec<Access>) {
        e.walk_loads(&mut |buffer, indices| {
            self.push(buffer, indices, 1, false, false, span, way, lets, found);
        });
    }

    /// A write somewhere in a buffer.
    pub fn anywhere(&self, buffer: Buffer, span: Span) -> Vec<Access> {
        let mut found = Vec::new();
        self.push_anywhere(buffer, true, span, &mut found);
        found
    }

    fn push_anywhere(&self, buffer: Buffer, write: bool, span: Span, found: &mut Vec<Access>) {
        if let Some(root) = self.looked_at(buffer) {
            found.push(Access {
                root,
                write,
                atomic: false,
                span,
                slot: None,
                points: None,
                computed: None,
                told: false,
            });
        }
    }

    /// The buffer that owns the storage, if it is looked at.
    fn looked_at(&self, buffer: Buffer) -> Option<Buffer> {
        let root = self.func.root(buffer);
        match self.func.buffers[root].scope {
            Scope::Shared => Some(root),
            _ => {
                let tensor = owner(self.func, self.kernel, buffer)?;
                self.tensors.contains(&tensor).then_some(tensor)
            }
        }
    }

    /// Gives the slot that a micro-op names to the accesses found for it.
    fn name_slot(
        &self,
        slot: &Option<Expr>,
        first: usize,
        way: &Way,
        lets: &Lets,
        found: &mut [Access],
    ) {
        for access in &mut found[first..] {
            access.slot = self.uniform_slot(slot.as_ref(), way, lets);
        }
    }

    /// A slot that is the same for all threads and all points of the unit.
    fn uniform_slot(&self, slot: Option<&Expr>, way: &Way, lets: &Lets) -> Option<Expr> {
        let slot = lets.substitute(slot?);
        (!self.uniformity.varies(&slot) && !mentions_any(&slot, way)).then_some(slot)
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "every argument is a different fact about one access; a struct would be built and taken apart here only"
    )]
    fn push(
        &self,
        buffer: Buffer,
        at: &[Expr],
        width: i64,
        write: bool,
        atomic: bool,
        span: Span,
        way: &Way,
        lets: &Lets,
        found: &mut Vec<Access>,
    ) {
        let Some(root) = self.looked_at(buffer) else {
            return;
        };
        let lanes = at.last().map_or(1, |i| i.dtype().lanes as i64);
        // Plain accesses of a buffer with versions name the version first.
        let data = &self.func.buffers[buffer];
        let (slot, at) = match at.split_first() {
            Some((slot, rest)) if data.versions > 1 && rest.len() == data.shape.len() => {
                (Some(slot), rest)
            }
            _ => (None, at),
        };
        let tensor = data.scope == Scope::Global;
        let alone = !tensor || !self.kernel.attrs.may_alias.contains(&root);
        let points = alone.then(|| self.points(buffer, at, width * lanes, way, lets));
        let points = points.flatten();
        let computed = tensor && alone && points.is_none() && !way.in_order;
        found.push(Access {
            root,
            write,
            atomic,
            span,
            slot: self.uniform_slot(slot, way, lets),
            points,
            computed: computed.then(|| at.iter().map(|i| lets.substitute(i)).collect()),
            told: false,
        });
    }

    fn points(
        &self,
        buffer: Buffer,
        at: &[Expr],
        width: i64,
        way: &Way,
        lets: &Lets,
    ) -> Option<Points> {
        let data = &self.func.buffers[buffer];
        let bits = data.dtype.bits() as i64;
        let mut points = Points {
            uniform: FxHashMap::default(),
            constant: 0,
            varying: Vec::new(),
            bits: bits * width,
            axes: way.axes.clone(),
            guards: Vec::new(),
            guards_known: true,
            along: Vec::new(),
        };
        if at.len() != data.shape.len() {
            return None;
        }
        let tensor = data.scope == Scope::Global;
        if tensor && matches!(data.origin, BufferOrigin::View(_)) {
            return None;
        }
        let mut stride = bits;
        for (dim, (index, extent)) in at.iter().zip(&data.shape).enumerate().rev() {
            let index = match index.kind() {
                // The lanes of a vector access are consecutive elements.
                ExprKind::Ramp { base, stride } if stride.is_int(1) => base,
                ExprKind::Ramp { .. } | ExprKind::Broadcast(_) => return None,
                _ => index,
            };
            let index = lets.substitute(index);
            let mut along = Along::default();
            self.linear(&index, 1, way, &mut along)?;
            along.width = if dim + 1 == at.len() { width } else { 1 };
            points.add(&along, stride)?;
            if tensor {
                points.along.push(along);
            }
            let known = extent.as_int().and_then(|e| i64::try_from(e).ok());
            let extent = match tensor {
                true => SOME_EXTENT.max(known.unwrap_or(0)),
                false => known?,
            };
            if dim > 0 {
                stride = stride.checked_mul(extent)?;
            }
        }
        // What was added and taken away again moves nothing.
        points.uniform.retain(|_, factor| *factor != 0);
        for guard in way.guards.iter().flat_map(Expr::conjuncts) {
            if self.is_enumerable(guard, way) {
                points.guards.push(guard.clone());
            } else {
                points.guards_known = false;
            }
        }
        Some(points)
    }

    /// Adds `factor · e` to the index.
    fn linear(&self, e: &Expr, factor: i64, way: &Way, along: &mut Along) -> Option<()> {
        match e.kind() {
            ExprKind::Int(value) => {
                along.constant += i64::try_from(*value).ok()?.checked_mul(factor)?;
            }
            ExprKind::Binary(BinOp::Add, a, b) => {
                self.linear(a, factor, way, along)?;
                self.linear(b, factor, way, along)?;
            }
            ExprKind::Binary(BinOp::Sub, a, b) => {
                self.linear(a, factor, way, along)?;
                self.linear(b, -factor, way, along)?;
            }
            ExprKind::Binary(BinOp::Mul, a, b) => match (a.as_int(), b.as_int()) {
                (_, Some(c)) => {
                    self.linear(a, factor.checked_mul(i64::try_from(c).ok()?)?, way, along)?
                }
                (Some(c), _) => {
                    self.linear(b, factor.checked_mul(i64::try_from(c).ok()?)?, way, along)?
                }
                (None, None) => self.atom(e, factor, way, along)?,
            },
            _ => self.atom(e, factor, way, along)?,
        }
        Some(())
    }

    fn atom(&self, e: &Expr, factor: i64, way: &Way, along: &mut Along) -> Option<()> {
        if self.is_enumerable(e, way) {
            along.varying.push((e.clone(), factor));
        } else if !self.uniformity.varies(e) && !mentions_any(e, way) {
            *along.uniform.entry(e.clone()).or_insert(0) += factor;
        } else {
            return None;
        }
        Some(())
    }

    /// Whether the value can be counted out from thread indices and the unit's axes alone.
    fn is_enumerable(&self, e: &Expr, way: &Way) -> bool {
        let mut known = has_value(e);
        let mut any = false;
        e.walk(&mut |node| {
            if let ExprKind::Var(var) = node.kind() {
                let here = self.kernel.thread_vars.contains(var)
                    || way.axes.iter().any(|(axis, _)| axis == var);
                known &= here;
                any = true;
            }
        });
        known && any
    }
}

fn mentions_any(e: &Expr, way: &Way) -> bool {
    let mut found = false;
    e.walk(&mut |node| {
        if let Some(var) = node.as_var() {
            found |= way.unknown.contains(&var) || way.axes.iter().any(|(axis, _)| *axis == var);
        }
    });
    found
}

/// The values of a constant range.
fn axis_steps(axis: &tilewright_ir::Axis, lets: &Lets) -> Option<Steps> {
    let int = |e: &Expr| i64::try_from(lets.substitute(e).as_int()?).ok();
    let (start, step) = (int(&axis.start)?, int(&axis.step)?);
    int(&axis.stop)?;
    let count = i64::try_from(axis.const_trip_count()?).ok()?;
    // The last value must be a number too.
    start.checked_add(step.checked_mul((count - 1).max(0))?)?;
    (count <= 1 << 16).then_some(Steps { start, step, count })
}

/// The first element and the number of elements of a rectangle, where these lie in a row in
/// row-major order: one index of the first dimensions, a part of the next, all of the others.
pub(crate) fn in_a_row(func: &Func, access: &micro_op::Access) -> Option<(Vec<Expr>, i64)> {
    let dims = &access.region.dims;
    let shape = func.buffers[access.region.buffer].const_shape()?;
    let extents = dims.iter().map(|d| i64::try_from(d.extent.as_int()?).ok());
    let extents: Vec<i64> = extents.collect::<Option<_>>()?;
    let part = extents.iter().position(|e| *e != 1);
    let part = part.unwrap_or(dims.len().checked_sub(1)?);
    let whole = |at: usize| dims[at].start.is_int(0) && extents[at] == shape[at];
    let lies_so = (part + 1..dims.len()).all(whole);
    let starts = dims.iter().map(|d| d.start.clone()).collect();
    lies_so.then(|| (starts, extents[part..].iter().product()))
}
