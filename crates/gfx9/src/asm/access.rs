//! Which registers an instruction reads and writes, and which counter tells that it is done.
//!
//! LLVM writes destinations first, so a table of how many there are is enough. Registers that an
//! instruction touches without naming them are listed where something here asks for them: m0 of
//! copies to LDS and vcc of branches; exec and scc are not.

use super::operand::{Register, RegisterFile};
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

impl Instruction {
    pub fn access(&self) -> Access {
        let name = self.mnemonic.as_str();
        let written = self.destinations();
        let mut access = Access {
            counter: self.counter(),
            ..Access::default()
        };
        for (index, operand) in self.operands.iter().enumerate() {
            let Some(registers) = operand.registers() else {
                continue;
            };
            if index < written {
                access.writes.extend(registers.iter());
                if self.keeps_destination() {
                    access.reads.extend(registers.iter());
                }
            } else {
                access.reads.extend(registers.iter());
            }
        }
        if let Some(index) = self.address_operand(written)
            && let Some(registers) = self.operands.get(index).and_then(Operand::registers)
            && registers.file == RegisterFile::Vector
        {
            access.addresses.extend(registers.iter());
        }
        let implicit = |file, count| (0..count).map(move |index| Register { file, index });
        if self.is_lds_copy() {
            access.reads.extend(implicit(RegisterFile::M0, 1));
        }
        if name.starts_with("s_cbranch_vcc") {
            access.reads.extend(implicit(RegisterFile::Vcc, 2));
        }
        access
    }

    /// The counter that the instruction raises when it is issued.
    pub fn counter(&self) -> Option<Counter> {
        let name = self.mnemonic.as_str();
        let any = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
        // Cache maintenance is counted as memory on gfx94x, and has no registers to wait for.
        if any(&["buffer_inv", "buffer_wbl2", "buffer_gl"]) {
            return None;
        }
        if any(&["buffer_", "tbuffer_", "global_", "scratch_"]) {
            return Some(Counter::Vector);
        }
        if any(&["flat_"]) {
            return Some(Counter::Flat);
        }
        if any(&["ds_"]) {
            return (name != "ds_nop").then_some(Counter::Lds);
        }
        if any(&[
            "s_load_",
            "s_buffer_load_",
            "s_memtime",
            "s_memrealtime",
            "s_atomic_",
        ]) {
            return Some(Counter::Scalar);
        }
        None
    }

    /// How many of the first operands are written.
    fn destinations(&self) -> usize {
        let name = self.mnemonic.as_str();
        let any = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
        if name.starts_with("s_") {
            return usize::from(!any(WITHOUT_RESULT));
        }
        if name.starts_with("v_") {
            return match () {
                () if any(&["v_nop"]) => 0,
                () if any(TWO_RESULTS) => 2,
                () => 1,
            };
        }
        if name.starts_with("ds_") {
            let result = any(&[
                "ds_read",
                "ds_bpermute",
                "ds_permute",
                "ds_swizzle",
                "ds_consume",
            ]) || any(&["ds_append", "ds_condxchg", "ds_ordered"])
                || name.contains("_rtn");
            return usize::from(result);
        }
        if name.contains("_atomic_") {
            return usize::from(self.has("sc0") || self.has("glc"));
        }
        usize::from(name.contains("_load_") && !self.is_lds_copy())
    }

    /// Whether the destination is also a source: accumulating forms, and those that write part
    /// of a register.
    fn keeps_destination(&self) -> bool {
        let name = self.mnemonic.as_str();
        let any = |prefixes: &[&str]| prefixes.iter().any(|p| name.starts_with(p));
        any(&[
            "v_mac_",
            "v_fmac_",
            "v_pk_fmac_",
            "v_madmk",
            "v_writelane",
            "v_swap_",
        ]) || any(&[
            "v_permlane16_swap",
            "v_permlane32_swap",
            "v_dot2c",
            "v_dot4c",
            "v_smfmac",
        ]) || any(&[
            "v_cvt_pk_fp8_f32",
            "v_cvt_pk_bf8_f32",
            "v_cvt_sr_fp8",
            "v_cvt_sr_bf8",
        ]) || name.contains("_d16")
            || name.contains("_atomic_")
            || (name.ends_with("_dpp") && !self.has("bound_ctrl"))
            || self.modifier("dst_unused") == Some("UNUSED_PRESERVE")
    }

    /// The operand that holds the lanes' addresses.
    fn address_operand(&self, written: usize) -> Option<usize> {
        let name = self.mnemonic.as_str();
        match self.counter()? {
            Counter::Lds => {
                let lanes = ["ds_bpermute", "ds_permute", "ds_swizzle"];
                (!lanes.iter().any(|p| name.starts_with(p))).then_some(written)
            }
            // A buffer store names the data first.
            Counter::Vector if name.starts_with("buffer_") || name.starts_with("tbuffer_") => {
                Some(if self.is_lds_copy() { 0 } else { 1 })
            }
            Counter::Vector | Counter::Flat => Some(written),
            Counter::Scalar => None,
        }
    }
}

/// Scalar instructions whose first operand is read, or that have none.
const WITHOUT_RESULT: &[&str] = &[
    "s_cmp_",
    "s_bitcmp",
    "s_branch",
    "s_cbranch_",
    "s_waitcnt",
    "s_barrier",
    "s_nop",
    "s_set",
    "s_endpgm",
    "s_sleep",
    "s_sendmsg",
    "s_icache",
    "s_dcache",
    "s_trap",
    "s_ttrace",
    "s_code_end",
    "s_store",
    "s_buffer_store",
    "s_wakeup",
    "s_incperf",
    "s_decperf",
];

/// Vector instructions that write a second operand: a carry, or both halves of an exchange.
const TWO_RESULTS: &[&str] = &[
    "v_add_co_",
    "v_sub_co_",
    "v_subrev_co_",
    "v_addc_co_",
    "v_subb_co_",
    "v_subbrev_co_",
    "v_div_scale_",
    "v_mad_u64_u32",
    "v_mad_i64_i32",
    "v_swap_",
    "v_permlane16_swap",
    "v_permlane32_swap",
];

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
                "v1 v2 v3 v4",
                "v2 v3",
            ),
            ("global_atomic_add v0, v4, s[0:1]", "", "v0 v4 s0 s1", "v0"),
            ("s_load_dwordx2 s[4:5], s[0:1], 0x10", "s4 s5", "s0 s1", ""),
            ("s_cmp_eq_u32 s1, s2", "", "s1 s2", ""),
            ("s_add_i32 m0, s24, 0x2000", "m0", "s24", ""),
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
