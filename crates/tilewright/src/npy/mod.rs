//! Tensors in NumPy's files: `.npy` (one array) and `.npz` (an archive of them).
//!
//! An array is read as the type of the parameter it is for ([`Array::tensor`]): the same type, or,
//! for types that NumPy lacks, the type that [`stored_as`] names or the plain bits. Tensors are
//! written as [`stored_as`] says, so what was written can be read again.

mod header;
mod zip;

use std::fmt;

use tilewright_ir::small_float::Number;
use tilewright_ir::{DType, Scalar};
use tilewright_sim::HostTensor;

use header::Header;
pub use zip::{read_archive, write_archive};

/// An array as a file holds it.
#[derive(Clone, PartialEq, Debug)]
pub struct Array {
    header: Header,
    data: Vec<u8>,
}

/// Why a file is no array, or not the one that is wanted.
#[derive(Clone, PartialEq, Eq, Debug)]
pub struct Problem(pub String);

impl fmt::Display for Problem {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&self.0)
    }
}

impl std::error::Error for Problem {}

fn problem<T>(text: impl Into<String>) -> Result<T, Problem> {
    Err(Problem(text.into()))
}

/// The type of a file's elements.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Kind {
    /// A type that NumPy has.
    Scalar(Scalar),
    /// So many bytes without a meaning, as extension types are written (`|V2`).
    Raw(usize),
}

impl Kind {
    fn bytes(self) -> usize {
        match self {
            Kind::Scalar(scalar) => scalar.bits().div_ceil(8) as usize,
            Kind::Raw(bytes) => bytes,
        }
    }
}

impl fmt::Display for Kind {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Kind::Scalar(scalar) => write!(f, "{scalar}"),
            Kind::Raw(bytes) => write!(f, "raw elements of {bytes} bytes"),
        }
    }
}

/// The type that elements of a type have in a file: their own where NumPy has it, else one that holds
/// each of their values exactly.
pub fn stored_as(scalar: Scalar) -> Scalar {
    match scalar {
        Scalar::BF16
        | Scalar::TF32
        | Scalar::F8E4M3FN
        | Scalar::F8E4M3FNUZ
        | Scalar::F8E5M2
        | Scalar::F8E5M2FNUZ
        | Scalar::F8E8M0
        | Scalar::F6E2M3
        | Scalar::F6E3M2
        | Scalar::F4E2M1 => Scalar::F32,
        Scalar::I4 => Scalar::I8,
        Scalar::U4 => Scalar::U8,
        Scalar::Handle => Scalar::U64,
        own => own,
    }
}

impl Array {
    /// Reads the contents of a `.npy` file.
    pub fn parse(bytes: &[u8]) -> Result<Array, Problem> {
        let (header, start) = Header::parse(bytes)?;
        let elements = header
            .shape
            .iter()
            .try_fold(1usize, |n, e| n.checked_mul(*e));
        let wanted = elements.and_then(|n| n.checked_mul(header.kind.bytes()));
        let data = &bytes[start..];
        match wanted {
            Some(wanted) if wanted == data.len() => Ok(Array {
                header,
                data: data.to_vec(),
            }),
            _ => problem(format!(
                "its header says {:?} of {}, and {} bytes follow",
                header.shape,
                header.kind,
                data.len()
            )),
        }
    }

    pub fn shape(&self) -> &[usize] {
        &self.header.shape
    }

    /// The type of its elements, where NumPy has one.
    pub fn dtype(&self) -> Option<DType> {
        match self.header.kind {
            Kind::Scalar(scalar) => Some(DType::scalar(scalar)),
            Kind::Raw(_) => None,
        }
    }

    /// The array as a tensor of this type: of the same type, of the type that such tensors are stored
    /// as, or of their plain bits.
    pub fn tensor(&self, dtype: DType) -> Result<HostTensor, Problem> {
        let scalar = dtype.scalar;
        // Lanes of vectors are a last dimension.
        let lanes = usize::from(dtype.lanes);
        let mut shape = self.header.shape.clone();
        if lanes > 1 && shape.pop() != Some(lanes) {
            return problem(format!(
                "elements of {dtype} are a last dimension of {lanes} in a file"
            ));
        }
        let stored = stored_as(scalar);
        let as_bits = scalar != stored && scalar.bits().is_multiple_of(8) && self.is_bits(scalar);
        if self.header.kind != Kind::Scalar(stored) && !as_bits {
            let mut text = format!("it has {}, and {dtype} is wanted", self.header.kind);
            if scalar != stored {
                text += &format!(", as {stored} or as its bits");
            }
            return problem(text);
        }
        let Some(mut tensor) = HostTensor::zeros(dtype, &shape) else {
            return problem(format!("{shape:?} of {dtype} is too large"));
        };
        if (scalar == stored || as_bits) && !self.header.fortran && !self.header.swapped {
            // Bytes of a bool are 0 or 1 here.
            let is_plain = scalar != Scalar::Bool || self.data.iter().all(|b| *b <= 1);
            if is_plain && tensor.set_bytes(&self.data) {
                return Ok(tensor);
            }
        }
        let read = if as_bits { scalar } else { stored };
        for position in 0..tensor.len() {
            let value = self.element(position, read);
            let fits = match (scalar.int_range(), value) {
                (Some((low, high)), Number::Int(v)) => (low..=high).contains(&v),
                _ => true,
            };
            if !fits {
                return problem(format!("{value:?} at element {position} is no {scalar}"));
            }
            tensor.set(position, value);
        }
        Ok(tensor)
    }

    /// Whether the elements are the bits of such a type.
    fn is_bits(&self, scalar: Scalar) -> bool {
        let bytes = scalar.bits() as usize / 8;
        match self.header.kind {
            Kind::Raw(n) => n == bytes,
            Kind::Scalar(Scalar::U8) => bytes == 1,
            Kind::Scalar(Scalar::U16) => bytes == 2,
            Kind::Scalar(_) => false,
        }
    }

    /// The element at a row-major position.
    fn element(&self, position: usize, scalar: Scalar) -> Number {
        let mut at = position;
        if self.header.fortran {
            let (mut rest, mut stride) = (position, 1);
            let mut coordinates = vec![0; self.header.shape.len()];
            for (c, extent) in coordinates.iter_mut().zip(&self.header.shape).rev() {
                *c = rest % extent;
                rest /= extent;
            }
            at = 0;
            for (c, extent) in coordinates.iter().zip(&self.header.shape) {
                at += c * stride;
                stride *= extent;
            }
        }
        let width = self.header.kind.bytes();
        let mut bits = 0u64;
        for (i, byte) in self.data[at * width..(at + 1) * width].iter().enumerate() {
            let place = if self.header.swapped {
                width - 1 - i
            } else {
                i
            };
            bits |= u64::from(*byte) << (8 * place);
        }
        if scalar == Scalar::Bool {
            return Number::Int(i128::from(bits != 0));
        }
        tilewright_ir::small_float::from_bits(scalar, bits)
    }
}

/// The tensor as a `.npy` file. What nothing wrote is zero.
pub fn write(tensor: &HostTensor) -> Vec<u8> {
    let stored = stored_as(tensor.dtype().scalar);
    let mut shape = tensor.shape().to_vec();
    if tensor.dtype().lanes > 1 {
        shape.push(tensor.dtype().lanes.into());
    }
    let mut out = header::text(stored, &shape);
    for position in 0..tensor.len() {
        let value = match tensor.get(position) {
            Some(value) if tensor.is_written(position) => value,
            _ => Number::Int(0),
        };
        let bits = tilewright_ir::small_float::to_bits(stored, value);
        let width = stored.bits().div_ceil(8) as usize;
        out.extend_from_slice(&bits.to_le_bytes()[..width]);
    }
    out
}

#[cfg(test)]
mod tests;
