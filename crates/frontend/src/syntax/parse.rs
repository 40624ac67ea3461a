//! Text to [`ast`](super::ast): the guards, the parser, and the parser's tree made into ours.
//!
//! The parser crate's types appear in this file alone, so that another release of it, or
//! another parser, touches one file.

use std::rc::Rc;

use ruff_python_ast as py;
use ruff_text_size::{Ranged, TextRange};
use tilewright_ir::{Diagnostic, FileId, Span};

use super::ast::*;
use super::guard::{self, TooDeep};
use super::symbols::Symbols;
use crate::codes;

/// Parses a file's text, or says why it cannot be read.
pub fn parse_source(
    source: &str,
    file: FileId,
    symbols: &mut Symbols,
) -> Result<Module, Vec<Diagnostic>> {
    check_text(source, file).map_err(|d| vec![*d])?;
    let parsed = ruff_python_parser::parse_unchecked_source(source, py::PySourceType::Python);
    if !parsed.errors().is_empty() {
        let errors = parsed.errors().iter().take(MAX_SYNTAX_ERRORS);
        return Err(errors
            .map(|e| {
                let span = Span::new(file, e.location.start().into(), e.location.end().into());
                Diagnostic::error(codes::SYNTAX, span, format!("syntax error: {}", e.error))
            })
            .collect());
    }
    let mut convert = Convert {
        file,
        source,
        symbols,
        errors: Vec::new(),
        functions: Vec::new(),
    };
    let body = convert.stmts(&parsed.syntax().body);
    match convert.errors.is_empty() {
        true => Ok(Module {
            body,
            functions: convert.functions,
        }),
        false => Err(convert.errors),
    }
}

/// More syntax errors than this help nobody: most follow from the first.
const MAX_SYNTAX_ERRORS: usize = 5;

fn check_text(source: &str, file: FileId) -> crate::Result<()> {
    if source.len() > guard::MAX_SOURCE_BYTES {
        return Err(Diagnostic::error(
            codes::FILE_TOO_LARGE,
            Span::NONE,
            format!(
                "the file has {} bytes; the limit is {}",
                source.len(),
                guard::MAX_SOURCE_BYTES
            ),
        )
        .help("keep a kernel and what it needs in a file of its own")
        .into());
    }
    if source.trim().is_empty() {
        return Err(Diagnostic::error(
            codes::EMPTY_FILE,
            Span::new(file, 0, 0),
            "the file is empty",
        )
        .help("write a kernel: a function decorated `@tilelang.jit` or `@T.prim_func`")
        .into());
    }
    guard::check_depth(source).map_err(|(why, range)| {
        let span = Span::new(file, range.start, range.end);
        let (what, limit) = match why {
            TooDeep::Brackets => ("brackets", guard::MAX_NESTING),
            TooDeep::Blocks => ("indented blocks", guard::MAX_NESTING),
            TooDeep::Chain => ("operators and calls of one expression", guard::MAX_CHAIN),
        };
        Diagnostic::error(
            codes::NESTED_TOO_DEEP,
            span,
            format!("{what} are nested more than {limit} deep"),
        )
        .help("name a part of it first and use the name")
        .into()
    })
}

struct Convert<'a> {
    file: FileId,
    source: &'a str,
    symbols: &'a mut Symbols,
    errors: Vec<Diagnostic>,
    /// Every `def` and lambda so far.
    functions: Vec<Rc<FuncDef>>,
}

impl Convert<'_> {
    fn span(&self, range: TextRange) -> Span {
        Span::new(self.file, range.start().into(), range.end().into())
    }

    fn ident(&mut self, id: &py::Identifier) -> Ident {
        Ident {
            sym: self.symbols.intern(id.as_str()),
            span: self.span(id.range()),
        }
    }

    fn stmts(&mut self, body: &[py::Stmt]) -> Vec<Stmt> {
        body.iter().map(|s| self.stmt(s)).collect()
    }

    fn stmt(&mut self, stmt: &py::Stmt) -> Stmt {
        let kind = match stmt {
            py::Stmt::Expr(s) => StmtKind::Expr(self.expr(&s.value)),
            py::Stmt::Assign(s) => StmtKind::Assign {
                targets: self.exprs(&s.targets),
                value: self.expr(&s.value),
            },
            py::Stmt::AugAssign(s) => StmtKind::AugAssign {
                target: self.expr(&s.target),
                op: binary_op(s.op),
                value: self.expr(&s.value),
            },
            py::Stmt::AnnAssign(s) => StmtKind::AnnAssign {
                target: self.expr(&s.target),
                annotation: self.expr(&s.annotation),
                value: s.value.as_deref().map(|v| self.expr(v)),
            },
            py::Stmt::If(s) => self.if_stmt(s),
            py::Stmt::For(s) if s.is_async => {
                self.unsupported("async for", [&s.body[..], &s.orelse[..]])
            }
            py::Stmt::For(s) => StmtKind::For {
                target: self.expr(&s.target),
                iter: self.expr(&s.iter),
                body: self.stmts(&s.body),
                orelse: self.stmts(&s.orelse),
            },
            py::Stmt::While(s) => StmtKind::While {
                test: self.expr(&s.test),
                body: self.stmts(&s.body),
                orelse: self.stmts(&s.orelse),
            },
            py::Stmt::With(s) if s.is_async => self.unsupported("async with", [&s.body[..]]),
            py::Stmt::With(s) => StmtKind::With {
                items: s
                    .items
                    .iter()
                    .map(|item| WithItem {
                        context: self.expr(&item.context_expr),
                        target: item.optional_vars.as_deref().map(|t| self.expr(t)),
                    })
                    .collect(),
                body: self.stmts(&s.body),
            },
            py::Stmt::FunctionDef(s) if s.is_async => self.unsupported("async def", [&s.body[..]]),
            py::Stmt::FunctionDef(s) => StmtKind::FunctionDef(self.function(s)),
            py::Stmt::ClassDef(s) => {
                let class = ClassDef {
                    name: self.ident(&s.name),
                    bases: s.arguments.as_deref().map_or(0, |a| a.args.len()),
                    body: self.stmts(&s.body),
                    span: self.span(s.range),
                };
                StmtKind::ClassDef(Rc::new(class))
            }
            py::Stmt::Return(s) => StmtKind::Return(s.value.as_deref().map(|v| self.expr(v))),
            py::Stmt::Assert(s) => StmtKind::Assert {
                test: self.expr(&s.test),
                message: s.msg.as_deref().map(|m| self.expr(m)),
            },
            py::Stmt::Raise(s) => StmtKind::Raise(s.exc.as_deref().map(|e| self.expr(e))),
            py::Stmt::Try(s) => {
                let body = self.stmts(&s.body);
                for py::ExceptHandler::ExceptHandler(handler) in &s.handlers {
                    self.stmts(&handler.body);
                }
                StmtKind::Try {
                    body,
                    handlers: s.handlers.len(),
                    orelse: self.stmts(&s.orelse),
                    finalbody: self.stmts(&s.finalbody),
                }
            }
            py::Stmt::Import(s) => {
                StmtKind::Import(s.names.iter().map(|n| self.import_name(n)).collect())
            }
            py::Stmt::ImportFrom(s) => StmtKind::ImportFrom {
                module: Rc::from(s.module.as_ref().map_or("", |m| m.as_str())),
                level: s.level,
                names: s.names.iter().map(|n| self.imported_name(n)).collect(),
            },
            py::Stmt::Global(s) => StmtKind::Outer {
                names: s.names.iter().map(|n| self.ident(n)).collect(),
                global: true,
            },
            py::Stmt::Nonlocal(s) => StmtKind::Outer {
                names: s.names.iter().map(|n| self.ident(n)).collect(),
                global: false,
            },
            py::Stmt::Delete(s) => StmtKind::Delete(self.exprs(&s.targets)),
            py::Stmt::Pass(_) => StmtKind::Pass,
            py::Stmt::Break(_) => StmtKind::Break,
            py::Stmt::Continue(_) => StmtKind::Continue,
            py::Stmt::Match(s) => self.unsupported("match", s.cases.iter().map(|c| &c.body[..])),
            py::Stmt::TypeAlias(_) => StmtKind::Unsupported("type alias"),
            py::Stmt::IpyEscapeCommand(_) => StmtKind::Unsupported("IPython command"),
        };
        Stmt {
            kind,
            span: self.span(stmt.range()),
        }
    }

    /// A statement that is not run here. A host that runs it finds the functions inside.
    fn unsupported<'s>(
        &mut self,
        what: &'static str,
        bodies: impl IntoIterator<Item = &'s [py::Stmt]>,
    ) -> StmtKind {
        for body in bodies {
            self.stmts(body);
        }
        StmtKind::Unsupported(what)
    }

    fn if_stmt(&mut self, s: &py::StmtIf) -> StmtKind {
        let mut arms = vec![IfArm {
            test: self.expr(&s.test),
            body: self.stmts(&s.body),
        }];
        let mut orelse = Vec::new();
        for clause in &s.elif_else_clauses {
            let body = self.stmts(&clause.body);
            match &clause.test {
                Some(test) => arms.push(IfArm {
                    test: self.expr(test),
                    body,
                }),
                None => orelse = body,
            }
        }
        StmtKind::If { arms, orelse }
    }

    fn import_name(&mut self, alias: &py::Alias) -> ImportName {
        let path = alias.name.as_str();
        let (bound, renamed) = match &alias.asname {
            Some(name) => (self.ident(name), true),
            None => {
                let first = path.split('.').next().unwrap_or(path);
                let bound = Ident {
                    sym: self.symbols.intern(first),
                    span: self.span(alias.range),
                };
                (bound, false)
            }
        };
        ImportName {
            path: Rc::from(path),
            bound,
            renamed,
        }
    }

    fn imported_name(&mut self, alias: &py::Alias) -> FromName {
        let name = self.ident(&alias.name);
        FromName {
            name,
            bound: alias.asname.as_ref().map_or(name, |n| self.ident(n)),
            star: alias.name.as_str() == "*",
        }
    }

    fn function(&mut self, s: &py::StmtFunctionDef) -> Rc<FuncDef> {
        let end = s.parameters.range().end();
        let def = Rc::new(FuncDef {
            name: self.ident(&s.name),
            params: self.params(&s.parameters),
            body: FuncBody::Def(self.stmts(&s.body)),
            decorators: s
                .decorator_list
                .iter()
                .map(|d| self.expr(&d.expression))
                .collect(),
            span: self.span(s.range),
            head: self.span(TextRange::new(s.name.range().start(), end)),
        });
        self.functions.push(def.clone());
        def
    }

    fn params(&mut self, params: &py::Parameters) -> Vec<Param> {
        let mut out = Vec::new();
        for p in &params.posonlyargs {
            out.push(self.param(
                &p.parameter,
                p.default.as_deref(),
                ParamKind::PositionalOnly,
            ));
        }
        for p in &params.args {
            out.push(self.param(&p.parameter, p.default.as_deref(), ParamKind::Normal));
        }
        if let Some(p) = &params.vararg {
            out.push(self.param(p, None, ParamKind::Rest));
        }
        for p in &params.kwonlyargs {
            out.push(self.param(&p.parameter, p.default.as_deref(), ParamKind::KeywordOnly));
        }
        if let Some(p) = &params.kwarg {
            out.push(self.param(p, None, ParamKind::KeywordRest));
        }
        out
    }

    fn param(&mut self, p: &py::Parameter, default: Option<&py::Expr>, kind: ParamKind) -> Param {
        Param {
            name: self.ident(&p.name),
            annotation: p.annotation.as_deref().map(|a| self.expr(a)),
            default: default.map(|d| self.expr(d)),
            kind,
        }
    }

    fn exprs(&mut self, list: &[py::Expr]) -> Vec<Expr> {
        list.iter().map(|e| self.expr(e)).collect()
    }

    fn boxed(&mut self, e: &py::Expr) -> Box<Expr> {
        Box::new(self.expr(e))
    }

    fn expr(&mut self, expr: &py::Expr) -> Expr {
        let span = self.span(expr.range());
        let kind = match expr {
            py::Expr::Name(e) => ExprKind::Name(self.symbols.intern(e.id.as_str())),
            py::Expr::NumberLiteral(e) => self.number(&e.value, span),
            py::Expr::StringLiteral(e) => ExprKind::Str(Rc::from(e.value.to_str())),
            py::Expr::FString(e) => ExprKind::FString(self.fstring(&e.value)),
            py::Expr::BooleanLiteral(e) => ExprKind::Bool(e.value),
            py::Expr::NoneLiteral(_) => ExprKind::None,
            py::Expr::EllipsisLiteral(_) => ExprKind::Ellipsis,
            py::Expr::Tuple(e) => ExprKind::Tuple(self.exprs(&e.elts)),
            py::Expr::List(e) => ExprKind::List(self.exprs(&e.elts)),
            py::Expr::Set(e) => ExprKind::Set(self.exprs(&e.elts)),
            py::Expr::Dict(e) => ExprKind::Dict(
                e.items
                    .iter()
                    .map(|item| {
                        (
                            item.key.as_ref().map(|k| self.expr(k)),
                            self.expr(&item.value),
                        )
                    })
                    .collect(),
            ),
            py::Expr::UnaryOp(e) => {
                let op = match e.op {
                    py::UnaryOp::Invert => UnaryOp::Invert,
                    py::UnaryOp::Not => UnaryOp::Not,
                    py::UnaryOp::UAdd => UnaryOp::Plus,
                    py::UnaryOp::USub => UnaryOp::Minus,
                };
                ExprKind::Unary(op, self.boxed(&e.operand))
            }
            py::Expr::BinOp(e) => {
                ExprKind::Binary(binary_op(e.op), self.boxed(&e.left), self.boxed(&e.right))
            }
            py::Expr::BoolOp(e) => {
                let op = match e.op {
                    py::BoolOp::And => BoolOp::And,
                    py::BoolOp::Or => BoolOp::Or,
                };
                ExprKind::Bool2(op, self.exprs(&e.values))
            }
            py::Expr::Compare(e) => {
                let rest = e.ops.iter().zip(e.comparators.iter());
                let first = self.boxed(&e.left);
                ExprKind::Compare(
                    first,
                    rest.map(|(op, right)| (compare_op(*op), self.expr(right)))
                        .collect(),
                )
            }
            py::Expr::If(e) => ExprKind::IfElse {
                test: self.boxed(&e.test),
                body: self.boxed(&e.body),
                orelse: self.boxed(&e.orelse),
            },
            py::Expr::Call(e) => {
                let call = Call {
                    func: self.expr(&e.func),
                    args: self.exprs(&e.arguments.args),
                    keywords: e
                        .arguments
                        .keywords
                        .iter()
                        .map(|k| Keyword {
                            name: k.arg.as_ref().map(|n| self.ident(n)),
                            value: self.expr(&k.value),
                            span: self.span(k.range),
                        })
                        .collect(),
                };
                ExprKind::Call(Box::new(call))
            }
            py::Expr::Attribute(e) => {
                ExprKind::Attribute(self.boxed(&e.value), self.ident(&e.attr))
            }
            py::Expr::Subscript(e) => {
                ExprKind::Subscript(self.boxed(&e.value), self.boxed(&e.slice))
            }
            py::Expr::Slice(e) => {
                let mut part = |p: &Option<Box<py::Expr>>| p.as_deref().map(|p| self.expr(p));
                let slice = Slice {
                    lower: part(&e.lower),
                    upper: part(&e.upper),
                    step: part(&e.step),
                };
                ExprKind::Slice(Box::new(slice))
            }
            py::Expr::Starred(e) => ExprKind::Starred(self.boxed(&e.value)),
            py::Expr::Lambda(e) => self.lambda(e, span),
            py::Expr::ListComp(e) => {
                self.comprehension(ComprehensionKind::List, &e.elt, None, &e.generators)
            }
            py::Expr::SetComp(e) => {
                self.comprehension(ComprehensionKind::Set, &e.elt, None, &e.generators)
            }
            py::Expr::Generator(e) => {
                self.comprehension(ComprehensionKind::Generator, &e.elt, None, &e.generators)
            }
            py::Expr::DictComp(e) => match &e.key {
                Some(key) => {
                    self.comprehension(ComprehensionKind::Dict, key, Some(&e.value), &e.generators)
                }
                None => ExprKind::Unsupported("dict unpacking in a comprehension"),
            },
            py::Expr::Named(e) => match &*e.target {
                py::Expr::Name(name) => {
                    let ident = Ident {
                        sym: self.symbols.intern(name.id.as_str()),
                        span: self.span(name.range),
                    };
                    ExprKind::Named(ident, self.boxed(&e.value))
                }
                _ => ExprKind::Unsupported("assignment expression to something other than a name"),
            },
            py::Expr::BytesLiteral(_) => ExprKind::Unsupported("bytes"),
            py::Expr::TString(_) => ExprKind::Unsupported("template string"),
            py::Expr::Await(_) => ExprKind::Unsupported("await"),
            py::Expr::Yield(_) | py::Expr::YieldFrom(_) => ExprKind::Unsupported("yield"),
            py::Expr::IpyEscapeCommand(_) => ExprKind::Unsupported("IPython command"),
        };
        Expr { kind, span }
    }

    fn number(&mut self, number: &py::Number, span: Span) -> ExprKind {
        match number {
            py::Number::Int(i) => match parse_int(&i.to_string()) {
                Some(value) => ExprKind::Int(value),
                None => {
                    self.errors.push(Diagnostic::error(
                        codes::INT_OVERFLOW,
                        span,
                        "the integer needs more than 127 bits",
                    ));
                    ExprKind::Int(0)
                }
            },
            py::Number::Float(f) => ExprKind::Float(*f),
            py::Number::Complex { .. } => ExprKind::Unsupported("complex number"),
        }
    }

    fn lambda(&mut self, e: &py::ExprLambda, span: Span) -> ExprKind {
        let params = match &e.parameters {
            Some(params) => self.params(params),
            None => Vec::new(),
        };
        let def = Rc::new(FuncDef {
            name: Ident {
                sym: self.symbols.intern("<lambda>"),
                span,
            },
            params,
            body: FuncBody::Lambda(self.expr(&e.body)),
            decorators: Vec::new(),
            span,
            head: span,
        });
        self.functions.push(def.clone());
        ExprKind::Lambda(def)
    }

    fn comprehension(
        &mut self,
        kind: ComprehensionKind,
        element: &py::Expr,
        value: Option<&py::Expr>,
        clauses: &[py::Comprehension],
    ) -> ExprKind {
        if clauses.iter().any(|c| c.is_async) {
            return ExprKind::Unsupported("async comprehension");
        }
        ExprKind::Comprehension(Box::new(Comprehension {
            kind,
            element: self.expr(element),
            value: value.map(|v| self.expr(v)),
            clauses: clauses
                .iter()
                .map(|c| ForClause {
                    target: self.expr(&c.target),
                    iter: self.expr(&c.iter),
                    tests: self.exprs(&c.ifs),
                })
                .collect(),
        }))
    }

    fn fstring(&mut self, value: &py::FStringValue) -> Vec<FStringPart> {
        let mut out = Vec::new();
        for part in value {
            match part {
                py::FStringPart::Literal(s) => out.push(FStringPart::Text(Rc::from(s.as_str()))),
                py::FStringPart::FString(f) => self.fstring_parts(&f.elements, &mut out),
            }
        }
        out
    }

    fn fstring_parts(
        &mut self,
        elements: &py::InterpolatedStringElements,
        out: &mut Vec<FStringPart>,
    ) {
        for element in elements {
            match element {
                py::InterpolatedStringElement::Literal(text) => {
                    out.push(FStringPart::Text(Rc::from(&*text.value)));
                }
                py::InterpolatedStringElement::Interpolation(hole) => {
                    let mut spec = Vec::new();
                    if let Some(format) = &hole.format_spec {
                        self.fstring_parts(&format.elements, &mut spec);
                    }
                    let debug = hole.debug_text.as_ref().map(|_| {
                        // The text as written, up to and including the equals sign.
                        let start = usize::from(hole.range.start()) + 1;
                        let end = usize::from(hole.expression.range().end());
                        let text = self.source.get(start..end).unwrap_or_default();
                        Rc::from(format!("{text}="))
                    });
                    out.push(FStringPart::Value {
                        expr: self.expr(&hole.expression),
                        conversion: hole.conversion.to_char(),
                        spec,
                        debug,
                    });
                }
            }
        }
    }
}

/// A literal as written: decimal, or with a `0x`, `0o` or `0b` prefix when it is large.
fn parse_int(text: &str) -> Option<i128> {
    let text = text.replace('_', "");
    let radix = |prefix: [&str; 2]| prefix.iter().find_map(|p| text.strip_prefix(p));
    if let Some(digits) = radix(["0x", "0X"]) {
        i128::from_str_radix(digits, 16).ok()
    } else if let Some(digits) = radix(["0o", "0O"]) {
        i128::from_str_radix(digits, 8).ok()
    } else if let Some(digits) = radix(["0b", "0B"]) {
        i128::from_str_radix(digits, 2).ok()
    } else {
        text.parse().ok()
    }
}

fn binary_op(op: py::Operator) -> BinOp {
    match op {
        py::Operator::Add => BinOp::Add,
        py::Operator::Sub => BinOp::Sub,
        py::Operator::Mult => BinOp::Mul,
        py::Operator::MatMult => BinOp::MatMul,
        py::Operator::Div => BinOp::Div,
        py::Operator::Mod => BinOp::Mod,
        py::Operator::Pow => BinOp::Pow,
        py::Operator::LShift => BinOp::Shl,
        py::Operator::RShift => BinOp::Shr,
        py::Operator::BitOr => BinOp::BitOr,
        py::Operator::BitXor => BinOp::BitXor,
        py::Operator::BitAnd => BinOp::BitAnd,
        py::Operator::FloorDiv => BinOp::FloorDiv,
    }
}

fn compare_op(op: py::CmpOp) -> CmpOp {
    match op {
        py::CmpOp::Eq => CmpOp::Eq,
        py::CmpOp::NotEq => CmpOp::Ne,
        py::CmpOp::Lt => CmpOp::Lt,
        py::CmpOp::LtE => CmpOp::Le,
        py::CmpOp::Gt => CmpOp::Gt,
        py::CmpOp::GtE => CmpOp::Ge,
        py::CmpOp::Is => CmpOp::Is,
        py::CmpOp::IsNot => CmpOp::IsNot,
        py::CmpOp::In => CmpOp::In,
        py::CmpOp::NotIn => CmpOp::NotIn,
    }
}
