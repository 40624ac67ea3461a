//! InjectSoftwarePipeline: planned loops written out with copies of later iterations under way.
//!
//! Copies become asynchronous where the machine can (through registers elsewhere, with a note where
//! waves could have copied to LDS), the schedule engine derives versions, waits and barriers from
//! the planned order, and the loop becomes a prologue, a steady loop and, where loads are counted
//! one by one, an epilogue. Elsewhere the steady loop runs to the end with its copies under a
//! condition.
//!
//! Before:
//! ```text
//! for k in pipelined(0, 8) stages=2 versioned=[S] {
//!   @(stage=0, order=0) g2s for c < 4 do A[…, k * 32 +: 32] at […] -> S[…] at […] inst="load" width=8
//!   @(stage=1, order=1) for s in unroll(0, 8) { … S[i, j] … }
//! }
//! ```
//! After, for sm_80:
//! ```text
//! g2s for c < 4 do A[…, 0 +: 32] at […] -> S[…] slot=0 at […] inst="cp.async" width=8 counter=cp_async
//! commit cp_async
//! for k in serial(0, 8) {
//!   wait cp_async(0)
//!   barrier block
//!   if k + 1 < 8 {
//!     g2s for c < 4 do A[…, (k + 1) * 32 +: 32] … -> S[…] slot=((k + 1) % 2) …
//!   }
//!   commit cp_async
//!   for s in unroll(0, 8) { … S[k % 2, i, j] … }
//! }
//! ```
//!
//! Needs loop IR and PipelinePlanning's turns. A buffer with versions is accessed with the
//! version named: `slot=` in micro-ops, a first index elsewhere. Where shared memory has no room for
//! the versions, copies run fewer iterations ahead, with a note. It never adds a wait or barrier
//! that the engine did not derive, and says why where it leaves a loop as it is.

mod addresses;
mod again;
mod alternate;
mod arithmetic;
mod arrangement;
mod bulk;
mod choose;
mod copies;
mod derive;
mod direct;
mod emit;
mod explain;
mod halves;
mod idle;
mod memory;
pub(crate) mod need;
mod pairs;
mod pieces;
mod pressure;
mod registers;
mod resident;
mod roles;
pub mod schedules;
mod slots;
mod specialise;
mod split;
mod steps;
pub mod text;
mod tiles;
mod weave;

use rustc_hash::FxHashMap;
use tilewright_ir::uniform::{Points, Uniformity};
use tilewright_ir::{
    Block, Code, Diagnostic, Diagnostics, Expr, Func, Kernel, Loop, LoopKind, PipelineSpec, Scope,
    Severity, Span, Stmt, StmtKind, Target, Var,
};
use tilewright_schedule::access::Lets;

use self::choose::{Candidate, NoSchedule, choose};
use self::copies::Way;
use self::derive::{Scheduled, Site};
use self::memory::Excess;
use self::pieces::{Pieces, plan_of};
use self::roles::Part;
use self::specialise::Producer;
use crate::{Changed, Foreseen};

const NOT_PIPELINED: Code = Code("not-pipelined");
const SCHEDULE_TEXT: Code = Code("schedule-text");
const THROUGH_REGISTERS: Code = Code("through-registers");

/// Writes all planned loops out.
pub fn inject_software_pipeline(
    func: &mut Func,
    target: Target,
    diags: &mut Diagnostics,
) -> Changed {
    for (span, of) in schedules::missing(func) {
        let message = format!(
            "an order is for the loop over `{}`: no pipelined loop is",
            of.name
        );
        let error = Diagnostic::error(SCHEDULE_TEXT, span, message);
        diags.push(error.help("name a pipelined loop behind `for`, or leave it out"));
    }
    let mut changed = Changed::No;
    // One is written out at a time, in a function of its own: states that are gone back to are
    // cheap to keep without the others.
    let mut done = Vec::new();
    let alone = func.kernels.len() == 1;
    for kernel in std::mem::take(&mut func.kernels) {
        let mut planned = false;
        each_planned(&kernel.body, &mut |_, _| planned = true);
        if !planned {
            done.push(kernel);
            continue;
        }
        changed = Changed::Yes;
        let untouched = func.clone();
        let mut said = Diagnostics::new();
        let whole = inject(func, &kernel, target, Try::WHOLE, &mut said);
        let foreseen = match whole.fits {
            Ok(foreseen) => foreseen,
            Err(excess) => {
                *func = untouched;
                let (again, foreseen) = fitted(func, kernel, target, (whole.direct, excess));
                said = again;
                foreseen
            }
        };
        // It is of a function with this kernel alone.
        if let Some(foreseen) = foreseen.filter(|_| alone) {
            changed = Changed::Foreseen(Box::new(foreseen));
        }
        diags.extend(said.into_vec());
        done.append(&mut func.kernels);
    }
    func.kernels = done;
    changed
}

/// How to write loops out.
#[derive(Clone, Copy)]
struct Try {
    /// Waves may copy straight to LDS.
    direct: bool,
    /// Nothing runs further ahead than this many iterations.
    cap: u32,
}

impl Try {
    /// As the plan says.
    const WHOLE: Try = Try {
        direct: true,
        cap: u32::MAX,
    };
}

/// What came of it.
struct Tried {
    /// Whether waves copy straight to LDS.
    direct: bool,
    /// What is foreseen of it, or what shared memory has no room for.
    fits: Result<Option<Foreseen>, Excess>,
}

/// Writes the loops of a kernel out whose versions do not fit shared memory as planned. Waves that copy
/// straight to LDS do so with fewer stages, as long as something runs ahead: tiles on their way through
/// registers take these from sums. Else copies go through registers, which takes a version less, else
/// there are fewer stages. Where nothing fits, the kernel stays as it is and an error says so.
fn fitted(
    func: &mut Func,
    kernel: Kernel,
    target: Target,
    (direct, mut excess): (bool, Excess),
) -> (Diagnostics, Option<Foreseen>) {
    let untouched = func.clone();
    let attempt = |func: &mut Func, how: Try| {
        let mut said = Diagnostics::new();
        let tried = inject(func, &kernel, target, how, &mut said);
        if tried.fits.is_err() {
            *func = untouched.clone();
        }
        tried.fits.map(|foreseen| (said, foreseen))
    };
    let asked = excess.clone();
    if direct {
        for stages in (2..asked.stages).rev() {
            let fewer = Try {
                cap: stages - 1,
                ..Try::WHOLE
            };
            if let Ok((mut said, foreseen)) = attempt(func, fewer) {
                said.push(asked.note_of_direct(stages, target));
                return (said, foreseen);
            }
        }
        let through_registers = Try {
            direct: false,
            ..Try::WHOLE
        };
        match attempt(func, through_registers) {
            Ok(fits) => return fits,
            Err(still) => excess = still,
        }
    }
    for stages in (1..excess.stages).rev() {
        let tried = direct && (2..asked.stages).contains(&stages);
        for direct in [true, false].into_iter().skip(usize::from(tried)) {
            let cap = stages - 1;
            if let Ok((mut said, foreseen)) = attempt(func, Try { direct, cap }) {
                said.push(asked.note(stages, target));
                return (said, foreseen);
            }
        }
    }
    let mut said = Diagnostics::new();
    said.push(asked.error(target));
    func.kernels.push(kernel);
    (said, None)
}

/// Gives the function the kernel with its planned loops written out.
fn inject(
    func: &mut Func,
    kernel: &Kernel,
    target: Target,
    how: Try,
    diags: &mut Diagnostics,
) -> Tried {
    let mut bodies: FxHashMap<Var, Pieces> = FxHashMap::default();
    let way = Way {
        kernel,
        target,
        direct: how.direct,
    };
    each_planned(&kernel.body, &mut |l, spec| {
        let pieces = Pieces::of(func, way, l, spec, how.cap);
        for (span, why) in &pieces.refused {
            let message = format!("this copy goes through registers: {why}");
            diags.push(Diagnostic::new(
                Severity::Note,
                THROUGH_REGISTERS,
                *span,
                message,
            ));
        }
        bodies.insert(l.axes[0].var, pieces);
    });
    let loops = schedule_all(func, kernel, target, &bodies, diags);
    for scheduled in loops.values().map(|l| &l.chosen.scheduled) {
        for &buffer in &scheduled.buffers {
            if func.buffers[buffer].scope == Scope::Shared {
                pieces::set_versions(func, buffer, scheduled.versions(buffer));
            }
        }
    }
    let mut write = Write {
        func,
        target,
        loops: &loops,
        producer: None,
    };
    let body = write.block(kernel.body.clone());
    let producer = write.producer.take();
    let at = func.kernels.len();
    func.kernels.push(Kernel {
        grid: kernel.grid.clone(),
        attrs: kernel.attrs.clone(),
        body,
        ..*kernel
    });
    if let Some(producer) = producer {
        specialise::specialise(func, at, target, producer);
    }
    Tried {
        direct: bodies.values().any(|pieces| pieces.direct),
        fits: memory::check(func, kernel, target, &loops),
    }
}

/// A loop that has a schedule.
struct Planned {
    chosen: Candidate,
    span: Span,
}

fn each_planned(block: &Block, f: &mut impl FnMut(&Loop, &PipelineSpec)) {
    tilewright_ir::visit::walk_stmts(block, &mut |stmt| {
        if let StmtKind::For(l) = &stmt.kind
            && let Some(spec) = plan_of(l)
        {
            f(l, spec);
        }
    });
}

fn schedule_all(
    func: &mut Func,
    kernel: &Kernel,
    target: Target,
    bodies: &FxHashMap<Var, Pieces>,
    diags: &mut Diagnostics,
) -> FxHashMap<Var, Planned> {
    let before = func.clone();
    let uniformity = Uniformity::of(&before, kernel, Points::OfThreads);
    let mut walk = Scheduler {
        func,
        before: &before,
        kernel,
        target,
        uniformity: &uniformity,
        bodies,
        diags,
        found: FxHashMap::default(),
    };
    walk.block(&kernel.body, &mut Lets::default(), false);
    walk.found
}

/// Schedules the loops of a kernel.
struct Scheduler<'a> {
    func: &'a mut Func,
    /// The function without the registers that schedules take.
    before: &'a Func,
    kernel: &'a Kernel,
    target: Target,
    uniformity: &'a Uniformity<'a>,
    bodies: &'a FxHashMap<Var, Pieces>,
    diags: &'a mut Diagnostics,
    found: FxHashMap<Var, Planned>,
}

impl Scheduler<'_> {
    fn block(&mut self, block: &Block, lets: &mut Lets, mut divergent: bool) {
        let mark = lets.mark();
        for stmt in block {
            if let StmtKind::Let { var, value } = &stmt.kind {
                lets.bind(*var, value);
            }
            let varies = divergent || self.uniformity.inside(stmt).is_divergent();
            if let StmtKind::For(l) = &stmt.kind
                && let Some(pieces) = self.bodies.get(&l.axes[0].var)
            {
                self.planned(l, pieces, lets, varies, stmt.span);
                continue;
            }
            for child in tilewright_ir::visit::child_blocks(stmt) {
                self.block(child, lets, varies);
            }
            let jumps = self.uniformity.jumps(stmt);
            divergent |= jumps.both().is_divergent();
        }
        lets.forget(mark);
    }

    fn planned(&mut self, l: &Loop, pieces: &Pieces, lets: &Lets, divergent: bool, span: Span) {
        if divergent {
            self.warn(span, "not all threads of the block run it together", None);
            return;
        }
        let site = Site {
            func: self.before,
            kernel: self.kernel,
            uniformity: self.uniformity,
            target: self.target,
            lets,
        };
        let asked = plan_of(l).and_then(|spec| spec.schedule.as_deref());
        match choose(&site, self.func, (l, span), pieces, asked) {
            Ok(choice) => {
                let steps = explain::steps(self.func, &choice.chosen);
                let asked = asked.is_some();
                let said = explain::explain(self.func, &choice, (asked, span), &steps);
                self.diags.push(said);
                let order = explain::order(self.func, (l, span), &choice.chosen, &steps);
                self.diags.push(order);
                let chosen = choice.chosen;
                self.found.insert(l.axes[0].var, Planned { chosen, span });
            }
            Err(NoSchedule::Error(error)) => self.diags.push(*error),
            Err(NoSchedule::Broken { why, pair }) => self.warn(span, &why, pair),
        }
    }

    fn warn(&mut self, span: Span, why: &str, spans: Option<(Span, Span)>) {
        let mut warning = Diagnostic::warning(
            NOT_PIPELINED,
            span,
            format!("this loop is not pipelined as asked: {why}"),
        );
        if let Some((earlier, later)) = spans {
            warning = warning
                .also(earlier, "this must be done")
                .also(later, "before this");
        }
        self.diags.push(warning);
    }
}

/// Rebuilds a kernel's body.
struct Write<'a> {
    func: &'a mut Func,
    target: Target,
    loops: &'a FxHashMap<Var, Planned>,
    /// The part of a thread of its own.
    producer: Option<Producer>,
}

impl Write<'_> {
    fn block(&mut self, block: Block) -> Block {
        let mut out = Vec::with_capacity(block.len());
        let mut names = Vec::new();
        for stmt in block {
            if let StmtKind::Let { .. } = stmt.kind {
                names.push(stmt.clone());
            }
            let had = self.producer.is_some();
            self.stmt(stmt, &mut out);
            if let Some(producer) = self.producer.as_mut().filter(|_| !had) {
                producer.inside(self.func, &names);
            }
        }
        out
    }

    fn stmt(&mut self, mut stmt: Stmt, out: &mut Block) {
        if let StmtKind::For(l) = &mut stmt.kind {
            if let Some(planned) = self.loops.get(&l.axes[0].var) {
                let Candidate {
                    pieces,
                    scheduled,
                    roles,
                    ..
                } = &planned.chosen;
                let (target, span) = (self.target, stmt.span);
                let mut write = |pieces: &Pieces, scheduled: &Scheduled| {
                    emit::emit(self.func, target, l, pieces, scheduled, span)
                };
                let Some(roles) = roles else {
                    out.extend(write(pieces, scheduled));
                    return;
                };
                let mut part = |part: &Part| write(&part.pieces, &part.scheduled);
                out.extend(part(&roles.consumers));
                out.extend(roles.consumers.behind.iter().cloned());
                self.producer = Some(Producer {
                    body: part(&roles.producer),
                    barriers: roles.barriers().collect(),
                    resident: roles.resident.clone().ok(),
                    pairs: roles.pairs.clone().ok(),
                    span,
                });
                return;
            }
            if let LoopKind::Pipelined(spec) = &mut l.kind {
                *spec = PipelineSpec {
                    stages: spec.stages.min(1),
                    ..PipelineSpec::default()
                };
                l.drop_turns();
            }
        }
        let mut blocks: Vec<Block> = Vec::new();
        for child in tilewright_ir::visit::child_blocks_mut(&mut stmt) {
            blocks.push(std::mem::take(child));
        }
        // Outside of the loops the first version is the buffer.
        let zero = |_| Expr::i32(0);
        slots::add_slots(self.func, std::slice::from_mut(&mut stmt), &zero);
        let mut written: Vec<Block> = Vec::new();
        for (arm, block) in blocks.into_iter().enumerate() {
            let had = self.producer.is_some();
            written.push(self.block(block));
            if let Some(producer) = self.producer.as_mut().filter(|_| !had) {
                producer.under(&stmt.kind, arm);
            }
        }
        for (child, block) in tilewright_ir::visit::child_blocks_mut(&mut stmt)
            .into_iter()
            .zip(written)
        {
            *child = block;
        }
        out.push(stmt);
    }
}
