//! Programs as TileLang's Python syntax.

use std::fmt::Write;

use crate::program::*;
use crate::types::Type;

/// The whole file; the kernel is called `main`.
pub fn print(program: &Program) -> String {
    let mut printer = Printer {
        program,
        text: String::new(),
        barriers: 0,
    };
    printer.file();
    printer.text
}

struct Printer<'a> {
    program: &'a Program,
    text: String,
    barriers: usize,
}

impl Printer<'_> {
    fn file(&mut self) {
        let p = self.program;
        self.line(0, "import tilelang");
        self.line(0, "import tilelang.language as T");
        for (n, _) in p.sizes.iter().enumerate().filter(|(_, s)| s.dynamic) {
            self.line(0, &format!("d{n} = T.dynamic(\"d{n}\")"));
        }
        self.line(0, "");
        self.line(0, "");
        self.line(0, "@T.prim_func");
        let params: Vec<String> = p
            .tensors()
            .map(|t| {
                let ty = p.buffers[t.0].ty.name();
                format!("{}: T.Tensor({}, \"{ty}\")", name(p, t), self.shape(t))
            })
            .collect();
        self.line(0, &format!("def main({}):", params.join(", ")));
        let grid: Vec<String> = p.grid.iter().map(|d| self.dim(*d)).collect();
        let threads = p.thread_count();
        let names = match p.grid.len() {
            1 => "bx",
            _ => "(bx, by)",
        };
        let grid = grid.join(", ");
        self.line(
            1,
            &format!("with T.Kernel({grid}, threads={threads}) as {names}:"),
        );
        if mentions_thread(p) {
            self.line(2, "tx = T.get_thread_binding()");
        }
        self.block(2, &p.body);
    }

    fn line(&mut self, depth: usize, text: &str) {
        let indent = if text.is_empty() { 0 } else { depth * 4 };
        let _ = writeln!(self.text, "{:indent$}{text}", "");
    }

    fn dim(&self, dim: Dim) -> String {
        let size = &self.program.sizes[dim.0];
        match size.dynamic {
            true => format!("d{}", dim.0),
            false => size.value.to_string(),
        }
    }

    fn shape(&self, buf: Buf) -> String {
        let dims = &self.program.buffers[buf.0].shape;
        tuple(dims.iter().map(|d| self.dim(*d)).collect())
    }

    fn block(&mut self, depth: usize, list: &[Stmt]) {
        if list.is_empty() {
            self.line(depth, "pass");
        }
        for stmt in list {
            self.stmt(depth, stmt);
        }
    }

    fn stmt(&mut self, depth: usize, stmt: &Stmt) {
        let p = self.program;
        let name = |b: &Buf| name(p, *b);
        match stmt {
            Stmt::Alloc(b) => {
                let data = &p.buffers[b.0];
                let kind = match data.scope {
                    Scope::Shared => "shared",
                    Scope::Local => "local",
                    _ => "fragment",
                };
                let (shape, ty) = (self.shape(*b), data.ty.name());
                self.line(
                    depth,
                    &format!("{} = T.alloc_{kind}({shape}, \"{ty}\")", name(b)),
                );
            }
            Stmt::AllocVar(b, init) => {
                let ty = p.buffers[b.0].ty.name();
                let init = match init {
                    Some(e) => format!(", init={}", self.expr(e)),
                    None => String::new(),
                };
                self.line(depth, &format!("{} = T.alloc_var(\"{ty}\"{init})", name(b)));
            }
            Stmt::View(b) => {
                let of = p.buffers[b.0].view_of.map_or(String::new(), |of| name(&of));
                let shape = self.shape(*b);
                self.line(depth, &format!("{} = T.reshape({of}, {shape})", name(b)));
            }
            Stmt::Layout(b, kind) => {
                let n = name(b);
                let layout = match kind {
                    LayoutKind::Swizzled => format!("tilelang.layout.make_swizzled_layout({n})"),
                    LayoutKind::Linear => format!("tilelang.layout.make_linear_layout({n})"),
                    LayoutKind::Padded(by) => {
                        let row = p.shape(*b).last().copied().unwrap_or(1) + by;
                        format!("T.Layout({}, lambda i, j: i * {row} + j)", self.shape(*b))
                    }
                };
                self.line(depth, &format!("T.annotate_layout({{{n}: {layout}}})"));
            }
            Stmt::UseSwizzle(panel, column) => {
                let order = if *column { ", order=\"column\"" } else { "" };
                self.line(depth, &format!("T.use_swizzle({panel}{order})"));
            }
            Stmt::Copy(src, dst) => {
                let (src, dst) = (self.tile(src), self.tile(dst));
                self.line(depth, &format!("T.copy({src}, {dst})"));
            }
            Stmt::Fill(b, 0) => self.line(depth, &format!("T.clear({})", name(b))),
            Stmt::Fill(b, v) => self.line(depth, &format!("T.fill({}, {v})", name(b))),
            Stmt::Parallel(axes, body) => {
                let vars: Vec<String> = axes.iter().map(|(v, _)| var(*v)).collect();
                let dims: Vec<String> = axes.iter().map(|(_, d)| self.dim(*d)).collect();
                let (vars, dims) = (vars.join(", "), dims.join(", "));
                self.line(depth, &format!("for {vars} in T.Parallel({dims}):"));
                self.block(depth + 1, body);
            }
            Stmt::Store(b, index, value) => {
                let value = self.expr(value);
                let target = self.element(*b, index);
                self.line(depth, &format!("{target} = {value}"));
            }
            Stmt::Atomic(op, b, index, value) => {
                let (target, value) = (self.element(*b, index), self.expr(value));
                self.line(depth, &format!("T.atomic_{}({target}, {value})", op.name()));
            }
            Stmt::AtomicTile(op, dst, src) => {
                let (dst, src) = (self.tile(dst), self.tile(src));
                self.line(depth, &format!("T.atomic_{}({dst}, {src})", op.name()));
            }
            Stmt::Reduce {
                fold,
                src,
                dst,
                dim,
                clear,
            } => {
                let clear = if *clear { "" } else { ", clear=False" };
                let (src, dst) = (name(src), name(dst));
                self.line(
                    depth,
                    &format!("T.reduce_{}({src}, {dst}, dim={dim}{clear})", fold.name()),
                );
            }
            Stmt::Scan {
                max,
                src,
                dst,
                dim,
                reverse,
            } => {
                let what = if *max { "cummax" } else { "cumsum" };
                let dst = dst.map_or(String::new(), |d| format!(", {}", name(&d)));
                let reverse = if *reverse { ", reverse=True" } else { "" };
                self.line(
                    depth,
                    &format!("T.{what}({}{dst}, dim={dim}{reverse})", name(src)),
                );
            }
            Stmt::Transpose(src, dst) => {
                self.line(depth, &format!("T.transpose({}, {})", name(src), name(dst)));
            }
            Stmt::Gemm(g) => {
                let (a, b, c) = (self.tile(&g.a), self.tile(&g.b), self.tile(&g.c));
                let mut text = format!("T.gemm({a}, {b}, {c}");
                for (set, option) in [
                    (g.trans_a, ", transpose_A=True"),
                    (g.trans_b, ", transpose_B=True"),
                    (g.clear, ", clear_accum=True"),
                ] {
                    if set {
                        text.push_str(option);
                    }
                }
                match g.policy {
                    Policy::Square => {}
                    Policy::FullRow => text.push_str(", policy=T.GemmWarpPolicy.FullRow"),
                    Policy::FullCol => text.push_str(", policy=T.GemmWarpPolicy.FullCol"),
                }
                self.line(depth, &format!("{text})"));
            }
            Stmt::For {
                kind,
                var: index,
                count,
                body,
            } => {
                let count = self.expr(count);
                let range = match kind {
                    LoopKind::Serial => format!("T.serial({count})"),
                    LoopKind::Unroll => format!("T.unroll({count})"),
                    LoopKind::Vectorized => format!("T.vectorized({count})"),
                    LoopKind::Pipelined(stages) => {
                        format!("T.Pipelined({count}, num_stages={stages})")
                    }
                    LoopKind::Plain(stages) => {
                        format!("T.Pipelined({count}, num_stages={stages}, schedule=\"plain\")")
                    }
                };
                self.line(depth, &format!("for {} in {range}:", var(*index)));
                self.block(depth + 1, body);
            }
            Stmt::While(cond, body) => {
                let cond = self.expr(cond);
                self.line(depth, &format!("while {cond}:"));
                self.block(depth + 1, body);
            }
            Stmt::If(cond, then, otherwise) => {
                let cond = self.expr(cond);
                self.line(depth, &format!("if {cond}:"));
                self.block(depth + 1, then);
                if !otherwise.is_empty() {
                    self.line(depth, "else:");
                    self.block(depth + 1, otherwise);
                }
            }
            Stmt::Break => self.line(depth, "break"),
            Stmt::Continue => self.line(depth, "continue"),
            Stmt::Sync => self.line(depth, "T.sync_threads()"),
            Stmt::Group(group, body) => {
                self.line(depth, &format!("with T.ws({group}):"));
                self.block(depth + 1, body);
            }
            Stmt::Handshake(h) => self.handshake(depth, h),
        }
    }

    fn handshake(&mut self, depth: usize, h: &Handshake) {
        let n = self.barriers;
        self.barriers += 1;
        let (k, slots) = (var(h.var), h.slots);
        for which in ["full", "empty"] {
            self.line(
                depth,
                &format!("{which}{n} = T.alloc_barrier([128] * {slots})"),
            );
        }
        for consumer in [h.consumer_first, !h.consumer_first] {
            let group = match consumer {
                true => 1 - h.producer_group,
                false => h.producer_group,
            };
            let (wait, arrive, ahead, body) = match consumer {
                true => ("full", "empty", "", &h.consume),
                false => ("empty", "full", " + 1", &h.produce),
            };
            self.line(depth, &format!("with T.ws({group}):"));
            if consumer {
                for stmt in &h.before {
                    self.stmt(depth + 1, stmt);
                }
            }
            self.line(depth + 1, &format!("for {k} in T.serial({}):", h.trips));
            self.line(
                depth + 2,
                &format!(
                    "T.mbarrier_wait_parity({wait}{n}[{k} % {slots}], ({k} // {slots}{ahead}) % 2)"
                ),
            );
            for stmt in body {
                self.stmt(depth + 2, stmt);
            }
            self.line(
                depth + 2,
                &format!("T.mbarrier_arrive({arrive}{n}[{k} % {slots}])"),
            );
            if consumer {
                for stmt in &h.after {
                    self.stmt(depth + 1, stmt);
                }
            }
        }
    }

    fn element(&self, buf: Buf, index: &[Expr]) -> String {
        let name = name(self.program, buf);
        if index.is_empty() {
            return name;
        }
        let index: Vec<String> = index.iter().map(|e| self.expr(e)).collect();
        format!("{name}[{}]", index.join(", "))
    }

    fn tile(&self, tile: &Tile) -> String {
        let name = name(self.program, tile.buf);
        let start: Vec<String> = tile.start.iter().map(|e| self.expr(e)).collect();
        match tile.style {
            Style::Whole => name,
            Style::Start => format!("{name}[{}]", start.join(", ")),
            Style::Slot => {
                let rest = ", :".repeat(start.len() - 1);
                format!("{name}[{}{rest}]", start[0])
            }
            Style::Slice => {
                let parts = start.iter().zip(&tile.extent);
                let parts: Vec<String> = parts
                    .map(|(at, extent)| match extent {
                        None => at.clone(),
                        Some(dim) => format!("{at}:{at} + {}", self.dim(*dim)),
                    })
                    .collect();
                format!("{name}[{}]", parts.join(", "))
            }
        }
    }

    fn expr(&self, e: &Expr) -> String {
        match e {
            Expr::Lit(v, Type::I32) if *v < 0 => format!("({v})"),
            Expr::Lit(v, Type::I32) => v.to_string(),
            Expr::Lit(v, Type::F32) if *v < 0 => format!("({v}.0)"),
            Expr::Lit(v, Type::F32) => format!("{v}.0"),
            Expr::Lit(v, ty) => format!("T.{}({v})", ty.name()),
            Expr::Var(v) => var(*v),
            Expr::Size(d) => self.dim(*d),
            Expr::Load(b, index) => self.element(*b, index),
            Expr::Abs(a) => format!("T.abs({})", self.expr(a)),
            Expr::Cast(ty, a) => format!("T.cast({}, \"{}\")", self.expr(a), ty.name()),
            Expr::Select(c, a, b) => {
                let (c, a, b) = (self.expr(c), self.expr(a), self.expr(b));
                format!("T.if_then_else({c}, {a}, {b})")
            }
            Expr::Binary(op, a, b) => {
                let (a, b) = (self.expr(a), self.expr(b));
                let sign = match op {
                    BinOp::Min => return format!("T.min({a}, {b})"),
                    BinOp::Max => return format!("T.max({a}, {b})"),
                    BinOp::Add => "+",
                    BinOp::Sub => "-",
                    BinOp::Mul => "*",
                    BinOp::FloorDiv => "//",
                    BinOp::Mod => "%",
                    BinOp::Shl => "<<",
                    BinOp::Shr => ">>",
                    BinOp::And => "&",
                    BinOp::Or => "|",
                    BinOp::Xor => "^",
                    BinOp::Lt => "<",
                    BinOp::Le => "<=",
                    BinOp::Eq => "==",
                    BinOp::Ne => "!=",
                    BinOp::Both => "and",
                    BinOp::Either => "or",
                };
                format!("({a} {sign} {b})")
            }
        }
    }
}

/// The buffer's name: unique, with a letter for its scope.
pub fn name(program: &Program, buf: Buf) -> String {
    let letter = match program.buffers[buf.0].scope {
        Scope::Global => "A",
        Scope::Shared => "s",
        Scope::Fragment => "f",
        Scope::Local => "l",
        Scope::Var => "v",
    };
    format!("{letter}{}", buf.0)
}

fn var(v: Var) -> String {
    match v {
        Var::Block(0) => "bx".to_string(),
        Var::Block(_) => "by".to_string(),
        Var::Thread => "tx".to_string(),
        Var::Loop(n) => format!("i{n}"),
    }
}

fn tuple(parts: Vec<String>) -> String {
    match parts.as_slice() {
        [one] => format!("({one},)"),
        _ => format!("({})", parts.join(", ")),
    }
}

fn mentions_thread(program: &Program) -> bool {
    let mut found = false;
    program.walk(&mut |stmt| {
        for e in stmt.exprs() {
            e.walk(&mut |e| found |= *e == Expr::Var(Var::Thread));
        }
    });
    found
}
