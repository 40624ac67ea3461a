//! The instruction set as data: what each instruction reads and writes, which unit runs it, which
//! counter tells that it is done, and how long it is.
//!
//! [`Opcode`] and its rows stand in `table`; `decode` reads the text of an instruction once, and
//! everything else asks the row.

mod decode;
mod modifiers;
mod table;

use std::sync::OnceLock;

use rustc_hash::FxHashMap;

pub use decode::{Encoding, split_suffix};
pub use modifiers::{Dpp, DstUnused, Modifiers, OutputScale, Select};
pub use table::Opcode;

/// What the table says of an instruction.
#[derive(Clone, Copy, Debug)]
pub struct Info {
    pub name: &'static str,
    pub row: Row,
}

/// One row of the table.
#[derive(Clone, Copy, Debug)]
pub struct Row {
    pub format: Format,
    pub results: &'static [Ty],
    pub sources: &'static [Ty],
    pub flags: Flags,
}

/// How an instruction is encoded, which says the unit it runs on.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Format {
    Sop1,
    Sop2,
    Sopk,
    Sopc,
    /// Control: branches, waits, barriers.
    Sopp,
    Smem,
    Vop1,
    Vop2,
    Vop3,
    Vopc,
    Vop3p,
    Mfma,
    Ds,
    Mubuf,
    Global,
    Flat,
    Scratch,
}

/// What an operand holds.
#[expect(non_camel_case_types, reason = "types are spelled as in the table")]
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Ty {
    b16,
    b32,
    b64,
    b96,
    b128,
    b192,
    b256,
    b512,
    b1024,
    f16,
    f32,
    f64,
    /// Two halves of one register, each a float of 16 bits.
    p16,
    i16x2,
    /// Two registers, each a float.
    f32x2,
    /// A float of 32 bits, or a half of a register, as `op_sel_hi` says.
    mix,
    /// Elements of 8, 6 or 4 bits: as many registers as `cbsz` and `blgp` ask for.
    mx,
    /// A bit a lane.
    mask,
    /// Data that takes less than a register in memory: zeros or signs above it.
    u8,
    i8,
    u16,
    i16,
    /// Halves of a register whose other half is kept.
    lo16,
    hi16,
    u8lo,
    u8hi,
    i8lo,
    i8hi,
    /// An address in LDS.
    addr,
    /// A lane's address or offset, or `off`.
    vaddr,
    /// A wave's address, or `off`.
    saddr,
    label,
    imm,
}

impl Ty {
    /// Registers of 32 bits that hold it. Elements of less than a byte say it by their instruction.
    pub const fn registers(self) -> u16 {
        match self {
            Ty::b64 | Ty::f64 | Ty::f32x2 | Ty::mask => 2,
            Ty::b96 => 3,
            Ty::b128 => 4,
            Ty::b192 => 6,
            Ty::b256 | Ty::mx => 8,
            Ty::b512 => 16,
            Ty::b1024 => 32,
            Ty::label | Ty::imm => 0,
            _ => 1,
        }
    }

    /// Bytes of memory that a lane moves with it.
    pub const fn bytes(self) -> u32 {
        match self {
            Ty::u8 | Ty::i8 | Ty::u8lo | Ty::u8hi | Ty::i8lo | Ty::i8hi => 1,
            Ty::u16 | Ty::i16 | Ty::lo16 | Ty::hi16 => 2,
            other => other.registers() as u32 * 4,
        }
    }
}

/// What an instruction touches or is, besides its operands.
#[derive(Clone, Copy, Debug, PartialEq, Eq)]
pub struct Flags(u16);

impl Flags {
    pub const NONE: Flags = Flags(0);
    pub const SCC_IN: Flags = Flags(1);
    pub const SCC_OUT: Flags = Flags(1 << 1);
    pub const VCC_IN: Flags = Flags(1 << 2);
    pub const EXEC_IN: Flags = Flags(1 << 3);
    pub const EXEC_OUT: Flags = Flags(1 << 4);
    /// The destination is also a source.
    pub const KEEPS: Flags = Flags(1 << 5);
    /// A vector instruction whose result is one value a wave.
    pub const SCALAR_RESULT: Flags = Flags(1 << 6);
    /// Runs on the transcendental unit, at a quarter of the rate.
    pub const TRANS: Flags = Flags(1 << 7);
    /// Works on doubles.
    pub const DOUBLE: Flags = Flags(1 << 8);
    /// Wide integer arithmetic, at a quarter of the rate.
    pub const QUARTER: Flags = Flags(1 << 9);
    /// Reads and writes memory at once.
    pub const ATOMIC: Flags = Flags(1 << 10);
    /// A load to LDS whose name says so.
    pub const LDS_COPY: Flags = Flags(1 << 11);
    /// A dot product of the vector unit.
    pub const DOT: Flags = Flags(1 << 12);

    pub const fn with(self, other: Flags) -> Flags {
        Flags(self.0 | other.0)
    }

    pub const fn has(self, other: Flags) -> bool {
        self.0 & other.0 == other.0
    }
}

impl Opcode {
    pub fn info(self) -> &'static Info {
        &table::INFO[self as usize]
    }

    pub fn name(self) -> &'static str {
        self.info().name
    }

    pub fn format(self) -> Format {
        self.info().row.format
    }

    pub fn results(self) -> &'static [Ty] {
        self.info().row.results
    }

    pub fn sources(self) -> &'static [Ty] {
        self.info().row.sources
    }

    pub fn is(self, flag: Flags) -> bool {
        self.info().row.flags.has(flag)
    }

    /// The instruction of this name, without the suffix of its encoding.
    pub fn named(name: &str) -> Option<Opcode> {
        static NAMES: OnceLock<FxHashMap<&'static str, Opcode>> = OnceLock::new();
        let names = NAMES.get_or_init(|| Opcode::ALL.iter().map(|op| (op.name(), *op)).collect());
        names.get(name).copied()
    }

    /// Runs on the vector unit, the matrix instructions not included.
    pub fn is_valu(self) -> bool {
        matches!(
            self.format(),
            Format::Vop1 | Format::Vop2 | Format::Vop3 | Format::Vopc | Format::Vop3p
        )
    }

    pub fn is_salu(self) -> bool {
        matches!(
            self.format(),
            Format::Sop1 | Format::Sop2 | Format::Sopk | Format::Sopc
        )
    }

    pub fn is_mfma(self) -> bool {
        self.format() == Format::Mfma
    }

    /// A memory instruction of the vector units: through a resource, an address, or private.
    pub fn is_vector_memory(self) -> bool {
        matches!(
            self.format(),
            Format::Mubuf | Format::Global | Format::Flat | Format::Scratch
        ) && !self.is_cache()
    }

    /// An LDS access of two places: what its two offsets count, in bytes.
    pub fn pair_unit(self) -> Option<u32> {
        use Opcode::*;
        match self {
            ds_read2_b32 | ds_write2_b32 | ds_wrxchg2_rtn_b32 => Some(4),
            ds_read2_b64 | ds_write2_b64 | ds_wrxchg2_rtn_b64 => Some(8),
            ds_read2st64_b32 | ds_write2st64_b32 | ds_wrxchg2st64_rtn_b32 => Some(4 * 64),
            ds_read2st64_b64 | ds_write2st64_b64 | ds_wrxchg2st64_rtn_b64 => Some(8 * 64),
            _ => None,
        }
    }

    /// Bits of an element of an LDS read that turns a tile.
    pub fn transposed_bits(self) -> Option<u32> {
        match self {
            Opcode::ds_read_b64_tr_b16 => Some(16),
            Opcode::ds_read_b64_tr_b8 => Some(8),
            Opcode::ds_read_b96_tr_b6 => Some(6),
            Opcode::ds_read_b64_tr_b4 => Some(4),
            _ => None,
        }
    }

    /// Cache maintenance.
    pub fn is_cache(self) -> bool {
        matches!(
            self,
            Opcode::buffer_inv | Opcode::buffer_wbl2 | Opcode::s_dcache_inv | Opcode::s_dcache_wb
        )
    }

    /// The cycles that a matrix instruction holds its unit: 4 a pass. `small` says that both
    /// operands of an `f8f6f4` form have elements of less than 8 bits. CDNA4 manual, table of
    /// matrix instructions; CDNA3 manual where gfx950 has no such form.
    pub fn mfma_passes(self, gfx950: bool, small: bool) -> Option<u32> {
        use Opcode::*;
        let passes = match self {
            v_mfma_f32_4x4x1_16b_f32
            | v_mfma_f32_4x4x4_16b_f16
            | v_mfma_f32_4x4x4_16b_bf16
            | v_mfma_i32_4x4x4_16b_i8 => 2,
            v_mfma_f32_16x16x16_f16
            | v_mfma_f32_16x16x16_bf16
            | v_mfma_f32_16x16x32_f16
            | v_mfma_f32_16x16x32_bf16
            | v_mfma_i32_16x16x32_i8
            | v_mfma_i32_16x16x64_i8
            | v_mfma_f32_16x16x32_fp8_fp8
            | v_mfma_f32_16x16x32_fp8_bf8
            | v_mfma_f32_16x16x32_bf8_fp8
            | v_mfma_f32_16x16x32_bf8_bf8
            | v_mfma_f64_4x4x4_4b_f64
            | v_mfma_f32_16x16x8_xf32 => 4,
            v_mfma_f32_16x16x128_f8f6f4 | v_mfma_scale_f32_16x16x128_f8f6f4 => {
                if small {
                    4
                } else {
                    8
                }
            }
            v_mfma_f32_32x32x64_f8f6f4 | v_mfma_scale_f32_32x32x64_f8f6f4 => {
                if small {
                    8
                } else {
                    16
                }
            }
            v_mfma_f32_32x32x8_f16
            | v_mfma_f32_32x32x8_bf16
            | v_mfma_f32_32x32x16_f16
            | v_mfma_f32_32x32x16_bf16
            | v_mfma_i32_32x32x16_i8
            | v_mfma_i32_32x32x32_i8
            | v_mfma_f32_32x32x16_fp8_fp8
            | v_mfma_f32_32x32x16_fp8_bf8
            | v_mfma_f32_32x32x16_bf8_fp8
            | v_mfma_f32_32x32x16_bf8_bf8
            | v_mfma_f32_16x16x4_f32
            | v_mfma_f32_16x16x1_4b_f32
            | v_mfma_f32_16x16x4_4b_f16
            | v_mfma_f32_16x16x4_4b_bf16
            | v_mfma_f32_32x32x4_xf32 => 8,
            v_mfma_f64_16x16x4_f64 => {
                if gfx950 {
                    16
                } else {
                    8
                }
            }
            v_mfma_f32_32x32x2_f32
            | v_mfma_f32_32x32x1_2b_f32
            | v_mfma_f32_32x32x4_2b_f16
            | v_mfma_f32_32x32x4_2b_bf16 => 16,
            v_mfma_i32_16x16x4_4b_i8 => 8,
            v_mfma_i32_32x32x4_2b_i8 => 16,
            // Those that leave half of an operand out add to their result.
            _ if self.is_mfma() && self.is(Flags::KEEPS) => match self.results() {
                [Ty::b512] => 8,
                _ => 4,
            },
            _ => return None,
        };
        Some(passes)
    }

    /// The multiplications and additions of a matrix instruction: twice its shape, which is in
    /// its name, with the number of blocks behind it (`v_mfma_f32_32x32x4_2b_f16`).
    pub fn mfma_operations(self) -> Option<u64> {
        if !self.is_mfma() {
            return None;
        }
        let mut words = self.name().split('_');
        let shape = words.find(|word| word.contains('x') && word.starts_with(char::is_numeric))?;
        let mut product = 2;
        for side in shape.split('x') {
            product *= side.parse::<u64>().ok()?;
        }
        let blocks = words.next().and_then(|word| word.strip_suffix('b'));
        Some(product * blocks.and_then(|n| n.parse().ok()).unwrap_or(1))
    }
}

#[cfg(test)]
mod tests {
    use super::Opcode;

    #[test]
    fn operations_of_matrix_instructions() {
        for (op, want) in [
            (Opcode::v_mfma_f32_16x16x32_bf16, 16 * 16 * 32 * 2),
            (Opcode::v_mfma_f32_32x32x4_2b_f16, 32 * 32 * 4 * 2 * 2),
            (Opcode::v_mfma_scale_f32_16x16x128_f8f6f4, 16 * 16 * 128 * 2),
            (Opcode::v_mfma_f32_16x16x8_xf32, 16 * 16 * 8 * 2),
        ] {
            assert_eq!(op.mfma_operations(), Some(want), "{}", op.name());
        }
        assert_eq!(Opcode::v_add_f32.mfma_operations(), None);
        // Every matrix instruction says how much it does.
        let matrix = Opcode::ALL.iter().filter(|op| op.is_mfma());
        assert!(matrix.clone().all(|op| op.mfma_operations().is_some()));
    }
}
