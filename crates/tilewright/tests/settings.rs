//! Settings on the command line: `--set`, for scalars that a kernel takes at its launch, and those
//! that only one executor has.

use std::path::Path;
use std::process::{Command, Output};

const AXPBY: &str = "elementwise_add.py:axpby";

fn tilewright(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .args(args)
        .current_dir(Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples"))
        .output()
        .expect("it starts")
}

/// Smallest and largest element of `C` after a run.
fn range(args: &[&str]) -> (f64, f64) {
    let done = tilewright(&[&["run", "--json"], args].concat());
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(done.status.success(), "{args:?}: {said}");
    let found: serde_json::Value = serde_json::from_slice(&done.stdout).expect("JSON");
    let tensors = found["tensors"].as_array().expect("a list");
    let c = tensors.iter().find(|t| t["name"] == "C").expect("C");
    let number = |key: &str| c[key].as_f64().expect("a number");
    (number("min"), number("max"))
}

#[test]
fn values_reach_the_kernel() {
    let small = ["--set", "M=32", "--set", "N=64"];
    for on in ["reference", "sim"] {
        let run = |set: [&str; 2]| {
            let set = ["--set", set[0], "--set", set[1], "--on", on];
            range(&[&[AXPBY][..], &small, &set].concat())
        };
        assert_eq!(run(["alpha=0.0", "beta=0"]), (0.0, 0.0), "{on}");
        let (low, high) = run(["alpha=1", "beta=0"]);
        let (double_low, double_high) = run(["alpha=2.0", "beta=0"]);
        assert_eq!((double_low, double_high), (2.0 * low, 2.0 * high), "{on}");
        let (other_low, other_high) = run(["alpha=-1", "beta=0"]);
        assert_eq!((other_low, other_high), (-high, -low), "{on}");
    }
}

#[test]
fn what_was_not_given_is_said() {
    let done = tilewright(&["run", AXPBY, "--set", "M=32", "--set", "beta=0"]);
    let text = String::from_utf8_lossy(&done.stdout).into_owned();
    assert!(
        text.contains("alpha = 1 (choose with --set alpha=…)"),
        "{text}"
    );
    assert!(!text.contains("beta ="), "{text}");
}

#[test]
fn wrong_values_are_refused() {
    let done = tilewright(&["run", AXPBY, "--set", "alpha=True"]);
    assert_eq!(done.status.code(), Some(1));
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    let why = "`--set alpha=True`: the parameter takes a number (float32)";
    assert!(said.contains(why), "{said}");
}

#[test]
fn settings_of_the_emulator_are_refused_elsewhere() {
    let landing = "`--landing` says when the emulator moves data, and `--on ";
    for (args, why) in [
        (&["--landing", "late"][..], format!("{landing}reference`")),
        (
            &["--landing", "late", "--on", "sim"],
            format!("{landing}sim`"),
        ),
        (
            &["--landing", "early", "--on", "gpu"],
            format!("{landing}gpu`"),
        ),
        (
            &["--on", "gfx9", "--target", "sm_80"],
            "`--on gfx9` runs code of AMD machines, not of sm_80".to_owned(),
        ),
    ] {
        let done = tilewright(&[&["run", AXPBY][..], args].concat());
        assert_eq!(done.status.code(), Some(2), "{args:?}");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains(&why), "{args:?}: {said}");
        assert!(done.stdout.is_empty(), "{args:?}");
    }
}

#[test]
fn text_ir_takes_scalars_too() {
    let done = tilewright(&["compile", AXPBY, "--set", "M=32", "--set", "N=64"]);
    assert!(done.status.success());
    let folder = tempfile::tempdir().expect("a folder");
    let file = folder.path().join("axpby.tw");
    std::fs::write(&file, &done.stdout).expect("it is written");
    let file = file.to_str().expect("a name");
    assert_eq!(
        range(&[file, "--set", "alpha=0", "--set", "beta=0"]),
        (0.0, 0.0)
    );
    for (set, part) in [
        ("alpha='x'", "the parameter takes a number (float32)"),
        (
            "gamma=1",
            "text IR takes values for its symbols and scalars (alpha, beta)",
        ),
    ] {
        let done = tilewright(&["run", file, "--set", set]);
        assert_eq!(done.status.code(), Some(2));
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains(part), "{said}");
    }
}

#[test]
fn files_beside_a_kernel_are_read() {
    for file in [
        "../crates/tilewright/tests/beside/kernel.py",
        "./../crates/tilewright/tests/beside/kernel.py:make",
    ] {
        assert_eq!(range(&[file]), (5.0, 5.0), "{file}");
    }
}
