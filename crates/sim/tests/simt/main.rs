//! Tests of the SIMT simulator.
//!
//! Most are files in this folder: a `.tw` text of a lowered function with a header.
//!
//! ```text
//! # target: sm_80 gfx942          the targets to run it for
//! # set: m=100                    sizes and scalars
//! # fill: A=iota B=iota7          an input other than random: counted up, modulo seven
//! # reference: same               the reference evaluator runs the same text
//! # needed: all barriers and waits     without any one of them something is found
//! # landing: all                  try early and late landing of asynchronous operations
//! # expect: race-read-write 9 11  a finding and the lines of its two statements
//! # expect: deadlock 3 | deadlock 4   one of these, or several
//! # possibly: deadlock 12         a finding of some orders only
//! ```
//!
//! A file is run with several seeds and both interleavings, and must find exactly what it
//! expects each time. A second function `@reference`, in tile IR, is run by the reference
//! evaluator on the same inputs; with `# reference: same` the function itself is, as tile IR.
//! The outputs must be equal.

mod bulk;
mod bulk_mutants;
mod bulk_rows_mutants;
mod common;
mod counts;
mod errors;
mod files;
mod matrix;
mod mutation;
mod pair_mutants;
