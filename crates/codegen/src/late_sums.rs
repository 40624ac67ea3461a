//! Sums that clang would hand on a wait state too early.
//!
//! Who reads a sum of a matrix instruction of 16 passes owes it 20 wait states on gfx950. clang 22 looks 19
//! back, and where it finds these it adds none. So a state that it does not count stands in front of the
//! first statement that reads such sums, on every way: what one arm of a condition reads is not read where
//! the other is taken, and what stands behind a loop may be reached from wherever the loop is left.
//!
//! ```text
//! tw::mfma_32x32x64_e4m3fn(C_local + mi * 16, b.at(0), a.at(mi * 8));
//! for (int s = 0; s < 96; s += 16) {
//!   tw::late_sum<16>(C_local + s);
//! }
//! C_vec.set(v, tw::e4m3(C_local[c * 4 + v]));
//! ```

use rustc_hash::FxHashSet;
use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::{
    Buffer, Expr, ExprKind, Func, Inst, Kernel, Machine, MmaFamily, MmaInst, Stmt, StmtKind,
};

use crate::device::Piece;
use crate::kernel::Emitter;
use crate::numbered::{Numbered, Used, used};
use crate::place::Kind;

/// The cycles of the instructions in question.
const CYCLES: u32 = 16 * 4;

/// Sums of such instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Late {
    /// Whose registers these are: views of it are read as it is.
    buffer: Buffer,
    /// The elements of one instruction that a lane has.
    width: u32,
}

/// Those of a kernel but for `numbered` ones, which are waited for otherwise.
pub(crate) fn late_sums(
    func: &Func,
    kernel: &Kernel,
    machine: &Machine,
    numbered: &[Numbered],
) -> Vec<Late> {
    let is_late = |inst: &MmaInst| {
        let facts = machine.mma.iter().find(|facts| facts.inst == *inst);
        facts.is_some_and(|facts| facts.cycles == CYCLES)
            && inst.family == MmaFamily::Mfma
            && inst.acc.bits() == 32
    };
    let mut list = Vec::new();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Micro(op) = &stmt.kind
            && let Inst::Mma(inst) = op.inst
            && is_late(&inst)
            && numbered
                .iter()
                .all(|sum| sum.buffer != op.dest.region.buffer)
        {
            let late = Late {
                buffer: func.root(op.dest.region.buffer),
                width: u32::from(inst.m) * u32::from(inst.n) / machine.warp_size,
            };
            if !list.contains(&late) {
                list.push(late);
            }
        }
    });
    list
}

impl Emitter<'_> {
    /// In front of a statement.
    pub(crate) fn wait_for_late_sums(&mut self, stmt: &Stmt) {
        for late in self.plan.late.clone() {
            let func = self.func;
            let is_late = |b| func.root(b) == late.buffer;
            let Used {
                reads, multiplied, ..
            } = used(stmt, is_late);
            let reads = match multiplied {
                // What is in it waits for itself; what decides whether it runs is read here.
                true => !child_blocks(stmt).is_empty() && reads_itself(stmt, is_late),
                false => reads,
            };
            if reads && self.unread.remove(&late.buffer) {
                self.wait_for(late);
            }
            if multiplied && child_blocks(stmt).is_empty() {
                self.unread.insert(late.buffer);
            }
        }
    }

    /// What may not have been waited for behind a statement, whatever is waited for inside of it: some
    /// waves skip it, or a loop has no iteration, or is left where it has just multiplied. An iteration may
    /// begin with any of it, which the one before has left.
    pub(crate) fn unread_around(&mut self, stmt: &Stmt) -> FxHashSet<Buffer> {
        let func = self.func;
        match &stmt.kind {
            StmtKind::For(_) | StmtKind::While { .. } => {
                let late = self.plan.late.iter().map(|late| late.buffer);
                let multiplied =
                    late.filter(|late| used(stmt, |b| func.root(b) == *late).multiplied);
                self.unread.extend(multiplied);
                self.unread.clone()
            }
            StmtKind::WarpGroup { .. } => self.unread.clone(),
            _ => FxHashSet::default(),
        }
    }

    /// What is no array of whole instructions' sums is left to the audit.
    fn wait_for(&mut self, late: Late) {
        let Some(storage) = self.storage.get(&late.buffer) else {
            return;
        };
        let Some(shape) = self.func.buffers[late.buffer].const_shape() else {
            return;
        };
        let (kind, name) = (storage.kind, storage.name.clone());
        let count: i64 = shape.iter().product();
        if kind != Kind::Array || count % i64::from(late.width) != 0 {
            return;
        }
        self.needs.piece(Piece::Waits);
        self.out.directive("#pragma unroll");
        self.out.line(format!(
            "for (int s = 0; s < {count}; s += {}) {{",
            late.width
        ));
        self.out.indent();
        self.out
            .line(format!("tw::late_sum<{}>({name} + s);", late.width));
        self.out.dedent();
        self.out.line("}");
    }
}

/// Whether a statement reads some sums outside of the blocks in it.
fn reads_itself(stmt: &Stmt, is_sum: impl Fn(Buffer) -> bool) -> bool {
    let mut reads = false;
    stmt_exprs(stmt, &mut |e: &Expr| {
        e.walk_distinct(&mut |node| {
            if let ExprKind::Load { buffer, .. } = node.kind() {
                reads |= is_sum(*buffer);
            }
        });
    });
    reads
}
