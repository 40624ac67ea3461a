//! The [`Analyzer`]: one place that knows what holds here, rewrites and proves.

use rustc_hash::FxHashMap;
use tilewright_ir::{BinOp, DType, Expr, ExprKind};

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
    /// The innermost scope with facts of its own. What is worked out in the scopes within it
    /// holds in it too, so its cache serves them all.
    pub(crate) cache_at: usize,
    pub(crate) counts: RuleCounts,
    /// How many conditions of the expression being simplified are assumed right now.
    pub(crate) assumed_conditions: u32,
    /// How many more of them may be assumed.
    pub(crate) conditions_left: u32,
    /// Eliminations left to the prover for the goal at hand.
    pub(crate) fuel: u32,
    /// Whether a proof was asked for, which is worth more work than a simplification.
    pub(crate) proving: bool,
}

/// What has been worked out in a scope. Thrown away whenever the scope learns a fact.
#[derive(Debug, Default)]
pub(crate) struct Cache {
    /// By address of the expression's node; the expression is held so that its address stays
    /// its own.
    pub terms: FxHashMap<usize, (Expr, Term)>,
    /// Results of operations, for expressions that say the same with other nodes.
    pub binary: FxHashMap<(BinOp, Term, Term), Term>,
    pub info: FxHashMap<Term, (Domain, Form)>,
    pub forms: Vec<Lin>,
}

/// How the integer value of a term is written as a linear form.
#[derive(Clone, Copy, Debug)]
pub(crate) enum Form {
    /// As itself.
    Atom,
    /// As the form with this index in the cache; nothing wraps in it.
    Linear(u32),
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
            cache_at: 0,
            counts: RuleCounts::default(),
            assumed_conditions: 0,
            conditions_left: 0,
            fuel: 0,
            proving: false,
        }
    }

    /// An equal expression in canonical form, cheaper wherever a rule applies. Equal means: the
    /// same value wherever the scope's facts hold and the original is defined.
    ///
    /// Below a depth of [`MAX_DEPTH`](crate::simplify::MAX_DEPTH) nodes expressions stay as
    /// they are.
    pub fn simplify(&mut self, e: &Expr) -> Expr {
        if let ExprKind::Int(_) | ExprKind::Float(_) = e.kind() {
            return e.clone();
        }
        let t = self.term(e);
        let result = self.expr(t);
        // The original's spans are better than none.
        if same_shape(&result, e, &mut 256) {
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

    /// What has been worked out under the facts that hold here.
    pub(crate) fn cache(&mut self) -> &mut Cache {
        &mut self.frames[self.cache_at].cache
    }

    /// The innermost scope.
    pub(crate) fn frame(&mut self) -> &mut Frame {
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

/// Structural equality that gives up, and says no, after a number of nodes.
fn same_shape(a: &Expr, b: &Expr, nodes: &mut u32) -> bool {
    if a.same_node(b) {
        return true;
    }
    if *nodes == 0 || a.dtype() != b.dtype() {
        return false;
    }
    *nodes -= 1;
    let same_node = match (a.kind(), b.kind()) {
        (ExprKind::Int(x), ExprKind::Int(y)) => return x == y,
        (ExprKind::Float(x), ExprKind::Float(y)) => return x == y,
        (ExprKind::Var(x), ExprKind::Var(y)) => return x == y,
        // The most frequent kind, without lists of operands.
        (ExprKind::Binary(p, a, b), ExprKind::Binary(q, x, y)) => {
            return p == q && same_shape(a, x, nodes) && same_shape(b, y, nodes);
        }
        (ExprKind::Load { buffer: p, .. }, ExprKind::Load { buffer: q, .. }) => p == q,
        (ExprKind::Math(p, _), ExprKind::Math(q, _)) => p == q,
        (ExprKind::Unary(p, _), ExprKind::Unary(q, _)) => p == q,
        (ExprKind::Cast(_), ExprKind::Cast(_))
        | (ExprKind::Reinterpret(_), ExprKind::Reinterpret(_))
        | (ExprKind::Broadcast(_), ExprKind::Broadcast(_))
        | (ExprKind::Select { .. }, ExprKind::Select { .. })
        | (ExprKind::IfThenElse { .. }, ExprKind::IfThenElse { .. }) => true,
        _ => false,
    };
    if !same_node {
        return false;
    }
    let (x, y) = (a.operands(), b.operands());
    x.len() == y.len() && x.iter().zip(&y).all(|(x, y)| same_shape(x, y, nodes))
}
