//! Compiled kernels on disk, shared by every process of the user.
//!
//! An entry is one file named after the key, written to a temporary file and renamed, so a reader
//! sees a whole entry or none. Its header holds a hash of its content; an entry that does not
//! match is removed and built again. One process builds a key while the others wait for it
//! (`lock.rs`). The oldest entries go when the size cap is passed (`evict.rs`).
//!
//! A cache that cannot be used never fails a build: the kernel is built, and the outcome says why
//! it was not kept.

mod entry;
mod evict;
mod key;
mod lock;

use std::fmt;
use std::io;
use std::path::{Path, PathBuf};
use std::sync::Mutex;
use std::sync::atomic::{AtomicBool, AtomicU64, Ordering};
use std::time::{Duration, SystemTime};

pub use evict::Swept;
pub use key::{Key, KeyBuilder};

use crate::env::{self, Env};
use entry::Read;
use lock::{Acquired, BuildLock};

/// The size cap when none is set: room for some twenty thousand kernels.
pub const DEFAULT_CAP: u64 = 1 << 30;

/// How long a process waits for another one that builds the same key before it builds the kernel
/// itself. A killed builder is noticed at once; this is for one that hangs.
const PATIENCE: Duration = Duration::from_secs(120);

/// The kernel cache of a folder.
#[derive(Debug)]
pub struct Cache {
    place: Result<PathBuf, Reason>,
    cap: u64,
    patience: Duration,
    /// What the entries took when they were last counted, plus what was stored since.
    size: Mutex<Option<u64>>,
    warning: Mutex<Option<Reason>>,
    warned: AtomicBool,
    hits: AtomicU64,
    builds: AtomicU64,
}

/// How a kernel was come by.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Outcome {
    /// It was in the cache.
    Hit,
    /// It was built and stored.
    Built,
    /// Its entry was damaged; it was built again and stored.
    Healed(String),
    /// It was built and could not be stored.
    BuiltUncached(Reason),
}

/// Why the cache is not used.
#[derive(Clone, Debug, PartialEq, Eq)]
pub enum Reason {
    /// The user turned it off.
    Off,
    /// There is no home folder and no variable that names a cache folder.
    NoFolder,
    /// The value of the variable for the cap cannot be read.
    BadCap(String),
    /// Reading or writing failed: a full disk, a read-only folder, missing rights.
    Io { what: String, error: String },
    /// The kernel alone is larger than the cap.
    TooLarge { bytes: u64, cap: u64 },
}

/// One entry of the cache.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Entry {
    pub key: Key,
    /// What the entry was stored as, for people.
    pub label: String,
    pub bytes: u64,
    pub used: SystemTime,
}

/// What the cache holds, and what this process did with it.
#[derive(Clone, Debug, PartialEq, Eq)]
pub struct Stats {
    pub entries: u64,
    pub bytes: u64,
    pub cap: u64,
    pub hits: u64,
    pub builds: u64,
}

impl Cache {
    /// The user's cache: `TILEWRIGHT_CACHE_DIR`, else `tilewright` in the XDG cache folder.
    /// Touches no file.
    pub fn open(env: &Env) -> Self {
        let cap = cap(env);
        let place = match &cap {
            Err(reason) => Err(reason.clone()),
            Ok(_) => folder(env),
        };
        let cap = cap.unwrap_or(DEFAULT_CAP);
        Self::new(place, cap)
    }

    /// A cache in `folder` that keeps at most `cap` bytes.
    pub fn at(folder: impl Into<PathBuf>, cap: u64) -> Self {
        Self::new(Ok(folder.into()), cap)
    }

    /// A cache that keeps nothing, for callers that want a compile of their own.
    pub fn off() -> Self {
        Self::new(Err(Reason::Off), 0)
    }

    /// The same cache with another limit on waiting for a process that builds the same key.
    pub fn with_patience(mut self, patience: Duration) -> Self {
        self.patience = patience;
        self
    }

    fn new(place: Result<PathBuf, Reason>, cap: u64) -> Self {
        Self {
            place,
            cap,
            patience: PATIENCE,
            size: Mutex::new(None),
            warning: Mutex::new(None),
            warned: AtomicBool::new(false),
            hits: AtomicU64::new(0),
            builds: AtomicU64::new(0),
        }
    }

    /// The folder, or why there is none.
    pub fn path(&self) -> Result<&Path, Reason> {
        match &self.place {
            Ok(path) => Ok(path),
            Err(reason) => Err(reason.clone()),
        }
    }

    /// The bytes of `key`, from the cache or from `build`. The label is stored with them for
    /// people who list the cache.
    pub fn get_or_build<E>(
        &self,
        key: &Key,
        label: &str,
        build: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<(Vec<u8>, Outcome), E> {
        let root = match &self.place {
            Ok(root) => root,
            Err(reason) => return self.uncached(reason.clone(), build),
        };
        let file = entry::path(root, key);
        let mut damage = match entry::read(&file, key) {
            Read::Found(bytes) => return Ok(self.hit(bytes)),
            Read::Missing => None,
            Read::Damaged(reason) => Some(reason),
        };

        // Others may be building this key right now: wait for their entry or for the lock,
        // whichever comes first.
        let is_there = || match entry::read(&file, key) {
            Read::Found(bytes) => Some(bytes),
            Read::Missing | Read::Damaged(_) => None,
        };
        let lock = match lock::acquire(root, key, self.patience, is_there) {
            Ok(Acquired::Ready(bytes)) => return Ok(self.hit(bytes)),
            Ok(Acquired::Lock(lock)) => Some(lock),
            // The builder hangs, or this file system has no locks: a second build is better than
            // none, and the rename keeps the entry whole.
            Ok(Acquired::TimedOut | Acquired::Unsupported) => None,
            Err(error) => {
                return self.uncached(Reason::io("lock the kernel cache in", root, &error), build);
            }
        };
        match entry::read(&file, key) {
            Read::Found(bytes) => return Ok(self.hit(bytes)),
            Read::Missing => {}
            Read::Damaged(reason) => {
                damage = Some(reason);
                // Failing to remove it is no harm: the new entry replaces it.
                let _ = std::fs::remove_file(&file);
            }
        }
        let bytes = build()?;
        self.builds.fetch_add(1, Ordering::Relaxed);
        let stored = self.store(root, &file, key, label, &bytes);
        drop::<Option<BuildLock>>(lock);
        let outcome = match (stored, damage) {
            (Ok(()), None) => Outcome::Built,
            (Ok(()), Some(reason)) => Outcome::Healed(reason),
            (Err(reason), _) => {
                self.warn(&reason);
                Outcome::BuiltUncached(reason)
            }
        };
        Ok((bytes, outcome))
    }

    /// Why kernels are not kept, the first time this is asked after it came up; then `None`. For
    /// a caller that shows a warning once.
    pub fn take_warning(&self) -> Option<String> {
        let reason = self.warning.lock().ok()?.take()?;
        (!self.warned.swap(true, Ordering::Relaxed))
            .then(|| format!("compiled kernels are not cached: {reason}"))
    }

    /// All entries, the most recently used first. A folder that does not exist yet is empty.
    pub fn ls(&self) -> Result<Vec<Entry>, Reason> {
        let root = self.path()?;
        let files =
            evict::files(root).map_err(|error| Reason::io("read the folder", root, &error))?;
        let mut entries: Vec<Entry> = files
            .into_iter()
            .map(|file| Entry {
                label: entry::label(&file.path).unwrap_or_else(|| "(damaged)".to_owned()),
                key: file.key,
                bytes: file.bytes,
                used: file.used,
            })
            .collect();
        entries.sort_by_key(|entry| std::cmp::Reverse(entry.used));
        Ok(entries)
    }

    /// Removes all entries; those that are being read stay until their readers are done.
    pub fn clear(&self) -> Result<Swept, Reason> {
        let root = self.path()?;
        let swept = evict::shrink(root, 0, None);
        *lock_or_recover(&self.size) = None;
        swept.map_err(|error| Reason::io("clear the kernel cache in", root, &error))
    }

    pub fn stats(&self) -> Result<Stats, Reason> {
        let root = self.path()?;
        let files =
            evict::files(root).map_err(|error| Reason::io("read the folder", root, &error))?;
        Ok(Stats {
            entries: files.len() as u64,
            bytes: files.iter().map(|file| file.bytes).sum(),
            cap: self.cap,
            hits: self.hits.load(Ordering::Relaxed),
            builds: self.builds.load(Ordering::Relaxed),
        })
    }

    fn hit(&self, bytes: Vec<u8>) -> (Vec<u8>, Outcome) {
        self.hits.fetch_add(1, Ordering::Relaxed);
        (bytes, Outcome::Hit)
    }

    fn uncached<E>(
        &self,
        reason: Reason,
        build: impl FnOnce() -> Result<Vec<u8>, E>,
    ) -> Result<(Vec<u8>, Outcome), E> {
        self.warn(&reason);
        let bytes = build()?;
        self.builds.fetch_add(1, Ordering::Relaxed);
        Ok((bytes, Outcome::BuiltUncached(reason)))
    }

    fn warn(&self, reason: &Reason) {
        // A cache that the user turned off is no surprise to anybody.
        if *reason != Reason::Off {
            lock_or_recover(&self.warning).get_or_insert_with(|| reason.clone());
        }
    }

    fn store(
        &self,
        root: &Path,
        file: &Path,
        key: &Key,
        label: &str,
        payload: &[u8],
    ) -> Result<(), Reason> {
        let whole = entry::encode(key, label, payload);
        let bytes = whole.len() as u64;
        if bytes > self.cap {
            return Err(Reason::TooLarge {
                bytes,
                cap: self.cap,
            });
        }
        let failed = |error: io::Error| Reason::io("write to the kernel cache in", root, &error);
        match entry::write(root, file, &whole) {
            Ok(()) => {}
            // Our own old entries may be what fills the disk.
            Err(error) if is_full(&error) => {
                let held: u64 = evict::files(root)
                    .map_err(failed)?
                    .iter()
                    .map(|file| file.bytes)
                    .sum();
                let _ = evict::shrink(root, held / 2, None);
                entry::write(root, file, &whole).map_err(failed)?;
            }
            Err(error) => return Err(failed(error)),
        }
        self.stay_under_cap(root, key, bytes);
        Ok(())
    }

    /// Counting the folder costs a look at every entry, so it is done at the first store of a
    /// process and again only when the stores since then may have passed the cap.
    fn stay_under_cap(&self, root: &Path, key: &Key, stored: u64) {
        let mut size = lock_or_recover(&self.size);
        let estimate = size.map(|size| size + stored);
        if let Some(estimate) = estimate
            && estimate <= self.cap
        {
            *size = Some(estimate);
            return;
        }
        // A folder that cannot be read now is tried again at the next store.
        *size = evict::shrink(root, self.cap, Some(key))
            .ok()
            .map(|swept| swept.kept_bytes);
    }
}

impl Reason {
    fn io(what: &str, path: &Path, error: &io::Error) -> Self {
        Self::Io {
            what: format!("{what} {}", path.display()),
            error: error.to_string(),
        }
    }
}

impl fmt::Display for Reason {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        match self {
            Self::Off => write!(f, "the cache is turned off ({} is empty)", env::CACHE_DIR),
            Self::NoFolder => write!(
                f,
                "there is no home folder; set {} to a folder for compiled kernels",
                env::CACHE_DIR
            ),
            Self::BadCap(value) => write!(
                f,
                "{}={value} is not a size; write a number of bytes, or one like 500M or 2G",
                env::CACHE_SIZE
            ),
            Self::Io { what, error } => write!(
                f,
                "cannot {what}: {error}; set {} to a folder that can be written",
                env::CACHE_DIR
            ),
            Self::TooLarge { bytes, cap } => write!(
                f,
                "the kernel takes {bytes} bytes and the cap is {cap}; raise {}",
                env::CACHE_SIZE
            ),
        }
    }
}

/// The folder of the cache, by the rules of the XDG base directories.
fn folder(env: &Env) -> Result<PathBuf, Reason> {
    if let Some(named) = env.raw(env::CACHE_DIR) {
        return match named.is_empty() {
            true => Err(Reason::Off),
            false => Ok(PathBuf::from(named)),
        };
    }
    // XDG says that a relative path is to be ignored.
    let xdg = env.path("XDG_CACHE_HOME").filter(|path| path.is_absolute());
    let base = xdg.or_else(|| env.home().map(|home| home.join(".cache")));
    base.map(|base| base.join("tilewright"))
        .ok_or(Reason::NoFolder)
}

fn cap(env: &Env) -> Result<u64, Reason> {
    let Some(value) = env.get(env::CACHE_SIZE) else {
        return Ok(DEFAULT_CAP);
    };
    let text = value.to_string_lossy().into_owned();
    let digits = text.trim_end_matches(['K', 'M', 'G']);
    let scale: u64 = match &text[digits.len()..] {
        "" => 1,
        "K" => 1 << 10,
        "M" => 1 << 20,
        "G" => 1 << 30,
        _ => return Err(Reason::BadCap(text)),
    };
    let number: Option<u64> = digits.parse().ok();
    number
        .and_then(|number| number.checked_mul(scale))
        .ok_or(Reason::BadCap(text))
}

fn is_full(error: &io::Error) -> bool {
    matches!(
        error.kind(),
        io::ErrorKind::StorageFull | io::ErrorKind::QuotaExceeded
    )
}

/// A thread that panicked while it held one of our locks left nothing half done.
fn lock_or_recover<T>(mutex: &Mutex<T>) -> std::sync::MutexGuard<'_, T> {
    mutex.lock().unwrap_or_else(|poison| poison.into_inner())
}

#[cfg(test)]
mod tests;
