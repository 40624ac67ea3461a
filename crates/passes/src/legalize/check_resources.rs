//! CheckResources: what lowering needs must fit the target.
//!
//! BindTarget has refused what the user allocated beyond the target's limits. Lowering adds to
//! it: fragments kept in shared memory, lines of reductions, padding of layouts; and a fragment
//! takes as many registers as its layout gives a thread. Both are counted here, when they are
//! known, and an excess is an error with the sizes, the limit and what would help.
//!
//! Both are lower bounds. Of shared memory what is in use at once counts, for buffers that are
//! not may be given the same bytes when all barriers are known. Of registers only fragments count,
//! and only while they are alive. A kernel that passes may still spill.
//!
//! Where what does not fit registers can be spilled to memory it is a warning, up to
//! [`SPILL_LIMIT`] times the registers. On machines that count memory operations a spill would be
//! among them, so there it is an error. A product of warp groups has its tile in registers all at
//! once: one that takes more than the file gives each thread of the block, or than its warp group
//! asks for, is an error too.
//!
//! Before and after are the same function; what comes out is a diagnostic such as
//! ```text
//! warning[register-limit]: fragments need 512 registers a thread, sm_80 has 255
//! ```
//!
//! Needs loop IR. It changes nothing.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::{child_blocks, walk_stmts};
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{
    Block, Buffer, Code, Diagnostic, Diagnostics, Func, Inst, Kernel, Scope, Severity, Span,
    StmtKind, Target, ThreadOp,
};

use crate::Changed;
use crate::legalize::layout_inference::const_shape;
use crate::optimize::common::inject_software_pipeline::need;
use crate::optimize::common::merge_shared_memory_allocations::shared_bytes;

const SHARED_MEMORY_LIMIT: Code = Code("shared-memory-limit");
const REGISTER_LIMIT: Code = Code("register-limit");

/// How many times a thread's registers its fragments may take where the rest is spilled. Sixteen
/// times 255 registers are 16 KiB; for 2,048 threads on each of 132 multiprocessors that is more
/// than four GiB of local memory, which a driver sets aside before the kernel starts.
const SPILL_LIMIT: i64 = 16;

/// Checks all kernels.
pub fn check_resources(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    for kernel in &func.kernels {
        shared_memory(func, kernel, target, diags);
        registers(func, kernel, target, diags);
        products(kernel, target, diags);
        asked(func, kernel, target, diags);
    }
    Changed::No
}

/// Instructions of warp groups against what a thread starts with: later moves of registers do not
/// help the compiler that comes after us.
fn products(kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    let machine = target.machine();
    let threads = kernel.num_threads();
    let limit = need::even_share_of(machine, threads);
    walk_stmts(&kernel.body, &mut |stmt| {
        let Some(Inst::GroupMma { mma, .. }) = stmt.as_group_product().map(|op| op.inst) else {
            return;
        };
        let takes = need::of_product(mma);
        if takes <= limit {
            return;
        }
        let (m, n) = (mma.m, mma.n);
        let message = format!(
            "a product of {m}x{n} takes {takes} registers of a thread, {target} has {limit} with \
             {threads} threads a block"
        );
        let diag = Diagnostic::error(REGISTER_LIMIT, stmt.span, message);
        diags.push(diag.help("use smaller tiles, or fewer threads"));
    });
}

/// What a warp group asks for, against what its products take.
fn asked(func: &Func, kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    if target.machine().registers.moves.is_none() {
        return;
    }
    walk_stmts(&kernel.body, &mut |region| {
        let StmtKind::WarpGroup { body, .. } = &region.kind else {
            return;
        };
        let mut least: Option<(u32, Span)> = None;
        let mut most: Option<(u32, Span)> = None;
        walk_stmts(body, &mut |stmt| {
            if let StmtKind::Thread(ThreadOp::SetMaxRegs { count, .. }) = stmt.kind
                && least.is_none_or(|(least, _)| count < least)
            {
                least = Some((count, stmt.span));
            }
            if let Some(op) = stmt.as_group_product()
                && let Inst::GroupMma { mma, .. } = op.inst
            {
                let sum = register_count(func, op.dest.region.buffer);
                let takes = need::of_product(mma).max(u32::try_from(sum).unwrap_or(u32::MAX));
                if most.is_none_or(|(most, _)| takes > most) {
                    most = Some((takes, stmt.span));
                }
            }
        });
        let (Some((count, span)), Some((takes, product))) = (least, most) else {
            return;
        };
        if takes > count {
            let message = format!(
                "{count} registers a thread are asked for, and a product of the warp group takes \
                 {takes}"
            );
            diags.push(
                Diagnostic::error(REGISTER_LIMIT, span, message)
                    .also(product, "this product")
                    .help("ask for more, use smaller tiles, or leave it to the compiler"),
            );
        }
    });
}

fn shared_memory(func: &Func, kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    let limit = i64::from(target.machine().shared.bytes);
    let bytes_of = |b: Buffer| {
        let versions = func.buffers[b].versions;
        i64::try_from(shared_bytes(func, b, versions)).unwrap_or(i64::MAX)
    };
    let (total, parts) = most_shared(func, kernel, &bytes_of);
    if total <= limit {
        return;
    }
    // Temporaries of the lowering have no place in the source.
    let located = |b: &&Buffer| !func.buffers[**b].span.is_none();
    let Some(&largest) = parts.iter().find(located).or(parts.first()) else {
        return;
    };
    let data = &func.buffers[largest];
    let span = if data.span.is_none() {
        kernel.span
    } else {
        data.span
    };
    let list: Vec<String> = parts
        .iter()
        .take(6)
        .map(|b| format!("`{}` {}", func.buffers[*b].name, bytes_of(*b)))
        .collect();
    diags.push(
        Diagnostic::error(
            SHARED_MEMORY_LIMIT,
            span,
            format!(
                "the kernel needs {total} bytes of shared memory when lowered, {target} has {limit} a block"
            ),
        )
        .label(format!("`{}` takes {} of them", data.name, bytes_of(largest)))
        .note(format!("bytes, largest first: {}", list.join(", ")))
        .help("use smaller tiles, fewer stages, or a type of fewer bits"),
    );
}

/// The most bytes of shared memory that are in use at once, and by which buffers, largest
/// first. Buffers that are never in use together may get the same bytes later.
pub(crate) fn most_shared(
    func: &Func,
    kernel: &Kernel,
    bytes_of: &dyn Fn(Buffer) -> i64,
) -> (i64, Vec<Buffer>) {
    let root = |buffer: Buffer| {
        let root = func.root(buffer);
        (func.buffers[root].scope == Scope::Shared).then_some(root)
    };
    Lives::of(kernel, &root).most(bytes_of)
}

fn registers(func: &Func, kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    let registers = target.machine().registers;
    let threads = kernel.num_threads().max(1);
    let limit = i64::from(registers.per_thread.min(registers.file / threads));
    let fragment = |buffer: Buffer| {
        let data = &func.buffers[buffer];
        let fragment = data.held().is_some();
        (data.scope == Scope::Local && fragment).then_some(buffer)
    };
    let count = |b: Buffer| register_count(func, b);
    let (total, alive) = Lives::of(kernel, &fragment).most(&count);
    let Some(&largest) = alive.first().filter(|_| total > limit) else {
        return;
    };
    let data = &func.buffers[largest];
    let list: Vec<String> = alive
        .iter()
        .take(6)
        .map(|b| format!("`{}` {}", func.buffers[*b].name, register_count(func, *b)))
        .collect();
    let has = match limit < i64::from(registers.per_thread) {
        true => format!("{target} has {limit} with {threads} threads a block"),
        false => format!("{target} has {limit}"),
    };
    let spills = registers.spill && total <= SPILL_LIMIT * limit;
    let severity = match spills {
        true => Severity::Warning,
        false => Severity::Error,
    };
    let rest = if spills { "; the rest is spilled" } else { "" };
    diags.push(
        Diagnostic::new(
            severity,
            REGISTER_LIMIT,
            data.span,
            format!("fragments need {total} registers a thread, {has}{rest}"),
        )
        .label(format!(
            "`{}` takes {} of them",
            data.name,
            register_count(func, largest)
        ))
        .note(format!("alive at once: {}", list.join(", ")))
        .help("use smaller tiles, more threads, or a type of fewer bits"),
    );
}

/// 32-bit registers of a fragment's slots.
fn register_count(func: &Func, buffer: Buffer) -> i64 {
    let data = &func.buffers[buffer];
    let slots: i64 = const_shape(&data.shape).map_or(0, |s| s.iter().product());
    (slots * data.dtype.bits() as i64 + 31) / 32
}

/// First and last statement that touches each buffer. What is declared outside of a loop and
/// touched in it is alive in the whole loop.
struct Lives<'f> {
    /// The buffer that an access counts for, where it counts.
    counted: &'f dyn Fn(Buffer) -> Option<Buffer>,
    at: usize,
    spans: FxHashMap<Buffer, (usize, usize)>,
    /// How deep in loops each buffer is declared.
    declared: FxHashMap<Buffer, usize>,
}

impl<'f> Lives<'f> {
    fn of(kernel: &Kernel, counted: &'f dyn Fn(Buffer) -> Option<Buffer>) -> Lives<'f> {
        let mut lives = Lives {
            counted,
            at: 0,
            spans: FxHashMap::default(),
            declared: FxHashMap::default(),
        };
        lives.block(&kernel.body, &[]);
        lives
    }

    /// The largest sum of what is alive at once, and what that is, largest first.
    fn most(&self, size: &dyn Fn(Buffer) -> i64) -> (i64, Vec<Buffer>) {
        // A size can be the work of converting a layout.
        let sizes = self.spans.keys().map(|&b| (b, size(b)));
        let sizes: FxHashMap<Buffer, i64> = sizes.collect();
        let mut most: (i64, Vec<Buffer>) = (0, Vec::new());
        let mut starts: Vec<usize> = self.spans.values().map(|s| s.0).collect();
        starts.sort_unstable();
        for at in starts {
            let spans = self.spans.iter();
            let here = spans.filter(|(_, (first, last))| (*first..=*last).contains(&at));
            let mut alive: Vec<Buffer> = here.map(|(b, _)| *b).collect();
            let total = alive.iter().fold(0i64, |n, b| n.saturating_add(sizes[b]));
            if total > most.0 {
                alive.sort_unstable_by_key(|b| (std::cmp::Reverse(sizes[b]), *b));
                most = (total, alive);
            }
        }
        most
    }

    fn block(&mut self, block: &Block, loops: &[usize]) {
        for stmt in block {
            self.at += 1;
            let here = self.at;
            if let StmtKind::Alloc(buffer) = stmt.kind {
                self.declared.insert(buffer, loops.len());
                continue;
            }
            stmt_buffers(stmt, &mut |buffer| {
                if let Some(buffer) = (self.counted)(buffer) {
                    let outside = self.declared.get(&buffer).copied().unwrap_or(0);
                    let first = loops.get(outside).copied().unwrap_or(here);
                    let life = self.spans.entry(buffer).or_insert((first, here));
                    life.0 = life.0.min(first);
                    life.1 = life.1.max(here);
                }
            });
            let is_loop = matches!(stmt.kind, StmtKind::For(_) | StmtKind::While { .. });
            let mut around = loops.to_vec();
            if is_loop {
                around.push(here);
            }
            for child in child_blocks(stmt) {
                self.block(child, &around);
            }
            if is_loop {
                let end = self.at;
                for (buffer, life) in &mut self.spans {
                    let outside = self.declared.get(buffer).copied().unwrap_or(0) < around.len();
                    if outside && life.1 >= here {
                        life.1 = end;
                    }
                }
            }
        }
    }
}
