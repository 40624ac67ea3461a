//! One example for each rewrite rule: it must fire, give exactly this, and change no value.

#[path = "common/build.rs"]
mod build;
#[path = "common/eval.rs"]
mod eval;
#[path = "common/show.rs"]
mod show;

use build::{bin, cast, choose};
use eval::eval;
use show::show;
use tilewright_arith::{Analyzer, Interval, Rule};
use tilewright_ir::{BinOp, Buffer, DType, Expr, ExprKind, MathFn, Scalar, Span, UnOp, Var};

const I16: DType = DType::scalar(Scalar::I16);
const I32X4: DType = DType::vector(Scalar::I32, 4);

/// `i` and `j` are in 0..8, `n` in 1..=100, `x` and `y` are anything.
struct Vars {
    i: Expr,
    j: Expr,
    n: Expr,
    x: Expr,
    y: Expr,
}

const RANGES: [(u32, i128, i128); 5] = [
    (0, 0, 7),
    (1, 0, 7),
    (2, 1, 100),
    (3, i32::MIN as i128, i32::MAX as i128),
    (4, i32::MIN as i128, i32::MAX as i128),
];

fn analyzer() -> Analyzer {
    let mut a = Analyzer::new();
    for (v, lo, hi) in RANGES {
        a.bind_interval(Var::from_u32(v), DType::I32, Interval::new(lo, hi));
    }
    a
}

fn var(v: u32) -> Expr {
    Expr::var(Var::from_u32(v), DType::I32)
}

fn c(value: i128) -> Expr {
    Expr::int(value, DType::I32)
}

fn of(kind: ExprKind, dtype: DType) -> Expr {
    Expr::new(kind, dtype, Span::NONE)
}

fn ramp(base: Expr, stride: i128) -> Expr {
    of(
        ExprKind::Ramp {
            base,
            stride: c(stride),
        },
        I32X4,
    )
}

/// What goes in and what comes out.
fn example(rule: Rule) -> (Expr, Expr) {
    let v = Vars {
        i: var(0),
        j: var(1),
        n: var(2),
        x: var(3),
        y: var(4),
    };
    let Vars { i, j, n, x, y } = v;
    let load = |index: Expr| Expr::load(Buffer::from_u32(0), vec![index], DType::I32);
    let f32 = |v: f64| Expr::float(v, DType::F32);
    let f = Expr::var(Var::from_u32(9), DType::F32);
    match rule {
        Rule::FoldConstants => (Expr::int(127, DType::I8) + 3, Expr::int(-126, DType::I8)),
        Rule::DivModRecombine => (x.clone().floor_div(6) * 6 + x.clone() % 6, x),
        Rule::ModModRecombine => (x.clone().floor_div(4) % 8 * 4 + x.clone() % 4, x % 32),
        Rule::SubDivToMod => (x.clone() - x.clone().floor_div(6) * 6, x % 6),
        Rule::MulPullConstant => ((x.clone() * 4 + 8) * y.clone(), y * (x + 2) * 4),
        Rule::DivByOne => (x.clone().floor_div(1), x),
        Rule::DivBounded => ((i + 16).floor_div(8), c(2)),
        Rule::DivDiv => (x.clone().floor_div(4).floor_div(6), x.floor_div(24)),
        Rule::ModDiv => ((x.clone() % 24).floor_div(4), x.floor_div(4) % 6),
        Rule::DivSplit => ((n.clone() * 8 + j).floor_div(8), n),
        Rule::DivCommonFactor => ((n.clone() * 4 + i % 4).floor_div(12), n.floor_div(3)),
        Rule::DivBelowDivisor => (i.clone().floor_div(n.clone() + 7), c(0)),
        Rule::DivOfZero => (c(0).floor_div(n - 101), c(0)),
        Rule::DivBySelf => (n.clone().floor_div(n), c(1)),
        Rule::DivMultiple => ((n.clone() * i.clone()).floor_div(n), i),
        Rule::TruncToFloor => (bin(BinOp::TruncDiv, n.clone(), c(4)), n.floor_div(4)),
        Rule::ModByOne => (x.floor_mod(1), c(0)),
        Rule::ModBounded => ((i.clone() + 16) % 8, i),
        Rule::ModKnown => ((n * 6 + 1) % 3, c(1)),
        Rule::ModMod => (x.clone() % 24 % 6, x % 6),
        // x may wrap, but 8 divides 2^32.
        Rule::ModReduce => ((x.clone() * 16 + y.clone()) % 8, y % 8),
        Rule::ModCommonFactor => ((n.clone() * 4 + i.clone() % 4) % 12, n % 3 * 4 + i % 4),
        Rule::CompareDecide => ((i + 1).lt(n + 8), Expr::bool(true)),
        Rule::CompareDivide => ((n.clone() * 8).lt(64), n.lt(8)),
        Rule::CompareDropSmall => ((n.clone() * 8 + i).lt(64), n.lt(8)),
        Rule::EqualDecide => ((x.clone() + 1).equal(x), Expr::bool(false)),
        Rule::EqualDivide => ((n.clone() * 8).equal(i.clone() * 8), i.equal(n)),
        Rule::MinMaxSame => (x.clone().min(x.clone()), x),
        Rule::MinMaxDecide => ((i.clone() + 1).min(n + 8), i + 1),
        Rule::MinMaxAbsorb => (x.clone().min(n + 10).min(i.clone()), i.min(x)),
        Rule::NotPush => (!x.clone().lt(y.clone()), y.le(x)),
        Rule::LogicConstant => (x.clone().lt(y.clone()).and(Expr::bool(true)), x.lt(y)),
        Rule::LogicSame => {
            let p = load(x.clone()).lt(y.clone());
            (p.clone().or(p.clone()), p)
        }
        Rule::LogicOpposite => {
            let p = load(x.clone()).lt(y.clone());
            (p.clone().and(!p), Expr::bool(false))
        }
        Rule::BoolIdentity => (
            bin(BinOp::BitXor, x.clone().lt(y.clone()), Expr::bool(false)),
            x.lt(y),
        ),
        Rule::KnownCondition => {
            let p = f.clone().lt(1.0);
            (p.clone().and(p.clone().or(x.clone().lt(y))), p)
        }
        Rule::ChooseConstant => (choose(false, i.lt(8), x.clone(), y), x),
        Rule::ChooseSame => (choose(true, x.lt(y.clone()), y.clone(), y.clone()), y),
        Rule::ChooseNot => {
            let p = f.lt(1.0);
            (
                choose(false, !p.clone(), x.clone(), y.clone()),
                choose(false, p, y, x),
            )
        }
        Rule::ChooseBool => {
            let p = x.lt(y);
            (
                choose(false, p.clone(), Expr::bool(true), Expr::bool(false)),
                p,
            )
        }
        Rule::ChooseMinMax => (
            choose(false, x.clone().lt(y.clone()), x.clone(), y.clone()),
            x.min(y),
        ),
        Rule::CastSame => (cast(x.clone(), DType::I32), x),
        Rule::CastToBool => (cast(x.clone(), DType::BOOL), bin(BinOp::Ne, x, c(0))),
        Rule::CastCast => (cast(cast(x.clone(), DType::I64), DType::I32), x),
        Rule::CastNarrowSum => {
            let wide = cast(x.clone(), DType::I64) * 4 + cast(y.clone(), DType::I64);
            (cast(wide, DType::I32), x * 4 + y)
        }
        Rule::ReinterpretInt => (x.clone().reinterpret_as(DType::U32), cast(x, DType::U32)),
        Rule::RoundInt => (Expr::math(MathFn::Floor, vec![x.clone()]), x),
        Rule::AbsSign => (Expr::math(MathFn::Abs, vec![i.clone() - 7]), c(7) - i),
        Rule::FloatIdentity => (bin(BinOp::Sub, f.clone() * 1.0, f32(0.0)), f),
        Rule::BitNotLinear => (
            of(ExprKind::Unary(UnOp::BitNot, x.clone()), DType::I32),
            c(-1) - x,
        ),
        Rule::BitsSame => (x.clone() ^ x, c(0)),
        Rule::BitsConstant => ((x.clone() & 12) & 6, x & 4),
        Rule::AndMask => (x.clone() & 7, x % 8),
        Rule::AndHighMask => (x.clone() & -8, x.clone() - x % 8),
        Rule::AndDisjoint => (i & (y * 8), c(0)),
        Rule::OrDisjoint => (i.clone() | (y.clone() * 8), y * 8 + i),
        Rule::XorDisjoint => (i.clone() ^ (y.clone() * 8), y * 8 + i),
        Rule::XorCancel => ((x.clone() ^ y.clone()) ^ x, y),
        Rule::XorSplit => (
            (n.clone() * 8 + i.clone()) ^ (j.clone() * 8),
            bin(BinOp::BitXor, j, n) * 8 + i,
        ),
        Rule::ShiftLeft => (x.clone() << 3, x * 8),
        Rule::ShiftRight => (x.clone() >> 3, x.floor_div(8)),
        Rule::BroadcastOut => (
            bin(BinOp::Min, x.clone().broadcast(4), y.clone().broadcast(4)),
            x.min(y).broadcast(4),
        ),
        Rule::RampFlat => (ramp(x.clone(), 0), x.broadcast(4)),
        Rule::RampGather => (
            bin(BinOp::Add, ramp(x.clone(), 2), y.clone().broadcast(4)),
            ramp(x + y, 2),
        ),
        Rule::RampTimes => (
            bin(BinOp::Mul, ramp(i.clone(), 2), y.clone().broadcast(4)),
            of(
                ExprKind::Ramp {
                    base: i * y.clone(),
                    stride: y * 2,
                },
                I32X4,
            ),
        ),
        Rule::RampDiv => (
            bin(
                BinOp::FloorDiv,
                ramp(n.clone() * 8 + 4, 1),
                c(8).broadcast(4),
            ),
            n.broadcast(4),
        ),
        Rule::LaneOf => (
            of(
                ExprKind::Lane {
                    vector: ramp(x.clone(), 5),
                    lane: 2,
                },
                DType::I32,
            ),
            x + 10,
        ),
    }
}

#[test]
fn every_rule_does_what_it_says() {
    let mut failures = Vec::new();
    for &rule in Rule::ALL {
        let (input, want) = example(rule);
        let mut a = analyzer();
        let got = a.simplify(&input);
        if got != want {
            failures.push(format!(
                "{}: {}\n  gives {}\n  not   {}",
                rule.name(),
                show(&input),
                show(&got),
                show(&want)
            ));
        }
        if a.rule_counts().get(rule) == 0 {
            failures.push(format!(
                "{} did not fire; {:?} did",
                rule.name(),
                a.rule_counts().applied()
            ));
        }
        assert!(!rule.law().trim().is_empty());
        let mut state = rule as u64;
        for _ in 0..200 {
            let mut random = || {
                state = state.wrapping_mul(0x5851_f42d_4c95_7f2d).wrapping_add(1);
                (state >> 24) as i128
            };
            let values: Vec<i128> = RANGES
                .iter()
                .map(|&(_, lo, hi)| lo + random() % (hi - lo + 1))
                .collect();
            let value_of = |v: Var| values.get(v.as_u32() as usize).copied().unwrap_or(0);
            if let Some(value) = eval(&input, &value_of)
                && eval(&want, &value_of) != Some(value)
            {
                failures.push(format!(
                    "{}: the example is wrong for {values:?}",
                    rule.name()
                ));
                break;
            }
        }
    }
    assert!(failures.is_empty(), "{}", failures.join("\n"));
}

/// Expressions that look as if a rule applied, but something may wrap or be undefined.
#[test]
fn what_may_wrap_stays() {
    let Vars { i, n, x, y, .. } = Vars {
        i: var(0),
        j: var(1),
        n: var(2),
        x: var(3),
        y: var(4),
    };
    let u = Expr::var(Var::from_u32(7), DType::U32);
    let s = Expr::var(Var::from_u32(8), I16);
    let same = [
        bin(BinOp::Lt, x.clone(), x.clone() + 1),
        (x.clone() * 4).floor_div(4),
        (x.clone() * 6) % 3,
        (x.clone() + 7).floor_div(8),
        bin(BinOp::FloorDiv, u.clone() - 1, Expr::int(4, DType::U32)),
        x.clone().floor_div(x.clone()),
        x.clone() % x.clone(),
        c(0).floor_div(x.clone()),
        bin(BinOp::FloorDiv, x.clone(), c(0)),
        cast(x.clone() + y.clone(), DType::I64),
        cast(s.clone() * 2, DType::I32),
        // Narrowed on the way: not 2 x.
        cast(cast(x.clone(), I16) * 2, DType::I32),
        bin(BinOp::TruncDiv, x.clone(), c(4)),
        cast(u, DType::I64),
        (n.clone() * x.clone()).floor_div(n.clone()),
        bin(BinOp::Shl, x.clone(), c(40)),
        bin(BinOp::Shl, i, c(-1)),
        Expr::var(Var::from_u32(9), DType::F32) + 0.0,
        Expr::var(Var::from_u32(9), DType::F32) * 0.0,
    ];
    for e in same {
        let got = analyzer().simplify(&e);
        assert_eq!(got, e, "{} became {}", show(&e), show(&got));
    }
}

#[test]
fn the_count_table_names_rules_and_laws() {
    let mut a = analyzer();
    a.simplify(&(var(3).floor_div(4).floor_div(6)));
    let table = a.rule_counts().to_string();
    assert!(
        table.contains("div-div") && table.contains("(x // m) // c"),
        "{table}"
    );
    let mut names: Vec<&str> = Rule::ALL.iter().map(|r| r.name()).collect();
    names.sort_unstable();
    names.dedup();
    assert_eq!(names.len(), Rule::ALL.len());
}
