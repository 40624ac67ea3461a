//! Compilation of micro-ops.

use std::sync::Arc;

use tilewright_ir::{
    Access as IrAccess, Buffer, Counter, Expr, Inst, LayoutAttr, Major, MicroKind, MicroOp,
    MmaInst, Scalar, Scope, Span, Sparsity, TmaBox,
};
use tilewright_layout::bulk::BulkTile;
use tilewright_layout::descriptor::MatrixDescriptor;

use super::Compiler;
use super::expr::harmless;
use crate::compile::names::Compiled;
use crate::error::{RunError, codes};
use crate::simt::bulk::Arrival;
use crate::simt::group_mma::{GroupTable, Tile};
use crate::simt::mma::MmaTable;
use crate::simt::program::{Access, MicroCode, Op, Slot, Space};
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
        let invalid = |message: String| Err(RunError::invalid(span, message));
        let dest_buffer = self.buffer(op.dest.region.buffer)?;
        let mut source_buffers = Vec::new();
        for source in &op.sources {
            source_buffers.push(self.buffer(source.region.buffer)?);
        }
        let multiplies = matches!(op.inst, Inst::Mma(_) | Inst::GroupMma { .. });
        let wanted = match op.inst {
            Inst::Mma(inst) => inst.sources(),
            Inst::GroupMma { .. } => 2,
            _ => 1,
        };
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
                let held = |at: &u32| matches!(self.program.buffers[*at as usize].space, Local(_));
                source_buffers.iter().all(held)
            }
            (Inst::GroupMma { .. }, Local(_) | Shared(_), Local(_)) => {
                matches!(
                    self.program.buffers[source_buffers[1] as usize].space,
                    Shared(_)
                )
            }
            (Inst::Tma(_), Global(_), Shared(_)) | (Inst::Tma(_), Shared(_), Global(_)) => true,
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
                let spread = (op.width - 1) * op.apart + 1;
                let of = |space: &Space| match space {
                    Local(_) => spread,
                    _ => op.width,
                };
                if op.apart != 1 && !bits.is_multiple_of(8) {
                    return invalid(format!("elements of {bits} bits that stand apart"));
                }
                (of(&dest.space), of(&source.space), None)
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
                let e = source_buffers.get(2).filter(|_| inst.is_sparse());
                let e = e.map(|&e| &self.program.buffers[e as usize]);
                let of_metadata = |s: Scalar| {
                    let kept = Sparsity::of(inst.a);
                    kept.is_some_and(|kept| kept.per_integer(s).is_some())
                };
                if let Some(e) = e.filter(|e| !of_metadata(e.scalar)) {
                    return invalid(format!("`{inst}` with metadata of {}", e.scalar));
                }
                let Some(table) = MmaTable::new(&inst, e.map(|e| e.scalar.bits())) else {
                    return missing();
                };
                let held = |at: &u32| &self.program.buffers[*at as usize];
                let sources = || source_buffers.iter().map(held);
                let taken = |at: usize, held: Scalar| match at {
                    0 => held == inst.a,
                    1 => held == inst.b,
                    _ if inst.is_sparse() => of_metadata(held),
                    _ => held == Scalar::F8E8M0,
                };
                let mut numbered = sources().enumerate();
                let as_taken = numbered.all(|(at, held)| taken(at, held.scalar));
                if !as_taken || dest.scalar != inst.acc {
                    let types: Vec<String> =
                        sources().map(|held| held.scalar.to_string()).collect();
                    return invalid(format!(
                        "`{inst}` on registers of {} and {}",
                        types.join(", "),
                        dest.scalar
                    ));
                }
                if sources().chain([&dest]).any(|held| held.lanes != 1) {
                    return invalid(format!("`{inst}` on registers of vectors"));
                }
                (table.c.per_lane, table.a.per_lane, Some(Arc::new(table)))
            }
            Inst::GroupMma { mma, a, b, fresh } => {
                let b_info = &self.program.buffers[source_buffers[1] as usize];
                let plain = [&dest, &source, b_info].iter().all(|x| x.lanes == 1);
                let types = (source.scalar, b_info.scalar, dest.scalar);
                if types != (mma.a, mma.b, mma.acc) || !plain {
                    return invalid(format!(
                        "`{mma}` on {}, {} and {}",
                        source.scalar, b_info.scalar, dest.scalar
                    ));
                }
                let table = self.group_table(&mma, op, [a, b]);
                let Some(mut table) = table else {
                    return invalid(format!("`{mma}` on tiles that do not lie in panels"));
                };
                let axis = op.axes.first().filter(|_| fresh);
                let step = axis.and_then(|(var, _)| self.vars.get(var));
                table.step = match step.map(Vec::as_slice) {
                    Some(&[Slot::One(step)]) => Some(step),
                    _ => None,
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
            Inst::Tma(tile) => {
                let (counter, tiles) = match op.kind {
                    MicroKind::TmaStore => (Counter::TmaStore, &op.sources[0]),
                    _ => (Counter::Mbarrier, &op.dest),
                };
                let load = counter == Counter::Mbarrier;
                if op.counter != Some(counter) || load != op.arrives.is_some() {
                    let message = "a bulk copy that neither a barrier nor a group hears of";
                    return invalid(message.to_string());
                }
                if !self.is_of_boxes(tiles.region.buffer, &tile) {
                    let name = &self.func.buffers[tiles.region.buffer].name;
                    return invalid(format!(
                        "a box of {tile} does not lie in `{name}` as the copy engine has it"
                    ));
                }
                self.program.bulk_copies = true;
                (1, 1, None)
            }
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
            let width = match &mma {
                Some(table) => table.of_source(i),
                None => source_width,
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
        let arrives = match &op.arrives {
            Some(arrival) => {
                let (barrier, index) = self.barrier(arrival.barrier, &arrival.index)?;
                Some(Arrival {
                    barrier,
                    index,
                    multicast: arrival.multicast,
                })
            }
            None => None,
        };
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
            apart: op.apart,
            arrives,
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

    /// Whether boxes lie in a buffer of shared memory as the copy engine writes them.
    fn is_of_boxes(&self, buffer: Buffer, tile: &TmaBox) -> bool {
        let data = &self.func.buffers[buffer];
        let place = match &data.layout {
            Some(LayoutAttr::Placed(place)) => Some(&**place),
            _ => None,
        };
        let Some(shape) = data.const_shape() else {
            return false;
        };
        // A row is a tile of one.
        let shape = [vec![1; usize::from(shape.len() == 1)], shape].concat();
        let own = tile.in_shared(shape.len());
        let lies = BulkTile::of(place, &shape, data.dtype.bits().into());
        match (own.as_deref(), lies) {
            (Some([.., rows, cols]), Some(lies)) => lies.takes((*rows).into(), (*cols).into()),
            _ => false,
        }
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
            return Err(RunError::invalid(
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
    pub(in crate::simt) fn note_traffic(&mut self, buffer: u32, writes: bool) {
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
}
