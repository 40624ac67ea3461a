//! Reducers: tiles that the points of parallel loops contribute to.

use tilewright_ir::{Buffer, BufferOrigin, Expr, ReduceKind, Region, Span};

use super::folds::{fold, identity};
use crate::compile::expr;
use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::error::{Eval, Fault, Stop, codes};
use crate::exec::Exec;
use crate::exec::access::encode;
use crate::exec::areas::Outside;
use crate::program::{Access, Num, Rect, Space};

#[derive(Clone, Debug)]
pub(super) enum Code {
    Init {
        reducer: u32,
        kind: ReduceKind,
        init: Option<Num>,
    },
    Update {
        kind: ReduceKind,
        target: Access,
        value: Num,
    },
    Finalize {
        reducer: u32,
        dst: Option<Rect>,
    },
}

pub(super) fn init(
    b: &mut Builder<'_, '_>,
    reducer: Buffer,
    init: Option<&Expr>,
) -> Compiled<Code> {
    let (kind, number) = fold_of(b, reducer)?;
    let scalar = b.names.func.buffers[reducer].dtype.scalar;
    let init = match init {
        Some(e) => Some(expr::cast(b.names, e, 0, scalar)?),
        None => None,
    };
    Ok(Code::Init {
        reducer: number,
        kind,
        init,
    })
}

pub(super) fn update(
    b: &mut Builder<'_, '_>,
    reducer: Buffer,
    indices: &[Expr],
    value: &Expr,
    span: Span,
) -> Compiled<Code> {
    let (kind, _) = fold_of(b, reducer)?;
    let scalar = b.names.func.buffers[reducer].dtype.scalar;
    Ok(Code::Update {
        kind,
        target: b.names.access(reducer, indices, 0, span)?,
        value: expr::cast(b.names, value, 0, scalar)?,
    })
}

pub(super) fn finalize(
    b: &mut Builder<'_, '_>,
    reducer: Buffer,
    dst: Option<&Region>,
    span: Span,
) -> Compiled<Code> {
    let (_, reducer) = fold_of(b, reducer)?;
    let dst = match dst {
        Some(region) => {
            let dst = b.names.rect(region, span)?;
            b.names.writes(dst.buffer);
            Some(dst)
        }
        None => None,
    };
    Ok(Code::Finalize { reducer, dst })
}

fn fold_of(b: &mut Builder<'_, '_>, reducer: Buffer) -> Compiled<(ReduceKind, u32)> {
    let number = b.names.buffer(reducer)?;
    match b.names.func.buffers[reducer].origin {
        BufferOrigin::Reducer(kind) => Ok((kind, number)),
        _ => Err(b.invalid("this buffer is not a reducer")),
    }
}

impl Exec<'_, '_> {
    pub(super) fn reducer(&mut self, code: &Code) -> Eval<()> {
        match code {
            Code::Init {
                reducer,
                kind,
                init,
            } => {
                let scalar = self.program.buffers[*reducer as usize].scalar;
                let slot = match init {
                    Some(e) => self.num(e)?,
                    None => identity(*kind, scalar),
                };
                if self.is_open(*reducer) {
                    return Err(self.reducer_fault(*reducer, "initialised twice"));
                }
                let whole = self.whole(*reducer);
                self.fill(&whole, slot)
            }
            Code::Update {
                kind,
                target,
                value,
            } => {
                let slot = self.num(value)?;
                if !self.is_open(target.buffer) {
                    return Err(self.reducer_fault(target.buffer, "updated before its init"));
                }
                let program = self.program;
                let info = &program.buffers[target.buffer as usize];
                let old = self.load_element(target)?;
                let new = fold(*kind, info.scalar, old, slot, false);
                if let Some(index) = self.element(info, target)? {
                    let raw = encode(info.scalar, new);
                    self.write(info.space, info.bits(), index, raw);
                }
                Ok(())
            }
            Code::Finalize { reducer, dst } => {
                if !self.is_open(*reducer) {
                    return Err(self.reducer_fault(*reducer, "finalised before its init"));
                }
                self.set_open(*reducer, false);
                let Some(dst) = dst else {
                    return Ok(());
                };
                let (src, dst) = (self.whole(*reducer), self.area(dst)?);
                self.pair(&src, &dst)?;
                self.copy(&src, &dst, Outside::Trap)
            }
        }
    }

    fn is_open(&self, reducer: u32) -> bool {
        match self.program.buffers[reducer as usize].space {
            Space::Block(n) => self.block.open[n as usize],
            Space::Global(_) | Space::Private(_) | Space::Barrier(_) => false,
        }
    }

    /// Notes whether a reducer takes contributions; other buffers do not care.
    pub(super) fn set_open(&mut self, buffer: u32, open: bool) {
        if let Space::Block(n) = self.program.buffers[buffer as usize].space {
            self.block.open[n as usize] = open;
        }
    }

    #[cold]
    fn reducer_fault(&mut self, reducer: u32, what: &str) -> Stop {
        let name = &self.program.buffers[reducer as usize].name;
        let message = format!("the reducer `{name}` is {what}");
        self.fail(Fault::new(codes::REDUCER, message))
    }
}
