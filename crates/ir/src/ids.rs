//! Typed ids. `Display` of an id is its fallback name in the text form; entities that have a
//! name of their own are printed by it.

use cranelift_entity::entity_impl;

/// A scalar variable: a `let`, a loop index, a block or thread index, a symbol or a scalar
/// parameter. Its data is in [`Func::vars`](crate::Func::vars).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Var(u32);
entity_impl!(Var, "v");

/// A buffer. Its data is in [`Func::buffers`](crate::Func::buffers).
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord)]
pub struct Buffer(u32);
entity_impl!(Buffer, "b");
