//! Between the bytes of memory and a lane's registers.

use crate::asm::Registers;
use crate::isa::Ty;

use super::fault::Fault;
use super::wave::{Lanes, Wave};

/// Writes what was loaded to a lane's registers.
pub(super) fn load(
    wave: &mut Wave,
    registers: Registers,
    ty: Ty,
    lane: usize,
    bytes: &[u8],
) -> Result<(), Fault> {
    for index in 0..ty.registers() {
        let register = &mut wave.vector_mut(registers, index)?[lane];
        *register = loaded(ty, index, bytes, *register)?;
    }
    Ok(())
}

/// What a register holds when these bytes have been loaded to a run of them, of which it is the
/// `index`th.
pub(super) fn loaded(ty: Ty, index: u16, bytes: &[u8], register: u32) -> Result<u32, Fault> {
    let byte = |index: usize| bytes.get(index).copied().unwrap_or(0);
    let short = u16::from_le_bytes([byte(0), byte(1)]);
    let low = |value: u16| register & 0xffff_0000 | u32::from(value);
    let high = |value: u16| register & 0xffff | u32::from(value) << 16;
    let signed = byte(0) as i8;
    Ok(match ty {
        Ty::b32 | Ty::b64 | Ty::b96 | Ty::b128 | Ty::b256 | Ty::b512 => {
            let at = usize::from(index) * 4;
            u32::from_le_bytes([byte(at), byte(at + 1), byte(at + 2), byte(at + 3)])
        }
        Ty::u8 => u32::from(byte(0)),
        Ty::i8 => i32::from(signed) as u32,
        Ty::u16 => u32::from(short),
        Ty::i16 => i32::from(short as i16) as u32,
        Ty::lo16 => low(short),
        Ty::hi16 => high(short),
        Ty::u8lo => low(u16::from(byte(0))),
        Ty::u8hi => high(u16::from(byte(0))),
        Ty::i8lo => low(i16::from(signed) as u16),
        Ty::i8hi => high(i16::from(signed) as u16),
        _ => return Err(Fault::Operand),
    })
}

/// The bytes that a lane stores.
pub(super) fn stored(data: &[Lanes], ty: Ty, lane: usize, into: &mut [u8]) {
    let word = |index: usize| data.get(index).map_or(0, |lanes| lanes[lane]);
    match ty {
        Ty::hi16 | Ty::u8hi => {
            let bytes = (word(0) >> 16).to_le_bytes();
            let count = into.len();
            into.copy_from_slice(&bytes[..count]);
        }
        Ty::u8 | Ty::u16 => {
            let count = into.len();
            into.copy_from_slice(&word(0).to_le_bytes()[..count]);
        }
        _ => {
            for (index, bytes) in into.chunks_exact_mut(4).enumerate() {
                bytes.copy_from_slice(&word(index).to_le_bytes());
            }
        }
    }
}

/// One or two words of a lane as a number.
pub(super) fn value(data: &[Lanes], lane: usize) -> u64 {
    let word = |index: usize| data.get(index).map_or(0, |lanes| u64::from(lanes[lane]));
    word(0) | word(1) << 32
}
