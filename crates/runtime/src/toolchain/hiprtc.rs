//! hiprtc: HIP source to a code object inside this process, where ROCm is installed and no clang
//! of its own is found.
//!
//! It gives no assembly, so what it compiles cannot be audited. The library is loaded only when
//! something is compiled, as NVRTC is.

use std::ffi::{CStr, CString, c_char, c_int};
use std::path::{Path, PathBuf};
use std::sync::OnceLock;

use super::amd_search;
use super::clang::{HipOptions, Hsaco, check_arch, language_arguments, stamp};
use super::error::CompileError;
use super::search::NotFound;
use crate::env::Env;
use crate::library::{LoadError, c_api};

type Program = *mut std::ffi::c_void;
type Status = c_int;

const SUCCESS: Status = 0;
const INVALID_OPTION: Status = 5;
const COMPILATION: Status = 6;

c_api! {
    /// The functions of `hiprtc.h` that we call.
    pub(crate) struct Api {
        version = "hiprtcVersion"(*mut c_int, *mut c_int) -> Status;
        error_string = "hiprtcGetErrorString"(Status) -> *const c_char;
        create = "hiprtcCreateProgram"(
            *mut Program,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> Status;
        destroy = "hiprtcDestroyProgram"(*mut Program) -> Status;
        compile = "hiprtcCompileProgram"(Program, c_int, *const *const c_char) -> Status;
        log_size = "hiprtcGetProgramLogSize"(Program, *mut usize) -> Status;
        log = "hiprtcGetProgramLog"(Program, *mut c_char) -> Status;
        code_size = "hiprtcGetCodeSize"(Program, *mut usize) -> Status;
        code = "hiprtcGetCode"(Program, *mut c_char) -> Status;
    }
    optional {}
}

/// A hiprtc on this machine.
#[derive(Debug)]
pub struct Hiprtc {
    path: PathBuf,
    api: OnceLock<Result<Api, LoadError>>,
}

impl Hiprtc {
    /// Finds the library; nothing is loaded yet.
    pub fn find(env: &Env) -> Result<Self, NotFound> {
        let (path, _) = amd_search::find_hiprtc(env)?;
        Ok(Self {
            path,
            api: OnceLock::new(),
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
        let api = self.api()?;
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid for a write of an int.
        let status = unsafe { (api.version)(&mut major, &mut minor) };
        check(api, "hiprtcVersion", status)?;
        Ok((major.unsigned_abs(), minor.unsigned_abs()))
    }

    /// Compiles `source` for `arch` (`gfx950`) to a code object, without its assembly.
    pub fn compile(
        &self,
        source: &str,
        arch: &str,
        options: &HipOptions,
    ) -> Result<Hsaco, CompileError> {
        check_arch(arch)?;
        let api = self.api()?;
        let mut arguments = vec![format!("--offload-arch={arch}")];
        arguments.extend(language_arguments(options));
        let program = ProgramHandle::new(api, source, &options.name)?;
        let status = program.compile(&arguments)?;
        let mut log = program.read(api.log_size, api.log, "hiprtcGetProgramLog")?;
        while log.last() == Some(&0) {
            log.pop();
        }
        let log = String::from_utf8_lossy(&log).into_owned();
        match status {
            SUCCESS => {}
            COMPILATION => {
                return Err(CompileError::refused(
                    "HIP",
                    log,
                    source,
                    &options.name,
                    None,
                ));
            }
            INVALID_OPTION => return Err(CompileError::Option { log }),
            _ => return Err(internal(api, "hiprtcCompileProgram", status)),
        }
        let code = program.read(api.code_size, api.code, "hiprtcGetCode")?;
        Hsaco::new(arch, code, String::new(), log)
    }

    fn api(&self) -> Result<&Api, CompileError> {
        let api = self.api.get_or_init(|| Api::load(&self.path));
        api.as_ref()
            .map_err(|error| CompileError::LoadHiprtc(error.clone()))
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
        check(api, "hiprtcCreateProgram", status)?;
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
