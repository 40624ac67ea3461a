//! The generated source of some examples, as a reader sees it: without the device header.
//!
//! The snapshots are there to be read. After a change that means to change them, look at the
//! difference as someone would who has to debug the kernel, then `INSTA_UPDATE=always`.

#[path = "corpus/stage.rs"]
mod stage;

use tilewright::codegen;
use tilewright::ir::Target;
use tilewright::jit;

/// Kernels of a file as CUDA or HIP source.
fn source(file: &str, entry: Option<&str>, settings: &[(&str, &str)], target: Target) -> String {
    let (func, sources) = stage::staged(file, entry, settings).expect("it stages");
    let (func, _) = jit::lower(&func, target).expect("it lowers");
    let options = codegen::Options {
        sources: Some(&sources),
        line_directives: false,
    };
    let text = codegen::generate(&func, target, options)
        .expect("it has source")
        .text;
    let header = text
        .rfind("}  // namespace tw\n")
        .map_or(0, |at| at + "}  // namespace tw\n".len());
    text[header..].trim_start().to_string()
}

#[test]
fn gemm() {
    insta::assert_snapshot!(source("gemm.py", None, &[], Target::Sm80));
}

/// A sparse factor: half of A, and the metadata beside it.
#[test]
fn gemm_sp() {
    insta::assert_snapshot!(source("gemm_sp.py", None, &[], Target::Sm80));
}

/// Waits and barriers as the schedule counts them.
#[test]
fn gemm_gfx950() {
    let settings = [("trans_B", "True"), ("dtype", "bfloat16")];
    insta::assert_snapshot!(source("gemm.py", None, &settings, Target::Gfx950));
}

#[test]
fn rms_norm_gfx942() {
    insta::assert_snapshot!(source("rms_norm.py", None, &[], Target::Gfx942));
}

/// Sizes at run time: guards where a tile may reach over the end.
#[test]
fn gemm_dynamic() {
    insta::assert_snapshot!(source("gemm_dynamic.py", None, &[], Target::Sm80));
}

#[test]
fn rms_norm() {
    insta::assert_snapshot!(source("rms_norm.py", None, &[], Target::Sm90a));
}

/// Products that start at zero, part by part, each scaled and added up.
#[test]
fn fp8_gemm_blockwise() {
    let settings = [("block_M", "256"), ("num_stages", "3")];
    let target = Target::Sm90a;
    insta::assert_snapshot!(source("fp8_gemm_blockwise.py", None, &settings, target));
}

#[test]
fn attention_fwd() {
    let settings = [("is_causal", "True")];
    insta::assert_snapshot!(source("attention_fwd.py", None, &settings, Target::Sm90a));
}

/// Atomics in shared and global memory.
#[test]
fn histogram() {
    insta::assert_snapshot!(source("histogram.py", None, &[], Target::Sm80));
}

/// Additions to two neighbours at once.
#[test]
fn gemm_splitk() {
    insta::assert_snapshot!(source("gemm_splitk.py", None, &[], Target::Sm90a));
}
