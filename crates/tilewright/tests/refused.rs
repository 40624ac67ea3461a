//! What an AMD compiler gets wrong is refused, by the commands and by the library: here a clang
//! that leaves something out of the code it makes. No GPU is needed, clang is.

use std::fs;
use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};
use std::process::{Command, Output};

use tilewright::frontend;
use tilewright::ir::{SourceMap, Target};
use tilewright::jit::{self, Compiler};
use tilewright::runtime::cache::Cache;
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::AmdClang;

fn gemm() -> PathBuf {
    Path::new(env!("CARGO_MANIFEST_DIR")).join("../../examples/gemm.py")
}

/// A compiler that edits the assembly that clang makes.
fn faulty(folder: &Path, edit: &str) -> PathBuf {
    let clang = AmdClang::find(&Env::process()).expect("clang: run scripts/setup-clang");
    let path = folder.join("clang");
    let script = format!(
        "#!/bin/sh\n'{}' \"$@\" || exit\nfor last; do :; done\n\
         case \"$last\" in *.s) sed -i '{edit}' \"$last\";; esac\n",
        clang.path().display()
    );
    fs::write(&path, script).expect("a file");
    fs::set_permissions(&path, fs::Permissions::from_mode(0o755)).expect("a program");
    path
}

/// Leaves the first barrier out.
const NO_BARRIER: &str = "0,/s_barrier/s/s_barrier/s_nop 0/";

fn compile(clang: &Path, folder: &Path) -> Output {
    Command::new(env!("CARGO_BIN_EXE_tilewright"))
        .arg("compile")
        .arg(gemm())
        .args(["--target", "gfx950", "--emit", "hsaco", "--output"])
        .arg(folder.join("gemm.hsaco"))
        .env("TILEWRIGHT_CLANG", clang)
        .output()
        .expect("the command runs")
}

#[test]
fn the_command_hands_no_wrong_code_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let good = compile(&faulty(folder.path(), ""), folder.path());
    assert!(good.status.success(), "{good:?}");
    fs::remove_file(folder.path().join("gemm.hsaco")).expect("the code");

    let bad = compile(&faulty(folder.path(), NO_BARRIER), folder.path());
    let text = String::from_utf8_lossy(&bad.stderr);
    assert_eq!(bad.status.code(), Some(1), "{text}");
    assert!(text.contains("error[compiled-code]"), "{text}");
    assert!(text.contains("gemm.py:45"), "{text}");
    assert!(!folder.path().join("gemm.hsaco").exists());
}

/// A wait before the first product and fences at the kernel's end, which nothing asked for.
const EXTRA: &str = r"0,/v_mfma/s/v_mfma/s_waitcnt vmcnt(0)\n\tv_mfma/;s/s_endpgm/buffer_wbl2 sc1\n\tbuffer_wbl2 sc1\n\tbuffer_wbl2 sc1\n\ts_endpgm/";

#[test]
fn verify_says_each_rule_once() {
    let folder = tempfile::tempdir().expect("a folder");
    // What is wrong must not hide behind what only costs time, nor one rule behind another.
    let edit = format!("{EXTRA};{NO_BARRIER}");
    for (edit, right) in [(EXTRA, true), (edit.as_str(), false)] {
        let out = Command::new(env!("CARGO_BIN_EXE_tilewright"))
            .arg("verify")
            .arg(gemm())
            .args(["--target", "gfx950", "--set", "M=128", "--set", "N=128"])
            .env("TILEWRIGHT_CLANG", faulty(folder.path(), edit))
            .output()
            .expect("the command runs");
        let said = String::from_utf8_lossy(&out.stderr);
        let told = String::from_utf8_lossy(&out.stdout);
        assert_eq!(out.status.success(), right, "{said}");
        assert_eq!(said.matches("a fence that").count(), 1, "{said}");
        assert!(said.contains("so do 2 more lines: "), "{said}");
        assert_eq!(said.contains("error[compiled-code]"), !right, "{said}");
        let warnings = said.matches("warning[compiled-code]").count();
        assert_eq!(warnings, 2, "{said}");
        assert_eq!(told.matches("a fence that").count(), 1, "{told}");
        assert!(told.contains("(first of 3)"), "{told}");
    }
}

#[test]
fn the_library_hands_no_wrong_code_out() {
    let folder = tempfile::tempdir().expect("a folder");
    let mut sources = SourceMap::new();
    let text = fs::read_to_string(gemm()).expect("the example");
    let file = sources.add("gemm.py", text);
    let staged = frontend::stage(&sources, file, None, &[]);
    let func = staged.expect("a kernel").func;
    for (edit, right) in [("", true), (NO_BARRIER, false)] {
        let clang = faulty(folder.path(), edit);
        let path = clang.display().to_string();
        let cache = folder.path().display().to_string();
        let env = Env::fixed(
            folder.path(),
            [
                ("TILEWRIGHT_CLANG", path.as_str()),
                ("TILEWRIGHT_CACHE_DIR", cache.as_str()),
            ],
        );
        let compiler = Compiler::find(Target::Gfx950, &env).expect("a compiler");
        let built = jit::build_with(
            &func,
            Target::Gfx950,
            &jit::Options::default(),
            Some(&sources),
            &compiler,
            &Cache::open(&env),
        );
        match built {
            Ok(program) => {
                assert!(right);
                assert!(program.timings.audit.as_nanos() > 0);
            }
            Err(error) => {
                assert!(!right, "{error}");
                let errors = error.into_diagnostics();
                assert!(errors.iter().all(|d| d.code.0 == "compiled-code"));
                assert!(errors.iter().all(|d| !d.primary.span.is_none()));
            }
        }
    }
}
