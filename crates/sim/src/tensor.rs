//! The host tensor: what a caller passes to a kernel and gets back.
//!
//! A tensor is raw bytes with a type, a shape and element strides. Types narrower than a byte
//! are packed without gaps, lowest bits first. A tensor knows which of its bytes were written,
//! so that outputs a kernel left out can be told from zeros.

use tilewright_ir::small_float::{self, Number};
use tilewright_ir::{DType, Scalar, Sparsity};

use crate::memory::{read_bits, write_bits};
use crate::rng::Rng;
use crate::room;
use crate::value;

/// A tensor in host memory.
///
/// Elements are addressed by their row-major position ([`HostTensor::get`]); a vector type
/// counts each lane as an element of a last, innermost dimension.
#[derive(Clone, PartialEq, Debug)]
pub struct HostTensor {
    dtype: DType,
    shape: Vec<usize>,
    strides: Vec<usize>,
    bytes: Vec<u8>,
    /// One flag a byte, zero for never written; `None` when all are.
    written: Option<Vec<u8>>,
}

/// How the elements of an input are made up.
#[derive(Clone, Copy, PartialEq, Debug)]
pub enum Fill {
    /// Floats uniform in `[-1, 1)`, scales that are powers of two from 1/8 to 8, integers in a small
    /// range around zero, bools even.
    Default,
    /// Uniform between the two, both rounded to the type; integers include the upper end.
    Uniform(f64, f64),
    /// Normal with this mean and deviation.
    Normal(f64, f64),
    Constant(f64),
    /// `0, 1, 2, …` in row-major order, reduced modulo the number given where it is not zero.
    Iota(u64),
    /// Integers of valid metadata of a sparse factor.
    Metadata(Sparsity),
}

/// The largest tensor that may be made, in bytes: beyond it sizes are taken for a mistake.
pub const MAX_TENSOR_BYTES: usize = 1 << 36;

impl HostTensor {
    /// A tensor whose contents are undefined until written; `None` when the size overflows or
    /// passes [`MAX_TENSOR_BYTES`], or there is no memory for it.
    pub fn uninit(dtype: DType, shape: &[usize]) -> Option<HostTensor> {
        HostTensor::with_strides(dtype, shape, &row_major(shape)?)
    }

    /// As [`HostTensor::uninit`], with element strides of the caller's choice.
    pub fn with_strides(dtype: DType, shape: &[usize], strides: &[usize]) -> Option<HostTensor> {
        if shape.len() != strides.len() {
            return None;
        }
        let len = byte_len(dtype, span(shape, strides)?)?;
        Some(HostTensor {
            dtype,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            bytes: room::filled(len, UNWRITTEN)?,
            written: Some(room::filled(len, 0)?),
        })
    }

    /// A tensor whose elements are elsewhere, on a device say: only what it is is known here.
    pub fn described(dtype: DType, shape: &[usize], strides: &[usize]) -> HostTensor {
        HostTensor {
            dtype,
            shape: shape.to_vec(),
            strides: strides.to_vec(),
            bytes: Vec::new(),
            written: None,
        }
    }

    /// Bytes that a tensor takes while it is made, its shadow counted; `None` when the size
    /// overflows or passes [`MAX_TENSOR_BYTES`].
    pub(crate) fn bytes_for(dtype: DType, shape: &[usize], strides: &[usize]) -> Option<u64> {
        let len = byte_len(dtype, span(shape, strides)?)?;
        Some(2 * len as u64)
    }

    /// A copy, or `None` where there is no memory for it.
    pub fn try_clone(&self) -> Option<HostTensor> {
        let written = match &self.written {
            Some(flags) => Some(room::copied(flags)?),
            None => None,
        };
        Some(HostTensor {
            dtype: self.dtype,
            shape: self.shape.clone(),
            strides: self.strides.clone(),
            bytes: room::copied(&self.bytes)?,
            written,
        })
    }

    /// A tensor of zeros.
    pub fn zeros(dtype: DType, shape: &[usize]) -> Option<HostTensor> {
        let mut tensor = HostTensor::uninit(dtype, shape)?;
        tensor.bytes.fill(0);
        tensor.written = None;
        Some(tensor)
    }

    /// A tensor of the values, each rounded to the type; `None` when their number is not that
    /// of the shape.
    pub fn from_f64(dtype: DType, shape: &[usize], values: &[f64]) -> Option<HostTensor> {
        let mut tensor = HostTensor::zeros(dtype, shape)?;
        if values.len() != tensor.len() {
            return None;
        }
        for (i, &v) in values.iter().enumerate() {
            tensor.set(i, Number::Float(v));
        }
        Some(tensor)
    }

    /// A tensor of integers, each wrapped into the type.
    pub fn from_ints(dtype: DType, shape: &[usize], values: &[i128]) -> Option<HostTensor> {
        let mut tensor = HostTensor::zeros(dtype, shape)?;
        if values.len() != tensor.len() {
            return None;
        }
        for (i, &v) in values.iter().enumerate() {
            tensor.set(i, Number::Int(v));
        }
        Some(tensor)
    }

    /// A contiguous tensor over bytes in storage order; `None` when their number is wrong.
    pub fn from_bytes(dtype: DType, shape: &[usize], bytes: Vec<u8>) -> Option<HostTensor> {
        let strides = row_major(shape)?;
        (byte_len(dtype, span(shape, &strides)?)? == bytes.len()).then(|| HostTensor {
            dtype,
            shape: shape.to_vec(),
            strides,
            bytes,
            written: None,
        })
    }

    /// A tensor filled from a seeded stream.
    pub fn random(dtype: DType, shape: &[usize], fill: Fill, rng: &mut Rng) -> Option<HostTensor> {
        let mut tensor = HostTensor::zeros(dtype, shape)?;
        tensor.fill(fill, rng);
        Some(tensor)
    }

    /// Overwrites every element.
    pub fn fill(&mut self, fill: Fill, rng: &mut Rng) {
        for i in 0..self.len() {
            let value = sample(self.dtype.scalar, fill, i, rng);
            self.set(i, value);
        }
    }

    pub fn dtype(&self) -> DType {
        self.dtype
    }

    pub fn shape(&self) -> &[usize] {
        &self.shape
    }

    /// Element strides.
    pub fn strides(&self) -> &[usize] {
        &self.strides
    }

    pub fn is_contiguous(&self) -> bool {
        row_major(&self.shape).as_deref() == Some(self.strides.as_slice())
    }

    /// The storage, in storage order.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// How many elements there are, the lanes of vectors counted one by one.
    pub fn len(&self) -> usize {
        self.shape.iter().product::<usize>() * self.dtype.lanes as usize
    }

    pub fn is_empty(&self) -> bool {
        self.len() == 0
    }

    /// The element at a row-major position, or `None` past the end.
    pub fn get(&self, position: usize) -> Option<Number> {
        let at = self.storage_index(position)?;
        let scalar = self.dtype.scalar;
        Some(small_float::from_bits(
            scalar,
            read_bits(&self.bytes, scalar.bits(), at),
        ))
    }

    /// The element as a float, whatever its type; NaN past the end.
    pub fn get_f64(&self, position: usize) -> f64 {
        match self.get(position) {
            Some(Number::Float(v)) => v,
            Some(Number::Int(v)) => v as f64,
            None => f64::NAN,
        }
    }

    /// Stores the value, converted to the type as a cast does it. Positions past the end are
    /// ignored.
    pub fn set(&mut self, position: usize, value: Number) {
        let Some(at) = self.storage_index(position) else {
            return;
        };
        let scalar = self.dtype.scalar;
        let bits = small_float::to_bits(scalar, value);
        write_bits(&mut self.bytes, scalar.bits(), at, bits);
        if let Some(written) = &mut self.written {
            let width = scalar.bits() as usize;
            written[at * width / 8..(at * width + width).div_ceil(8)].fill(1);
        }
    }

    /// All elements as floats, in row-major order.
    pub fn to_f64(&self) -> Vec<f64> {
        (0..self.len()).map(|i| self.get_f64(i)).collect()
    }

    /// Whether the element was ever written.
    pub fn is_written(&self, position: usize) -> bool {
        let Some(written) = &self.written else {
            return position < self.len();
        };
        let Some(at) = self.storage_index(position) else {
            return false;
        };
        let width = self.dtype.scalar.bits() as usize;
        let flags = &written[at * width / 8..(at * width + width).div_ceil(8)];
        flags.iter().all(|&b| b != 0)
    }

    /// Whether nothing of it was left unwritten.
    pub fn is_whole(&self) -> bool {
        self.written.is_none()
    }

    /// How many elements were never written.
    pub fn count_unwritten(&self) -> usize {
        if self.written.is_none() {
            return 0;
        }
        (0..self.len()).filter(|&i| !self.is_written(i)).count()
    }

    /// The coordinates of a row-major position.
    pub fn coordinates(&self, position: usize) -> Vec<usize> {
        let mut rest = position / self.dtype.lanes as usize;
        let mut coordinates = vec![0; self.shape.len()];
        for (c, &extent) in coordinates.iter_mut().zip(&self.shape).rev() {
            *c = rest % extent.max(1);
            rest /= extent.max(1);
        }
        coordinates
    }

    /// Where a row-major position lies in storage, in scalars.
    fn storage_index(&self, position: usize) -> Option<usize> {
        if position >= self.len() {
            return None;
        }
        let lanes = self.dtype.lanes as usize;
        let (mut rest, lane) = (position / lanes, position % lanes);
        let mut at = 0;
        for (&extent, &stride) in self.shape.iter().zip(&self.strides).rev() {
            at += rest % extent * stride;
            rest /= extent;
        }
        Some(at * lanes + lane)
    }

    /// Replaces the contents by what another executor wrote; every element counts as written.
    /// Says whether the number of bytes is right.
    pub fn set_bytes(&mut self, bytes: &[u8]) -> bool {
        let fits = bytes.len() == self.bytes.len();
        if fits {
            self.bytes.copy_from_slice(bytes);
            self.written = None;
        }
        fits
    }

    pub(crate) fn take_storage(&mut self) -> (Vec<u8>, Option<Vec<u8>>) {
        (std::mem::take(&mut self.bytes), self.written.take())
    }

    pub(crate) fn put_storage(&mut self, bytes: Vec<u8>, written: Option<Vec<u8>>) {
        self.bytes = bytes;
        // A tensor written all over is an ordinary one from here on.
        self.written = written.filter(|w| w.contains(&0));
    }
}

/// What memory holds that nothing wrote.
pub(crate) const UNWRITTEN: u8 = 0xcd;

/// Row-major element strides, or `None` on overflow.
pub(crate) fn row_major(shape: &[usize]) -> Option<Vec<usize>> {
    let mut strides = vec![1; shape.len()];
    let mut step = 1usize;
    for (stride, &extent) in strides.iter_mut().zip(shape).rev() {
        *stride = step;
        step = step.checked_mul(extent.max(1))?;
    }
    Some(strides)
}

/// How many elements of storage the shape reaches over.
fn span(shape: &[usize], strides: &[usize]) -> Option<usize> {
    if shape.contains(&0) {
        return Some(0);
    }
    let mut last = 0usize;
    for (&extent, &stride) in shape.iter().zip(strides) {
        last = last.checked_add((extent - 1).checked_mul(stride)?)?;
    }
    last.checked_add(1)
}

fn byte_len(dtype: DType, elements: usize) -> Option<usize> {
    let bits = elements.checked_mul(dtype.bits() as usize)?;
    let bytes = bits.div_ceil(8);
    (bytes <= MAX_TENSOR_BYTES).then_some(bytes)
}

fn sample(scalar: Scalar, fill: Fill, position: usize, rng: &mut Rng) -> Number {
    match fill {
        Fill::Default => match scalar.int_range() {
            Some((0, high)) => Number::Int(rng.int_in(0, high.min(15))),
            Some((low, high)) => Number::Int(rng.int_in(low.max(-8), high.min(7))),
            None if scalar == Scalar::Handle => Number::Int(0),
            None if scalar == Scalar::F8E8M0 => Number::Float(2f64.powi(rng.int_in(-3, 3) as i32)),
            None => Number::Float(rng.unit() * 2.0 - 1.0),
        },
        Fill::Uniform(low, high) if scalar.is_float() => {
            Number::Float(low + rng.unit() * (high - low))
        }
        Fill::Uniform(low, high) => Number::Int(rng.int_in(low as i128, high as i128)),
        Fill::Normal(mean, deviation) => Number::Float(mean + deviation * rng.normal()),
        Fill::Constant(value) => Number::Float(value),
        Fill::Iota(0) => Number::Int(position as i128),
        Fill::Iota(modulo) => Number::Int((position as u64 % modulo) as i128),
        Fill::Metadata(sparsity) => {
            let valid: Vec<u32> = (0..16).filter(|v| sparsity.is_valid(*v)).collect();
            let groups = scalar.bits() / Sparsity::BITS;
            let bits = (0..groups).fold(0, |bits, group| {
                let one = valid[rng.int_in(0, valid.len() as i128 - 1) as usize];
                bits | u64::from(one) << (group * Sparsity::BITS)
            });
            Number::Int(value::int_from_bits(scalar, bits).into())
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn packed_types_round_trip() {
        for scalar in Scalar::ALL {
            let Some(mut t) = HostTensor::uninit(DType::scalar(scalar), &[3, 5]) else {
                panic!("small tensor")
            };
            assert_eq!(t.count_unwritten(), 15);
            for i in 0..15 {
                t.set(i, Number::Int((i % 2) as i128));
            }
            assert_eq!(t.count_unwritten(), 0);
            for i in 0..15 {
                let expected = small_float::convert(scalar, Number::Int((i % 2) as i128));
                assert_eq!(t.get(i), Some(expected), "{scalar} {i}");
            }
            assert_eq!(t.bytes().len(), (15 * scalar.bits() as usize).div_ceil(8));
        }
    }

    #[test]
    fn strides_place_elements() {
        let t = HostTensor::with_strides(DType::F32, &[2, 3], &[8, 2]);
        let mut t = t.expect("small tensor");
        assert_eq!(t.bytes().len(), 4 * (8 + 4 + 1));
        for i in 0..6 {
            t.set(i, Number::Float(i as f64));
        }
        assert_eq!(t.bytes()[4 * 10..4 * 11], 4.0f32.to_le_bytes());
        assert_eq!(t.to_f64(), [0., 1., 2., 3., 4., 5.]);
        assert_eq!(t.coordinates(4), [1, 1]);
    }

    #[test]
    fn impossible_sizes_are_refused() {
        assert!(HostTensor::uninit(DType::F32, &[usize::MAX, 2]).is_none());
        assert!(HostTensor::uninit(DType::F32, &[1 << 40]).is_none());
        assert!(HostTensor::from_f64(DType::F32, &[3], &[1.0]).is_none());
    }

    #[test]
    fn random_fills_stay_in_range() {
        let mut rng = Rng::new(3);
        for scalar in Scalar::ALL {
            let dtype = DType::scalar(scalar);
            let t = HostTensor::random(dtype, &[64], Fill::Default, &mut rng).expect("small");
            assert!(t.to_f64().iter().all(|v| v.abs() <= 15.0), "{scalar}");
        }
        let t = HostTensor::random(DType::I32, &[8], Fill::Iota(3), &mut rng).expect("small");
        assert_eq!(t.to_f64(), [0., 1., 2., 0., 1., 2., 0., 1.]);
    }
}
