//! The documentation keeps up with the tree.

use std::fs;
use std::path::{Path, PathBuf};
use std::process::Command;

use tilewright::explain;
use tilewright::frontend::{self, SettingValue};
use tilewright::ir::{Scalar, SourceMap, Target};
use tilewright::jit;

fn root() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../..")
}

fn read(path: &str) -> String {
    fs::read_to_string(root().join(path)).unwrap_or_else(|e| panic!("{path}: {e}"))
}

/// Every diagnostic that is explained is listed, and the other way round.
#[test]
fn the_language_lists_every_error() {
    let text = read("docs/language.md");
    let missing: Vec<String> = explain::all()
        .filter(|e| !text.contains(&format!("| `{}` | {} |", e.code, e.meaning)))
        .map(|e| format!("| `{}` | {} |", e.code, e.meaning))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/language.md does not list\n{}",
        missing.join("\n")
    );
    let errors = text
        .split("## 17 Errors")
        .nth(1)
        .expect("the section of errors");
    for line in errors.lines().filter(|l| l.starts_with("| `")) {
        let code = line.split('`').nth(1).unwrap_or_default();
        assert!(
            explain::explain(code).is_some(),
            "no diagnostic is called {code}"
        );
    }
}

/// Every code that stands in the sources is explained, and every one that is explained stands there.
#[test]
fn every_diagnostic_is_explained() {
    let mut files = Vec::new();
    for entry in fs::read_dir(root().join("crates"))
        .expect("crates")
        .flatten()
    {
        sources(&entry.path().join("src"), &mut files);
    }
    let mut found = std::collections::BTreeSet::new();
    for (path, text) in &files {
        // Rustfmt may put the literal on a line of its own.
        let flat: String = text.split_whitespace().collect();
        let verifier = path.to_string_lossy().contains("ir/src/verify");
        let mut starts = vec!["Code(\"", "Error::plain(\"", "=>plain(\""];
        // The verifier hands its codes on as text: whatever is spelled like one is one.
        if verifier {
            let words = text.split('"').skip(1).step_by(2);
            let spelled = |w: &&str| {
                let mut parts = w.split('-');
                w.contains('-') && parts.all(|p| !p.is_empty() && p.chars().all(is_lower))
            };
            found.extend(words.filter(spelled).map(str::to_string));
            starts.extend([".error(\"", ".fail(\""]);
        }
        if path.ends_with("frontend/src/codes.rs") {
            starts.push("=\"");
        }
        for start in starts {
            for rest in flat.split(start).skip(1) {
                let code = rest.split('"').next().unwrap_or_default();
                found.insert(code.to_string());
            }
        }
    }
    let unexplained: Vec<&String> = found
        .iter()
        .filter(|code| explain::explain(code).is_none())
        .collect();
    assert!(unexplained.is_empty(), "not explained: {unexplained:?}");
    let stale: Vec<&str> = explain::all()
        .map(|e| e.code)
        .filter(|code| !found.contains(*code))
        .collect();
    assert!(stale.is_empty(), "explained, and said nowhere: {stale:?}");
}

fn is_lower(c: char) -> bool {
    c.is_ascii_lowercase() || c.is_ascii_digit()
}

/// Every name that the front end accepts stands in the specification.
#[test]
fn the_language_names_every_name() {
    let text = read("docs/language.md");
    let words: std::collections::BTreeSet<&str> = text
        .split(|c: char| !(c.is_alphanumeric() || c == '_'))
        .collect();
    let missing: Vec<&str> = frontend::lang::all_names()
        .filter(|name| !words.contains(name))
        .collect();
    assert!(
        missing.is_empty(),
        "docs/language.md does not name {missing:?}"
    );
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
    use tilewright::passes;
    for pass in passes::PASSES {
        let used = Target::ALL
            .iter()
            .any(|&t| passes::pipeline(t).iter().any(|p| p.name == pass.name));
        assert!(used, "no target runs {}", pass.name);
        let file = pass.name.replace('-', "_");
        let found = [
            "",
            "legalize/",
            "optimize/common/",
            "optimize/cdna/",
            "optimize/hopper/",
            "finish/",
        ]
        .iter()
        .any(|folder| {
            let path = root().join(format!("crates/passes/src/{folder}{file}"));
            path.with_extension("rs").is_file() || path.is_dir()
        });
        assert!(found, "{} has no file of its name", pass.name);
    }
}

/// Rust files under a folder, each with its text up to its unit tests.
fn sources(folder: &Path, found: &mut Vec<(PathBuf, String)>) {
    for entry in fs::read_dir(folder).into_iter().flatten().flatten() {
        let path = entry.path();
        if path.is_dir() {
            sources(&path, found);
        } else if path.extension().is_some_and(|e| e == "rs") {
            let text = fs::read_to_string(&path).unwrap_or_default();
            let own = text.split("#[cfg(test)]").next().unwrap_or_default();
            found.push((path, own.to_string()));
        }
    }
}

/// What a machine can is asked of its description. These name a target or a dialect, and say why
/// where they do; the others do not.
#[test]
fn few_ask_for_the_vendor() {
    const TABLE_AND_DIALECTS: [&str; 4] = [
        "ir/src/machine/",
        "ir/src/target.rs",
        "codegen/src/dialect.rs",
        "codegen/src/device/",
    ];
    const OTHERS: [&str; 6] = [
        "frontend/src/eval/known.rs",
        "progen/src/executors.rs",
        "tilewright/src/cli/compile.rs",
        "tilewright/src/cli/verify.rs",
        "tilewright/src/jit/compiler.rs",
        "tilewright/src/jit/gpu.rs",
    ];
    let crates = root().join("crates");
    let mut asking = Vec::new();
    for entry in fs::read_dir(&crates).expect("the crates folder").flatten() {
        let mut files = Vec::new();
        sources(&entry.path().join("src"), &mut files);
        for (path, text) in files {
            let asks = ["Target::Sm", "Target::Gfx", "Dialect::"];
            let path = path
                .strip_prefix(&crates)
                .expect("a crate")
                .to_string_lossy();
            let allowed = TABLE_AND_DIALECTS.iter().any(|p| path.starts_with(p));
            if !allowed && asks.iter().any(|a| text.contains(a)) {
                asking.push(path.into_owned());
            }
        }
    }
    asking.sort();
    assert_eq!(asking, OTHERS);
}

/// The words of a command that is written for a shell.
fn words(command: &str) -> Vec<String> {
    let script = format!("printf '%s\\0' {command}");
    let done = Command::new("sh").args(["-c", &script]).output();
    let done = done.expect("a shell");
    assert!(done.status.success(), "{command}");
    let text = String::from_utf8(done.stdout).expect("text");
    text.split_terminator('\0').map(str::to_string).collect()
}

#[test]
fn the_examples_commands_are_accepted() {
    let mut count = 0;
    for entry in fs::read_dir(root().join("examples")).expect("the examples") {
        let path = entry.expect("a file").path();
        if path.extension().is_none_or(|e| e != "py") {
            continue;
        }
        let text = fs::read_to_string(&path).expect("it can be read");
        let commands = text
            .lines()
            .map(str::trim)
            .filter(|l| l.starts_with("tilewright run "));
        for command in commands {
            let words = words(command);
            let mut sources = SourceMap::new();
            let (name, entry) = match words[2].split_once(':') {
                Some((name, entry)) => (name, Some(entry)),
                None => (words[2].as_str(), None),
            };
            let file = sources.add(name, read(name));
            let mut settings = Vec::new();
            for pair in words.windows(2).filter(|pair| pair[0] == "--set") {
                let (name, value) = pair[1].split_once('=').expect("NAME=VALUE");
                let value = SettingValue::parse(value).expect("a literal");
                settings.push((name.to_string(), value));
            }
            let staged = frontend::stage(&sources, file, entry, &settings)
                .unwrap_or_else(|d| panic!("{command}: {}", d[0].message));
            for target in Target::ALL {
                if let Err(error) = jit::lower(&staged.func, target) {
                    panic!("{command}, {target}: {error}");
                }
            }
            count += 1;
        }
    }
    assert!(count > 50, "{count} commands");
}

#[path = "../examples/quickstart.rs"]
mod quickstart;

/// The page of the quick start holds the example, which runs.
#[test]
fn the_quick_start_is_the_example() {
    let page = read("docs/rust.md");
    let code = page
        .split("```rust\n")
        .nth(1)
        .and_then(|rest| rest.split("```").next());
    let example = read("crates/tilewright/examples/quickstart.rs");
    assert_eq!(code, Some(example.as_str()));
    quickstart::main().expect("it runs");
}

/// The table of limits has what the machines have.
#[test]
fn limits_are_the_machines() {
    let page = read("docs/targets.md");
    for target in Target::ALL {
        let m = target.machine();
        let row = format!(
            "| {target} | {} | {} | {} | {} | {} |",
            m.warp_size, m.max_threads, m.shared.bytes, m.registers.per_thread, m.shared.banks
        );
        assert!(page.contains(&row), "docs/targets.md does not have\n{row}");
        let [global, shared] = [m.vector_atomics.global, m.vector_atomics.shared].map(|listed| {
            let several = listed.iter().map(|(scalar, n)| format!("{n} of {scalar}"));
            match listed.is_empty() {
                true => "none".to_string(),
                false => several.collect::<Vec<_>>().join(", "),
            }
        });
        let row = format!("| {target} | {global} | {shared} |");
        assert!(page.contains(&row), "docs/targets.md does not have\n{row}");
        let (dense, sparse) = page
            .split_once("sparse matrix instructions")
            .expect("a table of sparse ones");
        for (page, table) in [(dense, m.mma), (sparse, m.sparse_mma)] {
            let mut types: Vec<String> = Vec::new();
            for f in table {
                let name = format!("{} with {}", f.inst.a, f.inst.acc);
                if !types.contains(&name) {
                    types.push(name);
                }
            }
            if types.is_empty() {
                types.push("none".to_string());
            }
            let row = format!("| {target} | {} |", types.join(", "));
            assert!(page.contains(&row), "docs/targets.md does not have\n{row}");
        }
        let (_, scaled) = page.split_once("types of a factor").expect("their table");
        let taken: Vec<[Scalar; 2]> = (m.mma.iter())
            .filter(|f| f.inst.scaled)
            .map(|f| [f.inst.a, f.inst.b])
            .collect();
        let mut factors: Vec<Scalar> = Vec::new();
        for [a, _] in &taken {
            if !factors.contains(a) {
                factors.push(*a);
            }
        }
        let mut pairs = factors
            .iter()
            .flat_map(|a| factors.iter().map(|b| [*a, *b]));
        assert!(pairs.all(|pair| taken.contains(&pair)), "{target}");
        let names: Vec<String> = factors.iter().map(Scalar::to_string).collect();
        let row = match names.is_empty() {
            true => format!("| {target} | none |"),
            false => format!("| {target} | {} |", names.join(", ")),
        };
        assert!(
            scaled.contains(&row),
            "docs/targets.md does not have\n{row}"
        );
    }
}

/// Links between the pages lead somewhere.
#[test]
fn links_lead_somewhere() {
    let pages = fs::read_dir(root().join("docs")).expect("docs").flatten();
    let pages = pages.map(|e| format!("docs/{}", e.file_name().to_string_lossy()));
    for page in pages.chain(["README.md".to_string()]) {
        let text = read(&page);
        let folder = root().join(&page);
        let folder = folder.parent().expect("a folder");
        for link in text.split("](").skip(1) {
            let link = link.split(')').next().unwrap_or_default();
            let path = link.split('#').next().unwrap_or_default();
            // Formulas have such brackets too.
            let is_path = path.contains('.') || path.ends_with("examples");
            if !link.starts_with("http") && is_path && !path.contains(' ') {
                assert!(
                    folder.join(path).exists(),
                    "{page} names {path}, which is not there"
                );
            }
        }
    }
}
