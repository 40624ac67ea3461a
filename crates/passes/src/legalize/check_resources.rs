//! CheckResources: what lowering needs must fit the target.
//!
//! BindTarget has refused what the user allocated beyond the target's limits. Lowering adds to
//! it: fragments kept in shared memory, lines of reductions, padding of layouts; and a fragment
//! takes as many registers as its layout gives a thread. Both are counted here, when they are
//! known, and an excess is an error with the sizes, the limit and what would help.
//!
//! Registers are a lower bound: only fragments, and only while they are alive, count. A kernel
//! that passes may still spill; one that does not cannot be held in registers at all.
//!
//! Before and after are the same function; what comes out is a diagnostic such as
//! ```text
//! error[register-limit]: fragments need 512 registers a thread, sm_80 has 255
//! ```
//!
//! Needs loop IR. It changes nothing.

use rustc_hash::FxHashMap;
use tilewright_ir::visit::{child_blocks, walk_stmts};
use tilewright_ir::visit_ids::stmt_buffers;
use tilewright_ir::{
    Block, Buffer, BufferOrigin, Code, Diagnostic, Diagnostics, Func, Kernel, LayoutAttr, Scope,
    StmtKind, Target,
};
use tilewright_layout::from_attr;

use crate::Changed;
use crate::legalize::layout_inference::const_shape;

const SHARED_MEMORY_LIMIT: Code = Code("shared-memory-limit");
const REGISTER_LIMIT: Code = Code("register-limit");

/// Checks all kernels.
pub fn check_resources(func: &mut Func, target: Target, diags: &mut Diagnostics) -> Changed {
    for kernel in &func.kernels {
        shared_memory(func, kernel, target, diags);
        registers(func, kernel, target, diags);
    }
    Changed::No
}

fn shared_memory(func: &Func, kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    let limit = i64::from(target.facts().shared_bytes);
    let mut parts: Vec<(i64, Buffer)> = Vec::new();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Alloc(buffer) = stmt.kind
            && func.buffers[buffer].scope == Scope::Shared
            && !matches!(func.buffers[buffer].origin, BufferOrigin::View(_))
        {
            parts.push((shared_bytes(func, buffer, target), buffer));
        }
    });
    let total: i64 = parts.iter().map(|(bytes, _)| bytes).sum();
    parts.sort_by_key(|(bytes, _)| std::cmp::Reverse(*bytes));
    if total <= limit {
        return;
    }
    // Temporaries of the lowering have no place in the source.
    let located = |(_, b): &&(i64, Buffer)| !func.buffers[*b].span.is_none();
    let Some(&(bytes, largest)) = parts.iter().find(located).or(parts.first()) else {
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
        .map(|(bytes, b)| format!("`{}` {bytes}", func.buffers[*b].name))
        .collect();
    diags.push(
        Diagnostic::error(
            SHARED_MEMORY_LIMIT,
            span,
            format!(
                "the kernel needs {total} bytes of shared memory when lowered, {target} has {limit} a block"
            ),
        )
        .label(format!("`{}` takes {bytes} of them", data.name))
        .note(format!("bytes, largest first: {}", list.join(", ")))
        .help("use smaller tiles, fewer stages, or a type of fewer bits"),
    );
}

/// Bytes of a shared buffer in its layout, all versions.
fn shared_bytes(func: &Func, buffer: Buffer, target: Target) -> i64 {
    let data = &func.buffers[buffer];
    let Some(shape) = const_shape(&data.shape) else {
        return 0;
    };
    let attr = data.layout.as_ref().unwrap_or(&LayoutAttr::Linear);
    let places = from_attr::buffer_layout(attr, &shape, target, data.dtype.scalar).map_or_else(
        |_| shape.iter().product(),
        |l| l.codomain().iter().product::<i64>(),
    );
    let bits = places * data.dtype.bits() as i64 * i64::from(data.versions.max(1));
    (bits + 7) / 8
}

fn registers(func: &Func, kernel: &Kernel, target: Target, diags: &mut Diagnostics) {
    let facts = target.facts();
    let threads = kernel.num_threads().max(1);
    let limit = i64::from(facts.max_registers.min(facts.register_file / threads));
    let mut lives = Lives {
        func,
        at: 0,
        spans: FxHashMap::default(),
        declared: FxHashMap::default(),
    };
    lives.block(&kernel.body, &[]);
    let mut most: (i64, Vec<Buffer>) = (0, Vec::new());
    let mut starts: Vec<usize> = lives.spans.values().map(|s| s.0).collect();
    starts.sort_unstable();
    for at in starts {
        let mut alive: Vec<Buffer> = lives
            .spans
            .iter()
            .filter(|(_, (first, last))| (*first..=*last).contains(&at))
            .map(|(b, _)| *b)
            .collect();
        let total = alive.iter().map(|b| register_count(func, *b)).sum();
        if total > most.0 {
            alive.sort_by_key(|b| (std::cmp::Reverse(register_count(func, *b)), *b));
            most = (total, alive);
        }
    }
    let (total, alive) = most;
    let Some(&largest) = alive.first().filter(|_| total > limit) else {
        return;
    };
    let data = &func.buffers[largest];
    let list: Vec<String> = alive
        .iter()
        .take(6)
        .map(|b| format!("`{}` {}", func.buffers[*b].name, register_count(func, *b)))
        .collect();
    let has = match limit < i64::from(facts.max_registers) {
        true => format!("{target} has {limit} with {threads} threads a block"),
        false => format!("{target} has {limit}"),
    };
    diags.push(
        Diagnostic::error(
            REGISTER_LIMIT,
            data.span,
            format!("fragments need {total} registers a thread, {has}"),
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

/// First and last statement that touches each fragment. What is declared outside of a loop and
/// touched in it is alive in the whole loop.
struct Lives<'f> {
    func: &'f Func,
    at: usize,
    spans: FxHashMap<Buffer, (usize, usize)>,
    /// How deep in loops each buffer is declared.
    declared: FxHashMap<Buffer, usize>,
}

impl Lives<'_> {
    fn block(&mut self, block: &Block, loops: &[usize]) {
        for stmt in block {
            self.at += 1;
            let here = self.at;
            if let StmtKind::Alloc(buffer) = stmt.kind {
                self.declared.insert(buffer, loops.len());
                continue;
            }
            stmt_buffers(stmt, &mut |buffer| {
                let data = &self.func.buffers[buffer];
                let fragment = matches!(data.layout, Some(LayoutAttr::Fragment(_)));
                if data.scope == Scope::Local && fragment {
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
