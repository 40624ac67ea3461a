//! What this machine has for compiling and running kernels, and what to install.
//!
//! Each finding says what was looked for and where; a missing one says what to do. Nothing here
//! fails: a broken tool is a finding too.

use std::fmt;
use std::path::{Path, PathBuf};
use std::process::{Command, Stdio};

use crate::cache::Cache;
use crate::device::cuda::{Device, DeviceError};
use crate::env::Env;
use crate::library::LoadError;
use crate::toolchain::{Nvcc, Nvrtc};

/// One thing that was looked for.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Finding {
    pub what: String,
    /// What it is good for.
    pub purpose: &'static str,
    pub status: Status,
}

/// Whether it is there.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Status {
    Found {
        version: String,
        place: String,
    },
    Missing {
        /// Where it was looked for.
        looked: Vec<String>,
        help: String,
    },
    /// It is there and does not work.
    Broken {
        reason: String,
        help: String,
    },
}

impl Finding {
    pub fn is_found(&self) -> bool {
        matches!(self.status, Status::Found { .. })
    }
}

impl fmt::Display for Finding {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        let Self {
            what,
            purpose,
            status,
        } = self;
        match status {
            Status::Found { version, place } => write!(f, "found    {what}: {version}, {place}"),
            Status::Missing { looked, help } => {
                write!(f, "missing  {what} ({purpose}); looked in")?;
                for place in looked {
                    write!(f, "\n             {place}")?;
                }
                write!(f, "\n           {help}")
            }
            Status::Broken { reason, help } => {
                write!(
                    f,
                    "broken   {what} ({purpose}): {reason}\n           {help}"
                )
            }
        }
    }
}

/// Looks for everything.
pub fn report(env: &Env) -> Vec<Finding> {
    let mut findings = vec![nvrtc(env), nvcc(env)];
    findings.extend(cuda());
    findings.push(amd_clang(env));
    findings.push(hip(env));
    findings.push(cache(env));
    findings
}

fn nvrtc(env: &Env) -> Finding {
    let status = match Nvrtc::find(env) {
        Err(missing) => Status::Missing {
            looked: missing.looked.iter().map(ToString::to_string).collect(),
            help: missing.help.to_owned(),
        },
        Ok(nvrtc) => {
            let place = format!("{} ({})", nvrtc.file().path.display(), nvrtc.file().source);
            let asked = nvrtc
                .version()
                .and_then(|version| Ok((version, nvrtc.supported_archs()?)));
            match asked {
                Ok(((major, minor), archs)) => Status::Found {
                    version: format!("{major}.{minor}{}", range(&archs)),
                    place,
                },
                Err(error) => Status::Broken {
                    reason: error.to_string(),
                    help: crate::toolchain::search::NVRTC_HELP.to_owned(),
                },
            }
        }
    };
    Finding {
        what: "NVRTC".to_owned(),
        purpose: "compiles kernels for NVIDIA GPUs",
        status,
    }
}

fn range(archs: &[u32]) -> String {
    match (archs.iter().min(), archs.iter().max()) {
        (Some(low), Some(high)) => format!(" for sm_{low} to sm_{high}"),
        _ => String::new(),
    }
}

fn nvcc(env: &Env) -> Finding {
    let status = match Nvcc::find(env) {
        Err(missing) => Status::Missing {
            looked: missing.looked.iter().map(ToString::to_string).collect(),
            help: format!("not needed where there is NVRTC; else {}", missing.help),
        },
        Ok(nvcc) => match nvcc.version() {
            Ok(version) => Status::Found {
                version,
                place: nvcc.path().display().to_string(),
            },
            Err(error) => Status::Broken {
                reason: error.to_string(),
                help: crate::toolchain::search::NVCC_HELP.to_owned(),
            },
        },
    };
    Finding {
        what: "nvcc".to_owned(),
        purpose: "compiles kernels where there is no NVRTC",
        status,
    }
}

/// The driver and each GPU.
fn cuda() -> Vec<Finding> {
    let driver = |status| Finding {
        what: "CUDA driver".to_owned(),
        purpose: "runs kernels on NVIDIA GPUs",
        status,
    };
    let gpu = |what: String, status| Finding {
        what,
        purpose: "runs kernels",
        status,
    };
    let version = match Device::driver_version() {
        Ok((major, minor)) => driver(Status::Found {
            version: format!("supports CUDA {major}.{minor}"),
            place: "libcuda.so.1".to_owned(),
        }),
        Err(DeviceError::NoDriver { tried }) => {
            return vec![driver(Status::Missing {
                looked: tried.iter().map(loader).collect(),
                help: "install the NVIDIA driver; in a container, start it with access to the GPU"
                    .to_owned(),
            })];
        }
        Err(error) => {
            return vec![driver(Status::Broken {
                reason: error.to_string(),
                help: "`nvidia-smi` may say more; the driver and its kernel module must be of \
                       one version"
                    .to_owned(),
            })];
        }
    };
    let mut findings = vec![version];
    match Device::list() {
        Ok(devices) if devices.is_empty() => findings.push(gpu(
            "NVIDIA GPU".to_owned(),
            Status::Missing {
                looked: vec!["the devices that the driver lists".to_owned()],
                help: "kernels can be compiled, and run in the simulator".to_owned(),
            },
        )),
        Ok(devices) => findings.extend(devices.iter().map(|device| {
            gpu(
                format!("GPU {}", device.ordinal),
                Status::Found {
                    version: format!("{} ({})", device.name, device.arch()),
                    place: format!(
                        "{} multiprocessors, {:.0} GiB",
                        device.multiprocessors,
                        device.memory_bytes as f64 / f64::from(1 << 30)
                    ),
                },
            )
        })),
        Err(error) => findings.push(gpu(
            "NVIDIA GPU".to_owned(),
            Status::Broken {
                reason: error.to_string(),
                help: "`nvidia-smi` may say more".to_owned(),
            },
        )),
    }
    findings
}

fn loader(error: &LoadError) -> String {
    match error {
        LoadError::Open { library, reason } => format!("{} ({reason})", library.display()),
        LoadError::Symbol { .. } => error.to_string(),
    }
}

/// A clang that makes code for AMD GPUs: ROCm's own, or a distribution's of version 22 or later,
/// which knows gfx950.
fn amd_clang(env: &Env) -> Finding {
    let mut candidates: Vec<PathBuf> = rocm_roots(env)
        .into_iter()
        .map(|root| root.join("llvm/bin/clang"))
        .filter(|file| file.is_file())
        .collect();
    let names = (18..=26).rev().map(|version| format!("clang-{version}"));
    for name in names.chain(["clang".to_owned()]) {
        candidates.extend(env.program(&name));
    }
    let mut looked = Vec::new();
    for clang in &candidates {
        match amdgcn(clang) {
            Ok(version) => {
                return amd_finding(Status::Found {
                    version,
                    place: clang.display().to_string(),
                });
            }
            Err(reason) => looked.push(format!("{}: {reason}", clang.display())),
        }
    }
    if looked.is_empty() {
        looked.push("PATH and /opt/rocm".to_owned());
    }
    amd_finding(Status::Missing {
        looked,
        help: "install clang 22 and lld (`apt install clang-22 lld-22`), or ROCm".to_owned(),
    })
}

fn amd_finding(status: Status) -> Finding {
    Finding {
        what: "clang for AMD".to_owned(),
        purpose: "compiles kernels for AMD GPUs",
        status,
    }
}

/// The version of a clang that has the amdgcn target.
fn amdgcn(clang: &Path) -> Result<String, String> {
    let targets = output(clang, "--print-targets")?;
    if !targets.contains("amdgcn") {
        return Err("it has no amdgcn target".to_owned());
    }
    let version = output(clang, "--version")?;
    let line = version.lines().next().unwrap_or_default();
    Ok(line.to_owned())
}

fn output(program: &Path, argument: &str) -> Result<String, String> {
    let done = Command::new(program)
        .arg(argument)
        .stdin(Stdio::null())
        .output()
        .map_err(|error| format!("it cannot be started: {error}"))?;
    match done.status.success() {
        true => Ok(String::from_utf8_lossy(&done.stdout).into_owned()),
        false => Err(format!("`{argument}` failed")),
    }
}

fn hip(env: &Env) -> Finding {
    let mut folders: Vec<PathBuf> = rocm_roots(env)
        .into_iter()
        .map(|root| root.join("lib"))
        .collect();
    folders.extend(env.paths("LD_LIBRARY_PATH"));
    folders.push(env.system("/usr/lib/x86_64-linux-gnu"));
    folders.push(env.system("/usr/lib64"));
    let names = [
        "libamdhip64.so.8",
        "libamdhip64.so.7",
        "libamdhip64.so.6",
        "libamdhip64.so",
    ];
    let found = folders
        .iter()
        .flat_map(|folder| names.iter().map(move |name| folder.join(name)))
        .find(|file| file.is_file());
    let status = match found {
        Some(file) => Status::Found {
            // The file's own name behind the links ends in the version.
            version: file
                .canonicalize()
                .ok()
                .and_then(|real| Some(real.file_name()?.to_str()?.to_owned()))
                .unwrap_or_default(),
            place: file.display().to_string(),
        },
        None => Status::Missing {
            looked: folders
                .iter()
                .filter(|folder| folder.is_dir())
                .map(|folder| folder.display().to_string())
                .collect(),
            help: "install ROCm; without it kernels for AMD are compiled and simulated".to_owned(),
        },
    };
    Finding {
        what: "HIP runtime".to_owned(),
        purpose: "runs kernels on AMD GPUs",
        status,
    }
}

fn rocm_roots(env: &Env) -> Vec<PathBuf> {
    let named = ["ROCM_PATH", "HIP_PATH"]
        .into_iter()
        .filter_map(|name| env.path(name));
    named.chain([env.system("/opt/rocm")]).collect()
}

fn cache(env: &Env) -> Finding {
    let cache = Cache::open(env);
    let status = match cache.stats() {
        Ok(stats) => Status::Found {
            version: format!(
                "{} kernels, {:.1} of {:.0} MiB",
                stats.entries,
                stats.bytes as f64 / f64::from(1 << 20),
                stats.cap as f64 / f64::from(1 << 20)
            ),
            place: cache.path().map_or_else(
                |reason| reason.to_string(),
                |path| path.display().to_string(),
            ),
        },
        Err(reason) => Status::Broken {
            reason: reason.to_string(),
            help: "kernels are compiled anew in every process".to_owned(),
        },
    };
    Finding {
        what: "kernel cache".to_owned(),
        purpose: "keeps compiled kernels",
        status,
    }
}

#[cfg(test)]
mod tests {
    use super::*;
    use std::os::unix::fs::PermissionsExt;

    fn find(env: &Env, what: &str) -> Finding {
        let found = report(env).into_iter().find(|f| f.what == what);
        found.unwrap_or_else(|| panic!("nothing about {what}"))
    }

    fn program(folder: &Path, name: &str, body: &str) {
        std::fs::create_dir_all(folder).unwrap();
        let file = folder.join(name);
        std::fs::write(&file, format!("#!/bin/sh\n{body}\n")).unwrap();
        std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    }

    #[test]
    fn an_empty_machine_is_told_what_to_install() {
        let root = tempfile::tempdir().unwrap();
        let env = Env::fixed(root.path(), []);
        for (what, help) in [
            ("NVRTC", "pip install nvidia-cuda-nvrtc"),
            ("nvcc", "CUDA toolkit"),
            ("clang for AMD", "clang-22"),
            ("HIP runtime", "ROCm"),
            ("kernel cache", "TILEWRIGHT_CACHE_DIR"),
        ] {
            let finding = find(&env, what);
            assert!(!finding.is_found(), "{finding}");
            assert!(finding.to_string().contains(help), "{finding}");
        }
        // The driver is the process's own and may be there; it is reported either way.
        find(&env, "CUDA driver");
    }

    #[test]
    fn tools_are_asked_what_they_are() {
        let root = tempfile::tempdir().unwrap();
        let bin = root.path().join("bin");
        program(
            &bin,
            "clang-22",
            "[ $1 = --print-targets ] && echo ' amdgcn - AMD' || echo 'clang version 22.1.8'",
        );
        program(&bin, "clang-23", "echo ' x86 - X86'");
        program(&bin, "nvcc", "echo 'Build cuda_13.0.r13.0/compiler.1'");
        let hip = root.path().join("opt/rocm/lib");
        std::fs::create_dir_all(&hip).unwrap();
        std::fs::write(hip.join("libamdhip64.so.7.1.0"), "").unwrap();
        std::os::unix::fs::symlink("libamdhip64.so.7.1.0", hip.join("libamdhip64.so")).unwrap();
        let path = bin.to_str().unwrap().to_owned();
        let home = root.path().to_str().unwrap().to_owned();
        let vars = [("PATH", path.as_str()), ("HOME", home.as_str())];
        let env = Env::fixed(root.path(), vars);
        let clang = find(&env, "clang for AMD");
        assert_eq!(
            clang.to_string(),
            format!("found    clang for AMD: clang version 22.1.8, {path}/clang-22")
        );
        let nvcc = find(&env, "nvcc").to_string();
        assert!(nvcc.contains("Build cuda_13.0.r13.0"), "{nvcc}");
        let hip = find(&env, "HIP runtime").to_string();
        assert!(hip.contains("libamdhip64.so.7.1.0"), "{hip}");
        let cache = find(&env, "kernel cache").to_string();
        assert!(cache.contains("0 kernels, 0.0 of 1024 MiB"), "{cache}");
    }

    #[test]
    fn a_clang_without_amd_is_named() {
        let root = tempfile::tempdir().unwrap();
        program(root.path(), "clang", "echo ' x86 - X86'");
        let path = root.path().to_str().unwrap();
        let finding = find(&Env::fixed(root.path(), [("PATH", path)]), "clang for AMD");
        assert!(
            finding.to_string().contains("it has no amdgcn target"),
            "{finding}"
        );
    }

    #[test]
    fn a_broken_nvrtc_is_a_finding() {
        let root = tempfile::tempdir().unwrap();
        let file = root.path().join("libnvrtc.so");
        std::fs::write(&file, "no library").unwrap();
        let env = Env::fixed(root.path(), [("TILEWRIGHT_NVRTC", file.to_str().unwrap())]);
        let finding = find(&env, "NVRTC");
        assert!(matches!(finding.status, Status::Broken { .. }), "{finding}");
    }
}
