//! What names stand for while a kernel is compiled: variables, buffers, constants.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::small_float::{self, Number};
use tilewright_ir::uniform::{Among, Uniformity};
use tilewright_ir::{Buffer, BufferOrigin, Expr, ExprKind, Func, Param, Scalar, Span, Var};

use crate::compile::expr;
use crate::error::{RunError, codes};
use crate::program::{
    Access, BufferInfo, Float, Int, Num, Place, PrivateInfo, Rect, Space, Traffic, Uniform,
};
use crate::value;

/// What a call fixed: symbols and scalars, and the storage of global buffers.
#[derive(Clone, Debug, Default)]
pub(crate) struct Bound {
    /// Symbols and scalar parameters, as slots.
    pub consts: FxHashMap<Var, u64>,
    /// Storage number, shape and strides of tensors and workspaces.
    pub globals: FxHashMap<Buffer, GlobalInfo>,
    /// Parameters of address type, as the storage they point to.
    pub pointers: FxHashMap<Var, u32>,
    /// Bytes of each global storage.
    pub sizes: Vec<usize>,
}

#[derive(Clone, Debug)]
pub(crate) struct GlobalInfo {
    pub storage: u32,
    pub shape: Vec<i64>,
    pub strides: Vec<i64>,
}

/// The names of one kernel.
#[derive(Debug)]
pub(crate) struct Names<'f> {
    pub func: &'f Func,
    pub bound: &'f Bound,
    pub uniformity: Option<Uniformity<'f>>,
    places: FxHashMap<Var, Vec<Place>>,
    numbers: FxHashMap<Buffer, u32>,
    pub buffers: Vec<BufferInfo>,
    pub block_storages: Vec<usize>,
    pub private_storages: Vec<PrivateInfo>,
    pub barriers: Vec<u32>,
    pub slots: u32,
    pub traffic: Traffic,
    pub threads: u32,
    /// The storages whose accesses the race check follows at this point of the program.
    pub tracked: FxHashSet<Space>,
    /// Inside a parallel loop.
    pub in_point: bool,
    /// Private buffers allocated inside the current parallel loop.
    pub point_allocs: FxHashSet<Buffer>,
    /// What is read here that threads may disagree about.
    pub uniform: Uniform,
}

pub(crate) type Compiled<T> = Result<T, RunError>;

impl<'f> Names<'f> {
    pub fn new(func: &'f Func, bound: &'f Bound) -> Names<'f> {
        let globals = bound.sizes.len();
        Names {
            func,
            bound,
            uniformity: None,
            places: FxHashMap::default(),
            numbers: FxHashMap::default(),
            buffers: Vec::new(),
            block_storages: Vec::new(),
            private_storages: Vec::new(),
            barriers: Vec::new(),
            slots: 0,
            traffic: Traffic {
                read: vec![false; globals],
                written: vec![false; globals],
                ..Traffic::default()
            },
            threads: 1,
            tracked: FxHashSet::default(),
            in_point: false,
            point_allocs: FxHashSet::default(),
            uniform: Uniform::default(),
        }
    }

    /// Whether threads may disagree on the value. Each warp group has a strand of its own, so
    /// that only those of one count; so for variables and buffers.
    pub fn varying(&self, e: &Expr) -> bool {
        let uniformity = self.uniformity.as_ref();
        uniformity.is_some_and(|u| u.among(e) == Among::Thread)
    }

    pub fn var_varies(&self, var: Var) -> bool {
        let uniformity = self.uniformity.as_ref();
        uniformity.is_some_and(|u| u.of_var(var) == Among::Thread)
    }

    pub fn any_varying(&self, list: &[Expr]) -> bool {
        list.iter().any(|e| self.varying(e))
    }

    pub fn buffer_varies(&self, buffer: Buffer) -> bool {
        let uniformity = self.uniformity.as_ref();
        uniformity.is_some_and(|u| u.of_buffer(buffer) == Among::Thread)
    }

    /// A slot of its own.
    pub fn fresh(&mut self) -> u32 {
        self.slots += 1;
        self.slots - 1
    }

    /// A slot for each thread.
    pub fn fresh_lanes(&mut self) -> u32 {
        self.slots += self.threads;
        self.slots - self.threads
    }

    /// Makes places for a variable: one a lane of its type. Inside a parallel loop a variable
    /// belongs to the point, so it has one value.
    pub fn define(&mut self, var: Var) -> Vec<Place> {
        let varying = !self.in_point && self.var_varies(var);
        let lanes = self.func.vars[var].dtype.lanes;
        let places: Vec<Place> = (0..lanes)
            .map(|_| {
                if varying {
                    Place::Lane(self.fresh_lanes())
                } else {
                    Place::Slot(self.fresh())
                }
            })
            .collect();
        self.places.insert(var, places.clone());
        places
    }

    pub fn place_at(&mut self, var: Var, place: Place) {
        self.places.insert(var, vec![place]);
    }

    /// A scalar variable's new place.
    pub fn define_scalar(&mut self, var: Var, span: Span) -> Compiled<Place> {
        match self.define(var)[..] {
            [place] => Ok(place),
            _ => Err(RunError::new(
                codes::UNSUPPORTED,
                span,
                format!("`{}` is a vector here", self.func.vars[var].name),
            )),
        }
    }

    /// One lane of a variable.
    pub fn var(&mut self, var: Var, lane: usize, scalar: Scalar, span: Span) -> Compiled<Num> {
        if let Some(&value) = self.bound.consts.get(&var) {
            return Ok(constant(scalar, value));
        }
        let Some(&place) = self.places.get(&var).and_then(|p| p.get(lane)) else {
            let name = &self.func.vars[var].name;
            return Err(RunError::invalid(
                span,
                format!("`{name}` has no value here"),
            ));
        };
        if let Place::Lane(first) = place
            && !self.uniform.lanes.iter().any(|(f, _)| *f == first)
        {
            let name = self.func.vars[var].name.clone();
            self.uniform.lanes.push((first, name));
        }
        Ok(match (place, scalar.is_float()) {
            (Place::Slot(s), false) => Num::I(Int::Slot(s)),
            (Place::Slot(s), true) => Num::F(Float::Slot(s)),
            (Place::Lane(s), false) => Num::I(Int::Lane(s)),
            (Place::Lane(s), true) => Num::F(Float::Lane(s)),
        })
    }

    /// An element; `lane` counts the lanes of the access (a vector index, a vector element).
    pub fn access(
        &mut self,
        buffer: Buffer,
        indices: &[Expr],
        lane: usize,
        span: Span,
    ) -> Compiled<Access> {
        let number = self.buffer(buffer)?;
        let info = &self.buffers[number as usize];
        let (rank, lanes, space) = (info.shape.len(), info.lanes, info.space);
        if indices.len() != rank {
            return Err(RunError::invalid(
                span,
                format!(
                    "`{}` has {rank} dimensions but {} indices",
                    info.name,
                    indices.len()
                ),
            ));
        }
        if matches!(space, Space::Barrier(_)) {
            return Err(RunError::invalid(
                span,
                format!("`{}` holds barriers, not data", info.name),
            ));
        }
        // Element lanes are the inner ones.
        let (outer, inner) = (lane / lanes, lane % lanes);
        let indices: Compiled<Box<[Int]>> = indices
            .iter()
            .map(|i| {
                let which = if i.dtype().lanes > 1 { outer } else { 0 };
                expr::int(self, i, which)
            })
            .collect();
        if self.buffer_varies(buffer) && !self.point_allocs.contains(&self.func.root(buffer)) {
            let uniform = &mut self.uniform.buffers;
            if !uniform.contains(&number) {
                uniform.push(number);
            }
        }
        Ok(Access {
            buffer: number,
            indices: indices?,
            lane: inner as u32,
            tracked: self.tracked.contains(&space),
            span,
        })
    }

    pub fn rect(&mut self, region: &tilewright_ir::Region, span: Span) -> Compiled<Rect> {
        let buffer = self.buffer(region.buffer)?;
        let info = &self.buffers[buffer as usize];
        if region.dims.len() != info.shape.len() || info.lanes != 1 {
            let message = if info.lanes != 1 {
                format!("tile operations on `{}`, a buffer of vectors", info.name)
            } else {
                format!("`{}` has {} dimensions", info.name, info.shape.len())
            };
            return Err(RunError::new(codes::UNSUPPORTED, span, message));
        }
        if matches!(info.space, Space::Barrier(_)) {
            return Err(RunError::invalid(
                span,
                format!("`{}` holds barriers, not data", info.name),
            ));
        }
        if self.buffer_varies(region.buffer) && !self.uniform.buffers.contains(&buffer) {
            self.uniform.buffers.push(buffer);
        }
        let mut rect = Rect {
            buffer,
            start: Vec::new(),
            extent: Vec::new(),
        };
        for dim in &region.dims {
            rect.start.push(expr::int(self, &dim.start, 0)?);
            rect.extent.push(expr::int(self, &dim.extent, 0)?);
        }
        Ok(rect)
    }

    pub fn reads(&mut self, buffer: u32) {
        if let Space::Global(storage) = self.buffers[buffer as usize].space {
            self.traffic.read[storage as usize] = true;
        }
    }

    pub fn writes(&mut self, buffer: u32) {
        if let Space::Global(storage) = self.buffers[buffer as usize].space {
            self.traffic.written[storage as usize] = true;
        }
    }

    /// The buffer's number in the program; it is laid out on first use.
    pub fn buffer(&mut self, buffer: Buffer) -> Compiled<u32> {
        if let Some(&number) = self.numbers.get(&buffer) {
            return Ok(number);
        }
        let data = &self.func.buffers[buffer];
        let global = self.bound.globals.get(&buffer);
        let shape = match global {
            Some(info) => info.shape.clone(),
            None => self.extents(&data.shape, &data.name)?,
        };
        let lanes = data.dtype.lanes as usize;
        let elements = shape
            .iter()
            .try_fold(1i64, |n, &e| n.checked_mul(e))
            .and_then(|n| n.checked_mul(data.dtype.bits() as i64))
            .filter(|&bits| bits < 1 << 40);
        let Some(bits) = elements else {
            return Err(RunError::new(
                codes::TENSOR_SIZE,
                data.span,
                format!("`{}` is too large", data.name),
            ));
        };
        let bytes = (bits as usize).div_ceil(8);
        let strides = match (global, &data.strides) {
            (Some(info), _) => info.strides.clone(),
            (None, Some(strides)) => self.extents(strides, &data.name)?,
            (None, None) => contiguous(&shape),
        };
        let mut offset = 0;
        let space = match &data.origin {
            BufferOrigin::Param | BufferOrigin::Workspace => match global {
                Some(info) => Space::Global(info.storage),
                None => {
                    return Err(RunError::invalid(
                        data.span,
                        format!("`{}` is neither a parameter nor a workspace", data.name),
                    ));
                }
            },
            BufferOrigin::Alloc | BufferOrigin::Reducer(_) => {
                if data.scope.is_private() {
                    self.private_storages.push(PrivateInfo {
                        stride: bytes.next_multiple_of(24),
                        varying: self.buffer_varies(buffer),
                    });
                    Space::Private(self.private_storages.len() as u32 - 1)
                } else {
                    self.block_storages.push(bytes);
                    Space::Block(self.block_storages.len() as u32 - 1)
                }
            }
            BufferOrigin::Barriers(counts) => {
                self.barriers.extend(counts);
                Space::Barrier((self.barriers.len() - counts.len()) as u32)
            }
            BufferOrigin::View(base) => {
                let base = self.buffer(*base)?;
                let info = &self.buffers[base as usize];
                let room = info.shape.iter().product::<i64>() * info.lanes as i64;
                if bits > room * info.bits() as i64 || info.strides != contiguous(&info.shape) {
                    return Err(RunError::invalid(
                        data.span,
                        format!(
                            "`{}` does not fit what it is a view of, `{}`",
                            data.name, info.name
                        ),
                    ));
                }
                offset = info.offset * info.bits() as usize / data.dtype.scalar.bits() as usize;
                info.space
            }
            BufferOrigin::Pointer(address) => {
                let (storage, start) = self.pointed_at(address, &data.name)?;
                let width = data.dtype.scalar.bits() as i64;
                let fits = start + bits <= 8 * self.bound.sizes[storage as usize] as i64;
                if !fits || start % width != 0 {
                    return Err(RunError::new(
                        codes::ARG_SHAPE,
                        data.span,
                        format!("`{}` does not fit the memory it is made over", data.name),
                    ));
                }
                offset = (start / width) as usize;
                Space::Global(storage)
            }
        };
        let safe = match &data.safe_value {
            None => 0,
            Some(e) => {
                let number = self.constant(e)?;
                slot(data.dtype.scalar, number)
            }
        };
        self.buffers.push(BufferInfo {
            name: data.name.clone(),
            space,
            scalar: data.dtype.scalar,
            lanes,
            shape,
            strides,
            offset,
            safe,
        });
        let number = self.buffers.len() as u32 - 1;
        self.numbers.insert(buffer, number);
        Ok(number)
    }

    /// The storage that an address lies in, and the bit it points to: a pointer parameter, or
    /// an element of a tensor at constant indices.
    fn pointed_at(&mut self, address: &Expr, name: &str) -> Compiled<(u32, i64)> {
        if let Some(var) = address.as_var()
            && let Some(&storage) = self.bound.pointers.get(&var)
        {
            return Ok((storage, 0));
        }
        if let ExprKind::AddressOf { buffer, indices } = address.kind() {
            let number = self.buffer(*buffer)? as usize;
            let info = self.buffers[number].clone();
            if let Space::Global(storage) = info.space {
                let mut element = 0;
                for (index, stride) in indices.iter().zip(&info.strides) {
                    match self.constant(index)? {
                        Number::Int(i) if (0..1 << 40).contains(&i) => element += i as i64 * stride,
                        _ => return Err(self.far_address(address, name)),
                    }
                }
                let scalars = element * info.lanes as i64 + info.offset as i64;
                return Ok((storage, scalars * info.bits() as i64));
            }
        }
        Err(self.far_address(address, name))
    }

    fn far_address(&self, address: &Expr, name: &str) -> RunError {
        RunError::new(
            codes::UNSUPPORTED,
            address.span(),
            format!("`{name}` lies at an address known at run time only"),
        )
        .help("the reference evaluator follows pointer parameters, not tables of pointers")
    }

    /// The constant value of an expression over symbols and scalar parameters.
    pub fn constant(&mut self, e: &Expr) -> Compiled<Number> {
        match expr::num(self, e, 0)? {
            Num::I(Int::Const(v)) => Ok(Number::Int(value::wide(e.dtype().scalar, v))),
            Num::F(Float::Const(v)) => Ok(Number::Float(v)),
            _ => Err(RunError::invalid(
                e.span(),
                "this must be known when the kernel is launched",
            )),
        }
    }

    /// Constant extents, none negative.
    pub fn extents(&mut self, list: &[Expr], name: &str) -> Compiled<Vec<i64>> {
        let mut extents = Vec::new();
        for e in list {
            match self.constant(e)? {
                Number::Int(v) if (0..1 << 40).contains(&v) => extents.push(v as i64),
                _ => {
                    return Err(RunError::new(
                        codes::TENSOR_SIZE,
                        e.span(),
                        format!("`{name}` has a negative or impossible extent"),
                    ));
                }
            }
        }
        Ok(extents)
    }
}

/// Row-major strides.
pub(crate) fn contiguous(shape: &[i64]) -> Vec<i64> {
    let mut strides = vec![1; shape.len()];
    for d in (1..shape.len()).rev() {
        strides[d - 1] = strides[d] * shape[d].max(1);
    }
    strides
}

/// A number converted to a type, as a slot.
pub(crate) fn slot(scalar: Scalar, number: Number) -> u64 {
    match small_float::convert(scalar, number) {
        Number::Int(v) => v as i64 as u64,
        Number::Float(v) => v.to_bits(),
    }
}

fn constant(scalar: Scalar, slot: u64) -> Num {
    if scalar.is_float() {
        Num::F(Float::Const(f64::from_bits(slot)))
    } else {
        Num::I(Int::Const(slot as i64))
    }
}

/// The name of a parameter.
pub(crate) fn param_name<'f>(func: &'f Func, param: &Param) -> &'f str {
    match param {
        Param::Tensor { buffer, .. } => &func.buffers[*buffer].name,
        Param::Scalar(var) => &func.vars[*var].name,
    }
}
