//! Tilewright: a compiler for GPU tile kernels.
//!
//! This crate is what Rust users depend on. It re-exports the parts by their names and adds
//! [`lowering`], the passes of a target with every check, [`verdict`], whether a result is right,
//! and [`jit`], which puts all of them together to run kernels on a GPU: see [`ir`] for the IR and the
//! builder, [`frontend`] for kernels in Python syntax, [`sim`] for running them on this machine,
//! [`npy`] for tensors in files, [`emulate`] for running compiled AMD code on it, [`schedule`] for the hazard checker.

mod call;
pub mod decisions;
pub mod emulate;
pub mod explain;
pub mod jit;
pub mod lowering;
pub mod npy;
pub mod timeline;
pub mod verdict;

pub use tilewright_arith as arith;
pub use tilewright_codegen as codegen;
pub use tilewright_frontend as frontend;
pub use tilewright_gfx9 as gfx9;
pub use tilewright_ir as ir;
pub use tilewright_layout as layout;
pub use tilewright_passes as passes;
pub use tilewright_runtime as runtime;
pub use tilewright_schedule as schedule;
pub use tilewright_sim as sim;
