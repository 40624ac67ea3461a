//! Compilers inside this process, NVRTC and hiprtc: what they have in common.
//!
//! hiprtc was made in NVRTC's image: a program is created from source, compiled with options and
//! asked for its log and its code. [`Functions`] are the calls for that, [`Names`] is what a vendor
//! calls them. The library is loaded only when something is compiled.

use std::ffi::{CStr, CString, c_char, c_int, c_void};
use std::path::Path;

use super::error::CompileError;
use crate::library::{LoadError, vendors_api};

pub(super) type RawProgram = *mut c_void;
pub(super) type Status = c_int;

const SUCCESS: Status = 0;
const INVALID_OPTION: Status = 5;
const COMPILATION: Status = 6;

vendors_api! {
    /// The symbol of each function in a vendor's library.
    names Names;
    /// The functions that both libraries have, with one signature.
    functions Functions {
        version(*mut c_int, *mut c_int) -> Status;
        error_string(Status) -> *const c_char;
        create(
            *mut RawProgram,
            *const c_char,
            *const c_char,
            c_int,
            *const *const c_char,
            *const *const c_char,
        ) -> Status;
        destroy(*mut RawProgram) -> Status;
        compile(RawProgram, c_int, *const *const c_char) -> Status;
        log_size(RawProgram, *mut usize) -> Status;
        log(RawProgram, *mut c_char) -> Status;
        code_size(RawProgram, *mut usize) -> Status;
        code(RawProgram, *mut c_char) -> Status;
    }
}

/// A function that says how many bytes a part of a program has, and one that writes them.
pub(super) type SizeOf = unsafe extern "C" fn(RawProgram, *mut usize) -> Status;
pub(super) type Get = unsafe extern "C" fn(RawProgram, *mut c_char) -> Status;

/// A loaded compiler.
#[derive(Debug)]
pub(super) struct Rtc {
    functions: Functions,
    names: &'static Names,
}

/// What came of compiling; anything else is an error of the library's own.
#[derive(Clone, Copy, PartialEq, Eq, Debug)]
pub(super) enum Outcome {
    Compiled,
    /// The log says what is wrong with the source.
    Refused,
    /// The log says which option it does not know.
    BadOption,
}

impl Rtc {
    pub fn load(path: &Path, names: &'static Names) -> Result<Self, LoadError> {
        Ok(Self {
            functions: Functions::load(path, names)?,
            names,
        })
    }

    pub fn version(&self) -> Result<(u32, u32), CompileError> {
        let (mut major, mut minor) = (0, 0);
        // SAFETY: both pointers are valid for a write of an int.
        let status = unsafe { (self.functions.version)(&mut major, &mut minor) };
        self.check(self.names.version, status)?;
        Ok((major.unsigned_abs(), minor.unsigned_abs()))
    }

    pub fn check(&self, call: &'static str, status: Status) -> Result<(), CompileError> {
        match status {
            SUCCESS => Ok(()),
            _ => Err(self.internal(call, status)),
        }
    }

    fn internal(&self, call: &'static str, status: Status) -> CompileError {
        // SAFETY: the library returns a static string for any number, or null.
        let text = unsafe {
            let text = (self.functions.error_string)(status);
            match text.is_null() {
                true => format!("status {status}"),
                false => CStr::from_ptr(text).to_string_lossy().into_owned(),
            }
        };
        CompileError::Internal { call, text }
    }
}

/// A program that is destroyed when it goes out of scope.
pub(super) struct Program<'a> {
    rtc: &'a Rtc,
    raw: RawProgram,
}

impl<'a> Program<'a> {
    pub fn new(rtc: &'a Rtc, source: &str, name: &str) -> Result<Self, CompileError> {
        let source = c_string("the source", source)?;
        let name = c_string("the program's name", name)?;
        let mut raw = std::ptr::null_mut();
        // SAFETY: both strings end in NUL and live through the call, which copies them; there are
        // no headers, so the arrays may be null.
        let status = unsafe {
            (rtc.functions.create)(
                &mut raw,
                source.as_ptr(),
                name.as_ptr(),
                0,
                std::ptr::null(),
                std::ptr::null(),
            )
        };
        rtc.check(rtc.names.create, status)?;
        Ok(Self { rtc, raw })
    }

    pub fn compile(&self, arguments: &[String]) -> Result<Outcome, CompileError> {
        let strings: Vec<CString> = arguments
            .iter()
            .map(|argument| c_string("an option", argument))
            .collect::<Result<_, _>>()?;
        let pointers: Vec<*const c_char> = strings.iter().map(|s| s.as_ptr()).collect();
        let count = c_int::try_from(pointers.len()).unwrap_or(c_int::MAX);
        let compile = self.rtc.functions.compile;
        // SAFETY: `pointers` holds `count` strings that outlive the call.
        match unsafe { compile(self.raw, count, pointers.as_ptr()) } {
            SUCCESS => Ok(Outcome::Compiled),
            COMPILATION => Ok(Outcome::Refused),
            INVALID_OPTION => Ok(Outcome::BadOption),
            other => Err(self.rtc.internal(self.rtc.names.compile, other)),
        }
    }

    pub fn log(&self) -> Result<String, CompileError> {
        let Functions { log_size, log, .. } = self.rtc.functions;
        self.text(log_size, log, self.rtc.names.log)
    }

    pub fn code(&self) -> Result<Vec<u8>, CompileError> {
        let Functions {
            code_size, code, ..
        } = self.rtc.functions;
        self.read(code_size, code, self.rtc.names.code)
    }

    /// A text comes with the NUL that ends a C string, which no later tool wants.
    pub fn text(&self, size: SizeOf, get: Get, call: &'static str) -> Result<String, CompileError> {
        let mut bytes = self.read(size, get, call)?;
        while bytes.last() == Some(&0) {
            bytes.pop();
        }
        Ok(String::from_utf8_lossy(&bytes).into_owned())
    }

    fn read(&self, size: SizeOf, get: Get, call: &'static str) -> Result<Vec<u8>, CompileError> {
        let mut length = 0;
        // SAFETY: the program is alive and the pointer is valid for a write.
        let status = unsafe { size(self.raw, &mut length) };
        self.rtc.check(call, status)?;
        let mut bytes = vec![0u8; length];
        // SAFETY: the library writes exactly the `length` bytes it asked for.
        let status = unsafe { get(self.raw, bytes.as_mut_ptr().cast()) };
        self.rtc.check(call, status)?;
        Ok(bytes)
    }
}

impl Drop for Program<'_> {
    fn drop(&mut self) {
        // SAFETY: the program was created by `new` and is destroyed once.
        unsafe { (self.rtc.functions.destroy)(&mut self.raw) };
    }
}

fn c_string(what: &'static str, text: &str) -> Result<CString, CompileError> {
    CString::new(text).map_err(|_| CompileError::Nul { what })
}
