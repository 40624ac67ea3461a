//! Wait states that inline assembly must keep by itself.
//!
//! The compiler puts `s_nop`s where two of its own instructions come too close, and does not look
//! inside inline assembly. Two hazards matter to the forms that we emit (CDNA3 and CDNA4 manuals,
//! manually inserted wait states):
//!
//! - a vector instruction writes a scalar register, a memory instruction reads it: 5 states;
//! - a scalar instruction writes m0, a copy to LDS reads it: 1 state.
//!
//! Only the last write of a register counts. A scalar instruction that overwrites what a vector
//! instruction wrote waits for that by itself, so behind it the first hazard is over.
//!
//! The look back follows the text within one block: what comes before a label is another block,
//! and a branch alone takes longer than these states.

use crate::asm::{Function, Instruction, Register, RegisterFile};
use crate::isa::Opcode;

use super::{Finding, Kind, finding};

const VALU_SCALAR_TO_MEMORY: u32 = 5;
const M0_TO_COPY: u32 = 1;

pub(super) fn check(function: &Function, findings: &mut Vec<Finding>) {
    let starts: std::collections::BTreeSet<usize> = function.labels.values().copied().collect();
    for (index, instruction) in function.instructions.iter().enumerate() {
        if !instruction.inline || !instruction.op.is_vector_memory() {
            continue;
        }
        let mut reads = instruction.access().reads;
        let mut states = 0;
        for before in (0..index).rev() {
            if states >= VALU_SCALAR_TO_MEMORY || starts.contains(&(before + 1)) {
                break;
            }
            let Some(earlier) = function.instructions.get(before) else {
                break;
            };
            if let Some(reason) = conflict(earlier, &reads, states) {
                findings.push(finding(Kind::Hazard, instruction, reason));
                break;
            }
            let written = earlier.access().writes;
            reads.retain(|register| !written.contains(register));
            states += states_of(earlier);
        }
    }
}

/// Why `earlier`, `states` wait states ago, is too close.
fn conflict(earlier: &Instruction, reads: &[Register], states: u32) -> Option<String> {
    let writes = earlier.access().writes;
    let hit = writes.iter().find(|register| reads.contains(register))?;
    let scalar = matches!(
        hit.file,
        RegisterFile::Scalar | RegisterFile::Vcc | RegisterFile::M0
    );
    let needed = match hit.file {
        _ if earlier.is_valu() && scalar => VALU_SCALAR_TO_MEMORY,
        RegisterFile::M0 => M0_TO_COPY,
        _ => return None,
    };
    (states < needed).then(|| {
        format!(
            "{hit} is written on line {} by `{}`, {states} wait states before; {needed} are needed",
            earlier.line,
            earlier.op.name()
        )
    })
}

fn states_of(instruction: &Instruction) -> u32 {
    match (instruction.op, instruction.operands.first()) {
        (Opcode::s_nop, Some(crate::asm::Operand::Integer(n))) => {
            u32::try_from(*n).unwrap_or(0).saturating_add(1)
        }
        _ => 1,
    }
}
