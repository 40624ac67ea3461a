//! `compile --emit layouts` and `layouts-svg`: every buffer of a kernel, drawn.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

fn compile(kernel: &str, more: &[&str]) -> Output {
    let root = Path::new(env!("CARGO_MANIFEST_DIR")).join("../..");
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .current_dir(root)
        .args(["compile", kernel])
        .args(more)
        .output()
        .expect("the compiler runs")
}

fn text(output: &Output) -> String {
    assert!(
        output.status.success(),
        "{}",
        String::from_utf8_lossy(&output.stderr)
    );
    String::from_utf8_lossy(&output.stdout).into_owned()
}

#[test]
fn text_has_every_buffer_with_its_formula() {
    let drawn = text(&compile(
        "examples/gemm.py",
        &["--emit", "layouts", "--target", "sm_80"],
    ));
    // Rows of 32 halves are half of the banks wide, so two neighbours share a permutation.
    let a = "A_shared, shared float16[128, 32]\nlayout (128, 32) -> 4096: i * 32 + (i // 2 % 4 ^ j // 8) * 8 + j % 8\n";
    assert!(drawn.contains(a), "{drawn}");
    assert!(drawn.contains("B_shared, shared float16[32, 128]\nlayout (32, 128) -> 4096: "));
    // The accumulator of m16n8: a thread has pairs of columns, eight rows apart.
    let c = "C_local, fragment float32[128, 128]\nfragment (128, 128) -> 128 threads x 128 slots: ";
    assert!(drawn.contains(c), "{drawn}");
}

#[test]
fn the_target_decides() {
    let on = |target| {
        text(&compile(
            "examples/gemm.py",
            &["--emit", "layouts", "--target", target],
        ))
    };
    assert_ne!(on("sm_80"), on("gfx942"));
    assert_ne!(on("gfx942"), on("gfx950"));
}

#[test]
fn json_has_one_entry_a_buffer() {
    let object = text(&compile(
        "examples/reduce.py",
        &["--emit", "layouts", "--json"],
    ));
    let object: serde_json::Value = serde_json::from_str(&object).expect("one object");
    assert_eq!(object["ok"], true);
    let list = object["layouts"].as_array().expect("a list");
    let names: Vec<_> = list.iter().map(|l| l["buffer"].as_str()).collect();
    assert_eq!(names, [Some("x"), Some("y")]);
}

#[test]
fn svg_is_one_file_a_buffer() {
    let folder = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layouts");
    let _ = fs::remove_dir_all(&folder);
    let place = folder.display().to_string();
    let small = ["--set", "block_M=32", "--set", "block_N=32"];
    let more = [&["--emit", "layouts-svg", "-o", &place], &small[..]].concat();
    let printed = text(&compile("examples/gemm.py", &more));
    let mut found: Vec<String> = fs::read_dir(&folder)
        .expect("a folder")
        .map(|e| e.expect("an entry").file_name().to_string_lossy().into())
        .collect();
    found.sort();
    assert_eq!(found, ["A_shared.svg", "B_shared.svg", "C_local.svg"]);
    assert_eq!(printed.lines().count(), 3);
    for name in found {
        let svg = fs::read_to_string(folder.join(name)).expect("a drawing");
        assert!(svg.starts_with("<svg ") && svg.ends_with("</svg>\n"));
        // One cell for each of 32 x 32 elements, each with its own words on hover.
        assert_eq!(svg.matches("<title>").count(), 32 * 32);
    }
}

#[test]
fn svg_needs_a_folder() {
    let output = compile("examples/gemm.py", &["--emit", "layouts-svg"]);
    assert_eq!(output.status.code(), Some(2));
    assert!(String::from_utf8_lossy(&output.stderr).contains("--output FOLDER"));
    // A file stands where the folder should be.
    let file = Path::new(env!("CARGO_TARGET_TMPDIR")).join("layouts-file");
    fs::write(&file, "").expect("a file");
    let place = file.display().to_string();
    let output = compile("examples/gemm.py", &["--emit", "layouts-svg", "-o", &place]);
    assert_eq!(output.status.code(), Some(1));
    assert!(String::from_utf8_lossy(&output.stderr).contains("unwritable-file"));
}

#[test]
fn a_pipelined_loop_is_drawn() {
    let folder = tempfile::tempdir().expect("a folder");
    let place = folder.path().join("drawn").display().to_string();
    let ask = ["--emit", "schedule-svg", "--target", "sm_80"];
    let said = text(&compile(
        "examples/gemm.py",
        &[&ask[..], &["-o", &place]].concat(),
    ));
    let path = said.trim();
    let svg = fs::read_to_string(path).expect("it is where it says");
    for wanted in [
        ">matmul on sm_80<",
        ">copy A_shared<",
        ">product C_local<",
        ">k = 3<",
        ">wait cp_async<",
    ] {
        assert!(svg.contains(wanted), "{wanted}");
    }
    // A kernel without such a loop has no picture, and one without a folder is no command.
    let none = text(&compile(
        "examples/elementwise_add.py",
        &[&ask[..], &["-o", &place]].concat(),
    ));
    assert_eq!(none, "");
    assert_eq!(compile("examples/gemm.py", &ask).status.code(), Some(2));
}
