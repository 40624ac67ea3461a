//! Facts, scopes and proofs on the kinds of claims that passes make.

use tilewright_arith::{Analyzer, Congruence, Interval, Proof};
use tilewright_ir::expr_build::select;
use tilewright_ir::{BinOp, Buffer, DType, Expr, Var};

fn var(v: u32) -> Expr {
    Expr::var(Var::from_u32(v), DType::I32)
}

fn range(a: &mut Analyzer, v: u32, lo: i128, hi: i128) -> Expr {
    a.bind_interval(Var::from_u32(v), DType::I32, Interval::new(lo, hi));
    var(v)
}

#[test]
fn scopes_open_and_close() {
    let mut a = Analyzer::new();
    let x = var(0);
    assert_eq!(a.prove_lt(&x, &Expr::i32(10)), Proof::Unknown);
    a.with_assumption(&x.clone().lt(5), |a| {
        assert_eq!(a.prove_lt(&x, &Expr::i32(10)), Proof::Yes);
        a.with_assumption(&x.clone().ge(0), |a| {
            assert_eq!(a.const_bounds(&x), Interval::new(0, 4));
            assert_eq!(a.simplify(&(x.clone() % 5)), x);
        });
        assert_eq!(a.simplify(&(x.clone() % 5)), x.clone() % 5);
    });
    a.with_refutation(&x.clone().lt(5), |a| {
        assert_eq!(a.prove_lt(&x, &Expr::i32(5)), Proof::No);
    });
    assert_eq!(a.prove_lt(&x, &Expr::i32(10)), Proof::Unknown);
}

#[test]
fn facts_with_symbols() {
    let mut a = Analyzer::new();
    let (i, n) = (var(0), var(1));
    a.bind_interval(Var::from_u32(1), DType::I32, Interval::new(1, 1 << 24));
    a.bind_range(Var::from_u32(0), &Expr::i32(0), &n);
    assert_eq!(a.prove_lt(&i, &n), Proof::Yes);
    assert_eq!(a.prove_ge(&i, &n), Proof::No);
    assert_eq!(a.prove_le(&(i.clone() + 1), &n), Proof::Yes);
    assert_eq!(a.prove_lt(&(i.clone() + 1), &n), Proof::Unknown);
    assert_eq!(a.simplify(&i.clone().floor_div(n.clone())), Expr::i32(0));
    assert_eq!(a.simplify(&(i.clone() % n.clone())), i);
    assert_eq!(a.simplify(&i.clone().min(n.clone())), i);
    // Without the bound on n the sum may wrap, and nothing follows.
    let mut a = Analyzer::new();
    a.bind_range(Var::from_u32(0), &Expr::i32(0), &n);
    assert_eq!(a.prove_lt(&i, &n), Proof::Yes);
    assert_eq!(
        a.prove_lt(&(i.clone() + 1), &(n.clone() + 1)),
        Proof::Unknown
    );
    assert_eq!(
        a.prove_le(&(i.clone() + 1), &n),
        Proof::Yes,
        "i is below n, so i + 1 does not wrap"
    );
}

#[test]
fn chains_of_facts() {
    let mut a = Analyzer::new();
    let (x, y, z) = (var(0), var(1), var(2));
    for v in 0..3 {
        range(&mut a, v, -1000, 1000);
    }
    a.assume(&x.clone().lt(y.clone()));
    a.assume(&y.clone().le(z.clone()));
    assert_eq!(a.prove_lt(&x, &z), Proof::Yes);
    assert_eq!(a.prove_eq(&x, &z), Proof::No);
    assert_eq!(
        a.prove_lt(&(x.clone() * 2), &(y.clone() + z.clone())),
        Proof::Yes
    );
    assert_eq!(a.prove_lt(&x, &(z - 1)), Proof::Unknown);
    // Bounds propagate to the variables.
    assert_eq!(a.const_bounds(&x), Interval::new(-1000, 999));
}

#[test]
fn wrapping_kills_facts() {
    let mut a = Analyzer::new();
    let (x, y) = (var(0), var(1));
    assert_eq!(a.prove_gt(&(x.clone() + 1), &x), Proof::Unknown);
    assert_eq!(
        a.prove_ne(&(x.clone() + 1), &x),
        Proof::Yes,
        "equality holds modulo 2^32"
    );
    assert_eq!(a.prove_lt(&(x.clone() - 1), &x), Proof::Unknown);
    a.assume(&(x.clone() + 1).gt(x.clone()));
    assert_eq!(a.prove_gt(&(x.clone() + 1), &x), Proof::Yes);
    assert_eq!(a.prove_gt(&(x.clone() + 2), &x), Proof::Unknown);
    // A fact about a sum that may wrap is one about the wrapped value.
    let mut a = Analyzer::new();
    a.assume(&(x.clone() + y.clone()).lt(10));
    assert_eq!(
        a.prove_lt(&(x.clone() + y.clone()), &Expr::i32(11)),
        Proof::Yes
    );
    a.assume(&x.clone().ge(0));
    a.assume(&y.clone().ge(0));
    assert_eq!(a.prove_lt(&x, &Expr::i32(10)), Proof::Unknown);
    let wide = |e: &Expr| e.clone().cast_to(DType::I64);
    let sum = wide(&x) + wide(&y);
    assert_eq!(
        a.prove_eq(&wide(&(x.clone() + y.clone())), &sum),
        Proof::Unknown
    );
    a.assume(&x.clone().le(1 << 20));
    a.assume(&y.clone().le(1 << 20));
    assert_eq!(a.prove_eq(&wide(&(x + y)), &sum), Proof::Yes);
}

#[test]
fn unsigned_subtraction_wraps_at_zero() {
    let mut a = Analyzer::new();
    let u = |v| Expr::var(Var::from_u32(v), DType::U32);
    let (x, y) = (u(0), u(1));
    assert_eq!(a.prove_le(&(x.clone() - 1), &x), Proof::Unknown);
    a.assume(&x.clone().gt(0));
    assert_eq!(a.prove_lt(&(x.clone() - 1), &x), Proof::Yes);
    assert_eq!(a.prove_le(&(x.clone() - y.clone()), &x), Proof::Unknown);
    a.assume(&y.clone().le(3));
    a.assume(&x.clone().ge(3));
    assert_eq!(a.prove_le(&(x.clone() - y), &x), Proof::Yes);
    assert_eq!(a.prove_ge(&x, &Expr::int(0, DType::U32)), Proof::Yes);
}

#[test]
fn congruences_and_divisibility() {
    let mut a = Analyzer::new();
    let (x, y) = (var(0), range(&mut Analyzer::new(), 1, 0, 7));
    assert_eq!(a.divides(8, &(x.clone() * 8)), Proof::Yes, "8 divides 2^32");
    assert_eq!(
        a.divides(6, &(x.clone() * 6)),
        Proof::Unknown,
        "6 x may wrap"
    );
    assert_eq!(a.divides(4, &(x.clone() * 8 + 2)), Proof::No);
    a.assume(&(x.clone() % 16).equal(3));
    assert_eq!(a.congruence(&x), Congruence::new(16, 3));
    assert_eq!(a.simplify(&(x.clone() % 8)), Expr::i32(3));
    assert_eq!(a.divides(16, &(x.clone() - 3)), Proof::Yes);
    assert_eq!(a.divides(2, &(x.clone() + y)), Proof::Unknown);
    assert_eq!(a.divides(0, &x), Proof::Unknown);
    range(&mut a, 2, 0, 100);
    assert_eq!(a.divides(6, &(var(2) * 6)), Proof::Yes);
}

#[test]
fn branches_on_warps() {
    // if tx // 32 == 2
    let mut a = Analyzer::new();
    let tx = range(&mut a, 0, 0, 127);
    a.with_assumption(&tx.clone().floor_div(32).equal(2), |a| {
        assert_eq!(a.const_bounds(&tx), Interval::new(64, 95));
        assert_eq!(a.simplify(&(tx.clone() % 32)), tx.clone() - 64);
    });
    a.with_assumption(&tx.clone().max(Expr::i32(40)).le(50), |a| {
        assert_eq!(a.const_bounds(&tx), Interval::new(0, 50));
    });
    a.with_assumption(&tx.clone().ge(32).and(tx.clone().lt(64)), |a| {
        assert_eq!(a.simplify(&tx.clone().floor_div(32)), Expr::i32(1));
    });
    a.with_refutation(&tx.clone().lt(32).or(tx.clone().ge(64)), |a| {
        assert_eq!(a.simplify(&tx.clone().floor_div(32)), Expr::i32(1));
    });
    a.with_assumption(&Expr::bin(BinOp::Ne, tx.clone(), Expr::i32(0)), |a| {
        assert_eq!(a.const_bounds(&tx), Interval::new(1, 127));
    });
}

#[test]
fn lets_are_seen_through_and_memory_is_not() {
    let mut a = Analyzer::new();
    let tx = range(&mut a, 0, 0, 127);
    let row = var(1);
    a.bind_value(Var::from_u32(1), &tx.clone().floor_div(4));
    assert_eq!(a.const_bounds(&row), Interval::new(0, 31));
    assert_eq!(a.prove_le(&(row.clone() * 4), &tx), Proof::Yes);
    assert_eq!(
        a.prove_eq(&(row.clone() * 4 + tx.clone() % 4), &tx),
        Proof::Yes
    );
    // A load may give something else the next time.
    let load = Expr::load(Buffer::from_u32(0), vec![tx.clone()], DType::I32);
    a.bind_value(Var::from_u32(2), &(load.clone() % 8));
    assert_eq!(a.const_bounds(&var(2)), Interval::new(0, 7));
    assert_eq!(a.prove_eq(&var(2), &(load.clone() % 8)), Proof::Unknown);
    a.assume(&load.clone().lt(10));
    assert_eq!(a.prove_lt(&load, &Expr::i32(10)), Proof::Unknown);
    assert_eq!(
        a.prove_eq(&load, &load),
        Proof::Yes,
        "one moment, one value"
    );
}

#[test]
fn contradictions_are_noticed() {
    let mut a = Analyzer::new();
    let x = range(&mut a, 0, 0, 7);
    assert!(!a.is_unreachable());
    a.scoped(|a| {
        a.assume(&x.clone().gt(7));
        assert!(a.is_unreachable());
    });
    assert!(!a.is_unreachable());
    a.assume(&(x.clone() % 2).equal(0));
    a.scoped(|a| {
        a.assume(&x.clone().ge(7));
        assert!(a.is_unreachable());
    });
}

#[test]
fn polynomials() {
    let mut a = Analyzer::new();
    let (i, j) = (range(&mut a, 0, 0, 1000), range(&mut a, 1, 0, 1000));
    let n = range(&mut a, 2, 1, 1000);
    let left = (i.clone() + 1) * n.clone() + j.clone();
    let right = i.clone() * n.clone() + n.clone() + j.clone();
    assert_eq!(a.prove_eq(&left, &right), Proof::Yes);
    a.assume(&j.clone().lt(n.clone()));
    assert_eq!(
        a.simplify(&(i.clone() * n.clone() + j.clone()).floor_div(n.clone())),
        i
    );
    assert_eq!(
        a.simplify(&((i.clone() * n.clone() + j.clone()) % n.clone())),
        j
    );
    assert_eq!(
        a.prove_lt(&(i.clone() * n.clone() + j), &((i + 1) * n)),
        Proof::Yes
    );
}

#[test]
fn quotients_and_remainders_bound_each_other() {
    let mut a = Analyzer::new();
    let (x, y) = (range(&mut a, 0, 0, 1000), range(&mut a, 1, 0, 1000));
    let q = x.clone().floor_div(8);
    assert_eq!(a.prove_le(&(q.clone() * 8), &x), Proof::Yes);
    assert_eq!(a.prove_lt(&x, &(q.clone() * 8 + 8)), Proof::Yes);
    assert_eq!(a.prove_lt(&x, &(q * 8 + 7)), Proof::Unknown);
    assert_eq!(a.prove_le(&(x.clone() % 8), &x), Proof::Yes);
    assert_eq!(a.prove_le(&x.clone().min(y.clone()), &x), Proof::Yes);
    assert_eq!(a.prove_ge(&x.clone().max(y.clone()), &(y - 1)), Proof::Yes);
}

/// `4 x + 4 u < 16` over two types: the common factor divides out of the fact.
#[test]
fn facts_lose_their_common_factor() {
    let mut a = Analyzer::new();
    let x = range(&mut a, 0, 0, 100);
    let u = Expr::var(Var::from_u32(1), DType::U8);
    let wide = |e: &Expr| e.clone().cast_to(DType::I64);
    a.assume(&(wide(&x) * 4 + wide(&u) * 4).lt(16));
    assert_eq!(a.const_bounds(&x), Interval::new(0, 3));
    assert_eq!(a.const_bounds(&u), Interval::new(0, 3));
    assert_eq!(
        a.prove_le(&(wide(&x) + wide(&u)), &Expr::i32(3)),
        Proof::Yes
    );
}

/// 32768 · 65535 is a value of int32, 32769 · 65535 is not.
#[test]
fn products_that_wrap_are_not_multiplied_out() {
    let mut a = Analyzer::new();
    let i = range(&mut a, 0, 0, 32768);
    let n = range(&mut a, 1, 0, 65535);
    let (small, large) = (i.clone() * n.clone(), (i.clone() + 1) * n.clone());
    assert_eq!(a.prove_ge(&large, &small), Proof::Unknown);
    a.assume(&i.lt(32768));
    assert_eq!(a.prove_ge(&large, &small), Proof::Yes);
}

/// Both arms of a `select` run, so the arm that is not chosen must stay defined; an arm of an
/// `if`-expression runs only when it is chosen.
#[test]
fn arms_that_always_run_keep_their_guards() {
    let (x, y) = (var(0), var(1));
    let guarded = y.clone().floor_div(x.clone().max(Expr::i32(1)));
    let load = |index: Expr| Expr::load(Buffer::from_u32(0), vec![index], DType::I32);
    for arm in [guarded, load(x.clone().max(Expr::i32(0)))] {
        let choose =
            |lazy| select(lazy, x.clone().equal(3), arm.clone(), y.clone()).expect("well typed");
        let mut a = Analyzer::new();
        assert_eq!(a.simplify(&choose(false)), choose(false));
        let simpler = a.simplify(&choose(true));
        assert_ne!(
            simpler,
            choose(true),
            "the guard is not needed in {simpler:?}"
        );
    }
}

#[test]
fn what_was_simplified_before_changes_nothing() {
    let make = |a: &mut Analyzer| {
        for v in 0..4 {
            range(a, v, 0, 100);
        }
        let e = (var(0) * 8 + var(1) * 8 + var(2).floor_div(3)) * var(3) + var(2) % 3 * var(1);
        e.clone()
            .lt(var(3) * 4)
            .and(Expr::bin(BinOp::BitXor, e, var(1) * 4).equal(var(2)))
    };
    let mut fresh = Analyzer::new();
    let e = make(&mut fresh);
    let want = fresh.simplify(&e);
    let mut used = Analyzer::new();
    make(&mut used);
    for other in [
        var(3) * var(1),
        var(2) % 3,
        var(2).floor_div(3),
        var(1) * 4 + var(0),
        var(3) + var(2),
    ] {
        used.simplify(&other);
    }
    assert_eq!(used.simplify(&e), want);
}

/// On a small stack, as worker threads have.
#[test]
fn deep_and_wide_expressions_are_cheap() {
    let small = std::thread::Builder::new().stack_size(1 << 20);
    let thread = small.spawn(deep_and_wide).expect("a thread");
    thread.join().expect("no overflow");
}

fn deep_and_wide() {
    let n = 100_000;
    let mut a = Analyzer::new();
    let mut chain = var(0);
    let mut divisions = var(0);
    let mut conditions = var(0).lt(1);
    let mut distinct = var(0);
    for k in 1..n {
        chain = chain + 1;
        divisions = (divisions + 1).floor_div(3);
        conditions = conditions.and(var(k).lt(1));
        distinct = distinct + var(k);
    }
    for e in [&chain, &divisions, &distinct, &conditions] {
        let simplified = a.simplify(e);
        assert_eq!(simplified.dtype(), e.dtype());
        a.prove_eq(e, &simplified);
        a.const_bounds(e);
    }
    a.assume(&conditions);
    a.prove(&conditions);
    // A tree of 2^60 nodes that share.
    let mut shared = var(0).lt(var(1));
    let mut value = Expr::load(Buffer::from_u32(0), vec![var(0)], DType::I32);
    for k in 2..62 {
        shared = shared
            .clone()
            .and(var(k).lt(1))
            .or(shared.and(var(k).gt(9)));
        value = Expr::bin(BinOp::BitXor, value.clone() * 3, value.clone().floor_div(5)).max(value);
    }
    assert_eq!(a.simplify(&shared).dtype(), DType::BOOL);
    a.prove(&shared);
    a.assume(&shared);
    assert_eq!(a.simplify(&value).dtype(), DType::I32);
    a.const_bounds(&value);
    a.bind_value(Var::from_u32(70), &value);
}
