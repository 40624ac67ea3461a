//! Where NVRTC and nvcc may be: the list of places, in the order they are tried.
//!
//! Only file names are looked at; nothing is loaded and no Python is run. That keeps a cache hit
//! cheap (loading NVRTC alone takes tens of milliseconds) and lets `doctor` say exactly what was
//! looked for and where.

use std::fmt;
use std::path::{Path, PathBuf};

use crate::env::{self, Env};

/// Versions of NVRTC's library file that we accept, newest first. Older ones than 12 cannot
/// compile for sm_90a.
const NVRTC_MAJORS: std::ops::RangeInclusive<u32> = 12..=19;

/// One folder that was looked into, and why.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Folder {
    pub folder: PathBuf,
    /// Who named it: a variable, the system, a Python installation.
    pub source: &'static str,
}

impl fmt::Display for Folder {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} ({})", self.folder.display(), self.source)
    }
}

/// A tool that was found in none of its places.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NotFound {
    pub tool: &'static str,
    /// The folders that exist and were looked into, in order.
    pub looked: Vec<Folder>,
    /// What to install or set.
    pub help: &'static str,
}

impl fmt::Display for NotFound {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        write!(f, "{} was not found", self.tool)?;
        if !self.looked.is_empty() {
            write!(f, "; looked in:")?;
            for place in &self.looked {
                write!(f, "\n  {place}")?;
            }
        }
        write!(f, "\n{}", self.help)
    }
}

impl std::error::Error for NotFound {}

/// A file of NVRTC.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct NvrtcFile {
    pub path: PathBuf,
    pub source: &'static str,
    /// As the name of the library of built-in functions beside it says.
    pub version: Option<(u32, u32)>,
    /// Builds of one version differ in size.
    pub bytes: u64,
}

pub const NVRTC_HELP: &str = "install it with `pip install nvidia-cuda-nvrtc`, or install the \
     CUDA toolkit, or set TILEWRIGHT_NVRTC to the path of libnvrtc.so";

pub const NVCC_HELP: &str =
    "install the CUDA toolkit, or put its `bin` folder on PATH, or set TILEWRIGHT_NVCC";

/// Finds NVRTC without loading it.
pub fn find_nvrtc(env: &Env) -> Result<NvrtcFile, NotFound> {
    let mut looked = Vec::new();
    for tier in NVRTC_TIERS {
        for place in tier(env) {
            if let Some(path) = nvrtc_in(&place.folder) {
                let version = builtins_version(&path);
                let bytes = path.metadata().map_or(0, |m| m.len());
                return Ok(NvrtcFile {
                    path,
                    source: place.source,
                    version,
                    bytes,
                });
            }
            if place.folder.exists() || place.source == env::NVRTC {
                looked.push(place);
            }
        }
        // What the user names is what is used: a wrong name is an error, not a reason to guess.
        if env.get(env::NVRTC).is_some() {
            break;
        }
    }
    Err(NotFound {
        tool: "NVRTC (libnvrtc.so)",
        looked,
        help: NVRTC_HELP,
    })
}

/// Finds nvcc on PATH or in a CUDA toolkit.
pub fn find_nvcc(env: &Env) -> Result<PathBuf, NotFound> {
    let mut looked = Vec::new();
    let places: Vec<Folder> = if let Some(named) = env.path(env::NVCC) {
        if named.is_file() {
            return Ok(named);
        }
        vec![Folder {
            folder: named,
            source: env::NVCC,
        }]
    } else {
        let roots = named_roots(env).into_iter().chain(installed_roots(env));
        let toolkits = roots.map(|(root, source)| Folder {
            folder: root.join("bin"),
            source,
        });
        let path = env.paths("PATH").into_iter().map(|folder| Folder {
            folder,
            source: "PATH",
        });
        toolkits.chain(path).collect()
    };
    for place in places {
        let file = place.folder.join("nvcc");
        if file.is_file() {
            return Ok(file);
        }
        let news = !looked.contains(&place);
        if news && (place.folder.exists() || place.source == env::NVCC) {
            looked.push(place);
        }
    }
    Err(NotFound {
        tool: "nvcc",
        looked,
        help: NVCC_HELP,
    })
}

type Tier = fn(&Env) -> Vec<Folder>;

/// Tiers are computed one after another, so that a find in an early one costs no directory reads
/// in a later one.
const NVRTC_TIERS: &[Tier] = &[
    named,
    named_toolkits,
    beside_executable,
    installed_toolkits,
    system,
    wheels,
];

fn named(env: &Env) -> Vec<Folder> {
    let place = env.path(env::NVRTC).map(|folder| Folder {
        folder,
        source: env::NVRTC,
    });
    place.into_iter().collect()
}

fn named_toolkits(env: &Env) -> Vec<Folder> {
    libraries_of(named_roots(env))
}

fn installed_toolkits(env: &Env) -> Vec<Folder> {
    libraries_of(installed_roots(env))
}

fn libraries_of(roots: Vec<(PathBuf, &'static str)>) -> Vec<Folder> {
    let mut places = Vec::new();
    for (root, source) in roots {
        for sub in ["lib64", "targets/x86_64-linux/lib", "lib"] {
            places.push(Folder {
                folder: root.join(sub),
                source,
            });
        }
    }
    places
}

/// A wheel unpacked into a folder `nvrtc-wheel` beside the executable or beside a folder it lies
/// in: what `scripts/setup-nvrtc` makes, and what one carries to a machine with nothing installed.
fn beside_executable(env: &Env) -> Vec<Folder> {
    let wheel = env
        .exe_folders()
        .take(4)
        .map(|folder| folder.join("nvrtc-wheel"));
    wheel
        .flat_map(|root| wheel_folders(&root, "nvrtc-wheel"))
        .collect()
}

fn system(env: &Env) -> Vec<Folder> {
    let mut folders: Vec<(PathBuf, &'static str)> = env
        .paths("LD_LIBRARY_PATH")
        .into_iter()
        .map(|p| (p, "LD_LIBRARY_PATH"))
        .collect();
    for path in [
        "/usr/lib/x86_64-linux-gnu",
        "/usr/lib/aarch64-linux-gnu",
        "/usr/lib64",
        "/usr/local/lib",
        "/usr/lib",
    ] {
        folders.push((env.system(path), "system"));
    }
    for conf in list(&env.system("/etc/ld.so.conf.d"), |name| {
        name.ends_with(".conf")
    }) {
        let text = std::fs::read_to_string(conf).unwrap_or_default();
        for line in text.lines().map(str::trim).filter(|l| l.starts_with('/')) {
            folders.push((env.system(line), "ld.so.conf"));
        }
    }
    folders
        .into_iter()
        .map(|(folder, source)| Folder { folder, source })
        .collect()
}

fn wheels(env: &Env) -> Vec<Folder> {
    let mut prefixes: Vec<(PathBuf, &'static str)> = Vec::new();
    for name in ["VIRTUAL_ENV", "CONDA_PREFIX"] {
        if let Some(prefix) = env.path(name) {
            prefixes.push((prefix, name));
        }
    }
    // `<prefix>/bin/python3` belongs to `<prefix>/lib/python3.N`, also behind links.
    for dir in env.paths("PATH") {
        let python = dir.join("python3");
        if !python.is_file() {
            continue;
        }
        for file in [Some(python.clone()), python.canonicalize().ok()] {
            if let Some(prefix) = file.as_deref().and_then(|f| f.parent()?.parent()) {
                prefixes.push((prefix.to_owned(), "python3 on PATH"));
            }
        }
    }
    // pyenv's python3 is a script, so its prefix says nothing; the versions lie side by side.
    let pyenv = env
        .path("PYENV_ROOT")
        .or_else(|| env.home().map(|h| h.join(".pyenv")));
    if let Some(root) = pyenv {
        for version in list(&root.join("versions"), |_| true) {
            prefixes.push((version, "pyenv"));
        }
    }
    if let Some(home) = env.home() {
        prefixes.push((home.join(".local"), "pip --user"));
    }
    prefixes.push((env.system("/usr/local"), "system Python"));
    prefixes.push((env.system("/usr"), "system Python"));

    let mut places: Vec<Folder> = Vec::new();
    for (prefix, source) in prefixes {
        let lib = prefix.join("lib");
        for python in list(&lib, |name| name.starts_with("python3")) {
            for packages in ["site-packages", "dist-packages"] {
                for place in wheel_folders(&python.join(packages), source) {
                    if !places.iter().any(|p| p.folder == place.folder) {
                        places.push(place);
                    }
                }
            }
        }
    }
    places
}

/// The library folders of NVIDIA's wheels in one `site-packages`: `cu13` and later hold a whole
/// toolkit, CUDA 12's wheels have one folder each.
fn wheel_folders(packages: &Path, source: &'static str) -> Vec<Folder> {
    let nvidia = packages.join("nvidia");
    let mut folders = list(&nvidia, |name| {
        name.strip_prefix("cu")
            .is_some_and(|n| !n.is_empty() && n.bytes().all(|b| b.is_ascii_digit()))
    });
    folders.push(nvidia.join("cuda_nvrtc"));
    folders
        .into_iter()
        .map(|folder| Folder {
            folder: folder.join("lib"),
            source,
        })
        .collect()
}

fn named_roots(env: &Env) -> Vec<(PathBuf, &'static str)> {
    let named = ["CUDA_HOME", "CUDA_PATH"].into_iter();
    named
        .filter_map(|name| Some((env.path(name)?, name)))
        .collect()
}

fn installed_roots(env: &Env) -> Vec<(PathBuf, &'static str)> {
    let mut roots = vec![env.system("/usr/local/cuda")];
    roots.extend(list(&env.system("/usr/local"), |name| {
        name.starts_with("cuda-")
    }));
    roots.push(env.system("/opt/cuda"));
    roots
        .into_iter()
        .map(|root| (root, "CUDA toolkit"))
        .collect()
}

/// The entries of a folder whose name passes, newest version first: names are compared with
/// their numbers read as numbers, so that 3.12 comes before 3.9.
pub(super) fn list(folder: &Path, keep: impl Fn(&str) -> bool) -> Vec<PathBuf> {
    let Ok(entries) = std::fs::read_dir(folder) else {
        return Vec::new();
    };
    let mut names: Vec<String> = entries
        .filter_map(|entry| entry.ok()?.file_name().into_string().ok())
        .filter(|name| keep(name))
        .collect();
    names.sort_by_cached_key(|name| std::cmp::Reverse((numbers(name), name.clone())));
    names.iter().map(|name| folder.join(name)).collect()
}

fn numbers(name: &str) -> Vec<u64> {
    name.split(|c: char| !c.is_ascii_digit())
        .filter_map(|part| part.parse().ok())
        .collect()
}

/// The newest NVRTC in a folder; `folder` may also be the library file itself.
fn nvrtc_in(folder: &Path) -> Option<PathBuf> {
    if folder.is_file() {
        return Some(folder.to_owned());
    }
    if !folder.is_dir() {
        return None;
    }
    let versioned = NVRTC_MAJORS
        .rev()
        .map(|major| folder.join(format!("libnvrtc.so.{major}")));
    let plain = folder.join("libnvrtc.so");
    versioned
        .chain(std::iter::once(plain))
        .find(|file| file.is_file())
}

/// NVRTC loads `libnvrtc-builtins.so.13.4` from its own folder, whose name tells the version
/// without loading anything.
fn builtins_version(nvrtc: &Path) -> Option<(u32, u32)> {
    let real = nvrtc.canonicalize().ok()?;
    let prefix = "libnvrtc-builtins.so.";
    let newest = list(real.parent()?, |name| name.starts_with(prefix));
    newest.iter().find_map(|file| {
        let name = file.file_name()?.to_str()?;
        let mut parts = name.strip_prefix(prefix)?.split('.');
        let major = parts.next()?.parse().ok()?;
        let minor = parts.next()?.parse().ok()?;
        Some((major, minor))
    })
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

    fn found(env: &Env) -> PathBuf {
        find_nvrtc(env).unwrap().path
    }

    #[test]
    fn places_are_tried_from_the_most_explicit_to_the_least() {
        let root = tempfile::tempdir().unwrap();
        let root = root.path();
        let text = |p: &Path| p.to_str().unwrap().to_owned();
        let (home, cuda) = (text(&root.join("home")), text(&root.join("toolkit")));
        let vars = [("HOME", home.as_str()), ("CUDA_HOME", cuda.as_str())];

        let user = touch(
            root,
            "home/.local/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
        );
        assert_eq!(found(&Env::fixed(root, vars)), user);
        let distro = touch(root, "usr/lib/x86_64-linux-gnu/libnvrtc.so.12");
        assert_eq!(found(&Env::fixed(root, vars)), distro);
        let newest = touch(root, "usr/local/cuda-13.10/lib64/libnvrtc.so.13");
        touch(root, "usr/local/cuda-13.9/lib64/libnvrtc.so.13");
        assert_eq!(found(&Env::fixed(root, vars)), newest);
        let carried = touch(root, "app/nvrtc-wheel/nvidia/cu13/lib/libnvrtc.so.13");
        let exe = Env::fixed(root, vars).with_exe(root.join("app/debug/deps/t"));
        assert_eq!(found(&exe), carried);
        let toolkit = touch(root, "toolkit/lib64/libnvrtc.so");
        assert_eq!(found(&exe), toolkit);
        let named = touch(root, "mine/libnvrtc-special.so");
        let named_text = text(&named);
        let env = Env::fixed(root, [("TILEWRIGHT_NVRTC", named_text.as_str())]);
        assert_eq!(found(&env), named);
    }

    #[test]
    fn every_kind_of_python_installation_is_searched() {
        for (file, vars) in [
            (
                "venv/lib/python3.12/site-packages/nvidia/cuda_nvrtc/lib/libnvrtc.so.12",
                vec![("VIRTUAL_ENV", "venv")],
            ),
            (
                "conda/lib/python3.10/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                vec![("CONDA_PREFIX", "conda")],
            ),
            (
                "h/.pyenv/versions/3.11.7/lib/python3.11/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                vec![("HOME", "h")],
            ),
            (
                "usr/lib/python3/dist-packages/nvidia/cu14/lib/libnvrtc.so.14",
                vec![],
            ),
            (
                "py/lib/python3.13/site-packages/nvidia/cu13/lib/libnvrtc.so.13",
                vec![("PATH", "py/bin")],
            ),
        ] {
            let root = tempfile::tempdir().unwrap();
            let root = root.path();
            touch(root, "py/bin/python3");
            let expected = touch(root, file);
            let vars: Vec<(&str, String)> = vars
                .iter()
                .map(|(k, v)| (*k, root.join(v).to_str().unwrap().to_owned()))
                .collect();
            let env = Env::fixed(root, vars.iter().map(|(k, v)| (*k, v.as_str())));
            assert_eq!(found(&env), expected);
        }
    }

    #[test]
    fn a_named_library_that_is_not_there_is_an_error_even_when_another_is() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), "usr/lib/x86_64-linux-gnu/libnvrtc.so.12");
        let env = Env::fixed(root.path(), [("TILEWRIGHT_NVRTC", "/no/such/file")]);
        let error = find_nvrtc(&env).unwrap_err();
        assert_eq!(
            error.to_string(),
            "NVRTC (libnvrtc.so) was not found; looked in:\n  \
             /no/such/file (TILEWRIGHT_NVRTC)\n\
             install it with `pip install nvidia-cuda-nvrtc`, or install the CUDA toolkit, or \
             set TILEWRIGHT_NVRTC to the path of libnvrtc.so"
        );
    }

    #[test]
    fn a_library_too_old_for_sm_90a_is_not_taken() {
        let root = tempfile::tempdir().unwrap();
        touch(root.path(), "usr/lib64/libnvrtc.so.11.2");
        let error = find_nvrtc(&Env::fixed(root.path(), [])).unwrap_err();
        let looked: Vec<_> = error.looked.iter().map(|p| p.folder.clone()).collect();
        assert_eq!(looked, [root.path().join("usr/lib64")]);
    }

    #[test]
    fn the_version_is_read_from_the_builtins_beside_the_library() {
        let root = tempfile::tempdir().unwrap();
        let real = touch(root.path(), "cuda/lib/libnvrtc.so.13.0.88");
        touch(root.path(), "cuda/lib/libnvrtc-builtins.so.13.0");
        std::fs::create_dir_all(root.path().join("usr/lib64")).unwrap();
        let link = root.path().join("usr/lib64/libnvrtc.so.13");
        std::os::unix::fs::symlink(real, &link).unwrap();
        let file = find_nvrtc(&Env::fixed(root.path(), [])).unwrap();
        assert_eq!((file.path, file.version), (link, Some((13, 0))));
    }

    #[test]
    fn nvcc_is_found_in_a_toolkit_and_on_the_path() {
        let root = tempfile::tempdir().unwrap();
        assert_eq!(
            find_nvcc(&Env::fixed(root.path(), [])).unwrap_err().tool,
            "nvcc"
        );
        let on_path = touch(root.path(), "somewhere/nvcc");
        let dir = on_path.parent().unwrap().to_str().unwrap();
        let env = Env::fixed(root.path(), [("PATH", dir)]);
        assert_eq!(find_nvcc(&env).unwrap(), on_path);
        let toolkit = touch(root.path(), "usr/local/cuda/bin/nvcc");
        assert_eq!(find_nvcc(&env).unwrap(), toolkit);
    }
}
