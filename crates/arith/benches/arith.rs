//! Wall-clock benchmarks of simplification and proofs on a GEMM kernel's index arithmetic.

use std::hint::black_box;

use tilewright_testkit::bench::time;

mod workload;

fn main() {
    let kernel = workload::kernel();
    let all = workload::expressions(&kernel);
    let claims = workload::claims(&kernel);
    let mut a = workload::analyzer(&kernel);
    time("simplify, new analyzer", workload::simplify_all);
    time("prove, new analyzer", workload::prove_all);
    time("simplify again in one scope", || {
        all.iter().map(|e| a.simplify(black_box(e))).count()
    });
    time("simplify one swizzle in a new scope", || {
        a.scoped(|a| a.simplify(black_box(&all[3])))
    });
    time("prove one bound in a new scope", || {
        a.scoped(|a| a.prove(black_box(&claims[4].0)))
    });
}
