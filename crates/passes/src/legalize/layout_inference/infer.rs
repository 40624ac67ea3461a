//! The inference itself: strict, common, free, then a check of every use.

use std::rc::Rc;
use std::sync::Arc;

use rustc_hash::FxHashMap;
use tilewright_ir::{
    Buffer, BufferData, Code, CopyKind, CopyOp, Diagnostic, Func, GemmPlan, LayoutAttr, Scalar,
    Scope, Span, StmtKind, Target, TileOp, visit,
};
use tilewright_layout::bulk::BulkTile;
use tilewright_layout::descriptor::MatrixDescriptor;
use tilewright_layout::{Family, Fragment, Layout, LayoutError, Place, from_expr, swizzle};

use super::operands::Operands;
use super::quadrants;
use super::runs;
use super::uses::{ElementUse, Use, UseKind, collect, const_shape};
use super::views::{self, View};
use crate::legalize::gemm_plan::{Choice, no_placement, plan_gemm};
use crate::legalize::gemm_tiling::{GemmTiling, tiling_by};

const LAYOUT_CONFLICT: Code = Code("layout-conflict");
const BAD_LAYOUT: Code = Code("bad-layout");

/// What was decided.
#[derive(Debug)]
pub struct Inferred {
    pub fragments: Vec<(Buffer, Arc<Fragment>)>,
    /// Shared buffers: what the user wished, and operands of matrix products.
    pub shared: Vec<(Buffer, LayoutAttr)>,
    /// One entry for each parallel loop, in program order.
    pub loops: Vec<Option<Arc<Fragment>>>,
    /// One entry for each gemm, in program order.
    pub gemms: Vec<Choice>,
}

/// The swizzle that the machine's matrix instructions like best.
fn swizzled(target: Target, shape: &[i64], element: Scalar) -> Result<Place, LayoutError> {
    let panels = target.machine().group_mma();
    let panels = panels.then(|| MatrixDescriptor::place(shape, element.bits().into()));
    let other = || swizzle::for_elements(target, shape, element);
    panels.flatten().map_or_else(other, Ok)
}

/// The plans of the gemms, in program order.
fn plans(func: &Func, uses: &[Use], target: Target) -> Result<Vec<Choice>, Problem> {
    let mut choices = Vec::new();
    let mut policies = runs::policies(func, uses, target).into_iter();
    for u in uses {
        if let UseKind::Gemm(g) = &u.kind {
            let mut g = g.clone();
            g.policy = policies.next().unwrap_or(g.policy);
            let choice = plan_gemm(func, &g, u.threads, target, u.span);
            let mut choice = choice.map_err(Problem::Error)?;
            let in_parts = GemmPlan {
                parts: u.parts,
                ..choice.plan
            };
            if g.plan.is_none() && tiling_by(func, &g, u.threads, in_parts).is_some() {
                choice.plan = in_parts;
            }
            choices.push(choice);
        }
    }
    if target.machine().wide_copy().is_some() {
        quadrants::decide(func, uses, &mut choices);
    }
    runs::decide(func, uses, target, &mut choices);
    Ok(choices)
}

/// What leaves no choice: the layouts of shared operands, and the gemms' plans.
type Strict = (Vec<(Buffer, LayoutAttr)>, Vec<Choice>);

/// Why nothing was decided.
#[derive(Debug)]
pub enum Problem {
    /// Try again with this fragment in shared memory.
    Demote {
        buffer: Buffer,
        why: String,
        span: Span,
    },
    Error(Box<Diagnostic>),
}

/// Decides the layouts of one kernel.
pub fn infer(func: &Func, kernel: usize, target: Target) -> Result<Inferred, Problem> {
    let mut shared = shared_wishes(func, kernel, target)?;
    let uses = collect(func, &func.kernels[kernel]);
    for u in &uses {
        if let UseKind::Single(buffer) = u.kind {
            return Err(Problem::Demote {
                buffer,
                why: "single elements of it are used outside parallel loops".into(),
                span: u.span,
            });
        }
    }
    let mut state = State {
        func,
        fragments: FxHashMap::default(),
        loops: uses.iter().map(given).collect(),
        views: views::of_fragments(func, kernel)?,
        registers: target.machine().registers.per_thread.into(),
    };
    let (operands, gemms) = state.strict(&uses, target)?;
    shared.extend(operands);
    bulk_tiles(func, kernel, &mut shared);
    state.propagate(&uses);
    state.free(&uses);
    state.any(&uses);
    state.propagate(&uses);
    state.check(&uses)?;
    views::check(func, &state.views, &state.fragments)?;
    let mut fragments: Vec<_> = state.fragments.into_iter().collect();
    fragments.sort_unstable_by_key(|(buffer, _)| *buffer);
    let loops = uses
        .iter()
        .zip(state.loops)
        .filter_map(|(u, layout)| match u.kind {
            UseKind::Points { is_loop: true, .. } => Some(layout),
            UseKind::DynamicLoop => Some(None),
            _ => None,
        });
    Ok(Inferred {
        loops: loops.collect(),
        fragments,
        shared,
        gemms,
    })
}

/// What the user wished for shared buffers, decided: places for all of their elements.
fn shared_wishes(
    func: &Func,
    kernel: usize,
    target: Target,
) -> Result<Vec<(Buffer, LayoutAttr)>, Problem> {
    let mut found = Vec::new();
    let mut problem = None;
    visit::walk_stmts(&func.kernels[kernel].body, &mut |stmt| {
        let StmtKind::Alloc(buffer) = stmt.kind else {
            return;
        };
        let data = &func.buffers[buffer];
        let shape = data.const_shape().unwrap_or_default();
        let place = match &data.layout {
            Some(LayoutAttr::Swizzled) => swizzled(target, &shape, data.dtype.scalar),
            Some(LayoutAttr::Map(map)) => from_expr::index_map(map, &shape).and_then(Place::other),
            _ => return,
        };
        match place {
            Ok(place) => found.push((buffer, place.into())),
            Err(e) => {
                let mut why = bad_annotation(data, &e);
                if let Some(LayoutAttr::Map(map)) = &data.layout {
                    why = why.note(format!(
                        "the buffer has {} dimensions and {} elements, the layout takes {} indices",
                        shape.len(),
                        shape.iter().product::<i64>(),
                        map.inputs.len()
                    ));
                }
                let why =
                    why.help("a layout of shared memory gives each element a place of its own");
                problem.get_or_insert(Problem::Error(Box::new(why)));
            }
        }
    });
    problem.map_or(Ok(found), Err)
}

/// Tiles that the user has the copy engine move lie as it has them, but where the user says
/// otherwise: in panels, as warp groups' products read them, or row by row.
fn bulk_tiles(func: &Func, kernel: usize, shared: &mut Vec<(Buffer, LayoutAttr)>) {
    visit::walk_stmts(&func.kernels[kernel].body, &mut |stmt| {
        let StmtKind::Tile(TileOp::Copy(CopyOp { src, dst, kind, .. })) = &stmt.kind else {
            return;
        };
        let buffer = match kind {
            CopyKind::Tma {
                barrier: Some(_), ..
            } => dst.buffer,
            CopyKind::Tma { barrier: None, .. } | CopyKind::TmaRows { .. } => src.buffer,
            CopyKind::Sync | CopyKind::Async => return,
        };
        let data = &func.buffers[buffer];
        let (bits, shape) = (
            i64::from(data.dtype.bits()),
            data.const_shape().unwrap_or_default(),
        );
        let moves = |place: Option<&Place>| BulkTile::of(place, &shape, bits).is_some();
        let known = shared.iter().position(|(b, _)| *b == buffer);
        let decided = known.and_then(|at| match &shared[at].1 {
            LayoutAttr::Placed(place) => Some(&**place),
            _ => None,
        });
        if data.layout.is_some() || known.is_some() && moves(decided) {
            return;
        }
        let panels = MatrixDescriptor::place(&shape, bits).filter(|place| moves(Some(place)));
        let linear = || moves(None).then(|| Place::new(Family::Linear, &shape, bits).ok());
        let Some(place) = panels.or_else(|| linear().flatten()) else {
            return;
        };
        match known {
            Some(at) => shared[at].1 = place.into(),
            None => shared.push((buffer, place.into())),
        }
    });
}

fn bad_annotation(data: &BufferData, e: &LayoutError) -> Diagnostic {
    let message = format!(
        "the layout annotated for `{}` cannot be used: {e}",
        data.name
    );
    Diagnostic::error(BAD_LAYOUT, data.span, message)
}

#[derive(Clone)]
struct State<'f> {
    func: &'f Func,
    fragments: FxHashMap<Buffer, Arc<Fragment>>,
    /// The layout of each use that is a box of points.
    loops: Vec<Option<Arc<Fragment>>>,
    views: Rc<[View]>,
    /// Of one thread, at most.
    registers: i64,
}

impl State<'_> {
    /// Annotations and gemms. Returns the layouts of shared operands, and the gemms' plans.
    fn strict(&mut self, uses: &[Use], target: Target) -> Result<Strict, Problem> {
        for u in uses {
            for buffer in buffers_of(self.func, u) {
                self.annotation(buffer, u)?;
            }
        }
        let mut operands = Operands::new(self.func, target);
        let gemms = plans(self.func, uses, target)?;
        let mut planned = gemms.iter();
        // Gemms of one shape have one plan.
        let mut plans: Vec<(GemmTiling, Result<Arc<Fragment>, LayoutError>)> = Vec::new();
        for u in uses {
            let UseKind::Gemm(g) = &u.kind else { continue };
            let choice = planned.next();
            let plan = choice.and_then(|c| tiling_by(self.func, g, u.threads, c.plan));
            // Those that have no tiling are refused above.
            let Some(plan) = plan else { continue };
            let no_place = |e: LayoutError| Problem::Error(Box::new(no_placement(&e, u.span)));
            let known = plans.iter().position(|(p, _)| *p == plan);
            let of = known.unwrap_or_else(|| {
                let c = plan.c().map(Arc::new);
                plans.push((plan.clone(), c));
                plans.len() - 1
            });
            let c = plans[of].1.as_ref().map_err(|e| no_place(e.clone()))?;
            self.demand(g.c.buffer, c, u.span)?;
            for (region, is_a, trans) in [(&g.a, true, g.trans_a), (&g.b, false, g.trans_b)] {
                match self.func.buffers[region.buffer].scope {
                    Scope::Fragment => {
                        let placed = if is_a { plan.a() } else { plan.b() };
                        let mut placed = placed.map_err(no_place)?;
                        if trans {
                            placed = placed.permute(&[1, 0]).map_err(|e| no_layout(&e, u.span))?;
                        }
                        self.demand(region.buffer, &Arc::new(placed), u.span)?;
                    }
                    Scope::Shared => operands.add((of, &plan), region, is_a, trans),
                    _ => {}
                }
            }
        }
        Ok((operands.places(), gemms))
    }

    fn annotation(&mut self, buffer: Buffer, u: &Use) -> Result<(), Problem> {
        let data = &self.func.buffers[buffer];
        if let Some(fragment) = data.held() {
            self.fragments.insert(buffer, fragment.clone());
        }
        let (Some(LayoutAttr::FragmentMap(map)), Some(shape)) = (&data.layout, data.const_shape())
        else {
            return Ok(());
        };
        if self.fragments.contains_key(&buffer) {
            return Ok(());
        }
        let fragment = from_expr::fragment_map(map, &shape, u.threads).map_err(|e| {
            let elements: i64 = shape.iter().product();
            let why = bad_annotation(data, &e)
                .note(format!(
                    "the buffer has {elements} elements, the block {} threads",
                    u.threads
                ))
                .help("a fragment layout maps each element to one thread and one register slot");
            Problem::Error(Box::new(why))
        })?;
        self.fragments.insert(buffer, Arc::new(fragment));
        Ok(())
    }

    /// A layout that leaves no choice.
    fn demand(
        &mut self,
        buffer: Buffer,
        fragment: &Arc<Fragment>,
        span: Span,
    ) -> Result<(), Problem> {
        let data = &self.func.buffers[buffer];
        if data.scope != Scope::Fragment {
            return Ok(());
        }
        let whole = |shape: &Vec<i64>| shape.iter().product::<i64>() == size(fragment);
        let Some(shape) = data.const_shape().filter(whole) else {
            return Err(Problem::Demote {
                buffer,
                why: "the gemm uses a part of it".into(),
                span,
            });
        };
        let Ok(fragment) = reshaped(fragment, &shape) else {
            return Err(Problem::Demote {
                buffer,
                why: "its shape has no closed form in the instruction's layout".into(),
                span,
            });
        };
        match self.fragments.get(&buffer) {
            None => {
                self.fragments.insert(buffer, fragment);
                Ok(())
            }
            Some(known) if known.same_placement(&fragment) => Ok(()),
            Some(known) if data.layout.is_some() => Err(Problem::Error(Box::new(
                Diagnostic::error(
                    LAYOUT_CONFLICT,
                    span,
                    format!(
                        "the gemm and the annotation of `{}` want different layouts",
                        data.name
                    ),
                )
                .also(data.span, "annotated layout")
                .note(format!("annotated: {}", describe(known)))
                .note(format!("gemm: {}", describe(&fragment)))
                .help("remove the annotation, or copy to a second fragment"),
            ))),
            Some(_) => Err(Problem::Demote {
                buffer,
                why: "two gemms want different layouts of it".into(),
                span,
            }),
        }
    }

    /// Spreads what is known until nothing is added.
    fn propagate(&mut self, uses: &[Use]) {
        while self.step(uses) {}
    }

    fn step(&mut self, uses: &[Use]) -> bool {
        let mut changed = views::place(&self.views, &mut self.fragments);
        for (at, u) in uses.iter().enumerate() {
            match &u.kind {
                UseKind::Points { accesses, .. } => {
                    if self.loops[at].is_none()
                        && let Some(layout) = self.loop_from(accesses, u.threads)
                    {
                        self.loops[at] = Some(layout);
                        changed = true;
                    }
                    if let Some(layout) = self.loops[at].take() {
                        changed |= self.images(&layout, accesses);
                        self.loops[at] = Some(layout);
                    }
                }
                UseKind::Reduce(r) => {
                    let (src, dst) = (r.src.buffer, r.dst.buffer);
                    if self.func.buffers[dst].scope == Scope::Fragment
                        && !self.fragments.contains_key(&dst)
                        && let Some(from) = self.fragments.get(&src)
                        && let Some(placed) = self.reduced(from, r.dim as usize, dst)
                    {
                        self.fragments.insert(dst, Arc::new(placed));
                        changed = true;
                    }
                }
                UseKind::Gemm(_) | UseKind::DynamicLoop | UseKind::Any(_) | UseKind::Single(_) => {}
            }
        }
        changed
    }

    /// A loop runs where an element lies that each of its points has for itself.
    fn loop_from(&self, accesses: &[ElementUse], threads: i64) -> Option<Arc<Fragment>> {
        let by_writes = accesses.iter().filter(|a| a.write);
        let by_reads = accesses.iter().filter(|a| !a.write);
        for access in by_writes.chain(by_reads) {
            let (Some(map), Some(fragment)) = (&access.map, self.fragments.get(&access.buffer))
            else {
                continue;
            };
            if fragment.threads() != threads || !map.is_injective() {
                continue;
            }
            if access.own {
                return Some(fragment.clone());
            }
            if let Some(placed) = at_points(map, fragment) {
                return Some(Arc::new(placed));
            }
        }
        None
    }

    fn images(&mut self, layout: &Arc<Fragment>, accesses: &[ElementUse]) -> bool {
        let mut changed = false;
        for access in accesses {
            if self.fragments.contains_key(&access.buffer) {
                continue;
            }
            let Some(map) = &access.map else { continue };
            if access.own {
                self.fragments.insert(access.buffer, layout.clone());
                changed = true;
            } else if let Ok(Some(placed)) = layout.image(map) {
                self.fragments.insert(access.buffer, Arc::new(placed));
                changed = true;
            }
        }
        changed
    }

    /// Where the result of a reduction lies when its threads keep it.
    fn reduced(&self, from: &Fragment, dim: usize, dst: Buffer) -> Option<Fragment> {
        let shape = const_shape(&self.func.buffers[dst].shape)?;
        if from.shape().len() == 1 {
            // Everything folds into one element that every thread has.
            let one = Fragment::replicated(1, from.threads()).ok()?;
            return one.reshape(&shape).ok();
        }
        from.project(dim).ok()??.reshape(&shape).ok()
    }

    /// Decides what is left, one group at a time.
    fn free(&mut self, uses: &[Use]) {
        for at in 0..uses.len() {
            if !self.is_open(at, uses) {
                continue;
            }
            let group = self.group(at, uses);
            let mut widths = Vec::new();
            let mut best: Option<([i64; 3], State<'_>)> = None;
            for &root in &group {
                let mut attempt = self.clone();
                attempt.start_from(root, uses);
                attempt.propagate(uses);
                let open = group.iter().filter(|&&g| attempt.is_open(g, uses)).count() as i64;
                let accesses = group
                    .iter()
                    .map(|&g| attempt.accesses(g, uses, &mut widths))
                    .sum();
                let cost = [open, attempt.registers(), accesses];
                if best.as_ref().is_none_or(|(least, _)| cost < *least) {
                    best = Some((cost, attempt));
                }
            }
            if let Some((_, state)) = best {
                let (fragments, loops) = (state.fragments, state.loops);
                self.fragments = fragments;
                self.loops = loops;
            }
        }
    }

    /// Whether a use still has something undecided.
    fn is_open(&self, at: usize, uses: &[Use]) -> bool {
        match &uses[at].kind {
            UseKind::Points { .. } => self.loops[at].is_none(),
            UseKind::Reduce(r) => [r.src.buffer, r.dst.buffer].iter().any(|b| {
                self.func.buffers[*b].scope == Scope::Fragment && !self.fragments.contains_key(b)
            }),
            UseKind::Gemm(_) | UseKind::DynamicLoop | UseKind::Any(_) | UseKind::Single(_) => false,
        }
    }

    /// The open uses connected to this one by undecided fragments.
    fn group(&self, start: usize, uses: &[Use]) -> Vec<usize> {
        let mut group = vec![start];
        let mut next = 0;
        while next < group.len() {
            let open: Vec<Buffer> = buffers_of(self.func, &uses[group[next]])
                .into_iter()
                .filter(|b| !self.fragments.contains_key(b))
                .map(|b| self.func.root(b))
                .collect();
            next += 1;
            for (at, u) in uses.iter().enumerate() {
                if !group.contains(&at)
                    && self.is_open(at, uses)
                    && buffers_of(self.func, u)
                        .iter()
                        .any(|b| open.contains(&self.func.root(*b)))
                {
                    group.push(at);
                }
            }
        }
        group.sort_unstable();
        group
    }

    /// Deals the points of a use, or the elements of a reduction's source, out to the threads.
    fn start_from(&mut self, at: usize, uses: &[Use]) {
        let u = &uses[at];
        match &u.kind {
            UseKind::Points { shape, vector, .. } => {
                let vector = narrowed(shape, u.threads, *vector);
                self.loops[at] = Fragment::partition(shape, u.threads, vector)
                    .ok()
                    .map(Arc::new);
            }
            UseKind::Reduce(r) => {
                let data = &self.func.buffers[r.src.buffer];
                if data.scope == Scope::Fragment
                    && !self.fragments.contains_key(&r.src.buffer)
                    && let Some(shape) = const_shape(&data.shape)
                    && let Ok(placed) = Fragment::partition(&shape, u.threads, 1)
                {
                    self.fragments.insert(r.src.buffer, Arc::new(placed));
                } else if let Some(shape) = const_shape(&self.func.buffers[r.dst.buffer].shape)
                    && let Ok(placed) = Fragment::partition(&shape, u.threads, 1)
                {
                    self.fragments
                        .entry(r.dst.buffer)
                        .or_insert(Arc::new(placed));
                }
            }
            UseKind::Gemm(_) | UseKind::DynamicLoop | UseKind::Any(_) | UseKind::Single(_) => {}
        }
    }

    /// Deals out what is touched only by what works with any layout.
    fn any(&mut self, uses: &[Use]) {
        for u in uses {
            let UseKind::Any(buffers) = &u.kind else {
                continue;
            };
            for &buffer in buffers {
                let data = &self.func.buffers[buffer];
                if data.scope == Scope::Fragment
                    && data.layout.is_none()
                    && !self.fragments.contains_key(&buffer)
                    && let Some(shape) = const_shape(&data.shape)
                    && let Ok(placed) = Fragment::partition(&shape, u.threads, 1)
                {
                    self.fragments.insert(buffer, Arc::new(placed));
                }
            }
        }
    }

    /// Bits of registers that a thread needs for all fragments.
    fn registers(&self) -> i64 {
        let bits = |b: &Buffer| self.func.buffers[*b].dtype.bits() as i64;
        self.fragments
            .iter()
            .map(|(b, f)| f.slots() * bits(b))
            .sum()
    }

    /// Accesses of memory that a thread makes for a use, with vectors as wide as its layout has
    /// them; loops share layouts, whose `widths` are found once.
    fn accesses(&self, at: usize, uses: &[Use], widths: &mut Vec<(Arc<Fragment>, i64)>) -> i64 {
        let (UseKind::Points { vector, shape, .. }, Some(layout)) =
            (&uses[at].kind, &self.loops[at])
        else {
            return 0;
        };
        if *vector == 1 {
            return 0;
        }
        let known = widths.iter().find(|(known, _)| known == layout);
        let run = known.map(|(_, run)| *run).unwrap_or_else(|| {
            let run = layout.vector_width(shape.len().saturating_sub(1));
            widths.push((layout.clone(), run));
            run
        });
        layout.slots() / run.min(*vector)
    }

    /// Every use must be able to run with what was decided.
    fn check(&self, uses: &[Use]) -> Result<(), Problem> {
        for (at, u) in uses.iter().enumerate() {
            let UseKind::Points { accesses, .. } = &u.kind else {
                continue;
            };
            for access in accesses {
                if let Some(why) = self.unserved(self.loops[at].as_deref(), access, u.threads) {
                    let handed_on = handed_on(uses, accesses, access);
                    return Err(Problem::Demote {
                        buffer: handed_on.unwrap_or(access.buffer),
                        why: why.to_string(),
                        span: access.span,
                    });
                }
            }
        }
        for u in uses {
            for buffer in buffers_of(self.func, u) {
                let missing = !self.fragments.contains_key(&buffer);
                let other = |f: &Arc<Fragment>| f.threads() != u.threads;
                if missing || self.fragments.get(&buffer).is_some_and(other) {
                    return Err(Problem::Demote {
                        buffer,
                        why: "nothing decides which thread holds what".into(),
                        span: u.span,
                    });
                }
            }
            if let UseKind::Reduce(r) = &u.kind
                && let (Some(src), Some(dst)) = (
                    self.fragments.get(&r.src.buffer),
                    self.fragments.get(&r.dst.buffer),
                )
            {
                let fits = self
                    .reduced(src, r.dim as usize, r.dst.buffer)
                    .is_some_and(|p| p.same_placement(dst));
                if !fits {
                    return Err(Problem::Demote {
                        buffer: r.dst.buffer,
                        why: "the reduction leaves its result with other threads".into(),
                        span: u.span,
                    });
                }
            }
        }
        Ok(())
    }

    /// Why a loop with this layout cannot make the access, if it cannot.
    fn unserved(
        &self,
        layout: Option<&Fragment>,
        access: &ElementUse,
        threads: i64,
    ) -> Option<&'static str> {
        let Some(map) = &access.map else {
            return Some("it is indexed by more than loop indices and constants");
        };
        let Some(fragment) = self.fragments.get(&access.buffer) else {
            return Some("nothing decides which thread holds what");
        };
        if fragment.threads() != threads {
            return Some("it is used by different groups of threads");
        }
        if access.own && layout == Some(&**fragment) {
            return None;
        }
        // Who touches the elements, and who has them: told apart by element, or where a loop touches a part
        // of them and can be written down as it lies, by point.
        let image = layout.and_then(|l| l.image(map).ok()?);
        let placed = layout.filter(|l| image.is_none() && l.inverse().is_some());
        // Shared memory holds what registers do not.
        let bits = i64::from(self.func.buffers[access.buffer].dtype.bits());
        if placed.is_some() && fragment.slots() * bits > 32 * self.registers {
            return Some("it has more elements than a thread has registers");
        }
        let by_point = placed.and_then(|l| Some((l, at_points(map, fragment)?)));
        let (touches, has) = match (&image, &by_point) {
            (Some(image), _) => (image, &**fragment),
            (None, Some((layout, placed))) => (*layout, placed),
            (None, None) => return Some("the loop's points have no closed form in its layout"),
        };
        if !has.covers_threads(touches) {
            return Some("threads need elements that other threads hold");
        }
        if access.write && !touches.covers_threads(has) {
            return Some("not every thread that holds an element would write it");
        }
        None
    }
}

/// A loop's points where the elements lie that they touch, each one of its own.
fn at_points(map: &Layout, fragment: &Fragment) -> Option<Fragment> {
    if !map.is_injective() {
        return None;
    }
    let copies = Layout::identity(&[fragment.replicas()]).ok()?;
    let full = Layout::concat(map, &copies).ok()?;
    let placed = full.then(fragment.layout()).ok()?;
    Fragment::new(placed).and_then(Fragment::compact).ok()
}

/// Where a sum is handed on to another product by a copy that no thread can do alone: the copy, which
/// goes through shared memory rather than the sum and all that is worked out from it.
fn handed_on(uses: &[Use], accesses: &[ElementUse], read: &ElementUse) -> Option<Buffer> {
    let gemms = || {
        uses.iter().filter_map(|u| match &u.kind {
            UseKind::Gemm(g) => Some(g),
            _ => None,
        })
    };
    let is_sum = |buffer: Buffer| gemms().any(|g| g.c.buffer == buffer);
    let is_operand = |b: Buffer| gemms().any(|g| g.a.buffer == b || g.b.buffer == b);
    let mut written = accesses.iter().filter(|a| a.write).map(|a| a.buffer);
    let only_operand = |b: &Buffer| is_operand(*b) && !is_sum(*b);
    (!read.write && is_sum(read.buffer)).then(|| written.find(only_operand))?
}

/// The fragments whose layout a use depends on.
fn buffers_of(func: &Func, u: &Use) -> Vec<Buffer> {
    let mut all: Vec<Buffer> = match &u.kind {
        UseKind::Points { accesses, .. } => accesses.iter().map(|a| a.buffer).collect(),
        UseKind::Reduce(r) => [&r.src, &r.dst].iter().map(|r| r.buffer).collect(),
        UseKind::Gemm(g) => [&g.a, &g.b, &g.c].iter().map(|r| r.buffer).collect(),
        UseKind::DynamicLoop | UseKind::Any(_) | UseKind::Single(_) => Vec::new(),
    };
    all.retain(|b| func.buffers[*b].scope == Scope::Fragment);
    all
}

fn no_layout(e: &LayoutError, span: Span) -> Problem {
    Problem::Error(Box::new(Diagnostic::error(
        BAD_LAYOUT,
        span,
        format!("no placement: {e}"),
    )))
}

/// The same fragment where it has the shape already.
fn reshaped(fragment: &Arc<Fragment>, shape: &[i64]) -> Result<Arc<Fragment>, LayoutError> {
    match fragment.shape() == shape {
        true => Ok(fragment.clone()),
        false => fragment.reshape(shape).map(Arc::new),
    }
}

fn size(fragment: &Fragment) -> i64 {
    fragment.shape().iter().product()
}

/// The widest vector that still gives every thread work.
pub fn narrowed(shape: &[i64], threads: i64, mut vector: i64) -> i64 {
    let total: i64 = shape.iter().product();
    while vector > 1 && vector * threads > total {
        vector /= 2;
    }
    vector
}

/// One line about a fragment for a message.
fn describe(f: &Fragment) -> String {
    let dims: Vec<String> = f.shape().iter().map(|e| e.to_string()).collect();
    format!(
        "({}) on {} threads, {} registers each, {} copies",
        dims.join(", "),
        f.threads(),
        f.slots(),
        f.replicas()
    )
}

fn given(u: &Use) -> Option<Arc<Fragment>> {
    let UseKind::Points { given, .. } = &u.kind else {
        return None;
    };
    given.clone().filter(|layout| layout.threads() == u.threads)
}
