//! What operations that read and write memory at once do.

use crate::isa::Opcode;

use super::float::{bf16_bits, bf16_value, f16_bits, f16_value, f32_to_odd};

/// A function of what is in memory and what a lane brings.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub(super) enum Update {
    Add,
    Sub,
    /// What a lane brings less what is there.
    ReverseSub,
    /// Counts up to what a lane brings, then from zero.
    Increment,
    Decrement,
    MinSigned,
    MaxSigned,
    MinUnsigned,
    MaxUnsigned,
    And,
    Or,
    Xor,
    Swap,
    /// The second value where the first is there.
    CompareSwap,
    AddF32,
    MinF32,
    MaxF32,
    AddF64,
    MinF64,
    MaxF64,
    AddTwoF16,
    AddTwoBf16,
}

impl Update {
    /// What an instruction does, and to how many bytes.
    pub fn of(op: Opcode) -> Option<(Update, u32)> {
        use Opcode::*;
        let four = |update| Some((update, 4));
        let eight = |update| Some((update, 8));
        match op {
            ds_add_u32 | ds_add_rtn_u32 | buffer_atomic_add | global_atomic_add
            | flat_atomic_add => four(Update::Add),
            ds_sub_u32 | ds_sub_rtn_u32 | buffer_atomic_sub | global_atomic_sub
            | flat_atomic_sub => four(Update::Sub),
            ds_rsub_u32 | ds_rsub_rtn_u32 => four(Update::ReverseSub),
            ds_inc_u32 | ds_inc_rtn_u32 | buffer_atomic_inc | global_atomic_inc
            | flat_atomic_inc => four(Update::Increment),
            ds_dec_u32 | ds_dec_rtn_u32 | buffer_atomic_dec | global_atomic_dec
            | flat_atomic_dec => four(Update::Decrement),
            ds_min_i32 | ds_min_rtn_i32 | buffer_atomic_smin | global_atomic_smin
            | flat_atomic_smin => four(Update::MinSigned),
            ds_max_i32 | ds_max_rtn_i32 | buffer_atomic_smax | global_atomic_smax
            | flat_atomic_smax => four(Update::MaxSigned),
            ds_min_u32 | ds_min_rtn_u32 | buffer_atomic_umin | global_atomic_umin
            | flat_atomic_umin => four(Update::MinUnsigned),
            ds_max_u32 | ds_max_rtn_u32 | buffer_atomic_umax | global_atomic_umax
            | flat_atomic_umax => four(Update::MaxUnsigned),
            ds_and_b32 | ds_and_rtn_b32 | buffer_atomic_and | global_atomic_and
            | flat_atomic_and => four(Update::And),
            ds_or_b32 | ds_or_rtn_b32 | buffer_atomic_or | global_atomic_or | flat_atomic_or => {
                four(Update::Or)
            }
            ds_xor_b32 | ds_xor_rtn_b32 | buffer_atomic_xor | global_atomic_xor
            | flat_atomic_xor => four(Update::Xor),
            ds_wrxchg_rtn_b32 | buffer_atomic_swap | global_atomic_swap | flat_atomic_swap => {
                four(Update::Swap)
            }
            ds_cmpst_b32
            | ds_cmpst_rtn_b32
            | buffer_atomic_cmpswap
            | global_atomic_cmpswap
            | flat_atomic_cmpswap => four(Update::CompareSwap),
            ds_add_f32
            | ds_add_rtn_f32
            | buffer_atomic_add_f32
            | global_atomic_add_f32
            | flat_atomic_add_f32 => four(Update::AddF32),
            ds_min_f32 | ds_min_rtn_f32 => four(Update::MinF32),
            ds_max_f32 | ds_max_rtn_f32 => four(Update::MaxF32),
            ds_pk_add_f16
            | ds_pk_add_rtn_f16
            | buffer_atomic_pk_add_f16
            | global_atomic_pk_add_f16
            | flat_atomic_pk_add_f16 => four(Update::AddTwoF16),
            ds_pk_add_bf16
            | ds_pk_add_rtn_bf16
            | buffer_atomic_pk_add_bf16
            | global_atomic_pk_add_bf16
            | flat_atomic_pk_add_bf16 => four(Update::AddTwoBf16),
            ds_add_u64 | ds_add_rtn_u64 | buffer_atomic_add_x2 | global_atomic_add_x2
            | flat_atomic_add_x2 => eight(Update::Add),
            ds_sub_u64 | ds_sub_rtn_u64 | buffer_atomic_sub_x2 | global_atomic_sub_x2
            | flat_atomic_sub_x2 => eight(Update::Sub),
            ds_rsub_u64 | ds_rsub_rtn_u64 => eight(Update::ReverseSub),
            ds_inc_u64 | ds_inc_rtn_u64 | buffer_atomic_inc_x2 | global_atomic_inc_x2
            | flat_atomic_inc_x2 => eight(Update::Increment),
            ds_dec_u64 | ds_dec_rtn_u64 | buffer_atomic_dec_x2 | global_atomic_dec_x2
            | flat_atomic_dec_x2 => eight(Update::Decrement),
            ds_min_i64
            | ds_min_rtn_i64
            | buffer_atomic_smin_x2
            | global_atomic_smin_x2
            | flat_atomic_smin_x2 => eight(Update::MinSigned),
            ds_max_i64
            | ds_max_rtn_i64
            | buffer_atomic_smax_x2
            | global_atomic_smax_x2
            | flat_atomic_smax_x2 => eight(Update::MaxSigned),
            ds_min_u64
            | ds_min_rtn_u64
            | buffer_atomic_umin_x2
            | global_atomic_umin_x2
            | flat_atomic_umin_x2 => eight(Update::MinUnsigned),
            ds_max_u64
            | ds_max_rtn_u64
            | buffer_atomic_umax_x2
            | global_atomic_umax_x2
            | flat_atomic_umax_x2 => eight(Update::MaxUnsigned),
            ds_and_b64 | ds_and_rtn_b64 | buffer_atomic_and_x2 | global_atomic_and_x2
            | flat_atomic_and_x2 => eight(Update::And),
            ds_or_b64 | ds_or_rtn_b64 | buffer_atomic_or_x2 | global_atomic_or_x2
            | flat_atomic_or_x2 => eight(Update::Or),
            ds_xor_b64 | ds_xor_rtn_b64 | buffer_atomic_xor_x2 | global_atomic_xor_x2
            | flat_atomic_xor_x2 => eight(Update::Xor),
            ds_wrxchg_rtn_b64
            | buffer_atomic_swap_x2
            | global_atomic_swap_x2
            | flat_atomic_swap_x2 => eight(Update::Swap),
            ds_cmpst_b64
            | ds_cmpst_rtn_b64
            | buffer_atomic_cmpswap_x2
            | global_atomic_cmpswap_x2
            | flat_atomic_cmpswap_x2 => eight(Update::CompareSwap),
            ds_add_f64
            | ds_add_rtn_f64
            | buffer_atomic_add_f64
            | global_atomic_add_f64
            | flat_atomic_add_f64 => eight(Update::AddF64),
            ds_min_f64
            | ds_min_rtn_f64
            | buffer_atomic_min_f64
            | global_atomic_min_f64
            | flat_atomic_min_f64 => eight(Update::MinF64),
            ds_max_f64
            | ds_max_rtn_f64
            | buffer_atomic_max_f64
            | global_atomic_max_f64
            | flat_atomic_max_f64 => eight(Update::MaxF64),
            _ => None,
        }
    }

    /// What is in memory afterwards. `compared` is what a compare-and-swap looks for.
    pub fn apply(self, bytes: u32, memory: u64, brought: u64, compared: u64) -> u64 {
        let signed = |value: u64| match bytes {
            4 => i64::from(value as i32),
            _ => value as i64,
        };
        let f32s = |f: fn(f32, f32) -> f32| {
            let (a, b) = (
                f32::from_bits(memory as u32),
                f32::from_bits(brought as u32),
            );
            u64::from(f(a, b).to_bits())
        };
        let f64s =
            |f: fn(f64, f64) -> f64| f(f64::from_bits(memory), f64::from_bits(brought)).to_bits();
        let halves = |f: fn(u16, u16) -> u16| {
            let of = |shift: u32| u64::from(f((memory >> shift) as u16, (brought >> shift) as u16));
            of(0) | of(16) << 16
        };
        let result = match self {
            Self::Add => memory.wrapping_add(brought),
            Self::Sub => memory.wrapping_sub(brought),
            Self::ReverseSub => brought.wrapping_sub(memory),
            Self::Increment if memory >= brought => 0,
            Self::Increment => memory + 1,
            Self::Decrement if memory == 0 || memory > brought => brought,
            Self::Decrement => memory - 1,
            Self::MinSigned if signed(memory) <= signed(brought) => memory,
            Self::MaxSigned if signed(memory) >= signed(brought) => memory,
            Self::MinSigned | Self::MaxSigned | Self::Swap => brought,
            Self::MinUnsigned => memory.min(brought),
            Self::MaxUnsigned => memory.max(brought),
            Self::And => memory & brought,
            Self::Or => memory | brought,
            Self::Xor => memory ^ brought,
            Self::CompareSwap if memory == compared => brought,
            Self::CompareSwap => memory,
            Self::AddF32 => f32s(|a, b| a + b),
            Self::MinF32 => f32s(f32::min),
            Self::MaxF32 => f32s(f32::max),
            Self::AddF64 => f64s(|a, b| a + b),
            Self::MinF64 => f64s(f64::min),
            Self::MaxF64 => f64s(f64::max),
            Self::AddTwoF16 => halves(|a, b| f16_bits(sum(f16_value(a), f16_value(b)))),
            Self::AddTwoBf16 => {
                halves(|a, b| bf16_bits(f32_to_odd(sum(bf16_value(a), bf16_value(b)))))
            }
        };
        match bytes {
            4 => result & 0xffff_ffff,
            _ => result,
        }
    }
}

/// A sum that is rounded afterwards.
fn sum(a: f32, b: f32) -> f64 {
    f64::from(a) + f64::from(b)
}
