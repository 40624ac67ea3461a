//! hiprtc: HIP source to a code object inside this process, where ROCm is installed and no clang
//! of its own is found.
//!
//! It gives no assembly, so what it compiles cannot be audited. The library is loaded only when
//! something is compiled, as NVRTC is.

use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::amd_search;
use super::clang::{HipOptions, Hsaco, check_arch, language_arguments, stamp};
use super::error::CompileError;
use super::rtc::{Names, Outcome, Program, Rtc};
use super::search::NotFound;
use crate::env::Env;
use crate::library::LoadError;

const NAMES: Names = Names {
    version: "hiprtcVersion",
    error_string: "hiprtcGetErrorString",
    create: "hiprtcCreateProgram",
    destroy: "hiprtcDestroyProgram",
    compile: "hiprtcCompileProgram",
    log_size: "hiprtcGetProgramLogSize",
    log: "hiprtcGetProgramLog",
    code_size: "hiprtcGetCodeSize",
    code: "hiprtcGetCode",
};

/// A hiprtc on this machine.
#[derive(Debug)]
pub struct Hiprtc {
    path: PathBuf,
    rtc: OnceLock<Result<Rtc, LoadError>>,
}

impl Hiprtc {
    /// Finds the library; nothing is loaded yet.
    pub fn find(env: &Env) -> Result<Self, NotFound> {
        let (path, _) = amd_search::find_hiprtc(env)?;
        Ok(Self {
            path,
            rtc: OnceLock::new(),
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// Names this build for cache keys; nothing is loaded.
    pub fn identity(&self) -> String {
        let real = self
            .path
            .canonicalize()
            .unwrap_or_else(|_| self.path.clone());
        format!("hiprtc {} {}", real.display(), stamp(&real))
    }

    /// Loads the library and asks it.
    pub fn version(&self) -> Result<(u32, u32), CompileError> {
        self.rtc()?.version()
    }

    /// Compiles `source` for `arch` (`gfx950`) to a code object, without its assembly.
    pub fn compile(
        &self,
        source: &str,
        arch: &str,
        options: &HipOptions,
    ) -> Result<Hsaco, CompileError> {
        check_arch(arch)?;
        let mut arguments = vec![format!("--offload-arch={arch}")];
        arguments.extend(language_arguments(options));
        let program = Program::new(self.rtc()?, source, &options.name)?;
        let outcome = program.compile(&arguments)?;
        let log = program.log()?;
        match outcome {
            Outcome::Compiled => {}
            Outcome::Refused => {
                return Err(CompileError::refused(
                    "HIP",
                    log,
                    source,
                    &options.name,
                    None,
                ));
            }
            Outcome::BadOption => return Err(CompileError::Option { log }),
        }
        Hsaco::new(arch, program.code()?, String::new(), log)
    }

    fn rtc(&self) -> Result<&Rtc, CompileError> {
        let rtc = self.rtc.get_or_init(|| Rtc::load(&self.path, &NAMES));
        rtc.as_ref()
            .map_err(|error| CompileError::LoadHiprtc(error.clone()))
    }
}
