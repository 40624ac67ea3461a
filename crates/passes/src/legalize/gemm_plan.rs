//! How a gemm runs on a target: which matrix instruction, and which warps own which part of C.
//!
//! Layout inference chooses a plan, which the gemm keeps; lowering reads it. Placements follow from
//! the plan ([`GemmTiling`](super::gemm_tiling::GemmTiling)). The choice is by cost, stated in [`cost`]: cycles of
//! the matrix unit first, then shared-memory reads. Tiles that the instruction does not divide are padded.

use tilewright_ir::{
    Code, Diagnostic, Func, GemmOp, GemmPlan, GemmPolicy, Machine, MmaFacts, MmaFamily, MmaInst,
    Region, Scalar, Span, Target, target::WARP_GROUP,
};
use tilewright_layout::LayoutError;

use super::gemm_tiling::{GemmShape, GemmTiling, ceil_div, gemm_shape, tiles};
use super::group_operands::group_can;

const NO_MATRIX_PATH: Code = Code("no-matrix-path");

/// Why there is no plan.
#[derive(Clone, PartialEq, Eq, Debug)]
enum NoPlan {
    /// The target has no instruction for these types.
    Types,
    /// Fewer threads than a warp.
    Threads { warp: u32 },
    /// Warp groups alone are asked for, and cannot.
    Groups,
    /// Lanes cannot hold so many rows by columns in a row.
    Run([u32; 2]),
}

/// Whether the target has an instruction for the types of a gemm.
pub fn has_instruction(func: &Func, g: &GemmOp, threads: i64, target: Target) -> bool {
    let Some(shape) = gemm_shape(func, g, threads, false) else {
        return true;
    };
    fitting(target, &shape).next().is_some()
}

/// Whether the target has an instruction that takes the scales of a gemm: those of float8_e8m0fnu for
/// 32 along K each, of two factors that it takes whole steps of.
pub fn takes_scales(func: &Func, g: &GemmOp, threads: i64, target: Target) -> bool {
    let Some(scales) = &g.scales else {
        return false;
    };
    let scalar = |region: &Region| func.buffers[region.buffer].dtype.scalar;
    let each = u32::from(MmaInst::SCALED);
    scales.every == [each; 2]
        && [&scales.a, &scales.b].map(scalar) == [Scalar::F8E8M0; 2]
        && has_instruction(func, g, threads, target)
}

/// The instructions of a target for a product. Those for sparse factors know of no zeros behind the end
/// of K, and those with scales would take scales there that are none: they take whole steps.
fn fitting(target: Target, shape: &GemmShape) -> impl Iterator<Item = &'static MmaFacts> {
    let GemmShape { k, acc, scaled, .. } = *shape;
    let machine = target.machine();
    let factors = [shape.a, shape.b].map(|factor| register_type(target, factor));
    let (table, sparse) = match shape.metadata {
        Some(_) => (machine.sparse_mma, true),
        None => (machine.mma, false),
    };
    let whole = move |inst: &MmaInst| !(sparse || scaled) || k % i64::from(inst.k) == 0;
    table
        .iter()
        .filter(move |f| [f.inst.a, f.inst.b] == factors && f.inst.acc == acc)
        .filter(move |f| f.inst.scaled == scaled && whole(&f.inst))
}

/// The plan of a gemm, or the diagnostic that says why there is none.
pub fn plan_gemm(
    func: &Func,
    g: &GemmOp,
    threads: i64,
    target: Target,
    span: Span,
) -> Result<Choice, Box<Diagnostic>> {
    let groups = target.machine().group_mma();
    let Some(shape) = gemm_shape(func, g, threads, groups) else {
        return Err(Box::new(Diagnostic::error(
            NO_MATRIX_PATH,
            span,
            "the sizes of a gemm must be constants",
        )));
    };
    let kept = g.plan.map(|plan| Choice {
        plan,
        unlike: None,
        idle: None,
    });
    let choice = kept.map_or_else(|| choose(target, &shape), Ok);
    let planned = choice.and_then(|choice| {
        let why_not = match choice.plan.run {
            Some(run) => NoPlan::Run(run),
            None => NoPlan::Types,
        };
        GemmTiling::of(&shape, choice.plan).ok_or(why_not)?;
        Ok(choice)
    });
    planned.map_err(|why| {
        let types = format!("{} with {} accumulation", factors(&shape), shape.acc);
        let diag = match why {
            NoPlan::Types => Diagnostic::error(
                NO_MATRIX_PATH,
                span,
                format!("no matrix instruction of {target} that is generated takes {types}"),
            )
            .help(format!("these are: {}", known_types(target)))
            .help("convert the operands with `T.copy` into tiles of such a type, or sum in `T.Parallel`"),
            NoPlan::Threads { warp } => Diagnostic::error(
                NO_MATRIX_PATH,
                span,
                format!(
                    "a gemm needs at least one warp of {warp} threads, the block has {threads}"
                ),
            )
            .help(format!("launch with threads={warp} or more")),
            NoPlan::Run([rows, cols]) => Diagnostic::error(
                NO_MATRIX_PATH,
                span,
                format!("lanes cannot hold runs of {rows} by {cols} elements of this product"),
            )
            .help("leave `run` out, or take 1 and a power of two that divides it: 4 or more, of float64 any"),
            NoPlan::Groups => no_groups(func, g, &shape, target, span),
        };
        Box::new(diag)
    })
}

/// The types of both factors, in words.
fn factors(shape: &GemmShape) -> String {
    match shape.a == shape.b {
        true => shape.a.to_string(),
        false => format!("{} by {}", shape.a, shape.b),
    }
}

/// Why warp groups cannot do a product that the user wants of them.
fn no_groups(func: &Func, g: &GemmOp, shape: &GemmShape, target: Target, span: Span) -> Diagnostic {
    let wgmma = |f: &&MmaFacts| f.inst.family == MmaFamily::Wgmma;
    let mut insts = target.machine().mma.iter().filter(wgmma);
    let types = |f: &MmaFacts| f.inst.a == shape.a && f.inst.acc == shape.acc;
    let name = |region: &Region| func.buffers[region.buffer].name.clone();
    let GemmShape {
        m, n, k, threads, ..
    } = *shape;
    let (why, help) = if !insts.any(types) {
        let why = format!(
            "it does not take {} with {} accumulation",
            shape.a, shape.acc
        );
        (why, "use `T.gemm`, or another type")
    } else if shape.group.is_none() {
        let why = format!(
            "it cannot be told how `{}` and `{}` lie",
            name(&g.a),
            name(&g.b)
        );
        let help = "B, and A unless it is a fragment, are tiles of shared memory whose layout is the \
                    compiler's, with rows that are multiples of 32 bytes";
        (why, help)
    } else if threads % i64::from(WARP_GROUP) != 0 {
        let why = format!("{threads} threads are no whole warp groups of {WARP_GROUP}");
        (why, "run it by whole warp groups")
    } else {
        let groups = threads / i64::from(WARP_GROUP);
        let why = format!("{groups} warp groups cannot share {m} by {n} by {k} without rest");
        let help = "each group takes a multiple of 64 rows and of 8 columns, and steps of 32 bytes \
                    along K";
        (why, help)
    };
    let message = format!("`wgmma` cannot do this product: {why}");
    Diagnostic::error(NO_MATRIX_PATH, span, message).help(help)
}

/// Why an operand of a gemm has no place in registers.
pub fn no_placement(e: &LayoutError, span: Span) -> Diagnostic {
    Diagnostic::error(
        NO_MATRIX_PATH,
        span,
        format!("no placement for this gemm: {e}"),
    )
}

fn known_types(target: Target) -> String {
    let mut names: Vec<String> = Vec::new();
    for f in target.machine().mma.iter().filter(|f| !f.inst.scaled) {
        let name = format!("{} with {}", f.inst.a, f.inst.acc);
        if !names.contains(&name) {
            names.push(name);
        }
    }
    names.join(", ")
}

/// A plan; where its warps do not lie as the policy wishes, with how many warps there are.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Choice {
    pub plan: GemmPlan,
    pub unlike: Option<i64>,
    /// Threads behind the last whole warp.
    pub idle: Option<Idle>,
}

/// Threads of a block that make no whole warp.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Idle {
    /// Threads that whole warps have.
    pub used: i64,
    pub threads: i64,
    pub warp: i64,
}

/// The cheapest plan.
fn choose(target: Target, shape: &GemmShape) -> Result<Choice, NoPlan> {
    let machine = target.machine();
    let warp = i64::from(machine.warp_size);
    let warps = shape.threads / warp;
    if warps == 0 {
        return Err(NoPlan::Threads {
            warp: machine.warp_size,
        });
    }
    let candidates =
        fitting(target, shape).filter(|f| !shape.by_groups || f.inst.family == MmaFamily::Wgmma);
    // A plan that does as wished comes before a cheaper one that does not.
    let plans = candidates.filter_map(|candidate| {
        let inst = &candidate.inst;
        let unit = i64::from(inst.threads(machine.warp_size));
        let units = shape.threads / unit;
        if units == 0 {
            return None;
        }
        let (grid, as_wished) = warp_grid(shape, inst, units);
        // Warp groups all take part, and every thread is of one.
        let all = grid[0] * grid[1] * unit == shape.threads;
        if inst.family == MmaFamily::Wgmma && !(all && group_can(shape, inst, grid)) {
            return None;
        }
        let crowded = inst.family == MmaFamily::Wgmma && is_crowded(shape, machine, inst, grid);
        // What a policy gives one dimension as far as tiles go may go further with smaller ones.
        let spilled = match shape.policy {
            GemmPolicy::FullRow => grid[1],
            GemmPolicy::FullCol => grid[0],
            GemmPolicy::Square => 1,
        };
        let cost = cost(shape, candidate, grid, machine.warp_size);
        let rank = (!as_wished, crowded, spilled, cost);
        Some((rank, candidate, grid))
    });
    let best = plans.min_by_key(|(rank, ..)| *rank);
    let none = match shape.by_groups {
        true => NoPlan::Groups,
        false => NoPlan::Types,
    };
    let ((unlike, ..), facts, grid) = best.ok_or(none)?;
    Ok(Choice {
        plan: GemmPlan {
            inst: facts.inst,
            warps: grid.map(|n| n as u32),
            run: None,
            parts: [1, 1],
            across: [1, 1],
        },
        unlike: unlike.then_some(warps),
        idle: (warps * warp < shape.threads).then_some(Idle {
            used: warps * warp,
            threads: shape.threads,
            warp,
        }),
    })
}

/// The type that operands have in registers: float32 multiplies as tf32 where there is no
/// float32 instruction, fp8 formats that the target lacks are converted to float16, and integers of
/// four bits to int8: these hold every one of their values.
pub fn register_type(target: Target, ab: Scalar) -> Scalar {
    let has = |s: Scalar| target.machine().mma.iter().any(|f| f.inst.a == s);
    match ab {
        _ if has(ab) => ab,
        Scalar::F32 if has(Scalar::TF32) => Scalar::TF32,
        Scalar::TF32 if has(Scalar::F32) => Scalar::F32,
        Scalar::F8E4M3FN | Scalar::F8E4M3FNUZ | Scalar::F8E5M2 | Scalar::F8E5M2FNUZ => Scalar::F16,
        Scalar::U8 if has(Scalar::I8) => Scalar::U8,
        Scalar::I4 | Scalar::U4 if has(Scalar::I8) => Scalar::I8,
        other => other,
    }
}

/// Cycles that an operand's element takes to read by itself, compared with the tile's end: a guess at a load, a
/// comparison and putting bytes together. With one cycle already, fp8 tiles of 96 along K are read in vectors.
const ELEMENT: i64 = 8;

/// Cycles of one warp: the matrix unit's and, where its last step reaches past the tile, those of reading element
/// by element; then one for each operand register element read from shared memory as the tie-breaker.
fn cost(shape: &GemmShape, facts: &MmaFacts, grid: [i64; 2], warp: u32) -> u64 {
    let inst = &facts.inst;
    let tiles = tiles(shape, inst, grid);
    let steps = ceil_div(shape.k, inst.k.into());
    let math = tiles[0] * tiles[1] * steps * facts.cycles as i64;
    let (m, n) = (i64::from(inst.m), i64::from(inst.n));
    let read = match inst.family {
        // Each instruction reads its own.
        MmaFamily::Wgmma => tiles[0] * tiles[1] * (m + n),
        MmaFamily::MmaSync | MmaFamily::MmaSp | MmaFamily::Mfma => tiles[0] * m + tiles[1] * n,
    };
    let reads = steps * inst.k as i64 * read;
    let ends = shape.k % i64::from(inst.k) == 0;
    let alone = match inst.family {
        MmaFamily::MmaSync | MmaFamily::MmaSp | MmaFamily::Mfma if !ends => {
            reads / i64::from(warp) * ELEMENT
        }
        _ => 0,
    };
    (math as u64 + alone as u64) << 24 | (reads as u64).min((1 << 24) - 1)
}

/// Whether a thread has no registers for the product of one instruction beside a sum of all: so much
/// it has to hold where the product is added to a sum part by part (SplitProducts).
fn is_crowded(shape: &GemmShape, machine: &Machine, inst: &MmaInst, grid: [i64; 2]) -> bool {
    let bits = i64::from(inst.m) * i64::from(inst.n) * i64::from(inst.acc.bits());
    let one = bits / 32 / i64::from(inst.threads(machine.warp_size));
    let [rows, cols] = tiles(shape, inst, grid);
    // As much as addresses and operands take.
    const OTHER: i64 = 40;
    shape.fresh && one * (rows * cols + 1) + OTHER > machine.registers.per_thread.into()
}

/// How many warps along M and N, and whether that is what the policy wishes.
fn warp_grid(shape: &GemmShape, inst: &MmaInst, warps: i64) -> ([i64; 2], bool) {
    let rows = ceil_div(shape.m, inst.m.into());
    let cols = ceil_div(shape.n, inst.n.into());
    // What the policy's dimension cannot take goes along the other one.
    let spill = |first: i64, second: i64| {
        let wished = warps.min(first);
        let fits = |along: &i64| warps % along == 0 && warps / along <= second;
        let along = (1..=wished).rev().find(fits)?;
        Some((along, warps / along, along == wished))
    };
    let nearest = match shape.policy {
        GemmPolicy::FullRow => spill(rows, cols).map(|(wm, wn, same)| ([wm, wn], same)),
        GemmPolicy::FullCol => spill(cols, rows).map(|(wn, wm, same)| ([wm, wn], same)),
        GemmPolicy::Square => return (squarest(shape, inst, warps), true),
    };
    // More warps than tiles: some have nothing to do.
    nearest.unwrap_or_else(|| (squarest(shape, inst, warps), false))
}

/// The split that leaves the fewest padded tiles, then the squarest part a warp. Warp groups read what each
/// of their instructions reads, whoever has it: they take rows, of which results go out by parts.
fn squarest(shape: &GemmShape, inst: &MmaInst, warps: i64) -> [i64; 2] {
    let rows = ceil_div(shape.m, inst.m.into());
    let cols = ceil_div(shape.n, inst.n.into());
    let mut best = ([1, 1], (i64::MAX, i64::MAX));
    for wm in 1..=warps.min(rows) {
        let wn = (warps / wm).min(cols);
        let t = tiles(shape, inst, [wm, wn]);
        let other = match inst.family {
            MmaFamily::Wgmma => wn,
            _ => t[0] * inst.m as i64 + t[1] * inst.n as i64,
        };
        let key = (t[0] * t[1], other);
        if key < best.1 {
            best = ([wm, wn], key);
        }
    }
    best.0
}

#[cfg(test)]
mod tests {
    use super::*;
    use crate::legalize::group_operands::{GroupOperands, Held};
    use tilewright_ir::Major;
    use tilewright_layout::Holder;

    fn shape(m: i64, n: i64, k: i64, ab: Scalar, threads: i64) -> GemmShape {
        GemmShape {
            m,
            n,
            k,
            a: ab,
            b: ab,
            acc: match ab {
                Scalar::F64 => Scalar::F64,
                _ if ab.is_int() => Scalar::I32,
                _ => Scalar::F32,
            },
            policy: GemmPolicy::Square,
            threads,
            fresh: false,
            group: None,
            by_groups: false,
            metadata: None,
            scaled: false,
        }
    }

    #[test]
    fn the_last_step_ends_with_the_tile_where_one_can() {
        // The instruction of 128 takes fewer cycles, and would read element by element.
        for (target, ab, k, steps) in [
            (Target::Gfx950, Scalar::F8E4M3FN, 96, 3),
            (Target::Gfx950, Scalar::F8E4M3FN, 128, 1),
            (Target::Gfx950, Scalar::F8E4M3FN, 160, 5),
            (Target::Gfx942, Scalar::F16, 24, 3),
        ] {
            let s = shape(208, 96, k, ab, 128);
            let p = choose(target, &s).unwrap();
            assert_eq!(
                GemmTiling::of(&s, p.plan).unwrap().steps,
                steps,
                "{target} {k}"
            );
        }
    }

    #[test]
    fn sparse_products_have_plans_where_there_are_instructions() {
        for target in [Target::Sm80, Target::Sm90a] {
            for (ab, k) in [
                (Scalar::F16, 32),
                (Scalar::BF16, 32),
                (Scalar::F32, 16),
                (Scalar::I8, 64),
                (Scalar::U8, 64),
            ] {
                for bits in [8, 16, 32] {
                    let s = GemmShape {
                        metadata: Some(bits),
                        ..shape(100, 72, 3 * k, ab, 128)
                    };
                    let p = choose(target, &s).unwrap_or_else(|e| panic!("{target} {ab}: {e:?}"));
                    let p = GemmTiling::of(&s, p.plan).unwrap();
                    assert_eq!((p.inst.family, p.steps), (MmaFamily::MmaSp, 3));
                    assert_eq!(p.a().unwrap().shape(), [100, 3 * k / 2]);
                    assert_eq!(p.b().unwrap().shape(), [3 * k, 72]);
                    let one = p.metadata().unwrap();
                    let step = p.metadata_step().unwrap();
                    assert_eq!(step.slots(), p.tiles[0] * one.slots());
                    assert_eq!(step.shape(), [100, one.shape()[1]]);
                    // Half a step is none.
                    let ragged = GemmShape { k: k + k / 2, ..s };
                    assert_eq!(choose(target, &ragged).map(|_| ()), Err(NoPlan::Types));
                }
            }
            let fp8 = GemmShape {
                metadata: Some(16),
                ..shape(64, 64, 64, Scalar::F8E4M3FN, 128)
            };
            // Where it is multiplied as float16, it is so here.
            let converted = (target == Target::Sm80).then_some(Scalar::F16);
            let chosen = choose(target, &fp8).ok();
            assert_eq!(chosen.map(|c| c.plan.inst.a), converted);
        }
        let s = GemmShape {
            metadata: Some(16),
            ..shape(64, 64, 64, Scalar::F16, 256)
        };
        assert_eq!(choose(Target::Gfx942, &s).map(|_| ()), Err(NoPlan::Types));
        // A plan of the other kind is none.
        let dense = choose(Target::Sm80, &shape(64, 64, 64, Scalar::F16, 256)).unwrap();
        assert_eq!(GemmTiling::of(&s, dense.plan), None);
    }

    #[test]
    fn ordinary_tiles_have_plans() {
        for target in Target::ALL {
            for (m, n, k, threads) in [(128, 128, 32, 128), (64, 64, 64, 256), (100, 72, 40, 128)] {
                for ab in [
                    Scalar::F16,
                    Scalar::BF16,
                    Scalar::F32,
                    Scalar::I8,
                    Scalar::F8E4M3FN,
                    Scalar::F64,
                ] {
                    let s = shape(m, n, k, ab, threads);
                    let p = choose(target, &s).unwrap_or_else(|e| panic!("{target} {ab}: {e:?}"));
                    let p = GemmTiling::of(&s, p.plan).unwrap();
                    let c = p.c().unwrap();
                    assert_eq!(c.shape(), [m, n]);
                    assert_eq!(c.threads(), threads);
                    assert_eq!(c.slots(), p.c_slots());
                    assert_eq!(p.a().unwrap().slots(), p.tiles[0] * p.steps * p.slots[0]);
                    assert_eq!(p.b_step().unwrap().slots(), p.tiles[1] * p.slots[1]);
                }
            }
        }
    }

    #[test]
    fn lanes_hold_runs_of_neighbours() {
        let of_four = [[1, 4], [1, 8], [1, 16], [4, 1], [8, 1]];
        let of_one = [[1, 1], [1, 2], [1, 4], [1, 8], [2, 1], [4, 1], [8, 1]];
        // What the tile does not have.
        let other = [[2, 2], [1, 6], [1, 256], [0, 0], [1, 0]];
        for (target, ab, runs) in [
            (Target::Gfx942, Scalar::BF16, &of_four[..]),
            (Target::Gfx950, Scalar::BF16, &of_four),
            (Target::Gfx950, Scalar::F8E4M3FN, &of_four),
            (Target::Gfx942, Scalar::F64, &of_one),
        ] {
            let s = shape(128, 256, 128, ab, 256);
            let plan = choose(target, &s).unwrap().plan;
            for &run in runs {
                let t = GemmTiling::of(
                    &s,
                    GemmPlan {
                        run: Some(run),
                        ..plan
                    },
                )
                .unwrap();
                let c = t.c().unwrap();
                assert_eq!(c.slots(), t.c_slots());
                let widths = [0, 1].map(|dim| c.vector_width(dim));
                let held = [0, 1].map(|dim| widths[dim] >= i64::from(run[dim]));
                assert_eq!(held, [true; 2], "{target} {run:?}: {widths:?}");
                // A lane has the rows of A and the columns of B that its place says.
                for is_a in [true, false] {
                    let side = usize::from(!is_a);
                    let step = if is_a { t.a_step() } else { t.b_step() };
                    let held = step.unwrap().inverse().unwrap();
                    let own = i64::from(if is_a { t.inst.m } else { t.inst.n });
                    for place in 0..t.tiles[side] * own {
                        let holder = Holder {
                            thread: place % own,
                            slot: place / own * t.slots[side],
                        };
                        let element = held.element(holder).unwrap();
                        assert_eq!(element[side], t.dealt_at(is_a, place), "{target} {run:?}");
                    }
                }
            }
            let short = (ab != Scalar::F64).then_some([1, 2]);
            for run in other.into_iter().chain(short) {
                let run = Some(run);
                assert_eq!(GemmTiling::of(&s, GemmPlan { run, ..plan }), None);
            }
        }
        let s = shape(128, 128, 64, Scalar::F16, 128);
        let plan = choose(Target::Sm80, &s).unwrap().plan;
        let run = Some([1, 4]);
        assert_eq!(GemmTiling::of(&s, GemmPlan { run, ..plan }), None);
    }

    #[test]
    fn lanes_have_neighbours_of_rows_across_k() {
        for ab in [Scalar::BF16, Scalar::F8E4M3FNUZ] {
            let s = shape(256, 256, 64, ab, 256);
            let plan = choose(Target::Gfx942, &s).unwrap().plan;
            let tiling = |across, run, parts| {
                let plan = GemmPlan {
                    across,
                    run,
                    parts,
                    ..plan
                };
                GemmTiling::of(&s, plan)
            };
            for across in [[1, 4], [4, 1], [8, 8], [2, 4]] {
                for (run, parts) in [(None, [1, 1]), (Some([1, 4]), [1, 1])] {
                    let t = tiling(across, run, parts).unwrap();
                    let c = t.c().unwrap();
                    assert_eq!(c.slots(), t.c_slots());
                    for is_a in [true, false] {
                        let side = usize::from(!is_a);
                        let step = if is_a { t.a_step() } else { t.b_step() }.unwrap();
                        let width = i64::from(across[side]);
                        assert_eq!(t.read_across(is_a), width);
                        let runs = step.in_runs(side).filter(|_| width > 1);
                        let apart = runs.map(|runs| (runs.even, runs.apart));
                        let wanted = (width > 1).then_some((width, t.slots[side]));
                        assert_eq!(apart, wanted, "{across:?} {run:?}");
                        // A lane has what its place says.
                        let held = step.inverse().unwrap();
                        let own = i64::from(if is_a { t.inst.m } else { t.inst.n });
                        for place in 0..t.tiles[side] * own {
                            let holder = Holder {
                                thread: place % own,
                                slot: place / own * t.slots[side],
                            };
                            let element = held.element(holder).unwrap();
                            assert_eq!(element[side], t.dealt_at(is_a, place), "{across:?}");
                        }
                    }
                }
            }
            // No more than there are instructions, no two orders of one dimension, powers of two.
            for (across, run) in [
                ([1, 16], None),
                ([1, 3], None),
                ([1, 0], None),
                ([1, 4], Some([1, 8])),
                ([4, 1], Some([8, 1])),
            ] {
                assert_eq!(tiling(across, run, [1, 1]), None, "{across:?} {run:?}");
            }
            assert!(tiling([4, 1], Some([1, 8]), [1, 1]).is_some());
            assert!(tiling([4, 4], None, [2, 2]).is_some());
            assert_eq!(tiling([8, 1], None, [2, 2]), None);
        }
        // Rows and columns that the tile does not have.
        let s = shape(100, 72, 64, Scalar::BF16, 256);
        let plan = choose(Target::Gfx942, &s).unwrap().plan;
        let across = [1, 2];
        assert_eq!(GemmTiling::of(&s, GemmPlan { across, ..plan }), None);
    }

    #[test]
    fn products_that_are_added_up_leave_room_for_the_sum() {
        let along_k = Held {
            major: Major::K,
            width: 128,
        };
        let mut s = shape(128, 256, 128, Scalar::F8E4M3FN, 256);
        s.group = Some(GroupOperands {
            a: Some(along_k),
            b: along_k,
        });
        let plan = |s: &GemmShape| {
            let plan = choose(Target::Sm90a, s).unwrap().plan;
            (plan.inst.n, plan.warps)
        };
        assert_eq!(plan(&s), (256, [2, 1]));
        // 128 registers of the sum and 64 of a part.
        s.fresh = true;
        assert_eq!(plan(&s), (128, [2, 1]));
        s.n = 128;
        assert_eq!(plan(&s), (128, [2, 1]));
    }

    #[test]
    fn gfx950_takes_the_full_rate_forms() {
        let p = choose(Target::Gfx950, &shape(256, 256, 64, Scalar::BF16, 512));
        let p = p.unwrap().plan;
        assert!(
            p.inst.k == 32 && p.inst.m == 16 || p.inst.k == 16 && p.inst.m == 32,
            "{}",
            p.inst
        );
    }

    #[test]
    fn a_policy_that_does_not_fit_is_a_wish() {
        // Four warps on three rows of instruction tiles: two by two.
        let mut s = shape(48, 64, 64, Scalar::F16, 128);
        s.policy = GemmPolicy::FullRow;
        let p = choose(Target::Sm80, &s).unwrap();
        assert_eq!((p.plan.warps, p.unlike), ([2, 2], Some(4)));
        // Eight warps on three tiles: five have nothing to do.
        let mut s = shape(48, 8, 32, Scalar::F16, 256);
        s.policy = GemmPolicy::FullRow;
        let p = choose(Target::Sm80, &s).unwrap();
        assert_eq!((p.plan.warps, p.unlike), ([3, 1], Some(8)));
    }

    #[test]
    fn a_policy_is_followed_as_far_as_the_smallest_tiles_go() {
        let mut s = shape(128, 64, 128, Scalar::BF16, 512);
        s.policy = GemmPolicy::FullRow;
        let p = choose(Target::Gfx950, &s).unwrap();
        assert_eq!((p.plan.warps, p.plan.inst.m, p.unlike), ([8, 1], 16, None));
    }

    #[test]
    fn what_no_instruction_does_is_refused() {
        let mut s = shape(48, 8, 32, Scalar::F16, 256);
        s.threads = 16;
        assert_eq!(
            choose(Target::Sm80, &s).map(|_| ()),
            Err(NoPlan::Threads { warp: 32 })
        );
        s.threads = 256;
        (s.a, s.b) = (Scalar::U16, Scalar::U16);
        s.acc = Scalar::I32;
        assert_eq!(choose(Target::Sm80, &s).map(|_| ()), Err(NoPlan::Types));
    }
}
