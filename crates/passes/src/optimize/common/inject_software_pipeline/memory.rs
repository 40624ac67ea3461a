//! Whether the versions fit the block's shared memory, and how many stages would.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Buffer, Code, Diagnostic, Func, Kernel, Loop, Severity, Span, StmtKind, Target, Var,
};
use tilewright_schedule::access::Lets;
use tilewright_schedule::uniform::Uniformity;

use super::Planned;
use super::units::{Place, Units, schedule};
use crate::driver;
use crate::optimize::common::merge_shared_memory_allocations::{
    Plan, shared_buffers, shared_bytes,
};

const SHARED_MEMORY_LIMIT: Code = Code("shared-memory-limit");
const FEWER_STAGES: Code = Code("fewer-stages");

/// More versions than shared memory has room for.
#[derive(Clone)]
pub(super) struct Excess {
    /// Of the deepest loop.
    pub stages: u32,
    span: Span,
    total: u64,
    /// The most stages that fit.
    pub fits: Option<u32>,
}

impl Excess {
    /// What was asked for and what there is.
    fn message(&self, target: Target) -> String {
        let (stages, total) = (self.stages, self.total);
        let limit = target.machine().shared.bytes;
        format!("{stages} stages take {total} bytes of shared memory, {target} has {limit} a block")
    }

    /// Nothing fits.
    pub fn error(&self, target: Target) -> Diagnostic {
        Diagnostic::error(SHARED_MEMORY_LIMIT, self.span, self.message(target))
            .help("no number of stages fits: use smaller tiles, or a type of fewer bits")
    }

    /// The loop has fewer stages than were asked for.
    pub fn note(&self, stages: u32, target: Target) -> Diagnostic {
        let message = format!("{}: the loop has {stages}", self.message(target));
        let note = Diagnostic::new(Severity::Note, FEWER_STAGES, self.span, message);
        note.help(format!(
            "num_stages={stages} says the same; smaller tiles leave room for more"
        ))
    }
}

/// What the versions are too much for, if they are. `written` is the function with the kernel's
/// loops written out.
pub(super) fn check(
    written: &Func,
    (at, kernel): (usize, &Kernel),
    target: Target,
    parts: &FxHashMap<Var, Units>,
    loops: &FxHashMap<Var, Planned>,
) -> Option<Excess> {
    let limit = u64::from(target.machine().shared.bytes);
    let versions = |buffer: Buffer| written.buffers[buffer].versions;
    if bytes_apart(written, kernel, &versions) <= limit {
        return None;
    }
    let plan = merged(written, at, target);
    let total = plan.total(written, &versions);
    let deepest = loops
        .iter()
        .max_by_key(|(var, l)| (l.scheduled.schedule.depth, std::cmp::Reverse(var.as_u32())));
    let (_, planned) = deepest.filter(|_| total > limit)?;
    let stages = planned.scheduled.schedule.depth + 1;
    let fits = (1..stages).rev().find(|&fewer| {
        let versions = capped_versions(written, kernel, target, parts, fewer - 1);
        let of = |buffer: Buffer| versions.get(&buffer).copied().unwrap_or(1);
        plan.total(written, &of) <= limit
    });
    Some(Excess {
        stages,
        span: planned.span,
        total,
        fits,
    })
}

/// The versions of each buffer when nothing runs further ahead than `cap`.
fn capped_versions(
    func: &Func,
    kernel: &Kernel,
    target: Target,
    parts: &FxHashMap<Var, Units>,
    cap: u32,
) -> FxHashMap<Buffer, u32> {
    let uniformity = Uniformity::of(func, kernel);
    let mut versions: FxHashMap<Buffer, u32> = FxHashMap::default();
    let mut each = |l: &Loop, units: &Units| {
        let lets = Lets::default();
        let place = Place {
            func,
            kernel,
            uniformity: &uniformity,
            target,
            lets: &lets,
        };
        if let Ok(scheduled) = schedule(&place, l, &units.capped(func, cap)) {
            for &buffer in &scheduled.buffers {
                let own = scheduled.versions(buffer);
                let known = versions.entry(buffer).or_insert(1);
                *known = (*known).max(own);
            }
        }
    };
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::For(l) = &stmt.kind
            && let Some(units) = parts.get(&l.axes[0].var)
        {
            each(l, units);
        }
    });
    versions
}

/// Bytes where every buffer has its own.
fn bytes_apart(func: &Func, kernel: &Kernel, versions: &dyn Fn(Buffer) -> u32) -> u64 {
    let buffers = shared_buffers(func, kernel).into_iter();
    let bytes = buffers.map(|b| shared_bytes(func, b, versions(b)));
    bytes.map(|b| b.next_multiple_of(16)).sum()
}

/// Which buffers of a kernel that is written out will share their bytes: what the passes to
/// come will do is done to a copy.
fn merged(func: &Func, kernel: usize, target: Target) -> Plan {
    let mut copy = func.clone();
    let to_come = crate::pipeline(target).into_iter();
    let to_come = to_come.skip_while(|p| p.name != "inject-software-pipeline");
    let to_come = to_come.skip(1);
    let to_come = to_come.take_while(|p| p.name != "merge-shared-memory-allocations");
    let options = driver::Options {
        passes: Some(to_come.collect()),
        verify: false,
        ..driver::Options::default()
    };
    // What they say they say again when their turn comes; then an error is an error.
    let _ = driver::run(&mut copy, target, &options);
    Plan::of(&copy, kernel, target)
}
