//! The threads of a block, counted.

use tilewright_ir::{DType, Expr, Func, Kernel};

/// The thread's number in its block.
pub(crate) fn thread_number(func: &Func, kernel: &Kernel) -> Expr {
    let mut number: Option<Expr> = None;
    let mut stride = 1i64;
    for (&var, &extent) in kernel.thread_vars.iter().zip(&kernel.threads) {
        if extent > 1 {
            let part = func.var_expr(var).cast_to(DType::I32);
            let part = if stride == 1 { part } else { part * stride };
            number = Some(match number {
                None => part,
                Some(low) => low + part,
            });
        }
        stride *= extent as i64;
    }
    number.unwrap_or_else(|| func.var_expr(kernel.thread_vars[0]).cast_to(DType::I32))
}
