//! What an installed command line comes with: manual pages and completions.

use std::fs;
use std::process::{Command, Output};

fn call(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(args)
        .output()
        .expect("it starts")
}

/// The commands that `tilewright --help` lists.
fn commands() -> Vec<String> {
    let help = String::from_utf8(call(&["--help"]).stdout).expect("text");
    let list = help.split("Commands:\n").nth(1).expect("commands");
    let lines = list.lines().take_while(|line| !line.is_empty());
    // A line that goes on is indented further.
    let names = lines.filter(|line| line.starts_with("  ") && !line.starts_with("   "));
    let names = names.filter_map(|line| line.split_whitespace().next());
    names.map(str::to_string).collect()
}

#[test]
fn every_command_has_a_manual_page() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("man1");
    let done = call(&["man", &place.display().to_string()]);
    assert!(done.status.success());
    let names = commands();
    assert!(names.len() >= 10, "{names:?}");
    for name in names {
        let page = fs::read_to_string(place.join(format!("tilewright-{name}.1")));
        let page = page.unwrap_or_else(|e| panic!("{name}: {e}"));
        assert!(page.contains(".SH SYNOPSIS"), "{name}");
    }
    let run = fs::read_to_string(place.join("tilewright-run.1")).expect("a page");
    assert!(run.contains("\\-\\-expect") && !run.contains("\\-\\-worker"));
    // A file is no folder.
    let file = place.join("tilewright.1").display().to_string();
    assert_eq!(call(&["man", &file]).status.code(), Some(1));
}

#[test]
fn every_command_is_completed() {
    for shell in ["bash", "zsh", "fish", "elvish", "powershell"] {
        let done = call(&["completions", shell]);
        let text = String::from_utf8(done.stdout).expect("text");
        for name in commands() {
            assert!(text.contains(&name), "{shell}: {name}");
        }
        assert!(text.contains("counters"), "{shell}");
    }
    assert_eq!(call(&["completions", "none"]).status.code(), Some(2));
}
