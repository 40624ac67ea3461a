//! A kernel from the builder to the simulator: `cargo run --example quickstart`.

use tilewright::ir::builder::FuncBuilder;
use tilewright::ir::{DType, Target};
use tilewright::sim::simt::{self, SimtOptions};
use tilewright::sim::{self, Arg, Args, HostTensor, RunOptions};
use tilewright::verdict::{Compared, verdict};

pub fn main() -> Result<(), Box<dyn std::error::Error>> {
    // C = A * B, in tiles of 64 by 64, with a pipelined loop over K.
    let (m, n, k) = (128, 128, 64);
    let mut f = FuncBuilder::new("matmul");
    let a = f.param("A", DType::F16, [m, k]);
    let b = f.param("B", DType::F16, [k, n]);
    let c = f.output("C", DType::F32, [m, n]);
    f.kernel([n / 64, m / 64], 128, |t, [bx, by]| {
        let a_tile = t.shared("A_tile", DType::F16, [64, 32]);
        let b_tile = t.shared("B_tile", DType::F16, [32, 64]);
        let acc = t.fragment("acc", DType::F32, [64, 64]);
        t.fill(&acc, 0.0);
        t.pipelined(k / 32, 2, |t, ko| {
            t.copy(a.tile([&by * 64, &ko * 32], [64, 32]), &a_tile);
            t.copy(b.tile([&ko * 32, &bx * 64], [32, 64]), &b_tile);
            t.gemm(&a_tile, &b_tile, &acc);
        });
        t.copy(&acc, c.tile([by * 64, bx * 64], [64, 64]));
    });
    let func = f.finish().map_err(|errors| format!("{errors:?}"))?;

    // What it computes, by the reference evaluator. Outputs are made where none are given.
    let ones = |shape: &[usize]| {
        let len = shape.iter().product();
        HostTensor::from_f64(DType::F16, shape, &vec![1.0; len]).ok_or("too large")
    };
    let given = Args::new()
        .with("A", Arg::Tensor(ones(&[128, 64])?))
        .with("B", Arg::Tensor(ones(&[64, 128])?));
    let mut expected = given.clone();
    sim::run(&func, &mut expected, &RunOptions::default())?;
    assert_eq!(expected.tensor("C").map(|c| c.get_f64(0)), Some(64.0));

    // Lowered for a GPU, proved free of hazards, and run thread by thread.
    let target = Target::Sm80;
    let lowered = tilewright::lower(&func, target).map_err(|errors| format!("{errors:?}"))?;
    let mut found = given.clone();
    let report = simt::run(&lowered, target, &mut found, &SimtOptions::default())?;
    assert!(report.is_clean());
    assert!(verdict(&func, &found, &expected, Compared::All).ok);

    // As source for the target's compiler.
    let source = tilewright::codegen::generate(&lowered, target, Default::default())
        .map_err(|error| error.message)?;
    println!("{}", source.text);
    Ok(())
}
