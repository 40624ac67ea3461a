//! Who knows whom: the interpreter knows the recorder and the language, neither knows it back.

use std::path::{Path, PathBuf};

/// The Rust files of a folder of the crate.
fn files(folder: &str) -> Vec<PathBuf> {
    let folder = Path::new(env!("CARGO_MANIFEST_DIR"))
        .join("src")
        .join(folder);
    let entries = std::fs::read_dir(&folder).expect("the folder is there");
    entries
        .map(|entry| entry.expect("it can be read").path())
        .filter(|path| path.extension().is_some_and(|e| e == "rs"))
        .collect()
}

/// Lines of code that name a module.
fn mentions(text: &str, module: &str) -> Vec<String> {
    let inside = format!("{module}::");
    let code = text.lines().map(|line| line.trim_start());
    let code = code.filter(|line| !line.starts_with("//"));
    code.filter(|line| line.contains(&inside))
        .map(str::to_string)
        .collect()
}

#[test]
fn what_records_knows_no_python_syntax() {
    for folder in ["record", "lang"] {
        let files = files(folder);
        assert!(files.len() > 5, "{folder} has {} files", files.len());
        for path in files {
            let text = std::fs::read_to_string(&path).expect("it can be read");
            for module in ["eval", "syntax"] {
                let found = mentions(&text, module);
                assert!(found.is_empty(), "{}: {found:?}", path.display());
            }
        }
    }
}

#[test]
fn a_mention_is_seen() {
    let text = "// eval::Stage\nuse crate::eval::Stage;\nuse crate::record::Recorder;\n";
    assert_eq!(mentions(text, "eval"), ["use crate::eval::Stage;"]);
    assert!(mentions(text, "syntax").is_empty());
}
