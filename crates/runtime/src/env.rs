//! Every environment variable and every well-known place the runtime looks at.
//!
//! Lookups go through [`Env`] instead of `std::env`, so that a test can hand in variables and a
//! file-system root of its own, and so that the list of knobs is this file.

use std::collections::BTreeMap;
use std::ffi::OsString;
use std::path::{Path, PathBuf};

/// Path of an NVRTC library, or of a folder that holds one. Nothing else is tried when it is set.
pub const NVRTC: &str = "TILEWRIGHT_NVRTC";
/// Path of an `nvcc`. Nothing else is tried when it is set.
pub const NVCC: &str = "TILEWRIGHT_NVCC";
/// Path of a clang with the AMDGPU target. Nothing else is tried when it is set.
pub const CLANG: &str = "TILEWRIGHT_CLANG";
/// Path of the HIP runtime's library, or of a folder that holds one. Nothing else is tried.
pub const HIP: &str = "TILEWRIGHT_HIP";
/// Path of hiprtc's library, or of a folder that holds one. Nothing else is tried.
pub const HIPRTC: &str = "TILEWRIGHT_HIPRTC";
/// Folder of the kernel cache; an empty value turns the cache off.
pub const CACHE_DIR: &str = "TILEWRIGHT_CACHE_DIR";
/// Size cap of the kernel cache: a number of bytes, or one with the suffix K, M or G.
pub const CACHE_SIZE: &str = "TILEWRIGHT_CACHE_SIZE";

/// A view of the process's environment and file system.
#[derive(Clone, Debug)]
pub struct Env {
    /// `None` reads the process's own variables.
    vars: Option<BTreeMap<String, OsString>>,
    root: PathBuf,
    exe: Option<PathBuf>,
}

impl Env {
    /// The environment of this process.
    pub fn process() -> Self {
        Self {
            vars: None,
            root: PathBuf::from("/"),
            exe: std::env::current_exe().ok(),
        }
    }

    /// An environment with exactly these variables, whose system folders lie under `root` and
    /// which has no executable of its own.
    pub fn fixed<'a>(
        root: impl Into<PathBuf>,
        vars: impl IntoIterator<Item = (&'a str, &'a str)>,
    ) -> Self {
        let vars = vars
            .into_iter()
            .map(|(k, v)| (k.to_owned(), OsString::from(v)))
            .collect();
        Self {
            vars: Some(vars),
            root: root.into(),
            exe: None,
        }
    }

    /// The same environment seen by the executable at `exe`.
    pub fn with_exe(mut self, exe: impl Into<PathBuf>) -> Self {
        self.exe = Some(exe.into());
        self
    }

    /// The value of a variable, even when it is empty.
    pub fn raw(&self, name: &str) -> Option<OsString> {
        match &self.vars {
            Some(vars) => vars.get(name).cloned(),
            None => std::env::var_os(name),
        }
    }

    /// The value of a variable; an empty one counts as not set.
    pub fn get(&self, name: &str) -> Option<OsString> {
        self.raw(name).filter(|v| !v.is_empty())
    }

    pub fn path(&self, name: &str) -> Option<PathBuf> {
        self.get(name).map(PathBuf::from)
    }

    /// The folders of a variable in the form of `PATH`.
    pub fn paths(&self, name: &str) -> Vec<PathBuf> {
        let Some(value) = self.get(name) else {
            return Vec::new();
        };
        std::env::split_paths(&value)
            .filter(|p| p.is_absolute())
            .collect()
    }

    /// A folder of the system, given by its absolute path.
    pub fn system(&self, path: &str) -> PathBuf {
        self.root.join(path.trim_start_matches('/'))
    }

    /// The user's home folder. Where `HOME` is missing, the process's own environment falls back
    /// to what the system's user table says.
    pub fn home(&self) -> Option<PathBuf> {
        match &self.vars {
            Some(_) => self.path("HOME"),
            None => std::env::home_dir().filter(|p| p.is_absolute()),
        }
    }

    /// The folders above the running executable, nearest first.
    pub fn exe_folders(&self) -> impl Iterator<Item = &Path> {
        self.exe.iter().flat_map(|exe| exe.ancestors().skip(1))
    }

    /// The first file called `name` in the folders of `PATH`.
    pub fn program(&self, name: &str) -> Option<PathBuf> {
        self.paths("PATH")
            .into_iter()
            .map(|dir| dir.join(name))
            .find(|file| file.is_file())
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn an_empty_variable_is_not_set_but_can_be_told_from_a_missing_one() {
        let env = Env::fixed("/", [("A", ""), ("B", "x")]);
        assert_eq!(env.get("A"), None);
        assert_eq!(env.raw("A"), Some(OsString::new()));
        assert_eq!(env.raw("C"), None);
        assert_eq!(env.get("B"), Some(OsString::from("x")));
    }

    #[test]
    fn relative_folders_in_a_path_list_are_ignored() {
        let env = Env::fixed("/", [("PATH", "/a:.:b:/c")]);
        assert_eq!(
            env.paths("PATH"),
            [PathBuf::from("/a"), PathBuf::from("/c")]
        );
    }

    #[test]
    fn a_fixed_environment_has_no_home_of_its_own() {
        assert_eq!(Env::fixed("/", []).home(), None);
        assert_eq!(
            Env::fixed("/", [("HOME", "/h")]).home(),
            Some(PathBuf::from("/h"))
        );
    }
}
