//! Single elements: addressing, bounds, loads and stores.

use tilewright_ir::{AtomicOp, Scalar, small_float};

use crate::error::{Eval, Fault, Stop, codes};
use crate::exec::races::Race;
use crate::exec::state::Globals;
use crate::exec::{Exec, Pending};
use crate::memory::{LogEntry, Storage, byte_range};
use crate::program::{Access, BufferInfo, Num, Space};
use crate::value;

impl Exec<'_, '_> {
    /// The value of an element as a slot; outside of global memory, its safe value.
    pub(super) fn load_element(&mut self, access: &Access) -> Eval<u64> {
        let program = self.program;
        let info = &program.buffers[access.buffer as usize];
        let Some(index) = self.element(info, access)? else {
            return Ok(info.safe);
        };
        let bits = info.bits();
        if access.tracked
            && let Some(tracker) = &mut self.tracker
            && let Err(race) = tracker.read(info.space, index * bits as usize)
        {
            return Err(self.race(race, info, access));
        }
        self.note_read(info, index);
        match self.storage(info.space).load(bits, index) {
            Some(raw) => Ok(decode(info.scalar, raw)),
            None => self.unwritten(info, access, index),
        }
    }

    /// Notes a read of global memory, for races between blocks.
    #[inline]
    pub(super) fn note_read(&mut self, info: &BufferInfo, index: usize) {
        if let Space::Global(n) = info.space {
            let site = self.site as u32;
            self.globals.note_read(n, site, info.bits(), index, 1);
        }
    }

    /// A read of what nothing wrote: an error, or whatever is there.
    #[cold]
    fn unwritten(&mut self, info: &BufferInfo, access: &Access, index: usize) -> Eval<u64> {
        if self.checks.uninitialised {
            let at = self.coordinates(access)?;
            return Err(self.unwritten_at(info, &at, access.span));
        }
        let raw = crate::memory::read_bits(&self.storage(info.space).bytes, info.bits(), index);
        Ok(decode(info.scalar, raw))
    }

    #[cold]
    pub(super) fn unwritten_at(
        &mut self,
        info: &BufferInfo,
        at: &[i64],
        span: tilewright_ir::Span,
    ) -> Stop {
        self.fail(
            Fault::new(
                codes::UNINITIALISED,
                format!(
                    "`{}` is read but nothing wrote it: element {}",
                    info.name,
                    tuple(at)
                ),
            )
            .at(span)
            .help("initialise it first, for example with `T.clear`"),
        )
    }

    #[cold]
    fn race(&mut self, race: Race, info: &BufferInfo, access: &Access) -> Stop {
        let at = match self.coordinates(access) {
            Ok(at) => tuple(&at),
            Err(stop) => return stop,
        };
        let name = &info.name;
        let message = match race {
            Race::Writes => {
                format!("two points of a parallel loop write different values to `{name}` {at}")
            }
            Race::ReadsWritten => {
                format!("a point of a parallel loop reads what another one writes: `{name}` {at}")
            }
        };
        self.fail(
            Fault::new(codes::DATA_RACE, message)
                .at(access.span)
                .help("use a reduction, a reducer or an atomic, or split the loop"),
        )
    }

    /// The values of the indices.
    pub(super) fn coordinates(&mut self, access: &Access) -> Eval<Vec<i64>> {
        access.indices.iter().map(|i| self.int(i)).collect()
    }

    /// Where in storage an element is; `None` outside of global memory.
    #[inline]
    pub(super) fn element(&mut self, info: &BufferInfo, access: &Access) -> Eval<Option<usize>> {
        let mut offset = 0i64;
        for (d, index) in access.indices.iter().enumerate() {
            let i = self.int(index)?;
            if i < 0 || i >= info.shape[d] {
                return self.outside(info, access);
            }
            offset += i * info.strides[d];
        }
        let index = offset as usize * info.lanes + access.lane as usize;
        Ok(Some(index + self.base(info)))
    }

    #[cold]
    fn outside(&mut self, info: &BufferInfo, access: &Access) -> Eval<Option<usize>> {
        if matches!(info.space, Space::Global(_)) {
            return Ok(None);
        }
        let at = self.coordinates(access)?;
        Err(self.out_of_bounds(info, &at, access.span))
    }

    #[cold]
    pub(super) fn out_of_bounds(
        &mut self,
        info: &BufferInfo,
        at: &[i64],
        span: tilewright_ir::Span,
    ) -> Stop {
        let message = format!(
            "`{}` has no element {}: its shape is {}",
            info.name,
            tuple(at),
            tuple(&info.shape)
        );
        self.fail(
            Fault::new(codes::OUT_OF_BOUNDS, message)
                .at(span)
                .note("only global memory is checked: loads outside give zero, stores are dropped"),
        )
    }

    /// The first scalar of the current thread's copy.
    #[inline]
    pub(super) fn base(&self, info: &BufferInfo) -> usize {
        match info.space {
            Space::Private(number) => {
                let private = self.program.private_storages[number as usize];
                if private.varying {
                    self.lane * (private.stride * 8 / info.bits() as usize)
                } else {
                    0
                }
            }
            _ => info.offset,
        }
    }

    #[inline]
    pub(super) fn storage(&self, space: Space) -> &Storage {
        match space {
            Space::Global(n) => self.globals.storage(n),
            Space::Block(n) => &self.block.storages[n as usize],
            // Barriers have no bytes; the compiler refuses to address them as data.
            Space::Private(n) | Space::Barrier(n) => &self.strand.privates[n as usize],
        }
    }

    /// Overwrites an element with raw bits.
    #[inline]
    pub(super) fn write(&mut self, space: Space, bits: u32, index: usize, raw: u64) {
        match space {
            Space::Global(n) => {
                let site = self.site as u32;
                self.globals.store(n, site, bits, index, raw);
            }
            Space::Block(n) => self.block.storages[n as usize].store(bits, index, raw),
            Space::Private(n) | Space::Barrier(n) => {
                self.strand.privates[n as usize].store(bits, index, raw);
            }
        }
    }

    /// A store statement: all threads and lanes compute, then all store.
    pub(super) fn store_op(&mut self, stores: &[(Access, Num)], varying: bool) -> Eval<()> {
        if let [(access, value)] = stores
            && !varying
        {
            let slot = self.num(value)?;
            return match self.target(access, slot)? {
                Some(p) => {
                    self.write(p.space, p.bits, p.index, p.value);
                    Ok(())
                }
                None => Ok(()),
            };
        }
        self.pending.clear();
        let prepare = |this: &mut Self| {
            for (access, value) in stores {
                let slot = this.num(value)?;
                if let Some(p) = this.target(access, slot)? {
                    this.pending.push(p);
                }
            }
            Ok(())
        };
        if varying {
            self.each_lane(prepare)?;
        } else {
            prepare(self)?;
        }
        let pending = std::mem::take(&mut self.pending);
        self.lane_writes.clear();
        for p in &pending {
            if varying && self.checks.races && !matches!(p.space, Space::Private(_)) {
                let key = (p.space, p.index * p.bits as usize);
                if *self.lane_writes.entry(key).or_insert(p.value) != p.value {
                    let name = self.program.buffers[stores[0].0.buffer as usize]
                        .name
                        .clone();
                    return Err(self.fail(Fault::new(
                        codes::DATA_RACE,
                        format!("threads store different values to one element of `{name}`"),
                    )));
                }
            }
            self.write(p.space, p.bits, p.index, p.value);
        }
        self.pending = pending;
        Ok(())
    }

    /// What a store does; `None` when it falls outside of global memory.
    #[inline]
    fn target(&mut self, access: &Access, slot: u64) -> Eval<Option<Pending>> {
        let program = self.program;
        let info = &program.buffers[access.buffer as usize];
        let Some(index) = self.element(info, access)? else {
            return Ok(None);
        };
        let (bits, value) = (info.bits(), encode(info.scalar, slot));
        if access.tracked
            && let Some(tracker) = &mut self.tracker
            && let Err(race) = tracker.write(info.space, index * bits as usize, value)
        {
            return Err(self.race(race, info, access));
        }
        Ok(Some(Pending {
            space: info.space,
            bits,
            index,
            value,
        }))
    }

    /// An allocation: contents become undefined, or zero.
    pub(super) fn alloc(&mut self, buffer: u32, zero: bool, varying: bool) -> Eval<()> {
        let program = self.program;
        let info = &program.buffers[buffer as usize];
        match info.space {
            Space::Block(n) => {
                // Groups come by at different times, and other blocks of a cluster may have written
                // there before; what they share was fresh at the start.
                if !program.grouped && program.cluster.is_none() {
                    let storage = &mut self.block.storages[n as usize];
                    storage.forget(0, storage.bytes.len());
                }
                Ok(())
            }
            Space::Private(_) => {
                let fresh = |this: &mut Self| {
                    if let Some((number, range)) = this.copy_range(buffer) {
                        this.strand.privates[number].forget(range.start, range.len());
                    }
                    if zero {
                        let base = this.base(info);
                        let count = info.shape.iter().product::<i64>() as usize * info.lanes;
                        for i in 0..count {
                            this.write(info.space, info.bits(), base + i, 0);
                        }
                    }
                    Ok(())
                };
                if varying {
                    self.each_lane(fresh)
                } else {
                    fresh(self)
                }
            }
            Space::Global(_) | Space::Barrier(_) => Ok(()),
        }
    }

    /// An atomic update of an element. The old value is returned where `old` asks for it;
    /// otherwise an update of global memory may be put off.
    pub(super) fn atomic(
        &mut self,
        op: AtomicOp,
        info: &BufferInfo,
        index: usize,
        value: u64,
        old: bool,
        at: impl Fn(&mut Self) -> Eval<Vec<i64>>,
    ) -> Eval<u64> {
        if let (Space::Global(storage), Globals::Logged { log, .. }) =
            (info.space, &mut *self.globals)
            && !old
        {
            log.entries.push(LogEntry::Atomic {
                storage,
                site: self.site as u32,
                op,
                scalar: info.scalar,
                index,
                value,
            });
            return Ok(0);
        }
        let raw = match self.storage(info.space).load(info.bits(), index) {
            Some(raw) => raw,
            None if self.checks.uninitialised && op != AtomicOp::Exchange => {
                let at = at(self)?;
                return Err(self.unwritten_at(info, &at, tilewright_ir::Span::NONE));
            }
            None => crate::memory::read_bits(&self.storage(info.space).bytes, info.bits(), index),
        };
        let before = decode(info.scalar, raw);
        let after = encode(info.scalar, combine(op, info.scalar, before, value));
        match (info.space, &mut *self.globals) {
            (Space::Global(n), Globals::Direct { mem, races }) => {
                let (start, end) = byte_range(info.bits(), index, 1);
                races.update(n, self.site as u32, start, end - start);
                mem[n as usize].store(info.bits(), index, after);
            }
            _ => self.write(info.space, info.bits(), index, after),
        }
        Ok(before)
    }
}

/// The result of an atomic operation on two slots of the type.
pub(crate) fn combine(op: AtomicOp, scalar: Scalar, old: u64, value: u64) -> u64 {
    use tilewright_ir::BinOp;
    let binary = match op {
        AtomicOp::Exchange => return value,
        AtomicOp::Add => BinOp::Add,
        AtomicOp::Max => BinOp::Max,
        AtomicOp::Min => BinOp::Min,
        AtomicOp::Or => BinOp::BitOr,
        AtomicOp::And => BinOp::BitAnd,
        AtomicOp::Xor => BinOp::BitXor,
    };
    if scalar.is_float() {
        let (a, b) = (f64::from_bits(old), f64::from_bits(value));
        // Bitwise operations on floats are refused by the compiler.
        value::float_binary(binary, scalar, a, b).map_or(old, f64::to_bits)
    } else {
        let result = value::int_binary(binary, scalar, old as i64, value as i64);
        result.map_or(old, |v| v as u64)
    }
}

/// Stored bits as a slot.
#[inline]
pub(crate) fn decode(scalar: Scalar, raw: u64) -> u64 {
    if scalar.is_float() {
        small_float::float_from_bits(scalar, raw).to_bits()
    } else {
        value::int_from_bits(scalar, raw) as u64
    }
}

/// A slot as the bits to store; floats are rounded to the type.
#[inline]
pub(crate) fn encode(scalar: Scalar, slot: u64) -> u64 {
    if scalar.is_float() {
        small_float::float_to_bits(scalar, f64::from_bits(slot))
    } else {
        value::int_to_bits(scalar, slot as i64)
    }
}

/// `(3, 4)`
pub(crate) fn tuple(list: &[i64]) -> String {
    let parts: Vec<String> = list.iter().map(i64::to_string).collect();
    format!("({})", parts.join(", "))
}
