//! Which memory each unit touches, found once for each state of the variables that it depends on.

use std::borrow::Cow;
use std::rc::Rc;

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_arith::{Analyzer, Proof};
use tilewright_ir::touched::{Atomic, Mode, Part, touched};
use tilewright_ir::visit::stmt_exprs;
use tilewright_ir::{
    Access, BinOp, Block, Buffer, DeviceOp, Expr, ExprKind, Inst, Loop, MicroKind, MicroOp, Stmt,
    StmtKind, TmaBox, Var,
};

use super::free::{Free, free_vars, reads_under_condition};
use super::places::{Lanes, Places, Shape};
use super::rhythm::{Leaps, Rhythm, deciding};
use super::scan::{Key, Scan, key};
use super::touch::{Arm, Iteration, RegisterTouch, Touch, Touches, Ways};
use super::value::{Bound, Env, evaluate};
use crate::access::in_a_row;

/// What units touch, each with the same variables once.
#[derive(Debug)]
pub struct Units<'f> {
    pub(super) scan: &'f Scan<'f>,
    pub places: Places<'f>,
    known: FxHashMap<Known, Rc<Touches>>,
    /// What the present run supposes.
    supposed: FxHashMap<Expr, i64>,
    /// The variables in it, and a number of its own for what depends on them.
    pub(super) doubtful: FxHashSet<Var>,
    supposition: u32,
    /// By unit, the variables and scalars from outside that its places depend on; `None` for one
    /// that touches nothing.
    free: FxHashMap<Key, Option<Rc<Free>>>,
    nothing: Rc<Touches>,
    /// By loop, how its body depends on its index, and the conditions in it.
    rhythms: FxHashMap<Key, (Rhythm, Rc<[Expr]>)>,
    /// The iteration that statements here belong to.
    pub iteration: Option<Iteration>,
    /// By the address of what says so, the loop that it is one of.
    iterates: FxHashMap<usize, Option<Var>>,
    /// The conditions around that threads decide for themselves.
    pub around: Vec<Expr>,
    /// By the address of what a branch touches, the same taken apart.
    ways: FxHashMap<usize, Ways>,
    /// What is known of the grid and of the sizes, and what follows for conditions.
    facts: Analyzer,
    /// What is left out of loops.
    pub leaps: Leaps,
    decided: FxHashMap<Expr, Option<bool>>,
}

/// A unit, the supposition and iteration it depends on, and what its variables are.
type Known = (Key, u32, Option<Iteration>, Vec<Option<Bound>>);

/// Loops and conditions of the unit on the way to an access.
#[derive(Clone, Default, Debug)]
pub(super) struct Way {
    pub axes: Vec<(Var, Vec<i64>)>,
    pub guards: Vec<Expr>,
    /// Whether a loop of the unit is around.
    pub repeats: bool,
    pub arms: Vec<Arm>,
}

impl<'f> Units<'f> {
    pub fn new(scan: &'f Scan<'f>) -> Units<'f> {
        let mut facts = Analyzer::for_func(scan.func);
        facts.enter_kernel(scan.func, scan.kernel);
        Units {
            scan,
            places: Places::new(scan),
            known: FxHashMap::default(),
            supposed: FxHashMap::default(),
            doubtful: FxHashSet::default(),
            supposition: 0,
            free: FxHashMap::default(),
            nothing: Rc::default(),
            rhythms: FxHashMap::default(),
            iteration: None,
            iterates: FxHashMap::default(),
            around: Vec::new(),
            ways: FxHashMap::default(),
            facts,
            leaps: Leaps::default(),
            decided: FxHashMap::default(),
        }
    }

    /// The condition where it is known: from the variables as they are, or because it is the same
    /// in every block of the grid.
    pub fn decides(&mut self, cond: &Expr, env: &Env) -> Option<bool> {
        let folded = env.fold(cond);
        if let Some(value) = folded.as_int() {
            return Some(value != 0);
        }
        if let Some(known) = self.decided.get(&folded) {
            return *known;
        }
        let proof = self.facts.prove(&folded);
        let known = match proof {
            Proof::Yes => Some(true),
            Proof::No => Some(false),
            Proof::Unknown => None,
        };
        self.decided.insert(folded, known);
        known
    }

    /// What the ways of a branch touch, of what it touches as a whole.
    pub fn ways(&mut self, stmt: &Stmt, touches: &Rc<Touches>) -> Ways {
        let ways = self.ways.entry(Rc::as_ptr(touches) as usize);
        let apart = || {
            let on = |way: Option<bool>| {
                let shared = touches.shared.iter();
                let shared = shared.filter(|t| t.way_of(key(stmt)) == way);
                shared.cloned().collect()
            };
            let arm = |way| {
                Rc::new(Touches {
                    shared: on(Some(way)),
                    registers: Vec::new(),
                })
            };
            Ways {
                always: Rc::new(Touches {
                    shared: on(None),
                    registers: touches.registers.clone(),
                }),
                arms: [arm(true), arm(false)],
                _whole: touches.clone(),
            }
        };
        ways.or_insert_with(apart).clone()
    }

    /// Whether all threads take the branch the same way, as often as the unit comes to it.
    fn is_one_way(&self, cond: &Expr, way: &Way) -> bool {
        let mut lasting = !self.scan.varies(cond);
        if way.repeats {
            lasting &= self.scan.reads_constants(cond);
            let cond = self.scan.expand(cond);
            cond.walk(&mut |node| {
                lasting &= node.as_var().is_none_or(|v| self.scan.is_fixed(v));
            });
        }
        lasting
    }

    /// How the body of a loop depends on its index, and the conditions in it.
    pub fn rhythm(&mut self, stmt: &Stmt, l: &Loop, var: Var) -> (Rhythm, Rc<[Expr]>) {
        let scan = self.scan;
        let known = self.rhythms.entry(key(stmt));
        let anew = || (Rhythm::of(scan, l, var), deciding(scan, l).into());
        known.or_insert_with(anew).clone()
    }

    /// A run begins that supposes these values.
    pub fn suppose(&mut self, supposed: &FxHashMap<Expr, i64>) {
        if self.supposed == *supposed {
            return;
        }
        self.supposed = supposed.clone();
        self.supposition += 1;
        self.doubtful.clear();
        for e in supposed.keys() {
            e.walk(&mut |node| self.doubtful.extend(node.as_var()));
        }
    }

    /// What a unit touches, with the variables as they are.
    pub fn unit(&mut self, stmt: &'f Stmt, env: &Env) -> Rc<Touches> {
        let scan = self.scan;
        let free = self.free.entry(key(stmt)).or_insert_with(|| {
            let touches = scan.touches_memory(stmt);
            touches.then(|| Rc::new(free_vars(scan, stmt)))
        });
        let Some(free) = free.clone() else {
            return self.nothing.clone();
        };
        let vars = free.vars.iter().map(|v| env.vars.get(v).cloned());
        let scalars = free.scalars.iter();
        let scalars = scalars.map(|b| env.scalars.get(b).map(|v| Bound::Known(*v)));
        let around = self.around.iter().map(|g| Some(Bound::Open(g.clone())));
        let values: Vec<Option<Bound>> = vars.chain(scalars).chain(around).collect();
        let doubtful = free.vars.iter().any(|v| self.doubtful.contains(v));
        let supposition = if doubtful { self.supposition } else { 0 };
        let iteration = self.iteration.filter(|_| free.versions);
        let id = (key(stmt), supposition, iteration, values);
        if let Some(known) = self.known.get(&id) {
            return known.clone();
        }
        let mut found = Touches::default();
        let way = self.way_here();
        match &stmt.kind {
            StmtKind::Micro(m) => {
                // It binds nothing, so the variables need no copy.
                let id = key(stmt);
                stmt_exprs(stmt, &mut |e| self.loads(e, id, &way, env, &mut found));
                self.micro_op(m, id, &way, env, &mut found);
            }
            _ => self.stmt(stmt, &way, &mut env.clone(), &mut found),
        }
        let found = Rc::new(found);
        self.known.insert(id, found.clone());
        found
    }

    /// What the expressions of a statement itself read, without the blocks in it.
    pub fn header(&mut self, stmt: &'f Stmt, env: &Env) -> Touches {
        let mut found = Touches::default();
        let way = self.way_here();
        stmt_exprs(stmt, &mut |e| {
            self.loads(e, key(stmt), &way, env, &mut found)
        });
        found
    }

    /// The way to a unit: the conditions around it.
    fn way_here(&self) -> Way {
        Way {
            guards: self.around.clone(),
            ..Way::default()
        }
    }

    /// Statements from here on belong to this iteration of a pipelined loop.
    pub fn begin_iteration(&mut self, iteration: Option<&Expr>, env: &Env) {
        self.iteration = iteration.and_then(|e| {
            let number = env.value(e)?;
            let scan = self.scan;
            let known = self.iterates.entry(std::ptr::from_ref(e) as usize);
            let from = *known.or_insert_with(|| {
                let mut from = None;
                let expanded = scan.expand(e);
                expanded.walk(&mut |node| from = from.or(node.as_var()));
                from
            });
            Some(Iteration { number, from })
        });
    }

    /// What a micro-op touches.
    pub fn micro(&mut self, stmt: &'f Stmt, env: &Env) -> Rc<Touches> {
        self.unit(stmt, env)
    }

    fn block(&mut self, block: &'f Block, way: &Way, env: &mut Env, found: &mut Touches) {
        let around = self.iteration;
        for stmt in block {
            self.stmt(stmt, way, env, found);
        }
        self.iteration = around;
    }

    fn stmt(&mut self, stmt: &'f Stmt, way: &Way, env: &mut Env, found: &mut Touches) {
        let id = key(stmt);
        stmt_exprs(stmt, &mut |e| self.loads(e, id, way, env, found));
        match &stmt.kind {
            StmtKind::Let { var, value } => {
                if self.scan.relevant.contains(var) {
                    let value = env.fold(value);
                    env.vars.insert(*var, bound(value));
                }
            }
            StmtKind::Store {
                buffer, indices, ..
            } => self.push(*buffer, indices, 1, (true, false), id, way, env, found),
            StmtKind::For(l) => {
                let mut way = way.clone();
                way.repeats = true;
                for axis in &l.axes {
                    env.vars.remove(&axis.var);
                    if let Some(values) = axis_values(axis, env) {
                        way.axes.push((axis.var, values));
                    }
                }
                self.block(&l.body, &way, env, found);
            }
            StmtKind::If {
                cond,
                then,
                otherwise,
            } => {
                let known = self.decides(cond, env);
                let cond = env.fold(cond);
                let one_way = self.is_one_way(&cond, way);
                for (holds, branch) in [(true, then), (false, otherwise)] {
                    if known.is_some_and(|k| k != holds) {
                        continue;
                    }
                    let mut inner = way.clone();
                    if one_way {
                        inner.arms.push(Arm { branch: id, holds });
                    }
                    inner
                        .guards
                        .push(if holds { cond.clone() } else { !cond.clone() });
                    self.block(branch, &inner, env, found);
                }
            }
            StmtKind::While { body, .. } => {
                let mut way = way.clone();
                way.repeats = true;
                self.block(body, &way, env, found);
            }
            StmtKind::WarpGroup { groups, body } => {
                let mut inner = way.clone();
                inner.guards.push(self.scan.is_of(groups));
                self.block(body, &inner, env, found);
            }
            StmtKind::Micro(m) => self.micro_op(m, id, way, env, found),
            StmtKind::Thread(_) => self.thread_op(stmt, way, env, found),
            StmtKind::Device(DeviceOp::Iteration(iteration)) => {
                self.begin_iteration(iteration.as_ref(), env);
            }
            StmtKind::Alloc(_)
            | StmtKind::Break
            | StmtKind::Continue
            | StmtKind::Assert { .. }
            | StmtKind::Assume(_)
            | StmtKind::Tile(_)
            | StmtKind::Device(_) => {}
        }
    }

    /// What an expression reads. Where only one side is evaluated, the other reads nothing.
    fn loads(&mut self, e: &Expr, id: Key, way: &Way, env: &Env, found: &mut Touches) {
        if !reads_under_condition(e) {
            e.walk_loads(&mut |buffer, indices| {
                self.push(buffer, indices, 1, (false, false), id, way, env, found);
            });
            return;
        }
        let mut under = |side: &Expr, cond: Expr| {
            let cond = env.fold(&cond);
            if env.value(&cond) != Some(0) {
                let mut inner = way.clone();
                inner.guards.push(cond);
                self.loads(side, id, &inner, env, found);
            }
        };
        match e.kind() {
            ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => {
                under(then, cond.clone());
                under(otherwise, !cond.clone());
                self.loads(cond, id, way, env, found);
            }
            ExprKind::Binary(BinOp::LogicalAnd, a, b) => {
                under(b, a.clone());
                self.loads(a, id, way, env, found);
            }
            ExprKind::Binary(BinOp::LogicalOr, a, b) => {
                under(b, !a.clone());
                self.loads(a, id, way, env, found);
            }
            kind => {
                if let ExprKind::Load { buffer, indices } = kind {
                    self.push(*buffer, indices, 1, (false, false), id, way, env, found);
                }
                kind.each_operand(|operand| self.loads(operand, id, way, env, found));
            }
        }
    }

    fn micro_op(&mut self, m: &MicroOp, id: Key, way: &Way, env: &Env, found: &mut Touches) {
        let mut way = way.clone();
        for &(var, extent) in &m.axes {
            way.axes.push((var, (0..i64::from(extent)).collect()));
        }
        // Nothing is read where the predicate is false; what is written instead is written anyway.
        let mut inside = way.clone();
        if let Some(pred) = &m.pred {
            inside.guards.push(env.fold(pred));
        }
        if m.otherwise.is_none() {
            way = inside.clone();
        }
        let (width, lanes) = match m.inst {
            Inst::LdMatrix { tiles, .. } | Inst::StMatrix { tiles, .. } => {
                (8, Lanes::Warp(8 * u32::from(tiles)))
            }
            Inst::DsReadTr | Inst::BufferLoadLds => {
                (i64::from(m.width), Lanes::Warp(self.scan.warp))
            }
            Inst::Load | Inst::Store | Inst::CpAsync => (i64::from(m.width), Lanes::Own),
            // Boxes as wide as the tile: their elements follow each other.
            Inst::Tma(tile) if self.is_of_rows(m, &tile) => (tile.elements().into(), Lanes::Own),
            Inst::Tma(tile) if self.is_row_by_row(m, &tile) => (row_of(&tile), Lanes::Own),
            // Whole regions: the instruction's shape says what is read.
            Inst::Mma(_) | Inst::GroupMma { .. } | Inst::Tma(_) => (0, Lanes::Warp(self.scan.warp)),
        };
        let accesses = m.sources.iter().map(|a| (a, false));
        let accesses: Vec<(Cow<'_, Access>, bool)> = accesses
            .chain([(&m.dest, true)])
            .flat_map(|(access, write)| {
                let rows = self.rows(m, access).into_iter();
                rows.map(move |row| (row, write))
            })
            .collect();
        for (access, write) in &accesses {
            let (access, write) = (&**access, *write);
            let way = if write { &way } else { &inside };
            let buffer = access.region.buffer;
            let slot = access.slot.as_ref().and_then(|s| env.value(s));
            let root = self.scan.root(buffer);
            if self.scan.loaded.contains(&root) {
                let own = match m.inst {
                    Inst::Load | Inst::Store => {
                        let slots = (width - 1) * i64::from(m.apart) + 1;
                        self.own_range(access, &way.axes, slots, env)
                    }
                    // Which registers of the region an instruction takes is its own affair.
                    _ => None,
                };
                let range = own.or_else(|| self.region_range(&access.region, env));
                found.registers.push(RegisterTouch {
                    stmt: id,
                    root,
                    slot,
                    range,
                    write,
                });
                continue;
            }
            if !self.scan.is_memory(root) {
                continue;
            }
            let width = match m.inst {
                Inst::Tma(tile) if !self.scan.is_shared(root) => row_of(&tile),
                _ => width,
            };
            let set = if width == 0 {
                // All of the rectangle, whichever part is this group's.
                let whose = match m.inst {
                    // One thread has it copied, and any may be this one.
                    Inst::Tma(_) => Lanes::Own,
                    _ => Lanes::Warp(1),
                };
                let shape = match in_a_row(self.scan.func, access) {
                    Some((first, count)) => self.shape(buffer, &first, count, whose, way, env),
                    None => Shape::Anywhere(root),
                };
                self.places.intern(shape)
            } else if let Some((at, way)) = self.along_rows(m, access, way) {
                let shape = self.shape(buffer, &at, width, lanes, &way, env);
                self.places.intern(shape)
            } else {
                let shape = self.shape(buffer, &access.at, width, lanes, way, env);
                self.places.intern(shape)
            };
            found.shared.push(Touch {
                stmt: id,
                root,
                tensor: self.scan.is_exchanged(root),
                slot,
                write,
                atomic: false,
                set,
                iteration: self.iteration,
                arms: way.arms.as_slice().into(),
            });
        }
    }

    /// What an instruction accesses, by parts in which elements follow each other: a box lies in a
    /// tensor row by row.
    fn rows<'m>(&self, m: &MicroOp, access: &'m Access) -> Vec<Cow<'m, Access>> {
        let root = self.scan.root(access.region.buffer);
        let Inst::Tma(tile) = m.inst else {
            return vec![Cow::Borrowed(access)];
        };
        if self.scan.is_shared(root) || !self.scan.is_memory(root) {
            return vec![Cow::Borrowed(access)];
        }
        let rows = &tile.extents()[..tile.extents().len() - 1];
        let count = rows.iter().map(|e| i64::from(*e)).product();
        let mut list = Vec::new();
        for row in 0..count {
            let mut at = access.at.clone();
            let mut left = row;
            for (index, extent) in at.iter_mut().zip(rows).rev() {
                let by = left % i64::from(*extent);
                left /= i64::from(*extent);
                *index = index.clone() + Expr::int(by.into(), index.dtype());
            }
            list.push(Cow::Owned(Access {
                at,
                ..access.clone()
            }));
        }
        list
    }

    /// Where a box begins in a tile that is wider, with one more axis along its rows.
    fn along_rows(&self, m: &MicroOp, access: &Access, way: &Way) -> Option<(Vec<Expr>, Way)> {
        let Inst::Tma(tile) = m.inst else {
            return None;
        };
        let in_tile = self.scan.is_shared(access.region.buffer);
        if !in_tile || self.is_of_rows(m, &tile) || !self.is_row_by_row(m, &tile) {
            return None;
        }
        // No kernel has so many variables.
        let row = Var::from_u32(u32::MAX - 1);
        let mut at = access.at.clone();
        let index = at.iter_mut().nth_back(1)?;
        *index = index.clone() + Expr::var(row, index.dtype());
        let mut way = way.clone();
        let rows = i64::from(tile.elements()) / row_of(&tile);
        way.axes.push((row, (0..rows).collect()));
        Some((at, way))
    }

    /// Whether boxes of a bulk load that a thread has loaded lie over each other in shared memory.
    pub fn boxes_meet(&self, m: &MicroOp, tile: &TmaBox, env: &Env) -> bool {
        let Some(extents) = tile.in_shared(m.dest.at.len()) else {
            return false;
        };
        let at: Vec<Expr> = m.dest.at.iter().map(|e| env.fold(e)).collect();
        let place = |point: u32| -> Option<Vec<i64>> {
            let mut left = point;
            let mut axes: Vec<(Var, i64)> = Vec::new();
            for &(var, extent) in m.axes.iter().rev() {
                axes.push((var, (left % extent).into()));
                left /= extent;
            }
            let value = |v: Var| axes.iter().find(|(a, _)| *a == v).map(|(_, n)| *n);
            at.iter().map(|e| evaluate(e, &value)).collect()
        };
        let places: Vec<Vec<i64>> = (0..m.count()).filter_map(place).collect();
        let apart = |a: &[i64], b: &[i64]| {
            let mut dims = a.iter().zip(b).zip(&extents);
            dims.any(|((a, b), extent)| (a - b).abs() >= i64::from(*extent))
        };
        let mut pairs = (0..places.len()).flat_map(|i| (0..i).map(move |j| (i, j)));
        pairs.any(|(i, j)| !apart(&places[i], &places[j]))
    }

    /// Whether what a bulk copy moves of a tile is looked at row by row: a part of a tile, or a store of
    /// few rows. Boxes of many rows stand for all of the tile, and so do those of more than two
    /// dimensions.
    fn is_row_by_row(&self, m: &MicroOp, tile: &TmaBox) -> bool {
        const FEW: i64 = 32;
        let rows = i64::from(tile.elements()) / row_of(tile);
        let deep = tile.extents().iter().filter(|e| **e > 1).count() > 2;
        let few = m.kind == MicroKind::TmaStore && rows <= FEW;
        !deep && (few || self.is_of_a_part(m))
    }

    /// Whether a bulk copy is of columns of a tile, not of all of them.
    fn is_of_a_part(&self, m: &MicroOp) -> bool {
        let region = &in_shared(m).region;
        let shape = &self.scan.func.buffers[region.buffer].shape;
        let ends = region.dims.last().zip(shape.last());
        ends.is_some_and(|(dim, extent)| dim.extent.as_int() != extent.as_int())
    }

    /// Whether the boxes of a bulk copy are whole rows of the buffer in shared memory.
    fn is_of_rows(&self, m: &MicroOp, tile: &TmaBox) -> bool {
        let shared = in_shared(m);
        let shape = &self.scan.func.buffers[shared.region.buffer].shape;
        let Some(extents) = tile.in_shared(shape.len()) else {
            return false;
        };
        // In front of the dimension that the box has a part of there is one index.
        let part = extents.iter().position(|e| *e > 1).unwrap_or(extents.len());
        let whole = |at: usize| shape[at].is_int(i128::from(extents[at]));
        (part + 1..extents.len()).all(whole)
    }

    /// What an operation of a thread touches. Arrival barriers order themselves.
    fn thread_op(&mut self, stmt: &Stmt, way: &Way, env: &Env, found: &mut Touches) {
        let id = key(stmt);
        touched(stmt, &mut |access| {
            let (at, width): (&[Expr], u32) = match access.part {
                Part::Elements(at, count) => (at, count),
                Part::Anywhere => (&[], 1),
                Part::Region(_) | Part::Instruction(_) | Part::Whole => return,
            };
            let (buffer, width) = (access.buffer, i64::from(width));
            let atomic = access.atomic != Atomic::No;
            if access.mode == Mode::Update && !atomic {
                self.push(buffer, at, width, (false, false), id, way, env, found);
            }
            let how = (access.mode.writes(), atomic);
            self.push(buffer, at, width, how, id, way, env, found);
        });
    }

    #[expect(
        clippy::too_many_arguments,
        reason = "each is a different fact about one access, and a struct would be taken apart at once"
    )]
    fn push(
        &mut self,
        buffer: Buffer,
        at: &[Expr],
        width: i64,
        (write, atomic): (bool, bool),
        id: Key,
        way: &Way,
        env: &Env,
        found: &mut Touches,
    ) {
        let root = self.scan.root(buffer);
        if self.scan.loaded.contains(&root) {
            let index = match at {
                [one] if root == buffer => env.value(one),
                _ => None,
            };
            found.registers.push(RegisterTouch {
                stmt: id,
                root,
                slot: None,
                range: index.map(|i| (i, i + width)),
                write,
            });
            return;
        }
        if !self.scan.is_memory(root) {
            return;
        }
        // A plain access of a buffer with versions names the version before the place; without
        // it the first one is meant.
        let data = &self.scan.func.buffers[buffer];
        let versions = self.scan.func.buffers[root].versions;
        let (slot, at) = match at.split_first() {
            Some((version, rest)) if versions > 1 && rest.len() == data.shape.len() => {
                (env.value(version), rest)
            }
            _ => ((versions > 1).then_some(0), at),
        };
        let lanes = at.last().map_or(1, |i| i64::from(i.dtype().lanes));
        let shape = self.shape(buffer, at, width * lanes, Lanes::Own, way, env);
        let set = self.places.intern(shape);
        found.shared.push(Touch {
            stmt: id,
            root,
            tensor: self.scan.is_exchanged(root),
            slot,
            write,
            atomic,
            set,
            iteration: self.iteration,
            arms: way.arms.as_slice().into(),
        });
    }
}

/// What a bulk copy accesses in shared memory.
fn in_shared(m: &MicroOp) -> &Access {
    match (m.kind, m.sources.first()) {
        (MicroKind::TmaStore, Some(source)) => source,
        _ => &m.dest,
    }
}

/// The elements in a row of a box.
fn row_of(tile: &TmaBox) -> i64 {
    tile.extents().last().map_or(1, |e| i64::from(*e))
}

pub fn bound(value: Expr) -> Bound {
    match value.as_int().and_then(|v| i64::try_from(v).ok()) {
        Some(v) => Bound::Known(v),
        None => Bound::Open(value),
    }
}

/// The values of a constant range.
fn axis_values(axis: &tilewright_ir::Axis, env: &Env) -> Option<Vec<i64>> {
    let (start, stop) = (env.value(&axis.start)?, env.value(&axis.stop)?);
    let step = env.value(&axis.step)?;
    let count = trip_count(start, stop, step)?;
    (count <= 1 << 16).then(|| (0..count).map(|n| start + n * step).collect())
}

/// How many iterations a range has; `None` for the step zero.
pub fn trip_count(start: i64, stop: i64, step: i64) -> Option<i64> {
    let distance = match step {
        0 => return None,
        s if s > 0 => stop.checked_sub(start)?,
        _ => start.checked_sub(stop)?,
    };
    let step = step.checked_abs()?;
    Some(distance.max(0).checked_add(step - 1)? / step)
}
