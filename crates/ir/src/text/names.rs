//! Names of variables and buffers in the text form.
//!
//! An entity is printed by the user's name. Where another entity of that name is visible
//! already, or the name is a reserved word, a number is added: `i.1`. The parser takes the
//! number off again, so names survive the round trip.

use rustc_hash::{FxHashMap, FxHashSet};

use crate::func::Func;
use crate::ids::{Buffer, Var};
use crate::stmt::Stmt;

/// Words that cannot be names by themselves; `if.1` can.
pub(crate) const RESERVED: [&str; 14] = [
    "true", "false", "inf", "nan", "if", "else", "for", "while", "in", "let", "alloc", "kernel",
    "func", "region",
];

/// A variable or a buffer: they share one space of names.
#[derive(Clone, Copy, PartialEq, Eq, Hash, Debug)]
pub(crate) enum Entity {
    Var(Var),
    Buffer(Buffer),
}

/// The name with every character that an identifier cannot have replaced by `_`.
pub fn identifier(name: &str) -> String {
    let mut out: String = name
        .chars()
        .map(|c| if is_continue(c) { c } else { '_' })
        .collect();
    if !out.chars().next().is_some_and(is_start) {
        out.insert(0, '_');
    }
    out
}

pub(crate) fn is_start(c: char) -> bool {
    c == '_' || c.is_alphabetic()
}

pub(crate) fn is_continue(c: char) -> bool {
    c == '_' || c.is_alphanumeric()
}

/// The identifier without the number that tells it from others: `i` of `i.1`.
pub(crate) fn without_number(text: &str) -> &str {
    text.split_once('.').map_or(text, |(name, _)| name)
}

/// What the text form of a function calls its buffers and variables, for messages about it: two that
/// share a name are told apart.
#[derive(Clone, Debug, Default)]
pub struct NamesInText {
    /// Those that have a number.
    numbered: FxHashMap<Entity, String>,
}

impl NamesInText {
    pub fn of(func: &Func) -> NamesInText {
        // Most functions have each name once.
        let mut seen = FxHashSet::default();
        let buffers = func.buffers.values().map(|b| &b.name);
        let mut names = buffers.chain(func.vars.values().map(|v| &v.name));
        match names.all(|name| seen.insert(name)) {
            true => NamesInText::default(),
            false => super::printer::spelling(func),
        }
    }

    pub fn buffer<'a>(&'a self, func: &'a Func, buffer: Buffer) -> &'a str {
        let own = || func.buffers.get(buffer).map_or("", |b| b.name.as_str());
        let numbered = self.numbered.get(&Entity::Buffer(buffer));
        numbered.map_or_else(own, String::as_str)
    }

    /// A statement, with the blocks inside it.
    pub fn stmt(&self, func: &Func, stmt: &Stmt) -> String {
        super::printer::print_stmt_by(Names::of(func, self), func, stmt)
    }
}

/// Which names are visible while a function is printed.
pub(crate) struct Names<'a> {
    func: &'a Func,
    /// Whether scopes are followed; otherwise every entity has its plain name.
    scoped: bool,
    text: FxHashMap<Entity, String>,
    /// What every entity declared so far is called, its scope open or not.
    spelled: FxHashMap<Entity, String>,
    /// The numbers of each name that are in use; zero is the plain name.
    used: FxHashMap<String, Numbers>,
    /// What was declared since each open scope began, with its name and number.
    declared: Vec<(Entity, String, usize)>,
    scopes: Vec<usize>,
}

impl<'a> Names<'a> {
    /// For a whole function: names are unique wherever they are visible together.
    pub(crate) fn scoped(func: &'a Func) -> Names<'a> {
        Names {
            scoped: true,
            ..Names::plain(func)
        }
    }

    /// For pieces in messages: the user's names, unique or not.
    pub(crate) fn plain(func: &'a Func) -> Names<'a> {
        Names {
            func,
            scoped: false,
            text: FxHashMap::default(),
            spelled: FxHashMap::default(),
            used: FxHashMap::default(),
            declared: Vec::new(),
            scopes: Vec::new(),
        }
    }

    /// For pieces in messages, by the names that the text form of the whole has.
    fn of(func: &'a Func, spelling: &NamesInText) -> Names<'a> {
        Names {
            text: spelling.numbered.clone(),
            ..Names::plain(func)
        }
    }

    /// What was declared, where the text form adds a number.
    pub(crate) fn into_spelling(self) -> NamesInText {
        NamesInText {
            numbered: self.spelled,
        }
    }

    pub(crate) fn open(&mut self) {
        self.scopes.push(self.declared.len());
    }

    pub(crate) fn close(&mut self) {
        let start = self.scopes.pop().unwrap_or(0);
        for (entity, base, number) in self.declared.drain(start..) {
            self.text.remove(&entity);
            if let Some(numbers) = self.used.get_mut(&base) {
                numbers.release(number);
            }
        }
    }

    /// Makes the entity visible until the scope closes.
    pub(crate) fn declare(&mut self, entity: Entity) {
        if !self.scoped || self.text.contains_key(&entity) {
            return;
        }
        let base = self.base(entity);
        // A reserved word is no name without a number.
        let reserved = RESERVED.contains(&base.as_str());
        let numbers = self.used.entry(base.clone()).or_insert_with(|| Numbers {
            taken: FxHashSet::from_iter(reserved.then_some(0)),
            free: reserved as usize,
        });
        let number = numbers.take();
        let text = match number {
            0 => base.clone(),
            n => format!("{base}.{n}"),
        };
        if number > 0 {
            self.spelled.insert(entity, text.clone());
        }
        self.text.insert(entity, text);
        self.declared.push((entity, base, number));
    }

    /// The text of a declared entity. One that is not visible here, which the verifier
    /// refuses, is shown with its id.
    pub(crate) fn text(&self, entity: Entity) -> String {
        match self.text.get(&entity) {
            Some(text) => text.clone(),
            None if self.scoped => match entity {
                Entity::Var(v) => format!("{}.unbound_{v}", self.base(entity)),
                Entity::Buffer(b) => format!("{}.unbound_{b}", self.base(entity)),
            },
            None => self.base(entity),
        }
    }

    fn base(&self, entity: Entity) -> String {
        let name = match entity {
            Entity::Var(v) => self.func.vars.get(v).map(|d| &d.name),
            Entity::Buffer(b) => self.func.buffers.get(b).map(|d| &d.name),
        };
        identifier(name.map_or("", |n| n))
    }
}

/// Numbers in use, with the smallest free one at hand.
struct Numbers {
    taken: FxHashSet<usize>,
    free: usize,
}

impl Numbers {
    /// The smallest free number.
    fn take(&mut self) -> usize {
        let number = self.free;
        self.taken.insert(number);
        while self.taken.contains(&self.free) {
            self.free += 1;
        }
        number
    }

    fn release(&mut self, number: usize) {
        self.taken.remove(&number);
        self.free = self.free.min(number);
    }
}
