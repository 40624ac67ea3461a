//! What this machine has for compiling and running kernels, and what to install.
//!
//! Each finding says what was looked for and where; a missing one says what to do. Nothing here
//! fails: a broken tool is a finding too.

use std::fmt;

use crate::cache::Cache;
use crate::device::{DeviceError, cuda, hip};
use crate::env::Env;
use crate::library::LoadError;
use crate::toolchain::amd_search::{CLANG_HELP, HIP_HELP, HIPRTC_HELP, find_hip};
use crate::toolchain::{AmdClang, Hiprtc, Nvcc, Nvrtc};

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

    /// Whether it is a GPU that kernels run on.
    pub fn is_gpu(&self) -> bool {
        self.is_found() && self.purpose == GPU_PURPOSE
    }
}

const GPU_PURPOSE: &str = "runs kernels";

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
    findings.extend(nvidia());
    findings.push(amd_clang(env));
    findings.push(hiprtc(env));
    findings.extend(amd(env));
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
fn nvidia() -> Vec<Finding> {
    let driver = |status| Finding {
        what: "CUDA driver".to_owned(),
        purpose: "runs kernels on NVIDIA GPUs",
        status,
    };
    let gpu = |what: String, status| Finding {
        what,
        purpose: GPU_PURPOSE,
        status,
    };
    let version = match cuda::driver_version() {
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
    match cuda::list() {
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

/// A clang that makes code for AMD GPUs, with the linker that a code object needs.
fn amd_clang(env: &Env) -> Finding {
    let status = match AmdClang::find(env) {
        Err(missing) => Status::Missing {
            looked: missing.looked.iter().map(ToString::to_string).collect(),
            help: missing.help.to_owned(),
        },
        Ok(clang) => {
            let place = format!("{} ({})", clang.path().display(), clang.source());
            match usable(&clang) {
                Ok(version) => Status::Found { version, place },
                Err(reason) => Status::Broken {
                    reason: format!("{place}: {reason}"),
                    help: CLANG_HELP.to_owned(),
                },
            }
        }
    };
    Finding {
        what: "clang for AMD".to_owned(),
        purpose: "compiles kernels for AMD GPUs",
        status,
    }
}

/// The version of a clang that has what we need.
fn usable(clang: &AmdClang) -> Result<String, String> {
    let asked = clang
        .has_amdgpu()
        .and_then(|has| Ok((has, clang.linker()?)));
    match asked.map_err(|error| error.to_string())? {
        (false, _) => Err("it has no amdgcn target".to_owned()),
        (true, None) => Err("it finds no lld, so it makes assembly and no code objects".to_owned()),
        (true, Some(_)) => clang.version().map_err(|error| error.to_string()),
    }
}

fn hiprtc(env: &Env) -> Finding {
    let status = match Hiprtc::find(env) {
        Err(missing) => Status::Missing {
            looked: missing.looked.iter().map(ToString::to_string).collect(),
            help: format!("not needed where there is clang; else {}", missing.help),
        },
        Ok(hiprtc) => match hiprtc.version() {
            Ok((major, minor)) => Status::Found {
                version: format!("{major}.{minor}"),
                place: hiprtc.path().display().to_string(),
            },
            Err(error) => Status::Broken {
                reason: error.to_string(),
                help: HIPRTC_HELP.to_owned(),
            },
        },
    };
    Finding {
        what: "hiprtc".to_owned(),
        purpose: "compiles kernels for AMD where there is no clang",
        status,
    }
}

/// The HIP runtime and each GPU.
fn amd(env: &Env) -> Vec<Finding> {
    let runtime = |status| Finding {
        what: "HIP runtime".to_owned(),
        purpose: "runs kernels on AMD GPUs",
        status,
    };
    let path = match find_hip(env) {
        Ok((path, _)) => path,
        Err(missing) => {
            return vec![runtime(Status::Missing {
                looked: missing.looked.iter().map(ToString::to_string).collect(),
                help: missing.help.to_owned(),
            })];
        }
    };
    let broken = |error: DeviceError| Status::Broken {
        reason: error.to_string(),
        help: HIP_HELP.to_owned(),
    };
    match hip::found_in(env) {
        Err(error) => vec![runtime(broken(error))],
        Ok(((major, minor), gpus)) => {
            let found = runtime(Status::Found {
                version: format!("ROCm {major}.{minor}"),
                place: path.display().to_string(),
            });
            if gpus.is_empty() {
                let none = Finding {
                    what: "AMD GPU".to_owned(),
                    purpose: GPU_PURPOSE,
                    status: Status::Missing {
                        looked: vec!["the devices that the HIP runtime lists".to_owned()],
                        help: "kernels can be compiled, and run in the simulator".to_owned(),
                    },
                };
                return vec![found, none];
            }
            let gpus = gpus.iter().map(|gpu| Finding {
                what: format!("AMD GPU {}", gpu.ordinal),
                purpose: GPU_PURPOSE,
                status: Status::Found {
                    version: format!("{} ({})", gpu.name, gpu.arch()),
                    place: format!(
                        "{} compute units, {:.0} GiB",
                        gpu.multiprocessors,
                        gpu.memory_bytes as f64 / f64::from(1 << 30)
                    ),
                },
            });
            std::iter::once(found).chain(gpus).collect()
        }
    }
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
    use std::path::Path;

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
            ("hiprtc", "ROCm"),
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
            "case $1 in --print-targets) echo ' amdgcn - AMD';; \
             -print-prog-name=ld.lld) echo $0;; *) echo 'clang version 22.1.8';; esac",
        );
        program(&bin, "nvcc", "echo 'Build cuda_13.0.r13.0/compiler.1'");
        let hip = root.path().join("opt/rocm/lib");
        std::fs::create_dir_all(&hip).unwrap();
        std::fs::write(hip.join("libamdhip64.so"), "").unwrap();
        let path = bin.to_str().unwrap().to_owned();
        let home = root.path().to_str().unwrap().to_owned();
        let vars = [("PATH", path.as_str()), ("HOME", home.as_str())];
        let env = Env::fixed(root.path(), vars);
        let clang = find(&env, "clang for AMD");
        assert_eq!(
            clang.to_string(),
            format!("found    clang for AMD: clang version 22.1.8, {path}/clang-22 (PATH)")
        );
        let nvcc = find(&env, "nvcc").to_string();
        assert!(nvcc.contains("Build cuda_13.0.r13.0"), "{nvcc}");
        let hip = find(&env, "HIP runtime").to_string();
        assert!(hip.starts_with("broken   HIP runtime"), "{hip}");
        assert!(hip.contains("libamdhip64.so"), "{hip}");
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
