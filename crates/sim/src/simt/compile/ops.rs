//! Compilation of micro-ops, thread operations and device operations.

use std::sync::Arc;

use tilewright_ir::{
    Access as IrAccess, BarrierKind, Buffer, Combiner, DeviceOp, Expr, FenceKind, Inst, LayoutAttr,
    Major, MicroOp, MmaInst, Scalar, Scope, Span, ThreadOp, Var, VoteKind,
};
use tilewright_layout::descriptor::MatrixDescriptor;

use super::Compiler;
use super::expr::harmless;
use crate::compile::names::Compiled;
use crate::error::{RunError, codes};
use crate::simt::group_mma::{GroupTable, Tile};
use crate::simt::mma::MmaTable;
use crate::simt::program::{
    Access, AllReduceCode, DeviceCode, MicroCode, Op, Slot, Space, ThreadCode,
};
use crate::simt::spread::Spread;

/// Bytes that a thread may move with one instruction; machines stop at 16, and code generators
/// split what is wider.
const MAX_BYTES: u32 = 256;

impl Compiler<'_> {
    pub(super) fn micro_op(&mut self, op: &MicroOp, span: Span) -> Compiled<()> {
        if op.count() == 0 {
            return Ok(());
        }
        let axes: Vec<(u32, u32)> = op
            .axes
            .iter()
            .map(|(var, extent)| {
                let slot = self.fresh_one();
                let name = self.func.vars[*var].name.clone();
                self.vars.insert(*var, vec![Slot::One(slot)]);
                self.enter_loop(name, Slot::One(slot));
                (slot, *extent)
            })
            .collect();
        self.statement(span, op.inst.to_string());
        self.emit(Op::MicroStart {
            axes: axes.iter().map(|a| a.0).collect(),
        });
        let body = self.pc();
        let code = self.instruction(op, span)?;
        self.emit(Op::Micro(Box::new(code)));
        if !axes.is_empty() {
            self.emit(Op::MicroNext {
                axes: axes.as_slice().into(),
                turns: op.turns,
                body,
            });
        }
        for _ in &axes {
            self.leave_loop();
        }
        Ok(())
    }

    fn instruction(&mut self, op: &MicroOp, span: Span) -> Compiled<MicroCode> {
        let invalid = |message: String| Err(RunError::new(codes::INVALID_IR, span, message));
        let dest_buffer = self.buffer(op.dest.region.buffer)?;
        let mut source_buffers = Vec::new();
        for source in &op.sources {
            source_buffers.push(self.buffer(source.region.buffer)?);
        }
        let multiplies = matches!(op.inst, Inst::Mma(_) | Inst::GroupMma { .. });
        let wanted = if multiplies { 2 } else { 1 };
        if source_buffers.len() != wanted {
            return invalid(format!("`{}` has {wanted} sources", op.inst));
        }
        let dest = self.program.buffers[dest_buffer as usize].clone();
        let source = self.program.buffers[source_buffers[0] as usize].clone();
        let moved = dest.scalar == source.scalar && dest.lanes == source.lanes;
        if !multiplies && !moved {
            return invalid(format!(
                "`{}` moves elements as they are, but `{}` and `{}` have different types",
                op.inst, source.name, dest.name
            ));
        }
        use Space::{Global, Local, Shared};
        let fits = match (op.inst, source.space, dest.space) {
            (Inst::Load, Global(_) | Shared(_), Local(_)) => true,
            // Through a register that nobody else sees.
            (Inst::Load, Global(_), Shared(_)) => true,
            (Inst::Store, Local(_), Global(_) | Shared(_)) => true,
            (Inst::CpAsync | Inst::BufferLoadLds, Global(_), Shared(_)) => true,
            (Inst::LdMatrix { .. } | Inst::DsReadTr, Shared(_), Local(_)) => true,
            (Inst::StMatrix { .. }, Local(_), Shared(_)) => true,
            (Inst::Mma(_), Local(_), Local(_)) => {
                matches!(
                    self.program.buffers[source_buffers[1] as usize].space,
                    Local(_)
                )
            }
            (Inst::GroupMma { .. }, Local(_) | Shared(_), Local(_)) => {
                matches!(
                    self.program.buffers[source_buffers[1] as usize].space,
                    Shared(_)
                )
            }
            (Inst::Tma, ..) => {
                return Err(RunError::new(
                    codes::UNSUPPORTED,
                    span,
                    "the simulator does not run the bulk copy engine",
                ));
            }
            _ => false,
        };
        if !fits {
            return invalid(format!(
                "`{}` cannot go from `{}` to `{}`",
                op.inst, source.name, dest.name
            ));
        }
        let missing = || {
            let message = format!("{} has no `{}`", self.target, op.inst);
            Err(RunError::new(codes::UNSUPPORTED, span, message))
        };
        if !self.target.machine().has(op.inst) {
            return missing();
        }
        let bits = source.bits() * source.lanes;
        let row = 128 / bits;
        let mut spread = None;
        let mut group = None;
        let (dest_width, source_width, mma) = match op.inst {
            Inst::Load | Inst::Store | Inst::CpAsync | Inst::BufferLoadLds => {
                let zero = |e: &Expr| e.is_int(0) || e.as_float().is_some_and(|v| v.to_bits() == 0);
                if op.inst == Inst::BufferLoadLds && !op.otherwise.iter().all(zero) {
                    return invalid(format!("`{}` fills with zeros only", op.inst));
                }
                let total = op.width.saturating_mul(bits);
                if total == 0 || !total.is_multiple_of(8) || total > 8 * MAX_BYTES {
                    return invalid(format!(
                        "{} elements of {bits} bits in one instruction",
                        op.width
                    ));
                }
                (op.width, op.width, None)
            }
            Inst::LdMatrix { tiles, trans } | Inst::StMatrix { tiles, trans } => {
                spread = Spread::matrix(tiles, bits, trans);
                if spread.is_none() || source.lanes != 1 {
                    return invalid(format!("`{}` of {bits}-bit elements", op.inst));
                }
                let registers = u32::from(tiles) * 32 / bits;
                if matches!(op.inst, Inst::LdMatrix { .. }) {
                    (registers, row, None)
                } else {
                    (row, registers, None)
                }
            }
            Inst::DsReadTr => {
                spread = Spread::ds_read_tr(bits);
                if spread.is_none() || source.lanes != 1 {
                    return invalid(format!("`{}` of {bits}-bit elements", op.inst));
                }
                (64 / bits, 64 / bits, None)
            }
            Inst::Mma(inst) => {
                let Some(table) = MmaTable::new(&inst) else {
                    return missing();
                };
                let b = &self.program.buffers[source_buffers[1] as usize];
                let plain = [&dest, &source, b].iter().all(|x| x.lanes == 1);
                if source.scalar != inst.ab || b.scalar != inst.ab || dest.scalar != inst.acc {
                    return invalid(format!(
                        "`{inst}` on registers of {}, {} and {}",
                        source.scalar, b.scalar, dest.scalar
                    ));
                }
                if !plain {
                    return invalid(format!("`{inst}` on registers of vectors"));
                }
                (table.c.per_lane, table.a.per_lane, Some(Arc::new(table)))
            }
            Inst::GroupMma { mma, a, b } => {
                let b_info = &self.program.buffers[source_buffers[1] as usize];
                let plain = [&dest, &source, b_info].iter().all(|x| x.lanes == 1);
                let types = (source.scalar, b_info.scalar, dest.scalar);
                if types != (mma.ab, mma.ab, mma.acc) || !plain {
                    return invalid(format!(
                        "`{mma}` on {}, {} and {}",
                        source.scalar, b_info.scalar, dest.scalar
                    ));
                }
                let table = self.group_table(&mma, op, [a, b]);
                let Some(table) = table else {
                    return invalid(format!("`{mma}` on tiles that do not lie in panels"));
                };
                let (left, sum) = table.per_lane();
                group = Some(Arc::new(table));
                for info in [&dest, &source] {
                    if let Local(first) = info.space {
                        let elements = info.shape.iter().product::<i64>() as usize;
                        let len = elements * info.bits() as usize / 8;
                        let list = &mut self.program.group_registers;
                        list.push((first as usize, len));
                    }
                }
                (sum, left.max(1), None)
            }
            Inst::Tma => return invalid(String::new()),
        };

        let pred = match &op.pred {
            Some(e) => Some(self.cast(e, Scalar::Bool)?),
            None => None,
        };
        let addresses = op.sources.iter().chain([&op.dest]).flat_map(|a| &a.at);
        // Indices that are loaded themselves count only where the predicate holds.
        let guard = pred.filter(|_| !addresses.clone().all(harmless));
        let push = guard.map(|cond| {
            self.emit(Op::MaskPush {
                cond,
                when: true,
                skip: 0,
            })
        });
        let dest_access = self.micro_access(&op.dest, dest_buffer, dest_width, span)?;
        let mut sources = Vec::new();
        for (i, source) in op.sources.iter().enumerate() {
            let width = match (&mma, i) {
                (Some(table), 1) => table.b.per_lane,
                _ => source_width,
            };
            sources.push(self.micro_access(source, source_buffers[i], width, span)?);
        }
        if let Some(push) = push {
            let end = self.pc();
            if let Op::MaskPush { skip, .. } = &mut self.program.ops[push] {
                *skip = end;
            }
            self.emit(Op::MaskPop);
        }
        let otherwise = match &op.otherwise {
            Some(e) => Some(self.cast(e, dest.scalar)?),
            None => None,
        };
        self.note_traffic(dest_buffer, true);
        for source in source_buffers {
            self.note_traffic(source, false);
        }
        Ok(MicroCode {
            inst: op.inst,
            dest: dest_access,
            sources: sources.into(),
            pred,
            otherwise,
            counter: op.counter,
            joined: op.may_be_joined(self.func),
            mma,
            group,
            spread: spread.map(Arc::new),
        })
    }

    /// What is known of a warp group's product, where its operands lie as instructions can be told.
    fn group_table(&self, mma: &MmaInst, op: &MicroOp, majors: [Major; 2]) -> Option<GroupTable> {
        let tile = |i: usize| {
            let data = &self.func.buffers[op.sources[i].region.buffer];
            let place = match &data.layout {
                Some(LayoutAttr::Placed(place)) => place,
                _ => return None,
            };
            let bits = data.dtype.bits().into();
            let descriptor = MatrixDescriptor::of(place, &data.const_shape()?, bits)?;
            Some(Tile {
                descriptor,
                major: majors[i],
            })
        };
        let in_memory = self.func.buffers[op.sources[0].region.buffer].scope == Scope::Shared;
        let a = match in_memory {
            true => Some(tile(0)?),
            false => None,
        };
        GroupTable::new(mma, a, tile(1)?)
    }

    fn micro_access(
        &mut self,
        access: &IrAccess,
        buffer: u32,
        width: u32,
        span: Span,
    ) -> Compiled<u32> {
        let info = &self.program.buffers[buffer as usize];
        let (rank, name, lanes) = (info.shape.len(), info.name.clone(), info.lanes);
        if access.at.len() != rank {
            return Err(RunError::new(
                codes::INVALID_IR,
                span,
                format!(
                    "`{name}` has {rank} dimensions but {} indices",
                    access.at.len()
                ),
            ));
        }
        let indices = self.scalars(&access.at)?;
        let version = match &access.slot {
            Some(e) => Some(self.scalar(e)?),
            None => None,
        };
        Ok(self.add_access(Access {
            buffer,
            indices,
            version,
            width: width * lanes,
        }))
    }

    /// Remembers how a kernel uses global memory.
    pub(super) fn note_traffic(&mut self, buffer: u32, writes: bool) {
        if let Space::Global(storage) = self.program.buffers[buffer as usize].space {
            let traffic = &mut self.program.traffic;
            let list = if writes {
                &mut traffic.written
            } else {
                &mut traffic.read
            };
            list[storage as usize] = true;
        }
    }

    /// An element that a thread operation works on.
    fn element(
        &mut self,
        buffer: Buffer,
        indices: &[Expr],
        width: u32,
        writes: bool,
        span: Span,
    ) -> Compiled<u32> {
        let number = self.buffer(buffer)?;
        let (version, indices) = self.version(number, indices)?;
        let (slots, _) = self.indices(number, indices, 0, span)?;
        self.note_traffic(number, writes);
        Ok(self.add_access(Access {
            buffer: number,
            indices: slots,
            version,
            width,
        }))
    }

    /// A barrier array's first number, and the index into it.
    fn barrier(&mut self, barrier: Buffer, index: &Expr) -> Compiled<(u32, Slot)> {
        let number = self.buffer(barrier)?;
        let info = &self.program.buffers[number as usize];
        if !matches!(info.space, Space::Barrier(_)) {
            return Err(RunError::new(
                codes::INVALID_IR,
                index.span(),
                format!("`{}` is not an arrival barrier", info.name),
            ));
        }
        Ok((number, self.scalar(index)?))
    }

    pub(super) fn thread_op(&mut self, op: &ThreadOp, span: Span) -> Compiled<()> {
        self.statement(span, thread_name(op).to_string());
        let base = self.next;
        let warp = self.target.machine().warp_size;
        let mut bound: Option<(Var, Slot)> = None;
        let code = match op {
            ThreadOp::AtomicRmw {
                op,
                buffer,
                indices,
                value,
                order,
                result,
            } => {
                let result = result.map(|var| {
                    let slot = self.fresh_lanes();
                    bound = Some((var, slot));
                    slot
                });
                let scalar = self.func.buffers[*buffer].dtype.scalar;
                if result.is_some() {
                    let number = self.buffer(*buffer)?;
                    self.note_traffic(number, false);
                }
                ThreadCode::AtomicRmw {
                    op: *op,
                    value: self.cast(value, scalar)?,
                    access: self.element(*buffer, indices, 1, true, span)?,
                    order: *order,
                    result,
                }
            }
            ThreadOp::AtomicVecAdd {
                dst,
                dst_indices,
                src,
                src_indices,
                lanes,
            } => {
                let lanes = u32::from(*lanes);
                ThreadCode::AtomicVecAdd {
                    dst: self.element(*dst, dst_indices, lanes, true, span)?,
                    src: self.element(*src, src_indices, lanes, false, span)?,
                }
            }
            ThreadOp::AtomicLoad {
                buffer,
                indices,
                order,
                result,
            } => {
                let slot = self.fresh_lanes();
                bound = Some((*result, slot));
                ThreadCode::AtomicLoad {
                    access: self.element(*buffer, indices, 1, false, span)?,
                    order: *order,
                    result: slot,
                }
            }
            ThreadOp::AtomicStore {
                buffer,
                indices,
                value,
                order,
            } => {
                let scalar = self.func.buffers[*buffer].dtype.scalar;
                ThreadCode::AtomicStore {
                    value: self.cast(value, scalar)?,
                    access: self.element(*buffer, indices, 1, true, span)?,
                    order: *order,
                }
            }
            ThreadOp::Shuffle {
                kind,
                value,
                lane,
                width,
                result,
            } => {
                if *width == 0 || *width > warp || !width.is_power_of_two() {
                    return Err(RunError::new(
                        codes::INVALID_IR,
                        span,
                        format!("the width of a shuffle is a power of two up to {warp}"),
                    ));
                }
                let slot = self.fresh_lanes();
                bound = Some((*result, slot));
                ThreadCode::Shuffle {
                    kind: *kind,
                    value: self.scalar(value)?,
                    lane: self.scalar(lane)?,
                    width: *width,
                    result: slot,
                }
            }
            ThreadOp::Vote {
                kind,
                value,
                result,
            } => {
                let slot = self.fresh_lanes();
                bound = Some((*result, slot));
                ThreadCode::Vote {
                    kind: *kind,
                    value: self.cast(value, Scalar::Bool)?,
                    result: slot,
                }
            }
            ThreadOp::WarpReduce {
                kind,
                value,
                result,
            } => {
                let scalar = value.dtype().scalar;
                if kind.is_bitwise() && scalar.is_float() {
                    return Err(RunError::new(
                        codes::INVALID_IR,
                        span,
                        "a bitwise reduction of floats",
                    ));
                }
                let slot = self.fresh_lanes();
                bound = Some((*result, slot));
                ThreadCode::WarpReduce {
                    kind: *kind,
                    scalar,
                    value: self.scalar(value)?,
                    result: slot,
                }
            }
            ThreadOp::AllReduce {
                combiner,
                value,
                cond,
                dst,
                dst_indices,
                axes,
            } => {
                let scalar = self.func.buffers[*dst].dtype.scalar;
                let value = self.cast(value, scalar)?;
                let cond = self.cast(cond, Scalar::Bool)?;
                let dst = self.element(*dst, dst_indices, 1, true, span)?;
                let mut folded = [false; 3];
                for &axis in axes {
                    if let Some(flag) = folded.get_mut(usize::from(axis)) {
                        *flag = true;
                    }
                }
                ThreadCode::AllReduce(self.all_reduce(combiner, value, cond, dst, folded)?)
            }
            ThreadOp::SyncThreads { named: None } => {
                self.emit(Op::Device(DeviceCode::Block));
                return Ok(());
            }
            ThreadOp::SyncThreads {
                named: Some((id, count)),
            } => {
                let (id, count) = (*id, *count);
                self.emit(Op::Device(DeviceCode::Named { id, count }));
                return Ok(());
            }
            ThreadOp::SyncWarp => ThreadCode::SyncWarp,
            ThreadOp::SyncGrid => {
                self.program.traffic.sync_grid = true;
                ThreadCode::SyncGrid
            }
            ThreadOp::BarrierArrive { barrier, index } => {
                let (barrier, index) = self.barrier(*barrier, index)?;
                ThreadCode::Arrive { barrier, index }
            }
            ThreadOp::BarrierWait {
                barrier,
                index,
                parity,
            } => {
                let (barrier, index) = self.barrier(*barrier, index)?;
                ThreadCode::Wait {
                    barrier,
                    index,
                    parity: self.scalar(parity)?,
                }
            }
            ThreadOp::BarrierExpect {
                barrier,
                index,
                bytes,
                arrive,
            } => {
                let (barrier, index) = self.barrier(*barrier, index)?;
                ThreadCode::Expect {
                    barrier,
                    index,
                    bytes: self.scalar(bytes)?,
                    arrive: *arrive,
                }
            }
            ThreadOp::Dp4a {
                a,
                a_indices,
                b,
                b_indices,
                c,
                c_indices,
            } => {
                let access = self.element(*c, c_indices, 1, true, span)?;
                let number = self.program.accesses[access as usize].buffer;
                self.note_traffic(number, false);
                ThreadCode::Dp4a {
                    a: self.element(*a, a_indices, 4, false, span)?,
                    b: self.element(*b, b_indices, 4, false, span)?,
                    c: access,
                }
            }
            ThreadOp::Extern { name, .. } => {
                return Err(RunError::new(
                    codes::FOREIGN_CODE,
                    span,
                    format!("`{name}` is foreign code, which only a GPU can run"),
                ));
            }
            ThreadOp::Print { message, args } => {
                let values: Box<[Slot]> = self.scalars(args)?;
                let scalars = args.iter().map(|a| a.dtype().scalar);
                ThreadCode::Print {
                    message: message.clone(),
                    args: values.into_iter().zip(scalars).collect(),
                }
            }
            ThreadOp::SetMaxRegs { .. } => {
                self.emit(Op::Device(DeviceCode::Nothing));
                return Ok(());
            }
        };
        self.emit(Op::Thread(Box::new(code)));
        self.next = base;
        if let Some((var, slot)) = bound {
            self.vars.insert(var, vec![slot]);
            if let Slot::Lanes(i) = slot {
                self.next = i + 1;
            }
        }
        Ok(())
    }

    fn all_reduce(
        &mut self,
        combiner: &Combiner,
        value: Slot,
        cond: Slot,
        dst: u32,
        axes: [bool; 3],
    ) -> Compiled<AllReduceCode> {
        let lhs = self.fresh_lanes();
        let rhs = self.fresh_lanes();
        self.vars.insert(combiner.lhs, vec![lhs]);
        self.vars.insert(combiner.rhs, vec![rhs]);
        let identity = self.scalar(&combiner.identity)?;
        // The fold is run when all threads have come, so its code stands apart.
        let start = self.program.ops.len();
        let result = self.scalar(&combiner.body)?;
        let body: Box<[Op]> = self.program.ops.split_off(start).into();
        self.program.stmt_of.truncate(start);
        let plain = |op: &Op| matches!(op, Op::Alu1 { .. } | Op::Alu2 { .. } | Op::Alu3 { .. });
        if !body.iter().all(plain) {
            return Err(RunError::new(
                codes::INVALID_IR,
                combiner.body.span(),
                "a fold works on its two values alone",
            ));
        }
        Ok(AllReduceCode {
            value,
            cond,
            dst,
            axes,
            lhs,
            rhs,
            body,
            result,
            identity,
        })
    }

    pub(super) fn device_op(&mut self, op: &DeviceOp, span: Span) -> Compiled<()> {
        let what = match op {
            DeviceOp::Iteration(_) => return Ok(()),
            DeviceOp::Wait { .. } => "wait",
            DeviceOp::Commit(_) => "commit",
            DeviceOp::Barrier(_) => "barrier",
            DeviceOp::BarrierInit { .. } => "barrier_init",
            DeviceOp::Fence(_)
            | DeviceOp::SetPrio(_)
            | DeviceOp::SchedBarrier(_)
            | DeviceOp::SchedGroupBarrier { .. } => "fence",
        };
        self.statement(span, what.to_string());
        let code = match op {
            DeviceOp::Wait { counter, at_most } => DeviceCode::Wait {
                counter: *counter,
                at_most: *at_most,
            },
            DeviceOp::Commit(counter) => DeviceCode::Commit(*counter),
            DeviceOp::Barrier(BarrierKind::Block) => DeviceCode::Block,
            DeviceOp::Barrier(BarrierKind::Bare) => DeviceCode::Bare,
            DeviceOp::Barrier(BarrierKind::Named { id, count }) => DeviceCode::Named {
                id: *id,
                count: *count,
            },
            DeviceOp::Barrier(BarrierKind::Cond(cond)) => {
                DeviceCode::Cond(self.cast(cond, Scalar::Bool)?)
            }
            DeviceOp::BarrierInit {
                barrier,
                index,
                count,
            } => {
                let (barrier, index) = self.barrier(*barrier, index)?;
                DeviceCode::BarrierInit {
                    barrier,
                    index,
                    count: *count,
                }
            }
            DeviceOp::Fence(FenceKind::Wgmma) => DeviceCode::FenceProducts,
            DeviceOp::Fence(FenceKind::AsyncProxy) => DeviceCode::FenceProxy,
            DeviceOp::Fence(_)
            | DeviceOp::SetPrio(_)
            | DeviceOp::SchedBarrier(_)
            | DeviceOp::SchedGroupBarrier { .. }
            | DeviceOp::Iteration(_) => DeviceCode::Nothing,
        };
        self.emit(Op::Device(code));
        Ok(())
    }
}

fn thread_name(op: &ThreadOp) -> &'static str {
    match op {
        ThreadOp::AtomicRmw { .. } => "atomic_rmw",
        ThreadOp::AtomicVecAdd { .. } => "atomic_vec_add",
        ThreadOp::AtomicLoad { .. } => "atomic_load",
        ThreadOp::AtomicStore { .. } => "atomic_store",
        ThreadOp::Shuffle { .. } => "shuffle",
        ThreadOp::Vote { kind, .. } => match kind {
            VoteKind::Any | VoteKind::All | VoteKind::Ballot => "vote",
            VoteKind::BlockOr | VoteKind::BlockAnd | VoteKind::BlockCount => "block vote",
        },
        ThreadOp::WarpReduce { .. } => "warp_reduce",
        ThreadOp::AllReduce { .. } => "allreduce",
        ThreadOp::SyncThreads { .. } => "sync_threads",
        ThreadOp::SyncWarp => "sync_warp",
        ThreadOp::SyncGrid => "sync_grid",
        ThreadOp::BarrierArrive { .. } => "mbarrier_arrive",
        ThreadOp::BarrierWait { .. } => "mbarrier_wait",
        ThreadOp::BarrierExpect { .. } => "mbarrier_expect_tx",
        ThreadOp::Dp4a { .. } => "dp4a",
        ThreadOp::Extern { .. } => "extern",
        ThreadOp::Print { .. } => "print",
        ThreadOp::SetMaxRegs { .. } => "set_max_nreg",
    }
}
