//! Where the operands of matrix products lie in shared memory: where their reads have the fewest
//! bank conflicts.

use tilewright_ir::{Buffer, Func, LayoutAttr, MmaFamily, Region, Target};
use tilewright_layout::descriptor::MatrixDescriptor;
use tilewright_layout::swizzle::{self, WarpRead};
use tilewright_layout::transposed::TransposedRead;
use tilewright_layout::{Fragment, Holder, LayoutError, Place};

use crate::legalize::gemm_tiling::GemmTiling;

/// The operands of the gemms so far, with how they are read.
#[derive(Debug)]
pub struct Operands<'f> {
    func: &'f Func,
    target: Target,
    shared: Vec<(Buffer, Vec<WarpRead>)>,
    /// Those that warp groups read by a descriptor.
    described: Vec<Buffer>,
    /// Gemms of one plan read alike.
    known: Vec<(ReadKey, Option<WarpRead>)>,
}

/// What a read of an operand depends on: the plan, which operand, whether it lies transposed, and
/// the bits of an element.
type ReadKey = (usize, bool, bool, i64);

impl<'f> Operands<'f> {
    pub fn new(func: &'f Func, target: Target) -> Operands<'f> {
        Operands {
            func,
            target,
            shared: Vec::new(),
            described: Vec::new(),
            known: Vec::new(),
        }
    }

    /// An operand of a gemm with this plan, which has a number.
    pub fn add(&mut self, plan: (usize, &GemmTiling), region: &Region, is_a: bool, trans: bool) {
        let (number, plan) = plan;
        if plan.inst.family == MmaFamily::Wgmma {
            self.described.push(region.buffer);
        }
        let bits = i64::from(self.func.buffers[region.buffer].dtype.bits());
        let key = (number, is_a, trans, bits);
        let known = self.known.iter().find(|(k, _)| *k == key);
        let read = known.map(|(_, read)| read.clone());
        let read = read.unwrap_or_else(|| {
            // Without a placement there is no read; lowering says why.
            let step = || if is_a { plan.a_step() } else { plan.b_step() }.ok();
            let across = is_a == trans && self.target.machine().ds_read_tr;
            let transposed = across.then(|| plan.transposed_read(is_a, bits)).flatten();
            let read = match transposed {
                Some(read) => {
                    let column = |place| plan.dealt_at(is_a, place);
                    Some(transposed_read(read, self.target, column))
                }
                None => {
                    let read = operand_read(bits, step, trans, self.target);
                    let across = plan.read_across(is_a);
                    read.map(|read| match is_a == trans && across > 1 {
                        true => WarpRead {
                            vector: across,
                            ..read
                        },
                        false => read,
                    })
                }
            };
            self.known.push((key, read.clone()));
            read
        });
        match self.shared.iter_mut().find(|(b, _)| *b == region.buffer) {
            Some((_, reads)) => reads.extend(read),
            None => self
                .shared
                .push((region.buffer, read.into_iter().collect())),
        }
    }

    /// The places of those that the user gave none.
    pub fn places(&self) -> Vec<(Buffer, LayoutAttr)> {
        // Operands of one shape that are read alike lie alike.
        let mut placed: Vec<(usize, Buffer, LayoutAttr)> = Vec::new();
        for (at, (buffer, reads)) in self.shared.iter().enumerate() {
            let data = &self.func.buffers[*buffer];
            if data.layout.is_some() {
                continue;
            }
            let alike = |(at, b, _): &&(usize, Buffer, LayoutAttr)| {
                let other = &self.func.buffers[*b];
                self.shared[*at].1 == *reads
                    && self.described.contains(b) == self.described.contains(buffer)
                    && other.dtype == data.dtype
                    && other.shape == data.shape
            };
            let layout = match placed.iter().find(alike) {
                Some((_, _, same)) => same.clone(),
                None => match self.place(*buffer, reads) {
                    Ok(place) => place.into(),
                    Err(_) => continue,
                },
            };
            placed.push((at, *buffer, layout));
        }
        placed
            .into_iter()
            .map(|(_, b, layout)| (b, layout))
            .collect()
    }

    /// The target's own swizzle is made for rows of K and for types that the instruction takes;
    /// reads may want another place.
    fn place(&self, buffer: Buffer, reads: &[WarpRead]) -> Result<Place, LayoutError> {
        let data = &self.func.buffers[buffer];
        let shape = data.const_shape().unwrap_or_default();
        if self.described.contains(&buffer)
            && let Some(panels) = MatrixDescriptor::place(&shape, data.dtype.bits().into())
        {
            return Ok(panels);
        }
        let own = swizzle::for_elements(self.target, &shape, data.dtype.scalar)?;
        let bits = data.dtype.bits().into();
        let better = match reads {
            [] => None,
            _ => swizzle::for_reads(self.target, &shape, bits, reads, &own)?,
        };
        Ok(better.unwrap_or(own))
    }
}

/// How the first wave reads its first tile of an operand by reads that transpose.
fn transposed_read(read: TransposedRead, target: Target, column: impl Fn(i64) -> i64) -> WarpRead {
    let lanes = 0..i64::from(target.machine().warp_size);
    let given = |lane| {
        let [place, row] = read.given(lane, 0);
        Some([row, column(place)])
    };
    WarpRead {
        lanes: lanes.map(given).collect(),
        vector: read.elements,
    }
}

/// How the first warp reads its first vectors of an operand. Other vectors and warps lie a
/// constant apart, which moves all lanes' banks alike. `None` for `ldmatrix`, which reads
/// whole chunks in both directions.
fn operand_read(
    bits: i64,
    step: impl FnOnce() -> Option<Fragment>,
    trans: bool,
    target: Target,
) -> Option<WarpRead> {
    let machine = target.machine();
    if machine.ldmatrix && bits == 16 {
        return None;
    }
    let mut step = step()?;
    if trans {
        step = step.permute(&[1, 0]).ok()?;
    }
    let inverse = step.inverse()?;
    let first = |thread| {
        let element = inverse.element(Holder { thread, slot: 0 })?;
        Some([*element.first()?, *element.get(1)?])
    };
    Some(WarpRead {
        lanes: (0..i64::from(machine.warp_size)).map(first).collect(),
        vector: step
            .vector_width(1)
            .min(if bits == 6 { 32 } else { 128 / bits })
            .max(1),
    })
}
