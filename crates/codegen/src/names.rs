//! C identifiers of variables and buffers.
//!
//! An entity has the user's name. Where that name is taken in an open scope, is a word of the
//! language or has characters that C lacks, it is changed as little as possible.

use rustc_hash::{FxHashMap, FxHashSet};

/// Words that generated source may not use as names: the language's, and those that generated
/// code itself uses.
const RESERVED: &[&str] = &[
    "alignas",
    "alignof",
    "and",
    "asm",
    "auto",
    "bool",
    "break",
    "case",
    "catch",
    "char",
    "class",
    "const",
    "constexpr",
    "continue",
    "decltype",
    "default",
    "delete",
    "do",
    "double",
    "else",
    "enum",
    "explicit",
    "export",
    "extern",
    "false",
    "float",
    "for",
    "friend",
    "goto",
    "if",
    "inline",
    "int",
    "long",
    "main",
    "mutable",
    "namespace",
    "new",
    "not",
    "nullptr",
    "operator",
    "or",
    "private",
    "protected",
    "public",
    "register",
    "return",
    "short",
    "signed",
    "sizeof",
    "static",
    "struct",
    "switch",
    "template",
    "this",
    "throw",
    "true",
    "try",
    "typedef",
    "typeid",
    "typename",
    "union",
    "unsigned",
    "using",
    "virtual",
    "void",
    "volatile",
    "while",
    "xor",
    "tw",
    "shared_memory",
    "threadIdx",
    "blockIdx",
    "blockDim",
    "gridDim",
    "warpSize",
    "uint2",
    "uint4",
    "printf",
    "half",
];

/// Names in use, by scope.
#[derive(Debug, Default)]
pub(crate) struct Names {
    used: FxHashSet<String>,
    /// What each open scope added.
    scopes: Vec<Vec<String>>,
    /// The last number given to a name, so that finding a free one is quick.
    numbers: FxHashMap<String, u32>,
}

impl Names {
    pub fn open(&mut self) {
        self.scopes.push(Vec::new());
    }

    pub fn close(&mut self) {
        for name in self.scopes.pop().unwrap_or_default() {
            self.used.remove(&name);
            self.numbers.remove(&name);
        }
    }

    /// A free name close to the wanted one, taken until the innermost scope closes.
    pub fn take(&mut self, wanted: &str) -> String {
        let base = identifier(wanted);
        let mut name = base.clone();
        let mut number = self.numbers.get(&base).copied().unwrap_or(0);
        while self.used.contains(&name) || RESERVED.contains(&name.as_str()) {
            number += 1;
            name = format!("{base}_{number}");
        }
        if number > 0 {
            self.numbers.insert(base, number);
        }
        self.used.insert(name.clone());
        if let Some(scope) = self.scopes.last_mut() {
            scope.push(name.clone());
        }
        name
    }
}

/// The name with everything that C identifiers lack replaced. Names with two underscores belong
/// to the compiler, so those are thinned out.
pub(crate) fn identifier(name: &str) -> String {
    let mut out = String::with_capacity(name.len());
    for c in name.chars() {
        let c = if c.is_ascii_alphanumeric() { c } else { '_' };
        if c != '_' || !out.ends_with('_') {
            out.push(c);
        }
    }
    if !out.starts_with(|c: char| c.is_ascii_alphabetic()) {
        out.insert(0, 'v');
    }
    out
}

#[cfg(test)]
mod tests {
    use super::*;

    #[test]
    fn names_are_identifiers_and_unique_where_they_meet() {
        let mut names = Names::default();
        names.open();
        assert_eq!(names.take("A_shared"), "A_shared");
        assert_eq!(names.take("warp"), "warp");
        assert_eq!(names.take("warp"), "warp_1");
        assert_eq!(names.take("int"), "int_1");
        assert_eq!(names.take("größe"), "gr_e");
        assert_eq!(names.take("__x"), "v_x");
        names.open();
        assert_eq!(names.take("warp"), "warp_2");
        names.close();
        assert_eq!(names.take("k.1"), "k_1");
        names.close();
        names.open();
        assert_eq!(names.take("warp"), "warp");
    }
}
