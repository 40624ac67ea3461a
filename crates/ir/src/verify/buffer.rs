//! Declarations of buffers, and layouts.

use crate::buffer::{BufferData, BufferOrigin, LayoutAttr, Scope, SharedPlace};
use crate::diag::Span;
use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::{Level, VarKind};
use crate::ids::{Buffer, Var};
use crate::tile_op::ReduceKind;
use crate::verify::Verifier;
use crate::visit_ids::Id;

impl<'a> Verifier<'a> {
    /// Checks a declaration, and makes the buffer visible to the end of the block.
    pub(super) fn declare_buffer(&mut self, buffer: Buffer) {
        let func = self.func;
        let Some(data) = func.buffers.get(buffer) else {
            self.fail("dangling-id", format!("{buffer} does not exist"));
            return;
        };
        if let Some(&first) = self.bound.get(&Id::Buffer(buffer)) {
            let name = self.buffer_name(buffer);
            let error = self.fail("buffer-twice", format!("`{name}` is declared twice"));
            error.secondary.push(crate::Label {
                span: first,
                text: "first declared here".to_string(),
            });
        }
        if data.dtype.lanes == 0 {
            self.error("dtype-lanes", data.span, "a type without lanes");
        }
        self.shape(data);
        self.origin(data);
        if let Some(value) = &data.safe_value {
            if data.scope != Scope::Global {
                let message = "only global memory has a value outside of its bounds";
                self.error("safe-value", data.span, message);
            }
            self.value_of(
                value,
                data.dtype,
                "safe-value",
                "the value outside of the bounds",
            );
        }
        if let Some(layout) = &data.layout {
            let is_map = matches!(layout, LayoutAttr::FragmentMap(_) | LayoutAttr::Held(_));
            // Below tile level a fragment is an array of registers that remembers its layout.
            let registers = !self.tile_level() && data.scope == Scope::Local;
            if is_map != (data.scope == Scope::Fragment) && !(is_map && registers) {
                let message = format!("this layout is not for {} memory", data.scope.name());
                self.error("layout-scope", data.span, message);
            }
            let rank = (!registers).then_some(data.shape.len());
            self.layout(layout, rank, data.span);
            let shape = match layout {
                LayoutAttr::Placed(place) => Some(place.shape()),
                LayoutAttr::Held(fragment) if !registers => Some(fragment.shape()),
                _ => None,
            };
            if let Some(shape) = shape
                && data.const_shape().is_none_or(|own| own != shape)
            {
                let message = "a layout of another shape than the buffer's";
                self.error("layout-shape", data.span, message);
            }
            if layout.is_wish() && !self.tile_level() {
                let message = "below tile level a layout is decided";
                self.error("layout-undecided", data.span, message);
            }
        }
        if let Some(place) = data.place {
            self.place(data, place);
        }
        self.make_visible(Id::Buffer(buffer));
    }

    /// Offsets are decided last, and say where the storage is: a view has its base's.
    fn place(&mut self, data: &'a BufferData, place: SharedPlace) {
        let own = data.scope == Scope::Shared && data.origin == BufferOrigin::Alloc;
        let mut bits = i128::from(data.versions) * i128::from(data.dtype.bits());
        for extent in data.shape.iter().filter_map(Expr::as_int) {
            bits = bits.saturating_mul(extent);
        }
        let message = if self.func.level != Level::Device {
            "an offset in shared memory is for device level".to_string()
        } else if !own {
            "only allocations of shared memory have an offset".to_string()
        } else if !place.offset.is_multiple_of(SharedPlace::ALIGN) {
            let align = SharedPlace::ALIGN;
            format!("offset {} is no multiple of {align} bytes", place.offset)
        } else if bits > i128::from(place.bytes) * 8 {
            format!("{} bytes are too few for this shape", place.bytes)
        } else if place.offset.checked_add(place.bytes).is_none() {
            format!("{} bytes from {} on end nowhere", place.bytes, place.offset)
        } else {
            return;
        };
        self.error("shared-place", data.span, message);
    }

    fn shape(&mut self, data: &'a BufferData) {
        for extent in &data.shape {
            self.integer(extent, "buffer-shape", "an extent");
            match extent.as_int() {
                Some(n) if n <= 0 => {
                    let message = format!("an extent of {n}");
                    self.error("buffer-shape", data.span, message);
                }
                Some(_) => {}
                None if data.scope != Scope::Global => {
                    let message = format!("{} memory needs constant extents", data.scope.name());
                    self.error("buffer-shape", data.span, message);
                }
                None => {}
            }
        }
        if let Some(strides) = &data.strides {
            if strides.len() != data.shape.len() {
                let message = format!(
                    "{} strides for {} dimensions",
                    strides.len(),
                    data.shape.len()
                );
                self.error("buffer-shape", data.span, message);
            }
            for stride in strides {
                self.integer(stride, "buffer-shape", "a stride");
            }
        }
        if data.versions == 0 {
            self.error("buffer-shape", data.span, "a buffer without a version");
        }
    }

    fn origin(&mut self, data: &'a BufferData) {
        let wrong = |v: &mut Self, message: String| {
            v.error("buffer-origin", data.span, message);
        };
        let scope = data.scope;
        let global = scope == Scope::Global;
        match &data.origin {
            BufferOrigin::Param | BufferOrigin::Workspace if !global => {
                wrong(
                    self,
                    format!("{} memory is no parameter or workspace", scope.name()),
                );
            }
            BufferOrigin::Param | BufferOrigin::Workspace => {}
            BufferOrigin::Pointer(address) => {
                if !global {
                    wrong(self, format!("a pointer to {} memory", scope.name()));
                }
                self.value_of(address, DType::HANDLE, "buffer-origin", "the address");
            }
            BufferOrigin::Alloc => match scope {
                Scope::Global => wrong(self, "global memory is not allocated in a kernel".into()),
                Scope::Barrier => wrong(self, "a barrier needs `arrivals`".into()),
                Scope::Reducer => wrong(self, "a reducer needs `op`".into()),
                Scope::Shared | Scope::Fragment | Scope::Local | Scope::Var | Scope::Tmem => {}
            },
            BufferOrigin::Barriers(arrivals) => {
                let count = data.shape.first().and_then(Expr::as_int);
                let one_each = data.shape.len() == 1 && count == Some(arrivals.len() as i128);
                if scope != Scope::Barrier || data.dtype != DType::U64 || !one_each {
                    wrong(self, "barriers are uint64, with one count each".into());
                }
                if arrivals.contains(&0) {
                    wrong(self, "a barrier without arrivals never completes".into());
                }
            }
            BufferOrigin::Reducer(kind) => {
                if scope != Scope::Reducer {
                    wrong(self, format!("`op` on {} memory", scope.name()));
                }
                let folds = match kind {
                    ReduceKind::Sum | ReduceKind::Max | ReduceKind::Min => true,
                    ReduceKind::BitAnd | ReduceKind::BitOr | ReduceKind::BitXor => {
                        !data.dtype.scalar.is_float()
                    }
                    ReduceKind::AbsSum | ReduceKind::AbsMax => false,
                };
                if !folds || !Self::is_number(data.dtype) {
                    wrong(
                        self,
                        format!("no reducer folds {} by {}", data.dtype, kind.name()),
                    );
                }
            }
            BufferOrigin::View(base) => self.view(data, *base),
        }
        if scope == Scope::Var && !data.shape.is_empty() {
            wrong(self, "a variable has no dimensions".into());
        }
    }

    fn view(&mut self, data: &'a BufferData, base: Buffer) {
        // The base is declared before, so views cannot go in circles.
        if !self.use_buffer(base, data.span) {
            return;
        }
        let func = self.func;
        let from = &func.buffers[base];
        let holds_data = match from.scope {
            Scope::Global | Scope::Shared | Scope::Fragment | Scope::Local | Scope::Tmem => true,
            Scope::Var | Scope::Barrier | Scope::Reducer => false,
        };
        if data.scope != from.scope || !holds_data {
            let message = format!(
                "a view in {} of {} memory",
                data.scope.name(),
                from.scope.name()
            );
            self.error("view-scope", data.span, message);
        }
        let bits = |b: &BufferData| -> Option<i128> {
            let mut bits = b.dtype.bits() as i128;
            for extent in &b.shape {
                bits = bits.checked_mul(extent.as_int()?)?;
            }
            Some(bits)
        };
        if let (Some(ours), Some(theirs)) = (bits(data), bits(from))
            && ours != theirs
        {
            let message = format!("a view of {ours} bits on {theirs}");
            self.error("view-bits", data.span, message);
        }
    }

    /// The map's variables are visible in the map alone.
    pub(super) fn layout(&mut self, layout: &'a LayoutAttr, rank: Option<usize>, span: Span) {
        let since = self.open();
        let inputs = |v: &mut Self, inputs: &[Var]| {
            if let Some(rank) = rank
                && inputs.len() != rank
            {
                let message = format!("a map of {} indices for {rank} dimensions", inputs.len());
                v.error("layout-rank", span, message);
            }
            for var in inputs {
                v.bind_var(*var, VarKind::Bound);
            }
        };
        match layout {
            LayoutAttr::Linear
            | LayoutAttr::Swizzled
            | LayoutAttr::Placed(_)
            | LayoutAttr::Held(_) => {}
            LayoutAttr::Map(map) => {
                inputs(self, &map.inputs);
                for output in &map.outputs {
                    self.integer(output, "layout-rank", "a physical index");
                }
            }
            LayoutAttr::FragmentMap(map) => {
                inputs(self, &map.inputs);
                if let Some(replica) = map.replica {
                    self.bind_var(replica, VarKind::Bound);
                }
                if map.replicas == 0 {
                    self.error("layout-rank", span, "a fragment without replicas");
                }
                self.integer(&map.thread, "layout-rank", "the thread");
                for slot in &map.slots {
                    self.integer(slot, "layout-rank", "a register");
                }
            }
        }
        self.close(since);
    }
}
