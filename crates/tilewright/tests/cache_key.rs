//! The cache's key names the compiler by its sources: a rebuilt compiler serves nothing old.

use std::fs;
use std::path::Path;

use tilewright::jit;

#[path = "../src/sources.rs"]
mod sources;

#[test]
fn the_build_hashed_the_sources_as_they_are() {
    let crates = Path::new(env!("CARGO_MANIFEST_DIR")).join("..");
    let now = sources::hash(&crates).expect("the sources can be read");
    assert_eq!(
        jit::COMPILER,
        format!("{} {now:016x}", env!("CARGO_PKG_VERSION"))
    );
}

#[test]
fn every_change_of_a_source_changes_the_hash() {
    let temp = tempfile::tempdir().expect("a folder");
    for folder in sources::folders(temp.path()) {
        fs::create_dir_all(folder.join("inner")).expect("a folder");
        fs::write(folder.join("inner/a.rs"), "fn a() {}").expect("a file");
    }
    let hash = || sources::hash(temp.path()).expect("a hash");
    let first = hash();
    assert_eq!(first, hash());
    for folder in sources::folders(temp.path()) {
        let file = folder.join("inner/a.rs");
        fs::write(&file, "fn b() {}").expect("a file");
        let changed = hash();
        assert_ne!(first, changed);
        fs::rename(&file, folder.join("inner/b.rs")).expect("a rename");
        assert_ne!(changed, hash());
        fs::rename(folder.join("inner/b.rs"), &file).expect("a rename");
        fs::write(&file, "fn a() {}").expect("a file");
        assert_eq!(first, hash());
    }
}
