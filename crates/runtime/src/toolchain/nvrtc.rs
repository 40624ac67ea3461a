//! NVRTC: CUDA C++ to a cubin inside this process, no GPU and no driver needed.
//!
//! The library is found by file name first and loaded only when something is compiled
//! (`library.rs` says why it has a table of its own): a process whose kernels are all in the
//! cache never pays for loading it.

use std::ffi::{c_char, c_int};
use std::path::Path;
use std::sync::OnceLock;

use super::rtc::{Names, Outcome, Program, RawProgram, Rtc, Status};
use super::search::{self, NotFound, NvrtcFile};
use super::{CompileError, CompileOptions, Cubin, check_arch, log};
use crate::env::Env;
use crate::library::{LoadError, c_api};

const NAMES: Names = Names {
    version: "nvrtcVersion",
    error_string: "nvrtcGetErrorString",
    create: "nvrtcCreateProgram",
    destroy: "nvrtcDestroyProgram",
    compile: "nvrtcCompileProgram",
    log_size: "nvrtcGetProgramLogSize",
    log: "nvrtcGetProgramLog",
    code_size: "nvrtcGetCUBINSize",
    code: "nvrtcGetCUBIN",
};

c_api! {
    /// What only NVRTC has.
    pub(crate) struct Own {
        supported_archs_count = "nvrtcGetNumSupportedArchs"(*mut c_int) -> Status;
        supported_archs = "nvrtcGetSupportedArchs"(*mut c_int) -> Status;
        ptx_size = "nvrtcGetPTXSize"(RawProgram, *mut usize) -> Status;
        ptx = "nvrtcGetPTX"(RawProgram, *mut c_char) -> Status;
    }
    optional {}
}

/// The loaded library.
#[derive(Debug)]
struct Api {
    rtc: Rtc,
    own: Own,
}

/// An NVRTC on this machine.
#[derive(Debug)]
pub struct Nvrtc {
    file: NvrtcFile,
    api: OnceLock<Result<Api, LoadError>>,
}

impl Nvrtc {
    /// Finds the library; nothing is loaded yet.
    pub fn find(env: &Env) -> Result<Self, NotFound> {
        Ok(Self {
            file: search::find_nvrtc(env)?,
            api: OnceLock::new(),
        })
    }

    pub fn file(&self) -> &NvrtcFile {
        &self.file
    }

    /// Names this build of NVRTC for cache keys. Does not load the library if the name of a file
    /// beside it tells the version.
    pub fn identity(&self) -> Result<String, CompileError> {
        let (major, minor) = match self.file.version {
            Some(version) => version,
            None => self.version()?,
        };
        Ok(format!("nvrtc {major}.{minor} ({} bytes)", self.file.bytes))
    }

    /// Loads the library and asks it.
    pub fn version(&self) -> Result<(u32, u32), CompileError> {
        self.api()?.rtc.version()
    }

    /// The GPU architectures this NVRTC compiles for, as 80 for sm_80.
    pub fn supported_archs(&self) -> Result<Vec<u32>, CompileError> {
        let api = self.api()?;
        let mut count = 0;
        // SAFETY: the pointer is valid for a write of an int.
        let status = unsafe { (api.own.supported_archs_count)(&mut count) };
        api.rtc.check("nvrtcGetNumSupportedArchs", status)?;
        let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the array has the number of ints that the library asked for.
        let status = unsafe { (api.own.supported_archs)(archs.as_mut_ptr()) };
        api.rtc.check("nvrtcGetSupportedArchs", status)?;
        Ok(archs.into_iter().map(c_int::unsigned_abs).collect())
    }

    /// Compiles `source` for `arch` (`sm_90a`).
    pub fn compile(
        &self,
        source: &str,
        arch: &str,
        options: &CompileOptions,
    ) -> Result<Cubin, CompileError> {
        check_arch(arch)?;
        let api = self.api()?;
        let archs = self.supported_archs()?;
        if !archs.iter().any(|sm| arch_number(arch) == Some(*sm)) {
            return Err(CompileError::UnsupportedArch {
                arch: arch.to_owned(),
                toolchain: self.identity()?,
                supported: archs,
            });
        }
        let mut arguments = vec![
            format!("--gpu-architecture={arch}"),
            "--ptxas-options=-v".to_owned(),
        ];
        arguments.extend(common_arguments(options));
        let program = Program::new(&api.rtc, source, &options.name)?;
        let outcome = program.compile(&arguments)?;
        let text = program.log()?;
        match outcome {
            Outcome::Compiled => {}
            Outcome::Refused => {
                let ptx = ptx_for_messages(api, source, arch, options, &text);
                return Err(CompileError::failed(text, source, options, ptx));
            }
            Outcome::BadOption => return Err(CompileError::Option { log: text }),
        }
        let bytes = program.code()?;
        let ptx = match options.ptx {
            true => Some(api.ptx(&program)?),
            false => None,
        };
        Cubin::new(arch, bytes, text, ptx)
    }

    fn api(&self) -> Result<&Api, CompileError> {
        let api = self.api.get_or_init(|| Api::load(&self.file.path));
        api.as_ref()
            .map_err(|error| CompileError::Load(error.clone()))
    }
}

impl Api {
    fn load(path: &Path) -> Result<Self, LoadError> {
        Ok(Self {
            rtc: Rtc::load(path, &NAMES)?,
            own: Own::load(path)?,
        })
    }

    fn ptx(&self, program: &Program<'_>) -> Result<String, CompileError> {
        program.text(self.own.ptx_size, self.own.ptx, "nvrtcGetPTX")
    }
}

/// The options that NVRTC and nvcc spell alike.
pub(super) fn common_arguments(options: &CompileOptions) -> Vec<String> {
    let mut arguments = vec!["--std=c++17".to_owned()];
    if options.fast_math {
        arguments.push("--use_fast_math".to_owned());
    }
    if options.line_info {
        arguments.push("-lineinfo".to_owned());
    }
    if let Some(registers) = options.max_registers {
        arguments.push(format!("--maxrregcount={registers}"));
    }
    for (name, value) in &options.defines {
        arguments.push(format!("--define-macro={name}={value}"));
    }
    for folder in &options.include_folders {
        arguments.push(format!("--include-path={}", folder.display()));
    }
    arguments.extend(options.extra.iter().cloned());
    arguments
}

/// 90 of `sm_90a`.
pub(super) fn arch_number(arch: &str) -> Option<u32> {
    let digits = arch.strip_prefix("sm_")?;
    let digits = digits.trim_end_matches(|c: char| c.is_ascii_lowercase());
    digits.parse().ok()
}

/// The assembler counts the lines of the PTX, which is gone when it fails. It is made again, so
/// that the error can show the line.
fn ptx_for_messages(
    api: &Api,
    source: &str,
    arch: &str,
    options: &CompileOptions,
    text: &str,
) -> Option<String> {
    let messages = log::messages(text);
    if !messages
        .iter()
        .any(|m| matches!(m.place, log::MessagePlace::Ptx { .. }))
    {
        return None;
    }
    let mut arguments = vec![format!(
        "--gpu-architecture={}",
        arch.replacen("sm_", "compute_", 1)
    )];
    arguments.extend(common_arguments(options));
    let program = Program::new(&api.rtc, source, &options.name).ok()?;
    match program.compile(&arguments) {
        Ok(Outcome::Compiled) => api.ptx(&program).ok(),
        _ => None,
    }
}
