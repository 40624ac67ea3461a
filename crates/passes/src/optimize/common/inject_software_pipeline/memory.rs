//! Whether the versions fit the block's shared memory.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Buffer, Code, Diagnostic, Diagnostics, Func, Kernel, Loop, StmtKind, Target, Var,
};
use tilewright_schedule::access::Lets;
use tilewright_schedule::uniform::Uniformity;

use super::Planned;
use super::units::{Place, Units, schedule};
use crate::optimize::common::merge_shared_memory_allocations::{
    Plan, shared_buffers, shared_bytes,
};

const SHARED_MEMORY_LIMIT: Code = Code("shared-memory-limit");

/// Says how many stages fit where those asked for do not. `written` is the function with the
/// kernel's loops written out.
pub(super) fn check(
    written: &Func,
    (at, kernel): (usize, &Kernel),
    target: Target,
    parts: &FxHashMap<Var, Units>,
    loops: &FxHashMap<Var, Planned>,
    diags: &mut Diagnostics,
) {
    let limit = u64::from(target.facts().shared_bytes);
    let versions = |buffer: Buffer| written.buffers[buffer].versions;
    if bytes_apart(written, kernel, &versions) <= limit {
        return;
    }
    let plan = merged(written, at, target);
    let total = plan.total(written, &versions);
    let deepest = loops
        .iter()
        .max_by_key(|(var, l)| (l.scheduled.schedule.depth, std::cmp::Reverse(var.as_u32())));
    let Some((_, planned)) = deepest.filter(|_| total > limit) else {
        return;
    };
    let stages = planned.scheduled.schedule.depth + 1;
    let fits = (1..stages).rev().find(|&fewer| {
        let versions = capped_versions(written, kernel, target, parts, fewer - 1);
        let of = |buffer: Buffer| versions.get(&buffer).copied().unwrap_or(1);
        plan.total(written, &of) <= limit
    });
    let message = format!(
        "{stages} stages take {total} bytes of shared memory, {target} has {limit} a block"
    );
    let help = match fits {
        Some(1) => "num_stages=1 fits; smaller tiles leave room for more".to_string(),
        Some(n) => format!("num_stages={n} fits"),
        None => "no number of stages fits: use smaller tiles, or a type of fewer bits".to_string(),
    };
    diags.push(Diagnostic::error(SHARED_MEMORY_LIMIT, planned.span, message).help(help));
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
    let mut unheard = Diagnostics::new();
    let to_come = crate::pipeline(target).into_iter();
    let to_come = to_come.skip_while(|p| p.name != "inject-software-pipeline");
    let to_come = to_come.skip(1);
    for pass in to_come.take_while(|p| p.name != "merge-shared-memory-allocations") {
        (pass.run)(&mut copy, target, &mut unheard);
    }
    Plan::of(&copy, kernel, target)
}
