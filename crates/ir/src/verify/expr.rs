//! Expressions: the type of every node, and what it may touch.

use crate::buffer::Scope;
use crate::diag::Span;
use crate::dtype::{Class, DType, Scalar};
use crate::expr::{BinOp, Expr, ExprKind, MAX_EXPR_DEPTH, MAX_EXPR_SIZE, MathFn, UnOp};
use crate::ids::Buffer;
use crate::small_float::round_to;
use crate::text::{identifier, implied_dtype};
use crate::verify::{Verifier, reducer};

/// Why elements are addressed.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum AccessKind {
    Load,
    Store,
    /// The address is taken, or an operation works on it.
    Address,
}

impl<'a> Verifier<'a> {
    /// Checks every node; true if nothing was wrong.
    pub(super) fn expr(&mut self, expr: &'a Expr) -> bool {
        if expr.depth() > MAX_EXPR_DEPTH || expr.size() > MAX_EXPR_SIZE {
            let message = format!(
                "an expression of {} levels and {} nodes; {MAX_EXPR_DEPTH} and {MAX_EXPR_SIZE} \
                 are allowed",
                expr.depth(),
                expr.size()
            );
            self.error("expr-depth", expr.span(), message);
            return false;
        }
        let before = self.errors.len();
        expr.walk_distinct(&mut |node| self.node(node));
        self.errors.len() == before
    }

    pub(super) fn exprs(&mut self, list: &'a [Expr]) {
        for e in list {
            self.expr(e);
        }
    }

    /// A scalar bool.
    pub(super) fn condition(&mut self, cond: &'a Expr) {
        if self.expr(cond) && cond.dtype() != DType::BOOL {
            let message = format!("the condition is {}, not bool", cond.dtype());
            let error = self.error("condition-type", cond.span(), message);
            error.help.push("compare first: `x != 0`".to_string());
        }
    }

    /// An integer scalar.
    pub(super) fn integer(&mut self, value: &'a Expr, code: &'static str, what: &str) -> bool {
        if !self.expr(value) {
            return false;
        }
        let dtype = value.dtype();
        let integer = dtype.scalar.is_int() && dtype.lanes == 1;
        if !integer {
            self.error(
                code,
                value.span(),
                format!("{what} is {dtype}, not an integer"),
            );
        }
        integer
    }

    /// A value of exactly this type.
    pub(super) fn value_of(
        &mut self,
        value: &'a Expr,
        dtype: DType,
        code: &'static str,
        what: &str,
    ) {
        if self.expr(value) && value.dtype() != dtype {
            let message = format!("{what} is {}, expected {dtype}", value.dtype());
            let error = self.error(code, value.span(), message);
            error.help.push(format!("cast it: `{dtype}(…)`"));
        }
    }

    /// Whether the value differs between the threads of a block.
    pub(super) fn depends_on_thread(&self, expr: &Expr) -> bool {
        let mut depends = false;
        expr.walk_distinct(&mut |e| {
            if let ExprKind::Var(v) = e.kind() {
                depends |= self.by_thread.contains(v);
            }
        });
        depends
    }

    fn node(&mut self, e: &'a Expr) {
        let (dtype, span) = (e.dtype(), e.span());
        if dtype.lanes == 0 {
            self.error("dtype-lanes", span, "a type without lanes");
            return;
        }
        match e.kind() {
            ExprKind::Int(value) => self.int_constant(*value, dtype, span),
            ExprKind::Float(value) => self.float_constant(value.0, dtype, span),
            ExprKind::Var(var) => {
                if !self.use_var(*var, span) {
                    return;
                }
            }
            ExprKind::Load { buffer, indices } => {
                if !self.indices(*buffer, indices, span, AccessKind::Load) {
                    return;
                }
            }
            ExprKind::AddressOf { buffer, indices } => {
                self.indices(*buffer, indices, span, AccessKind::Address);
            }
            ExprKind::Unary(op, a) => {
                let s = a.dtype().scalar;
                let defined = match op {
                    UnOp::Not => s == Scalar::Bool,
                    UnOp::BitNot => s.is_int() || s == Scalar::Bool,
                };
                if !defined {
                    let message = format!("{op:?} is not defined on {}", a.dtype());
                    self.error("operand-types", span, message);
                }
            }
            ExprKind::Binary(op, a, b) => self.binary(*op, a, b, span),
            ExprKind::Select {
                cond,
                then,
                otherwise,
            } => self.select(cond, then, otherwise, false, span),
            ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => self.select(cond, then, otherwise, true, span),
            ExprKind::Cast(a) => {
                let from = a.dtype();
                let address = |t: DType| t.scalar == Scalar::Handle;
                if from.lanes != dtype.lanes || address(from) != address(dtype) {
                    let message = format!("{from} cannot be cast to {dtype}");
                    self.error("cast-types", span, message);
                }
            }
            ExprKind::Reinterpret(a) => {
                if a.dtype().bits() != dtype.bits() {
                    let message = format!(
                        "{} has {} bits, {dtype} has {}",
                        a.dtype(),
                        a.dtype().bits(),
                        dtype.bits()
                    );
                    self.error("reinterpret-width", span, message);
                }
            }
            ExprKind::Math(f, args) => self.math(*f, args, span),
            ExprKind::Ramp { base, stride } => {
                if base.dtype() != stride.dtype() || !base.dtype().scalar.is_int() {
                    let message = format!(
                        "a ramp from {} in steps of {}",
                        base.dtype(),
                        stride.dtype()
                    );
                    self.error("operand-types", span, message);
                } else if base.dtype().lanes != 1 || dtype.lanes < 2 {
                    self.error("vector-lanes", span, "a ramp makes a vector of a scalar");
                }
            }
            ExprKind::Broadcast(a) => {
                if a.dtype().lanes != 1 || dtype.lanes < 2 {
                    self.error(
                        "vector-lanes",
                        span,
                        "a broadcast makes a vector of a scalar",
                    );
                }
            }
            ExprKind::Lane { vector, lane } => {
                if *lane >= vector.dtype().lanes {
                    let message = format!("lane {lane} of {}", vector.dtype());
                    self.error("vector-lanes", span, message);
                }
            }
        }
        if let Some(implied) = implied_dtype(self.func, e)
            && implied != dtype
        {
            let message = format!("this is {implied} by its operands, but says {dtype}");
            self.error("expr-type", span, message);
        }
    }

    fn int_constant(&mut self, value: i128, dtype: DType, span: Span) {
        let fits = match dtype.scalar.int_range() {
            Some((low, high)) => dtype.lanes == 1 && (low..=high).contains(&value),
            None => false,
        };
        if !fits {
            self.error("constant-range", span, format!("{value} is no {dtype}"));
        }
    }

    fn float_constant(&mut self, value: f64, dtype: DType, span: Span) {
        if !dtype.scalar.is_float() || dtype.lanes != 1 {
            self.error("constant-range", span, format!("{value:?} is no {dtype}"));
            return;
        }
        let rounded = round_to(dtype.scalar, value);
        if rounded.to_bits() != value.to_bits() && !(rounded.is_nan() && value.is_nan()) {
            let message = format!("{value:?} is not rounded to {dtype}");
            let error = self.error("constant-range", span, message);
            error.help.push(format!("the nearest is {rounded:?}"));
        }
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr, span: Span) {
        let (ta, tb) = (a.dtype(), b.dtype());
        if ta != tb {
            let message = format!("{op:?} of {ta} and {tb}");
            let error = self.error("operand-types", span, message);
            error.help.push("cast both sides to one type".to_string());
            return;
        }
        let s = ta.scalar;
        let defined = match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Min | BinOp::Max => s != Scalar::Handle,
            BinOp::Div => s.is_float(),
            BinOp::FloorDiv
            | BinOp::FloorMod
            | BinOp::TruncDiv
            | BinOp::TruncMod
            | BinOp::Shl
            | BinOp::Shr => s.is_int(),
            BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor => s.is_int() || s == Scalar::Bool,
            BinOp::LogicalAnd | BinOp::LogicalOr => s == Scalar::Bool,
            BinOp::Eq | BinOp::Ne | BinOp::Lt | BinOp::Le | BinOp::Gt | BinOp::Ge => true,
        };
        if !defined {
            self.error(
                "operand-types",
                span,
                format!("{op:?} is not defined on {ta}"),
            );
            return;
        }
        match op {
            BinOp::FloorDiv | BinOp::FloorMod | BinOp::TruncDiv | BinOp::TruncMod
                if b.is_int(0) =>
            {
                self.error("division-by-zero", span, "the divisor is the constant zero");
            }
            BinOp::Shl | BinOp::Shr => {
                if let Some(amount) = b.as_int()
                    && !(0..s.bits() as i128).contains(&amount)
                {
                    let message = format!("a shift of {ta} by {amount}");
                    self.error("shift-range", span, message);
                }
            }
            _ => {}
        }
    }

    fn select(&mut self, cond: &Expr, then: &Expr, otherwise: &Expr, lazy: bool, span: Span) {
        let c = cond.dtype();
        let lanes_fit = c.lanes == 1 || (!lazy && c.lanes == then.dtype().lanes);
        if c.scalar != Scalar::Bool || !lanes_fit {
            self.error("select-condition", span, format!("the condition is {c}"));
        }
        if then.dtype() != otherwise.dtype() {
            let message = format!("the arms are {} and {}", then.dtype(), otherwise.dtype());
            self.error("operand-types", span, message);
        }
    }

    fn math(&mut self, f: MathFn, args: &[Expr], span: Span) {
        if args.len() != f.arity() {
            let message = format!("{} takes {} arguments", f.name(), f.arity());
            self.error("math-arity", span, message);
            return;
        }
        let first = args[0].dtype();
        let (float, int) = (first.scalar.is_float(), first.scalar.is_int());
        let defined = match f {
            MathFn::Popcount | MathFn::Clz => int,
            // What these do to integers is plain: nothing, or never.
            MathFn::Abs
            | MathFn::Floor
            | MathFn::Ceil
            | MathFn::Trunc
            | MathFn::Round
            | MathFn::RoundAway
            | MathFn::IsNan
            | MathFn::IsInf
            | MathFn::IsFinite => float || int,
            _ => float,
        };
        let same = args[1..].iter().all(|a| {
            let exponent = f == MathFn::Ldexp && a.dtype().scalar.is_int();
            a.dtype() == first || exponent && a.dtype().lanes == first.lanes
        });
        if !defined || !same {
            let types: Vec<String> = args.iter().map(|a| a.dtype().to_string()).collect();
            let message = format!("{} is not defined on {}", f.name(), types.join(", "));
            self.error("operand-types", span, message);
        }
    }

    /// Checks an access to one element, or to consecutive ones by a vector index; the indices
    /// themselves are checked by the caller's walk. True if the buffer and rank are right.
    pub(super) fn indices(
        &mut self,
        buffer: Buffer,
        indices: &'a [Expr],
        span: Span,
        access: AccessKind,
    ) -> bool {
        if !self.use_buffer(buffer, span) {
            return false;
        }
        let data = &self.func.buffers[buffer];
        let name = identifier(&data.name);
        if access != AccessKind::Address && data.scope == Scope::Barrier {
            let error = self.error("barrier-as-data", span, format!("`{name}` is a barrier"));
            error
                .help
                .push("arrive on it and wait for it instead".to_string());
        }
        if data.scope == Scope::Reducer && self.tile_level() {
            let readable = self.reducers.get(&buffer) == Some(&reducer::State::Readable);
            if access != AccessKind::Load || !readable {
                let message = format!("`{name}` is a reducer, and not finalised in place");
                let error = self.error("reducer-access", span, message);
                error
                    .help
                    .push("update it in a parallel loop; read its destination".to_string());
            }
        }
        // Below tile level an access names the version of a buffer that has several, first.
        let slot = data.versions > 1 && !self.tile_level();
        let wanted = data.shape.len() + usize::from(slot);
        if indices.len() != wanted {
            let message = format!(
                "`{name}` has {} dimensions, {} indices are given",
                data.shape.len(),
                indices.len()
            );
            let error = self.error("index-count", span, message);
            if slot {
                error
                    .help
                    .push("the first index is the version, the others are its place".to_string());
            }
            return false;
        }
        let indices = match indices.split_first() {
            Some((version, rest)) if slot => {
                self.version(buffer, version);
                rest
            }
            _ => indices,
        };
        for (d, (index, extent)) in indices.iter().zip(&data.shape).enumerate() {
            let t = index.dtype();
            let last = d + 1 == indices.len();
            if !t.scalar.is_int() || (t.lanes != 1 && !last) {
                let message = format!("index {d} of `{name}` is {t}");
                self.error("index-type", index.span(), message);
            }
            if let (Some(i), Some(n)) = (index.as_int(), extent.as_int())
                && self.tile_level()
                && !(0..n).contains(&i)
            {
                let message =
                    format!("index {i} of `{name}`, whose dimension {d} has {n} elements");
                self.error("index-bounds", index.span(), message);
            }
        }
        if self.tile_level() && access != AccessKind::Address {
            self.placed_access(buffer, indices, span);
        }
        true
    }

    /// The version of a buffer that an access names.
    pub(super) fn version(&mut self, buffer: Buffer, version: &'a Expr) {
        let data = &self.func.buffers[buffer];
        if !version.dtype().scalar.is_int() || version.dtype().lanes != 1 {
            let message = format!(
                "the version of `{}` is {}",
                identifier(&data.name),
                version.dtype()
            );
            self.error("index-type", version.span(), message);
        }
        if let Some(i) = version.as_int()
            && !(0..data.versions as i128).contains(&i)
        {
            let message = format!(
                "slot {i} of `{}`, which has {}",
                identifier(&data.name),
                data.versions
            );
            self.error("micro-slot", version.span(), message);
        }
    }

    /// Rules on fragments and local arrays inside and outside of parallel loops.
    fn placed_access(&mut self, buffer: Buffer, indices: &'a [Expr], span: Span) {
        let data = &self.func.buffers[buffer];
        let name = identifier(&data.name);
        match data.scope {
            Scope::Fragment if !self.in_parallel() => {
                if indices.iter().any(|i| i.as_int().is_some_and(|n| n != 0)) {
                    let message = format!("element of fragment `{name}` outside of parallel loops");
                    let error = self.error("fragment-access", span, message);
                    error
                        .help
                        .push("no thread is known to hold it; use a parallel loop".to_string());
                }
            }
            Scope::Fragment | Scope::Local => {
                let mut axis = None;
                for index in indices {
                    index.walk_distinct(&mut |e| {
                        if let ExprKind::Var(v) = e.kind()
                            && let Some(constant) = self.parallel_axes.get(v)
                            && (data.scope == Scope::Local || !constant)
                        {
                            axis = Some(*v);
                        }
                    });
                }
                let Some(axis) = axis else { return };
                let axis = self.var_name(axis);
                if data.scope == Scope::Local {
                    let message = format!("local array `{name}` is indexed by parallel `{axis}`");
                    let error = self.error("local-parallel-index", span, message);
                    error
                        .help
                        .push("use a fragment, or a serial loop".to_string());
                } else {
                    let message = format!(
                        "fragment `{name}` is indexed by `{axis}`, whose range is not constant"
                    );
                    self.error("parallel-fragment-extent", span, message);
                }
            }
            Scope::Global
            | Scope::Shared
            | Scope::Var
            | Scope::Barrier
            | Scope::Tmem
            | Scope::Reducer => {}
        }
    }

    /// Whether values of this type are numbers that casts apply to.
    pub(super) fn is_number(dtype: DType) -> bool {
        dtype.scalar.class() != Class::Handle
    }
}
