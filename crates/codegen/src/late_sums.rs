//! Sums that clang would hand on a wait state too early.
//!
//! Who reads a sum of a matrix instruction of 16 passes owes it 20 wait states on gfx950. clang 22 looks 19
//! back, and where it finds these it adds none. So a state that it does not count stands in front of the
//! first statement that reads such sums.
//!
//! ```text
//! tw::mfma_32x32x64_e4m3fn(C_local + mi * 16, b.at(0), a.at(mi * 8));
//! for (int s = 0; s < 96; s += 16) {
//!   tw::late_sum<16>(C_local + s);
//! }
//! C_vec.set(v, tw::e4m3(C_local[c * 4 + v]));
//! ```

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Buffer, Inst, Kernel, Machine, MmaFamily, MmaInst, Stmt, StmtKind};

use crate::device::Piece;
use crate::kernel::Emitter;
use crate::numbered::{Numbered, Used, used};
use crate::place::Kind;

/// The cycles of the instructions in question.
const CYCLES: u32 = 16 * 4;

/// Sums of such instructions.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(crate) struct Late {
    buffer: Buffer,
    /// The elements of one instruction that a lane has.
    width: u32,
}

/// Those of a kernel but for `numbered` ones, which are waited for otherwise.
pub(crate) fn late_sums(kernel: &Kernel, machine: &Machine, numbered: &[Numbered]) -> Vec<Late> {
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
                buffer: op.dest.region.buffer,
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
    /// In front of a statement. What is no array of whole instructions' sums is left to the audit.
    pub(crate) fn wait_for_late_sums(&mut self, stmt: &Stmt) {
        for late in self.plan.late.clone() {
            let Used {
                reads, multiplied, ..
            } = used(stmt, |b| b == late.buffer);
            if multiplied {
                // A loop may read first what its iteration before has multiplied.
                self.unread.insert(late.buffer);
            }
            if !reads || multiplied || !self.unread.remove(&late.buffer) {
                continue;
            }
            let Some(storage) = self.storage.get(&late.buffer) else {
                continue;
            };
            let Some(shape) = self.func.buffers[late.buffer].const_shape() else {
                continue;
            };
            let (kind, name) = (storage.kind, storage.name.clone());
            let count: i64 = shape.iter().product();
            if kind != Kind::Array || count % i64::from(late.width) != 0 {
                continue;
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
}
