//! Sums whose registers have numbers.
//!
//! A wave that has a SIMD of AMD for itself has 256 vector registers and 256 accumulation registers, and
//! matrix instructions add to either. Sums of more than half of the former leave the compiler too few
//! for all else: it moves some to the latter and back, in the loop (`v_accvgpr_…`). So they are no
//! values of the compiler's: each has accumulation registers of its own, which instructions name. Indices
//! are constants once loops are unrolled.
//!
//! ```text
//! constexpr int C_local = 0; // a0 to a255
//! …
//! tw::mfma_16x16x32_bfloat16(C_local + mi * 32 + ni * 4, b.at(ni * 8), a.at(mi * 8));
//! ```
//!
//! The compiler looks for no hazards there: who reads or writes elements waits for matrix instructions
//! first (`tw::settle_sums`), and where vector instructions make operands the matrix instruction waits for
//! these ([`computed`]). Nor does it keep such registers free: where it has too few others it puts
//! values of its own there, which must not stay across products (`tw::keep_sums`), and the audit of
//! compiled kernels refuses code that writes one.

use rustc_hash::FxHashSet;
use tilewright_ir::touched::touched;
use tilewright_ir::visit::{child_blocks, stmt_exprs, walk_stmts};
use tilewright_ir::{
    Access, Block, Buffer, BufferOrigin, Expr, ExprKind, Func, Inst, Kernel, LoopKind, Machine,
    MicroOp, MmaFamily, Stmt, StmtKind, Var,
};

use crate::device::Piece;
use crate::kernel::Emitter;

/// A sum and its registers.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Numbered {
    pub buffer: Buffer,
    pub first: u32,
    pub count: u32,
}

/// The sums of a kernel whose registers have numbers: all or none.
pub fn numbered(func: &Func, kernel: &Kernel, machine: &Machine) -> Vec<Numbered> {
    let all = machine.registers.accumulation;
    let mut sums: Vec<(Buffer, u32)> = Vec::new();
    // Sums that stay the compiler's it would put into these registers where it has too few others.
    let mut theirs = false;
    walk_stmts(&kernel.body, &mut |stmt| {
        if let Some(buffer) = sum_of(stmt)
            && sums.iter().all(|(known, _)| *known != buffer)
        {
            match registers_of(func, buffer) {
                Some(count) if count > all / 2 => sums.push((buffer, count)),
                _ => theirs = true,
            }
        }
    });
    if sums.is_empty() || theirs {
        return Vec::new();
    }
    let mut uses = Uses {
        func,
        sums: sums.iter().map(|(buffer, _)| *buffer).collect(),
        constants: FxHashSet::default(),
    };
    uses.block(&kernel.body);
    let mut list = Vec::new();
    let mut first = 0;
    for (buffer, count) in sums {
        if !uses.sums.contains(&buffer) || first + count > all {
            return Vec::new();
        }
        list.push(Numbered {
            buffer,
            first,
            count,
        });
        first += count;
    }
    list
}

/// The arrays that something else fills than loads of whole registers: vector instructions put their
/// elements together.
pub(crate) fn computed(func: &Func, kernel: &Kernel) -> FxHashSet<Buffer> {
    let mut found = FxHashSet::default();
    walk_stmts(&kernel.body, &mut |stmt| {
        if let StmtKind::Micro(op) = &stmt.kind
            && loads_registers(func, op)
        {
            return;
        }
        touched(stmt, &mut |access| {
            if access.mode.writes() {
                found.insert(func.root(access.buffer));
            }
        });
    });
    found
}

/// Whether an operation loads whole registers, as they are.
fn loads_registers(func: &Func, op: &MicroOp) -> bool {
    const REGISTER: u32 = 32;
    let whole = match op.inst {
        Inst::DsReadTr => true,
        Inst::Load => {
            let bits = func.buffers[op.dest.region.buffer].dtype.bits();
            op.apart == 1 && (op.width * bits).is_multiple_of(REGISTER)
        }
        _ => false,
    };
    whole && op.pred.is_none() && op.otherwise.is_none()
}

/// What a matrix instruction of one wave adds to.
fn sum_of(stmt: &Stmt) -> Option<Buffer> {
    match &stmt.kind {
        StmtKind::Micro(op) if multiplies(op) => Some(op.dest.region.buffer),
        _ => None,
    }
}

fn multiplies(op: &MicroOp) -> bool {
    matches!(op.inst, Inst::Mma(inst) if inst.family == MmaFamily::Mfma)
}

/// The registers of an array of 32-bit elements.
fn registers_of(func: &Func, buffer: Buffer) -> Option<u32> {
    let data = &func.buffers[buffer];
    let plain = data.dtype.bits() == 32 && data.dtype.lanes == 1 && data.versions <= 1;
    let count: i64 = data.const_shape()?.iter().product();
    u32::try_from(count).ok().filter(|_| plain)
}

/// Finds sums that are used in ways that numbers are not for.
struct Uses<'f> {
    func: &'f Func,
    /// Those for which no such use was found.
    sums: FxHashSet<Buffer>,
    /// Indices that are constants once loops are unrolled.
    constants: FxHashSet<Var>,
}

impl Uses<'_> {
    fn block(&mut self, block: &Block) {
        for stmt in block {
            self.stmt(stmt);
        }
    }

    fn stmt(&mut self, stmt: &Stmt) {
        match &stmt.kind {
            StmtKind::Micro(op) => return self.micro_op(op),
            StmtKind::Alloc(buffer) => {
                if let BufferOrigin::View(base) = self.func.buffers[*buffer].origin {
                    self.sums.remove(&base);
                }
            }
            StmtKind::Store {
                buffer, indices, ..
            } => self.element(*buffer, indices),
            _ => touched(stmt, &mut |access| {
                self.sums.remove(&access.buffer);
            }),
        }
        stmt_exprs(stmt, &mut |e| self.expr(e));
        // What stands before a body is read where nothing waits for products of the body.
        if !child_blocks(stmt).is_empty() {
            stmt_exprs(stmt, &mut |e| self.refuse(e));
        }
        let constant = match &stmt.kind {
            StmtKind::For(l) => match (&l.kind, l.axes.as_slice()) {
                (LoopKind::Unroll { factor: None } | LoopKind::Vectorized, [axis]) => {
                    Some(axis.var)
                }
                (_, [axis]) if axis.const_trip_count() == Some(1) => Some(axis.var),
                _ => None,
            },
            _ => None,
        };
        self.constants.extend(constant);
        for child in child_blocks(stmt) {
            self.block(child);
        }
        if let Some(var) = constant {
            self.constants.remove(&var);
        }
    }

    fn micro_op(&mut self, op: &MicroOp) {
        let axes: Vec<Var> = op.axes.iter().map(|(var, _)| *var).collect();
        self.constants.extend(&axes);
        // Loads that are counted fill arrays of the compiler's.
        let plain = op.otherwise.is_none() && op.counter.is_none();
        let moves = matches!(op.inst, Inst::Load | Inst::Store) && plain;
        for source in &op.sources {
            self.access(source, moves);
        }
        self.access(&op.dest, moves || multiplies(op));
        op.pred.iter().for_each(|e| self.expr(e));
        op.otherwise.iter().for_each(|e| self.expr(e));
        for var in &axes {
            self.constants.remove(var);
        }
    }

    fn access(&mut self, access: &Access, by_number: bool) {
        access.at.iter().for_each(|e| self.expr(e));
        access.slot.iter().for_each(|e| self.expr(e));
        match by_number {
            true => self.element(access.region.buffer, &access.at),
            false => {
                self.sums.remove(&access.region.buffer);
            }
        }
    }

    fn expr(&mut self, e: &Expr) {
        e.walk_distinct(&mut |node| match node.kind() {
            ExprKind::Load { buffer, indices } => self.element(*buffer, indices),
            ExprKind::AddressOf { buffer, .. } => {
                self.sums.remove(buffer);
            }
            _ => {}
        });
    }

    fn refuse(&mut self, e: &Expr) {
        e.walk_distinct(&mut |node| {
            if let ExprKind::Load { buffer, .. } = node.kind() {
                self.sums.remove(buffer);
            }
        });
    }

    fn element(&mut self, buffer: Buffer, indices: &[Expr]) {
        if !self.sums.contains(&buffer) {
            return;
        }
        let mut constant = true;
        for index in indices {
            index.walk_distinct(&mut |node| match node.kind() {
                ExprKind::Var(var) => constant &= self.constants.contains(var),
                ExprKind::Load { .. } => constant = false,
                _ => {}
            });
        }
        if !constant {
            self.sums.remove(&buffer);
        }
    }
}

/// What a statement does with some sums.
#[derive(Default)]
pub(crate) struct Used {
    /// It names elements, for a matrix instruction or not.
    pub reads: bool,
    pub writes: bool,
    pub multiplied: bool,
}

/// Of a statement with all that is in it.
pub(crate) fn used(stmt: &Stmt, is_sum: impl Fn(Buffer) -> bool) -> Used {
    let mut used = Used::default();
    walk_stmts(std::slice::from_ref(stmt), &mut |stmt| {
        used.multiplied |= sum_of(stmt).is_some_and(&is_sum);
        touched(stmt, &mut |access| {
            used.reads |= is_sum(access.buffer);
            used.writes |= is_sum(access.buffer) && access.mode.writes();
        });
        stmt_exprs(stmt, &mut |e| {
            e.walk_distinct(&mut |node| {
                if let ExprKind::Load { buffer, .. } = node.kind() {
                    used.reads |= is_sum(*buffer);
                }
            });
        });
    });
    used
}

impl Emitter<'_> {
    pub(crate) fn number_of(&self, buffer: Buffer) -> Option<Numbered> {
        let mut all = self.plan.numbered.iter();
        all.find(|sum| sum.buffer == buffer).copied()
    }

    /// Of a statement that uses elements of sums by number and multiplies nothing, whether it writes any.
    /// Before it, and behind it where it does, matrix instructions are waited for once.
    pub(crate) fn elements_of_sums(&self, stmt: &Stmt) -> Option<bool> {
        if self.plan.numbered.is_empty() {
            return None;
        }
        let is_sum = |buffer| self.number_of(buffer).is_some();
        let Used {
            reads,
            writes,
            multiplied,
        } = used(stmt, is_sum);
        (reads && !multiplied).then_some(writes)
    }

    /// Waits for matrix instructions under way, and for elements that were written.
    pub(crate) fn settle_sums(&mut self) {
        self.needs.piece(Piece::Sums);
        self.out.line("tw::settle_sums();");
    }

    /// In front of a cluster of products, and of the first product of a block: what the compiler keeps
    /// around a loop is live here.
    pub(crate) fn keep_sums(&mut self, stmt: &Stmt, kept: &mut bool) {
        if let (StmtKind::Micro(op), Some(sum)) = (&stmt.kind, sum_of(stmt))
            && self.number_of(sum).is_some()
            && (op.count() > 1 || !*kept)
        {
            *kept = true;
            self.needs.piece(Piece::Sums);
            self.out.line("tw::keep_sums();");
        }
    }
}
