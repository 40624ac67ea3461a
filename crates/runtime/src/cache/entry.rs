//! The file of one entry.
//!
//! ```text
//! magic "TWKERNEL"  version u32  label length u32  payload length u64  key 32  hash 32
//! label (UTF-8)  payload
//! ```
//!
//! Numbers are little endian. The hash covers label and payload. The key is in the file too: an
//! entry under a wrong name is as damaged as one with wrong bytes.

use std::fs::{self, File, OpenOptions};
use std::io::{self, Read as _};
use std::path::{Path, PathBuf};
use std::time::{Duration, SystemTime};

use super::key::Key;
use crate::temporary;

const MAGIC: &[u8; 8] = b"TWKERNEL";
const VERSION: u32 = 1;
const HEADER: usize = 8 + 4 + 4 + 8 + 32 + 32;
pub(super) const EXTENSION: &str = "kernel";

/// Age from which a hit writes the time of use. Eviction needs no finer order, and most hits stay
/// free of writes.
const TOUCH_AFTER: Duration = Duration::from_secs(60);

/// What reading an entry gave.
#[derive(Debug)]
pub(super) enum Read {
    Found(Vec<u8>),
    Missing,
    Damaged(String),
}

/// Entries lie in 256 folders by the first byte of their key: some file systems are slow with
/// many files in one folder.
pub(super) fn path(root: &Path, key: &Key) -> PathBuf {
    let name = key.to_string();
    root.join(&name[..2])
        .join(format!("{}.{EXTENSION}", &name[2..]))
}

/// The key that a file's place stands for.
pub(super) fn key_of(file: &Path) -> Option<Key> {
    if file.extension()? != EXTENSION {
        return None;
    }
    let folder = file.parent()?.file_name()?.to_str()?;
    Key::parse(&format!("{folder}{}", file.file_stem()?.to_str()?))
}

/// Reads and checks an entry. While it is read it is locked against eviction.
pub(super) fn read(path: &Path, key: &Key) -> Read {
    let mut file = match open(path, OpenOptions::new().read(true)) {
        Ok(file) => file,
        Err(error) if error.kind() == io::ErrorKind::InvalidInput => {
            return Read::Damaged(error.to_string());
        }
        // Also when the folder is a file or may not be read: then storing will say so.
        Err(_) => return Read::Missing,
    };
    // An entry that is being removed right now is still whole for who has it open.
    let _ = file.try_lock_shared();
    let mut bytes = Vec::new();
    if let Err(error) = file.read_to_end(&mut bytes) {
        return Read::Damaged(format!("it cannot be read: {error}"));
    }
    match payload(&mut bytes, key) {
        Ok(()) => {
            touch(&file);
            Read::Found(bytes)
        }
        Err(reason) => Read::Damaged(reason.to_owned()),
    }
}

/// Opens a file of the cache, which is a regular one: opening a named pipe would wait for whoever
/// is at its other end.
pub(super) fn open(path: &Path, options: &OpenOptions) -> io::Result<File> {
    match fs::metadata(path) {
        Ok(meta) if !meta.is_file() => Err(io::Error::new(
            io::ErrorKind::InvalidInput,
            format!("{} is not a regular file", path.display()),
        )),
        _ => options.open(path),
    }
}

/// The label of an entry, without checking its content.
pub(super) fn label(path: &Path) -> Option<String> {
    let mut file = open(path, OpenOptions::new().read(true)).ok()?;
    let mut header = [0; HEADER];
    file.read_exact(&mut header).ok()?;
    let header = Header::parse(&header)?;
    let mut label = Vec::new();
    file.take(u64::from(header.label))
        .read_to_end(&mut label)
        .ok()?;
    (label.len() == header.label as usize).then_some(())?;
    String::from_utf8(label).ok()
}

pub(super) fn encode(key: &Key, label: &str, payload: &[u8]) -> Vec<u8> {
    // A label is a name for people; one of absurd length is cut.
    let mut end = label.len().min(1024);
    while !label.is_char_boundary(end) {
        end -= 1;
    }
    let label = &label.as_bytes()[..end];
    let mut out = Vec::with_capacity(HEADER + label.len() + payload.len());
    out.extend_from_slice(MAGIC);
    out.extend_from_slice(&VERSION.to_le_bytes());
    out.extend_from_slice(&(label.len() as u32).to_le_bytes());
    out.extend_from_slice(&(payload.len() as u64).to_le_bytes());
    out.extend_from_slice(key.as_bytes());
    out.extend_from_slice(&[0; 32]);
    out.extend_from_slice(label);
    out.extend_from_slice(payload);
    let hash = blake3::hash(&out[HEADER..]);
    out[HEADER - 32..HEADER].copy_from_slice(hash.as_bytes());
    out
}

/// Puts a whole entry in its place in one step.
pub(super) fn write(root: &Path, path: &Path, whole: &[u8]) -> io::Result<()> {
    let folder = path.parent().unwrap_or(root);
    create_folder(folder)?;
    // The usual rights instead of the owner's alone, so that users who share a folder can share
    // entries. No fsync: an entry that a power cut tore is found damaged and built again.
    temporary::write_whole(folder, TEMPORARY, path, whole)
}

pub(super) const TEMPORARY: &str = "tmp-";

/// Kernels are code that will run as this user, so a folder we make is the user's alone.
pub(super) fn create_folder(folder: &Path) -> io::Result<()> {
    if folder.is_dir() {
        return Ok(());
    }
    let mut builder = fs::DirBuilder::new();
    builder.recursive(true);
    #[cfg(unix)]
    std::os::unix::fs::DirBuilderExt::mode(&mut builder, 0o700);
    builder.create(folder)
}

struct Header {
    label: u32,
    payload: u64,
    key: [u8; 32],
    hash: [u8; 32],
}

impl Header {
    fn parse(bytes: &[u8; HEADER]) -> Option<Self> {
        let (magic, rest) = bytes.split_first_chunk::<8>()?;
        let (version, rest) = rest.split_first_chunk::<4>()?;
        let (label, rest) = rest.split_first_chunk::<4>()?;
        let (payload, rest) = rest.split_first_chunk::<8>()?;
        let (key, rest) = rest.split_first_chunk::<32>()?;
        let hash = rest.first_chunk::<32>()?;
        if magic != MAGIC || u32::from_le_bytes(*version) != VERSION {
            return None;
        }
        Some(Self {
            label: u32::from_le_bytes(*label),
            payload: u64::from_le_bytes(*payload),
            key: *key,
            hash: *hash,
        })
    }
}

/// Checks a whole entry and cuts it down to its payload, in place.
fn payload(bytes: &mut Vec<u8>, key: &Key) -> Result<(), &'static str> {
    let header = bytes.first_chunk::<HEADER>().ok_or("it is cut short")?;
    let header = Header::parse(header).ok_or("its header is wrong")?;
    if header.key != *key.as_bytes() {
        return Err("it belongs to another key");
    }
    let content = &bytes[HEADER..];
    let length = u64::from(header.label).checked_add(header.payload);
    if length != Some(content.len() as u64) {
        return Err("its length is wrong");
    }
    if *blake3::hash(content).as_bytes() != header.hash {
        return Err("its content does not match its hash");
    }
    bytes.drain(..HEADER + header.label as usize);
    Ok(())
}

/// Writes the time of use where it is out of date. A cache that may only be read is never
/// touched, and needs no order for eviction.
fn touch(file: &File) {
    let now = SystemTime::now();
    let modified = file.metadata().and_then(|meta| meta.modified());
    if let Ok(modified) = modified
        && now
            .duration_since(modified)
            .is_ok_and(|age| age > TOUCH_AFTER)
    {
        let _ = file.set_modified(now);
    }
}
