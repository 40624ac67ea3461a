//! What this compiler is: a hash over the sources of the crates between tile IR and generated
//! source. The build script takes it, tests take it again.

use std::hash::{DefaultHasher, Hasher};
use std::path::{Path, PathBuf};
use std::{fs, io};

/// The crates that decide what tile IR is compiled to. What comes before them is in the tile IR,
/// what comes after them is the toolchain, which has an identity of its own.
const CRATES: [&str; 8] = [
    "arith", "codegen", "form", "ir", "layout", "passes", "runtime", "schedule",
];

/// The folders whose files are hashed.
pub fn folders(crates: &Path) -> Vec<PathBuf> {
    let sources = |name: &&str| crates.join(name).join("src");
    CRATES.iter().map(sources).collect()
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
