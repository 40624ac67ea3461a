//! What the copy engine is told of the tensors of a call.

use tilewright_codegen::TensorMap as Wanted;
use tilewright_ir::Func;
use tilewright_layout::swizzle;
use tilewright_runtime::device::Buffer;
use tilewright_runtime::device::cuda::{Swizzle, TensorMap, TiledTensor, TmaType};

use super::error::Error;

/// Bytes of which the engine takes multiples between rows.
const PITCH: u64 = 16;

/// Fills the map of a tensor whose extents and element strides the call brings.
pub(super) fn fill(
    func: &Func,
    wanted: &Wanted,
    (shape, strides): &(Vec<i64>, Vec<i64>),
    memory: &Buffer,
) -> Result<TensorMap, Error> {
    let data = &func.buffers[wanted.buffer];
    let told = describe(wanted, shape, strides, data.dtype.bits());
    let map = told.and_then(|tensor| {
        TensorMap::tiled(memory.into(), &tensor).map_err(|refused| refused.to_string())
    });
    map.map_err(|why| {
        let message = format!("`{}` cannot be copied in bulk: {why}", data.name);
        Error::plain("launch-tensor-map", data.span, message)
    })
}

/// The tensor from its innermost dimension outwards; `bits` are those of an element.
fn describe(
    wanted: &Wanted,
    shape: &[i64],
    strides: &[i64],
    bits: u32,
) -> Result<TiledTensor, String> {
    // A copy moves bits, whatever they mean.
    let dtype = match bits {
        8 => TmaType::U8,
        16 => TmaType::U16,
        32 => TmaType::U32,
        64 => TmaType::U64,
        _ => return Err(format!("TMA has no elements of {bits} bits")),
    };
    let swizzle = match wanted.swizzle {
        swizzle::Swizzle::NONE => Swizzle::None,
        swizzle::Swizzle::B32 => Swizzle::B32,
        swizzle::Swizzle::B64 => Swizzle::B64,
        swizzle::Swizzle::B128 => Swizzle::B128,
        _ => return Err("TMA has no such swizzle".to_string()),
    };
    let boxes = wanted.tile.extents().iter().rev();
    let boxes = boxes.map(|extent| u32::from(*extent)).collect();
    let rank = shape.len();
    // Nothing lies inside of an empty tensor, and TMA knows none: one zero reads the same.
    if shape.contains(&0) {
        return Ok(TiledTensor {
            dtype,
            dims: vec![1; rank],
            strides: vec![PITCH; rank.saturating_sub(1)],
            boxes,
            swizzle,
            once: wanted.once,
        });
    }
    let mut dims = Vec::new();
    let mut bytes = Vec::new();
    for (at, (extent, stride)) in shape.iter().zip(strides).rev().enumerate() {
        let (Ok(extent), Ok(stride)) = (u64::try_from(*extent), u64::try_from(*stride)) else {
            return Err("it runs backwards".to_string());
        };
        dims.push(extent);
        match at {
            0 if stride != 1 && extent > 1 => {
                return Err(format!(
                    "elements of its last dimension are {stride} apart, TMA takes dense ones"
                ));
            }
            0 => {}
            // Of one row nothing is stepped over.
            _ if extent == 1 => bytes.push(PITCH),
            _ => bytes.push(stride.saturating_mul(dtype.bytes())),
        }
    }
    Ok(TiledTensor {
        dtype,
        dims,
        strides: bytes,
        boxes,
        swizzle,
        once: wanted.once,
    })
}

#[cfg(test)]
mod tests {
    use tilewright_ir::{Buffer, TmaBox};

    use super::*;

    fn told(shape: &[i64], strides: &[i64]) -> Result<TiledTensor, String> {
        let extents: Vec<u16> = shape.iter().map(|_| 64).collect();
        let wanted = Wanted {
            buffer: Buffer::from_u32(0),
            tile: TmaBox::new(&extents).unwrap(),
            swizzle: swizzle::Swizzle::B128,
            once: false,
        };
        describe(&wanted, shape, strides, 16)
    }

    #[test]
    fn lists_run_from_the_innermost_dimension_outwards() {
        let tensor = told(&[3, 100, 72], &[7200, 72, 1]).unwrap();
        assert_eq!(tensor.dims, [72, 100, 3]);
        assert_eq!(tensor.strides, [144, 14400]);
        assert_eq!(tensor.boxes, [64, 64, 64]);
        assert_eq!(tensor.check(0x1000, 3 * 14400), Ok(()));
        // One row lies wherever the next one would.
        let row = told(&[1, 100], &[100, 1]).unwrap();
        assert_eq!(row.check(0x1000, 200), Ok(()));
        let last = told(&[4, 100], &[200, 2]).unwrap_err();
        assert!(last.contains("2 apart"), "{last}");
    }

    #[test]
    fn an_empty_tensor_is_one_zero() {
        for shape in [[0, 64], [64, 0], [0, 0]] {
            let tensor = told(&shape, &[shape[1], 1]).unwrap();
            assert_eq!(tensor.dims, [1, 1]);
            assert_eq!(tensor.check(0x1000, 16), Ok(()));
        }
    }
}
