//! Integers and bits: 16, 32 and 64 wide, with carries.

use crate::asm::Instruction;
use crate::isa::Opcode;

use super::super::fault::Fault;
use super::super::wave::{LANES, Lanes, Wave};
use super::map::{Sources, one, three, two, which};

/// Integer operations whose result is a register of the lanes. `clamp` makes sums end at the
/// ends of their type; an operation that has no such end says `None` to it.
pub(super) fn word(op: Opcode, s: &Sources, clamp: bool, truth: u8) -> Option<Lanes> {
    use Opcode::*;
    if clamp {
        return saturating(op, s);
    }
    let low = |value: u32| value & 0xffff;
    Some(match op {
        v_mov_b32 | v_accvgpr_mov_b32 | v_accvgpr_read_b32 | v_accvgpr_write_b32 => s[0],
        v_not_b32 => one(s, |a| !a),
        v_bfrev_b32 => one(s, u32::reverse_bits),
        v_ffbh_u32 => one(s, |a| found(a.leading_zeros())),
        v_ffbl_b32 => one(s, |a| found(a.trailing_zeros())),
        v_ffbh_i32 => one(s, |a| found((a ^ (a as i32 >> 31) as u32).leading_zeros())),
        v_prng_b32 => one(s, |a| a << 1 ^ if a >> 31 == 1 { 197 } else { 0 }),
        v_and_b32 => two(s, |a, b| a & b),
        v_or_b32 => two(s, |a, b| a | b),
        v_xor_b32 => two(s, |a, b| a ^ b),
        v_xnor_b32 => two(s, |a, b| !(a ^ b)),
        v_lshlrev_b32 => two(s, |a, b| b << (a & 31)),
        v_lshrrev_b32 => two(s, |a, b| b >> (a & 31)),
        v_ashrrev_i32 => two(s, |a, b| (b as i32 >> (a & 31)) as u32),
        v_add_u32 | v_add_i32 => two(s, u32::wrapping_add),
        v_sub_u32 | v_sub_i32 => two(s, u32::wrapping_sub),
        v_subrev_u32 => two(s, |a, b| b.wrapping_sub(a)),
        v_min_i32 => two(s, |a, b| (a as i32).min(b as i32) as u32),
        v_max_i32 => two(s, |a, b| (a as i32).max(b as i32) as u32),
        v_min_u32 => two(s, u32::min),
        v_max_u32 => two(s, u32::max),
        v_mul_lo_u32 => two(s, u32::wrapping_mul),
        v_mul_hi_u32 => two(s, |a, b| ((u64::from(a) * u64::from(b)) >> 32) as u32),
        v_mul_hi_i32 => two(s, |a, b| ((wide_sign(a) * wide_sign(b)) >> 32) as u32),
        v_mul_u32_u24 => two(s, |a, b| low_24(a).wrapping_mul(low_24(b))),
        v_mul_i32_i24 => two(s, |a, b| sign_24(a).wrapping_mul(sign_24(b)) as u32),
        v_mul_hi_u32_u24 => two(s, |a, b| {
            ((u64::from(low_24(a)) * u64::from(low_24(b))) >> 32) as u32
        }),
        v_mul_hi_i32_i24 => two(s, |a, b| {
            ((i64::from(sign_24(a)) * i64::from(sign_24(b))) >> 32) as u32
        }),
        v_mad_u32_u24 => three(s, |a, b, c| {
            low_24(a).wrapping_mul(low_24(b)).wrapping_add(c)
        }),
        v_mad_i32_i24 => three(s, |a, b, c| {
            (sign_24(a).wrapping_mul(sign_24(b)) as u32).wrapping_add(c)
        }),
        v_mad_u32_u16 => three(s, |a, b, c| low(a).wrapping_mul(low(b)).wrapping_add(c)),
        v_mad_i32_i16 => three(s, |a, b, c| {
            (i32::from(a as i16) * i32::from(b as i16)).wrapping_add(c as i32) as u32
        }),
        v_bfe_u32 => three(s, |a, b, c| a >> (b & 31) & mask(c & 31)),
        v_bfe_i32 => three(s, |a, b, c| match c & 31 {
            0 => 0,
            count => (((a >> (b & 31)) << (32 - count)) as i32 >> (32 - count)) as u32,
        }),
        v_bfi_b32 => three(s, |a, b, c| a & b | !a & c),
        v_bfm_b32 => two(s, |a, b| mask(a & 31) << (b & 31)),
        v_alignbit_b32 => three(s, |a, b, c| (pair(a, b) >> (c & 31)) as u32),
        v_alignbyte_b32 => three(s, |a, b, c| (pair(a, b) >> (8 * (c & 3))) as u32),
        v_min3_i32 => three(s, |a, b, c| (a as i32).min(b as i32).min(c as i32) as u32),
        v_max3_i32 => three(s, |a, b, c| (a as i32).max(b as i32).max(c as i32) as u32),
        v_med3_i32 => three(s, |a, b, c| middle(a as i32, b as i32, c as i32) as u32),
        v_min3_u32 => three(s, |a, b, c| a.min(b).min(c)),
        v_max3_u32 => three(s, |a, b, c| a.max(b).max(c)),
        v_med3_u32 => three(s, middle),
        v_sad_u8 => three(s, |a, b, c| bytes_apart(a, b, false).wrapping_add(c)),
        v_sad_hi_u8 => three(s, |a, b, c| {
            (bytes_apart(a, b, false) << 16).wrapping_add(c)
        }),
        v_msad_u8 => three(s, |a, b, c| bytes_apart(a, b, true).wrapping_add(c)),
        v_sad_u16 => three(s, |a, b, c| {
            (low(a).abs_diff(low(b)) + (a >> 16).abs_diff(b >> 16)).wrapping_add(c)
        }),
        v_sad_u32 => three(s, |a, b, c| a.abs_diff(b).wrapping_add(c)),
        v_perm_b32 => three(s, permuted),
        v_lshl_add_u32 => three(s, |a, b, c| (a << (b & 31)).wrapping_add(c)),
        v_add_lshl_u32 => three(s, |a, b, c| a.wrapping_add(b) << (c & 31)),
        v_add3_u32 => three(s, |a, b, c| a.wrapping_add(b).wrapping_add(c)),
        v_lshl_or_b32 => three(s, |a, b, c| a << (b & 31) | c),
        v_and_or_b32 => three(s, |a, b, c| a & b | c),
        v_or3_b32 => three(s, |a, b, c| a | b | c),
        v_xad_u32 => three(s, |a, b, c| (a ^ b).wrapping_add(c)),
        v_bitop3_b32 => three(s, |a, b, c| looked_up(truth, a, b, c)),
        v_bitop3_b16 => three(s, |a, b, c| low(looked_up(truth, a, b, c))),
        v_ashr_pk_i8_i32 => three(s, |a, b, c| {
            let byte = |x: u32| (x as i32 >> (c & 31)).clamp(-128, 127) as u8;
            u32::from(byte(a)) | u32::from(byte(b)) << 8
        }),
        v_ashr_pk_u8_i32 => three(s, |a, b, c| {
            let byte = |x: u32| (x as i32 >> (c & 31)).clamp(0, 255) as u8;
            u32::from(byte(a)) | u32::from(byte(b)) << 8
        }),
        v_bcnt_u32_b32 => two(s, |a, b| a.count_ones().wrapping_add(b)),
        v_cvt_pk_u16_u32 => two(s, |a, b| a.min(0xffff) | b.min(0xffff) << 16),
        v_cvt_pk_i16_i32 => two(s, |a, b| {
            let half = |x: u32| (x as i32).clamp(-0x8000, 0x7fff) as u32;
            low(half(a)) | half(b) << 16
        }),
        v_add_u16 | v_add_i16 => two(s, |a, b| low(a.wrapping_add(b))),
        v_sub_u16 | v_sub_i16 => two(s, |a, b| low(a.wrapping_sub(b))),
        v_subrev_u16 => two(s, |a, b| low(b.wrapping_sub(a))),
        v_mul_lo_u16 => two(s, |a, b| low(a.wrapping_mul(b))),
        v_lshlrev_b16 => two(s, |a, b| low(b << (a & 15))),
        v_lshrrev_b16 => two(s, |a, b| low(b) >> (a & 15)),
        v_ashrrev_i16 => two(s, |a, b| low((b as i16 >> (a & 15)) as u32)),
        v_max_u16 => two(s, |a, b| low(a).max(low(b))),
        v_min_u16 => two(s, |a, b| low(a).min(low(b))),
        v_max_i16 => two(s, |a, b| (a as i16).max(b as i16) as u16 as u32),
        v_min_i16 => two(s, |a, b| (a as i16).min(b as i16) as u16 as u32),
        v_mad_u16 | v_mad_i16 | v_mad_legacy_u16 | v_mad_legacy_i16 => {
            three(s, |a, b, c| low(a.wrapping_mul(b).wrapping_add(c)))
        }
        v_min3_u16 => three(s, |a, b, c| low(a).min(low(b)).min(low(c))),
        v_max3_u16 => three(s, |a, b, c| low(a).max(low(b)).max(low(c))),
        v_med3_u16 => three(s, |a, b, c| middle(low(a), low(b), low(c))),
        v_min3_i16 => three(s, |a, b, c| {
            (a as i16).min(b as i16).min(c as i16) as u16 as u32
        }),
        v_max3_i16 => three(s, |a, b, c| {
            (a as i16).max(b as i16).max(c as i16) as u16 as u32
        }),
        v_med3_i16 => three(s, |a, b, c| {
            middle(a as i16, b as i16, c as i16) as u16 as u32
        }),
        v_dot2c_i32_i16 => three(s, |a, b, c| dot_halves(a, b, c, false)),
        v_dot4c_i32_i8 => three(s, |a, b, c| dot_bytes(a, b, c, false)),
        v_dot8c_i32_i4 => three(s, |a, b, c| dot_nibbles(a, b, c, false)),
        _ => return None,
    })
}

/// Sums and differences that end at the ends of their type.
fn saturating(op: Opcode, s: &Sources) -> Option<Lanes> {
    use Opcode::*;
    let half = |value: i32| value as u16 as u32;
    Some(match op {
        v_add_u32 => two(s, u32::saturating_add),
        v_sub_u32 => two(s, u32::saturating_sub),
        v_subrev_u32 => two(s, |a, b| b.saturating_sub(a)),
        v_add_i32 => two(s, |a, b| (a as i32).saturating_add(b as i32) as u32),
        v_sub_i32 => two(s, |a, b| (a as i32).saturating_sub(b as i32) as u32),
        v_add_u16 => two(s, |a, b| u32::from((a as u16).saturating_add(b as u16))),
        v_sub_u16 => two(s, |a, b| u32::from((a as u16).saturating_sub(b as u16))),
        v_subrev_u16 => two(s, |a, b| u32::from((b as u16).saturating_sub(a as u16))),
        v_add_i16 => two(s, |a, b| {
            half(i32::from((a as i16).saturating_add(b as i16)))
        }),
        v_sub_i16 => two(s, |a, b| {
            half(i32::from((a as i16).saturating_sub(b as i16)))
        }),
        _ => return None,
    })
}

impl Wave {
    /// Operations that read or write a bit a lane, and those of 64 bits. `None`: none of these.
    pub(super) fn carries_and_wide(
        &mut self,
        instruction: &Instruction,
    ) -> Result<Option<()>, Fault> {
        use Opcode::*;
        let op = instruction.op;
        let plain = !instruction.modifiers.clamp;
        match op {
            v_cndmask_b32 => {
                let mask = self.mask(instruction.source_operand(2)?)?;
                let s = self.sources(instruction)?;
                let mut values = s[0];
                for (lane, value) in values.iter_mut().enumerate() {
                    if mask >> lane & 1 == 1 {
                        *value = s[1][lane];
                    }
                }
                self.put(instruction, values)?;
            }
            v_add_co_u32 | v_sub_co_u32 | v_subrev_co_u32 | v_addc_co_u32 | v_subb_co_u32
            | v_subbrev_co_u32
                if plain =>
            {
                self.carry(instruction)?;
            }
            v_mov_b64 => {
                let value = self.wide_source(instruction, 0)?;
                self.put_wide(instruction, value)?;
            }
            v_lshlrev_b64 | v_lshrrev_b64 | v_ashrrev_i64 => {
                let (count, value) = (
                    self.source(instruction, 0)?,
                    self.wide_source(instruction, 1)?,
                );
                let mut out = [0; LANES];
                for lane in 0..LANES {
                    let (count, value) = (count[lane] & 63, value[lane]);
                    out[lane] = match op {
                        v_lshlrev_b64 => value << count,
                        v_lshrrev_b64 => value >> count,
                        _ => (value as i64 >> count) as u64,
                    };
                }
                self.put_wide(instruction, out)?;
            }
            v_lshl_add_u64 if plain => {
                let a = self.wide_source(instruction, 0)?;
                let count = self.source(instruction, 1)?;
                let c = self.wide_source(instruction, 2)?;
                let mut out = [0u64; LANES];
                for lane in 0..LANES {
                    // Other counts are none.
                    let count = match count[lane] & 7 {
                        count @ 0..=4 => count,
                        _ => 0,
                    };
                    out[lane] = (a[lane] << count).wrapping_add(c[lane]);
                }
                self.put_wide(instruction, out)?;
            }
            v_mad_u64_u32 | v_mad_i64_i32 if plain => {
                let (a, b) = (self.source(instruction, 0)?, self.source(instruction, 1)?);
                let c = self.wide_source(instruction, 2)?;
                let mut out = [0; LANES];
                let mut carries = 0;
                for lane in 0..LANES {
                    let (value, carry) = match op {
                        v_mad_u64_u32 => {
                            (u64::from(a[lane]) * u64::from(b[lane])).overflowing_add(c[lane])
                        }
                        _ => {
                            let product = wide_sign(a[lane]) * wide_sign(b[lane]);
                            let sum = i128::from(product) + i128::from(c[lane] as i64);
                            // The bit above the 64 of the result.
                            (sum as u64, sum >> 64 & 1 == 1)
                        }
                    };
                    out[lane] = value;
                    carries |= u64::from(carry) << lane;
                }
                self.put_wide(instruction, out)?;
                self.set_mask(instruction.destination(1)?, carries)?;
            }
            v_mbcnt_lo_u32_b32 | v_mbcnt_hi_u32_b32 => {
                let s = self.sources(instruction)?;
                let shift = if op == v_mbcnt_hi_u32_b32 { 32 } else { 0 };
                let mut out = [0u32; LANES];
                for lane in 0..LANES {
                    let below = (((1u64 << lane) - 1) >> shift) as u32;
                    out[lane] = (s[0][lane] & below).count_ones().wrapping_add(s[1][lane]);
                }
                self.put(instruction, out)?;
            }
            _ => return Ok(None),
        }
        Ok(Some(()))
    }

    /// Sums and differences with a carry out, and in.
    fn carry(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        use Opcode::*;
        let s = self.sources(instruction)?;
        let carried = match instruction.op.sources().len() {
            3 => self.mask(instruction.source_operand(2)?)?,
            _ => 0,
        };
        let mut sums = [0i64; LANES];
        for lane in 0..LANES {
            let carry = (carried >> lane & 1) as i64;
            let (a, b) = (i64::from(s[0][lane]), i64::from(s[1][lane]));
            sums[lane] = match instruction.op {
                v_add_co_u32 | v_addc_co_u32 => a + b + carry,
                v_sub_co_u32 | v_subb_co_u32 => a - b - carry,
                _ => b - a - carry,
            };
        }
        let carries = which(|lane| sums[lane] >> 32 != 0);
        self.put(instruction, sums.map(|sum| sum as u32))?;
        self.set_mask(instruction.destination(1)?, carries)
    }
}

/// The sum of products of halves, added to `c`.
pub(super) fn dot_halves(a: u32, b: u32, c: u32, unsigned: bool) -> u32 {
    (0..2).fold(c, |sum, at| {
        let part = |x: u32| match unsigned {
            true => x >> (16 * at) & 0xffff,
            false => (x >> (16 * at)) as i16 as u32,
        };
        sum.wrapping_add(part(a).wrapping_mul(part(b)))
    })
}

pub(super) fn dot_bytes(a: u32, b: u32, c: u32, unsigned: bool) -> u32 {
    (0..4).fold(c, |sum, at| {
        let part = |x: u32| match unsigned {
            true => x >> (8 * at) & 0xff,
            false => (x >> (8 * at)) as i8 as u32,
        };
        sum.wrapping_add(part(a).wrapping_mul(part(b)))
    })
}

pub(super) fn dot_nibbles(a: u32, b: u32, c: u32, unsigned: bool) -> u32 {
    (0..8).fold(c, |sum, at| {
        let part = |x: u32| match unsigned {
            true => x >> (4 * at) & 0xf,
            false => ((x >> (4 * at) << 28) as i32 >> 28) as u32,
        };
        sum.wrapping_add(part(a).wrapping_mul(part(b)))
    })
}

/// A place of a bit, -1 where there is none.
fn found(place: u32) -> u32 {
    if place == 32 { u32::MAX } else { place }
}

fn mask(count: u32) -> u32 {
    (1 << count) - 1
}

fn low_24(value: u32) -> u32 {
    value & 0xff_ffff
}

fn sign_24(value: u32) -> i32 {
    (value << 8) as i32 >> 8
}

fn wide_sign(value: u32) -> i64 {
    i64::from(value as i32)
}

/// Two words, the first above.
fn pair(high: u32, low: u32) -> u64 {
    u64::from(high) << 32 | u64::from(low)
}

fn middle<T: Ord>(a: T, b: T, c: T) -> T {
    let (low, high) = if a < b { (a, b) } else { (b, a) };
    low.max(high.min(c))
}

/// How far apart the bytes are, summed; `masked` leaves out zeros of the second.
fn bytes_apart(a: u32, b: u32, masked: bool) -> u32 {
    let pairs = a.to_le_bytes().into_iter().zip(b.to_le_bytes());
    let counted = pairs.filter(|(_, b)| !masked || *b != 0);
    counted.map(|(a, b)| u32::from(a.abs_diff(b))).sum()
}

/// Bytes of two words, the first above, by selectors: 0 to 7 are these bytes, 8 to 11 the sign of
/// every second, 12 zeros, above that ones.
fn permuted(high: u32, low: u32, selectors: u32) -> u32 {
    let bytes = pair(high, low).to_le_bytes();
    u32::from_le_bytes(selectors.to_le_bytes().map(|selector| match selector {
        0..8 => bytes[usize::from(selector)],
        8..12 => (bytes[usize::from(2 * (selector - 8) + 1)] as i8 >> 7) as u8,
        12 => 0,
        _ => 0xff,
    }))
}

/// Each bit of the result is the bit of the table that the bits of the sources name.
fn looked_up(truth: u8, a: u32, b: u32, c: u32) -> u32 {
    let row = |bit: u8, value: u32| if truth >> bit & 1 == 1 { value } else { 0 };
    row(0, !a & !b & !c)
        | row(1, !a & !b & c)
        | row(2, !a & b & !c)
        | row(3, !a & b & c)
        | row(4, a & !b & !c)
        | row(5, a & !b & c)
        | row(6, a & b & !c)
        | row(7, a & b & c)
}
