//! A closed form as a formula people read: `i*64 + (i%8 ^ j/8)*8 + j%8`.

use tilewright_ir::{BinOp, DType, Expr, ExprKind, Var};

use crate::Fragment;
use crate::{Layout, to_expr};

/// A formula for each output of a layout, over the named dimensions. `None` when it has no
/// closed form over its shape.
pub fn formulas(layout: &Layout, names: &[&str]) -> Option<Vec<String>> {
    let count = layout.shape().len() as u32;
    let index: Vec<Expr> = (0..count)
        .map(|v| Expr::var(Var::from_u32(v), DType::I64))
        .collect();
    let outs = to_expr::layout(layout, &index)?;
    outs.iter().map(|e| write(e, names, 0)).collect()
}

/// Binding strength: XOR binds weaker than the rest here, so it is always in parentheses.
fn strength(op: BinOp) -> Option<(u8, &'static str)> {
    Some(match op {
        BinOp::BitXor => (1, " ^ "),
        BinOp::Add => (2, " + "),
        BinOp::Sub => (2, " - "),
        BinOp::Mul => (3, "*"),
        BinOp::FloorDiv => (3, "/"),
        BinOp::FloorMod => (3, "%"),
        _ => return None,
    })
}

fn write(e: &Expr, names: &[&str], outer: u8) -> Option<String> {
    match e.kind() {
        ExprKind::Int(value) => Some(value.to_string()),
        ExprKind::Var(var) => names.get(var.as_u32() as usize).map(|n| (*n).to_owned()),
        ExprKind::Binary(op, a, b) => {
            let (own, sign) = strength(*op)?;
            // The right side binds one tighter: `a - (b + c)` and `a / (b % c)` keep theirs.
            let text = format!(
                "{}{sign}{}",
                write(a, names, own)?,
                write(b, names, own + 1)?
            );
            Some(if own < outer {
                format!("({text})")
            } else {
                text
            })
        }
        _ => None,
    }
}

/// `thread = …, slot = …`.
pub(super) fn fragment_formula(fragment: &Fragment) -> Option<String> {
    let formulas = formulas(fragment.layout(), &names(fragment.shape().len(), true))?;
    let [thread, slot] = formulas.as_slice() else {
        return None;
    };
    Some(format!("thread = {thread}, slot = {slot}"))
}

/// The place of a layout, all outputs in a row.
pub(super) fn layout_formula(layout: &Layout) -> Option<String> {
    let formulas = formulas(layout, &names(layout.shape().len(), false))?;
    Some(formulas.join(", "))
}

/// The names of the dimensions of a tensor, enough for any rank that is drawn.
fn names(rank: usize, copies: bool) -> Vec<&'static str> {
    const NAMES: [&str; 8] = ["i", "j", "k", "l", "m", "n", "p", "q"];
    let mut names: Vec<&str> = NAMES.iter().copied().cycle().take(rank).collect();
    if copies {
        names.push("r");
    }
    names
}
