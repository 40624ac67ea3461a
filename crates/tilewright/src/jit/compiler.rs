//! The compiler behind code generation: NVIDIA's or AMD's, by dialect.

use tilewright_ir::{Dialect, Target};
use tilewright_runtime::env::Env;
use tilewright_runtime::toolchain::{
    AmdToolchain, Binary, CompileError, CompileOptions, HipOptions, Toolchain,
};

use super::error::Error;

/// The compiler for a vendor's GPUs that this machine has.
#[derive(Debug)]
pub enum Compiler {
    Cuda(Toolchain),
    Hip(AmdToolchain),
}

/// What a compiler is told beside the source and the machine.
#[derive(Clone, Debug, Default)]
pub(super) struct Wishes {
    /// The name of the source in messages, without its ending.
    pub name: String,
    pub fast_math: bool,
    pub line_info: bool,
    /// Options passed on as they are.
    pub extra: Vec<String>,
}

impl Compiler {
    /// The compiler for a target, where it is found; nothing is loaded or run yet.
    pub fn find(target: Target, env: &Env) -> Result<Compiler, Error> {
        // Each dialect has a compiler of its own.
        let found = match target.machine().dialect {
            Dialect::Cuda => Toolchain::find(env).map(Compiler::Cuda),
            Dialect::Hip => AmdToolchain::find(env).map(Compiler::Hip),
        };
        found.map_err(Error::Toolchain)
    }

    /// Names the compiler and its version, for cache keys.
    pub fn identity(&self) -> Result<String, CompileError> {
        match self {
            Compiler::Cuda(toolchain) => toolchain.identity(),
            Compiler::Hip(toolchain) => toolchain.identity(),
        }
    }

    /// Compiles `source`, in this vendor's dialect, for `arch` (`sm_90a`, `gfx950`).
    pub(super) fn compile(
        &self,
        source: &str,
        arch: &str,
        wishes: Wishes,
    ) -> Result<Binary, CompileError> {
        let Wishes {
            name,
            fast_math,
            line_info,
            extra,
        } = wishes;
        match self {
            Compiler::Cuda(toolchain) => {
                let options = CompileOptions {
                    name: format!("{name}.cu"),
                    fast_math,
                    line_info,
                    extra,
                    ..CompileOptions::default()
                };
                let cubin = toolchain.compile(source, arch, &options)?;
                Ok(Binary::Cubin(cubin))
            }
            Compiler::Hip(toolchain) => {
                let options = HipOptions {
                    name: format!("{name}.hip"),
                    fast_math,
                    line_info,
                    extra,
                    ..HipOptions::default()
                };
                let hsaco = toolchain.compile(source, arch, &options)?;
                Ok(Binary::Hsaco(hsaco))
            }
        }
    }
}
