//! Random simplifications and proofs, checked by z3 over bit vectors, where wrap-around is exact.
//!
//! Each case says "wherever the ranges and facts hold, this is so"; z3 looks for a counterexample.
//! Fifty cases go into one query ("some case fails"); only when that has a model are they asked
//! one by one. Cases that say nothing (an expression that did not change, a proof that ended in
//! `Unknown`) are not asked and not counted.

#[path = "common/build.rs"]
mod build;
#[path = "common/generate.rs"]
mod generate;
#[path = "common/show.rs"]
mod show;

use std::collections::BTreeMap;
use std::io;
use std::time::{Duration, Instant};

use build::bin;
use easy_smt::{Context, ContextBuilder, SExpr};
use generate::{Case, Choices, DIVISORS, Profile, Rng, case};
use show::show;
use tilewright_arith::{Analyzer, Interval, Proof};
use tilewright_ir::{BinOp, DType, Expr, ExprKind, Scalar, UnOp};

const SEED: u64 = 0x7173_0003;
const WANTED: usize = 20_000;
const BATCH: usize = 50;
const TIMEOUT_MS: u32 = 20_000;

const I16: DType = DType::scalar(Scalar::I16);
const U16: DType = DType::scalar(Scalar::U16);

/// What a case claims of its expression.
#[derive(Clone, Debug)]
enum Claim {
    /// It equals this one.
    Equals(Expr),
    /// It is always this.
    Always(bool),
    /// It is in this interval and leaves this remainder.
    Within(Interval, i128, i128),
}

#[derive(Clone, Debug)]
struct Check {
    case: Case,
    claim: Claim,
}

impl Check {
    fn kind(&self) -> &'static str {
        match self.claim {
            Claim::Equals(_) => "simplifications",
            Claim::Always(_) => "proofs",
            Claim::Within(..) => "bounds and congruences",
        }
    }

    /// Whether a variable can reach an end of its type, so that arithmetic can wrap.
    fn may_wrap(&self) -> bool {
        self.case.inputs.iter().any(|i| {
            let (min, max) = i.dtype.scalar.int_range().expect("an integer type");
            i.hi == max || (min < 0 && i.lo == min)
        })
    }
}

/// Power-of-two divisors for the wide types: dividing 32-bit vectors by other numbers is slow
/// work for a solver. A few others stay among them.
fn profile(rng: &mut Rng) -> Profile {
    let pick = |rng: &mut Rng, types: &[DType]| types[rng.below(types.len())];
    let narrow = [DType::I8, DType::U8];
    match rng.below(20) {
        0..=12 => Profile {
            main: pick(rng, &narrow),
            other: pick(rng, &[DType::I8, DType::U8, I16, U16, DType::I32]),
            depth: 1 + rng.below(3) as u32,
            nonlinear: rng.below(3) == 0,
            widest: 64,
            divisors: DIVISORS,
        },
        13..=15 => Profile {
            main: pick(rng, &[I16, U16]),
            other: pick(rng, &[DType::I8, DType::U8, DType::I32]),
            depth: 1 + rng.below(2) as u32,
            nonlinear: false,
            widest: 64,
            divisors: &[2, 4, 8, 16, 32, 1, 256, 3],
        },
        _ => Profile {
            main: pick(rng, &[DType::I32, DType::U32]),
            other: pick(rng, &[DType::I8, U16, DType::I32, DType::I64]),
            depth: 1 + rng.below(2) as u32,
            nonlinear: false,
            widest: 64,
            divisors: &[2, 4, 8, 16, 32, 1, 128, 1024],
        },
    }
}

/// What the analyzer says about a random case.
fn checks(rng: &mut Rng, out: &mut Vec<Check>) {
    let p = profile(rng);
    let case = case(rng, p, None);
    let mut a = Analyzer::new();
    for i in &case.inputs {
        a.bind_interval(i.var, i.dtype, Interval::new(i.lo, i.hi));
    }
    for fact in &case.facts {
        a.assume(fact);
    }
    let mut claim = |claim| {
        out.push(Check {
            case: case.clone(),
            claim,
        });
    };
    let proved = if case.expr.dtype() == DType::BOOL {
        proof(&mut a, &case.expr)
    } else {
        Proof::Unknown
    };
    let simplified = a.simplify(&case.expr);
    match proved {
        Proof::Yes => claim(Claim::Always(true)),
        Proof::No => claim(Claim::Always(false)),
        Proof::Unknown if simplified != case.expr => claim(Claim::Equals(simplified)),
        Proof::Unknown => {}
    }
    if case.expr.dtype() != DType::BOOL && rng.below(4) == 0 {
        let bounds = a.const_bounds(&case.expr);
        let congruence = a.congruence(&case.expr);
        let whole = Interval::of(case.expr.dtype().scalar);
        if bounds != whole || congruence.modulus > 1 {
            claim(Claim::Within(
                bounds,
                congruence.modulus,
                congruence.residue,
            ));
        }
    }
}

/// Comparisons go through the functions of their own.
fn proof(a: &mut Analyzer, e: &Expr) -> Proof {
    let ExprKind::Binary(op, x, y) = e.kind() else {
        return a.prove(e);
    };
    if !x.dtype().scalar.is_int() {
        return a.prove(e);
    }
    match op {
        BinOp::Lt => a.prove_lt(x, y),
        BinOp::Le => a.prove_le(x, y),
        BinOp::Gt => a.prove_gt(x, y),
        BinOp::Ge => a.prove_ge(x, y),
        BinOp::Eq => a.prove_eq(x, y),
        BinOp::Ne => a.prove_ne(x, y),
        _ => a.prove(e),
    }
}

/// Writes expressions as z3 terms: integers as bit vectors, bools as bools.
struct Encoder<'a> {
    z3: &'a Context,
    prefix: usize,
}

impl Encoder<'_> {
    fn call(&self, name: &str, args: &[SExpr]) -> SExpr {
        let mut list = vec![self.z3.atom(name)];
        list.extend(args);
        self.z3.list(list)
    }

    fn constant(&self, value: i128, bits: u32) -> SExpr {
        let value = value.rem_euclid(1 << bits);
        self.z3.list(vec![
            self.z3.atom("_"),
            self.z3.atom(format!("bv{value}")),
            self.z3.atom(bits.to_string()),
        ])
    }

    fn name(&self, var: tilewright_ir::Var) -> String {
        format!("{var}_{}", self.prefix)
    }

    fn indexed(&self, name: &str, numbers: &[u32], a: SExpr) -> SExpr {
        let mut head = vec![self.z3.atom("_"), self.z3.atom(name)];
        head.extend(numbers.iter().map(|n| self.z3.atom(n.to_string())));
        self.z3.list(vec![self.z3.list(head), a])
    }

    fn encode(&self, e: &Expr) -> SExpr {
        let scalar = e.dtype().scalar;
        match e.kind() {
            ExprKind::Int(v) if scalar == Scalar::Bool => {
                self.z3.atom(if *v != 0 { "true" } else { "false" })
            }
            ExprKind::Int(v) => self.constant(*v, scalar.bits()),
            ExprKind::Var(v) => self.z3.atom(self.name(*v)),
            ExprKind::Unary(UnOp::Not, a) => self.call("not", &[self.encode(a)]),
            ExprKind::Unary(UnOp::BitNot, a) => self.call("bvnot", &[self.encode(a)]),
            ExprKind::Select {
                cond,
                then,
                otherwise,
            }
            | ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => self.call(
                "ite",
                &[self.encode(cond), self.encode(then), self.encode(otherwise)],
            ),
            ExprKind::Cast(a) => self.cast(a, scalar),
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b),
            _ => unreachable!("the generator makes no {e:?}"),
        }
    }

    fn cast(&self, a: &Expr, to: Scalar) -> SExpr {
        let from = a.dtype().scalar;
        let x = self.encode(a);
        match (from, to) {
            (Scalar::Bool, Scalar::Bool) => x,
            (Scalar::Bool, _) => {
                let bits = to.bits();
                self.call("ite", &[x, self.constant(1, bits), self.constant(0, bits)])
            }
            (_, Scalar::Bool) => self.call("distinct", &[x, self.constant(0, from.bits())]),
            _ if to.bits() < from.bits() => self.indexed("extract", &[to.bits() - 1, 0], x),
            _ if to.bits() == from.bits() => x,
            _ => {
                let more = to.bits() - from.bits();
                let extend = if from.is_signed_int() {
                    "sign_extend"
                } else {
                    "zero_extend"
                };
                self.indexed(extend, &[more], x)
            }
        }
    }

    fn binary(&self, op: BinOp, a: &Expr, b: &Expr) -> SExpr {
        let scalar = a.dtype().scalar;
        let (x, y) = (self.encode(a), self.encode(b));
        if scalar == Scalar::Bool {
            return match op {
                BinOp::LogicalAnd | BinOp::BitAnd | BinOp::Min => self.call("and", &[x, y]),
                BinOp::LogicalOr | BinOp::BitOr | BinOp::Max => self.call("or", &[x, y]),
                BinOp::BitXor | BinOp::Ne => self.call("xor", &[x, y]),
                BinOp::Eq => self.call("=", &[x, y]),
                _ => unreachable!("the generator makes no {op:?} of bools"),
            };
        }
        let signed = scalar.is_signed_int();
        let by_sign = |s: &'static str, u: &'static str| if signed { s } else { u };
        let power = b.as_int().filter(|v| *v > 0 && v & (v - 1) == 0);
        let bits = scalar.bits();
        let name = match op {
            BinOp::Add => "bvadd",
            BinOp::Sub => "bvsub",
            BinOp::Mul => "bvmul",
            // Dividing by a power of two is shifting, which is far less work for the solver.
            BinOp::FloorDiv if let Some(p) = power => {
                let k = self.constant(p.trailing_zeros() as i128, bits);
                return self.call(by_sign("bvashr", "bvlshr"), &[x, k]);
            }
            BinOp::FloorMod if let Some(p) = power => {
                return self.call("bvand", &[x, self.constant(p - 1, bits)]);
            }
            BinOp::FloorDiv if signed => return self.call(&format!("floordiv{bits}"), &[x, y]),
            BinOp::FloorDiv => "bvudiv",
            BinOp::FloorMod => by_sign("bvsmod", "bvurem"),
            BinOp::TruncDiv => by_sign("bvsdiv", "bvudiv"),
            BinOp::TruncMod => by_sign("bvsrem", "bvurem"),
            BinOp::Min | BinOp::Max => {
                let less = self.call(by_sign("bvslt", "bvult"), &[x, y]);
                let (x, y) = if op == BinOp::Min { (x, y) } else { (y, x) };
                return self.call("ite", &[less, x, y]);
            }
            BinOp::BitAnd => "bvand",
            BinOp::BitOr => "bvor",
            BinOp::BitXor => "bvxor",
            BinOp::Shl => "bvshl",
            BinOp::Shr => by_sign("bvashr", "bvlshr"),
            BinOp::Eq => "=",
            BinOp::Ne => "distinct",
            BinOp::Lt => by_sign("bvslt", "bvult"),
            BinOp::Le => by_sign("bvsle", "bvule"),
            BinOp::Gt => by_sign("bvsgt", "bvugt"),
            BinOp::Ge => by_sign("bvsge", "bvuge"),
            BinOp::Div | BinOp::LogicalAnd | BinOp::LogicalOr => {
                unreachable!("the generator makes no {op:?} of integers")
            }
        };
        self.call(name, &[x, y])
    }

    /// The assumptions hold and the claim does not.
    fn violation(&self, check: &Check) -> SExpr {
        let mut parts = Vec::new();
        for i in &check.case.inputs {
            let x = i.expr();
            parts.push(self.encode(&bin(BinOp::Ge, x.clone(), Expr::int(i.lo, i.dtype))));
            parts.push(self.encode(&bin(BinOp::Le, x, Expr::int(i.hi, i.dtype))));
        }
        parts.extend(check.case.facts.iter().map(|f| self.encode(f)));
        let e = &check.case.expr;
        let dtype = e.dtype();
        parts.push(match &check.claim {
            Claim::Equals(other) => self.call("distinct", &[self.encode(e), self.encode(other)]),
            Claim::Always(true) => self.call("not", &[self.encode(e)]),
            Claim::Always(false) => self.encode(e),
            Claim::Within(interval, modulus, residue) => {
                let below = bin(BinOp::Lt, e.clone(), Expr::int(interval.lo, dtype));
                let above = bin(BinOp::Gt, e.clone(), Expr::int(interval.hi, dtype));
                let mut wrong = vec![self.encode(&below), self.encode(&above)];
                let max = Interval::of(dtype.scalar).hi;
                if *modulus > 1 && *modulus <= max {
                    let remainder = bin(BinOp::FloorMod, e.clone(), Expr::int(*modulus, dtype));
                    let other = bin(BinOp::Ne, remainder, Expr::int(*residue, dtype));
                    wrong.push(self.encode(&other));
                }
                self.call("or", &wrong)
            }
        });
        self.call("and", &parts)
    }
}

#[derive(Debug, PartialEq)]
enum Answer {
    NoCounterexample,
    Counterexample,
    GaveUp,
}

struct Solver {
    z3: Context,
}

impl Solver {
    fn start() -> io::Result<Solver> {
        let mut z3 = ContextBuilder::new()
            .solver("z3")
            .solver_args(["-smt2", "-in"])
            .build()?;
        // Rounds the quotient down where its sign and the remainder ask for it.
        for bits in [4u32, 8, 16, 32, 64] {
            let sort = z3.list(vec![
                z3.atom("_"),
                z3.atom("BitVec"),
                z3.atom(bits.to_string()),
            ]);
            let e = Encoder { z3: &z3, prefix: 0 };
            let (a, b) = (z3.atom("a"), z3.atom("b"));
            let zero = e.constant(0, bits);
            let r = e.call("bvsrem", &[a, b]);
            let rest = e.call("distinct", &[r, zero]);
            let other_sign = e.call(
                "xor",
                &[e.call("bvslt", &[r, zero]), e.call("bvslt", &[b, zero])],
            );
            let q = e.call("bvsdiv", &[a, b]);
            let down = e.call("bvsub", &[q, e.constant(1, bits)]);
            let body = e.call("ite", &[e.call("and", &[rest, other_sign]), down, q]);
            z3.define_fun(
                format!("floordiv{bits}"),
                vec![("a".to_owned(), sort), ("b".to_owned(), sort)],
                sort,
                body,
            )?;
        }
        Ok(Solver { z3 })
    }

    /// Whether any of the checks has a counterexample.
    fn ask(&mut self, checks: &[Check]) -> io::Result<Answer> {
        let z3 = &mut self.z3;
        z3.push()?;
        let mut violations = Vec::new();
        for (prefix, check) in checks.iter().enumerate() {
            for i in &check.case.inputs {
                let bits = z3.atom(i.dtype.scalar.bits().to_string());
                let sort = z3.list(vec![z3.atom("_"), z3.atom("BitVec"), bits]);
                z3.declare_const(Encoder { z3, prefix }.name(i.var), sort)?;
            }
            violations.push(Encoder { z3, prefix }.violation(check));
        }
        let any = z3.or_many(violations);
        z3.assert(any)?;
        let (name, timeout) = (z3.atom("check-sat-using"), z3.atom(TIMEOUT_MS.to_string()));
        let tactic = z3.list(vec![z3.atom("try-for"), z3.atom("qfbv"), timeout]);
        let command = z3.list(vec![name, tactic]);
        z3.raw_send(command)?;
        let answer = z3.raw_recv()?;
        let answer = match z3.get_atom(answer) {
            Some("unsat") => Answer::NoCounterexample,
            Some("sat") => Answer::Counterexample,
            _ => Answer::GaveUp,
        };
        z3.pop()?;
        Ok(answer)
    }
}

fn describe(check: &Check) -> String {
    let inputs: Vec<String> = check
        .case
        .inputs
        .iter()
        .map(|i| format!("{}: {} in [{}, {}]", i.var, i.dtype, i.lo, i.hi))
        .collect();
    let facts: Vec<String> = check.case.facts.iter().map(show).collect();
    let claim = match &check.claim {
        Claim::Equals(e) => format!("equals {}", show(e)),
        Claim::Always(v) => format!("is always {v}"),
        Claim::Within(i, m, r) => format!("is in {i:?} and {r} modulo {m}"),
    };
    format!(
        "{}: {}\n  {claim}\n  {inputs:?}\n  {facts:?}",
        check.kind(),
        show(&check.case.expr)
    )
}

/// Two solvers, beside each other, each with half of the cases.
#[test]
fn z3_agrees() -> io::Result<()> {
    agrees(0)
}

#[test]
fn z3_agrees_on_others() -> io::Result<()> {
    agrees(1)
}

fn agrees(half: u64) -> io::Result<()> {
    if std::env::var_os("TILEWRIGHT_NO_Z3").is_some_and(|v| v == "1") {
        println!("skipped: TILEWRIGHT_NO_Z3 is set, so z3 checked nothing");
        return Ok(());
    }
    let mut solver = match Solver::start() {
        Ok(solver) => solver,
        Err(e) => panic!(
            "z3 does not start ({e}). Run the setup script, which installs the Debian package \
             `z3`, or set TILEWRIGHT_NO_Z3=1 to go without this test."
        ),
    };
    let number = |name: &str| std::env::var(name).ok().and_then(|v| v.parse::<u64>().ok());
    let seed = number("TILEWRIGHT_SEED").unwrap_or(SEED) + half;
    let wanted = number("TILEWRIGHT_CASES").map_or(WANTED, |n| n as usize) / 2;
    println!("seed {seed:#x}");
    let mut rng = Rng(seed);
    let start = Instant::now();
    let mut counts: BTreeMap<&str, usize> = BTreeMap::new();
    let (mut agreed, mut may_wrap, mut gave_up) = (0, 0, 0);
    let mut slowest = Duration::ZERO;
    while agreed < wanted {
        let mut batch = Vec::new();
        while batch.len() < BATCH {
            checks(&mut rng, &mut batch);
        }
        let asked = Instant::now();
        let answers = match solver.ask(&batch)? {
            Answer::NoCounterexample => Vec::new(),
            _ => batch
                .iter()
                .map(|c| solver.ask(std::slice::from_ref(c)))
                .collect::<io::Result<_>>()?,
        };
        slowest = slowest.max(asked.elapsed());
        for (index, check) in batch.iter().enumerate() {
            match answers.get(index) {
                None | Some(Answer::NoCounterexample) => {
                    agreed += 1;
                    may_wrap += check.may_wrap() as usize;
                    *counts.entry(check.kind()).or_default() += 1;
                }
                Some(Answer::Counterexample) => {
                    panic!(
                        "z3 has a counterexample (seed {seed:#x}):\n{}",
                        describe(check)
                    )
                }
                Some(Answer::GaveUp) => gave_up += 1,
            }
        }
    }
    println!(
        "z3 agreed on {agreed} cases in {:.0?}: {counts:?}",
        start.elapsed()
    );
    println!("  {may_wrap} of them with a variable that reaches an end of its type");
    println!(
        "  {gave_up} more were too hard within {TIMEOUT_MS} ms; the slowest batch took {slowest:.1?}"
    );
    assert!(
        gave_up * 100 < agreed,
        "z3 gave up on too many cases to say anything"
    );
    Ok(())
}
