//! Whether the versions fit the block's shared memory, how many stages would, and how many blocks
//! run at once.

use rustc_hash::FxHashMap;
use tilewright_ir::{
    Buffer, Code, Diagnostic, Func, Kernel, Machine, Scope, Severity, Span, Target, Var,
};

use super::Planned;
use super::derive::Scheduled;
use crate::Foreseen;
use crate::optimize::common::merge_shared_memory_allocations::{
    Barriers, Plan, shared_buffers, shared_bytes,
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
        self.fewer(stages, message)
    }

    /// The loop has fewer stages than were asked for, so that waves copy straight to LDS: through
    /// registers there might have been room.
    pub fn note_of_direct(&self, stages: u32, target: Target) -> Diagnostic {
        let message = self.message(target);
        let message = format!("{message}: the loop has {stages}, which waves copy straight to LDS");
        self.fewer(stages, message)
    }

    fn fewer(&self, stages: u32, message: String) -> Diagnostic {
        let note = Diagnostic::new(Severity::Note, FEWER_STAGES, self.span, message);
        note.help(format!(
            "num_stages={stages} says the same; smaller tiles leave room for more"
        ))
    }
}

/// What the versions are too much for, if they are; else what the passes behind this one will make
/// of the function, where that was asked. `written` is the function with this kernel alone, its
/// loops written out.
pub(super) fn check(
    written: &Func,
    kernel: &Kernel,
    target: Target,
    loops: &FxHashMap<Var, Planned>,
) -> Result<Option<Foreseen>, Excess> {
    let limit = u64::from(target.machine().shared.bytes);
    if bytes_apart(written, kernel) <= limit {
        return Ok(None);
    }
    let deepest = loops.iter().max_by_key(|(var, l)| {
        let stages = l.chosen.scheduled.stages;
        (stages, std::cmp::Reverse(var.as_u32()))
    });
    let Some((_, planned)) = deepest else {
        return Ok(None);
    };
    let mut foreseen = None;
    // Where the versions alone are too much, nobody need ask what else shares bytes.
    let alone = loops.values();
    let alone = alone.map(|l| bytes_of_versions(written, &l.chosen.scheduled));
    let total = match alone.max() {
        Some(total) if total > limit => total,
        _ => merged(foreseen.insert(Foreseen::new(written)), target),
    };
    match total > limit {
        false => Ok(foreseen),
        true => Err(Excess {
            stages: planned.chosen.scheduled.stages,
            span: planned.span,
            total,
        }),
    }
}

/// Bytes that a loop takes at least: those of the buffers it keeps several versions of, which live
/// through all of it, and beside them any one of its other buffers.
pub(super) fn bytes_of_versions(func: &Func, scheduled: &Scheduled) -> u64 {
    let (mut kept, mut other) = (0, 0);
    for &buffer in &scheduled.buffers {
        if func.buffers[buffer].scope != Scope::Shared {
            continue;
        }
        let versions = scheduled.versions(buffer);
        let bytes = shared_bytes(func, buffer, versions);
        match versions {
            0 | 1 => other = bytes.max(other),
            _ => kept += bytes,
        }
    }
    kept + other
}

/// Bytes where every buffer has its own.
fn bytes_apart(func: &Func, kernel: &Kernel) -> u64 {
    let buffers = shared_buffers(func, kernel).into_iter();
    let bytes = buffers.map(|b| shared_bytes(func, b, func.buffers[b].versions));
    bytes.map(|b| b.next_multiple_of(16)).sum()
}

/// Bytes of the kernel that is written out where buffers share theirs; at least so many, where that
/// is more than there is. Barriers decide who may share: where buffers would fit if barriers stood
/// wherever they help, these are foreseen. Only what then fits is looked into, to the end: buffers share
/// where that is proved.
fn merged(foreseen: &mut Foreseen, target: Target) -> u64 {
    let bytes = |func: &Func, barriers| Plan::hoped(func, 0, target, barriers).total_bytes();
    let least = bytes(foreseen.func(), Barriers::Anywhere);
    if least > target.machine().shared.bytes {
        return u64::from(least);
    }
    let in_order = foreseen.run(crate::barriers(), target);
    let hoped = bytes(foreseen.func(), Barriers::Placed);
    if hoped > target.machine().shared.bytes || !in_order {
        return u64::from(hoped);
    }
    foreseen.run(crate::waits(target).chain(crate::last(target)), target);
    let func = foreseen.func();
    let buffers = shared_buffers(func, &func.kernels[0]).into_iter();
    let ends = buffers.filter_map(|b| func.buffers[b].place.map(|place| place.end()));
    u64::from(ends.max().unwrap_or(hoped))
}

/// How many blocks of so many threads, with so many registers each, a multiprocessor has room for when
/// so many versions of some buffers are kept.
pub(super) fn blocks_at_once(
    func: &Func,
    (kernel, machine): (&Kernel, &Machine),
    (threads, registers): (u32, u32),
    (versioned, versions): (&[Buffer], u32),
) -> u64 {
    let bytes = shared_buffers(func, kernel).into_iter().map(|b| {
        let versions = if versioned.contains(&b) { versions } else { 1 };
        shared_bytes(func, b, versions)
    });
    let bytes: u64 = bytes.sum();
    let held = u64::from(registers) * u64::from(threads);
    let by_registers = u64::from(machine.registers.file) / held.max(1);
    let by_memory = u64::from(machine.shared.bytes) / bytes.max(1);
    by_memory.min(by_registers.max(1))
}
