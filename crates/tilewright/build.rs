//! Hands the compiler's own identity to the crate: `TILEWRIGHT_SOURCES`, a hash over the sources
//! that decide what a kernel is compiled to. The kernel cache's key contains it, so that a
//! compiler rebuilt from changed sources never serves what the old one made.

#[path = "src/sources.rs"]
mod sources;

use std::path::Path;

fn main() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    // A published crate stands alone. Its sources, and those of the crates that it names by their very
    // versions, never change.
    if !sources::folders(&crates)
        .iter()
        .all(|folder| folder.is_dir())
    {
        let version = env!("CARGO_PKG_VERSION");
        println!("cargo::rustc-env=TILEWRIGHT_SOURCES=published-{version}");
        return;
    }
    for folder in sources::folders(&crates) {
        println!("cargo::rerun-if-changed={}", folder.display());
    }
    println!("cargo::rerun-if-changed=src/sources.rs");
    match sources::hash(&crates) {
        Ok(hash) => println!("cargo::rustc-env=TILEWRIGHT_SOURCES={hash:016x}"),
        Err(error) => println!("cargo::error=the compiler's sources cannot be read: {error}"),
    }
}
