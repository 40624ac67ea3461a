//! How the accesses of a kernel conflict: each question answered once.
//!
//! Accesses that touch the same places in the same way are one *class*; a kernel has few. What
//! two classes do to each other is remembered, so ThreadSync may walk the program as often as it
//! likes.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{BinOp, Buffer, Expr, ExprKind, Func, Kernel, Scope, Var};

use crate::access::{Access, Points, Steps};
use crate::footprint::{Meeting, count_out};
use crate::shape::{Shape, Shapes};
use crate::slots::{Slot, Slots};

/// A class of accesses, by number.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Class(u32);

/// What two classes do to each other when they run with the same values of all variables
/// around them.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub enum Relation {
    /// Other storage, or nobody writes, or both are atomic: never a conflict.
    Apart,
    /// The places of one or both are not known.
    Unknown,
    /// The places were counted out.
    Counted(Meeting),
}

impl Relation {
    pub fn meeting(self) -> Meeting {
        match self {
            Relation::Apart => Meeting::Nowhere,
            Relation::Unknown => Meeting::AcrossWarps,
            Relation::Counted(met) => met,
        }
    }
}

/// The classes of one kernel and the answers so far.
#[derive(Debug)]
pub struct Conflicts<'k> {
    func: &'k Func,
    kernel: &'k Kernel,
    warp: u32,
    shapes: Shapes,
    uniforms: Vec<Uniform>,
    /// Indices in tensors that cannot be counted out.
    computed: Vec<Vec<Expr>>,
    /// The versions of buffers that accesses name.
    pub slots: Slots,
    classes: Vec<ClassData>,
    ids: FxHashMap<Key, Class>,
    /// A triangle: the larger class, then the smaller.
    answers: Vec<Vec<Option<Relation>>>,
}

/// A part of a place that is the same for all threads.
#[derive(Debug)]
struct Uniform {
    terms: FxHashMap<Expr, i64>,
    vars: FxHashSet<Var>,
    /// The buffers that are read for it.
    loads: FxHashSet<Buffer>,
}

#[derive(Debug)]
struct ClassData {
    key: Key,
    points: Option<Points>,
    /// Of a tensor, the indices along each dimension.
    along: Vec<Option<(Shape, i64)>>,
    /// The thread that does it, where only one does.
    alone: Option<i128>,
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    root: Buffer,
    write: bool,
    atomic: bool,
    places: Places,
    slot: Option<Slot>,
    told: bool,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Places {
    Anywhere,
    /// What the data says, by the indices.
    Computed(u32),
    Known {
        uniform: u32,
        guards_known: bool,
        at: At,
    },
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum At {
    Shape(Shape, i64),
    /// Only counting out point by point can tell; no two such accesses are one class.
    Points(u32),
}

impl<'k> Conflicts<'k> {
    /// `warp` is the number of threads that run together.
    pub fn new(func: &'k Func, kernel: &'k Kernel, warp: u32) -> Conflicts<'k> {
        Conflicts {
            func,
            kernel,
            warp: warp.max(1),
            shapes: Shapes::new(kernel, warp),
            uniforms: Vec::new(),
            computed: Vec::new(),
            slots: Slots::default(),
            classes: Vec::new(),
            ids: FxHashMap::default(),
            answers: Vec::new(),
        }
    }

    /// The classes of accesses, each once.
    pub fn classes(&mut self, accesses: Vec<Access>) -> Vec<Class> {
        let mut classes: Vec<Class> = accesses.into_iter().map(|a| self.class(a)).collect();
        classes.sort_unstable();
        classes.dedup();
        classes
    }

    pub fn class(&mut self, access: Access) -> Class {
        let places = match (&access.points, access.computed) {
            (None, None) => Places::Anywhere,
            (None, Some(indices)) => Places::Computed(self.indices(indices)),
            (Some(points), _) => Places::Known {
                uniform: self.uniform(&points.uniform),
                guards_known: points.guards_known,
                at: match self.shapes.of(points) {
                    Some((shape, constant)) => At::Shape(shape, constant),
                    None => At::Points(self.classes.len() as u32),
                },
            },
        };
        let key = Key {
            root: access.root,
            write: access.write,
            atomic: access.atomic,
            places,
            slot: access.slot.as_ref().and_then(|e| self.slots.of(e)),
            told: access.told,
        };
        let next = Class(self.classes.len() as u32);
        let class = *self.ids.entry(key.clone()).or_insert(next);
        if class == next {
            let dims = access
                .points
                .iter()
                .flat_map(|p| (0..p.along.len()).map(move |d| (p, d)));
            let along = dims.map(|(p, dim)| self.shapes.of(&p.along_only(dim)));
            let points = access.points.as_ref();
            self.classes.push(ClassData {
                key,
                along: along.collect(),
                alone: points.and_then(|p| only_thread(self.kernel, &p.guards)),
                points: access.points,
            });
            self.answers.push(vec![None; self.classes.len()]);
        }
        class
    }

    /// Whether the class is of a tensor.
    pub fn is_tensor(&self, class: Class) -> bool {
        self.func.buffers[self.root(class)].scope == Scope::Global
    }

    /// Whether both are at the same indices that only the data knows: the points of one parallel
    /// loop are then taken to be different places.
    pub fn is_same_scatter(&self, a: Class, b: Class) -> bool {
        let places = |class: Class| self.data(class).key.places;
        matches!((places(a), places(b)), (Places::Computed(x), Places::Computed(y)) if x == y)
    }

    /// Whether two classes of a tensor with equal uniform parts are in different tiles of it once
    /// the variable has another value; `changed` holds all that may have one.
    pub fn parted(&self, a: Class, b: Class, moved: Var, changed: &FxHashSet<Var>) -> bool {
        let points = |class: Class| self.data(class).points.as_ref();
        let (Some(a), Some(b)) = (points(a), points(b)) else {
            return false;
        };
        let vars = |points: &Points| -> Vec<(Var, Steps)> {
            let threads = self.kernel.thread_vars.iter().zip(self.kernel.threads);
            let threads = threads.map(|(var, extent)| {
                let count = i64::from(extent);
                (
                    *var,
                    Steps {
                        start: 0,
                        step: 1,
                        count,
                    },
                )
            });
            threads.chain(points.axes.iter().copied()).collect()
        };
        a.along.iter().zip(&b.along).any(|(x, y)| {
            let step = x.step_of(moved, changed);
            let apart = || {
                let (low, high) = x.reach(&vars(a), self.func)?;
                let (from, to) = y.reach(&vars(b), self.func)?;
                let step = i128::from(step?).abs();
                Some(high - from <= step && to - low <= step)
            };
            step.is_some_and(|s| s != 0) && x.uniform == y.uniform && apart() == Some(true)
        })
    }

    /// Whether in some dimension of a tensor each thread has indices of its own, whatever values
    /// the variables that have changed had and have.
    pub fn separated(&mut self, a: Class, b: Class, changed: &FxHashSet<Var>) -> bool {
        let (a, b) = (a.0 as usize, b.0 as usize);
        let (Some(x), Some(y)) = (&self.classes[a].points, &self.classes[b].points) else {
            return false;
        };
        let pairs = x.along.iter().zip(&y.along).enumerate();
        let same = pairs.filter(|(_, (x, y))| x.uniform == y.uniform && x.stays(changed));
        let same: Vec<usize> = same.map(|(dim, _)| dim).collect();
        same.into_iter().any(|dim| {
            let (along, other) = (self.classes[a].along[dim], self.classes[b].along[dim]);
            let (Some((first, from)), Some((second, to))) = (along, other) else {
                return false;
            };
            let met = self.shapes.meet(first, second, to - from);
            met.is_some_and(|met| met <= Meeting::InThread)
        })
    }

    /// Whether one thread does both.
    pub fn in_one_thread(&self, a: Class, b: Class) -> bool {
        let alone = self.data(a).alone;
        alone.is_some() && alone == self.data(b).alone
    }

    /// Whether an arrival barrier hears of it, for which who comes behind it waits.
    pub fn is_told(&self, class: Class) -> bool {
        self.data(class).key.told
    }

    pub fn writes(&self, class: Class) -> bool {
        self.data(class).key.write
    }

    /// The buffer of a class.
    pub fn root(&self, class: Class) -> Buffer {
        self.data(class).key.root
    }

    /// Whether the class is of a tensor.
    pub fn is_of_tensor(&self, class: Class) -> bool {
        self.func.buffers[self.root(class)].scope == Scope::Global
    }

    /// The version that a class names.
    pub fn slot(&self, class: Class) -> Option<Slot> {
        self.data(class).key.slot
    }

    /// What the classes do to each other in the same version.
    pub fn relation(&mut self, a: Class, b: Class) -> Relation {
        if let Some(known) = self.known_relation(a, b) {
            return known;
        }
        let (high, low) = (a.max(b), a.min(b));
        let counted = self.count(a, b);
        let relation = counted.map_or(Relation::Unknown, Relation::Counted);
        self.answers[high.0 as usize][low.0 as usize] = Some(relation);
        relation
    }

    /// The same where it takes no counting.
    pub fn known_relation(&self, a: Class, b: Class) -> Option<Relation> {
        let (high, low) = (a.max(b), a.min(b));
        if let Some(known) = self.answers[high.0 as usize][low.0 as usize] {
            return Some(known);
        }
        let (a, b) = (&self.data(a).key, &self.data(b).key);
        if a.root != b.root || !(a.write || b.write) || (a.atomic && b.atomic) {
            return Some(Relation::Apart);
        }
        match (a.places, b.places) {
            (Places::Known { uniform: x, .. }, Places::Known { uniform: y, .. }) if x == y => None,
            _ => Some(Relation::Unknown),
        }
    }

    /// Whether the classes certainly conflict: places and conditions are all known, and two
    /// threads meet.
    pub fn certain(&mut self, a: Class, b: Class) -> bool {
        let known = |class: Class| {
            matches!(
                self.data(class).key.places,
                Places::Known {
                    guards_known: true,
                    ..
                }
            )
        };
        known(a)
            && known(b)
            && matches!(self.relation(a, b), Relation::Counted(met) if met > Meeting::InThread)
    }

    /// Whether the class's places move when these variables get other values, and where memory
    /// that is read for them may hold something else by then.
    pub fn moves(&self, class: Class, changed: &FxHashSet<Var>, rewritten: bool) -> bool {
        let Places::Known { uniform, .. } = self.data(class).key.places else {
            return false;
        };
        let uniform = &self.uniforms[uniform as usize];
        let loads = rewritten && !uniform.loads.is_empty();
        loads || uniform.vars.iter().any(|v| changed.contains(v))
    }

    /// Whether a place is computed from what the buffer holds.
    pub fn is_read_for_places(&self, buffer: Buffer) -> bool {
        self.uniforms.iter().any(|u| u.loads.contains(&buffer))
    }

    fn data(&self, class: Class) -> &ClassData {
        &self.classes[class.0 as usize]
    }

    fn indices(&mut self, indices: Vec<Expr>) -> u32 {
        let known = self.computed.iter().position(|known| *known == indices);
        known.unwrap_or_else(|| {
            self.computed.push(indices);
            self.computed.len() - 1
        }) as u32
    }

    fn uniform(&mut self, terms: &FxHashMap<Expr, i64>) -> u32 {
        if let Some(at) = self.uniforms.iter().position(|u| u.terms == *terms) {
            return at as u32;
        }
        let mut vars = FxHashSet::default();
        let mut loads = FxHashSet::default();
        for e in terms.keys() {
            e.walk(&mut |node| {
                vars.extend(node.as_var());
                if let ExprKind::Load { buffer, .. } = node.kind() {
                    loads.insert(*buffer);
                }
            });
        }
        self.uniforms.push(Uniform {
            terms: terms.clone(),
            vars,
            loads,
        });
        self.uniforms.len() as u32 - 1
    }

    fn count(&mut self, a: Class, b: Class) -> Option<Meeting> {
        let at = |class: Class| match self.data(class).key.places {
            Places::Known {
                at: At::Shape(shape, constant),
                ..
            } => Some((shape, constant)),
            _ => None,
        };
        if let (Some((x, from)), Some((y, to))) = (at(a), at(b))
            && let Some(distance) = to.checked_sub(from)
            && let Some(met) = self.shapes.meet(x, y, distance)
        {
            return Some(met);
        }
        let (a, b) = (self.data(a).points.as_ref()?, self.data(b).points.as_ref()?);
        count_out(self.kernel, self.warp, a, b)
    }
}

/// The thread that a condition names, `tx == 256`, in a block whose threads have one index.
fn only_thread(kernel: &Kernel, guards: &[Expr]) -> Option<i128> {
    let ([tx, ..], [_, 1, 1]) = (kernel.thread_vars, kernel.threads) else {
        return None;
    };
    guards.iter().find_map(|guard| match guard.kind() {
        ExprKind::Binary(BinOp::Eq, a, b) if a.as_var() == Some(tx) => b.as_int(),
        _ => None,
    })
}
