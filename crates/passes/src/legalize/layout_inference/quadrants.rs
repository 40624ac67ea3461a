//! Who owns which part of a product's sum, where nobody says.
//!
//! Orders that bring tiles in parts take C in parts along M and N, and want every wave to own a piece of each:
//! then a part of A or B serves all waves. The others that are tried do as well by that as by one piece a
//! wave, so a product whose loop asks for no order has it wherever its instructions divide the parts,
//! before an order is chosen. That is where waves copy tiles by themselves; and of the only product of a
//! kernel, which shares its sum with no other.

use tilewright_ir::{Func, GemmPlan, Scope};

use super::uses::{Use, UseKind};
use crate::legalize::gemm_plan::Choice;
use crate::legalize::gemm_tiling::tiling_by;
use crate::schedules::parts_tried;

/// Gives the kernel's product a plan by parts.
pub fn decide(func: &Func, uses: &[Use], choices: &mut [Choice]) {
    let [choice] = choices else {
        return;
    };
    let product = uses.iter().find_map(|u| match &u.kind {
        UseKind::Gemm(g) => Some((u, g)),
        _ => None,
    });
    let Some((u, g)) = product.filter(|(u, g)| u.open && g.plan.is_none()) else {
        return;
    };
    let shared = [&g.a, &g.b]
        .iter()
        .all(|operand| func.buffers[operand.buffer].scope == Scope::Shared);
    let in_one = choice.plan.parts == [1, 1] && func.buffers[g.c.buffer].layout.is_none();
    let in_parts = GemmPlan {
        parts: parts_tried(),
        ..choice.plan
    };
    if shared && in_one && tiling_by(func, g, u.threads, in_parts).is_some() {
        choice.plan = in_parts;
    }
}
