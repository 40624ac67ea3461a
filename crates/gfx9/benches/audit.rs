//! What reading and auditing compiled code costs. Every AMD program is audited when it is compiled,
//! so that it must be little beside the compiler.

use std::hint::black_box;

use tilewright_gfx9::asm::parse;
use tilewright_gfx9::audit::{Expectation, audit};
use tilewright_testkit::bench::time;

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

fn main() {
    for (name, text) in FILES {
        time(&format!("read {name}"), || parse(black_box(text)));
        let program = parse(text).expect("assembly");
        let expected = Expectation::default();
        time(&format!("audit {name}"), || {
            audit(black_box(&program.functions[0]), "gfx950", &expected)
        });
    }
}
