//! What `bench` stands on, where there is no GPU: the count of a call's work, and the comparison
//! of a result with a sample of blocks.

#[path = "corpus/stage.rs"]
mod stage;

use tilewright::ir::Func;
use tilewright::jit;
use tilewright::sim::{self, InputSpec, Number, RunOptions};
use tilewright::verdict::{Compared, verdict};

fn example(name: &str, settings: &[(&str, &str)]) -> Func {
    let (func, _) = stage::staged(name, None, settings).expect("it stages");
    func
}

fn work(func: &Func) -> jit::Work {
    let mut args = sim::make_inputs(func, &InputSpec::default()).expect("inputs");
    let resolved = sim::resolve(func, &mut args).expect("the arguments fit");
    jit::work(func, &resolved)
}

#[test]
fn products_are_counted_over_loops_and_blocks() {
    let gemm = work(&example(
        "gemm.py",
        &[("M", "256"), ("N", "384"), ("K", "512")],
    ));
    assert_eq!(gemm.flops, Some(2 * 256 * 384 * 512));
    assert_eq!(gemm.bytes, 2 * (256 * 512 + 512 * 384 + 256 * 384));

    // Waves of tiles, dealt out to fewer blocks.
    let size = [("M", "256"), ("N", "256"), ("K", "128")];
    let persistent = work(&example("gemm_persistent.py", &size));
    assert_eq!(persistent.flops, Some(2 * 256 * 256 * 128));
}

#[test]
fn products_that_some_blocks_skip_are_not_counted() {
    let size = |causal| [("seq_len", "256"), ("is_causal", causal)];
    let whole = work(&example("attention_fwd.py", &size("False"))).flops;
    let causal = work(&example("attention_fwd.py", &size("True"))).flops;
    let (whole, causal) = whole.zip(causal).expect("sizes are known");
    assert!(causal < whole && causal >= whole / 2, "{causal} of {whole}");
}

#[test]
fn what_data_decides_is_not_guessed() {
    assert_eq!(work(&example("blocksparse_gemm.py", &[])).flops, None);
}

#[test]
fn kernels_without_products_have_none() {
    let add = work(&example("elementwise_add.py", &[]));
    assert_eq!(add.flops, Some(0));
    assert!(add.bytes > 0);
}

fn run(func: &Func, sample: Option<u64>) -> (sim::Args, sim::RunReport) {
    let mut args = sim::make_inputs(func, &InputSpec::default()).expect("inputs");
    let options = RunOptions {
        sample,
        ..RunOptions::default()
    };
    let report = sim::run(func, &mut args, &options).expect("it runs");
    (args, report)
}

#[test]
fn a_sample_is_a_part_of_the_whole_result() {
    let sizes = [("M", "512"), ("N", "384"), ("K", "64")];
    let func = example("gemm.py", &sizes);
    let (whole, _) = run(&func, None);
    let (part, report) = run(&func, Some(3));
    assert_eq!((report.kernels[0].ran, report.kernels[0].blocks), (3, 12));
    let c = part.tensor("C").expect("an output");
    assert_eq!(c.count_unwritten(), 512 * 384 - 3 * 128 * 128);

    let found = verdict(&func, &whole, &part, Compared::Sample);
    assert!(found.ok);
    assert_eq!((found.elements, found.max_abs_err), (3 * 128 * 128, 0.0));

    // The last block is part of every sample.
    let mut wrong = whole.clone();
    let c = wrong.tensor_mut("C").expect("an output");
    c.set(512 * 384 - 1, Number::Float(1e4));
    let found = verdict(&func, &wrong, &part, Compared::Sample);
    let [wrong] = found.wrong.as_slice() else {
        panic!("one tensor is wrong, not {:?}", found.wrong)
    };
    assert_eq!((wrong.tensor.as_str(), wrong.elements), ("C", 1));
    assert_eq!(
        wrong.worst.as_ref().map(|w| &w.0[..]),
        Some(&[511, 383][..])
    );
    assert!(!found.ok);
}

#[test]
fn blocks_that_add_to_one_result_all_run() {
    let (_, report) = run(&example("gemm_splitk.py", &[]), Some(2));
    assert!(report.kernels.iter().all(|k| k.ran == k.blocks));
}

/// Adds `share` of the deviation to the first element of a tensor and asks for the verdict.
fn verdict_after(func: &Func, tensor: &str, share: f64) -> bool {
    let (expected, _) = run(func, None);
    let mut found = expected.clone();
    let t = found.tensor_mut(tensor).expect("an output");
    let moved = t.get_f64(0) + share * sim::summarize(t).deviation;
    t.set(0, Number::Float(moved));
    verdict(func, &found, &expected, Compared::All).ok
}

#[test]
fn what_is_rounded_on_the_way_may_be_rounded_the_other_way() {
    // dS is rounded to float16 before it is multiplied, dQ is float32.
    let sizes = [("heads", "1"), ("seq_len", "64"), ("dim", "32")];
    let attention = example("attention_bwd.py", &sizes);
    assert!(verdict_after(&attention, "dQ", 1e-3));
    assert!(!verdict_after(&attention, "dQ", 1e-2));

    // Nothing is rounded on the way to a float32 product.
    let sizes = [
        ("M", "128"),
        ("N", "128"),
        ("K", "64"),
        ("dtype", "float32"),
    ];
    let gemm = example("gemm.py", &sizes);
    assert!(!verdict_after(&gemm, "C", 1e-3));
    assert!(verdict_after(&gemm, "C", 1e-6));
}
