//! The schedule engine.
//!
//! One model of dependences over shared memory ([`access`], [`footprint`]) serves everything
//! that orders threads: the plain block barriers of [`thread_sync`] and, built on the same
//! accesses, the waits of pipelined loops.
//!
//! | module | question it answers |
//! |---|---|
//! | [`access`] | what shared memory does a statement touch, and which thread touches what? |
//! | [`exchange`] | which tensors must be looked at too? |
//! | [`footprint`] | can two accesses by different threads meet at one byte? |
//! | [`terms`], [`shape`] | the same, without asking twice about places that differ by a constant |
//! | [`slots`] | do two accesses mean different versions of a buffer? |
//! | [`facts`] | can what held at one access hold at another? |
//! | [`conflicts`] | what do two accesses of the kernel do to each other? |
//! | [`outline`] | which statements must be looked into? |
//! | [`ways`] | where was an access done, in terms of here? |
//! | [`pending`], [`walk`] | which accesses has no barrier closed yet, and what meets them? |
//! | [`order`] | what follows from the order in which a pipelined loop runs its ops? |
//! | [`register_waits`] | when are registers that LDS fills, and what is stored to it, there? |
//! | [`bare_barriers`] | which barriers leave loads under way? |
//! | [`thread_sync`] | where must the block wait for all its threads? |
//! | [`hazard`] | does what the program waits for order all it does? (shares nothing with the others) |

pub mod access;
pub mod bare_barriers;
pub mod conflicts;
pub mod exchange;
pub mod facts;
pub mod footprint;
pub mod hazard;
pub mod order;
pub mod outline;
pub mod pending;
pub mod register_waits;
pub mod shape;
pub mod slots;
pub mod terms;
pub mod thread_sync;
pub mod walk;
pub mod ways;

pub use bare_barriers::bare_barriers;
pub use register_waits::{product_waits, register_waits, store_waits};
pub use thread_sync::thread_sync;
