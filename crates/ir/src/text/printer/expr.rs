//! Expressions, with an explicit stack in place of recursion: any depth prints.

use crate::dtype::DType;
use crate::expr::{BinOp, Expr, ExprKind, UnOp};
use crate::ids::Buffer;
use crate::text::names::Entity;
use crate::text::printer::Printer;
use crate::text::{Spelling, implied_dtype, spelling};

/// An expression of more nodes is not written out: sharing makes expressions that no disk
/// would hold.
const MAX_PRINTED: u32 = 10_000_000;

/// Tighter than any operator.
const ATOM: u8 = 100;

enum Item<'e> {
    /// An expression, in parentheses if its operator binds looser than this.
    Expr(&'e Expr, u8),
    Text(&'static str),
    Owned(String),
    Buffer(Buffer),
}

impl Printer<'_> {
    /// An expression where any may stand.
    pub(in crate::text) fn expr(&mut self, expr: &Expr) {
        self.expr_items(Item::Expr(expr, 0));
    }

    /// An expression that is one operand, in parentheses if need be.
    pub(super) fn atom(&mut self, expr: &Expr) {
        self.expr_items(Item::Expr(expr, ATOM));
    }

    fn expr_items(&mut self, root: Item<'_>) {
        if let Item::Expr(e, _) = &root
            && e.size() > MAX_PRINTED
        {
            return self.put_fmt(format_args!("expression_of({})", e.size()));
        }
        let mut pending = vec![root];
        while let Some(item) = pending.pop() {
            match item {
                Item::Text(text) => self.put(text),
                Item::Owned(text) => self.put(&text),
                Item::Buffer(buffer) => self.buffer(buffer),
                Item::Expr(expr, least) => {
                    let first = pending.len();
                    self.expr_parts(expr, least, &mut pending);
                    pending[first..].reverse();
                }
            }
        }
    }

    /// The pieces of one node, in order.
    fn expr_parts<'e>(&self, expr: &'e Expr, least: u8, out: &mut Vec<Item<'e>>) {
        let dtype = expr.dtype();
        // The parser finds types by itself; a node that has another one says so.
        let implied = implied_dtype(self.func, expr);
        let (open, close) = if implied.is_some_and(|t| t != dtype) {
            out.push(Item::Owned(format!("typed<{dtype}>")));
            ("(", ")")
        } else if loosest(expr) < least {
            ("(", ")")
        } else {
            ("", "")
        };
        out.push(Item::Text(open));
        match expr.kind() {
            ExprKind::Int(value) => out.push(Item::Owned(int_text(*value, dtype))),
            ExprKind::Float(value) => out.push(Item::Owned(float_text(value.0, dtype))),
            ExprKind::Var(var) => out.push(Item::Owned(self.names.text(Entity::Var(*var)))),
            ExprKind::Load { buffer, indices } => {
                out.push(Item::Buffer(*buffer));
                out.push(Item::Text("["));
                list(indices, out);
                out.push(Item::Text("]"));
            }
            ExprKind::AddressOf { buffer, indices } => {
                out.push(Item::Text("address_of("));
                out.push(Item::Buffer(*buffer));
                out.push(Item::Text("["));
                list(indices, out);
                out.push(Item::Text("])"));
            }
            ExprKind::Unary(op, a) => {
                out.push(Item::Text(match op {
                    UnOp::Not => "!",
                    UnOp::BitNot => "~",
                }));
                out.push(Item::Expr(a, ATOM - 1));
            }
            ExprKind::Binary(op, a, b) => binary(*op, a, b, out),
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => call("select", [cond, then, otherwise], out),
            ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => call("if_then_else", [cond, then, otherwise], out),
            ExprKind::Cast(a) => {
                out.push(Item::Owned(dtype.to_string()));
                call("", [a], out);
            }
            ExprKind::Reinterpret(a) => {
                out.push(Item::Owned(format!("reinterpret<{dtype}>")));
                call("", [a], out);
            }
            ExprKind::Math(f, args) => call(f.name(), args, out),
            ExprKind::Ramp { base, stride } => {
                out.push(Item::Text("ramp("));
                list([base, stride], out);
                out.push(Item::Owned(format!(", {})", dtype.lanes)));
            }
            ExprKind::Broadcast(a) => {
                out.push(Item::Text("broadcast("));
                list([a], out);
                out.push(Item::Owned(format!(", {})", dtype.lanes)));
            }
            ExprKind::Lane { vector, lane } => {
                out.push(Item::Text("lane("));
                list([vector], out);
                out.push(Item::Owned(format!(", {lane})")));
            }
        }
        out.push(Item::Text(close));
    }
}

/// How loosely the text of a node binds.
fn loosest(expr: &Expr) -> u8 {
    match expr.kind() {
        ExprKind::Binary(op, ..) => match spelling(*op) {
            Spelling::Infix(_, level) => level,
            Spelling::Call(_) => ATOM,
        },
        ExprKind::Unary(..) => ATOM - 1,
        _ => ATOM,
    }
}

fn binary<'e>(op: BinOp, a: &'e Expr, b: &'e Expr, out: &mut Vec<Item<'e>>) {
    let (sign, level) = match spelling(op) {
        Spelling::Infix(sign, level) => (sign, level),
        Spelling::Call(name) => return call(name, [a, b], out),
    };
    // Comparisons do not chain, so both sides of one are tighter.
    let left = level + op.is_comparison() as u8;
    out.push(Item::Expr(a, left));
    out.push(Item::Text(" "));
    out.push(Item::Text(sign));
    out.push(Item::Text(" "));
    out.push(Item::Expr(b, level + 1));
}

fn call<'e>(name: &'static str, args: impl IntoIterator<Item = &'e Expr>, out: &mut Vec<Item<'e>>) {
    out.push(Item::Text(name));
    out.push(Item::Text("("));
    list(args, out);
    out.push(Item::Text(")"));
}

fn list<'e>(items: impl IntoIterator<Item = &'e Expr>, out: &mut Vec<Item<'e>>) {
    for (i, item) in items.into_iter().enumerate() {
        if i > 0 {
            out.push(Item::Text(", "));
        }
        out.push(Item::Expr(item, 0));
    }
}

/// `5` is int32, `true` bool; other types are named.
fn int_text(value: i128, dtype: DType) -> String {
    match value {
        0 if dtype == DType::BOOL => "false".to_string(),
        1 if dtype == DType::BOOL => "true".to_string(),
        _ if dtype == DType::I32 => value.to_string(),
        _ => format!("{value}:{dtype}"),
    }
}

/// `1.5` is float32; other types are named. The digits are the fewest that give back the
/// same f64, and a NaN that is not the usual one shows its bits.
fn float_text(value: f64, dtype: DType) -> String {
    let text = float_digits(value);
    if dtype == DType::F32 {
        text
    } else {
        format!("{text}:{dtype}")
    }
}

pub(super) fn float_digits(value: f64) -> String {
    if value.to_bits() == f64::NAN.to_bits() {
        "nan".to_string()
    } else if value.is_nan() {
        format!("nan({:#x})", value.to_bits())
    } else {
        format!("{value:?}")
    }
}
