//! The [`Analyzer`]: one place that knows what holds here, rewrites and proves.

use rustc_hash::FxHashMap;
use tilewright_ir::{DType, Expr};

use crate::domain::Domain;
use crate::linear::Lin;
use crate::rules::{Rule, RuleCounts};
use crate::scope::Frame;
use crate::term::{Arena, Node, Term};

/// Simplifies and proves under the facts of the current scope.
///
/// Facts are pushed on entering a loop, a branch or a kernel and popped on leaving it; see
/// [`scope`](crate::scope). An analyzer has no globals: two of them never influence each other.
#[derive(Debug)]
pub struct Analyzer {
    pub(crate) arena: Arena,
    /// Never empty; the last one is the innermost scope.
    pub(crate) frames: Vec<Frame>,
    pub(crate) counts: RuleCounts,
    /// How many conditions of the expression being simplified are assumed right now.
    pub(crate) assumed_conditions: u32,
    /// Eliminations left to the prover for the goal at hand.
    pub(crate) fuel: u32,
}

/// What has been worked out in a scope. Thrown away whenever the scope learns a fact.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// By address of the expression's node; the expression is held so that its address stays
    /// its own.
    pub terms: FxHashMap<usize, (Expr, Term)>,
    pub info: FxHashMap<Term, Info>,
}

/// What is known of a term's value.
#[derive(Clone, Debug)]
pub(crate) struct Info {
    pub domain: Domain,
    pub integer: Integer,
}

/// How the integer value of a term is written as a linear form.
#[derive(Clone, Debug)]
pub(crate) enum Integer {
    /// As itself.
    Atom,
    /// As this form, in which nothing wraps.
    Form(Lin),
}

impl Default for Analyzer {
    fn default() -> Analyzer {
        Analyzer::new()
    }
}

impl Analyzer {
    /// An analyzer that knows nothing but the ranges of types.
    pub fn new() -> Analyzer {
        Analyzer {
            arena: Arena::default(),
            frames: vec![Frame::default()],
            counts: RuleCounts::default(),
            assumed_conditions: 0,
            fuel: 0,
        }
    }

    /// An equal expression in canonical form, cheaper wherever a rule applies. Equal means: the
    /// same value wherever the scope's facts hold and the original is defined.
    ///
    /// Below a depth of [`MAX_DEPTH`](crate::simplify::MAX_DEPTH) nodes expressions stay as
    /// they are.
    pub fn simplify(&mut self, e: &Expr) -> Expr {
        let t = self.term(e);
        let result = self.expr(t);
        // The original's spans are better than none.
        if same_shape(&result, e, 64) {
            return e.clone();
        }
        result.with_span(e.span())
    }

    /// How often each rule has been applied.
    pub fn rule_counts(&self) -> &RuleCounts {
        &self.counts
    }

    pub(crate) fn hit(&mut self, rule: Rule) {
        self.counts.hit(rule);
    }

    pub(crate) fn node(&self, t: Term) -> &Node {
        self.arena.node(t)
    }

    pub(crate) fn dtype(&self, t: Term) -> DType {
        self.arena.dtype(t)
    }

    pub(crate) fn constant(&self, t: Term) -> Option<i128> {
        self.arena.constant(t)
    }

    /// The innermost scope.
    pub(crate) fn frame(&mut self) -> &mut Frame {
        if self.frames.is_empty() {
            self.frames.push(Frame::default());
        }
        let last = self.frames.len() - 1;
        &mut self.frames[last]
    }

    pub(crate) fn int(&mut self, value: i128, dtype: DType) -> Term {
        let value = dtype.scalar.wrap(value);
        self.arena.intern(Node::Int(value), dtype)
    }

    pub(crate) fn boolean(&mut self, value: bool, like: DType) -> Term {
        self.int(value as i128, DType::BOOL.with_lanes(like.lanes))
    }
}

/// Structural equality that gives up, and says no, below a depth.
fn same_shape(a: &Expr, b: &Expr, depth: u32) -> bool {
    use tilewright_ir::ExprKind;
    if a.same_node(b) {
        return true;
    }
    if depth == 0 || a.dtype() != b.dtype() {
        return false;
    }
    let all = |x: &[Expr], y: &[Expr]| {
        x.len() == y.len() && x.iter().zip(y).all(|(x, y)| same_shape(x, y, depth - 1))
    };
    match (a.kind(), b.kind()) {
        (ExprKind::Int(x), ExprKind::Int(y)) => x == y,
        (ExprKind::Float(x), ExprKind::Float(y)) => x == y,
        (ExprKind::Var(x), ExprKind::Var(y)) => x == y,
        (ExprKind::Binary(p, a, b), ExprKind::Binary(q, c, d)) => {
            p == q && same_shape(a, c, depth - 1) && same_shape(b, d, depth - 1)
        }
        (
            ExprKind::Load { buffer, indices },
            ExprKind::Load {
                buffer: other,
                indices: others,
            },
        ) => buffer == other && all(indices, others),
        (ExprKind::Math(f, x), ExprKind::Math(g, y)) => f == g && all(x, y),
        (ExprKind::Cast(x), ExprKind::Cast(y))
        | (ExprKind::Reinterpret(x), ExprKind::Reinterpret(y))
        | (ExprKind::Broadcast(x), ExprKind::Broadcast(y)) => same_shape(x, y, depth - 1),
        (ExprKind::Unary(f, x), ExprKind::Unary(g, y)) => f == g && same_shape(x, y, depth - 1),
        (
            ExprKind::Select {
                cond,
                then,
                otherwise,
            },
            ExprKind::Select {
                cond: c,
                then: t,
                otherwise: o,
            },
        )
        | (
            ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            },
            ExprKind::IfThenElse {
                cond: c,
                then: t,
                otherwise: o,
            },
        ) => {
            same_shape(cond, c, depth - 1)
                && same_shape(then, t, depth - 1)
                && same_shape(otherwise, o, depth - 1)
        }
        _ => false,
    }
}
