//! Wall-clock benchmarks of simplification and proofs on a GEMM kernel's index arithmetic.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;

mod workload;

fn benches(c: &mut Criterion) {
    let kernel = workload::kernel();
    let all = workload::expressions(&kernel);
    c.bench_function("simplify, new analyzer", |b| b.iter(workload::simplify_all));
    c.bench_function("prove, new analyzer", |b| b.iter(workload::prove_all));
    c.bench_function("simplify again in one scope", |b| {
        let mut a = workload::analyzer(&kernel);
        b.iter(|| all.iter().map(|e| a.simplify(black_box(e))).count());
    });
    c.bench_function("simplify one swizzle in a new scope", |b| {
        let mut a = workload::analyzer(&kernel);
        b.iter(|| a.scoped(|a| a.simplify(black_box(&all[3]))));
    });
    c.bench_function("prove one bound in a new scope", |b| {
        let mut a = workload::analyzer(&kernel);
        let claims = workload::claims(&kernel);
        b.iter(|| a.scoped(|a| a.prove(black_box(&claims[4].0))));
    });
}

criterion_group!(group, benches);
criterion_main!(group);
