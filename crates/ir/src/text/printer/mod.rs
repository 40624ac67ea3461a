//! Printing. Nothing here fails: an ill-formed function prints too, so that one can see it.
//!
//! | file | prints |
//! |---|---|
//! | `expr` | expressions, without recursion |
//! | `decls` | functions, buffers, kernels, layouts, attributes |
//! | `stmt` | statements and loops |
//!
//! Operations are printed where they are parsed: see [`crate::text`].

mod decls;
mod expr;
mod layout;
mod stmt;

use std::fmt::{self, Write};

use crate::declare::declared;
use crate::expr::Expr;
use crate::func::Func;
use crate::ids::{Buffer, Var};
use crate::stmt::Stmt;
use crate::text::names::{Entity, Names, NamesInText};

/// The text form of a function.
pub fn print(func: &Func) -> String {
    let func = &*declared(func);
    let mut p = Printer::new(func, Names::scoped(func));
    p.func();
    p.out
}

/// An expression as it stands in messages: by the user's names, unique or not.
pub fn print_expr(func: &Func, expr: &Expr) -> String {
    let mut p = Printer::new(func, Names::plain(func));
    p.expr(expr);
    p.out
}

/// What the text form calls everything.
pub(super) fn spelling(func: &Func) -> NamesInText {
    let func = &*declared(func);
    let mut p = Printer::new(func, Names::scoped(func));
    p.func();
    p.names.into_spelling()
}

/// A statement, with the blocks inside it, as it stands in messages.
pub fn print_stmt(func: &Func, stmt: &Stmt) -> String {
    print_stmt_by(Names::plain(func), func, stmt)
}

pub(super) fn print_stmt_by(names: Names<'_>, func: &Func, stmt: &Stmt) -> String {
    let mut p = Printer::new(func, names);
    p.stmt(stmt);
    p.out.truncate(p.out.trim_end().len());
    p.out
}

impl fmt::Display for Func {
    fn fmt(&self, f: &mut fmt::Formatter<'_>) -> fmt::Result {
        f.write_str(&print(self))
    }
}

pub(super) struct Printer<'a> {
    pub(super) func: &'a Func,
    pub(super) names: Names<'a>,
    pub(super) out: String,
    indent: usize,
}

impl<'a> Printer<'a> {
    fn new(func: &'a Func, names: Names<'a>) -> Printer<'a> {
        Printer {
            func,
            names,
            out: String::new(),
            indent: 0,
        }
    }

    pub(super) fn put(&mut self, text: &str) {
        self.out.push_str(text);
    }

    pub(super) fn put_fmt(&mut self, text: fmt::Arguments<'_>) {
        // Writing to a string does not fail.
        let _ = self.out.write_fmt(text);
    }

    fn start_line(&mut self) {
        for _ in 0..self.indent {
            self.out.push_str("  ");
        }
    }

    fn end_line(&mut self) {
        self.out.push('\n');
    }

    fn var(&mut self, var: Var) {
        let text = self.names.text(Entity::Var(var));
        self.put(&text);
    }

    pub(super) fn buffer(&mut self, buffer: Buffer) {
        let text = self.names.text(Entity::Buffer(buffer));
        self.put(&text);
    }

    /// `items` with `, ` between them.
    pub(super) fn list<T>(&mut self, items: &[T], mut each: impl FnMut(&mut Self, &T)) {
        for (i, item) in items.iter().enumerate() {
            if i > 0 {
                self.put(", ");
            }
            each(self, item);
        }
    }

    /// ` name=[a, b]`, or nothing for an empty list.
    pub(super) fn list_attr<T>(
        &mut self,
        name: &str,
        items: &[T],
        each: impl FnMut(&mut Self, &T),
    ) {
        if !items.is_empty() {
            self.put_fmt(format_args!(" {name}=["));
            self.list(items, each);
            self.put("]");
        }
    }

    /// ` name=value` with a value that needs no parentheses after it.
    pub(super) fn expr_attr(&mut self, name: &str, value: &Expr) {
        self.put_fmt(format_args!(" {name}="));
        self.atom(value);
    }

    /// ` word`, if it is to be said.
    pub(super) fn flag(&mut self, word: &str, said: bool) {
        if said {
            self.put(" ");
            self.put(word);
        }
    }

    /// ` name=value`, if there is one.
    pub(super) fn attr(&mut self, name: &str, value: Option<impl fmt::Display>) {
        if let Some(value) = value {
            self.put_fmt(format_args!(" {name}={value}"));
        }
    }

    pub(super) fn string(&mut self, text: &str) {
        self.put("\"");
        for c in text.chars() {
            match c {
                '"' => self.put("\\\""),
                '\\' => self.put("\\\\"),
                '\n' => self.put("\\n"),
                '\r' => self.put("\\r"),
                '\t' => self.put("\\t"),
                c if c.is_control() => self.put_fmt(format_args!("\\u{{{:x}}}", c as u32)),
                c => self.out.push(c),
            }
        }
        self.put("\"");
    }
}
