//! Which constructs programs have: what a run covered, in numbers.

use std::collections::BTreeMap;

use crate::program::*;
use crate::types::Type;

/// How many programs have each construct.
pub type Census = BTreeMap<String, u32>;

/// Counts the constructs of a program, each once.
pub fn count(program: &Program, census: &mut Census) {
    let mut names = Vec::new();
    let mut written: Vec<Buf> = Vec::new();
    program.walk(&mut |stmt| {
        statement(program, stmt, &mut names);
        let mut read = |b: &Buf| {
            if written.contains(b) {
                names.push("tensor read after it was written".to_string());
            }
        };
        for e in stmt.exprs() {
            e.walk(&mut |e| {
                if let Expr::Load(b, _) = e {
                    read(b);
                }
            });
        }
        match stmt {
            Stmt::Copy(src, dst) => {
                read(&src.buf);
                written.push(dst.buf);
            }
            Stmt::Store(b, ..) | Stmt::Atomic(_, b, ..) => written.push(*b),
            _ => {}
        }
        written.retain(|b| program.buffers[b.0].scope == Scope::Global);
        for e in stmt.exprs() {
            e.walk(&mut |e| expression(program, e, &mut names));
        }
    });
    for size in &program.sizes {
        if size.dynamic {
            names.push("dynamic size".to_string());
        }
    }
    let threads = program.thread_count();
    if threads % 64 != 0 {
        names.push("threads that are no multiple of 64".to_string());
    }
    if threads > 256 {
        names.push("more than 256 threads".to_string());
    }
    if program.grid.len() == 2 {
        names.push("grid of two axes".to_string());
    }
    for buf in program.tensors() {
        let elements: i64 = program.shape(buf).iter().product();
        if elements <= 3 {
            names.push("tensor of 1 to 3 elements".to_string());
        }
        names.push(format!("tensor of {}", program.buffers[buf.0].ty.name()));
    }
    names.sort();
    names.dedup();
    for name in names {
        *census.entry(name).or_default() += 1;
    }
}

fn expression(program: &Program, e: &Expr, names: &mut Vec<String>) {
    match e {
        Expr::Binary(op, ..) => names.push(format!("{op:?}")),
        Expr::Select(..) => names.push("if_then_else".to_string()),
        Expr::Cast(ty, a) => {
            names.push("cast".to_string());
            if ty.is_float() != a.ty(program).is_float() {
                names.push("cast between floats and integers".to_string());
            }
        }
        Expr::Abs(_) => names.push("abs".to_string()),
        _ => {}
    }
}

fn statement(program: &Program, stmt: &Stmt, names: &mut Vec<String>) {
    let scope = |b: &Buf| format!("{:?}", program.buffers[b.0].scope).to_lowercase();
    let name = match stmt {
        Stmt::Alloc(b) => format!("alloc {}", scope(b)),
        Stmt::AllocVar(_, init) => match init {
            None => "alloc_var".to_string(),
            Some(Expr::Lit(..)) => "alloc_var of a constant".to_string(),
            Some(e) => {
                e.walk(&mut |e| {
                    if let Expr::Load(b, _) = e {
                        names.push(format!("alloc_var of {} memory", scope(b)));
                    }
                    if *e == Expr::Var(Var::Thread) {
                        names.push("alloc_var of the thread's number".to_string());
                    }
                });
                "alloc_var of an expression".to_string()
            }
        },
        Stmt::View(_) => "view".to_string(),
        Stmt::Layout(..) => "annotated layout".to_string(),
        Stmt::UseSwizzle(..) => "use_swizzle".to_string(),
        Stmt::Copy(src, dst) => format!("copy {} to {}", scope(&src.buf), scope(&dst.buf)),
        Stmt::Fill(..) => "fill".to_string(),
        Stmt::Parallel(_, body) => {
            if body.iter().any(|s| matches!(s, Stmt::If(..))) {
                names.push("condition in a parallel loop".to_string());
            }
            "parallel loop".to_string()
        }
        Stmt::Store(_, index, _) => {
            if index.contains(&Expr::Var(Var::Thread)) {
                names.push("store by thread number".to_string());
            }
            "store".to_string()
        }
        Stmt::Atomic(op, b, ..) => {
            names.push(format!("atomic on {} memory", scope(b)));
            format!("atomic {}", op.name())
        }
        Stmt::AtomicTile(..) => "atomic on a tile".to_string(),
        Stmt::Reduce {
            fold, clear, dim, ..
        } => {
            if !clear {
                names.push("reduce without clear".to_string());
            }
            names.push(format!("reduce along {dim}"));
            format!("reduce {}", fold.name())
        }
        Stmt::Scan { max, reverse, .. } => {
            if *reverse {
                names.push("reverse scan".to_string());
            }
            if *max { "cummax" } else { "cumsum" }.to_string()
        }
        Stmt::Transpose(..) => "transpose".to_string(),
        Stmt::Gemm(g) => {
            let ty: Type = program.buffers[g.a.buf.0].ty;
            names.push(format!("gemm of {}", ty.name()));
            if g.trans_a || g.trans_b {
                names.push("gemm transposed".to_string());
            }
            for operand in [&g.a, &g.b] {
                names.push(format!("gemm operand in {}", scope(&operand.buf)));
            }
            if g.policy != Policy::Square {
                names.push("gemm policy".to_string());
            }
            if g.clear {
                names.push("gemm clears".to_string());
            }
            "gemm".to_string()
        }
        Stmt::For {
            kind, count, body, ..
        } => {
            if !matches!(count, Expr::Lit(..)) {
                names.push("loop count of an expression".to_string());
            }
            if let LoopKind::Pipelined(stages) = kind {
                names.push(format!("pipelined, {stages} stages"));
                if body.iter().any(|s| matches!(s, Stmt::If(..))) {
                    names.push("condition in a pipelined loop".to_string());
                }
            }
            match kind {
                LoopKind::Serial => "serial loop",
                LoopKind::Unroll => "unrolled loop",
                LoopKind::Vectorized => "vectorized loop",
                LoopKind::Pipelined(_) => "pipelined loop",
                LoopKind::Plain(_) => "pipelined by the plain schedule",
            }
            .to_string()
        }
        Stmt::While(..) => "while loop".to_string(),
        Stmt::If(_, _, otherwise) => {
            if !otherwise.is_empty() {
                names.push("else".to_string());
            }
            "if".to_string()
        }
        Stmt::Break => "break".to_string(),
        Stmt::Continue => "continue".to_string(),
        Stmt::Sync => "sync_threads".to_string(),
        Stmt::Group(..) => "warp group".to_string(),
        Stmt::Handshake(_) => "mbarrier handshake".to_string(),
    };
    names.push(name);
}
