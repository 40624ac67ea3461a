//! NVRTC: CUDA C++ to a cubin inside this process, no GPU and no driver needed.
//!
//! The library is found by file name first and loaded only when something is compiled
//! (`library.rs` says why it has a table of its own): a process whose kernels are all in the
//! cache never pays for loading it.

use std::ffi::{CStr, CString, c_char, c_int};
use std::sync::OnceLock;

use super::search::{self, NotFound, NvrtcFile};
use super::{CompileError, CompileOptions, Cubin, check_arch, log};
use crate::env::Env;
use crate::library::{LoadError, c_api};

type Program = *mut std::ffi::c_void;
type Status = c_int;

const SUCCESS: Status = 0;
const INVALID_OPTION: Status = 5;
const COMPILATION: Status = 6;

c_api! {
    /// The functions of `nvrtc.h` that we call.
    pub(crate) struct Api {
        version = "nvrtcVersion"(*mut c_int, *mut c_int) -> Status;
        error_string = "nvrtcGetErrorString"(Status) -> *const c_char;
        supported_archs_count = "nvrtcGetNumSupportedArchs"(*mut c_int) -> Status;
        supported_archs = "nvrtcGetSupportedArchs"(*mut c_int) -> Status;
        create = "nvrtcCreateProgram"(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> Status;
        destroy = "nvrtcDestroyProgram"(*mut Program) -> Status;
        compile = "nvrtcCompileProgram"(Program, c_int, *const *const c_char) -> Status;
        log_size = "nvrtcGetProgramLogSize"(Program, *mut usize) -> Status;
        log = "nvrtcGetProgramLog"(Program, *mut c_char) -> Status;
        cubin_size = "nvrtcGetCUBINSize"(Program, *mut usize) -> Status;
        cubin = "nvrtcGetCUBIN"(Program, *mut c_char) -> Status;
        ptx_size = "nvrtcGetPTXSize"(Program, *mut usize) -> Status;
        ptx = "nvrtcGetPTX"(Program, *mut c_char) -> Status;
    }
    optional {}
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
        let api = self.api()?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid for a write of an int.
        let status = unsafe { (api.version)(&mut major, &mut minor) };
        check(api, "nvrtcVersion", status)?;
        Ok((major.unsigned_abs(), minor.unsigned_abs()))
    }

    /// The GPU architectures this NVRTC compiles for, as 80 for sm_80.
    pub fn supported_archs(&self) -> Result<Vec<u32>, CompileError> {
        let api = self.api()?;
        let mut count = 0;
        // SAFETY: the pointer is valid for a write of an int.
        let status = unsafe { (api.supported_archs_count)(&mut count) };
        check(api, "nvrtcGetNumSupportedArchs", status)?;
        let mut archs = vec![0; usize::try_from(count).unwrap_or(0)];
        // SAFETY: the array has the number of ints that the library asked for.
        let status = unsafe { (api.supported_archs)(archs.as_mut_ptr()) };
        check(api, "nvrtcGetSupportedArchs", status)?;
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
        let program = ProgramHandle::new(api, source, &options.name)?;
        let status = program.compile(&arguments)?;
        let text = program.log()?;
        match status {
            SUCCESS => {}
            COMPILATION => {
                let ptx = ptx_for_messages(api, source, arch, options, &text);
                return Err(CompileError::failed(text, source, options, ptx));
            }
            INVALID_OPTION => return Err(CompileError::Option { log: text }),
            _ => return Err(internal(api, "nvrtcCompileProgram", status)),
        }
        let bytes = program.read(api.cubin_size, api.cubin, "nvrtcGetCUBIN")?;
        let ptx = match options.ptx {
            true => Some(program.ptx()?),
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
        .any(|m| matches!(m.place, log::Place::Ptx { .. }))
    {
        return None;
    }
    let mut arguments = vec![format!(
        "--gpu-architecture={}",
        arch.replacen("sm_", "compute_", 1)
    )];
    arguments.extend(common_arguments(options));
    let program = ProgramHandle::new(api, source, &options.name).ok()?;
    match program.compile(&arguments) {
        Ok(SUCCESS) => program.ptx().ok(),
        _ => None,
    }
}

/// A program that is destroyed when it goes out of scope.
struct ProgramHandle<'a> {
    api: &'a Api,
    raw: Program,
}

impl<'a> ProgramHandle<'a> {
    fn new(api: &'a Api, source: &str, name: &str) -> Result<Self, CompileError> {
        let source = c_string("the source", source)?;
        let name = c_string("the program's name", name)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: both strings end in NUL and live through the call, which copies them; there are
        // no headers, so the arrays may be null.
        let status = unsafe {
            (api.create)(
                &mut raw,
                source.as_ptr(),
                name.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        check(api, "nvrtcCreateProgram", status)?;
        Ok(Self { api, raw })
    }

    fn compile(&self, arguments: &[String]) -> Result<Status, CompileError> {
        let strings: Vec<CString> = arguments
            .iter()
            .map(|argument| c_string("an option", argument))
            .collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = strings.iter().map(|s| s.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        // SAFETY: `pointers` holds `count` strings that outlive the call.
        Ok(unsafe { (self.api.compile)(self.raw, count, pointers.as_ptr()) })
    }

    fn log(&self) -> Result<String, CompileError> {
        let bytes = self.read(self.api.log_size, self.api.log, "nvrtcGetProgramLog")?;
        Ok(c_text(bytes))
    }

    fn ptx(&self) -> Result<String, CompileError> {
        let bytes = self.read(self.api.ptx_size, self.api.ptx, "nvrtcGetPTX")?;
        Ok(c_text(bytes))
    }

    fn read(
        &self,
        size: unsafe extern "C" fn(Program, *mut usize) -> Status,
        get: unsafe extern "C" fn(Program, *mut c_char) -> Status,
        call: &'static str,
    ) -> Result<Vec<u8>, CompileError> {
        let mut length = 0;
        // SAFETY: the program is alive and the pointer is valid for a write.
        check(self.api, call, unsafe { size(self.raw, &mut length) })?;
        let mut bytes = vec![0u8; length];
        // SAFETY: the library writes exactly the `length` bytes it asked for.
        let status = unsafe { get(self.raw, bytes.as_mut_ptr().cast()) };
        check(self.api, call, status)?;
        Ok(bytes)
    }
}

impl Drop for ProgramHandle<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was created by `new` and is destroyed once.
        unsafe { (self.api.destroy)(&mut self.raw) };
    }
}

/// Logs and PTX come with the NUL that ends a C string, which no later tool wants.
fn c_text(mut bytes: Vec<u8>) -> String {
    while bytes.last() == Some(&0) {
        bytes.pop();
    }
    String::from_utf8_lossy(&bytes).into_owned()
}

fn c_string(what: &'static str, text: &str) -> Result<CString, CompileError> {
    CString::new(text).map_err(|_| CompileError::Nul { what })
}

fn check(api: &Api, call: &'static str, status: Status) -> Result<(), CompileError> {
    match status {
        SUCCESS => Ok(()),
        _ => Err(internal(api, call, status)),
    }
}

fn internal(api: &Api, call: &'static str, status: Status) -> CompileError {
    // SAFETY: the library returns a static string for any number, or null.
    let text = unsafe {
        let text = (api.error_string)(status);
        match text.is_null() {
            true => format!("status {status}"),
            false => CStr::from_ptr(text).to_string_lossy().into_owned(),
        }
    };
    CompileError::Internal { call, text }
}
