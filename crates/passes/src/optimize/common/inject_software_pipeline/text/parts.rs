//! Pieces called by their part in the loop's products, in orders for all loops of a kind.
//!
//! `bring A` is the copy of the tile that the product's first operand is read from, as far ahead as it
//! was planned, and `store A` its second half where it goes through registers; `read A` the reads of the
//! operand, `multiply C` the matrix instructions, `product C` both, step by step as the product stands,
//! `before C` and `after C` the other statements between this product and its neighbours. `B` is the second operand, `(2)` the second product. With
//! `split k 4`, `[k0]` is the first of four slices along K, of one step or several.

use tilewright_ir::{Buffer, Func, MicroKind};

use super::print::entry_text;
use super::{EntryText, OrderText};
use crate::optimize::common::effects::Effects;
use crate::optimize::common::inject_software_pipeline::arrangement::{Entry, Part};
use crate::optimize::common::inject_software_pipeline::pieces::Pieces;
use crate::optimize::common::inject_software_pipeline::schedules::Why;
use crate::optimize::common::inject_software_pipeline::split::operands;
use crate::optimize::common::inject_software_pipeline::steps::{Steps, Within};

/// What a part of the products does.
#[derive(Clone, Copy, PartialEq, Eq)]
enum Role {
    Bring,
    Store,
    Read,
    Multiply,
    Product,
    Before,
    After,
}

const ROLES: [(&str, Role); 7] = [
    ("bring", Role::Bring),
    ("store", Role::Store),
    ("read", Role::Read),
    ("multiply", Role::Multiply),
    ("product", Role::Product),
    ("before", Role::Before),
    ("after", Role::After),
];

/// The products of a loop, and what is for them.
pub(in super::super) struct Products<'a> {
    func: &'a Func,
    pieces: &'a Pieces,
    /// The pieces that multiply, as the body has them.
    pub all: Vec<usize>,
}

impl<'a> Products<'a> {
    pub fn of(func: &'a Func, pieces: &'a Pieces) -> Products<'a> {
        let multiplies = |at: &usize| steps(pieces, *at).is_some();
        let mut all: Vec<usize> = (0..pieces.list.len()).filter(multiplies).collect();
        all.sort_unstable_by_key(|at| (pieces.list[*at].program, *at));
        Products { func, pieces, all }
    }

    pub fn steps(&self, product: usize) -> Option<&'a Steps> {
        steps(self.pieces, *self.all.get(product)?)
    }

    /// The registers of an operand of a product, and of its scales.
    fn registers(&self, product: usize, operand: usize) -> Vec<Buffer> {
        let mut ops = self.steps(product).into_iter().flat_map(|s| &s.ops);
        let Some(multiply) = ops.find(|op| op.kind == MicroKind::Mma) else {
            return Vec::new();
        };
        let known = operands(multiply).and_then(|of| of.get(operand).cloned());
        let sources = known.unwrap_or_else(|| vec![operand]);
        let held = |at: &usize| Some(multiply.sources.get(*at)?.region.buffer);
        sources.iter().filter_map(held).collect()
    }

    /// The tiles that an operand and its scales are read from.
    pub fn tiles(&self, product: usize, operand: usize) -> Vec<Buffer> {
        let registers = self.registers(product, operand);
        let ops = self.steps(product).into_iter().flat_map(|s| &s.ops);
        let reads = ops
            .filter(|op| op.kind == MicroKind::S2r && registers.contains(&op.dest.region.buffer));
        let mut tiles: Vec<Buffer> = Vec::new();
        for read in reads {
            let tile = read
                .sources
                .first()
                .map(|s| self.func.root(s.region.buffer));
            tiles.extend(tile.filter(|tile| !tiles.contains(tile)));
        }
        tiles
    }

    /// What brings tiles: copies that are done by themselves or loads to registers, and stores from
    /// those.
    pub fn copies(&self, tiles: &[Buffer]) -> (Vec<usize>, Vec<usize>) {
        let list = &self.pieces.list;
        let writes = |at: &usize| {
            let effects = Effects::of(self.func, &list[*at].stmt);
            effects.writes.iter().any(|buffer| tiles.contains(buffer))
        };
        let ahead = (0..list.len()).filter(|at| list[*at].distance > 0);
        let (stores, mut brought): (Vec<usize>, Vec<usize>) =
            ahead.filter(writes).partition(|at| list[*at].late);
        for store in &stores {
            let load = |at: &usize| list[*at].program + 1 == list[*store].program;
            brought.extend((0..list.len()).find(load));
        }
        (brought, stores)
    }

    /// The statements that neither copy ahead nor multiply, between a product and the one before it,
    /// or the one behind it.
    pub fn others(&self, product: usize, behind: bool) -> Vec<usize> {
        let list = &self.pieces.list;
        let program = |product: usize| self.all.get(product).map(|at| list[*at].program);
        let (from, to) = match behind {
            true => (program(product), program(product + 1)),
            false => (product.checked_sub(1).and_then(program), program(product)),
        };
        let between = |at: &usize| {
            let own = list[*at].program;
            from.is_none_or(|from| own > from) && to.is_none_or(|to| own < to)
        };
        let other =
            |at: &usize| list[*at].distance == 0 && !list[*at].late && !self.all.contains(at);
        let mut found: Vec<usize> = (0..list.len()).filter(between).filter(other).collect();
        found.sort_unstable_by_key(|at| (list[*at].program, *at));
        found
    }

    /// The places of an entry that is called by its part, if it is.
    pub fn entries(&self, entry: &EntryText, order: &OrderText) -> Option<Result<Vec<Entry>, Why>> {
        let (op, what) = entry.label.split_once(' ')?;
        let (_, role) = ROLES.iter().find(|(name, _)| *name == op)?;
        Some(self.placed(*role, what, entry, order))
    }

    fn placed(
        &self,
        role: Role,
        what: &str,
        entry: &EntryText,
        order: &OrderText,
    ) -> Result<Vec<Entry>, Why> {
        let text = entry_text(entry);
        let operand = match (role, what) {
            (Role::Bring | Role::Store | Role::Read, "A") => 0,
            (Role::Bring | Role::Store | Role::Read, "B") => 1,
            (Role::Multiply | Role::Product | Role::Before | Role::After, "C") => 2,
            _ => {
                let why = "a product has operands `A` and `B` and the result `C`";
                return Err(format!("`{text}` means nothing: {why}").into());
            }
        };
        let count = self.all.len();
        let product = (entry.ordinal as usize).checked_sub(1);
        let Some(product) = product.filter(|nth| *nth < count) else {
            let products = if count == 1 { "product" } else { "products" };
            return Err(format!("it has {count} {products}, and no `{text}`").into());
        };
        let whole = |pieces: Vec<usize>, ahead: &dyn Fn(usize) -> u32| {
            let entries = pieces.into_iter().map(|at| Entry::whole(at, ahead(at)));
            Ok(entries.collect())
        };
        let planned = |at: usize| match entry.ahead {
            0 => self.pieces.list[at].distance,
            ahead => ahead,
        };
        let copies = || self.copies(&self.tiles(product, operand));
        match role {
            Role::Bring => {
                let entries = copies().0.into_iter().map(|at| Entry {
                    part: entry.p.map(|part| Part {
                        step: 0,
                        op: part as usize,
                    }),
                    ..Entry::whole(at, planned(at))
                });
                match entry.p.is_some_and(|part| part >= order.p) {
                    true => {
                        Err(format!("its copies have {} parts, and no `{text}`", order.p).into())
                    }
                    false => Ok(entries.collect()),
                }
            }
            Role::Store => whole(copies().1, &planned),
            Role::Product => whole(vec![self.all[product]], &|_| entry.ahead),
            Role::Before => whole(self.others(product, false), &|_| entry.ahead),
            Role::After => whole(self.others(product, true), &|_| entry.ahead),
            Role::Read | Role::Multiply => self.parts(product, operand, entry, order),
        }
    }

    /// The reads of an operand, or the products, of the steps that an entry names.
    fn parts(
        &self,
        product: usize,
        operand: usize,
        entry: &EntryText,
        order: &OrderText,
    ) -> Result<Vec<Entry>, Why> {
        let Some(steps) = self.steps(product) else {
            return Ok(Vec::new());
        };
        let registers = self.registers(product, operand);
        let within = |own: Within| {
            let fits = |own: Option<u32>, asked: Option<u32>| asked.is_none() || own == asked;
            fits(own.m, entry.m) && fits(own.n, entry.n)
        };
        let is_it = |op: &usize| {
            let micro = &steps.ops[*op];
            let kind = match operand {
                2 => micro.kind == MicroKind::Mma,
                _ => micro.kind != MicroKind::Mma && registers.contains(&micro.dest.region.buffer),
            };
            kind && within(steps.within[*op])
        };
        let mut entries = Vec::new();
        for step in slice(steps.count, entry.k, order.k)? {
            for op in (0..steps.ops.len()).filter(is_it) {
                entries.push(Entry {
                    piece: self.all[product],
                    part: Some(Part { step, op }),
                    ahead: entry.ahead,
                });
            }
        }
        match entries.is_empty() && operand == 2 {
            true => Err(format!("it has no `{}`", entry_text(entry)).into()),
            false => Ok(entries),
        }
    }
}

/// The steps along K of a slice, or all.
fn slice(steps: u32, at: Option<u32>, slices: Option<u32>) -> Result<std::ops::Range<u32>, Why> {
    let slices = slices.unwrap_or(1);
    if !steps.is_multiple_of(slices) {
        let why = format!("the product has {steps} steps along K, which are no {slices} slices");
        return Err(why.into());
    }
    let each = steps / slices;
    match at {
        None => Ok(0..steps),
        Some(at) if at < slices => Ok(at * each..(at + 1) * each),
        Some(at) => Err(format!("it has {slices} slices along K, and no `k{at}`").into()),
    }
}

fn steps(pieces: &Pieces, at: usize) -> Option<&Steps> {
    let steps = pieces.list[at].steps.as_deref()?;
    (steps.of_kind(MicroKind::Mma) > 0).then_some(steps)
}
