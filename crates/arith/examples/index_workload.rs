//! The index arithmetic of a GEMM kernel, a fixed number of times: the workload whose
//! instructions `scripts/instruction-counts` counts. With an argument, prints what the
//! expressions become instead.

#[path = "../tests/common/show.rs"]
mod show;
#[path = "../benches/workload/mod.rs"]
mod workload;

use show::show;

fn main() {
    let kernel = workload::kernel();
    if std::env::args().nth(1).is_some() {
        let mut a = workload::analyzer(&kernel);
        for e in workload::expressions(&kernel) {
            println!("{}\n    {}", show(&e), show(&a.simplify(&e)));
        }
        for (claim, want) in workload::claims(&kernel) {
            println!(
                "{}\n    {:?}, wanted {want:?}",
                show(&claim),
                a.prove(&claim)
            );
        }
        print!("{}", a.rule_counts());
        return;
    }
    let mut done = 0;
    for _ in 0..100 {
        done += workload::simplify_all() + workload::prove_all();
    }
    println!("{done} expressions and proofs");
}
