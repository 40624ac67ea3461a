//! Whether two accesses by different threads can meet at one place.
//!
//! This is the plain way, which says what the answer is: every place of the first access
//! remembers who touched it, every place of the second asks. [`crate::conflicts`] gives the same
//! answers faster and comes back to this where a value cannot be computed ahead of its guard.

use rustc_hash::FxHashMap;
use tilewright_ir::{BinOp, DType, Expr, ExprKind, Kernel, UnOp, Var};

use crate::access::{Points, Steps};

/// How many places are counted out before the answer is "yes" without looking.
pub const MAX_PLACES: usize = 1 << 19;

/// How far apart the threads are that meet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Meeting {
    /// No place is touched by both.
    Nowhere,
    /// No two threads touch one place, but a thread may do it twice.
    InThread,
    /// Only threads of one warp do.
    InWarp,
    /// Threads of different warps do, or may.
    AcrossWarps,
}

/// Who touched a place, in the fewest words that tell whom another thread meets there.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Owner(u32);

impl Owner {
    pub const NOBODY: Owner = Owner(u32::MAX);
    /// Threads of several warps.
    pub const MANY: Owner = Owner(u32::MAX - 1);
    /// Set on a warp's number where several of its threads, and no others, touched a place.
    const WARP: u32 = 1 << 30;

    pub fn thread(thread: u32) -> Owner {
        Owner(thread)
    }

    /// All of the threads from zero on.
    pub fn first_threads(count: u32, warp: u32) -> Owner {
        match count {
            0 => Owner::NOBODY,
            1 => Owner(0),
            _ if count <= warp => Owner(Owner::WARP),
            _ => Owner::MANY,
        }
    }

    /// Both touched the place.
    #[inline]
    pub fn and(self, other: Owner, warp: u32) -> Owner {
        if self == other || other == Owner::NOBODY {
            self
        } else if self == Owner::NOBODY {
            other
        } else if self == Owner::MANY || other == Owner::MANY || self.warp(warp) != other.warp(warp)
        {
            Owner::MANY
        } else {
            Owner(Owner::WARP | self.warp(warp))
        }
    }

    /// How those that touched the place first meet those that touch it now.
    #[inline]
    pub fn meets(self, other: Owner, warp: u32) -> Meeting {
        let one_thread = self == other && self.0 & Owner::WARP == 0;
        if self == Owner::NOBODY || other == Owner::NOBODY {
            Meeting::Nowhere
        } else if one_thread {
            Meeting::InThread
        } else if self == Owner::MANY || other == Owner::MANY {
            Meeting::AcrossWarps
        } else if self.warp(warp) == other.warp(warp) {
            Meeting::InWarp
        } else {
            Meeting::AcrossWarps
        }
    }

    /// The one warp, of an owner that is neither nobody nor many.
    fn warp(self, warp: u32) -> u32 {
        if self.0 & Owner::WARP != 0 {
            self.0 & !Owner::WARP
        } else {
            self.0 / warp
        }
    }
}

/// How the places of two accesses meet, the uniform parts being equal; `None` when that cannot
/// be counted out. `warp` is the number of threads that run together.
pub fn count_out(kernel: &Kernel, warp: u32, a: &Points, b: &Points) -> Option<Meeting> {
    // The places of both are multiples of one unit.
    let unit = gcd(gcd(a.grain(), b.grain()), gcd(a.bits, b.bits));
    if unit == 0 {
        return None;
    }
    let slots = |place: i64, bits: i64| {
        let start = place.div_euclid(unit);
        start..start + bits / unit
    };
    let mut owners: FxHashMap<i64, Owner> = FxHashMap::default();
    for_each_place(kernel, a, &mut |thread, place| {
        for slot in slots(place, a.bits) {
            let owner = owners.entry(slot).or_insert(Owner::NOBODY);
            *owner = owner.and(Owner::thread(thread), warp);
        }
        true
    })?;
    let mut met = Meeting::Nowhere;
    for_each_place(kernel, b, &mut |thread, place| {
        for slot in slots(place, b.bits) {
            if let Some(owner) = owners.get(&slot) {
                met = met.max(owner.meets(Owner::thread(thread), warp));
            }
        }
        met != Meeting::AcrossWarps
    })?;
    Some(met)
}

impl Points {
    /// A number that divides every place's distance from the constant part, and that too.
    fn grain(&self) -> i64 {
        self.varying
            .iter()
            .map(|(_, factor)| *factor)
            .fold(self.constant, gcd)
    }
}

/// Calls `f` with thread and place for every point, until it says stop.
fn for_each_place(
    kernel: &Kernel,
    points: &Points,
    f: &mut impl FnMut(u32, i64) -> bool,
) -> Option<()> {
    let threads = kernel.num_threads();
    let used: Vec<&(Var, Steps)> = points
        .axes
        .iter()
        .filter(|(var, _)| points.mentions(*var))
        .collect();
    let mut count = threads as usize;
    for (_, steps) in &used {
        count = count.checked_mul(usize::try_from(steps.count).ok()?)?;
        if count > MAX_PLACES {
            return None;
        }
    }
    if count == 0 {
        return Some(());
    }
    let mut env = Env::default();
    for thread in 0..threads {
        let [ex, ey, _] = kernel.threads;
        env.set(kernel.thread_vars[0], (thread % ex) as i64);
        env.set(kernel.thread_vars[1], (thread / ex % ey) as i64);
        env.set(kernel.thread_vars[2], (thread / (ex * ey)) as i64);
        let mut counters = vec![0; used.len()];
        'points: loop {
            for ((var, steps), &at) in used.iter().zip(&counters) {
                env.set(*var, steps.start + at * steps.step);
            }
            let mut inside = true;
            for guard in &points.guards {
                inside &= env.eval(guard)? != 0;
            }
            if inside {
                let mut place = points.constant;
                for (term, factor) in &points.varying {
                    place = place.checked_add(env.eval(term)?.checked_mul(*factor)?)?;
                }
                if !f(thread, place) {
                    return Some(());
                }
            }
            for (counter, (_, steps)) in counters.iter_mut().zip(&used).rev() {
                *counter += 1;
                if *counter < steps.count {
                    continue 'points;
                }
                *counter = 0;
            }
            break;
        }
    }
    Some(())
}

impl Points {
    fn mentions(&self, var: Var) -> bool {
        let terms = self.varying.iter().map(|(e, _)| e).chain(&self.guards);
        let mut found = false;
        for term in terms {
            term.walk(&mut |node| found |= node.as_var() == Some(var));
        }
        found
    }
}

/// Values of variables, by id.
#[derive(Default)]
struct Env {
    values: Vec<i64>,
}

impl Env {
    fn set(&mut self, var: Var, value: i64) {
        let at = var.as_u32() as usize;
        if self.values.len() <= at {
            self.values.resize(at + 1, 0);
        }
        self.values[at] = value;
    }

    /// The value of an integer expression over the variables set; wraps like its type.
    fn eval(&self, e: &Expr) -> Option<i64> {
        let value: i128 = match e.kind() {
            ExprKind::Int(value) => *value,
            ExprKind::Var(var) => *self.values.get(var.as_u32() as usize)? as i128,
            ExprKind::Cast(a) if is_integral(a.dtype()) && is_integral(e.dtype()) => {
                self.eval(a)? as i128
            }
            ExprKind::Unary(UnOp::Not, a) => (self.eval(a)? == 0) as i128,
            ExprKind::Unary(UnOp::BitNot, a) => !(self.eval(a)? as i128),
            ExprKind::Select {
                cond,
                then,
                otherwise,
            }
            | ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => {
                let arm = if self.eval(cond)? != 0 {
                    then
                } else {
                    otherwise
                };
                self.eval(arm)? as i128
            }
            ExprKind::Binary(op, a, b) => apply(*op, self.eval(a)?, self.eval(b)?)?,
            _ => return None,
        };
        i64::try_from(e.dtype().scalar.wrap(value)).ok()
    }
}

/// Whether an expression over known variables is one of integers throughout, which is what is
/// counted out. A division may still have no value at some point.
pub(crate) fn has_value(e: &Expr) -> bool {
    let mut known = true;
    e.walk(&mut |node| {
        let counted = match node.kind() {
            ExprKind::Int(_) | ExprKind::Var(_) | ExprKind::Cast(_) => true,
            ExprKind::Unary(op, _) => matches!(op, UnOp::Not | UnOp::BitNot),
            ExprKind::Binary(op, ..) => *op != BinOp::Div,
            ExprKind::Select { .. } | ExprKind::IfThenElse { .. } => true,
            _ => false,
        };
        known &= counted && is_integral(node.dtype());
    });
    known
}

pub(crate) fn is_integral(dtype: DType) -> bool {
    dtype.scalar.is_int() || dtype == DType::BOOL
}

/// The exact result of an operation on integers, before it wraps.
pub(crate) fn apply(op: BinOp, a: i64, b: i64) -> Option<i128> {
    let (x, y) = (a as i128, b as i128);
    Some(match op {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        BinOp::Mul => x * y,
        BinOp::FloorDiv if y != 0 => floor_div(a, b),
        BinOp::FloorMod if y != 0 => x - floor_div(a, b) * y,
        BinOp::TruncDiv if y != 0 => x / y,
        BinOp::TruncMod if y != 0 => x % y,
        BinOp::Min => x.min(y),
        BinOp::Max => x.max(y),
        BinOp::BitAnd => x & y,
        BinOp::BitOr => x | y,
        BinOp::BitXor => x ^ y,
        BinOp::Shl if (0..64).contains(&y) => x << y,
        BinOp::Shr if (0..64).contains(&y) => x >> y,
        BinOp::LogicalAnd => (x != 0 && y != 0) as i128,
        BinOp::LogicalOr => (x != 0 || y != 0) as i128,
        BinOp::Eq => (x == y) as i128,
        BinOp::Ne => (x != y) as i128,
        BinOp::Lt => (x < y) as i128,
        BinOp::Le => (x <= y) as i128,
        BinOp::Gt => (x > y) as i128,
        BinOp::Ge => (x >= y) as i128,
        _ => return None,
    })
}

fn floor_div(x: i64, y: i64) -> i128 {
    // Only the smallest number over minus one leaves the type.
    let (Some(q), Some(r)) = (x.checked_div(y), x.checked_rem(y)) else {
        return -(x as i128);
    };
    let down = r != 0 && (x < 0) != (y < 0);
    q as i128 - down as i128
}

/// The greatest common divisor; one where it would not fit.
pub(crate) fn gcd(a: i64, b: i64) -> i64 {
    let (mut a, mut b) = (a.unsigned_abs(), b.unsigned_abs());
    while b != 0 {
        (a, b) = (b, a % b);
    }
    i64::try_from(a).unwrap_or(1)
}
