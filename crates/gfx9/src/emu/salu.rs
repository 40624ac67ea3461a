//! The scalar unit: one value a wave, and SCC.
//!
//! Left to who runs the wave: `s_getpc_b64`, `s_setpc_b64` and `s_swappc_b64`, which know of code.
//! Of the hardware registers there is MODE alone, and of it rounding to nearest alone: anything
//! else is [`Fault::Unsupported`].

use crate::asm::{Instruction, Operand};
use crate::isa::{Flags, Opcode, Ty};

use super::fault::Fault;
use super::wave::Wave;

/// What a scalar instruction writes, and SCC where it has one.
enum Outcome {
    Word(u32, Option<bool>),
    Wide(u64, Option<bool>),
    Condition(bool),
    Nothing,
}

use Outcome::{Condition, Nothing, Wide, Word};

impl Wave {
    pub(super) fn salu(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let op = instruction.op;
        if matches!(
            op,
            Opcode::s_getreg_b32 | Opcode::s_setreg_b32 | Opcode::s_setreg_imm32_b32
        ) {
            return self.hardware_register(instruction);
        }
        let operands = Sources {
            wave: self,
            instruction,
        };
        let mut outcome = None;
        for family in [one_source, two_sources, constants_and_comparisons] {
            outcome = family(op, &operands)?;
            if outcome.is_some() {
                break;
            }
        }
        let Some(outcome) = outcome else {
            return match op.is(Flags::EXEC_OUT) {
                true => self.save_exec(instruction),
                false => Err(Fault::Unsupported),
            };
        };
        let destination = || instruction.operands.first().ok_or(Fault::Operand);
        let condition = match outcome {
            Word(word, condition) => {
                self.set_scalar32(destination()?, word)?;
                condition
            }
            Wide(value, condition) => {
                self.set_scalar64(destination()?, value)?;
                condition
            }
            Condition(condition) => Some(condition),
            Nothing => None,
        };
        if let Some(condition) = condition {
            self.scc = condition;
        }
        Ok(())
    }

    /// `s_*_saveexec_b64` and `s_*_wrexec_b64`. The source is read before EXEC is saved over it.
    fn save_exec(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        use Opcode::*;
        let [destination, source] = &instruction.operands[..] else {
            return Err(Fault::Operand);
        };
        let (s, exec) = (self.scalar64(source, Ty::b64)?, self.exec);
        let lanes = match instruction.op {
            s_and_saveexec_b64 => s & exec,
            s_or_saveexec_b64 => s | exec,
            s_xor_saveexec_b64 => s ^ exec,
            s_andn2_saveexec_b64 | s_andn2_wrexec_b64 => s & !exec,
            s_orn2_saveexec_b64 => s | !exec,
            s_nand_saveexec_b64 => !(s & exec),
            s_nor_saveexec_b64 => !(s | exec),
            s_xnor_saveexec_b64 => !(s ^ exec),
            s_andn1_saveexec_b64 | s_andn1_wrexec_b64 => !s & exec,
            s_orn1_saveexec_b64 => !s | exec,
            _ => return Err(Fault::Unsupported),
        };
        let saved = match instruction.op {
            s_andn1_wrexec_b64 | s_andn2_wrexec_b64 => lanes,
            _ => exec,
        };
        self.set_scalar64(destination, saved)?;
        self.exec = lanes;
        self.scc = lanes != 0;
        Ok(())
    }

    /// `s_getreg_b32` and `s_setreg_*` on some bits of MODE.
    fn hardware_register(&mut self, instruction: &Instruction) -> Result<(), Fault> {
        let [first, second] = &instruction.operands[..] else {
            return Err(Fault::Operand);
        };
        let reads = instruction.op == Opcode::s_getreg_b32;
        let (offset, size) = mode_field(instruction, if reads { second } else { first })?;
        let mask = (u64::MAX >> (64 - size)) as u32;
        if reads {
            return self.set_scalar32(first, self.mode() >> offset & mask);
        }
        let field = self.scalar32(second, Ty::b32)? & mask;
        let mode = self.mode() & !(mask << offset) | field << offset;
        match mode & ROUNDING {
            0 => self.set_mode(mode),
            _ => Err(Fault::Unsupported),
        }
    }
}

/// The bits of MODE that choose another rounding than to nearest.
const ROUNDING: u32 = 0xf;

/// First bit and count of bits of `hwreg(HW_REG_MODE, 4, 2)`.
fn mode_field(instruction: &Instruction, operand: &Operand) -> Result<(u32, u32), Fault> {
    const MODE: i64 = 1;
    let (register, offset, size) = match operand {
        Operand::Integer(word) => (word & 0x3f, word >> 6 & 0x1f, (word >> 11 & 0x1f) + 1),
        Operand::Symbol(..) => {
            let text = instruction.symbol(operand).unwrap_or_default();
            let inner = text
                .strip_prefix("hwreg(")
                .and_then(|t| t.strip_suffix(')'));
            let mut parts = inner.ok_or(Fault::Operand)?.split(',').map(str::trim);
            let register = match parts.next() {
                Some("HW_REG_MODE" | "1") => MODE,
                _ => return Err(Fault::Unsupported),
            };
            let mut number = |default: i64| match parts.next() {
                Some(text) => text.parse().map_err(|_| Fault::Operand),
                None => Ok(default),
            };
            (register, number(0)?, number(32)?)
        }
        _ => return Err(Fault::Operand),
    };
    match register == MODE {
        true if (0..32).contains(&offset) && (1..=32 - offset).contains(&size) => {
            Ok((offset as u32, size as u32))
        }
        true => Err(Fault::Operand),
        false => Err(Fault::Unsupported),
    }
}

/// The operands of an instruction, read as its row says.
struct Sources<'a> {
    wave: &'a Wave,
    instruction: &'a Instruction,
}

impl Sources<'_> {
    fn operand(&self, index: usize) -> Result<&Operand, Fault> {
        let at = index + self.instruction.op.results().len();
        self.instruction.operands.get(at).ok_or(Fault::Operand)
    }

    fn word(&self, index: usize) -> Result<u32, Fault> {
        self.wave.scalar32(self.operand(index)?, Ty::b32)
    }

    fn wide(&self, index: usize) -> Result<u64, Fault> {
        self.wave.scalar64(self.operand(index)?, Ty::b64)
    }

    /// The constant of a `k` form: 16 bits.
    fn constant(&self, index: usize) -> Result<u16, Fault> {
        match self.operand(index)? {
            Operand::Integer(value) => Ok(*value as u16),
            _ => Err(Fault::Operand),
        }
    }

    /// What the destination holds.
    fn kept(&self) -> Result<u32, Fault> {
        let destination = self.instruction.operands.first().ok_or(Fault::Operand)?;
        self.wave.scalar32(destination, Ty::b32)
    }
}

fn one_source(op: Opcode, s: &Sources<'_>) -> Result<Option<Outcome>, Fault> {
    use Opcode::*;
    let word = |value: u32| Word(value, None);
    let flagged = |value: u32| Word(value, Some(value != 0));
    let wide = |value: u64| Wide(value, Some(value != 0));
    // The place of a bit, or -1 where there is none.
    let found = |place: u32, bits: u32| word(if place == bits { u32::MAX } else { place });
    Ok(Some(match op {
        s_mov_b32 => word(s.word(0)?),
        s_mov_b64 => Wide(s.wide(0)?, None),
        s_cmov_b32 if s.wave.scc => word(s.word(0)?),
        s_cmov_b64 if s.wave.scc => Wide(s.wide(0)?, None),
        s_cmov_b32 | s_cmov_b64 => Nothing,
        s_brev_b32 => word(s.word(0)?.reverse_bits()),
        s_brev_b64 => Wide(s.wide(0)?.reverse_bits(), None),
        s_sext_i32_i8 => word(s.word(0)? as i8 as u32),
        s_sext_i32_i16 => word(s.word(0)? as i16 as u32),
        s_ff0_i32_b32 => found(s.word(0)?.trailing_ones(), 32),
        s_ff1_i32_b32 => found(s.word(0)?.trailing_zeros(), 32),
        s_ff0_i32_b64 => found(s.wide(0)?.trailing_ones(), 64),
        s_ff1_i32_b64 => found(s.wide(0)?.trailing_zeros(), 64),
        s_flbit_i32_b32 => found(s.word(0)?.leading_zeros(), 32),
        s_flbit_i32_b64 => found(s.wide(0)?.leading_zeros(), 64),
        s_flbit_i32 => found(same_as_sign(i64::from(s.word(0)? as i32), 32), 32),
        s_flbit_i32_i64 => found(same_as_sign(s.wide(0)? as i64, 64), 64),
        s_bitset0_b32 => word(s.kept()? & !(1 << (s.word(0)? & 31))),
        s_bitset1_b32 => word(s.kept()? | 1 << (s.word(0)? & 31)),
        s_not_b32 => flagged(!s.word(0)?),
        s_not_b64 => wide(!s.wide(0)?),
        s_wqm_b32 => flagged(whole_quads(u64::from(s.word(0)?)) as u32),
        s_wqm_b64 => wide(whole_quads(s.wide(0)?)),
        s_quadmask_b32 => flagged(quad_mask(s.word(0)?)),
        s_abs_i32 => flagged((s.word(0)? as i32).unsigned_abs()),
        s_bcnt0_i32_b32 => flagged(s.word(0)?.count_zeros()),
        s_bcnt1_i32_b32 => flagged(s.word(0)?.count_ones()),
        s_bcnt0_i32_b64 => flagged(s.wide(0)?.count_zeros()),
        s_bcnt1_i32_b64 => flagged(s.wide(0)?.count_ones()),
        _ => return Ok(None),
    }))
}

fn two_sources(op: Opcode, s: &Sources<'_>) -> Result<Option<Outcome>, Fault> {
    use Opcode::*;
    let flagged = |value: u32| Word(value, Some(value != 0));
    let wide = |value: u64| Wide(value, Some(value != 0));
    let word = |value: u32| Word(value, None);
    let carried = |(value, carry): (u32, bool)| Word(value, Some(carry));
    let signed = |(value, overflow): (i32, bool)| Word(value as u32, Some(overflow));
    let long = |value: u64| Word(value as u32, Some(value >> 32 != 0));
    let words = || Ok::<_, Fault>((s.word(0)?, s.word(1)?));
    let integers = || words().map(|(a, b)| (a as i32, b as i32));
    let wides = || Ok::<_, Fault>((s.wide(0)?, s.wide(1)?));
    let shifted = || Ok::<_, Fault>((s.wide(0)?, s.word(1)? & 63));
    let scc = s.wave.scc;
    // SCC says that the first was taken.
    let taken = |first: bool, a: u32, b: u32| Word(if first { a } else { b }, Some(first));
    Ok(Some(match op {
        s_add_u32 => words().map(|(a, b)| carried(a.overflowing_add(b)))?,
        s_sub_u32 => words().map(|(a, b)| carried(a.overflowing_sub(b)))?,
        s_add_i32 => integers().map(|(a, b)| signed(a.overflowing_add(b)))?,
        s_sub_i32 => integers().map(|(a, b)| signed(a.overflowing_sub(b)))?,
        s_addc_u32 => words().map(|(a, b)| long(u64::from(a) + u64::from(b) + u64::from(scc)))?,
        s_subb_u32 => words().map(|(a, b)| {
            let value = i64::from(a) - i64::from(b) - i64::from(scc);
            Word(value as u32, Some(value < 0))
        })?,
        s_min_i32 => integers().map(|(a, b)| taken(a < b, a as u32, b as u32))?,
        s_min_u32 => words().map(|(a, b)| taken(a < b, a, b))?,
        s_max_i32 => integers().map(|(a, b)| taken(a >= b, a as u32, b as u32))?,
        s_max_u32 => words().map(|(a, b)| taken(a >= b, a, b))?,
        s_cselect_b32 => word(s.word(usize::from(!scc))?),
        s_cselect_b64 => Wide(s.wide(usize::from(!scc))?, None),
        s_and_b32 => words().map(|(a, b)| flagged(a & b))?,
        s_or_b32 => words().map(|(a, b)| flagged(a | b))?,
        s_xor_b32 => words().map(|(a, b)| flagged(a ^ b))?,
        s_andn2_b32 => words().map(|(a, b)| flagged(a & !b))?,
        s_orn2_b32 => words().map(|(a, b)| flagged(a | !b))?,
        s_nand_b32 => words().map(|(a, b)| flagged(!(a & b)))?,
        s_nor_b32 => words().map(|(a, b)| flagged(!(a | b)))?,
        s_xnor_b32 => words().map(|(a, b)| flagged(!(a ^ b)))?,
        s_and_b64 => wides().map(|(a, b)| wide(a & b))?,
        s_or_b64 => wides().map(|(a, b)| wide(a | b))?,
        s_xor_b64 => wides().map(|(a, b)| wide(a ^ b))?,
        s_andn2_b64 => wides().map(|(a, b)| wide(a & !b))?,
        s_orn2_b64 => wides().map(|(a, b)| wide(a | !b))?,
        s_nand_b64 => wides().map(|(a, b)| wide(!(a & b)))?,
        s_nor_b64 => wides().map(|(a, b)| wide(!(a | b)))?,
        s_xnor_b64 => wides().map(|(a, b)| wide(!(a ^ b)))?,
        s_lshl_b32 => words().map(|(a, b)| flagged(a << (b & 31)))?,
        s_lshr_b32 => words().map(|(a, b)| flagged(a >> (b & 31)))?,
        s_ashr_i32 => integers().map(|(a, b)| flagged((a >> (b & 31)) as u32))?,
        s_lshl_b64 => shifted().map(|(a, b)| wide(a << b))?,
        s_lshr_b64 => shifted().map(|(a, b)| wide(a >> b))?,
        s_ashr_i64 => shifted().map(|(a, b)| wide((a as i64 >> b) as u64))?,
        s_bfe_u32 => words().map(|(a, b)| {
            let value = (a >> (b & 31)) & field(b >> 16 & 0x7f) as u32;
            flagged(value)
        })?,
        s_bfe_i32 => words().map(|(a, b)| {
            let value = u64::from(a >> (b & 31));
            flagged(signed_field(value, b >> 16 & 0x7f, 32) as u32)
        })?,
        s_bfe_u64 => {
            let (a, b) = (s.wide(0)?, s.word(1)?);
            wide((a >> (b & 63)) & field(b >> 16 & 0x7f))
        }
        s_bfe_i64 => {
            let (a, b) = (s.wide(0)?, s.word(1)?);
            wide(signed_field(a >> (b & 63), b >> 16 & 0x7f, 64))
        }
        s_bfm_b32 => words().map(|(a, b)| word((field(a & 31) as u32) << (b & 31)))?,
        s_bfm_b64 => words().map(|(a, b)| Wide(field(a & 63) << (b & 63), None))?,
        s_absdiff_i32 => integers().map(|(a, b)| flagged(a.wrapping_sub(b).unsigned_abs()))?,
        s_lshl1_add_u32 => words().map(|(a, b)| long((u64::from(a) << 1) + u64::from(b)))?,
        s_lshl2_add_u32 => words().map(|(a, b)| long((u64::from(a) << 2) + u64::from(b)))?,
        s_lshl3_add_u32 => words().map(|(a, b)| long((u64::from(a) << 3) + u64::from(b)))?,
        s_lshl4_add_u32 => words().map(|(a, b)| long((u64::from(a) << 4) + u64::from(b)))?,
        s_mul_i32 => words().map(|(a, b)| word(a.wrapping_mul(b)))?,
        s_mul_hi_u32 => words().map(|(a, b)| word(((u64::from(a) * u64::from(b)) >> 32) as u32))?,
        s_mul_hi_i32 => {
            integers().map(|(a, b)| word(((i64::from(a) * i64::from(b)) >> 32) as u32))?
        }
        s_pack_ll_b32_b16 => words().map(|(a, b)| word(a & 0xffff | b << 16))?,
        s_pack_lh_b32_b16 => words().map(|(a, b)| word(a & 0xffff | b & 0xffff_0000))?,
        s_pack_hh_b32_b16 => words().map(|(a, b)| word(a >> 16 | b & 0xffff_0000))?,
        _ => return Ok(None),
    }))
}

fn constants_and_comparisons(op: Opcode, s: &Sources<'_>) -> Result<Option<Outcome>, Fault> {
    use Opcode::*;
    let sign = |index| s.constant(index).map(|value| i32::from(value as i16));
    let words = || Ok::<_, Fault>((s.word(0)?, s.word(1)?));
    let integers = || words().map(|(a, b)| (a as i32, b as i32));
    let to_sign = || Ok::<_, Fault>((s.word(0)? as i32, sign(1)?));
    let to_zero = || Ok::<_, Fault>((s.word(0)?, u32::from(s.constant(1)?)));
    let wides = || Ok::<_, Fault>((s.wide(0)?, s.wide(1)?));
    let holds = match op {
        s_movk_i32 => return Ok(Some(Word(sign(0)? as u32, None))),
        s_cmovk_i32 if s.wave.scc => return Ok(Some(Word(sign(0)? as u32, None))),
        s_cmovk_i32 => return Ok(Some(Nothing)),
        s_addk_i32 => {
            let (value, overflow) = (s.kept()? as i32).overflowing_add(sign(0)?);
            return Ok(Some(Word(value as u32, Some(overflow))));
        }
        s_mulk_i32 => {
            let value = (s.kept()? as i32).wrapping_mul(sign(0)?);
            return Ok(Some(Word(value as u32, None)));
        }
        s_cmpk_eq_i32 => to_sign().map(|(a, b)| a == b)?,
        s_cmpk_lg_i32 => to_sign().map(|(a, b)| a != b)?,
        s_cmpk_gt_i32 => to_sign().map(|(a, b)| a > b)?,
        s_cmpk_ge_i32 => to_sign().map(|(a, b)| a >= b)?,
        s_cmpk_lt_i32 => to_sign().map(|(a, b)| a < b)?,
        s_cmpk_le_i32 => to_sign().map(|(a, b)| a <= b)?,
        s_cmpk_eq_u32 => to_zero().map(|(a, b)| a == b)?,
        s_cmpk_lg_u32 => to_zero().map(|(a, b)| a != b)?,
        s_cmpk_gt_u32 => to_zero().map(|(a, b)| a > b)?,
        s_cmpk_ge_u32 => to_zero().map(|(a, b)| a >= b)?,
        s_cmpk_lt_u32 => to_zero().map(|(a, b)| a < b)?,
        s_cmpk_le_u32 => to_zero().map(|(a, b)| a <= b)?,
        s_cmp_eq_i32 | s_cmp_eq_u32 => words().map(|(a, b)| a == b)?,
        s_cmp_lg_i32 | s_cmp_lg_u32 => words().map(|(a, b)| a != b)?,
        s_cmp_gt_i32 => integers().map(|(a, b)| a > b)?,
        s_cmp_ge_i32 => integers().map(|(a, b)| a >= b)?,
        s_cmp_lt_i32 => integers().map(|(a, b)| a < b)?,
        s_cmp_le_i32 => integers().map(|(a, b)| a <= b)?,
        s_cmp_gt_u32 => words().map(|(a, b)| a > b)?,
        s_cmp_ge_u32 => words().map(|(a, b)| a >= b)?,
        s_cmp_lt_u32 => words().map(|(a, b)| a < b)?,
        s_cmp_le_u32 => words().map(|(a, b)| a <= b)?,
        s_cmp_eq_u64 => wides().map(|(a, b)| a == b)?,
        s_cmp_lg_u64 => wides().map(|(a, b)| a != b)?,
        s_bitcmp0_b32 => words().map(|(a, b)| a >> (b & 31) & 1 == 0)?,
        s_bitcmp1_b32 => words().map(|(a, b)| a >> (b & 31) & 1 == 1)?,
        s_bitcmp0_b64 => s.wide(0)? >> (s.word(1)? & 63) & 1 == 0,
        s_bitcmp1_b64 => s.wide(0)? >> (s.word(1)? & 63) & 1 == 1,
        _ => return Ok(None),
    };
    Ok(Some(Condition(holds)))
}

/// So many low bits.
fn field(count: u32) -> u64 {
    match count {
        0 => 0,
        1..64 => u64::MAX >> (64 - count),
        _ => u64::MAX,
    }
}

/// The low bits of a value, with the sign of the uppermost. The value has `bits` bits.
fn signed_field(value: u64, count: u32, bits: u32) -> u64 {
    match count.min(bits) {
        0 => 0,
        count => ((value << (64 - count)) as i64 >> (64 - count)) as u64,
    }
}

/// How many of the upper bits are as the sign; all of them where no other is found.
fn same_as_sign(value: i64, bits: u32) -> u32 {
    let unlike = (value ^ value >> 63) as u64;
    (unlike.leading_zeros() + bits).saturating_sub(64)
}

/// Every quad that has a bit, whole.
fn whole_quads(mask: u64) -> u64 {
    let pairs = mask | mask >> 1;
    let quads = (pairs | pairs >> 2) & 0x1111_1111_1111_1111;
    quads * 0xf
}

/// A bit for each quad that has one.
fn quad_mask(mask: u32) -> u32 {
    (0..8).fold(0, |bits, quad| {
        bits | u32::from(mask >> (4 * quad) & 0xf != 0) << quad
    })
}
