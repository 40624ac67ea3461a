//! Arms of an `if` that whole warp groups take: `if tx < 128:`, `if warp_group == 0:`.
//!
//! Tile statements in them are those groups' alone, as in `with T.ws(…)`.

use tilewright_ir::target::WARP_GROUP;
use tilewright_ir::{BinOp, Block, Expr, ExprKind, Span, Stmt, StmtKind, UnOp, visit};

use crate::codes;
use crate::lang::is_tile_work;
use crate::record::Recorder;
use crate::{Error, Result};

/// Steps of the evaluation of one condition for one thread.
const MAX_STEPS: u32 = 200;

/// What the evaluation of a condition came by.
#[derive(Default)]
struct Walk {
    steps: u32,
    /// Whether a thread's index was asked for.
    by_thread: bool,
}

impl Recorder {
    /// Records an `if` whose arms have tile statements as regions of warp groups, where each
    /// group takes one arm whole. Returns false where it is another `if`.
    pub(crate) fn emit_groups(
        &mut self,
        cond: &Expr,
        then: &mut Block,
        otherwise: &mut Block,
        span: Span,
    ) -> Result<bool> {
        if self.in_parallel() || self.lang.warp_groups > 0 {
            return Ok(false);
        }
        if !has_tile_work(then) && !has_tile_work(otherwise) {
            return Ok(false);
        }
        let Some(taken) = self.groups_that_take(cond) else {
            return Ok(false);
        };
        let arms = [
            (true, std::mem::take(then)),
            (false, std::mem::take(otherwise)),
        ];
        for (arm, body) in arms {
            let groups: Vec<u32> = (0..)
                .zip(&taken)
                .filter(|(_, t)| **t == arm)
                .map(|(group, _)| group)
                .collect();
            self.emit_region(&groups, body, span)?;
        }
        Ok(true)
    }

    /// The statements as a region of the groups. What are regions themselves, as the arms of
    /// an `elif` are, become smaller ones.
    fn emit_region(&mut self, groups: &[u32], body: Block, span: Span) -> Result<()> {
        if groups.is_empty() || body.is_empty() {
            return Ok(());
        }
        let is_region = |s: &Stmt| matches!(s.kind, StmtKind::WarpGroup { .. });
        if body.iter().all(is_region) {
            for stmt in body {
                if let StmtKind::WarpGroup { groups: own, body } = stmt.kind {
                    let both = own.iter().copied().filter(|g| groups.contains(g));
                    let groups: Vec<u32> = both.collect();
                    if !groups.is_empty() {
                        self.emit_at(StmtKind::WarpGroup { groups, body }, stmt.span)?;
                    }
                }
            }
            return Ok(());
        }
        let mut inner = None;
        visit::walk_stmts(&body, &mut |s| {
            if is_region(s) {
                inner.get_or_insert(s.span);
            }
        });
        if let Some(inner) = inner {
            let message = "warp groups are parted here inside an arm that others do not take";
            let error = self
                .error(codes::WARP_GROUP, inner, message)
                .also(span, "the outer condition")
                .help("write one chain of `if` and `elif`, or one `with T.ws(…)` a role");
            return Err(Error::from(error));
        }
        let groups = groups.to_vec();
        self.emit_at(StmtKind::WarpGroup { groups, body }, span)
    }

    /// For each warp group of the block whether the condition holds; none where the threads of
    /// a group disagree, or where it depends on more than the thread.
    fn groups_that_take(&self, cond: &Expr) -> Option<Vec<bool>> {
        let kernel = self.kernel.as_ref()?;
        let threads = kernel.num_threads();
        if !threads.is_multiple_of(WARP_GROUP) {
            return None;
        }
        let mut groups = Vec::new();
        let mut walk = Walk::default();
        for thread in 0..threads {
            walk.steps = 0;
            let holds = self.at_thread(cond, thread, &mut walk)? != 0;
            if thread.is_multiple_of(WARP_GROUP) {
                groups.push(holds);
            } else if groups.last() != Some(&holds) {
                return None;
            }
        }
        walk.by_thread.then_some(groups)
    }

    /// The value of an expression of thread indices in the thread of this number.
    fn at_thread(&self, e: &Expr, thread: u32, walk: &mut Walk) -> Option<i128> {
        walk.steps += 1;
        if walk.steps > MAX_STEPS {
            return None;
        }
        match e.kind() {
            ExprKind::Int(v) => Some(*v),
            ExprKind::Var(var) => {
                let kernel = self.kernel.as_ref()?;
                let [x, y, _] = kernel.threads;
                let at = [thread % x, thread / x % y, thread / x / y];
                match kernel.thread_vars.iter().position(|v| v == var) {
                    Some(axis) => {
                        walk.by_thread = true;
                        Some(at[axis].into())
                    }
                    None => self.at_thread(self.let_values.get(var)?, thread, walk),
                }
            }
            ExprKind::Unary(UnOp::Not, a) => {
                Some(i128::from(self.at_thread(a, thread, walk)? == 0))
            }
            ExprKind::Cast(a) => {
                let value = self.at_thread(a, thread, walk)?;
                let (low, high) = e.dtype().scalar.int_range()?;
                (low..=high).contains(&value).then_some(value)
            }
            ExprKind::Binary(op, a, b) => {
                let a = self.at_thread(a, thread, walk)?;
                match op {
                    BinOp::LogicalAnd if a == 0 => return Some(0),
                    BinOp::LogicalOr if a != 0 => return Some(1),
                    _ => {}
                }
                let b = self.at_thread(b, thread, walk)?;
                let truth = |b: bool| Some(i128::from(b));
                let value = match op {
                    BinOp::Add => a.checked_add(b),
                    BinOp::Sub => a.checked_sub(b),
                    BinOp::Mul => a.checked_mul(b),
                    BinOp::FloorDiv if b > 0 => Some(a.div_euclid(b)),
                    BinOp::FloorMod if b > 0 => Some(a.rem_euclid(b)),
                    BinOp::Shr if (0..31).contains(&b) => Some(a >> b),
                    BinOp::BitAnd => Some(a & b),
                    BinOp::Min => Some(a.min(b)),
                    BinOp::Max => Some(a.max(b)),
                    BinOp::LogicalAnd | BinOp::LogicalOr => truth(b != 0),
                    BinOp::Eq => truth(a == b),
                    BinOp::Ne => truth(a != b),
                    BinOp::Lt => truth(a < b),
                    BinOp::Le => truth(a <= b),
                    BinOp::Gt => truth(a > b),
                    BinOp::Ge => truth(a >= b),
                    _ => None,
                };
                let (low, high) = e.dtype().scalar.int_range()?;
                value.filter(|v| (low..=high).contains(v))
            }
            _ => None,
        }
    }
}

fn has_tile_work(block: &Block) -> bool {
    let mut found = false;
    visit::walk_stmts(block, &mut |s| found |= is_tile_work(s));
    found
}
