//! clang with the AMDGPU target: HIP source to assembly and to a code object.
//!
//! The source brings its own declarations, so neither ROCm nor its headers are needed. It is
//! compiled to assembly first and the assembly is then assembled and linked: what an audit reads
//! is what the GPU gets, and the second step costs a tenth of the first.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};
use std::time::UNIX_EPOCH;

use super::amd_search::{self, ClangFile};
use super::hsaco::{self, AmdKernelInfo};
use super::search::NotFound;
use super::{CompileError, log};
use crate::env::Env;
use crate::temporary;

/// How to compile for AMD. The default is what generated kernels need.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct HipOptions {
    /// The name of the source in messages.
    pub name: String,
    /// Approximate division, square root and transcendental functions.
    pub fast_math: bool,
    /// Line tables, for profilers.
    pub line_info: bool,
    pub defines: Vec<(String, String)>,
    pub include_folders: Vec<PathBuf>,
    /// Options passed on as they are.
    pub extra: Vec<String>,
}

impl Default for HipOptions {
    fn default() -> Self {
        Self {
            name: "kernel.hip".to_owned(),
            fast_math: false,
            line_info: false,
            defines: Vec::new(),
            include_folders: Vec::new(),
            extra: Vec::new(),
        }
    }
}

impl HipOptions {
    /// Text that is equal exactly when the options make the same kernel: for cache keys.
    pub fn fingerprint(&self) -> String {
        format!("{self:?}")
    }
}

/// A compiled program for AMD GPUs. Its parts fit each other, so they cannot be changed from
/// outside.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Hsaco {
    arch: String,
    bytes: Vec<u8>,
    asm: String,
    log: String,
    kernels: Vec<AmdKernelInfo>,
}

impl Hsaco {
    /// Reads the kernels' figures from the file.
    pub fn new(arch: &str, bytes: Vec<u8>, asm: String, log: String) -> Result<Self, CompileError> {
        let kernels = hsaco::kernels(&bytes).map_err(CompileError::Hsaco)?;
        Ok(Self {
            arch: arch.to_owned(),
            bytes,
            asm,
            log,
            kernels,
        })
    }

    /// A program of which only the description is real, for tests without a GPU.
    #[cfg(test)]
    pub(crate) fn described(arch: &str, bytes: &[u8], kernels: Vec<AmdKernelInfo>) -> Self {
        Self {
            arch: arch.to_owned(),
            bytes: bytes.to_vec(),
            asm: String::new(),
            log: String::new(),
            kernels,
        }
    }

    /// What it was compiled for: `gfx950`.
    pub fn arch(&self) -> &str {
        &self.arch
    }

    /// The ELF file that the HIP runtime loads.
    pub fn bytes(&self) -> &[u8] {
        &self.bytes
    }

    /// The assembly it was made of; empty where the compiler gave none.
    pub fn asm(&self) -> &str {
        &self.asm
    }

    /// All that the compiler printed.
    pub fn log(&self) -> &str {
        &self.log
    }

    pub fn kernels(&self) -> &[AmdKernelInfo] {
        &self.kernels
    }

    pub fn kernel(&self, name: &str) -> Option<&AmdKernelInfo> {
        self.kernels.iter().find(|kernel| kernel.name == name)
    }

    pub fn warnings(&self) -> Vec<log::Message> {
        log::messages(&self.log)
    }

    /// One byte string for the cache: each part with its length in front.
    pub fn encode(&self) -> Vec<u8> {
        let parts = [
            self.arch.as_bytes(),
            &self.bytes,
            self.asm.as_bytes(),
            self.log.as_bytes(),
        ];
        super::encode_parts(0, parts)
    }

    /// The inverse of [`Hsaco::encode`].
    pub fn decode(encoded: &[u8]) -> Result<Self, CompileError> {
        let (_, [arch, bytes, asm, log]) = super::split(encoded).ok_or_else(|| {
            CompileError::Hsaco(hsaco::BadHsaco("its cache entry is cut short".to_owned()))
        })?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        Self::new(&text(arch), bytes.to_vec(), text(asm), text(log))
    }
}

/// A clang on this machine.
#[derive(Clone, Debug)]
pub struct AmdClang {
    file: ClangFile,
}

impl AmdClang {
    /// Finds a clang by its name; nothing is run yet.
    pub fn find(env: &Env) -> Result<Self, NotFound> {
        Ok(Self {
            file: amd_search::find_amd_clang(env)?,
        })
    }

    pub fn path(&self) -> &Path {
        &self.file.path
    }

    /// Who named the place it was found in.
    pub fn source(&self) -> &'static str {
        self.file.source
    }

    /// The first line of `clang --version`.
    pub fn version(&self) -> Result<String, CompileError> {
        let text = self.ask("--version")?;
        Ok(text.lines().next().unwrap_or_default().to_owned())
    }

    /// Whether this clang makes code for AMD GPUs at all.
    pub fn has_amdgpu(&self) -> Result<bool, CompileError> {
        Ok(self.ask("--print-targets")?.contains("amdgcn"))
    }

    /// The linker that this clang would start, where it finds one.
    pub fn linker(&self) -> Result<Option<PathBuf>, CompileError> {
        let text = self.ask("-print-prog-name=ld.lld")?;
        let path = PathBuf::from(text.trim());
        Ok(Some(path).filter(|path| path.is_absolute() && path.is_file()))
    }

    /// Names this build for cache keys, by the size and date of the program and of the library
    /// that a distribution keeps LLVM in. Nothing is run: a process whose kernels are all cached
    /// should not pay for starting a compiler.
    pub fn identity(&self) -> Result<String, CompileError> {
        let real = self
            .path()
            .canonicalize()
            .map_err(|error| self.io("find", error))?;
        let mut text = format!("clang {} {}", real.display(), stamp(&real));
        let lib = real
            .parent()
            .and_then(Path::parent)
            .map(|root| root.join("lib"));
        for library in lib.iter().flat_map(|lib| amd_search::llvm_libraries(lib)) {
            text.push_str(&format!(" {} {}", library.display(), stamp(&library)));
        }
        Ok(text)
    }

    /// Compiles `source` for `arch` (`gfx950`) to a code object, with its assembly.
    pub fn compile(
        &self,
        source: &str,
        arch: &str,
        options: &HipOptions,
    ) -> Result<Hsaco, CompileError> {
        let folder =
            temporary::Folder::new().map_err(|error| self.io("make a folder for", error))?;
        let (asm, log) = self.compile_in(folder.path(), source, arch, options)?;
        let file = folder.path().join("kernel.hsaco");
        let mut command = Command::new(self.path());
        command.args(["-x", "assembler", "-target", "amdgcn-amd-amdhsa"]);
        command.arg(format!("-mcpu={arch}"));
        command.arg(folder.path().join("kernel.s"));
        command.arg("-o").arg(&file);
        let (success, text) = self.run(&mut command)?;
        if !success {
            return Err(CompileError::Link {
                toolchain: self.path().display().to_string(),
                text: text.trim().to_owned(),
            });
        }
        let bytes = std::fs::read(&file).map_err(|error| self.io("read the output of", error))?;
        Hsaco::new(arch, bytes, asm, log)
    }

    /// Compiles `source` for `arch` to assembly; needs no linker.
    pub fn assembly(
        &self,
        source: &str,
        arch: &str,
        options: &HipOptions,
    ) -> Result<String, CompileError> {
        let folder =
            temporary::Folder::new().map_err(|error| self.io("make a folder for", error))?;
        let (asm, _) = self.compile_in(folder.path(), source, arch, options)?;
        Ok(asm)
    }

    /// Leaves `kernel.s` in the folder and returns it with the log.
    fn compile_in(
        &self,
        folder: &Path,
        source: &str,
        arch: &str,
        options: &HipOptions,
    ) -> Result<(String, String), CompileError> {
        check_arch(arch)?;
        let input = folder.join("kernel.hip");
        let output = folder.join("kernel.s");
        // The compiler names the file it reads; `#line` makes it the name the caller gave.
        let name = options.name.replace(['\\', '"', '\n'], "_");
        let text = format!("#line 1 \"{name}\"\n{source}");
        std::fs::write(&input, text).map_err(|error| self.io("write a file for", error))?;
        let mut command = Command::new(self.path());
        command.args(arguments(arch, options));
        command.arg("-S").arg(&input).arg("-o").arg(&output);
        let (success, log) = self.run(&mut command)?;
        if success {
            let asm = std::fs::read_to_string(&output);
            return Ok((
                asm.map_err(|error| self.io("read the output of", error))?,
                log,
            ));
        }
        let unknown = ["unsupported HIP gpu architecture", "invalid target ID"];
        if unknown.iter().any(|text| log.contains(text)) || log.contains("No available targets") {
            return Err(CompileError::UnsupportedAmdArch {
                arch: arch.to_owned(),
                toolchain: self.path().display().to_string(),
            });
        }
        Err(CompileError::refused(
            "HIP",
            log,
            source,
            &options.name,
            None,
        ))
    }

    fn ask(&self, question: &str) -> Result<String, CompileError> {
        let (success, text) = self.run(Command::new(self.path()).arg(question))?;
        match success {
            true => Ok(text),
            false => Err(CompileError::Subprocess {
                text: format!("`{} {question}` failed: {text}", self.path().display()),
            }),
        }
    }

    fn run(&self, command: &mut Command) -> Result<(bool, String), CompileError> {
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| self.io("start", error))?;
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        let log = format!("{}{}", text(&output.stdout), text(&output.stderr));
        Ok((output.status.success(), log))
    }

    fn io(&self, what: &str, error: std::io::Error) -> CompileError {
        CompileError::Subprocess {
            text: format!("cannot {what} {}: {error}", self.path().display()),
        }
    }
}

/// The command line up to the files.
fn arguments(arch: &str, options: &HipOptions) -> Vec<String> {
    let mut arguments: Vec<String> = [
        "-x",
        "hip",
        "--offload-device-only",
        "--no-gpu-bundle-output",
        "-nogpuinc",
        "-nogpulib",
        // The same source gives the same file.
        "-fno-ident",
        "-fuse-cuid=none",
        "-fno-color-diagnostics",
        "-fno-caret-diagnostics",
    ]
    .map(str::to_owned)
    .to_vec();
    arguments.push(format!("--offload-arch={arch}"));
    arguments.extend(language_arguments(options));
    arguments
}

/// The options that clang and hiprtc have in common.
pub(super) fn language_arguments(options: &HipOptions) -> Vec<String> {
    // Kernels read LDS bytes as several types, hence the aliasing.
    let mut arguments: Vec<String> = ["-std=c++17", "-O3", "-fno-strict-aliasing"]
        .map(str::to_owned)
        .to_vec();
    if options.fast_math {
        arguments.push("-ffast-math".to_owned());
    }
    if options.line_info {
        arguments.push("-gline-tables-only".to_owned());
    }
    for (name, value) in &options.defines {
        arguments.push(format!("-D{name}={value}"));
    }
    for folder in &options.include_folders {
        arguments.push(format!("-I{}", folder.display()));
    }
    arguments.extend(options.extra.iter().cloned());
    arguments
}

/// A target is `gfx` with three or four digits, the last of them perhaps hexadecimal; anything
/// else would reach the compiler as another option.
pub(super) fn check_arch(arch: &str) -> Result<(), CompileError> {
    let number = arch.strip_prefix("gfx").unwrap_or_default();
    let good = (3..=4).contains(&number.len()) && number.bytes().all(|b| b.is_ascii_hexdigit());
    match good {
        true => Ok(()),
        false => Err(CompileError::BadAmdArch {
            arch: arch.to_owned(),
        }),
    }
}

/// Size and date of a file.
pub(super) fn stamp(file: &Path) -> String {
    let Ok(data) = file.metadata() else {
        return "?".to_owned();
    };
    let date = data.modified().ok();
    let seconds = date.and_then(|date| Some(date.duration_since(UNIX_EPOCH).ok()?.as_secs()));
    format!("({} bytes, {})", data.len(), seconds.unwrap_or(0))
}
