//! What the families share: reading arguments, and the usual refusals.

use tilewright_ir::{DType, Expr, ExprKind, Span, VarKind};

use super::{CallArgs, LangFn, ParamSpec};
use crate::record::Recorder;
use crate::value::Value;
use crate::{Error, Result, codes};

/// A row of a family's table.
pub(super) const fn func(
    name: &'static str,
    params: &'static [ParamSpec],
    call: fn(&mut Recorder, &CallArgs) -> Result<Value>,
) -> LangFn {
    LangFn::new(name, params, call)
}

/// A required dtype argument.
pub(super) fn required_dtype(rec: &Recorder, args: &CallArgs, name: &str) -> Result<DType> {
    rec.to_dtype(args.required(name), args.span_of(name))
}

/// A compile-time count that must be at least one; `None` when it is left out.
pub(super) fn positive(rec: &Recorder, args: &CallArgs, name: &str) -> Result<Option<u32>> {
    let Some(value) = args.int(rec, name)? else {
        return Ok(None);
    };
    match u32::try_from(value) {
        Ok(n) if n > 0 => Ok(Some(n)),
        _ => Err(rec
            .error(
                codes::NON_POSITIVE,
                args.span_of(name),
                format!(
                    "`{name}` of `{}` must be positive, this is {value}",
                    args.name()
                ),
            )
            .help("count from one, or leave it out where it has a default")
            .into()),
    }
}

/// Refuses what is no integer scalar where indices, extents and counts are meant.
pub(super) fn check_index(rec: &Recorder, e: &Expr, span: Span, what: &str) -> Result<()> {
    if e.dtype().scalar.is_int() && e.dtype().is_scalar() {
        return Ok(());
    }
    Err(rec
        .error(
            codes::INDEX_TYPE,
            span,
            format!("{what} must be an integer, this is {}", e.dtype()),
        )
        .help("divide with `//`, or cast with `T.cast(x, \"int32\")`")
        .into())
}

/// Refuses what the caller of the kernel cannot know before it runs.
pub(super) fn check_host_value(rec: &Recorder, e: &Expr, span: Span, what: &str) -> Result<()> {
    let mut bad = false;
    e.walk(&mut |e| match e.kind() {
        ExprKind::Load { .. } | ExprKind::AddressOf { .. } => bad = true,
        ExprKind::Var(var) => {
            bad |= !matches!(rec.func.vars[*var].kind, VarKind::Symbol | VarKind::Param);
        }
        _ => {}
    });
    if !bad {
        return Ok(());
    }
    Err(rec
        .error(
            codes::KERNEL_LAUNCH,
            span,
            format!("{what} must be known before the kernel runs"),
        )
        .help("compute it from shapes, `T.dynamic` sizes and scalar parameters")
        .into())
}

/// The refusal of what TileLang knows and this compiler does not.
pub(super) fn not_supported(rec: &Recorder, span: Span, what: &str, instead: &str) -> Error {
    rec.error(
        codes::NOT_SUPPORTED,
        span,
        format!("{what} is not supported"),
    )
    .help(instead)
    .into()
}

/// What language functions remember while a kernel is recorded.
#[derive(Debug, Default)]
pub struct LangState {
    /// Reducers of the open `T.attr(reducer, "reduce_scope", …)` suites, innermost last.
    pub reducers: Vec<Value>,
    /// Open `T.ws` suites.
    pub warp_groups: u32,
    /// Buffers that may overlap in every kernel that follows.
    pub may_alias: Vec<tilewright_ir::Buffer>,
    /// Barriers that other blocks of the cluster may reach.
    pub cluster_barriers: Vec<tilewright_ir::Buffer>,
    /// The generator of random numbers.
    pub generator: Option<super::random::Made>,
}
