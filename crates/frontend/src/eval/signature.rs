//! Parameters of the function under construction, as their annotations are met.

use tilewright_ir::Span;

use crate::Result;
use crate::eval::Stage;
use crate::syntax::Symbol;
use crate::syntax::ast::{Expr, ExprKind};
use crate::value::Value;

impl Stage {
    /// `A: T.Tensor[[M, K], dtype]` without a value.
    pub(crate) fn annotate(&mut self, target: &Expr, annotation: &Expr, span: Span) -> Result<()> {
        let ExprKind::Name(name) = target.kind else {
            return Ok(());
        };
        let Some(position) = self.pending_params.get(&name).copied() else {
            // `x: int` of a name that is no parameter says nothing.
            return Ok(());
        };
        self.rec
            .before_kernels("the annotation of a tensor", span)?;
        let value = self.eval(annotation)?;
        self.declare_param(name, position, &value, target.span, span)?;
        self.pending_params.remove(&name);
        Ok(())
    }

    /// Makes a parameter of what its annotation says and binds its name.
    pub(crate) fn declare_param(
        &mut self,
        name: Symbol,
        position: usize,
        annotation: &Value,
        name_span: Span,
        span: Span,
    ) -> Result<()> {
        let text = self.symbols.text(name).clone();
        let value = self
            .rec
            .declare_param(&text, position, annotation, name_span, span)?;
        self.bind(name, value, name_span);
        Ok(())
    }
}
