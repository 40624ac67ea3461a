//! Ops after samples: what a line of `samples.tw` says, on buffers like those that it names, with
//! values of the same types and a new variable for the result.

use std::collections::BTreeMap;
use std::sync::LazyLock;

use crate::arbitrary::Gen;
use tilewright_ir::buffer::{BufferOrigin, Scope};
use tilewright_ir::diag::FileId;
use tilewright_ir::func::{Func, VarKind};
use tilewright_ir::ids::Buffer;
use tilewright_ir::operand::OperandMut;
use tilewright_ir::stmt::StmtKind;
use tilewright_ir::text::parse;

static SAMPLES: LazyLock<Func> = LazyLock::new(|| {
    let text = include_str!("samples.tw");
    parse(text, FileId(0)).unwrap_or_else(|errors| panic!("{errors:?}"))
});

/// The kernels of the samples, by where their ops may stand.
#[derive(Clone, Copy)]
pub(super) enum Sample {
    Anywhere,
    OutsideParallel,
    Tile,
}

impl Gen<'_> {
    pub(super) fn sampled(&mut self, which: Sample) {
        let samples = &*SAMPLES;
        let stmts = samples.kernels[which as usize].body.iter();
        let ops = stmts.filter(|s| !matches!(s.kind, StmtKind::Alloc(_)));
        let ops: Vec<&StmtKind> = ops.map(|s| &s.kind).collect();
        let mut kind = self.one_of(&ops).clone();
        let mut buffers = BTreeMap::new();
        let mut fill = |operand: OperandMut<'_>| match operand {
            OperandMut::Value(e) => *e = self.expr(e.dtype(), 2),
            OperandMut::Region { region, .. } => self.like(&mut region.buffer, &mut buffers),
            OperandMut::Elements { buffer, .. }
            | OperandMut::Whole { buffer, .. }
            | OperandMut::Barrier { buffer, .. } => self.like(buffer, &mut buffers),
            OperandMut::Result(var) => {
                *var = self.visible_var(samples.vars[*var].dtype, VarKind::Let);
            }
            OperandMut::Bound(var) => *var = self.var(samples.vars[*var].dtype, VarKind::Bound),
        };
        match &mut kind {
            StmtKind::Thread(op) => op.operands_mut(&mut fill),
            StmtKind::Tile(op) => op.operands_mut(&mut fill),
            _ => {}
        }
        self.emit(kind);
    }

    /// Puts a buffer like the sample's in its place, the same one for the same.
    fn like(&mut self, buffer: &mut Buffer, made: &mut BTreeMap<Buffer, Buffer>) {
        *buffer = *made.entry(*buffer).or_insert_with_key(|sample| {
            let data = &SAMPLES.buffers[*sample];
            let (dtype, shape) = (data.dtype, data.shape.clone());
            if data.scope != Scope::Global {
                return self.alloc_as(data.scope, dtype, shape, data.origin.clone());
            }
            let buffer = self.new_buffer(data.scope, dtype, shape, BufferOrigin::Workspace);
            self.func.workspaces.push(buffer);
            buffer
        });
    }
}
