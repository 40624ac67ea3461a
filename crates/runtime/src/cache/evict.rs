//! Keeping the cache under its cap: the entries used longest ago go first.
//!
//! Nothing that is being read is removed: readers hold a shared lock on the entry, and an entry
//! whose lock cannot be had is passed over. Leftovers of killed processes (temporary files, lock
//! files) are cleared on the way.

use std::fs::{self, OpenOptions};
use std::io;
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::entry;
use super::key::Key;
use super::lock;

/// A temporary file this old belongs to no living process.
const STALE: Duration = Duration::from_secs(3600);

/// What a sweep did.
#[derive(Clone, Copy, Debug, Default, PartialEq, Eq)]
pub struct Swept {
    pub removed: u64,
    pub removed_bytes: u64,
    pub kept: u64,
    pub kept_bytes: u64,
}

/// The file of an entry, not opened.
#[derive(Debug)]
pub(super) struct EntryFile {
    pub path: PathBuf,
    pub key: Key,
    pub bytes: u64,
    pub used: SystemTime,
}

/// The entries of a cache. A folder that is not there has none.
pub(super) fn files(root: &Path) -> io::Result<Vec<EntryFile>> {
    let mut found = Vec::new();
    visit(root, |path, meta| {
        if let Some(key) = entry::key_of(&path) {
            found.push(EntryFile {
                path,
                key,
                bytes: meta.len(),
                used: meta.modified().unwrap_or(SystemTime::UNIX_EPOCH),
            });
        }
    })?;
    Ok(found)
}

/// Removes entries until at most `cap` bytes are left, the oldest first. `keep` was just written
/// and stays. Past the cap some more goes, so that the next store need not sweep again.
pub(super) fn shrink(root: &Path, cap: u64, keep: Option<&Key>) -> io::Result<Swept> {
    clean(root);
    let mut entries = files(root)?;
    entries.sort_by_key(|entry| entry.used);
    let mut swept = Swept {
        kept: entries.len() as u64,
        kept_bytes: entries.iter().map(|entry| entry.bytes).sum(),
        ..Swept::default()
    };
    if swept.kept_bytes <= cap && cap > 0 {
        return Ok(swept);
    }
    let goal = cap - cap / 10;
    for entry in entries {
        if swept.kept_bytes <= goal && cap > 0 {
            break;
        }
        if keep == Some(&entry.key) {
            continue;
        }
        match remove(&entry.path) {
            Removal::Busy => continue,
            Removal::Done => {
                swept.removed += 1;
                swept.removed_bytes += entry.bytes;
            }
            // Another process sweeps too; its removals count, or both would remove too much.
            Removal::Gone => {}
        }
        swept.kept -= 1;
        swept.kept_bytes -= entry.bytes;
    }
    Ok(swept)
}

enum Removal {
    Done,
    Gone,
    /// Somebody reads it, or it may not be removed.
    Busy,
}

fn remove(path: &Path) -> Removal {
    let file = match entry::open(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Removal::Gone,
        Err(_) => return Removal::Busy,
    };
    // Where the file system has no locks, who has the file open still reads it to its end.
    if let Err(fs::TryLockError::WouldBlock) = file.try_lock() {
        return Removal::Busy;
    }
    match fs::remove_file(path) {
        Ok(()) => Removal::Done,
        Err(error) if error.kind() == io::ErrorKind::NotFound => Removal::Gone,
        Err(_) => Removal::Busy,
    }
}

fn clean(root: &Path) {
    lock::clean(root);
    let now = SystemTime::now();
    let _ = visit(root, |path, meta| {
        let temporary = path
            .file_name()
            .and_then(|name| name.to_str())
            .is_some_and(|name| name.starts_with(entry::TEMPORARY));
        let age = meta
            .modified()
            .ok()
            .and_then(|m| now.duration_since(m).ok());
        if temporary && age.is_some_and(|age| age > STALE) {
            let _ = fs::remove_file(path);
        }
    });
}

/// Calls `each` for every file in the folders of entries. What vanishes meanwhile is no error:
/// other processes evict too.
fn visit(root: &Path, mut each: impl FnMut(PathBuf, fs::Metadata)) -> io::Result<()> {
    let folders = match fs::read_dir(root) {
        Ok(folders) => folders,
        Err(error) if error.kind() == io::ErrorKind::NotFound => return Ok(()),
        Err(error) => return Err(error),
    };
    for folder in folders.filter_map(Result::ok) {
        let is_shard = folder
            .file_name()
            .to_str()
            .is_some_and(|name| name.len() == 2);
        if !is_shard {
            continue;
        }
        let Ok(files) = fs::read_dir(folder.path()) else {
            continue;
        };
        for file in files.filter_map(Result::ok) {
            if let Ok(meta) = file.metadata()
                && meta.is_file()
            {
                each(file.path(), meta);
            }
        }
    }
    Ok(())
}
