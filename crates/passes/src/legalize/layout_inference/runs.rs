//! Which neighbours of a product's sum its lanes hold, where the instruction leaves a choice.
//!
//! What the sum is used for says it: as the operand of another product it lies as that one takes it;
//! else it lies so that memory is accessed 16 bytes a lane, or that a lane has much of the lines that are
//! folded. Fragments that loops touch at the same index lie alike, so their uses count together.
//!
//! Runs of more than one instruction take neighbours of the operand from two places. Reads of 8 bytes a
//! lane, all that transpose, and the two of 16 that an operand of 32 takes, find them on half of the banks
//! then, in every step;
//! results are stored once. So such products keep the runs of one instruction, and so do those whose operand
//! is a fragment, which lies as it is.
//!
//! An operand whose rows run across K, of elements smaller than a register, wants neighbours of its rows in
//! a lane where no reads transpose: one read brings them for as many instructions.

use std::cmp::Reverse;

use rustc_hash::FxHashMap;
use tilewright_ir::{
    Buffer, Func, GemmOp, GemmPlan, GemmPolicy, MmaFamily, MmaInst, Scope, Target,
};
use tilewright_layout::lanes::mfma::rows_in_a_run;
use tilewright_layout::lanes::{Operand, lane_map};

use super::uses::{Run, Use, UseKind};
use crate::legalize::gemm_plan::Choice;
use crate::legalize::gemm_tiling::{matrix, tiling_by};

/// Bits of the widest read of shared memory.
const WIDE_READ: i64 = 128;

/// Bits of what a lane reads of a row that runs across K: the swizzles of operands keep so much together
/// where none of them is read wider.
const ACROSS_BITS: u32 = 64;

/// How warps share the gemms out, in program order: as the user says, or where he leaves it open so that
/// the warp that has a row of a sum has all of it, where it is the operand of another product. Where
/// warps share a row, they would have to exchange it.
pub fn policies(func: &Func, uses: &[Use], target: Target) -> Vec<GemmPolicy> {
    let alike = Alike::of(func, uses);
    let gemms: Vec<(&GemmOp, i64)> = gemms(uses).collect();
    let machine = target.machine();
    let smallest = machine.mma.iter().map(|f| f.inst.m).min();
    let own_rows = machine.mma.iter().all(|f| f.inst.family == MmaFamily::Mfma);
    let mut given: FxHashMap<usize, GemmPolicy> = FxHashMap::default();
    let along = |dim: usize| match dim {
        0 => GemmPolicy::FullRow,
        _ => GemmPolicy::FullCol,
    };
    for (g, threads) in gemms.iter().filter(|_| own_rows) {
        let warps = threads / i64::from(machine.warp_size);
        for (region, side, k_dim) in [
            (&g.a, 0, usize::from(!g.trans_a)),
            (&g.b, 1, usize::from(g.trans_b)),
        ] {
            let class = alike.class(region.buffer);
            let makes = |(other, _): &&(&GemmOp, i64)| alike.class(other.c.buffer) == class;
            if func.buffers[region.buffer].scope != Scope::Fragment
                || !gemms.iter().any(|o| makes(&o))
            {
                continue;
            }
            let lines = matrix(region).map(|extents| extents[1 - k_dim]);
            let whole = |lines: i64| lines % (warps * i64::from(smallest.unwrap_or(1))) == 0;
            let wanted = [
                (alike.class(g.c.buffer), along(side)),
                (class, along(1 - k_dim)),
            ];
            let open = |(class, policy): &(usize, GemmPolicy)| {
                let of = gemms
                    .iter()
                    .filter(|(o, _)| alike.class(o.c.buffer) == *class);
                let mut said = of.map(|(o, _)| o.policy).chain(given.get(class).copied());
                said.all(|said| said == GemmPolicy::Square || said == *policy)
            };
            if lines.is_some_and(whole) && wanted.iter().all(open) {
                given.extend(wanted);
            }
        }
    }
    let decided = gemms.iter().map(|(g, _)| {
        let given = given.get(&alike.class(g.c.buffer));
        given.copied().unwrap_or(g.policy)
    });
    decided.collect()
}

fn gemms(uses: &[Use]) -> impl Iterator<Item = (&GemmOp, i64)> {
    uses.iter().filter_map(|u| match &u.kind {
        UseKind::Gemm(g) => Some((&**g, u.threads)),
        _ => None,
    })
}

/// Gives the gemms' plans, in program order, their runs.
pub fn decide(func: &Func, uses: &[Use], target: Target, choices: &mut [Choice]) {
    let gemms: Vec<(&GemmOp, i64)> = gemms(uses).collect();
    let alike = Alike::of(func, uses);
    let mut wishes: Vec<(usize, Wish)> = Vec::new();
    for ((g, _), choice) in gemms.iter().zip(&*choices) {
        let operands = [
            (&g.a, Operand::A, usize::from(!g.trans_a)),
            (&g.b, Operand::B, usize::from(g.trans_b)),
        ];
        for (region, operand, dim) in operands {
            let along_k = usize::from(operand == Operand::A);
            let run = lane_map(&choice.plan.inst, operand).map(|map| map.vector_width(along_k));
            if func.buffers[region.buffer].scope == Scope::Fragment
                && let Some(run) = run.and_then(|n| u32::try_from(n).ok())
            {
                wishes.push((alike.class(region.buffer), Wish::operand(dim, run)));
            }
        }
    }
    for u in uses {
        let UseKind::Points {
            accesses,
            shape,
            vector,
            memory: Some(along),
            ..
        } = &u.kind
        else {
            continue;
        };
        let dim = match along {
            Run::Rows => 1,
            Run::Columns => 0,
        };
        let Ok(run) = u32::try_from(*vector) else {
            continue;
        };
        for access in accesses.iter().filter(|a| a.own && shape.len() == 2) {
            wishes.push((alike.class(access.buffer), Wish::memory(dim, run)));
        }
    }
    for u in uses {
        // What a lane has of a line it folds by itself.
        if let UseKind::Reduce(r) = &u.kind
            && let Ok(dim @ (0 | 1)) = usize::try_from(r.dim)
        {
            wishes.push((alike.class(r.src.buffer), Wish::memory(dim, 4)));
        }
    }
    for (g, _) in &gemms {
        let c = &func.buffers[g.c.buffer];
        if c.scope == Scope::Shared {
            let run = 128 / c.dtype.bits().max(1);
            wishes.push((alike.class(g.c.buffer), Wish::memory(1, run)));
        }
    }
    wishes.sort_by_key(|(class, wish)| (*class, wish.rank));
    let free: Vec<bool> = gemms
        .iter()
        .zip(&*choices)
        .map(|((g, _), choice)| g.plan.is_none() && choice.plan.inst.family == MmaFamily::Mfma)
        .collect();
    for (at, (g, _)) in gemms.iter().enumerate() {
        let class = alike.class(g.c.buffer);
        let of = |at: &usize| alike.class(gemms[*at].0.c.buffer) == class;
        let same: Vec<usize> = (0..gemms.len()).filter(of).collect();
        if same[0] != at || same.iter().any(|&at| !free[at]) {
            continue;
        }
        let fits = |choices: &[Choice], changed: &dyn Fn(GemmPlan) -> GemmPlan| {
            same.iter().all(|&at| {
                let (g, threads) = gemms[at];
                tiling_by(func, g, threads, changed(choices[at].plan)).is_some()
            })
        };
        let own: Vec<Wish> = wishes
            .iter()
            .filter(|(of, _)| *of == class)
            .map(|(_, wish)| *wish)
            .collect();
        if own.iter().all(|wish| wish.shorter) {
            for dim in [0, 1] {
                let of_class = same.iter().map(|&at| (gemms[at].0, choices[at].plan));
                let most = across(func, target, of_class, dim);
                let lengths = std::iter::successors(Some(most), |n| Some(n / 2));
                let widest = lengths.take_while(|n| *n > 1).find(|&n| {
                    fits(choices, &|mut plan| {
                        plan.across[dim] = n;
                        plan
                    })
                });
                for &at in &same {
                    choices[at].plan.across[dim] = widest.unwrap_or(1);
                }
            }
        }
        let serves = |run: [u32; 2]| {
            fits(choices, &|plan| GemmPlan {
                run: Some(run),
                ..plan
            })
        };
        let of_one = |dim: usize| {
            let of_one = |g: &GemmOp, inst: &MmaInst| {
                let (operand, across, side, element) = match dim {
                    0 => (&g.a, g.trans_a, Operand::A, inst.a),
                    _ => (&g.b, !g.trans_b, Operand::B, inst.b),
                };
                let slots = lane_map(inst, side).map_or(0, |map| map.slots());
                let other = slots * i64::from(element.bits()) != WIDE_READ;
                match func.buffers[operand.buffer].scope {
                    Scope::Fragment => true,
                    _ => other || across && target.machine().ds_read_tr,
                }
            };
            let mut own = same.iter();
            own.any(|&at| of_one(gemms[at].0, &choices[at].plan.inst))
        };
        // They have the same accumulator, so the instruction's own runs are the same too.
        let least = rows_in_a_run(&choices[at].plan.inst) as u32;
        let own = own
            .iter()
            .flat_map(|wish| wish.runs(least, of_one(wish.dim)));
        let run = own.into_iter().find(|run| run.is_none_or(serves)).flatten();
        for at in same {
            choices[at].plan.run = run;
        }
    }
}

/// How many neighbours along a dimension of a sum the lanes of its products should read at once: those of
/// one read where an operand that lies in shared memory has rows along that dimension, and no reads
/// transpose. Elements of whole registers are read as fast one by one.
fn across<'a>(
    func: &Func,
    target: Target,
    gemms: impl Iterator<Item = (&'a GemmOp, GemmPlan)>,
    dim: usize,
) -> u32 {
    let mut most = 1;
    for (g, plan) in gemms {
        let (operand, runs_along) = match dim {
            0 => (&g.a, g.trans_a),
            _ => (&g.b, !g.trans_b),
        };
        let k = matrix(&g.b).map(|b| b[usize::from(g.trans_b)]);
        let data = &func.buffers[operand.buffer];
        let sum = &func.buffers[g.c.buffer];
        let whole = k.is_some_and(|k| k % i64::from(plan.inst.k) == 0);
        if data.scope != Scope::Shared || sum.layout.is_some() || !whole {
            return 1;
        }
        let bits = data.dtype.bits();
        if runs_along && matches!(bits, 8 | 16) && !target.machine().ds_read_tr {
            most = most.max(ACROSS_BITS / bits);
        }
    }
    most
}

/// What a use of a sum wants of its lanes.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
struct Wish {
    /// The dimension along which neighbours follow each other.
    dim: usize,
    run: u32,
    /// Whether a shorter run serves too.
    shorter: bool,
    rank: (bool, Reverse<u32>),
}

impl Wish {
    fn operand(dim: usize, run: u32) -> Wish {
        Wish {
            dim,
            run,
            shorter: false,
            rank: (false, Reverse(0)),
        }
    }

    fn memory(dim: usize, run: u32) -> Wish {
        Wish {
            dim,
            run,
            shorter: true,
            rank: (true, Reverse(run)),
        }
    }

    /// The runs that serve, best first, where the instruction has `least` neighbours in a lane; no longer
    /// ones, where they cost more than they bring. None is what it has without being told: runs of rows.
    fn runs(self, least: u32, of_one: bool) -> impl Iterator<Item = Option<[u32; 2]>> {
        let shortest = match self.shorter {
            // One neighbour is none.
            true => least.max(2),
            false => self.run.max(least),
        };
        let most = match self.shorter && of_one {
            true => self.run.min(least),
            false => self.run,
        };
        let lengths = std::iter::successors(Some(most), |run| Some(run / 2));
        lengths
            .take_while(move |run| *run >= shortest)
            .map(move |run| match self.dim {
                0 if run == least => None,
                0 => Some([run, 1]),
                _ => Some([1, run]),
            })
    }
}

/// Fragments that lie alike, by the number of their class.
struct Alike(FxHashMap<Buffer, usize>);

impl Alike {
    fn of(func: &Func, uses: &[Use]) -> Alike {
        let numbered = func.buffers.keys().enumerate();
        let mut classes: FxHashMap<Buffer, usize> = numbered.map(|(at, b)| (b, at)).collect();
        for u in uses {
            let UseKind::Points { accesses, .. } = &u.kind else {
                continue;
            };
            let own = accesses.iter().filter(|a| a.own);
            let own: Vec<usize> = own.map(|a| classes[&a.buffer]).collect();
            if let [first, rest @ ..] = &own[..] {
                let joined = classes.values_mut().filter(|class| rest.contains(class));
                joined.for_each(|class| *class = *first);
            }
        }
        Alike(classes)
    }

    fn class(&self, buffer: Buffer) -> usize {
        self.0[&buffer]
    }
}
