//! Sets of places in memory, and which threads meet in two of them.
//!
//! Sets are interned, so that an access in another iteration is the same set where its places
//! are the same, and a question about two sets is answered once, by counting out who touches
//! what.

use std::ops::Range;
use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::{Buffer, Expr, Var};

use super::points::{Columns, MAX_POINTS, OUTSIDE, Points, Unit, count_points};
use super::scan::Scan;

/// Where threads of the block meet in two sets of places. Group pairs are bits `8 a + b`.
#[derive(Clone, Copy, PartialEq, Eq, Default, Debug)]
pub struct Meeting {
    /// Some thread of group a and some of b touch one place; they may be one thread.
    pub overlap: u64,
    /// Threads of different warps do.
    pub across: u64,
    /// Different warps do: of two groups that are lanes of one warp it may be one instruction.
    pub warps: u64,
    /// By group: different threads of one warp do.
    pub in_warp: u8,
}

impl Meeting {
    /// Any thread may meet any other.
    pub const ANY: Meeting = Meeting {
        overlap: u64::MAX,
        across: u64::MAX,
        warps: u64::MAX,
        in_warp: u8::MAX,
    };
}

/// The sets, and what is known of pairs of them.
#[derive(Debug)]
pub struct Places<'f> {
    scan: &'f Scan<'f>,
    sets: Vec<Set>,
    ids: FxHashMap<Rc<Shape>, u32>,
    meetings: FxHashMap<(u32, u32), Meeting>,
    selves: FxHashMap<u32, Meeting>,
    /// Whether a set is covered by others.
    covers: FxHashMap<(u32, Vec<u32>), Option<bool>>,
    columns: Columns,
    /// By group, the warps in it.
    group_warps: Vec<u32>,
    /// By warp, the groups of its threads, by bit.
    warp_groups: Vec<u8>,
    /// The groups of a single thread, by bit.
    alone: u8,
    /// Tensors in which it was asked who meets, and could not be said.
    pub unknown: Vec<Buffer>,
}

#[derive(Debug)]
struct Set {
    shape: Rc<Shape>,
    /// The first bit of every access; `None` where they cannot be counted out.
    points: Option<Option<Rc<Points>>>,
    tables: Vec<(Unit, Rc<Table>)>,
    /// The bits that are touched.
    runs: Option<Rc<Runs>>,
}

/// Places from and to, in order, with gaps between.
type Runs = Vec<(i64, i64)>;

/// Who touches a place.
#[derive(Clone, Copy, Debug)]
struct Cell {
    warps: u32,
    /// The groups of these threads, by bit.
    groups: u8,
    /// The only thread, or [`MANY`].
    thread: u32,
}

/// Who touches the places of a buffer, between the first and the last that anybody does.
#[derive(Debug)]
struct Table {
    first: usize,
    cells: Vec<Cell>,
}

impl Table {
    /// From this place up to its end.
    fn from(&self, place: usize) -> &[Cell] {
        self.cells.get(place - self.first..).unwrap_or_default()
    }
}

const MANY: u32 = u32::MAX;
const NOBODY: Cell = Cell {
    warps: 0,
    groups: 0,
    thread: MANY,
};

impl Cell {
    /// A thread touches the place too.
    fn note(&mut self, (thread, warp): (u32, u32), groups: u8, lanes: Lanes) {
        self.thread = match lanes {
            Lanes::Own if self.warps == 0 || self.thread == thread => thread,
            _ => MANY,
        };
        self.warps |= 1u32 << (thread / warp).min(31);
        self.groups |= groups;
    }
}

/// The content of a set.
#[derive(PartialEq, Eq, Hash, Debug)]
pub enum Shape {
    /// All of the buffer, by any thread.
    Anywhere(Buffer),
    Places {
        root: Buffer,
        /// Terms that are the same for the whole block and not known, in bits: only sets with
        /// equal ones can be compared.
        base: Vec<(Expr, i64)>,
        constant: i64,
        /// Terms over thread indices and axes with their weight in bits.
        terms: Vec<(Expr, i64)>,
        bits: i64,
        axes: Vec<(Var, Vec<i64>)>,
        guards: Vec<Expr>,
        /// Whether these are all conditions on the way.
        always: bool,
        lanes: Lanes,
    },
}

/// Whose accesses an instruction's places are.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub enum Lanes {
    /// Each thread its own.
    Own,
    /// The warp's together; only the first so many lanes say where.
    Warp(u32),
}

impl<'f> Places<'f> {
    pub fn new(scan: &'f Scan<'f>) -> Places<'f> {
        let mut group_warps = vec![0u32; scan.groups];
        let mut warp_groups = vec![0u8; scan.group_of.len().div_ceil(scan.warp as usize)];
        for (thread, &group) in scan.group_of.iter().enumerate() {
            let warp = thread / scan.warp as usize;
            group_warps[usize::from(group)] |= 1u32 << warp.min(31);
            warp_groups[warp] |= 1 << group;
        }
        let alone = (0..scan.groups).filter(|g| scan.threads_in(*g) == 1);
        Places {
            scan,
            sets: Vec::new(),
            ids: FxHashMap::default(),
            meetings: FxHashMap::default(),
            selves: FxHashMap::default(),
            covers: FxHashMap::default(),
            columns: Columns::default(),
            alone: alone.fold(0, |all, g| all | 1 << g),
            group_warps,
            warp_groups,
            unknown: Vec::new(),
        }
    }

    pub fn intern(&mut self, shape: Shape) -> u32 {
        if let Some(&id) = self.ids.get(&shape) {
            return id;
        }
        let (id, shape) = (self.sets.len() as u32, Rc::new(shape));
        self.ids.insert(shape.clone(), id);
        self.sets.push(Set {
            shape,
            points: None,
            tables: Vec::new(),
            runs: None,
        });
        id
    }

    /// Whether a warp's instruction accesses the places, as one.
    pub fn by_warp(&self, set: u32) -> bool {
        let shape = &*self.sets[set as usize].shape;
        matches!(
            shape,
            Shape::Places {
                lanes: Lanes::Warp(_),
                ..
            }
        )
    }

    /// How the threads of two sets meet.
    pub fn meeting(&mut self, a: u32, b: u32) -> Meeting {
        if let Some(&known) = self.meetings.get(&(a, b)) {
            return known;
        }
        let met = match self.tensor(a) {
            Some(tensor) => self.count_tensor(a, b).unwrap_or_else(|| {
                self.unknown.push(tensor);
                Meeting::default()
            }),
            None => self.count_meeting(a, b).unwrap_or(Meeting::ANY),
        };
        self.meetings.insert((a, b), met);
        met
    }

    /// The tensor of a set, where it is not in shared memory.
    fn tensor(&self, set: u32) -> Option<Buffer> {
        let (Shape::Anywhere(root) | Shape::Places { root, .. }) = &*self.sets[set as usize].shape;
        Some(*root).filter(|r| self.scan.is_exchanged(*r))
    }

    /// Whether the accesses of a set are done wherever its guards hold.
    pub fn is_certain(&self, set: u32) -> bool {
        matches!(&*self.sets[set as usize].shape, Shape::Places { always, .. } if *always)
    }

    /// The same in a tensor, of which a block touches a small part; `None` where what the whole
    /// block adds to the places is not the same for both.
    fn count_tensor(&mut self, a: u32, b: u32) -> Option<Meeting> {
        let shapes = [a, b].map(|set| self.sets[set as usize].shape.clone());
        let [
            Shape::Places { base, .. },
            Shape::Places { base: other, .. },
        ] = [&*shapes[0], &*shapes[1]]
        else {
            return None;
        };
        let equal = base.len() == other.len() && base.iter().all(|term| other.contains(term));
        if !equal {
            return None;
        }
        let unit = self.unit(a, b)?;
        let (x, y) = (self.few_cells(a, unit)?, self.few_cells(b, unit)?);
        let mut met = Meeting::default();
        for (at, p) in &x {
            if let Some(q) = y.get(at) {
                self.meet(*p, *q, &mut met);
            }
        }
        Some(met)
    }

    fn count_meeting(&mut self, a: u32, b: u32) -> Option<Meeting> {
        let unit = self.unit(a, b)?;
        let (x, y) = (self.table(a, unit)?, self.table(b, unit)?);
        let mut met = Meeting::default();
        let first = x.first.max(y.first);
        for (p, q) in x.from(first).iter().zip(y.from(first)) {
            if p.warps == 0 || q.warps == 0 {
                continue;
            }
            self.meet(*p, *q, &mut met);
            // Nothing is worse than threads of different warps.
            if self.group_warps.len() == 1 && met.across != 0 {
                break;
            }
        }
        Some(met)
    }

    /// What the places of both sets are multiples of.
    fn unit(&mut self, a: u32, b: u32) -> Option<Unit> {
        Some(self.points(a)?.unit.min(self.points(b)?.unit))
    }

    /// Those who touch one place for the first set meet those who do for the second.
    fn meet(&self, p: Cell, q: Cell, met: &mut Meeting) {
        for (i, &g) in self.group_warps.iter().enumerate() {
            for (j, &h) in self.group_warps.iter().enumerate() {
                let (own, other) = (self.of_group(p, i) & g, self.of_group(q, j) & h);
                if own == 0 || other == 0 {
                    continue;
                }
                let bit = 1u64 << (8 * i + j);
                met.overlap |= bit;
                let warps = (own | other).count_ones() > 1;
                if warps {
                    met.warps |= bit;
                }
                // Groups of one warp have no thread in common either.
                if i != j || warps {
                    met.across |= bit;
                }
                let apart = p.thread == MANY || p.thread != q.thread;
                if own & other != 0 && apart && self.alone >> i & 1 == 0 {
                    met.in_warp |= 1 << i;
                }
            }
        }
    }

    /// The groups of those whose access a thread's is.
    fn groups_of(&self, thread: u32, lanes: Lanes) -> u8 {
        match lanes {
            Lanes::Own => 1 << self.scan.group_of[thread as usize],
            Lanes::Warp(_) => self.warp_groups[(thread / self.scan.warp) as usize],
        }
    }

    /// The warps that touch a place, as far as threads of a group may be in them.
    fn of_group(&self, cell: Cell, group: usize) -> u32 {
        match cell.groups >> group & 1 {
            1 => cell.warps,
            _ => 0,
        }
    }

    /// How different threads meet in one set at *different* points of its loops. Threads that
    /// write one place at the same point hold copies of one value.
    pub fn meeting_itself(&mut self, set: u32) -> Meeting {
        if let Some(&known) = self.selves.get(&set) {
            return known;
        }
        let met = self.count_itself(set).unwrap_or_default();
        self.selves.insert(set, met);
        met
    }

    fn count_itself(&mut self, set: u32) -> Option<Meeting> {
        let Shape::Places { axes, .. } = &*self.sets[set as usize].shape else {
            return None;
        };
        if axes.is_empty() {
            return None;
        }
        let points = self.points(set)?;
        let bits = self.sets[set as usize].bits();
        let cells = |place: i64| points.unit.cells(place, bits);
        let touched = || points.places.iter().filter(|place| **place != OUTSIDE);
        let reach = touched().min().zip(touched().max());
        let reach = reach.map(|(low, high)| cells(*low).start..cells(*high).end);
        let mut seen = Firsts::new(reach.unwrap_or_default());
        let mut met = Meeting::default();
        for (thread, point, place) in points.each() {
            for cell in cells(place) {
                let (other, at) = seen.first(cell, (thread, point));
                if other == thread || at == point {
                    continue;
                }
                let (g, h) = (
                    self.scan.group_of[other as usize],
                    self.scan.group_of[thread as usize],
                );
                if other / self.scan.warp == thread / self.scan.warp {
                    met.in_warp |= 1 << g;
                } else {
                    met.across |= 1 << (8 * u64::from(g) + u64::from(h));
                }
            }
        }
        Some(met)
    }

    /// Whether all places of a set are among those of others; `None` where they cannot be counted
    /// out.
    pub fn covered(&mut self, set: u32, by: &[u32]) -> Option<bool> {
        if by.is_empty() || by.contains(&set) {
            return Some(!by.is_empty());
        }
        let question = (set, by.to_vec());
        if let Some(&known) = self.covers.get(&question) {
            return known;
        }
        let covered = self.count_covered(set, by);
        self.covers.insert(question, covered);
        covered
    }

    fn count_covered(&mut self, set: u32, by: &[u32]) -> Option<bool> {
        let mut open = self.runs(set)?;
        for &one in by {
            open = Rc::new(without(&open, &self.runs(one)?));
        }
        Some(open.is_empty())
    }

    fn runs(&mut self, set: u32) -> Option<Rc<Runs>> {
        if let Some(known) = &self.sets[set as usize].runs {
            return Some(known.clone());
        }
        let points = self.points(set)?;
        let unit = points.unit;
        let mut touched = vec![false; self.table_size(set, unit)?];
        let bits = self.sets[set as usize].bits();
        for (_, _, place) in points.each() {
            for at in unit.cells(place, bits) {
                if let Some(cell) = usize::try_from(at).ok().and_then(|at| touched.get_mut(at)) {
                    *cell = true;
                }
            }
        }
        let mut runs = Runs::new();
        let mut at = 0;
        for cells in touched.chunk_by(|a, b| a == b) {
            let from = at;
            at += (cells.len() as i64) << unit.0;
            if cells[0] {
                runs.push((from, at));
            }
        }
        let runs = Rc::new(runs);
        self.sets[set as usize].runs = Some(runs.clone());
        Some(runs)
    }

    /// How many units the buffer of a set has.
    fn table_size(&self, set: u32, unit: Unit) -> Option<usize> {
        let Shape::Places { root, .. } = &*self.sets[set as usize].shape else {
            return None;
        };
        let data = &self.scan.func.buffers[*root];
        let mut total = i64::from(data.dtype.bits());
        for extent in &data.shape {
            total = total.checked_mul(i64::try_from(extent.as_int()?).ok()?)?;
        }
        let size = usize::try_from(total).ok()?.div_ceil(1 << unit.0);
        (size <= 1 << 22).then_some(size)
    }

    fn table(&mut self, set: u32, unit: Unit) -> Option<Rc<Table>> {
        let known = &self.sets[set as usize].tables;
        if let Some((_, table)) = known.iter().find(|(u, _)| *u == unit) {
            return Some(table.clone());
        }
        let points = self.points(set)?;
        let Shape::Places { bits, lanes, .. } = &*self.sets[set as usize].shape else {
            return None;
        };
        // Places outside the buffer are another checker's finding.
        let size = self.table_size(set, unit)?;
        let inside = |cell: i64| cell.clamp(0, size as i64) as usize;
        let touched = || points.places.iter().filter(|place| **place != OUTSIDE);
        let first = touched().min().map_or(0, |p| inside(p >> unit.0));
        let last = touched()
            .max()
            .map_or(0, |p| inside(unit.cells(*p, *bits).end));
        let mut cells = vec![NOBODY; last - first];
        for (thread, _, place) in points.each() {
            let reached = unit.cells(place, *bits);
            for cell in &mut cells[inside(reached.start) - first..inside(reached.end) - first] {
                let groups = self.groups_of(thread, *lanes);
                cell.note((thread, self.scan.warp), groups, *lanes);
            }
        }
        let table = Rc::new(Table { first, cells });
        self.sets[set as usize].tables.push((unit, table.clone()));
        Some(table)
    }

    /// The same for the places that are touched alone.
    fn few_cells(&mut self, set: u32, unit: Unit) -> Option<FxHashMap<i64, Cell>> {
        let points = self.points(set)?;
        let Shape::Places { bits, lanes, .. } = &*self.sets[set as usize].shape else {
            return None;
        };
        let mut cells: FxHashMap<i64, Cell> = FxHashMap::default();
        for (thread, _, place) in points.each() {
            for at in unit.cells(place, *bits) {
                let cell = cells.entry(at).or_insert(NOBODY);
                let groups = self.groups_of(thread, *lanes);
                cell.note((thread, self.scan.warp), groups, *lanes);
            }
        }
        Some(cells)
    }

    fn points(&mut self, set: u32) -> Option<Rc<Points>> {
        if let Some(known) = &self.sets[set as usize].points {
            return known.clone();
        }
        let shape = self.sets[set as usize].shape.clone();
        let points = count_points(self.scan, &shape, &mut self.columns).map(Rc::new);
        self.sets[set as usize].points = Some(points.clone());
        points
    }
}

impl Set {
    fn bits(&self) -> i64 {
        match &*self.shape {
            Shape::Anywhere(_) => 0,
            Shape::Places { bits, .. } => *bits,
        }
    }
}

/// Who came to each cell first: a list where the cells lie close, a hash table where not.
enum Firsts {
    Near(i64, Vec<(u32, u32)>),
    Far(FxHashMap<i64, (u32, u32)>),
}

impl Firsts {
    fn new(cells: Range<i64>) -> Firsts {
        let count = cells.end.checked_sub(cells.start);
        let count = count.and_then(|count| usize::try_from(count).ok());
        match count.filter(|c| *c <= MAX_POINTS) {
            Some(count) => Firsts::Near(cells.start, vec![(MANY, MANY); count]),
            None => Firsts::Far(FxHashMap::default()),
        }
    }

    /// The first who came to a cell, which is `own` where nobody has.
    fn first(&mut self, cell: i64, own: (u32, u32)) -> (u32, u32) {
        match self {
            Firsts::Near(low, list) => {
                let known = &mut list[(cell - *low) as usize];
                if known.0 == MANY {
                    *known = own;
                }
                *known
            }
            Firsts::Far(table) => *table.entry(cell).or_insert(own),
        }
    }
}

/// What of some runs is in none of the others.
fn without(runs: &[(i64, i64)], others: &[(i64, i64)]) -> Runs {
    let mut left = Runs::new();
    for &(mut from, to) in runs {
        let first = others.partition_point(|other| other.1 <= from);
        for other in others[first..].iter().take_while(|other| other.0 < to) {
            if from < other.0 {
                left.push((from, other.0));
            }
            from = other.1;
        }
        if from < to {
            left.push((from, to));
        }
    }
    left
}
