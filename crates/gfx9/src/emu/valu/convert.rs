//! Conversions between floats and integers, and to and from small floats. Integers end at the
//! ends of their type, and NaN is 0.

use crate::asm::Instruction;
use crate::isa::{Encoding, Opcode};

use super::super::Arch;
use super::super::fault::Fault;
use super::super::float::{Small, bf16_bits, bf16_value, f16_from_f32, f16_toward_zero, f16_value};
use super::super::wave::{LANES, Lanes, Wave};
use super::map::{Sources, one, two};

/// Conversions whose result is one register.
pub(super) fn word(op: Opcode, s: &Sources) -> Option<Lanes> {
    use Opcode::*;
    let float = f32::from_bits;
    let pair = |low: u16, high: u16| u32::from(low) | u32::from(high) << 16;
    Some(match op {
        v_cvt_f32_i32 => one(s, |a| (a as i32 as f32).to_bits()),
        v_cvt_f32_u32 => one(s, |a| (a as f32).to_bits()),
        v_cvt_f32_ubyte0 => one(s, |a| ((a & 0xff) as f32).to_bits()),
        v_cvt_f32_ubyte1 => one(s, |a| ((a >> 8 & 0xff) as f32).to_bits()),
        v_cvt_f32_ubyte2 => one(s, |a| ((a >> 16 & 0xff) as f32).to_bits()),
        v_cvt_f32_ubyte3 => one(s, |a| ((a >> 24) as f32).to_bits()),
        v_cvt_off_f32_i4 => one(s, |a| (((a << 28) as i32 >> 28) as f32 / 16.0).to_bits()),
        v_cvt_i32_f32 => one(s, |a| float(a) as i32 as u32),
        v_cvt_u32_f32 => one(s, |a| float(a) as u32),
        v_cvt_rpi_i32_f32 => one(s, |a| (f64::from(float(a)) + 0.5).floor() as i32 as u32),
        v_cvt_flr_i32_f32 => one(s, |a| float(a).floor() as i32 as u32),
        v_cvt_f16_f32 => one(s, |a| u32::from(f16_from_f32(float(a)))),
        v_cvt_f32_f16 => one(s, |a| f16_value(a as u16).to_bits()),
        v_cvt_f32_bf16 => one(s, |a| bf16_value(a as u16).to_bits()),
        v_cvt_f16_u16 => one(s, |a| u32::from(f16_from_f32(f32::from(a as u16)))),
        v_cvt_f16_i16 => one(s, |a| u32::from(f16_from_f32(f32::from(a as i16)))),
        v_cvt_u16_f16 => one(s, |a| u32::from(f16_value(a as u16) as u16)),
        v_cvt_i16_f16 => one(s, |a| f16_value(a as u16) as i16 as u16 as u32),
        v_cvt_norm_i16_f16 => one(s, |a| u32::from(signed_part(f16_value(a as u16)))),
        v_cvt_norm_u16_f16 => one(s, |a| u32::from(part(f16_value(a as u16)))),
        v_cvt_pknorm_i16_f32 => two(s, |a, b| pair(signed_part(float(a)), signed_part(float(b)))),
        v_cvt_pknorm_u16_f32 => two(s, |a, b| pair(part(float(a)), part(float(b)))),
        v_cvt_pkrtz_f16_f32 => two(s, |a, b| {
            pair(f16_toward_zero(float(a)), f16_toward_zero(float(b)))
        }),
        v_cvt_pk_f16_f32 => two(s, |a, b| {
            pair(f16_from_f32(float(a)), f16_from_f32(float(b)))
        }),
        v_cvt_pk_bf16_f32 => two(s, |a, b| pair(bf16_bits(float(a)), bf16_bits(float(b)))),
        v_pack_b32_f16 => two(s, |a, b| pair(a as u16, b as u16)),
        _ => return None,
    })
}

impl Wave {
    /// Conversions from and to floats of 8 bits, which have machines' own meanings. `None`: none of
    /// these.
    pub(super) fn convert_bytes(
        &mut self,
        instruction: &Instruction,
        arch: Arch,
    ) -> Result<Option<()>, Fault> {
        use Opcode::*;
        let modifiers = &instruction.modifiers;
        let small = match instruction.op {
            v_cvt_f32_fp8 | v_cvt_pk_f32_fp8 | v_cvt_pk_fp8_f32 => arch.fp8(),
            v_cvt_f32_bf8 | v_cvt_pk_f32_bf8 | v_cvt_pk_bf8_f32 => arch.bf8(),
            _ => return Ok(None),
        };
        match instruction.op {
            v_cvt_pk_fp8_f32 | v_cvt_pk_bf8_f32 => {
                let s = self.sources(instruction)?;
                let saturate = self.saturates();
                let high = modifiers.op_sel >> 2 & 1 == 1;
                let mut values = [0; LANES];
                for lane in 0..LANES {
                    let [a, b] = [s[0], s[1]]
                        .map(|s| u32::from(small.encode(f32::from_bits(s[lane]), saturate)));
                    let (half, kept) = (a | b << 8, s[2][lane]);
                    values[lane] = match high {
                        true => kept & 0xffff | half << 16,
                        false => kept & 0xffff_0000 | half,
                    };
                }
                self.put(instruction, values)?;
            }
            // Which byte or half is read, only parts of registers say.
            _ if instruction.encoding != Encoding::Sdwa && modifiers.op_sel != 0 => {
                return Err(Fault::Unsupported);
            }
            v_cvt_f32_fp8 | v_cvt_f32_bf8 => {
                let table = small.values();
                let values = self.source(instruction, 0)?;
                let values = values.map(|value| table[value as usize & 0xff].to_bits());
                let mask = self.written(instruction);
                self.set_some_lanes(instruction.destination(0)?, 0, &values, mask)?;
            }
            _ => {
                let table = small.values();
                let values = self.source(instruction, 0)?;
                let byte = |value: u32| u64::from(table[value as usize & 0xff].to_bits());
                let values = values.map(|value| byte(value) | byte(value >> 8) << 32);
                self.put_wide(instruction, values)?;
            }
        }
        Ok(Some(()))
    }
}

impl Arch {
    /// What this machine means by `fp8`.
    pub(in crate::emu) fn fp8(self) -> Small {
        match self {
            Arch::Gfx942 => Small::Fp8Fnuz,
            Arch::Gfx950 => Small::Fp8,
        }
    }

    /// What this machine means by `bf8`.
    pub(in crate::emu) fn bf8(self) -> Small {
        match self {
            Arch::Gfx942 => Small::Bf8Fnuz,
            Arch::Gfx950 => Small::Bf8,
        }
    }
}

/// A number from -1 to 1 as one from -32767 to 32767.
fn signed_part(value: f32) -> u16 {
    (value.clamp(-1.0, 1.0) * 32767.0).round_ties_even() as i16 as u16
}

/// A number from 0 to 1 as one from 0 to 65535.
fn part(value: f32) -> u16 {
    (value.clamp(0.0, 1.0) * 65535.0).round_ties_even() as u16
}
