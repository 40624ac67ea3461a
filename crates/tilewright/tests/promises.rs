//! What the commands promise: a result that is not the reference's, a race between blocks or a
//! hazard is an error with its place, and no limit of the machine ends the process without a word.

use std::fs;
use std::path::Path;
use std::process::{Command, Output};

use serde_json::Value;
use tilewright::ir::{SourceMap, Target};
use tilewright::{frontend, jit};

/// Runs the binary in a folder of its own that holds the kernel as `k.py`.
struct Kernel(tempfile::TempDir);

impl Kernel {
    fn new(source: &str) -> Kernel {
        let folder = tempfile::tempdir().expect("a folder");
        fs::write(folder.path().join("k.py"), source).expect("a file");
        Kernel(folder)
    }

    /// A kernel function with these parameters and this launch.
    fn with(params: &str, launch: &str, body: &str) -> Kernel {
        let body = body.replace('\n', "\n        ");
        Kernel::new(&format!(
            "import tilelang.language as T\n\n\n@T.prim_func\ndef main({params}):\n    \
             with T.Kernel({launch}) as bx:\n        {body}\n"
        ))
    }

    fn path(&self) -> &Path {
        self.0.path()
    }

    fn call(&self, args: &[&str]) -> Output {
        Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(args)
            .current_dir(self.path())
            .env("TILEWRIGHT_CACHE_DIR", "")
            .output()
            .expect("it starts")
    }

    /// The object that a command prints, and whether it succeeded.
    fn json(&self, args: &[&str]) -> (Value, bool) {
        let done = self.call(&[args, &["--json"]].concat());
        let code = done.status.code();
        assert!(matches!(code, Some(0 | 1)), "{args:?}: {code:?} {done:?}");
        let object = serde_json::from_slice(&done.stdout).expect("one JSON object");
        (object, code == Some(0))
    }

    /// What a command that must fail says.
    fn refused(&self, args: &[&str]) -> String {
        let done = self.call(args);
        assert_eq!(done.status.code(), Some(1), "{args:?}: {done:?}");
        String::from_utf8_lossy(&done.stderr).into_owned()
    }
}

/// Which thread gets which ticket is nobody's promise, so another order of warps is a difference.
fn tickets() -> Kernel {
    Kernel::with(
        "C: T.Tensor((1,), \"int32\"), O: T.Tensor((256,), \"int32\")",
        "1, threads=256",
        "tx = T.get_thread_binding()\n\
         n = T.atomic_add(C[0], 1, return_prev=True)\n\
         O[tx] = n",
    )
}

#[test]
fn a_result_that_differs_is_an_error_of_run_and_verify() {
    let kernel = tickets();
    let mut runs = 0;
    for seed in ["0", "1", "2", "3"] {
        let on = [
            "run", "k.py", "--on", "sim", "--target", "sm_80", "--seed", seed,
        ];
        let (object, ok) = kernel.json(&on);
        assert_eq!(object["ok"], ok);
        let wrong = object["elements_wrong"].as_u64().expect("a count");
        assert_eq!(ok, wrong == 0);
        assert_eq!(ok, object["max_abs_err"] == 0.0);
        if !ok {
            assert_eq!(object["errors"][0]["code"], "wrong-result");
            runs += 1;
        }
    }
    assert!(runs > 0, "some seed has another order");
    let (object, ok) = kernel.json(&["verify", "k.py", "--target", "sm_80"]);
    assert!(!ok);
    let hazards = object["hazards"].as_array().expect("a list");
    let codes: Vec<&Value> = hazards.iter().map(|h| &h["code"]).collect();
    assert_eq!(codes, ["wrong-result"], "once, however many runs differ");
    assert_eq!(object["blocks_watched"], false);
}

#[test]
fn what_nothing_wrote_is_counted_and_not_compared() {
    let kernel = Kernel::new(
        "import tilelang\nimport tilelang.language as T\n\n\n@tilelang.jit(out_idx=[-1])\n\
         def f(N=64):\n    @T.prim_func\n    \
         def main(A: T.Tensor((N,), \"float32\"), O: T.Tensor((N,), \"float32\")):\n        \
         with T.Kernel(1, threads=32) as bx:\n            \
         for i in T.Parallel(N // 2):\n                O[i] = A[i]\n    return main\n",
    );
    let on = ["run", "k.py", "--on", "sim", "--target", "sm_80"];
    let (object, ok) = kernel.json(&on);
    assert!(ok, "{object}");
    assert_eq!(object["elements_unwritten"], 32);
    assert_eq!(object["elements_compared"], 64 + 32);
}

#[test]
fn verify_says_what_it_sampled() {
    let kernel = Kernel::with(
        "A: T.Tensor((512,), \"int32\"), O: T.Tensor((512,), \"int32\")",
        "16, threads=32",
        "for i in T.Parallel(32):\n    O[bx * 32 + i] = A[bx * 32 + i]",
    );
    let (object, ok) = kernel.json(&["verify", "k.py", "--target", "sm_80"]);
    assert!(ok, "{object}");
    assert_eq!(
        (&object["sampled"], &object["blocks"]),
        (&true.into(), &16.into())
    );
    assert_eq!(object["blocks_simulated"], 4);
    assert_eq!(object["elements_compared"], 4 * 32);
    assert_eq!(object["blocks_watched"], true);
    let (object, ok) = kernel.json(&["verify", "k.py", "--target", "sm_80", "--all"]);
    assert!(ok, "{object}");
    assert_eq!(
        (&object["sampled"], &object["blocks_simulated"]),
        (&false.into(), &16.into())
    );
    assert_eq!(object["orders"], 5);
}

#[test]
fn races_between_blocks_are_errors() {
    let kernel = Kernel::with(
        "A: T.Tensor((512,), \"int32\"), O: T.Tensor((128,), \"int32\")",
        "4, threads=128",
        "for i in T.Parallel(128):\n    O[i] = A[bx * 128 + i]",
    );
    let (object, ok) = kernel.json(&["verify", "k.py", "--target", "sm_80"]);
    assert!(!ok);
    let hazards = object["hazards"].as_array().expect("a list");
    assert_eq!(hazards.len(), 1, "each finding once: {object}");
    assert_eq!(
        (&hazards[0]["code"], &hazards[0]["line"]),
        (&"race-blocks".into(), &8.into())
    );
    assert!(
        kernel
            .refused(&["run", "k.py"])
            .contains("error[race-blocks]")
    );
}

#[test]
fn a_hazard_is_an_error_of_compile() {
    // A wait for arrivals that never come.
    let kernel = Kernel::with(
        "A: T.Tensor((128,), \"float32\"), O: T.Tensor((128,), \"float32\")",
        "1, threads=256",
        "s = T.alloc_shared((128,), \"float32\")\n\
         full = T.alloc_barrier([128])\n\
         with T.ws(0):\n    T.copy(A, s)\n\
         with T.ws(1):\n    T.mbarrier_wait_parity(full[0], 0)\n    T.copy(s, O)",
    );
    for emit in ["device", "source"] {
        let said = kernel.refused(&["compile", "k.py", "--target", "sm_80", "--emit", emit]);
        assert!(said.contains("error[hazard-deadlock]"), "{said}");
        assert!(said.contains("k.py:12:"), "{said}");
    }
    // The way to a GPU is the same.
    let mut sources = SourceMap::new();
    let text = fs::read_to_string(kernel.path().join("k.py")).expect("a file");
    let file = sources.add("k.py", text);
    let staged = frontend::stage(&sources, file, None, &[]).expect("it stages");
    let refused = jit::lower(&staged.func, Target::Sm80).expect_err("it has a hazard");
    assert_eq!(refused.into_diagnostics()[0].code.0, "hazard-deadlock");
    let loops = kernel.call(&["compile", "k.py", "--target", "sm_80", "--emit", "loop"]);
    assert!(loops.status.success(), "{loops:?}");
}

#[test]
fn loops_without_end_are_cut_off() {
    let kernel = Kernel::with(
        "A: T.Tensor((128,), \"int32\")",
        "1, threads=128",
        "x = T.alloc_var(\"int32\", 0)\nwhile x < 1:\n    x = 0\nA[0] = x",
    );
    let said = kernel.refused(&["run", "k.py", "--max-steps", "10000"]);
    assert!(said.contains("error[step-limit]"), "{said}");
    // In the loop: at its condition or in its body.
    assert!(
        said.contains("k.py:8:") || said.contains("k.py:9:"),
        "{said}"
    );
    let verify = [
        "verify",
        "k.py",
        "--target",
        "sm_80",
        "--max-steps",
        "10000",
    ];
    assert!(kernel.refused(&verify).contains("error[step-limit]"));
}

#[test]
fn a_tensor_larger_than_memory_is_refused() {
    let kernel = Kernel::with(
        "A: T.Tensor((60000000000,), \"int8\")",
        "1, threads=128",
        "A[0] = 1",
    );
    for on in ["reference", "sim"] {
        let said = kernel.refused(&["run", "k.py", "--on", on]);
        assert!(said.contains("error[out-of-memory]"), "{said}");
        assert!(said.contains("k.py:5:"), "{said}");
    }
}

#[test]
fn flags_that_load_code_are_refused() {
    let kernel = Kernel::with(
        "A: T.Tensor((128,), \"float32\")",
        "1, threads=128",
        "T.annotate_compile_flags([\"-O3\", \"-fplugin=nowhere.so\"])\n\
         for i in T.Parallel(128):\n    A[i] = A[i] + 1.0",
    );
    let said = kernel.refused(&["compile", "k.py", "--emit", "tile"]);
    assert!(
        said.contains("error[compile-flag]: `-fplugin=nowhere.so`"),
        "{said}"
    );
    // Text IR has no such call; the verifier of the IR says the same.
    let text = "func @f level=tile {\n  attr compile_flags = [\"-fplugin=nowhere.so\"]\n}\n";
    fs::write(kernel.path().join("k.tw"), text).expect("a file");
    let said = kernel.refused(&["compile", "k.tw", "--emit", "tile"]);
    assert!(said.contains("error[compile-flag]"), "{said}");
}

#[test]
fn a_newline_in_the_name_stays_in_its_comment() {
    let kernel = Kernel::with(
        "A: T.Tensor((128,), \"float32\")",
        "1, threads=128",
        "for i in T.Parallel(128):\n    A[i] = A[i] + 1.0",
    );
    let name = "new\nline.py";
    fs::rename(kernel.path().join("k.py"), kernel.path().join(name)).expect("a file");
    for more in [&[][..], &["--line-directives"][..]] {
        let args = ["compile", name, "--emit", "source", "--target", "gfx950"];
        let done = kernel.call(&[&args[..], more].concat());
        let text = String::from_utf8_lossy(&done.stdout).into_owned();
        assert!(text.contains("// new\\nline.py:8:"), "{text}");
        assert!(!text.contains("\nline.py"), "{text}");
    }
}

#[test]
fn pythons_print_is_not_lost() {
    let kernel = Kernel::with(
        "A: T.Tensor((128,), \"float32\")",
        "1, threads=128",
        "print(\"width\", 32)\nprint(A[0])\nA[0] = 1.0",
    );
    let done = kernel.call(&["run", "k.py"]);
    assert!(done.status.success(), "{done:?}");
    let said = String::from_utf8_lossy(&done.stderr).into_owned();
    assert!(
        said.contains("printed when the kernel is built: width 32"),
        "{said}"
    );
    assert!(said.contains("warning[python-print]"), "{said}");
    assert!(said.contains("T.print"), "{said}");
}

/// The halo before the first element is outside in every grid.
#[test]
fn a_halo_means_the_same_in_every_grid() {
    let kernel = Kernel::new(
        "import tilelang\nimport tilelang.language as T\n\n\n@tilelang.jit(out_idx=[-1])\n\
         def halo(N=8):\n    @T.prim_func\n    \
         def main(A: T.Tensor((N,), \"int32\"), O: T.Tensor((N,), \"int32\")):\n        \
         with T.Kernel(N // 8, threads=32) as bx:\n            \
         for i in T.Parallel(8):\n                \
         O[bx * 8 + i] = A[bx * 8 - 3] * 0 + A[bx * 8 - 3] + 5\n    return main\n",
    );
    for size in ["8", "16"] {
        let set = format!("N={size}");
        let on = [
            "run", "k.py", "--on", "sim", "--target", "sm_80", "--set", &set,
        ];
        let (object, ok) = kernel.json(&on);
        assert!(ok, "{object}");
        // The first block reads nothing but zero; the second what the first one has.
        let out = &object["tensors"][1];
        let alone = size == "8";
        assert_eq!(out["min"] == 5.0 && out["max"] == 5.0, alone, "{object}");
    }
}

#[cfg(target_os = "linux")]
mod limits {
    use super::*;

    fn limited(kernel: &Kernel, blocks: &str, args: &str) -> Output {
        let line = format!(
            "ulimit -f {blocks}; exec '{}' {args}",
            env!("CARGO_BIN_EXE_tilewright")
        );
        Command::new("sh")
            .args(["-c", &line])
            .current_dir(kernel.path())
            .env("TILEWRIGHT_CACHE_DIR", "")
            .output()
            .expect("it starts")
    }

    /// A file past the limit on sizes is an error like a full disk, and leaves no part of itself.
    #[test]
    fn a_limit_on_file_sizes_is_an_error() {
        let kernel = Kernel::with(
            "A: T.Tensor((128,), \"float32\")",
            "1, threads=128",
            "for i in T.Parallel(128):\n    A[i] = A[i] + 1.0",
        );
        let done = limited(&kernel, "0", "compile k.py --emit tile -o out.tw");
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains("error[unwritable-file]"), "{said}");
        assert!(!kernel.path().join("out.tw").exists());
        let done = limited(&kernel, "0", "compile k.py --emit tile > out.tw");
        assert_eq!(done.status.code(), Some(1), "{done:?}");
        let said = String::from_utf8_lossy(&done.stderr).into_owned();
        assert!(said.contains("cannot write to stdout"), "{said}");
    }
}
