//! From a seed to a valid program.
//!
//! Statements are made by templates ([`tiles`], [`flow`], [`products`], [`threads`], [`output`])
//! that keep three promises: a buffer is used only where it is written; every value stored in a
//! buffer lies in the range that the buffer was made with, so that floats stay exact
//! ([`values`]); and what blocks, points and threads write they do not share. The plain evaluator
//! has the last word: a program that it refuses is thrown away and another one is drawn.

mod flow;
mod output;
mod products;
mod threads;
mod tiles;
mod values;

use crate::plain;
use crate::program::*;
use crate::rng::Rng;
use crate::types::Type;

/// The work of a program, in steps of the plain evaluator.
const STEPS: u64 = 1_200_000;
/// The same of one that is products by warp groups.
const WIDE_STEPS: u64 = 12_000_000;

/// The program of a seed.
pub fn generate(seed: u64) -> Program {
    generate_counting(seed).0
}

/// The program of a seed, and how many were thrown away before it.
pub fn generate_counting(seed: u64) -> (Program, u32) {
    for attempt in 0..200 {
        let mut rng = Rng::new(seed.wrapping_mul(0x1_0001).wrapping_add(attempt << 40));
        let fuel = rng.int(2, 9) as i32;
        let drawn = Gen::new(rng, fuel);
        let steps = if drawn.wide { WIDE_STEPS } else { STEPS };
        let mut program = drawn.program();
        program.seed = seed;
        if plain::run_within(&program, steps).is_ok() {
            return (program, attempt as u32);
        }
    }
    let mut gen_ = Gen::new(Rng::new(seed), 0);
    gen_.p.seed = seed;
    (gen_.p, 200)
}

/// What the programs that are thrown away were refused for, over some seeds: a look at the
/// generator's own faults.
pub fn refusals(seeds: std::ops::Range<u64>) -> Vec<(u64, plain::Invalid)> {
    let mut list = Vec::new();
    for seed in seeds {
        let mut rng = Rng::new(seed.wrapping_mul(0x1_0001));
        let fuel = rng.int(2, 9) as i32;
        let mut program = Gen::new(rng, fuel).program();
        program.seed = seed;
        if let Err(why) = plain::run_within(&program, STEPS) {
            list.push((seed, why));
        }
    }
    list
}

/// An index that is in scope, and the values it takes.
#[derive(Clone, Copy, Debug)]
struct Index {
    var: Var,
    low: i64,
    high: i64,
}

struct Gen {
    rng: Rng,
    p: Program,
    /// Indices that are the same for all threads.
    indices: Vec<Index>,
    /// Buffers that are written wherever the next statement comes.
    ready: Vec<Buf>,
    /// Where allocations go that an inner loop hoists.
    hoisted: Vec<Stmt>,
    /// Bytes of shared memory and elements of fragments that are left.
    shared_left: i64,
    fragment_left: i64,
    next_var: usize,
    fuel: i32,
    depth: u32,
    /// How often the present place is reached by a block, at most.
    repeats: i64,
    /// Inside a warp group's own code.
    in_group: bool,
    /// Warp groups have code of their own in this program.
    grouped: bool,
    /// A program of products by warp groups and little else, for the schedules that mixed programs never
    /// meet the conditions of.
    wide: bool,
    /// What one warp group wrote, until the block has met again.
    waiting: Vec<Buf>,
}

impl Gen {
    fn new(rng: Rng, fuel: i32) -> Gen {
        let mut g = Gen {
            rng,
            p: Program::default(),
            indices: Vec::new(),
            ready: Vec::new(),
            hoisted: Vec::new(),
            // Scans need twice as much again for themselves, and one machine has 64 KiB.
            shared_left: 20 * 1024,
            fragment_left: 1 << 14,
            next_var: 0,
            fuel,
            depth: 0,
            repeats: 1,
            in_group: false,
            grouped: false,
            wide: false,
            waiting: Vec::new(),
        };
        let axes = g.rng.weighted(&[(3, 1), (1, 2)]);
        for axis in 0..axes {
            let extent = g.rng.weighted(&[(3, 1), (4, 2), (3, 3), (1, 4)]);
            let extent = if axes == 2 {
                extent.min(2 + axis)
            } else {
                extent
            };
            let dim = g.size(extent as i64);
            g.p.grid.push(dim);
            g.indices.push(Index {
                var: Var::Block(axis),
                low: 0,
                high: extent as i64 - 1,
            });
        }
        let threads = g.rng.weighted(&[
            (30, 128),
            (26, 256),
            (12, 64),
            (5, 32),
            (4, 96),
            (3, 160),
            (4, 192),
            (3, 224),
            (2, 320),
            (3, 384),
            (3, 512),
        ]);
        g.wide = g.rng.chance(12);
        let threads = match g.wide {
            true => g.rng.weighted(&[(6, 128), (4, 256), (1, 384)]),
            false => threads,
        };
        if g.wide {
            g.fuel = g.fuel.min(3);
        }
        let threads = g.size(threads);
        g.p.threads = Some(threads);
        g.grouped = !g.wide && g.p.thread_count() == 256 && g.rng.chance(50);
        g
    }

    fn program(mut self) -> Program {
        let mut body = Vec::new();
        if self.p.grid.len() == 2 && self.rng.chance(20) {
            let panel = self.rng.int(1, 3);
            let column = self.rng.chance(40);
            body.push(Stmt::UseSwizzle(panel, column));
        }
        if self.rng.chance(if self.wide { 10 } else { 90 }) {
            self.load(&mut body);
        }
        self.statements(&mut body);
        self.write_out(&mut body);
        self.p.body = body;
        self.p
    }

    fn size(&mut self, value: i64) -> Dim {
        self.p.sizes.push(Size {
            value,
            dynamic: false,
        });
        Dim(self.p.sizes.len() - 1)
    }

    /// A size of a tile: small, and often not a round number.
    fn tile_size(&mut self) -> Dim {
        let value = self.rng.weighted(&[
            (2, 1),
            (2, 2),
            (2, 3),
            (2, 5),
            (2, 7),
            (5, 8),
            (2, 12),
            (8, 16),
            (3, 17),
            (2, 20),
            (2, 24),
            (1, 31),
            (7, 32),
            (2, 33),
            (2, 40),
            (2, 48),
            (3, 64),
            (1, 100),
            (1, 128),
        ]);
        self.size(value)
    }

    fn value_of(&self, dim: Dim) -> i64 {
        self.p.size(dim)
    }

    fn buffer(&mut self, scope: Scope, ty: Type, shape: Vec<Dim>, range: (i64, i64)) -> Buf {
        self.p.buffers.push(Buffer {
            scope,
            ty,
            shape,
            range,
            view_of: None,
            start: (0, 0),
        });
        Buf(self.p.buffers.len() - 1)
    }

    fn tensor(&mut self, ty: Type, shape: Vec<Dim>, start: (i64, i64)) -> Buf {
        let buf = self.buffer(Scope::Global, ty, shape, ty.range());
        self.p.buffers[buf.0].start = start;
        // A tensor that is only read keeps to what it starts with, and reads as zero outside.
        self.p.buffers[buf.0].range = (start.0.min(0), start.1.max(0));
        buf
    }

    fn loop_var(&mut self) -> Var {
        self.next_var += 1;
        Var::Loop(self.next_var - 1)
    }

    fn data(&self, buf: Buf) -> &Buffer {
        &self.p.buffers[buf.0]
    }

    /// Where a tile may live, by what is left; bigger ones go to shared memory.
    fn allocate(
        &mut self,
        out: &mut Vec<Stmt>,
        scope: Scope,
        ty: Type,
        shape: Vec<Dim>,
        range: (i64, i64),
    ) -> Buf {
        let count: i64 = shape.iter().map(|d| self.value_of(*d)).product();
        let bytes = count * i64::from(ty.bits() / 8);
        match scope {
            Scope::Shared => self.shared_left -= bytes,
            Scope::Fragment => self.fragment_left -= count,
            _ => {}
        }
        let rank = shape.len();
        let buf = self.buffer(scope, ty, shape, range);
        // Pipelines move tiles that live outside of the loop.
        let hoist = self.depth > 0 && !self.in_group && self.rng.chance(75);
        let mut list = vec![Stmt::Alloc(buf)];
        let laid_out = if self.wide { 2 } else { 12 };
        if scope == Scope::Shared && rank == 2 && self.rng.chance(laid_out) {
            let kind = match self.rng.below(3) {
                0 => LayoutKind::Swizzled,
                1 => LayoutKind::Linear,
                _ => LayoutKind::Padded(self.rng.int(1, 8)),
            };
            list.push(Stmt::Layout(buf, kind));
        }
        match hoist {
            true => self.hoisted.extend(list),
            false => out.extend(list),
        }
        buf
    }

    fn room(&self, shape: &[Dim], ty: Type) -> (bool, bool) {
        let count: i64 = shape.iter().map(|d| self.value_of(*d)).product();
        let bytes = count * i64::from(ty.bits() / 8);
        (
            bytes <= self.shared_left,
            // A fragment may move to shared memory, and a scan of it needs twice as much again.
            bytes <= (if self.wide { 16 } else { 12 }) * 1024
                && count <= self.fragment_left
                && count <= (if self.wide { 64 } else { 24 }) * self.p.thread_count(),
        )
    }

    /// Shared memory or a fragment, where there is room.
    fn tile_scope(&mut self, shape: &[Dim], ty: Type) -> Option<Scope> {
        let wish = self.rng.chance(45);
        match self.room(shape, ty) {
            (true, true) if wish => Some(Scope::Fragment),
            (true, _) => Some(Scope::Shared),
            (false, true) => Some(Scope::Fragment),
            (false, false) => None,
        }
    }

    /// A buffer on the chip that is written here and passes a test.
    fn pick_ready(&mut self, test: impl Fn(&Buffer) -> bool) -> Option<Buf> {
        let fits = |b: &Buf| {
            let data = &self.p.buffers[b.0];
            matches!(data.scope, Scope::Shared | Scope::Fragment) && test(data)
        };
        let list: Vec<Buf> = self.ready.iter().copied().filter(fits).collect();
        match list.is_empty() {
            true => None,
            false => Some(self.rng.pick(&list)),
        }
    }

    /// A type for data.
    fn data_type(&mut self) -> Type {
        self.rng.weighted(&[
            (1, Type::Bool),
            (4, Type::I8),
            (2, Type::U8),
            (2, Type::I16),
            (9, Type::I32),
            (2, Type::I64),
            (8, Type::F16),
            (4, Type::BF16),
            (8, Type::F32),
            (2, Type::E4M3),
            (1, Type::E5M2),
        ])
    }

    /// What a tensor of this type starts with.
    fn start_range(&mut self, ty: Type) -> (i64, i64) {
        match ty {
            Type::Bool => (0, 1),
            Type::U8 => (0, self.rng.pick(&[3, 9, 255])),
            Type::I8 => self.rng.pick(&[(-3, 3), (-9, 9), (-128, 127)]),
            Type::I32 | Type::I64 => self.rng.pick(&[(-5, 5), (-100, 100), (-30000, 30000)]),
            _ => self.rng.pick(&[(-2, 2), (-4, 4), (-7, 7)]),
        }
    }

    /// The range that a new buffer keeps: all of an integer type, or a part of what is exact.
    fn buffer_range(&mut self, ty: Type, holds: (i64, i64)) -> (i64, i64) {
        let (low, high) = ty.range();
        if !ty.is_float() {
            return match self.rng.chance(50) && ty != Type::Bool && ty != Type::I64 {
                true => (low, high),
                false => holds,
            };
        }
        let reach = self.rng.pick(&[8, 60, 250]);
        (holds.0.min((-reach).max(low)), holds.1.max(reach.min(high)))
    }
}

fn identity(axes: &[(Var, Dim)]) -> Vec<Expr> {
    axes.iter().map(|(v, _)| Expr::Var(*v)).collect()
}

fn whole(p: &Program, buf: Buf) -> Tile {
    let shape = &p.buffers[buf.0].shape;
    Tile {
        buf,
        start: shape.iter().map(|_| Expr::int(0)).collect(),
        extent: shape.iter().map(|d| Some(*d)).collect(),
        style: Style::Whole,
    }
}
