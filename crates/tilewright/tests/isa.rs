//! The table of instructions against the assembler: an instruction of every row, with the operands
//! that the row says, is taken for gfx942 or for gfx950. No GPU is needed, clang is.

use std::collections::BTreeSet;
use std::fmt::Write as _;
use std::process::Command;

use tilewright::gfx9::isa::{Flags, Format, Opcode, Ty};
use tilewright::runtime::env::Env;
use tilewright::runtime::toolchain::AmdClang;

/// Registers that follow each other, aligned as their number asks for.
struct Next(u16);

impl Next {
    fn registers(&mut self, file: char, count: u16) -> String {
        let align = if count > 1 { count.clamp(2, 4) } else { 1 };
        let first = self.0.next_multiple_of(if count == 3 { 4 } else { align });
        self.0 = first + count;
        match count {
            1 => format!("{file}{first}"),
            _ => format!("{file}[{first}:{}]", first + count - 1),
        }
    }
}

fn operand(op: Opcode, ty: Ty, index: usize, result: bool, next: &mut Next) -> String {
    use Opcode::*;
    let format = op.format();
    let sources = op.sources().len();
    let from_end = if result { usize::MAX } else { sources - index };
    let literal = match op {
        v_fmamk_f32 | v_madmk_f16 => Some(1),
        v_fmaak_f32 | v_madak_f16 => Some(2),
        _ => None,
    };
    let fixed = match (op, ty) {
        (_, Ty::label) => "0",
        (s_getreg_b32 | s_setreg_b32 | s_setreg_imm32_b32, Ty::imm) if index == 0 => {
            "hwreg(HW_REG_MODE, 0, 1)"
        }
        (_, Ty::imm) => "1",
        (_, Ty::mask) => "vcc",
        (_, Ty::vaddr) if format == Format::Scratch => "off",
        (_, Ty::saddr) => match format {
            Format::Scratch => "s0",
            _ => "off",
        },
        (_, Ty::b128) if format == Format::Mubuf && from_end == 2 => "s[4:7]",
        (_, Ty::b32) if format == Format::Mubuf && from_end == 1 => "s8",
        (v_readlane_b32, _) if !result && index == 1 => "s5",
        (v_writelane_b32, _) if !result && index == 0 => "s5",
        (v_writelane_b32, _) if !result => "3",
        (v_accvgpr_read_b32, _) if !result => "a0",
        (v_accvgpr_write_b32, _) if result => "a0",
        (v_accvgpr_mov_b32, _) => "a0",
        _ if !result && literal == Some(index) => "0x5140",
        _ => "",
    };
    if !fixed.is_empty() {
        return fixed.to_owned();
    }
    let scalar = op.is_salu() || format == Format::Smem || (result && op.is(Flags::SCALAR_RESULT));
    let count = match ty {
        Ty::vaddr if format == Format::Mubuf => 1,
        Ty::vaddr => 2,
        _ => ty.registers(),
    };
    next.registers(if scalar { 's' } else { 'v' }, count)
}

fn text(op: Opcode) -> String {
    use Opcode::*;
    let mut next = Next(0);
    let mut operands = Vec::new();
    for (index, ty) in op.results().iter().enumerate() {
        operands.push(operand(op, *ty, index, true, &mut next));
    }
    for (index, ty) in op.sources().iter().enumerate() {
        operands.push(operand(op, *ty, index, false, &mut next));
    }
    let mut text = format!("{} {}", op.name(), operands.join(", "));
    text += match op {
        _ if op.format() == Format::Mubuf && !op.is_cache() => " offen",
        v_bitop3_b32 | v_bitop3_b16 => " bitop3:0x80",
        ds_swizzle_b32 => " offset:0x8000",
        s_waitcnt => " vmcnt(0)",
        s_nop | s_sethalt | s_sleep | s_setprio | s_trap | s_sendmsg | s_sendmsghalt
        | s_incperflevel | s_decperflevel | s_setkill | s_set_gpr_idx_mode => " 0",
        _ => "",
    };
    text
}

#[test]
fn every_row_is_an_instruction() {
    let clang = AmdClang::find(&Env::process()).unwrap_or_else(|missing| {
        panic!("this test needs clang: run scripts/setup-clang\n{missing}")
    });
    let folder = tempfile::tempdir().unwrap();
    let file = folder.path().join("rows.s");
    let rows: Vec<String> = Opcode::ALL.iter().map(|op| text(*op)).collect();
    std::fs::write(&file, rows.join("\n") + "\n").unwrap();
    let refused = |arch: &str| -> BTreeSet<usize> {
        let output = Command::new(clang.path())
            .args(["-target", "amdgcn-amd-amdhsa", "-c", "-x", "assembler"])
            .arg(format!("-mcpu={arch}"))
            .arg(&file)
            .args(["-o", "/dev/null"])
            .output()
            .unwrap();
        let told = String::from_utf8_lossy(&output.stderr);
        let line = |told: &str| -> Option<usize> {
            let (_, rest) = told.split_once("rows.s:")?;
            let (place, what) = rest.split_once(": ")?;
            what.starts_with("error")
                .then(|| place.split(':').next()?.parse().ok())?
        };
        told.lines().filter_map(line).collect()
    };
    let (gfx942, gfx950) = (refused("gfx942"), refused("gfx950"));
    let mut wrong = String::new();
    for (index, row) in rows.iter().enumerate() {
        if gfx942.contains(&(index + 1)) && gfx950.contains(&(index + 1)) {
            let _ = writeln!(wrong, "{row}");
        }
    }
    assert_eq!(wrong, "");
    // The test would see a row that is none: each machine lacks some of the other's.
    assert!(!gfx942.is_empty() && !gfx950.is_empty());
}
