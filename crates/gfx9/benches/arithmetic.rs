//! What an instruction costs in the emulator.

use tilewright_gfx9::asm::parse;
use tilewright_gfx9::emu::{Arch, LANES, Wave};
use tilewright_testkit::bench::time;

const CODE: [&str; 13] = [
    "v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], v[0:3]",
    "v_mfma_f32_16x16x32_f16 v[0:3], v[4:7], v[8:11], v[0:3]",
    "v_mfma_f32_32x32x16_bf16 v[0:15], v[16:19], v[20:23], v[0:15]",
    "v_mfma_f32_16x16x128_f8f6f4 v[0:3], v[4:11], v[12:19], v[0:3]",
    "v_add_f32_e32 v0, v1, v2",
    "v_fma_f32 v0, v1, v2, v3",
    "v_lshl_add_u32 v0, v1, 2, v3",
    "v_pk_fma_f32 v[0:1], v[2:3], v[4:5], v[6:7]",
    "v_cvt_f16_f32_e32 v0, v1",
    "v_cmp_gt_f32_e32 vcc, v0, v1",
    "v_exp_f32_e32 v0, v1",
    "v_cndmask_b32_e32 v0, v1, v2, vcc",
    "s_add_u32 s0, s1, s2",
];

fn main() {
    for code in CODE {
        let program = parse(&format!("f:\n{code}\n")).expect("an instruction");
        let instruction = &program.functions[0].instructions[0];
        let mut wave = Wave::new(0, 16, 32, 0);
        for register in &mut wave.vgpr {
            *register = [0x3f80_3f80; LANES];
        }
        let name = code.split(' ').next().unwrap_or(code);
        time(name, || wave.compute(instruction, Arch::Gfx950));
    }
}
