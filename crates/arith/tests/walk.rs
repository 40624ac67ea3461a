//! Facts of places in a function.

use tilewright_arith::{Analyzer, Congruence, Inside, Interval, Proof};
use tilewright_ir::{
    Axis, BinOp, Block, DType, Expr, Func, Kernel, KernelAttrs, Loop, LoopKind, Span, Stmt,
    StmtKind, Var, VarKind,
};

struct Fixture {
    func: Func,
    n: Var,
    bx: Var,
    threads: [Var; 3],
}

fn stmt(kind: StmtKind) -> Stmt {
    Stmt::new(kind, Span::NONE)
}

fn fixture() -> Fixture {
    let mut func = Func::new("f");
    let n = func.add_var("n", DType::I32, VarKind::Symbol);
    func.symbols.push(n);
    let bx = func.add_var("bx", DType::I32, VarKind::BlockIdx(0));
    let threads = [0, 1, 2].map(|axis| func.add_var("t", DType::I32, VarKind::ThreadIdx(axis)));
    Fixture {
        func,
        n,
        bx,
        threads,
    }
}

impl Fixture {
    fn var(&self, v: Var) -> Expr {
        self.func.var_expr(v)
    }

    fn add(&mut self, kind: VarKind) -> Var {
        self.func.add_var("x", DType::I32, kind)
    }

    /// A mark that the walk finds: `assert 0 <= k`.
    fn mark(&self, k: i32) -> Stmt {
        stmt(StmtKind::Assert {
            cond: Expr::bin(BinOp::Le, Expr::i32(0), Expr::i32(k)),
            message: format!("{k}"),
        })
    }

    /// Walks a kernel with this body and calls `f` at each mark.
    fn at_marks(&mut self, body: Block, mut f: impl FnMut(&mut Analyzer, &str)) {
        let grid = self.var(self.n).ceil_div(128);
        self.func.kernels.push(Kernel {
            grid: vec![(self.bx, grid)],
            threads: [128, 1, 1],
            thread_vars: self.threads,
            attrs: KernelAttrs::default(),
            body,
            span: Span::NONE,
        });
        let mut marks = 0;
        Analyzer::for_func(&self.func).walk_func(&self.func, &mut |a, s| {
            if let StmtKind::Assert { message, .. } = &s.kind {
                marks += 1;
                f(a, message);
            }
        });
        assert!(marks > 0);
    }
}

fn loop_over(kind: LoopKind, axes: Vec<Axis>, body: Block) -> Stmt {
    stmt(StmtKind::For(Loop { kind, axes, body }))
}

#[test]
fn grid_threads_and_symbols() {
    let mut x = fixture();
    let (n, bx, tx, ty) = (
        x.var(x.n),
        x.var(x.bx),
        x.var(x.threads[0]),
        x.var(x.threads[1]),
    );
    let mark = x.mark(0);
    x.at_marks(vec![mark], |a, _| {
        assert_eq!(a.prove_ge(&n, &Expr::i32(0)), Proof::Yes);
        // A call may bring an empty tensor.
        assert_eq!(a.prove_gt(&n, &Expr::i32(0)), Proof::Unknown);
        assert_eq!(a.const_bounds(&tx), Interval::new(0, 127));
        assert_eq!(a.const_bounds(&ty), Interval::new(0, 0));
        assert_eq!(a.prove_ge(&bx, &Expr::i32(0)), Proof::Yes);
        assert_eq!(a.prove_lt(&bx, &n.clone().ceil_div(128)), Proof::Yes);
        // n + 127 may wrap, so where the block starts is not known.
        assert_eq!(a.prove_lt(&(bx.clone() * 128), &n), Proof::Unknown);
        a.scoped(|a| {
            a.assume(&n.clone().le(1 << 24));
            assert_eq!(a.const_bounds(&tx), Interval::new(0, 127));
        });
    });
}

#[test]
fn loops_have_ranges_and_steps() {
    let mut x = fixture();
    let (i, j) = (x.add(VarKind::Loop), x.add(VarKind::Loop));
    let (ie, je) = (x.var(i), x.var(j));
    let body = vec![x.mark(1)];
    let up = Axis {
        var: i,
        start: Expr::i32(4),
        stop: Expr::i32(100),
        step: Expr::i32(8),
    };
    let down = Axis {
        var: j,
        start: Expr::i32(31),
        stop: Expr::i32(-1),
        step: Expr::i32(-4),
    };
    let inner = loop_over(LoopKind::Serial, vec![down], body);
    let outer = loop_over(LoopKind::Serial, vec![up], vec![inner]);
    x.at_marks(vec![outer], |a, _| {
        assert_eq!(a.const_bounds(&ie), Interval::new(4, 92));
        assert_eq!(a.congruence(&ie), Congruence::new(8, 4));
        assert_eq!(a.const_bounds(&je), Interval::new(3, 31));
        assert_eq!(a.divides(4, &(je.clone() + 1)), Proof::Yes);
    });
}

#[test]
fn conditions_hold_in_their_arms_and_after_a_way_out() {
    let mut x = fixture();
    let tx = x.var(x.threads[0]);
    let i = x.add(VarKind::Loop);
    let body = vec![
        stmt(StmtKind::If {
            cond: tx.clone().lt(32),
            then: vec![x.mark(1)],
            otherwise: vec![x.mark(2)],
        }),
        x.mark(3),
        stmt(StmtKind::If {
            cond: tx.clone().ge(100),
            then: vec![stmt(StmtKind::Continue)],
            otherwise: vec![],
        }),
        x.mark(4),
        stmt(StmtKind::Assume(tx.clone().ge(8))),
        x.mark(5),
    ];
    let upto = Axis::upto(i, Expr::i32(4));
    let body = vec![loop_over(LoopKind::Serial, vec![upto], body), x.mark(6)];
    let mut seen = Vec::new();
    x.at_marks(body, |a, mark| {
        let bounds = a.const_bounds(&tx);
        seen.push((mark.to_owned(), bounds.lo, bounds.hi));
    });
    let seen: Vec<(&str, i128, i128)> = seen
        .iter()
        .map(|(m, lo, hi)| (m.as_str(), *lo, *hi))
        .collect();
    let want = [
        ("1", 0, 31),
        ("2", 32, 127),
        ("3", 0, 127),
        ("4", 0, 99),
        ("5", 8, 99),
        ("6", 0, 127),
    ];
    assert_eq!(seen, want);
}

#[test]
fn lets_last_to_the_end_of_their_block() {
    let mut x = fixture();
    let tx = x.var(x.threads[0]);
    let row = x.add(VarKind::Let);
    let row_expr = x.var(row);
    let body = vec![
        stmt(StmtKind::Let {
            var: row,
            value: tx.clone().floor_div(4),
        }),
        x.mark(1),
    ];
    x.at_marks(body, |a, _| {
        assert_eq!(a.const_bounds(&row_expr), Interval::new(0, 31));
        assert_eq!(a.prove_eq(&row_expr, &tx.clone().floor_div(4)), Proof::Yes);
    });
}

#[test]
fn rewriting_simplifies_in_place() {
    let mut x = fixture();
    let tx = x.var(x.threads[0]);
    let i = x.add(VarKind::Loop);
    let ie = x.var(i);
    let inner = vec![stmt(StmtKind::Assume(
        (tx.clone() * 4 + ie.clone()).floor_div(4).lt(64),
    ))];
    let mut body = vec![loop_over(
        LoopKind::Serial,
        vec![Axis::upto(i, Expr::i32(4))],
        inner,
    )];
    x.at_marks(vec![x.mark(0)], |_, _| {});
    let mut a = Analyzer::for_func(&x.func);
    let kernel = x.func.kernels[0].clone();
    a.enter_kernel(&x.func, &kernel);
    a.rewrite_block(&x.func, &mut body, &mut |a, s| {
        tilewright_ir::visit::stmt_exprs_mut(s, &mut |e| *e = a.simplify(e));
        Inside::Rewrite
    });
    let StmtKind::For(l) = &body[0].kind else {
        panic!("the loop stays");
    };
    assert_eq!(l.body[0].kind, StmtKind::Assume(tx.lt(64)));
}
