//! Statements, loops and blocks.

use cranelift_entity::packed_option::ReservedValue;

use crate::diag::{Code, Diagnostic, Span};
use crate::dtype::DType;
use crate::expr::Expr;
use crate::func::VarKind;
use crate::ids::{Buffer, Var};
use crate::micro_op::MicroKind;
use crate::nearest::suggestion;
use crate::operand::OperandMut;
use crate::stmt::{Axis, Block, Loop, LoopKind, PipelineSpec, Stmt, StmtKind, Turn};
use crate::text::lexer::Tok;
use crate::text::parser::decls::DeclKind;
use crate::text::parser::{Parser, Result1};
use crate::text::{MAX_BLOCK_DEPTH, device};
use crate::thread_op::ThreadOp;
use crate::tile_op::TileOp;

/// The words that statements start with, operations aside, for suggestions.
const STATEMENTS: [&str; 12] = [
    "let",
    "alloc",
    "view",
    "pointer",
    "for",
    "while",
    "if",
    "break",
    "continue",
    "assert",
    "assume",
    "warp_group",
];

impl<'t> Parser<'t> {
    /// `{ … }` in a scope of its own. What is wrong in a statement is noted, and reading goes
    /// on with the next one.
    pub(super) fn block(&mut self) -> Result1<Block> {
        if self.depth >= MAX_BLOCK_DEPTH {
            // Nothing more is said about what is inside.
            let error = Diagnostic::error(
                Code("text-depth"),
                self.here(),
                format!("blocks nest more than {MAX_BLOCK_DEPTH} levels deep"),
            );
            return Err(Box::new(error));
        }
        self.expect("{")?;
        self.depth += 1;
        self.open_scope();
        let block = self.statements();
        self.close_scope();
        self.depth -= 1;
        block
    }

    fn statements(&mut self) -> Result1<Block> {
        let mut block = Vec::new();
        loop {
            self.skip_newlines();
            if self.eat("}") {
                return Ok(block);
            }
            if self.peek() == Tok::End {
                return Err(self.expected("`}` at the end of the block"));
            }
            match self.statement_with_turn() {
                Ok(stmt) => block.push(stmt),
                Err(error) => {
                    self.error(*error);
                    if self.gave_up() {
                        self.at = self.tokens.len() - 1;
                        return Ok(block);
                    }
                    self.skip_statement();
                    continue;
                }
            }
            if let Err(error) = self.end_of_statement() {
                self.error(*error);
                self.skip_statement();
            }
        }
    }

    /// A statement with its turn before it, which its span leaves out.
    fn statement_with_turn(&mut self) -> Result1<Stmt> {
        let turn = self.turn()?;
        let (start, first) = (self.here(), self.at);
        let kind = self.statement()?;
        let span = self.head_span(start, first);
        Ok(Stmt { kind, turn, span })
    }

    /// `@(stage=0, order=2)`
    fn turn(&mut self) -> Result1<Option<Turn>> {
        if !self.eat("@") {
            return Ok(None);
        }
        self.expect("(")?;
        let mut turn = Turn::default();
        self.list(")", |p| {
            match p.ident("`stage` or `order`")? {
                ("stage", _) => turn.stage = Some(p.eq_number("a stage")?),
                ("order", _) => turn.order = Some(p.eq_number("a position")?),
                (word, span) => return Err(p.unknown_attr(word, span, &["stage", "order"])),
            }
            Ok(())
        })?;
        Ok(Some(turn))
    }

    /// The span of the statement that began at token `first`, without the blocks in it.
    fn head_span(&self, start: Span, first: usize) -> Span {
        let tokens = &self.tokens[first..self.at];
        match tokens.iter().position(|t| t.tok == Tok::Sign("{")) {
            Some(brace) if brace > 0 => start.to(self.span_of(tokens[brace - 1])),
            _ => self.since(start),
        }
    }

    fn statement(&mut self) -> Result1<StmtKind> {
        // `A[i] = v`, `x = op …` and `x: T = op …` are told by what follows the name.
        if self.peek() == Tok::Ident && self.is_at(1, "[") {
            let (buffer, indices) = self.element()?;
            self.expect("=")?;
            let value = self.expr()?;
            return Ok(StmtKind::Store {
                buffer,
                indices,
                value,
            });
        }
        if self.peek() == Tok::Ident && (self.is_at(1, "=") || self.is_at(1, ":")) {
            return self.result_op().map(StmtKind::Thread);
        }
        let (word, span) = self.ident("a statement")?;
        if let Some(kind) = DeclKind::from_word(word) {
            return self.buffer_decl(kind).map(StmtKind::Alloc);
        }
        Ok(match word {
            "let" => {
                let name = self.new_name("a variable's name")?;
                self.expect(":")?;
                let dtype = self.dtype()?;
                let value = self.eq_expr()?;
                let var = self.new_var(name, dtype, VarKind::Let)?;
                StmtKind::Let { var, value }
            }
            "for" => {
                self.open_scope();
                let l = self.for_loop();
                self.close_scope();
                StmtKind::For(l?)
            }
            "while" => StmtKind::While {
                cond: self.expr()?,
                body: self.block()?,
            },
            "if" => self.if_stmt()?,
            "break" => StmtKind::Break,
            "continue" => StmtKind::Continue,
            "assert" => {
                let cond = self.expr()?;
                self.expect(",")?;
                let message = self.string()?;
                StmtKind::Assert { cond, message }
            }
            "assume" => StmtKind::Assume(self.expr()?),
            "warp_group" => {
                let mut groups = vec![self.number("a warp group")?];
                while self.eat(",") {
                    groups.push(self.number("a warp group")?);
                }
                StmtKind::WarpGroup {
                    groups,
                    body: self.block()?,
                }
            }
            _ => {
                if let Some(op) = self.tile_op(word)? {
                    StmtKind::Tile(op)
                } else if let Some(op) = self.thread_op(word, None)? {
                    StmtKind::Thread(op)
                } else if let Some(op) = self.micro_op(word)? {
                    StmtKind::Micro(op)
                } else if let Some(op) = self.device_op(word)? {
                    StmtKind::Device(op)
                } else {
                    let mut d = Diagnostic::error(
                        Code("text-unknown-op"),
                        span,
                        format!("there is no statement `{word}`"),
                    );
                    d.help.extend(if ThreadOp::WORDS.contains(&word) {
                        Some(format!("it has a result: write `x = {word} …`"))
                    } else {
                        suggestion(word, statement_words())
                    });
                    return Err(Box::new(d));
                }
            }
        })
    }

    /// `x = shuffle …`; the name is visible behind the line.
    fn result_op(&mut self) -> Result1<ThreadOp> {
        let name = self.new_name("a variable's name")?;
        let said = if self.eat(":") {
            Some(self.dtype()?)
        } else {
            None
        };
        self.expect("=")?;
        let (word, span) = self.ident("an operation with a result")?;
        // Stands in until the variable exists, behind the line.
        let stand_in = Var::reserved_value();
        let Some(mut op) = self.thread_op(word, Some(stand_in))? else {
            return Err(Box::new(
                Diagnostic::error(
                    Code("text-unknown-op"),
                    span,
                    format!("`{word}` is no operation with a result"),
                )
                .help(format!(
                    "for a plain value write `let {}: type = …`",
                    name.0
                )),
            ));
        };
        let dtype = said.or_else(|| op.result_type(&self.func));
        let var = self.new_var(name, dtype.unwrap_or(DType::I32), VarKind::Let)?;
        op.operands_mut(&mut |operand| {
            if let OperandMut::Result(result) = operand {
                *result = var;
            }
        });
        Ok(op)
    }

    fn if_stmt(&mut self) -> Result1<StmtKind> {
        let cond = self.expr()?;
        let then = self.block()?;
        let otherwise = if self.is_word("else") && (self.is_at(1, "{") || self.else_if()) {
            self.at += 1;
            if self.is("{") {
                self.block()?
            } else {
                self.else_if_block()?
            }
        } else {
            Vec::new()
        };
        Ok(StmtKind::If {
            cond,
            then,
            otherwise,
        })
    }

    fn else_if(&self) -> bool {
        self.peek_at(1) == Tok::Ident && self.text_of(self.tokens[self.at + 1]) == "if"
    }

    /// `if c { … }` behind `else`: a block of that one statement.
    fn else_if_block(&mut self) -> Result1<Block> {
        if self.depth >= MAX_BLOCK_DEPTH {
            return Err(Box::new(Diagnostic::error(
                Code("text-depth"),
                self.here(),
                format!("blocks nest more than {MAX_BLOCK_DEPTH} levels deep"),
            )));
        }
        let (start, first) = (self.here(), self.at);
        self.expect_word("if")?;
        self.depth += 1;
        let kind = self.if_stmt();
        self.depth -= 1;
        Ok(vec![Stmt::new(kind?, self.head_span(start, first))])
    }

    fn for_loop(&mut self) -> Result1<Loop> {
        let start = self.here();
        let mut names = Vec::new();
        if !self.is_word("in") {
            loop {
                let name = self.new_name("a loop index")?;
                let said = if self.eat(":") {
                    Some(self.dtype()?)
                } else {
                    None
                };
                names.push((name, said));
                if !self.eat(",") {
                    break;
                }
            }
        }
        self.expect_word("in")?;
        const KINDS: [&str; 6] = [
            "serial",
            "unroll",
            "vectorized",
            "parallel",
            "pipelined",
            "persistent",
        ];
        let (word, span) = self.ident("a kind of loop")?;
        if !KINDS.contains(&word) {
            return Err(self.unknown_attr(word, span, &KINDS));
        }
        self.expect("(")?;
        let ranges = self.list(")", |p| p.range())?;
        let kind = self.loop_kind(word)?;
        let grouped = matches!(word, "parallel" | "persistent");
        let ranges = if grouped || ranges.iter().any(|r| r.0.is_some()) {
            ranges
        } else {
            plain_range(ranges)
        };
        if ranges.len() != names.len() {
            return Err(Box::new(Diagnostic::error(
                Code("text-arity"),
                self.since(start),
                format!("{} indices for {} ranges", names.len(), ranges.len()),
            )));
        }
        let mut axes = Vec::new();
        for ((name, said), (start, stop, step)) in names.into_iter().zip(ranges) {
            let dtype = said.unwrap_or(stop.dtype());
            let var = self.new_var(name, dtype, VarKind::Loop)?;
            axes.push(Axis {
                var,
                start: start.unwrap_or_else(|| Expr::zero(stop.dtype())),
                step: step.unwrap_or_else(|| Expr::int(1, stop.dtype())),
                stop,
            });
        }
        let body = self.block()?;
        Ok(Loop { kind, axes, body })
    }

    /// `n`, `a..b` or `a..b by s`
    fn range(&mut self) -> Result1<Range> {
        let first = self.expr()?;
        if !self.eat("..") {
            return Ok((None, first, None));
        }
        let stop = self.expr()?;
        let step = if self.eat_word("by") {
            Some(self.expr()?)
        } else {
            None
        };
        Ok((Some(first), stop, step))
    }

    fn loop_kind(&mut self, word: &str) -> Result1<LoopKind> {
        Ok(match word {
            "unroll" => {
                let mut factor = None;
                while let Some((attr, span)) = self.attr_name() {
                    match attr {
                        "factor" => factor = Some(self.eq_number("a factor")?),
                        _ => return Err(self.unknown_attr(attr, span, &["factor"])),
                    }
                }
                LoopKind::Unroll { factor }
            }
            "vectorized" => LoopKind::Vectorized,
            "parallel" => {
                let mut coalesced_width = None;
                let mut layout = None;
                while let Some((attr, span)) = self.attr_name() {
                    match attr {
                        "coalesced" => coalesced_width = Some(self.eq_number("a width")?),
                        "layout" => layout = Some(self.layout(None)?),
                        _ => return Err(self.unknown_attr(attr, span, &["coalesced", "layout"])),
                    }
                }
                LoopKind::Parallel {
                    coalesced_width,
                    layout,
                }
            }
            "pipelined" => {
                let mut spec = PipelineSpec::default();
                while let Some((attr, span)) = self.attr_name() {
                    match attr {
                        "stages" => spec.stages = self.eq_number("a number of stages")?,
                        "schedule" => {
                            self.expect("=")?;
                            spec.schedule = Some(self.string()?);
                        }
                        "sync" => spec.sync = self.number_lists()?,
                        "versioned" => spec.versioned = self.buffer_list()?,
                        _ => {
                            let known = ["stages", "schedule", "sync", "versioned"];
                            return Err(self.unknown_attr(attr, span, &known));
                        }
                    }
                }
                LoopKind::Pipelined(spec)
            }
            "persistent" => {
                let at = self.here();
                let (mut wave, mut index, mut group) = (None, None, None);
                while let Some((attr, span)) = self.attr_name() {
                    match attr {
                        "wave" => wave = Some(self.eq_expr()?),
                        "index" => index = Some(self.eq_expr()?),
                        "group" => group = Some(self.eq_expr()?),
                        _ => {
                            return Err(self.unknown_attr(attr, span, &["wave", "index", "group"]));
                        }
                    }
                }
                match (wave, index, group) {
                    (Some(wave_size), Some(index), Some(group_size)) => LoopKind::Persistent {
                        wave_size,
                        index,
                        group_size,
                    },
                    _ => {
                        return Err(Box::new(Diagnostic::error(
                            Code("text-arity"),
                            at,
                            "a persistent loop needs `wave=`, `index=` and `group=`",
                        )));
                    }
                }
            }
            _ => LoopKind::Serial,
        })
    }

    /// `=[A, B]`
    fn buffer_list(&mut self) -> Result1<Vec<Buffer>> {
        self.expect("=")?;
        self.expect("[")?;
        self.list("]", |p| p.buffer())
    }

    /// `=[[0, 1], [2]]`
    fn number_lists(&mut self) -> Result1<Vec<Vec<i32>>> {
        self.expect("=")?;
        self.expect("[")?;
        self.list("]", |p| p.numbers("a position"))
    }
}

fn statement_words() -> impl Iterator<Item = &'static str> {
    let ops = [TileOp::WORDS, ThreadOp::WORDS, device::WORDS];
    let plain = STATEMENTS.iter().chain(ops.into_iter().flatten()).copied();
    plain.chain(MicroKind::ALL.into_iter().map(MicroKind::name))
}

/// Start, stop and step of a range; what is not said is the default.
type Range = (Option<Expr>, Expr, Option<Expr>);

/// `(stop)`, `(start, stop)` or `(start, stop, step)` as one range.
fn plain_range(items: Vec<Range>) -> Vec<Range> {
    let mut exprs: Vec<Expr> = items.into_iter().map(|(_, e, _)| e).collect();
    match exprs.len() {
        2 | 3 => {
            let step = if exprs.len() == 3 { exprs.pop() } else { None };
            let stop = exprs.pop();
            let start = exprs.pop();
            stop.map(|stop| (start, stop, step)).into_iter().collect()
        }
        _ => exprs.into_iter().map(|e| (None, e, None)).collect(),
    }
}
