//! The hash-consed terms that rewriting works on.
//!
//! An [`Expr`] is brought into an [`Arena`] once; afterwards equal terms have equal ids, so
//! equality is one comparison and every fact can be kept by id. Sums of products with constants
//! are one node ([`Node::Sum`]), which is the canonical linear form: no coefficient is zero, no
//! atom is a sum or a constant, atoms stand in the order of their ids.
//!
//! A sum stands for its value modulo `2^bits` of its type. Coefficients and constant are kept in
//! the signed range of that width for signed and unsigned types alike, so `x - 1` is `x + -1`
//! in `uint32` too.
//!
//! Ids follow the order of creation. Where an order shows in the result, [`Arena::order`] is
//! used instead: it depends on the term alone, so that (short of the depth limit) what was
//! simplified before never changes what comes out.

use indexmap::IndexSet;
use rustc_hash::{FxBuildHasher, FxHashMap, FxHashSet};
use tilewright_ir::{BinOp, Buffer, DType, Expr, MathFn, Span, UnOp, Var};

/// A term of an [`Arena`].
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub(crate) struct Term(u32);

impl Term {
    /// Some term; fills places that are not in use.
    pub const FIRST: Term = Term(0);
}

/// What a term computes, over other terms.
#[derive(Clone, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Node {
    /// In every lane, for vectors.
    Int(i128),
    /// The bits of the value; in every lane, for vectors.
    Float(u64),
    Var(Var),
    /// `Σ coefficient · atom + constant` modulo `2^bits`; integers only.
    Sum(Box<[(Term, i128)]>, i128),
    Unary(UnOp, Term),
    Binary(BinOp, Term, Term),
    Choose {
        lazy: bool,
        cond: Term,
        then: Term,
        otherwise: Term,
    },
    Cast(Term),
    Reinterpret(Term),
    Math(MathFn, Box<[Term]>),
    Load(Buffer, Box<[Term]>),
    AddressOf(Buffer, Box<[Term]>),
    Ramp(Term, Term),
    Broadcast(Term),
    Lane(Term, u16),
    /// An expression that rewriting does not look into; the index of its text in the arena.
    Opaque(u32),
}

#[derive(Clone, Copy, Debug)]
struct Meta {
    order: u64,
    span: Span,
    reads_memory: bool,
}

/// Owns terms.
#[derive(Debug, Default)]
pub(crate) struct Arena {
    nodes: IndexSet<(Node, DType), FxBuildHasher>,
    meta: Vec<Meta>,
    /// The expression of a term, once it has been asked for.
    exprs: Vec<Option<Expr>>,
    opaque: Vec<Expr>,
    opaque_by_address: FxHashMap<usize, u32>,
}

impl Arena {
    /// The term of a node in normal form. Nothing is rewritten here.
    pub fn intern(&mut self, node: Node, dtype: DType) -> Term {
        let (index, new) = self.nodes.insert_full((node, dtype));
        if new {
            let meta = self.describe(&self.nodes[index].0, dtype);
            self.meta.push(meta);
            self.exprs.push(None);
        }
        // Four billion terms do not fit in memory.
        Term(index as u32)
    }

    pub fn node(&self, t: Term) -> &Node {
        &self.nodes[t.0 as usize].0
    }

    pub fn dtype(&self, t: Term) -> DType {
        self.nodes[t.0 as usize].1
    }

    /// The value of an integer or bool constant.
    pub fn constant(&self, t: Term) -> Option<i128> {
        match *self.node(t) {
            Node::Int(value) => Some(value),
            _ => None,
        }
    }

    /// A key that orders terms by what they are: variables by number, then the rest by kind
    /// and contents. Distinct terms have equal keys only by an accident of hashing, in which
    /// case the order of creation decides.
    pub fn order(&self, t: Term) -> (u64, Term) {
        (self.meta[t.0 as usize].order, t)
    }

    /// Whether a load stands in the term: its value may change when memory does.
    pub fn reads_memory(&self, t: Term) -> bool {
        self.meta[t.0 as usize].reads_memory
    }

    /// Remembers where the term came from in the source, unless that is known.
    pub fn note_span(&mut self, t: Term, span: Span) {
        let meta = &mut self.meta[t.0 as usize];
        if meta.span == Span::NONE && self.exprs[t.0 as usize].is_none() {
            meta.span = span;
        }
    }

    pub fn span(&self, t: Term) -> Span {
        self.meta[t.0 as usize].span
    }

    pub fn cached_expr(&self, t: Term) -> Option<&Expr> {
        self.exprs[t.0 as usize].as_ref()
    }

    pub fn cache_expr(&mut self, t: Term, e: Expr) {
        self.exprs[t.0 as usize] = Some(e);
    }

    /// The term of an expression that is not looked into. The same node gives the same term.
    pub fn opaque(&mut self, e: &Expr) -> Term {
        let index = match self.opaque_by_address.get(&address(e)) {
            Some(&index) => index,
            None => {
                let index = self.opaque.len() as u32;
                // Holding the expression keeps its address from being used again.
                self.opaque.push(e.clone());
                self.opaque_by_address.insert(address(e), index);
                index
            }
        };
        self.intern(Node::Opaque(index), e.dtype())
    }

    pub fn opaque_expr(&self, index: u32) -> &Expr {
        &self.opaque[index as usize]
    }

    /// Calls `f` on the direct operands.
    pub fn operands(&self, t: Term, f: &mut impl FnMut(Term)) {
        each_operand(self.node(t), f);
    }

    /// The term and all terms in it, operands before the terms over them, none twice.
    pub fn reachable(&self, roots: impl IntoIterator<Item = Term>) -> Vec<Term> {
        let mut seen: FxHashSet<Term> = FxHashSet::default();
        let mut pending: Vec<Term> = roots.into_iter().collect();
        while let Some(t) = pending.pop() {
            if seen.insert(t) {
                self.operands(t, &mut |o| pending.push(o));
            }
        }
        let mut all: Vec<Term> = seen.into_iter().collect();
        // Operands are interned before the nodes over them.
        all.sort_unstable();
        all
    }

    /// Whether `needle` stands anywhere in `t`.
    pub fn mentions(&self, t: Term, needle: Term) -> bool {
        t == needle || (t > needle && self.reachable([t]).binary_search(&needle).is_ok())
    }

    fn describe(&self, node: &Node, dtype: DType) -> Meta {
        let (rank, mut hash): (u64, u64) = match node {
            Node::Int(v) => (0, *v as u64),
            Node::Var(v) => (1, v.as_u32() as u64),
            Node::Float(bits) => (2, *bits),
            Node::Cast(_) => (3, 1),
            Node::Broadcast(_) => (3, 2),
            Node::Ramp(..) => (3, 3),
            Node::Lane(_, lane) => (3, 4 + *lane as u64),
            Node::Reinterpret(_) => (3, 5),
            Node::Load(b, _) => (4, b.as_u32() as u64),
            Node::AddressOf(b, _) => (5, b.as_u32() as u64),
            Node::Binary(op, ..) => (6 + *op as u64, 0),
            Node::Unary(op, _) => (40, *op as u64),
            Node::Sum(_, c) => (41, *c as u64),
            Node::Math(m, _) => (42, *m as u64),
            Node::Choose { lazy, .. } => (43, *lazy as u64),
            Node::Opaque(index) => (44, *index as u64),
        };
        let mut first = None;
        let mut reads_memory = matches!(node, Node::Load(..) | Node::Opaque(_));
        let mut mix = |x: u64| {
            hash = (hash ^ x)
                .wrapping_mul(0x9e37_79b9_7f4a_7c15)
                .rotate_left(29);
        };
        mix(dtype.scalar as u64 | (dtype.lanes as u64) << 32);
        each_operand(node, &mut |o| {
            let meta = &self.meta[o.0 as usize];
            first = first.or(Some(meta.order >> 40 & 0xffff));
            reads_memory |= meta.reads_memory;
            mix(meta.order);
        });
        if let Node::Sum(terms, _) = node {
            // Not in the order of ids, which says when a term was made.
            let sum = terms.iter().map(|&(t, c)| {
                (self.meta[t.0 as usize].order ^ c as u64).wrapping_mul(0xd6e8_feb8_6659_fd93)
            });
            hash = sum.fold(node_constant(node) as u64, u64::wrapping_add);
        }
        let lead = match node {
            Node::Var(v) => v.as_u32() as u64 & 0xffff,
            _ => first.unwrap_or(0xffff),
        };
        Meta {
            order: rank << 56 | lead << 40 | (hash >> 24),
            span: Span::NONE,
            reads_memory,
        }
    }
}

/// The address of the shared node, the same for all clones of an expression that is alive.
pub(crate) fn address(e: &Expr) -> usize {
    std::ptr::from_ref(e.kind()).addr()
}

fn node_constant(node: &Node) -> i128 {
    match node {
        Node::Sum(_, c) => *c,
        _ => 0,
    }
}

fn each_operand(node: &Node, f: &mut impl FnMut(Term)) {
    match node {
        Node::Int(_) | Node::Float(_) | Node::Var(_) | Node::Opaque(_) => {}
        Node::Sum(terms, _) => terms.iter().for_each(|&(t, _)| f(t)),
        Node::Math(_, args) | Node::Load(_, args) | Node::AddressOf(_, args) => {
            args.iter().for_each(|&t| f(t));
        }
        Node::Unary(_, a)
        | Node::Cast(a)
        | Node::Reinterpret(a)
        | Node::Broadcast(a)
        | Node::Lane(a, _) => f(*a),
        Node::Binary(_, a, b) | Node::Ramp(a, b) => {
            f(*a);
            f(*b);
        }
        Node::Choose {
            cond,
            then,
            otherwise,
            ..
        } => {
            f(*cond);
            f(*then);
            f(*otherwise);
        }
    }
}
