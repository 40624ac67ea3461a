//! Blocks that stay on their multiprocessor and take one tile after another.
//!
//! Where one block fills a multiprocessor, a launch with a block for each tile leaves the matrix unit
//! idle between two of them: the results of one are stored before the next begins to copy. With
//! blocks that stay the producer copies the next tile's operands meanwhile.
//! Which tiles those are stands in [`super::tiles`].

use tilewright_ir::{Buffer, DType, Func, Kernel, Loop, Machine, Var, VarKind};

use super::schedules::Why;
use crate::decisions::RESIDENT;

/// What becomes of the grid.
#[derive(Clone, Debug)]
pub(super) struct Resident {
    /// Blocks that are launched.
    pub blocks: u32,
    pub tiles: u32,
    /// The number of a block's tile among its own.
    pub round: Var,
}

impl Resident {
    /// The most tiles that a block takes.
    pub fn rounds(&self) -> u32 {
        self.tiles.div_ceil(self.blocks)
    }

    /// Decides for a kernel whose loop stands in nothing, or says why not. `at_once` blocks have room
    /// on a multiprocessor, these tensors are copied, and blocks may be `paired`.
    pub fn of(
        func: &mut Func,
        (kernel, machine): (&Kernel, &Machine),
        l: &Loop,
        (at_once, copied): (u64, &[Buffer]),
        paired: bool,
    ) -> Result<Resident, Why> {
        let asked = RESIDENT.asked(func);
        if asked == Some(false) {
            return Err("it is switched off".into());
        }
        let extents = kernel
            .grid
            .iter()
            .map(|(_, e)| u32::try_from(e.as_int()?).ok());
        let Some(extents) = extents.collect::<Option<Vec<u32>>>() else {
            return Err("how many blocks there are is known at the call".into());
        };
        let tiles = extents.iter().try_fold(1u32, |n, e| n.checked_mul(*e));
        let blocks = machine.multiprocessors;
        let Some(tiles) = tiles.filter(|n| *n > blocks && *n < 1 << 24) else {
            return Err("all blocks run at once".into());
        };
        if at_once > 1 {
            return Err(format!("{at_once} blocks share a multiprocessor").into());
        }
        let axis = &l.axes[0];
        if axis.const_trip_count().is_none() {
            return Err("tiles may differ in how long they take".into());
        }
        // Then copies are what the kernel waits for, and blocks that come as others go share more of what
        // the cache holds: measured at 4000x4100x4104, 569 TFLOP/s against 525. Pairs share anyway: 684
        // against 663.
        const LINE: i128 = 128;
        let cut = |b: &&Buffer| {
            let data = &func.buffers[**b];
            let row = data.shape.last().and_then(|e| e.as_int()).unwrap_or(1);
            row * i128::from(data.dtype.bits()) / 8 % LINE != 0
        };
        if let Some(tensor) = copied
            .iter()
            .find(cut)
            .filter(|_| asked.is_none() && !paired)
        {
            let name = &func.buffers[*tensor].name;
            return Err(format!("rows of `{name}` start inside of cache lines").into());
        }
        Ok(Resident {
            blocks,
            tiles,
            round: func.add_var("round", DType::I32, VarKind::Loop),
        })
    }
}
