//! What the compiler decided about a function: how its loops are pipelined, where its tiles lie, how
//! its products are shared out and how wide memory is accessed. All of it is read from the IR before,
//! between and after the passes, so that it is what was done, not what was meant.

use std::fmt::Write as _;

use serde_json::{Value, json};
use tilewright_ir::visit::{stmt_exprs, walk_stmts};
use tilewright_ir::{
    Buffer, Code, Diagnostic, ExprKind, Func, LoopKind, MicroKind, MmaFamily, Scope, SourceMap,
    Span, Stmt, StmtKind, Target, TileOp, text, touched,
};

/// The pass behind which layouts and plans of products are decided.
pub const PLACED: &str = "layout-inference";

/// What was decided of a function.
#[derive(Clone, Debug, Default)]
pub struct Decisions {
    pub function: String,
    pub target: String,
    pub kernels: Vec<KernelDecisions>,
}

/// What was decided of a kernel.
#[derive(Clone, Debug, Default)]
pub struct KernelDecisions {
    pub threads: u32,
    /// Threads that were launched for; the compiler may add some that copy.
    pub threads_asked: u32,
    pub warp: u32,
    pub loops: Vec<LoopDecision>,
    pub buffers: Vec<BufferDecision>,
    pub products: Vec<ProductDecision>,
    pub accesses: Vec<AccessDecision>,
}

/// A pipelined loop.
#[derive(Clone, Debug)]
pub struct LoopDecision {
    pub span: Span,
    pub index: String,
    pub stages_asked: u32,
    /// The buffers that the loop copies to, with the versions that they have.
    pub versions: Vec<(String, u32)>,
    /// What the pipeline says of it: the schedule, or why there is none.
    pub said: Vec<String>,
}

/// A shared buffer or fragment of the user's.
#[derive(Clone, Debug)]
pub struct BufferDecision {
    pub span: Span,
    pub name: String,
    pub asked: Scope,
    /// Where it lies now.
    pub made: &'static str,
    pub dtype: String,
    pub shape: Vec<i64>,
    pub versions: u32,
    /// Bytes of shared memory, all versions; registers of 32 bits in each thread.
    pub bytes: Option<u64>,
    pub registers: Option<u64>,
    /// In the text form; empty for row-major memory.
    pub layout: String,
    /// Why a fragment went to shared memory, and what would keep it in registers.
    pub why: Vec<String>,
}

/// A matrix product.
#[derive(Clone, Debug)]
pub struct ProductDecision {
    pub span: Span,
    pub accumulator: String,
    pub instruction: String,
    /// What does it together: a warp, or a warp group.
    pub unit: &'static str,
    /// Units along M and N.
    pub warps: [u32; 2],
}

/// How a statement accesses memory.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct AccessDecision {
    pub span: Span,
    /// `g2s`, …; `load` and `store` of single elements.
    pub kind: &'static str,
    pub from: String,
    pub to: String,
    pub instruction: String,
    /// What one thread moves with one instruction; `None` where threads move a box or a matrix
    /// together.
    pub bytes: Option<u32>,
}

impl Decisions {
    /// What was decided, from the function as it was written, behind [`PLACED`], and lowered, and
    /// from what the passes said.
    pub fn of(
        tile: &Func,
        placed: &Func,
        device: &Func,
        target: Target,
        said: &[&Diagnostic],
    ) -> Decisions {
        let kernels = tile.kernels.iter().enumerate().map(|(at, kernel)| {
            let after = placed.kernels.get(at).unwrap_or(kernel);
            let lowered = device.kernels.get(at).unwrap_or(kernel);
            KernelDecisions {
                threads: lowered.num_threads(),
                threads_asked: kernel.num_threads(),
                warp: target.machine().warp_size,
                loops: loops(tile, &kernel.body, device, said),
                buffers: buffers(tile, &kernel.body, (placed, &after.body), device, said),
                products: products(placed, &after.body),
                accesses: accesses(device, &lowered.body),
            }
        });
        Decisions {
            function: tile.name.clone(),
            target: target.name().to_string(),
            kernels: kernels.collect(),
        }
    }

    pub fn to_text(&self, sources: &SourceMap) -> String {
        let mut out = format!("decided for {} on {}\n", self.function, self.target);
        for (number, kernel) in self.kernels.iter().enumerate() {
            if self.kernels.len() > 1 {
                let _ = writeln!(out, "kernel {number}");
            }
            kernel.write(&mut out, sources);
        }
        out
    }

    pub fn to_json(&self, sources: &SourceMap) -> Value {
        let kernels = self.kernels.iter().map(|k| k.to_json(sources));
        json!({
            "function": self.function,
            "target": self.target,
            "kernels": kernels.collect::<Vec<_>>(),
        })
    }
}

fn loops(tile: &Func, body: &[Stmt], device: &Func, said: &[&Diagnostic]) -> Vec<LoopDecision> {
    let mut found = Vec::new();
    walk_stmts(body, &mut |stmt| {
        let StmtKind::For(l) = &stmt.kind else { return };
        let LoopKind::Pipelined(spec) = &l.kind else {
            return;
        };
        let mut versions: Vec<(String, u32)> = Vec::new();
        walk_stmts(&l.body, &mut |inner| {
            touched::written(inner, &mut |buffer| {
                let data = &tile.buffers[buffer];
                if data.scope != Scope::Shared || versions.iter().any(|v| v.0 == data.name) {
                    return;
                }
                let made = device.buffers.get(buffer).map_or(1, |d| d.versions.max(1));
                versions.push((data.name.clone(), made));
            });
        });
        let about = said.iter().filter(|d| d.primary.span == stmt.span);
        let about = about.filter(|d| LOOP_CODES.contains(&d.code.0));
        let axis = l.axes.first();
        found.push(LoopDecision {
            span: stmt.span,
            index: axis.map_or(String::new(), |a| tile.vars[a.var].name.clone()),
            stages_asked: spec.stages,
            versions,
            said: about.map(|d| d.message.clone()).collect(),
        });
    });
    found
}

/// What is said of loops.
const LOOP_CODES: [&str; 4] = [
    "schedule",
    "not-pipelined",
    "fewer-stages",
    "through-registers",
];

const IN_SHARED: Code = Code("fragment-in-shared");

fn buffers(
    tile: &Func,
    body: &[Stmt],
    placed: (&Func, &[Stmt]),
    device: &Func,
    said: &[&Diagnostic],
) -> Vec<BufferDecision> {
    let mut found = Vec::new();
    walk_stmts(body, &mut |stmt| {
        let StmtKind::Alloc(buffer) = stmt.kind else {
            return;
        };
        let data = &tile.buffers[buffer];
        if !matches!(data.scope, Scope::Shared | Scope::Fragment) {
            return;
        }
        let after = placed.0.buffers.get(buffer).unwrap_or(data);
        let lowered = device.buffers.get(buffer).unwrap_or(after);
        let registers = after.held().map(|held| {
            let bits = held.slots() as u64 * u64::from(data.dtype.bits());
            bits.div_ceil(32)
        });
        let why = said.iter().filter(|d| d.code == IN_SHARED);
        let why = why.filter(|d| d.secondary.iter().any(|also| also.span == data.span));
        let why = why.flat_map(|d| {
            let more = d.notes.iter().chain(&d.help).cloned();
            std::iter::once(d.message.clone()).chain(more)
        });
        found.push(BufferDecision {
            span: data.span,
            name: data.name.clone(),
            asked: data.scope,
            made: match (registers, after.scope) {
                (Some(_), _) => "registers",
                (None, Scope::Shared) => "shared memory",
                (None, _) => "nowhere: nothing needs it",
            },
            dtype: data.dtype.to_string(),
            shape: data.const_shape().unwrap_or_default(),
            versions: lowered.versions.max(1),
            bytes: lowered.place.as_ref().map(|p| p.bytes.into()),
            registers,
            layout: layout_text(placed.0, placed.1, buffer),
            why: why.collect(),
        });
    });
    found
}

/// A buffer's layout as its allocation prints it.
fn layout_text(func: &Func, body: &[Stmt], buffer: Buffer) -> String {
    let mut found = String::new();
    walk_stmts(body, &mut |stmt| {
        if matches!(stmt.kind, StmtKind::Alloc(b) if b == buffer) {
            let line = text::print_stmt(func, stmt);
            let layout = line.split_once(" layout=").map(|(_, layout)| layout);
            found = layout.unwrap_or("").to_string();
        }
    });
    found
}

fn products(func: &Func, body: &[Stmt]) -> Vec<ProductDecision> {
    let mut found = Vec::new();
    walk_stmts(body, &mut |stmt| {
        if let StmtKind::Tile(TileOp::Gemm(g)) = &stmt.kind
            && let Some(plan) = &g.plan
        {
            found.push(ProductDecision {
                span: stmt.span,
                accumulator: func.buffers[g.c.buffer].name.clone(),
                instruction: plan.inst.to_string(),
                unit: match plan.inst.family {
                    MmaFamily::Wgmma => "warp group",
                    MmaFamily::MmaSync | MmaFamily::MmaSp | MmaFamily::Mfma => "warp",
                },
                warps: plan.warps,
            });
        }
    });
    found
}

/// The accesses of memory that threads share, each way once.
fn accesses(func: &Func, body: &[Stmt]) -> Vec<AccessDecision> {
    let mut found: Vec<AccessDecision> = Vec::new();
    let name = |b: Buffer| func.buffers[b].name.clone();
    let memory = |b: Buffer| matches!(func.buffers[b].scope, Scope::Global | Scope::Shared);
    let bytes = |b: Buffer| func.buffers[b].dtype.bits().div_ceil(8);
    let mut add = |access: AccessDecision| {
        if !found.contains(&access) {
            found.push(access);
        }
    };
    walk_stmts(body, &mut |stmt| {
        let one = |kind, from, to, b: Buffer| AccessDecision {
            span: stmt.span,
            kind,
            from,
            to,
            instruction: kind.to_string(),
            bytes: Some(bytes(b)),
        };
        match &stmt.kind {
            StmtKind::Micro(op) if op.kind != MicroKind::Mma => {
                let from = op.sources.first().map(|a| a.region.buffer);
                let to = op.dest.region.buffer;
                let moved = from.filter(|b| memory(*b)).unwrap_or(to);
                let instruction = op.inst.to_string();
                let together = matches!(op.kind, MicroKind::TmaLoad | MicroKind::TmaStore)
                    || instruction.contains("matrix");
                add(AccessDecision {
                    span: stmt.span,
                    kind: op.kind.name(),
                    from: from.map_or(String::new(), name),
                    to: name(to),
                    instruction,
                    bytes: (!together)
                        .then(|| (op.width * func.buffers[moved].dtype.bits()).div_ceil(8)),
                });
            }
            StmtKind::Store { buffer, .. } if memory(*buffer) => {
                add(one(
                    "store",
                    "registers".to_string(),
                    name(*buffer),
                    *buffer,
                ));
            }
            _ => {}
        }
        stmt_exprs(stmt, &mut |expr| {
            expr.walk_distinct(&mut |node| {
                if let ExprKind::Load { buffer, .. } = node.kind()
                    && memory(*buffer)
                {
                    add(one("load", name(*buffer), "registers".to_string(), *buffer));
                }
            });
        });
    });
    found
}

impl KernelDecisions {
    fn write(&self, out: &mut String, sources: &SourceMap) {
        let warps = self.threads.div_ceil(self.warp.max(1));
        let _ = write!(
            out,
            "  {} threads, {warps} warps of {}",
            self.threads, self.warp
        );
        let _ = match self.threads == self.threads_asked {
            true => writeln!(out),
            false => writeln!(
                out,
                "; {} were asked for, the others copy",
                self.threads_asked
            ),
        };
        for l in &self.loops {
            let place = sources.locate(l.span);
            let s = if l.stages_asked == 1 { "" } else { "s" };
            let _ = writeln!(
                out,
                "  loop `{}` at {place}: {} stage{s} asked",
                l.index, l.stages_asked
            );
            for said in &l.said {
                let _ = writeln!(out, "    {said}");
            }
            for (name, versions) in &l.versions {
                let s = if *versions == 1 { "" } else { "s" };
                let _ = writeln!(out, "    `{name}`: {versions} version{s}");
            }
        }
        for b in &self.buffers {
            b.write(out, sources);
        }
        for p in &self.products {
            let [m, n] = p.warps;
            let _ = writeln!(
                out,
                "  product into `{}` at {}: {}, {}s {m} by {n} along M and N",
                p.accumulator,
                sources.locate(p.span),
                p.instruction,
                p.unit
            );
        }
        for a in &self.accesses {
            let bytes = match a.bytes {
                Some(bytes) => format!("{bytes} bytes at a time by "),
                None => "by ".to_string(),
            };
            let _ = writeln!(
                out,
                "  `{}` to `{}` at {}: {bytes}{}",
                a.from,
                a.to,
                sources.locate(a.span),
                a.instruction
            );
        }
    }

    fn to_json(&self, sources: &SourceMap) -> Value {
        let place = |span: Span| {
            let at = sources.line_col(span);
            json!({
                "file": at.map(|_| sources.name(span.file)),
                "line": at.map(|p| p.0),
                "column": at.map(|p| p.1),
            })
        };
        let loops = self.loops.iter().map(|l| {
            let versions = l.versions.iter();
            let versions = versions.map(|(name, n)| json!({ "buffer": name, "versions": n }));
            json!({
                "place": place(l.span),
                "index": l.index,
                "stages_asked": l.stages_asked,
                "versions": versions.collect::<Vec<_>>(),
                "said": l.said,
            })
        });
        let buffers = self.buffers.iter().map(|b| {
            json!({
                "place": place(b.span),
                "name": b.name,
                "asked": b.asked.name(),
                "made": b.made,
                "dtype": b.dtype,
                "shape": b.shape,
                "versions": b.versions,
                "bytes": b.bytes,
                "registers": b.registers,
                "layout": b.layout,
                "why": b.why,
            })
        });
        let products = self.products.iter().map(|p| {
            json!({
                "place": place(p.span),
                "accumulator": p.accumulator,
                "instruction": p.instruction,
                "unit": p.unit,
                "warps": p.warps,
            })
        });
        let accesses = self.accesses.iter().map(|a| {
            json!({
                "place": place(a.span),
                "kind": a.kind,
                "from": a.from,
                "to": a.to,
                "instruction": a.instruction,
                "bytes": a.bytes,
            })
        });
        json!({
            "threads": self.threads,
            "threads_asked": self.threads_asked,
            "warp": self.warp,
            "loops": loops.collect::<Vec<_>>(),
            "buffers": buffers.collect::<Vec<_>>(),
            "products": products.collect::<Vec<_>>(),
            "accesses": accesses.collect::<Vec<_>>(),
        })
    }
}

impl BufferDecision {
    fn write(&self, out: &mut String, sources: &SourceMap) {
        let shape: Vec<String> = self.shape.iter().map(i64::to_string).collect();
        let _ = write!(
            out,
            "  `{}` {} {}[{}]: in {}",
            self.name,
            self.asked.name(),
            self.dtype,
            shape.join(", "),
            self.made
        );
        if let Some(registers) = self.registers {
            let _ = write!(out, ", {registers} registers a thread");
        }
        if let Some(bytes) = self.bytes {
            let _ = write!(out, ", {bytes} bytes");
        }
        if self.versions > 1 {
            let _ = write!(out, " in {} versions", self.versions);
        }
        if !self.layout.is_empty() {
            let _ = write!(out, ", {}", self.layout);
        }
        out.push('\n');
        if self.asked == Scope::Fragment && !self.why.is_empty() {
            let _ = writeln!(out, "    at {}", sources.locate(self.span));
            for why in &self.why {
                let _ = writeln!(out, "    {why}");
            }
        }
    }
}
