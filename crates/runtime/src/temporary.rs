//! Files and folders that are there for a moment, under names that nobody else has.

use std::fs::{self, DirBuilder, File};
use std::hash::{BuildHasher, Hasher, RandomState};
use std::io::{self, Write};
use std::path::{Path, PathBuf};

/// Names that are tried before it is given up: each is one of 2^64.
const TRIES: usize = 16;

/// A folder of the user's alone, removed with all that is in it when this is dropped.
#[derive(Debug)]
pub(crate) struct Folder(PathBuf);

impl Folder {
    /// In the system's folder for such.
    pub fn new() -> io::Result<Folder> {
        let mut builder = DirBuilder::new();
        #[cfg(unix)]
        std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
        let parent = std::env::temp_dir();
        let (path, ()) = under_new_name(&parent, "tilewright-", |path| builder.create(path))?;
        Ok(Folder(path))
    }

    pub fn path(&self) -> &Path {
        &self.0
    }
}

impl Drop for Folder {
    fn drop(&mut self) {
        // Whatever is left there takes room and harms nobody.
        let _ = fs::remove_dir_all(&self.0);
    }
}

/// Puts a whole file in its place in one step, with the usual rights. Until then it is in the same
/// `folder` under a name that begins with `prefix`.
pub(crate) fn write_whole(
    folder: &Path,
    prefix: &str,
    path: &Path,
    content: &[u8],
) -> io::Result<()> {
    let (temporary, mut file) = under_new_name(folder, prefix, |path| File::create_new(path))?;
    let written = file.write_all(content);
    drop(file);
    let placed = written.and_then(|()| fs::rename(&temporary, path));
    if placed.is_err() {
        let _ = fs::remove_file(&temporary);
    }
    placed
}

/// Makes something in `folder` under a name that nothing there has, with the path it got.
fn under_new_name<T>(
    folder: &Path,
    prefix: &str,
    make: impl Fn(&Path) -> io::Result<T>,
) -> io::Result<(PathBuf, T)> {
    let mut tried = 0;
    loop {
        // A hasher of the standard library begins with random keys.
        let random = RandomState::new().build_hasher().finish();
        let path = folder.join(format!("{prefix}{random:016x}"));
        tried += 1;
        match make(&path) {
            Ok(made) => return Ok((path, made)),
            Err(error) if error.kind() == io::ErrorKind::AlreadyExists && tried < TRIES => {}
            Err(error) => return Err(error),
        }
    }
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn folders_are_apart_and_go_with_their_owner() {
        let (a, b) = (Folder::new().unwrap(), Folder::new().unwrap());
        assert_ne!(a.path(), b.path());
        fs::write(a.path().join("kernel.s"), "s_endpgm").unwrap();
        #[cfg(unix)]
        {
            use std::os::unix::fs::PermissionsExt;
            let mode = fs::metadata(a.path()).unwrap().permissions().mode();
            assert_eq!(mode & 0o777, 0o700);
        }
        let gone = a.path().to_owned();
        drop(a);
        assert!(!gone.exists() && b.path().exists());
    }

    #[test]
    fn a_file_is_placed_whole_or_not_at_all() {
        let folder = Folder::new().unwrap();
        let path = folder.path().join("entry");
        for content in [b"first".as_slice(), b"then"] {
            write_whole(folder.path(), "tmp-", &path, content).unwrap();
            assert_eq!(fs::read(&path).unwrap(), content);
        }
        // A folder is in the way: what was written does not stay behind.
        let taken = folder.path().join("taken");
        fs::create_dir_all(taken.join("more")).unwrap();
        assert!(write_whole(folder.path(), "tmp-", &taken, b"x").is_err());
        let left = fs::read_dir(folder.path()).unwrap();
        let left = left.map(|e| e.unwrap().file_name().into_string().unwrap());
        assert!(left.into_iter().all(|name| !name.starts_with("tmp-")));
    }

    #[test]
    fn a_name_that_is_always_taken_is_an_error() {
        let taken = |_: &Path| Err::<(), _>(io::ErrorKind::AlreadyExists.into());
        let error = under_new_name(Path::new("."), "x", taken).unwrap_err();
        assert_eq!(error.kind(), io::ErrorKind::AlreadyExists);
    }
}
