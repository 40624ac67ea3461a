//! How a loop's body depends on the loop's index, and what makes unknown bounds known.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{BinOp, Expr, ExprKind, Loop, Stmt, StmtKind, ThreadOp, Var};

use super::scan::Scan;
use super::value::{Env, evaluate};

/// Iterations at which conditions are measured.
const MAX_MEASURED: i64 = 1 << 14;
/// The longest period of a loop.
const MAX_PERIOD: i64 = 32;

/// When the iterations of a loop are like earlier ones.
#[derive(Clone, Copy, Debug)]
pub struct Rhythm {
    pub period: i64,
    /// Whether places repeat at all: the index comes in by remainders only.
    pub regular: bool,
    /// Iterations at the start and at the end where conditions decide differently.
    head: i64,
    tail: i64,
    /// Iterations that a group may be ahead of one that waits for it at arrival barriers.
    ahead: i64,
}

impl Rhythm {
    /// What the body's text says. How far from the ends conditions decide differently is known
    /// with the bounds only ([`Rhythm::measured`]); until then it is taken from their constants.
    pub fn of(scan: &Scan<'_>, l: &Loop, var: Var) -> Rhythm {
        let (mut period, mut edge, mut regular, mut ahead) = (1, 0, true, 0);
        let mut first = 0;
        walk_stmts(&l.body, &mut |inner| {
            let decides = decides(scan, inner);
            scan.steady_exprs(inner, &mut |e| {
                let e = scan.expand(e);
                if !mentions(&e, var) {
                    return;
                }
                period = lcm(period, period_of(&e, var));
                regular &= decides || repeats(&e, var);
                if decides {
                    edge = edge.max(small_constants(&e).max(4) + 2);
                    first = first.max(small_constants(&e) + 1);
                }
            });
            if let StmtKind::Thread(ThreadOp::BarrierWait { barrier, .. }) = &inner.kind {
                let barriers = scan.func.buffers[*barrier].const_shape();
                ahead = ahead.max(barriers.iter().flatten().product());
            }
            // A scalar that the body writes may hold something else each time.
            regular &= writes_no_scalar(scan, inner);
        });
        regular &= period <= MAX_PERIOD;
        let period = period.clamp(1, MAX_PERIOD);
        Rhythm {
            period,
            regular,
            // What is different in the first iterations is so until a period later.
            head: edge.max(if first > 0 { first + period } else { 0 }),
            tail: edge,
            // A producer is ahead of its consumers, they of the other block's producer, and so round.
            ahead: match scan.ranks as i64 {
                1 => ahead,
                blocks => ahead * 2 * blocks,
            },
        }
    }

    /// Whether groups wait for each other in the loop.
    pub fn meets(&self) -> bool {
        self.ahead > 0
    }

    /// Iterations until the state must repeat.
    pub fn lead(&self) -> i64 {
        self.head + self.ahead + 2 * self.period + 2
    }

    /// Iterations at the end that are always run: a group that lags must not see the others
    /// leave the loop before its state is compared.
    pub fn rest(&self) -> i64 {
        self.tail + self.ahead + 2
    }

    /// The same with known bounds (variable, first value, step, count): beyond `head` and
    /// before `tail` the [conditions](deciding) over the index repeat with the period.
    pub fn measured(
        self,
        conditions: &[Expr],
        env: &Env,
        (var, first, step, count): (Var, i64, i64, i64),
    ) -> Rhythm {
        let mut found = Rhythm {
            head: 0,
            tail: 0,
            ..self
        };
        for cond in conditions {
            let cond = env.fold(cond);
            if !mentions(&cond, var) {
                continue;
            }
            if count > MAX_MEASURED {
                found.regular = false;
                continue;
            }
            let at = |n: i64| {
                let value = first + n * step;
                evaluate(&cond, &|v| (v == var).then_some(value))
            };
            let values: Vec<Option<i64>> = (0..count).map(at).collect();
            let later = values.iter().skip(self.period as usize);
            for (n, (now, then)) in values.iter().zip(later).enumerate() {
                if now != then {
                    // The iteration a period later is the first that is different.
                    let from_start = n as i64 + self.period;
                    let from_end = count - from_start;
                    if from_start <= from_end {
                        found.head = found.head.max(from_start);
                    } else {
                        found.tail = found.tail.max(from_end);
                    }
                }
            }
        }
        found
    }
}

/// How many iterations are left out of loops in which groups wait for each other: of all that run
/// about as long the same.
#[derive(Clone, Default, PartialEq, Eq, Debug)]
pub struct Leaps(Vec<Leap>);

#[derive(Clone, PartialEq, Eq, Debug)]
struct Leap {
    /// The iterations of the first of the loops.
    count: i64,
    /// The fewest that can be left out of one of them, and the period of all.
    room: i64,
    period: i64,
}

impl Leaps {
    /// What is left out of a loop with this many iterations, if `room` is what could be.
    pub fn of(&mut self, count: i64, room: i64, period: i64) -> i64 {
        /// Loops of several groups differ by the iterations that are written out before or after.
        const ABOUT: i64 = 4;
        let known = self.0.iter_mut().find(|l| (l.count - count).abs() <= ABOUT);
        let leap = match known {
            Some(leap) => {
                leap.room = leap.room.min(room);
                leap.period = lcm(leap.period, period);
                leap.clone()
            }
            None => {
                let leap = Leap {
                    count,
                    room,
                    period,
                };
                self.0.push(leap.clone());
                leap
            }
        };
        leap.room / leap.period * leap.period
    }
}

/// The conditions in a loop that decide what an iteration does, with `let`s put in.
pub fn deciding(scan: &Scan<'_>, l: &Loop) -> Vec<Expr> {
    let mut found = Vec::new();
    walk_stmts(&l.body, &mut |inner| {
        if let StmtKind::If { cond, .. } = &inner.kind
            && decides(scan, inner)
        {
            found.push(scan.expand(cond));
        }
    });
    found
}

/// Whether the statement is a condition that decides what an iteration does as a whole. One that
/// threads decide for themselves says where they touch memory, not whether.
fn decides(scan: &Scan<'_>, stmt: &Stmt) -> bool {
    match &stmt.kind {
        StmtKind::If { cond, .. } => scan.is_sync(stmt) || !scan.varies(cond),
        _ => false,
    }
}

/// The largest of the small constants in an expression: how far ahead a guard looks.
fn small_constants(e: &Expr) -> i64 {
    let mut most = 0;
    e.walk(&mut |node| {
        let value = node.as_int().and_then(|v| i64::try_from(v).ok());
        most = most.max(value.filter(|v| *v <= 16).unwrap_or(0));
    });
    most
}

/// Whether the statement itself writes no followed scalar.
fn writes_no_scalar(scan: &Scan<'_>, stmt: &Stmt) -> bool {
    !matches!(&stmt.kind, StmtKind::Store { buffer, .. } if scan.is_scalar(*buffer))
}

fn mentions(e: &Expr, var: Var) -> bool {
    let mut found = false;
    e.walk(&mut |node| found |= node.as_var() == Some(var));
    found
}

/// Whether the variable comes in by remainders by constants only.
fn repeats(e: &Expr, var: Var) -> bool {
    match e.kind() {
        ExprKind::Var(v) => *v != var,
        ExprKind::Binary(BinOp::FloorMod | BinOp::TruncMod, a, b) if b.as_int().is_some() => {
            !mentions(b, var) && quotient(a, var)
        }
        ExprKind::Binary(BinOp::BitAnd, a, b)
            if b.as_int()
                .is_some_and(|c| c >= 0 && (c + 1).count_ones() == 1) =>
        {
            quotient(a, var)
        }
        kind => {
            let mut all = true;
            kind.each_operand(|operand| all &= repeats(operand, var));
            all
        }
    }
}

/// Whether the variable comes in by sums, products with constants and quotients by constants,
/// whose remainders repeat.
fn quotient(e: &Expr, var: Var) -> bool {
    match e.kind() {
        ExprKind::Binary(BinOp::Add | BinOp::Sub, a, b) => quotient(a, var) && quotient(b, var),
        ExprKind::Binary(BinOp::Mul | BinOp::FloorDiv | BinOp::TruncDiv, a, b) => {
            b.as_int().is_some() && quotient(a, var)
        }
        ExprKind::Cast(a) => quotient(a, var),
        ExprKind::Var(_) => true,
        _ => repeats(e, var),
    }
}

/// After how many steps of the variable the expression repeats, as far as it does: remainders
/// by constants, of quotients by constants.
fn period_of(e: &Expr, var: Var) -> i64 {
    let mut period = 1;
    e.walk(&mut |node| {
        let ExprKind::Binary(op, a, b) = node.kind() else {
            return;
        };
        let (Some(by), true) = (b.as_int(), mentions(a, var)) else {
            return;
        };
        let by = i64::try_from(by).unwrap_or(1).saturating_abs().max(1);
        match op {
            BinOp::FloorMod | BinOp::TruncMod => {
                let mut quotients = 1i64;
                a.walk(&mut |inner| {
                    if let ExprKind::Binary(BinOp::FloorDiv | BinOp::TruncDiv, x, y) = inner.kind()
                        && mentions(x, var)
                        && let Some(y) = y.as_int()
                    {
                        quotients = quotients.saturating_mul(i64::try_from(y).unwrap_or(1).max(1));
                    }
                });
                period = lcm(period, by.saturating_mul(quotients));
            }
            BinOp::BitAnd if (by + 1).count_ones() == 1 => period = lcm(period, by + 1),
            _ => {}
        }
    });
    period
}

fn lcm(a: i64, b: i64) -> i64 {
    (a / gcd(a, b).max(1)).saturating_mul(b)
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 {
        a.saturating_abs()
    } else {
        gcd(b, a % b)
    }
}

/// `e` as a core plus a constant.
pub fn core(e: &Expr) -> (Expr, i64) {
    let small = |e: &Expr| i64::try_from(e.as_int()?).ok();
    match e.kind() {
        ExprKind::Binary(BinOp::Add, a, b) => match (small(a), small(b)) {
            (_, Some(c)) => {
                let (core, offset) = core(a);
                (core, offset.saturating_add(c))
            }
            (Some(c), _) => {
                let (core, offset) = core(b);
                (core, offset.saturating_add(c))
            }
            _ => (e.clone(), 0),
        },
        ExprKind::Binary(BinOp::Sub, a, b) => match small(b) {
            Some(c) => {
                let (core, offset) = core(a);
                (core, offset.saturating_sub(c))
            }
            None => (e.clone(), 0),
        },
        ExprKind::Binary(BinOp::Max, a, b) => match (small(a), small(b)) {
            (_, Some(_)) => core(a),
            (Some(_), _) => core(b),
            _ => (e.clone(), 0),
        },
        _ => (e.clone(), 0),
    }
}

/// A value of the variable, not negative, at which the expression is `wanted`; it is taken to
/// grow with the variable.
pub fn solve(e: &Expr, var: Var, wanted: i64) -> Option<i64> {
    let at = |value: i64| evaluate(e, &|v| (v == var).then_some(value));
    let mut high = 1i64;
    while at(high)? < wanted {
        high = high.checked_mul(2).filter(|h| *h < 1 << 30)?;
    }
    let mut low = 0i64;
    while low < high {
        let middle = low + (high - low) / 2;
        if at(middle)? >= wanted {
            high = middle;
        } else {
            low = middle + 1;
        }
    }
    (at(low)? == wanted).then_some(low)
}
