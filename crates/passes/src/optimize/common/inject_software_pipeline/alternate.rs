//! Two warp groups that take turns at the matrix unit.
//!
//! Consumers that compute between their products would all multiply at the same time and then all
//! compute. With two of them one has the unit while the other computes: who has issued the products
//! before the longest stretch without any lets the other go, and waits for it before the next ones.
//!
//! ```text
//! for k { if k == 0 { take turn }; product A; give turn; compute; take turn; product B }
//! give turn
//! ```
//! Group `g` takes turns by waiting for `turn[g]` and gives them by arriving at `turn[1 - g]`. The
//! first group finds its barrier open, so it is one turn ahead.

use tilewright_ir::{
    ArriveAt, Buffer, Expr, Func, Kernel, Machine, Span, Stmt, StmtKind, ThreadOp, WARP_GROUP,
};
use tilewright_schedule::order::{Completion, Step};

use super::pieces::Piece;
use super::roles::{Part, barrier};

/// Has two consumers take turns, where they compute between products. Returns the barrier that they
/// do it by.
pub(super) fn alternate(
    func: &mut Func,
    (kernel, machine): (&Kernel, &Machine),
    part: &mut Part,
) -> Option<Buffer> {
    const GROUPS: u32 = 2;
    if kernel.num_threads() != GROUPS * WARP_GROUP || part.scheduled.schedule.depth > 0 {
        return None;
    }
    let iteration = part.pieces.iteration?;
    let (last, next) = stretch(&part.pieces.list)?;
    let warps = WARP_GROUP / machine.warp_size;
    let turn = barrier(func, "turn".to_string(), warps, GROUPS);
    let dtype = func.vars[iteration].dtype;
    let turns = Turns {
        turn,
        thread: func.var_expr(kernel.thread_vars[0]),
        span: part.pieces.list[last].stmt.span,
    };
    let it = Expr::var(iteration, dtype);
    let first = StmtKind::If {
        cond: it.clone().equal(Expr::zero(dtype)),
        then: vec![turns.take(Expr::zero(dtype))],
        otherwise: Vec::new(),
    };
    let product = |piece: &Piece| piece.is_product_in_flight();
    let begin = part.pieces.list.iter().position(product)?;
    // From the end, so that places before stay.
    part.insert(next, turns.take(it + Expr::int(1, dtype)));
    part.insert(last + 1, turns.give());
    part.insert(begin, Stmt::new(first, turns.span));
    part.behind = vec![turns.give()];
    Some(turn)
}

/// The two products with the most statements between them that compute. Parts of one product, which
/// have the same registers, keep the unit long enough for what stands between them.
fn stretch(pieces: &[Piece]) -> Option<(usize, usize)> {
    let products = (0..pieces.len()).filter(|at| pieces[*at].is_product_in_flight());
    let products: Vec<usize> = products.collect();
    let computes = |piece: &&Piece| !matches!(piece.stmt.kind, StmtKind::Thread(_));
    let pairs = products.windows(2).map(|pair| (pair[0], pair[1]));
    let sum = |at: usize| {
        pieces[at]
            .stmt
            .as_group_product()
            .map(|op| op.dest.region.buffer)
    };
    let pairs = pairs.filter(|(a, b)| sum(*a).is_none() || sum(*a) != sum(*b));
    let between = |(a, b): &(usize, usize)| pieces[a + 1..*b].iter().filter(computes).count();
    pairs.max_by_key(between).filter(|pair| between(pair) > 0)
}

impl Part {
    /// Puts a statement before a piece.
    fn insert(&mut self, at: usize, stmt: Stmt) {
        let list = &mut self.pieces.list;
        let piece = Piece {
            stmt,
            completion: Completion::Sync,
            late: false,
            steps: None,
            bulk: None,
            ..list[at.min(list.len() - 1)]
        };
        list.insert(at, piece);
        let steps = &mut self.scheduled.schedule.steady.steps;
        let mut place = steps.len();
        for (index, step) in steps.iter_mut().enumerate() {
            if let Step::Run(own) = step
                && *own >= at
            {
                place = place.min(index);
                *own += 1;
            }
        }
        steps.insert(place, Step::Run(at));
    }
}

struct Turns {
    turn: Buffer,
    thread: Expr,
    span: Span,
}

impl Turns {
    /// Each group waits for its turn of this number.
    fn take(&self, number: Expr) -> Stmt {
        let dtype = number.dtype();
        let int = |n: i128| Expr::int(n, dtype);
        let wait = |group: i32, number: Expr| ThreadOp::BarrierWait {
            barrier: self.turn,
            index: Expr::i32(group),
            parity: number.floor_mod(int(2)),
        };
        self.by_group(wait(0, number.clone() + int(1)), wait(1, number))
    }

    /// Each group lets the other one go.
    fn give(&self) -> Stmt {
        let arrive = |group: i32| ThreadOp::BarrierArrive {
            at: ArriveAt::Own,
            barrier: self.turn,
            index: Expr::i32(group),
            warp: true,
        };
        self.by_group(arrive(1), arrive(0))
    }

    fn by_group(&self, first: ThreadOp, second: ThreadOp) -> Stmt {
        let block = |op: ThreadOp| vec![Stmt::new(StmtKind::Thread(op), self.span)];
        let kind = StmtKind::If {
            cond: self.thread.clone().lt(WARP_GROUP as i32),
            then: block(first),
            otherwise: block(second),
        };
        Stmt::new(kind, self.span)
    }
}
