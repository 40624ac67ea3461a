//! `block_pingpong`: which of the orders of Triton's pass of this name a loop gets.
//!
//! Two tables: what is rejected whatever the order, and a row for each order with what it is for. Both
//! are read from top to bottom. Sizes are those of the whole block's tile, `M · N · K` products times
//! the bits of an element of the operands.

use tilewright_ir::visit::walk_stmts;
use tilewright_ir::{Inst, LayoutAttr, MicroKind, MmaFamily, MmaInst, Scope, StmtKind};
use tilewright_schedule::order::Completion;

use super::super::super::effects::Effects;
use super::super::arrangement::{Arrangement, label};
use super::super::pieces::plan_of;
use super::super::text::Products;
use super::{Question, Why, find_schedule};

/// The least that one block's waves of four are worth ordering for: 32 x 128 x 4 of 16 bits.
const MIN_TILE: u64 = 262_144;
/// 128 x 128 x 64 of 16 bits.
const SMALL_TILE: u64 = 16_777_216;
/// 256 x 128 x 64 of 16 bits.
const MEDIUM_TILE: u64 = 33_554_432;
/// 256 x 256 x 64 of 16 bits.
const LARGE_TILE: u64 = 67_108_864;

/// What the rules ask of a loop.
#[derive(Clone, Debug)]
struct Facts {
    /// Whether waves have priorities and a barrier that leaves copies in flight.
    pub able: bool,
    /// Whether the machine copies to LDS by itself, and whether all copies of the loop are such.
    pub copies_directly: bool,
    pub direct: bool,
    pub stages: u32,
    pub waves: u32,
    pub products: usize,
    /// Tiles that are brought ahead, stores of them from registers, and reads of operands.
    pub copies: usize,
    pub stores: usize,
    pub reads: usize,
    /// A statement that reads or writes global memory and brings no tile.
    pub other: Option<String>,
    /// Whether what a copy leaves out depends on the iteration.
    pub varying_mask: bool,
    pub tile: Tile,
    pub inst: Option<MmaInst>,
}

/// Of the product, for the whole block.
#[derive(Clone, Copy, Default, Debug)]
struct Tile {
    pub m: u64,
    pub n: u64,
    pub k: u64,
    pub bits: u64,
}

impl Tile {
    fn size(self) -> u64 {
        self.m * self.n * self.k * self.bits
    }
}

/// An order, and the loops that it is for.
struct Row {
    order: &'static str,
    /// What holds of them.
    when: &'static str,
    /// Why a loop is none of them.
    holds: fn(&Facts) -> Result<(), Why>,
}

/// Loops that have no such order.
type Rejection = fn(&Facts) -> Option<Why>;

const REJECTIONS: &[Rejection] = &[
    |f| {
        (!f.able).then(|| {
            "its waves have no priorities, or no barrier that leaves copies in flight".into()
        })
    },
    |f| {
        (f.copies_directly && !f.direct).then(|| {
            "copies go through registers on a machine whose waves copy straight to LDS".into()
        })
    },
    |f| (f.stages <= 1).then(|| "nothing in the loop runs ahead: it has one stage".into()),
    |f| {
        (!(1..=2).contains(&f.products)).then(|| {
            format!(
                "the loop has {} products by matrix instructions, not one or two",
                f.products
            )
            .into()
        })
    },
    |f| {
        (f.products == 1 && f.copies < 2)
            .then(|| format!("{} of its tiles is brought ahead, not two", f.copies).into())
    },
    |f| {
        (f.products == 1 && f.reads < 2)
            .then(|| format!("{} operand is read from a tile, not two", f.reads).into())
    },
    |f| {
        let other = f.other.as_ref().filter(|_| f.products == 1 && !f.direct)?;
        Some(format!("`{other}` reads or writes global memory beside the tiles").into())
    },
    |f| {
        (f.products == 1 && !f.direct && (f.copies > 2 || f.reads > 2)).then(|| {
            format!(
                "{} tiles are brought and {} operands read, not two of each",
                f.copies, f.reads
            )
            .into()
        })
    },
    |f| {
        (f.products == 1 && !f.direct && f.varying_mask)
            .then(|| "what a copy leaves out depends on the iteration".into())
    },
];

/// The rows: an order, the loops that it is for, and why a loop is none of them.
const ROWS: &[Row] = &[
    Row {
        order: "chained_products",
        when: "two products, 8 waves, 4 stages",
        holds: |f| two_of_halves(f).and_then(|()| stages(f, 4)),
    },
    Row {
        order: "two_products",
        when: "two products, 8 waves, 2 stages",
        holds: |f| two_of_halves(f).and_then(|()| stages(f, 2)),
    },
    Row {
        order: "copies_and_all",
        when: "one product of 256 x 256 by instructions of 128 elements of 8 bits along K, copies straight to LDS, 8 waves, 2 stages",
        holds: |f| {
            one(f)?;
            direct(f, true)?;
            if !long(f) {
                return Err("its instructions are not of 128 elements of 8 bits along K".into());
            }
            waves(f, 8)?;
            stages(f, 2)?;
            match (f.tile.m, f.tile.n) {
                (256, 256) => Ok(()),
                (m, n) => Err(format!("its tile is {m} x {n}").into()),
            }
        },
    },
    Row {
        order: "reads_and_all",
        when: "one product of more than 64 x 64, elements of 16 or 8 bits, copies straight to LDS, 8 waves, 3 stages",
        holds: |f| {
            one(f)?;
            direct(f, true)?;
            if long(f) {
                return Err("its instructions are of 128 elements of 8 bits along K".into());
            }
            waves(f, 8)?;
            stages(f, 3)?;
            let Tile { m, n, bits, .. } = f.tile;
            if m <= 64 || n <= 64 {
                return Err(format!("its tile is {m} x {n}").into());
            }
            match bits {
                8 | 16 => Ok(()),
                bits => Err(format!("its elements have {bits} bits").into()),
            }
        },
    },
    Row {
        order: "one_cluster",
        when: "one product of 262144 to 16777216, copies through registers, 4 waves",
        holds: |f| {
            one(f)?;
            direct(f, false)?;
            waves(f, 4)?;
            match f.tile.size() {
                MIN_TILE..=SMALL_TILE => Ok(()),
                size => Err(format!("its size is {size}").into()),
            }
        },
    },
    Row {
        order: "two_clusters",
        when: "one product of 33554432, copies through registers, 8 waves, 2 stages",
        holds: |f| {
            eight_waves_through_registers(f)?;
            match f.tile.size() {
                MEDIUM_TILE => Ok(()),
                size => Err(format!("its size is {size}").into()),
            }
        },
    },
    Row {
        order: "four_clusters",
        when: "one product of 67108864 or more, not by 16 x 16 instructions with 8 elements a lane, copies through registers, 8 waves, 2 stages",
        holds: |f| {
            eight_waves_through_registers(f)?;
            if f.tile.size() < LARGE_TILE {
                return Err(format!("its size is {}", f.tile.size()).into());
            }
            match f.inst {
                Some(inst) if inst.m == 16 && inst.n == 16 && lane_elements(inst) == 8 => {
                    Err("its instructions are 16 x 16 with 8 elements a lane".into())
                }
                _ => Ok(()),
            }
        },
    },
];

fn one(f: &Facts) -> Result<(), Why> {
    match f.products {
        1 => Ok(()),
        _ => Err("it has two products".into()),
    }
}

/// Two products, and two waves for each SIMD: halves of fewer share none, and would wait for each other
/// with their SIMDs idle.
fn two_of_halves(f: &Facts) -> Result<(), Why> {
    match f.products {
        2 => waves(f, 8),
        _ => Err("it has one product".into()),
    }
}

fn stages(f: &Facts, wanted: u32) -> Result<(), Why> {
    match f.stages == wanted {
        true => Ok(()),
        false => Err(format!("it has {} stages", f.stages).into()),
    }
}

fn waves(f: &Facts, wanted: u32) -> Result<(), Why> {
    match f.waves == wanted {
        true => Ok(()),
        false => Err(format!("the block has {} waves", f.waves).into()),
    }
}

fn direct(f: &Facts, wanted: bool) -> Result<(), Why> {
    match (f.direct, wanted) {
        (true, false) => Err("its waves copy straight to LDS".into()),
        (false, true) => Err("its copies go through registers".into()),
        _ => Ok(()),
    }
}

fn eight_waves_through_registers(f: &Facts) -> Result<(), Why> {
    one(f)?;
    direct(f, false)?;
    waves(f, 8)?;
    stages(f, 2)?;
    match f.stores {
        2 => Ok(()),
        n => Err(format!("{n} tiles are stored from registers, not two").into()),
    }
}

/// Whether the instructions are those that also take scales.
fn long(f: &Facts) -> bool {
    f.inst.is_some_and(|inst| inst.k >= 128 && f.tile.bits == 8)
}

/// Elements of an operand that a lane holds.
fn lane_elements(inst: MmaInst) -> u16 {
    const LANES: u16 = 64;
    inst.m * inst.k / LANES
}

/// The order of the first row that holds.
pub(super) fn arrange(question: Question<'_>) -> Result<Arrangement, Why> {
    let row = chosen(&Facts::of(question))?;
    let schedule = find_schedule(row.order).ok_or("it has no such order")?;
    let arranged = schedule.arrange(question);
    arranged.map_err(|why| format!("`{}`, which it takes here, does not: {why}", row.order).into())
}

/// The first row that holds, or why none does.
fn chosen(facts: &Facts) -> Result<&'static Row, Why> {
    if let Some(why) = rejection(facts) {
        return Err(why);
    }
    let found = ROWS.iter().find(|row| (row.holds)(facts).is_ok());
    found.ok_or_else(|| "none of its orders is for this loop".into())
}

fn rejection(facts: &Facts) -> Option<Why> {
    REJECTIONS.iter().find_map(|rejected| rejected(facts))
}

/// A line for each row: whether it is the one, or why not. None where the loop is rejected.
pub(in super::super) fn explained(question: Question<'_>) -> Vec<String> {
    let facts = Facts::of(question);
    if rejection(&facts).is_some() {
        return Vec::new();
    }
    let chosen = chosen(&facts).ok().map(|row| row.order);
    let lines = ROWS.iter().map(|Row { order, when, holds }| {
        let outcome = match holds(&facts) {
            Ok(()) if chosen == Some(order) => "taken".to_string(),
            Ok(()) => "a row before it is taken".to_string(),
            Err(why) => format!("not taken, {why}"),
        };
        format!("`block_pingpong` takes `{order}` for {when}: {outcome}")
    });
    lines.collect()
}

impl Facts {
    pub fn of(question: Question<'_>) -> Facts {
        let Question {
            func,
            kernel,
            machine,
            pieces,
            l,
            ..
        } = question;
        let products = Products::of(func, pieces);
        let list = &pieces.list;
        let mut brought: Vec<usize> = Vec::new();
        let mut stored: Vec<usize> = Vec::new();
        let mut reads = 0;
        for product in 0..products.all.len() {
            for operand in [0, 1] {
                let tiles = products.tiles(product, operand);
                if tiles.is_empty() {
                    continue;
                }
                reads += 1;
                let (copies, stores) = products.copies(&tiles);
                brought.extend(copies);
                stored.extend(stores);
            }
        }
        for all in [&mut brought, &mut stored] {
            all.sort_unstable();
            all.dedup();
        }
        let known =
            |at: &usize| brought.contains(at) || stored.contains(at) || products.all.contains(at);
        let global = |at: &usize| {
            let effects = Effects::of(func, &list[*at].stmt);
            let mut touched = effects.reads.iter().chain(&effects.writes);
            touched.any(|b| func.buffers[*b].scope == Scope::Global)
        };
        let other = (0..list.len()).find(|at| !known(at) && global(at));
        let index = l.axes[0].var;
        let mut varying_mask = false;
        for at in &brought {
            walk_stmts(std::slice::from_ref(&list[*at].stmt), &mut |stmt| {
                let mask = match &stmt.kind {
                    StmtKind::Micro(m) => m.pred.as_ref(),
                    StmtKind::If { cond, .. } => Some(cond),
                    _ => None,
                };
                if let Some(mask) = mask {
                    mask.walk(&mut |node| varying_mask |= node.as_var() == Some(index));
                }
            });
        }
        let multiply = products.steps(0).and_then(|steps| {
            let op = steps.ops.iter().find(|op| op.kind == MicroKind::Mma)?;
            Some((steps.count, op))
        });
        let inst = multiply.and_then(|(_, op)| match op.inst {
            Inst::Mma(inst) => Some(inst),
            _ => None,
        });
        let tile = multiply.zip(inst).map(|((steps, op), inst)| {
            let sums = &func.buffers[op.dest.region.buffer];
            let shape = match &sums.layout {
                Some(LayoutAttr::Held(held)) => held.shape().to_vec(),
                _ => Vec::new(),
            };
            let extent = |at: usize| shape.get(at).map_or(0, |e| e.unsigned_abs());
            Tile {
                m: extent(0),
                n: extent(1),
                k: u64::from(steps) * u64::from(inst.k),
                bits: inst.a.bits().max(inst.b.bits()).into(),
            }
        });
        let in_flight = |at: &usize| matches!(list[*at].completion, Completion::Counted { .. });
        let stages = plan_of(l).map_or(0, |spec| spec.stages);
        let distances = list.iter().map(|p| p.distance).max().unwrap_or(0);
        Facts {
            able: machine.wave_priority
                && machine.barrier.bare
                && inst.is_none_or(|inst| inst.family == MmaFamily::Mfma),
            copies_directly: machine.wide_copy().is_some(),
            direct: pieces.direct && stored.is_empty() && brought.iter().all(in_flight),
            stages: stages.min(distances + 1),
            waves: kernel.num_threads() / machine.warp_size,
            products: products.all.len(),
            copies: brought.len(),
            stores: stored.len(),
            reads,
            other: other.map(|at| label(func, &list[at].stmt)),
            varying_mask,
            tile: tile.unwrap_or_default(),
            inst,
        }
    }
}
