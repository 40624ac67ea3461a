//! Every row of the table is run, or is known to be left out.

use super::{Arch, wave};
use tilewright_gfx9::asm;
use tilewright_gfx9::emu::Fault;
use tilewright_gfx9::isa::{Encoding, Format, Opcode, Ty};

/// What the emulator does not run, and what of the scalar unit its caller does.
const LEFT_OUT: &[&str] = &[
    "s_bitreplicate_b64_b32",
    "s_bitset0_b64",
    "s_bitset1_b64",
    "s_call_b64",
    "s_getpc_b64",
    "s_movreld_b32",
    "s_movreld_b64",
    "s_movrels_b32",
    "s_movrels_b64",
    "s_quadmask_b64",
    "s_rfe_b64",
    "s_set_gpr_idx_idx",
    "s_set_gpr_idx_on",
    "s_setpc_b64",
    "s_swappc_b64",
    "v_cubeid_f32",
    "v_cubema_f32",
    "v_cubesc_f32",
    "v_cubetc_f32",
    "v_cvt_pk_u8_f32",
    "v_cvt_pkaccum_u8_f32",
    "v_cvt_pknorm_i16_f16",
    "v_cvt_pknorm_u16_f16",
    "v_cvt_sr_bf16_f32",
    "v_cvt_sr_bf8_f32",
    "v_cvt_sr_f16_f32",
    "v_cvt_sr_fp8_f32",
    "v_div_fixup_legacy_f16",
    "v_fma_legacy_f16",
    "v_lerp_u8",
    "v_mac_f16",
    "v_mad_f16",
    "v_mad_legacy_f16",
    "v_madak_f16",
    "v_madmk_f16",
    "v_mfma_f64_4x4x4_4b_f64",
    "v_mfma_i32_16x16x4_4b_i8",
    "v_mfma_i32_32x32x4_2b_i8",
    "v_mqsad_pk_u16_u8",
    "v_mqsad_u32_u8",
    "v_qsad_pk_u16_u8",
    "v_sat_pk_u8_i16",
    "v_screen_partition_4se_b32",
    "v_trig_preop_f64",
];

/// Families that it does not run at all: conversions with random rounding, sparse products.
const LEFT_OUT_FAMILIES: &[&str] = &["v_cvt_scalef32_sr_", "v_smfmac_"];

/// An operand that a row could have at a place of its own.
fn operand(op: Opcode, ty: Ty, place: usize) -> String {
    let scalar = op.is_salu() || ty == Ty::mask;
    let (file, first) = match scalar {
        true => ('s', 8 * place),
        false => ('v', 32 * place),
    };
    // Of the instructions on hardware registers, the first constant names one.
    let names = match op {
        Opcode::s_getreg_b32 => Some(1),
        Opcode::s_setreg_b32 | Opcode::s_setreg_imm32_b32 => Some(0),
        _ => None,
    };
    match ty.registers() {
        0 if names == Some(place) => "hwreg(HW_REG_MODE, 4, 2)".to_owned(),
        0 => "3".to_owned(),
        1 => format!("{file}{first}"),
        count => format!("{file}[{first}:{}]", first + usize::from(count) - 1),
    }
}

#[test]
fn rows_are_run_or_named() {
    let mut left_out = Vec::new();
    for op in Opcode::ALL {
        if !(op.is_salu() || op.is_valu() || op.is_mfma()) {
            continue;
        }
        let types = op.results().iter().chain(op.sources());
        let operands: Vec<String> = types
            .enumerate()
            .map(|(at, ty)| operand(*op, *ty, at))
            .collect();
        let mut code = format!("{} {}", op.name(), operands.join(", "));
        // What reads a lane of the wave reads it from there.
        if matches!(op, Opcode::v_readfirstlane_b32 | Opcode::v_readlane_b32) {
            code = format!(
                "{} s0, v1{}",
                op.name(),
                if *op == Opcode::v_readlane_b32 {
                    ", s2"
                } else {
                    ""
                }
            );
        }
        if *op == Opcode::v_writelane_b32 {
            code = "v_writelane_b32 v0, s1, s2".to_owned();
        }
        let program =
            asm::parse(&format!("f:\n{code}\n")).unwrap_or_else(|error| panic!("{error}"));
        let mut wave = wave();
        match wave.compute(&program.functions[0].instructions[0], Arch::Gfx950) {
            Ok(()) => {}
            Err(Fault::Unsupported) => {
                let mut families = LEFT_OUT_FAMILIES.iter();
                if !families.any(|family| op.name().starts_with(family)) {
                    left_out.push(op.name());
                }
            }
            Err(fault) => panic!("{code}: {fault}"),
        }
    }
    left_out.sort_unstable();
    assert_eq!(left_out, LEFT_OUT);
}

#[test]
fn compiled_loops_are_run() {
    let mut count = 0;
    for text in [
        include_str!("../asm/gemm.s"),
        include_str!("../asm/gemm_builtin_no_aliasing.s"),
        include_str!("../asm/gemm_halves.s"),
        include_str!("../asm/spill.s"),
    ] {
        let program = asm::parse(text).unwrap();
        let arch = program.arch.as_deref().and_then(Arch::named).unwrap();
        let mut wave = wave();
        for instruction in program.functions.iter().flat_map(|f| &f.instructions) {
            let op = instruction.op;
            if op.is_salu() || op.is_valu() || op.is_mfma() {
                wave.exec = u64::MAX;
                let done = wave.compute(instruction, arch);
                assert_eq!(done, Ok(()), "{}", instruction.text);
                count += 1;
            }
        }
    }
    assert!(count > 1000, "{count} instructions");
}

#[test]
fn encodings_agree() {
    // The same operation in two encodings, with nothing said in the longer one.
    for op in Opcode::ALL {
        let words = |types: &[Ty]| types.iter().all(|ty| ty.registers() == 1);
        let both = matches!(op.format(), Format::Vop1 | Format::Vop2);
        if !both || op.sources().len() > 2 || !words(op.results()) || !words(op.sources()) {
            continue;
        }
        let types = op.results().iter().chain(op.sources());
        let operands: Vec<String> = types
            .enumerate()
            .map(|(at, ty)| operand(*op, *ty, at))
            .collect();
        let run = |encoding: Encoding, suffix: &str, behind: &str| {
            let text = format!(
                "f:\n{}{suffix} {} {behind}\n",
                op.name(),
                operands.join(", ")
            );
            let program = asm::parse(&text).unwrap_or_else(|error| panic!("{error}"));
            let instruction = &program.functions[0].instructions[0];
            assert_eq!(instruction.encoding, encoding);
            let mut wave = wave();
            let mut random = super::Random(*op as u64);
            for register in &mut wave.vgpr {
                *register = std::array::from_fn(|_| random.word() & 0xbfff_bfff);
            }
            wave.compute(instruction, Arch::Gfx950)
                .map(|()| (wave.vgpr, wave.sgpr))
        };
        if op.results().is_empty() || *op == Opcode::v_readfirstlane_b32 {
            continue;
        }
        let short = run(Encoding::E32, "_e32", "");
        assert_eq!(short, run(Encoding::E64, "_e64", ""), "{}", op.name());
        let quads = "quad_perm:[0,1,2,3] row_mask:0xf bank_mask:0xf";
        if !matches!(
            op,
            Opcode::v_swap_b32 | Opcode::v_permlane16_swap_b32 | Opcode::v_permlane32_swap_b32
        ) {
            assert_eq!(short, run(Encoding::Dpp, "_dpp", quads), "{}", op.name());
        }
    }
}
