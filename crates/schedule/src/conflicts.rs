//! How the accesses of a kernel conflict: each question answered once.
//!
//! Accesses that touch the same places in the same way are one *class*; a kernel has few. What
//! two classes do to each other is remembered, so ThreadSync may walk the program as often as it
//! likes.

use rustc_hash::{FxHashMap, FxHashSet};
use tilewright_ir::{Buffer, Expr, ExprKind, Kernel, Var};

use crate::access::{Access, Points};
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
    kernel: &'k Kernel,
    warp: u32,
    shapes: Shapes,
    uniforms: Vec<Uniform>,
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
}

#[derive(Clone, PartialEq, Eq, Hash, Debug)]
struct Key {
    root: Buffer,
    write: bool,
    atomic: bool,
    places: Places,
    slot: Option<Slot>,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Places {
    Anywhere,
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
    pub fn new(kernel: &'k Kernel, warp: u32) -> Conflicts<'k> {
        Conflicts {
            kernel,
            warp: warp.max(1),
            shapes: Shapes::new(kernel, warp),
            uniforms: Vec::new(),
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
        let places = match &access.points {
            None => Places::Anywhere,
            Some(points) => Places::Known {
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
        };
        let next = Class(self.classes.len() as u32);
        let class = *self.ids.entry(key.clone()).or_insert(next);
        if class == next {
            self.classes.push(ClassData {
                key,
                points: access.points,
            });
            self.answers.push(vec![None; self.classes.len()]);
        }
        class
    }

    pub fn writes(&self, class: Class) -> bool {
        self.data(class).key.write
    }

    /// The buffer of a class.
    pub fn root(&self, class: Class) -> Buffer {
        self.data(class).key.root
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
