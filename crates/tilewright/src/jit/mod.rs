//! From a tile kernel to one that runs on a GPU, in one process.
//!
//! [`build`] lowers a function for a target, generates source and compiles it, or takes the
//! compiled program from the kernel cache; on AMD it refuses what the audit finds wrong in it; [`Program::load`] puts it on a device; [`Loaded`]
//! runs it on host tensors, or again and again on device tensors.
//!
//! The key of the cache is a hash of the IR text, the target, the compile options, the form of
//! entries, the version of this compiler and that of the toolchain. Nothing else changes a kernel,
//! and nothing else is in the key. Sizes that are symbols in the IR stay run-time values, so one
//! program serves all of them.

pub mod audit;
mod compiler;
mod entry;
mod error;
pub mod gpu;
mod launch;
mod tensor_map;
mod timing;
mod work;

use std::time::{Duration, Instant};

use self::compiler::Wishes;
use crate::call;
use crate::lowering::{self, Lowered, Until};

use tilewright_codegen as codegen;
use tilewright_ir::{Diagnostics, Func, Kernel, Level, SourceMap, Span, Target, text};
use tilewright_runtime::cache::{Cache, Key, KeyBuilder, Outcome};
use tilewright_runtime::env::Env;
use tilewright_runtime::toolchain::Binary;

pub use compiler::Compiler;
pub use entry::{KernelMeta, MetaArg};
pub use error::Error;
pub use launch::{Call, Loaded};
pub use timing::{Flush, Pace, Runs, copy_rate, median, time_each};
pub use work::{Work, work};

/// How a function is compiled. The default asks for exact arithmetic.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Options {
    /// Approximate division, square root and transcendental functions.
    pub fast_math: bool,
    /// Line tables that point into the user's file, for profilers and `compute-sanitizer`.
    pub line_info: bool,
    /// The machine that the toolchain compiles for, where it is not the target: kernels lowered
    /// for sm_80 run on later GPUs when they are compiled for those. Like `sm_90a`.
    pub arch: Option<String>,
}

/// How long each part took; zero where the cache made it unnecessary.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Timings {
    pub passes: Duration,
    pub codegen: Duration,
    pub toolchain: Duration,
    /// Reading the compiled code and comparing it with the IR, on AMD.
    pub audit: Duration,
    /// Everything from the tile IR to the compiled program.
    pub total: Duration,
}

/// A compiled function.
#[derive(Clone, Debug)]
pub struct Program {
    pub target: Target,
    /// The function without its kernels' bodies: parameters, workspaces, launch shapes.
    pub signature: Func,
    pub kernels: Vec<KernelMeta>,
    /// Where each kernel stands in the user's files, like `gemm.py:40`: for the report of a
    /// fault. Not part of what the cache keeps.
    pub origins: Vec<Option<String>>,
    pub code: Binary,
    pub timings: Timings,
    /// Whether the program came from the cache.
    pub outcome: Outcome,
}

/// Lowers a tile-level function to device IR, with every pass checked by the verifier and the
/// result by the hazard checker. The warnings of the passes are handed out.
pub fn lower(func: &Func, target: Target) -> Result<(Func, Diagnostics), Error> {
    lowering::lower(func, target, Until::Level(Level::Device))
        .and_then(Lowered::checked)
        .map(|lowered| (lowered.func, lowered.warnings))
        .map_err(|refused| Error::Diagnostics(refused.errors))
}

/// Names this compiler for cache keys: its version, and a hash of the sources that decide what a
/// kernel is compiled to.
pub const COMPILER: &str = concat!(env!("CARGO_PKG_VERSION"), " ", env!("TILEWRIGHT_SOURCES"));

/// Names a program by what it is made from.
pub fn key(func: &Func, target: Target, options: &Options, toolchain: &str) -> Key {
    KeyBuilder::new()
        .part("ir", text::print(func))
        .part("target", target.name())
        .part("options", format!("{options:?}"))
        .part("compiler", COMPILER)
        .part("entry", entry::FORMAT)
        .part("toolchain", toolchain)
        .finish()
}

/// Compiles a function with the toolchain and the cache of this environment.
pub fn build(
    func: &Func,
    target: Target,
    options: &Options,
    sources: Option<&SourceMap>,
    env: &Env,
) -> Result<Program, Error> {
    let compiler = Compiler::find(target, env)?;
    let cache = Cache::open(env);
    build_with(func, target, options, sources, &compiler, &cache)
}

/// Compiles a function with the compiler for its target: tile IR is lowered, device IR is taken as
/// it is.
pub fn build_with(
    func: &Func,
    target: Target,
    options: &Options,
    sources: Option<&SourceMap>,
    compiler: &Compiler,
    cache: &Cache,
) -> Result<Program, Error> {
    if func.level == Level::Loop {
        return Err(Error::half_lowered(func));
    }
    let start = Instant::now();
    let mut timings = Timings::default();
    let identity = compiler.identity().map_err(Error::Toolchain)?;
    let key = key(func, target, options, &identity);
    let (bytes, outcome) = cache.get_or_build(&key, &label(func, target), || {
        compiled(func, target, options, sources, compiler, &mut timings)
    })?;
    timings.total = start.elapsed();
    let mut entry = entry::decode(&bytes)?;
    locate(&mut entry.signature, func);
    Ok(Program {
        target,
        signature: entry.signature,
        kernels: entry.kernels,
        origins: func.kernels.iter().map(|k| origin(k, sources)).collect(),
        code: entry.code,
        timings,
        outcome,
    })
}

/// What a program's entry of the cache is called, for people.
fn label(func: &Func, target: Target) -> String {
    format!("{} {target}", func.name)
}

/// Compiles a function to what the cache keeps.
fn compiled(
    func: &Func,
    target: Target,
    options: &Options,
    sources: Option<&SourceMap>,
    compiler: &Compiler,
    timings: &mut Timings,
) -> Result<Vec<u8>, Error> {
    let at = Instant::now();
    let (device, _) = lower(func, target)?;
    timings.passes = at.elapsed();
    let at = Instant::now();
    let printed = codegen::Options {
        sources,
        line_directives: options.line_info,
    };
    let source = codegen::generate(&device, target, printed).map_err(|d| Error::from(*d))?;
    timings.codegen = at.elapsed();
    let at = Instant::now();
    let arch = options.arch.as_deref().unwrap_or(target.name());
    let wishes = Wishes {
        name: device.name.clone(),
        fast_math: options.fast_math,
        line_info: options.line_info,
        extra: source.flags.clone(),
    };
    let code = compiler
        .compile(&source.text, arch, wishes)
        .map_err(Error::Toolchain)?;
    timings.toolchain = at.elapsed();
    // hiprtc gives no assembly to read.
    if let Binary::Hsaco(program) = &code
        && !program.asm().is_empty()
    {
        let at = Instant::now();
        let names: Vec<String> = source.kernels.iter().map(|k| k.name.clone()).collect();
        audit::refuse(&device, target, &names, program.asm()).map_err(Error::Diagnostics)?;
        timings.audit = at.elapsed();
    }
    Ok(entry::encode(&device, &source, &code))
}

/// Compiles tile IR on a machine that will not run it: the key under which the cache of one that
/// will is to have it, and its bytes.
pub fn compile_for_another(
    func: &Func,
    target: Target,
    options: &Options,
    env: &Env,
) -> Result<(Key, Vec<u8>), Error> {
    let compiler = Compiler::find(target, env)?;
    let identity = compiler.identity().map_err(Error::Toolchain)?;
    let key = key(func, target, options, &identity);
    let mut timings = Timings::default();
    let bytes = compiled(func, target, options, None, &compiler, &mut timings)?;
    Ok((key, bytes))
}

/// Takes over what another machine compiled; false where this one would compile something else, by
/// another version of a compiler, or the bytes are no program.
pub fn keep_of_another(
    func: &Func,
    target: Target,
    options: &Options,
    (made, bytes): (&Key, &[u8]),
    env: &Env,
) -> Result<bool, Error> {
    let compiler = Compiler::find(target, env)?;
    let identity = compiler.identity().map_err(Error::Toolchain)?;
    let key = key(func, target, options, &identity);
    if key != *made || entry::decode(bytes).is_err() {
        return Ok(false);
    }
    let kept = Cache::open(env).get_or_build(&key, &label(func, target), || {
        Ok::<_, Error>(bytes.to_vec())
    });
    kept.map(|_| true)
}

/// Gives the tensors the places that they have in the user's file: the entry was made from text of
/// its own.
fn locate(signature: &mut Func, func: &Func) {
    let tensors: Vec<_> = call::tensors(signature).collect();
    for tensor in tensors {
        let data = &mut signature.buffers[tensor];
        let own = func.buffers.values().find(|own| own.name == data.name);
        data.span = own.map_or(Span::NONE, |own| own.span);
    }
}

fn origin(kernel: &Kernel, sources: Option<&SourceMap>) -> Option<String> {
    let sources = sources?;
    let (line, _) = sources.line_col(kernel.span)?;
    Some(format!("{}:{line}", sources.name(kernel.span.file)))
}
