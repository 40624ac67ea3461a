//! nvcc as the fallback where there is no NVRTC: a subprocess, several times slower.

use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use super::nvrtc::common_arguments;
use super::search::{self, NotFound};
use super::{CompileError, CompileOptions, Cubin, check_arch};
use crate::env::Env;
use crate::temporary;

/// An nvcc on this machine.
#[derive(Clone, Debug)]
pub struct Nvcc {
    path: PathBuf,
}

impl Nvcc {
    pub fn find(env: &Env) -> Result<Self, NotFound> {
        Ok(Self {
            path: search::find_nvcc(env)?,
        })
    }

    pub fn path(&self) -> &Path {
        &self.path
    }

    /// The line of `nvcc --version` that names the release and the build.
    pub fn version(&self) -> Result<String, CompileError> {
        let output = self.run(Command::new(&self.path).arg("--version"))?;
        let text = output.log();
        let line = text
            .lines()
            .rev()
            .find(|line| line.contains("release") || line.starts_with("Build "));
        line.map(str::to_owned).ok_or(CompileError::Internal {
            call: "nvcc --version",
            text,
        })
    }

    pub fn identity(&self) -> Result<String, CompileError> {
        Ok(format!("nvcc {}", self.version()?))
    }

    /// Compiles `source` for `arch` (`sm_90a`).
    pub fn compile(
        &self,
        source: &str,
        arch: &str,
        options: &CompileOptions,
    ) -> Result<Cubin, CompileError> {
        check_arch(arch)?;
        let folder =
            temporary::Folder::new().map_err(|error| self.io("make a folder for", error))?;
        let input = folder.path().join("kernel.cu");
        let cubin = folder.path().join("kernel.cubin");
        // The compiler names the file it reads; `#line` makes it the name the caller gave.
        let name = options.name.replace(['\\', '"', '\n'], "_");
        let text = format!("#line 1 \"{name}\"\n{source}");
        std::fs::write(&input, text).map_err(|error| self.io("write a file for", error))?;

        let job = Job {
            source,
            input: &input,
            arch,
            options,
        };
        let log = self.emit("--cubin", &cubin, &job)?;
        let bytes = std::fs::read(&cubin).map_err(|error| self.io("read the output of", error))?;
        let ptx = if options.ptx {
            let file = folder.path().join("kernel.ptx");
            self.emit("--ptx", &file, &job)?;
            let text = std::fs::read_to_string(&file);
            Some(text.map_err(|error| self.io("read the output of", error))?)
        } else {
            None
        };
        Cubin::new(arch, bytes, log, ptx)
    }

    /// Runs nvcc for one kind of output and returns its log.
    fn emit(&self, kind: &str, output: &Path, job: &Job<'_>) -> Result<String, CompileError> {
        let number = job.arch.trim_start_matches("sm_");
        let mut command = Command::new(&self.path);
        command.arg(kind);
        // `-arch=sm_90a` would also run a pass for plain sm_90, which refuses wgmma.
        command.arg(format!("-gencode=arch=compute_{number},code=sm_{number}"));
        if kind == "--cubin" {
            command.arg("--ptxas-options=-v");
        }
        command.args(common_arguments(job.options));
        command.arg("-o").arg(output).arg(job.input);
        let finished = self.run(&mut command)?;
        let log = finished.log();
        if finished.success {
            return Ok(log);
        }
        if log.contains("Unsupported gpu architecture") {
            return Err(CompileError::UnsupportedArch {
                arch: job.arch.to_owned(),
                toolchain: self.path.display().to_string(),
                supported: Vec::new(),
            });
        }
        Err(CompileError::failed(log, job.source, job.options, None))
    }

    fn run(&self, command: &mut Command) -> Result<Finished, CompileError> {
        let output = command
            .stdin(Stdio::null())
            .output()
            .map_err(|error| self.io("start", error))?;
        Ok(Finished {
            success: output.status.success(),
            out: String::from_utf8_lossy(&output.stdout).into_owned(),
            err: String::from_utf8_lossy(&output.stderr).into_owned(),
        })
    }

    fn io(&self, what: &str, error: std::io::Error) -> CompileError {
        CompileError::Subprocess {
            text: format!("cannot {what} {}: {error}", self.path.display()),
        }
    }
}

struct Job<'a> {
    source: &'a str,
    input: &'a Path,
    arch: &'a str,
    options: &'a CompileOptions,
}

struct Finished {
    success: bool,
    out: String,
    err: String,
}

impl Finished {
    fn log(&self) -> String {
        format!("{}{}", self.out, self.err)
    }
}
