//! Which matrices an instruction multiplies: their sizes, their elements, and where in the
//! registers of the lanes these lie. CDNA4 manual, section 7.1.

use crate::isa::{Modifiers, Opcode};

use super::super::Arch;
use super::super::fault::Fault;
use super::super::float::Small;

/// What an element of a source is.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Element {
    F32,
    /// A float of 32 bits of whose fraction 10 bits count.
    Xf32,
    F16,
    Bf16,
    I8,
    Small(Small),
}

impl Element {
    pub(super) fn bits(self) -> u32 {
        match self {
            Element::F32 | Element::Xf32 => 32,
            Element::F16 | Element::Bf16 => 16,
            Element::I8 => 8,
            Element::Small(small) => small.bits(),
        }
    }
}

/// Sizes: `blocks` times rows × depth by depth × columns, as many columns as rows.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) struct Shape {
    pub size: usize,
    pub depth: usize,
    pub blocks: usize,
    pub a: Element,
    pub b: Element,
}

impl Shape {
    /// How many elements of a row of A, or of a column of B, a lane holds.
    pub(super) fn items(self) -> usize {
        self.depth * self.size * self.blocks / 64
    }

    /// Registers of the result.
    pub(super) fn registers(self) -> usize {
        self.size * self.size * self.blocks / 64
    }

    /// The `k` of a lane's item, in a group of lanes: group `g` begins at lane
    /// `size * blocks * g`. `ITEMS` is how many a lane has.
    pub(super) fn k<const ITEMS: usize>(
        self,
        element: Element,
        item: usize,
        group: usize,
    ) -> usize {
        match element {
            // Of the wide forms for floats of 8 bits a lane holds two runs of 16, one of each half
            // of the depth.
            Element::Small(small) if small.bits() == 8 && ITEMS == 32 => {
                item % 16 + 16 * group + self.depth / 2 * (item / 16)
            }
            _ => item + ITEMS * group,
        }
    }

    /// The register, and the lane of column 0, of a row of the result.
    pub(super) fn row(self, block: usize, row: usize) -> (usize, usize) {
        const HEIGHT: usize = 4;
        let blocks_at_once = (64 * HEIGHT).div_ceil(self.size * self.size);
        let rows_at_once = 64 / blocks_at_once / self.size;
        let groups = self.size / (HEIGHT * rows_at_once);
        let register = row % HEIGHT
            + HEIGHT * (row / (HEIGHT * rows_at_once) + groups * (block / blocks_at_once));
        let group = row / HEIGHT % rows_at_once + rows_at_once * (block % blocks_at_once);
        (register, self.size * group)
    }
}

/// The matrices of an instruction; none where its elements are doubles.
pub(super) fn shape(op: Opcode, modifiers: &Modifiers, arch: Arch) -> Result<Option<Shape>, Fault> {
    use Element::{Bf16, F16, F32, I8, Xf32};
    use Opcode::*;
    let (fp8, bf8) = (Element::Small(arch.fp8()), Element::Small(arch.bf8()));
    let (size, depth, blocks, a, b) = match op {
        v_mfma_f32_32x32x1_2b_f32 => (32, 1, 2, F32, F32),
        v_mfma_f32_16x16x1_4b_f32 => (16, 1, 4, F32, F32),
        v_mfma_f32_4x4x1_16b_f32 => (4, 1, 16, F32, F32),
        v_mfma_f32_32x32x2_f32 => (32, 2, 1, F32, F32),
        v_mfma_f32_16x16x4_f32 => (16, 4, 1, F32, F32),
        v_mfma_f32_32x32x4_xf32 => (32, 4, 1, Xf32, Xf32),
        v_mfma_f32_16x16x8_xf32 => (16, 8, 1, Xf32, Xf32),
        v_mfma_f32_32x32x4_2b_f16 => (32, 4, 2, F16, F16),
        v_mfma_f32_16x16x4_4b_f16 => (16, 4, 4, F16, F16),
        v_mfma_f32_4x4x4_16b_f16 => (4, 4, 16, F16, F16),
        v_mfma_f32_32x32x8_f16 => (32, 8, 1, F16, F16),
        v_mfma_f32_16x16x16_f16 => (16, 16, 1, F16, F16),
        v_mfma_f32_32x32x16_f16 => (32, 16, 1, F16, F16),
        v_mfma_f32_16x16x32_f16 => (16, 32, 1, F16, F16),
        v_mfma_f32_32x32x4_2b_bf16 => (32, 4, 2, Bf16, Bf16),
        v_mfma_f32_16x16x4_4b_bf16 => (16, 4, 4, Bf16, Bf16),
        v_mfma_f32_4x4x4_16b_bf16 => (4, 4, 16, Bf16, Bf16),
        v_mfma_f32_32x32x8_bf16 => (32, 8, 1, Bf16, Bf16),
        v_mfma_f32_16x16x16_bf16 => (16, 16, 1, Bf16, Bf16),
        v_mfma_f32_32x32x16_bf16 => (32, 16, 1, Bf16, Bf16),
        v_mfma_f32_16x16x32_bf16 => (16, 32, 1, Bf16, Bf16),
        v_mfma_i32_4x4x4_16b_i8 => (4, 4, 16, I8, I8),
        v_mfma_i32_32x32x16_i8 => (32, 16, 1, I8, I8),
        v_mfma_i32_16x16x32_i8 => (16, 32, 1, I8, I8),
        v_mfma_i32_32x32x32_i8 => (32, 32, 1, I8, I8),
        v_mfma_i32_16x16x64_i8 => (16, 64, 1, I8, I8),
        v_mfma_f32_32x32x16_fp8_fp8 => (32, 16, 1, fp8, fp8),
        v_mfma_f32_32x32x16_fp8_bf8 => (32, 16, 1, fp8, bf8),
        v_mfma_f32_32x32x16_bf8_fp8 => (32, 16, 1, bf8, fp8),
        v_mfma_f32_32x32x16_bf8_bf8 => (32, 16, 1, bf8, bf8),
        v_mfma_f32_16x16x32_fp8_fp8 => (16, 32, 1, fp8, fp8),
        v_mfma_f32_16x16x32_fp8_bf8 => (16, 32, 1, fp8, bf8),
        v_mfma_f32_16x16x32_bf8_fp8 => (16, 32, 1, bf8, fp8),
        v_mfma_f32_16x16x32_bf8_bf8 => (16, 32, 1, bf8, bf8),
        v_mfma_f32_16x16x128_f8f6f4 | v_mfma_scale_f32_16x16x128_f8f6f4 => {
            (16, 128, 1, chosen(modifiers.cbsz)?, chosen(modifiers.blgp)?)
        }
        v_mfma_f32_32x32x64_f8f6f4 | v_mfma_scale_f32_32x32x64_f8f6f4 => {
            (32, 64, 1, chosen(modifiers.cbsz)?, chosen(modifiers.blgp)?)
        }
        _ => return Ok(None),
    };
    Ok(Some(Shape {
        size,
        depth,
        blocks,
        a,
        b,
    }))
}

/// What `cbsz` says of A's elements, and `blgp` of B's.
fn chosen(format: u8) -> Result<Element, Fault> {
    Ok(Element::Small(match format {
        0 => Small::Fp8,
        1 => Small::Bf8,
        2 => Small::Fp6,
        3 => Small::Bf6,
        4 => Small::Fp4,
        _ => return Err(Fault::Operand),
    }))
}
