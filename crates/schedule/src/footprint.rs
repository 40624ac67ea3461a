//! Whether two accesses by different threads can meet at one place.
//!
//! Places that depend only on thread indices and constant loops are counted out: each element
//! remembers who touched it. So the answer is exact where the places are known, and "yes"
//! where they are not.

use rustc_hash::FxHashMap;
use tilewright_ir::{BinOp, DType, Expr, ExprKind, Func, Kernel, UnOp, Var};

use crate::access::{Access, Points};

/// How many places are counted out before the answer is "yes" without looking.
const MAX_PLACES: usize = 1 << 19;

/// What lies between the two accesses.
#[derive(Clone, Copy)]
pub enum Between<'a> {
    /// Both run with the same values of all variables around them.
    Nothing,
    /// The second runs in a later iteration: the value of an expression for which this says
    /// true may have changed.
    LaterIteration(&'a dyn Fn(&Expr) -> bool),
}

impl std::fmt::Debug for Between<'_> {
    fn fmt(&self, f: &mut std::fmt::Formatter<'_>) -> std::fmt::Result {
        f.write_str(match self {
            Between::Nothing => "Nothing",
            Between::LaterIteration(_) => "LaterIteration",
        })
    }
}

/// How far apart the threads are that meet.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub enum Meeting {
    /// No two threads touch one place.
    Nowhere,
    /// Only threads of one warp do.
    InWarp,
    /// Threads of different warps do, or may.
    AcrossWarps,
}

/// Whether the accesses certainly conflict in one run of the statements around them: places and
/// conditions are all known, and two threads meet.
pub fn certain_conflict(func: &Func, kernel: &Kernel, first: &Access, second: &Access) -> bool {
    let known = |a: &Access| a.points.as_ref().is_some_and(|p| p.guards_known);
    known(first)
        && known(second)
        && conflict(func, kernel, 1, first, second, Between::Nothing) != Meeting::Nowhere
        && first.points.as_ref().map(|p| &p.uniform) == second.points.as_ref().map(|p| &p.uniform)
}

/// How the accesses conflict: one writes, and different threads may touch one place. `warp` is
/// the number of threads that run together.
pub fn conflict(
    func: &Func,
    kernel: &Kernel,
    warp: u32,
    first: &Access,
    second: &Access,
    between: Between<'_>,
) -> Meeting {
    if first.root != second.root
        || !(first.write || second.write)
        || (first.atomic && second.atomic)
    {
        return Meeting::Nowhere;
    }
    let (Some(a), Some(b)) = (&first.points, &second.points) else {
        return Meeting::AcrossWarps;
    };
    if let Between::LaterIteration(changes) = between
        && a.uniform.keys().chain(b.uniform.keys()).any(changes)
    {
        return Meeting::AcrossWarps;
    }
    if a.uniform != b.uniform {
        return Meeting::AcrossWarps;
    }
    meet(func, kernel, warp, first, a, b).unwrap_or(Meeting::AcrossWarps)
}

/// Whether different threads meet; `None` when that cannot be counted out.
fn meet(
    func: &Func,
    kernel: &Kernel,
    warp: u32,
    access: &Access,
    a: &Points,
    b: &Points,
) -> Option<Meeting> {
    let data = &func.buffers[access.root];
    let mut total = data.dtype.bits() as i64;
    for extent in &data.shape {
        total = total.checked_mul(i64::try_from(extent.as_int()?).ok()?)?;
    }
    // The places of both are multiples of one unit: the narrower of the two accesses' grain.
    let unit = gcd(gcd(a.grain(), b.grain()), gcd(a.bits, b.bits));
    if unit == 0 {
        return None;
    }
    let mut owners = Owners::new(total, unit, warp)?;
    for_each_place(kernel, a, &mut |thread, place| {
        owners.add(thread, place, a.bits);
        true
    })?;
    let mut met = Meeting::Nowhere;
    for_each_place(kernel, b, &mut |thread, place| {
        met = met.max(owners.meeting(thread, place, b.bits));
        met != Meeting::AcrossWarps
    })?;
    Some(met)
}

/// Who touched each unit of a buffer. Places may be shifted by a common unknown amount, so
/// the table starts at the lowest place seen.
struct Owners {
    unit: i64,
    limit: i64,
    warp: u32,
    first: FxHashMap<i64, u32>,
    dense: Vec<u32>,
}

const NOBODY: u32 = u32::MAX;
const MANY: u32 = u32::MAX - 1;
/// Set on a warp's number where several of its threads, and no others, touched a place.
const WARP: u32 = 1 << 30;

impl Owners {
    fn new(total: i64, unit: i64, warp: u32) -> Option<Owners> {
        let limit = total / unit;
        (limit <= 1 << 22).then(|| Owners {
            unit,
            limit,
            warp,
            first: FxHashMap::default(),
            dense: vec![NOBODY; limit.max(0) as usize],
        })
    }

    fn slots(&self, place: i64, bits: i64) -> std::ops::Range<i64> {
        let start = place.div_euclid(self.unit);
        start..start + bits / self.unit
    }

    fn add(&mut self, thread: u32, place: i64, bits: i64) {
        for slot in self.slots(place, bits) {
            let owner = if (0..self.limit).contains(&slot) {
                &mut self.dense[slot as usize]
            } else {
                self.first.entry(slot).or_insert(NOBODY)
            };
            let warp = thread / self.warp;
            *owner = match *owner {
                NOBODY => thread,
                same if same == thread => thread,
                MANY => MANY,
                held if held & WARP != 0 && held & !WARP == warp => held,
                one if one & WARP == 0 && one / self.warp == warp => WARP | warp,
                _ => MANY,
            };
        }
    }

    /// How the thread meets those that touched the place.
    fn meeting(&self, thread: u32, place: i64, bits: i64) -> Meeting {
        let warp = thread / self.warp;
        let mut met = Meeting::Nowhere;
        for slot in self.slots(place, bits) {
            let owner = if (0..self.limit).contains(&slot) {
                self.dense[slot as usize]
            } else {
                self.first.get(&slot).copied().unwrap_or(NOBODY)
            };
            met = met.max(match owner {
                NOBODY => Meeting::Nowhere,
                same if same == thread => Meeting::Nowhere,
                MANY => Meeting::AcrossWarps,
                held if held & WARP != 0 && held & !WARP == warp => Meeting::InWarp,
                one if one & WARP == 0 && one / self.warp == warp => Meeting::InWarp,
                _ => Meeting::AcrossWarps,
            });
        }
        met
    }
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
    let used: Vec<&(Var, Vec<i64>)> = points
        .axes
        .iter()
        .filter(|(var, _)| points.mentions(*var))
        .collect();
    let mut count = threads as usize;
    for (_, values) in &used {
        count = count.checked_mul(values.len())?;
        if count > MAX_PLACES {
            return None;
        }
    }
    let mut env = Env::default();
    for thread in 0..threads {
        let [ex, ey, _] = kernel.threads;
        env.set(kernel.thread_vars[0], (thread % ex) as i64);
        env.set(kernel.thread_vars[1], (thread / ex % ey) as i64);
        env.set(kernel.thread_vars[2], (thread / (ex * ey)) as i64);
        let mut counters = vec![0; used.len()];
        if used.iter().any(|(_, values)| values.is_empty()) {
            continue;
        }
        'points: loop {
            for ((var, values), &at) in used.iter().zip(&counters) {
                env.set(*var, values[at]);
            }
            let mut inside = true;
            for guard in &points.guards {
                inside &= env.eval(guard)? != 0;
            }
            if inside {
                let mut place = points.constant;
                for (term, factor) in &points.varying {
                    place += env.eval(term)? * factor;
                }
                if !f(thread, place) {
                    return Some(());
                }
            }
            for (counter, (_, values)) in counters.iter_mut().zip(&used).rev() {
                *counter += 1;
                if *counter < values.len() {
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
            ExprKind::Binary(op, a, b) => {
                let (x, y) = (self.eval(a)? as i128, self.eval(b)? as i128);
                apply(*op, x, y)?
            }
            _ => return None,
        };
        i64::try_from(e.dtype().scalar.wrap(value)).ok()
    }
}

fn is_integral(dtype: DType) -> bool {
    dtype.scalar.is_int() || dtype == DType::BOOL
}

fn apply(op: BinOp, x: i128, y: i128) -> Option<i128> {
    Some(match op {
        BinOp::Add => x + y,
        BinOp::Sub => x - y,
        BinOp::Mul => x * y,
        BinOp::FloorDiv if y != 0 => floor_div(x, y),
        BinOp::FloorMod if y != 0 => x - floor_div(x, y) * y,
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

fn floor_div(x: i128, y: i128) -> i128 {
    let q = x / y;
    if x % y != 0 && (x < 0) != (y < 0) {
        q - 1
    } else {
        q
    }
}

fn gcd(a: i64, b: i64) -> i64 {
    if b == 0 { a.abs() } else { gcd(b, a % b) }
}
