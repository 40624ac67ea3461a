//! The nvcc fallback, against a program that takes nvcc's command line: no toolkit is needed.

use std::os::unix::fs::PermissionsExt;
use std::path::{Path, PathBuf};

use tilewright_runtime::env::Env;
use tilewright_runtime::toolchain::{CompileError, CompileOptions, Nvcc, Nvrtc, Toolchain};

/// A cubin for the stand-in to hand out.
fn cubin() -> Vec<u8> {
    let nvrtc = match Nvrtc::find(&Env::process()) {
        Ok(nvrtc) => nvrtc,
        Err(missing) => panic!("this test needs NVRTC: run scripts/setup-nvrtc\n{missing}"),
    };
    let source = "extern \"C\" __global__ void f(int* a) { a[0] = 1; }";
    let options = CompileOptions::default();
    nvrtc
        .compile(source, "sm_80", &options)
        .unwrap()
        .bytes()
        .to_vec()
}

/// A stand-in for nvcc that writes down its arguments and runs `body`.
fn stand_in(folder: &Path, body: &str) -> PathBuf {
    let file = folder.join("nvcc");
    let script = format!(
        "#!/bin/sh\ncd '{}'\nprintf '%s\\n' \"$@\" > arguments\n\
         for last; do :; done\ncp \"$last\" source\n{body}\n",
        folder.display()
    );
    std::fs::write(&file, script).unwrap();
    std::fs::set_permissions(&file, std::fs::Permissions::from_mode(0o755)).unwrap();
    file
}

fn found(folder: &Path) -> Nvcc {
    let file = folder.join("nvcc");
    Nvcc::find(&Env::fixed(
        folder,
        [("TILEWRIGHT_NVCC", file.to_str().unwrap())],
    ))
    .unwrap()
}

#[test]
fn nvcc_gets_the_options_and_its_report_is_read() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    std::fs::write(folder.join("cubin"), cubin()).unwrap();
    stand_in(
        folder,
        "while [ $# -gt 0 ]; do [ \"$1\" = -o ] && cp cubin \"$2\"; shift; done\n\
         echo \"ptxas info    : Compiling entry function 'f' for 'sm_90a'\" >&2\n\
         echo '    8 bytes stack frame, 4 bytes spill stores, 2 bytes spill loads' >&2\n\
         echo 'ptxas info    : Used 6 registers' >&2",
    );
    let options = CompileOptions {
        name: "named.cu".to_owned(),
        fast_math: true,
        ..CompileOptions::default()
    };
    let cubin = found(folder)
        .compile("source text", "sm_90a", &options)
        .unwrap();
    assert_eq!(cubin.kernels()[0].spills.unwrap().stores, 4);
    let arguments = std::fs::read_to_string(folder.join("arguments")).unwrap();
    let arguments: Vec<&str> = arguments.lines().collect();
    assert_eq!(
        arguments[..5],
        [
            "--cubin",
            "-gencode=arch=compute_90a,code=sm_90a",
            "--ptxas-options=-v",
            "--std=c++17",
            "--use_fast_math"
        ]
    );
    assert_eq!(
        std::fs::read_to_string(folder.join("source")).unwrap(),
        "#line 1 \"named.cu\"\nsource text"
    );
}

#[test]
fn nvcc_errors_are_mapped_like_nvrtcs() {
    let folder = tempfile::tempdir().unwrap();
    let folder = folder.path();
    stand_in(
        folder,
        "echo 'kernel.cu(2): error: identifier \"x\" is undefined' >&2; exit 2",
    );
    let error = found(folder)
        .compile("one\n  two;", "sm_80", &CompileOptions::default())
        .unwrap_err();
    assert_eq!(
        error.to_string(),
        "the CUDA compiler refused the source:\n  \
         kernel.cu:2: error: identifier \"x\" is undefined\n    | two;"
    );
    stand_in(
        folder,
        "echo \"nvcc fatal   : Unsupported gpu architecture 'compute_90a'\" >&2; exit 1",
    );
    let error = found(folder).compile("", "sm_90a", &CompileOptions::default());
    assert!(
        matches!(error, Err(CompileError::UnsupportedArch { .. })),
        "{error:?}"
    );
    // A compiler that says nothing we know is quoted in full.
    stand_in(folder, "echo 'segmentation fault' >&2; exit 139");
    let error = found(folder).compile("", "sm_90a", &CompileOptions::default());
    assert_eq!(
        error.unwrap_err().to_string(),
        "the CUDA compiler failed:\nsegmentation fault"
    );
}

#[test]
fn nvcc_is_taken_only_where_there_is_no_nvrtc() {
    let root = tempfile::tempdir().unwrap();
    let bin = root.path().join("usr/local/cuda/bin");
    std::fs::create_dir_all(&bin).unwrap();
    stand_in(&bin, "exit 0");
    let env = Env::fixed(root.path(), []);
    assert!(matches!(Toolchain::find(&env), Ok(Toolchain::Nvcc(_))));
    let named = Env::fixed(root.path(), [("TILEWRIGHT_NVRTC", "/no/such")]);
    assert!(matches!(
        Toolchain::find(&named),
        Err(CompileError::NotFound(_))
    ));
    let lib = root.path().join("usr/local/cuda/lib64");
    std::fs::create_dir_all(&lib).unwrap();
    std::fs::write(lib.join("libnvrtc.so.13"), "").unwrap();
    assert!(matches!(Toolchain::find(&env), Ok(Toolchain::Nvrtc(_))));
    let empty = tempfile::tempdir().unwrap();
    let error = Toolchain::find(&Env::fixed(empty.path(), [])).unwrap_err();
    assert!(error.to_string().contains("pip install nvidia-cuda-nvrtc"));
}
