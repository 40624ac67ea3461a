//! Expressions. An explicit stack holds what is open, so nesting costs no recursion.

use crate::diag::{Code, Diagnostic, Span};
use crate::dtype::DType;
use crate::expr::{BinOp, Expr, ExprKind, F64, MAX_EXPR_DEPTH, MAX_EXPR_SIZE, MathFn, UnOp};
use crate::ids::Buffer;
use crate::nearest::suggestion;
use crate::text::lexer::Tok;
use crate::text::names::Entity;
use crate::text::parser::{Parser, Result1, parse_int};
use crate::text::{Spelling, spelling};

/// How much may be open at once: a level of an expression opens an operator, its parenthesis
/// and at most a call around both.
const MAX_FRAMES: usize = 4 * MAX_EXPR_DEPTH as usize;

/// What is open around the operand being read.
enum Frame {
    /// `(`
    Group,
    /// `!`, `~`
    Unary(UnOp, Span),
    /// `lhs op`
    Binary(BinOp, u8, Expr),
    /// `f(a, b,`
    Call {
        callee: Callee,
        args: Vec<Expr>,
        start: Span,
    },
    /// `A[i, j,`, inside `address_of(` or not
    Index {
        buffer: Buffer,
        address: bool,
        args: Vec<Expr>,
        start: Span,
    },
}

/// What a name before a parenthesis calls.
#[derive(Clone, Copy)]
enum Callee {
    Cast(DType),
    Reinterpret(DType),
    Typed(DType),
    Binary(BinOp),
    Math(MathFn),
    Select,
    IfThenElse,
    Ramp,
    Broadcast,
    Lane,
}

impl Callee {
    fn arity(self) -> usize {
        match self {
            Callee::Cast(_) | Callee::Reinterpret(_) | Callee::Typed(_) => 1,
            Callee::Binary(_) | Callee::Broadcast | Callee::Lane => 2,
            Callee::Math(f) => f.arity(),
            Callee::Select | Callee::IfThenElse | Callee::Ramp => 3,
        }
    }
}

/// Names that are called and have no table of their own.
const FUNCTIONS: [&str; 12] = [
    "min",
    "max",
    "truncdiv",
    "truncmod",
    "select",
    "if_then_else",
    "ramp",
    "broadcast",
    "lane",
    "address_of",
    "reinterpret",
    "typed",
];

impl<'t> Parser<'t> {
    pub(in crate::text) fn expr(&mut self) -> Result1<Expr> {
        let mut frames: Vec<Frame> = Vec::new();
        loop {
            if frames.len() > MAX_FRAMES {
                return Err(too_deep(self.here()));
            }
            let Some(operand) = self.operand(&mut frames)? else {
                continue;
            };
            let mut value = operand;
            loop {
                while let Some(Frame::Unary(op, start)) =
                    frames.pop_if(|f| matches!(f, Frame::Unary(..)))
                {
                    let (dtype, span) = (value.dtype(), start.to(value.span()));
                    value = node(ExprKind::Unary(op, value), dtype, span)?;
                }
                if let Some((op, level)) = self.infix_operator() {
                    value = self.fold_binary(&mut frames, value, level)?;
                    if op.is_comparison()
                        && let Some(Frame::Binary(before, ..)) = frames.last()
                        && before.is_comparison()
                    {
                        return Err(Box::new(
                            Diagnostic::error(
                                Code("text-syntax"),
                                self.here(),
                                "comparisons do not chain",
                            )
                            .help("write `(a < b) && (b < c)`, or parentheses around one side"),
                        ));
                    }
                    self.at += 1;
                    frames.push(Frame::Binary(op, level, value));
                    break;
                }
                value = self.fold_binary(&mut frames, value, 0)?;
                match frames.pop() {
                    None => return Ok(value),
                    Some(Frame::Group) => self.expect(")")?,
                    Some(Frame::Call {
                        callee,
                        mut args,
                        start,
                    }) => {
                        args.push(value);
                        if self.eat(",") {
                            frames.push(Frame::Call {
                                callee,
                                args,
                                start,
                            });
                            break;
                        }
                        if !self.eat(")") {
                            return Err(self.expected("`,` or `)`"));
                        }
                        value = self.call(callee, args, start)?;
                    }
                    Some(Frame::Index {
                        buffer,
                        address,
                        mut args,
                        start,
                    }) => {
                        args.push(value);
                        if self.eat(",") {
                            frames.push(Frame::Index {
                                buffer,
                                address,
                                args,
                                start,
                            });
                            break;
                        }
                        value = self.close_index(buffer, address, args, start)?;
                    }
                    // Both were taken off above.
                    Some(Frame::Unary(..) | Frame::Binary(..)) => {}
                }
            }
        }
    }

    /// Reads an operand, or opens a frame and returns nothing.
    fn operand(&mut self, frames: &mut Vec<Frame>) -> Result1<Option<Expr>> {
        let start = self.here();
        match self.peek() {
            Tok::Int | Tok::Float => self.literal(false).map(Some),
            Tok::Sign("-") => match self.peek_at(1) {
                Tok::Int | Tok::Float => {
                    self.at += 1;
                    self.literal(true).map(Some)
                }
                Tok::Ident if matches!(self.text_of(self.tokens[self.at + 1]), "inf" | "nan") => {
                    self.at += 1;
                    self.literal(true).map(Some)
                }
                _ => Err(Box::new(
                    Diagnostic::error(
                        Code("text-syntax"),
                        start,
                        "`-` here is only part of a number",
                    )
                    .help("write `x * -1`, or `0 - x`"),
                )),
            },
            Tok::Sign("(") => {
                self.at += 1;
                frames.push(Frame::Group);
                Ok(None)
            }
            Tok::Sign(sign @ ("!" | "~")) => {
                self.at += 1;
                let op = if sign == "!" { UnOp::Not } else { UnOp::BitNot };
                frames.push(Frame::Unary(op, start));
                Ok(None)
            }
            Tok::Ident => self.named(frames),
            _ => Err(self.expected("an expression")),
        }
    }

    /// An operand that starts with a name.
    fn named(&mut self, frames: &mut Vec<Frame>) -> Result1<Option<Expr>> {
        let (name, start) = self.ident("an expression")?;
        match name {
            "true" | "false" => {
                let value = (name == "true") as i128;
                return Ok(Some(Expr::int(value, DType::BOOL).with_span(start)));
            }
            "inf" | "nan" => {
                self.at -= 1;
                return self.literal(false).map(Some);
            }
            _ => {}
        }
        if self.is("[") {
            let buffer = self.buffer_named(name, start)?;
            self.at += 1;
            return self.open_index(frames, buffer, false, start);
        }
        if name == "address_of" && self.is("(") {
            self.at += 1;
            let buffer = self.buffer()?;
            self.expect("[")?;
            return self.open_index(frames, buffer, true, start);
        }
        if self.is("(") || matches!(name, "reinterpret" | "typed") && self.is("<") {
            let callee = self.callee(name, start)?;
            self.expect("(")?;
            if self.eat(")") {
                return self.call(callee, Vec::new(), start).map(Some);
            }
            frames.push(Frame::Call {
                callee,
                args: Vec::new(),
                start,
            });
            return Ok(None);
        }
        match self.lookup(name) {
            Some(Entity::Var(var)) => {
                let dtype = self.func.vars[var].dtype;
                Ok(Some(Expr::var(var, dtype).with_span(start)))
            }
            Some(Entity::Buffer(_)) => Err(Box::new(
                Diagnostic::error(
                    Code("text-name-kind"),
                    start,
                    format!("`{name}` is a buffer, not a variable"),
                )
                .help(format!("load from it: `{name}[…]`")),
            )),
            None => Err(self.unknown_name(name, start, "a variable")),
        }
    }

    fn open_index(
        &mut self,
        frames: &mut Vec<Frame>,
        buffer: Buffer,
        address: bool,
        start: Span,
    ) -> Result1<Option<Expr>> {
        if self.is("]") {
            return self
                .close_index(buffer, address, Vec::new(), start)
                .map(Some);
        }
        frames.push(Frame::Index {
            buffer,
            address,
            args: Vec::new(),
            start,
        });
        Ok(None)
    }

    fn close_index(
        &mut self,
        buffer: Buffer,
        address: bool,
        indices: Vec<Expr>,
        start: Span,
    ) -> Result1<Expr> {
        if !self.eat("]") {
            return Err(self.expected("`,` or `]`"));
        }
        if address {
            self.expect(")")?;
            let kind = ExprKind::AddressOf { buffer, indices };
            return node(kind, DType::HANDLE, self.since(start));
        }
        let dtype = self.func.buffers[buffer].dtype;
        let load = Expr::load(buffer, indices, dtype).with_span(self.since(start));
        check_depth(load)
    }

    /// What the name calls; the parenthesis comes next.
    fn callee(&mut self, name: &str, span: Span) -> Result1<Callee> {
        Ok(match name {
            "min" => Callee::Binary(BinOp::Min),
            "max" => Callee::Binary(BinOp::Max),
            "truncdiv" => Callee::Binary(BinOp::TruncDiv),
            "truncmod" => Callee::Binary(BinOp::TruncMod),
            "select" => Callee::Select,
            "if_then_else" => Callee::IfThenElse,
            "ramp" => Callee::Ramp,
            "broadcast" => Callee::Broadcast,
            "lane" => Callee::Lane,
            "reinterpret" | "typed" => {
                self.expect("<")?;
                let dtype = self.dtype()?;
                self.expect(">")?;
                if name == "typed" {
                    Callee::Typed(dtype)
                } else {
                    Callee::Reinterpret(dtype)
                }
            }
            _ => {
                if let Some(f) = MathFn::from_name(name) {
                    Callee::Math(f)
                } else if let Some(dtype) = DType::from_name(name) {
                    Callee::Cast(dtype)
                } else {
                    let known = FUNCTIONS
                        .into_iter()
                        .chain(MathFn::ALL.iter().map(|f| f.name()))
                        .chain(crate::Scalar::ALL.iter().map(|s| s.name()));
                    let mut d = Diagnostic::error(
                        Code("text-unknown-function"),
                        span,
                        format!("there is no function `{name}`"),
                    );
                    d.help.extend(suggestion(name, known));
                    return Err(Box::new(d));
                }
            }
        })
    }

    fn call(&mut self, callee: Callee, args: Vec<Expr>, start: Span) -> Result1<Expr> {
        let span = self.since(start);
        let (given, wanted) = (args.len(), callee.arity());
        if given != wanted {
            return Err(Box::new(Diagnostic::error(
                Code("text-arity"),
                span,
                format!("this takes {wanted} operands, {given} are given"),
            )));
        }
        let mut rest = args.into_iter();
        // The count is right, so the default is never taken.
        let mut arg = || rest.next().unwrap_or_else(|| Expr::i32(0));
        let lanes = |e: Expr| {
            let lanes = e.as_int().filter(|_| e.dtype() == DType::I32);
            lanes.and_then(|n| u16::try_from(n).ok()).ok_or_else(|| {
                Box::new(Diagnostic::error(
                    Code("text-number"),
                    e.span(),
                    "expected a constant number of lanes",
                ))
            })
        };
        let (kind, dtype) = match callee {
            Callee::Cast(dtype) => (ExprKind::Cast(arg()), dtype),
            Callee::Reinterpret(dtype) => (ExprKind::Reinterpret(arg()), dtype),
            Callee::Typed(dtype) => (arg().kind().clone(), dtype),
            Callee::Binary(op) => {
                let (a, b) = (arg(), arg());
                let dtype = op.result(a.dtype());
                (ExprKind::Binary(op, a, b), dtype)
            }
            Callee::Select | Callee::IfThenElse => {
                let (cond, then, otherwise) = (arg(), arg(), arg());
                let dtype = then.dtype();
                let kind = if matches!(callee, Callee::Select) {
                    ExprKind::Select {
                        cond,
                        then,
                        otherwise,
                    }
                } else {
                    ExprKind::IfThenElse {
                        cond,
                        then,
                        otherwise,
                    }
                };
                (kind, dtype)
            }
            Callee::Ramp => {
                let (base, stride) = (arg(), arg());
                let dtype = base.dtype().with_lanes(lanes(arg())?);
                (ExprKind::Ramp { base, stride }, dtype)
            }
            Callee::Broadcast => {
                let value = arg();
                let dtype = value.dtype().with_lanes(lanes(arg())?);
                (ExprKind::Broadcast(value), dtype)
            }
            Callee::Lane => {
                let vector = arg();
                let dtype = vector.dtype().with_lanes(1);
                let lane = lanes(arg())?;
                (ExprKind::Lane { vector, lane }, dtype)
            }
            Callee::Math(f) => {
                let math = Expr::math(f, rest.collect());
                return check_depth(math.with_span(span));
            }
        };
        node(kind, dtype, span)
    }

    /// The infix operator that comes next, with how tightly it binds.
    fn infix_operator(&self) -> Option<(BinOp, u8)> {
        let Tok::Sign(sign) = self.peek() else {
            return None;
        };
        BinOp::ALL.into_iter().find_map(|op| match spelling(op) {
            Spelling::Infix(s, level) if s == sign => Some((op, level)),
            _ => None,
        })
    }

    /// Builds the open operations that bind at least as tightly as `level`.
    fn fold_binary(
        &mut self,
        frames: &mut Vec<Frame>,
        mut value: Expr,
        level: u8,
    ) -> Result1<Expr> {
        // Comparisons are left open for the caller to refuse a second one.
        let folds = |f: &mut Frame| matches!(f, Frame::Binary(op, l, _) if *l > level || *l == level && !op.is_comparison());
        while let Some(Frame::Binary(op, _, lhs)) = frames.pop_if(folds) {
            let dtype = op.result(lhs.dtype());
            let span = lhs.span().to(value.span());
            value = node(ExprKind::Binary(op, lhs, value), dtype, span)?;
        }
        Ok(value)
    }

    /// A number, `inf` or `nan`, with its type if one is said; the sign is read already.
    fn literal(&mut self, negative: bool) -> Result1<Expr> {
        let token = self.next();
        let (text, start) = (self.text_of(token), self.span_of(token));
        if token.tok == Tok::Int {
            let Some(value) = parse_int(text, negative) else {
                return Err(self.out_of_range(start, "an integer"));
            };
            let dtype = self.literal_type()?.unwrap_or(DType::I32);
            return Ok(Expr::new(ExprKind::Int(value), dtype, self.since(start)));
        }
        let mut value = match text {
            "inf" => f64::INFINITY,
            "nan" if self.is("(") => {
                self.at += 1;
                let bits: u64 = self.number("the bits of a NaN")?;
                self.expect(")")?;
                let value = f64::from_bits(bits);
                if !value.is_nan() {
                    return Err(self.out_of_range(self.since(start), "the bits of a NaN"));
                }
                value
            }
            "nan" => f64::NAN,
            digits => match digits.parse() {
                Ok(value) => value,
                Err(_) => return Err(self.out_of_range(start, "a float")),
            },
        };
        if negative {
            value = -value;
        }
        let dtype = self.literal_type()?.unwrap_or(DType::F32);
        let kind = ExprKind::Float(F64(value));
        Ok(Expr::new(kind, dtype, self.since(start)))
    }

    /// `:int64` behind a literal.
    fn literal_type(&mut self) -> Result1<Option<DType>> {
        if !self.eat(":") {
            return Ok(None);
        }
        self.dtype().map(Some)
    }
}

fn node(kind: ExprKind, dtype: DType, span: Span) -> Result1<Expr> {
    check_depth(Expr::new(kind, dtype, span))
}

fn check_depth(expr: Expr) -> Result1<Expr> {
    if expr.depth() > MAX_EXPR_DEPTH {
        return Err(too_deep(expr.span()));
    }
    if expr.size() > MAX_EXPR_SIZE {
        let error = Diagnostic::error(
            Code("text-depth"),
            expr.span(),
            format!("this expression has more than {MAX_EXPR_SIZE} operations"),
        );
        return Err(Box::new(error.help("bind parts of it with `let`")));
    }
    Ok(expr)
}

fn too_deep(span: Span) -> Box<Diagnostic> {
    Box::new(
        Diagnostic::error(
            Code("text-depth"),
            span,
            format!("this expression nests more than {MAX_EXPR_DEPTH} levels deep"),
        )
        .help("bind parts of it with `let`"),
    )
}
