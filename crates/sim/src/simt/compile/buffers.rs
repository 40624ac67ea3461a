//! Buffers: where each one lies and how its elements are placed.

use std::sync::Arc;

use tilewright_ir::{Buffer, BufferData, BufferOrigin, LayoutAttr, Scope, SharedPlace};

use super::Compiler;
use crate::compile::names::{Compiled, contiguous};
use crate::error::{RunError, codes};
use crate::simt::program::{BufferInfo, Space};

/// Shared buffers start at multiples of this: all banks of every target.
const SHARED_ALIGN: usize = 256;
const LOCAL_ALIGN: usize = 16;

/// The largest private or shared buffer that is taken seriously, in bits.
const MAX_BITS: i64 = 1 << 34;

impl Compiler<'_> {
    pub(super) fn is_private(&self, number: u32) -> bool {
        matches!(self.program.buffers[number as usize].space, Space::Local(_))
    }

    /// The buffer's number in the program; it is laid out on first use.
    pub(in crate::simt) fn buffer(&mut self, buffer: Buffer) -> Compiled<u32> {
        if let Some(&number) = self.numbers.get(&buffer) {
            return Ok(number);
        }
        let data = &self.func.buffers[buffer];
        let mut info = match &data.origin {
            BufferOrigin::View(base) => self.view(data, *base)?,
            _ => self.storage(buffer, data)?,
        };
        info.name = self.spelling.buffer(self.func, buffer).to_string();
        self.program.buffers.push(info);
        let number = self.program.buffers.len() as u32 - 1;
        self.numbers.insert(buffer, number);
        Ok(number)
    }

    /// A buffer with storage of its own.
    fn storage(&mut self, buffer: Buffer, data: &BufferData) -> Compiled<BufferInfo> {
        let mut info = self.info(data, Space::Global(0))?;
        if data.scope == Scope::Global {
            return self.global(buffer, data, info);
        }
        info.shape = self.names.extents(&data.shape, &data.name)?;
        info.strides = contiguous(&info.shape);
        info.versions = data.versions.max(1);
        if data.scope == Scope::Barrier {
            let counts = match &data.origin {
                BufferOrigin::Barriers(counts) => counts.clone(),
                _ => vec![0; elements(&info.shape, data)? as usize],
            };
            info.space = Space::Barrier(self.program.barriers.len() as u32);
            self.program.barriers.extend(counts);
            return Ok(info);
        }
        if !matches!(data.scope, Scope::Shared | Scope::Local | Scope::Var) {
            return Err(RunError::new(
                crate::simt::codes::NOT_LOWERED,
                data.span,
                format!(
                    "`{}` is still a {} buffer; the simulator runs lowered functions",
                    data.name,
                    data.scope.name()
                ),
            ));
        }
        let span = match data.scope {
            Scope::Shared => {
                let (places, span) = placement(data, &info.shape)?;
                info.places = places;
                span
            }
            _ => elements(&info.shape, data)?,
        };
        info.version_elements = span;
        let bits = span
            .checked_mul(i64::from(info.versions) * i64::from(data.dtype.bits()))
            .filter(|&bits| bits < MAX_BITS)
            .ok_or_else(|| too_large(data))?;
        let bytes = (bits as usize).div_ceil(8);
        info.space = if data.scope == Scope::Shared {
            self.owners += 1;
            info.owner = self.owners;
            Space::Shared(self.shared_place(data, bytes)? as u32)
        } else {
            let start = self.program.local_bytes.next_multiple_of(LOCAL_ALIGN);
            self.program.local_bytes = start + bytes;
            Space::Local(start as u32)
        };
        Ok(info)
    }

    /// The first byte of a shared buffer: the one it names, or one behind all that do.
    fn shared_place(&mut self, data: &BufferData, bytes: usize) -> Compiled<usize> {
        let Some(place) = data.place else {
            let all = self.func.buffers.values().filter_map(|b| b.place);
            let named = all.map(SharedPlace::end).max().unwrap_or(0) as usize;
            let free = self.program.shared_bytes.max(named);
            let start = free.next_multiple_of(SHARED_ALIGN);
            self.program.shared_bytes = start + bytes;
            self.shared_needed += bytes.next_multiple_of(16);
            return Ok(start);
        };
        if bytes > place.bytes as usize {
            return Err(RunError::invalid(
                data.span,
                format!(
                    "`{}` needs {bytes} bytes in its layout, not {}",
                    data.name, place.bytes
                ),
            ));
        }
        self.program.shared_overlaps |= self.placed.iter().any(|p| p.overlaps(place));
        self.placed.push(place);
        let end = place.end() as usize;
        self.program.shared_bytes = self.program.shared_bytes.max(end);
        Ok(place.offset as usize)
    }

    fn global(
        &mut self,
        buffer: Buffer,
        data: &BufferData,
        mut info: BufferInfo,
    ) -> Compiled<BufferInfo> {
        if let Some(global) = self.bound.globals.get(&buffer) {
            info.space = Space::Global(global.storage);
            info.shape = global.shape.clone();
            info.strides = global.strides.clone();
            return Ok(info);
        }
        let BufferOrigin::Pointer(address) = &data.origin else {
            return Err(RunError::invalid(
                data.span,
                format!("`{}` is neither a parameter nor a workspace", data.name),
            ));
        };
        info.shape = self.names.extents(&data.shape, &data.name)?;
        info.strides = match &data.strides {
            Some(strides) => self.names.extents(strides, &data.name)?,
            None => contiguous(&info.shape),
        };
        let bytes = elements(&info.shape, data)? as usize * data.dtype.bits() as usize / 8;
        match address.as_var().and_then(|v| self.bound.pointers.get(&v)) {
            Some(&storage) if bytes <= self.bound.sizes[storage as usize] => {
                info.space = Space::Global(storage);
                Ok(info)
            }
            Some(_) => Err(RunError::new(
                codes::ARG_SHAPE,
                data.span,
                format!("the tensor given for `{}` is too small", data.name),
            )),
            None => Err(RunError::new(
                codes::UNSUPPORTED,
                data.span,
                format!("`{}` lies at an address known at run time only", data.name),
            )),
        }
    }

    /// The same storage as another buffer, in linear row-major order.
    fn view(&mut self, data: &BufferData, base: Buffer) -> Compiled<BufferInfo> {
        let base = self.buffer(base)?;
        let root = self.program.buffers[base as usize].clone();
        let mut info = self.info(data, root.space)?;
        info.shape = self.names.extents(&data.shape, &data.name)?;
        info.strides = contiguous(&info.shape);
        let misfit = || {
            RunError::invalid(
                data.span,
                format!(
                    "`{}` does not fit what it is a view of, `{}`",
                    data.name, root.name
                ),
            )
        };
        let count = elements(&info.shape, data)?;
        let room = root.shape.iter().product::<i64>() * i64::from(root.lanes * root.bits());
        if count * i64::from(data.dtype.bits()) > room || root.strides != contiguous(&root.shape) {
            return Err(misfit());
        }
        info.version_elements = count;
        let (wide, own) = (
            i64::from(root.lanes * root.bits()),
            i64::from(data.dtype.bits()),
        );
        info.versions = root.versions;
        info.owner = root.owner;
        if root.versions > 1 {
            let bits = root.version_elements * wide;
            if bits % own != 0 {
                return Err(misfit());
            }
            info.version_elements = bits / own;
        }
        let own_placement = match (data.placed(), data.scope) {
            (Some(_), Scope::Shared) => Some(placement(data, &info.shape)?.0),
            _ => None,
        };
        info.places = match (own_placement, &root.places) {
            // A view with a placement of its own lays out the storage anew.
            (Some(places), _) => places,
            (None, None) => None,
            // Otherwise the bits stay where the base put them.
            (None, Some(places)) => {
                let mut mine = Vec::with_capacity(count as usize);
                for element in 0..count {
                    let first = element * own;
                    let place = |bit: i64| {
                        let at = places[(bit / wide) as usize];
                        i64::from(at) * wide + bit % wide
                    };
                    let at = place(first);
                    let last = place(first + own - 1);
                    if last - at != own - 1 || at % own != 0 {
                        return Err(RunError::new(
                            crate::simt::codes::LAYOUT,
                            data.span,
                            format!(
                                "an element of `{}` is spread out by the layout of `{}`",
                                data.name, root.name
                            ),
                        ));
                    }
                    mine.push((at / own) as u32);
                }
                Some(mine.into())
            }
        };
        Ok(info)
    }

    fn info(&mut self, data: &BufferData, space: Space) -> Compiled<BufferInfo> {
        Ok(BufferInfo {
            name: data.name.clone(),
            space,
            scalar: data.dtype.scalar,
            lanes: u32::from(data.dtype.lanes),
            shape: Vec::new(),
            strides: Vec::new(),
            places: None,
            version_elements: 0,
            versions: 1,
            owner: 0,
        })
    }
}

fn elements(shape: &[i64], data: &BufferData) -> Compiled<i64> {
    let count = shape.iter().try_fold(1i64, |n, &e| n.checked_mul(e));
    count
        .filter(|&n| n < MAX_BITS)
        .ok_or_else(|| too_large(data))
}

fn too_large(data: &BufferData) -> RunError {
    RunError::new(
        codes::TENSOR_SIZE,
        data.span,
        format!("`{}` is too large", data.name),
    )
}

/// The place of each element of a shared buffer, and the elements of space they need.
fn placement(data: &BufferData, shape: &[i64]) -> Compiled<(Option<Arc<[u32]>>, i64)> {
    let count = elements(shape, data)?;
    if data.layout.as_ref().is_some_and(LayoutAttr::is_wish) {
        let message = format!("the layout of `{}` is not decided", data.name);
        return Err(RunError::new(
            crate::simt::codes::LAYOUT,
            data.span,
            message,
        ));
    }
    let Some(layout) = data.placed() else {
        return Ok((None, count));
    };
    let mut places = Vec::with_capacity(count as usize);
    let mut index = vec![0; shape.len()];
    for _ in 0..count {
        places.push(layout.offset(&index) as u32);
        for (i, &extent) in index.iter_mut().zip(shape).rev() {
            *i += 1;
            if *i < extent {
                break;
            }
            *i = 0;
        }
    }
    Ok((Some(places.into()), layout.span()))
}
