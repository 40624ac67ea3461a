//! Every instruction that the compiler may use on gfx942 and gfx950, as rows.
//!
//! A row: names, format, what is written, what is read, in the order of the text, then what the
//! instruction touches or is besides ([`Flags`]). Memory instructions name their data by how it
//! lies in memory and in the register: `u8` is a byte with zeros above it, `lo16` and `hi16` are
//! halves of a register whose other half is kept.
//!
//! Sources: AMD's CDNA3 and CDNA4 instruction set manuals; that each row is assembled as it says,
//! on one of the targets, is a test (`crates/tilewright/tests/isa.rs`).

use super::{Flags, Format, Info, Row, Ty};

macro_rules! instructions {
    ($( $($name:ident)+ : $format:ident [$($result:ident)*] [$($source:ident)*] $($flag:ident)* ; )*) => {
        /// An instruction's operation: its mnemonic without the suffix of its encoding.
        #[expect(non_camel_case_types, reason = "operations are spelled as in assembly")]
        #[derive(Clone, Copy, Debug, PartialEq, Eq, PartialOrd, Ord, Hash)]
        #[repr(u16)]
        pub enum Opcode { $($($name,)+)* }

        impl Opcode {
            pub const ALL: &'static [Opcode] = &[$($(Opcode::$name,)+)*];
        }

        const fn table() -> [Info; Opcode::ALL.len()] {
            let empty = Row { format: Format::Sopp, results: &[], sources: &[], flags: Flags::NONE };
            let mut table = [Info { name: "", row: empty }; Opcode::ALL.len()];
            $({
                const ROW: Row = Row {
                    format: Format::$format,
                    results: &[$(Ty::$result),*],
                    sources: &[$(Ty::$source),*],
                    flags: Flags::NONE$(.with(Flags::$flag))*,
                };
                $(table[Opcode::$name as usize] = Info { name: stringify!($name), row: ROW };)+
            })*
            table
        }
    };
}

pub(super) static INFO: [Info; Opcode::ALL.len()] = table();

instructions! {
    // Scalar, two sources.
    s_add_u32 s_sub_u32 s_add_i32 s_sub_i32 s_min_i32 s_min_u32 s_max_i32 s_max_u32 s_and_b32
    s_or_b32 s_xor_b32 s_andn2_b32 s_orn2_b32 s_nand_b32 s_nor_b32 s_xnor_b32 s_lshl_b32
    s_lshr_b32 s_ashr_i32 s_bfe_u32 s_bfe_i32 s_absdiff_i32 s_lshl1_add_u32 s_lshl2_add_u32
    s_lshl3_add_u32 s_lshl4_add_u32: Sop2 [b32] [b32 b32] SCC_OUT;
    s_addc_u32 s_subb_u32: Sop2 [b32] [b32 b32] SCC_IN SCC_OUT;
    s_cselect_b32: Sop2 [b32] [b32 b32] SCC_IN;
    s_cselect_b64: Sop2 [b64] [b64 b64] SCC_IN;
    s_and_b64 s_or_b64 s_xor_b64 s_andn2_b64 s_orn2_b64 s_nand_b64 s_nor_b64 s_xnor_b64
       : Sop2 [b64] [b64 b64] SCC_OUT;
    s_lshl_b64 s_lshr_b64 s_ashr_i64 s_bfe_u64 s_bfe_i64: Sop2 [b64] [b64 b32] SCC_OUT;
    s_bfm_b32 s_mul_i32 s_mul_hi_u32 s_mul_hi_i32 s_pack_ll_b32_b16 s_pack_lh_b32_b16
    s_pack_hh_b32_b16: Sop2 [b32] [b32 b32];
    s_bfm_b64: Sop2 [b64] [b32 b32];

    // Scalar, one source.
    s_mov_b32 s_brev_b32 s_sext_i32_i8 s_sext_i32_i16 s_ff0_i32_b32 s_ff1_i32_b32
    s_flbit_i32_b32 s_flbit_i32: Sop1 [b32] [b32];
    s_bitset0_b32 s_bitset1_b32: Sop1 [b32] [b32] KEEPS;
    s_mov_b64 s_brev_b64 s_swappc_b64: Sop1 [b64] [b64];
    s_cmov_b32: Sop1 [b32] [b32] SCC_IN KEEPS;
    s_cmov_b64: Sop1 [b64] [b64] SCC_IN KEEPS;
    s_not_b32 s_wqm_b32 s_quadmask_b32 s_abs_i32 s_bcnt0_i32_b32 s_bcnt1_i32_b32
       : Sop1 [b32] [b32] SCC_OUT;
    s_not_b64 s_wqm_b64: Sop1 [b64] [b64] SCC_OUT;
    s_bcnt0_i32_b64 s_bcnt1_i32_b64: Sop1 [b32] [b64] SCC_OUT;
    s_ff0_i32_b64 s_ff1_i32_b64 s_flbit_i32_b64 s_flbit_i32_i64: Sop1 [b32] [b64];
    s_getpc_b64: Sop1 [b64] [];
    s_setpc_b64: Sop1 [] [b64];
    s_and_saveexec_b64 s_or_saveexec_b64 s_xor_saveexec_b64 s_andn2_saveexec_b64
    s_orn2_saveexec_b64 s_nand_saveexec_b64 s_nor_saveexec_b64 s_xnor_saveexec_b64
    s_andn1_saveexec_b64 s_orn1_saveexec_b64 s_andn1_wrexec_b64 s_andn2_wrexec_b64
       : Sop1 [b64] [b64] EXEC_IN EXEC_OUT SCC_OUT;
    s_bitset0_b64 s_bitset1_b64: Sop1 [b64] [b32] KEEPS;
    s_quadmask_b64: Sop1 [b64] [b64] SCC_OUT;
    s_bitreplicate_b64_b32: Sop1 [b64] [b32];
    s_movrels_b32 s_movreld_b32: Sop1 [b32] [b32];
    s_movrels_b64 s_movreld_b64: Sop1 [b64] [b64];
    s_set_gpr_idx_idx: Sop1 [] [b32];
    s_rfe_b64: Sop1 [] [b64];

    // Scalar with a constant of 16 bits.
    s_movk_i32 s_getreg_b32: Sopk [b32] [imm];
    s_cmovk_i32: Sopk [b32] [imm] SCC_IN KEEPS;
    s_cmpk_eq_i32 s_cmpk_lg_i32 s_cmpk_gt_i32 s_cmpk_ge_i32 s_cmpk_lt_i32 s_cmpk_le_i32
    s_cmpk_eq_u32 s_cmpk_lg_u32 s_cmpk_gt_u32 s_cmpk_ge_u32 s_cmpk_lt_u32 s_cmpk_le_u32
       : Sopk [] [b32 imm] SCC_OUT;
    s_addk_i32: Sopk [b32] [imm] SCC_OUT KEEPS;
    s_mulk_i32: Sopk [b32] [imm] KEEPS;
    s_setreg_b32: Sopk [] [imm b32];
    s_setreg_imm32_b32: Sopk [] [imm imm];
    s_call_b64: Sopk [b64] [label];

    // Scalar comparisons.
    s_cmp_eq_i32 s_cmp_lg_i32 s_cmp_gt_i32 s_cmp_ge_i32 s_cmp_lt_i32 s_cmp_le_i32 s_cmp_eq_u32
    s_cmp_lg_u32 s_cmp_gt_u32 s_cmp_ge_u32 s_cmp_lt_u32 s_cmp_le_u32 s_bitcmp0_b32 s_bitcmp1_b32
       : Sopc [] [b32 b32] SCC_OUT;
    s_cmp_eq_u64 s_cmp_lg_u64: Sopc [] [b64 b64] SCC_OUT;
    s_bitcmp0_b64 s_bitcmp1_b64: Sopc [] [b64 b32] SCC_OUT;
    s_set_gpr_idx_on: Sopc [] [b32 imm];

    // Control.
    s_nop s_endpgm s_sethalt s_sleep s_setprio s_sendmsg s_trap s_barrier s_wakeup s_icache_inv
    s_waitcnt s_endpgm_saved: Sopp [] [];
    s_branch: Sopp [] [label];
    s_cbranch_scc0 s_cbranch_scc1: Sopp [] [label] SCC_IN;
    s_cbranch_vccz s_cbranch_vccnz: Sopp [] [label] VCC_IN;
    s_cbranch_execz s_cbranch_execnz: Sopp [] [label] EXEC_IN;
    s_set_gpr_idx_off s_set_gpr_idx_mode s_sendmsghalt s_incperflevel s_decperflevel s_ttracedata
    s_setkill: Sopp [] [];

    // Scalar memory.
    s_load_dword: Smem [b32] [b64 imm];
    s_buffer_load_dword: Smem [b32] [b128 imm];
    s_load_dwordx2: Smem [b64] [b64 imm];
    s_buffer_load_dwordx2: Smem [b64] [b128 imm];
    s_load_dwordx4: Smem [b128] [b64 imm];
    s_buffer_load_dwordx4: Smem [b128] [b128 imm];
    s_load_dwordx8: Smem [b256] [b64 imm];
    s_buffer_load_dwordx8: Smem [b256] [b128 imm];
    s_load_dwordx16: Smem [b512] [b64 imm];
    s_buffer_load_dwordx16: Smem [b512] [b128 imm];
    s_memtime s_memrealtime: Smem [b64] [];
    s_dcache_inv s_dcache_wb: Smem [] [];
    s_store_dword: Smem [] [b32 b64 imm];
    s_store_dwordx2: Smem [] [b64 b64 imm];
    s_store_dwordx4: Smem [] [b128 b64 imm];
    s_dcache_inv_vol s_dcache_wb_vol: Smem [] [];

    // Vector, one source.
    v_nop: Vop1 [] [];
    v_mov_b32 v_not_b32 v_bfrev_b32 v_ffbh_u32 v_ffbl_b32 v_ffbh_i32 v_prng_b32
    v_accvgpr_mov_b32: Vop1 [b32] [b32];
    v_mov_b64: Vop1 [b64] [b64];
    v_swap_b32 v_permlane16_swap_b32 v_permlane32_swap_b32: Vop1 [b32 b32] [] KEEPS;
    v_readfirstlane_b32: Vop1 [b32] [b32] SCALAR_RESULT;
    v_cvt_f32_i32 v_cvt_f32_u32 v_cvt_f32_ubyte0 v_cvt_f32_ubyte1 v_cvt_f32_ubyte2
    v_cvt_f32_ubyte3 v_cvt_off_f32_i4 v_cvt_f32_fp8 v_cvt_f32_bf8: Vop1 [f32] [b32];
    v_cvt_i32_f32 v_cvt_u32_f32 v_cvt_rpi_i32_f32 v_cvt_flr_i32_f32 v_frexp_exp_i32_f32
       : Vop1 [b32] [f32];
    v_cvt_f16_f32: Vop1 [f16] [f32];
    v_cvt_f32_f16: Vop1 [f32] [f16];
    v_cvt_f32_bf16: Vop1 [f32] [b16];
    v_cvt_f64_i32 v_cvt_f64_u32: Vop1 [f64] [b32] DOUBLE;
    v_cvt_f64_f32: Vop1 [f64] [f32] DOUBLE;
    v_cvt_f32_f64: Vop1 [f32] [f64] DOUBLE;
    v_cvt_i32_f64 v_cvt_u32_f64 v_frexp_exp_i32_f64: Vop1 [b32] [f64] DOUBLE;
    v_cvt_f16_u16 v_cvt_f16_i16: Vop1 [f16] [b16];
    v_cvt_u16_f16 v_cvt_i16_f16 v_cvt_norm_i16_f16 v_cvt_norm_u16_f16 v_frexp_exp_i16_f16
       : Vop1 [b16] [f16];
    v_cvt_pk_f32_fp8 v_cvt_pk_f32_bf8: Vop1 [b64] [b32];
    v_fract_f32 v_trunc_f32 v_ceil_f32 v_rndne_f32 v_floor_f32 v_frexp_mant_f32: Vop1 [f32] [f32];
    v_rcp_f32 v_rsq_f32 v_sqrt_f32 v_exp_f32 v_log_f32 v_rcp_iflag_f32 v_sin_f32 v_cos_f32
    v_exp_legacy_f32 v_log_legacy_f32: Vop1 [f32] [f32] TRANS;
    v_fract_f64 v_trunc_f64 v_ceil_f64 v_rndne_f64 v_floor_f64 v_frexp_mant_f64
       : Vop1 [f64] [f64] DOUBLE;
    v_rcp_f64 v_rsq_f64 v_sqrt_f64: Vop1 [f64] [f64] TRANS DOUBLE;
    v_fract_f16 v_trunc_f16 v_ceil_f16 v_rndne_f16 v_floor_f16 v_frexp_mant_f16: Vop1 [f16] [f16];
    v_rcp_f16 v_rsq_f16 v_sqrt_f16 v_exp_f16 v_log_f16 v_sin_f16 v_cos_f16
       : Vop1 [f16] [f16] TRANS;
    v_sat_pk_u8_i16 v_screen_partition_4se_b32: Vop1 [b32] [b32];

    // Vector, two sources.
    v_cndmask_b32: Vop2 [b32] [b32 b32 mask];
    v_add_f32 v_sub_f32 v_subrev_f32 v_mul_f32 v_mul_legacy_f32 v_min_f32 v_max_f32
       : Vop2 [f32] [f32 f32];
    v_add_f16 v_sub_f16 v_subrev_f16 v_mul_f16 v_min_f16 v_max_f16: Vop2 [f16] [f16 f16];
    v_ldexp_f16: Vop2 [f16] [f16 b16];
    v_mul_i32_i24 v_mul_hi_i32_i24 v_mul_u32_u24 v_mul_hi_u32_u24 v_min_i32 v_max_i32 v_min_u32
    v_max_u32 v_lshrrev_b32 v_ashrrev_i32 v_lshlrev_b32 v_and_b32 v_or_b32 v_xor_b32 v_xnor_b32
    v_add_u32 v_sub_u32 v_subrev_u32: Vop2 [b32] [b32 b32];
    v_add_co_u32 v_sub_co_u32 v_subrev_co_u32: Vop2 [b32 mask] [b32 b32];
    v_addc_co_u32 v_subb_co_u32 v_subbrev_co_u32: Vop2 [b32 mask] [b32 b32 mask];
    v_add_u16 v_sub_u16 v_subrev_u16 v_mul_lo_u16 v_lshlrev_b16 v_lshrrev_b16 v_ashrrev_i16
    v_max_u16 v_max_i16 v_min_u16 v_min_i16: Vop2 [b16] [b16 b16];
    v_fmac_f32: Vop2 [f32] [f32 f32] KEEPS;
    v_fmac_f64: Vop2 [f64] [f64 f64] KEEPS DOUBLE;
    v_mac_f16: Vop2 [f16] [f16 f16] KEEPS;
    v_fmamk_f32 v_fmaak_f32: Vop2 [f32] [f32 f32 f32];
    v_madmk_f16 v_madak_f16: Vop2 [f16] [f16 f16 f16];
    v_dot2c_f32_f16: Vop2 [f32] [p16 p16] KEEPS DOT;
    v_dot2c_f32_bf16: Vop2 [f32] [b32 b32] KEEPS DOT;
    v_dot2c_i32_i16 v_dot4c_i32_i8 v_dot8c_i32_i4: Vop2 [b32] [b32 b32] KEEPS DOT;
    v_pk_fmac_f16: Vop2 [p16] [p16 p16] KEEPS;

    // Vector, three sources and forms of 8 bytes alone.
    v_fma_f32  v_min3_f32 v_max3_f32 v_med3_f32
    v_minimum3_f32 v_maximum3_f32 v_div_fixup_f32: Vop3 [f32] [f32 f32 f32];
    v_fma_f64 v_div_fixup_f64: Vop3 [f64] [f64 f64 f64] DOUBLE;
    v_fma_f16 v_mad_f16 v_min3_f16 v_max3_f16 v_med3_f16 v_div_fixup_f16
       : Vop3 [f16] [f16 f16 f16];
    v_add_f64 v_mul_f64 v_min_f64 v_max_f64: Vop3 [f64] [f64 f64] DOUBLE;
    v_ldexp_f64 v_trig_preop_f64: Vop3 [f64] [f64 b32] DOUBLE;
    v_ldexp_f32: Vop3 [f32] [f32 b32];
    v_mad_i32_i24 v_mad_u32_u24 v_bfe_u32 v_bfe_i32 v_bfi_b32 v_alignbit_b32 v_alignbyte_b32
    v_min3_i32 v_max3_i32 v_med3_i32 v_min3_u32 v_max3_u32 v_med3_u32 v_sad_u8 v_sad_hi_u8
    v_sad_u16 v_sad_u32 v_perm_b32 v_lshl_add_u32 v_add_lshl_u32 v_add3_u32 v_lshl_or_b32
    v_and_or_b32 v_or3_b32 v_xad_u32 v_msad_u8 v_bitop3_b32 v_ashr_pk_i8_i32 v_ashr_pk_u8_i32
       : Vop3 [b32] [b32 b32 b32];
    v_lshl_add_u64: Vop3 [b64] [b64 b32 b64];
    v_bitop3_b16 v_mad_u16 v_mad_i16 v_min3_i16 v_max3_i16 v_med3_i16 v_min3_u16 v_max3_u16
    v_med3_u16: Vop3 [b16] [b16 b16 b16];
    v_mad_u32_u16 v_mad_i32_i16: Vop3 [b32] [b16 b16 b32];
    v_add_i32 v_sub_i32 v_bfm_b32 v_bcnt_u32_b32 v_mbcnt_lo_u32_b32 v_mbcnt_hi_u32_b32
    v_cvt_pk_u16_u32 v_cvt_pk_i16_i32: Vop3 [b32] [b32 b32];
    v_add_i16 v_sub_i16: Vop3 [b16] [b16 b16];
    v_mul_lo_u32 v_mul_hi_u32 v_mul_hi_i32: Vop3 [b32] [b32 b32] QUARTER;
    v_mad_u64_u32 v_mad_i64_i32: Vop3 [b64 mask] [b32 b32 b64] QUARTER;
    v_lshlrev_b64 v_lshrrev_b64 v_ashrrev_i64: Vop3 [b64] [b32 b64] QUARTER;
    v_cvt_pknorm_i16_f32 v_cvt_pknorm_u16_f32 v_cvt_pkrtz_f16_f32 v_cvt_pk_bf16_f32
    v_cvt_pk_f16_f32: Vop3 [b32] [f32 f32];
    v_cvt_pk_u8_f32: Vop3 [b32] [f32 b32 b32];
    v_cvt_pk_fp8_f32 v_cvt_pk_bf8_f32: Vop3 [b32] [f32 f32] KEEPS;
    v_cvt_sr_fp8_f32 v_cvt_sr_bf8_f32 v_cvt_sr_bf16_f32 v_cvt_sr_f16_f32
       : Vop3 [b32] [f32 b32] KEEPS;
    v_cvt_scalef32_pk_fp8_f32 v_cvt_scalef32_pk_bf8_f32 v_cvt_scalef32_pk_fp4_f32
       : Vop3 [b32] [f32 f32 f32] KEEPS;
    v_cvt_scalef32_pk_fp8_f16 v_cvt_scalef32_pk_fp8_bf16 v_cvt_scalef32_f16_fp8
    v_cvt_scalef32_pk_bf8_f16 v_cvt_scalef32_pk_bf8_bf16 v_cvt_scalef32_f16_bf8
    v_cvt_scalef32_pk_fp4_f16 v_cvt_scalef32_pk_fp4_bf16: Vop3 [b32] [b32 f32] KEEPS;
    v_cvt_scalef32_pk_f32_fp8 v_cvt_scalef32_pk_f32_bf8 v_cvt_scalef32_pk_f32_fp4
       : Vop3 [b64] [b32 f32];
    v_cvt_scalef32_pk_f16_fp8 v_cvt_scalef32_pk_bf16_fp8 v_cvt_scalef32_pk_f16_bf8
    v_cvt_scalef32_pk_bf16_bf8 v_cvt_scalef32_pk_f16_fp4 v_cvt_scalef32_pk_bf16_fp4
       : Vop3 [b32] [b32 f32];
    v_cvt_scalef32_f32_fp8 v_cvt_scalef32_f32_bf8: Vop3 [f32] [b32 f32];
    v_cvt_scalef32_pk32_f32_fp6 v_cvt_scalef32_pk32_f32_bf6: Vop3 [b1024] [b192 f32];
    v_cvt_scalef32_pk32_f16_fp6 v_cvt_scalef32_pk32_bf16_fp6 v_cvt_scalef32_pk32_f16_bf6
    v_cvt_scalef32_pk32_bf16_bf6: Vop3 [b512] [b192 f32];
    v_cvt_scalef32_pk32_fp6_f16 v_cvt_scalef32_pk32_fp6_bf16 v_cvt_scalef32_pk32_bf6_f16
    v_cvt_scalef32_pk32_bf6_bf16: Vop3 [b192] [b512 f32];
    v_cvt_scalef32_2xpk16_fp6_f32 v_cvt_scalef32_2xpk16_bf6_f32: Vop3 [b192] [b512 b512 f32];
    v_pack_b32_f16: Vop3 [b32] [f16 f16];
    v_div_scale_f32: Vop3 [f32 mask] [f32 f32 f32];
    v_div_scale_f64: Vop3 [f64 mask] [f64 f64 f64] DOUBLE;
    v_div_fmas_f32: Vop3 [f32] [f32 f32 f32] VCC_IN;
    v_div_fmas_f64: Vop3 [f64] [f64 f64 f64] VCC_IN DOUBLE;
    v_readlane_b32: Vop3 [b32] [b32 b32] SCALAR_RESULT;
    v_writelane_b32: Vop3 [b32] [b32 b32] KEEPS;
    v_mad_legacy_u16 v_mad_legacy_i16: Vop3 [b16] [b16 b16 b16];
    v_mad_legacy_f16 v_fma_legacy_f16 v_div_fixup_legacy_f16: Vop3 [f16] [f16 f16 f16];
    v_lerp_u8: Vop3 [b32] [b32 b32 b32];
    v_cubeid_f32 v_cubesc_f32 v_cubetc_f32 v_cubema_f32: Vop3 [f32] [f32 f32 f32];
    v_cvt_pknorm_i16_f16 v_cvt_pknorm_u16_f16: Vop3 [b32] [f16 f16];
    v_cvt_pkaccum_u8_f32: Vop3 [b32] [f32 b32] KEEPS;
    v_qsad_pk_u16_u8 v_mqsad_pk_u16_u8: Vop3 [b64] [b64 b32 b64];
    v_mqsad_u32_u8: Vop3 [b128] [b64 b32 b128];
    v_cvt_scalef32_sr_fp8_f32 v_cvt_scalef32_sr_bf8_f32: Vop3 [b32] [f32 b32 f32] KEEPS;
    v_cvt_scalef32_sr_fp8_f16 v_cvt_scalef32_sr_fp8_bf16 v_cvt_scalef32_sr_bf8_f16
    v_cvt_scalef32_sr_bf8_bf16: Vop3 [b32] [b32 b32 f32] KEEPS;
    v_cvt_scalef32_sr_pk_fp4_f32: Vop3 [b32] [b64 b32 f32] KEEPS;
    v_cvt_scalef32_sr_pk_fp4_f16 v_cvt_scalef32_sr_pk_fp4_bf16: Vop3 [b32] [b32 b32 f32] KEEPS;
    v_cvt_scalef32_sr_pk32_fp6_f32 v_cvt_scalef32_sr_pk32_bf6_f32: Vop3 [b192] [b1024 b32 f32];
    v_cvt_scalef32_sr_pk32_fp6_f16 v_cvt_scalef32_sr_pk32_fp6_bf16 v_cvt_scalef32_sr_pk32_bf6_f16
    v_cvt_scalef32_sr_pk32_bf6_bf16: Vop3 [b192] [b512 b32 f32];

    // Packed.
    v_pk_add_f16 v_pk_mul_f16 v_pk_min_f16 v_pk_max_f16: Vop3p [p16] [p16 p16];
    v_pk_fma_f16 v_pk_minimum3_f16 v_pk_maximum3_f16: Vop3p [p16] [p16 p16 p16];
    v_pk_add_i16 v_pk_sub_i16 v_pk_add_u16 v_pk_sub_u16 v_pk_mul_lo_u16 v_pk_lshlrev_b16
    v_pk_lshrrev_b16 v_pk_ashrrev_i16 v_pk_max_i16 v_pk_min_i16 v_pk_max_u16 v_pk_min_u16
       : Vop3p [i16x2] [i16x2 i16x2];
    v_pk_mad_i16 v_pk_mad_u16: Vop3p [i16x2] [i16x2 i16x2 i16x2];
    v_pk_add_f32 v_pk_mul_f32 v_pk_mov_b32: Vop3p [f32x2] [f32x2 f32x2];
    v_pk_fma_f32: Vop3p [f32x2] [f32x2 f32x2 f32x2];
    v_fma_mix_f32: Vop3p [f32] [mix mix mix];
    v_fma_mixlo_f16 v_fma_mixhi_f16: Vop3p [b16] [mix mix mix] KEEPS;
    v_dot2_f32_f16 v_dot2_f32_bf16: Vop3p [f32] [b32 b32 f32] DOT;
    v_dot2_i32_i16 v_dot2_u32_u16 v_dot4_i32_i8 v_dot4_u32_u8 v_dot8_i32_i4 v_dot8_u32_u4
       : Vop3p [b32] [b32 b32 b32] DOT;
    v_accvgpr_read_b32 v_accvgpr_write_b32: Vop3p [b32] [b32];

    // Vector comparisons: the f, o, u, … conditions of floats, then of integers.
    v_cmp_f_f16 v_cmp_lt_f16 v_cmp_eq_f16 v_cmp_le_f16 v_cmp_gt_f16 v_cmp_lg_f16 v_cmp_ge_f16
    v_cmp_o_f16 v_cmp_u_f16 v_cmp_nge_f16 v_cmp_nlg_f16 v_cmp_ngt_f16 v_cmp_nle_f16
    v_cmp_neq_f16 v_cmp_nlt_f16 v_cmp_tru_f16: Vopc [mask] [f16 f16];
    v_cmp_class_f16: Vopc [mask] [f16 b32];
    v_cmp_f_f32 v_cmp_lt_f32 v_cmp_eq_f32 v_cmp_le_f32 v_cmp_gt_f32 v_cmp_lg_f32 v_cmp_ge_f32
    v_cmp_o_f32 v_cmp_u_f32 v_cmp_nge_f32 v_cmp_nlg_f32 v_cmp_ngt_f32 v_cmp_nle_f32
    v_cmp_neq_f32 v_cmp_nlt_f32 v_cmp_tru_f32: Vopc [mask] [f32 f32];
    v_cmp_class_f32: Vopc [mask] [f32 b32];
    v_cmp_f_f64 v_cmp_lt_f64 v_cmp_eq_f64 v_cmp_le_f64 v_cmp_gt_f64 v_cmp_lg_f64 v_cmp_ge_f64
    v_cmp_o_f64 v_cmp_u_f64 v_cmp_nge_f64 v_cmp_nlg_f64 v_cmp_ngt_f64 v_cmp_nle_f64
    v_cmp_neq_f64 v_cmp_nlt_f64 v_cmp_tru_f64: Vopc [mask] [f64 f64] DOUBLE;
    v_cmp_class_f64: Vopc [mask] [f64 b32] DOUBLE;
    v_cmp_f_i16 v_cmp_lt_i16 v_cmp_eq_i16 v_cmp_le_i16 v_cmp_gt_i16 v_cmp_ne_i16 v_cmp_ge_i16
    v_cmp_t_i16 v_cmp_f_u16 v_cmp_lt_u16 v_cmp_eq_u16 v_cmp_le_u16 v_cmp_gt_u16 v_cmp_ne_u16
    v_cmp_ge_u16 v_cmp_t_u16: Vopc [mask] [b16 b16];
    v_cmp_f_i32 v_cmp_lt_i32 v_cmp_eq_i32 v_cmp_le_i32 v_cmp_gt_i32 v_cmp_ne_i32 v_cmp_ge_i32
    v_cmp_t_i32 v_cmp_f_u32 v_cmp_lt_u32 v_cmp_eq_u32 v_cmp_le_u32 v_cmp_gt_u32 v_cmp_ne_u32
    v_cmp_ge_u32 v_cmp_t_u32: Vopc [mask] [b32 b32];
    v_cmp_f_i64 v_cmp_lt_i64 v_cmp_eq_i64 v_cmp_le_i64 v_cmp_gt_i64 v_cmp_ne_i64 v_cmp_ge_i64
    v_cmp_t_i64 v_cmp_f_u64 v_cmp_lt_u64 v_cmp_eq_u64 v_cmp_le_u64 v_cmp_gt_u64 v_cmp_ne_u64
    v_cmp_ge_u64 v_cmp_t_u64: Vopc [mask] [b64 b64];
    v_cmpx_f_f16 v_cmpx_lt_f16 v_cmpx_eq_f16 v_cmpx_le_f16 v_cmpx_gt_f16 v_cmpx_lg_f16
    v_cmpx_ge_f16 v_cmpx_o_f16 v_cmpx_u_f16 v_cmpx_nge_f16 v_cmpx_nlg_f16 v_cmpx_ngt_f16
    v_cmpx_nle_f16 v_cmpx_neq_f16 v_cmpx_nlt_f16 v_cmpx_tru_f16: Vopc [mask] [f16 f16] EXEC_OUT;
    v_cmpx_class_f16: Vopc [mask] [f16 b32] EXEC_OUT;
    v_cmpx_f_f32 v_cmpx_lt_f32 v_cmpx_eq_f32 v_cmpx_le_f32 v_cmpx_gt_f32 v_cmpx_lg_f32
    v_cmpx_ge_f32 v_cmpx_o_f32 v_cmpx_u_f32 v_cmpx_nge_f32 v_cmpx_nlg_f32 v_cmpx_ngt_f32
    v_cmpx_nle_f32 v_cmpx_neq_f32 v_cmpx_nlt_f32 v_cmpx_tru_f32: Vopc [mask] [f32 f32] EXEC_OUT;
    v_cmpx_class_f32: Vopc [mask] [f32 b32] EXEC_OUT;
    v_cmpx_f_f64 v_cmpx_lt_f64 v_cmpx_eq_f64 v_cmpx_le_f64 v_cmpx_gt_f64 v_cmpx_lg_f64
    v_cmpx_ge_f64 v_cmpx_o_f64 v_cmpx_u_f64 v_cmpx_nge_f64 v_cmpx_nlg_f64 v_cmpx_ngt_f64
    v_cmpx_nle_f64 v_cmpx_neq_f64 v_cmpx_nlt_f64 v_cmpx_tru_f64
       : Vopc [mask] [f64 f64] EXEC_OUT DOUBLE;
    v_cmpx_class_f64: Vopc [mask] [f64 b32] EXEC_OUT DOUBLE;
    v_cmpx_f_i16 v_cmpx_lt_i16 v_cmpx_eq_i16 v_cmpx_le_i16 v_cmpx_gt_i16 v_cmpx_ne_i16
    v_cmpx_ge_i16 v_cmpx_t_i16 v_cmpx_f_u16 v_cmpx_lt_u16 v_cmpx_eq_u16 v_cmpx_le_u16
    v_cmpx_gt_u16 v_cmpx_ne_u16 v_cmpx_ge_u16 v_cmpx_t_u16: Vopc [mask] [b16 b16] EXEC_OUT;
    v_cmpx_f_i32 v_cmpx_lt_i32 v_cmpx_eq_i32 v_cmpx_le_i32 v_cmpx_gt_i32 v_cmpx_ne_i32
    v_cmpx_ge_i32 v_cmpx_t_i32 v_cmpx_f_u32 v_cmpx_lt_u32 v_cmpx_eq_u32 v_cmpx_le_u32
    v_cmpx_gt_u32 v_cmpx_ne_u32 v_cmpx_ge_u32 v_cmpx_t_u32: Vopc [mask] [b32 b32] EXEC_OUT;
    v_cmpx_f_i64 v_cmpx_lt_i64 v_cmpx_eq_i64 v_cmpx_le_i64 v_cmpx_gt_i64 v_cmpx_ne_i64
    v_cmpx_ge_i64 v_cmpx_t_i64 v_cmpx_f_u64 v_cmpx_lt_u64 v_cmpx_eq_u64 v_cmpx_le_u64
    v_cmpx_gt_u64 v_cmpx_ne_u64 v_cmpx_ge_u64 v_cmpx_t_u64: Vopc [mask] [b64 b64] EXEC_OUT;

    // Matrix.
    v_mfma_f32_32x32x1_2b_f32: Mfma [b1024] [f32 f32 b1024];
    v_mfma_f32_16x16x1_4b_f32 v_mfma_f32_32x32x2_f32: Mfma [b512] [f32 f32 b512];
    v_mfma_f32_4x4x1_16b_f32 v_mfma_f32_16x16x4_f32: Mfma [b128] [f32 f32 b128];
    v_mfma_f32_32x32x4_2b_f16 v_mfma_f32_32x32x4_2b_bf16: Mfma [b1024] [b64 b64 b1024];
    v_mfma_f32_16x16x4_4b_f16 v_mfma_f32_32x32x8_f16 v_mfma_f32_16x16x4_4b_bf16
    v_mfma_f32_32x32x8_bf16 v_mfma_i32_32x32x16_i8 v_mfma_f32_32x32x4_xf32
    v_mfma_f32_32x32x16_fp8_fp8 v_mfma_f32_32x32x16_fp8_bf8 v_mfma_f32_32x32x16_bf8_fp8
    v_mfma_f32_32x32x16_bf8_bf8: Mfma [b512] [b64 b64 b512];
    v_mfma_f32_4x4x4_16b_f16 v_mfma_f32_16x16x16_f16 v_mfma_f32_4x4x4_16b_bf16
    v_mfma_f32_16x16x16_bf16 v_mfma_i32_16x16x32_i8 v_mfma_f32_16x16x8_xf32
    v_mfma_f32_16x16x32_fp8_fp8 v_mfma_f32_16x16x32_fp8_bf8 v_mfma_f32_16x16x32_bf8_fp8
    v_mfma_f32_16x16x32_bf8_bf8: Mfma [b128] [b64 b64 b128];
    v_mfma_f32_16x16x32_f16 v_mfma_f32_16x16x32_bf16 v_mfma_i32_16x16x64_i8
       : Mfma [b128] [b128 b128 b128];
    v_mfma_f32_32x32x16_f16 v_mfma_f32_32x32x16_bf16 v_mfma_i32_32x32x32_i8
       : Mfma [b512] [b128 b128 b512];
    v_mfma_i32_4x4x4_16b_i8: Mfma [b128] [b32 b32 b128];
    v_mfma_f64_16x16x4_f64: Mfma [b256] [f64 f64 b256];
    v_mfma_f64_4x4x4_4b_f64: Mfma [b64] [f64 f64 b64];
    v_mfma_f32_16x16x128_f8f6f4: Mfma [b128] [mx mx b128];
    v_mfma_f32_32x32x64_f8f6f4: Mfma [b512] [mx mx b512];
    v_mfma_scale_f32_16x16x128_f8f6f4: Mfma [b128] [mx mx b128 b32 b32];
    v_mfma_scale_f32_32x32x64_f8f6f4: Mfma [b512] [mx mx b512 b32 b32];
    v_mfma_i32_32x32x4_2b_i8: Mfma [b1024] [b32 b32 b1024];
    v_mfma_i32_16x16x4_4b_i8: Mfma [b512] [b32 b32 b512];

    // Matrix with half of the first operand left out, as a fourth says.
    v_smfmac_f32_16x16x32_f16 v_smfmac_f32_16x16x32_bf16 v_smfmac_f32_16x16x64_fp8_fp8
    v_smfmac_f32_16x16x64_fp8_bf8 v_smfmac_f32_16x16x64_bf8_fp8 v_smfmac_f32_16x16x64_bf8_bf8
    v_smfmac_i32_16x16x64_i8
       : Mfma [b128] [b64 b128 b32] KEEPS;
    v_smfmac_f32_16x16x64_f16 v_smfmac_f32_16x16x64_bf16 v_smfmac_f32_16x16x128_fp8_fp8
    v_smfmac_f32_16x16x128_fp8_bf8 v_smfmac_f32_16x16x128_bf8_fp8 v_smfmac_f32_16x16x128_bf8_bf8
    v_smfmac_i32_16x16x128_i8
       : Mfma [b128] [b128 b256 b32] KEEPS;
    v_smfmac_f32_32x32x16_f16 v_smfmac_f32_32x32x16_bf16 v_smfmac_f32_32x32x32_fp8_fp8
    v_smfmac_f32_32x32x32_fp8_bf8 v_smfmac_f32_32x32x32_bf8_fp8 v_smfmac_f32_32x32x32_bf8_bf8
    v_smfmac_i32_32x32x32_i8
       : Mfma [b512] [b64 b128 b32] KEEPS;
    v_smfmac_f32_32x32x32_f16 v_smfmac_f32_32x32x32_bf16 v_smfmac_f32_32x32x64_fp8_fp8
    v_smfmac_f32_32x32x64_fp8_bf8 v_smfmac_f32_32x32x64_bf8_fp8 v_smfmac_f32_32x32x64_bf8_bf8
    v_smfmac_i32_32x32x64_i8
       : Mfma [b512] [b128 b256 b32] KEEPS;

    // LDS.
    ds_read_b32: Ds [b32] [addr];
    ds_read_b64 ds_read2_b32 ds_read2st64_b32 ds_read_b64_tr_b16 ds_read_b64_tr_b8
    ds_read_b64_tr_b4: Ds [b64] [addr];
    ds_read_b96 ds_read_b96_tr_b6: Ds [b96] [addr];
    ds_read_b128 ds_read2_b64 ds_read2st64_b64: Ds [b128] [addr];
    ds_read_u8: Ds [u8] [addr];
    ds_read_i8: Ds [i8] [addr];
    ds_read_u16: Ds [u16] [addr];
    ds_read_i16: Ds [i16] [addr];
    ds_read_u8_d16: Ds [u8lo] [addr] KEEPS;
    ds_read_u8_d16_hi: Ds [u8hi] [addr] KEEPS;
    ds_read_i8_d16: Ds [i8lo] [addr] KEEPS;
    ds_read_i8_d16_hi: Ds [i8hi] [addr] KEEPS;
    ds_read_u16_d16: Ds [lo16] [addr] KEEPS;
    ds_read_u16_d16_hi: Ds [hi16] [addr] KEEPS;
    ds_read_addtid_b32: Ds [b32] [];
    ds_write_b8: Ds [] [addr u8];
    ds_write_b16: Ds [] [addr u16];
    ds_write_b32 ds_add_u32 ds_sub_u32 ds_rsub_u32 ds_inc_u32 ds_dec_u32 ds_min_i32 ds_max_i32
    ds_min_u32 ds_max_u32 ds_and_b32 ds_or_b32 ds_xor_b32 ds_min_f32 ds_max_f32 ds_add_f32
    ds_pk_add_f16 ds_pk_add_bf16: Ds [] [addr b32];
    ds_write_b64 ds_add_u64 ds_sub_u64 ds_rsub_u64 ds_inc_u64 ds_dec_u64 ds_min_i64 ds_max_i64
    ds_min_u64 ds_max_u64 ds_and_b64 ds_or_b64 ds_xor_b64 ds_min_f64 ds_max_f64 ds_add_f64
       : Ds [] [addr b64];
    ds_write_b96: Ds [] [addr b96];
    ds_write_b128: Ds [] [addr b128];
    ds_write_b8_d16_hi: Ds [] [addr u8hi];
    ds_write_b16_d16_hi: Ds [] [addr hi16];
    ds_write2_b32 ds_write2st64_b32 ds_cmpst_b32 ds_cmpst_f32: Ds [] [addr b32 b32];
    ds_write2_b64 ds_write2st64_b64 ds_cmpst_b64 ds_cmpst_f64: Ds [] [addr b64 b64];
    ds_add_rtn_u32 ds_sub_rtn_u32 ds_rsub_rtn_u32 ds_inc_rtn_u32 ds_dec_rtn_u32 ds_min_rtn_i32
    ds_max_rtn_i32 ds_min_rtn_u32 ds_max_rtn_u32 ds_and_rtn_b32 ds_or_rtn_b32 ds_xor_rtn_b32
    ds_wrxchg_rtn_b32 ds_min_rtn_f32 ds_max_rtn_f32 ds_add_rtn_f32 ds_pk_add_rtn_f16
    ds_pk_add_rtn_bf16: Ds [b32] [addr b32];
    ds_cmpst_rtn_b32 ds_cmpst_rtn_f32: Ds [b32] [addr b32 b32];
    ds_add_rtn_u64 ds_sub_rtn_u64 ds_rsub_rtn_u64 ds_inc_rtn_u64 ds_dec_rtn_u64 ds_min_rtn_i64
    ds_max_rtn_i64 ds_min_rtn_u64 ds_max_rtn_u64 ds_and_rtn_b64 ds_or_rtn_b64 ds_xor_rtn_b64
    ds_wrxchg_rtn_b64 ds_min_rtn_f64 ds_max_rtn_f64 ds_add_rtn_f64: Ds [b64] [addr b64];
    ds_cmpst_rtn_b64 ds_cmpst_rtn_f64: Ds [b64] [addr b64 b64];
    ds_swizzle_b32: Ds [b32] [b32];
    ds_permute_b32 ds_bpermute_b32: Ds [b32] [b32 b32];
    ds_nop: Ds [] [];
    ds_write_addtid_b32: Ds [] [b32];
    ds_mskor_b32: Ds [] [addr b32 b32];
    ds_mskor_b64: Ds [] [addr b64 b64];
    ds_mskor_rtn_b32 ds_wrap_rtn_b32: Ds [b32] [addr b32 b32];
    ds_mskor_rtn_b64: Ds [b64] [addr b64 b64];
    ds_wrxchg2_rtn_b32 ds_wrxchg2st64_rtn_b32: Ds [b64] [addr b32 b32];
    ds_wrxchg2_rtn_b64 ds_wrxchg2st64_rtn_b64: Ds [b128] [addr b64 b64];
    ds_condxchg32_rtn_b64: Ds [b64] [addr b64];
    ds_append ds_consume: Ds [b32] [];

    // Global memory: by a buffer resource, by an address, private.
    buffer_load_ubyte: Mubuf [u8] [vaddr b128 b32];
    buffer_load_sbyte: Mubuf [i8] [vaddr b128 b32];
    buffer_load_ushort: Mubuf [u16] [vaddr b128 b32];
    buffer_load_sshort: Mubuf [i16] [vaddr b128 b32];
    buffer_load_dword: Mubuf [b32] [vaddr b128 b32];
    buffer_load_dwordx2: Mubuf [b64] [vaddr b128 b32];
    buffer_load_dwordx3: Mubuf [b96] [vaddr b128 b32];
    buffer_load_dwordx4: Mubuf [b128] [vaddr b128 b32];
    buffer_load_ubyte_d16: Mubuf [u8lo] [vaddr b128 b32] KEEPS;
    buffer_load_ubyte_d16_hi: Mubuf [u8hi] [vaddr b128 b32] KEEPS;
    buffer_load_sbyte_d16: Mubuf [i8lo] [vaddr b128 b32] KEEPS;
    buffer_load_sbyte_d16_hi: Mubuf [i8hi] [vaddr b128 b32] KEEPS;
    buffer_load_short_d16: Mubuf [lo16] [vaddr b128 b32] KEEPS;
    buffer_load_short_d16_hi: Mubuf [hi16] [vaddr b128 b32] KEEPS;
    buffer_store_byte: Mubuf [] [u8 vaddr b128 b32];
    buffer_store_short: Mubuf [] [u16 vaddr b128 b32];
    buffer_store_dword: Mubuf [] [b32 vaddr b128 b32];
    buffer_store_dwordx2: Mubuf [] [b64 vaddr b128 b32];
    buffer_store_dwordx3: Mubuf [] [b96 vaddr b128 b32];
    buffer_store_dwordx4: Mubuf [] [b128 vaddr b128 b32];
    buffer_store_byte_d16_hi: Mubuf [] [u8hi vaddr b128 b32];
    buffer_store_short_d16_hi: Mubuf [] [hi16 vaddr b128 b32];
    global_load_ubyte: Global [u8] [vaddr saddr];
    global_load_sbyte: Global [i8] [vaddr saddr];
    global_load_ushort: Global [u16] [vaddr saddr];
    global_load_sshort: Global [i16] [vaddr saddr];
    global_load_dword: Global [b32] [vaddr saddr];
    global_load_dwordx2: Global [b64] [vaddr saddr];
    global_load_dwordx3: Global [b96] [vaddr saddr];
    global_load_dwordx4: Global [b128] [vaddr saddr];
    global_load_ubyte_d16: Global [u8lo] [vaddr saddr] KEEPS;
    global_load_ubyte_d16_hi: Global [u8hi] [vaddr saddr] KEEPS;
    global_load_sbyte_d16: Global [i8lo] [vaddr saddr] KEEPS;
    global_load_sbyte_d16_hi: Global [i8hi] [vaddr saddr] KEEPS;
    global_load_short_d16: Global [lo16] [vaddr saddr] KEEPS;
    global_load_short_d16_hi: Global [hi16] [vaddr saddr] KEEPS;
    global_store_byte: Global [] [vaddr u8 saddr];
    global_store_short: Global [] [vaddr u16 saddr];
    global_store_dword: Global [] [vaddr b32 saddr];
    global_store_dwordx2: Global [] [vaddr b64 saddr];
    global_store_dwordx3: Global [] [vaddr b96 saddr];
    global_store_dwordx4: Global [] [vaddr b128 saddr];
    global_store_byte_d16_hi: Global [] [vaddr u8hi saddr];
    global_store_short_d16_hi: Global [] [vaddr hi16 saddr];
    flat_load_ubyte: Flat [u8] [b64];
    flat_load_sbyte: Flat [i8] [b64];
    flat_load_ushort: Flat [u16] [b64];
    flat_load_sshort: Flat [i16] [b64];
    flat_load_dword: Flat [b32] [b64];
    flat_load_dwordx2: Flat [b64] [b64];
    flat_load_dwordx3: Flat [b96] [b64];
    flat_load_dwordx4: Flat [b128] [b64];
    flat_load_ubyte_d16: Flat [u8lo] [b64] KEEPS;
    flat_load_ubyte_d16_hi: Flat [u8hi] [b64] KEEPS;
    flat_load_sbyte_d16: Flat [i8lo] [b64] KEEPS;
    flat_load_sbyte_d16_hi: Flat [i8hi] [b64] KEEPS;
    flat_load_short_d16: Flat [lo16] [b64] KEEPS;
    flat_load_short_d16_hi: Flat [hi16] [b64] KEEPS;
    flat_store_byte: Flat [] [b64 u8];
    flat_store_short: Flat [] [b64 u16];
    flat_store_dword: Flat [] [b64 b32];
    flat_store_dwordx2: Flat [] [b64 b64];
    flat_store_dwordx3: Flat [] [b64 b96];
    flat_store_dwordx4: Flat [] [b64 b128];
    flat_store_byte_d16_hi: Flat [] [b64 u8hi];
    flat_store_short_d16_hi: Flat [] [b64 hi16];
    scratch_load_ubyte: Scratch [u8] [vaddr saddr];
    scratch_load_sbyte: Scratch [i8] [vaddr saddr];
    scratch_load_ushort: Scratch [u16] [vaddr saddr];
    scratch_load_sshort: Scratch [i16] [vaddr saddr];
    scratch_load_dword: Scratch [b32] [vaddr saddr];
    scratch_load_dwordx2: Scratch [b64] [vaddr saddr];
    scratch_load_dwordx3: Scratch [b96] [vaddr saddr];
    scratch_load_dwordx4: Scratch [b128] [vaddr saddr];
    scratch_load_ubyte_d16: Scratch [u8lo] [vaddr saddr] KEEPS;
    scratch_load_ubyte_d16_hi: Scratch [u8hi] [vaddr saddr] KEEPS;
    scratch_load_sbyte_d16: Scratch [i8lo] [vaddr saddr] KEEPS;
    scratch_load_sbyte_d16_hi: Scratch [i8hi] [vaddr saddr] KEEPS;
    scratch_load_short_d16: Scratch [lo16] [vaddr saddr] KEEPS;
    scratch_load_short_d16_hi: Scratch [hi16] [vaddr saddr] KEEPS;
    scratch_store_byte: Scratch [] [vaddr u8 saddr];
    scratch_store_short: Scratch [] [vaddr u16 saddr];
    scratch_store_dword: Scratch [] [vaddr b32 saddr];
    scratch_store_dwordx2: Scratch [] [vaddr b64 saddr];
    scratch_store_dwordx3: Scratch [] [vaddr b96 saddr];
    scratch_store_dwordx4: Scratch [] [vaddr b128 saddr];
    scratch_store_byte_d16_hi: Scratch [] [vaddr u8hi saddr];
    scratch_store_short_d16_hi: Scratch [] [vaddr hi16 saddr];
    global_load_lds_ubyte global_load_lds_sbyte global_load_lds_ushort global_load_lds_sshort
    global_load_lds_dword global_load_lds_dwordx3 global_load_lds_dwordx4
       : Global [] [vaddr saddr] LDS_COPY;
    buffer_atomic_swap buffer_atomic_add buffer_atomic_sub buffer_atomic_smin buffer_atomic_umin
    buffer_atomic_smax buffer_atomic_umax buffer_atomic_and buffer_atomic_or buffer_atomic_xor
    buffer_atomic_inc buffer_atomic_dec buffer_atomic_add_f32 buffer_atomic_pk_add_f16
    buffer_atomic_pk_add_bf16: Mubuf [] [b32 vaddr b128 b32] ATOMIC;
    buffer_atomic_swap_x2 buffer_atomic_add_x2 buffer_atomic_sub_x2 buffer_atomic_smin_x2
    buffer_atomic_umin_x2 buffer_atomic_smax_x2 buffer_atomic_umax_x2 buffer_atomic_and_x2
    buffer_atomic_or_x2 buffer_atomic_xor_x2 buffer_atomic_inc_x2 buffer_atomic_dec_x2
    buffer_atomic_cmpswap buffer_atomic_add_f64 buffer_atomic_min_f64 buffer_atomic_max_f64
       : Mubuf [] [b64 vaddr b128 b32] ATOMIC;
    buffer_atomic_cmpswap_x2: Mubuf [] [b128 vaddr b128 b32] ATOMIC;
    global_atomic_swap global_atomic_add global_atomic_sub global_atomic_smin global_atomic_umin
    global_atomic_smax global_atomic_umax global_atomic_and global_atomic_or global_atomic_xor
    global_atomic_inc global_atomic_dec global_atomic_add_f32 global_atomic_pk_add_f16
    global_atomic_pk_add_bf16: Global [] [vaddr b32 saddr] ATOMIC;
    global_atomic_swap_x2 global_atomic_add_x2 global_atomic_sub_x2 global_atomic_smin_x2
    global_atomic_umin_x2 global_atomic_smax_x2 global_atomic_umax_x2 global_atomic_and_x2
    global_atomic_or_x2 global_atomic_xor_x2 global_atomic_inc_x2 global_atomic_dec_x2
    global_atomic_cmpswap global_atomic_add_f64 global_atomic_min_f64 global_atomic_max_f64
       : Global [] [vaddr b64 saddr] ATOMIC;
    global_atomic_cmpswap_x2: Global [] [vaddr b128 saddr] ATOMIC;
    flat_atomic_swap flat_atomic_add flat_atomic_sub flat_atomic_smin flat_atomic_umin
    flat_atomic_smax flat_atomic_umax flat_atomic_and flat_atomic_or flat_atomic_xor
    flat_atomic_inc flat_atomic_dec flat_atomic_add_f32 flat_atomic_pk_add_f16
    flat_atomic_pk_add_bf16: Flat [] [b64 b32] ATOMIC;
    flat_atomic_swap_x2 flat_atomic_add_x2 flat_atomic_sub_x2 flat_atomic_smin_x2
    flat_atomic_umin_x2 flat_atomic_smax_x2 flat_atomic_umax_x2 flat_atomic_and_x2
    flat_atomic_or_x2 flat_atomic_xor_x2 flat_atomic_inc_x2 flat_atomic_dec_x2
    flat_atomic_cmpswap flat_atomic_add_f64 flat_atomic_min_f64 flat_atomic_max_f64
       : Flat [] [b64 b64] ATOMIC;
    flat_atomic_cmpswap_x2: Flat [] [b64 b128] ATOMIC;
    buffer_wbl2 buffer_inv: Mubuf [] [];
}
