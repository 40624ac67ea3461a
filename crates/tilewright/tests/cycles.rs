//! `tilewright cycles` on assembly files: no compiler and no GPU is needed.

use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use serde_json::Value;

fn pingpong() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../gfx9/tests/asm/pingpong.s")
}

fn cycles(args: &[&str]) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("cycles")
        .arg(pingpong())
        .args(args)
        .output()
        .expect("the command runs")
}

/// The six arguments of the kernel, for one block and K = 512.
const ARGUMENTS: [&str; 12] = [
    "--arg",
    "buffer:256K",
    "--arg",
    "buffer:256K",
    "--arg",
    "buffer:256K",
    "--arg",
    "256",
    "--arg",
    "256",
    "--arg",
    "512",
];

#[test]
fn an_assembly_file_is_timed() {
    let folder = tempfile::tempdir().expect("a folder");
    let (svg, events) = (folder.path().join("p.svg"), folder.path().join("p.json"));
    let mut args = ARGUMENTS.to_vec();
    let (svg_name, events_name) = (svg.display().to_string(), events.display().to_string());
    args.extend([
        "--json",
        "--clock",
        "1.5",
        "--svg",
        &svg_name,
        "--trace",
        &events_name,
    ]);
    let output = cycles(&args);
    assert!(output.status.success(), "{output:?}");
    let report: Value = serde_json::from_slice(&output.stdout).expect("one object");
    // A turn has two tiles of K; each takes the matrix units 2048 cycles.
    let turn = report["hot_loop"]["cycles"].as_u64().expect("cycles");
    assert!((4096..4600).contains(&turn), "{turn}");
    assert_eq!(report["hot_loop"]["matrix_cycles"], 4096.0);
    assert_eq!(report["waves"], 8);
    assert_eq!(report["operations"], 2 * 256 * 256 * 512);
    let rate = report["clock"]["tflops_compute_unit_hot_loop"]
        .as_f64()
        .expect("a rate");
    let expected = 2.0 * 256.0 * 256.0 * 128.0 / turn as f64 * 1.5 / 1e3;
    assert!((rate / expected - 1.0).abs() < 1e-6, "{rate} {expected}");
    let picture = std::fs::read_to_string(svg).expect("a picture");
    assert!(picture.starts_with("<svg") && picture.contains("SIMD 3"));
    let events: Value =
        serde_json::from_slice(&std::fs::read(events).expect("a file")).expect("JSON");
    assert!(events["traceEvents"].as_array().expect("events").len() > 1000);
}

#[test]
fn seconds_are_said_only_with_a_clock() {
    let text = |args: &[&str]| {
        let output = cycles(args);
        assert!(output.status.success(), "{output:?}");
        String::from_utf8(output.stdout).expect("text")
    };
    let mut args = ARGUMENTS.to_vec();
    let without = text(&args);
    assert!(without.contains("cycles an iteration"), "{without}");
    assert!(!without.contains("FLOP"), "{without}");
    args.extend(["--clock", "1.48"]);
    assert!(text(&args).contains("at 1.48 GHz, as stated"));
}

#[test]
fn an_error_says_what_to_give() {
    let error = |args: &[&str], code: i32| {
        let output = cycles(args);
        assert_eq!(output.status.code(), Some(code), "{output:?}");
        String::from_utf8(output.stderr).expect("text")
    };
    let missing = error(&[], 1);
    assert!(
        missing.contains("takes 6 arguments, 0 were given"),
        "{missing}"
    );
    assert!(
        missing.contains("--arg buffer:BYTES --arg buffer:BYTES"),
        "{missing}"
    );
    let mut wrong = ARGUMENTS.to_vec();
    wrong[1] = "17";
    assert!(error(&wrong, 1).contains("`--arg 17` is no global_buffer"));
    // A buffer that is too small is read past its end, which a buffer resource allows; the result
    // is written by addresses.
    let mut small = ARGUMENTS.to_vec();
    small[5] = "buffer:1K";
    assert!(error(&small, 1).contains("compiled-code"));
    assert!(error(&["--set", "M=1"], 2).contains("--arg"));
    let mut clock = ARGUMENTS.to_vec();
    clock.extend(["--clock", "1500"]);
    assert!(error(&clock, 2).contains("GHz"));
}
