//! The syntax tree the evaluator walks: the part of Python that matters here, every node with
//! its span.
//!
//! Python that has no meaning in a kernel file (`await`, `match`, bytes, …) is kept as
//! `Unsupported` with the name of the construct, because a file may hold such code where no
//! kernel reaches it; only reaching it is an error.

use std::rc::Rc;

use tilewright_ir::Span;

use super::symbols::Symbol;

/// A parsed file.
#[derive(Debug)]
pub struct Module {
    pub body: Vec<Stmt>,
    /// Every `def` and lambda of the file.
    pub functions: Vec<Rc<FuncDef>>,
}

/// A name with the place it is written at.
#[derive(Debug, Clone, Copy)]
pub struct Ident {
    pub sym: Symbol,
    pub span: Span,
}

#[derive(Debug)]
pub struct Stmt {
    pub kind: StmtKind,
    pub span: Span,
}

#[derive(Debug)]
pub enum StmtKind {
    Expr(Expr),
    /// `a = b = value` has two targets.
    Assign {
        targets: Vec<Expr>,
        value: Expr,
    },
    AugAssign {
        target: Expr,
        op: BinOp,
        value: Expr,
    },
    AnnAssign {
        target: Expr,
        annotation: Expr,
        value: Option<Expr>,
    },
    /// `if` and its `elif`s, flat, so that a long chain is not a deep tree.
    If {
        arms: Vec<IfArm>,
        orelse: Vec<Stmt>,
    },
    For {
        target: Expr,
        iter: Expr,
        body: Vec<Stmt>,
        orelse: Vec<Stmt>,
    },
    While {
        test: Expr,
        body: Vec<Stmt>,
        orelse: Vec<Stmt>,
    },
    With {
        items: Vec<WithItem>,
        body: Vec<Stmt>,
    },
    FunctionDef(Rc<FuncDef>),
    ClassDef(Rc<ClassDef>),
    Return(Option<Expr>),
    Assert {
        test: Expr,
        message: Option<Expr>,
    },
    Raise(Option<Expr>),
    Try {
        body: Vec<Stmt>,
        /// Names bound by handlers and their bodies are never run: a staged failure is final.
        handlers: usize,
        orelse: Vec<Stmt>,
        finalbody: Vec<Stmt>,
    },
    Import(Vec<ImportName>),
    ImportFrom {
        /// Dotted; empty for `from . import x`.
        module: Rc<str>,
        level: u32,
        names: Vec<FromName>,
    },
    /// `global` and `nonlocal`.
    Outer {
        names: Vec<Ident>,
        global: bool,
    },
    Delete(Vec<Expr>),
    Pass,
    Break,
    Continue,
    Unsupported(&'static str),
}

#[derive(Debug)]
pub struct IfArm {
    pub test: Expr,
    pub body: Vec<Stmt>,
}

#[derive(Debug)]
pub struct WithItem {
    pub context: Expr,
    pub target: Option<Expr>,
}

/// `import a.b.c as d`
#[derive(Debug)]
pub struct ImportName {
    pub path: Rc<str>,
    /// The name that is bound: `d`, or `a` without `as`.
    pub bound: Ident,
    /// Whether `as` was written, so that `bound` is the whole path and not its first part.
    pub renamed: bool,
}

/// One name of `from m import name as bound`. A star import binds nothing.
#[derive(Debug)]
pub struct FromName {
    pub name: Ident,
    pub bound: Ident,
    pub star: bool,
}

#[derive(Debug)]
pub struct FuncDef {
    pub name: Ident,
    pub params: Vec<Param>,
    pub body: FuncBody,
    pub decorators: Vec<Expr>,
    /// The whole definition.
    pub span: Span,
    /// The line that introduces it: `def f(…)`.
    pub head: Span,
}

#[derive(Debug)]
pub enum FuncBody {
    Def(Vec<Stmt>),
    Lambda(Expr),
}

#[derive(Debug)]
pub struct ClassDef {
    pub name: Ident,
    pub bases: usize,
    pub body: Vec<Stmt>,
    pub span: Span,
}

#[derive(Debug)]
pub struct Param {
    pub name: Ident,
    pub annotation: Option<Expr>,
    pub default: Option<Expr>,
    pub kind: ParamKind,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ParamKind {
    PositionalOnly,
    Normal,
    /// `*args`
    Rest,
    KeywordOnly,
    /// `**kwargs`
    KeywordRest,
}

#[derive(Debug)]
pub struct Expr {
    pub kind: ExprKind,
    pub span: Span,
}

#[derive(Debug)]
pub enum ExprKind {
    None,
    Bool(bool),
    Int(i128),
    Float(f64),
    Str(Rc<str>),
    FString(Vec<FStringPart>),
    Ellipsis,
    Name(Symbol),
    Tuple(Vec<Expr>),
    List(Vec<Expr>),
    Set(Vec<Expr>),
    /// A missing key is `**other`.
    Dict(Vec<(Option<Expr>, Expr)>),
    Unary(UnaryOp, Box<Expr>),
    Binary(BinOp, Box<Expr>, Box<Expr>),
    Bool2(BoolOp, Vec<Expr>),
    Compare(Box<Expr>, Vec<(CmpOp, Expr)>),
    IfElse {
        test: Box<Expr>,
        body: Box<Expr>,
        orelse: Box<Expr>,
    },
    Call(Box<Call>),
    Attribute(Box<Expr>, Ident),
    Subscript(Box<Expr>, Box<Expr>),
    Slice(Box<Slice>),
    Starred(Box<Expr>),
    Lambda(Rc<FuncDef>),
    Comprehension(Box<Comprehension>),
    /// `name := value`
    Named(Ident, Box<Expr>),
    Unsupported(&'static str),
}

#[derive(Debug)]
pub struct Call {
    pub func: Expr,
    pub args: Vec<Expr>,
    pub keywords: Vec<Keyword>,
}

/// `name=value`, or `**value` without a name.
#[derive(Debug)]
pub struct Keyword {
    pub name: Option<Ident>,
    pub value: Expr,
    pub span: Span,
}

#[derive(Debug)]
pub struct Slice {
    pub lower: Option<Expr>,
    pub upper: Option<Expr>,
    pub step: Option<Expr>,
}

#[derive(Debug)]
pub struct Comprehension {
    pub kind: ComprehensionKind,
    /// The element, or the key of a dict comprehension.
    pub element: Expr,
    /// The value of a dict comprehension.
    pub value: Option<Expr>,
    pub clauses: Vec<ForClause>,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum ComprehensionKind {
    List,
    Set,
    Dict,
    Generator,
}

/// `for target in iter if test if test`
#[derive(Debug)]
pub struct ForClause {
    pub target: Expr,
    pub iter: Expr,
    pub tests: Vec<Expr>,
}

#[derive(Debug)]
pub enum FStringPart {
    Text(Rc<str>),
    Value {
        expr: Expr,
        /// `r`, `s` or `a` of `!r`.
        conversion: Option<char>,
        /// What stands after the colon.
        spec: Vec<FStringPart>,
        /// `f"{x=}"`: the text of the expression, printed first.
        debug: Option<Rc<str>>,
    },
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum UnaryOp {
    Invert,
    Not,
    Plus,
    Minus,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BoolOp {
    And,
    Or,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum BinOp {
    Add,
    Sub,
    Mul,
    MatMul,
    Div,
    FloorDiv,
    Mod,
    Pow,
    Shl,
    Shr,
    BitOr,
    BitXor,
    BitAnd,
}

#[derive(Debug, Clone, Copy, PartialEq, Eq)]
pub enum CmpOp {
    Eq,
    Ne,
    Lt,
    Le,
    Gt,
    Ge,
    Is,
    IsNot,
    In,
    NotIn,
}

impl BinOp {
    /// The operator as written.
    pub const fn text(self) -> &'static str {
        match self {
            BinOp::Add => "+",
            BinOp::Sub => "-",
            BinOp::Mul => "*",
            BinOp::MatMul => "@",
            BinOp::Div => "/",
            BinOp::FloorDiv => "//",
            BinOp::Mod => "%",
            BinOp::Pow => "**",
            BinOp::Shl => "<<",
            BinOp::Shr => ">>",
            BinOp::BitOr => "|",
            BinOp::BitXor => "^",
            BinOp::BitAnd => "&",
        }
    }
}

impl CmpOp {
    /// The operator as written.
    pub const fn text(self) -> &'static str {
        match self {
            CmpOp::Eq => "==",
            CmpOp::Ne => "!=",
            CmpOp::Lt => "<",
            CmpOp::Le => "<=",
            CmpOp::Gt => ">",
            CmpOp::Ge => ">=",
            CmpOp::Is => "is",
            CmpOp::IsNot => "is not",
            CmpOp::In => "in",
            CmpOp::NotIn => "not in",
        }
    }
}

impl UnaryOp {
    /// The operator as written.
    pub const fn text(self) -> &'static str {
        match self {
            UnaryOp::Invert => "~",
            UnaryOp::Not => "not",
            UnaryOp::Plus => "+",
            UnaryOp::Minus => "-",
        }
    }
}

impl FuncDef {
    /// The statements of a `def`; a lambda has none.
    pub fn statements(&self) -> &[Stmt] {
        match &self.body {
            FuncBody::Def(body) => body,
            FuncBody::Lambda(_) => &[],
        }
    }
}
