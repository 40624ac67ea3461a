//! Index arithmetic: canonical forms, intervals, congruences, rewrite rules, the prover.
//!
//! [`Analyzer`] is the way in. It simplifies expressions and proves claims about them under the
//! facts of the scope it is in. The machine computes index arithmetic in the expression's type
//! and wraps; a fact never survives arithmetic that can wrap.
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
pub use interval::Interval;
pub use prover::Proof;
pub use rules::{Rule, RuleCounts};
