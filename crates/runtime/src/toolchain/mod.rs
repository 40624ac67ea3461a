//! From CUDA C++ source to a cubin: NVRTC inside the process, nvcc where there is none. From HIP
//! source to a code object for AMD GPUs: clang, hiprtc where there is none.
//!
//! The result carries what the code generator's users ask about: registers, shared memory, stack
//! and spills of every kernel, and the compile log. An error carries the messages with the source
//! lines they speak of.

pub mod amd_search;
mod binary;
pub mod clang;
pub mod cubin;
mod elf;
pub mod error;
pub mod hiprtc;
pub mod hsaco;
pub mod log;
pub mod nvcc;
pub mod nvrtc;
mod rtc;
pub mod search;

use std::path::PathBuf;

pub use binary::{Binary, Needs};
pub use clang::{AmdClang, HipOptions, Hsaco};
pub use cubin::{KernelInfo, Spills};
pub use error::CompileError;
pub use hiprtc::Hiprtc;
pub use hsaco::{AmdArg, AmdKernelInfo};
pub use nvcc::Nvcc;
pub use nvrtc::Nvrtc;
pub use search::NotFound;

use crate::env::Env;

/// How to compile. The default is what generated kernels need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct CompileOptions {
    /// The name of the source in messages.
    pub name: String,
    /// Approximate division, square root and transcendental functions, no denormals.
    pub fast_math: bool,
    /// Line tables, for profilers and `compute-sanitizer`.
    pub line_info: bool,
    pub max_registers: Option<u32>,
    /// Keep the PTX beside the cubin.
    pub ptx: bool,
    pub defines: Vec<(String, String)>,
    pub include_folders: Vec<PathBuf>,
    /// Options passed on as they are.
    pub extra: Vec<String>,
}

impl Default for CompileOptions {
    fn default() -> Self {
        Self {
            name: "kernel.cu".to_owned(),
            fast_math: false,
            line_info: false,
            max_registers: None,
            ptx: false,
            defines: Vec::new(),
            include_folders: Vec::new(),
            extra: Vec::new(),
        }
    }
}

impl CompileOptions {
    /// Text that is equal exactly when the options make the same kernel: for cache keys.
    pub fn fingerprint(&self) -> String {
        format!("{self:?}")
    }
}

/// A compiled program. Its parts fit each other, which launching relies on, so they cannot be
/// changed from outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Cubin {
    arch: String,
    bytes: Vec<u8>,
    log: String,
    ptx: Option<String>,
    kernels: Vec<KernelInfo>,
}

impl Cubin {
    /// Reads the kernels' figures from the file and their spills from the log.
    pub fn new(
        arch: &str,
        bytes: Vec<u8>,
        log: String,
        ptx: Option<String>,
    ) -> Result<Self, CompileError> {
        let mut kernels = cubin::kernels(&bytes).map_err(CompileError::Cubin)?;
        for report in log::assembler_reports(&log) {
            if let Some(kernel) = kernels.iter_mut().find(|k| k.name == report.kernel) {
                kernel.spills = Some(Spills {
                    stores: report.spill_stores,
                    loads: report.spill_loads,
                });
            }
        }
        Ok(Self {
            arch: arch.to_owned(),
            bytes,
            log,
            ptx,
            kernels,
        })
    }

    /// A program of which only the description is real, for tests without a driver.
    #[cfg(test)]
    pub(crate) fn described(arch: &str, kernels: Vec<KernelInfo>) -> Self {
        Self {
            arch: arch.to_owned(),
            bytes: Vec::new(),
            log: String::new(),
            ptx: None,
            kernels,
        }
    }

    /// What it was compiled for: `sm_90a`.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// The ELF file that the driver loads.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// All that the compiler and the assembler printed.
    pub fn log(&self) -> &str {
        &self.log
    }

    /// On request, without the NUL that NVRTC puts at its end.
    pub fn ptx(&self) -> Option<&str> {
        self.ptx.as_deref()
    }

    pub fn kernels(&self) -> &[KernelInfo] {
        &self.kernels
    }

    pub fn kernel(&self, name: &str) -> Option<&KernelInfo> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    /// Warnings of the compiler and the assembler.
    pub fn warnings(&self) -> Vec<log::Message> {
        log::messages(&self.log)
    }

    /// One byte string for the cache: each part with its length in front.
    pub fn encode(&self) -> Vec<u8> {
        let ptx = self.ptx.as_deref().unwrap_or_default();
        let parts = [
            self.arch.as_bytes(),
            &self.bytes,
            self.log.as_bytes(),
            ptx.as_bytes(),
        ];
        encode_parts(u8::from(self.ptx.is_some()), parts)
    }

    /// The inverse of [`Cubin::encode`].
    pub fn decode(encoded: &[u8]) -> Result<Self, CompileError> {
        let parts = split(encoded).ok_or_else(|| {
            CompileError::Cubin(cubin::BadCubin("its cache entry is cut short".to_owned()))
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let (has_ptx, [arch, bytes, log, ptx]) = parts;
        Self::new(
            &text(arch),
            bytes.to_vec(),
            text(log),
            has_ptx.then(|| text(ptx)),
        )
    }
}

/// A flag and four parts, each with its length in front.
fn encode_parts(flag: u8, parts: [&[u8]; 4]) -> Vec<u8> {
    let mut out = vec![flag];
    for part in parts {
        out.extend_from_slice(&(part.len() as u64).to_le_bytes());
        out.extend_from_slice(part);
    }
    out
}

/// The inverse of [`encode_parts`].
fn split(encoded: &[u8]) -> Option<(bool, [&[u8]; 4])> {
    let (flag, mut rest) = encoded.split_first()?;
    let mut parts: [&[u8]; 4] = [&[]; 4];
    for part in &mut parts {
        let (length, tail) = rest.split_first_chunk::<8>()?;
        let length = usize::try_from(u64::from_le_bytes(*length)).ok()?;
        *part = tail.get(..length)?;
        rest = &tail[length..];
    }
    rest.is_empty().then_some((*flag != 0, parts))
}

/// The compiler for CUDA that this machine has.
#[derive(Debug)]
pub enum Toolchain {
    Nvrtc(Nvrtc),
    Nvcc(Nvcc),
}

impl Toolchain {
    /// NVRTC, or nvcc where there is none. An NVRTC that the user named and that is not there is
    /// an error, not a reason to take nvcc.
    pub fn find(env: &Env) -> Result<Self, CompileError> {
        let missing = match Nvrtc::find(env) {
            Ok(nvrtc) => return Ok(Self::Nvrtc(nvrtc)),
            Err(missing) => missing,
        };
        if env.get(crate::env::NVRTC).is_none()
            && let Ok(nvcc) = Nvcc::find(env)
        {
            return Ok(Self::Nvcc(nvcc));
        }
        Err(CompileError::NotFound(missing))
    }

    /// Names the compiler and its version, for cache keys.
    pub fn identity(&self) -> Result<String, CompileError> {
        match self {
            Self::Nvrtc(nvrtc) => nvrtc.identity(),
            Self::Nvcc(nvcc) => nvcc.identity(),
        }
    }

    /// Compiles `source` for `arch` (`sm_90a`).
    pub fn compile(
        &self,
        source: &str,
        arch: &str,
        options: &CompileOptions,
    ) -> Result<Cubin, CompileError> {
        match self {
            Self::Nvrtc(nvrtc) => nvrtc.compile(source, arch, options),
            Self::Nvcc(nvcc) => nvcc.compile(source, arch, options),
        }
    }
}

/// The compiler for AMD that this machine has.
#[derive(Debug)]
pub enum AmdToolchain {
    Clang(AmdClang),
    Hiprtc(Hiprtc),
}

impl AmdToolchain {
    /// clang, or hiprtc where there is none. A clang that the user named and that is not there is
    /// an error, not a reason to take hiprtc.
    pub fn find(env: &Env) -> Result<Self, CompileError> {
        let missing = match AmdClang::find(env) {
            Ok(clang) => return Ok(Self::Clang(clang)),
            Err(missing) => missing,
        };
        if env.get(crate::env::CLANG).is_none()
            && let Ok(hiprtc) = Hiprtc::find(env)
        {
            return Ok(Self::Hiprtc(hiprtc));
        }
        Err(CompileError::NotFound(missing))
    }

    /// Names the compiler and its version, for cache keys.
    pub fn identity(&self) -> Result<String, CompileError> {
        match self {
            Self::Clang(clang) => clang.identity(),
            Self::Hiprtc(hiprtc) => Ok(hiprtc.identity()),
        }
    }

    /// Compiles `source` for `arch` (`gfx950`). Only clang gives the assembly with it.
    pub fn compile(
        &self,
        source: &str,
        arch: &str,
        options: &HipOptions,
    ) -> Result<Hsaco, CompileError> {
        match self {
            Self::Clang(clang) => clang.compile(source, arch, options),
            Self::Hiprtc(hiprtc) => hiprtc.compile(source, arch, options),
        }
    }
}

/// A machine code target is `sm_` with a number and perhaps a letter; anything else would reach
/// the compiler as another option.
fn check_arch(arch: &str) -> Result<(), CompileError> {
    let good = nvrtc::arch_number(arch).is_some_and(|number| number >= 50)
        && arch.len() <= "sm_120a".len();
    match good {
        true => Ok(()),
        false => Err(CompileError::BadArch {
            arch: arch.to_owned(),
        }),
    }
}
