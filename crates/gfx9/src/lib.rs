//! AMD CDNA3 and CDNA4 machine code as data.
//!
//! There may be no AMD GPU where kernels are compiled, so the compiled assembly is the evidence:
//!
//! - [`isa`]: the instruction set as a table;
//! - [`asm`]: reads the text that LLVM prints (`clang -S`) into instructions, labels and the
//!   kernels' needs, and knows which registers an instruction reads and writes;
//! - [`emu`]: runs compiled kernels;
//! - [`cycles`]: says how long a block takes on a compute unit, and what it waits for;
//! - [`audit`]: compares a compiled kernel's hot loop with what its schedule asked for.
//!
//! The crate knows nothing of the IR: an expectation is plain numbers.

pub mod asm;
pub mod audit;
pub mod cycles;
pub mod emu;
mod few;
pub mod isa;

pub use few::Few;
