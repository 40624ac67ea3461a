//! `tilewright tune` where there is no GPU: the estimate and the cycle model choose among
//! configurations, and what is broken or wrong is reported.

use std::path::Path;
use std::process::Command;

use serde_json::Value;

/// A product whose tiles are open. `wrong` leaves out the last tile along K.
const GEMM: &str = r#"
import tilelang
import tilelang.language as T

def configs():
    return [
        dict(block=16, threads=64, wrong=0),
        dict(block=64, threads=128, wrong=0),
        dict(block=4096, threads=128, wrong=0),
        dict(block=64, threads=128, wrong=1),
        dict(block=32, threads=128, wrong=0),
        dict(block=48, threads=7, wrong=0),
    ]

@tilelang.autotune(configs=configs())
@tilelang.jit(out_idx=[-1])
def gemm(M=128, N=128, K=128, block=None, threads=None, wrong=None):
    @T.prim_func
    def kernel(A: T.Tensor((M, K), "float16"), B: T.Tensor((K, N), "float16"),
               C: T.Tensor((M, N), "float32")):
        with T.Kernel(T.ceildiv(N, block), T.ceildiv(M, block), threads=threads) as (bx, by):
            a = T.alloc_shared((block, 32), "float16")
            b = T.alloc_shared((32, block), "float16")
            c = T.alloc_fragment((block, block), "float32")
            T.clear(c)
            for k in T.Pipelined(K // 32 - wrong, num_stages=2):
                T.copy(A[by * block, k * 32], a)
                T.copy(B[k * 32, bx * block], b)
                T.gemm(a, b, c)
            T.copy(c, C[by * block, bx * block])
    return kernel
"#;

struct Folder(tempfile::TempDir);

impl Folder {
    fn new(text: &str) -> Folder {
        let folder = tempfile::tempdir().expect("a folder");
        std::fs::write(folder.path().join("k.py"), text).expect("it is written");
        Folder(folder)
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn command(&self, args: &[&str]) -> Command {
        let mut command = Command::new(env!("CARGO_BIN_EXE_tilewright"));
        command.arg("tune").arg(self.path().join("k.py")).args(args);
        command.env("TILEWRIGHT_CACHE_DIR", self.path().join("cache"));
        command
    }

    /// What the command prints as JSON, and its exit code.
    fn tuned(&self, args: &[&str]) -> (Value, Option<i32>) {
        let done = self
            .command(args)
            .arg("--json")
            .output()
            .expect("it starts");
        let said = String::from_utf8_lossy(&done.stderr);
        let found = serde_json::from_slice(&done.stdout);
        (
            found.unwrap_or_else(|e| panic!("{e}: {said}")),
            done.status.code(),
        )
    }
}

fn failed(found: &Value, at: usize) -> &str {
    found["configurations"][at]["failed"].as_str().unwrap_or("")
}

#[test]
fn broken_and_wrong_configurations_are_reported_and_not_chosen() {
    let folder = Folder::new(GEMM);
    let (found, code) = folder.tuned(&["--on", "cost", "--target", "sm_80"]);
    assert_eq!(code, Some(0), "{found}");
    assert_eq!(found["unit"], "cycles");
    let best = found["best"].as_u64().expect("a number");
    assert!([0, 1, 4].contains(&best), "{found}");
    assert!(failed(&found, 2).contains("shared"), "{found}");
    let differs = "its result differs from those of 3 other configurations";
    assert!(failed(&found, 3).starts_with(differs), "{found}");
    assert!(!failed(&found, 5).is_empty(), "{found}");
    // The one that leaves a tile out would be faster than its like. One against one is decided by
    // nobody.
    let pair = [
        "--on",
        "cost",
        "--target",
        "sm_80",
        "--set",
        "block=64",
        "--set",
        "threads=128",
    ];
    let (unchecked, _) = folder.tuned(&[&pair[..], &["--skip-check"]].concat());
    assert_eq!(unchecked["settings"]["wrong"], "1", "{unchecked}");
    let (found, code) = folder.tuned(&pair);
    assert_eq!(
        (code, &found["errors"][0]["code"]),
        (Some(1), &"tune-nothing".into())
    );
    assert!(
        failed(&found, 0).ends_with("a reference program would say which is right"),
        "{found}"
    );
}

#[test]
fn results_are_kept_for_the_same_kernels_sizes_and_machine_alone() {
    let folder = Folder::new(GEMM);
    let ask = |args: &[&str]| {
        let (found, _) = folder.tuned(&[&["--on", "cost", "--set", "wrong=0"], args].concat());
        (found["stored"] == true, found["best"].clone())
    };
    let (stored, best) = ask(&["--target", "sm_80"]);
    assert!(!stored);
    assert_eq!(ask(&["--target", "sm_80"]), (true, best.clone()));
    assert_eq!(ask(&["--target", "sm_80", "--fresh"]), (false, best));
    assert!(!ask(&["--target", "sm_90a"]).0);
    assert!(!ask(&["--target", "sm_80", "--set", "K=64"]).0);
    assert!(!ask(&["--target", "sm_80", "--seed", "1"]).0);
    // Another kernel under the same name.
    let other = GEMM.replace("num_stages=2", "num_stages=3");
    std::fs::write(folder.path().join("k.py"), other).expect("it is written");
    assert!(!ask(&["--target", "sm_80"]).0);
}

#[test]
fn the_cycle_model_chooses_as_well() {
    let folder = Folder::new(GEMM);
    let vary = [
        "--vary",
        "block=32,64",
        "--set",
        "threads=256",
        "--set",
        "wrong=0",
    ];
    let (found, code) =
        folder.tuned(&[&["--on", "model", "--target", "gfx950"], &vary[..]].concat());
    assert_eq!(code, Some(0), "{found}");
    assert_eq!(
        (&found["on"], &found["target"]),
        (&"model".into(), &"gfx950".into())
    );
    let times = |at: usize| found["configurations"][at]["time"].as_f64();
    let (a, b) = (times(0).expect("a time"), times(1).expect("a time"));
    assert!(a > 100.0 && b > 100.0 && a != b, "{found}");
    assert_eq!(found["best"], usize::from(b < a), "{found}");
    let (found, code) = folder.tuned(&["--on", "model", "--target", "sm_90a"]);
    assert_eq!(
        (code, &found["errors"][0]["code"]),
        (Some(1), &"tune-model".into())
    );
}

#[test]
fn the_tuner_chooses_what_to_try_by_names() {
    let folder = Folder::new(&GEMM.replace("configs=configs()", "configs=\"auto\""));
    let args = [
        "--on", "cost", "--target", "sm_80", "--set", "wrong=0", "--keep", "3",
    ];
    // Asked for by the kernel itself, all are tried.
    let (all, code) = folder.tuned(&[&args[..], &["--skip-check"]].concat());
    assert_eq!(code, Some(0), "{all}");
    let (found, code) = folder.tuned(&[&args[..], &["--auto"]].concat());
    assert_eq!(code, Some(0), "{found}");
    let rows = found["configurations"].as_array().expect("a list");
    assert_eq!(rows.len(), 16, "{found}");
    let left: Vec<&str> = rows.iter().filter_map(|r| r["left_out"].as_str()).collect();
    assert!(left.len() >= 12, "{found}");
    assert!(left[0].starts_with("its estimate is"), "{found}");
}

#[test]
fn wrong_command_lines_say_what_is_wrong() {
    let folder = Folder::new(GEMM);
    let said = |args: &[&str]| {
        let done = folder.command(args).output().expect("it starts");
        (
            done.status.code(),
            String::from_utf8_lossy(&done.stderr).into_owned(),
        )
    };
    let (code, text) = said(&["--vary", "block"]);
    assert_eq!(code, Some(2), "{text}");
    assert!(text.contains("not of the form NAME=VALUE"), "{text}");
    let (code, text) = said(&[
        "--set",
        "block=16",
        "--set",
        "threads=64",
        "--set",
        "wrong=0",
    ]);
    // Nothing is left to choose, and that one works.
    assert_eq!(code, Some(0), "{text}");
    let (code, text) = said(&[
        "--vary",
        "block=4096,8192",
        "--set",
        "threads=128",
        "--set",
        "wrong=0",
        "--on",
        "cost",
    ]);
    assert_eq!(code, Some(1), "{text}");
    assert!(
        text.contains("no configuration of `gemm` can be used"),
        "{text}"
    );
    assert!(text.contains("block=8192"), "{text}");
    let plain = Folder::new(&GEMM.replace("@tilelang.autotune(configs=configs())", ""));
    let done = plain.command(&[]).output().expect("it starts");
    let text = String::from_utf8_lossy(&done.stderr).into_owned();
    assert_eq!(done.status.code(), Some(2), "{text}");
    assert!(text.contains("no `@autotune` configurations"), "{text}");
}

#[test]
fn eight_processes_tune_the_same_at_once() {
    let folder = Folder::new(GEMM);
    let mut children = Vec::new();
    for _ in 0..8 {
        let mut command = folder.command(&["--on", "cost", "--target", "sm_80", "--json"]);
        command.stdout(std::process::Stdio::piped());
        children.push(command.spawn().expect("it starts"));
    }
    let mut tuned = 0;
    for child in children {
        let done = child.wait_with_output().expect("it ends");
        let found: Value = serde_json::from_slice(&done.stdout).expect("one object");
        tuned += usize::from(found["stored"] == false);
        assert!(
            [0, 1, 4].contains(&found["best"].as_u64().expect("one")),
            "{found}"
        );
    }
    assert_eq!(tuned, 1);
}
