//! What instructions do to registers: texts of instructions, registers before, registers after.

mod compare;
mod convert;
mod coverage;
mod divide;
mod lanes;
mod mfma;
mod packed;
mod salu;
mod scaled;
mod valu;

use tilewright_gfx9::asm::{self, Instruction};
use tilewright_gfx9::emu::{Arch, Fault, LANES, Lanes, Wave};

/// The instructions of a text.
fn read(code: &str) -> Vec<Instruction> {
    let program = asm::parse(&format!("f:\n{code}\n")).unwrap();
    program.functions[0].instructions.clone()
}

fn wave() -> Wave {
    Wave::new(0, 104, 256, 256)
}

fn try_run(wave: &mut Wave, arch: Arch, code: &str) -> Result<(), Fault> {
    read(code)
        .iter()
        .try_for_each(|instruction| wave.compute(instruction, arch))
}

fn run(wave: &mut Wave, code: &str) {
    try_run(wave, Arch::Gfx950, code).unwrap_or_else(|fault| panic!("{code}: {fault}"));
}

/// Every lane the same.
fn all(value: u32) -> Lanes {
    [value; LANES]
}

/// Each lane its number.
fn numbers() -> Lanes {
    std::array::from_fn(|lane| lane as u32)
}

/// Runs an instruction on `v1`, `v2`, `v3` and gives `v0`, which held `old`.
fn vector(code: &str, old: u32, sources: &[u32]) -> u32 {
    let mut wave = wave();
    wave.vgpr[0] = all(old);
    for (register, value) in wave.vgpr[1..].iter_mut().zip(sources) {
        *register = all(*value);
    }
    run(&mut wave, code);
    assert_eq!(wave.vgpr[0], all(wave.vgpr[0][0]), "{code}: lanes agree");
    wave.vgpr[0][0]
}

/// Numbers without a pattern, the same in every run.
struct Random(u64);

impl Random {
    fn next(&mut self) -> u64 {
        self.0 = self.0.wrapping_add(0x9e37_79b9_7f4a_7c15);
        let mut z = self.0;
        z = (z ^ z >> 30).wrapping_mul(0xbf58_476d_1ce4_e5b9);
        z = (z ^ z >> 27).wrapping_mul(0x94d0_49bb_1331_11eb);
        z ^ z >> 31
    }

    fn word(&mut self) -> u32 {
        self.next() as u32
    }

    fn below(&mut self, bound: u64) -> u64 {
        self.next() % bound
    }
}
