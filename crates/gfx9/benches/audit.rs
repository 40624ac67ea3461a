//! What reading and auditing compiled code costs. Every AMD program is audited when it is compiled,
//! so that it must be little beside the compiler.

use criterion::{Criterion, criterion_group, criterion_main};
use std::hint::black_box;
use tilewright_gfx9::asm::parse;
use tilewright_gfx9::audit::{Expectation, audit};

const FILES: [(&str, &str); 2] = [
    (
        "gemm, 1,100 instructions",
        include_str!("../tests/asm/gemm.s"),
    ),
    (
        "pingpong, 1,500 instructions",
        include_str!("../tests/asm/pingpong.s"),
    ),
];

fn all(c: &mut Criterion) {
    for (name, text) in FILES {
        c.bench_function(&format!("read {name}"), |b| {
            b.iter(|| parse(black_box(text)));
        });
        let program = parse(text).expect("assembly");
        let expected = Expectation::default();
        c.bench_function(&format!("audit {name}"), |b| {
            b.iter(|| audit(black_box(&program.functions[0]), "gfx950", &expected));
        });
    }
}

criterion_group!(benches, all);
criterion_main!(benches);
