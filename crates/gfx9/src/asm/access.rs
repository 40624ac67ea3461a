//! Which registers an instruction reads and writes, and which counter tells that it is done.
//!
//! The table of instructions says it; the operands say which registers. `exec`, which every vector
//! instruction reads, is listed only where an instruction works on it.

use crate::isa::{Flags, Format, Opcode, Ty};

use super::operand::{Register, RegisterFile, Registers};
use super::{Instruction, Operand};

/// How an instruction's end is counted.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Counter {
    /// `vmcnt`, in the order of issue: buffer and global memory, copies to LDS included.
    Vector,
    /// `lgkmcnt`, in the order of issue: LDS and lane permutations.
    Lds,
    /// `lgkmcnt` in any order: scalar loads.
    Scalar,
    /// Both counters: flat addresses.
    Flat,
}

/// What an instruction does to registers.
#[derive(Clone, Debug, Default, PartialEq, Eq)]
pub struct Access {
    pub reads: Vec<Register>,
    pub writes: Vec<Register>,
    /// The registers among `reads` that hold each lane's own memory address.
    pub addresses: Vec<Register>,
    pub counter: Option<Counter>,
}

/// What an instruction does with an operand.
#[derive(Clone, Copy, Debug, PartialEq, Eq, Hash)]
pub enum Use {
    Read,
    Write,
    /// The destination is also a source.
    Both,
}

impl Instruction {
    pub fn access(&self) -> Access {
        let mut access = Access {
            counter: self.counter(),
            ..Access::default()
        };
        self.each_use(|registers, how| {
            if how != Use::Read {
                access.writes.extend(registers.iter());
            }
            if how != Use::Write {
                access.reads.extend(registers.iter());
            }
        });
        if let Some(index) = self.address_operand()
            && let Some(registers) = self.operands.get(index).and_then(Operand::registers)
            && registers.file == RegisterFile::Vector
        {
            access.addresses.extend(registers.iter());
        }
        access
    }

    /// Shows every run of registers that the instruction reads or writes, the operands first.
    pub fn each_use(&self, mut show: impl FnMut(Registers, Use)) {
        let written = self.destinations();
        for (index, operand) in self.operands.iter().enumerate() {
            let Some(registers) = operand.registers() else {
                continue;
            };
            let how = match index < written {
                true if self.keeps_destination() => Use::Both,
                true => Use::Write,
                false => Use::Read,
            };
            show(registers, how);
        }
        let whole = |file, count| Registers {
            file,
            first: 0,
            count,
        };
        if self.is_lds_copy() {
            show(whole(RegisterFile::M0, 1), Use::Read);
        }
        for (flag, file, count, how) in [
            (Flags::SCC_IN, RegisterFile::Scc, 1, Use::Read),
            (Flags::VCC_IN, RegisterFile::Vcc, 2, Use::Read),
            (Flags::EXEC_IN, RegisterFile::Exec, 2, Use::Read),
            (Flags::SCC_OUT, RegisterFile::Scc, 1, Use::Write),
            (Flags::EXEC_OUT, RegisterFile::Exec, 2, Use::Write),
        ] {
            if self.op.is(flag) {
                show(whole(file, count), how);
            }
        }
    }

    /// The counter that the instruction raises when it is issued.
    pub fn counter(&self) -> Option<Counter> {
        // Cache maintenance is counted as memory on gfx94x, and has no registers to wait for.
        if self.op.is_cache() {
            return None;
        }
        match self.op.format() {
            Format::Mubuf | Format::Global | Format::Scratch => Some(Counter::Vector),
            Format::Flat => Some(Counter::Flat),
            Format::Ds => (self.op != Opcode::ds_nop).then_some(Counter::Lds),
            Format::Smem => Some(Counter::Scalar),
            _ => None,
        }
    }

    /// The operand that holds the lanes' addresses.
    pub fn address_operand(&self) -> Option<usize> {
        let is_address = |ty: &Ty| matches!(ty, Ty::addr | Ty::vaddr);
        let at = match self.op.format() {
            Format::Flat => 0,
            _ => self.op.sources().iter().position(is_address)?,
        };
        // An atomic through a resource names its data once, for both ways.
        let shared = self.op.format() == Format::Mubuf && self.op.is(Flags::ATOMIC);
        Some(at + if shared { 0 } else { self.destinations() })
    }
}

#[cfg(test)]
mod tests {
    use super::super::parse;
    use super::*;

    fn access(code: &str) -> Access {
        let program = parse(&format!("f:\n\t{code}\n")).unwrap();
        program.functions[0].instructions[0].access()
    }

    fn names(registers: &[Register]) -> String {
        let names: Vec<String> = registers.iter().map(ToString::to_string).collect();
        names.join(" ")
    }

    #[test]
    fn reads_writes_and_addresses() {
        for (code, writes, reads, addresses) in [
            ("v_add_u32_e32 v1, s2, v3", "v1", "s2 v3", ""),
            (
                "v_add_co_u32_e32 v1, vcc, v2, v3",
                "v1 vcc vcc",
                "v2 v3",
                "",
            ),
            ("v_fmac_f32_e32 v1, v2, v3", "v1", "v1 v2 v3", ""),
            (
                "v_mfma_f32_16x16x32_bf16 v[0:3], v[4:7], v[8:11], 0",
                "v0 v1 v2 v3",
                "v4 v5 v6 v7 v8 v9 v10 v11",
                "",
            ),
            ("v_readfirstlane_b32 s0, v0", "s0", "v0", ""),
            (
                "ds_read_b128 v[0:3], v9 offset:16",
                "v0 v1 v2 v3",
                "v9",
                "v9",
            ),
            ("ds_write_b64 v9, v[0:1]", "", "v9 v0 v1", "v9"),
            ("ds_bpermute_b32 v1, v2, v3", "v1", "v2 v3", ""),
            (
                "buffer_load_dwordx2 v[4:5], v1, s[0:3], s4 offen",
                "v4 v5",
                "v1 s0 s1 s2 s3 s4",
                "v1",
            ),
            (
                "buffer_load_dwordx4 v1, s[0:3], s4 offen lds",
                "",
                "v1 s0 s1 s2 s3 s4 m0",
                "v1",
            ),
            (
                "buffer_store_short v4, v1, s[0:3], 0 offen",
                "",
                "v4 v1 s0 s1 s2 s3",
                "v1",
            ),
            ("global_load_dword v1, v[2:3], off", "v1", "v2 v3", "v2 v3"),
            (
                "global_store_dword v[2:3], v1, off",
                "",
                "v2 v3 v1",
                "v2 v3",
            ),
            (
                "global_atomic_add v1, v[2:3], v4, off sc0",
                "v1",
                "v2 v3 v4",
                "v2 v3",
            ),
            ("global_atomic_add v0, v4, s[0:1]", "", "v0 v4 s0 s1", "v0"),
            ("s_load_dwordx2 s[4:5], s[0:1], 0x10", "s4 s5", "s0 s1", ""),
            ("s_cmp_eq_u32 s1, s2", "scc", "s1 s2", ""),
            ("s_add_i32 m0, s24, 0x2000", "m0 scc", "s24", ""),
        ] {
            let got = access(code);
            assert_eq!(names(&got.writes), writes, "{code}");
            assert_eq!(names(&got.reads), reads, "{code}");
            assert_eq!(names(&got.addresses), addresses, "{code}");
        }
    }

    #[test]
    fn counters() {
        for (code, want) in [
            (
                "buffer_load_dword v1, s[0:3], 0 offen lds",
                Some(Counter::Vector),
            ),
            ("ds_read_b64_tr_b16 v[0:1], v2", Some(Counter::Lds)),
            ("ds_bpermute_b32 v1, v2, v3", Some(Counter::Lds)),
            ("s_load_dword s0, s[2:3], 0x0", Some(Counter::Scalar)),
            ("flat_load_dword v0, v[2:3]", Some(Counter::Flat)),
            ("buffer_wbl2 sc1", None),
            ("v_mov_b32_e32 v0, 0", None),
        ] {
            assert_eq!(access(code).counter, want, "{code}");
        }
    }
}
