//! The memory of a plain evaluation: values, and who touched them.

use std::collections::BTreeMap;

use super::{Invalid, Outcome};
use crate::program::*;
use crate::types::Type;

pub struct Memory {
    /// By buffer; what several names stand for is with the first of them.
    data: Vec<Storage>,
    /// Statements between which threads wait for each other have different regions.
    region: u32,
    /// The number of the block.
    block: i32,
}

#[derive(Default)]
struct Storage {
    values: Vec<Option<i64>>,
    /// Whether the statement that makes it was reached.
    there: bool,
    /// Who touched an element in the present region.
    marks: Vec<Mark>,
    /// Which blocks touched an element of a tensor.
    blocks: Vec<Blocks>,
    /// What was added to a float, in absolute terms.
    added: BTreeMap<usize, i128>,
}

#[derive(Clone, Copy, Default)]
struct Mark {
    region: u32,
    who: u32,
    several: bool,
    kinds: u8,
}

#[derive(Clone, Copy)]
struct Blocks {
    reader: i32,
    writer: i32,
    atomic: Option<AtomicOp>,
}

const NOBODY: i32 = -1;
const SEVERAL: i32 = -2;

const READ: u8 = 1;
const WRITE: u8 = 2;
const ATOMIC: u8 = 4;

impl Memory {
    pub fn new(program: &Program) -> Memory {
        let mut data = Vec::new();
        for (n, buffer) in program.buffers.iter().enumerate() {
            let mut storage = Storage::default();
            if buffer.scope == Scope::Global {
                let values = program.start_values(Buf(n));
                storage.blocks = vec![
                    Blocks {
                        reader: NOBODY,
                        writer: NOBODY,
                        atomic: None,
                    };
                    values.len()
                ];
                storage.values = values.into_iter().map(Some).collect();
                storage.there = true;
            } else {
                let shape = program.shape(Buf(n));
                let mut count: i64 = shape.iter().product();
                if matches!(buffer.scope, Scope::Local | Scope::Var) {
                    count *= program.thread_count();
                }
                storage.values = vec![None; count.max(0) as usize];
            }
            storage.marks = vec![Mark::default(); storage.values.len()];
            data.push(storage);
        }
        Memory {
            data,
            region: 1,
            block: 0,
        }
    }

    pub fn tensor(&self, buf: Buf) -> Vec<i64> {
        let values = self.data[buf.0].values.iter();
        values.map(|v| v.unwrap_or(0)).collect()
    }

    pub fn enter_block(&mut self, block: i32) {
        self.block = block;
        self.region += 1;
        for storage in &mut self.data {
            // Only tensors have this.
            if storage.blocks.is_empty() {
                storage.values.fill(None);
                storage.added.clear();
                storage.there = false;
            }
        }
    }

    /// From here on nobody has touched anything, if threads can wait for each other here.
    pub fn new_region(&mut self, can_wait: bool) {
        self.region += u32::from(can_wait);
    }

    /// Makes a buffer: nothing is written.
    pub fn allocate(&mut self, buf: Buf) {
        self.data[buf.0].there = true;
        self.data[buf.0].values.fill(None);
        self.data[buf.0].added.clear();
    }

    /// The buffer that has the storage, and the place in it; `None` outside of a tensor.
    fn place(
        program: &Program,
        buf: Buf,
        at: &[i64],
        thread: Option<u32>,
    ) -> Outcome<Option<(Buf, usize)>> {
        let buffer = &program.buffers[buf.0];
        if at.len() != buffer.shape.len() {
            return Err(Invalid::Misplaced);
        }
        let mut offset = 0;
        for (i, dim) in at.iter().zip(&buffer.shape) {
            let extent = program.size(*dim);
            if !(0..extent).contains(i) {
                return match buffer.scope {
                    Scope::Global => Ok(None),
                    _ => Err(Invalid::OutOfBounds(buf)),
                };
            }
            offset = offset * extent + i;
        }
        if matches!(buffer.scope, Scope::Local | Scope::Var) {
            let count: i64 = program.shape(buf).iter().product();
            offset += count * i64::from(thread.unwrap_or(0));
        }
        Ok(Some((buffer.view_of.unwrap_or(buf), offset as usize)))
    }

    pub fn read(
        &mut self,
        program: &Program,
        buf: Buf,
        at: &[i64],
        thread: Option<u32>,
        who: u32,
    ) -> Outcome<i64> {
        let Some((root, offset)) = Memory::place(program, buf, at, thread)? else {
            return Ok(0);
        };
        self.touch(root, offset, READ, who)?;
        let storage = &self.data[root.0];
        let scope = program.buffers[buf.0].scope;
        // Points see a thread's own scalars only where all threads have the same.
        if thread.is_none() && matches!(scope, Scope::Var | Scope::Local) {
            let first = storage.values[offset];
            let step = storage.values.len() / program.thread_count() as usize;
            let mut each = storage.values.iter().skip(offset).step_by(step.max(1));
            if each.any(|v| *v != first) {
                return Err(Invalid::Divergent);
            }
        }
        storage.values[offset].ok_or(Invalid::Uninitialised(buf))
    }

    pub fn write(
        &mut self,
        program: &Program,
        buf: Buf,
        at: &[i64],
        value: i64,
        thread: Option<u32>,
        who: u32,
    ) -> Outcome<()> {
        let Some((root, offset)) = Memory::place(program, buf, at, thread)? else {
            return Ok(());
        };
        self.touch(root, offset, WRITE, who)?;
        self.data[root.0].values[offset] = Some(value);
        Ok(())
    }

    pub fn atomic(
        &mut self,
        program: &Program,
        op: AtomicOp,
        buf: Buf,
        at: &[i64],
        value: i64,
        who: u32,
    ) -> Outcome<()> {
        let Some((root, offset)) = Memory::place(program, buf, at, None)? else {
            return Ok(());
        };
        self.touch(root, offset, ATOMIC, who)?;
        let ty: Type = program.buffers[buf.0].ty;
        let storage = &mut self.data[root.0];
        if let Some(blocks) = storage.blocks.get_mut(offset) {
            if blocks.atomic.is_some_and(|before| before != op) {
                return Err(Invalid::Race(buf));
            }
            blocks.atomic = Some(op);
        }
        let old = storage.values[offset].ok_or(Invalid::Uninitialised(buf))?;
        if op == AtomicOp::Add && ty.is_float() {
            let sum = storage.added.entry(offset).or_insert(i128::from(old.abs()));
            *sum += i128::from(value.abs());
            super::exact(*sum, ty)?;
        }
        let new = match op {
            AtomicOp::Add => super::finish(i128::from(old) + i128::from(value), ty)?,
            AtomicOp::Max => old.max(value),
            AtomicOp::Min => old.min(value),
        };
        storage.values[offset] = Some(new);
        Ok(())
    }

    fn touch(&mut self, root: Buf, offset: usize, kind: u8, who: u32) -> Outcome<()> {
        let storage = &mut self.data[root.0];
        if !storage.there {
            return Err(Invalid::Misplaced);
        }
        // A view can be larger than what it is a view of, where it was made smaller.
        let Some(mark) = storage.marks.get_mut(offset) else {
            return Err(Invalid::OutOfBounds(root));
        };
        if mark.region != self.region {
            *mark = Mark {
                region: self.region,
                who,
                several: false,
                kinds: kind,
            };
        } else {
            let other = mark.several || mark.who != who;
            if other && !(kind == mark.kinds && kind != WRITE) {
                return Err(Invalid::Race(root));
            }
            mark.several |= mark.who != who;
            mark.kinds |= kind;
        }
        let Some(blocks) = storage.blocks.get_mut(offset) else {
            return Ok(());
        };
        let me = self.block;
        let free = |other: i32| other == NOBODY || other == me;
        let fine = match kind {
            READ => free(blocks.writer) && blocks.atomic.is_none(),
            WRITE => free(blocks.writer) && free(blocks.reader) && blocks.atomic.is_none(),
            _ => blocks.writer == NOBODY && blocks.reader == NOBODY,
        };
        if !fine {
            return Err(Invalid::Race(root));
        }
        match kind {
            READ if free(blocks.reader) => blocks.reader = me,
            READ => blocks.reader = SEVERAL,
            WRITE => blocks.writer = me,
            _ => {}
        }
        Ok(())
    }
}
