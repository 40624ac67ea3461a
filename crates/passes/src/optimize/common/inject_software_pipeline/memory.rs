//! Whether the versions fit the block's shared memory.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Buffer, BufferOrigin, Code, Diagnostic, Diagnostics, Func, Kernel, LayoutAttr, Loop, Scope,
    StmtKind, Target, Var,
};
use tilewright_layout::from_attr;
use tilewright_schedule::access::Lets;
use tilewright_schedule::uniform::Uniformity;

use super::Planned;
use super::units::{Place, Units, schedule};
use crate::legalize::layout_inference::const_shape;

const SHARED_MEMORY_LIMIT: Code = Code("shared-memory-limit");

/// Says how many stages fit where those asked for do not.
pub(super) fn check(
    func: &Func,
    kernel: &Kernel,
    target: Target,
    parts: &FxHashMap<Var, Units>,
    loops: &FxHashMap<Var, Planned>,
    diags: &mut Diagnostics,
) {
    let limit = u64::from(target.facts().shared_bytes);
    let versions = |buffer: Buffer| {
        let all = loops.values().map(|l| l.scheduled.versions(buffer));
        all.max().unwrap_or(1)
    };
    let total = shared_bytes(func, kernel, target, &versions);
    let deepest = loops
        .iter()
        .max_by_key(|(var, l)| (l.scheduled.schedule.depth, std::cmp::Reverse(var.as_u32())));
    let Some((_, planned)) = deepest.filter(|_| total > limit) else {
        return;
    };
    let stages = planned.scheduled.schedule.depth + 1;
    let fits = (1..stages).rev().find(|&fewer| {
        let versions = capped_versions(func, kernel, target, parts, fewer - 1);
        let of = |buffer: Buffer| versions.get(&buffer).copied().unwrap_or(1);
        shared_bytes(func, kernel, target, &of) <= limit
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

fn shared_bytes(
    func: &Func,
    kernel: &Kernel,
    target: Target,
    versions: &dyn Fn(Buffer) -> u32,
) -> u64 {
    let mut total = 0u64;
    walk_stmts(&kernel.body, &mut |stmt| {
        let StmtKind::Alloc(buffer) = stmt.kind else {
            return;
        };
        let data = &func.buffers[buffer];
        if data.scope != Scope::Shared || matches!(data.origin, BufferOrigin::View(_)) {
            return;
        }
        let Some(shape) = const_shape(&data.shape) else {
            return;
        };
        let attr = data.layout.as_ref().unwrap_or(&LayoutAttr::Linear);
        let layout = from_attr::buffer_layout(attr, &shape, target, data.dtype.scalar);
        let elements = layout.map_or(shape.iter().product(), |l| l.span());
        let bits = elements.max(0) as u64 * u64::from(data.dtype.bits());
        let bytes = (bits * u64::from(versions(buffer))).div_ceil(8);
        total += bytes.next_multiple_of(16);
    });
    total
}
