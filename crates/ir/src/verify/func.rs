//! Functions and kernels.

use rustc_hash::FxHashSet;

use crate::compile_flags;
use crate::declare::undeclared;
use crate::dtype::DType;
use crate::expr::ExprKind;
use crate::func::{Kernel, Param, VarKind};
use crate::ids::Var;
use crate::prints::{self, PrintFormat, Prints};
use crate::target::MAX_CLUSTER;
use crate::verify::{BlockKind, Verifier};

impl<'a> Verifier<'a> {
    pub(super) fn function(&mut self) {
        let func = self.func;
        for &symbol in &func.symbols {
            self.bind_var(symbol, VarKind::Symbol);
        }
        // A scalar parameter may be the size of a tensor before it.
        for param in &func.params {
            if let Param::Scalar(var) = param {
                self.bind_var(*var, VarKind::Param);
            }
        }
        for (buffer, _) in func.tensors() {
            self.at = func.buffers.get(buffer).map_or(func.span, |b| b.span);
            self.declare_buffer(buffer);
        }
        self.symbols_are_bound();
        for &buffer in &func.workspaces {
            self.at = func.buffers.get(buffer).map_or(func.span, |b| b.span);
            self.declare_buffer(buffer);
        }
        for buffer in undeclared(func) {
            let data = &func.buffers[buffer];
            self.at = data.span;
            match data.origin {
                crate::BufferOrigin::View(_) | crate::BufferOrigin::Pointer(_) => {
                    self.declare_buffer(buffer);
                }
                _ => {
                    let name = self.buffer_name(buffer);
                    let message = format!("`{name}` is used, but nothing allocates it");
                    self.fail("buffer-scope", message);
                }
            }
        }
        self.at = func.span;
        for flag in &func.attrs.compile_flags {
            if !compile_flags::is_allowed(flag) {
                let message = format!("`{flag}` is not passed to the target's compiler");
                let help = format!("what may be given: {}", compile_flags::ALLOWED);
                self.fail("compile-flag", message).help.push(help);
            }
        }
        if let Some(prints) = &func.attrs.prints {
            self.prints(prints);
        }
        for kernel in &func.kernels {
            self.kernel(kernel);
        }
    }

    /// Lines that are printed to memory need words of it, and a kernel each.
    fn prints(&mut self, prints: &Prints) {
        let func = self.func;
        let words = func.buffers.get(prints.buffer).is_some_and(|data| {
            let sized = matches!(&data.shape[..], [words] if words.is_int(prints::WORDS.into()));
            sized && data.dtype == Prints::DTYPE && func.workspaces.contains(&prints.buffer)
        });
        let kernels = func.kernels.len();
        let known = |format: &PrintFormat| (format.kernel as usize) < kernels;
        if !words || !prints.formats.iter().all(known) {
            self.fail(
                "prints",
                "lines are printed to a workspace of words, by kernels",
            );
        }
    }

    /// The call binds symbols from the shapes and strides it is given.
    fn symbols_are_bound(&mut self) {
        let func = self.func;
        let mut found: FxHashSet<Var> = FxHashSet::default();
        for (buffer, _) in func.tensors() {
            let Some(data) = func.buffers.get(buffer) else {
                continue;
            };
            for size in data.shape.iter().chain(data.strides.iter().flatten()) {
                size.walk_distinct(&mut |e| {
                    if let ExprKind::Var(v) = e.kind() {
                        found.insert(*v);
                    }
                });
            }
        }
        for &symbol in &func.symbols {
            let Some(data) = func.vars.get(symbol) else {
                continue;
            };
            self.at = data.span;
            let name = self.var_name(symbol);
            if !data.dtype.scalar.is_int() || data.dtype.lanes != 1 {
                self.fail("symbol-unbound", format!("symbol `{name}` is no integer"));
            } else if !found.contains(&symbol) {
                let error = self.fail(
                    "symbol-unbound",
                    format!("no parameter's shape tells what `{name}` is"),
                );
                error.help.push("make it a scalar parameter".to_string());
            }
        }
    }

    fn kernel(&mut self, kernel: &'a Kernel) {
        self.at = kernel.span;
        let since = self.open();
        if kernel.grid.is_empty() || kernel.grid.len() > 3 {
            self.fail(
                "kernel-grid",
                format!("a grid of {} axes", kernel.grid.len()),
            );
        }
        for (_, extent) in &kernel.grid {
            self.integer(extent, "kernel-grid", "a grid extent");
            if let Some(n) = extent.as_int()
                && n < 1
            {
                self.fail("kernel-grid", format!("a grid extent of {n}"));
            }
        }
        for (axis, (var, extent)) in kernel.grid.iter().enumerate() {
            self.bind_var(*var, VarKind::BlockIdx(axis as u8));
            let dtype = self.func.vars.get(*var).map(|d| d.dtype);
            if dtype.is_some_and(|t| t != extent.dtype()) {
                let message = format!("index and extent of grid axis {axis} differ in type");
                self.fail("kernel-grid", message);
            }
        }
        if let Some(rank) = kernel.attrs.rank {
            self.bind_var(rank, VarKind::Rank);
        }
        for (axis, var) in kernel.thread_vars.iter().enumerate() {
            self.bind_var(*var, VarKind::ThreadIdx(axis as u8));
            self.by_thread.insert(*var);
        }
        let threads = kernel.threads.iter().map(|n| *n as u64);
        let threads = threads.fold(1u64, u64::saturating_mul);
        if !(1..=1024).contains(&threads) {
            let error = self.fail("kernel-threads", format!("{threads} threads in a block"));
            error.help.push("a block has 1 to 1024".to_string());
        }
        self.num_threads = u32::try_from(threads).unwrap_or(u32::MAX);
        self.cluster_blocks = kernel.cluster_blocks();
        if kernel.attrs.cluster.is_some_and(|sizes| sizes.contains(&0)) {
            self.fail("kernel-grid", "a cluster of no blocks");
        }
        if self.cluster_blocks > MAX_CLUSTER {
            let message = format!("a cluster of {} blocks", self.cluster_blocks);
            let error = self.fail("kernel-grid", message);
            error
                .help
                .push(format!("a cluster has at most {MAX_CLUSTER}"));
        }
        if kernel.attrs.swizzle.is_some_and(|s| s.panel == 0) {
            self.fail("kernel-grid", "a swizzle over panels of no blocks");
        }
        for (buffer, ratio) in &kernel.attrs.l2_hit_ratio {
            self.use_buffer(*buffer, kernel.span);
            self.value_of(ratio, DType::F32, "kernel-grid", "an L2 hit ratio");
        }
        for buffer in &kernel.attrs.may_alias {
            self.use_buffer(*buffer, kernel.span);
        }
        self.reducers.clear();
        self.block(&kernel.body, BlockKind::Kernel);
        self.close(since);
    }
}
