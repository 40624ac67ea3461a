//! Interned names: a scope looks a name up by a number, not by its text.

use std::rc::Rc;

use rustc_hash::FxHashMap;

/// An interned name.
#[derive(Clone, Copy, PartialEq, Eq, Hash, PartialOrd, Ord, Debug)]
pub struct Symbol(u32);

/// The names of one compilation.
#[derive(Debug, Default)]
pub struct Symbols {
    by_text: FxHashMap<Rc<str>, Symbol>,
    texts: Vec<Rc<str>>,
}

impl Symbols {
    pub fn intern(&mut self, text: &str) -> Symbol {
        if let Some(&sym) = self.by_text.get(text) {
            return sym;
        }
        let sym = Symbol(self.texts.len() as u32);
        let text: Rc<str> = Rc::from(text);
        self.texts.push(text.clone());
        self.by_text.insert(text, sym);
        sym
    }

    /// The symbol of a text that was interned before.
    pub fn find(&self, text: &str) -> Option<Symbol> {
        self.by_text.get(text).copied()
    }

    pub fn text(&self, sym: Symbol) -> &Rc<str> {
        &self.texts[sym.0 as usize]
    }
}
