//! Making a failing program smaller.
//!
//! [`candidates`] lists programs that are one step smaller, always in the same order, so that a
//! smaller program is named by its seed and the numbers of the steps ([`apply`]): a process of its
//! own can be asked about it, also where the question is whether it hangs.

use crate::plain;
use crate::program::*;
use crate::types::Type;

/// The steps from a seed's program to a smaller one.
pub type Steps = Vec<usize>;

/// The program that some steps lead to.
pub fn apply(program: &Program, steps: &[usize]) -> Option<Program> {
    let mut program = program.clone();
    for step in steps {
        program = candidates(&program).into_iter().nth(*step)?;
    }
    Some(program)
}

/// Greedy descent: the first smaller program that still fails, again and again, for as long as
/// questions are left.
pub fn shrink(
    program: &Program,
    mut questions: u32,
    mut fails: impl FnMut(&Program, &[usize]) -> bool,
) -> (Program, Steps) {
    let mut best = program.clone();
    let mut steps = Vec::new();
    // Candidates before this one were no good for a larger program: tried again at the end only.
    let mut from = 0;
    loop {
        let list = candidates(&best);
        let mut found = None;
        let order = (from..list.len()).chain(0..from.min(list.len()));
        for n in order {
            if questions == 0 {
                return (best, steps);
            }
            if plain::run_within(&list[n], 8_000_000).is_err() {
                continue;
            }
            questions -= 1;
            steps.push(n);
            if fails(&list[n], &steps) {
                found = Some(n);
                break;
            }
            steps.pop();
        }
        let Some(n) = found else {
            return (best, steps);
        };
        from = n;
        best = list.into_iter().nth(n).unwrap_or(best);
    }
}

/// Programs that are one step smaller, whether they are valid or not.
pub fn candidates(program: &Program) -> Vec<Program> {
    let mut list = Vec::new();
    without_statements(program, &mut list);
    smaller_sizes(program, &mut list);
    simpler_statements(program, &mut list);
    simpler_expressions(program, &mut list);
    simpler_types(program, &mut list);
    list
}

/// A list of statements by its way from the top: child lists of statements.
type Way = Vec<(usize, usize)>;

fn lists(body: &[Stmt], way: &Way, found: &mut Vec<Way>) {
    found.push(way.clone());
    for (n, stmt) in body.iter().enumerate() {
        for (c, child) in stmt.children().into_iter().enumerate() {
            let mut inner = way.clone();
            inner.push((n, c));
            lists(child, &inner, found);
        }
    }
}

fn list_at<'a>(program: &'a mut Program, way: &Way) -> &'a mut Vec<Stmt> {
    let mut list = &mut program.body;
    for (n, c) in way {
        let mut children = list[*n].children_mut();
        list = children.swap_remove(*c);
    }
    list
}

fn each_list(program: &Program) -> Vec<(Way, usize)> {
    let mut ways = Vec::new();
    lists(&program.body, &Vec::new(), &mut ways);
    let mut copy = program.clone();
    ways.into_iter()
        .map(|way| {
            let count = list_at(&mut copy, &way).len();
            (way, count)
        })
        .collect()
}

fn without_statements(program: &Program, out: &mut Vec<Program>) {
    let lists = each_list(program);
    // Halves first, then single statements, last ones first: what is made late is used little.
    for (way, count) in &lists {
        if *count >= 4 {
            for half in [count / 2..*count, 0..count / 2] {
                let mut smaller = program.clone();
                list_at(&mut smaller, way).drain(half);
                out.push(smaller);
            }
        }
    }
    for (way, count) in &lists {
        for n in (0..*count).rev() {
            let mut smaller = program.clone();
            list_at(&mut smaller, way).remove(n);
            out.push(smaller);
        }
    }
    // What a statement holds instead of the statement.
    for (way, count) in &lists {
        for n in 0..*count {
            let mut copy = program.clone();
            let stmt = list_at(&mut copy, way).remove(n);
            if matches!(stmt, Stmt::Parallel(..)) {
                continue;
            }
            for child in stmt.children() {
                let mut inner = child.clone();
                if let Stmt::For { var, .. } = &stmt {
                    zero_list(&mut inner, *var);
                }
                if let Stmt::Handshake(h) = &stmt {
                    zero_list(&mut inner, h.var);
                }
                let mut smaller = copy.clone();
                list_at(&mut smaller, way).splice(n..n, inner);
                out.push(smaller);
            }
        }
    }
}

fn zero_list(list: &mut [Stmt], var: Var) {
    for stmt in list {
        for e in stmt.exprs_mut() {
            zero(e, var);
        }
        for child in stmt.children_mut() {
            zero_list(child, var);
        }
    }
}

fn zero(e: &mut Expr, var: Var) {
    if *e == Expr::Var(var) {
        *e = Expr::int(0);
    }
    for child in e.children_mut() {
        zero(child, var);
    }
}

fn smaller_sizes(program: &Program, out: &mut Vec<Program>) {
    for n in 0..program.sizes.len() {
        let Size { value, dynamic } = program.sizes[n];
        let is_threads = program.threads == Some(Dim(n));
        let wishes: Vec<i64> = match is_threads {
            true => [32, 64, 128, 256].to_vec(),
            false => [1, 2, 3, 4, 8, 16, value / 2, value - 1].to_vec(),
        };
        let mut seen = Vec::new();
        for wish in wishes {
            if wish < value && wish > 0 && !seen.contains(&wish) {
                seen.push(wish);
                let mut smaller = program.clone();
                smaller.sizes[n].value = wish;
                out.push(smaller);
            }
        }
        if dynamic {
            let mut smaller = program.clone();
            smaller.sizes[n].dynamic = false;
            out.push(smaller);
        }
    }
}

/// Applies a change to every statement, each in a program of its own.
fn each_statement(program: &Program, out: &mut Vec<Program>, change: &dyn Fn(&Stmt) -> Vec<Stmt>) {
    for (way, count) in each_list(program) {
        if between_groups(program, &way) {
            continue;
        }
        for n in 0..count {
            let mut copy = program.clone();
            let stmt = list_at(&mut copy, &way)[n].clone();
            for simpler in change(&stmt) {
                let mut smaller = program.clone();
                list_at(&mut smaller, &way)[n] = simpler;
                out.push(smaller);
            }
        }
    }
}

/// Whether a list is what warp groups do for each other: which tile it is must not change, for
/// the groups run at the same time.
fn between_groups(program: &Program, way: &Way) -> bool {
    let mut list = &program.body;
    for (n, c) in way {
        if matches!(list[*n], Stmt::Handshake(_)) && matches!(c, 0 | 2) {
            return true;
        }
        list = list[*n].children()[*c];
    }
    false
}

fn simpler_statements(program: &Program, out: &mut Vec<Program>) {
    each_statement(program, out, &|stmt| match stmt {
        Stmt::For {
            kind,
            var,
            count,
            body,
        } => {
            let with = |kind: LoopKind, count: Expr| Stmt::For {
                kind,
                var: *var,
                count,
                body: body.clone(),
            };
            let mut list = Vec::new();
            let most = match count {
                Expr::Lit(n, _) => *n,
                _ => 4,
            };
            for n in 1..most.min(4) {
                list.push(with(*kind, Expr::int(n)));
            }
            match kind {
                LoopKind::Pipelined(stages) => {
                    list.push(with(LoopKind::Serial, count.clone()));
                    for fewer in 1..*stages {
                        list.push(with(LoopKind::Pipelined(fewer), count.clone()));
                    }
                }
                LoopKind::Plain(stages) => {
                    list.push(with(LoopKind::Pipelined(*stages), count.clone()));
                }
                LoopKind::Unroll | LoopKind::Vectorized => {
                    list.push(with(LoopKind::Serial, count.clone()));
                }
                LoopKind::Serial => {}
            }
            list
        }
        Stmt::Parallel(axes, body) if axes.len() > 1 => (0..axes.len())
            .map(|n| {
                let mut fewer = axes.clone();
                let (var, _) = fewer.remove(n);
                let mut body = body.clone();
                zero_list(&mut body, var);
                Stmt::Parallel(fewer, body)
            })
            .collect(),
        Stmt::Gemm(g) => {
            let mut list = vec![Stmt::Fill(g.c.buf, 1)];
            if g.policy != Policy::Square {
                list.push(Stmt::Gemm(Gemm {
                    policy: Policy::Square,
                    ..g.clone()
                }));
            }
            list
        }
        Stmt::Reduce {
            fold,
            src,
            dst,
            dim,
            clear,
        } => {
            let with = |fold: Fold, clear: bool| Stmt::Reduce {
                fold,
                src: *src,
                dst: *dst,
                dim: *dim,
                clear,
            };
            let mut list = Vec::new();
            if !clear {
                list.push(with(*fold, true));
            }
            if *fold != Fold::Sum {
                list.push(with(Fold::Sum, *clear));
            }
            list.extend(earlier_like(program, *src).map(|src| Stmt::Reduce {
                fold: *fold,
                src,
                dst: *dst,
                dim: *dim,
                clear: *clear,
            }));
            list
        }
        Stmt::Handshake(h) => {
            let mut list = Vec::new();
            for trips in 1..h.trips.min(4) {
                list.push(Stmt::Handshake(Handshake { trips, ..h.clone() }));
            }
            list
        }
        Stmt::AllocVar(b, Some(e)) if !matches!(e, Expr::Lit(..)) => {
            vec![Stmt::AllocVar(
                *b,
                Some(Expr::Lit(1, program.buffers[b.0].ty)),
            )]
        }
        _ => Vec::new(),
    });
}

/// The tiles that were there before this one and have its shape: one that was copied from
/// another may not be needed.
fn earlier_like(program: &Program, tile: Buf) -> impl Iterator<Item = Buf> {
    let before = (0..tile.0).map(Buf);
    before.filter(move |b| {
        let scope = program.buffers[b.0].scope;
        let on_chip = matches!(scope, Scope::Shared | Scope::Fragment);
        on_chip && program.shape(*b) == program.shape(tile)
    })
}

fn simpler_expressions(program: &Program, out: &mut Vec<Program>) {
    each_statement(program, out, &|stmt| {
        let mut list = Vec::new();
        let mut copy = stmt.clone();
        let count = copy.exprs_mut().len();
        for n in 0..count {
            let mut copy = stmt.clone();
            let whole = copy.exprs_mut()[n].clone();
            let mut forms = Vec::new();
            simpler(program, &whole, &mut forms);
            for form in forms {
                let mut smaller = stmt.clone();
                *smaller.exprs_mut()[n] = form;
                list.push(smaller);
            }
        }
        list
    });
}

/// The expression with one part of it simpler.
fn simpler(program: &Program, e: &Expr, out: &mut Vec<Expr>) {
    if matches!(e, Expr::Lit(..)) {
        return;
    }
    let ty = e.ty(program);
    if ty != Type::Bool {
        out.push(Expr::Lit(1, ty));
        out.push(Expr::Lit(0, ty));
    }
    if !matches!(e, Expr::Load(..)) {
        for child in e.children() {
            if (child.ty(program) == Type::Bool) == (ty == Type::Bool) {
                out.push(child.clone());
            }
        }
    }
    let count = e.children().len();
    for n in 0..count {
        let mut forms = Vec::new();
        simpler(program, e.children()[n], &mut forms);
        for form in forms {
            let mut smaller = e.clone();
            *smaller.children_mut()[n] = form;
            out.push(smaller);
        }
    }
}

fn simpler_types(program: &Program, out: &mut Vec<Program>) {
    for n in 0..program.buffers.len() {
        for ty in [Type::I32, Type::F32] {
            let now = program.buffers[n].ty;
            if now != ty && now != Type::I32 {
                let mut smaller = program.clone();
                smaller.buffers[n].ty = ty;
                out.push(smaller);
            }
        }
    }
}
