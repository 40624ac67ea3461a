//! The documentation keeps up with the tree.

use std::fs;
use std::path::{Path, PathBuf};

use tilewright::frontend::codes;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

#[test]
fn the_language_lists_every_error() {
    let text = read("docs/language.md");
    for (code, _) in codes::ALL {
        assert!(
            text.contains(&format!("| `{code}` |")),
            "docs/language.md does not list {code}"
        );
    }
}

#[test]
fn the_code_map_names_every_crate() {
    let text = read("ARCHITECTURE.md");
    let crates = fs::read_dir(root().join("crates")).expect("the crates folder");
    for entry in crates.flatten() {
        let name = entry.file_name().to_string_lossy().into_owned();
        assert!(
            text.contains(&format!("| `crates/{name}` |")),
            "ARCHITECTURE.md's code map does not name crates/{name}"
        );
    }
    for line in text.lines() {
        if let Some(rest) = line.strip_prefix("| `crates/")
            && let Some((name, _)) = rest.split_once('`')
        {
            assert!(
                root().join("crates").join(name).is_dir(),
                "ARCHITECTURE.md names crates/{name}, which is not there"
            );
        }
    }
}

#[test]
fn architecture_fits_in_three_hundred_lines() {
    assert!(read("ARCHITECTURE.md").lines().count() <= 300);
}

#[test]
fn every_pass_is_in_a_pipeline_and_has_its_file() {
    use tilewright::ir::Target;
    use tilewright::passes;
    for pass in passes::PASSES {
        let used = Target::ALL
            .iter()
            .any(|&t| passes::pipeline(t).iter().any(|p| p.name == pass.name));
        assert!(used, "no target runs {}", pass.name);
        let file = pass.name.replace('-', "_");
        let found = ["", "legalize/", "optimize/common/", "optimize/cdna/"]
            .iter()
            .any(|folder| {
                let path = root().join(format!("crates/passes/src/{folder}{file}"));
                path.with_extension("rs").is_file() || path.is_dir()
            });
        assert!(found, "{} has no file of its name", pass.name);
    }
}
