//! Functions, buffers, kernels and layouts.

use crate::buffer::{BufferData, BufferOrigin, Scope, SharedPlace};
use crate::diag::{Code, Diagnostic, Span};
use crate::dtype::DType;
use crate::func::{Func, FuncAttrs, Kernel, KernelAttrs, Level, Param, Swizzle, VarKind};
use crate::ids::{Buffer, Var};
use crate::nearest::suggestion;
use crate::prints::{PrintFormat, Prints};
use crate::text::lexer::Tok;
use crate::text::names::{Entity, without_number};
use crate::text::parser::{Parser, Result1};
use crate::text::words::Word;

/// Where a buffer declaration stands.
#[derive(Clone, Copy, PartialEq, Eq)]
pub(super) enum DeclKind {
    Param,
    Workspace,
    Alloc,
    View,
    Pointer,
}

impl DeclKind {
    pub(super) fn from_word(word: &str) -> Option<DeclKind> {
        Some(match word {
            "alloc" => DeclKind::Alloc,
            "view" => DeclKind::View,
            "pointer" => DeclKind::Pointer,
            _ => return None,
        })
    }
}

impl<'t> Parser<'t> {
    pub(super) fn module(&mut self) -> Vec<Func> {
        let mut funcs = Vec::new();
        loop {
            self.skip_newlines();
            if self.peek() == Tok::End || self.gave_up() {
                return funcs;
            }
            match self.function() {
                Ok(func) => funcs.push(func),
                Err(error) => {
                    self.error(*error);
                    // A new function starts a line of its own.
                    loop {
                        self.skip_statement();
                        self.eat("}");
                        self.skip_newlines();
                        if self.peek() == Tok::End || self.is_word("func") {
                            break;
                        }
                    }
                }
            }
        }
    }

    fn function(&mut self) -> Result1<Func> {
        let start = self.here();
        self.expect_word("func")?;
        self.expect("@")?;
        let name = self.key("the function's name")?;
        self.func = Func::new(name);
        self.visible.clear();
        self.ever.clear();
        self.scopes.clear();
        self.depth = 0;
        self.open_scope();
        self.func.level = Level::Tile;
        if self.eat_word("level") {
            self.expect("=")?;
            self.func.level = self.word()?;
        }
        self.func.span = self.since(start);
        self.expect("{")?;
        loop {
            self.skip_newlines();
            if self.eat("}") {
                break;
            }
            if self.peek() == Tok::End {
                return Err(self.expected("`}` at the end of the function"));
            }
            if self.gave_up() {
                break;
            }
            if let Err(error) = self.item() {
                self.error(*error);
                self.skip_statement();
            }
        }
        self.close_scope();
        self.end_of_statement()?;
        Ok(std::mem::replace(&mut self.func, Func::new("")))
    }

    /// One line of a function, or a kernel.
    fn item(&mut self) -> Result1<()> {
        const ITEMS: [&str; 10] = [
            "symbol",
            "scalar",
            "param",
            "output",
            "workspace",
            "alloc",
            "view",
            "pointer",
            "attr",
            "kernel",
        ];
        let span = self.here();
        let (word, _) = self.ident("a declaration or a kernel")?;
        match word {
            "symbol" | "scalar" => {
                let name = self.new_name("a name")?;
                self.expect(":")?;
                let dtype = self.dtype()?;
                if word == "symbol" {
                    let var = self.new_var(name, dtype, VarKind::Symbol)?;
                    self.func.symbols.push(var);
                } else {
                    let var = self.new_var(name, dtype, VarKind::Param)?;
                    self.func.params.push(Param::Scalar(var));
                }
            }
            "param" | "output" => {
                let buffer = self.buffer_decl(DeclKind::Param)?;
                let output = word == "output";
                self.func.params.push(Param::Tensor { buffer, output });
            }
            "workspace" => {
                let buffer = self.buffer_decl(DeclKind::Workspace)?;
                self.func.workspaces.push(buffer);
            }
            "attr" => {
                let mut attrs = std::mem::take(&mut self.func.attrs);
                let result = self.func_attr(&mut attrs);
                self.func.attrs = attrs;
                result?;
            }
            "kernel" => {
                let kernel = self.kernel(span)?;
                self.func.kernels.push(kernel);
            }
            other => match DeclKind::from_word(other) {
                Some(kind) => {
                    self.buffer_decl(kind)?;
                }
                None => {
                    let help = suggestion(other, ITEMS)
                        .unwrap_or_else(|| format!("one of: {}", ITEMS.join(", ")));
                    return Err(Box::new(
                        Diagnostic::error(
                            Code("text-unknown-op"),
                            span,
                            format!("a function has no `{other}`"),
                        )
                        .help(help),
                    ));
                }
            },
        }
        self.end_of_statement()
    }

    fn func_attr(&mut self, attrs: &mut FuncAttrs) -> Result1<()> {
        let (word, span) = self.ident("an attribute")?;
        match word {
            "compile_flags" => {
                self.expect("=")?;
                self.expect("[")?;
                attrs.compile_flags = self.list("]", |p| p.string())?;
            }
            "pass_config" => {
                let key = self.key("the name of a setting")?;
                self.expect("=")?;
                let value = self.attr_value()?;
                attrs.pass_configs.insert(key, value);
            }
            "autotune" => {
                self.expect("=")?;
                self.expect("(")?;
                let config = self.list(")", |p| {
                    let key = p.key("the name of a parameter")?;
                    p.expect("=")?;
                    Ok((key, p.attr_value()?))
                })?;
                attrs.autotune.push(config.into_iter().collect());
            }
            "prints" => {
                self.expect("=")?;
                let buffer = self.buffer()?;
                self.expect("[")?;
                let formats = self.list("]", |p| {
                    p.expect("[")?;
                    let kernel = p.number("the number of a kernel")?;
                    p.expect(",")?;
                    let message = p.string()?;
                    let mut values = Vec::new();
                    while p.eat(",") {
                        values.push(p.dtype()?.scalar);
                    }
                    p.expect("]")?;
                    Ok(PrintFormat {
                        kernel,
                        message,
                        values,
                    })
                })?;
                attrs.prints = Some(Prints { buffer, formats });
            }
            other => {
                return Err(self.unknown_attr(
                    other,
                    span,
                    &["compile_flags", "pass_config", "autotune", "prints"],
                ));
            }
        }
        Ok(())
    }

    /// `S: shared float16[128, 32] …` behind its keyword; `S` is visible from here on.
    pub(super) fn buffer_decl(&mut self, kind: DeclKind) -> Result1<Buffer> {
        let (name, span) = self.new_name("a buffer's name")?;
        self.expect(":")?;
        let scope = match self.peek_word().and_then(Scope::from_name) {
            Some(scope) => {
                self.at += 1;
                scope
            }
            None if matches!(kind, DeclKind::Alloc | DeclKind::View) => {
                return Err(self
                    .word::<Scope>()
                    .err()
                    .unwrap_or_else(|| self.expected(Scope::WHAT)));
            }
            None => Scope::Global,
        };
        let dtype = self.dtype()?;
        let shape = if self.eat("[") {
            self.list("]", |p| p.expr())?
        } else {
            Vec::new()
        };
        let mut data = BufferData {
            span,
            ..BufferData::new(without_number(name), scope, dtype, shape)
        };
        match kind {
            DeclKind::Param => data.origin = BufferOrigin::Param,
            DeclKind::Workspace => data.origin = BufferOrigin::Workspace,
            DeclKind::Alloc => {}
            DeclKind::View => {
                self.expect_word("of")?;
                data.origin = BufferOrigin::View(self.buffer()?);
            }
            DeclKind::Pointer => {
                self.expect_word("at")?;
                data.origin = BufferOrigin::Pointer(self.expr()?);
            }
        }
        let (mut offset, mut bytes) = (None, None);
        while let Some((attr, span)) = self.attr_name() {
            match attr {
                "offset" => offset = Some((self.eq_number("a first byte")?, span)),
                "bytes" => bytes = Some((self.eq_number("a number of bytes")?, span)),
                "strides" => {
                    self.expect("=")?;
                    self.expect("[")?;
                    data.strides = Some(self.list("]", |p| p.expr())?);
                }
                "safe" => data.safe_value = Some(self.eq_expr()?),
                "versions" => data.versions = self.eq_number("a number of versions")?,
                "layout" => {
                    let of = data.const_shape().map(|shape| (shape, dtype));
                    data.layout = Some(self.layout(of)?);
                }
                "arrivals" if kind == DeclKind::Alloc => {
                    self.expect("=")?;
                    self.expect("[")?;
                    let counts = self.list("]", |p| p.number("a number of arrivals"))?;
                    data.origin = BufferOrigin::Barriers(counts);
                }
                "op" if kind == DeclKind::Alloc => {
                    self.expect("=")?;
                    data.origin = BufferOrigin::Reducer(self.word()?);
                }
                _ => {
                    let known = [
                        "strides", "safe", "versions", "offset", "bytes", "layout", "arrivals",
                        "op",
                    ];
                    return Err(self.unknown_attr(attr, span, &known));
                }
            }
        }
        data.place = match (offset, bytes) {
            (Some((offset, _)), Some((bytes, _))) => Some(SharedPlace { offset, bytes }),
            (None, None) => None,
            (Some((_, span)), None) | (None, Some((_, span))) => {
                return Err(Box::new(Diagnostic::error(
                    Code("text-shared-place"),
                    span,
                    "`offset=` and `bytes=` come together",
                )));
            }
        };
        let buffer = self.func.buffers.push(data);
        self.declare(name, Entity::Buffer(buffer), span)?;
        Ok(buffer)
    }

    /// `i` or `i: int64`
    pub(super) fn bound_var(&mut self) -> Result1<Var> {
        let name = self.new_name("a variable's name")?;
        let dtype = self.type_or(DType::I32)?;
        self.new_var(name, dtype, VarKind::Bound)
    }

    /// `: int64`, or nothing for the expected type.
    pub(super) fn type_or(&mut self, expected: DType) -> Result1<DType> {
        if self.eat(":") {
            self.dtype()
        } else {
            Ok(expected)
        }
    }

    fn kernel(&mut self, start: Span) -> Result1<Kernel> {
        self.open_scope();
        let kernel = self.kernel_in_scope(start);
        self.close_scope();
        kernel
    }

    fn kernel_in_scope(&mut self, start: Span) -> Result1<Kernel> {
        self.expect_word("grid")?;
        self.expect("(")?;
        let axes = self.list(")", |p| {
            let (name, dtype) = p.index_name()?;
            let extent = p.expr()?;
            let dtype = dtype.unwrap_or(extent.dtype());
            Ok((name, dtype, extent))
        })?;
        let mut grid = Vec::new();
        for (axis, (name, dtype, extent)) in axes.into_iter().enumerate() {
            let kind = VarKind::BlockIdx(u8::try_from(axis).unwrap_or(u8::MAX));
            grid.push((self.new_var(name, dtype, kind)?, extent));
        }
        self.expect_word("threads")?;
        self.expect("(")?;
        let at = self.here();
        let axes = self.list(")", |p| {
            let (name, dtype) = p.index_name()?;
            let count: u32 = p.number("a number of threads")?;
            Ok((name, dtype.unwrap_or(DType::I32), count))
        })?;
        let mut vars = Vec::new();
        let mut threads = Vec::new();
        for (axis, (name, dtype, count)) in axes.into_iter().enumerate() {
            let kind = VarKind::ThreadIdx(u8::try_from(axis).unwrap_or(u8::MAX));
            vars.push(self.new_var(name, dtype, kind)?);
            threads.push(count);
        }
        let (Ok(thread_vars), Ok(threads)) = (vars.try_into(), threads.try_into()) else {
            return Err(Box::new(
                Diagnostic::error(
                    Code("text-arity"),
                    self.since(at),
                    "a kernel has three thread axes",
                )
                .help("for example `threads(tx: 128, ty: 1, tz: 1)`"),
            ));
        };
        let attrs = self.kernel_attrs()?;
        let span = self.since(start);
        let body = self.block()?;
        Ok(Kernel {
            grid,
            threads,
            thread_vars,
            attrs,
            body,
            span,
        })
    }

    /// `bx:` or `bx int64:`
    fn index_name(&mut self) -> Result1<((&'t str, Span), Option<DType>)> {
        let name = self.new_name("an index")?;
        let dtype = if self.is(":") {
            None
        } else {
            Some(self.dtype()?)
        };
        self.expect(":")?;
        Ok((name, dtype))
    }

    fn kernel_attrs(&mut self) -> Result1<KernelAttrs> {
        let mut attrs = KernelAttrs::default();
        while let Some((attr, span)) = self.attr_name() {
            match attr {
                "swizzle" => {
                    self.expect("=")?;
                    let order = self.word()?;
                    self.expect("(")?;
                    let panel = self.number("a panel size")?;
                    self.expect(")")?;
                    attrs.swizzle = Some(Swizzle { panel, order });
                }
                "min_blocks" => {
                    attrs.min_blocks_per_sm = Some(self.eq_number("a number of blocks")?);
                }
                "cluster" => {
                    self.expect("=")?;
                    self.expect("(")?;
                    let at = self.here();
                    let sizes = self.list(")", |p| p.number("a cluster size"))?;
                    let sizes: [u32; 3] = sizes.try_into().map_err(|_| {
                        Box::new(Diagnostic::error(
                            Code("text-arity"),
                            at,
                            "a cluster has three sizes, along x, y and z",
                        ))
                    })?;
                    attrs.cluster = Some(sizes);
                }
                "rank" => {
                    self.expect("=")?;
                    let name = self.new_name("a block's number in its cluster")?;
                    attrs.rank = Some(self.new_var(name, DType::I32, VarKind::Rank)?);
                }
                "no_reg_realloc" => attrs.no_reg_realloc = true,
                "resident" => attrs.resident = true,
                "l2" => {
                    self.expect("=")?;
                    self.expect("[")?;
                    attrs.l2_hit_ratio = self.list("]", |p| {
                        let buffer = p.buffer()?;
                        p.expect(":")?;
                        Ok((buffer, p.expr()?))
                    })?;
                }
                "may_alias" => {
                    self.expect("=")?;
                    self.expect("[")?;
                    attrs.may_alias = self.list("]", |p| p.buffer())?;
                }
                "import" => {
                    self.expect("=")?;
                    attrs.imports.push(self.string()?);
                }
                _ => {
                    let known = [
                        "swizzle",
                        "min_blocks",
                        "cluster",
                        "rank",
                        "no_reg_realloc",
                        "resident",
                        "l2",
                        "may_alias",
                        "import",
                    ];
                    return Err(self.unknown_attr(attr, span, &known));
                }
            }
        }
        Ok(attrs)
    }
}
