//! What a kernel takes, whoever's GPU it runs on.

/// What the caller of a kernel passes to it, checked at every launch.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct KernelSpec {
    pub params: Vec<ParamSpec>,
    /// Where the kernel comes from (`gemm.py:12`), for the report of a fault.
    pub origin: Option<String>,
}

/// One parameter.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ParamSpec {
    pub name: String,
    pub kind: ParamKind,
}

/// What a parameter takes.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum ParamKind {
    /// The address of device memory.
    Pointer {
        /// The element type's name. Checked against views that say what they hold.
        dtype: Option<String>,
        /// What the code assumes of the address: vector loads need up to 16 bytes.
        align: u32,
        /// The least that must be there.
        min_bytes: u64,
    },
    Scalar(ScalarType),
    /// A structure by value: a tensor map.
    Bytes {
        size: u32,
    },
}

/// The type of a scalar parameter.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum ScalarType {
    Bool,
    I8,
    I16,
    I32,
    I64,
    U8,
    U16,
    U32,
    U64,
    F16,
    BF16,
    F32,
    F64,
}

impl ScalarType {
    pub fn bytes(self) -> u32 {
        match self {
            Self::Bool | Self::I8 | Self::U8 => 1,
            Self::I16 | Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::I32 | Self::U32 | Self::F32 => 4,
            Self::I64 | Self::U64 | Self::F64 => 8,
        }
    }
}

impl ParamKind {
    /// A pointer to elements of a type, aligned for 16-byte vectors.
    pub fn pointer(dtype: &str) -> Self {
        Self::Pointer {
            dtype: Some(dtype.to_owned()),
            align: 16,
            min_bytes: 0,
        }
    }

    pub(super) fn bytes(&self) -> u32 {
        match self {
            Self::Pointer { .. } => 8,
            Self::Scalar(scalar) => scalar.bytes(),
            Self::Bytes { size } => *size,
        }
    }
}

impl ParamSpec {
    pub fn new(name: &str, kind: ParamKind) -> Self {
        Self {
            name: name.to_owned(),
            kind,
        }
    }
}
