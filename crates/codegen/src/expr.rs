//! Expressions, one lane of a vector type at a time.
//!
//! Text carries its precedence, so that parentheses stand only where they are needed.

use tilewright_ir::{BinOp, Buffer, DType, Expr, ExprKind, MathFn, Scalar, Span, UnOp, VarKind};

use crate::ctype::{ctype, float_constant, int_constant, is_narrow_float};
use crate::device::Piece;
use crate::kernel::Emitter;
use crate::{Emit, unsupported};

/// Precedences, loosest first.
pub(crate) const TERNARY: u8 = 3;
pub(crate) const OR: u8 = 4;
pub(crate) const AND: u8 = 5;
pub(crate) const BIT_XOR: u8 = 7;
pub(crate) const EQUALITY: u8 = 9;
pub(crate) const RELATION: u8 = 10;
pub(crate) const ADD: u8 = 12;
pub(crate) const MUL: u8 = 13;
pub(crate) const UNARY: u8 = 15;
pub(crate) const POSTFIX: u8 = 16;

/// Text of an expression.
#[derive(Clone, PartialEq, Eq, Debug)]
pub(crate) struct Code {
    pub text: String,
    precedence: u8,
}

impl Code {
    pub fn new(text: String, precedence: u8) -> Code {
        Code { text, precedence }
    }

    /// A name, a constant or a call.
    pub fn primary(text: String) -> Code {
        let precedence = if text.starts_with('-') {
            UNARY
        } else {
            POSTFIX
        };
        Code { text, precedence }
    }

    /// The text where only operators that bind at least so tightly may stand bare.
    pub fn at_least(&self, precedence: u8) -> String {
        if self.precedence >= precedence {
            self.text.clone()
        } else {
            format!("({})", self.text)
        }
    }
}

impl Emitter<'_> {
    /// A scalar expression as text.
    pub(crate) fn scalar(&mut self, e: &Expr) -> Emit<String> {
        if e.dtype().lanes != 1 {
            return unsupported(e.span(), "a vector where one value is needed");
        }
        let e = self.settled(e);
        Ok(self.expr(&e, 0)?.text)
    }

    /// The expression with indices of one-iteration loops replaced by their value.
    pub(crate) fn settled(&mut self, e: &Expr) -> Expr {
        if self.settled.is_empty() {
            return e.clone();
        }
        let settled = &self.settled;
        let replaced = e.rewrite(&mut |node| match node.kind() {
            ExprKind::Var(var) => settled.get(var).cloned(),
            _ => None,
        });
        match replaced == *e {
            true => replaced,
            false => self.analyzer.simplify(&replaced),
        }
    }

    /// One lane of an expression.
    pub(crate) fn expr(&mut self, e: &Expr, lane: usize) -> Emit<Code> {
        let scalar = e.dtype().scalar;
        Ok(match e.kind() {
            ExprKind::Int(v) => Code::primary(int_constant(scalar, *v)),
            ExprKind::Float(v) => {
                self.need_type(scalar);
                Code::primary(float_constant(scalar, v.0))
            }
            ExprKind::Var(var) => match self.var_names.get(var) {
                Some(name) if e.dtype().lanes > 1 => Code::new(format!("{name}[{lane}]"), POSTFIX),
                Some(name) => Code::primary(name.clone()),
                None => {
                    let name = &self.func.vars[*var].name;
                    return unsupported(e.span(), format!("`{name}` has no value here"));
                }
            },
            ExprKind::Load { buffer, indices } => {
                self.load(*buffer, indices, lane, e.span())?.read()
            }
            ExprKind::AddressOf { buffer, indices } => {
                let place = self.place(*buffer, indices, None, 0, e.span())?;
                Code::new(format!("(unsigned long long)({})", place.address()), UNARY)
            }
            ExprKind::Unary(UnOp::Not, a) => {
                let a = self.expr(a, lane)?;
                Code::new(format!("!{}", a.at_least(UNARY)), UNARY)
            }
            ExprKind::Unary(UnOp::BitNot, a) => {
                let a = self.expr(a, lane)?;
                self.wrapped(Code::new(format!("~{}", a.at_least(UNARY)), UNARY), scalar)
            }
            ExprKind::Binary(op, a, b) => return self.binary(*op, a, b, e, lane),
            ExprKind::Select {
                cond,
                then,
                otherwise,
            }
            | ExprKind::IfThenElse {
                cond,
                then,
                otherwise,
            } => {
                let cond_lane = if cond.dtype().lanes > 1 { lane } else { 0 };
                let cond = self.expr(cond, cond_lane)?;
                let then = self.expr(then, lane)?;
                let otherwise = self.expr(otherwise, lane)?;
                Code::new(
                    format!(
                        "{} ? {} : {}",
                        cond.at_least(OR),
                        then.at_least(OR),
                        otherwise.at_least(OR)
                    ),
                    TERNARY,
                )
            }
            ExprKind::Cast(a) => {
                let code = match self.of_a_pair(a, lane)? {
                    Some(code) => code,
                    None => self.expr(a, lane)?,
                };
                self.convert(code, a.dtype().scalar, scalar)
            }
            ExprKind::Reinterpret(a) => return self.reinterpret(a, e, lane),
            ExprKind::Math(f, args) => return self.math(*f, args, e, lane),
            ExprKind::Ramp { base, stride } => {
                let lane = match scalar.is_float() {
                    true => Expr::float(lane as f64, DType::scalar(scalar)),
                    false => Expr::int(lane as i128, DType::scalar(scalar)),
                };
                let sum = base.clone() + stride.clone() * lane;
                let sum = self.analyzer.simplify(&sum);
                return self.expr(&sum, 0);
            }
            ExprKind::Broadcast(a) => return self.expr(a, 0),
            ExprKind::Lane { vector, lane } => return self.expr(vector, usize::from(*lane)),
        })
    }

    /// One scalar of a loaded value.
    pub(crate) fn load(
        &mut self,
        buffer: Buffer,
        indices: &[Expr],
        lane: usize,
        span: Span,
    ) -> Emit<crate::place::Place> {
        let lanes = usize::from(self.func.buffers[buffer].dtype.lanes);
        let (outer, inner) = (lane / lanes, lane % lanes);
        // The base of a ramp is the place of its first lane; further ones follow it.
        let row = is_row(indices);
        let place = self.place(buffer, indices, None, if row { 0 } else { outer }, span)?;
        Ok(place.plus(if row { lane } else { inner } as u32))
    }

    fn binary(&mut self, op: BinOp, a: &Expr, b: &Expr, e: &Expr, lane: usize) -> Emit<Code> {
        let x = self.expr(a, lane)?;
        let y = self.expr(b, lane)?;
        let operand = a.dtype().scalar;
        let infix = |symbol: &str, precedence: u8, left: u8, right: u8| {
            Code::new(
                format!("{} {symbol} {}", x.at_least(left), y.at_least(right)),
                precedence,
            )
        };
        let simple = match op {
            BinOp::LogicalAnd => infix("&&", AND, AND, EQUALITY),
            BinOp::LogicalOr => infix("||", OR, OR, EQUALITY),
            BinOp::Eq => infix("==", EQUALITY, ADD, ADD),
            BinOp::Ne => infix("!=", EQUALITY, ADD, ADD),
            BinOp::Lt => infix("<", RELATION, ADD, ADD),
            BinOp::Le => infix("<=", RELATION, ADD, ADD),
            BinOp::Gt => infix(">", RELATION, ADD, ADD),
            BinOp::Ge => infix(">=", RELATION, ADD, ADD),
            // Bitwise operators and shifts bind in a way that few remember: always bracketed.
            BinOp::BitAnd => infix("&", AND, UNARY, UNARY),
            BinOp::BitOr => infix("|", AND, UNARY, UNARY),
            BinOp::BitXor => infix("^", AND, UNARY, UNARY),
            BinOp::Shr => infix(">>", AND, UNARY, UNARY),
            _ => return self.arithmetic(op, (a, x), (b, y), e),
        };
        Ok(match op {
            BinOp::BitAnd | BinOp::BitOr | BinOp::BitXor | BinOp::Shr => {
                self.wrapped(simple, operand)
            }
            _ => simple,
        })
    }

    fn arithmetic(
        &mut self,
        op: BinOp,
        (a, x): (&Expr, Code),
        (b, y): (&Expr, Code),
        e: &Expr,
    ) -> Emit<Code> {
        let scalar = e.dtype().scalar;
        let infix = |symbol: &str, precedence: u8| {
            let right = precedence + u8::from(matches!(symbol, "-" | "/" | "%"));
            // A product on the right of a product keeps its own brackets: C groups to the left.
            let right = if precedence == MUL { MUL + 1 } else { right };
            Code::new(
                format!("{} {symbol} {}", x.at_least(precedence), y.at_least(right)),
                precedence,
            )
        };
        if scalar.is_float() {
            let code = match op {
                BinOp::Add => infix("+", ADD),
                BinOp::Sub => infix("-", ADD),
                BinOp::Mul => infix("*", MUL),
                BinOp::Div => infix("/", MUL),
                BinOp::Min | BinOp::Max => {
                    self.needs.piece(Piece::Math);
                    let name = if op == BinOp::Min { "fmin" } else { "fmax" };
                    let (x, y) = (self.as_float(x, scalar), self.as_float(y, scalar));
                    Code::primary(format!("tw::{name}({}, {})", x.text, y.text))
                }
                _ => return ill_typed(e),
            };
            return Ok(self.rounded(code, scalar));
        }
        if !scalar.is_int() && scalar != Scalar::Bool {
            return ill_typed(e);
        }
        let signed_word = matches!(scalar, Scalar::I32 | Scalar::I64);
        let code = match op {
            BinOp::Add | BinOp::Sub | BinOp::Mul | BinOp::Shl => {
                let (symbol, name, precedence) = match op {
                    BinOp::Add => ("+", "wrap_add", ADD),
                    BinOp::Sub => ("-", "wrap_sub", ADD),
                    BinOp::Mul => ("*", "wrap_mul", MUL),
                    _ => ("<<", "wrap_shl", UNARY),
                };
                if signed_word && self.is_data(e) && !self.stays_in_range(op, a, b, scalar) {
                    self.needs.piece(Piece::Integer);
                    return Ok(Code::primary(format!("tw::{name}({}, {})", x.text, y.text)));
                }
                match op {
                    BinOp::Shl => Code::new(
                        format!("{} << {}", x.at_least(UNARY), y.at_least(UNARY)),
                        AND,
                    ),
                    _ => infix(symbol, precedence),
                }
            }
            BinOp::FloorDiv | BinOp::FloorMod => {
                let symbol = if op == BinOp::FloorDiv { "/" } else { "%" };
                let unsigned = !scalar.is_signed_int();
                if unsigned || self.divides_plainly(a, b) {
                    infix(symbol, MUL)
                } else {
                    self.needs.piece(Piece::Integer);
                    let name = if op == BinOp::FloorDiv {
                        "floor_div"
                    } else {
                        "floor_mod"
                    };
                    let name = format!("tw::{name}<{}>", promoted(scalar));
                    Code::primary(format!("{name}({}, {})", x.text, y.text))
                }
            }
            BinOp::TruncDiv => infix("/", MUL),
            BinOp::TruncMod => infix("%", MUL),
            BinOp::Min | BinOp::Max => {
                self.needs.piece(Piece::Integer);
                let name = if op == BinOp::Min { "min" } else { "max" };
                Code::primary(format!(
                    "tw::{name}<{}>({}, {})",
                    promoted(scalar),
                    x.text,
                    y.text
                ))
            }
            _ => return ill_typed(e),
        };
        Ok(self.wrapped(code, scalar))
    }

    /// A value of C's promoted type brought back to the range of its own.
    fn wrapped(&mut self, code: Code, scalar: Scalar) -> Code {
        match scalar {
            Scalar::I8 | Scalar::I16 | Scalar::U8 | Scalar::U16 => {
                Code::new(format!("({})({})", ctype(scalar), code.text), UNARY)
            }
            Scalar::I4 | Scalar::U4 => {
                self.need_type(scalar);
                Code::primary(format!("{}({})", ctype(scalar), code.text))
            }
            Scalar::Bool => Code::new(format!("({}) != 0", code.text), EQUALITY),
            _ => code,
        }
    }

    /// A float32 result rounded to a narrower type.
    pub(crate) fn rounded(&mut self, code: Code, scalar: Scalar) -> Code {
        match scalar {
            Scalar::TF32 => {
                self.needs.piece(Piece::Math);
                Code::primary(format!("tw::tf32({})", code.text))
            }
            _ if is_narrow_float(scalar) => {
                self.need_type(scalar);
                Code::primary(format!("{}({})", ctype(scalar), code.text))
            }
            _ => code,
        }
    }

    /// The value as an argument of a function that takes float32 or float64.
    pub(crate) fn as_float(&mut self, code: Code, scalar: Scalar) -> Code {
        match is_narrow_float(scalar) && scalar != Scalar::TF32 {
            true => Code::primary(format!("float({})", code.text)),
            false => code,
        }
    }

    fn math(&mut self, f: MathFn, args: &[Expr], e: &Expr, lane: usize) -> Emit<Code> {
        let mut codes = Vec::new();
        for arg in args {
            codes.push((self.expr(arg, lane)?, arg.dtype().scalar));
        }
        let Some((first, scalar)) = codes.first().cloned() else {
            return ill_typed(e);
        };
        if !scalar.is_float() {
            return self.int_math(f, first, scalar, e);
        }
        self.needs.piece(Piece::Math);
        let name = match f {
            MathFn::Abs => "fabs",
            MathFn::Nextafter if is_narrow_float(scalar) => {
                return unsupported(e.span(), format!("nextafter of {scalar}"));
            }
            _ => f.name(),
        };
        let mut list = Vec::new();
        for (position, (code, own)) in codes.into_iter().enumerate() {
            let code = match (f, position) {
                // The exponent is an integer, whatever its type.
                (MathFn::Ldexp, 1) => self.convert(code, own, Scalar::I32),
                _ => self.as_float(code, own),
            };
            list.push(code.text);
        }
        let code = Code::primary(format!("tw::{name}({})", list.join(", ")));
        Ok(match f.is_predicate() {
            true => code,
            false => self.rounded(code, scalar),
        })
    }

    fn int_math(&mut self, f: MathFn, x: Code, scalar: Scalar, e: &Expr) -> Emit<Code> {
        let bits = scalar.bits();
        // The value's own bits, zeros above.
        let word = match bits {
            64 => x.at_least(UNARY),
            32 => x.at_least(UNARY),
            _ => format!("({} & {})", x.at_least(UNARY), (1u64 << bits) - 1),
        };
        let code = match (f, bits) {
            (MathFn::Popcount, 64) => Code::primary(format!("__popcll({word})")),
            (MathFn::Popcount, _) => Code::primary(format!("__popc({word})")),
            (MathFn::Clz, 64) => Code::primary(format!("__clzll({word})")),
            (MathFn::Clz, 32) => Code::primary(format!("__clz({word})")),
            (MathFn::Clz, _) => Code::new(format!("__clz({word}) - {}", 32 - bits), ADD),
            (MathFn::Abs, _) if scalar.is_signed_int() => {
                self.needs.piece(Piece::Integer);
                Code::primary(format!("tw::abs<{}>({})", promoted(scalar), x.text))
            }
            (
                MathFn::Abs
                | MathFn::Floor
                | MathFn::Ceil
                | MathFn::Trunc
                | MathFn::Round
                | MathFn::RoundAway,
                _,
            ) => return Ok(x),
            (MathFn::IsNan | MathFn::IsInf, _) => return Ok(Code::primary("false".to_string())),
            (MathFn::IsFinite, _) => return Ok(Code::primary("true".to_string())),
            _ => return ill_typed(e),
        };
        let code = match bits {
            64 if matches!(f, MathFn::Popcount | MathFn::Clz) => {
                Code::new(format!("({}){}", ctype(scalar), code.text), UNARY)
            }
            _ => code,
        };
        Ok(self.wrapped(code, scalar))
    }

    /// Whether C's division is the language's: nothing is negative.
    fn divides_plainly(&mut self, a: &Expr, b: &Expr) -> bool {
        self.analyzer.const_bounds(b).lo > 0 && self.analyzer.const_bounds(a).lo >= 0
    }

    /// Whether the result of an operation fits its type.
    fn stays_in_range(&mut self, op: BinOp, a: &Expr, b: &Expr, scalar: Scalar) -> bool {
        let (x, y) = (self.analyzer.const_bounds(a), self.analyzer.const_bounds(b));
        let Some((low, high)) = scalar.int_range() else {
            return false;
        };
        let result = match op {
            BinOp::Add => x.plus(y),
            BinOp::Sub => y.scale(-1).and_then(|y| x.plus(y)),
            BinOp::Mul => x.times(y),
            BinOp::Shl if x.lo >= 0 && y.lo >= 0 && y.hi < 64 => x.scale(1i128 << y.hi),
            _ => None,
        };
        result.is_some_and(|r| r.lo >= low && r.hi <= high)
    }

    /// Whether the value depends on what was in memory or given by the caller, so that
    /// arithmetic on it may wrap.
    pub(crate) fn is_data(&self, e: &Expr) -> bool {
        let mut data = false;
        e.walk_distinct(&mut |node| match node.kind() {
            ExprKind::Load { .. } => data = true,
            ExprKind::Var(var) => {
                let param = self
                    .func
                    .vars
                    .get(*var)
                    .is_some_and(|v| v.kind == VarKind::Param);
                data |= param || self.data_vars.contains(var);
            }
            _ => {}
        });
        data
    }
}

/// Whether the last index is a row of consecutive elements.
pub(crate) fn is_row(indices: &[Expr]) -> bool {
    let Some((last, rest)) = indices.split_last() else {
        return false;
    };
    let row = matches!(last.kind(), ExprKind::Ramp { stride, .. } if stride.is_int(1));
    row && rest.iter().all(|i| i.dtype().lanes == 1)
}

/// The type that C computes in.
fn promoted(scalar: Scalar) -> &'static str {
    match scalar {
        Scalar::I64 => "long long",
        Scalar::U64 => "unsigned long long",
        Scalar::U32 => "unsigned",
        _ => "int",
    }
}

fn ill_typed<T>(e: &Expr) -> Emit<T> {
    unsupported(
        e.span(),
        format!("an operation that does not exist on {}", e.dtype()),
    )
}
