//! Orders of a 256x256x64 product of 16-bit numbers, as assembly: what waves do in an iteration,
//! written out for the timing model. The addresses are those of tiles without conflicts; nothing
//! here is meant to be run.

use std::fmt::Write as _;

use tilewright_gfx9::asm::{Function, parse};
use tilewright_gfx9::cycles::{Machine, Timing, Walk, time};

/// Iterations that are timed.
const TURNS: u32 = 10;

/// A kernel's text, in the making.
#[derive(Default)]
pub struct Code {
    text: String,
    scalar: u32,
}

impl Code {
    pub fn line(&mut self, code: &str) {
        writeln!(self.text, "\t{code}").unwrap();
    }

    pub fn label(&mut self, label: &str) {
        writeln!(self.text, "{label}:").unwrap();
    }

    /// A copy to LDS, with the scalar instructions that it takes.
    pub fn copy(&mut self) {
        self.scalar += 1;
        self.line(&format!(
            "s_add_i32 s{}, s{}, 0x80",
            40 + self.scalar % 4,
            30
        ));
        self.line("s_mov_b32 m0, s20");
        self.line("s_nop 0");
        self.line("buffer_load_dwordx4 v200, s[4:7], s40 offen lds");
    }

    /// A fragment of A or B; `fragment` counts in runs of four registers.
    pub fn read(&mut self, fragment: u32) {
        let first = 4 * fragment;
        self.line(&format!("ds_read_b128 v[{first}:{}], v201", first + 3));
    }

    /// A product of two fragments, added to an accumulator of four registers.
    pub fn product(&mut self, accumulator: u32, a: u32, b: u32) {
        let run = |file: char, first: u32| format!("{file}[{}:{}]", 4 * first, 4 * first + 3);
        let (c, a, b) = (run('a', accumulator), run('v', a), run('v', b));
        self.line(&format!("v_mfma_f32_16x16x32_bf16 {c}, {a}, {b}, {c}"));
    }

    /// Two groups of waves, the second one barrier behind the first where the walk
    /// says so; a loop around `body`.
    pub fn kernel(prologue: impl Fn(&mut Code), body: impl Fn(&mut Code)) -> Function {
        let mut code = Code::default();
        code.label("f");
        prologue(&mut code);
        code.line("s_cbranch_scc1 .Lshift");
        code.line("s_barrier");
        code.label(".Lshift");
        code.label(".Lloop");
        body(&mut code);
        code.line("s_add_i32 s30, s30, 0x80");
        code.line("s_cmp_lt_i32 s30, s31");
        code.line("s_cbranch_scc1 .Lloop");
        code.line("s_cbranch_scc0 .Lback");
        code.line("s_barrier");
        code.label(".Lback");
        code.line("s_endpgm");
        parse(&code.text).unwrap().functions[0].clone()
    }
}

/// Times a kernel of [`Code::kernel`].
pub fn timed(function: &Function, waves: usize, shift: bool, machine: &Machine) -> Timing {
    let walk = Walk {
        waves,
        taken: &|wave, label, visit| match label {
            ".Lloop" => visit + 1 < TURNS,
            ".Lshift" => !shift || wave < waves / 2,
            _ => !shift || wave >= waves / 2,
        },
        addresses: &|_, _| None,
        limit: 1_000_000,
    };
    let trace = walk.trace(function).unwrap();
    time(function, &trace, machine).unwrap()
}

/// Eight waves, each with 128x64 of the result in four quadrants of 16 products. Each quadrant's
/// fragments are read behind the products of the one before.
pub struct Quadrants {
    /// A second barrier between a quadrant's products and the reads behind them.
    pub split: bool,
    /// Copies are waited for at the barrier before the products, or at the one behind them.
    pub wait_before: bool,
}

/// Fragments: A's upper and lower half, B's left and right one; those that a quadrant reads for
/// the one behind it.
const A: [u32; 2] = [0, 8];
const B: [u32; 2] = [16, 20];
const NEXT: [(u32, u32); 4] = [(B[1], 4), (A[1], 8), (B[0], 4), (A[0], 8)];

impl Quadrants {
    pub fn kernel(&self) -> Function {
        let prologue = |code: &mut Code| {
            (0..8).for_each(|_| code.copy());
            code.line("s_waitcnt vmcnt(0)");
            code.line("s_barrier");
            (0..8).for_each(|i| code.read(A[0] + i));
            (0..4).for_each(|i| code.read(B[0] + i));
        };
        Code::kernel(prologue, |code| {
            for quadrant in 0..4u32 {
                // Quadrants turn round: 00, 01, 11, 10.
                let (i, j) = [(0, 0), (0, 1), (1, 1), (1, 0)][quadrant as usize];
                code.line("s_setprio 0");
                code.line(match self.wait_before {
                    true => "s_waitcnt vmcnt(10) lgkmcnt(0)",
                    false => "s_waitcnt lgkmcnt(0)",
                });
                code.line("s_barrier");
                for k in 0..2 {
                    for m in 0..4 {
                        for n in 0..2 {
                            let accumulator = (i * 2 + j) * 8 + m * 2 + n;
                            code.product(
                                accumulator,
                                A[i as usize] + m * 2 + k,
                                B[j as usize] + n * 2 + k,
                            );
                        }
                    }
                }
                code.line("s_setprio 1");
                if !self.wait_before {
                    code.line("s_waitcnt vmcnt(10)");
                }
                if self.split {
                    code.line("s_barrier");
                }
                (0..2).for_each(|_| code.copy());
                let (first, count) = NEXT[quadrant as usize];
                (0..count).for_each(|k| code.read(first + k));
            }
        })
    }
}

/// Four waves, each with 128x128 of the result: 128 products an iteration, and between them 16
/// copies and 32 reads.
pub struct FourWaves {
    /// Copies and reads between the products, with a barrier behind each part; or all copies
    /// early, one wait for them, and all reads behind one barrier.
    pub spread: bool,
}

impl FourWaves {
    pub fn kernel(&self) -> Function {
        let prologue = |code: &mut Code| {
            (0..16).for_each(|_| code.copy());
            code.line("s_waitcnt vmcnt(0)");
            code.line("s_barrier");
            (0..16).for_each(|i| code.read(i));
        };
        Code::kernel(prologue, |code| {
            for at in 0..128u32 {
                // The first half of K has fragments 0 to 15, the second 16 to 31.
                let (k, tile) = (at / 64, at % 64);
                if at == 0 || at == 64 {
                    code.line("s_waitcnt lgkmcnt(0)");
                }
                code.product(tile, k * 16 + tile / 8, k * 16 + 8 + tile % 8);
                match self.spread {
                    true => spread(code, at),
                    false => together(code, at),
                }
            }
        })
    }
}

/// As hipBLASLt's 4-wave kernel: barriers behind products 22, 52 and 93.
fn spread(code: &mut Code, at: u32) {
    match at {
        21 | 51 => code.line("s_barrier"),
        92 => {
            code.line("s_waitcnt vmcnt(13)");
            code.line("s_barrier");
        }
        _ => {}
    }
    // Fragments of the second half, then of the next tile's first half.
    if (1..49).contains(&at) && at.is_multiple_of(3) {
        code.read(16 + at / 3);
    }
    if (94..126).contains(&at) && at.is_multiple_of(2) {
        code.read((at - 94) / 2);
    }
    if (23..92).contains(&at) && at.is_multiple_of(6) {
        code.copy();
    }
    if at >= 92 && at % 8 == 1 {
        code.copy();
    }
}

/// All copies by product 62, one wait, one barrier, then all reads.
fn together(code: &mut Code, at: u32) {
    if at < 64 && at % 4 == 3 {
        code.copy();
    }
    if at == 67 {
        code.line("s_waitcnt vmcnt(0)");
        code.line("s_barrier");
    }
    if (68..100).contains(&at) {
        code.read((at - 68 + 16) % 32);
    }
}

/// Eight waves in two groups, K in two slices of 32x32x16 products, with one wait for all copies.
pub fn two_slices() -> Function {
    let product = |code: &mut Code| {
        code.line("s_waitcnt lgkmcnt(0)");
        code.line("s_setprio 1");
        for k in 0..2 {
            for tile in 0..8 {
                let (m, n) = (tile / 2, tile % 2);
                let run = |first: u32, count: u32| format!("[{first}:{}]", first + count - 1);
                let c = run(16 * tile, 16);
                let a = run(4 * (m * 2 + k), 4);
                let b = run(4 * (8 + n * 2 + k), 4);
                code.line(&format!("v_mfma_f32_32x32x16_bf16 a{c}, v{a}, v{b}, a{c}"));
            }
        }
        code.line("s_setprio 0");
        code.line("s_barrier");
    };
    let prologue = |code: &mut Code| {
        (0..8).for_each(|_| code.copy());
        code.line("s_waitcnt vmcnt(0)");
        code.line("s_barrier");
    };
    Code::kernel(prologue, |code| {
        (0..12).for_each(|i| code.read(i));
        (0..8).for_each(|_| code.copy());
        code.line("s_barrier");
        product(code);
        (0..12).for_each(|i| code.read(i));
        code.line("s_waitcnt vmcnt(0) lgkmcnt(0)");
        code.line("s_barrier");
        product(code);
    })
}

/// Eight waves that run freely between two barriers an iteration: each half of K is read while
/// the other is multiplied, and copies stand between the products.
pub fn ordinary() -> Function {
    let prologue = |code: &mut Code| {
        (0..8).for_each(|_| code.copy());
        code.line("s_waitcnt vmcnt(0)");
        code.line("s_barrier");
        (0..12).for_each(|i| code.read(i));
    };
    Code::kernel(prologue, |code| {
        for at in 0..64u32 {
            let (k, tile) = (at / 32, at % 32);
            if at == 32 {
                code.line("s_waitcnt vmcnt(0)");
            }
            if at % 32 == 0 {
                code.line("s_waitcnt lgkmcnt(0)");
                code.line("s_barrier");
            }
            code.product(tile, k * 12 + tile / 4, k * 12 + 8 + tile % 4);
            if at % 32 % 2 == 0 && at % 32 < 24 {
                code.read((1 - k) * 12 + at % 32 / 2);
            }
            if at < 32 && at % 4 == 3 {
                code.copy();
            }
        }
    })
}
