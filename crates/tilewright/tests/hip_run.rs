//! Kernels on an AMD GPU from the command line, where there is none: compiled by clang to a code
//! object, loaded and launched through the HIP runtime's interface, which a stub library has. The
//! stub knows the example's kernel by name, so all but the GPU's own work is tested.

#[path = "corpus/stage.rs"]
mod stage;

use std::fs::Permissions;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};
use std::sync::OnceLock;

use tilewright::emulate::Emulator;
use tilewright::gfx9::asm;
use tilewright::ir::Target;
use tilewright::jit;
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::AmdClang;

const EXAMPLE: &str = "elementwise_add.py";

fn manifest(path: &str) -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join(path)
}

/// The folder of the compiled stub.
fn stub() -> &'static Path {
    static STUB: OnceLock<tempfile::TempDir> = OnceLock::new();
    let folder = STUB.get_or_init(|| {
        let folder = tempfile::tempdir().expect("a folder");
        let status = Command::new("cc")
            .args(["-shared", "-fPIC", "-O3", "-w"])
            .arg(manifest("../runtime/tests/hip/stub.c"))
            .arg("-o")
            .arg(folder.path().join("libamdhip64.so.7"))
            .status()
            .expect("this test needs a C compiler called cc, as Rust itself does");
        assert!(status.success());
        folder
    });
    folder.path()
}

/// The compiler on a machine with one GPU of `arch`, or with a HIP runtime that is not there.
fn command(arch: Option<&str>, args: &[&str]) -> Command {
    let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
    command
        .args(args)
        .current_dir(manifest("../../examples"))
        .env("TILEWRIGHT_CACHE_DIR", "");
    match arch {
        Some(arch) => command.env("TILEWRIGHT_HIP", stub()).env("STUB_ARCH", arch),
        None => command.env("TILEWRIGHT_HIP", "/no/such/folder"),
    };
    command
}

fn tilewright(arch: Option<&str>, args: &[&str]) -> Output {
    command(arch, args).output().expect("it starts")
}

fn text(bytes: &[u8]) -> String {
    String::from_utf8_lossy(bytes).into_owned()
}

/// What a successful command prints, as JSON.
fn object(arch: &str, args: &[&str]) -> serde_json::Value {
    let done = tilewright(Some(arch), args);
    assert!(done.status.success(), "{}", text(&done.stderr));
    serde_json::from_slice(&done.stdout).expect("one JSON object")
}

/// Whether an NVIDIA GPU would be taken where no target is named.
fn has_nvidia() -> bool {
    let found = object("gfx950", &["doctor", "--json"]);
    let all = found["findings"].as_array().expect("a list");
    all.iter()
        .any(|f| f["what"] == "GPU 0" && f["status"] == "found")
}

#[test]
fn a_kernel_is_compiled_loaded_launched_and_compared() {
    for arch in ["gfx942", "gfx950"] {
        // With a target, and with the one that the GPU has.
        let mut targets = vec![vec!["--target", arch]];
        if !has_nvidia() {
            targets.push(Vec::new());
        }
        for target in targets {
            let mut args = vec!["run", EXAMPLE, "--on", "gpu", "--json"];
            args.extend(&target);
            let found = object(arch, &args);
            assert_eq!(found["ok"], true, "{found}");
            assert_eq!(found["target"], arch, "{found}");
            assert_eq!(found["executor"], "gpu", "{found}");
            assert_eq!(found["max_abs_err"], 0.0, "{found}");
        }
    }
}

/// A kernel whose tiles depend on what it is told of the machine.
const ASKS: &str = r#"
import tilelang.language as T
import torch
from tilelang.carver.arch import driver

def elementwise_add(M=64, N=128):
    is_here = torch.version.hip is not None and driver.get_num_sms() == 80
    block_M = 32 if is_here else 16

    @T.prim_func
    def elementwise_add(
        A: T.Tensor((M, N), "float32"), B: T.Tensor((M, N), "float32"), C: T.Tensor((M, N), "float32")
    ):
        with T.Kernel(1, T.ceildiv(M, block_M), threads=128) as (bx, by):
            for i, j in T.Parallel(block_M, N):
                C[by * block_M + i, j] = A[by * block_M + i, j] + B[by * block_M + i, j]

    return elementwise_add
"#;

#[test]
fn a_kernel_is_told_of_the_gpu_that_runs_it() {
    let folder = tempfile::tempdir().expect("a folder");
    let path = folder.path().join("asks.py");
    std::fs::write(&path, ASKS).expect("it is written");
    let path = path.to_str().expect("a plain path");
    // Sums are off with the tiles of any other machine.
    let right = |args: &[&str]| {
        let mut command = command(Some("gfx950"), args);
        command
            .env("STUB_UNITS", "80")
            .env("STUB_ELEMENTS", (64 * 128).to_string())
            .env("STUB_WRONG_GRID", "4");
        command.output().expect("it starts").status.success()
    };
    let (run, bench) = (
        ["run", path, "--on", "gpu"],
        ["bench", path, "--iters", "2"],
    );
    if !has_nvidia() {
        assert!(right(&run), "run");
        assert!(right(&bench), "bench");
        let set = [&run[..], &["--set", "num_sms=81"]].concat();
        assert!(!right(&set), "a setting comes before the GPU");
    }
    // A target that is named is what is asked, and it has more units.
    let named = [&run[..], &["--target", "gfx950"]].concat();
    assert!(!right(&named), "a named target comes before the GPU");
}

#[test]
fn verify_compiles_once() {
    let clang = AmdClang::find(&Env::process()).expect("this test needs clang for AMD");
    let folder = tempfile::tempdir().expect("a folder");
    let (calls, counting) = (folder.path().join("calls"), folder.path().join("clang"));
    let (file, real) = (calls.display(), clang.path().display());
    let script = format!("#!/bin/sh\necho \"$*\" >> '{file}'\nexec '{real}' \"$@\"\n");
    std::fs::write(&counting, script).expect("it is written");
    std::fs::set_permissions(&counting, Permissions::from_mode(0o755)).expect("it can be run");
    let args = [
        "verify", EXAMPLE, "--target", "gfx950", "--set", "M=64", "--set", "N=128", "--json",
    ];
    let mut command = command(None, &args);
    let done = command.env("TILEWRIGHT_CLANG", &counting).output();
    let done = done.expect("it starts");
    assert!(done.status.success(), "{}", text(&done.stderr));
    let found: serde_json::Value = serde_json::from_slice(&done.stdout).expect("one JSON object");
    // The same code was compared with the schedule, and run.
    assert_eq!(found["compiled"][0]["kernel_compared"], true, "{found}");
    assert_eq!(found["emulated"]["modes"], 3, "{found}");
    let calls = std::fs::read_to_string(&calls).expect("clang was called");
    assert_eq!(calls.lines().count(), 1, "{calls}");
}

#[test]
fn emulated_code_is_what_compile_shows() {
    for (file, target) in [
        ("gemm.py", Target::Gfx950),
        ("attention_fwd.py", Target::Gfx942),
        ("histogram.py", Target::Gfx942),
    ] {
        let args = ["compile", file, "--target", target.name(), "--emit", "asm"];
        let done = tilewright(None, &args);
        assert!(done.status.success(), "{file}: {}", text(&done.stderr));
        let shown = asm::parse(&text(&done.stdout)).expect("assembly");
        let (func, sources) = stage::staged(file, None, &[]).expect("it stages");
        let (func, _) = jit::lower(&func, target).expect("it is lowered");
        let emulator = Emulator::new(&func, target, &sources).expect("it compiles");
        let code = |program: &asm::Program| -> Vec<(u32, String)> {
            let all = program.functions.iter().flat_map(|f| &f.instructions);
            all.map(|i| (i.line, i.text.to_string())).collect()
        };
        assert_eq!(code(emulator.program()), code(&shown), "{file}");
    }
}

#[test]
fn a_kernel_is_timed() {
    let args = [
        "bench", EXAMPLE, "--target", "gfx950", "--iters", "3", "--warmup", "1", "--json",
    ];
    let found = object("gfx950", &args);
    assert_eq!(found["device"], "Stub 0", "{found}");
    // The stub's clock ticks once a mark.
    assert_eq!(found["ms"], 1.0, "{found}");
    assert_eq!(found["spills"], 0, "{found}");
    assert!(found["registers"].as_u64() > Some(0), "{found}");
    assert_eq!(found["shared_bytes"], 2 * 32 * 128 * 4, "{found}");
}

/// A kernel that faults takes the device with it, one computes something wrong, one does not fit: the
/// fastest of the others is chosen.
#[test]
fn configurations_are_tuned_on_the_gpu() {
    let args = [
        "tune",
        EXAMPLE,
        "--target",
        "gfx950",
        "--on",
        "gpu",
        "--json",
        "--fresh",
        "--set",
        "M=416",
        "--set",
        "N=128",
        "--vary",
        "block_M=16,32,52,104,8,4096",
    ];
    let mut command = command(Some("gfx950"), &args);
    command
        .env("STUB_ELEMENTS", (416 * 128).to_string())
        .env("STUB_WRONG_GRID", "26")
        .env("STUB_COST", "1");
    let done = command.output().expect("it starts");
    let found: serde_json::Value = serde_json::from_slice(&done.stdout).expect("one object");
    assert!(done.status.success(), "{found}");
    assert_eq!(found["device"], "Stub 0 gfx950", "{found}");
    assert_eq!(found["settings"]["block_M"], "104", "{found}");
    assert_eq!(
        (&found["certain"], &found["unit"]),
        (&true.into(), &"seconds".into())
    );
    let row = |at: usize| &found["configurations"][at];
    let failed = |at: usize| row(at)["failed"].as_str().unwrap_or("");
    assert!(failed(0).contains("elements of `C`"), "{found}");
    assert!(failed(1).contains("illegal memory access"), "{found}");
    assert!(failed(5).contains("shared-memory-limit"), "{found}");
    // Its time is a tick and its grid.
    assert_eq!(row(3)["time"], 5e-3, "{found}");
    assert_eq!(row(2)["time"], 9e-3, "{found}");
    // All others are far behind.
    assert_eq!(row(3)["runs"], 3, "{found}");
}

#[test]
fn a_kernel_that_is_wrong_in_every_configuration_is_not_chosen() {
    let args = [
        "tune",
        EXAMPLE,
        "--target",
        "gfx950",
        "--on",
        "gpu",
        "--vary",
        "block_M=32",
    ];
    let mut command = command(Some("gfx950"), &args);
    let done = command.env("STUB_WRONG", "1").output().expect("it starts");
    assert_eq!(done.status.code(), Some(1));
    let said = text(&done.stderr);
    assert!(
        said.contains("differs from the reference evaluator"),
        "{said}"
    );
}

#[test]
fn a_wrong_result_is_found() {
    let args = ["run", EXAMPLE, "--on", "gpu", "--target", "gfx950"];
    let mut command = command(Some("gfx950"), &args);
    let done = command.env("STUB_WRONG", "1").output().expect("it starts");
    assert_eq!(done.status.code(), Some(1));
    let said = text(&done.stderr);
    let wrong = "`elementwise_add`: differs from the reference evaluator in 262144 elements of `C`";
    assert!(said.contains(wrong), "{said}");
}

#[test]
fn another_gpu_is_refused() {
    let args = ["run", EXAMPLE, "--on", "gpu", "--target", "gfx942"];
    let done = tilewright(Some("gfx950"), &args);
    assert_eq!(done.status.code(), Some(1));
    let said = text(&done.stderr);
    assert!(
        said.contains("the kernel was compiled for gfx942 and the GPU is gfx950 (Stub 0)"),
        "{said}"
    );
    let done = tilewright(
        Some("gfx1100"),
        &["run", EXAMPLE, "--on", "gpu", "--target", "gfx950"],
    );
    let said = text(&done.stderr);
    assert!(said.contains("the GPU is gfx1100"), "{said}");
}

#[test]
fn without_a_gpu_it_says_what_was_looked_for() {
    let args = ["run", EXAMPLE, "--on", "gpu", "--target", "gfx942"];
    let done = tilewright(None, &args);
    assert_eq!(done.status.code(), Some(1));
    let said = text(&done.stderr);
    for part in [
        "the HIP runtime (libamdhip64.so) was not found",
        "/no/such/folder",
        "install ROCm",
    ] {
        assert!(said.contains(part), "no `{part}` in: {said}");
    }
}

#[test]
fn without_any_gpu_it_says_so_for_both_vendors() {
    if has_nvidia() {
        return;
    }
    let done = tilewright(None, &["run", EXAMPLE, "--on", "gpu"]);
    assert_eq!(done.status.code(), Some(1));
    let said = text(&done.stderr);
    for part in [
        "there is no GPU to run kernels on",
        "NVIDIA: there is no",
        "AMD: the HIP runtime (libamdhip64.so) was not found",
    ] {
        assert!(said.contains(part), "no `{part}` in: {said}");
    }
}

#[test]
fn doctor_lists_the_gpus() {
    let found = object("gfx942", &["doctor", "--json"]);
    let all = found["findings"].as_array().expect("a list");
    let of = |what: &str| all.iter().find(|f| f["what"] == what);
    let gpu = of("AMD GPU 1").expect("the second GPU");
    assert_eq!(gpu["status"], "found", "{gpu}");
    assert_eq!(gpu["details"]["version"], "Stub 1 (gfx942)", "{gpu}");
    let runtime = of("HIP runtime").expect("the runtime");
    assert_eq!(runtime["details"]["version"], "ROCm 7.1", "{runtime}");
    let executors = found["executors"].as_array().expect("a list");
    assert!(executors.iter().any(|e| e == "gpu"), "{found}");
}

/// `scripts/amd-corpus` for the example that the stub knows.
fn amd_corpus(arch: Option<&str>, args: &[&str]) -> Command {
    let mut script = command(arch, &[]);
    let environment: Vec<_> = script
        .get_envs()
        .map(|(name, value)| (name.to_owned(), value.map(ToOwned::to_owned)))
        .collect();
    script = Command::new("python3");
    script
        .arg(manifest("../../scripts/amd-corpus"))
        .args(["--binary", env!("CARGO_BIN_EXE_tilewright")])
        .args(["--only", "elementwise"])
        .args(args);
    for (name, value) in environment {
        script.env(name, value.unwrap_or_default());
    }
    script
}

#[test]
fn the_corpus_is_checked_and_timed_by_one_command() {
    let done = amd_corpus(Some("gfx950"), &["--iters", "3"]).output();
    let done = done.expect("this test needs python3");
    let said = text(&done.stdout);
    for part in [
        "Stub 0 (gfx950)",
        "ok      tilewright run examples/elementwise_add.py\n",
        // The stub has no other kernel, which is said and counted.
        "FAILED  tilewright run examples/elementwise_add.py:axpby",
        "checked 4 commands: 1 right, 3 not",
        "| elementwise_add float32 8192x8192 | 1.0000 |",
    ] {
        assert!(
            said.contains(part),
            "no `{part}` in: {said}{}",
            text(&done.stderr)
        );
    }
    assert_eq!(done.status.code(), Some(1), "{said}");
}

#[test]
fn the_corpus_says_what_is_wrong_and_what_is_missing() {
    let mut script = amd_corpus(Some("gfx942"), &["--no-timings"]);
    let done = script.env("STUB_WRONG", "1").output().expect("it starts");
    let said = text(&done.stdout);
    assert!(said.contains("differs from the reference"), "{said}");
    assert!(
        said.contains("checked 4 commands: 0 right, 4 not"),
        "{said}"
    );
    assert!(!said.contains("| kernel |"), "{said}");
    let done = amd_corpus(None, &[]).output().expect("it starts");
    assert_eq!(done.status.code(), Some(1));
    let said = text(&done.stderr);
    assert!(said.contains("no AMD GPU was found"), "{said}");
}
