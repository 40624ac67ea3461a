//! What findings, counters and decisions say: the right buffer, advice that can be followed, what was
//! done.

use std::fs;
use std::path::PathBuf;
use std::process::Command;

use serde_json::Value;

struct Place(tempfile::TempDir);

impl Place {
    fn new() -> Place {
        Place(tempfile::tempdir().expect("a folder"))
    }

    fn put(&self, name: &str, text: &str) -> PathBuf {
        let path = self.0.path().join(name);
        fs::write(&path, text).expect("a file");
        path
    }

    /// What the command says on stdout and stderr.
    fn call(&self, line: &str) -> (String, String) {
        let done = Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .args(line.split_whitespace())
            .current_dir(self.0.path())
            .env("TILEWRIGHT_CACHE_DIR", "")
            .output()
            .expect("it starts");
        let text = |bytes: &[u8]| String::from_utf8_lossy(bytes).into_owned();
        (text(&done.stdout), text(&done.stderr))
    }

    fn object(&self, line: &str) -> Value {
        let (out, err) = self.call(&format!("{line} --json"));
        serde_json::from_str(&out).unwrap_or_else(|e| panic!("{line}: {e}: {out}{err}"))
    }
}

/// Device IR around these statements, with two shared buffers of one name.
fn device(body: &str) -> String {
    format!(
        "func @f level=device {{
  output O: float32[64]
  kernel grid(bx: 1) threads(tx: 64, ty: 1, tz: 1) {{
    alloc a: shared float32[64] offset=0 bytes=256
    alloc a.1: shared float32[64] offset=256 bytes=256
    a[tx] = 1.0
    barrier block
{body}  }}
}}
"
    )
}

#[test]
fn buffers_of_one_name_are_told_apart() {
    let place = Place::new();
    let body = "    a.1[tx] = a[63 - tx]\n    O[tx] = a.1[63 - tx]\n";
    place.put("k.tw", &device(body));
    let object = place.object("verify k.tw --target sm_80");
    let hazards = object["hazards"].as_array().expect("hazards");
    for code in ["hazard-raw", "race-read-write"] {
        let found = hazards.iter().find(|h| h["code"] == code);
        let text = found
            .unwrap_or_else(|| panic!("no {code}: {object}"))
            .to_string();
        assert!(
            text.contains("`a.1`"),
            "{code} names another buffer: {text}"
        );
        assert!(!text.contains("`a`"), "{code} names another buffer: {text}");
    }
    // With the barrier there is nothing to say.
    let good = body.replace("\n    O", "\n    barrier block\n    O");
    place.put("k.tw", &device(&good));
    let object = place.object("verify k.tw --target sm_80");
    assert_eq!(object["hazards"], Value::Array(Vec::new()));
}

/// No barrier is advised where both accesses are of one statement.
#[test]
fn advice_fits_one_statement() {
    let place = Place::new();
    let body =
        "    a.1[tx % 32] = a[tx]\n    barrier block\n    O[tx] = a.1[tx % 32] + float32(tx)\n";
    place.put("k.tw", &device(&body.replace("a[tx]\n", "float32(tx)\n")));
    let object = place.object("verify k.tw --target sm_80");
    let hazards = object["hazards"].as_array().expect("hazards");
    assert!(!hazards.is_empty(), "{object}");
    for hazard in hazards {
        let help = hazard["help"].to_string();
        assert!(help.contains("both are this statement"), "{hazard}");
        assert!(!help.contains("barrier"), "{hazard}");
    }
}

/// A column of a tile of 32 columns lies in one bank.
#[test]
fn bank_conflicts_are_counted() {
    let place = Place::new();
    let kernel = |index: &str| {
        format!(
            "import tilelang.language as T\n\n@T.prim_func\ndef k(A: T.Tensor((32, 32), 'float32'), B: T.Tensor((32, 32), 'float32')):\n    with T.Kernel(1, threads=32) as bx:\n        s = T.alloc_shared((32, 32), 'float32')\n        T.annotate_layout({{s: T.make_linear_layout(s)}})\n        T.copy(A, s)\n        tx = T.get_thread_binding(0)\n        for i in T.serial(32):\n            B[i, tx] = s[{index}]\n"
        )
    };
    for (index, conflicts) in [("i, tx", 0), ("tx, i", 32 * 31)] {
        place.put("k.py", &kernel(index));
        let object = place.object("run k.py --on sim --target sm_80 --counters");
        let counters = &object["counters"];
        assert_eq!(
            counters["bank_conflicts"], conflicts,
            "s[{index}]: {counters}"
        );
        let (text, _) = place.call("run k.py --on sim --target sm_80 --counters");
        let line = format!("{conflicts:>12} of them bank conflicts");
        assert!(text.contains(&line), "{text}");
    }
}

/// What `--explain decisions` says is what the IR has.
#[test]
fn decisions_are_what_was_done() {
    let place = Place::new();
    let gemm = concat!(env!("CARGO_MANIFEST_DIR"), "/../../examples/gemm.py");
    let object = place.object(&format!(
        "compile {gemm} --target sm_80 --explain decisions"
    ));
    let kernel = &object["decisions"][0]["kernels"][0];
    assert_eq!(kernel["loops"][0]["stages_asked"], 3);
    assert_eq!(kernel["loops"][0]["versions"][0]["versions"], 2);
    let said = kernel["loops"][0]["said"].to_string();
    assert!(said.contains("read_ahead"), "{said}");
    assert_eq!(kernel["products"][0]["warps"], serde_json::json!([2, 2]));
    assert_eq!(kernel["products"][0]["unit"], "warp");
    let buffer = |name: &str| {
        let all = kernel["buffers"].as_array().expect("buffers");
        all.iter().find(|b| b["name"] == name).expect(name)
    };
    assert_eq!(buffer("C_local")["registers"], 128);
    assert_eq!(buffer("A_shared")["bytes"], 16384);
    assert!(
        buffer("A_shared")["layout"]
            .to_string()
            .contains("swizzle(")
    );
    let copied = &kernel["accesses"][0];
    assert_eq!(
        (&copied["bytes"], &copied["instruction"]),
        (&16.into(), &"cp.async".into())
    );
    let (text, _) = place.call(&format!(
        "compile {gemm} --target sm_80 --explain decisions"
    ));
    assert!(
        text.contains("3 stages asked") && text.contains("`A_shared`: 2 versions"),
        "{text}"
    );
    // Another topic does not say it.
    let (text, _) = place.call(&format!("compile {gemm} --target sm_80 --explain schedule"));
    assert!(!text.contains("stages asked"), "{text}");
}

/// A fragment that went to shared memory says why, and what would keep it.
#[test]
fn a_fragment_in_shared_memory_says_why() {
    let place = Place::new();
    place.put(
        "k.py",
        "import tilelang.language as T\n\n@T.prim_func\ndef k(A: T.Tensor((128,), 'float32'), I: T.Tensor((128,), 'int32')):\n    with T.Kernel(1, threads=128) as bx:\n        f = T.alloc_fragment((128,), 'float32')\n        g = T.alloc_fragment((128,), 'float32')\n        T.copy(A, f)\n        for i in T.Parallel(128):\n            g[i] = f[I[i]]\n        T.copy(g, A)\n",
    );
    let object = place.object("compile k.py --target sm_80 --explain decisions");
    let buffers = &object["decisions"][0]["kernels"][0]["buffers"];
    assert_eq!(buffers[0]["name"], "f");
    assert_eq!(buffers[0]["made"], "shared memory");
    let why = buffers[0]["why"].to_string();
    assert!(why.contains("is kept in shared memory"), "{why}");
    assert!(why.contains("it stays in registers where"), "{why}");
    assert_eq!(buffers[1]["made"], "registers");
    assert_eq!(buffers[1]["why"], Value::Array(Vec::new()));
}
