//! Tilewright: a compiler for GPU tile kernels.
//!
//! This crate is what Rust users depend on. It re-exports the parts by their names and adds
//! [`lowering`], the passes of a target with every check, [`verdict`], whether a result is right,
//! and [`jit`], which puts all of them together to run kernels on a GPU: see [`ir`] for the IR and the
//! builder, [`frontend`] for kernels in Python syntax, [`sim`] for running them on this machine,
//! [`npy`] for tensors in files, [`emulate`] for running compiled AMD code on it, [`schedule`] for the hazard checker.

//!
//! ```
//! use tilewright::ir::builder::FuncBuilder;
//! use tilewright::ir::{DType, Target};
//!
//! let mut f = FuncBuilder::new("double");
//! let x = f.output("X", DType::F32, [256]);
//! f.kernel([2], 128, |t, [bx]| {
//!     let tile = t.fragment("tile", DType::F32, [128]);
//!     t.fill(&tile, 2.0);
//!     t.copy(&tile, x.tile([bx * 128], [128]));
//! });
//! let func = f.finish().unwrap();
//! let lowered = tilewright::lower(&func, Target::DEFAULT).unwrap();
//! assert_eq!(lowered.level, tilewright::ir::Level::Device);
//! ```

mod call;
pub mod decisions;
pub mod emulate;
pub mod explain;
pub mod jit;
pub mod lowering;
pub mod npy;
pub mod timeline;
pub mod tune;
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

/// Lowers a function for a target to device IR, with every check: the verifier after each pass, and the
/// hazard checker over the result. [`lowering::lower`] also says what the passes remarked.
pub fn lower(func: &ir::Func, target: ir::Target) -> Result<ir::Func, ir::Diagnostics> {
    let until = lowering::Until::Level(ir::Level::Device);
    let lowered = lowering::lower(func, target, until).and_then(lowering::Lowered::checked);
    lowered.map(|l| l.func).map_err(|refused| refused.errors)
}
