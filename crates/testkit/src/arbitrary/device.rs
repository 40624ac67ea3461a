//! Micro-ops and device operations on buffers made for them.

use crate::arbitrary::Gen;
use tilewright_ir::Span;
use tilewright_ir::buffer::{BufferOrigin, Scope, SharedPlace};
use tilewright_ir::device_op::{BarrierKind, Counter, DeviceOp, FenceKind};
use tilewright_ir::dtype::DType;
use tilewright_ir::dtype::Scalar;
use tilewright_ir::expr::{Expr, ExprKind};
use tilewright_ir::func::{Level, VarKind};
use tilewright_ir::ids::Buffer;
use tilewright_ir::micro_op::{
    Access, Arrival, Inst, Major, MicroKind, MicroOp, MmaFamily, MmaInst, TmaBox,
};
use tilewright_ir::stmt::StmtKind;
use tilewright_ir::text::Word;
use tilewright_ir::tile_op::EvictionPolicy;

impl Gen<'_> {
    pub(super) fn micro_statement(&mut self) {
        if self.in_parallel {
            return self.plain_statement();
        }
        let kind = self.one_of(&MicroKind::ALL);
        let registers = self.one_of(&[Scope::Fragment, Scope::Local]);
        let (from, to) = match kind {
            MicroKind::G2s | MicroKind::TmaLoad => (Scope::Global, Scope::Shared),
            MicroKind::G2r => (Scope::Global, registers),
            MicroKind::S2r => (Scope::Shared, registers),
            MicroKind::Mma => (registers, Scope::Fragment),
            MicroKind::R2s => (registers, Scope::Shared),
            MicroKind::R2g => (registers, Scope::Global),
            MicroKind::TmaStore => (Scope::Shared, Scope::Global),
        };
        let mut sources = vec![self.operand(from)];
        if kind == MicroKind::Mma {
            sources.push(self.operand(from));
        }
        let axes = self.list(2, |g| (g.var(DType::I32, VarKind::Loop), g.small()));
        let mma = Inst::Mma(MmaInst {
            family: self.one_of(&[MmaFamily::MmaSync, MmaFamily::MmaSp, MmaFamily::Mfma]),
            m: 16,
            n: 16,
            k: 32,
            a: Scalar::F16,
            b: Scalar::F16,
            acc: Scalar::F32,
            scaled: false,
        });
        let major = self.one_of(&Major::ALL);
        let inst = self.one_of(&[
            Inst::Load,
            Inst::Store,
            Inst::CpAsync,
            Inst::BufferLoadLds,
            Inst::LdMatrix {
                tiles: 4,
                trans: true,
            },
            mma,
            Inst::GroupMma {
                mma: MmaInst {
                    family: MmaFamily::Wgmma,
                    m: 64,
                    n: 256,
                    k: 16,
                    a: Scalar::BF16,
                    b: Scalar::BF16,
                    acc: Scalar::F32,
                    scaled: false,
                },
                a: Major::K,
                b: major,
                fresh: major == Major::K && !axes.is_empty(),
            },
        ]);
        if let (MicroKind::Mma, Inst::Mma(mma)) = (kind, inst)
            && mma.is_sparse()
        {
            sources.push(self.operand(from));
        }
        let bulk = TmaBox::new(&[8]).map_or(Inst::Load, Inst::Tma);
        let mut dest = self.operand(to);
        if let Some((axis, _)) = axes.first() {
            dest.at = vec![self.func.var_expr(*axis) + 1];
        }
        let inst = match kind {
            MicroKind::TmaLoad | MicroKind::TmaStore => bulk,
            _ => inst,
        };
        let arrives = (kind == MicroKind::TmaLoad).then(|| {
            let (barrier, index) = self.barrier();
            Arrival {
                barrier,
                index,
                multicast: self.optional(|_| 1),
            }
        });
        let op = MicroOp {
            kind,
            inst,
            turns: axes.len() > 1 && self.pick(2) == 0,
            axes,
            dest,
            sources,
            width: self.small(),
            apart: match (kind, inst) {
                (MicroKind::G2r | MicroKind::S2r, Inst::Load)
                | (MicroKind::R2g | MicroKind::R2s, Inst::Store) => self.small() + 1,
                _ => 1,
            },
            pred: self.optional(|g| g.bool_expr(2)),
            otherwise: self.optional(|_| Expr::float(0.0, DType::F16)),
            counter: self.optional(|g| g.one_of(&Counter::ALL)),
            arrives,
            evict: self.optional(|g| g.one_of(EvictionPolicy::VALUES)),
        };
        self.emit(StmtKind::Micro(op));
    }

    fn operand(&mut self, scope: Scope) -> Access {
        let buffer: Buffer = if scope == Scope::Global {
            let shape = self.shape_of(&[8]);
            let buffer = self.new_buffer(scope, DType::F16, shape, BufferOrigin::Workspace);
            self.func.workspaces.push(buffer);
            buffer
        } else {
            self.alloc(scope, DType::F16, &[8])
        };
        let mut slot = None;
        if scope == Scope::Shared && self.chance(2) {
            let versions = self.small() + 1;
            self.func.buffers[buffer].versions = versions;
            slot = Some(match self.chance(2) {
                true => self.int_expr(DType::I32, 2).floor_mod(versions as i32),
                false => Expr::i32(0),
            });
        }
        if scope == Scope::Shared && self.func.level == Level::Device && self.chance(2) {
            let versions = self.func.buffers[buffer].versions;
            self.func.buffers[buffer].place = Some(SharedPlace {
                offset: SharedPlace::ALIGN * self.small(),
                bytes: 16 * versions,
            });
        }
        Access {
            region: self.whole(buffer),
            slot,
            at: vec![Expr::i32(0)],
        }
    }

    pub(super) fn device_statement(&mut self) {
        let op = match self.pick(13) {
            0 => DeviceOp::Barrier(BarrierKind::Block),
            1 if self.chance(4) => DeviceOp::WaitRead {
                at_most: self.pick(16) as u32,
            },
            1 => DeviceOp::Wait {
                counter: self.one_of(&Counter::ALL),
                at_most: self.pick(16) as u32,
            },
            2 => DeviceOp::Commit(self.one_of(&[
                Counter::CpAsync,
                Counter::TmaStore,
                Counter::Wgmma,
            ])),
            3 => DeviceOp::Barrier(BarrierKind::Bare),
            4 => DeviceOp::Barrier(BarrierKind::Named {
                id: self.pick(16) as u32,
                count: 128,
            }),
            5 => DeviceOp::Barrier(BarrierKind::Cond(self.bool_expr(2))),
            6 => DeviceOp::Fence(self.one_of(&FenceKind::ALL)),
            7 => DeviceOp::SetPrio(self.pick(4) as u8),
            8 => DeviceOp::SchedBarrier(self.pick(2048) as u32),
            9 => DeviceOp::SchedGroupBarrier {
                mask: 8,
                size: self.small(),
                group: 0,
            },
            10 => {
                let buffer = self.workspace(DType::F16, &[16, 16]);
                let indices = vec![Expr::i32(1), Expr::i32(0)];
                let kind = ExprKind::AddressOf { buffer, indices };
                DeviceOp::Prefetch {
                    address: Expr::new(kind, DType::HANDLE, Span::NONE),
                    bytes: 32,
                }
            }
            11 => {
                let iteration = self.int_expr(DType::I32, 2);
                DeviceOp::Iteration((self.pick(4) > 0).then_some(iteration))
            }
            _ => {
                let (barrier, _) = self.barrier();
                DeviceOp::BarrierInit {
                    barrier,
                    index: Expr::i32(1),
                    count: self.small(),
                }
            }
        };
        if self.chance(3) {
            return self.micro_statement();
        }
        self.emit(StmtKind::Device(op));
    }
}
