//! What a thread does for itself: functions of values, printing, and what only a GPU can do.

use tilewright_ir::small_float::Number;
use tilewright_ir::{Buffer, Expr, Scalar, Span, ThreadOp, thread_ops};

use super::{Code as Any, push, stray, varies};
use crate::compile::expr;
use crate::compile::names::Compiled;
use crate::compile::stmt::Builder;
use crate::error::{Eval, RunError, codes};
use crate::exec::{Exec, encode};
use crate::program::{Access, Num};
use crate::value;

#[derive(Clone, Debug)]
pub(super) enum Code {
    Dp4a {
        a: Vec<Access>,
        b: Vec<Access>,
        c: Access,
    },
    Print {
        message: String,
        args: Vec<(Num, Scalar)>,
    },
}

pub(super) fn compile(b: &mut Builder<'_, '_>, op: &ThreadOp, span: Span) -> Compiled<()> {
    let varying = varies(b, op);
    let code = match op {
        ThreadOp::Dp4a {
            a,
            a_indices,
            b: second,
            b_indices,
            c,
            c_indices,
        } => {
            let a = consecutive(b, *a, a_indices, 4, false, span)?;
            let second = consecutive(b, *second, b_indices, 4, false, span)?;
            let c = b.store_target(*c, c_indices, 0, span)?;
            b.names.reads(c.buffer);
            Code::Dp4a { a, b: second, c }
        }
        ThreadOp::Extern { name, .. } => {
            return Err(RunError::new(
                codes::FOREIGN_CODE,
                span,
                format!("`{name}` is foreign source: only a GPU can run it"),
            )
            .help("run this kernel on a GPU"));
        }
        ThreadOp::Print { message, args } => {
            let args: Compiled<Vec<_>> = args
                .iter()
                .map(|e| Ok((expr::num(b.names, e, 0)?, e.dtype().scalar)))
                .collect();
            Code::Print {
                message: message.clone(),
                args: args?,
            }
        }
        ThreadOp::SetMaxRegs { .. } => return Ok(()),
        thread_ops!(atomics lanes barriers) => return Err(stray(b)),
    };
    push(b, Any::Plain(code), varying);
    Ok(())
}

/// Elements side by side along the last dimension.
pub(super) fn consecutive(
    b: &mut Builder<'_, '_>,
    buffer: Buffer,
    indices: &[Expr],
    lanes: u16,
    written: bool,
    span: Span,
) -> Compiled<Vec<Access>> {
    let mut list = Vec::new();
    for lane in 0..lanes {
        let mut indices = indices.to_vec();
        if let Some(last) = indices.last_mut() {
            *last = last.clone() + i32::from(lane);
        }
        let access = if written {
            b.store_target(buffer, &indices, 0, span)?
        } else {
            let access = b.names.access(buffer, &indices, 0, span)?;
            b.names.reads(access.buffer);
            access
        };
        list.push(access);
    }
    Ok(list)
}

impl Exec<'_, '_> {
    pub(super) fn plain_op(&mut self, code: &Code) -> Eval<()> {
        match code {
            Code::Dp4a { a, b, c } => self.dp4a(a, b, c),
            Code::Print { message, args } => self.print_line(message, args),
        }
    }

    fn dp4a(&mut self, a: &[Access], b: &[Access], c: &Access) -> Eval<()> {
        let program = self.program;
        let info = &program.buffers[c.buffer as usize];
        let sum = self.load_element(c)?;
        let mut pairs = [(0, 0); 4];
        for (pair, (a, b)) in pairs.iter_mut().zip(a.iter().zip(b)) {
            *pair = (self.load_element(a)?, self.load_element(b)?);
        }
        if let Some(index) = self.element(info, c)? {
            let raw = encode(info.scalar, dot4(info.scalar, sum, pairs));
            self.write(info.space, info.bits(), index, raw);
        }
        Ok(())
    }

    fn print_line(&mut self, message: &str, args: &[(Num, Scalar)]) -> Eval<()> {
        let mut line = message.to_string();
        for (arg, scalar) in args {
            line += &format!(" {}", printed(*scalar, self.num(arg)?));
        }
        self.print(line);
        Ok(())
    }
}

/// A value as it is printed.
pub(crate) fn printed(scalar: Scalar, word: u64) -> String {
    match value::number(scalar, word) {
        Number::Int(v) => v.to_string(),
        Number::Float(v) => v.to_string(),
    }
}

/// `sum + Σ a·b`, on words of both simulators.
pub(crate) fn dot4(scalar: Scalar, sum: u64, pairs: [(u64, u64); 4]) -> u64 {
    let add = |sum: i64, (a, b): (u64, u64)| sum.wrapping_add((a as i64).wrapping_mul(b as i64));
    value::wrap(scalar, pairs.into_iter().fold(sum as i64, add)) as u64
}
