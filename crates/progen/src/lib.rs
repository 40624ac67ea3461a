//! Random tile programs, the answers that they must give, and the ways to run them.
//!
//! A program is data ([`program`]): [`generate`] makes one from a seed, [`source`] prints it in
//! TileLang's syntax, [`plain`] works out what it computes, [`executors`] runs it through every
//! part of the compiler and compares, [`shrink`] makes a failing one smaller, [`census`] says
//! which constructs it has. All values are small whole numbers, exact in their types in every
//! order of summation, so results are compared for equality.

pub mod census;
pub mod executors;
pub mod failure;
pub mod generate;
pub mod plain;
pub mod program;
pub mod rng;
pub mod shrink;
pub mod source;
pub mod types;
