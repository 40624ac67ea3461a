//! Tensor maps: what the tensor memory accelerator (TMA) of Hopper and later knows of a tensor.
//!
//! The driver fills the 128 bytes; a wrong description makes it say "invalid value" and nothing
//! more, so the rules are checked here first and each has its own sentence.

use std::fmt;

use super::super::error::DeviceError;
use super::super::launch::Arg;
use super::super::memory::View;

/// A tensor in global memory that TMA copies in boxes. Lists run from the innermost dimension
/// outwards.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct TiledTensor {
    pub dtype: TmaType,
    pub dims: Vec<u64>,
    /// Bytes from one index to the next of each dimension but the innermost, which is dense.
    pub strides: Vec<u64>,
    /// The box that one copy moves, in elements.
    pub boxes: Vec<u32>,
    pub swizzle: Swizzle,
    /// Whether what boxes bring is soon let go by the L2 cache.
    pub once: bool,
}

/// Element types that TMA knows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum TmaType {
    U8,
    U16,
    U32,
    I32,
    U64,
    I64,
    F16,
    F32,
    F64,
    BF16,
    Tf32,
}

/// How TMA permutes 16-byte pieces within shared memory.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub enum Swizzle {
    None,
    B32,
    B64,
    B128,
}

/// A filled tensor map; a kernel takes it as a `const __grid_constant__` parameter.
#[repr(C, align(64))]
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct TensorMap([u8; 128]);

/// A description that TMA cannot take.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum TensorMapError {
    Rank {
        rank: usize,
    },
    ListLengths {
        rank: usize,
        strides: usize,
        boxes: usize,
    },
    Dim {
        dim: usize,
        size: u64,
    },
    Stride {
        dim: usize,
        bytes: u64,
    },
    Box {
        dim: usize,
        size: u32,
    },
    InnerBytes {
        bytes: u64,
    },
    SwizzleWidth {
        bytes: u64,
        limit: u64,
    },
    Address {
        address: u64,
    },
    /// The buffer ends before the tensor does.
    TooSmall {
        needed: u64,
        got: u64,
    },
    /// The tensor is on another vendor's GPU.
    NoTma,
    Device(Box<DeviceError>),
}

impl TmaType {
    pub fn bytes(self) -> u64 {
        match self {
            Self::U8 => 1,
            Self::U16 | Self::F16 | Self::BF16 => 2,
            Self::U32 | Self::I32 | Self::F32 | Self::Tf32 => 4,
            Self::U64 | Self::I64 | Self::F64 => 8,
        }
    }

    /// `CUtensorMapDataType`.
    fn number(self) -> i32 {
        match self {
            Self::U8 => 0,
            Self::U16 => 1,
            Self::U32 => 2,
            Self::I32 => 3,
            Self::U64 => 4,
            Self::I64 => 5,
            Self::F16 => 6,
            Self::F32 => 7,
            Self::F64 => 8,
            Self::BF16 => 9,
            Self::Tf32 => 11,
        }
    }
}

impl Swizzle {
    /// The widest inner box, and `CUtensorMapSwizzle`.
    fn facts(self) -> (Option<u64>, i32) {
        match self {
            Self::None => (None, 0),
            Self::B32 => (Some(32), 1),
            Self::B64 => (Some(64), 2),
            Self::B128 => (Some(128), 3),
        }
    }
}

/// `CUtensorMapL2promotion`: what is read from memory comes in pieces of 128 or 256 bytes, or as asked for.
const L2_PROMOTION_NONE: i32 = 0;
const L2_PROMOTION_128: i32 = 2;
const L2_PROMOTION_256: i32 = 3;

impl TiledTensor {
    /// Where rows do not start at whole lines, pieces of 256 bytes bring much that nobody reads: on
    /// an H200 a product of matrices with a pitch of 8208 bytes takes a fifth longer with them. What
    /// leaves the cache first is best brought as it is asked for: 128x8192x8192, 1.018.
    fn l2_promotion(&self) -> i32 {
        const LINE: u64 = 128;
        let mut strides = self.strides.iter();
        match strides.all(|stride| stride.is_multiple_of(LINE)) {
            _ if self.once => L2_PROMOTION_NONE,
            true => L2_PROMOTION_256,
            false => L2_PROMOTION_128,
        }
    }

    /// Checks the description against TMA's rules and the place of the tensor.
    pub fn check(&self, address: u64, bytes: u64) -> Result<(), TensorMapError> {
        let rank = self.dims.len();
        if !(1..=5).contains(&rank) {
            return Err(TensorMapError::Rank { rank });
        }
        if self.strides.len() != rank - 1 || self.boxes.len() != rank {
            return Err(TensorMapError::ListLengths {
                rank,
                strides: self.strides.len(),
                boxes: self.boxes.len(),
            });
        }
        for (dim, size) in self.dims.iter().enumerate() {
            if !(1..=1 << 32).contains(size) {
                return Err(TensorMapError::Dim { dim, size: *size });
            }
        }
        let element = self.dtype.bytes();
        // Dimensions are below 2^33 and strides below 2^40, so that nothing here overflows 128
        // bits.
        let mut end = u128::from(self.dims[0]) * u128::from(element);
        for (index, stride) in self.strides.iter().enumerate() {
            if *stride >= 1 << 40 || !stride.is_multiple_of(16) {
                return Err(TensorMapError::Stride {
                    dim: index + 1,
                    bytes: *stride,
                });
            }
            end += u128::from(self.dims[index + 1] - 1) * u128::from(*stride);
        }
        for (dim, size) in self.boxes.iter().enumerate() {
            if !(1..=256).contains(size) {
                return Err(TensorMapError::Box { dim, size: *size });
            }
        }
        let inner = u64::from(self.boxes[0]) * element;
        if !inner.is_multiple_of(16) {
            return Err(TensorMapError::InnerBytes { bytes: inner });
        }
        if let (Some(limit), _) = self.swizzle.facts()
            && inner > limit
        {
            return Err(TensorMapError::SwizzleWidth {
                bytes: inner,
                limit,
            });
        }
        if !address.is_multiple_of(16) {
            return Err(TensorMapError::Address { address });
        }
        if end > u128::from(bytes) {
            return Err(TensorMapError::TooSmall {
                needed: u64::try_from(end).unwrap_or(u64::MAX),
                got: bytes,
            });
        }
        Ok(())
    }
}

impl TensorMap {
    /// Describes the tensor at the start of a view.
    pub fn tiled(view: View<'_>, tensor: &TiledTensor) -> Result<Self, TensorMapError> {
        tensor.check(view.address(), view.bytes() as u64)?;
        let context = view.buffer.context();
        let Some(cuda) = context.driver.as_cuda() else {
            return Err(TensorMapError::NoTma);
        };
        let Some(encode) = cuda.own.tensor_map_encode_tiled else {
            let call = "cuTensorMapEncodeTiled";
            return Err(TensorMapError::Device(Box::new(DeviceError::TooOld {
                call,
            })));
        };
        let mut map = Self([0; 128]);
        let rank = tensor.dims.len();
        let element_strides = [1u32; 5];
        let (_, swizzle) = tensor.swizzle.facts();
        let got = context.call("cuTensorMapEncodeTiled", |_| {
            // SAFETY: the map has the size and the alignment the driver asks for; the lists have
            // `rank` entries (the strides one less), as `check` made sure.
            unsafe {
                encode(
                    map.0.as_mut_ptr().cast(),
                    tensor.dtype.number(),
                    rank as u32,
                    view.address() as *mut _,
                    tensor.dims.as_ptr(),
                    tensor.strides.as_ptr(),
                    tensor.boxes.as_ptr(),
                    element_strides.as_ptr(),
                    0,
                    swizzle,
                    tensor.l2_promotion(),
                    0,
                )
            }
        });
        got.map_err(|error| TensorMapError::Device(Box::new(error)))?;
        Ok(map)
    }

    pub fn as_bytes(&self) -> &[u8] {
        &self.0
    }
}

impl<'a> From<&'a TensorMap> for Arg<'a> {
    fn from(map: &'a TensorMap) -> Self {
        Self::Bytes(map.as_bytes())
    }
}

impl fmt::Display for TensorMapError {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "TMA cannot describe this tensor: ")?;
        match self {
            Self::Rank { rank } => write!(f, "it has {rank} dimensions, TMA takes 1 to 5"),
            Self::ListLengths {
                rank,
                strides,
                boxes,
            } => write!(
                f,
                "{rank} dimensions need {} strides and {rank} box sizes, not {strides} and {boxes}",
                rank.saturating_sub(1)
            ),
            Self::Dim { dim, size } => {
                write!(
                    f,
                    "dimension {dim} has {size} elements, TMA takes 1 to 2^32"
                )
            }
            Self::Stride { dim, bytes } => write!(
                f,
                "dimension {dim} has a stride of {bytes} bytes, TMA takes multiples of 16 below \
                 2^40"
            ),
            Self::Box { dim, size } => {
                write!(
                    f,
                    "the box has {size} elements in dimension {dim}, TMA takes 1 to 256"
                )
            }
            Self::InnerBytes { bytes } => {
                write!(
                    f,
                    "the box's inner dimension has {bytes} bytes, not a multiple of 16"
                )
            }
            Self::SwizzleWidth { bytes, limit } => write!(
                f,
                "the box's inner dimension has {bytes} bytes and its swizzle allows {limit}"
            ),
            Self::Address { address } => {
                write!(
                    f,
                    "it starts at {address:#x}, which is not a multiple of 16"
                )
            }
            Self::TooSmall { needed, got } => {
                write!(f, "it takes {needed} bytes and the buffer has {got}")
            }
            Self::NoTma => write!(f, "its GPU has no TMA"),
            Self::Device(error) => error.fmt(f),
        }
    }
}

impl std::error::Error for TensorMapError {}

#[cfg(test)]
mod tests {
    use super::*;

    fn tensor() -> TiledTensor {
        TiledTensor {
            dtype: TmaType::BF16,
            dims: vec![512, 1024],
            strides: vec![1024],
            boxes: vec![64, 128],
            swizzle: Swizzle::B128,
            once: false,
        }
    }

    #[test]
    fn a_good_tensor_passes() {
        assert_eq!(tensor().check(0x1000, 1024 * 1024), Ok(()));
        assert_eq!((size_of::<TensorMap>(), align_of::<TensorMap>()), (128, 64));
    }

    #[test]
    fn every_rule_has_its_own_error() {
        use TensorMapError as E;
        let with = |change: fn(&mut TiledTensor)| {
            let mut tensor = tensor();
            change(&mut tensor);
            tensor.check(0x1000, 1024 * 1024).unwrap_err()
        };
        assert_eq!(with(|t| t.dims.clear()), E::Rank { rank: 0 });
        assert_eq!(with(|t| t.dims = vec![1; 6]), E::Rank { rank: 6 });
        assert_eq!(
            with(|t| t.strides.clear()),
            E::ListLengths {
                rank: 2,
                strides: 0,
                boxes: 2
            }
        );
        assert_eq!(with(|t| t.dims[1] = 0), E::Dim { dim: 1, size: 0 });
        assert_eq!(
            with(|t| t.strides[0] = 1000),
            E::Stride {
                dim: 1,
                bytes: 1000
            }
        );
        assert_eq!(with(|t| t.boxes[1] = 257), E::Box { dim: 1, size: 257 });
        assert_eq!(with(|t| t.boxes[0] = 12), E::InnerBytes { bytes: 24 });
        assert_eq!(
            with(|t| t.boxes[0] = 128),
            E::SwizzleWidth {
                bytes: 256,
                limit: 128
            }
        );
        assert_eq!(
            with(|t| t.dims[1] = 1025),
            E::TooSmall {
                needed: 1025 * 1024,
                got: 1024 * 1024
            }
        );
        let moved = tensor().check(0x1008, 1 << 30).unwrap_err();
        assert_eq!(
            moved.to_string(),
            "TMA cannot describe this tensor: it starts at 0x1008, which is not a multiple of 16"
        );
        // The largest numbers that pass the other rules do not overflow.
        let mut huge = tensor();
        huge.dims = vec![1 << 32; 5];
        huge.strides = vec![(1 << 40) - 16; 4];
        huge.boxes = vec![8; 5];
        let needed = u64::MAX;
        assert_eq!(huge.check(0, 7), Err(E::TooSmall { needed, got: 7 }));
    }
}
