//! Whether a warp group can multiply operands where they lie in shared memory.
//!
//! `wgmma` reads whole tiles by a descriptor: rows in panels of one of NVIDIA's swizzles, tiles that
//! start where an atom of the swizzle does, nothing past the ends. What is not so goes through
//! registers, by the instructions of a warp.

use tilewright_ir::{
    Buffer, Expr, Func, GemmOp, Inst, LayoutAttr, Major, MmaInst, Region, Scalar, Scope,
};
use tilewright_layout::descriptor::MatrixDescriptor;

use super::gemm_tiling::GemmShape;

/// How the operands lie; A is absent where it lies in registers.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct GroupOperands {
    pub a: Option<Held>,
    pub b: Held,
}

/// How one operand lies in shared memory.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub struct Held {
    pub major: Major,
    /// Elements of a panel's row.
    pub width: i64,
}

impl GroupOperands {
    /// The instruction on operands that lie so, for a sum that may be fresh. Registers are along K.
    pub fn inst(self, mma: MmaInst, fresh: bool) -> Inst {
        Inst::GroupMma {
            mma,
            a: self.a.map_or(Major::K, |a| a.major),
            b: self.b.major,
            fresh,
        }
    }
}

/// How the operands of a gemm lie, where both are as an instruction can be told.
pub fn group_operands(func: &Func, g: &GemmOp) -> Option<GroupOperands> {
    let major = |along_k: bool| if along_k { Major::K } else { Major::Mn };
    let b = held(func, &g.b, major(g.trans_b))?;
    let dtype = |buffer: Buffer| func.buffers[buffer].dtype;
    if dtype(g.a.buffer) != dtype(g.b.buffer) {
        return None;
    }
    // Bits that tf32 does not have would be dropped.
    if dtype(g.b.buffer).scalar == Scalar::F32 {
        return None;
    }
    match func.buffers[g.a.buffer].scope {
        Scope::Shared => {
            let a = held(func, &g.a, major(!g.trans_a))?;
            Some(GroupOperands { a: Some(a), b })
        }
        Scope::Fragment if dtype(g.a.buffer).bits() <= 16 => Some(GroupOperands { a: None, b }),
        _ => None,
    }
}

fn held(func: &Func, region: &Region, major: Major) -> Option<Held> {
    let data = &func.buffers[region.buffer];
    let bits = i64::from(data.dtype.bits());
    let shape = data.const_shape()?;
    // A view lies as the buffer does that it is of.
    if data.scope != Scope::Shared || func.root(region.buffer) != region.buffer {
        return None;
    }
    // [PTX] only elements of 16 bits may lie along M or N.
    if major == Major::Mn && bits != 16 {
        return None;
    }
    let described = match &data.layout {
        None | Some(LayoutAttr::Swizzled) => {
            MatrixDescriptor::of(&MatrixDescriptor::place(&shape, bits)?, &shape, bits)?
        }
        Some(LayoutAttr::Placed(place)) => MatrixDescriptor::of(place, &shape, bits)?,
        Some(_) => return None,
    };
    let width = described.width(bits);
    // Tiles start at atoms; the dimensions before the last two stack whole tiles.
    let [.., rows, cols] = &region.dims[..] else {
        return None;
    };
    let at_atoms = |start: &Expr, of: i64| start.as_int().is_some_and(|s| s % i128::from(of) == 0);
    (at_atoms(&rows.start, 8) && at_atoms(&cols.start, width)).then_some(Held { major, width })
}

/// Whether an instruction on a grid of groups covers the product and nothing more, with tiles that
/// start at panels.
pub fn group_can(shape: &GemmShape, inst: &MmaInst, grid: [i64; 2]) -> bool {
    let Some(operands) = shape.group else {
        return false;
    };
    let (m, n, k) = (i64::from(inst.m), i64::from(inst.n), i64::from(inst.k));
    let divides = shape.m % (m * grid[0]) == 0 && shape.n % (n * grid[1]) == 0 && shape.k % k == 0;
    let of_panels = |held: Held, side: i64, extent: i64| match held.major {
        Major::K => held.width % k == 0,
        Major::Mn => side % held.width == 0 || side == extent && side < held.width,
    };
    divides
        && operands.a.is_none_or(|a| of_panels(a, m, shape.m))
        && of_panels(operands.b, n, shape.n)
}
