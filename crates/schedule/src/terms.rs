//! Integer terms over thread indices and loop variables, each distinct one evaluated once.
//!
//! The accesses of a kernel share most of their index arithmetic: `tx // 32` and its like stand
//! in all of them. A term is an expression with equal parts shared; its *column* holds its value
//! at every point of the variables that it mentions, and of no others. Loop variables are
//! numbered by the order in which one access mentions them, so accesses that differ only in the
//! names of their loops have the same terms.

use std::rc::Rc;

use rustc_hash::FxHashMap;
use tilewright_ir::{BinOp, Expr, ExprKind, Kernel, Scalar, UnOp, Var};

use crate::access::Steps;
use crate::footprint::{MAX_PLACES, apply, is_integral};

/// A term, by number: equal numbers are equal terms.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Term(u32);

/// The values of a term, the last dimension running fastest.
#[derive(Clone, Debug)]
pub struct Column {
    pub dims: Vec<Dim>,
    pub values: Vec<i64>,
}

impl Column {
    /// Whether the values depend on the thread.
    pub fn has_threads(&self) -> bool {
        self.dims.first().is_some_and(|dim| dim.is_threads())
    }

    /// Whether both are over the threads, or over the same loop.
    pub fn shares_dims(&self, other: &Column) -> bool {
        let mut dims = self.dims.iter();
        dims.any(|dim| other.dims.binary_search(dim).is_ok())
    }
}

/// A dimension of a column: the threads, or a loop of the access.
#[derive(Clone, Copy, PartialEq, Eq, PartialOrd, Ord, Debug)]
pub struct Dim {
    /// Zero is the threads, so they are the slowest dimension.
    pub id: u8,
    pub extent: usize,
}

impl Dim {
    pub fn is_threads(self) -> bool {
        self.id == 0
    }
}

/// A set of loops of an access; those from the 63rd on share a place in it.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub struct Loops(u64);

impl Loops {
    pub fn meet(self, other: Loops) -> bool {
        self.0 & other.0 != 0
    }
}

/// The loops of one access, numbered as they are mentioned.
#[derive(Debug)]
pub struct Axes<'a> {
    known: &'a [(Var, Steps)],
    mentioned: Vec<Var>,
}

impl<'a> Axes<'a> {
    pub fn new(known: &'a [(Var, Steps)]) -> Axes<'a> {
        Axes {
            known,
            mentioned: Vec::new(),
        }
    }

    fn number(&mut self, var: Var) -> Option<(u8, Steps)> {
        // An inner loop hides an outer one of the same variable.
        let (_, steps) = self.known.iter().rev().find(|(v, _)| *v == var)?;
        let at = self.mentioned.iter().position(|v| *v == var);
        let at = at.unwrap_or_else(|| {
            self.mentioned.push(var);
            self.mentioned.len() - 1
        });
        Some((u8::try_from(at + 1).ok()?, *steps))
    }
}

/// The terms of one kernel.
#[derive(Debug)]
pub struct Terms {
    threads: [u32; 3],
    thread_vars: [Var; 3],
    nodes: Vec<Node>,
    loops: Vec<Loops>,
    ids: FxHashMap<Node, Term>,
    /// `None` inside: some value cannot be computed.
    columns: FxHashMap<Term, Option<Rc<Column>>>,
}

/// An operation and the type that its value wraps to.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
struct Node {
    op: Op,
    scalar: Scalar,
}

#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
enum Op {
    Int(i64),
    Thread(u8),
    Axis(u8, Steps),
    Same(Term),
    Not(Term),
    BitNot(Term),
    Choose(Term, Term, Term),
    Binary(BinOp, Term, Term),
}

impl Terms {
    pub fn new(kernel: &Kernel) -> Terms {
        Terms {
            threads: kernel.threads,
            thread_vars: kernel.thread_vars,
            nodes: Vec::new(),
            loops: Vec::new(),
            ids: FxHashMap::default(),
            columns: FxHashMap::default(),
        }
    }

    /// The term of an expression over thread indices and the access's loops; `None` for
    /// anything else.
    pub fn term(&mut self, e: &Expr, axes: &mut Axes<'_>) -> Option<Term> {
        let op = match e.kind() {
            ExprKind::Int(value) => Op::Int(i64::try_from(e.dtype().scalar.wrap(*value)).ok()?),
            ExprKind::Var(var) => match axes.number(*var) {
                Some((number, steps)) => Op::Axis(number, steps),
                None => {
                    let at = self.thread_vars.iter().position(|v| v == var)?;
                    Op::Thread(at as u8)
                }
            },
            ExprKind::Cast(a) if is_integral(a.dtype()) && is_integral(e.dtype()) => {
                Op::Same(self.term(a, axes)?)
            }
            ExprKind::Unary(UnOp::Not, a) => Op::Not(self.term(a, axes)?),
            ExprKind::Unary(UnOp::BitNot, a) => Op::BitNot(self.term(a, axes)?),
            ExprKind::Select {
                cond,
                then,
                otherwise,
            }
            | ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => Op::Choose(
                self.term(cond, axes)?,
                self.term(then, axes)?,
                self.term(otherwise, axes)?,
            ),
            ExprKind::Binary(op, a, b) => Op::Binary(*op, self.term(a, axes)?, self.term(b, axes)?),
            _ => return None,
        };
        let node = Node {
            op,
            scalar: e.dtype().scalar,
        };
        let next = Term(u32::try_from(self.nodes.len()).ok()?);
        let id = *self.ids.entry(node).or_insert(next);
        if id == next {
            self.loops.push(self.loops_of(op));
            self.nodes.push(node);
        }
        Some(id)
    }

    fn loops_of(&self, op: Op) -> Loops {
        match op {
            Op::Int(_) | Op::Thread(_) => Loops(0),
            Op::Axis(number, _) => Loops(1 << number.min(63)),
            Op::Same(a) | Op::Not(a) | Op::BitNot(a) => self.loops(a),
            Op::Choose(a, b, c) => Loops(self.loops(a).0 | self.loops(b).0 | self.loops(c).0),
            Op::Binary(_, a, b) => Loops(self.loops(a).0 | self.loops(b).0),
        }
    }

    /// The loop that the term is, if its values are the loop's as they are.
    pub fn as_axis(&self, term: Term) -> Option<Steps> {
        let node = self.nodes[term.0 as usize];
        let Op::Axis(_, steps) = node.op else {
            return None;
        };
        let last = steps.start + (steps.count - 1).max(0) * steps.step;
        let fits = |v: i64| node.scalar.wrap(v as i128) == v as i128;
        (fits(steps.start) && fits(last)).then_some(steps)
    }

    /// The loops that the term mentions.
    pub fn loops(&self, term: Term) -> Loops {
        self.loops[term.0 as usize]
    }

    /// The values of the term; `None` where some point has none, or there are too many.
    pub fn column(&mut self, term: Term) -> Option<Rc<Column>> {
        if let Some(known) = self.columns.get(&term) {
            return known.clone();
        }
        let column = self.evaluate(self.nodes[term.0 as usize]).map(Rc::new);
        self.columns.insert(term, column.clone());
        column
    }

    fn evaluate(&mut self, node: Node) -> Option<Column> {
        let wrap = |value: i128| i64::try_from(node.scalar.wrap(value)).ok();
        match node.op {
            Op::Int(value) => Some(Column {
                dims: Vec::new(),
                values: vec![value],
            }),
            Op::Thread(axis) => {
                let [x, y, z] = self.threads;
                let extent = x as usize * y as usize * z as usize;
                let (inner, own) = match axis {
                    0 => (1, x),
                    1 => (x, y),
                    _ => (x * y, z),
                };
                let values = (0..extent as u32)
                    .map(|thread| wrap((thread / inner % own) as i128))
                    .collect::<Option<Vec<i64>>>()?;
                let dims = vec![Dim { id: 0, extent }];
                Some(Column { dims, values })
            }
            Op::Axis(id, steps) => {
                let values: Option<Vec<i64>> = steps.values().map(|v| wrap(v as i128)).collect();
                let values = values?;
                let extent = values.len();
                let dims = vec![Dim { id, extent }];
                Some(Column { dims, values })
            }
            Op::Same(a) => {
                let a = self.column(a)?;
                combine([&*a], |[x]| wrap(x as i128))
            }
            Op::Not(a) => {
                let a = self.column(a)?;
                combine([&*a], |[x]| wrap((x == 0) as i128))
            }
            Op::BitNot(a) => {
                let a = self.column(a)?;
                combine([&*a], |[x]| wrap(!(x as i128)))
            }
            Op::Choose(cond, then, otherwise) => {
                let cond = self.column(cond)?;
                let then = self.column(then)?;
                let otherwise = self.column(otherwise)?;
                combine([&*cond, &*then, &*otherwise], |[c, x, y]| {
                    wrap(if c != 0 { x } else { y } as i128)
                })
            }
            Op::Binary(op, a, b) => {
                let (a, b) = (self.column(a)?, self.column(b)?);
                combine([&*a, &*b], |[x, y]| wrap(apply(op, x, y)?))
            }
        }
    }
}

/// A column over all dimensions of the given ones, computed point by point.
pub fn combine<const N: usize>(
    columns: [&Column; N],
    f: impl Fn([i64; N]) -> Option<i64>,
) -> Option<Column> {
    let mut dims: Vec<Dim> = Vec::new();
    for column in columns {
        for dim in &column.dims {
            if let Err(at) = dims.binary_search(dim) {
                dims.insert(at, *dim);
            }
        }
    }
    let mut size = 1usize;
    for dim in &dims {
        size = size.checked_mul(dim.extent)?;
    }
    if size > MAX_PLACES {
        return None;
    }
    let mut values = Vec::with_capacity(size);
    if size == 0 {
        return Some(Column { dims, values });
    }
    // How far each column goes for a step of each dimension.
    let strides: Vec<[usize; N]> = dims
        .iter()
        .map(|dim| {
            columns.map(|column| match column.dims.binary_search(dim) {
                Ok(at) => column.dims[at + 1..].iter().map(|d| d.extent).product(),
                Err(_) => 0,
            })
        })
        .collect();
    let (inner, outer) = match (dims.split_last(), strides.split_last()) {
        (Some((last, dims)), Some((stride, strides))) => {
            ((last.extent, *stride), dims.iter().zip(strides).rev())
        }
        _ => ((1, [0; N]), [].iter().zip(&[]).rev()),
    };
    let outer: Vec<(usize, [usize; N])> = outer.map(|(d, s)| (d.extent, *s)).collect();
    let mut counters = vec![0usize; outer.len()];
    let mut start = [0usize; N];
    loop {
        let mut at = start;
        for _ in 0..inner.0 {
            values.push(f(std::array::from_fn(|n| columns[n].values[at[n]]))?);
            for (at, stride) in at.iter_mut().zip(inner.1) {
                *at += stride;
            }
        }
        // The next row: count up the slower dimensions, the fastest of them first.
        let mut more = false;
        for (counter, (extent, stride)) in counters.iter_mut().zip(&outer) {
            *counter += 1;
            for (start, stride) in start.iter_mut().zip(stride) {
                *start += stride;
            }
            if *counter < *extent {
                more = true;
                break;
            }
            *counter = 0;
            for (start, stride) in start.iter_mut().zip(stride) {
                *start -= stride * extent;
            }
        }
        if !more {
            return Some(Column { dims, values });
        }
    }
}
