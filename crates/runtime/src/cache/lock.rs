//! Single flight: one process builds a key while the others wait.
//!
//! The lock is the operating system's lock on a small file, so it goes away with the process that
//! holds it, however that ends. The holder removes the file before it lets go. A waiter that then
//! gets the lock on the removed file sees that the name leads elsewhere, and starts over.

use std::fs::{self, File, OpenOptions, TryLockError};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, Instant};

use super::entry;
use super::key::Key;

pub(super) const FOLDER: &str = "locks";

/// The right to build a key, until it is dropped.
#[derive(Debug)]
pub(super) struct BuildLock {
    /// Held for its lock, which the system takes back when the file is closed.
    _file: File,
    path: PathBuf,
}

impl Drop for BuildLock {
    fn drop(&mut self) {
        let _ = fs::remove_file(&self.path);
    }
}

#[derive(Debug)]
pub(super) enum Acquired<T> {
    Lock(BuildLock),
    /// Somebody else finished while we waited.
    Ready(T),
    TimedOut,
    /// The file system has no locks.
    Unsupported,
}

/// Takes the lock of `key`. While another process holds it, asks `ready` now and then: what all
/// wait for is the entry, and the lock passes from one waiter to the next only slowly.
pub(super) fn acquire<T>(
    root: &Path,
    key: &Key,
    patience: Duration,
    ready: impl Fn() -> Option<T>,
) -> io::Result<Acquired<T>> {
    let folder = root.join(FOLDER);
    entry::create_folder(&folder)?;
    let path = folder.join(format!("{key}.lock"));
    let start = Instant::now();
    let mut pause = Duration::from_micros(500);
    loop {
        let file = open(&path)?;
        match file.try_lock() {
            Ok(()) if is_current(&file, &path)? => {
                return Ok(Acquired::Lock(BuildLock { _file: file, path }));
            }
            // The last holder removed this file; its successor is another one.
            Ok(()) => continue,
            Err(TryLockError::WouldBlock) => {}
            Err(TryLockError::Error(error)) if error.kind() == io::ErrorKind::Unsupported => {
                return Ok(Acquired::Unsupported);
            }
            Err(TryLockError::Error(error)) => return Err(error),
        }
        drop(file);
        if let Some(value) = ready() {
            return Ok(Acquired::Ready(value));
        }
        if start.elapsed() > patience {
            return Ok(Acquired::TimedOut);
        }
        std::thread::sleep(pause);
        pause = (pause * 2).min(Duration::from_millis(10));
    }
}

/// Removes the lock files that no process holds: those of processes that were killed.
pub(super) fn clean(root: &Path) {
    let Ok(files) = fs::read_dir(root.join(FOLDER)) else {
        return;
    };
    for file in files.filter_map(Result::ok) {
        let path = file.path();
        if let Ok(file) = entry::open(&path, OpenOptions::new().write(true))
            && file.try_lock().is_ok()
            && is_current(&file, &path).unwrap_or(false)
        {
            let _ = fs::remove_file(&path);
        }
    }
}

fn open(path: &Path) -> io::Result<File> {
    let mut options = OpenOptions::new();
    options.create(true).truncate(false).write(true);
    entry::open(path, &options)
}

/// Whether the name still leads to the file we locked.
#[cfg(unix)]
fn is_current(file: &File, path: &Path) -> io::Result<bool> {
    use std::os::unix::fs::MetadataExt;
    let held = file.metadata()?;
    match fs::metadata(path) {
        Ok(named) => Ok((held.dev(), held.ino()) == (named.dev(), named.ino())),
        Err(error) if error.kind() == io::ErrorKind::NotFound => Ok(false),
        Err(error) => Err(error),
    }
}

/// Elsewhere an open file cannot be removed, so the name is always current.
#[cfg(not(unix))]
fn is_current(_: &File, _: &Path) -> io::Result<bool> {
    Ok(true)
}
