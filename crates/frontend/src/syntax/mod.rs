//! Python text to the tree the evaluator walks.
//!
//! | module | holds |
//! |---|---|
//! | [`ast`] | the tree |
//! | [`symbols`] | interned names |
//! | [`guard`] | limits on size and depth, checked before parsing |
//! | [`parse`] | the parser's tree made into ours; the only user of the parser crate |

pub mod ast;
pub mod guard;
pub mod parse;
pub mod symbols;

pub use parse::parse_source;
pub use symbols::{Symbol, Symbols};
