//! MergeSharedMemoryAllocations: every shared buffer gets its bytes of the block's shared memory.
//!
//! Buffers whose lives do not overlap may have the same bytes, where a barrier of the block
//! already stands between the last access of the one and the first of the other, and where the
//! hazard checker proves the kernel with the places as they are.
//!
//! Before:
//! ```text
//! alloc Q: shared float16[64, 64] layout=swizzle(16; …)
//! alloc K: shared float16[64, 64] versions=2 layout=swizzle(16; …)
//! alloc O: shared float16[64, 64] layout=swizzle(16; …)
//! … Q and K in a loop with a barrier after their last use, then O …
//! ```
//! After:
//! ```text
//! alloc Q: shared float16[64, 64] offset=16384 bytes=8192 layout=swizzle(16; …)
//! alloc K: shared float16[64, 64] versions=2 offset=0 bytes=16384 layout=swizzle(16; …)
//! alloc O: shared float16[64, 64] offset=16384 bytes=8192 layout=swizzle(16; …)
//! ```
//!
//! Needs device IR. It never adds a barrier, and refuses a kernel that does not fit the target.

mod lives;
mod pack;

use rustc_hash::FxHashSet;
use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{
    Buffer, BufferOrigin, Code, Diagnostic, Diagnostics, Func, Inst, Kernel, Scope, SharedPlace,
    StmtKind, Target,
};
use tilewright_layout::{Family, Place};
use tilewright_schedule::hazard;

pub(crate) use self::lives::Barriers;
use self::lives::Lives;
use self::pack::{Item, pack};
use crate::Changed;
use crate::legalize::layout_inference::const_shape;

const SHARED_MEMORY_LIMIT: Code = Code("shared-memory-limit");

/// Shared buffers start at multiples of this: all banks once.
const ALIGN: u32 = 128;

/// Where a bulk copy writes.
const TENSOR_ALIGN: u32 = 1024;

/// How many pairs of buffers are tried one by one where they do not hold together.
const MAX_TRIALS: usize = 12;

/// Gives all shared buffers of all kernels their place.
pub fn merge_shared_memory_allocations(
    func: &mut Func,
    target: Target,
    diags: &mut Diagnostics,
) -> Changed {
    let kernels = 0..func.kernels.len();
    let mut plans: Vec<Plan> = kernels
        .map(|at| Plan::hoped(func, at, target, Barriers::Placed))
        .collect();
    if plans.iter().all(|plan| plan.items.is_empty()) {
        return Changed::No;
    }
    for plan in &plans {
        plan.place(func);
    }
    let mut changed = Changed::Yes;
    if plans.iter().any(|plan| !plan.shares.is_empty()) {
        let report = hazard::check(func, target);
        if report.is_clean() {
            changed = Changed::Checked(report);
        } else {
            let hoped = plans.into_iter().enumerate();
            plans = hoped
                .map(|(at, plan)| plan.proved(func, at, target))
                .collect();
            for plan in &plans {
                plan.place(func);
            }
        }
    }
    let limit = target.machine().shared.bytes;
    for (kernel, plan) in func.kernels.iter().zip(&plans) {
        let total = plan.total_bytes();
        if total > limit {
            too_large(func, kernel, plan, total, target, diags);
        }
    }
    changed
}

/// What shares storage in a kernel.
#[derive(Clone)]
pub(crate) struct Plan {
    items: Vec<Item>,
    /// Pairs of items, the lower number first, that may have the same bytes.
    shares: FxHashSet<(usize, usize)>,
}

impl Plan {
    /// The buffers of a kernel, and the pairs of them whose lives let them share, where that takes
    /// fewer bytes.
    pub(crate) fn hoped(func: &Func, kernel: usize, target: Target, barriers: Barriers) -> Plan {
        let apart = Plan {
            items: items(func, &func.kernels[kernel], target),
            shares: FxHashSet::default(),
        };
        let lives = Lives::of(func, &func.kernels[kernel], barriers);
        let mut together = apart.clone();
        for (i, a) in apart.items.iter().enumerate() {
            for (j, b) in apart.items.iter().enumerate().skip(i + 1) {
                if lives.may_share(a.buffer, b.buffer) {
                    together.shares.insert((i, j));
                }
            }
        }
        match together.total_bytes() < apart.total_bytes() {
            true => together,
            false => apart,
        }
    }

    /// The same with those pairs alone that hold in the kernel.
    fn proved(self, func: &Func, kernel: usize, target: Target) -> Plan {
        if self.shares.is_empty() {
            return self;
        }
        let mut one = func.clone();
        one.kernels = vec![func.kernels[kernel].clone()];
        if self.holds(&mut one, target) {
            return self;
        }
        // Those that hold one by one, the largest first.
        let mut plan = Plan {
            items: self.items,
            shares: FxHashSet::default(),
        };
        let mut pairs: Vec<(usize, usize)> = self.shares.into_iter().collect();
        let size = |&(i, j): &(usize, usize)| plan.items[i].bytes.min(plan.items[j].bytes);
        pairs.sort_unstable_by_key(|p| (std::cmp::Reverse(size(p)), *p));
        let mut best = plan.total_bytes();
        for pair in pairs.into_iter().take(MAX_TRIALS) {
            plan.shares.insert(pair);
            let total = plan.total_bytes();
            if total < best && plan.holds(&mut one, target) {
                best = total;
            } else {
                plan.shares.remove(&pair);
            }
        }
        plan
    }

    /// Whether the hazard checker proves the kernel with these places.
    fn holds(&self, func: &mut Func, target: Target) -> bool {
        self.place(func);
        hazard::check(func, target).is_clean()
    }

    /// Gives the buffers their places.
    fn place(&self, func: &mut Func) {
        let (offsets, _) = self.offsets();
        for (item, offset) in self.items.iter().zip(offsets) {
            let bytes = item.bytes;
            func.buffers[item.buffer].place = Some(SharedPlace { offset, bytes });
        }
    }

    /// The first byte of every item, and the bytes of all together.
    fn offsets(&self) -> (Vec<u32>, u32) {
        pack(&self.items, &|i, j| {
            self.shares.contains(&(i.min(j), i.max(j)))
        })
    }

    /// The bytes of all together.
    pub(crate) fn total_bytes(&self) -> u32 {
        self.offsets().1
    }
}

/// Bytes of a shared buffer in its layout, with so many versions.
pub(crate) fn shared_bytes(func: &Func, buffer: Buffer, versions: u32) -> u64 {
    let data = &func.buffers[buffer];
    let Some(shape) = const_shape(&data.shape) else {
        return 0;
    };
    let elements = data.placed().map_or(shape.iter().product(), |p| p.span());
    let bits = elements.max(0) as u64 * u64::from(data.dtype.bits());
    bits.saturating_mul(u64::from(versions.max(1))).div_ceil(8)
}

/// The shared buffers with storage of their own, in program order.
pub(crate) fn shared_buffers(func: &Func, kernel: &Kernel) -> Vec<Buffer> {
    let mut found = Vec::new();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Alloc(buffer) = stmt.kind {
            let data = &func.buffers[buffer];
            let own = !matches!(data.origin, BufferOrigin::View(_));
            if data.scope == Scope::Shared && own {
                found.push(buffer);
            }
        }
    });
    found
}

fn items(func: &Func, kernel: &Kernel, target: Target) -> Vec<Item> {
    let mut tensors: FxHashSet<Buffer> = FxHashSet::default();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Micro(m) = &stmt.kind
            && matches!(m.inst, Inst::Tma(_))
        {
            let accesses = m.sources.iter().chain([&m.dest]);
            tensors.extend(accesses.map(|a| a.region.buffer));
        }
    });
    let memory = target.machine().shared;
    let buffers = shared_buffers(func, kernel).into_iter();
    let item = |buffer: Buffer| {
        let data = &func.buffers[buffer];
        let padded = |p: &Place| matches!(p.family(), Family::Padded(_));
        let swizzled = data.placed().is_some_and(|p| !padded(p));
        let bytes = shared_bytes(func, buffer, data.versions);
        let wanted = match (tensors.contains(&buffer), swizzled) {
            (true, _) => TENSOR_ALIGN,
            (false, true) => memory.swizzle_align,
            (false, false) => memory.banks * 4,
        };
        Item {
            buffer,
            bytes: u32::try_from(bytes).unwrap_or(u32::MAX),
            align: wanted.max(ALIGN),
        }
    };
    buffers.map(item).collect()
}

fn too_large(
    func: &Func,
    kernel: &Kernel,
    plan: &Plan,
    total: u32,
    target: Target,
    diags: &mut Diagnostics,
) {
    let limit = target.machine().shared.bytes;
    let mut parts: Vec<&Item> = plan.items.iter().collect();
    parts.sort_by_key(|i| std::cmp::Reverse(i.bytes));
    // Temporaries of the lowering have no place in the source.
    let located = |i: &&&Item| !func.buffers[i.buffer].span.is_none();
    let Some(largest) = parts.iter().find(located).or(parts.first()) else {
        return;
    };
    let data = &func.buffers[largest.buffer];
    let span = if data.span.is_none() {
        kernel.span
    } else {
        data.span
    };
    let name = |i: &&Item| format!("`{}` {}", func.buffers[i.buffer].name, i.bytes);
    let list: Vec<String> = parts.iter().take(6).map(name).collect();
    diags.push(
        Diagnostic::error(
            SHARED_MEMORY_LIMIT,
            span,
            format!(
                "the kernel needs {total} bytes of shared memory, {target} has {limit} a block"
            ),
        )
        .label(format!("`{}` takes {} of them", data.name, largest.bytes))
        .note(format!("bytes, largest first: {}", list.join(", ")))
        .help("use smaller tiles, fewer stages, or a type of fewer bits"),
    );
}

/// The shared memory of a kernel whose buffers have their places.
#[derive(Clone, Debug)]
pub struct SharedUse {
    /// Bytes of a block.
    pub bytes: u32,
    /// Bytes that a block of the target has.
    pub limit: u32,
    /// Bytes that buffers apart from each other would take.
    pub apart: u32,
    pub buffers: Vec<PlacedBuffer>,
}

#[derive(Clone, Debug)]
pub struct PlacedBuffer {
    pub name: String,
    pub place: SharedPlace,
    /// Names of the buffers that have some of the same bytes.
    pub shares_with: Vec<String>,
}

/// What each kernel takes, after this pass.
pub fn shared_use(func: &Func, target: Target) -> Vec<SharedUse> {
    let each = func.kernels.iter().map(|kernel| {
        let buffers = shared_buffers(func, kernel).into_iter();
        let placed: Vec<(Buffer, SharedPlace)> = buffers
            .filter_map(|b| Some((b, func.buffers[b].place?)))
            .collect();
        let name = |b: Buffer| func.buffers[b].name.clone();
        let alone = Plan {
            items: items(func, kernel, target),
            shares: FxHashSet::default(),
        };
        let list = placed.iter().map(|&(buffer, place)| {
            let others = placed.iter();
            let others = others.filter(|(b, p)| *b != buffer && p.overlaps(place));
            PlacedBuffer {
                name: name(buffer),
                place,
                shares_with: others.map(|(b, _)| name(*b)).collect(),
            }
        });
        SharedUse {
            bytes: placed.iter().map(|(_, p)| p.end()).max().unwrap_or(0),
            limit: target.machine().shared.bytes,
            apart: alone.total_bytes(),
            buffers: list.collect(),
        }
    });
    each.collect()
}
