//! Index arithmetic: canonical forms, intervals, congruences, rewrite rules, the prover.
//!
//! [`Analyzer`] is the way in. It simplifies expressions and proves claims about them under the
//! facts of the scope it is in. The machine computes index arithmetic in the expression's type
//! and wraps; a fact never survives arithmetic that can wrap.
//!
//! ```
//! use tilewright_arith::{Analyzer, Interval, Proof};
//! use tilewright_ir::{DType, Expr, Var};
//!
//! let var = |n| Expr::var(Var::from_u32(n), DType::I32);
//! let (tx, v, x) = (var(0), var(1), var(2));
//! let mut a = Analyzer::new();
//! a.bind_interval(Var::from_u32(0), DType::I32, Interval::new(0, 127));
//! a.bind_interval(Var::from_u32(1), DType::I32, Interval::new(0, 7));
//!
//! // Where a thread's vector of eight starts in rows of 32.
//! let linear = tx.clone() * 8 + v;
//! assert_eq!(a.simplify(&linear.clone().floor_div(32)), tx.clone().floor_div(4));
//! assert_eq!(a.prove_lt(&linear, &Expr::i32(1024)), Proof::Yes);
//!
//! // Nothing is known of x, so `4 * x` may wrap.
//! let e = (x.clone() * 4).floor_div(4);
//! assert_eq!(a.simplify(&e), e);
//! a.with_assumption(&x.clone().ge(0).and(x.clone().lt(1000)), |a| {
//!     assert_eq!(a.simplify(&e), x);
//! });
//! ```
//!
//! | module | holds |
//! |---|---|
//! | [`analyzer`] | the analyzer itself |
//! | [`rules`] | the table of rewrite rules, with their laws and counters |
//! | [`interval`], [`congruence`], [`domain`] | what can be known of an integer |
//! | `term`, `linear` | hash-consed terms; linear forms over them |
//! | `facts` | domain and integer form of a term: where wrap-around is ruled out |
//! | [`simplify`] | expressions to canonical terms; `emit` goes back |
//! | `sum`, `divmod`, `compare`, `bits`, `logic`, `vector` | the rules, by operation |
//! | `fold` | operations on constants |
//! | [`scope`] | scopes of facts: ranges, values, conditions |
//! | [`prover`] | proofs of comparisons, divisibility, bounds |
//! | [`disjoint`] | disjointness of index sets, injectivity of index maps |
//! | [`walk`] | walks over functions with the facts of each place |

pub mod analyzer;
mod bits;
mod compare;
pub mod congruence;
pub mod disjoint;
mod divmod;
pub mod domain;
mod emit;
mod eval;
mod facts;
mod fold;
pub mod interval;
mod linear;
mod logic;
pub mod prover;
pub mod rules;
pub mod scope;
pub mod simplify;
mod sum;
mod term;
mod vector;
pub mod walk;

pub use analyzer::Analyzer;
pub use congruence::Congruence;
pub use domain::Domain;
pub use fold::fold_int;
pub use interval::Interval;
pub use prover::Proof;
pub use rules::{Rule, RuleCounts};
pub use walk::Inside;
