//! Buffers, their scopes, regions of them, and layout annotations.

use std::sync::Arc;

use tilewright_form::{Family, Fragment, Place};

use crate::diag::Span;
use crate::dtype::DType;
use crate::expr::Expr;
use crate::ids::{Buffer, Var};
use crate::tile_op::ReduceKind;

/// Where a buffer lives and who sees it.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug, PartialOrd, Ord)]
pub enum Scope {
    /// Device memory: parameters, outputs, workspaces. Seen by the whole grid.
    Global,
    /// On-chip memory of the block.
    Shared,
    /// One logical tensor of the block, spread over its threads' registers by a layout.
    Fragment,
    /// A private array of each thread.
    Local,
    /// A private mutable scalar of each thread; rank 0.
    Var,
    /// Arrival barriers of the block, one an element.
    Barrier,
    /// Tensor memory (sm_100).
    Tmem,
    /// Contributions of many points to one value; readable after finalisation only.
    Reducer,
}

impl Scope {
    pub const ALL: [Scope; 8] = [
        Scope::Global,
        Scope::Shared,
        Scope::Fragment,
        Scope::Local,
        Scope::Var,
        Scope::Barrier,
        Scope::Tmem,
        Scope::Reducer,
    ];

    /// Whether each thread has such memory of its own.
    pub const fn is_private(self) -> bool {
        matches!(self, Scope::Local | Scope::Var)
    }

    /// The word in the text form.
    pub const fn name(self) -> &'static str {
        match self {
            Scope::Global => "global",
            Scope::Shared => "shared",
            Scope::Fragment => "fragment",
            Scope::Local => "local",
            Scope::Var => "var",
            Scope::Barrier => "barrier",
            Scope::Tmem => "tmem",
            Scope::Reducer => "reducer",
        }
    }

    pub fn from_name(name: &str) -> Option<Scope> {
        Scope::ALL.into_iter().find(|s| s.name() == name)
    }
}

/// What a buffer is.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct BufferData {
    /// The user's name; made unique by the printer where two buffers share one.
    pub name: String,
    pub scope: Scope,
    pub dtype: DType,
    /// One extent a dimension; constant, or an expression over symbols for global buffers.
    pub shape: Vec<Expr>,
    /// Element strides; `None` is contiguous row-major.
    pub strides: Option<Vec<Expr>>,
    /// Where the storage comes from.
    pub origin: BufferOrigin,
    /// The layout slot: the user's annotation, later the inferred layout.
    pub layout: Option<LayoutAttr>,
    /// How many versions (slots) the pipelined program keeps.
    pub versions: u32,
    /// Where shared memory holds it, at device level.
    pub place: Option<SharedPlace>,
    /// What a load outside a global buffer yields; `None` is zero.
    pub safe_value: Option<Expr>,
    pub span: Span,
}

impl BufferData {
    /// A buffer allocated in a kernel: one version, row-major, no layout yet.
    pub fn new(
        name: impl Into<String>,
        scope: Scope,
        dtype: DType,
        shape: Vec<Expr>,
    ) -> BufferData {
        BufferData {
            name: name.into(),
            scope,
            dtype,
            shape,
            strides: None,
            origin: BufferOrigin::Alloc,
            layout: None,
            versions: 1,
            place: None,
            safe_value: None,
            span: Span::NONE,
        }
    }

    /// The extents, where all of them are constants.
    pub fn const_shape(&self) -> Option<Vec<i64>> {
        let extents = self.shape.iter();
        extents.map(|e| i64::try_from(e.as_int()?).ok()).collect()
    }

    /// Where memory holds the elements, if not in row-major order.
    pub fn placed(&self) -> Option<&Place> {
        match &self.layout {
            Some(LayoutAttr::Placed(place)) => Some(place),
            _ => None,
        }
    }

    /// Which thread and register hold the elements.
    pub fn held(&self) -> Option<&Arc<Fragment>> {
        match &self.layout {
            Some(LayoutAttr::Held(fragment)) => Some(fragment),
            _ => None,
        }
    }
}

/// Bytes of the block's shared memory: all versions of a buffer, in its layout. Buffers whose
/// places overlap are one memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct SharedPlace {
    /// The first byte, from the start of the block's shared memory.
    pub offset: u32,
    pub bytes: u32,
}

impl SharedPlace {
    /// What a place starts at a multiple of: the widest access.
    pub const ALIGN: u32 = 16;

    /// The first byte after it.
    pub const fn end(self) -> u32 {
        self.offset.saturating_add(self.bytes)
    }

    pub const fn overlaps(self, other: SharedPlace) -> bool {
        self.offset < other.end() && other.offset < self.end()
    }

    /// The bytes of one of so many versions; all of them where they are not of one length.
    pub const fn version(self, version: u32, versions: u32) -> SharedPlace {
        if versions == 0 || version >= versions || !self.bytes.is_multiple_of(versions) {
            return self;
        }
        let bytes = self.bytes / versions;
        SharedPlace {
            offset: self.offset.saturating_add(version.saturating_mul(bytes)),
            bytes,
        }
    }
}

/// Where a buffer's storage comes from.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum BufferOrigin {
    /// A parameter of the function (an output among them).
    Param,
    /// A workspace shared by all kernels of the call (`alloc_global`).
    Workspace,
    /// Allocated in a kernel body.
    Alloc,
    /// Arrival barriers with the arrivals that complete a phase of each.
    Barriers(Vec<u32>),
    /// A reducer folding with this operation.
    Reducer(ReduceKind),
    /// The same storage as another buffer, in linear row-major order, bits reinterpreted.
    View(Buffer),
    /// Global memory at an address known at run time.
    Pointer(Expr),
}

/// A rectangle of a buffer: one start and extent a dimension.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct Region {
    pub buffer: Buffer,
    pub dims: Vec<RegionDim>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub struct RegionDim {
    pub start: Expr,
    pub extent: Expr,
}

impl Region {
    /// The whole buffer.
    pub fn whole(buffer: Buffer, data: &BufferData) -> Region {
        let dims = data.shape.iter().map(|extent| RegionDim {
            start: Expr::zero(extent.dtype()),
            extent: extent.clone(),
        });
        Region {
            buffer,
            dims: dims.collect(),
        }
    }

    /// Whether this is all of the buffer, as far as constants tell.
    pub fn is_whole(&self, data: &BufferData) -> bool {
        let dims = self.dims.iter().zip(&data.shape);
        dims.len() == data.shape.len()
            && dims
                .into_iter()
                .all(|(d, extent)| d.start.is_int(0) && d.extent == *extent)
    }

    /// The extents that are not the constant one.
    pub fn non_unit_extents(&self) -> Vec<&Expr> {
        let extents = self.dims.iter().map(|d| &d.extent);
        extents.filter(|e| !e.is_int(1)).collect()
    }
}

/// A layout: placement only, never values. Wishes and maps are what the user wrote; layout inference
/// makes a place in memory or a fragment of each, which is kept from there on.
#[derive(Clone, PartialEq, Eq, Debug)]
pub enum LayoutAttr {
    /// Row-major.
    Linear,
    /// Wish: the swizzle that the target's matrix instructions read without bank conflicts.
    Swizzled,
    /// Any map from logical to physical indices.
    Map(IndexMap),
    /// A map from logical indices to thread and register.
    FragmentMap(FragmentMap),
    /// Where memory holds each element.
    Placed(Arc<Place>),
    /// Which thread and register hold each element.
    Held(Arc<Fragment>),
}

impl LayoutAttr {
    /// Whether the user wrote it and nothing has decided yet what it means.
    pub fn is_wish(&self) -> bool {
        matches!(
            self,
            LayoutAttr::Swizzled | LayoutAttr::Map(_) | LayoutAttr::FragmentMap(_)
        )
    }
}

impl From<Place> for LayoutAttr {
    fn from(place: Place) -> LayoutAttr {
        match place.family() {
            Family::Linear => LayoutAttr::Linear,
            _ => LayoutAttr::Placed(Arc::new(place)),
        }
    }
}

/// `(i, j) -> (i // 8, j ^ …)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct IndexMap {
    pub inputs: Vec<Var>,
    pub outputs: Vec<Expr>,
}

/// `(i, j; rep) -> thread, (slot, …)`.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct FragmentMap {
    pub inputs: Vec<Var>,
    /// Ranges over the replicas of an element.
    pub replica: Option<Var>,
    pub replicas: u32,
    pub thread: Expr,
    pub slots: Vec<Expr>,
}
