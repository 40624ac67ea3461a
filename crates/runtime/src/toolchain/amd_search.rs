//! Where a clang for AMD, hiprtc and the HIP runtime may be: the list of places, in order.
//!
//! As in `search`, only file names are looked at. The clang that the emitted forms are tested with
//! comes first, newer ones next, then ROCm's own, then the oldest that know gfx950.

use std::path::{Path, PathBuf};

use super::search::{Folder, NotFound, list};
use crate::env::{self, Env};

/// The version whose waits and registers the tests look at.
const TESTED: u32 = 22;
/// The first that knows gfx950.
const OLDEST: u32 = 20;
const NEWEST: u32 = 30;

pub const CLANG_HELP: &str = "install clang and lld of version 22 (`apt install clang-22 lld-22`), \
     or ROCm, or set TILEWRIGHT_CLANG to the path of a clang with the AMDGPU target";

pub const HIP_HELP: &str =
    "install ROCm and AMD's driver; without them kernels for AMD are compiled and simulated";

pub const HIPRTC_HELP: &str =
    "it is part of ROCm; set TILEWRIGHT_HIPRTC to the path of libhiprtc.so if it is elsewhere";

/// A clang.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct ClangFile {
    pub path: PathBuf,
    pub source: &'static str,
}

/// Finds a clang by its name. Whether it has the AMDGPU target only it can say.
pub fn find_amd_clang(env: &Env) -> Result<ClangFile, NotFound> {
    let mut looked: Vec<Folder> = Vec::new();
    let missing = |looked| NotFound {
        tool: "clang for AMD",
        looked,
        help: CLANG_HELP,
    };
    if let Some(path) = env.path(env::CLANG) {
        if path.is_file() {
            return Ok(ClangFile {
                path,
                source: env::CLANG,
            });
        }
        return Err(missing(vec![Folder {
            folder: path,
            source: env::CLANG,
        }]));
    }
    let folders = program_folders(env);
    let rocm: Vec<Folder> = rocm_places(env, "llvm/bin");
    let numbered = |version: u32| format!("clang-{version}");
    let mut tries: Vec<(String, &[Folder])> = vec![(numbered(TESTED), &folders)];
    tries.extend(
        (TESTED + 1..=NEWEST)
            .rev()
            .map(|v| (numbered(v), &folders[..])),
    );
    tries.push(("clang".to_owned(), &rocm));
    tries.extend((OLDEST..TESTED).rev().map(|v| (numbered(v), &folders[..])));
    tries.push(("clang".to_owned(), &folders));
    for (name, places) in tries {
        for place in places {
            let path = place.folder.join(&name);
            if path.is_file() {
                return Ok(ClangFile {
                    path,
                    source: place.source,
                });
            }
            if !looked.contains(place) && place.folder.exists() {
                looked.push(place.clone());
            }
        }
    }
    Err(missing(looked))
}

/// Finds the HIP runtime, newest major version first.
pub fn find_hip(env: &Env) -> Result<(PathBuf, &'static str), NotFound> {
    find_library(
        env,
        env::HIP,
        "libamdhip64.so",
        "the HIP runtime (libamdhip64.so)",
        HIP_HELP,
    )
}

/// Finds hiprtc.
pub fn find_hiprtc(env: &Env) -> Result<(PathBuf, &'static str), NotFound> {
    find_library(
        env,
        env::HIPRTC,
        "libhiprtc.so",
        "hiprtc (libhiprtc.so)",
        HIPRTC_HELP,
    )
}

/// The LLVM libraries in a folder: what the small program of a distribution's clang loads.
pub(super) fn llvm_libraries(folder: &Path) -> Vec<PathBuf> {
    list(folder, |name| {
        name.starts_with("libLLVM") && name.contains(".so")
    })
}

fn find_library(
    env: &Env,
    variable: &'static str,
    name: &str,
    tool: &'static str,
    help: &'static str,
) -> Result<(PathBuf, &'static str), NotFound> {
    let named = env.path(variable).map(|folder| Folder {
        folder,
        source: variable,
    });
    let mut looked = Vec::new();
    let places = match named {
        // What the user names is what is used.
        Some(place) if place.folder.is_file() => return Ok((place.folder, variable)),
        Some(place) => vec![place],
        None => library_folders(env),
    };
    for place in places {
        let versions = (4..=12).rev().map(|major| format!("{name}.{major}"));
        let mut files = versions.chain([name.to_owned()]);
        let found = files.find_map(|file| {
            let path = place.folder.join(file);
            path.is_file().then_some(path)
        });
        if let Some(path) = found {
            return Ok((path, place.source));
        }
        if place.folder.exists() || place.source == variable {
            looked.push(place);
        }
    }
    Err(NotFound { tool, looked, help })
}

/// PATH, and the folders where Debian and its relatives keep each LLVM.
fn program_folders(env: &Env) -> Vec<Folder> {
    let path = env.paths("PATH").into_iter().map(|folder| Folder {
        folder,
        source: "PATH",
    });
    let llvm = list(&env.system("/usr/lib"), |name| name.starts_with("llvm-"));
    let llvm = llvm.into_iter().map(|root| Folder {
        folder: root.join("bin"),
        source: "system",
    });
    path.chain(llvm).collect()
}

fn library_folders(env: &Env) -> Vec<Folder> {
    let mut places = rocm_places(env, "lib");
    places.extend(
        env.paths("LD_LIBRARY_PATH")
            .into_iter()
            .map(|folder| Folder {
                folder,
                source: "LD_LIBRARY_PATH",
            }),
    );
    for path in ["/usr/lib/x86_64-linux-gnu", "/usr/lib64", "/usr/local/lib"] {
        places.push(Folder {
            folder: env.system(path),
            source: "system",
        });
    }
    places
}

/// A folder of every ROCm: those that variables name, then `/opt/rocm` and its versions.
fn rocm_places(env: &Env, sub: &str) -> Vec<Folder> {
    let named = ["ROCM_PATH", "HIP_PATH"]
        .into_iter()
        .filter_map(|name| Some((env.path(name)?, name)));
    let mut roots: Vec<(PathBuf, &'static str)> = named.collect();
    roots.push((env.system("/opt/rocm"), "ROCm"));
    let versions = list(&env.system("/opt"), |name| name.starts_with("rocm-"));
    roots.extend(versions.into_iter().map(|root| (root, "ROCm")));
    roots
        .into_iter()
        .map(|(root, source)| Folder {
            folder: root.join(sub),
            source,
        })
        .collect()
}

#[cfg(test)]
mod tests {
    use super::*;

    fn touch(root: &Path, file: &str) -> PathBuf {
        let path = root.join(file);
        std::fs::create_dir_all(path.parent().unwrap()).unwrap();
        std::fs::write(&path, b"x").unwrap();
        path
    }

    #[test]
    fn the_tested_clang_comes_first_and_a_plain_one_last() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let bin = root.join("bin");
        let path = bin.to_str().unwrap().to_owned();
        let env = Env::fixed(root, [("PATH", path.as_str())]);
        let found = || find_amd_clang(&env).map(|file| file.path);
        let missing = found().unwrap_err();
        assert!(
            missing.to_string().contains("apt install clang-22 lld-22"),
            "{missing}"
        );
        // From the last choice to the first.
        for file in [
            "bin/clang",
            "usr/lib/llvm-20/bin/clang-20",
            "bin/clang-21",
            "opt/rocm-6.4.1/llvm/bin/clang",
            "opt/rocm/llvm/bin/clang",
            "bin/clang-23",
            "usr/lib/llvm-22/bin/clang-22",
            "bin/clang-22",
        ] {
            let file = touch(root, file);
            assert_eq!(found().unwrap(), file);
        }
        let vars = [
            ("PATH", path.as_str()),
            ("TILEWRIGHT_CLANG", "/no/such/clang"),
        ];
        let missing = find_amd_clang(&Env::fixed(root, vars)).unwrap_err();
        assert!(
            missing
                .to_string()
                .contains("/no/such/clang (TILEWRIGHT_CLANG)"),
            "{missing}"
        );
    }

    #[test]
    fn the_newest_hip_of_the_most_explicit_place_is_taken() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let env = Env::fixed(root, []);
        let missing = find_hip(&env).unwrap_err().to_string();
        assert!(missing.contains("install ROCm"), "{missing}");
        for file in [
            "usr/lib64/libamdhip64.so",
            "opt/rocm/lib/libamdhip64.so.6",
            "opt/rocm/lib/libamdhip64.so.7",
        ] {
            let file = touch(root, file);
            assert_eq!(find_hip(&env).unwrap().0, file);
        }
        let named = touch(root, "mine/libamdhip64.so.7");
        let folder = root.join("mine");
        let vars = [("TILEWRIGHT_HIP", folder.to_str().unwrap())];
        assert_eq!(find_hip(&Env::fixed(root, vars)).unwrap().0, named);
        touch(root, "opt/rocm/lib/libhiprtc.so");
        assert!(find_hiprtc(&env).is_ok());
    }
}
