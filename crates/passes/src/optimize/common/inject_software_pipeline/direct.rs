//! Which copies a wave can do by itself, straight to LDS (`buffer_load … lds`).
//!
//! The machine writes the data of a wave's lanes one after another from one base, 16 or 4 bytes a
//! lane, and reads the tensor through a description of its bytes with 32-bit offsets: an offset
//! past the end brings zeros. SwizzleExchange has dealt the elements out so that lanes follow
//! each other where the tile's layout allows it; here that is proved of each copy
//! ([`tilewright_layout::wave_places`]). What does not fit goes through registers, and
//! the reason is said.

use std::fmt;

use tilewright_ir::target::AsyncCopy;
use tilewright_ir::{
    Buffer, BufferOrigin, Expr, Func, Kernel, LoopKind, MicroOp, Scope, Stmt, StmtKind, Target,
    Var, VarKind,
};
use tilewright_layout::wave_places::{Threads, in_a_row};

use super::copies::each_micro;

/// Why a copy goes through registers.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(super) enum Refusal {
    /// Something between the tensor and the tile is more than a copy.
    NotACopy,
    /// So many bytes line up for a thread.
    Width { bytes: u32 },
    /// What lies outside the tensor is not read as zero.
    Fill,
    /// The tensor is not the bytes of a parameter in a row.
    Tensor { name: String, why: &'static str },
    /// Not every thread copies.
    Partial,
    /// Lanes in a row do not write places in a row.
    Places { name: String },
    /// The tile with all its versions does not fit LDS.
    Memory,
}

impl fmt::Display for Refusal {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Refusal::NotACopy => f.write_str("it does more than copy, such as convert"),
            Refusal::Width { bytes } => write!(
                f,
                "{bytes} bytes line up for a thread, and a lane copies 4, 12 or 16"
            ),
            Refusal::Fill => f.write_str("what is outside the tensor is not read as zero"),
            Refusal::Tensor { name, why } => write!(f, "`{name}` {why}"),
            Refusal::Partial => f.write_str("the tile does not divide over the threads"),
            Refusal::Places { name } => {
                write!(f, "lanes in a row do not write places of `{name}` in a row")
            }
            Refusal::Memory => f.write_str("the versions that it takes do not fit shared memory"),
        }
    }
}

/// The instructions that each wave certainly issues, where the statement, made of copies, can be
/// done by waves.
pub(super) fn fits(
    func: &Func,
    kernel: &Kernel,
    target: Target,
    stmt: &Stmt,
) -> Result<u32, Refusal> {
    let mut question = Question {
        func,
        kernel,
        target,
        loops: Vec::new(),
        certain: true,
    };
    question.stmt(stmt)
}

struct Question<'a> {
    func: &'a Func,
    kernel: &'a Kernel,
    target: Target,
    /// Loops around, with their extents.
    loops: Vec<(Var, i64)>,
    /// Whether no condition is around.
    certain: bool,
}

impl Question<'_> {
    fn block(&mut self, block: &[Stmt]) -> Result<u32, Refusal> {
        let mut instructions = 0u32;
        for stmt in block {
            instructions = instructions.saturating_add(self.stmt(stmt)?);
        }
        Ok(instructions)
    }

    fn stmt(&mut self, stmt: &Stmt) -> Result<u32, Refusal> {
        match &stmt.kind {
            StmtKind::Micro(m) => self.micro(m),
            StmtKind::For(l) => {
                let [axis] = &l.axes[..] else {
                    return Err(Refusal::NotACopy);
                };
                let trips = axis.const_trip_count().and_then(|n| i64::try_from(n).ok());
                let simple = axis.start.is_int(0) && axis.step.is_int(1);
                let plain = matches!(l.kind, LoopKind::Serial | LoopKind::Unroll { .. });
                let (Some(trips), true) = (trips, simple && plain) else {
                    return Err(Refusal::NotACopy);
                };
                self.loops.push((axis.var, trips));
                let each = self.block(&l.body);
                self.loops.pop();
                let trips = u32::try_from(trips).unwrap_or(u32::MAX);
                Ok(each?.saturating_mul(trips))
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let mut by_thread = false;
                cond.walk(&mut |node| {
                    if let Some(var) = node.as_var() {
                        by_thread |= matches!(self.func.vars[var].kind, VarKind::ThreadIdx(_));
                    }
                });
                if by_thread {
                    return Err(Refusal::Partial);
                }
                let outer = std::mem::replace(&mut self.certain, false);
                let both = self.block(then).and_then(|_| self.block(otherwise));
                self.certain = outer;
                both.map(|_| 0)
            }
            StmtKind::Let { .. } => Ok(0),
            _ => Err(Refusal::NotACopy),
        }
    }

    fn micro(&self, m: &MicroOp) -> Result<u32, Refusal> {
        let data = &self.func.buffers[m.dest.region.buffer];
        let bits = m.width * data.dtype.bits();
        let copy = self.target.machine().async_copy;
        let taken = copy.is_some_and(|c| c.bytes.contains(&(bits / 8)));
        if !bits.is_multiple_of(8) || !taken {
            return Err(Refusal::Width { bytes: bits / 8 });
        }
        let zero = |e: &Expr| e.is_int(0) || e.as_float().is_some_and(|v| v.to_bits() == 0);
        // A lane that is left out by a condition of its own would have nothing to write.
        match (&m.pred, &m.otherwise) {
            (_, Some(value)) if !zero(value) => return Err(Refusal::Fill),
            (Some(_), None) => return Err(Refusal::Partial),
            _ => {}
        }
        let [source] = &m.sources[..] else {
            return Err(Refusal::NotACopy);
        };
        self.tensor(source.region.buffer)?;
        let threads = Threads {
            vars: self.kernel.thread_vars,
            extents: self.kernel.threads,
        };
        if !in_a_row(self.func, threads, &self.loops, m) {
            let name = data.name.clone();
            return Err(Refusal::Places { name });
        }
        Ok(if self.certain { m.count() } else { 0 })
    }

    /// Whether 32-bit offsets reach all of a tensor, whose bytes lie in a row.
    fn tensor(&self, buffer: Buffer) -> Result<(), Refusal> {
        let data = &self.func.buffers[buffer];
        let refuse = |why| {
            let name = data.name.clone();
            Err(Refusal::Tensor { name, why })
        };
        if data.scope != Scope::Global || !matches!(data.origin, BufferOrigin::Param) {
            return refuse("is no parameter of the kernel");
        }
        if data.strides.is_some() {
            return refuse("has strides");
        }
        let mut elements = 1i128;
        for extent in &data.shape {
            let Some(extent) = extent.as_int() else {
                return refuse(
                    "has a size known at the call, and may pass what 32-bit offsets reach",
                );
            };
            elements = elements.saturating_mul(extent);
        }
        let bytes = elements.saturating_mul(i128::from(data.dtype.bits())) / 8;
        if elements > i128::from(i32::MAX) || bytes >= i128::from(u32::MAX) {
            return refuse("is larger than 32-bit offsets reach");
        }
        Ok(())
    }
}

/// Makes the copies of a statement those of waves.
pub(super) fn convert(stmt: &mut Stmt, copy: &AsyncCopy) {
    each_micro(std::slice::from_mut(stmt), &mut |m| {
        m.inst = copy.inst;
        m.counter = Some(copy.counter);
        if m.pred.as_ref().is_some_and(|p| p.is_int(1)) {
            m.pred = None;
        }
        if m.pred.is_none() {
            m.otherwise = None;
        }
    });
}
