//! What this compiler is: a hash over the sources of the crates between tile IR and generated
//! source. The build script takes it, tests take it again.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The sources that decide what tile IR is compiled to, and which compiled code is handed out (`gfx9`,
/// `jit`). What comes before them is in the tile IR, what comes after them is the toolchain, which
/// has an identity of its own.
const FOLDERS: [&str; 10] = [
    "arith/src",
    "codegen/src",
    "form/src",
    "gfx9/src",
    "ir/src",
    "layout/src",
    "passes/src",
    "runtime/src",
    "schedule/src",
    "tilewright/src/jit",
];

/// The folders whose files are hashed.
pub fn folders(crates: &Path) -> Vec<PathBuf> {
    FOLDERS.iter().map(|folder| crates.join(folder)).collect()
}

/// The hash over names and contents, the same on every machine.
pub fn hash(crates: &Path) -> io::Result<u64> {
    let mut hasher = DefaultHasher::new();
    for folder in folders(crates) {
        add(&folder, &mut hasher)?;
    }
    Ok(hasher.finish())
}

fn add(folder: &Path, hasher: &mut DefaultHasher) -> io::Result<()> {
    let mut entries = fs::read_dir(folder)?.collect::<io::Result<Vec<_>>>()?;
    entries.sort_by_key(fs::DirEntry::file_name);
    for entry in entries {
        let path = entry.path();
        if entry.file_type()?.is_dir() {
            add(&path, hasher)?;
            continue;
        }
        for bytes in [entry.file_name().as_encoded_bytes(), &fs::read(&path)?] {
            hasher.write_usize(bytes.len());
            hasher.write(bytes);
        }
    }
    Ok(())
}
